//! The columns of the op table that a rule set has to itself: where it departs from what a row says for all of them.
//!
//! Guarantees: a rule set's column has a value for every row, so that a row names the columns that it needs and no other.
//! Does not: decide anything; `promotion` reads these.

use crate::base::dtype::DType::*;
use crate::base::dtype::{Category, DTypeSet};

/// How operands become the dtype an op computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// All operands go to their common dtype.
    Common,
    /// As [`Common`](Promotion::Common), and bool and integers go on to the default float dtype: `div`, `exp`, ….
    IntToFloat,
    /// As [`Common`](Promotion::Common), and bool goes on to `i64`: `square`.
    BoolToInt,
    /// As [`Common`](Promotion::Common), and bool and integers go on to `f64`: Paddle's `atan2`.
    IntToDouble,
    /// `f64`, or `c128` with a complex operand: `float_power`.
    ToDouble,
    /// Bool and integers go to `i64`, in which they are summed up.
    ToLong,
    /// Bool and i32 go to `i64`, other integers stay: Paddle's `sum`.
    SomeToLong,
    /// The truth of the operand: `any`, `all`. Under PyTorch's rules u8 stays u8.
    Truth,
    /// The first operand's dtype, to which the others must be castable; its shape too: `assign`.
    First,
    /// `f64` if an operand has it, else `f32`; complex operands promote as ever: Paddle's `ldexp`.
    SingleOrDouble,
    /// The dtype is given by the `dtype` attribute: `cast`.
    Given,
}

/// The operands that PyTorch keeps in op math where it computes in f16 or bf16: scalars, and on the right 0-d tensors of another
/// dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideScalar {
    /// None.
    No,
    /// The one on the right: `div`, `floor_divide`. Of three operands the last: the weight of `lerp`.
    Right,
    /// Either one: `mul`, where a scalar on the left is the same call.
    Either,
}

/// What becomes of integer scalars that the integer dtype they go to can't hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarRange {
    /// They wrap: `u8 tensor + 300` adds 44.
    Wraps,
    /// Those behind the first operand, or the parameter if there is one, are refused: `pow`, `where`, the `alpha` of
    /// `add_scaled`. These dtypes are left out.
    Fits(DTypeSet),
    /// They are bounds: the op is refused where nothing can lie within them, else they bound nothing.
    Bounds,
}

/// The column of PyTorch's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TorchColumns {
    /// How operands promote, if not as the row says.
    pub promotion: Option<Promotion>,
    /// The common dtypes that the op takes, if not those of the row.
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
    /// Whether the parameter is rounded to the half types that the op computes in.
    pub rounds_parameter: bool,
    /// Whether the third operand may divide the second where both are integral.
    pub integer_quotients: bool,
    /// Which integers scalars may be.
    pub scalars: ScalarRange,
}

/// The column of Paddle's rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PaddleColumns {
    /// How operands promote, if not as the row says.
    pub promotion: Option<Promotion>,
    /// The common dtypes that the op takes, if not those of the row.
    pub accepts: Option<DTypeSet>,
    /// Whether tensors of different dtypes may promote; the bitwise ops want equal dtypes.
    pub mixes: bool,
    /// Whether a scalar may stand for an operand.
    pub scalars: bool,
    /// Whether a 0-d tensor counts like a scalar (arithmetic and comparisons) or like any tensor.
    pub zero_dim_is_scalar: bool,
}

/// The column of the tests' own rule set.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToyColumns {
    /// Whether integer scalars must fit the dtype that they go to.
    pub(crate) fits: bool,
}

/// What an op wants of its parameter: the last operand, a scalar in op math that takes no part in promotion.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// Whether it may be of a higher category than the operands, and is then converted to theirs.
    pub converts: bool,
    /// The number that it must not be less than.
    pub least: Option<f64>,
    /// Whether it must be greater than that.
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
/// The floats.
pub(super) const FLOATS: DTypeSet = DTypeSet::category(Category::Float);
/// The complex dtypes.
pub(super) const COMPLEX: DTypeSet = DTypeSet::category(Category::Complex);
/// Floats and the complex dtypes but `c32`.
pub(super) const FLOATS_C: DTypeSet = FLOATS.union(COMPLEX).without(DTypeSet::of(&[C32]));
/// Integers and floats.
pub(super) const NUMBERS: DTypeSet = INTS.union(FLOATS);
/// Everything but complex.
pub(super) const REALS: DTypeSet = BOOL.union(NUMBERS);
/// Every dtype.
pub(super) const ANY: DTypeSet = DTypeSet::ALL;
/// Every dtype but `c32`, for which PyTorch has almost no kernels.
pub(super) const NO_C32: DTypeSet = ANY.without(DTypeSet::of(&[C32]));
/// Everything but bool.
pub(super) const NO_BOOL: DTypeSet = ANY.without(BOOL);
/// Everything but bool and `c32`.
pub(super) const POW: DTypeSet = NO_C32.without(BOOL);

/// A parameter of no higher category than the operands: PyTorch's rule for `alpha`.
pub(super) const PARAMETER: Parameter = Parameter { converts: false, least: None, open: false };

impl Parameter {
    /// Of any category, and converted to the operands'.
    pub(super) const fn converted(self) -> Parameter {
        Parameter { converts: true, ..self }
    }

    /// Greater than a number.
    pub(super) const fn above(self, least: f64) -> Parameter {
        Parameter { least: Some(least), open: true, ..self }
    }

    /// Not less than a number.
    pub(super) const fn at_least(self, least: f64) -> Parameter {
        Parameter { least: Some(least), open: false, ..self }
    }
}

/// PyTorch's column of a row that says all that there is to say.
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

    /// Scalars must fit.
    pub(super) const fn fits(self) -> TorchColumns {
        self.fits_but(DTypeSet::EMPTY)
    }

    /// Scalars must fit, but may become infinite in these dtypes.
    pub(super) const fn fits_but(self, unchecked: DTypeSet) -> TorchColumns {
        TorchColumns { scalars: ScalarRange::Fits(unchecked), ..self }
    }

    /// Scalars behind the first operand are bounds.
    pub(super) const fn bounds(self) -> TorchColumns {
        TorchColumns { scalars: ScalarRange::Bounds, ..self }
    }

    /// A bool operand is refused, whatever the other one is.
    pub(super) const fn no_bool(self) -> TorchColumns {
        TorchColumns { bools: false, ..self }
    }

    /// The result has the first operand's dtype.
    pub(super) const fn to_first(self) -> TorchColumns {
        TorchColumns { to_first: true, ..self }
    }

    /// The parameter goes to the compute dtype.
    pub(super) const fn rounds_parameter(self) -> TorchColumns {
        TorchColumns { rounds_parameter: true, ..self }
    }

    /// The second operand and the third, which divides it, must not both be integral.
    pub(super) const fn no_integer_quotient(self) -> TorchColumns {
        TorchColumns { integer_quotients: false, ..self }
    }

    /// Operands must have one dtype.
    pub(super) const fn same(self) -> TorchColumns {
        TorchColumns { mixes: false, ..self }
    }
}

/// Paddle's column of a row that says all that there is to say: scalars allowed, 0-d tensors like scalars.
pub(super) const PADDLE: PaddleColumns =
    PaddleColumns { promotion: None, accepts: None, mixes: true, scalars: true, zero_dim_is_scalar: true };

impl PaddleColumns {
    /// Operands promote in another way.
    pub(super) const fn promotes(self, promotion: Promotion) -> PaddleColumns {
        PaddleColumns { promotion: Some(promotion), ..self }
    }

    /// Other dtypes.
    pub(super) const fn accepts(self, accepts: DTypeSet) -> PaddleColumns {
        PaddleColumns { accepts: Some(accepts), ..self }
    }

    /// A 0-d tensor is a tensor like any other.
    pub(super) const fn zero_dim_tensor(self) -> PaddleColumns {
        PaddleColumns { zero_dim_is_scalar: false, ..self }
    }

    /// Both operands must be tensors.
    pub(super) const fn no_scalar(self) -> PaddleColumns {
        PaddleColumns { scalars: false, zero_dim_is_scalar: false, ..self }
    }

    /// Both operands must be tensors, but a 0-d one counts like a scalar.
    pub(super) const fn no_scalar_like_zero_dim(self) -> PaddleColumns {
        PaddleColumns { scalars: false, ..self }
    }

    /// Tensors must have one dtype.
    pub(super) const fn same(self) -> PaddleColumns {
        PaddleColumns { mixes: false, ..self }
    }
}
