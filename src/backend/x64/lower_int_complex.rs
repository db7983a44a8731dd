//! Lowering of integer ops, of complex ops on interleaved parts, and of the correction of double rounding.
//!
//! Guarantees: integers wrap, as in the block kernels; a complex product is the plain formula, each operation rounded. Does not:
//! divide.

use super::instructions::{self as ins, Instruction};
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

/// One instruction per lane size.
type BySize = [Instruction; 4];

const ADD: BySize = [ins::VPADDB, ins::VPADDW, ins::VPADDD, ins::VPADDQ];
const SUB: BySize = [ins::VPSUBB, ins::VPSUBW, ins::VPSUBD, ins::VPSUBQ];
const MAX: BySize = [ins::VPMAXSB, ins::VPMAXSW, ins::VPMAXSD, ins::VPMAXSQ];
const MIN: BySize = [ins::VPMINSB, ins::VPMINSW, ins::VPMINSD, ins::VPMINSQ];
const ABS: BySize = [ins::VPABSB, ins::VPABSW, ins::VPABSD, ins::VPABSQ];
const CMP: BySize = [ins::VPCMPB, ins::VPCMPW, ins::VPCMPD, ins::VPCMPQ];
const IS_ZERO: BySize = [ins::VPTESTNMB, ins::VPTESTNMW, ins::VPTESTNMD, ins::VPTESTNMQ];

/// Orders of quadwords: the even ones, the odd ones, each of the first four twice.
const EVEN: [u64; 8] = [0, 2, 4, 6, 0, 2, 4, 6];
const ODD: [u64; 8] = [1, 3, 5, 7, 1, 3, 5, 7];
const TWICE: [u64; 8] = [0, 0, 1, 1, 2, 2, 3, 3];

impl Lower<'_> {
    /// Corrects the f32 results of an op so that a second rounding to f16 gives what one rounding would: the table of hard arguments
    /// says by how many units in the last place.
    pub(super) fn double_rounding(&mut self, op: Op, argument: Reg, result: Reg) -> Reg {
        let Some(Hard { both_signs, moves }) = hard(op) else { return result };
        let bytes = 4 * self.lanes;
        let mask = self.body.splat(4, Hard::key_mask(both_signs).into());
        let key = if both_signs { self.body.bin(ins::VPANDD, bytes, argument, mask) } else { argument };
        let mut now = result;
        for (i, (_, ulps)) in moves.iter().enumerate() {
            if moves[..i].iter().any(|(_, before)| before == ulps) {
                continue;
            }
            // Lanes whose argument is none of those with this correction.
            let mut others = NONE;
            for (bits, _) in moves.iter().filter(|(_, same)| same == ulps) {
                let hard = self.body.splat(4, (*bits).into());
                others = self.body.compare_masked(ins::VPCMPD, bytes, others, [key, hard], INT_NE);
            }
            let ulps = self.body.splat(4, u64::from(*ulps as u32));
            let moved = self.body.bin(ins::VPADDD, bytes, now, ulps);
            now = self.body.select(4, bytes, others, now, moved);
        }
        if above_half(op) { self.double_rounding_of_tiny(argument, now) } else { now }
    }

    /// The next f32 away from zero for results of tiny arguments other than zero.
    fn double_rounding_of_tiny(&mut self, argument: Reg, result: Reg) -> Reg {
        let (bytes, size) = (4 * self.lanes, self.real(DType::F32));
        let [tiny, one, zero] = [TINY, 1, 0].map(|bits| self.body.splat(4, bits.into()));
        let size = self.magnitude(size, argument);
        let small = self.body.bin_imm(ins::VPCMPD, bytes, size, tiny, INT_LT);
        let small = self.body.compare_masked(ins::VPCMPD, bytes, small, [size, zero], INT_NE);
        let below = self.body.bin_imm(ins::VPCMPD, bytes, argument, zero, INT_LT);
        let (up, down) =
            (self.body.bin(ins::VPADDD, bytes, result, one), self.body.bin(ins::VPSUBD, bytes, result, one));
        let moved = self.body.select(4, bytes, below, down, up);
        self.body.select(4, bytes, small, moved, result)
    }

    pub(super) fn int(&mut self, op: Op, d: DType, [a, b, c, e]: [Reg; 4]) -> Reg {
        let (size, bytes, signed) = (d.size(), self.lanes * d.size(), !d.is_unsigned());
        let at = size.trailing_zeros() as usize % 4;
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
            return self.body.bin_imm(if signed { CMP[at] } else { ins::VPCMPUB }, bytes, a, b, predicate);
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
                let zero = self.body.splat(4, 0);
                self.body.bin(SUB[at], bytes, zero, a)
            }
            Op::Abs if signed => self.body.un(ABS[at], bytes, a),
            Op::Assign => b,
            _ => self.int_ordered(op, d, [a, b, c, e]),
        }
    }

    /// Ops on integers that compare: maxima, minima, signs.
    fn int_ordered(&mut self, op: Op, d: DType, [a, b, c, e]: [Reg; 4]) -> Reg {
        let (size, bytes, signed) = (d.size(), self.lanes * d.size(), !d.is_unsigned());
        let at = size.trailing_zeros() as usize % 4;
        let larger = if signed { MAX[at] } else { ins::VPMAXUB };
        let smaller = if signed { MIN[at] } else { ins::VPMINUB };
        match op {
            Op::Maximum | Op::Fmax | Op::ClampMin => self.body.bin(larger, bytes, a, b),
            Op::Minimum | Op::Fmin | Op::ClampMax => self.body.bin(smaller, bytes, a, b),
            Op::Clamp => {
                let up = self.body.bin(larger, bytes, a, b);
                self.body.bin(smaller, bytes, up, c)
            }
            Op::Relu => {
                let zero = self.body.splat(4, 0);
                self.body.bin(larger, bytes, a, zero)
            }
            Op::Sign | Op::Sgn | Op::Heaviside => {
                let one = self.body.splat(size, 1);
                let below = self.body.bin(smaller, bytes, a, one);
                let lowest = self.body.splat(size, if op == Op::Heaviside { 0 } else { u64::MAX });
                let sign = if signed { self.body.bin(larger, bytes, below, lowest) } else { below };
                if op != Op::Heaviside {
                    return sign;
                }
                let at_zero = self.body.bin(IS_ZERO[at], bytes, a, a);
                self.body.select(size, bytes, at_zero, b, sign)
            }
            _ => self.int_bits(op, d, [a, b, c, e]),
        }
    }

    /// Bitwise and logical ops on integers, shifts, and ops that are the identity.
    fn int_bits(&mut self, op: Op, d: DType, [a, b, ..]: [Reg; 4]) -> Reg {
        let (size, bytes, signed) = (d.size(), self.lanes * d.size(), !d.is_unsigned());
        let at = size.trailing_zeros() as usize % 4;
        match op {
            Op::BitwiseAnd => self.body.bin(ins::VPANDD, bytes, a, b),
            Op::BitwiseOr => self.body.bin(ins::VPORD, bytes, a, b),
            Op::BitwiseXor => self.body.bin(ins::VPXORD, bytes, a, b),
            Op::BitwiseNot => {
                let ones = self.body.splat(8, u64::MAX);
                self.body.bin(ins::VPXORD, bytes, a, ones)
            }
            Op::ShiftLeft | Op::ShiftRight if size == 1 => self.shift_bytes(op, signed, bytes, a, b),
            // The instruction takes counts as unsigned, so a negative count is beyond the width, too.
            Op::ShiftLeft => self.body.bin([ins::VPSLLVW, ins::VPSLLVW, ins::VPSLLVD, ins::VPSLLVQ][at], bytes, a, b),
            Op::ShiftRight => self.body.bin([ins::VPSRAVW, ins::VPSRAVW, ins::VPSRAVD, ins::VPSRAVQ][at], bytes, a, b),
            Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => {
                let (a, b) = (self.nonzero(size, bytes, a), self.nonzero(size, bytes, b));
                self.logical(op, a, b)
            }
            Op::LogicalNot => self.body.bin(IS_ZERO[at], bytes, a, a),
            Op::Isfinite => self.body.bin_imm(CMP[at], bytes, a, a, INT_EQ),
            Op::Isnan | Op::Isinf => self.body.bin_imm(CMP[at], bytes, a, a, INT_NE),
            // Ops that are the identity on integers, such as rounding and the absolute value of unsigned.
            _ => a,
        }
    }

    fn int_mul(&mut self, size: usize, bytes: usize, a: Reg, b: Reg) -> Reg {
        match size {
            2 => self.body.bin(ins::VPMULLW, bytes, a, b),
            4 => self.body.bin(ins::VPMULLD, bytes, a, b),
            8 => self.body.bin(ins::VPMULLQ, bytes, a, b),
            _ => {
                // Products of words: of the even bytes in the lower half, of the odd bytes in the upper half.
                let (low, high) = (self.body.splat(2, 0x00ff), self.body.splat(2, 0xff00));
                let even = self.body.bin(ins::VPMULLW, bytes, a, b);
                let even = self.body.bin(ins::VPANDD, bytes, even, low);
                let down = self.body.un_imm(ins::VPSRLW, bytes, a, 8);
                let up = self.body.bin(ins::VPANDD, bytes, b, high);
                let odd = self.body.bin(ins::VPMULLW, bytes, down, up);
                self.body.bin(ins::VPORD, bytes, even, odd)
            }
        }
    }

    /// Shifts of bytes: even and odd bytes apart, in words. Counts from 8 to 15 shift a byte out of its half.
    fn shift_bytes(&mut self, op: Op, signed: bool, bytes: usize, a: Reg, count: Reg) -> Reg {
        let (low, high) = (self.body.splat(2, 0x00ff), self.body.splat(2, 0xff00));
        let even_count = self.body.bin(ins::VPANDD, bytes, count, low);
        let odd_count = self.body.un_imm(ins::VPSRLW, bytes, count, 8);
        let (instruction, even_from, odd_from) = if op == Op::ShiftLeft {
            (ins::VPSLLVW, a, self.body.bin(ins::VPANDD, bytes, a, high))
        } else if signed {
            let up = self.body.un_imm(ins::VPSLLW, bytes, a, 8);
            (ins::VPSRAVW, self.body.un_imm(ins::VPSRAW, bytes, up, 8), a)
        } else {
            (ins::VPSRLVW, self.body.bin(ins::VPANDD, bytes, a, low), a)
        };
        let even = self.body.bin(instruction, bytes, even_from, even_count);
        let even = self.body.bin(ins::VPANDD, bytes, even, low);
        let odd = self.body.bin(instruction, bytes, odd_from, odd_count);
        let odd = self.body.bin(ins::VPANDD, bytes, odd, high);
        self.body.bin(ins::VPORD, bytes, even, odd)
    }

    /// A permutation of quadwords.
    pub(super) fn permuted_quads(&mut self, a: Reg, order: [u64; 8]) -> Reg {
        if self.body.isa == Isa::Avx2 {
            return self.body.permuted_quads(a, order);
        }
        // A permutation of words, which exists at every vector length.
        let index = self.quads(order.map(|q| (0..4).fold(0, |all, w| all | (4 * q + w) << (16 * w))));
        self.body.bin(ins::VPERMW, 64, index, a)
    }

    /// A mask of four elements as a mask of their eight parts.
    pub(super) fn parts_of_elements(&mut self, mask: Reg) -> Reg {
        let quads = self.body.un(ins::VPMOVM2Q, 32, mask);
        let both = self.permuted_quads(quads, TWICE);
        self.body.un(ins::VPMOVQ2M, 64, both)
    }

    /// A mask of elements: those with any part (or `all` parts) in a mask of parts.
    fn elements_of_parts(&mut self, d: DType, mask: Reg, all: bool) -> Reg {
        let bytes = self.lanes * d.size();
        if d == DType::C64 {
            let parts = self.body.un(ins::VPMOVM2D, bytes, mask);
            if !all {
                return self.nonzero(8, bytes, parts);
            }
            let ones = self.body.splat(8, u64::MAX);
            return self.body.bin_imm(ins::VPCMPQ, bytes, parts, ones, INT_EQ);
        }
        let parts = self.body.un(ins::VPMOVM2Q, bytes, mask);
        let swapped = self.body.un_imm(ins::VPSHUFD, bytes, parts, 0b0100_1110);
        let joined = self.body.bin(if all { ins::VPANDD } else { ins::VPORD }, bytes, parts, swapped);
        let firsts = self.permuted_quads(joined, EVEN);
        self.body.un(ins::VPMOVQ2M, 64, firsts)
    }

    /// Which complex numbers are not zero.
    pub(super) fn complex_nonzero(&mut self, d: DType, a: Reg) -> Reg {
        let x = self.real(d);
        let zero = self.float(x, 0.0);
        let parts = self.compare(x, NE, a, zero);
        self.elements_of_parts(d, parts, false)
    }

    /// The real or the imaginary parts.
    pub(super) fn part(&mut self, d: DType, a: Reg, imaginary: bool) -> Reg {
        if d == DType::C128 {
            return self.permuted_quads(a, if imaginary { ODD } else { EVEN });
        }
        let (bytes, half) = (self.lanes * d.size(), d.size() as u8 * 4);
        let down = match (imaginary, d) {
            (false, _) => a,
            (true, DType::C64) => self.body.un_imm(ins::VPSRLQ, bytes, a, half),
            (true, _) => self.body.un_imm(ins::VPSRLD, bytes, a, half),
        };
        self.body.un(if d == DType::C64 { ins::VPMOVQD } else { ins::VPMOVDW }, bytes, down)
    }

    /// Real numbers as the complex dtype `to`.
    pub(super) fn widened(&mut self, to: DType, a: Reg) -> Reg {
        let bytes = self.lanes * to.size();
        match to {
            DType::C32 => self.body.un(ins::VPMOVZXWD, bytes, a),
            DType::C64 => self.body.un(ins::VPMOVZXDQ, bytes, a),
            _ => {
                let both = self.permuted_quads(a, TWICE);
                let real = self.quads([u64::MAX, 0, u64::MAX, 0, u64::MAX, 0, u64::MAX, 0]);
                self.body.bin(ins::VPANDD, bytes, both, real)
            }
        }
    }

    /// The sign bits of the real or of the imaginary parts.
    fn part_signs(&mut self, d: DType, imaginary: bool) -> Reg {
        let top = 1u64 << 63;
        match (d, imaginary) {
            (DType::C64, true) => self.body.splat(8, top),
            (DType::C64, false) => self.body.splat(8, top >> 32),
            (_, true) => self.quads([0, top, 0, top, 0, top, 0, top]),
            (_, false) => self.quads([top, 0, top, 0, top, 0, top, 0]),
        }
    }

    /// `(ar*br - ai*bi, ar*bi + ai*br)` on interleaved parts.
    fn complex_mul(&mut self, d: DType, a: Reg, b: Reg) -> Reg {
        let x = self.real(d);
        let (re, im, swapped) = if d == DType::C64 {
            let re = self.body.un(ins::VMOVSLDUP, x.bytes, a);
            let im = self.body.un(ins::VMOVSHDUP, x.bytes, a);
            (re, im, self.body.un_imm(ins::VPERMILPS_IMM, x.bytes, b, 0b1011_0001))
        } else {
            let re = self.body.un_imm(ins::VPERMILPD_IMM, x.bytes, a, 0);
            let im = self.body.un_imm(ins::VPERMILPD_IMM, x.bytes, a, 0xff);
            (re, im, self.body.un_imm(ins::VPERMILPD_IMM, x.bytes, b, 0b0101_0101))
        };
        let straight = self.mul(x, re, b);
        let crossed = self.mul(x, im, swapped);
        // a - b as a + (-b), which differs in the sign of a NaN at most.
        let signs = self.part_signs(d, false);
        let signed = self.body.bin(ins::VPXORD, x.bytes, crossed, signs);
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
                Out::Done(self.body.bin(ins::VPXORD, x.bytes, a, signs), na.min(Nan::Quiet))
            }
            Op::Conj => {
                let signs = self.part_signs(d, true);
                Out::Raw(self.body.bin(ins::VPXORD, x.bytes, a, signs), na.min(Nan::Quiet))
            }
            Op::RealPart | Op::ImagPart => Out::Raw(self.part(d, a, op == Op::ImagPart), na),
            Op::Positive | Op::PromoteWith => Out::Raw(a, na),
            Op::Assign => Out::Raw(b, nb),
            Op::Eq | Op::Ne => {
                let predicate = Self::predicate(op).unwrap_or(NE);
                let parts = self.compare(x, predicate, a, b);
                mask(self.elements_of_parts(d, parts, op == Op::Eq))
            }
            Op::Isnan | Op::Isinf | Op::Isfinite => {
                let parts = self.class(x, op, a);
                mask(self.elements_of_parts(d, parts, op == Op::Isfinite))
            }
            Op::LogicalNot => {
                let nonzero = self.complex_nonzero(d, a);
                mask(self.body.un(ins::KNOTQ, 8, nonzero))
            }
            _ => {
                let (a, b) = (self.complex_nonzero(d, a), self.complex_nonzero(d, b));
                mask(self.logical(op, a, b))
            }
        }
    }
}
