//! Reductions along rows: each piece of a long row into lanes, these into a partial result; or each short row into its result.
//!
//! Guarantees: as [`super`]'s; element `i` of a piece goes to lane `i % LANES`, however the piece is cut into tiles. Does not:
//! combine partial results, or reduce across rows.

use super::super::job::{FoldKernels, FoldOut};
use super::super::scratch::LANES_ROOM;
use super::Worker;
use super::tile::Values;
use crate::backend::abi::word;
use crate::kernels::operands;
use crate::kernels::reduce::LANES;
use crate::plan::strategy::RowFold;
use crate::plan::tuning::ROW_BLOCK;

impl Worker<'_> {
    /// Whether segments add the values of reduction `k` to its sums while they compute them.
    pub(super) fn adds(&self, k: usize) -> bool {
        self.strategy().adds() && self.job.launch.schedule.folds[k].is_sum
    }

    /// The lanes of reduction `k` in the `r`-th row of a block.
    pub(super) unsafe fn lanes(&self, k: usize, r: usize) -> *mut u8 {
        // SAFETY: the layout has lanes for every reduction and row.
        unsafe { self.scratch.add(self.layout.lanes + (k * ROW_BLOCK + r) * LANES_ROOM) }
    }

    /// Whether elements `at..at + n` of a row are a whole piece, which a kernel then reduces in one call.
    fn is_piece(&self, at: usize, n: usize) -> bool {
        at.is_multiple_of(self.strategy().piece) && self.ends_piece(at + n)
    }

    /// Whether a piece ends before this element of a row.
    fn ends_piece(&self, end: usize) -> bool {
        end == self.job.launch.geometry.inner || end.is_multiple_of(self.strategy().piece)
    }

    /// Makes the lanes of the `r`-th row of a block ready for elements `at..at + n`.
    ///
    /// # Safety
    /// As [`Worker::units`].
    pub(super) unsafe fn begin_lanes(&mut self, r: usize, at: usize, n: usize) {
        let strategy = self.job.launch.strategy;
        let (RowFold::Lanes { contiguous } | RowFold::Sums { contiguous }) = strategy.fold else { return };
        for (k, (fold, reduced)) in self.job.folds.iter().zip(&self.job.launch.schedule.folds).enumerate() {
            if !self.adds(k) && self.is_piece(at, n) {
                continue;
            }
            // SAFETY: the lanes are this row's own.
            unsafe {
                let lanes = self.lanes(k, r);
                if at.is_multiple_of(strategy.piece) {
                    // A segment accesses lanes from that of its first element on, up to LANES of them, some behind the last. (Rows
                    // with contiguous parts are not in blocks: the room of the next row is free.)
                    let n = if contiguous.is_some() { 2 * LANES } else { LANES };
                    fold.begin(n, lanes);
                }
                if self.adds(k) {
                    self.table[reduced.slot as usize] = lanes.add(at % LANES * fold.dtype.size());
                }
            }
        }
    }

    /// Reduces elements `at..at + n` of a row, the `r`-th of its block, as the strategy says.
    ///
    /// # Safety
    /// As [`Worker::units`]; the values are those of these elements.
    pub(super) unsafe fn fold_row(&mut self, values: Values, (row, r): (usize, usize), at: usize, n: usize) {
        let strategy = self.job.launch.strategy;
        let piece = row * strategy.pieces + at / strategy.piece;
        for (k, FoldOut { start, dtype, kernels: FoldKernels { f, whole, .. }, .. }) in
            self.job.folds.iter().enumerate()
        {
            let from = self.folded(values, k);
            // SAFETY: the partial results have an element for this piece, or for each short row; the kernel for short rows takes
            // their length as its second operand.
            unsafe {
                match strategy.fold {
                    RowFold::None => {}
                    RowFold::Short { length } => {
                        let to = start.add(at / length * dtype.size());
                        f(operands([from, std::ptr::without_provenance(length)]), to, n);
                    }
                    RowFold::Lanes { .. } | RowFold::Sums { .. } if self.adds(k) || !self.is_piece(at, n) => {
                        self.fold_lanes(k, from, self.lanes(k, r), at, n);
                        if self.ends_piece(at + n) {
                            let lanes = self.lanes(k, r).cast_const();
                            f(operands([lanes]), start.add(piece * dtype.size()), LANES);
                        }
                    }
                    RowFold::InPlace | RowFold::Lanes { .. } | RowFold::Sums { .. } => {
                        whole(operands([from]), start.add(piece * dtype.size()), n);
                    }
                }
            }
        }
    }

    /// Combines `n` elements of a piece, from element `at` of the row on, with its lanes, unless the segment has done so.
    unsafe fn fold_lanes(&self, k: usize, from: *const u8, lanes: *mut u8, at: usize, n: usize) {
        if self.adds(k) {
            return;
        }
        let FoldOut { dtype, kernels, .. } = self.job.folds[k];
        // The kernel begins at the first lane: the elements before the next multiple of LANES go to the lanes from that of `at` on, in
        // a call of their own.
        let (size, lane) = (dtype.size(), at % LANES);
        let head = if lane == 0 { 0 } else { n.min(LANES - lane) };
        // SAFETY: passed on; the lanes are this row's own.
        unsafe {
            if head > 0 {
                (kernels.tile)(operands([from]), lanes.add(lane * size), head);
            }
            (kernels.tile)(operands([from.add(head * size)]), lanes, n - head);
        }
    }

    /// Makes the lanes of `count` rows ready for a segment that sums all of them, and points the slots at those of the first.
    ///
    /// # Safety
    /// As [`Worker::units`]; there are lanes for so many rows.
    pub(super) unsafe fn begin_summed_rows(&mut self, count: usize) {
        for (k, fold) in self.job.folds.iter().enumerate() {
            // SAFETY: passed on.
            unsafe { fold.begin(count * LANES, self.lanes(k, 0)) };
        }
    }

    /// Points the slots of sums at the lanes of the first of many rows, each behind those of the row before. A call moves them.
    pub(super) fn set_summed_slots(&mut self) {
        let (folds, slots) = (&self.job.launch.schedule.folds, self.job.launch.schedule.slots.len());
        for (k, (fold, reduced)) in self.job.folds.iter().zip(folds).enumerate() {
            // SAFETY: these rows have lanes.
            self.table[reduced.slot as usize] = unsafe { self.lanes(k, 0) };
            self.table[slots + reduced.slot as usize] = word(LANES * fold.dtype.size());
        }
    }

    /// Makes the partial results of rows that were summed, from `row` on.
    ///
    /// # Safety
    /// As [`Worker::units`]; a row is one piece.
    pub(super) unsafe fn end_summed_rows(&mut self, row: usize, count: usize) {
        for (k, fold) in self.job.folds.iter().enumerate() {
            // SAFETY: the partial results have an element for each row.
            unsafe {
                let (lanes, to) = (self.lanes(k, 0).cast_const(), fold.start.add(row * fold.dtype.size()));
                (fold.kernels.f)(operands([lanes]), to, count * LANES);
            }
        }
    }
}
