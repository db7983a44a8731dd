//! The x64 back end: segments as loops over vectors of 512 bits on machines with AVX-512, of 256 bits on others with AVX2.
//!
//! It exists because Cranelift's vectors have 128 bits at most. A segment is one basic block, so a short pipeline does: `lower`
//! selects AVX-512 instructions on virtual registers (`ir`, which expands them to AVX2 by way of `avx2`), `alloc` assigns machine
//! registers in one pass, `emit` writes loops, and `asm` encodes them. An iteration has as many elements as a vector holds of
//! the segment's widest dtype, so that each value is one register (or the lower part of one), and each boolean one mask register,
//! or with AVX2 one vector.
//!
//! Guarantees: the same bits as the kernels; no instruction that traps on data (`instructions` lists them all); a segment takes
//! any number of elements from 1 up and accesses no memory outside of them. A long body is interleaved over two vectors, which
//! hides instruction latency (measured, with AVX-512 and AVX2: functions take 5 to 15 and 10 to 25 % less time, Black-Scholes
//! 30 % less). Does not: unroll otherwise (measured: no gain), contract, or make code executable (`code` does).

mod alloc;
mod asm;
mod avx2;
mod cast;
mod emit;
mod instructions;
mod ir;
pub(crate) mod isa;
mod lower;
mod lower_float;
mod lower_int_complex;
mod math;
mod memory;
mod paired_stores;
mod slow_path;

use iced_x86::{Decoder, DecoderOptions, FastFormatter};
use ir::Body;
pub(crate) use lower::is_lowerable;
use paired_stores::PairedStores;

use super::code::{self, Code};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::plan::kernel::{Kernel, StepOp, ValueId};
use crate::plan::schedule::{Schedule, Segment, Slot, SlotId};
use isa::Isa;

/// Compiles all segments of a schedule.
pub(crate) fn compile(isa: Isa, kernel: &Kernel, schedule: &Schedule) -> Result<Code> {
    compile_paired(isa, kernel, schedule, &PAIRING)
}

/// [`compile`] with a choice of which bodies have loops over pairs of vectors.
fn compile_paired(isa: Isa, kernel: &Kernel, schedule: &Schedule, pairing: &Pairing) -> Result<Code> {
    let slots = SlotKinds::of(kernel, schedule);
    let all = schedule.segments.iter().map(|s| Ok(function(isa, kernel, s, &slots, pairing)?.bytes));
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

/// What the slots of a schedule are, as far as loops treat them differently.
struct SlotKinds {
    /// Whether a single segment is all that runs.
    is_only_stage: bool,
    /// Operands and results, which may be streamed.
    operands: Vec<SlotId>,
    results: Vec<SlotId>,
    /// Values that segments can accumulate, and their dtypes.
    sums: Vec<(SlotId, DType)>,
    /// If the segment walks rows: the slots that move from row to row, and the number of all slots.
    rows: Option<(Vec<SlotId>, usize)>,
}

impl SlotKinds {
    fn of(kernel: &Kernel, schedule: &Schedule) -> SlotKinds {
        let slots = |of_kind: fn(&Slot) -> bool| {
            let all = schedule.slots.iter().enumerate().filter(move |(_, s)| of_kind(s));
            all.map(|(i, _)| i as SlotId).collect()
        };
        let sums = kernel.folds.iter().zip(&schedule.folds).filter(|(_, f)| f.is_sum);
        SlotKinds {
            is_only_stage: schedule.body.len() == 1,
            operands: slots(|s| matches!(s, Slot::Input(_))),
            results: slots(|s| matches!(s, Slot::Output(_))),
            sums: sums.map(|((_, v), f)| (f.slot, kernel.value(*v).dtype)).collect(),
            rows: schedule.walks_rows.then(|| (slots(|s| !matches!(s, Slot::Const(_))), schedule.slots.len())),
        }
    }
}

/// Which bodies have loops over pairs of vectors, by their number of nodes.
#[derive(Debug)]
struct Pairing {
    /// At least so many: out-of-order execution overlaps iterations of shorter bodies anyway.
    least: usize,
    /// The same for bodies with [`PairedStores`].
    least_with_stores: usize,
    /// Longer ones are rare, and would take long to compile.
    most: usize,
}

const PAIRING: Pairing = Pairing { least: 20, least_with_stores: 0, most: 400 };

/// A loop over pairs of vectors.
struct Pairs {
    stores: PairedStores,
    /// Whether it serves only results that are streamed. For results in the caches a short loop without joined stores is faster
    /// (f16: 4 to 12 %).
    only_streamed: bool,
}

impl Pairing {
    fn of(&self, body: &Body, lanes: usize) -> Option<Pairs> {
        let n = body.nodes.len();
        let stores = PairedStores::of(body, lanes);
        let short = n < self.least;
        let pairs = n <= self.most && (!short || stores != PairedStores::Separate && n >= self.least_with_stores);
        pairs.then_some(Pairs { stores, only_streamed: short && stores == PairedStores::Halves })
    }
}

fn function(
    isa: Isa,
    kernel: &Kernel,
    segment: &Segment,
    slots: &SlotKinds,
    pairing: &Pairing,
) -> Result<emit::Function> {
    let lanes = lanes(isa, kernel, segment);
    let body = lower::lower(isa, kernel, segment, lanes, &slots.sums);
    if let Some(instruction) = body.missing {
        let name = instructions::mnemonic(instruction);
        return Err(Error::Internal(format!("code generation: AVX2 has no expansion of {name}")));
    }
    // There is no scale for elements of 16 bytes.
    let size = |v: ValueId| kernel.value(v).dtype.size();
    let moves = |(v, slot, one): &&(ValueId, SlotId, bool)| !one && slots.operands.contains(slot) && size(*v) <= 8;
    let operands: Vec<SlotId> = segment.loads.iter().filter(moves).map(|(_, slot, _)| *slot).collect();
    let widest = segment.loads.iter().filter(moves).map(|(v, ..)| size(*v)).max().unwrap_or(1);
    let memory = segment.loads.iter().map(|(v, ..)| *v).chain(segment.stores.iter().map(|(v, _)| *v));
    let has_16_byte_elements = memory.into_iter().any(|v| kernel.value(v).dtype == DType::C128);
    // The mask registers below are those of the remainder; number 0 cannot mask.
    let first_mask = if has_16_byte_elements { 3 } else { 2 };
    let allocated = alloc::allocate(&body, first_mask);
    let pairs = pairing.of(&body, lanes);
    let pair = pairs.as_ref().map(|pairs| {
        let mut pair = body.interleaved(2);
        pairs.stores.apply(&mut pair, lanes);
        pair
    });
    let paired = pair.as_ref().map(|pair| alloc::allocate(pair, first_mask));
    Ok(emit::function(
        &emit::AllocatedSegment {
            isa,
            lanes,
            allocated: &allocated,
            paired: paired.as_ref(),
            only_streamed: pairs.is_some_and(|p| p.only_streamed),
            // The constants of the pair are those of the body and possibly more.
            constants: &pair.as_ref().unwrap_or(&body).constants,
            has_16_byte_elements,
            is_only_stage: slots.is_only_stage,
            operands: &operands,
            prefetch_distance: memory::prefetch_bytes(operands.len()) / widest,
            results: &slots.results,
            sums: &slots.sums,
            rows: slots.rows.as_ref(),
        },
        false,
    ))
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
        let function = function(isa, kernel, segment, &SlotKinds::of(kernel, schedule), &PAIRING)?;
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
