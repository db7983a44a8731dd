//! Runs plans on tensors: for each kernel geometry, schedule, code and driver, and what its reductions leave to do.
//!
//! Guarantees: the one way to run a plan, for eager mode and for compiled programs; results are contiguous and fresh,
//! or written to the tensors given for them if nothing else holds those; a buffer is dropped after its last use; borrowed
//! feeds are read where they are, and copied only to be a result (or by the driver, if they are not aligned). Does not: keep
//! anything between runs; callers hold caches.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use crate::backend::abi::SegmentFn;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::scalar::Bits;
use crate::base::shape::numel;
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::kernels::{CpuLevel, fold_kernel, reduce};
use crate::ops::Op;
use crate::plan::fuse::{BufferId, Origin, Plan, PlannedKernel, plan};
use crate::plan::geometry::{BroadcastKind, Fold, Geometry, Reduction};
use crate::plan::kernel::{Kernel, KernelBuilder};
use crate::plan::options::Passes;
use crate::plan::schedule::{Class, Schedule, schedule};
use crate::plan::strategy::{Strategy, Walk};
use crate::plan::tuning::PARALLEL_WORK;
use crate::runtime::driver::job::{Buffer, FoldKernels, Folded, Launch, Output, StepFailure, strategy};
use crate::runtime::driver::run;
use crate::tensor::layout::Layout;
use crate::tensor::{Storage, Tensor, TensorRef};
#[cfg(test)]
use run::Memory;
use run::{FEW, Run};

mod buffers;
pub(crate) mod dense;
pub(crate) mod run;

use buffers::{Buffers, Value, extents};

/// A kernel made ready for one assignment of classes: its schedule, and its compiled segments.
pub(crate) trait Ready {
    fn schedule(&self) -> &Schedule;
    fn segments(&self) -> &[SegmentFn];
}

/// A schedule of block kernels alone.
pub(crate) struct Blocks(pub(crate) Schedule);

impl Ready for Blocks {
    fn schedule(&self) -> &Schedule {
        &self.0
    }

    fn segments(&self) -> &[SegmentFn] {
        &[]
    }
}

/// Everything about a kernel's launch that depends on its operands' layouts but not on their data: feeds of the same
/// layouts have the same prepared launches.
pub(crate) struct PreparedLaunch<R> {
    geometry: Geometry,
    /// Schedule, code and strategy; `None` if the domain has no elements: there is nothing to run.
    ready: Option<(R, Strategy)>,
    output: Arc<Layout>,
    total: usize,
    /// For each fold, the layout of its result.
    folds: Vec<Arc<Layout>>,
    /// How many elements each result of a fold combines.
    folded: usize,
}

/// What gives a plan's kernels their code.
pub(crate) trait Engine {
    type Ready: Ready;
    /// The schedule and code of a plan's `at`-th kernel for the classes of its operands.
    fn ready(&self, at: usize, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Self::Ready>;
    /// Whether its loops walk rows, and add up what they compute in each.
    fn walks_rows(&self) -> bool {
        false
    }
    /// The time, if launches are to be measured.
    fn clock(&self) -> Option<Instant> {
        None
    }
    /// A kernel was launched at this time, and has ended now.
    fn launched(&self, _: &Arc<Kernel>, _: Instant) {}
}

/// The engine of block kernels alone.
pub(crate) struct BlockEngine;

impl Engine for BlockEngine {
    type Ready = Blocks;

    fn ready(&self, _: usize, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Blocks> {
        schedule(kernel, classes, CpuLevel::get(), &|_| false).map(Blocks)
    }
}

/// The results of a run, in the order of the fetches; `None` for one that is in the tensor given for it.
pub(crate) type Fetched = SmallVec<[Option<Tensor>; 2]>;

/// Runs a plan. A result goes to the tensor of `into` that stands for its fetch, if there is one and it can.
///
/// `launches` has the prepared launches of an earlier run with feeds of the same layouts, or is empty: then they are made.
pub(crate) fn run_plan<E: Engine>(
    plan: &Plan,
    run: &Run<'_>,
    engine: &E,
    launches: &mut Cow<'_, [Arc<PreparedLaunch<E::Ready>>]>,
    into: &mut [Tensor],
) -> Result<Fetched> {
    let known = launches.len() == plan.work.len();
    let mut buffers = Buffers::new(plan, run);
    let mut targets: SmallVec<[Option<&mut Tensor>; FEW]> = into.iter_mut().map(Some).collect();
    // For each buffer its fetch, if there is just one and a tensor for that.
    let mut wanted: SmallVec<[u32; 16]> = SmallVec::new();
    if !targets.is_empty() {
        const NONE: u32 = u32::MAX;
        const SEVERAL: u32 = u32::MAX - 1;
        wanted.resize(plan.buffers.len(), NONE);
        for (i, b) in plan.fetches.iter().enumerate() {
            let fetch = &mut wanted[*b as usize];
            *fetch = if *fetch == NONE { i as u32 } else { SEVERAL };
        }
    }
    for (at, k) in plan.work.iter().enumerate() {
        if let Some(stop) = run.stop {
            stop.check()?;
        }
        buffers.view(&k.inputs)?;
        let mut inputs = SmallVec::<[TensorRef<'_>; FEW]>::new();
        for b in &k.inputs {
            inputs.push(buffers.get(*b)?);
        }
        if !known {
            let made = prepare(plan, k, at, run, &inputs, engine)?;
            launches.to_mut().push(Arc::new(made));
        }
        let prepared = &*launches[at];
        let target = |b: &BufferId| -> Option<&mut Tensor> {
            // What another kernel reads is kept apart from the caller's tensors.
            let wanted = wanted.get(*b as usize).filter(|_| !plan.buffers[*b as usize].read);
            targets.get_mut(*wanted? as usize)?.take()
        };
        let given = k.outputs.iter().map(target).collect();
        let began = engine.clock();
        let made = execute(plan, k, run, prepared, &inputs, given)?;
        if let Some(began) = began {
            engine.launched(&k.kernel, began);
        }
        drop(inputs);
        for (b, t) in k.outputs.iter().chain(k.folds.iter().map(|(_, b)| b)).zip(made) {
            buffers.values[*b as usize] = Some(t.map_or(Value::Delivered, Value::Made));
        }
        for b in &k.inputs {
            let buffer = &plan.buffers[*b as usize];
            if buffer.last_use == at
                && let Some(Value::Made(t)) = buffers.values[*b as usize].take()
                && matches!(buffer.origin, Origin::Kernel)
            {
                run.memory.give(t.numel() * t.dtype().size());
            }
        }
    }
    let fetched = |b: &BufferId| match &buffers.values[*b as usize] {
        Some(Value::Delivered) => Ok(None),
        _ => buffers.get(*b)?.tensor(|bytes| run.storage(bytes)).map(Some),
    };
    plan.fetches.iter().map(fetched).collect()
}

/// Whether a plan is one call of one segment over feeds and constants, with one result: what [`run_direct`] runs.
pub(crate) fn is_direct<R: Ready>(plan: &Plan, launches: &[Arc<PreparedLaunch<R>>]) -> bool {
    let ([k], [prepared]) = (&*plan.work, launches) else { return false };
    let given = |b: &BufferId| matches!(plan.buffers[*b as usize].origin, Origin::Feed(_) | Origin::Constant(_));
    k.folds.is_empty()
        && k.outputs.len() == 1
        && k.outputs == plan.fetches
        && k.inputs.iter().all(given)
        && prepared.ready.as_ref().is_some_and(|(_, strategy)| strategy.walk == Walk::Call)
        && !is_parallel(&k.kernel, prepared.total)
}

/// Runs a plan that [`is_direct`]: what [`run_plan`] does, without what such a plan does not need. `None` if the
/// result is in `into`.
pub(crate) fn run_direct<R: Ready>(
    plan: &Plan,
    run_with: &Run<'_>,
    prepared: &PreparedLaunch<R>,
    into: Option<&mut Tensor>,
) -> Result<Option<Tensor>> {
    let (Some(k), Some((ready, strategy))) = (plan.work.first(), &prepared.ready) else {
        return Err(Error::Internal("a plan without a kernel was run directly".into()));
    };
    let mut inputs: SmallVec<[Buffer<'_>; 8]> = SmallVec::new();
    for b in &k.inputs {
        inputs.push(match &plan.buffers[*b as usize].origin {
            Origin::Feed(i) => buffer(run_with.feeds[*i as usize]),
            Origin::Constant(t) => buffer(TensorRef::Tensor(t)),
            Origin::Kernel | Origin::View(_) => continue,
        });
    }
    let launch = Launch {
        schedule: ready.schedule(),
        segments: ready.segments(),
        geometry: &prepared.geometry,
        strategy,
        consts: &k.consts,
        inputs: &inputs,
        stop: None,
    };
    let dtype = k.kernel.value(k.kernel.outputs[0]).dtype;
    let results = |bytes: &mut [u8]| run(&launch, &mut [Output { bytes, dtype }], &mut [], 1);
    if let Some(own) = into.and_then(|t| t.own_bytes(dtype, &prepared.output)) {
        // A plain schedule has no step that refuses data.
        let _ = results(own)?;
        return Ok(None);
    }
    let mut storage = run_with.storage(prepared.total * dtype.size())?;
    let _ = results(storage.bytes_mut())?;
    Tensor::with_layout(storage, dtype, prepared.output.clone()).map(Some)
}

/// Plans the launch of a plan's kernel for operands of these layouts.
fn prepare<E: Engine>(
    plan: &Plan,
    k: &PlannedKernel,
    at: usize,
    run: &Run<'_>,
    inputs: &[TensorRef<'_>],
    engine: &E,
) -> Result<PreparedLaunch<E::Ready>> {
    let typed = &plan.typed;
    let shape_of = |shape: u32| extents(&typed.shapes[shape as usize], run.dyn_dims);
    let domain = shape_of(k.shape)?;
    let folds = k.folds.iter().map(|(n, _)| Layout::contiguous(&shape_of(typed.nodes[*n as usize].shape)?));
    let folds = folds.collect::<Result<Vec<_>>>()?;
    let ready = |classes: &[Class]| engine.ready(at, &k.kernel, classes);
    let reduced = k.reduced.as_deref().map(|dims| Reduction { dims, adds: engine.walks_rows() && k.kernel.adds_up() });
    let call = Call { inputs, spread: &k.spread, extents: &domain, reduced };
    plan_launch(&call, folds, ready)
}

/// The operands and the domain of a launch.
struct Call<'a> {
    inputs: &'a [TensorRef<'a>],
    /// How each operand is spread over the domain by its type.
    spread: &'a [BroadcastKind],
    extents: &'a [usize],
    reduced: Option<Reduction<'a>>,
}

fn plan_launch<R: Ready>(
    call: &Call<'_>,
    folds: Vec<Arc<Layout>>,
    ready: impl FnOnce(&[Class]) -> Result<R>,
) -> Result<PreparedLaunch<R>> {
    let total = numel(call.extents)?;
    let strides = call.inputs.iter().map(|t| aligned_strides(t.shape(), t.strides(), call.extents));
    let strides = strides.collect::<Result<Vec<_>>>()?;
    // Where there are no elements, nothing bounds the products of the other extents.
    let nothing = if total == 0 { vec![0; call.extents.len()] } else { vec![] };
    let walked = if total == 0 { &nothing[..] } else { call.extents };
    let geometry = Geometry::new(walked, &strides, call.spread, call.reduced);
    let ready = if total == 0 { None } else { Some(ready(&geometry.classes())?) };
    let ready = ready.map(|ready| {
        let strategy = strategy(ready.schedule(), ready.segments(), &geometry);
        (ready, strategy)
    });
    let folded = call.reduced.map_or(1, |r| r.dims.iter().map(|a| walked[*a]).product());
    let output = Layout::contiguous(call.extents)?;
    Ok(PreparedLaunch { geometry, ready, output, total, folds, folded })
}

/// The results of a launch: those of the kernel, then those of its folds. `None` for one that is in its target.
type Results = SmallVec<[Option<Tensor>; FEW]>;

/// Runs a planned kernel. A result goes to its target if that has its dtype and shape and nothing else holds it.
fn execute<R: Ready>(
    plan: &Plan,
    k: &PlannedKernel,
    run: &Run<'_>,
    prepared: &PreparedLaunch<R>,
    inputs: &[TensorRef<'_>],
    targets: SmallVec<[Option<&mut Tensor>; FEW]>,
) -> Result<Results> {
    let made = launch(&k.kernel, &k.consts, run, prepared, inputs, targets)?;
    let (mut results, partials) = made.map_err(|f| refused(&plan.typed, k.nodes[f.step as usize], f.refusal))?;
    for (((node, _), partial), layout) in k.folds.iter().zip(partials).zip(&prepared.folds) {
        results.push(Some(finish(&plan.typed, *node, partial, prepared, layout, run)?));
    }
    Ok(results)
}

fn is_parallel(kernel: &Kernel, total: usize) -> bool {
    // A domain that is only reduced can have more elements than any memory.
    total.saturating_mul(kernel.steps.len().max(1)) >= PARALLEL_WORK
}

/// A kernel's results and the partial results of its folds, or the step that refused its data.
type Made = Result<(Results, SmallVec<[Storage; 2]>), StepFailure>;

/// Runs a kernel.
fn launch<R: Ready>(
    kernel: &Kernel,
    consts: &[Bits],
    run_with: &Run<'_>,
    prepared: &PreparedLaunch<R>,
    inputs: &[TensorRef<'_>],
    mut targets: SmallVec<[Option<&mut Tensor>; FEW]>,
) -> Result<Made> {
    let Some((ready, strategy)) = &prepared.ready else {
        let empty = |v: &u32| {
            Tensor::with_layout(Storage::zeroed(0)?, kernel.value(*v).dtype, prepared.output.clone()).map(Some)
        };
        let results = kernel.outputs.iter().map(empty).collect::<Result<_>>()?;
        return Ok(Ok((results, kernel.folds.iter().map(|_| Storage::zeroed(0)).collect::<Result<_>>()?)));
    };
    let dtype = |v: u32| kernel.value(v).dtype;
    let mut bytes: SmallVec<[Option<&mut [u8]>; FEW]> = SmallVec::new();
    let (mut fresh, mut owned) = (SmallVec::<[Option<Storage>; FEW]>::new(), SmallVec::<[bool; FEW]>::new());
    targets.resize_with(kernel.outputs.len(), || None);
    for (v, target) in kernel.outputs.iter().zip(targets) {
        let own = target.and_then(|t: &mut Tensor| t.own_bytes(dtype(*v), &prepared.output));
        owned.push(own.is_some());
        let needed = prepared.total * dtype(*v).size();
        fresh.push(if own.is_some() { None } else { Some(run_with.storage(needed)?) });
        bytes.push(own);
    }
    let operands: SmallVec<[Buffer<'_>; FEW]> = inputs.iter().map(|t| buffer(*t)).collect();
    let launch = Launch {
        schedule: ready.schedule(),
        segments: ready.segments(),
        geometry: &prepared.geometry,
        strategy,
        consts,
        inputs: &operands,
        stop: run_with.stop,
    };
    let partials = |v: u32| run_with.storage(strategy.partials * dtype(v).size());
    let mut partial: SmallVec<[Storage; 2]> = kernel.folds.iter().map(|(_, v)| partials(*v)).collect::<Result<_>>()?;
    let mut results: SmallVec<[Output<'_>; FEW]> = SmallVec::new();
    for ((own, storage), v) in bytes.into_iter().zip(&mut fresh).zip(&kernel.outputs) {
        let bytes = own.or_else(|| storage.as_mut().map(Storage::bytes_mut)).unwrap_or(&mut []);
        results.push(Output { bytes, dtype: dtype(*v) });
    }
    let mut folds: SmallVec<[Folded<'_>; 2]> = SmallVec::new();
    for (s, (op, v)) in partial.iter_mut().zip(&kernel.folds) {
        folds.push(folded(*op, dtype(*v), &prepared.geometry, s.bytes_mut())?);
    }
    let threads = if is_parallel(kernel, prepared.total) { run_with.threads } else { 1 };
    if let Err(fault) = run(&launch, &mut results, &mut folds, threads)? {
        return Ok(Err(fault));
    }
    drop((results, folds));
    let tensor = |(storage, v): (Option<Storage>, &u32)| match storage {
        Some(s) => Tensor::with_layout(s, dtype(*v), prepared.output.clone()).map(Some),
        None => Ok(None),
    };
    let made = fresh.into_iter().zip(&kernel.outputs).map(tensor).collect::<Result<Results>>()?;
    Ok(Ok((made, partial)))
}

#[inline]
fn buffer(t: TensorRef<'_>) -> Buffer<'_> {
    let (bytes, offset) = t.raw();
    Buffer { bytes, dtype: t.dtype(), offset }
}

/// A reduction as the driver wants it.
fn folded<'a>(op: Op, dtype: DType, geometry: &Geometry, bytes: &'a mut [u8]) -> Result<Folded<'a>> {
    let kernels = FoldKernels::new(geometry, |part| fold_kernel(op, dtype, part, CpuLevel::get()));
    Ok(Folded { bytes, dtype, kernels: kernels.ok_or_else(|| no_fold(op, dtype))? })
}

fn no_fold(op: Op, dtype: DType) -> Error {
    Error::Internal(format!("no kernel for {op} in {dtype}"))
}

/// What a reduction of no elements gives, before the division of a mean.
fn nothing(op: Op, dtype: DType) -> Result<Bits> {
    let f = fold_kernel(op, dtype, reduce::Part::Whole, CpuLevel::get()).ok_or_else(|| no_fold(op, dtype))?;
    Ok(reduce::of_nothing(f))
}

/// The error of data that a node refuses; what a function of the user's said when it panicked.
fn refused(typed: &TypedProgram, node: NodeId, message: Option<String>) -> Error {
    let n = &typed.nodes[node as usize];
    let (op, location) = match &n.kind {
        TypedKind::Apply { op, .. } | TypedKind::Reduce { op, .. } => (*op, n.location.clone()),
        _ => (Op::Cast, n.location.clone()),
    };
    match op {
        Op::Custom(_) => Error::Panicked { op: op.name(), message, location },
        _ => Error::DivisionByZero { op: op.name(), location },
    }
}

/// Makes a reduction's result of its partial results: combined until there is one for each element, divided if it is
/// a mean, and rounded to the node's dtype.
fn finish<R>(
    typed: &TypedProgram,
    node: NodeId,
    partial: Storage,
    prepared: &PreparedLaunch<R>,
    layout: &Arc<Layout>,
    run: &Run<'_>,
) -> Result<Tensor> {
    let n = &typed.nodes[node as usize];
    let TypedKind::Reduce { op, .. } = n.kind else {
        return Err(Error::Internal(format!("typed node {node} is no reduction")));
    };
    let math = n.dtype.op_math();
    let results = layout.elements();
    let mut whole = if prepared.total == 0 {
        if results > 0 && prepared.folded == 0 && matches!(op, Op::Amax | Op::Amin) {
            return Err(Error::EmptyReduction { op: op.name(), location: n.location.clone() });
        }
        let mut storage = run.storage(results * math.size())?;
        let start = nothing(op, math)?;
        storage.bytes_mut().chunks_exact_mut(math.size()).for_each(|to| to.copy_from_slice(&start.0[..math.size()]));
        storage
    } else {
        combined(op, math, partial, &prepared.geometry, results, run)?
    };
    if op == Op::Mean {
        reduce::divide(math, whole.bytes_mut(), prepared.folded);
    }
    let made = cast_tensor(&Tensor::with_layout(whole, math, layout.clone())?, n.dtype)?;
    run.memory.give(results * (math.size() - n.dtype.size()));
    Ok(made)
}

/// Combines partial results in the same way until there are `results` of them.
fn combined(op: Op, math: DType, partial: Storage, g: &Geometry, results: usize, run: &Run<'_>) -> Result<Storage> {
    let count = partial.len() / math.size();
    if count == results {
        return Ok(partial);
    }
    // Partial results of a row, or of the rows of a group, lie behind each other.
    let (extents, reduced) = match g.fold {
        Some(Fold::Columns(_)) => (vec![results / g.inner, count / results, g.inner], 1),
        Some(Fold::Stacked { width, .. }) => (vec![results / width, count / results, width], 1),
        _ => (vec![results, count / results], 1),
    };
    let t = Tensor::from_storage(partial, math, &extents)?;
    let b = KernelBuilder::fold_of(op, math);
    let inputs = [TensorRef::Tensor(&t)];
    let reduced = Some(Reduction { dims: &[reduced], adds: false });
    let call = Call { inputs: &inputs, spread: &[BroadcastKind::Varies], extents: &extents, reduced };
    let ready = |classes: &[Class]| schedule(&b.kernel, classes, CpuLevel::get(), &|_| false).map(Blocks);
    let prepared = plan_launch(&call, vec![], ready)?;
    let made = launch(&b.kernel, &[], run, &prepared, &inputs, SmallVec::new())?;
    drop(t);
    run.memory.give(count * math.size());
    let next = made.ok().and_then(|(_, mut all)| all.pop());
    let next = next.ok_or_else(|| Error::Internal(format!("no result of {op}")))?;
    combined(op, math, next, &prepared.geometry, results, run)
}

/// A tensor in another dtype, by the block kernels of the conversion's path.
pub(crate) fn cast_tensor(t: &Tensor, to: DType) -> Result<Tensor> {
    if t.dtype() == to {
        return Ok(t.clone());
    }
    let b = KernelBuilder::cast_of(t.dtype(), to);
    let inputs = [TensorRef::Tensor(t)];
    let call = Call { inputs: &inputs, spread: &[BroadcastKind::Varies], extents: t.shape(), reduced: None };
    let ready = |classes: &[Class]| schedule(&b.kernel, classes, CpuLevel::get(), &|_| false).map(Blocks);
    let prepared = plan_launch(&call, vec![], ready)?;
    let run = Run::alone();
    let made = launch(&b.kernel, &b.const_bits, &run, &prepared, &inputs, SmallVec::new())?;
    let one = made.ok().and_then(|(mut all, _)| all.pop().flatten());
    one.ok_or_else(|| Error::Internal(format!("no result of a cast to {to}")))
}

/// The strides of a tensor of this shape and these strides along the dims of a domain that it broadcasts to.
fn aligned_strides(shape: &[usize], strides: &[isize], extents: &[usize]) -> Result<Vec<isize>> {
    let front = extents.len().checked_sub(shape.len());
    let front = front.ok_or_else(|| Error::Internal(format!("{shape:?} in a domain of {extents:?}")))?;
    let mut aligned = vec![0; extents.len()];
    for (i, (n, s)) in shape.iter().zip(strides).enumerate() {
        match (*n, extents[front + i]) {
            (1, _) => {}
            (n, e) if n == e => aligned[front + i] = *s,
            _ => return Err(Error::Internal(format!("{shape:?} does not broadcast to {extents:?}"))),
        }
    }
    Ok(aligned)
}

/// Computes one node of a program without feeds with block kernels alone.
pub(crate) fn run_blocks(typed: &Arc<TypedProgram>, node: NodeId) -> Result<Tensor> {
    let plan = plan(typed, &[node], &Default::default(), &vec![false; typed.dyn_dims.len()], Passes::default())?;
    let run = Run::alone();
    let made = run_plan(&plan, &run, &BlockEngine, &mut Cow::Owned(Vec::new()), &mut [])?.pop().flatten();
    made.ok_or_else(|| Error::Internal("an application without a result".into()))
}

#[cfg(test)]
mod tests;
