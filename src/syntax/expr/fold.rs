//! Constant folding in expressions: `2 * 3`, `-1.5`, `1 + 2j`.
//!
//! Guarantees: Python's rules. `+ - *` and nonnegative powers of integers give integers, and one that neither i64 nor
//! u64 has is an error. `/` and negative powers give floats. Floats are f64, and their powers are computed by the library's own
//! function. Division by zero is an error. Does not: fold anything else. Other operations on constants are errors,
//! because the dtype of their result would be a guess.

use num_complex::Complex;

use super::lex::Symbol;
use crate::base::scalar::Scalar;
use crate::math::pow::pow_f64;

/// The reason for which constants can't be folded.
type Refusal = &'static str;

const OVERFLOW: Refusal = "the constant is beyond the range of i64 and of u64";
const ZERO: Refusal = "division by zero in a constant";
const BOOLS: Refusal = "arithmetic on the constants `true` and `false`";
/// Every integer of at most this magnitude has an exact f64 value.
const EXACT: u128 = 1 << 53;

/// The constant `a symbol b`.
pub(super) fn binary(symbol: Symbol, a: Scalar, b: Scalar) -> Result<Scalar, Refusal> {
    if !matches!(symbol, Symbol::Add | Symbol::Sub | Symbol::Mul | Symbol::Div | Symbol::Pow) {
        return Err("constants can only be combined by `+ - * / **`");
    }
    match (a, b) {
        (Scalar::Bool(_), _) | (_, Scalar::Bool(_)) => Err(BOOLS),
        (Scalar::Int(a), Scalar::Int(b)) => integers(symbol, a, b),
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => complexes(symbol, complex(a), complex(b)),
        _ => floats(symbol, complex(a).re, complex(b).re),
    }
}

/// The constant `-a`.
pub(super) fn negate(a: Scalar) -> Result<Scalar, Refusal> {
    match a {
        Scalar::Bool(_) => Err(BOOLS),
        Scalar::Int(v) => v.checked_neg().and_then(Scalar::integer).ok_or(OVERFLOW),
        Scalar::Float(v) => Ok(Scalar::Float(-v)),
        Scalar::Complex(v) => Ok(Scalar::Complex(-v)),
    }
}

fn complex(a: Scalar) -> Complex<f64> {
    match a {
        Scalar::Bool(v) => Complex::new(v as u8 as f64, 0.0),
        Scalar::Int(v) => Complex::new(v as f64, 0.0),
        Scalar::Float(v) => Complex::new(v, 0.0),
        Scalar::Complex(v) => v,
    }
}

fn integers(symbol: Symbol, a: i128, b: i128) -> Result<Scalar, Refusal> {
    let value = match symbol {
        Symbol::Add => a.checked_add(b),
        Symbol::Sub => a.checked_sub(b),
        Symbol::Mul => a.checked_mul(b),
        Symbol::Pow if b >= 0 => power(a, b),
        Symbol::Div | Symbol::Pow if a.unsigned_abs().max(b.unsigned_abs()) > EXACT => {
            return Err("a quotient of constants this large would not be exact: write it as a float");
        }
        _ => return floats(symbol, a as f64, b as f64),
    };
    value.and_then(Scalar::integer).ok_or(OVERFLOW)
}

fn power(a: i128, b: i128) -> Option<i128> {
    match (a, u32::try_from(b)) {
        (_, Ok(b)) => a.checked_pow(b),
        (0 | 1, Err(_)) => Some(a),
        (-1, Err(_)) => Some(if b % 2 == 0 { 1 } else { -1 }),
        (_, Err(_)) => None,
    }
}

fn floats(symbol: Symbol, a: f64, b: f64) -> Result<Scalar, Refusal> {
    Ok(Scalar::Float(match symbol {
        Symbol::Add => a + b,
        Symbol::Sub => a - b,
        Symbol::Mul => a * b,
        Symbol::Div if b == 0.0 => return Err(ZERO),
        Symbol::Div => a / b,
        _ if a == 0.0 && b < 0.0 => return Err(ZERO),
        _ if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 => {
            return Err("a fractional power of a negative constant is complex");
        }
        _ => pow_f64(a, b),
    }))
}

fn complexes(symbol: Symbol, a: Complex<f64>, b: Complex<f64>) -> Result<Scalar, Refusal> {
    Ok(Scalar::Complex(match symbol {
        Symbol::Add => a + b,
        Symbol::Sub => a - b,
        Symbol::Mul => a * b,
        Symbol::Div if b.re == 0.0 && b.im == 0.0 => return Err(ZERO),
        Symbol::Div => a / b,
        _ => return Err("powers of complex constants are not supported: write the value"),
    }))
}
