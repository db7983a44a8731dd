//! What reductions are made of: a tile into elements side by side and these to one, short rows to one element each, rows
//! into the row of results so far.
//!
//! Guarantees: the order in which elements are combined depends on the shape alone; results hold canonical NaNs.
//! Does not: cut a reduction into tiles or put their results together; `driver` and `launch` do.

use std::hint::black_box;

use super::num::Canonical;
use super::{BlockFn, CpuLevel, levels, operands, slice, slice_mut};
use crate::base::dtype::DType;
use crate::base::host::FloatMode;
use crate::base::scalar::Bits;
use crate::ops::MAX_OPERANDS;

/// A reduction: how two elements combine, and what combining nothing gives.
pub(in crate::kernels) trait Fold<T> {
    const START: T;
    /// Whether there is a faster form for ordinary elements ([`Canonical::are_ordinary`]), with the same result, and whether
    /// elements can be combined again without changing it.
    const FASTER: bool;
    fn combine(a: T, b: T) -> T;
    fn combine_ordinary(a: T, b: T) -> T;
}

/// An element that folds.
pub(in crate::kernels) trait FoldElement: Copy + Canonical {}
impl<T: Copy + Canonical> FoldElement for T {}

/// The kernels of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Any number of elements (the first operand) into the [`LANES`] elements of the result.
    Lanes,
    /// Any number of elements (the first operand) to one.
    Whole,
    /// The [`LANES`] elements that these became to one, of each of several rows: both in turn give what the kernel for the whole
    /// does.
    Halves,
    /// Rows of so many elements (the second operand is that number, not a pointer) to one each: `n` elements in all.
    Short,
    /// Two rows to one: elements at the same place are combined.
    Rows,
    /// Rows of so many neighbours (the second operand), which begin so many elements apart (the third), to one.
    Columns,
    /// Rows of so many neighbours (the second operand), one behind the other, as many as the third says into one row of the
    /// result, those behind them into the next: `n` elements in all.
    Stack,
}

/// Elements that are combined side by side.
pub(crate) const LANES: usize = 64;

/// Elements side by side of a row for which combining [`LANES`] would take the longest.
const FEW_LANES: usize = 8;

/// Whether rows of so many elements have [`LANES`] of them side by side.
pub(crate) const fn has_many_lanes(length: usize) -> bool {
    length > WIDEST || length >= 2 * LANES && length.is_multiple_of(LANES)
}

/// Elements of the longest rows that lie one behind the other.
const WIDEST: usize = 256;

/// Elements that are looked at, and then combined, at a time.
const PILED: usize = 2048;

/// Elements side by side where rows of so few are combined: more would be combined in vain.
const NARROW: usize = 16;

/// Where vectors of it don't cross cache lines: else the kernels take up to twice as long, as the stack happens to lie.
#[repr(align(64))]
struct Lines<T>(T);

/// Elements of a row of which several are combined side by side, at most.
const MOST_JOINED: usize = LANES / 2;

/// Of `count` rows of `width` elements that are combined, how many are combined side by side, as if they were one longer row
/// each time; what they become is combined last. Narrow rows one by one would wait for each other.
pub(crate) fn side_by_side(count: usize, width: usize) -> usize {
    let most = LANES / width.max(1);
    if most > 1 && count >= 4 * most { most } else { 1 }
}

/// How two elements combine, of which both are ordinary if it says so.
#[inline(always)]
fn combine<T, F: Fold<T>, const ORDINARY: bool>(a: T, b: T) -> T {
    if ORDINARY { F::combine_ordinary(a, b) } else { F::combine(a, b) }
}

/// Whether a reduction has a faster form, and all elements are those that it holds for.
#[inline(always)]
fn is_faster<T: FoldElement, F: Fold<T>>(a: &[T], b: &[T]) -> bool {
    F::FASTER && T::are_ordinary(a) && T::are_ordinary(b)
}

/// Combines elements into as many lanes. These must be in registers: a copy of the array of which no other element is asked.
#[inline(always)]
fn step<T: Copy, F: Fold<T>, const N: usize, const ORDINARY: bool>(lanes: &mut [T; N], x: &[T; N]) {
    *lanes = std::array::from_fn(|k| combine::<T, F, ORDINARY>(lanes[k], x[k]));
}

/// Combines elements into those of the lanes, one after the other: element `i` goes to lane `i % N`. Compiled loops do the
/// same.
#[inline(always)]
fn into_lanes<T: FoldElement, F: Fold<T>>(lanes: &mut [T; LANES], a: &[T]) {
    for a in a.chunks(PILED) {
        if F::FASTER {
            let (all, sizes) = ordinary_into_lanes::<T, F>(*lanes, a);
            if sizes.held(&all) || is_faster::<T, F>(a, lanes) {
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
        // They stay in registers.
        return;
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = combine::<T, F, ORDINARY>(*lane, *x);
    }
}

/// What the lanes become by the faster form, and what tells whether it held.
#[inline(always)]
fn ordinary_into_lanes<T: FoldElement, F: Fold<T>>(mut lanes: [T; LANES], a: &[T]) -> ([T; LANES], Sizes<T>) {
    let (whole, rest) = a.as_chunks::<LANES>();
    // Lanes for which nothing is left are combined with what they were.
    let mut last = lanes;
    last[..rest.len()].copy_from_slice(rest);
    let mut sizes = Sizes::of(&lanes);
    for x in whole {
        step::<T, F, LANES, true>(&mut lanes, x);
        sizes.add(x);
    }
    if !rest.is_empty() {
        step::<T, F, LANES, true>(&mut lanes, &last);
        sizes.add(&last);
    }
    (lanes, sizes)
}

/// The largest magnitudes of elements, several side by side: they tell afterwards whether the faster form held. It did if no
/// element is a NaN and nothing became a zero, of which the sign would be that of any of its zeros.
struct Sizes<T: FoldElement>([T::Size; NARROW]);

impl<T: FoldElement> Sizes<T> {
    #[inline(always)]
    fn of<const N: usize>(lanes: &[T; N]) -> Self {
        let mut sizes = Sizes([T::Size::default(); NARROW]);
        sizes.add(lanes);
        sizes
    }

    #[inline(always)]
    fn add<const N: usize>(&mut self, all: &[T; N]) {
        for x in all.as_chunks::<NARROW>().0 {
            self.0 = std::array::from_fn(|k| self.0[k].max(x[k].size()));
        }
    }

    /// Whether the faster form held, of which these are the results.
    #[inline(always)]
    fn held<const N: usize>(&self, lanes: &[T; N]) -> bool {
        self.0.iter().all(|size| *size <= T::INFINITE) && lanes.iter().all(|x| x.size() != T::Size::default())
    }
}

/// Combines lanes to half as many.
#[inline(always)]
fn half<T: Copy, F: Fold<T>, const N: usize, const HALF: usize, const ORDINARY: bool>(lanes: &[T; N]) -> [T; HALF] {
    std::array::from_fn(|k| combine::<T, F, ORDINARY>(lanes[k], lanes[k + HALF]))
}

/// Combines few lanes to one, by halves.
#[inline(always)]
fn few_to_one<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(lanes: &[T; FEW_LANES]) -> T {
    let four: [T; 4] = half::<T, F, FEW_LANES, 4, ORDINARY>(lanes);
    let two: [T; 2] = half::<T, F, 4, 2, ORDINARY>(&four);
    combine::<T, F, ORDINARY>(two[0], two[1]).canonical()
}

/// Combines lanes to few, by halves.
#[inline(always)]
fn to_few<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(lanes: &[T; LANES]) -> [T; FEW_LANES] {
    let all: [T; 32] = half::<T, F, LANES, 32, ORDINARY>(lanes);
    let all: [T; 16] = half::<T, F, 32, 16, ORDINARY>(&all);
    half::<T, F, 16, FEW_LANES, ORDINARY>(&all)
}

/// Combines lanes to one, by halves.
#[inline(always)]
fn to_one<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(lanes: &[T; LANES]) -> T {
    // Compilers would else take vectors of two elements, as the last ones are, from the start.
    few_to_one::<T, F, ORDINARY>(&black_box(Lines(to_few::<T, F, ORDINARY>(lanes))).0)
}

#[inline(always)]
fn halves<T: FoldElement, F: Fold<T>>(lanes: &[T; LANES]) -> T {
    if is_faster::<T, F>(lanes, &[]) { to_one::<T, F, true>(lanes) } else { to_one::<T, F, false>(lanes) }
}

/// Combines each of some rows of so many elements to one.
#[inline(always)]
fn rows_to_one<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(a: &[T], length: usize, out: &mut [T]) {
    if length < 2 * FEW_LANES {
        for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
            // All of it: so compilers see how short it is.
            let few = row.iter().take(2 * FEW_LANES - 1);
            *out = few.fold(F::START, |sum, x| combine::<T, F, ORDINARY>(sum, *x)).canonical();
        }
    } else if !T::IN_ORDER {
        for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
            *out = row.iter().fold(F::START, |sum, x| combine::<T, F, ORDINARY>(sum, *x));
        }
    } else if has_many_lanes(length) && (!F::FASTER || length > WIDEST) {
        // Of what has a faster form the order does not matter.
        for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
            let mut lanes = Lines([F::START; LANES]);
            tile_into_lanes::<T, F, LANES, ORDINARY>(&mut lanes.0, row);
            *out = if length.is_multiple_of(LANES) {
                to_one::<T, F, ORDINARY>(&lanes.0)
            } else {
                // What a rest was combined with lies in memory in parts.
                few_to_one::<T, F, ORDINARY>(&to_few::<T, F, ORDINARY>(&lanes.0))
            };
        }
    } else if length.is_multiple_of(FEW_LANES) {
        for (out, row) in out.iter_mut().zip(a.chunks_exact(length)) {
            let mut lanes = [F::START; FEW_LANES];
            tile_into_lanes::<T, F, FEW_LANES, ORDINARY>(&mut lanes, row);
            *out = few_to_one::<T, F, ORDINARY>(&black_box(Lines(lanes)).0);
        }
    } else {
        for (i, out) in out.iter_mut().enumerate() {
            *out = few_to_one::<T, F, ORDINARY>(&few_lanes::<T, F, ORDINARY>(&a[i * length..], length));
        }
    }
}

/// The few lanes of the first `length` elements. The rest, which is no whole number of them, is combined with those behind it
/// if there are enough, and the lanes chosen: they stay in registers then.
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

/// Combines the first `n` elements, rows of `width`, one after the other: into the first elements of the lanes, or into
/// `sums`, which are as many, where they are more than the lanes.
#[inline(always)]
fn pile_up<T: FoldElement, F: Fold<T>>(lanes: &mut [T; LANES], sums: &mut [T], width: usize, a: &[T], n: usize) {
    if width > LANES {
        let (rows, rest) = a[..n].split_at(n / width * width);
        pile_up_many::<T, F>(sums, rows, width);
        for (sum, x) in sums.iter_mut().zip(rest) {
            *sum = F::combine(*sum, *x);
        }
    } else if width > NARROW {
        pile_up_few::<T, F, LANES>(lanes, width, a, n);
    } else if let Some(lanes) = lanes.first_chunk_mut() {
        pile_up_few::<T, F, NARROW>(lanes, width, a, n);
    }
}

/// That of rows of `N` elements at most. What lies behind a row is combined too, with what is behind the first elements.
#[inline(always)]
fn pile_up_few<T: FoldElement, F: Fold<T>, const N: usize>(lanes: &mut [T; N], width: usize, a: &[T], n: usize) {
    let (all, sizes, at) = pile_up_so::<T, F, N, true>(*lanes, width, a, n);
    *lanes = if !F::FASTER || sizes.held(&all) || is_faster::<T, F>(&a[..n], &lanes[..width]) {
        all
    } else {
        pile_up_so::<T, F, N, false>(*lanes, width, a, n).0
    };
    for row in a[at..n].chunks(width) {
        for (sum, x) in lanes.iter_mut().zip(row) {
            *sum = F::combine(*sum, *x);
        }
    }
}

/// As many rows as `N` elements can be read from; returns where the next begins.
#[inline(always)]
fn pile_up_so<T: FoldElement, F: Fold<T>, const N: usize, const ORDINARY: bool>(
    mut lanes: [T; N],
    width: usize,
    a: &[T],
    n: usize,
) -> ([T; N], Sizes<T>, usize) {
    let (mut sizes, mut at) = (Sizes::of(&lanes), 0);
    while at + width <= n
        && let Some(row) = a[at..].first_chunk::<N>()
    {
        step::<T, F, N, ORDINARY>(&mut lanes, row);
        if F::FASTER && ORDINARY {
            sizes.add(row);
        }
        at += width;
    }
    (lanes, sizes, at)
}

/// Combines rows that are as long as `sums`, at least [`LANES`] elements, and begin so many apart, into these: that many
/// columns at a time.
#[inline(always)]
fn pile_up_many<T: FoldElement, F: Fold<T>>(sums: &mut [T], rows: &[T], apart: usize) {
    let (width, whole) = (sums.len(), sums.len() / LANES * LANES);
    // The last columns, with some of those before them, whose results are left alone.
    if whole < width {
        let last = columns::<T, F>(sums, rows, apart, width - LANES);
        sums[whole..].copy_from_slice(&last[LANES - (width - whole)..]);
    }
    for at in (0..whole).step_by(LANES) {
        let lanes = columns::<T, F>(sums, rows, apart, at);
        sums[at..at + LANES].copy_from_slice(&lanes);
    }
}

/// What [`LANES`] columns from `at` on become.
#[inline(always)]
fn columns<T: FoldElement, F: Fold<T>>(sums: &[T], rows: &[T], apart: usize, at: usize) -> [T; LANES] {
    let lanes = *sums[at..].first_chunk::<LANES>().unwrap_or(&[F::START; LANES]);
    let (all, sizes) = columns_so::<T, F, true>(lanes, rows, apart, at);
    if !F::FASTER
        || sizes.held(&all)
        || T::are_ordinary(&lanes) && rows.chunks(apart).all(|row| T::are_ordinary(&row[at..at + LANES]))
    {
        return all;
    }
    columns_so::<T, F, false>(lanes, rows, apart, at).0
}

#[inline(always)]
fn columns_so<T: FoldElement, F: Fold<T>, const ORDINARY: bool>(
    mut lanes: [T; LANES],
    rows: &[T],
    apart: usize,
    at: usize,
) -> ([T; LANES], Sizes<T>) {
    let mut sizes = Sizes::of(&lanes);
    for row in rows.chunks(apart) {
        if let Some(row) = row[at..].first_chunk() {
            step::<T, F, LANES, ORDINARY>(&mut lanes, row);
            if F::FASTER && ORDINARY {
                sizes.add(row);
            }
        }
    }
    (lanes, sizes)
}

/// # Safety
/// As [`BlockFn`] for one operand of `T` and a result of [`LANES`] of `T`, which is read too.
#[inline(always)]
unsafe fn lanes_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, LANES)) };
    let mut lanes = Lines([F::START; LANES]);
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
    let mut lanes = Lines([F::START; LANES]);
    into_lanes::<T, F>(&mut lanes.0, a);
    out[0] = halves::<T, F>(&lanes.0);
    0
}

/// # Safety
/// As [`BlockFn`] for `n` elements of `T`, a multiple of [`LANES`], and a result of one for so many.
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
    if !F::FASTER {
        rows_to_one::<T, F, false>(a, length, out);
        return 0;
    }
    let rows = (PILED / length).max(1);
    for (a, out) in a.chunks(rows * length).zip(out.chunks_mut(rows)) {
        if is_faster::<T, F>(a, &[]) {
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
/// As [`BlockFn`] for `n` elements of `T` and a result of `width`, `width` being the address of the second operand: at least
/// [`LANES`] unless `n` is 0. The address of the third is no less; `n` is a multiple of that, and `width` more.
#[inline(always)]
unsafe fn columns_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    let (width, apart) = (args[1].addr().max(1), args[2].addr().max(1));
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, width)) };
    out.fill(F::START);
    // As many rows as fit the first cache.
    for a in a.chunks((PILED / width).max(1) * apart) {
        pile_up_many::<T, F>(out, a, apart);
    }
    out.iter_mut().for_each(|x| *x = x.canonical());
    0
}

/// # Safety
/// As [`BlockFn`] for `n` elements of `T` and a result of a row, which is read too, for so many rows of them as the address of
/// the third operand says, or for what is left of them; the address of the second, at least 1, is how long a row is.
#[inline(always)]
unsafe fn stack_body<T: FoldElement, F: Fold<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    let (width, count) = (args[1].addr().max(1), args[2].addr().max(1));
    let (together, length) = (side_by_side(count, width), count * width);
    let groups = if n <= length { 1 } else { n.div_ceil(length) };
    // SAFETY: the contract.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<T>(out, groups * width)) };
    let joined = together * width;
    // So few rows at a time that the first cache has them still if they must be looked at.
    let most = joined * if joined <= LANES { PILED / LANES } else { PILED / WIDEST };
    for (out, from) in out.chunks_exact_mut(width).zip((0..n).step_by(length)) {
        let mut lanes = Lines([F::START; LANES]);
        if joined == width && width <= LANES {
            lanes.0[..width].copy_from_slice(out);
        }
        let (mut at, end) = (from, n.min(from + length));
        while at < end {
            pile_up::<T, F>(&mut lanes.0, out, joined, &a[at..], most.min(end - at));
            at += most;
        }
        if joined > width {
            // Room for what is read behind the last row.
            let mut rows = Lines([F::START; LANES + MOST_JOINED]);
            rows.0[..LANES].copy_from_slice(&lanes.0);
            let mut row = Lines([F::START; MOST_JOINED]);
            row.0[..width].copy_from_slice(out);
            pile_up_few::<T, F, MOST_JOINED>(&mut row.0, width, &rows.0, joined);
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
levels!(spaced, columns_body, <T: FoldElement, F: OpFold<T>>);
levels!(stack, stack_body, <T: FoldElement, F: OpFold<T>>);
use Fold as OpFold;

/// A kernel of a reduction.
pub(super) fn part<T: 'static + FoldElement, F: 'static + Fold<T>>(part: Part, level: CpuLevel) -> BlockFn {
    match part {
        Part::Lanes => lanes::<T, F>(level),
        Part::Whole => whole::<T, F>(level),
        Part::Halves => halved::<T, F>(level),
        Part::Short => short::<T, F>(level),
        Part::Rows => rows::<T, F>(level),
        Part::Columns => spaced::<T, F>(level),
        Part::Stack => stack::<T, F>(level),
    }
}

/// Divides every element (or part) by a count: sums to means. NaNs stay canonical: 0 / 0 is made so.
pub(crate) fn divide(dtype: DType, all: &mut [u8], n: usize) {
    let _standard = FloatMode::standard();
    // It becomes a float here, not before.
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

/// What a reduction's kernel for the whole gives for no elements.
pub(crate) fn of_nothing(whole: BlockFn) -> Bits {
    let (none, mut out) = (Bits::default(), Bits::default());
    // SAFETY: no element is read; `Bits` is aligned for and holds one element of any dtype.
    unsafe { whole(operands([(&raw const none).cast()]), (&raw mut out).cast(), 0) };
    out
}
