//! Helpers that compare functions with known values and with one another.

/// The error of a result in ulps of `f32`.
pub(super) fn ulps(got: f32, want: f64) -> f64 {
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    // Infinities count as the power of two after the largest finite number.
    let limit = 2.0 * 2.0f64.powi(127);
    let got = f64::from(got).clamp(-limit, limit);
    let want = want.clamp(-limit, limit);
    let size = want.abs().clamp(f64::from(f32::MIN_POSITIVE), limit / 2.0);
    let unit = f64::from_bits(size.to_bits() & (0x7ff << 52)) * 2.0f64.powi(-23);
    (got - want).abs() / unit
}

/// Compares the `f32` function with the `f64` one, over all exponents and both signs.
pub(super) fn sweep(f: fn(f32) -> f32, g: fn(f64) -> f64, max: f64) {
    for bits in (0..=u32::MAX).step_by(600_011) {
        let x = f32::from_bits(bits);
        let error = ulps(f(x), g(f64::from(x)));
        assert!(error <= max, "{x:e}: {:e} is {error} ulp off", f(x));
    }
}

/// Compares the `f64` function with correctly rounded values: `argument=bits` pairs.
pub(super) fn near(f: fn(f64) -> f64, max: u64, pairs: &str) {
    for pair in pairs.split(' ') {
        let (x, want) = pair.split_once('=').unwrap();
        let (x, want) = (x.parse().unwrap(), u64::from_str_radix(want, 16).unwrap());
        let got = f(x).to_bits();
        assert!(got.abs_diff(want) <= max, "{x:e}: {got:#x} for {want:#x}");
    }
}

/// Compares both functions with `argument=value` pairs bit for bit, and checks that NaN gives NaN.
pub(super) fn same(f: fn(f64) -> f64, g: fn(f32) -> f32, pairs: &str) {
    for pair in pairs.split(' ').chain(["nan=nan", "-nan=nan"]) {
        let (x, want) = pair.split_once('=').unwrap();
        let (x, want): (f64, f64) = (x.parse().unwrap(), want.parse().unwrap());
        assert_eq!(f(x).to_bits(), want.to_bits(), "{x:e}: {:e}", f(x));
        assert_eq!(g(x as f32).to_bits(), (want as f32).to_bits(), "f32 {x:e}: {:e}", g(x as f32));
    }
}
