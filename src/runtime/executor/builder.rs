//! The settings of an executor.

use crate::base::limits::{Limit, Limits};
use crate::plan::options::{Pass, Passes};
use crate::plan::tuning::TILE;
use std::time::Duration;

/// A number of threads that a run can use.
pub(super) fn clamped(threads: usize) -> usize {
    threads.clamp(1, 1 << 16)
}

/// Settings of an [`Executor`](crate::Executor).
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
pub struct ExecutorBuilder {
    pub(super) threads: Option<usize>,
    pub(super) jit: bool,
    pub(super) cache: usize,
    pub(super) pool: usize,
    pub(super) timing: bool,
    pub(super) max_bytes: usize,
    pub(super) time_limit: Option<Duration>,
    pub(super) limits: Limits,
    pub(super) passes: Passes,
}

impl ExecutorBuilder {
    /// The most threads that one run uses; at least 1, at most 65536. Default: the machine's cores.
    pub fn threads(mut self, n: usize) -> ExecutorBuilder {
        self.threads = Some(clamped(n));
        self
    }

    /// Whether to compile loops. Without, every op is a block kernel: the same bits, slower. Default: true.
    pub fn jit(mut self, on: bool) -> ExecutorBuilder {
        self.jit = on;
        self
    }

    /// The most plans and the most compiled kernels that are kept. Default: 1024 each.
    pub fn cache(mut self, entries: usize) -> ExecutorBuilder {
        self.cache = entries.max(1);
        self
    }

    /// The most bytes of dropped results that are kept for new ones. Default: 1 GiB. Of 32 MiB or more, a quarter, but at most 64 MiB, is for results
    /// of at most 512 KiB, which each thread has for itself.
    pub fn pool(mut self, bytes: usize) -> ExecutorBuilder {
        self.pool = bytes;
        self
    }

    /// Whether to measure the time of each run and each kernel for [`Executor::stats`](crate::Executor::stats). Default: false.
    pub fn timing(mut self, on: bool) -> ExecutorBuilder {
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
    pub fn max_bytes(mut self, bytes: usize) -> ExecutorBuilder {
        self.max_bytes = bytes;
        self
    }

    /// How long one run may take; then it is [`Error::TimeLimit`](crate::Error::TimeLimit) within some milliseconds
    /// of computing. Typing, planning, which computes constants of up to 2^22 elements, and the
    /// compilation of one kernel are not interrupted. Default: no limit.
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
    pub fn time_limit(mut self, limit: Duration) -> ExecutorBuilder {
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
    pub fn limits(mut self, limits: Limits) -> ExecutorBuilder {
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
    pub fn without(mut self, pass: Pass) -> ExecutorBuilder {
        self.passes = self.passes.without(pass);
        self
    }

    /// How many bytes of operands and results the kernels of a chain over the same leading rows handle at a time: of a softmax, so many
    /// bytes of rows pass through all its loops before the next ones are read. Chains over less than twice as much run loop by loop.
    /// Results stay the same in every bit. Default: 512 KiB.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [8, 3]).softmax([1]);
    /// let x = Tensor::from_vec((0..24).map(|i| i as f32).collect(), [8, 3])?;
    /// let feeds = || feeds! { "x" => x.clone() };
    /// let small = Executor::builder().row_block(100).build();
    /// assert!(small.kernels(&p, [&y])?.contains("blocks of 2 of 8 rows"));
    /// assert_eq!(small.run(&p, feeds(), [&y])?[0].as_bytes(), Executor::new().run(&p, feeds(), [&y])?[0].as_bytes());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn row_block(mut self, bytes: usize) -> ExecutorBuilder {
        self.passes.row_block = bytes;
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
    pub fn tile(mut self, elements: usize) -> ExecutorBuilder {
        self.passes.tile = elements.clamp(1, TILE);
        self
    }
}
