//! `castwise dump`: the stages of a program as text, and typed programs as drawings.
//!
//! Guarantees: the drawings have every node and every operand of the typed program, in order; casts are coloured by
//! what they may lose. Does not: lay drawings out; the library does for SVG, and Graphviz and Mermaid for theirs.

use castwise::picture::Picture;
use castwise::shape::SymDim;
use castwise::{CastLoss, CodeStage, Executor, NodeKind, NodeView, Program, TypedProgram, Var};

use super::args::{Dump, Stage};
use super::failure::{Failure, print};
use super::plan::prepare;
use super::source::{self, Asked, Source};

pub(super) fn run(arguments: &Dump) -> Result<(), Failure> {
    let expression = match source::asked(&arguments.expression)? {
        Asked::Program(file) => return program(arguments, &Source::of(&arguments.common, file)?),
        Asked::Expression(text) => text,
    };
    let work = prepare(&arguments.common, &[], Some(expression))?;
    work.tell(false);
    let mut text = String::new();
    let executor = Executor::new();
    let kinds = work.kinds()?;
    if arguments.stage == Stage::Svg && kinds.len() > 1 {
        let count = kinds.len();
        return Err(Failure::usage(format!(
            "the tensors have {count} programs, and an SVG document is one picture: choose tensors by --select, or write \
             a page of all by `castwise explain --html`"
        )));
    }
    for kind in kinds {
        let Some(first) = kind.first() else { continue };
        // A document that begins with a comment is none of XML.
        let heading = if arguments.stage == Stage::Svg { String::new() } else { work.heading(&kind) };
        let mark = match arguments.stage {
            Stage::Dot => "// ",
            Stage::Mermaid => "%% ",
            _ => "; ",
        };
        if !heading.is_empty() {
            text += &format!("{mark}{heading}");
        }
        let (plan, e) = work.of(first);
        text += &stage(arguments.stage, &plan.program, &plan.typed, &plan.vars(), &e.text, &executor)?;
    }
    print(&text)
}

/// The same for a program as text.
fn program(arguments: &Dump, source: &Source) -> Result<(), Failure> {
    let program = source.program()?;
    let typed = source.typed(&program)?;
    let results: Vec<Var> = source::results(&program).into_iter().map(|(_, v)| v).collect();
    print(&stage(arguments.stage, &program, &typed, &results, &source.text, &Executor::new())?)
}

fn stage(
    stage: Stage,
    program: &Program,
    typed: &TypedProgram,
    results: &[Var],
    source: &str,
    executor: &Executor,
) -> Result<String, Failure> {
    let code = |stage: CodeStage, unavailable: &str| {
        executor.dump_stage(program, results, stage)?.ok_or_else(|| Failure::usage(unavailable))
    };
    Ok(match stage {
        Stage::Program => program.to_string(),
        Stage::Typed => typed.to_string(),
        Stage::Kernels => executor.kernels(program, results)?,
        Stage::Schedule => executor.schedules(program, results)?,
        Stage::Ssa => executor.ssa(program, results)?,
        Stage::Clif => code(
            CodeStage::Clif,
            "Cranelift does not make the loops of a machine with AVX2: write --stage x64 or --stage asm, or set the \
             environment variable CASTWISE_CPU=baseline",
        )?,
        Stage::X64 => code(
            CodeStage::X64,
            "this stage is that of loops for AVX2 and AVX-512, which this machine (or CASTWISE_CPU) does not have: write \
             --stage clif",
        )?,
        Stage::Asm => code(CodeStage::Asm, "machine code is disassembled on x86-64 alone: write --stage clif")?,
        Stage::Dot => dot(typed),
        Stage::Svg => Picture::of(typed).source(source).svg(),
        Stage::Mermaid => mermaid(typed),
    })
}

/// What a node is, and its type: two lines.
pub(crate) fn label(n: &NodeView<'_>) -> [String; 2] {
    let dims: Vec<String> = n.shape.iter().map(SymDim::to_string).collect();
    [n.label(|_| "_".to_string()), format!("{}[{}]", n.dtype, dims.join(", "))]
}

/// The colour of a node: that of a cast by what it loses.
pub(crate) fn colour(n: &NodeView<'_>) -> &'static str {
    match &n.kind {
        NodeKind::Cast { note, .. } if note.loss == CastLoss::Exact => "#d5e8d4",
        NodeKind::Cast { note, .. } if note.loss == CastLoss::Rounds => "#ffe6a0",
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
