//! The checks of the deviations from NumPy: whether an answer is the one that the rule of `deviations.rs` states.

use castwise::{Category, Op};

use super::{Difference, any_category, differences, explicit, identical};
use crate::conformance::case::Case;
use crate::conformance::compare::real;
use crate::conformance::run::Answer;

/// Whether the answer is the magnitude of the framework's where they differ.
pub fn lcm_wraps(c: &Case, a: &Answer) -> bool {
    let Some((got, all)) = differences(c, a) else { return false };
    let rule =
        |e: &Difference| real(got.dtype(), &e.want) < 0.0 && real(got.dtype(), &e.got) == -real(got.dtype(), &e.want);
    c.op == Op::Lcm && !all.is_empty() && all.iter().all(rule)
}

pub fn reduction_cast_saturates(c: &Case, a: &Answer) -> bool {
    let float = any_category(c, Category::Float) || any_category(c, Category::Complex);
    let asked = c.attrs.dtype.filter(|d| c.op.is_reduction() && d.is_integral() && float);
    asked.is_some_and(|d| identical(a, explicit(c, d)))
}
