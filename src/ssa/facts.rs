//! What is known of NaNs: those of a text's result, and whether the bits of an operand's NaNs can be seen in it.
//!
//! Guarantees: the facts of a composite hold for its expansion and for any instruction that a back end uses for it. A primitive
//! of which nothing is said here has the facts that hold for every one; what is said saves instructions. Does not: make NaNs
//! canonical; back ends do, at the end of a text, where it says so and the bits can be seen.

use super::prim::{Nan, Prim, Shows};
use super::text::{Inst, Text, Value};
use crate::base::dtype::DType;

impl Prim {
    /// What is known of the NaNs of a result, by what is known of those of the operands.
    pub(crate) fn nan(self, dtype: DType, args: &[Nan]) -> Nan {
        use Prim::*;
        let arg = |i: usize| args.get(i).copied().unwrap_or(Nan::Any);
        let quiet = |i: usize| arg(i).min(Nan::Quiet);
        match self {
            // There are none.
            _ if self.result(dtype).is_integral() => Nan::Canonical,
            Const(bits) => {
                let (d, magnitude) = (dtype.real(), bits & (u64::MAX >> (65 - 8 * dtype.real().size())));
                let canonical = magnitude <= d.infinity_bits() || bits == d.nan_bits();
                if canonical { Nan::Canonical } else { Nan::Any }
            }
            Add | Sub | Mul | Div | Sqrt | Round(_) | Fma | Fms | Fnma | Scaled | ComplexMul | Exponent
            | Significand => Nan::Quiet,
            Neg | Conj | CopySign | Signed | Turned | LogEnds => quiet(0),
            Abs | RealPart | ImagPart | SlowPath(_) => arg(0),
            Select => arg(1).min(arg(2)),
            Least | Most | Fmax | Fmin | Pair => arg(0).min(arg(1)),
            Maximum | Minimum | Pick { .. } => Nan::Canonical,
            _ => Nan::Any,
        }
    }

    /// What of the bits of operand `i`'s NaNs is in the result. Of arithmetic's it is in NaNs.
    pub(crate) fn shows(self, i: usize) -> Shows {
        use Prim::*;
        match self {
            Const(_) | Compare(_) | ComplexCompare(..) | Maximum | Minimum => Shows::Never,
            Add | Sub | Mul | Div | Sqrt | Round(_) | Fma | Fms | Fnma | ComplexMul | Neg | Abs | Conj | Least
            | Most | Fmax | Fmin | LogEnds | Exponent | Significand | RealPart | ImagPart | Pair => Shows::InNans,
            Select if i == 0 => Shows::Never,
            Select => Shows::InNans,
            CopySign | Signed | Turned if i == 0 => Shows::InNans,
            // NaNs are near: the kernel is not asked.
            SlowPath(_) if i > 0 => Shows::Never,
            SlowPath(_) => Shows::InNans,
            Scaled if i < 2 => Shows::InNans,
            _ => Shows::Always,
        }
    }

    /// Whether a NaN of operand `i` always makes the result NaN.
    fn passes(self, i: usize) -> bool {
        use Prim::*;
        match self {
            Add | Sub | Mul | Div | Sqrt | Round(_) | Fma | Fms | Fnma | Neg | Abs | Maximum | Minimum => true,
            LogEnds | Significand | Exponent => true,
            Least | Most => i == 1,
            CopySign | Signed | Turned | SlowPath(_) => i == 0,
            Scaled => i < 2,
            // `Fmax`, `Fmin` and `Select` by both operands at once: see `is_strict`. Of two parts one may be NaN alone.
            _ => false,
        }
    }
}

impl Text {
    /// What is known of the NaNs of the result, before they are made canonical.
    pub(crate) fn nan(&self, operands: &[Nan]) -> Nan {
        let mut known = operands.to_vec();
        for inst in &self.insts {
            let args: Vec<Nan> = inst.args().iter().map(|a| known[a.index()]).collect();
            known.push(inst.prim.nan(inst.dtype, &args));
        }
        known[self.result.index()]
    }

    /// [`Text::shows`], computed.
    pub(super) fn operand_shows(&self, i: usize) -> Shows {
        let operand = Value(i as u16);
        if self.operands[i].is_integral() || self.canonical && self.strict(operand) {
            return Shows::Never;
        }
        // What is seen of each value, from the result back.
        let mut seen = vec![Shows::Never; self.operands.len() + self.insts.len()];
        let in_result = if self.canonical { Shows::Never } else { Shows::InNans };
        seen[self.result.index()] = in_result;
        for (at, inst) in self.insts.iter().enumerate().rev() {
            let result = seen[self.value(at).index()];
            for (n, a) in inst.args().iter().enumerate() {
                let shown = match inst.prim.shows(n) {
                    Shows::InNans => result,
                    other => other,
                };
                let known = &mut seen[a.index()];
                *known = (*known).max(shown);
            }
        }
        seen[i]
    }

    /// Whether the result is NaN wherever an operand is.
    fn strict(&self, operand: Value) -> bool {
        let mut strict: Vec<bool> = (0..self.operands.len()).map(|i| i == operand.index()).collect();
        for inst in &self.insts {
            let now = self.is_strict(inst, &strict);
            strict.push(now);
        }
        strict[self.result.index()]
    }

    fn is_strict(&self, inst: &Inst, strict: &[bool]) -> bool {
        let of = |i: usize| strict[inst.args()[i].index()];
        match inst.prim {
            Prim::Const(bits) => inst.dtype.is_float() && bits == inst.dtype.nan_bits(),
            Prim::Select => of(1) && of(2),
            Prim::Fmax | Prim::Fmin => of(0) && of(1),
            prim => (0..prim.arity()).any(|i| prim.passes(i) && of(i)),
        }
    }
}
