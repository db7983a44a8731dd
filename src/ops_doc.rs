//! `docs/ops.md`: the op table as a document.
//!
//! Guarantees: everything in it comes from the rows, from `signature` and from what computes, so that it is true as
//! long as `tests/ops_doc.rs` passes. Does not: know any op by name.

use crate::backend::is_lowerable_at;
use crate::base::dtype::{Category, DType};
use crate::base::scalar::Scalar;
use crate::kernels::{CpuLevel, kernel};
use crate::ops::{Attrs, MAX_OPERANDS, Op, OpDef, Promotion};
use crate::plan::kernel::{Step, StepOp};
use crate::promotion::operand::{OperandType, Signature};
use crate::promotion::{Rules, Settings, signature};

const CATEGORIES: [Category; 4] = [Category::Bool, Category::Int, Category::Float, Category::Complex];

const HEAD: &str = "\
# Ops

Made from the op table (`src/ops/table.rs`) by `CASTWISE_BLESS=1 cargo test --test ops_doc`; do not edit.

An op is a method of `Var`, and a function of expressions by its name or an alias. For each rule set:

- **promotion**: how operands of several dtypes become the one the op computes in (`castwise::ops::Promotion`): to their
  *common* dtype, from which *int to float* takes bool and integers on to the default float dtype, and so on;
- **accepts**: the dtypes that operands of one dtype may have;
- **gives**: the result's dtype for them, with the default dtype f32.

What is *compiled* becomes part of a fused loop; a *block kernel* runs beside it, tile by tile, with the same bits. Both
are listed by the dtype that the op computes in, which for f16 and bf16 is f32 and for c32 is c64 unless they are listed;
as it is on machines with AVX-512, and behind that what is compiled on others if that is less.
What an op of one operand gives for f16 and bf16 is the exact result, correctly rounded; docs/accuracy.md names the exceptions.
";

/// The document.
pub fn ops_markdown() -> String {
    let mut text = HEAD.to_string();
    text += "\nGroups of dtypes:";
    for (i, c) in CATEGORIES.into_iter().enumerate().skip(1) {
        let members = DType::ALL.into_iter().filter(|d| d.category() == c).map(DType::name);
        text += &format!("{} *{c}* is {}", if i == 1 { "" } else { ";" }, members.collect::<Vec<_>>().join(" "));
    }
    text += ".\n";
    for op in Op::ALL {
        text += &section(op.def());
    }
    text
}

fn section(def: &OpDef) -> String {
    let dtype = if def.op.takes_dtype() { ", dtype" } else { "" };
    let mut text = format!("\n## {}\n\n{}\n\n`{0}({}{dtype})`", def.name, def.doc.trim(), def.operands.join(", "));
    for (i, alias) in def.aliases.iter().enumerate() {
        text += &format!("{} `{alias}`", if i == 0 { ", also" } else { "," });
    }
    let parameters = &def.operands[def.operands.len() - def.parameters()..];
    if !parameters.is_empty() {
        text += &format!("; `{}` is a scalar that takes no part in promotion", parameters.join("`, `"));
    }
    if def.op.is_reduction() {
        text += "; combines the elements along the given dims, or all";
    }
    text += "\n\n| rules | promotion | accepts | gives |\n| --- | --- | --- | --- |\n";
    for rules in Rules::ALL.iter().copied() {
        let accepted = accepted(def, rules);
        let dtypes: Vec<DType> = accepted.iter().map(|(d, _)| *d).collect();
        let given = gives(def, &accepted);
        text += &format!("| {rules} | {} | {} | {given} |\n", promotion(def, rules), names(&dtypes));
    }
    text + &computed(def)
}

/// The dtypes that operands of one dtype may have, and what the op does with them.
fn accepted(def: &OpDef, rules: Rules) -> Vec<(DType, Signature)> {
    let settings = Settings::new(rules);
    let one = |d: DType| {
        let mut operands = vec![OperandType::dim(d); def.operands.len()];
        if def.operands[0] == "condition" {
            operands[0] = OperandType::dim(DType::Bool);
        }
        let parameters = operands.len() - def.parameters();
        operands[parameters..].fill(OperandType::Scalar(Scalar::Int(1)));
        Some((d, signature(&settings, def.op, &operands, &Attrs::default()).ok()?))
    };
    DType::ALL.into_iter().filter_map(one).collect()
}

fn promotion(def: &OpDef, rules: Rules) -> String {
    let how = words(&format!("{:?}", rules.promotion(def.op)));
    [how].into_iter().chain(rules.set().notes(def).into_iter().map(String::from)).collect::<Vec<_>>().join("; ")
}

/// `IntToFloat` as `int to float`.
fn words(camel: &str) -> String {
    let mut text = String::new();
    for c in camel.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

fn gives(def: &OpDef, accepted: &[(DType, Signature)]) -> String {
    if def.promotion == Promotion::Given {
        return "the dtype asked for".into();
    }
    let all = |d: DType| accepted.iter().all(|(_, s)| s.result == d);
    if let Some((_, first)) = accepted.first()
        && all(first.result)
    {
        return first.result.to_string();
    }
    let mut parts = Vec::new();
    for to in DType::ALL {
        let changed = accepted.iter().filter(|(d, s)| s.result == to && *d != to);
        let from: Vec<DType> = changed.map(|(d, _)| *d).collect();
        if !from.is_empty() {
            parts.push(format!("{to} for {}", names(&from)));
        }
    }
    if parts.is_empty() {
        return "the same".into();
    }
    if accepted.iter().any(|(d, s)| s.result == *d) {
        parts.push("else the same".into());
    }
    parts.join(", ")
}

/// Dtypes, whole categories by their name.
fn names(dtypes: &[DType]) -> String {
    if dtypes.len() == DType::ALL.len() {
        return "all".into();
    }
    let mut parts = Vec::new();
    for c in CATEGORIES {
        let of = |all: &[DType]| all.iter().filter(|d| d.category() == c).map(|d| d.to_string()).collect::<Vec<_>>();
        let (here, whole) = (of(dtypes), of(&DType::ALL));
        if here.len() == whole.len() { parts.push(c.to_string()) } else { parts.extend(here) }
    }
    if parts.is_empty() { "none".into() } else { parts.join(" ") }
}

/// In which dtypes the op is compiled, and in which a block kernel runs.
fn computed(def: &OpDef) -> String {
    let [mut compiled, mut blocks, mut avx2, mut narrow] = [const { Vec::new() }; 4];
    let mut computes: Vec<DType> = Vec::new();
    for rules in Rules::ALL.iter().copied() {
        computes.extend(accepted(def, rules).iter().map(|(_, s)| s.compute));
    }
    for compute in DType::ALL.into_iter().filter(|d| computes.contains(d)) {
        let found = [compute, compute.op_math()].map(|d| kernel(def.op, d, CpuLevel::Baseline).map(|_| d));
        let Some(dtype) = found[0].or(found[1]) else { continue };
        let step = Step { op: StepOp::Apply(def.op), dtype, args: [None; MAX_OPERANDS], out: 0 };
        let list = if is_lowerable_at(CpuLevel::Avx512, &step) { &mut compiled } else { &mut blocks };
        list.push(dtype);
        for (level, list) in [(CpuLevel::Avx2, &mut avx2), (CpuLevel::Baseline, &mut narrow)] {
            if is_lowerable_at(level, &step) {
                list.push(dtype);
            }
        }
    }
    let lists = [&mut compiled, &mut blocks, &mut avx2, &mut narrow];
    for list in lists {
        list.sort_unstable();
        list.dedup();
    }
    let less = |without: &str, list: &[DType], than: &[DType]| {
        if list == than { String::new() } else { format!(" Without {without} compiled: {}.", names(list)) }
    };
    let others = less("AVX-512", &avx2, &compiled) + &less("AVX2", &narrow, &avx2);
    match (compiled.is_empty(), blocks.is_empty()) {
        (true, true) => String::new(),
        (true, _) => format!("\nBlock kernel: {}.{others}\n", names(&blocks)),
        (_, true) => format!("\nCompiled: {}.{others}\n", names(&compiled)),
        _ => format!("\nCompiled: {}. Block kernel: {}.{others}\n", names(&compiled), names(&blocks)),
    }
}
