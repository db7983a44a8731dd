//! `Executor`: runs programs, and keeps what it has compiled.
//!
//! Guarantees: feeds are checked by name, dtype, rank and dims before anything runs, and dynamic dims against each
//! other; everything is typed, planned and compiled once; `run` can be called from many threads. Does not: change a
//! program.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::backend::{available, clif, inline};
use crate::base::cancel::CancelToken;
use crate::base::error::Result;
use crate::base::limits::{Limit, Limits};
use crate::base::shape::dims_text;
use crate::graph::program::Program;
use crate::graph::typed::NodeId;
use crate::graph::var::Var;
use crate::kernels::CpuLevel;
use crate::plan::fuse::PlannedKernel;
use crate::plan::geometry::Spread;
use crate::plan::options::{Pass, Passes, TILE};
use crate::plan::schedule::{Class, schedule_with};
use crate::tensor::Tensor;

mod feeds;
mod prepared;
mod session;
mod stats;
pub use feeds::{AsFeed, Feed, Feeds};
pub use prepared::Prepared;
use session::Inner;
pub use stats::{KernelTime, Stats};

pub use crate::base::limits::MAX_FETCHES;

/// Settings of an [`Executor`].
///
/// ```
/// use castwise::prelude::*;
/// let exe = Executor::builder().threads(1).cache(64).pool(64 << 20).build();
/// let plain = Executor::builder().jit(false).build();                    // the same bits, slower
/// let p = Program::new(Rules::Torch);
/// let y = p.data("x", DType::F32, [3]).tanh() * 0.1;
/// let feeds = || feeds! { "x" => Tensor::from([1.0f32, 2.0, 3.0]) };
/// assert_eq!(exe.run(&p, feeds(), [&y])?[0].as_bytes(), plain.run(&p, feeds(), [&y])?[0].as_bytes());
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    threads: Option<usize>,
    jit: bool,
    cache: usize,
    pool: usize,
    timing: bool,
    max_bytes: usize,
    time_limit: Option<Duration>,
    limits: Limits,
    passes: Passes,
}

impl Builder {
    /// The most threads that one run uses; at least 1, at most 65536. Default: the machine's cores.
    pub fn threads(mut self, n: usize) -> Builder {
        self.threads = Some(n.clamp(1, 1 << 16));
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

    /// Whether to measure the time of each run and each kernel for [`Executor::stats`]. Default: false.
    pub fn timing(mut self, on: bool) -> Builder {
        self.timing = on;
        self
    }

    /// The most bytes that one run may hold at once in results, in what kernels hand to each other and in partial
    /// results of reductions; feeds and constants are not counted. A run that would need more is
    /// [`Error::Limit`](crate::Error::Limit) before it takes them. Default: no limit but the machine's.
    ///
    /// ```
    /// use castwise::{Error, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]) + 1.0;
    /// let exe = Executor::builder().max_bytes(4000).build();
    /// assert!(exe.run(&p, feeds! { "x" => Tensor::full([1000], 1.0f32)? }, [&y]).is_ok());
    /// let refused = exe.run(&p, feeds! { "x" => Tensor::full([1001], 1.0f32)? }, [&y]);
    /// assert!(matches!(refused, Err(Error::Limit { max: 4000, got: 4004, .. })));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn max_bytes(mut self, bytes: usize) -> Builder {
        self.max_bytes = bytes;
        self
    }

    /// How long one run may take; then it is [`Error::TimeLimit`](crate::Error::TimeLimit) within some milliseconds
    /// of computing. Typing, planning and the compilation of one kernel are not interrupted. Default: no limit.
    ///
    /// ```
    /// use castwise::{Error, prelude::*};
    /// use std::time::Duration;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]) + 1.0;
    /// let exe = Executor::builder().time_limit(Duration::ZERO).build();
    /// let stopped = exe.run(&p, feeds! { "x" => Tensor::full([9], 1.0f32)? }, [&y]);
    /// assert!(matches!(stopped, Err(Error::TimeLimit { .. })));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn time_limit(mut self, limit: Duration) -> Builder {
        self.time_limit = Some(limit);
        self
    }

    /// The most results of a run, and the numbers of ops and steps at which kernels are cut: those of the limits that
    /// concern runs. (What programs are limited to is theirs.) Results stay the same in every bit, unless the program
    /// asks for [`Rounding::Relaxed`](crate::Rounding::Relaxed). Default: [`Limits::new`].
    ///
    /// ```
    /// use castwise::{Limit, Limits, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let y = (p.data("x", DType::F32, [2]) + 0.1) * 3.0 - 1.0;
    /// let short = Executor::builder().limits(Limits::new().with(Limit::KernelOps, 2)?).build();
    /// assert_eq!(short.kernels(&p, [&y])?.matches("kernel {").count(), 2);
    /// let feeds = || feeds! { "x" => Tensor::from([1.0f32, 2.0]) };
    /// assert_eq!(short.run(&p, feeds(), [&y])?[0].as_bytes(), Executor::new().run(&p, feeds(), [&y])?[0].as_bytes());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = limits;
        self.passes.kernel_ops = limits.at(Limit::KernelOps);
        self.passes.function_steps = limits.at(Limit::FunctionSteps);
        self
    }

    /// Leaves out a pass. Results stay the same in every bit, unless the program asks for
    /// [`Rounding::Relaxed`](crate::Rounding::Relaxed).
    ///
    /// ```
    /// use castwise::{Pass, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let y = (p.data("x", DType::F32, [2]) + 0.1) * 3.0;
    /// let (fused, plain) = (Executor::new(), Executor::builder().without(Pass::Fusion).build());
    /// assert_eq!(fused.kernels(&p, [&y])?.matches("kernel {").count(), 1);
    /// assert_eq!(plain.kernels(&p, [&y])?.matches("kernel {").count(), 2);
    /// let feeds = || feeds! { "x" => Tensor::from([1.0f32, 2.0]) };
    /// assert_eq!(fused.run(&p, feeds(), [&y])?[0].as_bytes(), plain.run(&p, feeds(), [&y])?[0].as_bytes());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn without(mut self, pass: Pass) -> Builder {
        self.passes = self.passes.without(pass);
        self
    }

    /// How many elements a kernel's stages handle at a time, from 1 to 512, where nothing is reduced of them (there,
    /// it is part of what the result is). Results stay the same in every bit. Default: 512.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]).sin().exp();
    /// let feeds = || feeds! { "x" => Tensor::from([1.0f32, 2.0, 3.0]) };
    /// let small = Executor::builder().tile(2).build().run(&p, feeds(), [&y])?;
    /// assert_eq!(small[0].as_bytes(), Executor::new().run(&p, feeds(), [&y])?[0].as_bytes());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn tile(mut self, elements: usize) -> Builder {
        self.passes.tile = elements.clamp(1, TILE);
        self
    }

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
    pub fn builder() -> Builder {
        Builder {
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
    /// some milliseconds of computing. Typing, planning and the compilation of one kernel are not interrupted.
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

    /// Computes `fetches` into the caller's tensors, one for each. See [`Prepared::run_into`] for which tensors fit.
    pub fn run_into<'f, 'a>(
        &self,
        program: &Program,
        feeds: impl Into<Feeds<'f>>,
        fetches: impl IntoIterator<Item = &'a Var>,
        into: &mut [Tensor],
    ) -> Result<()> {
        let fetches: SmallVec<[&Var; 8]> = fetches.into_iter().collect();
        let core = self.inner.core(program, &fetches)?;
        let feeds = feeds.into();
        core.run_into(&self.inner, &core.in_order(&feeds)?, into)
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

    /// The kernels that compute `fetches`, as text, each with the code of its segments: from [`CpuLevel::Avx2`] on,
    /// on Unix, their steps and the disassembly of their bytes, elsewhere what Cranelift is given (CLIF). A kernel of which
    /// nothing is compiled has no code. Dynamic dims are taken not to be broadcast.
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
        let typed = self.inner.typed(program)?;
        let nodes = fetches.into_iter().map(|v| typed.node(v)).collect::<Result<Vec<_>>>()?;
        let planned = self.inner.plan(&typed, nodes, vec![false; typed.dyn_dims.len()])?;
        let mut text = String::new();
        for k in &planned.plan.work {
            let class = |s: &Spread| if *s == Spread::Varies { Class::Vector } else { Class::Splat };
            let classes: Vec<Class> = k.spread.iter().map(class).collect();
            let (level, inlined) = (CpuLevel::get(), |step: &_| available() && inline(step));
            let schedule = schedule_with(&k.kernel, &classes, level, &inlined, self.inner.settings.passes)?;
            text += &format!("; over {}\n{}", dims_text(&typed.shapes[k.shape as usize]), k.kernel);
            if !schedule.segments.is_empty() {
                text += &clif(&k.kernel, &schedule)?;
            }
        }
        Ok(text)
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
        let typed = self.inner.typed(program)?;
        let nodes = fetches.into_iter().map(|v| typed.node(v)).collect::<Result<Vec<_>>>()?;
        let planned = self.inner.plan(&typed, nodes, vec![false; typed.dyn_dims.len()])?;
        let text = |k: &PlannedKernel| format!("; over {}\n{}", dims_text(&typed.shapes[k.shape as usize]), k.kernel);
        Ok(planned.plan.work.iter().map(text).collect())
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
