//! Code as lines of text, each with its purpose: what all stages of code have in common in a dump.
//!
//! Guarantees: made only for dumps; compiling does not record purposes. Does not: know kernels, or print (`dump` does).

/// What a line of code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// A step of the kernel.
    Step(u32),
    /// Code around the steps, such as the function's entry or loop control.
    Frame(&'static str),
}

/// A position in machine code, and the purpose of the instructions from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: usize,
    pub(crate) purpose: Purpose,
}

/// A line; without a purpose, it belongs to the lines around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) purpose: Option<Purpose>,
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn new(purpose: Purpose, text: String) -> Line {
        Line { purpose: Some(purpose), text }
    }
}

/// The code of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Elements that one iteration handles.
    pub(crate) elements: usize,
    pub(crate) lines: Vec<Line>,
}

/// Whether [`disassembled`] knows this machine's instructions.
pub(crate) const DISASSEMBLES: bool = cfg!(target_arch = "x86_64");

/// Machine code as text. The marks are in order of their positions.
#[cfg(target_arch = "x86_64")]
pub(crate) fn disassembled(code: &[u8], marks: &[Mark]) -> Vec<Line> {
    use iced_x86::{Decoder, DecoderOptions, FastFormatter};

    let (mut formatter, mut lines, mut marks) = (FastFormatter::new(), Vec::new(), marks.iter().peekable());
    let mut purpose = None;
    for instruction in &mut Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
        while let Some(mark) = marks.next_if(|m| m.at as u64 <= instruction.ip()) {
            purpose = Some(mark.purpose);
        }
        let mut text = format!("{:04x}  ", instruction.ip());
        formatter.format(&instruction, &mut text);
        lines.push(Line { purpose, text });
    }
    lines
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn disassembled(_code: &[u8], _marks: &[Mark]) -> Vec<Line> {
    Vec::new()
}
