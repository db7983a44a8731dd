//! What an executor saves: passes that can be left out, and how large a tile is.
//!
//! Guarantees: no choice made here changes a bit of a result (but under [`Rounding::Relaxed`], which says so). Does not:
//! do any of it; `fuse`, `kernel`, `schedule` and the executor ask.
//!
//! [`Rounding::Relaxed`]: crate::Rounding::Relaxed

use crate::base::limits::{Limit, Limits};
use crate::plan::tuning::TILE;

/// A saving that an executor can be told to do without: results stay the same in every bit, and come later. For tests,
/// and to find out what a difference comes from. [`ExecutorBuilder::without`](crate::ExecutorBuilder::without) has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Nodes over one domain are one kernel. Without: a kernel a node.
    Fusion,
    /// Equal steps of a kernel are one step. Without: each is computed.
    Merging,
    /// What constants and scalars alone decide is computed when the plan is made. Without: at each run.
    Folding,
    /// A value between the stages of a kernel takes the place of one that is no longer needed. Without: each has its own.
    Reuse,
}

impl Pass {
    /// All passes.
    pub const ALL: [Pass; 4] = [Pass::Fusion, Pass::Merging, Pass::Folding, Pass::Reuse];
}

/// The choices of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passes {
    pub(crate) left_out: [bool; Pass::ALL.len()],
    /// Elements of a tile, where tiles don't decide in which order something is combined.
    pub(crate) tile: usize,
    /// Nodes of a kernel at most.
    pub(crate) kernel_ops: usize,
    /// Steps of a compiled function at most.
    pub(crate) function_steps: usize,
}

impl Default for Passes {
    fn default() -> Passes {
        let (kernel_ops, function_steps) = (Limits::new().at(Limit::KernelOps), Limits::new().at(Limit::FunctionSteps));
        Passes { left_out: [false; Pass::ALL.len()], tile: TILE, kernel_ops, function_steps }
    }
}

impl Passes {
    /// Whether it is done.
    pub(crate) fn has(self, pass: Pass) -> bool {
        !self.left_out[pass as usize]
    }

    /// All but this one.
    pub(crate) fn without(mut self, pass: Pass) -> Passes {
        self.left_out[pass as usize] = true;
        self
    }
}
