//! Known values, the ends of the range, and the special values of Annex G.

use super::*;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn c(re: f64, im: f64) -> C128 {
    Complex::new(re, im)
}

#[track_caller]
fn near(got: C128, re: f64, im: f64) {
    let error = |x: f64, y: f64| if x == y { 0.0 } else { (x - y).abs() };
    let scale = if re.is_finite() { re.abs() + im.abs() } else { im.abs() };
    assert!(error(got.re, re) + error(got.im, im) <= 1e-15 * scale, "{got} instead of {re} {im}");
}

#[track_caller]
fn same(got: C128, re: f64, im: f64) {
    assert_eq!((got.re.to_bits(), got.im.to_bits()), (re.to_bits(), im.to_bits()), "{got} instead of {re} {im}");
}

#[test]
fn fixed_points() {
    let z = c(1.0, 2.0);
    near(sqrt_c128(c(-3.0, 4.0)), 1.0, 2.0);
    near(exp_c128(z), -1.1312043837568135, 2.4717266720048188);
    near(sin_c128(z), 3.165778513216168, 1.9596010414216058);
    near(tan_c128(z), 0.03381282607989669, 1.0147936161466335);
    near(tanh_c128(z), 1.16673625724092, -0.24345820118572525);
    near(asin_c128(z), 0.42707858639247614, 1.5285709194809982);
    near(acosh_c128(z), 1.5285709194809982, 1.1437177404024206);
    near(atan_c128(z), 1.3389725222944935, 0.40235947810852507);
    near(div_c128(c(-5.0, 10.0), c(3.0, 4.0)), 1.0, 2.0);
    near(pow_c128(z, c(2.0, 0.0)), -3.0, 4.0);
    near(log_c128(c(0.6, 0.8)), 2.2204460492503132e-17, 0.9272952180016123);
    assert!((log_c128(c(0.6, 0.8)).re - 2.2204460492503132e-17).abs() < 1e-32);
    assert!((log1p_c128(c(1e-9, 1e-5)).re - 1.0499999993975001e-9).abs() < 1e-24);
    let single = Complex::new(1.0f32, 2.0);
    assert_eq!(exp_c64(single), Complex::new(-1.1312044, 2.4717267));
    assert_eq!((abs_c64(Complex::new(3.0, 4.0)), angle_c64(Complex::new(0.0, -1.0))), (5.0, -FRAC_PI_2 as f32));
    assert_eq!(sgn_c128(c(3e300, -4e300)), c(0.6, -0.8));
}

#[test]
fn range_is_kept() {
    near(div_c128(c(1e308, 1e308), c(1e308, 1e308)), 1.0, 0.0);
    near(div_c128(c(1e-310, 0.0), c(1e-310, 1e-310)), 0.5, -0.5);
    near(sqrt_c128(c(1e308, 1e308)), 1.09868411346781e154, 4.550898605622274e153);
    near(log_c128(c(1e308, 1e308)), 709.542782232446, std::f64::consts::FRAC_PI_4);
    near(exp_c128(c(720.0, 1e-20)), INF, 4.920700930263816e+292);
    assert_eq!(abs_c128(c(3e300, 4e300)), 5e300);
}

#[test]
fn special_values() {
    same(sqrt_c128(c(-0.0, -0.0)), 0.0, -0.0);
    same(sqrt_c128(c(-4.0, -0.0)), 0.0, -2.0);
    same(sqrt_c128(c(NAN, INF)), INF, INF);
    same(exp_c128(c(-INF, NAN)), 0.0, 0.0);
    same(log_c128(c(-0.0, 0.0)), -INF, std::f64::consts::PI);
    same(log_c128(c(-INF, NAN)), INF, NAN);
    same(cosh_c128(c(INF, NAN)), INF, NAN);
    same(tanh_c128(c(INF, 1.0)), 1.0, 0.0);
    same(asin_c128(c(0.0, NAN)), 0.0, NAN);
    same(acos_c128(c(-INF, INF)), 3.0 * std::f64::consts::FRAC_PI_4, -INF);
    same(atanh_c128(c(1.0, 0.0)), INF, 0.0);
    same(atanh_c128(c(INF, INF)), 0.0, FRAC_PI_2);
    same(atan_c128(c(NAN, 1.0)), NAN, NAN);
    same(pow_c128(c(0.0, 0.0), c(0.0, 0.0)), 1.0, 0.0);
    same(pow_c128(c(0.0, 0.0), c(2.0, 1.0)), 0.0, 0.0);
    same(sgn_c128(c(0.0, -0.0)), 0.0, 0.0);
    same(div_c128(c(1.0, -1.0), c(0.0, 0.0)), INF, -INF);
    same(div_c128(c(1.0, 1.0), c(INF, 1.0)), 0.0, 0.0);
    same(sigmoid_c128(c(-800.0, 0.0)), 0.0, 0.0);
}
