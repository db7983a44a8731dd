//! Every invariant of a typed program, broken once.

use super::*;
use crate::promotion::Rules;

/// A program with every kind of node.
fn typed() -> TypedProgram {
    let p = Program::new(Rules::Paddle);
    let (x, c) = (p.data("x", DType::F32, [2, 3]), p.data("c", DType::Bool, [3]));
    let row = p.data("row", DType::F16, [2]);
    let wide = row.at_axis(0).add(&x);
    let _ = (wide.view_as(DType::I32), wide.over([1]).keepdim().sum(), c.where_(&wide, 1.5), wide.mul(2));
    let _ = wide.transpose(0, 1);
    p.infer().unwrap()
}

/// The first node that is so.
fn find(t: &TypedProgram, wanted: impl Fn(&TypedKind) -> bool) -> usize {
    t.nodes.iter().position(|n| wanted(&n.kind)).unwrap()
}

/// The node at a position, to be changed.
fn node(t: &mut TypedProgram, i: usize) -> &mut TypedNode {
    &mut Arc::make_mut(&mut t.nodes)[i]
}

#[test]
fn verify_finds_every_broken_invariant() {
    let good = typed();
    good.verify().unwrap();
    let at = |wanted: fn(&TypedKind) -> bool| find(&good, wanted);
    let cast = at(|k| matches!(k, TypedKind::Cast { .. }));
    let bits = at(|k| matches!(k, TypedKind::Bits { .. }));
    let reduce = at(|k| matches!(k, TypedKind::Reduce { .. }));
    let view = at(|k| matches!(k, TypedKind::View { .. }));
    let moved = at(|k| matches!(k, TypedKind::View { view: Some(_), .. }));
    let choice = at(|k| matches!(k, TypedKind::Apply { op: Op::Where, .. }));
    let product = at(|k| matches!(k, TypedKind::Apply { op: Op::Mul, .. }));
    let refused = |what: &str, wrong: fn(&mut TypedProgram, usize), i: usize| {
        let mut t = good.clone();
        wrong(&mut t, i);
        let e = t.verify().expect_err(what).to_string();
        assert!(e.contains(&format!("typed node {i}: ")), "{what}: {e}");
    };
    // That of the row, which nothing below has.
    let other_shape = |t: &mut TypedProgram, i: usize| {
        let row = t.nodes[1].shape;
        node(t, i).shape = row;
    };
    let other_dtype = |t: &mut TypedProgram, i: usize| node(t, i).dtype = DType::C128;
    for i in [cast, bits, reduce, view, moved, choice, product] {
        refused("another shape", other_shape, i);
    }
    for i in [bits, reduce, view, moved, choice, product] {
        refused("another dtype", other_dtype, i);
    }
    for i in [choice, product] {
        refused(
            "an operand is missing",
            |t, i| {
                if let TypedKind::Apply { args, .. } = &mut node(t, i).kind {
                    args[1] = None;
                }
            },
            i,
        );
        refused(
            "an operand of another dtype",
            |t, i| {
                if let TypedKind::Apply { args, .. } = &mut node(t, i).kind {
                    args[1] = Some(Arg::Node(2));
                }
            },
            i,
        );
        refused(
            "a scalar of another dtype",
            |t, i| {
                if let TypedKind::Apply { args, .. } = &mut node(t, i).kind {
                    args[1] = Some(Arg::Scalar(Scalar::Int(1), DType::I64));
                }
            },
            i,
        );
    }
    refused(
        "a condition that is not bool",
        |t, i| {
            if let TypedKind::Apply { args, .. } = &mut node(t, i).kind {
                args[0] = args[1];
            }
        },
        choice,
    );
    refused(
        "a later operand",
        |t, i| {
            if let TypedKind::Cast { from, .. } = &mut node(t, i).kind {
                *from = i as u32;
            }
        },
        cast,
    );
}
