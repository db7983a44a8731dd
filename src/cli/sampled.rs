//! The elements that a program is measured on: those of its files, or random ones for inputs without a file.
//!
//! Guarantees: the first rows of large tensors are taken only where that changes no element. Does not: measure.

use castwise::shape::Dim;
use castwise::{DType, Error, Scalar, Settings, Tensor, TypedProgram};

use super::check::combines_positions;
use super::failure::Failure;
use super::out_dtype::OutDtype;
use super::plan::{Job, Plan, Work, plan};
use super::report;
use super::sample::sample;

/// The extent used for a dim that is not a number.
pub(super) const EXTENT: usize = 256;
/// The minimum number of random elements. Small operands are run several times.
const DRAWN: usize = 1 << 16;
const MAX_RUNS: usize = 1024;

/// A program with the elements that it is measured on.
pub(super) struct Sampled {
    pub(super) plan: Plan,
    operands: Vec<(String, DType, Vec<Dim>)>,
    files: Vec<Option<Tensor>>,
    settings: Settings,
    out: OutDtype,
    values: Vec<(String, Scalar)>,
    /// The number of runs, each on other random elements.
    pub(super) runs: usize,
    /// The number of elements of the largest operand.
    pub(super) largest: usize,
    /// Whether some elements are random.
    pub(super) drawn: bool,
}

impl Sampled {
    /// Reads the operands of a job. Of operands with more elements than `large`, the first rows are taken, if possible.
    pub(super) fn of(work: &mut Work, job: &Job, large: usize) -> Result<Sampled, Failure> {
        let (first, e) = work.of(job);
        let (uses, text, path) = (e.uses.clone(), e.text.clone(), e.path.clone());
        let (settings, out, values, at) = (first.typed.settings(), work.out, first.values.clone(), first.expression);
        let mut operands = Vec::new();
        for i in &uses {
            let input = &work.inputs[*i];
            let (dtype, dims) = input.info(&job.name)?;
            let extent = |d: &Dim| Dim::Fixed(if let Dim::Fixed(n) = d { *n } else { EXTENT });
            operands.push((input.name.clone(), dtype, dims.iter().map(extent).collect::<Vec<_>>()));
        }
        let rows = leading_rows(&first.typed, &mut operands, large);
        let refuse = |e: Error| Failure { text: report::of_expression(&text, &path, &e, &[]), code: 1 };
        let plan = planned(settings, at, &text, out, &operands, &values).map_err(refuse)?;

        let mut files = Vec::new();
        for i in &uses {
            let input = &mut work.inputs[*i];
            let file = if input.is_declared() { None } else { Some(input.load(&job.name)?.0) };
            files.push(match (file, rows) {
                (Some(t), Some(rows)) => Some(t.slice(0, 0, rows, 1)?),
                (file, _) => file,
            });
        }
        let largest =
            operands.iter().map(|(_, _, dims)| sampled_extents(dims).iter().product::<usize>()).max().unwrap_or(1);
        let drawn = files.iter().any(Option::is_none);
        let runs = if drawn { DRAWN.div_ceil(largest.max(1)).clamp(1, MAX_RUNS) } else { 1 };
        Ok(Sampled { plan, operands, files, settings, out, values, runs, largest, drawn })
    }

    /// The operands of a run.
    pub(super) fn feeds(&self, run: usize) -> Result<Vec<(String, Tensor)>, Error> {
        let mut feeds = Vec::new();
        for (at, ((name, dtype, dims), file)) in self.operands.iter().zip(&self.files).enumerate() {
            let drawn = || sample(*dtype, &sampled_extents(dims), (run * self.operands.len() + at) as u64);
            feeds.push((name.clone(), file.clone().map_or_else(drawn, Ok)?));
        }
        Ok(feeds)
    }

    /// Another text for the same operands.
    pub(super) fn replan(&self, text: &str) -> Result<Plan, Error> {
        planned(self.settings, self.plan.expression, text, self.out, &self.operands, &self.values)
    }
}

fn planned(
    settings: Settings,
    expression: usize,
    text: &str,
    out: OutDtype,
    operands: &[(String, DType, Vec<Dim>)],
    values: &[(String, Scalar)],
) -> Result<Plan, Error> {
    let named: Vec<_> = operands.iter().map(|(n, d, s)| (n.as_str(), *d, s.clone())).collect();
    let values: Vec<_> = values.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    plan(settings, expression, text, out, &named, &values)
}

/// Cuts operands that are too large to the first rows, and returns their number. This is done only if it does not
/// change the elements: if all shapes are equal and nothing is reduced.
fn leading_rows(typed: &TypedProgram, operands: &mut [(String, DType, Vec<Dim>)], large: usize) -> Option<usize> {
    let dims = operands.first()?.2.clone();
    let Some(Dim::Fixed(all)) = dims.first() else { return None };
    let reduces = combines_positions(typed);
    let elements = sampled_extents(&dims).iter().product::<usize>();
    if elements <= large || reduces || operands.iter().any(|(_, _, d)| *d != dims) {
        return None;
    }
    let rows = (large / (elements / all).max(1)).clamp(1, *all);
    operands.iter_mut().for_each(|(_, _, d)| d[0] = Dim::Fixed(rows));
    Some(rows)
}

/// The extents of dims, with [`EXTENT`] for those that are not numbers.
fn sampled_extents(dims: &[Dim]) -> Vec<usize> {
    dims.iter().map(|d| if let Dim::Fixed(n) = d { *n } else { EXTENT }).collect()
}
