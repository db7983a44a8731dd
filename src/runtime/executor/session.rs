//! What an executor keeps: typed programs, plans, compiled kernels.
//!
//! Guarantees: the caches are bounded and an entry is whole or absent; a program is planned once for each set of
//! fetches, and a kernel compiled once for each way its operands broadcast, whatever the extents are. Does not: check
//! feeds.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use petgraph::graph::NodeIndex;
use smallvec::SmallVec;

use super::builder::ExecutorBuilder;
use super::feeds::{Bound, Feeds, InOrder, bind, sorted};
use super::lru::Bounded;
use super::stats::{Counters, Traffic};
use crate::analysis::infer::infer;
use crate::backend::abi::SegmentFn;
use crate::backend::access_order::AccessOrder;
use crate::backend::{Code, available, compile, is_lowerable, walks_rows};
use crate::base::cancel::{CancelToken, Stop};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::generator::Part;
use crate::base::host::Kept;
use crate::base::limits::Limit;
use crate::base::shape::{check_within, dims_text};
use crate::base::trace::{record, span};
use crate::graph::program::Program;
use crate::graph::typed::{NodeId, TypedProgram};
use crate::graph::var::Var;
use crate::kernels::CpuLevel;
use crate::plan::domain::{Pattern, pattern};
use crate::plan::fuse::{Origin, Plan, foldable, plan};
use crate::plan::kernel::{Kernel, Step};
use crate::plan::options::Pass;
use crate::plan::schedule::{Class, Schedule, schedule_with};
use crate::promotion::operand::OperandType;
use crate::runtime::launch::run::{MemoryBudget, Run};
use crate::runtime::launch::{
    Engine, Fetched, PreparedLaunch, Ready, cast_tensor, constants, is_direct, run_direct, run_plan,
};
use crate::tensor::layout::Layout;
use crate::tensor::{Pool, Slot, Target, Tensor, TensorRef};

/// A schedule and its compiled segments.
pub(super) struct Compiled {
    schedule: Schedule,
    code: Option<Code>,
}

impl Ready for Arc<Compiled> {
    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn segments(&self) -> &[SegmentFn] {
        self.code.as_ref().map_or(&[], Code::functions)
    }

    fn orders(&self) -> &[AccessOrder] {
        self.code.as_ref().map_or(&[], Code::orders)
    }
}

/// A kernel's entry for each assignment of classes met so far.
type Variants = Kept<Vec<(Vec<Class>, Arc<Compiled>)>>;

/// Ways to broadcast one kernel's operands that a plan remembers at once. (Others are found in the cache.)
const VARIANTS: usize = 16;

/// A plan, and for each of its kernels what has been made ready so far.
pub(super) struct Planned {
    pub(super) plan: Plan,
    near: Vec<Variants>,
}

/// The launches of a plan's kernels for feeds of some layouts.
pub(super) type PreparedLaunches = Vec<Arc<PreparedLaunch<Arc<Compiled>>>>;

/// Fetches that were asked for lately: most at once.
const RECENT: usize = 8;

/// The program, how much of it was written, the fetched nodes, and what was prepared for them.
type Asked = (u64, usize, Vec<NodeIndex>, Arc<Core>);

/// Which program, how much of it was written, what is fetched, and which dynamic dims are broadcast.
type PlanKey = (u64, usize, Vec<NodeId>, Pattern);

#[derive(Default)]
pub(super) struct Caches {
    typed: Bounded<(u64, usize), Arc<TypedProgram>>,
    plans: Bounded<PlanKey, Arc<Planned>>,
    kernels: Bounded<(Arc<Kernel>, Vec<Class>), Arc<Compiled>>,
}

/// The feeds of a call in program order, the dynamic dims with them, what a run with them moves, and what can stop it.
pub(super) struct Call<'a> {
    pub(super) feeds: &'a [TensorRef<'a>],
    pub(super) dyn_dims: &'a [usize],
    pub(super) traffic: Traffic,
    pub(super) stop: Option<&'a Stop<'a>>,
    /// The rows that generators count from.
    pub(super) part: Option<&'a Part>,
}

/// An executor's settings and what it keeps, shared with what it has prepared.
pub(super) struct Inner {
    pub(super) settings: ExecutorBuilder,
    pub(super) threads: AtomicUsize,
    caches: Kept<Caches>,
    /// The latest first.
    recent: Kept<Vec<Asked>>,
    pool: Pool,
    pub(super) counters: Counters,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Results that live on keep the pool, but not what it holds.
        self.pool.close();
    }
}

impl Inner {
    pub(super) fn new(settings: ExecutorBuilder) -> Inner {
        let pool = Pool::new(settings.pool);
        // Asking for the cores reads a dozen files, which is a good part of what a first result takes.
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        Inner {
            threads: AtomicUsize::new(settings.threads.unwrap_or_else(cores)),
            settings,
            caches: Kept::default(),
            recent: Kept::default(),
            pool,
            counters: Counters::default(),
        }
    }

    fn caches(&self) -> MutexGuard<'_, Caches> {
        self.caches.lock()
    }

    /// The program, typed and verified.
    pub(super) fn typed(&self, program: &Program) -> Result<Arc<TypedProgram>> {
        let key = (program.shared.id, program.len());
        if let Some(known) = self.caches().typed.get(&key) {
            return Ok(known);
        }
        let began = Instant::now();
        let typed = Arc::new(infer(program)?);
        typed.verify()?;
        self.counters.inferences.add(1);
        self.counters.inferring.since(began);
        self.caches().typed.insert(key, typed.clone(), self.settings.cache);
        Ok(typed)
    }

    /// The plan for `nodes` under feeds whose dynamic dims have this pattern.
    pub(super) fn plan(&self, typed: &Arc<TypedProgram>, nodes: Vec<NodeId>, pattern: Pattern) -> Result<Arc<Planned>> {
        let key = (typed.program.shared.id, typed.of_program.len(), nodes, pattern);
        if let Some(known) = self.caches().plans.get(&key) {
            self.counters.plan_hits.add(1);
            return Ok(known);
        }
        let began = Instant::now();
        span!(DEBUG, span = "fuse" { nodes: typed.len(), fetches: key.2.len() } + kernels);
        let passes = self.settings.passes;
        let folded = if passes.has(Pass::Folding) { foldable(typed, &key.2) } else { Vec::new() };
        let folded = constants(typed, &folded)?;
        let plan = plan(typed, &key.2, &folded, &key.3, passes)?;
        record!(span, kernels: plan.work.len());
        let planned = Arc::new(Planned { near: plan.work.iter().map(|_| Kept::default()).collect(), plan });
        self.counters.plans.add(1);
        self.counters.planning.since(began);
        self.caches().plans.insert(key, planned.clone(), self.settings.cache);
        Ok(planned)
    }

    /// What computes `fetches` of a program.
    pub(super) fn core(&self, program: &Program, fetches: &[&Var]) -> Result<Arc<Core>> {
        self.settings.limits.allow(Limit::Results, fetches.len())?;
        let len = program.len();
        let same = |(id, n, nodes, _): &Asked| {
            let fetched = |(v, n): (&&Var, &NodeIndex)| v.0.node == *n && v.0.program.id == *id;
            *id == program.shared.id
                && *n == len
                && nodes.len() == fetches.len()
                && fetches.iter().zip(nodes).all(fetched)
        };
        {
            let mut recent = self.recent.lock();
            if let Some(at) = recent.iter().position(same) {
                recent[..=at].rotate_right(1);
                return Ok(recent[0].3.clone());
            }
        }
        let typed = self.typed(program)?;
        let nodes = fetches.iter().map(|v| typed.node(v)).collect::<Result<Vec<NodeId>>>()?;
        let core = Arc::new(Core::new(typed, nodes));
        let mut recent = self.recent.lock();
        recent.truncate(RECENT.min(self.settings.cache).saturating_sub(1));
        let asked = fetches.iter().map(|v| v.0.node).collect();
        recent.insert(0, (program.shared.id, len, asked, core.clone()));
        Ok(core)
    }

    /// What a run has besides its plan.
    fn run<'a>(&'a self, feeds: &'a [TensorRef<'a>], dyn_dims: &'a [usize], stop: Option<&'a Stop<'a>>) -> Run<'a> {
        let memory = MemoryBudget::limited(self.settings.max_bytes);
        let threads = self.threads.load(Ordering::Relaxed);
        Run { feeds, dyn_dims, threads, pool: Some(&self.pool), stop, memory, part: None }
    }

    /// What can stop a run that starts now.
    pub(super) fn stop<'a>(&self, token: Option<&'a CancelToken>) -> Option<Stop<'a>> {
        Stop::new(token, self.settings.time_limit)
    }

    /// Runs a plan on feeds that were bound. A result is written to its tensor of `into`, if it can be. `launches` are
    /// those of feeds of the same layouts, or are made; `traffic` is what runs with such feeds move.
    pub(super) fn execute(
        &self,
        planned: &Planned,
        call: &Call<'_>,
        launches: &mut Cow<'_, [Arc<PreparedLaunch<Arc<Compiled>>>]>,
        into: &mut [Slot<'_>],
    ) -> Result<Fetched> {
        let traffic = call.traffic;
        span!(TRACE, _span = "run" { kernels: traffic.kernels, bytes: traffic.read + traffic.written });
        self.counters.run(traffic);
        let began = self.clock();
        let run = Run { part: call.part, ..self.run(call.feeds, call.dyn_dims, call.stop) };
        let made = run_plan(&planned.plan, &run, &Compiler { inner: self, planned }, launches, into);
        if let Some(began) = began {
            self.counters.running.since(began);
        }
        made
    }

    /// The time, if runs are measured.
    pub(super) fn clock(&self) -> Option<Instant> {
        self.settings.timing.then(Instant::now)
    }

    /// Whether calls are measured, kernel by kernel.
    pub(super) fn is_timed(&self) -> bool {
        self.settings.timing
    }

    /// Runs a plan that is one call.
    pub(super) fn execute_direct(
        &self,
        planned: &Planned,
        traffic: Traffic,
        feeds: &[TensorRef<'_>],
        prepared: &PreparedLaunch<Arc<Compiled>>,
        into: Option<&mut Slot<'_>>,
    ) -> Result<Option<Tensor>> {
        span!(TRACE, _span = "run" { kernels: traffic.kernels, bytes: traffic.read + traffic.written });
        self.counters.run(traffic);
        run_direct(&planned.plan, &self.run(feeds, &[], None), prepared, into)
    }

    /// The schedule and code of a kernel, shared by all programs that have an equal one.
    fn compiled(&self, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Arc<Compiled>> {
        let key = (kernel.clone(), classes.to_vec());
        if let Some(known) = self.caches().kernels.get(&key) {
            self.counters.kernel_hits.add(1);
            return Ok(known);
        }
        let began = Instant::now();
        span!(DEBUG, span = "compile" { steps: kernel.steps.len() } + segments);
        let jit = self.settings.jit && available();
        let planned = |lowered: &dyn Fn(&Step) -> bool| {
            schedule_with(kernel, classes, CpuLevel::get(), lowered, self.settings.passes)
        };
        let mut schedule = planned(&|step| jit && is_lowerable(step))?;
        let code = match schedule.segments.is_empty() {
            true => None,
            false => match compile(kernel, &schedule) {
                // A system that gives no memory for code, or forbids code that was made: block kernels need none.
                Err(Error::OutOfMemory { .. }) => {
                    schedule = planned(&|_| false)?;
                    None
                }
                made => Some(made?),
            },
        };
        record!(span, segments: schedule.segments.len());
        let compiled = Arc::new(Compiled { schedule, code });
        self.counters.compiles.add(u64::from(compiled.code.is_some()));
        self.counters.compiling.since(began);
        self.caches().kernels.insert(key, compiled.clone(), self.settings.cache);
        Ok(compiled)
    }
}

/// The pattern of a program's dynamic dims; nothing is computed where none can be broadcast.
pub(super) fn pattern_of(typed: &TypedProgram, dyn_dims: &[usize]) -> Pattern {
    if typed.checks.is_empty() { vec![false; dyn_dims.len()] } else { pattern(typed, dyn_dims) }
}

/// Gives a plan's run its code.
struct Compiler<'a> {
    inner: &'a Inner,
    planned: &'a Planned,
}

impl Engine for Compiler<'_> {
    type Ready = Arc<Compiled>;

    fn ready(&self, at: usize, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Arc<Compiled>> {
        let near = &self.planned.near[at];
        if let Some((_, known)) = near.lock().iter().find(|(c, _)| c == classes) {
            self.inner.counters.kernel_hits.add(1);
            return Ok(known.clone());
        }
        let made = self.inner.compiled(kernel, classes)?;
        let mut near = near.lock();
        if near.len() >= VARIANTS {
            near.remove(0);
        }
        near.push((classes.to_vec(), made.clone()));
        Ok(made)
    }

    fn walks_rows(&self) -> bool {
        self.inner.settings.jit && available() && walks_rows()
    }

    fn clock(&self) -> Option<Instant> {
        self.inner.clock()
    }

    fn launched(&self, kernel: &Arc<Kernel>, time: Duration) {
        self.inner.counters.launch(kernel, time, self.inner.settings.cache);
    }
}

/// The memory for the results of a call.
type Slots<'a> = SmallVec<[Slot<'a>; 2]>;

/// Fetches of a typed program, and how they were computed last.
pub(super) struct Core {
    pub(super) typed: Arc<TypedProgram>,
    pub(super) nodes: Vec<NodeId>,
    /// Read by many threads at once, none of which waits for another.
    pub(super) last: ArcSwapOption<Last>,
}

/// Everything about a call that depends on its feeds' dtypes and layouts alone.
pub(super) struct Last {
    pub(super) feeds: Vec<(DType, Arc<Layout>)>,
    dyn_dims: Vec<usize>,
    planned: Arc<Planned>,
    traffic: Traffic,
    launches: PreparedLaunches,
    /// Whether the plan is one call: see [`is_direct`].
    pub(super) direct: bool,
}

impl Last {
    fn fits(&self, feeds: &[TensorRef<'_>]) -> bool {
        let same = |((d, known), t): (&(DType, Arc<Layout>), &TensorRef<'_>)| {
            *d == t.dtype() && (Arc::ptr_eq(known, t.layout()) || **known == **t.layout())
        };
        self.feeds.len() == feeds.len() && self.feeds.iter().zip(feeds).all(same)
    }
}

impl Core {
    pub(super) fn new(typed: Arc<TypedProgram>, nodes: Vec<NodeId>) -> Core {
        Core { typed, nodes, last: ArcSwapOption::empty() }
    }

    /// Feeds by name, in program order.
    pub(super) fn in_order<'a>(&self, feeds: &'a Feeds<'_>) -> Result<InOrder<'a>> {
        sorted(&self.typed, feeds)
    }

    pub(super) fn run(
        &self,
        inner: &Inner,
        feeds: &[TensorRef<'_>],
        token: Option<&CancelToken>,
    ) -> Result<Vec<Tensor>> {
        let stop = inner.stop(token);
        let missing = || Error::Internal("a result without a tensor".into());
        let last = self.last.load();
        let last = last.as_deref().filter(|last| last.fits(feeds));
        if let Some(last) = last.filter(|last| last.direct && stop.is_none()) {
            return Ok(vec![
                inner
                    .execute_direct(&last.planned, last.traffic, feeds, &last.launches[0], None)?
                    .ok_or_else(missing)?,
            ]);
        }
        self.execute(inner, feeds, last, &mut [], stop.as_ref(), None)?
            .into_iter()
            .map(|t| t.ok_or_else(missing))
            .collect()
    }

    pub(super) fn run_into(
        &self,
        inner: &Inner,
        feeds: &[TensorRef<'_>],
        into: &mut [Target<'_>],
        token: Option<&CancelToken>,
        part: Option<&Part>,
    ) -> Result<()> {
        if into.len() != self.nodes.len() {
            return Err(Error::Shape(format!("{} tensors for {} results", into.len(), self.nodes.len())));
        }
        let stop = inner.stop(token);
        let last = self.last.load();
        let last = last.as_deref().filter(|last| last.fits(feeds));
        let mut slots: Slots<'_> = into.iter_mut().map(|t| t.slot(feeds)).collect();
        let made = if let Some(last) = last.filter(|last| last.direct && stop.is_none() && part.is_none()) {
            self.check_targets(&last.dyn_dims, &slots)?;
            let slot = slots.first_mut();
            let made = inner.execute_direct(&last.planned, last.traffic, feeds, &last.launches[0], slot)?;
            Fetched::from_iter([made])
        } else {
            self.execute(inner, feeds, last, &mut slots, stop.as_ref(), part)?
        };
        drop(slots);
        // What can fail comes first: either all of these are written, or none.
        let cast = |(to, t): (&Target<'_>, Option<Tensor>)| {
            t.map(|t| cast_tensor(&t, to.dtype().unwrap_or(t.dtype()), &self.typed.settings)).transpose()
        };
        let made = into.iter().zip(made).map(cast).collect::<Result<Fetched>>()?;
        into.iter_mut().zip(made).for_each(|(to, t)| t.into_iter().for_each(|t| to.set(t)));
        Ok(())
    }

    /// Computes the fetches; `last` is the last call if its feeds had the same layouts.
    fn execute(
        &self,
        inner: &Inner,
        feeds: &[TensorRef<'_>],
        last: Option<&Last>,
        into: &mut [Slot<'_>],
        stop: Option<&Stop<'_>>,
        part: Option<&Part>,
    ) -> Result<Fetched> {
        if let Some(last) = last {
            self.check_targets(&last.dyn_dims, into)?;
            let mut launches = Cow::Borrowed(&*last.launches);
            let call = Call { feeds, dyn_dims: &last.dyn_dims, traffic: last.traffic, stop, part };
            return inner.execute(&last.planned, &call, &mut launches, into);
        }
        inner.counters.bindings.add(1);
        let bound = bind(&self.typed, feeds.into())?;
        self.check_targets(&bound.dyn_dims, into)?;
        let planned = inner.plan(&self.typed, self.nodes.clone(), pattern_of(&self.typed, &bound.dyn_dims))?;
        self.check_sizes(&planned.plan, &bound)?;
        let mut launches = Cow::Owned(Vec::new());
        let traffic = Traffic::of(&planned.plan, &bound.dyn_dims);
        let call = Call { feeds: &bound.feeds, dyn_dims: &bound.dyn_dims, traffic, stop, part };
        let made = inner.execute(&planned, &call, &mut launches, into)?;
        let layouts = bound.feeds.iter().map(|t| (t.dtype(), t.layout().clone())).collect();
        let launches = launches.into_owned();
        let direct = !inner.is_timed() && is_direct(&planned.plan, &launches);
        let now = Last { feeds: layouts, dyn_dims: bound.dyn_dims, planned, traffic, launches, direct };
        self.last.store(Some(Arc::new(now)));
        Ok(made)
    }

    /// Refuses feeds, domains of kernels, and views of more elements than the program may have.
    fn check_sizes(&self, plan: &Plan, bound: &Bound<'_>) -> Result<()> {
        let limits = self.typed.program.limits();
        if limits.get(Limit::Elements) == Limit::Elements.default() {
            // Tensors have no more, and no domain of theirs is aimed at that has.
            return Ok(());
        }
        bound.feeds.iter().try_for_each(|t| check_within(t.shape(), &limits).map(drop))?;
        let views = plan.buffers.iter().filter(|b| matches!(b.origin, Origin::View(..))).map(|b| b.shape);
        plan.work.iter().map(|k| k.shape).chain(views).try_for_each(|shape| {
            let extents = plan.typed.shapes[shape as usize].iter().filter_map(|d| d.extent(&bound.dyn_dims));
            check_within(&extents.collect::<Vec<_>>(), &limits).map(drop)
        })
    }

    /// Whether the caller's tensors fit the results.
    fn check_targets(&self, dyn_dims: &[usize], into: &[Slot<'_>]) -> Result<()> {
        for (i, (node, t)) in self.nodes.iter().zip(into).enumerate() {
            let Some((dtype, shape)) = t.fixed() else { continue };
            let (n, dims) = (&self.typed.nodes[*node as usize], self.typed.shape_of(*node));
            let same = dims.len() == shape.len() && dims.iter().zip(shape).all(|(d, n)| d.extent(dyn_dims) == Some(*n));
            if !same {
                let extents: Vec<usize> = dims.iter().filter_map(|d| d.extent(dyn_dims)).collect();
                let (want, have) = (dims_text(&extents), dims_text(shape));
                return Err(Error::Shape(format!("tensor {i} is {have}, result {i} is {want}")));
            }
            let rules = self.typed.settings.rules.set();
            let casts = || rules.casts_results() && rules.can_write(&OperandType::dim(n.dtype), dtype);
            if n.dtype != dtype && !casts() {
                return Err(Error::DType { expected: n.dtype, found: dtype });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasherDefault, Hasher};

    use super::*;
    use crate::base::dtype::DType;
    use crate::ops::Op;
    use crate::plan::kernel;

    /// Every key has the same hash.
    #[derive(Default)]
    struct Colliding;

    impl Hasher for Colliding {
        fn finish(&self) -> u64 {
            7
        }

        fn write(&mut self, _: &[u8]) {}
    }

    type Cache<V> = Bounded<(Arc<Kernel>, Vec<Class>), V, BuildHasherDefault<Colliding>>;

    /// Kernels that differ in one property each.
    fn kernels() -> Vec<Kernel> {
        let mut all = Vec::new();
        for (op, d, square, outputs) in [
            (Op::Add, DType::F32, false, 1),
            (Op::Sub, DType::F32, false, 1),
            (Op::Add, DType::F64, false, 1),
            (Op::Add, DType::F32, true, 1),
            (Op::Add, DType::F32, false, 2),
        ] {
            let mut b = kernel::KernelBuilder::default();
            let (x, y) = (b.input(d), b.input(d));
            let operand = kernel::Operand::Value;
            let sum = b.apply(op, d, &[operand(x), operand(if square { x } else { y })]);
            b.kernel.outputs = vec![sum; outputs];
            all.push(b.kernel);
        }
        all
    }

    #[test]
    fn keys_of_one_hash_are_told_apart() {
        let mut cache: Cache<usize> = Bounded::default();
        let classes = [vec![Class::Vector; 2], vec![Class::Vector, Class::Splat]];
        let keys: Vec<_> =
            kernels().into_iter().flat_map(|k| classes.iter().map(move |c| (Arc::new(k.clone()), c.clone()))).collect();
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(cache.get(key), None, "{} was taken for another kernel", key.0);
            cache.insert(key.clone(), i, 100);
        }
        for (i, (kernel, classes)) in keys.iter().enumerate() {
            // An equal kernel in other memory.
            assert_eq!(cache.get(&(Arc::new(Kernel::clone(kernel)), classes.clone())), Some(i));
        }
    }

    #[test]
    fn a_full_cache_forgets_what_was_not_used_for_longest() {
        let mut cache: Bounded<u32, Arc<u32>> = Bounded::default();
        let all: Vec<Arc<u32>> = (0..4).map(Arc::new).collect();
        (0..3).for_each(|i| cache.insert(i, all[i as usize].clone(), 3));
        assert!(cache.get(&0).is_some());
        // One that is there already takes nobody's place.
        cache.insert(2, all[2].clone(), 3);
        assert_eq!(cache.map.len(), 3);
        cache.insert(3, all[3].clone(), 3);
        assert!(cache.get(&1).is_none() && [0, 2, 3].iter().all(|k| cache.get(k).is_some()));
        // Nothing else holds what was forgotten.
        assert_eq!(all.iter().map(Arc::strong_count).collect::<Vec<_>>(), [2, 1, 2, 2]);
    }
}
