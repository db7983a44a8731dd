//! The checks of the deviations from PyTorch: whether an answer is the one that the rule of `deviations.rs` states.

use castwise::prelude::*;
use castwise::{Category, DiagnosticKind, Op};

use super::{
    Difference, any_category, any_dtype, category, differences, error_was, explicit, has_scalar, identical, near,
    operand, refused_as, tensor_scalar,
};
use crate::conformance::case::{Arg, Case, Expected};
use crate::conformance::compare::{computed_in, elements, parts, real, ulps};
use crate::conformance::run::Answer;

pub fn half_pow_sqrt(c: &Case, a: &Answer) -> bool {
    let [Arg::Tensor(x, _), Arg::Scalar(Scalar::Float(e))] = c.args.as_slice() else { return false };
    let Some((_, all)) = differences(c, a) else { return false };
    let source = elements(x);
    let rule = |e: &Difference| {
        let (x, got) = (real(DType::F16, &source[e.at]), real(DType::F16, &e.got));
        x == 0.0 && got == 0.0 && got.is_sign_negative() == x.is_sign_negative()
            || x == f64::NEG_INFINITY && got.is_nan()
            // Within one ulp, as everywhere.
            || (got - real(DType::F16, &e.want)).abs() <= got.abs() / 1024.0
    };
    c.op == Op::Pow && x.dtype() == DType::F16 && *e == 0.5 && all.iter().all(rule)
}

/// Whether x is above 20 and the result is x + log1p(exp(-x)) wherever the answers differ.
pub fn softplus_threshold(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let Some((from, x)) = operand(c, 0, got.shape()) else { return false };
    let rule = |e: &Difference| {
        let x = real(from, &x[e.at]);
        x > 20.0 && ulps(DType::F64, &e.got, &(x + (-x).exp().ln_1p()).to_le_bytes()) <= 1 || near(c, from, e)
    };
    c.op == Op::Softplus && got.dtype() == DType::F64 && all.iter().all(rule)
}

/// Whether the answer is that of both operands cast to their common dtype explicitly; for c32 it is an error.
pub fn ldexp_promotes_first(c: &Case, a: &Answer) -> bool {
    let exponent = c.args.get(1).map(category);
    if c.op != Op::Ldexp || exponent == Some(Category::Int) && !any_category(c, Category::Complex) {
        return false;
    }
    let refused = refused_as(a, &[DiagnosticKind::UnsupportedDType]) && any_dtype(c, |d| d == DType::C32);
    refused || computed_in(c).is_some_and(|d| identical(a, explicit(c, d)))
}

/// Whether one operand is MIN and the result is that of Euclid's algorithm on the magnitudes.
pub fn gcd_of_min(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let (Some((dx, x)), Some((dy, y))) = (operand(c, 0, got.shape()), operand(c, 1, got.shape())) else { return false };
    let least = -(8.0 * got.dtype().size() as f64 - 1.0).exp2();
    let rule = |e: &Difference| {
        let (x, y) = (real(dx, &x[e.at]), real(dy, &y[e.at]));
        let (mut m, mut n) = (x.abs() as u64, y.abs() as u64);
        while n != 0 {
            (m, n) = (n, m % n);
        }
        (x == least || y == least) && real(got.dtype(), &e.got) == m as f64
    };
    // i64 is not exact in f64; its magnitudes are not checked here, so it is not excused.
    c.op == Op::Gcd && dx == dy && got.dtype().size() < 8 && all.iter().all(rule)
}

/// Whether the answer is that of C's `fmod`, with the divisor's sign for `remainder`, where PyTorch gives NaN for
/// finite operands.
pub fn fmod_of_far(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let (Some((dx, x)), Some((dy, y))) = (operand(c, 0, got.shape()), operand(c, 1, got.shape())) else { return false };
    let rule = |e: &Difference| {
        let (x, y) = (real(dx, &x[e.at]), real(dy, &y[e.at]));
        let rest = x % y;
        let moved = if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest };
        let want = if c.op == Op::Remainder { moved } else { rest };
        let got = real(got.dtype(), &e.got);
        // f32 operands have an exact remainder in f64, whose sum with y rounds once more.
        let same = got == want || got == f64::from(want as f32) && dx == DType::F32;
        let far = if dx == DType::F32 { (x as f32 / y as f32).is_infinite() } else { (x / y).is_infinite() };
        far && real(dx, &e.want).is_nan() && y != 0.0 && same && got.is_sign_negative() == want.is_sign_negative()
    };
    let op = matches!(c.op, Op::Fmod | Op::Remainder);
    op && dx == dy && matches!(dx, DType::F32 | DType::F64) && all.iter().all(rule)
}

pub fn composed_in_f32(c: &Case, a: &Answer) -> bool {
    let (Op::PromoteWith, [Arg::Tensor(x, _), _], Ok(got), Expected::Value(want)) =
        (c.op, c.args.as_slice(), a, &c.expected)
    else {
        return false;
    };
    let near = |g: &[u8], w: &[u8]| {
        let ((a, b), (p, q)) = (parts(got.dtype(), g), parts(want.dtype(), w));
        let close = |x: f64, y: f64| (x - y).abs() <= 4.0 * f64::from(f32::EPSILON) * y.abs();
        close(a, p) && close(b, q)
    };
    let same = (got.dtype(), got.shape()) == (want.dtype(), want.shape());
    same && x.dtype().is_integral() && elements(got).iter().zip(&elements(want)).all(|(g, w)| near(g, w))
}

/// Whether the answer differs by one place where a u64 operand has more digits than f32.
pub fn u64_rounds_once(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let rounded = |d: &Difference| {
        let of = |i| {
            operand(c, i, got.shape()).is_some_and(|(from, b)| from == DType::U64 && real(from, &b[d.at]) > 16777216.0)
        };
        (0..c.args.len()).any(of) && ulps(got.dtype(), &d.got, &d.want) <= 1
    };
    got.dtype().is_float() && all.iter().all(rounded)
}

pub fn scalar_for_tensor(c: &Case, a: &Answer) -> bool {
    let op = matches!(c.op, Op::Maximum | Op::Minimum | Op::Fmax | Op::Fmin | Op::Atan2 | Op::LogicalAnd);
    op && error_was(c, "unsupported_dtype") && has_scalar(c) && tensor_scalar(c, a)
}
