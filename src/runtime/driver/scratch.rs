//! The scratch memory of a thread: copies of operands, tiles, uniform values, lanes of reductions; and the lists of a launch.
//!
//! Guarantees: the parts of [`ScratchLayout`] do not overlap, and lanes begin at cache lines; the memory is kept from launch to launch.
//! Does not: say what is in the parts; `worker` does.

use std::cell::RefCell;

use super::gather::row_room;
use super::job::Job;
use crate::backend::abi::{WIDTH, lane_bits, row_words, table_size, word};
use crate::kernels::reduce::LANES;
use crate::ops::MAX_OPERANDS;
use crate::plan::geometry::{Access, OperandAccess};
use crate::plan::schedule::{Slot, SlotId};
use crate::plan::strategy::Walk;
use crate::plan::tuning::{PLAIN_TILES, ROW_BLOCK, SUMMED_ROWS, TILE, TILE_BYTES, UNIFORM_ROWS};

/// Bytes of an element of the widest dtype.
const WIDEST: usize = TILE_BYTES / TILE;

/// Room for a padded copy: [`WIDTH`] elements.
pub(super) const PADDED: usize = WIDEST * WIDTH;

/// Room for the lanes of a reduction.
pub(super) const LANES_ROOM: usize = WIDEST * LANES;

/// Room for a uniform value of each of [`UNIFORM_ROWS`] rows.
pub(super) const UNIFORM_ROOM: usize = WIDEST * UNIFORM_ROWS;

/// Tiles of each reduction: values that were computed in two calls, and two rows of results.
pub(super) const STAGED_TILES: usize = 3;

// Segments sum elements of at most eight bytes, and the lanes of so many rows fit the room for those of a block of rows.
const _: () = assert!(SUMMED_ROWS * 8 * LANES <= ROW_BLOCK * LANES_ROOM);

/// Where the parts of the scratch begin, in bytes. (The first is the schedule's tiles.)
pub(super) struct ScratchLayout {
    /// Uniform values.
    pub(super) singles: usize,
    /// Room for one of them, in each of the rows that are computed together.
    pub(super) single: usize,
    /// Operands of a step on uniform values of many rows.
    pub(super) uniform: usize,
    /// Copies of operands.
    pub(super) copies: usize,
    /// Padded copies of operands and results.
    pub(super) padded: usize,
    /// [`STAGED_TILES`] of each reduction.
    pub(super) staged: usize,
    /// Lanes of each reduction, for each row of a block.
    pub(super) lanes: usize,
    total: usize,
}

impl ScratchLayout {
    fn new(job: &Job<'_>) -> ScratchLayout {
        let launch = job.launch;
        let is_by_rows = matches!(launch.strategy.walk, Walk::Rows { .. });
        let (single, operands) = if is_by_rows { (UNIFORM_ROOM, MAX_OPERANDS * UNIFORM_ROOM) } else { (WIDEST, 0) };
        let singles = launch.schedule.tiles as usize * TILE_BYTES;
        let uniform = singles + (launch.schedule.singles as usize * single).next_multiple_of(64);
        let copies = uniform + operands;
        let padded = copies + launch.geometry.operands.iter().map(copy_room).sum::<usize>();
        let staged = padded + (launch.inputs.len() + job.outputs.len()) * PADDED;
        let lanes = staged + job.folds.len() * STAGED_TILES * TILE_BYTES;
        let total = lanes + job.folds.len() * ROW_BLOCK * LANES_ROOM;
        ScratchLayout { singles, single, uniform, copies, padded, staged, lanes, total }
    }
}

/// Room for the copies of an operand.
fn copy_room(o: &OperandAccess) -> usize {
    match &o.access {
        Access::Broadcast | Access::Contiguous => 0,
        Access::Periodic(n) => ((n + PLAIN_TILES * TILE) * WIDEST).next_multiple_of(64),
        Access::Gather(..) if o.is_transposed() => ROW_BLOCK * row_room(WIDEST),
        Access::Gather(..) | Access::Generated(..) => TILE_BYTES,
    }
}

/// The slots of a launch's operands and results, by how their pointers move.
#[derive(Default)]
pub(super) struct Slots {
    /// Operands that are copied tile by tile or row by row, and which operand.
    pub(super) copied: Vec<(SlotId, u32)>,
    /// Operands that are contiguous along the inner loop, with the bytes of an element.
    pub(super) contiguous: Vec<(SlotId, u32, usize)>,
    /// Operands that are one element along the inner loop.
    pub(super) broadcast: Vec<(SlotId, u32)>,
    /// Results, and which result.
    pub(super) results: Vec<(SlotId, u32)>,
}

impl Slots {
    const NONE: Slots =
        Slots { copied: Vec::new(), contiguous: Vec::new(), broadcast: Vec::new(), results: Vec::new() };

    fn set(&mut self, job: &Job<'_>) {
        let Slots { copied, contiguous, broadcast, results } = self;
        copied.clear();
        contiguous.clear();
        broadcast.clear();
        results.clear();
        let launch = job.launch;
        for (s, slot) in (0..).zip(&launch.schedule.slots) {
            match slot {
                Slot::Input(i) => match launch.geometry.operands[*i as usize].access {
                    Access::Broadcast => broadcast.push((s, *i)),
                    Access::Contiguous => contiguous.push((s, *i, launch.inputs[*i as usize].dtype.size())),
                    Access::Periodic(_) | Access::Gather(..) | Access::Generated(..) => copied.push((s, *i)),
                },
                Slot::Output(o) => results.push((s, *o)),
                Slot::Const(_) | Slot::Tile(_) | Slot::Single(_) => {}
            }
        }
    }
}

/// Memory of a thread.
pub(super) struct Scratch {
    words: Vec<u128>,
    /// The pointers of the slots, and what else a segment's table has.
    pub(super) table: Vec<*mut u8>,
    /// The address of each operand's first element in the current row.
    pub(super) bases: Vec<*const u8>,
    /// The current row, by outer dims.
    pub(super) index: Vec<usize>,
    /// The room for each operand's copies, as an offset.
    pub(super) rooms: Vec<usize>,
    pub(super) slots: Slots,
}

impl Scratch {
    const NONE: Scratch = Scratch {
        words: Vec::new(),
        table: Vec::new(),
        bases: Vec::new(),
        index: Vec::new(),
        rooms: Vec::new(),
        slots: Slots::NONE,
    };

    /// Makes room for a job; where the parts begin, and their memory.
    fn set(&mut self, job: &Job<'_>) -> (ScratchLayout, *mut u8) {
        let (launch, layout) = (job.launch, ScratchLayout::new(job));
        let words = layout.total.div_ceil(WIDEST) + 4;
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        let slots = launch.schedule.slots.len();
        self.table.clear();
        self.table.resize(table_size(slots), std::ptr::null_mut());
        self.table[row_words(slots)[1]] = word(1);
        let columns = matches!(launch.strategy.walk, Walk::Columns { .. });
        self.table[lane_bits(slots)] = word(if columns { usize::MAX } else { LANES - 1 });
        self.bases.clear();
        self.bases.resize(launch.inputs.len(), std::ptr::null());
        self.index.clear();
        self.index.resize(launch.geometry.rows.len(), 0);
        self.rooms.clear();
        let mut room = layout.copies;
        for o in &launch.geometry.operands {
            self.rooms.push(room);
            room += copy_room(o);
        }
        self.slots.set(job);
        let start = self.words.as_mut_ptr().cast::<u8>();
        // SAFETY: four words more than the layout's leave room for the alignment.
        (layout, unsafe { start.add(start.align_offset(64)) })
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::NONE) };
}

/// Gives the thread's scratch, ready for a job, to `work`: the lists, where the parts of the memory begin, and the memory.
pub(super) fn with_scratch<T>(job: &Job<'_>, work: impl FnOnce(&mut Scratch, ScratchLayout, *mut u8) -> T) -> T {
    // A custom op's function may start another launch on this thread, which finds an empty scratch and fills its own. A
    // thread that ends may have dropped its own already.
    let mut scratch = SCRATCH.try_with(|kept| kept.replace(Scratch::NONE)).unwrap_or(Scratch::NONE);
    let (layout, memory) = scratch.set(job);
    let made = work(&mut scratch, layout, memory);
    let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
    made
}
