//! Fusion: a typed program and its fetches become kernels, one for each iteration domain, and the buffers between them.
//!
//! Guarantees: only what the fetches need is computed; nodes of one domain are steps of one kernel, which has any number of
//! results; a value that another domain broadcasts is computed once, in its own domain; a kernel comes after those whose results
//! it reads; it has at most as many nodes as the executor allows; a view is read where its elements are, and one
//! of a computed value after the kernel that computes it; no recursion, so a program of a million nodes fuses. Does not:
//! compile, or know extents.

mod alias;
mod foldable;
mod groups;
mod joined;
mod key;
pub(crate) mod recompute;
mod row_group;
mod rows;
mod text;
mod topological;
mod views;

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use crate::base::error::{Error, Result};
use crate::base::host::FloatMode;
use crate::base::indexing::Indexing;
use crate::base::scalar::Bits;
use crate::base::view::View;
use crate::graph::typed::{Arg, NodeId, TypedKind, TypedProgram};
use crate::ops::Op;
use crate::plan::domain::{Domains, Pattern, domains};
use crate::plan::expand::{Expanded, expand};
use crate::plan::geometry::BroadcastKind;
use crate::plan::kernel::{Kernel, KernelBuilder, Operand, Source, ValueId};
use crate::plan::options::{Pass, Passes};
use crate::tensor::Tensor;

use alias::Aliases;
pub(crate) use foldable::foldable;
use foldable::{is_computed, live};
use groups::Groups;
use key::{Joined, Key};
use recompute::{Choice, Recompute};
pub(crate) use row_group::{MadeBy, RowGroup, Source as RowSource};
use topological::topological;

/// Index of a buffer of a plan.
pub(crate) type BufferId = u32;

/// Where a buffer's contents come from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A feed: its position among the typed program's.
    Feed(u32),
    /// A constant of the program, or a value of constants alone.
    Constant(Tensor),
    /// A kernel's result.
    Kernel,
    /// The number of elements along dims of a shape, in f64.
    Extent(u32, Arc<[usize]>),
    /// The elements of another buffer under this one's shape: the view of this typed node.
    View(BufferId, NodeId),
    /// Elements that are made where they are read: the generator of this typed node.
    Generated(NodeId),
    /// Blocks of the elements of another buffer: the blocks of this typed node.
    Blocks(BufferId, NodeId),
}

/// A tensor that a plan reads or computes.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) origin: Origin,
    /// The index of its shape in the typed program.
    pub(crate) shape: u32,
    /// The last kernel that reads it or a view of it; `usize::MAX` if that is a fetch.
    pub(crate) last_use: usize,
    /// Whether a kernel reads it.
    pub(crate) read: bool,
}

/// A kernel with its place in the plan.
#[derive(Clone, Debug)]
pub(crate) struct PlannedKernel {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) consts: Vec<Bits>,
    /// For each step, the typed node it serves.
    pub(crate) nodes: Vec<NodeId>,
    /// The domain: the index of a shape of the typed program that has its extents.
    pub(crate) shape: u32,
    pub(crate) inputs: Vec<BufferId>,
    /// How each of the inputs is broadcast to the domain.
    pub(crate) spread: Vec<BroadcastKind>,
    pub(crate) outputs: Vec<BufferId>,
    /// The views that it is the first to need, in the order in which they can be made.
    pub(crate) views: Vec<BufferId>,
    /// The buffers that it is the last to read.
    pub(crate) releases: Vec<BufferId>,
    /// The dims of the domain that are reduced, ascending, if the kernel reduces.
    pub(crate) reduced: Option<Arc<[usize]>>,
    /// For each reduction of the kernel, the typed node (op and dtype) and the buffer of its result.
    pub(crate) folds: Vec<(NodeId, BufferId)>,
}

/// What has to run, in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) typed: Arc<TypedProgram>,
    pub(crate) work: Vec<PlannedKernel>,
    pub(crate) buffers: Vec<Buffer>,
    /// The buffer of each fetch.
    pub(crate) fetches: Vec<BufferId>,
    /// The typed node of each fetch.
    pub(crate) asked: Vec<NodeId>,
    /// The views that no kernel but a fetch needs, in the order in which they can be made.
    pub(crate) views: Vec<BufferId>,
    /// Reductions that refuse to combine no elements for another reason than their own row: on behalf of this op, or of none.
    pub(crate) needs_elements: HashMap<NodeId, Option<Op>>,
    /// The kernels that run together over blocks of rows, in order.
    pub(crate) rows: Vec<RowGroup>,
    /// Bytes of a block of rows.
    pub(crate) row_block: usize,
    /// What was decided of the values that several kernels of one domain need.
    pub(crate) choices: Vec<Choice>,
}

impl PlannedKernel {
    /// Whether it moves elements along a dim, which no loop does.
    pub(crate) fn moves(&self) -> bool {
        self.kernel.folds.is_empty() && !self.folds.is_empty()
    }
}

impl Plan {
    /// How a kernel moves elements, with its node and the buffer of its result; `None` if it computes.
    pub(crate) fn moved(&self, k: &PlannedKernel) -> Option<(NodeId, Indexing, BufferId)> {
        let [(node, to)] = k.folds[..] else { return None };
        match self.typed.nodes[node as usize].kind {
            TypedKind::Indexed { how, .. } => Some((node, how, to)),
            _ => None,
        }
    }

    /// The op that refuses that a reduction combines no elements, if one does.
    pub(crate) fn refuses_nothing(&self, node: NodeId) -> Option<Op> {
        let own = match self.typed.nodes[node as usize].kind {
            TypedKind::Reduce { op, number, .. } => (op.needs_elements() && number.is_none()).then_some(op),
            _ => None,
        };
        self.needs_elements.get(&node).copied().unwrap_or(own)
    }
}

/// Plans the computation of `fetches`. `known` has the values of nodes that need not be computed.
pub(crate) fn plan(
    typed: &Arc<TypedProgram>,
    fetches: &[NodeId],
    known: &HashMap<NodeId, Tensor>,
    pattern: &Pattern,
    passes: Passes,
) -> Result<Plan> {
    let Some(Expanded { typed, of, needs_elements }) = expand(typed) else {
        return plan_rows(typed, fetches, known, pattern, passes);
    };
    let fetches: Vec<NodeId> = fetches.iter().map(|n| of[*n as usize]).collect();
    let known = known.iter().map(|(n, t)| (of[*n as usize], t.clone())).collect();
    Ok(Plan { needs_elements, ..plan_rows(&typed, &fetches, &known, pattern, passes)? })
}

/// Plans a program without composites.
fn plan_rows(
    typed: &Arc<TypedProgram>,
    fetches: &[NodeId],
    known: &HashMap<NodeId, Tensor>,
    pattern: &Pattern,
    passes: Passes,
) -> Result<Plan> {
    // Exponents are compared, constants converted.
    let _standard = FloatMode::standard();
    let domains = domains(typed, pattern);
    let aliases = Aliases::of(typed);
    let fetches: Vec<NodeId> = fetches.iter().map(|n| aliases.value(*n)).collect();
    let live = live(typed, &fetches, &aliases, known);
    let mut f = Fusion {
        plan: Plan {
            typed: typed.clone(),
            work: Vec::new(),
            buffers: Vec::new(),
            fetches: Vec::new(),
            asked: fetches.clone(),
            views: Vec::new(),
            choices: Vec::new(),
            needs_elements: HashMap::new(),
            rows: Vec::new(),
            row_block: passes.row_block,
        },
        buffer_of: HashMap::new(),
        passes,
    };
    let most = if passes.has(Pass::Fusion) { passes.kernel_ops } else { 0 };
    let scope = Scope { typed, live: &live, aliases: &aliases, known, domains: &domains, most };
    let mut groups = scope.groups(&fetches)?;
    let reads = groups.reads(typed, &aliases);
    if passes.has(Pass::Fusion) && passes.has(Pass::Recomputing) {
        let recompute = Recompute { typed, aliases: &aliases, domains: &domains, groups: &groups, reads: &reads };
        let (again, choices) = recompute.choose(&fetches, most);
        f.plan.choices = choices;
        groups.add(again);
    }
    let (stored, place) = groups.settle(typed, &fetches, &aliases);
    f.plan.choices.iter_mut().for_each(|c| c.place(&place));
    for node in (0..typed.len() as u32).filter(|n| live[*n as usize]) {
        let origin = match (&typed.nodes[node as usize].kind, known.get(&node)) {
            (_, Some(t)) => Origin::Constant(t.clone()),
            (TypedKind::Feed(name), _) => Origin::Feed(typed.feed_index.get(name).copied().unwrap_or(0)),
            (TypedKind::Constant(t), _) => Origin::Constant(t.clone()),
            (TypedKind::Extent { shape, axes }, _) => Origin::Extent(*shape, axes.clone()),
            _ => continue,
        };
        f.buffer(node, origin);
    }
    for (at, nodes) in (0..).zip(groups.list) {
        let crosses = |n: NodeId| groups.of[n as usize] == at && stored[n as usize];
        f.kernel(nodes, &aliases, crosses, &domains)?;
    }
    let rows = if passes.has(Pass::Rows) { f.plan.gather_rows(&domains) } else { Vec::new() };
    let mut views = Vec::new();
    for node in &fetches {
        let id = match typed.nodes[*node as usize].kind {
            TypedKind::View { .. } => f.operand(*node, &aliases, usize::MAX, &mut views)?,
            _ => f
                .buffer_of
                .get(node)
                .copied()
                .ok_or_else(|| Error::Internal(format!("typed node {node} is fetched but not computed")))?,
        };
        f.plan.buffers[id as usize].last_use = usize::MAX;
        f.plan.fetches.push(id);
    }
    f.plan.views = views;
    f.release();
    f.plan.complete_rows(rows);
    Ok(f.plan)
}

/// Whether a node is no step of a kernel's loop: it reads a whole operand, which is stored, or is computed in the loop that the
/// node ends.
fn is_alone(kind: &TypedKind) -> bool {
    matches!(kind, TypedKind::Reduce { .. } | TypedKind::Line { .. } | TypedKind::Indexed { .. })
}

/// What nodes are grouped by.
struct Scope<'a> {
    typed: &'a TypedProgram,
    live: &'a [bool],
    aliases: &'a Aliases,
    known: &'a HashMap<NodeId, Tensor>,
    domains: &'a Domains,
    /// Nodes of a kernel, at most; 0 is as 1.
    most: usize,
}

impl Scope<'_> {
    /// Whether a node is part of some kernel.
    fn takes_part(&self, node: NodeId) -> bool {
        let i = node as usize;
        self.live[i] && is_computed(self.typed, node) && self.aliases.is_own(node) && !self.known.contains_key(&node)
    }

    /// The key of each node that takes part, and the stage of each node.
    fn keys(&self) -> (Vec<Option<Key>>, Vec<u32>) {
        let mut stage = vec![0u32; self.typed.len()];
        let mut keys = Vec::with_capacity(self.typed.len());
        for (i, n) in self.typed.nodes.iter().enumerate() {
            // A value behind a reduction, or behind a view that moves or drops dims, may return to a domain before it: to that of
            // the next stage, so that no kernel needs itself. An expanded value is only broadcast.
            let leads_back = match n.kind {
                ref kind if is_alone(kind) => true,
                TypedKind::Blocks { from, .. } => self.takes_part(self.aliases.source(from)),
                TypedKind::View { from, ref view } => {
                    let rank = |node: NodeId| self.typed.shape_of(node).len();
                    let moves = match view {
                        None => rank(i as u32) < rank(from),
                        Some(View::Expand(_)) => false,
                        Some(_) => self.aliases.is_own(i as u32),
                    };
                    moves && self.takes_part(self.aliases.source(from))
                }
                _ => false,
            };
            let before = n.inputs().map(|a| stage[a as usize]).max().unwrap_or(0);
            stage[i] = before + u32::from(leads_back);
            keys.push(self.takes_part(i as u32).then(|| (stage[i], self.domains.of_shape[n.shape as usize])));
        }
        self.delay(&mut keys, &mut stage);
        (keys, stage)
    }

    /// Moves generators to the stage of the first step that needs them: made earlier, they would be stored for it.
    fn delay(&self, keys: &mut [Option<Key>], stage: &mut [u32]) {
        let generates = |a: NodeId| matches!(self.typed.nodes[a as usize].kind, TypedKind::Generate { .. });
        let mut first: HashMap<NodeId, Option<u32>> = HashMap::new();
        for (i, n) in self.typed.nodes.iter().enumerate().filter(|(i, _)| self.live[*i]) {
            // What reads it as a cast that changes nothing, say, reads the generator.
            for a in n.inputs().map(|a| self.aliases.operand(&n.kind, a)).filter(|a| generates(*a)) {
                let is_step =
                    matches!(n.kind, TypedKind::Apply { .. } | TypedKind::Cast { .. } | TypedKind::Bits { .. });
                let same = keys[i].map(|k| k.1) == keys[a as usize].map(|k| k.1);
                let here = keys[i].map(|k| k.0).filter(|_| is_step && same);
                first.entry(a).and_modify(|s| *s = s.zip(here).map(|(a, b)| a.min(b))).or_insert(here);
            }
        }
        for (a, s) in first {
            if let (Some(s), Some(key)) = (s, &mut keys[a as usize]) {
                (key.0, stage[a as usize]) = (s, s);
            }
        }
    }

    /// The reductions that are part of the kernel that computes their operands. A kernel reduces one set of dims; and if it has
    /// other results, only trailing dims, since its loop is in row-major order of the results.
    fn fused(&self, keys: &[Option<Key>], fetches: &[NodeId]) -> HashSet<NodeId> {
        let is_reduction = |n: NodeId| is_alone(&self.typed.nodes[n as usize].kind);
        // What is searched is a buffer.
        let is_fold = |n: usize| matches!(self.typed.nodes[n].kind, TypedKind::Reduce { op, .. } if !op.is_search());
        let mut stored: HashSet<Key> = fetches
            .iter()
            .map(|n| self.aliases.source(*n))
            .filter(|n| !is_reduction(*n))
            .filter_map(|n| keys[n as usize])
            .collect();
        let mut candidates: HashMap<Key, Vec<NodeId>> = HashMap::new();
        for i in (0..self.typed.len()).filter(|i| keys[*i].is_some()) {
            for a in self.typed.nodes[i].inputs() {
                let direct = self.aliases.operand(&self.typed.nodes[i].kind, a);
                let made = self.aliases.source(direct);
                let Some(key) = keys[made as usize].filter(|_| !is_reduction(made)) else { continue };
                if is_fold(i) && direct == made {
                    candidates.entry(key).or_default().push(i as u32);
                } else if direct != made || keys[i] != Some(key) || is_reduction(i as u32) {
                    stored.insert(key);
                }
            }
        }
        let mut sizes: HashMap<Key, usize> = HashMap::new();
        if keys.len() > self.most {
            keys.iter().flatten().for_each(|key| *sizes.entry(*key).or_default() += 1);
        }
        let mut fused = HashSet::new();
        for (key, nodes) in candidates {
            // A kernel that would have too many nodes is cut, and its parts store results for each other.
            if sizes.get(&key).is_some_and(|n| n + nodes.len() > self.most) {
                stored.insert(key);
            }
            let trailing = |n: &NodeId| {
                self.reduces(*n).is_some_and(|(axes, rank)| axes.iter().copied().eq(rank - axes.len()..rank))
            };
            let same = |n: &NodeId, m: &NodeId| self.reduces(*n).map(|r| r.0) == self.reduces(*m).map(|r| r.0);
            let free = !stored.contains(&key) && nodes.iter().all(|n| same(n, &nodes[0]));
            if let Some(chosen) = nodes.iter().copied().find(|n| free || trailing(n)) {
                fused.extend(nodes.iter().filter(|n| same(n, &chosen)));
            }
        }
        fused
    }

    /// The dims that a node reduces, and the rank of what it reduces.
    fn reduces(&self, node: NodeId) -> Option<(&[usize], usize)> {
        match &self.typed.nodes[node as usize].kind {
            TypedKind::Reduce { from, axes, .. } => Some((axes, self.typed.shape_of(*from).len())),
            _ => None,
        }
    }

    /// Groups the computed nodes by key, and puts each group behind those whose results it reads. A reduction is part of the group of
    /// its operand, or a group of its own.
    ///
    /// Within a stage, a node's domain has at least as many dims as its operands', and these are at least as large; so no value
    /// returns to a domain, and one group for each domain and stage is enough.
    fn groups(&self, fetches: &[NodeId]) -> Result<Groups> {
        let (typed, (keys, stages)) = (self.typed, self.keys());
        let fused = self.fused(&keys, fetches);
        let key_of = |n: NodeId| (stages[n as usize], self.domains.of_shape[typed.nodes[n as usize].shape as usize]);
        let joined = self.joined(&keys, |n| fused.contains(&n), key_of);
        let mut of = vec![u32::MAX; typed.len()];
        let mut group_of_key: HashMap<Key, u32> = HashMap::new();
        let mut members: Vec<Vec<NodeId>> = Vec::new();
        let mut after: HashSet<(u32, u32)> = HashSet::new();
        for (i, n) in typed.nodes.iter().enumerate() {
            let Some(key) = keys[i] else { continue };
            // Nodes come after their operands, so a full group needs none of the nodes to come: the next group takes them.
            let has_room = |g: &u32, members: &[Vec<NodeId>]| members[*g as usize].len() < self.most;
            let open = match n.kind {
                TypedKind::Reduce { from, .. } if fused.contains(&(i as u32)) => {
                    Some(of[self.aliases.value(from) as usize])
                }
                ref kind if is_alone(kind) => match joined.get(&(i as u32)) {
                    Some(Joined::With(leader)) => Some(of[*leader as usize]),
                    Some(Joined::Sums(key)) => group_of_key.get(key).copied(),
                    None => None,
                },
                _ => group_of_key.get(&key).copied(),
            };
            let g = match open.filter(|g| has_room(g, &members)) {
                Some(g) => g,
                None => {
                    members.push(Vec::new());
                    members.len() as u32 - 1
                }
            };
            match joined.get(&(i as u32)) {
                Some(Joined::Sums(key)) => group_of_key.insert(*key, g),
                _ if is_alone(&n.kind) => None,
                _ => group_of_key.insert(key, g),
            };
            members[g as usize].push(i as u32);
            of[i] = g;
            let made = |a: NodeId| self.aliases.source(self.aliases.operand(&n.kind, a)) as usize;
            for a in n.inputs().map(|a| of[made(a)]) {
                if a != g && a != u32::MAX {
                    after.insert((a, g));
                }
            }
        }
        let order = topological(members.len(), &after)?;
        let mut place = vec![u32::MAX; members.len()];
        (0..).zip(&order).for_each(|(at, g)| place[*g as usize] = at);
        of.iter_mut().filter(|g| **g != u32::MAX).for_each(|g| *g = place[*g as usize]);
        let list = order.iter().map(|g| std::mem::take(&mut members[*g as usize])).collect();
        Ok(Groups { list, of })
    }
}

struct Fusion {
    plan: Plan,
    buffer_of: HashMap<NodeId, BufferId>,
    passes: Passes,
}

impl Fusion {
    fn buffer(&mut self, node: NodeId, origin: Origin) -> BufferId {
        let n = &self.plan.typed.nodes[node as usize];
        self.plan.buffers.push(Buffer { origin, shape: n.shape, last_use: 0, read: false });
        let id = self.plan.buffers.len() as u32 - 1;
        self.buffer_of.insert(node, id);
        id
    }

    /// Lowers the nodes of one group, in program order, to a kernel.
    /// Those that cross to other kernels, or are fetched, are stored.
    fn kernel(
        &mut self,
        nodes: Vec<NodeId>,
        aliases: &Aliases,
        crosses: impl Fn(NodeId) -> bool,
        domains: &Domains,
    ) -> Result<()> {
        let typed = self.plan.typed.clone();
        let at = self.plan.work.len();
        let mut b = KernelBuilder::new(&typed.settings, self.passes);
        let mut values: HashMap<NodeId, ValueId> = HashMap::new();
        let mut inputs: Vec<BufferId> = Vec::new();
        let mut outputs: Vec<BufferId> = Vec::new();
        let mut views: Vec<BufferId> = Vec::new();
        let mut stored: HashMap<ValueId, BufferId> = HashMap::new();
        let mut folds: Vec<(NodeId, BufferId)> = Vec::new();
        let mut reduced: Option<Arc<[usize]>> = None;
        let shape = nodes.first().map_or(0, |n| match typed.nodes[*n as usize].kind {
            TypedKind::Reduce { from, .. } | TypedKind::Line { from, .. } => typed.nodes[from as usize].shape,
            _ => typed.nodes[*n as usize].shape,
        });
        let computes = nodes.iter().any(|n| !is_alone(&typed.nodes[*n as usize].kind));
        for id in nodes {
            let n = &typed.nodes[id as usize];
            b.on_behalf_of(id);
            let stepwise = !matches!(n.kind, TypedKind::Blocks { .. } | TypedKind::Indexed { .. });
            for a in n.inputs().filter(|_| stepwise).map(|a| aliases.operand(&n.kind, a)) {
                if let std::collections::hash_map::Entry::Vacant(slot) = values.entry(a) {
                    let buffer = self.operand(a, aliases, at, &mut views)?;
                    inputs.push(buffer);
                    slot.insert(b.input(typed.nodes[a as usize].dtype));
                }
            }
            let value = match &n.kind {
                TypedKind::Cast { from, .. } => b.cast(values[&aliases.operand(&n.kind, *from)], n.dtype),
                TypedKind::Bits { from } => b.bits(values[&aliases.operand(&n.kind, *from)], n.dtype),
                TypedKind::Apply { op, compute, args } => {
                    let operands: Vec<Operand> = args
                        .iter()
                        .flatten()
                        .map(|a| match a {
                            Arg::Node(a) => Operand::Value(values[&aliases.operand(&n.kind, *a)]),
                            Arg::Scalar(s, d) => Operand::Scalar(*s, *d),
                        })
                        .collect();
                    b.apply(*op, *compute, &operands)
                }
                TypedKind::Generate { .. } => {
                    // A step stores what is made as any other value.
                    inputs.push(self.buffer(id, Origin::Generated(id)));
                    let made = b.input(n.dtype);
                    b.bits(made, n.dtype)
                }
                TypedKind::Blocks { from, .. } => {
                    let scale = self.operand(aliases.operand(&n.kind, *from), aliases, at, &mut views)?;
                    inputs.push(self.buffer(id, Origin::Blocks(scale, id)));
                    let made = b.input(n.dtype);
                    b.bits(made, n.dtype)
                }
                TypedKind::Reduce { op, from, axes, .. } => {
                    let value = values[&aliases.operand(&n.kind, *from)];
                    let wide = if op.is_search() { value } else { b.cast(value, n.dtype.op_math()) };
                    // Segments add what they compute.
                    let given = computes && matches!(b.kernel.value(wide).source, Source::Input(_));
                    let wide = if given { b.bits(wide, n.dtype) } else { wide };
                    b.kernel.folds.push((*op, wide));
                    folds.push((id, self.buffer(id, Origin::Kernel)));
                    reduced = Some(axes.clone());
                    continue;
                }
                TypedKind::Indexed { .. } => {
                    // It has no step: what it moves is read where it lies.
                    for a in n.inputs() {
                        inputs.push(self.operand(aliases.operand(&n.kind, a), aliases, at, &mut views)?);
                    }
                    folds.push((id, self.buffer(id, Origin::Kernel)));
                    continue;
                }
                TypedKind::Line { op, from, .. } => {
                    b.kernel.folds.push((*op, values[&aliases.operand(&n.kind, *from)]));
                    folds.push((id, self.buffer(id, Origin::Kernel)));
                    continue;
                }
                _ => continue,
            };
            values.insert(id, value);
            if crosses(id) {
                match stored.get(&value) {
                    Some(same) => {
                        self.buffer_of.insert(id, *same);
                    }
                    None => {
                        let buffer = self.buffer(id, Origin::Kernel);
                        if !matches!(b.kernel.value(value).source, Source::Step(_)) {
                            return Err(Error::Internal(format!("typed node {id} needs no step")));
                        }
                        b.kernel.outputs.push(value);
                        outputs.push(buffer);
                        stored.insert(value, buffer);
                    }
                }
            }
        }
        let (kernel, consts, nodes) = (Arc::new(b.kernel), b.const_bits, b.origins);
        let moves = kernel.folds.is_empty() && !folds.is_empty();
        let spread = |b: &BufferId| match &self.plan.buffers[*b as usize] {
            _ if moves => BroadcastKind::Varies,
            Buffer { origin: Origin::Generated(_) | Origin::Blocks(..), .. } => BroadcastKind::Generated,
            b => domains.spread(b.shape, shape),
        };
        let spread = inputs.iter().map(spread).collect();
        let releases = Vec::new();
        let planned =
            PlannedKernel { kernel, consts, nodes, shape, inputs, spread, outputs, views, releases, reduced, folds };
        self.plan.work.push(planned);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
