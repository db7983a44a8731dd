//! What castwise does otherwise than JAX 0.10.2 on CPU, which computes by XLA.

use castwise::prelude::*;
use castwise::{Category, Error, Op};

use super::{Deviation, Difference, differences, operand, scalar_tensor, wider};
use crate::conformance::case::{Arg, Case, Cmp, Expected};
use crate::conformance::compare::{close, computed_in, elements, epsilon, parts, same};
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
        name: "xla-branch",
        reason: "logaddexp of complex numbers continues its larger operand; JAX moves the imaginary part to one turn about zero",
        rules: Some(Rules::Jax),
        explains: another_branch,
    },
    Deviation {
        name: "xla-accuracy",
        reason: "functions are within their bounds of the exact value; JAX's formulas cancel or overflow in the dtype itself",
        rules: Some(Rules::Jax),
        explains: |c, a| wider::as_in_f64(c, a) || matches!(c.op, Op::GeluTanh | Op::Silu) && wider::cancels(c, a),
    },
    Deviation {
        name: "integer-power",
        reason: "integer powers are exact and wrap, and a negative one is 0 but for 1 and -1; JAX takes six bits of an exponent",
        rules: Some(Rules::Jax),
        explains: integer_power,
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
    let ([Arg::Tensor(x, _), divisor], Expected::Value(want)) = (&c.args[..], &c.expected) else { return false };
    let (cx, d) = (Eager::with_settings(c.settings), got.dtype());
    let divisor = match divisor {
        Arg::Tensor(t, _) => t.clone(),
        Arg::Scalar(s) => scalar_tensor(*s),
    };
    if c.op != Op::Div || !d.is_float() || divisor.numel() != 1 {
        return false;
    }
    let product = cx.tensor(x).cast(d) * cx.tensor(&divisor).cast(d).reciprocal();
    let Ok(product) = product.result() else { return false };
    let product = elements(&product);
    product.len() == elements(want).len() && all.iter().all(|e| product[e.at] == e.want)
}

/// A quotient that is zero has the sign of the true quotient; JAX adjusts it by steps that lose it.
fn zero_quotient(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let zero = |b: &[u8]| parts(got.dtype(), b).0 == 0.0;
    let divides = matches!(c.op, Op::FloorDivide | Op::Remainder);
    divides && got.dtype().is_float() && all.iter().all(|e| zero(&e.got) && zero(&e.want))
}

/// The imaginary parts differ by whole turns: of 2 pi, and for the base 2 divided by ln 2.
fn another_branch(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let d = got.dtype();
    let turn = match c.op {
        Op::Logaddexp => std::f64::consts::TAU,
        Op::Logaddexp2 => std::f64::consts::TAU / std::f64::consts::LN_2,
        _ => return false,
    };
    let near = |e: &Difference| {
        let ((gr, gi), (wr, wi)) = (parts(d, &e.got), parts(d, &e.want));
        let turns = (gi - wi) / turn;
        let far = (gr - wr).hypot((turns - turns.round()) * turn);
        far <= 1e2 * epsilon(d) * gr.hypot(gi)
    };
    d.is_complex() && all.iter().all(near)
}

/// A power of integers by an exponent that is not of six bits, of which JAX takes the last six.
fn integer_power(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let (Some((from, x)), Some((count, y))) = (operand(c, 0, got.shape()), operand(c, 1, got.shape())) else {
        return false;
    };
    let whole = |d: DType, b: &[u8]| parts(d, b).0 as i64;
    let power = |base: i64, exponent: i64| {
        (0..63).rev().fold(1i64, |r, bit| {
            let r = r.wrapping_mul(r);
            if exponent >> bit & 1 == 1 { r.wrapping_mul(base) } else { r }
        })
    };
    let rule = |e: &Difference| {
        let (base, exponent) = (whole(from, &x[e.at]), whole(count, &y[e.at]));
        let ours = if exponent < 0 { 0 } else { power(base, exponent) };
        let is = |bytes: &[u8], v: i64| bytes == &v.to_le_bytes()[..bytes.len()];
        is(&e.want, power(base, exponent & 63)) && is(&e.got, ours)
    };
    c.op == Op::Pow && got.dtype().category() == Category::Int && all.iter().all(rule)
}

/// Whether eager JAX takes a 0-d tensor of the case for a Python scalar.
pub fn takes_for_scalar(c: &Case) -> bool {
    let zero_dim = |i: usize| matches!(c.args.get(i), Some(Arg::Tensor(t, _)) if t.rank() == 0);
    c.quirk
        && match c.op {
            Op::Pow => zero_dim(1),
            Op::Angle | Op::Softplus => zero_dim(0),
            _ => false,
        }
}

/// Eager JAX takes a 0-d weak tensor for the Python scalar that it came from, in `pow` and `angle`; castwise's dtypes do not
/// depend on where a tensor comes from.
fn weak_zero_dim(c: &Case, a: &Answer) -> bool {
    let Ok(got) = a else { return false };
    let Expected::Value(want) = &c.expected else { return false };
    let same_value = |(g, w): (&Vec<u8>, &Vec<u8>)| parts(got.dtype(), g) == parts(want.dtype(), w);
    let exact = elements(got).iter().zip(&elements(want)).all(same_value);
    takes_for_scalar(c) && got.shape() == want.shape() && (exact || c.op != Op::Pow)
}
