//! Kernels: the implementation of every op over contiguous elements.
//!
//! Guarantees: each kernel exists for three CPU levels (baseline, AVX2+FMA, AVX-512) and gives the same bits at each:
//! its source is one Rust expression of the op table, instantiated three times (some functions for AVX-512 are written
//! over whole vectors, in `lanes_avx512`); no kernel traps or panics on any data; NaN results of arithmetic are
//! canonical; kernels of fallible ops report an error as a status. Custom ops run here too (`custom`): for them these
//! guarantees depend on the user's functions, except those on panics and NaNs. Does not: broadcast, convert or
//! allocate. `unsafe` is allowed here because kernels take raw pointers from the driver, which proves their bounds.

#![allow(unsafe_code, reason = "kernels read and write elements through raw pointers; each block has its proof")]

use std::sync::OnceLock;

use crate::base::host::once;
use crate::ops::MAX_OPERANDS;

mod blocks;
pub(crate) mod cast;
pub(crate) mod custom;
mod double_rounding;
mod elementwise;
pub(crate) mod generate;
pub(crate) mod index;
pub(crate) mod keys;
#[cfg(target_arch = "x86_64")]
mod lanes_avx512;
pub(crate) mod num;
pub(crate) mod order;
mod philox;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod sort;
pub(crate) mod vector_call;

pub(crate) use blocks::repeat_kernel;
pub(crate) use custom::custom_kernel;
pub(crate) use double_rounding::{Hard, TINY, above_half, double_rounding_kernel, hard, rounds_twice};
pub(crate) use elementwise::{copy_kernel, fold_kernel, kernel, scan_kernels};

/// Runs an op on `n` elements: up to [`MAX_OPERANDS`] operands, a result, a status (0, or
/// that of an error).
///
/// # Safety
/// Each pointer that the op uses must be aligned to its element and valid for `n` elements (reads for operands,
/// writes for the result); the result must not overlap an operand; bool bytes must be 0 or 1.
pub(crate) type BlockFn = unsafe fn(args: [*const u8; MAX_OPERANDS], out: *mut u8, n: usize) -> u32;

/// The status of an integer division with a zero divisor.
pub(crate) const DIVIDED_BY_ZERO: u32 = 1;

/// The status of an integer power with a negative exponent.
pub(crate) const NEGATIVE_EXPONENT: u32 = 2;

/// The error of a kernel: the message of a custom function's panic, if it is text, else `None`.
pub(crate) type Refusal = Option<String>;

/// The instruction set that kernels may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuLevel {
    /// The instructions that every machine of the target has.
    Baseline,
    /// AVX2, FMA and F16C.
    Avx2,
    /// Also AVX-512 F, BW, CD, DQ and VL.
    Avx512,
}

impl CpuLevel {
    /// The highest level that this machine has and the environment variable `CASTWISE_CPU` (`baseline`, `avx2`,
    /// `avx512`) allows. Read once per process.
    pub fn get() -> CpuLevel {
        static LEVEL: OnceLock<CpuLevel> = OnceLock::new();
        *once(&LEVEL, || {
            let limit = match std::env::var("CASTWISE_CPU").as_deref() {
                Ok("baseline") => CpuLevel::Baseline,
                Ok("avx2") => CpuLevel::Avx2,
                _ => CpuLevel::Avx512,
            };
            limit.min(CpuLevel::detect())
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> CpuLevel {
        macro_rules! has { ($($f:tt)*) => { true $(&& std::arch::is_x86_feature_detected!($f))* }; }
        let avx2 = has!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt");
        let avx512 = has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl");
        match (avx2, avx512) {
            (true, true) => CpuLevel::Avx512,
            (true, false) => CpuLevel::Avx2,
            _ => CpuLevel::Baseline,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> CpuLevel {
        CpuLevel::Baseline
    }
}

/// Instantiates the body of a generic kernel for each CPU level: `levels!(binary, body, <T, F: Bin<T>>)` defines
/// `fn binary<T, F>(level) -> BlockFn`.
macro_rules! levels {
    ($name:ident, $body:ident, <$($p:ident $(: $bound:path)?),*>) => {
        pub(super) fn $name<$($p: 'static $(+ $bound)?),*>(level: $crate::kernels::CpuLevel) -> $crate::kernels::BlockFn {
            unsafe fn baseline<$($p: 'static $(+ $bound)?),*>(args: [*const u8; $crate::ops::MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
                // SAFETY: the caller keeps the contract of `BlockFn`.
                unsafe { $body::<$($p),*>(args, out, n) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn avx2<$($p: 'static $(+ $bound)?),*>(args: [*const u8; $crate::ops::MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
                // SAFETY: the caller keeps the contract of `BlockFn`.
                unsafe { $body::<$($p),*>(args, out, n) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn avx512<$($p: 'static $(+ $bound)?),*>(args: [*const u8; $crate::ops::MAX_OPERANDS], out: *mut u8, n: usize) -> u32 {
                // SAFETY: the caller keeps the contract of `BlockFn`.
                unsafe { $body::<$($p),*>(args, out, n) }
            }
            match level {
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::CpuLevel::Avx512 => avx512::<$($p),*>,
                #[cfg(target_arch = "x86_64")]
                $crate::kernels::CpuLevel::Avx2 => avx2::<$($p),*>,
                _ => baseline::<$($p),*>,
            }
        }
    };
}
pub(crate) use levels;

/// The operands of a kernel as slices.
///
/// # Safety
/// As for [`BlockFn`]; `T` is the operand's element type.
#[inline(always)]
unsafe fn slice<'a, T>(p: *const u8, n: usize) -> &'a [T] {
    // SAFETY: aligned and valid for `n` reads by the contract of `BlockFn`.
    unsafe { std::slice::from_raw_parts(p.cast(), n) }
}

/// The result of a kernel as a slice.
///
/// # Safety
/// As for [`BlockFn`]; `T` is the result's element type.
#[inline(always)]
unsafe fn slice_mut<'a, T>(p: *mut u8, n: usize) -> &'a mut [T] {
    // SAFETY: aligned, valid for `n` writes, initialised, and not overlapping an operand, by the contract.
    unsafe { std::slice::from_raw_parts_mut(p.cast(), n) }
}

/// The operands of a kernel, padded with null pointers to [`MAX_OPERANDS`].
pub(crate) fn operands<const N: usize>(given: [*const u8; N]) -> [*const u8; MAX_OPERANDS] {
    std::array::from_fn(|i| given.get(i).copied().unwrap_or(std::ptr::null()))
}

#[cfg(test)]
pub(crate) mod tests;
