//! Compiles the segments of a schedule: each becomes one loop over vectors.
//!
//! There are two back ends: `x64` on machines with AVX2 or AVX-512, and Cranelift, whose vectors have 128 bits, elsewhere.
//!
//! Guarantees: only the (op, dtype) pairs of [`is_lowerable`] are lowered, to instructions that do not trap on data: those that
//! the back end has the primitives of, but where a kernel is faster by a clear margin (`measured`); loads and
//! stores access `n` elements at each address of the table and nothing else, where `n` is, in Cranelift's loops, a multiple of the
//! segment's width; results have the same bits as those of the block kernels (`kernels`), as both are made of IEEE operations in
//! the same order and a NaN that leaves arithmetic is canonical. Does not: handle the elements after the last whole vector for
//! Cranelift (the driver pads), broadcast (a splat operand is one element), or lower what is left to block kernels, such as
//! integer division.

use crate::backend::access_order::AccessOrder;
use crate::backend::cranelift::emit::emit;
use crate::base::error::{Result, SourceLocation};
use crate::base::host::{FloatMode, NoFork, no_fork};
use crate::kernels::CpuLevel;
use crate::plan::kernel::{Kernel, Step};
use crate::plan::schedule::Schedule;

pub(crate) mod abi;
pub(crate) mod access_order;
mod code;
mod cranelift;
pub(crate) mod dump;
mod lanes;
mod listing;
mod measured;
#[cfg(test)]
mod tests;
mod x64;

pub(crate) use code::{Code, available};
use dump::CodeStage;
use measured::BackEnd;
use x64::isa::Isa;

/// Whether a step is lowered into a segment; one that is not is a kernel step.
pub(crate) fn is_lowerable(step: &Step) -> bool {
    is_lowerable_at(CpuLevel::get(), step)
}

/// [`is_lowerable`] on a machine of another level.
pub(crate) fn is_lowerable_at(level: CpuLevel, step: &Step) -> bool {
    let back_end = if Isa::of(level).is_some() { BackEnd::X64 } else { BackEnd::Cranelift };
    has_instructions(level, step) && !measured::kernel_is_faster(back_end, level, step)
}

/// Whether the back end of a level has instructions for a step, be they faster than its kernel or not.
fn has_instructions(level: CpuLevel, step: &Step) -> bool {
    match Isa::of(level) {
        Some(isa) => x64::is_lowerable(isa, step),
        None => cranelift::lower::is_lowerable(step),
    }
}

/// Compiles all segments of a schedule.
pub(crate) fn compile(kernel: &Kernel, schedule: &Schedule) -> Result<Code> {
    let _undisturbed = undisturbed();
    if let Some(isa) = Isa::of(CpuLevel::get()) {
        return x64::compile(isa, kernel, schedule);
    }
    let code =
        code::compile(schedule.segments.len(), &|i, builder| emit(kernel, &schedule.segments[i], builder, false))?;
    let step = |s: u32| &kernel.steps[s as usize];
    let order = |s| AccessOrder::of_steps(|s| step(s).args.iter().flatten().copied().collect(), |s| step(s).out, s);
    Ok(code.ordered(schedule.segments.iter().map(order).collect()))
}

/// Holds the standard floating-point mode, and keeps other threads from forking: Cranelift initializes statics, and a child forked
/// meanwhile would wait for them forever.
fn undisturbed() -> (FloatMode, NoFork) {
    (FloatMode::standard(), no_fork())
}

/// Whether compiled loops walk rows, if their schedule allows it.
pub(crate) fn walks_rows() -> bool {
    Isa::of(CpuLevel::get()).is_some()
}

/// The code of a schedule as text, as [`CodeStage`] says; `location` says where the user wrote a step.
pub(crate) fn dump(
    stage: CodeStage,
    kernel: &Kernel,
    schedule: &Schedule,
    location: &dyn Fn(u32) -> SourceLocation,
) -> Result<String> {
    let _undisturbed = undisturbed();
    dump::text(stage, kernel, schedule, location)
}
