//! Kernels of scans, which work in place on elements of the dtype that a scan accumulates in.
//!
//! Guarantees: a line or column is combined from its first element to its last; joined results hold canonical NaNs. Does not: convert elements,
//! or divide lines into blocks; `driver` does.

use super::reduce::{Fold, FoldElement};
use super::{BlockFn, CpuLevel, levels, slice, slice_mut};
use crate::ops::MAX_OPERANDS;

/// Lines that [`lines_body`] goes through together, since each is a chain of operations that depend on each other.
const TOGETHER: usize = 4;

/// The kernels of one scan and dtype. All of them change the result's elements in place.
#[derive(Clone, Copy)]
pub(crate) struct ScanKernels {
    /// Fills with what a scan begins with.
    pub(crate) start: BlockFn,
    /// Scans each of several lines from its start. The second operand is their length, not a pointer; the last may be shorter.
    pub(crate) lines: BlockFn,
    /// Combines each row with the one before it; the first stays. The second operand is the length of a row.
    pub(crate) rows: BlockFn,
    /// Combines a row, the first operand, with each row of the result. The second operand is the length of a row. Without a first
    /// operand, makes NaNs canonical.
    pub(crate) join: BlockFn,
}

/// # Safety
/// As [`BlockFn`] for a result of `n` elements of `T`.
unsafe fn start_body<T: FoldElement, F: Fold<T>>(_: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    unsafe { slice_mut::<T>(out, n) }.fill(F::START);
    0
}

#[inline(always)]
fn chain<T: FoldElement, F: Fold<T>>(mut last: T, line: &mut [T]) -> T {
    for x in line {
        last = F::combine(last, *x);
        *x = last;
    }
    last
}

/// # Safety
/// As [`BlockFn`] for a result of `n` elements of `T`; the second operand is a length.
#[inline(always)]
unsafe fn lines_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (length, out) = (args[1].addr().max(1), unsafe { slice_mut::<T>(out, n) });
    let mut groups = out.chunks_exact_mut(TOGETHER * length);
    for group in &mut groups {
        let (a, rest) = group.split_at_mut(length);
        let (b, rest) = rest.split_at_mut(length);
        let (c, d) = rest.split_at_mut(length);
        let mut last = [F::START; TOGETHER];
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            last = [F::combine(last[0], *a), F::combine(last[1], *b), F::combine(last[2], *c), F::combine(last[3], *d)];
            [*a, *b, *c, *d] = last;
        }
    }
    groups.into_remainder().chunks_mut(length).for_each(|line| {
        chain::<T, F>(F::START, line);
    });
    0
}

/// # Safety
/// As [`BlockFn`] for a result of `n` elements of `T`; the second operand is a length.
#[inline(always)]
unsafe fn rows_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (width, mut rest) = (args[1].addr().max(1), unsafe { slice_mut::<T>(out, n) });
    while rest.len() > width {
        let (before, after) = rest.split_at_mut(width);
        for (x, last) in after.iter_mut().zip(before) {
            *x = F::combine(*last, *x);
        }
        rest = after;
    }
    0
}

/// # Safety
/// As [`BlockFn`] for a result of `n` elements of `T`; the second operand is a length, of so many elements is the first.
#[inline(always)]
unsafe fn join_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (width, out) = (args[1].addr().max(1), unsafe { slice_mut::<T>(out, n) });
    if args[0].is_null() {
        out.iter_mut().for_each(|x| *x = x.canonical());
        return 0;
    }
    // SAFETY: the contract.
    let row = unsafe { slice::<T>(args[0], width) };
    if let [before] = *row {
        out.iter_mut().for_each(|x| *x = F::combine(before, *x).canonical());
        return 0;
    }
    for out in out.chunks_mut(width) {
        for (x, before) in out.iter_mut().zip(row) {
            *x = F::combine(*before, *x).canonical();
        }
    }
    0
}

levels!(lines, lines_body, <T: FoldElement, F: OpFold<T>>);
levels!(rows, rows_body, <T: FoldElement, F: OpFold<T>>);
levels!(join, join_body, <T: FoldElement, F: OpFold<T>>);
use Fold as OpFold;

/// The kernels of a scan.
pub(super) fn kernels<T: 'static + FoldElement, F: 'static + Fold<T>>(level: CpuLevel) -> ScanKernels {
    let (lines, rows, join) = (lines::<T, F>(level), rows::<T, F>(level), join::<T, F>(level));
    ScanKernels { start: start_body::<T, F>, lines, rows, join }
}
