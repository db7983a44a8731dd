//! Rows that are combined into one: side by side, or one behind the other.
//!
//! Guarantees: as [`super`]'s. Does not: reduce along rows; the worker does, after each tile.

use std::ptr::without_provenance;

use super::super::job::FoldOut;
use super::super::partition::Stack;
use super::Worker;
use crate::kernels::operands;
use crate::kernels::reduce::{LANES, side_by_side};
use crate::ops::MAX_OPERANDS;
use crate::plan::tuning::{FOLDED_ROWS, TILE};
use crate::runtime::driver::gather::fill;

/// The operands of a kernel that takes rows: where they are, how long each is, and how many become one.
fn rows(at: *const u8, width: usize, count: usize) -> [*const u8; MAX_OPERANDS] {
    operands([at, without_provenance(width), without_provenance(count)])
}

impl Worker<'_> {
    /// Combines up to [`FOLDED_ROWS`] rows of a tile's width into one.
    ///
    /// # Safety
    /// As [`Worker::tiles`].
    pub(in super::super) unsafe fn columns(&mut self, unit: usize, count: usize) -> Result<(), u32> {
        let launch = self.job.launch;
        let (run, pieces) = (launch.geometry.run, launch.pieces());
        let (group, at) = (unit / pieces, unit % pieces * TILE);
        let groups = count.div_ceil(FOLDED_ROWS);
        let (outer, first) = (group / groups, group % groups * FOLDED_ROWS);
        let n = TILE.min(run - at);
        let rows = FOLDED_ROWS.min(count - first);
        // SAFETY: the staged tiles are the reductions' own; partial results have a run for each group. Rows that begin so far
        // apart are of the domain, and what lies between them is of the operand's buffer, as they are.
        unsafe {
            if n >= LANES && (0..self.job.folds.len()).all(|k| launch.rows_apart(k) >= n) {
                self.seek(outer * count + first)?;
                self.span(outer * count + first, at, n)?;
                for (k, fold) in self.job.folds.iter().enumerate() {
                    let (apart, to) = (launch.rows_apart(k), fold.start.add((group * run + at) * fold.dtype.size()));
                    let args = operands([self.folded(k), without_provenance(n), without_provenance(apart)]);
                    (fold.kernels.whole)(args, to, (rows - 1) * apart + n);
                }
                return Ok(());
            }
            for (k, fold) in self.job.folds.iter().enumerate() {
                fill((&raw const fold.nothing).cast(), fold.dtype, n, self.staged(k, 1));
            }
            for r in 0..rows {
                let row = outer * count + first + r;
                if r == 0 {
                    self.seek(row)?
                } else {
                    self.next_row()?
                }
                self.span(row, at, n)?;
                for (k, fold) in self.job.folds.iter().enumerate() {
                    let (sum, next) = (self.staged(k, 1 + r % 2), self.staged(k, 1 + (r + 1) % 2));
                    (fold.kernels.f)(operands([sum.cast_const(), self.folded(k)]), next, n);
                }
            }
            for (k, fold) in self.job.folds.iter().enumerate() {
                let size = fold.dtype.size();
                let to = fold.start.add((group * run + at) * size);
                std::ptr::copy_nonoverlapping(self.staged(k, 1 + rows % 2), to, n * size);
            }
        }
        Ok(())
    }

    /// Combines rows that lie one behind the other: units of a [`Stack`].
    ///
    /// # Safety
    /// As [`Worker::tiles`].
    pub(in super::super) unsafe fn stacks(&mut self, from: usize, to: usize) -> Result<(), u32> {
        let Some(stack) = self.job.launch.stack() else { return Ok(()) };
        // SAFETY: passed on.
        unsafe {
            self.seek(0)?;
            (from..to).try_for_each(|unit| self.group(stack, unit))
        }
    }

    /// # Safety
    /// As [`Worker::tiles`], at the first row.
    unsafe fn group(&mut self, s: Stack, unit: usize) -> Result<(), u32> {
        let run = self.job.launch.geometry.run;
        let (length, lanes) = (s.count * s.width, s.together * s.width);
        // SAFETY: the elements are of the domain, whole rows; the staged tiles are the reductions' own and have room for the
        // lanes, which are no more than a tile's elements; the kernels take lengths for their second and third operands; the
        // results have a row for each group.
        unsafe {
            if s.whole {
                let at = unit * s.unit;
                let n = s.unit.min(run - at);
                self.span(0, at, n)?;
                for (k, fold) in self.job.folds.iter().enumerate() {
                    let to = fold.start.add(at / s.count * fold.dtype.size());
                    fill((&raw const fold.nothing).cast(), fold.dtype, n / s.count, to);
                    (fold.kernels.f)(rows(self.folded(k), s.width, s.count), to, n);
                }
                return Ok(());
            }
            let (outer, first) = (unit / s.groups, unit % s.groups * s.unit);
            let end = outer * length + length.min(first + s.unit);
            let mut at = outer * length + first;
            let count = (end - at) / s.width;
            let to = |fold: &FoldOut| fold.start.add(unit * s.width * fold.dtype.size());
            for fold in self.job.folds {
                fill((&raw const fold.nothing).cast(), fold.dtype, s.width, to(fold));
            }
            if s.tile >= end - at && side_by_side(count, s.width) == s.together {
                self.span(0, at, end - at)?;
                for (k, fold) in self.job.folds.iter().enumerate() {
                    (fold.kernels.f)(rows(self.folded(k), s.width, count), to(fold), end - at);
                }
                return Ok(());
            }
            for (k, fold) in self.job.folds.iter().enumerate() {
                fill((&raw const fold.nothing).cast(), fold.dtype, lanes, self.staged(k, 1));
            }
            while at < end {
                let n = s.tile.min(end - at);
                self.span(0, at, n)?;
                for (k, fold) in self.job.folds.iter().enumerate() {
                    (fold.kernels.f)(rows(self.folded(k), lanes, n.div_ceil(lanes)), self.staged(k, 1), n);
                }
                at += n;
            }
            for (k, fold) in self.job.folds.iter().enumerate() {
                (fold.kernels.f)(rows(self.staged(k, 1).cast_const(), s.width, s.together), to(fold), lanes);
            }
        }
        Ok(())
    }
}
