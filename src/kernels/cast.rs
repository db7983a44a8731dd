//! Conversions between dtypes: primitive conversions, and the paths that chain them.
//!
//! Guarantees: every pair of dtypes has a path; a path rounds at most once (to nearest, ties to even), so f64 to f16 is
//! correctly rounded, and i64 to bf16 too; a float beyond the range of f8e4m3fn gives its largest number, or NaN, as the
//! step says; float to integer truncates, saturates, and converts NaN to 0; integer to
//! integer wraps; NaN becomes the canonical NaN. Does not: round between the steps of a path.

use num_complex::Complex;

use super::elementwise::copy_kernel;
use super::num::Canonical;
use super::{BlockFn, CpuLevel, levels, operands, slice, slice_mut};
use crate::base::dtype::DType::{self, *};
use crate::base::f8;
use crate::base::halves::to_odd;
use crate::base::host::FloatMode;
use crate::base::scalar::Bits;
use crate::ops::MAX_OPERANDS;

/// One primitive conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Prim {
    pub(crate) from: DType,
    pub(crate) to: DType,
    /// Whether a float beyond the range of a dtype without infinities becomes a NaN, not the largest number.
    pub(crate) beyond_is_nan: bool,
}

impl Prim {
    pub(crate) const fn new(from: DType, to: DType) -> Prim {
        Prim { from, to, beyond_is_nan: false }
    }

    /// The kernel of the conversion at a CPU level; `None` for those that [`path_within`] never returns.
    pub(crate) fn kernel(self, level: CpuLevel) -> Option<BlockFn> {
        match (self.beyond_is_nan, self.from, self.to) {
            (false, from, to) => kernel(from, to, level),
            (true, F32, F8E4M3FN) => Some(converter::<F32E4m3Nan>(level)),
            (true, F64, F8E4M3FN) => Some(converter::<F64E4m3Nan>(level)),
            (true, ..) => None,
        }
    }
}

/// The primitive steps from one dtype to another under rules by which a float beyond the range of a dtype without
/// infinities becomes a NaN, or by others.
pub(crate) fn path_within(from: DType, to: DType, beyond_is_nan: bool) -> Vec<Prim> {
    let mut all = path(from, to);
    all.iter_mut().for_each(|p| p.beyond_is_nan = beyond_is_nan && !p.to.has_infinity());
    all
}

/// The primitive steps from one dtype to another; none if they are equal.
pub(crate) fn path(from: DType, to: DType) -> Vec<Prim> {
    let step = Prim::new;
    let then = |mut first: Vec<Prim>, second: Vec<Prim>| {
        first.extend(second);
        first
    };
    match (from, to) {
        _ if from == to => vec![],
        _ if from.is_complex() && !to.is_complex() && to != Bool => {
            then(vec![step(from, from.real())], path(from.real(), to))
        }
        _ if to.is_complex() && !from.is_complex() => then(path(from, to.real()), vec![step(to.real(), to)]),
        // Every number of eight bits is one of these, so the bits are widened without a rounding.
        (F8E4M3FN | F8E5M2, F16 | BF16) => vec![step(from, to)],
        _ if from.is_narrow() => then(vec![step(from, from.op_math())], path(from.op_math(), to)),
        _ if !(from.is_integral() && to.is_narrow()) => vec![step(from, to)],
        // The intermediate float is exact: it represents every integer of the source, or the integers that it can't
        // represent are beyond the target's range.
        _ if from.digits() <= F32.digits() => vec![step(from, F32), step(F32, to)],
        _ if from.digits().min(to.range_bits()) <= F64.digits() => vec![step(from, F64), step(F64, to)],
        // A rounded intermediate f64 could be a tie, so a direct conversion is needed.
        _ => vec![step(from, to)],
    }
}

/// One primitive conversion as an expression.
pub(in crate::kernels) trait Convert {
    type From: Copy;
    type To;
    /// The number of parts of an element, which are converted separately: 2 for complex to complex.
    const PARTS: usize = 1;
    fn convert(a: Self::From) -> Self::To;
}

/// # Safety
/// As [`BlockFn`] for one operand with `PARTS` values of `From` per element, and a result with `PARTS` values of `To`.
#[inline(always)]
unsafe fn convert_body<C: Convert>(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
    // SAFETY: the contract of `BlockFn`.
    let (a, out) = unsafe { (slice::<C::From>(args[0], n * C::PARTS), slice_mut::<C::To>(out, n * C::PARTS)) };
    for (o, a) in out.iter_mut().zip(a) {
        *o = C::convert(*a);
    }
    0
}

levels!(converter, convert_body, <C: Conversion>);
use Convert as Conversion;

/// `From as To`.
struct As<A, B>(std::marker::PhantomData<(A, B)>);

macro_rules! as_pairs {
    ($($from:ident => $($to:ident)*;)*) => {$($(
        impl Convert for As<$from, $to> {
            type From = $from;
            type To = $to;
            #[inline(always)]
            fn convert(a: $from) -> $to { (a as $to).canonical() }
        }
    )*)*};
}

as_pairs! {
    bool => i8 i16 i32 i64;
    u8 => i16 i32 i64 f32 f64; u16 => i32 i64 f32 f64; u32 => i64 f32 f64; u64 => f32 f64;
    i8 => i16 i32 i64 f32 f64; i16 => i8 i32 i64 f32 f64; i32 => i8 i16 i64 f32 f64; i64 => i8 i16 i32 f32 f64;
    f32 => u8 u16 u32 u64 i8 i16 i32 i64 f64; f64 => u8 u16 u32 u64 i8 i16 i32 i64 f32;
}

macro_rules! converts {
    ($($name:ident: $from:ty => $to:ty, $parts:literal, |$a:ident| $body:expr;)*) => {$(
        struct $name;
        impl Convert for $name {
            type From = $from;
            type To = $to;
            const PARTS: usize = $parts;
            #[inline(always)]
            fn convert($a: $from) -> $to { $body }
        }
    )*};
}

converts! {
    BoolF32: bool => f32, 1, |a| f32::from(u8::from(a));
    BoolF64: bool => f64, 1, |a| f64::from(u8::from(a));
    I8Bool: i8 => bool, 1, |a| a != 0;
    I16Bool: i16 => bool, 1, |a| a != 0;
    I32Bool: i32 => bool, 1, |a| a != 0;
    I64Bool: i64 => bool, 1, |a| a != 0;
    F32Bool: f32 => bool, 1, |a| a != 0.0;
    F64Bool: f64 => bool, 1, |a| a != 0.0;
    C64Bool: Complex<f32> => bool, 1, |a| (a.re != 0.0) | (a.im != 0.0);
    C128Bool: Complex<f64> => bool, 1, |a| (a.re != 0.0) | (a.im != 0.0);
    F16F32: u16 => f32, 1, |a| f16_to_f32(a);
    Bf16F32: u16 => f32, 1, |a| f32::from_bits(u32::from(a) << 16).canonical();
    F32F16: f32 => u16, 1, |a| f32_to_f16(a);
    F32Bf16: f32 => u16, 1, |a| f32_to_bf16(a);
    F64F16: f64 => u16, 1, |a| f32_to_f16(to_odd(a));
    F64Bf16: f64 => u16, 1, |a| f32_to_bf16(to_odd(a));
    I64Bf16: i64 => u16, 1, |a| f32_to_bf16(to_odd(int_to_odd(a)));
    U64Bf16: u64 => u16, 1, |a| f32_to_bf16(to_odd(uint_to_odd(a)));
    E4m3F32: u8 => f32, 1, |a| f8::F8E4M3FN::from_bits(a).to_f32();
    E5m2F32: u8 => f32, 1, |a| f8::F8E5M2::from_bits(a).to_f32();
    E4m3F16: u8 => u16, 1, |a| f32_to_f16(E4m3F32::convert(a));
    E5m2F16: u8 => u16, 1, |a| f32_to_f16(E5m2F32::convert(a));
    E4m3Bf16: u8 => u16, 1, |a| (E4m3F32::convert(a).to_bits() >> 16) as u16;
    E5m2Bf16: u8 => u16, 1, |a| (E5m2F32::convert(a).to_bits() >> 16) as u16;
    F32E4m3: f32 => u8, 1, |a| f8::F8E4M3FN::nearest(a, false);
    F32E5m2: f32 => u8, 1, |a| f8::F8E5M2::nearest(a, false);
    F64E4m3: f64 => u8, 1, |a| f8::F8E4M3FN::nearest(to_odd(a), false);
    F64E5m2: f64 => u8, 1, |a| f8::F8E5M2::nearest(to_odd(a), false);
    F32E4m3Nan: f32 => u8, 1, |a| f8::F8E4M3FN::nearest(a, true);
    F64E4m3Nan: f64 => u8, 1, |a| f8::F8E4M3FN::nearest(to_odd(a), true);
    C32C64: u16 => f32, 2, |a| f16_to_f32(a);
    C64C32: f32 => u16, 2, |a| f32_to_f16(a);
    C128C32: f64 => u16, 2, |a| f32_to_f16(to_odd(a));
    C64C128: f32 => f64, 2, |a| f64::from(a).canonical();
    C128C64: f64 => f32, 2, |a| (a as f32).canonical();
    C64F32: Complex<f32> => f32, 1, |a| a.re;
    C128F64: Complex<f64> => f64, 1, |a| a.re;
    C32F16: Complex<u16> => u16, 1, |a| a.re;
    F32C64: f32 => Complex<f32>, 1, |a| Complex::new(a, 0.0);
    F64C128: f64 => Complex<f64>, 1, |a| Complex::new(a, 0.0);
    F16C32: u16 => Complex<u16>, 1, |a| Complex::new(a, 0);
}

/// binary16 bits to f32, exactly.
#[inline(always)]
pub(super) fn f16_to_f32(a: u16) -> f32 {
    let (sign, rest) = (u32::from(a & 0x8000) << 16, u32::from(a & 0x7fff) << 13);
    // The exponent biases differ by 112: scale by 2^112, which is exact and handles subnormals as well.
    let scaled = f32::from_bits(rest) * f32::from_bits((127 + 112) << 23);
    let infinite = f32::from_bits(rest | 0x7f80_0000);
    let magnitude = if a & 0x7fff >= 0x7c00 { infinite } else { scaled };
    f32::from_bits(magnitude.to_bits() | sign).canonical()
}

/// f32 to binary16 bits, rounded to nearest, ties to even.
#[inline(always)]
pub(super) fn f32_to_f16(a: f32) -> u16 {
    let (bits, sign) = (a.to_bits() & 0x7fff_ffff, (a.to_bits() >> 16) as u16 & 0x8000);
    // Normal results: rebias the exponent by 112 and round off the low 13 bits.
    let odd = bits >> 13 & 1;
    let normal = bits.wrapping_add(0xc800_0fff).wrapping_add(odd) >> 13;
    // Subnormal results: adding 0.5 aligns the last binary16 bit with the last bit of the sum, which rounds it.
    let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if bits < 0x3880_0000 { subnormal } else { normal };
    let magnitude = if bits >= 0x4780_0000 { 0x7c00 } else { finite };
    if bits > 0x7f80_0000 { 0x7e00 } else { magnitude as u16 | sign }
}

/// f32 to bfloat16 bits, rounded to nearest, ties to even.
#[inline(always)]
pub(super) fn f32_to_bf16(a: f32) -> u16 {
    let bits = a.to_bits();
    let rounded = bits.wrapping_add(0x7fff).wrapping_add(bits >> 16 & 1) >> 16;
    if a.is_nan() { 0x7fc0 } else { rounded as u16 }
}

/// i64 to f64, rounded to odd.
#[inline(always)]
fn int_to_odd(a: i64) -> f64 {
    let cut = a & 0x7ff;
    let kept = (a & !0x7ff) | if cut != 0 { 0x800 } else { 0 };
    // Below 2^53 the conversion is exact.
    let small = a.unsigned_abs() < 1 << 53;
    (if small { a } else { kept }) as f64
}

/// u64 to f64, rounded to odd.
#[inline(always)]
fn uint_to_odd(a: u64) -> f64 {
    let kept = (a & !0xfff) | if a & 0xfff != 0 { 0x1000 } else { 0 };
    (if a < 1 << 53 { a } else { kept }) as f64
}

impl Prim {
    /// The same conversion of bits between other dtypes, one for all conversions that are the same: an integer is
    /// truncated whatever the signs are, it is extended by the sign of its own dtype, and it is nonzero whatever its
    /// sign. Equal dtypes say that the bits are copied.
    pub(crate) fn representative(self) -> Prim {
        let signed = |d: DType| match d {
            U8 => I8,
            U16 => I16,
            U32 => I32,
            U64 => I64,
            d => d,
        };
        let Prim { from, to, .. } = self;
        match (from.is_integral(), to.is_integral()) {
            (true, true) if from.size() < to.size() && to != Bool && from != Bool => Prim::new(from, signed(to)),
            (true, true) => Prim::new(signed(from), signed(to)),
            _ => self,
        }
    }
}

/// The kernel of a primitive conversion at a CPU level; `None` for pairs that [`path`] never returns.
pub(crate) fn kernel(from: DType, to: DType, level: CpuLevel) -> Option<BlockFn> {
    let copies = from != to;
    let Prim { from, to, .. } = Prim::new(from, to).representative();
    if from == to {
        return copies.then(|| copy_kernel(from, to, level));
    }
    macro_rules! table {
        ($($from_d:ident $to_d:ident => $c:ty),* $(,)?) => {
            Some(match (from, to) {
                $((DType::$from_d, DType::$to_d) => converter::<$c>(level),)*
                _ => return None,
            })
        };
    }
    table!(
        Bool I8 => As<bool, i8>, Bool I16 => As<bool, i16>, Bool I32 => As<bool, i32>, Bool I64 => As<bool, i64>,
        Bool F32 => BoolF32, Bool F64 => BoolF64, U8 I16 => As<u8, i16>, U8 I32 => As<u8, i32>, U8 I64 => As<u8, i64>,
        U8 F32 => As<u8, f32>, U8 F64 => As<u8, f64>, U16 I32 => As<u16, i32>, U16 I64 => As<u16, i64>,
        U16 F32 => As<u16, f32>, U16 F64 => As<u16, f64>, U32 I64 => As<u32, i64>, U32 F32 => As<u32, f32>,
        U32 F64 => As<u32, f64>, U64 F32 => As<u64, f32>, U64 F64 => As<u64, f64>, U64 BF16 => U64Bf16,
        I8 Bool => I8Bool, I8 I16 => As<i8, i16>, I8 I32 => As<i8, i32>, I8 I64 => As<i8, i64>, I8 F32 => As<i8, f32>,
        I8 F64 => As<i8, f64>, I16 Bool => I16Bool, I16 I8 => As<i16, i8>, I16 I32 => As<i16, i32>,
        I16 I64 => As<i16, i64>, I16 F32 => As<i16, f32>, I16 F64 => As<i16, f64>, I32 Bool => I32Bool,
        I32 I8 => As<i32, i8>, I32 I16 => As<i32, i16>, I32 I64 => As<i32, i64>, I32 F32 => As<i32, f32>,
        I32 F64 => As<i32, f64>, I64 Bool => I64Bool, I64 I8 => As<i64, i8>, I64 I16 => As<i64, i16>,
        I64 I32 => As<i64, i32>, I64 F32 => As<i64, f32>, I64 F64 => As<i64, f64>, I64 BF16 => I64Bf16,
        F32 Bool => F32Bool, F32 U8 => As<f32, u8>, F32 U16 => As<f32, u16>, F32 U32 => As<f32, u32>,
        F32 U64 => As<f32, u64>, F32 I8 => As<f32, i8>, F32 I16 => As<f32, i16>, F32 I32 => As<f32, i32>,
        F32 I64 => As<f32, i64>, F64 Bool => F64Bool, F64 U8 => As<f64, u8>, F64 U16 => As<f64, u16>,
        F64 U32 => As<f64, u32>, F64 U64 => As<f64, u64>, F64 I8 => As<f64, i8>, F64 I16 => As<f64, i16>,
        F64 I32 => As<f64, i32>, F64 I64 => As<f64, i64>, F32 F64 => As<f32, f64>, F64 F32 => As<f64, f32>,
        F8E4M3FN F32 => E4m3F32, F8E5M2 F32 => E5m2F32, F32 F8E4M3FN => F32E4m3, F32 F8E5M2 => F32E5m2,
        F8E4M3FN F16 => E4m3F16, F8E5M2 F16 => E5m2F16, F8E4M3FN BF16 => E4m3Bf16, F8E5M2 BF16 => E5m2Bf16,
        F64 F8E4M3FN => F64E4m3, F64 F8E5M2 => F64E5m2,
        F16 F32 => F16F32, BF16 F32 => Bf16F32, F32 F16 => F32F16, F32 BF16 => F32Bf16, F64 F16 => F64F16,
        F64 BF16 => F64Bf16, C32 C64 => C32C64, C64 C32 => C64C32, C128 C32 => C128C32, C64 C128 => C64C128,
        C128 C64 => C128C64, C64 F32 => C64F32, C128 F64 => C128F64, C32 F16 => C32F16, F32 C64 => F32C64,
        F64 C128 => F64C128, F16 C32 => F16C32, C64 Bool => C64Bool, C128 Bool => C128Bool,
    )
}

/// Converts one element from one dtype to another, by the steps that cast a tensor.
pub(crate) fn convert(bits: Bits, from: DType, to: DType) -> Bits {
    convert_by(bits, path(from, to))
}

/// Converts one element by these steps.
pub(crate) fn convert_by(bits: Bits, path: Vec<Prim>) -> Bits {
    let _standard = FloatMode::standard();
    let mut now = bits;
    for step in path {
        let mut next = Bits::default();
        if let Some(f) = step.kernel(CpuLevel::get()) {
            // SAFETY: `Bits` is 16-aligned and holds one element of any dtype.
            unsafe { f(operands([(&raw const now).cast()]), (&raw mut next).cast(), 1) };
        }
        now = next;
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::scalar::Bits;
    use crate::kernels::cast::convert;

    #[test]
    fn paths_chain_from_source_to_target() {
        for from in DType::ALL {
            for to in DType::ALL {
                for beyond_is_nan in [false, true] {
                    let mut now = from;
                    for p in path_within(from, to, beyond_is_nan) {
                        assert_eq!(p.from, now);
                        assert!(p.kernel(CpuLevel::Baseline).is_some(), "{p:?}");
                        now = p.to;
                    }
                    assert_eq!(now, to);
                }
            }
        }
    }

    #[test]
    fn halves_agree_with_the_half_crate_on_every_value_and_every_tie() {
        for bits in 0..=u16::MAX {
            let h = half::f16::from_bits(bits);
            let wide = f16_to_f32(bits);
            assert!(wide == h.to_f32() || wide.is_nan() && h.is_nan());
            for ulps in -2i32..=2 {
                for half_step in [0, 0x1000] {
                    let near = wide.to_bits().wrapping_add(half_step).wrapping_add_signed(ulps);
                    let near = f32::from_bits(near);
                    let (ours, theirs) = (f32_to_f16(near), half::f16::from_f32(near));
                    assert!(ours == theirs.to_bits() || theirs.is_nan() && ours == 0x7e00, "{near:e}");
                    let (ours, theirs) = (f32_to_bf16(near), half::bf16::from_f32(near));
                    assert!(ours == theirs.to_bits() || theirs.is_nan() && ours == 0x7fc0, "{near:e}");
                }
            }
        }
    }

    #[test]
    fn floats_of_eight_bits_widen_to_halves_as_by_way_of_f32() {
        for from in [F8E4M3FN, F8E5M2] {
            for to in [F16, BF16] {
                assert_eq!(path(from, to).len(), 1);
                for code in 0..=255u8 {
                    let bits = Bits::of(&[code]);
                    let wide = convert_by(bits, vec![Prim::new(from, F32), Prim::new(F32, to)]);
                    assert_eq!(convert(bits, from, to), wide, "{code:#x} of {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn wide_sources_round_once() {
        // Slightly above the tie between 1 and the next f16 or bf16: rounding to f32 first would drop the bit that
        // decides.
        let above = |d: i32| 1.0 + 2f64.powi(d) + 2f64.powi(-40);
        assert_eq!(convert(Bits::of(&above(-11).to_ne_bytes()), F64, F16), Bits::of(&0x3c01u16.to_ne_bytes()));
        assert_eq!(convert(Bits::of(&above(-8).to_ne_bytes()), F64, BF16), Bits::of(&0x3f81u16.to_ne_bytes()));
        let i = (1i64 << 62) + (1 << 54) + 1;
        assert_eq!(convert(Bits::of(&i.to_ne_bytes()), I64, BF16), Bits::of(&0x5e81u16.to_ne_bytes()));
        assert_eq!(convert(Bits::of(&1e300f64.to_ne_bytes()), F64, F16), Bits::of(&0x7c00u16.to_ne_bytes()));
        assert_eq!(convert(Bits::of(&(-3e9f64).to_ne_bytes()), F64, I32), Bits::of(&i32::MIN.to_ne_bytes()));
        assert_eq!(convert(Bits::of(&f64::NAN.to_ne_bytes()), F64, I32), Bits::of(&0i32.to_ne_bytes()));
    }
}
