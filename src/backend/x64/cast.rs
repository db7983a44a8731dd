//! Primitive conversions: all of them.
//!
//! Guarantees: those of the block conversions. Float to integer saturates and takes NaN to 0; a half type is rounded
//! once, to nearest even, with subnormals (so not by `vcvtneps2bf16`, which flushes them), from a wider type through an
//! f32 that was truncated with its last bit set if anything was cut off.

use super::instructions::{self as f, Form};
use super::ir::Reg;
use super::isa::Isa;
use super::lower::{GE, GT, Lower, NE, Nan, ORDERED, Out, Real, UNORDERED};
use crate::base::dtype::DType::{self, *};
use crate::kernels::cast::Prim;
use crate::plan::kernel::ValueId;

impl Lower<'_> {
    /// A conversion whose result is `out`.
    pub(super) fn convert(&mut self, p: Prim, a: Reg, nan: Nan, out: ValueId) -> Out {
        let n = self.lanes * if p.from.is_complex() && p.to.is_complex() { 2 } else { 1 };
        let (double, single) = (Real { size: 8, bytes: n * 8 }, Real { size: 4, bytes: n * 4 });
        // A conversion makes a NaN quiet and keeps the canonical one.
        let quiet = nan.max(Nan::Quiet);
        let done = |r| Out::Done(r, Nan::Any);
        // There is no NaN that could be another one.
        let number = |r| Out::Done(r, Nan::Canonical);
        match (p.from, p.to) {
            (_, Bool) => done(self.truth_of(p.from, a)),
            (Bool, to) => {
                let one = match to {
                    F32 => self.float(single, 1.0),
                    F64 => self.float(double, 1.0),
                    _ => self.body.lanes(to.size(), 1),
                };
                number(self.body.keep(to.size(), n * to.size(), a, one))
            }
            (F32, F64) | (C64, C128) => Out::Raw(self.body.un(f::PS2PD, n * 8, a), quiet),
            (F64, F32) | (C128, C64) => Out::Raw(self.body.un(f::PD2PS, n * 8, a), quiet),
            (F16, F32) | (C32, C64) => Out::Raw(self.body.un(f::PH2PS, n * 4, a), quiet),
            (BF16, F32) => {
                let r = self.single_of_bf16(n, a);
                Out::Raw(self.short(r), nan)
            }
            (F32, F16) | (C64, C32) => self.f16(single, a, nan, out),
            (F64, F16) | (C128, C32) => {
                let odd = self.odd_single(n, a);
                self.f16(single, odd, Nan::Quiet, out)
            }
            (F32, BF16) => self.bf16(single, a, nan, out),
            (F64, BF16) => {
                let odd = self.odd_single(n, a);
                self.bf16(single, odd, Nan::Any, out)
            }
            (I64, BF16) => {
                let near = self.body.truncated(f::QQ2PD, a);
                let back = self.body.un(f::PD2QQ, n * 8, near);
                let inexact = self.body.bin_imm(f::PCMPQ, n * 8, back, a, 4);
                let last = self.body.lanes(8, 1);
                let odd = self.body.or_where(8, n * 8, inexact, near, last);
                let odd = self.odd_single(n, odd);
                self.bf16(single, odd, Nan::Any, out)
            }
            // Parts move as they are.
            (C32 | C64 | C128, _) => Out::Done(self.part(p.from, a, false), nan),
            (_, C32 | C64 | C128) => Out::Done(self.widened(p.to, a), nan),
            (I64, F32) => number(self.body.un(f::QQ2PS, n * 8, a)),
            (I64, F64) => number(self.body.un(f::QQ2PD, n * 8, a)),
            (from, F32) => {
                let wide = self.resized(n, from, 4, a);
                number(self.body.un(f::DQ2PS, n * 4, wide))
            }
            (from, F64) => {
                let wide = self.resized(n, from, 4, a);
                number(self.body.un(f::DQ2PD, n * 8, wide))
            }
            (F32 | F64, to) => done(self.integer(n, p.from, to, a)),
            (from, to) => done(self.resized(n, from, to.size(), a)),
        }
    }

    fn truth_of(&mut self, from: DType, a: Reg) -> Reg {
        if from.is_complex() {
            return self.complex_truth(from, a);
        }
        if from.is_float() {
            let x = self.real(from);
            let zero = self.float(x, 0.0);
            return self.compare(x, NE, a, zero);
        }
        self.nonzero(from.size(), self.lanes * from.size(), a)
    }

    /// Integers of dtype `from` in lanes of `size` bytes: extended by their sign, or cut.
    fn resized(&mut self, n: usize, from: DType, size: usize, a: Reg) -> Reg {
        let bytes = n * from.size().max(size);
        let form: Form = match (from.size(), size) {
            (1, 2) if from.is_unsigned() => f::ZXBW,
            (1, 4) if from.is_unsigned() => f::ZXBD,
            (1, 8) if from.is_unsigned() => f::ZXBQ,
            (1, 2) => f::SXBW,
            (1, 4) => f::SXBD,
            (1, 8) => f::SXBQ,
            (2, 4) => f::SXWD,
            (2, 8) => f::SXWQ,
            (4, 8) => f::SXDQ,
            (2, 1) => f::CUTWB,
            (4, 1) => f::CUTDB,
            (8, 1) => f::CUTQB,
            (4, 2) => f::CUTDW,
            (8, 2) => f::CUTQW,
            (8, 4) => f::CUTQD,
            _ => return a,
        };
        self.body.un(form, bytes, a)
    }

    /// Truncates, saturates, and takes NaN to 0.
    fn integer(&mut self, n: usize, from: DType, to: DType, a: Reg) -> Reg {
        let x = self.real(from);
        // Smaller integers go by i32.
        let wide = to.size().max(4);
        let form = match (from.size(), wide) {
            (4, 4) => f::PS2DQ,
            (4, _) => f::PS2QQ,
            (_, 4) => f::PD2DQ,
            _ => f::PD2QQ,
        };
        let bytes = n * from.size().max(wide);
        // What is out of range becomes the least integer: right below the range.
        let cut = self.body.un(form, bytes, a);
        let bits = 8 * wide as u32 - 1;
        let limit = self.float(x, 2f64.powi(bits as i32));
        let above = self.compare(x, GE, a, limit);
        let most = self.body.lanes(wide, (1 << bits) - 1);
        let capped = self.body.choose(wide, n * wide, above, most, cut);
        let numbers = self.compare(x, ORDERED, a, a);
        let r = self.body.keep(wide, n * wide, numbers, capped);
        match to {
            I8 => self.body.un(f::SATDB, n * 4, r),
            I16 => self.body.un(f::SATDW, n * 4, r),
            U8 => {
                let zero = self.body.lanes(4, 0);
                let positive = self.body.bin(f::PMAXSD, n * 4, r, zero);
                self.body.un(f::SATUDB, n * 4, positive)
            }
            _ => r,
        }
    }

    /// f64 to f32 by truncation, with the last bit set if anything was cut off.
    fn odd_single(&mut self, n: usize, a: Reg) -> Reg {
        let (double, last) = (Real { size: 8, bytes: n * 8 }, self.body.lanes(4, 1));
        let near = match self.body.isa {
            Isa::Avx512 => self.body.truncated(f::PD2PS, a),
            Isa::Avx2 => self.truncated_single(n, a),
        };
        let back = self.body.un(f::PS2PD, n * 8, near);
        let inexact = self.compare(double, NE, back, a);
        self.body.or_where(4, n * 4, inexact, near, last)
    }

    /// f64 to f32 by truncation: to nearest, and back if that was away from zero.
    fn truncated_single(&mut self, n: usize, a: Reg) -> Reg {
        let (double, last) = (Real { size: 8, bytes: n * 8 }, self.body.lanes(4, 1));
        let near = self.body.un(f::PD2PS, n * 8, a);
        let back = self.body.un(f::PS2PD, n * 8, near);
        let (back, exact) = (self.magnitude(double, back), self.magnitude(double, a));
        let away = self.compare(double, GT, back, exact);
        let step = self.body.keep(4, n * 4, away, last);
        self.body.bin(f::PSUBD, n * 4, near, step)
    }

    fn f16(&mut self, x: Real, a: Reg, nan: Nan, out: ValueId) -> Out {
        // The canonical NaN becomes the canonical one.
        let settle = nan != Nan::Canonical && self.seen(out);
        let from = if settle { self.canonical(x, a, nan) } else { a };
        let known = if settle { Nan::Canonical } else { nan.max(Nan::Quiet) };
        Out::Done(self.body.un_imm(f::PS2PH, x.bytes, from, 0), known)
    }

    fn bf16(&mut self, x: Real, a: Reg, nan: Nan, out: ValueId) -> Out {
        // Half of the last place that is kept, less one if that place is even: ties go to even.
        let (half, place) = (self.body.lanes(4, 0x8000), self.body.lanes(4, 0x1_0000));
        let mut wide = match self.body.isa {
            Isa::Avx512 => {
                let below = self.body.lanes(4, 0x7fff);
                let odd = self.body.bin(f::PTESTMD, x.bytes, a, place);
                let more = self.body.choose(4, x.bytes, odd, half, below);
                self.body.bin(f::PADDD, x.bytes, a, more)
            }
            Isa::Avx2 => self.body.added_less_one(x.bytes, a, half, place),
        };
        // The sum carries a NaN out of its payload, or up to another, unless nothing stands in the lower half.
        let settle = self.seen(out) || !self.is_short(a);
        if settle {
            let is_nan = self.compare(x, UNORDERED, a, a);
            let nan = self.float(x, f64::NAN);
            wide = self.body.choose(4, x.bytes, is_nan, nan, wide);
        }
        let down = self.body.un_imm(f::PSRLD, x.bytes, wide, 16);
        let r = self.body.words_of(x.bytes, down);
        self.body.remember_wide(r, wide);
        Out::Done(r, if settle { Nan::Canonical } else { nan })
    }

    fn single_of_bf16(&mut self, n: usize, a: Reg) -> Reg {
        // If it was rounded here, its bits are still in their place.
        if let Some(wide) = self.body.wide(a) {
            let upper = self.body.lanes(4, 0xffff_0000);
            return self.body.bin(f::AND, n * 4, wide, upper);
        }
        let wide = self.body.un(f::ZXWD, n * 4, a);
        self.body.un_imm(f::PSLLD, n * 4, wide, 16)
    }
}
