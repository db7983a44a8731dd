//! Tensors of given values, in every dtype.

use castwise::{DiagnosticKind, Error, Key, prelude::*};

/// The values as f64; of complex numbers the real parts.
fn values(t: &Tensor) -> Vec<f64> {
    let cx = Eager::new(Rules::Torch).tensor(t);
    let real = if t.dtype().is_complex() { cx.cast(DType::C128).real() } else { cx };
    real.cast(DType::F64).result().unwrap().to_vec().unwrap()
}

fn kind(r: Result<Tensor, Error>) -> DiagnosticKind {
    r.unwrap_err().diagnostics()[0].kind
}

#[test]
fn ones_ranges_and_the_identity_in_every_dtype() {
    for dtype in DType::ALL {
        let ones = Tensor::ones(dtype, [2, 0, 3]).unwrap();
        assert_eq!((ones.dtype(), ones.shape()), (dtype, &[2, 0, 3][..]));
        assert_eq!(values(&Tensor::ones(dtype, [2, 2]).unwrap()), [1.0; 4], "{dtype}");
        assert_eq!(values(&Tensor::ones(dtype, []).unwrap()), [1.0]);
        assert_eq!(values(&Tensor::eye(dtype, 3, 2).unwrap()), [1.0, 0.0, 0.0, 1.0, 0.0, 0.0], "{dtype}");
        assert_eq!(Tensor::eye(dtype, 0, 5).unwrap().shape(), [0, 5]);
        assert_eq!(Tensor::eye(dtype, 5, 0).unwrap().shape(), [5, 0]);
        if dtype == DType::Bool {
            assert_eq!(kind(Tensor::arange(dtype, 0, 2, 1)), DiagnosticKind::UnsupportedDType);
            assert_eq!(kind(Tensor::linspace(dtype, 0.0, 1.0, 2)), DiagnosticKind::UnsupportedDType);
            continue;
        }
        assert_eq!(values(&Tensor::arange(dtype, 0, 14, 2).unwrap()), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0], "{dtype}");
        assert_eq!(values(&Tensor::arange(dtype, 7, 0, -3).unwrap()), [7.0, 4.0, 1.0], "{dtype}");
        assert_eq!(Tensor::arange(dtype, 3, 3, 1).unwrap().shape(), [0]);
        assert_eq!(Tensor::arange(dtype, 3, 0, 1).unwrap().shape(), [0]);
        assert_eq!(values(&Tensor::linspace(dtype, 0.0, 8.0, 5).unwrap()), [0.0, 2.0, 4.0, 6.0, 8.0], "{dtype}");
        assert_eq!(Tensor::linspace(dtype, 0.0, 8.0, 0).unwrap().shape(), [0]);
    }
}

#[test]
fn mistakes_are_typed() {
    for (start, end, step) in
        [(0.0, 1.0, 0.0), (0.0, f64::INFINITY, 1.0), (f64::NAN, 1.0, 1.0), (0.0, 1.0, f64::INFINITY)]
    {
        assert_eq!(kind(Tensor::arange(DType::F32, start, end, step)), DiagnosticKind::BadParameter);
    }
    assert_eq!(kind(Tensor::arange(DType::I32, 0, 3, 0)), DiagnosticKind::BadParameter);
    assert_eq!(kind(Tensor::arange(DType::I32, 0, 3.0, 1)), DiagnosticKind::BadParameter);
    let wrong = Tensor::arange(DType::I32, 0, 3, 0).unwrap_err().to_string();
    assert!(wrong.contains("`arange` of i32 from 0 to 3 by 0") && wrong.contains("constructors.rs"), "{wrong}");
    assert!(Tensor::arange(DType::F32, 0, 1e300, 1).is_err());
    assert!(Tensor::arange(DType::I64, i64::MIN, i64::MAX, 1).is_err());
    assert!(Tensor::ones(DType::F32, [usize::MAX, 2]).is_err());
    assert!(Tensor::eye(DType::F32, usize::MAX, 2).is_err());
    assert!(Tensor::random(DType::F32, [usize::MAX, 2], 0).is_err());
    assert_eq!(
        Tensor::arange(DType::U64, u64::MAX - 3, u64::MAX, 2).unwrap().to_vec::<u64>().unwrap(),
        [u64::MAX - 3, u64::MAX - 1]
    );
}

#[test]
fn random_tensors_fill_their_range() {
    let key = Key { seed: 3, stream: 9 };
    for dtype in DType::ALL {
        let t = Tensor::random(dtype, [40, 50], key).unwrap();
        let all = values(&t);
        let (least, most) = all.iter().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
        if dtype.is_float() || dtype.is_complex() {
            assert!((0.0..0.1).contains(&least) && (0.8..1.0).contains(&most), "{dtype}: {least} {most}");
        } else if dtype == DType::Bool {
            let ones: f64 = all.iter().sum();
            assert!((900.0..1100.0).contains(&ones), "{ones}");
        } else {
            let bits = 8 * dtype.size() as i32;
            let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
            let (low, width) = if signed { (-(2f64.powi(bits - 1)), 2f64.powi(bits)) } else { (0.0, 2f64.powi(bits)) };
            assert!(least < low + width / 50.0 && most > low + width * 0.98, "{dtype}: {least} {most}");
        }
        assert_eq!(Tensor::random(dtype, [2000], key).unwrap().as_bytes().unwrap(), t.as_bytes().unwrap());
    }
    let like = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [77]).unwrap());
    let generated = like.uniform(key, DType::F32).result().unwrap().to_vec::<f32>().unwrap();
    assert_eq!(Tensor::random(DType::F32, [77], key).unwrap().to_vec::<f32>().unwrap(), generated);
}
