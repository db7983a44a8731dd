//! Random numbers from their definition, one by one.

use castwise::{DType, Key, Tensor, bf16, f16};

/// The four words of a block of Philox4x32-10.
pub fn words(key: Key, block: u64) -> [u32; 4] {
    let (mut k0, mut k1) = (key.seed as u32, (key.seed >> 32) as u32);
    let mut c = [block as u32, (block >> 32) as u32, key.stream as u32, (key.stream >> 32) as u32];
    for round in 0..10 {
        if round > 0 {
            (k0, k1) = (k0.wrapping_add(0x9E37_79B9), k1.wrapping_add(0xBB67_AE85));
        }
        let (p, q) = (0xD251_1F53 * u64::from(c[0]), 0xCD9E_8D57 * u64::from(c[2]));
        c = [(q >> 32) as u32 ^ c[1] ^ k0, q as u32, (p >> 32) as u32 ^ c[3] ^ k1, p as u32];
    }
    c
}

/// The word of 32 bits of an element.
pub fn w32(key: Key, i: u64) -> u32 {
    words(key, i / 4)[i as usize % 4]
}

/// The word of 64 bits of an element.
pub fn w64(key: Key, i: u64) -> u64 {
    let block = words(key, i / 2);
    let low = 2 * (i as usize % 2);
    u64::from(block[low + 1]) << 32 | u64::from(block[low])
}

/// Uniform numbers for floats, true with the probability 1/4 for bool, integers from 0 to 6 for integers; `None` for other dtypes.
pub fn random(key: Key, dtype: DType, shape: &[usize]) -> Option<Tensor> {
    let all = 0..shape.iter().product::<usize>() as u64;
    let one = |i: u64| -> Option<Vec<u8>> {
        let seventh = ((u128::from(w64(key, i)) * 7) >> 64) as u64;
        Some(match dtype {
            DType::Bool => vec![u8::from(w32(key, i) < 1 << 30)],
            DType::F16 => f16::from_f32((w32(key, i) >> 21) as f32 / 2048.0).to_ne_bytes().to_vec(),
            DType::BF16 => bf16::from_f32((w32(key, i) >> 24) as f32 / 256.0).to_ne_bytes().to_vec(),
            DType::F32 => ((f64::from(w32(key, i) >> 8) / 16_777_216.0) as f32).to_ne_bytes().to_vec(),
            DType::F64 => ((w64(key, i) >> 11) as f64 / 9_007_199_254_740_992.0).to_ne_bytes().to_vec(),
            d if d.is_complex() || d.is_float() => return None,
            d => seventh.to_le_bytes()[..d.size()].to_vec(),
        })
    };
    let bytes: Vec<Vec<u8>> = all.map(one).collect::<Option<_>>()?;
    Tensor::from_bytes(dtype, shape, &bytes.concat()).ok()
}
