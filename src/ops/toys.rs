//! Rows for tests alone.
//!
//! Guarantees: nothing but its row knows of such an op, so that what holds of it holds of every op that is added by a
//! row. Does not: exist outside of this crate's own tests.

/// Calls `$callback!` with the rows, and those of the tests.
#[cfg(test)]
macro_rules! with_toys {
    ($callback:ident $($rows:tt)*) => {
        $callback! {
            $($rows)*

            /// The product of x with the bits that x and y share where x is less, else the larger one of two others.
            ToyInt { method: toy_int, operands: (x, y), output: Same, name: "toy_int", accepts: INTS }
            { int: |a, b| Int::select(Int::lt(a, b), (a & b).wrapping_mul(a), Int::maximum(a ^ b, b.wrapping_neg())); }

            /// Half the product of x and y where it is less than z, else the root of a quotient.
            ToySelect { method: toy_select, operands: (x, y, z), output: Same, name: "toy_select", accepts: FLOATS }
            { float: |a, b, c| { let half = 0.5 * (a * b); Real::select(Real::lt(half, c), half, Real::sqrt(1.0 / (a - b).abs())) }; }

            /// The product of x with the conjugate of y, plus x.
            ToyComplex { method: toy_complex, operands: (x, y), output: Same, name: "toy_complex", accepts: COMPLEX }
            { complex: |a, b| Cplx::mul(a, Cplx::conj(b)) + a; }
        }
    };
}

/// Calls `$callback!` with the rows.
#[cfg(not(test))]
macro_rules! with_toys {
    ($callback:ident $($rows:tt)*) => {
        $callback! { $($rows)* }
    };
}

pub(crate) use with_toys;
