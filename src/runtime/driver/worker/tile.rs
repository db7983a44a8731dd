//! The body of a schedule on part of a row.
//!
//! Guarantees: as [`super`]'s; segments that take only multiples of their width get the elements left over in padded copies.
//! Does not: reduce what was computed.

use super::super::gather::{Strided, contiguous, fill, gather, row_room};
use super::super::job::begins_cache_line;
use super::super::made::make;
use super::Worker;
use crate::backend::abi::{ADD, AHEAD, STREAM, WIDTH};
use crate::plan::geometry::Access;
use crate::plan::schedule::Stage;
use crate::plan::strategy::Prefetch;

/// Where the values are that are to be reduced.
#[derive(Clone, Copy)]
pub(super) enum Values {
    /// In the slots of the schedule.
    Slots,
    /// In staged tiles, since they were computed in two calls.
    Staged,
}

impl Worker<'_> {
    /// Computes `n` elements of the row from `at` on.
    ///
    /// # Safety
    /// As [`Worker::units`]; the elements are of the current row.
    pub(super) unsafe fn span(&mut self, row: usize, at: usize, n: usize) -> Result<Values, u32> {
        let rest = n % self.strategy().multiple;
        let whole = n - rest;
        // SAFETY: passed on.
        unsafe {
            if whole > 0 {
                self.tile(row, at, whole, false)?;
            }
            if rest == 0 {
                return Ok(Values::Slots);
            }
            if whole > 0 {
                self.stage(0, whole);
            }
            self.tile(row, at + whole, rest, true)?;
            if whole == 0 {
                return Ok(Values::Slots);
            }
            self.stage(whole, rest);
        }
        Ok(Values::Staged)
    }

    /// Runs the body on `n` elements from `at`; `padded` if they are fewer than segments take.
    unsafe fn tile(&mut self, row: usize, at: usize, n: usize, padded: bool) -> Result<(), u32> {
        let launch = self.job.launch;
        // SAFETY: elements `at..at + n` of the row exist; padded copies hold at most WIDTH elements.
        unsafe {
            let stream = self.set_moving_slots(row * launch.geometry.inner + at, at, n, padded);
            let length = if padded { WIDTH } else { n } | self.flags(stream);
            for stage in &launch.schedule.body {
                match stage {
                    Stage::Block(b) => self.block(b, n)?,
                    Stage::Segment(s) => (launch.segments[*s as usize].run)(self.table.as_mut_ptr(), length),
                }
            }
            for f in &launch.schedule.out_fills {
                fill(self.table[f.from as usize], f.dtype, n, self.table[f.to as usize]);
            }
            if padded {
                for (o, out) in self.job.outputs.iter().enumerate() {
                    let (size, from) = (out.dtype.size(), self.padded(launch.inputs.len() + o));
                    let to = out.start.add((row * launch.geometry.inner + at) * size);
                    std::ptr::copy_nonoverlapping(from, to, n * size);
                }
            }
        }
        Ok(())
    }

    /// Sets the slots of operands and results to elements `at..at + n` of the row, or to padded copies of them; `position` is that of
    /// the first in the results. Whether results can be streamed there.
    unsafe fn set_moving_slots(&mut self, position: usize, at: usize, n: usize, padded: bool) -> bool {
        let (launch, mut stream) = (self.job.launch, self.job.stream);
        // SAFETY: as `tile`'s.
        unsafe {
            for (slot, i, size) in &self.slots.contiguous {
                let from = self.bases[*i as usize].add(at * size);
                self.table[*slot as usize] = if padded {
                    let to = self.padded(*i as usize);
                    std::ptr::copy_nonoverlapping(from, to, n * size);
                    to
                } else {
                    from.cast_mut()
                };
            }
            for (slot, i) in &self.slots.copied {
                self.table[*slot as usize] = self.copied(*i as usize, at, n, padded);
            }
            for (slot, o) in &self.slots.results {
                let out = self.job.outputs[*o as usize];
                let pad = self.padded(launch.inputs.len() + *o as usize);
                let to = if padded { pad } else { out.start.add(position * out.dtype.size()) };
                stream &= begins_cache_line(to);
                self.table[*slot as usize] = to;
            }
        }
        stream
    }

    /// What segments are told with the number of elements; `stream`: whether they stream results.
    pub(super) fn flags(&self, stream: bool) -> usize {
        let strategy = self.strategy();
        let flag = |set: bool, flag: usize| if set { flag } else { 0 };
        let prefetch = strategy.prefetch == Prefetch::Segments && (stream || strategy.adds());
        flag(stream, STREAM) | flag(strategy.adds(), ADD) | flag(prefetch, AHEAD)
    }

    /// Where elements `at..at + n` of an operand that is copied can be read; if `padded`, also some behind them.
    pub(super) unsafe fn copied(&self, i: usize, at: usize, n: usize, padded: bool) -> *mut u8 {
        let launch = self.job.launch;
        let (dtype, base, operand) = (launch.inputs[i].dtype, self.bases[i], &launch.geometry.operands[i]);
        // SAFETY: elements `at..at + n` of the row exist; the copies go to places of their own.
        unsafe {
            let room = self.scratch.add(self.rooms[i]);
            match (&operand.access, self.transposed) {
                (Access::Broadcast, _) => base.cast_mut(),
                (Access::Contiguous, _) => base.add(at * dtype.size()).cast_mut(),
                (Access::Periodic(period), _) => room.add(at % period * dtype.size()),
                (Access::Gather(..), Some((r, start))) if operand.is_transposed() => {
                    room.add(r * row_room(dtype.size()) + (at - start) * dtype.size())
                }
                (Access::Generated(extents, strides), _) => {
                    if let Some(made) = launch.inputs[i].made {
                        make(made, Strided { base, extents, strides }, at, n, room);
                    }
                    room
                }
                (Access::Gather(extents, strides), _) => {
                    let from = Strided { base, extents, strides };
                    if let Some(place) = contiguous(from, dtype, at, n).filter(|_| !padded) {
                        return place.cast_mut();
                    }
                    gather(from, dtype, at, n, room);
                    room
                }
            }
        }
    }

    /// Where the values are that reduction `k` combines.
    pub(super) fn folded(&self, values: Values, k: usize) -> *const u8 {
        match values {
            Values::Slots => self.table[self.job.launch.schedule.folds[k].slot as usize].cast_const(),
            // SAFETY: a place of the layout.
            Values::Staged => unsafe { self.staged(k, 0) },
        }
    }

    /// Copies `n` values of each reduction from its slot to its staged tile, behind the first `at`.
    unsafe fn stage(&mut self, at: usize, n: usize) {
        for (k, fold) in self.job.folds.iter().enumerate() {
            let (from, size) = (self.folded(Values::Slots, k), fold.dtype.size());
            // SAFETY: a staged tile has room for all elements of a tile.
            unsafe { std::ptr::copy_nonoverlapping(from, self.staged(k, 0).add(at * size), n * size) };
        }
    }
}
