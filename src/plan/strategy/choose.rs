//! The choice of a strategy.
//!
//! Does not: measure; the limits are those of `tuning`.

use smallvec::SmallVec;

use super::{CALL_SLOTS, ColumnGroups, Prefetch, RowFold, StackedGroups, Strategy, Walk};
use crate::kernels::num::IntFn;
use crate::kernels::reduce::{LANES, side_by_side};
use crate::plan::geometry::{Access, Fold, Geometry, OperandAccess};
use crate::plan::schedule::{Schedule, Slot, SlotId, Stage};
use crate::plan::tuning::{
    FOLDED_ROWS, LONG_ROW, PATTERN_BYTES, PATTERN_STEP, PIECE, PLAIN_TILES, ROW_BLOCK, SHARED_BYTES, SHARED_FROM,
    SHARED_MOST, STEPS_BETWEEN_CHECKS, SUMMED_ROWS, TILE, TILE_BYTES, UNIFORM_ROWS,
};

/// How a launch walks a domain that has elements. `multiple` divides the lengths that the segments take: 1 if they take
/// any.
pub(crate) fn choose(schedule: &Schedule, geometry: &Geometry, multiple: usize) -> Strategy {
    let mut sizes = SmallVec::from_elem(0, geometry.operands.len());
    for (slot, dtype) in schedule.slots.iter().zip(&schedule.dtypes) {
        if let Slot::Input(i) = slot {
            sizes[*i as usize] = dtype.size();
        }
    }
    Chooser { schedule, geometry, sizes, multiple }.strategy()
}

struct Chooser<'a> {
    schedule: &'a Schedule,
    geometry: &'a Geometry,
    /// Bytes of an element of each operand.
    sizes: SmallVec<[usize; 8]>,
    multiple: usize,
}

/// Elements of a tile and of a piece, and pieces of the inner loop.
#[derive(Clone, Copy)]
struct Cut {
    tile: usize,
    piece: usize,
    pieces: usize,
}

impl Chooser<'_> {
    fn strategy(&self) -> Strategy {
        let fold = self.fold();
        let cut = self.cut(fold);
        let walk = self.walk(fold, cut);
        let units = self.units(walk, cut);
        Strategy {
            walk,
            fold,
            prefetch: self.prefetch(),
            tile: cut.tile,
            piece: cut.piece,
            pieces: cut.pieces,
            units,
            units_between_checks: self.units_between_checks(units),
            partials: self.partials(walk, cut),
            multiple: self.multiple,
        }
    }

    /// How the elements of rows are reduced.
    fn fold(&self) -> RowFold {
        match self.geometry.fold {
            Some(Fold::Rows(length)) if length < self.geometry.inner => RowFold::Short { length },
            Some(Fold::Rows(_)) if self.reduces_in_place() => RowFold::InPlace,
            Some(Fold::Rows(_)) if self.adds_sums() => {
                RowFold::Sums { contiguous: self.contiguous(self.schedule.walks_rows) }
            }
            Some(Fold::Rows(_)) => RowFold::Lanes { contiguous: self.contiguous(false) },
            Some(Fold::Columns(_)) if self.adds_sums() => RowFold::Sums { contiguous: None },
            None | Some(Fold::Columns(_) | Fold::Stacked { .. }) => RowFold::None,
        }
    }

    /// Whether segments can add something that is reduced.
    fn adds_sums(&self) -> bool {
        self.multiple == 1 && self.schedule.folds.iter().any(|f| f.is_sum)
    }

    /// Whether everything that is reduced is an operand in place.
    fn reduces_in_place(&self) -> bool {
        self.reduces_operands(|access| *access == Access::Contiguous)
    }

    /// Whether everything that is reduced is an operand with such an access.
    fn reduces_operands(&self, has: impl Fn(&Access) -> bool) -> bool {
        let s = self.schedule;
        let is_operand = |slot: SlotId| match s.slots[slot as usize] {
            Slot::Input(i) => has(&self.geometry.operands[i as usize].access),
            _ => false,
        };
        s.body.is_empty() && s.folds.iter().all(|f| is_operand(f.slot))
    }

    /// Elements of the parts of a row in which all its operands are contiguous or broadcast, if all gathered operands
    /// have such parts and they are long enough to be tiles. So it is for a reduction over the images of a batch,
    /// channel by channel. Only where operands are reduced, or one segment computes and adds everything (`adds_all`).
    fn contiguous(&self, adds_all: bool) -> Option<usize> {
        let reads = self.reduces_operands(|access| *access != Access::Broadcast);
        if !(reads || adds_all) {
            return None;
        }
        let mut part = None;
        for o in &self.geometry.operands {
            match &o.access {
                Access::Broadcast | Access::Contiguous => {}
                Access::Gather(extents, strides) if strides.last() == Some(&1) => {
                    let own = *extents.last()?;
                    if part.is_some_and(|known| known != own) {
                        return None;
                    }
                    part = Some(own);
                }
                Access::Gather(..) | Access::Generated(..) | Access::Periodic(_) => return None,
            }
        }
        // A segment that adds a part which begins between the first and the last lane needs two calls.
        part.filter(|n| *n >= if reads || n.is_multiple_of(LANES) { TILE } else { 3 * TILE })
    }

    fn cut(&self, fold: RowFold) -> Cut {
        let most = if self.reduces_in_place() { PIECE } else { TILE };
        let whole = |tile| (tile, tile);
        let (tile, piece) = match (self.geometry.fold, fold) {
            (None, _) if self.is_plain() => whole(self.pattern().unwrap_or(PLAIN_TILES * self.schedule.tile)),
            (None, _) => whole(self.schedule.tile),
            // Short rows are not cut.
            (Some(Fold::Rows(n)), RowFold::Short { .. }) if n <= TILE => whole(most / n * n),
            (Some(Fold::Rows(_)), RowFold::Short { .. }) => whole(most),
            (Some(Fold::Rows(n)), _) if n <= TILE => (most / n * n, PIECE),
            (Some(Fold::Rows(_)), _) if self.adds_alone(fold) => (PIECE, PIECE),
            (Some(Fold::Rows(n)), _) if most == TILE => (n.min(self.longest_tile()), PIECE),
            (Some(Fold::Rows(_)), _) => (most, PIECE),
            (Some(Fold::Columns(_)), _) => whole(TILE),
            (Some(Fold::Stacked { count, width }), _) => match stack(count, width) {
                Walk::StackedGroups(s) => {
                    let (row, unit) = (s.together * width, FOLDED_ROWS * s.together * width);
                    (if most == PIECE { unit } else { TILE / row * row }, unit)
                }
                _ => whole(most / (count * width) * (count * width)),
            },
        };
        Cut { tile, piece, pieces: self.geometry.inner.div_ceil(piece) }
    }

    /// Elements of a tile for which there is room. Where operands are transposed, tiles are closer together.
    fn longest_tile(&self) -> usize {
        if self.geometry.operands.iter().any(OperandAccess::is_transposed) {
            return TILE;
        }
        (TILE_BYTES / self.schedule.widest.max(1)).min(PIECE)
    }

    fn walk(&self, fold: RowFold, cut: Cut) -> Walk {
        let (s, g) = (self.schedule, self.geometry);
        match g.fold {
            Some(Fold::Columns(count)) => return Walk::Columns { count, how: self.column_groups(count, fold) },
            Some(Fold::Stacked { count, width }) => return stack(count, width),
            None | Some(Fold::Rows(_)) => {}
        }
        let any_length = self.multiple == 1;
        let copies = g.operands.iter().any(|o| !o.is_in_place());
        let tiled = copies || s.body.len() != 1 || s.tiles > 0 || !s.folds.is_empty();
        // Tiles that hold nothing but what a segment adds to lanes are not needed.
        let tiled = tiled && !(self.adds_alone(fold) && cut.pieces == 1);
        if self.is_call() {
            Walk::Call
        } else if g.operands.iter().any(OperandAccess::is_transposed) {
            Walk::RowBlocks
        } else if any_length && s.walks_rows && !tiled && g.row_count() > 1 {
            Walk::Rows { columns: self.columns(), rows: self.rows_a_call() }
        } else if fold == RowFold::InPlace && cut.pieces == 1 {
            Walk::ReducedRows
        } else if any_length && self.pattern().is_some() {
            Walk::Patterns
        } else if !tiled {
            Walk::Ranges
        } else {
            Walk::Tiles
        }
    }

    /// Whether it is one call of one segment.
    fn is_call(&self) -> bool {
        let (s, g) = (self.schedule, self.geometry);
        let few = s.slots.len() <= CALL_SLOTS && s.segments.len() == 1;
        s.plain && few && g.inner.is_multiple_of(self.multiple) && g.in_place()
    }

    /// Whether the body is one segment, no operand is gathered, and nothing is reduced.
    fn is_plain(&self) -> bool {
        self.schedule.plain
            && self.geometry.fold.is_none()
            && !self.geometry.operands.iter().any(OperandAccess::is_gathered)
    }

    /// Whether one segment adds everything that is reduced, and no operand is copied: then a piece is one call. An
    /// element's lane follows from its place in the piece, which is that in the call too.
    fn adds_alone(&self, fold: RowFold) -> bool {
        let adds = matches!(fold, RowFold::Sums { .. });
        adds && self.schedule.walks_rows && self.geometry.operands.iter().all(OperandAccess::is_in_place)
    }

    /// Elements of a tile in which each operand that repeats along the inner loop does so a whole number of times, if
    /// there is such an operand, nothing else needs a copy, and the tile is not too long.
    fn pattern(&self) -> Option<usize> {
        if !self.is_plain() {
            return None;
        }
        let (mut step, mut bytes) = (PATTERN_STEP, 0);
        for (o, size) in self.geometry.operands.iter().zip(&self.sizes) {
            if let Access::Periodic(period) = o.access {
                step *= period / IntFn::gcd(step as i64, period as i64) as usize;
                bytes += size;
                if step > PLAIN_TILES * TILE {
                    return None;
                }
            }
        }
        let most = PATTERN_BYTES.checked_div(bytes)?.min(PLAIN_TILES * TILE);
        Some((most / step).max(1) * step)
    }

    /// Elements of a row that one call computes, of each of many rows.
    fn columns(&self) -> usize {
        let (s, g) = (self.schedule, self.geometry);
        let is_result = |(slot, _): &(&Slot, _)| matches!(slot, Slot::Output(_));
        let results = s.slots.iter().zip(&s.dtypes).filter(is_result).map(|(_, d)| d.size()).sum::<usize>();
        let (mut element, mut shared) = (results, 0);
        for (o, size) in g.operands.iter().zip(&self.sizes).filter(|(o, _)| o.access == Access::Contiguous) {
            *if o.rows.last() == Some(&0) { &mut shared } else { &mut element } += size;
        }
        let all = element.saturating_mul(g.inner).saturating_mul(g.row_count());
        if shared * g.inner < SHARED_FROM || all > SHARED_MOST {
            return g.inner;
        }
        (SHARED_BYTES / shared / PATTERN_STEP).max(1) * PATTERN_STEP
    }

    /// Rows that one call computes at most: those that follow each other along the last of the outer dims.
    fn rows_a_call(&self) -> usize {
        let (s, mut most) = (self.schedule, self.geometry.rows.last().copied().unwrap_or(1));
        if !s.prologue.is_empty() {
            most = most.min(UNIFORM_ROWS);
        }
        if !s.folds.is_empty() {
            most = most.min(SUMMED_ROWS);
        }
        most
    }

    /// One call combines rows that follow each other along one dim.
    fn column_groups(&self, count: usize, fold: RowFold) -> ColumnGroups {
        if self.geometry.rows.last() != Some(&count) {
            ColumnGroups::RowByRow
        } else if self.reduces_in_place() {
            ColumnGroups::InPlace { stride: self.least_row_stride() }
        } else if self.adds_alone(fold) && self.schedule.prologue.is_empty() {
            ColumnGroups::Added
        } else {
            ColumnGroups::RowByRow
        }
    }

    /// The least number of elements between the beginnings of two rows of the reduced operands; 0 if one goes backwards.
    fn least_row_stride(&self) -> usize {
        let stride = |slot: SlotId| match self.schedule.slots[slot as usize] {
            Slot::Input(i) => self.geometry.operands[i as usize].row_stride().max(0) as usize,
            _ => 0,
        };
        self.schedule.folds.iter().map(|f| stride(f.slot)).min().unwrap_or(0)
    }

    /// A prefetch behind the end of a row reads what the next row begins with, or is rare because rows are long.
    fn prefetch(&self) -> Prefetch {
        let inner = self.geometry.inner;
        let follows = |o: &OperandAccess| [0, inner as isize].contains(&o.row_stride());
        let pays = |(o, size): (&OperandAccess, &usize)| match o.access {
            Access::Broadcast => true,
            Access::Contiguous => inner.saturating_mul(*size) >= LONG_ROW || follows(o),
            Access::Periodic(_) | Access::Gather(..) | Access::Generated(..) => false,
        };
        if self.geometry.operands.iter().zip(&self.sizes).all(pays) { Prefetch::Segments } else { Prefetch::Off }
    }

    fn units(&self, walk: Walk, cut: Cut) -> usize {
        let g = self.geometry;
        match walk {
            Walk::Columns { count, .. } => g.row_count() / count * count.div_ceil(FOLDED_ROWS) * cut.pieces,
            Walk::StackedTiles { .. } => cut.pieces,
            Walk::StackedGroups(s) => g.inner / (s.count * s.width) * s.groups,
            Walk::RowBlocks => {
                let (last, outer) = g.rows.split_last().map_or((1, 1), |(n, o)| (*n, o.iter().product()));
                outer * last.div_ceil(ROW_BLOCK) * cut.pieces
            }
            _ => g.row_count() * cut.pieces,
        }
    }

    /// One for each piece of a row, or one row for each group of rows.
    fn partials(&self, walk: Walk, cut: Cut) -> usize {
        let g = self.geometry;
        match (g.fold, walk) {
            (None, _) => 0,
            (Some(Fold::Rows(n)), _) if n < g.inner => g.inner / n,
            (Some(Fold::Rows(_)), _) => g.row_count() * cut.pieces,
            (Some(Fold::Columns(n)), _) => g.row_count() / n * n.div_ceil(FOLDED_ROWS) * g.inner,
            (Some(Fold::Stacked { count, .. }), Walk::StackedGroups(s)) => g.inner / count * s.groups,
            (Some(Fold::Stacked { count, .. }), _) => g.inner / count,
        }
    }

    /// A check comes between units, whose ends do not change results.
    fn units_between_checks(&self, units: usize) -> usize {
        let steps = |s: &Stage| match s {
            Stage::Block(_) => 1,
            Stage::Segment(i) => self.schedule.segments[*i as usize].steps.len(),
        };
        let elements = (self.geometry.row_count() * self.geometry.inner / units.max(1)).max(1);
        let steps = elements.saturating_mul(self.schedule.body.iter().map(steps).sum());
        STEPS_BETWEEN_CHECKS / steps.clamp(1, STEPS_BETWEEN_CHECKS)
    }
}

/// How stacks of `count` rows of `width` elements are reduced.
fn stack(count: usize, width: usize) -> Walk {
    if count * width <= TILE {
        return Walk::StackedTiles { count, width };
    }
    let together = side_by_side(count, width);
    Walk::StackedGroups(StackedGroups { count, width, together, groups: count.div_ceil(FOLDED_ROWS * together) })
}
