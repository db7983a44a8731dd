//! The logarithms `log2`, `log10` and `log1p`, and building blocks for other functions based on a logarithm.
//!
//! The argument is `2^k·m` with `m` between `√½` and `√2`, and the logarithm of `m = 1 + f` is a polynomial in `f`,
//! which is exact. The terms `k·ln 2` and `f - f²/2` are added with their rounding errors kept, so that only the small
//! remainder of the polynomial and the last addition round. The code has no branches, so a loop vectorizes; every fused
//! multiply-add is explicit, so that the bits are the same at every CPU level.
//!
//! The modules [`single`] and [`double`] define the constants and polynomials of the two types under the same names,
//! and share the function bodies.

pub(super) use double::{SQRT_HALF as SQRT_HALF_F64, TWO52, split as split_f64};
pub(crate) use double::{log1p as log1p_f64, log2 as log2_f64, log10 as log10_f64};
pub(crate) use single::{log1p as log1p_f32, log2 as log2_f32, log10 as log10_f32};

/// The function bodies that both types share.
macro_rules! bodies {
    ($float:ident, $bits:ident) => {
        /// The number of stored significand bits.
        const SHIFT: u32 = $float::MANTISSA_DIGITS - 1;
        const ONE: $bits = $float::to_bits(1.0);
        /// The difference between the bits of 1 and those of `√½`.
        const TO_ONE: $bits = ONE - SQRT_HALF;

        /// A positive finite `x` as `(k, m)` with `x = 2^k·m` and `m` between `√½` and `√2`.
        #[inline(always)]
        pub(crate) fn split(x: $float) -> ($float, $float) {
            split_from(x, SQRT_HALF)
        }

        /// Like [`split`], with `m` between the number with the bits `least` and twice that number.
        #[inline(always)]
        pub(crate) fn split_from(x: $float, least: $bits) -> ($float, $float) {
            let subnormal = x < $float::MIN_POSITIVE;
            let normal = if subnormal { x * (1.0 / $float::EPSILON) } else { x };
            let bias = if subnormal { BIAS + SHIFT as $float } else { BIAS };
            let u = normal.to_bits().wrapping_add(ONE - least);
            let m = $float::from_bits((u & ($bits::MAX >> ($bits::BITS - SHIFT))).wrapping_add(least));
            (float_of_exponent(u >> SHIFT) - bias, m)
        }

        /// `v`, or the logarithm of `x` if `x` is not a positive finite number.
        #[inline(always)]
        pub(crate) fn finish(x: $float, v: $float) -> $float {
            // Compares the bits, because the compiler turns float comparisons into class tests. (In two consecutive
            // runs, `log` of f64 took 1.5 ns per element with these, and 1.2 without.)
            const INFINITY: $bits = $float::to_bits($float::INFINITY);
            let bits = x.to_bits();
            let beyond = if bits == INFINITY { $float::INFINITY } else { $float::NAN };
            let beyond = if bits << 1 == 0 { $float::NEG_INFINITY } else { beyond };
            if bits.wrapping_sub(1) < INFINITY - 1 { v } else { beyond }
        }

        /// `ln(1 + f)` as `g + g_lo`, where `g` is the rounded `f - f²/2` and `g_lo` the small remainder.
        #[inline(always)]
        pub(crate) fn ln_1p(f: $float) -> ($float, $float) {
            let f2 = f * f;
            let q = poly(f, f2);
            let half = -0.5 * f;
            let g = half.mul_add(f, f);
            (g, (f2 * f).mul_add(q, half.mul_add(f, f - g)))
        }

        /// `k·ln 2 + g + low`, where only the small term `low` and the last addition are rounded.
        #[inline(always)]
        fn add_ln_2(k: $float, g: $float, low: $float) -> $float {
            let head = k * LN2_HI;
            let h = head + g;
            let l = g - (h - head);
            h + (l + k.mul_add(LN2_LO, low))
        }

        /// A positive sum `one + x` (`one` is 1 or 0) in the form `2^k·(1 + f + f_lo)`, with `f_lo` the rounding error
        /// of `f`.
        pub(crate) struct Sum {
            pub(crate) k: $float,
            /// `2^(2-k)`: `2^-k` itself may be subnormal.
            pub(crate) scale4: $float,
            pub(crate) f: $float,
            pub(crate) f_lo: $float,
        }

        /// Splits `one + x`. A subnormal `x` loses digits here; the caller must handle it.
        #[inline(always)]
        pub(crate) fn sum(one: $float, x: $float) -> Sum {
            let u = (one + x).to_bits().wrapping_add(TO_ONE);
            let biased = u >> SHIFT;
            let k = float_of_exponent(biased) - BIAS;
            // With s = 2^-k, the reduced argument is s·(one + x) - 1 = (s·one - 1) + s·x. Both terms and the error of
            // their sum are exact.
            let scale4 = $float::from_bits((2 * $float::MAX_EXP as $bits).wrapping_sub(biased) << SHIFT);
            let a = scale4.mul_add(0.25 * one, -1.0);
            let b = (x * 0.25) * scale4;
            let f = a + b;
            Sum { k, scale4, f, f_lo: b - (f - a) }
        }

        /// `ln(2^k·(1 + f + f_lo))`.
        #[inline(always)]
        pub(crate) fn ln_sum(k: $float, f: $float, f_lo: $float) -> $float {
            let (g, low) = ln_1p(f);
            // ln(1 + f + f_lo) - ln(1 + f) = f_lo / (1 + f), where f_lo is below an ulp of f.
            add_ln_2(k, g, low + (-f).mul_add(f_lo, f_lo))
        }

        /// `ln(1 + x)`. Largest error 0.65 ulp over all `f32` arguments, 0.67 ulp over 3·10^7 random `f64` arguments.
        ///
        /// ±0 and numbers near them give themselves, -1 gives -∞, +∞ gives +∞, numbers below -1 give NaN.
        #[inline(always)]
        pub(crate) fn log1p(x: $float) -> $float {
            let p = sum(1.0, x);
            let v = ln_sum(p.k, p.f, p.f_lo);
            let v = if x.abs() < TINY { x } else { v };
            let v = if x == $float::INFINITY { $float::INFINITY } else { v };
            let v = if x == -1.0 { $float::NEG_INFINITY } else { v };
            if x >= -1.0 { v } else { $float::NAN }
        }

        /// The binary logarithm. Largest error 0.72 ulp over all `f32` arguments, 0.73 ulp over 3·10^7 random `f64`
        /// arguments.
        ///
        /// ±0 give -∞, +∞ gives +∞, numbers below 0 give NaN; powers of two are exact.
        #[inline(always)]
        pub(crate) fn log2(x: $float) -> $float {
            const E_HI: $float = std::$float::consts::LOG2_E;
            let (k, m) = split(x);
            let (g, low) = ln_1p(m - 1.0);
            let p = g * E_HI;
            let p_lo = low.mul_add(E_HI, g.mul_add(LOG2_E_LO, g.mul_add(E_HI, -p)));
            let h = k + p;
            let l = p - (h - k);
            finish(x, h + (l + p_lo))
        }

        /// The decimal logarithm. Largest error 0.67 ulp over all `f32` arguments, 0.64 ulp over 3·10^7 random `f64`
        /// arguments.
        ///
        /// ±0 give -∞, 1 gives +0, +∞ gives +∞, numbers below 0 give NaN.
        #[inline(always)]
        pub(crate) fn log10(x: $float) -> $float {
            const E_HI: $float = std::$float::consts::LOG10_E;
            let (k, m) = split(x);
            let (g, low) = ln_1p(m - 1.0);
            let p = g * E_HI;
            let p_lo = low.mul_add(E_HI, g.mul_add(LOG10_E_LO, g.mul_add(E_HI, -p)));
            let head = k * LOG10_2_HI;
            let h = head + p;
            let l = p - (h - head);
            finish(x, h + (l + k.mul_add(LOG10_2_LO, p_lo)))
        }
    };
}

/// The functions of `f32`.
pub(super) mod single {
    use super::super::exp::single::{LN2_HI, LN2_LO, TINY};

    /// The bits of `√½`, the smallest `m`.
    const SQRT_HALF: u32 = 0x3f35_04f3;

    /// `log10 2` truncated so that its product with an exponent is exact, and the remainder.
    const LOG10_2_HI: f32 = f32::from_bits(0x3e9a_2000);
    const LOG10_2_LO: f32 = f32::from_bits(0x369a_84fc);

    /// The rounding errors of `log2 e` and `log10 e`.
    pub(crate) const LOG2_E_LO: f32 = f32::from_bits(0x32a5_7060);
    const LOG10_E_LO: f32 = f32::from_bits(0xb22d_91af);

    /// The exponent bias, in the form that [`float_of_exponent`] returns.
    const BIAS: f32 = 127.0;

    bodies!(f32, u32);

    /// A shifted-out exponent as a float. It is at most 511, so signed and unsigned conversions agree.
    #[inline(always)]
    fn float_of_exponent(n: u32) -> f32 {
        n as i32 as f32
    }

    /// `(ln(1 + f) - f + f²/2) / f³` for `f` from `√½ - 1` to `√2 - 1`, lowest first, degree 8: within `2^-30.2` of the
    /// logarithm.
    const LN: [f32; 9] = [
        0.33333313,
        -0.25000012,
        0.20002073,
        -0.16667852,
        0.1422023,
        -0.124082774,
        0.118863225,
        -0.11660123,
        0.06732009,
    ];

    /// The polynomial with the coefficients [`LN`]; `f2` is `f²`.
    #[inline(always)]
    fn poly(f: f32, f2: f32) -> f32 {
        let c = &LN;
        let f4 = f2 * f2;
        let c03 = f2.mul_add(f.mul_add(c[3], c[2]), f.mul_add(c[1], c[0]));
        let c47 = f2.mul_add(f.mul_add(c[7], c[6]), f.mul_add(c[5], c[4]));
        f4.mul_add(f4.mul_add(c[8], c47), c03)
    }
}

/// The functions of `f64`.
pub(super) mod double {
    use super::super::exp::double::{LN2_HI, LN2_LO, TINY};

    /// The bits of `√½`, the smallest `m`.
    pub(crate) const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;

    /// `log10 2` truncated so that its product with an exponent is exact, and the remainder.
    const LOG10_2_HI: f64 = f64::from_bits(0x3fd3_4413_509f_7800);
    const LOG10_2_LO: f64 = f64::from_bits(0x3d1f_ef31_1f12_b358);

    /// The rounding errors of `log2 e` and `log10 e`.
    pub(crate) const LOG2_E_LO: f64 = 2.0355273740931033e-17;
    const LOG10_E_LO: f64 = 1.098319650216765e-17;

    /// `2^52`, whose low significand bits can hold an integer.
    pub(crate) const TWO52: f64 = 4_503_599_627_370_496.0;
    /// The exponent bias, in the form that [`float_of_exponent`] returns.
    const BIAS: f64 = TWO52 + 1023.0;

    bodies!(f64, u64);

    /// A shifted-out exponent, plus `2^52`, as a float.
    #[inline(always)]
    fn float_of_exponent(n: u64) -> f64 {
        f64::from_bits(n | TWO52.to_bits())
    }

    /// `(ln(1 + f) - f + f²/2) / f³` for `f` from `√½ - 1` to `√2 - 1`, lowest first, degree 19: within `2^-59.2` of
    /// the logarithm.
    const LN: [f64; 20] = [
        0.33333333333333454,
        -0.24999999999998923,
        0.19999999999945794,
        -0.16666666666913507,
        0.1428571429387437,
        -0.12499999982124695,
        0.11111110514453874,
        -0.10000000377111407,
        0.09090933547476714,
        -0.08333345959485247,
        0.0769171389771431,
        -0.07141996325901258,
        0.06675151125512166,
        -0.06269841327369471,
        0.05817802355622074,
        -0.053265582657270084,
        0.05415627598625651,
        -0.06275421359910373,
        0.05698082499648485,
        -0.024283830552326156,
    ];

    /// The polynomial with the coefficients [`LN`]; `f2` is `f²`.
    #[inline(always)]
    fn poly(f: f64, f2: f64) -> f64 {
        let c = &LN;
        let f4 = f2 * f2;
        let f8 = f4 * f4;
        let c03 = f2.mul_add(f.mul_add(c[3], c[2]), f.mul_add(c[1], c[0]));
        let c47 = f2.mul_add(f.mul_add(c[7], c[6]), f.mul_add(c[5], c[4]));
        let c8b = f2.mul_add(f.mul_add(c[11], c[10]), f.mul_add(c[9], c[8]));
        let ccf = f2.mul_add(f.mul_add(c[15], c[14]), f.mul_add(c[13], c[12]));
        let cgj = f2.mul_add(f.mul_add(c[19], c[18]), f.mul_add(c[17], c[16]));
        let c07 = f4.mul_add(c47, c03);
        let c8f = f4.mul_add(ccf, c8b);
        f8.mul_add(f8.mul_add(cgj, c8f), c07)
    }
}

#[cfg(test)]
mod tests {
    use super::super::inline::double::log as log_f64;
    use super::super::inline::single::log as log_f32;
    use super::super::tests::{near, same, sweep};
    use super::*;

    #[test]
    fn special_values() {
        same(log_f64, log_f32, "0=-inf -0=-inf 1=0 inf=inf -inf=nan -1=nan");
        same(log2_f64, log2_f32, "0=-inf -0=-inf 1=0 inf=inf -inf=nan -1=nan 8=3 0.25=-2");
        same(log10_f64, log10_f32, "0=-inf -0=-inf 1=0 inf=inf -inf=nan -1=nan 1000=3");
        same(log1p_f64, log1p_f32, "0=0 -0=-0 -1=-inf -1.5=nan inf=inf -inf=nan 1e-40=1e-40");
    }

    #[test]
    fn values() {
        near(
            log_f64,
            1,
            "4.94066e-324=c0874385446d71c3 2.3e-308=c08622e809940dff 0.5=bfe62e42fefa39ef 0.7073=bfd629c90c3d7b8c \
             0.999999=beb0c6f82d74d230 1.000001=3eb0c6f713f33a1d 1.3=3fd0ca937be1b9dc 1.41=3fd5fd5fabe64084 \
             3=3ff193ea7aad030b 1.7976931348623157e+308=40862e42fefa39ef",
        );
        near(
            log2_f64,
            1,
            "4.94066e-324=c090c80000000000 2.3e-308=c08fef9e252f9cb9 0.5=bff0000000000000 0.7073=bfdff98abf08a37a \
             0.999999=beb83454c4167fe4 1.000001=3eb834532df5d30e 1.3=3fd83988d0c1f60d 1.41=3fdfb97834105ea6 \
             3=3ff95c01a39fbd68 1.7976931348623157e+308=4090000000000000",
        );
        near(
            log10_f64,
            1,
            "4.94066e-324=c07434e6420f4374 2.3e-308=c0733a365cdf6407 0.5=bfd34413509f79ff 0.7073=bfc3402ff4fca986 \
             0.999999=be9d25204937a8c5 1.000001=3e9d251e6030e664 1.3=3fbd2b643bc124f5 1.41=3fc3199ca46580e7 \
             3=3fde8927964fd5fd 1.7976931348623157e+308=40734413509f79ff",
        );
        near(
            log1p_f64,
            1,
            "1e-09=3e112e0be801f1d9 -1e-09=be112e0be84bbb51 0.25=3fcc8ff7c79a9a22 -0.28=bfd50635ec0fdd69 \
             0.42=3fd6712984ec8f15 1=3fe62e42fefa39ef -0.9999999=c0301e3b8440ed2f 1e+10=4037069e2aa3184e \
             1.7976931348623157e+308=40862e42fefa39ef",
        );
        sweep(log_f32, log_f64, 1.0);
        sweep(log2_f32, log2_f64, 1.0);
        sweep(log10_f32, log10_f64, 1.0);
        sweep(log1p_f32, log1p_f64, 1.0);
    }
}
