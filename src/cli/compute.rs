//! The computation of one tensor's results.
//!
//! Does not: read or write.

use castwise::{Error, Executor, Feeds, Tensor};

use super::failure::Failure;
use super::inexact::{self, Inexact};
use super::plan::{Job, Plan, Work};
use super::report::{self, in_tensors};

/// Computes a job's results. If one is to be cast back to integers and is not exactly integer, that is recorded in
/// `inexact`.
pub(super) fn compute(
    plan: &Plan,
    executor: &Executor,
    feeds: &[(String, Tensor)],
    job: &Job,
    inexact: &mut Inexact,
) -> Result<Vec<Tensor>, Error> {
    let feeds = Feeds::from(feeds.to_vec());
    if plan.conversion.is_back() {
        let (t, wrong) = inexact::back(plan, executor, feeds)?;
        inexact.add(job, wrong);
        return Ok(vec![t]);
    }
    executor.run(&plan.program, feeds, &plan.vars())
}

/// The error of a job that failed because of its data.
pub(super) fn refused(work: &Work, job: &Job, error: &Error) -> Failure {
    let (_, e) = work.of(job);
    let notes = if work.named { vec![in_tensors(&[job.name.as_str()])] } else { Vec::new() };
    Failure { text: report::of_expression(&e.text, &e.path, error, &notes), code: 1 }
}
