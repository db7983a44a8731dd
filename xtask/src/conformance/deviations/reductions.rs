//! The deviations of reductions to positions, counts, variances and norms.

use castwise::prelude::*;
use castwise::{Category, DiagnosticKind, Error, Op};

use super::{Deviation, NUMPY, PADDLE, TORCH, any_category, differences, error_was, explicit, identical, refused_as};
use crate::conformance::case::{Arg, Case, Expected};
use crate::conformance::compare::real;
use crate::conformance::run::Answer;

/// The rules.
pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        name: "no-dims",
        reason: "an empty list of dims reduces none; PyTorch takes it for all",
        rules: TORCH,
        explains: |c, a| {
            let shape = c.args.first().and_then(Arg::tensor).map(Tensor::shape);
            c.attrs.dims.as_deref() == Some(&[]) && matches!(a, Ok(t) if Some(t.shape()) == shape)
        },
    },
    Deviation {
        name: "dtype-converts-first",
        reason: "`dtype` converts the operand first in every reduction; PyTorch's `nanmean` looks at the operand's own dtype, its \
                 `norm` refuses a narrower one",
        rules: TORCH,
        explains: |c, a| {
            let refused =
                error_was(c, "unsupported_dtype") && c.op == Op::Nanmean || error_was(c, "cast") && c.op == Op::Norm;
            refused && c.attrs.dtype.is_some_and(|d| identical(a, explicit(c, d)))
        },
    },
    Deviation {
        name: "variance-of-f64",
        reason: "distances are taken from the mean in a second pass; PyTorch updates mean and squares by element, which loses digits",
        rules: TORCH,
        explains: variance_of_f64,
    },
    Deviation {
        name: "norm-of-nothing",
        reason: "no elements have no smallest or largest modulus, and no sum of negative powers; NumPy gives 0 or inf",
        rules: NUMPY,
        explains: |c, a| {
            let empty = |e: &Error| matches!(e, Error::EmptyReduction { op: "norm", .. });
            let refused = matches!(a, Err(e) if empty(e) || matches!(e, Error::Earlier(e) if empty(e)));
            c.op == Op::Norm && refused && c.attrs.number.is_some_and(|p| p.get() < 0.0 || p.get().is_infinite())
        },
    },
    Deviation {
        name: "variance-of-floats",
        reason: "`var` and `std` take floats; Paddle computes in integers, whose results mean nothing, and squares complex numbers",
        rules: PADDLE,
        explains: |c, a| {
            let other = !any_category(c, Category::Float);
            matches!(c.op, Op::Var | Op::Std) && other && refused_as(a, &[DiagnosticKind::UnsupportedDType])
        },
    },
    Deviation {
        name: "nanmean-of-i32",
        reason: "the mean of i32 that are not NaN is that in f32, as of i64; Paddle refuses i32, whose sum is i64",
        rules: PADDLE,
        explains: |c, a| {
            c.op == Op::Nanmean && error_was(c, "promotion_refused") && identical(a, explicit(c, DType::F32))
        },
    },
];

/// Whether answers of f64 differ by what an update by element may lose: a unit for each element, times the size of the elements
/// over their deviation.
fn variance_of_f64(c: &Case, a: &Answer) -> bool {
    let (Some((got, all)), Some(x)) = (differences(c, a), c.args.first().and_then(Arg::tensor)) else { return false };
    let values = x.contiguous().and_then(|x| x.to_vec::<f64>()).unwrap_or_default();
    let most = values.iter().fold(0f64, |m, v| m.max(v.abs()));
    let near = |got: f64, want: f64| {
        let deviation = if c.op == Op::Std { got } else { got.sqrt() };
        let bound = f64::EPSILON * values.len() as f64 * (1.0 + most / deviation);
        (got - want).abs() <= bound * got.abs()
    };
    let expected = matches!(c.expected, Expected::Value(_));
    let floats = got.dtype() == DType::F64 && x.dtype() == DType::F64;
    expected
        && floats
        && matches!(c.op, Op::Var | Op::Std)
        && all.iter().all(|e| near(real(DType::F64, &e.got), real(DType::F64, &e.want)))
}
