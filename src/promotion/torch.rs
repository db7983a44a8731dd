//! PyTorch's rules: a table of two dtypes, and three tiers of operands.
//!
//! Sources: PyTorch's `TensorIterator` and `TypeProperties.cpp` as described in "Demystifying Dtype Promotion in PyTorch".

use std::cmp::Ordering;

use super::help::{self, unsupported};
use super::lattice::promote_types;
use super::operand::{OperandType, category_of, named};
use super::rule_set::{Call, RuleSet};
use crate::base::dtype::DType::{self, *};
use crate::base::dtype::{Category, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::scalar::Scalar;
use crate::ops::{Op, OpDef, Promotion, ScalarRange, WideScalar};

/// PyTorch's rules.
pub(super) struct Torch;

impl RuleSet for Torch {
    fn name(&self) -> &'static str {
        "torch"
    }

    fn framework(&self) -> &'static str {
        "PyTorch"
    }

    fn column(&self, def: &OpDef) -> (Promotion, DTypeSet) {
        (def.torch.promotion.unwrap_or(def.promotion), def.torch.accepts.unwrap_or(def.accepts))
    }

    fn notes(&self, def: &OpDef) -> Vec<&'static str> {
        let t = &def.torch;
        let notes = [
            (!t.mixes, "equal dtypes only"),
            (!t.bools, "no bool operand"),
            (t.wide_scalar == WideScalar::Right, "a scalar on the right stays in op math"),
            (matches!(t.scalars, ScalarRange::Fits(_)), "integers must fit"),
            (t.scalars == ScalarRange::Bounds, "bounds beyond the dtype bound nothing"),
            (t.wide_scalar == WideScalar::Either, "a scalar stays in op math"),
        ];
        notes.into_iter().filter_map(|(holds, note)| holds.then_some(note)).collect()
    }

    /// The operands of losses as they are after broadcasting: 0-d ones have dims if another one does.
    fn seen(&self, call: &Call<'_>) -> Option<Vec<OperandType>> {
        let has_dims = |o: &OperandType| matches!(o, OperandType::Tensor { zero_dim: false, .. });
        let with_dims = |o: &OperandType| match *o {
            OperandType::Tensor { dtype, .. } => OperandType::dim(dtype),
            scalar => scalar,
        };
        let broadcast = call.attrs.loss.is_some() && call.promoted.iter().any(has_dims);
        broadcast.then(|| call.promoted.iter().map(with_dims).collect())
    }

    fn common(&self, call: &Call<'_>) -> Result<DType, Diagnostic> {
        refuse_mix(call)?;
        // Where dtypes must be equal, the first operand has it; a weight behind follows.
        let deciding = if call.def.torch.mixes { call.promoted } else { &call.promoted[..call.promoted.len().min(2)] };
        Ok(common_dtype(deciding, call.settings.default_dtype))
    }

    fn operand(&self, call: &Call<'_>, i: usize, compute: DType) -> DType {
        let wide =
            if call.is_parameter(i) { !call.def.torch.rounds_parameter } else { wide_scalar(call, compute) == Some(i) };
        if wide { compute.op_math() } else { compute }
    }

    fn result(&self, call: &Call<'_>, common: DType) -> Result<Option<DType>, Diagnostic> {
        let op = call.op;
        match call.promoted.first() {
            // The truth of u8 is u8.
            _ if call.promotion == Promotion::Truth => Ok((common == U8).then_some(U8)),
            Some(OperandType::Tensor { dtype: to, .. }) if call.def.torch.to_first => {
                if self.can_write(&OperandType::dim(common), *to) {
                    return Ok(Some(*to));
                }
                let message = format!("`{op}`: result type {common} can't be cast to the desired output type {to}");
                let default = call.settings.default_dtype;
                let dtypes: Vec<DType> = call.promoted.iter().map(|o| dtype_of(o, default)).collect();
                let help = help::mix(op, call.accepts, call.promoted, &dtypes);
                Err(Diagnostic::new(DiagnosticKind::Cast, message).help(help))
            }
            _ => Ok(None),
        }
    }

    fn check(&self, call: &Call<'_>, to: &[DType]) -> Result<(), Diagnostic> {
        check_scalars(call, to)
    }

    /// A bound beyond an integer dtype bounds nothing, as the dtype's own end does.
    fn scalar(&self, op: Op, i: usize, s: Scalar, to: DType) -> Scalar {
        let bounds = op.def().torch.scalars == ScalarRange::Bounds && i > 0;
        let end = match (to.int_range(), beyond(s, to)) {
            (Some((_, most)), Some(Ordering::Greater)) if bounds => Some(most),
            (Some((least, _)), Some(Ordering::Less)) if bounds => Some(least),
            _ => None,
        };
        end.and_then(|end| i64::try_from(end).ok()).map_or(s, Scalar::Int)
    }

    fn casts_results(&self) -> bool {
        true
    }
}

/// The common dtype of operands: each tier is folded with the table, then the tiers are combined.
fn common_dtype(operands: &[OperandType], default: DType) -> DType {
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
fn dtype_of(o: &OperandType, default: DType) -> DType {
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

/// The operand that stays in op math, if there is one. PyTorch reads a second operand of one element before it is cast, so that
/// a 0-d tensor of another dtype counts as a scalar there; of c32 it casts both.
fn wide_scalar(call: &Call<'_>, compute: DType) -> Option<usize> {
    if !(compute.is_float() && compute.is_narrow()) {
        return None;
    }
    let one = |o: &OperandType| match o {
        OperandType::Scalar(_) => true,
        OperandType::Tensor { dtype, zero_dim, .. } => *zero_dim && *dtype != compute,
    };
    match (call.def.torch.wide_scalar, call.operands) {
        (WideScalar::Right | WideScalar::Either, [OperandType::Tensor { .. }, y]) if one(y) => Some(1),
        (WideScalar::Either, [OperandType::Scalar(_), OperandType::Tensor { .. }]) => Some(0),
        (WideScalar::Right, [_, _, OperandType::Scalar(_)]) => Some(2),
        _ => None,
    }
}

/// Ops that take equal dtypes only, or no bool among their operands, or no integers as quotient.
fn refuse_mix(call: &Call<'_>) -> Result<(), Diagnostic> {
    let (op, columns, operands, default) = (call.op, &call.def.torch, call.promoted, call.settings.default_dtype);
    // A third operand is a weight: as a scalar it may be of any dtype.
    let counts = |(i, o): &(usize, &OperandType)| *i < 2 || matches!(o, OperandType::Tensor { .. });
    let counted = operands.iter().enumerate().filter(counts);
    let dtypes: Vec<DType> = counted.map(|(_, o)| dtype_of(o, default)).collect();
    if !columns.bools && dtypes.contains(&Bool) {
        return Err(unsupported(call, operands, Bool));
    }
    let integral = |o: &OperandType| category_of(o) <= Category::Int;
    if !columns.integer_quotients && operands.len() > 2 && operands[1..].iter().all(integral) {
        let to = if call.accepts.has(dtypes[0]) { dtypes[0] } else { default };
        let message = format!("`{op}` does not divide integers: it is given {}", named(operands));
        let help = match operands[2] {
            OperandType::Tensor { .. } => {
                format!("cast the third operand, e.g. `cast({}, {to})`", call.def.operands[2])
            }
            OperandType::Scalar(_) => format!("pass the scalar as a 0-d {to} constant"),
        };
        return Err(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(help));
    }
    // It is converted to theirs, but no complex number is to a real one.
    let weight = operands.get(2).filter(|w| !columns.mixes && matches!(w, OperandType::Scalar(Scalar::Complex(_))));
    if let Some((w, a)) = weight.zip(dtypes.first()).filter(|(_, a)| !a.is_complex()) {
        let message = format!("`{op}` of {a} does not take the complex weight {w}");
        return Err(
            Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help("cast the operands, e.g. `cast(x, c64)`")
        );
    }
    // Equal dtypes would not help where the op takes none of what they promote to: then that is the mistake. PyTorch's
    // ops of three operands look at equality first.
    let hopeless = || operands.len() == 2 && !call.accepts.has(common_dtype(operands, default));
    match dtypes.as_slice() {
        [a, rest @ ..] if !columns.mixes && rest.iter().any(|b| b != a) && !hopeless() => {
            let message = format!("`{op}` wants equal dtypes, not {}", named(operands));
            let help = help::mix(op, call.accepts, operands, &dtypes);
            Err(Diagnostic::new(DiagnosticKind::DTypeMismatch, message).help(help))
        }
        _ => Ok(()),
    }
}

/// Refuses scalars that a dtype can't hold where PyTorch neither wraps them nor goes to infinity. A negative number goes to an
/// unsigned dtype if its absolute value fits: `alpha=-1`. `to` has the dtypes that the operands go to. Sources:
/// `c10::checked_convert`, and the error messages of `clamp`.
fn check_scalars(call: &Call<'_>, to: &[DType]) -> Result<(), Diagnostic> {
    let op = call.op;
    let first = if call.def.parameter.is_some() { call.operands.len() } else { 1 };
    for ((i, o), d) in call.all.iter().enumerate().zip(to).skip(first) {
        let OperandType::Scalar(s) = *o else { continue };
        let negates = |v: i64| d.int_range().is_some_and(|(_, most)| v <= 0 && -i128::from(v) <= most);
        let wraps = d.is_unsigned() && matches!(s, Scalar::Int(v) if negates(v));
        let faulty = match (call.def.torch.scalars, beyond(s, *d)) {
            (ScalarRange::Wraps, _) | (_, None) => false,
            (ScalarRange::Fits(but), Some(_)) => !but.has(*d) && !wraps,
            (ScalarRange::Bounds, Some(side)) => is_lower(op, i) == (side == Ordering::Greater),
        };
        if faulty {
            let what = op.def().operands.get(i).copied().unwrap_or("scalar");
            let message = format!("`{op}` with `{what}` = {s}, which {d} can't hold");
            let help = "cast the tensor to a wider dtype first, e.g. `cast(x, f64)`";
            return Err(Diagnostic::new(DiagnosticKind::BadParameter, message).help(help));
        }
    }
    Ok(())
}
