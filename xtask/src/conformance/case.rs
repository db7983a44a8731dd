//! A recorded case: an op, its operands and attributes, and the framework's answer.

use castwise::ops::Choice;
use castwise::prelude::*;
use castwise::{Attrs, Op};
use serde_json::{Map, Value};

use super::composed::Composed;

/// How the answer is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cmp {
    Exact,
    /// Like `Exact`, but the two zeros are equal.
    ZeroSignFree,
    /// Positions, of elements that are equal to those at the recorded ones.
    AnyEqual,
    /// Within the function's bar, or the case's relative and absolute tolerance.
    Approx(Option<(f64, f64)>),
    /// The framework disagrees with itself or with its own scalar code; only dtype and shape are compared.
    Informative,
}

pub enum Arg {
    /// A tensor, and whether it is weak.
    Tensor(Tensor, bool),
    Scalar(Scalar),
}

impl Arg {
    pub fn tensor(&self) -> Option<&Tensor> {
        if let Arg::Tensor(t, _) = self { Some(t) } else { None }
    }

    pub fn scalar(&self) -> Option<Scalar> {
        if let Arg::Scalar(s) = self { Some(*s) } else { None }
    }
}

/// The framework's answer.
pub enum Expected {
    Value(Tensor),
    /// An error, by category.
    Error(String),
    /// The framework has no kernel; this is the dtype that it promoted to.
    KernelMissing(Option<DType>),
}

pub struct Case {
    pub file: String,
    pub line: usize,
    pub op_name: String,
    pub op: Op,
    pub args: Vec<Arg>,
    pub attrs: Attrs,
    /// The composed op, if it is not an op of the table; then `op` represents it.
    pub composed: Option<Composed>,
    /// The dtype of the output tensor.
    pub output: Option<DType>,
    /// Whether the result is written to the first operand.
    pub in_place: bool,
    pub settings: Settings,
    pub expected: Expected,
    pub cmp: Cmp,
    /// The relative and the absolute tolerance that are recorded, also where the comparison is informative.
    pub tolerance: Option<(f64, f64)>,
    /// Whether the result is weak, if that is recorded.
    pub weak: Option<bool>,
    /// Whether the framework departs from the rules that castwise promises: then the answer is checked against the
    /// rule.
    pub quirk: bool,
}

/// The reason why a case can't be run.
pub enum Unusable {
    /// The op is not in the table yet, or there is nothing to run: counted as skipped under this name.
    Skipped(String),
    /// The file is malformed.
    Malformed(String),
}

fn malformed(what: &str) -> Unusable {
    Unusable::Malformed(what.into())
}

fn dtype(v: &Value) -> Result<DType, Unusable> {
    let name = v.as_str().ok_or_else(|| malformed("a dtype"))?;
    name.parse().map_err(|_| Unusable::Skipped(format!("dtype {name}")))
}

/// The bytes of all elements: one hex string per element, little-endian.
fn bytes(v: &Value) -> Result<Vec<u8>, Unusable> {
    let mut all = Vec::new();
    for element in v.as_array().ok_or_else(|| malformed("bits"))? {
        let text = element.as_str().filter(|t| t.is_ascii() && t.len() % 2 == 0).ok_or_else(|| malformed("bits"))?;
        for i in (0..text.len()).step_by(2) {
            all.push(u8::from_str_radix(&text[i..i + 2], 16).map_err(|_| malformed("hex"))?);
        }
    }
    Ok(all)
}

pub fn tensor(v: &Value) -> Result<Tensor, Unusable> {
    let dims = v["shape"].as_array().ok_or_else(|| malformed("a shape"))?;
    let shape: Option<Vec<usize>> = dims.iter().map(|d| d.as_u64().map(|n| n as usize)).collect();
    let shape = shape.ok_or_else(|| malformed("a shape"))?;
    Tensor::from_bytes(dtype(&v["dtype"])?, shape, &bytes(&v["bits"])?).map_err(|e| Unusable::Malformed(e.to_string()))
}

fn scalar(v: &Value) -> Result<Scalar, Unusable> {
    let b = bytes(&v["bits"])?;
    let word = |at: usize| b.get(at..at + 8).and_then(|w| w.try_into().ok()).ok_or_else(|| malformed("scalar bits"));
    Ok(match v["dtype"].as_str() {
        Some("bool") => Scalar::Bool(b.first() == Some(&1)),
        Some("int") => Scalar::from(i64::from_le_bytes(word(0)?)),
        Some("float") => Scalar::Float(f64::from_le_bytes(word(0)?)),
        Some("complex") => {
            Scalar::from(num_complex::Complex::new(f64::from_le_bytes(word(0)?), f64::from_le_bytes(word(8)?)))
        }
        _ => return Err(malformed("a scalar's dtype")),
    })
}

/// The op of a recorded name. The name may not be an alias of the table, or the attributes may select among ops.
fn op(name: &str, attrs: &Map<String, Value>) -> Option<Op> {
    Op::from_name(match (name, attrs.contains_key("min"), attrs.contains_key("max")) {
        ("add", ..) if attrs.contains_key("alpha") => "add_scaled",
        ("sub", ..) if attrs.contains_key("alpha") => "sub_scaled",
        ("gelu", ..) if attrs.get("approximate").is_some_and(|a| a == "tanh") => "gelu_tanh",
        ("div_floor", ..) => "floor_divide",
        ("clamp", true, false) => "clamp_min",
        ("clamp", false, true) => "clamp_max",
        (name, ..) => name,
    })
}

/// A Python scalar among the attributes: `2` and `2.0` differ.
fn python(v: &Value) -> Result<Arg, Unusable> {
    let number = || {
        v.as_i64().map(Scalar::from).or_else(|| v.as_u64().map(Scalar::from)).or_else(|| v.as_f64().map(Scalar::Float))
    };
    v.as_bool().map(Scalar::Bool).or_else(number).map(Arg::Scalar).ok_or_else(|| malformed("a number"))
}

/// A number, which may be infinite.
fn number(v: &Value) -> Result<f64, Unusable> {
    let infinite = match v.as_str() {
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        _ => None,
    };
    infinite.or_else(|| v.as_f64()).ok_or_else(|| malformed("a number"))
}

/// A word; of Paddle's medians `min` is the lower element, `avg` the mean.
fn choice(v: &Value) -> Result<Choice, Unusable> {
    let word = match v.as_str() {
        Some("min") => "lower",
        Some("avg") => "midpoint",
        word => word.unwrap_or_default(),
    };
    Choice::from_word(word).ok_or_else(|| malformed("a choice"))
}

/// The attributes of the application, and the default dtype. Some recorded attributes are operands here. One arm per
/// attribute.
fn attributes(
    op: &str,
    all: &Map<String, Value>,
    args: &mut Vec<Arg>,
    settings: &mut Settings,
) -> Result<Attrs, Unusable> {
    let mut attrs = Attrs::default();
    for (key, value) in all {
        match key.as_str() {
            // The operator form and the function form are the same in castwise.
            "via" => {}
            "default_dtype" => settings.default_dtype = dtype(value)?,
            "x64" => settings.x64 = value == true,
            "dtype" => attrs.dtype = Some(dtype(value)?),
            "dim" if value.is_i64() => attrs.dims = value.as_i64().map(|d| [d].into()),
            "dim" if value.is_array() => {
                let dims = value.as_array().into_iter().flatten().map(|d| d.as_i64().ok_or_else(|| malformed("dim")));
                attrs.dims = Some(dims.collect::<Result<_, _>>()?);
            }
            "dim" if value.is_null() => {}
            "approximate" => {}
            key if Composed::takes(key) => {}
            "value" => {}
            "inplace" => {}
            // The dtype of the output is not an attribute of the op.
            "out_dtype" => {}
            "alpha" => args.push(python(value)?),
            "correction" | "p" | "q" | "k" => attrs.number = Some(number(value)?.into()),
            "descending" | "largest" => attrs.choice = Some(if value == true { Choice::True } else { Choice::False }),
            "interpolation" | "mode" => attrs.choice = Some(choice(value)?),
            "keepdim" if value.is_boolean() => attrs.keepdim = value == true,
            "axis" if value.is_i64() => attrs.axis = value.as_i64(),
            // The bounds of a clamp are operands, in this order.
            "min" if op == "clamp" => args.insert(1, python(value)?),
            "max" if op == "clamp" => args.push(python(value)?),
            _ => return Err(Unusable::Skipped(format!("{op} with {key}"))),
        }
    }
    Ok(attrs)
}

impl Case {
    /// Reads one line of a file.
    pub fn parse(file: &str, line: usize, text: &str, rules: Settings) -> Result<Case, Unusable> {
        let v: Value = serde_json::from_str(text).map_err(|e| Unusable::Malformed(e.to_string()))?;
        let name = v["op"].as_str().ok_or_else(|| malformed("no op: is this a file of cases?"))?;
        let empty = Map::new();
        let recorded = v["attrs"].as_object().unwrap_or(&empty);
        let composed = Composed::parse(name, recorded).map_err(Unusable::Skipped)?;
        let op = composed.as_ref().map(|c| c.op).or_else(|| op(name, recorded));
        let op = op.ok_or_else(|| Unusable::Skipped(name.to_string()))?;
        let mut settings = rules;
        let mut args = Vec::new();
        for a in v["args"].as_array().ok_or_else(|| malformed("args"))? {
            args.push(match a["kind"].as_str() {
                Some("tensor") => Arg::Tensor(tensor(a)?, a["weak"] == true),
                Some("scalar") => Arg::Scalar(scalar(a)?),
                _ => return Err(malformed("an operand's kind")),
            });
        }
        let output = recorded.get("out_dtype").map(dtype).transpose()?;
        let in_place = recorded.get("inplace").is_some_and(|v| v == true);
        let attrs = if composed.as_ref().is_some_and(Composed::is_composite) {
            settings.x64 = recorded.get("x64").and_then(Value::as_bool).unwrap_or(settings.x64);
            // A shape that is not the operand's can't be written: castwise takes dims.
            let wanted: Option<Vec<u64>> = recorded
                .get("normalized_shape")
                .and_then(Value::as_array)
                .map(|all| all.iter().filter_map(Value::as_u64).collect());
            let own = args.first().and_then(Arg::tensor).map(|t| t.shape().to_vec()).unwrap_or_default();
            let trailing = |w: &Vec<u64>| w.iter().rev().zip(own.iter().rev()).all(|(a, b)| *a == *b as u64);
            if wanted.as_ref().is_some_and(|w| !trailing(w)) {
                return Err(Unusable::Skipped(format!("{name} of a shape that is not its operand's")));
            }
            Attrs::default()
        } else {
            attributes(name, recorded, &mut args, &mut settings)?
        };
        if matches!(op, Op::Addcmul | Op::Addcdiv) {
            args.push(recorded.get("value").map_or(Ok(Arg::Scalar(Scalar::Int(1))), python)?);
        }
        let (operands, tensors) = (args.len(), args.iter().filter(|a| a.tensor().is_some()).count());
        if composed.as_ref().is_some_and(|c| !c.is_composite()) && tensors < 2 {
            return Err(Unusable::Skipped(format!("{name} with a scalar")));
        }
        if composed.is_none() && operands != op.arity() {
            return Err(Unusable::Skipped(format!("{name} with {} operands", args.len())));
        }
        if args.iter().all(|a| a.tensor().is_none()) {
            return Err(Unusable::Skipped(format!("{name} of scalars alone")));
        }
        let expected = match v["error"].as_str() {
            Some("kernel_missing") => Expected::KernelMissing(dtype(&v["promoted"]).ok()),
            Some(category) => Expected::Error(category.to_string()),
            None => Expected::Value(tensor(&v["out"])?),
        };
        let tolerance = v["rtol"].as_f64().map(|r| (r, v["atol"].as_f64().unwrap_or(0.0)));
        let cmp = match v["cmp"].as_str() {
            Some("exact") | None => Cmp::Exact,
            Some("zero_sign_free") => Cmp::ZeroSignFree,
            Some("any_equal") => Cmp::AnyEqual,
            // A case without `atol` is compared relatively.
            Some("approx") => Cmp::Approx(tolerance),
            Some("quirk" | "unstable") => Cmp::Informative,
            Some(_) => return Err(malformed("cmp")),
        };
        let quirk = v["quirk"].as_bool().unwrap_or(false);
        let weak = (rules.rules == Rules::Jax && v["out"].is_object()).then(|| v["out"]["weak"] == true);
        let (file, op_name) = (file.to_string(), name.to_string());
        Ok(Case {
            file,
            line,
            op_name,
            op,
            args,
            attrs,
            composed,
            output,
            in_place,
            settings,
            expected,
            cmp,
            tolerance,
            weak,
            quirk,
        })
    }

    /// The application of an op to tensors, without a recorded answer.
    pub fn bare(file: &str, op: Op, tensors: Vec<Tensor>, settings: Settings) -> Case {
        Case {
            file: file.to_string(),
            line: 0,
            op_name: op.name().to_string(),
            op,
            args: tensors.into_iter().map(|t| Arg::Tensor(t, false)).collect(),
            attrs: Attrs::default(),
            composed: None,
            output: None,
            in_place: false,
            settings,
            expected: Expected::KernelMissing(None),
            cmp: Cmp::Informative,
            tolerance: None,
            weak: None,
            quirk: false,
        }
    }

    /// The operands' dtypes and shapes, as one line.
    pub fn summary(&self) -> String {
        let one = |a: &Arg| match a {
            Arg::Tensor(t, weak) => format!("{}{}{:?}", t.dtype(), if *weak { "*" } else { "" }, t.shape()),
            Arg::Scalar(s) => format!("~{s}"),
        };
        format!("{}({})", self.op_name, self.args.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}
