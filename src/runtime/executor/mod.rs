//! `Executor`: runs programs, and keeps what it has compiled.
//!
//! Guarantees: feeds are checked by name, dtype, rank and dims before anything runs, and dynamic dims against each
//! other; everything is typed, planned and compiled once; `run` can be called from many threads. Does not: change a
//! program.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use crate::backend::dump::CodeStage;
use crate::base::cancel::CancelToken;
use crate::base::error::Result;
use crate::base::limits::{Limit, Limits};
use crate::graph::program::Program;
use crate::graph::typed::NodeId;
use crate::graph::var::Var;
use crate::plan::options::Passes;
use crate::tensor::{AsTarget, Tensor};
use builder::{ExecutorBuilder, clamped};

pub(crate) mod builder;
mod dump;
mod feeds;
mod lru;
mod prepared;
mod session;
mod stats;
pub use feeds::{AsFeed, Feed, Feeds};
pub use prepared::Prepared;
use prepared::targets;
use session::Inner;
pub use stats::{KernelTime, Stats};

pub use crate::base::limits::MAX_FETCHES;

impl ExecutorBuilder {
    /// The executor.
    pub fn build(self) -> Executor {
        Executor { inner: Arc::new(Inner::new(self)) }
    }
}

/// Runs programs: types, plans and compiles them once, then runs what it has. Can be used from many threads.
///
/// ```
/// use castwise::prelude::*;
/// let p = Program::new(Rules::Torch);
/// let (x, y) = (p.data("x", DType::I32, [None]), p.data("y", DType::F32, [None]));
/// let (sum, mean) = (&x + &y, (&x + &y).mean());
/// let exe = Executor::new();
/// let feeds = feeds! { "x" => Tensor::from([1i32, 2]), "y" => Tensor::from([0.5f32, 1.5]) };
/// let out = exe.run(&p, feeds, [&sum, &mean])?;
/// assert_eq!(out[0].to_vec::<f32>()?, [1.5, 3.5]);
/// assert_eq!(out[1].item::<f32>()?, 2.5);
/// # Ok::<(), castwise::Error>(())
/// ```
pub struct Executor {
    inner: Arc<Inner>,
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
    pub fn builder() -> ExecutorBuilder {
        ExecutorBuilder {
            threads: None,
            jit: true,
            cache: 1024,
            pool: 1 << 30,
            timing: false,
            max_bytes: usize::MAX,
            time_limit: None,
            limits: Limits::new(),
            passes: Passes::default(),
        }
    }

    /// Computes `fetches`. Errors: everything that [`Program::check`] reports; a feed that is missing, unknown, or of
    /// another dtype, rank or extent than declared; a fetch of another program; division of integers by zero.
    pub fn run<'f, 'a>(
        &self,
        program: &Program,
        feeds: impl Into<Feeds<'f>>,
        fetches: impl IntoIterator<Item = &'a Var>,
    ) -> Result<Vec<Tensor>> {
        let fetches: SmallVec<[&Var; 8]> = fetches.into_iter().collect();
        let core = self.inner.core(program, &fetches)?;
        let feeds = feeds.into();
        core.run(&self.inner, &core.in_order(&feeds)?, None)
    }

    /// [`run`](Executor::run) that the token can stop: it then is [`Error::Cancelled`](crate::Error::Cancelled) within
    /// some milliseconds of computing. Typing, planning, which computes constants of up to 2^22 elements, and the
    /// compilation of one kernel are not interrupted.
    /// [`CancelToken`] has an example.
    pub fn run_with<'f, 'a>(
        &self,
        program: &Program,
        feeds: impl Into<Feeds<'f>>,
        fetches: impl IntoIterator<Item = &'a Var>,
        token: &CancelToken,
    ) -> Result<Vec<Tensor>> {
        let fetches: SmallVec<[&Var; 8]> = fetches.into_iter().collect();
        let core = self.inner.core(program, &fetches)?;
        let feeds = feeds.into();
        core.run(&self.inner, &core.in_order(&feeds)?, Some(token))
    }

    /// Computes `fetches` into the caller's tensors or memory, one for each. See [`Prepared::run_into`] for what fits.
    pub fn run_into<'f, 'a>(
        &self,
        program: &Program,
        feeds: impl Into<Feeds<'f>>,
        fetches: impl IntoIterator<Item = &'a Var>,
        into: &mut [impl AsTarget],
    ) -> Result<()> {
        let fetches: SmallVec<[&Var; 8]> = fetches.into_iter().collect();
        let core = self.inner.core(program, &fetches)?;
        let feeds = feeds.into();
        core.run_into(&self.inner, &core.in_order(&feeds)?, &mut targets(into), None, None)
    }

    /// Makes `fetches` of a program ready to be computed again and again: what is known without feeds is done once.
    ///
    /// Errors: everything that [`Program::check`] reports; a fetch of another program.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let (a, b) = (p.data("a", DType::F32, [None]), p.data("b", DType::F32, [None]));
    /// let step = Executor::new().prepare(&p, [&(&a * 0.5 + &b)])?;
    /// assert_eq!(step.feed_names().collect::<Vec<_>>(), ["a", "b"]);
    /// let (x, y) = (Tensor::from_slice(&[2.0f32, 4.0], [2])?, Tensor::from_slice(&[1.0f32, 1.0], [2])?);
    /// let mut out = [step.run(&[&x, &y])?.remove(0)];
    /// step.run_into(&[&y, &x], &mut out)?;                      // reuses the memory of `out`
    /// assert_eq!(out[0].to_vec::<f32>()?, [2.5, 4.5]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn prepare<'a>(&self, program: &Program, fetches: impl IntoIterator<Item = &'a Var>) -> Result<Prepared> {
        let typed = self.inner.typed(program)?;
        let nodes = fetches.into_iter().map(|v| typed.node(v)).collect::<Result<Vec<NodeId>>>()?;
        self.inner.settings.limits.allow(Limit::Results, nodes.len())?;
        Ok(Prepared::new(self.inner.clone(), typed, nodes))
    }

    /// The kernels that compute `fetches`, as text, each with the code of its loops:
    /// [`CodeStage::Asm`] on Unix from [`CpuLevel::Avx2`](crate::CpuLevel::Avx2) up, elsewhere [`CodeStage::Clif`].
    ///
    /// ```
    /// use castwise::{CpuLevel, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]) * 2.0;
    /// let text = Executor::new().dump(&p, [&y])?;
    /// # if cfg!(all(target_arch = "x86_64", unix)) {
    /// let code = if CpuLevel::get() >= CpuLevel::Avx2 { "vmulps" } else { "fmul" };
    /// assert!(text.contains(code));
    /// # }
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn dump<'a>(&self, program: &Program, fetches: impl IntoIterator<Item = &'a Var>) -> Result<String> {
        let stage = if CodeStage::Clif.is_available() { CodeStage::Clif } else { CodeStage::Asm };
        Ok(self.dump_stage(program, fetches, stage)?.unwrap_or_default())
    }

    /// The kernels that compute `fetches`, as text, each with one stage of the code of its loops, under comments with the step of
    /// the kernel that the code belongs to and the step's source location. `None` if this machine's loops do not have the stage. A
    /// step that is not compiled has a comment only. Dynamic dims are taken not to be broadcast.
    ///
    /// ```
    /// use castwise::{CodeStage, Executor, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]) * 2.0;
    /// if let Some(text) = Executor::new().dump_stage(&p, [&y], CodeStage::Asm)? {
    ///     assert!(text.contains("; %2: f32 = mul.f32 %0, %1   at "));
    /// }
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn dump_stage<'a>(
        &self,
        program: &Program,
        fetches: impl IntoIterator<Item = &'a Var>,
        stage: CodeStage,
    ) -> Result<Option<String>> {
        stage.is_available().then(|| dump::code(&self.inner, program, fetches, stage)).transpose()
    }

    /// How `fetches` are computed, as text: the plan with its buffers, then for each kernel its steps, its schedule (which steps
    /// are compiled together, and where each value is between them), and how a launch over contiguous operands goes through them:
    /// the geometry, and the strategy that is chosen for it. These depend on extents, so kernels with dynamic dims do not have
    /// them.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = (p.data("x", DType::F32, [3, 1000]) * 2.0).over([1]).sum();
    /// let text = Executor::new().schedules(&p, [&y])?;
    /// assert!(text.contains("schedule {") && text.contains("inner 1000"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn schedules<'a>(&self, program: &Program, fetches: impl IntoIterator<Item = &'a Var>) -> Result<String> {
        dump::schedules(&self.inner, program, fetches)
    }

    /// The kernels that compute `fetches`, as text: the first part of [`dump`](Executor::dump).
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]) * 2.0;
    /// assert!(Executor::new().kernels(&p, [&y])?.contains("mul"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn kernels<'a>(&self, program: &Program, fetches: impl IntoIterator<Item = &'a Var>) -> Result<String> {
        dump::kernels(&self.inner, program, fetches)
    }

    /// The instructions that each op of the kernels that compute `fetches` is made of, lane by lane: the same on every
    /// machine. An op without any is run by a kernel of the library. Each op and dtype is printed once.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]).square();
    /// assert_eq!(Executor::new().ssa(&p, [&y])?, "square.f32(%0: f32) {\n  %1 = mul.f32 %0, %0\n  return canonical %1\n}\n");
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn ssa<'a>(&self, program: &Program, fetches: impl IntoIterator<Item = &'a Var>) -> Result<String> {
        dump::ssa(&self.inner, program, fetches)
    }

    /// The most threads that one run uses.
    pub fn threads(&self) -> usize {
        self.inner.threads.load(Ordering::Relaxed)
    }

    /// Changes how many threads runs that begin from now on use at most, also those of what is prepared already: at least 1,
    /// at most 65536. Results stay the same in every bit. For a process with one executor; otherwise
    /// [`ExecutorBuilder::threads`](crate::ExecutorBuilder::threads).
    ///
    /// ```
    /// let exe = castwise::Executor::builder().threads(4).build();
    /// exe.set_threads(1);
    /// assert_eq!(exe.threads(), 1);
    /// ```
    pub fn set_threads(&self, n: usize) {
        self.inner.threads.store(clamped(n), Ordering::Relaxed);
    }

    /// How many kernels have been compiled so far.
    pub fn compiles(&self) -> u64 {
        self.inner.counters.compiles.get()
    }

    /// What has been done so far: runs, compilations, bytes, times. [`Stats`] has an example.
    pub fn stats(&self) -> Stats {
        self.inner.counters.stats()
    }
}
