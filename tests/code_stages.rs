//! Dumps of code: each line of a user's that a loop computes stands above instructions, at every CPU level and of both back ends.

use castwise::CodeStage;
use castwise::prelude::*;

use crate::common::levels;

const STAGES: [CodeStage; 3] = [CodeStage::Clif, CodeStage::X64, CodeStage::Asm];

/// The lines that follow a comment with this text, up to the next comment.
fn under<'t>(text: &'t str, comment: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut here = false;
    for line in text.lines() {
        match line.strip_prefix("; ") {
            Some(said) => here = said.contains(comment),
            None if here && line.starts_with("  ") => found.push(line),
            None => {}
        }
    }
    found
}

#[test]
fn every_line_of_a_program_has_its_instructions() {
    levels::at_every_level("code_stages::every_line_of_a_program_has_its_instructions", || {
        let p = Program::new(Rules::Torch);
        let (a, b) = (p.data("a", DType::F32, [None]), p.data("b", DType::F32, [None]));
        let first = line!() + 1;
        let scaled = &a * 2.0;
        let sum = &scaled - &b;
        let chosen = sum.gt(0).where_(&sum, &a);
        let mut stages = 0;
        for stage in STAGES {
            let text = Executor::new().dump_stage(&p, [&chosen], stage).unwrap();
            assert_eq!(text.is_some(), stage.is_available(), "{stage:?}");
            let Some(text) = text else { continue };
            stages += 1;
            for line in first..first + 3 {
                let found = under(&text, &format!("   at tests/code_stages.rs:{line}:"));
                assert!(!found.is_empty(), "{stage:?}, line {line}:\n{text}");
            }
            // Arithmetic stands under its own line alone.
            let names = if stage == CodeStage::Clif { ["fmul", "fsub"] } else { ["mulps", "subps"] };
            for (line, name) in (first..).zip(names) {
                for other in first..first + 3 {
                    let found = under(&text, &format!("   at tests/code_stages.rs:{other}:"));
                    let here = found.iter().any(|l| l.contains(name));
                    assert!(here == (line == other), "{stage:?}, {name}, line {other}:\n{text}");
                }
            }
        }
        assert!(stages >= if cfg!(target_arch = "x86_64") { 2 } else { 1 }, "{stages} stages");
    });
}

/// A step that no loop computes is mentioned, and so is one that takes no instruction.
#[test]
fn steps_without_instructions_are_mentioned() {
    levels::at_every_level("code_stages::steps_without_instructions_are_mentioned", || {
        let p = Program::new(Rules::Torch);
        let a = p.data("a", DType::I32, [None]);
        let (divided, doubled) = (a.floor_divide(&a), &a + &a);
        let text = Executor::new().dump_stage(&p, [&(divided + doubled)], CodeStage::Asm).unwrap();
        if let Some(text) = text {
            let kernels = text.lines().filter(|l| l.starts_with("; ") && l.ends_with("   (a kernel)"));
            assert!(kernels.count() == 1 && text.contains("= floor_divide.i32"), "{text}");
        }
        let b = p.data("b", DType::F32, [None]);
        let text = Executor::new().dump_stage(&p, [&(b.real() * 2.0)], CodeStage::Asm).unwrap();
        if let Some(text) = text.filter(|_| CodeStage::X64.is_available()) {
            assert!(text.lines().any(|l| l.contains("real") && l.ends_with("   (no instructions)")), "{text}");
        }
    });
}
