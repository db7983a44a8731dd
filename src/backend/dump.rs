//! Compiled kernels as text, one stage of the code at a time, each line under the step of the kernel and the source line that it
//! serves.
//!
//! Guarantees: the code is that of [`super::compile`]; every step of the schedule is mentioned, also if a kernel computes it or it
//! takes no instruction. Does not: run anything, or plan.

use std::collections::HashSet;

use super::listing::{DISASSEMBLES, Line, Listing, Purpose};
use super::x64::isa::Isa;
use super::{code, cranelift, x64};
use crate::base::error::{Result, SourceLocation};
use crate::kernels::CpuLevel;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::{Schedule, Slot, Stage};

/// A stage of compiled code, as [`Executor::dump_stage`](crate::Executor::dump_stage) shows it. There are two back ends: `x64`
/// makes the loops of machines with AVX2 or AVX-512 on Unix, Cranelift those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodeStage {
    /// What Cranelift is given, before it optimizes: CLIF.
    Clif,
    /// The loops' bodies in the x64 back end: on virtual registers, and after register allocation.
    X64,
    /// The machine code, disassembled; on x86-64.
    Asm,
}

impl CodeStage {
    /// Whether this machine's loops have the stage, at the [`CpuLevel`] of this process.
    pub fn is_available(self) -> bool {
        let isa = Isa::of(CpuLevel::get());
        code::available()
            && match self {
                CodeStage::Clif => isa.is_none(),
                CodeStage::X64 => isa.is_some(),
                CodeStage::Asm => DISASSEMBLES,
            }
    }
}

/// The code of all stages of a schedule, if the machine's loops have it; `location` says where a step comes from.
pub(super) fn text(
    stage: CodeStage,
    kernel: &Kernel,
    schedule: &Schedule,
    location: &dyn Fn(u32) -> SourceLocation,
) -> Result<String> {
    let listings = match (stage, Isa::of(CpuLevel::get())) {
        (CodeStage::Clif, _) => cranelift::listing::clif(kernel, schedule)?,
        (CodeStage::X64, Some(isa)) => x64::listing::bodies(isa, kernel, schedule)?,
        (CodeStage::Asm, Some(isa)) => x64::listing::machine_code(isa, kernel, schedule)?,
        (CodeStage::X64 | CodeStage::Asm, None) => cranelift::listing::machine_code(kernel, schedule)?,
    };
    let comment = |step: u32, note: &str| {
        let at = match location(step) {
            SourceLocation::None => String::new(),
            location => format!("   at {location}"),
        };
        format!("; {}{at}{note}\n", kernel.step_text(step))
    };
    let mut text = String::new();
    for block in &schedule.prologue {
        text += &comment(block.step, "   (a kernel, once a row)");
    }
    if stage == CodeStage::X64 {
        text += &slots(schedule);
    }
    for part in &schedule.body {
        match part {
            Stage::Block(block) => text += &comment(block.step, "   (a kernel)"),
            Stage::Segment(n) => {
                let Listing { elements, lines } = &listings[*n as usize];
                text += &format!("segment{n}: {elements} elements an iteration\n");
                let with_code: HashSet<Option<Purpose>> = lines.iter().map(|l| l.purpose).collect();
                for step in &schedule.segments[*n as usize].steps {
                    if !with_code.contains(&Some(Purpose::Step(*step))) {
                        text += &comment(*step, "   (no instructions)");
                    }
                }
                text += &commented(lines, &|step| comment(step, ""));
            }
        }
    }
    Ok(text)
}

/// Lines with a comment wherever their purpose changes.
fn commented(lines: &[Line], comment: &dyn Fn(u32) -> String) -> String {
    let (mut text, mut last) = (String::new(), None);
    for Line { purpose, text: line } in lines {
        if purpose.is_some() && *purpose != last {
            match purpose {
                Some(Purpose::Step(step)) => text += &comment(*step),
                Some(Purpose::Frame(what)) => text += &format!("; {what}\n"),
                None => {}
            }
            last = *purpose;
        }
        text += &format!("  {line}\n");
    }
    text
}

/// What the slots of a schedule are.
fn slots(schedule: &Schedule) -> String {
    let slot = |(i, s): (usize, &Slot)| match s {
        Slot::Input(n) => format!("slot{i} = in{n}"),
        Slot::Const(n) => format!("slot{i} = c{n}"),
        Slot::Output(n) => format!("slot{i} = out{n}"),
        Slot::Tile(n) => format!("slot{i} = tile{n}"),
        Slot::Single(n) => format!("slot{i} = single{n}"),
    };
    let all: Vec<String> = schedule.slots.iter().enumerate().map(slot).collect();
    format!("; {}\n", all.join(", "))
}
