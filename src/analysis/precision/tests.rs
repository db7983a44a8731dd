//! Which ops round nothing, by their results; whom a rounding is told of; which scalars change.

use half::f16;

use super::*;
use crate::graph::program::Program;
use crate::graph::var::{Operand, apply};
use crate::ops::Attrs;
use crate::promotion::{Rules, Settings};
use crate::runtime::eager::value::Eager;
use crate::tensor::Tensor;

/// Every op in f16 and in f64 on the same operands.
#[test]
fn an_op_is_exact_if_f16_holds_what_f64_gives() {
    let all = |stride: u16| (0..u16::MAX).step_by(stride.into()).map(f16::from_bits).filter(|v| v.is_finite());
    let n = all(41).count();
    let operands: Vec<Vec<f16>> =
        (0..4).map(|k| all(41).cycle().skip(k * 389).step_by(k * 2 + 1).take(n).collect()).collect();
    let cx = Eager::new(Rules::Torch);
    let mut seen = 0;
    for op in Op::ALL.iter().copied().filter(|op| !op.has_dims()) {
        // It steps to a neighbour, which another dtype has elsewhere; it computes in f64; these two want a dtype.
        if matches!(op, Op::Nextafter | Op::FloatPower | Op::Cast | Op::ViewAs) {
            continue;
        }
        let run = |wide: bool| {
            let tensor = |k: usize| {
                let t = Tensor::from_slice(&operands[k], [n]).unwrap();
                let v = cx.tensor(&t);
                let dtype = if op == Op::Where && k == 0 { DType::Bool } else { DType::F64 };
                if wide || dtype == DType::Bool { v.cast(dtype) } else { v }
            };
            let all: Vec<_> = (0..op.arity()).map(|k| Operand::Var(tensor(k))).collect();
            apply(op, &all, Attrs::default()).cast(DType::F64).result()
        };
        let (Ok(half), Ok(whole)) = (run(false), run(true)) else { continue };
        let (half, whole) = (half.to_vec::<f64>().unwrap(), whole.to_vec::<f64>().unwrap());
        let same = half.iter().zip(&whole).all(|(a, b)| a == b || a.is_nan() && b.is_nan());
        assert_eq!(same, op.is_exact(DType::F16), "{op}");
        seen += 1;
    }
    assert!(seen > 60, "only {seen} ops");
}

fn blamed(text: &str) -> Vec<&'static str> {
    blamed_under(Rounding::Exact, text)
}

/// The ops that are told of, in the program of an expression over a and m of bf16, b of f32 and c of bool.
fn blamed_under(rounding: Rounding, text: &str) -> Vec<&'static str> {
    let p = Program::with_settings(Settings { rounding, ..Settings::new(Rules::Torch) });
    for (name, dtype) in [("a", DType::BF16), ("m", DType::BF16), ("b", DType::F32), ("c", DType::Bool)] {
        p.data(name, dtype, [2, 3]);
    }
    p.expression(text).unwrap();
    p.infer().unwrap().hidden_roundings().iter().map(|n| n.op.name()).collect()
}

#[test]
fn the_op_that_rounds_is_told_of() {
    for exact in [
        "-a + b",
        "abs(a) + b",
        "maximum(a, m) + b",
        "where(c, a, m) * b",
        "clamp(a, 0.0, 1.0) + b",
        "floor(relu(a)) + b",
        "amax(a) + b",
        "sign(a * 0.7) + b",
        "(a * 0.7 > m) + b",
        "copysign(a, m * 0.7) + b",
        "where(a * 0.7 > m, a, m) + b",
    ] {
        assert!(blamed(exact).is_empty(), "{exact}: {:?}", blamed(exact));
    }
    assert_eq!(blamed("abs(a * 0.7) + b"), ["mul"]);
    assert_eq!(blamed("mean(a) * b"), ["mean"]);
    assert_eq!(blamed("sum(a) * b"), ["sum"]);
    assert_eq!(blamed("-amax(exp(a)) * b"), ["exp"]);
    assert_eq!(blamed("where(c, a + m, exp(m)) + b"), ["add", "exp"]);
    // Once, however often its value is cast.
    assert_eq!(blamed("t = a * 0.7; t + b + cast(t, f64)"), ["mul"]);

    // Relaxed, only what a reduction gives is rounded.
    let relaxed = |text: &str| blamed_under(Rounding::Relaxed, text);
    assert_eq!((relaxed("a * 0.7 + b"), relaxed("(mean(a) * 1.1) * b")), (vec![], vec!["mean"]));

    let p = Program::new(Rules::Paddle);
    let placed = p.data("a", DType::F16, [2]).exp().at_axis(0).add(p.data("b", DType::F16, [2, 3]));
    let _ = placed.cast(DType::F32);
    let of_view = Program::new(Rules::Paddle);
    let viewed = of_view.data("a", DType::F16, [2]).exp().at_axis(0).maximum(of_view.data("b", DType::F16, [2, 3]));
    let _ = viewed.cast(DType::F32);
    let ops = |p: &Program| p.infer().unwrap().hidden_roundings().iter().map(|n| n.op).collect::<Vec<_>>();
    assert_eq!((ops(&p), ops(&of_view)), (vec![Op::Add], vec![Op::Exp]));
}

#[test]
fn scalars_that_a_dtype_changes_are_found() {
    use CastLoss::{Range, Rounds};
    let found = |dtype: DType, text: &str| {
        let p = Program::new(Rules::Torch);
        p.data("x", dtype, [2]);
        p.expression(text).unwrap();
        let notes = p.infer().unwrap().changed_scalars();
        notes.iter().map(|n| (n.used.to_string(), n.to, n.loss)).collect::<Vec<_>>()
    };
    let one = |used: &str, to, loss| vec![(used.to_string(), to, loss)];
    assert_eq!(found(DType::U8, "x + 300"), one("44", DType::U8, Range));
    assert_eq!(found(DType::U8, "x < 300"), one("44", DType::U8, Range));
    assert_eq!(found(DType::U8, "where(x > 3, x, -1)"), one("255", DType::U8, Range));
    assert_eq!(found(DType::F32, "x * 1e39"), one("inf", DType::F32, Range));
    assert_eq!(found(DType::F32, "x * 1e-60"), one("0.0", DType::F32, Range));
    assert_eq!(found(DType::F32, "x == 16777217"), one("16777216.0", DType::F32, Rounds));
    assert_eq!(found(DType::F16, "x + 70000"), one("inf", DType::F16, Range));
    assert_eq!(found(DType::C64, "x * 1e39"), one("(inf, 0.0)", DType::C64, Range));
    // A product of half precision takes its scalar in f32.
    for (dtype, plain) in [
        (DType::F16, "x * 70000"),
        (DType::F32, "x * 0.3 + 1e11 - inf"),
        (DType::BF16, "x + 0.1 + nan"),
        (DType::U8, "x + 255"),
        (DType::I64, "x * 0.3"),
        (DType::F64, "x + 9007199254740992"),
        (DType::Bool, "logical_and(x, 2)"),
    ] {
        assert_eq!(found(dtype, plain), [], "{dtype}: {plain}");
    }
}
