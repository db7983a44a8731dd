//! What computing a value costs beside moving its bytes: the one table of costs.
//!
//! The unit is the cost of moving a byte between memory and a core, for one element of a loop. An instruction of a row's text
//! ([`crate::ssa`]) handles a vector at a time, so its cost grows with the size of its elements: `weight * size / PER_BYTE`,
//! where a weight counts simple vector instructions. So a new op has a cost by its row alone.
//!
//! Guarantees: what has no cost is never computed again: ops without a text, which run as kernels over tiles and which alone may
//! refuse data, corrections of double roundings, functions of users. Does not: know extents, or what is in a cache; the cost of
//! moving bytes is that of memory, which is where it matters.

use super::kernel::{Kernel, Step, StepOp};
use super::tuning::INSTRUCTIONS_PER_BYTE;
use crate::base::dtype::{Category, DType};
use crate::kernels::cast;
use crate::ssa::{Prim, text};

/// Weight of a division or a square root: its throughput beside an addition's.
const DIVISION: u32 = 10;
/// Weight of a conversion to or from eight bits.
const EIGHT_BITS: u32 = 12;

/// The weight of a primitive of texts.
fn weight(prim: Prim, dtype: DType) -> u32 {
    let is_float = dtype.is_float();
    match prim {
        Prim::Const(_) | Prim::Bits(_) | Prim::RealPart | Prim::ImagPart => 0,
        Prim::Div | Prim::Sqrt => DIVISION,
        Prim::Mul if dtype.size() == 8 && !is_float => 3,
        Prim::Maximum | Prim::Minimum | Prim::Fmax | Prim::Fmin if is_float => 4,
        Prim::Least | Prim::Most | Prim::ComplexCompare(..) | Prim::Signed | Prim::Turned | Prim::Pair => 2,
        Prim::Scaled | Prim::Significand | Prim::Exponent | Prim::LogEnds => 4,
        Prim::Chosen(_) => 4,
        Prim::SlowPath(_) | Prim::ComplexMul => 6,
        _ => 1,
    }
}

/// The weight of a primitive conversion.
fn conversion(p: cast::Prim) -> u32 {
    use Category::{Complex, Float};
    match (p.from, p.to) {
        (from, to) if from.is_byte_float() || to.is_byte_float() => EIGHT_BITS,
        (_, DType::BF16) => 8,
        (from, to) if from.is_narrow() || to.is_narrow() => 2,
        (from, to) if (from.category() == Float) != (to.category() == Float) => 4,
        (from, _) if from.category() == Complex => 2,
        _ => 1,
    }
}

/// The cost of a step for an element, in bytes moved.
fn of_step(step: &Step) -> Option<f32> {
    let instructions = match step.op {
        StepOp::Apply(op) => {
            let text = text(op, step.dtype)?;
            // A NaN that leaves a text is made canonical.
            let last = u32::from(text.canonical) * 2 * step.dtype.size() as u32;
            text.insts.iter().map(|i| weight(i.prim, i.dtype) * i.dtype.size() as u32).sum::<u32>() + last
        }
        StepOp::Cast(p) => conversion(p) * p.from.size().max(p.to.size()) as u32,
        StepOp::Bits(_) => 0,
        StepOp::DoubleRounding(_) => return None,
    };
    Some(instructions as f32 / INSTRUCTIONS_PER_BYTE)
}

/// The cost of a kernel's steps for an element, in bytes moved; none if one must not be computed again.
pub(super) fn of_steps(k: &Kernel) -> Option<f32> {
    k.steps.iter().map(of_step).sum()
}
