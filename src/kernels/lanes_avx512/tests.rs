//! Compares the vector kernels with those that compute one element at a time, at the boundaries of the functions'
//! cases.

use crate::base::dtype::DType;
use crate::base::random::Random;
use crate::kernels::{CpuLevel, kernel, operands};
use crate::ops::Op;

const OPS: [Op; 6] = [Op::Log, Op::Tanh, Op::Sigmoid, Op::Silu, Op::GeluTanh, Op::Erf];

/// Runs the kernel of a level.
fn run<T: Copy + Default>(op: Op, dtype: DType, level: CpuLevel, x: &[T]) -> Vec<T> {
    let mut y = vec![T::default(); x.len()];
    let f = kernel(op, dtype, level).unwrap();
    // SAFETY: both buffers have `x.len()` elements of the dtype, and the machine has the level.
    let status = unsafe { f(operands([x.as_ptr().cast()]), y.as_mut_ptr().cast(), x.len()) };
    assert_eq!(status, 0);
    y
}

/// Arguments in f64: the ends of domains and cases with adjacent numbers, and many between them.
fn arguments() -> Vec<f64> {
    let mut r = Random(512);
    let ends = [
        0.0,
        5e-324,
        f64::MIN_POSITIVE,
        1e-40,
        1e-300,
        0.5,
        0.75,
        1.0,
        1.5,
        3.95,
        5.925,
        9.5,
        18.0,
        20.0,
        22.0,
        38.0,
        110.0,
    ];
    let far = [400.0, 760.0, 1e30, f64::from(f32::MAX), 1e300, f64::MAX, f64::INFINITY, f64::NAN];
    // The boundaries between the intervals of the error function.
    let parts = (0..16).map(|k| (f64::from(k) + 0.5) / 2.616);
    let mut all: Vec<f64> = ends.into_iter().chain(far).chain(parts).collect();
    all.extend([f64::from_bits(0x7ff0_0000_0000_0001), f64::from_bits(0x7ff8_0000_0000_0123), f64::from(0.843_75f32)]);
    all = all.iter().flat_map(|x| (-3i64..4).map(|d| f64::from_bits(x.to_bits().saturating_add_signed(d)))).collect();
    all.extend((0..20_000).map(|_| (r.next() % 10_000_000) as f64 * 1e-6));
    all.extend((0..20_000).map(|_| f64::from_bits(r.next())));
    all.iter().flat_map(|x| [*x, -x]).collect()
}

#[test]
fn whole_vectors_give_the_bits_of_single_elements() {
    if CpuLevel::detect() != CpuLevel::Avx512 {
        return;
    }
    let doubles = arguments();
    let mut singles: Vec<f32> = doubles.iter().map(|x| *x as f32).collect();
    singles.extend(doubles.iter().map(|x| f32::from_bits(x.to_bits() as u32)));
    for op in OPS {
        let bits = |level| run(op, DType::F64, level, &doubles).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        for ((a, b), x) in bits(CpuLevel::Avx512).iter().zip(bits(CpuLevel::Avx2)).zip(&doubles) {
            assert_eq!(*a, b, "{} of {x:e}, {:#x}", op.name(), x.to_bits());
        }
        let bits = |level| run(op, DType::F32, level, &singles).into_iter().map(f32::to_bits).collect::<Vec<_>>();
        for ((a, b), x) in bits(CpuLevel::Avx512).iter().zip(bits(CpuLevel::Avx2)).zip(&singles) {
            assert_eq!(*a, b, "{} of {x:e}, {:#x}", op.name(), x.to_bits());
        }
    }
}

#[test]
fn nothing_is_written_after_the_last_element() {
    if CpuLevel::detect() != CpuLevel::Avx512 {
        return;
    }
    for op in OPS {
        for n in 0..40 {
            let x = vec![0.75f64; n];
            let mut y = vec![-1.0f64; n + 16];
            let f = kernel(op, DType::F64, CpuLevel::Avx512).unwrap();
            // SAFETY: as in `run`.
            unsafe { f(operands([x.as_ptr().cast()]), y.as_mut_ptr().cast(), n) };
            assert!(y[..n].iter().all(|v| *v == run(op, DType::F64, CpuLevel::Avx512, &[0.75])[0]));
            assert!(y[n..].iter().all(|v| *v == -1.0), "{} of {n} elements", op.name());
        }
    }
}
