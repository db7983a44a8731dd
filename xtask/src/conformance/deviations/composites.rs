//! The deviations of composites.

use castwise::prelude::*;
use castwise::{Category, DiagnosticKind};

use super::{Deviation, PADDLE, any_category, any_dtype, error_was, refused_as};
use crate::conformance::case::{Case, Expected};

/// The rules.
pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        name: "composites-of-floats",
        reason: "softmax and norms take floats, and refuse what Paddle has no kernel for",
        rules: PADDLE,
        explains: |c, a| {
            let floats = ["softmax", "log_softmax", "layer_norm", "normalize", "cosine_similarity"];
            let missing = matches!(c.expected, Expected::KernelMissing(_)) && floats.contains(&c.op_name.as_str());
            missing && !any_category(c, Category::Float) && refused_as(a, &[DiagnosticKind::UnsupportedDType])
        },
    },
    Deviation {
        name: "layer-norm-weights",
        reason: "the weight and the bias of `layer_norm` have the dims that are normalized; Paddle's function wants them flat",
        rules: PADDLE,
        explains: |c, a| c.op_name == "layer_norm" && error_was(c, "dim") && has_shape(c, a.as_ref().ok()),
    },
    Deviation {
        name: "nan-to-num-of-halves",
        reason: "`nan_to_num` takes f16 and bf16 too, and says of all others that their dtype is not supported; Paddle says so of the \
                 parameter if it is bool",
        rules: PADDLE,
        explains: |c, a| {
            let half = any_dtype(c, |d| d.is_float() && d.size() == 2);
            c.op_name == "nan_to_num"
                && if half {
                    error_was(c, "unsupported_dtype") && has_shape(c, a.as_ref().ok())
                } else {
                    error_was(c, "bad_parameter") && refused_as(a, &[DiagnosticKind::UnsupportedDType])
                }
        },
    },
];

/// Whether there is a result of the first operand's dtype and shape.
fn has_shape(c: &Case, got: Option<&Tensor>) -> bool {
    let first = c.args.first().and_then(|a| a.tensor());
    got.zip(first).is_some_and(|(got, x)| (got.dtype(), got.shape()) == (x.dtype(), x.shape()))
}
