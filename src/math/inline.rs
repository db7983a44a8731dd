//! Functions that compiled loops inline: `exp`, `log`, `rsqrt`, `tanh`, the logistic sigmoid and functions based on it,
//! the error function in single precision, sine and cosine.
//!
//! They are generic over [`Lane`](super::lane::Lane) and use as few operations as their accuracy allows, because their
//! arithmetic is what a loop spends its time on. The modules [`single`] and [`double`] define the constants and
//! polynomials of the two float types under the same names, and share the function bodies, except the logarithms.
//! Guarantees: the largest errors that the functions' docs state, which were measured over all 2^32 arguments in single
//! precision and over random ones in double (`docs/accuracy.md`); the same bits on every CPU level and in compiled
//! loops. Does not: contain functions that are only kernels; these are in the sibling modules.

/// The function bodies that both types share.
macro_rules! bodies {
    ($float:ident) => {
        use super::super::lane::Lane;
        use std::$float::consts::{FRAC_2_PI, LOG2_E};

        /// The exponent bias.
        const BIAS: $float = ($float::MAX_EXP - 1) as $float;

        /// [`Lane::horner`] with about the same number of operations but half the dependency chain: the terms after the
        /// first coefficient are split into even and odd powers. `x2` is x².
        #[inline(always)]
        fn horner_even_odd<T: Lane<Num = $float>, const N: usize>(x: T, x2: T, c: [$float; N]) -> T {
            let mut v = [x.c(c[N - 1]), x.c(c[N - 2])];
            for i in (1..N - 2).rev() {
                let half = &mut v[(N - 1 - i) % 2];
                *half = half.fma(x2, x.c(c[i]));
            }
            let (odd, even) = (v[N % 2], v[(N - 1) % 2]);
            even.fma(x, odd).fma(x, x.c(c[0]))
        }

        /// The coefficients of the polynomial p(-x).
        const fn mirrored<const N: usize>(mut c: [$float; N]) -> [$float; N] {
            let mut i = 1;
            while i < N {
                c[i] = -c[i];
                i += 2;
            }
            c
        }

        /// The reduction `x = k·ln 2 + r` with an integer `k` and `|r| ≤ ln 2 / 2`. `k` is rounded by adding `round`, a
        /// number whose last place is 1.
        struct Reduced<T> {
            r: T,
            /// `r` without the low part of `k·ln 2`, exact.
            head: T,
            k: T,
            /// `k + round`.
            t: T,
        }

        #[inline(always)]
        fn reduced<T: Lane<Num = $float>>(x: T, round: $float) -> Reduced<T> {
            let t = x.fma(x.c(LOG2_E), x.c(round));
            let k = t - x.c(round);
            let head = k.fnma(k.c(LN2_HI), x);
            Reduced { r: k.fnma(k.c(LN2_LO), head), head, k, t }
        }

        /// `k·ln 2 + f + small`. The rounding error of the first sum is added to the small terms.
        #[inline(always)]
        fn add_ln_2<T: Lane<Num = $float>>(k: T, f: T, small: T) -> T {
            let head = k * k.c(LN2_HI);
            let h = head + f;
            let err = f - (h - head);
            h + (err + k.fma(k.c(LN2_LO), small))
        }

        /// `e^x`. Largest error 0.90 ulp in single precision, 0.93 ulp in double.
        ///
        /// ±0 give 1, +∞ gives +∞, -∞ gives +0. A result that overflows is +∞, and subnormal results are rounded like
        /// the others.
        #[inline(always)]
        pub(crate) fn exp<T: Lane<Num = $float>>(x: T) -> T {
            // Outside these bounds the result is 0 or +∞.
            let Reduced { r, k, t, .. } = reduced(x.at_most(EXP_MAX).at_least(EXP_MIN), ROUND);
            // 1 + r·(1 + r·q): each step at least halves the rounding error of the one before it.
            let one = x.c(1.0);
            let v = r.horner(EXP).fma(r, one).fma(r, one);
            v.scaled(k, t).nan_of(x)
        }

        /// `1 / √x`. Largest error 0.501 ulp.
        ///
        /// ±0 give ±∞, +∞ gives +0, numbers below 0 give NaN.
        #[inline(always)]
        pub(crate) fn rsqrt<T: Lane<Num = $float>>(x: T) -> T {
            // With e = 1 - x·y², the exact result is y / √(1 - e). x·y is neither subnormal nor infinite.
            let one = x.c(1.0);
            let y = one / x.sqrt();
            let h = x * y;
            let e = y.fnma(x.fms(y, h), y.fnma(h, one));
            // For ±0 and +∞ the error is NaN.
            (y * x.c(0.5)).fma(e, y).or(e.less(one), y)
        }

        /// The hyperbolic tangent. Largest error 0.75 ulp in single precision, 0.89 ulp in double.
        ///
        /// ±0 give ±0, ±∞ give ±1.
        #[inline(always)]
        pub(crate) fn tanh<T: Lane<Num = $float>>(x: T) -> T {
            // With a = k·ln 2 / 2 + r, b = 2^k - 1 and u = tanh r, tanh a = (b + (b + 2)·u) / (b + 2 + b·u); beyond
            // TANH_MAX it rounds to 1.
            let a = x.abs().at_most(TANH_MAX);
            let t = (a - a.c(TANH_SHIFT)).fma(a.c(2.0 * LOG2_E), a.c(ROUND + BIAS));
            let k = t - a.c(ROUND + BIAS);
            let r = TANH_LN2.iter().fold(a, |r, part| k.fnma(k.c(*part), r));
            let s = r * r;
            let u = (r * s).fma(horner_even_odd(s, s * s, TANH), r);
            let (one, power) = (a.c(1.0), t.power());
            let b = power - one;
            let recip = one / b.fma(u, power + one);
            // 1 minus the quotient is 2·(1 - u) / (b + 2 + b·u).
            let u2 = u + u;
            let q = one - (a.c(2.0) - u2) * recip;
            // The numerator minus q times the denominator is b·(1 - q)·(1 + u) + 2·u - 2·q. Here 1 - q is exact.
            let q2 = q + q;
            let c = b.fms(one - q, q2);
            let rest = u.fma(c + q2, c + u2);
            rest.fma(recip, q).signed(x).nan_of(x)
        }

        /// A logistic sigmoid: its value is `q·(1 + c)·2^k`, where `c` is small and `t = k + ROUND`.
        struct Logistic<T> {
            q: T,
            c: T,
            k: T,
            t: T,
        }

        /// The logistic sigmoid of `x + lo`.
        #[inline(always)]
        fn logistic<T: Lane<Num = $float>>(x: T, lo: Option<T>) -> Logistic<T> {
            // Above LOGISTIC_MAX the sigmoid rounds to 1; below LOGISTIC_MIN it is 0, even multiplied by its argument.
            // With e^-x = 2^-k·(1 - r + r²·h) it is 2^k / (2^k + 1 - r + r²·h), where the denominator and its
            // reciprocal are always normal.
            let near = x.at_most(LOGISTIC_MAX).at_least(LOGISTIC_MIN);
            let Reduced { r, head, k, t } = reduced(near, ROUND + BIAS);
            let r2 = r * r;
            let h = horner_even_odd(r, r2, mirrored(EXP));
            let one = x.c(1.0);
            // The smallest normal number replaces smaller powers: both vanish when added to 1.
            const SMALLEST: $float = ROUND + BIAS + ($float::MIN_EXP - 1) as $float;
            let power = t.at_least(SMALLEST).power();
            let w = one + power;
            let v = w - r;
            let d = r2.fma(h, v);
            // The rounding errors of the sums; in the first, of the smaller of 1 and the power.
            let errors = ((w - v) - r) + (power - (w - one));
            let errors = if USES_REDUCTION_ERROR { errors - k.fnma(k.c(LN2_LO), head - r) } else { errors };
            let rest = errors + r2.fma(h, v - d);
            let rest = lo.map_or(rest, |lo| lo.fnma(d - power, rest));
            let q = one / d;
            Logistic { q, c: q.fnma(rest, q.fnma(d, one)), k, t: t - x.c(BIAS) }
        }

        /// The logistic sigmoid, `1 / (1 + e^-x)`. Largest error 0.81 ulp in single precision, 0.76 ulp in double.
        ///
        /// ±0 give ½, +∞ gives 1, -∞ gives +0, through the subnormal numbers.
        #[inline(always)]
        pub(crate) fn sigmoid<T: Lane<Num = $float>>(x: T) -> T {
            let Logistic { q, c, k, t } = logistic(x, None);
            q.fma(c, q).scaled(k, t).nan_of(x)
        }

        /// The product of `x` and a logistic sigmoid, which must be 0 for `x` below `least`. -∞ gives NaN, as the
        /// product in the frameworks does.
        #[inline(always)]
        fn scaled_product<T: Lane<Num = $float>>(x: T, least: $float, Logistic { q, c, k, t }: Logistic<T>) -> T {
            let near = x.at_least(least);
            let p = near * q;
            // What is subtracted from a zero is +0, so that -0 is preserved.
            let y = (p - p.fnma(c, near.fnma(q, p))).scaled(k, t);
            y.or(x.abs().less(x.c($float::INFINITY)), x + x.c($float::INFINITY)).nan_of(x)
        }

        /// `x·sigmoid(x)`. Largest error 0.89 ulp in single precision, 0.76 ulp in double.
        #[inline(always)]
        pub(crate) fn silu<T: Lane<Num = $float>>(x: T) -> T {
            scaled_product(x, LOGISTIC_MIN, logistic(x, None))
        }

        /// `x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2`, which is `x·sigmoid(u)`, where `u` is twice the argument of
        /// the hyperbolic tangent. Largest error 0.85 ulp in single precision, 0.72 ulp in double.
        #[inline(always)]
        pub(crate) fn gelu_tanh<T: Lane<Num = $float>>(x: T) -> T {
            // u = y·(A + B·y²) as a sum of two parts, because an error of u becomes a relative error of the result.
            // Beyond ±GELU_MAX the sigmoid is 0 or 1.
            let (a, a_lo) = (x.c(GELU_A.0), x.c(GELU_A.1));
            let (b, b_lo) = (x.c(GELU_B.0), x.c(GELU_B.1));
            let y = x.at_most(GELU_MAX).at_least(-GELU_MAX);
            let s = y * y;
            let s_lo = y.fms(y, s);
            let p = s * b;
            let w = a + p;
            let back = w - a;
            let err = (a - (w - back)) + (p - back);
            let w_lo = s_lo.fma(b, s.fma(b_lo, err + (s.fms(b, p) + a_lo)));
            let u = y * w;
            let u_lo = y.fma(w_lo, y.fms(w, u));
            scaled_product(x, -GELU_MAX, logistic(u, Some(u_lo)))
        }

        /// `sin(x + quarters·π/2)`, for `|x| ≤` [`TRIG_NEAR`].
        #[inline(always)]
        fn sin_plus_quarters<T: Lane<Num = $float>>(x: T, quarters: Option<$float>) -> T {
            // The quotient n, and the remainder in [-π/4, π/4] as r - lo. All differences except the last are exact.
            // The signs are chosen so that -0 gives -0.
            let t = x.fma(x.c(FRAC_2_PI), x.c(ROUND));
            let n = t - x.c(ROUND);
            let head = n.fnma(n.c(HALF_PI[0]), x);
            let r = n.fnma(n.c(HALF_PI[1]), head);
            let lo = n.fma(n.c(HALF_PI[2]), n.fma(n.c(HALF_PI[1]), r - head));
            // The square of r - lo, without the lo² term and rounded once: the cosine is sensitive to both roundings.
            let s = r.fms(r, (r + r) * lo);
            let quadrant = quarters.map_or(t, |quarters| t + x.c(quarters));
            // The sine is r - r·s·q(s) - lo, the cosine 1 - s·q(s) with another q.
            let odd = quadrant.odd();
            let q = s.picked((odd, quadrant.lowest()), COS, s, SIN);
            let (sin, cos) = (r - (r * s).fma(q, lo), s.fnma(q, x.c(1.0)));
            cos.or(odd, sin).turned(quadrant)
        }

        /// The sine, for `|x| ≤` [`TRIG_NEAR`]. Largest error 0.88 ulp in single precision, 0.88 ulp in double. ±0 give
        /// ±0, NaN gives some NaN.
        #[inline(always)]
        pub(crate) fn sin_near<T: Lane<Num = $float>>(x: T) -> T {
            sin_plus_quarters(x, None)
        }

        /// The cosine, for `|x| ≤` [`TRIG_NEAR`]. Largest error 0.89 ulp in single precision, 0.88 ulp in double. NaN
        /// gives some NaN.
        #[inline(always)]
        pub(crate) fn cos_near<T: Lane<Num = $float>>(x: T) -> T {
            sin_plus_quarters(x, Some(1.0))
        }
    };
}

/// The functions of `f32`.
pub(crate) mod single {
    use super::super::exp::single::{EXP_MAX, EXP_MIN, LN2_HI, LN2_LO, ROUND};

    bodies!(f32);

    /// `(e^r - 1 - r) / r²` for `|r| ≤ 0.3468`, lowest first: within `2^-28.2` of `e^r`.
    const EXP: [f32; 5] = [0.49999994, 0.16666521, 0.04166826, 0.008368666, 0.0013821173];

    /// `(tanh r / r - 1) / r²` in `r²` for r from -0.0917 to 0.2562, lowest first: within `2^-28.0` of `tanh r / r`.
    const TANH: [f32; 3] = [-0.33333226, 0.13323322, -0.051307037];
    /// `ln 2 / 2`.
    const TANH_LN2: [f32; 1] = [std::f32::consts::LN_2 / 2.0];
    /// Subtracted from the argument before it is divided by `ln 2 / 2` and rounded, so that `k` is 1 from 0.2554 on, where
    /// the result is ¼, instead of from 0.1733 on.
    const TANH_SHIFT: f32 = 0.0821;
    /// The hyperbolic tangent is 1 from here on.
    const TANH_MAX: f32 = 9.5;

    /// Below the first bound the logistic sigmoid is 0, even multiplied by its argument; above the second it is 1.
    const LOGISTIC_MIN: f32 = -110.0;
    const LOGISTIC_MAX: f32 = 18.0;
    /// Whether the logistic sigmoid uses the rounding error of the argument reduction.
    const USES_REDUCTION_ERROR: bool = false;

    /// `2·√(2/π)` and 0.044715 times that, each with its rounding error.
    const GELU_A: (f32, f32) = (f32::from_bits(0x3fcc_422a), f32::from_bits(0xb342_bc9b));
    const GELU_B: (f32, f32) = (f32::from_bits(0x3d92_2279), f32::from_bits(0x3124_d8b5));
    const GELU_MAX: f32 = 11.0;

    /// The largest magnitude that [`sin_near`] and [`cos_near`] take: 255 quarter turns.
    pub(crate) const TRIG_NEAR: f32 = 400.0;

    /// π/2 in three parts. The second has 16 bits, so that its product with a quotient below 2^8 is exact; the sum
    /// differs from π/2 by less than 2^-65. None is negative, so that -0 is preserved.
    const HALF_PI: [f32; 3] = [f32::from_bits(0x3fc9_0fda), f32::from_bits(0x33a2_2100), f32::from_bits(0x2b51_846a)];

    /// `(1 - sin r / r) / r²`, within 2^-27.8 of the sine, and `(1 - cos r) / r²`, within 2^-32.9 of the cosine, both in
    /// `r²` for `|r| ≤ π/4`, lowest first.
    const SIN: [f32; 3] = [0.16666654, -0.008332106, 0.00019507883];
    const COS: [f32; 4] = [0.5, -0.041666646, 0.0013887308, -2.4432093e-05];

    /// `erf a / a - 1` in `a²` for `a` up to [`ERF_NEAR`], lowest first: within `2^-27.2` of `erf a / a`.
    const ERF: [f32; 6] = [0.12837917, -0.37612593, 0.11282912, -0.026809536, 0.0050618816, -0.00063749636];
    const ERF_NEAR: f32 = 0.84375;
    /// The error function is 1 from here on.
    const ERF_MAX: f32 = 3.95;
    /// `log2(erfc a / erfc n) / (a - n)` in `a - n` with [`ERF_NEAR`] as n, lowest first: `erfc a` is within `2^-28.6·erf a`.
    const LOG_ERFC: [f32; 6] = [-3.4317374, -1.1860218, -0.06965547, 0.016665148, -0.0030202745, 0.0002960827];
    /// `-erfc n·2^r` for `|r| ≤ ½`, lowest first, within `2^-25.7·erf n`, for positive `r` within twice that.
    const MINUS_ERFC: [f32; 6] = [-0.23277435, -0.1613468, -0.05591746, -0.012921039, -0.00225181, -0.00030795002];

    /// `(ln(1 + f) - f) / f²` for `f` from -¼ to ½, lowest first: within `2^-27.4` of the logarithm.
    const LN: [f32; 9] =
        [-0.5, 0.33333462, -0.25000194, 0.19990374, -0.16642544, 0.14475589, -0.13210519, 0.10593989, -0.046058312];

    /// The natural logarithm. Largest error 0.96 ulp.
    ///
    /// ±0 give -∞, 1 gives +0, +∞ gives +∞, numbers below 0 give NaN.
    #[inline(always)]
    pub(crate) fn log<T: Lane<Num = f32>>(x: T) -> T {
        let (k, m) = x.split();
        let f = m - x.c(1.0);
        let small = (f * f) * f.horner(LN);
        add_ln_2(k, f, small).log_ends(x)
    }

    /// The error function. Largest error 0.94 ulp.
    ///
    /// ±0 give ±0, ±∞ give ±1.
    #[inline(always)]
    pub(crate) fn erf<T: Lane<Num = f32>>(x: T) -> T {
        // erfc a = erfc NEAR·2^(d·g), whose exponent is small where the result is sensitive to it.
        let a = x.abs().at_most(ERF_MAX);
        let d = a - a.c(ERF_NEAR);
        let g = d.horner(LOG_ERFC);
        let t = d.fma(g, d.c(ROUND + BIAS));
        let k = t - d.c(ROUND + BIAS);
        // Both forms are a polynomial times a factor, plus a term.
        let near = a.less(a.c(ERF_NEAR));
        let q = (a * a).picked((near, d.sign()), ERF, d.fms(g, k), MINUS_ERFC);
        q.fma(a.or(near, t.power()), a.or(near, a.c(1.0))).signed(x).nan_of(x)
    }
}

/// The functions of `f64`.
pub(crate) mod double {
    use super::super::exp::double::{EXP_MAX, EXP_MIN, LN2_HI, LN2_LO, ROUND};
    use super::super::trig_reduce::{HALF_PI, SMALL_BOUND};

    bodies!(f64);

    /// `(e^r - 1 - r) / r²` for `|r| ≤ 0.34675`, lowest first: within `2^-58` of `e^r`.
    pub(in super::super) const EXP: [f64; 10] = [
        0.5000000000000013,
        0.166666666666667,
        0.04166666666651492,
        0.008333333333307116,
        0.0013888888947159537,
        0.00019841269917577597,
        2.480148978205639e-05,
        2.755721612570768e-06,
        2.7631341124085784e-07,
        2.5117917049112e-08,
    ];

    /// `(tanh r / r - 1) / r²` in `r²` for r from -0.0917 to 0.2562, lowest first: within `2^-57.1` of `tanh r / r`.
    const TANH: [f64; 7] = [
        -0.3333333333333259,
        0.13333333333042892,
        -0.05396825358538823,
        0.02186946457694146,
        -0.008862431923075611,
        0.003577252276555997,
        -0.0013116125887448984,
    ];
    /// `ln 2 / 2` in two parts.
    const TANH_LN2: [f64; 2] = [LN2_HI / 2.0, LN2_LO / 2.0];
    /// Subtracted from the argument before it is divided by `ln 2 / 2` and rounded, so that `k` is 1 from 0.2554 on, where
    /// the result is ¼, instead of from 0.1733 on.
    const TANH_SHIFT: f64 = 0.0821;
    /// The hyperbolic tangent is 1 from here on.
    const TANH_MAX: f64 = 20.0;

    /// Below the first bound the logistic sigmoid is 0, even multiplied by its argument; above the second it is 1.
    const LOGISTIC_MIN: f64 = -760.0;
    const LOGISTIC_MAX: f64 = 38.0;
    /// Whether the logistic sigmoid uses the rounding error of the argument reduction.
    const USES_REDUCTION_ERROR: bool = true;

    /// `2·√(2/π)` and 0.044715 times that, each with its rounding error.
    const GELU_A: (f64, f64) = (1.5957691216057308, -9.96930880911092e-17);
    const GELU_B: (f64, f64) = (0.07135481627260025, -6.175149918155315e-19);
    const GELU_MAX: f64 = 22.0;

    /// The largest magnitude that [`sin_near`] and [`cos_near`] take.
    pub(crate) const TRIG_NEAR: f64 = SMALL_BOUND;

    /// `(1 - sin r / r) / r²`, within `2^-57.9` of the sine, and `(1 - cos r) / r²`, within `2^-63.9` of the cosine,
    /// both in `r²` for `|r| ≤ π/4`, lowest first.
    pub(in super::super) const SIN: [f64; 6] = [
        0.1666666666666663,
        -0.00833333333332184,
        0.00019841269829358522,
        -2.7557313538511066e-06,
        2.5050734388619902e-08,
        -1.5895433245347623e-10,
    ];
    pub(in super::super) const COS: [f64; 7] = [
        0.5,
        -0.041666666666666595,
        0.0013888888888873342,
        -2.4801587289002052e-05,
        2.7557314217021353e-07,
        -2.0875705392394728e-09,
        1.135874899469849e-11,
    ];

    /// `2·(atanh s / s - 1) / s²` in `s²` for `|s| ≤ 1/5`, lowest first: within `2^-62.6` of `atanh s`.
    const LN: [f64; 8] = [
        0.666666666666666,
        0.40000000000056646,
        0.2857142855583946,
        0.22222224294965387,
        0.18181665974530284,
        0.15391108541435483,
        0.13173658451947637,
        0.1384263106796846,
    ];

    /// The natural logarithm. Largest error 0.86 ulp.
    ///
    /// ±0 give -∞, 1 gives +0, +∞ gives +∞, numbers below 0 give NaN.
    #[inline(always)]
    pub(crate) fn log<T: Lane<Num = f64>>(x: T) -> T {
        // With s = f / (2 + f), ln(1 + f) = 2 atanh s = f - f²/2 + s·(f²/2 + s²·q).
        let (k, m) = x.split();
        let f = m - x.c(1.0);
        let s = f / (f + x.c(2.0));
        let z = s * s;
        let half = (f * f.c(0.5)) * f;
        let small = s.fms(z.fma(z.horner(LN), half), half);
        add_ln_2(k, f, small).log_ends(x)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{near, same, sweep};
    use super::{double, single};

    #[test]
    fn special_values() {
        same(double::silu, single::silu, "0=0 -0=-0 inf=inf 800=800 -800=-0 1e-40=5e-41");
        same(double::gelu_tanh, single::gelu_tanh, "0=0 -0=-0 inf=inf 800=800 -800=-0 1e-40=5e-41");
        for (x, y) in [(0.0, f64::INFINITY), (-0.0, f64::NEG_INFINITY), (f64::INFINITY, 0.0), (0.0625, 4.0)] {
            assert_eq!((double::rsqrt(x), single::rsqrt(x as f32)), (y, y as f32), "{x}");
        }
        for x in [-1.0, -f64::INFINITY, f64::NAN] {
            assert!(double::rsqrt(x).is_nan() && single::rsqrt(x as f32).is_nan());
        }
        let least = f64::NEG_INFINITY;
        assert!(double::silu(least).is_nan() && double::gelu_tanh(least).is_nan());
        let least = f32::NEG_INFINITY;
        assert!(single::silu(least).is_nan() && single::gelu_tanh(least).is_nan());
    }

    #[test]
    fn values() {
        near(
            double::silu,
            1,
            "1e-5=3ed4f8bc681b5f67 1=3fe764d4f5d5a2bd -1.8772393=bfcfe33660e0667a -9.12=bf505a68682ee336 \
             33.3=4040a66666666656 -720=80001aef6cac6366",
        );
        near(
            double::gelu_tanh,
            1,
            "1e-5=3ed4f8c08031ee9b 0.7=3fe0fa6e38195e8b -2.7564=bf7f101ee7e143e9 -5.5=be39758267bcd0bb \
             4.2=4010ccc5f5749a85",
        );
        near(
            double::rsqrt,
            0,
            "2=3fe6a09e667f3bcd 3.0323533585720499=3fe2605abf9fa9d6 1e-310=601dd55745cbb7fa \
             1.7976931348623157e308=1ff0000000000000 5e-324=6180000000000000",
        );
        sweep(single::silu, double::silu, 0.9);
        sweep(single::gelu_tanh, double::gelu_tanh, 0.9);
        sweep(single::rsqrt, |x| 1.0 / x.sqrt(), 0.501);
    }
}
