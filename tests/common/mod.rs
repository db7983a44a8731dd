//! Sample tensors and comparisons that several tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use castwise::prelude::*;

#[path = "../../src/base/halves.rs"]
mod halves;
pub mod levels;
#[cfg(target_arch = "x86_64")]
pub mod modes;
pub mod operands;
#[path = "../../src/base/random.rs"]
mod random;
pub mod stable;

use halves::{nearest_bf16, nearest_f16};
pub(crate) use random::Random;

thread_local! {
    /// One executor for a test thread, so that equal kernels compile once.
    pub static EXECUTOR: Executor = Executor::builder().threads(1).build();
}

/// Whether a rule set has tensors of this dtype.
pub fn has(rules: Rules, d: DType) -> bool {
    match rules {
        Rules::Torch => true,
        Rules::Paddle => !matches!(d, DType::C32 | DType::U16 | DType::U32 | DType::U64),
        _ => d != DType::C32,
    }
}

/// Whether a rule set computes in this dtype.
pub fn computes(rules: Rules, d: DType) -> bool {
    has(rules, d) && (rules == Rules::Jax || !(d.is_float() && d.size() == 1))
}

/// The number of dtypes that a rule set has.
pub fn count(rules: Rules) -> usize {
    DType::ALL.into_iter().filter(|d| has(rules, *d)).count()
}

/// The sum of what `of` gives for every rule set.
pub fn over_rules(of: impl Fn(Rules) -> usize) -> usize {
    Rules::ALL.iter().map(|rules| of(*rules)).sum()
}

/// The bytes of one random element: special values, small integers, ordinary values, or raw bit patterns.
pub fn element(d: DType, r: &mut Random, avoid_zero: bool) -> Vec<u8> {
    if d.is_complex() {
        return [element(d.real(), r, avoid_zero), element(d.real(), r, avoid_zero)].concat();
    }
    if d == DType::Bool {
        return vec![u8::from(r.below(2) == 1 || avoid_zero)];
    }
    if !d.is_float() {
        let specials = [i64::MIN, i64::MAX, -1, 1, 2, 0, 127, -128, 255];
        let raw = match r.below(3) {
            0 => specials[r.below(9) as usize],
            1 => r.below(41) as i64 - 20,
            _ => r.next() as i64,
        };
        let bytes = raw.to_le_bytes()[..d.size()].to_vec();
        return if avoid_zero && bytes.iter().all(|b| *b == 0) { vec![1; d.size()] } else { bytes };
    }
    let specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-45,
        1e-310,
        65504.0,
        1e38,
        1e300,
        0.5,
        2.5,
    ];
    let raw = r.next();
    let value = match r.below(4) {
        0 => specials[r.below(14) as usize],
        1 => r.below(4001) as f64 / 200.0 - 10.0,
        2 => (r.next() as f64 / u64::MAX as f64 - 0.5) * 8.0,
        _ => return raw.to_le_bytes()[..d.size()].to_vec(),
    };
    match d {
        DType::F8E4M3FN => vec![castwise::F8E4M3FN::from_f64(value).to_bits()],
        DType::F8E5M2 => vec![castwise::F8E5M2::from_f64(value).to_bits()],
        DType::F16 => nearest_f16(value).to_le_bytes().to_vec(),
        DType::BF16 => nearest_bf16(value).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

/// A contiguous tensor of random elements.
pub fn random_tensor(d: DType, shape: &[usize], r: &mut Random, avoid_zero: bool) -> Tensor {
    let n: usize = shape.iter().product();
    let bytes: Vec<u8> = (0..n).flat_map(|_| element(d, r, avoid_zero)).collect();
    Tensor::from_bytes(d, shape, &bytes).unwrap()
}

/// Compares dtype, shape and every bit, including those of NaNs: in both modes, arithmetic gives the canonical NaN and
/// moves preserve payloads. Prints the case if they differ.
pub fn assert_same_bits(a: &Tensor, b: &Tensor, case: &dyn Fn() -> String) {
    assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{}", case());
    let (x, y) = (a.contiguous().unwrap(), b.contiguous().unwrap());
    let (x, y) = (x.as_bytes().unwrap(), y.as_bytes().unwrap());
    let size = a.dtype().size();
    for (i, (p, q)) in x.chunks(size).zip(y.chunks(size)).enumerate() {
        assert!(p == q, "element {i}: {p:02x?} is not {q:02x?}\n{}", case());
    }
}

/// Whether the bytes of one float are a NaN.
pub fn is_nan(d: DType, b: &[u8]) -> bool {
    match d {
        DType::F8E4M3FN => b[0] & 0x7f == 0x7f,
        DType::F8E5M2 => b[0] & 0x7f > 0x7c,
        DType::F16 => half::f16::from_le_bytes([b[0], b[1]]).is_nan(),
        DType::BF16 => half::bf16::from_le_bytes([b[0], b[1]]).is_nan(),
        DType::F32 => f32::from_le_bytes([b[0], b[1], b[2], b[3]]).is_nan(),
        DType::F64 => f64::from_le_bytes(b.try_into().unwrap()).is_nan(),
        _ => false,
    }
}
