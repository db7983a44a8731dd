//! What a refusal tells the user to write: the cast that makes it work, and what other rule sets would do.
//!
//! Everything comes from the op table's columns; the casts that are named do work (tested in `tests/compare.rs`).

use super::operand::{OperandType, category_of, named};
use super::rule_set::dtype_of;
use super::{Rules, Settings, decide, promote_types};
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, Fault, Phrase};
use crate::ops::{Attrs, Custom, MAX_OPERANDS, Op, Output};

/// The dtype that an op takes and that comes closest to one it does not take.
fn closest(accepts: DTypeSet, d: DType) -> Option<DType> {
    use DType::*;
    let complex = if d == F64 { C128 } else { C64 };
    let candidates = match d.category() {
        Category::Bool => [I64, F32, C64],
        Category::Int => [F32, C64, Bool],
        Category::Float => [I64, complex, Bool],
        Category::Complex => [C64, d.real(), I64],
    };
    candidates.into_iter().find(|c| *c != d && accepts.has(*c))
}

const ORDINALS: [&str; MAX_OPERANDS] = ["first", "second", "third", "fourth"];

/// For operands of different dtypes that do not promote: which one to cast, and to what. `dtypes` are what the
/// operands count as.
pub(super) fn mix(op: Op, accepts: DTypeSet, operands: &[OperandType], dtypes: &[DType]) -> String {
    let counted = || operands.iter().zip(dtypes);
    if counted().any(|(o, _)| matches!(o, OperandType::Scalar(_)))
        && let Some((_, d)) = counted().find(|(o, _)| matches!(o, OperandType::Tensor { .. }))
    {
        return format!("pass the scalar as a 0-d {d} constant");
    }
    let common = dtypes.iter().copied().reduce(promote_types).unwrap_or(DType::F32);
    let to = if accepts.has(common) { common } else { closest(accepts, common).unwrap_or(common) };
    // The condition of `where` stands before the operands that promote.
    let first = usize::from(op == Op::Where);
    let wrong: Vec<usize> = (0..dtypes.len()).filter(|i| dtypes[*i] != to).map(|i| i + first).collect();
    let which = match wrong.len() {
        1 => format!("the {} operand", ORDINALS[wrong[0]]),
        n if n < dtypes.len() => format!("the {} and {} operands", ORDINALS[wrong[0]], ORDINALS[wrong[1]]),
        _ => "the operands".to_string(),
    };
    format!("cast {which}, e.g. `cast({}, {to})`", op.def().operands[wrong.first().copied().unwrap_or(first)])
}

/// For operands whose common dtype the op does not take.
pub(super) fn unsupported(op: Op, accepts: DTypeSet, operands: &[OperandType], common: DType) -> Option<String> {
    let to = closest(accepts, common)?;
    let (mut scalar, mut tensor) = (false, to.category() >= common.category());
    for o in operands.iter().filter(|o| category_of(o) > to.category()) {
        let which = if matches!(o, OperandType::Scalar(_)) { &mut scalar } else { &mut tensor };
        *which = true;
    }
    let tensor = tensor.then(|| match (common.category(), to.category()) {
        (Category::Complex, Category::Float) if op.def().output == Output::Bool => {
            "compare `abs(x)` or `real(x)`".into()
        }
        (Category::Complex, Category::Float) => "apply it to `abs(x)`, or to `real(x)` and `imag(x)`".into(),
        (Category::Complex, Category::Int) => format!("cast the real part, e.g. `cast(real(x), {to})`"),
        (_, Category::Int) => format!("cast to an integer dtype, e.g. `cast(x, {to})`"),
        (_, Category::Float) => format!("cast to a float dtype, e.g. `cast(x, {to})`"),
        (_, c) => format!("cast to {c}, e.g. `cast(x, {to})`"),
    });
    let kind = if to.category() == Category::Float { "a real" } else { "an integer" };
    let scalar = scalar.then(|| format!("write {kind} scalar"));
    Some(tensor.into_iter().chain(scalar).collect::<Vec<_>>().join(", and "))
}

/// For a custom op without a function for the dtype that it would compute in.
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
    Diagnostic::new(Fault::UnsupportedDType, message).help(help)
}

/// The Rust type that op math in a dtype has.
fn rust_name(math: DType) -> &'static str {
    match math {
        DType::C64 => "Complex<f32>",
        DType::C128 => "Complex<f64>",
        d => d.name(),
    }
}

/// For an op that takes no bool, given one beside an operand of another dtype.
pub(super) fn bool_beside(op: Op, operands: &[OperandType]) -> Option<String> {
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

/// For a scalar where two tensors are wanted; `common` is what the scalar's category would give.
pub(super) fn scalar(accepts: DTypeSet, tensor: DType, common: Option<DType>) -> String {
    match common {
        Some(c) if c != tensor && accepts.has(c) => {
            format!("pass the scalar as a 0-d {c} constant and cast the tensor to {c}")
        }
        _ => format!("pass the scalar as a 0-d {tensor} constant"),
    }
}

/// What another rule set makes of an application.
#[derive(PartialEq)]
enum Elsewhere {
    Computes(DType),
    Gives(DType),
    Refuses,
}

/// The refusal with what the other rule sets do in its help: those that do the same together.
pub(super) fn elsewhere(d: Diagnostic, s: &Settings, op: Op, operands: &[OperandType], attrs: &Attrs) -> Diagnostic {
    if matches!(d.fault, Fault::BadParameter | Fault::ConditionDType) {
        return d;
    }
    let mut dtypes = operands.iter().filter_map(dtype_of);
    let first = dtypes.next();
    let mixed = dtypes.any(|d| Some(d) != first);
    let mut found: Vec<(Elsewhere, Vec<Rules>)> = Vec::new();
    for rules in s.rules.others() {
        let what = match decide(&Settings { rules, ..*s }, op, operands, attrs) {
            Ok(s) if s.result == DType::Bool => Elsewhere::Computes(s.compute),
            Ok(s) => Elsewhere::Gives(s.result),
            Err(_) if mixed => Elsewhere::Refuses,
            Err(_) => continue,
        };
        match found.iter_mut().find(|(w, _)| *w == what) {
            Some((_, same)) => same.push(rules),
            None => found.push((what, vec![rules])),
        }
    }
    found.into_iter().fold(d, |d, (what, rules)| {
        let s = if rules.len() == 1 { "s" } else { "" };
        let who = enumerated(&rules.iter().map(|r| r.mention()).collect::<Vec<_>>(), " and ");
        d.also(match what {
            Elsewhere::Computes(dtype) => who.and(format!(" would compute in {dtype}")),
            Elsewhere::Gives(dtype) => who.and(format!(" would give {dtype}")),
            Elsewhere::Refuses => who.and(format!(" refuse{s} it too")),
        })
    })
}

/// `a`, `a and b`, `a, b and c`.
fn enumerated(all: &[Phrase], last: &str) -> Phrase {
    let mut text = Phrase::default();
    for (i, part) in all.iter().enumerate() {
        let between = if i == 0 {
            ""
        } else if i + 1 == all.len() {
            last
        } else {
            ", "
        };
        text = text.and(between).and(part.clone());
    }
    text
}
