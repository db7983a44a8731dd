//! The rows. Columns, in order: variant, method, name, aliases, operands, result dtype, whether the result is
//! rounded, the range of an integer result, PyTorch's promotion and accepted dtypes, Paddle's, and the arithmetic by category.
//!
//! The arithmetic is expanded in `block`, once for each Rust type of the category: `bool` over bool, `int` over the
//! five integers, `float` over f32 and f64 (the half types compute in f32 and round once), `complex` over the two
//! complex types (c32 computes in c64). `Int`, `Real` and `Cplx` are the traits of `block::num`. `int_checked`
//! refuses a zero in the last operand before it runs; `float_guarded` gives a second and a third form, which
//! vectorize and are valid for small and for smaller arguments. Sources of the NaN and edge rules: the PyTorch and Paddle
//! documentation of each op, and IEEE 754 / C99 for the functions.

/// Calls `$callback!` with all rows.
macro_rules! for_each_op {
    ($callback:ident) => {
        $callback! {
            /// Sum. Integers wrap; bool is `or`.
            Add add "add" [] (x, y) Same Rounded Sum
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |a, b| a | b; int: |a, b| a.wrapping_add(b); float: |a, b| a + b; complex: |a, b| a + b; }

            /// Difference. Integers wrap; bool is refused.
            Sub sub "sub" ["subtract"] (x, y) Same Rounded Difference
            torch common(NO_BOOL).no_bool(), paddle common(NO_BOOL).paddle(),
            { int: |a, b| a.wrapping_sub(b); float: |a, b| a - b; complex: |a, b| a - b; }

            /// Product. Integers wrap; bool is `and`; complex is the plain formula.
            Mul mul "mul" ["multiply"] (x, y) Same Rounded Product
            torch common(ANY).wide_both(), paddle common(ANY).paddle(),
            { bool: |a, b| a & b; int: |a, b| a.wrapping_mul(b); float: |a, b| a * b; complex: |a, b| Cplx::mul(a, b); }

            /// True quotient. Integers and bool give a float; complex division is scaled against overflow.
            Div div "div" ["divide", "true_divide"] (x, y) Same Rounded Whole
            torch float(NO_C32).wide_both(), paddle float(NO_C32).paddle(),
            { float: |a, b| a / b; complex: |a, b| Cplx::div(a, b); }

            /// Quotient rounded towards minus infinity, as Python's `//`. An integer zero divisor is an error; `MIN // -1` is `MIN`.
            FloorDivide floor_divide "floor_divide" ["div_floor"] (x, y) Same Rounded FloorQuotient
            torch common(NUMBERS).wide(), paddle common(NUMBERS).paddle(),
            { int_checked: |a, b| Int::floor_div(a, b); float: |a, b| Real::floor_div(a, b); }

            /// Remainder with the sign of the divisor, as Python's `%`. An integer zero divisor is an error; a zero float remainder keeps the dividend's sign. Of complex numbers (Paddle alone): what is left of x after the multiple of y by the nearest Gaussian integer.
            Remainder remainder "remainder" ["mod"] (x, y) Same Rounded FloorRest
            torch common(NUMBERS), paddle common(NUMBERS.union(FLOATS_C)).paddle(),
            { int_checked: |a, b| Int::floor_mod(a, b); float: |a, b| Real::floor_mod(a, b);
              complex: |a, b| Cplx::remainder(a, b); }

            /// Power. Integer powers are exact and wrap; a negative integer exponent gives 0 unless the base is 1 or -1, and is refused as a scalar.
            Pow pow "pow" [] (x, y) Same Rounded Power
            torch common(POW).fits_but(SINGLE), paddle common(POW).paddle(),
            { int: |a, b| Int::power(a, b); float: |a, b| Real::pow(a, b); complex: |a, b| Cplx::pow(a, b); }

            /// Larger operand; NaN if either is NaN; +0 is larger than -0.
            Maximum maximum "maximum" [] (x, y) Same Exact Larger
            torch common(REALS), paddle common(REALS).paddle().no_scalar(),
            { bool: |a, b| a | b; int: |a, b| if a > b { a } else { b }; float: |a, b| Real::maximum(a, b); }

            /// Smaller operand; NaN if either is NaN; -0 is smaller than +0.
            Minimum minimum "minimum" [] (x, y) Same Exact Smaller
            torch common(REALS), paddle common(REALS).paddle().no_scalar(),
            { bool: |a, b| a & b; int: |a, b| if a < b { a } else { b }; float: |a, b| Real::minimum(a, b); }

            /// Larger operand; the other one if one is NaN; +0 is larger than -0.
            Fmax fmax "fmax" [] (x, y) Same Exact Larger
            torch common(REALS), paddle common(REALS).paddle().no_scalar(),
            { bool: |a, b| a | b; int: |a, b| if a > b { a } else { b }; float: |a, b| Real::fmax(a, b); }

            /// Smaller operand; the other one if one is NaN; -0 is smaller than +0.
            Fmin fmin "fmin" [] (x, y) Same Exact Smaller
            torch common(REALS), paddle common(REALS).paddle().no_scalar(),
            { bool: |a, b| a & b; int: |a, b| if a < b { a } else { b }; float: |a, b| Real::fmin(a, b); }

            /// Whether the operands are equal, in their common dtype. NaN equals nothing.
            Eq eq "eq" ["equal"] (x, y) Bool Exact Whole
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |a, b| a == b; int: |a, b| a == b; float: |a, b| a == b; complex: |a, b| a == b; }

            /// Whether the operands differ, in their common dtype. NaN differs from everything.
            Ne ne "ne" ["not_equal"] (x, y) Bool Exact Whole
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |a, b| a != b; int: |a, b| a != b; float: |a, b| a != b; complex: |a, b| a != b; }

            /// Whether the first operand is less. False with NaN.
            Lt lt "lt" ["less_than", "less"] (x, y) Bool Exact Whole
            torch common(REALS), paddle common(REALS).paddle(),
            { bool: |a, b| !a & b; int: |a, b| a < b; float: |a, b| a < b; }

            /// Whether the first operand is less or equal. False with NaN.
            Le le "le" ["less_equal"] (x, y) Bool Exact Whole
            torch common(REALS), paddle common(REALS).paddle(),
            { bool: |a, b| !a | b; int: |a, b| a <= b; float: |a, b| a <= b; }

            /// Whether the first operand is greater. False with NaN.
            Gt gt "gt" ["greater_than", "greater"] (x, y) Bool Exact Whole
            torch common(REALS), paddle common(REALS).paddle(),
            { bool: |a, b| a & !b; int: |a, b| a > b; float: |a, b| a > b; }

            /// Whether the first operand is greater or equal. False with NaN.
            Ge ge "ge" ["greater_equal"] (x, y) Bool Exact Whole
            torch common(REALS), paddle common(REALS).paddle(),
            { bool: |a, b| a | !b; int: |a, b| a >= b; float: |a, b| a >= b; }

            /// Whether both operands are nonzero. NaN counts as true.
            LogicalAnd logical_and "logical_and" [] (x, y) Bool Exact Whole
            torch common(NO_C32), paddle common(NO_C32).paddle().zero_dim_tensor(),
            { bool: |a, b| a & b; int: |a, b| (a != 0) & (b != 0); float: |a, b| (a != 0.0) & (b != 0.0);
              complex: |a, b| Cplx::truth(a) & Cplx::truth(b); }

            /// Whether one of the operands is nonzero. NaN counts as true.
            LogicalOr logical_or "logical_or" [] (x, y) Bool Exact Whole
            torch common(NO_C32), paddle common(NO_C32).paddle().zero_dim_tensor(),
            { bool: |a, b| a | b; int: |a, b| (a != 0) | (b != 0); float: |a, b| (a != 0.0) | (b != 0.0);
              complex: |a, b| Cplx::truth(a) | Cplx::truth(b); }

            /// Whether exactly one of the operands is nonzero. NaN counts as true.
            LogicalXor logical_xor "logical_xor" [] (x, y) Bool Exact Whole
            torch common(NO_C32), paddle common(NO_C32).paddle().zero_dim_tensor(),
            { bool: |a, b| a ^ b; int: |a, b| (a != 0) ^ (b != 0); float: |a, b| (a != 0.0) ^ (b != 0.0);
              complex: |a, b| Cplx::truth(a) ^ Cplx::truth(b); }

            /// Whether the operand is zero. NaN gives false.
            LogicalNot logical_not "logical_not" [] (x) Bool Exact Whole
            torch common(NO_C32), paddle common(NO_C32).paddle(),
            { bool: |a| !a; int: |a| a == 0; float: |a| a == 0.0; complex: |a| !Cplx::truth(a); }

            /// Bitwise and of bools or integers.
            BitwiseAnd bitwise_and "bitwise_and" [] (x, y) Same Exact And
            torch common(BITS), paddle common(BITS).paddle().same(),
            { bool: |a, b| a & b; int: |a, b| a & b; }

            /// Bitwise or of bools or integers.
            BitwiseOr bitwise_or "bitwise_or" [] (x, y) Same Exact Or
            torch common(BITS), paddle common(BITS).paddle().same(),
            { bool: |a, b| a | b; int: |a, b| a | b; }

            /// Bitwise exclusive or of bools or integers.
            BitwiseXor bitwise_xor "bitwise_xor" [] (x, y) Same Exact Xor
            torch common(BITS), paddle common(BITS).paddle().same(),
            { bool: |a, b| a ^ b; int: |a, b| a ^ b; }

            /// Bitwise complement; logical not for bool.
            BitwiseNot bitwise_not "bitwise_not" [] (x) Same Exact Complement
            torch common(BITS), paddle common(BITS).paddle(),
            { bool: |a| !a; int: |a| !a; }

            /// The second operand where the condition (a bool tensor) holds, else the third. Moves bits: NaNs keep their payload.
            Where where_ "where" [] (condition, x, y) Same Bits Choice
            torch common(ANY).fits_but(HALVES), paddle common(ANY).paddle().zero_dim_tensor(),
            { moves; }

            /// Conversion to a dtype. Rounds to nearest even, once; float to integer truncates, saturates, and takes NaN to 0; complex to real drops the imaginary part; to bool is `x != 0`.
            Cast cast_to "cast" ["astype"] (x) Same Rounded Whole
            torch GIVEN, paddle GIVEN.paddle(),
            { moves; }

            /// The same bits under another dtype of the same size. A byte that becomes bool is true if it is not 0.
            ViewAs view_bits "view_as" [] (x) Same Exact Whole
            torch GIVEN, paddle GIVEN.paddle(),
            { moves; }

            /// Negation. Integers wrap; bool is refused. Flips the sign bit of floats, of NaN too.
            Neg neg "neg" ["negative"] (x) Same Bits Negated
            torch common(NO_BOOL), paddle common(NO_BOOL).paddle(),
            { int: |a| a.wrapping_neg(); float: |a| -a; complex: |a| -a; }

            /// Absolute value; the modulus of a complex number, as a real dtype. `abs(MIN)` is `MIN`.
            Abs abs "abs" ["absolute"] (x) Real BitsReal Magnitude
            torch common(NO_BOOL), paddle common(NO_BOOL).paddle(),
            { int: |a| Int::absolute(a); float: |a| a.abs(); complex: |a| Cplx::modulus(a); }

            /// -1, 0 or 1 by the sign; 0 for NaN and for both zeros.
            Sign sign "sign" [] (x) Same Exact Sign
            torch common(REALS), paddle common(REALS).paddle(),
            { bool: |a| a; int: |a| Int::sign(a); float: |a| Real::sign(a); }

            /// The operand times itself. Bool gives i64.
            Square square "square" [] (x) Same Rounded Square
            torch bool_to_int(NO_C32), paddle bool_to_int(NO_C32).paddle(),
            { int: |a| a.wrapping_mul(a); float: |a| a * a; complex: |a| Cplx::mul(a, a); }

            /// Square root, correctly rounded; NaN below zero. Complex: the root with a non-negative real part.
            Sqrt sqrt "sqrt" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::sqrt(a); complex: |a| Cplx::sqrt(a); }

            /// 1 / sqrt(x).
            Rsqrt rsqrt "rsqrt" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| 1.0 / Real::sqrt(a); complex: |a| Cplx::rsqrt(a); }

            /// 1 / x.
            Reciprocal reciprocal "reciprocal" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| 1.0 / a; complex: |a| Cplx::reciprocal(a); }

            /// e to the power x.
            Exp exp "exp" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::exp(a); complex: |a| Cplx::exp(a); }

            /// exp(x) - 1 without cancellation near 0.
            Expm1 expm1 "expm1" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::expm1(a); complex: |a| Cplx::expm1(a); }

            /// Natural logarithm; NaN below zero, -inf at zero.
            Log log "log" ["ln"] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::log(a); complex: |a| Cplx::log(a); }

            /// log(1 + x) without cancellation near 0.
            Log1p log1p "log1p" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::log1p(a); complex: |a| Cplx::log1p(a); }

            /// Sine, accurate for every finite argument.
            Sin sin "sin" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float_guarded: |a| Real::sin(a), Real::sin_small(a), Real::sin_near(a); complex: |a| Cplx::sin(a); }

            /// Cosine, accurate for every finite argument.
            Cos cos "cos" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float_guarded: |a| Real::cos(a), Real::cos_small(a), Real::cos_near(a); complex: |a| Cplx::cos(a); }

            /// Tangent, accurate for every finite argument.
            Tan tan "tan" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float_guarded: |a| Real::tan(a), Real::tan_small(a), Real::tan_small(a); complex: |a| Cplx::tan(a); }

            /// Hyperbolic tangent.
            Tanh tanh "tanh" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::tanh(a); complex: |a| Cplx::tanh(a); }

            /// 1 / (1 + exp(-x)).
            Sigmoid sigmoid "sigmoid" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::sigmoid(a); complex: |a| Cplx::sigmoid(a); }

            /// The error function.
            Erf erf "erf" [] (x) Same Rounded Whole
            torch float(REALS), paddle float(REALS).paddle(),
            { float: |a| Real::erf(a); }

            /// The operand where it is positive, else 0; NaN stays NaN.
            Relu relu "relu" [] (x) Same Exact Positive
            torch common(NUMBERS), paddle common(NUMBERS).paddle(),
            { int: |a| if a > 0 { a } else { 0 }; float: |a| Real::relu(a); }

            /// Largest integer that is not greater. Integers stay.
            Floor floor "floor" [] (x) Same Exact First
            torch common(NUMBERS), paddle common(NUMBERS).paddle(),
            { int: |a| a; float: |a| Real::floor(a); }

            /// Smallest integer that is not less. Integers stay.
            Ceil ceil "ceil" [] (x) Same Exact First
            torch common(NUMBERS), paddle common(NUMBERS).paddle(),
            { int: |a| a; float: |a| Real::ceil(a); }

            /// Nearest integer, halves to even. Integers stay.
            Round round "round" [] (x) Same Exact First
            torch common(NUMBERS), paddle common(NUMBERS).paddle(),
            { int: |a| a; float: |a| Real::round(a); }

            /// The operand without its fraction. Integers stay.
            Trunc trunc "trunc" [] (x) Same Exact First
            torch common(NUMBERS), paddle common(NUMBERS).paddle(),
            { int: |a| a; float: |a| Real::trunc(a); }

            /// Whether the operand (or a part of it) is NaN.
            Isnan isnan "isnan" [] (x) Bool Exact Whole
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |_a| false; int: |_a| false; float: |a| a != a; complex: |a| (a.re != a.re) | (a.im != a.im); }

            /// Whether the operand (or a part of it) is infinite.
            Isinf isinf "isinf" [] (x) Bool Exact Whole
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |_a| false; int: |_a| false; float: |a| Real::is_inf(a);
              complex: |a| Real::is_inf(a.re) | Real::is_inf(a.im); }

            /// Whether the operand (with all its parts) is neither infinite nor NaN.
            Isfinite isfinite "isfinite" [] (x) Bool Exact Whole
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |_a| true; int: |_a| true; float: |a| Real::is_finite(a);
              complex: |a| Real::is_finite(a.re) & Real::is_finite(a.im); }

            /// 2 to the power x.
            Exp2 exp2 "exp2" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::exp2(a); complex: |a| Cplx::pow(Cplx::real(2.0), a); }

            /// Logarithm to base 2.
            Log2 log2 "log2" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::log2(a); complex: |a| Cplx::log2(a); }

            /// Logarithm to base 10.
            Log10 log10 "log10" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::log10(a); complex: |a| Cplx::log10(a); }

            /// Cube root.
            Cbrt cbrt "cbrt" [] (x) Same Rounded Whole
            torch float(REALS), paddle float(REALS).paddle(),
            { float: |a| Real::cbrt(a); }

            /// Arc sine; NaN outside [-1, 1].
            Asin asin "asin" ["arcsin"] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::asin(a); complex: |a| Cplx::asin(a); }

            /// Arc cosine; NaN outside [-1, 1].
            Acos acos "acos" ["arccos"] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::acos(a); complex: |a| Cplx::acos(a); }

            /// Arc tangent.
            Atan atan "atan" ["arctan"] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::atan(a); complex: |a| Cplx::atan(a); }

            /// Hyperbolic sine.
            Sinh sinh "sinh" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::sinh(a); complex: |a| Cplx::sinh(a); }

            /// Hyperbolic cosine.
            Cosh cosh "cosh" [] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::cosh(a); complex: |a| Cplx::cosh(a); }

            /// Inverse of the hyperbolic sine.
            Asinh asinh "asinh" ["arcsinh"] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::asinh(a); complex: |a| Cplx::asinh(a); }

            /// Inverse of the hyperbolic cosine; NaN below 1.
            Acosh acosh "acosh" ["arccosh"] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::acosh(a); complex: |a| Cplx::acosh(a); }

            /// Inverse of the hyperbolic tangent; NaN outside [-1, 1].
            Atanh atanh "atanh" ["arctanh"] (x) Same Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::atanh(a); complex: |a| Cplx::atanh(a); }

            /// 1 - erf(x) without cancellation.
            Erfc erfc "erfc" [] (x) Same Rounded Whole
            torch float(REALS), paddle float(REALS).paddle(),
            { float: |a| Real::erfc(a); }

            /// -1, 0 or 1 by the sign; of a complex number, the number over its modulus.
            Sgn sgn "sgn" [] (x) Same ExactReal Sign
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |a| a; int: |a| Int::sign(a); float: |a| Real::sign(a); complex: |a| Cplx::sgn(a); }

            /// The operand without its integer part; keeps the sign.
            Frac frac "frac" [] (x) Same Exact Whole
            torch common(FLOATS), paddle common(FLOATS).paddle(),
            { float: |a| a - Real::trunc(a); }

            /// x * sigmoid(x).
            Silu silu "silu" ["swish"] (x) Same Rounded Whole
            torch common(FLOATS_C), paddle common(FLOATS_C).paddle(),
            { float: |a| Real::silu(a); complex: |a| Cplx::mul(a, Cplx::sigmoid(a)); }

            /// x times the normal distribution function of x: x / 2 * erfc(-x / sqrt 2).
            Gelu gelu "gelu" [] (x) Same Rounded Whole
            torch common(FLOATS), paddle common(FLOATS).paddle(),
            { float: |a| Real::gelu(a); }

            /// The usual approximation of `gelu` by a hyperbolic tangent.
            GeluTanh gelu_tanh "gelu_tanh" [] (x) Same Rounded Whole
            torch common(FLOATS), paddle common(FLOATS).paddle(),
            { float: |a| Real::gelu_tanh(a); }

            /// log(1 + exp(x)).
            Softplus softplus "softplus" [] (x) Same Rounded Whole
            torch common(FLOATS), paddle common(FLOATS).paddle(),
            { float: |a| Real::log1pexp(a); }

            /// The real part.
            RealPart real "real" [] (x) Real Exact First
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |a| a; int: |a| a; float: |a| a; complex: |a| a.re; }

            /// The imaginary part of a complex number.
            ImagPart imag "imag" [] (x) Real Exact Whole
            torch common(COMPLEX), paddle common(COMPLEX).paddle(),
            { complex: |a| a.im; }

            /// The complex conjugate; real numbers stay.
            Conj conj "conj" [] (x) Same Exact First
            torch common(ANY), paddle common(ANY).paddle(),
            { bool: |a| a; int: |a| a; float: |a| a; complex: |a| a.conj(); }

            /// The argument of a complex number; 0 or pi for real ones, NaN for NaN.
            Angle angle "angle" [] (x) Real Rounded Whole
            torch float(NO_C32), paddle float(NO_C32).paddle(),
            { float: |a| Real::angle(a); complex: |a| Cplx::angle(a); }

            /// The operand itself; bool is refused.
            Positive positive "positive" [] (x) Same Exact First
            torch common(NO_BOOL), paddle common(NO_BOOL).paddle(),
            { int: |a| a; float: |a| a; complex: |a| a; }

            /// Remainder with the sign of the dividend, as C's `fmod`. An integer zero divisor is an error.
            Fmod fmod "fmod" [] (x, y) Same Exact TruncRest
            torch common(NUMBERS), paddle common(NUMBERS).paddle(),
            { int_checked: |a, b| Int::trunc_mod(a, b); float: |a, b| Real::fmod(a, b); }

            /// Quotient rounded towards zero. An integer zero divisor is an error; `MIN / -1` is `MIN`.
            DivTrunc div_trunc "div_trunc" ["trunc_divide"] (x, y) Same Rounded TruncQuotient
            torch common(NUMBERS).wide(), paddle common(NUMBERS).paddle(),
            { int_checked: |a, b| Int::trunc_div(a, b); float: |a, b| Real::trunc(a / b); }

            /// Bits moved up; a count below 0 or beyond the width gives 0.
            ShiftLeft bitwise_left_shift "bitwise_left_shift" ["shift_left"] (x, y) Same Exact ShiftUp
            torch common(INTS), paddle common(INTS).paddle().same(),
            { int: |a, b| Int::shift_left(a, b); }

            /// Bits moved down, the sign kept; a count below 0 or beyond the width gives the sign fill.
            ShiftRight bitwise_right_shift "bitwise_right_shift" ["shift_right"] (x, y) Same Exact ShiftDown
            torch common(INTS), paddle common(INTS).paddle().same(),
            { int: |a, b| Int::shift_right(a, b); }

            /// Length of the hypotenuse, without overflow on the way.
            Hypot hypot "hypot" [] (x, y) Same Rounded Whole
            torch common(FLOATS), paddle float(NUMBERS).paddle(),
            { float: |a, b| Real::hypot(a, b); }

            /// The first operand's magnitude with the second one's sign.
            Copysign copysign "copysign" [] (x, y) Same Bits Whole
            torch float(REALS), paddle float(REALS).paddle(),
            { float: |a, b| a.copysign(b); }

            /// Angle of the point (y, x) with the x axis.
            Atan2 atan2 "atan2" ["arctan2"] (y, x) Same Rounded Whole
            torch float(REALS), paddle int_to_double(REALS).paddle().no_scalar(),
            { float: |a, b| Real::atan2(a, b); }

            /// x * log(y); 0 where x is 0 and y is not NaN.
            Xlogy xlogy "xlogy" [] (x, y) Same Rounded Whole
            torch float(REALS), paddle float(REALS).paddle(),
            { float: |a, b| Real::xlogy(a, b); }

            /// log(exp(x) + exp(y)) without overflow.
            Logaddexp logaddexp "logaddexp" [] (x, y) Same Rounded Whole
            torch common(FLOATS_C), paddle float(NUMBERS).paddle().no_scalar(),
            { float: |a, b| Real::logaddexp(a, b); complex: |a, b| Cplx::logaddexp(a, b); }

            /// log2(2^x + 2^y) without overflow.
            Logaddexp2 logaddexp2 "logaddexp2" [] (x, y) Same Rounded Whole
            torch common(FLOATS), paddle common(FLOATS).paddle().no_scalar(),
            { float: |a, b| Real::logaddexp2(a, b); }

            /// Power in f64, or c128 with a complex operand.
            FloatPower float_power "float_power" [] (x, y) Same Rounded Whole
            torch to_double(ANY), paddle to_double(ANY).paddle(),
            { float: |a, b| Real::pow(a, b); complex: |a, b| Cplx::pow(a, b); }

            /// Greatest common divisor; not negative but for MIN.
            Gcd gcd "gcd" [] (x, y) Same Exact Divisor
            torch common(INTS), paddle common(INTS).paddle().zero_dim_tensor(),
            { int: |a, b| Int::gcd(a, b); }

            /// Least common multiple, wrapping; 0 if an operand is 0.
            Lcm lcm "lcm" [] (x, y) Same Exact Multiple
            torch common(INTS), paddle common(INTS).paddle().zero_dim_tensor(),
            { int: |a, b| Int::lcm(a, b); }

            /// 1 above zero, the second operand at zero, else 0: at NaN too. Equal dtypes only.
            Heaviside heaviside "heaviside" [] (x, values) Same Exact Step
            torch common(REALS).same(), paddle common(REALS).paddle().same(),
            { bool: |a, b| a | b; int: |a, b| if a == 0 { b } else { (a > 0).into() };
              float: |a, b| Real::heaviside(a, b); }

            /// The next representable number from the first operand towards the second.
            Nextafter nextafter "nextafter" [] (x, y) Same Bits Whole
            torch common(FLOATS), paddle common(FLOATS).paddle().no_scalar(),
            { float: |a, b| Real::nextafter(a, b); }

            /// The operand kept between two bounds; the upper one wins; NaN if one of the three is NaN.
            Clamp clamp "clamp" ["clip"] (x, min, max) Same Exact Clamped
            torch common(NUMBERS).bounds(), paddle common(NUMBERS).paddle(),
            { int: |x, low, high| { let up = if x > low { x } else { low }; if up < high { up } else { high } };
              float: |x, low, high| Real::minimum(Real::maximum(x, low), high); }

            /// The operand, or the lower bound where it is below; NaN if one of the two is NaN.
            ClampMin clamp_min "clamp_min" [] (x, min) Same Exact Larger
            torch common(REALS).bounds(), paddle common(REALS).paddle(),
            { bool: |a, b| a | b; int: |a, b| if a > b { a } else { b }; float: |a, b| Real::maximum(a, b); }

            /// x + alpha * y, rounded once in the half types. Integers wrap.
            AddScaled add_scaled "add_scaled" [] (x, y, alpha) Same Rounded PlusProduct
            torch common(ANY).rounded_parameter().fits(), paddle common(ANY).paddle(),
            { bool: |x, y, a| x | (a & y); int: |x, y, a| x.wrapping_add(a.wrapping_mul(y)); float: |x, y, a| x + a * y;
              complex: |x, y, a| x + Cplx::mul(a, y); }

            /// x - alpha * y, rounded once in the half types. Integers wrap; bool is refused.
            SubScaled sub_scaled "sub_scaled" [] (x, y, alpha) Same Rounded MinusProduct
            torch common(NO_BOOL).no_bool().rounded_parameter().fits(), paddle common(NO_BOOL).paddle(),
            { int: |x, y, a| x.wrapping_sub(a.wrapping_mul(y)); float: |x, y, a| x - a * y;
              complex: |x, y, a| x - Cplx::mul(a, y); }

            /// x + value * a * b, rounded once in the half types. Integers wrap.
            Addcmul addcmul "addcmul" [] (x, a, b, value) Same Rounded PlusProducts
            torch common(NO_BOOL).converted_parameter().fits(), paddle common(NO_BOOL).paddle(),
            { int: |x, a, b, v| x.wrapping_add(v.wrapping_mul(a).wrapping_mul(b)); float: |x, a, b, v| x + v * a * b;
              complex: |x, a, b, v| x + Cplx::mul(Cplx::mul(v, a), b); }

            /// x + value * a / b, rounded once in the half types. PyTorch refuses it where a and b are both integers.
            Addcdiv addcdiv "addcdiv" [] (x, a, b, value) Same Rounded Whole
            torch common(FLOATS_C).converted_parameter().no_integer_quotient(), paddle common(FLOATS_C).paddle(),
            { float: |x, a, b, v| x + v * a / b; complex: |x, a, b, v| x + Cplx::div(Cplx::mul(v, a), b); }

            /// The value, in the dtype and shape of x: what x is after an operation in place. Never to a lower category.
            Assign assign "assign" [] (x, value) Same Exact Second
            torch first(ANY), paddle first(ANY).paddle(),
            { bool: |_x, v| v; int: |_x, v| v; float: |_x, v| v; complex: |_x, v| v; }

            /// The first operand in the common dtype of both.
            PromoteWith promote_with "promote_with" [] (x, y) Same Exact First
            torch common(ANY), paddle common(ANY).paddle().no_scalar_like_zero_dim(),
            { bool: |x, _y| x; int: |x, _y| x; float: |x, _y| x; complex: |x, _y| x; }

            /// The square of x - y.
            SquaredDifference squared_difference "squared_difference" [] (x, y) Same Rounded SquaredDifference
            torch common(FLOATS), paddle common(NO_BOOL).paddle().no_scalar_like_zero_dim(),
            { int: |x, y| { let d = x.wrapping_sub(y); d.wrapping_mul(d) }; float: |x, y| { let d = x - y; d * d };
              complex: |x, y| { let d = x - y; Cplx::mul(d, d) }; }

            /// Huber's function of x - y: half its square up to delta, and a line beyond. PyTorch gives it in the dtype of x.
            Huber huber "huber" [] (x, y, delta) Same Rounded Whole
            torch common(FLOATS).parameter().to_first(), paddle common(FLOATS).paddle().no_scalar(),
            { float: |x, y, delta| { let r = (x - y).abs(); if r <= delta { 0.5 * r * r } else { delta * (r - 0.5 * delta) } }; }

            /// The smooth L1 function of x - y: its square over 2 beta below beta, and a line beyond.
            SmoothL1 smooth_l1 "smooth_l1" [] (x, y, beta) Same Rounded Whole
            torch common(FLOATS).parameter(), paddle common(FLOATS).paddle().no_scalar(),
            { float: |x, y, beta| { let r = (x - y).abs(); if r < beta { 0.5 * r * r / beta } else { r - 0.5 * beta } }; }

            /// x + weight * (end - x), exact at both ends.
            Lerp lerp "lerp" [] (x, end, weight) Same Rounded Whole
            torch common(FLOATS_C).same().wide(), paddle common(FLOATS_C).paddle().same(),
            { float: |x, e, w| if w.abs() < 0.5 { x + w * (e - x) } else { e - (e - x) * (1.0 - w) };
              complex: |x, e, w| Cplx::lerp(x, e, w); }

            /// Sum of the elements. Bool and integers are summed in i64 and wrap; f16 and bf16 in f32, rounded once. 0 of nothing.
            Sum sum "sum" [] (x) Fold Rounded Total
            torch to_long(NO_C32), paddle some_to_long(NO_C32).paddle(),
            { folds; bool: false, |a, b| a | b; int: 0, |a, b| a.wrapping_add(b); float: 0.0, |a, b| a + b;
              complex: Cplx::ZERO, |a, b| a + b; }

            /// Mean of the elements: their sum over their number, rounded once. Integers are refused; NaN of nothing.
            Mean mean "mean" [] (x) Fold Rounded Whole
            torch common(FLOATS_C), paddle common(FLOATS_C).paddle(),
            { folds as Sum; }

            /// Product of the elements. Bool and integers are multiplied in i64 and wrap; f16 and bf16 in f32, rounded once. 1 of nothing.
            Prod prod "prod" [] (x) Fold Rounded TotalProduct
            torch to_long(NO_C32), paddle bool_to_int(NO_C32).paddle(),
            { folds; bool: true, |a, b| a & b; int: 1, |a, b| a.wrapping_mul(b); float: 1.0, |a, b| a * b;
              complex: Cplx::ONE, |a, b| Cplx::mul(a, b); }

            /// Largest element; NaN if there is one. An error of nothing.
            Amax amax "amax" [] (x) Fold Exact First
            torch common(REALS), paddle common(REALS).paddle(),
            { folds; bool: false, |a, b| a | b; int: Int::LEAST, |a, b| if a > b { a } else { b };
              float: Real::NEG_INF, |a, b| Real::maximum(a, b), if a > b { a } else { b }; }

            /// Smallest element; NaN if there is one. An error of nothing.
            Amin amin "amin" [] (x) Fold Exact First
            torch common(REALS), paddle common(REALS).paddle(),
            { folds; bool: true, |a, b| a & b; int: Int::MOST, |a, b| if a < b { a } else { b };
              float: Real::INF, |a, b| Real::minimum(a, b), if a < b { a } else { b }; }

            /// Whether an element is nonzero; NaN counts as true. False of nothing.
            Any any "any" [] (x) Fold Exact Whole
            torch truth(ANY), paddle truth(ANY).paddle(),
            { folds; bool: false, |a, b| a | b; }

            /// Whether all elements are nonzero; NaN counts as true. True of nothing.
            All all "all" [] (x) Fold Exact Whole
            torch truth(ANY), paddle truth(ANY).paddle(),
            { folds; bool: true, |a, b| a & b; }

            /// x times 2 to the power e, rounded once for whole e, also where 2^e alone leaves the range.
            Ldexp ldexp "ldexp" [] (x, e) Same Rounded Whole
            torch float(NO_C32), paddle single_or_double(REALS).paddle(),
            { float: |x, e| Real::ldexp(x, e); complex: |x, e| Cplx::mul(x, Cplx::pow(Cplx::real(2.0), e)); }

            /// The operand, or the upper bound where it is above; NaN if one of the two is NaN.
            ClampMax clamp_max "clamp_max" [] (x, max) Same Exact Smaller
            torch common(REALS).bounds(), paddle common(REALS).paddle(),
            { bool: |a, b| a & b; int: |a, b| if a < b { a } else { b }; float: |a, b| Real::minimum(a, b); }
        }
    };
}
pub(crate) use for_each_op;
