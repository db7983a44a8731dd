//! How a launch walks its domain: which elements each call computes, how they are reduced, and into which units the work is cut.
//!
//! Guarantees: [`choose()`] alone decides it, from the geometry, the schedule and the lengths that the segments take, so that launches
//! over equal layouts walk alike; where a reduction is cut follows from the shape alone; a strategy prints itself. Does not: run
//! anything, or look at addresses, threads and what else changes from launch to launch: the driver decides what is streamed and
//! how many units a thread takes at a time.

use std::fmt;

use crate::kernels::reduce::LANES;
use crate::plan::tuning::ROW_BLOCK;
pub(crate) use choose::choose;

mod choose;
#[cfg(test)]
mod tests;

/// Slots of a schedule that is called without scratch, at most: their pointers are on the stack.
pub(crate) const CALL_SLOTS: usize = 32;

/// Which elements a call computes, and in which order the calls come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// The domain is one inner loop over operands in place: a call of the segment for any range of it, without scratch.
    Call,
    /// A body of one stage that needs no tiles: a call for each row, or part of a row.
    Ranges,
    /// The body for each tile of each row.
    Tiles,
    /// Operands repeat along the inner loop, a whole number of times in a tile: one call of the segment for many tiles, all of
    /// which read the same written out patterns.
    Patterns,
    /// One call of the segment for `columns` elements of up to `rows` rows.
    Rows { columns: usize, rows: usize },
    /// Operands in place are reduced and nothing is computed: kernels reduce row after row, each in one call.
    ReducedRows,
    /// Some operands are transposed: the body for a tile of each of [`ROW_BLOCK`] rows, whose tiles of these operands are copied
    /// together.
    RowBlocks,
    /// Every `count` rows become one: a tile of columns of each group of rows.
    Columns { count: usize, how: ColumnGroups },
    /// Every `count` rows of `width` elements, stacked in the inner loop, become one, and a tile holds several such stacks.
    StackedTiles { count: usize, width: usize },
    /// The same where a tile holds less than one stack.
    StackedGroups(StackedGroups),
}

/// How a tile of columns of a group of rows is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnGroups {
    /// By one call of a kernel, since they are operands in place, whose rows begin so many elements apart, at least.
    InPlace { stride: usize },
    /// By one call of a segment, which adds all of them.
    Added,
    /// Row by row.
    RowByRow,
}

/// How stacks of rows are reduced that are longer than a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackedGroups {
    /// Rows of a stack.
    pub(crate) count: usize,
    /// Elements of a row.
    pub(crate) width: usize,
    /// Rows that are combined as if they were one, until one of them is left.
    pub(crate) together: usize,
    /// Groups of a stack: each becomes a partial row.
    pub(crate) groups: usize,
}

/// How the elements of a row are reduced to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFold {
    /// They are not.
    None,
    /// Rows of `length` elements are joined to one inner loop: a kernel reduces the rows of a tile.
    Short { length: usize },
    /// What is reduced are operands in place: a kernel reduces a piece of a row in one call.
    InPlace,
    /// Kernels combine each tile with the lanes of its piece, and these when the piece ends. `contiguous`: gathered operands have
    /// contiguous parts of so many elements along the row, and a tile is one such part, which is read in place.
    Lanes { contiguous: Option<usize> },
    /// The same, but segments add sums to the lanes while they compute the elements; kernels do other reductions. Where rows become
    /// one, each column is a lane.
    Sums { contiguous: Option<usize> },
}

/// Whether segments prefetch their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// No: what lies behind a row is not read next.
    Off,
    /// Where they add sums, or stream results.
    Segments,
}

/// How a launch walks its domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strategy {
    pub(crate) walk: Walk,
    pub(crate) fold: RowFold,
    pub(crate) prefetch: Prefetch,
    /// Elements of a tile. (A pattern is as long; [`Walk::Ranges`] has no tiles but counts its units in them.)
    pub(crate) tile: usize,
    /// Elements of the inner loop in a unit of work.
    pub(crate) piece: usize,
    /// Pieces of the inner loop.
    pub(crate) pieces: usize,
    /// Units of work, which can be done in any order and by several threads.
    pub(crate) units: usize,
    /// Units between two checks of what can stop the run.
    pub(crate) units_between_checks: usize,
    /// Partial results of each reduction.
    pub(crate) partials: usize,
    /// What divides the number of elements in a call of a segment: 1 if segments take any number.
    pub(crate) multiple: usize,
}

impl Strategy {
    /// How many elements of a row the body computes next, from `at` on and before `end`.
    pub(crate) fn step(&self, at: usize, end: usize) -> usize {
        let left = end - at;
        match (self.fold, self.walk) {
            // A segment adds to consecutive lanes, from that of the first element on: the next call begins at the first lane.
            (RowFold::Sums { contiguous: Some(_) }, _) if !at.is_multiple_of(LANES) => left.min(LANES - at % LANES),
            (RowFold::Sums { contiguous: Some(part) } | RowFold::Lanes { contiguous: Some(part) }, _) => {
                left.min(part - at % part).min(self.piece - at % self.piece)
            }
            (_, Walk::Call | Walk::Ranges | Walk::Rows { .. }) => left,
            _ => left.min(self.tile),
        }
    }

    /// Whether segments add sums.
    pub(crate) fn adds(&self) -> bool {
        matches!(self.fold, RowFold::Sums { .. })
    }
}

impl fmt::Display for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Walk::Call => f.write_str("call, without scratch"),
            Walk::Ranges => f.write_str("ranges of rows"),
            Walk::Tiles => f.write_str("tiles"),
            Walk::Patterns => f.write_str("patterns, many tiles a call"),
            Walk::Rows { columns, rows } => write!(f, "rows, {columns} elements of up to {rows} rows a call"),
            Walk::ReducedRows => f.write_str("reduced rows, one a call"),
            Walk::RowBlocks => write!(f, "blocks of {ROW_BLOCK} rows, tile by tile"),
            Walk::Columns { count, how } => match how {
                ColumnGroups::InPlace { stride } => {
                    write!(f, "columns, {count} rows to one, in place at stride {stride}")
                }
                ColumnGroups::Added => write!(f, "columns, {count} rows to one, many rows a call"),
                ColumnGroups::RowByRow => write!(f, "columns, {count} rows to one"),
            },
            Walk::StackedTiles { count, width } => write!(f, "stacks in tiles, {count} rows of {width} to one"),
            Walk::StackedGroups(s) => write!(
                f,
                "stacks in {} groups, {} rows of {} to one, {} together",
                s.groups, s.count, s.width, s.together
            ),
        }
    }
}

impl fmt::Display for RowFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, contiguous) = match self {
            RowFold::None => return f.write_str("none"),
            RowFold::Short { length } => return write!(f, "short rows of {length}"),
            RowFold::InPlace => return f.write_str("in place"),
            RowFold::Lanes { contiguous } => ("kernels into lanes", contiguous),
            RowFold::Sums { contiguous } => ("segments into lanes", contiguous),
        };
        f.write_str(by)?;
        contiguous.map_or(Ok(()), |n| write!(f, ", contiguous parts of {n}"))
    }
}

impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Prefetch::Off => "off",
            Prefetch::Segments => "segments that add or stream",
        })
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("strategy {\n")?;
        writeln!(f, "  walk {}", self.walk)?;
        writeln!(f, "  fold {}", self.fold)?;
        writeln!(f, "  prefetch {}", self.prefetch)?;
        writeln!(f, "  tile {}", self.tile)?;
        writeln!(f, "  piece {}, {} a row", self.piece, self.pieces)?;
        writeln!(f, "  units {}, {} between checks", self.units, self.units_between_checks)?;
        if self.partials > 0 {
            writeln!(f, "  partials {}", self.partials)?;
        }
        match self.multiple {
            1 => writeln!(f, "  lengths any")?,
            n => writeln!(f, "  lengths multiples of {n}")?,
        }
        f.write_str("}\n")
    }
}
