//! Compiles the segments of a schedule: each becomes one loop over vectors.
//!
//! There are two generators. On machines with AVX2 or AVX-512 it is `x64`. Elsewhere it is Cranelift, which makes 128-bit
//! vectors: `lower`, `cast`, `lanes` and what is here.
//!
//! Guarantees: only (op, dtype) pairs of [`is_lowerable`] are lowered, each to instructions that cannot trap on data; loads
//! and stores go only to the addresses of the table, `n` elements each, with `n` (for Cranelift's loops) a multiple of
//! the segment's width; results have the same bits as the block kernels, because both are made of IEEE operations in the
//! same order and a NaN that leaves arithmetic is made canonical. Does not: handle what is left of a run after whole vectors (the
//! driver pads), broadcast (a splat operand is one element), or lower transcendentals and integer division (those are
//! block kernels, and for Cranelift 16-bit floats too).

use crate::backend::cranelift::emit::emit;
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::host::{FloatMode, NoFork, no_fork};
use crate::kernels::CpuLevel;
use crate::plan::kernel::{Kernel, Step, StepOp};
use crate::plan::schedule::Schedule;

pub(crate) mod abi;
mod code;
mod cranelift;
mod marks;
#[cfg(test)]
mod tests;
mod x64;

pub(crate) use code::{Code, available};
use x64::isa::Isa;

/// Whether a step is lowered into a segment.
pub(crate) fn is_lowerable(step: &Step) -> bool {
    inline_at(CpuLevel::get(), step)
}

/// Whether there are instructions for the elements of a dtype. There are none for unsigned integers of more than a byte, nor for
/// floats of one.
fn has_lanes(d: DType) -> bool {
    if d.is_unsigned() { d.size() == 1 } else { d.is_integral() || d.real().size() > 1 }
}

/// As [`is_lowerable`], on a machine of another level.
pub(crate) fn inline_at(level: CpuLevel, step: &Step) -> bool {
    let dtypes = match step.op {
        StepOp::Cast(p) => [p.from, p.to],
        StepOp::Bits(to) => [step.dtype, to],
        StepOp::Apply(_) | StepOp::DoubleRounding(_) => [step.dtype; 2],
    };
    match Isa::of(level) {
        _ if !dtypes.into_iter().all(has_lanes) => false,
        Some(isa) => x64::is_lowerable(isa, step),
        None => cranelift::lower::is_lowerable(step),
    }
}

/// Compiles all segments of a schedule into one block of code.
pub(crate) fn compile(kernel: &Kernel, schedule: &Schedule) -> Result<Code> {
    let _undisturbed = undisturbed();
    if let Some(isa) = Isa::of(CpuLevel::get()) {
        return x64::compile(isa, kernel, schedule);
    }
    code::compile(schedule.segments.len(), &|i, builder| emit(kernel, &schedule.segments[i], builder))
}

/// Code is made in the standard mode, and while no other thread forks: a child could not go on where the libraries behind
/// this make something once.
fn undisturbed() -> (FloatMode, NoFork) {
    (FloatMode::standard(), no_fork())
}

/// Whether a compiled loop of a schedule that walks rows does.
pub(crate) fn walks_rows() -> bool {
    Isa::of(CpuLevel::get()).is_some()
}

/// The text of all segments of a schedule: Cranelift's IR before optimization, or instructions.
pub(crate) fn clif_text(kernel: &Kernel, schedule: &Schedule) -> Result<String> {
    let _undisturbed = undisturbed();
    if let Some(isa) = Isa::of(CpuLevel::get()) {
        return x64::listing(isa, kernel, schedule);
    }
    code::clif_text(schedule.segments.len(), &|i, builder| emit(kernel, &schedule.segments[i], builder))
}
