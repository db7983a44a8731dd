//! No instruction of Cranelift's loops can trap on data: the CLIF of every op and conversion that it lowers is checked. (The x64
//! back end has a table of the instructions it may emit.)

use cranelift_codegen::ir::Opcode;

use super::{each_conversion, each_op};
use crate::backend::code;
use crate::backend::cranelift::emit::emit;
use crate::backend::cranelift::lower;
use crate::kernels::CpuLevel;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::{Class, schedule};

/// The CLIF of a kernel's segments, whatever back end this machine would use.
fn text(k: &Kernel, classes: &[Class]) -> String {
    let s = schedule(k, classes, CpuLevel::get(), &|step| lower::is_lowerable(step)).unwrap();
    code::clif(s.segments.len(), &|i, b| emit(k, &s.segments[i], b, false)).unwrap().concat()
}

/// The instructions in the text that may trap, and the number of all.
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
    let mut check = |kernel: &Kernel, name: &str| {
        for class in [Class::Vector, Class::Splat] {
            let mut classes = vec![Class::Vector; kernel.inputs.len()];
            if let Some(last) = classes.last_mut() {
                *last = class;
            }
            let text = text(kernel, &classes);
            let (found, count) = trapping(&text);
            assert!(found.is_empty(), "{name} may trap: {found:?}\n{text}");
            kernels += usize::from(count > 0);
            instructions += count;
        }
    };
    each_op(&mut check);
    each_conversion(&mut check);
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
