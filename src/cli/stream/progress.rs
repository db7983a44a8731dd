//! The progress of a run: bytes read and written, their rate, and the time left.
//!
//! Does not: show anything if standard error is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::job::Streamed;
use crate::cli::inputs::Input;
use crate::cli::plan::{Job, Work};

/// The bytes that a job reads.
pub(in crate::cli) fn to_read(work: &Work, job: &Job) -> u64 {
    let (_, e) = work.of(job);
    e.uses.iter().map(|i| work.inputs[*i].to_read(&job.name)).sum()
}

/// The bytes that are read once for all jobs.
pub(in crate::cli) fn to_read_once(work: &Work) -> u64 {
    work.inputs.iter().map(Input::to_read_once).sum()
}

/// A progress bar over all bytes to be read and written.
pub(super) fn bar(work: &Work, streams: &[Option<Streamed>], quiet: bool) -> ProgressBar {
    let of_job = |(job, streamed): (&Job, &Option<Streamed>)| {
        let results = work.of(job).0.bytes().unwrap_or_default();
        let read = to_read(work, job);
        // A stream of several passes reads some inputs again.
        let again = streamed.as_ref().map_or(0, |s| {
            let of = |i: &super::job::TiledInput| (i.width * i.dtype.size() * s.split.rows) as u64;
            s.passes.iter().skip(1).flatten().map(of).sum()
        });
        results + read + again
    };
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let copied: u64 = work.unchanged.iter().map(|u| 2 * u.bytes().unwrap_or_default()).sum();
    let total = to_read_once(work) + work.jobs.iter().zip(streams).map(of_job).sum::<u64>() + copied;
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let style = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
