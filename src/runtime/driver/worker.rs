//! One thread's part of a launch: goes through the rows of its units and keeps the pointers of the schedule's slots.
//!
//! Guarantees: as [`super::run`]'s, under the bounds it has proved. Does not: split work among threads.

use std::cell::Cell;

use super::gather::fill;
use super::job::{Job, lead};
use super::scratch::{PADDED, STAGED_TILES, ScratchLayout, Slots, with_scratch};
use crate::kernels::Refusal;
use crate::plan::geometry::Access;
use crate::plan::schedule::{BlockStage, Slot};
use crate::plan::strategy::{Strategy, Walk};
use crate::plan::tuning::{TILE, TILE_BYTES};

mod columns;
mod lanes;
mod row_blocks;
mod rows;
mod tile;

/// A thread's view of a launch.
pub(super) struct Worker<'a> {
    job: &'a Job<'a>,
    /// The pointers of the slots, as segments take them.
    table: &'a mut [*mut u8],
    scratch: *mut u8,
    layout: ScratchLayout,
    /// The address of each operand's first element in the current row.
    bases: &'a mut [*const u8],
    /// The current row, by outer dims.
    index: &'a mut [usize],
    /// The room for each operand's copies, as an offset.
    rooms: &'a [usize],
    slots: &'a Slots,
    /// In a block of rows: which of them this is, and the first element of the tile whose transposed operands have been copied.
    transposed: Option<(usize, usize)>,
    /// The message of the function that panicked.
    pub(super) refusal: Cell<Refusal>,
}

/// Gives a worker with the thread's scratch to `work`.
pub(super) fn with_worker<T>(job: &Job<'_>, work: impl FnOnce(&mut Worker<'_>) -> T) -> T {
    with_scratch(job, |lists, layout, scratch| {
        let mut worker = Worker {
            job,
            table: &mut lists.table,
            scratch,
            layout,
            bases: &mut lists.bases,
            index: &mut lists.index,
            rooms: &lists.rooms,
            slots: &lists.slots,
            transposed: None,
            refusal: Cell::default(),
        };
        // SAFETY: the scratch is as large as its layout.
        unsafe { worker.set_fixed_slots() };
        work(&mut worker)
    })
}

impl Worker<'_> {
    /// Runs units of the work.
    ///
    /// # Safety
    /// The bounds of all operands must have been proved for the whole domain, and the results' sizes.
    pub(super) unsafe fn units(&mut self, from: usize, to: usize) -> Result<(), u32> {
        // SAFETY: passed on.
        unsafe {
            match self.strategy().walk {
                Walk::Call | Walk::Ranges | Walk::Tiles | Walk::Patterns => self.pieces(from, to),
                Walk::Rows { columns, rows } => self.whole_rows(from, to, (columns, rows)),
                Walk::ReducedRows => self.reduced_rows(from, to),
                Walk::RowBlocks => (from..to).try_for_each(|unit| self.row_block(unit)),
                Walk::Columns { count, how } => (from..to).try_for_each(|unit| self.columns(unit, count, how)),
                Walk::StackedTiles { count, width } => self.stacked_tiles(from, to, (count, width)),
                Walk::StackedGroups(s) => self.stacked_groups(from, to, s),
            }
        }
    }

    fn strategy(&self) -> &Strategy {
        self.job.launch.strategy
    }

    /// Runs pieces of rows, counted along the rows.
    unsafe fn pieces(&mut self, from: usize, to: usize) -> Result<(), u32> {
        let (inner, piece, pieces) = (self.job.launch.geometry.inner, self.strategy().piece, self.strategy().pieces);
        let mut unit = from;
        while unit < to {
            let (row, first) = (unit / pieces, unit % pieces);
            let last = pieces.min(first + (to - unit));
            // SAFETY: passed on; the row and the columns are of the domain.
            unsafe {
                if unit == from {
                    self.seek(row)?
                } else {
                    self.next_row()?
                }
                self.row_part(row, first * piece, inner.min(last * piece))?;
            }
            unit += last - first;
        }
        Ok(())
    }

    /// Computes and reduces elements `at..end` of the current row.
    unsafe fn row_part(&mut self, row: usize, mut at: usize, end: usize) -> Result<(), u32> {
        let strategy = self.job.launch.strategy;
        // SAFETY: passed on.
        unsafe {
            if strategy.walk == Walk::Patterns {
                at += self.patterned_tiles(row, at, end);
            }
            while at < end {
                let lead = lead(self.job.outputs, strategy, row * self.job.launch.geometry.inner + at, end - at);
                let n = if lead > 0 { lead } else { strategy.step(at, end) };
                self.begin_lanes(0, at, n);
                let values = self.span(row, at, n)?;
                self.fold_row(values, (row, 0), at, n);
                at += n;
            }
        }
        Ok(())
    }

    /// Sets the pointers that stay the same for the whole launch.
    unsafe fn set_fixed_slots(&mut self) {
        let launch = self.job.launch;
        for (to, slot) in self.table.iter_mut().zip(&launch.schedule.slots) {
            // SAFETY: the offsets are those of the layout.
            unsafe {
                match *slot {
                    Slot::Const(c) => *to = (&raw const launch.consts[c as usize]).cast_mut().cast(),
                    Slot::Tile(t) => *to = self.scratch.add(t as usize * TILE_BYTES),
                    Slot::Single(_) | Slot::Input(_) | Slot::Output(_) => {}
                }
            }
        }
        // SAFETY: constants' slots have just been set.
        unsafe {
            self.set_singles(|_| 0);
            self.fills(true);
        }
    }

    /// Repeats constants, or else other uniform values, over their tiles.
    unsafe fn fills(&mut self, constant: bool) {
        for f in self.job.launch.schedule.fills.iter().filter(|f| f.constant == constant) {
            let n = self.strategy().tile.clamp(TILE, TILE_BYTES / f.dtype.size());
            // SAFETY: the source holds one element; the target is a tile, which has room for so many.
            unsafe { fill(self.table[f.from as usize], f.dtype, n, self.table[f.to as usize]) };
        }
    }

    /// Goes to a row.
    unsafe fn seek(&mut self, row: usize) -> Result<(), u32> {
        let (launch, g) = (self.job.launch, self.job.launch.geometry);
        let mut rest = row;
        for (i, n) in self.index.iter_mut().zip(&g.rows).rev() {
            *i = rest % n;
            rest /= n;
        }
        for ((base, o), b) in self.bases.iter_mut().zip(&g.operands).zip(launch.inputs) {
            let steps: isize = self.index.iter().zip(&o.rows).map(|(i, s)| *i as isize * s).sum();
            *base = b.start.wrapping_offset((b.offset as isize + steps) * b.dtype.size() as isize);
        }
        // SAFETY: passed on.
        unsafe { self.begin_row() }
    }

    /// Goes to the next row.
    unsafe fn next_row(&mut self) -> Result<(), u32> {
        let (launch, g) = (self.job.launch, self.job.launch.geometry);
        let mut d = g.rows.len();
        while d > 0 {
            d -= 1;
            self.index[d] += 1;
            let wrapped = self.index[d] == g.rows[d];
            if wrapped {
                self.index[d] = 0;
            }
            for ((base, o), b) in self.bases.iter_mut().zip(&g.operands).zip(launch.inputs) {
                let steps = if wrapped { o.rows[d] * (1 - g.rows[d] as isize) } else { o.rows[d] };
                *base = base.wrapping_offset(steps * b.dtype.size() as isize);
            }
            if !wrapped {
                break;
            }
        }
        // SAFETY: passed on.
        unsafe { self.begin_row() }
    }

    /// Rows from the current one on along the innermost of the outer dims.
    fn rows_left(&self) -> usize {
        self.job.launch.geometry.rows.last().zip(self.index.last()).map_or(1, |(all, at)| all - at)
    }

    /// Does what depends on the row alone: pointers of broadcast operands, patterns, uniform values.
    unsafe fn begin_row(&mut self) -> Result<(), u32> {
        let launch = self.job.launch;
        for (slot, i) in &self.slots.broadcast {
            self.table[*slot as usize] = self.bases[*i as usize].cast_mut();
        }
        // SAFETY: the prologue reads and writes single elements; passed on.
        unsafe {
            self.write_patterns();
            launch.schedule.prologue.iter().try_for_each(|stage| self.block(stage, 1))?;
            self.fills(false);
        }
        Ok(())
    }

    /// Writes operands out that repeat along the inner loop, so that a tile can begin anywhere in them.
    unsafe fn write_patterns(&self) {
        let launch = self.job.launch;
        for (_, i) in &self.slots.copied {
            let i = *i as usize;
            let Access::Periodic(period) = launch.geometry.operands[i].access else { continue };
            let size = launch.inputs[i].dtype.size();
            let (once, all) = (period * size, (period + self.strategy().tile.min(launch.geometry.inner)) * size);
            // SAFETY: the operand has `period` contiguous elements from its base on; the scratch has room for all, of which the
            // first `written` bytes, whole periods, are copied behind themselves.
            unsafe {
                let to = self.scratch.add(self.rooms[i]);
                std::ptr::copy_nonoverlapping(self.bases[i], to, once);
                let mut written = once;
                while written < all {
                    let n = written.min(all - written);
                    std::ptr::copy_nonoverlapping(to, to.add(written), n);
                    written += n;
                }
            }
        }
    }

    /// Where a uniform value of the current row is, followed by those of the rows behind it that are computed together.
    unsafe fn single(&self, s: u32) -> *mut u8 {
        // SAFETY: the layout has a place for every one.
        unsafe { self.scratch.add(self.layout.singles + s as usize * self.layout.single) }
    }

    /// The padded copy of an operand, or behind these of a result.
    unsafe fn padded(&self, index: usize) -> *mut u8 {
        // SAFETY: the layout has a padded place for every operand and result.
        unsafe { self.scratch.add(self.layout.padded + index * PADDED) }
    }

    /// One of the staged tiles of reduction `k`.
    unsafe fn staged(&self, k: usize, which: usize) -> *mut u8 {
        // SAFETY: the layout has so many tiles for every reduction.
        unsafe { self.scratch.add(self.layout.staged + (STAGED_TILES * k + which) * TILE_BYTES) }
    }

    /// Keeps the message of a stage that has refused its data; its step.
    #[cold]
    fn refused(&self, stage: &BlockStage, refusal: Refusal) -> u32 {
        self.refusal.set(refusal);
        stage.step
    }

    /// Runs a kernel on `n` elements.
    unsafe fn block(&self, stage: &BlockStage, n: usize) -> Result<(), u32> {
        let args = stage.args.map(|a| a.map_or(std::ptr::null(), |a| self.table[a as usize].cast_const()));
        // SAFETY: every slot points at `n` elements of its value's dtype, aligned; the result has a slot of its own.
        unsafe { stage.f.run(args, self.table[stage.out as usize], n) }.map_err(|refusal| self.refused(stage, refusal))
    }
}
