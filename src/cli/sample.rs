//! Tensors of random elements, always the same for a seed.
//!
//! Guarantees: floats are uniform between 0 and 1, and so are the parts of complex numbers; integers are uniform in
//! their range, but at most 1000 away from 0, and never 0 (so that they divide); bool is either. Does not: look like
//! anybody's data.

use castwise::{Complex, DType, Error, Result, Tensor, bf16, f16};

use crate::random::Random;

/// From `least` to `most`, without 0.
fn integer(r: &mut Random, least: i64, most: i64) -> i64 {
    let v = least + r.below((most - least + 1) as u64) as i64;
    if v == 0 { 1 } else { v }
}

/// A tensor of this dtype and shape.
pub(super) fn sample(dtype: DType, shape: &[usize], seed: u64) -> Result<Tensor> {
    let mut r = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let n = Tensor::zeros(DType::Bool, shape)?.numel();
    macro_rules! draw {
        ($value:expr) => {
            Tensor::from_vec(std::iter::repeat_with(|| $value).take(n).collect::<Vec<_>>(), shape)
        };
    }
    match dtype {
        DType::Bool => draw!(r.next() & 1 == 1),
        DType::U8 => draw!(integer(&mut r, 1, 255) as u8),
        DType::I8 => draw!(integer(&mut r, -128, 127) as i8),
        DType::I16 => draw!(integer(&mut r, -1000, 1000) as i16),
        DType::I32 => draw!(integer(&mut r, -1000, 1000) as i32),
        DType::I64 => draw!(integer(&mut r, -1000, 1000)),
        DType::F16 => draw!(f16::from_f64(r.unit())),
        DType::BF16 => draw!(bf16::from_f64(r.unit())),
        DType::F32 => draw!(r.unit() as f32),
        DType::F64 => draw!(r.unit()),
        DType::C32 => draw!(Complex::new(f16::from_f64(r.unit()), f16::from_f64(r.unit()))),
        DType::C64 => draw!(Complex::new(r.unit() as f32, r.unit() as f32)),
        DType::C128 => draw!(Complex::new(r.unit(), r.unit())),
        other => Err(Error::Internal(format!("no sample is drawn of {other}"))),
    }
}
