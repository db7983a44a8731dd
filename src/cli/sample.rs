//! Tensors of random elements. A seed always gives the same elements.
//!
//! Guarantees: floats and the parts of complex numbers are uniform between 0 and 1. Integers are uniform in their
//! dtype's range, with magnitudes of at most 1000, and never 0, so that they can be divisors. bool elements are both
//! values. Does not: resemble real data.

use castwise::{Category, Complex, DType, Eager, Result, Rules, Tensor};

use crate::random::Random;

/// A random integer from `least` to `most`, but not 0.
fn integer(r: &mut Random, least: i64, most: i64) -> i64 {
    let v = least + r.below((most - least + 1) as u64) as i64;
    if v == 0 { 1 } else { v }
}

/// A tensor of this dtype and shape with random elements.
pub(crate) fn sample(dtype: DType, shape: &[usize], seed: u64) -> Result<Tensor> {
    let mut r = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let n = Tensor::zeros(DType::Bool, shape)?.numel();
    macro_rules! draw {
        ($value:expr) => {
            Tensor::from_vec(std::iter::repeat_with(|| $value).take(n).collect::<Vec<_>>(), shape)
        };
    }
    let bits = 8 * dtype.size();
    let widest = match dtype.category() {
        Category::Bool => draw!(r.next() & 1 == 1),
        Category::Int if dtype.is_unsigned() => draw!(integer(&mut r, 1, if bits == 8 { 255 } else { 1000 })),
        Category::Int if bits == 8 => draw!(integer(&mut r, -128, 127)),
        Category::Int => draw!(integer(&mut r, -1000, 1000)),
        Category::Float => draw!(r.unit()),
        Category::Complex => draw!(Complex::new(r.unit(), r.unit())),
    };
    Eager::new(Rules::default()).tensor(&widest?).cast(dtype).result()
}
