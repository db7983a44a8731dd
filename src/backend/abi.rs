//! The calling convention of compiled segments: the function, the words of its table, the flags in its length.
//!
//! Does not: compile segments (`cranelift`, `x64`) or call them (`runtime::driver`).

/// A compiled segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFn {
    /// Reads and writes `n` elements at the pointers of the table. If the schedule walks rows and `any_length` is set, it continues
    /// with the following rows (see [`row_words`]).
    pub(crate) run: unsafe extern "C" fn(table: *const *mut u8, n: usize),
    /// Whether `n` may be any number from 1 up, with the flags [`STREAM`], [`ADD`] and [`AHEAD`]; else it is a multiple of
    /// [`WIDTH`].
    pub(crate) any_length: bool,
}

/// The positions of two words in the table of a schedule that walks rows and has this many slots: `n` for the following rows, and
/// the number of rows, which is at least 1, and 1 after the call. Between the pointers and these words are, for each pointer, the
/// bytes to the next row; the call advances the pointers.
pub(crate) const fn row_words(slots: usize) -> [usize; 2] {
    [2 * slots, 2 * slots + 1]
}

/// The position of the word with the bits of an element's index that say to which partial sum it is added: those of
/// `LANES - 1`, or all, if each column has its own. Only segments that can accumulate read it.
pub(crate) const fn lane_bits(slots: usize) -> usize {
    row_words(slots)[1] + 1
}

/// The number of words of a table for so many slots.
pub(crate) const fn table_size(slots: usize) -> usize {
    lane_bits(slots) + 1
}

/// A number as a word of the table.
pub(crate) const fn word(n: usize) -> *mut u8 {
    std::ptr::without_provenance_mut(n)
}

/// Flag in the number of elements: operands come from memory, and results, which begin at cache lines, are stored past the caches.
/// The caller issues the store fence that makes them visible to other threads.
pub(crate) const STREAM: usize = 1 << (usize::BITS - 1);

/// Flag in the number of elements: values that the segment can accumulate are added to the partial sums at the start of their tile
/// instead of being stored to the tile (see [`lane_bits`]).
pub(crate) const ADD: usize = 1 << (usize::BITS - 2);

/// Flag in the number of elements, beside one of the others: operands are prefetched some way ahead, as what follows the last
/// element is read next.
pub(crate) const AHEAD: usize = 1 << (usize::BITS - 3);

/// Elements that every compiled segment's width divides.
pub(crate) const WIDTH: usize = 16;
