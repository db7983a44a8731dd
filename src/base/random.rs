//! The pseudorandom number generator SplitMix64 (Steele, Lea & Flood 2014, <https://doi.org/10.1145/2714064.2660195>).
//!
//! Guarantees: the same sequence for a seed on every machine and in every version, so that a seed identifies a sample.
//! Does not: take part in the library's own work (the command's samples, tests, benches and fuzzing include this file);
//! serve for cryptography.
#![allow(dead_code, reason = "each file that includes this one uses a part of it")]

/// The state is the seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; `n` must not be 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// An index in `0..len`, or 0 if `len` is 0.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len.max(1) as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
