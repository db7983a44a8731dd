//! The losses and composites among the recorded cases, which are methods of a handle that are composed of ops.

use castwise::prelude::*;
use castwise::{Composite, DType, Error, Op, Operand, PoissonNll, Reduction};
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
    /// The composite, if it is one and no loss.
    composite: Option<Composite>,
}

/// The composite with a recorded name and attributes; `Err` names what castwise does not have.
fn composite(name: &str, attrs: &Map<String, Value>) -> Result<Option<Composite>, String> {
    let Some(mut made) = Composite::named(name) else { return Ok(None) };
    for (key, value) in attrs {
        let unknown = || format!("{name} with {key} = {value}");
        let integers = || value.as_array().map(|all| all.iter().filter_map(Value::as_i64).collect::<Vec<_>>());
        let number = match value.as_str() {
            Some("inf") => Some(f64::INFINITY),
            Some("-inf") => Some(f64::NEG_INFINITY),
            Some("nan") => Some(f64::NAN),
            _ => value.as_f64(),
        };
        made = match key.as_str() {
            "via" | "default_dtype" | "x64" => made,
            "dim" => made.over(value.as_i64().map(|d| vec![d]).or_else(integers).ok_or_else(unknown)?),
            // As many trailing dims.
            "normalized_shape" => {
                let n = integers().ok_or_else(unknown)?.len() as i64;
                made.over((-n..0).collect::<Vec<_>>())
            }
            "dtype" => made.dtype(value.as_str().and_then(|d| d.parse::<DType>().ok()).ok_or_else(unknown)?),
            "equal_nan" => made.equal_nan(value == true),
            key => made.number(key, number.ok_or_else(unknown)?)?,
        };
    }
    Ok(Some(made))
}

impl Composed {
    /// The composed op with a recorded name; `Err` names the parameter that castwise does not accept.
    pub fn parse(name: &str, attrs: &Map<String, Value>) -> Result<Option<Composed>, String> {
        if let Some(composite) = composite(name, attrs)? {
            let (op, parameter, reduction, poisson) = (Op::PromoteWith, 1.0, "none".to_string(), PoissonNll::default());
            return Ok(Some(Composed { op, parameter, reduction, poisson, composite: Some(composite) }));
        }
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
        Ok(Some(Composed { op, parameter, reduction, poisson, composite: None }))
    }

    /// Whether this is an attribute of a composed op.
    pub fn takes(key: &str) -> bool {
        matches!(key, "delta" | "beta" | "reduction" | "log_input" | "full" | "eps" | "epsilon")
    }

    /// Whether this is a composite, which may have one operand or three.
    pub fn is_composite(&self) -> bool {
        self.composite.is_some()
    }

    /// The reduction with the recorded name, or the library's error.
    pub fn reduction(&self) -> Result<Reduction, Error> {
        self.reduction.parse()
    }

    /// The result for two operands; `None` if they are not two tensors or the reduction's name is unknown.
    pub fn apply<M: Mode>(&self, operands: &[Operand<M>]) -> Option<Var<M>> {
        if let (Some(composite), [Operand::Var(x), rest @ ..]) = (&self.composite, operands) {
            return Some(x.composite(composite, rest));
        }
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
