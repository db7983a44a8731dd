//! Lines that code gives at run time, as bindings do: every node, value and mistake has the one that it was made at, in both
//! modes, and every error shows it.

use castwise::prelude::*;
use castwise::{
    Attrs, CustomOp, DiagnosticKind, Error, Graph, Limit, Limits, NodeKind, Operand, PoissonNll, Promotion, Registry,
    SourceLine, SourceLocation, apply, with_location,
};

/// Runs code at a line of a file that is not there.
fn at<T>(line: u32, run: impl FnOnce() -> T) -> T {
    with_location(SourceLine::new("model.py", line).with_column(5).in_function("forward"), run)
}

/// How a message ends that names the line.
fn shown(line: u32) -> String {
    format!("\n  at model.py:{line}:5, in forward")
}

fn line_of(location: &SourceLocation) -> Option<u32> {
    match location {
        SourceLocation::Line(l) => {
            assert_eq!((&*l.file, l.column, l.function.as_deref()), ("model.py", Some(5), Some("forward")));
            Some(l.line)
        }
        _ => None,
    }
}

#[test]
fn every_node_has_the_line_that_it_was_made_at() {
    // Each way to write a node, at a line of its own.
    let p = at(1, || Program::new(Rules::Torch));
    let x = at(2, || p.data("x", DType::F16, [2, 3]));
    let c = at(3, || p.constant(Tensor::full([3], 2.0f32).unwrap()));
    let column = at(4, || p.data("column", DType::F32, [2]));
    type Way<'a> = Box<dyn Fn() -> Var + 'a>;
    let ways: Vec<Way<'_>> = vec![
        Box::new(|| &x + &c),
        Box::new(|| 2.0 - &x),
        Box::new(|| -&x),
        Box::new(|| x.hypot(&c)),
        Box::new(|| x.cast(DType::I32)),
        Box::new(|| x.cast_output(DType::F64)),
        Box::new(|| x.astype(DType::Bool)),
        Box::new(|| x.view_as(DType::BF16)),
        Box::new(|| x.over([1]).keepdim().dtype(DType::F32).mean()),
        Box::new(|| x.at_axis(0).add(&column)),
        Box::new(|| x.apply(Op::Atan2, &[1.0.into()])),
        Box::new(|| apply(Op::Clamp, &[Operand::<Graph>::from(&x), 0.0.into(), 1.0.into()], Attrs::default())),
        Box::new(|| x.huber_loss(&c, 1.0, Reduction::Sum)),
        Box::new(|| x.poisson_nll_loss(&c, PoissonNll { full: true, ..PoissonNll::default() })),
        Box::new(|| p.data("y", DType::F32, [None])),
    ];
    let mut begins = Vec::new();
    for (i, way) in ways.iter().enumerate() {
        begins.push((p.len(), 10 + i as u32));
        at(10 + i as u32, way);
    }
    let typed = p.infer().unwrap();
    let written = |position: usize| begins.iter().rev().find(|(from, _)| position >= *from).unwrap().1;
    let mut expected = vec![2, 3, 4];
    for v in (3..p.len()).filter_map(|i| p.var(i)) {
        expected.resize(typed.position(&v).unwrap() + 1, written(v.index()));
    }
    let lines: Vec<u32> = typed.nodes().map(|n| line_of(n.location).unwrap()).collect();
    assert_eq!(lines, expected, "{typed}");
    assert!(typed.nodes().any(|n| matches!(n.kind, NodeKind::View { .. })));
    let casts = typed.casts();
    assert!(casts.iter().all(|c| line_of(&c.location).is_some()) && casts.len() > 5);
    let text = typed.explain();
    assert!(text.contains("for operand x of add at model.py:10:5, in forward: exact"), "{text}");
}

#[test]
fn mistakes_of_every_kind_show_the_line() {
    let settings = Settings::new(Rules::Paddle).with_default_dtype(DType::I32);
    let limits = Limits::new().with(Limit::Elements, 1000).unwrap();
    let p = at(1, || Program::with_limits(settings, limits));
    let i = p.data("i", DType::I64, [3]);
    let f = p.data("f", DType::F32, [3]);
    let other = Program::new(Rules::Paddle).data("d", DType::F32, [3]);
    at(2, || &i + &f);
    at(3, || &f + p.data("g", DType::F32, [2]));
    at(4, || &f * &other);
    at(5, || p.data("i", DType::F32, ()));
    at(6, || p.data("huge", DType::F32, [usize::MAX, 2]));
    at(7, || p.constant(Tensor::zeros(DType::F32, [1001]).unwrap()));
    at(8, || i.pow(-1));
    at(9, || f.over([1]).sum());
    at(10, || f.at_axis(3).add(&f));
    at(11, || f.view_as(DType::F64));
    at(12, || i.l1_loss(&f, Reduction::Mean));
    let poisson = PoissonNll { epsilon: 0.0, ..PoissonNll::default() };
    at(13, || f.poisson_nll_loss(&f, poisson));
    at(14, || f.apply(Op::Add, &[]));
    at(15, || p.data("c", DType::C32, [1]));
    at(16, || f.cast_output(DType::I32));
    at(17, || p.weak_data("i", DType::F32, ()));
    at(18, || p.weak_constant(Tensor::zeros(DType::F32, [1001]).unwrap()));
    let error = p.check().unwrap_err();
    let lines: Vec<u32> = error.diagnostics().iter().map(|d| line_of(&d.location).unwrap_or(0)).collect();
    assert_eq!(lines, (1..=18).collect::<Vec<_>>(), "{error}");
    for (d, line) in error.diagnostics().iter().zip(&lines) {
        assert!(d.to_string().contains(&shown(*line)), "{d}");
    }
}

/// Results that can't be declared or computed: the line that declares them, or that made the handle.
#[test]
fn mistakes_in_fetches_show_the_line() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [3]);
    let other = at(2, || Program::new(Rules::Torch).data("x", DType::F32, [3]));
    let twice = at(3, || p.set_fetches([("y", &x), ("y", &x)])).unwrap_err();
    let foreign = at(4, || p.set_fetches([("y", &other)])).unwrap_err();
    let run = at(4, || Executor::new().run(&p, feeds! {}, [&other])).unwrap_err();
    let prepared = at(4, || Executor::new().prepare(&p, [&other]).map(|_| ())).unwrap_err();
    for (error, line) in [(twice, 3), (foreign, 2), (run, 2), (prepared, 2)] {
        assert!(error.to_string().contains(&shown(line)), "{error}");
        assert_eq!(line_of(&error.diagnostics()[0].location), Some(line));
    }
}

/// Errors that the data make: each in a program and in eager mode.
#[test]
fn errors_of_runs_show_the_line() {
    let picky = CustomOp::new("picky_at", ["x"], Promotion::Common).with(|[x]: [f32; 1]| {
        assert!(x != 13.0, "no thirteen");
        x
    });
    let picky = Registry::new().register(picky).unwrap();
    let (ints, zeros) = (Tensor::from([1i32, 2]), Tensor::from([3i32, 0]));
    let (bad, none) = (Tensor::from([13.0f32, 1.0]), Tensor::zeros(DType::F32, [0, 2]).unwrap());

    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::I32, [None]), p.data("y", DType::I32, [None]));
    let (f, g) = (p.data("f", DType::F32, [None]), p.data("g", DType::F32, [None, None]));
    let results =
        [at(3, || x.floor_divide(&y)), at(4, || f.apply(picky, &[])), at(5, || g.over([0]).amax()), at(6, || &x + &f)];
    let three = Tensor::from([1.0f32, 2.0, 3.0]);
    let program = |i: usize, f: &Tensor| {
        let feeds = feeds! { "x" => &ints, "y" => &zeros, "f" => f, "g" => &none };
        Executor::new().run(&p, feeds, [&results[i]]).map(|_| ()).unwrap_err()
    };
    let cx = Eager::new(Rules::Torch);
    let [x, y, f, g, h] = [&ints, &zeros, &bad, &none, &three].map(|t| cx.tensor(t));
    // Twice: the second time eager mode has planned the op before, if it could.
    for _ in 0..2 {
        let eager = [
            at(3, || x.floor_divide(&y)),
            at(4, || f.apply(picky, &[])),
            at(5, || g.over([0]).amax()),
            at(6, || &x + &h),
        ];
        let [divided, panicked, empty, broadcast] = eager.map(|v| v.result().map(|_| ()).unwrap_err());
        let fed = [&bad, &bad, &bad, &three];
        let all = [divided, panicked, empty, broadcast].into_iter().enumerate();
        for (i, (eager, program)) in all.map(|(i, e)| (i, (e, program(i, fed[i])))) {
            for e in [&eager, &program] {
                let text = e.to_string();
                assert!(text.ends_with(&shown(3 + i as u32)), "{text}");
            }
            let inner = if let Error::Earlier(e) = &eager { e } else { &eager };
            match (i, inner, &program) {
                (0, Error::DivisionByZero { location: a, .. }, Error::DivisionByZero { location: b, .. })
                | (1, Error::Panicked { location: a, .. }, Error::Panicked { location: b, .. })
                | (2, Error::EmptyReduction { location: a, .. }, Error::EmptyReduction { location: b, .. }) => {
                    assert_eq!((line_of(a), line_of(b)), (Some(3 + i as u32), Some(3 + i as u32)));
                }
                (3, Error::Invalid(found), Error::Shape(_)) => assert_eq!(line_of(&found[0].location), Some(6)),
                _ => panic!("{eager}\n{program}"),
            }
        }
    }
}

#[test]
fn eager_values_have_the_line_that_made_them() {
    let cx = Eager::new(Rules::Paddle);
    let (i, f) = (cx.tensor(&Tensor::from([1i64, 2])), cx.tensor(&Tensor::from([1.0f32, 2.0])));
    let other = Eager::new(Rules::Torch).tensor(&Tensor::from([1.0f32, 2.0]));
    let wrong = Eager::with_settings(Settings::new(Rules::Torch).with_default_dtype(DType::I32));
    let values = [
        (at(1, || &i + &f), DiagnosticKind::PromotionRefused),
        (at(2, || &f + &other), DiagnosticKind::ForeignVar),
        (at(3, || f.over([1]).sum()), DiagnosticKind::Axis),
        (at(4, || f.view_as(DType::I64)), DiagnosticKind::BadParameter),
        (at(5, || f.cast_output(DType::I64)), DiagnosticKind::Cast),
        (
            at(6, || apply(Op::Add, &[Operand::<Eager>::from(1), 2.into()], Attrs::default())),
            DiagnosticKind::BadParameter,
        ),
        (at(7, || wrong.tensor(&Tensor::from([1.0f32]))), DiagnosticKind::BadParameter),
    ];
    for (n, (v, kind)) in values.iter().enumerate() {
        // What is computed from it has the error of the line that made it.
        for v in [v.clone(), at(99, || v.exp())] {
            let e = v.result().unwrap_err();
            let [d] = e.diagnostics() else { panic!("{e}") };
            assert_eq!((line_of(&d.location), d.kind), (Some(n as u32 + 1), *kind), "{d}");
            assert!(d.to_string().contains(&shown(n as u32 + 1)), "{d}");
        }
    }
}

/// Notes that `explain` prints beside casts, and where the rule sets differ.
#[test]
fn notes_show_the_line() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::BF16, [3]), p.data("y", DType::F32, [3]));
    let (a, b) = (p.data("a", DType::U8, [3]), p.data("b", DType::I32, [3]));
    let _ = at(3, || &x * 0.7) + &y;
    let _ = at(4, || &a + &a) + &b;
    at(5, || &a + 300);
    let mixed = at(6, || &b * &y);
    let typed = p.infer().unwrap();
    let text = typed.explain();
    for said in [
        "  mul rounds to bf16 at model.py:3:5, in forward\n",
        "  add in u8 needs 0 to 510, has 0 to 255 at model.py:4:5, in forward: cast an operand first, e.g. `cast(x, i16)`\n",
        "the scalar 300 of add is 44 in u8 at model.py:5:5, in forward\n",
        "for operand x of mul at model.py:6:5, in forward: rounds\n",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let found = castwise::compare(&p, Rules::Torch, Rules::Paddle);
    let d = found.iter().find(|d| p.var(d.node).is_some_and(|v| v.index() == mixed.index())).unwrap();
    assert!(d.to_string().contains(" at model.py:6:5, in forward"), "{d}");
}

/// Parsed text has places of its own, wherever it is parsed.
#[test]
fn text_keeps_its_places() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [3]);
    let y = at(1, || p.expression("x + 1")).unwrap();
    let typed = p.infer().unwrap();
    let location = |v: &Var| typed.nodes().nth(typed.position(v).unwrap()).map(|n| n.location.clone());
    assert!(matches!(location(&y), Some(SourceLocation::Text(_))));
    assert!(matches!(location(&x), Some(SourceLocation::Rust(_))));
}
