//! The thread that writes: results and rows of results, in the order in which they were computed.
//!
//! Does not: finish the output.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use castwise::io::Stored;
use castwise::{Error, Tensor};
use indicatif::ProgressBar;

use super::job::Slot;
use super::read::Permit;
use crate::cli::inputs::bytes;
use crate::cli::metrics::timed;
use crate::cli::outputs::Output;
use crate::cli::plan::Work;

/// What is to be written.
pub(super) enum Written {
    /// The result of this number of a job.
    Whole { job: usize, result: usize, t: Tensor, permit: Option<Arc<Permit>> },
    /// Rows of results of a job: the positions in `slot.made`, and the numbers of the results.
    Rows { job: usize, slot: Slot, results: Vec<(usize, usize)> },
    /// A tensor that is copied.
    Stored { at: usize, t: Stored, permit: Permit },
}

/// Writes what arrives, and passes the slots of tiles on. Returns the number of bytes, and the time.
pub(super) fn write(
    work: &Work,
    output: &mut Output,
    from: &Receiver<Written>,
    free: &Sender<Slot>,
    bar: &ProgressBar,
) -> Result<(u64, Duration), Error> {
    let (mut written, mut time) = (0, Duration::default());
    let mut count = |n: u64| {
        written += n;
        bar.inc(n);
    };
    for item in from {
        match item {
            Written::Whole { job, result, t, permit } => {
                let (tensor, name, _) = named(work, job, result)?;
                timed(&mut time, || output.write(tensor, name, &t))?;
                count(bytes(t.dtype(), t.shape()));
                drop((t, permit));
            }
            Written::Rows { job, slot, results } => {
                for (i, result) in results {
                    let (tensor, name, shape) = named(work, job, result)?;
                    let Some(part) = slot.made.get(i) else { continue };
                    timed(&mut time, || output.write_part(tensor, name, &shape, part))?;
                    count(bytes(part.dtype(), part.shape()));
                }
                // Nobody reads any more if it was the last tile.
                let _ = free.send(slot);
            }
            Written::Stored { at, t, permit } => {
                timed(&mut time, || output.write_stored(&work.unchanged[at].name, &t))?;
                count(t.bytes().len() as u64);
                drop((t, permit));
            }
        }
    }
    Ok((written, time))
}

/// The name of the tensor that a job is for, if it has one, and the name and shape of one of its results.
type Named<'w> = (Option<&'w str>, Option<&'w str>, Vec<usize>);

fn named(work: &Work, job: usize, result: usize) -> Result<Named<'_>, Error> {
    let job = &work.jobs[job];
    let result = work.of(job).0.results.get(result).ok_or_else(|| Error::Internal("a result without a plan".into()))?;
    Ok((work.tensor(job), result.name.as_deref(), result.shape()?))
}
