//! Floats of eight bits.
//!
//! Guarantees: conversions to f32 and f64 are exact; conversions from them round once, to nearest, ties to even.
//! Sources: the formats E4M3 and E5M2 of "OCP 8-bit Floating Point Specification", of which E4M3 is called `e4m3fn`
//! (finite, with NaNs) elsewhere. Does not: compute.

use std::fmt;

use super::halves::to_odd;

macro_rules! f8 {
    (
        $(#[$doc:meta])*
        $name:ident: $fraction:literal bits of fraction, bias $bias:literal, $top:literal is the largest magnitude,
        NaN $nan:literal
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// Bits of an f32's fraction below those of this format.
            const CUT: u32 = 23 - $fraction;
            /// By how much the exponents' biases differ.
            const REBIAS: u32 = 127 - $bias;

            /// The number with these bits.
            #[inline(always)]
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits)
            }

            /// The bits: the sign, the exponent, the fraction.
            #[inline(always)]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The number as an f32, exactly.
            #[inline(always)]
            pub fn to_f32(self) -> f32 {
                let (sign, magnitude) = (u32::from(self.0 & 0x80) << 24, u32::from(self.0 & 0x7f));
                // Subnormal numbers by their integer: scaling them as a subnormal f32 is slow on many processors.
                let unit = f32::from_bits((127 + 1 - $bias - $fraction) << 23);
                let subnormal = magnitude as i32 as f32 * unit;
                let normal = f32::from_bits((magnitude << Self::CUT) + (Self::REBIAS << 23));
                let finite = if magnitude < 1 << $fraction { subnormal } else { normal };
                let number = if magnitude >= $top && Self::IS_INFINITE { f32::INFINITY } else { finite };
                let signed = f32::from_bits(number.to_bits() | sign);
                if magnitude > $top { f32::NAN } else { signed }
            }

            /// The bits of the nearest number, ties to even. What is beyond the largest one gives the largest one, or the
            /// infinity if there is one; or, if there is none and `to_nan` is set, a NaN.
            #[inline(always)]
            pub(crate) fn nearest(a: f32, to_nan: bool) -> u8 {
                let (bits, sign) = (a.to_bits() & 0x7fff_ffff, (a.to_bits() >> 24) as u8 & 0x80);
                // Normal results: rebias the exponent and round off the low bits.
                let odd = bits >> Self::CUT & 1;
                let round = (1 << (Self::CUT - 1)) - 1 + odd;
                let normal = bits.wrapping_add(round).wrapping_sub(Self::REBIAS << 23) >> Self::CUT;
                // Subnormal results: adding a power of two whose last bit is that of the result rounds it.
                let unit = f32::from_bits((127 + 23 + 1 - $bias - $fraction) << 23);
                let subnormal = (f32::from_bits(bits) + unit).to_bits().wrapping_sub(unit.to_bits());
                let finite = if bits < (Self::REBIAS + 1) << 23 { subnormal } else { normal };
                let most = if Self::IS_INFINITE || !to_nan { $top } else { $nan };
                let magnitude = if finite > most { most } else { finite };
                if bits > 0x7f80_0000 { $nan } else { magnitude as u8 | sign }
            }

            /// Whether there are infinities.
            const IS_INFINITE: bool = $top & ((1 << $fraction) - 1) == 0;

            /// The nearest number, ties to even. What is beyond the largest one gives the largest one, or the infinity if
            /// there is one.
            pub fn from_f32(a: f32) -> $name {
                $name(Self::nearest(a, false))
            }

            /// The same of an f64, rounded once.
            pub fn from_f64(a: f64) -> $name {
                $name(Self::nearest(to_odd(a), false))
            }

            /// The number as an f64, exactly.
            pub fn to_f64(self) -> f64 {
                self.to_f32().into()
            }
        }

        /// As of other floats: zeros are equal, and a NaN equals nothing.
        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<std::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    };
}

f8! {
    /// A float of eight bits with three bits of fraction: from 2^-9 to 448, without infinities.
    ///
    /// ```
    /// use castwise::F8E4M3FN;
    /// assert_eq!(F8E4M3FN::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(F8E4M3FN::from_f32(1e9).to_f32(), 448.0);
    /// ```
    F8E4M3FN: 3 bits of fraction, bias 7, 0x7e is the largest magnitude, NaN 0x7f
}

f8! {
    /// A float of eight bits with two bits of fraction: from 2^-16 to 57344, and infinities.
    ///
    /// ```
    /// use castwise::F8E5M2;
    /// assert_eq!(F8E5M2::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(F8E5M2::from_f32(1e9).to_f32(), f32::INFINITY);
    /// ```
    F8E5M2: 2 bits of fraction, bias 15, 0x7c is the largest magnitude, NaN 0x7e
}
