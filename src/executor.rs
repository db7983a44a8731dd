//! `Executor`: runs programs, and keeps what it has compiled.
//!
//! Guarantees: feeds are checked by name, dtype, rank and dims before anything runs, and dynamic dims against each
//! other; a program is planned once for each set of fetches, and a kernel compiled once for each way its operands
//! broadcast, whatever the extents are; the caches are bounded and an entry is whole or absent; `run` can be called
//! from many threads. Does not: change a program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::block::CpuLevel;
use crate::block::driver::SegmentFn;
use crate::codegen::{Code, available, clif, compile, inline};
use crate::domain::{Pattern, pattern};
use crate::eager::run_blocks;
use crate::error::{Error, Result, shown};
use crate::fuse::{Plan, Work, foldable, plan};
use crate::geometry::Spread;
use crate::infer::infer;
use crate::kernel::Kernel;
use crate::launch::{Ready, Run, run_plan};
use crate::program::Program;
use crate::schedule::{Class, Schedule, schedule};
use crate::shape::{SymDim, dims_text};
use crate::tensor::{Pool, Tensor};
use crate::typed::{NodeId, TypedKind, TypedProgram};
use crate::var::Var;

/// The tensors for a program's placeholders, by name. See [`feeds!`](crate::feeds).
#[derive(Clone, Debug, Default)]
pub struct Feeds(Vec<(String, Tensor)>);

impl<N: Into<String>> From<Vec<(N, Tensor)>> for Feeds {
    fn from(all: Vec<(N, Tensor)>) -> Feeds {
        Feeds(all.into_iter().map(|(n, t)| (n.into(), t)).collect())
    }
}

impl<N: Into<String>, const K: usize> From<[(N, Tensor); K]> for Feeds {
    fn from(all: [(N, Tensor); K]) -> Feeds {
        Feeds(all.into_iter().map(|(n, t)| (n.into(), t)).collect())
    }
}

/// Feeds from names and tensors (or references to tensors): `feeds! { "a" => t, "b" => &u }`.
#[macro_export]
macro_rules! feeds {
    ($($name:expr => $tensor:expr),* $(,)?) => {
        $crate::Feeds::from(::std::vec![$((::std::string::String::from($name), $crate::Tensor::clone(&$tensor))),*])
    };
}

/// Settings of an [`Executor`].
#[derive(Clone, Debug)]
pub struct Builder {
    threads: usize,
    jit: bool,
    cache: usize,
    pool: usize,
}

impl Builder {
    /// The most threads that one run uses; at least 1. Default: the machine's cores.
    pub fn threads(mut self, n: usize) -> Builder {
        self.threads = n.max(1);
        self
    }

    /// Whether to compile loops. Without, every op is a block kernel: the same bits, slower. Default: true.
    pub fn jit(mut self, on: bool) -> Builder {
        self.jit = on;
        self
    }

    /// The most plans and the most compiled kernels that are kept. Default: 1024 each.
    pub fn cache(mut self, entries: usize) -> Builder {
        self.cache = entries.max(1);
        self
    }

    /// The most bytes of dropped results that are kept for new ones. Default: 1 GiB.
    pub fn pool(mut self, bytes: usize) -> Builder {
        self.pool = bytes;
        self
    }

    /// The executor.
    pub fn build(self) -> Executor {
        Executor { pool: Arc::new(Pool::new(self.pool)), settings: self, caches: Mutex::default() }
    }
}

/// A schedule and its compiled segments.
struct Compiled {
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
}

/// What has been made ready of one kernel: an entry for each assignment of classes met so far.
type Variants = Mutex<Vec<(Vec<Class>, Arc<Compiled>)>>;

/// A plan, and for each of its kernels what has been made ready so far.
struct Planned {
    plan: Plan,
    ready: Vec<Variants>,
}

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
struct Caches {
    typed: Bounded<(u64, usize), Arc<TypedProgram>>,
    plans: Bounded<PlanKey, Arc<Planned>>,
    kernels: Bounded<(Arc<Kernel>, Vec<Class>), Arc<Compiled>>,
    compiles: u64,
}

/// Runs programs. See the [crate documentation](crate) for an example.
pub struct Executor {
    settings: Builder,
    caches: Mutex<Caches>,
    pool: Arc<Pool>,
}

impl Default for Executor {
    fn default() -> Executor {
        Executor::new()
    }
}

impl Executor {
    /// An executor with default settings.
    pub fn new() -> Executor {
        Executor::builder().build()
    }

    /// Settings to choose before building.
    pub fn builder() -> Builder {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        Builder { threads, jit: true, cache: 1024, pool: 1 << 30 }
    }

    /// Computes `fetches`. Errors: everything that [`Program::check`] reports; a feed that is missing, unknown, or of
    /// another dtype, rank or extent than declared; a fetch of another program; division of integers by zero.
    pub fn run<'a>(
        &self,
        program: &Program,
        feeds: impl Into<Feeds>,
        fetches: impl IntoIterator<Item = &'a Var>,
    ) -> Result<Vec<Tensor>> {
        let fetches: Vec<&Var> = fetches.into_iter().collect();
        let typed = self.typed(program)?;
        let bound = bind(&typed, feeds.into())?;
        let plan = self.plan(&typed, program, &fetches, pattern(&typed, &bound.dyn_dims))?;
        self.execute(&plan, &bound)
    }

    /// The kernels that compute `fetches`, as text, each with the code of its segments before optimization (CLIF).
    /// Dynamic dims are taken not to be broadcast.
    pub fn dump<'a>(&self, program: &Program, fetches: impl IntoIterator<Item = &'a Var>) -> Result<String> {
        let fetches: Vec<&Var> = fetches.into_iter().collect();
        let typed = self.typed(program)?;
        let planned = self.plan(&typed, program, &fetches, vec![false; typed.dyn_dims.len()])?;
        let mut text = String::new();
        for work in &planned.plan.work {
            let Work::Kernel(k) = work else { continue };
            let class = |s: &Spread| if *s == Spread::Varies { Class::Vector } else { Class::Splat };
            let classes: Vec<Class> = k.spread.iter().map(class).collect();
            let schedule = schedule(&k.kernel, &classes, CpuLevel::get(), &|step| available() && inline(step))?;
            text += &format!("; over {}\n{}", dims_text(&typed.shapes[k.shape as usize]), k.kernel);
            if !schedule.segments.is_empty() {
                text += &clif(&k.kernel, &schedule)?;
            }
        }
        Ok(text)
    }

    /// How many kernels have been compiled so far.
    pub fn compiles(&self) -> u64 {
        self.caches().compiles
    }

    fn caches(&self) -> std::sync::MutexGuard<'_, Caches> {
        // Entries are inserted whole, so a panic elsewhere leaves the maps sound.
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program, typed and verified.
    fn typed(&self, program: &Program) -> Result<Arc<TypedProgram>> {
        let key = (program.shared.id, program.len());
        if let Some(known) = self.caches().typed.get(&key) {
            return Ok(known);
        }
        let typed = Arc::new(infer(program)?);
        typed.verify()?;
        self.caches().typed.insert(key, typed.clone(), self.settings.cache);
        Ok(typed)
    }

    fn plan(
        &self,
        typed: &Arc<TypedProgram>,
        program: &Program,
        fetches: &[&Var],
        pattern: Pattern,
    ) -> Result<Arc<Planned>> {
        let nodes = fetches.iter().map(|v| typed.node(v)).collect::<Result<Vec<_>>>()?;
        let key = (program.shared.id, typed.of_program.len(), nodes, pattern);
        if let Some(known) = self.caches().plans.get(&key) {
            return Ok(known);
        }
        let mut folded: HashMap<NodeId, Tensor> = HashMap::new();
        for n in foldable(typed, &key.2) {
            // A fault in constants is a fault of the run that needs them.
            folded.insert(n, run_blocks(typed, n)?);
        }
        let plan = plan(typed, &key.2, &folded, &key.3)?;
        let planned = Arc::new(Planned { ready: plan.work.iter().map(|_| Mutex::default()).collect(), plan });
        self.caches().plans.insert(key, planned.clone(), self.settings.cache);
        Ok(planned)
    }

    fn execute(&self, planned: &Planned, bound: &Bound) -> Result<Vec<Tensor>> {
        let (feeds, dyn_dims) = (&*bound.feeds, &*bound.dyn_dims);
        let run = Run { feeds, dyn_dims, threads: self.settings.threads, pool: Some(&self.pool) };
        run_plan(&planned.plan, &run, &|at, kernel, classes| self.ready(&planned.ready[at], kernel, classes))
    }

    /// The schedule and code of a plan's kernel for the classes of its operands.
    fn ready(&self, near: &Variants, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Arc<Compiled>> {
        let lock = || near.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = lock().iter().find(|(c, _)| c == classes) {
            return Ok(known.clone());
        }
        let made = self.compiled(kernel, classes)?;
        lock().push((classes.to_vec(), made.clone()));
        Ok(made)
    }

    /// The schedule and code of a kernel, shared by all programs that have an equal one.
    fn compiled(&self, kernel: &Arc<Kernel>, classes: &[Class]) -> Result<Arc<Compiled>> {
        let key = (kernel.clone(), classes.to_vec());
        if let Some(known) = self.caches().kernels.get(&key) {
            return Ok(known);
        }
        let jit = self.settings.jit && available();
        let schedule = schedule(kernel, classes, CpuLevel::get(), &|step| jit && inline(step))?;
        let code = if schedule.segments.is_empty() { None } else { Some(compile(kernel, &schedule)?) };
        let compiled = Arc::new(Compiled { schedule, code });
        let mut caches = self.caches();
        caches.compiles += u64::from(compiled.code.is_some());
        caches.kernels.insert(key, compiled.clone(), self.settings.cache);
        Ok(compiled)
    }
}

/// Feeds that fit their placeholders, in program order, and what the dynamic dims are with them.
struct Bound {
    feeds: Vec<Tensor>,
    dyn_dims: Vec<usize>,
}

/// Puts feeds into program order.
fn sorted(typed: &TypedProgram, feeds: Feeds) -> Result<Vec<Tensor>> {
    let mut given: Vec<Option<Tensor>> = vec![None; typed.feeds.len()];
    for (name, t) in feeds.0 {
        let problem = match typed.feed_index.get(name.as_str()) {
            None => format!("is not a placeholder of the program; it has: {}", known_names(typed)),
            Some(i) if given[*i as usize].is_some() => "is given twice".to_string(),
            Some(i) => {
                given[*i as usize] = Some(t);
                continue;
            }
        };
        return Err(Error::Feed { name, problem });
    }
    let one = |(t, node): (Option<Tensor>, &NodeId)| {
        t.ok_or_else(|| Error::Feed { name: name_of(typed, *node).into(), problem: "is missing".into() })
    };
    given.into_iter().zip(&typed.feeds).map(one).collect()
}

fn name_of(typed: &TypedProgram, feed: NodeId) -> &str {
    match &typed.nodes[feed as usize].kind {
        TypedKind::Feed(name) => name,
        _ => "",
    }
}

/// Checks feeds against placeholders and finds the dynamic dims.
fn bind(typed: &TypedProgram, feeds: Feeds) -> Result<Bound> {
    let feeds = sorted(typed, feeds)?;
    let mut dyn_dims: Vec<Option<(usize, &str, usize)>> = vec![None; typed.dyn_dims.len()];
    for (t, i) in feeds.iter().zip(&typed.feeds) {
        let (n, name, dims) = (&typed.nodes[*i as usize], name_of(typed, *i), typed.shape_of(*i));
        let wrong = |problem: String| Error::Feed { name: name.to_string(), problem };
        let declared = || format!("{}{}", n.dtype, dims_text(dims));
        if t.dtype() != n.dtype || t.rank() != dims.len() {
            return Err(wrong(format!(
                "is {}{}, the program declares {}",
                t.dtype(),
                dims_text(t.shape()),
                declared()
            )));
        }
        for (axis, (d, got)) in dims.iter().zip(t.shape()).enumerate() {
            match d {
                SymDim::Fixed(n) if n != got => {
                    return Err(wrong(format!("has {got} at axis {axis}, the program declares {}", declared())));
                }
                SymDim::Fixed(_) => {}
                SymDim::Sym(s) => match &mut dyn_dims[s[0] as usize] {
                    Some((n, other, at)) if n != got => {
                        let other = shown(other);
                        let first = format!("`{other}` has {n} at axis {at}");
                        return Err(wrong(format!("has {got} at axis {axis}, but {first}, and they are one dim")));
                    }
                    slot => *slot = Some((*got, name, axis)),
                },
            }
        }
    }
    let dyn_dims: Vec<usize> = dyn_dims.iter().map(|d| d.map_or(1, |(n, ..)| n)).collect();
    for c in &typed.checks {
        check_dims(typed, c, &dyn_dims)?;
    }
    Ok(Bound { feeds, dyn_dims })
}

/// Whether two dims that were unknown until now broadcast.
fn check_dims(typed: &TypedProgram, c: &crate::typed::DimCheck, values: &[usize]) -> Result<()> {
    let both = (c.dims.0.extent(values), c.dims.1.extent(values));
    if matches!(both, (Some(a), Some(b)) if a == b || a == 1 || b == 1) {
        return Ok(());
    }
    let named = |d: &SymDim| match d {
        SymDim::Fixed(n) => format!("{n}"),
        SymDim::Sym(set) => {
            let feeds = set.iter().filter_map(|s| {
                let dim = typed.dyn_dims.get(*s as usize)?;
                Some(format!("{} (axis {} of feed `{}`)", values.get(*s as usize)?, dim.axis, shown(&dim.feed)))
            });
            feeds.collect::<Vec<_>>().join(" and ")
        }
    };
    let (a, b) = (named(&c.dims.0), named(&c.dims.1));
    Err(Error::Shape(format!("cannot broadcast in `{}` at axis {}: {a} vs {b}\n  at {}", c.op, c.axis, c.place)))
}

fn known_names(typed: &TypedProgram) -> String {
    let mut names: Vec<String> =
        typed.feeds.iter().take(20).map(|n| format!("`{}`", shown(name_of(typed, *n)))).collect();
    if names.is_empty() {
        names.push("none".into());
    }
    names.join(", ")
}
