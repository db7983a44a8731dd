//! The units of a job as parts that threads take one after the other.
//!
//! Guarantees: of several steps that refuse their data, the first in program order is the failure, for any number of threads;
//! a job that is told to stop does so between units. Does not: compute; `worker` does.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::job::{Job, StepFailure, store_fence};
use super::worker::{Worker, with_worker};
use crate::base::error::Result;
use crate::plan::tuning::{MOST_SWEPT, PARTS_PER_THREAD, SWEPT_FROM, SWEPT_PART};
use crate::runtime::thread_pool::{share, sweep};

/// The step of a worker that was told to stop: no step of a kernel.
const STOPPED: u32 = u32::MAX;

// SAFETY: the threads of a job write disjoint parts of the outputs and only read the rest; of an operand in the memory of a
// result each reads the part that it writes.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    /// Runs all units on up to `threads` threads. `swept` is the bytes of the operands if the job only reduces them, else 0.
    pub(super) fn run(self, threads: usize, swept: usize) -> Result<Result<(), StepFailure>> {
        let (units, threads) = (self.launch.strategy.units, threads.max(1));
        let run = |from: usize, to: usize| {
            self.run_units(from, to);
            if self.stream {
                store_fence();
            }
        };
        if units <= 1 || threads <= 1 && swept < SWEPT_FROM {
            run(0, units);
        } else {
            // More parts than threads: a thread that starts late takes fewer.
            let rounds = (swept / (threads * SWEPT_PART)).clamp(PARTS_PER_THREAD, MOST_SWEPT);
            let size = units.div_ceil(threads * rounds);
            let part = |i: usize| run(i * size, units.min((i + 1) * size));
            let share = if swept < SWEPT_FROM { share } else { sweep };
            share(units.div_ceil(size), threads, &part);
        }
        if self.stopped.into_inner()
            && let Some(stop) = self.launch.stop
        {
            stop.check()?;
        }
        let fault = self.fault.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(fault.map_or(Ok(()), |(_, fault)| Err(fault)))
    }

    /// Runs the units from `from` to before `to`.
    fn run_units(&self, from: usize, to: usize) {
        // SAFETY: `super::run` has proved the operands' bounds for the whole domain, and the results' sizes.
        let some = |worker: &mut Worker<'_>, from: usize, to: usize| unsafe { worker.units(from, to) };
        let all = |worker: &mut Worker<'_>| match self.launch.stop {
            None => some(worker, from, to),
            Some(stop) => {
                let size = self.launch.strategy.units_between_checks;
                (from..to).step_by(size).try_for_each(|at| {
                    if stop.check().is_err() {
                        self.stopped.store(true, Ordering::Relaxed);
                        return Err(STOPPED);
                    }
                    some(worker, at, to.min(at + size))
                })
            }
        };
        let failed = |worker: &mut Worker<'_>| {
            all(worker).map_err(|step| StepFailure { step, refusal: worker.refusal.take() }).err()
        };
        if let Some(fault) = with_worker(self, failed) {
            self.failed(from, fault);
        }
    }

    /// Remembers the failure of the units from `from` on, unless there is one before it.
    #[cold]
    fn failed(&self, from: usize, fault: StepFailure) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = first.as_ref().is_none_or(|(at, f)| (fault.step, from) < (f.step, *at));
        if fault.step != STOPPED && is_first {
            *first = Some((from, fault));
        }
    }
}
