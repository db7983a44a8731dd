//! Kernels that run together over one block of leading rows after the other.
//!
//! Does not: find them; `rows` does. Say how many rows a block has; `plan::blocking` does.

use std::ops::Range;

use crate::base::dtype::DType;
use crate::graph::typed::NodeId;

/// Kernels whose domains have the same leading dims, of which none reduces along these or reads other rows than its own: a block of
/// rows can pass through all of them before the next one begins.
#[derive(Clone, Debug)]
pub(crate) struct RowGroup {
    /// The kernels, by their numbers in the plan.
    pub(crate) kernels: Range<usize>,
    /// How many leading dims they share.
    pub(crate) lead: usize,
    /// What they make, and views of that, in the order in which it is made.
    pub(crate) inner: Vec<Inner>,
    /// For each kernel, where each of its operands comes from.
    pub(crate) inputs: Vec<Vec<Source>>,
}

/// Where a kernel of a group has an operand from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A buffer that is complete before the group runs.
    Given(u32),
    /// By its number, something that is made in the group.
    Inner(usize),
}

/// A buffer that is made in a group.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    pub(crate) buffer: u32,
    pub(crate) from: MadeBy,
    /// The last kernel that reads it, counted in the group, if one does.
    pub(crate) last: Option<usize>,
    /// Whether something behind the group reads it.
    pub(crate) leaves: bool,
}

impl Inner {
    /// Whether it is a view that something behind the group reads.
    pub(crate) fn is_later_view(&self) -> bool {
        self.leaves && matches!(self.from, MadeBy::View(..))
    }

    /// Whether its kernel writes it where the result of the whole group is: nothing in the group reads it.
    pub(crate) fn is_written_through(&self) -> bool {
        self.leaves && self.last.is_none() && matches!(self.from, MadeBy::Kernel { fold: false, .. })
    }
}

/// What makes such a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MadeBy {
    /// A kernel: a result of this dtype, whose elements have so many bytes until it is rounded to it; and whether it is that of a
    /// reduction.
    Kernel { dtype: DType, size: usize, fold: bool },
    /// The view of this typed node, of an inner buffer.
    View(usize, NodeId),
}
