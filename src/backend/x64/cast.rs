//! All primitive conversions.
//!
//! Guarantees: the results of the block kernels in `kernels::cast`. Float to integer truncates, saturates, and converts
//! NaN to 0. A 16-bit float is rounded once, to nearest even, with subnormals (`vcvtneps2bf16` would flush them); from
//! a wider type by way of an f32 rounded to odd: truncated, with the last bit set if the conversion was inexact.

use super::instructions::{self as ins, Instruction};
use super::ir::Reg;
use super::isa::Isa;
use super::lower::{GE, GT, Lower, NE, ORDERED, Out, Real, UNORDERED};
use crate::base::dtype::DType::{self, *};
use crate::kernels::cast::Prim;
use crate::plan::kernel::ValueId;
use crate::ssa::Nan;

impl Lower<'_> {
    /// A conversion whose result is `out`.
    pub(super) fn convert(&mut self, p: Prim, a: Reg, nan: Nan, out: ValueId) -> Out {
        let n = self.lanes * if p.from.is_complex() && p.to.is_complex() { 2 } else { 1 };
        let (double, single) = (Real { size: 8, bytes: n * 8 }, Real { size: 4, bytes: n * 4 });
        // A conversion quiets a NaN and keeps the canonical one.
        let quiet = nan.max(Nan::Quiet);
        let done = |r| Out::Done(r, Nan::Any);
        // The result has no NaN.
        let number = |r| Out::Done(r, Nan::Canonical);
        let p = p.representative();
        match (p.from, p.to) {
            (from, to) if from == to => done(a),
            (_, Bool) => done(self.nonzero_lanes(p.from, a)),
            (Bool, to) => {
                let one = match to {
                    F32 => self.float(single, 1.0),
                    F64 => self.float(double, 1.0),
                    _ => self.body.splat(to.size(), 1),
                };
                number(self.body.select_or_zero(to.size(), n * to.size(), a, one))
            }
            (F32, F64) | (C64, C128) => Out::Raw(self.body.un(ins::VCVTPS2PD, n * 8, a), quiet),
            (F64, F32) | (C128, C64) => Out::Raw(self.body.un(ins::VCVTPD2PS, n * 8, a), quiet),
            (F16, F32) | (C32, C64) => Out::Raw(self.body.un(ins::VCVTPH2PS, n * 4, a), quiet),
            (BF16, F32) => {
                let r = self.f32_of_bf16(n, a);
                Out::Raw(self.mark_bf16_nans(r), nan)
            }
            (F8E5M2, F32) => {
                // The upper bytes of f16.
                let words = self.body.un(ins::VPMOVZXBW, n * 2, a);
                let half = self.body.un_imm(ins::VPSLLW, n * 2, words, 8);
                Out::Raw(self.body.un(ins::VCVTPH2PS, n * 4, half), quiet)
            }
            (F8E4M3FN, F32) => number(self.f32_of_e4m3(single, a)),
            (F8E4M3FN | F8E5M2, F16 | BF16) => number(self.half_of_byte(p.from, p.to, a)),
            (F32, F8E4M3FN | F8E5M2) => number(self.byte_float(single, p, a)),
            (F64, F8E4M3FN | F8E5M2) => {
                let odd = self.f32_rounded_to_odd(n, a);
                number(self.byte_float(single, p, odd))
            }
            (F32, F16) | (C64, C32) => self.f16(single, a, nan, out),
            (F64, F16) | (C128, C32) => {
                let odd = self.f32_rounded_to_odd(n, a);
                self.f16(single, odd, Nan::Quiet, out)
            }
            (F32, BF16) => self.bf16(single, a, nan, out),
            (F64, BF16) => {
                let odd = self.f32_rounded_to_odd(n, a);
                self.bf16(single, odd, Nan::Any, out)
            }
            (I64 | U64, BF16) => {
                let (there, back) = match p.from {
                    I64 => (ins::VCVTQQ2PD, ins::VCVTTPD2QQ),
                    _ => (ins::VCVTUQQ2PD, ins::VCVTTPD2UQQ),
                };
                let near = self.body.truncated(there, a);
                let back = self.body.un(back, n * 8, near);
                let inexact = self.body.bin_imm(ins::VPCMPQ, n * 8, back, a, 4);
                let last = self.body.splat(8, 1);
                let odd = self.body.or_masked(8, n * 8, inexact, near, last);
                let odd = self.f32_rounded_to_odd(n, odd);
                self.bf16(single, odd, Nan::Any, out)
            }
            // The bits of the parts are copied.
            (C32 | C64 | C128, _) => Out::Done(self.part(p.from, a, false), nan),
            (_, C32 | C64 | C128) => Out::Done(self.widened(p.to, a), nan),
            (I64, F32) => number(self.body.un(ins::VCVTQQ2PS, n * 8, a)),
            (I64, F64) => number(self.body.un(ins::VCVTQQ2PD, n * 8, a)),
            (U64, F32) => number(self.body.un(ins::VCVTUQQ2PS, n * 8, a)),
            (U64, F64) => number(self.body.un(ins::VCVTUQQ2PD, n * 8, a)),
            (U32, F32) => number(self.body.un(ins::VCVTUDQ2PS, n * 4, a)),
            (U32, F64) => number(self.body.un(ins::VCVTUDQ2PD, n * 8, a)),
            (from, F32) => {
                let wide = self.resized(n, from, 4, a);
                number(self.body.un(ins::VCVTDQ2PS, n * 4, wide))
            }
            (from, F64) => {
                let wide = self.resized(n, from, 4, a);
                number(self.body.un(ins::VCVTDQ2PD, n * 8, wide))
            }
            (F32 | F64, U32 | U64) => done(self.unsigned(n, p.from, p.to, a)),
            (F32 | F64, to) => done(self.integer(n, p.from, to, a)),
            (from, to) => done(self.resized(n, from, to.size(), a)),
        }
    }

    fn nonzero_lanes(&mut self, from: DType, a: Reg) -> Reg {
        if from.is_complex() {
            return self.complex_nonzero(from, a);
        }
        if from.is_float() {
            let x = self.real(from);
            let zero = self.float(x, 0.0);
            return self.compare(x, NE, a, zero);
        }
        self.nonzero(from.size(), self.lanes * from.size(), a)
    }

    /// Integers of dtype `from` in lanes of `size` bytes: extended by signedness, or truncated.
    fn resized(&mut self, n: usize, from: DType, size: usize, a: Reg) -> Reg {
        let bytes = n * from.size().max(size);
        let instruction: Instruction = match (from.size(), size) {
            (1, 2) if from.is_unsigned() => ins::VPMOVZXBW,
            (1, 4) if from.is_unsigned() => ins::VPMOVZXBD,
            (1, 8) if from.is_unsigned() => ins::VPMOVZXBQ,
            (2, 4) if from.is_unsigned() => ins::VPMOVZXWD,
            (2, 8) if from.is_unsigned() => ins::VPMOVZXWQ,
            (4, 8) if from.is_unsigned() => ins::VPMOVZXDQ,
            (1, 2) => ins::VPMOVSXBW,
            (1, 4) => ins::VPMOVSXBD,
            (1, 8) => ins::VPMOVSXBQ,
            (2, 4) => ins::VPMOVSXWD,
            (2, 8) => ins::VPMOVSXWQ,
            (4, 8) => ins::VPMOVSXDQ,
            (2, 1) => ins::VPMOVWB,
            (4, 1) => ins::VPMOVDB,
            (8, 1) => ins::VPMOVQB,
            (4, 2) => ins::VPMOVDW,
            (8, 2) => ins::VPMOVQW,
            (8, 4) => ins::VPMOVQD,
            _ => return a,
        };
        self.body.un(instruction, bytes, a)
    }

    /// Float to u32 or u64: truncates, saturates, converts NaN to 0.
    fn unsigned(&mut self, n: usize, from: DType, to: DType, a: Reg) -> Reg {
        let x = self.real(from);
        let instruction = match (from.size(), to.size()) {
            (4, 4) => ins::VCVTTPS2UDQ,
            (4, _) => ins::VCVTTPS2UQQ,
            (_, 4) => ins::VCVTTPD2UDQ,
            _ => ins::VCVTTPD2UQQ,
        };
        // The instruction gives the largest integer for values out of range. The maximum is zero of a NaN.
        let zero = self.float(x, 0.0);
        let positive = self.real_bin(x, [ins::VMAXPS, ins::VMAXPD], a, zero);
        self.body.un(instruction, n * from.size().max(to.size()), positive)
    }

    /// Float to another integer, as well.
    fn integer(&mut self, n: usize, from: DType, to: DType, a: Reg) -> Reg {
        let x = self.real(from);
        // Smaller integers by way of i32.
        let wide = to.size().max(4);
        let instruction = match (from.size(), wide) {
            (4, 4) => ins::VCVTTPS2DQ,
            (4, _) => ins::VCVTTPS2QQ,
            (_, 4) => ins::VCVTTPD2DQ,
            _ => ins::VCVTTPD2QQ,
        };
        let bytes = n * from.size().max(wide);
        // The instruction gives the least integer for values out of range, which is right below it.
        let cut = self.body.un(instruction, bytes, a);
        let bits = 8 * wide as u32 - 1;
        let limit = self.float(x, 2f64.powi(bits as i32));
        let above = self.compare(x, GE, a, limit);
        let most = self.body.splat(wide, (1 << bits) - 1);
        let capped = self.body.select(wide, n * wide, above, most, cut);
        let numbers = self.compare(x, ORDERED, a, a);
        let r = self.body.select_or_zero(wide, n * wide, numbers, capped);
        match to {
            I8 => self.body.un(ins::VPMOVSDB, n * 4, r),
            I16 => self.body.un(ins::VPMOVSDW, n * 4, r),
            U8 | U16 => {
                let zero = self.body.splat(4, 0);
                let positive = self.body.bin(ins::VPMAXSD, n * 4, r, zero);
                self.body.un(if to == U8 { ins::VPMOVUSDB } else { ins::VPMOVUSDW }, n * 4, positive)
            }
            _ => r,
        }
    }

    /// f64 to f32, rounded to odd: truncated, with the last bit set if inexact.
    fn f32_rounded_to_odd(&mut self, n: usize, a: Reg) -> Reg {
        let (double, last) = (Real { size: 8, bytes: n * 8 }, self.body.splat(4, 1));
        let near = match self.body.isa {
            Isa::Avx512 => self.body.truncated(ins::VCVTPD2PS, a),
            Isa::Avx2 => self.f32_truncated(n, a),
        };
        let back = self.body.un(ins::VCVTPS2PD, n * 8, near);
        let inexact = self.compare(double, NE, back, a);
        self.body.or_masked(4, n * 4, inexact, near, last)
    }

    /// f64 to f32 by truncation, without rounding control: to nearest, and one step back if that was away from zero.
    fn f32_truncated(&mut self, n: usize, a: Reg) -> Reg {
        let (double, last) = (Real { size: 8, bytes: n * 8 }, self.body.splat(4, 1));
        let near = self.body.un(ins::VCVTPD2PS, n * 8, a);
        let back = self.body.un(ins::VCVTPS2PD, n * 8, near);
        let (back, exact) = (self.magnitude(double, back), self.magnitude(double, a));
        let away = self.compare(double, GT, back, exact);
        let step = self.body.select_or_zero(4, n * 4, away, last);
        self.body.bin(ins::VPSUBD, n * 4, near, step)
    }

    fn f16(&mut self, x: Real, a: Reg, nan: Nan, out: ValueId) -> Out {
        // The canonical NaN of f32 converts to that of f16.
        let canonicalize = nan != Nan::Canonical && self.is_demanded(out);
        let from = if canonicalize { self.canonical(x, a, nan) } else { a };
        let known = if canonicalize { Nan::Canonical } else { nan.max(Nan::Quiet) };
        Out::Done(self.body.un_imm(ins::VCVTPS2PH, x.bytes, from, 0), known)
    }

    /// f32 of f8e4m3fn: with one more bit of exponent it is the upper byte of an f16, times the difference of the biases.
    fn f32_of_e4m3(&mut self, x: Real, a: Reg) -> Reg {
        let words = x.bytes / 2;
        let [exponent, others] = [self.body.splat(2, 0xbfff), self.body.splat(4, 0x7fff_ffff)];
        let (scale, all) = (self.float(x, 256.0), self.float(x, 480.0));
        let wide = self.body.un(ins::VPMOVZXBW, words, a);
        let up = self.body.un_imm(ins::VPSLLW, words, wide, 8);
        // Down again, and zero between the sign and the exponent.
        let down = self.body.un_imm(ins::VPSRAW, words, up, 1);
        let half = self.body.bin(ins::VPANDD, words, down, exponent);
        let single = self.body.un(ins::VCVTPH2PS, x.bytes, half);
        let number = self.mul(x, single, scale);
        // What would be 480 is NaN.
        let magnitude = self.body.bin(ins::VPANDD, x.bytes, number, others);
        let is_nan = self.body.bin_imm(ins::VPCMPD, x.bytes, magnitude, all, 0);
        let nan = self.float(x, f64::NAN);
        self.body.select(4, x.bytes, is_nan, nan, number)
    }

    /// A float of a byte as f16 or bf16, in 16-bit lanes: the exponent is rebiased, and the first eight magnitudes, which
    /// include the subnormal ones, are looked up.
    fn half_of_byte(&mut self, from: DType, to: DType, a: Reg) -> Reg {
        let (bytes, wider) = (self.lanes * 2, to.digits() - from.digits());
        let half = |code: u64| to.nearest_bits(from.value_of_bits(code));
        let constants =
            [1 << 15, half(8) - (8 << wider), from.infinity_bits() << wider, to.infinity_bits(), to.nan_bits()];
        let [sign, rebias, most, infinity, nan] = constants.map(|bits| self.body.splat(2, bits));
        let wide = self.body.un(ins::VPMOVZXBW, bytes, a);
        let up = self.body.un_imm(ins::VPSLLW, bytes, wide, 9);
        let magnitude = self.body.un_imm(ins::VPSRLW, bytes, up, 9 - wider as u8);
        let mut number = magnitude;
        // f8e5m2 is the upper half of f16.
        if half(8) != 8 << wider {
            let normal = self.body.bin(ins::VPADDW, bytes, magnitude, rebias);
            let first = self.first_eight(bytes, up, (0..8).map(half));
            let next = self.body.splat(2, 8 << wider);
            let is_first = self.body.bin_imm(ins::VPCMPW, bytes, magnitude, next, 1);
            number = self.body.select(2, bytes, is_first, first, normal);
            if from.has_infinity() {
                let is_infinite = self.body.bin_imm(ins::VPCMPW, bytes, magnitude, most, 0);
                number = self.body.select(2, bytes, is_infinite, infinity, number);
            }
        }
        let up = self.body.un_imm(ins::VPSLLW, bytes, wide, 8);
        let sign = self.body.bin(ins::VPANDD, bytes, up, sign);
        let number = self.body.bin(ins::VPORD, bytes, number, sign);
        let is_nan = self.body.bin_imm(ins::VPCMPW, bytes, magnitude, most, 6);
        self.body.select(2, bytes, is_nan, nan, number)
    }

    /// The words of a table of eight at the indices from 0 to 7 that are shifted left by 9 in `up`; unspecified at others.
    fn first_eight(&mut self, bytes: usize, up: Reg, table: impl Iterator<Item = u64>) -> Reg {
        let words: Vec<u64> = table.collect();
        let quad = |i: usize| words[i % 2 * 4..][..4].iter().rev().fold(0, |all, word| all << 16 | word);
        let table = self.body.constant(std::array::from_fn(quad));
        // The shuffle takes the bytes of a word apart: the low one at twice the index, the high one after it.
        let (down, one) = (self.body.un_imm(ins::VPSRLW, bytes, up, 8), self.body.splat(2, 1 << 8));
        let low = self.body.bin(ins::VPORD, bytes, up, down);
        let both = self.body.bin(ins::VPORD, bytes, low, one);
        self.body.bin(ins::VPSHUFB, bytes, table, both)
    }

    /// f32 to a float of a byte, as the kernel does: normal results by rounding off low bits, subnormal ones by an addition.
    fn byte_float(&mut self, x: Real, p: Prim, a: Reg) -> Reg {
        let fraction = p.to.digits() - 1;
        let (cut, bias) = (23 - fraction as u8, (1 << (6 - fraction)) - 1);
        let rebias = 127 - bias;
        let (nan, infinity) = (p.to.nan_bits(), p.to.infinity_bits());
        let most = if p.beyond_is_nan { nan } else { infinity };
        let constants = [
            0x7fff_ffff,
            0x80,
            1,
            // Less than half of the last place, and the exponents' difference.
            u64::from(((1u32 << (cut - 1)) - 1).wrapping_sub(rebias << 23)),
            u64::from((127 + 24 - bias - fraction) << 23),
            u64::from((rebias + 1) << 23),
            most,
            0x7f80_0000,
            nan,
        ];
        let [others, top, one, round, unit, normal_from, most, infinite, nan] =
            constants.map(|bits| self.body.splat(4, bits));
        let bits = self.body.bin(ins::VPANDD, x.bytes, a, others);
        let down = self.body.un_imm(ins::VPSRLD, x.bytes, a, 24);
        let sign = self.body.bin(ins::VPANDD, x.bytes, down, top);
        let kept = self.body.un_imm(ins::VPSRLD, x.bytes, bits, cut);
        let odd = self.body.bin(ins::VPANDD, x.bytes, kept, one);
        let sum = self.body.bin(ins::VPADDD, x.bytes, bits, round);
        let sum = self.body.bin(ins::VPADDD, x.bytes, sum, odd);
        let normal = self.body.un_imm(ins::VPSRLD, x.bytes, sum, cut);
        let sum = self.add(x, bits, unit);
        let subnormal = self.body.bin(ins::VPSUBD, x.bytes, sum, unit);
        let is_small = self.body.bin_imm(ins::VPCMPD, x.bytes, bits, normal_from, 1);
        let finite = self.body.select(4, x.bytes, is_small, subnormal, normal);
        let magnitude = self.body.bin(ins::VPMINSD, x.bytes, finite, most);
        let number = self.body.bin(ins::VPORD, x.bytes, magnitude, sign);
        let is_nan = self.body.bin_imm(ins::VPCMPD, x.bytes, bits, infinite, 6);
        let r = self.body.select(4, x.bytes, is_nan, nan, number);
        self.body.un(ins::VPMOVDB, x.bytes, r)
    }

    fn bf16(&mut self, x: Real, a: Reg, nan: Nan, out: ValueId) -> Out {
        // Half of the last kept place, minus one if that place is even, so that ties go to even.
        let (half, place) = (self.body.splat(4, 0x8000), self.body.splat(4, 0x1_0000));
        let mut wide = match self.body.isa {
            Isa::Avx512 => {
                let below = self.body.splat(4, 0x7fff);
                let odd = self.body.bin(ins::VPTESTMD, x.bytes, a, place);
                let more = self.body.select(4, x.bytes, odd, half, below);
                self.body.bin(ins::VPADDD, x.bytes, a, more)
            }
            Isa::Avx2 => self.body.add_rounding(x.bytes, a, half, place),
        };
        // The addition changes a NaN with bits in its lower half: it may carry into the exponent, or change the
        // payload.
        let canonicalize = self.is_demanded(out) || !self.has_bf16_nans(a);
        if canonicalize {
            let is_nan = self.compare(x, UNORDERED, a, a);
            let nan = self.float(x, f64::NAN);
            wide = self.body.select(4, x.bytes, is_nan, nan, wide);
        }
        let down = self.body.un_imm(ins::VPSRLD, x.bytes, wide, 16);
        let r = self.body.words_of(x.bytes, down);
        self.body.record_unrounded(r, wide);
        Out::Done(r, if canonicalize { Nan::Canonical } else { nan })
    }

    fn f32_of_bf16(&mut self, n: usize, a: Reg) -> Reg {
        // If it was rounded in this body, its bits are still in the upper halves.
        if let Some(wide) = self.body.unrounded(a) {
            let upper = self.body.splat(4, 0xffff_0000);
            return self.body.bin(ins::VPANDD, n * 4, wide, upper);
        }
        let wide = self.body.un(ins::VPMOVZXWD, n * 4, a);
        self.body.un_imm(ins::VPSLLD, n * 4, wide, 16)
    }
}
