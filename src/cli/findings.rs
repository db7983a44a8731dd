//! Where an expression may lose precision or range, each place with a line about it.
//!
//! Guarantees: casts, ops that round to 16 bits, and scalars come in the order of the text. Does not: decide what is
//! lost; the typed program does.

use std::ops::Range;

use castwise::{CastNote, Loss, Op, Place, Reason, TypedProgram};

use super::report;

/// A place of an expression where something may be lost.
pub(super) struct Finding {
    pub(super) span: Range<usize>,
    pub(super) label: String,
    pub(super) loss: Loss,
    /// The expression asks for it.
    pub(super) requested: bool,
}

/// Everything that may be lost, in program order: casts that are not exact, ops that round to 16 bits a value that is
/// wider afterwards, and scalars that their dtype changes.
pub(super) fn findings(typed: &TypedProgram, text: &str) -> Vec<Finding> {
    let span = |place: &Place| report::span(text, place).unwrap_or(0..0);
    let mut found = Vec::new();
    for c in typed.casts().iter().filter(|c| c.loss != Loss::Exact) {
        let what = if c.loss == Loss::Range { "may leave the range" } else { "rounds" };
        let label = format!("{} -> {} {what}{} ({})", c.from, c.to, of_operand(c), c.reason);
        found.push(Finding { span: span(&c.place), label, loss: c.loss, requested: c.reason == Reason::Requested });
    }
    for n in typed.hidden_roundings() {
        let label = format!("`{}` rounds to {} before {} takes the value", n.op, n.dtype, n.to);
        found.push(Finding { span: span(&n.place), label, loss: Loss::Rounds, requested: false });
    }
    for s in typed.changed_scalars() {
        let label = format!("{} is {} in {}{}", s.value, s.used, s.to, operand_name(s.op, s.operand));
        found.push(Finding { span: span(&s.place), label, loss: s.loss, requested: false });
    }
    found.sort_by_key(|f| (f.span.start, f.span.end));
    found
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
