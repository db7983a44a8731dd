//! What castwise does otherwise than JAX 0.10.2 on CPU, which computes by XLA.

use castwise::prelude::*;
use castwise::{Category, Error, Op};

use super::{Deviation, differences};
use crate::conformance::case::{Arg, Case, Cmp, Expected};
use crate::conformance::compare::{close, computed_in, elements, parts, same, ulps};
use crate::conformance::run::{self, Answer};

pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        name: "xla-zero-divisor",
        reason: "an integer divided by zero is an error; XLA gives -1, -2 or all ones, and JAX documents no value",
        rules: Some(Rules::Jax),
        explains: division_by_zero,
    },
    Deviation {
        name: "xla-subnormals",
        reason: "subnormal numbers are numbers; XLA reads and writes zeros for those of f32, f64 and bf16",
        rules: Some(Rules::Jax),
        explains: subnormals,
    },
    Deviation {
        name: "xla-reciprocal",
        reason: "x / s is a division; XLA multiplies by the rounded reciprocal of a divisor of one element, up to 1 ulp off",
        rules: Some(Rules::Jax),
        explains: reciprocal,
    },
    Deviation {
        name: "floor-divide-zero",
        reason: "a quotient of floats that rounds down to zero has the quotient's sign; JAX's steps lose it",
        rules: Some(Rules::Jax),
        explains: zero_quotient,
    },
    Deviation {
        name: "weak-zero-dim",
        reason: "a 0-d weak tensor promotes like any weak tensor; eager JAX takes it for a Python scalar in pow, angle and softplus",
        rules: Some(Rules::Jax),
        explains: weak_zero_dim,
    },
];

/// An integer divided by zero is an error; XLA gives -1, -2 or the remainder's dividend, by accident of its code.
fn division_by_zero(c: &Case, a: &Answer) -> bool {
    let is_zero_division = |e: &Error| match e {
        Error::DivisionByZero { .. } => true,
        Error::Earlier(e) => matches!(**e, Error::DivisionByZero { .. }),
        _ => false,
    };
    let zero = match c.args.get(1) {
        Some(Arg::Tensor(t, _)) => elements(t).iter().any(|b| parts(t.dtype(), b).0 == 0.0),
        Some(Arg::Scalar(Scalar::Int(v))) => *v == 0,
        Some(Arg::Scalar(Scalar::Bool(v))) => !*v,
        _ => false,
    };
    let divides = matches!(c.op, Op::FloorDivide | Op::Remainder | Op::Fmod | Op::DivTrunc);
    let integers = computed_in(c).is_some_and(|d| d.category() == Category::Int);
    divides && integers && zero && a.as_ref().is_err_and(is_zero_division)
}

/// The tensor with zeros for subnormal numbers, as XLA reads f32, f64, bf16 and their complex numbers.
fn flushed(t: &Tensor) -> Tensor {
    let d = t.dtype();
    let least = match d.real() {
        DType::F32 | DType::BF16 => f64::from(f32::MIN_POSITIVE),
        DType::F64 => f64::MIN_POSITIVE,
        _ => return t.clone(),
    };
    let mut bytes: Vec<u8> = Vec::new();
    for element in elements(t) {
        for part in element.chunks(d.real().size()) {
            let value = parts(d.real(), part).0;
            let subnormal = value != 0.0 && value.abs() < least;
            // The sign is in the last byte.
            let sign = part.last().map_or(0, |b| b & 0x80);
            let zero = std::iter::repeat_n(0, part.len() - 1).chain([sign]);
            if subnormal { bytes.extend(zero) } else { bytes.extend(part) }
        }
    }
    Tensor::from_bytes(d, t.shape(), &bytes).unwrap_or(t.clone())
}

/// Subnormal operands and results are zeros in XLA: with these, the answer is the recorded one.
fn subnormals(c: &Case, a: &Answer) -> bool {
    let (Expected::Value(want), Ok(got)) = (&c.expected, a) else { return false };
    if want.dtype() != got.dtype() || want.shape() != got.shape() {
        return false;
    }
    let args = c.args.iter().map(|a| match a {
        Arg::Tensor(t, weak) => Arg::Tensor(flushed(t), *weak),
        Arg::Scalar(s) => Arg::Scalar(*s),
    });
    let changed =
        Case { args: args.collect(), attrs: c.attrs.clone(), ..Case::bare(&c.file, c.op, vec![], c.settings) };
    let Ok(again) = run::eager(&changed) else { return false };
    let d = want.dtype();
    let near = |g: &[u8], w: &[u8]| match c.cmp {
        Cmp::Approx(tolerance) => close(c.op, d, g, w, tolerance),
        _ => same(d, g, w, true),
    };
    elements(&flushed(&again)).iter().zip(elements(want)).all(|(g, w)| near(g, &w))
}

/// XLA multiplies by the rounded reciprocal of a divisor that is one number.
fn reciprocal(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let one = match c.args.get(1) {
        Some(Arg::Tensor(t, _)) => t.numel() == 1,
        Some(Arg::Scalar(_)) => true,
        None => false,
    };
    let d = got.dtype();
    c.op == Op::Div && d.is_float() && one && all.iter().all(|e| ulps(d, &e.got, &e.want) <= 1)
}

/// A quotient that is zero has the sign of the true quotient; JAX adjusts it by steps that lose it.
fn zero_quotient(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let zero = |b: &[u8]| parts(got.dtype(), b).0 == 0.0;
    let divides = matches!(c.op, Op::FloorDivide | Op::Remainder);
    divides && got.dtype().is_float() && all.iter().all(|e| zero(&e.got) && zero(&e.want))
}

/// Eager JAX takes a 0-d weak tensor for the Python scalar that it came from, in `pow` and `angle`; castwise's dtypes do not
/// depend on where a tensor comes from.
fn weak_zero_dim(c: &Case, a: &Answer) -> bool {
    let Ok(got) = a else { return false };
    let Expected::Value(want) = &c.expected else { return false };
    let zero_dim = |i: usize| c.args.get(i).and_then(Arg::tensor).is_some_and(|t| t.rank() == 0);
    let zero_dim = match c.op {
        Op::Pow => zero_dim(1),
        Op::Angle | Op::Softplus => zero_dim(0),
        _ => false,
    };
    let same_value = |(g, w): (&Vec<u8>, &Vec<u8>)| parts(got.dtype(), g) == parts(want.dtype(), w);
    let exact = elements(got).iter().zip(&elements(want)).all(same_value);
    c.quirk && zero_dim && got.shape() == want.shape() && (exact || c.op != Op::Pow)
}
