//! Instructions on vectors of f32 and f64 that several primitives and conversions are made of.
//!
//! Guarantees: each operation rounds to its dtype, nothing is contracted. Does not: know ops or primitives.

use super::instructions::{self as ins, Instruction};
use super::ir::{Constant, Reg};
use super::isa::Isa;
use super::lower::{Lower, Real, UNORDERED};
use crate::ssa::Nan;

impl Lower<'_> {
    /// A float constant in every lane; the NaN is the canonical one.
    pub(super) fn float(&mut self, x: Real, value: f64) -> Reg {
        let narrow = if value.is_nan() { f32::NAN } else { value as f32 };
        let bits = if x.size == 4 { u64::from(narrow.to_bits()) } else { value.to_bits() };
        self.body.splat(x.size, bits)
    }

    /// The sign bit of every lane, or all the others.
    pub(super) fn sign_bits(&mut self, x: Real, others: bool) -> Reg {
        let sign = 1u64 << (8 * x.size - 1);
        self.body.splat(x.size, if others { !sign } else { sign })
    }

    /// The instruction for f32 or f64.
    pub(super) fn real_bin(&mut self, x: Real, instructions: [Instruction; 2], a: Reg, b: Reg) -> Reg {
        self.body.bin(instructions[x.size / 8], x.bytes, a, b)
    }

    pub(super) fn compare(&mut self, x: Real, predicate: u8, a: Reg, b: Reg) -> Reg {
        self.body.bin_imm([ins::VCMPPS, ins::VCMPPD][x.size / 8], x.bytes, a, b, predicate)
    }

    pub(super) fn sub(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [ins::VSUBPS, ins::VSUBPD], a, b)
    }

    pub(super) fn add(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [ins::VADDPS, ins::VADDPD], a, b)
    }

    pub(super) fn mul(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [ins::VMULPS, ins::VMULPD], a, b)
    }

    pub(super) fn magnitude(&mut self, x: Real, a: Reg) -> Reg {
        let rest = self.sign_bits(x, true);
        self.body.bin(ins::VPANDD, x.bytes, a, rest)
    }

    /// IEEE 754-2019 `maximum` and `minimum`.
    pub(super) fn extreme(&mut self, x: Real, predicate: u8, a: Reg, b: Reg) -> Reg {
        let better = self.body.bin_imm([ins::VRANGEPS, ins::VRANGEPD][x.size / 8], x.bytes, a, b, predicate);
        let either = self.compare(x, UNORDERED, a, b);
        let nan = self.float(x, f64::NAN);
        self.body.select(x.size, x.bytes, either, nan, better)
    }

    /// The maximum or minimum, or the other operand if one is NaN.
    pub(super) fn extreme_number(&mut self, x: Real, predicate: u8, (a, na): (Reg, Nan), (b, nb): (Reg, Nan)) -> Reg {
        let mut r = self.body.bin_imm([ins::VRANGEPS, ins::VRANGEPD][x.size / 8], x.bytes, a, b, predicate);
        // The instruction ignores quiet NaNs only; its AVX2 expansion ignores none.
        for (this, other, nan) in [(a, b, na), (b, a, nb)] {
            if nan == Nan::Any || self.body.isa == Isa::Avx2 {
                let missing = self.compare(x, UNORDERED, this, this);
                r = self.body.select(x.size, x.bytes, missing, other, r);
            }
        }
        r
    }

    /// A constant of eight quadwords.
    pub(super) fn quads(&mut self, c: Constant) -> Reg {
        self.body.constant(c)
    }
}
