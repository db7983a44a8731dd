//! `Generator`: values that follow from where an element is, as programs write them: indices, ranges, random numbers.
//!
//! Guarantees: [`Generator::check`] alone says which parameters are refused; names and attributes are those of the text form. Does
//! not: compute (`kernels::generate` does), or decide dtypes (`promotion` does).

use std::fmt;

use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result};
use crate::base::scalar::{Float, Scalar};
use crate::base::shape::{axis, check, dims_text};

/// What random numbers depend on besides the element's index. Two generators with one key give related numbers: give each of
/// a program a stream of its own.
///
/// ```
/// use castwise::Key;
/// assert_eq!(Key::from(7), Key { seed: 7, stream: 0 });
/// assert_eq!(Key::from((7, 1)), Key { seed: 7, stream: 1 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    /// The seed.
    pub seed: u64,
    /// Which of the sequences of the seed.
    pub stream: u64,
}

impl From<u64> for Key {
    fn from(seed: u64) -> Key {
        Key { seed, stream: 0 }
    }
}

impl From<(u64, u64)> for Key {
    fn from((seed, stream): (u64, u64)) -> Key {
        Key { seed, stream }
    }
}

/// A value each of whose elements follows from its index, in row-major order, in the shape of the operand: nothing but the
/// operand's shape is used. The same bits for any number of threads, layout, fusion and machine.
///
/// Random numbers are those of Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3",
/// 2011): the block `i` of four words of 32 bits is that of the counter (`i`, stream) and the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Generator {
    /// The index: along a dim, or in row-major order; i64.
    Index {
        /// The dim; negative ones count from the last.
        dim: Option<i64>,
    },
    /// `start + index * step`. Integers by default if both are integers; they wrap. Floats are computed in f64.
    Arange {
        /// The first value.
        start: Scalar,
        /// From a value to the next.
        step: Scalar,
        /// As that of [`Index`](Generator::Index).
        dim: Option<i64>,
        /// The dtype; the default one without.
        dtype: Option<DType>,
    },
    /// Evenly spaced values from `start` to `end`, with both of them; `start` if there is one value. Computed in f64: from
    /// the nearer end, by multiples of `(end - start) / (n - 1)`.
    Linspace {
        /// The first value.
        start: f64,
        /// The last value.
        end: f64,
        /// As that of [`Index`](Generator::Index).
        dim: Option<i64>,
        /// A float dtype; the default one without.
        dtype: Option<DType>,
    },
    /// Uniform in [0, 1): multiples of 2^-24 for f32, 2^-53 for f64, 2^-11 for f16, 2^-8 for bf16, each as likely as others.
    Uniform {
        /// What the numbers depend on.
        key: Key,
        /// f16, bf16, f32 or f64; the default float dtype without.
        dtype: Option<DType>,
    },
    /// Normally distributed with mean 0 and standard deviation 1, by Box and Muller's method: of elements `2k` and `2k + 1`,
    /// u in (0, 1] and v in [0, 1) give `sqrt(-2 log u)` times `cos(2 pi v)` and `sin(2 pi v)`, in f32 (for f64: in f64), each op
    /// rounded; f16 and bf16 are rounded once more.
    Normal {
        /// What the numbers depend on.
        key: Key,
        /// f16, bf16, f32 or f64; the default float dtype without.
        dtype: Option<DType>,
    },
    /// True with the probability p, rounded up to a multiple of 2^-32; bool.
    Bernoulli {
        /// From 0 to 1.
        p: f64,
        /// What the numbers depend on.
        key: Key,
    },
    /// Integers from `low` to `high - 1`, each as likely as others but for one part in 2^64 / (high - low).
    Randint {
        /// The least.
        low: i128,
        /// One more than the largest.
        high: i128,
        /// What the numbers depend on.
        key: Key,
        /// An integer dtype that has all of them; the default one without.
        dtype: Option<DType>,
    },
}

/// Which rows of a whole the tensors of a run are, so that generators count from there
/// ([`Prepared::run_part_into`](crate::Prepared::run_part_into)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first dims of the whole, which make up its rows. A tensor of the run has as many first dims, whose product is the number
    /// of its rows.
    pub dims: Vec<usize>,
    /// The first row.
    pub first: usize,
}

impl Part {
    /// The shape of the whole of which a tensor of this shape is a part, and the index of the part's first element. Error: it is
    /// no part.
    pub(crate) fn whole(&self, shape: &[usize]) -> Result<(Vec<usize>, u64)> {
        let refuse = || {
            let (part, rows) = (dims_text(shape), dims_text(&self.dims));
            Error::Shape(format!(
                "{part} is not the rows of a tensor whose first dims are {rows}, from row {} on",
                self.first
            ))
        };
        let (own, rest) = shape.split_at_checked(self.dims.len()).ok_or_else(refuse)?;
        let whole: Vec<usize> = self.dims.iter().chain(rest).copied().collect();
        let (rows, own) = (check(&self.dims)?, check(own)?);
        check(&whole)?;
        if self.first.checked_add(own).is_none_or(|end| end > rows) {
            return Err(refuse());
        }
        let width: usize = rest.iter().product();
        Ok((whole, self.first as u64 * width as u64))
    }
}

impl Generator {
    /// The names in the text form and in expressions.
    pub(crate) const NAMES: [&'static str; 7] =
        ["index", "arange_like", "linspace", "uniform", "normal", "bernoulli", "randint"];

    /// What each one makes, in short.
    const DOCS: [&'static str; 7] = [
        "The index of each element of x: along a dim, or in row-major order without; i64.",
        "start + index * step, in the shape of x. Integers by default if both are integers; they wrap. Floats are computed in f64.",
        "Evenly spaced values from start to end, with both of them, in the shape of x: along a dim, or in row-major order without.",
        "Random numbers that are uniform in [0, 1), in the shape of x.",
        "Random numbers that are normally distributed with mean 0 and standard deviation 1, in the shape of x.",
        "True with the probability p, in the shape of x.",
        "Random integers from low to high - 1, in the shape of x.",
    ];

    /// Every generator, with parameters as [`named`](Generator::named) has them.
    ///
    /// ```
    /// use castwise::Generator;
    /// assert_eq!(Generator::all().next(), Some(Generator::Index { dim: None }));
    /// ```
    pub fn all() -> impl ExactSizeIterator<Item = Generator> {
        let (key, dim, dtype) = (Key::default(), None, None);
        [
            Generator::Index { dim },
            Generator::Arange { start: Scalar::Int(0), step: Scalar::Int(1), dim, dtype },
            Generator::Linspace { start: 0.0, end: 1.0, dim, dtype },
            Generator::Uniform { key, dtype },
            Generator::Normal { key, dtype },
            Generator::Bernoulli { p: 0.5, key },
            Generator::Randint { low: 0, high: 0, key, dtype },
        ]
        .into_iter()
    }

    fn at(&self) -> usize {
        match self {
            Generator::Index { .. } => 0,
            Generator::Arange { .. } => 1,
            Generator::Linspace { .. } => 2,
            Generator::Uniform { .. } => 3,
            Generator::Normal { .. } => 4,
            Generator::Bernoulli { .. } => 5,
            Generator::Randint { .. } => 6,
        }
    }

    /// The name in the text form, in expressions and in Python.
    pub fn name(&self) -> &'static str {
        Generator::NAMES[self.at()]
    }

    /// What it makes, in a sentence.
    pub fn doc(&self) -> &'static str {
        Generator::DOCS[self.at()]
    }

    /// The generator of this name, with parameters that [`number`](Generator::number) and [`dtype`](Generator::dtype) replace: from 0
    /// by steps of 1, from 0 to 1, the seed and stream 0, the probability 0.5. Of `randint` both bounds must be set.
    pub fn named(name: &str) -> Option<Generator> {
        Generator::all().find(|g| g.name() == name)
    }

    /// The names of the parameters: those that are numbers, in the order of calls, and `dtype` if one can be asked for.
    ///
    /// ```
    /// use castwise::Generator;
    /// let uniform = Generator::named("uniform").ok_or("no such generator")?;
    /// assert_eq!(uniform.parameters().collect::<Vec<_>>(), ["seed", "stream", "dtype"]);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn parameters(mut self) -> impl Iterator<Item = &'static str> {
        self.numbers().iter().copied().chain(self.dtype_mut().map(|_| "dtype"))
    }

    /// Sets the number of this name. Error: it takes none, or not this one.
    ///
    /// ```
    /// use castwise::Generator;
    /// let dice = Generator::named("randint").ok_or("no such generator")?;
    /// let dice = dice.number("low", 1)?.number("high", 7)?.number("seed", 42)?;
    /// assert_eq!(dice, Generator::Randint { low: 1, high: 7, key: 42.into(), dtype: None });
    /// assert_eq!(dice.number("seed", -1).unwrap_err(), "`seed` of `randint` is an integer from 0 to 2^64 - 1");
    /// # Ok::<(), String>(())
    /// ```
    pub fn number(mut self, name: &str, value: impl Into<Scalar>) -> Result<Generator, String> {
        let made = self.set(name, value.into());
        made.map_err(|what| format!("`{name}` of `{}` is {what}", self.name()))?;
        Ok(self)
    }

    /// Asks for this dtype. Generators whose parameters have no `dtype` ignore it.
    pub fn dtype(mut self, dtype: DType) -> Generator {
        if let Some(to) = self.dtype_mut() {
            *to = Some(dtype);
        }
        self
    }

    /// The parameters that are numbers, in the order in which they can be given without their names.
    pub fn numbers(&self) -> &'static [&'static str] {
        match self {
            Generator::Index { .. } => &["dim"],
            Generator::Arange { .. } => &["start", "step", "dim"],
            Generator::Linspace { .. } => &["start", "end", "dim"],
            Generator::Uniform { .. } | Generator::Normal { .. } => &["seed", "stream"],
            Generator::Bernoulli { .. } => &["p", "seed", "stream"],
            Generator::Randint { .. } => &["low", "high", "seed", "stream"],
        }
    }

    /// The dtype that was asked for; `None` inside if none was; `None` if none can be.
    pub(crate) fn dtype_mut(&mut self) -> Option<&mut Option<DType>> {
        match self {
            Generator::Index { .. } | Generator::Bernoulli { .. } => None,
            Generator::Arange { dtype, .. }
            | Generator::Linspace { dtype, .. }
            | Generator::Uniform { dtype, .. }
            | Generator::Normal { dtype, .. }
            | Generator::Randint { dtype, .. } => Some(dtype),
        }
    }

    /// The key, if the numbers are random.
    pub(crate) fn key_mut(&mut self) -> Option<&mut Key> {
        match self {
            Generator::Uniform { key, .. }
            | Generator::Normal { key, .. }
            | Generator::Bernoulli { key, .. }
            | Generator::Randint { key, .. } => Some(key),
            Generator::Index { .. } | Generator::Arange { .. } | Generator::Linspace { .. } => None,
        }
    }

    /// Whether it makes random numbers.
    pub(crate) fn is_random(mut self) -> bool {
        self.key_mut().is_some()
    }

    fn dim_mut(&mut self) -> Option<&mut Option<i64>> {
        match self {
            Generator::Index { dim } | Generator::Arange { dim, .. } | Generator::Linspace { dim, .. } => Some(dim),
            _ => None,
        }
    }

    /// The dim along which elements are counted; all in row-major order without.
    pub(crate) fn dim(mut self) -> Option<i64> {
        self.dim_mut().copied().flatten()
    }

    /// Sets the number of this name. Error: what it must be.
    pub(crate) fn set(&mut self, name: &str, value: Scalar) -> Result<(), &'static str> {
        const REAL: &str = "a real number";
        let float = match value {
            Scalar::Int(v) => Some(v as f64),
            Scalar::Float(v) => Some(v),
            Scalar::Bool(_) | Scalar::Complex(_) => None,
        };
        match (name, &mut *self) {
            ("seed" | "stream", this) => {
                let Some(key) = this.key_mut() else { return Err("no parameter of this generator") };
                let to = if name == "seed" { &mut key.seed } else { &mut key.stream };
                *to = integer(value).ok_or("an integer from 0 to 2^64 - 1")?;
            }
            ("dim", this) => {
                let Some(dim) = this.dim_mut() else { return Err("no parameter of this generator") };
                *dim = Some(integer(value).ok_or("an integer")?);
            }
            ("start", Generator::Arange { start: to, .. }) | ("step", Generator::Arange { step: to, .. }) => {
                float.ok_or(REAL)?;
                *to = value;
            }
            ("p", Generator::Bernoulli { p, .. }) => *p = float.ok_or(REAL)?,
            ("low", Generator::Randint { low: to, .. }) | ("high", Generator::Randint { high: to, .. }) => {
                *to = integer(value).ok_or("an integer")?;
            }
            ("start", Generator::Linspace { start: to, .. }) | ("end", Generator::Linspace { end: to, .. }) => {
                *to = float.ok_or(REAL)?;
            }
            _ => return Err("no parameter of this generator"),
        }
        Ok(())
    }

    /// The refusal of parameters, for an operand of this rank and the dtype that results.
    pub(crate) fn check(&self, rank: usize, dtype: DType) -> Result<(), Diagnostic> {
        let refuse =
            |message: String| Diagnostic::new(DiagnosticKind::BadParameter, format!("`{}`: {message}", self.name()));
        if let Some(dim) = self.dim() {
            axis(dim, rank).map_err(|m| Diagnostic::new(DiagnosticKind::Axis, format!("`{}`: {m}", self.name())))?;
        }
        let (takes, what) = match self {
            Generator::Index { .. } | Generator::Bernoulli { .. } => (true, ""),
            Generator::Randint { .. } => (dtype.is_integral() && dtype != DType::Bool, "integers"),
            Generator::Arange { .. } => (!dtype.is_complex() && dtype != DType::Bool, "integers and floats"),
            Generator::Linspace { .. } | Generator::Uniform { .. } | Generator::Normal { .. } => {
                (dtype.is_float(), "floats")
            }
        };
        if !takes || dtype.is_byte_float() {
            let message = format!("`{}` makes {what}, not {dtype}", self.name());
            return Err(Diagnostic::new(DiagnosticKind::UnsupportedDType, message));
        }
        match *self {
            Generator::Arange { start, step, .. } => {
                let integer = |s: &Scalar| matches!(s, Scalar::Int(v) if Scalar::integer(*v).is_some());
                let real = |s: &Scalar| matches!(s, Scalar::Float(_)) || integer(s);
                match [start, step].iter().find(|s| !real(s) || dtype.is_integral() && !integer(s)) {
                    Some(s) => Err(refuse(format!("{s} is no number of {dtype}"))),
                    None => Ok(()),
                }
            }
            Generator::Bernoulli { p, .. } if !(0.0..=1.0).contains(&p) => {
                Err(refuse(format!("the probability {p} is not from 0 to 1")))
            }
            Generator::Randint { low, high, .. } if low >= high => {
                Err(refuse(format!("no integer is from {low} to below {high}")))
            }
            Generator::Randint { low, high, .. } => match dtype.int_range() {
                Some((least, most)) if low >= least && high - 1 <= most && high - low <= u64::MAX.into() => Ok(()),
                _ => Err(refuse(format!("{dtype} does not have all integers from {low} to {}", high - 1))),
            },
            _ => Ok(()),
        }
    }
}

/// An integer scalar as an integer of another type, if that has it.
fn integer<T: TryFrom<i128>>(s: Scalar) -> Option<T> {
    if let Scalar::Int(v) = s { T::try_from(v).ok() } else { None }
}

impl fmt::Display for Generator {
    /// Its attributes, as in the text form: `{seed = 7, stream = 0, dtype = f32}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut this = *self;
        let mut all: Vec<String> = match self {
            Generator::Index { .. } => vec![],
            Generator::Arange { start, step, .. } => vec![format!("start = {start}"), format!("step = {step}")],
            Generator::Linspace { start, end, .. } => {
                vec![format!("start = {}", Float(*start)), format!("end = {}", Float(*end))]
            }
            Generator::Uniform { .. } | Generator::Normal { .. } => vec![],
            Generator::Bernoulli { p, .. } => vec![format!("p = {}", Float(*p))],
            Generator::Randint { low, high, .. } => vec![format!("low = {low}"), format!("high = {high}")],
        };
        all.extend(self.dim().map(|d| format!("dim = {d}")));
        if let Some(Key { seed, stream }) = this.key_mut() {
            all.extend([format!("seed = {seed}"), format!("stream = {stream}")]);
        }
        all.extend(this.dtype_mut().and_then(|d| d.map(|d| format!("dtype = {d}"))));
        if all.is_empty() { Ok(()) } else { write!(f, "{{{}}}", all.join(", ")) }
    }
}
