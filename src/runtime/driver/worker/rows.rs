//! Many rows at a time: in one call of a segment that walks them, or tile by tile side by side.
//!
//! Guarantees: as [`super`]'s. Does not: reduce; the worker does, after each tile.

use super::super::Access;
use super::super::job::{begins_line, is_across};
use super::super::scratch::{UNIFORM_ROOM, copy_room};
use super::{CACHE_LINE, Worker};
use crate::backend::abi::{row_words, word};
use crate::base::dtype::DType;
use crate::kernels::operands;
use crate::kernels::reduce::LANES;
use crate::ops::MAX_OPERANDS;
use crate::plan::schedule::{BlockStage, Slot, SlotId};
use crate::plan::tuning::{ROW_BLOCK, SUMMED_ROWS, UNIFORM_ROWS};
use crate::runtime::driver::gather::{Strided, fill, gather, gather_rows};

impl Worker<'_> {
    /// Runs up to `most` whole rows from the current one on, those that follow it along the last of the outer dims; returns
    /// how many. Each call computes the same columns of all of them, so few that the first cache keeps what the rows share.
    ///
    /// # Safety
    /// As [`Worker::tiles`]; the schedule walks rows, and its segment takes any number of elements.
    pub(super) unsafe fn rows(&mut self, row: usize, most: usize) -> Result<usize, u32> {
        let (launch, columns) = (self.job.launch, self.job.columns());
        let g = launch.geometry;
        let left = g.rows.last().zip(self.index.last()).map_or(1, |(all, at)| all - at);
        let mut count = most.min(left);
        // SAFETY: passed on; the rows and columns are of the domain.
        unsafe {
            if !launch.schedule.prologue.is_empty() {
                count = count.min(UNIFORM_ROWS);
                launch.schedule.prologue.iter().try_for_each(|stage| self.uniform(stage, count))?;
            }
            if !self.job.folds.is_empty() {
                count = count.min(SUMMED_ROWS);
                for (k, fold) in self.job.folds.iter().enumerate() {
                    fill((&raw const fold.nothing).cast(), fold.dtype, count * LANES, self.lanes(k, 0));
                }
            }
            let step = |i: u32| g.operands[i as usize].rows.last().copied().unwrap_or(0);
            for at in (0..g.run).step_by(columns) {
                self.call(row, at, (columns.min(g.run - at), count), (g.run, step));
            }
            self.singles(|_| 0);
            for (k, fold) in self.job.folds.iter().enumerate() {
                let (lanes, to) = (self.lanes(k, 0).cast_const(), fold.start.add(row * fold.dtype.size()));
                (fold.kernels.f)(operands([lanes]), to, count * LANES);
            }
        }
        Ok(count)
    }

    /// Computes a uniform value of each of up to [`UNIFORM_ROWS`] rows from the current one on.
    ///
    /// # Safety
    /// As [`Worker::rows`]; there are so many rows along the last of the outer dims.
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
                        let step = launch.geometry.operands[i as usize].rows.last().copied().unwrap_or(0);
                        let base = self.bases[i as usize];
                        gather(Strided { base, extents: &[count], strides: &[step] }, dtype, 0, count, place);
                        place
                    }
                    _ => {
                        fill(self.table[slot], dtype, count, place);
                        place
                    }
                };
            }
        }
        // SAFETY: so many elements of each operand, and room for as many of the result, which is a uniform value.
        unsafe { stage.f.run(args, self.table[stage.out as usize], count) }.map_err(|said| self.refused(stage, said))
    }

    /// Points the slots of uniform values at the first row's, and gives them the steps to the next row's.
    pub(super) unsafe fn singles(&mut self, step: impl Fn(DType) -> usize) {
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

    /// Runs the whole tiles of the row between two elements in one call, as rows of their own that read the same patterns;
    /// returns how many elements they have.
    ///
    /// # Safety
    /// As [`Worker::tiles`]; the schedule is plain, its segment takes any number of elements, and what is not read where it
    /// is repeats along the run, a whole number of times in a tile. The first element is one where a tile begins.
    pub(super) unsafe fn whole_tiles(&mut self, row: usize, at: usize, end: usize) -> usize {
        let launch = self.job.launch;
        let (tile, operands) = (launch.tile(), &launch.geometry.operands);
        let count = (end - at) / tile;
        if count > 0 {
            let step = |i: u32| if operands[i as usize].access == Access::Contiguous { tile as isize } else { 0 };
            // SAFETY: passed on; elements `at..at + count * tile` of the row exist, and a pattern is written out for a
            // tile, behind each of which it begins anew.
            unsafe { self.call(row, at, (tile, count), (tile, step)) };
        }
        count * tile
    }

    /// Calls the segment for `n` elements from `at` on of the current row, and for as many of each of `count - 1` rows behind
    /// it: so many elements apart in results, and in operands what `step` says.
    ///
    /// # Safety
    /// As [`Worker::tiles`], for all these elements; the schedule walks rows, and its segment takes any number of elements.
    unsafe fn call(
        &mut self,
        row: usize,
        at: usize,
        (n, count): (usize, usize),
        (apart, step): (usize, impl Fn(u32) -> isize),
    ) {
        let (launch, slots) = (self.job.launch, self.job.launch.schedule.slots.len());
        let (run, mut stream) = (launch.geometry.run, self.job.stream);
        let mut set = |slot: SlotId, first: *mut u8, step: isize| {
            self.table[slot as usize] = first;
            self.table[slots + slot as usize] = word(step as usize);
        };
        for (slot, i, size) in self.direct {
            set(*slot, self.bases[*i as usize].wrapping_add(at * size).cast_mut(), step(*i) * *size as isize);
        }
        for (slot, i) in self.splats {
            set(*slot, self.bases[*i as usize].cast_mut(), step(*i) * launch.inputs[*i as usize].dtype.size() as isize);
        }
        for (slot, o) in self.results {
            let out = self.job.outputs[*o as usize];
            let (size, first) = (out.dtype.size(), row * run + at);
            let first = out.start.wrapping_add(first * size);
            stream &= begins_line(first) && (count == 1 || (apart * size).is_multiple_of(CACHE_LINE));
            set(*slot, first, (apart * size) as isize);
        }
        for (k, (fold, reduced)) in self.job.folds.iter().zip(&launch.schedule.folds).enumerate() {
            // SAFETY: these rows have lanes.
            self.table[reduced.slot as usize] = unsafe { self.lanes(k, 0) };
            self.table[slots + reduced.slot as usize] = word(LANES * fold.dtype.size());
        }
        let width = n | self.bits(stream);
        let [elements, rows] = row_words(slots);
        (self.table[elements], self.table[rows]) = (word(width), word(count));
        // SAFETY: the segment is the only one; the bounds of operands and results have been proved for all rows, whose
        // first elements lie these steps apart; uniform values are there for all rows.
        unsafe {
            for (slot, i) in self.moving {
                self.table[*slot as usize] = self.input(*i as usize, at, n, false);
                self.table[slots + *slot as usize] = word(0);
            }
            self.singles(DType::size);
            (launch.segments[0].run)(self.table.as_mut_ptr(), width);
        }
    }

    /// Reduces up to `most` whole rows from the current one on, those that follow it along the last of the outer dims, where
    /// they are; returns how many.
    ///
    /// # Safety
    /// As [`Worker::tiles`]; all that is reduced are operands, where they are, and a row is one piece.
    pub(super) unsafe fn rows_read(&mut self, row: usize, most: usize) -> usize {
        let launch = self.job.launch;
        let g = launch.geometry;
        let left = g.rows.last().zip(self.index.last()).map_or(1, |(all, at)| all - at);
        let count = most.min(left);
        for r in 0..count {
            for (fold, reduced) in self.job.folds.iter().zip(&launch.schedule.folds) {
                let Slot::Input(i) = launch.schedule.slots[reduced.slot as usize] else { continue };
                let step = g.operands[i as usize].rows.last().copied().unwrap_or(0) * fold.dtype.size() as isize;
                let from = self.bases[i as usize].wrapping_offset(step * r as isize);
                // SAFETY: passed on; the partial results have an element for each row.
                unsafe { (fold.kernels.whole)(operands([from]), fold.start.add((row + r) * fold.dtype.size()), g.run) };
            }
        }
        count
    }

    /// Runs a piece of each of up to [`ROW_BLOCK`] rows, tile by tile.
    ///
    /// # Safety
    /// As [`Worker::tiles`].
    pub(in super::super) unsafe fn row_block(&mut self, unit: usize) -> Result<(), u32> {
        let launch = self.job.launch;
        let (g, tile, piece, pieces) = (launch.geometry, launch.tile(), launch.piece(), launch.pieces());
        let last = g.rows.last().copied().unwrap_or(1);
        let (block, start) = (unit / pieces, unit % pieces * piece);
        let (outer, inner) = (block / last.div_ceil(ROW_BLOCK), block % last.div_ceil(ROW_BLOCK) * ROW_BLOCK);
        let (first, count) = (outer * last + inner, ROW_BLOCK.min(last - inner));
        let end = g.run.min(start + piece);
        for at in (start..end).step_by(tile) {
            let n = tile.min(end - at);
            for r in 0..count {
                // SAFETY: passed on; the rows are neighbours along the last of the outer dims, and the columns of the
                // run.
                unsafe {
                    if r == 0 {
                        self.seek(first)?;
                        self.turn(count, at, n);
                    } else {
                        self.next_row()?;
                    }
                    self.turned = Some((r, at));
                    self.begin_lanes(r, at);
                    self.span(first + r, at, n)?;
                    self.fold_rows(first + r, r, at, n);
                }
            }
        }
        self.turned = None;
        Ok(())
    }

    /// Copies a tile's width of `count` rows of the operands that lie across, from the current row on.
    unsafe fn turn(&mut self, count: usize, at: usize, n: usize) {
        let launch = self.job.launch;
        let mut to = self.layout.gathered;
        for (i, o) in launch.geometry.operands.iter().enumerate() {
            if let Access::Gather(extents, strides) = &o.access
                && is_across(o)
            {
                let from = Strided { base: self.bases[i], extents, strides };
                let rows = (count, o.rows.last().copied().unwrap_or(0));
                // SAFETY: elements `at..at + n` of these rows exist; the scratch has room for a block of tiles.
                unsafe { gather_rows(from, rows, launch.inputs[i].dtype, (at, n), self.scratch.add(to)) };
            }
            to += copy_room(o);
        }
    }
}
