//! Functions of single precision in a loop: the text of [`crate::block::math::single`], run over registers.
//!
//! Guarantees: the bits of the block kernels, but for NaNs, which are made canonical where they can be seen. What takes
//! several operations on an `f32` is one instruction here where the machine has one that gives the same bits: scaling by
//! a power of two, taking exponent and significand apart, values at the ends of a domain. Does not: serve other dtypes.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::forms::{self as f, Form};
use super::ir::Reg;
use super::lower::{GE, GT, LT, Lower, Real};
use crate::block::math::lane::Lane;
use crate::block::math::single;
use crate::ops::Op;

/// A vector register, and where its instructions are written.
#[derive(Clone, Copy)]
struct Traced<'a, 'b, 'c> {
    lower: &'a RefCell<&'b mut Lower<'c>>,
    x: Real,
    r: Reg,
}

impl Lower<'_> {
    /// A function that [`single`] has.
    pub(super) fn function(&mut self, op: Op, x: Real, a: Reg) -> Reg {
        let lower = RefCell::new(self);
        let a = Traced { lower: &lower, x, r: a };
        match op {
            Op::Exp => single::exp(a).r,
            Op::Log => single::log(a).r,
            Op::Tanh => single::tanh(a).r,
            Op::Silu => single::silu(a).r,
            Op::GeluTanh => single::gelu_tanh(a).r,
            Op::Sin => single::sin_near(a).unless_far(a, op).r,
            Op::Cos => single::cos_near(a).unless_far(a, op).r,
            _ => single::sigmoid(a).r,
        }
    }
}

impl<'c> Traced<'_, '_, 'c> {
    fn with(self, write: impl FnOnce(&mut Lower<'c>, Real) -> Reg) -> Self {
        let r = write(&mut self.lower.borrow_mut(), self.x);
        Traced { r, ..self }
    }

    /// `self`, which holds near zero; the block kernel's results where `x` is farther away.
    fn unless_far(self, x: Self, op: Op) -> Self {
        let (size, limit) = (x.abs(), x.c(single::TRIG_NEAR_F32));
        let far = self.lower.borrow_mut().compare(self.x, GT, size.r, limit.r);
        self.with(|l, at| l.body.rescued(at.bytes, far, self.r, x.r, op))
    }

    fn fused(self, form: Form, a: Self, b: Self) -> Self {
        self.with(|l, x| l.body.fused(form, x.bytes, self.r, a.r, b.r))
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $with:ident),*) => {$(
        impl $trait for Traced<'_, '_, '_> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.with(|l, x| l.$with(x, self.r, other.r))
            }
        }
    )*};
}

operators!(Add add add, Sub sub sub, Mul mul mul, Div div div);

impl Neg for Traced<'_, '_, '_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.with(|l, x| {
            let signs = l.sign_bits(x, false);
            l.body.bin(f::XOR, x.bytes, self.r, signs)
        })
    }
}

impl Lane for Traced<'_, '_, '_> {
    type Mask = Reg;

    fn c(self, value: f32) -> Self {
        self.with(|l, x| l.float(x, f64::from(value)))
    }

    fn fma(self, a: Self, b: Self) -> Self {
        self.fused(f::FMA231PS, a, b)
    }

    fn fms(self, a: Self, b: Self) -> Self {
        self.fused(f::FMS231PS, a, b)
    }

    fn fnma(self, a: Self, b: Self) -> Self {
        self.fused(f::FNMA231PS, a, b)
    }

    fn abs(self) -> Self {
        self.with(|l, x| l.magnitude(x, self.r))
    }

    fn signed(self, sign: Self) -> Self {
        self.with(|l, x| {
            let others = l.sign_bits(x, true);
            // The others' bits from the first, the sign from the second.
            l.body.tern_imm(f::LOGICD, x.bytes, [self.r, sign.r, others], 0xe4)
        })
    }

    fn at_most(self, most: f32) -> Self {
        let most = self.c(most);
        self.with(|l, x| l.body.bin(f::MINPS, x.bytes, most.r, self.r))
    }

    fn at_least(self, least: f32) -> Self {
        let least = self.c(least);
        self.with(|l, x| l.body.bin(f::MAXPS, x.bytes, least.r, self.r))
    }

    fn less(self, other: Self) -> Reg {
        self.lower.borrow_mut().compare(self.x, LT, self.r, other.r)
    }

    fn or(self, mask: Reg, other: Self) -> Self {
        self.with(|l, x| l.body.choose(4, x.bytes, mask, self.r, other.r))
    }

    fn ordered(self, other: Self) -> (Self, Self) {
        let smaller = self.with(|l, x| l.body.bin(f::MINPS, x.bytes, self.r, other.r));
        (self.with(|l, x| l.body.bin(f::MAXPS, x.bytes, self.r, other.r)), smaller)
    }

    fn scaled(self, k: Self, _t: Self) -> Self {
        self.with(|l, x| l.body.bin(f::SCALEPS, x.bytes, self.r, k.r))
    }

    fn scaled_near(self, k: Self, t: Self) -> Self {
        self.scaled(k, t)
    }

    fn odd(self) -> Reg {
        let mut l = self.lower.borrow_mut();
        let lowest = l.body.lanes(4, 1);
        l.body.bin(f::PTESTMD, self.x.bytes, self.r, lowest)
    }

    fn turned(self, t: Self) -> Self {
        self.with(|l, x| {
            let (up, signs) = (l.body.un_imm(f::PSLLD, x.bytes, t.r, 30), l.sign_bits(x, false));
            // The first, and the sign turned where the second has it.
            l.body.tern_imm(f::LOGICD, x.bytes, [self.r, up, signs], 0x78)
        })
    }

    fn split(self) -> (Self, Self) {
        // A significand from 1 up to 2, whose upper part moves down by one power of two.
        let m = self.with(|l, x| l.body.un_imm(f::MANTISSAPS, x.bytes, self.r, 0));
        let k = self.with(|l, x| l.body.un(f::EXPONENTPS, x.bytes, self.r));
        let (root, half, one) = (self.c(SQRT_TWO), self.c(0.5), self.c(1.0));
        let upper = self.lower.borrow_mut().compare(self.x, GE, m.r, root.r);
        let (down, up) = (m * half, k + one);
        (up.or(upper, k), down.or(upper, m))
    }

    fn log_ends(self, from: Self) -> Self {
        self.with(|l, x| {
            let table = l.body.lanes(4, LOG_ENDS);
            l.body.tern_imm(f::FIXUPPS, x.bytes, [self.r, from.r, table], 0)
        })
    }

    fn nan_of(self, _x: Self) -> Self {
        self
    }
}

/// The double of the least significand that `split` of an `f32` gives.
const SQRT_TWO: f32 = f32::from_bits(0x3fb5_04f3);

/// What `vfixupimmps` gives for each class of its operand, four bits a class.
const LOG_ENDS: u64 = {
    // Classes, lowest first: quiet NaN, signaling NaN, zero, one, -∞, +∞, negative, positive.
    let (keep, quiet, nan, below, above) = (0, 2, 3, 4, 5);
    let classes: [u64; 8] = [quiet, quiet, below, keep, nan, above, nan, keep];
    let (mut table, mut i) = (0, 0);
    while i < 8 {
        table |= classes[i] << (4 * i);
        i += 1;
    }
    table
};
