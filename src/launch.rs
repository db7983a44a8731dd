//! Runs plans on tensors: for each kernel geometry, schedule, code and driver; reductions; views.
//!
//! Guarantees: the one way to run a plan, for eager mode and for compiled programs; results are fresh contiguous
//! tensors; a buffer is dropped after its last use. Does not: keep anything between runs; the caller holds the cache.

use std::sync::Arc;

use crate::block::CpuLevel;
use crate::block::driver::{Buffer, Launch, Output, SegmentFn, run};
use crate::block::reduce::reduce;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::fuse::{BufferId, Origin, Plan, Work};
use crate::geometry::{Geometry, Spread};
use crate::kernel::{Builder, Kernel};
use crate::ops::Op;
use crate::scalar::Bits;
use crate::schedule::{Class, Schedule, schedule};
use crate::shape::{dims_text, numel, reduced};
use crate::tensor::{Pool, Storage, Tensor};
use crate::typed::{NodeId, TypedKind, TypedProgram};

/// A kernel made ready for one assignment of classes: its schedule, and its compiled segments.
pub(crate) trait Ready {
    fn schedule(&self) -> &Schedule;
    fn segments(&self) -> &[SegmentFn];
}

/// The outcome of data that an op refuses: the index of its step.
struct Refused(u32);

/// What a run has besides a plan.
pub(crate) struct Run<'a> {
    /// The feeds, in program order.
    pub(crate) feeds: &'a [Tensor],
    /// The dynamic dims.
    pub(crate) dyn_dims: &'a [usize],
    pub(crate) threads: usize,
    /// Where the results' memory comes from.
    pub(crate) pool: Option<&'a Arc<Pool>>,
}

/// The buffers of a run.
struct Buffers<'a> {
    plan: &'a Plan,
    run: &'a Run<'a>,
    values: Vec<Option<Tensor>>,
}

impl Buffers<'_> {
    fn extents(&self, shape: u32) -> Result<Vec<usize>> {
        let dims = &self.plan.typed.shapes[shape as usize];
        let all: Option<Vec<usize>> = dims.iter().map(|d| d.extent(self.run.dyn_dims)).collect();
        all.ok_or_else(|| Error::Internal(format!("{} has no extents", dims_text(dims))))
    }

    fn get(&self, id: BufferId) -> Result<&Tensor> {
        let early = || Error::Internal("a buffer was read before it was computed".into());
        self.values[id as usize].as_ref().ok_or_else(early)
    }

    /// Makes the views among a piece of work's operands.
    fn view(&mut self, inputs: &[BufferId]) -> Result<()> {
        for b in inputs {
            let buffer = &self.plan.buffers[*b as usize];
            if let Origin::View(base) = buffer.origin {
                let extents = self.extents(buffer.shape)?;
                self.values[*b as usize] = Some(self.get(base)?.reshape(extents)?);
            }
        }
        Ok(())
    }
}

/// Gives the schedule and code of a plan's `n`-th piece of work, for the classes of its operands.
pub(crate) type Readier<'a, R> = dyn Fn(usize, &Arc<Kernel>, &[Class]) -> Result<R> + 'a;

/// Runs a plan. `ready` gives the schedule and code of its `n`-th piece of work, for the classes of its operands.
pub(crate) fn run_plan<R: Ready>(plan: &Plan, run: &Run<'_>, ready: &Readier<'_, R>) -> Result<Vec<Tensor>> {
    let given = |b: &crate::fuse::Buffer| match &b.origin {
        Origin::Feed(i) => run.feeds.get(*i as usize).cloned(),
        Origin::Constant(t) => Some(t.clone()),
        Origin::Kernel | Origin::View(_) => None,
    };
    let mut buffers = Buffers { plan, run, values: plan.buffers.iter().map(given).collect() };
    for (at, work) in plan.work.iter().enumerate() {
        buffers.view(work.inputs())?;
        match work {
            Work::Kernel(k) => {
                let inputs = k.inputs.iter().map(|b| buffers.get(*b)).collect::<Result<Vec<_>>>()?;
                let extents = buffers.extents(k.shape)?;
                let (kernel, consts, spread) = (&*k.kernel, &*k.consts, &*k.spread);
                let (threads, pool) = (run.threads, run.pool);
                let call = Call { kernel, consts, inputs: &inputs, spread, extents: &extents, threads, pool };
                let made = launch(&call, |classes| ready(at, &k.kernel, classes))?;
                let made = made.map_err(|r| refused(&plan.typed, k.nodes[r.0 as usize]))?;
                for (b, t) in k.outputs.iter().zip(made) {
                    buffers.values[*b as usize] = Some(t);
                }
            }
            Work::Reduce(r) => {
                let made = reduction(&plan.typed, r.node, buffers.get(r.input)?)?;
                buffers.values[r.output as usize] = Some(made);
            }
        }
        for b in work.inputs() {
            if plan.buffers[*b as usize].last_use == at {
                buffers.values[*b as usize] = None;
            }
        }
    }
    plan.fetches.iter().map(|b| buffers.get(*b).cloned()).collect()
}

/// The error of data that a node refuses.
fn refused(typed: &TypedProgram, node: NodeId) -> Error {
    let n = &typed.nodes[node as usize];
    let op = match &n.kind {
        TypedKind::Apply { op, .. } | TypedKind::Reduce { op, .. } => op.name(),
        _ => "cast",
    };
    Error::DivisionByZero { op, place: n.place.clone() }
}

/// Reduces a tensor as a node says: half types in their op math, rounded once.
fn reduction(typed: &TypedProgram, node: NodeId, t: &Tensor) -> Result<Tensor> {
    let n = &typed.nodes[node as usize];
    let TypedKind::Reduce { op, axes, keep, .. } = &n.kind else {
        return Err(Error::Internal(format!("typed node {node} is no reduction")));
    };
    let run = axes.iter().try_fold(1usize, |n, a| n.checked_mul(t.shape()[*a])).unwrap_or(0);
    if run == 0 && matches!(op, Op::Amax | Op::Amin) {
        return Err(Error::EmptyReduction { op: op.name(), place: n.place.clone() });
    }
    let kept = (0..t.rank()).filter(|i| !axes.contains(i));
    let order: Vec<usize> = kept.chain(axes.iter().copied()).collect();
    let math = n.dtype.op_math();
    let rows = cast_tensor(&t.permute(&order)?.contiguous()?, math)?;
    let shape = reduced(t.shape(), axes, *keep);
    let mut out = Storage::zeroed(numel(&shape)? * math.size())?;
    reduce(*op, math, rows.as_bytes().unwrap_or(&[]), run, out.bytes_mut())?;
    cast_tensor(&Tensor::from_storage(out, math, &shape)?, n.dtype)
}

/// A tensor in another dtype, by the block kernels of the conversion's path.
fn cast_tensor(t: &Tensor, to: DType) -> Result<Tensor> {
    if t.dtype() == to {
        return Ok(t.clone());
    }
    let mut b = Builder::default();
    let x = b.input(t.dtype());
    let y = b.cast(x, to);
    b.kernel.outputs.push(y);
    let call = Call {
        kernel: &b.kernel,
        consts: &b.const_bits,
        inputs: &[t],
        spread: &[Spread::Varies],
        extents: t.shape(),
        threads: 1,
        pool: None,
    };
    let made = launch(&call, |classes| schedule(&b.kernel, classes, CpuLevel::get(), &|_| false).map(Blocks))?;
    let one = made.ok().and_then(|mut all| all.pop());
    one.ok_or_else(|| Error::Internal(format!("no result of a cast to {to}")))
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

/// A kernel, its constants, its operands and its domain.
struct Call<'a> {
    kernel: &'a Kernel,
    consts: &'a [Bits],
    inputs: &'a [&'a Tensor],
    /// How each operand is spread over the domain by its type.
    spread: &'a [Spread],
    extents: &'a [usize],
    threads: usize,
    /// Where the results' memory comes from.
    pool: Option<&'a Arc<Pool>>,
}

/// Runs a kernel; `ready` gives its schedule and code for the operands' classes.
fn launch<R: Ready>(
    call: &Call<'_>,
    ready: impl FnOnce(&[Class]) -> Result<R>,
) -> Result<Result<Vec<Tensor>, Refused>> {
    let total = numel(call.extents)?;
    let outputs: Vec<DType> = call.kernel.outputs.iter().map(|v| call.kernel.value(*v).dtype).collect();
    let fresh = |bytes: usize| call.pool.map_or_else(|| Storage::zeroed(bytes), |pool| Storage::pooled(bytes, pool));
    let mut storages = outputs.iter().map(|d| fresh(total * d.size())).collect::<Result<Vec<_>>>()?;
    if total > 0 {
        let strides = call.inputs.iter().map(|t| aligned_strides(t, call.extents)).collect::<Result<Vec<_>>>()?;
        let geometry = Geometry::new(call.extents, &strides, call.spread);
        let ready = ready(&geometry.classes())?;
        let buffers: Vec<Buffer<'_>> = call
            .inputs
            .iter()
            .map(|t| {
                let (bytes, offset) = t.raw();
                Buffer { bytes, dtype: t.dtype(), offset }
            })
            .collect();
        let launch = Launch {
            schedule: ready.schedule(),
            segments: ready.segments(),
            geometry: &geometry,
            consts: call.consts,
            inputs: &buffers,
        };
        let mut results: Vec<Output<'_>> =
            storages.iter_mut().zip(&outputs).map(|(s, d)| Output { bytes: s.bytes_mut(), dtype: *d }).collect();
        let threads = if total * call.kernel.steps.len().max(1) < PARALLEL_WORK { 1 } else { call.threads };
        if let Err(fault) = run(&launch, &mut results, threads)? {
            return Ok(Err(Refused(fault.step)));
        }
    }
    let made = storages.into_iter().zip(outputs).map(|(s, d)| Tensor::from_storage(s, d, call.extents));
    made.collect::<Result<Vec<_>>>().map(Ok)
}

/// Element-steps below which waking another thread costs more than it brings (about 60 µs of work).
const PARALLEL_WORK: usize = 1 << 18;

/// A tensor's strides along the dims of a domain it broadcasts to.
fn aligned_strides(t: &Tensor, extents: &[usize]) -> Result<Vec<isize>> {
    let front = extents.len().checked_sub(t.rank());
    let front = front.ok_or_else(|| Error::Internal(format!("{:?} in a domain of {extents:?}", t.shape())))?;
    let mut strides = vec![0; extents.len()];
    for (i, (n, s)) in t.shape().iter().zip(t.strides()).enumerate() {
        match (*n, extents[front + i]) {
            (1, _) => {}
            (n, e) if n == e => strides[front + i] = *s,
            _ => return Err(Error::Internal(format!("{:?} does not broadcast to {extents:?}", t.shape()))),
        }
    }
    Ok(strides)
}
