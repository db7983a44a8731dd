//! The rows of the op table that work on lines along a dim, and give as many elements.
//!
//! Guarantees: they follow the rows of `reductions`, as which they are written. `scans` has what the result begins with before
//! the first element, and how what it is so far combines with the next element; `positions` are found by `kernels::index`.

/// Calls `$callback!` with the rows, these and those of `order`.
macro_rules! with_lines {
    ($callback:ident $($rows:tt)*) => {
        $crate::ops::order::with_order! { $callback
            $($rows)*

            /// Sums of the elements up to each one, along a dim. Bool and integers are summed in i64 and wrap; f32 in f64, f16 and bf16 in f32, and each sum is rounded once.
            Cumsum { method: cumsum, operands: (x), output: Line, name: "cumsum",
                gradients: by([once(|d| d.g().reversed("cumsum"))]),
                integers: IntRange::Sums, promotion: ToLong,
                accepts: NO_C32, jax: JAX.promotes(BoolToInt).strong() }
            { scans; bool: false, |a, b| a | b; int: 0, |a, b| a.wrapping_add(b); float: 0.0, |a, b| a + b;
              complex: CplxFn::ZERO, |a, b| a + b; }

            /// Products of the elements up to each one, along a dim. Bool and integers are multiplied in i64 and wrap; f32 in f64, f16 and bf16 in f32, and each product is rounded once.
            Cumprod { method: cumprod, operands: (x), output: Line, name: "cumprod",
                gradients: by([wide(ordered::products)]),
                integers: IntRange::Products, promotion: ToLong,
                accepts: NO_C32, paddle: PADDLE.promotes(BoolToInt), jax: JAX.promotes(BoolToInt).strong() }
            { scans; bool: true, |a, b| a & b; int: 1, |a, b| a.wrapping_mul(b); float: 1.0, |a, b| a * b;
              complex: CplxFn::ONE, |a, b| Cplx::mul(a, b); }

            /// The largest element up to each one, along a dim; NaN from the first NaN on. Of zeros it is the last one.
            Cummax { method: cummax, operands: (x), output: Line, name: "cummax",
                gradients: by([once(|d| ordered::moved(d, "cummax_indices"))]),
                exactness: Exact, integers: IntRange::First,
                accepts: REALS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(POW).strong() }
            { scans; bool: false, |a, b| a | b; int: IntFn::LEAST, |a, b| Int::maximum(a, b);
              float: RealFn::NEG_INF, |a, b| if (b >= a) | b.is_nan() { b } else { a };
              complex: CplxFn::LEAST, |a, b| Cplx::maximum(a, b); }

            /// The smallest element up to each one, along a dim; NaN from the first NaN on. Of zeros it is the last one.
            Cummin { method: cummin, operands: (x), output: Line, name: "cummin",
                gradients: by([once(|d| ordered::moved(d, "cummin_indices"))]),
                exactness: Exact, integers: IntRange::First,
                accepts: REALS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(POW).strong() }
            { scans; bool: true, |a, b| a & b; int: IntFn::MOST, |a, b| Int::minimum(a, b);
              float: RealFn::INF, |a, b| if (b <= a) | b.is_nan() { b } else { a };
              complex: CplxFn::MOST, |a, b| Cplx::minimum(a, b); }

            /// log(Σ exp(x)) of the elements up to each one, along a dim, without overflow. f32 is computed in f64, f16 and bf16 in f32, and each result is rounded once.
            Logcumsumexp { method: logcumsumexp, operands: (x), output: Line, name: "logcumsumexp",
                gradients: by([wide(ordered::log_sums)]),
                promotion: IntToFloat,
                accepts: FLOATS_C, numpy: NUMPY.accepts(REALS), paddle: PADDLE.accepts(NUMBERS),
                jax: JAX.accepts(POW).strong() }
            { scans; float: RealFn::NEG_INF, |a, b| RealFn::logaddexp(a, b);
              complex: CplxFn::LOG_ZERO, |a, b| CplxFn::log_sum(a, b); }

            /// Position of the largest element up to each one, along a dim: of equal ones, and of NaNs, the last. PyTorch's second result of `cummax`.
            CummaxIndices { method: cummax_indices, operands: (x), output: LineLong, name: "cummax_indices", exactness: Exact,
                integers: IntRange::Position, accepts: REALS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(POW).strong() }
            { positions; }

            /// Position of the smallest element up to each one, along a dim: of equal ones, and of NaNs, the last. PyTorch's second result of `cummin`.
            CumminIndices { method: cummin_indices, operands: (x), output: LineLong, name: "cummin_indices", exactness: Exact,
                integers: IntRange::Position, accepts: REALS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(POW).strong() }
            { positions; }
        }
    };
}
pub(crate) use with_lines;
