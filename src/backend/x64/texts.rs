//! Which texts an instruction set has instructions for.
//!
//! Guarantees: of the text that is given out, `primitives` lowers every instruction. Does not: know ops, nor measure
//! where a kernel is faster.

use super::isa::Isa;
use crate::base::dtype::DType;
use crate::ops::Op;
use crate::ssa::{self, Inst, Prim, Text};

/// Whether an instruction set has instructions for an instruction of a text.
pub(super) fn lowers(isa: Isa, inst: &Inst) -> bool {
    match inst.prim {
        // By a table of sixteen doubles, as only AVX-512 can. The others are expanded elsewhere.
        Prim::Chosen(_) | Prim::Scaled | Prim::Significand | Prim::Exponent | Prim::LogEnds => isa == Isa::Avx512,
        Prim::ShiftUp(_) | Prim::ShiftDown(_) => inst.dtype.size() > 1,
        Prim::Pair => false,
        _ => true,
    }
}

/// The text of an op as the instruction set has it, if it has.
pub(super) fn text_of(isa: Isa, op: Op, d: DType) -> Option<&'static Text> {
    #[cfg(test)]
    if let Some(text) = GIVEN.get() {
        return Some(text);
    }
    let text = match isa {
        Isa::Avx512 => ssa::text(op, d),
        Isa::Avx2 => ssa::text_for(ssa::Form::Avx2, op, d, |inst| !lowers(Isa::Avx2, inst)),
    }?;
    // NaNs of half types are not made canonical.
    let kept = !text.canonical || !text.dtype(text.result).is_narrow();
    (kept && text.insts.iter().all(|inst| lowers(isa, inst))).then_some(text)
}

#[cfg(test)]
thread_local! {
    /// The text of whatever op this thread compiles, for tests of single primitives.
    pub(super) static GIVEN: std::cell::Cell<Option<&'static Text>> = const { std::cell::Cell::new(None) };
}
