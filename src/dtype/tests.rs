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
    assert!("f8".parse::<DType>().is_err());
}
