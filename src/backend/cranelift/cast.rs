//! Lowering of primitive conversions.
//!
//! Lowered are widening and wrapping conversions between integers, small integers and bool to floats, f32 from and to
//! f64, bf16 to f32, and conversions to bool. Block kernels serve the rest: to f16 and bf16, from f16, float to
//! integer, i64 to float, most complex ones.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value as Clif, types};

use super::emit::{Lanes, vector};
use super::parts::Parts;
use crate::backend::cranelift::emit::Emit;
use crate::base::dtype::DType::{self, *};
use crate::kernels::cast::Prim;

/// Whether a conversion is lowered into a segment.
pub(in crate::backend) fn is_lowerable(p: Prim) -> bool {
    // The integers that fit a signed lane of four bytes.
    let small = |d: DType| d.is_integral() && d.digits() <= I32.digits();
    match (p.from, p.to) {
        (F32, F64) | (F64, F32) | (BF16, F32) | (C64, C128) | (C128, C64) => true,
        (from, Bool) => from.is_integral() || matches!(from, F32 | F64),
        (from, F32 | F64) => small(from),
        (from, to) => from.is_integral() && to.is_integral(),
    }
}

impl Emit<'_, '_> {
    /// A conversion that [`is_lowerable`] accepts.
    pub(in crate::backend) fn convert(&mut self, p: Prim, a: &Lanes) -> Lanes {
        match (p.from, p.to) {
            (_, Bool) => self.nonzero_lanes(p.from, a),
            (Bool, to) => {
                let one = match to {
                    F32 => self.float(types::F32X4, 1.0),
                    F64 => self.float(types::F64X2, 1.0),
                    _ => {
                        let each = u64::MAX / (u64::MAX >> (64 - 8 * to.size()));
                        self.constant(vector(to), each)
                    }
                };
                let mask = self.mask(a, to.size());
                Lanes::data(mask.map(|m| self.masked(m, one)))
            }
            (F32, F64) | (C64, C128) => Lanes::arithmetic(a.parts.widened(|p| self.promote(p))),
            (F64, F32) | (C128, C64) => Lanes::arithmetic(a.parts.narrowed(|low, high| self.demote(low, high))),
            (BF16, F32) => Lanes::arithmetic(a.parts.widened(|p| self.bf16(p))),
            (from, F32) => {
                let wide = self.resized(&a.parts, from, 4);
                Lanes::data(wide.map(|p| self.b.ins().fcvt_from_sint(types::F32X4, p)))
            }
            (from, F64) => {
                let wide = self.resized(&a.parts, from, 4);
                Lanes::data(wide.widened(|p| self.doubles(p)))
            }
            (from, to) => Lanes::data(self.resized(&a.parts, from, to.size())),
        }
    }

    fn masked(&mut self, mask: Clif, value: Clif) -> Clif {
        let ty = self.b.func.dfg.value_type(value);
        let int = self.b.func.dfg.value_type(mask);
        let bits = self.bits(value, int);
        let kept = self.b.ins().band(mask, bits);
        self.bits(kept, ty)
    }

    fn nonzero_lanes(&mut self, from: DType, a: &Lanes) -> Lanes {
        let ty = vector(from);
        let parts = if from.is_float() {
            let zero = self.float(ty, 0.0);
            a.parts.map(|a| self.b.ins().fcmp(FloatCC::NotEqual, a, zero))
        } else {
            let zero = self.constant(ty, 0);
            a.parts.map(|a| self.b.ins().icmp(IntCC::NotEqual, a, zero))
        };
        Lanes::mask(from.size(), parts)
    }

    /// Integers of dtype `from` in lanes of `size` bytes: extended by signedness, or truncated.
    fn resized(&mut self, parts: &Parts, from: DType, size: usize) -> Parts {
        let (mut parts, mut now) = (parts.clone(), from.size());
        while now < size {
            parts = parts.widened(|p| {
                if from.is_unsigned() {
                    [self.b.ins().uwiden_low(p), self.b.ins().uwiden_high(p)]
                } else {
                    [self.b.ins().swiden_low(p), self.b.ins().swiden_high(p)]
                }
            });
            now *= 2;
        }
        while now > size {
            parts = parts.narrowed(|a, b| self.narrow(a, b, now));
            now /= 2;
        }
        parts
    }

    /// The upper two lanes of an f32x4 or i32x4, moved down.
    fn upper(&mut self, p: Clif) -> Clif {
        let ty = self.b.func.dfg.value_type(p);
        let moved = self.shuffle(p, p, [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]);
        self.bits(moved, ty)
    }

    fn promote(&mut self, p: Clif) -> [Clif; 2] {
        let high = self.upper(p);
        [self.b.ins().fvpromote_low(p), self.b.ins().fvpromote_low(high)]
    }

    fn doubles(&mut self, p: Clif) -> [Clif; 2] {
        let high = self.upper(p);
        [p, high].map(|p| {
            let wide = self.b.ins().swiden_low(p);
            self.b.ins().fcvt_from_sint(types::F64X2, wide)
        })
    }

    fn demote(&mut self, a: Clif, b: Clif) -> Clif {
        let (low, high) = (self.b.ins().fvdemote(a), self.b.ins().fvdemote(b));
        let joined = self.shuffle(low, high, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]);
        self.bits(joined, types::F32X4)
    }

    /// Eight bf16 as two vectors of f32: the bits moved to the upper half.
    fn bf16(&mut self, p: Clif) -> [Clif; 2] {
        let wide = [self.b.ins().uwiden_low(p), self.b.ins().uwiden_high(p)];
        wide.map(|w| {
            let up = self.b.ins().ishl_imm_u(w, 16);
            self.bits(up, types::F32X4)
        })
    }
}
