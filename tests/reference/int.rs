//! Ops on bool and integers: in `i128`, then wrapped.
//!
//! Guarantees: every result is the exact one, wrapped: a product of u64 wraps in `i128` too, which keeps the low bits. Does not: support floats.

use castwise::{DType, Op};

use super::format::{range, wrap};
use super::{Answer, DividedByZero, Value};

/// An application in an integer dtype or bool.
pub fn apply(op: Op, d: DType, args: &[Value]) -> Result<Answer, DividedByZero> {
    let mut a = [0; 4];
    for (a, v) in a.iter_mut().zip(args) {
        *a = v.int();
    }
    let (x, y) = (a[0], a[1]);
    let divides = matches!(op, Op::FloorDivide | Op::Remainder | Op::Fmod | Op::DivTrunc);
    if divides && y == 0 {
        return Err(DividedByZero);
    }
    if op == Op::PowChecked && y < 0 {
        return Err(DividedByZero);
    }
    let wide = if d == DType::Bool {
        // For bools, a sum is `or` and a product is `and`.
        match op {
            Op::Add | Op::BitwiseOr | Op::Maximum | Op::Fmax | Op::ClampMin => x | y,
            Op::Mul | Op::BitwiseAnd | Op::Minimum | Op::Fmin | Op::ClampMax => x & y,
            Op::BitwiseNot => 1 - x,
            Op::Clamp => (x | y) & a[2],
            Op::Abs | Op::Floor | Op::Ceil | Op::Trunc => x,
            Op::AddScaled => x | (a[2] & y),
            _ => common(op, d, &a),
        }
    } else {
        match op {
            Op::Add => x + y,
            Op::Sub => x - y,
            Op::Mul => x.wrapping_mul(y),
            Op::FloorDivideOrZero | Op::RemainderOrZero | Op::DivTruncOrZero | Op::FmodOrZero if y == 0 => 0,
            Op::FloorDivide | Op::FloorDivideOrZero => floor(x, y),
            Op::Remainder | Op::RemainderOrZero => x - y * floor(x, y),
            Op::DivTrunc | Op::DivTruncOrZero => x / y,
            Op::Fmod | Op::FmodOrZero => x % y,
            Op::Pow | Op::PowChecked => power(d, x, y),
            Op::Reciprocal if x == 0 => range(d).1,
            Op::Reciprocal => 1 / x,
            Op::Maximum | Op::Fmax | Op::ClampMin => x.max(y),
            Op::Minimum | Op::Fmin | Op::ClampMax => x.min(y),
            Op::BitwiseAnd => x & y,
            Op::BitwiseOr => x | y,
            Op::BitwiseNot => !x,
            Op::Neg => -x,
            Op::Abs => x.abs(),
            Op::Square => x.wrapping_mul(x),
            Op::Relu => x.max(0),
            Op::Floor | Op::Ceil | Op::Round | Op::Trunc => x,
            Op::ShiftLeft => {
                if (0..i128::from(range(d).2)).contains(&y) {
                    x << y
                } else {
                    0
                }
            }
            Op::ShiftRight => {
                // A shift count beyond the width leaves only the sign.
                let count = if (0..i128::from(range(d).2)).contains(&y) { y } else { 100 };
                x >> count
            }
            Op::Gcd => gcd(x, y),
            Op::Lcm => multiple(d, x, y),
            Op::Clamp => x.max(y).min(a[2]),
            Op::AddScaled => x + wrap(d, a[2].wrapping_mul(y)),
            Op::SubScaled => x - wrap(d, a[2].wrapping_mul(y)),
            Op::Addcmul => x + wrap(d, wrap(d, a[3].wrapping_mul(y)).wrapping_mul(a[2])),
            Op::SquaredDifference => {
                let difference = wrap(d, x - y);
                difference.wrapping_mul(difference)
            }
            _ => common(op, d, &a),
        }
    };
    Ok(Answer::Exactly(Value::Int(wrap(d, wide))))
}

/// The ops that integers and bools share.
fn common(op: Op, d: DType, a: &[i128]) -> i128 {
    let (x, y) = (a[0], a[1]);
    match op {
        Op::Eq => (x == y).into(),
        Op::Ne => (x != y).into(),
        Op::Lt => (x < y).into(),
        Op::Le => (x <= y).into(),
        Op::Gt => (x > y).into(),
        Op::Ge => (x >= y).into(),
        Op::EqMixed => (x == other_sign(d, y)).into(),
        Op::NeMixed => (x != other_sign(d, y)).into(),
        Op::LtMixed => (x < other_sign(d, y)).into(),
        Op::LeMixed => (x <= other_sign(d, y)).into(),
        Op::GtMixed => (x > other_sign(d, y)).into(),
        Op::GeMixed => (x >= other_sign(d, y)).into(),
        Op::ImagPart => 0,
        Op::LogicalAnd => (x != 0 && y != 0).into(),
        Op::LogicalOr => (x != 0 || y != 0).into(),
        Op::LogicalXor => ((x != 0) != (y != 0)).into(),
        Op::LogicalNot => (x == 0).into(),
        Op::BitwiseXor => x ^ y,
        Op::Sign | Op::Sgn => x.signum(),
        Op::Isnan | Op::Isinf => 0,
        Op::Isfinite => 1,
        Op::RealPart | Op::Conj | Op::Positive | Op::PromoteWith => x,
        Op::Assign => y,
        Op::Heaviside if x == 0 => y,
        Op::Heaviside => (x > 0).into(),
        _ => panic!("no reference for `{op}` of {d}"),
    }
}

/// The number that the bits are in an integer dtype of the same width and the other signedness.
fn other_sign(d: DType, x: i128) -> i128 {
    let (least, most, bits) = range(d);
    if least < 0 && x < 0 {
        x + (1 << bits)
    } else if least == 0 && x > most / 2 {
        x - (1 << bits)
    } else {
        x
    }
}

/// The quotient, rounded down.
fn floor(x: i128, y: i128) -> i128 {
    let towards_zero = x / y;
    if x % y != 0 && (x < 0) != (y < 0) { towards_zero - 1 } else { towards_zero }
}

/// A wrapped power. For a negative exponent it is the fraction rounded towards zero.
fn power(d: DType, x: i128, y: i128) -> i128 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 if y % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut result, mut base, mut left) = (1, x, y);
    while left > 0 {
        if left % 2 == 1 {
            result = wrap(d, i128::wrapping_mul(result, base));
        }
        base = wrap(d, base.wrapping_mul(base));
        left /= 2;
    }
    result
}

fn gcd(x: i128, y: i128) -> i128 {
    if y == 0 { x.abs() } else { gcd(y, x % y) }
}

/// The least common multiple. For 8 and 16 bits its magnitude wraps; for 32 and 64 bits the result is the magnitude of
/// the wrapped product.
fn multiple(d: DType, x: i128, y: i128) -> i128 {
    if x == 0 || y == 0 {
        return 0;
    }
    let product = (x / gcd(x, y)).wrapping_mul(y);
    if d.size() < 4 { product.abs() } else { wrap(d, product).abs() }
}
