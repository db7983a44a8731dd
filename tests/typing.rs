//! Results of inference besides result dtypes: the reason of each cast, operands placed at an axis, and ops with
//! special rules under Paddle.

use castwise::prelude::*;
use castwise::promotion::{OperandType, signature};
use castwise::shape::Dims;
use castwise::{Attrs, DiagnosticKind, Reason};

/// The casts of an op on tensors with these dtypes and shapes.
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
        ((F16, line), (I32, line), (I32, F16, Reason::Category)),
        ((Bool, line), (I8, line), (Bool, I8, Reason::Category)),
        // A 0-d tensor that is wider than the tensor with dims, in digits or in range.
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

const TORCH: Settings = Settings::new(Rules::Torch);
const PADDLE: Settings = Settings::new(Rules::Paddle);

fn float(v: f64) -> OperandType {
    OperandType::Scalar(Scalar::Float(v))
}

/// The dtype of a result, or the kind of the error.
fn result(s: &Settings, op: Op, operands: &[OperandType]) -> Result<DType, DiagnosticKind> {
    signature(s, op, operands, &Attrs::default()).map(|s| s.result).map_err(|d| d.kind)
}

#[test]
fn parameters_lie_in_their_range() {
    let x = OperandType::dim(DType::F32);
    let refused = Err(DiagnosticKind::BadParameter);
    for (op, at_zero) in [(Op::Huber, refused), (Op::SmoothL1, Ok(DType::F32)), (Op::AddScaled, Ok(DType::F32))] {
        let of = |v| result(&TORCH, op, &[x, x, float(v)]);
        let below = if op == Op::AddScaled { Ok(DType::F32) } else { refused };
        assert_eq!([of(0.5), of(0.0), of(-0.5)], [Ok(DType::F32), at_zero, below], "{op}");
    }
}

#[test]
fn what_is_written_to_keeps_its_dtype() {
    use DType::*;
    for (to, from, expected) in [
        (F32, I32, Ok(F32)),
        (F16, F64, Ok(F16)),
        (C64, Bool, Ok(C64)),
        (I32, F32, Err(DiagnosticKind::Cast)),
        (Bool, U8, Err(DiagnosticKind::Cast)),
        (F64, C32, Err(DiagnosticKind::Cast)),
    ] {
        let operands = [OperandType::dim(to), OperandType::dim(from)];
        assert_eq!(result(&TORCH, Op::Assign, &operands), expected, "{to} from {from}");
    }
}

#[test]
fn no_power_of_zero_is_refused() {
    for (e, expected) in [(0, Ok(DType::I32)), (2, Ok(DType::I32)), (-1, Err(DiagnosticKind::NegativeIntegerPower))] {
        let operands = [OperandType::dim(DType::I32), OperandType::Scalar(Scalar::Int(e))];
        assert_eq!(result(&TORCH, Op::Pow, &operands), expected, "{e}");
    }
}

#[test]
fn scalars_of_paddle_follow_what_all_tensors_gave() {
    use DType::*;
    // A 0-d tensor follows if one of the other operands has dims.
    let operands = [OperandType::zero(F32), OperandType::dim(F32), OperandType::zero(F64), float(1.0)];
    assert_eq!(result(&PADDLE, Op::Addcmul, &operands), Ok(F32));
}

#[test]
fn roundings_have_names() {
    for r in [Rounding::Exact, Rounding::Relaxed] {
        assert_eq!(r.to_string().parse(), Ok(r));
    }
    assert!("none".parse::<Rounding>().unwrap_err().contains("`none`"));
}

#[test]
fn static_shapes_are_told_from_others() {
    let p = Program::new(Rules::Torch);
    let (a, b) = (p.data("a", DType::F32, [2, 3]), p.data("b", DType::F32, [None, Some(3)]));
    let typed = p.infer().unwrap();
    assert!(typed.is_static(&a) && !typed.is_static(&b));
    let text = |v| typed.shape(v).map(|dims| dims.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!((text(&a), text(&b)), (Some(vec!["2".into(), "3".into()]), Some(vec!["?0".into(), "3".into()])));
    assert!(!typed.is_empty() && Program::new(Rules::Torch).infer().unwrap().is_empty());
}

#[test]
fn dims_that_feeds_tell_are_refused_at_their_axis() {
    let p = Program::new(Rules::Torch);
    let (a, b) = (p.data("a", DType::F32, [None; 3]), p.data("b", DType::F32, [None; 2]));
    let sum = &a + &b;
    for (shape, axis) in [([2, 7, 4], 1), ([2, 3, 7], 2)] {
        let feeds = feeds! { "a" => Tensor::zeros(DType::F32, shape).unwrap(), "b" => Tensor::zeros(DType::F32, [3, 4]).unwrap() };
        let text = Executor::new().run(&p, feeds, [&sum]).unwrap_err().to_string();
        assert!(text.starts_with(&format!("cannot broadcast in `add` at axis {axis}: 7 ")), "{text}");
    }
}

#[test]
fn losses_and_assignments_that_want_equal_shapes_say_so() {
    let mistake = |rules, x: Dims, y: Dims, write: fn(&Var, &Var)| {
        let p = Program::new(rules);
        write(&p.data("x", DType::F32, x), &p.data("y", DType::F32, y));
        p.check().err().map(|e| e.diagnostics()[0].message.clone())
    };
    let huber = |x: &Var, y: &Var| drop(x.huber_loss(y, 1.0, castwise::Reduction::Sum));
    let of = |x: Dims, y: Dims| mistake(Rules::Paddle, x, y, huber);
    assert_eq!(of([2, 3].into(), [2, 3].into()), None);
    assert_eq!(of([None, Some(3)].into(), [2, 3].into()), None);
    assert_eq!(of([2, 3].into(), [2, 1].into()).unwrap(), "`huber` wants equal shapes, not [2, 3] and [2, 1]");
    assert_eq!(of([3].into(), [1, 3].into()).unwrap(), "`huber` wants equal shapes, not [3] and [1, 3]");
    assert_eq!(mistake(Rules::Torch, [2, 3].into(), [2, 1].into(), huber), None);
    let assign = |x: &Var, y: &Var| drop(x.assign(y));
    assert_eq!(mistake(Rules::Torch, [2, 3].into(), [3].into(), assign), None);
    let message = mistake(Rules::Torch, [3].into(), [2, 3].into(), assign).unwrap();
    assert_eq!(message, "`assign`: output with shape [3] doesn't match the broadcast shape [2, 3]");
}

#[test]
fn assignments_check_extents_that_only_feeds_tell() {
    for (x, y, given, fits) in [
        (Dims::from([None]), Dims::from([None]), [3, 3], true),
        ([None].into(), [None].into(), [3, 1], true),
        ([None].into(), [None].into(), [1, 3], false),
        ([1].into(), [None].into(), [1, 1], true),
        ([1].into(), [None].into(), [1, 3], false),
        ([3].into(), [None].into(), [3, 1], true),
        ([None].into(), [3].into(), [1, 3], false),
    ] {
        let p = Program::new(Rules::NumPy);
        let (a, b) = (p.data("a", DType::F32, x), p.data("b", DType::F64, y));
        let sum = a.assign(&a + &b);
        let ones = |dtype, n: usize| Eager::new(Rules::NumPy).scalar(1.0, dtype).expand([n as i64]).result().unwrap();
        let feeds = feeds! { "a" => ones(DType::F32, given[0]), "b" => ones(DType::F64, given[1]) };
        match Executor::new().run(&p, feeds, [&sum]) {
            Ok(found) => assert!(fits && found[0].to_vec::<f32>().unwrap() == vec![2.0; given[0]], "{p}"),
            Err(e) => {
                assert!(!fits && e.to_string().starts_with("the extents differ in `assign` at axis 0: 1 "), "{e}")
            }
        }
    }
}

#[test]
fn a_refused_mix_names_the_shapes_of_its_operands() {
    let p = Program::new(Rules::Torch);
    let (b, x) = (p.data("b", DType::Bool, [3]), p.data("x", DType::F32, [2, 1]));
    let _ = (-&b, &b - &x);
    let texts: Vec<String> = p.check().unwrap_err().diagnostics().iter().map(|d| d.message.clone()).collect();
    let mix = "`sub` does not take bool in a mix; it is given bool and f32 (operands: bool[3], f32[2, 1])";
    assert_eq!(texts, ["`neg` does not take bool", mix]);
}

#[test]
fn explanations_count_casts_by_loss_and_list_those_that_matter() {
    use DType::*;
    let p = Program::new(Rules::Torch);
    let (h, x, i) = (p.data("h", BF16, [3]), p.data("x", F32, [3]), p.data("i", I64, [3]));
    // An exact requested cast, which is not listed; an exact implicit one; one that rounds; a requested one that may
    // leave the range.
    let _ = ((&h * 2).cast(F64), &h + &x, &i * &x, x.cast(I8), (&h * 3).cast(F16));
    let text = p.infer().unwrap().explain();
    assert!(text.contains("5 casts: 2 exact, 1 that round, 2 that may leave the range\n"), "{text}");
    let listed: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("  cast ")?.split(" at ").next()).collect();
    let expected = [
        "bf16 -> f32 (table) for operand x of add",
        "i64 -> f32 (category) for operand x of mul",
        "f32 -> i8 (requested) for operand x of cast",
        "bf16 -> f16 (requested) for operand x of cast",
    ];
    assert_eq!(listed, expected, "{text}");
    // f16 and bf16 have the same size, so neither hides a rounding of the other.
    assert!(
        text.contains("\n1 op rounds to 16 bits before a wider dtype takes the value:\n  mul rounds to bf16 "),
        "{text}"
    );
}
