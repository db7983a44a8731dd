//! Lowering of ops on f32 and f64.
//!
//! Guarantees: each operation rounds to its dtype, nothing is contracted; what is known of a result's NaNs is said with it.
//! Does not: make them canonical (`lower` does where their bits are demanded), or define elementary functions (`math`).

use super::instructions::{self as ins, Instruction};
use super::ir::{Constant, Reg};
use super::isa::Isa;
use super::lower::{EQ, GE, GT, LE, LT, Lower, MAX, MIN, NE, NOT_LE, Nan, Out, Real, UNORDERED};
use crate::base::dtype::DType;
use crate::ops::Op;

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

    pub(super) fn add(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [ins::VADDPS, ins::VADDPD], a, b)
    }

    pub(super) fn sub(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [ins::VSUBPS, ins::VSUBPD], a, b)
    }

    pub(super) fn mul(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [ins::VMULPS, ins::VMULPD], a, b)
    }

    pub(super) fn div(&mut self, x: Real, a: Reg, b: Reg) -> Reg {
        self.real_bin(x, [ins::VDIVPS, ins::VDIVPD], a, b)
    }

    fn sqrt(&mut self, x: Real, a: Reg) -> Reg {
        self.body.un([ins::VSQRTPS, ins::VSQRTPD][x.size / 8], x.bytes, a)
    }

    /// Rounds to an integer: mode 0 to nearest even, 1 down, 2 up, 3 towards zero.
    fn round(&mut self, x: Real, mode: u8, a: Reg) -> Reg {
        self.body.un_imm([ins::VRNDSCALEPS, ins::VRNDSCALEPD][x.size / 8], x.bytes, a, mode | 8)
    }

    pub(super) fn magnitude(&mut self, x: Real, a: Reg) -> Reg {
        let rest = self.sign_bits(x, true);
        self.body.bin(ins::VPANDD, x.bytes, a, rest)
    }

    /// The comparison of an op.
    pub(super) fn predicate(op: Op) -> Option<u8> {
        Some(match op {
            Op::Eq => EQ,
            Op::Ne => NE,
            Op::Lt => LT,
            Op::Le => LE,
            Op::Gt => GT,
            Op::Ge => GE,
            _ => return None,
        })
    }

    /// `isnan`, `isinf` or `isfinite`.
    pub(super) fn class(&mut self, x: Real, op: Op, a: Reg) -> Reg {
        if op == Op::Isnan {
            return self.compare(x, UNORDERED, a, a);
        }
        let infinity = self.float(x, f64::INFINITY);
        let magnitude = self.magnitude(x, a);
        self.compare(x, if op == Op::Isinf { EQ } else { LT }, magnitude, infinity)
    }

    /// IEEE 754-2019 `maximum` and `minimum`.
    fn extreme(&mut self, x: Real, predicate: u8, a: Reg, b: Reg) -> Reg {
        let better = self.body.bin_imm([ins::VRANGEPS, ins::VRANGEPD][x.size / 8], x.bytes, a, b, predicate);
        let either = self.compare(x, UNORDERED, a, b);
        let nan = self.float(x, f64::NAN);
        self.body.select(x.size, x.bytes, either, nan, better)
    }

    /// The maximum or minimum, or the other operand if one is NaN.
    fn extreme_number(&mut self, x: Real, predicate: u8, (a, na): (Reg, Nan), (b, nb): (Reg, Nan)) -> Reg {
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

    /// Floats of 4 and 8 bytes.
    pub(super) fn float_op(&mut self, op: Op, d: DType, args: [(Reg, Nan); 4]) -> Out {
        let x = self.real(d);
        let [a, b, c, e] = args.map(|(r, _)| r);
        let [na, nb, ..] = args.map(|(_, nan)| nan);
        if let Some(predicate) = Self::predicate(op) {
            return Out::Done(self.compare(x, predicate, a, b), Nan::Any);
        }
        let quiet = |r| Out::Raw(r, Nan::Quiet);
        if let Some(r) = self.arithmetic(op, x, a, b) {
            return quiet(r);
        }
        match op {
            Op::Reciprocal | Op::Rsqrt => {
                let below = if op == Op::Rsqrt { self.sqrt(x, a) } else { a };
                let one = self.float(x, 1.0);
                quiet(self.div(x, one, below))
            }
            Op::Round => quiet(self.round(x, 0, a)),
            Op::Floor => quiet(self.round(x, 1, a)),
            Op::Ceil => quiet(self.round(x, 2, a)),
            Op::Trunc => quiet(self.round(x, 3, a)),
            Op::Frac => {
                let whole = self.round(x, 3, a);
                quiet(self.sub(x, a, whole))
            }
            Op::DivTrunc => {
                let quotient = self.div(x, a, b);
                quiet(self.round(x, 3, quotient))
            }
            Op::Maximum | Op::ClampMin => Out::Done(self.extreme(x, MAX, a, b), Nan::Canonical),
            Op::Minimum | Op::ClampMax => Out::Done(self.extreme(x, MIN, a, b), Nan::Canonical),
            Op::Clamp => {
                let up = self.extreme(x, MAX, a, b);
                Out::Done(self.extreme(x, MIN, up, c), Nan::Canonical)
            }
            Op::Fmax => Out::Raw(self.extreme_number(x, MAX, args[0], args[1]), na.min(nb)),
            Op::Fmin => Out::Raw(self.extreme_number(x, MIN, args[0], args[1]), na.min(nb)),
            Op::AddScaled | Op::SubScaled => {
                let scaled = self.mul(x, c, b);
                quiet(if op == Op::AddScaled { self.add(x, a, scaled) } else { self.sub(x, a, scaled) })
            }
            Op::Addcmul | Op::Addcdiv => {
                let scaled = self.mul(x, e, b);
                let term = if op == Op::Addcmul { self.mul(x, scaled, c) } else { self.div(x, scaled, c) };
                quiet(self.add(x, a, term))
            }
            Op::SquaredDifference => {
                let difference = self.sub(x, a, b);
                quiet(self.mul(x, difference, difference))
            }
            Op::Exp | Op::Log | Op::Tanh | Op::Sigmoid | Op::Silu | Op::GeluTanh | Op::Sin | Op::Cos | Op::Erf => {
                quiet(self.function(op, x, a))
            }
            Op::Huber | Op::SmoothL1 | Op::Lerp => quiet(self.piecewise(op, x, [a, b, c])),
            Op::RealPart | Op::Conj | Op::Positive | Op::PromoteWith => Out::Raw(a, na),
            Op::Assign => Out::Raw(b, nb),
            _ => self.float_bits(op, x, args),
        }
    }

    /// Ops that are one instruction. Its NaN is an operand's, quieted, or the default NaN, which has no payload.
    fn arithmetic(&mut self, op: Op, x: Real, a: Reg, b: Reg) -> Option<Reg> {
        let short = self.has_bf16_nans(a) && (self.has_bf16_nans(b) || matches!(op, Op::Square | Op::Sqrt));
        let r = match op {
            Op::Add => self.add(x, a, b),
            Op::Sub => self.sub(x, a, b),
            Op::Mul => self.mul(x, a, b),
            Op::Div => self.div(x, a, b),
            Op::Square => self.mul(x, a, a),
            Op::Sqrt => self.sqrt(x, a),
            _ => return None,
        };
        Some(if short { self.mark_bf16_nans(r) } else { r })
    }

    /// Ops with two formulas, selected by a comparison.
    fn piecewise(&mut self, op: Op, x: Real, [a, b, c]: [Reg; 3]) -> Reg {
        let half = self.float(x, 0.5);
        if op == Op::Lerp {
            let weight = self.magnitude(x, c);
            let near = self.compare(x, LT, weight, half);
            let way = self.sub(x, b, a);
            let forth = self.mul(x, c, way);
            let forth = self.add(x, a, forth);
            let one = self.float(x, 1.0);
            let left = self.sub(x, one, c);
            let back = self.mul(x, way, left);
            let back = self.sub(x, b, back);
            return self.body.select(x.size, x.bytes, near, forth, back);
        }
        let difference = self.sub(x, a, b);
        let r = self.magnitude(x, difference);
        let inside = self.compare(x, if op == Op::Huber { LE } else { LT }, r, c);
        let square = self.mul(x, half, r);
        let mut square = self.mul(x, square, r);
        let offset = self.mul(x, half, c);
        let mut line = self.sub(x, r, offset);
        if op == Op::Huber {
            line = self.mul(x, c, line);
        } else {
            square = self.div(x, square, c);
        }
        self.body.select(x.size, x.bytes, inside, square, line)
    }

    /// Ops that select among operands and constants, or classify.
    fn float_bits(&mut self, op: Op, x: Real, args: [(Reg, Nan); 4]) -> Out {
        let [(a, na), (b, nb), ..] = args;
        let zero = self.float(x, 0.0);
        let mask = |r| Out::Done(r, Nan::Any);
        match op {
            Op::Neg => {
                let signs = self.sign_bits(x, false);
                Out::Done(self.body.bin(ins::VPXORD, x.bytes, a, signs), na.min(Nan::Quiet))
            }
            Op::Abs => Out::Done(self.magnitude(x, a), na),
            Op::Copysign => {
                let signs = self.sign_bits(x, false);
                let sign = self.body.bin(ins::VPANDD, x.bytes, b, signs);
                let rest = self.body.bin(ins::VPANDND, x.bytes, signs, a);
                Out::Raw(self.body.bin(ins::VPORD, x.bytes, sign, rest), na.min(Nan::Quiet))
            }
            Op::Relu => {
                let kept = self.compare(x, NOT_LE, a, zero);
                Out::Raw(self.body.select_or_zero(x.size, x.bytes, kept, a), na)
            }
            Op::Sign | Op::Sgn | Op::Heaviside => {
                let one = self.float(x, 1.0);
                let above = self.compare(x, GT, a, zero);
                let up = self.body.select_or_zero(x.size, x.bytes, above, one);
                if op != Op::Heaviside {
                    let minus = self.float(x, -1.0);
                    let below = self.compare(x, LT, a, zero);
                    return Out::Done(self.body.select(x.size, x.bytes, below, minus, up), Nan::Canonical);
                }
                let at_zero = self.compare(x, EQ, a, zero);
                Out::Raw(self.body.select(x.size, x.bytes, at_zero, b, up), nb)
            }
            Op::Angle => {
                let (pi, nan) = (self.float(x, std::f64::consts::PI), self.float(x, f64::NAN));
                let below = self.compare(x, LT, a, zero);
                let plain = self.body.select_or_zero(x.size, x.bytes, below, pi);
                let is_nan = self.compare(x, UNORDERED, a, a);
                Out::Done(self.body.select(x.size, x.bytes, is_nan, nan, plain), Nan::Canonical)
            }
            Op::LogicalNot => mask(self.compare(x, EQ, a, zero)),
            Op::Isnan | Op::Isinf | Op::Isfinite => mask(self.class(x, op, a)),
            _ => {
                let (a, b) = (self.compare(x, NE, a, zero), self.compare(x, NE, b, zero));
                mask(self.logical(op, a, b))
            }
        }
    }

    /// `and`, `or` or `xor` of masks.
    pub(super) fn logical(&mut self, op: Op, a: Reg, b: Reg) -> Reg {
        let instruction = match op {
            Op::LogicalAnd => ins::KANDQ,
            Op::LogicalOr => ins::KORQ,
            _ => ins::KXORQ,
        };
        self.body.bin(instruction, 8, a, b)
    }

    /// A constant of eight quadwords.
    pub(super) fn quads(&mut self, c: Constant) -> Reg {
        self.body.constant(c)
    }
}
