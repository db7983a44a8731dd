//! What promotion sees of operands, and what it says of an application.
//!
//! Does not: decide.

use crate::base::dtype::{Category, DType};
use crate::base::scalar::Scalar;
use crate::ops::MAX_OPERANDS;
use std::fmt;

/// What promotion sees of an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum OperandType {
    /// A tensor.
    #[non_exhaustive]
    Tensor {
        /// Its dtype.
        dtype: DType,
        /// Whether it has no dims.
        zero_dim: bool,
        /// Whether it was made of scalars, and promotes as one: under rule sets that have such values.
        weak: bool,
    },
    /// A scalar the user wrote.
    Scalar(Scalar),
}

impl OperandType {
    /// A tensor with dims.
    pub const fn dim(dtype: DType) -> OperandType {
        OperandType::Tensor { dtype, zero_dim: false, weak: false }
    }

    /// A 0-d tensor.
    pub const fn zero(dtype: DType) -> OperandType {
        OperandType::Tensor { dtype, zero_dim: true, weak: false }
    }
}

impl fmt::Display for OperandType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperandType::Tensor { dtype, zero_dim, weak } => {
                write!(f, "{dtype}{}{}", if *weak { "*" } else { "" }, if *zero_dim { "[]" } else { "" })
            }
            OperandType::Scalar(s) => write!(f, "scalar {s}"),
        }
    }
}

/// What one application of an op does with dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The dtype each operand is cast to; as many as the op has operands.
    pub(super) operands: [DType; MAX_OPERANDS],
    /// The dtype the op is applied in. (f16, bf16 and c32 compute in their op math and round once.)
    pub compute: DType,
    /// The dtype of the result.
    pub result: DType,
    /// Whether the result promotes as a scalar does.
    pub weak: bool,
}

impl Signature {
    /// The dtype operand `i` is cast to.
    pub fn operand(&self, i: usize) -> DType {
        self.operands[i.min(MAX_OPERANDS - 1)]
    }
}

pub(crate) fn category_of(o: &OperandType) -> Category {
    match o {
        OperandType::Tensor { dtype, .. } => dtype.category(),
        OperandType::Scalar(s) => s.category(),
    }
}

/// The operands as an error names them: `i64 and f32`.
pub(crate) fn named(operands: &[OperandType]) -> String {
    operands.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}
