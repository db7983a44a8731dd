//! Block kernels of a single vector: what compiled loops call where their own forms of a function do not hold.
//!
//! Guarantees: the results of the block kernel of the op, for every element. Does not: run where the machine has no
//! AVX-512; only the wide code generator asks for these functions.

use super::{CpuLevel, kernel, operands};
use crate::dtype::DType;
use crate::ops::Op;

/// Bytes of a vector.
const BYTES: usize = 64;

/// Computes a function of the vector at `x` into that at `y`.
///
/// # Safety
/// `x` must be valid for reads of 64 bytes that hold elements of the function's dtype, `y` for writes of as many, and they
/// must not overlap.
pub(crate) type VectorFn = unsafe extern "C" fn(x: *const u8, y: *mut u8);

/// The functions that have one.
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
        unsafe extern "C" fn $name(x: *const u8, y: *mut u8) {
            // SAFETY: passed on.
            unsafe { run(Op::$op, DType::$dtype, x, y) }
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
/// As [`VectorFn`], on a machine with AVX-512.
#[inline(always)]
unsafe fn run(op: Op, dtype: DType, x: *const u8, y: *mut u8) {
    if let Some(f) = kernel(op, dtype, CpuLevel::Avx512) {
        // SAFETY: one operand and a result that fill a vector, by this function's contract.
        unsafe { f(operands([x]), y, BYTES / dtype.size()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_has_the_results_of_the_block_kernel() {
        if CpuLevel::get() != CpuLevel::Avx512 {
            return;
        }
        let numbers = [0.5, -0.0, 399.0, 401.0, -3e9, 1e30, f64::NAN];
        for (op, dtype, f) in FUNCTIONS {
            let x: Vec<u8> = match dtype {
                DType::F32 => (0..16).flat_map(|i| (numbers[i % 7] as f32 * i as f32).to_ne_bytes()).collect(),
                _ => (0..8).flat_map(|i| (numbers[i % 7] * i as f64).to_ne_bytes()).collect(),
            };
            // Buffers of quadwords are aligned for both dtypes.
            let quad = |i: usize| u64::from_ne_bytes(std::array::from_fn(|j| x[8 * i + j]));
            let x: [u64; 8] = std::array::from_fn(quad);
            let (mut y, mut z) = ([0u64; 8], [0u64; 8]);
            // SAFETY: arrays of a vector; the kernel takes one operand and a result.
            unsafe {
                f(x.as_ptr().cast(), y.as_mut_ptr().cast());
                let kernel = kernel(op, dtype, CpuLevel::Baseline).expect("it exists");
                kernel(operands([x.as_ptr().cast()]), z.as_mut_ptr().cast(), BYTES / dtype.size());
            }
            assert_eq!(y, z, "{op} of {dtype}");
        }
    }
}
