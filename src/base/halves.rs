//! The f16 and the bf16 nearest to an f64.
//!
//! Guarantees: a number is rounded once, to nearest, ties to even, and NaN gives the canonical NaN, on every machine.
//! The `from_f64` of the crate `half` rounds twice or drops low bits, depending on the machine; `clippy.toml` forbids
//! it. Does not: convert arrays; that is the task of `kernels::cast`, and of loops.
#![allow(dead_code, reason = "each file that includes this one uses a part of it")]

use half::{bf16, f16};

/// The nearest f16.
pub(crate) fn nearest_f16(a: f64) -> f16 {
    f16::from_f32(to_odd(a))
}

/// The nearest bf16.
pub(crate) fn nearest_bf16(a: f64) -> bf16 {
    bf16::from_f32(to_odd(a))
}

/// f64 to f32, rounded to odd: truncated, with the last bit set if the result is inexact. Rounding this result to fewer
/// bits gives the same as rounding the f64 itself. NaN gives the canonical NaN.
#[inline(always)]
pub(crate) fn to_odd(a: f64) -> f32 {
    let near = a as f32;
    let back = f64::from(near);
    let bits = near.to_bits();
    let down = if back.abs() > a.abs() { bits.wrapping_sub(1) } else { bits };
    let odd = if back != a { down | 1 } else { down };
    if a.is_nan() { f32::NAN } else { f32::from_bits(odd) }
}
