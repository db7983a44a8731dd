//! Argument reduction of the trigonometric functions: the remainder of `x` after integer multiples of π/2; and `fmod`.
//!
//! Two methods give the remainder as an unevaluated sum `hi + lo`:
//!
//! * [`half_pi_small`] subtracts a three-part π/2 with fused multiply-adds (Cody and Waite). It has no branches and no
//!   tables, so it vectorizes; it is valid up to [`SMALL_BOUND`].
//! * [`half_pi_large`] multiplies the significand by the needed bits of 2/π in integers (Payne and Hanek). It is valid
//!   for all larger arguments and is scalar.

/// The largest magnitude that [`half_pi_small`] accepts.
pub(crate) const SMALL_BOUND: f64 = 1_048_576.0;

/// 1.5·2^52: adding it rounds to an integer, which is then in the low bits of the sum.
pub(crate) const ROUND_F64: f64 = 6_755_399_441_055_744.0;

/// π/2 in three parts. The second has 30 bits, so that its product with a quotient below 2^21 is exact; the sum differs
/// from π/2 by less than 2^-141.
pub(super) const HALF_PI: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.12323399409214e-17, 1.6446256936324258e-26];

/// π/2 minus its f64 value.
const HALF_PI_LO: f64 = 6.123233995736766e-17;

/// The bits of 2/π after the binary point, preceded by one word of zeros.
const TWO_OVER_PI: [u64; 23] = [
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
    0xa9e391615ee61b08,
    0x6599855f14a06840,
];

/// For `0 <= x <= SMALL_BOUND`: the quotient modulo 2^51 in the low bits, and the remainder in `[-π/4, π/4]` as a sum.
///
/// The first difference is exact. If the second one rounds, `hi` has not cancelled and `head - hi` is exact, so the
/// second fused operation returns the rounding error; if `hi` has cancelled, the difference is exact and the operation
/// returns 0.
#[inline(always)]
pub(crate) fn half_pi_small(x: f64) -> (u64, f64, f64) {
    let shifted = x.mul_add(std::f64::consts::FRAC_2_PI, ROUND_F64);
    let n = shifted - ROUND_F64;
    let head = n.mul_add(-HALF_PI[0], x);
    let hi = n.mul_add(-HALF_PI[1], head);
    let err = n.mul_add(-HALF_PI[1], head - hi);
    let lo = n.mul_add(-HALF_PI[2], err);
    (shifted.to_bits(), hi, lo)
}

/// [`half_pi_small`] for a finite `x >= 2^19`, with the quotient modulo 4. The relative error of the sum is about
/// 2^-75.
#[cold]
#[inline(never)]
pub(crate) fn half_pi_large(x: f64) -> (u64, f64, f64) {
    let bits = x.to_bits();
    let significand = (bits & 0x000f_ffff_ffff_ffff) | 0x0010_0000_0000_0000;
    // x = significand·2^exponent. The first needed bit of 2/π is the one whose product contributes 2^1; all bits before
    // it contribute multiples of 4.
    let exponent = i64::from((bits >> 52) as u16 & 0x7ff) - 1075;
    let position = (exponent + 62).clamp(0, 1100) as usize;
    let (word, shift) = (position / 64, position % 64);
    let table = |i: usize| TWO_OVER_PI.get(word + i).copied().unwrap_or(0);
    let window = |i: usize| (table(i) << shift) | ((table(i + 1) >> 1) >> (63 - shift));
    let product = |w: u64, carry: u64| u128::from(significand) * u128::from(w) + u128::from(carry);
    let low = product(window(2), 0);
    let mid = product(window(1), (low >> 64) as u64);
    let top = product(window(0), (mid >> 64) as u64) as u64;
    let (mid, low) = (mid as u64, low as u64);
    let mut quadrant = top >> 62;
    // The fraction, 190 bits after the binary point; from one half on, it is measured back from the next multiple.
    let mut high = (u128::from((top << 2) | (mid >> 62)) << 64) | u128::from((mid << 2) | (low >> 62));
    let mut rest = low << 2;
    let negative = high >> 127 == 1;
    if negative {
        quadrant += 1;
        let (negated, borrow) = 0u64.overflowing_sub(rest);
        rest = negated;
        high = (!high).wrapping_add(u128::from(!borrow));
    }
    // No f64 is closer to a multiple of π/2 than about 2^-62 of one, so the shift stays below 64.
    let zeros = high.leading_zeros().min(63);
    let high = (high << zeros) | u128::from((rest >> 1) >> (63 - zeros));
    let scale = f64::from_bits(u64::from(1023 - 53 - zeros) << 52);
    let head = ((high >> 75) as u64) as f64 * scale;
    let tail = ((high >> 11) as u64) as f64 * (scale * (1.0 / 18_446_744_073_709_551_616.0));
    let hi = head * HALF_PI[0];
    let lo = head.mul_add(HALF_PI[0], -hi) + (head * HALF_PI_LO + tail * HALF_PI[0]);
    let sum = hi + lo;
    let lo = (hi - sum) + lo;
    if negative { (quadrant, -sum, -lo) } else { (quadrant, sum, lo) }
}

/// Whether [`fmod_f32_small`] is valid for `x` and `y`: `y` is not 0, both are finite, and the quotient is below 2^29.
#[inline(always)]
pub(crate) fn fmod_is_small_f32(x: f32, y: f32) -> bool {
    (f64::from(x) / f64::from(y)).abs() < 536_870_912.0 && y.abs() < f32::INFINITY
}

/// The remainder of `x / y` with the sign of `x`, exact, where [`fmod_is_small_f32`] holds.
///
/// In double precision, the error of the quotient is less than one and its product with `y` is exact.
#[inline(always)]
pub(crate) fn fmod_f32_small(x: f32, y: f32) -> f32 {
    let (a, b) = (f64::from(x.abs()), f64::from(y.abs()));
    let rounded = (a / b + ROUND_F64) - ROUND_F64;
    let r = a - rounded * b;
    // The quotient is rounded to nearest, so it is too large if the remainder is negative.
    let r = if r < 0.0 { r + b } else { r };
    (r as f32).copysign(x)
}

/// The remainder of `x / y` with the sign of `x`, exact, for every argument.
///
/// NaN where `x` is infinite or `y` is 0; `x` where `y` is infinite; a zero has the sign of `x`.
#[inline(always)]
pub(crate) fn fmod_f32(x: f32, y: f32) -> f32 {
    if fmod_is_small_f32(x, y) { fmod_f32_small(x, y) } else { fmod_rare(f64::from(x), f64::from(y)) as f32 }
}

/// Whether [`fmod_f64_small`] is valid for `x` and `y`: `y` is not 0, both are finite, and the quotient is below 2^51.
#[inline(always)]
pub(crate) fn fmod_is_small_f64(x: f64, y: f64) -> bool {
    (x / y).abs() < 2_251_799_813_685_248.0 && y.abs() < f64::INFINITY
}

/// The remainder of `x / y` with the sign of `x`, exact, where [`fmod_is_small_f64`] holds.
///
/// The rounded quotient leaves a remainder of at most about half of `y`, a multiple of the smaller ulp of the two, so
/// the fused operation is exact.
#[inline(always)]
pub(crate) fn fmod_f64_small(x: f64, y: f64) -> f64 {
    let (a, b) = (x.abs(), y.abs());
    let rounded = (a / b + ROUND_F64) - ROUND_F64;
    let r = rounded.mul_add(-b, a);
    let r = if r < 0.0 { r + b } else { r };
    r.copysign(x)
}

/// The remainder of `x / y` with the sign of `x`, exact, for every argument.
///
/// NaN where `x` is infinite or `y` is 0; `x` where `y` is infinite; a zero has the sign of `x`.
#[inline(always)]
pub(crate) fn fmod_f64(x: f64, y: f64) -> f64 {
    if fmod_is_small_f64(x, y) { fmod_f64_small(x, y) } else { fmod_rare(x, y) }
}

/// The remainder for huge quotients and special values, by long division: 11 bits of the quotient at a time.
#[cold]
#[inline(never)]
fn fmod_rare(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() || x.is_infinite() || y == 0.0 {
        return f64::NAN;
    }
    if y.is_infinite() {
        return x;
    }
    // The significand, and the exponent of its lowest bit; a subnormal number has the exponent of the smallest normal
    // one.
    let parts = |v: f64| {
        let bits = v.to_bits() & !(1 << 63);
        let (field, fraction) = ((bits >> 52) as u32, bits & 0x000f_ffff_ffff_ffff);
        if field == 0 { (fraction, 1) } else { (fraction | 0x0010_0000_0000_0000, field) }
    };
    let ((mut rest, exponent), (divisor, base)) = (parts(x), parts(y));
    if exponent < base {
        return x;
    }
    let mut left = exponent - base;
    rest = rest.checked_rem(divisor).unwrap_or(0);
    while left > 0 && rest != 0 {
        let step = left.min(11);
        rest = (rest << step).checked_rem(divisor).unwrap_or(0);
        left -= step;
    }
    // The remainder is below the divisor, in units of its lowest bit: normalize it by shifting.
    let shift = rest.leading_zeros().saturating_sub(11).min(base - 1);
    let significand = rest << shift;
    let field = if significand >> 52 == 0 { 0 } else { u64::from(base - shift) };
    f64::from_bits((field << 52) | (significand & 0x000f_ffff_ffff_ffff)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_reductions_agree() {
        for k in 1..2000u32 {
            let x = SMALL_BOUND / 2.0 + f64::from(k) * 37.625 + 1.0 / f64::from(k);
            let (n, hi, lo) = half_pi_small(x);
            let (m, high, low) = half_pi_large(x);
            assert_eq!(n & 3, m & 3, "{x}");
            assert!(((hi - high) + (lo - low)).abs() <= 1e-30, "{x}: {hi} + {lo}, {high} + {low}");
        }
    }

    #[test]
    fn large_reduction_of_the_hardest_double() {
        // No f64 is closer to a multiple of π/2.
        let (quadrant, hi, lo) = half_pi_large(6381956970095103.0 * f64::from_bits((1023 + 797) << 52));
        assert_eq!((quadrant & 3, hi), (1, 4.687165924254628e-19));
        assert!(lo.abs() < 1e-34);
    }

    #[test]
    fn fmod_is_the_exact_remainder() {
        let values = [
            0.0,
            -0.0,
            5e-324,
            -1e-310,
            f64::MIN_POSITIVE,
            1e-300,
            0.1,
            -1.0,
            3.0,
            -5.5,
            1e16,
            1e22,
            1e300,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        let canonical = |r: f64| if r.is_nan() { f64::NAN.to_bits() } else { r.to_bits() };
        for x in values {
            for y in values {
                assert_eq!(fmod_f64(x, y).to_bits(), canonical(x % y), "{x} {y}");
                if fmod_is_small_f64(x, y) {
                    assert_eq!(fmod_f64_small(x, y).to_bits(), canonical(x % y), "{x} {y}");
                }
                let (x, y) = (x as f32, y as f32);
                let want = x % y;
                let want = if want.is_nan() { f32::NAN } else { want };
                assert_eq!(fmod_f32(x, y).to_bits(), want.to_bits(), "{x} {y}");
                if fmod_is_small_f32(x, y) {
                    assert_eq!(fmod_f32_small(x, y).to_bits(), want.to_bits(), "{x} {y}");
                }
            }
        }
    }
}
