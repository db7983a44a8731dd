//! The deviations of medians, quantiles and other reductions to an element by its rank.

use castwise::prelude::*;
use castwise::{Category, DiagnosticKind, Error, Op};

use super::{Deviation, NUMPY, PADDLE, TORCH, any_category, error_was, explicit, identical, refused_as};
use crate::conformance::case::{Arg, Expected};
use crate::conformance::compare::{elements, epsilon, real};

/// The rules.
pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        name: "median-of-nothing",
        reason: "the median of no floats is NaN, that of no integers an error; PyTorch refuses both where a dim is given, and gives \
                 the least integer where none is",
        rules: TORCH,
        explains: |c, a| {
            let is_nan = |t: &Tensor| elements(t).iter().all(|e| real(t.dtype(), e).is_nan());
            let empty = |e: &Error| matches!(e, Error::EmptyReduction { .. });
            let refused = matches!(a, Err(e) if empty(e) || matches!(e, Error::Earlier(e) if empty(e)));
            let nothing = c.args.first().and_then(Arg::tensor).is_some_and(|x| x.numel() == 0);
            let floats = error_was(c, "empty") && matches!(a, Ok(t) if is_nan(t));
            let integers = any_category(c, Category::Int) && refused;
            matches!(c.op, Op::Median | Op::Nanmedian) && nothing && (floats || integers)
        },
    },
    Deviation {
        name: "dtype-before-number",
        reason: "of two mistakes, the dtype is refused first; PyTorch's `topk` tells of `k`",
        rules: TORCH,
        explains: |c, a| {
            let complex = any_category(c, Category::Complex) && error_was(c, "bad_parameter");
            matches!(c.op, Op::Topk | Op::TopkIndices) && complex && refused_as(a, &[DiagnosticKind::UnsupportedDType])
        },
    },
    Deviation {
        name: "quantile-keeps-the-dtype",
        reason: "a quantile has the elements' dtype; NumPy gives f64 for a list of q",
        rules: NUMPY,
        explains: |c, a| {
            let (Expected::Value(want), Ok(got)) = (&c.expected, a) else { return false };
            let d = got.dtype();
            let near = |(g, w): (Vec<u8>, Vec<u8>)| {
                let (g, w) = (real(d, &g), real(want.dtype(), &w));
                g == w || g.is_nan() && w.is_nan() || (g - w).abs() <= 4.0 * epsilon(d) * w.abs()
            };
            let own = c.args.first().and_then(Arg::tensor).is_some_and(|x| x.dtype() == d && d.is_float());
            let quantile = matches!(c.op, Op::Quantile | Op::Nanquantile);
            let listed = own && want.dtype() == DType::F64 && d != DType::F64 && want.shape() == got.shape();
            quantile && listed && elements(got).into_iter().zip(elements(want)).all(near)
        },
    },
    Deviation {
        name: "quantile-of-floats",
        reason: "`quantile` takes floats; Paddle computes in integers, which have no place for its mark of a NaN",
        rules: PADDLE,
        explains: |c, a| {
            let integers = any_category(c, Category::Int);
            c.op == Op::Quantile && integers && refused_as(a, &[DiagnosticKind::UnsupportedDType])
        },
    },
    Deviation {
        name: "median-of-complex",
        reason: "complex numbers have no order; Paddle takes the median of their real parts",
        rules: PADDLE,
        explains: |c, a| {
            let complex = any_category(c, Category::Complex);
            c.op == Op::Median && complex && refused_as(a, &[DiagnosticKind::UnsupportedDType])
        },
    },
    Deviation {
        name: "nanmedian-of-integers",
        reason: "the mean of two integers is an f32, as in `median`; Paddle's `nanmedian` keeps the integer dtype",
        rules: PADDLE,
        explains: |c, a| {
            let integers = any_category(c, Category::Int) && c.attrs.choice.is_none();
            c.op == Op::Nanmedian && integers && identical(a, explicit(c, DType::F32))
        },
    },
];
