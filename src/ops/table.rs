//! The rows of the op table. A row starts with its variant. The first braces hold the method, the operands, the kind of
//! result, and the fields of [`OpDef`](super::OpDef) that differ from [`OpDef::ROW`](super::OpDef::ROW); a rule set's
//! column holds the overrides of that rule set. The second braces hold the arithmetic by category.
//!
//! The arithmetic is expanded twice: in `kernels`, once for each Rust type of the category, and in `ssa`, which records
//! it for compiled loops and says what an expression may contain. `bool` is over bool, `int` over the integers, `float`
//! over f32 and f64 (the half types compute in f32 and round once), `complex` over the two complex types (c32 computes
//! in c64). `Int`, `Real` and `Cplx` are the traits of `kernels::num`. An expression marked `kernel` is expanded in
//! `kernels` only; one marked `bits` keeps the bits of NaNs, and applies to the half types too if the row's exactness
//! is `Bits`. `int_checked` reports a zero in the last operand as an error before it runs; `float_guarded` gives a
//! second and a third form, which vectorize and are valid for small and for smaller arguments. Sources of the NaN and
//! edge rules: the PyTorch and Paddle documentation of each op, and IEEE 754 / C99 for the functions.

/// Calls `$callback!` with all rows.
macro_rules! for_each_op {
    ($callback:ident) => {
        $crate::ops::functions::with_functions! { $callback
            /// Sum. Integers wrap; bool is `or`.
            Add { method: add, operands: (x, y), output: Same, name: "add",
                gradients: by([once(|d| d.g()), once(|d| d.g())]),
                integers: IntRange::Sum, accepts: ANY }
            { bool: |a, b| a | b; int: |a, b| a.wrapping_add(b); float: |a, b| a + b; complex: |a, b| a + b; }

            /// Difference. Integers wrap; bool is refused.
            Sub { method: sub, operands: (x, y), output: Same, name: "sub",
                gradients: by([once(|d| d.g()), once(|d| -d.g())]),
                aliases: &["subtract"], integers: IntRange::Difference,
                accepts: NO_BOOL, for_bool: Some("write `logical_xor`, or cast to an integer dtype"), torch: TORCH.no_bool() }
            { int: |a, b| a.wrapping_sub(b); float: |a, b| a - b; complex: |a, b| a - b; }

            /// Product. Integers wrap; bool is `and`; complex is the plain formula.
            Mul { method: mul, operands: (x, y), output: Same, name: "mul",
                gradients: by([once(|d| d.g() * d.x(1).conj()), once(|d| d.g() * d.x(0).conj())]),
                aliases: &["multiply"], integers: IntRange::Product,
                accepts: ANY, torch: TORCH.wide_both() }
            { bool: |a, b| a & b; int: |a, b| a.wrapping_mul(b); float: |a, b| a * b; complex: |a, b| Cplx::mul(a, b); }

            /// True quotient. Integers and bool give a float; complex division is scaled against overflow.
            Div { method: div, operands: (x, y), output: Same, name: "div",
                gradients: by([once(|d| d.g() / d.x(1).conj()), wide(|d| -d.g() * (d.x(0) / d.x(1) / d.x(1)).conj())]),
                aliases: &["divide", "true_divide"], promotion: IntToFloat,
                numpy: NUMPY.promotes(IntToDouble),
                accepts: NO_C32, torch: TORCH.wide_both() }
            { float: |a, b| a / b; complex: kernel |a, b| CplxFn::div(a, b); }

            /// Quotient rounded towards minus infinity, as Python's `//`. An integer zero divisor is an error; `MIN // -1` is `MIN`.
            FloorDivide { method: floor_divide, operands: (x, y), output: Same, name: "floor_divide",
                gradients: STEPS,
                aliases: &["div_floor"],
                numpy: NUMPY.bools(I8),
                integers: IntRange::FloorQuotient, accepts: NUMBERS, torch: TORCH.wide(),
                jax: JAX.promotes(BoolToInt).accepts(REALS) }
            { int_checked: kernel |a, b| IntFn::floor_div(a, b); float: kernel |a, b| RealFn::floor_div(a, b); }

            /// Remainder with the sign of the divisor, as Python's `%`. An integer zero divisor is an error; a zero float remainder keeps the dividend's sign. Of complex numbers (Paddle only): x minus y times the Gaussian integer nearest to x / y.
            Remainder { method: remainder, operands: (x, y), output: Same, name: "remainder",
                gradients: by([once(|d| d.g()), wide(rules::remainder_divisor)]),
                aliases: &["mod"],
                numpy: NUMPY.bools(I8),
                integers: IntRange::FloorRest, accepts: NUMBERS, paddle: PADDLE.accepts(NUMBERS.union(FLOATS_C)),
                jax: JAX.promotes(BoolToInt).accepts(REALS) }
            { int_checked: kernel |a, b| IntFn::floor_mod(a, b); float: kernel |a, b| RealFn::floor_mod(a, b);
              complex: kernel |a, b| CplxFn::remainder(a, b); }

            /// Power. Integer powers are exact and wrap; a negative integer exponent gives 0 unless the base is 1 or -1, and is an error as a scalar.
            Pow { method: pow, operands: (x, y), output: Same, name: "pow",
                gradients: by([wide(rules::power_base), wide(rules::power_exponent)]),
                integers: IntRange::Power, accepts: POW,
                numpy: NUMPY.bools(I8),
                torch: TORCH.fits_but(SINGLE), jax: JAX.promotes(BoolToInt).accepts(NO_C32).weak(Weakness::Power) }
            { int: kernel |a, b| IntFn::power(a, b); float: kernel |a, b| RealFn::pow(a, b); complex: kernel |a, b| CplxFn::pow(a, b); }

            /// Larger operand; NaN if either is NaN; +0 is larger than -0. Of complex numbers (NumPy only) the lexicographically larger one.
            Maximum { method: maximum, operands: (x, y), output: Same, name: "maximum",
                gradients: by([once(|d| rules::larger(d, 0)), once(|d| rules::larger(d, 1))]),
                exactness: Exact, integers: IntRange::Larger,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, paddle: PADDLE.no_scalar(), jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a | b; int: |a, b| Int::maximum(a, b); float: |a, b| Real::maximum(a, b);
              complex: |a, b| Cplx::maximum(a, b); }

            /// Smaller operand; NaN if either is NaN; -0 is smaller than +0. Of complex numbers (NumPy only) the lexicographically smaller one.
            Minimum { method: minimum, operands: (x, y), output: Same, name: "minimum",
                gradients: by([once(|d| rules::smaller(d, 0)), once(|d| rules::smaller(d, 1))]),
                exactness: Exact, integers: IntRange::Smaller,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, paddle: PADDLE.no_scalar(), jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a & b; int: |a, b| Int::minimum(a, b); float: |a, b| Real::minimum(a, b);
              complex: |a, b| Cplx::minimum(a, b); }

            /// Larger operand; the other one if one is NaN; +0 is larger than -0.
            Fmax { method: fmax, operands: (x, y), output: Same, name: "fmax",
                gradients: by([once(|d| rules::ignoring_nans(d, true, 0)), once(|d| rules::ignoring_nans(d, true, 1))]),
                exactness: Exact, integers: IntRange::Larger,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, paddle: PADDLE.no_scalar(), jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a | b; int: |a, b| Int::maximum(a, b); float: |a, b| Real::fmax(a, b);
              complex: |a, b| Cplx::fmax(a, b); }

            /// Smaller operand; the other one if one is NaN; -0 is smaller than +0.
            Fmin { method: fmin, operands: (x, y), output: Same, name: "fmin",
                gradients: by([once(|d| rules::ignoring_nans(d, false, 0)), once(|d| rules::ignoring_nans(d, false, 1))]),
                exactness: Exact, integers: IntRange::Smaller,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, paddle: PADDLE.no_scalar(), jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a & b; int: |a, b| Int::minimum(a, b); float: |a, b| Real::fmin(a, b);
              complex: |a, b| Cplx::fmin(a, b); }

            /// Whether the operands are equal, in their common dtype. NaN equals nothing.
            Eq { method: eq, operands: (x, y), output: Bool, name: "eq", aliases: &["equal"], exactness: Exact, accepts: ANY }
            { bool: |a, b| !(a ^ b); int: |a, b| Int::eq(a, b); float: |a, b| Real::eq(a, b); complex: |a, b| Cplx::eq(a, b); }

            /// Whether the operands differ, in their common dtype. NaN differs from everything.
            Ne { method: ne, operands: (x, y), output: Bool, name: "ne", aliases: &["not_equal"], exactness: Exact, accepts: ANY }
            { bool: |a, b| a ^ b; int: |a, b| Int::ne(a, b); float: |a, b| Real::ne(a, b); complex: |a, b| Cplx::ne(a, b); }

            /// Whether the first operand is less than the second. False with NaN. Complex numbers (NumPy only) compare by the real part, then the imaginary part.
            Lt { method: lt, operands: (x, y), output: Bool, name: "lt", aliases: &["less_than", "less"], exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, jax: JAX.accepts(NO_C32) }
            { bool: |a, b| !a & b; int: |a, b| Int::lt(a, b); float: |a, b| Real::lt(a, b);
              complex: |a, b| Cplx::lt(a, b); }

            /// Whether the first operand is less than or equal to the second. False with NaN. Complex numbers (NumPy only) compare by the real part, then the imaginary part.
            Le { method: le, operands: (x, y), output: Bool, name: "le", aliases: &["less_equal"], exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, jax: JAX.accepts(NO_C32) }
            { bool: |a, b| !a | b; int: |a, b| Int::le(a, b); float: |a, b| Real::le(a, b);
              complex: |a, b| Cplx::le(a, b); }

            /// Whether the first operand is greater than the second. False with NaN. Complex numbers (NumPy only) compare by the real part, then the imaginary part.
            Gt { method: gt, operands: (x, y), output: Bool, name: "gt", aliases: &["greater_than", "greater"], exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a & !b; int: |a, b| Int::gt(a, b); float: |a, b| Real::gt(a, b);
              complex: |a, b| Cplx::gt(a, b); }

            /// Whether the first operand is greater than or equal to the second. False with NaN. Complex numbers (NumPy only) compare by the real part, then the imaginary part.
            Ge { method: ge, operands: (x, y), output: Bool, name: "ge", aliases: &["greater_equal"], exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a | !b; int: |a, b| Int::ge(a, b); float: |a, b| Real::ge(a, b);
              complex: |a, b| Cplx::ge(a, b); }

            /// Whether both operands are nonzero. NaN counts as true.
            LogicalAnd { method: logical_and, operands: (x, y), output: Bool, name: "logical_and", exactness: Exact, accepts: NO_C32,
                paddle: PADDLE.zero_dim_tensor() }
            { bool: |a, b| a & b; int: |a, b| Int::truth(a) & Int::truth(b); float: |a, b| Real::truth(a) & Real::truth(b);
              complex: |a, b| Cplx::truth(a) & Cplx::truth(b); }

            /// Whether one of the operands is nonzero. NaN counts as true.
            LogicalOr { method: logical_or, operands: (x, y), output: Bool, name: "logical_or", exactness: Exact, accepts: NO_C32,
                paddle: PADDLE.zero_dim_tensor() }
            { bool: |a, b| a | b; int: |a, b| Int::truth(a) | Int::truth(b); float: |a, b| Real::truth(a) | Real::truth(b);
              complex: |a, b| Cplx::truth(a) | Cplx::truth(b); }

            /// Whether exactly one of the operands is nonzero. NaN counts as true.
            LogicalXor { method: logical_xor, operands: (x, y), output: Bool, name: "logical_xor", exactness: Exact, accepts: NO_C32,
                paddle: PADDLE.zero_dim_tensor() }
            { bool: |a, b| a ^ b; int: |a, b| Int::truth(a) ^ Int::truth(b); float: |a, b| Real::truth(a) ^ Real::truth(b);
              complex: |a, b| Cplx::truth(a) ^ Cplx::truth(b); }

            /// Whether the operand is zero. NaN gives false.
            LogicalNot { method: logical_not, operands: (x), output: Bool, name: "logical_not", exactness: Exact, accepts: NO_C32 }
            { bool: |a| !a; int: |a| !Int::truth(a); float: |a| !Real::truth(a); complex: |a| !Cplx::truth(a); }

            /// Bitwise and of bools or integers.
            BitwiseAnd { method: bitwise_and, operands: (x, y), output: Same, name: "bitwise_and", exactness: Exact,
                integers: IntRange::And, accepts: BITS, paddle: PADDLE.same() }
            { bool: |a, b| a & b; int: |a, b| a & b; }

            /// Bitwise or of bools or integers.
            BitwiseOr { method: bitwise_or, operands: (x, y), output: Same, name: "bitwise_or", exactness: Exact, integers: IntRange::Or,
                accepts: BITS, paddle: PADDLE.same() }
            { bool: |a, b| a | b; int: |a, b| a | b; }

            /// Bitwise exclusive or of bools or integers.
            BitwiseXor { method: bitwise_xor, operands: (x, y), output: Same, name: "bitwise_xor", exactness: Exact,
                integers: IntRange::Xor, accepts: BITS, paddle: PADDLE.same() }
            { bool: |a, b| a ^ b; int: |a, b| a ^ b; }

            /// Bitwise complement; logical not for bool.
            BitwiseNot { method: bitwise_not, operands: (x), output: Same, name: "bitwise_not",
                aliases: &["bitwise_invert"], exactness: Exact, integers: IntRange::Complement, accepts: BITS }
            { bool: |a| !a; int: |a| !a; }

            /// The second operand where the condition (a bool tensor) is true, else the third. Moves bits: NaNs keep their payload.
            Where { method: where_, operands: (condition, x, y), output: Same, name: "where",
                gradients: by([ZERO, once(|d| d.x(0).then(d.g(), 0.0)), once(|d| d.x(0).then(0.0, d.g()))]),
                exactness: Bits, integers: IntRange::Choice,
                accepts: ANY, torch: TORCH.fits_but(HALVES), paddle: PADDLE.zero_dim_tensor() }
            { moves; }

            /// Conversion to a dtype. Rounds once, to nearest, ties to even; float to integer truncates, saturates, and converts NaN to 0; complex to real drops the imaginary part; to bool is `x != 0`.
            Cast { method: cast_to, operands: (x), output: Same, name: "cast", aliases: &["astype"], promotion: Given, accepts: ANY }
            { moves; }

            /// The same bits under another dtype of the same size. A byte viewed as bool is true if it is not 0.
            ViewAs { method: view_bits, operands: (x), output: Same, name: "view_as",
                gradients: by([Gradient::Refused("it gives the same bits another meaning")]),
                exactness: Exact, promotion: Given, accepts: ANY }
            { moves; }

            /// Negation. Integers wrap; bool is refused. Flips the sign bit of floats, including NaN.
            Neg { method: neg, operands: (x), output: Same, name: "neg",
                gradients: by([once(|d| -d.g())]),
                aliases: &["negative"], exactness: Bits,
                integers: IntRange::Negated, accepts: NO_BOOL, for_bool: Some("write `logical_not`") }
            { int: |a| a.wrapping_neg(); float: bits |a| -a; complex: bits |a| -a; }

            /// Absolute value; the modulus of a complex number, as a real dtype. `abs(MIN)` is `MIN`.
            Abs { method: abs, operands: (x), output: Real, name: "abs",
                gradients: by([once(|d| d.g().convert() * d.x(0).sgn())]),
                aliases: &["absolute"], exactness: BitsReal,
                numpy: NUMPY.accepts(ANY),
                integers: IntRange::Magnitude, accepts: NO_BOOL, jax: JAX.accepts(NO_C32) }
            { bool: |a| a; int: |a| Int::absolute(a); float: bits |a| a.abs(); complex: kernel |a| CplxFn::modulus(a); }

            /// The sign as -1, 0 or 1; 0 for NaN and for both zeros.
            Sign { method: sign, operands: (x), output: Same, name: "sign",
                gradients: STEPS,
                exactness: Exact, integers: IntRange::Sign,
                numpy: NUMPY.accepts(NO_BOOL),
                accepts: REALS, jax: JAX.accepts(NUMBERS.union(FLOATS_C)) }
            { bool: |a| a; int: |a| Int::sign(a); float: |a| Real::sign(a); }

            /// The operand times itself. Bool gives i64.
            Square { method: square, operands: (x), output: Same, name: "square",
                gradients: by([wide(|d| d.g() * (d.x(0) * 2.0).conj())]),
                integers: IntRange::Square, promotion: BoolToInt,
                numpy: NUMPY.bools(I8),
                accepts: NO_C32 }
            { int: |a| a.wrapping_mul(a); float: |a| a * a; complex: |a| Cplx::mul(a, a); }

            /// Square root, correctly rounded; NaN below zero. Complex: the root with a non-negative real part.
            Sqrt { method: sqrt, operands: (x), output: Same, name: "sqrt",
                gradients: by([wide(|d| d.g() / (d.y() * 2.0).conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float: |a| Real::sqrt(a); complex: kernel |a| CplxFn::sqrt(a); }

            /// 1 / sqrt(x).
            Rsqrt { method: rsqrt, operands: (x), output: Same, name: "rsqrt",
                gradients: by([wide(|d| d.g() * -0.5 * (d.y() * d.y() * d.y()).conj())]),
                promotion: IntToFloat, accepts: NO_C32,
                jax: JAX.accepts(FLOATS_C) }
            { float: |a| Real::rsqrt(a); complex: kernel |a| CplxFn::rsqrt(a); }

            /// 1 / x. Of integers (NumPy only) rounded towards zero, and the largest number for 0.
            Reciprocal { method: reciprocal, operands: (x), output: Same, name: "reciprocal",
                gradients: by([wide(|d| -d.g() * d.y().squared().conj())]),
                promotion: IntToFloat,
                numpy: NUMPY.promotes(Common).bools(I8),
                accepts: NO_C32 }
            { int: kernel |a| IntFn::reciprocal(a); float: |a| 1.0 / a; complex: kernel |a| CplxFn::reciprocal(a); }

            /// e to the power x.
            Exp { method: exp, operands: (x), output: Same, name: "exp",
                gradients: by([once(|d| d.g() * d.y().conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float: |a| Real::exp(a); complex: kernel |a| CplxFn::exp(a); }

            /// exp(x) - 1 without cancellation near 0.
            Expm1 { method: expm1, operands: (x), output: Same, name: "expm1",
                gradients: by([wide(|d| d.g() * (d.y() + 1.0).conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::expm1(a); complex: kernel |a| CplxFn::expm1(a); }

            /// Natural logarithm; NaN below zero, -inf at zero.
            Log { method: log, operands: (x), output: Same, name: "log",
                gradients: by([once(|d| d.g() / d.x(0).conj())]),
                aliases: &["ln"], promotion: IntToFloat, accepts: NO_C32 }
            { float: |a| Real::log(a); complex: kernel |a| CplxFn::log(a); }

            /// log(1 + x) without cancellation near 0.
            Log1p { method: log1p, operands: (x), output: Same, name: "log1p",
                gradients: by([wide(|d| d.g() / (d.x(0) + 1.0).conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::log1p(a); complex: kernel |a| CplxFn::log1p(a); }

            /// Sine, accurate for every finite argument.
            Sin { method: sin, operands: (x), output: Same, name: "sin",
                gradients: by([wide(|d| d.g() * d.x(0).cos().conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float_guarded: |a| RealFn::sin(a), RealFn::sin_small(a), Real::sin_near(a); complex: kernel |a| CplxFn::sin(a); }

            /// Cosine, accurate for every finite argument.
            Cos { method: cos, operands: (x), output: Same, name: "cos",
                gradients: by([wide(|d| -d.g() * d.x(0).sin().conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float_guarded: |a| RealFn::cos(a), RealFn::cos_small(a), Real::cos_near(a); complex: kernel |a| CplxFn::cos(a); }

            /// Tangent, accurate for every finite argument.
            Tan { method: tan, operands: (x), output: Same, name: "tan",
                gradients: by([wide(|d| d.g() * (d.y().squared() + 1.0).conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float_guarded: kernel |a| RealFn::tan(a), RealFn::tan_small(a), RealFn::tan_small(a); complex: kernel |a| CplxFn::tan(a); }

            /// Hyperbolic tangent.
            Tanh { method: tanh, operands: (x), output: Same, name: "tanh",
                gradients: by([wide(|d| d.g() * (1.0 - d.y().squared()).conj())]),
                promotion: IntToFloat, accepts: NO_C32 }
            { float: |a| Real::tanh(a); complex: kernel |a| CplxFn::tanh(a); }

            /// 1 / (1 + exp(-x)).
            Sigmoid { method: sigmoid, operands: (x), output: Same, name: "sigmoid",
                gradients: by([wide(|d| d.g() * ((1.0 - d.y()) * d.y()).conj())]),
                promotion: IntToFloat, accepts: NO_C32,
                jax: JAX.accepts(FLOATS_C) }
            { float: |a| Real::sigmoid(a); complex: kernel |a| CplxFn::sigmoid(a); }

            /// The error function.
            Erf { method: erf, operands: (x), output: Same, name: "erf",
                gradients: by([wide(rules::bell)]),
                promotion: IntToFloat, accepts: REALS }
            { float: |a| Real::erf(a); }

            /// The operand where it is positive, else 0; NaN stays NaN.
            Relu { method: relu, operands: (x), output: Same, name: "relu",
                gradients: by([once(|d| d.y().le(0.0).then(0.0, d.g()))]),
                exactness: Exact, integers: IntRange::Positive,
                accepts: NUMBERS, jax: JAX.accepts(NO_C32).beside_zero() }
            { int: |a| Int::relu(a); float: |a| Real::relu(a);
              complex: |a| { let zero = Cplx::re(a).c(0.0); Cplx::maximum(a, Cplx::pair(zero, zero)) }; }

            /// Largest integer not greater than the operand. Integers are unchanged.
            Floor { method: floor, operands: (x), output: Same, name: "floor",
                gradients: STEPS,
                exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(REALS),
                accepts: NUMBERS, jax: JAX.accepts(REALS) }
            { bool: |a| a; int: |a| a; float: |a| Real::floor(a); }

            /// Smallest integer not less than the operand. Integers are unchanged.
            Ceil { method: ceil, operands: (x), output: Same, name: "ceil",
                gradients: STEPS,
                exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(REALS),
                accepts: NUMBERS, jax: JAX.accepts(REALS) }
            { bool: |a| a; int: |a| a; float: |a| Real::ceil(a); }

            /// Nearest integer, ties to even. Integers are unchanged.
            Round { method: round, operands: (x), output: Same, name: "round",
                gradients: STEPS,
                exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(NO_BOOL).bools(F16),
                accepts: NUMBERS, jax: JAX.accepts(NUMBERS.union(FLOATS_C)) }
            { int: |a| a; float: |a| Real::round(a); complex: |a| Cplx::round(a); }

            /// The operand rounded towards zero. Integers are unchanged.
            Trunc { method: trunc, operands: (x), output: Same, name: "trunc",
                gradients: STEPS,
                exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(REALS),
                accepts: NUMBERS, jax: JAX.accepts(REALS) }
            { bool: |a| a; int: |a| a; float: |a| Real::trunc(a); }

            /// Whether the operand (or a part of it) is NaN.
            Isnan { method: isnan, operands: (x), output: Bool, name: "isnan", exactness: Exact, accepts: ANY }
            { bool: |a| a.c(false); int: |a| a.mask(false); float: |a| Real::is_nan(a); complex: |a| Cplx::is_nan(a); }

            /// Whether the operand (or a part of it) is infinite.
            Isinf { method: isinf, operands: (x), output: Bool, name: "isinf", exactness: Exact, accepts: ANY }
            { bool: |a| a.c(false); int: |a| a.mask(false); float: |a| Real::is_inf(a); complex: |a| Cplx::is_inf(a); }

            /// Whether the operand (both parts of a complex number) is neither infinite nor NaN.
            Isfinite { method: isfinite, operands: (x), output: Bool, name: "isfinite", exactness: Exact, accepts: ANY }
            { bool: |a| a.c(true); int: |a| a.mask(true); float: |a| Real::is_finite(a); complex: |a| Cplx::is_finite(a); }
        }
    };
}
pub(crate) use for_each_op;
