//! Which values are computed again in the kernels that read them, instead of being stored by one kernel and read by others.
//!
//! For each element, storing a value moves its bytes once to memory and once to each reader. Computing it again costs each
//! reader the steps that lead to it ([`cost`]) and the bytes of the operands of these that it does not read anyway; steps and
//! operands that several values need in one reader are shared by them in equal parts. A value is stored if that is not cheaper,
//! which makes it an operand for the values that follow, until nothing changes. If it is stored anyway (fetched, viewed,
//! broadcast, searched, read along lines), each reader alone computes it again or reads it.
//!
//! Guarantees: no bit changes, since a reader computes the same steps; what may refuse data is computed once; at no time more
//! memory is taken than if everything were stored: what lives longer for a value is not larger than the value, which is not stored;
//! no kernel gets more nodes than the executor allows, nor all together twice as many, in time linear in the program's length. Does
//! not: know extents (all values of a domain have the same), or compute generators and blocks again.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use smallvec::SmallVec;

use super::alias::Aliases;
use super::groups::{Groups, Read};
use crate::base::shape::SymDim;
use crate::graph::typed::{Arg, NodeId, TypedKind, TypedNode, TypedProgram};
use crate::plan::cost;
use crate::plan::domain::Domains;
use crate::plan::kernel::{KernelBuilder, Operand, ValueId};
use crate::plan::options::Passes;
use crate::plan::tuning::APART;
use crate::promotion::Rounding;

/// Nodes that are computed again for one value, at most.
const MOST_STEPS: usize = 16;

/// Times that decisions are revised, at most.
const ROUNDS: usize = 6;

/// What was decided of a value that several kernels need.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) node: NodeId,
    /// The bytes that are moved for an element if the value is stored; without the store, if it is stored anyway.
    pub(crate) moved: u32,
    /// Whether it is stored whatever its readers do.
    pub(crate) anyway: bool,
    /// The cost of computing it again in each reader, in bytes moved; none if it must not be.
    pub(crate) again: Option<f32>,
    /// The kernels that compute it again, and those that read it.
    pub(crate) computed_in: SmallVec<[u32; 2]>,
    pub(crate) read_in: SmallVec<[u32; 2]>,
}

impl Choice {
    /// Says where the groups are now.
    pub(super) fn place(&mut self, place: &[u32]) {
        self.computed_in.iter_mut().chain(&mut self.read_in).for_each(|g| *g = place[*g as usize]);
    }
}

/// What is computed again for a value: nodes, ascending, and what they read.
#[derive(Default)]
struct Cone {
    nodes: SmallVec<[NodeId; 4]>,
    operands: SmallVec<[NodeId; 4]>,
}

/// A value that kernels of its own domain read, with these, ascending.
struct Candidate {
    value: NodeId,
    readers: SmallVec<[u32; 2]>,
    /// Whether it is stored anyway.
    forced: bool,
    /// What is computed again for it; none if it is stored.
    cone: Option<Cone>,
}

/// The program and its groups.
pub(super) struct Recompute<'a> {
    pub(super) typed: &'a TypedProgram,
    pub(super) aliases: &'a Aliases,
    pub(super) domains: &'a Domains,
    pub(super) groups: &'a Groups,
    /// What the groups read if everything is stored.
    pub(super) reads: &'a [Read],
}

/// What is known of the program while values are decided.
struct State<'a> {
    all: &'a Recompute<'a>,
    /// For each node, whether another kernel can read it.
    stored: Vec<bool>,
    /// For each node that is stored or viewed, the last group that reads it; none if only a fetch does.
    last_read: Vec<Option<u32>>,
    /// The operands that groups read, whatever is decided.
    reads: HashSet<(u32, NodeId)>,
    costs: HashMap<NodeId, Option<f32>>,
}

impl Recompute<'_> {
    /// The nodes that groups compute again, and what was decided of each value that kernels of its domain read. A group has `most` nodes.
    pub(super) fn choose(&self, fetches: &[NodeId], most: usize) -> (Vec<(u32, NodeId)>, Vec<Choice>) {
        let (mut state, mut candidates) = self.state(fetches);
        if candidates.is_empty() {
            return (Vec::new(), Vec::new());
        }
        for round in 1..=ROUNDS {
            state.cones(&mut candidates, most);
            if !state.compare(&mut candidates, round == ROUNDS) {
                break;
            }
        }
        let mut again = Vec::new();
        for c in &candidates {
            let pairs =
                |cone: &Cone| c.readers.iter().flat_map(|r| cone.nodes.iter().map(|n| (*r, *n))).collect::<Vec<_>>();
            again.extend(c.cone.iter().flat_map(pairs));
        }
        again.sort_unstable();
        again.dedup();
        let mut rest = Rest { more: HashMap::new(), total: self.typed.len().saturating_sub(again.len()), most };
        again.iter().for_each(|(r, _)| *rest.more.entry(*r).or_default() += 1);
        // Of others there is no choice.
        let is_step = |c: &&Candidate| {
            let kind = &self.typed.nodes[c.value as usize].kind;
            matches!(kind, TypedKind::Apply { .. } | TypedKind::Cast { .. } | TypedKind::Bits { .. })
        };
        let choices = candidates.iter().filter(is_step).map(|c| state.choice(c, &mut rest, &mut again)).collect();
        (again, choices)
    }

    fn state(&self, fetches: &[NodeId]) -> (State<'_>, Vec<Candidate>) {
        let mut state = State {
            all: self,
            stored: vec![false; self.typed.len()],
            last_read: vec![None; self.typed.len()],
            reads: HashSet::new(),
            costs: HashMap::new(),
        };
        fetches.iter().for_each(|n| state.stored[self.aliases.source(*n) as usize] = true);
        let mut candidates: Vec<Candidate> = Vec::new();
        for r in self.reads {
            for n in [r.value, self.aliases.source(r.value)] {
                let last = &mut state.last_read[n as usize];
                *last = (*last).max(Some(r.by));
            }
            state.reads.insert((r.by, r.value));
            let source = self.aliases.source(r.value);
            if self.groups.of[source as usize] == u32::MAX {
                continue;
            }
            if r.whole || self.domain(r.value) != self.domains.of_shape[self.shape_of_group(r.by) as usize] {
                state.stored[source as usize] = true;
                continue;
            }
            match candidates.last_mut() {
                Some(c) if c.value == r.value => c.readers.push(r.by),
                _ => {
                    let readers = SmallVec::from_elem(r.by, 1);
                    candidates.push(Candidate { value: r.value, readers, forced: false, cone: None });
                }
            }
        }
        candidates.iter_mut().for_each(|c| c.forced = state.stored[c.value as usize]);
        (state, candidates)
    }

    fn domain(&self, node: NodeId) -> u32 {
        self.domains.of_shape[self.typed.nodes[node as usize].shape as usize]
    }

    /// The index of a shape with the extents of a group's domain.
    fn shape_of_group(&self, group: u32) -> u32 {
        let first = self.groups.list[group as usize][0];
        match self.typed.nodes[first as usize].kind {
            TypedKind::Reduce { from, .. } | TypedKind::Line { from, .. } => self.typed.nodes[from as usize].shape,
            _ => self.typed.nodes[first as usize].shape,
        }
    }
}

/// What groups may still compute again.
struct Rest {
    /// What each group computes again so far.
    more: HashMap<u32, usize>,
    total: usize,
    /// Nodes of a group, at most.
    most: usize,
}

impl Rest {
    /// Whether a group of so many nodes of its own has room for more. Then it has less.
    fn takes(&mut self, group: u32, own: usize, nodes: usize) -> bool {
        let more = self.more.entry(group).or_default();
        let fits = nodes <= self.total && own + *more + nodes <= self.most;
        if fits {
            *more += nodes;
            self.total -= nodes;
        }
        fits
    }
}

impl State<'_> {
    /// Finds what is computed again for each value, given what is stored. A value that has nothing of the kind is stored.
    fn cones(&mut self, candidates: &mut [Candidate], most: usize) {
        let mut added: HashSet<(u32, NodeId)> = HashSet::new();
        let mut more: HashMap<u32, usize> = HashMap::new();
        for c in candidates {
            c.cone = None;
            if self.stored[c.value as usize] {
                continue;
            }
            let found = self.cone(c.value).filter(|cone| self.lives(c, cone));
            let new = |cone: &Cone| {
                let all = c.readers.iter().flat_map(|r| cone.nodes.iter().map(|n| (*r, *n)));
                all.filter(|pair| !added.contains(pair)).collect::<SmallVec<[(u32, NodeId); 8]>>()
            };
            let Some(cone) = found else {
                self.stored[c.value as usize] = true;
                continue;
            };
            let new = new(&cone);
            new.iter().for_each(|(r, _)| *more.entry(*r).or_default() += 1);
            let fits = c.readers.iter().all(|r| self.len(*r) + more.get(r).copied().unwrap_or(0) <= most);
            if fits && added.len() + new.len() <= self.all.typed.len() {
                added.extend(new);
                c.cone = Some(cone);
            } else {
                new.iter().for_each(|(r, _)| *more.entry(*r).or_default() -= 1);
                self.stored[c.value as usize] = true;
            }
        }
    }

    /// The nodes of a group.
    fn len(&self, group: u32) -> usize {
        self.all.groups.list[group as usize].len()
    }

    /// Stores the values that are cheaper to store. Says whether there was one.
    fn compare(&mut self, candidates: &mut [Candidate], last: bool) -> bool {
        let mut shares: HashMap<(u32, NodeId), u32> = HashMap::new();
        for c in candidates.iter().filter(|_| !last) {
            let Some(cone) = &c.cone else { continue };
            for r in &c.readers {
                cone.nodes.iter().chain(&cone.operands).for_each(|n| *shares.entry((*r, *n)).or_default() += 1);
            }
        }
        let mut changed = false;
        for c in candidates {
            let Some(cone) = &c.cone else { continue };
            let cost: f32 = c.readers.iter().map(|r| self.cost(*r, cone, &shares)).sum();
            if cost >= self.size(c.value) * (1 + c.readers.len()) as f32 {
                self.stored[c.value as usize] = true;
                c.cone = None;
                changed = true;
            }
        }
        changed
    }

    /// What was decided of a value. Readers of a stored one are decided here.
    fn choice(&mut self, c: &Candidate, rest: &mut Rest, again: &mut Vec<(u32, NodeId)>) -> Choice {
        let shares = HashMap::new();
        let alone = self.cone(c.value);
        let size = self.size(c.value);
        let mut made = Choice {
            node: c.value,
            moved: size as u32 * (c.readers.len() as u32 + u32::from(!c.forced)),
            anyway: c.forced,
            again: alone.as_ref().map(|cone| c.readers.iter().map(|r| self.cost(*r, cone, &shares)).sum()),
            computed_in: SmallVec::new(),
            read_in: SmallVec::new(),
        };
        if c.cone.is_some() {
            made.computed_in = c.readers.clone();
            return made;
        }
        for r in &c.readers {
            let cheaper = |cone: &&Cone| {
                let lives = cone.operands.iter().all(|a| self.lives_until(*a, *r));
                lives && self.cost(*r, cone, &shares) < size
            };
            match alone.as_ref().filter(cheaper) {
                Some(cone) if rest.takes(*r, self.len(*r), cone.nodes.len()) => {
                    again.extend(cone.nodes.iter().map(|n| (*r, *n)));
                    made.computed_in.push(*r);
                }
                _ => made.read_in.push(*r),
            }
        }
        made
    }

    /// What is computed again for a value; none if that is not possible, or much.
    fn cone(&mut self, value: NodeId) -> Option<Cone> {
        let (typed, of) = (self.all.typed, &self.all.groups.of);
        let mut cone = Cone::default();
        let mut open: SmallVec<[NodeId; 8]> = SmallVec::from_elem(value, 1);
        while let Some(n) = open.pop() {
            if cone.nodes.contains(&n) {
                continue;
            }
            if cone.nodes.len() == MOST_STEPS || self.cost_of(n).is_none() {
                return None;
            }
            cone.nodes.push(n);
            let node = &typed.nodes[n as usize];
            for a in node.inputs().map(|a| self.all.aliases.operand(&node.kind, a)) {
                let source = self.all.aliases.source(a) as usize;
                // The kernel that computes a half gives its own steps the unrounded value.
                let half = typed.nodes[a as usize].dtype;
                if typed.settings.rounding == Rounding::Relaxed
                    && of[source] != u32::MAX
                    && half.is_float()
                    && half.is_narrow()
                {
                    return None;
                }
                let in_loop = a as usize == source && self.all.domain(a) == self.all.domain(value);
                if of[source] != u32::MAX && in_loop && !self.stored[source] {
                    open.push(a);
                } else if !cone.operands.contains(&a) {
                    cone.operands.push(a);
                }
            }
        }
        Some(cone)
    }

    /// Whether what lives longer if a value is computed again is not larger than the value, which is not stored then.
    fn lives(&self, c: &Candidate, cone: &Cone) -> bool {
        let last = c.readers.last().copied().unwrap_or(0);
        let longer = cone.operands.iter().filter(|a| !self.lives_until(**a, last));
        let known = cone.operands.iter().all(|a| self.lives_until(*a, 0));
        // A view keeps all that it is a view of.
        let typed = self.all.typed;
        let keeps = |a: &NodeId| {
            let source = self.all.aliases.source(*a) as usize;
            self.all.groups.of[source] != u32::MAX && matches!(typed.nodes[*a as usize].kind, TypedKind::View { .. })
        };
        known && !longer.clone().any(keeps) && longer.map(|a| self.size(*a)).sum::<f32>() <= self.size(c.value)
    }

    /// Whether an operand is in memory until this group has run, if everything is stored. A result that no kernel reads is not: it may
    /// be in the caller's memory alone.
    fn lives_until(&self, operand: NodeId, group: u32) -> bool {
        let source = self.all.aliases.source(operand);
        let viewed = matches!(self.all.typed.nodes[operand as usize].kind, TypedKind::View { .. });
        if self.all.groups.of[source as usize] == u32::MAX && !viewed {
            return true;
        }
        let node = if viewed { operand } else { source };
        self.last_read[node as usize].is_some_and(|last| last >= group)
    }

    /// The cost of computing a value in a group. `shares` counts the values for which the group needs a node or an operand.
    fn cost(&self, group: u32, cone: &Cone, shares: &HashMap<(u32, NodeId), u32>) -> f32 {
        let share = |n: NodeId| shares.get(&(group, n)).map_or(1.0, |n| *n as f32);
        let steps =
            cone.nodes.iter().map(|n| self.costs.get(n).copied().flatten().unwrap_or(f32::INFINITY) / share(*n));
        let new = cone.operands.iter().filter(|a| !self.reads.contains(&(group, **a)));
        steps.sum::<f32>() + new.map(|a| self.size(*a) * self.part(*a, group) / share(*a)).sum::<f32>()
    }

    /// The elements of an operand that are moved for each element of a group's domain; none where a dim of unknown extent is broadcast.
    /// Those of a view may lie apart, where the stored value would not.
    fn part(&self, operand: NodeId, group: u32) -> f32 {
        let typed = self.all.typed;
        let apart = if matches!(typed.nodes[operand as usize].kind, TypedKind::View { .. }) { APART } else { 1.0 };
        let (of, to) = (typed.shape_of(operand), &typed.shapes[self.all.shape_of_group(group) as usize]);
        let part = |(n, i): (&SymDim, usize)| match (of.len().checked_sub(i).map(|at| &of[at]), n) {
            (None | Some(SymDim::Fixed(1)), SymDim::Fixed(n)) => 1.0 / (*n).max(1) as f32,
            (None | Some(SymDim::Fixed(1)), SymDim::Sym(_)) => 0.0,
            _ => 1.0,
        };
        apart * to.iter().rev().zip(1..).map(part).product::<f32>()
    }

    fn size(&self, node: NodeId) -> f32 {
        self.all.typed.nodes[node as usize].dtype.size() as f32
    }

    /// The cost of a node's steps; none if it must not be computed again.
    fn cost_of(&mut self, node: NodeId) -> Option<f32> {
        let typed = self.all.typed;
        let n = &typed.nodes[node as usize];
        // What later steps take of a half depends on what is fused.
        let relaxed = typed.settings.rounding == Rounding::Relaxed && n.dtype.is_float() && n.dtype.is_narrow();
        *self.costs.entry(node).or_insert_with(|| steps_of(typed, n).filter(|_| !relaxed))
    }
}

/// The cost of the steps of a node alone.
fn steps_of(typed: &TypedProgram, n: &TypedNode) -> Option<f32> {
    let mut b = KernelBuilder::new(&typed.settings, Passes::default());
    let mut inputs: SmallVec<[(NodeId, ValueId); 4]> = SmallVec::new();
    for a in n.inputs() {
        if inputs.iter().all(|(known, _)| *known != a) {
            inputs.push((a, b.input(typed.nodes[a as usize].dtype)));
        }
    }
    let value = |a: NodeId| inputs.iter().find(|(known, _)| *known == a).map(|(_, v)| *v);
    match &n.kind {
        TypedKind::Cast { from, .. } => {
            b.cast(value(*from)?, n.dtype);
        }
        TypedKind::Bits { from } => {
            b.bits(value(*from)?, n.dtype);
        }
        TypedKind::Apply { op, compute, args } => {
            let operand = |a: &Arg| match a {
                Arg::Node(a) => value(*a).map(Operand::Value),
                Arg::Scalar(s, d) => Some(Operand::Scalar(*s, *d)),
            };
            let operands: Option<SmallVec<[Operand; 4]>> = args.iter().flatten().map(operand).collect();
            b.apply(*op, *compute, &operands?);
        }
        _ => return None,
    }
    cost::of_steps(&b.kernel)
}
