//! Names and sizes of the dtypes; the nearest number of a float dtype.

use super::*;

#[test]
fn names_parse_back_and_sizes_are_those_of_the_rust_types() {
    for d in DType::ALL {
        assert_eq!(d.name().parse::<DType>().unwrap(), d);
        with_dtype!(d, T => {
            assert_eq!(size_of::<T>(), d.size());
            assert_eq!(<T as Element>::DTYPE, d);
        });
    }
    let meant = |text: &str| text.parse::<DType>().unwrap_err().meant();
    for (text, d) in [
        ("torch.bfloat16", DType::BF16),
        ("np.uint8", DType::U8),
        ("Float32", DType::F32),
        ("BF16", DType::BF16),
        ("fp16", DType::F16),
        ("torch.float8_e4m3fn", DType::F8E4M3FN),
        ("jax.numpy.complex64", DType::C64),
    ] {
        assert_eq!(meant(text), Some(d), "{text}");
    }
    for text in ["f8", "u128", "", ".", "torch.", "float8_e4m3fnuz", &"fp".repeat(100_000)] {
        assert_eq!(meant(text), None, "{text}");
    }
    let message = |text: &str| text.parse::<DType>().unwrap_err().to_string();
    assert!(message("f8").starts_with("unknown dtype `f8`; known: bool u8 u16 "), "{}", message("f8"));
    assert!(message("torch.half").starts_with("unknown dtype `torch.half`; did you mean `f16`? known: bool "));
}

#[test]
fn limits_are_those_of_the_rust_types() {
    for d in DType::ALL.into_iter().filter(|d| d.is_float()) {
        let [spacing, largest, normal] = d.float_limits().unwrap();
        let after = |v: f64| d.value_of_bits(d.nearest_bits(v) + 1);
        assert_eq!((after(1.0), d.value_of_bits(1 << (d.digits() - 1))), (1.0 + spacing, normal), "{d}");
        assert_eq!((d.nearest_bits(f64::NAN), d.value_of_bits(d.nan_bits()).is_nan()), (d.nan_bits(), true), "{d}");
        assert_eq!(d.nearest_bits(f64::INFINITY), d.infinity_bits(), "{d}");
        let last = d.infinity_bits() - u64::from(d.has_infinity());
        assert_eq!((d.value_of_bits(last), d.nearest_bits(largest)), (largest, last), "{d}");
        assert_eq!(d.value_of_bits(d.infinity_bits()).is_infinite(), d.has_infinity(), "{d}");
    }
}

/// The bits of the number of a float dtype that is nearest to `v`, found by integer arithmetic on the bits of `v`.
fn nearest(d: DType, v: f64) -> u64 {
    let (digits, least) = (d.digits() as i32, 3 - d.range_bits() as i32 - d.digits() as i32);
    let sign = (v.to_bits() >> 63) << (8 * d.size() - 1);
    if v.is_nan() {
        return d.nan_bits();
    }
    if v.is_infinite() {
        return d.infinity_bits() | sign;
    }
    // |v| = m·2^e, and the result is a multiple of 2^unit.
    let (field, fraction) = ((v.to_bits() >> 52 & 0x7ff) as i32, v.to_bits() & ((1 << 52) - 1));
    let (m, e) = if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    let top = 63 - m.max(1).leading_zeros() as i32 + e;
    let unit = (top - digits + 1).max(least);
    let cut = unit - e;
    let kept = match cut {
        ..=0 => m << -cut,
        1..=63 => {
            let (kept, rest, half) = (m >> cut, m & ((1 << cut) - 1), 1 << (cut - 1));
            kept + u64::from(rest > half || rest == half && kept & 1 == 1)
        }
        _ => 0,
    };
    let bits = ((unit - least) as u64) << (digits - 1);
    sign | (bits + kept).min(d.infinity_bits())
}

#[test]
fn the_nearest_16_bit_float_is_rounded_once() {
    let power = |n: i32| 2f64.powi(n);
    let above_a_tie = 1.0 + power(-11) + power(-40);
    assert_eq!((DType::F16.nearest_bits(above_a_tie), DType::F16.nearest_bits(-above_a_tie)), (0x3c01, 0xbc01));
    assert_eq!(DType::BF16.nearest_bits(1.0 + power(-8) + power(-40)), 0x3f81);
    for (d, v, bits) in [
        (DType::F16, 65519.999, 0x7bff),
        (DType::F16, 65520.0, 0x7c00),
        (DType::F16, power(-25), 0),
        (DType::F16, power(-25) + power(-70), 1),
        (DType::F16, -1e300, 0xfc00),
        (DType::F16, -1e-300, 0x8000),
        (DType::BF16, power(-134), 0),
        (DType::BF16, power(-134) * (1.0 + f64::EPSILON), 1),
        (DType::BF16, 3.4e38, 0x7f80),
        (DType::BF16, 3.389e38, 0x7f7f),
        (DType::BF16, -f64::NAN, 0x7fc0),
    ] {
        assert_eq!((d.nearest_bits(v), nearest(d, v)), (bits, bits), "{v:e} as {d}");
    }
    let mut random = crate::base::random::Random(3);
    for d in [DType::F16, DType::BF16] {
        let same = |v: f64| assert_eq!(d.nearest_bits(v), nearest(d, v), "{v:e} as {d}");
        // Every finite number, the midpoint after it, and the neighbours of both at several distances.
        for bits in 0..d.infinity_bits() {
            let (v, next) = (d.value_of_bits(bits), d.value_of_bits(bits + 1));
            let next = if next.is_finite() { next } else { d.largest() + (v - d.value_of_bits(bits - 1)) };
            for v in [v, (v + next) / 2.0] {
                for step in [0, 1, 1 << 20, 1 << 28, 1 << 29] {
                    for near in [v.to_bits() + step, v.to_bits().saturating_sub(step)].map(f64::from_bits) {
                        same(near);
                        same(-near);
                    }
                }
            }
        }
        (0..100_000).for_each(|_| same(f64::from_bits(random.next())));
    }
}
