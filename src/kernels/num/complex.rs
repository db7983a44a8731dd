//! Pairs of floats.

use std::ops::{Add, Neg, Sub};

use num_complex::Complex;

use super::mask::Mask;
use super::real::Real;
use crate::math;

/// What a row's text may say of complex numbers, besides the operators.
pub(crate) trait Cplx: Copy + Add<Output = Self> + Sub<Output = Self> + Neg<Output = Self> {
    type Mask: Mask;
    type Part: Real<Mask = Self::Mask>;
    fn pair(re: Self::Part, im: Self::Part) -> Self;
    fn re(a: Self) -> Self::Part;
    fn im(a: Self) -> Self::Part;

    #[inline(always)]
    fn conj(a: Self) -> Self {
        conj(a)
    }

    /// The plain formula, each operation rounded.
    #[inline(always)]
    fn mul(a: Self, b: Self) -> Self {
        mul(a, b)
    }

    #[inline(always)]
    fn eq(a: Self, b: Self) -> Self::Mask {
        both(a, b, Self::Part::eq)
    }

    #[inline(always)]
    fn ne(a: Self, b: Self) -> Self::Mask {
        either(a, b, Self::Part::ne)
    }

    /// Whether `a` is less: by the real parts, and by the imaginary ones if these are equal. False with a NaN that
    /// decides.
    #[inline(always)]
    fn lt(a: Self, b: Self) -> Self::Mask {
        ordered(a, b, Self::Part::lt, Self::Part::lt)
    }

    #[inline(always)]
    fn le(a: Self, b: Self) -> Self::Mask {
        ordered(a, b, Self::Part::lt, Self::Part::le)
    }

    #[inline(always)]
    fn gt(a: Self, b: Self) -> Self::Mask {
        ordered(a, b, Self::Part::gt, Self::Part::gt)
    }

    #[inline(always)]
    fn ge(a: Self, b: Self) -> Self::Mask {
        ordered(a, b, Self::Part::gt, Self::Part::ge)
    }

    /// `a` where the mask is set, else `b`.
    #[inline(always)]
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self {
        let part = |x, y| Self::Part::select(mask, x, y);
        Self::pair(part(Self::re(a), Self::re(b)), part(Self::im(a), Self::im(b)))
    }

    /// The larger one by [`Cplx::ge`]; the first one that has a NaN.
    #[inline(always)]
    fn maximum(a: Self, b: Self) -> Self {
        Self::select(Self::is_nan(a) | Self::ge(a, b), a, b)
    }

    /// The smaller one by [`Cplx::le`]; the first one that has a NaN.
    #[inline(always)]
    fn minimum(a: Self, b: Self) -> Self {
        Self::select(Self::is_nan(a) | Self::le(a, b), a, b)
    }

    /// The larger one; the other one if one has a NaN.
    #[inline(always)]
    fn fmax(a: Self, b: Self) -> Self {
        Self::select(Self::is_nan(b) | Self::ge(a, b), a, b)
    }

    /// The smaller one; the other one if one has a NaN.
    #[inline(always)]
    fn fmin(a: Self, b: Self) -> Self {
        Self::select(Self::is_nan(b) | Self::le(a, b), a, b)
    }

    /// Both parts to the nearest whole number, halves to even.
    #[inline(always)]
    fn round(a: Self) -> Self {
        Self::pair(Self::Part::round(Self::re(a)), Self::Part::round(Self::im(a)))
    }

    /// Whether a part is not 0.
    #[inline(always)]
    fn truth(a: Self) -> Self::Mask {
        Self::Part::truth(Self::re(a)) | Self::Part::truth(Self::im(a))
    }

    /// Whether a part is NaN.
    #[inline(always)]
    fn is_nan(a: Self) -> Self::Mask {
        Self::Part::is_nan(Self::re(a)) | Self::Part::is_nan(Self::im(a))
    }

    /// Whether a part is infinite.
    #[inline(always)]
    fn is_inf(a: Self) -> Self::Mask {
        Self::Part::is_inf(Self::re(a)) | Self::Part::is_inf(Self::im(a))
    }

    /// Whether both parts are finite.
    #[inline(always)]
    fn is_finite(a: Self) -> Self::Mask {
        Self::Part::is_finite(Self::re(a)) & Self::Part::is_finite(Self::im(a))
    }
}

/// [`Cplx::conj`] by parts.
#[inline(always)]
pub(crate) fn conj<T: Cplx>(a: T) -> T {
    T::pair(T::re(a), -T::im(a))
}

/// [`Cplx::mul`] by parts.
#[inline(always)]
pub(crate) fn mul<T: Cplx>(a: T, b: T) -> T {
    let (ar, ai, br, bi) = (T::re(a), T::im(a), T::re(b), T::im(b));
    T::pair(ar * br - ai * bi, ar * bi + ai * br)
}

/// Whether a comparison holds of both parts.
#[inline(always)]
pub(crate) fn both<T: Cplx>(a: T, b: T, compare: impl Fn(T::Part, T::Part) -> T::Mask) -> T::Mask {
    compare(T::re(a), T::re(b)) & compare(T::im(a), T::im(b))
}

/// Whether a strict comparison holds of the real parts and no imaginary part is NaN, or the real parts are equal and
/// another comparison holds of the imaginary ones.
#[inline(always)]
fn ordered<T: Cplx>(
    a: T,
    b: T,
    strict: impl Fn(T::Part, T::Part) -> T::Mask,
    other: impl Fn(T::Part, T::Part) -> T::Mask,
) -> T::Mask {
    let (ar, ai, br, bi) = (T::re(a), T::im(a), T::re(b), T::im(b));
    strict(ar, br) & !T::Part::unordered(ai, bi) | T::Part::eq(ar, br) & other(ai, bi)
}

/// Whether a comparison holds of a part.
#[inline(always)]
pub(crate) fn either<T: Cplx>(a: T, b: T, compare: impl Fn(T::Part, T::Part) -> T::Mask) -> T::Mask {
    compare(T::re(a), T::re(b)) | compare(T::im(a), T::im(b))
}

/// Complex arithmetic that no text can say: only kernels have it.
pub(crate) trait CplxFn: Cplx {
    const ZERO: Self;
    const ONE: Self;
    /// The logarithm of 0.
    const LOG_ZERO: Self;
    /// No number is less.
    const LEAST: Self;
    /// No number is greater.
    const MOST: Self;
    fn div(a: Self, b: Self) -> Self;
    fn pow(a: Self, b: Self) -> Self;
    fn lerp(a: Self, end: Self, weight: Self) -> Self;
    fn remainder(a: Self, b: Self) -> Self;
    fn modulus(a: Self) -> Self::Part;
    fn angle(a: Self) -> Self::Part;
    fn real(a: f64) -> Self;
    fn logaddexp(a: Self, b: Self) -> Self;
    /// `log(e^a + e^b)` with the imaginary part near that of the operand with the larger real part, or of `b` if these are equal.
    fn log_sum(a: Self, b: Self) -> Self;
    /// `log2(2^a + 2^b)` by [`CplxFn::logaddexp`].
    fn logaddexp2(a: Self, b: Self) -> Self;
    /// `-i log((b + i a) / sqrt(a² + b²))`.
    #[inline(always)]
    fn atan2(a: Self, b: Self) -> Self {
        let rotated = Self::pair(Self::re(b) - Self::im(a), Self::im(b) + Self::re(a));
        let length = Self::sqrt(Self::mul(a, a) + Self::mul(b, b));
        let log = Self::log(Self::div(rotated, length));
        Self::pair(Self::im(log), -Self::re(log))
    }
    /// `a log(b)`, and 0 where `a` is 0.
    fn xlogy(a: Self, b: Self) -> Self;
    /// The formula of the real function, each operation rounded.
    #[inline(always)]
    fn gelu_tanh(a: Self) -> Self {
        let half = Self::mul(Self::real(0.5), a);
        let cube = Self::mul(Self::mul(a, a), a);
        let inner = Self::mul(Self::real(0.797_884_560_802_865_4), a + Self::mul(Self::real(0.044715), cube));
        Self::mul(half, Self::ONE + Self::tanh(inner))
    }
    fn sgn(a: Self) -> Self;
    fn log2(a: Self) -> Self;
    fn log10(a: Self) -> Self;
    fn asin(a: Self) -> Self;
    fn acos(a: Self) -> Self;
    fn atan(a: Self) -> Self;
    fn sinh(a: Self) -> Self;
    fn cosh(a: Self) -> Self;
    fn asinh(a: Self) -> Self;
    fn acosh(a: Self) -> Self;
    fn atanh(a: Self) -> Self;
    fn sqrt(a: Self) -> Self;
    fn rsqrt(a: Self) -> Self;
    fn reciprocal(a: Self) -> Self;
    fn exp(a: Self) -> Self;
    fn expm1(a: Self) -> Self;
    fn log(a: Self) -> Self;
    fn log1p(a: Self) -> Self;
    fn sin(a: Self) -> Self;
    fn cos(a: Self) -> Self;
    fn tan(a: Self) -> Self;
    fn tanh(a: Self) -> Self;
    fn sigmoid(a: Self) -> Self;
}

macro_rules! complexes {
    ($t:ident, modulus = $abs:path, angle = $angle:path, $($method:ident = $function:path),*; $($two:ident = $binary:path),*) => {
        impl Cplx for Complex<$t> {
            type Mask = bool;
            type Part = $t;
            #[inline(always)]
            fn pair(re: $t, im: $t) -> Self { Complex::new(re, im) }
            #[inline(always)]
            fn re(a: Self) -> $t { a.re }
            #[inline(always)]
            fn im(a: Self) -> $t { a.im }
        }

        impl CplxFn for Complex<$t> {
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            const LOG_ZERO: Self = Complex::new($t::NEG_INFINITY, 0.0);
            const LEAST: Self = Complex::new($t::NEG_INFINITY, $t::NEG_INFINITY);
            const MOST: Self = Complex::new($t::INFINITY, $t::INFINITY);
            #[inline(always)]
            fn remainder(a: Self, b: Self) -> Self {
                // PaddlePaddle's rule: both parts of the quotient are rounded to the nearest integer, ties away from
                // zero.
                let length = $abs(b);
                let square = length * length;
                let re = ((a.re * b.re + a.im * b.im) / square).round();
                let im = ((a.im * b.re - a.re * b.im) / square).round();
                Complex::new(a.re - (re * b.re - im * b.im), a.im - (re * b.im + im * b.re))
            }
            #[inline(always)]
            fn lerp(a: Self, end: Self, weight: Self) -> Self {
                let difference = end - a;
                let remaining = Self::ONE - weight;
                // PyTorch starts from the nearer end, chosen by the weight's modulus.
                if weight.norm_sqr() < 0.25 { a + Self::mul(weight, difference) } else { end - Self::mul(difference, remaining) }
            }
            #[inline(always)]
            fn modulus(a: Self) -> $t { $abs(a) }
            #[inline(always)]
            fn angle(a: Self) -> $t { $angle(a) }
            #[inline(always)]
            fn real(a: f64) -> Self { Complex::new(a as $t, 0.0) }
            #[inline(always)]
            fn logaddexp(a: Self, b: Self) -> Self {
                // The operand with the larger real part is factored out, so that the exponential does not overflow. If
                // the real parts are equal, the imaginary parts decide, so that the result does not depend on the order
                // of the operands.
                let first = (a.re > b.re) | (a.re == b.re) & (a.im > b.im);
                let (high, low) = if first { (a, b) } else { (b, a) };
                if a == b && a.re.abs() == $t::INFINITY { a } else { high + Self::log1p(Self::exp(low - high)) }
            }
            #[inline(always)]
            fn log_sum(a: Self, b: Self) -> Self {
                let (high, low) = if a.re > b.re { (a, b) } else { (b, a) };
                // The angle of a sum of zeros is any.
                let infinite = (high.re == low.re) & (low.re.abs() == $t::INFINITY);
                if infinite { low } else { high + Self::log1p(Self::exp(low - high)) }
            }
            #[inline(always)]
            fn logaddexp2(a: Self, b: Self) -> Self {
                const LN_2: $t = std::$t::consts::LN_2;
                let log = Self::logaddexp(a * LN_2, b * LN_2);
                Complex::new(log.re / LN_2, log.im / LN_2)
            }
            #[inline(always)]
            fn xlogy(a: Self, b: Self) -> Self {
                if a == Self::ZERO && !b.is_nan() { Self::ZERO } else { Self::mul(a, CplxFn::log(b)) }
            }
            $(#[inline(always)]
            fn $method(a: Self) -> Self { $function(a) })*
            $(#[inline(always)]
            fn $two(a: Self, b: Self) -> Self { $binary(a, b) })*
        }
    };
}

complexes!(f32, modulus = math::complex::abs_c64, angle = math::complex::angle_c64,
    sgn = math::complex::sgn_c64, log2 = math::complex::log2_c64, log10 = math::complex::log10_c64,
    asin = math::complex::asin_c64, acos = math::complex::acos_c64, atan = math::complex::atan_c64,
    sinh = math::complex::sinh_c64, cosh = math::complex::cosh_c64, asinh = math::complex::asinh_c64,
    acosh = math::complex::acosh_c64, atanh = math::complex::atanh_c64, sqrt = math::complex::sqrt_c64, rsqrt = math::complex::rsqrt_c64,
    reciprocal = math::complex::reciprocal_c64, exp = math::complex::exp_c64, expm1 = math::complex::expm1_c64,
    log = math::complex::log_c64, log1p = math::complex::log1p_c64, sin = math::complex::sin_c64,
    cos = math::complex::cos_c64, tan = math::complex::tan_c64, tanh = math::complex::tanh_c64,
    sigmoid = math::complex::sigmoid_c64; div = math::complex::div_c64,
    pow = math::complex::pow_c64);
complexes!(f64, modulus = math::complex::abs_c128, angle = math::complex::angle_c128,
    sgn = math::complex::sgn_c128, log2 = math::complex::log2_c128, log10 = math::complex::log10_c128,
    asin = math::complex::asin_c128, acos = math::complex::acos_c128, atan = math::complex::atan_c128,
    sinh = math::complex::sinh_c128, cosh = math::complex::cosh_c128, asinh = math::complex::asinh_c128,
    acosh = math::complex::acosh_c128, atanh = math::complex::atanh_c128, sqrt = math::complex::sqrt_c128, rsqrt = math::complex::rsqrt_c128,
    reciprocal = math::complex::reciprocal_c128, exp = math::complex::exp_c128, expm1 = math::complex::expm1_c128,
    log = math::complex::log_c128, log1p = math::complex::log1p_c128, sin = math::complex::sin_c128,
    cos = math::complex::cos_c128, tan = math::complex::tan_c128, tanh = math::complex::tanh_c128,
    sigmoid = math::complex::sigmoid_c128; div = math::complex::div_c128,
    pow = math::complex::pow_c128);
