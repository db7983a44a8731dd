//! A rule set for tests, which differs from the others in as many ways as possible.
//!
//! The leftmost tensor of the highest category decides. Scalars follow the tensors, but a scalar of a higher category
//! makes the result that category's widest dtype, and weak: from then on it promotes as a scalar. Integers divide to
//! f64, and bool is promoted to i8. There is no bf16. A condition can have any dtype, and nonzero elements are true.
//! Outputs keep their category. An integer scalar that does not fit is refused.
//!
//! Guarantees: this file and its column of the op table define the rule set completely.

use super::Rules;
use super::operand::{OperandType, category_of};
use super::rule_set::{Call, RuleSet};
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind, Phrase};
use crate::base::scalar::Scalar;
use crate::ops::{Op, OpDef, Promotion};

/// The rules.
pub(super) struct Toy;

impl RuleSet for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn framework(&self) -> &'static str {
        "Toy"
    }

    fn column(&self, def: &OpDef) -> (Promotion, DTypeSet) {
        (def.promotion, def.accepts)
    }

    fn lacks(&self, dtype: DType) -> Option<&'static str> {
        (dtype == DType::BF16).then_some("use f32")
    }

    fn takes_condition(&self, _dtype: DType) -> bool {
        true
    }

    fn common(&self, call: &Call<'_>) -> Result<DType, Diagnostic> {
        let highest = call.promoted.iter().map(category_of).max().unwrap_or(Category::Bool);
        let tensors = |of: bool| {
            let tensor = move |o: &OperandType| match *o {
                OperandType::Tensor { dtype, weak, .. } if weak == of && dtype.category() == highest => Some(dtype),
                _ => None,
            };
            call.promoted.iter().find_map(tensor)
        };
        let widest = match highest {
            Category::Bool => DType::Bool,
            Category::Int => DType::I64,
            Category::Float => DType::F64,
            Category::Complex => DType::C128,
        };
        Ok(tensors(false).or(tensors(true)).unwrap_or(widest))
    }

    fn float_for(&self, _call: &Call<'_>, _common: DType) -> DType {
        DType::F64
    }

    fn int_for_bool(&self, _call: &Call<'_>) -> DType {
        DType::I8
    }

    fn has_weak(&self) -> bool {
        true
    }

    /// A result is weak if no strong tensor has its category.
    fn weak(&self, call: &Call<'_>, result: DType) -> bool {
        let strong = |o: &OperandType| match *o {
            OperandType::Tensor { dtype, weak: false, .. } => dtype.category() >= result.category(),
            _ => false,
        };
        call.op != Op::Cast && result != DType::Bool && !call.promoted.iter().any(strong)
    }

    fn check(&self, call: &Call<'_>, to: &[DType]) -> Result<(), Diagnostic> {
        for (o, to) in call.all.iter().zip(to) {
            let (OperandType::Scalar(Scalar::Int(v)), Some((least, most))) = (o, to.int_range()) else { continue };
            if call.def.toy.fits && !(least..=most).contains(v) {
                let message = Phrase::from(format!("`{}` with the {o} under ", call.op)).and(Rules::Toy.mention());
                let message = message.and(format!(", which {to} can't hold"));
                return Err(
                    Diagnostic::new(DiagnosticKind::BadParameter, message).help("cast the tensor to a wider dtype")
                );
            }
        }
        Ok(())
    }

    fn can_write(&self, operand: &OperandType, to: DType) -> bool {
        category_of(operand) == to.category()
    }
}

#[cfg(test)]
mod tests;
