//! Where castwise departs from the frameworks on purpose: docs/deviations.md as data.

use crate::case::Case;
use crate::run::Answer;

/// One rule.
pub struct Deviation {
    pub name: &'static str,
    /// Why castwise differs.
    pub reason: &'static str,
    /// Whether the rule speaks of the case, and if so whether the answer is the one the rule states.
    pub explains: fn(&Case, &Answer) -> bool,
}

pub const DEVIATIONS: &[Deviation] = &[];
