//! Kernels that find the first largest or smallest element: in a line, or in each column of rows; and the last one up to each
//! element.
//!
//! Guarantees: the first of equal elements, and the first NaN, is found, or the last of those up to an element, at every CPU level.
//! Does not: divide a line into pieces; `driver` does.

use super::keys::{Key, Ordered, with_ordered};
use super::{BlockFn, CpuLevel, levels, slice, slice_mut};
use crate::base::dtype::DType;
use crate::ops::{MAX_OPERANDS, Op};

/// Which end of the order is looked for.
pub(in crate::kernels) trait End {
    fn key<T: Ordered>(x: T) -> T::Key;
    /// The key of the end, of the least and the largest quick key of numbers.
    fn of<T: Ordered>(least: T::Key, most: T::Key) -> T::Key;
}

struct Largest;
struct Smallest;

impl End for Largest {
    #[inline(always)]
    fn key<T: Ordered>(x: T) -> T::Key {
        x.ascending()
    }

    #[inline(always)]
    fn of<T: Ordered>(_least: T::Key, most: T::Key) -> T::Key {
        T::settled(most)
    }
}

impl End for Smallest {
    #[inline(always)]
    fn key<T: Ordered>(x: T) -> T::Key {
        x.descending()
    }

    #[inline(always)]
    fn of<T: Ordered>(least: T::Key, _most: T::Key) -> T::Key {
        T::settled(least).reversed()
    }
}

/// Elements of a line whose largest key is found before its position is. 2026-11-28, one core of a virtual AMD EPYC (Zen 4, AVX-512),
/// rows of 4096 f32 in the L2 cache, ns an element: 0.087 with 2048, 0.068 with 512.
const LINE_BLOCK: usize = 512;

/// Columns that [`columns_body`] goes through together, whose keys and positions stay in the L1 cache.
pub(crate) const COLUMN_BLOCK: usize = 512;

/// Elements whose keys are compared at the same time: of 32-bit keys two vectors of AVX-512, four of AVX2. With one running maximum the
/// compiler emits a loop of single elements. 2026-11-26, one core of a virtual AMD EPYC (Zen 4, AVX-512), rows of 4096 f32, ns an
/// element: 1.03 with one running maximum, 0.11 with 32.
const LANES: usize = 32;

/// The least and the largest key of a block, which has at least one element.
#[inline(always)]
fn ends<T: Ordered>(block: &[T], key: impl Fn(T) -> T::Key) -> (T::Key, T::Key) {
    let (mut least, mut most) = ([key(block[0]); LANES], [key(block[0]); LANES]);
    let (groups, rest) = block.as_chunks::<LANES>();
    for group in groups {
        for ((least, most), x) in least.iter_mut().zip(&mut most).zip(group) {
            (*least, *most) = (key(*x).min(*least), key(*x).max(*most));
        }
    }
    let least = least.iter().fold(least[0], |least, key| least.min(*key));
    let most = most.iter().fold(most[0], |most, key| most.max(*key));
    rest.iter().fold((least, most), |(least, most), x| (least.min(key(*x)), most.max(key(*x))))
}

/// The largest key of a block, which has at least one element.
#[inline(always)]
fn most<T: Ordered, E: End>(block: &[T]) -> T::Key {
    let (least, most) = ends(block, T::quick);
    if least < T::QUICK.0 || most > T::QUICK.1 { ends(block, E::key).1 } else { E::of::<T>(least, most) }
}

/// The position of the first element with this key, which the block has.
#[inline(always)]
fn first<T: Ordered, E: End>(block: &[T], key: T::Key) -> usize {
    let (groups, _) = block.as_chunks::<LANES>();
    let has = |group: &[T; LANES]| group.iter().fold(false, |has, x| has | (E::key(*x) == key));
    let skipped = groups.iter().position(has).unwrap_or(groups.len()) * LANES;
    skipped + block[skipped..].iter().position(|x| E::key(*x) == key).unwrap_or(0)
}

/// # Safety
/// As [`BlockFn`] for `n` elements of `T`, at least one, and a result of one `i64`: the position.
#[inline(always)]
unsafe fn line_body<T: Ordered, E: End>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (all, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<i64>(out, 1)) };
    let mut best = E::key(all[0]);
    let mut found = &all[..n.min(LINE_BLOCK)];
    for block in all.chunks(LINE_BLOCK) {
        let most = most::<T, E>(block);
        if most > best {
            (best, found) = (most, block);
        }
    }
    let from = (found.as_ptr().addr() - all.as_ptr().addr()) / size_of::<T>();
    out[0] = (from + first::<T, E>(found, best)) as i64;
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

/// # Safety
/// As [`BlockFn`] for rows of elements of `T` and rows of as many results, each an `i64`: the second operand is the number of columns,
/// from 1 to [`COLUMN_BLOCK`], the third the distance between the starts of rows, at least as much, the fourth the number of rows whose
/// results are there; `n` is a multiple of the distance plus the number of columns. Results beside these columns are not touched.
#[inline(always)]
unsafe fn running_body<T: Ordered, E: End>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    let (width, stride) = (args[1].addr().clamp(1, COLUMN_BLOCK), args[2].addr().max(1));
    let (all, done, rows) = (
        // SAFETY: the contract.
        unsafe { slice::<T>(args[0], n) },
        args[3].addr(),
        n.div_ceil(stride),
    );
    // SAFETY: the contract; a row of results is nobody else's.
    let results = |row: usize| unsafe { slice_mut::<i64>(out.cast::<i64>().add(row * stride).cast(), width) };
    let (mut keys, mut found) = ([E::key(all[0]); COLUMN_BLOCK], [0i64; COLUMN_BLOCK]);
    let before = done.checked_sub(1).map(results);
    for (column, (key, at)) in keys.iter_mut().zip(&mut found).take(width).enumerate() {
        *at = before.as_ref().map_or(0, |row| row[column]);
        *key = E::key(all[*at as usize * stride + column]);
    }
    for row in done..rows {
        let elements = &all[row * stride..][..width];
        for (((key, at), x), to) in keys.iter_mut().zip(&mut found).zip(elements).zip(results(row)) {
            let next = E::key(*x);
            *at = if next >= *key { row as i64 } else { *at };
            *key = next.max(*key);
            *to = *at;
        }
    }
    0
}

/// As [`running_body`] for one column, whose rows follow each other.
///
/// # Safety
/// As [`BlockFn`] for `n` elements of `T` and as many results, each an `i64`; the fourth operand is the number of results that are
/// there.
#[inline(always)]
unsafe fn running_line_body<T: Ordered, E: End>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract.
    let (all, out, done) = unsafe { (slice::<T>(args[0], n), slice_mut::<i64>(out, n), args[3].addr()) };
    let mut at = done.checked_sub(1).map_or(0, |last| out[last]);
    let mut key = E::key(all[at as usize]);
    for (row, (x, to)) in (done as i64..).zip(all[done..].iter().zip(&mut out[done..])) {
        let next = E::key(*x);
        at = if next >= key { row } else { at };
        key = next.max(key);
        *to = at;
    }
    0
}

levels!(running, running_body, <T: Element, E: Side>);
levels!(running_line, running_line_body, <T: Element, E: Side>);
levels!(line, line_body, <T: Element, E: Side>);
levels!(columns, columns_body, <T: Element, E: Side>);
use End as Side;
use Ordered as Element;

/// The kernels of one op and dtype. Those of the positions up to each element give as many positions as there are elements, and
/// take as the fourth operand the number of rows whose positions are there already.
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
        Op::CummaxIndices => {
            Some(IndexKernels { line: running_line::<T, Largest>(level), columns: running::<T, Largest>(level) })
        }
        Op::CumminIndices => {
            Some(IndexKernels { line: running_line::<T, Smallest>(level), columns: running::<T, Smallest>(level) })
        }
        _ => None,
    }
}

/// The kernels of an op that finds positions; `None` for another op.
pub(crate) fn index_kernels(op: Op, dtype: DType, level: CpuLevel) -> Option<IndexKernels> {
    with_ordered!(dtype, T => kernels::<T>(op, level))
}
