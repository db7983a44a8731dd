//! The loss of each cast, dtypes that PyTorch refuses, operand indices beyond the last, and the text of a refusal.

use super::*;
use crate::ops::MAX_OPERANDS;
use DType::*;

#[test]
fn loss_classes() {
    use CastLoss::*;
    let cases = [
        (F16, F32, Exact),
        (BF16, F16, Range),
        (F16, BF16, Rounds),
        (F64, F32, Range),
        (F32, BF16, Rounds),
        (I32, F32, Rounds),
        (I32, F64, Exact),
        (I64, F64, Rounds),
        (I32, F16, Range),
        (I8, U8, Range),
        (U8, I8, Range),
        (U8, I16, Exact),
        (Bool, U8, Exact),
        (F32, C64, Exact),
        (F64, C64, Range),
        (C64, F32, Range),
        (F32, Bool, Range),
        (F16, I32, Range),
        (BF16, C32, Range),
        (I64, C64, Rounds),
        (U8, F16, Exact),
        (I16, F16, Rounds),
    ];
    for (from, to, loss) in cases {
        assert_eq!(CastLoss::of(from, to), loss, "{from} to {to}");
    }
}

#[test]
fn dtypes_that_pytorch_refuses() {
    let decided = |op, dtypes: &[DType]| {
        let mut operands: Vec<OperandType> = dtypes.iter().copied().map(OperandType::dim).collect();
        operands.extend((op == Op::Addcdiv).then_some(OperandType::Scalar(Scalar::Int(1))));
        let decision = signature(&Settings::new(Rules::Torch), op, &operands, &Attrs::default());
        decision.map(|s| s.result).map_err(|d| d.kind)
    };
    assert_eq!(decided(Op::Mean, &[C32]), Err(DiagnosticKind::UnsupportedDType));
    assert_eq!(decided(Op::Addcdiv, &[F32, I32, Bool]), Err(DiagnosticKind::UnsupportedDType));
    assert_eq!(decided(Op::Addcdiv, &[I32, I32, F16]), Ok(F16));
    // Equal dtypes would not make the op accept c64, but they would make it accept u8 and f32.
    assert_eq!(decided(Op::Heaviside, &[U8, C64]), Err(DiagnosticKind::UnsupportedDType));
    assert_eq!(decided(Op::Heaviside, &[U8, F32]), Err(DiagnosticKind::DTypeMismatch));
    assert_eq!(decided(Op::Ldexp, &[F16, I64]), Ok(F16));
}

#[test]
fn no_column_makes_another_kind_of_op() {
    let structural = |p: Promotion| matches!(p, Promotion::First | Promotion::Given);
    for (op, rules) in Op::ALL.iter().flat_map(|op| Rules::ALL.iter().map(move |r| (*op, *r))) {
        let (own, of_row) = (rules.set().column(op.def()).0, op.def().promotion);
        assert!(own == of_row || !structural(own) && !structural(of_row), "{op} under the rules of {rules}");
    }
}

#[test]
fn operands_behind_the_last_are_as_the_last() {
    let operands = [OperandType::dim(Bool), OperandType::dim(I32), OperandType::dim(F16)];
    let s = signature(&Settings::new(Rules::Torch), Op::Where, &operands, &Attrs::default()).unwrap();
    let of = |all: [usize; 5]| all.map(|i| s.operand(i));
    assert_eq!(of([0, 1, 2, MAX_OPERANDS, usize::MAX]), [Bool, F16, F16, F16, F16]);
}

#[test]
fn a_refusal_names_op_operands_and_help() {
    let s = Settings::new(Rules::Paddle);
    let e = signature(&s, Op::Add, &[OperandType::dim(I64), OperandType::dim(F32)], &Attrs::default());
    let text = e.unwrap_err().to_string();
    assert!(text.contains("`add`") && text.contains("i64 and f32") && text.contains("cast"), "{text}");
}
