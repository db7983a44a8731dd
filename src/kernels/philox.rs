//! The counter-based random number generator Philox4x32-10.
//!
//! Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011); constants and known answers are those of
//! Random123. Guarantees: a block follows from its number and the key alone. Does not: serve for cryptography.

use crate::base::generator::Key;

/// Blocks that are computed together: independent chains of instructions, and whole vectors.
const TOGETHER: usize = 32;

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const LOW: u64 = 0xffff_ffff;

/// The four words of each of `L` blocks from `block` on. Words are the low halves of lanes of 64 bits: a product of two has a place
/// there. The high halves are not cleared, since a multiplication reads the words alone.
#[inline(always)]
pub(super) fn blocks<const L: usize>(key: Key, block: u64) -> [[u64; L]; 4] {
    let number = |l: usize| block.wrapping_add(l as u64);
    let high = std::array::from_fn(|l| number(l) >> 32);
    let mut c = [std::array::from_fn(number), high, [key.stream; L], [key.stream >> 32; L]];
    let mut k = [key.seed as u32, (key.seed >> 32) as u32];
    for _ in 0..10 {
        let [c0, c1, c2, c3] = &mut c;
        for (((c0, c1), c2), c3) in c0.iter_mut().zip(c1).zip(c2).zip(c3) {
            let p = MULTIPLIERS[0] * (*c0 & LOW);
            let q = MULTIPLIERS[1] * (*c2 & LOW);
            (*c0, *c1) = ((q >> 32) ^ *c1 ^ u64::from(k[0]), q);
            (*c2, *c3) = ((p >> 32) ^ *c3 ^ u64::from(k[1]), p);
        }
        k = [k[0].wrapping_add(KEY_STEPS[0]), k[1].wrapping_add(KEY_STEPS[1])];
    }
    c
}

/// The words of the blocks from `block` on, two in each element of `out`: the first in the low half. An odd last element has no place.
#[inline(always)]
pub(super) fn words(key: Key, mut block: u64, out: &mut [u64]) {
    let mut groups = out.chunks_exact_mut(2 * TOGETHER);
    for group in &mut groups {
        let [a, b, c, d] = blocks::<TOGETHER>(key, block);
        for (l, to) in group.chunks_exact_mut(2).enumerate() {
            to[0] = (a[l] & LOW) | (b[l] << 32);
            to[1] = (c[l] & LOW) | (d[l] << 32);
        }
        block = block.wrapping_add(TOGETHER as u64);
    }
    for to in groups.into_remainder().chunks_exact_mut(2) {
        let [[a], [b], [c], [d]] = blocks::<1>(key, block);
        (to[0], to[1]) = ((a & LOW) | (b << 32), (c & LOW) | (d << 32));
        block = block.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random123's known answers for ten rounds: counter, key, words (`kat_vectors` of its distribution).
    #[test]
    fn known_answers() {
        let answers: [([u64; 2], u64, [u64; 4]); 3] = [
            ([0, 0], 0, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u64::MAX; 2], u64::MAX, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x85a3_08d3_243f_6a88, 0x0370_7344_1319_8a2e],
                0x299f_31d0_a409_3822,
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for ([block, stream], seed, want) in answers {
            let key = Key { seed, stream };
            assert_eq!(blocks::<1>(key, block).map(|[w]| w & LOW), want);
            let mut out = [0; 4 * TOGETHER + 6];
            words(key, block, &mut out);
            assert_eq!(out[..2], [want[0] | want[1] << 32, want[2] | want[3] << 32]);
            for (i, two) in out.chunks_exact(2).enumerate() {
                let [a, b, c, d] = blocks::<1>(key, block.wrapping_add(i as u64)).map(|[w]| w & LOW);
                assert_eq!(two, [a | b << 32, c | d << 32], "block {i}");
            }
        }
    }
}
