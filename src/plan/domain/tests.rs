//! Domains of small programs.

use super::*;
use crate::graph::program::Program;
use crate::promotion::Rules;

#[test]
fn equal_dims_are_one_domain_and_broadcast_ones_are_not() {
    let p = Program::new(Rules::Torch);
    let [a, b] = ["a", "b"].map(|n| p.data(n, crate::DType::F32, [None]));
    let sum = &a + &b;
    let typed = p.infer().unwrap();
    let shape = |v| typed.nodes[typed.node(v).unwrap() as usize].shape as usize;
    let same = domains(&typed, &pattern(&typed, &[7, 7]));
    assert_eq!(same.of_shape[shape(&sum)], same.of_shape[shape(&a)]);
    let wide = domains(&typed, &pattern(&typed, &[1, 7]));
    assert_eq!(wide.of_shape[shape(&sum)], wide.of_shape[shape(&b)]);
    assert_ne!(wide.of_shape[shape(&a)], wide.of_shape[shape(&b)]);
    assert_eq!(wide.spread(shape(&a) as u32, shape(&b) as u32), BroadcastKind::All);
    assert_eq!(pattern(&typed, &[1, 1]), pattern(&typed, &[9, 9]));
}

#[test]
fn dims_that_never_meet_are_no_domain_and_numbers_join_those_that_do() {
    let p = Program::new(Rules::Torch);
    let dims = [[None], [None], [None], [Some(7)]];
    let vars = ["a", "b", "c", "d"].iter().zip(dims).map(|(n, d)| p.data(n, crate::DType::F32, d));
    let [a, b, c, d] = vars.collect::<Vec<_>>().try_into().unwrap();
    let (_, meets) = (&a + &b, &a + &d);
    let typed = p.infer().unwrap();
    let shape = |v| typed.nodes[typed.node(v).unwrap() as usize].shape;
    let all = |values: &[usize]| {
        let found = domains(&typed, &pattern(&typed, values));
        [&a, &b, &c, &d, &meets].map(|v| found.of_shape[shape(v) as usize])
    };
    let [a7, b7, c7, d7, meets7] = all(&[7, 7, 7]);
    assert!([b7, d7, meets7].iter().all(|s| *s == a7) && c7 != a7, "{a7} {b7} {c7} {d7} {meets7}");
    let [a1, b1, c1, d1, meets1] = all(&[1, 5, 5]);
    assert!(a1 != b1 && b1 != c1 && b1 != d1 && c1 != d1 && meets1 == d1, "{a1} {b1} {c1} {d1} {meets1}");
    assert_eq!(pattern(&typed, &[1, 5, 1]), [true, false, false]);
    assert_eq!(pattern(&typed, &[7, 1, 1]), [false, true, false]);
    assert_eq!(pattern(&typed, &[7, 7, 1]), [false; 3]);
    let spreads = domains(&typed, &pattern(&typed, &[1, 7, 3]));
    assert_eq!(spreads.spread(shape(&a), shape(&d)), BroadcastKind::All);
    assert_eq!(spreads.spread(shape(&d), shape(&meets)), BroadcastKind::Varies);
    assert_eq!(spreads.spread(shape(&c), shape(&d)), BroadcastKind::Inner);
}
