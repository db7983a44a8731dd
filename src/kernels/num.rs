//! Functions for the op table's expressions: integer, real and complex arithmetic beyond Rust's operators.
//!
//! Guarantees: all functions are total and give the same bits on every machine. Sources: Python's `//` and `%` as
//! PyTorch's `div_floor_floating` and `remainder` implement them; IEEE 754-2019 `maximum`/`minimum` with +0 > -0.

use num_complex::Complex;

use crate::math;

/// Integer arithmetic.
pub(crate) trait Int: Copy {
    /// The smallest number.
    const LEAST: Self;
    /// The largest number.
    const MOST: Self;
    /// `a / b` rounded down; `MIN / -1` wraps. `b` is not 0.
    fn floor_div(a: Self, b: Self) -> Self;
    /// `a - b * floor_div(a, b)`. `b` is not 0.
    fn floor_mod(a: Self, b: Self) -> Self;
    /// `a / b` rounded towards zero; `MIN / -1` wraps. `b` is not 0.
    fn trunc_div(a: Self, b: Self) -> Self;
    /// `a - b * trunc_div(a, b)`. `b` is not 0.
    fn trunc_mod(a: Self, b: Self) -> Self;
    /// `a` to the power `b`, wrapping; a negative power is 0 unless `a` is ±1.
    fn power(a: Self, b: Self) -> Self;
    /// |a|, wrapping.
    fn absolute(a: Self) -> Self;
    /// -1, 0 or 1.
    fn sign(a: Self) -> Self;
    /// `a << b`; 0 if `b` is negative or not less than the width.
    fn shift_left(a: Self, b: Self) -> Self;
    /// `a >> b` with the sign kept; the sign fill if `b` is negative or not less than the width.
    fn shift_right(a: Self, b: Self) -> Self;
    /// Greatest common divisor.
    fn gcd(a: Self, b: Self) -> Self;
    /// Least common multiple, wrapping, as C's integer promotion gives it: 8 and 16 bits multiply in i32, which is
    /// exact, so the magnitude wraps; 32 and 64 bits give the magnitude of the wrapped product.
    fn lcm(a: Self, b: Self) -> Self;
}

/// Division by float arithmetic, which vectorizes. It is exact: the float represents both operands, and a quotient that
/// is not an integer differs from the nearest integer by at least 1/|b|, which exceeds the rounding error of the
/// quotient (|a| < 2^31 in f64, 2^16 in f32). Adding 1.5 times the mantissa's range leaves the integer in the low bits,
/// wrapped.
macro_rules! float_division {
    ($t:ident $float:ident) => {
        #[inline(always)]
        fn floor_div(a: $t, b: $t) -> $t {
            let magic = 1.5 / $float::EPSILON;
            ((a as $float / b as $float).floor() + magic).to_bits() as $t
        }
        #[inline(always)]
        fn trunc_div(a: $t, b: $t) -> $t {
            let magic = 1.5 / $float::EPSILON;
            ((a as $float / b as $float).trunc() + magic).to_bits() as $t
        }
        #[inline(always)]
        fn floor_mod(a: $t, b: $t) -> $t {
            a.wrapping_sub(b.wrapping_mul(<$t as Int>::floor_div(a, b)))
        }
        #[inline(always)]
        fn trunc_mod(a: $t, b: $t) -> $t {
            a.wrapping_sub(b.wrapping_mul(<$t as Int>::trunc_div(a, b)))
        }
    };
}

/// Division by the machine's division instruction.
macro_rules! whole_division {
    ($t:ident) => {
        #[inline(always)]
        fn floor_div(a: $t, b: $t) -> $t {
            let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
            if (r != 0) & ((r < 0) != (b < 0)) { q.wrapping_sub(1) } else { q }
        }
        #[inline(always)]
        fn trunc_div(a: $t, b: $t) -> $t {
            a.wrapping_div(b)
        }
        #[inline(always)]
        fn floor_mod(a: $t, b: $t) -> $t {
            let r = a.wrapping_rem(b);
            if (r != 0) & ((r < 0) != (b < 0)) { r.wrapping_add(b) } else { r }
        }
        #[inline(always)]
        fn trunc_mod(a: $t, b: $t) -> $t {
            a.wrapping_rem(b)
        }
    };
}

macro_rules! ints {
    ($($t:ident, $unsigned:ty, $product:ty, $division:ident $($float:ident)?, $negative:expr, $abs:expr, $sign:expr);*) => {$(
        impl Int for $t {
            const LEAST: $t = <$t>::MIN;
            const MOST: $t = <$t>::MAX;
            $division!($t $($float)?);
            #[inline(always)]
            fn power(a: $t, b: $t) -> $t {
                if $negative(b) {
                    let odd = b & 1 == 1;
                    return if a == 1 { 1 } else if a.wrapping_add(1) == 0 { if odd { a } else { 1 } } else { 0 };
                }
                let (mut base, mut left, mut result) = (a, b as $unsigned, 1 as $t);
                while left > 0 {
                    if left & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                result
            }
            #[inline(always)]
            fn absolute(a: $t) -> $t { $abs(a) }
            #[inline(always)]
            fn sign(a: $t) -> $t { $sign(a) }
            #[inline(always)]
            fn shift_left(a: $t, b: $t) -> $t {
                let inside = (b as u64) < u64::from(<$t>::BITS);
                if inside { a.wrapping_shl(b as u32) } else { 0 }
            }
            #[inline(always)]
            fn shift_right(a: $t, b: $t) -> $t {
                let inside = (b as u64) < u64::from(<$t>::BITS);
                let fill = if $negative(a) { <$t>::MAX.wrapping_mul(0).wrapping_sub(1) } else { 0 };
                if inside { a.wrapping_shr(b as u32) } else { fill }
            }
            #[inline(always)]
            fn gcd(a: $t, b: $t) -> $t {
                let (mut a, mut b) = (a, b);
                while b != 0 {
                    (a, b) = (b, a.wrapping_rem(b));
                }
                $abs(a)
            }
            #[inline(always)]
            fn lcm(a: $t, b: $t) -> $t {
                let (common, a, b) = (<$product>::from(Self::gcd(a, b)), <$product>::from(a), <$product>::from(b));
                if common == 0 { 0 } else { a.wrapping_div(common).wrapping_mul(b).wrapping_abs() as $t }
            }
        }
    )*};
}

ints!(u8, u8, i32, float_division f32, |_: u8| false, |a: u8| a, |a: u8| a.min(1);
    i8, u8, i32, float_division f32, i8::is_negative, i8::wrapping_abs, i8::signum;
    i16, u16, i32, float_division f32, i16::is_negative, i16::wrapping_abs, i16::signum;
    i32, u32, i32, float_division f64, i32::is_negative, i32::wrapping_abs, i32::signum;
    i64, u64, i64, whole_division, i64::is_negative, i64::wrapping_abs, i64::signum);

/// Arithmetic of f32 and f64.
pub(crate) trait Real: Copy {
    const INF: Self;
    const NEG_INF: Self;
    /// The largest |x| for which the `_small` forms are valid.
    const SMALL: Self;
    /// The largest |x| for which the `_near` forms are valid.
    const NEAR: Self;
    fn is_inf(a: Self) -> bool;
    fn is_finite(a: Self) -> bool;
    fn floor_div(a: Self, b: Self) -> Self;
    fn floor_mod(a: Self, b: Self) -> Self;
    fn pow(a: Self, b: Self) -> Self;
    fn maximum(a: Self, b: Self) -> Self;
    fn minimum(a: Self, b: Self) -> Self;
    fn fmax(a: Self, b: Self) -> Self;
    fn fmin(a: Self, b: Self) -> Self;
    fn sign(a: Self) -> Self;
    fn relu(a: Self) -> Self;
    fn sqrt(a: Self) -> Self;
    fn floor(a: Self) -> Self;
    fn ceil(a: Self) -> Self;
    fn round(a: Self) -> Self;
    fn trunc(a: Self) -> Self;
    fn exp(a: Self) -> Self;
    fn expm1(a: Self) -> Self;
    fn log(a: Self) -> Self;
    fn log1p(a: Self) -> Self;
    fn tanh(a: Self) -> Self;
    fn sigmoid(a: Self) -> Self;
    fn erf(a: Self) -> Self;
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
    fn angle(a: Self) -> Self;
    fn gelu(a: Self) -> Self;
    fn gelu_tanh(a: Self) -> Self;
    fn silu(a: Self) -> Self;
    fn fmod(a: Self, b: Self) -> Self;
    fn hypot(a: Self, b: Self) -> Self;
    fn atan2(a: Self, b: Self) -> Self;
    fn xlogy(a: Self, b: Self) -> Self;
    fn logaddexp(a: Self, b: Self) -> Self;
    fn logaddexp2(a: Self, b: Self) -> Self;
    fn heaviside(a: Self, b: Self) -> Self;
    /// a · 2^b; rounded once for integral b.
    fn ldexp(a: Self, b: Self) -> Self;
    fn nextafter(a: Self, b: Self) -> Self;
    fn sin(a: Self) -> Self;
    fn cos(a: Self) -> Self;
    fn tan(a: Self) -> Self;
    fn sin_small(a: Self) -> Self;
    fn cos_small(a: Self) -> Self;
    fn tan_small(a: Self) -> Self;
    fn sin_near(a: Self) -> Self;
    fn cos_near(a: Self) -> Self;
}

macro_rules! reals {
    ($t:ident, $bound:expr, $near:expr, $fmod:path, $($method:ident = $function:path),*; $($two:ident = $binary:path),*) => {
        impl Real for $t {
            const INF: $t = $t::INFINITY;
            const NEG_INF: $t = $t::NEG_INFINITY;
            const SMALL: $t = $bound;
            const NEAR: $t = $near;
            #[inline(always)]
            fn is_inf(a: $t) -> bool { a.abs() == $t::INFINITY }
            #[inline(always)]
            fn is_finite(a: $t) -> bool { a.abs() < $t::INFINITY }
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
            fn fmod(a: $t, b: $t) -> $t { $fmod(a, b) }
            #[inline(always)]
            fn angle(a: $t) -> $t {
                let pi = std::f64::consts::PI as $t;
                let plain = if a < 0.0 { pi } else { 0.0 };
                if a != a { a } else { plain }
            }
            #[inline(always)]
            fn xlogy(a: $t, b: $t) -> $t {
                let product = a * Real::log(b);
                let zero = if b != b { $t::NAN } else { 0.0 };
                if a == 0.0 { zero } else { product }
            }
            #[inline(always)]
            fn heaviside(a: $t, b: $t) -> $t {
                let step = if a > 0.0 { 1.0 } else { 0.0 };
                if a == 0.0 { b } else { step }
            }
            #[inline(always)]
            fn ldexp(a: $t, b: $t) -> $t {
                // 2^b may be out of range where a · 2^b is not, so up to two factors are applied first. The downward
                // factor leaves room for the digits of a, so that only the last product rounds.
                let (most, up) = (($t::MAX_EXP - 2) as $t, 1.0 / $t::MIN_POSITIVE);
                let least = ($t::MIN_EXP - 1 + $t::MANTISSA_DIGITS as i32) as $t;
                let down = $t::MIN_POSITIVE * (2.0 / $t::EPSILON);
                let low = ($t::MIN_EXP - 1) as $t;
                // Beyond these bounds the result is infinite or zero for any finite nonzero a, so b is clamped and its
                // power stays finite and nonzero. An infinite b is not clamped and has an infinite or zero power.
                let b = if (b > 3.0 * most) & (b < Self::INF) { 3.0 * most } else { b };
                let floor = 2.0 * least + low;
                let b = if (b < floor) & (b > Self::NEG_INF) { floor } else { b };
                let (mut a, mut b) = (a, b);
                for _ in 0..2 {
                    let (over, under) = (b > most, b < low);
                    a *= if over { up } else if under { down } else { 1.0 };
                    b -= if over { most } else if under { least } else { 0.0 };
                }
                a * Real::exp2(b)
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
            #[inline(always)]
            fn maximum(a: $t, b: $t) -> $t {
                // Equal operands differ at most in the sign of zero: `and` keeps +0.
                let tie = $t::from_bits(a.to_bits() & b.to_bits());
                let larger = if a > b { a } else { b };
                let larger = if a == b { tie } else { larger };
                if (a != a) | (b != b) { $t::NAN } else { larger }
            }
            #[inline(always)]
            fn minimum(a: $t, b: $t) -> $t {
                let tie = $t::from_bits(a.to_bits() | b.to_bits());
                let smaller = if a < b { a } else { b };
                let smaller = if a == b { tie } else { smaller };
                if (a != a) | (b != b) { $t::NAN } else { smaller }
            }
            #[inline(always)]
            fn fmax(a: $t, b: $t) -> $t {
                let tie = $t::from_bits(a.to_bits() & b.to_bits());
                let larger = if a > b { a } else if a == b { tie } else { b };
                if b != b { a } else { larger }
            }
            #[inline(always)]
            fn fmin(a: $t, b: $t) -> $t {
                let tie = $t::from_bits(a.to_bits() | b.to_bits());
                let smaller = if a < b { a } else if a == b { tie } else { b };
                if b != b { a } else { smaller }
            }
            #[inline(always)]
            fn sign(a: $t) -> $t {
                let positive = if a > 0.0 { 1.0 } else { 0.0 };
                if a < 0.0 { -1.0 } else { positive }
            }
            #[inline(always)]
            fn relu(a: $t) -> $t {
                let positive = if a > 0.0 { a } else { 0.0 };
                if a != a { $t::NAN } else { positive }
            }
            #[inline(always)]
            fn sqrt(a: $t) -> $t { a.sqrt() }
            #[inline(always)]
            fn floor(a: $t) -> $t { a.floor() }
            #[inline(always)]
            fn ceil(a: $t) -> $t { a.ceil() }
            #[inline(always)]
            fn round(a: $t) -> $t { a.round_ties_even() }
            #[inline(always)]
            fn trunc(a: $t) -> $t { a.trunc() }
            $(#[inline(always)]
            fn $method(a: $t) -> $t { $function(a) })*
            $(#[inline(always)]
            fn $two(a: $t, b: $t) -> $t { $binary(a, b) })*
        }
    };
}

reals!(f32, math::trig::TRIG_BOUND_F32, math::inline::single::TRIG_NEAR, math::trig_reduce::fmod_f32, exp = math::inline::single::exp, expm1 = math::exp::expm1_f32,
    log = math::inline::single::log, log1p = math::log::log1p_f32, tanh = math::inline::single::tanh,
    sigmoid = math::inline::single::sigmoid, silu = math::inline::single::silu, gelu_tanh = math::inline::single::gelu_tanh,
    gelu = math::erf::gelu_f32, erf = math::inline::single::erf, sin = math::trig::sin_f32, cos = math::trig::cos_f32,
    tan = math::trig::tan_f32, sin_small = math::trig::sin_f32_small, cos_small = math::trig::cos_f32_small,
    sin_near = math::inline::single::sin_near, cos_near = math::inline::single::cos_near,
    tan_small = math::trig::tan_f32_small, exp2 = math::exp::exp2_f32, log2 = math::log::log2_f32,
    log10 = math::log::log10_f32, cbrt = math::invtrig::cbrt_f32, asin = math::invtrig::asin_f32,
    acos = math::invtrig::acos_f32, atan = math::invtrig::atan_f32, sinh = math::hyper::sinh_f32,
    cosh = math::hyper::cosh_f32, asinh = math::hyper::asinh_f32, acosh = math::hyper::acosh_f32,
    atanh = math::hyper::atanh_f32, erfc = math::erf::erfc_f32, log1pexp = math::hyper::log1pexp_f32;
    pow = math::pow::pow_f32, hypot = math::invtrig::hypot_f32, atan2 = math::invtrig::atan2_f32,
    logaddexp = math::hyper::logaddexp_f32, logaddexp2 = math::hyper::logaddexp2_f32);
reals!(f64, math::trig::TRIG_BOUND_F64, math::trig::TRIG_BOUND_F64, math::trig_reduce::fmod_f64, exp = math::inline::double::exp, expm1 = math::exp::expm1_f64,
    log = math::inline::double::log, log1p = math::log::log1p_f64, tanh = math::inline::double::tanh,
    sigmoid = math::inline::double::sigmoid, silu = math::inline::double::silu, gelu_tanh = math::inline::double::gelu_tanh,
    gelu = math::erf::gelu_f64, erf = math::erf_parts::erf, sin = math::trig::sin_f64, cos = math::trig::cos_f64,
    tan = math::trig::tan_f64, sin_small = math::inline::double::sin_near, cos_small = math::inline::double::cos_near,
    sin_near = math::inline::double::sin_near, cos_near = math::inline::double::cos_near,
    tan_small = math::trig::tan_f64_small, exp2 = math::exp::exp2_f64, log2 = math::log::log2_f64,
    log10 = math::log::log10_f64, cbrt = math::invtrig::cbrt_f64, asin = math::invtrig::asin_f64,
    acos = math::invtrig::acos_f64, atan = math::invtrig::atan_f64, sinh = math::hyper::sinh_f64,
    cosh = math::hyper::cosh_f64, asinh = math::hyper::asinh_f64, acosh = math::hyper::acosh_f64,
    atanh = math::hyper::atanh_f64, erfc = math::erf::erfc_f64, log1pexp = math::hyper::log1pexp_f64;
    pow = math::pow::pow_f64, hypot = math::invtrig::hypot_f64, atan2 = math::invtrig::atan2_f64,
    logaddexp = math::hyper::logaddexp_f64, logaddexp2 = math::hyper::logaddexp2_f64);

/// Arithmetic of the two complex types.
pub(crate) trait Cplx: Copy {
    const ZERO: Self;
    const ONE: Self;
    type Part;
    fn mul(a: Self, b: Self) -> Self;
    fn div(a: Self, b: Self) -> Self;
    fn pow(a: Self, b: Self) -> Self;
    fn truth(a: Self) -> bool;
    fn lerp(a: Self, end: Self, weight: Self) -> Self;
    fn remainder(a: Self, b: Self) -> Self;
    fn modulus(a: Self) -> Self::Part;
    fn angle(a: Self) -> Self::Part;
    fn real(a: f64) -> Self;
    fn logaddexp(a: Self, b: Self) -> Self;
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
            type Part = $t;
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
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
            fn truth(a: Self) -> bool { (a.re != 0.0) | (a.im != 0.0) }
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
    sigmoid = math::complex::sigmoid_c64; mul = math::complex::mul_c64, div = math::complex::div_c64,
    pow = math::complex::pow_c64);
complexes!(f64, modulus = math::complex::abs_c128, angle = math::complex::angle_c128,
    sgn = math::complex::sgn_c128, log2 = math::complex::log2_c128, log10 = math::complex::log10_c128,
    asin = math::complex::asin_c128, acos = math::complex::acos_c128, atan = math::complex::atan_c128,
    sinh = math::complex::sinh_c128, cosh = math::complex::cosh_c128, asinh = math::complex::asinh_c128,
    acosh = math::complex::acosh_c128, atanh = math::complex::atanh_c128, sqrt = math::complex::sqrt_c128, rsqrt = math::complex::rsqrt_c128,
    reciprocal = math::complex::reciprocal_c128, exp = math::complex::exp_c128, expm1 = math::complex::expm1_c128,
    log = math::complex::log_c128, log1p = math::complex::log1p_c128, sin = math::complex::sin_c128,
    cos = math::complex::cos_c128, tan = math::complex::tan_c128, tanh = math::complex::tanh_c128,
    sigmoid = math::complex::sigmoid_c128; mul = math::complex::mul_c128, div = math::complex::div_c128,
    pow = math::complex::pow_c128);

/// Canonicalization of arithmetic results: every NaN becomes the canonical quiet NaN of its type, because payloads
/// depend on operand order in compiled code and so can't be guaranteed.
pub(crate) trait Canonical {
    /// Whether the result of a reduction over such elements depends on their order.
    const ORDER_MATTERS: bool;
    type Magnitude: Copy + Ord + Default;
    const INFINITY_MAGNITUDE: Self::Magnitude;
    fn canonical(self) -> Self;
    /// A number that increases with the magnitude: 0 for zeros, above [`Canonical::INFINITY_MAGNITUDE`] for NaNs. `()`
    /// for types without NaNs and negative zeros, and for complex numbers.
    fn magnitude(self) -> Self::Magnitude;
    /// Whether no element is a NaN or a negative zero. Such elements are equal only if their bits are.
    fn are_ordinary(all: &[Self]) -> bool
    where
        Self: Sized;
}

macro_rules! already_canonical {
    ($($t:ty),*) => {$(
        impl Canonical for $t {
            const ORDER_MATTERS: bool = false;
            type Magnitude = ();
            const INFINITY_MAGNITUDE: () = ();
            #[inline(always)]
            fn canonical(self) -> $t { self }
            #[inline(always)]
            fn magnitude(self) {}
            #[inline(always)]
            fn are_ordinary(_: &[$t]) -> bool { true }
        }
    )*};
}
already_canonical!(bool, u8, i8, i16, i32, i64);

macro_rules! canonical_nan {
    ($($t:ident $bits:ident),*) => {$(
        impl Canonical for $t {
            const ORDER_MATTERS: bool = true;
            type Magnitude = $bits;
            const INFINITY_MAGNITUDE: $bits = $t::INFINITY.to_bits() << 1;
            #[inline(always)]
            fn magnitude(self) -> $bits { self.to_bits() << 1 }
            #[inline(always)]
            fn canonical(self) -> $t {
                // Works on the bits: the compiler may choose any payload for a NaN that results from arithmetic.
                let magnitude = self.to_bits() & !(-0.0 as $t).to_bits();
                if magnitude > $t::INFINITY.to_bits() { $t::NAN } else { self }
            }
            #[inline(always)]
            fn are_ordinary(all: &[$t]) -> bool {
                // Rotating the sign into the lowest bit, inverting it and subtracting 1 maps NaNs and -0 above
                // infinity, and all other numbers to at most infinity.
                let order = |x: $t| (x.to_bits().rotate_left(1) ^ 1).wrapping_sub(1);
                all.iter().fold(0, |most, x| order(*x).max(most)) <= order($t::INFINITY)
            }
        }
        impl Canonical for Complex<$t> {
            const ORDER_MATTERS: bool = true;
            type Magnitude = ();
            const INFINITY_MAGNITUDE: () = ();
            #[inline(always)]
            fn magnitude(self) {}
            #[inline(always)]
            fn canonical(self) -> Self { Complex::new(self.re.canonical(), self.im.canonical()) }
            #[inline(always)]
            fn are_ordinary(all: &[Self]) -> bool { all.iter().all(|x| <$t>::are_ordinary(&[x.re, x.im])) }
        }
    )*};
}
canonical_nan!(f32 u32, f64 u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldexp_rounds_once_from_end_to_end() {
        let least = f32::from_bits(1);
        assert_eq!(Real::ldexp(least, 276.0f32), 127f32.exp2());
        assert_eq!(Real::ldexp(f32::MAX, -276.0f32), 2.0 * least);
        assert_eq!(Real::ldexp(f32::MAX, -278.0f32), 0.0);
        // Half-way results round to even; with two roundings they would not.
        for (x, half) in [(1.0f32, 0.0f32), (3.0, 2.0), (5.0, 2.0), (-7.0, -4.0)] {
            assert_eq!(Real::ldexp(x * least, -1.0f32), half * least, "{x}");
            assert_eq!(Real::ldexp(x, -150.0f32), half * least, "{x}");
        }
        assert_eq!(Real::ldexp(f64::from_bits(3), 2097.0), 1.5 * 1024f64.exp2() / 2.0);
        assert_eq!(Real::ldexp(0.0f64, 1e9), 0.0);
        assert!(f64::is_nan(Real::ldexp(0.0f64, f64::INFINITY)));
        assert!(f32::is_nan(Real::ldexp(1.0f32, f32::NAN)));
        assert_eq!(Real::ldexp(f32::INFINITY, -1e9f32), f32::INFINITY);
    }

    #[test]
    fn narrow_multiples_wrap_their_magnitude() {
        assert_eq!((Int::lcm(-15i8, 10), Int::lcm(25i8, 6), Int::lcm(0i8, 6)), (30, -106, 0));
        assert_eq!(Int::lcm(100u8, 3), 44);
        assert_eq!(Int::lcm(i16::MIN, i16::MIN), i16::MIN);
        assert_eq!(Int::lcm(65536i32, 65537), 65536);
    }

    #[test]
    fn heaviside_of_nan_is_zero() {
        let steps = [f32::NAN, -1.0, -0.0, 2.0].map(|x| Real::heaviside(x, 0.5));
        assert_eq!(steps, [0.0, 0.0, 0.5, 1.0]);
    }
}
