//! Rows whose values are another row's but for what a rule set, a setting or a dtype does otherwise. `signature` gives such a
//! row for the op that the user applied, a rule set's by its `row`; a program can apply it itself too.
//!
//! Guarantees: a row here is never replaced by another one, but `fma_half` of other dtypes by `fma`. Does not: say which rule
//! set means which row.

/// Calls `$callback!` with the rows, and these.
macro_rules! with_departures {
    ($callback:ident $($rows:tt)*) => {
        $crate::ops::toys::with_toys! { $callback
            $($rows)*

            /// `floor_divide`, but 0 where the divisor is 0: NumPy's integer `//`.
            FloorDivideOrZero { method: floor_divide_or_zero, operands: (x, y), output: Same, name: "floor_divide_or_zero",
                gradients: STEPS,
                integers: IntRange::FloorQuotientOrZero, accepts: INTS }
            { int: kernel |a, b| IntFn::or_zero(a, b, IntFn::floor_div); }

            /// `remainder`, but 0 where the divisor is 0: NumPy's integer `%`.
            RemainderOrZero { method: remainder_or_zero, operands: (x, y), output: Same, name: "remainder_or_zero",
                integers: IntRange::FloorRest, accepts: INTS }
            { int: kernel |a, b| IntFn::or_zero(a, b, IntFn::floor_mod); }

            /// `fmod`, but 0 where the divisor is 0: NumPy's `fmod` of integers.
            FmodOrZero { method: fmod_or_zero, operands: (x, y), output: Same, name: "fmod_or_zero", exactness: Exact,
                integers: IntRange::TruncRest, accepts: INTS }
            { int: kernel |a, b| IntFn::or_zero(a, b, IntFn::trunc_mod); }

            /// `div_trunc`, but 0 where the divisor is 0, under NumPy's rules.
            DivTruncOrZero { method: div_trunc_or_zero, operands: (x, y), output: Same, name: "div_trunc_or_zero",
                gradients: STEPS,
                integers: IntRange::TruncQuotientOrZero, accepts: INTS }
            { int: kernel |a, b| IntFn::or_zero(a, b, IntFn::trunc_div); }

            /// `remainder` of floats, but a zero has the sign of the divisor too: NumPy's `%`.
            RemainderSigned { method: remainder_signed, operands: (x, y), output: Same, name: "remainder_signed",
                gradients: by([once(|d| d.g()), wide(|d| -d.g() * d.x(0).floor_divide(d.x(1)))]),
                accepts: FLOATS }
            { float: kernel |a, b| RealFn::signed_mod(a, b); }

            /// `pow` of integers, but a negative exponent is an error: NumPy's integer `**`.
            PowChecked { method: pow_checked, operands: (x, y), output: Same, name: "pow_checked", integers: IntRange::Power,
                accepts: INTS }
            { int_exponent: kernel |a, b| IntFn::power(a, b); }

            /// `sgn`, but NaN for NaN: NumPy's `sign` of floats and complex numbers.
            SignOrNan { method: sign_or_nan, operands: (x), output: Same, name: "sign_or_nan",
                gradients: by([wide(rules::unit)]),
                exactness: ExactReal,
                accepts: FLOATS_C }
            { float: |a| Real::select(Real::is_nan(a), a, Real::sign(a)); complex: kernel |a| CplxFn::sgn(a); }

            /// `sgn`, but NaN for NaN, and zeros keep their sign: JAX's `sign` of floats.
            SignOfZero { method: sign_of_zero, operands: (x), output: Same, name: "sign_of_zero",
                gradients: STEPS,
                exactness: Exact,
                accepts: FLOATS }
            { float: |a| Real::select(Real::gt(a.abs(), a.c(0.0)), Real::sign(a), a); }

            /// `angle` of floats, but pi for -0: NumPy's and JAX's.
            AngleSigned { method: angle_signed, operands: (x), output: Same, name: "angle_signed",
                gradients: by([wide(rules::angle)]),
                accepts: FLOATS }
            // An infinity has the sign of the zero; `copysign` would show the signs of NaNs too.
            { float: |a| Real::angle(Real::select(Real::eq(a, a.c(0.0)), a.c(1.0) / a, a)); }

            /// `heaviside`, but NaN where the first operand is NaN: NumPy's.
            HeavisideOrNan { method: heaviside_or_nan, operands: (x, values), output: Same, name: "heaviside_or_nan",
                gradients: by([ZERO, once(|d| d.x(0).eq(0.0).then(d.g(), 0.0))]),
                exactness: Exact, accepts: FLOATS }
            { float: |a, b| Real::select(Real::is_nan(a), a, Real::heaviside(a, b)); }

            /// `ldexp` with the exponent in the dtype of x: NumPy's, whose exponents are integers of any dtype.
            LdexpFloat { method: ldexp_float, operands: (x, e), output: Same, name: "ldexp_float",
                gradients: by([wide(|d| d.g() * d.x(1).exp2().conj()), wide(|d| d.g() * d.y().conj() * LN_2)]),
                accepts: FLOATS,
                jax: JAX.promotes(IntToFloat).accepts(REALS).count_apart().strong() }
            { float: kernel |x, e| RealFn::ldexp(x, e); }

            /// `fma` of the half types, which are computed in f32: there it is rounded so that rounding it to the half type gives the exact value rounded once. Of f32 and f64 it is `fma`.
            FmaHalf { method: fma_half, operands: (x, y, z), output: Same, name: "fma_half",
                gradients: by([once(|d| d.g() * d.x(1)), once(|d| d.g() * d.x(0)), once(|d| d.g())]),
                accepts: FLOATS }
            { float: kernel |x, y, z| RealFn::fma_odd(x, y, z); }

            /// `add_scaled` with alpha * y + x rounded once: PyTorch's.
            AddScaledFma { method: add_scaled_fma, operands: (x, y, alpha), output: Same, name: "add_scaled_fma",
                gradients: by([once(|d| d.g()), once(|d| d.g() * d.x(2).conj())]),
                accepts: FLOATS,
                parameter: Some(PARAMETER), torch: TORCH.rounds_parameter().fits() }
            { float: |x, y, a| Real::fma(y, a, x); }

            /// `sub_scaled` with x - alpha * y rounded once: PyTorch's.
            SubScaledFma { method: sub_scaled_fma, operands: (x, y, alpha), output: Same, name: "sub_scaled_fma",
                gradients: by([once(|d| d.g()), once(|d| -(d.g() * d.x(2).conj()))]),
                accepts: FLOATS,
                parameter: Some(PARAMETER), torch: TORCH.rounds_parameter().fits() }
            { float: |x, y, a| Real::fma(y, -a, x); }

            /// `addcmul` with the sum and the product before it rounded once, and value * a before that: PyTorch's.
            AddcmulFma { method: addcmul_fma, operands: (x, a, b, value), output: Same, name: "addcmul_fma",
                gradients: by([once(|d| d.g()), wide(|d| d.g() * (d.x(2) * d.x(3)).conj()), wide(|d| d.g() * (d.x(1) * d.x(3)).conj())]),
                accepts: FLOATS,
                parameter: Some(PARAMETER.converted()), torch: TORCH.fits() }
            { float: |x, a, b, v| Real::fma(v * a, b, x); }

            /// `lerp` with each sum and the product before it rounded once: PyTorch's.
            LerpFma { method: lerp_fma, operands: (x, end, weight), output: Same, name: "lerp_fma",
                gradients: by([wide(|d| d.g() * (1.0 - d.x(2)).conj()), once(|d| d.g() * d.x(2).conj()), wide(|d| d.g() * (d.x(1) - d.x(0)).conj())]),
                accepts: FLOATS,
                torch: TORCH.same().wide(), paddle: PADDLE.same() }
            { float: |x, e, w| Real::select(Real::lt(w.abs(), w.c(0.5)), Real::fma(w, e - x, x), Real::fma(w - w.c(1.0), e - x, e)); }

            /// Whether x is equal to the number that y's bits are under the other signedness: u64 and i64 as NumPy compares them, exactly.
            EqMixed { method: eq_mixed, operands: (x, y), output: Bool, name: "eq_mixed", exactness: Exact, accepts: INTS }
            { int: |a, b| Int::eq_mixed(a, b); }

            /// Whether x differs from the number that y's bits are under the other signedness: u64 and i64 as NumPy compares them, exactly.
            NeMixed { method: ne_mixed, operands: (x, y), output: Bool, name: "ne_mixed", exactness: Exact, accepts: INTS }
            { int: |a, b| Int::ne_mixed(a, b); }

            /// Whether x is less than the number that y's bits are under the other signedness: u64 and i64 as NumPy compares them, exactly.
            LtMixed { method: lt_mixed, operands: (x, y), output: Bool, name: "lt_mixed", exactness: Exact, accepts: INTS }
            { int: |a, b| Int::lt_mixed(a, b); }

            /// Whether x is at most the number that y's bits are under the other signedness: u64 and i64 as NumPy compares them, exactly.
            LeMixed { method: le_mixed, operands: (x, y), output: Bool, name: "le_mixed", exactness: Exact, accepts: INTS }
            { int: |a, b| Int::le_mixed(a, b); }

            /// Whether x is greater than the number that y's bits are under the other signedness: u64 and i64 as NumPy compares them, exactly.
            GtMixed { method: gt_mixed, operands: (x, y), output: Bool, name: "gt_mixed", exactness: Exact, accepts: INTS }
            { int: |a, b| Int::gt_mixed(a, b); }

            /// Whether x is at least the number that y's bits are under the other signedness: u64 and i64 as NumPy compares them, exactly.
            GeMixed { method: ge_mixed, operands: (x, y), output: Bool, name: "ge_mixed", exactness: Exact, accepts: INTS }
            { int: |a, b| Int::ge_mixed(a, b); }

            /// The complex number whose real part is that of x, and whose imaginary part is the real part of y.
            FromParts { method: from_parts, operands: (x, y), output: Same, name: "from_parts",
                gradients: by([once(|d| d.g().real().convert()), once(|d| d.g().imag().convert())]),
                exactness: Exact, accepts: COMPLEX }
            { complex: |x, y| Cplx::pair(Cplx::re(x), Cplx::re(y)); }
        }
    };
}
pub(crate) use with_departures;
