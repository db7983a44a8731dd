//! The error function and its complement.

use super::exp::{LN2_HI_F64, LN2_LO_F64, ROUND_F64};
use std::f64::consts::{LN_2, LOG2_E};

const SIGN: u64 = 1 << 63;

/// The cubic with the coefficients `c`, lowest first; `x2` is x². In halves, which shortens the chain of dependences.
#[inline(always)]
pub(super) fn poly4(x: f64, x2: f64, c: [f64; 4]) -> f64 {
    let [c0, c1, c2, c3] = c;
    x2.mul_add(x.mul_add(c3, c2), x.mul_add(c1, c0))
}

/// The polynomial of degree 7 with the coefficients `low` and `high`, lowest first; `x2` is x² and `x4` is x⁴.
#[inline(always)]
pub(super) fn poly8(x: f64, x2: f64, x4: f64, low: [f64; 4], high: [f64; 4]) -> f64 {
    x4.mul_add(poly4(x, x2, high), poly4(x, x2, low))
}

/// e^r - 1 - r for `|r| <= ln 2 / 2`: r²·u(r), u of degree 9, error 9e-18.
#[inline(always)]
fn exp_tail(r: f64) -> f64 {
    let r2 = r * r;
    let r4 = r2 * r2;
    let u = poly8(
        r,
        r2,
        r4,
        [0.5000000000000013, 0.166666666666667, 0.04166666666651439, 0.008333333333306988],
        [0.0013888888947317718, 0.0001984126991785908, 2.4801489602285836e-05, 2.7557215875235966e-06],
    );
    let u = (r4 * r4).mul_add(r.mul_add(2.5117995564527566e-08, 2.763141018161915e-07), u);
    r2 * u
}

/// erf x. Maximum error 0.54 ulp. erf(±0) = ±0, erf(±∞) = ±1.
///
/// x·p(x²)/q(x²) in double precision, p of degree 6 and q of degree 5 on `|x| <= 3.96`, relative error 2.0e-9; from there
/// on the result is 1.
#[inline(always)]
pub(crate) fn erf_f32(x: f32) -> f32 {
    let x = if x > 3.96 { 3.96 } else { x };
    let x = if x < -3.96 { -3.96 } else { x };
    let x = f64::from(x);
    let s = x * x;
    let p = s.mul_add(-1.3018860905299188e-08, 4.650159689066073e-06);
    let p = s.mul_add(p, 0.0003783034324734444);
    let p = s.mul_add(p, 0.003844774849667953);
    let p = s.mul_add(p, 0.054284123231138126);
    let p = s.mul_add(p, 0.18517756679526368);
    let p = s.mul_add(p, 1.1283791692669027);
    let q = s.mul_add(6.278407631325769e-05, 0.0013048381810261906);
    let q = s.mul_add(q, 0.015447821844718265);
    let q = s.mul_add(q, 0.11392179998731744);
    let q = s.mul_add(q, 0.49744275592494214);
    let q = s.mul_add(q, 1.0);
    let y = (x * p / q) as f32;
    if y.is_nan() { f32::NAN } else { y }
}

/// erf x. Maximum error MAXERF64 ulp. erf(±0) = ±0, erf(±∞) = ±1.
///
/// * `|x| < 0.875`: x + x·p(x²), p of degree 11, relative error 1.1e-17.
/// * else 1 - e^(-q(x)), q of degree 18 on `[0.875, 5.95]` approximating -ln erfc x; the error of the result is 3.5e-18.
///   From 5.93 on the result is 1.
#[inline(always)]
pub(crate) fn erf_f64(x: f64) -> f64 {
    let s = x * x;
    let s2 = s * s;
    let s4 = s2 * s2;
    let p = poly8(
        s,
        s2,
        s4,
        [0.11283791670974287, -0.026866170648918126, 0.005223977663834599, -0.000854832929086425],
        [0.00012055416141671373, -1.4927593375099342e-05, 1.649079391028496e-06, -1.6618562895404712e-07],
    );
    let p = (s4 * s4).mul_add(s.mul_add(-1.289310688275e-09, 1.591736574021158e-08), p);
    let p = s.mul_add(p, -0.3761263890318413);
    let p = s.mul_add(p, 0.1283791670955126);
    let near = x.mul_add(p, x);

    let a = x.abs();
    let a = if a > 5.95 { 5.95 } else { a };
    let a2 = a * a;
    let a4 = a2 * a2;
    let low = poly8(
        a,
        a2,
        a4,
        [0.10276479052984475, -0.019113401923399234, -0.0002283379726804979, 0.0017101366644877748],
        [-0.0005893562616473344, 8.76630011927468e-06, 9.034542525197044e-05, -5.387277481254377e-05],
    );
    let high = poly8(
        a,
        a2,
        a4,
        [1.9624872693552958e-05, -5.1926250892995955e-06, 1.0383078845830974e-06, -1.5674576523718242e-07],
        [1.740227084978456e-08, -1.3438359217511267e-09, 6.453305873221869e-11, -1.4513422504178125e-12],
    );
    let g = (a4 * a4).mul_add(high, low);
    let g = a.mul_add(g, 0.6366224372924144);
    let g = a.mul_add(g, 1.1283786217179665);
    // q = a·g + c is not rounded: with n from its approximation, -n·ln 2 - c is exact, and what is left is small.
    let c = 5.1004462875425816e-08;
    let shifted = a.mul_add(g, c).mul_add(-LOG2_E, ROUND_F64);
    let n = shifted - ROUND_F64;
    let r = a.mul_add(-g, n.mul_add(-LN2_HI_F64, -c));
    let r = n.mul_add(-LN2_LO_F64, r);
    let t = r + exp_tail(r);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let far = power.mul_add(-t, 1.0 - power);
    let far = f64::from_bits(far.to_bits() | x.to_bits() & SIGN);
    let y = if x.abs() < 0.875 { near } else { far };
    if x.is_nan() { f64::NAN } else { y }
}

/// erfc x. Maximum error 0.63 ulp. erfc(±0) = 1, erfc(∞) = 0, erfc(-∞) = 2.
///
/// e^(-x²)·p(|x|)/q(|x|) in double precision, p of degree 4 and q of degree 5 on `[0, 10.1]`, relative error 5.8e-9; the
/// other half line is 2 less that.
#[inline(always)]
pub(crate) fn erfc_f32(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let a = if a > 10.1 { 10.1 } else { a };
    let p = a.mul_add(0.032798484782048706, 0.22922819329797858);
    let p = a.mul_add(p, 0.7316238655817802);
    let p = a.mul_add(p, 1.2384292772882355);
    let p = a.mul_add(p, 1.0000000057388896);
    let q = a.mul_add(0.05813310194442266, 0.40632279272536687);
    let q = a.mul_add(q, 1.3254054085148308);
    let q = a.mul_add(q, 2.4022725136775294);
    let q = a.mul_add(q, 2.36680902315047);
    let q = a.mul_add(q, 1.0);
    // The square is exact. e^r: degree 6 on ±ln 2 / 2, relative error 1.9e-9.
    let shifted = (a * a).mul_add(-LOG2_E, ROUND_F64);
    let n = shifted - ROUND_F64;
    let r = n.mul_add(-LN_2, -(a * a));
    let t = r.mul_add(0.0013836745409060438, 0.008374898760402328);
    let t = r.mul_add(t, 0.041668231793173305);
    let t = r.mul_add(t, 0.16666419183899245);
    let t = r.mul_add(t, 0.4999999203167514);
    let t = r.mul_add(t, 1.0000000365418042);
    let t = r.mul_add(t, 1.0000000005589789);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let y = p / q * (t * power);
    let y = if x < 0.0 { 2.0 - y } else { y };
    let y = y as f32;
    if y.is_nan() { f32::NAN } else { y }
}

/// erfc x. Maximum error MAXERFC64 ulp. erfc(±0) = 1, erfc(∞) = 0, erfc(-∞) = 2.
///
/// e^(-x²)·(c + x·p(x)/q(x))/(c + x) for |x|, c = 0.5625, p of degree 10 and q of degree 11 on `[0, 27.5]`, relative error
/// 4.7e-19; the other half line is 2 less that. With this c the quotient is a correction of at most a fifth, so that its
/// rounding counts little; the sums and the division around it carry a second part.
#[inline(always)]
pub(crate) fn erfc_f64(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 27.5 { 27.5 } else { a };
    let a2 = a * a;
    let a4 = a2 * a2;
    let a8 = a4 * a4;
    let p = poly8(
        a,
        a2,
        a4,
        [0.36528671850877426, 0.7091312853456808, 0.6848727357060053, 0.4228303567963152],
        [0.18215063704712214, 0.056555272379532395, 0.012659202663964525, 0.0019792679397963807],
    );
    let high = a2.mul_add(4.836145146300618e-08, a.mul_add(1.0124997701649209e-05, 0.00019858010646902277));
    let p = a8.mul_add(high, p);
    let q = poly8(
        a,
        a2,
        a4,
        [1.0, 3.49043747784269, 5.702864819809304, 5.769384143453664],
        [4.025455501233996, 2.039878295171417, 0.7687699417145005, 0.21640783202838942],
    );
    let high = [0.04483853822397513, 0.006560102355716889, 0.000616249113101784, 2.862329686208004e-05];
    let q = a8.mul_add(poly4(a, a2, high), q);
    let correction = a * p / q;

    // The square in two parts, and -a² = n·ln 2 + r.
    let square_lo = a.mul_add(a, -a2);
    let shifted = a2.mul_add(-LOG2_E, ROUND_F64);
    let n = shifted - ROUND_F64;
    let r = n.mul_add(-LN2_LO_F64, n.mul_add(-LN2_HI_F64, -a2) - square_lo);
    let tail = exp_tail(r);

    // (c + correction)·(1 + r + tail) over c + a.
    let c = 0.5625;
    let top = c + correction;
    let top_lo = (c - top) + correction;
    let below = c + a;
    let part = below - c;
    let below_lo = (c - (below - part)) + (a - part);
    let inverse = 1.0 / below;
    let top_lo = top.mul_add(r, top.mul_add(tail, top_lo));
    let ratio = (top + top_lo) * inverse;
    let rest = ratio.mul_add(-below_lo, ratio.mul_add(-below, top) + top_lo);
    let y = rest.mul_add(inverse, ratio);
    // The power may lie below the normal numbers: 2^(n + 200) does not, and the last product rounds once.
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023 + 200) << 52);
    let y = y * power * f64::from_bits((1023 - 200) << 52);
    let y = if x < 0.0 { 2.0 - y } else { y };
    if x.is_nan() { f64::NAN } else { y }
}
