//! Eager mode and compiled programs agree bit for bit: every op of the table, every dtype, every way operands lie in
//! memory. Cases derive from the table; a failing one prints as a text program.

mod common;

use castwise::prelude::*;
use castwise::{Op, Operand};
use common::{Layout, assert_same_bits, sample};

/// Applies an op in both modes and compares dtype, shape and bits, or both refusals.
fn compare(rules: Rules, op: Op, tensors: &[Tensor], attrs: castwise::Attrs) -> bool {
    let eager = Eager::new(rules);
    let parameter = op.def().torch.parameters > 0;
    let tensors = &tensors[..op.arity() - op.def().torch.parameters];
    // A parameter of the operands' category, which no half type holds exactly.
    let float = !tensors[0].dtype().is_integral();
    let scalar = if float { Scalar::Float(0.3) } else { Scalar::Int(3) };
    let mut operands: Vec<Operand<Eager>> = tensors.iter().map(|t| eager.tensor(t).into()).collect();
    operands.extend(parameter.then_some(Operand::Scalar(scalar)));
    let one = castwise::apply(op, &operands, attrs.clone()).result();
    let program = Program::new(rules);
    let names = ["x", "y", "z"];
    let mut vars: Vec<Operand> =
        tensors.iter().zip(names).map(|(t, n)| program.data(n, t.dtype(), t.shape()).into()).collect();
    vars.extend(parameter.then_some(Operand::Scalar(scalar)));
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
        for op in Op::ALL.iter().copied().filter(|op| !matches!(op, Op::Cast | Op::ViewAs)) {
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
                        (Layout::Strided, Layout::Strided),
                        (Layout::Broadcast, Layout::Broadcast),
                        (Layout::ZeroSize, Layout::ZeroSize),
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
                let same_size = compare(Rules::Torch, Op::ViewAs, &[sample(from, layout, 0, 3, false)], attrs.clone());
                assert_eq!(same_size, from.size() == to.size(), "{from} as {to}");
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

/// An application with a scalar in both modes.
fn compare_scalar(rules: Rules, op: Op, t: &Tensor, scalar: Scalar, left: bool) {
    let ordered = |v: Operand<Eager>| if left { [Operand::Scalar(scalar), v] } else { [v, Operand::Scalar(scalar)] };
    let one = castwise::apply(op, &ordered((&Eager::new(rules).tensor(t)).into()), Default::default()).result();
    let program = Program::new(rules);
    let x: Operand = program.data("x", t.dtype(), t.shape()).into();
    let operands = if left { [Operand::Scalar(scalar), x] } else { [x, Operand::Scalar(scalar)] };
    let result = castwise::apply(op, &operands, Default::default());
    let fused = common::EXECUTOR.with(|e| e.run(&program, feeds! { "x" => t }, [&result]));
    match (one, fused) {
        (Ok(one), Ok(fused)) => assert_same_bits(&one, &fused[0], &|| format!("{program}\nx = {t:?}")),
        (Err(_), Err(_)) => {}
        (one, fused) => panic!("eager: {one:?}\nfused: {fused:?}\n{program}\nx = {t:?}"),
    }
}

#[test]
fn every_binary_op_with_a_scalar_on_either_side() {
    let complex = Scalar::Complex(castwise::Complex::new(0.3, -2.0));
    let scalars =
        [Scalar::Bool(true), Scalar::Int(3), Scalar::Int(-300), Scalar::Float(0.3), Scalar::Float(f64::NAN), complex];
    for rules in [Rules::Torch, Rules::Paddle] {
        for op in Op::ALL.iter().copied().filter(|op| op.arity() == 2) {
            for d in DType::ALL {
                // Longer than a tile: a repeated scalar must not be read past its end.
                for layout in [Layout::Long, Layout::ZeroDim] {
                    let t = sample(d, layout, 0, 5, true);
                    for s in scalars {
                        compare_scalar(rules, op, &t, s, false);
                        compare_scalar(rules, op, &t, s, true);
                    }
                }
            }
        }
    }
}

#[test]
fn commutative_ops_give_the_same_bits_in_either_order() {
    use Op::*;
    let ops = [
        Add, Mul, Maximum, Minimum, Fmax, Fmin, Eq, Ne, LogicalAnd, LogicalOr, LogicalXor, BitwiseAnd, BitwiseOr,
        BitwiseXor, Hypot, Gcd,
    ];
    for op in ops {
        for (a, b) in DType::ALL.into_iter().flat_map(|a| DType::ALL.map(|b| (a, b))) {
            let (x, y) = (sample(a, Layout::Contiguous, 0, 6, false), sample(b, Layout::Contiguous, 1, 6, false));
            let cx = Eager::new(Rules::Torch);
            let apply = |p: &Tensor, q: &Tensor| {
                castwise::apply::<Eager>(op, &[cx.tensor(p).into(), cx.tensor(q).into()], Default::default()).result()
            };
            match (apply(&x, &y), apply(&y, &x)) {
                (Ok(p), Ok(q)) => assert_same_bits(&p, &q, &|| format!("{op} of {x:?} and {y:?}")),
                (Err(_), Err(_)) => {}
                other => panic!("{op}: {other:?}"),
            }
        }
    }
}

#[test]
fn operator_method_and_text_are_one() {
    let p = Program::new(Rules::Torch);
    let (a, b) = (p.data("a", DType::I32, [4]), p.data("b", DType::F16, [4]));
    let forms: [(Var, Var, &str, &str); 12] = [
        (&a + &b, a.add(&b), "a + b", "add(a, b)"),
        (&a - &b, a.sub(&b), "a - b", "subtract(a, b)"),
        (&a * 2.5, a.mul(2.5), "a * 2.5", "multiply(a, 2.5)"),
        (&a / 2, a.div(2), "a / 2", "divide(a, 2)"),
        (&a % 3, a.remainder(3), "a % 3", "mod(a, 3)"),
        (&a & 6, a.bitwise_and(6), "a & 6", "bitwise_and(a, 6)"),
        (&a | 6, a.bitwise_or(6), "a | 6", "bitwise_or(a, 6)"),
        (&a ^ 6, a.bitwise_xor(6), "a ^ 6", "bitwise_xor(a, 6)"),
        (-&b, b.neg(), "-b", "negative(b)"),
        (!&a, a.bitwise_not(), "~a", "bitwise_not(a)"),
        (a.floor_divide(2), a.floor_divide(2), "a // 2", "floor_divide(a, 2)"),
        (b.pow(2), b.pow(2), "b ** 2", "pow(b, 2)"),
    ];
    let feeds = feeds! { "a" => sample(DType::I32, Layout::Contiguous, 0, 7, false).slice(0, 0, 4, 1).unwrap(),
    "b" => sample(DType::F16, Layout::Contiguous, 1, 7, false).slice(0, 0, 4, 1).unwrap() };
    for (operator, method, infix, call) in forms {
        let (infix_var, call_var) = (p.expression(infix).unwrap(), p.expression(call).unwrap());
        let out =
            common::EXECUTOR.with(|e| e.run(&p, feeds.clone(), [&operator, &method, &infix_var, &call_var])).unwrap();
        for other in &out[1..] {
            assert_same_bits(&out[0], other, &|| format!("{infix} and {call}"));
        }
    }
}
