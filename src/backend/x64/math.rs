//! Elementary functions: the code of [`crate::math::inline`], run on virtual registers.
//!
//! Guarantees: the bits of the block kernels, except NaNs, which become canonical where their bits are demanded. Some operations that
//! are a sequence on floats are one instruction here, if the machine has one with the same results: scaling by a power of two,
//! splitting into exponent and significand, results at the ends of a domain. Does not: serve dtypes other than f32 and f64.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::instructions::{self as ins, Instruction};
use super::ir::Reg;
use super::isa::Isa;
use super::lower::{EQ, GT, LT, Lower, Real};
use crate::math::erf_parts;
use crate::math::inline::{double, single};
use crate::math::lane::{LOG_ENDS, Lane, Table};
use crate::ops::Op;

/// A virtual register of lanes of `F`. Its operations append instructions to the body.
#[derive(Clone, Copy)]
struct Traced<'a, 'b, 'c, F> {
    lower: &'a RefCell<&'b mut Lower<'c>>,
    x: Real,
    r: Reg,
    float: PhantomData<F>,
}

/// The function of an op, from the module for its precision.
macro_rules! traced {
    ($module:ident, $erf:path, $op:expr, $a:expr) => {
        match $op {
            Op::Exp => $module::exp($a).r,
            Op::Log => $module::log($a).r,
            Op::Tanh => $module::tanh($a).r,
            Op::Silu => $module::silu($a).r,
            Op::GeluTanh => $module::gelu_tanh($a).r,
            Op::Erf => $erf($a).r,
            Op::Sin => $module::sin_near($a).unless_far($a, $module::TRIG_NEAR, $op).r,
            Op::Cos => $module::cos_near($a).unless_far($a, $module::TRIG_NEAR, $op).r,
            _ => $module::sigmoid($a).r,
        }
    };
}

impl Lower<'_> {
    /// An op whose function is in [`crate::math::inline`].
    pub(super) fn function(&mut self, op: Op, x: Real, r: Reg) -> Reg {
        let lower = &RefCell::new(self);
        match x.size {
            4 => traced!(single, single::erf, op, Traced::<f32> { lower, x, r, float: PhantomData }),
            _ => traced!(double, erf_parts::erf, op, Traced::<f64> { lower, x, r, float: PhantomData }),
        }
    }
}

impl<'c, F: Copy + Into<f64>> Traced<'_, '_, 'c, F> {
    fn with(self, write: impl FnOnce(&mut Lower<'c>, Real) -> Reg) -> Self {
        let r = write(&mut self.lower.borrow_mut(), self.x);
        Traced { r, ..self }
    }

    /// `self`, whose formula is valid for small `|x|`; with the slow path if any `|x|` is above the limit.
    fn unless_far(self, x: Self, limit: F, op: Op) -> Self
    where
        Self: Lane<Num = F>,
    {
        let (size, limit) = (x.abs(), x.c(limit));
        let far = self.lower.borrow_mut().compare(self.x, GT, size.r, limit.r);
        self.with(|l, at| l.body.slow_path(at.size, at.bytes, far, [self.r, x.r], op))
    }

    fn fused(self, instructions: [Instruction; 2], a: Self, b: Self) -> Self {
        self.with(|l, x| l.body.fused(instructions[x.size / 8], x.bytes, self.r, a.r, b.r))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $with:ident),*) => {$(
        impl<F: Copy + Into<f64>> $trait for Traced<'_, '_, '_, F> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.with(|l, x| l.$with(x, self.r, other.r))
            }
        }
    )*};
}

operators!(Add add add, Sub sub sub, Mul mul mul, Div div div);

impl<F: Copy + Into<f64>> Neg for Traced<'_, '_, '_, F> {
    type Output = Self;
    fn neg(self) -> Self {
        self.with(|l, x| {
            let signs = l.sign_bits(x, false);
            l.body.bin(ins::VPXORD, x.bytes, self.r, signs)
        })
    }
}

impl<F: Copy + Into<f64>> Lane for Traced<'_, '_, '_, F> {
    type Num = F;
    type Mask = Reg;
    type Bit = Reg;

    fn c(self, value: F) -> Self {
        self.with(|l, x| l.float(x, value.into()))
    }

    fn fma(self, a: Self, b: Self) -> Self {
        self.fused([ins::VFMADD231PS, ins::VFMADD231PD], a, b)
    }

    fn fms(self, a: Self, b: Self) -> Self {
        self.fused([ins::VFMSUB231PS, ins::VFMSUB231PD], a, b)
    }

    fn fnma(self, a: Self, b: Self) -> Self {
        self.fused([ins::VFNMADD231PS, ins::VFNMADD231PD], a, b)
    }

    fn abs(self) -> Self {
        self.with(|l, x| l.magnitude(x, self.r))
    }

    fn signed(self, sign: Self) -> Self {
        self.with(|l, x| {
            if l.body.isa == Isa::Avx2 {
                let signs = l.sign_bits(x, false);
                let sign = l.body.bin(ins::VPANDD, x.bytes, sign.r, signs);
                return l.body.bin(ins::VPORD, x.bytes, self.r, sign);
            }
            let others = l.sign_bits(x, true);
            // others ? self : sign
            l.body.tern_imm(ins::VPTERNLOGD, x.bytes, [self.r, sign.r, others], 0xe4)
        })
    }

    fn at_most(self, most: F) -> Self {
        let most = self.c(most);
        self.with(|l, x| l.real_bin(x, MIN, most.r, self.r))
    }

    fn at_least(self, least: F) -> Self {
        let least = self.c(least);
        self.with(|l, x| l.real_bin(x, MAX, least.r, self.r))
    }

    fn less(self, other: Self) -> Reg {
        self.lower.borrow_mut().compare(self.x, LT, self.r, other.r)
    }

    fn or(self, mask: Reg, other: Self) -> Self {
        self.with(|l, x| l.body.select(x.size, x.bytes, mask, self.r, other.r))
    }

    fn scaled(self, k: Self, t: Self) -> Self {
        if self.isa() == Isa::Avx512 {
            return self.with(|l, x| l.real_bin(x, [ins::VSCALEFPS, ins::VSCALEFPD], self.r, k.r));
        }
        // By two factors, as the float code does.
        let [_, bias, _] = parts(self.x);
        let twice = self.whole_of(t, 2 * bias);
        let low = self.with(|l, x| l.body.un_imm([ins::VPSRLD, ins::VPSRLQ][x.size / 8], x.bytes, twice.r, 1));
        let rest = self.with(|l, x| l.real_bin(x, [ins::VPSUBD, ins::VPSUBQ], twice.r, low.r));
        self * low.power() * rest.power()
    }

    fn power(self) -> Self {
        let [shift, ..] = parts(self.x);
        self.with(|l, x| l.body.un_imm([ins::VPSLLD, ins::VPSLLQ][x.size / 8], x.bytes, self.r, shift as u8))
    }

    fn odd(self) -> Reg {
        let mut l = self.lower.borrow_mut();
        let lowest = l.body.splat(self.x.size, 1);
        l.real_bin(self.x, [ins::VPTESTMD, ins::VPTESTMQ], self.r, lowest)
    }

    fn lowest(self) -> Reg {
        match self.x.size {
            4 => self.r,
            // VPERMILPD reads bit 1.
            _ => self.with(|l, x| l.body.bin(ins::VPADDQ, x.bytes, self.r, self.r)).r,
        }
    }

    fn sign(self) -> Reg {
        let (right, places) = [(ins::VPSRLD, 31), (ins::VPSRLQ, 62)][self.x.size / 8];
        self.with(|l, x| l.body.un_imm(right, x.bytes, self.r, places)).r
    }

    fn picked<const N: usize, const M: usize>(
        self,
        (mask, bit): (Reg, Reg),
        set: [F; N],
        other: Self,
        clear: [F; M],
    ) -> Self {
        let x = if self.r == other.r { self } else { self.or(mask, other) };
        let number = |c: &[F], i: usize| c.get(i).map_or(0.0, |c| (*c).into());
        let pick = |i: usize| self.picked_number(bit, number(&clear, i), number(&set, i));
        let last = N.max(M) - 1;
        (0..last).rev().fold(pick(last), |v, i| v.fma(x, pick(i)))
    }

    fn turned(self, t: Self) -> Self {
        self.with(|l, x| {
            let left = [ins::VPSLLD, ins::VPSLLQ][x.size / 8];
            let (up, signs) = (l.body.un_imm(left, x.bytes, t.r, 8 * x.size as u8 - 2), l.sign_bits(x, false));
            // self ^ (up & signs)
            l.body.tern_imm(ins::VPTERNLOGD, x.bytes, [self.r, up, signs], 0x78)
        })
    }

    fn split(self) -> (Self, Self) {
        if self.isa() == Isa::Avx2 {
            return self.split_bits();
        }
        // The significand lies between ¾ and 1½; its own exponent is subtracted.
        let m =
            self.with(|l, x| l.body.un_imm([ins::VGETMANTPS, ins::VGETMANTPD][x.size / 8], x.bytes, self.r, FROM_3_4));
        let exponent =
            |of: Self| of.with(|l, x| l.body.un([ins::VGETEXPPS, ins::VGETEXPPD][x.size / 8], x.bytes, of.r));
        (exponent(self) - exponent(m), m)
    }

    fn log_ends(self, from: Self) -> Self {
        self.with(|l, x| {
            if l.body.isa == Isa::Avx2 {
                let [zero, below, above, nan] =
                    [0.0, f64::NEG_INFINITY, f64::INFINITY, f64::NAN].map(|c| l.float(x, c));
                let at_zero = l.compare(x, EQ, from.r, zero);
                let beyond = l.body.select(x.size, x.bytes, at_zero, below, nan);
                let positive = l.compare(x, GT, from.r, zero);
                let r = l.body.select(x.size, x.bytes, positive, self.r, beyond);
                let endless = l.compare(x, EQ, from.r, above);
                return l.body.select(x.size, x.bytes, endless, above, r);
            }
            let table = l.body.splat(x.size, LOG_ENDS);
            l.body.tern_imm([ins::VFIXUPIMMPS, ins::VFIXUPIMMPD][x.size / 8], x.bytes, [self.r, from.r, table], 0)
        })
    }

    fn nan_of(self, _x: Self) -> Self {
        self
    }
}

impl Table for Traced<'_, '_, '_, f64> {
    fn chosen(self, table: &'static [f64; 16]) -> Self {
        let half = |from: usize| std::array::from_fn(|i| table[from + i].to_bits());
        self.with(|l, _| {
            let (low, high) = (l.body.constant(half(0)), l.body.constant(half(8)));
            // 512 bits whatever the vectors' length: the table has sixteen entries.
            l.body.fused(ins::VPERMT2PD, 64, low, self.r, high)
        })
    }
}

/// The format of a float: stored bits of the significand, exponent bias, and the bits of the number whose unit in the last
/// place is 1, which rounds what is added to it to an integer (see [`Lane`]).
fn parts(x: Real) -> [u64; 3] {
    match x.size {
        4 => [23, 127, 0x4b40_0000],
        _ => [52, 1023, 0x4338_0000_0000_0000],
    }
}

impl<F: Copy + Into<f64>> Traced<'_, '_, '_, F>
where
    Self: Lane<Num = F>,
{
    fn isa(self) -> Isa {
        self.lower.borrow().body.isa
    }

    /// `bit ? set : clear`, by a table lookup, which leaves the floating-point units free.
    fn picked_number(self, bit: Reg, clear: f64, set: f64) -> Self {
        self.with(|l, x| {
            let table = match x.size {
                4 => [u64::from((clear as f32).to_bits()) | u64::from((set as f32).to_bits()) << 32; 8],
                _ => std::array::from_fn(|i| [clear, set][i % 2].to_bits()),
            };
            let table = l.body.constant(table);
            l.body.bin([ins::VPERMILPS, ins::VPERMILPD][x.size / 8], x.bytes, table, bit)
        })
    }

    /// An integer in every lane.
    fn bits(self, bits: u64) -> Self {
        self.with(|l, x| l.body.splat(x.size, bits))
    }

    /// The integer in the low bits of `t`, plus `more`.
    fn whole_of(self, t: Self, more: u64) -> Self {
        let [_, _, round] = parts(self.x);
        let offset = self.bits(more.wrapping_sub(round));
        self.with(|l, x| l.real_bin(x, [ins::VPADDD, ins::VPADDQ], t.r, offset.r))
    }

    /// [`Lane::split`] by integer arithmetic on the bits, as in `math::log`.
    fn split_bits(self) -> (Self, Self) {
        let [shift, bias, _] = parts(self.x);
        let number = |value: f64| self.with(|l, x| l.float(x, value));
        let one = bias << shift;
        let lowest = [f32::to_bits(0.75).into(), f64::to_bits(0.75)][self.x.size / 8];
        // The exponent of an f64 is converted to float by placing it in the significand of 2^52.
        let to_float = [0.0, TWO_52][self.x.size / 8];
        let (up, places) = (number(2f64.powi(shift as i32)), bias as f64 + to_float);
        let least = self.bits(1 << shift);
        let small = self.less(least);
        let normal = (self * up).or(small, self);
        let bias = number(places + shift as f64).or(small, number(places));
        let u = self.bits(one - lowest);
        let u = self.with(|l, x| l.real_bin(x, [ins::VPADDD, ins::VPADDQ], normal.r, u.r));
        let (mask, lowest) = (self.bits((1 << shift) - 1), self.bits(lowest));
        let m = self.with(|l, x| l.body.bin(ins::VPANDD, x.bytes, u.r, mask.r));
        let m = self.with(|l, x| l.real_bin(x, [ins::VPADDD, ins::VPADDQ], m.r, lowest.r));
        let k = self.with(|l, x| match x.size {
            4 => {
                let whole = l.body.un_imm(ins::VPSRLD, x.bytes, u.r, shift as u8);
                l.body.un(ins::VCVTDQ2PS, x.bytes, whole)
            }
            _ => {
                let whole = l.body.un_imm(ins::VPSRLQ, x.bytes, u.r, shift as u8);
                let place = l.float(x, TWO_52);
                l.body.bin(ins::VPORD, x.bytes, whole, place)
            }
        });
        (k - bias, m)
    }
}

const TWO_52: f64 = (1u64 << 52) as f64;

/// The second operand if either is NaN or both are equal.
const MIN: [Instruction; 2] = [ins::VMINPS, ins::VMINPD];
const MAX: [Instruction; 2] = [ins::VMAXPS, ins::VMAXPD];

/// The immediate of `vgetmantps` for significands from ¾ to 1½.
const FROM_3_4: u8 = 3;
