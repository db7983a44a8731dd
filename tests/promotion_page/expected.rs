//! What `signature` says for a cell that is known by the titles of its tier, row and column.

use castwise::ops::{Output, Promotion};
use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, CastLoss, Complex, DType, Op, Program, Rules, Scalar, Settings};

/// What a cell has to show.
#[derive(Debug, PartialEq)]
pub struct Expected {
    pub class: &'static str,
    pub shown: String,
    pub compute: Option<DType>,
    /// Parts of the reason.
    pub why: Vec<String>,
}

fn operand(kind: &str, title: &str, rules: Rules) -> OperandType {
    let dtype = || title.trim_end_matches('*').parse::<DType>().unwrap();
    match kind {
        "tensor" | "from" | "to" => OperandType::dim(dtype()),
        "0-d tensor" => OperandType::zero(dtype()),
        "weak tensor" if rules == Rules::Jax => OperandType::weak(dtype()),
        "weak tensor" => OperandType::dim(dtype()),
        "scalar" => OperandType::Scalar(match title {
            "bool" => Scalar::Bool(true),
            "int" => Scalar::Int(2),
            "float" => Scalar::Float(2.5),
            _ => Scalar::Complex(Complex::new(2.0, 1.0)),
        }),
        other => panic!("the tier has {other}"),
    }
}

fn word(loss: CastLoss) -> &'static str {
    match loss {
        CastLoss::Exact => "exact",
        CastLoss::Rounds => "rounds",
        CastLoss::Range => "range",
    }
}

/// A text as the page prints it, without marks for code.
fn printed(text: &str) -> String {
    text.replace('`', "").replace("->", "→")
}

fn refused(message: &str, help: Option<&str>) -> Expected {
    // The help begins with a correction, unless it says no more than what other rule sets would do.
    let first = help.and_then(|h| h.split("; ").next()).filter(|h| !h.contains(" would ") && !h.contains("refuse"));
    let why = [Some(message), first].into_iter().flatten().map(printed).collect();
    Expected { class: "refused", shown: String::new(), compute: None, why }
}

pub fn cell(settings: &Settings, op: Op, tier: &str, row: &str, column: &str) -> Expected {
    let (first, second) = tier.split_once(", ").unwrap_or((tier, tier));
    let row = if row == "result" { column } else { row };
    let (x, y) = (operand(first, row, settings.rules), operand(second, column, settings.rules));
    if op.def().promotion == Promotion::Given {
        return given(settings, op, row.parse().unwrap(), column.parse().unwrap());
    }
    let def = op.def();
    let mut operands = vec![x];
    if op == Op::Where {
        operands.insert(0, OperandType::dim(DType::Bool));
    }
    operands.resize(def.operands.len() - def.parameters(), y);
    operands.resize(def.operands.len(), OperandType::Scalar(Scalar::Int(1)));
    let s = match signature(settings, op, &operands, &Attrs::default()) {
        Ok(s) => s,
        Err(d) => {
            let d = d.worded(|_, rules| rules.parse::<Rules>().unwrap().framework().to_string());
            return refused(&d.message, d.help.as_deref());
        }
    };
    let mut casts: Vec<(String, DType, DType)> = Vec::new();
    for (i, o) in operands.iter().enumerate() {
        if let OperandType::Tensor { dtype, .. } = o {
            casts.push((format!("{}: ", def.operands[i]), *dtype, s.operand(i)));
        }
    }
    let gives = match def.output {
        Output::Bool => DType::Bool,
        Output::Real | Output::FoldReal => s.compute.real(),
        Output::FoldLong | Output::LineLong => s.result,
        _ => s.compute,
    };
    casts.push(("the result is cast: ".to_string(), gives, s.result));
    casts.retain(|(_, from, to)| from != to);
    let worst = casts.iter().map(|(_, from, to)| CastLoss::of(*from, *to)).max().unwrap_or(CastLoss::Exact);
    let why = casts.iter().map(|(name, from, to)| format!("{name}{from} → {to}")).collect();
    let star = if s.weak { "*" } else { "" };
    Expected { class: word(worst), shown: format!("{}{star}", s.result), compute: Some(s.compute), why }
}

/// A cast, or a view of the bits as another dtype.
fn given(settings: &Settings, op: Op, from: DType, to: DType) -> Expected {
    let program = Program::with_settings(*settings);
    let x = program.data("x", from, [2]);
    let y = if op == Op::Cast { x.cast(to) } else { x.view_as(to) };
    match program.infer() {
        Err(e) => refused(&e.diagnostics()[0].message, None),
        Ok(typed) => {
            assert_eq!(typed.dtype(&y), Some(to));
            let loss = if op == Op::Cast { CastLoss::of(from, to) } else { CastLoss::Exact };
            let shown = if op == Op::Cast { word(loss).to_string() } else { to.to_string() };
            Expected { class: word(loss), shown, compute: Some(to), why: Vec::new() }
        }
    }
}
