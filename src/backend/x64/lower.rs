//! The body of a segment's loop, step by step: loads, the instructions of `primitives` and `cast`, stores.
//!
//! Guarantees: the bits of the block kernels. A NaN that comes from arithmetic becomes canonical where its bits are
//! demanded ([`demanded`]): where it is stored, or its bits are copied to a place that is; elsewhere it may have any
//! payload. Does not: allocate registers.

use foldhash::{HashSet, HashSetExt};

use super::instructions as ins;
use super::ir::{Body, NONE, Reg};
use super::isa::Isa;
use super::texts::text_of;
use crate::backend::lanes::has_lanes_for;
use crate::base::dtype::DType;
use crate::plan::kernel::{Kernel, Step, StepOp, ValueId};
use crate::plan::schedule::{Segment, SlotId};
use crate::ssa::{self, Nan, Shows};

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Out {
    /// Final.
    Done(Reg, Nan),
    /// Its NaNs must become canonical if their bits are demanded.
    Raw(Reg, Nan),
}

/// Where a value of the kernel is.
#[derive(Clone, Copy, Debug)]
enum Known {
    Undefined,
    /// In a slot; the flag says whether that has one element for all.
    Memory(SlotId, bool),
    Register(Reg, Nan),
}

/// The layout of floats in a vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real {
    /// Bytes of a lane, and of the vector.
    pub(super) size: usize,
    pub(super) bytes: usize,
}

/// Predicates of float comparisons: the quiet ones, which raise no flag for a quiet NaN.
pub(super) const UNORDERED: u8 = 0x03;
pub(super) const NE: u8 = 0x04;
pub(super) const ORDERED: u8 = 0x07;
pub(super) const GE: u8 = 0x1d;
pub(super) const GT: u8 = 0x1e;

/// Immediates of `vrange`: the maximum or the minimum, with -0 below +0.
pub(super) const MAX: u8 = 0b0101;
pub(super) const MIN: u8 = 0b0100;

pub(super) struct Lower<'a> {
    pub(super) body: Body,
    kernel: &'a Kernel,
    /// Elements of an iteration.
    pub(super) lanes: usize,
    values: Vec<Known>,
    /// The values whose bits are demanded.
    demanded: Vec<bool>,
    /// Vectors of f32 whose NaNs have no bits below those of a bf16.
    bf16_nans: HashSet<Reg>,
}

/// Whether a step is lowered into a segment.
pub(crate) fn is_lowerable(isa: Isa, step: &Step) -> bool {
    has_lanes_for(Some(isa), step)
        && match step.op {
            // AVX2 has no conversions between 64-bit integers and floats.
            StepOp::Cast(p) if isa == Isa::Avx2 && (is_quad(p.from) || is_quad(p.to)) => {
                !matches!((p.from, p.to), (_, DType::F32 | DType::BF16) | (DType::F32 | DType::F64, _))
            }
            StepOp::Cast(_) | StepOp::Bits(_) | StepOp::DoubleRounding(_) => true,
            StepOp::Apply(op) => text_of(isa, op, step.dtype).is_some(),
        }
}

/// Whether this is an integer of 64 bits.
fn is_quad(d: DType) -> bool {
    d.is_integral() && d.size() == 8
}

/// When the bits of a step's operand `i` are demanded.
fn demands(step: &Step, i: usize) -> Shows {
    match step.op {
        StepOp::Bits(_) => Shows::Always,
        StepOp::Cast(p) if p.from.is_complex() != p.to.is_complex() && p.to != DType::Bool => Shows::InNans,
        StepOp::DoubleRounding(_) if i == 1 => Shows::InNans,
        StepOp::Cast(_) | StepOp::DoubleRounding(_) => Shows::Never,
        StepOp::Apply(op) => ssa::text(op, step.dtype).map_or(Shows::Always, |text| text.shows(i)),
    }
}

/// The values of a segment whose bits are demanded: those that are stored, and those whose bits are copied into them. Not those that are
/// only summed: reductions make the NaNs of their results canonical.
fn demanded(kernel: &Kernel, segment: &Segment, sums: &[(SlotId, DType)]) -> Vec<bool> {
    let mut demanded = vec![false; kernel.values.len()];
    let kept = segment.stores.iter().filter(|(_, to)| !sums.iter().any(|(slot, _)| slot == to));
    kept.for_each(|(v, _)| demanded[*v as usize] = true);
    for s in segment.steps.iter().rev() {
        let step = &kernel.steps[*s as usize];
        for (i, a) in step.args.iter().flatten().enumerate() {
            demanded[*a as usize] |= match demands(step, i) {
                Shows::Never => false,
                Shows::InNans => demanded[step.out as usize],
                Shows::Always => true,
            };
        }
    }
    demanded
}

/// The body of a segment's loop. Stores to the slots of sums also have accumulated lanes, for loops that accumulate.
pub(super) fn lower(isa: Isa, kernel: &Kernel, segment: &Segment, lanes: usize, sums: &[(SlotId, DType)]) -> Body {
    let mut values = vec![Known::Undefined; kernel.values.len()];
    segment.loads.iter().for_each(|(v, slot, uniform)| values[*v as usize] = Known::Memory(*slot, *uniform));
    let mut stores: Vec<SlotId> = vec![SlotId::MAX; kernel.values.len()];
    segment.stores.iter().for_each(|(v, slot)| stores[*v as usize] = *slot);
    let demanded = demanded(kernel, segment, sums);
    let mut l = Lower { body: Body::new(isa), kernel, lanes, values, demanded, bf16_nans: HashSet::new() };
    for s in &segment.steps {
        let step = kernel.steps[*s as usize];
        l.body.step = *s;
        let result = l.step(&step);
        let (r, nan) = l.canonicalized(result, &step);
        l.values[step.out as usize] = Known::Register(r, nan);
        let slot = stores[step.out as usize];
        if slot != SlotId::MAX {
            let sum = sums.iter().position(|(of, _)| *of == slot).map(|i| l.accumulate(i, sums[i].1, r));
            l.store(slot, kernel.value(step.out).dtype, r, sum.unwrap_or(NONE));
        }
    }
    l.body.remove_dead();
    l.body
}

impl Lower<'_> {
    /// The register of a value. Operands are loaded at their first use.
    fn value(&mut self, v: ValueId) -> (Reg, Nan) {
        match self.values[v as usize] {
            Known::Register(r, nan) => (r, nan),
            Known::Memory(slot, uniform) => {
                let dtype = self.kernel.value(v).dtype;
                let loaded = self.body.load(slot, dtype, uniform);
                let r = if dtype == DType::Bool { self.nonzero(1, self.lanes, loaded) } else { loaded };
                self.values[v as usize] = Known::Register(r, Nan::Any);
                (r, Nan::Any)
            }
            // Unreachable: definitions come before uses.
            Known::Undefined => (NONE, Nan::Any),
        }
    }

    fn store(&mut self, slot: SlotId, dtype: DType, r: Reg, sum: Reg) {
        let r = if dtype == DType::Bool { self.bytes_of(r) } else { r };
        self.body.store(slot, dtype, r, sum);
    }

    /// The lanes of partial sum `i` plus `r`.
    fn accumulate(&mut self, i: usize, dtype: DType, r: Reg) -> Reg {
        self.body.accumulate(i as u32, self.lanes * dtype.size(), r)
    }

    /// A mask as bytes of 0 and 1.
    pub(super) fn bytes_of(&mut self, mask: Reg) -> Reg {
        let one = self.body.splat(1, 1);
        self.body.select_or_zero(1, self.lanes, mask, one)
    }

    /// Which integer lanes are not zero.
    pub(super) fn nonzero(&mut self, size: usize, bytes: usize, a: Reg) -> Reg {
        let instruction =
            [ins::VPTESTMB, ins::VPTESTMW, ins::VPTESTMD, ins::VPTESTMQ][size.trailing_zeros() as usize % 4];
        self.body.bin(instruction, bytes, a, a)
    }

    /// The layout of the parts of a float or complex dtype.
    pub(super) fn real(&self, d: DType) -> Real {
        Real { size: d.real().size(), bytes: self.lanes * d.size() }
    }

    /// The register of a result, with canonical NaNs if their bits are demanded.
    fn canonicalized(&mut self, result: Out, step: &Step) -> (Reg, Nan) {
        match result {
            Out::Done(r, nan) => (r, nan),
            Out::Raw(r, nan) if nan == Nan::Canonical || !self.demanded[step.out as usize] => (r, nan),
            Out::Raw(r, nan) => (self.canonical(self.real(self.kernel.value(step.out).dtype), r, nan), Nan::Canonical),
        }
    }

    /// Replaces every NaN by the canonical one; `known` is what is known of them.
    pub(super) fn canonical(&mut self, x: Real, a: Reg, known: Nan) -> Reg {
        let nan = self.float(x, f64::NAN);
        let r = if known == Nan::Any || self.body.isa == Isa::Avx2 {
            let is_nan = self.compare(x, UNORDERED, a, a);
            self.body.select(x.size, x.bytes, is_nan, nan, a)
        } else {
            // Of a number and a quiet NaN the instruction returns the number, of two NaNs the first. Unlike a
            // comparison it does not run on the multiply-add ports, which most functions keep busy.
            self.body.bin_imm([ins::VRANGEPS, ins::VRANGEPD][x.size / 8], x.bytes, nan, a, MAX)
        };
        self.mark_bf16_nans(r)
    }

    /// Records that the NaNs of a vector of f32 have no bits below those of a bf16.
    pub(super) fn mark_bf16_nans(&mut self, r: Reg) -> Reg {
        self.bf16_nans.insert(r);
        r
    }

    pub(super) fn has_bf16_nans(&self, r: Reg) -> bool {
        self.bf16_nans.contains(&r)
    }

    pub(super) fn is_demanded(&self, v: ValueId) -> bool {
        self.demanded[v as usize]
    }

    fn step(&mut self, step: &Step) -> Out {
        let mut args = [(NONE, Nan::Any); crate::ops::MAX_OPERANDS];
        for (to, v) in args.iter_mut().zip(step.args.iter().flatten()) {
            *to = self.value(*v);
        }
        let d = step.dtype;
        let op = match step.op {
            StepOp::Cast(p) => return self.convert(p, args[0].0, args[0].1, step.out),
            StepOp::Bits(to) => return Out::Done(self.reinterpret(args[0].0, d, to), Nan::Any),
            StepOp::DoubleRounding(op) => return Out::Done(self.double_rounding(op, args[0].0, args[1].0), args[1].1),
            StepOp::Apply(op) => op,
        };
        let Some(text) = text_of(self.body.isa, op, d) else {
            self.body.refused = Some(op.name());
            return Out::Done(args[0].0, Nan::Any);
        };
        let (r, nan) = self.text(text, &args);
        let has_nans = !text.dtype(text.result).is_integral();
        if text.canonical && has_nans { Out::Raw(r, nan) } else { Out::Done(r, nan) }
    }

    fn reinterpret(&mut self, a: Reg, from: DType, to: DType) -> Reg {
        match (from == DType::Bool, to == DType::Bool) {
            (true, false) => self.bytes_of(a),
            (false, true) => self.nonzero(1, self.lanes, a),
            _ => a,
        }
    }
}
