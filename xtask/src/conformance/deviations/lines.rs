//! The deviations of ops on lines along a dim.

use castwise::prelude::*;
use castwise::{Category, DiagnosticKind, Op};

use super::{Deviation, Difference, NUMPY, PADDLE, TORCH, any_category, differences, error_was, refused_as};
use crate::conformance::case::{Arg, Case, Expected};
use crate::conformance::compare::{close, real};
use crate::conformance::run::Answer;

/// The rules.
pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        name: "line-of-0d",
        reason: "a 0-d value has the dims 0 and -1, and one line of one element; NumPy refuses an axis, or gives one dim",
        rules: NUMPY,
        explains: |c, a| {
            let zero_dim = |t: &Tensor| t.shape().is_empty();
            let one_dim = matches!(&c.expected, Expected::Value(want) if want.shape() == [1]);
            let given = c.args.first().and_then(Arg::tensor).is_some_and(zero_dim);
            c.op.is_line() && given && (error_was(c, "dim") || one_dim) && a.as_ref().is_ok_and(zero_dim)
        },
    },
    Deviation {
        name: "complex-extremes",
        reason: "`cummax` and `cummin` refuse complex numbers; the framework orders them where the value is 0-d, or has no kernel",
        rules: TORCH,
        explains: |c, a| {
            let zero_dim = c.args.first().and_then(Arg::tensor).is_some_and(|t| t.shape().is_empty());
            is_extreme(c.op) && zero_dim && refused_complex(c, a)
        },
    },
    Deviation {
        name: "complex-lines",
        reason: "`cummax`, `cummin` and `logcumsumexp` refuse complex numbers; Paddle takes the dtypes, but has no kernels",
        rules: PADDLE,
        explains: |c, a| {
            let missing = matches!(c.expected, Expected::KernelMissing(_));
            missing && (is_extreme(c.op) || c.op == Op::Logcumsumexp) && refused_complex(c, a)
        },
    },
    Deviation {
        name: "logarithm-of-nothing",
        reason: "`logcumsumexp` is -inf as long as all elements are; Paddle gives the least finite number",
        rules: PADDLE,
        explains: |c, a| {
            let Some((got, all)) = differences(c, a) else { return false };
            let d = got.dtype();
            let least = if d == DType::F64 { f64::MIN } else { f32::MIN.into() };
            let is_nothing = |e: &Difference| real(d, &e.got) == f64::NEG_INFINITY && real(d, &e.want) == least;
            // The others are as near as the case says.
            let near = |e: &Difference| close(c.op, d, &e.got, &e.want, c.tolerance);
            c.op == Op::Logcumsumexp && all.iter().all(|e| is_nothing(e) || near(e))
        },
    },
];

fn is_extreme(op: Op) -> bool {
    matches!(op, Op::Cummax | Op::Cummin | Op::CummaxIndices | Op::CumminIndices)
}

fn refused_complex(c: &Case, a: &Answer) -> bool {
    refused_as(a, &[DiagnosticKind::UnsupportedDType]) && any_category(c, Category::Complex)
}
