//! Generates `docs/ops.md`, the documentation of the op table.
//!
//! Guarantees: all contents come from the rows, from `signature` and from the kernels and back ends, so the document is
//! correct as long as `tests/ops_doc.rs` passes. Does not: know any op by name.

use crate::backend::is_lowerable_at;
use crate::base::composite::Composite;
use crate::base::dtype::{Category, DType};
use crate::base::generator::Generator;
use crate::base::scalar::Scalar;
use crate::kernels::{CpuLevel, kernel};
use crate::ops::{Attrs, MAX_OPERANDS, Op, OpDef, Promotion};
use crate::plan::kernel::{Step, StepOp};
use crate::promotion::operand::{OperandType, Signature};
use crate::promotion::{Rules, Settings, signature};

const CATEGORIES: [Category; 4] = [Category::Bool, Category::Int, Category::Float, Category::Complex];

const HEAD: &str = "\
# Ops

Made from the op table (`src/ops/table.rs`) by `CASTWISE_BLESS=1 cargo test --test suite -- ops_doc::`; do not edit.

Each op is a method of `Var`, and a function in expressions under its name or an alias. For each rule set:

- **promotion**: how the compute dtype follows from the operands' dtypes (`castwise::ops::Promotion`): *common* is their
  common dtype, *int to float* also converts bool and integers to the default float dtype, and so on;
- **accepts**: the dtypes that the operands may have if all have the same one;
- **gives**: the result's dtype for these, with the default dtype f32.

*Compiled* ops become part of a fused loop; a *kernel* runs as a step of its own, tile by tile, with the same bits. Both
are listed by compute dtype, which is f32 for f16 and bf16 and c64 for c32 unless these are listed themselves. The lists
are for machines with AVX-512; if fewer dtypes are compiled on other machines, a second list follows.
For f16 and bf16, an op of one operand gives the exact result, correctly rounded; docs/accuracy.md names the exceptions.
";

const COMPOSITES: &str = "
# Composites

Functions of a few of these ops, which a typed program shows with their casts: methods of `Var`, and functions in expressions. `max`
and `min` are `amax` and `amin` of one operand, `maximum` and `minimum` of two.

";

const GENERATORS: &str = "
# Generators and blocks

Values whose elements follow from where they are, in the shape of `x`, of which nothing else is used: methods of `Var`, and functions in
expressions. They are made where they are read and take no memory of their own. Random numbers are those of Philox4x32-10: the same seed,
stream and index give the same bits on every machine, for any number of threads. Without `dtype`, floats have the default float dtype, and
integers are i64 (i32 under JAX's rules without `x64`).

";

const BLOCKS: &str = "\
- `blocks(scale, like=x, size=…)`: each element of `scale` is many elements of the result, which has the shape of `x`: blocks of `size`, a \
number or one for each dim; the last block of a dim may be smaller. For scales of quantized weights.
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
    text += COMPOSITES;
    for c in Composite::all() {
        let (operands, required) = c.operands();
        let given =
            operands.iter().enumerate().map(|(i, o)| if i < required { o.to_string() } else { format!("{o}=…") });
        let all: Vec<String> = given.chain(c.parameters().map(|p| format!("{p}=…"))).collect();
        text += &format!("- `{}({})`: {}\n", c.name(), all.join(", "), c.doc());
    }
    text += GENERATORS;
    for g in Generator::all() {
        let all: Vec<String> = std::iter::once("x".into()).chain(g.parameters().map(|p| format!("{p}=…"))).collect();
        text += &format!("- `{}({})`: {}\n", g.name(), all.join(", "), g.doc());
    }
    text + BLOCKS
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
    if def.op.is_line() {
        text += "; works along the given dim";
        match def.default_dim {
            Some(default) => text += &format!(", by default {default}"),
            None => text += ", which may be missing if there is only one",
        }
    }
    text += &attributes(def);
    text += "\n\n| rules | promotion | accepts | gives |\n| --- | --- | --- | --- |\n";
    for rules in Rules::ALL.iter().copied() {
        let accepted = accepted(def, rules);
        let dtypes: Vec<DType> = accepted.iter().map(|(d, _)| *d).collect();
        let given = gives(def, &accepted);
        text += &format!("| {rules} | {} | {} | {given} |\n", promotion(def, rules), names(&dtypes));
    }
    text + &computed(def)
}

/// The number and the choice that the op takes, with their defaults.
fn attributes(def: &OpDef) -> String {
    let mut text = String::new();
    if let Some(of) = def.number {
        text += &format!("; takes `{}`", of.name);
        text += &match (of.least.is_finite(), of.most.is_finite()) {
            (true, true) => format!(" from {} to {}", of.least, of.most),
            (true, false) => format!(" of at least {}", of.least),
            _ => String::new(),
        };
        text += &defaults(|rules| rules.set().number(def).map(|n| n.to_string()));
    }
    if let Some(of) = def.choice {
        let words: Vec<String> = of.among.iter().map(|c| format!("`{c}`")).collect();
        text += &format!("; takes `{}`: {}", of.name, words.join(", "));
        text += &defaults(|rules| rules.set().choice(def).map(|c| format!("`{c}`")));
    }
    text
}

/// The default of each rule set.
fn defaults(of: impl Fn(Rules) -> Option<String>) -> String {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for (rules, default) in Rules::ALL.iter().filter_map(|rules| Some((rules.name(), of(*rules)?))) {
        match found.iter_mut().find(|(d, _)| *d == default) {
            Some((_, names)) => names.push(rules),
            None => found.push((default, vec![rules])),
        }
    }
    match &found[..] {
        [] => ", which must be given".into(),
        [(default, _)] => format!(", by default {default}"),
        all => {
            let each: Vec<String> = all.iter().map(|(d, names)| format!("{d} ({})", names.join(", "))).collect();
            format!(", by default {}", each.join(" or "))
        }
    }
}

/// The dtypes that the operands may have if all have the same one, with the op's signature for each.
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

/// The dtypes' names; a complete category is written as its name.
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

/// The dtypes in which the op is compiled, and those in which a kernel runs.
fn computed(def: &OpDef) -> String {
    let [mut compiled, mut kernels, mut avx2, mut narrow] = [const { Vec::new() }; 4];
    let mut computes: Vec<DType> = Vec::new();
    for rules in Rules::ALL.iter().copied() {
        computes.extend(accepted(def, rules).iter().map(|(_, s)| s.compute));
    }
    for compute in DType::ALL.into_iter().filter(|d| computes.contains(d)) {
        let found = [compute, compute.op_math()].map(|d| kernel(def.op, d, CpuLevel::Baseline).map(|_| d));
        let Some(dtype) = found[0].or(found[1]) else { continue };
        let step = Step { op: StepOp::Apply(def.op), dtype, args: [None; MAX_OPERANDS], out: 0 };
        let list = if is_lowerable_at(CpuLevel::Avx512, &step) { &mut compiled } else { &mut kernels };
        list.push(dtype);
        for (level, list) in [(CpuLevel::Avx2, &mut avx2), (CpuLevel::Baseline, &mut narrow)] {
            if is_lowerable_at(level, &step) {
                list.push(dtype);
            }
        }
    }
    let lists = [&mut compiled, &mut kernels, &mut avx2, &mut narrow];
    for list in lists {
        list.sort_unstable();
        list.dedup();
    }
    let less = |without: &str, list: &[DType], than: &[DType]| {
        if list == than { String::new() } else { format!(" Without {without} compiled: {}.", names(list)) }
    };
    let others = less("AVX-512", &avx2, &compiled) + &less("AVX2", &narrow, &avx2);
    match (compiled.is_empty(), kernels.is_empty()) {
        (true, true) => String::new(),
        (true, _) => format!("\nKernel: {}.{others}\n", names(&kernels)),
        (_, true) => format!("\nCompiled: {}.{others}\n", names(&compiled)),
        _ => format!("\nCompiled: {}. Kernel: {}.{others}\n", names(&compiled), names(&kernels)),
    }
}
