//! What a rule set is: the questions that [`signature`](super::signature) and a few others ask of it.
//!
//! A rule set is one file that implements [`RuleSet`], its variant in [`Rules`](super::Rules), and its column of the op table. What
//! most of them do alike is the default of a method.
//!
//! Guarantees: a rule set sees all of an application but its shapes, so that it can decide by the op, by a scalar's value or by a
//! setting. Does not: say in which order things are refused; `signature` does.

use super::Settings;
use super::operand::{OperandType, category_of};
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::scalar::Scalar;
use crate::ops::{Attrs, LossShapes, Op, OpDef, Promotion};

/// One application, as a rule set sees it.
pub(crate) struct Call<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) op: Op,
    pub(crate) def: &'static OpDef,
    /// How the op promotes under the rule set.
    pub(crate) promotion: Promotion,
    /// The common dtypes that it takes under the rule set.
    pub(crate) accepts: DTypeSet,
    /// All operands, as they were written.
    pub(crate) all: &'a [OperandType],
    /// The operands that are no parameters.
    pub(crate) operands: &'a [OperandType],
    /// Of these the ones that promote: all but the condition of `where`.
    pub(crate) promoted: &'a [OperandType],
    pub(crate) attrs: &'a Attrs,
}

impl Call<'_> {
    /// Whether operand `i` is a parameter.
    pub(crate) fn is_parameter(&self, i: usize) -> bool {
        self.def.parameter.is_some() && i >= self.operands.len()
    }
}

/// How a framework composes its losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    /// How the operands of `huber_loss` meet.
    pub(crate) huber: LossShapes,
    /// Whether `poisson_nll_loss` promotes its operands before it computes, wants equal shapes, and refuses an epsilon that is not
    /// positive.
    pub(crate) poisson_promotes: bool,
}

/// Whose rules decide about mixed dtypes, and what else differs with them.
pub(crate) trait RuleSet: Sync {
    /// As programs, files and the command name it: `torch`.
    fn name(&self) -> &'static str;

    /// The framework, in prose: `PyTorch`.
    fn framework(&self) -> &'static str;

    /// The framework's full name.
    fn title(&self) -> &'static str {
        self.framework()
    }

    // The op table.

    /// How an op promotes, and which common dtypes it takes: its row, and where this rule set's column departs from it.
    fn column(&self, def: &OpDef) -> (Promotion, DTypeSet);

    /// What docs/ops.md says of an op besides.
    fn notes(&self, _def: &OpDef) -> Vec<&'static str> {
        Vec::new()
    }

    // Operands.

    /// What to use instead of a dtype that the framework does not have; `None` if it has it.
    fn lacks(&self, _dtype: DType) -> Option<&'static str> {
        None
    }

    /// Whether a tensor of this dtype can be the condition of `where`. It is cast to bool.
    fn takes_condition(&self, dtype: DType) -> bool {
        dtype == DType::Bool
    }

    /// The operands that promote, where they count as others than they are.
    fn seen(&self, _call: &Call<'_>) -> Option<Vec<OperandType>> {
        None
    }

    /// The common dtype of the operands that promote, or their refusal. 0-d tensors and scalars count here as they do for the rule
    /// set.
    fn common(&self, call: &Call<'_>) -> Result<DType, Diagnostic>;

    // What the op computes in, and gives.

    /// The float dtype that a bool or an integer becomes where an op wants floats.
    fn float_for(&self, call: &Call<'_>, _common: DType) -> DType {
        call.settings.default_dtype
    }

    /// The integer dtype that bool becomes where an op has no bool arithmetic.
    fn int_for_bool(&self, _call: &Call<'_>) -> DType {
        DType::I64
    }

    /// The dtype that an op computes in, of its operands' common dtype.
    fn compute(&self, call: &Call<'_>, common: DType) -> DType {
        let asked = call.op.is_reduction() && call.attrs.dtype.is_some();
        match call.promotion {
            Promotion::Common | Promotion::First | Promotion::SingleOrDouble => common,
            Promotion::IntToFloat if common.is_integral() => self.float_for(call, common),
            Promotion::BoolToInt if common == DType::Bool && !asked => self.int_for_bool(call),
            Promotion::IntToDouble if common.is_integral() => DType::F64,
            Promotion::ToDouble if common.is_complex() => DType::C128,
            Promotion::ToDouble => DType::F64,
            Promotion::ToLong if common.is_integral() && call.attrs.dtype.is_none() => DType::I64,
            Promotion::SomeToLong if matches!(common, DType::Bool | DType::I32) && call.attrs.dtype.is_none() => {
                DType::I64
            }
            Promotion::Truth => DType::Bool,
            Promotion::Given => call.attrs.dtype.unwrap_or(common),
            Promotion::IntToFloat | Promotion::BoolToInt | Promotion::IntToDouble => common,
            Promotion::ToLong | Promotion::SomeToLong => common,
        }
    }

    /// The dtype that operand `i` is cast to, for the one that the op computes in. A dtype whose op math this is makes the
    /// operand one that is not rounded first.
    fn operand(&self, call: &Call<'_>, i: usize, compute: DType) -> DType {
        if call.is_parameter(i) { compute.op_math() } else { compute }
    }

    /// The dtype that the result is cast to, if not the one that the op gives; or why it can't be.
    fn result(&self, _call: &Call<'_>, _common: DType) -> Result<Option<DType>, Diagnostic> {
        Ok(None)
    }

    /// Whether the result promotes as a scalar does. Under PyTorch's and Paddle's rules no tensor does.
    fn weak(&self, _call: &Call<'_>, _result: DType) -> bool {
        false
    }

    /// What is wrong with the operands, once it is known which dtype each is cast to: scalars that it can't hold.
    fn check(&self, _call: &Call<'_>, _to: &[DType]) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// What a scalar stands for as operand `i` of an op, in the dtype it goes to.
    fn scalar(&self, _op: Op, _i: usize, scalar: Scalar, _to: DType) -> Scalar {
        scalar
    }

    // Outputs.

    /// Whether an operation in place or with an output can write an operand into a tensor of this dtype.
    fn can_write(&self, operand: &OperandType, to: DType) -> bool {
        category_of(operand) <= to.category()
    }

    /// Whether a result that a caller has a tensor of another dtype for is cast to that.
    fn casts_results(&self) -> bool {
        false
    }

    // Values.

    /// Whether powers of 0.5 and -0.5 are roots, which differ from C's `pow` at -inf and -0.
    fn takes_roots(&self) -> bool {
        true
    }

    /// How losses are composed.
    fn losses(&self) -> Losses {
        Losses { huber: LossShapes::Broadcast, poisson_promotes: false }
    }
}

/// What a framework says of an application to a dtype that it does not have.
pub(super) fn refuse_lacking(rules: &dyn RuleSet, op: Op, dtype: DType) -> Result<(), Diagnostic> {
    match rules.lacks(dtype) {
        None => Ok(()),
        Some(instead) => {
            let message = format!("`{op}`: {} has no {dtype}", rules.framework());
            Err(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(instead))
        }
    }
}

/// The dtype of a tensor.
pub(super) fn dtype_of(operand: &OperandType) -> Option<DType> {
    match operand {
        OperandType::Tensor { dtype, .. } => Some(*dtype),
        OperandType::Scalar(_) => None,
    }
}

/// Whether an operand is a real one: complex numbers are never converted to real ones.
pub(super) fn is_real(operand: &OperandType) -> bool {
    category_of(operand) < Category::Complex
}
