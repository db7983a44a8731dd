//! Blocks of rows, where operands are transposed: a cache line of them serves several rows of a block.
//!
//! Guarantees: as [`super`]'s. Does not: choose where this is done; the strategy has.

use super::super::gather::{Strided, gather_rows};
use super::Worker;
use crate::plan::geometry::Access;
use crate::plan::tuning::ROW_BLOCK;

impl Worker<'_> {
    /// Runs a piece of each of up to [`ROW_BLOCK`] rows, tile by tile.
    ///
    /// # Safety
    /// As [`Worker::units`].
    pub(super) unsafe fn row_block(&mut self, unit: usize) -> Result<(), u32> {
        let (g, s) = (self.job.launch.geometry, self.job.launch.strategy);
        let last = g.rows.last().copied().unwrap_or(1);
        let (block, start) = (unit / s.pieces, unit % s.pieces * s.piece);
        let (outer, inner) = (block / last.div_ceil(ROW_BLOCK), block % last.div_ceil(ROW_BLOCK) * ROW_BLOCK);
        let (first, count) = (outer * last + inner, ROW_BLOCK.min(last - inner));
        let end = g.inner.min(start + s.piece);
        for at in (start..end).step_by(s.tile) {
            let n = s.tile.min(end - at);
            for r in 0..count {
                // SAFETY: passed on; the rows follow each other along the innermost of the outer dims, and the columns are of the
                // inner loop.
                unsafe {
                    if r == 0 {
                        self.seek(first)?;
                        self.copy_transposed(count, at, n);
                    } else {
                        self.next_row()?;
                    }
                    self.transposed = Some((r, at));
                    self.begin_lanes(r, at, n);
                    let values = self.span(first + r, at, n)?;
                    self.fold_row(values, (first + r, r), at, n);
                }
            }
        }
        self.transposed = None;
        Ok(())
    }

    /// Copies elements `at..at + n` of `count` rows of the transposed operands, from the current row on.
    unsafe fn copy_transposed(&mut self, count: usize, at: usize, n: usize) {
        let launch = self.job.launch;
        for (i, o) in launch.geometry.operands.iter().enumerate() {
            if let Access::Gather(extents, strides) = &o.access
                && o.is_transposed()
            {
                let from = Strided { base: self.bases[i], extents, strides };
                let rows = (count, o.row_stride());
                // SAFETY: elements `at..at + n` of these rows exist; the scratch has room for a block of tiles.
                unsafe {
                    gather_rows(from, rows, launch.inputs[i].dtype, (at, n), self.scratch.add(self.rooms[i]));
                }
            }
        }
    }
}
