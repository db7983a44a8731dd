//! What the functions of [`super::single`] compute with: an `f32`, or a vector register of a compiled loop.
//!
//! A function written over [`Lane`] is compiled by rustc into the block kernels, and run once by the wide code generator
//! to have its instructions written into a loop. So there is one text of each function, and the bits are those of its
//! operations, all of which IEEE 754 or this file defines. Guarantees: no operation branches or looks anything up.
//! Does not: hold functions.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `1.5·2^23`: adding it to a small number leaves the nearest integer in the low bits of the significand.
pub(crate) const ROUND: f32 = 12_582_912.0;

/// A number of single precision.
pub(crate) trait Lane:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// A truth value.
    type Mask: Copy;
    /// A constant; `self` says where it is wanted.
    fn c(self, value: f32) -> Self;
    /// `self·a + b`, rounded once.
    fn fma(self, a: Self, b: Self) -> Self;
    /// `self·a - b`, rounded once.
    fn fms(self, a: Self, b: Self) -> Self;
    /// `b - self·a`, rounded once.
    fn fnma(self, a: Self, b: Self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self;
    /// `self`, which is not negative, with the sign of `sign`.
    fn signed(self, sign: Self) -> Self;
    /// `most` where that is smaller; a NaN stays.
    fn at_most(self, most: f32) -> Self;
    /// `least` where that is larger; a NaN stays.
    fn at_least(self, least: f32) -> Self;
    /// `self < other`.
    fn less(self, other: Self) -> Self::Mask;
    /// `self` where the mask is set, else `other`.
    fn or(self, mask: Self::Mask, other: Self) -> Self;
    /// The larger and the smaller of two numbers that are not NaN.
    fn ordered(self, other: Self) -> (Self, Self);
    /// `self·2^k`, rounded once, for a whole `k` from -252 to 254, given as itself and as `t = k + ROUND`.
    fn scaled(self, k: Self, t: Self) -> Self;
    /// `self·2^k`, as above, for a `k` from -126 to 127.
    fn scaled_near(self, k: Self, t: Self) -> Self;
    /// Whether the whole number is odd that `self` holds, as `t` above.
    fn odd(self) -> Self::Mask;
    /// `self`, negated where the whole number of `t` is 2 or 3 in remainders of 4.
    fn turned(self, t: Self) -> Self;
    /// A positive finite number as `(k, m)`: `2^k·m` with `m` from `√½` up to `√2`.
    fn split(self) -> (Self, Self);
    /// `self`, which is the logarithm of `x` if `x` is positive and finite; -∞ for a zero `x`, NaN for what is below,
    /// +∞ for +∞. A NaN is the canonical one, or is made so later.
    fn log_ends(self, x: Self) -> Self;
    /// `self`, or a NaN where `x` is NaN. It is the canonical one, or is made so later; `self` is NaN there already.
    fn nan_of(self, x: Self) -> Self;
}

/// From the bits of `√½` to those of 1.
const SQRT_HALF: u32 = 0x3f35_04f3;
const TO_ONE: u32 = f32::to_bits(1.0) - SQRT_HALF;

impl Lane for f32 {
    type Mask = bool;

    #[inline(always)]
    fn c(self, value: f32) -> f32 {
        value
    }

    #[inline(always)]
    fn fma(self, a: f32, b: f32) -> f32 {
        self.mul_add(a, b)
    }

    #[inline(always)]
    fn fms(self, a: f32, b: f32) -> f32 {
        self.mul_add(a, -b)
    }

    #[inline(always)]
    fn fnma(self, a: f32, b: f32) -> f32 {
        (-self).mul_add(a, b)
    }

    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }

    #[inline(always)]
    fn signed(self, sign: f32) -> f32 {
        self.copysign(sign)
    }

    #[inline(always)]
    fn at_most(self, most: f32) -> f32 {
        if most < self { most } else { self }
    }

    #[inline(always)]
    fn at_least(self, least: f32) -> f32 {
        if least > self { least } else { self }
    }

    #[inline(always)]
    fn less(self, other: f32) -> bool {
        self < other
    }

    #[inline(always)]
    fn or(self, mask: bool, other: f32) -> f32 {
        if mask { self } else { other }
    }

    #[inline(always)]
    fn ordered(self, other: f32) -> (f32, f32) {
        let above = self > other;
        (if above { self } else { other }, if above { other } else { self })
    }

    #[inline(always)]
    fn scaled(self, _k: f32, t: f32) -> f32 {
        // Two factors, neither of which over- or underflows; the product with the second alone rounds, and only where
        // the result is subnormal.
        let biased = t.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(254);
        let low = biased >> 1;
        self * f32::from_bits(low << 23) * f32::from_bits(biased.wrapping_sub(low) << 23)
    }

    #[inline(always)]
    fn scaled_near(self, _k: f32, t: f32) -> f32 {
        self * f32::from_bits(t.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23)
    }

    #[inline(always)]
    fn odd(self) -> bool {
        self.to_bits() & 1 != 0
    }

    #[inline(always)]
    fn turned(self, t: f32) -> f32 {
        f32::from_bits(self.to_bits() ^ (t.to_bits() & 2) << 30)
    }

    #[inline(always)]
    fn split(self) -> (f32, f32) {
        let subnormal = self < f32::MIN_POSITIVE;
        let normal = if subnormal { self * (1.0 / f32::EPSILON) } else { self };
        let bias = if subnormal { 127.0 + 23.0 } else { 127.0 };
        let u = normal.to_bits().wrapping_add(TO_ONE);
        let m = f32::from_bits((u & 0x007f_ffff).wrapping_add(SQRT_HALF));
        ((u >> 23) as i32 as f32 - bias, m)
    }

    #[inline(always)]
    fn log_ends(self, x: f32) -> f32 {
        let v = if x == f32::INFINITY { f32::INFINITY } else { self };
        let v = if x == 0.0 { f32::NEG_INFINITY } else { v };
        if x >= 0.0 { v } else { f32::NAN }
    }

    #[inline(always)]
    fn nan_of(self, x: f32) -> f32 {
        if x.is_nan() { f32::NAN } else { self }
    }
}
