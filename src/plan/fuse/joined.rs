//! Reductions of one operand in one pass over it.
//!
//! Guarantees: reductions of what no kernel computes, or of what another kernel stores, are one kernel if they combine the same elements;
//! sums and means of such an operand join the kernel that computes other sums over the same domain and dims. The order in which
//! elements are combined depends on extents and dims alone, so no bit changes. Does not: join reductions of other dims.

use foldhash::{HashMap, HashMapExt};

use super::Scope;
use super::key::{Joined, Key};
use crate::graph::typed::{NodeId, TypedKind};
use crate::ops::Op;

impl Scope<'_> {
    /// The reductions that are computed in the kernel of others. `fused`: whether a reduction is part of its operand's kernel.
    pub(super) fn joined(
        &self,
        keys: &[Option<Key>],
        fused: impl Fn(NodeId) -> bool,
        key_of: impl Fn(NodeId) -> Key,
    ) -> HashMap<NodeId, Joined> {
        // A kernel that may be cut stores results, in whose order its loop must be.
        if keys.len() >= self.most {
            return HashMap::new();
        }
        // The dims of the kernels that add sums; `None` where something else is reduced too.
        let mut sums: HashMap<Key, Option<&[usize]>> = HashMap::new();
        let folds = || {
            let nodes = self.typed.nodes.iter().enumerate().filter(|(i, _)| keys[*i].is_some());
            nodes.filter_map(|(i, n)| match &n.kind {
                TypedKind::Reduce { op, from, axes, .. } if !op.is_search() => {
                    Some((i as NodeId, *op, self.aliases.value(*from), &axes[..], n))
                }
                _ => None,
            })
        };
        let is_sum = |op: Op| matches!(op, Op::Sum | Op::Mean);
        for (_, op, of, axes, n) in folds().filter(|f| fused(f.0)) {
            let adds = is_sum(op) && n.dtype.op_math().is_float();
            let known = sums.entry(key_of(of)).or_insert(adds.then_some(axes));
            if !adds || *known != Some(axes) {
                *known = None;
            }
        }
        let mut first: HashMap<(NodeId, &[usize]), NodeId> = HashMap::new();
        let mut joined = HashMap::new();
        for (i, op, of, axes, n) in folds().filter(|f| !fused(f.0)) {
            let given = !self.takes_part(self.aliases.source(of)) && self.aliases.source(of) == of;
            let wide = n.dtype.op_math().is_float();
            let key = key_of(of);
            if is_sum(op) && given && wide && sums.get(&key).is_some_and(|s| *s == Some(axes)) {
                joined.insert(i, Joined::Sums(key));
                continue;
            }
            match first.get(&(of, axes)) {
                Some(leader) => {
                    joined.insert(i, Joined::With(*leader));
                }
                None => {
                    first.insert((of, axes), i);
                }
            }
        }
        joined
    }
}
