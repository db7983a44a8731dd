//! Mistakes in programs and feeds: each error names the op, its operands, and the line of this file that made the
//! mistake. All mistakes of a program are reported at once. Nothing panics.

use castwise::prelude::*;
use castwise::{DiagnosticKind, Error, SourceLocation};

/// The lines of this file that the diagnostics of a program name, with their kinds.
fn faults(p: &Program) -> Vec<(u32, DiagnosticKind)> {
    let error = p.check().unwrap_err();
    let line = |location: &SourceLocation| match location {
        SourceLocation::Rust(l) => {
            assert!(l.file().ends_with("mistakes.rs"));
            l.line()
        }
        _ => 0,
    };
    error.diagnostics().iter().map(|d| (line(&d.location), d.kind)).collect()
}

#[test]
fn every_mistake_is_reported_once_with_its_line() {
    let p = Program::new(Rules::Paddle);
    let other = Program::new(Rules::Paddle);
    let a = p.data("a", DType::I64, [3, 3]);
    let b = p.data("b", DType::F32, [3, 3]);
    let start = line!();
    let wrong = &a + &b; // 1: promotion
    let _used = (&wrong * 2.0).exp(); // not reported: it uses an invalid value
    let _shape = &b * p.data("c", DType::F32, [2]); // 3: broadcast
    let _foreign = &b + other.data("d", DType::F32, [3]); // 4: handle of another program
    let _bits = &b & &b; // 5: dtype
    let _power = a.pow(-1); // 6: exponent
    let _twice = p.data("a", DType::F32, ()); // 7: name
    let _scalar = b.maximum(1.0); // 8: a scalar where Paddle requires a tensor
    let _condition = b.where_(&b, &b); // 9: condition
    let expected = [
        (1, DiagnosticKind::PromotionRefused),
        (3, DiagnosticKind::Broadcast),
        (4, DiagnosticKind::ForeignVar),
        (5, DiagnosticKind::UnsupportedDType),
        (6, DiagnosticKind::NegativeIntegerPower),
        (7, DiagnosticKind::Name),
        (8, DiagnosticKind::ArgNotTensor),
        (9, DiagnosticKind::ConditionDType),
    ];
    assert_eq!(faults(&p), expected.map(|(l, f)| (start + l, f)));
    let text = p.check().unwrap_err().to_string();
    assert!(text.contains("`add` has no implicit promotion for i64 and f32"), "{text}");
    assert!(text.contains("operands: i64[3, 3], f32[3, 3]") && text.contains("cast(x, f32)"), "{text}");
    assert!(text.contains("cannot broadcast f32[3, 3] with f32[2] in `mul`: axis 1 is 3 vs 2"), "{text}");
    // `run` and `infer` return the same error.
    assert_eq!(p.infer().unwrap_err().to_string(), text);
    assert_eq!(Executor::new().run(&p, Feeds::default(), [&wrong]).unwrap_err().to_string(), text);
}

#[test]
fn feeds_are_checked_by_name_dtype_rank_and_dims() {
    let p = Program::new(Rules::Torch);
    let x =
        p.data("x", DType::F32, ["n", "3"].map(|s| if s == "3" { castwise::shape::Dim::Fixed(3) } else { s.into() }));
    let y = p.data("y", DType::F32, ["n"]);
    let z = p.data("z", DType::F32, [None, Some(1)]);
    let sum = &x + &z;
    let exe = Executor::new();
    let f = |shape: &[usize]| Tensor::zeros(DType::F32, shape).unwrap();
    let good = feeds! { "x" => f(&[2, 3]), "y" => f(&[2]), "z" => f(&[2, 1]) };
    assert_eq!(exe.run(&p, good, [&sum, &y]).unwrap()[0].shape(), [2, 3]);
    let cases = [
        (feeds! { "x" => f(&[2, 3]), "y" => f(&[2]) }, "feed `z`: is missing"),
        (
            feeds! { "x" => f(&[2, 3]), "q" => f(&[2]) },
            "feed `q`: is not a placeholder of the program; it has: `x`, `y`, `z`",
        ),
        (feeds! { "x" => f(&[2, 3]), "x" => f(&[2, 3]) }, "feed `x`: is given twice"),
        (feeds! { "x" => f(&[2, 3, 1]), "y" => f(&[2]), "z" => f(&[2, 1]) }, "feed `x`: is f32[2, 3, 1]"),
        (feeds! { "x" => f(&[2, 4]), "y" => f(&[2]), "z" => f(&[2, 1]) }, "feed `x`: has 4 at axis 1"),
        (
            feeds! { "x" => f(&[2, 3]), "y" => f(&[5]), "z" => f(&[2, 1]) },
            "feed `y`: has 5 at axis 0, but `x` has 2 at axis 0",
        ),
        (
            feeds! { "x" => f(&[2, 3]), "y" => f(&[2]), "z" => f(&[4, 1]) },
            "2 (axis 0 of feed `x`) vs 4 (axis 0 of feed `z`)",
        ),
        (
            feeds! { "x" => Tensor::zeros(DType::F64, [2, 3]).unwrap(), "y" => f(&[2]), "z" => f(&[2, 1]) },
            "feed `x`: is f64[2, 3]",
        ),
    ];
    for (feeds, expected) in cases {
        let text = exe.run(&p, feeds, [&sum, &y]).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}\nis not\n{expected}");
    }
    let foreign = Program::new(Rules::Torch).data("x", DType::F32, [1]);
    assert!(matches!(exe.run(&p, Feeds::default(), [&foreign]), Err(Error::Invalid(_) | Error::Feed { .. })));
}

#[test]
fn data_that_an_op_refuses_names_op_and_line() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, [None]);
    let line = line!() + 1;
    let y = (&x + 1).floor_divide(&x);
    let t = Tensor::from_slice(&[1i32, 0, 3], [3]).unwrap();
    let exe = Executor::new();
    match exe.run(&p, feeds! { "x" => t }, [&y]).unwrap_err() {
        Error::DivisionByZero { op: "floor_divide", location: SourceLocation::Rust(l) } => assert_eq!(l.line(), line),
        other => panic!("{other}"),
    }
    // The executor still works.
    let t = Tensor::from_slice(&[1i32, -2], [2]).unwrap();
    assert_eq!(exe.run(&p, feeds! { "x" => t }, [&y]).unwrap()[0].to_vec::<i32>().unwrap(), [2, 0]);
}

#[test]
fn fetches_may_repeat_be_feeds_or_be_none() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [2]);
    let y = x.cast(DType::F32);
    let z = &y + 1.0;
    let exe = Executor::new();
    let t = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    let out = exe.run(&p, feeds! { "x" => &t }, [&x, &z, &z, &y]).unwrap();
    let values: Vec<Vec<f32>> = out.iter().map(|t| t.to_vec().unwrap()).collect();
    assert_eq!(values, [vec![1.0, 2.0], vec![2.0, 3.0], vec![2.0, 3.0], vec![1.0, 2.0]]);
    assert!(exe.run(&p, feeds! { "x" => t }, []).unwrap().is_empty());
}

#[test]
fn threads_and_block_kernels_alone_give_the_same_bits() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, None]);
    let w = p.data("w", DType::BF16, [None]);
    let y = (&x * &w + 0.5).tanh() / (x.abs() + 1.0).sqrt();
    let n = 700_001usize;
    let data: Vec<f32> = (0..n * 3).map(|i| (i as f32 * 0.37).rem_euclid(9.0) - 4.5).collect();
    let tx = Tensor::from_vec(data, [n, 3]).unwrap();
    let tw =
        Tensor::from_vec(["0.5", "-3", "7"].map(|s| half::bf16::from_f32(s.parse().unwrap())).to_vec(), [3]).unwrap();
    let run = |exe: Executor, tx: &Tensor| exe.run(&p, feeds! { "x" => tx, "w" => tw }, [&y]).unwrap().remove(0);
    let one = run(Executor::builder().threads(1).build(), &tx);
    for exe in [
        Executor::builder().threads(2),
        Executor::builder().threads(3),
        Executor::builder().threads(8),
        Executor::builder().jit(false),
    ] {
        assert_eq!(run(exe.build(), &tx).as_bytes(), one.as_bytes());
    }
    // The operand is strided, so the loop runs over rows.
    let turned = tx.transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap();
    assert_eq!(run(Executor::builder().threads(3).build(), &turned).as_bytes(), one.as_bytes());
}

#[test]
fn programs_and_executors_are_shared_between_threads() {
    fn shareable<T: Send + Sync + 'static>() {}
    shareable::<Program>();
    shareable::<Var>();
    shareable::<Executor>();
    shareable::<Tensor>();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, [None]);
    let y = &x * 3 - 1;
    let exe = Executor::new();
    std::thread::scope(|s| {
        for k in 0..8 {
            let (p, exe, y) = (&p, &exe, &y);
            s.spawn(move || {
                for i in 0..200 {
                    let t = Tensor::from_slice(&[i, k, i * k], [3]).unwrap();
                    let out = exe.run(p, feeds! { "x" => t }, [y]).unwrap();
                    assert_eq!(out[0].to_vec::<i32>().unwrap(), [i * 3 - 1, k * 3 - 1, i * k * 3 - 1]);
                }
            });
        }
    });
}

/// Every op of the table with every wrong number of operands, including more than any op takes.
#[test]
fn another_number_of_operands_than_an_op_takes_is_a_mistake() {
    use castwise::{Attrs, Operand, Var};
    fn operands<M: Mode>(v: &Var<M>, n: usize) -> Vec<Operand<M>> {
        (0..n).map(|_| v.into()).collect()
    }
    let t = Tensor::full([2], true).unwrap();
    for (op, n) in Op::ALL.iter().flat_map(|op| (0..8).map(move |n| (*op, n))).filter(|(op, n)| *n != op.arity()) {
        let s = if op.arity() == 1 { "" } else { "s" };
        let wanted = format!("`{op}` takes {} operand{s}, not {n}", op.arity());
        let attrs = Attrs::default().with_dtype(DType::Bool);
        for rules in Rules::ALL.iter().copied() {
            let eager = castwise::apply(op, &operands(&Eager::new(rules).tensor(&t), n), attrs.clone());
            assert!(eager.result().unwrap_err().to_string().starts_with(&wanted), "{op} of {n}");
            let p = Program::new(rules);
            let v = castwise::apply(op, &operands(&p.data("x", DType::Bool, [2]), n), attrs.clone());
            // Without operands, the application belongs to no program.
            let wrong = if n == 0 { (&p.data("y", DType::Bool, [2]) & &v, 1) } else { (v, 0) };
            let e = p.check().unwrap_err();
            let (fault, text) = (e.diagnostics()[0].kind, e.to_string());
            match wrong {
                (_, 1) => assert_eq!(fault, DiagnosticKind::ForeignVar, "{op} of {n}: {text}"),
                _ => {
                    assert!(fault == DiagnosticKind::BadParameter && text.starts_with(&wanted), "{op} of {n}: {text}");
                    assert!(text.contains("at tests/mistakes.rs:"), "{text}");
                }
            }
        }
    }
}

#[test]
fn a_default_dtype_that_is_no_float_is_a_mistake() {
    for default_dtype in DType::ALL {
        for rules in Rules::ALL.iter().copied() {
            let settings = Settings::new(rules).with_default_dtype(default_dtype);
            let line = line!() + 1;
            let p = Program::with_settings(settings);
            let y = p.data("x", DType::I32, [2]) / 2;
            let t = Tensor::from([1i32, 2]);
            let eager = Eager::with_settings(settings).tensor(&t);
            if default_dtype.is_float() && default_dtype.size() > 1 {
                assert!(p.check().is_ok() && eager.result().is_ok() && (eager / 2).result().is_ok());
                continue;
            }
            let why = if default_dtype.is_float() { "which is only stored and cast" } else { "not a float dtype" };
            let wanted = format!("the default dtype is {default_dtype}, {why}\n");
            // The mistake is reported once, not for every node, together with other mistakes.
            assert_eq!(faults(&p), [(line, DiagnosticKind::BadParameter)]);
            let text = p.check().unwrap_err().to_string();
            assert!(text.starts_with(&wanted) && text.contains("choose f16, bf16, f32 or f64"), "{text}");
            assert_eq!(p.infer().unwrap_err().to_string(), text);
            assert_eq!(Executor::new().run(&p, feeds! { "x" => &t }, [&y]).unwrap_err().to_string(), text);
            assert_eq!(faults(&p.with_rules(Rules::Torch)), [(line, DiagnosticKind::BadParameter)]);
            let _mistake = p.data("f", DType::F32, [2]) & 1;
            assert_eq!(p.check().unwrap_err().diagnostics().len(), 2);
            for e in [eager.result(), (eager / 2).result()] {
                assert!(e.unwrap_err().to_string().starts_with(wanted.trim_end()));
            }
            let alone = castwise::promotion::signature(&settings, Op::Abs, &[], &Default::default());
            assert!(alone.unwrap_err().to_string().starts_with(wanted.trim_end()));
            let told = Program::parse(&p.to_string()).unwrap_err().to_string();
            assert!(told.contains(wanted.trim_end()), "{told}");
        }
    }
}

#[test]
fn scalars_alone_have_no_rules() {
    let alone = castwise::apply::<Eager>(Op::Add, &[1.into(), 2.into()], Default::default()).result().unwrap_err();
    assert!(alone.to_string().starts_with("`add` of scalars alone\n  at tests/mistakes.rs:"), "{alone}");
}

#[test]
fn operands_that_do_not_broadcast_are_the_ones_named() {
    let message = |text: &str| {
        let p = Program::new(Rules::Torch);
        p.data("c", DType::Bool, [3, 4]);
        p.data("x", DType::F32, [3, 4]);
        p.data("five", DType::F32, [5]);
        p.data("four", DType::F16, [4]);
        p.data("column", DType::I32, [3, 1]);
        p.expression(text).unwrap();
        p.check().unwrap_err().to_string()
    };
    for (text, told) in [
        ("where(c, five, five)", "cannot broadcast bool[3, 4] with f32[5] in `where`: axis 1 is 4 vs 5"),
        ("clamp(x, five, four)", "cannot broadcast f32[3, 4] with f32[5] in `clamp`: axis 1 is 4 vs 5"),
        ("clamp(column, four, five)", "cannot broadcast f16[4] with f32[5] in `clamp`: axis 0 is 4 vs 5"),
        ("x * five", "cannot broadcast f32[3, 4] with f32[5] in `mul`: axis 1 is 4 vs 5"),
    ] {
        assert!(message(text).contains(told), "{text}: {}", message(text));
    }
}

#[test]
fn a_placeholder_that_is_too_large_is_not_called_missing() {
    let p = Program::new(Rules::Torch);
    p.data("x", DType::F32, [999_999_999, 999_999_999]);
    let y = p.expression("x + 1").unwrap();
    let text = p.check().unwrap_err().to_string();
    assert!(text.contains("the placeholder `x` is too large"), "{text}");
    assert_eq!(Executor::new().run(&p, Feeds::default(), [&y]).unwrap_err().to_string(), text);
}

#[test]
fn handles_from_elsewhere_are_told_with_their_line() {
    let (p, q) = (Program::new(Rules::Torch), Program::new(Rules::Torch));
    let x = p.data("x", DType::F32, [2]);
    let foreign = q.data("y", DType::F32, [2]).exp();
    let line = line!() - 1;
    let all = [
        Executor::new().run(&p, Feeds::default(), [&foreign]).err(),
        p.set_fetches([("a", &x), ("b", &foreign)]).err(),
    ];
    for e in all.map(Option::unwrap) {
        let text = e.to_string();
        assert!(text.contains("the fetch %1 is a handle of another program"), "{text}");
        assert!(text.contains(&format!("mistakes.rs:{line}")), "{text}");
    }
}

#[test]
fn eager_operands_of_other_rules_are_told_with_dtypes_and_line() {
    let t = Tensor::from([1.0f32, 2.0]);
    let a = castwise::Eager::new(Rules::Torch).tensor(&t);
    let b = castwise::Eager::new(Rules::Paddle).tensor(&t);
    let text = (&a + &b).result().unwrap_err().to_string();
    let line = line!() - 1;
    for part in ["`add`", "f32[2] and f32[2]", "different rules: torch, and paddle for operand 1"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.contains(&format!("mistakes.rs:{line}")), "{text}");
}
