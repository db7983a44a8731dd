//! The functions of single precision that compiled loops take in: `exp`, `log`, `tanh`, the logistic sigmoid and what is
//! made of it, sine and cosine.
//!
//! They are written over [`Lane`], with as few operations as their accuracy allows: the time of a loop is that of its
//! arithmetic here. Guarantees: the largest errors that their docs state, which were measured over all 2^32 arguments
//! (`docs/accuracy.md`); the same bits on every CPU level and in compiled loops. Does not: serve double precision; the
//! functions beside them in `exp`, `log` and `hyper` do.

use super::lane::{Lane, ROUND};
use std::f32::consts::{FRAC_2_PI, LOG2_E};

/// `ln 2` cut to 15 bits, so that its product with an exponent is exact, and the rest of it.
const LN2_HI: f32 = f32::from_bits(0x3f31_7200);
const LN2_LO: f32 = f32::from_bits(0x35bf_be8e);

/// `(e^r - 1 - r) / r²` for `|r| ≤ 0.3468`, lowest first: within `2^-28.2` of `e^r`.
const EXP: [f32; 5] = [0.49999994, 0.16666521, 0.04166826, 0.008368666, 0.0013821173];

/// The polynomial with coefficients `c`, lowest first.
#[inline(always)]
fn horner<T: Lane, const N: usize>(x: T, c: [f32; N]) -> T {
    let mut v = x.c(c[N - 1]);
    for i in (0..N - 1).rev() {
        v = v.fma(x, x.c(c[i]));
    }
    v
}

/// `e^x`. Largest error 0.90 ulp.
///
/// ±0 give 1, +∞ gives +∞, -∞ gives +0; too large a result is +∞, and the subnormal ones are rounded like the others.
#[inline(always)]
pub(crate) fn exp<T: Lane>(x: T) -> T {
    // Beyond the ends the result is 0 or +∞. With whole k, x = k·ln 2 + r and |r| ≤ ln 2 / 2.
    let y = x.at_most(89.0).at_least(-104.0);
    let t = y.fma(y.c(LOG2_E), y.c(ROUND));
    let k = t - y.c(ROUND);
    let r = k.fnma(k.c(LN2_LO), k.fnma(k.c(LN2_HI), y));
    // 1 + r·(1 + r·q): each step halves what the one before it rounded, or more.
    let one = x.c(1.0);
    let v = horner(r, EXP).fma(r, one).fma(r, one);
    v.scaled(k, t).nan_of(x)
}

/// `(ln(1 + f) - f) / f²` for `f` from `√½ - 1` to `√2 - 1`, lowest first: within `2^-27.9` of the logarithm.
const LN: [f32; 9] =
    [-0.49999988, 0.33333325, -0.25001603, 0.20001982, -0.16608645, 0.14181645, -0.13246273, 0.1290602, -0.07615565];

/// The natural logarithm. Largest error 0.99 ulp.
///
/// ±0 give -∞, 1 gives +0, +∞ gives +∞, numbers below 0 give NaN.
#[inline(always)]
pub(crate) fn log<T: Lane>(x: T) -> T {
    let (k, m) = x.split();
    let f = m - x.c(1.0);
    let f2 = f * f;
    let f4 = f2 * f2;
    let pair = |i: usize| f.fma(f.c(LN[i + 1]), f.c(LN[i]));
    let low = f2.fma(pair(2), pair(0));
    let high = f2.fma(pair(6), pair(4));
    let small = f2 * f4.fma(f4.fma(f.c(LN[8]), high), low);
    // k·ln 2 + f, with what the sum lost among the small terms.
    let head = k * k.c(LN2_HI);
    let h = head + f;
    let lost = f - (h - head);
    let v = h + (lost + k.fma(k.c(LN2_LO), small));
    v.log_ends(x)
}

/// `2^r` for `|r| ≤ ½`, lowest first: within `2^-23.3`, which is enough where it serves.
const EXP2: [f32; 6] = [1.0, f32::from_bits(0x3f31_7215), 0.24022247, 0.055507116, 0.009671294, 0.0013269141];

/// `(tanh a / a - 1) / a²` in `a²` for `a` up to [`NEAR`], lowest first: within `2^-27.1` of `tanh a`.
const TANH: [f32; 5] = [-0.3333326, 0.13330829, -0.053687904, 0.020469, -0.00551468];
/// From here on the hyperbolic tangent goes through the exponential.
const NEAR: f32 = 0.65;

/// The hyperbolic tangent. Largest error 1.60 ulp.
///
/// ±0 give ±0, ±∞ give ±1.
#[inline(always)]
pub(crate) fn tanh<T: Lane>(x: T) -> T {
    // Beyond 9.5 it rounds to 1. From NEAR on it is 1 - 2/(e^2a + 1), where what the quotient lost is halved or better.
    let a = x.abs().at_most(9.5);
    let twice = a.c(2.0 * LOG2_E);
    let t = a.fma(twice, a.c(ROUND));
    let k = t - a.c(ROUND);
    let r = a.fms(twice, k);
    let one = a.c(1.0);
    let far = one - a.c(2.0) / (horner(r, EXP2).scaled_near(k, t) + one);
    let z = a * a;
    let near = (a * z).fma(horner(z, TANH), a);
    near.or(a.less(a.c(NEAR)), far).signed(x).nan_of(x)
}

/// The logistic sigmoid of `x + lo` as `(v, k, t)`: it is `v·2^k`, and `t = k + ROUND`.
#[inline(always)]
fn logistic<T: Lane>(x: T, lo: Option<T>) -> (T, T, T) {
    // From 18 on it rounds to 1, and at -110 it is 0 also times its argument. With e^-x = 2^-k·p it is 2^k / (2^k + p): so
    // neither the denominator nor its reciprocal leaves the normal numbers.
    let y = x.at_most(18.0).at_least(-110.0);
    let t = y.fma(y.c(LOG2_E), y.c(ROUND));
    let k = t - y.c(ROUND);
    let r = k.fnma(k.c(LN2_LO), k.fnma(k.c(LN2_HI), y));
    let one = x.c(1.0);
    // p - 1 = e^-r - 1, with the signs of the odd powers turned.
    let [c0, c1, c2, c3, c4] = EXP;
    let g = (r * r).fms(horner(r, [c0, -c1, c2, -c3, c4]), r);
    let g = lo.map_or(g, |lo| lo.fnma(one + g, g));
    let p = one + g;
    let (larger, smaller) = one.scaled(k, t).ordered(p);
    let d = larger + smaller;
    // What the two sums lost.
    let rest = (smaller - (d - larger)) + (g - (p - one));
    let q = one / d;
    (q.fma(q.fnma(rest, q.fnma(d, one)), q), k, t)
}

/// The logistic sigmoid, `1 / (1 + e^-x)`. Largest error 0.97 ulp.
///
/// ±0 give ½, +∞ gives 1, -∞ gives +0, through the subnormal numbers.
#[inline(always)]
pub(crate) fn sigmoid<T: Lane>(x: T) -> T {
    let (v, k, t) = logistic(x, None);
    v.scaled(k, t).nan_of(x)
}

/// `x·v·2^k`, where that is 0 below `least`: rounded only once among the subnormal numbers. -∞ gives NaN, as the product
/// of the frameworks does.
#[inline(always)]
fn times<T: Lane>(x: T, least: f32, (v, k, t): (T, T, T)) -> T {
    let y = (x.at_least(least) * v).scaled(k, t);
    x.c(f32::NAN).or(x.less(x.c(f32::MIN)), y).nan_of(x)
}

/// `x·sigmoid(x)`. Largest error 1.73 ulp.
#[inline(always)]
pub(crate) fn silu<T: Lane>(x: T) -> T {
    times(x, -110.0, logistic(x, None))
}

/// `x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2`, which is `x·sigmoid(u)` with twice the argument of the hyperbolic
/// tangent as `u`. Largest error 1.96 ulp.
#[inline(always)]
pub(crate) fn gelu_tanh<T: Lane>(x: T) -> T {
    // u = b·(A + B·b²) in two parts, for an error of u becomes a relative error of the result. Beyond ±11 the sigmoid is
    // 0 or 1.
    let (a, a_lo) = (x.c(GELU_A.0), x.c(GELU_A.1));
    let (b, b_lo) = (x.c(GELU_B.0), x.c(GELU_B.1));
    let y = x.at_most(11.0).at_least(-11.0);
    let s = y * y;
    let s_lo = y.fms(y, s);
    let p = s * b;
    let w = a + p;
    let back = w - a;
    let lost = (a - (w - back)) + (p - back);
    let w_lo = s_lo.fma(b, s.fma(b_lo, lost + (s.fms(b, p) + a_lo)));
    let u = y * w;
    let u_lo = y.fma(w_lo, y.fms(w, u));
    times(x, -11.0, logistic(u, Some(u_lo)))
}

/// `2·√(2/π)` and 0.044715 times that, each with what rounding lost.
const GELU_A: (f32, f32) = (f32::from_bits(0x3fcc_422a), f32::from_bits(0xb342_bc9b));
const GELU_B: (f32, f32) = (f32::from_bits(0x3d92_2279), f32::from_bits(0x3124_d8b5));

/// The largest magnitude that [`sin_near`] and [`cos_near`] take: 255 quarter turns.
pub(crate) const TRIG_NEAR_F32: f32 = 400.0;

/// π/2 in three parts. The second has 16 bits, so that its product with a quotient below 2^8 is exact; the sum misses π/2
/// by less than 2^-65. None is negative, so that -0 stays what it is.
const TURN: [f32; 3] = [f32::from_bits(0x3fc9_0fda), f32::from_bits(0x33a2_2100), f32::from_bits(0x2b51_846a)];

/// `(1 - sin r / r) / r²`, within 2^-27.8 of the sine, and `(cos r - 1) / r²`, within 2^-32.9 of the cosine, both in `r²`
/// for `|r| ≤ π/4`, lowest first.
const SIN: [f32; 3] = [0.16666654, -0.008332106, 0.00019507883];
const COS: [f32; 4] = [-0.5, 0.041666646, -0.0013887308, 2.4432093e-05];

/// The sine of `x`, `turn` quarter turns on, for `|x| ≤` [`TRIG_NEAR_F32`].
#[inline(always)]
fn quarter<T: Lane>(x: T, turn: Option<f32>) -> T {
    // The quotient n, and the rest in [-π/4, π/4] as r - lo. All but the last of the differences are exact. The signs
    // are such that -0 gives -0.
    let t = x.fma(x.c(FRAC_2_PI), x.c(ROUND));
    let n = t - x.c(ROUND);
    let head = n.fnma(n.c(TURN[0]), x);
    let r = n.fnma(n.c(TURN[1]), head);
    let lo = n.fma(n.c(TURN[2]), n.fma(n.c(TURN[1]), r - head));
    // The square with what `lo` takes from it: the cosine feels both roundings.
    let s = r.fms(r, (r + r) * lo);
    let sin = r - (r * s).fma(horner(s, SIN), lo);
    let cos = horner(s, COS).fma(s, x.c(1.0));
    let quadrant = turn.map_or(t, |turn| t + x.c(turn));
    cos.or(quadrant.odd(), sin).turned(quadrant)
}

/// The sine, for `|x| ≤` [`TRIG_NEAR_F32`]. Largest error 0.88 ulp. ±0 give ±0, a NaN some NaN.
#[inline(always)]
pub(crate) fn sin_near<T: Lane>(x: T) -> T {
    quarter(x, None)
}

/// The cosine, for `|x| ≤` [`TRIG_NEAR_F32`]. Largest error 0.89 ulp. A NaN gives some NaN.
#[inline(always)]
pub(crate) fn cos_near<T: Lane>(x: T) -> T {
    quarter(x, Some(1.0))
}
