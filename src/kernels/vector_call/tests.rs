//! Compares the functions that compiled loops call with the ops' kernels.

use super::*;

#[test]
fn a_vector_has_the_results_of_the_kernel() {
    let numbers = [0.5, -0.0, 399.0, 401.0, -3e9, 1e30, f64::NAN];
    for (op, dtype, f) in FUNCTIONS {
        let x: Vec<u8> = match dtype {
            DType::F32 => (0..16).flat_map(|i| (numbers[i % 7] as f32 * i as f32).to_ne_bytes()).collect(),
            _ => (0..8).flat_map(|i| (numbers[i % 7] * i as f64).to_ne_bytes()).collect(),
        };
        // Buffers of quadwords are aligned for both dtypes.
        let quad = |i: usize| u64::from_ne_bytes(std::array::from_fn(|j| x[8 * i + j]));
        let x: [u64; 8] = std::array::from_fn(quad);
        for bytes in [32, 64] {
            let (mut y, mut z) = ([0u64; 8], [0u64; 8]);
            // SAFETY: arrays of at least a vector; the kernel takes one operand and a result.
            unsafe {
                f(x.as_ptr().cast(), y.as_mut_ptr().cast(), bytes);
                let kernel = kernel(op, dtype, CpuLevel::Baseline).expect("it exists");
                kernel(operands([x.as_ptr().cast()]), z.as_mut_ptr().cast(), bytes / dtype.size());
            }
            assert_eq!(y, z, "{op} of {dtype}");
        }
    }
}
