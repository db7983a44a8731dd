//! Kernels of the functions of [`crate::math::inline`] over AVX-512 vectors.
//!
//! Guarantees: the bits of the kernels that rustc compiles from the same source one element at a time; a test compares
//! them. Several operations of those kernels are one instruction here: scaling by a power of two, splitting into
//! exponent and significand, table lookup. Does not: contain `exp`, for which rustc's loops are as fast, or sine and
//! cosine, whose large arguments need another algorithm.

#[allow(clippy::wildcard_imports, reason = "seventy intrinsics")]
use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::{BlockFn, CpuLevel};
use crate::base::dtype::DType;
use crate::math::erf_parts;
use crate::math::inline::{double, single};
use crate::math::lane::{LOG_ENDS, Lane, Table};
use crate::ops::{MAX_OPERANDS, Op};

/// A vector of f64. Only kernels of [`CpuLevel::Avx512`] create one.
#[derive(Clone, Copy)]
struct F64x8(__m512d);

/// A vector of f32. Only kernels of [`CpuLevel::Avx512`] create one.
#[derive(Clone, Copy)]
struct F32x16(__m512);

/// Calls intrinsics that are safe on a processor with AVX-512.
macro_rules! intrinsic {
    ($e:expr) => {
        // SAFETY: a kernel of this level created the vectors, so the processor has the instructions. They access no
        // memory except borrowed memory.
        unsafe { $e }
    };
}

macro_rules! lanes {
    ($lanes:ident $float:ident $mask:ident $bits:ident, $set:ident $set_bits:ident, $add:ident $sub:ident $mul:ident $div:ident,
     $fma:ident $fms:ident $fnma:ident, $abs:ident $sqrt:ident $and:ident $or:ident $xor:ident, $min:ident $max:ident $compare:ident $blend:ident,
     $scale:ident $left:ident $test:ident $signs:ident, $as_bits:ident $as_float:ident, $mantissa:ident $exponent:ident $fixup:ident,
     $load:ident $store:ident $load_some:ident $store_some:ident) => {
        impl $lanes {
            const LANES: usize = 64 / size_of::<$float>();

            /// Replaces NaNs by the canonical one.
            #[inline(always)]
            fn canonical(self) -> Self {
                intrinsic!($lanes($blend($compare::<_CMP_UNORD_Q>(self.0, self.0), self.0, $set($float::NAN))))
            }

            /// Computes `f` of `n` elements.
            ///
            /// # Safety
            /// The processor must have [`CpuLevel::Avx512`]; `x` must be valid for reads of `n` elements, `y` for
            /// writes.
            #[inline(always)]
            unsafe fn each(x: *const $float, y: *mut $float, n: usize, f: impl Fn(Self) -> Self) {
                let whole = n - n % Self::LANES;
                for at in (0..whole).step_by(Self::LANES) {
                    // SAFETY: elements `at..at + LANES` are among the `n`.
                    unsafe { $store(y.add(at), f($lanes($load(x.add(at)))).canonical().0) };
                }
                if whole < n {
                    let rest = (1 << (n - whole)) - 1;
                    // SAFETY: the mask selects elements among the `n`, and no others are accessed.
                    unsafe {
                        let r = f($lanes($load_some(rest, x.add(whole))));
                        $store_some(y.add(whole), rest, r.canonical().0);
                    }
                }
            }
        }

        lanes!(operators $lanes, Add add $add, Sub sub $sub, Mul mul $mul, Div div $div);

        impl Neg for $lanes {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                intrinsic!($lanes($xor(self.0, $set(-0.0))))
            }
        }

        impl Lane for $lanes {
            type Num = $float;
            type Mask = $mask;
            type Bit = $mask;

            #[inline(always)]
            fn c(self, value: $float) -> Self {
                intrinsic!($lanes($set(value)))
            }

            #[inline(always)]
            fn fma(self, a: Self, b: Self) -> Self {
                intrinsic!($lanes($fma(self.0, a.0, b.0)))
            }

            #[inline(always)]
            fn fms(self, a: Self, b: Self) -> Self {
                intrinsic!($lanes($fms(self.0, a.0, b.0)))
            }

            #[inline(always)]
            fn fnma(self, a: Self, b: Self) -> Self {
                intrinsic!($lanes($fnma(self.0, a.0, b.0)))
            }

            #[inline(always)]
            fn abs(self) -> Self {
                intrinsic!($lanes($abs(self.0)))
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                intrinsic!($lanes($sqrt(self.0)))
            }

            #[inline(always)]
            fn signed(self, sign: Self) -> Self {
                intrinsic!($lanes($or(self.0, $and(sign.0, $set(-0.0)))))
            }

            // The instruction returns its second operand if the operands are equal or one is NaN.
            #[inline(always)]
            fn at_most(self, most: $float) -> Self {
                intrinsic!($lanes($min($set(most), self.0)))
            }

            #[inline(always)]
            fn at_least(self, least: $float) -> Self {
                intrinsic!($lanes($max($set(least), self.0)))
            }

            #[inline(always)]
            fn less(self, other: Self) -> $mask {
                intrinsic!($compare::<_CMP_LT_OQ>(self.0, other.0))
            }

            #[inline(always)]
            fn or(self, mask: $mask, other: Self) -> Self {
                intrinsic!($lanes($blend(mask, other.0, self.0)))
            }

            #[inline(always)]
            fn scaled(self, k: Self, _t: Self) -> Self {
                intrinsic!($lanes($scale(self.0, k.0)))
            }

            #[inline(always)]
            fn power(self) -> Self {
                intrinsic!($lanes($as_float($left::<{ $float::MANTISSA_DIGITS - 1 }>($as_bits(self.0)))))
            }

            #[inline(always)]
            fn odd(self) -> $mask {
                intrinsic!($test($as_bits(self.0), $set_bits(1)))
            }

            #[inline(always)]
            fn lowest(self) -> $mask {
                self.odd()
            }

            #[inline(always)]
            fn sign(self) -> $mask {
                intrinsic!($signs($as_bits(self.0)))
            }

            #[inline(always)]
            fn picked<const N: usize, const M: usize>(
                self,
                (mask, _): ($mask, $mask),
                set: [$float; N],
                other: Self,
                clear: [$float; M],
            ) -> Self {
                let x = self.or(mask, other);
                let number = |c: &[$float], i: usize| c.get(i).map_or(0.0, |c| *c);
                let pick = |i: usize| x.c(number(&set, i)).or(mask, x.c(number(&clear, i)));
                let last = N.max(M) - 1;
                (0..last).rev().fold(pick(last), |v, i| v.fma(x, pick(i)))
            }

            #[inline(always)]
            fn turned(self, t: Self) -> Self {
                intrinsic!({
                    let up = $as_float($left::<{ $bits::BITS - 2 }>($as_bits(t.0)));
                    $lanes($xor(self.0, $and(up, $set(-0.0))))
                })
            }

            #[inline(always)]
            fn split(self) -> (Self, Self) {
                // The significand lies in [¾, 1½). The exponent that belongs to it is that of the number minus that of
                // the significand.
                intrinsic!({
                    let m = $mantissa::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_SRC>(self.0);
                    ($lanes($sub($exponent(self.0), $exponent(m))), $lanes(m))
                })
            }

            #[inline(always)]
            fn log_ends(self, x: Self) -> Self {
                intrinsic!($lanes($fixup::<0>(self.0, x.0, $set_bits(LOG_ENDS as _))))
            }

            #[inline(always)]
            fn nan_of(self, _x: Self) -> Self {
                self
            }
        }
    };
    (operators $lanes:ident, $($trait:ident $method:ident $with:ident),*) => {$(
        impl $trait for $lanes {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                intrinsic!($lanes($with(self.0, other.0)))
            }
        }
    )*};
}

lanes! {
    F64x8 f64 __mmask8 u64, _mm512_set1_pd _mm512_set1_epi64, _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd,
    _mm512_fmadd_pd _mm512_fmsub_pd _mm512_fnmadd_pd, _mm512_abs_pd _mm512_sqrt_pd _mm512_and_pd _mm512_or_pd _mm512_xor_pd,
    _mm512_min_pd _mm512_max_pd _mm512_cmp_pd_mask _mm512_mask_blend_pd,
    _mm512_scalef_pd _mm512_slli_epi64 _mm512_test_epi64_mask _mm512_movepi64_mask, _mm512_castpd_si512 _mm512_castsi512_pd,
    _mm512_getmant_pd _mm512_getexp_pd _mm512_fixupimm_pd,
    _mm512_loadu_pd _mm512_storeu_pd _mm512_maskz_loadu_pd _mm512_mask_storeu_pd
}

lanes! {
    F32x16 f32 __mmask16 u32, _mm512_set1_ps _mm512_set1_epi32, _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps,
    _mm512_fmadd_ps _mm512_fmsub_ps _mm512_fnmadd_ps, _mm512_abs_ps _mm512_sqrt_ps _mm512_and_ps _mm512_or_ps _mm512_xor_ps,
    _mm512_min_ps _mm512_max_ps _mm512_cmp_ps_mask _mm512_mask_blend_ps,
    _mm512_scalef_ps _mm512_slli_epi32 _mm512_test_epi32_mask _mm512_movepi32_mask, _mm512_castps_si512 _mm512_castsi512_ps,
    _mm512_getmant_ps _mm512_getexp_ps _mm512_fixupimm_ps,
    _mm512_loadu_ps _mm512_storeu_ps _mm512_maskz_loadu_ps _mm512_mask_storeu_ps
}

impl Table for F64x8 {
    #[inline(always)]
    fn chosen(self, table: &'static [f64; 16]) -> Self {
        intrinsic!({
            let (low, high) = (_mm512_loadu_pd(table.as_ptr()), _mm512_loadu_pd(table.as_ptr().add(8)));
            F64x8(_mm512_permutex2var_pd(low, _mm512_castpd_si512(self.0), high))
        })
    }
}

macro_rules! functions {
    ($($op:ident = $single:path, $double:path;)*) => {
        /// The kernel of an op, if this module has one.
        pub(super) fn kernel(op: Op, dtype: DType, level: CpuLevel) -> Option<BlockFn> {
            if level != CpuLevel::Avx512 {
                return None;
            }
            match (op, dtype) {
                $((Op::$op, DType::F32) => {
                    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
                    unsafe fn of_singles(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
                        // SAFETY: the caller keeps the contract of `BlockFn`, and asks at this level.
                        unsafe { F32x16::each(args[0].cast(), out.cast(), n, |x| $single(x)) };
                        0
                    }
                    Some(of_singles)
                }
                (Op::$op, DType::F64) => {
                    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
                    unsafe fn of_doubles(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
                        // SAFETY: as above.
                        unsafe { F64x8::each(args[0].cast(), out.cast(), n, |x| $double(x)) };
                        0
                    }
                    Some(of_doubles)
                })*
                _ => None,
            }
        }
    };
}

functions! {
    Log = single::log, double::log;
    Tanh = single::tanh, double::tanh;
    Sigmoid = single::sigmoid, double::sigmoid;
    Silu = single::silu, double::silu;
    GeluTanh = single::gelu_tanh, double::gelu_tanh;
    Erf = single::erf, erf_parts::erf;
}

#[cfg(test)]
mod tests;
