//! Integers, and complex numbers as pairs of parts.
//!
//! Guarantees: integers wrap, as the block kernels do; complex products are the plain formula, each operation rounded.
//! Does not: divide.

use super::instructions::{self as f, Form};
use super::ir::{NONE, Reg};
use super::isa::Isa;
use super::lower::{Lower, NE, Nan, Out};
use crate::base::dtype::DType;
use crate::kernels::{Hard, TINY, above_half, hard};
use crate::ops::Op;

/// Predicates of integer comparisons.
const INT_EQ: u8 = 0;
const INT_NE: u8 = 4;
const INT_LT: u8 = 1;

/// A form for each lane size.
type Forms = [Form; 4];

const ADD: Forms = [f::PADDB, f::PADDW, f::PADDD, f::PADDQ];
const SUB: Forms = [f::PSUBB, f::PSUBW, f::PSUBD, f::PSUBQ];
const MAX: Forms = [f::PMAXSB, f::PMAXSW, f::PMAXSD, f::PMAXSQ];
const MIN: Forms = [f::PMINSB, f::PMINSW, f::PMINSD, f::PMINSQ];
const ABS: Forms = [f::PABSB, f::PABSW, f::PABSD, f::PABSQ];
const CMP: Forms = [f::PCMPB, f::PCMPW, f::PCMPD, f::PCMPQ];
const IS_ZERO: Forms = [f::PTESTNMB, f::PTESTNMW, f::PTESTNMD, f::PTESTNMQ];

/// The even quadwords, the odd ones, and each of the first four twice.
const EVEN: [u64; 8] = [0, 2, 4, 6, 0, 2, 4, 6];
const ODD: [u64; 8] = [1, 3, 5, 7, 1, 3, 5, 7];
const TWICE: [u64; 8] = [0, 0, 1, 1, 2, 2, 3, 3];

impl Lower<'_> {
    /// The f32 results of an op, moved where the table of hard arguments says so.
    pub(super) fn nudged(&mut self, op: Op, argument: Reg, result: Reg) -> Reg {
        let Some(Hard { both_signs, moves }) = hard(op) else { return result };
        let bytes = 4 * self.lanes;
        let mask = self.body.lanes(4, Hard::key_mask(both_signs).into());
        let key = if both_signs { self.body.bin(f::AND, bytes, argument, mask) } else { argument };
        let mut now = result;
        for (i, (_, ulps)) in moves.iter().enumerate() {
            if moves[..i].iter().any(|(_, before)| before == ulps) {
                continue;
            }
            // Each comparison is made where the ones before it found another argument.
            let mut others = NONE;
            for (bits, _) in moves.iter().filter(|(_, same)| same == ulps) {
                let hard = self.body.lanes(4, (*bits).into());
                others = self.body.compare_where(f::PCMPD, bytes, others, [key, hard], INT_NE);
            }
            let ulps = self.body.lanes(4, u64::from(*ulps as u32));
            let moved = self.body.bin(f::PADDD, bytes, now, ulps);
            now = self.body.choose(4, bytes, others, now, moved);
        }
        if above_half(op) { self.nudged_up(argument, now) } else { now }
    }

    /// The next f32 of a result whose argument is tiny, but not of zero's.
    fn nudged_up(&mut self, argument: Reg, result: Reg) -> Reg {
        let (bytes, size) = (4 * self.lanes, self.real(DType::F32));
        let [tiny, one, zero] = [TINY, 1, 0].map(|bits| self.body.lanes(4, bits.into()));
        let size = self.magnitude(size, argument);
        let small = self.body.bin_imm(f::PCMPD, bytes, size, tiny, INT_LT);
        let small = self.body.compare_where(f::PCMPD, bytes, small, [size, zero], INT_NE);
        let below = self.body.bin_imm(f::PCMPD, bytes, argument, zero, INT_LT);
        let (up, down) = (self.body.bin(f::PADDD, bytes, result, one), self.body.bin(f::PSUBD, bytes, result, one));
        let moved = self.body.choose(4, bytes, below, down, up);
        self.body.choose(4, bytes, small, moved, result)
    }

    pub(super) fn int(&mut self, op: Op, d: DType, [a, b, c, e]: [Reg; 4]) -> Reg {
        let (size, bytes, signed) = (d.size(), self.lanes * d.size(), !d.is_unsigned());
        let at = size.trailing_zeros() as usize % 4;
        let larger = if signed { MAX[at] } else { f::PMAXUB };
        let smaller = if signed { MIN[at] } else { f::PMINUB };
        let predicate = match op {
            Op::Eq => Some(INT_EQ),
            Op::Lt => Some(1),
            Op::Le => Some(2),
            Op::Ne => Some(INT_NE),
            Op::Ge => Some(5),
            Op::Gt => Some(6),
            _ => None,
        };
        if let Some(predicate) = predicate {
            return self.body.bin_imm(if signed { CMP[at] } else { f::PCMPUB }, bytes, a, b, predicate);
        }
        match op {
            Op::Add => self.body.bin(ADD[at], bytes, a, b),
            Op::Sub => self.body.bin(SUB[at], bytes, a, b),
            Op::Mul => self.int_mul(size, bytes, a, b),
            Op::Square => self.int_mul(size, bytes, a, a),
            Op::SquaredDifference => {
                let difference = self.body.bin(SUB[at], bytes, a, b);
                self.int_mul(size, bytes, difference, difference)
            }
            Op::AddScaled | Op::SubScaled => {
                let scaled = self.int_mul(size, bytes, c, b);
                self.body.bin(if op == Op::AddScaled { ADD[at] } else { SUB[at] }, bytes, a, scaled)
            }
            Op::Addcmul => {
                let scaled = self.int_mul(size, bytes, e, b);
                let term = self.int_mul(size, bytes, scaled, c);
                self.body.bin(ADD[at], bytes, a, term)
            }
            Op::Neg => {
                let zero = self.body.lanes(4, 0);
                self.body.bin(SUB[at], bytes, zero, a)
            }
            Op::Abs if signed => self.body.un(ABS[at], bytes, a),
            Op::Maximum | Op::Fmax | Op::ClampMin => self.body.bin(larger, bytes, a, b),
            Op::Minimum | Op::Fmin | Op::ClampMax => self.body.bin(smaller, bytes, a, b),
            Op::Clamp => {
                let up = self.body.bin(larger, bytes, a, b);
                self.body.bin(smaller, bytes, up, c)
            }
            Op::Relu => {
                let zero = self.body.lanes(4, 0);
                self.body.bin(larger, bytes, a, zero)
            }
            Op::Sign | Op::Sgn | Op::Heaviside => {
                let one = self.body.lanes(size, 1);
                let below = self.body.bin(smaller, bytes, a, one);
                let lowest = self.body.lanes(size, if op == Op::Heaviside { 0 } else { u64::MAX });
                let sign = if signed { self.body.bin(larger, bytes, below, lowest) } else { below };
                if op != Op::Heaviside {
                    return sign;
                }
                let at_zero = self.body.bin(IS_ZERO[at], bytes, a, a);
                self.body.choose(size, bytes, at_zero, b, sign)
            }
            Op::BitwiseAnd => self.body.bin(f::AND, bytes, a, b),
            Op::BitwiseOr => self.body.bin(f::OR, bytes, a, b),
            Op::BitwiseXor => self.body.bin(f::XOR, bytes, a, b),
            Op::BitwiseNot => {
                let ones = self.body.lanes(8, u64::MAX);
                self.body.bin(f::XOR, bytes, a, ones)
            }
            Op::ShiftLeft | Op::ShiftRight if size == 1 => self.shift_bytes(op, signed, bytes, a, b),
            // Counts are unsigned to the instruction: a negative one is beyond the width, too.
            Op::ShiftLeft => self.body.bin([f::PSLLVW, f::PSLLVW, f::PSLLVD, f::PSLLVQ][at], bytes, a, b),
            Op::ShiftRight => self.body.bin([f::PSRAVW, f::PSRAVW, f::PSRAVD, f::PSRAVQ][at], bytes, a, b),
            Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => {
                let (a, b) = (self.nonzero(size, bytes, a), self.nonzero(size, bytes, b));
                self.logical(op, a, b)
            }
            Op::LogicalNot => self.body.bin(IS_ZERO[at], bytes, a, a),
            Op::Isfinite => self.body.bin_imm(CMP[at], bytes, a, a, INT_EQ),
            Op::Isnan | Op::Isinf => self.body.bin_imm(CMP[at], bytes, a, a, INT_NE),
            Op::Assign => b,
            // Rounding, |x| of unsigned, and what else leaves an integer as it is.
            _ => a,
        }
    }

    fn int_mul(&mut self, size: usize, bytes: usize, a: Reg, b: Reg) -> Reg {
        match size {
            2 => self.body.bin(f::PMULLW, bytes, a, b),
            4 => self.body.bin(f::PMULLD, bytes, a, b),
            8 => self.body.bin(f::PMULLQ, bytes, a, b),
            _ => {
                // The low bytes of products of even bytes, and of odd ones that stay in the upper half of their word.
                let (low, high) = (self.body.lanes(2, 0x00ff), self.body.lanes(2, 0xff00));
                let even = self.body.bin(f::PMULLW, bytes, a, b);
                let even = self.body.bin(f::AND, bytes, even, low);
                let down = self.body.un_imm(f::PSRLW, bytes, a, 8);
                let up = self.body.bin(f::AND, bytes, b, high);
                let odd = self.body.bin(f::PMULLW, bytes, down, up);
                self.body.bin(f::OR, bytes, even, odd)
            }
        }
    }

    /// Shifts of bytes: of the even and the odd ones, in words. Counts from 8 to 15 move a byte out of its half.
    fn shift_bytes(&mut self, op: Op, signed: bool, bytes: usize, a: Reg, count: Reg) -> Reg {
        let (low, high) = (self.body.lanes(2, 0x00ff), self.body.lanes(2, 0xff00));
        let even_count = self.body.bin(f::AND, bytes, count, low);
        let odd_count = self.body.un_imm(f::PSRLW, bytes, count, 8);
        let (form, even_from, odd_from) = if op == Op::ShiftLeft {
            (f::PSLLVW, a, self.body.bin(f::AND, bytes, a, high))
        } else if signed {
            let up = self.body.un_imm(f::PSLLW, bytes, a, 8);
            (f::PSRAVW, self.body.un_imm(f::PSRAW, bytes, up, 8), a)
        } else {
            (f::PSRLVW, self.body.bin(f::AND, bytes, a, low), a)
        };
        let even = self.body.bin(form, bytes, even_from, even_count);
        let even = self.body.bin(f::AND, bytes, even, low);
        let odd = self.body.bin(form, bytes, odd_from, odd_count);
        let odd = self.body.bin(f::AND, bytes, odd, high);
        self.body.bin(f::OR, bytes, even, odd)
    }

    /// Quadwords in another order.
    pub(super) fn ordered(&mut self, a: Reg, order: [u64; 8]) -> Reg {
        if self.body.isa == Isa::Avx2 {
            return self.body.quads_ordered(a, order);
        }
        // As words: there is no instruction on quadwords for every vector length.
        let index = self.quads(order.map(|q| (0..4).fold(0, |all, w| all | (4 * q + w) << (16 * w))));
        self.body.bin(f::PERMW, 64, index, a)
    }

    /// A mask of four elements as one of their parts.
    pub(super) fn doubled(&mut self, mask: Reg) -> Reg {
        let quads = self.body.un(f::MASKQ, 32, mask);
        let both = self.ordered(quads, TWICE);
        self.body.un(f::Q2MASK, 64, both)
    }

    /// Which elements have one (or all) of their parts in the mask.
    fn paired(&mut self, d: DType, mask: Reg, all: bool) -> Reg {
        let bytes = self.lanes * d.size();
        if d == DType::C64 {
            let parts = self.body.un(f::MASKD, bytes, mask);
            if !all {
                return self.nonzero(8, bytes, parts);
            }
            let ones = self.body.lanes(8, u64::MAX);
            return self.body.bin_imm(f::PCMPQ, bytes, parts, ones, INT_EQ);
        }
        let parts = self.body.un(f::MASKQ, bytes, mask);
        let swapped = self.body.un_imm(f::PSHUFD, bytes, parts, 0b0100_1110);
        let joined = self.body.bin(if all { f::AND } else { f::OR }, bytes, parts, swapped);
        let firsts = self.ordered(joined, EVEN);
        self.body.un(f::Q2MASK, 64, firsts)
    }

    /// Whether a complex number is not zero.
    pub(super) fn complex_truth(&mut self, d: DType, a: Reg) -> Reg {
        let x = self.real(d);
        let zero = self.float(x, 0.0);
        let parts = self.compare(x, NE, a, zero);
        self.paired(d, parts, false)
    }

    /// The real or the imaginary parts.
    pub(super) fn part(&mut self, d: DType, a: Reg, imaginary: bool) -> Reg {
        if d == DType::C128 {
            return self.ordered(a, if imaginary { ODD } else { EVEN });
        }
        let (bytes, half) = (self.lanes * d.size(), d.size() as u8 * 4);
        let down = match (imaginary, d) {
            (false, _) => a,
            (true, DType::C64) => self.body.un_imm(f::PSRLQ, bytes, a, half),
            (true, _) => self.body.un_imm(f::PSRLD, bytes, a, half),
        };
        self.body.un(if d == DType::C64 { f::CUTQD } else { f::CUTDW }, bytes, down)
    }

    /// Real numbers as the complex dtype `to`.
    pub(super) fn widened(&mut self, to: DType, a: Reg) -> Reg {
        let bytes = self.lanes * to.size();
        match to {
            DType::C32 => self.body.un(f::ZXWD, bytes, a),
            DType::C64 => self.body.un(f::ZXDQ, bytes, a),
            _ => {
                let both = self.ordered(a, TWICE);
                let real = self.quads([u64::MAX, 0, u64::MAX, 0, u64::MAX, 0, u64::MAX, 0]);
                self.body.bin(f::AND, bytes, both, real)
            }
        }
    }

    /// The sign bits of the real or of the imaginary parts.
    fn part_signs(&mut self, d: DType, imaginary: bool) -> Reg {
        let top = 1u64 << 63;
        match (d, imaginary) {
            (DType::C64, true) => self.body.lanes(8, top),
            (DType::C64, false) => self.body.lanes(8, top >> 32),
            (_, true) => self.quads([0, top, 0, top, 0, top, 0, top]),
            (_, false) => self.quads([top, 0, top, 0, top, 0, top, 0]),
        }
    }

    /// `(ar*br - ai*bi, ar*bi + ai*br)` on interleaved parts.
    fn complex_mul(&mut self, d: DType, a: Reg, b: Reg) -> Reg {
        let x = self.real(d);
        let (re, im, swapped) = if d == DType::C64 {
            let re = self.body.un(f::SLDUP, x.bytes, a);
            let im = self.body.un(f::SHDUP, x.bytes, a);
            (re, im, self.body.un_imm(f::PERMPS, x.bytes, b, 0b1011_0001))
        } else {
            let re = self.body.un_imm(f::PERMPD, x.bytes, a, 0);
            let im = self.body.un_imm(f::PERMPD, x.bytes, a, 0xff);
            (re, im, self.body.un_imm(f::PERMPD, x.bytes, b, 0b0101_0101))
        };
        let straight = self.mul(x, re, b);
        let crossed = self.mul(x, im, swapped);
        // a - b is a + (-b), but for the sign of a NaN.
        let signs = self.part_signs(d, false);
        let signed = self.body.bin(f::XOR, x.bytes, crossed, signs);
        self.add(x, straight, signed)
    }

    pub(super) fn complex(&mut self, op: Op, d: DType, args: [(Reg, Nan); 4]) -> Out {
        let x = self.real(d);
        let [(a, na), (b, nb), (c, _), (e, _)] = args;
        let quiet = |r| Out::Raw(r, Nan::Quiet);
        let mask = |r| Out::Done(r, Nan::Any);
        match op {
            Op::Add => quiet(self.add(x, a, b)),
            Op::Sub => quiet(self.sub(x, a, b)),
            Op::Mul => quiet(self.complex_mul(d, a, b)),
            Op::Square => quiet(self.complex_mul(d, a, a)),
            Op::SquaredDifference => {
                let difference = self.sub(x, a, b);
                quiet(self.complex_mul(d, difference, difference))
            }
            Op::AddScaled | Op::SubScaled => {
                let scaled = self.complex_mul(d, c, b);
                quiet(if op == Op::AddScaled { self.add(x, a, scaled) } else { self.sub(x, a, scaled) })
            }
            Op::Addcmul => {
                let scaled = self.complex_mul(d, e, b);
                let term = self.complex_mul(d, scaled, c);
                quiet(self.add(x, a, term))
            }
            Op::Neg => {
                let signs = self.sign_bits(x, false);
                Out::Done(self.body.bin(f::XOR, x.bytes, a, signs), na.min(Nan::Quiet))
            }
            Op::Conj => {
                let signs = self.part_signs(d, true);
                Out::Raw(self.body.bin(f::XOR, x.bytes, a, signs), na.min(Nan::Quiet))
            }
            Op::RealPart | Op::ImagPart => Out::Raw(self.part(d, a, op == Op::ImagPart), na),
            Op::Positive | Op::PromoteWith => Out::Raw(a, na),
            Op::Assign => Out::Raw(b, nb),
            Op::Eq | Op::Ne => {
                let predicate = Self::predicate(op).unwrap_or(NE);
                let parts = self.compare(x, predicate, a, b);
                mask(self.paired(d, parts, op == Op::Eq))
            }
            Op::Isnan | Op::Isinf | Op::Isfinite => {
                let parts = self.class(x, op, a);
                mask(self.paired(d, parts, op == Op::Isfinite))
            }
            Op::LogicalNot => {
                let truth = self.complex_truth(d, a);
                mask(self.body.un(f::KNOT, 8, truth))
            }
            _ => {
                let (a, b) = (self.complex_truth(d, a), self.complex_truth(d, b));
                mask(self.logical(op, a, b))
            }
        }
    }
}
