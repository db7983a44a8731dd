//! What the feature `ndarray` takes and gives.

mod common;

use castwise::prelude::*;
use castwise::{Complex, Error, f16};
use common::{Random, random_tensor};
use ndarray::{Array, ArrayD, Axis, IxDyn, ShapeBuilder, array, s};

#[test]
fn views_of_every_dtype_and_layout_show_the_tensors_elements() {
    fn check<T: castwise::Element>() {
        let mut r = Random(T::DTYPE as u64);
        let t = random_tensor(T::DTYPE, &[4, 6, 5], &mut r, false);
        let views = [
            t.clone(),
            t.transpose(0, 2).unwrap(),
            t.slice(1, 1, 6, 2).unwrap(),
            t.flip(0).unwrap().flip(2).unwrap().transpose(0, 1).unwrap(),
            t.slice(0, 2, 3, 1).unwrap().broadcast_to([3, 6, 5]).unwrap().flip(1).unwrap(),
            t.slice(0, 0, 1, 1).unwrap().slice(1, 3, 4, 1).unwrap().slice(2, 4, 5, 1).unwrap().reshape([]).unwrap(),
            t.slice(1, 6, 6, 1).unwrap(),
        ];
        for v in &views {
            let a = v.as_array::<T>().unwrap();
            assert_eq!((a.shape(), a.len()), (v.shape(), v.numel()));
            let bytes = |all: &mut dyn Iterator<Item = T>| -> Vec<u8> {
                all.flat_map(|v| bytemuck::bytes_of(&v).to_vec()).collect()
            };
            let elements = bytes(&mut v.to_vec::<T>().unwrap().into_iter());
            assert_eq!(bytes(&mut a.iter().copied()), elements, "{:?}", v.strides());
            let back = Tensor::from_array(&a).unwrap();
            assert!(back.is_contiguous() && back.shape() == v.shape());
            assert_eq!(back.as_bytes().unwrap(), elements);
        }
        // Nothing is copied.
        let a = t.as_array::<T>().unwrap();
        assert_eq!(a.as_ptr().addr(), t.as_bytes().unwrap().as_ptr().addr());
    }
    check::<bool>();
    check::<u8>();
    check::<i8>();
    check::<i16>();
    check::<i32>();
    check::<i64>();
    check::<f16>();
    check::<castwise::bf16>();
    check::<f32>();
    check::<f64>();
    check::<Complex<f16>>();
    check::<Complex<f32>>();
    check::<Complex<f64>>();
}

#[test]
fn arrays_of_any_layout_are_taken_row_major() {
    let a = Array::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as i32);
    let t = Tensor::try_from(a.slice(s![..;-1, 1..;2])).unwrap();
    assert_eq!((t.shape(), t.to_vec::<i32>().unwrap()), (&[3, 2][..], vec![21, 23, 11, 13, 1, 3]));
    let columns = Array::from_shape_vec((2, 3).f(), vec![1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!(Tensor::try_from(&columns).unwrap().to_vec::<f64>().unwrap(), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    assert_eq!(Tensor::try_from(array![true, false]).unwrap().to_vec::<bool>().unwrap(), [true, false]);
    let wide = a.index_axis(Axis(0), 1).insert_axis(Axis(0)).broadcast((5, 4)).unwrap().to_owned();
    assert_eq!(
        Tensor::from_array(&wide).unwrap().slice(0, 4, 5, 1).unwrap().to_vec::<i32>().unwrap(),
        [10, 11, 12, 13]
    );
    assert_eq!(Tensor::from_array(&ArrayD::<u8>::zeros(IxDyn(&[0, 3]))).unwrap().shape(), [0, 3]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let t = Tensor::zeros(DType::F32, [2]).unwrap();
    assert!(matches!(t.as_array::<f64>(), Err(Error::DType { expected: DType::F64, found: DType::F32 })));
    let deep = ArrayD::<u8>::zeros(IxDyn(&[1; 65]));
    assert!(matches!(Tensor::from_array(&deep), Err(Error::Limit { which: "the rank", .. })));
    let empty = Tensor::zeros(DType::F32, [0, usize::MAX]).unwrap();
    assert!(matches!(empty.as_array::<f32>(), Err(Error::Shape(_))));
}
