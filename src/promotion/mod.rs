//! [`signature`] decides the operand, compute and result dtypes of an application of an op. Nothing else decides
//! dtypes.
//!
//! Guarantees: eager mode, inference and the command call the same function. It sees dtypes, scalars and whether a
//! tensor is 0-d, never the values of tensors. Each rule set has its own file, which implements the trait `RuleSet`.
//! Does not: see shapes (`infer` broadcasts them) or insert casts.

use std::fmt;

use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind, Phrase};
use crate::base::generator::Generator;
use crate::base::host::FloatMode;
use crate::base::scalar::Scalar;
use crate::ops::{Attrs, Choice, Number, Op, OpDef, Output, Promotion};
pub use operand::{OperandType, Signature};
use operand::{category_of, named};

mod help;
mod jax;
mod lattice;
mod numpy;
pub(crate) mod operand;
mod paddle;
mod rule_set;
mod settings;
mod torch;
#[cfg(test)]
mod toy;

pub use lattice::promote_types;
use rule_set::{Call, refuse_integers, refuse_lacking};
pub(crate) use rule_set::{Composites, RuleSet};
pub use settings::{Contraction, Rounding, Rules, Settings, ZeroDivision};
pub(crate) use settings::{Flag, no_default_dtype};

impl Rules {
    /// The implementation of the rule set.
    pub(crate) fn set(self) -> &'static dyn RuleSet {
        match self {
            Rules::Jax => &jax::Jax,
            Rules::NumPy => &numpy::NumPy,
            Rules::Paddle => &paddle::Paddle,
            Rules::Torch => &torch::Torch,
            #[cfg(test)]
            Rules::Toy => &toy::Toy,
        }
    }

    /// The rule set's name in program text, in files and in the command: `torch`, `paddle`, `numpy`.
    pub fn name(self) -> &'static str {
        self.set().name()
    }

    /// The short name of the framework that has these rules: `PyTorch`, `Paddle`, `NumPy`.
    pub fn framework(self) -> &'static str {
        self.set().framework()
    }

    /// The framework's full name: `PyTorch`, `PaddlePaddle`.
    pub fn title(self) -> &'static str {
        self.set().title()
    }

    /// The settings that only these rules, or these and few others, have.
    pub(crate) fn flags(self) -> &'static [Flag] {
        self.set().flags()
    }

    /// The names of those settings: `x64` and `strict` of JAX's rules.
    ///
    /// ```
    /// use castwise::Rules;
    /// assert_eq!(Rules::Jax.own_settings().collect::<Vec<_>>(), ["x64", "strict"]);
    /// assert_eq!(Rules::Torch.own_settings().count(), 0);
    /// ```
    pub fn own_settings(self) -> impl Iterator<Item = &'static str> {
        self.flags().iter().map(|f| f.name)
    }

    /// Whether `x += y` writes into a value with so many dims, which then keeps its dtype and shape, as
    /// [`Var::assign`](crate::Var::assign) computes; else `x` is the new value.
    ///
    /// ```
    /// use castwise::Rules;
    /// assert!(Rules::Torch.writes_in_place(0) && Rules::NumPy.writes_in_place(1));
    /// // Arrays of JAX and scalars of NumPy do not change, and Paddle has no such operators.
    /// assert!(!Rules::Jax.writes_in_place(1) && !Rules::NumPy.writes_in_place(0) && !Rules::Paddle.writes_in_place(1));
    /// ```
    pub fn writes_in_place(self, rank: usize) -> bool {
        self.set().writes_in_place(rank)
    }

    /// Whether these rules have weak tensors, which promote as scalars do.
    pub fn has_weak(self) -> bool {
        self.set().has_weak()
    }

    /// How the operands of an op promote under these rules.
    pub fn promotion(self, op: Op) -> Promotion {
        let (set, def) = (self.set(), op.def());
        promotion_of(set, def, set.choice(def))
    }

    /// The common dtypes that an op accepts under these rules, before integers are converted to float.
    pub fn accepts(self, op: Op) -> DTypeSet {
        let (set, stores) = (self.set(), op.def().promotion == Promotion::Given);
        let all = set.column(op.def()).1;
        if stores { all } else { all.iter().filter(|d| !set.only_stores(*d)).collect() }
    }
}

/// The reason for which an operand is cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The user wrote the cast.
    Requested,
    /// The rule set's table for two dtypes of one category.
    Table,
    /// An operand of a higher category decides the dtype.
    Category,
    /// A 0-d tensor takes the dtype of the tensors with dims.
    ZeroDim,
    /// A weak value, which promotes as a scalar does, takes the dtype of the other tensors.
    Weak,
    /// The op computes in a float dtype: bool and integers are cast to the default one.
    IntToFloat,
    /// The op has no bool arithmetic: bool is cast to an integer dtype, which is i64 for PyTorch and Paddle.
    BoolToInt,
    /// A comparison of 64-bit integers takes the second operand's bits in the first one's dtype, and knows their sign.
    Signedness,
    /// The operand is cast to the dtype in which the reduction combines elements, which may be the requested one.
    Reduction,
}

impl Reason {
    /// The text of the reason, for a cast to this dtype.
    pub fn words(self, to: DType) -> String {
        if self == Reason::BoolToInt { format!("bool to {to}") } else { self.to_string() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Requested => "requested",
            Reason::Table => "table",
            Reason::Category => "category",
            Reason::ZeroDim => "0-d follows dims",
            Reason::Weak => "weak follows strong",
            Reason::IntToFloat => "integers to float",
            Reason::BoolToInt => "bool to i64",
            Reason::Signedness => "bits of the other signedness",
            Reason::Reduction => "dtype of the reduction",
        })
    }
}

/// The kind of loss that a cast may cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CastLoss {
    /// The target dtype holds every value of the source dtype.
    Exact,
    /// Values may be rounded, but stay in the target's range.
    Rounds,
    /// Values may leave the target's range (overflow or saturate), or lose their sign or their imaginary part.
    Range,
}

impl fmt::Display for CastLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CastLoss::Exact => "exact",
            CastLoss::Rounds => "rounds",
            CastLoss::Range => "range",
        })
    }
}

impl CastLoss {
    /// The loss that a cast between two dtypes may cause.
    pub fn of(from: DType, to: DType) -> CastLoss {
        let drops_part = from.category() > to.category();
        let drops_sign = to.is_unsigned() && from.category() != Category::Bool && !from.is_unsigned();
        if to.holds(from) {
            CastLoss::Exact
        } else if drops_part || drops_sign || from.range_bits() > to.range_bits() {
            CastLoss::Range
        } else {
            CastLoss::Rounds
        }
    }
}

/// Decides the operand, compute and result dtypes of one application, or returns why the rules refuse it.
///
/// `operands` has one entry for each operand of the op. The error names the op and all operands, suggests a correction
/// and says what other rule sets would do. It has no source location yet.
pub fn signature(s: &Settings, op: Op, operands: &[OperandType], attrs: &Attrs) -> Result<Signature, Diagnostic> {
    // The code below compares scalars with the ranges of dtypes and prints them, which depends on the floating-point
    // mode.
    let _standard = FloatMode::standard();
    s.check()?;
    decide(s, op, operands, attrs).map_err(|d| elsewhere(d, s, op, operands, attrs))
}

/// What another rule set decides for the same application.
#[derive(PartialEq)]
enum Elsewhere {
    Computes(DType),
    Gives(DType),
    Refuses,
}

/// Adds to the help of an error what the other rule sets do. Rule sets that do the same are listed together.
fn elsewhere(d: Diagnostic, s: &Settings, op: Op, operands: &[OperandType], attrs: &Attrs) -> Diagnostic {
    if matches!(d.kind, DiagnosticKind::BadParameter | DiagnosticKind::ConditionDType) {
        return d;
    }
    let mut dtypes = operands.iter().filter_map(rule_set::dtype_of);
    let first = dtypes.next();
    let mixed = dtypes.any(|d| Some(d) != first);
    let mut found: Vec<(Elsewhere, Vec<Rules>)> = Vec::new();
    for rules in s.rules.others() {
        let what = match decide(&s.with_rules(rules), op, operands, attrs) {
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

/// Joins phrases: `a`, `a and b`, `a, b and c`.
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

/// The steps that all rule sets share. Their order decides which of several mistakes is reported.
fn decide(s: &Settings, op: Op, all: &[OperandType], attrs: &Attrs) -> Result<Signature, Diagnostic> {
    let (def, rules) = (op.def(), s.rules.set());
    if let Some(wrong) = op.wrong_count(all.len()) {
        return Err(wrong);
    }
    refuse_integers(rules, op, all)?;
    if let Some(refused) = help::stored(rules, op, all, attrs) {
        return Err(refused);
    }
    let (operands, parameters) = all.split_at(all.len() - def.parameters().min(all.len()));
    if let Some(p) = parameters.iter().find(|p| matches!(p, OperandType::Tensor { .. })) {
        return Err(Diagnostic::new(
            DiagnosticKind::BadParameter,
            format!("the last operand of `{op}` is {p}, not a scalar"),
        ));
    }
    check_number(op, attrs)?;
    // The condition of `where` does not promote.
    let (condition, promoted) = operands.split_at(usize::from(op == Op::Where));
    condition.iter().try_for_each(|c| check_condition(rules, c))?;
    let accepts = rules.column(def).1;
    let promotion = promotion_of(rules, def, rules.chosen(def, attrs.choice));
    let seen = rules.seen(op, promoted, attrs);
    let promoted = seen.as_deref().unwrap_or(promoted);
    let call = Call { settings: s, op, def, promotion, accepts, all, operands, promoted, attrs };
    let common = common_dtype(rules, &call)?;
    // A reduction or an op on lines with a requested dtype converts its operand to it first.
    let common = if op.has_dims() { attrs.dtype.unwrap_or(common) } else { common };
    let writes = |to: &DType| rules.can_write(&OperandType::dim(common), *to);
    if let Some(to) = attrs.dtype.filter(|to| attrs.output && !writes(to)) {
        let message = format!("result type {common} can't be cast to the desired output type {to}");
        return Err(Diagnostic::new(DiagnosticKind::Cast, message).help(format!("ask for an output of {common}")));
    }
    let result = rules.result(&call, common)?;
    // A custom op accepts the dtypes that it has functions for. That is checked below, on the compute dtype.
    if !accepts.has(common) && !matches!(op, Op::Custom(_)) {
        return Err(help::unsupported(&call, operands, common));
    }
    refuse_negative_exponent(op, operands, common)?;
    let compute = rules.compute(&call, common);
    refuse_lacking(rules, op, compute)?;
    if let Op::Custom(custom) = op
        && !custom.functions().has(compute.op_math())
    {
        return Err(help::no_function(custom, operands, compute));
    }
    check_parameters(op, parameters, common)?;
    let mut dtypes = rules.operands(&call, compute);
    dtypes[..condition.len()].fill(DType::Bool);
    rules.check(&call, &dtypes)?;
    let result = result.unwrap_or(op.result(compute));
    let row = row(rules, &call, compute);
    Ok(Signature { op: row, operands: dtypes, compute, result, weak: rules.weak(&call, result) })
}

/// How the operands of an op with this choice promote: where its result is an element, it needs no float, unless the rules want one.
fn promotion_of(rules: &dyn RuleSet, def: &OpDef, choice: Option<Choice>) -> Promotion {
    let is_element = choice.is_some_and(Choice::is_element) && rules.keeps_elements(def);
    if is_element { Promotion::Common } else { rules.column(def).0 }
}

/// The row with the values that PyTorch gives in f32 and f64 for a sum of products, where it contracts.
fn contracted(op: Op) -> Option<Op> {
    match op {
        Op::AddScaled => Some(Op::AddScaledFma),
        Op::SubScaled => Some(Op::SubScaledFma),
        Op::Addcmul => Some(Op::AddcmulFma),
        Op::Lerp => Some(Op::LerpFma),
        _ => None,
    }
}

/// The op whose row computes the application: that of the compute dtype or of a setting, else the rule set's.
fn row(rules: &dyn RuleSet, call: &Call<'_>, compute: DType) -> Op {
    match call.op {
        Op::Fma | Op::FmaHalf if compute.op_math() != compute => Op::FmaHalf,
        Op::FmaHalf => Op::Fma,
        op if call.settings.contraction == Contraction::Torch && matches!(compute, DType::F32 | DType::F64) => {
            contracted(op).unwrap_or_else(|| rules.row(call, compute))
        }
        _ => rules.row(call, compute),
    }
}

fn check_condition(rules: &dyn RuleSet, condition: &OperandType) -> Result<(), Diagnostic> {
    let help = match condition {
        OperandType::Tensor { dtype, .. } if rules.takes_condition(*dtype) => return Ok(()),
        OperandType::Tensor { .. } => "compare it: `c != 0`",
        OperandType::Scalar(_) => "pass a bool tensor, e.g. a 0-d constant",
    };
    let message = format!("the condition of `where` is {condition}, not a bool tensor");
    Err(Diagnostic::new(DiagnosticKind::ConditionDType, message).help(help))
}

/// The common dtype of the operands. For some promotions it does not depend on whether the rule set mixes the dtypes.
fn common_dtype(rules: &dyn RuleSet, call: &Call<'_>) -> Result<DType, Diagnostic> {
    call.promoted.iter().filter_map(rule_set::dtype_of).try_for_each(|d| refuse_lacking(rules, call.op, d))?;
    match call.promotion {
        Promotion::First => first_dtype(rules, call),
        Promotion::SingleOrDouble if call.promoted.iter().all(rule_set::is_real) => {
            let double = call.promoted.iter().any(|o| rule_set::dtype_of(o) == Some(DType::F64));
            Ok(if double { DType::F64 } else { DType::F32 })
        }
        _ => rules.common(call),
    }
}

/// Refuses a number or a choice for an op that takes none, and one that is not among those that it takes.
fn check_number(op: Op, attrs: &Attrs) -> Result<(), Diagnostic> {
    let bad = |message: String| Err(Diagnostic::new(DiagnosticKind::BadParameter, message));
    match (op.def().choice, attrs.choice) {
        (None, Some(c)) => return bad(format!("`{op}` takes no choice, but is given `{c}`")),
        (Some(of), Some(c)) if !of.among.contains(&c) => {
            let among: Vec<String> = of.among.iter().map(|c| format!("`{c}`")).collect();
            return bad(format!("`{op}` with `{}` = `{c}`, which is none of {}", of.name, among.join(", ")));
        }
        _ => {}
    }
    let (Some(of), Some(n)) = (op.def().number, attrs.number.map(Number::get)) else {
        return match attrs.number {
            Some(n) if op.initial() == Some(n.get()) => Ok(()),
            Some(n) => bad(format!("`{op}` takes no number, but is given {n}")),
            None => Ok(()),
        };
    };
    match of.name {
        name if n.is_nan() => bad(format!("`{op}` with `{name}` = NaN")),
        name if of.counts && n.fract() != 0.0 => bad(format!("`{op}` with `{name}` = {n}, which must be an integer")),
        name if n < of.least && of.most.is_infinite() => {
            bad(format!("`{op}` with `{name}` = {n}, which must be at least {}", of.least))
        }
        name if !(of.least..=of.most).contains(&n) => {
            bad(format!("`{op}` with `{name}` = {n}, which must be from {} to {}", of.least, of.most))
        }
        _ => Ok(()),
    }
}

/// Checks that no parameter has a higher category than the operands, which is PyTorch's rule for `alpha`, and that each
/// is in its range.
fn check_parameters(op: Op, parameters: &[OperandType], common: DType) -> Result<(), Diagnostic> {
    let Some(wanted) = op.def().parameter else { return Ok(()) };
    let fits = |p: &OperandType| match p {
        _ if wanted.converts => rule_set::is_real(p) || common.is_complex(),
        OperandType::Scalar(Scalar::Bool(_)) => common == DType::Bool,
        p => category_of(p) <= common.category().max(Category::Int),
    };
    let inside = |p: &OperandType| match (p, wanted.least) {
        (OperandType::Scalar(Scalar::Float(v)), Some(least)) => *v > least || !wanted.open && *v == least,
        _ => true,
    };
    if let Some(p) = parameters.iter().find(|p| !inside(p)) {
        let (bound, least) = (if wanted.open { "greater than" } else { "at least" }, wanted.least.unwrap_or_default());
        let message = format!("`{op}` with the {p}, which must be {bound} {least}");
        return Err(Diagnostic::new(DiagnosticKind::BadParameter, message));
    }
    match parameters.iter().find(|p| !fits(p)) {
        Some(p) => {
            Err(Diagnostic::new(DiagnosticKind::BadParameter, format!("`{op}` of {common} with the parameter {p}")))
        }
        None => Ok(()),
    }
}

/// The dtype of the first operand, if the rule set lets the others be written into a tensor of that dtype.
fn first_dtype(rules: &dyn RuleSet, call: &Call<'_>) -> Result<DType, Diagnostic> {
    let (op, operands) = (call.op, call.promoted);
    let Some(OperandType::Tensor { dtype: to, .. }) = operands.first() else {
        let message = format!("the first operand of `{op}` is {}, not a tensor", named(&operands[..1]));
        let like = operands.iter().find_map(rule_set::dtype_of);
        let help = format!("pass the scalar as a 0-d {} constant", like.unwrap_or(DType::F32));
        return Err(Diagnostic::new(DiagnosticKind::ArgNotTensor, message).help(help));
    };
    match operands.iter().find(|o| !rules.can_write(o, *to)) {
        Some(o) => {
            let (what, help) = match o {
                OperandType::Tensor { dtype, .. } => (dtype.to_string(), format!("cast it, e.g. `cast(value, {to})`")),
                OperandType::Scalar(s) => (format!("scalar {s}"), format!("pass the scalar as a 0-d {to} constant")),
            };
            let message = format!("`{op}`: result type {what} can't be cast to the desired output type {to}");
            Err(Diagnostic::new(DiagnosticKind::Cast, message).help(help))
        }
        None => Ok(*to),
    }
}

/// The dtype of what a generator makes: the one that is asked for, or the rule set's default. [`Generator::check`] says which
/// it can make.
pub(crate) fn generated(s: &Settings, mut generator: Generator) -> Result<DType, Diagnostic> {
    let rules = s.rules.set();
    let integers = match generator {
        Generator::Index { .. } => return Ok(DType::I64),
        Generator::Bernoulli { .. } => return Ok(DType::Bool),
        Generator::Randint { .. } => true,
        Generator::Arange { start, step, .. } => start.category().max(step.category()) == Category::Int,
        _ => false,
    };
    let asked = generator.dtype_mut().and_then(|d| *d);
    let dtype = asked.unwrap_or_else(|| rules.default_for(s, if integers { Category::Int } else { Category::Float }));
    match rules.lacks(dtype) {
        None => Ok(dtype),
        Some(instead) => {
            let message = format!("`{}`: {} has no {dtype}", generator.name(), rules.framework());
            Err(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(instead))
        }
    }
}

/// The value that a scalar has as the `i`-th operand of an op, given the dtype that it is cast to.
pub(crate) fn scalar_operand(s: &Settings, op: Op, i: usize, scalar: Scalar, to: DType) -> Scalar {
    s.rules.set().scalar(op, i, scalar, to)
}

/// The reason for which an operand of dtype `from` is cast to `to` when an op is applied to these operands.
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
    let narrows = from.digits() > to.digits() || from.range_bits() > to.range_bits();
    if op == Op::Cast {
        Reason::Requested
    } else if op.has_dims() {
        Reason::Reduction
    } else if op.def().output == Output::Bool && other_sign(from, to) {
        Reason::Signedness
    } else if to.category() > highest && to.category() == Category::Int {
        Reason::BoolToInt
    } else if to.category() > highest {
        Reason::IntToFloat
    } else if from.category() < to.category() {
        Reason::Category
    } else if promoted.iter().any(|o| matches!(o, OperandType::Tensor { dtype, weak: true, .. } if *dtype == from)) {
        Reason::Weak
    } else if narrows && promoted.iter().any(|o| matches!(o, OperandType::Tensor { zero_dim: true, .. })) {
        Reason::ZeroDim
    } else {
        Reason::Table
    }
}

/// Whether a cast to a dtype of 64 bits keeps bits whose sign has another meaning.
fn other_sign(from: DType, to: DType) -> bool {
    let integers = from.category() == Category::Int && to.category() == Category::Int;
    integers && to.size() == 8 && !to.holds(from)
}

fn refuse_negative_exponent(op: Op, operands: &[OperandType], common: DType) -> Result<(), Diagnostic> {
    match operands {
        [_, OperandType::Scalar(Scalar::Int(e))] if op == Op::Pow && *e < 0 && common.is_integral() => {
            let message = format!("`pow` of {common} by the negative integer {e}");
            let help = format!("write `{e}.0` for a float result");
            Err(Diagnostic::new(DiagnosticKind::NegativeIntegerPower, message).help(help))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
