//! AVX2 expansions of AVX-512 instructions.
//!
//! Most instructions exist in both sets; the others are expanded. A mask is a vector whose lanes are all ones or all zeros
//! ([`VectorMask`]): if its lanes are not as wide as a use needs, it is resized, and if it is inverted, its uses are adjusted
//! instead of its bits. Guarantees: the same lanes as the AVX-512 instruction; beyond the vector's bytes they are unspecified.
//! Does not: expand conversions between 64-bit integers and floats except those to f64 ([`super::lower::is_lowerable`] leaves the others to
//! block kernels), nor instructions for which `math` and `cast` have AVX2 code of their own.

use super::instructions::{self as ins, Instruction, avx2, length};
use super::ir::{Body, Def, Inst, NONE, Reg, VectorMask};
use super::isa::Isa;

const EQ: [Instruction; 4] = [avx2::VPCMPEQB, avx2::VPCMPEQW, avx2::VPCMPEQD, avx2::VPCMPEQQ];
const GT: [Instruction; 4] = [avx2::VPCMPGTB, avx2::VPCMPGTW, avx2::VPCMPGTD, avx2::VPCMPGTQ];

/// The index of a lane size in tables by size.
fn at(size: usize) -> usize {
    size.trailing_zeros() as usize % 4
}

impl Body {
    /// Appends the AVX2 instructions for an AVX-512 instruction over a vector of this many bytes.
    pub(super) fn emit_avx2(&mut self, inst: Inst, bytes: usize) -> Reg {
        let bytes = bytes.min(Isa::Avx2.bytes());
        let inst = Inst { length: length(bytes), ..inst };
        if let Some(instruction) = inst.instruction.avx2() {
            return self.push(Inst { instruction, ..inst });
        }
        match self.expanded_masks(inst, bytes).or_else(|| self.expanded(inst, bytes)) {
            Some(result) => result,
            None => {
                self.missing = Some(inst.instruction);
                inst.src[0]
            }
        }
    }

    /// Expands instructions that make, combine or use masks.
    fn expanded_masks(&mut self, inst: Inst, bytes: usize) -> Option<Reg> {
        let [a, b, _] = inst.src;
        Some(match inst.instruction {
            ins::SLOW_PATH => {
                let mask = self.mask_lanes(inst.mask, None);
                self.push(Inst { mask, ..inst })
            }
            ins::VCMPPS => self.compare(avx2::VCMPPS, 4, bytes, inst),
            ins::VCMPPD => self.compare(avx2::VCMPPD, 8, bytes, inst),
            ins::VPCMPB => self.compare_ints(1, bytes, inst),
            ins::VPCMPW => self.compare_ints(2, bytes, inst),
            ins::VPCMPD => self.compare_ints(4, bytes, inst),
            ins::VPCMPQ => self.compare_ints(8, bytes, inst),
            ins::VPCMPUB => self.compare_unsigned(1, bytes, inst),
            ins::VPCMPUW => self.compare_unsigned(2, bytes, inst),
            ins::VPCMPUD => self.compare_unsigned(4, bytes, inst),
            ins::VPCMPUQ => {
                // By the order of signed quadwords with the top bits turned.
                let turned = self.turned_quads(bytes, inst.src);
                self.compare_ints(8, bytes, Inst { src: turned, ..inst })
            }
            ins::VPTESTMB => self.test(1, bytes, inst.src, true),
            ins::VPTESTMW => self.test(2, bytes, inst.src, true),
            ins::VPTESTMD => self.test(4, bytes, inst.src, true),
            ins::VPTESTMQ => self.test(8, bytes, inst.src, true),
            ins::VPTESTNMB => self.test(1, bytes, inst.src, false),
            ins::VPTESTNMW => self.test(2, bytes, inst.src, false),
            ins::VPTESTNMD => self.test(4, bytes, inst.src, false),
            ins::VPTESTNMQ => self.test(8, bytes, inst.src, false),
            ins::VPBLENDMB => self.blend(1, bytes, inst),
            ins::VPBLENDMW => self.blend(2, bytes, inst),
            ins::VPBLENDMD => self.blend(4, bytes, inst),
            ins::VPBLENDMQ => self.blend(8, bytes, inst),
            ins::VMOVDQU8 => self.move_or_zero(1, bytes, inst),
            ins::VMOVDQU16 => self.move_or_zero(2, bytes, inst),
            ins::VMOVDQU32 => self.move_or_zero(4, bytes, inst),
            ins::VMOVDQU64 => self.move_or_zero(8, bytes, inst),
            ins::KANDQ | ins::KANDNQ | ins::KORQ | ins::KXORQ | ins::KXNORQ | ins::KNOTQ => {
                return self.mask_logic(inst.instruction, a, b);
            }
            ins::VPMOVM2D => self.mask_lanes(a, Some(4)),
            ins::VPMOVM2Q => self.mask_lanes(a, Some(8)),
            ins::VPMOVQ2M => self.mask(VectorMask { lanes: a, size: 8, bytes, inverted: false }),
            _ => return None,
        })
    }

    /// Expands instructions on vectors alone.
    fn expanded(&mut self, inst: Inst, bytes: usize) -> Option<Reg> {
        let ([a, b, _], imm) = (inst.src, inst.imm.unwrap_or_default());
        Some(match inst.instruction {
            ins::ACCUMULATE => self.push(inst),
            ins::VRANGEPS | ins::VRANGEPD => {
                self.extreme(inst.instruction == ins::VRANGEPS, imm & 1 == 1, bytes, [a, b])
            }
            ins::VPTERNLOGD => return self.ternary_logic(imm, bytes, inst.src),
            ins::VPMOVWB => self.narrowed(2, 1, bytes / 2, a),
            ins::VPMOVDB => self.narrowed(4, 1, bytes / 4, a),
            ins::VPMOVQB => self.narrowed(8, 1, bytes / 8, a),
            ins::VPMOVDW => self.narrowed(4, 2, bytes / 4, a),
            ins::VPMOVQW => self.narrowed(8, 2, bytes / 8, a),
            ins::VPMOVQD => self.narrowed(8, 4, bytes / 8, a),
            ins::VPMOVSDB => self.saturated(i8::MIN.into(), i8::MAX.into(), 1, bytes, a),
            ins::VPMOVSDW => self.saturated(i16::MIN.into(), i16::MAX.into(), 2, bytes, a),
            ins::VPMOVUSDB => self.capped(u8::MAX.into(), 1, bytes, a),
            ins::VPMOVUSDW => self.capped(u16::MAX.into(), 2, bytes, a),
            ins::VPMULLQ => self.mul_quads(bytes, a, b),
            ins::VPMAXSQ | ins::VPMINSQ => {
                let above = self.raw(avx2::VPCMPGTQ, bytes, a, b);
                let [no, yes] = if inst.instruction == ins::VPMAXSQ { [b, a] } else { [a, b] };
                self.blend_lanes(bytes, above, no, yes)
            }
            ins::VPMAXUQ | ins::VPMINUQ => {
                let [x, y, _] = self.turned_quads(bytes, inst.src);
                let above = self.raw(avx2::VPCMPGTQ, bytes, x, y);
                let [no, yes] = if inst.instruction == ins::VPMAXUQ { [b, a] } else { [a, b] };
                self.blend_lanes(bytes, above, no, yes)
            }
            ins::VPABSQ => {
                let signs = self.sign_lanes(bytes, a);
                let flipped = self.bin(ins::VPXORD, bytes, a, signs);
                self.bin(ins::VPSUBQ, bytes, flipped, signs)
            }
            ins::VPSRAVQ => {
                // A logical shift of the complement if negative, complemented again. Counts from 64 on give zero before that.
                let signs = self.sign_lanes(bytes, a);
                let flipped = self.bin(ins::VPXORD, bytes, a, signs);
                let down = self.bin(ins::VPSRLVQ, bytes, flipped, b);
                self.bin(ins::VPXORD, bytes, down, signs)
            }
            ins::VPSLLVW | ins::VPSRLVW | ins::VPSRAVW => self.shifted_words(inst.instruction, bytes, a, b),
            ins::VCVTQQ2PD => self.f64_of_quads(true, bytes, a),
            ins::VCVTUQQ2PD => self.f64_of_quads(false, bytes, a),
            ins::VCVTUDQ2PD => self.f64_of_u32(bytes, a),
            ins::VCVTUDQ2PS => self.f32_of_u32(bytes, a),
            ins::VCVTTPS2UDQ | ins::VCVTTPD2UDQ => self.u32_of_float(inst.instruction == ins::VCVTTPS2UDQ, bytes, a),
            _ => return None,
        })
    }

    fn raw(&mut self, instruction: Instruction, bytes: usize, a: Reg, b: Reg) -> Reg {
        self.push(Inst::new(instruction, bytes, [a, b, NONE]))
    }

    fn raw_imm(&mut self, instruction: Instruction, bytes: usize, a: Reg, imm: u8) -> Reg {
        self.push(Inst { imm: Some(imm), ..Inst::new(instruction, bytes, [a, NONE, NONE]) })
    }

    /// `yes` where the lanes are set, else `no`.
    fn blend_lanes(&mut self, bytes: usize, lanes: Reg, no: Reg, yes: Reg) -> Reg {
        self.push(Inst { mask: lanes, ..Inst::new(avx2::VPBLENDVB, bytes, [no, yes, NONE]) })
    }

    /// A virtual register that denotes a mask; no instruction defines it.
    fn mask(&mut self, mask: VectorMask) -> Reg {
        let r = self.define(Def::Inst, false);
        self.vector_masks.insert(r, mask);
        r
    }

    /// The lanes of a mask, resized to `size` bytes, and whether they are inverted.
    fn mask_sized(&mut self, mask: Reg, size: Option<usize>) -> (Reg, bool) {
        let Some(mask) = self.vector_masks.get(&mask).copied() else { return (mask, false) };
        let size = size.unwrap_or(mask.size);
        if size == mask.size {
            return (mask.lanes, mask.inverted);
        }
        if let Some(known) = self.resized_masks.get(&(mask.lanes, size)) {
            return (*known, mask.inverted);
        }
        let n = mask.bytes / mask.size;
        let wider = [
            [ins::VPMOVSXBW, ins::VPMOVSXBD, ins::VPMOVSXBQ],
            [ins::VPMOVSXWD, ins::VPMOVSXWD, ins::VPMOVSXWQ],
            [ins::VPMOVSXDQ; 3],
        ];
        let lanes = match (mask.size, size) {
            (from, to) if from < to => self.un(wider[at(from)][at(to) - 1], n * to, mask.lanes),
            (4, 2) if mask.bytes > 16 => self.packed(avx2::VPACKSSDW, mask.lanes),
            (2, 1) if mask.bytes > 16 => self.packed(avx2::VPACKSSWB, mask.lanes),
            (from, to) => self.narrowed(from, to, n, mask.lanes),
        };
        self.resized_masks.insert((mask.lanes, size), lanes);
        (lanes, mask.inverted)
    }

    /// A mask as a vector that is not inverted.
    fn mask_lanes(&mut self, mask: Reg, size: Option<usize>) -> Reg {
        match self.mask_sized(mask, size) {
            (lanes, false) => lanes,
            (lanes, true) => {
                let ones = self.splat(8, u64::MAX);
                self.bin(ins::VPXORD, 32, lanes, ones)
            }
        }
    }

    /// The conjunction of two masks, each of which may be inverted; the result may be, too.
    fn both(&mut self, bytes: usize, (a, a_not): (Reg, bool), (b, b_not): (Reg, bool)) -> (Reg, bool) {
        match (a_not, b_not) {
            (false, false) => (self.bin(ins::VPANDD, bytes, a, b), false),
            (true, false) => (self.bin(ins::VPANDND, bytes, a, b), false),
            (false, true) => (self.bin(ins::VPANDND, bytes, b, a), false),
            (true, true) => (self.bin(ins::VPORD, bytes, a, b), true),
        }
    }

    /// A mask, or its conjunction with another one if there is one.
    fn within(&mut self, mask: VectorMask, other: Reg) -> Reg {
        if other == NONE {
            return self.mask(mask);
        }
        let other = self.mask_sized(other, Some(mask.size));
        let (lanes, inverted) = self.both(mask.bytes, (mask.lanes, mask.inverted), other);
        self.mask(VectorMask { lanes, inverted, ..mask })
    }

    fn compare(&mut self, instruction: Instruction, size: usize, bytes: usize, inst: Inst) -> Reg {
        let lanes = self.push(Inst { instruction, mask: NONE, ..inst });
        self.within(VectorMask { lanes, size, bytes, inverted: false }, inst.mask)
    }

    /// Predicates 0 to 6: equal, less, less or equal, -, not equal, greater or equal, greater.
    fn compare_ints(&mut self, size: usize, bytes: usize, inst: Inst) -> Reg {
        let ([a, b, _], predicate) = (inst.src, inst.imm.unwrap_or_default());
        let (lanes, inverted) = match predicate {
            0 | 4 => (self.raw(EQ[at(size)], bytes, a, b), predicate == 4),
            1 | 5 => (self.raw(GT[at(size)], bytes, b, a), predicate == 5),
            _ => (self.raw(GT[at(size)], bytes, a, b), predicate == 2),
        };
        self.within(VectorMask { lanes, size, bytes, inverted }, inst.mask)
    }

    /// The same predicates on unsigned bytes, words or doublewords.
    fn compare_unsigned(&mut self, size: usize, bytes: usize, inst: Inst) -> Reg {
        let ([a, b, _], predicate) = (inst.src, inst.imm.unwrap_or_default());
        let (larger, smaller) =
            ([ins::VPMAXUB, ins::VPMAXUW, ins::VPMAXUD], [ins::VPMINUB, ins::VPMINUW, ins::VPMINUD]);
        let (other, inverted) = match predicate {
            0 | 4 => (b, predicate == 4),
            1 | 5 => (self.bin(larger[at(size)], bytes, a, b), predicate == 1),
            _ => (self.bin(smaller[at(size)], bytes, a, b), predicate == 6),
        };
        let lanes = self.raw(EQ[at(size)], bytes, a, other);
        self.within(VectorMask { lanes, size, bytes, inverted }, inst.mask)
    }

    /// Quadwords with their top bits turned.
    fn turned_quads(&mut self, bytes: usize, [a, b, c]: [Reg; 3]) -> [Reg; 3] {
        let top = self.splat(8, 1 << 63);
        [self.bin(ins::VPXORD, bytes, a, top), self.bin(ins::VPXORD, bytes, b, top), c]
    }

    /// Whether `a & b` is not zero (`set`) or zero.
    fn test(&mut self, size: usize, bytes: usize, [a, b, _]: [Reg; 3], set: bool) -> Reg {
        let both = if a == b { a } else { self.bin(ins::VPANDD, bytes, a, b) };
        let zero = self.splat(4, 0);
        let lanes = self.raw(EQ[at(size)], bytes, both, zero);
        self.mask(VectorMask { lanes, size, bytes, inverted: set })
    }

    fn blend(&mut self, size: usize, bytes: usize, inst: Inst) -> Reg {
        let [no, yes, _] = inst.src;
        match self.mask_sized(inst.mask, Some(size)) {
            (lanes, false) => self.blend_lanes(bytes, lanes, no, yes),
            (lanes, true) => self.blend_lanes(bytes, lanes, yes, no),
        }
    }

    fn move_or_zero(&mut self, size: usize, bytes: usize, inst: Inst) -> Reg {
        match self.mask_sized(inst.mask, Some(size)) {
            (lanes, false) => self.bin(ins::VPANDD, bytes, lanes, inst.src[0]),
            (lanes, true) => self.bin(ins::VPANDND, bytes, lanes, inst.src[0]),
        }
    }

    /// Logic of masks; `None` if an operand is no mask.
    fn mask_logic(&mut self, instruction: Instruction, a: Reg, b: Reg) -> Option<Reg> {
        let first = *self.vector_masks.get(&a)?;
        if instruction == ins::KNOTQ {
            return Some(self.mask(VectorMask { inverted: !first.inverted, ..first }));
        }
        let second = *self.vector_masks.get(&b)?;
        // In the wider lanes: sign extension takes one instruction.
        let size = first.size.max(second.size);
        let bytes = size * (first.bytes / first.size).min(second.bytes / second.size);
        let ((a, a_not), (b, b_not)) = (self.mask_sized(a, Some(size)), self.mask_sized(b, Some(size)));
        let (lanes, inverted) = match instruction {
            ins::KANDQ => self.both(bytes, (a, a_not), (b, b_not)),
            ins::KANDNQ => self.both(bytes, (a, !a_not), (b, b_not)),
            ins::KORQ => {
                let (neither, not) = self.both(bytes, (a, !a_not), (b, !b_not));
                (neither, !not)
            }
            _ => (self.bin(ins::VPXORD, bytes, a, b), a_not ^ b_not ^ (instruction == ins::KXNORQ)),
        };
        Some(self.mask(VectorMask { lanes, size, bytes, inverted }))
    }

    /// The maximum or minimum of two numbers, with -0 below +0; unspecified if one is NaN.
    fn extreme(&mut self, single: bool, larger: bool, bytes: usize, [a, b]: [Reg; 2]) -> Reg {
        let (instruction, join) = match (single, larger) {
            (true, true) => (ins::VMAXPS, ins::VPANDD),
            (false, true) => (ins::VMAXPD, ins::VPANDD),
            (true, false) => (ins::VMINPS, ins::VPORD),
            (false, false) => (ins::VMINPD, ins::VPORD),
        };
        // Of zeros of different sign, each order of operands gives the other one; the sign bits are then combined.
        let (one, other) = (self.bin(instruction, bytes, a, b), self.bin(instruction, bytes, b, a));
        self.bin(join, bytes, one, other)
    }

    /// `VPTERNLOGD` with one of the truth tables that are used.
    fn ternary_logic(&mut self, table: u8, bytes: usize, [a, b, c]: [Reg; 3]) -> Option<Reg> {
        match table {
            // c ? a : b
            0xe4 => {
                let (yes, no) = (self.bin(ins::VPANDD, bytes, a, c), self.bin(ins::VPANDND, bytes, c, b));
                Some(self.bin(ins::VPORD, bytes, yes, no))
            }
            // a ^ (b & c)
            0x78 => {
                let flip = self.bin(ins::VPANDD, bytes, b, c);
                Some(self.bin(ins::VPXORD, bytes, a, flip))
            }
            _ => None,
        }
    }

    /// Doublewords: `a + more`, minus one where `a & bit` is zero.
    pub(super) fn add_rounding(&mut self, bytes: usize, a: Reg, more: Reg, bit: Reg) -> Reg {
        let (set, zero) = (self.bin(ins::VPANDD, bytes, a, bit), self.splat(4, 0));
        // All ones are -1.
        let less = self.raw(avx2::VPCMPEQD, bytes, set, zero);
        let sum = self.bin(ins::VPADDD, bytes, a, more);
        self.bin(ins::VPADDD, bytes, sum, less)
    }

    /// Doublewords below 2^16 as words.
    pub(super) fn words_of(&mut self, bytes: usize, a: Reg) -> Reg {
        match self.isa {
            Isa::Avx512 => self.un(ins::VPMOVDW, bytes, a),
            Isa::Avx2 if bytes > 16 => self.packed(avx2::VPACKUSDW, a),
            Isa::Avx2 => self.raw(avx2::VPACKUSDW, 16, a, a),
        }
    }

    /// Both halves of a vector packed into one half, in order.
    fn packed(&mut self, instruction: Instruction, a: Reg) -> Reg {
        let upper = self.raw_imm(avx2::VEXTRACTI128, 32, a, 1);
        self.raw(instruction, 16, a, upper)
    }

    /// The low `to` bytes of `n` lanes of `from` bytes.
    fn narrowed(&mut self, from: usize, to: usize, n: usize, a: Reg) -> Reg {
        // A shuffle within each half moves its bytes to their final positions and zeroes the others.
        let mut order = [0x80u8; 32];
        let half = 16 / from;
        for i in 0..n.min(32 / from) {
            for byte in 0..to {
                order[i / half * 16 + i * to + byte] = (i % half * from + byte) as u8;
            }
        }
        let mut quads = [0x8080_8080_8080_8080; 8];
        for (quad, bytes) in quads.iter_mut().zip(order.chunks_exact(8)) {
            *quad = bytes.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b));
        }
        let order = self.constant(quads);
        let moved = self.bin(ins::VPSHUFB, n * from, a, order);
        if n * from <= 16 {
            return moved;
        }
        let upper = self.raw_imm(avx2::VEXTRACTI128, 32, moved, 1);
        self.bin(ins::VPORD, 16, moved, upper)
    }

    fn saturated(&mut self, least: i64, most: i64, to: usize, bytes: usize, a: Reg) -> Reg {
        let (least, most) = (self.splat(4, least as u64), self.splat(4, most as u64));
        let up = self.bin(ins::VPMAXSD, bytes, a, least);
        let capped = self.bin(ins::VPMINSD, bytes, up, most);
        self.narrowed(4, to, bytes / 4, capped)
    }

    /// Doublewords as lanes of `to` bytes, the largest number of which is `most`.
    fn capped(&mut self, most: u64, to: usize, bytes: usize, a: Reg) -> Reg {
        let most = self.splat(4, most);
        let capped = self.bin(ins::VPMINUD, bytes, a, most);
        self.narrowed(4, to, bytes / 4, capped)
    }

    /// All ones in quadwords below zero, else zero.
    fn sign_lanes(&mut self, bytes: usize, a: Reg) -> Reg {
        let zero = self.splat(4, 0);
        self.raw(avx2::VPCMPGTQ, bytes, zero, a)
    }

    /// The low quadwords of products: the product of the low halves, plus those of each low half with the other high half.
    fn mul_quads(&mut self, bytes: usize, a: Reg, b: Reg) -> Reg {
        let (a_high, b_high) = (self.un_imm(ins::VPSRLQ, bytes, a, 32), self.un_imm(ins::VPSRLQ, bytes, b, 32));
        let (one, other) = (self.raw(avx2::VPMULUDQ, bytes, a_high, b), self.raw(avx2::VPMULUDQ, bytes, a, b_high));
        let crossed = self.bin(ins::VPADDQ, bytes, one, other);
        let crossed = self.un_imm(ins::VPSLLQ, bytes, crossed, 32);
        let low = self.raw(avx2::VPMULUDQ, bytes, a, b);
        self.bin(ins::VPADDQ, bytes, low, crossed)
    }

    /// Shifts of words by vectors of counts: even and odd words apart, in doublewords. Counts from 16 on shift a word out.
    fn shifted_words(&mut self, instruction: Instruction, bytes: usize, a: Reg, count: Reg) -> Reg {
        let (low, high) = (self.splat(4, 0xffff), self.splat(4, 0xffff_0000));
        let even_count = self.bin(ins::VPANDD, bytes, count, low);
        let odd_count = self.un_imm(ins::VPSRLD, bytes, count, 16);
        let (instruction, even_from, odd_from) = if instruction == ins::VPSRAVW {
            let up = self.un_imm(ins::VPSLLD, bytes, a, 16);
            (ins::VPSRAVD.on(Isa::Avx2), self.raw_imm(avx2::VPSRAD, bytes, up, 16), a)
        } else {
            let shift = if instruction == ins::VPSLLVW { ins::VPSLLVD } else { ins::VPSRLVD };
            let shift = shift.on(Isa::Avx2);
            (shift, self.bin(ins::VPANDD, bytes, a, low), self.bin(ins::VPANDD, bytes, a, high))
        };
        let even = self.raw(instruction, bytes, even_from, even_count);
        let even = self.bin(ins::VPANDD, bytes, even, low);
        let odd = self.raw(instruction, bytes, odd_from, odd_count);
        let odd = self.bin(ins::VPANDD, bytes, odd, high);
        self.bin(ins::VPORD, bytes, even, odd)
    }

    /// f64 of i64 or u64. `2^52 + low half` and `2^84 (+ 2^63 of i64) + high half·2^32` are exact as f64, their significands being
    /// these halves. The constants are subtracted from the latter exactly, and the sum of both rounds once.
    fn f64_of_quads(&mut self, signed: bool, bytes: usize, a: Reg) -> Reg {
        let (sign, both) = if signed { (0x8000_0000, 0x8010_0000) } else { (0, 0x0010_0000) };
        let constants =
            [0xffff_ffff, 0x4330_0000_0000_0000, 0x4530_0000_0000_0000 | sign, 0x4530_0000_0000_0000 | both];
        let [half, to_low, to_high, added] = constants.map(|c| self.splat(8, c));
        let low = self.bin(ins::VPANDD, bytes, a, half);
        let low = self.bin(ins::VPORD, bytes, low, to_low);
        let high = self.un_imm(ins::VPSRLQ, bytes, a, 32);
        let high = self.bin(ins::VPXORD, bytes, high, to_high);
        let high = self.bin(ins::VSUBPD, bytes, high, added);
        self.bin(ins::VADDPD, bytes, high, low)
    }

    /// f64 of u32: `2^52 + a`, less `2^52`.
    fn f64_of_u32(&mut self, bytes: usize, a: Reg) -> Reg {
        let added = self.splat(8, 0x4330_0000_0000_0000);
        let wide = self.un(ins::VPMOVZXDQ, bytes, a);
        let sum = self.bin(ins::VPORD, bytes, wide, added);
        self.bin(ins::VSUBPD, bytes, sum, added)
    }

    /// f32 of u32, as f64 of quadwords: `2^23 + low half` and `2^39 + high half·2^16` are exact.
    fn f32_of_u32(&mut self, bytes: usize, a: Reg) -> Reg {
        let [half, to_low, to_high, added] = [0xffff, 0x4b00_0000, 0x5300_0000, 0x5300_0080].map(|c| self.splat(4, c));
        let low = self.bin(ins::VPANDD, bytes, a, half);
        let low = self.bin(ins::VPORD, bytes, low, to_low);
        let high = self.un_imm(ins::VPSRLD, bytes, a, 16);
        let high = self.bin(ins::VPORD, bytes, high, to_high);
        let high = self.bin(ins::VSUBPS, bytes, high, added);
        self.bin(ins::VADDPS, bytes, high, low)
    }

    /// u32 of floats, truncated; the largest number from 2^32 on. Of negative numbers and NaNs the result is unspecified.
    fn u32_of_float(&mut self, single: bool, bytes: usize, a: Reg) -> Reg {
        // 2^31 and 2^32.
        let (size, bounds) =
            if single { (4, [0x4f00_0000, 0x4f80_0000]) } else { (8, [0x41e0_0000_0000_0000, 0x41f0_0000_0000_0000]) };
        let n = bytes / size;
        let [half, all] = bounds.map(|bits| self.splat(size, bits));
        let (compare, subtract, cut) = if single {
            (avx2::VCMPPS, ins::VSUBPS, ins::VCVTTPS2DQ)
        } else {
            (avx2::VCMPPD, ins::VSUBPD, ins::VCVTTPD2DQ)
        };
        // What is 2^31 at least is converted without it. The predicate is greater or equal.
        let at_least =
            |body: &mut Body, bound| body.push(Inst { imm: Some(0x1d), ..Inst::new(compare, bytes, [a, bound, NONE]) });
        let (large, beyond) = (at_least(self, half), at_least(self, all));
        let less = self.bin(ins::VPANDD, bytes, large, half);
        let rest = self.bin(subtract, bytes, a, less);
        let whole = self.un(cut, bytes, rest);
        let narrow = |body: &mut Body, lanes| if single { lanes } else { body.narrowed(8, 4, n, lanes) };
        let (large, beyond) = (narrow(self, large), narrow(self, beyond));
        let top = self.splat(4, 1 << 31);
        let bit = self.bin(ins::VPANDD, 4 * n, large, top);
        let sum = self.bin(ins::VPXORD, 4 * n, whole, bit);
        self.bin(ins::VPORD, 4 * n, sum, beyond)
    }

    /// A permutation of four quadwords.
    pub(super) fn permuted_quads(&mut self, a: Reg, order: [u64; 8]) -> Reg {
        let imm = (0..4).fold(0, |all, i| all | (order[i] as u8 & 3) << (2 * i));
        self.raw_imm(avx2::VPERMQ, 32, a, imm)
    }
}
