//! Edges of arithmetic that rows call.

use super::{IntFn, Real, RealFn};

#[test]
fn ldexp_rounds_once_from_end_to_end() {
    let least = f32::from_bits(1);
    assert_eq!(RealFn::ldexp(least, 276.0f32), 127f32.exp2());
    assert_eq!(RealFn::ldexp(f32::MAX, -276.0f32), 2.0 * least);
    assert_eq!(RealFn::ldexp(f32::MAX, -278.0f32), 0.0);
    // Halves of the smallest numbers go to the even one; in two roundings they would not.
    for (x, half) in [(1.0f32, 0.0f32), (3.0, 2.0), (5.0, 2.0), (-7.0, -4.0)] {
        assert_eq!(RealFn::ldexp(x * least, -1.0f32), half * least, "{x}");
        assert_eq!(RealFn::ldexp(x, -150.0f32), half * least, "{x}");
    }
    assert_eq!(RealFn::ldexp(f64::from_bits(3), 2097.0), 1.5 * 1024f64.exp2() / 2.0);
    assert_eq!(RealFn::ldexp(0.0f64, 1e9), 0.0);
    assert!(f64::is_nan(RealFn::ldexp(0.0f64, f64::INFINITY)));
    assert!(f32::is_nan(RealFn::ldexp(1.0f32, f32::NAN)));
    assert_eq!(RealFn::ldexp(f32::INFINITY, -1e9f32), f32::INFINITY);
}

#[test]
fn narrow_multiples_wrap_their_magnitude() {
    assert_eq!((IntFn::lcm(-15i8, 10), IntFn::lcm(25i8, 6), IntFn::lcm(0i8, 6)), (30, -106, 0));
    assert_eq!(IntFn::lcm(100u8, 3), 44);
    assert_eq!(IntFn::lcm(i16::MIN, i16::MIN), i16::MIN);
    assert_eq!(IntFn::lcm(65536i32, 65537), 65536);
}

#[test]
fn heaviside_of_nan_is_zero() {
    let steps = [f32::NAN, -1.0, -0.0, 2.0].map(|x| Real::heaviside(x, 0.5));
    assert_eq!(steps, [0.0, 0.0, 0.5, 1.0]);
}
