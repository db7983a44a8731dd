//! Kernels of reductions: a tile into the lanes of an accumulator and these into one element; short rows into one
//! element each; rows into an accumulated row.
//!
//! Guarantees: the order in which elements are combined depends on the shape alone; results hold canonical NaNs. Does
//! not: divide a reduction into tiles or combine their results; `driver` and `launch` do.

use std::hint::black_box;

use super::num::Canonical;
use super::{BlockFn, CpuLevel, levels, operands, slice, slice_mut};
use crate::base::dtype::DType;
use crate::base::host::FloatMode;
use crate::base::scalar::Bits;
use crate::ops::MAX_OPERANDS;

/// A reduction: how two elements combine, and the result for no elements.
pub(in crate::kernels) trait Fold<T> {
    const START: T;
    /// Whether [`combine_ordinary`](Fold::combine_ordinary) is a faster form of [`combine`](Fold::combine) that gives
    /// the same result for ordinary elements ([`Canonical::are_ordinary`]). Then the result also does not depend on the
    /// order of the elements or on how often an element is combined.
    const HAS_FAST_FORM: bool;
    fn combine(a: T, b: T) -> T;
    fn combine_ordinary(a: T, b: T) -> T;
}

/// The element type of a reduction.
pub(in crate::kernels) trait FoldElement: Copy + Canonical {}
impl<T: Copy + Canonical> FoldElement for T {}

/// The parts of a reduction, each of which is a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Folds any number of elements (the first operand) into [`LANES`] lanes (the result).
    Lanes,
    /// Folds any number of elements (the first operand) into one.
    Whole,
    /// Folds the [`LANES`] lanes of each of several rows into one element. `Lanes` followed by `Halves` gives the
    /// result of `Whole`.
    Halves,
    /// Folds each row into one element: `n` elements in all. The second operand is the length of a row, not a pointer.
    Short,
    /// Combines two rows element by element.
    Rows,
    /// Folds strided rows into one row. The second operand is the length of a row, the third the distance between the
    /// starts of rows, both in elements.
    Columns,
    /// Folds each group of contiguous rows into one row of the result: `n` elements in all. The second operand is the
    /// length of a row, the third the number of rows of a group.
    Stack,
}

/// The lanes of an accumulator, which are combined in parallel.
pub(crate) const LANES: usize = 64;

/// The lanes for a row that is too short for combining [`LANES`] lanes to pay.
const FEW_LANES: usize = 8;

/// Whether rows of this length are accumulated in [`LANES`] lanes.
pub(crate) const fn has_many_lanes(length: usize) -> bool {
    length > MAX_SHORT_ROW || length >= 2 * LANES && length.is_multiple_of(LANES)
}

/// The maximum length of a short row: longer ones are always accumulated in [`LANES`] lanes.
const MAX_SHORT_ROW: usize = 256;

/// The number of elements that are checked for the fast form, and combined, at a time.
const CHECKED_BLOCK: usize = 2048;

/// The lanes for rows of at most this length: more lanes would do useless work.
const NARROW_LANES: usize = 16;

/// Aligned to a cache line, so that vectors in it don't cross cache lines: unaligned, the kernels take up to twice as
/// long, depending on the alignment of the stack.
#[repr(align(64))]
struct CacheAligned<T>(T);

/// The maximum length of rows that [`side_by_side`] joins.
const MAX_JOINED: usize = LANES / 2;

/// The number of rows, of `count` rows of `width` elements, that are joined into one longer row and accumulated in
/// parallel; the joined rows are combined last. Narrow rows accumulated one by one form a chain of dependent
/// operations.
pub(crate) fn side_by_side(count: usize, width: usize) -> usize {
    let most = LANES / width.max(1);
    if most > 1 && count >= 4 * most { most } else { 1 }
}

/// Combines two elements. `ORDINARY`: both are ordinary.
#[inline(always)]
fn combine<T, F: Fold<T>, const ORDINARY: bool>(a: T, b: T) -> T {
    if ORDINARY { F::combine_ordinary(a, b) } else { F::combine(a, b) }
}

/// Whether the reduction has a fast form and all elements are ordinary.
#[inline(always)]
fn fast_form_applies<T: FoldElement, F: Fold<T>>(a: &[T], b: &[T]) -> bool {
    F::HAS_FAST_FORM && T::are_ordinary(a) && T::are_ordinary(b)
}

/// Combines elements with as many lanes. `lanes` must be a local copy of an array that is not indexed anywhere else, so
/// that it stays in registers.
#[inline(always)]
fn step<T: Copy, F: Fold<T>, const N: usize, const ORDINARY: bool>(lanes: &mut [T; N], x: &[T; N]) {
    *lanes = std::array::from_fn(|k| combine::<T, F, ORDINARY>(lanes[k], x[k]));
}

/// Accumulates elements in the lanes: element `i` goes to lane `i % N`. Compiled loops do the same.
#[inline(always)]
fn into_lanes<T: FoldElement, F: Fold<T>>(lanes: &mut [T; LANES], a: &[T]) {
    for a in a.chunks(CHECKED_BLOCK) {
        if F::HAS_FAST_FORM {
            let (all, magnitudes) = ordinary_into_lanes::<T, F>(*lanes, a);
            if magnitudes.fast_form_held(&all) || fast_form_applies::<T, F>(a, lanes) {
                *lanes = all;
                continue;
            }
        }
        tile_into_lanes::<T, F, LANES, false>(lanes, a);
    }
}

#[inline(always)]
fn tile_into_lanes<T: FoldElement, F: Fold<T>, const N: usize, const ORDINARY: bool>(lanes: &mut [T; N], a: &[T]) {
    let (whole, rest) = a.as_chunks::<N>();
    let mut all = *lanes;
    whole.iter().for_each(|x| step::<T, F, N, ORDINARY>(&mut all, x));
    *lanes = all;
    if rest.is_empty() {
        // Returning here keeps the lanes in registers.
        return;
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = combine::<T, F, ORDINARY>(*lane, *x);
    }
}

/// The lanes after accumulation by the fast form, and the magnitudes that tell whether it held.
#[inline(always)]
fn ordinary_into_lanes<T: FoldElement, F: Fold<T>>(mut lanes: [T; LANES], a: &[T]) -> ([T; LANES], MaxMagnitudes<T>) {
    let (whole, rest) = a.as_chunks::<LANES>();
    // Lanes beyond the remainder are combined with their initial values again, which has no effect.
    let mut last = lanes;
    last[..rest.len()].copy_from_slice(rest);
    let mut magnitudes = MaxMagnitudes::of(&lanes);
    for x in whole {
        step::<T, F, LANES, true>(&mut lanes, x);
        magnitudes.add(x);
    }
    if !rest.is_empty() {
        step::<T, F, LANES, true>(&mut lanes, &last);
        magnitudes.add(&last);
    }
    (lanes, magnitudes)
}

/// The maximum magnitudes of the elements, by lane. They tell afterwards whether the fast form held: it did if no
/// element is a NaN and no result is a zero, whose sign could be that of any zero among the elements.
struct MaxMagnitudes<T: FoldElement>([T::Magnitude; NARROW_LANES]);

impl<T: FoldElement> MaxMagnitudes<T> {
    #[inline(always)]
    fn of<const N: usize>(lanes: &[T; N]) -> Self {
        let mut magnitudes = MaxMagnitudes([T::Magnitude::default(); NARROW_LANES]);
        magnitudes.add(lanes);
        magnitudes
    }

    #[inline(always)]
    fn add<const N: usize>(&mut self, all: &[T; N]) {
        for x in all.as_chunks::<NARROW_LANES>().0 {
            self.0 = std::array::from_fn(|k| self.0[k].max(x[k].magnitude()));
        }
    }

    /// Whether the fast form, which gave the results `lanes`, held.
    #[inline(always)]
    fn fast_form_held<const N: usize>(&self, lanes: &[T; N]) -> bool {
        self.0.iter().all(|magnitude| *magnitude <= T::INFINITY_MAGNITUDE)
            && lanes.iter().all(|x| x.magnitude() != T::Magnitude::default())
    }
}

/// Combines the lanes into half as many.
#[inline(always)]
fn half<T: Copy, F: Fold<T>, const N: usize, const HALF: usize, const ORDINARY: bool>(lanes: &[T; N]) -> [T; HALF] {
    std::array::from_fn(|k| combine::<T, F, ORDINARY>(lanes[k], lanes[k + HALF]))
}

/// Combines [`FEW_LANES`] lanes into one element, by halves.
#[inline(always)]
fn few_to_one<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(lanes: &[T; FEW_LANES]) -> T {
    let four: [T; 4] = half::<T, F, FEW_LANES, 4, ORDINARY>(lanes);
    let two: [T; 2] = half::<T, F, 4, 2, ORDINARY>(&four);
    combine::<T, F, ORDINARY>(two[0], two[1]).canonical()
}

/// Combines [`LANES`] lanes into [`FEW_LANES`], by halves.
#[inline(always)]
fn to_few<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(lanes: &[T; LANES]) -> [T; FEW_LANES] {
    let all: [T; 32] = half::<T, F, LANES, 32, ORDINARY>(lanes);
    let all: [T; 16] = half::<T, F, 32, 16, ORDINARY>(&all);
    half::<T, F, 16, FEW_LANES, ORDINARY>(&all)
}

/// Combines [`LANES`] lanes into one element, by halves.
#[inline(always)]
fn to_one<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(lanes: &[T; LANES]) -> T {
    // Without the barrier, compilers use vectors of two elements, the width of the last step, for all steps.
    few_to_one::<T, F, ORDINARY>(&black_box(CacheAligned(to_few::<T, F, ORDINARY>(lanes))).0)
}

#[inline(always)]
fn halves<T: FoldElement, F: Fold<T>>(lanes: &[T; LANES]) -> T {
    if fast_form_applies::<T, F>(lanes, &[]) { to_one::<T, F, true>(lanes) } else { to_one::<T, F, false>(lanes) }
}

/// Folds each row of `length` elements into one element.
#[inline(always)]
fn rows_to_one<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(a: &[T], length: usize, out: &mut [T]) {
    if length < 2 * FEW_LANES {
        for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
            // `take` keeps the whole row; it tells the compiler how short the row is.
            let few = row.iter().take(2 * FEW_LANES - 1);
            *out = few.fold(F::START, |sum, x| combine::<T, F, ORDINARY>(sum, *x)).canonical();
        }
    } else if !T::ORDER_MATTERS {
        for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
            *out = row.iter().fold(F::START, |sum, x| combine::<T, F, ORDINARY>(sum, *x));
        }
    } else if has_many_lanes(length) && (!F::HAS_FAST_FORM || length > MAX_SHORT_ROW) {
        // If there is a fast form, the order does not matter, and only longer rows use all lanes.
        for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
            let mut lanes = CacheAligned([F::START; LANES]);
            tile_into_lanes::<T, F, LANES, ORDINARY>(&mut lanes.0, row);
            *out = if length.is_multiple_of(LANES) {
                to_one::<T, F, ORDINARY>(&lanes.0)
            } else {
                // The remainder loop has left the lanes partly in memory, so the barrier of `to_one` is not needed.
                few_to_one::<T, F, ORDINARY>(&to_few::<T, F, ORDINARY>(&lanes.0))
            };
        }
    } else if length.is_multiple_of(FEW_LANES) {
        for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
            let mut lanes = [F::START; FEW_LANES];
            tile_into_lanes::<T, F, FEW_LANES, ORDINARY>(&mut lanes, row);
            *out = few_to_one::<T, F, ORDINARY>(&black_box(CacheAligned(lanes)).0);
        }
    } else {
        for (i, out) in out.iter_mut().enumerate() {
            *out = few_to_one::<T, F, ORDINARY>(&few_lanes::<T, F, ORDINARY>(&a[i * length..], length));
        }
    }
}

/// Accumulates the first `length` elements in [`FEW_LANES`] lanes. The remainder is read together with the elements
/// after it if there are enough, and the surplus lanes are discarded: this keeps the lanes in registers.
#[inline(always)]
fn few_lanes<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(a: &[T], length: usize) -> [T; FEW_LANES] {
    let ((whole, rest), mut lanes) = (a[..length].as_chunks(), [F::START; FEW_LANES]);
    whole.iter().for_each(|x| step::<T, F, FEW_LANES, ORDINARY>(&mut lanes, x));
    if let Some(x) = a[length - rest.len()..].first_chunk::<FEW_LANES>() {
        return std::array::from_fn(|k| {
            let more = combine::<T, F, ORDINARY>(lanes[k], x[k]);
            if k < rest.len() { more } else { lanes[k] }
        });
    }
    tile_into_lanes::<T, F, FEW_LANES, ORDINARY>(&mut lanes, rest);
    lanes
}

/// Accumulates the first `n` elements, rows of `width`: in the first elements of `lanes`, or in `sums`, which has
/// `width` elements, if a row is wider than the lanes.
#[inline(always)]
fn accumulate_rows<T: FoldElement, F: Fold<T>>(
    lanes: &mut [T; LANES],
    sums: &mut [T],
    width: usize,
    a: &[T],
    n: usize,
) {
    if width > LANES {
        let (rows, rest) = a[..n].split_at(n / width * width);
        accumulate_wide::<T, F>(sums, rows, width);
        for (sum, x) in sums.iter_mut().zip(rest) {
            *sum = F::combine(*sum, *x);
        }
    } else if width > NARROW_LANES {
        accumulate_narrow::<T, F, LANES>(lanes, width, a, n);
    } else if let Some(lanes) = lanes.first_chunk_mut() {
        accumulate_narrow::<T, F, NARROW_LANES>(lanes, width, a, n);
    }
}

/// [`accumulate_rows`] for rows of at most `N` elements. The elements after a row are accumulated too, in the lanes
/// after the first `width`, which are ignored.
#[inline(always)]
fn accumulate_narrow<T: FoldElement, F: Fold<T>, const N: usize>(lanes: &mut [T; N], width: usize, a: &[T], n: usize) {
    let (all, magnitudes, at) = accumulate_whole_rows::<T, F, N, true>(*lanes, width, a, n);
    *lanes = if !F::HAS_FAST_FORM
        || magnitudes.fast_form_held(&all)
        || fast_form_applies::<T, F>(&a[..n], &lanes[..width])
    {
        all
    } else {
        accumulate_whole_rows::<T, F, N, false>(*lanes, width, a, n).0
    };
    for row in a[at..n].chunks(width) {
        for (sum, x) in lanes.iter_mut().zip(row) {
            *sum = F::combine(*sum, *x);
        }
    }
}

/// Accumulates the rows from whose start `N` elements can be read; also returns the start of the next row.
#[inline(always)]
fn accumulate_whole_rows<T: FoldElement, F: Fold<T>, const N: usize, const ORDINARY: bool>(
    mut lanes: [T; N],
    width: usize,
    a: &[T],
    n: usize,
) -> ([T; N], MaxMagnitudes<T>, usize) {
    let (mut magnitudes, mut at) = (MaxMagnitudes::of(&lanes), 0);
    while at + width <= n
        && let Some(row) = a[at..].first_chunk::<N>()
    {
        step::<T, F, N, ORDINARY>(&mut lanes, row);
        if F::HAS_FAST_FORM && ORDINARY {
            magnitudes.add(row);
        }
        at += width;
    }
    (lanes, magnitudes, at)
}

/// Accumulates rows in `sums`, [`LANES`] columns at a time. Rows have as many elements as `sums`, at least [`LANES`],
/// and start `stride` elements apart.
#[inline(always)]
fn accumulate_wide<T: FoldElement, F: Fold<T>>(sums: &mut [T], rows: &[T], stride: usize) {
    let (width, whole) = (sums.len(), sums.len() / LANES * LANES);
    // The last columns are computed together with some before them, whose results are discarded.
    if whole < width {
        let last = columns::<T, F>(sums, rows, stride, width - LANES);
        sums[whole..].copy_from_slice(&last[LANES - (width - whole)..]);
    }
    for at in (0..whole).step_by(LANES) {
        let lanes = columns::<T, F>(sums, rows, stride, at);
        sums[at..at + LANES].copy_from_slice(&lanes);
    }
}

/// Accumulates [`LANES`] columns, starting with column `at`.
#[inline(always)]
fn columns<T: FoldElement, F: Fold<T>>(sums: &[T], rows: &[T], stride: usize, at: usize) -> [T; LANES] {
    let lanes = *sums[at..].first_chunk::<LANES>().unwrap_or(&[F::START; LANES]);
    let (all, magnitudes) = columns_in_form::<T, F, true>(lanes, rows, stride, at);
    if !F::HAS_FAST_FORM
        || magnitudes.fast_form_held(&all)
        || T::are_ordinary(&lanes) && rows.chunks(stride).all(|row| T::are_ordinary(&row[at..at + LANES]))
    {
        return all;
    }
    columns_in_form::<T, F, false>(lanes, rows, stride, at).0
}

#[inline(always)]
fn columns_in_form<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(
    mut lanes: [T; LANES],
    rows: &[T],
    stride: usize,
    at: usize,
) -> ([T; LANES], MaxMagnitudes<T>) {
    let mut magnitudes = MaxMagnitudes::of(&lanes);
    for row in rows.chunks(stride) {
        if let Some(row) = row[at..].first_chunk() {
            step::<T, F, LANES, ORDINARY>(&mut lanes, row);
            if F::HAS_FAST_FORM && ORDINARY {
                magnitudes.add(row);
            }
        }
    }
    (lanes, magnitudes)
}

/// # Safety
/// As [`BlockFn`] for one operand of `T` and a result of [`LANES`] elements of `T`, which is also read.
#[inline(always)]
unsafe fn lanes_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, LANES)) };
    let mut lanes = CacheAligned([F::START; LANES]);
    lanes.0.copy_from_slice(out);
    into_lanes::<T, F>(&mut lanes.0, a);
    out.copy_from_slice(&lanes.0);
    0
}

/// # Safety
/// As [`BlockFn`] for one operand of `T` and a result of one `T`.
#[inline(always)]
unsafe fn whole_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, 1)) };
    let mut lanes = CacheAligned([F::START; LANES]);
    into_lanes::<T, F>(&mut lanes.0, a);
    out[0] = halves::<T, F>(&lanes.0);
    0
}

/// # Safety
/// As [`BlockFn`] for `n` elements of `T`, a multiple of [`LANES`], and a result of `n / LANES` elements.
#[inline(always)]
unsafe fn halves_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, n / LANES)) };
    for (out, lanes) in out.iter_mut().zip(a.as_chunks().0) {
        *out = halves::<T, F>(lanes);
    }
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
    if !F::HAS_FAST_FORM {
        rows_to_one::<T, F, false>(a, length, out);
        return 0;
    }
    let rows = (CHECKED_BLOCK / length).max(1);
    for (a, out) in a.chunks(rows * length).zip(out.chunks_mut(rows)) {
        if fast_form_applies::<T, F>(a, &[]) {
            rows_to_one::<T, F, true>(a, length, out);
        } else {
            rows_to_one::<T, F, false>(a, length, out);
        }
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

/// # Safety
/// As [`BlockFn`] for `n` elements of `T` and a result of `width` elements. `width` is the address of the second
/// operand, at least [`LANES`] unless `n` is 0; the stride is the address of the third, at least `width`. `n` is a
/// multiple of the stride plus `width`.
#[inline(always)]
unsafe fn columns_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    let (width, stride) = (args[1].addr().max(1), args[2].addr().max(1));
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, width)) };
    out.fill(F::START);
    // As many rows at a time as fit in the L1 cache.
    for a in a.chunks((CHECKED_BLOCK / width).max(1) * stride) {
        accumulate_wide::<T, F>(out, a, stride);
    }
    out.iter_mut().for_each(|x| *x = x.canonical());
    0
}

/// # Safety
/// As [`BlockFn`] for `n` elements of `T` and a result, which is also read, of one row for each group of rows and for
/// an incomplete last group. The address of the second operand, at least 1, is the length of a row; the address of the
/// third is the number of rows of a group.
#[inline(always)]
unsafe fn stack_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    let (width, count) = (args[1].addr().max(1), args[2].addr().max(1));
    let (joined_rows, length) = (side_by_side(count, width), count * width);
    let groups = if n <= length { 1 } else { n.div_ceil(length) };
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, groups * width)) };
    let joined = joined_rows * width;
    // Few enough rows at a time that they are still in the L1 cache if they must be checked for the fast form.
    let most = joined * if joined <= LANES { CHECKED_BLOCK / LANES } else { CHECKED_BLOCK / MAX_SHORT_ROW };
    for (out, from) in out.chunks_exact_mut(width).zip((0..n).step_by(length)) {
        let mut lanes = CacheAligned([F::START; LANES]);
        if joined == width && width <= LANES {
            lanes.0[..width].copy_from_slice(out);
        }
        let (mut at, end) = (from, n.min(from + length));
        while at < end {
            accumulate_rows::<T, F>(&mut lanes.0, out, joined, &a[at..], most.min(end - at));
            at += most;
        }
        if joined > width {
            // Padding for the reads after the last row.
            let mut rows = CacheAligned([F::START; LANES + MAX_JOINED]);
            rows.0[..LANES].copy_from_slice(&lanes.0);
            let mut row = CacheAligned([F::START; MAX_JOINED]);
            row.0[..width].copy_from_slice(out);
            accumulate_narrow::<T, F, MAX_JOINED>(&mut row.0, width, &rows.0, joined);
            out.copy_from_slice(&row.0[..width]);
        } else if width <= LANES {
            out.copy_from_slice(&lanes.0[..width]);
        }
        out.iter_mut().for_each(|x| *x = x.canonical());
    }
    0
}

levels!(lanes, lanes_body, <T: FoldElement, F: OpFold<T>>);
levels!(whole, whole_body, <T: FoldElement, F: OpFold<T>>);
levels!(halved, halves_body, <T: FoldElement, F: OpFold<T>>);
levels!(short, short_body, <T: FoldElement, F: OpFold<T>>);
levels!(rows, rows_body, <T: FoldElement, F: OpFold<T>>);
levels!(column_fold, columns_body, <T: FoldElement, F: OpFold<T>>);
levels!(stack, stack_body, <T: FoldElement, F: OpFold<T>>);
use Fold as OpFold;

/// The kernel of one part of a reduction.
pub(super) fn part<T: 'static + FoldElement, F: 'static + Fold<T>>(part: Part, level: CpuLevel) -> BlockFn {
    match part {
        Part::Lanes => lanes::<T, F>(level),
        Part::Whole => whole::<T, F>(level),
        Part::Halves => halved::<T, F>(level),
        Part::Short => short::<T, F>(level),
        Part::Rows => rows::<T, F>(level),
        Part::Columns => column_fold::<T, F>(level),
        Part::Stack => stack::<T, F>(level),
    }
}

/// Divides every element (or part of a complex number) by a count, which turns sums into means. NaN results, also those
/// of 0 / 0, are canonical.
pub(crate) fn divide(dtype: DType, all: &mut [u8], n: usize) {
    let _standard = FloatMode::standard();
    // Keeps the conversion to float within the scope of the standard mode.
    let n = black_box(n);
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

/// The result of an empty reduction, from the reduction's [`Part::Whole`] kernel.
pub(crate) fn of_nothing(whole: BlockFn) -> Bits {
    let (none, mut out) = (Bits::default(), Bits::default());
    // SAFETY: no element is read; `Bits` is aligned for and holds one element of any dtype.
    unsafe { whole(operands([(&raw const none).cast()]), (&raw mut out).cast(), 0) };
    out
}
