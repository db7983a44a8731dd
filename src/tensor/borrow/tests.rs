//! Views of borrowed memory: their bounds, and the tensors made of them.

use super::*;

#[test]
fn views_reach_what_they_borrow_and_no_more() {
    let all = [0i64, 1, 2, 3, 4, 5];
    let back = TensorView::with_strides(&all, &[2, 3], &[-3, 1], 3).unwrap();
    assert_eq!(back.to_tensor().unwrap().to_vec::<i64>().unwrap(), [3, 4, 5, 0, 1, 2]);
    for (strides, offset) in [([-3, 1], 2), ([-3, 1], 4), ([3, 1], 1), ([isize::MAX, 1], 0), ([3, isize::MIN], 0)] {
        assert!(TensorView::with_strides(&all, &[2, 3], &strides, offset).is_err(), "{strides:?}, {offset}");
    }
    assert!(TensorView::with_strides(&all, &[2, 3], &[3], 0).is_err());
    // A view without elements may have any strides.
    assert_eq!(TensorView::with_strides(&all[..0], &[0, 3], &[99, 7], 5).unwrap().numel(), 0);
}

#[test]
fn a_tensors_view_becomes_a_tensor_that_shares() {
    let t = Tensor::from([[1u8, 2, 3], [4, 5, 6]]);
    let v = TensorView::from(&t).transpose(0, 1).unwrap();
    let shared = v.to_tensor().unwrap();
    assert!(Arc::ptr_eq(&shared.storage, &t.storage));
    assert_eq!(shared.to_vec::<u8>().unwrap(), [1, 4, 2, 5, 3, 6]);
    assert_eq!(format!("{v:?}"), "view of u8[3, 2]");
}
