//! What the functions of [`super::inline`] compute with: a float, or a vector register of a compiled loop.
//!
//! A function written over [`Lane`] is compiled by rustc into the block kernels, and run once by the wide code generator
//! to have its instructions written into a loop. So there is one text of each function, and the bits are those of its
//! operations, all of which IEEE 754 or this file defines. Guarantees: no operation branches, and none but
//! [`Table::chosen`] looks anything up. Does not: hold functions.

use super::{exp, log};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A float. `ROUND` below is `1.5·2^23` for single precision and `1.5·2^52` for double: adding it to a small number
/// leaves the nearest integer in the low bits of the significand.
pub(crate) trait Lane:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The type of constants.
    type Num: Copy;
    /// A truth value.
    type Mask: Copy;
    /// A bit that picks one of two constants.
    type Bit: Copy;
    /// A constant; `self` says where it is wanted.
    fn c(self, value: Self::Num) -> Self;
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
    fn at_most(self, most: Self::Num) -> Self;
    /// `least` where that is larger; a NaN stays.
    fn at_least(self, least: Self::Num) -> Self;
    /// `self < other`.
    fn less(self, other: Self) -> Self::Mask;
    /// `self` where the mask is set, else `other`.
    fn or(self, mask: Self::Mask, other: Self) -> Self;
    /// `self·2^k`, rounded once, for a whole `k` from -252 to 254 (of double precision, from -2044 to 2046), given as
    /// itself and as `t = k + ROUND`.
    fn scaled(self, k: Self, t: Self) -> Self;
    /// `2^k`, a normal number, of `k + ROUND + BIAS`, where `BIAS` is what a stored exponent has more than it says.
    fn power(self) -> Self;
    /// Whether the whole number is odd that `self` holds, as `t` above.
    fn odd(self) -> Self::Mask;
    /// The lowest bit of the whole number that `self` holds, as `t` above.
    fn lowest(self) -> Self::Bit;
    /// The sign, set if `self` is below 0.
    fn sign(self) -> Self::Bit;
    /// The polynomial with coefficients `c`, lowest first.
    #[inline(always)]
    fn horner<const N: usize>(self, c: [Self::Num; N]) -> Self {
        let mut v = self.c(c[N - 1]);
        for i in (0..N - 1).rev() {
            v = v.fma(self, self.c(c[i]));
        }
        v
    }
    /// The polynomial of `self` with the coefficients `set` where the mask and the bit are set, which say the same; else that
    /// of `other` with `clear`.
    fn picked<const N: usize, const M: usize>(
        self,
        by: (Self::Mask, Self::Bit),
        set: [Self::Num; N],
        other: Self,
        clear: [Self::Num; M],
    ) -> Self;
    /// `self`, negated where the whole number of `t` is 2 or 3 in remainders of 4.
    fn turned(self, t: Self) -> Self;
    /// A positive finite number as `(k, m)`: `2^k·m` with `m` from ¾ up to 1½.
    fn split(self) -> (Self, Self);
    /// `self`, which is the logarithm of `x` if `x` is positive and finite; -∞ for a zero `x`, NaN for what is below,
    /// +∞ for +∞. A NaN is the canonical one, or is made so later.
    fn log_ends(self, x: Self) -> Self;
    /// `self`, or a NaN where `x` is NaN. It is the canonical one, or is made so later; `self` is NaN there already.
    fn nan_of(self, x: Self) -> Self;
}

/// A [`Lane`] that can look numbers up.
pub(crate) trait Table: Lane {
    /// The number of the table that the four lowest bits of the whole number say that `self` holds, as `t` above.
    fn chosen(self, table: &'static [Self::Num; 16]) -> Self;
}

impl Table for f64 {
    #[inline(always)]
    fn chosen(self, table: &'static [f64; 16]) -> f64 {
        table[(self.to_bits() & 15) as usize]
    }
}

macro_rules! number {
    ($float:ident, $bits:ident, $round:expr, $split:path, $ends:path) => {
        impl Lane for $float {
            type Num = $float;
            type Mask = bool;
            type Bit = bool;

            #[inline(always)]
            fn c(self, value: $float) -> $float {
                value
            }

            #[inline(always)]
            fn fma(self, a: $float, b: $float) -> $float {
                self.mul_add(a, b)
            }

            #[inline(always)]
            fn fms(self, a: $float, b: $float) -> $float {
                self.mul_add(a, -b)
            }

            #[inline(always)]
            fn fnma(self, a: $float, b: $float) -> $float {
                (-self).mul_add(a, b)
            }

            #[inline(always)]
            fn abs(self) -> $float {
                $float::abs(self)
            }

            #[inline(always)]
            fn signed(self, sign: $float) -> $float {
                self.copysign(sign)
            }

            #[inline(always)]
            fn at_most(self, most: $float) -> $float {
                if most < self { most } else { self }
            }

            #[inline(always)]
            fn at_least(self, least: $float) -> $float {
                if least > self { least } else { self }
            }

            #[inline(always)]
            fn less(self, other: $float) -> bool {
                self < other
            }

            #[inline(always)]
            fn or(self, mask: bool, other: $float) -> $float {
                if mask { self } else { other }
            }

            #[inline(always)]
            fn scaled(self, _k: $float, t: $float) -> $float {
                // Two factors, neither of which over- or underflows; the product with the second alone rounds, and only
                // where the result is subnormal.
                const TWICE: $bits = 2 * ($float::MAX_EXP as $bits - 1);
                let biased = t.to_bits().wrapping_sub($float::to_bits($round)).wrapping_add(TWICE);
                let low = biased >> 1;
                let power = |n: $bits| $float::from_bits(n << ($float::MANTISSA_DIGITS - 1));
                self * power(low) * power(biased.wrapping_sub(low))
            }

            #[inline(always)]
            fn power(self) -> $float {
                $float::from_bits(self.to_bits() << ($float::MANTISSA_DIGITS - 1))
            }

            #[inline(always)]
            fn odd(self) -> bool {
                self.to_bits() & 1 != 0
            }

            #[inline(always)]
            fn lowest(self) -> bool {
                self.odd()
            }

            #[inline(always)]
            fn sign(self) -> bool {
                self.is_sign_negative()
            }

            #[inline(always)]
            fn picked<const N: usize, const M: usize>(
                self,
                (mask, _): (bool, bool),
                set: [$float; N],
                other: $float,
                clear: [$float; M],
            ) -> $float {
                // rustc's loops take longer to choose each coefficient.
                let (set, clear) = (self.horner(set), other.horner(clear));
                if mask { set } else { clear }
            }

            #[inline(always)]
            fn turned(self, t: $float) -> $float {
                $float::from_bits(self.to_bits() ^ (t.to_bits() & 2) << ($bits::BITS - 2))
            }

            #[inline(always)]
            fn split(self) -> ($float, $float) {
                $split(self, $float::to_bits(0.75))
            }

            #[inline(always)]
            fn log_ends(self, x: $float) -> $float {
                $ends(x, self)
            }

            #[inline(always)]
            fn nan_of(self, x: $float) -> $float {
                if x.is_nan() { $float::NAN } else { self }
            }
        }
    };
}

number!(f32, u32, exp::single::ROUND, log::single::split_from, log::single::finish);
number!(f64, u64, exp::double::ROUND, log::double::split_from, log::double::finish);

/// [`Lane::log_ends`] for `vfixupimmps`: what it gives for each class of its operand, four bits a class.
pub(crate) const LOG_ENDS: u64 = {
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
