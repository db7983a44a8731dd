//! Placement at an axis, broadcasting of dims and symbols, element counts.

use super::*;

#[test]
fn axis_places_the_lower_rank() {
    assert_eq!(at_axis(&[3usize], 4, 1), Ok(vec![3, 1, 1]));
    assert_eq!(at_axis(&[3usize, 1], 3, 1), Ok(vec![3, 1]));
    assert_eq!(at_axis(&[3usize, 1], 3, 2), Ok(vec![3]));
    assert_eq!(at_axis(&[4usize, 5], 4, 1), Ok(vec![4, 5, 1]));
    assert_eq!(at_axis(&[4usize, 5], 4, -1), Ok(vec![4, 5]));
    assert_eq!(at_axis(&[4usize, 5, 6], 5, 2), Ok(vec![4, 5, 6]));
    assert!(at_axis(&[4usize, 5], 3, 2).is_err() && at_axis(&[4usize], 3, 3).is_err());
    assert!(at_axis(&[4usize], 3, -2).is_err() && at_axis(&[4usize], 1, 1).is_err());
    assert_eq!(at_axis(&[4usize], 1, 0), Ok(vec![4]));
    assert!(at_axis(&[1usize], 3, 3).is_err() && at_axis(&[1usize], 1, 1).is_err());
}

#[test]
fn dims_count_from_both_ends() {
    let of = |dims: &[i64], rank| axes(Some(dims), rank).ok();
    assert_eq!([of(&[1, -2], 2), of(&[-1], 2), of(&[], 2)], [Some(vec![0, 1]), Some(vec![1]), Some(vec![])]);
    assert_eq!([of(&[-3], 2), of(&[2], 2), of(&[0, -2], 2)], [None, None, None]);
    assert_eq!([of(&[0], 0), of(&[-1], 0), of(&[1], 0), of(&[-2], 0)], [Some(vec![]), Some(vec![]), None, None]);
    assert_eq!(axes(None, 2), Ok(vec![0, 1]));
}

#[test]
fn broadcast_takes_the_dim_that_is_not_one() {
    assert_eq!(broadcast(&[2, 1, 4], &[3, 1]), Ok(vec![2, 3, 4]));
    assert_eq!(broadcast(&[0usize], &[1]), Ok(vec![0]));
    assert_eq!(broadcast::<usize>(&[], &[]), Ok(vec![]));
    assert_eq!(broadcast(&[2, 1, 4], &[3, 2]), Err(Mismatch { axis: 2, dims: (4, 2) }));
    assert!(broadcast(&[0usize], &[3]).is_err());
}

#[test]
fn symbols_unify_as_sets() {
    let (a, b, c) = (SymDim::symbol(0), SymDim::symbol(1), SymDim::symbol(2));
    let ab_c = a.common(&b).unwrap().common(&c).unwrap();
    assert_eq!(ab_c, a.common(&b.common(&c).unwrap()).unwrap());
    assert_eq!(ab_c.to_string(), "?0|?1|?2");
    assert_eq!(ab_c.extent(&[1, 7, 7]), Some(7));
    assert_eq!(ab_c.extent(&[2, 7, 7]), None);
    assert_eq!(a.common(&SymDim::Fixed(3)), Some(SymDim::Fixed(3)));
}

#[test]
fn element_counts_are_checked() {
    assert_eq!(numel(&[0, usize::MAX, usize::MAX]).unwrap(), 0);
    assert!(numel(&[1 << 32, 1 << 32]).is_err());
    assert!(numel(&[4194305, 4194305, 211106198978564]).is_err());
    assert_eq!(numel(&[]).unwrap(), 1);
    assert_eq!(numel(&[(1 << 59) - 1]).unwrap(), (1 << 59) - 1);
    let refused = numel(&[1 << 59]).unwrap_err();
    assert!(matches!(refused, Error::Limit { max: 576_460_752_303_423_487, got: 576_460_752_303_423_488, .. }));
}
