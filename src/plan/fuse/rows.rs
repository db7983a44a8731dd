//! Finds kernels that can run together, block of rows by block of rows.
//!
//! Guarantees: a kernel comes after those whose results it reads, also where kernels change places so that the group's follow each
//! other; no element is computed from others or in another order than without groups; the time is linear in the number of kernels.
//! Does not: decide at run time whether a group is large enough to pay.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt};

use super::row_group::{Inner, MadeBy, RowGroup, Source};
use super::{BufferId, Origin, Plan, PlannedKernel};
use crate::base::view::{View, wrap};
use crate::graph::typed::{NodeId, TypedKind};
use crate::ops::Op;
use crate::plan::domain::{Domains, Resolved};

/// Kernels behind a group's latest one among which its next one is looked for.
const REACH: usize = 32;

/// Kernels of a group, at most.
const MOST: usize = 64;
/// The longest chain of views in a program that has groups.
const CHAIN: usize = 64;

/// A group while it is looked for.
struct Candidate {
    members: Vec<usize>,
    /// Kernels between members that have to stay behind them.
    behind: Vec<usize>,
    /// Kernels between members that depend on none of them.
    free: Vec<usize>,
    lead: Vec<Resolved>,
    folds: bool,
}

impl Plan {
    /// Moves kernels of one group next to each other.
    pub(super) fn gather_rows(&mut self, domains: &Domains) -> Vec<RowGroup> {
        let (mut at, mut found) = (0, Vec::new());
        let mut makers = HashMap::new();
        self.makers(0..self.work.len(), &mut makers);
        // Chains of views are walked again and again.
        if self.longest_chain() > CHAIN {
            return found;
        }
        while at + 1 < self.work.len() {
            let Some(group) = self.candidate(at, domains, &makers) else {
                at += 1;
                continue;
            };
            let before = self.needed(&group, &makers);
            let mut order = before.clone();
            order.extend(&group.members);
            let end = group.members.last().map_or(at, |m| m + 1);
            order.extend((at..end).filter(|k| !before.contains(k) && !group.members.contains(k)));
            if !order.is_sorted() {
                self.reorder(at, &order);
                self.makers(at..end, &mut makers);
            }
            at += before.len();
            found.push(RowGroup {
                kernels: at..at + group.members.len(),
                lead: group.lead.len(),
                inner: Vec::new(),
                inputs: Vec::new(),
            });
            at += group.members.len();
        }
        found
    }

    /// The most views that a buffer is one of the other.
    fn longest_chain(&self) -> usize {
        let mut chains: Vec<usize> = Vec::with_capacity(self.buffers.len());
        for b in &self.buffers {
            chains.push(match b.origin {
                Origin::View(base, _) | Origin::Blocks(base, _) => {
                    chains.get(base as usize).map_or(usize::MAX, |n| n.saturating_add(1))
                }
                _ => 0,
            });
        }
        chains.into_iter().max().unwrap_or(0)
    }

    /// Notes for each buffer that one of these kernels makes, which one.
    fn makers(&self, of: Range<usize>, makers: &mut HashMap<BufferId, usize>) {
        for (k, i) in self.work[of.clone()].iter().zip(of) {
            k.results().for_each(|b| {
                makers.insert(b, i);
            });
        }
    }

    /// The buffer that a buffer is a view or blocks of, after any number of views.
    fn root(&self, mut buffer: BufferId) -> BufferId {
        while let Origin::View(base, _) | Origin::Blocks(base, _) = self.buffers[buffer as usize].origin {
            buffer = base;
        }
        buffer
    }

    /// The kernels whose results a kernel reads.
    fn reads<'a>(&'a self, k: usize, makers: &'a HashMap<BufferId, usize>) -> impl Iterator<Item = usize> + 'a {
        self.work[k].inputs.iter().filter_map(|b| makers.get(&self.root(*b)).copied())
    }

    /// The group that begins with a kernel, if there is one that pays.
    fn candidate(&self, first: usize, domains: &Domains, makers: &HashMap<BufferId, usize>) -> Option<Candidate> {
        let k = &self.work[first];
        let lead = self.lead(k, domains).filter(|_| self.scanned(k).is_none())?;
        let mut group =
            Candidate { members: vec![first], behind: Vec::new(), free: Vec::new(), lead, folds: k.reduced.is_some() };
        let mut at = first + 1;
        while at < self.work.len() && group.members.len() < MOST {
            if at - group.members[group.members.len() - 1] > REACH {
                break;
            }
            let (mut waits, mut joins) = (false, false);
            for from in self.reads(at, makers) {
                waits |= group.behind.contains(&from);
                joins |= group.members.contains(&from);
            }
            let fits = if joins && !waits { self.fits(&group, at, domains, makers) } else { None };
            match fits {
                Some(lead) => {
                    group.lead.truncate(lead);
                    group.folds |= self.work[at].reduced.is_some();
                    group.members.push(at);
                }
                None if joins || waits => group.behind.push(at),
                None => group.free.push(at),
            }
            at += 1;
        }
        self.pays(&group, domains, makers).then_some(group)
    }

    /// The leading dims along which a kernel neither reduces nor scans; `None` if there are none, and for searches and sorts.
    fn lead(&self, k: &PlannedKernel, domains: &Domains) -> Option<Vec<Resolved>> {
        let (dims, scanned) = (domains.dims(k.shape), self.scanned(k));
        let places = k.kernel.folds.iter().any(|(op, _)| op.is_search() || op.is_line());
        if k.moves() || scanned.is_none() && places {
            return None;
        }
        let reduced = k.reduced.as_deref().and_then(|r| r.first().copied());
        let end = scanned.or(reduced).unwrap_or(dims.len());
        (end > 0).then(|| dims[..end].to_vec())
    }

    /// The dim along which a kernel scans, if it does.
    fn scanned(&self, k: &PlannedKernel) -> Option<usize> {
        let [(node, _)] = k.folds[..] else { return None };
        match self.typed.nodes[node as usize].kind {
            TypedKind::Line {
                op: Op::Cumsum | Op::Cumprod | Op::Cummax | Op::Cummin | Op::Logcumsumexp, axis, ..
            } => Some(axis),
            _ => None,
        }
    }

    /// How many leading dims a group has with one more kernel; `None` if that is not part of it.
    fn fits(
        &self,
        group: &Candidate,
        at: usize,
        domains: &Domains,
        makers: &HashMap<BufferId, usize>,
    ) -> Option<usize> {
        let k = &self.work[at];
        let own = self.lead(k, domains)?;
        let lead = group.lead.iter().zip(&own).take_while(|(a, b)| a == b).count();
        // What was found with more dims is worth more than another kernel.
        if lead == 0 || group.folds && lead < group.lead.len() {
            return None;
        }
        // A scan reads what a kernel of the group has made, as it lies in memory.
        let is_made = |b: &BufferId| makers.get(b).is_some_and(|m| group.members.contains(m));
        if self.scanned(k).is_some() && !k.inputs.iter().all(is_made) {
            return None;
        }
        let rank = domains.dims(k.shape).len();
        let same_rows = |b: &BufferId| {
            let inside = makers.get(&self.root(*b)).is_some_and(|m| group.members.contains(m));
            !inside || domains.dims(self.buffers[*b as usize].shape).len() == rank && self.keeps(*b, lead, domains)
        };
        k.inputs.iter().all(same_rows).then_some(lead)
    }

    /// Whether a buffer, and all that it is a view of, has the same leading dims, and each view leaves these alone.
    fn keeps(&self, mut buffer: BufferId, lead: usize, domains: &Domains) -> bool {
        let dims = |b: BufferId| domains.dims(self.buffers[b as usize].shape);
        loop {
            match self.buffers[buffer as usize].origin {
                Origin::View(base, node) => {
                    let (of, to) = (dims(base), dims(buffer));
                    let same = of.len() >= lead && to.len() >= lead && of[..lead] == to[..lead];
                    let view = match &self.typed.nodes[node as usize].kind {
                        TypedKind::View { view, .. } => view.as_ref(),
                        _ => return false,
                    };
                    if !same || !view.is_none_or(|v| is_behind(v, lead, (of.len(), to.len()))) {
                        return false;
                    }
                    buffer = base;
                }
                Origin::Kernel => return true,
                _ => return false,
            }
        }
    }

    /// Whether running a group block by block can pay: a value of a row is used for the row's elements again, or a row is scanned.
    fn pays(&self, group: &Candidate, domains: &Domains, makers: &HashMap<BufferId, usize>) -> bool {
        let lead = group.lead.len();
        let is_wide = |k: usize| domains.dims(self.work[k].shape)[lead..].iter().any(|d| *d != Resolved::Fixed(1));
        let wide = group.members.iter().filter(|k| is_wide(**k)).count();
        let folds = |k: usize| self.work[k].reduced.is_some();
        let again = |k: &usize| {
            let scans = self.scanned(&self.work[*k]).is_some();
            self.reads(*k, makers).any(|from| (scans || folds(from)) && group.members.contains(&from))
        };
        wide >= 2 && group.members.iter().any(again)
    }

    /// The kernels between a group's members that these need, in order.
    fn needed(&self, group: &Candidate, makers: &HashMap<BufferId, usize>) -> Vec<usize> {
        let mut needed: Vec<usize> = Vec::new();
        let mut open: Vec<usize> = group.members.clone();
        while let Some(k) = open.pop() {
            for from in self.reads(k, makers) {
                if group.free.contains(&from) && !needed.contains(&from) {
                    needed.push(from);
                    open.push(from);
                }
            }
        }
        needed.sort_unstable();
        needed
    }

    /// Puts the kernels from `at` on in another order, and says anew which views and releases come with each.
    fn reorder(&mut self, at: usize, order: &[usize]) {
        let slice = &mut self.work[at..at + order.len()];
        for i in 0..order.len() {
            // The kernel for this place is where an earlier swap has put it.
            let mut from = order[i] - at;
            while from < i {
                from = order[from] - at;
            }
            slice.swap(i, from);
        }
        let mut views: Vec<BufferId> = slice.iter_mut().flat_map(|k| std::mem::take(&mut k.views)).collect();
        for k in slice {
            let mut wanted: Vec<BufferId> = Vec::new();
            for b in &k.inputs {
                let (mut chain, mut next) = (Vec::new(), *b);
                while let Origin::View(base, _) | Origin::Blocks(base, _) = self.buffers[next as usize].origin {
                    chain.push(next);
                    next = base;
                }
                wanted.extend(chain.into_iter().rev());
            }
            for b in wanted {
                if let Some(found) = views.iter().position(|v| *v == b) {
                    k.views.push(views.remove(found));
                }
            }
        }
        let last = at + order.len();
        for i in at..last {
            for b in self.work[i].inputs.clone() {
                let mut next = b;
                loop {
                    let buffer = &mut self.buffers[next as usize];
                    if buffer.last_use < last {
                        buffer.last_use = i;
                    }
                    match buffer.origin {
                        Origin::View(base, _) | Origin::Blocks(base, _) => next = base,
                        _ => break,
                    }
                }
            }
        }
    }

    /// Fills the groups in, once it is known what is read behind them.
    pub(super) fn complete_rows(&mut self, mut groups: Vec<RowGroup>) {
        for g in &mut groups {
            let mut places: HashMap<BufferId, usize> = HashMap::new();
            for (r, k) in self.work[g.kernels.clone()].iter().enumerate() {
                for b in &k.views {
                    let Origin::View(base, node) = self.buffers[*b as usize].origin else { continue };
                    let Some(base) = places.get(&base).copied() else { continue };
                    places.insert(*b, g.inner.len());
                    g.inner.push(self.inner(*b, MadeBy::View(base, node), g.kernels.end));
                }
                let place = |b: &BufferId| places.get(b).map_or(Source::Given(*b), |i| Source::Inner(*i));
                let inputs: Vec<Source> = k.inputs.iter().map(place).collect();
                for s in &inputs {
                    let mut next = *s;
                    while let Source::Inner(i) = next {
                        g.inner[i].last = Some(r);
                        next = match g.inner[i].from {
                            MadeBy::View(base, _) => Source::Inner(base),
                            MadeBy::Kernel { .. } => break,
                        };
                    }
                }
                g.inputs.push(inputs);
                let made = k.kernel.outputs.iter().map(|v| (*v, None));
                let made = made.chain(k.kernel.folds.iter().zip(&k.folds).map(|((_, v), (n, _))| (*v, Some(*n))));
                for (b, (value, node)) in k.results().zip(made) {
                    places.insert(b, g.inner.len());
                    let wide = k.kernel.value(value).dtype;
                    let dtype = node.map_or(wide, |n| self.typed.nodes[n as usize].dtype);
                    let from = MadeBy::Kernel { dtype, size: wide.size().max(dtype.size()), fold: node.is_some() };
                    g.inner.push(self.inner(b, from, g.kernels.end));
                }
            }
            // What a view that leaves is made of has to leave too.
            for i in (0..g.inner.len()).rev() {
                if let Inner { from: MadeBy::View(base, _), leaves: true, .. } = g.inner[i] {
                    g.inner[base].leaves = true;
                }
            }
        }
        self.rows = groups;
    }

    fn inner(&self, buffer: BufferId, from: MadeBy, end: usize) -> Inner {
        Inner { buffer, from, last: None, leaves: self.buffers[buffer as usize].last_use >= end }
    }

    /// The group that begins with a kernel.
    pub(crate) fn group_at(&self, kernel: usize) -> Option<&RowGroup> {
        let at = self.rows.binary_search_by_key(&kernel, |g| g.kernels.start).ok()?;
        self.rows.get(at)
    }
}

impl PlannedKernel {
    /// The buffers of its results and of its reductions.
    pub(crate) fn results(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.outputs.iter().copied().chain(self.folds.iter().map(|(_, b): &(NodeId, BufferId)| *b))
    }
}

/// Whether a view leaves the leading dims alone, which are equal before and after it. `ranks`: of what is viewed, and of the view.
fn is_behind(view: &View, lead: usize, (from, to): (usize, usize)) -> bool {
    let behind = |d: &i64, rank: usize| wrap(*d, rank) >= lead;
    match view {
        View::Transpose(a, b) => behind(a, from) && behind(b, from),
        View::Permute(order) => (0..lead).all(|d| order.get(d).is_some_and(|o| wrap(*o, from) == d)),
        View::Unsqueeze(d) => behind(d, from + 1),
        View::Squeeze(d) | View::Slice(d, _) => behind(d, from),
        View::Expand(_) => from == to,
        View::Flip(dims) => dims.iter().all(|d| behind(d, from)),
        View::Reshape(_) => true,
    }
}
