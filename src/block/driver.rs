//! Runs a scheduled kernel over its domain: rows, tiles, stages, and what is reduced of each tile.
//!
//! Guarantees: before anything is touched, every address that the run can form is proved to lie inside its buffer
//! ([`Buffer::check`]); compiled segments are called with whole multiples of their width unless they take any number,
//! so the elements left over go through padded copies; results do not depend on tiles, rows or threads. Does not:
//! allocate results, or put the partial results of a reduction together.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::team::share;
use super::{BlockFn, FloatMode};
use crate::cancel::Stop;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::geometry::{Access, Fold, Geometry, Operand};
use crate::scalar::Bits;
use crate::schedule::{Schedule, Slot, Stage, TILE};

mod worker;
use worker::{Worker, with_worker};

/// A compiled segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFn {
    /// Reads and writes `n` elements at the pointers of the table.
    pub(crate) run: unsafe extern "C" fn(table: *const *mut u8, n: usize),
    /// Whether `n` can be any number from 1 up; else it is a multiple of [`WIDTH`].
    pub(crate) any_length: bool,
}

/// Elements that every compiled segment's width divides.
pub(crate) const WIDTH: usize = 16;

/// Rows that are walked together, tile by tile, where an operand lies across: the elements of a cache line then serve
/// as many rows as it has.
const ROW_BLOCK: usize = 16;

/// Rows that are combined into one before their results are combined.
pub(crate) const ROWS: usize = 64;

/// An operand's memory: bytes, and where its first element is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) dtype: DType,
    /// Index of the first element.
    pub(crate) offset: usize,
}

impl Buffer<'_> {
    /// Proves that walking so far before and behind the first element stays inside the bytes.
    pub(crate) fn check(&self, reach: (i128, i128)) -> Result<()> {
        let first = self.offset as i128;
        let elements = (self.bytes.len() / self.dtype.size()) as i128;
        let aligned = self.bytes.as_ptr().addr().is_multiple_of(self.dtype.size().min(8));
        if first + reach.0 >= 0 && first + reach.1 < elements && aligned {
            return Ok(());
        }
        Err(Error::Internal(format!("an operand of {} would be read outside its buffer", self.dtype)))
    }
}

/// Everything a run needs.
pub(crate) struct Launch<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) segments: &'a [SegmentFn],
    /// Whether the segments take any number of elements.
    pub(crate) any_length: bool,
    pub(crate) geometry: &'a Geometry,
    pub(crate) consts: &'a [Bits],
    pub(crate) inputs: &'a [Buffer<'a>],
    /// What can stop the run; asked between pieces of the work.
    pub(crate) stop: Option<&'a Stop<'a>>,
}

impl Launch<'_> {
    /// Elements of a tile: joined short rows are never cut.
    fn tile(&self) -> usize {
        match self.geometry.fold {
            Some(Fold::Rows(n)) if n < TILE => TILE / n * n,
            _ => TILE,
        }
    }

    /// Tiles of a run.
    fn tiles(&self) -> usize {
        self.geometry.run.div_ceil(self.tile())
    }

    /// Partial results of each reduction: one a tile of a run, or one run for so many rows.
    pub(crate) fn partials(&self) -> usize {
        let g = self.geometry;
        match g.fold {
            None => 0,
            Some(Fold::Rows(n)) if n < g.run => g.run / n,
            Some(Fold::Rows(_)) => g.row_count() * self.tiles(),
            Some(Fold::Columns(n)) => g.row_count() / n * n.div_ceil(ROWS) * g.run,
        }
    }
}

/// Steps of tiles that are computed between two looks at what can stop a run: some milliseconds of the slowest ops.
const STEPS_BETWEEN_CHECKS: usize = 64;

impl Launch<'_> {
    /// Units of the work between two looks at what can stop it. Where a run is cut does not change results: it is at
    /// the tiles' ends.
    fn units_between_checks(&self) -> usize {
        let steps = |s: &Stage| match s {
            Stage::Block(_) => 1,
            Stage::Segment(i) => self.schedule.segments[*i as usize].steps.len(),
        };
        STEPS_BETWEEN_CHECKS / self.schedule.body.iter().map(steps).sum::<usize>().clamp(1, STEPS_BETWEEN_CHECKS)
    }
}

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
    fn call_shared(&self, outputs: &[Out], threads: usize) {
        let run = self.geometry.run;
        if threads <= 1 {
            return self.call(outputs, 0, run);
        }
        let size = run.div_ceil(threads * PARTS_PER_THREAD).next_multiple_of(TILE);
        let job = Shared { launch: self, outputs };
        share(run.div_ceil(size), threads, &|i| {
            let job = &job;
            job.launch.call(job.outputs, i * size, size.min(run - i * size));
        });
    }

    /// Calls the segment of a simple launch for `n` elements from `at` on.
    fn call(&self, outputs: &[Out], at: usize, n: usize) {
        let mut table = [std::ptr::null_mut::<u8>(); MOST_SLOTS];
        for (to, slot) in table.iter_mut().zip(&self.schedule.slots) {
            *to = match *slot {
                Slot::Input(i) => {
                    let b = &self.inputs[i as usize];
                    let moves = self.geometry.operands[i as usize].access == Access::Direct;
                    let first = b.offset + if moves { at } else { 0 };
                    b.bytes.as_ptr().wrapping_add(first * b.dtype.size()).cast_mut()
                }
                Slot::Const(c) => (&raw const self.consts[c as usize]).cast_mut().cast(),
                Slot::Output(o) => {
                    let out = outputs[o as usize];
                    out.start.wrapping_add(at * out.dtype.size())
                }
                // A plain schedule has no others.
                Slot::Tile(_) | Slot::Single(_) => return,
            };
        }
        // SAFETY: every slot of the schedule points at its operand, constant or result, whose bounds have been
        // proved for the whole run, of which `at..at + n` is a part; the length is one that the segment takes: any,
        // or a multiple of its width, as the run and the tile are.
        unsafe { (self.segments[0].run)(table.as_ptr(), n) };
    }
}

/// A simple launch and its results, for several threads.
struct Shared<'a> {
    launch: &'a Launch<'a>,
    outputs: &'a [Out],
}

// SAFETY: the threads write disjoint parts of the outputs and only read the rest.
unsafe impl Sync for Shared<'_> {}

/// A result's memory: contiguous, one element for each of the domain.
pub(crate) struct Output<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) dtype: DType,
}

/// A reduction's partial results.
pub(crate) struct Folded<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) dtype: DType,
    /// The kernel: of the part that the geometry's way of folding asks for.
    pub(crate) f: BlockFn,
    /// What combining nothing gives.
    pub(crate) start: Bits,
}

/// The step that found its data faulty.
pub(crate) struct Fault {
    pub(crate) step: u32,
}

/// Where results go. The threads of a job write disjoint parts.
#[derive(Clone, Copy)]
struct Out {
    start: *mut u8,
    dtype: DType,
}

/// A reduction as the threads see it.
#[derive(Clone, Copy)]
struct FoldOut {
    start: *mut u8,
    dtype: DType,
    f: BlockFn,
    nothing: Bits,
}

/// What the threads share.
struct Job<'a> {
    launch: &'a Launch<'a>,
    outputs: &'a [Out],
    folds: &'a [FoldOut],
    /// The first faulty step by program order, or `u32::MAX`.
    fault: AtomicU32,
    /// Whether a thread left work undone because it was told to stop.
    stopped: AtomicBool,
}

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
) -> Result<Result<(), Fault>> {
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
    for (b, o) in launch.inputs.iter().zip(&g.operands) {
        b.check(o.reach)?;
    }
    let _standard = FloatMode::standard();
    let outs: smallvec::SmallVec<[Out; FEW]> =
        outputs.iter_mut().map(|o| Out { start: o.bytes.as_mut_ptr(), dtype: o.dtype }).collect();
    if launch.stop.is_none() && launch.is_simple() {
        launch.call_shared(&outs, threads);
        return Ok(Ok(()));
    }
    let folds: smallvec::SmallVec<[FoldOut; FEW]> = folds
        .iter_mut()
        .map(|o| FoldOut { start: o.bytes.as_mut_ptr(), dtype: o.dtype, f: o.f, nothing: o.start })
        .collect();
    let job =
        Job { launch, outputs: &outs, folds: &folds, fault: AtomicU32::new(u32::MAX), stopped: AtomicBool::new(false) };
    let units = job.units();
    if threads <= 1 || units <= 1 {
        job.run_units(0, units);
    } else {
        // More parts than threads: one that starts late takes fewer.
        let size = units.div_ceil(threads * PARTS_PER_THREAD);
        let part = |i: usize| job.run_units(i * size, units.min((i + 1) * size));
        share(units.div_ceil(size), threads, &part);
    }
    if job.stopped.into_inner()
        && let Some(stop) = launch.stop
    {
        stop.check()?;
    }
    match job.fault.into_inner() {
        u32::MAX => Ok(Ok(())),
        step => Ok(Err(Fault { step })),
    }
}

/// Parts that a thread takes of a job, one after the other.
const PARTS_PER_THREAD: usize = 8;

/// Whether an operand's neighbours along the run are far from each other, but not those of neighbouring rows.
fn is_across(o: &Operand) -> bool {
    match &o.access {
        Access::Gather(_, strides) if strides.len() == 1 => {
            o.rows.last().is_some_and(|r| *r != 0 && r.unsigned_abs() < strides[0].unsigned_abs())
        }
        _ => false,
    }
}

impl Job<'_> {
    /// Pieces of the work that can be done independently: tiles, or tiles of a group of rows that become one.
    fn units(&self) -> usize {
        let (g, tiles) = (self.launch.geometry, self.launch.tiles());
        match g.fold {
            Some(Fold::Columns(n)) => g.row_count() / n * n.div_ceil(ROWS) * tiles,
            _ if self.lies_across() => {
                let (last, outer) = g.rows.split_last().map_or((1, 1), |(n, o)| (*n, o.iter().product()));
                outer * last.div_ceil(ROW_BLOCK) * tiles
            }
            _ => g.row_count() * tiles,
        }
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
                _ if self.lies_across() => (from..to).try_for_each(|unit| worker.row_block(unit)),
                _ => worker.tiles(from, to),
            }
        };
        let faulty = with_worker(self, |worker| match self.launch.stop {
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
        });
        if let Err(step) = faulty {
            self.fault.fetch_min(step, Ordering::Relaxed);
        }
    }

    /// Whether the run must be cut into tiles: a single stage over operands in place needs none, as long as nothing of
    /// it lies in a tile.
    fn is_tiled(&self) -> bool {
        let copied = |a: &Access| matches!(a, Access::Gather(..) | Access::Periodic(_));
        let copies = self.launch.geometry.operands.iter().any(|o| copied(&o.access));
        let s = self.launch.schedule;
        copies || s.body.len() != 1 || s.tiles > 0 || !s.folds.is_empty()
    }
}
