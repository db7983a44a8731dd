//! Launches that are one call of one segment over operands in place: no scratch, no rows, no tiles.
//!
//! Guarantees: as [`super::run`]'s, under the bounds it has proved. Does not: check what can stop a run.

use super::job::{Launch, Out, begins_cache_line, lead, store_fence};
use crate::backend::abi::{AHEAD, STREAM, row_words, table_size, word};
use crate::plan::geometry::Access;
use crate::plan::schedule::Slot;
use crate::plan::strategy::CALL_SLOTS;
use crate::plan::tuning::{LEAST_PART, PARTS_PER_THREAD, TILE};
use crate::runtime::thread_pool::share;

/// A launch and its results, for several threads.
struct Shared<'a> {
    launch: &'a Launch<'a>,
    outputs: &'a [Out],
    stream: bool,
}

// SAFETY: the threads write disjoint parts of the outputs and only read the rest; of an operand in a result's memory each
// reads the part that it writes.
unsafe impl Sync for Shared<'_> {}

/// Runs a launch whose walk is a call, and whose bounds and results' sizes have been proved, on up to `threads` threads.
pub(super) fn run(launch: &Launch<'_>, outputs: &[Out], stream: bool, threads: usize) {
    let (inner, job) = (launch.geometry.inner, Shared { launch, outputs, stream });
    if threads <= 1 {
        return job.run(0, inner);
    }
    let steps = launch.schedule.segments[0].steps.len().max(1);
    let rounds = (inner.saturating_mul(steps) / (threads * LEAST_PART)).clamp(1, PARTS_PER_THREAD);
    let size = inner.div_ceil(threads * rounds).next_multiple_of(TILE);
    share(inner.div_ceil(size), threads, &|i| {
        let job = &job;
        job.run(i * size, size.min(inner - i * size));
    });
}

impl Shared<'_> {
    /// Computes `n` elements from `at` on.
    fn run(&self, at: usize, n: usize) {
        let lead = lead(self.outputs, self.launch.strategy, at, n);
        if lead > 0 {
            self.call(at, lead);
        }
        self.call(at + lead, n - lead);
    }

    /// Calls the segment for `n` elements from `at` on.
    fn call(&self, at: usize, n: usize) {
        let (launch, mut stream) = (self.launch, self.stream);
        let mut table = [std::ptr::null_mut::<u8>(); table_size(CALL_SLOTS)];
        table[row_words(launch.schedule.slots.len())[1]] = word(1);
        for (to, slot) in table.iter_mut().zip(&launch.schedule.slots) {
            *to = match *slot {
                Slot::Input(i) => {
                    let b = &launch.inputs[i as usize];
                    let moves = launch.geometry.operands[i as usize].access == Access::Contiguous;
                    let first = b.offset + if moves { at } else { 0 };
                    b.start.wrapping_add(first * b.dtype.size()).cast_mut()
                }
                Slot::Const(c) => (&raw const launch.consts[c as usize]).cast_mut().cast(),
                Slot::Output(o) => {
                    let out = self.outputs[o as usize];
                    let to = out.start.wrapping_add(at * out.dtype.size());
                    stream &= begins_cache_line(to);
                    to
                }
                // A plain schedule has no others.
                Slot::Tile(_) | Slot::Single(_) => return,
            };
        }
        // SAFETY: every slot of the schedule points at its operand, constant or result, whose bounds have been
        // proved for the whole inner loop, of which `at..at + n` is a part; the length is one that the segment takes: any,
        // or a multiple of its width, as the inner loop and the tile are; streamed results begin at cache lines.
        unsafe { (launch.segments[0].run)(table.as_mut_ptr(), if stream { n | STREAM | AHEAD } else { n }) };
        if stream {
            store_fence();
        }
    }
}
