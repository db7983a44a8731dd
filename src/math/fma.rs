//! `x·y + z` for a result that is rounded again.
//!
//! Guarantees: rounded to odd, so that rounding the result to nearest in a format of at most 22 bits gives the exact
//! value rounded once. Does not: compute what is rounded once to f32 or f64, which is `mul_add`.

/// `x·y + z` rounded to odd: the number if f32 has it, else that of its two neighbors whose last bit is set.
///
/// The product is exact in f64, and its sum with z is the sum of two f64, of which the second is only looked at for its
/// sign: the first is rounded to odd by it, and then once more, to f32.
#[inline(always)]
pub(crate) fn odd_f32(x: f32, y: f32, z: f32) -> f32 {
    let (product, z) = (f64::from(x) * f64::from(y), f64::from(z));
    let sum = product + z;
    let part = sum - product;
    let rest = (product - (sum - part)) + (z - part);
    let step = to_odd(sum, rest, sum.to_bits() & 1 == 0);
    let sum = f64::from_bits(sum.to_bits().wrapping_add_signed(step));
    let near = sum as f32;
    let step = to_odd(sum, sum - f64::from(near), near.to_bits() & 1 == 0);
    f32::from_bits(near.to_bits().wrapping_add_signed(step as i32))
}

/// How far the bits of a number are from those of the odd neighbor of `sum + rest`, which is what was rounded to it: 0 if the
/// number is that already, or is exact, infinite or NaN.
#[inline(always)]
fn to_odd(sum: f64, rest: f64, even: bool) -> i64 {
    let inexact = (rest > 0.0) | (rest < 0.0);
    let away = (rest > 0.0) == (sum > 0.0);
    let step = if away { 1 } else { -1 };
    if inexact & even { step } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    /// Sums whose f32 is halfway between two numbers of a half type, and those beside.
    #[test]
    fn ties_of_the_half_types_are_seen() {
        let tiny = f32::from_bits(1);
        // 1 + 2^-8 is halfway between two numbers of bf16.
        let half = 1.0 / 256.0;
        let odd = |x: f32, y: f32, z: f32| bf16::from_f32(odd_f32(x, y, z)).to_f32();
        assert_eq!([odd(1.0, half, 1.0), odd(1.0, 3.0 * half, 1.0)], [1.0, 1.0 + 4.0 * half]);
        for (x, y, z, want) in [
            (tiny, 1.0, 1.0 + half, 1.0 + 2.0 * half),
            (-tiny, 1.0, 1.0 + half, 1.0),
            (tiny, tiny, 1.0 + half, 1.0 + 2.0 * half),
            (-tiny, tiny, 1.0 + 3.0 * half, 1.0 + 2.0 * half),
            (1.0 + half, -1.0, -tiny, -1.0 - 2.0 * half),
        ] {
            assert_eq!(odd(x, y, z), want, "{x} {y} {z}");
        }
        // f16: 1 + 2^-11 is halfway.
        let (x, z) = (f16::from_f32(1.0 / 2048.0), 1.0);
        assert_eq!(f16::from_f32(odd_f32(x.to_f32(), 1.0 + 1.0 / 1024.0, z)).to_f32(), 1.0 + 1.0 / 1024.0);
    }

    #[test]
    fn ends_of_the_range() {
        let (inf, most) = (f32::INFINITY, f32::MAX);
        assert_eq!(odd_f32(most, most, -most), most, "the odd neighbor of what is beyond the range");
        assert_eq!(odd_f32(most, 2.0, -most), most);
        assert_eq!([odd_f32(inf, 1.0, 1.0), odd_f32(1.0, 1.0, -inf)], [inf, -inf]);
        assert!(
            odd_f32(inf, 0.0, 1.0).is_nan() && odd_f32(inf, 1.0, -inf).is_nan() && odd_f32(1.0, 1.0, f32::NAN).is_nan()
        );
        let tiny = f32::from_bits(1);
        assert_eq!([odd_f32(tiny, tiny, 0.0), odd_f32(-tiny, tiny, 0.0)], [tiny, -tiny]);
        let zeros = [odd_f32(1.0, 1.0, -1.0), odd_f32(-0.0, 1.0, -0.0), odd_f32(0.0, 1.0, -0.0)];
        assert_eq!(zeros.map(f32::to_bits), [0, (-0.0f32).to_bits(), 0]);
    }
}
