//! Help texts of promotion errors: each names a cast that makes the application valid.
//!
//! Guarantees: the text follows from the op table's columns, and the suggested casts work (tested in
//! `tests/compare.rs`).

use super::lattice::common_for_help;
use super::operand::{OperandType, category_of, named};
use super::rule_set::{Call, RuleSet, dtype_of};
use super::settings::Rules;
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind, Phrase};
use crate::ops::{Attrs, Custom, MAX_OPERANDS, Op, Output, Promotion};

/// The dtype closest to `d` among those that an op accepts.
fn closest(accepts: DTypeSet, d: DType) -> Option<DType> {
    use DType::*;
    let complex = if d == F64 { C128 } else { C64 };
    let candidates: &[DType] = match d.category() {
        Category::Bool => &[I64, F32, C64],
        Category::Int => &[F32, C64, Bool],
        Category::Float => &[F32, I64, complex, Bool],
        Category::Complex => &[C64, d.real(), F32, I64],
    };
    candidates.iter().copied().find(|c| *c != d && accepts.has(*c))
}

const ORDINALS: [&str; MAX_OPERANDS] = ["first", "second", "third", "fourth"];

/// Help for operands whose dtypes do not promote: which operand to cast, and to which dtype. `dtypes` are the operands'
/// dtypes for promotion.
pub(super) fn mix(op: Op, accepts: DTypeSet, operands: &[OperandType], dtypes: &[DType]) -> String {
    let counted = || operands.iter().zip(dtypes);
    if counted().any(|(o, _)| matches!(o, OperandType::Scalar(_)))
        && let Some((_, d)) = counted().find(|(o, _)| matches!(o, OperandType::Tensor { .. }))
    {
        return format!("pass the scalar as a 0-d {d} constant");
    }
    let common = common_for_help(dtypes);
    let to = if accepts.has(common) { common } else { closest(accepts, common).unwrap_or(common) };
    // The condition of `where` precedes the operands that promote.
    let first = usize::from(op == Op::Where);
    let wrong: Vec<usize> = (0..dtypes.len()).filter(|i| dtypes[*i] != to).map(|i| i + first).collect();
    let example = op.def().operands[wrong.first().copied().unwrap_or(first)];
    format!("cast {}, e.g. `cast({example}, {to})`", which(&wrong, dtypes.len()))
}

/// `the first operand`, `the first and third operands`: some of so many operands.
fn which(wrong: &[usize], of: usize) -> String {
    match *wrong {
        [_] if of == 1 => "the operand".to_string(),
        [one] => format!("the {} operand", ORDINALS[one]),
        [one, other] if of > 2 => format!("the {} and {} operands", ORDINALS[one], ORDINALS[other]),
        _ => "the operands".to_string(),
    }
}

/// The error for an op of dtypes that can only be stored and cast; `None` if there is no such dtype.
pub(super) fn stored(rules: &dyn RuleSet, op: Op, operands: &[OperandType], attrs: &Attrs) -> Option<Diagnostic> {
    let is_stored = |o: &OperandType| dtype_of(o).filter(|d| rules.only_stores(*d));
    let asked = attrs.dtype.filter(|d| rules.only_stores(*d));
    let d = operands.iter().find_map(is_stored).or(asked).filter(|_| op.def().promotion != Promotion::Given)?;
    let wrong: Vec<usize> = (0..operands.len()).filter(|i| is_stored(&operands[*i]).is_some()).collect();
    let help = match wrong.first() {
        Some(first) => {
            let accepts = rules.column(op.def()).1;
            let to = if accepts.has(DType::F32) { DType::F32 } else { closest(accepts, d).unwrap_or(DType::F32) };
            let name = op.def().operands.get(*first).copied().unwrap_or("x");
            format!("cast {}, e.g. `cast({name}, {to})`", which(&wrong, operands.len()))
        }
        None => format!("ask for another dtype and cast the result, e.g. `cast(y, {d})`"),
    };
    let message = format!("`{op}`: {} only stores and casts {d}", rules.framework());
    Some(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(help))
}

/// The error for operands whose dtypes a rule set does not promote with each other.
pub(super) fn no_promotion(call: &Call<'_>, rules: Rules, dtypes: &[DType]) -> Diagnostic {
    let message = format!("`{}` has no implicit promotion for {} under ", call.op, named(call.promoted));
    let help = mix(call.op, call.accepts, call.promoted, dtypes);
    Diagnostic::new(DiagnosticKind::PromotionRefused, Phrase::from(message).and(rules.mention())).help(help)
}

/// The error for operands whose common dtype the op does not accept.
pub(super) fn unsupported(call: &Call<'_>, operands: &[OperandType], common: DType) -> Diagnostic {
    let op = call.op;
    let arithmetic = call.def.for_bool.filter(|_| common == DType::Bool);
    let fault = if arithmetic.is_some() { DiagnosticKind::BoolArithmetic } else { DiagnosticKind::UnsupportedDType };
    // An operand has a higher category than the bool one: the op accepts no bool operand at all.
    let beside = operands.len() > 1 && operands.iter().any(|o| category_of(o) > common.category());
    let plain = |o: &OperandType| dtype_of(o) == Some(common);
    let what = if operands.len() == 1 || operands.iter().all(plain) {
        String::new()
    } else if beside {
        format!(" in a mix; it is given {}", named(operands))
    } else {
        format!("; {} promote to it", named(operands))
    };
    let help = match arithmetic {
        _ if beside && common == DType::Bool => bool_beside(op, operands),
        Some(other) => Some(format!("for bool {other}")),
        None => instead(op, call.accepts, operands, common),
    };
    let d = Diagnostic::new(fault, format!("`{op}` does not take {common}{what}"));
    if let Some(help) = help { d.help(help) } else { d }
}

/// Help for operands whose common dtype the op does not accept.
fn instead(op: Op, accepts: DTypeSet, operands: &[OperandType], common: DType) -> Option<String> {
    let to = closest(accepts, common)?;
    let (mut scalar, mut tensor) = (false, to.category() >= common.category());
    for o in operands.iter().filter(|o| category_of(o) > to.category()) {
        let which = if matches!(o, OperandType::Scalar(_)) { &mut scalar } else { &mut tensor };
        *which = true;
    }
    // Integers whose common dtype is a float: NumPy's u64 and i64.
    let tensor = tensor || !scalar;
    let tensor = tensor.then(|| match (common.category(), to.category()) {
        (Category::Complex, Category::Float) if op.def().output == Output::Bool => {
            "compare `abs(x)` or `real(x)`".into()
        }
        (Category::Complex, Category::Float) => "apply it to `abs(x)`, or to `real(x)` and `imag(x)`".into(),
        (Category::Complex, Category::Int) => format!("cast the real part, e.g. `cast(real(x), {to})`"),
        (_, Category::Int) => format!("cast to an integer dtype, e.g. `cast(x, {to})`"),
        (Category::Float, Category::Float) => format!("cast to {to}, e.g. `cast(x, {to})`"),
        (_, Category::Float) => format!("cast to a float dtype, e.g. `cast(x, {to})`"),
        (_, c) => format!("cast to {c}, e.g. `cast(x, {to})`"),
    });
    let kind = if to.category() == Category::Float { "a real" } else { "an integer" };
    let scalar = scalar.then(|| format!("write {kind} scalar"));
    Some(tensor.into_iter().chain(scalar).collect::<Vec<_>>().join(", and "))
}

/// The error for a custom op that has no function for its compute dtype.
pub(super) fn no_function(custom: Custom, operands: &[OperandType], compute: DType) -> Diagnostic {
    let (def, math) = (custom.def(), compute.op_math());
    let functions = custom.functions();
    let has = functions.iter().map(DType::name).collect::<Vec<_>>().join(", ");
    let through = if math == compute { String::new() } else { format!(" (for {compute})") };
    let message = format!(
        "`{}` of {} computes in {math}{through}, for which it has no function; it has one for {has}",
        def.name,
        named(operands)
    );
    let (n, first) = (def.operands.len(), def.operands.first().copied().unwrap_or("x"));
    let mut help = format!("register it with a function of `[{}; {n}]`", rust_name(math));
    if let Some(to) = closest(def.accepts, compute) {
        help += &format!(", or cast the operands, e.g. `cast({first}, {to})`");
    }
    Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(help)
}

/// The Rust type of an op math dtype.
fn rust_name(math: DType) -> &'static str {
    match math {
        DType::C64 => "Complex<f32>",
        DType::C128 => "Complex<f64>",
        d => d.name(),
    }
}

/// Help for an op that accepts no bool and was applied to a bool and an operand of another dtype.
fn bool_beside(op: Op, operands: &[OperandType]) -> Option<String> {
    let at = operands.iter().position(|o| category_of(o) == Category::Bool)?;
    let other = match (operands.get(at)?, operands.get(1 - at.min(1))?) {
        (OperandType::Scalar(_), _) => return Some("write the scalar as a number".into()),
        (_, OperandType::Tensor { dtype, .. }) => *dtype,
        (_, OperandType::Scalar(s)) if s.category() == Category::Int => DType::I64,
        (_, OperandType::Scalar(_)) => DType::F32,
    };
    let (which, name) = (ORDINALS[at], op.def().operands[at]);
    Some(format!("cast the {which} operand, e.g. `cast({name}, {other})`"))
}

/// Help for a scalar operand of an op that requires two tensors. `common` is the dtype that the tensor and a scalar of
/// this category promote to.
pub(super) fn scalar(accepts: DTypeSet, tensor: DType, common: Option<DType>) -> String {
    match common {
        Some(c) if c != tensor && accepts.has(c) => {
            format!("pass the scalar as a 0-d {c} constant and cast the tensor to {c}")
        }
        _ => format!("pass the scalar as a 0-d {tensor} constant"),
    }
}
