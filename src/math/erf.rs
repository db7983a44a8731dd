//! The complementary error function, and GELU: the normal distribution function times its argument.

use super::exp::{LN2_HI_F64, LN2_LO_F64, ROUND_F64};
use super::inline::double;
use super::lane::Lane;
use std::f64::consts::{LN_2, LOG2_E};

/// The cubic polynomial with the coefficients `c`, lowest first; `x2` is x². Evaluated as two halves, which shortens
/// the dependency chain.
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

/// erfc x at single-precision accuracy.
///
/// e^(-x²)·p(|x|)/q(|x|), p of degree 4 and q of degree 5 on `[0, 10.1]`, relative error 5.8e-9; for negative x, 2
/// minus that.
#[inline(always)]
fn erfc_coarse(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 10.5 { 10.5 } else { a };
    let p = a.mul_add(0.032798484782048706, 0.22922819329797858);
    let p = a.mul_add(p, 0.7316238655817802);
    let p = a.mul_add(p, 1.2384292772882355);
    let p = a.mul_add(p, 1.0000000057388896);
    let q = a.mul_add(0.05813310194442266, 0.40632279272536687);
    let q = a.mul_add(q, 1.3254054085148308);
    let q = a.mul_add(q, 2.4022725136775294);
    let q = a.mul_add(q, 2.36680902315047);
    let q = a.mul_add(q, 1.0);
    // e^r: degree 6 on ±ln 2 / 2, relative error 1.9e-9.
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
    if x < 0.0 { 2.0 - y } else { y }
}

/// erfc x. Maximum error 0.63 ulp. erfc(±0) = 1, erfc(∞) = 0, erfc(-∞) = 2.
#[inline(always)]
pub(crate) fn erfc_f32(x: f32) -> f32 {
    let y = erfc_coarse(f64::from(x)) as f32;
    if y.is_nan() { f32::NAN } else { y }
}

/// x·erfc(-x/√2)/2, the product of x and the normal distribution function. Maximum error 0.63 ulp. -∞ gives NaN, as the
/// product in the frameworks does.
#[inline(always)]
pub(crate) fn gelu_f32(x: f32) -> f32 {
    // Below -15 the result is 0.
    let a = f64::from(if -15.0 > x { -15.0 } else { x });
    let y = (0.5 * a * erfc_coarse(a * -std::f64::consts::FRAC_1_SQRT_2)) as f32;
    if y.is_nan() | (x == f32::NEG_INFINITY) { f32::NAN } else { y }
}

/// [`gelu_f32`] in double precision. Maximum error 1.69 ulp over 6·10^6 random arguments.
#[inline(always)]
pub(crate) fn gelu_f64(x: f64) -> f64 {
    // |x|/√2 and its square, x²/2, each in two parts, because erfc is so steep that their rounding errors would matter.
    // Below -38.85 the result is 0, and above 38.85 it is x.
    const ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;
    const ROOT_LO: f64 = -4.833646656726457e-17;
    let t = x.abs();
    let t = if t > 38.85 { 38.85 } else { t };
    let a = t * ROOT;
    let a_lo = t.mul_add(ROOT, -a) + t * ROOT_LO;
    let half = 0.5 * t;
    let square = t * half;
    let c = erfc_parts([a, a_lo], [square, t.mul_add(half, -square)]);
    // x/2·erfc, multiplied by 2^200, so that only the last product can be subnormal.
    let y = half * c.y;
    let y_lo = half.mul_add(c.lo, half.mul_add(c.y, -y));
    let below = (y + y_lo) * c.power * -DOWN;
    let (part, part_lo) = (y * c.power * DOWN, y_lo * c.power * DOWN);
    let rest = x - part;
    let above = rest + (((x - rest) - part) - part_lo);
    let above = if x > 38.85 { x } else { above };
    let y = if x.is_sign_negative() { below } else { above };
    if x.is_nan() | (x == f64::NEG_INFINITY) { f64::NAN } else { y }
}

/// 2^-200.
const DOWN: f64 = f64::from_bits((1023 - 200) << 52);

/// erfc x. Maximum error 1.42 ulp. erfc(±0) = 1, erfc(∞) = 0, erfc(-∞) = 2.
#[inline(always)]
pub(crate) fn erfc_f64(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 27.5 { 27.5 } else { a };
    let square = a * a;
    let c = erfc_parts([a, 0.0], [square, a.mul_add(a, -square)]);
    let y = (c.y + c.lo) * c.power * DOWN;
    let y = if x < 0.0 { 2.0 - y } else { y };
    if x.is_nan() { f64::NAN } else { y }
}

/// The result of [`erfc_parts`]: `(y + lo)·power` is 2^200·erfc, which is always normal, and the product with 2^-200
/// rounds once.
struct Parts {
    y: f64,
    lo: f64,
    power: f64,
}

/// erfc of a number from 0 to 27.5, given in two parts together with its square, also in two parts.
///
/// e^(-a²)·(c + a·p(a)/q(a))/(c + a), c = 0.5625, p of degree 10 and q of degree 11, relative error 4.7e-19. With this
/// c, a·p/q is a correction of at most a fifth, so its rounding error matters little; the sums and the division around
/// it carry a second part.
#[inline(always)]
fn erfc_parts([a, a_lo]: [f64; 2], [square, square_lo]: [f64; 2]) -> Parts {
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
    let slope = p / q;

    // -a² = n·ln 2 + r.
    let shifted = square.mul_add(-LOG2_E, ROUND_F64);
    let n = shifted - ROUND_F64;
    let head = n.mul_add(-LN2_HI_F64, -square);
    let rest = n.mul_add(LN2_LO_F64, square_lo);
    let r = head - rest;
    let tail = (r * r).mul_add(r.horner(double::EXP), (head - r) - rest);

    // (c + a·slope)·(1 + r + tail) / (c + a).
    let c = 0.5625;
    let top = a.mul_add(slope, c);
    let top_lo = a_lo.mul_add(slope, a.mul_add(slope, c - top));
    let below = c + a;
    let part = below - c;
    let below_lo = (c - (below - part)) + (a - part) + a_lo;
    let inverse = 1.0 / below;
    let top_lo = top.mul_add(r, top.mul_add(tail, top_lo));
    let num = top + top_lo;
    let num_lo = (top - num) + top_lo;
    let y = num * inverse;
    let rest = y.mul_add(-below_lo, y.mul_add(-below, num) + num_lo);
    Parts { y, lo: rest * inverse, power: f64::from_bits(shifted.to_bits().wrapping_add(1023 + 200) << 52) }
}

#[cfg(test)]
mod tests {
    use super::super::erf_parts::erf as erf_f64;
    use super::super::inline::single::erf as erf_f32;
    use super::super::tests::near;
    use super::*;

    #[test]
    fn fixed_points() {
        let table: [(f64, f64, f64); 8] = [
            (1e-300, 1.1283791670955126e-300, 1.0),
            (0.3, 0.3286267594591274, 0.6713732405408726),
            (0.875, 0.7840750610598597, 0.21592493894014034),
            (1.5, 0.9661051464753108, 0.033894853524689274),
            (-2.5, -0.999593047982555, 1.999593047982555),
            (5.5, 0.9999999999999927, 7.357847917974398e-15),
            (26.0, 1.0, 5.663192408856143e-296),
            (27.0, 1.0, 5.23705e-319),
        ];
        for (x, e, c) in table {
            assert!(erf_f64(x).to_bits().abs_diff(f64::to_bits(e)) <= 1, "erf {x}");
            assert!(erfc_f64(x).to_bits().abs_diff(f64::to_bits(c)) <= 2, "erfc {x}");
            let narrow = x as f32;
            let (e, c) = (erf_f64(f64::from(narrow)), erfc_f64(f64::from(narrow)));
            assert!((f64::from(erf_f32(narrow)) - e).abs() <= e.abs() * 6.5e-8, "erf {narrow}");
            assert!((f64::from(erfc_f32(narrow)) - c).abs() <= c * 7.5e-8 + 1e-45, "erfc {narrow}");
        }
    }

    /// Arguments for which two roundings of erfc would be visible in the product.
    #[test]
    fn gelu_where_it_falls_steeply() {
        near(
            gelu_f64,
            1,
            "-1.8255967705605674=bfafbd08181dc775 7.262501275522517e-12=3d8ff0d9797618e6 \
             -3.4579464781528984=bf4ed67d7f56e39f -2.194530106697178=bf9faeb7f598cc50 -37.9=80000016fb7e76d3 \
             3.1=4008c6a82955b96d 0.0625=3fa0cc2023b25766 -38.4=8000000000000201",
        );
    }

    #[test]
    fn special_values() {
        for zero in [0.0f64, -0.0] {
            assert_eq!(erf_f64(zero).to_bits(), zero.to_bits());
            assert_eq!(erf_f32(zero as f32).to_bits(), (zero as f32).to_bits());
            assert_eq!((erfc_f64(zero), erfc_f32(zero as f32)), (1.0, 1.0));
        }
        for big in [f64::INFINITY, 1e300, 30.0] {
            assert_eq!((erf_f64(big), erf_f64(-big)), (1.0, -1.0));
            assert_eq!((erfc_f64(big).to_bits(), erfc_f64(-big)), (0, 2.0));
            let big = big as f32;
            assert_eq!((erf_f32(big), erf_f32(-big)), (1.0, -1.0));
            assert_eq!((erfc_f32(big).to_bits(), erfc_f32(-big)), (0, 2.0));
        }
        for nan in [-f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
            assert_eq!((erf_f64(nan).to_bits(), erfc_f64(nan).to_bits()), (f64::NAN.to_bits(), f64::NAN.to_bits()));
            let nan = nan as f32;
            assert_eq!((erf_f32(nan).to_bits(), erfc_f32(nan).to_bits()), (f32::NAN.to_bits(), f32::NAN.to_bits()));
        }
        assert_eq!(erf_f64(5e-324), 5e-324);
    }
}
