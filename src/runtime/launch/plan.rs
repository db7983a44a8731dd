//! Runs the kernels of a plan one after the other.
//!
//! Guarantees: a buffer is dropped after its last use; a result that nothing else reads goes to the caller's memory for it. Does not:
//! compile; an [`Engine`] gives schedules and code.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::buffers::{Buffers, Value, extents};
use super::execute::{execute, finished};
use super::in_order::InOrder;
use super::in_place::{Overs, operands_over};
use super::kernel::{Over, Results, Targets, is_parallel, operands};
use super::operand::{Operand, buffer};
use super::prepared::{Blocks, Call, PreparedLaunch, Ready, prepare_call};
use super::rows::{Place, Rows, run_rows};
use super::run::{FEW, Run};
use crate::base::error::{Error, Result};

use crate::kernels::CpuLevel;
use crate::plan::blocking::{Block, Blocking};
use crate::plan::fuse::{BufferId, MadeBy, Origin, Plan, PlannedKernel, RowGroup};
use crate::plan::geometry::Reduction;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::{Class, schedule};
use crate::plan::strategy::Walk;
use crate::runtime::driver::job::{Buffer, Launch, Output};
use crate::runtime::driver::run as drive;
use crate::tensor::layout::Layout;
use crate::tensor::{Slot, Tensor, TensorRef};

/// What gives a plan's kernels their code.
pub(crate) trait Engine: Sync {
    type Ready: Ready + Send + Sync;
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
    /// A kernel's launches took so long.
    fn launched(&self, _: &Arc<Kernel>, _: Duration) {}
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

/// Runs the kernels of a plan. A result is written to the slot of `into` for its fetch, if there is one that has memory for it. If data is
/// refused, the error may be that of a later op; `run_plan` finds the first.
///
/// `launches` has the prepared launches of an earlier run with feeds of the same layouts, or is empty: then they are made.
pub(super) fn run_kernels<E: Engine>(
    plan: &Plan,
    run: &Run<'_>,
    engine: &E,
    launches: &mut Cow<'_, [Arc<PreparedLaunch<E::Ready>>]>,
    into: &mut [Slot<'_>],
) -> Result<Fetched> {
    let wanted = if into.is_empty() { SmallVec::new() } else { only_fetches(plan) };
    let (known, buffers) = (!launches.is_empty(), Buffers::new(plan, run));
    let mut runner = Runner { plan, run, engine, launches, known, next: 0, buffers, wanted, into };
    let mut at = 0;
    while at < plan.work.len() {
        if let Some(stop) = run.stop {
            stop.check()?;
        }
        at = match runner.rows(at)? {
            Some(end) => end,
            None => {
                runner.kernel(at)?;
                at + 1
            }
        };
    }
    let mut buffers = runner.buffers;
    buffers.view(&plan.views)?;
    let fetched = |b: &BufferId| match &buffers.values[*b as usize] {
        Some(Value::Delivered) => Ok(None),
        _ => buffers.get(*b)?.tensor(|bytes| run.storage(bytes)).map(Some),
    };
    plan.fetches.iter().map(fetched).collect()
}

/// A run of a plan, kernel by kernel, or group by group.
struct Runner<'a, 'l, 's, 't, E: Engine> {
    plan: &'a Plan,
    run: &'a Run<'a>,
    engine: &'a E,
    launches: &'l mut Cow<'s, [Arc<PreparedLaunch<E::Ready>>]>,
    /// Whether they are those of an earlier run.
    known: bool,
    /// The next of them.
    next: usize,
    buffers: Buffers<'a>,
    /// For each buffer the fetch that it is, if there is just one and results have places.
    wanted: SmallVec<[Option<u32>; 16]>,
    into: &'l mut [Slot<'t>],
}

impl<'t, E: Engine> Runner<'_, '_, '_, 't, E> {
    /// Runs a kernel over its whole domain.
    fn kernel(&mut self, at: usize) -> Result<()> {
        let (plan, run) = (self.plan, self.run);
        let k = &plan.work[at];
        self.buffers.view(&k.views)?;
        let mut inputs = SmallVec::<[Operand<'_>; FEW]>::new();
        for b in &k.inputs {
            inputs.push(self.buffers.operand(*b)?);
        }
        if !self.known {
            let made = prepare(plan, k, at, run, &inputs, self.engine, |shape| shape)?;
            self.launches.to_mut().push(Arc::new(made));
        }
        let prepared = &self.launches[self.next];
        self.next += 1;
        let (into, wanted, mut over) = (&mut *self.into, &self.wanted, SmallVec::new());
        let target = |(output, (b, v)): (usize, (&BufferId, &u32))| -> Option<&mut [u8]> {
            // What another kernel reads is kept apart from the caller's memory.
            let fetch = wanted.get(*b as usize).copied().flatten().filter(|_| !plan.buffers[*b as usize].read);
            into.get_mut(fetch? as usize)?.take(k.kernel.value(*v).dtype, prepared.shape(), |feeds| {
                operands_over(plan, prepared, output, feeds).map(|found| over.extend(found)).is_some()
            })
        };
        let bytes = k.outputs.iter().zip(&k.kernel.outputs).enumerate().map(target).collect();
        let began = self.engine.clock();
        let made = match in_order(plan, (k, at), run, prepared, &inputs, self.engine)? {
            Some(made) => made,
            None => execute(plan, k, run, prepared, &inputs, Targets { bytes, over, stream: None })?,
        };
        if let Some(began) = began {
            self.engine.launched(&k.kernel, began.elapsed());
        }
        drop(inputs);
        for (b, t) in k.results().zip(made) {
            self.buffers.values[b as usize] = Some(t.map_or(Value::Delivered, Value::Made));
        }
        self.buffers.release(&k.releases);
        Ok(())
    }

    /// Runs the group that begins with a kernel, if there is one and its blocks pay; the kernel behind it.
    fn rows(&mut self, at: usize) -> Result<Option<usize>> {
        let (plan, run) = (self.plan, self.run);
        let Some(group) = plan.group_at(at) else { return Ok(None) };
        let known = |shape: u32| extents(&plan.typed.shapes[shape as usize], run.dyn_dims).ok();
        let Some(blocking) = Blocking::of(plan, group, known) else { return Ok(None) };
        let rows = Rows { plan, group, blocking: &blocking };
        let end = group.kernels.end;
        self.blocks(&rows)?;
        let later: Vec<BufferId> = group.inner.iter().filter(|i| i.is_later_view()).map(|i| i.buffer).collect();
        self.buffers.view(&later)?;
        plan.work[group.kernels.clone()].iter().for_each(|k| self.buffers.release(&k.releases));
        Ok(Some(end))
    }

    /// Runs a group block by block.
    fn blocks(&mut self, rows: &Rows<'_>) -> Result<()> {
        let (plan, run, group) = (self.plan, self.run, rows.group);
        let scratch = rows.scratch(run)?;
        run.memory.take(scratch)?;
        let is_given = |b: &&BufferId| group.inner.iter().all(|i| i.buffer != **b);
        for k in &plan.work[group.kernels.clone()] {
            self.buffers.view(&k.views.iter().filter(is_given).copied().collect::<Vec<_>>())?;
        }
        let mut places = self.places(group)?;
        let results = places.iter_mut().map(|p| p.as_mut().map(Place::bytes)).collect();
        let launches = self.next..self.next + rows.launches();
        let known = self.known.then(|| &self.launches[launches.clone()]);
        let mut prepare = |r: usize, run: &Run<'_>, inputs: &[Operand<'_>], block: &Block| {
            let at = group.kernels.start + r;
            prepare(plan, &plan.work[at], at, run, inputs, self.engine, |shape| block.shape(shape)).map(Arc::new)
        };
        let (buffers, timed) = (&self.buffers, self.engine.clock().is_some());
        let done = run_rows(*rows, run, |b| buffers.operand(b), results, known, (timed, &mut prepare));
        run.memory.give(scratch);
        let done = done?;
        if let Some(made) = done.launches {
            self.launches.to_mut().extend(made);
        }
        self.next = launches.end;
        for (k, time) in plan.work[group.kernels.clone()].iter().zip(done.times) {
            self.engine.launched(&k.kernel, time);
        }
        for (inner, place) in group.inner.iter().zip(places) {
            if let Some(place) = place {
                self.buffers.values[inner.buffer as usize] = Some(place.value()?);
            }
        }
        Ok(())
    }

    /// For each inner buffer of a group, the memory for what leaves it.
    fn places(&mut self, group: &RowGroup) -> Result<Vec<Option<Place<'t>>>> {
        let (plan, run) = (self.plan, self.run);
        let mut all = Vec::with_capacity(group.inner.len());
        for inner in &group.inner {
            let MadeBy::Kernel { dtype, .. } = inner.from else {
                all.push(None);
                continue;
            };
            let buffer = &plan.buffers[inner.buffer as usize];
            let shape = extents(&plan.typed.shapes[buffer.shape as usize], run.dyn_dims)?;
            let fetch = self.wanted.get(inner.buffer as usize).copied().flatten().filter(|_| !buffer.read);
            let own = fetch.and_then(|f| self.into.get_mut(f as usize)?.take(dtype, &shape, |_| false));
            all.push(match own {
                _ if !inner.leaves => None,
                Some(own) => Some(Place::Caller(own)),
                None => {
                    let layout = Layout::contiguous(&shape)?;
                    Some(Place::New(run.storage(layout.elements() * dtype.size())?, dtype, layout))
                }
            });
        }
        Ok(all)
    }
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
            stream: None,
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
    let layout = prepared.layout_of_results(run.feeds.iter().map(|t| t.layout()));
    Tensor::with_layout(storage, dtype, layout.clone()).map(Some)
}

/// Prepares the launch of a plan's kernel for operands of these layouts. `cut` gives the part of a shape that the launch computes.
fn prepare<E: Engine>(
    plan: &Plan,
    k: &PlannedKernel,
    at: usize,
    run: &Run<'_>,
    inputs: &[Operand<'_>],
    engine: &E,
    cut: impl Fn(Vec<usize>) -> Vec<usize>,
) -> Result<PreparedLaunch<E::Ready>> {
    let typed = &plan.typed;
    let shape_of = |shape: u32| extents(&typed.shapes[shape as usize], run.dyn_dims).map(&cut);
    let domain = shape_of(k.shape)?;
    let folds = k.folds.iter().map(|(n, _)| Layout::contiguous(&shape_of(typed.nodes[*n as usize].shape)?));
    let folds = folds.collect::<Result<Vec<_>>>()?;
    if k.moves() {
        return PreparedLaunch::without_loop(&domain, folds);
    }
    let ready = |classes: &[Class]| engine.ready(at, &k.kernel, classes);
    let reduced = k.reduced.as_deref().map(|dims| Reduction { dims, adds: engine.walks_rows() && k.kernel.adds_up() });
    prepare_call(&Call { inputs, spread: &k.spread, extents: &domain, reduced }, folds, ready)
}

/// Runs a kernel that reduces all of a transposed operand, some rows of it at a time. `None`: it is another kernel, or refuses data.
fn in_order<E: Engine>(
    plan: &Plan,
    (k, at): (&PlannedKernel, usize),
    run: &Run<'_>,
    prepared: &PreparedLaunch<E::Ready>,
    inputs: &[Operand<'_>],
    engine: &E,
) -> Result<Option<Results>> {
    let (Some(how), [input]) = (InOrder::of(k, prepared), inputs) else { return Ok(None) };
    let scratch = how.scratch(k, run);
    run.memory.take(scratch)?;
    let ready = |classes: &[Class]| engine.ready(at, &k.kernel, classes);
    let made = how.run(k, run, input, &ready);
    run.memory.give(scratch);
    made?.map(|partials| finished(plan, k, run, prepared, (Results::new(), partials))).transpose()
}
