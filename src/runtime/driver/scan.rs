//! Scans: a row-major tensor of `outer` × `length` × `width` elements, of which the middle dim is scanned.
//!
//! A line is divided into blocks of a fixed length. Each is scanned from the start, and joined with the total of the blocks before
//! it; totals are combined from the first block to the last. Threads that share a line scan blocks at the same time, and hand on the
//! total; those that share columns find the totals of all blocks first.
//!
//! Guarantees: results depend on the length of a line and its elements alone, not on threads, or on other lines. Does not: read
//! strided elements.

use std::sync::atomic::{AtomicBool, Ordering};

use super::results::Results;
use super::turn::Turns;
use crate::base::cancel::Stop;
use crate::base::error::{Error, Result};
use crate::base::host::FloatMode;
use crate::base::room::list;
use crate::kernels::scan::ScanKernels;
use crate::kernels::{BlockFn, operands};
use crate::runtime::thread_pool::share;

/// Elements of a line that are scanned from the start.
const BLOCK: usize = 512;

/// Elements that are converted and scanned before the next ones, about: they stay in the L1 cache.
const TILE: usize = 4 * BLOCK;

/// Columns that are scanned together.
const COLUMNS: usize = 512;

/// Strips, or blocks of one, for each thread that are enough or too few to divide them.
const FEW: usize = 4;

/// Parts of the work for each thread.
const PARTS: usize = 8;

/// Bytes of the largest element.
const LARGEST: usize = 16;

/// How elements are converted, and the size of one that is not in the dtype that the scan accumulates in.
#[derive(Clone, Copy)]
pub(crate) struct Conversion {
    /// `None`: the dtype is that one.
    pub(crate) kernel: Option<BlockFn>,
    pub(crate) size: usize,
}

/// What is scanned.
pub(crate) struct Scan<'a> {
    pub(crate) kernels: ScanKernels,
    /// Bytes of an element of the dtype that the scan accumulates in.
    pub(crate) size: usize,
    /// From the elements' dtype.
    pub(crate) read: Conversion,
    /// To the results' dtype.
    pub(crate) write: Conversion,
    /// The elements, aligned.
    pub(crate) bytes: &'a [u8],
    pub(crate) outer: usize,
    pub(crate) length: usize,
    pub(crate) width: usize,
    pub(crate) threads: usize,
    pub(crate) stop: Option<&'a Stop<'a>>,
}

impl Conversion {
    /// # Safety
    /// As for a [`BlockFn`] of one operand.
    unsafe fn run(self, from: *const u8, n: usize, to: *mut u8) {
        // SAFETY: the caller's promise; without a kernel both have elements of one size.
        unsafe {
            match self.kernel {
                Some(kernel) => {
                    kernel(operands([from]), to, n);
                }
                None => to.copy_from_nonoverlapping(from, n * self.size),
            }
        }
    }
}

/// The totals of the blocks before the next one.
#[repr(align(64))]
struct Totals([u8; COLUMNS * LARGEST]);

/// Memory of a thread: a row, and a tile behind it.
#[repr(align(64))]
struct Scratch([u8; (COLUMNS + TILE) * LARGEST]);

/// Columns of a tensor of `length` × `width` elements, which lie beside each other.
#[derive(Clone, Copy)]
struct Strip {
    outer: usize,
    column: usize,
    columns: usize,
}

fn count(n: usize) -> *const u8 {
    std::ptr::without_provenance(n)
}

impl Scan<'_> {
    /// The results, as many as there are elements.
    pub(crate) fn run(&self, results: &mut [u8]) -> Result<()> {
        let elements = self.outer.checked_mul(self.length).and_then(|n| n.checked_mul(self.width));
        let bytes = |size: usize| elements.and_then(|n| n.checked_mul(size));
        let aligned = |p: *const u8, size: usize| p.addr().is_multiple_of(size.min(align_of::<u64>()));
        let whole = bytes(self.read.size) == Some(self.bytes.len()) && bytes(self.write.size) == Some(results.len());
        let fits = self.size <= LARGEST && (self.read.kernel.is_some() || self.read.size == self.size);
        let fits = fits && (self.write.kernel.is_some() || self.write.size == self.size);
        if !whole
            || !fits
            || !aligned(self.bytes.as_ptr(), self.read.size)
            || !aligned(results.as_ptr(), self.write.size)
        {
            return Err(Error::Internal("a scan in wrong memory".into()));
        }
        if self.bytes.is_empty() {
            return Ok(());
        }
        let _standard = FloatMode::standard();
        let to = Results::new(results);
        if self.width == 1 && self.length <= BLOCK {
            return self.short_lines(&to);
        }
        if self.width == 1 {
            return match self.divides_strips() {
                true => self.in_turn(&to),
                false => self.units(self.outer, &|outer, scratch| self.line(outer, &to, scratch)),
            };
        }
        let (strips, blocks) = (self.width.div_ceil(COLUMNS), self.length.div_ceil(BLOCK));
        let all = self.outer * strips;
        let strip = |at: usize| {
            let column = at % strips * COLUMNS;
            Strip { outer: at / strips, column, columns: COLUMNS.min(self.width - column) }
        };
        if !self.divides_strips() {
            return self.units(all, &|at, scratch| self.strip(strip(at), 0..blocks, None, Some(&to), scratch));
        }
        let mut totals = self.totals()?;
        let row = self.width * self.size;
        let of_block = Results::new(bytemuck::cast_slice_mut::<u128, u8>(&mut totals));
        // SAFETY: the totals have a row for each block of each outer index.
        let total =
            |s: Strip, block: usize| unsafe { of_block.at(((s.outer * blocks + block) * row) + s.column * self.size) };
        self.units(all * (blocks - 1), &|at, scratch| {
            let (s, block) = (strip(at / (blocks - 1)), at % (blocks - 1));
            self.strip(s, block..block + 1, None, None, scratch);
            // SAFETY: a block's total is the row in front of the scratch; no other unit writes to this place.
            unsafe { total(s, block).copy_from_nonoverlapping(scratch.0.as_ptr(), s.columns * self.size) };
        })?;
        for outer in 0..self.outer {
            // SAFETY: so many rows of totals were written, and the last one has memory.
            unsafe {
                let first = of_block.at(outer * blocks * row);
                (self.kernels.rows)(operands([std::ptr::null(), count(self.width)]), first, (blocks - 1) * self.width);
            }
        }
        let piece = blocks.div_ceil(PARTS * self.threads);
        let pieces = blocks.div_ceil(piece);
        self.units(all * pieces, &|at, scratch| {
            let (s, first) = (strip(at / pieces), at % pieces * piece);
            let before = (first > 0).then(|| total(s, first - 1).cast_const());
            self.strip(s, first..blocks.min(first + piece), before, Some(&to), scratch);
        })
    }

    /// Whether the threads share strips, which they join by the totals of blocks.
    fn divides_strips(&self) -> bool {
        let (strips, blocks) = (self.outer.saturating_mul(self.width.div_ceil(COLUMNS)), self.length.div_ceil(BLOCK));
        let short = self.width == 1 && self.length <= BLOCK;
        !short && self.threads > 1 && strips < FEW * self.threads && blocks >= FEW * self.threads
    }

    /// Bytes that a run needs beside its results: the totals of blocks.
    pub(crate) fn scratch(&self) -> usize {
        if self.divides_strips() && self.width > 1 { self.total_bytes() } else { 0 }
    }

    fn total_bytes(&self) -> usize {
        let blocks = self.outer.saturating_mul(self.length.div_ceil(BLOCK));
        blocks.saturating_mul(self.width).saturating_mul(self.size)
    }

    /// Memory for the totals of all blocks.
    fn totals(&self) -> Result<Vec<u128>> {
        list(self.total_bytes().div_ceil(LARGEST))
    }

    /// Scans lines of at most a block, many in a tile.
    fn short_lines(&self, to: &Results<u8>) -> Result<()> {
        let many = TILE / self.length;
        self.units(self.outer.div_ceil(many), &|at, scratch| {
            let first = at * many * self.length;
            let n = (many * self.length).min(self.outer * self.length - first);
            let tile = scratch.0.as_mut_ptr();
            // SAFETY: these elements are inside the operand and the results, as `run` has checked, and fit into the scratch; no other unit
            // writes to these results.
            unsafe {
                self.read(first, n, tile);
                (self.kernels.lines)(operands([std::ptr::null(), count(self.length)]), tile, n);
                (self.kernels.join)(operands([]), tile, n);
                self.write(tile, n, to, first);
            }
        })
    }

    /// Scans blocks of a strip, where `before` is the total of those before them. Without results, the total of the last block
    /// alone is left in front of the scratch.
    fn strip(
        &self,
        s: Strip,
        blocks: std::ops::Range<usize>,
        before: Option<*const u8>,
        to: Option<&Results<u8>>,
        scratch: &mut Scratch,
    ) {
        let (mut totals, row) = (Totals([0; COLUMNS * LARGEST]), s.columns * self.size);
        if let Some(before) = before {
            // SAFETY: the caller gives a row of totals; a row fits into the memory for it.
            unsafe { totals.0.as_mut_ptr().copy_from_nonoverlapping(before, row) };
        }
        let (state, most) = (scratch.0.as_mut_ptr(), TILE / s.columns);
        // SAFETY: a row fits in front of a tile, and a tile of `most` rows behind it; the rows are inside of the operand and the results, as `run` has checked; a
        // strip's blocks are those of one unit.
        unsafe {
            let tile = state.add(row);
            for block in blocks {
                (self.kernels.start)(operands([]), state, s.columns);
                let end = self.length.min((block + 1) * BLOCK);
                for first in (block * BLOCK..end).step_by(most) {
                    if self.is_stopped() {
                        return;
                    }
                    let rows = most.min(end - first);
                    let (n, last) = (rows * s.columns, tile.add((rows - 1) * row));
                    self.rows(s, first, rows, |from, n, at| self.read(from, n, tile.add(at * self.size)));
                    (self.kernels.rows)(operands([std::ptr::null(), count(s.columns)]), state, n + s.columns);
                    state.copy_from_nonoverlapping(last, row);
                    let Some(to) = to else { continue };
                    let join = if block == 0 { std::ptr::null() } else { totals.0.as_ptr() };
                    (self.kernels.join)(operands([join, count(s.columns)]), tile, n);
                    self.rows(s, first, rows, |from, n, at| self.write(tile.add(at * self.size), n, to, from));
                    if first + rows == end {
                        totals.0.as_mut_ptr().copy_from_nonoverlapping(last, row);
                    }
                }
            }
        }
    }

    /// Scans a line: the blocks of a tile are scanned together.
    fn line(&self, outer: usize, to: &Results<u8>, scratch: &mut Scratch) {
        let (total, size) = (scratch.0.as_mut_ptr(), self.size);
        // SAFETY: an element fits in front of a tile; the elements are inside of the operand and the results, as `run` has checked; a
        // line is one unit.
        unsafe {
            let (tile, start) = (total.add(size), outer * self.length);
            for first in (0..self.length).step_by(TILE) {
                if self.is_stopped() {
                    return;
                }
                let n = TILE.min(self.length - first);
                self.read(start + first, n, tile);
                (self.kernels.lines)(operands([std::ptr::null(), count(BLOCK)]), tile, n);
                for at in (0..n).step_by(BLOCK) {
                    // The total of the blocks before is the element before.
                    let join = if first + at == 0 { std::ptr::null() } else { total.add(at * size).cast_const() };
                    (self.kernels.join)(operands([join, count(1)]), tile.add(at * size), BLOCK.min(n - at));
                }
                self.write(tile, n, to, start + first);
                total.copy_from_nonoverlapping(total.add(n * size), size);
            }
        }
    }

    /// Scans lines whose tiles the threads take in order.
    fn in_turn(&self, to: &Results<u8>) -> Result<()> {
        let tiles = self.length.div_ceil(TILE);
        let turns = Turns::new(self.outer * tiles, [0u8; LARGEST]);
        share(self.threads, self.threads, &|_| {
            let mut scratch = Scratch([0; (TILE + COLUMNS) * LARGEST]);
            let unless = turns.unless();
            while let Some(at) = turns.next() {
                if self.is_stopped() {
                    return turns.stop();
                }
                self.tile((at / tiles, at % tiles * TILE), to, &mut scratch, |totals| {
                    turns.wait(at, |total| totals(total)).is_some()
                });
            }
            unless.over();
        });
        self.stop.map_or(Ok(()), Stop::check)
    }

    /// Scans the tile of a line that begins at an element. `turn` gives the total before it, and takes that of its end, or says that somebody
    /// has stopped.
    fn tile(
        &self,
        (outer, first): (usize, usize),
        to: &Results<u8>,
        scratch: &mut Scratch,
        turn: impl FnOnce(&mut dyn FnMut(&mut [u8; LARGEST])) -> bool,
    ) {
        let (n, size) = (TILE.min(self.length - first), self.size);
        let (from, blocks) = (outer * self.length + first, n.div_ceil(BLOCK));
        // Totals, from the one before the first block on, lie in front of the tile.
        let totals = scratch.0.as_mut_ptr();
        // SAFETY: so many totals fit in front of a tile, which begins at a multiple of an element's size; the elements are inside of the
        // operand and the results, as `run` has checked; a tile is one unit.
        unsafe {
            let tile = totals.add(COLUMNS * LARGEST);
            self.read(from, n, tile);
            (self.kernels.lines)(operands([std::ptr::null(), count(BLOCK)]), tile, n);
            for block in 0..blocks {
                let last = n.min((block + 1) * BLOCK) - 1;
                totals.add((block + 1) * size).copy_from_nonoverlapping(tile.add(last * size), size);
            }
            let begun = usize::from(first == 0);
            let ready = turn(&mut |total| {
                totals.copy_from_nonoverlapping(total.as_ptr(), size);
                let rows = operands([std::ptr::null(), count(1)]);
                (self.kernels.rows)(rows, totals.add(begun * size), blocks + 1 - begun);
                total.as_mut_ptr().copy_from_nonoverlapping(totals.add(blocks * size), size);
            });
            if !ready {
                return;
            }
            for block in 0..blocks {
                let join = if first + block == 0 { std::ptr::null() } else { totals.add(block * size).cast_const() };
                let at = block * BLOCK;
                (self.kernels.join)(operands([join, count(1)]), tile.add(at * size), BLOCK.min(n - at));
            }
            self.write(tile, n, to, from);
        }
    }

    /// For each run of elements of a strip's rows that lie behind each other: the first one's index in the tensor, their number, and the
    /// first one's index in a tile.
    fn rows(&self, s: Strip, first: usize, rows: usize, mut run: impl FnMut(usize, usize, usize)) {
        let from = (s.outer * self.length + first) * self.width + s.column;
        if s.columns == self.width {
            return run(from, rows * s.columns, 0);
        }
        (0..rows).for_each(|r| run(from + r * self.width, s.columns, r * s.columns));
    }

    /// Converts elements of the operand.
    ///
    /// # Safety
    /// The operand has `n` elements from `first` on; `to` has memory for them.
    unsafe fn read(&self, first: usize, n: usize, to: *mut u8) {
        // SAFETY: the caller's promise; the operand is aligned, as `run` has checked.
        unsafe { self.read.run(self.bytes.as_ptr().add(first * self.read.size), n, to) }
    }

    /// Converts elements to results.
    ///
    /// # Safety
    /// There are `n` elements, and memory for `n` results from `first` on, to which nothing else writes.
    unsafe fn write(&self, elements: *const u8, n: usize, to: &Results<u8>, first: usize) {
        // SAFETY: the caller's promise; the results are aligned, as `run` has checked.
        unsafe { self.write.run(elements, n, to.at(first * self.write.size)) }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.check().is_err())
    }

    /// Runs units of work on the threads.
    fn units(&self, units: usize, unit: &(dyn Fn(usize, &mut Scratch) + Sync)) -> Result<()> {
        let threads = self.threads.max(1);
        let (size, stopped) = (units.div_ceil(threads * PARTS), AtomicBool::new(false));
        share(units.div_ceil(size), threads, &|part| {
            let mut scratch = Scratch([0; (TILE + COLUMNS) * LARGEST]);
            for at in part * size..units.min((part + 1) * size) {
                if self.is_stopped() {
                    stopped.store(true, Ordering::Relaxed);
                }
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                unit(at, &mut scratch);
            }
        });
        // A unit may have ended early.
        self.stop.map_or(Ok(()), Stop::check)
    }
}
