//! NumPy's rules: the least dtype that holds every array, and Python scalars that follow the arrays (NEP 50).
//!
//! Source: runs of NumPy 2.4, with ml_dtypes' bf16. Two tiers: tensors of any rank are strong, scalars are weak. A weak
//! scalar counts only if its category is higher than that of all tensors, and then as i64, f64 or c128 (c64 beside
//! floats).
//!
//! Guarantees: dtypes are compared by their properties, so that a new one has its place by its row alone. The rules
//! depend on a value in one point: an integer scalar that the op's dtype does not hold is refused; a comparison with it
//! is exact, to logical ops it is true, and as a bound that no element exceeds it bounds nothing.

use std::cmp::Ordering;

use super::Settings;
use super::operand::{OperandType, category_of};
use super::rule_set::{self, Call, Composites, RuleSet, computes_in};
use crate::base::dtype::DType::*;
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::scalar::Scalar;
use crate::ops::{Attrs, Choice, Op, OpDef, Promotion, Quantiles};
use crate::promotion::settings::ZeroDivision;

/// NumPy's rules.
pub(super) struct NumPy;

impl RuleSet for NumPy {
    fn name(&self) -> &'static str {
        "numpy"
    }

    fn framework(&self) -> &'static str {
        "NumPy"
    }

    fn number(&self, def: &OpDef) -> Option<f64> {
        def.numpy.number.or(def.number.and_then(|n| n.default))
    }

    fn choice(&self, def: &OpDef) -> Option<Choice> {
        def.numpy.choice.or(def.choice.map(|c| c.default))
    }

    fn column(&self, def: &OpDef) -> (Promotion, DTypeSet) {
        (def.numpy.promotion.unwrap_or(def.promotion), def.numpy.accepts.unwrap_or(def.accepts))
    }

    fn has_integer(&self, _v: i128) -> bool {
        true
    }

    fn lacks(&self, dtype: DType) -> Option<&'static str> {
        (dtype == C32).then_some("use c64")
    }

    fn beyond_is_nan(&self) -> bool {
        true
    }

    fn takes_condition(&self, _dtype: DType) -> bool {
        true
    }

    /// `clip` makes an array of what it clips, so that a scalar there is strong.
    fn seen(&self, op: Op, promoted: &[OperandType], _attrs: &Attrs) -> Option<Vec<OperandType>> {
        match promoted {
            [OperandType::Scalar(s), bounds @ ..] if clamps(op) => {
                let x = OperandType::zero(s.own_dtype());
                Some([x].into_iter().chain(bounds.iter().copied()).collect())
            }
            _ => None,
        }
    }

    fn common(&self, call: &Call<'_>) -> Result<DType, Diagnostic> {
        if call.op == Op::Ldexp {
            return ldexp(call);
        }
        // The loops of a function of floats are over floats alone: i8 and u8 have f16 in common there, not f32.
        let floats = call.promotion == Promotion::IntToFloat && call.promoted.iter().all(rule_set::is_real);
        let bools = call.promoted.iter().all(|o| category_of(o) == Category::Bool);
        Ok(match call.def.numpy.bools {
            Some(d) if bools => d,
            _ => least(call.promoted, if floats { Category::Float } else { Category::Bool }),
        })
    }

    fn float_for(&self, _call: &Call<'_>, common: DType) -> DType {
        least(&[OperandType::dim(common)], Category::Float)
    }

    fn default_for(&self, _settings: &Settings, category: Category) -> DType {
        if category == Category::Int { DType::I64 } else { DType::F64 }
    }

    fn int_for_bool(&self, _call: &Call<'_>) -> DType {
        I8
    }

    fn compute(&self, call: &Call<'_>, common: DType) -> DType {
        match call.promotion {
            // Unsigned integers are summed in the widest unsigned dtype.
            Promotion::ToLong if common.is_unsigned() && call.attrs.dtype.is_none() => widest(Some(common)),
            _ if compares(call.op) => compared_in(call, common),
            // The exponent, an integer, has no place in a half dtype.
            _ if call.op == Op::Ldexp => common.op_math(),
            _ => computes_in(self, call, common),
        }
    }

    fn result(&self, call: &Call<'_>, common: DType) -> Result<Option<DType>, Diagnostic> {
        Ok(match (call.op, call.attrs.dtype) {
            (Op::Ldexp, _) => Some(common),
            // The mean of integers is computed in f64 also if an integer dtype is asked for.
            (Op::Mean, Some(asked)) if asked.is_integral() => Some(asked),
            _ => None,
        })
    }

    fn check(&self, call: &Call<'_>, to: &[DType]) -> Result<(), Diagnostic> {
        let interpolates = matches!(call.op, Op::Quantile | Op::Nanquantile) && call.promotion != Promotion::Common;
        let bools = call.promoted.iter().all(|o| category_of(o) == Category::Bool);
        if interpolates && bools && call.attrs.dtype.is_none() {
            let message = format!("`{}` of bool subtracts neighbours, and bools have no difference", call.op);
            let help = "write `interpolation=nearest`, or cast it, e.g. `cast(x, f64)`";
            return Err(Diagnostic::new(DiagnosticKind::BoolArithmetic, message).help(help));
        }
        // In a typed program a comparison may be the other row already.
        if asks_truth(call.op) || COMPARISONS.iter().any(|(row, mixed)| [*row, *mixed].contains(&call.op)) {
            return Ok(());
        }
        for (i, (o, d)) in call.all.iter().zip(to).enumerate() {
            let OperandType::Scalar(Scalar::Int(v)) = *o else { continue };
            if beyond(v, *d).is_some_and(|side| !bounds_nothing(call.op, i, side)) {
                return Err(overflow(call, i, v, *d));
            }
        }
        Ok(())
    }

    /// Replaces a bound that no element exceeds by the end of the range, and where only truth counts what is beyond the range.
    fn scalar(&self, op: Op, i: usize, s: Scalar, to: DType) -> Scalar {
        let Scalar::Int(v) = s else { return s };
        if asks_truth(op) && beyond(v, to).is_some() {
            return Scalar::Int(1);
        }
        match (to.int_range(), beyond(v, to)) {
            (Some((least, _)), Some(side @ Ordering::Less)) if bounds_nothing(op, i, side) => Scalar::Int(least),
            (Some((_, most)), Some(side @ Ordering::Greater)) if bounds_nothing(op, i, side) => Scalar::Int(most),
            _ => s,
        }
    }

    fn row(&self, call: &Call<'_>, compute: DType) -> Op {
        let or_zero = call.settings.zero_division == ZeroDivision::Rules;
        match (call.op, compute.category()) {
            (Op::FloorDivide, Category::Int) if or_zero => Op::FloorDivideOrZero,
            (Op::Remainder, Category::Int) if or_zero => Op::RemainderOrZero,
            (Op::Fmod, Category::Int) if or_zero => Op::FmodOrZero,
            (Op::DivTrunc, Category::Int) if or_zero => Op::DivTruncOrZero,
            (Op::Remainder, Category::Float) => Op::RemainderSigned,
            // A scalar exponent is not negative: that is refused.
            (Op::Pow, Category::Int) if !compute.is_unsigned() && dtype_at(call, 1).is_some() => Op::PowChecked,
            (Op::Sign | Op::Sgn, Category::Float | Category::Complex) => Op::SignOrNan,
            (Op::Heaviside, Category::Float) => Op::HeavisideOrNan,
            (Op::Angle, Category::Float) => Op::AngleSigned,
            (Op::Ldexp, Category::Float) => Op::LdexpFloat,
            (op, Category::Int) if compares(op) && is_mixed(call, compute) => mixed(op),
            (op, _) => op,
        }
    }

    fn quantiles(&self, _settings: &Settings) -> Quantiles {
        Quantiles { rank: F64, next: true, weighted: false }
    }

    /// `same_kind`: to the same kind or a higher one, also if it narrows.
    fn can_write(&self, operand: &OperandType, to: DType) -> bool {
        match operand {
            OperandType::Tensor { dtype, .. } => kind(*dtype) <= kind(to),
            OperandType::Scalar(s) => s.category() <= to.category(),
        }
    }

    /// What has no dims is a scalar of NumPy, which does not change: reductions and ops of scalars give those.
    fn writes_in_place(&self, rank: usize) -> bool {
        rank > 0
    }

    fn casts_results(&self) -> bool {
        true
    }

    fn composites(&self) -> Composites {
        Composites { isclose_of_float: true, ..Composites::COMMON }
    }
}

/// What `same_kind` compares: category, and whether an integer has a sign.
fn kind(d: DType) -> (Category, bool) {
    (d.category(), d.category() == Category::Int && !d.is_unsigned())
}

/// Whether a dtype holds every value of another one, as NumPy sees it: f64 holds all integers.
fn holds(to: DType, from: DType) -> bool {
    let integer_in_double = from.category() == Category::Int && to.category() > Category::Int && to.real() == F64;
    to.holds(from) || integer_in_double
}

/// Whether NumPy has the dtype itself. Those of other packages (bf16) are results only beside an operand that has them.
/// Of floats NumPy has those that are the parts of complex numbers.
fn is_own(d: DType) -> bool {
    !d.is_float() || d.to_complex().real() == d
}

/// The dtype that a scalar counts as beside tensors whose highest category is `tensors`; `None` if it follows them.
fn counts_as(scalar: Category, tensors: Option<Category>) -> Option<DType> {
    match scalar {
        s if tensors.is_some_and(|t| s <= t) => None,
        Category::Bool => Some(Bool),
        Category::Int => Some(I64),
        Category::Float => Some(F64),
        Category::Complex if tensors == Some(Category::Float) => Some(C64),
        Category::Complex => Some(C128),
    }
}

/// The least dtype of at least a category that holds every operand.
fn least(operands: &[OperandType], category: Category) -> DType {
    let tensors = || operands.iter().filter_map(rule_set::dtype_of);
    let highest = tensors().map(DType::category).max();
    let scalars = operands.iter().filter(|o| matches!(o, OperandType::Scalar(_))).map(category_of);
    let scalar = scalars.max().and_then(|s| counts_as(s, highest));
    let counted = || tensors().chain(scalar);
    let candidates = DType::ALL.into_iter().filter(|d| is_own(*d) && *d != C32).chain(tensors());
    let fits = |d: &DType| d.category() >= category && counted().all(|o| holds(*d, o));
    candidates.filter(fits).min_by_key(|d| (d.category(), d.digits())).unwrap_or(C128)
}

/// The widest integer dtype, unsigned if the given one is.
fn widest(like: Option<DType>) -> DType {
    let unsigned = like.is_some_and(DType::is_unsigned);
    let all = DType::ALL.into_iter().filter(|d| d.category() == Category::Int && d.is_unsigned() == unsigned);
    all.max_by_key(|d| d.digits()).unwrap_or(I64)
}

/// The float dtype of `ldexp`'s first operand. The exponent is an integer that i64 holds.
fn ldexp(call: &Call<'_>) -> Result<DType, Diagnostic> {
    let [x, exponent] = call.promoted else { return Ok(F64) };
    let exponents = rule_set::dtype_of(exponent);
    let own = match *x {
        OperandType::Tensor { dtype, .. } => dtype,
        // A scalar follows the exponents.
        OperandType::Scalar(s) => counts_as(s.category(), exponents.map(DType::category)).unwrap_or(Bool),
    };
    let common = least(&[OperandType::dim(own)], Category::Float);
    let integral = category_of(exponent) <= Category::Int;
    if integral && exponents.is_none_or(|d| holds(I64, d)) {
        return Ok(common);
    }
    let message = format!("the exponent of `{}` is {exponent}, not an integer that i64 holds", call.op);
    let help = if exponents.is_some() { "cast the exponent, e.g. `cast(e, i64)`" } else { "write an integer scalar" };
    Err(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(help))
}

/// The dtype of an operand that is a tensor.
fn dtype_at(call: &Call<'_>, i: usize) -> Option<DType> {
    call.operands.get(i).and_then(rule_set::dtype_of)
}

/// The comparisons, which are exact for integers of any dtypes and scalars of any size.
fn compares(op: Op) -> bool {
    COMPARISONS.iter().any(|(row, _)| *row == op)
}

/// The comparisons, and the rows that compare integers with those of the other signedness.
const COMPARISONS: [(Op, Op); 6] = [
    (Op::Eq, Op::EqMixed),
    (Op::Ne, Op::NeMixed),
    (Op::Lt, Op::LtMixed),
    (Op::Le, Op::LeMixed),
    (Op::Gt, Op::GtMixed),
    (Op::Ge, Op::GeMixed),
];

/// The row that compares integers with those of the other signedness.
fn mixed(op: Op) -> Op {
    COMPARISONS.iter().find(|(row, _)| *row == op).map_or(op, |(_, mixed)| *mixed)
}

/// Whether an integer dtype holds the operand's values.
fn holds_operand(d: DType, o: &OperandType) -> bool {
    match *o {
        OperandType::Tensor { dtype, .. } => d.category() == Category::Int && holds(d, dtype),
        OperandType::Scalar(Scalar::Int(v)) => beyond(v, d).is_none(),
        OperandType::Scalar(s) => s.category() == Category::Bool,
    }
}

/// The dtype in which a comparison is exact: the common one, an integer dtype that also holds the scalar, or, if none
/// holds both operands, one of 64 bits that holds the first: the second operand's bits then count as a number of the
/// other signedness.
fn compared_in(call: &Call<'_>, common: DType) -> DType {
    let integral = call.promoted.iter().all(|o| category_of(o) <= Category::Int);
    let (signed, unsigned) = (widest(None), widest(Some(U8)));
    let all = |d: &DType| call.promoted.iter().all(|o| holds_operand(*d, o));
    let first = |d: &DType| call.promoted.first().is_some_and(|o| holds_operand(*d, o));
    match [signed, unsigned] {
        _ if !integral
            || common.is_integral() && call.promoted.iter().all(|o| common == Bool || holds_operand(common, o)) =>
        {
            common
        }
        wide => wide.into_iter().find(all).or(wide.into_iter().find(first)).unwrap_or(common),
    }
}

/// Whether the second operand of a comparison in an integer dtype is a number of the other signedness.
fn is_mixed(call: &Call<'_>, compute: DType) -> bool {
    call.promoted.get(1).is_some_and(|o| !holds_operand(compute, o))
}

/// Ops of which an operand is true or false, in whatever dtype.
fn asks_truth(op: Op) -> bool {
    matches!(op, Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor)
}

fn clamps(op: Op) -> bool {
    matches!(op, Op::Clamp | Op::ClampMin | Op::ClampMax)
}

/// On which side of an integer dtype's range a number lies.
fn beyond(v: i128, d: DType) -> Option<Ordering> {
    let (least, most) = d.int_range()?;
    if v < least { Some(Ordering::Less) } else { (v > most).then_some(Ordering::Greater) }
}

/// Whether a number on this side of the range is a bound that no element exceeds.
fn bounds_nothing(op: Op, i: usize, side: Ordering) -> bool {
    let lower = i == 1 && op != Op::ClampMax;
    i > 0 && clamps(op) && (side == Ordering::Less) == lower
}

/// The error for an integer that the dtype does not hold.
fn overflow(call: &Call<'_>, i: usize, v: i128, d: DType) -> Diagnostic {
    let name = call.def.operands.get(i).copied().unwrap_or("x");
    let (least, most) = d.int_range().unwrap_or_default();
    let message = format!("`{}` in {d} with `{name}` = {v}: {d} holds {least} to {most}", call.op);
    let wider =
        DType::ALL.into_iter().filter(|w| w.category() == Category::Int && holds(*w, d) && beyond(v, *w).is_none());
    let to = wider.min_by_key(|w| w.digits()).unwrap_or(F64);
    let tensor = (0..call.all.len()).find(|k| *k != i && dtype_at(call, *k).is_some());
    let tensor = tensor.and_then(|k| call.def.operands.get(k)).copied().unwrap_or("x");
    Diagnostic::new(DiagnosticKind::ScalarOverflow, message)
        .help(format!("cast the tensor first, e.g. `cast({tensor}, {to})`"))
}
