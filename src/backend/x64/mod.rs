//! The second code generator: segments as loops over vectors of 512 bits on machines with AVX-512, of 256 on others with
//! AVX2.
//!
//! It has its own instruction selection because Cranelift makes vectors of 128 bits at most. A segment is one basic
//! block, so a short pipeline does: `lower` chooses instructions of AVX-512 on virtual registers (`ir`, which writes
//! AVX2's in their place by way of `avx2`), `alloc` assigns machine registers in one walk, and `emit` has `asm` write them
//! as bytes. An iteration handles as many elements as a vector holds of the widest dtype in the segment, so that every
//! value is one register (or a part of one), and every truth value one mask register, or of AVX2 a vector.
//!
//! Guarantees: the same bits as the block kernels; no instruction that can trap on data (`instructions` lists them all); a
//! segment takes any number of elements from 1 up and touches no memory beside them. A body of many instructions is run
//! over two vectors at once, instruction by instruction: the processor looks only so far ahead, and finds twice as much that
//! does not wait for something else (measured, AVX-512 and AVX2: functions take 5 to 15 and 10 to 25 % less time,
//! Black-Scholes 30 % less). Does not: unroll otherwise (measured: no gain), contract, or make code executable; `code` does that.

mod alloc;
mod asm;
mod avx2;
mod cast;
mod emit;
mod instructions;
mod ir;
pub(crate) mod isa;
mod lower;
mod lower_int_complex;
mod math;
mod memory;
mod paired_stores;
mod slow_path;

use iced_x86::{Decoder, DecoderOptions, FastFormatter};
use ir::Body;
pub(crate) use lower::is_lowerable;
use paired_stores::Lines;

use super::code::{self, Code};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::plan::kernel::{Kernel, StepOp, ValueId};
use crate::plan::schedule::{Schedule, Segment, Slot, SlotId};
use isa::Isa;

/// Compiles all segments of a schedule.
pub(crate) fn compile(isa: Isa, kernel: &Kernel, schedule: &Schedule) -> Result<Code> {
    compile_paired(isa, kernel, schedule, &PAIRED)
}

/// As [`compile`]; says which bodies have loops over pairs of vectors.
fn compile_paired(isa: Isa, kernel: &Kernel, schedule: &Schedule, paired: &Paired) -> Result<Code> {
    let ends = ends(kernel, schedule);
    let all = schedule.segments.iter().map(|s| Ok(function(isa, kernel, s, &ends, paired)?.bytes));
    code::place(&all.collect::<Result<Vec<_>>>()?)
}

/// Elements of an iteration: as many as a vector holds of the segment's widest dtype.
fn lanes(isa: Isa, kernel: &Kernel, segment: &Segment) -> usize {
    let sizes = segment.steps.iter().map(|s| {
        let step = &kernel.steps[*s as usize];
        let args = step.args.iter().flatten().map(|a| kernel.value(*a).dtype.size()).max().unwrap_or(1);
        args.max(kernel.value(step.out).dtype.size())
    });
    isa.bytes() / sizes.max().unwrap_or(1)
}

/// Slots that are not memory like any other.
struct Ends {
    /// Whether there is nothing to run but one segment.
    alone: bool,
    /// Operands and results, which may be streamed.
    operands: Vec<SlotId>,
    results: Vec<SlotId>,
    /// What segments can add up, and its dtype.
    sums: Vec<(SlotId, DType)>,
    /// In a plain schedule, whose segment walks rows: the slots that move from row to row, and how many there are in all.
    rows: Option<(Vec<SlotId>, usize)>,
}

fn ends(kernel: &Kernel, schedule: &Schedule) -> Ends {
    let slots = |moves: fn(&Slot) -> bool| {
        let all = schedule.slots.iter().enumerate().filter(move |(_, s)| moves(s));
        all.map(|(i, _)| i as SlotId).collect()
    };
    let sums = kernel.folds.iter().zip(&schedule.folds).filter(|(_, f)| f.is_sum);
    Ends {
        alone: schedule.body.len() == 1,
        operands: slots(|s| matches!(s, Slot::Input(_))),
        results: slots(|s| matches!(s, Slot::Output(_))),
        sums: sums.map(|((_, v), f)| (f.slot, kernel.value(*v).dtype)).collect(),
        rows: schedule.walks_rows.then(|| (slots(|s| !matches!(s, Slot::Const(_))), schedule.slots.len())),
    }
}

/// Which bodies have loops over pairs of vectors, by the number of their instructions.
#[derive(Debug)]
struct Paired {
    /// From so many on: of shorter ones the processor overlaps enough iterations by itself.
    least: usize,
    /// The same for those that handle whole cache lines in pairs ([`lines`]).
    lines: usize,
    /// Longer ones are rare and would cost time to compile.
    most: usize,
}

const PAIRED: Paired = Paired { least: 20, lines: 0, most: 400 };

/// A loop over pairs of vectors.
struct Pairs {
    lines: Lines,
    /// Whether it is only for results that go past the caches: from the caches, a short loop is faster without joining what
    /// it stores (f16: 4 to 12 %).
    only_streamed: bool,
}

impl Paired {
    fn of(&self, body: &Body, lanes: usize) -> Option<Pairs> {
        let n = body.insts.len();
        let lines = Lines::of(body, lanes);
        let short = n < self.least;
        let pairs = n <= self.most && (!short || lines != Lines::Vectors && n >= self.lines);
        pairs.then_some(Pairs { lines, only_streamed: short && lines == Lines::Halves })
    }
}

fn function(isa: Isa, kernel: &Kernel, segment: &Segment, ends: &Ends, paired: &Paired) -> Result<emit::Function> {
    let lanes = lanes(isa, kernel, segment);
    let body = lower::lower(isa, kernel, segment, lanes, &ends.sums);
    if let Some(form) = body.missing {
        return Err(Error::Internal(format!("code generation: AVX2 has nothing for {:?}", form.code)));
    }
    // Elements of 16 bytes have no scale.
    let size = |v: ValueId| kernel.value(v).dtype.size();
    let moves = |(v, slot, one): &&(ValueId, SlotId, bool)| !one && ends.operands.contains(slot) && size(*v) <= 8;
    let operands: Vec<SlotId> = segment.loads.iter().filter(moves).map(|(_, slot, _)| *slot).collect();
    let widest = segment.loads.iter().filter(moves).map(|(v, ..)| size(*v)).max().unwrap_or(1);
    let memory = segment.loads.iter().map(|(v, ..)| *v).chain(segment.stores.iter().map(|(v, _)| *v));
    let twice = memory.into_iter().any(|v| kernel.value(v).dtype == DType::C128);
    // Mask registers below hold the rest of the elements; number 0 cannot mask.
    let first_mask = if twice { 3 } else { 2 };
    let allocated = alloc::allocate(&body, first_mask);
    let pairs = paired.of(&body, lanes);
    let pair = pairs.as_ref().map(|pairs| {
        let mut pair = body.side_by_side(2);
        pairs.lines.join(&mut pair, lanes);
        pair
    });
    let paired = pair.as_ref().map(|pair| alloc::allocate(pair, first_mask));
    Ok(emit::function(&emit::Segment {
        isa,
        lanes,
        allocated: &allocated,
        paired: paired.as_ref(),
        only_streamed: pairs.is_some_and(|p| p.only_streamed),
        // Those of pairs begin with the others.
        constants: &pair.as_ref().unwrap_or(&body).constants,
        twice,
        alone: ends.alone,
        operands: &operands,
        ahead: memory::ahead(operands.len()) / widest,
        results: &ends.results,
        sums: &ends.sums,
        rows: ends.rows.as_ref(),
    }))
}

/// The steps and instructions of all segments of a schedule, as text.
pub(crate) fn listing(isa: Isa, kernel: &Kernel, schedule: &Schedule) -> Result<String> {
    let mut text = String::new();
    for (i, segment) in schedule.segments.iter().enumerate() {
        text += &format!("segment{i}: {} elements an iteration\n", lanes(isa, kernel, segment));
        for s in &segment.steps {
            let step = &kernel.steps[*s as usize];
            let what = match step.op {
                StepOp::Apply(op) => format!("{op}.{}", step.dtype),
                StepOp::Cast(p) => format!("cast.{}", p.from),
                StepOp::Bits(_) => format!("bits.{}", step.dtype),
                StepOp::DoubleRounding(op) => format!("double_rounding.{op}"),
            };
            let args: Vec<String> = step.args.iter().flatten().map(|a| format!("%{a}")).collect();
            text += &format!("  %{}: {} = {what} {}\n", step.out, kernel.value(step.out).dtype, args.join(", "));
        }
        let function = function(isa, kernel, segment, &ends(kernel, schedule), &PAIRED)?;
        let mut formatter = FastFormatter::new();
        for instruction in &mut Decoder::with_ip(64, &function.bytes[..function.code], 0, DecoderOptions::NONE) {
            text += &format!("  {:04x}  ", instruction.ip());
            formatter.format(&instruction, &mut text);
            text.push('\n');
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
