//! The feature `ndarray`: arrays as feeds, and tensors as arrays.

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
    check::<u16>();
    check::<u32>();
    check::<u64>();
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

/// An owned array becomes a tensor without a copy, for any strides. Results are written to other memory.
#[test]
fn an_owned_array_moves_in_without_a_copy() {
    fn check<T: castwise::Element>() {
        let mut r = Random(T::DTYPE as u64);
        let t = random_tensor(T::DTYPE, &[4, 6, 50], &mut r, false);
        let make = || ArrayD::from_shape_vec(IxDyn(&[4, 6, 50]), t.to_vec::<T>().unwrap()).unwrap();
        let mut flipped = make();
        flipped.invert_axis(Axis(0));
        let orders = [make(), make().reversed_axes(), flipped, make().slice_move(s![1..;2, .., 3..;-7]).into_dyn()];
        for a in orders {
            let (first, copy) = (a.as_ptr().addr(), Tensor::from_array(&a).unwrap());
            let moved = Tensor::try_from(a).unwrap();
            assert_eq!(moved.as_array::<T>().unwrap().as_ptr().addr(), first, "{:?}", moved.strides());
            assert_eq!(moved.contiguous().unwrap().as_bytes(), copy.as_bytes(), "{:?}", moved.strides());
        }
    }
    check::<bool>();
    check::<f16>();
    check::<f64>();
    check::<Complex<f16>>();
    check::<Complex<f32>>();
    check::<Complex<f64>>();

    // The tensor is an operand like others. As an output it gets its own memory.
    let a = Array::from_shape_fn((40, 700), |(i, j)| (i * 700 + j) as f32);
    let shared = Tensor::from_owned_array(a.to_shared()).unwrap();
    let moved = Tensor::from_owned_array(a.reversed_axes()).unwrap();
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [None, None]) * 2.0;
    let f = Executor::new().prepare(&p, [&y]).unwrap();
    let want = f.run(&[&shared.transpose(0, 1).unwrap()]).unwrap();
    assert_eq!(f.run(&[&moved]).unwrap()[0].as_bytes(), want[0].as_bytes());
    let mut into = [Tensor::from_owned_array(Array::<f32, _>::zeros((700, 40))).unwrap()];
    f.run_into(&[&moved], &mut into).unwrap();
    assert_eq!(into[0].as_bytes(), want[0].as_bytes());
    let empty = Tensor::try_from(Array::<u8, _>::zeros((3, 0))).unwrap();
    assert_eq!((empty.shape(), empty.numel()), (&[3, 0][..], 0));
    assert_eq!(Tensor::try_from(ArrayD::from_elem(IxDyn(&[]), 5i32)).unwrap().item::<i32>().unwrap(), 5);
}

/// A borrowed array is read in place, for any strides without gaps between elements.
#[test]
fn a_borrowed_array_is_a_feed_in_every_layout() {
    fn check<T: castwise::Element>() {
        let mut r = Random(T::DTYPE as u64);
        let t = random_tensor(T::DTYPE, &[4, 6, 50], &mut r, false);
        let a = ArrayD::from_shape_vec(IxDyn(&[4, 6, 50]), t.to_vec::<T>().unwrap()).unwrap();
        let mut permuted = a.view().permuted_axes(IxDyn(&[1, 2, 0]));
        permuted.invert_axis(Axis(2));
        let row = a.slice(s![1, 2, 1..]);
        let repeated = row.broadcast((6, 49)).unwrap();
        let one = a.slice(s![3, 5, 7]);
        // Whether the array is viewed; otherwise it is copied.
        let all = [
            (true, a.view()),
            (true, a.t()),
            (true, a.slice(s![..;-1, .., ..;-1]).into_dyn()),
            (true, permuted),
            (true, a.slice(s![1..3, .., ..]).into_dyn()),
            (true, a.slice(s![2, 1..4, ..]).into_dyn()),
            (true, a.slice(s![2..3, 4..5, 5..9]).into_dyn()),
            (true, row.into_dyn()),
            (true, repeated.into_dyn()),
            (true, one.broadcast((3, 2)).unwrap().into_dyn()),
            (true, one.into_dyn()),
            (true, a.slice(s![.., 2..2, ..]).into_dyn()),
            (false, a.slice(s![.., .., 1..]).into_dyn()),
            (false, a.slice(s![.., 1..;2, ..]).into_dyn()),
            (false, a.slice(s![..;2, .., ..]).into_dyn()),
            (false, a.slice(s![0, 0, ..;-3]).into_dyn()),
        ];
        for (viewed, v) in &all {
            let copy = Tensor::from_array(v).unwrap();
            assert_eq!(TensorView::from_array(v).is_ok(), *viewed, "{:?} by {:?}", v.shape(), v.strides());
            if let Ok(view) = TensorView::try_from(v.clone()) {
                let strides: Vec<isize> = v.strides().to_vec();
                assert!(view.shape() == v.shape() && (view.numel() == 0 || view.strides() == strides));
                assert_eq!(view.to_tensor().unwrap().as_bytes(), copy.as_bytes(), "{strides:?}");
            }
            let p = Program::new(Rules::Torch);
            let (x, y) = (p.data("x", T::DTYPE, v.shape()), p.data("y", T::DTYPE, v.shape()));
            let fetches = [x.ne(&y), x.clone(), x.cast(DType::C128), y.ne(&x).where_(&x, &y)];
            let exe = Executor::builder().threads(1).build();
            let want = exe.run(&p, feeds! { "x" => copy, "y" => copy }, &fetches).unwrap();
            let list = vec![("x", castwise::Feed::from(v)), ("y", castwise::Feed::from(v))];
            for feeds in [feeds! { "x" => v, "y" => &v }, list.into()] {
                for (got, want) in exe.run(&p, feeds, &fetches).unwrap().iter().zip(&want) {
                    assert_eq!(got.as_bytes(), want.as_bytes(), "{:?} by {:?}", v.shape(), v.strides());
                }
            }
        }
    }
    check::<bool>();
    check::<f16>();
    check::<f32>();
    check::<i64>();
    check::<Complex<f32>>();
    check::<Complex<f64>>();
}

/// A part of an array, while another thread writes to the other part.
#[test]
fn what_lies_between_borrowed_elements_may_be_written_to() {
    let mut a = Array::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as f32);
    let (left, mut right) = a.multi_slice_mut((s![.., ..2], s![.., 2..]));
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [None, None]) * 2.0;
    let left = left.view();
    let feeds = feeds! { "x" => &left };
    right.fill(-1.0);
    let out = Executor::new().run(&p, feeds, [&y]).unwrap();
    right.fill(-2.0);
    assert_eq!(out[0].to_vec::<f32>().unwrap(), [0.0, 2.0, 8.0, 10.0, 16.0, 18.0]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let t = Tensor::zeros(DType::F32, [2]).unwrap();
    assert!(matches!(t.as_array::<f64>(), Err(Error::DType { expected: DType::F64, found: DType::F32 })));
    let deep = ArrayD::<u8>::zeros(IxDyn(&[1; 65]));
    assert!(matches!(Tensor::from_array(&deep), Err(Error::Limit { which: "the rank", .. })));
    assert!(matches!(TensorView::from_array(&deep), Err(Error::Limit { which: "the rank", .. })));
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::U8, [1]);
    let run = Executor::new().run(&p, feeds! { "x" => &deep }, [&x]);
    assert!(matches!(run, Err(Error::Earlier(e)) if matches!(*e, Error::Limit { which: "the rank", .. })));
    assert!(matches!(Tensor::from_owned_array(deep), Err(Error::Limit { which: "the rank", .. })));
    let empty = Tensor::zeros(DType::F32, [0, usize::MAX]).unwrap();
    assert!(matches!(empty.as_array::<f32>(), Err(Error::Shape(_))));
}
