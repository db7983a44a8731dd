//! The choices of an executor: passes that can be left out, the length of tiles, the sizes of kernels.
//!
//! Guarantees: no choice made here changes a bit of a result (but under [`Rounding::Relaxed`], which says so). Does not:
//! apply them; `fuse`, `kernel`, `schedule` and the executor do.
//!
//! [`Rounding::Relaxed`]: crate::Rounding::Relaxed

use crate::base::limits::{Limit, Limits};
use crate::plan::tuning::{ROW_GROUP_BYTES, TILE};

/// An optimization that an executor can be told to leave out: results stay the same in every bit, and come later. For tests,
/// and to find what a difference comes from. [`ExecutorBuilder::without`](crate::ExecutorBuilder::without) has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pass {
    /// Nodes over one domain become one kernel. Without: each node is a kernel.
    Fusion,
    /// Equal steps of a kernel become one step. Without: each is computed.
    Merging,
    /// Values of constants and scalars alone are computed when the plan is made. Without: in each run.
    Folding,
    /// Values between the stages of a kernel share a tile if they are not alive together. Without: each has a tile of its own.
    Reuse,
    /// Kernels over the same leading rows run together, for one block of rows after the other. Without: each runs over all of its
    /// domain before the next one begins.
    Rows,
    /// A value that costs less to compute than to write and read is computed in each kernel that needs it. Without, and without
    /// `Fusion`: one kernel computes and stores it.
    Recomputing,
}

impl Pass {
    /// All passes.
    pub const ALL: [Pass; 6] = [Pass::Fusion, Pass::Merging, Pass::Folding, Pass::Reuse, Pass::Rows, Pass::Recomputing];
}

/// The choices of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passes {
    pub(crate) left_out: [bool; Pass::ALL.len()],
    /// Elements of a tile, where the length of tiles does not decide in which order a reduction combines elements.
    pub(crate) tile: usize,
    /// Bytes of a block of rows that passes through several kernels.
    pub(crate) row_block: usize,
    /// Nodes of a kernel at most.
    pub(crate) kernel_ops: usize,
    /// Steps of a compiled function at most.
    pub(crate) function_steps: usize,
}

impl Default for Passes {
    fn default() -> Passes {
        let (kernel_ops, function_steps) = (Limits::new().at(Limit::KernelOps), Limits::new().at(Limit::FunctionSteps));
        Passes {
            left_out: [false; Pass::ALL.len()],
            tile: TILE,
            row_block: ROW_GROUP_BYTES,
            kernel_ops,
            function_steps,
        }
    }
}

impl Passes {
    /// Whether a pass is done.
    pub(crate) fn has(self, pass: Pass) -> bool {
        !self.left_out[pass as usize]
    }

    /// These without one more pass.
    pub(crate) fn without(mut self, pass: Pass) -> Passes {
        self.left_out[pass as usize] = true;
        self
    }
}
