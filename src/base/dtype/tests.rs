//! Names and sizes of the dtypes.

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
