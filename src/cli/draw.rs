//! `castwise dump`: the stages of a program as text, and typed programs as drawings.
//!
//! Guarantees: the drawings have every node and every operand of the typed program, in order; casts are coloured by
//! what they may lose. Does not: lay drawings out; Graphviz and Mermaid do.

use castwise::shape::SymDim;
use castwise::{Executor, Loss, NodeKind, NodeOperand, NodeView, TypedProgram};

use super::args::{Dump, Stage};
use super::plan::{Plan, prepare};
use super::{Failure, print, say};

pub(super) fn run(arguments: &Dump) -> Result<(), Failure> {
    let work = prepare(&arguments.common, &[], Some(&arguments.expression))?;
    work.notes.iter().for_each(|n| say(n));
    let mut text = String::new();
    let executor = Executor::new();
    for kind in work.kinds()? {
        let Some(first) = kind.first() else { continue };
        let heading = work.heading(&kind);
        let mark = match arguments.stage {
            Stage::Dot => "// ",
            Stage::Mermaid => "%% ",
            _ => "; ",
        };
        if !heading.is_empty() {
            text += &format!("{mark}{heading}");
        }
        text += &stage(arguments.stage, work.of(first).0, &executor)?;
    }
    print(&text)
}

fn stage(stage: Stage, plan: &Plan, executor: &Executor) -> Result<String, castwise::Error> {
    Ok(match stage {
        Stage::Program => plan.program.to_string(),
        Stage::Typed => plan.typed.to_string(),
        Stage::Kernels => executor.kernels(&plan.program, [&plan.result])?,
        Stage::Clif => executor.dump(&plan.program, [&plan.result])?,
        Stage::Dot => dot(&plan.typed),
        Stage::Mermaid => mermaid(&plan.typed),
    })
}

/// What a node is, and its type: two lines.
fn label(n: &NodeView<'_>) -> [String; 2] {
    let what = match &n.kind {
        NodeKind::Feed(name) => name.to_string(),
        NodeKind::Constant(_) => "constant".to_string(),
        NodeKind::Apply { op, operands, .. } => {
            let operand = |o: &NodeOperand| match o {
                NodeOperand::Node(_) => "_".to_string(),
                NodeOperand::Scalar(s, d) => format!("{s}:{d}"),
            };
            format!("{op}({})", operands.iter().map(operand).collect::<Vec<_>>().join(", "))
        }
        NodeKind::Cast { note, .. } => format!("cast, {} ({})", note.loss, note.reason),
        NodeKind::Reduce { op, dims, .. } => format!("{op} over {dims:?}"),
        NodeKind::Bits { .. } => "view_as".to_string(),
        _ => "view".to_string(),
    };
    let dims: Vec<String> = n.shape.iter().map(SymDim::to_string).collect();
    [what, format!("{}[{}]", n.dtype, dims.join(", "))]
}

fn colour(n: &NodeView<'_>) -> &'static str {
    match &n.kind {
        NodeKind::Cast { note, .. } if note.loss == Loss::Exact => "#d5e8d4",
        NodeKind::Cast { note, .. } if note.loss == Loss::Rounds => "#ffe6a0",
        NodeKind::Cast { .. } => "#f8cecc",
        NodeKind::Feed(_) | NodeKind::Constant(_) => "#dae8fc",
        _ => "#ffffff",
    }
}

fn dot(typed: &TypedProgram) -> String {
    let quoted = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
    let mut text = "digraph program {\n  rankdir = TB;\n  node [shape = box, style = filled];\n".to_string();
    for (i, n) in typed.nodes().enumerate() {
        let [what, of] = label(&n).map(|l| quoted(&l));
        text += &format!("  n{i} [label = \"{what}\\n{of}\", fillcolor = \"{}\"];\n", colour(&n));
        for from in n.kind.inputs() {
            text += &format!("  n{from} -> n{i};\n");
        }
    }
    for r in typed.results() {
        text += &format!("  n{r} [penwidth = 2];\n");
    }
    text + "}\n"
}

fn mermaid(typed: &TypedProgram) -> String {
    let quoted = |s: &str| s.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('\n', " ");
    let mut text = "flowchart TD\n".to_string();
    for (i, n) in typed.nodes().enumerate() {
        let [what, of] = label(&n).map(|l| quoted(&l));
        text += &format!("  n{i}[\"{what}<br>{of}\"]\n  style n{i} fill:{},color:#000000\n", colour(&n));
        for from in n.kind.inputs() {
            text += &format!("  n{from} --> n{i}\n");
        }
    }
    for r in typed.results() {
        text += &format!("  style n{r} stroke-width:3px\n");
    }
    text
}
