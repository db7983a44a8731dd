//! The losses among the recorded cases, which are methods of a handle that are composed of ops.

use castwise::prelude::*;
use castwise::{Error, Op, Operand, PoissonNll, Reduction};
use serde_json::{Map, Value};

/// A composed op with its parameters.
#[derive(Clone, Debug)]
pub struct Composed {
    /// The op that represents the loss: the one that computes its elements.
    pub op: Op,
    parameter: f64,
    /// The recorded name. It is kept as text because the error for an unknown name is part of the comparison.
    reduction: String,
    poisson: PoissonNll,
}

impl Composed {
    /// The composed op with a recorded name; `Err` names the parameter that castwise does not accept.
    pub fn parse(name: &str, attrs: &Map<String, Value>) -> Result<Option<Composed>, String> {
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
        // A case without the attribute was recorded without a reduction.
        let reduction = attrs.get("reduction").map_or("none", |r| r.as_str().unwrap_or_default()).to_string();
        let flag = |key, default| attrs.get(key).and_then(Value::as_bool).unwrap_or(default);
        let epsilon = attrs.get("eps").or(attrs.get("epsilon")).and_then(Value::as_f64).unwrap_or(1e-8);
        let (log_input, full) = (flag("log_input", true), flag("full", false));
        let poisson = PoissonNll { log_input, full, epsilon, reduction: Reduction::None };
        Ok(Some(Composed { op, parameter, reduction, poisson }))
    }

    /// Whether this is an attribute of a composed op.
    pub fn takes(key: &str) -> bool {
        matches!(key, "delta" | "beta" | "reduction" | "log_input" | "full" | "eps" | "epsilon")
    }

    /// The reduction with the recorded name, or the library's error.
    pub fn reduction(&self) -> Result<Reduction, Error> {
        self.reduction.parse()
    }

    /// The result for two operands; `None` if they are not two tensors or the reduction's name is unknown.
    pub fn apply<M: Mode>(&self, operands: &[Operand<M>]) -> Option<Var<M>> {
        let [Operand::Var(x), Operand::Var(y)] = operands else { return None };
        let reduction = self.reduction().ok()?;
        Some(match self.op {
            Op::Sub => x.l1_loss(y, reduction),
            Op::SquaredDifference => x.mse_loss(y, reduction),
            Op::PromoteWith => x.poisson_nll_loss(y, PoissonNll { reduction, ..self.poisson }),
            Op::Huber => x.huber_loss(y, self.parameter, reduction),
            _ => x.smooth_l1_loss(y, self.parameter, reduction),
        })
    }
}
