//! Where an expression may lose precision or range, each place with a line about it.
//!
//! Guarantees: casts, ops that round to 16 bits, integer ops that wrap, and scalars come in the order of the text. Does
//! not: decide what is lost; the typed program does.

use std::ops::Range;

use castwise::{CastLoss, CastNote, Op, Reason, SourceLocation, TypedProgram};

use super::{lines, report};

/// A place of an expression where something may be lost.
pub(super) struct Finding {
    pub(super) span: Range<usize>,
    pub(super) label: String,
    pub(super) kind: Kind,
    /// The expression asks for it.
    pub(super) requested: bool,
    /// What to write instead, in the words of the library.
    pub(super) help: Option<String>,
    location: SourceLocation,
}

/// What may be lost, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Digits.
    Rounds,
    /// Values beyond a range.
    Range,
    /// Integers that wrap in an op, which a wider dtype then hides.
    Wraps,
}

impl From<CastLoss> for Kind {
    fn from(loss: CastLoss) -> Kind {
        if loss == CastLoss::Range { Kind::Range } else { Kind::Rounds }
    }
}

/// Everything that may be lost, in the order of the text: casts that are not exact, ops that round to 16 bits a value
/// that is wider afterwards, integer ops that may wrap before, and scalars that their dtype changes.
pub(super) fn findings(typed: &TypedProgram, text: &str) -> Vec<Finding> {
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
    /// The help in the words of the text.
    pub(super) fn advice(&self, text: &str) -> Option<String> {
        let written = text.get(self.span.clone()).unwrap_or_default();
        let help = report::own_words(self.help.as_deref()?, text, &self.location);
        Some(lines::casts(&help, written))
    }
}

/// ` for operand x of add`; nothing for a cast that was written.
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
