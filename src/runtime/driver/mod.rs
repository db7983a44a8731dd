//! Runs a scheduled kernel over its domain: rows, tiles, stages, and what is reduced of each tile.
//!
//! Guarantees: before anything is touched, every address that the run can form is proved to lie inside its buffer
//! ([`Buffer::check`]); compiled segments are called with whole multiples of their width unless they take any number,
//! so the elements left over go through padded copies; operands that are not aligned are copied first; results do not
//! depend on tiles, rows or threads. Does not: allocate results, or put the partial results of a reduction together.

#![allow(unsafe_code, reason = "kernels read and write raw runs of elements; each block has its proof")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::thread_pool::{share, sweep};
use crate::backend::abi::{AHEAD, STREAM, WIDTH, row_words, table_size, word};
use crate::base::error::{Error, Result};
use crate::base::host::FloatMode;
use crate::kernels::reduce::of_nothing;
use crate::plan::geometry::{Access, Fold, Operand};
use crate::plan::schedule::Slot;
use crate::plan::tuning::{
    FOLDED_ROWS, LEAST_PART, MOST_SWEPT, PARTS_PER_THREAD, PATTERN_STEP, ROW_BLOCK, SHARED_BYTES, SHARED_FROM,
    SHARED_MOST, SWEPT_FROM, SWEPT_PART, TILE, streams,
};
use job::{Buffer, FoldOut, Folded, Job, Launch, Out, Output, StepFailure, begins_line, is_across, is_copied};

pub(crate) mod gather;
pub(crate) mod job;
mod partition;
mod scratch;
mod worker;
use worker::{Worker, with_worker};

/// Slots of a launch that is called without scratch.
const MOST_SLOTS: usize = 32;

impl Launch<'_> {
    /// Whether it is one call of one segment.
    fn is_simple(&self) -> bool {
        let (s, g) = (self.schedule, self.geometry);
        let whole = self.any_length || g.run.is_multiple_of(WIDTH);
        s.plain && whole && s.slots.len() <= MOST_SLOTS && g.in_place() && self.segments.len() == 1
    }

    /// Runs a simple launch, whose bounds and results' sizes have been proved, on up to `threads` threads.
    fn call_shared(&self, outputs: &[Out], stream: bool, threads: usize) {
        let run = self.geometry.run;
        if threads <= 1 {
            return self.call(outputs, stream, 0, run);
        }
        let steps = self.schedule.segments[0].steps.len().max(1);
        let rounds = (run.saturating_mul(steps) / (threads * LEAST_PART)).clamp(1, PARTS_PER_THREAD);
        let size = run.div_ceil(threads * rounds).next_multiple_of(TILE);
        let job = Shared { launch: self, outputs, stream };
        share(run.div_ceil(size), threads, &|i| {
            let job = &job;
            job.launch.call(job.outputs, job.stream, i * size, size.min(run - i * size));
        });
    }

    /// Calls the segment of a simple launch for `n` elements from `at` on.
    fn call(&self, outputs: &[Out], mut stream: bool, at: usize, n: usize) {
        let mut table = [std::ptr::null_mut::<u8>(); table_size(MOST_SLOTS)];
        table[row_words(self.schedule.slots.len())[1]] = word(1);
        for (to, slot) in table.iter_mut().zip(&self.schedule.slots) {
            *to = match *slot {
                Slot::Input(i) => {
                    let b = &self.inputs[i as usize];
                    let moves = self.geometry.operands[i as usize].access == Access::Contiguous;
                    let first = b.offset + if moves { at } else { 0 };
                    b.bytes.as_ptr().wrapping_add(first * b.dtype.size()).cast_mut()
                }
                Slot::Const(c) => (&raw const self.consts[c as usize]).cast_mut().cast(),
                Slot::Output(o) => {
                    let out = outputs[o as usize];
                    let to = out.start.wrapping_add(at * out.dtype.size());
                    stream &= begins_line(to);
                    to
                }
                // A plain schedule has no others.
                Slot::Tile(_) | Slot::Single(_) => return,
            };
        }
        // SAFETY: every slot of the schedule points at its operand, constant or result, whose bounds have been
        // proved for the whole run, of which `at..at + n` is a part; the length is one that the segment takes: any,
        // or a multiple of its width, as the run and the tile are; streamed results begin at cache lines.
        unsafe { (self.segments[0].run)(table.as_mut_ptr(), if stream { n | STREAM | AHEAD } else { n }) };
        if stream {
            streamed();
        }
    }
}

/// What a thread has streamed comes before what it writes from now on, so that who waits for it sees it. Once a part of the
/// work: the caches wait for memory here.
fn streamed() {
    // SAFETY: every processor of this architecture has the instruction, and it touches no memory of its own.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// A simple launch and its results, for several threads.
struct Shared<'a> {
    launch: &'a Launch<'a>,
    outputs: &'a [Out],
    stream: bool,
}

// SAFETY: the threads write disjoint parts of the outputs and only read the rest.
unsafe impl Sync for Shared<'_> {}

// SAFETY: the threads of a job write disjoint parts of the outputs and only read the rest.
unsafe impl Sync for Job<'_> {}

/// Results and reductions that a job holds without allocating.
const FEW: usize = 8;

/// Runs a launch on up to `threads` threads. The outer error is a wrong call, the inner one faulty data.
pub(crate) fn run(
    launch: &Launch<'_>,
    outputs: &mut [Output<'_>],
    folds: &mut [Folded<'_>],
    threads: usize,
) -> Result<Result<(), StepFailure>> {
    let g = launch.geometry;
    let total = g.row_count() * g.run;
    let sizes = outputs.iter().all(|o| o.bytes.len() == total * o.dtype.size())
        && folds.iter().all(|o| o.bytes.len() == launch.partials() * o.dtype.size())
        && folds.len() == launch.schedule.folds.len();
    if launch.inputs.len() != g.operands.len() || !sizes {
        return Err(Error::Internal("a launch with wrong operands or results".into()));
    }
    if total == 0 {
        return Ok(Ok(()));
    }
    let mut aligned = true;
    for (b, o) in launch.inputs.iter().zip(&g.operands) {
        b.check(o.reach)?;
        aligned &= b.is_aligned();
    }
    if !aligned {
        return run_aligned(launch, outputs, folds, threads);
    }
    let _standard = FloatMode::standard();
    let read = |b: &Buffer<'_>| b.bytes.len().min(total * b.dtype.size());
    let written = outputs.iter().map(|o| o.bytes.len()).sum::<usize>();
    let moved = || written + launch.inputs.iter().map(read).sum::<usize>();
    let stream = launch.any_length && streams(written, moved(), threads);
    let outs: smallvec::SmallVec<[Out; FEW]> =
        outputs.iter_mut().map(|o| Out { start: o.bytes.as_mut_ptr(), dtype: o.dtype }).collect();
    if launch.stop.is_none() && launch.is_simple() {
        launch.call_shared(&outs, stream, threads);
        return Ok(Ok(()));
    }
    let folds: smallvec::SmallVec<[FoldOut; FEW]> = folds
        .iter_mut()
        .map(|o| FoldOut {
            start: o.bytes.as_mut_ptr(),
            dtype: o.dtype,
            kernels: o.kernels,
            nothing: of_nothing(o.kernels.whole),
        })
        .collect();
    let job =
        Job { launch, outputs: &outs, folds: &folds, stream, fault: Mutex::default(), stopped: AtomicBool::new(false) };
    let units = job.units();
    let run = |from: usize, to: usize| {
        job.run_units(from, to);
        if stream {
            streamed();
        }
    };
    let (swept, threads) = (if outputs.is_empty() { moved() } else { 0 }, threads.max(1));
    if units <= 1 || threads <= 1 && swept < SWEPT_FROM {
        run(0, units);
    } else {
        // More parts than threads: one that starts late takes fewer.
        let rounds = (swept / (threads * SWEPT_PART)).clamp(PARTS_PER_THREAD, MOST_SWEPT);
        let size = units.div_ceil(threads * rounds);
        let part = |i: usize| run(i * size, units.min((i + 1) * size));
        let share = if swept < SWEPT_FROM { share } else { sweep };
        share(units.div_ceil(size), threads, &part);
    }
    if job.stopped.into_inner()
        && let Some(stop) = launch.stop
    {
        stop.check()?;
    }
    let fault = job.fault.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(fault.map_or(Ok(()), |(_, fault)| Err(fault)))
}

/// As [`run`], for operands of which some are not aligned: kernels read copies of these.
#[cold]
fn run_aligned(
    launch: &Launch<'_>,
    outputs: &mut [Output<'_>],
    folds: &mut [Folded<'_>],
    threads: usize,
) -> Result<Result<(), StepFailure>> {
    let (mut copies, mut inputs) = (Vec::new(), launch.inputs.to_vec());
    for (b, o) in launch.inputs.iter().zip(&launch.geometry.operands) {
        copies.push(if b.is_aligned() { None } else { Some(b.copied(o.reach)?) });
    }
    for (b, copy) in inputs.iter_mut().zip(&copies) {
        if let Some((words, offset)) = copy {
            *b = Buffer { bytes: bytemuck::cast_slice(words), dtype: b.dtype, offset: *offset };
        }
    }
    run(&Launch { inputs: &inputs, ..*launch }, outputs, folds, threads)
}

impl Job<'_> {
    /// Parts of the work that can be done independently: pieces of rows, or of a group of rows that become one.
    fn units(&self) -> usize {
        let (g, pieces) = (self.launch.geometry, self.launch.pieces());
        match g.fold {
            Some(Fold::Columns(n)) => g.row_count() / n * n.div_ceil(FOLDED_ROWS) * pieces,
            Some(Fold::Stacked { .. }) => self.launch.stack().map_or(0, |s| s.units(g.run)),
            _ if self.lies_across() => {
                let (last, outer) = g.rows.split_last().map_or((1, 1), |(n, o)| (*n, o.iter().product()));
                outer * last.div_ceil(ROW_BLOCK) * pieces
            }
            _ => g.row_count() * pieces,
        }
    }

    /// Elements of a row that are computed of many rows before those behind them.
    fn columns(&self) -> usize {
        let g = self.launch.geometry;
        let (mut element, mut shared) = (self.outputs.iter().map(|o| o.dtype.size()).sum::<usize>(), 0);
        for (o, b) in g.operands.iter().zip(self.launch.inputs).filter(|(o, _)| o.access == Access::Contiguous) {
            *if o.rows.last() == Some(&0) { &mut shared } else { &mut element } += b.dtype.size();
        }
        if shared * g.run < SHARED_FROM || element * g.run * g.row_count() > SHARED_MOST {
            return g.run;
        }
        (SHARED_BYTES / shared / PATTERN_STEP).max(1) * PATTERN_STEP
    }

    fn lies_across(&self) -> bool {
        self.launch.geometry.operands.iter().any(is_across)
    }

    /// Runs the units from `from` to before `to`.
    fn run_units(&self, from: usize, to: usize) {
        // SAFETY: `run` has proved the operands' bounds for the whole domain, and the results' sizes.
        let piece = |worker: &mut Worker<'_>, from: usize, to: usize| unsafe {
            match self.launch.geometry.fold {
                Some(Fold::Columns(n)) => (from..to).try_for_each(|unit| worker.columns(unit, n)),
                Some(Fold::Stacked { .. }) => worker.stacks(from, to),
                _ if self.lies_across() => (from..to).try_for_each(|unit| worker.row_block(unit)),
                _ => worker.tiles(from, to),
            }
        };
        let made = |worker: &mut Worker<'_>| match self.launch.stop {
            None => piece(worker, from, to),
            Some(stop) => {
                let size = self.launch.units_between_checks();
                (from..to).step_by(size).try_for_each(|at| {
                    if stop.check().is_err() {
                        self.stopped.store(true, Ordering::Relaxed);
                        return Err(u32::MAX);
                    }
                    piece(worker, at, to.min(at + size))
                })
            }
        };
        let faulty =
            with_worker(self, |worker| made(worker).map_err(|step| StepFailure { step, said: worker.said.take() }));
        if let Err(fault) = faulty {
            self.refused(from, fault);
        }
    }

    /// Remembers the fault of the units from `from` on, unless there is one before it.
    #[cold]
    fn refused(&self, from: usize, fault: StepFailure) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        // A thread that was told to stop has none.
        if fault.step < u32::MAX && first.as_ref().is_none_or(|(at, f)| (fault.step, from) < (f.step, *at)) {
            *first = Some((from, fault));
        }
    }

    /// Whether the run must be cut into tiles: a single stage over operands in place needs none, as long as nothing of
    /// it lies in a tile.
    fn is_tiled(&self) -> bool {
        let copied = |o: &Operand| is_copied(o) || matches!(o.access, Access::Periodic(_));
        let copies = self.launch.geometry.operands.iter().any(copied);
        let s = self.launch.schedule;
        copies || s.body.len() != 1 || s.tiles > 0 || !s.folds.is_empty()
    }
}
