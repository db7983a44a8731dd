//! Block kernels of a single vector: what compiled loops call where their own forms of a function do not hold.
//!
//! Guarantees: the results of the block kernel of the op, for every element. Does not: run where the machine has no
//! AVX-512; only the wide code generator asks for these functions.

use super::{CpuLevel, kernel, operands};
use crate::dtype::DType;
use crate::ops::Op;

/// Elements of a vector.
const LANES: usize = 16;

/// Computes a function of `x` into `y`.
///
/// # Safety
/// `x` must be valid for reads of 16 elements, `y` for writes of as many, and they must not overlap.
pub(crate) type VectorFn = unsafe extern "C" fn(x: *const f32, y: *mut f32);

/// The functions that have one.
pub(crate) const FUNCTIONS: [(Op, VectorFn); 2] = [(Op::Sin, sin), (Op::Cos, cos)];

/// # Safety
/// As [`VectorFn`].
unsafe extern "C" fn sin(x: *const f32, y: *mut f32) {
    // SAFETY: passed on.
    unsafe { run(Op::Sin, x, y) }
}

/// # Safety
/// As [`VectorFn`].
unsafe extern "C" fn cos(x: *const f32, y: *mut f32) {
    // SAFETY: passed on.
    unsafe { run(Op::Cos, x, y) }
}

/// # Safety
/// As [`VectorFn`], on a machine with AVX-512.
#[inline(always)]
unsafe fn run(op: Op, x: *const f32, y: *mut f32) {
    if let Some(f) = kernel(op, DType::F32, CpuLevel::Avx512) {
        // SAFETY: one operand and a result of `LANES` elements of f32, by this function's contract.
        unsafe { f(operands([x.cast()]), y.cast(), LANES) };
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
        let x: [f32; LANES] =
            std::array::from_fn(|i| [0.5, -0.0, 399.0, 401.0, -3e9, 1e30, f32::NAN][i % 7] * i as f32);
        for (op, f) in FUNCTIONS {
            let (mut y, mut z) = ([0f32; LANES], [0f32; LANES]);
            // SAFETY: arrays of `LANES` elements; the kernel takes one operand and a result.
            unsafe {
                f(x.as_ptr(), y.as_mut_ptr());
                let kernel = kernel(op, DType::F32, CpuLevel::Baseline).expect("it exists");
                kernel(operands([x.as_ptr().cast()]), z.as_mut_ptr().cast(), LANES);
            }
            assert_eq!(y.map(f32::to_bits), z.map(f32::to_bits), "{op}");
        }
    }
}
