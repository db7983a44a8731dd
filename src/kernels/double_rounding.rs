//! Correction of double rounding: ops of one operand on f16 and bf16 that compute in f32.
//!
//! An op on f16 computes in f32, and its result is rounded to f16. If the f32 result, itself rounded, is equal or
//! adjacent to the midpoint of two f16 numbers, the second rounding may go the wrong way. With 65,536 arguments all
//! such cases can be listed: the table below adjusts their f32 results by an ulp before they are rounded.
//!
//! Guarantees: every f16 result of an op of one operand is the exact result, correctly rounded; the table has the
//! entries that this requires and no others (a test regenerates it from the f32 and f64 kernels, and prints it). For
//! bf16 one rule suffices: below 2^-125 the f32 results of `silu`, `gelu` and `gelu_tanh` are x / 2, which may be the
//! midpoint of two bf16 numbers; the exact results are greater by a fraction of at most 2^-125, which decides the
//! direction of the rounding. Does not: correct ops of two operands, custom or complex ops, or chains under relaxed
//! rounding, which do not round after each op.

use super::elementwise::{Bin, bin};
use super::{BlockFn, CpuLevel};
use crate::base::dtype::DType;
use crate::ops::Op;

/// The arguments of an op whose f32 results must be adjusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hard {
    /// Whether each entry holds for the argument and for its negation.
    pub(crate) both_signs: bool,
    /// The bits of the argument as f32, and the adjustment of the result in ulps: away from zero if positive.
    pub(crate) moves: &'static [(u32, i32)],
}

impl Hard {
    /// The mask of the argument's bits that are compared.
    pub(crate) const fn key_mask(both_signs: bool) -> u32 {
        if both_signs { u32::MAX >> 1 } else { u32::MAX }
    }
}

/// Whether the exact results for arguments below [`TINY`] are slightly greater than x / 2, the f32 result.
pub(crate) const fn above_half(op: Op) -> bool {
    matches!(op, Op::Silu | Op::Gelu | Op::GeluTanh)
}

/// The bits of 2^-125 as f32.
pub(crate) const TINY: u32 = 2 << 23;

/// Whether an op's f32 results are adjusted before they are rounded to this dtype.
pub(crate) fn rounds_twice(op: Op, to: DType) -> bool {
    match to {
        DType::F16 => hard(op).is_some(),
        DType::BF16 => above_half(op),
        _ => false,
    }
}

/// The f32 bits of a finite nonzero f16.
const fn widened(half: u16) -> u32 {
    let (sign, rest) = ((half as u32 & 0x8000) << 16, half as u32 & 0x7fff);
    if rest >= 0x400 {
        return sign | ((rest << 13) + (112 << 23));
    }
    // Subnormal: a multiple of 2^-24. The leading one carries into the exponent.
    let top = rest.ilog2();
    sign | ((rest << (23 - top)) + ((102 + top) << 23))
}

/// Rows `Op signs [(argument as f16, ulps)]`; `signs` is `both` if each entry holds for the argument and its negation.
macro_rules! hard {
    ($($op:ident $signs:ident [$(($half:literal, $ulps:literal)),+];)+) => {
        $(
            struct $op;

            impl $op {
                const BOTH: bool = hard!($signs);
            }

            impl Bin<f32> for $op {
                type Out = f32;
                #[inline(always)]
                fn eval(argument: f32, result: f32) -> f32 {
                    let (key, bits) = (argument.to_bits() & Hard::key_mask($op::BOTH), result.to_bits());
                    $(let bits = bits.wrapping_add_signed(if key == const { widened($half) } { $ulps } else { 0 });)+
                    if const { above_half(Op::$op) } {
                        let (size, up) = (argument.to_bits() & !(1 << 31), if argument < 0.0 { -1 } else { 1 });
                        return f32::from_bits(bits.wrapping_add_signed(if size < TINY && size != 0 { up } else { 0 }));
                    }
                    f32::from_bits(bits)
                }
            }
        )+

        /// The adjustments of an op's f32 results before they are rounded to f16; `None` if it needs none.
        pub(crate) fn hard(op: Op) -> Option<Hard> {
            let (both_signs, moves): (bool, &'static [(u32, i32)]) = match op {
                $(Op::$op => ($op::BOTH, const { &[$((widened($half), $ulps)),+] }),)+
                _ => return None,
            };
            Some(Hard { both_signs, moves })
        }

        /// The kernel that takes an op's f32 arguments and f32 results, and returns the adjusted results.
        pub(crate) fn double_rounding_kernel(op: Op, level: CpuLevel) -> Option<BlockFn> {
            match op {
                $(Op::$op => Some(bin::<f32, $op>(level)),)+
                _ => None,
            }
        }
    };
    (one) => { false };
    (both) => { true };
}

hard! {
    Exp one [(0x1f79, -1), (0x25cf, -1)];
    Expm1 one [(0x11a8, 1)];
    Log one [(0x1d78, -1)];
    Log1p one [(0x1e03, 1), (0x9dfd, -1)];
    Sin both [(0x32b3, 1), (0x5cb0, -1)];
    Cos both [(0x2b7c, 1)];
    Tan both [(0x2894, 1), (0x55ed, -1), (0x774a, 1)];
    Sigmoid one [(0x1a00, -1), (0x1f00, -1), (0x2180, -1), (0x9600, 1), (0x9b00, 1), (0x9d80, 1), (0x9f80, 1)];
    Erf both [(0x1612, -1)];
    Exp2 one [(0x11c5, 1)];
    Log10 one [(0x338f, -1), (0x33f8, 1), (0x57e1, -1), (0x69d0, 1), (0x719d, -1)];
    Cbrt both [(0x0551, 1), (0x1151, 1), (0x1d51, 1), (0x2951, 1), (0x3551, 1), (0x4151, 1), (0x4d51, 1), (0x5951, 1), (0x6551, 1), (0x7151, 1)];
    Acos one [(0x804b, 1), (0xacaf, -1), (0xb874, 1)];
    Atan both [(0x2745, 1), (0x32b5, 1), (0x466e, 1)];
    Sinh both [(0x40f2, 1)];
    Cosh both [(0x2800, 1)];
    Asinh both [(0x32bd, 1), (0x4b1f, -1), (0x5c0a, -1)];
    Acosh one [(0x3ce4, 1)];
    Erfc one [(0x0b17, -1), (0x8f17, 1)];
    Silu one [(0x0001, 1), (0xc173, -1)];
    Gelu one [(0x0001, 1)];
    GeluTanh one [(0x0001, 1), (0x157c, -1), (0x35a7, 1), (0x957c, 1), (0xb5a7, -1)];
    Softplus one [(0x8430, -1)];
}

#[cfg(test)]
mod tests;
