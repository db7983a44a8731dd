//! Many rows, or many tiles of a row, in one call.
//!
//! Guarantees: as [`super`]'s. Does not: serve segments that take only multiples of their width.

use super::super::gather::{Strided, fill, gather};
use super::super::job::begins_cache_line;
use super::super::scratch::UNIFORM_ROOM;
use super::Worker;
use crate::backend::abi::{row_words, word};
use crate::base::dtype::DType;
use crate::base::host::CACHE_LINE;
use crate::kernels::operands;
use crate::ops::MAX_OPERANDS;
use crate::plan::geometry::Access;
use crate::plan::schedule::{BlockStage, Slot, SlotId};

/// What one call of a segment computes: elements `at..at + n` of a row, and as many of each of `count - 1` rows behind it.
struct Block {
    row: usize,
    at: usize,
    n: usize,
    count: usize,
    /// Elements from a row of the results to the next.
    stride: usize,
}

impl Worker<'_> {
    /// Runs units by rows: a call of the segment computes `columns` elements of up to `rows` rows. A part of a row, or a row
    /// alone, is computed as other walks do.
    ///
    /// # Safety
    /// As [`Worker::units`].
    pub(super) unsafe fn whole_rows(
        &mut self,
        from: usize,
        to: usize,
        (columns, rows): (usize, usize),
    ) -> Result<(), u32> {
        let (inner, piece, pieces) = (self.job.launch.geometry.inner, self.strategy().piece, self.strategy().pieces);
        let mut unit = from;
        while unit < to {
            let (row, first) = (unit / pieces, unit % pieces);
            // SAFETY: passed on; the rows and columns are of the domain.
            unsafe {
                self.seek(row)?;
                if first == 0 && to - unit >= 2 * pieces {
                    let most = rows.min((to - unit) / pieces).min(self.rows_left());
                    self.rows(row, most, columns)?;
                    unit += pieces * most;
                } else {
                    let last = pieces.min(first + (to - unit));
                    self.row_part(row, first * piece, inner.min(last * piece))?;
                    unit += last - first;
                }
            }
        }
        Ok(())
    }

    /// Computes, and sums, `count` rows from the current one on. Each call computes the same columns of all of them, so few that
    /// the L1 cache keeps what the rows share.
    unsafe fn rows(&mut self, row: usize, count: usize, columns: usize) -> Result<(), u32> {
        let (launch, g) = (self.job.launch, self.job.launch.geometry);
        // SAFETY: passed on; the rows and columns are of the domain.
        unsafe {
            launch.schedule.prologue.iter().try_for_each(|stage| self.uniform(stage, count))?;
            self.begin_summed_rows(count);
            for at in (0..g.inner).step_by(columns) {
                let block = Block { row, at, n: columns.min(g.inner - at), count, stride: g.inner };
                self.set_summed_slots();
                self.call(&block, |i| g.operands[i as usize].row_stride());
            }
            self.set_singles(|_| 0);
            self.end_summed_rows(row, count);
        }
        Ok(())
    }

    /// Computes a uniform value of each of `count` rows from the current one on.
    ///
    /// # Safety
    /// As [`Worker::units`]; there are so many rows along the innermost of the outer dims, and room for their values.
    unsafe fn uniform(&self, stage: &BlockStage, count: usize) -> Result<(), u32> {
        let launch = self.job.launch;
        let mut args = [std::ptr::null(); MAX_OPERANDS];
        for (k, (arg, slot)) in args.iter_mut().zip(stage.args).enumerate() {
            let Some(slot) = slot.map(|s| s as usize) else { continue };
            let dtype = launch.schedule.dtypes[slot];
            // SAFETY: each operand has a place of its own for so many rows; the operand's elements exist.
            unsafe {
                let place = self.scratch.add(self.layout.uniform + k * UNIFORM_ROOM);
                *arg = match launch.schedule.slots[slot] {
                    Slot::Single(s) => self.single(s),
                    Slot::Input(i) => {
                        let (base, stride) =
                            (self.bases[i as usize], launch.geometry.operands[i as usize].row_stride());
                        gather(Strided { base, extents: &[count], strides: &[stride] }, dtype, 0, count, place);
                        place
                    }
                    Slot::Const(_) | Slot::Tile(_) | Slot::Output(_) => {
                        fill(self.table[slot], dtype, count, place);
                        place
                    }
                };
            }
        }
        // SAFETY: so many elements of each operand, and room for as many of the result, which is a uniform value.
        unsafe { stage.f.run(args, self.table[stage.out as usize], count) }
            .map_err(|refusal| self.refused(stage, refusal))
    }

    /// Points the slots of uniform values at the first row's, and sets the steps to the next row's.
    ///
    /// # Safety
    /// The scratch must be as large as its layout.
    pub(super) unsafe fn set_singles(&mut self, step: impl Fn(DType) -> usize) {
        let s = &self.job.launch.schedule;
        if s.singles == 0 {
            return;
        }
        for (i, (slot, dtype)) in s.slots.iter().zip(&s.dtypes).enumerate() {
            if let Slot::Single(single) = slot {
                // SAFETY: passed on.
                self.table[i] = unsafe { self.single(*single) };
                self.table[s.slots.len() + i] = word(step(*dtype));
            }
        }
    }

    /// Adds elements `at..at + n` of each of `count` rows from the current one on to the columns' sums, at which the slots point.
    ///
    /// # Safety
    /// As [`Worker::units`]; one segment adds everything that is reduced, operands are in place, and the rows follow each other along
    /// the innermost of the outer dims.
    pub(super) unsafe fn add_rows(&mut self, row: usize, count: usize, at: usize, n: usize) {
        let g = self.job.launch.geometry;
        let slots = self.job.launch.schedule.slots.len();
        for fold in &self.job.launch.schedule.folds {
            self.table[slots + fold.slot as usize] = word(0);
        }
        // SAFETY: passed on; the rows and columns are of the domain.
        unsafe { self.call(&Block { row, at, n, count, stride: g.inner }, |i| g.operands[i as usize].row_stride()) };
    }

    /// Runs the whole tiles of the row between two elements in one call, as rows of their own that read the same patterns;
    /// returns how many elements they have.
    ///
    /// # Safety
    /// As [`Worker::units`]; the schedule is plain, its segment takes any number of elements, and the operands that are not in
    /// place repeat along the inner loop, a whole number of times in a tile. The first element is the first of a tile.
    pub(super) unsafe fn patterned_tiles(&mut self, row: usize, at: usize, end: usize) -> usize {
        let (tile, operands) = (self.strategy().tile, &self.job.launch.geometry.operands);
        let count = (end - at) / tile;
        if count > 0 {
            let stride = |i: u32| if operands[i as usize].access == Access::Contiguous { tile as isize } else { 0 };
            // SAFETY: passed on; elements `at..at + count * tile` of the row exist, and a pattern is written out for a
            // tile, behind each of which it begins anew.
            unsafe { self.call(&Block { row, at, n: tile, count, stride: tile }, stride) };
        }
        count * tile
    }

    /// Calls the segment for a block, whose rows are so many elements apart in each operand as `stride` says.
    ///
    /// # Safety
    /// As [`Worker::units`], for all elements of the block; the schedule walks rows, and its segment takes any number of elements.
    unsafe fn call(&mut self, b: &Block, stride: impl Fn(u32) -> isize) {
        let (launch, slots) = (self.job.launch, self.job.launch.schedule.slots.len());
        let mut stream = self.job.stream;
        let mut set = |slot: SlotId, first: *mut u8, step: isize| {
            self.table[slot as usize] = first;
            self.table[slots + slot as usize] = word(step as usize);
        };
        for (slot, i, size) in &self.slots.contiguous {
            let first = self.bases[*i as usize].wrapping_add(b.at * size).cast_mut();
            set(*slot, first, stride(*i) * *size as isize);
        }
        for (slot, i) in &self.slots.broadcast {
            let size = launch.inputs[*i as usize].dtype.size();
            set(*slot, self.bases[*i as usize].cast_mut(), stride(*i) * size as isize);
        }
        for (slot, o) in &self.slots.results {
            let out = self.job.outputs[*o as usize];
            let size = out.dtype.size();
            let first = out.start.wrapping_add((b.row * launch.geometry.inner + b.at) * size);
            stream &= begins_cache_line(first) && (b.count == 1 || (b.stride * size).is_multiple_of(CACHE_LINE));
            set(*slot, first, (b.stride * size) as isize);
        }
        let length = b.n | self.flags(stream);
        let [elements, rows] = row_words(slots);
        (self.table[elements], self.table[rows]) = (word(length), word(b.count));
        // SAFETY: the segment is the only one; the bounds of operands and results have been proved for all rows, whose
        // first elements lie these steps apart; uniform values are there for all rows.
        unsafe {
            for (slot, i) in &self.slots.copied {
                self.table[*slot as usize] = self.copied(*i as usize, b.at, b.n, false);
                self.table[slots + *slot as usize] = word(0);
            }
            self.set_singles(DType::size);
            (launch.segments[0].run)(self.table.as_mut_ptr(), length);
        }
    }

    /// Reduces rows in place, each in one call of a kernel.
    ///
    /// # Safety
    /// As [`Worker::units`]; everything that is reduced is an operand in place, and a row is one piece.
    pub(super) unsafe fn reduced_rows(&mut self, from: usize, to: usize) -> Result<(), u32> {
        let (launch, mut row) = (self.job.launch, from);
        while row < to {
            // SAFETY: passed on.
            unsafe { self.seek(row)? };
            let count = self.rows_left().min(to - row);
            for r in 0..count {
                for (fold, reduced) in self.job.folds.iter().zip(&launch.schedule.folds) {
                    let Slot::Input(i) = launch.schedule.slots[reduced.slot as usize] else { continue };
                    let size = fold.dtype.size();
                    let step = launch.geometry.operands[i as usize].row_stride() * size as isize;
                    let from = self.bases[i as usize].wrapping_offset(step * r as isize);
                    let to = fold.start.wrapping_add((row + r) * size);
                    // SAFETY: passed on; the partial results have an element for each row.
                    unsafe { (fold.kernels.whole)(operands([from]), to, launch.geometry.inner) };
                }
            }
            row += count;
        }
        Ok(())
    }
}
