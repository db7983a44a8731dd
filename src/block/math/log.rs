//! The logarithm family: `log`, `log2`, `log10`, `log1p`.
//!
//! The argument is `2^k·m` with `m` between `√½` and `√2`, and the logarithm of `m = 1 + f` a polynomial in `f`, which is
//! exact. The terms `k·ln 2` and `f - f²/2` are added without loss (the rounding errors are kept), so that only the small
//! rest of the polynomial and the last addition round. Nothing branches, so that a loop vectorizes; every fused
//! multiply-add is written out, so that the bits are the same at every feature level.

use super::exp::{LN2_HI_F32, LN2_HI_F64, LN2_LO_F32, LN2_LO_F64, TINY_F32, TINY_F64};

/// `√½`, from which the significands are counted.
const SQRT_HALF_F32: u32 = 0x3f35_04f3;
pub(super) const SQRT_HALF_F64: u64 = 0x3fe6_a09e_667f_3bcd;

/// `2^52`, whose low bits take an integer.
pub(super) const TWO52: f64 = 4_503_599_627_370_496.0;

/// `(ln(1 + f) - f + f²/2) / f³` for `f` from `√½ - 1` to `√2 - 1`, degree 8: within `2^-30.2` of the logarithm.
const LN_F32: [f32; 9] =
    [0.33333313, -0.25000012, 0.20002073, -0.16667852, 0.1422023, -0.124082774, 0.118863225, -0.11660123, 0.06732009];
/// The same for `f64`, degree 19: within `2^-59.2` of the logarithm.
const LN_F64: [f64; 20] = [
    0.33333333333333454,
    -0.24999999999998923,
    0.19999999999945794,
    -0.16666666666913507,
    0.1428571429387437,
    -0.12499999982124695,
    0.11111110514453874,
    -0.10000000377111407,
    0.09090933547476714,
    -0.08333345959485247,
    0.0769171389771431,
    -0.07141996325901258,
    0.06675151125512166,
    -0.06269841327369471,
    0.05817802355622074,
    -0.053265582657270084,
    0.05415627598625651,
    -0.06275421359910373,
    0.05698082499648485,
    -0.024283830552326156,
];

/// `log10 2` cut so that its product with an exponent is exact, and the rest of it.
const LOG10_2_HI_F32: f32 = f32::from_bits(0x3e9a_2000);
const LOG10_2_LO_F32: f32 = f32::from_bits(0x369a_84fc);
const LOG10_2_HI_F64: f64 = f64::from_bits(0x3fd3_4413_509f_7800);
const LOG10_2_LO_F64: f64 = f64::from_bits(0x3d1f_ef31_1f12_b358);

/// The polynomial with these coefficients, lowest first; `f2` is `f²`.
#[inline(always)]
fn poly9(f: f32, f2: f32, c: &[f32; 9]) -> f32 {
    let f4 = f2 * f2;
    let c03 = f2.mul_add(f.mul_add(c[3], c[2]), f.mul_add(c[1], c[0]));
    let c47 = f2.mul_add(f.mul_add(c[7], c[6]), f.mul_add(c[5], c[4]));
    f4.mul_add(f4.mul_add(c[8], c47), c03)
}

/// The polynomial with these coefficients, lowest first; `f2` is `f²`.
#[inline(always)]
fn poly20(f: f64, f2: f64, c: &[f64; 20]) -> f64 {
    let f4 = f2 * f2;
    let f8 = f4 * f4;
    let c03 = f2.mul_add(f.mul_add(c[3], c[2]), f.mul_add(c[1], c[0]));
    let c47 = f2.mul_add(f.mul_add(c[7], c[6]), f.mul_add(c[5], c[4]));
    let c8b = f2.mul_add(f.mul_add(c[11], c[10]), f.mul_add(c[9], c[8]));
    let ccf = f2.mul_add(f.mul_add(c[15], c[14]), f.mul_add(c[13], c[12]));
    let cgj = f2.mul_add(f.mul_add(c[19], c[18]), f.mul_add(c[17], c[16]));
    let c07 = f4.mul_add(c47, c03);
    let c8f = f4.mul_add(ccf, c8b);
    f8.mul_add(f8.mul_add(cgj, c8f), c07)
}

/// A positive finite `x` as `(k, m)` with `x = 2^k·m` and `m` between `√½` and `√2`.
#[inline(always)]
pub(super) fn split_f32(x: f32) -> (f32, f32) {
    let subnormal = x < f32::MIN_POSITIVE;
    let normal = if subnormal { x * 8_388_608.0 } else { x };
    let bias = if subnormal { 127.0 + 23.0 } else { 127.0 };
    let u = normal.to_bits().wrapping_add(0x3f80_0000 - SQRT_HALF_F32);
    let m = f32::from_bits((u & 0x007f_ffff).wrapping_add(SQRT_HALF_F32));
    // A shifted-out exponent is at most 511, which every conversion takes alike.
    ((u >> 23) as i32 as f32 - bias, m)
}

/// A positive finite `x` as `(k, m)` with `x = 2^k·m` and `m` between `√½` and `√2`.
#[inline(always)]
pub(super) fn split_f64(x: f64) -> (f64, f64) {
    let subnormal = x < f64::MIN_POSITIVE;
    let normal = if subnormal { x * TWO52 } else { x };
    let bias = if subnormal { TWO52 + 1023.0 + 52.0 } else { TWO52 + 1023.0 };
    let u = normal.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - SQRT_HALF_F64);
    let m = f64::from_bits((u & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF_F64));
    (f64::from_bits((u >> 52) | TWO52.to_bits()) - bias, m)
}

/// `v`, or the value of a logarithm of `x` outside the positive finite numbers.
#[inline(always)]
fn finish_f32(x: f32, v: f32) -> f32 {
    let v = if x == f32::INFINITY { f32::INFINITY } else { v };
    let v = if x == 0.0 { f32::NEG_INFINITY } else { v };
    if x >= 0.0 { v } else { f32::NAN }
}

/// `v`, or the value of a logarithm of `x` outside the positive finite numbers.
#[inline(always)]
fn finish_f64(x: f64, v: f64) -> f64 {
    let v = if x == f64::INFINITY { f64::INFINITY } else { v };
    let v = if x == 0.0 { f64::NEG_INFINITY } else { v };
    if x >= 0.0 { v } else { f64::NAN }
}

/// `ln(1 + f)` as `g + g_lo`, where `g` is `f - f²/2` rounded and `g_lo` the small rest.
#[inline(always)]
pub(super) fn ln_1p_f32(f: f32) -> (f32, f32) {
    let f2 = f * f;
    let q = poly9(f, f2, &LN_F32);
    let half = -0.5 * f;
    let g = half.mul_add(f, f);
    (g, (f2 * f).mul_add(q, half.mul_add(f, f - g)))
}

/// `k·ln 2 + g + low`, where only `low`, which is small, and the last addition are rounded.
#[inline(always)]
fn add_ln_2_f32(k: f32, g: f32, low: f32) -> f32 {
    let head = k * LN2_HI_F32;
    let h = head + g;
    let l = g - (h - head);
    h + (l + k.mul_add(LN2_LO_F32, low))
}

/// The natural logarithm. Largest error 0.65 ulp over all arguments.
///
/// ±0 give -∞, 1 gives +0, +∞ gives +∞, numbers below 0 give NaN.
#[inline(always)]
pub(crate) fn log_f32(x: f32) -> f32 {
    let (k, m) = split_f32(x);
    let (g, low) = ln_1p_f32(m - 1.0);
    finish_f32(x, add_ln_2_f32(k, g, low))
}

/// A positive sum `one + x` (`one` is 1 or 0) taken apart as `2^k·(1 + f + f_lo)`, with `f_lo` the rounding error of `f`.
pub(super) struct SumF32 {
    pub(super) k: f32,
    /// `2^(2-k)`: `2^-k` itself may be subnormal.
    pub(super) scale4: f32,
    pub(super) f: f32,
    pub(super) f_lo: f32,
}

/// Takes `one + x` apart. A subnormal `x` loses digits here and is the caller's business.
#[inline(always)]
pub(super) fn sum_f32(one: f32, x: f32) -> SumF32 {
    let u = (one + x).to_bits().wrapping_add(0x3f80_0000 - SQRT_HALF_F32);
    let biased = u >> 23;
    let k = biased as i32 as f32 - 127.0;
    // With s = 2^-k, the reduced argument is s·(one + x) - 1 = (s·one - 1) + s·x. Both terms are exact, and so is the
    // error of their sum.
    let scale4 = f32::from_bits(256u32.wrapping_sub(biased) << 23);
    let a = scale4.mul_add(0.25 * one, -1.0);
    let b = (x * 0.25) * scale4;
    let f = a + b;
    SumF32 { k, scale4, f, f_lo: b - (f - a) }
}

/// `ln(2^k·(1 + f + f_lo))`.
#[inline(always)]
pub(super) fn ln_sum_f32(k: f32, f: f32, f_lo: f32) -> f32 {
    let (g, low) = ln_1p_f32(f);
    // ln(1 + f + f_lo) - ln(1 + f) = f_lo / (1 + f), where f_lo is below an ulp of f.
    add_ln_2_f32(k, g, low + (-f).mul_add(f_lo, f_lo))
}

/// `ln(1 + x)`. Largest error 0.65 ulp over all arguments.
///
/// ±0 and numbers next to them give themselves, -1 gives -∞, +∞ gives +∞, numbers below -1 give NaN.
#[inline(always)]
pub(crate) fn log1p_f32(x: f32) -> f32 {
    let p = sum_f32(1.0, x);
    let v = ln_sum_f32(p.k, p.f, p.f_lo);
    let v = if x.abs() < TINY_F32 { x } else { v };
    let v = if x == f32::INFINITY { f32::INFINITY } else { v };
    let v = if x == -1.0 { f32::NEG_INFINITY } else { v };
    if x >= -1.0 { v } else { f32::NAN }
}

/// The binary logarithm. Largest error 0.72 ulp over all arguments.
///
/// ±0 give -∞, +∞ gives +∞, numbers below 0 give NaN; powers of two are exact.
#[inline(always)]
pub(crate) fn log2_f32(x: f32) -> f32 {
    const E_HI: f32 = std::f32::consts::LOG2_E;
    const E_LO: f32 = f32::from_bits(0x32a5_7060);
    let (k, m) = split_f32(x);
    let (g, low) = ln_1p_f32(m - 1.0);
    let p = g * E_HI;
    let p_lo = low.mul_add(E_HI, g.mul_add(E_LO, g.mul_add(E_HI, -p)));
    let h = k + p;
    let l = p - (h - k);
    finish_f32(x, h + (l + p_lo))
}

/// The decimal logarithm. Largest error 0.67 ulp over all arguments.
///
/// ±0 give -∞, 1 gives +0, +∞ gives +∞, numbers below 0 give NaN.
#[inline(always)]
pub(crate) fn log10_f32(x: f32) -> f32 {
    const E_HI: f32 = std::f32::consts::LOG10_E;
    const E_LO: f32 = f32::from_bits(0xb22d_91af);
    let (k, m) = split_f32(x);
    let (g, low) = ln_1p_f32(m - 1.0);
    let p = g * E_HI;
    let p_lo = low.mul_add(E_HI, g.mul_add(E_LO, g.mul_add(E_HI, -p)));
    let head = k * LOG10_2_HI_F32;
    let h = head + p;
    let l = p - (h - head);
    finish_f32(x, h + (l + k.mul_add(LOG10_2_LO_F32, p_lo)))
}

/// `ln(1 + f)` as `g + g_lo`, where `g` is `f - f²/2` rounded and `g_lo` the small rest.
#[inline(always)]
pub(super) fn ln_1p_f64(f: f64) -> (f64, f64) {
    let f2 = f * f;
    let q = poly20(f, f2, &LN_F64);
    let half = -0.5 * f;
    let g = half.mul_add(f, f);
    (g, (f2 * f).mul_add(q, half.mul_add(f, f - g)))
}

/// `k·ln 2 + g + low`, where only `low`, which is small, and the last addition are rounded.
#[inline(always)]
fn add_ln_2_f64(k: f64, g: f64, low: f64) -> f64 {
    let head = k * LN2_HI_F64;
    let h = head + g;
    let l = g - (h - head);
    h + (l + k.mul_add(LN2_LO_F64, low))
}

/// The natural logarithm. Largest error 0.65 ulp over 3·10^7 random arguments.
///
/// ±0 give -∞, 1 gives +0, +∞ gives +∞, numbers below 0 give NaN.
#[inline(always)]
pub(crate) fn log_f64(x: f64) -> f64 {
    let (k, m) = split_f64(x);
    let (g, low) = ln_1p_f64(m - 1.0);
    finish_f64(x, add_ln_2_f64(k, g, low))
}

/// A positive sum `one + x` (`one` is 1 or 0) taken apart as `2^k·(1 + f + f_lo)`, with `f_lo` the rounding error of `f`.
pub(super) struct SumF64 {
    pub(super) k: f64,
    /// `2^(2-k)`: `2^-k` itself may be subnormal.
    pub(super) scale4: f64,
    pub(super) f: f64,
    pub(super) f_lo: f64,
}

/// Takes `one + x` apart. A subnormal `x` loses digits here and is the caller's business.
#[inline(always)]
pub(super) fn sum_f64(one: f64, x: f64) -> SumF64 {
    let u = (one + x).to_bits().wrapping_add(0x3ff0_0000_0000_0000 - SQRT_HALF_F64);
    let biased = u >> 52;
    let k = f64::from_bits(biased | TWO52.to_bits()) - (TWO52 + 1023.0);
    // With s = 2^-k, the reduced argument is s·(one + x) - 1 = (s·one - 1) + s·x. Both terms are exact, and so is the
    // error of their sum.
    let scale4 = f64::from_bits(2048u64.wrapping_sub(biased) << 52);
    let a = scale4.mul_add(0.25 * one, -1.0);
    let b = (x * 0.25) * scale4;
    let f = a + b;
    SumF64 { k, scale4, f, f_lo: b - (f - a) }
}

/// `ln(2^k·(1 + f + f_lo))`.
#[inline(always)]
pub(super) fn ln_sum_f64(k: f64, f: f64, f_lo: f64) -> f64 {
    let (g, low) = ln_1p_f64(f);
    // ln(1 + f + f_lo) - ln(1 + f) = f_lo / (1 + f), where f_lo is below an ulp of f.
    add_ln_2_f64(k, g, low + (-f).mul_add(f_lo, f_lo))
}

/// `ln(1 + x)`. Largest error 0.67 ulp over 3·10^7 random arguments.
///
/// ±0 and numbers next to them give themselves, -1 gives -∞, +∞ gives +∞, numbers below -1 give NaN.
#[inline(always)]
pub(crate) fn log1p_f64(x: f64) -> f64 {
    let p = sum_f64(1.0, x);
    let v = ln_sum_f64(p.k, p.f, p.f_lo);
    let v = if x.abs() < TINY_F64 { x } else { v };
    let v = if x == f64::INFINITY { f64::INFINITY } else { v };
    let v = if x == -1.0 { f64::NEG_INFINITY } else { v };
    if x >= -1.0 { v } else { f64::NAN }
}

/// The binary logarithm. Largest error 0.73 ulp over 3·10^7 random arguments.
///
/// ±0 give -∞, +∞ gives +∞, numbers below 0 give NaN; powers of two are exact.
#[inline(always)]
pub(crate) fn log2_f64(x: f64) -> f64 {
    const E_HI: f64 = std::f64::consts::LOG2_E;
    const E_LO: f64 = 2.0355273740931033e-17;
    let (k, m) = split_f64(x);
    let (g, low) = ln_1p_f64(m - 1.0);
    let p = g * E_HI;
    let p_lo = low.mul_add(E_HI, g.mul_add(E_LO, g.mul_add(E_HI, -p)));
    let h = k + p;
    let l = p - (h - k);
    finish_f64(x, h + (l + p_lo))
}

/// The decimal logarithm. Largest error 0.64 ulp over 3·10^7 random arguments.
///
/// ±0 give -∞, 1 gives +0, +∞ gives +∞, numbers below 0 give NaN.
#[inline(always)]
pub(crate) fn log10_f64(x: f64) -> f64 {
    const E_HI: f64 = std::f64::consts::LOG10_E;
    const E_LO: f64 = 1.098319650216765e-17;
    let (k, m) = split_f64(x);
    let (g, low) = ln_1p_f64(m - 1.0);
    let p = g * E_HI;
    let p_lo = low.mul_add(E_HI, g.mul_add(E_LO, g.mul_add(E_HI, -p)));
    let head = k * LOG10_2_HI_F64;
    let h = head + p;
    let l = p - (h - head);
    finish_f64(x, h + (l + k.mul_add(LOG10_2_LO_F64, p_lo)))
}

#[cfg(test)]
mod tests {
    use super::super::exp::tests::{near, same, sweep};
    use super::*;

    #[test]
    fn special_values() {
        same(log_f64, log_f32, "0=-inf -0=-inf 1=0 inf=inf -inf=nan -1=nan");
        same(log2_f64, log2_f32, "0=-inf -0=-inf 1=0 inf=inf -inf=nan -1=nan 8=3 0.25=-2");
        same(log10_f64, log10_f32, "0=-inf -0=-inf 1=0 inf=inf -inf=nan -1=nan 1000=3");
        same(log1p_f64, log1p_f32, "0=0 -0=-0 -1=-inf -1.5=nan inf=inf -inf=nan 1e-40=1e-40");
    }

    #[test]
    fn values() {
        near(
            log_f64,
            1,
            "4.94066e-324=c0874385446d71c3 2.3e-308=c08622e809940dff 0.5=bfe62e42fefa39ef 0.7073=bfd629c90c3d7b8c \
             0.999999=beb0c6f82d74d230 1.000001=3eb0c6f713f33a1d 1.3=3fd0ca937be1b9dc 1.41=3fd5fd5fabe64084 \
             3=3ff193ea7aad030b 1.7976931348623157e+308=40862e42fefa39ef",
        );
        near(
            log2_f64,
            1,
            "4.94066e-324=c090c80000000000 2.3e-308=c08fef9e252f9cb9 0.5=bff0000000000000 0.7073=bfdff98abf08a37a \
             0.999999=beb83454c4167fe4 1.000001=3eb834532df5d30e 1.3=3fd83988d0c1f60d 1.41=3fdfb97834105ea6 \
             3=3ff95c01a39fbd68 1.7976931348623157e+308=4090000000000000",
        );
        near(
            log10_f64,
            1,
            "4.94066e-324=c07434e6420f4374 2.3e-308=c0733a365cdf6407 0.5=bfd34413509f79ff 0.7073=bfc3402ff4fca986 \
             0.999999=be9d25204937a8c5 1.000001=3e9d251e6030e664 1.3=3fbd2b643bc124f5 1.41=3fc3199ca46580e7 \
             3=3fde8927964fd5fd 1.7976931348623157e+308=40734413509f79ff",
        );
        near(
            log1p_f64,
            1,
            "1e-09=3e112e0be801f1d9 -1e-09=be112e0be84bbb51 0.25=3fcc8ff7c79a9a22 -0.28=bfd50635ec0fdd69 \
             0.42=3fd6712984ec8f15 1=3fe62e42fefa39ef -0.9999999=c0301e3b8440ed2f 1e+10=4037069e2aa3184e \
             1.7976931348623157e+308=40862e42fefa39ef",
        );
        sweep(log_f32, log_f64, 1.0);
        sweep(log2_f32, log2_f64, 1.0);
        sweep(log10_f32, log10_f64, 1.0);
        sweep(log1p_f32, log1p_f64, 1.0);
    }
}
