//! A third evaluator of typed programs, which computes one element at a time. It shares no code with castwise.
//!
//! Guarantees: dtypes are those of the typed program's text. Values are computed here: integers by `i128`, the four
//! float formats by rounding exact numbers, arithmetic by IEEE operations of the standard library, elementary functions
//! by `libm` in f64. Operations that IEEE defines must agree in every bit, including signs of zeros and canonical NaNs.
//! So must `fma`, and every op of one operand, on f16 and bf16, whose result is the exact one, correctly rounded, if f64 can
//! determine it. Other elementary functions must be within the ulps that docs/accuracy.md promises. Does not: decide
//! dtypes, report errors, or check results that it calls open (complex functions of parts that are not finite, sums
//! that may overflow on the way).
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod complex;
mod composed;
pub mod fold;
pub mod format;
pub mod functions;
pub mod generators;
pub mod int;
mod lines;
pub mod order;
pub mod program;
pub mod real;

use castwise::{DType, Op};
use format::{Beyond, cast, decode, encode};

/// The value of an element.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// An integer, or a bool as 0 or 1.
    Int(i128),
    Real(f64),
    Pair(f64, f64),
}

impl Value {
    pub fn int(self) -> i128 {
        match self {
            Value::Int(v) => v,
            other => panic!("{other:?} is no integer"),
        }
    }

    pub fn real(self) -> f64 {
        match self {
            Value::Real(v) => v,
            other => panic!("{other:?} is no real number"),
        }
    }

    pub fn pair(self) -> (f64, f64) {
        match self {
            Value::Pair(re, im) => (re, im),
            other => panic!("{other:?} is no complex number"),
        }
    }
}

/// The accepted results of an op, before they are rounded to the result's dtype.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Exactly(Value),
    /// A real number between these two, inclusive.
    Between(f64, f64),
    /// A complex number (or part) whose distance is at most the last number.
    Near(f64, f64, f64),
    /// No part is finite.
    NotFinite,
    /// The result is not checked.
    Open,
}

/// The accepted values of an element of a result.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    Bits(u128),
    Between(f64, f64),
    Near(f64, f64, f64),
    NotFinite,
    Open,
}

/// An integer was divided by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DividedByZero;

/// Applies an op to one element of each operand, given as bits of the compute dtype.
pub fn element(
    op: Op,
    compute: DType,
    (result, beyond): (DType, Beyond),
    args: &[u128],
) -> Result<Expected, DividedByZero> {
    let moved = match op {
        Op::Where => Some(if args[0] != 0 { args[1] } else { args[2] }),
        // 8-bit floats are computed as f32, where a NaN loses its sign.
        Op::Neg if !compute.is_integral() && compute.size() > 1 => Some(args[0] ^ format::signs(compute)),
        Op::Abs if compute.is_float() && compute.size() > 1 => Some(args[0] & !format::signs(compute)),
        Op::Copysign => Some(real::copysign(compute, args[0], args[1])),
        Op::Nextafter => Some(real::next_after(compute, args[0], args[1])),
        _ => None,
    };
    if let Some(bits) = moved {
        return Ok(Expected::Bits(bits));
    }
    let math = compute.op_math();
    let mut values = [Value::Int(0); 4];
    for (v, a) in values.iter_mut().zip(args) {
        *v = decode(math, cast(compute, *a, math, beyond));
    }
    in_math(op, compute, (result, beyond), &values[..args.len()])
}

/// Applies an op to values in the op math dtype of `compute`.
pub fn in_math(op: Op, compute: DType, result: (DType, Beyond), values: &[Value]) -> Result<Expected, DividedByZero> {
    let (math, half) = (compute.op_math(), matches!(compute, DType::F16 | DType::BF16));
    let answer = match compute {
        d if d.is_integral() => int::apply(op, d, values)?,
        _ if half && matches!(op, Op::Fma | Op::FmaHalf) => {
            Answer::Exactly(Value::Real(real::fused(values[0].real(), values[1].real(), values[2].real())))
        }
        // One operand of f16 or bf16: the exact result, rounded once.
        d if d.is_float() => {
            real::Math { single: math == DType::F32 && !(half && values.len() == 1) }.apply(op, values)
        }
        _ => complex::Math { single: math == DType::C64 }.apply(op, values),
    };
    Ok(rounded(answer, result))
}

/// Rounds an answer to the result's dtype.
pub fn rounded(answer: Answer, (result, beyond): (DType, Beyond)) -> Expected {
    match answer {
        Answer::Exactly(v) => Expected::Bits(encode(result, v, beyond)),
        Answer::Between(lo, hi) => {
            let ends = [lo, hi].map(|v| encode(result, Value::Real(v), beyond));
            if ends[0] == ends[1] {
                return Expected::Bits(ends[0]);
            }
            let [lo, hi] = ends.map(|bits| decode(result, bits).real());
            // One end is beyond the range of a format without infinities.
            if lo.is_nan() || hi.is_nan() { Expected::Open } else { Expected::Between(lo, hi) }
        }
        Answer::Near(re, im, error) => Expected::Near(re, im, error),
        Answer::NotFinite => Expected::NotFinite,
        Answer::Open => Expected::Open,
    }
}

impl Expected {
    /// Whether an element of a dtype is accepted.
    pub fn admits(self, d: DType, bits: u128) -> bool {
        match self {
            Expected::Bits(b) => b == bits,
            Expected::Between(lo, hi) => {
                let v = decode(d, bits).real();
                let sign = |x: f64| x.is_sign_negative();
                lo <= v && v <= hi && (v != 0.0 || sign(v) == sign(lo) || sign(v) == sign(hi))
            }
            Expected::Near(re, im, error) => {
                // Each part is rounded once more.
                let near = |v: f64, to: f64| (v - to).abs() <= error + format::Float::of(d.real()).spacing(to);
                match decode(d, bits) {
                    Value::Pair(x, y) => near(x, re) && near(y, im),
                    v => near(v.real(), re),
                }
            }
            Expected::NotFinite => match decode(d, bits) {
                Value::Pair(x, y) => !x.is_finite() && !y.is_finite(),
                v => !v.real().is_finite(),
            },
            Expected::Open => true,
        }
    }
}
