//! PyTorch's promotion lattice: the common dtype of two dtypes. Other rule sets and the help texts of errors use it
//! too.
//!
//! Guarantees: the table is symmetric and has every pair of dtypes. Does not: know operands, tiers or ops; `torch`
//! does.

use crate::base::dtype::DType::{self, *};

/// The promotion table. Its rows and columns are in the order of [`DType::ALL`].
///
/// Source: `promoteTypes` in PyTorch's `c10/core/ScalarType.cpp`.
#[rustfmt::skip]
const TABLE: [[DType; 13]; 13] = [
    /*           bool  u8    i8    i16   i32   i64   f16   bf16  f32  f64   c32   c64   c128 */
    /* bool */ [Bool, U8,   I8,   I16,  I32,  I64,  F16,  BF16, F32, F64,  C32,  C64,  C128],
    /* u8   */ [U8,   U8,   I16,  I16,  I32,  I64,  F16,  BF16, F32, F64,  C32,  C64,  C128],
    /* i8   */ [I8,   I16,  I8,   I16,  I32,  I64,  F16,  BF16, F32, F64,  C32,  C64,  C128],
    /* i16  */ [I16,  I16,  I16,  I16,  I32,  I64,  F16,  BF16, F32, F64,  C32,  C64,  C128],
    /* i32  */ [I32,  I32,  I32,  I32,  I32,  I64,  F16,  BF16, F32, F64,  C32,  C64,  C128],
    /* i64  */ [I64,  I64,  I64,  I64,  I64,  I64,  F16,  BF16, F32, F64,  C32,  C64,  C128],
    /* f16  */ [F16,  F16,  F16,  F16,  F16,  F16,  F16,  F32,  F32, F64,  C32,  C64,  C128],
    /* bf16 */ [BF16, BF16, BF16, BF16, BF16, BF16, F32,  BF16, F32, F64,  C64,  C64,  C128],
    /* f32  */ [F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32, F64,  C64,  C64,  C128],
    /* f64  */ [F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64, F64,  C128, C128, C128],
    /* c32  */ [C32,  C32,  C32,  C32,  C32,  C32,  C32,  C64,  C64, C128, C32,  C64,  C128],
    /* c64  */ [C64,  C64,  C64,  C64,  C64,  C64,  C64,  C64,  C64, C128, C64,  C64,  C128],
    /* c128 */ [C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128],
];

/// The dtype that PyTorch promotes two dtypes of the same tier to (`torch.promote_types`).
///
/// ```
/// use castwise::{DType, promote_types};
/// assert_eq!(promote_types(DType::F16, DType::BF16), DType::F32);
/// assert_eq!(promote_types(DType::U8, DType::I8), DType::I16);
/// ```
pub fn promote_types(a: DType, b: DType) -> DType {
    TABLE[a as usize][b as usize]
}
