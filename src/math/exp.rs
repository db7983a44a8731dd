//! The exponential functions `exp2` and `expm1`, and building blocks for other functions based on an exponential.
//!
//! All of them reduce the argument to `x = n·ln 2 + r` with an integer `n` and `|r| ≤ ln 2 / 2`, and evaluate
//! `e^r = 1 + r + c` with a polynomial for the small term `c`. The code has no branches and no tables, so a loop around an
//! inlined call vectorizes at every CPU level; every fused multiply-add is explicit, so that the bits are the same at
//! every level.
//!
//! `n` is rounded by adding `1.5·2^(p-1)`, which leaves the integer in the low bits of the sum, where integer
//! operations can use it. This avoids a saturating conversion, which does not vectorize well.
//!
//! The modules [`single`] and [`double`] define the constants and polynomials of the two types under the same names,
//! and share the function bodies.

pub(super) use double::{
    LN2_HI as LN2_HI_F64, LN2_LO as LN2_LO_F64, ROUND as ROUND_F64, pow2 as pow2_f64, pow2_factors as pow2_factors_f64,
    tail as tail_f64,
};
pub(crate) use double::{exp2 as exp2_f64, expm1 as expm1_f64};
pub(crate) use single::{exp2 as exp2_f32, expm1 as expm1_f32};

/// The function bodies that both types share.
macro_rules! bodies {
    ($float:ident, $bits:ident) => {
        /// The number of stored significand bits, and the exponent bias.
        const SHIFT: u32 = $float::MANTISSA_DIGITS - 1;
        const BIAS: $bits = $float::MAX_EXP as $bits - 1;

        /// A reduced argument: `e^x = 2^n · (1 + r + c)`, with `|r| ≤ 0.3469` and a small `c`.
        pub(crate) struct Parts {
            /// The exponent in two's complement.
            pub(crate) n: $bits,
            /// The reduced argument.
            pub(crate) r: $float,
            /// `e^r - 1 - r`, plus the rounding error of `r`.
            pub(crate) c: $float,
        }

        /// Reduces `x`, which must be between -104 and 90 (`f64`: -750 and 711) or NaN (then `r` and `c` are NaN and
        /// `n` is meaningless).
        #[inline(always)]
        pub(crate) fn parts(x: $float) -> Parts {
            let t = x.mul_add(std::$float::consts::LOG2_E, ROUND);
            let k = t - ROUND;
            let hi = k.mul_add(-LN2_HI, x);
            let lo = k * -LN2_LO;
            let r = hi + lo;
            let rest = lo - (r - hi);
            Parts { n: t.to_bits().wrapping_sub(ROUND.to_bits()), r, c: tail(r) + rest }
        }

        /// `2^n` for an `n` between -126 and 127 (`f64`: -1022 and 1023).
        #[inline(always)]
        pub(crate) fn pow2(n: $bits) -> $float {
            $float::from_bits(n.wrapping_add(BIAS) << SHIFT)
        }

        /// `2^n` as two factors, neither of which overflows or underflows, for an `n` between -252 and 254 (`f64`:
        /// -2044 and 2046).
        ///
        /// Multiplying by both in turn rounds once, in the second product, and only if the result is subnormal.
        #[inline(always)]
        pub(crate) fn pow2_factors(n: $bits) -> ($float, $float) {
            let biased = n.wrapping_add(2 * BIAS);
            let low = biased >> 1;
            ($float::from_bits(low << SHIFT), $float::from_bits(biased.wrapping_sub(low) << SHIFT))
        }

        /// `e^x` for an `x` between `EXP_MIN` and `EXP_MAX`, and its rounding error; for NaN, some NaN.
        #[inline(always)]
        pub(crate) fn exp_two(x: $float) -> ($float, $float) {
            let p = parts(x);
            let (s1, s2) = pow2_factors(p.n);
            let h = 1.0 + p.r;
            let l = (p.r - (h - 1.0)) + p.c;
            let v = h + l;
            (v * s1 * s2, (l - (v - h)) * s1 * s2)
        }

        /// `2^x` for an `x` between `EXP2_MIN` and `EXP2_MAX`, and its rounding error; for NaN, some NaN.
        #[inline(always)]
        pub(crate) fn exp2_two(x: $float) -> ($float, $float) {
            let t = x + ROUND;
            let r = x - (t - ROUND);
            // 1 + r·ln 2, and its rounding error.
            let h = r.mul_add(std::$float::consts::LN_2, 1.0);
            let l = r.mul_add(std::$float::consts::LN_2, 1.0 - h);
            let (s1, s2) = pow2_factors(t.to_bits().wrapping_sub(ROUND.to_bits()));
            let l = (r * r).mul_add(exp2_poly(r), l);
            let v = h + l;
            (v * s1 * s2, (l - (v - h)) * s1 * s2)
        }

        /// `2^x`. Largest error 0.80 ulp over all `f32` arguments, 0.77 ulp over 3·10^7 random `f64` arguments.
        ///
        /// ±0 give 1, +∞ gives +∞, -∞ gives +0; an integral `x` gives the exact power.
        #[inline(always)]
        pub(crate) fn exp2(x: $float) -> $float {
            let y = if EXP2_MAX < x { EXP2_MAX } else { x };
            let y = if EXP2_MIN > y { EXP2_MIN } else { y };
            let (v, _) = exp2_two(y);
            if x.is_nan() { $float::NAN } else { v }
        }

        /// `e^x - 1`. Largest error 0.71 ulp over all `f32` arguments, 0.71 ulp over 3·10^7 random `f64` arguments.
        ///
        /// ±0 and numbers near them give themselves, +∞ gives +∞, -∞ gives -1.
        #[inline(always)]
        pub(crate) fn expm1(x: $float) -> $float {
            let y = if EXP_MAX < x { EXP_MAX } else { x };
            let y = if EXPM1_MIN > y { EXPM1_MIN } else { y };
            // With n = 1 and r < 0 the sum cancels; up to 1/2 the polynomial alone is accurate enough.
            let t = y.mul_add(std::$float::consts::LOG2_E, ROUND);
            let t = if y < 0.5 && t > ROUND { ROUND } else { t };
            let k = t - ROUND;
            let hi = k.mul_add(-LN2_HI, y);
            let lo = k * -LN2_LO;
            let r = hi + lo;
            let rest = lo - (r - hi);
            // The rounding error of r + r²/2 is added to the small terms.
            let half = 0.5 * r;
            let g = half.mul_add(r, r);
            let g_lo = half.mul_add(r, r - g);
            let c = (r * r * r).mul_add(expm1_poly(r), g_lo + rest);
            // Computes half the result, so that 2^n of the largest argument is finite: 2^(n-1) - 1/2 + 2^(n-1)·(r + c).
            let s = pow2(t.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_sub(1));
            let base = s - 0.5;
            let base_lo = (s - base) - 0.5;
            let sg = s * g;
            let h = base + sg;
            let l = (sg - (h - base)) + base_lo;
            let v = 2.0 * (h + s.mul_add(c, l));
            let v = if x.abs() < TINY { x } else { v };
            if x.is_nan() { $float::NAN } else { v }
        }
    };
}

/// The functions of `f32`.
pub(super) mod single {
    /// `1.5·2^23`: adding it to a small number leaves the nearest integer in the low bits of the significand.
    pub(crate) const ROUND: f32 = 12_582_912.0;

    /// `ln 2` truncated to 15 bits, so that its product with an exponent is exact, and the remainder.
    pub(crate) const LN2_HI: f32 = f32::from_bits(0x3f31_7200);
    pub(crate) const LN2_LO: f32 = f32::from_bits(0x35bf_be8e);

    /// `2^-25`: a function that is `x + O(x^2)` gives `x` below it.
    pub(crate) const TINY: f32 = f32::from_bits(0x3300_0000);

    /// Outside these bounds `e^x` and `2^x` are 0 and +∞.
    pub(crate) const EXP_MIN: f32 = -104.0;
    pub(crate) const EXP_MAX: f32 = 89.0;
    pub(crate) const EXP2_MIN: f32 = -151.0;
    const EXP2_MAX: f32 = 129.0;
    /// Below it, `e^x - 1` rounds to -1.
    const EXPM1_MIN: f32 = -18.0;

    bodies!(f32, u32);

    /// `e^r - 1 - r` for `|r| ≤ 0.3468`: `r²·q(r)`, `q` of degree 4, within `2^-26.1·|r|`.
    #[inline(always)]
    fn tail(r: f32) -> f32 {
        let r2 = r * r;
        let q01 = r.mul_add(0.166_665_43, 0.5);
        let q23 = r.mul_add(0.008_366_545, 0.041_666_448);
        let q = r2.mul_add(r2.mul_add(0.001_393_654_4, q23), q01);
        r2 * q
    }

    /// `(2^r - 1 - r·ln 2) / r²` on `[-½, ½]`: degree 4, within `2^-28.2` in `2^r`.
    #[inline(always)]
    fn exp2_poly(r: f32) -> f32 {
        let r2 = r * r;
        let q01 = r.mul_add(0.055_503_618, 0.240_226_5);
        let q23 = r.mul_add(0.001_339_037_4, 0.009_618_073);
        r2.mul_add(r2.mul_add(0.000_154_584_38, q23), q01)
    }

    /// `(e^r - 1 - r - r²/2) / r³` on `[-0.3468, 0.5005]`: degree 4, within `2^-29.2·(e^r - 1)` in `e^r - 1`.
    #[inline(always)]
    fn expm1_poly(r: f32) -> f32 {
        let r2 = r * r;
        let q12 = r.mul_add(0.041_666_48, 0.166_666_76);
        let q34 = r.mul_add(0.001_393_181_7, 0.008_330_876);
        r2.mul_add(r2.mul_add(0.000_212_656_54, q34), q12)
    }
}

/// The functions of `f64`.
pub(super) mod double {
    /// `1.5·2^52`: adding it to a small number leaves the nearest integer in the low bits of the significand.
    pub(crate) const ROUND: f64 = 6_755_399_441_055_744.0;

    /// `ln 2` truncated to 42 bits, so that its product with an exponent is exact, and the remainder.
    pub(crate) const LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fefa_3800);
    pub(crate) const LN2_LO: f64 = f64::from_bits(0x3d2e_f357_93c7_6730);

    /// `2^-54`: a function that is `x + O(x^2)` gives `x` below it.
    pub(crate) const TINY: f64 = f64::from_bits(0x3c90_0000_0000_0000);

    /// Outside these bounds `e^x` and `2^x` are 0 and +∞.
    pub(crate) const EXP_MIN: f64 = -746.0;
    pub(crate) const EXP_MAX: f64 = 710.0;
    pub(crate) const EXP2_MIN: f64 = -1076.0;
    const EXP2_MAX: f64 = 1025.0;
    /// Below it, `e^x - 1` rounds to -1.
    const EXPM1_MIN: f64 = -38.0;

    bodies!(f64, u64);

    /// `e^r - 1 - r` for `|r| ≤ 0.3468`: `r²·q(r)`, `q` of degree 10, within `2^-61.6·|r|`.
    #[inline(always)]
    pub(crate) fn tail(r: f64) -> f64 {
        let r2 = r * r;
        let r4 = r2 * r2;
        let q01 = r.mul_add(0.16666666666666677, 0.5);
        let q23 = r.mul_add(0.008333333333321442, 0.041666666666666685);
        let q45 = r.mul_add(0.00019841269886569803, 0.001388888888887291);
        let q67 = r.mul_add(2.7557243786118854e-06, 2.4801587350550664e-05);
        let q89 = r.mul_add(2.5109178735914904e-08, 2.755725027295336e-07);
        let q8a = r2.mul_add(2.0922339266298137e-09, q89);
        let q03 = r2.mul_add(q23, q01);
        let q47 = r2.mul_add(q67, q45);
        r2 * r4.mul_add(r4.mul_add(q8a, q47), q03)
    }

    /// `(2^r - 1 - r·ln 2) / r²` on `[-½, ½]`: degree 9, within `2^-57.9` in `2^r`.
    #[inline(always)]
    fn exp2_poly(r: f64) -> f64 {
        let r2 = r * r;
        let r4 = r2 * r2;
        let q01 = r.mul_add(0.05550410866482169, 0.24022650695910133);
        let q23 = r.mul_add(0.0013333558146386823, 0.009618129107593318);
        let q45 = r.mul_add(1.5252733862387485e-05, 0.00015403530458101437);
        let q67 = r.mul_add(1.0178048070856885e-07, 1.3215434805490374e-06);
        let q89 = r.mul_add(4.4571951771263175e-10, 7.0738621484220265e-09);
        let q03 = r2.mul_add(q23, q01);
        let q47 = r2.mul_add(q67, q45);
        r4.mul_add(r4.mul_add(q89, q47), q03)
    }

    /// `(e^r - 1 - r - r²/2) / r³` on `[-0.3468, 0.5005]`: degree 9, within `2^-64.1·(e^r - 1)` in `e^r - 1`.
    #[inline(always)]
    fn expm1_poly(r: f64) -> f64 {
        let r2 = r * r;
        let r4 = r2 * r2;
        let q12 = r.mul_add(0.04166666666666661, 0.16666666666666666);
        let q34 = r.mul_add(0.0013888888888922335, 0.008333333333334334);
        let q56 = r.mul_add(2.4801587245091813e-05, 0.00019841269837734868);
        let q78 = r.mul_add(2.755734197302447e-07, 2.75573248095791e-06);
        let q9a = r.mul_add(2.089421304354301e-09, 2.504800082886455e-08);
        let q9b = r2.mul_add(1.7213003319342977e-10, q9a);
        let q14 = r2.mul_add(q34, q12);
        let q58 = r2.mul_add(q78, q56);
        r4.mul_add(r4.mul_add(q9b, q58), q14)
    }
}

#[cfg(test)]
mod tests {
    use super::super::inline::double::{exp as exp_f64, sigmoid as sigmoid_f64};
    use super::super::inline::single::{exp as exp_f32, sigmoid as sigmoid_f32};
    use super::super::tests::{near, same, sweep};
    use super::*;

    #[test]
    fn special_values() {
        same(exp_f64, exp_f32, "0=1 -0=1 inf=inf -inf=0 800=inf -800=0");
        same(exp2_f64, exp2_f32, "0=1 -0=1 10=1024 -3=0.125 inf=inf -inf=0 1024=inf -1080=0");
        same(expm1_f64, expm1_f32, "0=0 -0=-0 inf=inf -inf=-1 800=inf -800=-1 1e-40=1e-40");
        same(sigmoid_f64, sigmoid_f32, "0=0.5 -0=0.5 inf=1 -inf=0 800=1 -800=0");
    }

    #[test]
    fn values() {
        near(
            exp_f64,
            1,
            "1=4005bf0a8b145769 -1=3fd78b56362cef38 0.34657359027997264=3ff6a09e667f3bcc -20.25=3e1b93de1e27ca3b \
             709.7=7fed75ae7a50ee14 -708.5=000e6cf6d08897ac -745=0000000000000001",
        );
        near(
            exp2_f64,
            1,
            "0.5=3ff6a09e667f3bcd -0.4999=3fe6a10531035e8a 100.3=4633b2c47bff831e 1023.99=7fefc769e9b9c396 \
             -1022.5=000b504f333f9de6 -1073.7=0000000000000001",
        );
        near(
            expm1_f64,
            1,
            "1e-10=3ddb7cdfd9dda4e3 -1e-10=bddb7cdfd9d1d693 0.3=3fd6641632306a56 0.45=3fe22f9d09532769 \
             -0.7=bfe01bf92311555f 30=42a370470aec26ed -30=bfeffffffffffcb5 709.7=7fed75ae7a50ee14",
        );
        near(
            sigmoid_f64,
            1,
            "1=3fe764d4f5d5a2bd -1=3fd136561454ba86 0.001=3fe0020c49b78133 36=3feffffffffffffe \
             -36=3cb0b6c3afdde062 -700=00d14f2b0fb9307f -745=0000000000000001",
        );
        sweep(exp_f32, exp_f64, 1.0);
        sweep(exp2_f32, exp2_f64, 1.0);
        sweep(expm1_f32, expm1_f64, 1.0);
        sweep(sigmoid_f32, sigmoid_f64, 1.0);
    }
}
