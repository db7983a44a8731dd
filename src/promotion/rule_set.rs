//! The trait [`RuleSet`]: what [`signature`](super::signature) and a few other functions need to know about a rule set.
//!
//! A rule set consists of one file that implements [`RuleSet`], a variant of [`Rules`](super::Rules), and a column of
//! the op table. Where most rule sets behave alike, a method has that behaviour as its default.
//!
//! Guarantees: a rule set sees everything about an application but its shapes, so its decision can depend on the op, on
//! a scalar's value or on a setting. Does not: decide in which order mistakes are reported; `signature` does.

use super::operand::{OperandType, category_of};
use super::{Flag, Settings};
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::scalar::Scalar;
use crate::ops::{Attrs, Choice, LossShapes, MAX_OPERANDS, Op, OpDef, Promotion, Quantiles};

/// One application of an op, as passed to a rule set.
pub(crate) struct Call<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) op: Op,
    pub(crate) def: &'static OpDef,
    /// The op's promotion under the rule set.
    pub(crate) promotion: Promotion,
    /// The common dtypes that the op accepts under the rule set.
    pub(crate) accepts: DTypeSet,
    /// All operands, as the user wrote them.
    pub(crate) all: &'a [OperandType],
    /// The operands that are not parameters.
    pub(crate) operands: &'a [OperandType],
    /// The `operands` that promote, which are all but the condition of `where`.
    pub(crate) promoted: &'a [OperandType],
    pub(crate) attrs: &'a Attrs,
}

/// How a framework composes its losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    /// How the shapes of `huber_loss`'s operands combine.
    pub(crate) huber: LossShapes,
    /// Whether `poisson_nll_loss` promotes its operands before it computes, requires equal shapes, and refuses an
    /// epsilon that is not positive.
    pub(crate) poisson_promotes: bool,
}

/// How a framework composes functions of rows of the op table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Composites {
    /// Whether those of floats take integers, which become floats as those of `exp` do.
    pub(crate) integers: bool,
    /// Whether norms take complex numbers.
    pub(crate) complex_norms: bool,
    /// Whether `dot`, `vecdot` and `isclose` want one dtype; else their operands promote.
    pub(crate) one_dtype: bool,
    /// The dtypes that `dot` takes.
    pub(crate) dot: DTypeSet,
    /// Whether `dot` takes matrices, row by row.
    pub(crate) dot_by_rows: bool,
    /// The dtypes that `vecdot` takes.
    pub(crate) vecdot: DTypeSet,
    /// Whether `cosine_similarity` bounds the product of norms, not each; then integers do not promote.
    pub(crate) joint_norms: bool,
    /// Whether `isclose` compares integers in f64 and asks whether y is finite, not whether the distance is.
    pub(crate) isclose_of_y: bool,
    /// Whether `isclose` to a number compares with it as a float, which promotes as one.
    pub(crate) isclose_of_float: bool,
    /// The dtypes that `nan_to_num` takes.
    pub(crate) nan_to_num: DTypeSet,
}

impl Composites {
    /// Those of JAX and, but for what it overrides, of NumPy.
    pub(crate) const COMMON: Composites = Composites {
        integers: true,
        complex_norms: true,
        one_dtype: false,
        dot: DTypeSet::ALL,
        dot_by_rows: false,
        vecdot: DTypeSet::ALL,
        joint_norms: false,
        isclose_of_y: true,
        isclose_of_float: false,
        nan_to_num: DTypeSet::ALL,
    };
}

/// The promotion rules of one framework, and other behaviour that differs between frameworks.
pub(crate) trait RuleSet: Sync {
    /// The rule set's name in program text, in files and in the command: `torch`.
    fn name(&self) -> &'static str;

    /// The framework's short name: `PyTorch`.
    fn framework(&self) -> &'static str;

    /// The framework's full name.
    fn title(&self) -> &'static str {
        self.framework()
    }

    /// The rule set's own settings that are on or off.
    fn flags(&self) -> &'static [Flag] {
        &[]
    }

    // The op table.

    /// An op's promotion and the common dtypes that it accepts: those of its row, unless this rule set's column
    /// overrides them.
    fn column(&self, def: &OpDef) -> (Promotion, DTypeSet);

    /// The number that an op has among its attributes if none is given; `None` if it takes none, or must be given one.
    fn number(&self, def: &OpDef) -> Option<f64> {
        def.number.and_then(|n| n.default)
    }

    /// The number that an op computes with, of elements of this dtype, if this one is given.
    fn number_of(&self, _def: &OpDef, number: f64, _elements: DType) -> f64 {
        number
    }

    /// The choice that an op has among its attributes if none is given; `None` if it takes none.
    fn choice(&self, def: &OpDef) -> Option<Choice> {
        def.choice.map(|c| c.default)
    }

    /// What a choice means that is given or the default.
    fn meaning(&self, choice: Choice) -> Choice {
        choice
    }

    /// The choice that an op computes with; `None` if it takes none.
    fn chosen(&self, def: &OpDef, given: Option<Choice>) -> Option<Choice> {
        self.choice(def).map(|default| self.meaning(given.unwrap_or(default)))
    }

    /// Whether the result of an op by rank keeps its operand's dtype where its choice says that it is an element.
    fn keeps_elements(&self, _def: &OpDef) -> bool {
        true
    }

    /// Further notes about an op in docs/ops.md.
    fn notes(&self, _def: &OpDef) -> Vec<&'static str> {
        Vec::new()
    }

    // Operands.

    /// Whether the framework has a scalar of this value: those of i64, unless it says otherwise.
    fn has_integer(&self, v: i128) -> bool {
        i64::try_from(v).is_ok()
    }

    /// The help text for a dtype that the framework lacks; `None` if it has the dtype.
    fn lacks(&self, _dtype: DType) -> Option<&'static str> {
        None
    }

    /// Whether tensors of this dtype can only be stored and cast: those of 8-bit floats, unless a rule set computes in
    /// them.
    fn only_stores(&self, dtype: DType) -> bool {
        dtype.is_byte_float()
    }

    /// Whether a float beyond the range of a dtype without infinities becomes a NaN, not the largest number.
    fn beyond_is_nan(&self) -> bool {
        false
    }

    /// Whether a tensor of this dtype can be the condition of `where`, which is cast to bool.
    fn takes_condition(&self, dtype: DType) -> bool {
        dtype == DType::Bool
    }

    /// Replaces the operands that promote, if the rule set treats them as other operand types.
    fn seen(&self, _op: Op, _promoted: &[OperandType], _attrs: &Attrs) -> Option<Vec<OperandType>> {
        None
    }

    /// The common dtype of the operands that promote, or the error. The rule set has the dtypes of the tensors, and decides how
    /// 0-d tensors and scalars take part.
    fn common(&self, call: &Call<'_>) -> Result<DType, Diagnostic>;

    // What the op computes in, and gives.

    /// The float dtype that bool and integers are cast to if an op computes in floats.
    fn float_for(&self, call: &Call<'_>, _common: DType) -> DType {
        call.settings.default_dtype
    }

    /// The dtype of new integers or floats of which no dtype is asked.
    fn default_for(&self, settings: &Settings, category: Category) -> DType {
        if category == Category::Int { DType::I64 } else { settings.default_dtype }
    }

    /// The integer dtype that bool is cast to if an op has no bool arithmetic.
    fn int_for_bool(&self, _call: &Call<'_>) -> DType {
        DType::I64
    }

    /// The integer dtype that bool or an integer is summed in.
    fn int_for_sum(&self, _call: &Call<'_>, _common: DType) -> DType {
        DType::I64
    }

    /// The dtype that an op computes in, given its operands' common dtype.
    fn compute(&self, call: &Call<'_>, common: DType) -> DType {
        computes_in(self, call, common)
    }

    /// The dtypes that the operands and the parameter are cast to, given the compute dtype. An operand that is cast to
    /// the op math dtype of a narrow compute dtype is not rounded to the narrow dtype.
    fn operands(&self, call: &Call<'_>, compute: DType) -> [DType; MAX_OPERANDS] {
        let mut dtypes = [compute; MAX_OPERANDS];
        if call.def.parameter.is_some() {
            dtypes[call.operands.len()..].fill(compute.op_math());
        }
        dtypes
    }

    /// The dtype that the result is cast to, `None` if it keeps the op's result dtype, or the error if the cast is not
    /// allowed.
    fn result(&self, _call: &Call<'_>, _common: DType) -> Result<Option<DType>, Diagnostic> {
        Ok(None)
    }

    /// Whether the rule set has weak tensors, which promote as scalars do. Others take all tensors for strong.
    fn has_weak(&self) -> bool {
        false
    }

    /// Whether the result is weak: it promotes as a scalar does.
    fn weak(&self, _call: &Call<'_>, _result: DType) -> bool {
        false
    }

    /// Checks the operands when the dtype that each is cast to is known, e.g. for scalars that the dtype can't hold.
    fn check(&self, _call: &Call<'_>, _to: &[DType]) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// The value that a scalar has as operand `i` of an op, given the dtype that it is cast to.
    fn scalar(&self, _op: Op, _i: usize, scalar: Scalar, _to: DType) -> Scalar {
        scalar
    }

    /// The op whose row computes the application in its compute dtype. Where the framework's values are not those of
    /// the op, it is a row that has them; it takes the same operands, and is its own row.
    fn row(&self, call: &Call<'_>, _compute: DType) -> Op {
        call.op
    }

    // Outputs.

    /// Whether an in-place operation, or one with an output tensor, can write an operand into a tensor of this dtype.
    fn can_write(&self, operand: &OperandType, to: DType) -> bool {
        category_of(operand) <= to.category()
    }

    /// Whether `x += y` writes into a value of this rank, which keeps its dtype and shape; else it makes a new value.
    fn writes_in_place(&self, _rank: usize) -> bool {
        true
    }

    /// Whether a result is cast to the dtype of the caller's output tensor.
    fn casts_results(&self) -> bool {
        false
    }

    // Values.

    /// Whether powers of 0.5 and -0.5 are computed as roots, which differ from C's `pow` at -inf and -0.
    fn takes_roots(&self) -> bool {
        true
    }

    /// How the framework composes functions of rows of the op table.
    fn composites(&self) -> Composites {
        Composites::COMMON
    }

    /// How the framework computes quantiles.
    fn quantiles(&self, _settings: &Settings) -> Quantiles {
        Quantiles { rank: DType::F64, next: false, weighted: false }
    }

    /// How the framework composes losses.
    fn losses(&self) -> Losses {
        Losses { huber: LossShapes::Broadcast, poisson_promotes: false }
    }
}

/// The dtype that an op computes in, as its promotion says.
pub(super) fn computes_in<R: RuleSet + ?Sized>(rules: &R, call: &Call<'_>, common: DType) -> DType {
    let asked = call.op.has_dims() && call.attrs.dtype.is_some();
    match call.promotion {
        // A reduction may have been asked for an integer dtype.
        Promotion::SingleOrDouble if common.is_integral() => DType::F32,
        Promotion::Common | Promotion::First | Promotion::SingleOrDouble => common,
        Promotion::IntToFloat if common.is_integral() => rules.float_for(call, common),
        Promotion::BoolToInt if common == DType::Bool && !asked => rules.int_for_bool(call),
        Promotion::IntToDouble if common.is_integral() => DType::F64,
        Promotion::ToDouble if common.is_complex() => DType::C128,
        Promotion::ToDouble => DType::F64,
        Promotion::ToLong if common.is_integral() && call.attrs.dtype.is_none() => rules.int_for_sum(call, common),
        Promotion::SomeToLong if matches!(common, DType::Bool | DType::I32) && call.attrs.dtype.is_none() => DType::I64,
        Promotion::Truth => DType::Bool,
        Promotion::Given => call.attrs.dtype.unwrap_or(common),
        Promotion::IntToFloat | Promotion::BoolToInt | Promotion::IntToDouble => common,
        Promotion::ToLong | Promotion::SomeToLong => common,
    }
}

/// The error for an application of an op to a dtype that the framework lacks.
pub(super) fn refuse_lacking(rules: &dyn RuleSet, op: Op, dtype: DType) -> Result<(), Diagnostic> {
    match rules.lacks(dtype) {
        None => Ok(()),
        Some(instead) => {
            let message = format!("`{op}`: {} has no {dtype}", rules.framework());
            Err(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(instead))
        }
    }
}

/// The error for a scalar that the framework does not have.
pub(super) fn refuse_integers(rules: &dyn RuleSet, op: Op, operands: &[OperandType]) -> Result<(), Diagnostic> {
    let beyond = |o: &OperandType| match *o {
        OperandType::Scalar(Scalar::Int(v)) if !rules.has_integer(v) || Scalar::integer(v).is_none() => Some(v),
        _ => None,
    };
    let Some(v) = operands.iter().find_map(beyond) else { return Ok(()) };
    let message = format!("`{op}` with the integer {v}, which is beyond the integers of {}", rules.framework());
    let help = format!("write `{v}.0` for a float, or pass it as a 0-d u64 constant");
    Err(Diagnostic::new(DiagnosticKind::BadParameter, message).help(help))
}

/// The dtype of a tensor operand; `None` for a scalar.
pub(super) fn dtype_of(operand: &OperandType) -> Option<DType> {
    match operand {
        OperandType::Tensor { dtype, .. } => Some(*dtype),
        OperandType::Scalar(_) => None,
    }
}

/// Whether an operand is real. Promotion never converts complex numbers to real ones.
pub(super) fn is_real(operand: &OperandType) -> bool {
    category_of(operand) < Category::Complex
}
