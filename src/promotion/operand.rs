//! The input of promotion, [`OperandType`], and its result, [`Signature`].
//!
//! Does not: decide dtypes.

use crate::base::dtype::{Category, DType};
use crate::base::scalar::Scalar;
use crate::ops::{MAX_OPERANDS, Op};
use std::fmt;

/// The properties of an operand that promotion depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum OperandType {
    /// A tensor.
    #[non_exhaustive]
    Tensor {
        /// The dtype of the tensor.
        dtype: DType,
        /// Whether the tensor has no dims.
        zero_dim: bool,
        /// Whether the tensor is the result of scalars and promotes as a scalar does. Only some rule sets have weak
        /// tensors.
        weak: bool,
    },
    /// A scalar that the user wrote.
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

    /// A weak tensor with dims: see [`Program::weak_data`](crate::Program::weak_data).
    pub const fn weak(dtype: DType) -> OperandType {
        OperandType::Tensor { dtype, zero_dim: false, weak: true }
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

/// The dtypes of one application of an op, and the op that computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The op whose arithmetic this is: the one that is applied, or the row of the table that has the framework's
    /// values where they differ, such as [`Op::FloorDivideOrZero`]. It has the same operands.
    pub op: Op,
    /// The dtype that each operand is cast to. The entries after those of the op's operands have no meaning.
    pub(super) operands: [DType; MAX_OPERANDS],
    /// The dtype that the op computes in. f16, bf16 and c32 compute in their op math dtype and round once.
    pub compute: DType,
    /// The dtype of the result.
    pub result: DType,
    /// Whether the result is weak: it promotes as a scalar does.
    pub weak: bool,
}

impl Signature {
    /// The dtype that operand `i` is cast to.
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

/// The operands as they appear in error messages: `i64 and f32`.
pub(crate) fn named(operands: &[OperandType]) -> String {
    operands.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}
