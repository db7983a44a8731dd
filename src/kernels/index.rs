//! Kernels that find the first largest or smallest element: in a line, or in each column of rows.
//!
//! Guarantees: the first of equal elements, and the first NaN, is found, at every CPU level. Does not: divide a line into
//! pieces; `driver` does.

use super::keys::{Ordered, with_ordered};
use super::{BlockFn, CpuLevel, levels, slice, slice_mut};
use crate::base::dtype::DType;
use crate::ops::{MAX_OPERANDS, Op};

/// Which end of the order is looked for.
pub(in crate::kernels) trait End {
    fn key<T: Ordered>(x: T) -> T::Key;
}

struct Largest;
struct Smallest;

impl End for Largest {
    #[inline(always)]
    fn key<T: Ordered>(x: T) -> T::Key {
        x.ascending()
    }
}

impl End for Smallest {
    #[inline(always)]
    fn key<T: Ordered>(x: T) -> T::Key {
        x.descending()
    }
}

/// Elements of a line whose largest key is found before its position is.
const LINE_BLOCK: usize = 2048;

/// Columns that [`columns_body`] goes through together, whose keys and positions stay in the L1 cache.
pub(crate) const COLUMN_BLOCK: usize = 512;

/// # Safety
/// As [`BlockFn`] for `n` elements of `T`, at least one, and a result of one `i64`: the position.
#[inline(always)]
unsafe fn line_body<T: Ordered, E: End>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (all, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<i64>(out, 1)) };
    let mut best = E::key(all[0]);
    let mut found = &all[..n.min(LINE_BLOCK)];
    for block in all.chunks(LINE_BLOCK) {
        let most = block.iter().fold(E::key(block[0]), |most, x| most.max(E::key(*x)));
        if most > best {
            (best, found) = (most, block);
        }
    }
    let from = (found.as_ptr().addr() - all.as_ptr().addr()) / size_of::<T>();
    out[0] = (from + found.iter().position(|x| E::key(*x) == best).unwrap_or(0)) as i64;
    0
}

/// # Safety
/// As [`BlockFn`] for rows of elements of `T`: the address of the second operand is the number of columns, from 1 to
/// [`COLUMN_BLOCK`], that of the third the distance between the starts of rows, at least as much; `n` is a multiple of the
/// distance plus the number of columns. The result is a position, an `i64`, for each column.
#[inline(always)]
unsafe fn columns_body<T: Ordered, E: End>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    let (width, stride) = (args[1].addr().clamp(1, COLUMN_BLOCK), args[2].addr().max(1));
    // SAFETY: the contract.
    let (all, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<i64>(out, width)) };
    let mut keys = [E::key(all[0]); COLUMN_BLOCK];
    for (key, x) in keys.iter_mut().zip(&all[..width]) {
        *key = E::key(*x);
    }
    out.fill(0);
    for (row, start) in (1..).zip((stride..n).step_by(stride)) {
        for ((key, at), x) in keys[..width].iter_mut().zip(out.iter_mut()).zip(&all[start..start + width]) {
            let next = E::key(*x);
            *at = if next > *key { row } else { *at };
            *key = next.max(*key);
        }
    }
    0
}

levels!(line, line_body, <T: Element, E: Side>);
levels!(columns, columns_body, <T: Element, E: Side>);
use End as Side;
use Ordered as Element;

/// The kernels of one op and dtype.
#[derive(Clone, Copy)]
pub(crate) struct IndexKernels {
    /// Finds the position in `n` elements.
    pub(crate) line: BlockFn,
    /// Finds the position in each column of rows: see [`COLUMN_BLOCK`]. The second operand is the number of columns, the third
    /// the distance between rows, neither a pointer.
    pub(crate) columns: BlockFn,
}

fn kernels<T: 'static + Ordered>(op: Op, level: CpuLevel) -> Option<IndexKernels> {
    match op {
        Op::Argmax => Some(IndexKernels { line: line::<T, Largest>(level), columns: columns::<T, Largest>(level) }),
        Op::Argmin => Some(IndexKernels { line: line::<T, Smallest>(level), columns: columns::<T, Smallest>(level) }),
        _ => None,
    }
}

/// The kernels of a reduction to a position; `None` for another op.
pub(crate) fn index_kernels(op: Op, dtype: DType, level: CpuLevel) -> Option<IndexKernels> {
    with_ordered!(dtype, T => kernels::<T>(op, level))
}
