//! Reductions across rows: the rows of a group are combined element by element.
//!
//! Guarantees: as [`super`]'s. Does not: combine the partial rows of groups, or reduce along rows.

use std::ptr::without_provenance;

use super::super::job::FoldOut;
use super::Worker;
use crate::kernels::operands;
use crate::kernels::reduce::{LANES, side_by_side};
use crate::ops::MAX_OPERANDS;
use crate::plan::schedule::Slot;
use crate::plan::strategy::{ColumnGroups, StackedGroups};
use crate::plan::tuning::{FOLDED_ROWS, TILE};

/// The operands of a kernel that combines stacked rows: where they are, the elements of each, and how many become one.
fn stacked(at: *const u8, width: usize, count: usize) -> [*const u8; MAX_OPERANDS] {
    operands([at, without_provenance(width), without_provenance(count)])
}

impl Worker<'_> {
    /// Combines a tile of columns of up to [`FOLDED_ROWS`] of the `count` rows that become one.
    ///
    /// # Safety
    /// As [`Worker::units`].
    pub(super) unsafe fn columns(&mut self, unit: usize, count: usize, how: ColumnGroups) -> Result<(), u32> {
        let (inner, pieces) = (self.job.launch.geometry.inner, self.strategy().pieces);
        let (group, at) = (unit / pieces, unit % pieces * TILE);
        let groups = count.div_ceil(FOLDED_ROWS);
        let (outer, first) = (group / groups, group % groups * FOLDED_ROWS);
        let (n, rows, row) = (TILE.min(inner - at), FOLDED_ROWS.min(count - first), outer * count + first);
        let to = group * inner + at;
        // SAFETY: passed on; the rows and columns are of the domain, and partial results have a row for each group.
        unsafe {
            self.seek(row)?;
            match how {
                ColumnGroups::InPlace { stride } if n >= LANES && stride >= n => {
                    return self.columns_in_place(row, rows, at, n, to);
                }
                ColumnGroups::Added => {
                    self.begin_columns(n);
                    self.add_rows(row, rows, at, n);
                }
                ColumnGroups::InPlace { .. } | ColumnGroups::RowByRow => {
                    self.begin_columns(n);
                    self.row_by_row(row, rows, at, n)?;
                }
            }
            self.end_columns(rows, n, to);
            Ok(())
        }
    }

    /// Combines elements `at..at + n` of `rows` operands' rows from the current one on.
    unsafe fn columns_in_place(&mut self, row: usize, rows: usize, at: usize, n: usize, to: usize) -> Result<(), u32> {
        let launch = self.job.launch;
        // SAFETY: rows that begin so far apart are of the domain, and what lies between them is of the operand's buffer, as they are.
        unsafe {
            let values = self.span(row, at, n)?;
            for (k, (fold, reduced)) in self.job.folds.iter().zip(&launch.schedule.folds).enumerate() {
                let Slot::Input(i) = launch.schedule.slots[reduced.slot as usize] else { continue };
                let apart = launch.geometry.operands[i as usize].row_stride() as usize;
                let args = operands([self.folded(values, k), without_provenance(n), without_provenance(apart)]);
                (fold.kernels.whole)(args, fold.start.add(to * fold.dtype.size()), (rows - 1) * apart + n);
            }
        }
        Ok(())
    }

    /// Makes rows of `n` sums, and of other results, ready in staged tiles, and points the slots of what segments add at them.
    unsafe fn begin_columns(&mut self, n: usize) {
        for (k, fold) in self.job.folds.iter().enumerate() {
            // SAFETY: the staged tiles are the reductions' own; a segment accesses no more of one than a tile, and what is behind it.
            unsafe {
                fold.begin(n, self.staged(k, 1));
                if self.adds(k) {
                    self.table[self.job.launch.schedule.folds[k].slot as usize] = self.staged(k, 1);
                }
            }
        }
    }

    /// Computes elements `at..at + n` of each of `rows` rows from the current one on, and combines them with those before.
    unsafe fn row_by_row(&mut self, row: usize, rows: usize, at: usize, n: usize) -> Result<(), u32> {
        for r in 0..rows {
            // SAFETY: passed on; the staged tiles are the reductions' own.
            unsafe {
                if r > 0 {
                    self.next_row()?
                }
                let values = self.span(row + r, at, n)?;
                for (k, fold) in self.job.folds.iter().enumerate().filter(|(k, _)| !self.adds(*k)) {
                    let (sum, next) = (self.staged(k, 1 + r % 2), self.staged(k, 1 + (r + 1) % 2));
                    (fold.kernels.f)(operands([sum.cast_const(), self.folded(values, k)]), next, n);
                }
            }
        }
        Ok(())
    }

    /// Writes the results of `n` columns that were combined from so many rows, elements `to..to + n` of the partial results.
    unsafe fn end_columns(&mut self, rows: usize, n: usize, to: usize) {
        for (k, fold) in self.job.folds.iter().enumerate() {
            let size = fold.dtype.size();
            // SAFETY: the partial results have a row for each group; the staged tiles are the reductions' own.
            unsafe {
                let (to, nothing) = (fold.start.add(to * size), self.staged(k, 2));
                if self.adds(k) {
                    // Segments add without canonical NaNs, which the kernel makes.
                    fold.begin(n, nothing);
                    (fold.kernels.f)(operands([self.staged(k, 1).cast_const(), nothing.cast_const()]), to, n);
                } else {
                    std::ptr::copy_nonoverlapping(self.staged(k, 1 + rows % 2), to, n * size);
                }
            }
        }
    }

    /// Combines the rows of stacks of which a tile holds several; a unit is a tile.
    ///
    /// # Safety
    /// As [`Worker::units`].
    pub(super) unsafe fn stacked_tiles(
        &mut self,
        from: usize,
        to: usize,
        (count, width): (usize, usize),
    ) -> Result<(), u32> {
        let (inner, unit) = (self.job.launch.geometry.inner, self.strategy().piece);
        // SAFETY: the elements are of the domain, whole rows; the kernels take lengths for their second and third operands; the
        // results have a row for each stack.
        unsafe {
            self.seek(0)?;
            for at in (from..to).map(|i| i * unit) {
                let n = unit.min(inner - at);
                let values = self.span(0, at, n)?;
                for (k, fold) in self.job.folds.iter().enumerate() {
                    let to = fold.start.add(at / count * fold.dtype.size());
                    fold.begin(n / count, to);
                    (fold.kernels.f)(stacked(self.folded(values, k), width, count), to, n);
                }
            }
        }
        Ok(())
    }

    /// Combines groups of rows of stacks that are longer than a tile.
    ///
    /// # Safety
    /// As [`Worker::units`].
    pub(super) unsafe fn stacked_groups(&mut self, from: usize, to: usize, s: StackedGroups) -> Result<(), u32> {
        // SAFETY: passed on.
        unsafe {
            self.seek(0)?;
            (from..to).try_for_each(|unit| self.stacked_group(unit, s))
        }
    }

    /// # Safety
    /// As [`Worker::units`], at the first row.
    unsafe fn stacked_group(&mut self, unit: usize, s: StackedGroups) -> Result<(), u32> {
        let (tile, piece) = (self.strategy().tile, self.strategy().piece);
        let (length, lanes) = (s.count * s.width, s.together * s.width);
        let (outer, first) = (unit / s.groups, unit % s.groups * piece);
        let end = outer * length + length.min(first + piece);
        let mut at = outer * length + first;
        let count = (end - at) / s.width;
        let to = |fold: &FoldOut| fold.start.wrapping_add(unit * s.width * fold.dtype.size());
        // SAFETY: the elements are of the domain, whole rows; the staged tiles are the reductions' own and have room for the
        // lanes, which are no more than a tile's elements; the kernels take lengths for their second and third operands; the
        // results have a row for each group.
        unsafe {
            for fold in self.job.folds {
                fold.begin(s.width, to(fold));
            }
            if tile >= end - at && side_by_side(count, s.width) == s.together {
                let values = self.span(0, at, end - at)?;
                for (k, fold) in self.job.folds.iter().enumerate() {
                    (fold.kernels.f)(stacked(self.folded(values, k), s.width, count), to(fold), end - at);
                }
                return Ok(());
            }
            for (k, fold) in self.job.folds.iter().enumerate() {
                fold.begin(lanes, self.staged(k, 1));
            }
            while at < end {
                let n = tile.min(end - at);
                let values = self.span(0, at, n)?;
                for (k, fold) in self.job.folds.iter().enumerate() {
                    let rows = stacked(self.folded(values, k), lanes, n.div_ceil(lanes));
                    (fold.kernels.f)(rows, self.staged(k, 1), n);
                }
                at += n;
            }
            for (k, fold) in self.job.folds.iter().enumerate() {
                (fold.kernels.f)(stacked(self.staged(k, 1).cast_const(), s.width, s.together), to(fold), lanes);
            }
        }
        Ok(())
    }
}
