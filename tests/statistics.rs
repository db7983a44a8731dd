//! Random numbers have the moments, frequencies and independence of their distributions.
//!
//! `CASTWISE_RANDOM` is how many numbers of each are made (2^16 by default), and `CASTWISE_SEED` the seed. Every statistic is
//! divided by its standard deviation; beyond 6, a thing of one in 10^9, the test fails. Does not: check bits; `kernels::generate` does.

use castwise::{Generator, Key, prelude::*};

/// Numbers that are made at a time.
const BATCH: usize = 1 << 16;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().unwrap())
}

/// What fails beyond 6.
fn within(what: &str, statistic: f64) {
    assert!(statistic.abs() < 6.0, "{what}: {statistic} standard deviations");
}

/// Calls `f` with all numbers of a generator, as f64, batch by batch.
fn each(g: impl Fn(Key) -> Generator, stream: u64, mut f: impl FnMut(&[f64])) -> f64 {
    let (seed, count) = (setting("CASTWISE_SEED", 1), setting("CASTWISE_RANDOM", 1 << 16) as usize);
    let batches = count.div_ceil(BATCH);
    let like = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::Bool, [BATCH]).unwrap());
    for batch in 0..batches as u64 {
        let key = Key { seed, stream: stream << 32 | batch };
        f(&like.generate(g(key)).cast(DType::F64).result().unwrap().to_vec::<f64>().unwrap());
    }
    (batches * BATCH) as f64
}

/// How far counts are from equal frequencies: chi-square, made normal.
fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let sum: f64 = counts.iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum();
    let freedom = (counts.len() - 1) as f64;
    (sum - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn uniform_numbers_fill_their_range_evenly_and_are_independent() {
    for (stream, dtype, bits) in [(1, DType::F32, 24), (2, DType::F64, 53), (3, DType::F16, 11), (4, DType::BF16, 8)] {
        let mut top = vec![0u64; 256];
        let mut low = vec![0u64; 256];
        let (mut sum, mut lags) = (0.0, [0.0; 8]);
        let n = each(
            |key| Generator::Uniform { key, dtype: Some(dtype) },
            stream,
            |all| {
                for (i, u) in all.iter().enumerate() {
                    assert!((0.0..1.0).contains(u));
                    top[(u * 256.0) as usize] += 1;
                    low[(u * 2f64.powi(bits)) as u64 as usize % 256] += 1;
                    sum += u - 0.5;
                    for (lag, to) in lags.iter_mut().enumerate() {
                        *to += (u - 0.5) * (all[(i + lag + 1) % all.len()] - 0.5);
                    }
                }
            },
        );
        let centre = -(2f64.powi(-bits)) / 2.0;
        within(&format!("mean of {dtype}"), (sum - n * centre) / (n / 12.0).sqrt());
        within(&format!("high bits of {dtype}"), chi_square(&top));
        within(&format!("low bits of {dtype}"), chi_square(&low));
        for lag in lags {
            within(&format!("correlation of {dtype}"), (lag - n * centre * centre) / (n.sqrt() / 12.0));
        }
    }
}

#[test]
fn streams_and_seeds_are_independent() {
    let like = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::Bool, [BATCH]).unwrap());
    let numbers = |key: Key| like.uniform(key, DType::F64).result().unwrap().to_vec::<f64>().unwrap();
    let keys = [(0, 0), (0, 1), (1, 0), (1, 1), (1 << 32, 0), (0, 1 << 32), (u64::MAX, 0)];
    let all: Vec<Vec<f64>> = keys.into_iter().map(|k| numbers(Key::from(k))).collect();
    for (i, a) in all.iter().enumerate() {
        for b in &all[..i] {
            let product: f64 = a.iter().zip(b).map(|(a, b)| (a - 0.5) * (b - 0.5)).sum();
            within("correlation of two keys", product / ((BATCH as f64).sqrt() / 12.0));
        }
    }
}

#[test]
fn normal_numbers_have_the_normal_distribution() {
    for (stream, dtype) in [(5, DType::F32), (6, DType::F64)] {
        let mut cells = vec![0u64; 64];
        let (mut moments, mut pairs) = ([0.0; 4], 0.0);
        let n = each(
            |key| Generator::Normal { key, dtype: Some(dtype) },
            stream,
            |all| {
                for two in all.chunks_exact(2) {
                    pairs += two[0] * two[1];
                }
                for z in all {
                    let below = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
                    cells[((below * 64.0) as usize).min(63)] += 1;
                    for (k, to) in moments.iter_mut().enumerate() {
                        *to += z.powi(k as i32 + 1);
                    }
                }
            },
        );
        let [one, two, three, four] = moments;
        within("mean", one / n.sqrt());
        within("variance", (two - n) / (2.0 * n).sqrt());
        within("skewness", three / (15.0 * n).sqrt());
        within("kurtosis", (four - 3.0 * n) / (96.0 * n).sqrt());
        within("product of the two of a pair", pairs / (n / 2.0).sqrt());
        within("distribution", chi_square(&cells));
    }
}

#[test]
fn truths_and_integers_have_their_frequencies() {
    for (i, p) in [1e-3, 0.1, 0.5, 0.9].into_iter().enumerate() {
        let mut truths = 0.0;
        let n = each(|key| Generator::Bernoulli { p, key }, 7 + i as u64, |all| truths += all.iter().sum::<f64>());
        within(&format!("{p}"), (truths - n * p) / (n * p * (1.0 - p)).sqrt());
    }
    for (i, count) in [2, 7, 100, 1 << 10].into_iter().enumerate() {
        let mut counts = vec![0u64; count as usize];
        let randint = |key| Generator::Randint { low: -5, high: count - 5, key, dtype: None };
        each(randint, 20 + i as u64, |all| all.iter().for_each(|v| counts[(*v + 5.0) as usize] += 1));
        within(&format!("integers below {count}"), chi_square(&counts));
    }
}
