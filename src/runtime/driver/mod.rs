//! Runs a scheduled kernel over its domain, as the launch's strategy says.
//!
//! Guarantees: before anything is touched, every address that the launch can form is proved to lie inside its buffer
//! ([`Buffer::check`]); compiled segments are called with the lengths that they take, and the elements left over go through
//! padded copies; operands that are not aligned are copied first; results do not depend on tiles, rows or threads. Does not:
//! allocate results, choose the strategy, or combine the partial results of a reduction.

#![allow(unsafe_code, reason = "kernels read and write raw elements; each block has its proof")]

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use crate::base::cancel::Stop;
use crate::base::error::{Error, Result};
use crate::base::host::FloatMode;
use crate::kernels::reduce::of_nothing;
use crate::plan::strategy::Walk;
use crate::plan::tuning::streams;
use crate::runtime::thread_pool::share;
use job::{Buffer, FoldOut, Folded, Job, Launch, Out, Output, StepFailure};
use prefetch::prefetch;

mod call;
pub(crate) mod gather;
pub(crate) mod index;
pub(crate) mod indexed;
pub(crate) mod job;
pub(crate) mod made;
pub(crate) mod order;
mod parts;
mod prefetch;
mod results;
pub(crate) mod scan;
mod scratch;
pub(crate) mod sort;
mod turn;
mod worker;

/// Results and reductions that a job holds without allocating.
const FEW: usize = 8;

/// Does units of work on up to `threads` threads. After an error, or when the run is stopped, the units that are left are not begun.
fn try_share(
    units: usize,
    threads: usize,
    stop: Option<&Stop<'_>>,
    work: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<()> {
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let lock = || failed.lock().unwrap_or_else(PoisonError::into_inner);
    share(units, threads, &|unit| {
        if lock().is_some() {
            return;
        }
        if let Err(e) = stop.map_or(Ok(()), Stop::check).and_then(|()| work(unit)) {
            lock().get_or_insert(e);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Runs a launch on up to `threads` threads. The outer error is a wrong call, the inner one faulty data.
pub(crate) fn run(
    launch: &Launch<'_>,
    outputs: &mut [Output<'_>],
    folds: &mut [Folded<'_>],
    threads: usize,
) -> Result<Result<(), StepFailure>> {
    let (g, strategy) = (launch.geometry, launch.strategy);
    let total = g.row_count() * g.inner;
    let sizes = outputs.iter().all(|o| o.len == total * o.dtype.size())
        && folds.iter().all(|o| o.bytes.len() == strategy.partials * o.dtype.size())
        && folds.len() == launch.schedule.folds.len();
    if launch.inputs.len() != g.operands.len() || !sizes {
        return Err(Error::Internal("a launch with wrong operands or results".into()));
    }
    if total == 0 {
        return Ok(Ok(()));
    }
    let mut aligned = true;
    for (b, o) in launch.inputs.iter().zip(&g.operands) {
        b.check(o.reach)?;
        aligned &= b.is_aligned();
        prefetch(b.addresses(o.reach));
    }
    if !aligned {
        return run_aligned(launch, outputs, folds, threads);
    }
    let _standard = FloatMode::standard();
    let written = outputs.iter().map(|o| o.len).sum::<usize>();
    let read = || launch.inputs.iter().map(|b| b.len.min(total * b.dtype.size())).sum::<usize>();
    // A result in the memory of an operand is written to lines that are in the caches because they were read.
    let in_place = launch.inputs.iter().any(|b| outputs.iter().any(|o| o.start.cast_const() == b.start));
    let pays = || launch.stream.unwrap_or_else(|| streams(written, written + read(), threads));
    let stream = strategy.multiple == 1 && !in_place && pays();
    let outs: smallvec::SmallVec<[Out; FEW]> = outputs.iter().map(|o| Out { start: o.start, dtype: o.dtype }).collect();
    if launch.stop.is_none() && strategy.walk == Walk::Call {
        call::run(launch, &outs, stream, threads);
        return Ok(Ok(()));
    }
    let folds: smallvec::SmallVec<[FoldOut; FEW]> = folds
        .iter_mut()
        .map(|o| FoldOut {
            start: o.bytes.as_mut_ptr(),
            dtype: o.dtype,
            kernels: o.kernels,
            nothing: of_nothing(o.kernels.whole),
        })
        .collect();
    let (fault, stopped) = (Mutex::default(), AtomicBool::new(false));
    let job = Job { launch, outputs: &outs, folds: &folds, stream, fault, stopped };
    job.run(threads, if outputs.is_empty() { read() } else { 0 })
}

/// As [`run`], for operands of which some are not aligned: kernels read copies of these.
#[cold]
fn run_aligned(
    launch: &Launch<'_>,
    outputs: &mut [Output<'_>],
    folds: &mut [Folded<'_>],
    threads: usize,
) -> Result<Result<(), StepFailure>> {
    let (mut copies, mut inputs) = (Vec::new(), launch.inputs.to_vec());
    for (b, o) in launch.inputs.iter().zip(&launch.geometry.operands) {
        copies.push(if b.is_aligned() { None } else { Some(b.copied(o.reach)?) });
    }
    for (b, copy) in inputs.iter_mut().zip(&copies) {
        if let Some((words, offset)) = copy {
            *b = Buffer::new(bytemuck::cast_slice(words), b.dtype, *offset);
        }
    }
    run(&Launch { inputs: &inputs, ..*launch }, outputs, folds, threads)
}
