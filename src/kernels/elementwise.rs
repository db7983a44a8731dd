//! Kernels of the op table: each row's expressions become loops over their Rust types.
//!
//! Guarantees: a kernel for every op and every compute dtype that a rule set accepts (tested below). The half types
//! have kernels only for ops that move bits; other ops compute in op math and round in a separate step.

use super::num::{Canonical, Cplx, CplxFn, Int, IntFn, Mask, Real, RealFn};
use super::reduce::{Fold, Part, part};
use super::scan::{self, ScanKernels};
use super::{BlockFn, CpuLevel, DIVIDED_BY_ZERO, NEGATIVE_EXPONENT, levels, slice, slice_mut};
use crate::base::dtype::{DType, for_each_dtype};
use crate::ops::{MAX_OPERANDS, Op, for_each_op};

/// An op with one operand.
pub(in crate::kernels) trait Un<T> {
    type Out;
    fn eval(a: T) -> Self::Out;
}

/// An op with two operands of one type.
pub(in crate::kernels) trait Bin<T> {
    type Out;
    fn eval(a: T, b: T) -> Self::Out;
}

/// An op with three operands of one type.
pub(in crate::kernels) trait Tri<T> {
    type Out;
    fn eval(a: T, b: T, c: T) -> Self::Out;
}

/// An op with four operands of one type.
pub(in crate::kernels) trait Quad<T> {
    type Out;
    fn eval(a: T, b: T, c: T, d: T) -> Self::Out;
}

/// A second form of a unary op, faster and valid for |a| <= [`RealFn::SMALL`], where it gives the same bits.
pub(in crate::kernels) trait Small<T>: Un<T> {
    fn eval_small(a: T) -> Self::Out;
    fn is_small(a: T) -> bool;
    /// A third form, faster still and valid for |a| <= [`RealFn::NEAR`], where it gives the same bits.
    fn eval_near(a: T) -> Self::Out;
    fn is_near(a: T) -> bool;
}

/// # Safety
/// As [`BlockFn`] for one operand of `T` and a result of `F::Out`.
#[inline(always)]
unsafe fn un_body<T: Copy, F: Un<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<F::Out>(out, n)) };
    for (o, a) in out.iter_mut().zip(a) {
        *o = F::eval(*a);
    }
    0
}

/// # Safety
/// As [`BlockFn`] for two operands of `T` and a result of `F::Out`.
#[inline(always)]
unsafe fn bin_body<T: Copy, F: Bin<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let (a, b, out) = unsafe { (slice::<T>(args[0], n), slice::<T>(args[1], n), slice_mut::<F::Out>(out, n)) };
    for ((o, a), b) in out.iter_mut().zip(a).zip(b) {
        *o = F::eval(*a, *b);
    }
    0
}

/// # Safety
/// As [`BlockFn`] for three operands of `T` and a result of `F::Out`.
#[inline(always)]
unsafe fn tri_body<T: Copy, F: Tri<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let (a, b, c) = unsafe { (slice::<T>(args[0], n), slice::<T>(args[1], n), slice::<T>(args[2], n)) };
    // SAFETY: the same contract.
    let out = unsafe { slice_mut::<F::Out>(out, n) };
    for (((o, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
        *o = F::eval(*a, *b, *c);
    }
    0
}

/// # Safety
/// As [`BlockFn`] for four operands of `T` and a result of `F::Out`.
#[inline(always)]
unsafe fn quad_body<T: Copy, F: Quad<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let [a, b, c, d] = args.map(|p| unsafe { slice::<T>(p, n) });
    // SAFETY: the same contract.
    let out = unsafe { slice_mut::<F::Out>(out, n) };
    for ((((o, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *o = F::eval(*a, *b, *c, *d);
    }
    0
}

/// # Safety
/// As [`bin_body`].
#[inline(always)]
unsafe fn checked_body<T: Copy + PartialEq + Default, F: Bin<T>>(
    args: [*const u8; MAX_OPERANDS],
    out: *mut u8,
    n: usize,
) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let divisors = unsafe { slice::<T>(args[1], n) };
    if divisors.iter().fold(false, |any, b| any | (*b == T::default())) {
        return DIVIDED_BY_ZERO;
    }
    // SAFETY: the same contract.
    unsafe { bin_body::<T, F>(args, out, n) }
}

/// # Safety
/// As [`bin_body`].
#[inline(always)]
unsafe fn exponent_body<T: CheckedInt, F: Bin<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let exponents = unsafe { slice::<T>(args[1], n) };
    if exponents.iter().fold(false, |any, b| any | (*b < T::default())) {
        return NEGATIVE_EXPONENT;
    }
    // SAFETY: the same contract.
    unsafe { bin_body::<T, F>(args, out, n) }
}

/// # Safety
/// As [`un_body`].
#[inline(always)]
unsafe fn guarded_body<T: Copy, F: Small<T>>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let (a, out) = unsafe { (slice::<T>(args[0], n), slice_mut::<F::Out>(out, n)) };
    for (a, out) in a.chunks(128).zip(out.chunks_mut(128)) {
        if a.iter().fold(true, |all, a| all & F::is_near(*a)) {
            for (o, a) in out.iter_mut().zip(a) {
                *o = F::eval_near(*a);
            }
        } else if a.iter().fold(true, |all, a| all & F::is_small(*a)) {
            for (o, a) in out.iter_mut().zip(a) {
                *o = F::eval_small(*a);
            }
        } else {
            for (o, a) in out.iter_mut().zip(a) {
                *o = F::eval(*a);
            }
        }
    }
    0
}

/// # Safety
/// As [`BlockFn`] for a bool, two operands of `T` and a result of `T`.
#[inline(always)]
unsafe fn where_body<T: Copy>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let (c, a, b) = unsafe { (slice::<bool>(args[0], n), slice::<T>(args[1], n), slice::<T>(args[2], n)) };
    // SAFETY: the same contract.
    let out = unsafe { slice_mut::<T>(out, n) };
    for (((o, c), a), b) in out.iter_mut().zip(c).zip(a).zip(b) {
        *o = if *c { *a } else { *b };
    }
    0
}

levels!(un, un_body, <T: Copy, F: OpUn<T>>);
levels!(bin, bin_body, <T: Copy, F: OpBin<T>>);
levels!(tri, tri_body, <T: Copy, F: OpTri<T>>);
levels!(quad, quad_body, <T: Copy, F: OpQuad<T>>);
levels!(checked, checked_body, <T: CheckedInt, F: OpBin<T>>);
levels!(exponent, exponent_body, <T: CheckedInt, F: OpBin<T>>);
levels!(guarded, guarded_body, <T: Copy, F: OpSmall<T>>);
levels!(select, where_body, <T: Copy>);

use Bin as OpBin;
use Quad as OpQuad;
use Small as OpSmall;
use Tri as OpTri;
use Un as OpUn;

/// An integer that can be compared with zero.
pub(in crate::kernels) trait CheckedInt: Copy + PartialOrd + Default {}
impl<T: Copy + PartialOrd + Default> CheckedInt for T {}

/// The Rust type of an op's result for operands of `$t`.
macro_rules! out_type {
    (Same $t:ty) => {
        $t
    };
    (Bool $t:ty) => {
        bool
    };
    (Real num_complex::Complex<$t:ty>) => {
        $t
    };
    (Real $t:ty) => {
        $t
    };
}

/// Invokes `$m` for each type of a category that operations compute in.
macro_rules! for_types {
    (int_exponent $m:ident $args:tt) => { for_each_dtype!(of_category int $m $args); };
    (int_checked $m:ident $args:tt) => { for_each_dtype!(of_category int $m $args); };
    (float_guarded $m:ident $args:tt) => { for_each_dtype!(of_category float $m $args); };
    ($category:ident $m:ident $args:tt) => { for_each_dtype!(of_category $category $m $args); };
}

macro_rules! of_category {
    ($of:ident $m:ident $args:tt $(
        #[doc = $doc:literal]
        $variant:ident ($($rust:tt)+) $category:ident $name:literal $aliases:tt $format:expr $(, via $wide:ident)?;
    )*) => { $(if_of_category!($of $category ($($wide)?) $m $args $variant $($rust)+);)* };
}

macro_rules! if_of_category {
    (bool bool () $m:ident $args:tt $($t:tt)+) => { $m!($args $($t)+); };
    (int int () $m:ident $args:tt $($t:tt)+) => { $m!($args $($t)+); };
    (float float () $m:ident $args:tt $($t:tt)+) => { $m!($args $($t)+); };
    (complex complex () $m:ident $args:tt $($t:tt)+) => { $m!($args $($t)+); };
    ($($other:tt)*) => {};
}

macro_rules! impl_eval {
    (($op:ident $out:ident $mark:tt ($a:ident) $body:expr) $d:ident $($t:tt)+) => {
        impl Un<$($t)+> for $op {
            type Out = out_type!($out $($t)+);
            #[inline(always)]
            fn eval($a: $($t)+) -> Self::Out { finish!($mark $body) }
        }
    };
    (($op:ident $out:ident $mark:tt ($a:ident) $body:expr, $small:expr, $near:expr) $d:ident $($t:tt)+) => {
        impl_eval!(($op $out $mark ($a) $body) $d $($t)+);
        impl Small<$($t)+> for $op {
            #[inline(always)]
            fn eval_small($a: $($t)+) -> Self::Out { finish!($mark $small) }
            #[inline(always)]
            fn is_small(a: $($t)+) -> bool { a.abs() <= <$($t)+ as RealFn>::SMALL }
            #[inline(always)]
            fn eval_near($a: $($t)+) -> Self::Out { finish!($mark $near) }
            #[inline(always)]
            fn is_near(a: $($t)+) -> bool { a.abs() <= <$($t)+ as RealFn>::NEAR }
        }
    };
    (($op:ident $out:ident $mark:tt ($a:ident, $b:ident, $c:ident, $e:ident) $body:expr) $d:ident $($t:tt)+) => {
        impl_eval_four!(($op $out $mark ($a, $b, $c, $e) $body) $d $($t)+);
    };
    (($op:ident $out:ident $mark:tt ($a:ident, $b:ident, $c:ident) $body:expr) $d:ident $($t:tt)+) => {
        impl_eval_three!(($op $out $mark ($a, $b, $c) $body) $d $($t)+);
    };
    (($op:ident $out:ident $mark:tt ($a:ident, $b:ident) $body:expr) $d:ident $($t:tt)+) => {
        impl Bin<$($t)+> for $op {
            type Out = out_type!($out $($t)+);
            #[inline(always)]
            fn eval($a: $($t)+, $b: $($t)+) -> Self::Out { finish!($mark $body) }
        }
    };
}

macro_rules! impl_eval_three {
    (($op:ident $out:ident $mark:tt ($a:ident, $b:ident, $c:ident) $body:expr) $d:ident $($t:tt)+) => {
        impl Tri<$($t)+> for $op {
            type Out = out_type!($out $($t)+);
            #[inline(always)]
            fn eval($a: $($t)+, $b: $($t)+, $c: $($t)+) -> Self::Out { finish!($mark $body) }
        }
    };
}

/// A row marked `bits` keeps a NaN's payload; all other ops give canonical NaNs.
macro_rules! finish {
    ([bits] $body:expr) => {
        $body
    };
    ($mark:tt $body:expr) => {
        Canonical::canonical($body)
    };
}

macro_rules! find {
    (($dtype:ident $level:ident $maker:ident $op:ident) $d:ident $($t:tt)+) => {
        if $dtype == DType::$d {
            return Some($maker::<$($t)+, $op>($level));
        }
    };
}

macro_rules! find_fold {
    (($dtype:ident $part:ident $level:ident $op:ident) $d:ident $($t:tt)+) => {
        if $dtype == DType::$d {
            return Some(part::<$($t)+, $op>($part, $level));
        }
    };
}

macro_rules! find_scan {
    (($dtype:ident $level:ident $op:ident) $d:ident $($t:tt)+) => {
        if $dtype == DType::$d {
            return Some(scan::kernels::<$($t)+, $op>($level));
        }
    };
}

macro_rules! maker {
    (int_exponent ($a:ident, $b:ident) $dtype:ident $level:ident $op:ident) => { for_types!(int find ($dtype $level exponent $op)); };
    (int_checked ($a:ident, $b:ident) $dtype:ident $level:ident $op:ident) => { for_types!(int find ($dtype $level checked $op)); };
    (float_guarded ($a:ident) $dtype:ident $level:ident $op:ident) => { for_types!(float find ($dtype $level guarded $op)); };
    ($category:ident ($a:ident) $dtype:ident $level:ident $op:ident) => { for_types!($category find ($dtype $level un $op)); };
    ($category:ident ($a:ident, $b:ident) $dtype:ident $level:ident $op:ident) => { for_types!($category find ($dtype $level bin $op)); };
    ($category:ident ($a:ident, $b:ident, $c:ident, $d:ident) $dtype:ident $level:ident $op:ident) => {
        for_types!($category find ($dtype $level quad $op));
    };
    ($category:ident ($a:ident, $b:ident, $c:ident) $dtype:ident $level:ident $op:ident) => { for_types!($category find ($dtype $level tri $op)); };
}

macro_rules! impl_eval_four {
    (($op:ident $out:ident $mark:tt ($a:ident, $b:ident, $c:ident, $e:ident) $body:expr) $d:ident $($t:tt)+) => {
        impl Quad<$($t)+> for $op {
            type Out = out_type!($out $($t)+);
            #[inline(always)]
            fn eval($a: $($t)+, $b: $($t)+, $c: $($t)+, $e: $($t)+) -> Self::Out { finish!($mark $body) }
        }
    };
}

macro_rules! impl_fold {
    (($op:ident $start:expr, ($a:ident, $b:ident) $body:expr) $d:ident $($t:tt)+) => {
        impl Fold<$($t)+> for $op {
            const START: $($t)+ = $start;
            const HAS_FAST_FORM: bool = false;
            #[inline(always)]
            fn combine($a: $($t)+, $b: $($t)+) -> $($t)+ { $body }
            #[inline(always)]
            fn combine_ordinary(a: $($t)+, b: $($t)+) -> $($t)+ { Self::combine(a, b) }
        }
    };
    (($op:ident $start:expr, ($a:ident, $b:ident) $body:expr, $ordinary:expr) $d:ident $($t:tt)+) => {
        impl Fold<$($t)+> for $op {
            const START: $($t)+ = $start;
            const HAS_FAST_FORM: bool = true;
            #[inline(always)]
            fn combine($a: $($t)+, $b: $($t)+) -> $($t)+ { $body }
            #[inline(always)]
            fn combine_ordinary($a: $($t)+, $b: $($t)+) -> $($t)+ { $ordinary }
        }
    };
}

macro_rules! define_row {
    ($op:ident $out:ident folds; $($category:ident: $start:expr, |$a:ident, $b:ident| $body:expr $(, $ordinary:expr)?;)+) => {
        $(for_types!($category impl_fold ($op $start, ($a, $b) $body $(, $ordinary)?));)+
        impl Row for $op {
            fn kernel(_: DType, _: CpuLevel) -> Option<BlockFn> { None }
            fn fold(dtype: DType, part: Part, level: CpuLevel) -> Option<BlockFn> {
                $(for_types!($category find_fold (dtype part level $op));)+
                None
            }
        }
    };
    ($op:ident $out:ident folds as $other:ident;) => {
        impl Row for $op {
            fn kernel(_: DType, _: CpuLevel) -> Option<BlockFn> { None }
            fn fold(dtype: DType, part: Part, level: CpuLevel) -> Option<BlockFn> { <$other as Row>::fold(dtype, part, level) }
        }
    };
    ($op:ident $out:ident scans; $($category:ident: $start:expr, |$a:ident, $b:ident| $body:expr;)+) => {
        $(for_types!($category impl_fold ($op $start, ($a, $b) $body));)+
        impl Row for $op {
            fn kernel(_: DType, _: CpuLevel) -> Option<BlockFn> { None }
            fn scan(dtype: DType, level: CpuLevel) -> Option<ScanKernels> {
                $(for_types!($category find_scan (dtype level $op));)+
                None
            }
        }
    };
    ($op:ident $out:ident $mark:ident;) => {
        impl Row for $op {
            fn kernel(_: DType, _: CpuLevel) -> Option<BlockFn> { None }
        }
    };
    ($op:ident $out:ident composed; $($formula:tt)*) => {
        define_row!($op $out composed;);
    };
    ($op:ident $out:ident $($category:ident: $($mark:ident)? |$($arg:ident),+| $body:expr $(, $small:expr, $near:expr)?;)+) => {
        $(for_types!($category impl_eval ($op $out [$($mark)?] ($($arg),+) $body $(, $small, $near)?));)+
        impl Row for $op {
            fn kernel(dtype: DType, level: CpuLevel) -> Option<BlockFn> {
                $(maker!($category ($($arg),+) dtype level $op);)+
                None
            }
        }
    };
}

/// A row's kernels.
trait Row {
    fn kernel(dtype: DType, level: CpuLevel) -> Option<BlockFn>;
    fn fold(_: DType, _: Part, _: CpuLevel) -> Option<BlockFn> {
        None
    }
    fn scan(_: DType, _: CpuLevel) -> Option<ScanKernels> {
        None
    }
}

macro_rules! define_kernels {
    ($(
        #[doc = $doc:literal]
        $variant:ident { method: $method:ident, operands: ($($operand:ident),+), output: $output:ident $($column:tt)* }
        { $($math:tt)* }
    )*) => {
        $(struct $variant; define_row!($variant $output $($math)*);)*

        fn from_table(op: Op, dtype: DType, level: CpuLevel) -> Option<BlockFn> {
            match op {
                $(Op::$variant => <$variant as Row>::kernel(dtype, level),)*
                Op::Custom(_) => None,
            }
        }

        /// The kernel of one part of a reduction, for a compute dtype.
        pub(crate) fn fold_kernel(op: Op, dtype: DType, part: Part, level: CpuLevel) -> Option<BlockFn> {
            match op {
                $(Op::$variant => <$variant as Row>::fold(dtype, part, level),)*
                Op::Custom(_) => None,
            }
        }

        /// The kernels of a scan, for the dtype that it accumulates in.
        pub(crate) fn scan_kernels(op: Op, dtype: DType, level: CpuLevel) -> Option<ScanKernels> {
            match op {
                $(Op::$variant => <$variant as Row>::scan(dtype, level),)*
                Op::Custom(_) => None,
            }
        }
    };
}
for_each_op!(define_kernels);

/// Sign operations on the bits of the half types.
struct NegHalf;
struct AbsHalf;
struct NegPair;

impl Un<u16> for NegHalf {
    type Out = u16;
    #[inline(always)]
    fn eval(a: u16) -> u16 {
        a ^ 0x8000
    }
}

impl Un<u16> for AbsHalf {
    type Out = u16;
    #[inline(always)]
    fn eval(a: u16) -> u16 {
        a & 0x7fff
    }
}

/// An element of the size of `T` without its alignment: complex numbers are aligned to their parts only.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(in crate::kernels) struct Unaligned<T>(T);

impl Un<Unaligned<u32>> for NegPair {
    type Out = Unaligned<u32>;
    #[inline(always)]
    fn eval(a: Unaligned<u32>) -> Unaligned<u32> {
        Unaligned(a.0 ^ 0x8000_8000)
    }
}

/// Copies the bits.
struct CopyBits;
/// Converts a byte to bool.
struct ByteToBool;

macro_rules! impl_copy_bits {
    ($($t:ty),*) => {$(
        impl Un<$t> for CopyBits {
            type Out = $t;
            #[inline(always)]
            fn eval(a: $t) -> $t { a }
        }
    )*};
}
impl_copy_bits!(u8, u16, Unaligned<u32>, Unaligned<u64>, Unaligned<u128>);

impl Un<u8> for ByteToBool {
    type Out = bool;
    #[inline(always)]
    fn eval(a: u8) -> bool {
        a != 0
    }
}

/// The kernel that copies the bits of one dtype to another of the same size.
pub(crate) fn copy_kernel(from: DType, to: DType, level: CpuLevel) -> BlockFn {
    match from.size() {
        1 if to == DType::Bool => un::<u8, ByteToBool>(level),
        1 => un::<u8, CopyBits>(level),
        2 => un::<u16, CopyBits>(level),
        4 => un::<Unaligned<u32>, CopyBits>(level),
        8 => un::<Unaligned<u64>, CopyBits>(level),
        _ => un::<Unaligned<u128>, CopyBits>(level),
    }
}

/// `nextafter` of a float of 8 or 16 bits, on its bits. `MOST` is the greatest magnitude that is no NaN.
struct NextBits<const MOST: u16, const NAN: u16>;

/// The bits of the next number from `a` towards `b`; `sign` is the format's sign bit.
#[inline(always)]
fn next_bits(a: u16, b: u16, sign: u16, most: u16, nan: u16) -> u16 {
    let magnitude = sign - 1;
    // Maps the bits to an integer that increases with the number; both zeros map to 0.
    let order = |x: u16| if x & sign != 0 { -i32::from(x & magnitude) } else { i32::from(x) };
    let (x, y) = (order(a), order(b));
    let next = if x < y { x + 1 } else { x - 1 };
    let bits = if next < 0 || next == 0 && x < 0 { (-next) as u16 | sign } else { next as u16 };
    let moved = if x == y { b } else { bits };
    if (a & magnitude > most) | (b & magnitude > most) { nan } else { moved }
}

impl<const MOST: u16, const NAN: u16> Bin<u16> for NextBits<MOST, NAN> {
    type Out = u16;
    #[inline(always)]
    fn eval(a: u16, b: u16) -> u16 {
        next_bits(a, b, 0x8000, MOST, NAN)
    }
}

impl<const MOST: u16, const NAN: u16> Bin<u8> for NextBits<MOST, NAN> {
    type Out = u8;
    #[inline(always)]
    fn eval(a: u8, b: u8) -> u8 {
        next_bits(a.into(), b.into(), 0x80, MOST, NAN) as u8
    }
}

/// `copysign` of 16-bit floats, on their bits: a conversion would drop a NaN's sign.
struct CopysignHalf<const INF: u16>;

impl<const INF: u16> Bin<u16> for CopysignHalf<INF> {
    type Out = u16;
    #[inline(always)]
    fn eval(a: u16, b: u16) -> u16 {
        let magnitude = a & 0x7fff;
        if magnitude > INF { INF | half_quiet(INF) } else { magnitude | b & 0x8000 }
    }
}

/// The quiet bit of a NaN, the highest fraction bit.
const fn half_quiet(inf: u16) -> u16 {
    (inf & inf.wrapping_neg()) >> 1
}

/// The kernel of an op of the table for a compute dtype at a CPU level; `None` if the op computes in op math instead.
pub(crate) fn kernel(op: Op, dtype: DType, level: CpuLevel) -> Option<BlockFn> {
    #[cfg(target_arch = "x86_64")]
    if let Some(f) = super::lanes_avx512::kernel(op, dtype, level) {
        return Some(f);
    }
    match (op, dtype) {
        (Op::Where, d) => Some(match d.size() {
            1 => select::<u8>(level),
            2 => select::<u16>(level),
            4 => select::<Unaligned<u32>>(level),
            8 => select::<Unaligned<u64>>(level),
            _ => select::<Unaligned<u128>>(level),
        }),
        (Op::Neg, d) if d.is_half() => Some(un::<u16, NegHalf>(level)),
        (Op::Abs, d) if d.is_half() => Some(un::<u16, AbsHalf>(level)),
        (Op::Copysign, DType::F16) => Some(bin::<u16, CopysignHalf<0x7c00>>(level)),
        (Op::Copysign, DType::BF16) => Some(bin::<u16, CopysignHalf<0x7f80>>(level)),
        (Op::Nextafter, DType::F16) => Some(bin::<u16, NextBits<0x7c00, 0x7e00>>(level)),
        (Op::Nextafter, DType::BF16) => Some(bin::<u16, NextBits<0x7f80, 0x7fc0>>(level)),
        (Op::Nextafter, DType::F8E4M3FN) => Some(bin::<u8, NextBits<0x7e, 0x7f>>(level)),
        (Op::Nextafter, DType::F8E5M2) => Some(bin::<u8, NextBits<0x7c, 0x7e>>(level)),
        (Op::Neg, DType::C32) => Some(un::<Unaligned<u32>, NegPair>(level)),
        _ => from_table(op, dtype, level),
    }
}

#[cfg(test)]
mod tests;
