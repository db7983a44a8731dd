//! Results that are cast back to the integers or bools that they were computed from, under `--out-dtype`.
//!
//! Guarantees: a result is refused unless every element is exactly an integer, also when it is computed in f64. Does
//! not: decide which results are cast back (`out_dtype` does).

use castwise::{DType, Error, Executor, Feeds, NodeKind, Tensor};

use super::failure::Failure;
use super::plan::{Job, Plan, Work};
use super::reference::Mirror;
use super::report;

/// Above this magnitude, f64 may not show that a value was rounded.
const LARGEST: f64 = (1u64 << 38) as f64;
/// The largest accepted difference from the f64 value, relative to the magnitude of that value plus one.
const NEAR: f64 = 1.0 / (1u64 << 40) as f64;
/// The maximum number of tensors that an error names.
const LISTED: usize = 10;

/// Computes a result that is cast back to integers or bools, and counts the elements that are not exactly such a value.
///
/// An element is exact if casting it back does not change it and the program computes the same number in f64. The
/// second condition is necessary because a large f32 is always an integer, even if the exact result is not.
pub(super) fn back(plan: &Plan, executor: &Executor, feeds: Feeds<'_>) -> Result<(Tensor, i64), Error> {
    let mirror = Mirror::new(&plan.typed)?;
    let (at, from, dtype) = cast_back(plan)?;
    let (result, before) = (&mirror.low[at], &mirror.low[from]);
    let exact = &mirror.exact_after(0)?[from];
    let [difference, size] = mirror.error(from, &mirror.widened(from), exact);
    let same = result.cast(dtype).eq(before);
    let near = difference.le((&size + 1.0) * NEAR);
    // Comparisons with a NaN are false, so it counts as wrong.
    let wrong = same.logical_and(near).logical_and(size.le(LARGEST)).logical_not();
    let wrong = wrong.cast(DType::I64).sum();
    match &executor.run(&mirror.program, feeds, [result, &wrong])?[..] {
        [t, wrong] => Ok((t.clone(), wrong.item()?)),
        _ => Err(Error::Internal("a run without results".into())),
    }
}

/// The node of a result that is cast back, the operand of that cast, and the operand's dtype.
fn cast_back(plan: &Plan) -> Result<(usize, usize, DType), Error> {
    let nodes: Vec<_> = plan.typed.nodes().collect();
    let at = plan.typed.position(&plan.result);
    match at.and_then(|at| Some((at, &nodes.get(at)?.kind))) {
        Some((at, NodeKind::Cast { from, .. })) => Ok((at, *from, nodes[*from].dtype)),
        _ => Err(Error::Internal("the result has no cast back".into())),
    }
}

/// Results that should be cast back to integers or bools, but are not exactly such values.
#[derive(Default)]
pub(super) struct Inexact {
    tensors: Vec<(String, usize, i64)>,
}

impl Inexact {
    /// Records a tensor if some of its elements are wrong.
    pub(super) fn add(&mut self, job: &Job, wrong: i64) {
        if wrong > 0 {
            self.tensors.push((job.name.clone(), job.plan, wrong));
        }
    }

    /// Whether no tensor was recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Returns an error if a tensor was recorded.
    pub(super) fn check(&self, work: &Work) -> Result<(), Failure> {
        let Some((first, ..)) = self.tensors.first() else { return Ok(()) };
        let out = work.out.dtype.map_or("", DType::name);
        let mut lines = Vec::new();
        for (name, plan, wrong) in self.tensors.iter().take(LISTED) {
            let plan = &work.plans[*plan];
            let (_, _, computed) = cast_back(plan)?;
            let what = if work.named { format!("the tensor `{}`", report::escaped(name)) } else { "the result".into() };
            let (own, count) = (plan.dtype, plan.shape()?.iter().product::<usize>());
            lines.push(report::error(&format!(
                "{what} was computed from {own} only, so --out-dtype {out} does not convert it, and {wrong} of {count} elements \
                 in {computed} are not exactly {own}"
            )));
        }
        if self.tensors.len() > LISTED {
            lines.push(report::error(&format!("(and {} more)", self.tensors.len() - LISTED)));
        }
        let input = work.inputs.first().map_or("a", |i| i.name.as_str());
        let map = format!("`--map '{}={input}'` copies it from an input; ", report::escaped(first));
        let map = if work.named { map } else { String::new() };
        lines.push(report::escape_controls(&format!(
            "help: {map}a cast at the end of the expression, e.g. `cast(..., f32)` or `cast(round(...), i64)`, sets the \
             dtype; --out-dtype-all converts all results"
        )));
        Err(Failure { text: lines.join("\n"), code: 1 })
    }
}
