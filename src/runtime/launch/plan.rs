//! Runs the kernels of a plan one after the other.
//!
//! Guarantees: a buffer is dropped after its last use; a result that nothing else reads goes to the caller's memory for it. Does not:
//! compile; an [`Engine`] gives schedules and code.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use super::buffers::{Buffers, Value, extents};
use super::finish::finish;
use super::in_place::{Overs, operands_over};
use super::index::positions;
use super::kernel::{Over, Results, Targets, is_parallel, launch, operands};
use super::lines::lines;
use super::operand::{Operand, buffer};
use super::order::statistics;
use super::prepared::{Blocks, Call, PreparedLaunch, Ready, prepare_call};
use super::run::{FEW, Run};
use crate::base::error::{Error, Result};
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::kernels::CpuLevel;
use crate::ops::Op;
use crate::plan::fuse::{BufferId, Origin, Plan, PlannedKernel, plan};
use crate::plan::geometry::Reduction;
use crate::plan::kernel::Kernel;
use crate::plan::options::Passes;
use crate::plan::schedule::{Class, schedule};
use crate::plan::strategy::Walk;
use crate::runtime::driver::job::{Buffer, Launch, Output};
use crate::runtime::driver::run as drive;
use crate::tensor::layout::Layout;
use crate::tensor::{Slot, Tensor, TensorRef};

/// What gives a plan's kernels their code.
pub(crate) trait Engine {
    type Ready: Ready;
    /// The schedule and code of a plan's `at`-th kernel for the classes of its operands.
    fn ready(&self, at: usize, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Self::Ready>;
    /// Whether its segments walk rows, and add sums of what they compute in each.
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

/// The engine without compiled code.
pub(crate) struct BlockEngine;

impl Engine for BlockEngine {
    type Ready = Blocks;

    fn ready(&self, _: usize, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Blocks> {
        schedule(kernel, classes, CpuLevel::get(), &|_| false).map(Blocks)
    }
}

/// The results of a run, in the order of the fetches; `None` for one that is in the slot given for it.
pub(crate) type Fetched = SmallVec<[Option<Tensor>; 2]>;

/// Runs a plan. A result is written to the slot of `into` for its fetch, if there is one that has memory for it.
///
/// `launches` has the prepared launches of an earlier run with feeds of the same layouts, or is empty: then they are made.
pub(crate) fn run_plan<E: Engine>(
    plan: &Plan,
    run: &Run<'_>,
    engine: &E,
    launches: &mut Cow<'_, [Arc<PreparedLaunch<E::Ready>>]>,
    into: &mut [Slot<'_>],
) -> Result<Fetched> {
    let known = launches.len() == plan.work.len();
    let mut buffers = Buffers::new(plan, run);
    let wanted = if into.is_empty() { SmallVec::new() } else { only_fetches(plan) };
    for (at, k) in plan.work.iter().enumerate() {
        if let Some(stop) = run.stop {
            stop.check()?;
        }
        buffers.view(&k.views)?;
        let mut inputs = SmallVec::<[Operand<'_>; FEW]>::new();
        for b in &k.inputs {
            inputs.push(buffers.operand(*b)?);
        }
        if !known {
            let made = prepare(plan, k, at, run, &inputs, engine)?;
            launches.to_mut().push(Arc::new(made));
        }
        let mut over = SmallVec::new();
        let target = |(output, (b, v)): (usize, (&BufferId, &u32))| -> Option<&mut [u8]> {
            // What another kernel reads is kept apart from the caller's memory.
            let fetch = wanted.get(*b as usize).copied().flatten().filter(|_| !plan.buffers[*b as usize].read);
            into.get_mut(fetch? as usize)?.take(k.kernel.value(*v).dtype, launches[at].shape(), |feeds| {
                operands_over(plan, &launches[at], output, feeds).map(|found| over.extend(found)).is_some()
            })
        };
        let bytes = k.outputs.iter().zip(&k.kernel.outputs).enumerate().map(target).collect();
        let began = engine.clock();
        let made = execute(plan, k, run, &launches[at], &inputs, Targets { bytes, over })?;
        if let Some(began) = began {
            engine.launched(&k.kernel, began);
        }
        drop(inputs);
        for (b, t) in k.outputs.iter().chain(k.folds.iter().map(|(_, b)| b)).zip(made) {
            buffers.values[*b as usize] = Some(t.map_or(Value::Delivered, Value::Made));
        }
        buffers.release(&k.releases);
    }
    buffers.view(&plan.views)?;
    let fetched = |b: &BufferId| match &buffers.values[*b as usize] {
        Some(Value::Delivered) => Ok(None),
        _ => buffers.get(*b)?.tensor(|bytes| run.storage(bytes)).map(Some),
    };
    plan.fetches.iter().map(fetched).collect()
}

/// For each buffer, its fetch, if there is just one.
fn only_fetches(plan: &Plan) -> SmallVec<[Option<u32>; 16]> {
    let mut counts = vec![0u32; plan.buffers.len()];
    plan.fetches.iter().for_each(|b| counts[*b as usize] += 1);
    let mut only = SmallVec::from_elem(None, plan.buffers.len());
    for (i, b) in (0..).zip(&plan.fetches) {
        only[*b as usize] = (counts[*b as usize] == 1).then_some(i);
    }
    only
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
    run: &Run<'_>,
    prepared: &PreparedLaunch<R>,
    into: Option<&mut Slot<'_>>,
) -> Result<Option<Tensor>> {
    let (Some(k), Some((ready, strategy))) = (plan.work.first(), &prepared.ready) else {
        return Err(Error::Internal("a plan without a kernel was run directly".into()));
    };
    let operand = |i: usize| match &plan.buffers[k.inputs[i] as usize].origin {
        Origin::Constant(t) => buffer(TensorRef::Tensor(t)),
        Origin::Feed(i) => buffer(run.feeds[*i as usize]),
        // Not in a plan that is direct: the driver refuses a launch with no memory for an operand.
        Origin::Kernel | Origin::View(..) | Origin::Extent(..) | Origin::Generated(_) | Origin::Blocks(..) => {
            Buffer::new(&[], k.kernel.inputs[i], 0)
        }
    };
    let dtype = k.kernel.value(k.kernel.outputs[0]).dtype;
    let drive = |bytes: &mut [u8], over: &[Over]| {
        let mut results = [Output::new(bytes, dtype)];
        let inputs = operands::<8>(k.inputs.len(), &operand, &results, over);
        let launch = Launch {
            schedule: ready.schedule(),
            segments: ready.segments(),
            geometry: &prepared.geometry,
            strategy,
            consts: &k.consts,
            inputs: &inputs,
            stop: None,
        };
        // A plain schedule has no step that refuses data.
        drive(&launch, &mut results, &mut [], 1).map(|_| ())
    };
    let mut over = Overs::new();
    let in_place = |feeds: &[usize]| operands_over(plan, prepared, 0, feeds).map(|found| over = found).is_some();
    if let Some(own) = into.and_then(|t| t.take(dtype, prepared.shape(), in_place)) {
        drive(own, &over)?;
        return Ok(None);
    }
    let mut storage = run.storage(prepared.total * dtype.size())?;
    drive(storage.bytes_mut(), &[])?;
    Tensor::with_layout(storage, dtype, prepared.output.clone()).map(Some)
}

/// Prepares the launch of a plan's kernel for operands of these layouts.
fn prepare<E: Engine>(
    plan: &Plan,
    k: &PlannedKernel,
    at: usize,
    run: &Run<'_>,
    inputs: &[Operand<'_>],
    engine: &E,
) -> Result<PreparedLaunch<E::Ready>> {
    let typed = &plan.typed;
    let shape_of = |shape: u32| extents(&typed.shapes[shape as usize], run.dyn_dims);
    let domain = shape_of(k.shape)?;
    let folds = k.folds.iter().map(|(n, _)| Layout::contiguous(&shape_of(typed.nodes[*n as usize].shape)?));
    let folds = folds.collect::<Result<Vec<_>>>()?;
    let ready = |classes: &[Class]| engine.ready(at, &k.kernel, classes);
    let reduced = k.reduced.as_deref().map(|dims| Reduction { dims, adds: engine.walks_rows() && k.kernel.adds_up() });
    prepare_call(&Call { inputs, spread: &k.spread, extents: &domain, reduced }, folds, ready)
}

/// Runs a planned kernel. A result goes to its target, if it has one.
fn execute<R: Ready>(
    plan: &Plan,
    k: &PlannedKernel,
    run: &Run<'_>,
    prepared: &PreparedLaunch<R>,
    inputs: &[Operand<'_>],
    targets: Targets<'_>,
) -> Result<Results> {
    if let ([(node, _)], [Operand::Tensor(input)]) = (&k.folds[..], inputs)
        && let Some((op, _)) = k.kernel.folds.first()
    {
        if op.is_search()
            && let Some(found) = statistics(&plan.typed, *node, *input, prepared, run)?
        {
            return Ok(found);
        }
        if op.is_search() {
            return positions(&plan.typed, *node, *input, prepared, run);
        }
        if op.is_line() {
            return lines(&plan.typed, *node, *input, prepared, run);
        }
    }
    let made = launch(&k.kernel, &k.consts, run, prepared, inputs, targets)?;
    let (mut results, partials) = made.map_err(|f| refused(&plan.typed, k.nodes[f.step as usize], f.refusal))?;
    for (((node, _), partial), layout) in k.folds.iter().zip(partials).zip(&prepared.folds) {
        results.push(Some(finish(&plan.typed, *node, partial, prepared, layout, run, plan.refuses_nothing(*node))?));
    }
    Ok(results)
}

/// The error of data that a node refuses; `message` is that of a user's function that panicked.
fn refused(typed: &TypedProgram, node: NodeId, message: Option<String>) -> Error {
    let n = &typed.nodes[node as usize];
    let (op, location) = match &n.kind {
        TypedKind::Apply { op, .. } | TypedKind::Reduce { op, .. } | TypedKind::Line { op, .. } => {
            (*op, n.location.clone())
        }
        _ => (Op::Cast, n.location.clone()),
    };
    match op {
        Op::Custom(_) => Error::Panicked { op: op.name(), message, location },
        Op::PowChecked => Error::NegativeExponent { op: Op::Pow.name(), location },
        _ => Error::DivisionByZero { op: op.name(), location },
    }
}

/// Computes one node of a program without feeds, without compiled code.
pub(crate) fn run_blocks(typed: &Arc<TypedProgram>, node: NodeId) -> Result<Tensor> {
    let plan = plan(typed, &[node], &Default::default(), &vec![false; typed.dyn_dims.len()], Passes::default())?;
    let made = run_plan(&plan, &Run::alone(), &BlockEngine, &mut Cow::Owned(Vec::new()), &mut [])?.pop().flatten();
    made.ok_or_else(|| Error::Internal("an application without a result".into()))
}
