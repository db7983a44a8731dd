//! What inference decides beside dtypes of results: the reason of each cast, operands placed at an axis, and ops with
//! rules of their own under Paddle.

use castwise::Reason;
use castwise::prelude::*;

/// The casts of an op on tensors of these dtypes and shapes.
fn casts(rules: Rules, types: &[(DType, &[usize])], write: impl Fn(&[Var]) -> Var) -> Vec<(DType, DType, Reason)> {
    let p = Program::new(rules);
    let all: Vec<Var> = types.iter().enumerate().map(|(i, (d, s))| p.data(&format!("x{i}"), *d, s.to_vec())).collect();
    write(&all);
    p.infer().unwrap().casts().into_iter().map(|c| (c.from, c.to, c.reason)).collect()
}

#[test]
fn every_cast_has_the_reason_that_made_it() {
    use DType::*;
    let add = |v: &[Var]| &v[0] + &v[1];
    let line: &[usize] = &[3];
    for (a, b, expected) in [
        ((BF16, line), (F32, line), (BF16, F32, Reason::Table)),
        ((BF16, line), (F16, line), (BF16, F32, Reason::Table)),
        ((U8, line), (I64, line), (U8, I64, Reason::Table)),
        ((I32, line), (F16, line), (I32, F16, Reason::Category)),
        ((Bool, line), (I8, line), (Bool, I8, Reason::Category)),
        // Wider than the tensor with dims that it follows: in digits, in range.
        ((F64, &[]), (F32, line), (F64, F32, Reason::ZeroDim)),
        ((F16, &[]), (BF16, line), (F16, BF16, Reason::ZeroDim)),
        ((F32, &[]), (F16, line), (F32, F16, Reason::ZeroDim)),
    ] {
        assert_eq!(casts(Rules::Torch, &[a, b], add).first(), Some(&expected), "{a:?} + {b:?}");
    }
    let one = |d, write: fn(&Var) -> Var| casts(Rules::Torch, &[(d, line)], |v| write(&v[0]));
    assert_eq!(one(Bool, |x| x.square()), [(Bool, I64, Reason::BoolToInt)]);
    assert_eq!(one(I32, |x| x.sqrt()), [(I32, F32, Reason::IntToFloat)]);
    assert_eq!(one(I32, |x| x.cast(I8)), [(I32, I8, Reason::Requested)]);
    assert_eq!(one(I32, |x| x.sum()), [(I32, I64, Reason::Reduction)]);
}

#[test]
fn an_operand_of_lower_rank_lies_at_its_axis() {
    let x = Tensor::from([[1i32, 2, 3], [4, 5, 6]]);
    let column = Tensor::from([10i32, 20]);
    let row = Tensor::from([10i32, 20, 30]);
    let p = Program::new(Rules::Paddle);
    let (a, b, c) =
        (p.data("x", DType::I32, [2, 3]), p.data("column", DType::I32, [2]), p.data("row", DType::I32, [3]));
    let results = [
        (a.at_axis(0).sub(&b), [-9, -8, -7, -16, -15, -14]),
        (b.at_axis(0).sub(&a), [9, 8, 7, 16, 15, 14]),
        (a.at_axis(1).sub(&c), [-9, -18, -27, -6, -15, -24]),
        (a.at_axis(-1).sub(&c), [-9, -18, -27, -6, -15, -24]),
        (a.at_axis(0).sub(&a), [0; 6]),
    ];
    let fetches: Vec<&Var> = results.iter().map(|(v, _)| v).collect();
    let made = Executor::new().run(&p, feeds! { "x" => x, "column" => column, "row" => row }, fetches).unwrap();
    for (t, (_, expected)) in made.iter().zip(&results) {
        assert_eq!((t.shape(), t.to_vec::<i32>().unwrap()), (&[2, 3][..], expected.to_vec()));
    }
    for axis in [1, 2, -2, i64::MIN, i64::MAX] {
        let p = Program::new(Rules::Paddle);
        p.data("x", DType::I32, [2, 3]).at_axis(axis).sub(p.data("column", DType::I32, [2]));
        assert!(p.check().is_err(), "{axis}");
    }
}

#[test]
fn paddles_ldexp_is_single_or_double() {
    use DType::*;
    for (a, b, expected) in [
        (I32, I32, F32),
        (I64, Bool, F32),
        (F16, I32, F32),
        (F32, F32, F32),
        (F64, I32, F64),
        (I32, F64, F64),
        (F32, F64, F64),
    ] {
        let p = Program::new(Rules::Paddle);
        let y = p.data("a", a, [3]).ldexp(p.data("b", b, [3]));
        assert_eq!(p.infer().unwrap().dtype(&y), Some(expected), "{a}, {b}");
    }
}
