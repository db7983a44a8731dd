//! PyTorch's rules: a lattice of dtypes, and three tiers of operands.
//!
//! Sources: PyTorch's `TensorIterator` and `TypeProperties.cpp` as described in "Demystifying Dtype Promotion in PyTorch".

use std::cmp::Ordering;

use super::help::{self, unsupported};
use super::lattice::promote_types;
use super::operand::{OperandType, category_of, named};
use super::rule_set::{Call, Composites, RuleSet};
use super::settings::Rules;
use crate::base::dtype::DType::{self, *};
use crate::base::dtype::{Category, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::scalar::Scalar;
use crate::ops::{Attrs, MAX_OPERANDS, Op, OpDef, Promotion, ScalarRange, WideScalar};

/// PyTorch's rules.
pub(super) struct Torch;

impl RuleSet for Torch {
    fn composites(&self) -> Composites {
        const COMPLEX: DTypeSet = DTypeSet::of(&[C64, C128]);
        Composites {
            integers: false,
            complex_norms: true,
            one_dtype: true,
            dot: DTypeSet::ALL.without(DTypeSet::of(&[Bool, C32])),
            dot_by_rows: false,
            vecdot: DTypeSet::category(Category::Float).union(COMPLEX),
            joint_norms: false,
            isclose_of_y: false,
            isclose_of_float: false,
            nan_to_num: DTypeSet::ALL.without(DTypeSet::of(&[C32])),
        }
    }

    fn name(&self) -> &'static str {
        "torch"
    }

    fn framework(&self) -> &'static str {
        "PyTorch"
    }

    fn column(&self, def: &OpDef) -> (Promotion, DTypeSet) {
        (def.torch.promotion.unwrap_or(def.promotion), def.torch.accepts.unwrap_or(def.accepts))
    }

    fn number_of(&self, def: &OpDef, number: f64, elements: DType) -> f64 {
        let narrow = def.torch.rounds_parameter && elements == F32;
        if narrow { f64::from(number as f32) } else { number }
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

    /// A loss broadcasts its operands before they promote, so its 0-d operands have dims if another operand has.
    fn seen(&self, _op: Op, promoted: &[OperandType], attrs: &Attrs) -> Option<Vec<OperandType>> {
        let has_dims = |o: &OperandType| matches!(o, OperandType::Tensor { zero_dim: false, .. });
        let with_dims = |o: &OperandType| match *o {
            OperandType::Tensor { dtype, .. } => OperandType::dim(dtype),
            scalar => scalar,
        };
        let broadcast = attrs.loss.is_some() && promoted.iter().any(has_dims);
        broadcast.then(|| promoted.iter().map(with_dims).collect())
    }

    fn common(&self, call: &Call<'_>) -> Result<DType, Diagnostic> {
        refuse_mix(call)?;
        // If dtypes must be equal, the first two operands decide. A third one is a weight, which is cast to their
        // dtype.
        let deciding = if call.def.torch.mixes { call.promoted } else { &call.promoted[..call.promoted.len().min(2)] };
        common_dtype(deciding, call.settings.default_dtype).ok_or_else(|| {
            help::no_promotion(call, Rules::Torch, &dtypes_of(call.promoted, call.settings.default_dtype))
        })
    }

    fn operands(&self, call: &Call<'_>, compute: DType) -> [DType; MAX_OPERANDS] {
        let mut dtypes = [compute; MAX_OPERANDS];
        if call.def.parameter.is_some() && !call.def.torch.rounds_parameter {
            dtypes[call.operands.len()..].fill(compute.op_math());
        }
        if let Some(i) = wide_scalar(call, compute) {
            dtypes[i] = compute.op_math();
        }
        dtypes
    }

    fn result(&self, call: &Call<'_>, common: DType) -> Result<Option<DType>, Diagnostic> {
        let op = call.op;
        match call.promoted.first() {
            // PyTorch's `any` and `all` of u8 give u8.
            _ if call.promotion == Promotion::Truth => Ok((common == U8).then_some(U8)),
            Some(OperandType::Tensor { dtype: to, .. }) if call.def.torch.to_first => {
                if self.can_write(&OperandType::dim(common), *to) {
                    return Ok(Some(*to));
                }
                let message = format!("`{op}`: result type {common} can't be cast to the desired output type {to}");
                let dtypes = dtypes_of(call.promoted, call.settings.default_dtype);
                let help = help::mix(op, call.accepts, call.promoted, &dtypes);
                Err(Diagnostic::new(DiagnosticKind::Cast, message).help(help))
            }
            _ => Ok(None),
        }
    }

    fn check(&self, call: &Call<'_>, to: &[DType]) -> Result<(), Diagnostic> {
        check_scalars(call, to)
    }

    /// Replaces a bound outside an integer dtype's range by the end of the range. Neither clamps anything.
    fn scalar(&self, op: Op, i: usize, s: Scalar, to: DType) -> Scalar {
        if op.def().torch.scalars != ScalarRange::Bounds || i == 0 {
            return s;
        }
        let end = match (to.int_range(), beyond(s, to)) {
            (Some((_, most)), Some(Ordering::Greater)) => Some(most),
            (Some((least, _)), Some(Ordering::Less)) => Some(least),
            _ => None,
        };
        end.map_or(s, Scalar::Int)
    }

    fn casts_results(&self) -> bool {
        true
    }
}

/// The common dtype of operands: each tier is reduced with the lattice, then the tiers are combined. `None` if the
/// lattice has none for two of them.
fn common_dtype(operands: &[OperandType], default: DType) -> Option<DType> {
    let (mut dim, mut zero, mut wrapped) = (None, None, None);
    for o in operands {
        let tier = match o {
            OperandType::Tensor { zero_dim: false, .. } => &mut dim,
            OperandType::Tensor { zero_dim: true, .. } => &mut zero,
            OperandType::Scalar(_) => &mut wrapped,
        };
        let dtype = dtype_of(o, default);
        *tier = Some(tier.map_or(Some(dtype), |t| promote_types(t, dtype))?);
    }
    // From the lowest tier to the highest. An application has at least one operand, so at least one tier has a dtype.
    let tiers = [wrapped, zero, dim].into_iter().flatten().map(Some);
    tiers.reduce(|lower, higher| combine(higher?, lower?)).flatten()
}

/// The dtypes of operands by themselves.
fn dtypes_of(operands: &[OperandType], default: DType) -> Vec<DType> {
    operands.iter().map(|o| dtype_of(o, default)).collect()
}

/// The dtype of an operand by itself.
fn dtype_of(o: &OperandType, default: DType) -> DType {
    match *o {
        OperandType::Tensor { dtype, .. } => dtype,
        OperandType::Scalar(s) => scalar_dtype(s, default),
    }
}

/// The dtype of a scalar by itself. A float has the default dtype, and a complex number the complex dtype of that.
fn scalar_dtype(s: Scalar, default: DType) -> DType {
    match s {
        Scalar::Bool(_) => Bool,
        Scalar::Int(_) => I64,
        Scalar::Float(_) => default,
        Scalar::Complex(_) => default.to_complex(),
    }
}

/// `combine_categories` of PyTorch's `TypeProperties.cpp`: a lower tier changes the dtype only if its category is
/// higher. `None` if the two dtypes do not promote.
fn combine(higher: DType, lower: DType) -> Option<DType> {
    if higher.is_complex() {
        Some(higher)
    } else if lower.is_complex() {
        // A float dtype keeps its width. bf16 has no complex dtype and goes to c64.
        Some(if higher.is_float() { higher.to_complex() } else { lower })
    } else if !higher.is_float() && (higher == Bool || lower.is_float()) {
        promote_types(higher, lower)
    } else {
        Some(higher)
    }
}

/// On which side of a dtype's range a scalar lies; `None` if it is inside. The range of a float dtype includes
/// infinities.
fn beyond(s: Scalar, d: DType) -> Option<Ordering> {
    let side = |below: bool, above: bool| match (below, above) {
        (true, _) => Some(Ordering::Less),
        (_, true) => Some(Ordering::Greater),
        _ => None,
    };
    let (least, most) = match (s, d.int_range()) {
        (Scalar::Int(v), Some((least, most))) => return side(v < least, v > most),
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

/// Whether the `i`-th operand of a clamp op is the lower bound.
fn is_lower(op: Op, i: usize) -> bool {
    i == 1 && op != Op::ClampMax
}

/// The operand that stays in the op math dtype, if there is one. PyTorch reads a second operand of one element before
/// it is cast, so a 0-d tensor of another dtype is treated as a scalar. For c32, PyTorch casts both operands.
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

/// Returns an error for operands that PyTorch refuses before it promotes: unequal dtypes, bool, or an integer quotient,
/// each for the ops that do not accept it.
fn refuse_mix(call: &Call<'_>) -> Result<(), Diagnostic> {
    let (op, columns, operands, default) = (call.op, &call.def.torch, call.promoted, call.settings.default_dtype);
    // A third operand is a weight. If it is a scalar, its dtype does not have to be equal.
    let counts = |(i, o): &(usize, &OperandType)| *i < 2 || matches!(o, OperandType::Tensor { .. });
    let mut counted = operands.iter().enumerate().filter(counts).map(|(_, o)| dtype_of(o, default));
    if !columns.bools && counted.clone().any(|d| d == Bool) {
        return Err(unsupported(call, operands, Bool));
    }
    let integral = |o: &OperandType| category_of(o) <= Category::Int;
    if !columns.integer_quotients && operands.len() > 2 && operands[1..].iter().all(integral) {
        let first = dtype_of(&operands[0], default);
        let to = if call.accepts.has(first) { first } else { default };
        let message = format!("`{op}` does not divide integers: it is given {}", named(operands));
        let help = match operands[2] {
            OperandType::Tensor { .. } => {
                format!("cast the third operand, e.g. `cast({}, {to})`", call.def.operands[2])
            }
            OperandType::Scalar(_) => format!("pass the scalar as a 0-d {to} constant"),
        };
        return Err(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(help));
    }
    let (false, Some(a)) = (columns.mixes, counted.next()) else { return Ok(()) };
    // A scalar weight is cast to the operands' dtype, but a complex one never to a real dtype.
    let complex = |w: &&OperandType| matches!(w, OperandType::Scalar(Scalar::Complex(_)));
    if let Some(w) = operands.get(2).filter(complex)
        && !a.is_complex()
    {
        let message = format!("`{op}` of {a} does not take the complex weight {w}");
        return Err(
            Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help("cast the operands, e.g. `cast(x, c64)`")
        );
    }
    // If the op does not accept the common dtype, equal dtypes would not help, so the later check of the common dtype
    // reports the mistake. PyTorch's ops of three operands check equality first.
    let hopeless = || operands.len() == 2 && common_dtype(operands, default).is_some_and(|d| !call.accepts.has(d));
    if counted.clone().all(|b| b == a) || hopeless() {
        return Ok(());
    }
    let message = format!("`{op}` wants equal dtypes, not {}", named(operands));
    let dtypes: Vec<DType> = [a].into_iter().chain(counted).collect();
    let help = help::mix(op, call.accepts, operands, &dtypes);
    Err(Diagnostic::new(DiagnosticKind::DTypeMismatch, message).help(help))
}

/// Refuses scalars that a dtype can't hold, where PyTorch neither wraps them nor converts them to infinity. PyTorch
/// converts a negative number to an unsigned dtype if its absolute value fits: `alpha=-1`. `to` has the dtypes that the
/// operands are cast to. Sources: `c10::checked_convert`, and the error messages of `clamp`.
fn check_scalars(call: &Call<'_>, to: &[DType]) -> Result<(), Diagnostic> {
    let op = call.op;
    let first = if call.def.parameter.is_some() { call.operands.len() } else { 1 };
    for (i, (o, d)) in call.all.iter().zip(to).enumerate() {
        let OperandType::Scalar(s) = *o else { continue };
        let negates = |v: i128| d.int_range().is_some_and(|(_, most)| v <= 0 && -v <= most);
        let wraps = d.is_unsigned() && matches!(s, Scalar::Int(v) if negates(v));
        let faulty = match (call.def.torch.scalars, beyond(s, *d)) {
            (ScalarRange::Wraps, _) | (_, None) => false,
            _ if i < first => false,
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
