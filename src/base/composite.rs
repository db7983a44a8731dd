//! `Composite`: functions that programs write as one value and inference writes out as rows of the op table: softmax, norms, `isclose`.
//!
//! Guarantees: names, operands and parameters are those of the text form, of expressions and of Python. Does not: say which rows a
//! composite is (`analysis::infer` does), or check dims and dtypes.

use std::fmt;
use std::sync::Arc;

use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::indexing::Indexing;
use crate::base::scalar::Float;

/// Which composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Softmax,
    LogSoftmax,
    LayerNorm,
    RmsNorm,
    Normalize,
    Dot,
    Vecdot,
    CosineSimilarity,
    Isclose,
    NanToNum,
    SumTo,
    ExpandLike,
    Count,
    FullLike,
    Complex,
    TakeAlongDim,
    ScatterAdd,
    Pad,
}

impl Kind {
    /// Whether what it gives depends on shapes that no other row has: a copy of its rows can't be written one by one.
    pub(crate) fn is_of_shapes(self) -> bool {
        matches!(self, Kind::SumTo | Kind::ExpandLike | Kind::Count)
    }
}

/// What a composite takes.
pub(crate) struct Takes {
    pub(crate) name: &'static str,
    /// The operands' names: those that must be given come first.
    pub(crate) operands: &'static [&'static str],
    pub(crate) required: usize,
    /// Whether it works along dims.
    pub(crate) dims: bool,
    /// Whether the operand can be converted to a dtype first.
    pub(crate) dtype: bool,
    /// The names of its numbers.
    pub(crate) numbers: &'static [&'static str],
    /// Whether it takes `equal_nan`.
    pub(crate) equal_nan: bool,
    pub(crate) doc: &'static str,
}

const NOTHING: Takes = Takes {
    name: "",
    operands: &["x"],
    required: 1,
    dims: false,
    dtype: false,
    numbers: &[],
    equal_nan: false,
    doc: "",
};

/// In the order of [`Kind`].
static ALL: [Takes; 18] = [
    Takes {
        name: "softmax",
        dims: true,
        dtype: true,
        doc: "exp(x - m) / sum(exp(x - m)) along dims, the last one by default, where m is the largest element. Half dtypes are computed in f32 and rounded once.",
        ..NOTHING
    },
    Takes {
        name: "log_softmax",
        dims: true,
        dtype: true,
        doc: "x - m - log(sum(exp(x - m))) along dims, the last one by default, where m is the largest element. Half dtypes are computed in f32 and rounded once.",
        ..NOTHING
    },
    Takes {
        name: "layer_norm",
        operands: &["x", "weight", "bias"],
        dims: true,
        numbers: &["eps"],
        doc: "(x - mean) / sqrt(variance + eps) * weight + bias over trailing dims, the last one by default; the variance is divided by the number of elements. Half dtypes are computed in f32 and rounded once.",
        ..NOTHING
    },
    Takes {
        name: "rms_norm",
        operands: &["x", "weight"],
        dims: true,
        numbers: &["eps"],
        doc: "x / sqrt(mean of squares + eps) * weight over trailing dims, the last one by default. Without eps it is the distance from 1 to the next number of f64, or of f32 for other dtypes. Half dtypes are computed in f32 and rounded once.",
        ..NOTHING
    },
    Takes {
        name: "normalize",
        dims: true,
        numbers: &["p", "eps"],
        doc: "x / max(norm of order p, eps) along dims, dim 1 by default. Half dtypes are divided in f32 and rounded once.",
        ..NOTHING
    },
    Takes {
        name: "dot",
        operands: &["x", "y"],
        required: 2,
        doc: "Sum of the products of two vectors, without conjugation. Half dtypes are multiplied and summed in f32 and rounded once; integers wrap in their own dtype.",
        ..NOTHING
    },
    Takes {
        name: "vecdot",
        operands: &["x", "y"],
        required: 2,
        dims: true,
        doc: "Sum of the products of conj(x) and y along dims, the last one by default. Products of half dtypes are rounded before they are summed in f32.",
        ..NOTHING
    },
    Takes {
        name: "cosine_similarity",
        operands: &["x", "y"],
        required: 2,
        dims: true,
        numbers: &["eps"],
        doc: "Sum of the products of x and y along dims, dim 1 by default, after each is divided by its norm, or by eps if that is larger.",
        ..NOTHING
    },
    Takes {
        name: "isclose",
        operands: &["x", "y"],
        required: 2,
        numbers: &["rtol", "atol"],
        equal_nan: true,
        doc: "Whether x is y, or |x - y| is finite and at most atol + |rtol * y|; with equal_nan also where both are NaN.",
        ..NOTHING
    },
    Takes {
        name: "nan_to_num",
        numbers: &["nan", "posinf", "neginf"],
        doc: "x with NaN replaced by 0 and infinities by the largest and lowest numbers of the dtype, or by the numbers given. Of complex numbers both parts. Integers stay.",
        ..NOTHING
    },
    Takes {
        name: "sum_to",
        operands: &["x", "like"],
        required: 2,
        doc: "Sum of x over the dims that `like` lacks or has with extent 1, in the shape of `like`: what undoes broadcasting. It keeps the dtype; half dtypes are summed in f32 and rounded once.",
        ..NOTHING
    },
    Takes {
        name: "expand_like",
        operands: &["x", "like"],
        required: 2,
        doc: "x broadcast to the shape of `like`, as a view.",
        ..NOTHING
    },
    Takes { name: "count", dims: true, doc: "The number of elements along dims, all by default: i64, 0-d.", ..NOTHING },
    Takes {
        name: "full_like",
        numbers: &["value"],
        dtype: true,
        doc: "A number, 0 by default, in the shape of x, in its dtype or another one.",
        ..NOTHING
    },
    Takes {
        name: "complex",
        operands: &["re", "im"],
        required: 2,
        doc: "The complex number of two real ones, in their common dtype. Integers become floats under the rules of NumPy, Paddle and JAX.",
        ..NOTHING
    },
    Takes {
        name: "take_along_dim",
        operands: &["x", "index"],
        required: 2,
        dims: true,
        doc: "The elements of x at an integer index along one dim, the last one by default: the result has the index's extent there. In other dims the index has x's extents or 1. Negative ones count from the end; others outside of the dim are an error.",
        ..NOTHING
    },
    Takes {
        name: "scatter_add",
        operands: &["x", "index", "like"],
        required: 3,
        dims: true,
        doc: "Zeros to which each element of x is added at its integer index along one dim, the last one by default, in the order of x. The result has the extent of `like` there, and x's in other dims; the index has as many dims, each of x's extent or 1. Half dtypes are summed in f32 and rounded once; integers wrap. An index is as that of `take_along_dim`.",
        ..NOTHING
    },
    Takes {
        name: "pad",
        operands: &["x", "like"],
        required: 2,
        dims: true,
        numbers: &["start", "step"],
        doc: "x among zeros along one dim, the last one by default: its elements are at start, start + step, and so on, 0 and 1 by default, as those of a slice. The result has the extent of `like` there, and x's in other dims.",
        ..NOTHING
    },
];

/// A function of one to three values that is made of rows of the op table: a program has it as one value, and inference writes its
/// rows, in the dtypes that the rule set wants. The methods of [`Var`](crate::Var) with these names make them.
///
/// ```
/// use castwise::{Composite, prelude::*};
/// let names: Vec<&str> = Composite::all().map(|c| c.name()).collect();
/// assert_eq!(names[..3], ["softmax", "log_softmax", "layer_norm"]);
/// let p = Program::new(Rules::Torch);
/// let y = p.data("x", DType::F16, [2, 3]).softmax([-1]);
/// assert!(p.to_string().contains("softmax %x {dims = [-1]}"));
/// let typed = p.infer()?;
/// assert_eq!((typed.dtype(&y), typed.casts().len()), (Some(DType::F16), 2));      // to f32 and back
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    pub(crate) kind: Kind,
    /// Along which dims; the default ones without.
    pub(crate) dims: Option<Arc<[i64]>>,
    /// The dtype to which the operand is converted first.
    pub(crate) dtype: Option<DType>,
    /// The numbers that are given.
    pub(crate) numbers: [Option<f64>; 3],
    pub(crate) equal_nan: bool,
}

impl Composite {
    const KINDS: [Kind; 18] = [
        Kind::Softmax,
        Kind::LogSoftmax,
        Kind::LayerNorm,
        Kind::RmsNorm,
        Kind::Normalize,
        Kind::Dot,
        Kind::Vecdot,
        Kind::CosineSimilarity,
        Kind::Isclose,
        Kind::NanToNum,
        Kind::SumTo,
        Kind::ExpandLike,
        Kind::Count,
        Kind::FullLike,
        Kind::Complex,
        Kind::TakeAlongDim,
        Kind::ScatterAdd,
        Kind::Pad,
    ];

    pub(crate) fn new(kind: Kind) -> Composite {
        Composite { kind, dims: None, dtype: None, numbers: [None; 3], equal_nan: false }
    }

    /// What moves elements along a dim.
    pub(crate) fn indexing(how: Indexing, dim: i64) -> Composite {
        let (kind, numbers) = match how {
            Indexing::Take => (Kind::TakeAlongDim, [None; 3]),
            Indexing::ScatterAdd => (Kind::ScatterAdd, [None; 3]),
            Indexing::Pad { start, step } => (Kind::Pad, [Some(start as f64), Some(step as f64), None]),
        };
        Composite { numbers, ..Composite::new(kind).over([dim]) }
    }

    /// Every composite, without parameters.
    pub fn all() -> impl ExactSizeIterator<Item = Composite> {
        Composite::KINDS.into_iter().map(Composite::new)
    }

    /// The composite of this name, without parameters.
    pub fn named(name: &str) -> Option<Composite> {
        Composite::all().find(|c| c.name() == name)
    }

    /// The names in the text form and in expressions.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|t| t.name)
    }

    pub(crate) fn takes(&self) -> &'static Takes {
        &ALL[self.kind as usize]
    }

    /// The name in the text form, in expressions and in Python.
    pub fn name(&self) -> &'static str {
        self.takes().name
    }

    /// The operands' names, and how many of them must be given.
    pub fn operands(&self) -> (&'static [&'static str], usize) {
        (self.takes().operands, self.takes().required)
    }

    /// The names of the parameters besides operands, in the order of the text form.
    ///
    /// ```
    /// use castwise::Composite;
    /// let isclose = Composite::named("isclose").ok_or("no such composite")?;
    /// assert_eq!(isclose.parameters().collect::<Vec<_>>(), ["rtol", "atol", "equal_nan"]);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        let t = self.takes();
        let dims = t.dims.then_some("dims");
        let rest = [t.dtype.then_some("dtype"), t.equal_nan.then_some("equal_nan")];
        dims.into_iter().chain(t.numbers.iter().copied()).chain(rest.into_iter().flatten())
    }

    /// What it computes.
    pub fn doc(&self) -> &'static str {
        self.takes().doc
    }

    /// Along these dims. It is for composites whose parameters have `dims`; others ignore it.
    pub fn over(self, dims: impl AsRef<[i64]>) -> Composite {
        Composite { dims: Some(dims.as_ref().into()), ..self }
    }

    /// The operand is converted to this dtype first. It is for `softmax` and `log_softmax`; others ignore it.
    pub fn dtype(self, dtype: DType) -> Composite {
        Composite { dtype: Some(dtype), ..self }
    }

    /// NaNs are equal to each other. It is for `isclose`; others ignore it.
    pub fn equal_nan(self, equal: bool) -> Composite {
        Composite { equal_nan: equal, ..self }
    }

    /// Sets the number of this name. Error: it takes none.
    ///
    /// ```
    /// use castwise::Composite;
    /// let norm = Composite::named("layer_norm").ok_or("no such composite")?;
    /// assert_eq!(norm.clone().number("eps", 1e-6)?.to_string(), "{eps = 1e-6}");
    /// assert!(norm.number("p", 2.0).is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn number(mut self, name: &str, value: f64) -> Result<Composite, String> {
        let at = self.takes().numbers.iter().position(|n| *n == name);
        let at = at.ok_or_else(|| format!("`{}` takes no number `{name}`", self.name()))?;
        self.numbers[at] = Some(value);
        Ok(self)
    }

    /// The refusal of another number of operands than it takes.
    pub(crate) fn counted(&self, operands: usize) -> Result<(), Diagnostic> {
        let (names, required) = self.operands();
        if (required..=names.len()).contains(&operands) {
            return Ok(());
        }
        let takes =
            if required == names.len() { required.to_string() } else { format!("{required} to {}", names.len()) };
        let s = if names.len() == 1 { "" } else { "s" };
        let message = format!("`{}` takes {takes} operand{s}, not {operands}", self.name());
        Err(Diagnostic::new(DiagnosticKind::BadParameter, message).help(self.usage()))
    }

    /// How it is called in an expression.
    pub(crate) fn usage(&self) -> String {
        let given: Vec<String> = self.parameters().map(|p| format!(", {p}=…")).collect();
        format!("write `{}({}{})`", self.name(), self.operands().0.join(", "), given.concat())
    }

    /// The number at a position of those that it takes, or its default.
    pub(crate) fn value(&self, at: usize, default: f64) -> f64 {
        self.numbers[at].unwrap_or(default)
    }
}

impl fmt::Display for Composite {
    /// Its parameters, as in the text form: `{dims = [-1], eps = 1e-6}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<String> = self.dims.iter().map(|d| format!("dims = {d:?}")).collect();
        for (name, value) in self.takes().numbers.iter().zip(self.numbers) {
            all.extend(value.map(|v| format!("{name} = {}", Float(v))));
        }
        all.extend(self.dtype.map(|d| format!("dtype = {d}")));
        all.extend(self.equal_nan.then(|| "equal_nan".to_string()));
        if all.is_empty() { Ok(()) } else { write!(f, "{{{}}}", all.join(", ")) }
    }
}
