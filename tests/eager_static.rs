//! Eager mode and compiled programs agree bit for bit: every op of the table, every dtype, every way operands lie in
//! memory. Cases derive from the table; a failing one prints as a text program.

mod common;

use castwise::prelude::*;
use castwise::{Op, Operand};
use common::{Layout, assert_same_bits, sample};

/// Applies an op in both modes and compares dtype, shape and bits, or both refusals.
fn compare(rules: Rules, op: Op, tensors: &[Tensor], attrs: castwise::Attrs) -> bool {
    let eager = Eager::new(rules);
    let operands: Vec<Operand<Eager>> = tensors.iter().map(|t| eager.tensor(t).into()).collect();
    let one = castwise::apply(op, &operands, attrs.clone()).result();
    let program = Program::new(rules);
    let names = ["x", "y", "z"];
    let vars: Vec<Operand> =
        tensors.iter().zip(names).map(|(t, n)| program.data(n, t.dtype(), t.shape()).into()).collect();
    let result = castwise::apply(op, &vars, attrs);
    let feeds: Vec<(&str, Tensor)> = names.iter().copied().zip(tensors.iter().cloned()).collect();
    let fused = common::EXECUTOR.with(|e| e.run(&program, Feeds::from(feeds), [&result]));
    match (one, fused) {
        (Ok(one), Ok(fused)) => {
            assert_same_bits(&one, &fused[0], &|| format!("{program}\noperands: {tensors:?}"));
            true
        }
        (Err(one), Err(fused)) => {
            let first = |e: castwise::Error| e.to_string().lines().next().unwrap_or_default().to_string();
            let (one, fused) = (first(one), first(fused));
            assert_eq!(one, fused, "{program}");
            assert!(!one.contains("internal error"), "{one}\n{program}");
            false
        }
        (one, fused) => panic!("eager: {one:?}\nfused: {fused:?}\n{program}\noperands: {tensors:?}"),
    }
}

/// The operands of an op for one dtype: `where` has a bool condition.
fn operands(op: Op, d: DType, layout: Layout, seed: u64) -> Vec<Tensor> {
    (0..op.arity())
        .map(|i| {
            let d = if op == Op::Where && i == 0 { DType::Bool } else { d };
            // A zero divisor is an error of the whole op: keep most cases going.
            let avoid_zero = matches!(op, Op::FloorDivide | Op::Remainder | Op::Fmod | Op::DivTrunc) && i == 1;
            sample(d, layout, i, seed, avoid_zero)
        })
        .collect()
}

#[test]
fn every_op_of_one_dtype_in_every_layout() {
    let (mut valid, mut refused) = (0, 0);
    for rules in [Rules::Torch, Rules::Paddle] {
        for op in Op::ALL.iter().copied().filter(|op| *op != Op::Cast) {
            for d in DType::ALL {
                if rules == Rules::Paddle && d == DType::C32 {
                    continue; // Paddle has no c32: refused where it is declared.
                }
                for layout in Layout::ALL {
                    if compare(rules, op, &operands(op, d, layout, 1), Default::default()) {
                        valid += 1
                    } else {
                        refused += 1
                    }
                }
            }
        }
    }
    println!("{valid} applications agree, {refused} are refused by both");
    assert!(valid > 3 * refused);
}

#[test]
fn every_mix_of_two_dtypes() {
    for rules in [Rules::Torch, Rules::Paddle] {
        for op in Op::ALL.iter().copied().filter(|op| op.arity() == 2) {
            for a in DType::ALL {
                for b in DType::ALL {
                    if rules == Rules::Paddle && (a == DType::C32 || b == DType::C32) {
                        continue; // Paddle has no c32: refused where it is declared.
                    }
                    for (x, y) in [
                        (Layout::Contiguous, Layout::Contiguous),
                        (Layout::Contiguous, Layout::ZeroDim),
                        (Layout::ZeroDim, Layout::Strided),
                    ] {
                        let avoid_zero = matches!(op, Op::FloorDivide | Op::Remainder | Op::Fmod | Op::DivTrunc);
                        let tensors = [sample(a, x, 0, 2, false), sample(b, y, 1, 2, avoid_zero)];
                        compare(rules, op, &tensors, Default::default());
                    }
                }
            }
        }
    }
}

#[test]
fn every_cast() {
    for from in DType::ALL {
        for to in DType::ALL {
            for layout in Layout::ALL {
                let attrs = castwise::Attrs::cast(to);
                assert!(compare(Rules::Torch, Op::Cast, &[sample(from, layout, 0, 3, false)], attrs), "{from} to {to}");
            }
        }
    }
}

#[test]
fn integer_division_by_zero_is_an_error_in_both() {
    for op in [Op::FloorDivide, Op::Remainder, Op::Fmod, Op::DivTrunc] {
        for d in [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64] {
            let zero = Tensor::zeros(d, [40]).unwrap();
            assert!(!compare(
                Rules::Torch,
                op,
                &[sample(d, Layout::Contiguous, 0, 4, false), zero],
                Default::default()
            ));
        }
    }
}
