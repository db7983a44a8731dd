//! f32 and f64.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::mask::Mask;
use crate::math;

/// What a row's text may say of floats, besides the operators.
pub(crate) trait Real:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    type Mask: Mask;
    /// The nearest number; `self` says where it is wanted.
    fn c(self, value: f64) -> Self;
    /// The canonical NaN.
    fn nan(self) -> Self;
    fn abs(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn sqrt(a: Self) -> Self;
    /// `a · b + c`, rounded once.
    fn fma(a: Self, b: Self, c: Self) -> Self;
    fn rsqrt(a: Self) -> Self;
    fn floor(a: Self) -> Self;
    fn ceil(a: Self) -> Self;
    /// To the nearest whole number, halves to even.
    fn round(a: Self) -> Self;
    fn trunc(a: Self) -> Self;
    fn eq(a: Self, b: Self) -> Self::Mask;
    fn ne(a: Self, b: Self) -> Self::Mask;
    fn lt(a: Self, b: Self) -> Self::Mask;
    fn le(a: Self, b: Self) -> Self::Mask;
    fn gt(a: Self, b: Self) -> Self::Mask;
    fn ge(a: Self, b: Self) -> Self::Mask;
    /// Whether one of them is NaN.
    fn unordered(a: Self, b: Self) -> Self::Mask;
    /// `a` where the mask is set, else `b`.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
    /// The bits that both have.
    fn and_bits(a: Self, b: Self) -> Self;
    /// The bits that one of them has.
    fn or_bits(a: Self, b: Self) -> Self;
    fn exp(a: Self) -> Self;
    fn log(a: Self) -> Self;
    fn tanh(a: Self) -> Self;
    fn sigmoid(a: Self) -> Self;
    fn silu(a: Self) -> Self;
    fn gelu_tanh(a: Self) -> Self;
    fn erf(a: Self) -> Self;
    /// The sine for |a| <= [`RealFn::NEAR`].
    fn sin_near(a: Self) -> Self;
    /// The cosine for |a| <= [`RealFn::NEAR`].
    fn cos_near(a: Self) -> Self;

    /// IEEE 754-2019 `maximum`.
    #[inline(always)]
    fn maximum(a: Self, b: Self) -> Self {
        maximum(a, b)
    }

    /// IEEE 754-2019 `minimum`.
    #[inline(always)]
    fn minimum(a: Self, b: Self) -> Self {
        minimum(a, b)
    }

    /// The larger one; the other one if one is NaN.
    #[inline(always)]
    fn fmax(a: Self, b: Self) -> Self {
        fmax(a, b)
    }

    /// The smaller one; the other one if one is NaN.
    #[inline(always)]
    fn fmin(a: Self, b: Self) -> Self {
        fmin(a, b)
    }

    /// Whether `a` is not 0. NaN is not.
    #[inline(always)]
    fn truth(a: Self) -> Self::Mask {
        Self::ne(a, a.c(0.0))
    }

    #[inline(always)]
    fn is_nan(a: Self) -> Self::Mask {
        Self::unordered(a, a)
    }

    #[inline(always)]
    fn is_inf(a: Self) -> Self::Mask {
        Self::eq(a.abs(), a.c(f64::INFINITY))
    }

    #[inline(always)]
    fn is_finite(a: Self) -> Self::Mask {
        Self::lt(a.abs(), a.c(f64::INFINITY))
    }

    /// -1, 0 or 1; 0 for NaN.
    #[inline(always)]
    fn sign(a: Self) -> Self {
        let up = Self::select(Self::gt(a, a.c(0.0)), a.c(1.0), a.c(0.0));
        Self::select(Self::lt(a, a.c(0.0)), a.c(-1.0), up)
    }

    /// `a` unless it is at most 0: also a NaN.
    #[inline(always)]
    fn relu(a: Self) -> Self {
        Self::select(!Self::le(a, a.c(0.0)), a, a.c(0.0))
    }

    /// 1 above zero, `b` at zero, else 0.
    #[inline(always)]
    fn heaviside(a: Self, b: Self) -> Self {
        let step = Self::select(Self::gt(a, a.c(0.0)), a.c(1.0), a.c(0.0));
        Self::select(Self::eq(a, a.c(0.0)), b, step)
    }

    /// π below zero, else 0; NaN for NaN.
    #[inline(always)]
    fn angle(a: Self) -> Self {
        let plain = Self::select(Self::lt(a, a.c(0.0)), a.c(std::f64::consts::PI), a.c(0.0));
        Self::select(Self::is_nan(a), a.nan(), plain)
    }
}

/// [`Real::maximum`] by comparisons. Equal operands differ at most in the sign of zero: `and` keeps +0.
#[inline(always)]
pub(crate) fn maximum<T: Real>(a: T, b: T) -> T {
    let larger = T::select(T::gt(a, b), a, b);
    let larger = T::select(T::eq(a, b), T::and_bits(a, b), larger);
    T::select(T::unordered(a, b), a.nan(), larger)
}

/// [`Real::minimum`] by comparisons.
#[inline(always)]
pub(crate) fn minimum<T: Real>(a: T, b: T) -> T {
    let smaller = T::select(T::lt(a, b), a, b);
    let smaller = T::select(T::eq(a, b), T::or_bits(a, b), smaller);
    T::select(T::unordered(a, b), a.nan(), smaller)
}

/// [`Real::fmax`] by comparisons.
#[inline(always)]
pub(crate) fn fmax<T: Real>(a: T, b: T) -> T {
    let rest = T::select(T::eq(a, b), T::and_bits(a, b), b);
    let larger = T::select(T::gt(a, b), a, rest);
    T::select(T::is_nan(b), a, larger)
}

/// [`Real::fmin`] by comparisons.
#[inline(always)]
pub(crate) fn fmin<T: Real>(a: T, b: T) -> T {
    let rest = T::select(T::eq(a, b), T::or_bits(a, b), b);
    let smaller = T::select(T::lt(a, b), a, rest);
    T::select(T::is_nan(b), a, smaller)
}

/// Float arithmetic that no text can say: only kernels have it.
pub(crate) trait RealFn: Real {
    const INF: Self;
    const NEG_INF: Self;
    /// The largest |x| for which the `_small` forms are valid.
    const SMALL: Self;
    /// The largest |x| for which the `_near` forms are valid.
    const NEAR: Self;
    fn floor_div(a: Self, b: Self) -> Self;
    fn floor_mod(a: Self, b: Self) -> Self;
    /// `floor_mod`, but a zero has the sign of `b` too.
    fn signed_mod(a: Self, b: Self) -> Self;
    fn pow(a: Self, b: Self) -> Self;
    fn expm1(a: Self) -> Self;
    fn log1p(a: Self) -> Self;
    fn exp2(a: Self) -> Self;
    fn log2(a: Self) -> Self;
    fn log10(a: Self) -> Self;
    fn cbrt(a: Self) -> Self;
    fn asin(a: Self) -> Self;
    fn acos(a: Self) -> Self;
    fn atan(a: Self) -> Self;
    fn sinh(a: Self) -> Self;
    fn cosh(a: Self) -> Self;
    fn asinh(a: Self) -> Self;
    fn acosh(a: Self) -> Self;
    fn atanh(a: Self) -> Self;
    fn erfc(a: Self) -> Self;
    fn log1pexp(a: Self) -> Self;
    fn gelu(a: Self) -> Self;
    fn fmod(a: Self, b: Self) -> Self;
    fn hypot(a: Self, b: Self) -> Self;
    fn atan2(a: Self, b: Self) -> Self;
    fn xlogy(a: Self, b: Self) -> Self;
    fn logaddexp(a: Self, b: Self) -> Self;
    fn logaddexp2(a: Self, b: Self) -> Self;
    /// a · 2^b; rounded once for integral b.
    fn ldexp(a: Self, b: Self) -> Self;
    fn nextafter(a: Self, b: Self) -> Self;
    /// `a · b + c` for a result that is rounded again to a half type: in f32 rounded to odd.
    fn fma_odd(a: Self, b: Self, c: Self) -> Self;
    fn sin(a: Self) -> Self;
    fn cos(a: Self) -> Self;
    fn tan(a: Self) -> Self;
    fn sin_small(a: Self) -> Self;
    fn cos_small(a: Self) -> Self;
    fn tan_small(a: Self) -> Self;
}

macro_rules! reals {
    ($t:ident, $bound:expr, $near:expr, $fmod:path, $erf:path, $odd:path, $lanes:ident: $($lane:ident),*;
     $($method:ident = $function:path),*; $($two:ident = $binary:path),*) => {
        impl Real for $t {
            type Mask = bool;
            #[inline(always)]
            fn c(self, value: f64) -> $t { value as $t }
            #[inline(always)]
            fn nan(self) -> $t { $t::NAN }
            #[inline(always)]
            fn abs(self) -> $t { $t::abs(self) }
            #[inline(always)]
            fn copysign(self, sign: $t) -> $t { $t::copysign(self, sign) }
            #[inline(always)]
            fn sqrt(a: $t) -> $t { a.sqrt() }
            #[inline(always)]
            fn fma(a: $t, b: $t, c: $t) -> $t { a.mul_add(b, c) }
            #[inline(always)]
            fn floor(a: $t) -> $t { a.floor() }
            #[inline(always)]
            fn ceil(a: $t) -> $t { a.ceil() }
            #[inline(always)]
            fn round(a: $t) -> $t { a.round_ties_even() }
            #[inline(always)]
            fn trunc(a: $t) -> $t { a.trunc() }
            #[inline(always)]
            fn eq(a: $t, b: $t) -> bool { a == b }
            #[inline(always)]
            fn ne(a: $t, b: $t) -> bool { a != b }
            #[inline(always)]
            fn lt(a: $t, b: $t) -> bool { a < b }
            #[inline(always)]
            fn le(a: $t, b: $t) -> bool { a <= b }
            #[inline(always)]
            fn gt(a: $t, b: $t) -> bool { a > b }
            #[inline(always)]
            fn ge(a: $t, b: $t) -> bool { a >= b }
            #[inline(always)]
            fn unordered(a: $t, b: $t) -> bool { (a != a) | (b != b) }
            #[inline(always)]
            fn select(mask: bool, a: $t, b: $t) -> $t { if mask { a } else { b } }
            #[inline(always)]
            fn and_bits(a: $t, b: $t) -> $t { $t::from_bits(a.to_bits() & b.to_bits()) }
            #[inline(always)]
            fn or_bits(a: $t, b: $t) -> $t { $t::from_bits(a.to_bits() | b.to_bits()) }
            #[inline(always)]
            fn erf(a: $t) -> $t { $erf(a) }
            $(#[inline(always)]
            fn $lane(a: $t) -> $t { math::inline::$lanes::$lane(a) })*
        }

        impl RealFn for $t {
            const INF: $t = $t::INFINITY;
            const NEG_INF: $t = $t::NEG_INFINITY;
            const SMALL: $t = $bound;
            const NEAR: $t = $near;
            #[inline(always)]
            fn floor_div(a: $t, b: $t) -> $t {
                let rest = $fmod(a, b);
                let exact = (a - rest) / b;
                let low = if (rest != 0.0) & ((rest < 0.0) != (b < 0.0)) { exact - 1.0 } else { exact };
                let down = low.floor();
                let near = if low - down > 0.5 { down + 1.0 } else { down };
                let quotient = a / b;
                let zero = (0.0 as $t).copysign(quotient);
                let result = if low != 0.0 { near } else { zero };
                if b == 0.0 { quotient } else { result }
            }
            #[inline(always)]
            fn floor_mod(a: $t, b: $t) -> $t {
                let rest = $fmod(a, b);
                if (rest != 0.0) & ((rest < 0.0) != (b < 0.0)) { rest + b } else { rest }
            }
            #[inline(always)]
            fn signed_mod(a: $t, b: $t) -> $t {
                let rest = <$t as RealFn>::floor_mod(a, b);
                if rest == 0.0 { (0.0 as $t).copysign(b) } else { rest }
            }
            #[inline(always)]
            fn fmod(a: $t, b: $t) -> $t { $fmod(a, b) }
            #[inline(always)]
            fn fma_odd(a: $t, b: $t, c: $t) -> $t { $odd(a, b, c) }
            #[inline(always)]
            fn xlogy(a: $t, b: $t) -> $t {
                let product = a * Real::log(b);
                let zero = if b != b { $t::NAN } else { 0.0 };
                if a == 0.0 { zero } else { product }
            }
            #[inline(always)]
            fn ldexp(a: $t, b: $t) -> $t {
                // 2^b may be out of range where a · 2^b is not, so up to two factors are applied first. The downward
                // factor leaves room for the digits of a, so that only the last product rounds.
                let (most, up) = (($t::MAX_EXP - 2) as $t, 1.0 / $t::MIN_POSITIVE);
                let least = ($t::MIN_EXP - 1 + $t::MANTISSA_DIGITS as i32) as $t;
                let down = $t::MIN_POSITIVE * (2.0 / $t::EPSILON);
                let low = ($t::MIN_EXP - 1) as $t;
                // Beyond these every result is infinite or zero, of a power that is neither; an infinite b has an
                // infinite power.
                let b = if (b > 3.0 * most) & (b < Self::INF) { 3.0 * most } else { b };
                let floor = 2.0 * least + low;
                let b = if (b < floor) & (b > Self::NEG_INF) { floor } else { b };
                let (mut a, mut b) = (a, b);
                for _ in 0..2 {
                    let (over, under) = (b > most, b < low);
                    a *= if over { up } else if under { down } else { 1.0 };
                    b -= if over { most } else if under { least } else { 0.0 };
                }
                a * RealFn::exp2(b)
            }
            #[inline(always)]
            fn nextafter(a: $t, b: $t) -> $t {
                // Away from zero the next number has the next bit pattern; at zero it is the smallest number, with b's
                // sign.
                let away = (a < b) == (a > 0.0);
                let bits = a.to_bits();
                let step = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
                let smallest = $t::from_bits(1).copysign(b);
                let moved = if a == 0.0 { smallest } else { $t::from_bits(step) };
                let next = if a == b { b } else { moved };
                if (a != a) | (b != b) { $t::NAN } else { next }
            }
            $(#[inline(always)]
            fn $method(a: $t) -> $t { $function(a) })*
            $(#[inline(always)]
            fn $two(a: $t, b: $t) -> $t { $binary(a, b) })*
        }
    };
}

reals!(f32, math::trig::TRIG_BOUND_F32, math::inline::single::TRIG_NEAR, math::trig_reduce::fmod_f32,
    math::inline::single::erf, math::fma::odd_f32, single: rsqrt, exp, log, tanh, sigmoid, silu, gelu_tanh, sin_near, cos_near;
    expm1 = math::exp::expm1_f32, log1p = math::log::log1p_f32, gelu = math::erf::gelu_f32, sin = math::trig::sin_f32,
    cos = math::trig::cos_f32, tan = math::trig::tan_f32, sin_small = math::trig::sin_f32_small,
    cos_small = math::trig::cos_f32_small, tan_small = math::trig::tan_f32_small, exp2 = math::exp::exp2_f32,
    log2 = math::log::log2_f32, log10 = math::log::log10_f32, cbrt = math::invtrig::cbrt_f32,
    asin = math::invtrig::asin_f32, acos = math::invtrig::acos_f32, atan = math::invtrig::atan_f32,
    sinh = math::hyper::sinh_f32, cosh = math::hyper::cosh_f32, asinh = math::hyper::asinh_f32,
    acosh = math::hyper::acosh_f32, atanh = math::hyper::atanh_f32, erfc = math::erf::erfc_f32,
    log1pexp = math::hyper::log1pexp_f32;
    pow = math::pow::pow_f32, hypot = math::invtrig::hypot_f32, atan2 = math::invtrig::atan2_f32,
    logaddexp = math::hyper::logaddexp_f32, logaddexp2 = math::hyper::logaddexp2_f32);
reals!(f64, math::trig::TRIG_BOUND_F64, math::inline::double::TRIG_NEAR, math::trig_reduce::fmod_f64,
    math::erf_parts::erf, f64::mul_add, double: rsqrt, exp, log, tanh, sigmoid, silu, gelu_tanh, sin_near, cos_near;
    expm1 = math::exp::expm1_f64, log1p = math::log::log1p_f64, gelu = math::erf::gelu_f64, sin = math::trig::sin_f64,
    cos = math::trig::cos_f64, tan = math::trig::tan_f64, sin_small = math::inline::double::sin_near,
    cos_small = math::inline::double::cos_near, tan_small = math::trig::tan_f64_small, exp2 = math::exp::exp2_f64,
    log2 = math::log::log2_f64, log10 = math::log::log10_f64, cbrt = math::invtrig::cbrt_f64,
    asin = math::invtrig::asin_f64, acos = math::invtrig::acos_f64, atan = math::invtrig::atan_f64,
    sinh = math::hyper::sinh_f64, cosh = math::hyper::cosh_f64, asinh = math::hyper::asinh_f64,
    acosh = math::hyper::acosh_f64, atanh = math::hyper::atanh_f64, erfc = math::erf::erfc_f64,
    log1pexp = math::hyper::log1pexp_f64;
    pow = math::pow::pow_f64, hypot = math::invtrig::hypot_f64, atan2 = math::invtrig::atan2_f64,
    logaddexp = math::hyper::logaddexp_f64, logaddexp2 = math::hyper::logaddexp2_f64);
