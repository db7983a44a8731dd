//! Cranelift's code for dumps: CLIF, and machine code, each line with the step of the kernel it is for.
//!
//! The steps go through Cranelift as source locations. What its optimizer shares between steps or moves out of the loop keeps the
//! location of one of its uses, and a move or spill that its register allocator inserts belongs to the instruction before it.
//! Guarantees: the code is that of `compile` (a test compares the bytes). Does not: print comments (`dump` does).

use cranelift_codegen::ir::SourceLoc;

use super::emit::{FRAME, emit, width};
use crate::backend::code::{self, Located};
use crate::backend::listing::{Line, Listing, Mark, Purpose, disassembled};
use crate::base::error::Result;
use crate::kernels::CpuLevel;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::Schedule;

/// What a source location denotes. The function's entry has the default one.
fn purpose(location: u32) -> Purpose {
    match location.wrapping_sub(1) {
        step if location != FRAME && !SourceLoc::new(location).is_default() => Purpose::Step(step),
        _ => Purpose::Frame("entry, loop control, return"),
    }
}

/// The CLIF of all segments.
pub(crate) fn clif(kernel: &Kernel, schedule: &Schedule) -> Result<Vec<Listing>> {
    let segments = &schedule.segments;
    let texts = code::clif(segments.len(), &|i, b| emit(kernel, &segments[i], b, true))?;
    let listing = |(text, s): (&String, _)| Listing {
        elements: width(kernel, s),
        lines: text.lines().filter_map(clif_line).collect(),
    };
    Ok(texts.iter().zip(segments).map(listing).collect())
}

/// A line of CLIF. Instructions begin with their location, `@0003`.
fn clif_line(line: &str) -> Option<Line> {
    let located = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
    if let Some((digits, rest)) = located
        && let Ok(location) = u32::from_str_radix(digits, 16)
    {
        return Some(Line::new(purpose(location), format!("    {}", rest.trim_start())));
    }
    // With locations, Cranelift aligns the blocks' heads with the instructions.
    let line = line.trim();
    let outer = ["function", "block", "}"].iter().any(|head| line.starts_with(head));
    let text = if outer { line.to_string() } else { format!("    {line}") };
    (!line.is_empty()).then_some(Line { purpose: None, text })
}

/// The machine code of all segments.
pub(crate) fn machine_code(kernel: &Kernel, schedule: &Schedule) -> Result<Vec<Listing>> {
    let segments = &schedule.segments;
    let functions = code::machine_code(CpuLevel::get(), segments.len(), &|i, b| emit(kernel, &segments[i], b, true))?;
    let listing = |(Located { bytes, locations }, s): (&Located, _)| {
        let marks: Vec<Mark> =
            locations.iter().map(|(at, _, location)| Mark { at: *at, purpose: purpose(*location) }).collect();
        // Constants follow the instructions.
        let code = locations.iter().map(|(_, end, _)| *end).max().unwrap_or(0);
        Listing { elements: width(kernel, s), lines: disassembled(&bytes[..code], &marks) }
    };
    Ok(functions.iter().zip(segments).map(listing).collect())
}
