//! No instruction of Cranelift's loops can trap on data: every op and conversion it lowers is written out and walked.
//! (`wide` has a list of the instructions it may emit.)

use cranelift_codegen::ir::Opcode;

use super::{emit, jit, lower};
use crate::block::{CpuLevel, kernel};
use crate::dtype::DType;
use crate::kernel::{Builder, Kernel, Operand, Step, StepOp};
use crate::ops::Op;
use crate::schedule::{Class, schedule};

/// The text of a kernel's segments as Cranelift gets them, whatever generator this machine would use.
fn text(k: &Kernel, classes: &[Class]) -> String {
    let s = schedule(k, classes, CpuLevel::get(), &|step| lower::inline(step)).unwrap();
    jit::clif(s.segments.len(), &|i, b| emit(k, &s.segments[i], b)).unwrap()
}

/// What in the text may trap, and how many instructions there are.
fn trapping(text: &str) -> (Vec<String>, usize) {
    let (mut found, mut count) = (Vec::new(), 0);
    let code = |line| str::split(line, ';').next().unwrap_or("").trim();
    for line in text.lines().map(code).filter(|l| !l.is_empty()) {
        // `v1 = iadd.i64 v2, v3`, `store notrap v1, v2+16`; other lines are the function's head and its blocks.
        let words = line.split_once(" = ").map_or(line, |(_, right)| right);
        let name = words.split([' ', '.']).next().unwrap_or("");
        let Ok(op) = name.parse::<Opcode>() else {
            let head = ["function", "block", "}", "sig", "const", "fn"].iter().any(|h| line.starts_with(h));
            assert!(head, "not an instruction: {line}");
            continue;
        };
        count += 1;
        let memory = op.can_load() || op.can_store();
        if op.is_call() || (memory && !words.contains(" notrap ")) || (!memory && op.can_trap()) {
            found.push(line.to_string());
        }
    }
    (found, count)
}

#[test]
fn nothing_lowered_can_trap() {
    let (mut kernels, mut instructions) = (0, 0);
    let mut check = |b: &Builder, name: String| {
        for class in [Class::Vector, Class::Splat] {
            let mut classes = vec![Class::Vector; b.kernel.inputs.len()];
            if let Some(last) = classes.last_mut() {
                *last = class;
            }
            let text = text(&b.kernel, &classes);
            let (found, count) = trapping(&text);
            assert!(found.is_empty(), "{name} may trap: {found:?}\n{text}");
            kernels += usize::from(count > 0);
            instructions += count;
        }
    };
    for d in DType::ALL {
        for op in Op::ALL.iter().copied().filter(|op| !op.is_reduction()) {
            let mut b = Builder::default();
            let args: Vec<Operand> = (0..op.arity())
                .map(|i| Operand::Value(b.input(if op == Op::Where && i == 0 { DType::Bool } else { d })))
                .collect();
            let value = b.apply(op, d, &args);
            b.kernel.outputs.push(value);
            // What no rule set accepts has no kernel, and is never lowered.
            let known = |s: &Step| match s.op {
                StepOp::Apply(op) => kernel(op, s.dtype, CpuLevel::get()).is_some(),
                _ => true,
            };
            if b.kernel.steps.iter().all(known) {
                check(&b, format!("{op} in {d}"));
            }
        }
        for to in DType::ALL.into_iter().filter(|to| *to != d) {
            let mut b = Builder::default();
            let x = b.input(d);
            let value = b.cast(x, to);
            b.kernel.outputs.push(value);
            check(&b, format!("{d} to {to}"));
        }
    }
    assert!(kernels > 400 && instructions > 10_000, "only {kernels} kernels of {instructions} instructions");
}

#[test]
fn what_traps_is_seen() {
    for line in ["v1 = sdiv.i32x4 v2, v3", "v1 = load.i64 v0", "v1 = load.i64 aligned v0+8", "v1 = fcvt_to_sint.i32 v0"]
    {
        assert_eq!(trapping(line).0, [line]);
    }
    for line in ["store v1, v2", "trapz v1, user1", "call fn0(v1)", "v1 = urem v1, v2"] {
        assert_eq!(trapping(line).0, [line]);
    }
    for line in ["v1 = fcvt_to_sint_sat.i32x4 v0", "v1 = load.i64 notrap v0", "store notrap aligned v1, v2+16"] {
        assert_eq!(trapping(line), (vec![], 1), "{line}");
    }
}
