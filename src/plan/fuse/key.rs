//! What nodes are grouped by.
//!
//! Does not: find it; `fuse` and `joined` do.

use crate::graph::typed::NodeId;

/// How many reductions (and views of fewer dims) come before a node, and its domain: nodes with the same key are one kernel.
pub(super) type Key = (u32, u32);

/// Where a reduction that is not part of the kernel of its operand is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// In the kernel of this reduction, which comes before it.
    With(NodeId),
    /// In the kernel of the nodes with this key.
    Sums(Key),
}
