//! Runs one kernel on tensors.
//!
//! Guarantees: a result is a new tensor, or goes to the memory given for it. Does not: make the results of reductions of their partial results; `finish` does.

use smallvec::SmallVec;

use super::operand::Operand;
use super::prepared::{PreparedLaunch, Ready};
use super::run::{FEW, Run};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::scalar::Bits;
use crate::kernels::{CpuLevel, fold_kernel};
use crate::ops::Op;
use crate::plan::geometry::Geometry;
use crate::plan::kernel::Kernel;
use crate::plan::tuning::PARALLEL_WORK;
use crate::runtime::driver::job::{Buffer, FoldKernels, Folded, Launch, Output, StepFailure};
use crate::runtime::driver::run;
use crate::tensor::{Storage, Tensor};

/// The results of a launch: those of the kernel, then those of its reductions. `None` for one that is in its target.
pub(super) type Results = SmallVec<[Option<Tensor>; FEW]>;

/// A kernel's results and the partial results of its reductions, or the step that refused its data.
pub(super) type Made = Result<(Results, SmallVec<[Storage; 2]>), StepFailure>;

/// Whether the threads share a launch over so many elements.
pub(super) fn is_parallel(kernel: &Kernel, total: usize) -> bool {
    // A domain that is only reduced can have more elements than any memory.
    total.saturating_mul(kernel.steps.len().max(1)) >= PARALLEL_WORK
}

/// Where the results of a launch go.
#[derive(Default)]
pub(super) struct Targets<'a> {
    /// The caller's memory for each result that has some.
    pub(super) bytes: SmallVec<[Option<&'a mut [u8]>; FEW]>,
    /// The operands that are in it.
    pub(super) over: SmallVec<[Over; FEW]>,
    /// Whether results are streamed, if that is decided for several launches together.
    pub(super) stream: Option<bool>,
}

/// An operand that is in the memory of a result, both by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over {
    pub(super) input: usize,
    pub(super) output: usize,
}

/// The operands of a launch as the driver wants them. One in the memory of a result is read by that result's pointer.
pub(super) fn operands<'long: 'a, 'a, const N: usize>(
    count: usize,
    operand: impl Fn(usize) -> Buffer<'long>,
    results: &[Output<'a>],
    over: &[Over],
) -> SmallVec<[Buffer<'a>; N]>
where
    [Buffer<'a>; N]: smallvec::Array<Item = Buffer<'a>>,
{
    let one = |i: usize| match over.iter().find(|o| o.input == i) {
        Some(o) => Buffer::over(&results[o.output]),
        None => operand(i),
    };
    (0..count).map(one).collect()
}

/// Runs a kernel.
pub(super) fn launch<R: Ready>(
    kernel: &Kernel,
    consts: &[Bits],
    run_with: &Run<'_>,
    prepared: &PreparedLaunch<R>,
    inputs: &[Operand<'_>],
    targets: Targets<'_>,
) -> Result<Made> {
    let Some((ready, strategy)) = &prepared.ready else { return nothing(kernel, prepared).map(Ok) };
    let dtype = |v: u32| kernel.value(v).dtype;
    let (mut fresh, mut bytes) = (SmallVec::<[_; FEW]>::new(), SmallVec::<[Option<&mut [u8]>; FEW]>::new());
    let (mut targets, over, stream) = (targets.bytes.into_iter(), targets.over, targets.stream);
    for v in &kernel.outputs {
        let needed = prepared.total * dtype(*v).size();
        let own = targets.next().flatten();
        fresh.push(if own.is_some() { None } else { Some(run_with.storage(needed)?) });
        bytes.push(own);
    }
    let partials = |v: u32| run_with.storage(strategy.partials * dtype(v).size());
    let mut partial: SmallVec<[Storage; 2]> = kernel.folds.iter().map(|(_, v)| partials(*v)).collect::<Result<_>>()?;
    let mut results: SmallVec<[Output<'_>; FEW]> = SmallVec::new();
    for ((own, storage), v) in bytes.into_iter().zip(&mut fresh).zip(&kernel.outputs) {
        let bytes = own.or_else(|| storage.as_mut().map(Storage::bytes_mut)).unwrap_or(&mut []);
        results.push(Output::new(bytes, dtype(*v)));
    }
    let operands = operands::<FEW>(inputs.len(), |i| inputs[i].buffer(), &results, &over);
    let launch = Launch {
        schedule: ready.schedule(),
        segments: ready.segments(),
        geometry: &prepared.geometry,
        strategy,
        consts,
        inputs: &operands,
        stop: run_with.stop,
        stream,
    };
    let mut folds: SmallVec<[Folded<'_>; 2]> = SmallVec::new();
    for (s, (op, v)) in partial.iter_mut().zip(&kernel.folds) {
        folds.push(folded(*op, dtype(*v), &prepared.geometry, s.bytes_mut())?);
    }
    let threads = if is_parallel(kernel, prepared.total) { run_with.threads } else { 1 };
    if let Err(fault) = run(&launch, &mut results, &mut folds, threads)? {
        return Ok(Err(fault));
    }
    drop((results, folds, operands));
    let layout = prepared.layout_of_results(inputs.iter().map(Operand::layout));
    let tensor = |(storage, v): (Option<Storage>, &u32)| match storage {
        Some(s) => Tensor::with_layout(s, dtype(*v), layout.clone()).map(Some),
        None => Ok(None),
    };
    let made = fresh.into_iter().zip(&kernel.outputs).map(tensor).collect::<Result<Results>>()?;
    Ok(Ok((made, partial)))
}

/// The results of a launch over a domain without elements.
fn nothing<R>(kernel: &Kernel, prepared: &PreparedLaunch<R>) -> Result<(Results, SmallVec<[Storage; 2]>)> {
    let empty =
        |v: &u32| Tensor::with_layout(Storage::zeroed(0)?, kernel.value(*v).dtype, prepared.output.clone()).map(Some);
    let results = kernel.outputs.iter().map(empty).collect::<Result<_>>()?;
    Ok((results, kernel.folds.iter().map(|_| Storage::zeroed(0)).collect::<Result<_>>()?))
}

/// A reduction as the driver wants it.
fn folded<'a>(op: Op, dtype: DType, geometry: &Geometry, bytes: &'a mut [u8]) -> Result<Folded<'a>> {
    let kernels = FoldKernels::new(geometry, |part| fold_kernel(op, dtype, part, CpuLevel::get()));
    Ok(Folded { bytes, dtype, kernels: kernels.ok_or_else(|| no_fold(op, dtype))? })
}

pub(super) fn no_fold(op: Op, dtype: DType) -> Error {
    Error::Internal(format!("no kernel for {op} in {dtype}"))
}
