//! What an executor keeps: typed programs, plans, compiled kernels.
//!
//! Guarantees: the caches are bounded and an entry is whole or absent; a program is planned once for each set of
//! fetches, and a kernel compiled once for each way its operands broadcast, whatever the extents are. Does not: check
//! feeds.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use petgraph::graph::NodeIndex;

use super::Builder;
use super::prepared::Core;
use crate::block::CpuLevel;
use crate::block::driver::SegmentFn;
use crate::codegen::{Code, available, compile, inline};
use crate::domain::{Pattern, pattern};
use crate::eager::run_blocks;
use crate::error::Result;
use crate::fuse::{Plan, foldable, plan};
use crate::infer::infer;
use crate::kernel::Kernel;
use crate::launch::{Engine, Fetched, Ready, Run, Shot, run_plan};
use crate::program::Program;
use crate::schedule::{Class, Schedule, schedule};
use crate::tensor::{Pool, Tensor};
use crate::typed::{NodeId, TypedProgram};
use crate::var::Var;

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

    fn any_length(&self) -> bool {
        false
    }
}

/// A kernel's entry for each assignment of classes met so far.
type Variants = Mutex<Vec<(Vec<Class>, Arc<Compiled>)>>;

/// A plan, and for each of its kernels what has been made ready so far.
pub(super) struct Planned {
    pub(super) plan: Plan,
    near: Vec<Variants>,
}

/// The launches of a plan's kernels for feeds of some layouts.
pub(super) type Shots = Vec<Arc<Shot<Arc<Compiled>>>>;

/// Fetches that were asked for lately: most at once.
const RECENT: usize = 8;

/// The program, how much of it was written, the fetched nodes, and what was prepared for them.
type Asked = (u64, usize, Vec<NodeIndex>, Arc<Core>);

/// A map that forgets its oldest entry when it is full.
struct Bounded<K, V> {
    map: HashMap<K, (u64, V)>,
    clock: u64,
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Bounded { map: HashMap::new(), clock: 0 }
    }
}

impl<K: std::hash::Hash + Eq + Clone, V: Clone> Bounded<K, V> {
    fn get(&mut self, key: &K) -> Option<V> {
        self.clock += 1;
        let (used, v) = self.map.get_mut(key)?;
        *used = self.clock;
        Some(v.clone())
    }

    fn insert(&mut self, key: K, v: V, most: usize) {
        if self.map.len() >= most
            && let Some(oldest) = self.map.iter().min_by_key(|(_, (used, _))| *used).map(|(k, _)| k.clone())
        {
            self.map.remove(&oldest);
        }
        self.clock += 1;
        self.map.insert(key, (self.clock, v));
    }
}

/// Which program, how much of it was written, what is fetched, and which dynamic dims are broadcast.
type PlanKey = (u64, usize, Vec<NodeId>, Pattern);

#[derive(Default)]
pub(super) struct Caches {
    typed: Bounded<(u64, usize), Arc<TypedProgram>>,
    plans: Bounded<PlanKey, Arc<Planned>>,
    kernels: Bounded<(Arc<Kernel>, Vec<Class>), Arc<Compiled>>,
    pub(super) compiles: u64,
    pub(super) compile_time: Duration,
}

/// An executor's settings and what it keeps, shared with what it has prepared.
pub(super) struct Inner {
    settings: Builder,
    caches: Mutex<Caches>,
    /// The latest first.
    recent: Mutex<Vec<Asked>>,
    pool: Arc<Pool>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Results that live on keep the pool, but not what it holds.
        self.pool.close();
    }
}

pub(super) fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Entries are inserted whole, so a panic elsewhere leaves what is locked here sound.
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(super) fn new(settings: Builder) -> Inner {
        let pool = Arc::new(Pool::new(settings.pool));
        Inner { settings, caches: Mutex::default(), recent: Mutex::default(), pool }
    }

    pub(super) fn caches(&self) -> std::sync::MutexGuard<'_, Caches> {
        lock(&self.caches)
    }

    /// The program, typed and verified.
    pub(super) fn typed(&self, program: &Program) -> Result<Arc<TypedProgram>> {
        let key = (program.shared.id, program.len());
        if let Some(known) = self.caches().typed.get(&key) {
            return Ok(known);
        }
        let typed = Arc::new(infer(program)?);
        typed.verify()?;
        self.caches().typed.insert(key, typed.clone(), self.settings.cache);
        Ok(typed)
    }

    /// The plan for `nodes` under feeds whose dynamic dims have this pattern.
    pub(super) fn plan(&self, typed: &Arc<TypedProgram>, nodes: Vec<NodeId>, pattern: Pattern) -> Result<Arc<Planned>> {
        let key = (typed.program.shared.id, typed.of_program.len(), nodes, pattern);
        if let Some(known) = self.caches().plans.get(&key) {
            return Ok(known);
        }
        let mut folded: HashMap<NodeId, Tensor> = HashMap::new();
        for n in foldable(typed, &key.2) {
            // A fault in constants is a fault of the run that needs them.
            folded.insert(n, run_blocks(typed, n)?);
        }
        let plan = plan(typed, &key.2, &folded, &key.3)?;
        let planned = Arc::new(Planned { near: plan.work.iter().map(|_| Mutex::default()).collect(), plan });
        self.caches().plans.insert(key, planned.clone(), self.settings.cache);
        Ok(planned)
    }

    /// What computes `fetches` of a program.
    pub(super) fn core(&self, program: &Program, fetches: &[&Var]) -> Result<Arc<Core>> {
        let len = program.len();
        let same = |(id, n, nodes, _): &Asked| {
            let fetched = |(v, n): (&&Var, &NodeIndex)| v.0.node == *n && v.0.program.id == *id;
            *id == program.shared.id
                && *n == len
                && nodes.len() == fetches.len()
                && fetches.iter().zip(nodes).all(fetched)
        };
        {
            let mut recent = lock(&self.recent);
            if let Some(at) = recent.iter().position(same) {
                recent[..=at].rotate_right(1);
                return Ok(recent[0].3.clone());
            }
        }
        let typed = self.typed(program)?;
        let nodes = fetches.iter().map(|v| typed.node(v)).collect::<Result<Vec<NodeId>>>()?;
        let core = Arc::new(Core::new(typed, nodes));
        let mut recent = lock(&self.recent);
        recent.truncate(RECENT.min(self.settings.cache).saturating_sub(1));
        let asked = fetches.iter().map(|v| v.0.node).collect();
        recent.insert(0, (program.shared.id, len, asked, core.clone()));
        Ok(core)
    }

    /// Runs a plan on feeds that were bound. A result is written to its tensor of `into`, if it can be. `shots` are
    /// those of feeds of the same layouts, or are made.
    pub(super) fn execute(
        &self,
        planned: &Planned,
        feeds: &[&Tensor],
        dyn_dims: &[usize],
        shots: &mut Cow<'_, [Arc<Shot<Arc<Compiled>>>]>,
        into: &mut [Tensor],
    ) -> Result<Fetched> {
        let run = Run { feeds, dyn_dims, threads: self.settings.threads, pool: Some(&self.pool) };
        run_plan(&planned.plan, &run, &Compiler { inner: self, planned }, shots, into)
    }

    /// The schedule and code of a kernel, shared by all programs that have an equal one.
    fn compiled(&self, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Arc<Compiled>> {
        let key = (kernel.clone(), classes.to_vec());
        if let Some(known) = self.caches().kernels.get(&key) {
            return Ok(known);
        }
        let start = Instant::now();
        let jit = self.settings.jit && available();
        let schedule = schedule(kernel, classes, CpuLevel::get(), &|step| jit && inline(step))?;
        let code = if schedule.segments.is_empty() { None } else { Some(compile(kernel, &schedule)?) };
        let compiled = Arc::new(Compiled { schedule, code });
        let mut caches = self.caches();
        caches.compiles += u64::from(compiled.code.is_some());
        caches.compile_time += start.elapsed();
        caches.kernels.insert(key, compiled.clone(), self.settings.cache);
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
        if let Some((_, known)) = lock(near).iter().find(|(c, _)| c == classes) {
            return Ok(known.clone());
        }
        let made = self.inner.compiled(kernel, classes)?;
        lock(near).push((classes.to_vec(), made.clone()));
        Ok(made)
    }
}
