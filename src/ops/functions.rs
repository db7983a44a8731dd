//! The rows of the op table from the second half of the elementary functions on, with those of several operands.
//!
//! Guarantees: they follow the rows of `table`, as which they are written. Does not: have reductions, which `reductions` has.

/// Calls `$callback!` with the rows, these and those of `reductions`.
macro_rules! with_functions {
    ($callback:ident $($rows:tt)*) => {
        $crate::ops::reductions::with_reductions! { $callback
            $($rows)*

            /// 2 to the power x.
            Exp2 { method: exp2, operands: (x), output: Same, name: "exp2",
                gradients: by([wide(|d| d.g() * d.y().conj() * LN_2)]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::exp2(a); complex: kernel |a| CplxFn::pow(CplxFn::real(2.0), a); }

            /// Logarithm to base 2.
            Log2 { method: log2, operands: (x), output: Same, name: "log2",
                gradients: by([wide(|d| d.g() / (d.x(0).conj() * LN_2))]),
                promotion: IntToFloat, accepts: NO_C32,
                jax: JAX.strong() }
            { float: kernel |a| RealFn::log2(a); complex: kernel |a| CplxFn::log2(a); }

            /// Logarithm to base 10.
            Log10 { method: log10, operands: (x), output: Same, name: "log10",
                gradients: by([wide(|d| d.g() / (d.x(0).conj() * LN_10))]),
                promotion: IntToFloat, accepts: NO_C32,
                jax: JAX.strong() }
            { float: kernel |a| RealFn::log10(a); complex: kernel |a| CplxFn::log10(a); }

            /// Cube root.
            Cbrt { method: cbrt, operands: (x), output: Same, name: "cbrt",
                gradients: by([wide(|d| d.g() / (d.y().squared() * 3.0))]),
                promotion: IntToFloat, accepts: REALS }
            { float: kernel |a| RealFn::cbrt(a); }

            /// Arc sine; NaN outside [-1, 1].
            Asin { method: asin, operands: (x), output: Same, name: "asin",
                gradients: by([wide(|d| d.g() * (1.0 - d.x(0).squared()).rsqrt().conj())]),
                aliases: &["arcsin"], promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::asin(a); complex: kernel |a| CplxFn::asin(a); }

            /// Arc cosine; NaN outside [-1, 1].
            Acos { method: acos, operands: (x), output: Same, name: "acos",
                gradients: by([wide(|d| -d.g() * (1.0 - d.x(0).squared()).rsqrt().conj())]),
                aliases: &["arccos"], promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::acos(a); complex: kernel |a| CplxFn::acos(a); }

            /// Arc tangent.
            Atan { method: atan, operands: (x), output: Same, name: "atan",
                gradients: by([wide(|d| d.g() / (d.x(0).squared() + 1.0).conj())]),
                aliases: &["arctan"], promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::atan(a); complex: kernel |a| CplxFn::atan(a); }

            /// Hyperbolic sine.
            Sinh { method: sinh, operands: (x), output: Same, name: "sinh",
                gradients: by([wide(|d| d.g() * d.x(0).cosh().conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::sinh(a); complex: kernel |a| CplxFn::sinh(a); }

            /// Hyperbolic cosine.
            Cosh { method: cosh, operands: (x), output: Same, name: "cosh",
                gradients: by([wide(|d| d.g() * d.x(0).sinh().conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::cosh(a); complex: kernel |a| CplxFn::cosh(a); }

            /// Inverse of the hyperbolic sine.
            Asinh { method: asinh, operands: (x), output: Same, name: "asinh",
                gradients: by([wide(|d| d.g() * (d.x(0).squared() + 1.0).rsqrt().conj())]),
                aliases: &["arcsinh"], promotion: IntToFloat,
                accepts: NO_C32 }
            { float: kernel |a| RealFn::asinh(a); complex: kernel |a| CplxFn::asinh(a); }

            /// Inverse of the hyperbolic cosine; NaN below 1.
            Acosh { method: acosh, operands: (x), output: Same, name: "acosh",
                gradients: by([wide(rules::acosh)]),
                aliases: &["arccosh"], promotion: IntToFloat,
                accepts: NO_C32 }
            { float: kernel |a| RealFn::acosh(a); complex: kernel |a| CplxFn::acosh(a); }

            /// Inverse of the hyperbolic tangent; NaN outside [-1, 1].
            Atanh { method: atanh, operands: (x), output: Same, name: "atanh",
                gradients: by([wide(|d| d.g() / (1.0 - d.x(0).squared()).conj())]),
                aliases: &["arctanh"], promotion: IntToFloat,
                accepts: NO_C32 }
            { float: kernel |a| RealFn::atanh(a); complex: kernel |a| CplxFn::atanh(a); }

            /// 1 - erf(x) without cancellation.
            Erfc { method: erfc, operands: (x), output: Same, name: "erfc",
                gradients: by([wide(|d| -rules::bell(d))]),
                promotion: IntToFloat, accepts: REALS }
            { float: kernel |a| RealFn::erfc(a); }

            /// The sign as -1, 0 or 1; of a complex number, the number divided by its modulus.
            Sgn { method: sgn, operands: (x), output: Same, name: "sgn",
                gradients: by([wide(rules::unit)]),
                exactness: ExactReal, integers: IntRange::Sign, accepts: ANY }
            { bool: |a| a; int: |a| Int::sign(a); float: |a| Real::sign(a); complex: kernel |a| CplxFn::sgn(a); }

            /// The operand without its integer part; keeps the sign.
            Frac { method: frac, operands: (x), output: Same, name: "frac",
                gradients: by([once(|d| d.g())]),
                exactness: Exact,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                accepts: FLOATS }
            { float: |a| a - Real::trunc(a); }

            /// x * sigmoid(x).
            Silu { method: silu, operands: (x), output: Same, name: "silu",
                gradients: by([wide(rules::silu)]),
                aliases: &["swish"],
                numpy: NUMPY.promotes(IntToFloat).accepts(ANY),
                accepts: FLOATS_C }
            { float: |a| Real::silu(a); complex: kernel |a| Cplx::mul(a, CplxFn::sigmoid(a)); }

            /// x times the normal distribution function of x: x / 2 * erfc(-x / sqrt 2).
            Gelu { method: gelu, operands: (x), output: Same, name: "gelu",
                gradients: by([wide(rules::gelu)]),
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                accepts: FLOATS, jax: JAX.promotes(IntToFloat).accepts(REALS).strong() }
            { float: kernel |a| RealFn::gelu(a); }

            /// The tanh approximation of `gelu`.
            GeluTanh { method: gelu_tanh, operands: (x), output: Same, name: "gelu_tanh",
                gradients: by([wide(rules::gelu_tanh)]),
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                accepts: FLOATS, jax: JAX.promotes(IntToFloat).accepts(NO_C32).strong() }
            { float: |a| Real::gelu_tanh(a); complex: kernel |a| CplxFn::gelu_tanh(a); }

            /// log(1 + exp(x)).
            Softplus { method: softplus, operands: (x), output: Same, name: "softplus",
                gradients: by([wide(|d| d.g() * d.x(0).sigmoid().conj())]),
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                accepts: FLOATS, jax: JAX.promotes(IntToFloat).accepts(NO_C32).beside_zero().weak(Weakness::Real) }
            { float: kernel |a| RealFn::log1pexp(a); complex: kernel |a| CplxFn::logaddexp(a, CplxFn::ZERO); }

            /// The real part.
            RealPart { method: real, operands: (x), output: Real, name: "real",
                gradients: by([once(|d| d.g().convert())]),
                exactness: Exact, integers: IntRange::First, accepts: ANY,
                jax: JAX.accepts(NO_C32) }
            { bool: |a| a; int: |a| a; float: |a| a; complex: |a| Cplx::re(a); }

            /// The imaginary part of a complex number. NumPy gives 0 for real numbers.
            ImagPart { method: imag, operands: (x), output: Real, name: "imag",
                gradients: by([once(rules::imag)]),
                exactness: Exact,
                integers: IntRange::Zero, numpy: NUMPY.accepts(ANY),
                accepts: COMPLEX, jax: JAX.accepts(NO_C32) }
            { bool: |a| a.c(false); int: |a| a.c(0); float: |a| a.c(0.0); complex: |a| Cplx::im(a); }

            /// The complex conjugate; real numbers are unchanged.
            Conj { method: conj, operands: (x), output: Same, name: "conj",
                gradients: by([once(|d| d.g().conj())]),
                exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.bools(I8),
                accepts: ANY }
            { bool: |a| a; int: |a| a; float: |a| a; complex: |a| Cplx::conj(a); }

            /// The argument of a complex number; 0 or pi for real ones, NaN for NaN.
            Angle { method: angle, operands: (x), output: Real, name: "angle",
                gradients: by([wide(rules::angle)]),
                promotion: IntToFloat,
                numpy: NUMPY.bools(F64),
                accepts: NO_C32, jax: JAX.weak(Weakness::Float).default_float() }
            { float: |a| Real::angle(a); complex: kernel |a| CplxFn::angle(a); }

            /// The operand itself; bool is refused.
            Positive { method: positive, operands: (x), output: Same, name: "positive",
                gradients: by([once(|d| d.g())]),
                exactness: Exact, integers: IntRange::First,
                accepts: NO_BOOL, jax: JAX.accepts(NO_C32) }
            { bool: |a| a; int: |a| a; float: |a| a; complex: |a| a; }

            /// Remainder with the sign of the dividend, as C's `fmod`. An integer zero divisor is an error.
            Fmod { method: fmod, operands: (x, y), output: Same, name: "fmod",
                gradients: by([once(|d| d.g()), wide(|d| -d.g() * d.x(0).div_trunc(d.x(1)))]),
                exactness: Exact, integers: IntRange::TruncRest,
                numpy: NUMPY.bools(I8),
                accepts: NUMBERS, jax: JAX.promotes(BoolToInt).accepts(REALS) }
            { int_checked: kernel |a, b| IntFn::trunc_mod(a, b); float: kernel |a, b| RealFn::fmod(a, b); }

            /// Quotient rounded towards zero. An integer zero divisor is an error; `MIN / -1` is `MIN`.
            DivTrunc { method: div_trunc, operands: (x, y), output: Same, name: "div_trunc",
                gradients: STEPS,
                aliases: &["trunc_divide"],
                numpy: NUMPY.bools(I8),
                integers: IntRange::TruncQuotient, accepts: NUMBERS, torch: TORCH.wide(),
                jax: JAX.promotes(BoolToInt).accepts(REALS) }
            { int_checked: kernel |a, b| IntFn::trunc_div(a, b); float: |a, b| Real::trunc(a / b); }

            /// Left shift; a count below 0 or beyond the width gives 0.
            ShiftLeft { method: bitwise_left_shift, operands: (x, y), output: Same, name: "bitwise_left_shift", aliases: &["shift_left"],
                numpy: NUMPY.bools(I8),
                exactness: Exact, integers: IntRange::ShiftUp, accepts: INTS, paddle: PADDLE.same(),
                jax: JAX.promotes(BoolToInt).accepts(BITS) }
            { int: |a, b| Int::shift_left(a, b); }

            /// Arithmetic right shift; a count below 0 or beyond the width gives the sign fill.
            ShiftRight { method: bitwise_right_shift, operands: (x, y), output: Same, name: "bitwise_right_shift",
                numpy: NUMPY.bools(I8),
                aliases: &["shift_right"], exactness: Exact, integers: IntRange::ShiftDown, accepts: INTS, paddle: PADDLE.same(),
                jax: JAX.promotes(BoolToInt).accepts(BITS) }
            { int: |a, b| Int::shift_right(a, b); }

            /// sqrt(x^2 + y^2) without intermediate overflow.
            Hypot { method: hypot, operands: (x, y), output: Same, name: "hypot",
                gradients: by([wide(|d| d.g() * (d.x(0) / d.y())), wide(|d| d.g() * (d.x(1) / d.y()))]),
                accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                paddle: PADDLE.promotes(IntToFloat).accepts(NUMBERS),
                jax: JAX.promotes(IntToFloat).accepts(REALS).strong() }
            { float: kernel |a, b| RealFn::hypot(a, b); }

            /// The first operand's magnitude with the second one's sign.
            Copysign { method: copysign, operands: (x, y), output: Same, name: "copysign",
                gradients: by([wide(|d| d.g() * d.x(0).eq(0.0).then(0.0, d.y() / d.x(0))), ZERO]),
                exactness: Bits, promotion: IntToFloat,
                jax: JAX.accepts(REALS_NO_F8), accepts: REALS }
            { float: |a, b| a.copysign(b); }

            /// Angle of the point (y, x) with the x axis.
            Atan2 { method: atan2, operands: (y, x), output: Same, name: "atan2",
                gradients: by([wide(|d| rules::direction(d, 0)), wide(|d| rules::direction(d, 1))]),
                aliases: &["arctan2"], promotion: IntToFloat,
                accepts: REALS, paddle: PADDLE.promotes(IntToDouble).no_scalar(), jax: JAX.accepts(NO_C32) }
            { float: kernel |a, b| RealFn::atan2(a, b); complex: kernel |a, b| CplxFn::atan2(a, b); }

            /// x * log(y); 0 where x is 0 and y is not NaN.
            Xlogy { method: xlogy, operands: (x, y), output: Same, name: "xlogy",
                gradients: by([wide(rules::xlogy), wide(|d| d.g() * d.x(0).conj() / d.x(1).conj())]),
                promotion: IntToFloat, accepts: REALS,
                jax: JAX.accepts(NO_C32) }
            { float: kernel |a, b| RealFn::xlogy(a, b); complex: kernel |a, b| CplxFn::xlogy(a, b); }

            /// log(exp(x) + exp(y)) without overflow.
            Logaddexp { method: logaddexp, operands: (x, y), output: Same, name: "logaddexp",
                gradients: by([wide(|d| d.g() / ((d.x(1) - d.x(0)).exp() + 1.0).conj()), wide(|d| d.g() / ((d.x(0) - d.x(1)).exp() + 1.0).conj())]),
                accepts: FLOATS_C,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                paddle: PADDLE.promotes(IntToFloat).accepts(NUMBERS).no_scalar(),
                jax: JAX.promotes(IntToFloat).accepts(NO_C32).weak(Weakness::Real) }
            { float: kernel |a, b| RealFn::logaddexp(a, b); complex: kernel |a, b| CplxFn::logaddexp(a, b); }

            /// log2(2^x + 2^y) without overflow.
            Logaddexp2 { method: logaddexp2, operands: (x, y), output: Same, name: "logaddexp2",
                gradients: by([wide(|d| d.g() / ((d.x(1) - d.x(0)).exp2() + 1.0).conj()), wide(|d| d.g() / ((d.x(0) - d.x(1)).exp2() + 1.0).conj())]),
                accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                paddle: PADDLE.no_scalar(), jax: JAX.promotes(IntToFloat).accepts(NO_C32).strong() }
            { float: kernel |a, b| RealFn::logaddexp2(a, b); complex: kernel |a, b| CplxFn::logaddexp2(a, b); }

            /// Power in f64, or c128 with a complex operand.
            FloatPower { method: float_power, operands: (x, y), output: Same, name: "float_power",
                gradients: by([wide(rules::power_base), wide(rules::power_exponent)]),
                promotion: ToDouble, accepts: ANY,
                jax: JAX.promotes(IntToFloat).accepts(NO_C32) }
            { float: kernel |a, b| RealFn::pow(a, b); complex: kernel |a, b| CplxFn::pow(a, b); }

            /// Greatest common divisor; non-negative, except that it can be MIN.
            Gcd { method: gcd, operands: (x, y), output: Same, name: "gcd", exactness: Exact, integers: IntRange::Divisor, accepts: INTS,
                paddle: PADDLE.zero_dim_tensor(), jax: JAX.strong() }
            { int: kernel |a, b| IntFn::gcd(a, b); }

            /// Least common multiple, wrapping; 0 if an operand is 0.
            Lcm { method: lcm, operands: (x, y), output: Same, name: "lcm", exactness: Exact, integers: IntRange::Multiple, accepts: INTS,
                paddle: PADDLE.zero_dim_tensor(), jax: JAX.strong() }
            { int: kernel |a, b| IntFn::lcm(a, b); }

            /// 1 for positive operands, the second operand for zero, else 0, also for NaN. Equal dtypes only.
            Heaviside { method: heaviside, operands: (x, values), output: Same, name: "heaviside",
                gradients: by([ZERO, once(|d| d.x(0).eq(0.0).then(d.g(), 0.0))]),
                exactness: Exact,
                numpy: NUMPY.promotes(IntToFloat),
                integers: IntRange::Step, accepts: REALS, torch: TORCH.same(), paddle: PADDLE.same(),
                jax: JAX.promotes(IntToFloat).weak(Weakness::FirstScalar) }
            { bool: |a, b| a | b; int: |a, b| Int::heaviside(a, b); float: |a, b| Real::heaviside(a, b); }

            /// The next representable number from the first operand towards the second.
            Nextafter { method: nextafter, operands: (x, y), output: Same, name: "nextafter",
                gradients: by([once(|d| d.x(0).ne(d.x(1)).then(d.g(), 0.0)), ZERO]),
                exactness: Bits, accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                paddle: PADDLE.no_scalar(), jax: JAX.promotes(IntToFloat).accepts(REALS) }
            { float: kernel |a, b| RealFn::nextafter(a, b); }

            /// The operand limited to two bounds; the upper one takes precedence; NaN if one of the three is NaN.
            Clamp { method: clamp, operands: (x, min, max), output: Same, name: "clamp",
                gradients: by([once(rules::clamped), once(rules::clamp_lower), once(rules::clamp_upper)]),
                aliases: &["clip"], exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                integers: IntRange::Clamped, accepts: NUMBERS, torch: TORCH.bounds(), jax: JAX.accepts(REALS) }
            { bool: |x, low, high| (x | low) & high; int: |x, low, high| Int::minimum(Int::maximum(x, low), high);
              float: |x, low, high| Real::minimum(Real::maximum(x, low), high);
              complex: |x, low, high| Cplx::minimum(Cplx::maximum(x, low), high); }

            /// The operand, or the lower bound where it is below; NaN if one of the two is NaN.
            ClampMin { method: clamp_min, operands: (x, min), output: Same, name: "clamp_min",
                gradients: by([once(rules::clamped_below), once(|d| rules::larger(d, 1))]),
                exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                integers: IntRange::Larger, accepts: REALS, torch: TORCH.bounds() }
            { bool: |a, b| a | b; int: |a, b| Int::maximum(a, b); float: |a, b| Real::maximum(a, b);
              complex: |a, b| Cplx::maximum(a, b); }

            /// x + alpha * y, rounded once in the half types. Integers wrap.
            AddScaled { method: add_scaled, operands: (x, y, alpha), output: Same, name: "add_scaled",
                gradients: by([once(|d| d.g()), once(|d| d.g() * d.x(2).conj())]),
                integers: IntRange::PlusProduct,
                accepts: ANY, parameter: Some(PARAMETER), torch: TORCH.rounds_parameter().fits() }
            { bool: |x, y, a| x | (a & y); int: |x, y, a| x.wrapping_add(a.wrapping_mul(y)); float: |x, y, a| x + a * y;
              complex: |x, y, a| x + Cplx::mul(a, y); }

            /// x - alpha * y, rounded once in the half types. Integers wrap; bool is refused.
            SubScaled { method: sub_scaled, operands: (x, y, alpha), output: Same, name: "sub_scaled",
                gradients: by([once(|d| d.g()), once(|d| -(d.g() * d.x(2).conj()))]),
                integers: IntRange::MinusProduct,
                accepts: NO_BOOL, parameter: Some(PARAMETER), for_bool: Some("write `logical_xor`, or cast to an integer dtype"),
                torch: TORCH.no_bool().rounds_parameter().fits() }
            { int: |x, y, a| x.wrapping_sub(a.wrapping_mul(y)); float: |x, y, a| x - a * y;
              complex: |x, y, a| x - Cplx::mul(a, y); }

            /// x + value * a * b, rounded once in the half types. Integers wrap.
            Addcmul { method: addcmul, operands: (x, a, b, value), output: Same, name: "addcmul",
                gradients: by([once(|d| d.g()), wide(|d| d.g() * (d.x(2) * d.x(3)).conj()), wide(|d| d.g() * (d.x(1) * d.x(3)).conj())]),
                integers: IntRange::PlusProducts,
                accepts: NO_BOOL, parameter: Some(PARAMETER.converted()), torch: TORCH.fits() }
            { int: |x, a, b, v| x.wrapping_add(v.wrapping_mul(a).wrapping_mul(b)); float: |x, a, b, v| x + v * a * b;
              complex: |x, a, b, v| x + Cplx::mul(Cplx::mul(v, a), b); }

            /// x + value * a / b, rounded once in the half types. PyTorch refuses integers for both a and b.
            Addcdiv { method: addcdiv, operands: (x, a, b, value), output: Same, name: "addcdiv",
                gradients: by([once(|d| d.g()), wide(|d| d.g() * (d.x(3) / d.x(2)).conj()), wide(|d| -d.g() * (d.x(3) * d.x(1) / d.x(2).squared()).conj())]),
                accepts: FLOATS_C,
                numpy: NUMPY.promotes(IntToFloat).accepts(ANY),
                parameter: Some(PARAMETER.converted()), torch: TORCH.no_integer_quotient() }
            { float: |x, a, b, v| x + v * a / b; complex: kernel |x, a, b, v| x + CplxFn::div(Cplx::mul(v, a), b); }

            /// The value converted to the dtype and shape of x: x after an in-place operation. Refused if the dtype of x is of a lower category.
            Assign { method: assign, operands: (x, value), output: Same, name: "assign",
                gradients: by([ZERO, once(|d| d.g())]),
                exactness: Exact, integers: IntRange::Second,
                promotion: First, accepts: ANY }
            { bool: |_x, v| v; int: |_x, v| v; float: |_x, v| v; complex: |_x, v| v; }

            /// The first operand in the common dtype of both.
            PromoteWith { method: promote_with, operands: (x, y), output: Same, name: "promote_with",
                gradients: by([once(|d| d.g()), ZERO]),
                exactness: Exact,
                integers: IntRange::First, accepts: ANY, paddle: PADDLE.no_scalar_like_zero_dim() }
            { bool: |x, _y| x; int: |x, _y| x; float: |x, _y| x; complex: |x, _y| x; }

            /// The square of x - y.
            SquaredDifference { method: squared_difference, operands: (x, y), output: Same, name: "squared_difference",
                gradients: by([wide(|d| ((d.x(0) - d.x(1)) * 2.0).conj() * d.g()), wide(|d| -(((d.x(0) - d.x(1)) * 2.0).conj() * d.g()))]),
                numpy: NUMPY.accepts(NO_BOOL),
                integers: IntRange::SquaredDifference, accepts: FLOATS, paddle: PADDLE.accepts(NO_BOOL).no_scalar_like_zero_dim() }
            { int: |x, y| { let d = x.wrapping_sub(y); d.wrapping_mul(d) }; float: |x, y| { let d = x - y; d * d };
              complex: |x, y| { let d = x - y; Cplx::mul(d, d) }; }

            /// Huber loss of x - y: half its square up to delta, and linear beyond. Under PyTorch's rules the result has the dtype of x.
            Huber { method: huber, operands: (x, y, delta), output: Same, name: "huber",
                gradients: by([wide(rules::huber), wide(|d| -rules::huber(d))]),
                accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                parameter: Some(PARAMETER.above(0.0)), torch: TORCH.to_first(), paddle: PADDLE.no_scalar() }
            { float: |x, y, delta| { let r = (x - y).abs(); Real::select(Real::le(r, delta), 0.5 * r * r, delta * (r - 0.5 * delta)) }; }

            /// Smooth L1 loss of x - y: its square over 2 beta below beta, and linear beyond.
            SmoothL1 { method: smooth_l1, operands: (x, y, beta), output: Same, name: "smooth_l1",
                gradients: by([wide(rules::smooth_l1), wide(|d| -rules::smooth_l1(d))]),
                accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                parameter: Some(PARAMETER.at_least(0.0)), paddle: PADDLE.no_scalar() }
            { float: |x, y, beta| { let r = (x - y).abs(); Real::select(Real::lt(r, beta), 0.5 * r * r / beta, r - 0.5 * beta) }; }

            /// x + weight * (end - x), exact at both ends.
            Lerp { method: lerp, operands: (x, end, weight), output: Same, name: "lerp",
                gradients: by([wide(|d| d.g() * (1.0 - d.x(2)).conj()), once(|d| d.g() * d.x(2).conj()), wide(|d| d.g() * (d.x(1) - d.x(0)).conj())]),
                accepts: FLOATS_C, torch: TORCH.same().wide(),
                numpy: NUMPY.promotes(IntToFloat).accepts(ANY),
                paddle: PADDLE.same() }
            { float: |x, e, w| Real::select(Real::lt(w.abs(), w.c(0.5)), x + w * (e - x), e - (e - x) * (1.0 - w));
              complex: kernel |x, e, w| CplxFn::lerp(x, e, w); }
        }
    };
}
pub(crate) use with_functions;
