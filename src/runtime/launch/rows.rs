//! Runs the kernels of a row group for one block of rows after the other, so that a kernel finds in the cache what the one before it left.
//!
//! Guarantees: the bits of running kernel after kernel, for any number of threads; what kernels hand to each other is as large as a block
//! for each thread. Does not: say which error comes first when data is refused: then the group's results are to be made kernel by kernel.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::buffers::{Value, extents};
use super::execute::execute;
use super::kernel::{Targets, is_parallel};
use super::operand::Operand;
use super::prepared::{PreparedLaunch, Ready, aligned_strides};
use super::run::{FEW, MemoryBudget, Run};
use crate::base::cancel::Stop;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::view::View;
use crate::graph::typed::{NodeId, TypedKind};
use crate::plan::blocking::{Block, Blocking};
use crate::plan::fuse::{BufferId, MadeBy, Plan, PlannedKernel, RowGroup, RowSource};
use crate::plan::tuning::streams;
use crate::runtime::thread_pool::share;
use crate::tensor::layout::Layout;
use crate::tensor::{Pool, Storage, Tensor, TensorRef};

/// Launches of a group's kernels: for the longest blocks, then for those that are shorter, if there are.
pub(super) type RowLaunches<R> = Vec<Arc<PreparedLaunch<R>>>;

/// A part of a result for each block, which is taken when the block is made.
type Parts<'a> = Vec<Mutex<Option<&'a mut [u8]>>>;

/// The memory of a result that leaves a group.
pub(super) enum Place<'a> {
    /// The caller's.
    Caller(&'a mut [u8]),
    New(Storage, DType, Arc<Layout>),
}

impl Place<'_> {
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match self {
            Place::Caller(bytes) => bytes,
            Place::New(storage, ..) => storage.bytes_mut(),
        }
    }

    /// What the buffer holds, once its bytes are written.
    pub(super) fn value(self) -> Result<Value<'static>> {
        match self {
            Place::Caller(_) => Ok(Value::Delivered),
            Place::New(storage, dtype, layout) => Tensor::with_layout(storage, dtype, layout).map(Value::Made),
        }
    }
}

/// A group with its blocks.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) plan: &'a Plan,
    pub(super) group: &'a RowGroup,
    pub(super) blocking: &'a Blocking,
}

/// An operand from outside of the group, for one kernel.
struct Given<'a> {
    operand: Operand<'a>,
    /// Its strides along the leading dims.
    strides: SmallVec<[isize; 4]>,
    /// Its layout in a long block, and in a short one.
    layouts: [Arc<Layout>; 2],
}

impl<'a> Given<'a> {
    fn new(operand: Operand<'a>, domain: &[usize], blocks: [&Block; 2]) -> Result<Given<'a>> {
        let all = aligned_strides(operand.shape(), operand.strides(), domain)?;
        let front = domain.len() - operand.shape().len();
        let layout = |block: &Block| {
            let mut shape = operand.shape().to_vec();
            for (d, n) in block.extents.iter().enumerate().skip(front) {
                if shape[d - front] != 1 {
                    shape[d - front] = *n;
                }
            }
            Arc::new(Layout::new(&shape, operand.strides()))
        };
        let layouts = blocks.map(layout);
        Ok(Given { strides: all[..blocks[0].extents.len()].into(), layouts, operand })
    }

    /// What a block reads of it.
    fn part(&self, block: &Block) -> Operand<'_> {
        let skip = self.strides.iter().zip(&block.start).map(|(s, i)| s * *i as isize).sum();
        Operand::Part(&self.operand, skip, &self.layouts[usize::from(block.is_short)])
    }
}

impl<'a> Rows<'a> {
    fn kernels(&self) -> &'a [PlannedKernel] {
        &self.plan.work[self.group.kernels.clone()]
    }

    /// The first block, and the first short one; the first again, if none is shorter.
    fn examples(&self) -> [Block; 2] {
        let last = self.blocking.block(self.blocking.count() - 1);
        let first = self.blocking.block(0);
        if last.is_short { [first, last] } else { [self.blocking.block(0), first] }
    }

    /// How many prepared launches it has: for each kernel one of each size of blocks.
    pub(super) fn launches(&self) -> usize {
        (if self.blocking.has_short() { 2 } else { 1 }) * self.group.kernels.len()
    }

    /// Bytes that kernels hand to each other at once.
    pub(super) fn scratch(&self, run: &Run<'_>) -> Result<usize> {
        Ok(self.blocking.scratch().saturating_mul(self.threads(run)?))
    }

    /// How many threads share the blocks.
    fn threads(&self, run: &Run<'_>) -> Result<usize> {
        for k in self.kernels() {
            let domain = extents(&self.plan.typed.shapes[k.shape as usize], run.dyn_dims)?;
            if is_parallel(&k.kernel, domain.iter().product()) {
                return Ok(run.threads.min(self.blocking.count()).max(1));
            }
        }
        Ok(1)
    }

    /// For each kernel, whether its results are streamed.
    fn streamed(&self, dyn_dims: &[usize], threads: usize) -> Vec<bool> {
        let mut first = 0;
        let one = |k: &PlannedKernel| {
            while matches!(self.group.inner.get(first).map(|i| i.from), Some(MadeBy::View(..))) {
                first += 1;
            }
            let results = &self.group.inner[first..first + k.outputs.len()];
            first += k.outputs.len() + k.folds.len();
            let sizes = k.kernel.outputs.iter().map(|v| k.kernel.value(*v).dtype.size());
            let domain = extents(&self.plan.typed.shapes[k.shape as usize], dyn_dims);
            let elements = domain.map_or(0, |d| d.iter().product::<usize>());
            let written = elements.saturating_mul(sizes.sum());
            results.iter().all(|i| i.leaves && i.last.is_none())
                && streams(written, written.saturating_add(self.blocking.read()), threads)
        };
        self.kernels().iter().map(one).collect()
    }

    /// The memory of results as one part for each block.
    fn parts<'b>(&self, results: Vec<Option<&'b mut [u8]>>) -> Vec<Option<Parts<'b>>> {
        let (count, rows) = (self.blocking.count(), self.blocking.all());
        let cut = |mut bytes: &'b mut [u8]| {
            let row = bytes.len() / rows;
            let mut parts = Parts::with_capacity(count);
            for at in 0..count {
                let (part, rest) = bytes.split_at_mut(self.blocking.block(at).rows.len() * row);
                parts.push(Mutex::new(Some(part)));
                bytes = rest;
            }
            parts
        };
        results.into_iter().map(|r| r.map(cut)).collect()
    }

    /// The group's operands from outside, for each kernel by their places among its operands.
    fn given<'b>(
        &self,
        dyn_dims: &[usize],
        operand: impl Fn(BufferId) -> Result<Operand<'b>>,
    ) -> Result<Vec<Vec<Option<Given<'b>>>>> {
        let [long, short] = self.examples();
        let mut all = Vec::with_capacity(self.kernels().len());
        for (k, inputs) in self.kernels().iter().zip(&self.group.inputs) {
            let domain = extents(&self.plan.typed.shapes[k.shape as usize], dyn_dims)?;
            let one = |s: &RowSource| match s {
                RowSource::Given(b) => Given::new(operand(*b)?, &domain, [&long, &short]).map(Some),
                RowSource::Inner(_) => Ok(None),
            };
            all.push(inputs.iter().map(one).collect::<Result<Vec<_>>>()?);
        }
        Ok(all)
    }
}

/// What prepares a group's kernel for a block's operands.
pub(super) type Prepare<'a, R> =
    &'a mut dyn FnMut(usize, &Run<'_>, &[Operand<'_>], &Block) -> Result<Arc<PreparedLaunch<R>>>;

/// What the threads share that run a group.
struct Work<'a, 'b> {
    rows: Rows<'a>,
    given: Vec<Vec<Option<Given<'b>>>>,
    /// For each inner buffer, the parts of the result that it is, if it leaves the group.
    parts: Vec<Option<Parts<'a>>>,
    feeds: &'a [TensorRef<'a>],
    dyn_dims: &'a [usize],
    stop: Option<&'a Stop<'a>>,
    pool: &'a Pool,
    /// For each kernel, whether its results are streamed: those that leave the group, which nothing in it reads.
    streamed: Vec<bool>,
    /// Nanoseconds of each kernel, if they are measured.
    times: Option<Vec<AtomicU64>>,
}

/// How a group's run ended: its launches, and the time of each kernel, if it was measured.
pub(super) struct Done<R> {
    pub(super) launches: Option<RowLaunches<R>>,
    pub(super) times: Vec<Duration>,
}

/// Runs a group. `results` has, for each inner buffer that leaves the group, its memory. `known` are the launches of an earlier run
/// with operands of the same layouts; else `prepare` makes them, for the first block of each size.
pub(super) fn run_rows<'b, R: Ready + Send + Sync>(
    rows: Rows<'_>,
    run: &Run<'_>,
    operand: impl Fn(BufferId) -> Result<Operand<'b>>,
    results: Vec<Option<&mut [u8]>>,
    known: Option<&[Arc<PreparedLaunch<R>>]>,
    (timed, prepare): (bool, Prepare<'_, R>),
) -> Result<Done<R>> {
    let (count, threads, mut own) = (rows.blocking.count(), rows.threads(run)?, None);
    let work = Work {
        given: rows.given(run.dyn_dims, operand)?,
        parts: rows.parts(results),
        streamed: rows.streamed(run.dyn_dims, threads),
        rows,
        feeds: run.feeds,
        dyn_dims: run.dyn_dims,
        stop: run.stop,
        pool: run.pool.unwrap_or_else(|| own.insert(Pool::new(usize::MAX))),
        times: timed.then(|| rows.kernels().iter().map(|_| AtomicU64::new(0)).collect()),
    };
    let (mut made, mut done) = (None, SmallVec::<[usize; 2]>::new());
    let launches = match known {
        Some(known) => known,
        None => {
            done.extend(rows.examples().map(|b| b.at));
            made.insert(work.first_blocks(prepare)?)
        }
    };
    let (failed, first) = (AtomicBool::new(false), Mutex::new(None));
    let one = |at: usize| {
        if done.contains(&at) || failed.load(Ordering::Relaxed) {
            return;
        }
        let block = rows.blocking.block(at);
        let own = if block.is_short { &launches[rows.kernels().len()..] } else { launches };
        if let Err(e) = work.block(&block, &mut |r, _, _, _| Ok(own[r].clone())) {
            failed.store(true, Ordering::Relaxed);
            lock(&first).get_or_insert(e);
        }
    };
    share(count, threads, &one);
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(e),
        None => Ok(Done { times: work.times(), launches: made }),
    }
}

impl<'a> Work<'a, '_> {
    /// Runs the first block of each size, whose launches are prepared on the way.
    fn first_blocks<R: Ready>(&self, prepare: Prepare<'_, R>) -> Result<RowLaunches<R>> {
        let mut all = RowLaunches::new();
        let [long, short] = self.rows.examples();
        for block in [Some(long), Some(short).filter(|b| b.is_short)].into_iter().flatten() {
            self.block(&block, &mut |r, run, inputs, block| {
                let made = prepare(r, run, inputs, block)?;
                all.push(made.clone());
                Ok(made)
            })?;
        }
        Ok(all)
    }

    /// Runs all kernels for a block.
    fn block<R: Ready>(&self, block: &Block, prepared: Prepare<'_, R>) -> Result<()> {
        if let Some(stop) = self.stop {
            stop.check()?;
        }
        let Rows { plan, group, .. } = self.rows;
        let memory = MemoryBudget::limited(usize::MAX);
        let Work { feeds, dyn_dims, stop, .. } = *self;
        // What generators of a part make comes from outside.
        let run = Run { feeds, dyn_dims, threads: 1, pool: Some(self.pool), stop, memory, part: None };
        let (mut values, mut next) = (SmallVec::<[Option<Tensor>; 8]>::new(), 0);
        values.resize(group.inner.len(), None);
        for (r, k) in self.rows.kernels().iter().enumerate() {
            while let Some(MadeBy::View(base, node)) = group.inner.get(next).map(|i| i.from) {
                values[next] = Some(self.viewed(&values, (base, node), next, block, &run)?);
                next += 1;
            }
            let operand = |(i, s): (usize, &RowSource)| match (s, &self.given[r][i]) {
                (RowSource::Inner(v), _) => values[*v].as_ref().map(|t| Operand::Tensor(TensorRef::Tensor(t))),
                (RowSource::Given(_), given) => given.as_ref().map(|g| g.part(block)),
            };
            let inputs = group.inputs[r].iter().enumerate().map(operand).collect::<Option<SmallVec<[_; FEW]>>>();
            let inputs = inputs.ok_or_else(|| Error::Internal("a row was read before it was computed".into()))?;
            let prepared = prepared(r, &run, &inputs, block)?;
            let bytes = (next..next + k.outputs.len()).map(|i| self.target(i, block)).collect();
            let targets = Targets { bytes, over: SmallVec::new(), stream: Some(self.streamed[r]) };
            let began = self.times.as_ref().map(|_| Instant::now());
            let made = execute(plan, k, &run, &prepared, &inputs, targets)?;
            if let (Some(began), Some(times)) = (began, &self.times) {
                times[r].fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
            drop(inputs);
            for t in made {
                values[next] = t.map(|t| self.keep(next, block, t)).transpose()?;
                next += 1;
            }
            for (value, inner) in values.iter_mut().zip(&group.inner) {
                if inner.last == Some(r) {
                    *value = None;
                }
            }
        }
        Ok(())
    }

    /// A view of a block of an inner buffer.
    fn viewed(
        &self,
        values: &[Option<Tensor>],
        (base, node): (usize, NodeId),
        at: usize,
        block: &Block,
        run: &Run<'_>,
    ) -> Result<Tensor> {
        let plan = self.rows.plan;
        let base = values[base].as_ref().ok_or_else(|| Error::Internal("a view of rows without these".into()))?;
        let shape = plan.buffers[self.rows.group.inner[at].buffer as usize].shape;
        let shape = block.shape(extents(&plan.typed.shapes[shape as usize], self.dyn_dims)?);
        let placed = View::Reshape([].into());
        let view = match &plan.typed.nodes[node as usize].kind {
            TypedKind::View { view: Some(view), .. } => view,
            _ => &placed,
        };
        match base.viewed(view, &shape)? {
            Some(made) => Ok(made),
            None => TensorRef::Tensor(base).copied(|bytes| run.storage(bytes))?.reshape(shape),
        }
    }

    /// Where a kernel writes its result's block, if nothing in the group reads it.
    fn target(&self, inner: usize, block: &Block) -> Option<&'a mut [u8]> {
        self.rows.group.inner[inner].last.is_none().then(|| self.part(inner, block)).flatten()
    }

    /// The part of a result that a block is, once.
    fn part(&self, inner: usize, block: &Block) -> Option<&'a mut [u8]> {
        self.parts[inner].as_ref().and_then(|parts| lock(&parts[block.at]).take())
    }

    /// Copies a block to the result that it is part of.
    fn keep(&self, inner: usize, block: &Block, t: Tensor) -> Result<Tensor> {
        if let Some(part) = self.part(inner, block) {
            let bytes = t.as_bytes().filter(|b| b.len() == part.len());
            part.copy_from_slice(bytes.ok_or_else(|| Error::Internal("a block of another size".into()))?);
        }
        Ok(t)
    }

    fn times(&self) -> Vec<Duration> {
        let all = self.times.iter().flatten();
        all.map(|t| Duration::from_nanos(t.load(Ordering::Relaxed))).collect()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
