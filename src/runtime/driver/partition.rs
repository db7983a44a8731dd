//! How a launch is cut: tiles, pieces that are units of work, and partial results.
//!
//! Guarantees: where a reduction is cut follows from the shape alone, so that the order in which it combines elements does;
//! tiles may be larger or smaller beside. Does not: run anything.

use super::job::{Buffer, Launch, is_copied};
use super::{Access, Fold, Operand};
use crate::kernels::num::Int;
use crate::kernels::reduce::{LANES, side_by_side};
use crate::plan::schedule::{Slot, SlotId, Stage};
use crate::plan::tuning::{
    FOLDED_ROWS, LONG_ROW, PATTERN_BYTES, PATTERN_STEP, PIECE, PLAIN_TILE, STEPS_BETWEEN_CHECKS, TILE,
};

impl Launch<'_> {
    /// Elements of a tile: joined short rows are never cut. A single loop whose operands need no copy, or one that serves all
    /// tiles, has larger ones, as has what is reduced where it is read: they cost nothing but the call.
    pub(super) fn tile(&self) -> usize {
        match self.geometry.fold {
            None if self.is_plain() => self.pattern().unwrap_or(PLAIN_TILE / TILE * self.schedule.tile),
            None => self.schedule.tile,
            Some(Fold::Rows(n)) if n <= TILE => self.most_reduced() / n * n,
            Some(Fold::Rows(_)) if self.adds_alone() => PIECE,
            Some(Fold::Rows(_)) => self.most_reduced(),
            Some(Fold::Stacked { .. }) => self.stack().map_or(TILE, |s| s.tile),
            Some(Fold::Columns(_)) => TILE,
        }
    }

    /// Elements of a tile that is reduced, at most.
    fn most_reduced(&self) -> usize {
        if self.reduces_operands() { PIECE } else { TILE }
    }

    /// Whether whole runs are reduced.
    pub(super) fn is_long(&self) -> bool {
        matches!(self.geometry.fold, Some(Fold::Rows(n)) if n >= self.geometry.run)
    }

    /// Whether all that is reduced are operands, where they are.
    pub(super) fn reduces_operands(&self) -> bool {
        self.reduces_those(|access| *access == Access::Contiguous)
    }

    /// Whether all that is reduced are operands that are read in such a way.
    fn reduces_those(&self, is_read: impl Fn(&Access) -> bool) -> bool {
        let s = self.schedule;
        let is_read = |slot: SlotId| match s.slots[slot as usize] {
            Slot::Input(i) => is_read(&self.geometry.operands[i as usize].access),
            _ => false,
        };
        s.body.is_empty() && s.folds.iter().all(|f| is_read(f.slot))
    }

    /// Elements that lie side by side in every operand of a long reduction, again and again along the run, if what is reduced
    /// of them is read where it is or added up by one segment, and they are enough: then a tile can be all of them. So it is
    /// over the images of a batch, channel by channel.
    pub(super) fn side_by_side(&self) -> Option<usize> {
        let reads = self.reduces_those(|a| *a != Access::Broadcast);
        if !self.is_long() || !(reads || self.adds_in_one()) {
            return None;
        }
        let mut all = None;
        for o in &self.geometry.operands {
            match &o.access {
                Access::Broadcast | Access::Contiguous => {}
                Access::Gather(extents, strides) if strides.last() == Some(&1) => match all.replace(*extents.last()?) {
                    Some(before) if all != Some(before) => return None,
                    _ => {}
                },
                Access::Gather(..) | Access::Periodic(_) => return None,
            }
        }
        // What a segment adds up where the lanes began between takes two calls each time.
        all.filter(|n| *n >= if reads || n.is_multiple_of(LANES) { TILE } else { 3 * TILE })
    }

    /// How many elements apart the rows begin that the `k`-th reduction combines, if it reads an operand of which they all
    /// do, forwards; else 0.
    pub(super) fn rows_apart(&self, k: usize) -> usize {
        match (self.schedule.slots[self.schedule.folds[k].slot as usize], self.geometry.fold) {
            (Slot::Input(i), Some(Fold::Columns(n)))
                if self.reduces_operands() && self.geometry.rows.last() == Some(&n) =>
            {
                self.geometry.operands[i as usize].rows.last().map_or(0, |step| (*step).max(0) as usize)
            }
            _ => 0,
        }
    }

    /// How rows that lie one behind the other are combined, if any are.
    pub(super) fn stack(&self) -> Option<Stack> {
        let Some(Fold::Stacked { count, width }) = self.geometry.fold else { return None };
        let (all, most) = (count * width, self.most_reduced());
        if all <= TILE {
            let unit = most / all * all;
            return Some(Stack { count, width, whole: true, together: 1, groups: 1, unit, tile: unit });
        }
        let together = side_by_side(count, width);
        let (lanes, unit) = (together * width, FOLDED_ROWS * together * width);
        let tile = if self.reduces_operands() { unit } else { TILE / lanes * lanes };
        Some(Stack { count, width, whole: false, together, groups: count.div_ceil(FOLDED_ROWS * together), unit, tile })
    }

    /// Whether it is a single loop, of whose operands no tile is copied, and nothing is reduced.
    pub(super) fn is_plain(&self) -> bool {
        self.schedule.plain && self.geometry.fold.is_none() && !self.geometry.operands.iter().any(is_copied)
    }

    /// Elements of a tile of a single loop in which every operand that repeats along the run does so a whole number of
    /// times, so that one tile's copy of it serves all; if there is such an operand, and a tile that has room for it.
    pub(super) fn pattern(&self) -> Option<usize> {
        if !self.is_plain() {
            return None;
        }
        let (mut step, mut bytes) = (PATTERN_STEP, 0);
        for (o, b) in self.geometry.operands.iter().zip(self.inputs) {
            if let Access::Periodic(period) = o.access {
                step *= period / Int::gcd(step as i64, period as i64) as usize;
                bytes += b.dtype.size();
                if step > PLAIN_TILE {
                    return None;
                }
            }
        }
        let most = PATTERN_BYTES.checked_div(bytes)?.min(PLAIN_TILE);
        Some((most / step).max(1) * step)
    }

    /// Whether segments add up the sums of long rows themselves, those that they can.
    pub(super) fn adds(&self) -> bool {
        self.is_long() && self.any_length && self.schedule.folds.iter().any(|f| f.is_sum)
    }

    /// Whether what lies behind a row of an operand is read next, or the rows are long. Asking for it where it is not read
    /// takes twice as long (rows of 4 KiB, each of 16: sums and products).
    pub(super) fn reads_on(&self) -> bool {
        let run = self.geometry.run;
        let next = |r: &isize| *r == 0 || *r == run as isize;
        let goes_on = |(o, b): (&Operand, &Buffer<'_>)| match o.access {
            Access::Broadcast => true,
            Access::Contiguous => run * b.dtype.size() >= LONG_ROW || o.rows.last().is_none_or(next),
            _ => false,
        };
        self.geometry.operands.iter().zip(self.inputs).all(goes_on)
    }

    /// Whether one segment adds up all there is to reduce, and needs no tile: then, where operands are read where they are, a
    /// piece is one call. Lanes go by the place in the piece, which is that in the tile too.
    fn adds_alone(&self) -> bool {
        self.adds_in_one()
            && self.geometry.operands.iter().all(|o| matches!(o.access, Access::Broadcast | Access::Contiguous))
    }

    fn adds_in_one(&self) -> bool {
        self.adds() && self.schedule.walks_rows
    }

    /// Whether one call can compute many rows: they have no tiles, or those of their sums alone.
    pub(super) fn walks_rows(&self, tiled: bool) -> bool {
        let sums = || self.adds_alone() && self.pieces() == 1;
        self.any_length && self.schedule.walks_rows && (!tiled || sums())
    }

    /// Elements of a run that are one unit of work: a tile, or where a long row is reduced, the tiles that are combined
    /// side by side before their lanes are combined.
    pub(super) fn piece(&self) -> usize {
        match self.geometry.fold {
            Some(Fold::Rows(_)) if self.is_long() => PIECE,
            Some(Fold::Stacked { .. }) => self.stack().map_or(TILE, |s| s.unit),
            _ => self.tile(),
        }
    }

    /// Pieces of a run.
    pub(super) fn pieces(&self) -> usize {
        self.geometry.run.div_ceil(self.piece())
    }

    /// Partial results of each reduction: one a piece of a run, or one run for so many rows.
    pub(crate) fn partials(&self) -> usize {
        let g = self.geometry;
        match g.fold {
            None => 0,
            Some(Fold::Rows(n)) if n < g.run => g.run / n,
            Some(Fold::Rows(_)) => g.row_count() * self.pieces(),
            Some(Fold::Columns(n)) => g.row_count() / n * n.div_ceil(FOLDED_ROWS) * g.run,
            Some(Fold::Stacked { count, .. }) => g.run / count * self.stack().map_or(1, |s| s.groups),
        }
    }
}

/// How rows that lie one behind the other are combined.
#[derive(Clone, Copy)]
pub(super) struct Stack {
    pub(super) count: usize,
    pub(super) width: usize,
    /// Whether a tile has room for all that become one. If not, they are combined group by group.
    pub(super) whole: bool,
    /// Rows of a group that are combined side by side.
    pub(super) together: usize,
    /// Groups of the rows that become one.
    pub(super) groups: usize,
    /// Elements of a unit of work: a group, of which the last may be shorter, or a tile of as many whole ones as it has room
    /// for.
    pub(super) unit: usize,
    pub(super) tile: usize,
}

impl Stack {
    /// Units of work of so many elements.
    pub(super) fn units(&self, elements: usize) -> usize {
        if self.whole { elements.div_ceil(self.unit) } else { elements / (self.count * self.width) * self.groups }
    }
}

impl Launch<'_> {
    /// Units of the work between two looks at what can stop it. Where a run is cut does not change results: it is at
    /// the tiles' ends.
    pub(super) fn units_between_checks(&self) -> usize {
        let steps = |s: &Stage| match s {
            Stage::Block(_) => 1,
            Stage::Segment(i) => self.schedule.segments[*i as usize].steps.len(),
        };
        let tiles = self.piece().div_ceil(self.tile());
        let steps = tiles * self.schedule.body.iter().map(steps).sum::<usize>();
        STEPS_BETWEEN_CHECKS / steps.clamp(1, STEPS_BETWEEN_CHECKS)
    }
}
