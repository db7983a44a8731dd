//! What reductions, scans and ops of order do otherwise than JAX 0.10.2 on CPU.

use castwise::prelude::*;
use castwise::{Category, DiagnosticKind, Op};

use super::{Deviation, Difference, any_category, differences, error_was, explicit, identical, refused_as};
use crate::conformance::case::{Arg, Case, Expected};
use crate::conformance::compare::{elements, epsilon, parts};
use crate::conformance::run::Answer;

const JAX: Option<Rules> = Some(Rules::Jax);

/// The rules.
pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        name: "norm-of-integers",
        reason: "norms and sums of logarithms of integers are floats; JAX computes some in integers, where the third root of 8 is 1",
        rules: JAX,
        explains: of_integers,
    },
    Deviation {
        name: "nan-of-complex",
        reason: "a complex number with a NaN part is a NaN, which extremes keep and means without NaN leave out; JAX compares the \
                 parts, and counts the other part",
        rules: JAX,
        explains: nan_of_complex,
    },
    Deviation {
        name: "branch-of-sums",
        reason: "`logcumsumexp` of complex numbers continues its larger operand, and -inf adds nothing; JAX moves the imaginary part \
                 to one turn about zero, and has NaN from -inf on",
        rules: JAX,
        explains: branch_of_sums,
    },
    Deviation {
        name: "modulus-of-infinity",
        reason: "the modulus of a complex number with an infinite part is infinite, as C's hypot has it; JAX's norm has NaN beside a NaN",
        rules: JAX,
        explains: |c, a| {
            let near = |d, g: f64, w: f64| (g - w).abs() <= 8.0 * epsilon(d) * w;
            let infinite = |e: &Difference, d| {
                let (got, want) = (parts(d, &e.got).0, parts(d, &e.want).0);
                got.is_infinite() && want.is_nan() || near(d, got, want)
            };
            let complex = any_category(c, Category::Complex);
            c.op == Op::Norm
                && complex
                && differences(c, a).is_some_and(|(t, all)| all.iter().all(|e| infinite(e, t.dtype())))
        },
    },
    Deviation {
        name: "softmax-of-others",
        reason: "`softmax` of unsigned integers is that of their floats, and complex numbers are refused; JAX subtracts the largest \
                 element in the unsigned dtype, which wraps, and orders complex numbers by their real parts",
        rules: JAX,
        explains: |c, a| matches!(c.op_name.as_str(), "softmax" | "log_softmax") && softmax(c, a),
    },
    Deviation {
        name: "positions-of-complex",
        reason: "`argmax` and `argmin` refuse complex numbers, also of an empty dim; JAX looks at the dim first",
        rules: JAX,
        explains: |c, a| {
            let of_complex = matches!(c.op, Op::Argmax | Op::Argmin) && any_category(c, Category::Complex);
            of_complex && error_was(c, "empty") && refused_as(a, &[DiagnosticKind::UnsupportedDType])
        },
    },
    Deviation {
        name: "dims-of-none",
        reason: "a 0-d result has no dims to keep; JAX's medians of a 0-d operand keep one",
        rules: JAX,
        explains: |c, a| {
            let (Expected::Value(want), Ok(got), Some(x)) = (&c.expected, a, c.args.first().and_then(Arg::tensor))
            else {
                return false;
            };
            let kept = c.attrs.keepdim && x.rank() == 0 && got.rank() == 0 && want.shape() == [1];
            kept && matches!(c.op, Op::Median | Op::Nanmedian) && elements(got) == elements(want)
        },
    },
    Deviation {
        name: "zeros-are-equal",
        reason: "-0 and +0 are equal and keep their order, as in JAX's `sort`; JAX's `top_k` has +0 first",
        rules: JAX,
        explains: |c, a| {
            let zero_at = |e: &Difference| {
                let Some(x) = c.args.first().and_then(Arg::tensor) else { return false };
                let (Ok(got), Some(length), Ok(k)) = (a, x.shape().last(), position(&e.got)) else { return false };
                let count = got.shape().last().copied().unwrap_or(1).max(1);
                let at = e.at / count * length + k;
                elements(x).get(at).is_some_and(|b| parts(x.dtype(), b).0 == 0.0)
            };
            c.op == Op::TopkIndices && differences(c, a).is_some_and(|(_, all)| all.iter().all(zero_at))
        },
    },
];

/// A softmax that castwise refuses, or computes in floats.
fn softmax(c: &Case, a: &Answer) -> bool {
    if any_category(c, Category::Complex) {
        return refused_as(a, &[DiagnosticKind::UnsupportedDType]);
    }
    let (Ok(got), Some(x)) = (a, c.args.first().and_then(Arg::tensor)) else { return false };
    let floats = Eager::with_settings(c.settings).tensor(x).cast(got.dtype());
    let same = c.composed.as_ref().and_then(|f| f.apply(&[floats.into()])).and_then(|y| y.result().ok());
    x.dtype().is_unsigned() && identical(a, same)
}

/// A position of four bytes.
fn position(bytes: &[u8]) -> Result<usize, std::array::TryFromSliceError> {
    Ok(u32::from_le_bytes(bytes.try_into()?) as usize)
}

/// The answer is that of the operand in floats, where JAX keeps integers.
fn of_integers(c: &Case, a: &Answer) -> bool {
    let (Expected::Value(want), Ok(got)) = (&c.expected, a) else { return false };
    let integers =
        want.dtype().is_integral() && !any_category(c, Category::Float) && !any_category(c, Category::Complex);
    let of = matches!(c.op, Op::Norm | Op::Logcumsumexp);
    of && integers && got.dtype().is_float() && got.shape() == want.shape() && identical(a, explicit(c, got.dtype()))
}

/// What castwise has is a NaN where the operand has one.
fn nan_of_complex(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let Some(x) = c.args.first().and_then(Arg::tensor) else { return false };
    let nan = |d: DType, b: &[u8]| {
        let (re, im) = parts(d, b);
        re.is_nan() || im.is_nan()
    };
    let half = |b: &Vec<u8>| {
        let (re, im) = parts(x.dtype(), b);
        re.is_nan() != im.is_nan() || re.is_infinite() || im.is_infinite()
    };
    let op = matches!(c.op, Op::Amax | Op::Amin | Op::Cummax | Op::Cummin | Op::Nanmean);
    op && got.dtype().is_complex() && elements(x).iter().any(half) && all.iter().all(|e| nan(got.dtype(), &e.got))
}

/// The imaginary parts differ by whole turns, or an element before was -inf.
fn branch_of_sums(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let Some(x) = c.args.first().and_then(Arg::tensor) else { return false };
    let (d, turn) = (got.dtype(), std::f64::consts::TAU);
    let nothing = elements(x).iter().any(|b| parts(x.dtype(), b).0 == f64::NEG_INFINITY);
    let near = |e: &Difference| {
        let ((gr, gi), (wr, wi)) = (parts(d, &e.got), parts(d, &e.want));
        let turns = (gi - wi) / turn;
        let far = (gr - wr).hypot((turns - turns.round()) * turn);
        nothing && wr.is_nan() && !gr.is_nan() || far <= 1e2 * epsilon(d) * gr.hypot(gi)
    };
    c.op == Op::Logcumsumexp && d.is_complex() && all.iter().all(near)
}
