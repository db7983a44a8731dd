//! The back end's code for dumps: bodies before and after register allocation, and machine code, each line with its step.
//!
//! Guarantees: the code is that of [`super::compile`]. Does not: print comments (`dump` does).

use super::emit::Function;
use super::ir::{Body, Node};
use super::isa::Isa;
use super::segment::{PAIRING, SegmentCode, SlotKinds};
use crate::backend::listing::{Line, Listing, Purpose, disassembled};
use crate::base::error::Result;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::{Schedule, Segment};

/// The machine code of all segments.
pub(crate) fn machine_code(isa: Isa, kernel: &Kernel, schedule: &Schedule) -> Result<Vec<Listing>> {
    listings(isa, kernel, schedule, &|segment| {
        let Function { bytes, code, marks } = segment.function(true);
        disassembled(&bytes[..code], &marks)
    })
}

/// The bodies of all segments, on virtual and on machine registers.
pub(crate) fn bodies(isa: Isa, kernel: &Kernel, schedule: &Schedule) -> Result<Vec<Listing>> {
    listings(isa, kernel, schedule, &|segment| {
        let mut lines = virtual_lines("operands and constants", &segment.body);
        lines.extend(segment.allocated.lines("before the loop, after register allocation"));
        if let Some((body, allocated)) = &segment.pair {
            lines.extend(virtual_lines("operands and constants, over two vectors", body));
            lines.extend(allocated.lines("before the loop over two vectors, after register allocation"));
        }
        lines
    })
}

fn virtual_lines(definitions: &'static str, body: &Body) -> Vec<Line> {
    let definition = |text| Line::new(Purpose::Frame(definitions), text);
    let node = |n: &Node| Line::new(Purpose::Step(n.step()), body.node_text(n));
    body.definitions().map(definition).chain(body.nodes.iter().map(node)).collect()
}

fn listings(
    isa: Isa,
    kernel: &Kernel,
    schedule: &Schedule,
    lines: &dyn Fn(&SegmentCode<'_>) -> Vec<Line>,
) -> Result<Vec<Listing>> {
    let slots = SlotKinds::of(kernel, schedule);
    let listing = |s: &Segment| -> Result<Listing> {
        let segment = SegmentCode::new(isa, kernel, s, &slots, &PAIRING)?;
        Ok(Listing { elements: segment.lanes, lines: lines(&segment) })
    };
    schedule.segments.iter().map(listing).collect()
}
