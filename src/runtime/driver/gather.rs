//! Copies a strided operand into a contiguous tile.
//!
//! Guarantees: operands may have any alignment; elements of one size are copied alike, whatever their dtype. Does not: place
//! the tiles, which are aligned for elements of any dtype.

use crate::base::dtype::DType;
use crate::plan::tuning::TILE;

/// Where the elements of an operand are: base address, and extent and stride (in elements) of each dim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    pub(crate) base: *const u8,
    pub(crate) extents: &'a [usize],
    pub(crate) strides: &'a [isize],
}

/// Copies elements `start..start + n`, counted row-major, to `out`.
///
/// # Safety
/// Every element of `from` must be readable, `start + n` at most their number, and `out` writable for `n` elements.
pub(crate) unsafe fn gather(from: Strided<'_>, dtype: DType, start: usize, n: usize, out: *mut u8) {
    // SAFETY: passed on.
    unsafe {
        match dtype.size() {
            1 => gather_as::<u8, 16>(from, start, n, out),
            2 => gather_as::<u16, 8>(from, start, n, out),
            4 => gather_as::<u32, 4>(from, start, n, out),
            8 => gather_as::<u64, 2>(from, start, n, out),
            _ => gather_as::<[u64; 2], 1>(from, start, n, out),
        }
    }
}

/// Where elements `start..start + n` are, if they are contiguous: in one row of a last dim whose stride is 1.
pub(crate) fn contiguous(from: Strided<'_>, dtype: DType, start: usize, n: usize) -> Option<*const u8> {
    let (columns, outer) = from.extents.split_last()?;
    if from.strides.last() != Some(&1) || n > *columns || start % columns + n > *columns {
        return None;
    }
    let (mut rest, mut first) = (start / columns, (start % columns) as isize);
    for (extent, stride) in outer.iter().zip(from.strides).rev() {
        first += (rest % extent) as isize * stride;
        rest /= extent;
    }
    Some(from.base.wrapping_offset(first * dtype.size() as isize))
}

/// [`gather`] for one size of elements. The last two dims are looped over without divisions, so that short rows cost little more
/// than their elements.
///
/// # Safety
/// As [`gather`], for elements of the size of `T`, of which `W` are written at a time.
unsafe fn gather_as<T: Copy, const W: usize>(from: Strided<'_>, start: usize, n: usize, out: *mut u8) {
    let (base, out) = (from.base.cast::<T>(), out.cast::<T>());
    let rank = from.extents.len();
    let dim = |back: usize| rank.checked_sub(back).map_or((1, 0), |d| (from.extents[d], from.strides[d]));
    let ((columns, step), (rows, row_step)) = (dim(1), dim(2));
    let outer = &from.extents[..rank.saturating_sub(2)];
    let (mut column, mut row, mut plane) = (start % columns, start / columns % rows, start / columns / rows);
    let mut done = 0;
    while done < n {
        let (mut rest, mut first) = (plane, 0);
        for (extent, stride) in outer.iter().zip(from.strides).rev() {
            first += (rest % extent) as isize * stride;
            rest /= extent;
        }
        while done < n && row < rows {
            let from = first + row as isize * row_step + column as isize * step;
            if step == 0 && column == 0 {
                // SAFETY: the first element of each of these rows is one of the operand; `n - done` elements are writable.
                let whole = unsafe {
                    let (from, out) = (base.offset(from), out.add(done));
                    repeat_rows::<T, W>(from, row_step, rows - row, columns, out, n - done)
                };
                (done, row) = (done + whole * columns, row + whole);
                if whole > 0 {
                    continue;
                }
            }
            let length = (columns - column).min(n - done);
            let copy = |step: isize| {
                for i in 0..length {
                    // SAFETY: plane, row and column address an element of the operand; `done + i < n`.
                    unsafe { out.add(done + i).write(base.offset(from + i as isize * step).read_unaligned()) };
                }
            };
            // The same loop, which the compiler vectorizes where it knows the step.
            match step {
                1 => copy(1),
                -1 => copy(-1),
                _ => copy(step),
            }
            done += length;
            (column, row) = (0, row + 1);
        }
        (row, plane) = (0, plane + 1);
    }
}

/// Repeats each of up to `most` elements, `step` apart, `columns` times, in whole vectors: what a vector writes too much is
/// overwritten by the next element's. Stops before a vector would end behind `room` elements; returns how many elements it has repeated.
///
/// # Safety
/// The elements must be readable, and `out` writable for `room`.
unsafe fn repeat_rows<T: Copy, const W: usize>(
    mut from: *const T,
    step: isize,
    most: usize,
    columns: usize,
    mut out: *mut T,
    room: usize,
) -> usize {
    let Some(spare) = room.checked_sub(columns.next_multiple_of(W)) else { return 0 };
    let count = most.min(spare / columns + 1);
    for _ in 0..count {
        // SAFETY: the vectors of each of the first `count` elements end in the room, and no element behind these is read.
        unsafe {
            let vector = [from.read_unaligned(); W];
            let mut i = 0;
            while i < columns {
                out.add(i).cast::<[T; W]>().write_unaligned(vector);
                i += W;
            }
            out = out.add(columns);
        }
        from = from.wrapping_offset(step);
    }
    count
}

/// Bytes from the tile of one row of a block to that of the next: a cache line more than a tile, so that the same element of
/// each row is in another set of the L1 cache.
pub(crate) const fn row_room(size: usize) -> usize {
    TILE * size + 64
}

/// Copies elements `start..start + n` of each of `rows` rows of an operand of one dim, `row_stride` elements apart, to tiles
/// [`row_room`] apart: element by element of the dim, so that the rows' elements in one cache line are read together.
///
/// # Safety
/// As [`gather`], for each of the rows; `n` is at most [`TILE`], and `out` writable for `rows` tiles.
pub(crate) unsafe fn gather_rows(
    from: Strided<'_>,
    (rows, row_stride): (usize, isize),
    dtype: DType,
    (start, n): (usize, usize),
    out: *mut u8,
) {
    /// # Safety
    /// As `gather_rows`, for elements of the size of `T`.
    unsafe fn rows_as<T: Copy>(base: *const T, stride: isize, rows: usize, row_stride: isize, n: usize, out: *mut T) {
        let tile = row_room(size_of::<T>()) / size_of::<T>();
        for i in 0..n {
            for r in 0..rows {
                // SAFETY: element `i` of row `r`, both of the operand and of the tiles.
                unsafe {
                    let from = base.offset(i as isize * stride + r as isize * row_stride);
                    out.add(r * tile + i).write(from.read_unaligned());
                }
            }
        }
    }
    let stride = from.strides.last().copied().unwrap_or(0);
    let first = start as isize * stride * dtype.size() as isize;
    // SAFETY: passed on; the first element is one of the operand.
    unsafe {
        let base = from.base.offset(first);
        match dtype.size() {
            1 => rows_as(base, stride, rows, row_stride, n, out),
            2 => rows_as(base.cast::<u16>(), stride, rows, row_stride, n, out.cast()),
            4 => rows_as(base.cast::<u32>(), stride, rows, row_stride, n, out.cast()),
            8 => rows_as(base.cast::<u64>(), stride, rows, row_stride, n, out.cast()),
            _ => rows_as(base.cast::<[u64; 2]>(), stride, rows, row_stride, n, out.cast()),
        }
    }
}

/// Fills `n` elements with the one at `from`.
///
/// # Safety
/// `from` must hold one element of the dtype, `out` be writable for `n`.
pub(crate) unsafe fn fill(from: *const u8, dtype: DType, n: usize, out: *mut u8) {
    /// # Safety
    /// As `fill`, for elements of the size of `T`.
    unsafe fn fill_as<T: Copy>(from: *const u8, n: usize, out: *mut u8) {
        // SAFETY: passed on; the slice's old contents are plain bytes.
        unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), n).fill(from.cast::<T>().read_unaligned()) }
    }
    // SAFETY: passed on.
    unsafe {
        match dtype.size() {
            1 => fill_as::<u8>(from, n, out),
            2 => fill_as::<u16>(from, n, out),
            4 => fill_as::<u32>(from, n, out),
            8 => fill_as::<u64>(from, n, out),
            _ => fill_as::<[u64; 2]>(from, n, out),
        }
    }
}
