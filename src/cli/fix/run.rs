//! The commands with `--fix`.
//!
//! Guarantees: nothing is written before a set of casts is found. Does not: choose casts (`search` does).

use castwise::Error;

use super::case::{Case, Cases};
use super::edits::{Edit, edited, nearness, sites};
use super::goal::{Goal, refused};
use super::search::{Found, Judge, Score, greedy};
use super::told::{self, Told};
use crate::cli::args::Common;
use crate::cli::failure::{Failure, say};
use crate::cli::findings::{Kind, findings};
use crate::cli::plan::{Job, Plan, Work};
use crate::cli::report;
use crate::cli::sampled::Sampled;

/// The parts of an expression that casts are tried at, the programs that it may have, and the elements that the search
/// measures on.
const MOST_SITES: usize = 64;
const MOST_CASES: usize = 16;
const SEARCHED: usize = 1 << 18;
/// Random operands are drawn as many times.
const MOST_RUNS: usize = 64;

/// Rates sets of casts by a goal.
pub(super) struct ByGoal<'c> {
    pub(super) cases: &'c mut Cases,
    pub(super) goal: Goal,
}

impl Judge for ByGoal<'_> {
    type Error = Error;

    fn score(&mut self, edits: &[Edit]) -> Result<Option<Score>, Error> {
        let Some((text, plans)) = self.cases.with(edits) else { return Ok(None) };
        match self.goal {
            Goal::Findings(least) => {
                let left: usize = plans.iter().map(|p| refused(p, &text, least).len()).sum();
                Ok(Some(Score { reached: left == 0, left: left as f64 }))
            }
            Goal::Tolerance(most) => {
                let (mut reached, mut left) = (true, 0.0);
                for case in &mut self.cases.all {
                    let errors = match case.error(&text) {
                        Ok(errors) => errors,
                        // What can't be computed, as a division by a zero that only this cast makes.
                        Err(_) if !edits.is_empty() => return Ok(None),
                        Err(e) => return Err(e),
                    };
                    let Some(errors) = errors else { continue };
                    reached &= errors.within(most);
                    left += errors.weight() + errors.largest().min(1.0) / 100.0;
                }
                Ok(Some(Score { reached, left }))
            }
        }
    }
}

/// The programs of an expression, the first tensor of each.
pub(super) fn cases(work: &mut Work, expression: usize, measured: bool) -> Result<Cases, Failure> {
    let jobs: Vec<Job> = work
        .kinds()?
        .into_iter()
        .filter_map(|kind| kind.first().map(|j| Job { name: j.name.clone(), plan: j.plan }))
        .filter(|job| work.plans[job.plan].expression == expression)
        .take(MOST_CASES)
        .collect();
    let mut all = Vec::new();
    for job in jobs {
        let uses = work.expressions[expression].uses.clone();
        let operand = |i: &usize| work.inputs[*i].info(&job.name).map(|(d, s)| (work.inputs[*i].name.clone(), d, s));
        let operands = uses.iter().map(operand).collect::<Result<Vec<_>, Error>>()?;
        let (plan, e) = work.of(&job);
        let (settings, values) = (plan.typed.settings(), plan.values.clone());
        let results = plan.results.iter().map(|r| (r.name.clone(), r.dtype)).collect();
        let (text, path) = (e.text.clone(), e.path.clone());
        let mut case = Case { settings, out: work.out, operands, values, results, data: None };
        if measured {
            let mut sampled = Sampled::of(work, &job, SEARCHED)?;
            sampled.runs = sampled.runs.min(MOST_RUNS);
            let refuse = |e: Error| Failure { text: report::of_expression(&text, &path, &e, &[]), code: 1 };
            case.measure_on(sampled).map_err(refuse)?;
        }
        all.push(case);
    }
    Ok(Cases { text: work.expressions[expression].text.clone(), all })
}

/// The casts to choose from. Of a long expression, those at what loses something come first.
pub(super) fn candidates(cases: &Cases, plans: &[Plan]) -> Vec<Edit> {
    let lossy: Vec<_> = plans.iter().flat_map(|p| findings(&p.typed, &cases.text)).map(|f| f.span).collect();
    let mut parts = Vec::new();
    for plan in plans {
        for part in sites(&cases.text, &plan.typed, &lossy) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    if parts.len() > MOST_SITES {
        parts.sort_by_key(|p| (nearness(p, &lossy), p.start));
        parts.truncate(MOST_SITES);
    }
    cases.candidates(&parts)
}

/// The search over the programs of an expression.
pub(super) fn search(cases: &mut Cases, goal: Goal) -> Result<Found, Error> {
    let (_, plans) = cases.with(&[]).ok_or_else(|| Error::Internal("an expression that is typed no more".into()))?;
    let candidates = candidates(cases, &plans);
    let found = greedy(&mut ByGoal { cases, goal }, &candidates)?;
    found.ok_or_else(|| Error::Internal("an expression that is typed no more".into()))
}

/// The new text of an expression.
pub(super) fn text_of(cases: &Cases, found: &Found) -> String {
    cases.with(&found.edits).map_or_else(|| edited(&cases.text, &found.edits), |(text, _)| text)
}

/// `explain --fix`: the new expression, with its error and its cost.
pub(in crate::cli) fn explain(work: &mut Work, goal: Goal) -> Result<(String, Option<Failure>), Failure> {
    let mut cases = cases(work, 0, true)?;
    let path = work.expressions.first().map_or(String::new(), |e| e.path.clone());
    let refuse = |text: &str, e: &Error| Failure { text: report::of_expression(text, &path, e, &[]), code: 1 };
    let old = cases.text.clone();
    let found = search(&mut cases, goal).map_err(|e| refuse(&old, &e))?;
    let new = text_of(&cases, &found);
    let told = Told::of(&mut cases, goal, &found, &new).map_err(|e| refuse(&old, &e))?;
    let failure = (!found.score.reached).then(|| Failure { text: report::error(&told.refusal()), code: 3 });
    Ok((told.text(), failure))
}

/// `eval --fix`: replaces each expression of a run that does not reach the goal. Notes say so.
pub(in crate::cli) fn eval(work: &mut Work, common: &Common, goal: Goal, quiet: bool) -> Result<(), Failure> {
    for i in 0..work.expressions.len() {
        if !work.plans.iter().any(|p| p.expression == i) {
            continue;
        }
        let refuses = |least: Kind| {
            let of = work.plans.iter().filter(|p| p.expression == i);
            of.map(|p| refused(p, &work.expressions[i].text, least).len()).sum::<usize>()
        };
        if matches!(goal, Goal::Findings(least) if refuses(least) == 0) {
            continue;
        }
        let mut cases = cases(work, i, matches!(goal, Goal::Tolerance(_)))?;
        let (old, path) = (cases.text.clone(), work.expressions[i].path.clone());
        let refuse = |e: &Error| Failure { text: report::of_expression(&old, &path, e, &[]), code: 1 };
        let found = search(&mut cases, goal).map_err(|e| refuse(&e))?;
        let new = text_of(&cases, &found);
        if !found.score.reached {
            let told = Told::of(&mut cases, goal, &found, &new).map_err(|e| refuse(&e))?;
            return Err(Failure { text: report::error(&told.refusal()), code: 3 });
        }
        if new != old {
            work.rewrite(common, i, &new).map_err(|e| refuse(&e))?;
            if !quiet {
                say(&format!("note: --fix: {}: {}", told::counted(&found), new));
            }
        }
    }
    Ok(())
}
