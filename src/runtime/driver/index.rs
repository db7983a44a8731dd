//! Finds positions of elements: a row-major tensor of `outer` × `length` × `width` elements, of which the middle dim is searched.
//!
//! Guarantees: the first of equal elements is found, for any number of threads. Does not: read strided elements.

use std::sync::atomic::{AtomicBool, Ordering};

use super::results::Results;
use crate::base::cancel::Stop;
use crate::base::error::{Error, Result};
use crate::base::host::CACHE_LINE;
use crate::base::room::list;
use crate::kernels::index::{COLUMN_BLOCK, IndexKernels};
use crate::kernels::operands;
use crate::runtime::thread_pool::share;

/// Elements of a piece, in which one call of a kernel searches, about.
const PIECE: usize = 1 << 16;

/// Parts of the pieces for each thread.
const PARTS: usize = 8;

/// What is searched.
pub(crate) struct Search<'a> {
    pub(crate) kernels: IndexKernels,
    /// The elements, aligned.
    pub(crate) bytes: &'a [u8],
    /// Bytes of an element.
    pub(crate) size: usize,
    pub(crate) outer: usize,
    pub(crate) length: usize,
    pub(crate) width: usize,
    pub(crate) threads: usize,
    pub(crate) stop: Option<&'a Stop<'a>>,
}

fn count(n: usize) -> *const u8 {
    std::ptr::without_provenance(n)
}

impl Search<'_> {
    /// Rows of a piece.
    fn rows(&self) -> usize {
        (PIECE / self.width.clamp(1, COLUMN_BLOCK)).max(1)
    }

    /// Bytes that [`run`](Search::run) needs beside its results: a position in each piece, if there are several.
    pub(crate) fn scratch(&self) -> usize {
        let pieces = self.length.div_ceil(self.rows());
        let candidates = self.outer.saturating_mul(self.width).saturating_mul(pieces);
        if pieces > 1 { candidates.saturating_mul(size_of::<i64>()) } else { 0 }
    }

    /// The positions, `outer` × `width` of them.
    pub(crate) fn run(&self, found: &mut [i64]) -> Result<()> {
        self.check(found.len(), 1)?;
        let results = found.len();
        if self.bytes.is_empty() {
            return Ok(());
        }
        let rows = self.rows();
        let pieces = self.length.div_ceil(rows);
        if pieces == 1 {
            return self.pieces(rows, found);
        }
        let mut candidates = list(results.saturating_mul(pieces))?;
        self.pieces(rows, &mut candidates)?;
        self.combine(rows, &candidates, found);
        Ok(())
    }

    /// Checks that there are as many elements as the extents say, and so many results for each line.
    fn check(&self, found: usize, of_line: usize) -> Result<()> {
        let lines = self.outer.checked_mul(self.width);
        let bytes = lines.and_then(|n| n.checked_mul(self.length)?.checked_mul(self.size));
        let aligned = self.bytes.as_ptr().addr().is_multiple_of(self.size.min(align_of::<u64>()));
        let results = lines.and_then(|n| n.checked_mul(of_line));
        if bytes != Some(self.bytes.len()) || results != Some(found) || !aligned {
            return Err(Error::Internal("a search in wrong memory".into()));
        }
        Ok(())
    }

    /// For each piece of `rows` along the middle dim, the positions in it: `outer` × pieces × `width` of them.
    fn pieces(&self, rows: usize, found: &mut [i64]) -> Result<()> {
        let blocks = self.width.div_ceil(COLUMN_BLOCK);
        let pieces = self.length.div_ceil(rows);
        let units = self.outer * pieces * blocks;
        let to = Results::new(found);
        let unit = |unit: usize, to: &Results<i64>| {
            let (block, piece, outer) = (unit % blocks, unit / blocks % pieces, unit / blocks / pieces);
            let (column, row) = (block * COLUMN_BLOCK, piece * rows);
            let (columns, rows) = (COLUMN_BLOCK.min(self.width - column), rows.min(self.length - row));
            let from = (outer * self.length + row) * self.width + column;
            let at = (outer * pieces + piece) * self.width + column;
            // SAFETY: the elements of rows and columns of this unit lie inside the bytes, whose number `run` has checked; they are
            // aligned; the results are those of this unit alone, inside of `found`.
            unsafe {
                let (from, to) = (self.bytes.as_ptr().add(from * self.size), to.at(at).cast());
                if self.width == 1 {
                    (self.kernels.line)(operands([from]), to, rows);
                } else {
                    let n = (rows - 1) * self.width + columns;
                    (self.kernels.columns)(operands([from, count(columns), count(self.width)]), to, n);
                }
            }
        };
        self.share(units, &|at| unit(at, &to))
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.check().is_err())
    }

    /// Runs units of work on the threads.
    fn share(&self, units: usize, unit: &(dyn Fn(usize) + Sync)) -> Result<()> {
        let stopped = AtomicBool::new(false);
        // Parts end where cache lines of results do, about.
        let threads = self.threads.max(1);
        let size = units.div_ceil(threads * PARTS).next_multiple_of(if threads > 1 { CACHE_LINE / 8 } else { 1 });
        let size = if units < threads * PARTS { 1 } else { size };
        share(units.div_ceil(size), threads, &|part| {
            for at in part * size..units.min((part + 1) * size) {
                if at % 64 == 0 && self.is_stopped() {
                    stopped.store(true, Ordering::Relaxed);
                }
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                unit(at);
            }
        });
        // A unit may have ended early.
        self.stop.map_or(Ok(()), Stop::check)
    }

    /// For each element, the position of the extreme up to it: as many as there are elements.
    pub(crate) fn running(&self, found: &mut [i64]) -> Result<()> {
        self.check(found.len(), self.length)?;
        if self.bytes.is_empty() {
            return Ok(());
        }
        let blocks = self.width.div_ceil(COLUMN_BLOCK);
        let to = Results::new(found);
        self.share(self.outer * blocks, &|unit| {
            let (column, outer) = (unit % blocks * COLUMN_BLOCK, unit / blocks);
            let columns = COLUMN_BLOCK.min(self.width - column);
            let (from, rows) = (outer * self.length * self.width + column, (PIECE / columns).max(1));
            for done in (0..self.length).step_by(rows) {
                let n = (self.length.min(done + rows) - 1) * self.width + columns;
                let kernel = if self.width == 1 { self.kernels.line } else { self.kernels.columns };
                // SAFETY: the elements of this unit lie inside the bytes, whose number `check` has checked; they are aligned; the
                // results have the same places, and only those of this unit's columns are touched.
                unsafe {
                    let (from, to) = (self.bytes.as_ptr().add(from * self.size), to.at(from).cast());
                    kernel(operands([from, count(columns), count(self.width), count(done)]), to, n);
                }
                if self.is_stopped() {
                    return;
                }
            }
        })
    }

    /// The positions in the whole from those in pieces.
    fn combine(&self, rows: usize, candidates: &[i64], found: &mut [i64]) {
        let pieces = self.length.div_ceil(rows);
        let (mut elements, mut which) = (vec![0u128; (pieces * self.size).div_ceil(16)], [0i64]);
        for (i, found) in found.iter_mut().enumerate() {
            let (outer, column) = (i / self.width, i % self.width);
            let position =
                |piece: usize| piece * rows + candidates[(outer * pieces + piece) * self.width + column] as usize;
            let gathered: &mut [u8] = bytemuck::cast_slice_mut(&mut elements);
            for (piece, to) in gathered.chunks_exact_mut(self.size).take(pieces).enumerate() {
                let at = ((outer * self.length + position(piece)) * self.width + column) * self.size;
                to.copy_from_slice(&self.bytes[at..at + self.size]);
            }
            // SAFETY: so many elements were gathered, aligned; the result has one place.
            unsafe {
                (self.kernels.line)(operands([gathered.as_ptr()]), (&raw mut which).cast(), pieces);
            }
            *found = position(which[0] as usize) as i64;
        }
    }
}
