//! The reductions' rows of the op table, and those that came after them.
//!
//! Guarantees: they follow the rows of `table`, as which they are written. Does not: have those of the order, which `order` has.

/// Calls `$callback!` with the rows, these and those of `lines`.
macro_rules! with_reductions {
    ($callback:ident $($rows:tt)*) => {
        $crate::ops::lines::with_lines! { $callback
            $($rows)*

            /// Sum of the elements. Bool and integers are summed in i64 and wrap; f16 and bf16 in f32, rounded once. The empty sum is 0.
            Sum { method: sum, operands: (x), output: Fold, name: "sum",
                gradients: by([once(|d| d.g().keep().expand())]),
                integers: IntRange::Total, promotion: ToLong, accepts: NO_C32,
                paddle: PADDLE.promotes(SomeToLong), jax: JAX.strong() }
            { folds; bool: false, |a, b| a | b; int: 0, |a, b| a.wrapping_add(b); float: 0.0, |a, b| a + b;
              complex: CplxFn::ZERO, |a, b| a + b; }

            /// Mean of the elements: their sum over their number, rounded once. Integers are refused; the mean of no elements is NaN.
            Mean { method: mean, operands: (x), output: Fold, name: "mean",
                gradients: by([wide(|d| (d.g() / d.count()).keep().expand())]),
                numpy: NUMPY.promotes(IntToDouble).accepts(ANY),
                accepts: FLOATS_C, jax: JAX.promotes(IntToFloat).accepts(NO_C32).strong() }
            { folds as Sum; }

            /// Product of the elements. Bool and integers are multiplied in i64 and wrap; f16 and bf16 in f32, rounded once. The empty product is 1.
            Prod { method: prod, operands: (x), output: Fold, name: "prod",
                gradients: by([wide(rules::product)]),
                integers: IntRange::TotalProduct, promotion: ToLong,
                accepts: NO_C32, paddle: PADDLE.promotes(BoolToInt), jax: JAX.strong() }
            { folds; bool: true, |a, b| a & b; int: 1, |a, b| a.wrapping_mul(b); float: 1.0, |a, b| a * b;
              complex: CplxFn::ONE, |a, b| Cplx::mul(a, b); }

            /// Largest element; NaN if an element is NaN. An empty reduction is an error.
            Amax { method: amax, operands: (x), output: Fold, name: "amax",
                gradients: by([wide(rules::extreme)]),
                exactness: Exact, integers: IntRange::First,
                numpy: NUMPY.accepts(ANY),
                accepts: REALS, jax: JAX.accepts(NO_C32).strong() }
            { folds; bool: false, |a, b| a | b; int: IntFn::LEAST, |a, b| Int::maximum(a, b);
              float: RealFn::NEG_INF, |a, b| Real::maximum(a, b), if a > b { a } else { b };
              complex: CplxFn::LEAST, |a, b| Cplx::maximum(a, b); }

            /// Smallest element; NaN if an element is NaN. An empty reduction is an error.
            Amin { method: amin, operands: (x), output: Fold, name: "amin",
                gradients: by([wide(rules::extreme)]),
                exactness: Exact, integers: IntRange::First,
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
            Ldexp { method: ldexp, operands: (x, e), output: Same, name: "ldexp",
                gradients: by([wide(|d| d.g() * d.x(1).exp2().conj()), wide(|d| d.g() * d.y().conj() * LN_2)]),
                promotion: IntToFloat, accepts: NO_C32,
                numpy: NUMPY.accepts(REALS),
                paddle: PADDLE.promotes(SingleOrDouble).accepts(REALS),
                jax: JAX.accepts(REALS_NO_F8).count_apart().strong() }
            { float: kernel |x, e| RealFn::ldexp(x, e); complex: kernel |x, e| Cplx::mul(x, CplxFn::pow(CplxFn::real(2.0), e)); }

            /// The operand, or the upper bound where it is above; NaN if one of the two is NaN.
            ClampMax { method: clamp_max, operands: (x, max), output: Same, name: "clamp_max",
                gradients: by([once(rules::clamped_above), once(|d| rules::smaller(d, 1))]),
                exactness: Exact,
                numpy: NUMPY.accepts(ANY),
                integers: IntRange::Smaller, accepts: REALS, torch: TORCH.bounds() }
            { bool: |a, b| a & b; int: |a, b| Int::minimum(a, b); float: |a, b| Real::minimum(a, b);
              complex: |a, b| Cplx::minimum(a, b); }

            /// x · y + z, rounded once, also in the half types. Integers and complex numbers are refused.
            Fma { method: fma, operands: (x, y, z), output: Same, name: "fma",
                gradients: by([once(|d| d.g() * d.x(1)), once(|d| d.g() * d.x(0)), once(|d| d.g())]),
                accepts: FLOATS }
            { float: |x, y, z| Real::fma(x, y, z); }

            /// Position of the first largest element along a dim, or in row-major order; the first NaN is larger than all numbers. An empty reduction is an error.
            Argmax { method: argmax, operands: (x), output: FoldLong, name: "argmax", exactness: Exact, integers: IntRange::Position,
                accepts: NUMBERS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(REALS).strong() }
            { searches; }

            /// Position of the first smallest element along a dim, or in row-major order; the first NaN is smaller than all numbers. An empty reduction is an error.
            Argmin { method: argmin, operands: (x), output: FoldLong, name: "argmin", exactness: Exact, integers: IntRange::Position,
                accepts: NUMBERS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(REALS).strong() }
            { searches; }

            /// Variance of the elements: the sum of their squared distances from the mean, over their number less the correction, or over 0 if that is negative. Of complex numbers the squared moduli are summed. Summed in f64, rounded once; NaN if an element is infinite, or for no elements.
            Var { method: var, operands: (x), output: FoldReal, name: "var",
                gradients: by([wide(rules::variance)]),
                number: Some(CORRECTION), accepts: FLOATS.union(COMPLEX),
                paddle: PADDLE.accepts(FLOATS), numpy: NUMPY.promotes(IntToDouble).accepts(ANY).number(0.0),
                jax: JAX.promotes(IntToFloat).accepts(NO_C32).number(0.0).strong() }
            { composed; |r| { let v = r.variance(); r.finish(v) } }

            /// Standard deviation: the root of the variance, rounded once.
            Std { method: std, operands: (x), output: FoldReal, name: "std",
                gradients: by([wide(rules::deviation)]),
                number: Some(CORRECTION), accepts: FLOATS.union(COMPLEX),
                paddle: PADDLE.accepts(FLOATS), numpy: NUMPY.promotes(IntToDouble).accepts(ANY).number(0.0),
                jax: JAX.promotes(IntToFloat).accepts(NO_C32).number(0.0).strong() }
            { composed; |r| { let v = r.variance(); let root = r.apply(Op::Sqrt, &[v.into()]); r.finish(root) } }

            /// Norm of order p: (Σ|x|^p)^(1/p); the number of nonzero elements for p = 0, the largest or smallest modulus for infinite p. Summed in f64, rounded once. NaN if an element is NaN, but for p = 0. For no elements 0, or an error for negative and infinite p.
            Norm { method: norm, operands: (x), output: FoldReal, name: "norm",
                gradients: by([wide(rules::norm)]),
                number: Some(ORDER), accepts: FLOATS.union(COMPLEX),
                paddle: PADDLE.accepts(FLOATS_C), numpy: NUMPY.promotes(IntToDouble).accepts(ANY),
                jax: JAX.promotes(IntToFloat).default_float().accepts(NO_C32).strong() }
            { composed; |r| { let v = r.norm(); r.finish(v) } }

            /// Number of nonzero elements; NaN counts.
            CountNonzero { method: count_nonzero, operands: (x), output: FoldLong, name: "count_nonzero", exactness: Exact,
                integers: IntRange::Count, accepts: ANY, jax: JAX.accepts(NO_C32).strong() }
            { composed; |r| { let found = r.nonzero(r.x()); let ones = r.cast(found, DType::I64); let n = r.fold(Op::Sum, ones); r.finish(n) } }

            /// Sum of the elements that are not NaN, as `sum`.
            Nansum { method: nansum, operands: (x), output: Fold, name: "nansum",
                gradients: by([once(|d| d.x(0).isnan().then(0.0, d.g().keep()))]),
                integers: IntRange::Total, promotion: ToLong,
                accepts: REALS, numpy: NUMPY.accepts(NO_C32), paddle: PADDLE.promotes(SomeToLong).accepts(NUMBERS.union(FLOATS_C)),
                jax: JAX.accepts(NO_C32).strong() }
            { composed; |r| { let (kept, _) = r.without_nans(r.x()); let sum = r.fold(Op::Sum, kept); r.finish(sum) } }

            /// Mean of the elements that are not NaN: their sum over their number, rounded once; NaN if there are none. A complex sum is divided as complex numbers are.
            Nanmean { method: nanmean, operands: (x), output: Fold, name: "nanmean",
                gradients: by([wide(rules::mean_of_numbers)]),
                accepts: FLOATS,
                numpy: NUMPY.promotes(IntToDouble).accepts(NO_C32), paddle: PADDLE.promotes(IntToFloat).accepts(NUMBERS.union(FLOATS_C)),
                jax: JAX.promotes(IntToFloat).accepts(NO_C32).strong() }
            { composed; |r| { let v = r.mean_of_numbers(); r.finish(v) } }

            /// log(Σ exp(x)) without overflow: log(Σ exp(x - m)) + m, where m is the largest element, or 0 if that is infinite; of complex numbers, the largest real part. Each step is rounded, as if it was written out. -inf for no elements.
            Logsumexp { method: logsumexp, operands: (x), output: Fold, name: "logsumexp",
                gradients: by([wide(|d| d.g().keep() * (d.x(0) - d.y().keep()).exp().conj())]),
                promotion: IntToFloat, accepts: NO_C32,
                numpy: NUMPY.accepts(REALS), paddle: PADDLE.accepts(NUMBERS), jax: JAX.strong() }
            { composed; |r| { let v = r.log_of_sum(); r.finish(v) } }
        }
    };
}
pub(crate) use with_reductions;
