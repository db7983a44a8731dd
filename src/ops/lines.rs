//! The rows of the op table that work on lines along a dim, and give as many elements.
//!
//! Guarantees: they follow the rows of `reductions`, as which they are written. `scans` has what the result begins with before
//! the first element, and how what it is so far combines with the next element; `positions` are found by `kernels::scan`.

/// Calls `$callback!` with the rows, these and those of `departures`.
macro_rules! with_lines {
    ($callback:ident $($rows:tt)*) => {
        $crate::ops::departures::with_departures! { $callback
            $($rows)*

            /// Sums of the elements up to each one, along a dim. Bool and integers are summed in i64 and wrap; f32 in f64, f16 and bf16 in f32, and each sum is rounded once.
            Cumsum { method: cumsum, operands: (x), output: Line, name: "cumsum", integers: IntRange::Sums, promotion: ToLong,
                accepts: NO_C32, jax: JAX.promotes(BoolToInt).strong() }
            { scans; bool: false, |a, b| a | b; int: 0, |a, b| a.wrapping_add(b); float: 0.0, |a, b| a + b;
              complex: CplxFn::ZERO, |a, b| a + b; }
        }
    };
}
pub(crate) use with_lines;
