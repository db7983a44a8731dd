//! The dtypes that each back end has lanes of.
//!
//! Guarantees: a step of any other dtype stays a kernel. The `match` is complete, so that a new dtype is compiled only by a
//! decision here. Does not: say which ops and conversions have instructions; each back end does.

use super::x64::isa::Isa;
use crate::base::dtype::DType::{self, *};
use crate::plan::kernel::{Step, StepOp};

/// Whether an instruction set of the x64 back end, or Cranelift if there is none, has lanes of a dtype.
fn has_lanes(isa: Option<Isa>, d: DType) -> bool {
    match d {
        F8E4M3FN | F8E5M2 => isa.is_some(),
        Bool | U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64 | F16 | BF16 | F32 | F64 | C32 | C64 | C128 => true,
    }
}

/// Whether there are lanes of the dtypes that a step reads and makes.
pub(super) fn has_lanes_for(isa: Option<Isa>, step: &Step) -> bool {
    let dtypes = match step.op {
        StepOp::Cast(p) => [p.from, p.to],
        StepOp::Bits(to) => [step.dtype, to],
        StepOp::Apply(_) | StepOp::DoubleRounding(_) => [step.dtype; 2],
    };
    dtypes.into_iter().all(|d| has_lanes(isa, d))
}
