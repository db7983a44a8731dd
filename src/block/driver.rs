//! Runs a scheduled kernel over its domain: rows, tiles, stages.
//!
//! Guarantees: before anything is touched, every address that the run can form is proved to lie inside its buffer
//! ([`Buffer::check`]); compiled segments that need it are called with whole multiples of their width, so the elements
//! left over go through padded copies; results do not depend on tiles, rows or threads. Does not: allocate results.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::gather::{Strided, fill, gather};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::geometry::{Access, Geometry};
use crate::scalar::Bits;
use crate::schedule::{BlockStage, Schedule, Slot, Stage, TILE};

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

/// Room for one element of the widest dtype times [`WIDTH`].
const PADDED: usize = 16 * WIDTH;

/// An operand's memory: bytes, where its first element is, and how far the domain walks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) dtype: DType,
    /// Index of the first element.
    pub(crate) offset: usize,
}

impl Buffer<'_> {
    /// Proves that walking `extents` with `strides` stays inside the bytes.
    pub(crate) fn check(&self, extents: &[usize], strides: &[isize]) -> Result<()> {
        let wrong = || Error::Internal(format!("an operand of {} would be read outside its buffer", self.dtype));
        let (mut low, mut high) = (self.offset as i128, self.offset as i128);
        for (n, s) in extents.iter().zip(strides) {
            let reach = (*n as i128 - 1) * *s as i128;
            if reach < 0 { low += reach } else { high += reach }
        }
        let elements = (self.bytes.len() / self.dtype.size()) as i128;
        let aligned = self.bytes.as_ptr().addr().is_multiple_of(self.dtype.size().min(8));
        if extents.contains(&0) || low >= 0 && high < elements && aligned { Ok(()) } else { Err(wrong()) }
    }
}

/// Everything a run needs.
pub(crate) struct Launch<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) segments: &'a [SegmentFn],
    pub(crate) geometry: &'a Geometry,
    pub(crate) consts: &'a [Bits],
    pub(crate) inputs: &'a [Buffer<'a>],
}

/// A result's memory: contiguous, one element for each of the domain.
pub(crate) struct Output<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) dtype: DType,
}

/// The step that found its data faulty.
pub(crate) struct Fault {
    pub(crate) step: u32,
}

/// A part of the domain: whole rows, or columns of the only row.
#[derive(Clone, Copy)]
struct Part {
    rows: (usize, usize),
    columns: (usize, usize),
}

#[derive(Clone, Copy)]
struct Out {
    start: *mut u8,
    dtype: DType,
}

/// What the threads share.
struct Job<'a> {
    launch: &'a Launch<'a>,
    outputs: &'a [Out],
    /// The first faulty step by program order, or `u32::MAX`.
    fault: AtomicU32,
}

// SAFETY: the threads of a job write disjoint parts of the outputs and only read the rest.
unsafe impl Sync for Job<'_> {}

/// Runs a launch on up to `threads` threads. The outer error is a wrong call, the inner one faulty data.
pub(crate) fn run(launch: &Launch<'_>, outputs: &mut [Output<'_>], threads: usize) -> Result<Result<(), Fault>> {
    let g = launch.geometry;
    let (rows, total) = (g.row_count(), g.row_count() * g.run);
    for (b, o) in launch.inputs.iter().zip(&g.operands) {
        let (mut extents, mut strides) = (g.rows.clone(), o.rows.clone());
        match &o.access {
            Access::Splat => {}
            Access::Direct => (extents.push(g.run), strides.push(1)).0,
            Access::Gather(dims, s) => (extents.extend(dims), strides.extend(s)).0,
        }
        b.check(&extents, &strides)?;
    }
    if launch.inputs.len() != g.operands.len() || outputs.iter().any(|o| o.bytes.len() != total * o.dtype.size()) {
        return Err(Error::Internal("a launch with wrong operands or results".into()));
    }
    if total == 0 {
        return Ok(Ok(()));
    }
    let outs: Vec<Out> = outputs.iter_mut().map(|o| Out { start: o.bytes.as_mut_ptr(), dtype: o.dtype }).collect();
    let job = Job { launch, outputs: &outs, fault: AtomicU32::new(u32::MAX) };
    let parts = parts(rows, g.run, threads.max(1));
    match parts.as_slice() {
        [only] => job.run_part(*only),
        all => {
            let next = AtomicU64::new(0);
            rayon::scope(|s| {
                for _ in 1..all.len() {
                    s.spawn(|_| job.take_parts(all, &next));
                }
                job.take_parts(all, &next);
            });
        }
    }
    match job.fault.into_inner() {
        u32::MAX => Ok(Ok(())),
        step => Ok(Err(Fault { step })),
    }
}

/// Splits the domain into at most `threads` parts; columns are cut at multiples of the tile.
fn parts(rows: usize, run: usize, threads: usize) -> Vec<Part> {
    let (n, unit) = if rows > 1 { (rows, 1) } else { (run, TILE) };
    let size = n.div_ceil(threads).div_ceil(unit).max(1) * unit;
    (0..n.div_ceil(size))
        .map(|i| {
            let range = (i * size, ((i + 1) * size).min(n));
            if rows > 1 { Part { rows: range, columns: (0, run) } } else { Part { rows: (0, 1), columns: range } }
        })
        .collect()
}

thread_local! {
    /// Scratch of a thread, kept from launch to launch.
    static SCRATCH: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

/// Where the parts of the scratch begin, in bytes.
struct Layout {
    tiles: usize,
    singles: usize,
    gathered: usize,
    padded: usize,
    total: usize,
}

impl Layout {
    fn new(launch: &Launch<'_>, outputs: usize) -> Layout {
        let singles = launch.schedule.tiles as usize * TILE * 16;
        let gathered = singles + (launch.schedule.singles as usize * 16).next_multiple_of(64);
        let padded = gathered + launch.inputs.len() * TILE * 16;
        Layout { tiles: 0, singles, gathered, padded, total: padded + (launch.inputs.len() + outputs) * PADDED }
    }
}

/// A thread's view of a launch.
struct Worker<'a> {
    job: &'a Job<'a>,
    table: Vec<*mut u8>,
    scratch: *mut u8,
    layout: Layout,
    /// Base address of each operand in the current row.
    bases: Vec<*const u8>,
}

impl Job<'_> {
    fn take_parts(&self, parts: &[Part], next: &AtomicU64) {
        while let Some(p) = parts.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            self.run_part(*p);
        }
    }

    fn run_part(&self, part: Part) {
        let layout = Layout::new(self.launch, self.outputs.len());
        let words = layout.total.div_ceil(16) + 4;
        // A launch never starts another one on this thread while it holds the scratch: kernels call no user code.
        let mut scratch = SCRATCH.take();
        if scratch.len() < words {
            scratch.resize(words, 0);
        }
        let start = scratch.as_mut_ptr().cast::<u8>();
        let skip = start.align_offset(64);
        let mut worker = Worker {
            job: self,
            table: vec![std::ptr::null_mut(); self.launch.schedule.slots.len()],
            // SAFETY: `words` leaves room for the alignment of 64.
            scratch: unsafe { start.add(skip) },
            layout,
            bases: vec![std::ptr::null(); self.launch.inputs.len()],
        };
        // SAFETY: `run` has proved the operands' bounds, and the scratch is as large as its layout.
        let faulty = unsafe { worker.run(part) };
        if let Err(step) = faulty {
            self.fault.fetch_min(step, Ordering::Relaxed);
        }
        SCRATCH.set(scratch);
    }
}

impl Worker<'_> {
    /// # Safety
    /// The bounds of all operands must have been proved for the whole domain, and the scratch must fit the layout.
    unsafe fn run(&mut self, part: Part) -> Result<(), u32> {
        let launch = self.job.launch;
        // SAFETY: passed on.
        unsafe {
            self.fixed_slots();
            self.fills(true);
            for row in part.rows.0..part.rows.1 {
                self.start_row(row);
                for stage in &launch.schedule.prologue {
                    self.block(stage, 1)?;
                }
                self.fills(false);
                let tiled = self.is_tiled();
                let mut at = part.columns.0;
                while at < part.columns.1 {
                    let left = part.columns.1 - at;
                    let n = if tiled { left.min(TILE) } else { left };
                    let whole = if launch.segments.iter().all(|s| s.any_length) { n } else { n - n % WIDTH };
                    if whole > 0 {
                        self.tile(row, at, whole, false)?;
                    }
                    if whole < n {
                        self.tile(row, at + whole, n - whole, true)?;
                    }
                    at += n;
                }
            }
        }
        Ok(())
    }

    /// Whether the run must be cut into tiles: a single stage over operands in place needs none, as long as nothing of
    /// it lies in a tile.
    fn is_tiled(&self) -> bool {
        let launch = self.job.launch;
        let gathers = launch.geometry.operands.iter().any(|o| matches!(o.access, Access::Gather(..)));
        gathers || launch.schedule.body.len() != 1 || launch.schedule.tiles > 0
    }

    /// Pointers that stay the same for the whole launch.
    unsafe fn fixed_slots(&mut self) {
        let launch = self.job.launch;
        for (to, slot) in self.table.iter_mut().zip(&launch.schedule.slots) {
            // SAFETY: the offsets are those of the layout.
            unsafe {
                match *slot {
                    Slot::Const(c) => *to = (&raw const launch.consts[c as usize]).cast_mut().cast(),
                    Slot::Tile(t) => *to = self.scratch.add(self.layout.tiles + t as usize * TILE * 16),
                    Slot::Single(s) => *to = self.scratch.add(self.layout.singles + s as usize * 16),
                    Slot::Input(_) | Slot::Output(_) => {}
                }
            }
        }
    }

    unsafe fn fills(&mut self, constant: bool) {
        for f in self.job.launch.schedule.fills.iter().filter(|f| f.constant == constant) {
            // SAFETY: the source holds one element; the target is a tile.
            unsafe { fill(self.table[f.from as usize], f.dtype, TILE, self.table[f.to as usize]) };
        }
    }

    /// Base addresses of a row, and the pointers of operands that are the same along it.
    unsafe fn start_row(&mut self, row: usize) {
        let launch = self.job.launch;
        let g = launch.geometry;
        for ((base, o), b) in self.bases.iter_mut().zip(&g.operands).zip(launch.inputs) {
            let (mut rest, mut offset) = (row, b.offset as isize);
            for (n, s) in g.rows.iter().zip(&o.rows).rev() {
                offset += (rest % n) as isize * s;
                rest /= n;
            }
            // SAFETY: inside the buffer, by `Buffer::check`.
            *base = unsafe { b.bytes.as_ptr().offset(offset * b.dtype.size() as isize) };
        }
        for (to, slot) in self.table.iter_mut().zip(&launch.schedule.slots) {
            if let Slot::Input(i) = slot
                && g.operands[*i as usize].access == Access::Splat
            {
                *to = self.bases[*i as usize].cast_mut();
            }
        }
    }

    /// Runs the body on `n` elements from `at`; `padded` if they are fewer than segments take.
    unsafe fn tile(&mut self, row: usize, at: usize, n: usize, padded: bool) -> Result<(), u32> {
        let launch = self.job.launch;
        let position = row * launch.geometry.run + at;
        // SAFETY: elements `at..at + n` of the row exist; padded copies hold at most WIDTH elements.
        unsafe {
            for s in 0..launch.schedule.slots.len() {
                match launch.schedule.slots[s] {
                    Slot::Input(i) => self.point_input(s, i as usize, at, n, padded),
                    Slot::Output(o) => {
                        let out = self.job.outputs[o as usize];
                        let pad = self.padded(launch.inputs.len() + o as usize);
                        self.table[s] = if padded { pad } else { out.start.add(position * out.dtype.size()) };
                    }
                    _ => {}
                }
            }
            let width = if padded { WIDTH } else { n };
            for stage in &launch.schedule.body {
                match stage {
                    Stage::Block(b) => self.block(b, n)?,
                    Stage::Segment(s) => (launch.segments[*s as usize].run)(self.table.as_ptr(), width),
                }
            }
            for f in &launch.schedule.out_fills {
                fill(self.table[f.from as usize], f.dtype, n, self.table[f.to as usize]);
            }
            if padded {
                for (o, out) in self.job.outputs.iter().enumerate() {
                    let (size, from) = (out.dtype.size(), self.padded(launch.inputs.len() + o));
                    std::ptr::copy_nonoverlapping(from, out.start.add(position * size), n * size);
                }
            }
        }
        Ok(())
    }

    unsafe fn padded(&self, index: usize) -> *mut u8 {
        // SAFETY: the layout has a padded place for every operand and result.
        unsafe { self.scratch.add(self.layout.padded + index * PADDED) }
    }

    unsafe fn point_input(&mut self, slot: usize, i: usize, at: usize, n: usize, padded: bool) {
        let launch = self.job.launch;
        let (dtype, base) = (launch.inputs[i].dtype, self.bases[i]);
        // SAFETY: elements `at..at + n` of the row exist; the copies go to places of their own.
        self.table[slot] = unsafe {
            match &launch.geometry.operands[i].access {
                Access::Splat => return,
                Access::Direct if padded => {
                    let to = self.padded(i);
                    std::ptr::copy_nonoverlapping(base.add(at * dtype.size()), to, n * dtype.size());
                    to
                }
                Access::Direct => base.add(at * dtype.size()).cast_mut(),
                Access::Gather(extents, strides) => {
                    let to = self.scratch.add(self.layout.gathered + i * TILE * 16);
                    gather(Strided { base, extents, strides }, dtype, at, n, to);
                    to
                }
            }
        };
    }

    unsafe fn block(&self, stage: &BlockStage, n: usize) -> Result<(), u32> {
        let args = stage.args.map(|a| a.map_or(std::ptr::null(), |a| self.table[a as usize].cast_const()));
        // SAFETY: every slot points at `n` elements of its value's dtype, aligned; the result has a slot of its own.
        match unsafe { (stage.f)(args, self.table[stage.out as usize], n) } {
            0 => Ok(()),
            _ => Err(stage.step),
        }
    }
}
