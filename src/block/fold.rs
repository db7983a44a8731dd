//! What reductions are made of: a tile to one element, short rows to one element each, a row into the row of results
//! so far.
//!
//! Guarantees: the order in which elements are combined depends on their number alone; results hold canonical NaNs.
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
    /// Up to a tile of elements (the first operand) to one.
    Tile,
    /// Rows of so many elements (the second operand is that number, not a pointer) to one each: `n` elements in all.
    Short,
    /// Two rows to one: elements at the same place are combined.
    Rows,
}

/// Elements that are combined side by side.
const LANES: usize = 64;

/// # Safety
/// As [`BlockFn`] for one operand of `T` and a result of one `T`.
#[inline(always)]
unsafe fn tile_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, 1)) };
    let mut lanes = [F::START; LANES];
    let whole = a.chunks_exact(LANES);
    for (lane, x) in lanes.iter_mut().zip(whole.remainder()) {
        *lane = F::combine(*lane, *x);
    }
    for x in whole {
        for (lane, x) in lanes.iter_mut().zip(x) {
            *lane = F::combine(*lane, *x);
        }
    }
    for width in [32, 16, 8, 4, 2, 1] {
        for k in 0..width {
            lanes[k] = F::combine(lanes[k], lanes[k + width]);
        }
    }
    out[0] = lanes[0].canonical();
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
        *out = row.iter().fold(F::START, |sum, x| F::combine(sum, *x)).canonical();
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

levels!(tile, tile_body, <T: FoldElement, F: OpFold<T>>);
levels!(short, short_body, <T: FoldElement, F: OpFold<T>>);
levels!(rows, rows_body, <T: FoldElement, F: OpFold<T>>);
use Fold as OpFold;

/// A kernel of a reduction.
pub(super) fn part<T: 'static + FoldElement, F: 'static + Fold<T>>(part: Part, level: CpuLevel) -> BlockFn {
    match part {
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
