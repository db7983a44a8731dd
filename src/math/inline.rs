//! The functions that compiled loops take in: `exp`, `log`, `tanh`, the logistic sigmoid and what is made of it, the error
//! function of single precision, sine and cosine.
//!
//! They are written over [`Lane`](super::lane::Lane), with as few operations as their accuracy allows: the time of a loop
//! is that of its arithmetic here. The constants and polynomials of the two float types stand in [`single`] and
//! [`double`] under the same names, and around them the same bodies; the logarithms differ. Guarantees: the largest errors
//! that their docs state, which were measured over all 2^32 arguments of single precision, and over random ones of double
//! (`docs/accuracy.md`); the same bits on every CPU level and in compiled loops. Does not: hold the functions that are
//! block kernels only; the modules beside this one do.

/// What is the same for both types.
macro_rules! bodies {
    ($float:ident) => {
        use super::super::lane::Lane;
        use std::$float::consts::{FRAC_2_PI, LOG2_E};

        /// What a stored exponent has more than it says.
        const BIAS: $float = ($float::MAX_EXP - 1) as $float;

        /// As [`Lane::horner`] with the same operations, but in a chain of half the length: what is behind the first coefficient
        /// goes by even and odd powers. `x2` is x².
        #[inline(always)]
        fn halves<T: Lane<Num = $float>, const N: usize>(x: T, x2: T, c: [$float; N]) -> T {
            let mut v = [x.c(c[N - 1]), x.c(c[N - 2])];
            for i in (1..N - 2).rev() {
                let half = &mut v[(N - 1 - i) % 2];
                *half = half.fma(x2, x.c(c[i]));
            }
            let (odd, even) = (v[N % 2], v[(N - 1) % 2]);
            even.fma(x, odd).fma(x, x.c(c[0]))
        }

        /// The coefficients of a polynomial's value at `-x`.
        const fn mirrored<const N: usize>(mut c: [$float; N]) -> [$float; N] {
            let mut i = 1;
            while i < N {
                c[i] = -c[i];
                i += 2;
            }
            c
        }

        /// `x = k·ln 2 + r` with a whole `k` and `|r| ≤ ln 2 / 2`, by way of a number with whole ones in its lowest places.
        struct Reduced<T> {
            r: T,
            /// `r` without the low part of `k·ln 2`, exact.
            head: T,
            k: T,
            /// `k +` that number.
            t: T,
        }

        #[inline(always)]
        fn reduced<T: Lane<Num = $float>>(x: T, round: $float) -> Reduced<T> {
            let t = x.fma(x.c(LOG2_E), x.c(round));
            let k = t - x.c(round);
            let head = k.fnma(k.c(LN2_HI), x);
            Reduced { r: k.fnma(k.c(LN2_LO), head), head, k, t }
        }

        /// `k·ln 2 + f + small`, with what the first sum lost among the small terms.
        #[inline(always)]
        fn add_ln_2<T: Lane<Num = $float>>(k: T, f: T, small: T) -> T {
            let head = k * k.c(LN2_HI);
            let h = head + f;
            let lost = f - (h - head);
            h + (lost + k.fma(k.c(LN2_LO), small))
        }

        /// `e^x`. Largest error 0.90 ulp in single precision, 0.93 ulp in double.
        ///
        /// ±0 give 1, +∞ gives +∞, -∞ gives +0; too large a result is +∞, and the subnormal ones are rounded like the
        /// others.
        #[inline(always)]
        pub(crate) fn exp<T: Lane<Num = $float>>(x: T) -> T {
            // Beyond the ends the result is 0 or +∞.
            let Reduced { r, k, t, .. } = reduced(x.at_most(EXP_MAX).at_least(EXP_MIN), ROUND);
            // 1 + r·(1 + r·q): each step halves what the one before it rounded, or more.
            let one = x.c(1.0);
            let v = r.horner(EXP).fma(r, one).fma(r, one);
            v.scaled(k, t).nan_of(x)
        }

        /// The hyperbolic tangent. Largest error 1.71 ulp in single precision, 1.60 ulp in double.
        ///
        /// ±0 give ±0, ±∞ give ±1.
        #[inline(always)]
        pub(crate) fn tanh<T: Lane<Num = $float>>(x: T) -> T {
            // With e^2a = 2^k·(1 + g) and y = (e^2a - 1)/2 it is y/(1 + y); beyond the end it rounds to 1. The least a with
            // a k of 1 is such that 2^k·(1 + g) - 1 hardly cancels.
            const HALF: $float = ROUND + BIAS - 1.0;
            let a = x.abs().at_most(TANH_MOST);
            let t = (a - a.c(TANH_SHIFT)).fma(a.c(2.0 * LOG2_E), a.c(HALF));
            let k = t - a.c(HALF);
            let r = TANH_LN2.iter().fold(a, |r, part| k.fnma(k.c(*part), r));
            let r2 = r * r;
            let g = r2.fma(halves(r, r2, EXPM1_TWICE), r + r);
            let half = t.power();
            let y = g.fma(half, half - a.c(0.5));
            let q = y / (a.c(1.0) + y);
            // While q is small, y - y·q feels less of what the quotient lost.
            y.fnma(q, y).or(y.less(y.c(TANH_NEAR)), q).signed(x).nan_of(x)
        }

        /// The logistic sigmoid of `x + lo` as `(v, k, t)`: it is `v·2^k`, and `t = k + ROUND`.
        #[inline(always)]
        fn logistic<T: Lane<Num = $float>>(x: T, lo: Option<T>) -> (T, T, T) {
            // Beyond the ends it rounds to 1, and is 0 also times its argument. With e^-x = 2^-k·(1 + g) it is
            // 2^k / (2^k + 1 + g): so neither the denominator nor its reciprocal leaves the normal numbers.
            let near = x.at_most(LOGISTIC_MOST).at_least(LOGISTIC_LEAST);
            let Reduced { r, head, k, t } = reduced(near, ROUND + BIAS);
            let r2 = r * r;
            let h = halves(r, r2, mirrored(EXP));
            let g = if KEEPS_LOST { r2.fms(h, k.fnma(k.c(LN2_LO), head - r)) - r } else { r2.fms(h, r) };
            let one = x.c(1.0);
            // The least normal number stands for what is below it: both are lost beside 1.
            const LEAST: $float = ROUND + BIAS + ($float::MIN_EXP - 1) as $float;
            let power = t.at_least(LEAST).power();
            let w = one + power;
            let d = w + g;
            // What the two sums lost, of which the first is that of the smaller of 1 and the power.
            let rest = (g - (d - w)) + (power - (w - one));
            let rest = lo.map_or(rest, |lo| lo.fnma(one + g, rest));
            let q = one / d;
            (q.fma(q.fnma(rest, q.fnma(d, one)), q), k, t - x.c(BIAS))
        }

        /// The logistic sigmoid, `1 / (1 + e^-x)`. Largest error 0.97 ulp in single precision, 0.93 ulp in
        /// double.
        ///
        /// ±0 give ½, +∞ gives 1, -∞ gives +0, through the subnormal numbers.
        #[inline(always)]
        pub(crate) fn sigmoid<T: Lane<Num = $float>>(x: T) -> T {
            let (v, k, t) = logistic(x, None);
            v.scaled(k, t).nan_of(x)
        }

        /// `x·v·2^k`, where that is 0 below `least`: rounded only once among the subnormal numbers. -∞ gives NaN, as the
        /// product of the frameworks does.
        #[inline(always)]
        fn times<T: Lane<Num = $float>>(x: T, least: $float, (v, k, t): (T, T, T)) -> T {
            let y = (x.at_least(least) * v).scaled(k, t);
            x.c($float::NAN).or(x.less(x.c($float::MIN)), y).nan_of(x)
        }

        /// `x·sigmoid(x)`. Largest error 1.73 ulp in single precision, 1.64 ulp in double.
        #[inline(always)]
        pub(crate) fn silu<T: Lane<Num = $float>>(x: T) -> T {
            times(x, LOGISTIC_LEAST, logistic(x, None))
        }

        /// `x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2`, which is `x·sigmoid(u)` with twice the argument of the
        /// hyperbolic tangent as `u`. Largest error 1.74 ulp in single precision, 1.58 ulp in double.
        #[inline(always)]
        pub(crate) fn gelu_tanh<T: Lane<Num = $float>>(x: T) -> T {
            // u = b·(A + B·b²) in two parts, for an error of u becomes a relative error of the result. Beyond ±GELU_MOST
            // the sigmoid is 0 or 1.
            let (a, a_lo) = (x.c(GELU_A.0), x.c(GELU_A.1));
            let (b, b_lo) = (x.c(GELU_B.0), x.c(GELU_B.1));
            let y = x.at_most(GELU_MOST).at_least(-GELU_MOST);
            let s = y * y;
            let s_lo = y.fms(y, s);
            let p = s * b;
            let w = a + p;
            let back = w - a;
            let lost = (a - (w - back)) + (p - back);
            let w_lo = s_lo.fma(b, s.fma(b_lo, lost + (s.fms(b, p) + a_lo)));
            let u = y * w;
            let u_lo = y.fma(w_lo, y.fms(w, u));
            times(x, -GELU_MOST, logistic(u, Some(u_lo)))
        }

        /// The sine of `x`, `turn` quarter turns on, for `|x| ≤` [`TRIG_NEAR`].
        #[inline(always)]
        fn quarter<T: Lane<Num = $float>>(x: T, turn: Option<$float>) -> T {
            // The quotient n, and the rest in [-π/4, π/4] as r - lo. All but the last of the differences are exact. The
            // signs are such that -0 gives -0.
            let t = x.fma(x.c(FRAC_2_PI), x.c(ROUND));
            let n = t - x.c(ROUND);
            let head = n.fnma(n.c(TURN[0]), x);
            let r = n.fnma(n.c(TURN[1]), head);
            let lo = n.fma(n.c(TURN[2]), n.fma(n.c(TURN[1]), r - head));
            // The square with what `lo` takes from it: the cosine feels both roundings.
            let s = r.fms(r, (r + r) * lo);
            let quadrant = turn.map_or(t, |turn| t + x.c(turn));
            // The sine is r - r·s·q(s) - lo, the cosine 1 - s·q(s) with another q.
            let odd = quadrant.odd();
            let q = s.picked((odd, quadrant.lowest()), COS, s, SIN);
            let (sin, cos) = (r - (r * s).fma(q, lo), s.fnma(q, x.c(1.0)));
            cos.or(odd, sin).turned(quadrant)
        }

        /// The sine, for `|x| ≤` [`TRIG_NEAR`]. Largest error 0.88 ulp in single precision, 0.88 ulp in double. ±0 give ±0,
        /// a NaN some NaN.
        #[inline(always)]
        pub(crate) fn sin_near<T: Lane<Num = $float>>(x: T) -> T {
            quarter(x, None)
        }

        /// The cosine, for `|x| ≤` [`TRIG_NEAR`]. Largest error 0.89 ulp in single precision, 0.88 ulp in double. A NaN gives
        /// some NaN.
        #[inline(always)]
        pub(crate) fn cos_near<T: Lane<Num = $float>>(x: T) -> T {
            quarter(x, Some(1.0))
        }
    };
}

/// The functions of `f32`.
pub(crate) mod single {
    use super::super::exp::single::{EXP_MAX, EXP_MIN, LN2_HI, LN2_LO, ROUND};

    bodies!(f32);

    /// `(e^r - 1 - r) / r²` for `|r| ≤ 0.3468`, lowest first: within `2^-28.2` of `e^r`.
    const EXP: [f32; 5] = [0.49999994, 0.16666521, 0.04166826, 0.008368666, 0.0013821173];

    /// `(e^2r - 1 - 2r) / r²` for r from -0.0917 to 0.2562, lowest first: within `2^-29.3` of `e^2r - 1`.
    const EXPM1_TWICE: [f32; 6] = [2.0, 1.3333347, 0.6666639, 0.26650035, 0.089688905, 0.026371757];
    /// `ln 2 / 2`.
    const TANH_LN2: [f32; 1] = [std::f32::consts::LN_2 / 2.0];
    /// What is taken from the argument before it is divided by `ln 2 / 2` and rounded: `k` is 1 from 0.2554 on, where the
    /// result is ¼, not from 0.1733.
    const TANH_SHIFT: f32 = 0.0821;
    /// From here on the hyperbolic tangent is 1.
    const TANH_MOST: f32 = 9.5;
    /// Below it `y` is small.
    const TANH_NEAR: f32 = 0.5;

    /// Below the one the logistic sigmoid is 0 also times its argument, above the other it is 1.
    const LOGISTIC_LEAST: f32 = -110.0;
    const LOGISTIC_MOST: f32 = 18.0;
    /// Whether it needs what the reduction of its argument rounded off.
    const KEEPS_LOST: bool = false;

    /// `2·√(2/π)` and 0.044715 times that, each with what rounding lost.
    const GELU_A: (f32, f32) = (f32::from_bits(0x3fcc_422a), f32::from_bits(0xb342_bc9b));
    const GELU_B: (f32, f32) = (f32::from_bits(0x3d92_2279), f32::from_bits(0x3124_d8b5));
    const GELU_MOST: f32 = 11.0;

    /// The largest magnitude that [`sin_near`] and [`cos_near`] take: 255 quarter turns.
    pub(crate) const TRIG_NEAR: f32 = 400.0;

    /// π/2 in three parts. The second has 16 bits, so that its product with a quotient below 2^8 is exact; the sum misses
    /// π/2 by less than 2^-65. None is negative, so that -0 stays what it is.
    const TURN: [f32; 3] = [f32::from_bits(0x3fc9_0fda), f32::from_bits(0x33a2_2100), f32::from_bits(0x2b51_846a)];

    /// `(1 - sin r / r) / r²`, within 2^-27.8 of the sine, and `(1 - cos r) / r²`, within 2^-32.9 of the cosine, both in
    /// `r²` for `|r| ≤ π/4`, lowest first.
    const SIN: [f32; 3] = [0.16666654, -0.008332106, 0.00019507883];
    const COS: [f32; 4] = [0.5, -0.041666646, 0.0013887308, -2.4432093e-05];

    /// `erf a / a - 1` in `a²` for `a` up to [`ERF_NEAR`], lowest first: within `2^-27.2` of `erf a / a`.
    const ERF: [f32; 6] = [0.12837917, -0.37612593, 0.11282912, -0.026809536, 0.0050618816, -0.00063749636];
    const ERF_NEAR: f32 = 0.84375;
    /// From here on the error function is 1.
    const ERF_MOST: f32 = 3.95;
    /// `log2(erfc a / erfc n) / (a - n)` in `a - n` with [`ERF_NEAR`] as n, lowest first: `erfc a` is within `2^-28.6·erf a`.
    const LOG_ERFC: [f32; 6] = [-3.4317374, -1.1860218, -0.06965547, 0.016665148, -0.0030202745, 0.0002960827];
    /// `-erfc n·2^r` for `|r| ≤ ½`, lowest first, within `2^-25.7·erf n`, above 0 twice that.
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
        // erfc a = erfc NEAR·2^(d·g), whose exponent is small where the result feels it.
        let a = x.abs().at_most(ERF_MOST);
        let d = a - a.c(ERF_NEAR);
        let g = d.horner(LOG_ERFC);
        let t = d.fma(g, d.c(ROUND + BIAS));
        let k = t - d.c(ROUND + BIAS);
        // Both forms are a polynomial times something, and something added.
        let near = a.less(a.c(ERF_NEAR));
        let q = (a * a).picked((near, d.sign()), ERF, d.fms(g, k), MINUS_ERFC);
        q.fma(a.or(near, t.power()), a.or(near, a.c(1.0))).signed(x).nan_of(x)
    }
}

/// The functions of `f64`.
pub(crate) mod double {
    use super::super::exp::double::{EXP_MAX, EXP_MIN, LN2_HI, LN2_LO, ROUND};
    use super::super::trig_reduce::{HALF_PI as TURN, SMALL_BOUND};

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

    /// `(e^2r - 1 - 2r) / r²` for r from -0.0917 to 0.2562, lowest first: within `2^-56.0` of `e^2r - 1`.
    const EXPM1_TWICE: [f64; 11] = [
        2.0,
        1.333333333333334,
        0.6666666666666635,
        0.2666666666661068,
        0.08888888889255045,
        0.025396825528766917,
        0.0063492049404742235,
        0.0014109297322923227,
        0.0002823209472924975,
        5.057172734111208e-05,
        1.0228578116285962e-05,
    ];
    /// `ln 2 / 2` in two parts.
    const TANH_LN2: [f64; 2] = [LN2_HI / 2.0, LN2_LO / 2.0];
    /// What is taken from the argument before it is divided by `ln 2 / 2` and rounded: `k` is 1 from 0.2554 on, where the
    /// result is ¼, not from 0.1733.
    const TANH_SHIFT: f64 = 0.0821;
    /// From here on the hyperbolic tangent is 1.
    const TANH_MOST: f64 = 20.0;
    /// Below it `y` is small.
    const TANH_NEAR: f64 = 0.5;

    /// Below the one the logistic sigmoid is 0 also times its argument, above the other it is 1.
    const LOGISTIC_LEAST: f64 = -760.0;
    const LOGISTIC_MOST: f64 = 38.0;
    /// Whether it needs what the reduction of its argument rounded off.
    const KEEPS_LOST: bool = true;

    /// `2·√(2/π)` and 0.044715 times that, each with what rounding lost.
    const GELU_A: (f64, f64) = (1.5957691216057308, -9.96930880911092e-17);
    const GELU_B: (f64, f64) = (0.07135481627260025, -6.175149918155315e-19);
    const GELU_MOST: f64 = 22.0;

    /// The largest magnitude that [`sin_near`] and [`cos_near`] take.
    pub(crate) const TRIG_NEAR: f64 = SMALL_BOUND;

    /// `(1 - sin r / r) / r²`, within `2^-57.9` of the sine, and `(cos r - 1) / r²`, within `2^-63.9` of the cosine, both
    /// in `r²` for `|r| ≤ π/4`, lowest first.
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

    /// `(atanh s / s - 1) / s²`, twice, in `s²` for `|s| ≤ 1/5`, lowest first: within `2^-62.6` of `atanh s`.
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
