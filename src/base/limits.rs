//! Limits on the sizes of programs, texts, kernels and file headers.
//!
//! Guarantees: every limit has a name, a default and a maximum, which is the capacity of the representation behind it;
//! a set of limits never exceeds a maximum. A request beyond a limit is refused before anything is allocated for it,
//! with an error that names the limit and its value; a kernel beyond its limit is split instead, and gives the same
//! bits. Does not: limit the bytes, time or threads of a run, or the caches; those are settings of the executor's
//! [`ExecutorBuilder`](crate::ExecutorBuilder).

use std::fmt;

use crate::base::error::{Error, Result};

/// The default maximum number of nodes of a program.
pub const MAX_NODES: usize = 1 << 24;
/// The maximum number of dims of a tensor.
pub const MAX_RANK: usize = 64;
/// The default maximum length of an expression, in bytes.
pub const MAX_EXPRESSION: usize = 64 << 20;
/// The default maximum length of a program's text, in bytes.
pub const MAX_PROGRAM_TEXT: usize = 1 << 30;
/// The default maximum number of results of one run.
pub const MAX_FETCHES: usize = 1 << 20;
/// The maximum number of elements of a tensor: the largest element has 16 bytes, and byte counts and offsets must fit
/// isize.
pub(crate) const MAX_ELEMENTS: usize = isize::MAX as usize / 16;
/// The maximum that other readers of `.safetensors` accept, too.
#[cfg_attr(not(feature = "io"), allow(dead_code, reason = "only `io` reads files"))]
pub(crate) const MAX_JSON: u64 = 100_000_000;

/// The largest node limit: inference, kernels and schedules create up to some dozens of items for each node and count
/// them in 32 bits.
const MAX_NODE_LIMIT: u64 = 1 << 26;

/// A size that can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// The nodes of a program. Default: 2²⁴; at most 2²⁶.
    Nodes,
    /// The dims of a tensor of a program or a file. Default and at most: 64.
    Rank,
    /// The elements of a tensor of a program or a file, and of the shape that a kernel iterates over. Default and at
    /// most: `isize::MAX / 16`.
    Elements,
    /// The operators and parentheses that are open at one position of an expression. Default: 2²⁴; at most 2²⁶.
    Nesting,
    /// The bytes of an expression. Default: 64 MiB; at most 2³² - 1, because positions in it are 32-bit numbers.
    Expression,
    /// The bytes of a program's text. Default: 1 GiB; at most 2³² - 1, because positions in it are 32-bit numbers.
    ProgramText,
    /// The results of one run. Default: 2²⁰; at most 2²⁶.
    Results,
    /// The applications and casts of one kernel: a longer kernel is split into several, which pass tensors to each
    /// other. 0 counts as 1. Default and at most: 2³² - 1.
    KernelOps,
    /// The steps of one compiled function: a longer loop is split into several over the same tile. 0: nothing is
    /// compiled. Default: 192, beyond which values spill and each step takes longer to compile; at most 512, so that
    /// spilled values take some tens of kilobytes of a thread's stack.
    FunctionSteps,
    /// The bytes of the header of a `.npy` file. Default: 64 KiB; at most 2³² - 1, the largest length the format can
    /// encode.
    NpyHeader,
    /// The bytes of the header of a `.safetensors` file that is read. Default: 100 MB, which is also the longest header
    /// that is written; at most `isize::MAX`.
    SafetensorsHeader,
    /// The bytes of the index of a sharded checkpoint. Default: 100 MB; at most `isize::MAX`.
    Index,
}

/// A limit's default, its maximum, the name of the limited size, and the name of the limit.
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
            Limit::Nodes => row!(MAX_NODES, MAX_NODE_LIMIT, "the number of values of a program"),
            Limit::Rank => row!(MAX_RANK, MAX_RANK, "the rank"),
            Limit::Elements => row!(MAX_ELEMENTS, MAX_ELEMENTS, "the number of elements"),
            Limit::Nesting => row!(MAX_NODES, MAX_NODE_LIMIT, "the number of open operators and parentheses"),
            Limit::Expression => row!(MAX_EXPRESSION, u32::MAX, "the length of the expression"),
            Limit::ProgramText => row!(MAX_PROGRAM_TEXT, u32::MAX, "the length of the program text"),
            Limit::Results => row!(MAX_FETCHES, MAX_NODE_LIMIT, "the number of results"),
            Limit::KernelOps => row!(u32::MAX, u32::MAX, "the number of ops of a kernel"),
            Limit::FunctionSteps => row!(192, 512, "the number of steps of a compiled function"),
            Limit::NpyHeader => row!(1 << 16, u32::MAX, "the size of the .npy header"),
            Limit::SafetensorsHeader => row!(MAX_JSON, isize::MAX, "the size of the .safetensors header"),
            Limit::Index => row!(MAX_JSON, isize::MAX, "the size of the index"),
        }
    }

    /// The default value.
    pub const fn default(self) -> u64 {
        self.row().0
    }

    /// The maximum value.
    pub const fn most(self) -> u64 {
        self.row().1
    }

    /// The limited size, as errors name it.
    pub const fn name(self) -> &'static str {
        self.row().2
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value for each [`Limit`], the default unless set. Programs, eager modes and executors take a set of limits when
/// they are created, readers of texts and files when they are called; each checks the limits that concern it.
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
/// // A limit cannot exceed its maximum.
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

    /// The same limits with another value for one of them. Errors: more than [`Limit::most`].
    pub const fn with(mut self, limit: Limit, value: u64) -> Result<Limits> {
        let Row(_, max, _, which) = limit.row();
        if value > max {
            return Err(Error::Limit { which, max, got: value });
        }
        self.0[limit as usize] = value;
        Ok(self)
    }

    /// The value of a limit.
    pub const fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// The value of a limit on things in memory, as usize.
    pub(crate) fn at(&self, limit: Limit) -> usize {
        usize::try_from(self.get(limit)).unwrap_or(usize::MAX)
    }

    /// An error if `got` is more than the limit.
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
