//! The columns of the op table that belong to one rule set: its overrides of what a row says for all rule sets.
//!
//! Guarantees: every column has a default, so that a row names only the columns that it overrides. Does not: decide
//! anything; `promotion` reads these columns.

use crate::base::dtype::DType::*;
use crate::base::dtype::{Category, DType, DTypeSet};

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

/// The operands that PyTorch keeps in op math where the op computes in f16 or bf16: scalars, and 0-d tensors of another
/// dtype on the right-hand side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideScalar {
    /// None.
    No,
    /// The right-hand one: `div`, `floor_divide`. Of three operands the last: the weight of `lerp`.
    Right,
    /// Either one: `mul`, where a scalar on the left results in the same call.
    Either,
}

/// The treatment of scalars that are out of the range of the dtype they are converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarRange {
    /// Integers wrap: `u8 tensor + 300` adds 44.
    Wraps,
    /// Scalars after the first operand, or the parameter if there is one, are refused: `pow`, `where`, the `alpha` of
    /// `add_scaled`. The given dtypes are exempt.
    Fits(DTypeSet),
    /// Scalars are bounds: the op is refused if no value of the dtype lies within them; otherwise such a bound has no
    /// effect.
    Bounds,
}

/// The column of PyTorch's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TorchColumns {
    /// How operands promote, if it differs from the row.
    pub promotion: Option<Promotion>,
    /// The common dtypes that the op accepts, if they differ from the row.
    pub accepts: Option<DTypeSet>,
    /// Which scalars stay in the op-math dtype (`f32` for `f16` and `bf16`) instead of being rounded to the operands'
    /// common dtype first.
    pub wide_scalar: WideScalar,
    /// Whether operands of different dtypes may promote.
    pub mixes: bool,
    /// Whether a bool operand may promote to another dtype.
    pub bools: bool,
    /// Whether the result is cast to the first operand's dtype, which must allow it.
    pub to_first: bool,
    /// Whether the parameter is rounded to the half dtype that the op computes in, or the number among the attributes to the dtype
    /// of the elements.
    pub rounds_parameter: bool,
    /// Whether the second and third operand may both be integral where the third divides the second.
    pub integer_quotients: bool,
    /// The treatment of scalars out of range.
    pub scalars: ScalarRange,
}

/// The column of Paddle's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PaddleColumns {
    /// How operands promote, if it differs from the row.
    pub promotion: Option<Promotion>,
    /// The common dtypes that the op accepts, if they differ from the row.
    pub accepts: Option<DTypeSet>,
    /// Whether tensors of different dtypes may promote; the bitwise ops require equal dtypes.
    pub mixes: bool,
    /// Whether an operand may be a scalar.
    pub scalars: bool,
    /// Whether a 0-d tensor promotes like a scalar (arithmetic and comparisons) or like any tensor.
    pub zero_dim_is_scalar: bool,
    /// The default of the choice among the attributes, if it differs from the row.
    pub choice: Option<Choice>,
}

/// Whether a result is weak if its operands' bound in JAX's lattice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// Yes.
    Kept,
    /// No: reductions, `hypot`, `log2`, ….
    Dropped,
    /// Unless it is complex: `logaddexp`.
    Real,
    /// Unless it is computed from integers: `angle`.
    Float,
    /// If the first operand is a scalar: `heaviside`.
    FirstScalar,
    /// `pow`: yes with a scalar exponent. A power of integers is strong, and so is that of a float by an integer tensor.
    Power,
}

/// The column of JAX's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct JaxColumns {
    /// How operands promote, if it differs from the row.
    pub promotion: Option<Promotion>,
    /// The common dtypes that the op accepts, if they differ from the row.
    pub accepts: Option<DTypeSet>,
    /// Whether the op keeps that its operands are weak.
    pub weak: Weakness,
    /// Whether the operand promotes with the scalar 0, because the function is defined so: `relu` is a maximum with it.
    pub beside_zero: bool,
    /// Whether all integers become the default float dtype, whatever their width.
    pub default_float: bool,
    /// Whether the second operand takes no part in promotion: the exponent of `ldexp`.
    pub count_apart: bool,
    /// Whether integers become floats also where the choice says that the result is one of the elements.
    pub floats_elements: bool,
    /// Whether positions are i32 also where the default integer is i64.
    pub short_positions: bool,
    /// The default of the number among the attributes, if it differs from the row.
    pub number: Option<f64>,
    /// The default of the choice among the attributes, if it differs from the row.
    pub choice: Option<Choice>,
}

/// The column of NumPy's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NumpyColumns {
    /// How operands promote, if it differs from the row.
    pub promotion: Option<Promotion>,
    /// The common dtypes that the op accepts, if they differ from the row.
    pub accepts: Option<DTypeSet>,
    /// The dtype that bools are cast to if all operands are bool, for ops that NumPy has no bool arithmetic of.
    pub bools: Option<DType>,
    /// The default of the number among the attributes, if it differs from the row.
    pub number: Option<f64>,
    /// The default of the choice among the attributes, if it differs from the row.
    pub choice: Option<Choice>,
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

/// PyTorch's column without overrides.
pub(super) const TORCH: TorchColumns = TorchColumns {
    promotion: None,
    accepts: None,
    wide_scalar: WideScalar::No,
    mixes: true,
    bools: true,
    to_first: false,
    rounds_parameter: false,
    integer_quotients: true,
    scalars: ScalarRange::Wraps,
};

impl TorchColumns {
    /// A right-hand scalar stays in op math.
    pub(super) const fn wide(self) -> TorchColumns {
        TorchColumns { wide_scalar: WideScalar::Right, ..self }
    }

    /// A scalar on either side stays in op math.
    pub(super) const fn wide_both(self) -> TorchColumns {
        TorchColumns { wide_scalar: WideScalar::Either, ..self }
    }

    /// Scalars must be in range.
    pub(super) const fn fits(self) -> TorchColumns {
        self.fits_but(DTypeSet::EMPTY)
    }

    /// Scalars must be in range, except in the given dtypes, where they may become infinite.
    pub(super) const fn fits_but(self, unchecked: DTypeSet) -> TorchColumns {
        TorchColumns { scalars: ScalarRange::Fits(unchecked), ..self }
    }

    /// Scalars after the first operand are bounds.
    pub(super) const fn bounds(self) -> TorchColumns {
        TorchColumns { scalars: ScalarRange::Bounds, ..self }
    }

    /// A bool operand is refused, whatever the other one is.
    pub(super) const fn no_bool(self) -> TorchColumns {
        TorchColumns { bools: false, ..self }
    }

    /// The result is cast to the first operand's dtype.
    pub(super) const fn to_first(self) -> TorchColumns {
        TorchColumns { to_first: true, ..self }
    }

    /// The parameter is rounded to the compute dtype.
    pub(super) const fn rounds_parameter(self) -> TorchColumns {
        TorchColumns { rounds_parameter: true, ..self }
    }

    /// The second operand and the third, its divisor, must not both be integral.
    pub(super) const fn no_integer_quotient(self) -> TorchColumns {
        TorchColumns { integer_quotients: false, ..self }
    }

    /// Operands must have equal dtypes.
    pub(super) const fn same(self) -> TorchColumns {
        TorchColumns { mixes: false, ..self }
    }
}

/// Paddle's column without overrides: scalars are allowed, and 0-d tensors promote like scalars.
pub(super) const PADDLE: PaddleColumns = PaddleColumns {
    promotion: None,
    accepts: None,
    mixes: true,
    scalars: true,
    zero_dim_is_scalar: true,
    choice: None,
};

impl PaddleColumns {
    /// Overrides how operands promote.
    pub(super) const fn promotes(self, promotion: Promotion) -> PaddleColumns {
        PaddleColumns { promotion: Some(promotion), ..self }
    }

    /// Overrides the accepted dtypes.
    pub(super) const fn accepts(self, accepts: DTypeSet) -> PaddleColumns {
        PaddleColumns { accepts: Some(accepts), ..self }
    }

    /// A 0-d tensor promotes like any tensor.
    pub(super) const fn zero_dim_tensor(self) -> PaddleColumns {
        PaddleColumns { zero_dim_is_scalar: false, ..self }
    }

    /// Both operands must be tensors.
    pub(super) const fn no_scalar(self) -> PaddleColumns {
        PaddleColumns { scalars: false, zero_dim_is_scalar: false, ..self }
    }

    /// Both operands must be tensors; a 0-d tensor promotes like a scalar.
    pub(super) const fn no_scalar_like_zero_dim(self) -> PaddleColumns {
        PaddleColumns { scalars: false, ..self }
    }

    /// Overrides the default of the choice among the attributes.
    pub(super) const fn choice(self, default: Choice) -> PaddleColumns {
        PaddleColumns { choice: Some(default), ..self }
    }

    /// Tensors must have equal dtypes.
    pub(super) const fn same(self) -> PaddleColumns {
        PaddleColumns { mixes: false, ..self }
    }
}

/// JAX's column without overrides: a result of weak operands is weak.
pub(super) const JAX: JaxColumns = JaxColumns {
    promotion: None,
    accepts: None,
    weak: Weakness::Kept,
    beside_zero: false,
    floats_elements: false,
    short_positions: false,
    default_float: false,
    count_apart: false,
    number: None,
    choice: None,
};

impl JaxColumns {
    /// Overrides how operands promote.
    pub(super) const fn promotes(self, promotion: Promotion) -> JaxColumns {
        JaxColumns { promotion: Some(promotion), ..self }
    }

    /// Overrides the accepted dtypes.
    pub(super) const fn accepts(self, accepts: DTypeSet) -> JaxColumns {
        JaxColumns { accepts: Some(accepts), ..self }
    }

    /// Overrides when a result is weak.
    pub(super) const fn weak(self, weak: Weakness) -> JaxColumns {
        JaxColumns { weak, ..self }
    }

    /// No result is weak.
    pub(super) const fn strong(self) -> JaxColumns {
        self.weak(Weakness::Dropped)
    }

    /// Integers become floats also where the result is one of the elements.
    pub(super) const fn floats_elements(self) -> JaxColumns {
        JaxColumns { floats_elements: true, ..self }
    }

    /// The operand promotes with the scalar 0.
    pub(super) const fn beside_zero(self) -> JaxColumns {
        JaxColumns { beside_zero: true, ..self }
    }

    /// Positions are i32.
    pub(super) const fn short_positions(self) -> JaxColumns {
        JaxColumns { short_positions: true, ..self }
    }

    /// Integers become the default float dtype.
    pub(super) const fn default_float(self) -> JaxColumns {
        JaxColumns { default_float: true, ..self }
    }

    /// Overrides the default of the number among the attributes.
    pub(super) const fn number(self, default: f64) -> JaxColumns {
        JaxColumns { number: Some(default), ..self }
    }

    /// Overrides the default of the choice among the attributes.
    pub(super) const fn choice(self, default: Choice) -> JaxColumns {
        JaxColumns { choice: Some(default), ..self }
    }

    /// The second operand takes no part in promotion.
    pub(super) const fn count_apart(self) -> JaxColumns {
        JaxColumns { count_apart: true, ..self }
    }
}

/// NumPy's column without overrides.
pub(super) const NUMPY: NumpyColumns =
    NumpyColumns { promotion: None, accepts: None, bools: None, number: None, choice: None };

impl NumpyColumns {
    /// Overrides how operands promote.
    pub(super) const fn promotes(self, promotion: Promotion) -> NumpyColumns {
        NumpyColumns { promotion: Some(promotion), ..self }
    }

    /// Overrides the accepted dtypes.
    pub(super) const fn accepts(self, accepts: DTypeSet) -> NumpyColumns {
        NumpyColumns { accepts: Some(accepts), ..self }
    }

    /// Overrides the default of the number among the attributes.
    pub(super) const fn number(self, default: f64) -> NumpyColumns {
        NumpyColumns { number: Some(default), ..self }
    }

    /// Overrides the default of the choice among the attributes.
    pub(super) const fn choice(self, default: Choice) -> NumpyColumns {
        NumpyColumns { choice: Some(default), ..self }
    }

    /// Bools alone are cast to this dtype.
    pub(super) const fn bools(self, to: DType) -> NumpyColumns {
        NumpyColumns { bools: Some(to), ..self }
    }
}
