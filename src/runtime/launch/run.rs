//! What a run has besides its plan: feeds, threads, the pool, what can stop it, and how much memory it may take.
//!
//! Does not: run anything.

use std::cell::Cell;

use crate::base::cancel::Stop;
use crate::base::error::{Error, Result};
use crate::base::generator::Part;
use crate::tensor::{Pool, Storage, TensorRef};

/// What a run has besides a plan.
pub(crate) struct Run<'a> {
    /// The feeds, in program order.
    pub(crate) feeds: &'a [TensorRef<'a>],
    /// The extents of the dynamic dims.
    pub(crate) dyn_dims: &'a [usize],
    pub(crate) threads: usize,
    /// Where the results' memory comes from.
    pub(crate) pool: Option<&'a Pool>,
    /// What can stop the run.
    pub(crate) stop: Option<&'a Stop<'a>>,
    pub(crate) memory: MemoryBudget,
    /// The rows that generators count from.
    pub(crate) part: Option<&'a Part>,
}

/// The bytes that a run may hold, and those that it holds: results, buffers between kernels, partial results of reductions.
pub(crate) struct MemoryBudget {
    most: usize,
    pub(super) now: Cell<usize>,
}

impl MemoryBudget {
    /// At most so many bytes at once.
    pub(crate) fn limited(most: usize) -> MemoryBudget {
        MemoryBudget { most, now: Cell::new(0) }
    }

    /// The same limit for a run that holds nothing yet.
    pub(super) fn anew(&self) -> MemoryBudget {
        MemoryBudget::limited(self.most)
    }

    /// Whether so many bytes more can be taken.
    pub(super) fn has(&self, bytes: usize) -> bool {
        self.now.get().saturating_add(bytes) <= self.most
    }

    pub(super) fn take(&self, bytes: usize) -> Result<()> {
        let now = self.now.get().saturating_add(bytes);
        if now > self.most {
            let (max, got) = (self.most as u64, now as u64);
            return Err(Error::Limit { which: "the bytes of a run's tensors", max, got });
        }
        self.now.set(now);
        Ok(())
    }

    pub(super) fn give(&self, bytes: usize) {
        self.now.set(self.now.get().saturating_sub(bytes));
    }
}

impl Run<'_> {
    /// A run without feeds and limits, on this thread.
    pub(crate) fn alone() -> Run<'static> {
        let memory = MemoryBudget::limited(usize::MAX);
        Run { feeds: &[], dyn_dims: &[], threads: 1, pool: None, stop: None, memory, part: None }
    }

    /// Does work that takes so many bytes of its own.
    pub(super) fn within(&self, bytes: usize, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.memory.take(bytes)?;
        let done = work();
        self.memory.give(bytes);
        done
    }

    pub(super) fn storage(&self, bytes: usize) -> Result<Storage> {
        self.memory.take(bytes)?;
        self.pool.map_or_else(|| Storage::zeroed(bytes), |pool| Storage::pooled(bytes, pool))
    }
}

/// As many operands and results as most kernels have: lists of so many do not allocate.
pub(super) const FEW: usize = 4;
