//! Lowering of steps: of an op by its text, one arm a primitive.
//!
//! Guarantees: [`is_lowerable`] accepts what [`Emit::step`] lowers; a primitive has the bits of its generic expansion
//! but for NaNs, which are made canonical where they are stored or their bits move on. Composites are expanded, but
//! those that 128-bit vectors have. Does not: lower what no machine without AVX2 has vectors for: fused
//! multiplications, shifts lane by lane, products of bytes.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value as Clif, types};

use super::emit::{Args, Lanes, Repr, vector};
use super::parts::Parts;
use crate::backend::cranelift::emit::Emit;
use crate::backend::lanes::has_lanes_for;
use crate::base::dtype::{Category, DType};
use crate::ops::Op;
use crate::plan::kernel::{Step, StepOp};
use crate::ssa::{self, Inst, Nan, Predicate, Prim, Rounding, Shows, Text};
use smallvec::SmallVec;

/// Whether Cranelift lowers a step into a segment.
pub(crate) fn is_lowerable(step: &Step) -> bool {
    has_lanes_for(None, step)
        && match step.op {
            StepOp::Cast(p) => super::cast::is_lowerable(p),
            StepOp::Bits(_) | StepOp::DoubleRounding(_) => false,
            StepOp::Apply(op) => text_of(op, step.dtype).is_some(),
        }
}

/// The text of an op of which every instruction is lowered.
fn text_of(op: Op, d: DType) -> Option<&'static Text> {
    let text = ssa::text_for(ssa::Form::Cranelift, op, d, |inst| !lowers(inst))?;
    // NaNs of half types are not made canonical.
    let kept = !text.canonical || !text.dtype(text.result).is_narrow();
    (kept && text.insts.iter().all(lowers)).then_some(text)
}

/// Whether an instruction of a text is lowered.
fn lowers(inst: &Inst) -> bool {
    use Prim::*;
    let d = inst.dtype;
    match inst.prim {
        Const(_) | Add | Sub | Div | Neg | Abs | Sqrt | Round(_) | CopySign | Compare(_) | Select | And | Or | Xor
        | AndNot | Not | ComplexMul => true,
        Mul => d.size() > 1,
        // Of integers; of floats they are composites.
        Maximum | Minimum => !d.is_float(),
        _ => false,
    }
}

/// A comparison of floats, and whether its result is to be negated: Cranelift has no vectors of `UnorderedOrLessThan` and the
/// like for ARM.
fn float_condition(p: Predicate) -> (FloatCC, bool) {
    match p {
        Predicate::Equal => (FloatCC::Equal, false),
        Predicate::NotEqual => (FloatCC::NotEqual, false),
        Predicate::Less => (FloatCC::LessThan, false),
        Predicate::LessEqual => (FloatCC::LessThanOrEqual, false),
        Predicate::Greater => (FloatCC::GreaterThan, false),
        Predicate::GreaterEqual => (FloatCC::GreaterThanOrEqual, false),
        Predicate::NotLess => (FloatCC::LessThan, true),
        Predicate::NotLessEqual => (FloatCC::LessThanOrEqual, true),
        Predicate::NotGreater => (FloatCC::GreaterThan, true),
        Predicate::NotGreaterEqual => (FloatCC::GreaterThanOrEqual, true),
        Predicate::Ordered => (FloatCC::Ordered, false),
        Predicate::Unordered => (FloatCC::Unordered, false),
    }
}

/// A comparison of integers.
fn int_condition(p: Predicate, signed: bool) -> IntCC {
    match (p, signed) {
        (Predicate::Equal | Predicate::Ordered, _) => IntCC::Equal,
        (Predicate::NotEqual | Predicate::Unordered, _) => IntCC::NotEqual,
        (Predicate::Less | Predicate::NotGreaterEqual, true) => IntCC::SignedLessThan,
        (Predicate::Less | Predicate::NotGreaterEqual, false) => IntCC::UnsignedLessThan,
        (Predicate::LessEqual | Predicate::NotGreater, true) => IntCC::SignedLessThanOrEqual,
        (Predicate::LessEqual | Predicate::NotGreater, false) => IntCC::UnsignedLessThanOrEqual,
        (Predicate::Greater | Predicate::NotLessEqual, true) => IntCC::SignedGreaterThan,
        (Predicate::Greater | Predicate::NotLessEqual, false) => IntCC::UnsignedGreaterThan,
        (Predicate::GreaterEqual | Predicate::NotLess, true) => IntCC::SignedGreaterThanOrEqual,
        (Predicate::GreaterEqual | Predicate::NotLess, false) => IntCC::UnsignedGreaterThanOrEqual,
    }
}

/// The sign bit of a float, or of a part.
fn sign_bit(d: DType) -> u64 {
    1 << (8 * d.real().size() - 1)
}

/// These bits in every lane of a part of a dtype, as one half of a vector.
fn repeated(d: DType, bits: u64) -> u64 {
    let width = 8 * d.real().size() as u32;
    (0..64 / width).fold(0, |all, i| all | bits << (i * width))
}

impl Emit<'_, '_> {
    /// The result of a step that [`is_lowerable`] accepts.
    pub(in crate::backend) fn step(&mut self, step: &Step, args: &[Lanes]) -> Lanes {
        let op = match step.op {
            StepOp::Cast(p) => return self.convert(p, &args[0]),
            StepOp::Bits(_) => return self.refuse("view_as", args),
            StepOp::DoubleRounding(op) | StepOp::Apply(op) => op,
        };
        match (text_of(op, step.dtype), ssa::text(op, step.dtype), step.op) {
            (Some(text), Some(recorded), StepOp::Apply(_)) => self.text(text, recorded, args),
            _ => self.refuse(op.name(), args),
        }
    }

    /// Something that nothing lowers: no code is made.
    fn refuse(&mut self, what: &'static str, args: &[Lanes]) -> Lanes {
        self.refused = Some(what);
        args[0].clone()
    }

    /// The result of a text of these operands. What is known of NaNs is known of the text with its composites.
    fn text(&mut self, text: &Text, recorded: &Text, args: &[Lanes]) -> Lanes {
        let mut values: SmallVec<[Lanes; 8]> = SmallVec::with_capacity(text.operands.len() + text.insts.len());
        for (i, d) in text.operands.iter().enumerate() {
            let shown = recorded.shows(i) != Shows::Never;
            values.push(if shown { self.canonicalized(&args[i], *d) } else { args[i].clone() });
        }
        for inst in &text.insts {
            let args: Args = inst.args().iter().map(|a| values[a.index()].clone()).collect();
            let result = self.inst(inst, &args);
            values.push(result);
        }
        let raw_nan =
            text.canonical && !text.dtype(text.result).is_integral() && recorded.result_nan() != Nan::Canonical;
        Lanes { raw_nan, ..values.swap_remove(text.result.index()) }
    }

    /// Every primitive, by its instructions for the dtype.
    fn inst(&mut self, inst: &Inst, args: &[Lanes]) -> Lanes {
        let d = inst.dtype;
        let (is_int, signed) = (d.category() == Category::Int, !d.is_unsigned());
        match inst.prim {
            Prim::Const(bits) if d == DType::Bool => {
                Lanes::mask(1, Parts::Splat(self.constant(types::I8X16, if bits == 0 { 0 } else { u64::MAX })))
            }
            Prim::Const(bits) => Lanes::data(Parts::Splat(self.constant(vector(d), repeated(d, bits)))),
            Prim::Add if is_int => self.pairs(args, |e, a, b| e.b.ins().iadd(a, b)),
            Prim::Add => self.pairs(args, |e, a, b| e.b.ins().fadd(a, b)),
            Prim::Sub if is_int => self.pairs(args, |e, a, b| e.b.ins().isub(a, b)),
            Prim::Sub => self.pairs(args, |e, a, b| e.b.ins().fsub(a, b)),
            Prim::Mul if is_int => self.pairs(args, |e, a, b| e.b.ins().imul(a, b)),
            Prim::Mul => self.pairs(args, |e, a, b| e.b.ins().fmul(a, b)),
            Prim::Div => self.pairs(args, |e, a, b| e.b.ins().fdiv(a, b)),
            Prim::Neg if is_int => self.each(args, |e, a| e.b.ins().ineg(a)),
            Prim::Neg => {
                let signs = self.constant(vector(d), repeated(d, sign_bit(d)));
                self.each(args, |e, a| e.b.ins().bxor(a, signs))
            }
            Prim::Abs if is_int => self.each(args, |e, a| {
                let negative = e.b.ins().ineg(a);
                e.b.ins().smax(a, negative)
            }),
            Prim::Abs => {
                let others = self.constant(vector(d), !repeated(d, sign_bit(d)));
                self.each(args, |e, a| e.b.ins().band(a, others))
            }
            Prim::Sqrt => self.each(args, |e, a| e.b.ins().sqrt(a)),
            Prim::Round(Rounding::Nearest) => self.each(args, |e, a| e.b.ins().nearest(a)),
            Prim::Round(Rounding::Down) => self.each(args, |e, a| e.b.ins().floor(a)),
            Prim::Round(Rounding::Up) => self.each(args, |e, a| e.b.ins().ceil(a)),
            Prim::Round(Rounding::Zero) => self.each(args, |e, a| e.b.ins().trunc(a)),
            Prim::Maximum if is_int && signed => self.pairs(args, |e, a, b| e.b.ins().smax(a, b)),
            Prim::Maximum if is_int => self.pairs(args, |e, a, b| e.b.ins().umax(a, b)),
            Prim::Minimum if is_int && signed => self.pairs(args, |e, a, b| e.b.ins().smin(a, b)),
            Prim::Minimum if is_int => self.pairs(args, |e, a, b| e.b.ins().umin(a, b)),
            Prim::CopySign => {
                let signs = self.constant(vector(d), repeated(d, sign_bit(d)));
                self.pairs(args, |e, a, b| {
                    let (rest, sign) = (e.b.ins().band_not(a, signs), e.b.ins().band(b, signs));
                    e.b.ins().bor(rest, sign)
                })
            }
            Prim::Compare(p) if is_int => {
                let compared = self.pairs(args, |e, a, b| e.b.ins().icmp(int_condition(p, signed), a, b));
                Lanes::mask(d.size(), compared.parts)
            }
            Prim::Compare(p) => {
                let (condition, negated) = float_condition(p);
                let compared = self.pairs(args, |e, a, b| {
                    let holds = e.b.ins().fcmp(condition, a, b);
                    if negated { e.b.ins().bnot(holds) } else { holds }
                });
                Lanes::mask(d.size(), compared.parts)
            }
            Prim::Select => self.select(d, args),
            Prim::And => self.bitwise(d, args, |e, a, b| e.b.ins().band(a, b)),
            Prim::Or => self.bitwise(d, args, |e, a, b| e.b.ins().bor(a, b)),
            Prim::Xor => self.bitwise(d, args, |e, a, b| e.b.ins().bxor(a, b)),
            Prim::AndNot => self.bitwise(d, args, |e, a, b| e.b.ins().band_not(b, a)),
            Prim::Not => self.bitwise(d, args, |e, a, _| e.b.ins().bnot(a)),
            Prim::ComplexMul => self.pairs(args, |e, a, b| e.complex_mul(d, a, b)),
            // No text that is lowered has one of the others: see `lowers`.
            _ => self.missing(inst),
        }
    }

    /// Something that nothing lowers: no code is made.
    fn missing(&mut self, inst: &Inst) -> Lanes {
        self.refused = Some(inst.prim.name());
        Lanes::data(Parts::Splat(self.constant(vector(inst.dtype), 0)))
    }

    /// Applies `f` to each vector of an operand.
    fn each(&mut self, args: &[Lanes], mut f: impl FnMut(&mut Self, Clif) -> Clif) -> Lanes {
        Lanes::data(args[0].parts.map(|a| f(self, a)))
    }

    /// Applies `f` to the vectors of two operands.
    fn pairs(&mut self, args: &[Lanes], mut f: impl FnMut(&mut Self, Clif, Clif) -> Clif) -> Lanes {
        Lanes::data(Parts::zip([&args[0].parts, &args[1].parts], |[a, b]| f(self, a, b)))
    }

    /// Applies `f` to the vectors of one or two operands, which of truth values have lanes of one width.
    fn bitwise(&mut self, d: DType, args: &[Lanes], mut f: impl FnMut(&mut Self, Clif, Clif) -> Clif) -> Lanes {
        let (a, b) = (&args[0], args.get(1).unwrap_or(&args[0]));
        if d != DType::Bool {
            return Lanes::data(Parts::zip([&a.parts, &b.parts], |[a, b]| f(self, a, b)));
        }
        let size = self.common_mask(args);
        let (a, b) = (self.mask(a, size), self.mask(b, size));
        Lanes::mask(size, Parts::zip([&a, &b], |[a, b]| f(self, a, b)))
    }

    fn select(&mut self, d: DType, args: &[Lanes]) -> Lanes {
        if d == DType::Bool {
            let size = self.common_mask(args);
            let masks = [0, 1, 2].map(|i| self.mask(&args[i], size));
            return Lanes::mask(size, Parts::zip(masks.each_ref(), |[c, a, b]| self.b.ins().bitselect(c, a, b)));
        }
        let mask = self.mask(&args[0], d.size());
        Lanes::data(Parts::zip([&mask, &args[1].parts, &args[2].parts], |[c, a, b]| self.select_lanes(c, a, b)))
    }

    /// The narrowest lane width among truth values, for the fewest vectors. A splat has every width.
    fn common_mask(&self, args: &[Lanes]) -> usize {
        let sizes = args.iter().filter_map(|a| match (a.repr, &a.parts) {
            (Repr::Mask(size), Parts::Each(_)) => Some(size),
            _ => None,
        });
        sizes.min().unwrap_or(1)
    }

    /// `(ar*br - ai*bi, ar*bi + ai*br)` on interleaved parts.
    fn complex_mul(&mut self, d: DType, a: Clif, b: Clif) -> Clif {
        let ty = vector(d);
        let lane = d.size() / 2;
        // Bytes of the real part, the imaginary part, and the other part of each lane.
        let picks =
            |f: fn(usize) -> usize| -> [u8; 16] { std::array::from_fn(|i| (f(i / lane) * lane + i % lane) as u8) };
        let (re, im) = (self.shuffle(a, a, picks(|l| l & !1)), self.shuffle(a, a, picks(|l| l | 1)));
        let swapped = self.shuffle(b, b, picks(|l| l ^ 1));
        let (re, im, swapped) = (self.bits(re, ty), self.bits(im, ty), self.bits(swapped, ty));
        let straight = self.b.ins().fmul(re, b);
        let crossed = self.b.ins().fmul(im, swapped);
        // The sign bit of the real lanes: a - b is a + (-b).
        let signs = if lane == 4 { 0x8000_0000u64.into() } else { u128::from(1u64 << 63) };
        let bytes: [u8; 16] = if lane == 4 { (signs | signs << 64).to_le_bytes() } else { signs.to_le_bytes() };
        let handle = self.b.func.dfg.constants.insert(bytes[..].into());
        let signs = self.b.ins().vconst(ty, handle);
        let signed = self.b.ins().bxor(crossed, signs);
        self.b.ins().fadd(straight, signed)
    }
}
