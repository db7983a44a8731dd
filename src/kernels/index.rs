//! Kernels that find the first largest or smallest element: in a line, or in each column of rows; and the last one up to each
//! element.
//!
//! Elements are compared as integers, their keys, which order as they do: zeros are equal, and a NaN is beyond all numbers at
//! either end. Complex numbers order by the real part, then the imaginary part.
//!
//! Guarantees: the first of equal elements, and the first NaN, is found, or the last of those up to an element, at every CPU level. Does not: divide a line into
//! pieces; `driver` does.

use super::{BlockFn, CpuLevel, levels, slice, slice_mut};
use crate::base::dtype::DType;
use crate::ops::{MAX_OPERANDS, Op};

/// An element as memory has it, and its key.
pub(in crate::kernels) trait Ordered: Copy {
    type Key: Copy + Ord;
    /// The key: the larger, the larger the element. That of a NaN is the largest.
    fn ascending(self) -> Self::Key;
    /// The key: the larger, the smaller the element. That of a NaN is the largest.
    fn descending(self) -> Self::Key;
}

macro_rules! ordered_integers {
    ($($t:ty),*) => {$(
        impl Ordered for $t {
            type Key = $t;
            #[inline(always)]
            fn ascending(self) -> $t { self }
            #[inline(always)]
            fn descending(self) -> $t { !self }
        }
    )*};
}
ordered_integers!(u8, u16, u32, u64, i8, i16, i32, i64);

/// The keys of a type with `order` and `is_nan`.
macro_rules! nans_are_beyond {
    ($name:ident, $key:ty) => {
        impl Ordered for $name {
            type Key = $key;
            #[inline(always)]
            fn ascending(self) -> $key {
                if self.is_nan() { <$key>::MAX } else { self.order() }
            }
            #[inline(always)]
            fn descending(self) -> $key {
                if self.is_nan() { <$key>::MAX } else { !self.order() }
            }
        }
    };
}

macro_rules! ordered_floats {
    ($($name:ident of $bits:ty, up to $most:literal;)*) => {$(
        /// A float as its bits.
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        struct $name($bits);

        impl $name {
            /// An integer that orders as the number; 0 for both zeros.
            #[inline(always)]
            fn order(self) -> $bits {
                let order = self.0 ^ ((self.0 >> (<$bits>::BITS - 1)) & <$bits>::MAX);
                order + <$bits>::from(order == -1)
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self.0 & <$bits>::MAX > $most
            }
        }

        nans_are_beyond!($name, $bits);
    )*};
}
ordered_floats! {
    E4M3FN of i8, up to 0x7e;
    E5M2 of i8, up to 0x7c;
    Half of i16, up to 0x7c00;
    Brain of i16, up to 0x7f80;
    Single of i32, up to 0x7f80_0000;
    Double of i64, up to 0x7ff0_0000_0000_0000;
}

macro_rules! ordered_pairs {
    ($($name:ident of $part:ident, $bits:ty, key $key:ty;)*) => {$(
        /// A complex number as its parts.
        #[derive(Clone, Copy)]
        #[repr(C)]
        struct $name($part, $part);

        impl $name {
            #[inline(always)]
            fn order(self) -> $key {
                let low = <$key>::from(self.1.order()) - <$key>::from(<$bits>::MIN);
                <$key>::from(self.0.order()) << <$bits>::BITS | low
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self.0.is_nan() | self.1.is_nan()
            }
        }

        nans_are_beyond!($name, $key);
    )*};
}
ordered_pairs! {
    HalfPair of Half, i16, key i32;
    SinglePair of Single, i32, key i64;
    DoublePair of Double, i64, key i128;
}

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
    match dtype {
        DType::Bool | DType::U8 => kernels::<u8>(op, level),
        DType::U16 => kernels::<u16>(op, level),
        DType::U32 => kernels::<u32>(op, level),
        DType::U64 => kernels::<u64>(op, level),
        DType::I8 => kernels::<i8>(op, level),
        DType::I16 => kernels::<i16>(op, level),
        DType::I32 => kernels::<i32>(op, level),
        DType::I64 => kernels::<i64>(op, level),
        DType::F8E4M3FN => kernels::<E4M3FN>(op, level),
        DType::F8E5M2 => kernels::<E5M2>(op, level),
        DType::F16 => kernels::<Half>(op, level),
        DType::BF16 => kernels::<Brain>(op, level),
        DType::F32 => kernels::<Single>(op, level),
        DType::F64 => kernels::<Double>(op, level),
        DType::C32 => kernels::<HalfPair>(op, level),
        DType::C64 => kernels::<SinglePair>(op, level),
        DType::C128 => kernels::<DoublePair>(op, level),
    }
}
