//! Sine, cosine and tangent, with an error below one ulp for every finite argument.
//!
//! Each function has two forms. `NAME_small` has no branches and vectorizes, but is valid only for arguments up to the
//! bound of its type ([`TRIG_BOUND_F32`], [`TRIG_BOUND_F64`]); NaN is accepted; infinities are not needed but give NaN.
//! `NAME` is valid for every argument and returns the same bits within the bound, because it calls the same code there.
//! Sine and cosine have a third form in [`super::inline`], which compiled loops inline, with the same bits up to its
//! own bound; in double precision that is the bound here, and the form replaces `NAME_small`.
//!
//! The single-precision functions compute in double precision and round once, so their error is slightly more than half
//! an ulp. Sine and cosine of small arguments (up to [`TRIG_NEAR_F32`]) are the exception: their third form stays in
//! single precision, which is faster, and the other forms call it there.

use super::inline::double;
use super::inline::single::{TRIG_NEAR as TRIG_NEAR_F32, cos_near, sin_near};
use super::lane::Lane;
use super::trig_reduce::{ROUND_F64, SMALL_BOUND, half_pi_large, half_pi_small};
use std::f64::consts::{FRAC_1_PI, FRAC_2_PI, FRAC_PI_2, PI};

/// The largest magnitude the single-precision `_small` functions take: 2^36.
pub(crate) const TRIG_BOUND_F32: f32 = 68_719_476_736.0;

/// The largest magnitude the double-precision `_small` functions take: 2^20.
pub(crate) const TRIG_BOUND_F64: f64 = SMALL_BOUND;

/// π minus its f64 value.
const PI_LO: f64 = 1.2246467991473532e-16;

const SIGN: u64 = 1 << 63;

/// sin r for `|r| <= π/2`, at single-precision accuracy: odd, degree 11, relative error 2.2e-11.
#[inline(always)]
fn sin_coarse(r: f64) -> f64 {
    let s = r * r;
    let p = s.mul_add(-2.3868113792933157e-08, 2.752395790522384e-06);
    let p = s.mul_add(p, -0.0001984083256459708);
    let p = s.mul_add(p, 0.008333330718502526);
    let p = s.mul_add(p, -0.1666666660876918);
    s.mul_add(p, 0.9999999999788239) * r
}

#[inline(always)]
fn canonical_f32(r: f32) -> f32 {
    if r.is_nan() { f32::NAN } else { r }
}

#[inline(always)]
fn canonical_f64(r: f64) -> f64 {
    if r.is_nan() { f64::NAN } else { r }
}

/// sin x for `|x| <= TRIG_BOUND_F32`.
#[inline(always)]
pub(crate) fn sin_f32_small(x: f32) -> f32 {
    if x.abs() <= TRIG_NEAR_F32 { sin_near(x) } else { sin_f32_far(x) }
}

/// sin x for `|x| <= TRIG_BOUND_F32`, in double precision.
#[inline(always)]
fn sin_f32_far(x: f32) -> f32 {
    let x = f64::from(x);
    let shifted = x.mul_add(FRAC_1_PI, ROUND_F64);
    let n = shifted - ROUND_F64;
    let r = n.mul_add(-PI_LO, n.mul_add(-PI, x));
    let sign = shifted.to_bits() << 63;
    canonical_f32(f64::from_bits(sin_coarse(r).to_bits() ^ sign) as f32)
}

/// cos x for `|x| <= TRIG_BOUND_F32`.
#[inline(always)]
pub(crate) fn cos_f32_small(x: f32) -> f32 {
    if x.abs() <= TRIG_NEAR_F32 { cos_near(x) } else { cos_f32_far(x) }
}

/// cos x for `|x| <= TRIG_BOUND_F32`, in double precision: the sine of the distance to the nearest zero of the cosine,
/// which keeps the relative accuracy there.
#[inline(always)]
fn cos_f32_far(x: f32) -> f32 {
    let x = f64::from(x);
    // cos((n + ½)π + r) = -(-1)^n sin r.
    let shifted = x.mul_add(FRAC_1_PI, -0.5) + ROUND_F64;
    let n = (shifted - ROUND_F64) + 0.5;
    let r = n.mul_add(-PI_LO, n.mul_add(-PI, x));
    let sign = !shifted.to_bits() << 63;
    canonical_f32(f64::from_bits(sin_coarse(r).to_bits() ^ sign) as f32)
}

/// tan r for `|r| <= π/4`, or -1/tan r if `odd`: a quotient of two polynomials, relative error 2.3e-11.
#[inline(always)]
fn tan_coarse(r: f64, odd: bool) -> f64 {
    let s = r * r;
    let p = s.mul_add(0.0010751549724691803, -0.11136144375808876);
    let p = s.mul_add(p, 1.0000000000220888) * r;
    let q = s.mul_add(0.015973393499957585, -0.4446947754294499);
    let q = s.mul_add(q, 1.0);
    let (above, below) = if odd { (-q, p) } else { (p, q) };
    above / below
}

/// tan x for `|x| <= TRIG_BOUND_F32`.
#[inline(always)]
pub(crate) fn tan_f32_small(x: f32) -> f32 {
    let x = f64::from(x);
    let shifted = x.mul_add(FRAC_2_PI, ROUND_F64);
    let n = shifted - ROUND_F64;
    let r = n.mul_add(-PI_LO / 2.0, n.mul_add(-FRAC_PI_2, x));
    canonical_f32(tan_coarse(r, shifted.to_bits() & 1 != 0) as f32)
}

/// sin(r + quadrant·π/2) in single precision, for a reduced large argument.
#[inline(always)]
fn sin_quadrant_f32(quadrant: u64, r: f64) -> f32 {
    // In an odd quadrant the result is the cosine, which is at least √½ here, so that π/2 - |r| needs no second part.
    let r = if quadrant & 1 == 0 { r } else { FRAC_PI_2 - r.abs() };
    f64::from_bits(sin_coarse(r).to_bits() ^ (quadrant & 2) << 62) as f32
}

/// sin x. Maximum error 0.89 ulp, beyond [`TRIG_NEAR_F32`] 0.501 ulp. sin(±0) = ±0; sin(±∞) is NaN.
#[inline(always)]
pub(crate) fn sin_f32(x: f32) -> f32 {
    if x.abs() <= TRIG_BOUND_F32 {
        sin_f32_small(x)
    } else if x.abs() < f32::INFINITY {
        let (quadrant, r, _) = half_pi_large(f64::from(x.abs()));
        sin_quadrant_f32(quadrant, r) * 1f32.copysign(x)
    } else {
        f32::NAN
    }
}

/// cos x. Maximum error 0.89 ulp, beyond [`TRIG_NEAR_F32`] 0.501 ulp. cos(±0) = 1; cos(±∞) is NaN.
#[inline(always)]
pub(crate) fn cos_f32(x: f32) -> f32 {
    if x.abs() <= TRIG_BOUND_F32 {
        cos_f32_small(x)
    } else if x.abs() < f32::INFINITY {
        let (quadrant, r, _) = half_pi_large(f64::from(x.abs()));
        sin_quadrant_f32(quadrant + 1, r)
    } else {
        f32::NAN
    }
}

/// tan x. Maximum error 0.501 ulp. tan(±0) = ±0; tan(±∞) is NaN.
#[inline(always)]
pub(crate) fn tan_f32(x: f32) -> f32 {
    if x.abs() <= TRIG_BOUND_F32 {
        tan_f32_small(x)
    } else if x.abs() < f32::INFINITY {
        let (quadrant, r, _) = half_pi_large(f64::from(x.abs()));
        tan_coarse(r, quadrant & 1 != 0) as f32 * 1f32.copysign(x)
    } else {
        f32::NAN
    }
}

/// `(head, tail)` of sin(r + lo) for `|r| <= π/4`: r - r³·p(r²).
#[inline(always)]
fn sin_parts(r: f64, lo: f64, s: f64) -> (f64, f64) {
    (r, (r * s).mul_add(-s.horner(double::SIN), lo.mul_add(-0.5 * s, lo)))
}

/// `(head, tail)` of cos(r + lo) for `|r| <= π/4`: 1 - r²/2 + r⁴·p(r²).
#[inline(always)]
fn cos_parts(r: f64, lo: f64, s: f64) -> (f64, f64) {
    let [half, rest @ ..] = double::COS;
    // The head is rounded; the fused operation gives its rounding error, except for the error of s = r², which is
    // omitted.
    let head = s.mul_add(-half, 1.0);
    let err = s.mul_add(-half, 1.0 - head);
    (head, (s * s).mul_add(-s.horner(rest), r.mul_add(-lo, err)))
}

/// sin(r + lo + quadrant·π/2).
#[inline(always)]
fn sin_quadrant(quadrant: u64, r: f64, lo: f64) -> f64 {
    let s = r * r;
    let (sin, sin_tail) = sin_parts(r, lo, s);
    let (cos, cos_tail) = cos_parts(r, lo, s);
    let odd = quadrant & 1 != 0;
    let head = if odd { cos } else { sin };
    let tail = if odd { cos_tail } else { sin_tail };
    f64::from_bits((head + tail).to_bits() ^ (quadrant & 2) << 62)
}

/// tan(r + lo), or -1/tan(r + lo) if `odd`: the quotient of sine and cosine with one step of correction.
#[inline(always)]
fn tan_quadrant(odd: bool, r: f64, lo: f64) -> f64 {
    let s = r * r;
    let (sin, sin_tail) = sin_parts(r, lo, s);
    let (cos, cos_tail) = cos_parts(r, lo, s);
    // The error of s, which the cosine alone can neglect, matters in the quotient.
    let cos_tail = r.mul_add(r, -s).mul_add(-0.5, cos_tail);
    let (above, above_tail) = if odd { (-cos, -cos_tail) } else { (sin, sin_tail) };
    let (below, below_tail) = if odd { (sin, sin_tail) } else { (cos, cos_tail) };
    let den = below + below_tail;
    let den_tail = (below - den) + below_tail;
    let inverse = 1.0 / den;
    let num = above + above_tail;
    let num_tail = (above - num) + above_tail;
    let q = num * inverse;
    let rest = q.mul_add(-den, num) + q.mul_add(-den_tail, num_tail);
    rest.mul_add(inverse, q)
}

/// tan x for `|x| <= TRIG_BOUND_F64`.
#[inline(always)]
pub(crate) fn tan_f64_small(x: f64) -> f64 {
    let (quadrant, r, lo) = half_pi_small(x.abs());
    let y = tan_quadrant(quadrant & 1 != 0, r, lo);
    canonical_f64(f64::from_bits(y.to_bits() ^ x.to_bits() & SIGN))
}

/// sin x. Maximum error 0.88 ulp. sin(±0) = ±0; sin(±∞) is NaN.
#[inline(always)]
pub(crate) fn sin_f64(x: f64) -> f64 {
    if x.abs() <= TRIG_BOUND_F64 {
        double::sin_near(x)
    } else if x.abs() < f64::INFINITY {
        let (quadrant, r, lo) = half_pi_large(x.abs());
        sin_quadrant(quadrant, r, lo) * 1f64.copysign(x)
    } else {
        f64::NAN
    }
}

/// cos x. Maximum error 0.88 ulp. cos(±0) = 1; cos(±∞) is NaN.
#[inline(always)]
pub(crate) fn cos_f64(x: f64) -> f64 {
    if x.abs() <= TRIG_BOUND_F64 {
        double::cos_near(x)
    } else if x.abs() < f64::INFINITY {
        let (quadrant, r, lo) = half_pi_large(x.abs());
        sin_quadrant(quadrant.wrapping_add(1), r, lo)
    } else {
        f64::NAN
    }
}

/// tan x. Maximum error 0.86 ulp. tan(±0) = ±0; tan(±∞) is NaN.
#[inline(always)]
pub(crate) fn tan_f64(x: f64) -> f64 {
    if x.abs() <= TRIG_BOUND_F64 {
        tan_f64_small(x)
    } else if x.abs() < f64::INFINITY {
        let (quadrant, r, lo) = half_pi_large(x.abs());
        tan_quadrant(quadrant & 1 != 0, r, lo) * 1f64.copysign(x)
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the difference is at most one ulp.
    fn close(got: f64, want: f64) -> bool {
        got.to_bits().abs_diff(want.to_bits()) <= 1
    }

    #[test]
    fn fixed_points() {
        let hardest = 6381956970095103.0 * f64::from_bits((1023 + 797) << 52);
        let table = [
            (0.5, 0.479425538604203, 0.8775825618903728, 0.5463024898437905),
            (2.0, 0.9092974268256817, -0.4161468365471424, -2.185039863261519),
            (-3.0, -0.1411200080598672, -0.9899924966004454, 0.1425465430742778),
            (1e6, -0.34999350217129294, 0.9367521275331447, -0.373624453987599),
            (1e22, -0.8522008497671888, 0.523214785395139, -1.6287782256068988),
            (hardest, 1.0, -4.687165924254628e-19, -2.133485385753704e18),
        ];
        for (x, sin, cos, tan) in table {
            assert!(close(sin_f64(x), sin), "sin {x}");
            assert!(close(cos_f64(x), cos), "cos {x}");
            assert!(close(tan_f64(x), tan), "tan {x}");
        }
    }

    #[test]
    fn special_values() {
        for zero in [0.0, -0.0] {
            assert_eq!(sin_f64(zero).to_bits(), zero.to_bits());
            assert_eq!(tan_f64(zero).to_bits(), zero.to_bits());
            assert_eq!(cos_f64(zero), 1.0);
            let zero = zero as f32;
            assert_eq!(sin_f32(zero).to_bits(), zero.to_bits());
            assert_eq!(tan_f32(zero).to_bits(), zero.to_bits());
            assert_eq!(cos_f32(zero), 1.0);
        }
        for x in [f64::INFINITY, f64::NEG_INFINITY, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
            for f in [sin_f64, cos_f64, tan_f64, tan_f64_small] {
                assert_eq!(f(x).to_bits(), f64::NAN.to_bits());
            }
            for f in [sin_f32, cos_f32, tan_f32, sin_f32_small, cos_f32_small, tan_f32_small] {
                assert_eq!(f(x as f32).to_bits(), f32::NAN.to_bits());
            }
        }
        for tiny in [5e-324, -1e-310, 1e-200] {
            assert_eq!((sin_f64(tiny), tan_f64(tiny)), (tiny, tiny));
        }
    }

    #[test]
    fn single_precision_is_near_double_precision() {
        let mut x = 1e-40f32;
        while x < f32::MAX / 1.3 {
            let wide = f64::from(x);
            // In double precision slightly more than half an ulp; in single precision up to 0.89 ulp.
            let near = if x <= TRIG_NEAR_F32 { 1.06e-7 } else { 6.1e-8 };
            for (f, want, bound) in [
                (sin_f32 as fn(f32) -> f32, sin_f64(wide), near),
                (cos_f32, cos_f64(wide), near),
                (tan_f32, tan_f64(wide), 6.1e-8),
            ] {
                let got = f(x);
                assert!((f64::from(got) - want).abs() <= want.abs() * bound + 1e-45, "{x}: {got} {want}");
                assert_eq!(f(-x).abs(), got.abs());
            }
            x *= 1.237;
        }
    }
}
