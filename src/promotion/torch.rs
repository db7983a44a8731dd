//! PyTorch's promotion: the 13×13 table and the three tiers.

use std::cmp::Ordering;

use super::OperandType;
use crate::dtype::DType::{self, *};
use crate::error::{Diagnostic, Fault};
use crate::ops::{Op, ScalarRange};
use crate::scalar::Scalar;

/// Row and column order of [`TABLE`]: that of [`DType::ALL`].
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

/// The smallest dtype that PyTorch lets two dtypes of equal standing promote to (`torch.promote_types`).
///
/// ```
/// use castwise::{DType, promote_types};
/// assert_eq!(promote_types(DType::F16, DType::BF16), DType::F32);
/// assert_eq!(promote_types(DType::U8, DType::I8), DType::I16);
/// ```
pub fn promote_types(a: DType, b: DType) -> DType {
    TABLE[a as usize][b as usize]
}

/// The common dtype of operands: each tier is folded with the table, then the tiers are combined.
pub(super) fn common_dtype(operands: &[OperandType], default: DType) -> DType {
    let (mut dim, mut zero, mut wrapped) = (None, None, None);
    for o in operands {
        let tier = match o {
            OperandType::Tensor { zero_dim: false, .. } => &mut dim,
            OperandType::Tensor { zero_dim: true, .. } => &mut zero,
            OperandType::Scalar(_) => &mut wrapped,
        };
        let dtype = dtype_of(o, default);
        *tier = Some(tier.map_or(dtype, |t| promote_types(t, dtype)));
    }
    // An application has at least one operand, so one tier is there.
    combine(dim, combine(zero, wrapped)).unwrap_or(default)
}

/// What an operand counts as on its own.
pub(super) fn dtype_of(o: &OperandType, default: DType) -> DType {
    match *o {
        OperandType::Tensor { dtype, .. } => dtype,
        OperandType::Scalar(s) => scalar_dtype(s, default),
    }
}

/// What a scalar counts as: a float is the default dtype, a complex number its complex.
fn scalar_dtype(s: Scalar, default: DType) -> DType {
    match s {
        Scalar::Bool(_) => Bool,
        Scalar::Int(_) => I64,
        Scalar::Float(_) => default,
        Scalar::Complex(_) => default.to_complex(),
    }
}

/// `combine_categories` of PyTorch's `TypeProperties.cpp`: the lower tier matters only by a higher category.
fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let (Some(h), Some(l)) = (higher, lower) else { return higher.or(lower) };
    Some(if h.is_complex() {
        h
    } else if l.is_complex() {
        // A float keeps its width. bf16 has no complex of its own: c64.
        if h.is_float() { h.to_complex() } else { l }
    } else if h.is_float() {
        h
    } else if h == Bool || l.is_float() {
        promote_types(h, l)
    } else {
        h
    })
}

/// On which side of all numbers of a dtype a scalar lies, if it does. Infinities are numbers of the float dtypes.
fn beyond(s: Scalar, d: DType) -> Option<Ordering> {
    let side = |below: bool, above: bool| match (below, above) {
        (true, _) => Some(Ordering::Less),
        (_, true) => Some(Ordering::Greater),
        _ => None,
    };
    let (least, most) = match (s, d.int_range()) {
        (Scalar::Int(v), Some((least, most))) => return side(i128::from(v) < least, i128::from(v) > most),
        (_, Some((least, most))) => (least as f64, most as f64),
        _ if d.is_float() => (-d.largest(), d.largest()),
        _ => return None,
    };
    match s {
        Scalar::Int(v) => side((v as f64) < least, v as f64 > most),
        Scalar::Float(v) if v.is_finite() || d.is_integral() => side(v < least, v > most),
        _ => None,
    }
}

/// Whether the `i`-th operand of a clamp is a lower bound.
fn is_lower(op: Op, i: usize) -> bool {
    i == 1 && op != Op::ClampMax
}

/// Refuses scalars that a dtype can't hold where PyTorch neither wraps them nor goes to infinity. A negative number goes to an
/// unsigned dtype if its absolute value fits: `alpha=-1`. `to` says to which dtype an operand goes. Sources: `c10::checked_convert`, and the
/// error messages of `clamp`.
pub(super) fn check_scalars(op: Op, operands: &[OperandType], to: impl Fn(usize) -> DType) -> Result<(), Diagnostic> {
    let def = op.def().torch;
    let first = if def.parameters > 0 { operands.len() - def.parameters } else { 1 };
    for (i, o) in operands.iter().enumerate().skip(first) {
        let OperandType::Scalar(s) = *o else { continue };
        let (d, wraps) = (
            to(i),
            |s, d: DType| matches!(s, Scalar::Int(v) if v <= 0 && d.int_range().is_some_and(|(_, most)| -i128::from(v) <= most)),
        );
        let faulty = match (def.scalars, beyond(s, d)) {
            (ScalarRange::Wraps, _) | (_, None) => false,
            (ScalarRange::Fits(but), Some(_)) => !but.has(d) && !(d.is_unsigned() && wraps(s, d)),
            (ScalarRange::Bounds, Some(side)) => is_lower(op, i) == (side == Ordering::Greater),
        };
        if faulty {
            let what = op.def().operands.get(i).copied().unwrap_or("scalar");
            let message = format!("`{op}` with `{what}` = {s}, which {d} can't hold");
            let help = "cast the tensor to a wider dtype first, e.g. `cast(x, f64)`";
            return Err(Diagnostic::new(Fault::BadParameter, message).help(help));
        }
    }
    Ok(())
}

/// What a scalar operand stands for: a bound beyond an integer dtype bounds nothing, as the dtype's own end does.
pub(super) fn scalar(op: Op, i: usize, s: Scalar, to: DType) -> Scalar {
    let bounds = op.def().torch.scalars == ScalarRange::Bounds && i > 0;
    let end = match (to.int_range(), beyond(s, to)) {
        (Some((_, most)), Some(Ordering::Greater)) if bounds => Some(most),
        (Some((least, _)), Some(Ordering::Less)) if bounds => Some(least),
        _ => None,
    };
    end.and_then(|end| i64::try_from(end).ok()).map_or(s, Scalar::Int)
}
