//! Which nodes of a program are computed, which its fetches need, and which depend on constants alone.
//!
//! Guarantees: what only feeds tell is no constant. Does not: compute.

use foldhash::{HashMap, HashMapExt};

use super::alias::Aliases;
use crate::base::shape::SymDim;
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::tensor::Tensor;

/// Whether a node computes its elements: it is no placeholder, constant or view.
pub(super) fn is_computed(typed: &TypedProgram, node: NodeId) -> bool {
    matches!(
        typed.nodes[node as usize].kind,
        TypedKind::Apply { .. }
            | TypedKind::Cast { .. }
            | TypedKind::Bits { .. }
            | TypedKind::Reduce { .. }
            | TypedKind::Line { .. }
            | TypedKind::Indexed { .. }
            | TypedKind::Generate { .. }
            | TypedKind::Blocks { .. }
    )
}

/// The nodes that the fetches need.
pub(super) fn live(
    typed: &TypedProgram,
    fetches: &[NodeId],
    aliases: &Aliases,
    known: &HashMap<NodeId, Tensor>,
) -> Vec<bool> {
    let mut live = vec![false; typed.len()];
    fetches.iter().for_each(|n| live[*n as usize] = true);
    for i in (0..typed.len()).rev() {
        if live[i] && !known.contains_key(&(i as u32)) {
            let n = &typed.nodes[i];
            n.inputs().for_each(|a| live[aliases.operand(&n.kind, a) as usize] = true);
        }
    }
    live
}

/// The elements that nodes have together, at most, to be computed when a plan is made: nothing stops that, and no limit of a run's memory or
/// time counts it.
const FOLDED: usize = 1 << 22;

/// The elements of a node of fixed dims.
fn elements(typed: &TypedProgram, node: NodeId) -> usize {
    let dims = typed.shape_of(node).iter().map(|d| if let SymDim::Fixed(n) = d { *n } else { usize::MAX });
    dims.fold(1, usize::saturating_mul)
}

/// The nodes that depend on constants alone and whose values are fetched or read by nodes that do not: they are computed once, when the
/// plan is made, unless they have too many elements.
pub(crate) fn foldable(typed: &TypedProgram, fetches: &[NodeId]) -> Vec<NodeId> {
    let aliases = Aliases::of(typed);
    let live = live(typed, fetches, &aliases, &HashMap::new());
    let mut constant = vec![false; typed.len()];
    let mut left = FOLDED;
    for (i, n) in typed.nodes.iter().enumerate() {
        constant[i] = match n.kind {
            TypedKind::Feed(_) | TypedKind::Extent { .. } | TypedKind::Generate { .. } | TypedKind::Blocks { .. } => {
                false
            }
            TypedKind::Constant(_) => true,
            // What is only like a feed may have its dims.
            _ if typed.shape_of(i as NodeId).iter().any(|d| matches!(d, SymDim::Sym(_))) => false,
            _ if !n.inputs().all(|a| constant[a as usize]) => false,
            _ if !live[i] || !is_computed(typed, i as NodeId) => true,
            _ => {
                let elements = n.inputs().chain([i as NodeId]).map(|n| elements(typed, n)).max();
                let fits = elements.and_then(|n| left.checked_sub(n));
                left = fits.unwrap_or(left);
                fits.is_some()
            }
        };
    }
    let mut wanted = vec![false; typed.len()];
    let source = |n: NodeId| aliases.source(n) as usize;
    fetches.iter().for_each(|n| wanted[source(*n)] = constant[source(*n)]);
    for (i, n) in typed.nodes.iter().enumerate() {
        if live[i] && !constant[i] {
            n.inputs().map(source).for_each(|a| wanted[a] |= constant[a]);
        }
    }
    let computed = |n: &NodeId| is_computed(typed, *n);
    (0..typed.len() as u32).filter(|n| wanted[*n as usize] && aliases.is_own(*n)).filter(computed).collect()
}
