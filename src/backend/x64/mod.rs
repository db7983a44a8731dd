//! The x64 back end: segments as loops over vectors of 512 bits on machines with AVX-512, of 256 bits on others with
//! AVX2.
//!
//! It exists because Cranelift's vectors have 128 bits at most. A segment is one basic block, so a short pipeline does:
//! `lower` selects AVX-512 instructions on virtual registers (`ir`, which expands them to AVX2 by way of `avx2`),
//! `alloc` assigns machine registers in one pass, `emit` writes loops, and `asm` encodes them. An iteration has as many
//! elements as a vector holds of the segment's widest dtype, so that each value is one register (or the lower part of
//! one), and each boolean one mask register, or with AVX2 one vector.
//!
//! Guarantees: the same bits as the block kernels; no instruction that traps on data (`instructions` lists them all); a
//! segment takes any number of elements from 1 up and accesses no memory outside of them. A long body is interleaved
//! over two vectors, which hides instruction latency (measured, with AVX-512 and AVX2: functions take 5 to 15 and 10 to
//! 25 % less time, Black-Scholes 30 % less). With AVX-512 a loop that adds to sums keeps their lanes in registers and is
//! unrolled over them (`kept_sums`). Does not: unroll otherwise (measured: no gain), contract, or make code executable
//! (`code` does).

mod alloc;
mod asm;
mod avx2;
mod cast;
mod emit;
mod instructions;
mod ir;
pub(crate) mod isa;
mod kept_sums;
pub(crate) mod listing;
mod lower;
mod lower_float;
mod lower_int_complex;
mod memory;
mod paired_stores;
mod prefetch;
mod primitives;
mod print;
mod remainder_moves;
mod segment;
mod slow_path;
mod texts;

pub(crate) use lower::is_lowerable;

use super::code::{self, Code};
use crate::base::error::Result;
use crate::plan::kernel::Kernel;
use crate::plan::schedule::Schedule;
use isa::Isa;
use segment::{PAIRING, Pairing, SegmentCode, SlotKinds};

/// Compiles all segments of a schedule.
pub(crate) fn compile(isa: Isa, kernel: &Kernel, schedule: &Schedule) -> Result<Code> {
    compile_paired(isa, kernel, schedule, &PAIRING)
}

/// [`compile`] with a choice of which bodies have loops over pairs of vectors.
fn compile_paired(isa: Isa, kernel: &Kernel, schedule: &Schedule, pairing: &Pairing) -> Result<Code> {
    let slots = SlotKinds::of(kernel, schedule);
    let (mut functions, mut orders) = (Vec::new(), Vec::new());
    for s in &schedule.segments {
        let segment = SegmentCode::new(isa, kernel, s, &slots, pairing)?;
        functions.push(segment.function(false).bytes);
        orders.push(segment.access_order());
    }
    Ok(code::place(&functions)?.ordered(orders))
}

// Tests decode what is emitted with a library that only x86-64 has.
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests;
