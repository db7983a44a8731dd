//! JAX's rules: a lattice of dtypes in which scalars, and what is computed from scalars alone, are weak.
//!
//! Source: JAX's "Type promotion semantics", and runs of JAX 0.10.2 on CPU, of which `tests/golden` has every pair of
//! dtypes for every op.
//!
//! The nodes of the lattice are the dtypes and three weak ones, of an integer, a float and a complex number. An integer
//! never widens a float: `i64 + bf16` is bf16. A weak operand gives the result its category, and its dtype only if no
//! strong operand has that category. The result is weak if the operands' bound in the lattice is a weak node, and then
//! promotes as a scalar does. 0-d tensors promote like any tensor. `Settings::x64` decides the dtypes of the weak
//! nodes, and whether u32 and i32 meet in i64 or stay in 32 bits.

use smallvec::SmallVec;

use super::help;
use super::operand::{OperandType, category_of, named};
use super::rule_set::{Call, RuleSet};
use super::settings::{Flag, Rules, Settings};
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind, Phrase};
use crate::base::scalar::Scalar;
use crate::ops::{Choice, MAX_OPERANDS, Op, OpDef, Promotion, Quantiles, Weakness};

/// JAX's rules.
pub(super) struct Jax;

impl RuleSet for Jax {
    fn name(&self) -> &'static str {
        "jax"
    }

    fn framework(&self) -> &'static str {
        "JAX"
    }

    fn flags(&self) -> &'static [Flag] {
        &[Flag { name: "x64", of: |s| &mut s.x64 }, Flag { name: "strict", of: |s| &mut s.strict }]
    }

    fn number(&self, def: &OpDef) -> Option<f64> {
        def.jax.number.or(def.number.and_then(|n| n.default))
    }

    fn choice(&self, def: &OpDef) -> Option<Choice> {
        def.jax.choice.or(def.choice.map(|c| c.default))
    }

    /// `nearest` of two elements that are as near is the lower one.
    fn meaning(&self, choice: Choice) -> Choice {
        if choice == Choice::Nearest { Choice::NearestDown } else { choice }
    }

    fn keeps_elements(&self, def: &OpDef) -> bool {
        !def.jax.floats_elements
    }

    fn column(&self, def: &OpDef) -> (Promotion, DTypeSet) {
        (def.jax.promotion.unwrap_or(def.promotion), def.jax.accepts.unwrap_or(def.accepts))
    }

    fn notes(&self, def: &OpDef) -> Vec<&'static str> {
        let j = &def.jax;
        let notes = [
            (j.beside_zero, "as with the scalar 0"),
            (j.default_float, "integers to the default float"),
            (j.short_positions, "positions are i32"),
            (j.count_apart, "the second operand does not promote"),
            (j.weak == Weakness::Dropped, "never weak"),
            (j.weak == Weakness::Real, "weak if real"),
            (j.weak == Weakness::Float, "weak if computed from floats"),
            (j.weak == Weakness::FirstScalar, "weak after a scalar"),
            (j.weak == Weakness::Power, "not weak after an integer exponent that is a tensor"),
        ];
        notes.into_iter().filter_map(|(holds, note)| holds.then_some(note)).collect()
    }

    fn lacks(&self, dtype: DType) -> Option<&'static str> {
        (dtype == DType::C32).then_some("use c64")
    }

    /// `check` knows the default integer dtype.
    fn has_integer(&self, _v: i128) -> bool {
        true
    }

    /// XLA computes in 8-bit floats, as in f16.
    fn only_stores(&self, _dtype: DType) -> bool {
        false
    }

    fn beyond_is_nan(&self) -> bool {
        true
    }

    fn takes_condition(&self, _dtype: DType) -> bool {
        true
    }

    fn common(&self, call: &Call<'_>) -> Result<DType, Diagnostic> {
        if let (true, [_, count]) = (call.op == Op::Ldexp, call.promoted) {
            refuse_fraction(call, count)?;
        }
        bound(call).map(|node| node.dtype).ok_or_else(|| refused(call))
    }

    /// Integers become the narrowest of f32 and f64 that is as wide.
    fn float_for(&self, call: &Call<'_>, common: DType) -> DType {
        if call.def.jax.default_float {
            return default_dtype(call.settings, Category::Float);
        }
        if common.size() > DType::F32.size() { DType::F64 } else { DType::F32 }
    }

    fn default_for(&self, settings: &Settings, category: Category) -> DType {
        default_dtype(settings, category)
    }

    /// Sums and products of lines are in the default dtype.
    fn int_for_bool(&self, call: &Call<'_>) -> DType {
        if call.op.is_line() { default_dtype(call.settings, Category::Int) } else { DType::I32 }
    }

    /// An integer keeps its sign, and has at least the default width.
    fn int_for_sum(&self, call: &Call<'_>, common: DType) -> DType {
        let least = default_dtype(call.settings, Category::Int);
        integer(8 * least.size().max(common.size()), common.is_unsigned()).unwrap_or(least)
    }

    /// The mean of integers is computed in floats also if an integer dtype is asked for. Positions have the default integer
    /// dtype, those of `top_k` i32.
    fn result(&self, call: &Call<'_>, _common: DType) -> Result<Option<DType>, Diagnostic> {
        if call.op.gives_long() {
            let short = call.def.jax.short_positions;
            return Ok(Some(if short { DType::I32 } else { default_dtype(call.settings, Category::Int) }));
        }
        Ok(call.attrs.dtype.filter(|asked| call.op == Op::Mean && asked.is_integral()))
    }

    /// A count is not rounded to 16 bits.
    fn operands(&self, call: &Call<'_>, compute: DType) -> [DType; MAX_OPERANDS] {
        let mut dtypes = [compute; MAX_OPERANDS];
        let exact = if takes_count(call) { 1 } else { call.operands.len() };
        dtypes[exact..].fill(compute.op_math());
        dtypes
    }

    fn has_weak(&self) -> bool {
        true
    }

    fn weak(&self, call: &Call<'_>, result: DType) -> bool {
        let first = call.promoted.first().map(|o| node_of(call.settings, o));
        let scalar = |i: usize| matches!(call.promoted.get(i), Some(OperandType::Scalar(_)));
        let common = match call.promotion {
            Promotion::Given => None,
            Promotion::First => first,
            _ => bound(call),
        };
        let Some(common) = common.filter(|node| node.weak && result != DType::Bool) else { return false };
        match call.def.jax.weak {
            Weakness::Kept => true,
            Weakness::Dropped => false,
            Weakness::Real => common.dtype.category() < Category::Complex,
            Weakness::Float => common.dtype.category() > Category::Int,
            Weakness::FirstScalar => scalar(0),
            Weakness::Power if scalar(1) => true,
            Weakness::Power => {
                let base = first.map_or(Category::Bool, |n| n.dtype.category());
                let count = call.promoted.get(1).map(|o| node_of(call.settings, o));
                let strong = count.is_some_and(|n| !n.weak && n.dtype.category() == Category::Int);
                !(common.dtype.is_integral() || strong && base > Category::Int)
            }
        }
    }

    /// Refuses an integer that the default integer dtype can't hold, whatever dtype it would be converted to, but not the exponent of
    /// a power, which JAX does not convert. Others wrap.
    fn check(&self, call: &Call<'_>, _to: &[DType]) -> Result<(), Diagnostic> {
        let default = default_dtype(call.settings, Category::Int);
        let Some((least, most)) = default.int_range() else { return Ok(()) };
        for (i, o) in call.all.iter().enumerate() {
            let OperandType::Scalar(Scalar::Int(v)) = o else { continue };
            if call.op == Op::Pow && i == 1 || (least..=most).contains(v) {
                continue;
            }
            let message =
                Phrase::from(format!("`{}` with the {o}, which is beyond {default}, the integer of ", call.op));
            let message = message.and(Rules::Jax.mention());
            let help = if call.settings.x64 {
                "pass the scalar as a 0-d constant of another dtype"
            } else {
                "pass the scalar as a 0-d constant, or turn `x64` on"
            };
            return Err(Diagnostic::new(DiagnosticKind::ScalarOverflow, message).help(help));
        }
        Ok(())
    }

    /// JAX does not convert the exponent of an integer power to the base's dtype. One beyond the dtype is replaced by
    /// one that gives the same powers modulo two to the number of bits: those of odd numbers repeat after a quarter of
    /// that, and those of even numbers are 0 from an exponent of the number of bits on.
    fn scalar(&self, op: Op, i: usize, scalar: Scalar, to: DType) -> Scalar {
        match (scalar, to.int_range()) {
            (Scalar::Int(e), Some((_, most))) if op == Op::Pow && i == 1 && e > most => {
                let period = 1i128 << (8 * to.size() - 2);
                Scalar::Int(e % period + period)
            }
            _ => scalar,
        }
    }

    fn row(&self, call: &Call<'_>, compute: DType) -> Op {
        match (call.op, compute.category()) {
            (Op::Sign | Op::Sgn, Category::Float) => Op::SignOfZero,
            (Op::Sign | Op::Sgn, Category::Complex) => Op::SignOrNan,
            (Op::Heaviside, Category::Float) => Op::HeavisideOrNan,
            (Op::Angle, Category::Float) => Op::AngleSigned,
            // So that a typed program, whose operands are floats, can be copied.
            (Op::Ldexp, Category::Float) => Op::LdexpFloat,
            (op, _) => op,
        }
    }

    /// Arrays of JAX do not change.
    fn writes_in_place(&self, _rank: usize) -> bool {
        false
    }

    fn quantiles(&self, settings: &Settings) -> Quantiles {
        Quantiles { rank: default_dtype(settings, Category::Float), next: false, weighted: true }
    }

    /// XLA computes every power by C's `pow`.
    fn takes_roots(&self) -> bool {
        false
    }
}

/// A node of the lattice. bool is never weak.
#[derive(Clone, Copy, PartialEq)]
struct Node {
    dtype: DType,
    weak: bool,
}

impl Node {
    fn strong(dtype: DType) -> Node {
        Node { dtype, weak: false }
    }

    fn weak(settings: &Settings, category: Category) -> Node {
        Node { dtype: default_dtype(settings, category), weak: category > Category::Bool }
    }
}

/// The dtype of the weak node of a category.
fn default_dtype(settings: &Settings, category: Category) -> DType {
    match (category, settings.x64) {
        (Category::Bool, _) => DType::Bool,
        (Category::Int, false) => DType::I32,
        (Category::Int, true) => DType::I64,
        (Category::Float, false) => DType::F32,
        (Category::Float, true) => DType::F64,
        (Category::Complex, false) => DType::C64,
        (Category::Complex, true) => DType::C128,
    }
}

fn node_of(settings: &Settings, operand: &OperandType) -> Node {
    match operand {
        OperandType::Tensor { dtype, weak, .. } => Node { dtype: *dtype, weak: *weak && *dtype != DType::Bool },
        OperandType::Scalar(_) => Node::weak(settings, category_of(operand)),
    }
}

/// Whether the second operand is a count, which takes no part in promotion: that of `ldexp`, or an integer scalar as exponent.
fn takes_count(call: &Call<'_>) -> bool {
    let integer = matches!(call.promoted, [_, OperandType::Scalar(Scalar::Int(_) | Scalar::Bool(_))]);
    call.def.jax.count_apart || call.op == Op::Pow && integer
}

/// The bound of an application's operands in the lattice; `None` if they have none.
fn bound(call: &Call<'_>) -> Option<Node> {
    let promoted = if takes_count(call) { &call.promoted[..call.promoted.len().min(1)] } else { call.promoted };
    let zero = call.def.jax.beside_zero.then(|| Node::weak(call.settings, Category::Int));
    let nodes: SmallVec<[Node; MAX_OPERANDS + 1]> =
        promoted.iter().map(|o| node_of(call.settings, o)).chain(zero).collect();
    least_upper_bound(call.settings, &nodes)
}

/// The least node that no node of the list is above.
fn least_upper_bound(settings: &Settings, nodes: &[Node]) -> Option<Node> {
    let first = *nodes.first()?;
    if nodes.iter().all(|n| *n == first) {
        return Some(first);
    }
    if nodes.iter().all(|n| n.weak) && !settings.strict {
        // The dtypes of weak nodes are the default ones, but for those that a user declares.
        let dtypes = nodes.iter().map(|n| n.dtype);
        let dtype = dtypes.map(Some).reduce(|a, b| Some(join(settings, a?, b?)?.dtype)).flatten()?;
        return Some(Node { dtype, weak: true });
    }
    let weak = nodes.iter().filter(|n| n.weak).map(|n| n.dtype.category()).max().unwrap_or(Category::Bool);
    let mut strong = nodes.iter().filter(|n| !n.weak);
    let Some(mut common) = strong.next().copied() else { return Some(Node::weak(settings, weak)) };
    if settings.strict {
        // Equal dtypes, and weak operands of no higher category. The category bool has no weak operands.
        let joins = common.dtype.category() >= weak && common.dtype != DType::Bool;
        return (joins && strong.all(|n| *n == common)).then_some(common);
    }
    let mut weak = weak;
    for n in strong {
        if common.weak {
            // Integers without a common integer are a weak float.
            weak = weak.max(common.dtype.category());
            common = *n;
            continue;
        }
        common = join(settings, common.dtype, n.dtype)?;
    }
    if common.weak {
        return Some(Node::weak(settings, weak.max(common.dtype.category())));
    }
    match (common.dtype.category(), weak) {
        (own, weak) if own >= weak => Some(common),
        (Category::Float, _) => complex_of(common.dtype).map(Node::strong),
        _ => Some(Node::weak(settings, weak)),
    }
}

/// The least node above two dtypes.
fn join(settings: &Settings, a: DType, b: DType) -> Option<Node> {
    let (low, high) = if a.category() <= b.category() { (a, b) } else { (b, a) };
    if a == b {
        return Some(Node::strong(a));
    }
    let dtype = match (low.category(), high.category()) {
        (Category::Int, Category::Int) => match integers(settings, low, high) {
            Some(dtype) => dtype,
            None => return Some(Node::weak(settings, Category::Float)),
        },
        (Category::Float, Category::Float) => floats(low, high)?,
        (Category::Float, Category::Complex) => wider(complex_of(low)?, high),
        (Category::Complex, Category::Complex) => wider(low, high),
        _ => high,
    };
    Some(Node::strong(dtype))
}

/// The integer dtype of a number of bits.
fn integer(bits: usize, unsigned: bool) -> Option<DType> {
    let is = |d: &DType| d.category() == Category::Int && d.is_unsigned() == unsigned && 8 * d.size() == bits;
    DType::ALL.into_iter().find(is)
}

/// The integer dtype that holds both; `None` if there is none. With default dtypes of 32 bits, operands of less than 64
/// bits have a result of less than 64 bits.
fn integers(settings: &Settings, a: DType, b: DType) -> Option<DType> {
    if a.is_unsigned() == b.is_unsigned() {
        return Some(wider(a, b));
    }
    let (unsigned, signed) = if a.is_unsigned() { (a, b) } else { (b, a) };
    let bits = 8 * signed.size().max(2 * unsigned.size());
    let held = integer(bits, false)?;
    let most = 8 * signed.size().max(unsigned.size()).max(4);
    if settings.x64 { Some(held) } else { integer(bits.min(most), false) }
}

/// The float dtype that holds both, but for 8-bit floats, which mix with no other.
fn floats(a: DType, b: DType) -> Option<DType> {
    let holds = |d: &DType| {
        d.is_float() && d.digits() >= a.digits().max(b.digits()) && d.range_bits() >= a.range_bits().max(b.range_bits())
    };
    let least = DType::ALL.into_iter().filter(holds).min_by_key(|d| (d.size(), d.digits()));
    least.filter(|_| a.size() > 1 && b.size() > 1)
}

/// The complex dtype beside a float, but for 8-bit floats. There is none of 16-bit parts.
fn complex_of(float: DType) -> Option<DType> {
    (float.size() > 1).then(|| float.to_complex().op_math())
}

fn wider(a: DType, b: DType) -> DType {
    if a.size() >= b.size() { a } else { b }
}

/// The error for operands without a bound.
fn refused(call: &Call<'_>) -> Diagnostic {
    let strict = if call.settings.strict { " and `strict`" } else { "" };
    let message = format!("`{}` has no implicit promotion for {} under ", call.op, named(call.promoted));
    let message = Phrase::from(message).and(Rules::Jax.mention()).and(strict);
    let dtypes: Vec<DType> = call.promoted.iter().map(|o| node_of(call.settings, o).dtype).collect();
    let help = help::mix(call.op, call.accepts, call.promoted, &dtypes);
    Diagnostic::new(DiagnosticKind::PromotionRefused, message).help(help)
}

/// Returns an error for a count that is no integer.
fn refuse_fraction(call: &Call<'_>, count: &OperandType) -> Result<(), Diagnostic> {
    if category_of(count) <= Category::Int {
        return Ok(());
    }
    let message = format!("`{}`: the second operand is {count}, not an integer", call.op);
    let help = match count {
        OperandType::Tensor { .. } => format!("cast it, e.g. `cast({}, i32)`", call.def.operands[1]),
        OperandType::Scalar(_) => "write an integer scalar".to_string(),
    };
    Err(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(help))
}
