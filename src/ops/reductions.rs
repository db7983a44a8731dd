//! The reductions' rows of the op table, and those that came after them.
//!
//! Guarantees: they follow the rows of `table`, as which they are written.

/// Calls `$callback!` with the rows, these and those of `departures`.
macro_rules! with_reductions {
    ($callback:ident $($rows:tt)*) => {
        $crate::ops::departures::with_departures! { $callback
            $($rows)*

            /// Sum of the elements. Bool and integers are summed in i64 and wrap; f16 and bf16 in f32, rounded once. The empty sum is 0.
            Sum { method: sum, operands: (x), output: Fold, name: "sum", integers: IntRange::Total, promotion: ToLong, accepts: NO_C32,
                paddle: PADDLE.promotes(SomeToLong), jax: JAX.strong() }
            { folds; bool: false, |a, b| a | b; int: 0, |a, b| a.wrapping_add(b); float: 0.0, |a, b| a + b;
              complex: CplxFn::ZERO, |a, b| a + b; }

            /// Mean of the elements: their sum over their number, rounded once. Integers are refused; the mean of no elements is NaN.
            Mean { method: mean, operands: (x), output: Fold, name: "mean",
                numpy: NUMPY.promotes(IntToDouble).accepts(ANY),
                accepts: FLOATS_C, jax: JAX.promotes(IntToFloat).accepts(NO_C32).strong() }
            { folds as Sum; }

            /// Product of the elements. Bool and integers are multiplied in i64 and wrap; f16 and bf16 in f32, rounded once. The empty product is 1.
            Prod { method: prod, operands: (x), output: Fold, name: "prod", integers: IntRange::TotalProduct, promotion: ToLong,
                accepts: NO_C32, paddle: PADDLE.promotes(BoolToInt), jax: JAX.strong() }
            { folds; bool: true, |a, b| a & b; int: 1, |a, b| a.wrapping_mul(b); float: 1.0, |a, b| a * b;
              complex: CplxFn::ONE, |a, b| Cplx::mul(a, b); }

            /// Largest element; NaN if an element is NaN. An empty reduction is an error.
            Amax { method: amax, operands: (x), output: Fold, name: "amax", exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, jax: JAX.accepts(NO_C32).strong() }
            { folds; bool: false, |a, b| a | b; int: IntFn::LEAST, |a, b| Int::maximum(a, b);
              float: RealFn::NEG_INF, |a, b| Real::maximum(a, b), if a > b { a } else { b };
              complex: CplxFn::LEAST, |a, b| Cplx::maximum(a, b); }

            /// Smallest element; NaN if an element is NaN. An empty reduction is an error.
            Amin { method: amin, operands: (x), output: Fold, name: "amin", exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, jax: JAX.accepts(NO_C32).strong() }
            { folds; bool: true, |a, b| a & b; int: IntFn::MOST, |a, b| Int::minimum(a, b);
              float: RealFn::INF, |a, b| Real::minimum(a, b), if a < b { a } else { b };
              complex: CplxFn::MOST, |a, b| Cplx::minimum(a, b); }

            /// Whether any element is nonzero; NaN counts as true. An empty reduction gives false.
            Any { method: any, operands: (x), output: Fold, name: "any", exactness: Exact, promotion: Truth, accepts: ANY }
            { folds; bool: false, |a, b| a | b; }

            /// Whether all elements are nonzero; NaN counts as true. An empty reduction gives true.
            All { method: all, operands: (x), output: Fold, name: "all", exactness: Exact, promotion: Truth, accepts: ANY }
            { folds; bool: true, |a, b| a & b; }

            /// x times 2 to the power e, rounded once if e is an integer, even if 2^e alone overflows or underflows.
            Ldexp { method: ldexp, operands: (x, e), output: Same, name: "ldexp", promotion: IntToFloat, accepts: NO_C32,
                numpy: NUMPY.accepts(REALS),
                paddle: PADDLE.promotes(SingleOrDouble).accepts(REALS),
                jax: JAX.accepts(REALS_NO_F8).count_apart().strong() }
            { float: kernel |x, e| RealFn::ldexp(x, e); complex: kernel |x, e| Cplx::mul(x, CplxFn::pow(CplxFn::real(2.0), e)); }

            /// The operand, or the upper bound where it is above; NaN if one of the two is NaN.
            ClampMax { method: clamp_max, operands: (x, max), output: Same, name: "clamp_max", exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                integers: IntRange::Smaller, accepts: REALS, torch: TORCH.bounds() }
            { bool: |a, b| a & b; int: |a, b| Int::minimum(a, b); float: |a, b| Real::minimum(a, b);
              complex: |a, b| Cplx::minimum(a, b); }

            /// x · y + z, rounded once, also in the half types. Integers and complex numbers are refused.
            Fma { method: fma, operands: (x, y, z), output: Same, name: "fma", accepts: FLOATS }
            { float: |x, y, z| Real::fma(x, y, z); }

            /// Position of the first largest element along a dim, or in row-major order; the first NaN is larger than all numbers. An empty reduction is an error.
            Argmax { method: argmax, operands: (x), output: FoldLong, name: "argmax", exactness: Exact, integers: IntRange::Position,
                accepts: NUMBERS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(REALS).strong() }
            { indexes; }

            /// Position of the first smallest element along a dim, or in row-major order; the first NaN is smaller than all numbers. An empty reduction is an error.
            Argmin { method: argmin, operands: (x), output: FoldLong, name: "argmin", exactness: Exact, integers: IntRange::Position,
                accepts: NUMBERS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(REALS).strong() }
            { indexes; }
        }
    };
}
pub(crate) use with_reductions;
