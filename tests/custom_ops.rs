//! Custom ops: rows that are made at run time infer, fuse, run in both modes, print, parse and fail like those of the
//! table.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use castwise::prelude::*;
use castwise::{
    Attrs, CastLoss, Complex, CustomOp, CustomOpError, DiagnosticKind, Error, Operand, Promotion, Reason, Registry,
    SourceLocation, Var,
};

use crate::common::operands::{Given, PLACES, Place, given};
use crate::common::{self, EXECUTOR, assert_same_bits};

const RULES: [Rules; 2] = [Rules::Torch, Rules::Paddle];

/// An op with two operands and a function for every op math dtype.
fn blend(ops: &mut Registry) -> Op {
    let op = CustomOp::new("blend", ["x", "y"], Promotion::Common)
        .with(|[x, y]: [bool; 2]| x & !y)
        .with(|[x, y]: [u8; 2]| x.wrapping_mul(3) ^ y)
        .with(|[x, y]: [i8; 2]| x.wrapping_mul(3) ^ y)
        .with(|[x, y]: [i16; 2]| x.wrapping_mul(3) ^ y)
        .with(|[x, y]: [i32; 2]| x.wrapping_mul(3) ^ y)
        .with(|[x, y]: [i64; 2]| x.wrapping_mul(3) ^ y)
        .with(|[x, y]: [f32; 2]| x * 0.75 + y * x)
        .with(|[x, y]: [f64; 2]| x * 0.75 + y * x)
        .with(|[x, y]: [Complex<f32>; 2]| x * 0.75 + y * x)
        .with(|[x, y]: [Complex<f64>; 2]| x * 0.75 + y * x);
    ops.register(op).unwrap()
}

/// x / (1 + |x / limit|), as an op and as a function.
fn softclip(ops: &mut Registry) -> Op {
    let op = CustomOp::new("softclip", ["x", "limit"], Promotion::IntToFloat)
        .with(|[x, limit]| clipped(x, limit))
        .with(|[x, limit]: [f64; 2]| x / (1.0 + (x / limit).abs()))
        .doc("The operand, held below a limit.");
    ops.register(op).unwrap()
}

fn clipped(x: f32, limit: f32) -> f32 {
    x / (1.0 + (x / limit).abs())
}

fn operand<M: Mode>(var: Option<&Var<M>>, g: &Given) -> Operand<M> {
    match (var, g) {
        (Some(v), _) => v.into(),
        (None, Given::Scalar(s)) => (*s).into(),
        (None, Given::Tensor(_)) => panic!("a tensor without a handle"),
    }
}

/// The first `count` of these expressions: the op alone, between other ops that are fused with it, and beside a
/// comparison.
fn expressions<M: Mode>(op: Op, x: Operand<M>, y: Operand<M>, count: usize) -> Vec<Var<M>> {
    let mut all: Vec<Var<M>> = Vec::new();
    while all.len() < count {
        let next = match &all[..] {
            [] => castwise::apply(op, &[x.clone(), y.clone()], Attrs::default()),
            [alone] => castwise::apply(op, &[Operand::Var(alone + alone), x.clone()], Attrs::default()),
            all => castwise::apply(Op::Where, &[(&all[0].ne(0)).into(), (&all[1]).into(), y.clone()], Attrs::default()),
        };
        all.push(next);
    }
    all
}

#[test]
fn both_modes_have_the_same_bits_in_every_layout() {
    let mut ops = Registry::new();
    let (blend, softclip) = (blend(&mut ops), softclip(&mut ops));
    let (mut agreed, mut refused) = (0, 0);
    for rules in RULES {
        for (a, b) in DType::ALL.into_iter().flat_map(|a| DType::ALL.map(|b| (a, b))) {
            for (i, location) in PLACES.into_iter().enumerate() {
                let other_place = PLACES[(i * 4 + a as usize + b as usize) % PLACES.len()];
                let all = [given(a, location, 0, true), given(b, other_place, 1, true)];
                if location == Place::Scalar && other_place == Place::Scalar {
                    continue; // Without a tensor operand, the application has no rule set.
                }
                if !common::has(rules, a) || !common::has(rules, b) {
                    continue; // The declaration is an error.
                }
                let cx = Eager::new(rules);
                let tensors = |g: &Given| if let Given::Tensor(t) = g { Some(t.clone()) } else { None };
                let tensors = all.each_ref().map(tensors);
                let eager = tensors.each_ref().map(|t| t.as_ref().map(|t| cx.tensor(t)));
                let feeds: Vec<(&str, Tensor)> =
                    ["x", "y"].into_iter().zip(tensors.clone()).filter_map(|(n, t)| Some((n, t?))).collect();
                for op in [blend, softclip] {
                    let p = Program::new(rules);
                    let [x, y] = tensors.each_ref();
                    let declared = |name, t: &Option<Tensor>| t.as_ref().map(|t| p.data(name, t.dtype(), t.shape()));
                    let vars = [declared("x", x), declared("y", y)];
                    let of = |i: usize| operand(eager[i].as_ref(), &all[i]);
                    let one = expressions(op, of(0), of(1), 3);
                    // A mistake in one expression would be a mistake of the whole program.
                    let right = one.iter().take_while(|e| e.result().is_ok()).count();
                    let of = |i: usize| operand(vars[i].as_ref(), &all[i]);
                    let fetches = expressions(op, of(0), of(1), right);
                    let run = EXECUTOR.with(|exe| exe.run(&p, feeds.clone(), &fetches)).unwrap();
                    for (e, got) in one.iter().zip(run) {
                        let case = || format!("{rules} {op} of {a} {location:?} and {b} {other_place:?}\n{p}");
                        assert_same_bits(&e.result().unwrap(), &got, &case);
                    }
                    if right < 3 {
                        let _mistake = expressions(op, of(0), of(1), right + 1);
                        assert!(p.check().is_err(), "{rules} {op} of {a} and {b}");
                    }
                    (agreed, refused) = (agreed + right, refused + usize::from(right < 3));
                }
            }
        }
    }
    assert!(agreed > 8000, "{agreed} agreed, {refused} were refused");
}

#[test]
fn threads_do_not_change_bits_and_half_types_round_once() {
    let mut ops = Registry::new();
    let clip = softclip(&mut ops);
    let n = 1 << 18;
    let f = |i: usize| ((i * 2_654_435_761) % 65_536) as u16;
    let halves: Vec<f16> = (0..n).map(|i| f16::from_bits(f(i))).collect();
    let t = Tensor::from_vec(halves.clone(), [512, n / 512]).unwrap();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F16, [None, None]);
    let y = x.apply(clip, &[3.0.into()]);
    let z = (&y + 1.0).over([-1]).sum();
    let run = |t: &Tensor, threads: usize, jit: bool| {
        Executor::builder().threads(threads).jit(jit).build().run(&p, feeds! { "x" => t }, [&y, &z]).unwrap()
    };
    let one = run(&t, 1, true);
    let want: Vec<f16> = halves.iter().map(|h| f16::from_f32(clipped(h.to_f32(), 3.0))).collect();
    for (got, want) in one[0].to_vec::<f16>().unwrap().iter().zip(&want) {
        assert!(got == want || got.is_nan() && want.is_nan(), "{got} is not {want}");
    }
    let across = t.transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap();
    for (t, threads, jit) in [(&t, 2, true), (&t, 7, true), (&t, 2, false), (&across, 1, true), (&across, 3, true)] {
        for (got, want) in run(t, threads, jit).iter().zip(&one) {
            assert_eq!(got.as_bytes(), want.as_bytes(), "{threads} threads, compiled: {jit}");
        }
    }
    let eager = Eager::new(Rules::Torch).tensor(&t).apply(clip, &[3.0.into()]).result().unwrap();
    assert_eq!(eager.as_bytes(), one[0].as_bytes());
    // Tensors without elements, and 0-d ones.
    let none = Tensor::zeros(DType::F16, [0, 5]).unwrap();
    assert_eq!(run(&none, 2, true)[0].shape(), [0, 5]);
    let scalar = Eager::new(Rules::Torch).tensor(&Tensor::scalar(6.0f32)).apply(clip, &[3.0.into()]);
    assert_eq!(scalar.result().unwrap().item::<f32>().unwrap(), 2.0);
}

/// One op of each arity, with many dtypes in one program, which are fused into one kernel with the ops around them.
#[test]
fn casts_are_written_out_and_the_op_is_a_step_of_the_kernel() {
    let mut ops = Registry::new();
    let four = CustomOp::new("four", ["a", "b", "c", "d"], Promotion::Common)
        .with(|[a, b, c, d]: [f32; 4]| (a - b).mul_add(c, d));
    let four = ops.register(four).unwrap();
    let p = Program::new(Rules::Torch);
    let a = p.data("a", DType::BF16, ["n"]);
    let b = p.data("b", DType::I64, ["n"]);
    let c = p.data("c", DType::F32, [1]);
    let line = line!() + 1;
    let y = (&a * 2.0).apply(four, &[(&b).into(), (&c).into(), 0.5.into()]) - 1.0;
    let typed = p.infer().unwrap();
    let casts: Vec<_> = typed.casts().iter().map(|c| (c.op, c.operand, c.from, c.to, c.reason, c.loss)).collect();
    let wanted = [
        (four, 0, DType::BF16, DType::F32, Reason::Table, CastLoss::Exact),
        (four, 1, DType::I64, DType::F32, Reason::Category, CastLoss::Rounds),
    ];
    assert_eq!(casts, wanted, "{typed}");
    assert!(matches!(typed.casts()[0].location, SourceLocation::Rust(l) if l.line() == line));
    let text = typed.explain();
    assert!(text.contains("for operand a of four") && text.contains("mul rounds to bf16"), "{text}");
    assert!(text.contains(": f32[?0] = four %1, %2, %c, 0.5:f32"), "{text}");

    let exe = Executor::new();
    let kernels = exe.kernels(&p, [&y]).unwrap();
    assert_eq!((kernels.matches("kernel {").count(), kernels.matches("= four.f32 ").count()), (1, 1), "{kernels}");
    let feeds = feeds! {
        "a" => Tensor::from_slice(&[bf16::ONE, bf16::from_f32(-3.0)], [2]).unwrap(),
        "b" => Tensor::from([5i64, -1]), "c" => Tensor::from([0.25f32]),
    };
    let out = exe.run(&p, feeds, [&y]).unwrap();
    assert_eq!(out[0].to_vec::<f32>().unwrap(), [-1.25, -1.75]);

    // The other rule set refuses the mix, and its error names the op.
    let paddle = p.with_rules(Rules::Paddle).check().unwrap_err().to_string();
    assert!(paddle.contains("`four` has no implicit promotion for bf16 and i64"), "{paddle}");
}

#[test]
fn equal_steps_are_one_and_another_op_of_the_name_is_another_key() {
    let named = |factor: f32| {
        let mut ops = Registry::new();
        let op = CustomOp::new("scaled", ["x"], Promotion::Common).with(move |[x]: [f32; 1]| x * factor);
        (ops.register(op).unwrap(), ops)
    };
    let ((double, first), (triple, second)) = (named(2.0), named(3.0));
    assert_ne!(double, triple);
    assert_eq!((double.name(), first.op("scaled"), second.op("scaled")), ("scaled", Some(double), Some(triple)));
    let exe = Executor::new();
    let t = Tensor::from([1.0f32, 4.0]);
    let run = |p: &Program, v: &Var| exe.run(p, feeds! { "x" => &t }, [v]).unwrap()[0].to_vec::<f32>().unwrap();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [2]);
    assert_eq!(run(&p, &x.apply(double, &[])), [2.0, 8.0]);
    assert_eq!(run(&p, &x.apply(triple, &[])), [3.0, 12.0]);
    // In one kernel, in which equal steps are merged.
    let both = x.apply(double, &[]) + x.apply(triple, &[]) + x.apply(double, &[]);
    assert_eq!(run(&p, &both), [7.0, 28.0]);
    let kernels = exe.kernels(&p, [&both]).unwrap();
    assert_eq!(kernels.matches("= scaled.f32 ").count(), 2, "{kernels}");
    // A name in a text refers to the op of the registry that the text is read with.
    p.set_fetches([("y", &x.apply(double, &[]))]).unwrap();
    for (ops, want) in [(&first, [2.0, 8.0]), (&second, [3.0, 12.0])] {
        let read = Program::parse_with(&p.to_string(), ops).unwrap();
        assert_eq!(run(&read, &read.fetches()[0].var), want);
        assert_eq!(read.to_string(), p.to_string());
    }
}

#[test]
fn what_a_function_gives_as_nan_is_the_canonical_one() {
    let mut ops = Registry::new();
    let odd =
        CustomOp::new("odd", ["x"], Promotion::Common).with(|[x]: [f32; 1]| f32::from_bits(x.to_bits() | 0xffc0_0001));
    let odd = ops.register(odd).unwrap();
    let made = Eager::new(Rules::Torch).tensor(&Tensor::from([1.0f32, f32::NAN])).apply(odd, &[]).result().unwrap();
    assert!(made.to_vec::<f32>().unwrap().iter().all(|v| v.to_bits() == f32::NAN.to_bits()));
}

#[test]
fn a_function_that_panics_is_an_error_that_names_its_op() {
    struct Spiteful;
    impl Drop for Spiteful {
        fn drop(&mut self) {
            panic!("once more");
        }
    }
    let mut ops = Registry::new();
    let picky = CustomOp::new("picky", ["x"], Promotion::Common).with(|[x]: [f32; 1]| match x {
        13.0 => panic!("no thirteen"),
        17.0 => std::panic::panic_any(Spiteful),
        x => x + 1.0,
    });
    let picky = ops.register(picky).unwrap();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    let line = line!() + 1;
    let y = (&x * 2.0).apply(picky, &[]) * 0.5;
    let s = y.sum();
    let wrong = |e: Error| match e {
        Error::Panicked { op: "picky", location: SourceLocation::Rust(l), message } => {
            assert_eq!(l.line(), line);
            message
        }
        other => panic!("{other}"),
    };
    for (threads, n) in [(1, 700), (2, 1 << 19)] {
        for jit in [true, false] {
            let exe = Executor::builder().threads(threads).jit(jit).build();
            let f = exe.prepare(&p, [&y, &s]).unwrap();
            for bad in [6.5f32, 8.5] {
                let mut v = vec![1.0f32; n];
                (v[n / 2], v[n - 1]) = (bad, bad);
                let t = Tensor::from_vec(v, [n]).unwrap();
                let said = (bad == 6.5).then(|| "no thirteen".to_string());
                assert_eq!(wrong(exe.run(&p, feeds! { "x" => &t }, [&y]).unwrap_err()), said);
                assert_eq!(wrong(f.run(&[&t]).unwrap_err()), said);
                // The executor still works, on the same threads.
                let out = f.run(&[&Tensor::full([n], 1.0f32).unwrap()]).unwrap();
                assert!(out[0].to_vec::<f32>().unwrap().iter().all(|v| *v == 1.5));
                assert_eq!(out[1].item::<f32>().unwrap(), 1.5 * n as f32);
            }
        }
    }
    let eager = Eager::new(Rules::Torch).tensor(&Tensor::from([13.0f32])).apply(picky, &[]) + 1.0;
    let text = eager.result().unwrap_err().to_string();
    let wanted = "the function of the custom op `picky` panicked: no thirteen\n  at tests/custom_ops.rs:";
    assert!(text.contains(wanted), "{text}");
    // If all operands are constants, the function panics when the program is planned.
    let c = p.constant(Tensor::from([13.0f32])).apply(picky, &[]) + &x;
    let t = Tensor::from([1.0f32]);
    match Executor::new().run(&p, feeds! { "x" => &t }, [&c]) {
        Err(Error::Panicked { op: "picky", message: Some(said), .. }) => assert_eq!(said, "no thirteen"),
        other => panic!("{other:?}"),
    }
    assert!(Executor::new().run(&p, feeds! { "x" => &t }, [&y]).is_ok());
}

/// Of several panics, the one for the first element is reported, for any number of threads. Control characters in its
/// message are escaped.
#[test]
fn the_error_of_a_panic_has_its_message() {
    let mut ops = Registry::new();
    let picky = CustomOp::new("choosy", ["x"], Promotion::Common).with(|[x]: [f32; 1]| {
        assert!(x >= 0.0, "{x} is too small\nfor\u{1b}[2J this");
        assert_eq!(x.trunc(), x);
        x
    });
    let picky = ops.register(picky).unwrap();
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [None]).apply(picky, &[]).sqrt();
    let n = 1 << 19;
    for bad in [0, 1, n / 3, n - 700] {
        let value = |i: usize| if i < bad { 1.0 } else { -1.0 - i as f32 };
        let t = Tensor::from_vec((0..n).map(value).collect(), [n]).unwrap();
        for threads in [1, 2, 5] {
            let exe = Executor::builder().threads(threads).build();
            let Err(e) = exe.run(&p, feeds! { "x" => &t }, [&y]) else { panic!("no error") };
            assert!(matches!(&e, Error::Panicked { message: Some(said), .. }
                if *said == format!("{} is too small\nfor\u{1b}[2J this", value(bad))));
            let first = format!("panicked: {} is too small\n    for\\u{{1b}}[2J this\n  at ", value(bad));
            assert!(e.to_string().contains(&first), "{e}");
        }
    }
    let odd = Eager::new(Rules::Torch).tensor(&Tensor::from([1.0f32, 2.5])).apply(picky, &[]).result();
    let text = odd.unwrap_err().to_string();
    assert!(text.contains("panicked: assertion `left == right` failed\n      left: 2.0\n     right: 2.5\n"), "{text}");
}

#[test]
fn a_function_may_run_programs_itself() {
    let mut ops = Registry::new();
    let calls = std::sync::Arc::new(AtomicUsize::new(0));
    let (count, exe) = (calls.clone(), Executor::builder().threads(2).build());
    let inner = Program::new(Rules::Torch);
    let doubled = inner.data("x", DType::F32, [None]) * 2.0;
    let nested = CustomOp::new("nested", ["x"], Promotion::Common).with(move |[x]: [f32; 1]| {
        if count.fetch_add(1, Ordering::Relaxed) % 1000 != 0 {
            return x * 2.0;
        }
        let t = Tensor::from([x]);
        exe.run(&inner, feeds! { "x" => t }, [&doubled]).map_or(f32::NAN, |out| out[0].item().unwrap_or(f32::NAN))
    });
    let nested = ops.register(nested).unwrap();
    let p = Program::new(Rules::Torch);
    let y = (p.data("x", DType::F32, [None]) + 1.0).apply(nested, &[]).exp();
    let n = 1 << 18;
    let t = Tensor::full([n], 0.5f32).unwrap();
    let out = Executor::builder().threads(2).build().run(&p, feeds! { "x" => t }, [&y]).unwrap();
    let v = out[0].to_vec::<f32>().unwrap();
    assert!(v.iter().all(|x| x.to_bits() == v[0].to_bits()) && (v[0] - 3f32.exp()).abs() < 1e-4, "{}", v[0]);
    assert_eq!(calls.load(Ordering::Relaxed), n);
}

#[test]
fn wrong_registrations_are_told_apart() {
    use CustomOpError as E;
    let f = |[x]: [f32; 1]| x;
    let one = |name: &str| CustomOp::new(name, ["x"], Promotion::Common).with(f);
    let mut ops = Registry::new();
    ops.register(one("mine")).unwrap();
    let mut fault = |op: CustomOp<1>| match ops.register(op) {
        Err(Error::CustomOp(e)) => e,
        other => panic!("{other:?}"),
    };
    assert_eq!(fault(one("mine")), E::Duplicate { name: "mine".into() });
    for name in ["add", "abs", "absolute", "cast", "true_divide"] {
        assert_eq!(fault(one(name)), E::NameOfTable { name: name.into() });
    }
    for name in
        ["", "a b", "a.b", "ä", "9a", "a-b", "fetch", "constant", "error", "true", "nan", "if", "%x", &"x".repeat(65)]
    {
        assert!(matches!(fault(one(name)), E::Identifier { name: n, .. } if n == name), "{name}");
        let operand = CustomOp::new("fine", [name], Promotion::Common).with(f);
        assert!(matches!(fault(operand), E::Identifier { name: n, .. } if n == name), "{name}");
    }
    let bare = CustomOp::new("bare", ["x"], Promotion::ToDouble);
    assert_eq!(fault(bare), E::NoFunction { op: "bare".into(), computes: "f64, c128".into() });
    let text = E::NoFunction { op: "bare".into(), computes: "f64, c128".into() }.to_string();
    assert_eq!(text, "the custom op `bare` has no function for a dtype that it computes in: f64, c128");
    let useless = CustomOp::new("useless", ["x"], Promotion::ToDouble).with(f);
    assert!(matches!(fault(useless), E::UselessFunction { dtype: DType::F32, .. }));
    assert_eq!(fault(one("twice").with(f)), E::TwoFunctions { op: "twice".into(), dtype: DType::F32 });
    let given = CustomOp::new("given", ["x"], Promotion::Given).with(f);
    assert_eq!(fault(given), E::Promotion { op: "given".into() });
    let none = CustomOp::new("none", [], Promotion::Common).with(|[]: [f32; 0]| 1.0);
    assert!(matches!(ops.register(none), Err(Error::CustomOp(E::Arity { got: 0, max: 4, .. }))));
    let five = CustomOp::new("five", ["a", "b", "c", "d", "e"], Promotion::Common).with(|all: [f32; 5]| all[0]);
    assert!(matches!(ops.register(five), Err(Error::CustomOp(E::Arity { got: 5, max: 4, .. }))));
    // None of these ops was registered.
    assert_eq!(ops.ops().map(|op| op.name()).collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn a_dtype_without_a_function_is_a_mistake_of_the_program() {
    let mut ops = Registry::new();
    let narrow = CustomOp::new("narrow", ["x", "y"], Promotion::IntToFloat).with(|[x, y]: [f32; 2]| x.max(y));
    let narrow = ops.register(narrow).unwrap();
    let mistakes = |settings: Settings, a: DType, b: DType| {
        let p = Program::with_settings(settings);
        let _ = p.data("a", a, [3]).apply(narrow, &[(&p.data("b", b, [3])).into()]);
        p.check().err().map(|e| e.diagnostics().to_vec()).unwrap_or_default()
    };
    let torch = Settings::new(Rules::Torch);
    for (a, b) in [(DType::F16, DType::BF16), (DType::I32, DType::Bool), (DType::F32, DType::I64)] {
        assert_eq!(mistakes(torch, a, b), [], "{a} {b}");
    }
    let wide = mistakes(torch, DType::F32, DType::F64);
    assert_eq!(wide[0].kind, DiagnosticKind::UnsupportedDType);
    let text = wide[0].to_string();
    let wanted = "`narrow` of f32 and f64 computes in f64, for which it has no function; it has one for f32";
    assert!(text.starts_with(wanted) && text.contains("register it with a function of `[f64; 2]`"), "{text}");
    assert!(text.contains("(operands: f32[3], f64[3])") && text.contains("at tests/custom_ops.rs:"), "{text}");
    // The float dtype that integers are promoted to depends on the program.
    let double = torch.with_default_dtype(DType::F64);
    assert_eq!(mistakes(double, DType::I32, DType::I32).len(), 1);
    assert_eq!(mistakes(double, DType::F16, DType::I32), []);
    let complex = mistakes(torch, DType::C64, DType::F32);
    assert!(complex[0].to_string().contains("computes in c64"), "{complex:?}");
    // The number of operands differs from the op's.
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [3]);
    let _ = (x.apply(narrow, &[]), x.apply(narrow, &[1.0.into(), 2.0.into()]));
    let text = p.check().unwrap_err().to_string();
    assert!(text.contains("`narrow` takes 2 operands, not 1") && text.contains("not 3"), "{text}");
}

#[test]
fn texts_and_expressions_know_the_ops_of_a_registry() {
    let mut ops = Registry::new();
    let (blend, clip) = (blend(&mut ops), softclip(&mut ops));
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::F16, ["n"]), p.data("y", DType::U8, [1]));
    let z = x.apply(blend, &[(&y).into()]).apply(clip, &[Scalar::Float(0.1).into()]);
    p.set_fetches([("z", &z)]).unwrap();
    let text = p.to_string();
    assert!(text.contains("%0 = blend %x, %y\n") && text.contains("%1 = softclip %0, ~0.1\n"), "{text}");
    let read = Program::parse_with(&text, &ops).unwrap();
    assert_eq!((read.to_string(), read.infer().unwrap().to_string().replace("characters", "")), {
        let again = Program::parse_with(&read.to_string(), &ops.clone()).unwrap();
        (text.clone(), again.infer().unwrap().to_string().replace("characters", ""))
    });
    let feeds = || feeds! { "x" => Tensor::full([5], f16::from_f32(1.5)).unwrap(), "y" => Tensor::from([2u8]) };
    let bits = |p: &Program, v: &Var| Executor::new().run(p, feeds(), [v]).unwrap()[0].as_bytes().unwrap().to_vec();
    assert_eq!(bits(&p, &z), bits(&read, &read.fetches()[0].var));
    let same = p.expression_in("softclip(blend(x, y), 0.1)", &ops, |_| None).unwrap();
    assert_eq!(bits(&p, &z), bits(&p, &same));

    // Without the registry, the error names the op and suggests to register it.
    let unknown = Program::parse(&text).unwrap_err();
    let all: Vec<_> = unknown.diagnostics().iter().map(|d| (d.kind, d.message.as_str())).collect();
    let named = ["line 3: unknown op `blend`", "line 4: unknown op `softclip`"];
    assert_eq!(all, named.map(|text| (DiagnosticKind::Syntax, text)));
    let help = unknown.diagnostics()[0].help.clone().unwrap();
    assert!(help.contains("`Program::parse_with`") && help.contains("`Registry`"), "{help}");
    let mut few = Registry::new();
    self::blend(&mut few);
    let unknown = Program::parse_with(&text, &few).unwrap_err().to_string();
    assert!(unknown.contains("line 4: unknown op `softclip`") && unknown.contains("registered"), "{unknown}");
    // A mistyped name, a missing operand, a name without a call.
    for (text, said) in [
        ("blent(x, y)", "did you mean `blend`?"),
        ("blend(x)", "`blend` takes 2 operands"),
        ("blend + 1", "it is an op: write `blend(x, y)`"),
    ] {
        let e = p.expression_in(text, &ops, |_| None).unwrap_err().to_string();
        assert!(e.contains(said), "{e}");
    }
    assert!(p.expression("blend(x, y)").is_err());
}

/// Threads register ops, and run ops that others have registered.
#[test]
fn registering_and_running_go_on_at_once() {
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for t in 0..4i64 {
            let failed = &failed;
            scope.spawn(move || {
                let mut ops = Registry::new();
                for i in 0..20i64 {
                    let add = 100 * t + i;
                    let op =
                        CustomOp::new(&format!("add_{i}"), ["x"], Promotion::Common).with(move |[x]: [i64; 1]| x + add);
                    let op = ops.register(op).unwrap();
                    let p = Program::new(Rules::Paddle);
                    let y = p.data("x", DType::I64, [2]).apply(op, &[]);
                    let out = Executor::new().run(&p, feeds! { "x" => Tensor::from([0i64, 7]) }, [&y]).unwrap();
                    failed.fetch_or(out[0].to_vec::<i64>().unwrap() != [add, 7 + add], Ordering::Relaxed);
                }
            });
        }
    });
    assert!(!failed.into_inner());
}

/// A reduction over a custom op's results: over all elements, and over rows.
#[test]
fn reductions_take_what_a_custom_op_gives() {
    thread_local!(static SEEN: RefCell<usize> = const { RefCell::new(0) });
    let mut ops = Registry::new();
    let seen = CustomOp::new("seen", ["x"], Promotion::ToLong).with(|[x]: [i64; 1]| {
        SEEN.with_borrow_mut(|n| *n += 1);
        x * x
    });
    let seen = ops.register(seen).unwrap();
    let p = Program::new(Rules::Torch);
    let squares = p.data("x", DType::U8, [3, 5]).apply(seen, &[]);
    let (all, rows) = (squares.sum(), squares.over([0]).amax());
    let t = Tensor::from_vec((0..15u8).collect(), [3, 5]).unwrap();
    let out = Executor::builder().threads(1).build().run(&p, feeds! { "x" => t }, [&all, &rows]).unwrap();
    assert_eq!(out[0].item::<i64>().unwrap(), (0..15).map(|i| i * i).sum::<i64>());
    assert_eq!(out[1].to_vec::<i64>().unwrap(), [100, 121, 144, 169, 196]);
    assert!(SEEN.with_borrow(|n| *n) >= 15);
}
