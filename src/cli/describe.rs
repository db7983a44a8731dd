//! The summary of a typed program: its results, the ops and casts that lose precision, and all casts.
//!
//! Guarantees: each op or cast that loses precision is marked in the source text. Does not: decide what is lost; the
//! typed program does.

use std::ops::Range;

use annotate_snippets::Level;
use castwise::{CastLoss, TypedProgram};

use super::failure::Failure;
use super::findings::{Finding, Kind, findings, of_operand};
use super::plan::Plan;
use super::report;

/// The maximum number of findings that are marked in the text.
const MARKS: usize = 100;
/// The maximum number of findings that get a help text.
const HELPS: usize = 5;

/// A part of the expression as it is written, truncated if it is long.
pub(super) fn piece(text: &str, span: Range<usize>) -> String {
    let all = report::escape_controls(text.get(span).unwrap_or_default()).replace('\n', " ");
    if all.chars().count() > 48 { all.chars().take(47).chain(['…']).collect() } else { all }
}

/// The line about the result of an expression.
pub(super) fn result(plan: &Plan) -> String {
    format!("result {}\n", plan.result_type())
}

/// The explanation of a typed program: `results`, the lines about its results, then a summary and the typed program.
/// `source` is the text that it was written in.
pub(super) fn explain(results: &str, typed: &TypedProgram, source: &str, path: &str) -> String {
    let mut text = results.to_string();
    let found = findings(typed, source);
    if found.is_empty() {
        text += "every cast is exact, and no value is cast to a wider dtype after an op that rounds to 16 bits or may wrap\n";
    } else {
        let s = if found.len() == 1 { "place" } else { "places" };
        let title = format!("{} in {} {s}", lost(&found, Kind::Rounds), found.len());
        text += &marked(Level::WARNING, &title, source, path, &found);
        text.push('\n');
    }
    let casts = typed.casts();
    let count = |l: CastLoss| casts.iter().filter(|c| c.loss == l).count();
    let s = if casts.len() == 1 { "cast" } else { "casts" };
    let (exact, rounds, range) = (count(CastLoss::Exact), count(CastLoss::Rounds), count(CastLoss::Range));
    text += &format!("{} {s}: {exact} exact, {rounds} that round, {range} that may leave the range\n", casts.len());
    for c in &casts {
        let written = piece(source, report::span(source, &c.location).unwrap_or(0..0));
        text += &format!(
            "  cast {} -> {} ({}){}: {}    {written}\n",
            c.from,
            c.to,
            c.reason.words(c.to),
            of_operand(c),
            c.loss
        );
    }
    for n in typed.weak_notes() {
        text += &format!("  {n}    {}\n", piece(source, report::span(source, &n.location).unwrap_or(0..0)));
    }
    text + "\n" + &typed.to_string()
}

/// The title for findings of kind `least` or worse.
fn lost(found: &[Finding], least: Kind) -> &'static str {
    match least {
        _ if found.iter().all(|f| f.kind == Kind::Wraps) => "integers may wrap",
        Kind::Rounds => "precision may be lost",
        Kind::Range | Kind::Wraps => "values may leave the range",
    }
}

/// Renders findings as marks in the source text, with help texts.
fn marked(level: Level<'_>, title: &str, source: &str, path: &str, found: &[Finding]) -> String {
    let marks: Vec<_> = found.iter().take(MARKS).map(|f| (f.span.clone(), f.label.clone())).collect();
    let more = if found.len() > MARKS { format!("\n  (and {} more)", found.len() - MARKS) } else { String::new() };
    let mut helps: Vec<String> = Vec::new();
    for help in found.iter().filter(|f| f.help.is_some()).take(HELPS).filter_map(|f| f.advice(source)) {
        if !helps.contains(&help) {
            helps.push(help);
        }
    }
    report::advised(level, title, source, path, &marks, &helps) + &more
}

/// Returns an error if there are implicit losses of kind `least` or worse.
pub(super) fn deny(work: &super::plan::Work, least: Kind) -> Result<(), Failure> {
    let (mut text, mut casts) = (Vec::new(), false);
    for kind in work.kinds()? {
        let Some(first) = kind.first() else { continue };
        let (plan, e) = work.of(first);
        let mut found = findings(&plan.typed, &e.text);
        found.retain(|f| !f.requested && f.kind >= least);
        if found.is_empty() {
            continue;
        }
        casts |= found.iter().any(|f| f.help.is_none());
        let s = if found.len() == 1 { "1 place" } else { &format!("{} places", found.len()) };
        let title = format!("{} in {s} (refused by --deny)", lost(&found, least));
        let names: Vec<&str> = kind.iter().map(|j| j.name.as_str()).collect();
        let note = if work.named { format!("\n  note: {}", super::report::in_tensors(&names)) } else { String::new() };
        text.push(marked(Level::ERROR, &title, &e.text, &e.path, &found) + &note);
    }
    if text.is_empty() {
        return Ok(());
    }
    if casts {
        text.push("help: cast the operands first, e.g. `cast(a, f32)`; --deny accepts explicit casts".into());
    }
    Err(Failure { text: text.join("\n"), code: 3 })
}
