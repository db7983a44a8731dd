//! Paddle's column of the op table.
//!
//! Guarantees: a row that names none of it has `PADDLE`. Does not: decide anything; `promotion/paddle.rs` reads it.

use super::{Choice, Promotion};
use crate::base::dtype::DTypeSet;

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

/// Paddle's column without overrides: scalars are allowed, and 0-d tensors promote like scalars.
pub(in crate::ops) const PADDLE: PaddleColumns = PaddleColumns {
    promotion: None,
    accepts: None,
    mixes: true,
    scalars: true,
    zero_dim_is_scalar: true,
    choice: None,
};

impl PaddleColumns {
    /// A 0-d tensor promotes like any tensor.
    pub(in crate::ops) const fn zero_dim_tensor(self) -> PaddleColumns {
        PaddleColumns { zero_dim_is_scalar: false, ..self }
    }

    /// Both operands must be tensors.
    pub(in crate::ops) const fn no_scalar(self) -> PaddleColumns {
        PaddleColumns { scalars: false, zero_dim_is_scalar: false, ..self }
    }

    /// Both operands must be tensors; a 0-d tensor promotes like a scalar.
    pub(in crate::ops) const fn no_scalar_like_zero_dim(self) -> PaddleColumns {
        PaddleColumns { scalars: false, ..self }
    }

    /// Tensors must have equal dtypes.
    pub(in crate::ops) const fn same(self) -> PaddleColumns {
        PaddleColumns { mixes: false, ..self }
    }
}

overrides! {
    PaddleColumns:
    /// Overrides how operands promote.
    promotes(promotion: Promotion);
    /// Overrides the accepted dtypes.
    accepts(accepts: DTypeSet);
    /// Overrides the default of the choice among the attributes.
    choice(choice: Choice);
}
