//! Integers.

use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::mask::Mask;

/// Comparisons with numbers of the other signedness.
macro_rules! mixed {
    ($($(#[$doc:meta])* $name:ident = $plain:ident, $beyond:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        fn $name(a: Self, b: Self) -> Self::Mask {
            let (beyond, plain) = (Self::is_beyond(b), Self::$plain(a, b));
            // Whether it holds of a number that is beyond the range of `a`, above it if `a` is signed, else below.
            if $beyond(a.is_signed()) { plain | beyond } else { plain & !beyond }
        }
    )*};
}

/// What a row's text may say of integers.
pub(crate) trait Int:
    Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    type Mask: Mask;
    /// A constant, -1 only of signed integers; `self` says where it is wanted.
    fn c(self, value: i8) -> Self;
    /// A truth value that is the same in all lanes.
    fn mask(self, value: bool) -> Self::Mask;
    /// Whether the type has negative numbers.
    fn is_signed(self) -> bool;
    fn wrapping_add(self, b: Self) -> Self;
    fn wrapping_sub(self, b: Self) -> Self;
    fn wrapping_mul(self, b: Self) -> Self;
    fn wrapping_neg(self) -> Self;
    /// |a|, wrapping.
    fn absolute(a: Self) -> Self;
    fn maximum(a: Self, b: Self) -> Self;
    fn minimum(a: Self, b: Self) -> Self;
    /// `a << b`; 0 if `b` is negative or not less than the width.
    fn shift_left(a: Self, b: Self) -> Self;
    /// `a >> b` with the sign kept; the sign fill if `b` is negative or not less than the width.
    fn shift_right(a: Self, b: Self) -> Self;
    fn eq(a: Self, b: Self) -> Self::Mask;
    fn ne(a: Self, b: Self) -> Self::Mask;
    fn lt(a: Self, b: Self) -> Self::Mask;
    fn le(a: Self, b: Self) -> Self::Mask;
    fn gt(a: Self, b: Self) -> Self::Mask;
    fn ge(a: Self, b: Self) -> Self::Mask;
    /// Whether `a` is not 0.
    fn truth(a: Self) -> Self::Mask;
    /// `a` where the mask is set, else `b`.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;

    /// `a` if it is positive, else 0.
    #[inline(always)]
    fn relu(a: Self) -> Self {
        Self::maximum(a, a.c(0))
    }

    /// -1, 0 or 1.
    #[inline(always)]
    fn sign(a: Self) -> Self {
        let low = Self::minimum(a, a.c(1));
        if a.is_signed() { Self::maximum(low, a.c(-1)) } else { low }
    }

    /// 1 above zero, `b` at zero, 0 below.
    #[inline(always)]
    fn heaviside(a: Self, b: Self) -> Self {
        let low = Self::minimum(a, a.c(1));
        let step = if a.is_signed() { Self::maximum(low, a.c(0)) } else { low };
        Self::select(!Self::truth(a), b, step)
    }

    /// Whether the bits are those of a number that only a type of the other signedness has.
    #[inline(always)]
    fn is_beyond(a: Self) -> Self::Mask {
        if a.is_signed() { Self::lt(a, a.c(0)) } else { Self::gt(a, Self::shift_right(!a.c(0), a.c(1))) }
    }

    mixed! {
        /// Whether `a` equals `b`, whose bits are a number of the other signedness.
        eq_mixed = eq, |_signed: bool| false;
        /// Whether they differ.
        ne_mixed = ne, |_signed: bool| true;
        /// Whether `a` is less than `b`.
        lt_mixed = lt, |signed: bool| signed;
        /// Whether `a` is at most `b`.
        le_mixed = le, |signed: bool| signed;
        /// Whether `a` is greater than `b`.
        gt_mixed = gt, |signed: bool| !signed;
        /// Whether `a` is at least `b`.
        ge_mixed = ge, |signed: bool| !signed;
    }
}

/// Integer arithmetic that no text can say: only kernels have it.
pub(crate) trait IntFn: Copy {
    /// The smallest number.
    const LEAST: Self;
    /// The largest number.
    const MOST: Self;
    /// `a / b` rounded down; `MIN / -1` wraps. `b` is not 0.
    fn floor_div(a: Self, b: Self) -> Self;
    /// `a - b * floor_div(a, b)`. `b` is not 0.
    fn floor_mod(a: Self, b: Self) -> Self;
    /// `a / b` rounded towards zero; `MIN / -1` wraps. `b` is not 0.
    fn trunc_div(a: Self, b: Self) -> Self;
    /// `a - b * trunc_div(a, b)`. `b` is not 0.
    fn trunc_mod(a: Self, b: Self) -> Self;
    /// A quotient or remainder by `b`, 0 where `b` is 0.
    fn or_zero(a: Self, b: Self, divide: impl Fn(Self, Self) -> Self) -> Self;
    /// `1 / a` rounded towards zero; the largest number for 0.
    fn reciprocal(a: Self) -> Self;
    /// `a` to the power `b`, wrapping; a negative power is 0 unless `a` is ±1.
    fn power(a: Self, b: Self) -> Self;
    /// Greatest common divisor.
    fn gcd(a: Self, b: Self) -> Self;
    /// Least common multiple, wrapping, as C's integer promotion gives it: 8 and 16 bits multiply in i32, which is
    /// exact, so the magnitude wraps; 32 and 64 bits give the magnitude of the wrapped product.
    fn lcm(a: Self, b: Self) -> Self;
}

/// Division by float arithmetic, which vectorizes. It is exact: the float represents both operands, and a quotient that
/// is not an integer differs from the nearest integer by at least 1/|b|, which exceeds the rounding error of the
/// quotient (|a| <= 2^32 in f64, 2^16 in f32). Adding 1.5 times the mantissa's range leaves the integer in the low
/// bits, wrapped.
macro_rules! float_division {
    ($t:ident $float:ident) => {
        #[inline(always)]
        fn floor_div(a: $t, b: $t) -> $t {
            let magic = 1.5 / $float::EPSILON;
            ((a as $float / b as $float).floor() + magic).to_bits() as $t
        }
        #[inline(always)]
        fn trunc_div(a: $t, b: $t) -> $t {
            let magic = 1.5 / $float::EPSILON;
            ((a as $float / b as $float).trunc() + magic).to_bits() as $t
        }
        #[inline(always)]
        fn floor_mod(a: $t, b: $t) -> $t {
            a.wrapping_sub(b.wrapping_mul(<$t as IntFn>::floor_div(a, b)))
        }
        #[inline(always)]
        fn trunc_mod(a: $t, b: $t) -> $t {
            a.wrapping_sub(b.wrapping_mul(<$t as IntFn>::trunc_div(a, b)))
        }
    };
}

/// Division by the machine's division instruction.
macro_rules! whole_division {
    ($t:ident) => {
        #[inline(always)]
        #[allow(unused_comparisons, reason = "of unsigned integers none is below 0")]
        fn floor_div(a: $t, b: $t) -> $t {
            let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
            if (r != 0) & ((r < 0) != (b < 0)) { q.wrapping_sub(1) } else { q }
        }
        #[inline(always)]
        fn trunc_div(a: $t, b: $t) -> $t {
            a.wrapping_div(b)
        }
        #[inline(always)]
        #[allow(unused_comparisons, reason = "of unsigned integers none is below 0")]
        fn floor_mod(a: $t, b: $t) -> $t {
            let r = a.wrapping_rem(b);
            if (r != 0) & ((r < 0) != (b < 0)) { r.wrapping_add(b) } else { r }
        }
        #[inline(always)]
        fn trunc_mod(a: $t, b: $t) -> $t {
            a.wrapping_rem(b)
        }
    };
}

macro_rules! ints {
    ($($t:ident, $unsigned:ty, $product:ident, $division:ident $($float:ident)?, $negative:expr, $abs:expr, $size:expr);*) => {$(
        impl Int for $t {
            type Mask = bool;
            #[inline(always)]
            fn c(self, value: i8) -> $t { value as $t }
            #[inline(always)]
            fn mask(self, value: bool) -> bool { value }
            #[inline(always)]
            #[allow(unused_comparisons, reason = "of unsigned integers none is below 0")]
            fn is_signed(self) -> bool { <$t>::MIN < 0 }
            #[inline(always)]
            fn wrapping_add(self, b: $t) -> $t { <$t>::wrapping_add(self, b) }
            #[inline(always)]
            fn wrapping_sub(self, b: $t) -> $t { <$t>::wrapping_sub(self, b) }
            #[inline(always)]
            fn wrapping_mul(self, b: $t) -> $t { <$t>::wrapping_mul(self, b) }
            #[inline(always)]
            fn wrapping_neg(self) -> $t { <$t>::wrapping_neg(self) }
            #[inline(always)]
            fn absolute(a: $t) -> $t { $abs(a) }
            #[inline(always)]
            fn maximum(a: $t, b: $t) -> $t { if a > b { a } else { b } }
            #[inline(always)]
            fn minimum(a: $t, b: $t) -> $t { if a < b { a } else { b } }
            #[inline(always)]
            fn shift_left(a: $t, b: $t) -> $t {
                let inside = (b as u64) < u64::from(<$t>::BITS);
                if inside { a.wrapping_shl(b as u32) } else { 0 }
            }
            #[inline(always)]
            fn shift_right(a: $t, b: $t) -> $t {
                let inside = (b as u64) < u64::from(<$t>::BITS);
                let fill = if $negative(a) { <$t>::MAX.wrapping_mul(0).wrapping_sub(1) } else { 0 };
                if inside { a.wrapping_shr(b as u32) } else { fill }
            }
            #[inline(always)]
            fn eq(a: $t, b: $t) -> bool { a == b }
            #[inline(always)]
            fn ne(a: $t, b: $t) -> bool { a != b }
            #[inline(always)]
            fn lt(a: $t, b: $t) -> bool { a < b }
            #[inline(always)]
            fn le(a: $t, b: $t) -> bool { a <= b }
            #[inline(always)]
            fn gt(a: $t, b: $t) -> bool { a > b }
            #[inline(always)]
            fn ge(a: $t, b: $t) -> bool { a >= b }
            #[inline(always)]
            fn truth(a: $t) -> bool { a != 0 }
            #[inline(always)]
            fn select(mask: bool, a: $t, b: $t) -> $t { if mask { a } else { b } }
        }

        impl IntFn for $t {
            const LEAST: $t = <$t>::MIN;
            const MOST: $t = <$t>::MAX;
            $division!($t $($float)?);
            #[inline(always)]
            fn or_zero(a: $t, b: $t, divide: impl Fn($t, $t) -> $t) -> $t {
                let result = divide(a, if b == 0 { 1 } else { b });
                if b == 0 { 0 } else { result }
            }
            #[inline(always)]
            fn reciprocal(a: $t) -> $t {
                let unit = a == 1 || $negative(a) && a.wrapping_add(1) == 0;
                if a == 0 { <$t>::MAX } else if unit { a } else { 0 }
            }
            #[inline(always)]
            fn power(a: $t, b: $t) -> $t {
                if $negative(b) {
                    let odd = b & 1 == 1;
                    return if a == 1 { 1 } else if a.wrapping_add(1) == 0 { if odd { a } else { 1 } } else { 0 };
                }
                let (mut base, mut left, mut result) = (a, b as $unsigned, 1 as $t);
                while left > 0 {
                    if left & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                result
            }
            #[inline(always)]
            fn gcd(a: $t, b: $t) -> $t {
                let (mut a, mut b) = (a, b);
                while b != 0 {
                    (a, b) = (b, a.wrapping_rem(b));
                }
                $abs(a)
            }
            #[inline(always)]
            fn lcm(a: $t, b: $t) -> $t {
                let (common, a, b) = (<$product>::from(Self::gcd(a, b)), <$product>::from(a), <$product>::from(b));
                if common == 0 { 0 } else { $size(a.wrapping_div(common).wrapping_mul(b)) as $t }
            }
        }
    )*};
}

ints!(u8, u8, u8, float_division f32, |_: u8| false, |a: u8| a, |a: u8| a;
    u16, u16, u16, float_division f32, |_: u16| false, |a: u16| a, |a: u16| a;
    u32, u32, u32, float_division f64, |_: u32| false, |a: u32| a, |a: u32| a;
    u64, u64, u64, whole_division, |_: u64| false, |a: u64| a, |a: u64| a;
    i8, u8, i32, float_division f32, i8::is_negative, i8::wrapping_abs, i32::wrapping_abs;
    i16, u16, i32, float_division f32, i16::is_negative, i16::wrapping_abs, i32::wrapping_abs;
    i32, u32, i32, float_division f64, i32::is_negative, i32::wrapping_abs, i32::wrapping_abs;
    i64, u64, i64, whole_division, i64::is_negative, i64::wrapping_abs, i64::wrapping_abs);
