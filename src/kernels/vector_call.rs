//! Kernels for a single vector, which compiled loops call for arguments outside the domain of their inline code.
//!
//! Guarantees: the results of the op's kernel, for every element. Does not: know the vector length; only the x64 back
//! end calls these functions.

use super::{CpuLevel, kernel, operands};
use crate::base::dtype::DType;
use crate::ops::Op;

/// Computes a function of the vector at `x` and stores the result at `y`.
///
/// # Safety
/// `x` must be valid for reads of `bytes` bytes, which hold elements of the function's dtype, `y` for writes of as
/// many, and they must not overlap.
pub(crate) type VectorFn = unsafe extern "C" fn(x: *const u8, y: *mut u8, bytes: usize);

/// The ops and dtypes that have such a kernel.
pub(crate) const FUNCTIONS: [(Op, DType, VectorFn); 4] = [
    (Op::Sin, DType::F32, sin_f32),
    (Op::Cos, DType::F32, cos_f32),
    (Op::Sin, DType::F64, sin_f64),
    (Op::Cos, DType::F64, cos_f64),
];

macro_rules! functions {
    ($($name:ident = $op:ident $dtype:ident;)*) => {$(
        /// # Safety
        /// As [`VectorFn`].
        unsafe extern "C" fn $name(x: *const u8, y: *mut u8, bytes: usize) {
            // SAFETY: passed on.
            unsafe { run(Op::$op, DType::$dtype, x, y, bytes) }
        }
    )*};
}

functions! {
    sin_f32 = Sin F32;
    cos_f32 = Cos F32;
    sin_f64 = Sin F64;
    cos_f64 = Cos F64;
}

/// # Safety
/// As [`VectorFn`].
#[inline(always)]
unsafe fn run(op: Op, dtype: DType, x: *const u8, y: *mut u8, bytes: usize) {
    if let Some(f) = kernel(op, dtype, CpuLevel::get()) {
        // SAFETY: one operand and a result that fill a vector, by this function's contract, at the machine's level.
        unsafe { f(operands([x]), y, bytes / dtype.size()) };
    }
}

#[cfg(test)]
mod tests;
