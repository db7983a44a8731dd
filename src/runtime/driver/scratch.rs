//! How the scratch memory of a thread is divided.
//!
//! Guarantees: parts do not overlap, and lanes begin at cache lines. Does not: hold the memory; `worker` does.

use super::gather::tile_room;
use super::job::{Job, is_across};
use super::{Access, Operand};
use crate::backend::abi::WIDTH;
use crate::kernels::reduce::LANES;
use crate::ops::MAX_OPERANDS;
use crate::plan::tuning::{PLAIN_TILE, ROW_BLOCK, SUMMED_ROWS, TILE, UNIFORM_ROWS};

/// Room for one element of the widest dtype times [`WIDTH`].
pub(super) const PADDED: usize = 16 * WIDTH;

/// Room for a tile of the widest dtype.
pub(super) const WIDE_TILE: usize = 16 * TILE;

/// Room for the lanes of a reduction of the widest dtype.
pub(super) const WIDE_LANES: usize = 16 * LANES;

const _: () = assert!(SUMMED_ROWS * 8 * LANES <= ROW_BLOCK * WIDE_LANES);

/// Room for a value that is uniform in each of [`UNIFORM_ROWS`] rows, of the widest dtype.
pub(super) const UNIFORM_ROOM: usize = 16 * UNIFORM_ROWS;

/// Where the parts of the scratch begin, in bytes.
pub(super) struct Layout {
    pub(super) singles: usize,
    /// Room for one uniform value.
    pub(super) single: usize,
    pub(super) uniform: usize,
    pub(super) gathered: usize,
    pub(super) padded: usize,
    pub(super) staged: usize,
    pub(super) lanes: usize,
    pub(super) total: usize,
}

impl Layout {
    pub(super) fn new(job: &Job<'_>) -> Layout {
        let launch = job.launch;
        let singles = launch.schedule.tiles as usize * WIDE_TILE;
        let rows = launch.any_length && launch.schedule.walks_rows && !launch.geometry.rows.is_empty();
        let single = if rows { UNIFORM_ROOM } else { 16 };
        let uniform = singles + (launch.schedule.singles as usize * single).next_multiple_of(64);
        // Operands of one step on uniform values.
        let gathered = uniform + if rows { MAX_OPERANDS * UNIFORM_ROOM } else { 0 };
        let copies = launch.geometry.operands.iter().map(copy_room).sum::<usize>();
        let padded = gathered + copies;
        let staged = padded + (launch.inputs.len() + job.outputs.len()) * PADDED;
        // Of each reduction, a tile that was computed in two steps, two rows of results, and the lanes of rows.
        let lanes = staged + job.folds.len() * 3 * WIDE_TILE;
        Layout {
            singles,
            single,
            uniform,
            gathered,
            padded,
            staged,
            lanes,
            total: lanes + job.folds.len() * ROW_BLOCK * WIDE_LANES,
        }
    }
}

/// Scratch for the copies of an operand.
pub(super) fn copy_room(o: &Operand) -> usize {
    match &o.access {
        Access::Broadcast | Access::Contiguous => 0,
        Access::Periodic(n) => ((n + PLAIN_TILE) * 16).next_multiple_of(64),
        Access::Gather(..) if is_across(o) => ROW_BLOCK * tile_room(16),
        Access::Gather(..) => WIDE_TILE,
    }
}
