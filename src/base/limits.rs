//! Limits: how much a program, a text, a kernel or a file's header may ask for.
//!
//! Guarantees: every limit has a name, a default and a largest value, which is what the representation behind it can
//! hold; a set of limits never has a value above that. What is beyond a limit is refused, before anything is allocated
//! for it, with an error that names the limit and its value; kernels are cut instead, and have the same bits. Does not:
//! limit the bytes, time or threads of a run, or caches; those are settings of the executor's
//! [`ExecutorBuilder`](crate::ExecutorBuilder).

use std::fmt;

use crate::base::error::{Error, Result};

/// The most nodes that a program has by default.
pub const MAX_NODES: usize = 1 << 24;
/// The most dims a tensor may have.
pub const MAX_RANK: usize = 64;
/// The longest expression by default, in bytes.
pub const MAX_EXPRESSION: usize = 64 << 20;
/// The longest text that is read as a program by default, in bytes.
pub const MAX_PROGRAM_TEXT: usize = 1 << 30;
/// The most results that one run has by default.
pub const MAX_FETCHES: usize = 1 << 20;
/// The most elements of a tensor: sixteen bytes is the largest element, and byte counts and offsets must fit isize.
pub(crate) const MAX_ELEMENTS: usize = isize::MAX as usize / 16;
/// What other readers of `.safetensors` accept too.
#[cfg_attr(not(feature = "io"), allow(dead_code, reason = "only `io` reads files"))]
pub(crate) const MAX_JSON: u64 = 100_000_000;

/// Inference, kernels and schedules make up to some dozens of things of one node, which they count in 32 bits.
const ROOM_FOR_NODES: u64 = 1 << 26;

/// What can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// The nodes of a program. Default: 2²⁴; at most 2²⁶.
    Nodes,
    /// The dims of a tensor of a program or a file. Default and at most: 64.
    Rank,
    /// The elements of a tensor of a program or a file, and of what a kernel goes over. Default and at most:
    /// `isize::MAX / 16`.
    Elements,
    /// The operators and parentheses of an expression that are open at one place. Default: 2²⁴; at most 2²⁶.
    Nesting,
    /// The bytes of an expression. Default: 64 MiB; at most 2³² - 1, for places in it are numbers of 32 bits.
    Expression,
    /// The bytes of a program's text. Default: 1 GiB; at most 2³² - 1, as for expressions.
    ProgramText,
    /// The results of one run. Default: 2²⁰; at most 2²⁶.
    Results,
    /// The applications and casts of one kernel: a longer one is cut into several, which hand tensors to each other. 0
    /// is as 1. Default and at most: 2³² - 1.
    KernelOps,
    /// The steps of one compiled function: a longer loop is cut into several over the same tile. 0: nothing is
    /// compiled. Default: 192, beyond which values spill and each step takes longer to compile; at most 512, so
    /// that values that spill take some tens of kilobytes of a thread's stack.
    FunctionSteps,
    /// The bytes of the header of a `.npy` file. Default: 64 KiB; at most 2³² - 1, which is what the format can say.
    NpyHeader,
    /// The bytes of the header of a `.safetensors` file that is read. Default: 100 MB, which is what is written at most;
    /// at most `isize::MAX`.
    SafetensorsHeader,
    /// The bytes of the index of a checkpoint in shards. Default: 100 MB; at most `isize::MAX`.
    Index,
}

/// A limit's default, its largest value, what it limits, and how the limit itself is called.
struct Row(u64, u64, &'static str, &'static str);

macro_rules! row {
    ($default:expr, $most:expr, $name:literal) => {
        Row($default as u64, $most as u64, $name, concat!("the limit for ", $name))
    };
}

impl Limit {
    /// Every limit.
    pub const ALL: [Limit; 12] = [
        Limit::Nodes,
        Limit::Rank,
        Limit::Elements,
        Limit::Nesting,
        Limit::Expression,
        Limit::ProgramText,
        Limit::Results,
        Limit::KernelOps,
        Limit::FunctionSteps,
        Limit::NpyHeader,
        Limit::SafetensorsHeader,
        Limit::Index,
    ];

    const fn row(self) -> Row {
        match self {
            Limit::Nodes => row!(MAX_NODES, ROOM_FOR_NODES, "the number of values of a program"),
            Limit::Rank => row!(MAX_RANK, MAX_RANK, "the rank"),
            Limit::Elements => row!(MAX_ELEMENTS, MAX_ELEMENTS, "the number of elements"),
            Limit::Nesting => row!(MAX_NODES, ROOM_FOR_NODES, "the number of open operators and parentheses"),
            Limit::Expression => row!(MAX_EXPRESSION, u32::MAX, "the length of the expression"),
            Limit::ProgramText => row!(MAX_PROGRAM_TEXT, u32::MAX, "the length of the program text"),
            Limit::Results => row!(MAX_FETCHES, ROOM_FOR_NODES, "the number of results"),
            Limit::KernelOps => row!(u32::MAX, u32::MAX, "the number of ops of a kernel"),
            Limit::FunctionSteps => row!(192, 512, "the number of steps of a compiled function"),
            Limit::NpyHeader => row!(1 << 16, u32::MAX, "the size of the .npy header"),
            Limit::SafetensorsHeader => row!(MAX_JSON, isize::MAX, "the size of the .safetensors header"),
            Limit::Index => row!(MAX_JSON, isize::MAX, "the size of the index"),
        }
    }

    /// Its value where nothing else is chosen.
    pub const fn default(self) -> u64 {
        self.row().0
    }

    /// The largest value that it can have.
    pub const fn most(self) -> u64 {
        self.row().1
    }

    /// What it limits, as errors say it.
    pub const fn name(self) -> &'static str {
        self.row().2
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value for each [`Limit`]: the default, or what was chosen. Programs, eager modes and executors take a set of limits
/// when they are made, readers of texts and files when they are called; each looks at those that concern it.
///
/// ```
/// use castwise::{Error, Limit, Limits, Registry, prelude::*};
/// let limits = Limits::new().with(Limit::Nodes, 3)?.with(Limit::Elements, 1000)?.with(Limit::ProgramText, 200)?;
///
/// let p = Program::with_limits(Rules::Torch, limits);
/// let x = p.data("x", DType::F32, [None]);
/// let y = (&x * 2.0).exp();                                                // the third node
/// let exe = Executor::builder().limits(limits).build();
/// assert!(exe.run(&p, feeds! { "x" => Tensor::full([1000], 1.0f32)? }, [&y]).is_ok());
/// let refused = exe.run(&p, feeds! { "x" => Tensor::full([1001], 1.0f32)? }, [&y]);
/// assert_eq!(refused.unwrap_err().to_string(), "the number of elements is 1001, more than the limit of 1000");
///
/// let _ = &y + 1.0;                                                        // the fourth
/// assert!(p.check().unwrap_err().to_string().contains("a program of more than 3 nodes"));
/// let long = Program::parse_within(&" ".repeat(201), &Registry::new(), limits);
/// assert!(matches!(long, Err(Error::Limit { max: 200, got: 201, .. })));
///
/// // Not more than what is behind it can hold.
/// let error = Limits::new().with(Limit::Rank, 65).unwrap_err();
/// assert_eq!(error.to_string(), "the limit for the rank is 65, more than the limit of 64");
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits([u64; Limit::ALL.len()]);

impl Default for Limits {
    fn default() -> Limits {
        Limits::new()
    }
}

impl Limits {
    /// The defaults.
    pub const fn new() -> Limits {
        let mut all = [0; Limit::ALL.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = Limit::ALL[i].default();
            i += 1;
        }
        Limits(all)
    }

    /// The same with another value for one of them. Errors: more than [`Limit::most`].
    pub const fn with(mut self, limit: Limit, value: u64) -> Result<Limits> {
        let Row(_, max, _, which) = limit.row();
        if value > max {
            return Err(Error::Limit { which, max, got: value });
        }
        self.0[limit as usize] = value;
        Ok(self)
    }

    /// The value of one of them.
    pub const fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// The value of one that counts what is in memory.
    pub(crate) fn at(&self, limit: Limit) -> usize {
        usize::try_from(self.get(limit)).unwrap_or(usize::MAX)
    }

    /// Refuses more than a limit.
    pub(crate) fn allow(&self, limit: Limit, got: usize) -> Result<()> {
        let (max, got) = (self.get(limit), got as u64);
        if got <= max { Ok(()) } else { Err(Error::Limit { which: limit.name(), max, got }) }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(Limit::ALL.iter().map(|limit| (limit, self.get(*limit)))).finish()
    }
}

#[cfg(test)]
mod tests;
