//! Nested arrays as tensors.

use super::*;
use crate::base::dtype::DType;

#[test]
fn arrays_keep_their_extents_and_elements() {
    let t = Tensor::from([[[1i16, 2], [3, 4], [5, 6]]]);
    assert_eq!((t.dtype(), t.shape(), t.strides()), (DType::I16, &[1, 3, 2][..], &[6, 2, 1][..]));
    assert_eq!(t.transpose(1, 2).unwrap().to_vec::<i16>().unwrap(), [1, 3, 5, 2, 4, 6]);
    let long: [f64; 1000] = std::array::from_fn(|i| i as f64);
    assert_eq!(Tensor::from(long).as_slice::<f64>().unwrap(), long);
    assert_eq!(Tensor::from(long).as_bytes().unwrap().as_ptr().addr() % 64, 0);
    let none: [[bool; 0]; 3] = [[]; 3];
    assert_eq!((Tensor::from(none).shape(), Tensor::from(none).numel()), (&[3, 0][..], 0));
    assert!(Tensor::from(none).to_vec::<bool>().unwrap().is_empty());
    assert_eq!(Tensor::from(true).rank(), 0);
    assert_eq!(Tensor::try_from(&long[..3]).unwrap().to_vec::<f64>().unwrap(), [0.0, 1.0, 2.0]);
    assert_eq!(Tensor::try_from(Vec::<u8>::new()).unwrap().shape(), [0]);
}
