//! PyTorch's promotion lattice: the common dtype of two dtypes. Other rule sets and the help texts of errors use it
//! too.
//!
//! Guarantees: symmetric, with an answer for every pair of dtypes. Does not: know operands, tiers or ops; `torch`
//! does.

use crate::base::dtype::Category;
use crate::base::dtype::DType::{self, *};

/// Row and column order of [`TABLE`]: the dtypes that PyTorch promotes with each other.
const ORDER: [DType; 13] = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C32, C64, C128];

/// The promotion table.
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

/// The dtype that PyTorch promotes two dtypes of the same tier to (`torch.promote_types`); `None` if it refuses to.
///
/// Any dtype promotes with itself; u16, u32 and u64 else with floats alone.
///
/// ```
/// use castwise::{DType, promote_types};
/// assert_eq!(promote_types(DType::F16, DType::BF16), Some(DType::F32));
/// assert_eq!(promote_types(DType::U8, DType::I8), Some(DType::I16));
/// assert_eq!(promote_types(DType::U64, DType::F16), Some(DType::F16));
/// assert_eq!(promote_types(DType::U16, DType::I64), None);
/// ```
pub fn promote_types(a: DType, b: DType) -> Option<DType> {
    let at = |d: DType| ORDER.iter().position(|o| *o == d);
    match (at(a), at(b)) {
        _ if a == b => Some(a),
        (Some(i), Some(j)) => Some(TABLE[i][j]),
        (Some(_), None) if a.is_float() && b.is_integral() => Some(a),
        (None, Some(_)) if b.is_float() && a.is_integral() => Some(b),
        _ => None,
    }
}

/// A dtype to cast operands to that do not promote: one that holds all of their values, of the operands' own dtypes
/// first, then of the signed integers; without such a one, i64 for integers, else the operands' highest category.
pub(super) fn common_for_help(dtypes: &[DType]) -> DType {
    if let Some(common) = dtypes.iter().copied().map(Some).reduce(|a, b| promote_types(a?, b?)).flatten() {
        return common;
    }
    let holds = |to: &DType| dtypes.iter().all(|d| to.holds(*d));
    let highest = dtypes.iter().copied().max_by_key(|d| (d.category(), d.range_bits()));
    let signed = DType::ALL.into_iter().filter(|d| d.category() == Category::Int && !d.is_unsigned());
    match dtypes.iter().copied().chain(signed).find(holds) {
        Some(d) => d,
        None => highest.filter(|d| !d.is_integral()).unwrap_or(I64),
    }
}
