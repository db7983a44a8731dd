//! Operands with the edge cases of their dtypes.

use crate::base::dtype::DType::{self, *};
use crate::base::random::Random;
use crate::kernels::hard;
use crate::ops::Op;

/// Bit patterns of a dtype (of a part, if it is complex) that are edge cases of ops.
fn specials(d: DType) -> Vec<u64> {
    let numbers: &[f64] = &[
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        0.25,
        0.499,
        126.5,
        127.0,
        127.5,
        128.0,
        255.0,
        255.5,
        256.0,
        32767.5,
        32768.0,
        65504.0,
        65519.0,
        65520.0,
        65536.0,
        2147483520.0,
        2147483647.0,
        2147483647.5,
        2147483648.0,
        4294967296.0,
        9223372036854774784.0,
        9223372036854775808.0,
        1e10,
        1e30,
        3.4028234663852886e38,
        3.4028235677973366e38,
        1e300,
        1e-8,
        5.960464477539063e-8,
        2.98e-8,
        1e-40,
        1e-45,
        1e-310,
        1.0009765625,
        1.00048828125,
        1.00390625,
        1.01171875,
    ];
    let signed = |bits: Vec<u64>, top: u64| bits.iter().flat_map(|b| [*b, b | top]).collect();
    match d.real() {
        F16 => {
            let some = [0, 1, 0x3ff, 0x400, 0x3800, 0x3c00, 0x7bff, 0x7c00, 0x7c01, 0x7dff, 0x7e00, 0x7e01, 0x7fff];
            signed(some.to_vec(), 0x8000)
        }
        BF16 => {
            let some = [0, 1, 0x7f, 0x80, 0x3f00, 0x3f80, 0x7f7f, 0x7f80, 0x7f81, 0x7fbf, 0x7fc0, 0x7fc1, 0x7fff];
            signed(some.to_vec(), 0x8000)
        }
        F32 => {
            let nans = [0x7f80_0000, 0x7f80_0001, 0x7fa0_0000, 0x7fc0_0000, 0x7fc0_0001, 0x7fff_ffff, 0x7fbf_ffff];
            let plain = numbers.iter().map(|x| u64::from((*x as f32).to_bits()));
            // Some arguments whose double rounding is corrected.
            let hard = [Op::Cbrt, Op::Sigmoid].into_iter().filter_map(hard).flat_map(|h| h.moves);
            let hard = hard.map(|(bits, _)| u64::from(*bits));
            signed(plain.chain(nans).chain([1, 0x7f_ffff, 0x80_0000]).chain(hard).collect(), 1 << 31)
        }
        F64 => {
            let nans = [0x7ff0 << 48, (0x7ff0 << 48) + 1, 0x7ff8 << 48, (0x7ff8 << 48) + 1, u64::MAX >> 1];
            let plain = numbers.iter().map(|x| x.to_bits());
            signed(plain.chain(nans).chain([1, (1 << 52) - 1, 1 << 52]).collect(), 1 << 63)
        }
        Bool => vec![0, 1],
        d => {
            let bits = 8 * d.size() as u32;
            let near = |at: u64| [at.wrapping_sub(1), at, at.wrapping_add(1)];
            let powers = (0..bits).flat_map(|b| near(1u64 << b));
            powers.chain(near(0)).chain(near((1 << 53) + (1 << 30))).collect()
        }
    }
}

/// `n` elements: all pairs of special values along two operands, then special values and random bits. They are at the end of a
/// large allocation, after which there often is no mapped memory.
pub(super) struct Data {
    pub(super) words: Vec<u128>,
    pub(super) dtype: DType,
}

impl Data {
    pub(super) fn new(dtype: DType, n: usize, operand: usize, random: &mut Random) -> Data {
        let words = vec![0u128; (1 << 16) - 1];
        let part = dtype.real().size();
        let some = specials(dtype);
        let mut data = Data { words, dtype };
        for (i, to) in data.last_mut(n).chunks_exact_mut(part).enumerate() {
            let paired = if operand.is_multiple_of(2) { i % some.len() } else { i / some.len() };
            let bits = match random.index(4) {
                0 => random.next(),
                1 => random.pick(&some),
                _ if i < some.len() * some.len() => some[paired],
                _ => random.pick(&some),
            };
            let bits = if dtype == Bool { bits & 1 } else { bits };
            to.copy_from_slice(&bits.to_le_bytes()[..part]);
        }
        data
    }

    pub(super) fn last_mut(&mut self, n: usize) -> &mut [u8] {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        let start = bytes.len() - n * self.dtype.size();
        &mut bytes[start..]
    }

    /// The last `n` elements.
    pub(super) fn last(&self, n: usize) -> &[u8] {
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        &bytes[bytes.len() - n * self.dtype.size()..]
    }
}
