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
        $crate::ops::reductions::with_reductions! { $callback
            /// Sum. Integers wrap; bool is `or`.
            Add { method: add, operands: (x, y), output: Same, name: "add", integers: IntRange::Sum, accepts: ANY }
            { bool: |a, b| a | b; int: |a, b| a.wrapping_add(b); float: |a, b| a + b; complex: |a, b| a + b; }

            /// Difference. Integers wrap; bool is refused.
            Sub { method: sub, operands: (x, y), output: Same, name: "sub", aliases: &["subtract"], integers: IntRange::Difference,
                accepts: NO_BOOL, for_bool: Some("write `logical_xor`, or cast to an integer dtype"), torch: TORCH.no_bool() }
            { int: |a, b| a.wrapping_sub(b); float: |a, b| a - b; complex: |a, b| a - b; }

            /// Product. Integers wrap; bool is `and`; complex is the plain formula.
            Mul { method: mul, operands: (x, y), output: Same, name: "mul", aliases: &["multiply"], integers: IntRange::Product,
                accepts: ANY, torch: TORCH.wide_both() }
            { bool: |a, b| a & b; int: |a, b| a.wrapping_mul(b); float: |a, b| a * b; complex: |a, b| Cplx::mul(a, b); }

            /// True quotient. Integers and bool give a float; complex division is scaled against overflow.
            Div { method: div, operands: (x, y), output: Same, name: "div", aliases: &["divide", "true_divide"], promotion: IntToFloat,
                numpy: NUMPY.promotes(IntToDouble),
                accepts: NO_C32, torch: TORCH.wide_both() }
            { float: |a, b| a / b; complex: kernel |a, b| CplxFn::div(a, b); }

            /// Quotient rounded towards minus infinity, as Python's `//`. An integer zero divisor is an error; `MIN // -1` is `MIN`.
            FloorDivide { method: floor_divide, operands: (x, y), output: Same, name: "floor_divide", aliases: &["div_floor"],
                numpy: NUMPY.bools(I8),
                integers: IntRange::FloorQuotient, accepts: NUMBERS, torch: TORCH.wide(),
                jax: JAX.promotes(BoolToInt).accepts(REALS) }
            { int_checked: kernel |a, b| IntFn::floor_div(a, b); float: kernel |a, b| RealFn::floor_div(a, b); }

            /// Remainder with the sign of the divisor, as Python's `%`. An integer zero divisor is an error; a zero float remainder keeps the dividend's sign. Of complex numbers (Paddle only): x minus y times the Gaussian integer nearest to x / y.
            Remainder { method: remainder, operands: (x, y), output: Same, name: "remainder", aliases: &["mod"],
                numpy: NUMPY.bools(I8),
                integers: IntRange::FloorRest, accepts: NUMBERS, paddle: PADDLE.accepts(NUMBERS.union(FLOATS_C)),
                jax: JAX.promotes(BoolToInt).accepts(REALS) }
            { int_checked: kernel |a, b| IntFn::floor_mod(a, b); float: kernel |a, b| RealFn::floor_mod(a, b);
              complex: kernel |a, b| CplxFn::remainder(a, b); }

            /// Power. Integer powers are exact and wrap; a negative integer exponent gives 0 unless the base is 1 or -1, and is an error as a scalar.
            Pow { method: pow, operands: (x, y), output: Same, name: "pow", integers: IntRange::Power, accepts: POW,
                numpy: NUMPY.bools(I8),
                torch: TORCH.fits_but(SINGLE), jax: JAX.promotes(BoolToInt).accepts(NO_C32).weak(Weakness::Power) }
            { int: kernel |a, b| IntFn::power(a, b); float: kernel |a, b| RealFn::pow(a, b); complex: kernel |a, b| CplxFn::pow(a, b); }

            /// Larger operand; NaN if either is NaN; +0 is larger than -0. Of complex numbers (NumPy only) the lexicographically larger one.
            Maximum { method: maximum, operands: (x, y), output: Same, name: "maximum", exactness: Exact, integers: IntRange::Larger,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, paddle: PADDLE.no_scalar(), jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a | b; int: |a, b| Int::maximum(a, b); float: |a, b| Real::maximum(a, b);
              complex: |a, b| Cplx::maximum(a, b); }

            /// Smaller operand; NaN if either is NaN; -0 is smaller than +0. Of complex numbers (NumPy only) the lexicographically smaller one.
            Minimum { method: minimum, operands: (x, y), output: Same, name: "minimum", exactness: Exact, integers: IntRange::Smaller,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, paddle: PADDLE.no_scalar(), jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a & b; int: |a, b| Int::minimum(a, b); float: |a, b| Real::minimum(a, b);
              complex: |a, b| Cplx::minimum(a, b); }

            /// Larger operand; the other one if one is NaN; +0 is larger than -0.
            Fmax { method: fmax, operands: (x, y), output: Same, name: "fmax", exactness: Exact, integers: IntRange::Larger,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, paddle: PADDLE.no_scalar(), jax: JAX.accepts(NO_C32) }
            { bool: |a, b| a | b; int: |a, b| Int::maximum(a, b); float: |a, b| Real::fmax(a, b);
              complex: |a, b| Cplx::fmax(a, b); }

            /// Smaller operand; the other one if one is NaN; -0 is smaller than +0.
            Fmin { method: fmin, operands: (x, y), output: Same, name: "fmin", exactness: Exact, integers: IntRange::Smaller,
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
            BitwiseNot { method: bitwise_not, operands: (x), output: Same, name: "bitwise_not", exactness: Exact,
                integers: IntRange::Complement, accepts: BITS }
            { bool: |a| !a; int: |a| !a; }

            /// The second operand where the condition (a bool tensor) is true, else the third. Moves bits: NaNs keep their payload.
            Where { method: where_, operands: (condition, x, y), output: Same, name: "where", exactness: Bits, integers: IntRange::Choice,
                accepts: ANY, torch: TORCH.fits_but(HALVES), paddle: PADDLE.zero_dim_tensor() }
            { moves; }

            /// Conversion to a dtype. Rounds once, to nearest, ties to even; float to integer truncates, saturates, and converts NaN to 0; complex to real drops the imaginary part; to bool is `x != 0`.
            Cast { method: cast_to, operands: (x), output: Same, name: "cast", aliases: &["astype"], promotion: Given, accepts: ANY }
            { moves; }

            /// The same bits under another dtype of the same size. A byte viewed as bool is true if it is not 0.
            ViewAs { method: view_bits, operands: (x), output: Same, name: "view_as", exactness: Exact, promotion: Given, accepts: ANY }
            { moves; }

            /// Negation. Integers wrap; bool is refused. Flips the sign bit of floats, including NaN.
            Neg { method: neg, operands: (x), output: Same, name: "neg", aliases: &["negative"], exactness: Bits,
                integers: IntRange::Negated, accepts: NO_BOOL, for_bool: Some("write `logical_not`") }
            { int: |a| a.wrapping_neg(); float: bits |a| -a; complex: bits |a| -a; }

            /// Absolute value; the modulus of a complex number, as a real dtype. `abs(MIN)` is `MIN`.
            Abs { method: abs, operands: (x), output: Real, name: "abs", aliases: &["absolute"], exactness: BitsReal,
                numpy: NUMPY.accepts(ANY),
                integers: IntRange::Magnitude, accepts: NO_BOOL, jax: JAX.accepts(NO_C32) }
            { bool: |a| a; int: |a| Int::absolute(a); float: bits |a| a.abs(); complex: kernel |a| CplxFn::modulus(a); }

            /// The sign as -1, 0 or 1; 0 for NaN and for both zeros.
            Sign { method: sign, operands: (x), output: Same, name: "sign", exactness: Exact, integers: IntRange::Sign,
                numpy: NUMPY.accepts(NO_BOOL),
                accepts: REALS, jax: JAX.accepts(NUMBERS.union(FLOATS_C)) }
            { bool: |a| a; int: |a| Int::sign(a); float: |a| Real::sign(a); }

            /// The operand times itself. Bool gives i64.
            Square { method: square, operands: (x), output: Same, name: "square", integers: IntRange::Square, promotion: BoolToInt,
                numpy: NUMPY.bools(I8),
                accepts: NO_C32 }
            { int: |a| a.wrapping_mul(a); float: |a| a * a; complex: |a| Cplx::mul(a, a); }

            /// Square root, correctly rounded; NaN below zero. Complex: the root with a non-negative real part.
            Sqrt { method: sqrt, operands: (x), output: Same, name: "sqrt", promotion: IntToFloat, accepts: NO_C32 }
            { float: |a| Real::sqrt(a); complex: kernel |a| CplxFn::sqrt(a); }

            /// 1 / sqrt(x).
            Rsqrt { method: rsqrt, operands: (x), output: Same, name: "rsqrt", promotion: IntToFloat, accepts: NO_C32,
                jax: JAX.accepts(FLOATS_C) }
            { float: |a| Real::rsqrt(a); complex: kernel |a| CplxFn::rsqrt(a); }

            /// 1 / x. Of integers (NumPy only) rounded towards zero, and the largest number for 0.
            Reciprocal { method: reciprocal, operands: (x), output: Same, name: "reciprocal", promotion: IntToFloat,
                numpy: NUMPY.promotes(Common).bools(I8),
                accepts: NO_C32 }
            { int: kernel |a| IntFn::reciprocal(a); float: |a| 1.0 / a; complex: kernel |a| CplxFn::reciprocal(a); }

            /// e to the power x.
            Exp { method: exp, operands: (x), output: Same, name: "exp", promotion: IntToFloat, accepts: NO_C32 }
            { float: |a| Real::exp(a); complex: kernel |a| CplxFn::exp(a); }

            /// exp(x) - 1 without cancellation near 0.
            Expm1 { method: expm1, operands: (x), output: Same, name: "expm1", promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::expm1(a); complex: kernel |a| CplxFn::expm1(a); }

            /// Natural logarithm; NaN below zero, -inf at zero.
            Log { method: log, operands: (x), output: Same, name: "log", aliases: &["ln"], promotion: IntToFloat, accepts: NO_C32 }
            { float: |a| Real::log(a); complex: kernel |a| CplxFn::log(a); }

            /// log(1 + x) without cancellation near 0.
            Log1p { method: log1p, operands: (x), output: Same, name: "log1p", promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::log1p(a); complex: kernel |a| CplxFn::log1p(a); }

            /// Sine, accurate for every finite argument.
            Sin { method: sin, operands: (x), output: Same, name: "sin", promotion: IntToFloat, accepts: NO_C32 }
            { float_guarded: |a| RealFn::sin(a), RealFn::sin_small(a), Real::sin_near(a); complex: kernel |a| CplxFn::sin(a); }

            /// Cosine, accurate for every finite argument.
            Cos { method: cos, operands: (x), output: Same, name: "cos", promotion: IntToFloat, accepts: NO_C32 }
            { float_guarded: |a| RealFn::cos(a), RealFn::cos_small(a), Real::cos_near(a); complex: kernel |a| CplxFn::cos(a); }

            /// Tangent, accurate for every finite argument.
            Tan { method: tan, operands: (x), output: Same, name: "tan", promotion: IntToFloat, accepts: NO_C32 }
            { float_guarded: kernel |a| RealFn::tan(a), RealFn::tan_small(a), RealFn::tan_small(a); complex: kernel |a| CplxFn::tan(a); }

            /// Hyperbolic tangent.
            Tanh { method: tanh, operands: (x), output: Same, name: "tanh", promotion: IntToFloat, accepts: NO_C32 }
            { float: |a| Real::tanh(a); complex: kernel |a| CplxFn::tanh(a); }

            /// 1 / (1 + exp(-x)).
            Sigmoid { method: sigmoid, operands: (x), output: Same, name: "sigmoid", promotion: IntToFloat, accepts: NO_C32,
                jax: JAX.accepts(FLOATS_C) }
            { float: |a| Real::sigmoid(a); complex: kernel |a| CplxFn::sigmoid(a); }

            /// The error function.
            Erf { method: erf, operands: (x), output: Same, name: "erf", promotion: IntToFloat, accepts: REALS }
            { float: |a| Real::erf(a); }

            /// The operand where it is positive, else 0; NaN stays NaN.
            Relu { method: relu, operands: (x), output: Same, name: "relu", exactness: Exact, integers: IntRange::Positive,
                accepts: NUMBERS, jax: JAX.accepts(NO_C32).beside_zero() }
            { int: |a| Int::relu(a); float: |a| Real::relu(a);
              complex: |a| { let zero = Cplx::re(a).c(0.0); Cplx::maximum(a, Cplx::pair(zero, zero)) }; }

            /// Largest integer not greater than the operand. Integers are unchanged.
            Floor { method: floor, operands: (x), output: Same, name: "floor", exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(REALS),
                accepts: NUMBERS, jax: JAX.accepts(REALS) }
            { bool: |a| a; int: |a| a; float: |a| Real::floor(a); }

            /// Smallest integer not less than the operand. Integers are unchanged.
            Ceil { method: ceil, operands: (x), output: Same, name: "ceil", exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(REALS),
                accepts: NUMBERS, jax: JAX.accepts(REALS) }
            { bool: |a| a; int: |a| a; float: |a| Real::ceil(a); }

            /// Nearest integer, ties to even. Integers are unchanged.
            Round { method: round, operands: (x), output: Same, name: "round", exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(NO_BOOL).bools(F16),
                accepts: NUMBERS, jax: JAX.accepts(NUMBERS.union(FLOATS_C)) }
            { int: |a| a; float: |a| Real::round(a); complex: |a| Cplx::round(a); }

            /// The operand rounded towards zero. Integers are unchanged.
            Trunc { method: trunc, operands: (x), output: Same, name: "trunc", exactness: Exact, integers: IntRange::First,
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

            /// 2 to the power x.
            Exp2 { method: exp2, operands: (x), output: Same, name: "exp2", promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::exp2(a); complex: kernel |a| CplxFn::pow(CplxFn::real(2.0), a); }

            /// Logarithm to base 2.
            Log2 { method: log2, operands: (x), output: Same, name: "log2", promotion: IntToFloat, accepts: NO_C32,
                jax: JAX.strong() }
            { float: kernel |a| RealFn::log2(a); complex: kernel |a| CplxFn::log2(a); }

            /// Logarithm to base 10.
            Log10 { method: log10, operands: (x), output: Same, name: "log10", promotion: IntToFloat, accepts: NO_C32,
                jax: JAX.strong() }
            { float: kernel |a| RealFn::log10(a); complex: kernel |a| CplxFn::log10(a); }

            /// Cube root.
            Cbrt { method: cbrt, operands: (x), output: Same, name: "cbrt", promotion: IntToFloat, accepts: REALS }
            { float: kernel |a| RealFn::cbrt(a); }

            /// Arc sine; NaN outside [-1, 1].
            Asin { method: asin, operands: (x), output: Same, name: "asin", aliases: &["arcsin"], promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::asin(a); complex: kernel |a| CplxFn::asin(a); }

            /// Arc cosine; NaN outside [-1, 1].
            Acos { method: acos, operands: (x), output: Same, name: "acos", aliases: &["arccos"], promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::acos(a); complex: kernel |a| CplxFn::acos(a); }

            /// Arc tangent.
            Atan { method: atan, operands: (x), output: Same, name: "atan", aliases: &["arctan"], promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::atan(a); complex: kernel |a| CplxFn::atan(a); }

            /// Hyperbolic sine.
            Sinh { method: sinh, operands: (x), output: Same, name: "sinh", promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::sinh(a); complex: kernel |a| CplxFn::sinh(a); }

            /// Hyperbolic cosine.
            Cosh { method: cosh, operands: (x), output: Same, name: "cosh", promotion: IntToFloat, accepts: NO_C32 }
            { float: kernel |a| RealFn::cosh(a); complex: kernel |a| CplxFn::cosh(a); }

            /// Inverse of the hyperbolic sine.
            Asinh { method: asinh, operands: (x), output: Same, name: "asinh", aliases: &["arcsinh"], promotion: IntToFloat,
                accepts: NO_C32 }
            { float: kernel |a| RealFn::asinh(a); complex: kernel |a| CplxFn::asinh(a); }

            /// Inverse of the hyperbolic cosine; NaN below 1.
            Acosh { method: acosh, operands: (x), output: Same, name: "acosh", aliases: &["arccosh"], promotion: IntToFloat,
                accepts: NO_C32 }
            { float: kernel |a| RealFn::acosh(a); complex: kernel |a| CplxFn::acosh(a); }

            /// Inverse of the hyperbolic tangent; NaN outside [-1, 1].
            Atanh { method: atanh, operands: (x), output: Same, name: "atanh", aliases: &["arctanh"], promotion: IntToFloat,
                accepts: NO_C32 }
            { float: kernel |a| RealFn::atanh(a); complex: kernel |a| CplxFn::atanh(a); }

            /// 1 - erf(x) without cancellation.
            Erfc { method: erfc, operands: (x), output: Same, name: "erfc", promotion: IntToFloat, accepts: REALS }
            { float: kernel |a| RealFn::erfc(a); }

            /// The sign as -1, 0 or 1; of a complex number, the number divided by its modulus.
            Sgn { method: sgn, operands: (x), output: Same, name: "sgn", exactness: ExactReal, integers: IntRange::Sign, accepts: ANY }
            { bool: |a| a; int: |a| Int::sign(a); float: |a| Real::sign(a); complex: kernel |a| CplxFn::sgn(a); }

            /// The operand without its integer part; keeps the sign.
            Frac { method: frac, operands: (x), output: Same, name: "frac", exactness: Exact,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                accepts: FLOATS }
            { float: |a| a - Real::trunc(a); }

            /// x * sigmoid(x).
            Silu { method: silu, operands: (x), output: Same, name: "silu", aliases: &["swish"],
                numpy: NUMPY.promotes(IntToFloat).accepts(ANY),
                accepts: FLOATS_C }
            { float: |a| Real::silu(a); complex: kernel |a| Cplx::mul(a, CplxFn::sigmoid(a)); }

            /// x times the normal distribution function of x: x / 2 * erfc(-x / sqrt 2).
            Gelu { method: gelu, operands: (x), output: Same, name: "gelu",
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                accepts: FLOATS, jax: JAX.promotes(IntToFloat).accepts(REALS).strong() }
            { float: kernel |a| RealFn::gelu(a); }

            /// The tanh approximation of `gelu`.
            GeluTanh { method: gelu_tanh, operands: (x), output: Same, name: "gelu_tanh",
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                accepts: FLOATS, jax: JAX.promotes(IntToFloat).accepts(NO_C32).strong() }
            { float: |a| Real::gelu_tanh(a); complex: kernel |a| CplxFn::gelu_tanh(a); }

            /// log(1 + exp(x)).
            Softplus { method: softplus, operands: (x), output: Same, name: "softplus",
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                accepts: FLOATS, jax: JAX.promotes(IntToFloat).accepts(NO_C32).beside_zero().weak(Weakness::Real) }
            { float: kernel |a| RealFn::log1pexp(a); complex: kernel |a| CplxFn::logaddexp(a, CplxFn::ZERO); }

            /// The real part.
            RealPart { method: real, operands: (x), output: Real, name: "real", exactness: Exact, integers: IntRange::First, accepts: ANY,
                jax: JAX.accepts(NO_C32) }
            { bool: |a| a; int: |a| a; float: |a| a; complex: |a| Cplx::re(a); }

            /// The imaginary part of a complex number. NumPy gives 0 for real numbers.
            ImagPart { method: imag, operands: (x), output: Real, name: "imag", exactness: Exact,
                integers: IntRange::Zero, numpy: NUMPY.accepts(ANY),
                accepts: COMPLEX, jax: JAX.accepts(NO_C32) }
            { bool: |a| a.c(false); int: |a| a.c(0); float: |a| a.c(0.0); complex: |a| Cplx::im(a); }

            /// The complex conjugate; real numbers are unchanged.
            Conj { method: conj, operands: (x), output: Same, name: "conj", exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.bools(I8),
                accepts: ANY }
            { bool: |a| a; int: |a| a; float: |a| a; complex: |a| Cplx::conj(a); }

            /// The argument of a complex number; 0 or pi for real ones, NaN for NaN.
            Angle { method: angle, operands: (x), output: Real, name: "angle", promotion: IntToFloat,
                numpy: NUMPY.bools(F64),
                accepts: NO_C32, jax: JAX.weak(Weakness::Float).default_float() }
            { float: |a| Real::angle(a); complex: kernel |a| CplxFn::angle(a); }

            /// The operand itself; bool is refused.
            Positive { method: positive, operands: (x), output: Same, name: "positive", exactness: Exact, integers: IntRange::First,
                accepts: NO_BOOL, jax: JAX.accepts(NO_C32) }
            { bool: |a| a; int: |a| a; float: |a| a; complex: |a| a; }

            /// Remainder with the sign of the dividend, as C's `fmod`. An integer zero divisor is an error.
            Fmod { method: fmod, operands: (x, y), output: Same, name: "fmod", exactness: Exact, integers: IntRange::TruncRest,
                numpy: NUMPY.bools(I8),
                accepts: NUMBERS, jax: JAX.promotes(BoolToInt).accepts(REALS) }
            { int_checked: kernel |a, b| IntFn::trunc_mod(a, b); float: kernel |a, b| RealFn::fmod(a, b); }

            /// Quotient rounded towards zero. An integer zero divisor is an error; `MIN / -1` is `MIN`.
            DivTrunc { method: div_trunc, operands: (x, y), output: Same, name: "div_trunc", aliases: &["trunc_divide"],
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
            Hypot { method: hypot, operands: (x, y), output: Same, name: "hypot", accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                paddle: PADDLE.promotes(IntToFloat).accepts(NUMBERS),
                jax: JAX.promotes(IntToFloat).accepts(REALS).strong() }
            { float: kernel |a, b| RealFn::hypot(a, b); }

            /// The first operand's magnitude with the second one's sign.
            Copysign { method: copysign, operands: (x, y), output: Same, name: "copysign", exactness: Bits, promotion: IntToFloat,
                jax: JAX.accepts(REALS_NO_F8), accepts: REALS }
            { float: |a, b| a.copysign(b); }

            /// Angle of the point (y, x) with the x axis.
            Atan2 { method: atan2, operands: (y, x), output: Same, name: "atan2", aliases: &["arctan2"], promotion: IntToFloat,
                accepts: REALS, paddle: PADDLE.promotes(IntToDouble).no_scalar(), jax: JAX.accepts(NO_C32) }
            { float: kernel |a, b| RealFn::atan2(a, b); complex: kernel |a, b| CplxFn::atan2(a, b); }

            /// x * log(y); 0 where x is 0 and y is not NaN.
            Xlogy { method: xlogy, operands: (x, y), output: Same, name: "xlogy", promotion: IntToFloat, accepts: REALS,
                jax: JAX.accepts(NO_C32) }
            { float: kernel |a, b| RealFn::xlogy(a, b); complex: kernel |a, b| CplxFn::xlogy(a, b); }

            /// log(exp(x) + exp(y)) without overflow.
            Logaddexp { method: logaddexp, operands: (x, y), output: Same, name: "logaddexp", accepts: FLOATS_C,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                paddle: PADDLE.promotes(IntToFloat).accepts(NUMBERS).no_scalar(),
                jax: JAX.promotes(IntToFloat).accepts(NO_C32).weak(Weakness::Real) }
            { float: kernel |a, b| RealFn::logaddexp(a, b); complex: kernel |a, b| CplxFn::logaddexp(a, b); }

            /// log2(2^x + 2^y) without overflow.
            Logaddexp2 { method: logaddexp2, operands: (x, y), output: Same, name: "logaddexp2", accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                paddle: PADDLE.no_scalar(), jax: JAX.promotes(IntToFloat).accepts(NO_C32).strong() }
            { float: kernel |a, b| RealFn::logaddexp2(a, b); complex: kernel |a, b| CplxFn::logaddexp2(a, b); }

            /// Power in f64, or c128 with a complex operand.
            FloatPower { method: float_power, operands: (x, y), output: Same, name: "float_power", promotion: ToDouble, accepts: ANY,
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
            Heaviside { method: heaviside, operands: (x, values), output: Same, name: "heaviside", exactness: Exact,
                numpy: NUMPY.promotes(IntToFloat),
                integers: IntRange::Step, accepts: REALS, torch: TORCH.same(), paddle: PADDLE.same(),
                jax: JAX.promotes(IntToFloat).weak(Weakness::FirstScalar) }
            { bool: |a, b| a | b; int: |a, b| Int::heaviside(a, b); float: |a, b| Real::heaviside(a, b); }

            /// The next representable number from the first operand towards the second.
            Nextafter { method: nextafter, operands: (x, y), output: Same, name: "nextafter", exactness: Bits, accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                paddle: PADDLE.no_scalar(), jax: JAX.promotes(IntToFloat).accepts(REALS) }
            { float: kernel |a, b| RealFn::nextafter(a, b); }

            /// The operand limited to two bounds; the upper one takes precedence; NaN if one of the three is NaN.
            Clamp { method: clamp, operands: (x, min, max), output: Same, name: "clamp", aliases: &["clip"], exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                integers: IntRange::Clamped, accepts: NUMBERS, torch: TORCH.bounds(), jax: JAX.accepts(REALS) }
            { bool: |x, low, high| (x | low) & high; int: |x, low, high| Int::minimum(Int::maximum(x, low), high);
              float: |x, low, high| Real::minimum(Real::maximum(x, low), high);
              complex: |x, low, high| Cplx::minimum(Cplx::maximum(x, low), high); }

            /// The operand, or the lower bound where it is below; NaN if one of the two is NaN.
            ClampMin { method: clamp_min, operands: (x, min), output: Same, name: "clamp_min", exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                integers: IntRange::Larger, accepts: REALS, torch: TORCH.bounds() }
            { bool: |a, b| a | b; int: |a, b| Int::maximum(a, b); float: |a, b| Real::maximum(a, b);
              complex: |a, b| Cplx::maximum(a, b); }

            /// x + alpha * y, rounded once in the half types. Integers wrap.
            AddScaled { method: add_scaled, operands: (x, y, alpha), output: Same, name: "add_scaled", integers: IntRange::PlusProduct,
                accepts: ANY, parameter: Some(PARAMETER), torch: TORCH.rounds_parameter().fits() }
            { bool: |x, y, a| x | (a & y); int: |x, y, a| x.wrapping_add(a.wrapping_mul(y)); float: |x, y, a| x + a * y;
              complex: |x, y, a| x + Cplx::mul(a, y); }

            /// x - alpha * y, rounded once in the half types. Integers wrap; bool is refused.
            SubScaled { method: sub_scaled, operands: (x, y, alpha), output: Same, name: "sub_scaled", integers: IntRange::MinusProduct,
                accepts: NO_BOOL, parameter: Some(PARAMETER), for_bool: Some("write `logical_xor`, or cast to an integer dtype"),
                torch: TORCH.no_bool().rounds_parameter().fits() }
            { int: |x, y, a| x.wrapping_sub(a.wrapping_mul(y)); float: |x, y, a| x - a * y;
              complex: |x, y, a| x - Cplx::mul(a, y); }

            /// x + value * a * b, rounded once in the half types. Integers wrap.
            Addcmul { method: addcmul, operands: (x, a, b, value), output: Same, name: "addcmul", integers: IntRange::PlusProducts,
                accepts: NO_BOOL, parameter: Some(PARAMETER.converted()), torch: TORCH.fits() }
            { int: |x, a, b, v| x.wrapping_add(v.wrapping_mul(a).wrapping_mul(b)); float: |x, a, b, v| x + v * a * b;
              complex: |x, a, b, v| x + Cplx::mul(Cplx::mul(v, a), b); }

            /// x + value * a / b, rounded once in the half types. PyTorch refuses integers for both a and b.
            Addcdiv { method: addcdiv, operands: (x, a, b, value), output: Same, name: "addcdiv", accepts: FLOATS_C,
                numpy: NUMPY.promotes(IntToFloat).accepts(ANY),
                parameter: Some(PARAMETER.converted()), torch: TORCH.no_integer_quotient() }
            { float: |x, a, b, v| x + v * a / b; complex: kernel |x, a, b, v| x + CplxFn::div(Cplx::mul(v, a), b); }

            /// The value converted to the dtype and shape of x: x after an in-place operation. Refused if the dtype of x is of a lower category.
            Assign { method: assign, operands: (x, value), output: Same, name: "assign", exactness: Exact, integers: IntRange::Second,
                promotion: First, accepts: ANY }
            { bool: |_x, v| v; int: |_x, v| v; float: |_x, v| v; complex: |_x, v| v; }

            /// The first operand in the common dtype of both.
            PromoteWith { method: promote_with, operands: (x, y), output: Same, name: "promote_with", exactness: Exact,
                integers: IntRange::First, accepts: ANY, paddle: PADDLE.no_scalar_like_zero_dim() }
            { bool: |x, _y| x; int: |x, _y| x; float: |x, _y| x; complex: |x, _y| x; }

            /// The square of x - y.
            SquaredDifference { method: squared_difference, operands: (x, y), output: Same, name: "squared_difference",
                numpy: NUMPY.accepts(NO_BOOL),
                integers: IntRange::SquaredDifference, accepts: FLOATS, paddle: PADDLE.accepts(NO_BOOL).no_scalar_like_zero_dim() }
            { int: |x, y| { let d = x.wrapping_sub(y); d.wrapping_mul(d) }; float: |x, y| { let d = x - y; d * d };
              complex: |x, y| { let d = x - y; Cplx::mul(d, d) }; }

            /// Huber loss of x - y: half its square up to delta, and linear beyond. Under PyTorch's rules the result has the dtype of x.
            Huber { method: huber, operands: (x, y, delta), output: Same, name: "huber", accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                parameter: Some(PARAMETER.above(0.0)), torch: TORCH.to_first(), paddle: PADDLE.no_scalar() }
            { float: |x, y, delta| { let r = (x - y).abs(); Real::select(Real::le(r, delta), 0.5 * r * r, delta * (r - 0.5 * delta)) }; }

            /// Smooth L1 loss of x - y: its square over 2 beta below beta, and linear beyond.
            SmoothL1 { method: smooth_l1, operands: (x, y, beta), output: Same, name: "smooth_l1", accepts: FLOATS,
                numpy: NUMPY.promotes(IntToFloat).accepts(REALS),
                parameter: Some(PARAMETER.at_least(0.0)), paddle: PADDLE.no_scalar() }
            { float: |x, y, beta| { let r = (x - y).abs(); Real::select(Real::lt(r, beta), 0.5 * r * r / beta, r - 0.5 * beta) }; }

            /// x + weight * (end - x), exact at both ends.
            Lerp { method: lerp, operands: (x, end, weight), output: Same, name: "lerp", accepts: FLOATS_C, torch: TORCH.same().wide(),
                numpy: NUMPY.promotes(IntToFloat).accepts(ANY),
                paddle: PADDLE.same() }
            { float: |x, e, w| Real::select(Real::lt(w.abs(), w.c(0.5)), x + w * (e - x), e - (e - x) * (1.0 - w));
              complex: kernel |x, e, w| CplxFn::lerp(x, e, w); }
        }
    };
}
pub(crate) use for_each_op;
