//! Which dtype an application of an op computes in and gives: [`signature`], the only decider.
//!
//! Guarantees: one function for eager, inference and the command; it sees dtypes, scalar categories and whether a
//! tensor is 0-d, never values (but the sign of a scalar exponent, to refuse it); each framework's tables are data in
//! `torch.rs` and `paddle.rs`. Does not: look at shapes (that is `infer`'s broadcasting) or insert casts.
//!
//! Sources: PyTorch's `TensorIterator` and `TypeProperties.cpp` as described in "Demystifying Dtype Promotion in
//! PyTorch"; PaddlePaddle's "Introduction to Data Type Promotion", with the contradictions of the guide resolved by
//! what PaddlePaddle 3.3 does.

use std::fmt;

use crate::dtype::{Category, DType, DTypeSet};
use crate::error::{Diagnostic, Fault};
use crate::host::FloatMode;
use crate::ops::{Attrs, MAX_OPERANDS, Op, Promotion, WideScalar};
use crate::scalar::Scalar;

mod help;
mod paddle;
mod settings;
mod torch;

pub use settings::{Rounding, Rules, Settings};
pub use torch::promote_types;

/// What promotion sees of an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OperandType {
    /// A tensor.
    Tensor {
        /// Its dtype.
        dtype: DType,
        /// Whether it has no dims.
        zero_dim: bool,
    },
    /// A scalar the user wrote.
    Scalar(Scalar),
}

impl OperandType {
    /// A tensor with dims.
    pub const fn dim(dtype: DType) -> OperandType {
        OperandType::Tensor { dtype, zero_dim: false }
    }

    /// A 0-d tensor.
    pub const fn zero(dtype: DType) -> OperandType {
        OperandType::Tensor { dtype, zero_dim: true }
    }
}

impl fmt::Display for OperandType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperandType::Tensor { dtype, zero_dim: false } => write!(f, "{dtype}"),
            OperandType::Tensor { dtype, zero_dim: true } => write!(f, "{dtype}[]"),
            OperandType::Scalar(s) => write!(f, "scalar {s}"),
        }
    }
}

/// Why an operand was cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The user wrote the cast.
    Requested,
    /// The framework's table of two dtypes of one category.
    Table,
    /// An operand of a higher category decides.
    Category,
    /// A 0-d tensor follows the tensors with dims.
    ZeroDim,
    /// The op computes in floats: bool and integers go to the default float dtype.
    IntToFloat,
    /// The op has no bool arithmetic: bool goes to i64.
    BoolToInt,
    /// The dtype in which a reduction combines, or that it was given.
    Reduction,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Requested => "requested",
            Reason::Table => "table",
            Reason::Category => "category",
            Reason::ZeroDim => "0-d follows dims",
            Reason::IntToFloat => "integers to float",
            Reason::BoolToInt => "bool to i64",
            Reason::Reduction => "dtype of the reduction",
        })
    }
}

/// What a cast may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    /// Every value of the source is a value of the target.
    Exact,
    /// Values may be rounded, but stay in range.
    Rounds,
    /// Values may leave the target's range (overflow, saturate), lose their sign or their imaginary part.
    Range,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Loss::Exact => "exact",
            Loss::Rounds => "rounds",
            Loss::Range => "range",
        })
    }
}

impl Loss {
    /// What a cast between two dtypes may lose.
    pub fn of(from: DType, to: DType) -> Loss {
        let drops_part = from.category() > to.category();
        let drops_sign = to.is_unsigned() && from.category() != Category::Bool && !from.is_unsigned();
        if from == to {
            Loss::Exact
        } else if drops_part || drops_sign || from.range_bits() > to.range_bits() {
            Loss::Range
        } else if from.digits() > to.digits() {
            Loss::Rounds
        } else {
            Loss::Exact
        }
    }
}

/// What one application of an op does with dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The dtype each operand is cast to; as many as the op has operands.
    operands: [DType; MAX_OPERANDS],
    /// The dtype the op is applied in. (f16, bf16 and c32 compute in their op math and round once.)
    pub compute: DType,
    /// The dtype of the result.
    pub result: DType,
}

impl Signature {
    /// The dtype operand `i` is cast to.
    pub fn operand(&self, i: usize) -> DType {
        self.operands[i.min(MAX_OPERANDS - 1)]
    }
}

/// Decides operand, compute and result dtypes of one application, or refuses it.
///
/// `operands` has as many entries as the op; the refusal names the op and all operands, and says what to write and
/// what the other rule set would do, but has no place yet.
pub fn signature(s: &Settings, op: Op, operands: &[OperandType], attrs: &Attrs) -> Result<Signature, Diagnostic> {
    // Scalars are compared with what dtypes hold, and printed.
    let _standard = FloatMode::standard();
    s.check()?;
    decide(s, op, operands, attrs).map_err(|d| {
        let there = Settings { rules: s.rules.other(), ..*s };
        help::elsewhere(d, there.rules, decide(&there, op, operands, attrs), operands)
    })
}

fn decide(s: &Settings, op: Op, operands: &[OperandType], attrs: &Attrs) -> Result<Signature, Diagnostic> {
    let def = op.def();
    if let Some(wrong) = op.wrong_count(operands.len()) {
        return Err(wrong);
    }
    let all = operands;
    // The condition of `where` takes no part in promotion.
    let (operands, parameters) = operands.split_at(operands.len() - def.torch.parameters.min(operands.len()));
    if let Some(p) = parameters.iter().find(|p| matches!(p, OperandType::Tensor { .. })) {
        return Err(Diagnostic::new(Fault::BadParameter, format!("the last operand of `{op}` is {p}, not a scalar")));
    }
    let (promoted, condition) = if op == Op::Where { (&operands[1..], operands.first()) } else { (operands, None) };
    if let Some(c) = condition
        && !matches!(c, OperandType::Tensor { dtype: DType::Bool, .. })
    {
        let message = format!("the condition of `where` is {c}, not a bool tensor");
        let help = match c {
            OperandType::Tensor { .. } => "compare it: `c != 0`",
            OperandType::Scalar(_) => "pass a bool tensor, e.g. a 0-d constant",
        };
        return Err(Diagnostic::new(Fault::ConditionDType, message).help(help));
    }
    let broadcast = broadcast_first(s, promoted, attrs);
    let promoted = broadcast.as_deref().unwrap_or(promoted);
    let (promotion, accepts) = match s.rules {
        Rules::Torch => (def.torch.promotion, def.torch.accepts),
        Rules::Paddle => (def.paddle.promotion, def.paddle.accepts),
    };
    let is_complex = |o: &OperandType| category_of(o) == Category::Complex;
    let common = match s.rules {
        _ if promotion == Promotion::First => first_dtype(op, promoted)?,
        _ if promotion == Promotion::SingleOrDouble && !promoted.iter().any(is_complex) => {
            let double = |o: &OperandType| matches!(o, OperandType::Tensor { dtype: DType::F64, .. });
            if promoted.iter().any(double) { DType::F64 } else { DType::F32 }
        }
        Rules::Torch => {
            refuse_mix(s, op, promoted)?;
            // Where dtypes must be equal, the first operand has it; a weight behind follows.
            let deciding = if def.torch.mixes { promoted } else { &promoted[..promoted.len().min(2)] };
            torch::common_dtype(deciding, s.default_dtype)
        }
        Rules::Paddle => paddle::common_dtype(op, promoted)?,
    };
    // A reduction converts its operand to the dtype it is given, and goes on from there.
    let common = if op.is_reduction() { attrs.dtype.unwrap_or(common) } else { common };
    if let Some(to) = attrs.dtype.filter(|to| attrs.output && !common.can_cast(*to)) {
        let message = format!("result type {common} can't be cast to the desired output type {to}");
        return Err(Diagnostic::new(Fault::Cast, message).help(format!("ask for an output of {common}")));
    }
    let first = match promoted.first() {
        Some(OperandType::Tensor { dtype, .. }) if s.rules == Rules::Torch && def.torch.to_first => Some(*dtype),
        _ => None,
    };
    if let Some(to) = first.filter(|to| !common.can_cast(*to)) {
        let message = format!("`{op}`: result type {common} can't be cast to the desired output type {to}");
        let dtypes: Vec<DType> = promoted.iter().map(|o| torch::dtype_of(o, s.default_dtype)).collect();
        return Err(Diagnostic::new(Fault::Cast, message).help(help::mix(op, accepts, promoted, &dtypes)));
    }
    // What a custom op accepts is what it has functions for, which is asked of the dtype that it computes in.
    if !accepts.has(common) && !matches!(op, Op::Custom(_)) {
        return Err(unsupported(op, accepts, operands, common));
    }
    refuse_negative_exponent(op, operands, common)?;
    let compute = match promotion {
        Promotion::Common | Promotion::First | Promotion::SingleOrDouble => common,
        Promotion::IntToFloat if common.is_integral() => float_for_ints(s),
        Promotion::BoolToInt if common == DType::Bool && !(op.is_reduction() && attrs.dtype.is_some()) => DType::I64,
        Promotion::IntToDouble if common.is_integral() => DType::F64,
        Promotion::ToDouble => {
            if common.is_complex() {
                DType::C128
            } else {
                DType::F64
            }
        }
        Promotion::ToLong if common.is_integral() && attrs.dtype.is_none() => DType::I64,
        Promotion::SomeToLong if matches!(common, DType::Bool | DType::I32) && attrs.dtype.is_none() => DType::I64,
        // The truth of u8 is u8 for PyTorch: a cast behind the reduction.
        Promotion::Truth => DType::Bool,
        Promotion::Given => attrs.dtype.unwrap_or(common),
        Promotion::IntToFloat | Promotion::BoolToInt | Promotion::IntToDouble | Promotion::ToLong => common,
        Promotion::SomeToLong => common,
    };
    if s.rules == Rules::Paddle && compute == DType::C32 {
        return Err(paddle::no_c32(op));
    }
    if let Op::Custom(custom) = op
        && !custom.functions().has(compute.op_math())
    {
        return Err(help::no_function(custom, operands, compute));
    }
    let byte = promotion == Promotion::Truth && s.rules == Rules::Torch && common == DType::U8;
    let mut dtypes = [compute; MAX_OPERANDS];
    if condition.is_some() {
        dtypes[0] = DType::Bool;
    }
    if !parameters.is_empty() {
        check_parameters(op, parameters, common)?;
        let rounded = s.rules == Rules::Torch && def.torch.rounds_parameters;
        dtypes[operands.len()..].fill(if rounded { compute } else { compute.op_math() });
    }
    if let Some(i) = wide_scalar(s, op, operands, compute) {
        dtypes[i] = compute.op_math();
    }
    if s.rules == Rules::Torch {
        torch::check_scalars(op, all, |i| dtypes[i])?;
    }
    let result = if byte { DType::U8 } else { first.unwrap_or(op.result(compute)) };
    Ok(Signature { operands: dtypes, compute, result })
}

/// A parameter must be of no higher category than the operands: PyTorch's rule for `alpha`.
fn check_parameters(op: Op, parameters: &[OperandType], common: DType) -> Result<(), Diagnostic> {
    let fits = |p: &OperandType| match p {
        _ if op.def().torch.converts => category_of(p) < Category::Complex || common.is_complex(),
        OperandType::Scalar(Scalar::Bool(_)) => common == DType::Bool,
        p => category_of(p) <= common.category().max(Category::Int),
    };
    let (least, open) = match op {
        Op::Huber => (0.0, true),
        Op::SmoothL1 => (0.0, false),
        _ => (f64::NEG_INFINITY, false),
    };
    let inside = |p: &OperandType| match p {
        OperandType::Scalar(Scalar::Float(v)) => *v > least || !open && *v == least || least == f64::NEG_INFINITY,
        _ => true,
    };
    if let Some(p) = parameters.iter().find(|p| !inside(p)) {
        let bound = if open { "greater than" } else { "at least" };
        return Err(Diagnostic::new(
            Fault::BadParameter,
            format!("`{op}` with the {p}, which must be {bound} {least}"),
        ));
    }
    match parameters.iter().find(|p| !fits(p)) {
        Some(p) => Err(Diagnostic::new(Fault::BadParameter, format!("`{op}` of {common} with the parameter {p}"))),
        None => Ok(()),
    }
}

/// The dtype of the first operand, if the others can be cast to it as to an output.
fn first_dtype(op: Op, operands: &[OperandType]) -> Result<DType, Diagnostic> {
    let Some(OperandType::Tensor { dtype: to, .. }) = operands.first() else {
        let message = format!("the first operand of `{op}` is {}, not a tensor", named(&operands[..1]));
        let like = operands.iter().find_map(|o| match o {
            OperandType::Tensor { dtype, .. } => Some(*dtype),
            OperandType::Scalar(_) => None,
        });
        let help = format!("pass the scalar as a 0-d {} constant", like.unwrap_or(DType::F32));
        return Err(Diagnostic::new(Fault::ArgNotTensor, message).help(help));
    };
    match operands.iter().find(|o| category_of(o) > to.category()) {
        Some(o) => {
            let (what, help) = match o {
                OperandType::Tensor { dtype, .. } => (dtype.to_string(), format!("cast it, e.g. `cast(value, {to})`")),
                OperandType::Scalar(s) => (format!("scalar {s}"), format!("pass the scalar as a 0-d {to} constant")),
            };
            let message = format!("`{op}`: result type {what} can't be cast to the desired output type {to}");
            Err(Diagnostic::new(Fault::Cast, message).help(help))
        }
        None => Ok(*to),
    }
}

/// The operands of PyTorch's losses as they are after broadcasting: 0-d ones have dims if another one does.
fn broadcast_first(s: &Settings, operands: &[OperandType], attrs: &Attrs) -> Option<Vec<OperandType>> {
    let dims = operands.iter().any(|o| matches!(o, OperandType::Tensor { zero_dim: false, .. }));
    let with_dims = |o: &OperandType| match *o {
        OperandType::Tensor { dtype, .. } => OperandType::dim(dtype),
        scalar => scalar,
    };
    let wanted = s.rules == Rules::Torch && attrs.loss.is_some() && dims;
    wanted.then(|| operands.iter().map(with_dims).collect())
}

/// What a scalar stands for as the `i`-th operand of an op, in the dtype it goes to.
pub(crate) fn scalar_operand(s: &Settings, op: Op, i: usize, scalar: Scalar, to: DType) -> Scalar {
    match s.rules {
        Rules::Torch => torch::scalar(op, i, scalar, to),
        Rules::Paddle => scalar,
    }
}

/// The operand that stays in op math, if there is one. PyTorch reads a second operand of one element before it is cast, so that
/// a 0-d tensor of another dtype counts as a scalar there; of c32 it casts both.
fn wide_scalar(s: &Settings, op: Op, operands: &[OperandType], compute: DType) -> Option<usize> {
    if s.rules != Rules::Torch || !(compute.is_float() && compute.is_narrow()) {
        return None;
    }
    let one = |o: &OperandType| match o {
        OperandType::Scalar(_) => true,
        OperandType::Tensor { dtype, zero_dim } => *zero_dim && *dtype != compute,
    };
    match (op.def().torch.wide_scalar, operands) {
        (WideScalar::Right | WideScalar::Either, [OperandType::Tensor { .. }, y]) if one(y) => Some(1),
        (WideScalar::Either, [OperandType::Scalar(_), OperandType::Tensor { .. }]) => Some(0),
        (WideScalar::Right, [_, _, OperandType::Scalar(_)]) => Some(2),
        _ => None,
    }
}

/// The dtype that bool and integers compute in where an op wants floats.
fn float_for_ints(s: &Settings) -> DType {
    match s.rules {
        Rules::Torch => s.default_dtype,
        Rules::Paddle => DType::F32,
    }
}

/// Why an operand of dtype `from` is cast to `to` in an application of an op to these operands.
///
/// ```
/// use castwise::promotion::{OperandType, reason};
/// use castwise::{DType, Op, Reason};
/// let operands = [OperandType::dim(DType::I32), OperandType::dim(DType::F32)];
/// assert_eq!(reason(Op::Add, &operands, DType::I32, DType::F32), Reason::Category);
/// ```
pub fn reason(op: Op, operands: &[OperandType], from: DType, to: DType) -> Reason {
    let promoted = if op == Op::Where { &operands[1..] } else { operands };
    let highest = promoted.iter().map(category_of).max().unwrap_or(Category::Bool);
    if op == Op::Cast {
        Reason::Requested
    } else if op.is_reduction() {
        Reason::Reduction
    } else if to.category() > highest && to == DType::I64 {
        Reason::BoolToInt
    } else if to.category() > highest {
        Reason::IntToFloat
    } else if from.category() < to.category() {
        Reason::Category
    } else if from.digits() > to.digits() || from.range_bits() > to.range_bits() {
        Reason::ZeroDim
    } else {
        Reason::Table
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

fn unsupported(op: Op, accepts: DTypeSet, operands: &[OperandType], common: DType) -> Diagnostic {
    let fault = if common == DType::Bool && (!op.def().torch.bools || op == Op::Neg) {
        Fault::BoolArithmetic
    } else {
        Fault::UnsupportedDType
    };
    // A higher category beside bool: the op takes no bool, whatever the other operand is.
    let beside = operands.len() > 1 && operands.iter().any(|o| category_of(o) > common.category());
    let plain = |o: &OperandType| matches!(o, OperandType::Tensor { dtype, .. } if *dtype == common);
    let what = if operands.len() == 1 || operands.iter().all(plain) {
        String::new()
    } else if beside {
        format!(" in a mix; it is given {}", named(operands))
    } else {
        format!("; {} promote to it", named(operands))
    };
    let mut d = Diagnostic::new(fault, format!("`{op}` does not take {common}{what}"));
    d.help = match (fault, op) {
        _ if beside => help::bool_beside(op, operands),
        (Fault::BoolArithmetic, Op::Neg) => Some("for bool write `logical_not`".into()),
        (Fault::BoolArithmetic, _) => Some("for bool write `logical_xor`, or cast to an integer dtype".into()),
        _ => help::unsupported(op, accepts, operands, common),
    };
    d
}

/// PyTorch's ops that take equal dtypes only, or no bool among their operands.
fn refuse_mix(s: &Settings, op: Op, operands: &[OperandType]) -> Result<(), Diagnostic> {
    let columns = &op.def().torch;
    // A third operand is a weight: as a scalar it may be of any dtype.
    let counts = |(i, o): &(usize, &OperandType)| *i < 2 || matches!(o, OperandType::Tensor { .. });
    let counted = operands.iter().enumerate().filter(counts);
    let dtypes: Vec<DType> = counted.map(|(_, o)| torch::dtype_of(o, s.default_dtype)).collect();
    if !columns.bools && dtypes.contains(&DType::Bool) {
        return Err(unsupported(op, columns.accepts, operands, DType::Bool));
    }
    let integral = |o: &OperandType| category_of(o) <= Category::Int;
    if !columns.integer_quotients && operands.len() > 2 && operands[1..].iter().all(integral) {
        let to = if columns.accepts.has(dtypes[0]) { dtypes[0] } else { s.default_dtype };
        let message = format!("`{op}` does not divide integers: it is given {}", named(operands));
        let help = match operands[2] {
            OperandType::Tensor { .. } => {
                format!("cast the third operand, e.g. `cast({}, {to})`", op.def().operands[2])
            }
            OperandType::Scalar(_) => format!("pass the scalar as a 0-d {to} constant"),
        };
        return Err(Diagnostic::new(Fault::UnsupportedDType, message).help(help));
    }
    // It is converted to theirs, but no complex number is to a real one.
    let weight = operands.get(2).filter(|w| !columns.mixes && matches!(w, OperandType::Scalar(Scalar::Complex(_))));
    if let Some((w, a)) = weight.zip(dtypes.first()).filter(|(_, a)| !a.is_complex()) {
        let message = format!("`{op}` of {a} does not take the complex weight {w}");
        return Err(Diagnostic::new(Fault::UnsupportedDType, message).help("cast the operands, e.g. `cast(x, c64)`"));
    }
    // Equal dtypes would not help where the op takes none of what they promote to: then that is the mistake. PyTorch's
    // ops of three operands look at equality first.
    let hopeless = || operands.len() == 2 && !columns.accepts.has(torch::common_dtype(operands, s.default_dtype));
    match dtypes.as_slice() {
        [a, rest @ ..] if !columns.mixes && rest.iter().any(|b| b != a) && !hopeless() => {
            let message = format!("`{op}` wants equal dtypes, not {}", named(operands));
            Err(Diagnostic::new(Fault::DTypeMismatch, message).help(help::mix(op, columns.accepts, operands, &dtypes)))
        }
        _ => Ok(()),
    }
}

fn refuse_negative_exponent(op: Op, operands: &[OperandType], common: DType) -> Result<(), Diagnostic> {
    match operands {
        [_, OperandType::Scalar(Scalar::Int(e))] if op == Op::Pow && *e < 0 && common.is_integral() => {
            let message = format!("`pow` of {common} by the negative integer {e}");
            let help = format!("write `{e}.0` for a float result");
            Err(Diagnostic::new(Fault::NegativeIntegerPower, message).help(help))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
