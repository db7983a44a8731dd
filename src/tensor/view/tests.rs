//! Views: the elements they show.

use super::*;

fn counted(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    Tensor::from_vec((0..n as i32).collect(), shape).unwrap()
}

#[test]
fn views_read_the_right_elements() {
    let t = counted(&[2, 3, 4]);
    let v = t.permute(&[2, 0, 1]).unwrap().slice(0, 1, 4, 2).unwrap();
    assert_eq!(v.to_vec::<i32>().unwrap(), [1, 5, 9, 13, 17, 21, 3, 7, 11, 15, 19, 23]);
    assert_eq!(t.flip(2).unwrap().slice(0, 1, 2, 1).unwrap().to_vec::<i32>().unwrap()[..4], [15, 14, 13, 12]);
    let b = counted(&[3, 1]).broadcast_to([2, 3, 2]).unwrap();
    assert_eq!(b.to_vec::<i32>().unwrap(), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
    assert!(t.broadcast_to([2, 3, 5]).is_err() && t.slice(0, 1, 3, 1).is_err() && t.transpose(0, 3).is_err());
}

#[test]
fn a_dim_of_one_element_has_any_stride() {
    let far = counted(&[2, 3, 2]).slice(1, 2, 3, usize::MAX).unwrap();
    assert_eq!((far.shape(), far.strides()), (&[2, 1, 2][..], &[6, isize::MAX, 1][..]));
    for v in [far.clone(), far.flip(1).unwrap(), far.flip(1).unwrap().transpose(0, 1).unwrap()] {
        assert_eq!(v.to_vec::<i32>().unwrap(), [4, 5, 10, 11]);
        assert!(format!("{v:?} {v}").contains("11"));
    }
}

#[test]
fn reshape_is_a_view_where_strides_allow() {
    let t = counted(&[4, 6]);
    assert_eq!(t.reshape([2, 2, 3, 2]).unwrap().strides(), [12, 6, 2, 1]);
    let columns = t.slice(1, 0, 6, 2).unwrap();
    let split = columns.reshape([2, 2, 3]).unwrap();
    assert_eq!(split.to_vec::<i32>().unwrap(), columns.to_vec::<i32>().unwrap());
    let swapped = t.transpose(0, 1).unwrap();
    assert!(swapped.reshape([24]).is_err());
    let split = swapped.reshape([3, 2, 1, 4]).unwrap();
    assert_eq!(split.to_vec::<i32>().unwrap(), swapped.to_vec::<i32>().unwrap());
    assert!(t.reshape([5, 5]).is_err());
    assert_eq!(counted(&[0, 3]).reshape([3, 0]).unwrap().shape(), [3, 0]);
    let one = counted(&[1]).reshape([1, 1]).unwrap();
    assert_eq!(one.to_vec::<i32>().unwrap(), [0]);
}
