//! AVX2's loops: what computes the same as an instruction of AVX-512 does.
//!
//! Most instructions exist in both, others become several. A truth value is a vector whose lanes have all bits set or
//! none; where that has lanes of another size than its use, it is resized, and where it says the opposite, its uses are
//! turned around instead of its bits. Guarantees: the same lanes as the instruction named, beyond the vector's bytes
//! anything. Does not: translate conversions between i64 and floats but that to f64 ([`super::lower::is_lowerable`] leaves them
//! to block kernels), nor the instructions that `math` and `cast` have other ways for.

use super::instructions::{self as f, Form, avx2 as g, length};
use super::ir::{Body, Def, NONE, Op, Reg, Truth};
use super::isa::Isa;

const EQ: [Form; 4] = [g::PCMPEQB, g::PCMPEQW, g::PCMPEQD, g::PCMPEQQ];
const GT: [Form; 4] = [g::PCMPGTB, g::PCMPGTW, g::PCMPGTD, g::PCMPGTQ];

/// The index of a lane size.
fn at(size: usize) -> usize {
    size.trailing_zeros() as usize % 4
}

impl Body {
    /// Writes what computes the same as `op` over a vector of so many bytes.
    pub(super) fn translated(&mut self, op: Op, bytes: usize) -> Reg {
        let bytes = bytes.min(Isa::Avx2.bytes());
        let op = Op { length: length(bytes), ..op };
        if let Some(form) = f::vex(op.form) {
            return self.put(Op { form, ..op });
        }
        let ([a, b, _], imm) = (op.src, op.imm.unwrap_or_default());
        match op.form {
            f::ADDED => self.put(op),
            f::RESCUE => {
                let mask = self.plain(op.mask, None);
                self.put(Op { mask, ..op })
            }
            f::CMPPS => self.compared(g::CMPPS, 4, bytes, op),
            f::CMPPD => self.compared(g::CMPPD, 8, bytes, op),
            f::PCMPB => self.ints_compared(1, bytes, op),
            f::PCMPW => self.ints_compared(2, bytes, op),
            f::PCMPD => self.ints_compared(4, bytes, op),
            f::PCMPQ => self.ints_compared(8, bytes, op),
            f::PCMPUB => self.bytes_compared(bytes, op),
            f::PTESTMB => self.tested(1, bytes, op.src, true),
            f::PTESTMW => self.tested(2, bytes, op.src, true),
            f::PTESTMD => self.tested(4, bytes, op.src, true),
            f::PTESTMQ => self.tested(8, bytes, op.src, true),
            f::PTESTNMB => self.tested(1, bytes, op.src, false),
            f::PTESTNMW => self.tested(2, bytes, op.src, false),
            f::PTESTNMD => self.tested(4, bytes, op.src, false),
            f::PTESTNMQ => self.tested(8, bytes, op.src, false),
            f::BLENDB => self.blended(1, bytes, op),
            f::BLENDW => self.blended(2, bytes, op),
            f::BLENDD => self.blended(4, bytes, op),
            f::BLENDQ => self.blended(8, bytes, op),
            f::MOVB => self.kept(1, bytes, op),
            f::MOVW => self.kept(2, bytes, op),
            f::MOVD => self.kept(4, bytes, op),
            f::MOVQ => self.kept(8, bytes, op),
            f::KAND | f::KANDN | f::KOR | f::KXOR | f::KXNOR | f::KNOT => self.logic(op.form, a, b),
            f::MASKD => self.plain(a, Some(4)),
            f::MASKQ => self.plain(a, Some(8)),
            f::Q2MASK => self.truth(Truth { lanes: a, size: 8, bytes, not: false }),
            f::RANGEPS | f::RANGEPD => self.extreme(op.form == f::RANGEPS, imm & 1 == 1, bytes, [a, b]),
            f::LOGICD => self.bit_logic(imm, bytes, op.src),
            f::CUTWB => self.narrowed(2, 1, bytes / 2, a),
            f::CUTDB => self.narrowed(4, 1, bytes / 4, a),
            f::CUTQB => self.narrowed(8, 1, bytes / 8, a),
            f::CUTDW => self.narrowed(4, 2, bytes / 4, a),
            f::CUTQW => self.narrowed(8, 2, bytes / 8, a),
            f::CUTQD => self.narrowed(8, 4, bytes / 8, a),
            f::SATDB => self.saturated(i8::MIN.into(), i8::MAX.into(), 1, bytes, a),
            f::SATDW => self.saturated(i16::MIN.into(), i16::MAX.into(), 2, bytes, a),
            f::SATUDB => {
                let most = self.lanes(4, u8::MAX.into());
                let capped = self.raw(g::PMINUD, bytes, a, most);
                self.narrowed(4, 1, bytes / 4, capped)
            }
            f::PMULLQ => self.product(bytes, a, b),
            f::PMAXSQ | f::PMINSQ => {
                let above = self.raw(g::PCMPGTQ, bytes, a, b);
                let [no, yes] = if op.form == f::PMAXSQ { [b, a] } else { [a, b] };
                self.chosen(bytes, above, no, yes)
            }
            f::PABSQ => {
                let signs = self.negative(bytes, a);
                let turned = self.bin(f::XOR, bytes, a, signs);
                self.bin(f::PSUBQ, bytes, turned, signs)
            }
            f::PSRAVQ => {
                // Shifted as what is not negative; by 64 and more, to zero.
                let signs = self.negative(bytes, a);
                let turned = self.bin(f::XOR, bytes, a, signs);
                let down = self.raw(g::PSRLVQ, bytes, turned, b);
                self.bin(f::XOR, bytes, down, signs)
            }
            f::PSLLVW | f::PSRLVW | f::PSRAVW => self.shifted_words(op.form, bytes, a, b),
            f::QQ2PD => self.double_of_i64(bytes, a),
            form => {
                self.missing = Some(form);
                a
            }
        }
    }

    fn raw(&mut self, form: Form, bytes: usize, a: Reg, b: Reg) -> Reg {
        self.put(Op::new(form, bytes, [a, b, NONE]))
    }

    fn raw_imm(&mut self, form: Form, bytes: usize, a: Reg, imm: u8) -> Reg {
        self.put(Op { imm: Some(imm), ..Op::new(form, bytes, [a, NONE, NONE]) })
    }

    /// `yes` where the lanes are set, else `no`.
    fn chosen(&mut self, bytes: usize, lanes: Reg, no: Reg, yes: Reg) -> Reg {
        self.put(Op { mask: lanes, ..Op::new(g::PBLENDVB, bytes, [no, yes, NONE]) })
    }

    /// A register that stands for a truth value.
    fn truth(&mut self, truth: Truth) -> Reg {
        let r = self.define(Def::Made, false);
        self.truths.insert(r, truth);
        r
    }

    /// The lanes of a truth value, made for elements of `size` bytes, and whether they say the opposite.
    fn sized(&mut self, mask: Reg, size: Option<usize>) -> (Reg, bool) {
        let Some(truth) = self.truths.get(&mask).copied() else { return (mask, false) };
        let size = size.unwrap_or(truth.size);
        if size == truth.size {
            return (truth.lanes, truth.not);
        }
        if let Some(known) = self.resized.get(&(truth.lanes, size)) {
            return (*known, truth.not);
        }
        let n = truth.bytes / truth.size;
        let wider = [[f::SXBW, f::SXBD, f::SXBQ], [f::SXWD, f::SXWD, f::SXWQ], [f::SXDQ; 3]];
        let lanes = match (truth.size, size) {
            (from, to) if from < to => self.un(wider[at(from)][at(to) - 1], n * to, truth.lanes),
            (4, 2) if truth.bytes > 16 => self.packed(g::PACKSSDW, truth.lanes),
            (2, 1) if truth.bytes > 16 => self.packed(g::PACKSSWB, truth.lanes),
            (from, to) => self.narrowed(from, to, n, truth.lanes),
        };
        self.resized.insert((truth.lanes, size), lanes);
        (lanes, truth.not)
    }

    /// A truth value as a vector.
    fn plain(&mut self, mask: Reg, size: Option<usize>) -> Reg {
        match self.sized(mask, size) {
            (lanes, false) => lanes,
            (lanes, true) => {
                let ones = self.lanes(8, u64::MAX);
                self.bin(f::XOR, 32, lanes, ones)
            }
        }
    }

    /// Where both vectors hold, each of which may say the opposite.
    fn both(&mut self, bytes: usize, (a, a_not): (Reg, bool), (b, b_not): (Reg, bool)) -> (Reg, bool) {
        match (a_not, b_not) {
            (false, false) => (self.bin(f::AND, bytes, a, b), false),
            (true, false) => (self.bin(f::ANDN, bytes, a, b), false),
            (false, true) => (self.bin(f::ANDN, bytes, b, a), false),
            (true, true) => (self.bin(f::OR, bytes, a, b), true),
        }
    }

    /// A truth value, and another one if there is one.
    fn within(&mut self, truth: Truth, mask: Reg) -> Reg {
        if mask == NONE {
            return self.truth(truth);
        }
        let other = self.sized(mask, Some(truth.size));
        let (lanes, not) = self.both(truth.bytes, (truth.lanes, truth.not), other);
        self.truth(Truth { lanes, not, ..truth })
    }

    fn compared(&mut self, form: Form, size: usize, bytes: usize, op: Op) -> Reg {
        let lanes = self.put(Op { form, mask: NONE, ..op });
        self.within(Truth { lanes, size, bytes, not: false }, op.mask)
    }

    /// Predicates 0 to 6: equal, less, at most, -, not equal, at least, more.
    fn ints_compared(&mut self, size: usize, bytes: usize, op: Op) -> Reg {
        let ([a, b, _], predicate) = (op.src, op.imm.unwrap_or_default());
        let (lanes, not) = match predicate {
            0 | 4 => (self.raw(EQ[at(size)], bytes, a, b), predicate == 4),
            1 | 5 => (self.raw(GT[at(size)], bytes, b, a), predicate == 5),
            _ => (self.raw(GT[at(size)], bytes, a, b), predicate == 2),
        };
        self.within(Truth { lanes, size, bytes, not }, op.mask)
    }

    /// As for signed integers, of unsigned bytes.
    fn bytes_compared(&mut self, bytes: usize, op: Op) -> Reg {
        let ([a, b, _], predicate) = (op.src, op.imm.unwrap_or_default());
        let (other, not) = match predicate {
            0 | 4 => (b, predicate == 4),
            1 | 5 => (self.bin(f::PMAXUB, bytes, a, b), predicate == 1),
            _ => (self.bin(f::PMINUB, bytes, a, b), predicate == 6),
        };
        let lanes = self.raw(g::PCMPEQB, bytes, a, other);
        self.within(Truth { lanes, size: 1, bytes, not }, op.mask)
    }

    /// Where a bit is set in both.
    fn tested(&mut self, size: usize, bytes: usize, [a, b, _]: [Reg; 3], set: bool) -> Reg {
        let both = if a == b { a } else { self.bin(f::AND, bytes, a, b) };
        let zero = self.lanes(4, 0);
        let lanes = self.raw(EQ[at(size)], bytes, both, zero);
        self.truth(Truth { lanes, size, bytes, not: set })
    }

    fn blended(&mut self, size: usize, bytes: usize, op: Op) -> Reg {
        let [no, yes, _] = op.src;
        match self.sized(op.mask, Some(size)) {
            (lanes, false) => self.chosen(bytes, lanes, no, yes),
            (lanes, true) => self.chosen(bytes, lanes, yes, no),
        }
    }

    fn kept(&mut self, size: usize, bytes: usize, op: Op) -> Reg {
        match self.sized(op.mask, Some(size)) {
            (lanes, false) => self.bin(f::AND, bytes, lanes, op.src[0]),
            (lanes, true) => self.bin(f::ANDN, bytes, lanes, op.src[0]),
        }
    }

    fn logic(&mut self, form: Form, a: Reg, b: Reg) -> Reg {
        let known = |of: &Self, r: Reg| of.truths.get(&r).copied();
        let (first, second) = match (known(self, a), known(self, b)) {
            (Some(only), _) if form == f::KNOT => return self.truth(Truth { not: !only.not, ..only }),
            (Some(first), Some(second)) => (first, second),
            _ => {
                self.missing = Some(form);
                return a;
            }
        };
        // The wider lanes: to widen is one instruction.
        let size = first.size.max(second.size);
        let bytes = size * (first.bytes / first.size).min(second.bytes / second.size);
        let ((a, a_not), (b, b_not)) = (self.sized(a, Some(size)), self.sized(b, Some(size)));
        let (lanes, not) = match form {
            f::KAND => self.both(bytes, (a, a_not), (b, b_not)),
            f::KANDN => self.both(bytes, (a, !a_not), (b, b_not)),
            f::KOR => {
                let (neither, not) = self.both(bytes, (a, !a_not), (b, !b_not));
                (neither, !not)
            }
            _ => (self.bin(f::XOR, bytes, a, b), a_not ^ b_not ^ (form == f::KXNOR)),
        };
        self.truth(Truth { lanes, size, bytes, not })
    }

    /// The larger or the smaller of two numbers, -0 below +0; anything if one is NaN.
    fn extreme(&mut self, single: bool, larger: bool, bytes: usize, [a, b]: [Reg; 2]) -> Reg {
        let (form, join) = match (single, larger) {
            (true, true) => (f::MAXPS, f::AND),
            (false, true) => (f::MAXPD, f::AND),
            (true, false) => (f::MINPS, f::OR),
            (false, false) => (f::MINPD, f::OR),
        };
        // Of equal numbers, each way gives another one: they differ in the sign of zero at most.
        let (one, other) = (self.bin(form, bytes, a, b), self.bin(form, bytes, b, a));
        self.bin(join, bytes, one, other)
    }

    /// The logic of three vectors that [`f::LOGICD`] has a number for.
    fn bit_logic(&mut self, number: u8, bytes: usize, [a, b, c]: [Reg; 3]) -> Reg {
        match number {
            // The first where the third is set, else the second.
            0xe4 => {
                let (yes, no) = (self.bin(f::AND, bytes, a, c), self.bin(f::ANDN, bytes, c, b));
                self.bin(f::OR, bytes, yes, no)
            }
            // The first, turned where both others are set.
            0x78 => {
                let turn = self.bin(f::AND, bytes, b, c);
                self.bin(f::XOR, bytes, a, turn)
            }
            _ => {
                self.missing = Some(f::LOGICD);
                a
            }
        }
    }

    /// Doublewords `a + more`, less one where `a` has no bit of `place`.
    pub(super) fn added_less_one(&mut self, bytes: usize, a: Reg, more: Reg, place: Reg) -> Reg {
        let (set, zero) = (self.bin(f::AND, bytes, a, place), self.lanes(4, 0));
        // All bits set are -1.
        let less = self.raw(g::PCMPEQD, bytes, set, zero);
        let sum = self.bin(f::PADDD, bytes, a, more);
        self.bin(f::PADDD, bytes, sum, less)
    }

    /// Doublewords below 2^16 as words.
    pub(super) fn words_of(&mut self, bytes: usize, a: Reg) -> Reg {
        match self.isa {
            Isa::Avx512 => self.un(f::CUTDW, bytes, a),
            Isa::Avx2 if bytes > 16 => self.packed(g::PACKUSDW, a),
            Isa::Avx2 => self.raw(g::PACKUSDW, 16, a, a),
        }
    }

    /// Two halves packed into one, in order.
    fn packed(&mut self, form: Form, a: Reg) -> Reg {
        let upper = self.raw_imm(g::UPPER, 32, a, 1);
        self.raw(form, 16, a, upper)
    }

    /// The low `to` bytes of `n` lanes of `from` bytes.
    fn narrowed(&mut self, from: usize, to: usize, n: usize, a: Reg) -> Reg {
        // Each half has its bytes moved to where they are in the end, and zeros elsewhere.
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
        let order = self.vector(quads);
        let moved = self.raw(g::PSHUFB, n * from, a, order);
        if n * from <= 16 {
            return moved;
        }
        let upper = self.raw_imm(g::UPPER, 32, moved, 1);
        self.bin(f::OR, 16, moved, upper)
    }

    fn saturated(&mut self, least: i64, most: i64, to: usize, bytes: usize, a: Reg) -> Reg {
        let (least, most) = (self.lanes(4, least as u64), self.lanes(4, most as u64));
        let up = self.bin(f::PMAXSD, bytes, a, least);
        let capped = self.bin(f::PMINSD, bytes, up, most);
        self.narrowed(4, to, bytes / 4, capped)
    }

    /// All bits of quadwords below zero.
    fn negative(&mut self, bytes: usize, a: Reg) -> Reg {
        let zero = self.lanes(4, 0);
        self.raw(g::PCMPGTQ, bytes, zero, a)
    }

    /// The low quadwords of products: of both low halves, and of each with the other's high half.
    fn product(&mut self, bytes: usize, a: Reg, b: Reg) -> Reg {
        let (a_high, b_high) = (self.un_imm(f::PSRLQ, bytes, a, 32), self.un_imm(f::PSRLQ, bytes, b, 32));
        let (one, other) = (self.raw(g::PMULUDQ, bytes, a_high, b), self.raw(g::PMULUDQ, bytes, a, b_high));
        let crossed = self.bin(f::PADDQ, bytes, one, other);
        let crossed = self.un_imm(f::PSLLQ, bytes, crossed, 32);
        let low = self.raw(g::PMULUDQ, bytes, a, b);
        self.bin(f::PADDQ, bytes, low, crossed)
    }

    /// Shifts of words: of the even and the odd ones, in doublewords. Counts from 16 on move a word out of its half.
    fn shifted_words(&mut self, form: Form, bytes: usize, a: Reg, count: Reg) -> Reg {
        let (low, high) = (self.lanes(4, 0xffff), self.lanes(4, 0xffff_0000));
        let even_count = self.bin(f::AND, bytes, count, low);
        let odd_count = self.un_imm(f::PSRLD, bytes, count, 16);
        let (form, even_from, odd_from) = if form == f::PSRAVW {
            let up = self.un_imm(f::PSLLD, bytes, a, 16);
            (f::vex(f::PSRAVD), self.raw_imm(g::PSRAD, bytes, up, 16), a)
        } else {
            let shift = if form == f::PSLLVW { f::vex(f::PSLLVD) } else { Some(g::PSRLVD) };
            (shift, self.bin(f::AND, bytes, a, low), self.bin(f::AND, bytes, a, high))
        };
        let form = form.unwrap_or(g::PSRLVD);
        let even = self.raw(form, bytes, even_from, even_count);
        let even = self.bin(f::AND, bytes, even, low);
        let odd = self.raw(form, bytes, odd_from, odd_count);
        let odd = self.bin(f::AND, bytes, odd, high);
        self.bin(f::OR, bytes, even, odd)
    }

    /// `2^52 + low half` and `2^84 + 2^63 + high half·2^32` are doubles with these halves in their significands; what is
    /// added to them is taken away from the latter, exactly, and their sum is rounded once.
    fn double_of_i64(&mut self, bytes: usize, a: Reg) -> Reg {
        let constants = [0xffff_ffff, 0x4330_0000_0000_0000, 0x4530_0000_8000_0000, 0x4530_0000_8010_0000];
        let [half, to_low, to_high, added] = constants.map(|c| self.lanes(8, c));
        let low = self.bin(f::AND, bytes, a, half);
        let low = self.bin(f::OR, bytes, low, to_low);
        let high = self.un_imm(f::PSRLQ, bytes, a, 32);
        let high = self.bin(f::XOR, bytes, high, to_high);
        let high = self.bin(f::SUBPD, bytes, high, added);
        self.bin(f::ADDPD, bytes, high, low)
    }

    /// The first four quadwords of a vector in another order.
    pub(super) fn quads_ordered(&mut self, a: Reg, order: [u64; 8]) -> Reg {
        let imm = (0..4).fold(0, |all, i| all | (order[i] as u8 & 3) << (2 * i));
        self.raw_imm(g::PERMQ, 32, a, imm)
    }
}
