//! Whose elements a node has: nodes that are others' values, and what views are views of.
//!
//! Guarantees: one step for each node, however long chains of views are. Does not: know which nodes are needed.

use crate::base::dtype::DType;
use crate::base::view::View;
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};

/// For each node, other nodes that have its elements.
pub(super) struct Aliases {
    /// The node whose value it has: of a cast to the same dtype, and of a view that changes nothing, that of the operand.
    value: Vec<NodeId>,
    /// The node that a loop reads for it: of an expanded value, the value, which the loop broadcasts itself.
    read: Vec<NodeId>,
    /// The node that is no view and has its elements, maybe under other dims.
    source: Vec<NodeId>,
    /// What a scan reads for it: of an integer that was made wider, the value before, which the scan widens itself.
    scanned: Vec<NodeId>,
}

impl Aliases {
    pub(super) fn of(typed: &TypedProgram) -> Aliases {
        let list = || Vec::with_capacity(typed.len());
        let mut all = Aliases { value: list(), read: list(), source: list(), scanned: list() };
        for (i, n) in typed.nodes.iter().enumerate() {
            let i = i as NodeId;
            let (value, read, source) = match &n.kind {
                TypedKind::Cast { from, .. } if typed.nodes[*from as usize].dtype == n.dtype => all.at(*from),
                TypedKind::View { from, view } => {
                    let dims = typed.shape_of(*from);
                    let same = typed.nodes[*from as usize].shape == n.shape;
                    let (value, read, source) = all.at(*from);
                    match view {
                        Some(view) if view.is_identity(dims, same) => (value, read, source),
                        Some(View::Expand(_)) => (i, read, source),
                        _ => (i, i, source),
                    }
                }
                _ => (i, i, i),
            };
            all.scanned.push(match n.kind {
                TypedKind::Cast { from, .. } if widens(typed.nodes[from as usize].dtype, n.dtype) => all.value(from),
                _ => value,
            });
            all.value.push(value);
            all.read.push(read);
            all.source.push(source);
        }
        all
    }

    fn at(&self, node: NodeId) -> (NodeId, NodeId, NodeId) {
        (self.value(node), self.read[node as usize], self.source(node))
    }

    /// The node whose value a node has.
    pub(super) fn value(&self, node: NodeId) -> NodeId {
        self.value[node as usize]
    }

    /// Whether a node has a value of its own.
    pub(super) fn is_own(&self, node: NodeId) -> bool {
        self.value(node) == node
    }

    /// The node whose elements a node has, if under other dims.
    pub(super) fn source(&self, node: NodeId) -> NodeId {
        self.source[node as usize]
    }

    /// The node that `user` reads for its operand. A reduction, a view or an op on lines needs the operand's own shape.
    pub(super) fn operand(&self, user: &TypedKind, operand: NodeId) -> NodeId {
        match user {
            TypedKind::Line { op, .. } if op.scans_integers() => self.scanned[operand as usize],
            TypedKind::Reduce { .. }
            | TypedKind::Line { .. }
            | TypedKind::View { .. }
            | TypedKind::Indexed { .. }
            | TypedKind::Blocks { .. } => self.value(operand),
            _ => self.read[operand as usize],
        }
    }
}

/// Whether a cast makes integers wider, so that it loses nothing.
fn widens(from: DType, to: DType) -> bool {
    from.is_integral() && to.is_integral() && to.holds(from)
}
