//! Floats on a tape: what rows say of them, and the functions of [`crate::math::inline`].
//!
//! Guarantees: the functions' text is recorded as it stands there; where a few operations on bits are meant they are
//! one composite, for which machines may have an instruction. Does not: hold another text of a function.

use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::prim::{Predicate, Prim, Rounding};
use super::record::{Float, Rec, Truth, Whole};
use crate::base::dtype::DType;
use crate::kernels::num::{Int, Real, RealFn};
use crate::math::erf_parts;
use crate::math::inline::{double, single};
use crate::math::lane::{Lane, Table};
use crate::ops::Op;

/// A function of the two float types.
macro_rules! function {
    ($function:ident $a:expr) => {
        match $a.dtype() {
            DType::F32 => single::$function(Lanes::<f32>($a, PhantomData)).0,
            _ => double::$function(Lanes::<f64>($a, PhantomData)).0,
        }
    };
}

macro_rules! functions {
    ($($function:ident)*) => {$(
        fn $function(a: Self) -> Self {
            function!($function a)
        }
    )*};
}

impl<'t> Real for Rec<'t, Float> {
    type Mask = Rec<'t, Truth>;

    fn c(self, value: f64) -> Self {
        self.number(value)
    }

    fn nan(self) -> Self {
        self.number(f64::NAN)
    }

    fn abs(self) -> Self {
        self.apply(Prim::Abs, &[])
    }

    fn copysign(self, sign: Self) -> Self {
        self.apply(Prim::CopySign, &[sign])
    }

    fn sqrt(a: Self) -> Self {
        a.apply(Prim::Sqrt, &[])
    }

    fn floor(a: Self) -> Self {
        a.rounded(Rounding::Down)
    }

    fn ceil(a: Self) -> Self {
        a.rounded(Rounding::Up)
    }

    fn round(a: Self) -> Self {
        a.rounded(Rounding::Nearest)
    }

    fn trunc(a: Self) -> Self {
        a.rounded(Rounding::Zero)
    }

    fn fma(a: Self, b: Self, c: Self) -> Self {
        a.apply(Prim::Fma, &[b, c])
    }

    fn eq(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::Equal, b)
    }

    fn ne(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::NotEqual, b)
    }

    fn lt(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::Less, b)
    }

    fn le(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::LessEqual, b)
    }

    fn gt(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::Greater, b)
    }

    fn ge(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::GreaterEqual, b)
    }

    fn unordered(a: Self, b: Self) -> Rec<'t, Truth> {
        a.compare(Predicate::Unordered, b)
    }

    fn select(mask: Rec<'t, Truth>, a: Self, b: Self) -> Self {
        a.or(mask, b)
    }

    fn and_bits(a: Self, b: Self) -> Self {
        a.apply(Prim::And, &[b])
    }

    fn or_bits(a: Self, b: Self) -> Self {
        a.apply(Prim::Or, &[b])
    }

    fn maximum(a: Self, b: Self) -> Self {
        a.apply(Prim::Maximum, &[b])
    }

    fn minimum(a: Self, b: Self) -> Self {
        a.apply(Prim::Minimum, &[b])
    }

    fn fmax(a: Self, b: Self) -> Self {
        a.apply(Prim::Fmax, &[b])
    }

    fn fmin(a: Self, b: Self) -> Self {
        a.apply(Prim::Fmin, &[b])
    }

    functions!(rsqrt exp log tanh sigmoid silu gelu_tanh sin_near cos_near);

    fn erf(a: Self) -> Self {
        match a.dtype() {
            DType::F32 => single::erf(Lanes::<f32>(a, PhantomData)).0,
            _ => erf_parts::erf(Lanes::<f64>(a, PhantomData)).0,
        }
    }
}

impl<'t> Rec<'t, Float> {
    /// `self`, which holds for |x| <= [`RealFn::NEAR`]; what the kernel gives where x is farther away.
    pub(super) fn unless_far(self, x: Self, op: Op) -> Self {
        let near = if x.dtype() == DType::F32 { f64::from(<f32 as RealFn>::NEAR) } else { <f64 as RealFn>::NEAR };
        let far = Real::gt(x.abs(), x.number(near));
        self.make(Prim::SlowPath(op), &[self.at, x.at, far.at])
    }
}

/// Recorded floats of the type `F`.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'t, F>(pub(super) Rec<'t, Float>, pub(super) PhantomData<F>);

/// A float type.
pub(super) trait Format: Copy {
    /// The bits of the significand that are stored.
    const SHIFT: usize;
    /// Bits of a number.
    const WIDTH: usize;
    fn bits(self) -> u64;
}

impl Format for f32 {
    const SHIFT: usize = 23;
    const WIDTH: usize = 32;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Format for f64 {
    const SHIFT: usize = 52;
    const WIDTH: usize = 64;
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl<'t, F: Format> Lanes<'t, F> {
    fn apply(self, prim: Prim, others: &[Self]) -> Self {
        let others: Vec<_> = others.iter().map(|o| o.0).collect();
        Lanes(self.0.apply(prim, &others), PhantomData)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident),*) => {$(
        impl<F> $trait for Lanes<'_, F> {
            type Output = Self;
            fn $method(self, b: Self) -> Self {
                Lanes(self.0.$method(b.0), PhantomData)
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

impl<F> Neg for Lanes<'_, F> {
    type Output = Self;
    fn neg(self) -> Self {
        Lanes(-self.0, PhantomData)
    }
}

impl<'t, F: Format> Lane for Lanes<'t, F> {
    type Num = F;
    type Mask = Rec<'t, Truth>;
    /// What [`Prim::Pick`] looks at.
    type Bit = Rec<'t, Whole>;

    fn c(self, value: F) -> Self {
        Lanes(self.0.bits_const(value.bits()), PhantomData)
    }

    fn fma(self, a: Self, b: Self) -> Self {
        self.apply(Prim::Fma, &[a, b])
    }

    fn fms(self, a: Self, b: Self) -> Self {
        self.apply(Prim::Fms, &[a, b])
    }

    fn fnma(self, a: Self, b: Self) -> Self {
        self.apply(Prim::Fnma, &[a, b])
    }

    fn abs(self) -> Self {
        self.apply(Prim::Abs, &[])
    }

    fn sqrt(self) -> Self {
        self.apply(Prim::Sqrt, &[])
    }

    fn signed(self, sign: Self) -> Self {
        self.apply(Prim::Signed, &[sign])
    }

    fn at_most(self, most: F) -> Self {
        self.c(most).apply(Prim::Least, &[self])
    }

    fn at_least(self, least: F) -> Self {
        self.c(least).apply(Prim::Most, &[self])
    }

    fn less(self, other: Self) -> Rec<'t, Truth> {
        Real::lt(self.0, other.0)
    }

    fn or(self, mask: Rec<'t, Truth>, other: Self) -> Self {
        Lanes(self.0.or(mask, other.0), PhantomData)
    }

    fn scaled(self, k: Self, t: Self) -> Self {
        self.apply(Prim::Scaled, &[k, t])
    }

    fn power(self) -> Self {
        Lanes(self.0.bits().shift_up(F::SHIFT).float(), PhantomData)
    }

    fn odd(self) -> Rec<'t, Truth> {
        let bits = self.0.bits();
        bits.make(Prim::Test, &[bits.at, bits.whole(1).at])
    }

    fn lowest(self) -> Rec<'t, Whole> {
        let bits = self.0.bits();
        if F::WIDTH == 32 { bits } else { bits.wrapping_add(bits) }
    }

    fn sign(self) -> Rec<'t, Whole> {
        let below = if F::WIDTH == 32 { 1 } else { 2 };
        self.0.bits().shift_down(F::WIDTH - below)
    }

    fn picked<const N: usize, const M: usize>(
        self,
        (mask, bit): (Rec<'t, Truth>, Rec<'t, Whole>),
        set: [F; N],
        other: Self,
        clear: [F; M],
    ) -> Self {
        let x = self.or(mask, other);
        let number = |c: &[F], i: usize| c.get(i).map_or(0, |c| c.bits());
        let pick = |i: usize| {
            let prim = Prim::Pick { set: number(&set, i), clear: number(&clear, i) };
            Lanes(self.0.make(prim, &[bit.at]), PhantomData)
        };
        let last = N.max(M) - 1;
        (0..last).rev().fold(pick(last), |v: Self, i| v.fma(x, pick(i)))
    }

    fn turned(self, t: Self) -> Self {
        self.apply(Prim::Turned, &[t])
    }

    fn split(self) -> (Self, Self) {
        let m = self.apply(Prim::Significand, &[]);
        (self.apply(Prim::Exponent, &[m]), m)
    }

    fn log_ends(self, x: Self) -> Self {
        self.apply(Prim::LogEnds, &[x])
    }

    fn nan_of(self, _x: Self) -> Self {
        self
    }
}

impl Table for Lanes<'_, f64> {
    fn chosen(self, table: &'static [f64; 16]) -> Self {
        self.apply(Prim::Chosen(table), &[])
    }
}
