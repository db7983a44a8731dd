//! PyTorch's column of the op table.
//!
//! Guarantees: a row that names none of it has `TORCH`. Does not: decide anything; `promotion/torch.rs` reads it.

use super::Promotion;
use crate::base::dtype::DTypeSet;

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

/// PyTorch's column without overrides.
pub(in crate::ops) const TORCH: TorchColumns = TorchColumns {
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
    pub(in crate::ops) const fn wide(self) -> TorchColumns {
        TorchColumns { wide_scalar: WideScalar::Right, ..self }
    }

    /// A scalar on either side stays in op math.
    pub(in crate::ops) const fn wide_both(self) -> TorchColumns {
        TorchColumns { wide_scalar: WideScalar::Either, ..self }
    }

    /// Scalars must be in range.
    pub(in crate::ops) const fn fits(self) -> TorchColumns {
        self.fits_but(DTypeSet::EMPTY)
    }

    /// Scalars must be in range, except in the given dtypes, where they may become infinite.
    pub(in crate::ops) const fn fits_but(self, unchecked: DTypeSet) -> TorchColumns {
        TorchColumns { scalars: ScalarRange::Fits(unchecked), ..self }
    }

    /// Scalars after the first operand are bounds.
    pub(in crate::ops) const fn bounds(self) -> TorchColumns {
        TorchColumns { scalars: ScalarRange::Bounds, ..self }
    }

    /// A bool operand is refused, whatever the other one is.
    pub(in crate::ops) const fn no_bool(self) -> TorchColumns {
        TorchColumns { bools: false, ..self }
    }

    /// The result is cast to the first operand's dtype.
    pub(in crate::ops) const fn to_first(self) -> TorchColumns {
        TorchColumns { to_first: true, ..self }
    }

    /// The parameter is rounded to the compute dtype.
    pub(in crate::ops) const fn rounds_parameter(self) -> TorchColumns {
        TorchColumns { rounds_parameter: true, ..self }
    }

    /// The second operand and the third, its divisor, must not both be integral.
    pub(in crate::ops) const fn no_integer_quotient(self) -> TorchColumns {
        TorchColumns { integer_quotients: false, ..self }
    }

    /// Operands must have equal dtypes.
    pub(in crate::ops) const fn same(self) -> TorchColumns {
        TorchColumns { mixes: false, ..self }
    }
}
