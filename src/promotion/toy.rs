//! A rule set for tests: as different from the others as one file can make it.
//!
//! The leftmost tensor of the highest category decides, whatever the others are; scalars follow the tensors, but a higher category
//! makes them its widest dtype. Integers divide to f64, and bool counts as i8. There is no bf16. Whatever is not zero is a condition.
//! Outputs keep their category. An integer scalar that does not fit is refused.
//!
//! Guarantees: it takes its column of the op table, and nothing but that and this file says what it does.

use super::rule_set::{self, Call, RuleSet};
use super::{OperandType, Rules, category_of};
use crate::dtype::{Category, DType, DTypeSet};
use crate::error::{Diagnostic, Fault, Phrase};
use crate::ops::{OpDef, Promotion};
use crate::scalar::Scalar;

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
        call.promoted
            .iter()
            .filter_map(rule_set::dtype_of)
            .try_for_each(|d| rule_set::refuse_lacking(self, call.op, d))?;
        let highest = call.promoted.iter().map(category_of).max().unwrap_or(Category::Bool);
        let of_highest = |d: &DType| d.category() == highest;
        let widest = match highest {
            Category::Bool => DType::Bool,
            Category::Int => DType::I64,
            Category::Float => DType::F64,
            Category::Complex => DType::C128,
        };
        Ok(call.promoted.iter().filter_map(rule_set::dtype_of).find(of_highest).unwrap_or(widest))
    }

    fn float_for(&self, _call: &Call<'_>, _common: DType) -> DType {
        DType::F64
    }

    fn int_for_bool(&self, _call: &Call<'_>) -> DType {
        DType::I8
    }

    fn check(&self, call: &Call<'_>, to: &[DType]) -> Result<(), Diagnostic> {
        for (o, to) in call.all.iter().zip(to) {
            let (OperandType::Scalar(Scalar::Int(v)), Some((least, most))) = (o, to.int_range()) else { continue };
            if call.def.toy.fits && !(least..=most).contains(&i128::from(*v)) {
                let message = Phrase::from(format!("`{}` with the {o} under ", call.op)).and(Rules::Toy.mention());
                let message = message.and(format!(", which {to} can't hold"));
                return Err(Diagnostic::new(Fault::BadParameter, message).help("cast the tensor to a wider dtype"));
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
