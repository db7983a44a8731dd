//! Elementary functions of complex numbers.
//!
//! `NAME_c128` takes `Complex<f64>`; `NAME_c64` takes `Complex<f32>`, computes in double precision and rounds each part
//! once (except products, which compute in single precision). Signed zeros distinguish the sides of branch cuts.
//! Special values follow Annex G of the C standard; the sign of a zero that it leaves unspecified is unspecified here
//! too. Every NaN part is the canonical NaN.

use super::exp::expm1_f64;
use super::hyper::{asinh_f64, cosh_f64, sinh_f64};
use super::inline::double::{exp as exp_f64, log as log_f64, tanh as tanh_f64};
use super::invtrig::{atan2_f32, atan2_f64, hypot_f32, hypot_f64};
use super::log::log1p_f64;
use super::trig::{cos_f64, sin_f64, tan_f64};
use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, LN_2, LOG2_E, LOG10_E};

type C128 = Complex<f64>;
type C64 = Complex<f32>;

/// 2^500: the squares of numbers from 2^-500 to 2^500 neither overflow nor underflow.
const TWO_500: f64 = f64::from_bits((1023 + 500) << 52);
/// 2^600, and its logarithm.
const TWO_600: f64 = f64::from_bits((1023 + 600) << 52);
const LN_TWO_600: f64 = 415.88830833596717;
/// 2^100, a scaling factor for numbers close to the ends of the range.
const TWO_100: f64 = f64::from_bits((1023 + 100) << 52);
/// e^709, close to the largest finite power of e.
const E_709: f64 = 8.218407461554972e307;

#[inline(always)]
fn canonical(x: f64) -> f64 {
    if x.is_nan() { f64::NAN } else { x }
}

#[inline(always)]
fn pair(re: f64, im: f64) -> C128 {
    Complex::new(canonical(re), canonical(im))
}

#[inline(always)]
fn widen(z: C64) -> C128 {
    Complex::new(f64::from(z.re), f64::from(z.im))
}

#[inline(always)]
fn narrow(z: C128) -> C64 {
    let part = |x: f64| if x.is_nan() { f32::NAN } else { x as f32 };
    Complex::new(part(z.re), part(z.im))
}

/// `-i·z`, which converts a hyperbolic function of `times_i(z)` to the circular function of z.
#[inline(always)]
fn over_i(z: C128) -> C128 {
    pair(z.im, -z.re)
}

#[inline(always)]
fn times_i(z: C128) -> C128 {
    Complex::new(-z.im, z.re)
}

/// `(sum, rounding error)` of `a + b`.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// The product by the textbook formula; each operation rounds.
#[inline(always)]
pub(crate) fn mul_c128(a: C128, b: C128) -> C128 {
    pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

/// The quotient, computed in double precision; see [`div_c128`].
#[inline(always)]
pub(crate) fn div_c64(a: C64, b: C64) -> C64 {
    narrow(div_c128(widen(a), widen(b)))
}

/// The quotient by Smith's method: the larger part of the divisor is divided out first. Operands close to the ends of
/// the range are scaled to keep the sums in range. If the divisor is zero, each part of `a` is divided by zero.
#[inline(always)]
pub(crate) fn div_c128(a: C128, b: C128) -> C128 {
    let largest = if b.re.abs() >= b.im.abs() { b.re.abs() } else { b.im.abs() };
    let scale = if largest > TWO_500 { 1.0 / TWO_100 } else { 1.0 };
    let scale = if largest < 1.0 / TWO_500 { TWO_100 } else { scale };
    let (c, d) = (b.re * scale, b.im * scale);
    let level = c.abs() >= d.abs();
    let (large, small) = if level { (c, d) } else { (d, c) };
    let ratio = small / large;
    let den = large + small * ratio;
    // A huge dividend is halved, so that its sums stay in range; a subnormal one would lose a bit and needs no scaling.
    let huge = a.re.abs() > TWO_500 || a.im.abs() > TWO_500;
    let (half, double) = if huge { (0.5, 2.0) } else { (1.0, 1.0) };
    let (p, q) = if level { (a.re * half, a.im * half) } else { (a.im * half, a.re * half) };
    let re = (p + q * ratio) / den * (scale * double);
    let im = if level { q - p * ratio } else { p * ratio - q } / den * (scale * double);
    if largest == 0.0 { pair(a.re / b.re.abs(), a.im / b.re.abs()) } else { pair(re, im) }
}

/// 1/z.
#[inline(always)]
pub(crate) fn reciprocal_c128(z: C128) -> C128 {
    div_c128(Complex::new(1.0, 0.0), z)
}

/// |z|; infinite if either part is.
#[inline(always)]
pub(crate) fn abs_c64(z: C64) -> f32 {
    hypot_f32(z.re, z.im)
}

/// |z| without intermediate overflow; infinite if either part is.
#[inline(always)]
pub(crate) fn abs_c128(z: C128) -> f64 {
    hypot_f64(z.re, z.im)
}

/// The argument, in `[-π, π]`.
#[inline(always)]
pub(crate) fn angle_c64(z: C64) -> f32 {
    atan2_f32(z.im, z.re)
}

/// The argument, in `[-π, π]`.
#[inline(always)]
pub(crate) fn angle_c128(z: C128) -> f64 {
    atan2_f64(z.im, z.re)
}

/// z/|z|, and 0 for 0.
#[inline(always)]
pub(crate) fn sgn_c128(z: C128) -> C128 {
    let largest = if z.re.abs() >= z.im.abs() { z.re.abs() } else { z.im.abs() };
    let scale = if largest > TWO_500 { 1.0 / TWO_600 } else { 1.0 };
    let scale = if largest < 1.0 / TWO_500 { TWO_600 } else { scale };
    let (x, y) = (z.re * scale, z.im * scale);
    let length = hypot_f64(x, y);
    if length == 0.0 { Complex::new(0.0, 0.0) } else { pair(x / length, y / length) }
}

/// The principal square root; the real part is not negative.
#[inline(always)]
pub(crate) fn sqrt_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y.is_infinite() {
        return pair(f64::INFINITY, y);
    }
    if x.is_nan() {
        return pair(x, x);
    }
    if x == f64::INFINITY {
        return pair(x, if y.is_nan() { y } else { 0f64.copysign(y) });
    }
    if x == f64::NEG_INFINITY {
        return pair(if y.is_nan() { y } else { 0.0 }, f64::INFINITY.copysign(y));
    }
    if y.is_nan() {
        return pair(y, y);
    }
    let largest = x.abs().max(y.abs());
    if largest == 0.0 {
        return pair(0.0, y);
    }
    let (scale, unscale) = if largest > TWO_500 {
        (1.0 / TWO_100, f64::from_bits((1023 + 50) << 52))
    } else if largest < 1.0 / TWO_500 {
        (TWO_600, f64::from_bits((1023 - 300) << 52))
    } else {
        (1.0, 1.0)
    };
    let (x, y) = (x * scale, y * scale);
    let t = (x.abs() * 0.5 + hypot_f64(x, y) * 0.5).sqrt();
    let u = y / (t + t);
    let (re, im) = if x >= 0.0 { (t, u) } else { (u.abs(), t.copysign(y)) };
    pair(re * unscale, im * unscale)
}

/// 1/√z.
#[inline(always)]
pub(crate) fn rsqrt_c128(z: C128) -> C128 {
    reciprocal_c128(sqrt_c128(z))
}

/// unit·e^x·(c + i·s), where e^x may overflow although a product does not.
#[inline(always)]
fn exp_times(unit: f64, x: f64, c: f64, s: f64) -> C128 {
    let (power, rest) = if x > 709.0 { (exp_f64(x - 709.0), unit * E_709) } else { (exp_f64(x), unit) };
    pair(power * c * rest, power * s * rest)
}

/// e^z.
#[inline(always)]
pub(crate) fn exp_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return pair(exp_f64(x), y);
    }
    if !y.is_finite() && x == f64::NEG_INFINITY {
        return pair(0.0, 0.0);
    }
    if !y.is_finite() && x == f64::INFINITY {
        return pair(x, f64::NAN);
    }
    exp_times(1.0, x, cos_f64(y), sin_f64(y))
}

/// e^z - 1.
#[inline(always)]
pub(crate) fn expm1_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return pair(expm1_f64(x), y);
    }
    if x.abs() > 40.0 || !y.is_finite() {
        let e = exp_c128(z);
        return pair(e.re - 1.0, e.im);
    }
    // cos y = 1 - 2·sin²(y/2) avoids cancellation for small z.
    let half = sin_f64(y * 0.5);
    pair(expm1_f64(x).mul_add(cos_f64(y), -2.0 * half * half), exp_f64(x) * sin_f64(y))
}

/// ln |x + iy|, with a small relative error even where it is close to 0.
#[inline(always)]
fn log_abs(x: f64, y: f64) -> f64 {
    let (a, b) = (x.abs(), y.abs());
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    if large > TWO_500 {
        return log_f64(hypot_f64(a * 0.5, b * 0.5)) + LN_2;
    }
    if large < 1.0 / TWO_500 {
        return log_f64(hypot_f64(a * TWO_600, b * TWO_600)) - LN_TWO_600;
    }
    let square = large * large + small * small;
    if square > 0.5 && square < 3.0 { 0.5 * log1p_f64(squares(-1.0, large, small)) } else { log_f64(hypot_f64(a, b)) }
}

/// `c + a² + b²`, with the rounding errors of all steps.
#[inline(always)]
fn squares(c: f64, a: f64, b: f64) -> f64 {
    let (a2, b2) = (a * a, b * b);
    let lows = a.mul_add(a, -a2) + b.mul_add(b, -b2);
    let (sum, e1) = two_sum(c, a2);
    let (sum, e2) = two_sum(sum, b2);
    sum + (e1 + e2 + lows)
}

/// ln z, with the imaginary part in `[-π, π]`.
#[inline(always)]
pub(crate) fn log_c128(z: C128) -> C128 {
    pair(log_abs(z.re, z.im), atan2_f64(z.im, z.re))
}

/// The logarithm to base 2.
#[inline(always)]
pub(crate) fn log2_c128(z: C128) -> C128 {
    let w = log_c128(z);
    pair(w.re * LOG2_E, w.im * LOG2_E)
}

/// The logarithm to base 10.
#[inline(always)]
pub(crate) fn log10_c128(z: C128) -> C128 {
    let w = log_c128(z);
    pair(w.re * LOG10_E, w.im * LOG10_E)
}

/// ln(1 + z).
#[inline(always)]
pub(crate) fn log1p_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    let angle = atan2_f64(y, 1.0 + x);
    // |1 + z|² - 1 = 2x + x² + y².
    let excess = squares(2.0 * x, x, y);
    let re = if excess > -0.5 && excess < 2.0 { 0.5 * log1p_f64(excess) } else { log_abs(1.0 + x, y) };
    pair(re, angle)
}

/// The hyperbolic sine.
#[inline(always)]
pub(crate) fn sinh_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return pair(sinh_f64(x), y);
    }
    if !y.is_finite() {
        return pair(if x == 0.0 || x.is_infinite() { x } else { f64::NAN }, f64::NAN);
    }
    let (s, c) = (sin_f64(y), cos_f64(y));
    if x.abs() > 40.0 {
        return exp_times(0.5, x.abs(), c * x.signum(), s);
    }
    pair(sinh_f64(x) * c, cosh_f64(x) * s)
}

/// The hyperbolic cosine.
#[inline(always)]
pub(crate) fn cosh_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return pair(cosh_f64(x), y * 1f64.copysign(x));
    }
    if !y.is_finite() {
        return pair(if x.is_infinite() { f64::INFINITY } else { f64::NAN }, if x == 0.0 { x } else { f64::NAN });
    }
    let (s, c) = (sin_f64(y), cos_f64(y));
    if x.abs() > 40.0 {
        return exp_times(0.5, x.abs(), c, s * x.signum());
    }
    pair(cosh_f64(x) * c, sinh_f64(x) * s)
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return pair(tanh_f64(x), y);
    }
    if x.is_infinite() {
        let sign = if y.is_finite() { sin_f64(y) * cos_f64(y) } else { y };
        return pair(1f64.copysign(x), 0f64.copysign(sign));
    }
    if x == 0.0 || !y.is_finite() {
        return pair(if x == 0.0 { x } else { f64::NAN }, tan_f64(y));
    }
    if x.abs() > 22.0 {
        // Here tanh x is 1, and the imaginary part is 4·sin y·cos y·e^(-2|x|).
        let e = exp_f64(-x.abs());
        return pair(1f64.copysign(x), 4.0 * sin_f64(y) * cos_f64(y) * e * e);
    }
    // Kahan: with t = tan y and s = sinh x, one denominator without cancellation.
    let (t, s) = (tan_f64(y), sinh_f64(x));
    let beta = t.mul_add(t, 1.0);
    let rho = s.mul_add(s, 1.0).sqrt();
    let den = (beta * s).mul_add(s, 1.0);
    pair(beta * rho * s / den, t / den)
}

/// The sine.
#[inline(always)]
pub(crate) fn sin_c128(z: C128) -> C128 {
    over_i(sinh_c128(times_i(z)))
}

/// The cosine.
#[inline(always)]
pub(crate) fn cos_c128(z: C128) -> C128 {
    cosh_c128(times_i(z))
}

/// The tangent.
#[inline(always)]
pub(crate) fn tan_c128(z: C128) -> C128 {
    over_i(tanh_c128(times_i(z)))
}

/// Whether a part is so large that the inverse functions equal their logarithmic asymptotes.
#[inline(always)]
fn is_large(z: C128) -> bool {
    z.re.abs() > TWO_500 || z.im.abs() > TWO_500
}

/// The arc sine, after Kahan: from √(1 - z) and √(1 + z), in sums without cancellation.
#[inline(always)]
pub(crate) fn asin_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if is_large(z) {
        return pair(atan2_f64(x, y.abs()), (log_abs(x, y) + LN_2).copysign(y));
    }
    if x == 0.0 && y.is_nan() {
        return pair(x, y);
    }
    let a = sqrt_c128(Complex::new(1.0 - x, -y));
    let b = sqrt_c128(Complex::new(1.0 + x, y));
    pair(atan2_f64(x, a.re * b.re - a.im * b.im), asinh_f64(a.re * b.im - a.im * b.re))
}

/// The arc cosine, after Kahan as [`asin_c128`].
#[inline(always)]
pub(crate) fn acos_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if is_large(z) {
        return pair(atan2_f64(y.abs(), x), -(log_abs(x, y) + LN_2).copysign(y));
    }
    if x == 0.0 && y.is_nan() {
        return pair(FRAC_PI_2, y);
    }
    let a = sqrt_c128(Complex::new(1.0 - x, -y));
    let b = sqrt_c128(Complex::new(1.0 + x, y));
    pair(2.0 * atan2_f64(a.re, b.re), asinh_f64(b.re * a.im - b.im * a.re))
}

/// The inverse hyperbolic cosine, after Kahan as [`asin_c128`]; the real part is not negative.
#[inline(always)]
pub(crate) fn acosh_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if is_large(z) {
        return pair(log_abs(x, y) + LN_2, atan2_f64(y, x));
    }
    if x == 0.0 && y.is_nan() {
        return pair(y, FRAC_PI_2);
    }
    let a = sqrt_c128(Complex::new(x - 1.0, y));
    let b = sqrt_c128(Complex::new(x + 1.0, y));
    pair(asinh_f64(a.re * b.re + a.im * b.im), 2.0 * atan2_f64(a.im, b.re))
}

/// The inverse hyperbolic sine.
#[inline(always)]
pub(crate) fn asinh_c128(z: C128) -> C128 {
    over_i(asin_c128(times_i(z)))
}

/// The inverse hyperbolic tangent.
#[inline(always)]
pub(crate) fn atanh_c128(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    let (a, b) = (x.abs(), y.abs());
    if is_large(z) {
        let re = if a.is_infinite() || b.is_infinite() { 0.0 } else { reciprocal_c128(z).re };
        let im = if re.is_nan() || y.is_nan() { f64::NAN } else { FRAC_PI_2.copysign(y) };
        return pair(re.copysign(x), im);
    }
    if x == 0.0 && y.is_nan() {
        return pair(x, y);
    }
    let re = if a == 1.0 && b < 1.0 / TWO_100 {
        0.5 * (LN_2 - log_f64(b))
    } else {
        0.25 * log1p_f64(4.0 * a / ((1.0 - a) * (1.0 - a) + b * b))
    };
    pair(re.copysign(x), 0.5 * atan2_f64(2.0 * y, (1.0 - a) * (1.0 + a) - b * b))
}

/// The arc tangent.
#[inline(always)]
pub(crate) fn atan_c128(z: C128) -> C128 {
    over_i(atanh_c128(times_i(z)))
}

/// a^b as e^(b·ln a). Any number to the power of 0 is 1. 0 to a power is 0 if the exponent's real part is positive, has
/// an infinite modulus if it is negative, and is NaN if it is 0, where the modulus is undefined.
#[inline(always)]
pub(crate) fn pow_c128(a: C128, b: C128) -> C128 {
    if b.re == 0.0 && b.im == 0.0 {
        return Complex::new(1.0, 0.0);
    }
    if a.re == 0.0 && a.im == 0.0 {
        let re = if b.re > 0.0 {
            0.0
        } else if b.re < 0.0 {
            f64::INFINITY
        } else {
            f64::NAN
        };
        return Complex::new(re, if b.re > 0.0 { 0.0 } else { f64::NAN });
    }
    let log = log_c128(a);
    // A real exponent multiplies the parts one by one: its zero imaginary part times an infinite logarithm would be
    // NaN.
    exp_c128(if b.im == 0.0 { Complex::new(b.re * log.re, b.re * log.im) } else { mul_c128(b, log) })
}

/// a^b; see [`pow_c128`].
#[inline(always)]
pub(crate) fn pow_c64(a: C64, b: C64) -> C64 {
    narrow(pow_c128(widen(a), widen(b)))
}

/// 1/(1 + e^(-z)).
#[inline(always)]
pub(crate) fn sigmoid_c128(z: C128) -> C128 {
    // Uses the exponential that cannot overflow.
    if z.re < 0.0 {
        let e = exp_c128(z);
        div_c128(e, Complex::new(1.0 + e.re, e.im))
    } else {
        let e = exp_c128(Complex::new(-z.re, -z.im));
        reciprocal_c128(Complex::new(1.0 + e.re, e.im))
    }
}

/// The functions of `Complex<f32>` that compute in double precision and round once.
macro_rules! single_precision {
    ($($single:ident = $double:ident;)*) => {$(
        #[doc = concat!("See [`", stringify!($double), "`].")]
        #[inline(always)]
        pub(crate) fn $single(z: C64) -> C64 {
            narrow($double(widen(z)))
        }
    )*};
}

single_precision! {
    reciprocal_c64 = reciprocal_c128;
    sgn_c64 = sgn_c128;
    sqrt_c64 = sqrt_c128;
    rsqrt_c64 = rsqrt_c128;
    exp_c64 = exp_c128;
    expm1_c64 = expm1_c128;
    log_c64 = log_c128;
    log2_c64 = log2_c128;
    log10_c64 = log10_c128;
    log1p_c64 = log1p_c128;
    sinh_c64 = sinh_c128;
    cosh_c64 = cosh_c128;
    tanh_c64 = tanh_c128;
    sin_c64 = sin_c128;
    cos_c64 = cos_c128;
    tan_c64 = tan_c128;
    asin_c64 = asin_c128;
    acos_c64 = acos_c128;
    acosh_c64 = acosh_c128;
    asinh_c64 = asinh_c128;
    atanh_c64 = atanh_c128;
    atan_c64 = atan_c128;
    sigmoid_c64 = sigmoid_c128;
}

#[cfg(test)]
mod tests;
