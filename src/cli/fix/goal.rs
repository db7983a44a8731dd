//! The goals of `--fix`.
//!
//! Does not: measure.

use crate::cli::args::Fix;
use crate::cli::findings::{Finding, Kind, findings};
use crate::cli::plan::Plan;

/// What a set of casts is to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// No implicit loss of this kind or a worse one.
    Findings(Kind),
    /// No relative error beyond this one.
    Tolerance(f64),
}

impl Goal {
    /// The goal that the options ask for.
    pub(in crate::cli) fn of(options: &Fix) -> Option<Goal> {
        Some(options.tolerance.map_or(Goal::Findings(options.fix?), Goal::Tolerance))
    }
}

/// The implicit losses of a program that a goal refuses.
pub(super) fn refused(plan: &Plan, text: &str, least: Kind) -> Vec<Finding> {
    let mut found = findings(&plan.typed, text);
    found.retain(|f| !f.requested && f.kind >= least);
    found
}
