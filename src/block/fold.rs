//! What reductions are made of: a tile into elements side by side and these to one, short rows to one element each, a
//! row into the row of results so far.
//!
//! Guarantees: the order in which elements are combined depends on the shape alone; results hold canonical NaNs.
//! Does not: cut a reduction into tiles or put their results together; `driver` and `launch` do.

use super::num::Canonical;
use super::{BlockFn, CpuLevel, FloatMode, levels, operands, slice, slice_mut};
use crate::dtype::DType;
use crate::ops::MAX_OPERANDS;
use crate::scalar::Bits;

/// A reduction: how two elements combine, and what combining nothing gives.
pub(in crate::block) trait Fold<T> {
    const START: T;
    fn combine(a: T, b: T) -> T;
}

/// An element that folds.
pub(in crate::block) trait FoldElement: Copy + Canonical {}
impl<T: Copy + Canonical> FoldElement for T {}

/// The kernels of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Up to a tile of elements (the first operand) into the [`LANES`] elements of the result.
    Lanes,
    /// Up to a tile of elements (the first operand) to one.
    Tile,
    /// Rows of so many elements (the second operand is that number, not a pointer) to one each: `n` elements in all.
    Short,
    /// Two rows to one: elements at the same place are combined.
    Rows,
}

/// Elements that are combined side by side.
pub(crate) const LANES: usize = 64;

/// Elements side by side of a row too short for [`LANES`], of which combining the lanes would take the longest.
const FEW_LANES: usize = 8;

/// Combines elements into those of the lanes, one after the other: element `i` goes to lane `i % N`. Compiled loops do the
/// same.
#[inline(always)]
fn into_lanes<T: FoldElement, F: Fold<T>, const N: usize>(lanes: &mut [T; N], a: &[T]) {
    let (whole, rest) = a.as_chunks::<N>();
    for x in whole {
        for (lane, x) in lanes.iter_mut().zip(x) {
            *lane = F::combine(*lane, *x);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = F::combine(*lane, *x);
    }
}

/// Combines elements to one: side by side, then by halves.
#[inline(always)]
fn to_one<T: FoldElement, F: Fold<T>, const N: usize>(a: &[T]) -> T {
    let mut lanes = [F::START; N];
    into_lanes::<T, F, N>(&mut lanes, a);
    let mut width = N / 2;
    while width > 0 {
        for k in 0..width {
            lanes[k] = F::combine(lanes[k], lanes[k + width]);
        }
        width /= 2;
    }
    lanes[0].canonical()
}

/// # Safety
/// As [`BlockFn`] for one operand of `T` and a result of [`LANES`] of `T`, which is read too.
#[inline(always)]
unsafe fn lanes_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, LANES)) };
    let mut lanes = [F::START; LANES];
    lanes.copy_from_slice(out);
    into_lanes::<T, F, LANES>(&mut lanes, a);
    out.copy_from_slice(&lanes);
    0
}

/// # Safety
/// As [`BlockFn`] for one operand of `T` and a result of one `T`.
#[inline(always)]
unsafe fn tile_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, 1)) };
    out[0] = to_one::<T, F, LANES>(a);
    0
}

/// # Safety
/// As [`BlockFn`] for `n` elements of `T` and a result of `n / length` of them, `length` being the address of the
/// second operand: at least 1, and a divisor of `n`.
#[inline(always)]
unsafe fn short_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    let length = args[1].addr().max(1);
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, n / length)) };
    for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
        *out = if length >= 2 * FEW_LANES {
            to_one::<T, F, FEW_LANES>(row)
        } else {
            row.iter().fold(F::START, |sum, x| F::combine(sum, *x)).canonical()
        };
    }
    0
}

/// # Safety
/// As [`BlockFn`] for two operands and a result of `T`.
#[inline(always)]
unsafe fn rows_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (a, b, out) = unsafe { (slice::<T>(args[0], n), slice::<T>(args[1], n), slice_mut::<T>(out, n)) };
    for ((o, a), b) in out.iter_mut().zip(a).zip(b) {
        *o = F::combine(*a, *b).canonical();
    }
    0
}

levels!(lanes, lanes_body, <T: FoldElement, F: OpFold<T>>);
levels!(tile, tile_body, <T: FoldElement, F: OpFold<T>>);
levels!(short, short_body, <T: FoldElement, F: OpFold<T>>);
levels!(rows, rows_body, <T: FoldElement, F: OpFold<T>>);
use Fold as OpFold;

/// A kernel of a reduction.
pub(super) fn part<T: 'static + FoldElement, F: 'static + Fold<T>>(part: Part, level: CpuLevel) -> BlockFn {
    match part {
        Part::Lanes => lanes::<T, F>(level),
        Part::Tile => tile::<T, F>(level),
        Part::Short => short::<T, F>(level),
        Part::Rows => rows::<T, F>(level),
    }
}

/// Divides every element (or part) by a count: sums to means. NaNs stay canonical: 0 / 0 is made so.
pub(crate) fn divide(dtype: DType, all: &mut [u8], n: usize) {
    let _standard = FloatMode::standard();
    if dtype.real() == DType::F32 {
        for x in bytemuck::cast_slice_mut::<u8, f32>(all) {
            *x = (*x / n as f32).canonical();
        }
    } else {
        for x in bytemuck::cast_slice_mut::<u8, f64>(all) {
            *x = (*x / n as f64).canonical();
        }
    }
}

/// What the tile kernel of a reduction gives for no elements.
pub(crate) fn of_nothing(tile: BlockFn) -> Bits {
    let (none, mut out) = (Bits::default(), Bits::default());
    // SAFETY: no element is read; `Bits` is aligned for and holds one element of any dtype.
    unsafe { tile(operands([(&raw const none).cast()]), (&raw mut out).cast(), 0) };
    out
}
