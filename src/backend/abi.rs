//! How a compiled segment is called: the function, the words of its table, the bits of its length.
//!
//! Does not: make segments (`cranelift`, `x64`) or call them (`runtime::driver`).

/// A compiled segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFn {
    /// Reads and writes `n` elements at the pointers of the table. That of a schedule that walks rows goes on with those
    /// behind it (see [`row_words`]) if it takes any number.
    pub(crate) run: unsafe extern "C" fn(table: *const *mut u8, n: usize),
    /// Whether `n` can be any number from 1 up, and have the bits [`STREAM`], [`ADD`] and [`AHEAD`]; else it is a multiple of [`WIDTH`].
    pub(crate) any_length: bool,
}

/// Where two words of the table lie, of a schedule that walks rows and has so many slots: what `n` is for the rows that
/// follow, and the number of rows, which is at least 1, and 1 after the call. Between the pointers and these lie the bytes from each
/// pointer to that of the next row; the pointers are moved on.
pub(crate) const fn row_words(slots: usize) -> [usize; 2] {
    [2 * slots, 2 * slots + 1]
}

/// Words of the table for so many slots.
pub(crate) const fn table_size(slots: usize) -> usize {
    row_words(slots)[1] + 1
}

/// A number as a word of the table.
pub(crate) const fn word(n: usize) -> *mut u8 {
    std::ptr::without_provenance_mut(n)
}

/// Set in the number of elements: operands come from memory, and results, which begin at cache lines, go there past the caches.
/// The caller sees to it that they are there for other threads (with a store fence).
pub(crate) const STREAM: usize = 1 << (usize::BITS - 1);

/// Set in the number of elements: what the segment can add up goes into lanes that begin with the tile, not into the tile.
pub(crate) const ADD: usize = 1 << (usize::BITS - 2);

/// Set in the number of elements, with one of the others: operands are asked for ahead of their use, as what lies behind the
/// last element is read next.
pub(crate) const AHEAD: usize = 1 << (usize::BITS - 3);

/// Elements that every compiled segment's width divides.
pub(crate) const WIDTH: usize = 16;
