//! `x^y` with the special cases of C99.
//!
//! `x^y = e^(y·ln x)`, and an absolute error of the exponent becomes a relative error of the result, so the logarithm
//! needs additional bits, as many as the exponent has before the binary point. For `f32` the computation in `f64`
//! provides them; for `f64` the logarithm is a sum of two floats. The code has no branches, so a loop vectorizes; every
//! fused multiply-add is explicit, so that the bits are the same at every CPU level.

use super::exp::{LN2_HI_F64, LN2_LO_F64, ROUND_F64, pow2_f64, pow2_factors_f64, tail_f64};
use super::log::{SQRT_HALF_F64, TWO52, split_f64};

/// `log2(1 + f) / f` for `f` from `√½ - 1` to `√2 - 1`, degree 12: within `2^-35.8` of the logarithm.
const LOG2: [f64; 13] = [
    1.4426950408687065,
    -0.7213475208688501,
    0.4808983613952732,
    -0.36067367481792295,
    0.2885372934665701,
    -0.2404531659709921,
    0.20617535986481328,
    -0.1803005944339056,
    0.15876979311460337,
    -0.14315652352965144,
    0.14474853905399704,
    -0.14283909950120052,
    0.07736998540139263,
];

/// `2^r` for `|r| ≤ ½`, degree 6: within `2^-29.0`.
const EXP2: [f64; 7] = [
    1.0000000005538434,
    0.6931472057370401,
    0.2402264689014531,
    0.05550328779510227,
    0.009618489094135464,
    0.0013399930382974386,
    0.00015345768051164694,
];

/// `(atanh(s)/s - 1 - z/3) / z²` for `z = s²` up to `0.02945`, degree 7: within `2^-73.4` of `atanh(s)/s`.
const ATANH: [f64; 8] = [
    0.1999999999999999,
    0.142857142857219,
    0.11111111108901553,
    0.0909090942108441,
    0.07692279277979282,
    0.06668129831864854,
    0.05837937842630284,
    0.05990498057181762,
];

/// `x^y` with the special cases of C99. Largest error 0.55 ulp over 2·10^8 random arguments.
///
/// 1 to any power and any number to the power 0 are 1, including NaN; a negative number to a non-integral power is NaN.
#[inline(always)]
pub(crate) fn pow_f32(x: f32, y: f32) -> f32 {
    let a = x.abs();
    // Every f32, including the subnormal ones, is a normal f64.
    let wide = f64::from(a);
    let u = wide.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - SQRT_HALF_F64);
    let m = f64::from_bits((u & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF_F64));
    let k = f64::from_bits((u >> 52) | TWO52.to_bits()) - (TWO52 + 1023.0);
    let f = m - 1.0;
    let f2 = f * f;
    let f4 = f2 * f2;
    let c03 = f2.mul_add(f.mul_add(LOG2[3], LOG2[2]), f.mul_add(LOG2[1], LOG2[0]));
    let c47 = f2.mul_add(f.mul_add(LOG2[7], LOG2[6]), f.mul_add(LOG2[5], LOG2[4]));
    let c8b = f2.mul_add(f.mul_add(LOG2[11], LOG2[10]), f.mul_add(LOG2[9], LOG2[8]));
    let c8c = f4.mul_add(LOG2[12], c8b);
    let log = f.mul_add(f4.mul_add(f4.mul_add(c8c, c47), c03), k);
    let log = if a == 0.0 { f64::NEG_INFINITY } else { log };
    let log = if a == f32::INFINITY { f64::INFINITY } else { log };

    // 1^inf is 1.
    let e = if a == 1.0 { 0.0 } else { log * f64::from(y) };
    let e = if 130.0 < e { 130.0 } else { e };
    let e = if -160.0 > e { -160.0 } else { e };
    let t = e + ROUND_F64;
    let r = e - (t - ROUND_F64);
    let r2 = r * r;
    let p03 = r2.mul_add(r.mul_add(EXP2[3], EXP2[2]), r.mul_add(EXP2[1], EXP2[0]));
    let p46 = r2.mul_add(EXP2[6], r.mul_add(EXP2[5], EXP2[4]));
    let p = (r2 * r2).mul_add(p46, p03);
    let v = (p * pow2_f64(t.to_bits().wrapping_sub(ROUND_F64.to_bits()))) as f32;

    // Half of an odd number ends in .5, half of an even one in .0; from 2^24 on all numbers are even. Half of a
    // subnormal would round to an even number, so 1/4 replaces all smaller numbers (0 is handled at the end).
    let ya = if 16_777_216.0 < y.abs() { 16_777_216.0 } else { y.abs() };
    let ya = if 0.25 > ya { 0.25 } else { ya };
    let half = ya * 0.5;
    let end = (half - ((half + 8_388_608.0) - 8_388_608.0)).abs();
    let sign = if end == 0.5 { x.to_bits() & 0x8000_0000 } else { 0 };
    let v = f32::from_bits(v.to_bits() | sign);
    // A non-integral power of a negative finite number: such bases have the lowest bit patterns above -0.
    let negative = x.to_bits().wrapping_sub(0x8000_0001) < 0x7f7f_ffff;
    let v = if end != 0.0 && end != 0.5 && negative { f32::NAN } else { v };
    let v = if x.is_nan() || y.is_nan() { f32::NAN } else { v };
    let v = if x == 1.0 { 1.0 } else { v };
    if y == 0.0 { 1.0 } else { v }
}

/// `ln x` of a positive finite `x` as an unevaluated sum of two floats, within about `2^-66` of it.
#[inline(always)]
fn ln_two(x: f64) -> (f64, f64) {
    const THIRD: f64 = 1.0 / 3.0;
    // 1/3 - THIRD
    const THIRD_LO: f64 = 1.850371707708594e-17;
    let (k, m) = split_f64(x);
    // ln m = 2·atanh(s) with s = f / (2 + f)
    let f = m - 1.0;
    let d = 2.0 + f;
    let d_lo = f - (d - 2.0);
    let recip = 1.0 / d;
    let s = f * recip;
    let s_lo = recip * (-s).mul_add(d_lo, (-s).mul_add(d, f));
    // z = s²
    let z = s * s;
    let z_lo = (s + s).mul_add(s_lo, s.mul_add(s, -z));
    let z2 = z * z;
    let u03 = z2.mul_add(z.mul_add(ATANH[3], ATANH[2]), z.mul_add(ATANH[1], ATANH[0]));
    let u47 = z2.mul_add(z.mul_add(ATANH[7], ATANH[6]), z.mul_add(ATANH[5], ATANH[4]));
    let u = (z2 * z2).mul_add(u47, u03);
    // t = 1/3 + z·u
    let zu = z * u;
    let zu_lo = z_lo.mul_add(u, z.mul_add(u, -zu));
    let t = THIRD + zu;
    let t_lo = (zu - (t - THIRD)) + (THIRD_LO + zu_lo);
    // w = z·t
    let w = z * t;
    let w_lo = z_lo.mul_add(t, z.mul_add(t_lo, z.mul_add(t, -w)));
    // ln m = 2s + 2s·w
    let s2 = s + s;
    let v = s2 * w;
    let v_lo = s2.mul_add(w_lo, (s_lo + s_lo).mul_add(w, s2.mul_add(w, -v)));
    let g = s2 + v;
    let g_lo = (v - (g - s2)) + ((s_lo + s_lo) + v_lo);
    // + k·ln 2
    let head = k * LN2_HI_F64;
    let h = head + g;
    let h_lo = k.mul_add(LN2_LO_F64, (g - (h - head)) + g_lo);
    let sum = h + h_lo;
    (sum, h_lo - (sum - h))
}

/// `x^y` with the special cases of C99. Largest error 0.77 ulp over 3·10^7 random arguments.
///
/// 1 to any power and any number to the power 0 are 1, including NaN; a negative number to a non-integral power is NaN.
#[inline(always)]
pub(crate) fn pow_f64(x: f64, y: f64) -> f64 {
    let a = x.abs();
    let (log, log_lo) = ln_two(a);
    let log = if a == 0.0 { f64::NEG_INFINITY } else { log };
    let log = if a == f64::INFINITY { f64::INFINITY } else { log };

    let e = log * y;
    let e_lo = log_lo.mul_add(y, log.mul_add(y, -e));
    // 1^inf is 1. Outside the clamp the result overflows or underflows, and the low part may be a NaN.
    let inside = e.abs() < 746.0;
    let e_lo = if inside { e_lo } else { 0.0 };
    let e = if a == 1.0 { 0.0 } else { e };
    let e = if 746.0 < e { 746.0 } else { e };
    let e = if -746.0 > e { -746.0 } else { e };
    let t = e.mul_add(std::f64::consts::LOG2_E, ROUND_F64);
    let n = t - ROUND_F64;
    let hi = n.mul_add(-LN2_HI_F64, e);
    let lo = n.mul_add(-LN2_LO_F64, e_lo);
    let r = hi + lo;
    let rest = lo - (r - hi);
    let c = tail_f64(r) + rest.mul_add(r, rest);
    let h = 1.0 + r;
    let (s1, s2) = pow2_factors_f64(t.to_bits().wrapping_sub(ROUND_F64.to_bits()));
    let v = (h + ((r - (h - 1.0)) + c)) * s1 * s2;

    // Half of an odd number ends in .5, half of an even one in .0; from 2^53 on all numbers are even. Half of a
    // subnormal would round to an even number, so 1/4 replaces all smaller numbers (0 is handled at the end).
    let ya = if 2.0 * TWO52 < y.abs() { 2.0 * TWO52 } else { y.abs() };
    let ya = if 0.25 > ya { 0.25 } else { ya };
    let half = ya * 0.5;
    let end = (half - ((half + TWO52) - TWO52)).abs();
    let sign = if end == 0.5 { x.to_bits() & 0x8000_0000_0000_0000 } else { 0 };
    let v = f64::from_bits(v.to_bits() | sign);
    // A non-integral power of a negative finite number: such bases have the lowest bit patterns above -0.
    let negative = x.to_bits().wrapping_sub(0x8000_0000_0000_0001) < 0x7fef_ffff_ffff_ffff;
    let v = if end != 0.0 && end != 0.5 && negative { f64::NAN } else { v };
    let v = if x.is_nan() || y.is_nan() { f64::NAN } else { v };
    let v = if x == 1.0 { 1.0 } else { v };
    if y == 0.0 { 1.0 } else { v }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ulps;
    use super::*;

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    #[test]
    fn special_values() {
        for (x, y, want) in [
            (NAN, 0.0, 1.0),
            (1.0, NAN, 1.0),
            (NAN, 1.0, NAN),
            (2.0, -NAN, NAN),
            (-1.0, INF, 1.0),
            (-1.0, -INF, 1.0),
            (0.0, 3.0, 0.0),
            (-0.0, 3.0, -0.0),
            (-0.0, 2.0, 0.0),
            (-0.0, 0.5, 0.0),
            (0.0, -3.0, INF),
            (-0.0, -3.0, -INF),
            (-0.0, -2.5, INF),
            (0.0, -INF, INF),
            (0.5, INF, 0.0),
            (0.5, -INF, INF),
            (2.0, INF, INF),
            (-2.0, -INF, 0.0),
            (INF, 0.1, INF),
            (INF, -0.1, 0.0),
            (-INF, 3.0, -INF),
            (-INF, 2.5, INF),
            (-INF, -3.0, -0.0),
            (-INF, -2.0, 0.0),
            (-8.0, 1.0 / 3.0, NAN),
            (-2.0, 3.0, -8.0),
            (-2.0, -2.0, 0.25),
            (-0.5, 1e-40, NAN),
            (3.0, 5.0, 243.0),
            (9.0, 0.5, 3.0),
            (10.0, 400.0, INF),
            (10.0, -400.0, 0.0),
            (-1.0, 1e300, 1.0),
        ] {
            assert_eq!(pow_f64(x, y).to_bits(), want.to_bits(), "{x:e}^{y:e}: {:e}", pow_f64(x, y));
            let got = pow_f32(x as f32, y as f32);
            assert_eq!(got.to_bits(), (want as f32).to_bits(), "f32 {x:e}^{y:e}: {got:e}");
        }
        // Subnormal exponents are not integers; the largest odd exponents are odd.
        assert!(pow_f64(-0.5, 5e-324).is_nan() && pow_f32(-0.5, f32::from_bits(1)).is_nan());
        assert_eq!(pow_f64(-1.0, 9_007_199_254_740_991.0), -1.0);
        assert_eq!(pow_f32(-1.0, 16_777_215.0), -1.0);
    }

    #[test]
    fn values() {
        for (x, y, want) in [
            (1.0000001, 7000000000.0, 0x7f0d_941a_e6e7_62d4),
            (0.9999999999, -7000000000000.0, 0x7f0d_94ce_4dd7_fc1d),
            (1.5, 1747.3, 0x7fd1_3528_06a7_d644),
            (3.7e-310, 0.9, 0x061d_7689_a0e1_5010),
            (2.5, -812.9, 0x0000_0000_0000_0001),
            (1.7976931348623157e+308, 0.99, 0x7f4b_1889_a014_6d3e),
            (7.3, 0.001, 0x3ff0_0826_82b0_813f),
            (1.41, 2.0, 0x3fff_cf41_f212_d772),
        ] {
            let got = pow_f64(x, y).to_bits();
            assert!(got.abs_diff(want) <= 1, "{x:e}^{y:e}: {got:#x} for {want:#x}");
        }
        for bits in (0..0x7f80_0000).step_by(600_011) {
            let x = f32::from_bits(bits);
            for y in [-7.25, -0.3, 0.01, 1.0, 2.0, 11.5] {
                let error = ulps(pow_f32(x, y), pow_f64(f64::from(x), f64::from(y)));
                assert!(error <= 1.0, "{x:e}^{y:e} is {error} ulp off");
            }
        }
    }
}
