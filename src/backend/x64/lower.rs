//! Choosing instructions: one arm an op, for the dtypes that [`is_lowerable`] lists.
//!
//! Guarantees: the bits of the block kernels. A NaN that leaves arithmetic is made canonical where its bits can be
//! seen: where it is stored, or moved on to such a place ([`observed`]); elsewhere it may have any payload. Does not:
//! assign registers.

use std::collections::HashSet;

use super::instructions::{self as f, Form};
use super::ir::{Body, Constant, NONE, Reg};
use super::isa::Isa;
use crate::base::dtype::{Category, DType};
use crate::ops::Op;
use crate::plan::kernel::{Kernel, Step, StepOp, ValueId};
use crate::plan::schedule::{Segment, SlotId};

/// What is known of the NaNs among a value's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nan {
    /// Nothing.
    Any,
    /// None is signaling.
    Quiet,
    /// All are the canonical one.
    Canonical,
}

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Out {
    /// As it is.
    Done(Reg, Nan),
    /// Its NaNs must be made canonical where they can be seen.
    Raw(Reg, Nan),
}

/// A value of the kernel within the segment.
#[derive(Clone, Copy, Debug)]
enum Known {
    No,
    /// In memory; whether it is one element.
    Memory(SlotId, bool),
    Here(Reg, Nan),
}

/// How floats lie in a vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real {
    /// Bytes of a lane, and of the vector.
    pub(super) size: usize,
    pub(super) bytes: usize,
}

/// Predicates of float comparisons: quiet ones, so that no NaN raises a flag.
pub(super) const EQ: u8 = 0x00;
pub(super) const UNORDERED: u8 = 0x03;
pub(super) const NE: u8 = 0x04;
pub(super) const ORDERED: u8 = 0x07;
pub(super) const LT: u8 = 0x11;
const LE: u8 = 0x12;
const NOT_LE: u8 = 0x16;
pub(super) const GE: u8 = 0x1d;
pub(super) const GT: u8 = 0x1e;

/// The larger or the smaller of two floats, -0 below +0.
const LARGER: u8 = 0b0101;
const SMALLER: u8 = 0b0100;

pub(super) struct Lower<'a> {
    pub(super) body: Body,
    kernel: &'a Kernel,
    /// Elements of an iteration.
    pub(super) lanes: usize,
    values: Vec<Known>,
    observed: Vec<bool>,
    /// Of vectors of f32, those whose NaNs have only bits that bf16 has.
    short: HashSet<Reg>,
}

/// Whether a step is lowered into a segment.
pub(crate) fn is_lowerable(isa: Isa, step: &Step) -> bool {
    use Op::*;
    let d = step.dtype;
    let op = match step.op {
        // AVX2 has no conversions between i64 and floats.
        StepOp::Cast(p) if isa == Isa::Avx2 && (p.from == DType::I64 || p.to == DType::I64) => {
            return !matches!((p.from, p.to), (_, DType::F32 | DType::BF16) | (DType::F32 | DType::F64, _));
        }
        StepOp::Cast(_) | StepOp::Bits(_) | StepOp::DoubleRounding(_) => return true,
        StepOp::Apply(op) => op,
    };
    let everywhere = matches!(op, Add | Mul | Eq | Ne | LogicalAnd | LogicalOr | LogicalXor | LogicalNot)
        || matches!(op, Isnan | Isinf | Isfinite | RealPart | Conj | Assign | PromoteWith | AddScaled);
    let numbers = matches!(op, Sub | Neg | Square | Positive | SubScaled | Addcmul | SquaredDifference);
    let ordered = matches!(op, Lt | Le | Gt | Ge | Maximum | Minimum | Fmax | Fmin | Sign | Sgn)
        || matches!(op, ClampMin | ClampMax | Heaviside);
    let bits = matches!(op, BitwiseAnd | BitwiseOr | BitwiseXor | BitwiseNot);
    let reals = matches!(op, Abs | Relu | Floor | Ceil | Trunc | Round | Clamp);
    match (op, d.category()) {
        (Where, _) => true,
        (Neg, _) if d.real().is_half() => true,
        (Abs, _) if d.is_half() => true,
        _ if d.is_narrow() => false,
        (_, Category::Bool) => everywhere || ordered || bits,
        (_, Category::Int) => everywhere || numbers || ordered || bits || reals || matches!(op, ShiftLeft | ShiftRight),
        (_, Category::Complex) => everywhere || numbers || op == ImagPart,
        (Div | Sqrt | Rsqrt | Reciprocal | Frac | DivTrunc | Copysign | Angle | Addcdiv, _) => true,
        // By a table of sixteen doubles, as only AVX-512 can.
        (Erf, _) if d == DType::F64 => isa == Isa::Avx512,
        (Huber | SmoothL1 | Lerp | Exp | Log | Tanh | Sigmoid | Silu | GeluTanh | Sin | Cos | Erf, _) => true,
        _ => everywhere || numbers || ordered || reals,
    }
}

/// Whether a step shows the bits of its operand `i`, if its own result's bits are seen.
fn shows(step: &Step, i: usize) -> bool {
    match step.op {
        StepOp::Bits(_) => true,
        StepOp::Cast(p) => p.from.is_complex() != p.to.is_complex() && p.to != DType::Bool,
        StepOp::Apply(Op::Where) => i > 0,
        StepOp::Apply(Op::Neg | Op::Abs) => true,
        // Its sign.
        StepOp::Apply(Op::Copysign) => i == 1,
        StepOp::DoubleRounding(_) => i == 1,
        StepOp::Apply(_) => false,
    }
}

/// The values of a segment whose bits can be seen: stored ones, and what moves into them.
fn observed(kernel: &Kernel, segment: &Segment) -> Vec<bool> {
    let mut seen = vec![false; kernel.values.len()];
    segment.stores.iter().for_each(|(v, _)| seen[*v as usize] = true);
    for s in segment.steps.iter().rev() {
        let step = &kernel.steps[*s as usize];
        let always = matches!(step.op, StepOp::Bits(_) | StepOp::Apply(Op::Copysign));
        if seen[step.out as usize] || always {
            for (i, a) in step.args.iter().flatten().enumerate() {
                seen[*a as usize] |= shows(step, i);
            }
        }
    }
    seen
}

/// The body of a segment's loop; what it stores to the slots of sums can be added up instead.
pub(super) fn lower(isa: Isa, kernel: &Kernel, segment: &Segment, lanes: usize, sums: &[(SlotId, DType)]) -> Body {
    let mut values = vec![Known::No; kernel.values.len()];
    segment.loads.iter().for_each(|(v, slot, uniform)| values[*v as usize] = Known::Memory(*slot, *uniform));
    let mut stores: Vec<SlotId> = vec![SlotId::MAX; kernel.values.len()];
    segment.stores.iter().for_each(|(v, slot)| stores[*v as usize] = *slot);
    let observed = observed(kernel, segment);
    let mut l = Lower { body: Body::new(isa), kernel, lanes, values, observed, short: HashSet::new() };
    for s in &segment.steps {
        let step = kernel.steps[*s as usize];
        let result = l.step(&step);
        let (r, nan) = l.settled(result, &step);
        l.values[step.out as usize] = Known::Here(r, nan);
        let slot = stores[step.out as usize];
        if slot != SlotId::MAX {
            let sum = sums.iter().position(|(of, _)| *of == slot).map(|i| l.added(i, sums[i].1, r));
            l.store(slot, kernel.value(step.out).dtype, r, sum.unwrap_or(NONE));
        }
    }
    l.body.prune();
    l.body
}

impl Lower<'_> {
    /// The registers of a value, which is loaded at its first use.
    fn value(&mut self, v: ValueId) -> (Reg, Nan) {
        match self.values[v as usize] {
            Known::Here(r, nan) => (r, nan),
            Known::Memory(slot, uniform) => {
                let dtype = self.kernel.value(v).dtype;
                let loaded = self.body.load(slot, dtype, uniform);
                let r = if dtype == DType::Bool { self.nonzero(1, self.lanes, loaded) } else { loaded };
                self.values[v as usize] = Known::Here(r, Nan::Any);
                (r, Nan::Any)
            }
            // Operands come before their uses.
            Known::No => (NONE, Nan::Any),
        }
    }

    fn store(&mut self, slot: SlotId, dtype: DType, r: Reg, sum: Reg) {
        let r = if dtype == DType::Bool { self.bytes_of(r) } else { r };
        self.body.store(slot, dtype, r, sum);
    }

    /// The lanes of sum `i` with `r` added.
    fn added(&mut self, i: usize, dtype: DType, r: Reg) -> Reg {
        self.body.added(i as u32, self.lanes * dtype.size(), r)
    }

    /// A mask as bytes 0 and 1.
    pub(super) fn bytes_of(&mut self, mask: Reg) -> Reg {
        let one = self.body.lanes(1, 1);
        self.body.keep(1, self.lanes, mask, one)
    }

    /// Which integer lanes are not zero.
    pub(super) fn nonzero(&mut self, size: usize, bytes: usize, a: Reg) -> Reg {
        let form = [f::PTESTMB, f::PTESTMW, f::PTESTMD, f::PTESTMQ][size.trailing_zeros() as usize % 4];
        self.body.bin(form, bytes, a, a)
    }

    /// How the parts of a float or complex dtype lie in its vector.
    pub(super) fn real(&self, d: DType) -> Real {
        Real { size: d.real().size(), bytes: self.lanes * d.size() }
    }

    fn settled(&mut self, result: Out, step: &Step) -> (Reg, Nan) {
        match result {
            Out::Done(r, nan) => (r, nan),
            Out::Raw(r, nan) if nan == Nan::Canonical || !self.observed[step.out as usize] => (r, nan),
            Out::Raw(r, nan) => (self.canonical(self.real(self.kernel.value(step.out).dtype), r, nan), Nan::Canonical),
        }
    }

    /// Every NaN replaced by the canonical one; `known` says what is known of them.
    pub(super) fn canonical(&mut self, x: Real, a: Reg, known: Nan) -> Reg {
        let nan = self.float(x, f64::NAN);
        let r = if known == Nan::Any || self.body.isa == Isa::Avx2 {
            let is_nan = self.compare(x, UNORDERED, a, a);
            self.body.choose(x.size, x.bytes, is_nan, nan, a)
        } else {
            // Of a number and a quiet NaN the instruction gives the number, of two NaNs the first. Unlike a comparison it
            // leaves the multipliers alone, which most functions keep busy.
            self.body.bin_imm([f::RANGEPS, f::RANGEPD][x.size / 8], x.bytes, nan, a, LARGER)
        };
        self.short(r)
    }

    /// Notes that the NaNs of a vector of f32 have only bits that bf16 has.
    pub(super) fn short(&mut self, r: Reg) -> Reg {
        self.short.insert(r);
        r
    }

    pub(super) fn is_short(&self, r: Reg) -> bool {
        self.short.contains(&r)
    }

    pub(super) fn seen(&self, v: ValueId) -> bool {
        self.observed[v as usize]
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
            StepOp::DoubleRounding(op) => return Out::Done(self.nudged(op, args[0].0, args[1].0), args[1].1),
            StepOp::Apply(op) => op,
        };
        let regs = args.map(|(r, _)| r);
        match (op, d.category()) {
            (Op::Where, _) => self.select(d, args),
            (_, Category::Bool) => Out::Done(self.truth(op, regs), Nan::Any),
            (_, Category::Int) => Out::Done(self.int(op, d, regs), Nan::Any),
            (Op::Neg | Op::Abs, _) if d.real().is_half() => Out::Done(self.half_sign(op, d, regs[0]), Nan::Any),
            (_, Category::Complex) => self.complex(op, d, args),
            _ => self.float_op(op, d, args),
        }
    }

    fn reinterpret(&mut self, a: Reg, from: DType, to: DType) -> Reg {
        match (from == DType::Bool, to == DType::Bool) {
            (true, false) => self.bytes_of(a),
            (false, true) => self.nonzero(1, self.lanes, a),
            _ => a,
        }
    }

    fn select(&mut self, d: DType, args: [(Reg, Nan); 4]) -> Out {
        let [(c, _), (a, na), (b, nb), _] = args;
        let r = match d {
            DType::Bool => {
                let taken = self.body.bin(f::KAND, 8, c, a);
                let other = self.body.bin(f::KANDN, 8, c, b);
                self.body.bin(f::KOR, 8, taken, other)
            }
            DType::C128 => {
                let both = self.doubled(c);
                self.body.choose(8, 64, both, a, b)
            }
            _ => self.body.choose(d.size(), self.lanes * d.size(), c, a, b),
        };
        Out::Done(r, na.min(nb))
    }

    fn truth(&mut self, op: Op, [a, b, c, _]: [Reg; 4]) -> Reg {
        let mut k = |form: Form, a, b| self.body.bin(form, 8, a, b);
        match op {
            Op::Add | Op::Maximum | Op::Fmax | Op::LogicalOr | Op::BitwiseOr | Op::ClampMin | Op::Heaviside => {
                k(f::KOR, a, b)
            }
            Op::Mul | Op::Minimum | Op::Fmin | Op::LogicalAnd | Op::BitwiseAnd | Op::ClampMax => k(f::KAND, a, b),
            Op::Ne | Op::LogicalXor | Op::BitwiseXor => k(f::KXOR, a, b),
            Op::Eq => k(f::KXNOR, a, b),
            Op::Lt => k(f::KANDN, a, b),
            Op::Gt => k(f::KANDN, b, a),
            Op::Le => {
                let more = k(f::KANDN, b, a);
                self.body.un(f::KNOT, 8, more)
            }
            Op::Ge => {
                let less = k(f::KANDN, a, b);
                self.body.un(f::KNOT, 8, less)
            }
            Op::LogicalNot | Op::BitwiseNot => self.body.un(f::KNOT, 8, a),
            Op::Isfinite => k(f::KXNOR, a, a),
            Op::Isnan | Op::Isinf => k(f::KXOR, a, a),
            Op::AddScaled => {
                let scaled = k(f::KAND, c, b);
                k(f::KOR, a, scaled)
            }
            Op::Assign => b,
            // Sign, conjugate and what else leaves a truth value as it is.
            _ => a,
        }
    }

    /// Sign operations on half types, on their bits.
    fn half_sign(&mut self, op: Op, d: DType, a: Reg) -> Reg {
        let (form, bits) = if op == Op::Neg { (f::XOR, 0x8000) } else { (f::AND, 0x7fff) };
        let bits = self.body.lanes(2, bits);
        self.body.bin(form, self.lanes * d.size(), a, bits)
    }

    /// A float constant in every lane; the NaN is the canonical one.
    pub(super) fn float(&mut self, x: Real, value: f64) -> Reg {
        let narrow = if value.is_nan() { f32::NAN } else { value as f32 };
        let bits = if x.size == 4 { u64::from(narrow.to_bits()) } else { value.to_bits() };
        self.body.lanes(x.size, bits)
    }

    /// The sign bit of every lane, or all the others.
    pub(super) fn sign_bits(&mut self, x: Real, others: bool) -> Reg {
        let sign = 1u64 << (8 * x.size - 1);
        self.body.lanes(x.size, if others { !sign } else { sign })
    }

    /// Takes the single- or double-precision form.
    pub(super) fn real_bin(&mut self, x: Real, forms: [Form; 2], a: Reg, b: Reg) -> Reg {
        self.body.bin(forms[x.size / 8], x.bytes, a, b)
    }

    pub(super) fn compare(&mut self, x: Real, predicate: u8, a: Reg, b: Reg) -> Reg {
        self.body.bin_imm([f::CMPPS, f::CMPPD][x.size / 8], x.bytes, a, b, predicate)
    }

    pub(super) fn add(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [f::ADDPS, f::ADDPD], a, b)
    }

    pub(super) fn sub(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [f::SUBPS, f::SUBPD], a, b)
    }

    pub(super) fn mul(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [f::MULPS, f::MULPD], a, b)
    }

    pub(super) fn div(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [f::DIVPS, f::DIVPD], a, b)
    }

    fn sqrt(&mut self, x: Real, a: Reg) -> Reg {
        self.body.un([f::SQRTPS, f::SQRTPD][x.size / 8], x.bytes, a)
    }

    /// To an integer: 0 to nearest even, 1 down, 2 up, 3 towards zero.
    fn round(&mut self, x: Real, mode: u8, a: Reg) -> Reg {
        self.body.un_imm([f::RNDPS, f::RNDPD][x.size / 8], x.bytes, a, mode | 8)
    }

    pub(super) fn magnitude(&mut self, x: Real, a: Reg) -> Reg {
        let rest = self.sign_bits(x, true);
        self.body.bin(f::AND, x.bytes, a, rest)
    }

    /// The comparison of an op.
    pub(super) fn predicate(op: Op) -> Option<u8> {
        Some(match op {
            Op::Eq => EQ,
            Op::Ne => NE,
            Op::Lt => LT,
            Op::Le => LE,
            Op::Gt => GT,
            Op::Ge => GE,
            _ => return None,
        })
    }

    /// Which lanes an op about NaN and infinity holds for.
    pub(super) fn class(&mut self, x: Real, op: Op, a: Reg) -> Reg {
        if op == Op::Isnan {
            return self.compare(x, UNORDERED, a, a);
        }
        let infinity = self.float(x, f64::INFINITY);
        let magnitude = self.magnitude(x, a);
        self.compare(x, if op == Op::Isinf { EQ } else { LT }, magnitude, infinity)
    }

    /// IEEE 754-2019 `maximum` and `minimum`.
    fn extreme(&mut self, x: Real, predicate: u8, a: Reg, b: Reg) -> Reg {
        let better = self.body.bin_imm([f::RANGEPS, f::RANGEPD][x.size / 8], x.bytes, a, b, predicate);
        let either = self.compare(x, UNORDERED, a, b);
        let nan = self.float(x, f64::NAN);
        self.body.choose(x.size, x.bytes, either, nan, better)
    }

    /// The better operand, or the other one if one is NaN.
    fn extreme_number(&mut self, x: Real, predicate: u8, (a, na): (Reg, Nan), (b, nb): (Reg, Nan)) -> Reg {
        let mut r = self.body.bin_imm([f::RANGEPS, f::RANGEPD][x.size / 8], x.bytes, a, b, predicate);
        // The instruction passes over quiet NaNs only, and what AVX2 has for it over none.
        for (this, other, nan) in [(a, b, na), (b, a, nb)] {
            if nan == Nan::Any || self.body.isa == Isa::Avx2 {
                let missing = self.compare(x, UNORDERED, this, this);
                r = self.body.choose(x.size, x.bytes, missing, other, r);
            }
        }
        r
    }

    /// Floats of 4 and 8 bytes.
    fn float_op(&mut self, op: Op, d: DType, args: [(Reg, Nan); 4]) -> Out {
        let x = self.real(d);
        let [a, b, c, e] = args.map(|(r, _)| r);
        let [na, nb, ..] = args.map(|(_, nan)| nan);
        if let Some(predicate) = Self::predicate(op) {
            return Out::Done(self.compare(x, predicate, a, b), Nan::Any);
        }
        let quiet = |r| Out::Raw(r, Nan::Quiet);
        if let Some(r) = self.arithmetic(op, x, a, b) {
            return quiet(r);
        }
        match op {
            Op::Reciprocal | Op::Rsqrt => {
                let below = if op == Op::Rsqrt { self.sqrt(x, a) } else { a };
                let one = self.float(x, 1.0);
                quiet(self.div(x, one, below))
            }
            Op::Round => quiet(self.round(x, 0, a)),
            Op::Floor => quiet(self.round(x, 1, a)),
            Op::Ceil => quiet(self.round(x, 2, a)),
            Op::Trunc => quiet(self.round(x, 3, a)),
            Op::Frac => {
                let whole = self.round(x, 3, a);
                quiet(self.sub(x, a, whole))
            }
            Op::DivTrunc => {
                let quotient = self.div(x, a, b);
                quiet(self.round(x, 3, quotient))
            }
            Op::Maximum | Op::ClampMin => Out::Done(self.extreme(x, LARGER, a, b), Nan::Canonical),
            Op::Minimum | Op::ClampMax => Out::Done(self.extreme(x, SMALLER, a, b), Nan::Canonical),
            Op::Clamp => {
                let up = self.extreme(x, LARGER, a, b);
                Out::Done(self.extreme(x, SMALLER, up, c), Nan::Canonical)
            }
            Op::Fmax => Out::Raw(self.extreme_number(x, LARGER, args[0], args[1]), na.min(nb)),
            Op::Fmin => Out::Raw(self.extreme_number(x, SMALLER, args[0], args[1]), na.min(nb)),
            Op::AddScaled | Op::SubScaled => {
                let scaled = self.mul(x, c, b);
                quiet(if op == Op::AddScaled { self.add(x, a, scaled) } else { self.sub(x, a, scaled) })
            }
            Op::Addcmul | Op::Addcdiv => {
                let scaled = self.mul(x, e, b);
                let term = if op == Op::Addcmul { self.mul(x, scaled, c) } else { self.div(x, scaled, c) };
                quiet(self.add(x, a, term))
            }
            Op::SquaredDifference => {
                let difference = self.sub(x, a, b);
                quiet(self.mul(x, difference, difference))
            }
            Op::Exp | Op::Log | Op::Tanh | Op::Sigmoid | Op::Silu | Op::GeluTanh | Op::Sin | Op::Cos | Op::Erf => {
                quiet(self.function(op, x, a))
            }
            Op::Huber | Op::SmoothL1 | Op::Lerp => quiet(self.piecewise(op, x, [a, b, c])),
            Op::RealPart | Op::Conj | Op::Positive | Op::PromoteWith => Out::Raw(a, na),
            Op::Assign => Out::Raw(b, nb),
            _ => self.float_bits(op, x, args),
        }
    }

    /// The ops that are one instruction. Its NaN is that of an operand made quiet, or one without a payload.
    fn arithmetic(&mut self, op: Op, x: Real, a: Reg, b: Reg) -> Option<Reg> {
        let short = self.is_short(a) && (self.is_short(b) || matches!(op, Op::Square | Op::Sqrt));
        let r = match op {
            Op::Add => self.add(x, a, b),
            Op::Sub => self.sub(x, a, b),
            Op::Mul => self.mul(x, a, b),
            Op::Div => self.div(x, a, b),
            Op::Square => self.mul(x, a, a),
            Op::Sqrt => self.sqrt(x, a),
            _ => return None,
        };
        Some(if short { self.short(r) } else { r })
    }

    /// Two formulas, and which one holds where.
    fn piecewise(&mut self, op: Op, x: Real, [a, b, c]: [Reg; 3]) -> Reg {
        let half = self.float(x, 0.5);
        if op == Op::Lerp {
            let weight = self.magnitude(x, c);
            let near = self.compare(x, LT, weight, half);
            let way = self.sub(x, b, a);
            let forth = self.mul(x, c, way);
            let forth = self.add(x, a, forth);
            let one = self.float(x, 1.0);
            let left = self.sub(x, one, c);
            let back = self.mul(x, way, left);
            let back = self.sub(x, b, back);
            return self.body.choose(x.size, x.bytes, near, forth, back);
        }
        let difference = self.sub(x, a, b);
        let r = self.magnitude(x, difference);
        let inside = self.compare(x, if op == Op::Huber { LE } else { LT }, r, c);
        let square = self.mul(x, half, r);
        let mut square = self.mul(x, square, r);
        let offset = self.mul(x, half, c);
        let mut line = self.sub(x, r, offset);
        if op == Op::Huber {
            line = self.mul(x, c, line);
        } else {
            square = self.div(x, square, c);
        }
        self.body.choose(x.size, x.bytes, inside, square, line)
    }

    /// Ops that choose among their operands and constants, or look at their class.
    fn float_bits(&mut self, op: Op, x: Real, args: [(Reg, Nan); 4]) -> Out {
        let [(a, na), (b, nb), ..] = args;
        let zero = self.float(x, 0.0);
        let mask = |r| Out::Done(r, Nan::Any);
        match op {
            Op::Neg => {
                let signs = self.sign_bits(x, false);
                Out::Done(self.body.bin(f::XOR, x.bytes, a, signs), na.min(Nan::Quiet))
            }
            Op::Abs => Out::Done(self.magnitude(x, a), na),
            Op::Copysign => {
                let signs = self.sign_bits(x, false);
                let sign = self.body.bin(f::AND, x.bytes, b, signs);
                let rest = self.body.bin(f::ANDN, x.bytes, signs, a);
                Out::Raw(self.body.bin(f::OR, x.bytes, sign, rest), na.min(Nan::Quiet))
            }
            Op::Relu => {
                let kept = self.compare(x, NOT_LE, a, zero);
                Out::Raw(self.body.keep(x.size, x.bytes, kept, a), na)
            }
            Op::Sign | Op::Sgn | Op::Heaviside => {
                let one = self.float(x, 1.0);
                let above = self.compare(x, GT, a, zero);
                let up = self.body.keep(x.size, x.bytes, above, one);
                if op != Op::Heaviside {
                    let minus = self.float(x, -1.0);
                    let below = self.compare(x, LT, a, zero);
                    return Out::Done(self.body.choose(x.size, x.bytes, below, minus, up), Nan::Canonical);
                }
                let at_zero = self.compare(x, EQ, a, zero);
                Out::Raw(self.body.choose(x.size, x.bytes, at_zero, b, up), nb)
            }
            Op::Angle => {
                let (pi, nan) = (self.float(x, std::f64::consts::PI), self.float(x, f64::NAN));
                let below = self.compare(x, LT, a, zero);
                let plain = self.body.keep(x.size, x.bytes, below, pi);
                let is_nan = self.compare(x, UNORDERED, a, a);
                Out::Done(self.body.choose(x.size, x.bytes, is_nan, nan, plain), Nan::Canonical)
            }
            Op::LogicalNot => mask(self.compare(x, EQ, a, zero)),
            Op::Isnan | Op::Isinf | Op::Isfinite => mask(self.class(x, op, a)),
            _ => {
                let (a, b) = (self.compare(x, NE, a, zero), self.compare(x, NE, b, zero));
                mask(self.logical(op, a, b))
            }
        }
    }

    /// `and`, `or` or `xor` of truth values.
    pub(super) fn logical(&mut self, op: Op, a: Reg, b: Reg) -> Reg {
        let form = match op {
            Op::LogicalAnd => f::KAND,
            Op::LogicalOr => f::KOR,
            _ => f::KXOR,
        };
        self.body.bin(form, 8, a, b)
    }

    /// A constant of eight quadwords.
    pub(super) fn quads(&mut self, c: Constant) -> Reg {
        self.body.vector(c)
    }
}
