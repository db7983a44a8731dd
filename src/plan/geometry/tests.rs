//! Geometries of some domains: rows, inner loop, accesses, reaches, folds.

use super::*;

fn new(extents: &[usize], strides: &[Vec<isize>], spread: &[BroadcastKind]) -> Geometry {
    Geometry::new(extents, strides, spread, None)
}

#[test]
fn contiguous_dims_become_one_inner_loop_and_broadcasts_rows() {
    let g = new(&[2, 3, 400], &[vec![1200, 400, 1], vec![1200, 400, 1]], &[BroadcastKind::Varies; 2]);
    assert_eq!((g.rows.as_slice(), g.inner, g.in_place()), (&[][..], 2400, true));
    let g = new(
        &[2, 3, 400],
        &[vec![1200, 400, 1], vec![0, 0, 1], vec![3, 1, 0]],
        &[BroadcastKind::Varies, BroadcastKind::Varies, BroadcastKind::Inner],
    );
    assert_eq!((g.rows.as_slice(), g.inner, g.in_place()), (&[6][..], 400, false));
    assert_eq!(g.operands[1], OperandAccess { rows: vec![0], access: Access::Contiguous, reach: (0, 399) });
    assert_eq!(g.operands[2], OperandAccess { rows: vec![1], access: Access::Broadcast, reach: (0, 5) });
}

#[test]
fn short_inner_loops_are_joined() {
    let g = new(
        &[100, 3],
        &[vec![3, 1], vec![0, 1], vec![1, 0], vec![0, 0]],
        &[BroadcastKind::Varies, BroadcastKind::Varies, BroadcastKind::Inner, BroadcastKind::All],
    );
    assert_eq!((g.rows.as_slice(), g.inner, g.in_place()), (&[][..], 300, false));
    let of = |n: usize| new(&[100, n], &[vec![n as isize, 1], vec![0, 1]], &[BroadcastKind::Varies; 2]);
    assert_eq!((of(SHORT_INNER - 1).inner, of(SHORT_INNER).inner), (100 * (SHORT_INNER - 1), SHORT_INNER));
    assert_eq!(g.operands[0].access, Access::Contiguous);
    assert_eq!(g.operands[1].access, Access::Periodic(3));
    assert_eq!(g.operands[2].access, Access::Gather(vec![100, 3], vec![1, 0]));
    assert_eq!(g.operands[3].access, Access::Broadcast);
}

#[test]
fn walks_backwards_reach_behind_the_first_element() {
    let g = new(&[5, 100], &[vec![-100, 1], vec![0, -2], vec![3, -1]], &[BroadcastKind::Varies; 3]);
    let reach: Vec<(i128, i128)> = g.operands.iter().map(|o| o.reach).collect();
    assert_eq!(reach, [(-400, 99), (-198, 0), (-99, 12)]);
}

#[test]
fn longer_periods_are_gathered() {
    let of = |n: usize| access(&[3, n], &[0, 1]);
    assert_eq!(of(LONGEST_PERIOD), Access::Periodic(LONGEST_PERIOD));
    assert_eq!(of(LONGEST_PERIOD + 1), Access::Gather(vec![3, LONGEST_PERIOD + 1], vec![0, 1]));
    assert_eq!(access(&[3, 4], &[0, 0]), Access::Gather(vec![3, 4], vec![0, 0]));
    assert_eq!(access(&[3, 4], &[4, 2]), Access::Gather(vec![3, 4], vec![4, 2]));
}

#[test]
fn the_class_of_one_element_does_not_depend_on_extents() {
    let g = new(&[1, 1], &[vec![0, 0], vec![0, 0]], &[BroadcastKind::Varies, BroadcastKind::All]);
    assert_eq!(g.classes(), [Class::Vector, Class::Splat]);
    let g = new(&[90, 1], &[vec![1, 1], vec![0, 1]], &[BroadcastKind::Varies, BroadcastKind::Varies]);
    assert_eq!(g.classes(), [Class::Vector, Class::Vector]);
}

#[test]
fn the_class_under_a_reduction_does_not_depend_on_extents() {
    let class = |strides: &[isize], reduced: &[usize]| {
        let reduced = Some(Reduction { dims: reduced, adds: false });
        Geometry::new(&[100, 3, 400], &[strides.to_vec()], &[BroadcastKind::Inner], reduced).classes()[0]
    };
    // Repeated along the last dim, which is the inner loop; and along another one, of which its type says nothing.
    assert_eq!(class(&[3, 1, 0], &[2]), Class::Splat);
    assert_eq!(class(&[0, 0, 0], &[1, 2]), Class::Vector);
    let g =
        Geometry::new(&[400, 3], &[vec![0, 0]], &[BroadcastKind::Inner], Some(Reduction { dims: &[0], adds: false }));
    assert_eq!((g.inner, g.classes()), (1200, vec![Class::Vector]));
}

#[test]
fn reduced_dims_are_the_inner_loop_or_the_rows() {
    let dense = |extents: &[usize]| vec![crate::base::shape::contiguous_strides(extents).into_vec()];
    let folded = |extents: &[usize], reduced: &[usize]| {
        let reduced = Some(Reduction { dims: reduced, adds: false });
        Geometry::new(extents, &dense(extents), &[BroadcastKind::Varies], reduced)
    };
    let g = folded(&[4, 100, 200], &[0, 1, 2]);
    assert_eq!((g.rows.len(), g.inner, g.fold), (0, 80_000, Some(Fold::Rows(80_000))));
    let g = folded(&[4, 100, SHORT_READ], &[2]);
    assert_eq!((g.rows.as_slice(), g.inner, g.fold), (&[400][..], SHORT_READ, Some(Fold::Rows(SHORT_READ))));
    let g = folded(&[4, 100, SHORT_READ - 1], &[2]);
    assert_eq!((g.rows.len(), g.inner, g.fold), (0, 400 * (SHORT_READ - 1), Some(Fold::Rows(SHORT_READ - 1))));
    for (short, step, spread, adds) in [
        (SHORT_REDUCED, 0, BroadcastKind::Inner, false),
        (SHORT_ADDED, 0, BroadcastKind::Inner, true),
        (SHORT_ADDED, 1, BroadcastKind::Varies, true),
    ] {
        let reduced = Some(Reduction { dims: &[1], adds });
        let inner =
            |n: usize| Geometry::new(&[400, n], &[vec![n as isize * step + 1 - step, step]], &[spread], reduced).inner;
        assert_eq!((inner(short - 1), inner(short)), (400 * (short - 1), short));
    }
    let g = folded(&[400, 5], &[1]);
    assert_eq!((g.rows.len(), g.inner, g.fold), (0, 2000, Some(Fold::Rows(5))));
    let g = folded(&[4, 100, COLUMNS], &[1]);
    assert_eq!((g.rows.as_slice(), g.inner, g.fold), (&[4, 100][..], COLUMNS, Some(Fold::Columns(100))));
    let g = folded(&[4, 100, 3], &[1]);
    assert_eq!((g.rows.len(), g.inner, g.fold), (0, 1200, Some(Fold::Stacked { count: 100, width: 3 })));
    assert_eq!(g.operands[0].access, Access::Contiguous);
}

#[test]
fn a_geometry_prints_a_line_for_each_operand() {
    let strides = [vec![1000, 1], vec![1, 0], vec![3000, 3]];
    let spread = [BroadcastKind::Varies, BroadcastKind::Inner, BroadcastKind::Varies];
    let g = Geometry::new(&[90, 1000], &strides, &spread, Some(Reduction { dims: &[1], adds: false }));
    let text = "geometry {
  rows [90]
  inner 1000
  in0: contiguous, rows at [1000], elements 0..=89999
  in1: broadcast, rows at [1], elements 0..=89
  in2: gather [1000] at [3], rows at [3000], elements 0..=269997
  fold rows of 1000
}
";
    assert_eq!(g.to_string(), text);
}
