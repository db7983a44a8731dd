//! The inverse trigonometric functions (arc sine, arc cosine, arc tangent with one and two arguments), `hypot`, and the
//! cube root.
//!
//! None of them branches, so all of them vectorize. The single-precision functions compute in double precision and
//! round once; the double-precision ones keep the rounding errors of the leading steps.

use super::erf::{poly4, poly8};
use super::exp::ROUND_F64;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// π minus its f64 value; its halves and quarters correct those of π.
const PI_LO: f64 = 1.2246467991473532e-16;

const SIGN: u64 = 1 << 63;

const TWO_100: f64 = f64::from_bits((1023 + 100) << 52);
const TWO_1000: f64 = f64::from_bits((1023 + 1000) << 52);

/// Scaling bounds: the squares of numbers from 2^-500 to 2^500 and their sums are normal.
const TWO_500: f64 = f64::from_bits((1023 + 500) << 52);
const TWO_600: f64 = f64::from_bits((1023 + 600) << 52);

#[inline(always)]
fn canonical_f32(r: f32) -> f32 {
    if r.is_nan() { f32::NAN } else { r }
}

#[inline(always)]
fn canonical_f64(r: f64) -> f64 {
    if r.is_nan() { f64::NAN } else { r }
}

/// atan z for `|z| <= 1`, at single-precision accuracy: z·p(z²), p of degree 9, relative error 2.4e-9.
#[inline(always)]
fn atan_coarse(z: f64) -> f64 {
    let s = z * z;
    let s2 = s * s;
    let low = [0.999999997630794, -0.33333283643932243, 0.1999826609802368, -0.14261933650610364];
    let high = [0.1094203336998051, -0.08377323137433257, 0.057552231707805164, -0.030804725100478852];
    let top = s.mul_add(-0.0017539452316353188, 0.010727012169911801);
    let s4 = s2 * s2;
    s4.mul_add(s4.mul_add(top, poly4(s, s2, high)), poly4(s, s2, low)) * z
}

/// atan x. Maximum error 0.55 ulp. atan(±0) = ±0, atan(±∞) = ±π/2.
#[inline(always)]
pub(crate) fn atan_f32(x: f32) -> f32 {
    let a = f64::from(x.abs());
    // atan a = π/2 + atan(-1/a) for a > 1.
    let (num, den, base) = if a > 1.0 { (-1.0, a, FRAC_PI_2) } else { (a, 1.0, 0.0) };
    let y = (base + atan_coarse(num / den)) as f32;
    canonical_f32(y.copysign(x))
}

/// The angle of the point (x, y). Maximum error 0.55 ulp. Zeros and infinities as in C: atan2(±0, x) is ±0 for x > 0 or
/// +0 and ±π for x < 0 or -0; atan2(±∞, +∞) is ±π/4 and atan2(±∞, -∞) is ±3π/4.
#[inline(always)]
pub(crate) fn atan2_f32(y: f32, x: f32) -> f32 {
    let (a, b) = (f64::from(y.abs()), f64::from(x.abs()));
    let steep = a > b;
    let (num, den) = if steep { (b, a) } else { (a, b) };
    let z = num / den;
    let z = if den == 0.0 { 0.0 } else { z };
    let z = if num == f64::INFINITY { 1.0 } else { z };
    let t = atan_coarse(z);
    let t = if steep { FRAC_PI_2 - t } else { t };
    let t = if x.is_sign_negative() { PI - t } else { t };
    let t = (t as f32).copysign(y);
    if x.is_nan() || y.is_nan() { f32::NAN } else { t }
}

/// p of asin z = z·p(z²) for `|z| <= 1/2`, at single-precision accuracy: degree 6, relative error 2.6e-10.
#[inline(always)]
fn asin_coarse(s: f64) -> f64 {
    let p = s.mul_add(0.037885456614925504, 0.014139554263749082);
    let p = s.mul_add(p, 0.03190079679152065);
    let p = s.mul_add(p, 0.04450308620112166);
    let p = s.mul_add(p, 0.07500604106137972);
    let p = s.mul_add(p, 0.16666656944882594);
    s.mul_add(p, 1.0000000002545815)
}

/// asin x. Maximum error 0.51 ulp. asin(±0) = ±0; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn asin_f32(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let near = a <= 0.5;
    // asin a = π/2 - 2·asin √((1 - a)/2) for a > 1/2.
    let half = a.mul_add(-0.5, 0.5);
    let s = if near { a * a } else { half };
    let p = asin_coarse(s);
    let far = half.sqrt().mul_add(-2.0 * p, FRAC_PI_2);
    let y = if near { a * p } else { far };
    canonical_f32((y as f32).copysign(x))
}

/// acos x. Maximum error 0.51 ulp. acos(1) = 0; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn acos_f32(x: f32) -> f32 {
    let x = f64::from(x);
    let a = x.abs();
    let near = a <= 0.5;
    let half = a.mul_add(-0.5, 0.5);
    let s = if near { a * a } else { half };
    let p = asin_coarse(s);
    let middle = x.mul_add(-p, FRAC_PI_2);
    let far = half.sqrt() * (2.0 * p);
    let far = if x < 0.0 { PI - far } else { far };
    canonical_f32(if near { middle } else { far } as f32)
}

/// √(x² + y²). Maximum error 0.501 ulp. ∞ if an argument is infinite, even if the other one is NaN.
#[inline(always)]
pub(crate) fn hypot_f32(x: f32, y: f32) -> f32 {
    let (a, b) = (f64::from(x), f64::from(y));
    let h = canonical_f32((a * a + b * b).sqrt() as f32);
    if x.abs() == f32::INFINITY || y.abs() == f32::INFINITY { f32::INFINITY } else { h }
}

/// `(v, y, root)` for a positive normal `x`: `v = x/root³` in `[0.5, 4)`, `root` is a power of two, and `y`
/// approximates v^(-1/3) with a relative error of 2^-30.
#[inline(always)]
fn cbrt_parts(x: f64) -> (f64, f64, f64) {
    let bits = x.to_bits();
    // The exponent as a float: its bits are placed below those of 2^52.
    let exponent = f64::from_bits((bits >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    let shifted = exponent.mul_add(1.0 / 3.0, ROUND_F64);
    let rest = (shifted - ROUND_F64).mul_add(-3.0, exponent + ROUND_F64);
    let v = bits & 0x000f_ffff_ffff_ffff | rest.to_bits().wrapping_add(1023) << 52;
    let v = f64::from_bits(v);
    // Degree 5, relative error 2^-8.4, then four terms of (1 - e)^(-1/3).
    let v2 = v * v;
    let low = [1.795259127709309, -1.5035190889266814, 1.027218308274382, -0.3891732839339049];
    let y = (v2 * v2).mul_add(v.mul_add(-0.005620328804981128, 0.07450664229892019), poly4(v, v2, low));
    let e = (y * y).mul_add(-(v * y), 1.0);
    let series = e.mul_add(e.mul_add(14.0 / 81.0, 2.0 / 9.0), 1.0 / 3.0) * e;
    (v, y.mul_add(series, y), f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52))
}

/// The cube root. Maximum error 0.53 ulp. cbrt(±0) = ±0, cbrt(±∞) = ±∞.
#[inline(always)]
pub(crate) fn cbrt_f32(x: f32) -> f32 {
    let (v, y, root) = cbrt_parts(f64::from(x.abs()));
    let r = ((v * y) * (y * root)) as f32;
    let r = if x == 0.0 || x.abs() == f32::INFINITY { x } else { r.copysign(x) };
    if x.is_nan() { f32::NAN } else { r }
}

/// The cube root. Maximum error 0.56 ulp. cbrt(±0) = ±0, cbrt(±∞) = ±∞.
#[inline(always)]
pub(crate) fn cbrt_f64(x: f64) -> f64 {
    let a = x.abs();
    // 2^54 times a subnormal number is normal; the factor's cube root, 2^18, is divided out.
    let tiny = a < f64::MIN_POSITIVE;
    let a = if tiny { a * 18_014_398_509_481_984.0 } else { a };
    let unscale = if tiny { 1.0 / 262_144.0 } else { 1.0 };
    let (v, y, root) = cbrt_parts(a);
    // v·y² approximates the root. `rest` is v minus its cube; a third of that, divided by the root's square, is the
    // correction.
    let square = y * y;
    let t = v * square;
    let t2 = t * t;
    let t2_lo = t.mul_add(t, -t2);
    let rest = t2_lo.mul_add(-t, t2.mul_add(-t, v));
    let r = rest.mul_add(square * (1.0 / 3.0), t) * (root * unscale);
    let r = if x == 0.0 || x.abs() == f64::INFINITY { x } else { r.copysign(x) };
    if x.is_nan() { f64::NAN } else { r }
}

/// p of atan z = z + z³·p(z²) for `|z| <= √2 - 1`: degree 10, relative error 1.3e-18.
#[inline(always)]
fn atan_tail(s: f64) -> f64 {
    let s2 = s * s;
    let s4 = s2 * s2;
    let low = [-0.333333333333332, 0.19999999999953677, -0.14285714280200398, 0.11111110783551308];
    let high = [-0.09090897759551443, 0.0769206025109235, -0.06663104601657939, 0.05847894682063623];
    let top = s2.mul_add(-0.017908473435573505, s.mul_add(0.03806553082252833, -0.050393357454768556));
    (s4 * s4).mul_add(top, poly8(s, s2, s4, low, high))
}

/// A quotient `(num + num_lo)/(den + den_lo)` of magnitude at most √2 - 1, and the multiple of π/4 to which its arc
/// tangent is added.
#[derive(Clone, Copy)]
struct Turn {
    base: f64,
    num: f64,
    num_lo: f64,
    den: f64,
    den_lo: f64,
}

impl Turn {
    /// The arc tangent of p/q, relative to the nearest of 0, π/4 and π/2, for finite `p, q >= 0` that are not both 0
    /// and are neither huge nor tiny.
    #[inline(always)]
    fn new(p: f64, q: f64) -> Self {
        let (greater, lesser) = if p > q { (p, q) } else { (q, p) };
        let sum = greater + lesser;
        let sum_lo = (greater - sum) + lesser;
        let difference = p - q;
        let difference_lo = if p > q { (p - difference) - q } else { p - (difference + q) };
        let low = p < 0.414_213_562_373_095 * q;
        let high = q < 0.414_213_562_373_095 * p;
        let outer = low || high;
        let middle_num = difference;
        let num = if low { p } else { middle_num };
        let num = if high { -q } else { num };
        let den = if outer { greater } else { sum };
        let base = if low { 0.0 } else { FRAC_PI_4 };
        let base = if high { FRAC_PI_2 } else { base };
        let num_lo = if outer { 0.0 } else { difference_lo };
        let den_lo = if outer { 0.0 } else { sum_lo };
        Turn { base, num, num_lo, den, den_lo }
    }

    /// The angle. The tail collects the rounding errors of the quotient and the sum, the higher powers, and the low
    /// part of π.
    #[inline(always)]
    fn angle(self) -> f64 {
        let inverse = 1.0 / self.den;
        let z = self.num * inverse;
        let rest = z.mul_add(-self.den_lo, z.mul_add(-self.den, self.num) + self.num_lo);
        let s = z * z;
        // The slope of the arc tangent at z is about 1 - s.
        let rest = rest * inverse;
        let tail = (z * s).mul_add(atan_tail(s), s.mul_add(-rest, rest));
        let head = self.base + z;
        let head_lo = (self.base - head) + z;
        head + self.base.mul_add(PI_LO / PI, head_lo + tail)
    }
}

/// atan x. Maximum error 0.75 ulp. atan(±0) = ±0, atan(±∞) = ±π/2.
#[inline(always)]
pub(crate) fn atan_f64(x: f64) -> f64 {
    // Beyond 2^64 the result no longer depends on the argument; an infinity would make the quotient NaN.
    let a = x.abs();
    let a = if a > 18_446_744_073_709_551_616.0 { 18_446_744_073_709_551_616.0 } else { a };
    canonical_f64(Turn::new(a, 1.0).angle().copysign(x))
}

/// The angle of the point (x, y). Maximum error 1.21 ulp. Zeros and infinities as in C: atan2(±0, x) is ±0 for x > 0
/// or +0 and ±π for x < 0 or -0; atan2(±∞, +∞) is ±π/4 and atan2(±∞, -∞) is ±3π/4.
#[inline(always)]
pub(crate) fn atan2_f64(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let largest = if a > b { a } else { b };
    // Scales so that sums and reciprocals stay in range. Next to an infinity, finite numbers count as 0; at the origin,
    // x counts as 1.
    let scale = if largest > TWO_1000 { 1.0 / TWO_100 } else { 1.0 };
    let scale = if largest < 1.0 / TWO_500 { TWO_500 } else { scale };
    let (p, q) = (a * scale, b * scale);
    let infinite = largest == f64::INFINITY;
    let unit = |v: f64| if v == f64::INFINITY { 1.0 } else { 0.0 };
    let (p, q) = if infinite { (unit(a), unit(b)) } else { (p, q) };
    let q = if largest == 0.0 { 1.0 } else { q };
    let turn = Turn::new(p, q);
    // For a negative x the angle is subtracted from π.
    let base = if x.is_sign_negative() { PI - turn.base } else { turn.base };
    let sign = x.to_bits() & SIGN;
    let num = f64::from_bits(turn.num.to_bits() ^ sign);
    let num_lo = f64::from_bits(turn.num_lo.to_bits() ^ sign);
    let t = Turn { base, num, num_lo, ..turn }.angle().copysign(y);
    if x.is_nan() || y.is_nan() { f64::NAN } else { t }
}

/// p of asin z = z + z³·p(z²) for `|z| <= 1/2`: degree 11, relative error 1.5e-17.
#[inline(always)]
fn asin_tail(s: f64) -> f64 {
    let s2 = s * s;
    let s4 = s2 * s2;
    let low = [0.16666666666665408, 0.07500000000337126, 0.04464285682823504, 0.030381959140930476];
    let high = [0.02237175795228807, 0.017359706289213017, 0.013885219971966298, 0.012169315952681411];
    let top = [0.006527513532124539, 0.019529556783712782, -0.016226322103054292, 0.03191371654807273];
    (s4 * s4).mul_add(poly4(s, s2, top), poly8(s, s2, s4, low, high))
}

/// base - (head + tail), where `base` is 0 or a multiple of π/2. The rounding errors of all steps except the last are
/// kept.
#[inline(always)]
fn from_base(base: f64, head: f64, tail: f64) -> f64 {
    let hi = base - head;
    let lo = (base - hi) - head;
    hi + base.mul_add(PI_LO / PI, lo - tail)
}

/// `(root, tail)` of asin √((1 - a)/2) for a in `[1/2, 1]`, given s = (1 - a)/2 and its p(s).
#[inline(always)]
fn root_parts(s: f64, p: f64) -> (f64, f64) {
    let root = s.sqrt();
    // The smallest normal number prevents 0/0 and vanishes in every other sum.
    let root_lo = root.mul_add(-root, s) / (root + root + f64::MIN_POSITIVE);
    (root, (root * s).mul_add(p, root_lo))
}

/// asin x. Maximum error 0.80 ulp. asin(±0) = ±0; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn asin_f64(x: f64) -> f64 {
    let a = x.abs();
    let near = a <= 0.5;
    let half = a.mul_add(-0.5, 0.5);
    let s = if near { a * a } else { half };
    let p = asin_tail(s);
    let (root, root_tail) = root_parts(half, p);
    let near_tail = (a * s) * p;
    let (base, head, tail) = if near { (0.0, -a, -near_tail) } else { (FRAC_PI_2, 2.0 * root, 2.0 * root_tail) };
    let y = from_base(base, head, tail);
    canonical_f64(y.copysign(x))
}

/// acos x. Maximum error 0.79 ulp. acos(1) = 0; NaN outside [-1, 1].
#[inline(always)]
pub(crate) fn acos_f64(x: f64) -> f64 {
    let a = x.abs();
    let near = a <= 0.5;
    let half = a.mul_add(-0.5, 0.5);
    let s = if near { a * a } else { half };
    let p = asin_tail(s);
    let (root, root_tail) = root_parts(half, p);
    let near_tail = (x * s) * p;
    let negative = x < 0.0;
    let base = if negative { PI } else { 0.0 };
    let twice = if negative { 2.0 } else { -2.0 };
    let (base, head, tail) = if near { (FRAC_PI_2, x, near_tail) } else { (base, twice * root, twice * root_tail) };
    canonical_f64(from_base(base, head, tail))
}

/// √(x² + y²) without intermediate overflow or underflow. Maximum error 0.99 ulp. ∞ if an argument is infinite, even if
/// the other one is NaN.
#[inline(always)]
pub(crate) fn hypot_f64(x: f64, y: f64) -> f64 {
    let (a, b) = (x.abs(), y.abs());
    let (a, b) = if a > b { (a, b) } else { (b, a) };
    let (scale, unscale) = if a > TWO_500 { (1.0 / TWO_600, TWO_600) } else { (1.0, 1.0) };
    let (scale, unscale) = if a < 1.0 / TWO_500 { (TWO_600, 1.0 / TWO_600) } else { (scale, unscale) };
    let (a, b) = (a * scale, b * scale);
    let h = canonical_f64(a.mul_add(a, b * b).sqrt() * unscale);
    if x.abs() == f64::INFINITY || y.abs() == f64::INFINITY { f64::INFINITY } else { h }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(f: fn(f64) -> f64, g: fn(f32) -> f32, table: &[(f64, f64)]) {
        for &(x, y) in table {
            assert!(f(x).to_bits().abs_diff(y.to_bits()) <= 1, "{x}: {} {y}", f(x));
            let narrow = x as f32;
            let want = f(f64::from(narrow));
            assert!(
                (f64::from(g(narrow)) - want).abs() <= want.abs() * 6.6e-8 + 1e-45,
                "{narrow}: {} {want}",
                g(narrow)
            );
        }
        for nan in [-f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)] {
            assert_eq!(f(nan).to_bits(), f64::NAN.to_bits());
            assert_eq!(g(nan as f32).to_bits(), f32::NAN.to_bits());
        }
    }

    #[test]
    fn arcs() {
        let table = [
            (1e-10, 1e-10),
            (0.3, 0.3046926540153975),
            (0.5, std::f64::consts::FRAC_PI_6),
            (-0.7, -0.775397496610753),
            (0.999999, 1.5693821131146521),
            (1.0, FRAC_PI_2),
        ];
        check(asin_f64, asin_f32, &table);
        let table = [
            (0.3, 1.2661036727794992),
            (0.5, std::f64::consts::FRAC_PI_3),
            (-0.7, 2.3461938234056494),
            (0.999999, 0.0014142136802445852),
            (1.0, 0.0),
            (-1.0, PI),
        ];
        check(acos_f64, acos_f32, &table);
        let table = [
            (1e-10, 1e-10),
            (0.3, 0.2914567944778671),
            (0.4142135623730951, 0.3926990816987242),
            (0.5, 0.4636476090008061),
            (-2.0, -1.1071487177940904),
            (1e10, 1.5707963266948965),
            (f64::INFINITY, FRAC_PI_2),
        ];
        check(atan_f64, atan_f32, &table);
        for outside in [1.0000000000000002, -2.0, f64::INFINITY] {
            assert_eq!(asin_f64(outside).to_bits(), f64::NAN.to_bits());
            assert_eq!(acos_f64(outside).to_bits(), f64::NAN.to_bits());
            assert_eq!(asin_f32(2.0 * outside as f32).to_bits(), f32::NAN.to_bits());
            assert_eq!(acos_f32(2.0 * outside as f32).to_bits(), f32::NAN.to_bits());
        }
        for f in [asin_f64, atan_f64, cbrt_f64] {
            assert_eq!((f(0.0).to_bits(), f(-0.0).to_bits(), f(-5e-324) < 0.0), (0, SIGN, true));
        }
        for f in [asin_f32, atan_f32, cbrt_f32] {
            assert_eq!((f(0.0).to_bits(), f(-0.0).to_bits(), f(-1e-45) < 0.0), (0, 1 << 31, true));
        }
    }

    #[test]
    fn cube_root() {
        let table = [
            (2.0, 1.2599210498948732),
            (-10.0, -2.154434690031884),
            (1e-300, 1e-100),
            (5e-324, 1.7031839360032603e-108),
            (27.0, 3.0),
            (f64::NEG_INFINITY, f64::NEG_INFINITY),
        ];
        for (x, y) in table {
            assert!(cbrt_f64(x).to_bits().abs_diff(f64::to_bits(y)) <= 1, "{x}");
        }
        for (x, y) in [(2.0, 1.2599211f32), (-10.0, -2.1544347), (1e-45, 1.1190347e-15), (f32::INFINITY, f32::INFINITY)]
        {
            assert_eq!(cbrt_f32(x), y);
        }
        assert_eq!(cbrt_f64(-f64::NAN).to_bits(), f64::NAN.to_bits());
        assert_eq!(cbrt_f32(-f32::NAN).to_bits(), f32::NAN.to_bits());
    }

    #[test]
    fn angle_of_a_point() {
        let inf = f64::INFINITY;
        let table = [
            (1.0, 2.0, 0.4636476090008061),
            (3.0, -1.0, 1.892546881191539),
            (-1e300, -2e300, -2.677945044588987),
            (5e-324, 1.0, 5e-324),
            (1e-320, 3e-320, 0.3217505543966422),
            (0.0, 1.0, 0.0),
            (-0.0, 1.0, -0.0),
            (0.0, -1.0, PI),
            (-0.0, -0.0, -PI),
            (0.0, 0.0, 0.0),
            (-0.0, 0.0, -0.0),
            (1.0, 0.0, FRAC_PI_2),
            (-1.0, -0.0, -FRAC_PI_2),
            (1.0, inf, 0.0),
            (-1.0, -inf, -PI),
            (inf, 1.0, FRAC_PI_2),
            (inf, inf, FRAC_PI_4),
            (-inf, -inf, -2.356194490192345),
        ];
        for (y, x, angle) in table {
            let got = atan2_f64(y, x);
            assert!(got.to_bits().abs_diff(f64::to_bits(angle)) <= 1, "{y} {x}: {got}");
            let narrow = (y as f32, x as f32);
            if f64::from(narrow.0) == y && f64::from(narrow.1) == x {
                let got = atan2_f32(narrow.0, narrow.1);
                assert!((f64::from(got) - angle).abs() <= angle.abs() * 6.6e-8, "{y} {x}: {got}");
                assert_eq!(got.is_sign_negative(), angle.is_sign_negative());
            }
        }
        for (y, x) in [(f64::NAN, 1.0), (1.0, -f64::NAN), (inf, f64::NAN), (f64::NAN, 0.0), (0.0, f64::NAN)] {
            assert_eq!(atan2_f64(y, x).to_bits(), f64::NAN.to_bits());
            assert_eq!(atan2_f32(y as f32, x as f32).to_bits(), f32::NAN.to_bits());
        }
    }

    #[test]
    fn hypotenuse() {
        for (x, y, h) in [(3.0, -4.0, 5.0), (1e300, 1e300, 1.4142135623730952e300), (1e-320, 3e-320, 3.162e-320)] {
            assert!(hypot_f64(x, y).to_bits().abs_diff(f64::to_bits(h)) <= 1, "{x} {y}");
        }
        assert_eq!((hypot_f32(3e38, 0.0), hypot_f32(3e38, 3e38), hypot_f32(-3.0, 4.0)), (3e38, f32::INFINITY, 5.0));
        assert_eq!((hypot_f64(f64::MAX, f64::MAX), hypot_f64(-0.0, -0.0).to_bits()), (f64::INFINITY, 0));
        assert_eq!(
            (hypot_f64(f64::NEG_INFINITY, f64::NAN), hypot_f32(f32::NAN, f32::INFINITY)),
            (f64::INFINITY, f32::INFINITY)
        );
        assert_eq!(hypot_f64(1.0, -f64::NAN).to_bits(), f64::NAN.to_bits());
        assert_eq!(hypot_f32(-f32::NAN, 1.0).to_bits(), f32::NAN.to_bits());
    }
}
