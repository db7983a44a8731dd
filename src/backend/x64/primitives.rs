//! Instruction selection for the primitives that the texts of ops consist of.
//!
//! Guarantees: one arm a primitive, which has the bits of its generic expansion but for NaNs, which are made canonical
//! where they can be seen. Composites for which an instruction set has nothing better are expanded first (`texts`).
//! Does not: know ops.

use smallvec::SmallVec;

use super::instructions::{self as ins, Instruction};
use super::ir::{NONE, Reg};
use super::isa::Isa;
use super::lower::{self, Lower, Real};
use super::lower_int_complex::{ABS, ADD, CMP, IS_ZERO, MAX, MIN, SUB, UNSIGNED_CMP, UNSIGNED_MAX, UNSIGNED_MIN};
use crate::base::dtype::{Category, DType};
use crate::math::lane::LOG_ENDS;
use crate::ssa::{Inst, Nan, Parts, Predicate, Prim, Rounding, Text, Value};

/// What tells `vgetmantps` to give significands from ¾ up to 1½.
const FROM_3_4: u8 = 3;

/// A value of a text that is lowered: where it is, and what is known of its NaNs.
type Known = (Reg, Nan);

impl Lower<'_> {
    /// The result of a text of these operands.
    pub(super) fn text(&mut self, text: &Text, operands: &[Known]) -> Known {
        let mut values: SmallVec<[Known; 16]> = operands[..text.operands.len()].into();
        for inst in &text.insts {
            let mut args = [(NONE, Nan::Any); 3];
            for (to, a) in args.iter_mut().zip(inst.args()) {
                *to = values[a.index()];
            }
            let r = self.joined(text, inst, &values).unwrap_or_else(|| self.inst(inst, args));
            let nans = args.map(|(_, nan)| nan);
            values.push((r, inst.prim.nan(inst.dtype, &nans[..inst.args().len()])));
        }
        values[text.result.index()]
    }

    /// The result of an instruction for which there is a better one together with what makes its operands.
    fn joined(&mut self, text: &Text, inst: &Inst, values: &[Known]) -> Option<Reg> {
        let (d, args) = (inst.dtype, inst.args());
        let of = |v: Value| values[v.index()].0;
        match inst.prim {
            // Lanes that become 0 need no other register.
            Prim::Select if d != DType::Bool && d != DType::C128 && text.constant(args[2]) == Some(0) => {
                Some(self.body.select_or_zero(d.size(), self.lanes * d.size(), of(args[0]), of(args[1])))
            }
            Prim::Not if d == DType::Bool => {
                let xor = text.inst(args[0]).filter(|made| made.prim == Prim::Xor)?;
                Some(self.body.bin(ins::KXNORQ, 8, of(xor.args()[0]), of(xor.args()[1])))
            }
            _ => None,
        }
    }

    /// Every primitive, by its instructions for the dtype.
    fn inst(&mut self, inst: &Inst, args: [Known; 3]) -> Reg {
        let (d, x) = (inst.dtype, self.real(inst.dtype));
        let [a, b, c] = args.map(|(r, _)| r);
        let (is_int, signed) = (d.category() == Category::Int, !d.is_unsigned());
        // The instruction for the size of an integer lane, or of a float one.
        let (at, of) = (d.size().trailing_zeros() as usize % 4, x.size / 8);
        match inst.prim {
            Prim::Const(bits) => self.constant(d, bits),
            Prim::Add if is_int => self.body.bin(ADD[at], x.bytes, a, b),
            Prim::Add => self.arithmetic(x, [ins::VADDPS, ins::VADDPD], a, b),
            Prim::Sub if is_int => self.body.bin(SUB[at], x.bytes, a, b),
            Prim::Sub => self.arithmetic(x, [ins::VSUBPS, ins::VSUBPD], a, b),
            Prim::Mul if is_int => self.int_mul(d.size(), x.bytes, a, b),
            Prim::Mul => self.arithmetic(x, [ins::VMULPS, ins::VMULPD], a, b),
            Prim::Div => self.arithmetic(x, [ins::VDIVPS, ins::VDIVPD], a, b),
            Prim::Sqrt => self.root(x, a),
            Prim::Neg if is_int => {
                let zero = self.body.splat(4, 0);
                self.body.bin(SUB[at], x.bytes, zero, a)
            }
            Prim::Neg => {
                let signs = self.sign_bits(x, false);
                self.body.bin(ins::VPXORD, x.bytes, a, signs)
            }
            Prim::Abs if is_int => self.body.un(ABS[at], x.bytes, a),
            Prim::Abs => self.magnitude(x, a),
            // The bit says that no flag is raised.
            Prim::Round(mode) => {
                self.body.un_imm([ins::VRNDSCALEPS, ins::VRNDSCALEPD][of], x.bytes, a, rounding(mode) | 8)
            }
            Prim::Fma => self.body.fused([ins::VFMADD231PS, ins::VFMADD231PD][of], x.bytes, a, b, c),
            Prim::Fms => self.body.fused([ins::VFMSUB231PS, ins::VFMSUB231PD][of], x.bytes, a, b, c),
            Prim::Fnma => self.body.fused([ins::VFNMADD231PS, ins::VFNMADD231PD][of], x.bytes, a, b, c),
            Prim::Least => self.real_bin(x, [ins::VMINPS, ins::VMINPD], a, b),
            Prim::Most => self.real_bin(x, [ins::VMAXPS, ins::VMAXPD], a, b),
            Prim::Maximum if is_int => self.body.bin(if signed { MAX } else { UNSIGNED_MAX }[at], x.bytes, a, b),
            Prim::Maximum => self.extreme(x, lower::MAX, a, b),
            Prim::Minimum if is_int => self.body.bin(if signed { MIN } else { UNSIGNED_MIN }[at], x.bytes, a, b),
            Prim::Minimum => self.extreme(x, lower::MIN, a, b),
            Prim::Fmax => self.extreme_number(x, lower::MAX, args[0], args[1]),
            Prim::Fmin => self.extreme_number(x, lower::MIN, args[0], args[1]),
            Prim::CopySign => self.with_sign(x, true, a, b),
            Prim::Signed => self.with_sign(x, false, a, b),
            Prim::Compare(p) if is_int => {
                self.body.bin_imm(if signed { CMP } else { UNSIGNED_CMP }[at], x.bytes, a, b, int_predicate(p))
            }
            Prim::Compare(p) => self.compare(x, float_predicate(p), a, b),
            Prim::ComplexCompare(p, parts) => {
                let held = self.compare(x, float_predicate(p), a, b);
                self.elements_of_parts(d, held, parts == Parts::Both)
            }
            Prim::Test => {
                self.body.bin([ins::VPTESTMB, ins::VPTESTMW, ins::VPTESTMD, ins::VPTESTMQ][at], x.bytes, a, b)
            }
            Prim::TestNot => self.body.bin(IS_ZERO[at], x.bytes, a, b),
            Prim::Select => self.select(d, [a, b, c]),
            Prim::And => self.bitwise(d, [ins::KANDQ, ins::VPANDD], a, b),
            Prim::Or => self.bitwise(d, [ins::KORQ, ins::VPORD], a, b),
            Prim::Xor => self.bitwise(d, [ins::KXORQ, ins::VPXORD], a, b),
            Prim::AndNot => self.bitwise(d, [ins::KANDNQ, ins::VPANDND], a, b),
            Prim::Not if d == DType::Bool => self.body.un(ins::KNOTQ, 8, a),
            Prim::Not => {
                let ones = self.body.splat(8, u64::MAX);
                self.body.bin(ins::VPXORD, x.bytes, a, ones)
            }
            Prim::ShiftLeft | Prim::ShiftRight if d.size() == 1 => {
                self.shift_bytes(inst.prim == Prim::ShiftLeft, signed, x.bytes, a, b)
            }
            // Counts are unsigned to the instruction: a negative one is beyond the width, too.
            Prim::ShiftLeft => {
                self.body.bin([ins::VPSLLVW, ins::VPSLLVW, ins::VPSLLVD, ins::VPSLLVQ][at], x.bytes, a, b)
            }
            Prim::ShiftRight if !signed => {
                self.body.bin([ins::VPSRLVW, ins::VPSRLVW, ins::VPSRLVD, ins::VPSRLVQ][at], x.bytes, a, b)
            }
            Prim::ShiftRight => {
                self.body.bin([ins::VPSRAVW, ins::VPSRAVW, ins::VPSRAVD, ins::VPSRAVQ][at], x.bytes, a, b)
            }
            Prim::ShiftUp(n) => {
                self.body.un_imm([ins::VPSLLW, ins::VPSLLW, ins::VPSLLD, ins::VPSLLQ][at], x.bytes, a, n)
            }
            Prim::ShiftDown(n) => {
                self.body.un_imm([ins::VPSRLW, ins::VPSRLW, ins::VPSRLD, ins::VPSRLQ][at], x.bytes, a, n)
            }
            Prim::Bits(_) => a,
            Prim::Scaled => self.real_bin(x, [ins::VSCALEFPS, ins::VSCALEFPD], a, b),
            Prim::Turned => self.turned(x, a, b),
            Prim::Significand => self.body.un_imm([ins::VGETMANTPS, ins::VGETMANTPD][of], x.bytes, a, FROM_3_4),
            Prim::Exponent => self.exponent(x, a, b),
            Prim::LogEnds => {
                let table = self.body.splat(x.size, LOG_ENDS);
                self.body.tern_imm([ins::VFIXUPIMMPS, ins::VFIXUPIMMPD][of], x.bytes, [a, b, table], 0)
            }
            Prim::Pick { set, clear } => self.pick(x, a, [clear, set]),
            Prim::Chosen(table) => self.chosen(a, table),
            Prim::SlowPath(op) => self.body.slow_path(x.size, x.bytes, c, [a, b], op),
            Prim::RealPart => self.part(d, a, false),
            Prim::ImagPart => self.part(d, a, true),
            Prim::Conj => {
                let signs = self.part_signs(d, true);
                self.body.bin(ins::VPXORD, x.bytes, a, signs)
            }
            Prim::ComplexMul => self.complex_mul(d, a, b),
            // No text that is lowered has one: see `texts`.
            Prim::Pair => {
                self.body.refused = Some(inst.prim.name());
                a
            }
        }
    }

    fn constant(&mut self, d: DType, bits: u64) -> Reg {
        let zero = self.body.splat(4, 0);
        match bits {
            _ if d == DType::Bool => {
                self.body.bin(if bits == 0 { ins::VPTESTMB } else { ins::VPTESTNMB }, self.lanes, zero, zero)
            }
            0 => zero,
            _ => self.body.splat(d.real().size(), bits),
        }
    }

    /// One instruction of two operands. Its NaN is that of an operand made quiet, or one without a payload.
    fn arithmetic(&mut self, x: Real, instructions: [Instruction; 2], a: Reg, b: Reg) -> Reg {
        let r = self.real_bin(x, instructions, a, b);
        if self.has_bf16_nans(a) && self.has_bf16_nans(b) { self.mark_bf16_nans(r) } else { r }
    }

    fn root(&mut self, x: Real, a: Reg) -> Reg {
        let r = self.body.un([ins::VSQRTPS, ins::VSQRTPD][x.size / 8], x.bytes, a);
        if self.has_bf16_nans(a) { self.mark_bf16_nans(r) } else { r }
    }

    fn bitwise(&mut self, d: DType, [of_masks, instruction]: [Instruction; 2], a: Reg, b: Reg) -> Reg {
        let (instruction, bytes) = if d == DType::Bool { (of_masks, 8) } else { (instruction, self.lanes * d.size()) };
        self.body.bin(instruction, bytes, a, b)
    }

    fn select(&mut self, d: DType, [mask, a, b]: [Reg; 3]) -> Reg {
        match d {
            DType::Bool => {
                let taken = self.body.bin(ins::KANDQ, 8, mask, a);
                let other = self.body.bin(ins::KANDNQ, 8, mask, b);
                self.body.bin(ins::KORQ, 8, taken, other)
            }
            DType::C128 => {
                let both = self.parts_of_elements(mask);
                self.body.select(8, 64, both, a, b)
            }
            _ => self.body.select(d.size(), self.lanes * d.size(), mask, a, b),
        }
    }

    /// The magnitude of `a` with the sign of `b`. The sign of `a` matters only where it may be set.
    fn with_sign(&mut self, x: Real, may_be_set: bool, a: Reg, b: Reg) -> Reg {
        if self.body.isa == Isa::Avx512 {
            let others = self.sign_bits(x, true);
            // The others' bits from the first, the sign from the second.
            return self.body.tern_imm(ins::VPTERNLOGD, x.bytes, [a, b, others], 0xe4);
        }
        let signs = self.sign_bits(x, false);
        let sign = self.body.bin(ins::VPANDD, x.bytes, b, signs);
        let rest = if may_be_set { self.body.bin(ins::VPANDND, x.bytes, signs, a) } else { a };
        self.body.bin(ins::VPORD, x.bytes, sign, rest)
    }

    fn turned(&mut self, x: Real, a: Reg, t: Reg) -> Reg {
        let up = self.body.un_imm([ins::VPSLLD, ins::VPSLLQ][x.size / 8], x.bytes, t, 8 * x.size as u8 - 2);
        let signs = self.sign_bits(x, false);
        // The first, and the sign turned where the second has it.
        self.body.tern_imm(ins::VPTERNLOGD, x.bytes, [a, up, signs], 0x78)
    }

    /// Of the significand from ¾ up to 1½, the exponent is what that of the number has too much.
    fn exponent(&mut self, x: Real, a: Reg, significand: Reg) -> Reg {
        let instruction = [ins::VGETEXPPS, ins::VGETEXPPD][x.size / 8];
        let (all, too_much) = (self.body.un(instruction, x.bytes, a), self.body.un(instruction, x.bytes, significand));
        self.sub(x, all, too_much)
    }

    /// By a table, so that it takes no multiplier's time.
    fn pick(&mut self, x: Real, bit: Reg, [clear, set]: [u64; 2]) -> Reg {
        let both = [clear, set];
        let table = if x.size == 4 { [clear | set << 32; 8] } else { std::array::from_fn(|i| both[i % 2]) };
        let table = self.body.constant(table);
        self.body.bin([ins::VPERMILPS, ins::VPERMILPD][x.size / 8], x.bytes, table, bit)
    }

    /// All of the table is wanted, however long the vectors are.
    fn chosen(&mut self, at: Reg, table: &[f64; 16]) -> Reg {
        let half = |from: usize| std::array::from_fn(|i| table[from + i].to_bits());
        let (low, high) = (self.body.constant(half(0)), self.body.constant(half(8)));
        self.body.fused(ins::VPERMT2PD, 64, low, at, high)
    }
}

/// A mode of rounding as the instruction has it.
fn rounding(mode: Rounding) -> u8 {
    match mode {
        Rounding::Nearest => 0,
        Rounding::Down => 1,
        Rounding::Up => 2,
        Rounding::Zero => 3,
    }
}

/// The predicate of an integer comparison.
fn int_predicate(p: Predicate) -> u8 {
    match p {
        Predicate::Equal | Predicate::Ordered => 0,
        Predicate::Less | Predicate::NotGreaterEqual => 1,
        Predicate::LessEqual | Predicate::NotGreater => 2,
        Predicate::NotEqual | Predicate::Unordered => 4,
        Predicate::GreaterEqual | Predicate::NotLess => 5,
        Predicate::Greater | Predicate::NotLessEqual => 6,
    }
}

/// The predicate of a float comparison: a quiet one, so that no NaN raises a flag.
fn float_predicate(p: Predicate) -> u8 {
    match p {
        Predicate::Equal => 0x00,
        Predicate::Unordered => 0x03,
        Predicate::NotEqual => 0x04,
        Predicate::Ordered => 0x07,
        Predicate::Less => 0x11,
        Predicate::LessEqual => 0x12,
        Predicate::NotLess => 0x15,
        Predicate::NotLessEqual => 0x16,
        Predicate::NotGreaterEqual => 0x19,
        Predicate::NotGreater => 0x1a,
        Predicate::GreaterEqual => 0x1d,
        Predicate::Greater => 0x1e,
    }
}
