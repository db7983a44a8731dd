//! Losses among the recorded cases: methods of a handle, not rows of the table.

use castwise::prelude::*;
use castwise::{Op, Operand, PoissonNll, Reduction};
use serde_json::{Map, Value};

/// A loss with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The row that computes its elements.
    pub op: Op,
    parameter: f64,
    reduction: Reduction,
    poisson: PoissonNll,
}

impl Loss {
    /// The loss of a recorded name; `Err` names what castwise does not take.
    pub fn parse(name: &str, attrs: &Map<String, Value>) -> Result<Option<Loss>, String> {
        let (op, parameter) = match name {
            "l1_loss" => (Op::Sub, None),
            "mse_loss" => (Op::SquaredDifference, None),
            "huber_loss" => (Op::Huber, Some("delta")),
            "smooth_l1_loss" => (Op::SmoothL1, Some("beta")),
            "poisson_nll_loss" => (Op::PromoteWith, None),
            _ => return Ok(None),
        };
        let parameter = parameter.and_then(|p| attrs.get(p)).map_or(Some(1.0), Value::as_f64);
        let parameter = parameter.ok_or_else(|| format!("{name} with a parameter that is no number"))?;
        // A case without the attribute was recorded element by element.
        let reduction = attrs.get("reduction").map_or(Ok(Reduction::None), |r| r.as_str().unwrap_or_default().parse());
        let reduction = reduction.map_err(|_| format!("{name} with an unknown reduction"))?;
        let flag = |key, default| attrs.get(key).and_then(Value::as_bool).unwrap_or(default);
        let epsilon = attrs.get("eps").or(attrs.get("epsilon")).and_then(Value::as_f64).unwrap_or(1e-8);
        let poisson = PoissonNll { log_input: flag("log_input", true), full: flag("full", false), epsilon, reduction };
        Ok(Some(Loss { op, parameter, reduction, poisson }))
    }

    /// Whether an attribute is one of a loss.
    pub fn takes(key: &str) -> bool {
        matches!(key, "delta" | "beta" | "reduction" | "log_input" | "full" | "eps" | "epsilon")
    }

    /// The loss of two operands.
    pub fn apply<M: Mode>(&self, operands: &[Operand<M>]) -> Option<Var<M>> {
        let [Operand::Var(x), Operand::Var(y)] = operands else { return None };
        Some(match self.op {
            Op::Sub => x.l1_loss(y, self.reduction),
            Op::SquaredDifference => x.mse_loss(y, self.reduction),
            Op::PromoteWith => x.poisson_nll_loss(y, self.poisson),
            Op::Huber => x.huber_loss(y, self.parameter, self.reduction),
            _ => x.smooth_l1_loss(y, self.parameter, self.reduction),
        })
    }
}
