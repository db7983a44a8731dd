//! All kernels that this machine can run give the same bits at the three CPU levels.

use super::{CpuLevel, cast, kernel, operands};
use crate::base::dtype::DType;
use crate::base::random::Random;
use crate::ops::Op;

pub(crate) mod pages;

/// Random valid elements of a dtype.
fn sample(d: DType, n: usize, seed: u64) -> Vec<u128> {
    let mut r = Random(seed);
    let mut words: Vec<u128> = (0..n).map(|_| u128::from(r.next()) << 64 | u128::from(r.next())).collect();
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    match d {
        DType::Bool => bytes.iter_mut().for_each(|b| *b &= 1),
        // Ordinary magnitudes in half of the elements, raw bits in the others.
        DType::F32 | DType::C64 => bytemuck::cast_slice_mut::<u8, f32>(bytes).iter_mut().step_by(2).for_each(|x| {
            *x = (x.to_bits() % 4000) as f32 / 200.0 - 10.0;
        }),
        DType::F64 | DType::C128 => bytemuck::cast_slice_mut::<u8, f64>(bytes).iter_mut().step_by(2).for_each(|x| {
            *x = (x.to_bits() % 4000) as f64 / 200.0 - 10.0;
        }),
        // No zero divisors.
        _ => bytes.iter_mut().for_each(|b| *b |= 1),
    }
    words
}

fn levels() -> Vec<CpuLevel> {
    let best = CpuLevel::detect();
    [CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512].into_iter().filter(|l| *l <= best).collect()
}

/// The results of an op's kernel at each level; elements are given and returned as bits.
pub(crate) fn results(op: Op, dtype: DType, operands_of: &[(DType, Vec<u128>)]) -> Vec<(CpuLevel, Vec<u128>)> {
    let n = operands_of[0].1.len();
    let packed = |(d, bits): &(DType, Vec<u128>)| -> Vec<u128> {
        let mut words = vec![0u128; n];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        for (to, bits) in bytes.chunks_mut(d.size()).zip(bits) {
            to.copy_from_slice(&bits.to_le_bytes()[..d.size()]);
        }
        words
    };
    let args: Vec<Vec<u128>> = operands_of.iter().map(packed).collect();
    let size = op.result(dtype).size();
    let run = |level| {
        let mut out = vec![0u128; n];
        let all =
            operands([0, 1, 2, 3].map(|i: usize| args.get(i).map_or(std::ptr::null(), |a| a.as_ptr().cast::<u8>())));
        // SAFETY: every buffer has 16 bytes an element, which is the most; bools are 0 or 1.
        unsafe { kernel(op, dtype, level).unwrap()(all, out.as_mut_ptr().cast(), n) };
        let element = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, b| bits << 8 | u128::from(*b));
        bytemuck::cast_slice::<u128, u8>(&out).chunks(size).take(n).map(element).collect()
    };
    levels().into_iter().map(|level| (level, run(level))).collect()
}

/// Runs a kernel on `n` elements at each level and compares the bytes of the results.
fn same_bits(name: &str, at: &dyn Fn(CpuLevel) -> super::BlockFn, args: &[Vec<u128>; 4], n: usize) {
    let run = |level| {
        let mut out = vec![0u128; n];
        let args = operands([0, 1, 2, 3].map(|i: usize| args[i].as_ptr().cast::<u8>()));
        // SAFETY: every buffer has 16 bytes per element, which is the maximum; bools are 0 or 1.
        unsafe { at(level)(args, out.as_mut_ptr().cast(), n) };
        out
    };
    let all = levels();
    let base = run(all[0]);
    for level in &all[1..] {
        assert!(run(*level) == base, "{name} at {level:?} differs from the baseline");
    }
}

#[test]
fn every_kernel_has_the_same_bits_at_every_level() {
    let n = 515;
    for d in DType::ALL {
        let args = [1, 2, 3, 4].map(|seed| sample(d, n, seed));
        for op in Op::ALL {
            if kernel(*op, d, CpuLevel::Baseline).is_some() {
                let mut args = args.clone();
                if *op == Op::Where {
                    args[0] = sample(DType::Bool, n, 5);
                }
                let at = |level| kernel(*op, d, level).unwrap();
                same_bits(&format!("{op} of {d}"), &at, &args, n);
            }
        }
        for to in DType::ALL {
            if cast::kernel(d, to, CpuLevel::Baseline).is_some() {
                same_bits(&format!("{d} to {to}"), &|level| cast::kernel(d, to, level).unwrap(), &args, n);
            }
        }
    }
}

/// Compares integer division with 128-bit arithmetic.
fn check_division<T: super::num::IntFn + Copy + PartialEq + std::fmt::Debug>(a: i128, b: i128, to: impl Fn(i128) -> T) {
    use super::num::IntFn;
    let (x, y) = (to(a), to(b));
    let floor = a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0);
    assert_eq!(IntFn::floor_div(x, y), to(floor), "{a} // {b}");
    assert_eq!(IntFn::floor_mod(x, y), to(a - b * floor), "{a} mod {b}");
    assert_eq!(IntFn::trunc_div(x, y), to(a / b), "{a} / {b}");
    assert_eq!(IntFn::trunc_mod(x, y), to(a % b), "{a} rem {b}");
}

#[test]
fn integer_division_is_exact() {
    for a in -128..128i128 {
        for b in (-128..128i128).filter(|b| *b != 0) {
            check_division(a, b, |v| v as i8);
            if b > -128 {
                check_division(a + 128, b + 128, |v| v as u8);
            }
        }
    }
    let edges = |bits: u32| {
        let powers = (0..bits).flat_map(move |k| [-1i128, 0, 1].map(|d| (1i128 << k) + d));
        powers.flat_map(|v| [v, -v]).filter(move |v| *v >= -(1 << (bits - 1)) && *v < 1 << (bits - 1))
    };
    for a in edges(16) {
        (-32768..32768i128).filter(|b| *b != 0).for_each(|b| check_division(a, b, |v| v as i16));
        edges(16).filter(|b| *b != 0).for_each(|b| check_division(a * 7 % 32768, b, |v| v as i16));
    }
    let positive = |bits: u32| {
        (0..=bits).flat_map(|k| [-1i128, 0, 1].map(|d| (1i128 << k) + d)).filter(move |v| *v > 0 && *v < 1 << bits)
    };
    for a in 0..65536i128 {
        positive(16).for_each(|b| check_division(a, b, |v| v as u16));
        check_division(a * 7 % 65536, a | 1, |v| v as u16);
    }
    for a in positive(32) {
        positive(32).for_each(|b| check_division(a, b, |v| v as u32));
    }
    for a in positive(64) {
        positive(64).for_each(|b| check_division(a, b, |v| v as u64));
    }
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 32) as i32
    };
    for a in edges(32) {
        for b in edges(32).filter(|b| *b != 0) {
            check_division(a, b, |v| v as i32);
        }
        for _ in 0..1000 {
            let (c, k) = (i128::from(next()), i128::from(next() >> 16));
            if c != 0 {
                check_division(a, c, |v| v as i32);
                check_division(i128::from(a as u32), i128::from(c as u32), |v| v as u32);
                // Quotients next to integers.
                for d in [-1, 0, 1] {
                    check_division(i128::from((c * k + d) as i32), c, |v| v as i32);
                }
            }
        }
    }
    for a in edges(64) {
        edges(64).filter(|b| *b != 0).for_each(|b| check_division(a, b, |v| v as i64));
    }
}
