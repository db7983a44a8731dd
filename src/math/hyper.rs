//! The hyperbolic functions and their inverses, `ln(1 + e^x)`, and the sums of logarithms `logaddexp` and `logaddexp2`.
//!
//! They are built from the reduced exponential and logarithm of the sibling modules, with sums and quotients carried in
//! two floats where a single one would cost an ulp. The code has no branches, so a loop vectorizes; every fused
//! multiply-add is explicit, so that the bits are the same at every CPU level.
//!
//! The modules [`single`] and [`double`] define the constants and polynomials of the two types under the same names,
//! and share the function bodies.

pub(crate) use double::{
    acosh as acosh_f64, asinh as asinh_f64, atanh as atanh_f64, cosh as cosh_f64, log1pexp as log1pexp_f64,
    logaddexp as logaddexp_f64, logaddexp2 as logaddexp2_f64, sinh as sinh_f64,
};
pub(crate) use single::{
    acosh as acosh_f32, asinh as asinh_f32, atanh as atanh_f32, cosh as cosh_f32, log1pexp as log1pexp_f32,
    logaddexp as logaddexp_f32, logaddexp2 as logaddexp2_f32, sinh as sinh_f32,
};

/// The function bodies that both types share.
macro_rules! bodies {
    ($float:ident) => {
        /// `e^a / 4` and `e^-a / 4` for `a ≥ 0`, as `s·(1 + even + (r + odd))` and `i·(1 + even - (r + odd))` with powers
        /// of two `s` and `i`.
        struct Pair {
            /// `s + i` and `s - i`, each with its rounding error.
            sum: ($float, $float),
            difference: ($float, $float),
            r: $float,
            /// `sinh r - r`, plus the rounding error of `r`.
            odd: $float,
            /// `cosh r - 1`.
            even: $float,
        }

        /// The two exponentials of a non-negative `a`.
        #[inline(always)]
        fn pair(a: $float) -> Pair {
            let a = if PAIR_MAX < a { PAIR_MAX } else { a };
            let t = a.mul_add(std::$float::consts::LOG2_E, ROUND);
            let k = t - ROUND;
            let hi = k.mul_add(-LN2_HI, a);
            let lo = k * -LN2_LO;
            let r = hi + lo;
            let rest = lo - (r - hi);
            let (odd, even) = odd_even(r);
            // If the ratio of the two exceeds 2^60, the smaller one does not matter.
            let near = if t < ROUND + 60.0 { t } else { ROUND + 60.0 };
            let s = pow2(t.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_sub(2));
            let i = pow2(ROUND.to_bits().wrapping_sub(near.to_bits()).wrapping_sub(2));
            let (sum, difference) = (s + i, s - i);
            Pair { sum: (sum, i - (sum - s)), difference: (difference, (s - difference) - i), r, odd: odd + rest, even }
        }

        /// `2·(a·(1 + even) + b·(r + odd))` for the sum and the difference, in either order.
        #[inline(always)]
        fn combined(p: &Pair, (a, a_lo): ($float, $float), (b, b_lo): ($float, $float)) -> $float {
            let h = b.mul_add(p.r, a);
            let l = b.mul_add(p.r, a - h) + b_lo.mul_add(p.r, a_lo);
            2.0 * (h + b.mul_add(p.odd, a.mul_add(p.even, l)))
        }

        /// The hyperbolic sine. Largest error 0.78 ulp over all `f32` arguments, 0.90 ulp over 2·10^6 random `f64`
        /// arguments.
        ///
        /// ±0 give ±0, ±∞ give ±∞.
        #[inline(always)]
        pub(crate) fn sinh(x: $float) -> $float {
            let p = pair(x.abs());
            let v = combined(&p, p.difference, p.sum);
            let v = if x.abs() < TINY { x } else { v.copysign(x) };
            if x.is_nan() { $float::NAN } else { v }
        }

        /// The hyperbolic cosine. Largest error 0.74 ulp over all `f32` arguments, 0.75 ulp over 2·10^6 random `f64`
        /// arguments.
        ///
        /// ±0 give 1, ±∞ give +∞.
        #[inline(always)]
        pub(crate) fn cosh(x: $float) -> $float {
            let p = pair(x.abs());
            let v = combined(&p, p.sum, p.difference);
            if x.is_nan() { $float::NAN } else { v }
        }

        /// `ln(one + z + z_lo)`, plus `ln 2` if `twice` is 1; `one` is 1 or 0.
        #[inline(always)]
        fn ln_two(one: $float, z: $float, z_lo: $float, twice: $float) -> $float {
            let p = sum(one, z);
            ln_sum(p.k + twice, p.f, (z_lo * 0.25).mul_add(p.scale4, p.f_lo))
        }

        /// The inverse hyperbolic sine. Largest error 1.06 ulp over all `f32` arguments, 1.02 ulp over 3·10^7 random
        /// `f64` arguments.
        ///
        /// ±0 give ±0, ±∞ give ±∞.
        #[inline(always)]
        pub(crate) fn asinh(x: $float) -> $float {
            // asinh a = ln(1 + a + a²/(1 + √(1 + a²))), or ln 2a for a large a.
            let a = x.abs();
            let root = a.mul_add(a, 1.0).sqrt();
            let q = (a * a) / (1.0 + root);
            let z = a + q;
            let big = a > BIG;
            let one = if big { 0.0 } else { 1.0 };
            let z_lo = if big { 0.0 } else { q - (z - a) };
            let z = if big { a } else { z };
            let v = ln_two(one, z, z_lo, 1.0 - one);
            let v = if a == $float::INFINITY { a } else { v };
            let v = if a < TINY { x } else { v.copysign(x) };
            if x.is_nan() { $float::NAN } else { v }
        }

        /// The inverse hyperbolic cosine. Largest error 0.95 ulp over all `f32` arguments, 0.96 ulp over 3·10^7 random
        /// `f64` arguments.
        ///
        /// 1 gives +0, +∞ gives +∞, numbers below 1 give NaN.
        #[inline(always)]
        pub(crate) fn acosh(x: $float) -> $float {
            // acosh x = ln(1 + (x - 1) + √(x² - 1)), or ln 2x for a large x.
            let square = x.mul_add(x, -1.0);
            let root = square.sqrt();
            let root_lo = (-root).mul_add(root, square) * (0.5 / root);
            let t = x - 1.0;
            let t_lo = (x - t) - 1.0;
            let z = root + t;
            let big = x > BIG;
            let one = if big { 0.0 } else { 1.0 };
            let z_lo = if big { 0.0 } else { (t - (z - root)) + (t_lo + root_lo) };
            let z = if big { x } else { z };
            let v = ln_two(one, z, z_lo, 1.0 - one);
            let v = if x == $float::INFINITY { x } else { v };
            let v = if x == 1.0 { 0.0 } else { v };
            if x >= 1.0 { v } else { $float::NAN }
        }

        /// The inverse hyperbolic tangent. Largest error 0.83 ulp over all `f32` arguments, 0.73 ulp over 3·10^7 random
        /// `f64` arguments.
        ///
        /// ±0 give ±0, ±1 give ±∞, numbers of larger magnitude give NaN.
        #[inline(always)]
        pub(crate) fn atanh(x: $float) -> $float {
            // atanh a = ln(1 + 2a/(1 - a)) / 2
            let a = x.abs();
            let d = 1.0 - a;
            let d_lo = (1.0 - d) - a;
            let twice = a + a;
            let recip = 1.0 / d;
            let z = twice * recip;
            let z_lo = recip * (-z).mul_add(d_lo, (-z).mul_add(d, twice));
            let v = 0.5 * ln_two(1.0, z, z_lo, 0.0);
            let v = if a == 1.0 { $float::INFINITY } else { v };
            let v = if a < TINY { x } else { v.copysign(x) };
            if a <= 1.0 { v } else { $float::NAN }
        }

        /// `ln(1 + e + e_lo)` for an `e` between 0 and 1, as an unevaluated sum of two floats.
        #[inline(always)]
        fn ln_1p_two(e: $float, e_lo: $float) -> ($float, $float) {
            let upper = e > LN_MAX;
            let s = if upper { 0.5 } else { 1.0 };
            let head = if upper { LN2_HI } else { 0.0 };
            let tail = if upper { LN2_LO } else { 0.0 };
            let a = s - 1.0;
            let b = s * e;
            let f = a + b;
            let f_lo = s.mul_add(e_lo, b - (f - a));
            let (g, low) = ln_1p(f);
            let h = head + g;
            let l = (g - (h - head)) + tail;
            (h, l + ((-f).mul_add(f_lo, f_lo) + low))
        }

        /// `ln(1 + e^x)`, the softplus function. Largest error 1.10 ulp over all `f32` arguments, 1.06 ulp over 3·10^7
        /// random `f64` arguments.
        ///
        /// -∞ gives +0, through the subnormal numbers; +∞ gives +∞.
        #[inline(always)]
        pub(crate) fn log1pexp(x: $float) -> $float {
            let m = if x > 0.0 { x } else { 0.0 };
            let d = -x.abs();
            let (e, e_lo) = exp_two(if EXP_MIN > d { EXP_MIN } else { d });
            let (h, l) = ln_1p_two(e, e_lo);
            let v = m + (h + l);
            if x.is_nan() { $float::NAN } else { v }
        }

        /// The larger of two numbers, and the smaller minus the larger as an unevaluated sum of two floats. The second
        /// part matters if the larger number is near zero. NaN if either number is NaN.
        #[inline(always)]
        fn order(a: $float, b: $float) -> ($float, $float, $float) {
            let hi = if a > b { a } else { b };
            let lo = if a > b { b } else { a };
            let d = lo - hi;
            let back = d - lo;
            let d_lo = (lo - (d - back)) - (hi + back);
            // The difference of two equal infinities is NaN, and infinite differences have no rounding error.
            let d_lo = if d > EXP2_MIN { d_lo } else { 0.0 };
            let d = if a == b { 0.0 } else { d };
            (hi, if EXP2_MIN > d { EXP2_MIN } else { d }, d_lo)
        }

        /// `m + h + l` with the rounding error of the first sum kept, so that `m` and `h` may cancel. An infinite `m`
        /// is the result.
        #[inline(always)]
        fn add(m: $float, h: $float, l: $float) -> $float {
            let sum = m + h;
            let back = sum - m;
            let err = (m - (sum - back)) + (h - back);
            let v = if m.abs() == $float::INFINITY { m + l } else { sum + (err + l) };
            if v.is_nan() { $float::NAN } else { v }
        }

        /// `ln(e^a + e^b)`. Largest error 1.33 ulp over 2·10^8 random `f32` arguments, 1.03 ulp over 3·10^7 random
        /// `f64` arguments, whose sum does not cancel to below a quarter of a term.
        ///
        /// Two equal infinities give themselves; NaN if either argument is NaN.
        #[inline(always)]
        pub(crate) fn logaddexp(a: $float, b: $float) -> $float {
            let (m, d, d_lo) = order(a, b);
            let (e, e_lo) = exp_two(if EXP_MIN > d { EXP_MIN } else { d });
            let (h, l) = ln_1p_two(e, e.mul_add(d_lo, e_lo));
            add(m, h, l)
        }

        /// `log2(2^a + 2^b)`. Largest error 1.55 ulp over 2·10^8 random `f32` arguments, 1.24 ulp over 3·10^7 random
        /// `f64` arguments, whose sum does not cancel to below a quarter of a term.
        ///
        /// Two equal infinities give themselves; NaN if either argument is NaN.
        #[inline(always)]
        pub(crate) fn logaddexp2(a: $float, b: $float) -> $float {
            const E_HI: $float = std::$float::consts::LOG2_E;
            let (m, d, d_lo) = order(a, b);
            let (e, e_lo) = exp2_two(d);
            let (h, l) = ln_1p_two(e, e.mul_add(d_lo * std::$float::consts::LN_2, e_lo));
            let p = h * E_HI;
            add(m, p, l.mul_add(E_HI, h.mul_add(LOG2_E_LO, h.mul_add(E_HI, -p))))
        }
    };
}

/// The functions of `f32`.
mod single {
    use super::super::exp::single::{EXP_MIN, EXP2_MIN, LN2_HI, LN2_LO, ROUND, TINY, exp_two, exp2_two, pow2};
    use super::super::log::single::{LOG2_E_LO, ln_1p, ln_sum, sum};

    /// Above it, `x² ± 1` and `x²` have the same logarithm; below it, `x²` does not overflow.
    const BIG: f32 = 1_073_741_824.0;
    /// `√2 - 1`, the largest `f` of the logarithm's polynomial.
    const LN_MAX: f32 = 0.414_213_57;
    /// Beyond it both `sinh` and `cosh` overflow.
    const PAIR_MAX: f32 = 89.5;

    bodies!(f32);

    /// `sinh r - r`: degree 2 in `z = r²`, within `2^-32·r`; `cosh r - 1`: degree 2 in `z`, within `2^-33.1`.
    #[inline(always)]
    fn odd_even(r: f32) -> (f32, f32) {
        let z = r * r;
        let odd = (z * r) * z.mul_add(z.mul_add(0.000_199_049_55, 0.008_333_289), 0.166_666_67);
        let even = z * z.mul_add(z.mul_add(0.001_393_576_7, 0.041_666_456), 0.5);
        (odd, even)
    }
}

/// The functions of `f64`.
mod double {
    use super::super::exp::double::{EXP_MIN, EXP2_MIN, LN2_HI, LN2_LO, ROUND, TINY, exp_two, exp2_two, pow2};
    use super::super::log::double::{LOG2_E_LO, ln_1p, ln_sum, sum};

    /// Above it, `x² ± 1` and `x²` have the same logarithm; below it, `x²` does not overflow.
    const BIG: f64 = 1_152_921_504_606_846_976.0;
    /// `√2 - 1`, the largest `f` of the logarithm's polynomial.
    const LN_MAX: f64 = 0.414_213_562_373_095_1;
    /// Beyond it both `sinh` and `cosh` overflow.
    const PAIR_MAX: f64 = 710.5;

    bodies!(f64);

    /// `sinh r - r`: degree 4 in `z = r²`, within `2^-61.6·r`; `cosh r - 1`: degree 5 in `z`, within `2^-70`.
    #[inline(always)]
    fn odd_even(r: f64) -> (f64, f64) {
        let z = r * r;
        let z2 = z * z;
        let s03 = z2.mul_add(
            z.mul_add(2.755724378552366e-06, 0.0001984126988657012),
            z.mul_add(0.008333333333321442, 0.16666666666666677),
        );
        let odd = (z * r) * (z2 * z2).mul_add(2.5109179011505468e-08, s03);
        let c03 =
            z2.mul_add(z.mul_add(2.4801587349109973e-05, 0.0013888888888873307), z.mul_add(0.041666666666666685, 0.5));
        let even = z * (z2 * z2).mul_add(z.mul_add(2.092172559215139e-09, 2.755725193257893e-07), c03);
        (odd, even)
    }
}

#[cfg(test)]
mod tests {
    use super::super::inline::double::tanh as tanh_f64;
    use super::super::inline::single::tanh as tanh_f32;
    use super::super::tests::{near, same, sweep};
    use super::*;

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    #[test]
    fn special_values() {
        same(tanh_f64, tanh_f32, "0=0 -0=-0 inf=1 -inf=-1 1e-40=1e-40");
        same(sinh_f64, sinh_f32, "0=0 -0=-0 inf=inf -inf=-inf -800=-inf 1e-40=1e-40");
        same(cosh_f64, cosh_f32, "0=1 -0=1 inf=inf -inf=inf 800=inf");
        same(asinh_f64, asinh_f32, "0=0 -0=-0 inf=inf -inf=-inf 1e-40=1e-40");
        same(acosh_f64, acosh_f32, "1=0 0.5=nan -2=nan inf=inf -inf=nan");
        same(atanh_f64, atanh_f32, "0=0 -0=-0 1=inf -1=-inf 1.5=nan -inf=nan 1e-40=1e-40");
        same(log1pexp_f64, log1pexp_f32, "inf=inf -inf=0 -800=0 800=800");
    }

    #[test]
    fn sums_of_logarithms() {
        for f in [logaddexp_f64, logaddexp2_f64] {
            assert_eq!(f(INF, INF), INF);
            assert_eq!(f(-INF, -INF), -INF);
            assert_eq!(f(INF, -INF), INF);
            assert_eq!(f(-INF, 3.0), 3.0);
            assert_eq!(f(f64::MAX, -f64::MAX), f64::MAX);
            assert_eq!(f(NAN, INF).to_bits(), NAN.to_bits());
            assert_eq!(f(-INF, -NAN).to_bits(), NAN.to_bits());
        }
        assert_eq!(logaddexp2_f64(5.0, 5.0), 6.0);
        assert_eq!(logaddexp2_f32(-7.0, -7.0), -6.0);
        assert_eq!(logaddexp_f32(f32::NEG_INFINITY, 3.0), 3.0);
        // A sum with cancellation, where the rounding error of a - b matters.
        near(|a| logaddexp_f64(a, -9.278), 2, "-3.67e-5=3f0dc1c8c0f8987f");
    }

    #[test]
    fn values() {
        near(
            tanh_f64,
            1,
            "1e-05=3ee4f8b588e06854 0.2=3fc9439830b3a590 -0.5=bfdd9353d7568af3 3=3fefd77d111a0b00 \
             18=3feffffffffffffc",
        );
        near(
            sinh_f64,
            1,
            "1e-05=3ee4f8b588e4e940 0.3=3fd37d42af54b926 -0.5=bfe0acd00fe63b97 20=41aceb088b68e804 \
             710.4=7feda98a7371610b",
        );
        near(
            cosh_f64,
            1,
            "1e-05=3ff0000000036f9c 0.3=3ff0b9b4e0b6ec4c -0.5=3ff20ac1862ae8d0 20=41aceb088b68e804 \
             710.4=7feda98a7371610b",
        );
        near(
            asinh_f64,
            2,
            "1e-05=3ee4f8b588e1e8a2 0.3=3fd2ec4ea565fcc1 -1.5=bff31dc0090b63d8 1e+09=40356a9a0b23d188 \
             1.7976931348623157e+308=408633ce8fb9f87e",
        );
        near(
            acosh_f64,
            2,
            "1.0000001=3f3d4effc065cae4 1.03=3fcf468e57434e68 2=3ff5124271980435 1e+09=40356a9a0b23d188 \
             1.7976931348623157e+308=408633ce8fb9f87e",
        );
        near(
            atanh_f64,
            2,
            "1e-05=3ee4f8b588e6698e 0.2=3fc9f323ecbf984c -0.5=bfe193ea7aad030b 0.999999999=40256a9a0b9b2416",
        );
        near(
            log1pexp_f64,
            2,
            "0=3fe62e42fefa39ef -0.9=3fd5d5770fb8311e 0.3=3feb56e0cf4511af 40=4044000000000000 \
             -700=00d14f2b0fb9307f -744=0000000000000002",
        );
        sweep(tanh_f32, tanh_f64, 1.0);
        sweep(sinh_f32, sinh_f64, 1.0);
        sweep(cosh_f32, cosh_f64, 1.0);
        sweep(asinh_f32, asinh_f64, 2.0);
        sweep(acosh_f32, acosh_f64, 2.0);
        sweep(atanh_f32, atanh_f64, 2.0);
        sweep(log1pexp_f32, log1pexp_f64, 2.0);
    }
}
