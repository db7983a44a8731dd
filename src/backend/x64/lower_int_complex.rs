//! Lowering of integer ops, of complex ops on interleaved parts, and of the correction of double rounding.
//!
//! Guarantees: integers wrap, as in the block kernels; a complex product is the plain formula, each operation rounded.
//! Does not: divide.

use super::instructions::{self as ins, Instruction};
use super::ir::{NONE, Reg};
use super::isa::Isa;
use super::lower::{Lower, NE};
use crate::base::dtype::DType;
use crate::kernels::{Hard, TINY, above_half, hard};
use crate::ops::Op;

/// Predicates of integer comparisons.
const INT_EQ: u8 = 0;
const INT_NE: u8 = 4;
const INT_LT: u8 = 1;

/// One instruction per lane size.
type BySize = [Instruction; 4];

pub(super) const ADD: BySize = [ins::VPADDB, ins::VPADDW, ins::VPADDD, ins::VPADDQ];
pub(super) const SUB: BySize = [ins::VPSUBB, ins::VPSUBW, ins::VPSUBD, ins::VPSUBQ];
pub(super) const MAX: BySize = [ins::VPMAXSB, ins::VPMAXSW, ins::VPMAXSD, ins::VPMAXSQ];
pub(super) const MIN: BySize = [ins::VPMINSB, ins::VPMINSW, ins::VPMINSD, ins::VPMINSQ];
pub(super) const UNSIGNED_MAX: BySize = [ins::VPMAXUB, ins::VPMAXUW, ins::VPMAXUD, ins::VPMAXUQ];
pub(super) const UNSIGNED_MIN: BySize = [ins::VPMINUB, ins::VPMINUW, ins::VPMINUD, ins::VPMINUQ];
pub(super) const ABS: BySize = [ins::VPABSB, ins::VPABSW, ins::VPABSD, ins::VPABSQ];
pub(super) const CMP: BySize = [ins::VPCMPB, ins::VPCMPW, ins::VPCMPD, ins::VPCMPQ];
pub(super) const UNSIGNED_CMP: BySize = [ins::VPCMPUB, ins::VPCMPUW, ins::VPCMPUD, ins::VPCMPUQ];
pub(super) const IS_ZERO: BySize = [ins::VPTESTNMB, ins::VPTESTNMW, ins::VPTESTNMD, ins::VPTESTNMQ];

/// Orders of quadwords: the even ones, the odd ones, each of the first four twice.
const EVEN: [u64; 8] = [0, 2, 4, 6, 0, 2, 4, 6];
const ODD: [u64; 8] = [1, 3, 5, 7, 1, 3, 5, 7];
const TWICE: [u64; 8] = [0, 0, 1, 1, 2, 2, 3, 3];

impl Lower<'_> {
    /// Corrects the f32 results of an op so that a second rounding to f16 gives what one rounding would: the table of
    /// hard arguments says by how many units in the last place.
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

    pub(super) fn int_mul(&mut self, size: usize, bytes: usize, a: Reg, b: Reg) -> Reg {
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
    pub(super) fn shift_bytes(&mut self, left: bool, signed: bool, bytes: usize, a: Reg, count: Reg) -> Reg {
        let (low, high) = (self.body.splat(2, 0x00ff), self.body.splat(2, 0xff00));
        let even_count = self.body.bin(ins::VPANDD, bytes, count, low);
        let odd_count = self.body.un_imm(ins::VPSRLW, bytes, count, 8);
        let (instruction, even_from, odd_from) = if left {
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
    pub(super) fn elements_of_parts(&mut self, d: DType, mask: Reg, all: bool) -> Reg {
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
    pub(super) fn part_signs(&mut self, d: DType, imaginary: bool) -> Reg {
        let top = 1u64 << 63;
        match (d, imaginary) {
            (DType::C64, true) => self.body.splat(8, top),
            (DType::C64, false) => self.body.splat(8, top >> 32),
            (_, true) => self.quads([0, top, 0, top, 0, top, 0, top]),
            (_, false) => self.quads([top, 0, top, 0, top, 0, top, 0]),
        }
    }

    /// `(ar*br - ai*bi, ar*bi + ai*br)` on interleaved parts.
    pub(super) fn complex_mul(&mut self, d: DType, a: Reg, b: Reg) -> Reg {
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
}
