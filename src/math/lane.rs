//! [`Lane`], the trait over which the functions of [`super::inline`] are generic: a float, or a vector register of a
//! compiled loop.
//!
//! rustc compiles a function over [`Lane`] into kernels, and the x64 back end runs it once to record its instructions
//! for a compiled loop. So each function has one source, and its bits follow from its operations, all of which IEEE 754
//! or this file defines. Guarantees: no operation branches, and only [`Table::chosen`] looks up a table. Does not:
//! contain functions.

use super::{exp, log};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A float or a vector of floats. `ROUND` below is `1.5·2^23` for single precision and `1.5·2^52` for double: adding it
/// to a small number leaves the nearest integer in the low bits of the significand.
pub(crate) trait Lane:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The type of constants.
    type Num: Copy;
    /// A condition.
    type Mask: Copy;
    /// A condition in the form of one bit, for the choice between two constants.
    type Bit: Copy;
    /// A constant. `self` only provides the context.
    fn c(self, value: Self::Num) -> Self;
    /// `self·a + b`, rounded once.
    fn fma(self, a: Self, b: Self) -> Self;
    /// `self·a - b`, rounded once.
    fn fms(self, a: Self, b: Self) -> Self;
    /// `b - self·a`, rounded once.
    fn fnma(self, a: Self, b: Self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The non-negative `self` with the sign of `sign`.
    fn signed(self, sign: Self) -> Self;
    /// The smaller of `self` and `most`; a NaN is preserved.
    fn at_most(self, most: Self::Num) -> Self;
    /// The larger of `self` and `least`; a NaN is preserved.
    fn at_least(self, least: Self::Num) -> Self;
    /// `self < other`.
    fn less(self, other: Self) -> Self::Mask;
    /// `self` where the mask is set, else `other`.
    fn or(self, mask: Self::Mask, other: Self) -> Self;
    /// `self·2^k`, rounded once, for an integer `k` from -252 to 254 (in double precision, from -2044 to 2046), given
    /// as `k` and as `t = k + ROUND`.
    fn scaled(self, k: Self, t: Self) -> Self;
    /// `2^k`, a normal number, where `self` is `k + ROUND + BIAS` and `BIAS` is the exponent bias.
    fn power(self) -> Self;
    /// Whether the integer in the low bits of `self`, in the form of `t` above, is odd.
    fn odd(self) -> Self::Mask;
    /// The lowest bit of the integer in the low bits of `self`, in the form of `t` above.
    fn lowest(self) -> Self::Bit;
    /// The sign bit, set if `self` is below 0.
    fn sign(self) -> Self::Bit;
    /// The value at `self` of the polynomial with coefficients `c`, lowest first.
    #[inline(always)]
    fn horner<const N: usize>(self, c: [Self::Num; N]) -> Self {
        let mut v = self.c(c[N - 1]);
        for i in (0..N - 1).rev() {
            v = v.fma(self, self.c(c[i]));
        }
        v
    }
    /// The value at `self` of the polynomial with the coefficients `set` where the condition holds, else the value at
    /// `other` of the polynomial with `clear`. `by` holds the same condition as a mask and as a bit.
    fn picked<const N: usize, const M: usize>(
        self,
        by: (Self::Mask, Self::Bit),
        set: [Self::Num; N],
        other: Self,
        clear: [Self::Num; M],
    ) -> Self;
    /// `self`, negated where the integer of `t` is 2 or 3 modulo 4.
    fn turned(self, t: Self) -> Self;
    /// A positive finite number as `(k, m)`: `2^k·m` with `m` from ¾ up to 1½.
    fn split(self) -> (Self, Self);
    /// The logarithm of any `x`, given `self`, the logarithm of a positive finite `x`: -∞ for zero, NaN below zero, +∞
    /// for +∞. A NaN is canonical or is canonicalized later.
    fn log_ends(self, x: Self) -> Self;
    /// `self`, or a NaN where `x` is NaN. That NaN is canonical or is canonicalized later; `self` must be NaN there
    /// already.
    fn nan_of(self, x: Self) -> Self;
}

/// A [`Lane`] with table lookup.
pub(crate) trait Table: Lane {
    /// The table's entry at the index in the four lowest bits of the integer that `self` holds, in the form of `t`
    /// above.
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
            fn sqrt(self) -> $float {
                $float::sqrt(self)
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
                // Two factors, neither of which overflows or underflows. Only the second product rounds, and only if
                // the result is subnormal.
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
                // In the loops that rustc compiles, selecting each coefficient would take longer.
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

/// The table of `vfixupimmps` for [`Lane::log_ends`]: the response for each class of the operand, four bits per class.
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
