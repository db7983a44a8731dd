//! What rows of the op table are written with: promotions, sets of dtypes, parameters, numbers and choices; and the columns of
//! the rule sets, one file each: what a rule set does otherwise than the row says.
//!
//! Guarantees: every column has a default, so that a row names only the columns that it overrides. Does not: decide
//! anything; `promotion` reads these columns.

use crate::base::dtype::DType::*;
use crate::base::dtype::{Category, DType, DTypeSet};

/// The methods by which a row sets one field of a column, which is none otherwise.
macro_rules! overrides {
    ($column:ident: $($(#[$doc:meta])* $method:ident($field:ident: $value:ty);)*) => {
        impl $column {
            $(
                $(#[$doc])*
                pub(in crate::ops) const fn $method(self, $field: $value) -> $column {
                    $column { $field: Some($field), ..self }
                }
            )*
        }
    };
}

mod jax;
mod numpy;
mod paddle;
mod torch;

pub(super) use jax::JAX;
pub use jax::{JaxColumns, Weakness};
pub(super) use numpy::NUMPY;
pub use numpy::NumpyColumns;
pub(super) use paddle::PADDLE;
pub use paddle::PaddleColumns;
pub(super) use torch::TORCH;
pub use torch::{ScalarRange, TorchColumns, WideScalar};

/// How the compute dtype of an op follows from its operands' dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// The operands' common dtype.
    Common,
    /// Like [`Common`](Promotion::Common), but bool and integers become the default float dtype: `div`, `exp`, ….
    IntToFloat,
    /// Like [`Common`](Promotion::Common), but bool becomes `i64`: `square`.
    BoolToInt,
    /// Like [`Common`](Promotion::Common), but bool and integers become `f64`: Paddle's `atan2`.
    IntToDouble,
    /// `f64`, or `c128` with a complex operand: `float_power`.
    ToDouble,
    /// Bool and integers become `i64`, the dtype of their sum.
    ToLong,
    /// Bool and i32 become `i64`; other integers keep their dtype: Paddle's `sum`.
    SomeToLong,
    /// The operand is converted to bool: `any`, `all`. Under PyTorch's rules u8 stays u8.
    Truth,
    /// The first operand's dtype and shape; the other operands must be castable to the dtype: `assign`.
    First,
    /// `f64` if an operand has it, else `f32`; complex operands promote to their common dtype: Paddle's `ldexp`.
    SingleOrDouble,
    /// The dtype is given by the `dtype` attribute: `cast`.
    Given,
}

/// The column of the rule set of the tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToyColumns {
    /// Whether integer scalars must be in the range of the dtype that they are converted to.
    pub(crate) fits: bool,
}

/// A number among the attributes of an op.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct NumberAttribute {
    /// Its name.
    pub name: &'static str,
    /// Its value, if none is given and the rule set's column has no other; `None` if it must be given.
    pub default: Option<f64>,
    /// Its least value.
    pub least: f64,
    /// Its largest value.
    pub most: f64,
    /// Whether it counts elements: an integer that is at most the number of elements along the dims.
    pub counts: bool,
}

/// A number without bounds.
const NUMBER: NumberAttribute =
    NumberAttribute { name: "", default: None, least: f64::NEG_INFINITY, most: f64::INFINITY, counts: false };

/// What is subtracted from the number of elements by which a variance is divided.
pub(super) const CORRECTION: NumberAttribute = NumberAttribute { name: "correction", default: Some(1.0), ..NUMBER };

/// The order of a norm.
pub(super) const ORDER: NumberAttribute = NumberAttribute { name: "p", default: Some(2.0), ..NUMBER };

/// The part of the elements that a quantile is above.
pub(super) const PART: NumberAttribute = NumberAttribute { name: "q", least: 0.0, most: 1.0, ..NUMBER };

/// The rank of an element, counted from 1.
pub(super) const RANK: NumberAttribute = NumberAttribute { name: "k", least: 1.0, counts: true, ..NUMBER };

/// A number of elements.
pub(super) const COUNT: NumberAttribute = NumberAttribute { name: "k", least: 0.0, counts: true, ..NUMBER };

/// A word among the attributes of an op.
///
/// ```
/// use castwise::ops::Choice;
/// assert_eq!(Choice::from_word("midpoint"), Some(Choice::Midpoint));
/// assert_eq!(Choice::Midpoint.to_string(), "midpoint");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Choice {
    /// Between two neighbours in order: the lower one.
    Lower,
    /// The higher one.
    Higher,
    /// The nearer one; if both are as near, the one with the even rank, counted from 0.
    Nearest,
    /// The nearer one; if both are as near, the lower one: what JAX calls `nearest`.
    NearestDown,
    /// Halfway between them.
    Midpoint,
    /// Between them as the rank is between theirs.
    Linear,
    /// No.
    False,
    /// Yes.
    True,
}

impl Choice {
    /// Every word.
    pub const ALL: [Choice; 8] = [
        Choice::Lower,
        Choice::Higher,
        Choice::Nearest,
        Choice::NearestDown,
        Choice::Midpoint,
        Choice::Linear,
        Choice::False,
        Choice::True,
    ];

    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            Choice::Lower => "lower",
            Choice::Higher => "higher",
            Choice::Nearest => "nearest",
            Choice::NearestDown => "nearest_down",
            Choice::Midpoint => "midpoint",
            Choice::Linear => "linear",
            Choice::False => "false",
            Choice::True => "true",
        }
    }

    /// The choice of a word; `true` and `false` may be spelled as in Python.
    pub fn from_word(word: &str) -> Option<Choice> {
        let word = match word {
            "True" => "true",
            "False" => "false",
            word => word,
        };
        Choice::ALL.into_iter().find(|c| c.word() == word)
    }

    /// Whether the result is an element; else it is computed from two.
    pub const fn is_element(self) -> bool {
        !matches!(self, Choice::Midpoint | Choice::Linear)
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// A choice among the attributes of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChoiceAttribute {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub among: &'static [Choice],
    /// What it is, if nothing is given and the rule set's column has nothing else.
    pub default: Choice,
}

/// What lies between two neighbours, for a quantile.
pub(super) const BETWEEN: ChoiceAttribute = ChoiceAttribute {
    name: "interpolation",
    among: &[Choice::Lower, Choice::Higher, Choice::Nearest, Choice::NearestDown, Choice::Midpoint, Choice::Linear],
    default: Choice::Linear,
};

/// How a framework computes a quantile from the elements of the ranks about q · (n - 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantiles {
    /// The dtype of ranks and weights: f32 or f64.
    pub(crate) rank: DType,
    /// Whether the element after that of a whole rank takes part too, with the weight 0.
    pub(crate) next: bool,
    /// Whether both elements are weighted, and the midpoint is their mean; else the weighted distance between them is added to the
    /// nearer one.
    pub(crate) weighted: bool,
}

impl Quantiles {
    /// The rank of `q` among elements of which the last one has the rank `last`.
    pub(crate) fn rank_of(self, q: f64, last: f64) -> f64 {
        if self.rank == F32 { f64::from(q as f32 * last as f32) } else { q * last }
    }
}

/// Whether the largest element is first.
pub(super) const DESCENDING: ChoiceAttribute =
    ChoiceAttribute { name: "descending", among: &[Choice::False, Choice::True], default: Choice::False };

/// Whether the largest elements are taken, not the smallest.
pub(super) const LARGEST: ChoiceAttribute =
    ChoiceAttribute { name: "largest", among: &[Choice::False, Choice::True], default: Choice::True };

/// What lies between the two in the middle, for a median.
pub(super) const MIDDLE: ChoiceAttribute = ChoiceAttribute {
    name: "interpolation",
    among: &[Choice::Lower, Choice::Higher, Choice::Midpoint],
    default: Choice::Lower,
};

/// An op's requirements on its parameter: the last operand, a scalar in op math that takes no part in promotion.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// Whether it may be of a higher category than the operands; then it is converted to the operands' category.
    pub converts: bool,
    /// The lower bound.
    pub least: Option<f64>,
    /// Whether the bound itself is excluded.
    pub open: bool,
}

pub(crate) const BOOL: DTypeSet = DTypeSet::category(Category::Bool);
/// The integers.
pub(super) const INTS: DTypeSet = DTypeSet::category(Category::Int);
/// bool and integers.
pub(super) const BITS: DTypeSet = BOOL.union(INTS);
/// f16 and bf16.
pub(super) const HALVES: DTypeSet = DTypeSet::of(&[F16, BF16]);
/// f32.
pub(super) const SINGLE: DTypeSet = DTypeSet::of(&[F32]);
/// f32 and f64.
pub(super) const SINGLE_DOUBLE: DTypeSet = DTypeSet::of(&[F32, F64]);
/// The floats.
pub(super) const FLOATS: DTypeSet = DTypeSet::category(Category::Float);
/// The complex dtypes.
pub(super) const COMPLEX: DTypeSet = DTypeSet::category(Category::Complex);
/// Floats, and the complex dtypes except `c32`.
pub(super) const FLOATS_C: DTypeSet = FLOATS.union(COMPLEX).without(DTypeSet::of(&[C32]));
/// Integers and floats.
pub(super) const NUMBERS: DTypeSet = INTS.union(FLOATS);
/// Every dtype except the complex ones.
pub(super) const REALS: DTypeSet = BOOL.union(NUMBERS);
/// bool, the integers and the floats of more than 8 bits.
pub(super) const REALS_NO_F8: DTypeSet = REALS.without(DTypeSet::BYTE_FLOATS);
/// Every dtype.
pub(super) const ANY: DTypeSet = DTypeSet::ALL;
/// Every dtype except `c32`, for which PyTorch has almost no kernels.
pub(super) const NO_C32: DTypeSet = ANY.without(DTypeSet::of(&[C32]));
/// Every dtype except bool.
pub(super) const NO_BOOL: DTypeSet = ANY.without(BOOL);
/// Every dtype except bool and `c32`.
pub(super) const POW: DTypeSet = NO_C32.without(BOOL);

/// A parameter of at most the operands' category: PyTorch's rule for `alpha`.
pub(super) const PARAMETER: Parameter = Parameter { converts: false, least: None, open: false };

impl Parameter {
    /// Allows any category; the parameter is converted to the operands' category.
    pub(super) const fn converted(self) -> Parameter {
        Parameter { converts: true, ..self }
    }

    /// Requires a parameter greater than `least`.
    pub(super) const fn above(self, least: f64) -> Parameter {
        Parameter { least: Some(least), open: true, ..self }
    }

    /// Requires a parameter of at least `least`.
    pub(super) const fn at_least(self, least: f64) -> Parameter {
        Parameter { least: Some(least), open: false, ..self }
    }
}
