//! What `--fix` tells: the new expression, the errors before and after, the cost, and why a goal is not reached.
//!
//! Guarantees: the expression is on a line of its own. Does not: measure.

use castwise::{CastLoss, Error, NodeKind, Reason};
use indicatif::HumanBytes;

use super::case::{Cases, Cost, TIMED};
use super::goal::{Goal, refused};
use super::search::Found;
use crate::cli::findings::{Kind, findings};
use crate::cli::numeric::{Errors, number};
use crate::cli::show::aligned;
use crate::cli::{describe, report};

/// The remaining losses that are listed.
const LISTED: usize = 5;

/// The words for what `--deny` calls a kind.
fn kind(least: Kind) -> &'static str {
    match least {
        Kind::Rounds => "lossy",
        Kind::Range => "range",
        Kind::Wraps => "wrap",
    }
}

/// The number of casts in words.
pub(super) fn counted(found: &Found) -> String {
    match found.edits.len() {
        1 => "1 cast".to_string(),
        n => format!("{n} casts"),
    }
}

/// One side of the comparison.
struct Side {
    errors: Vec<Errors>,
    refused: usize,
    costs: Vec<Cost>,
}

/// What is told about a search.
pub(super) struct Told {
    goal: Goal,
    new: String,
    same: bool,
    reached: bool,
    casts: String,
    sides: [Side; 2],
    on: Option<String>,
    reasons: Vec<String>,
    notes: Vec<String>,
}

impl Told {
    /// Measures both expressions, and finds the reasons for what is left.
    pub(super) fn of(cases: &mut Cases, goal: Goal, found: &Found, new: &str) -> Result<Told, Error> {
        let old = cases.text.clone();
        let sides = [side(cases, &old, goal)?, side(cases, new, goal)?];
        let reasons = if found.score.reached { Vec::new() } else { reasons(cases, goal, new)? };
        let on = cases.all.first().and_then(|c| c.measured_on());
        Ok(Told {
            goal,
            new: new.to_string(),
            same: new == old,
            reached: found.score.reached,
            casts: counted(found),
            sides,
            on,
            reasons,
            notes: notes(cases, new),
        })
    }

    /// What the goal is that a set of casts has reached, or not.
    fn goal(&self) -> String {
        match self.goal {
            Goal::Findings(least) => format!("nothing that --deny {} refuses", kind(least)),
            Goal::Tolerance(most) => format!("no relative error beyond {}", number(most)),
        }
    }

    /// What is there if the goal is not reached.
    fn rest(&self) -> String {
        match self.goal {
            Goal::Findings(least) => format!("something that --deny {} refuses", kind(least)),
            Goal::Tolerance(most) => format!("a relative error beyond {}", number(most)),
        }
    }

    /// The error if the goal is not reached.
    pub(super) fn refusal(&self) -> String {
        let list: String = self.reasons.iter().map(|r| format!("\n  {r}")).collect();
        format!("--fix: no set of casts that was tried leaves {}{list}", self.goal())
    }

    /// The text for standard output.
    pub(super) fn text(&self) -> String {
        if self.same {
            let (text, has) = match self.reached {
                true => ("nothing to fix", self.goal()),
                false => ("no cast helps", self.rest()),
            };
            return format!("{text}: the expression has {has}\n\n{}", self.table());
        }
        let s = if self.casts.starts_with("1 ") { "s" } else { "" };
        let (still, left) = if self.reached { ("", self.goal()) } else { ("still ", self.rest()) };
        let notes: String = self.notes.iter().map(|n| format!("note: {n}\n")).collect();
        format!("{} {still}leave{s} {left}:\n\n{}\n\n{}{notes}", self.casts, self.new, self.table())
    }

    fn table(&self) -> String {
        let [before, after] = &self.sides;
        let both = |name: &str, of: &dyn Fn(&Side) -> Option<String>| -> Option<Vec<String>> {
            Some(vec![name.to_string(), of(before)?, of(after)?])
        };
        let worst = |s: &Side| s.errors.iter().map(Errors::largest).reduce(f64::max);
        let mut rows = vec![["", "before", "after"].map(str::to_string).to_vec()];
        let median = |s: &Side| s.errors.iter().map(Errors::median).reduce(f64::max);
        rows.extend(both("largest relative error", &|s| worst(s).map(number)));
        rows.extend(both("median relative error", &|s| median(s).map(number)));
        let lost = |s: &Side| s.errors.iter().map(Errors::lost).sum::<u64>();
        if lost(before) + lost(after) > 0 {
            rows.extend(both("elements that are not finite", &|s| Some(lost(s).to_string())));
        }
        let least = if let Goal::Findings(least) = self.goal { least } else { Kind::Rounds };
        rows.extend(both(&format!("places that --deny {} refuses", kind(least)), &|s| Some(s.refused.to_string())));
        let bytes = |s: &Side| s.costs.iter().map(|c| c.bytes).reduce(|a, b| a + b);
        rows.extend(both("bytes moved in a run (as planned)", &|s| bytes(s).map(|n| HumanBytes(n).to_string())));
        let time = |s: &Side| s.costs.iter().map(|c| c.time.as_secs_f64() * 1e3).reduce(|a, b| a + b);
        let time = time(before).zip(time(after)).map_or(String::new(), |(before, after)| {
            format!("time of a run (measured, median of {TIMED}): {before:.3} ms before, {after:.3} ms after\n")
        });
        let fine = matches!(self.goal, Goal::Tolerance(most) if most < f64::EPSILON);
        let but = if fine { "; what f64 itself rounds is not measured" } else { "" };
        let on = self
            .on
            .as_ref()
            .map_or(String::new(), |on| format!("measured on {on}, relative to the old expression in f64{but}\n"));
        aligned(&rows) + &time + &on
    }
}

fn side(cases: &mut Cases, text: &str, goal: Goal) -> Result<Side, Error> {
    let least = if let Goal::Findings(least) = goal { least } else { Kind::Rounds };
    let (mut errors, mut count, mut costs) = (Vec::new(), 0, Vec::new());
    for case in &mut cases.all {
        count += refused(&case.typed(text)?, text, least).len();
        errors.extend(case.error(text)?);
        costs.extend(case.cost(text)?);
    }
    Ok(Side { errors, refused: count, costs })
}

/// Casts that the new expression has and that lose something: what was implicit is written now.
fn notes(cases: &Cases, new: &str) -> Vec<String> {
    let mut notes = Vec::new();
    for case in &cases.all {
        let Ok(plan) = case.typed(new) else { continue };
        for n in plan.typed.nodes() {
            let NodeKind::Cast { note, .. } = &n.kind else { continue };
            if note.reason != Reason::Requested || note.loss == CastLoss::Exact {
                continue;
            }
            let part = describe::piece(new, report::span(new, n.location).unwrap_or(0..0));
            if cases.text.contains(part.trim_end_matches('…')) {
                continue;
            }
            let loss = if note.loss == CastLoss::Range { "may leave the range" } else { "rounds" };
            let text = format!("`{part}` {loss} ({} -> {}); it is written, so --deny accepts it", note.from, note.to);
            if !notes.contains(&text) {
                notes.push(text);
            }
        }
    }
    notes
}

/// Why a goal is not reached.
fn reasons(cases: &mut Cases, goal: Goal, new: &str) -> Result<Vec<String>, Error> {
    let mut reasons = Vec::new();
    match goal {
        Goal::Findings(least) => {
            for case in &cases.all {
                let plan = case.typed(new)?;
                for f in findings(&plan.typed, new).into_iter().filter(|f| !f.requested && f.kind >= least) {
                    reasons.push(format!("`{}`: {}", describe::piece(new, f.span.clone()), f.label));
                }
            }
        }
        Goal::Tolerance(most) => {
            for case in &mut cases.all {
                for i in 0..case.results.len() {
                    let Some(least) = case.least_error(i)?.filter(|e| !e.within(most)) else { continue };
                    let (name, dtype) = &case.results[i];
                    let whose = name.as_ref().map_or("the result's".into(), |n| format!("`{}`'s", report::escaped(n)));
                    let error = number(least.largest());
                    let lost = if least.lost() > 0 { ", and some are beyond its range" } else { "" };
                    reasons.push(format!(
                        "{whose} dtype {dtype} rounds: even exact results have an error of {error} in it{lost} (cast the \
                         whole to a wider dtype, or write --out-dtype)"
                    ));
                }
            }
            if reasons.is_empty() {
                let errors = cases.all.iter_mut().map(|c| c.error(new)).collect::<Result<Vec<_>, _>>()?;
                let worst = errors.iter().flatten().map(Errors::largest).fold(0.0, f64::max);
                reasons.push(format!(
                    "the smallest error that was found is {}: what is left is lost by ops that casts of their operands do \
                     not change, or in f64 itself",
                    number(worst)
                ));
            }
        }
    }
    reasons.sort();
    reasons.dedup();
    let more = reasons.len().saturating_sub(LISTED);
    reasons.truncate(LISTED);
    if more > 0 {
        reasons.push(format!("(and {more} more)"));
    }
    Ok(reasons)
}
