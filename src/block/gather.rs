//! Copies a strided operand into a contiguous tile.
//!
//! Guarantees: nothing is asked of an operand's alignment, so that elements of one size are copied alike. Does not: know
//! where tiles lie; they are aligned for elements of any dtype.

use crate::dtype::DType;
use crate::schedule::TILE;

/// Where the elements of an operand lie: base address, and extent and stride (in elements) of each dim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strided<'a> {
    pub(super) base: *const u8,
    pub(super) extents: &'a [usize],
    pub(super) strides: &'a [isize],
}

/// Copies elements `start..start + n`, counted row-major, to `out`.
///
/// # Safety
/// Every element of `from` must be readable, `start + n` at most their number, and `out` writable for `n` elements.
pub(super) unsafe fn gather(from: Strided<'_>, dtype: DType, start: usize, n: usize, out: *mut u8) {
    // SAFETY: passed on.
    unsafe {
        match dtype.size() {
            1 => gather_as::<u8>(from, start, n, out),
            2 => gather_as::<u16>(from, start, n, out),
            4 => gather_as::<u32>(from, start, n, out),
            8 => gather_as::<u64>(from, start, n, out),
            _ => gather_as::<[u64; 2]>(from, start, n, out),
        }
    }
}

/// # Safety
/// As [`gather`], for elements of the size of `T`.
unsafe fn gather_as<T: Copy>(from: Strided<'_>, start: usize, n: usize, out: *mut u8) {
    let (base, out) = (from.base.cast::<T>(), out.cast::<T>());
    let Some((inner, outer)) = from.extents.split_last() else {
        // SAFETY: one element, `n` is at most 1.
        (0..n).for_each(|i| unsafe { out.add(i).write(base.read_unaligned()) });
        return;
    };
    let inner_stride = from.strides[outer.len()];
    let (mut column, mut row) = (start % inner, start / inner);
    let mut done = 0;
    while done < n {
        let (mut rest, mut offset) = (row, column as isize * inner_stride);
        for (extent, stride) in outer.iter().zip(from.strides).rev() {
            offset += (rest % extent) as isize * stride;
            rest /= extent;
        }
        let run = (inner - column).min(n - done);
        for i in 0..run {
            // SAFETY: `row` and `column` address an element of `from`; `done + i < n`.
            unsafe { out.add(done + i).write(base.offset(offset + i as isize * inner_stride).read_unaligned()) };
        }
        done += run;
        (column, row) = (0, row + 1);
    }
}

/// Copies `rows` rows of elements `start..start + n` of an operand of one dim, whose rows are `row_stride` elements
/// apart, to rows of [`TILE`] elements each: element by element of the dim, so that neighbours from row to row are read
/// together.
///
/// # Safety
/// As [`gather`], for each of the rows; `n` is at most [`TILE`], and `out` writable for `rows` tiles.
pub(super) unsafe fn gather_rows(
    from: Strided<'_>,
    (rows, row_stride): (usize, isize),
    dtype: DType,
    (start, n): (usize, usize),
    out: *mut u8,
) {
    /// # Safety
    /// As `gather_rows`, for elements of the size of `T`.
    unsafe fn rows_as<T: Copy>(base: *const T, stride: isize, rows: usize, row_stride: isize, n: usize, out: *mut T) {
        for i in 0..n {
            for r in 0..rows {
                // SAFETY: element `i` of row `r`, both of the operand and of the tiles.
                unsafe {
                    let from = base.offset(i as isize * stride + r as isize * row_stride);
                    out.add(r * TILE + i).write(from.read_unaligned());
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
pub(super) unsafe fn fill(from: *const u8, dtype: DType, n: usize, out: *mut u8) {
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
