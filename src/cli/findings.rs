//! The ops, casts and scalars of an expression that may lose precision or leave a range, each with a description.
//!
//! Guarantees: casts, ops that round to 16 bits, integer ops that may wrap, and scalars are in the order of the text.
//! Does not: decide what is lost; the typed program does.

use std::ops::Range;

use castwise::{CastLoss, CastNote, Op, Reason, SourceLocation, TypedProgram};

use super::{lines, report};

/// An op, cast or scalar that may lose information.
pub(crate) struct Finding {
    pub(crate) span: Range<usize>,
    pub(crate) label: String,
    pub(crate) kind: Kind,
    /// Whether the expression contains the cast explicitly.
    pub(crate) requested: bool,
    /// The help text of the library.
    pub(crate) help: Option<String>,
    pub(crate) location: SourceLocation,
}

/// The kinds of losses, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Values may be rounded.
    Rounds,
    /// Values may leave the range of a dtype.
    Range,
    /// Integers may wrap in an op before the value is cast to a wider dtype, which hides it.
    Wraps,
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        match text {
            "lossy" => Ok(Kind::Rounds),
            "range" => Ok(Kind::Range),
            "wrap" => Ok(Kind::Wraps),
            _ => Err("expected lossy, range or wrap".to_string()),
        }
    }
}

impl From<CastLoss> for Kind {
    fn from(loss: CastLoss) -> Kind {
        if loss == CastLoss::Range { Kind::Range } else { Kind::Rounds }
    }
}

/// All possible losses in the order of the text: casts that are not exact, ops that round to 16 bits or may wrap before
/// the value is cast to a wider dtype, and scalars that their dtype changes.
pub(crate) fn findings(typed: &TypedProgram, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut find = |location: &SourceLocation, label: String, kind: Kind, requested: bool, help: Option<String>| {
        let span = report::span(text, location).unwrap_or(0..0);
        found.push(Finding { span, label, kind, requested, help, location: location.clone() });
    };
    for c in typed.casts().iter().filter(|c| c.loss != CastLoss::Exact) {
        let what = if c.loss == CastLoss::Range { "may leave the range" } else { "rounds" };
        let label = format!("{} -> {} {what}{} ({})", c.from, c.to, of_operand(c), c.reason.words(c.to));
        find(&c.location, label, c.loss.into(), c.reason == Reason::Requested, None);
    }
    for n in typed.hidden_roundings() {
        let label = format!("`{}` rounds to {} before {} takes the value", n.op, n.dtype, n.to);
        find(&n.location, label, Kind::Rounds, false, None);
    }
    for n in typed.hidden_wraps() {
        let label = format!("`{}` may wrap in {} ({}) before {} takes the value", n.op, n.dtype, n.ranges(), n.to);
        find(&n.location, label, Kind::Wraps, false, Some(n.help));
    }
    for s in typed.changed_scalars() {
        let label = format!("{} is {} in {}{}", s.value, s.used, s.to, operand_name(s.op, s.operand));
        find(&s.location, label, s.loss.into(), false, None);
    }
    found.sort_by_key(|f| (f.span.start, f.span.end));
    found
}

impl Finding {
    /// The help text with the operands as the user wrote them.
    pub(crate) fn advice(&self, text: &str) -> Option<String> {
        let written = text.get(self.span.clone()).unwrap_or_default();
        let help = report::with_operands(self.help.as_deref()?, text, &self.location);
        Some(lines::casts(&help, written))
    }
}

/// Formats ` for operand x of add`. The result is empty for an explicit cast.
pub(super) fn of_operand(c: &CastNote) -> String {
    if c.reason == Reason::Requested {
        return String::new();
    }
    operand_name(c.op, c.operand)
}

fn operand_name(op: Op, operand: usize) -> String {
    let operand = op.def().operands.get(operand).copied().unwrap_or_default();
    format!(" for operand {operand} of {op}")
}
