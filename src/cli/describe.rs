//! What a reader of a typed program wants to know first: its result, where precision is lost, what was cast.
//!
//! Guarantees: each place is shown under the text it is in. Does not: decide what is lost; `Loss` does.

use std::ops::Range;

use annotate_snippets::Level;
use castwise::{CastNote, Loss, Place, Reason, Rounding, TypedProgram};

use super::plan::Plan;
use super::{Failure, report};

/// A place of an expression where something may be lost.
pub(super) struct Finding {
    pub(super) span: Range<usize>,
    pub(super) label: String,
    pub(super) loss: Loss,
    /// The expression asks for it.
    pub(super) requested: bool,
}

/// Everything that may be lost, in program order: casts that are not exact, and ops that round to 16 bits a value that
/// is wider afterwards.
pub(super) fn findings(typed: &TypedProgram, text: &str) -> Vec<Finding> {
    let span = |place: &Place| report::span(text, place).unwrap_or(0..0);
    let mut found = Vec::new();
    for c in typed.casts().iter().filter(|c| c.loss != Loss::Exact) {
        let what = if c.loss == Loss::Range { "may leave the range" } else { "rounds" };
        let label = format!("{} -> {} {what}{} ({})", c.from, c.to, of_operand(c), c.reason);
        found.push(Finding { span: span(&c.place), label, loss: c.loss, requested: c.reason == Reason::Requested });
    }
    // Relaxed, a fused loop keeps such a value wide.
    let exact = typed.settings().rounding == Rounding::Exact;
    for n in typed.hidden_roundings().into_iter().filter(|_| exact) {
        let label = format!("`{}` rounds to {} before {} takes the value", n.op, n.dtype, n.to);
        found.push(Finding { span: span(&n.place), label, loss: Loss::Rounds, requested: false });
    }
    found.sort_by_key(|f| (f.span.start, f.span.end));
    found
}

/// ` for operand x of add`; nothing for a cast that was written.
pub(super) fn of_operand(c: &CastNote) -> String {
    if c.reason == Reason::Requested {
        return String::new();
    }
    let operand = c.op.def().operands.get(c.operand).copied().unwrap_or_default();
    format!(" for operand {operand} of {}", c.op)
}

/// A piece of the expression, cut where it is long.
pub(super) fn piece(text: &str, span: Range<usize>) -> String {
    let all = report::escaped(text.get(span).unwrap_or_default());
    if all.chars().count() > 48 { all.chars().take(47).chain(['…']).collect() } else { all }
}

/// The result of an expression as a line.
pub(super) fn result(plan: &Plan) -> String {
    format!("result {}\n", plan.result_type())
}

/// The summary of a typed program, behind lines about its results, and the program; the text it was written as.
pub(super) fn explain(results: &str, typed: &TypedProgram, source: &str, path: &str) -> String {
    let mut text = results.to_string();
    let found = findings(typed, source);
    if found.is_empty() {
        text += "every cast is exact, and no value is cast up after an op has rounded it to 16 bits\n";
    } else {
        let s = if found.len() == 1 { "place" } else { "places" };
        let marks: Vec<_> = found.iter().map(|f| (f.span.clone(), f.label.clone())).collect();
        let title = format!("precision may be lost in {} {s}", marks.len());
        text += &report::marked(Level::WARNING, &title, source, path, &marks);
        text.push('\n');
    }
    let casts = typed.casts();
    let count = |l: Loss| casts.iter().filter(|c| c.loss == l).count();
    let s = if casts.len() == 1 { "cast" } else { "casts" };
    let (exact, rounds, range) = (count(Loss::Exact), count(Loss::Rounds), count(Loss::Range));
    text += &format!("{} {s}: {exact} exact, {rounds} that round, {range} that may leave the range\n", casts.len());
    for c in &casts {
        let written = piece(source, report::span(source, &c.place).unwrap_or(0..0));
        text += &format!("  cast {} -> {} ({}){}: {}    {written}\n", c.from, c.to, c.reason, of_operand(c), c.loss);
    }
    text + "\n" + &typed.to_string()
}

/// Refuses what may lose `least` or worse.
pub(super) fn deny(work: &super::plan::Work, least: Loss) -> Result<(), Failure> {
    let mut text = Vec::new();
    for kind in work.kinds()? {
        let Some(first) = kind.first() else { continue };
        let (plan, e) = work.of(first);
        let mut found = findings(&plan.typed, &e.text);
        found.retain(|f| !f.requested && f.loss >= least);
        if found.is_empty() {
            continue;
        }
        let marks: Vec<_> = found.iter().map(|f| (f.span.clone(), f.label.clone())).collect();
        let what = if least == Loss::Range { "the range may be left" } else { "precision may be lost" };
        let s = if marks.len() == 1 { "a place" } else { &format!("{} places", marks.len()) };
        let title = format!("{what} in {s}, and --deny refuses that");
        let names: Vec<&str> = kind.iter().map(|j| j.name.as_str()).collect();
        let note = if work.named { format!("\n  note: {}", super::plan::in_tensors(&names)) } else { String::new() };
        text.push(report::marked(Level::ERROR, &title, &e.text, &e.path, &marks) + &note);
    }
    if text.is_empty() {
        return Ok(());
    }
    text.push("help: cast the operands first, e.g. `cast(a, f32)`; a cast that is written is not refused".to_string());
    Err(Failure { text: text.join("\n"), code: 3 })
}
