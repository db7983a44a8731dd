//! Each configurable limit, tested at one below it, at it, and one above it; and the range in which each can be set.

use castwise::expr::parse_expression_within;
use castwise::prelude::*;
use castwise::{Error, Limit, Limits, Registry};

use super::limited;

fn only(limit: Limit, value: usize) -> Limits {
    Limits::new().with(limit, value as u64).unwrap()
}

/// Whether the program has exactly one mistake, with this text.
fn mistake<T>(made: castwise::Result<T>, what: &str) -> bool {
    match made {
        Err(Error::Invalid(all)) => {
            assert!(all[0].message.contains(what), "{}", all[0]);
            true
        }
        Err(e) => panic!("{e}"),
        Ok(_) => false,
    }
}

/// The numbers around a limit, and whether each exceeds it.
fn around(limit: usize) -> [(usize, bool); 3] {
    [(limit - 1, false), (limit, false), (limit + 1, true)]
}

#[test]
fn every_limit_has_a_row_in_the_promises() {
    let promises = include_str!("../../docs/promises.md");
    for limit in Limit::ALL {
        assert!(promises.contains(&format!("| `Limit::{limit:?}` |")), "docs/promises.md does not have {limit:?}");
    }
    // The constants are the defaults.
    for (limit, constant) in [
        (Limit::Nodes, castwise::MAX_NODES),
        (Limit::Rank, castwise::shape::MAX_RANK),
        (Limit::Elements, isize::MAX as usize / 16),
        (Limit::Nesting, castwise::MAX_NODES),
        (Limit::Expression, castwise::expr::MAX_EXPRESSION),
        (Limit::ProgramText, castwise::MAX_PROGRAM_TEXT),
        (Limit::Results, castwise::MAX_FETCHES),
    ] {
        assert_eq!(limit.default(), constant as u64);
    }
}

#[test]
fn nodes() {
    for (n, beyond) in around(20) {
        let refusal = "a program of more than 20 nodes";
        let p = Program::with_limits(Rules::Torch, only(Limit::Nodes, 20));
        let x = p.data("x", DType::F32, [1]);
        let y = (1..n).fold(x.clone(), |y, _| &y + 1.0);
        assert_eq!((mistake(p.check(), refusal), p.len()), (beyond, n));
        let t = Tensor::from([0.0f32]);
        let exe = Executor::new();
        let made = exe.run(&p, feeds! { "x" => &t }, [&y]);
        assert!(mistake(made.as_ref().map(|_| ()).map_err(copy), refusal) == beyond);
        if let Ok(made) = &made {
            assert_eq!(made[0].item::<f32>().unwrap(), n as f32 - 1.0);
        }
        // All later nodes are refused too, also if the program has run before.
        let z = (n..25).fold(y, |y, _| &y + 1.0);
        assert!(mistake(exe.run(&p, feeds! { "x" => &t }, [&z]), refusal) && p.len() == 21);
        // The same for texts, and for expressions in a program and without one.
        let line =
            |i: usize| format!("  %{i} = add {}, ~1.0\n", if i == 0 { "%x".into() } else { format!("%{}", i - 1) });
        let body: String = (0..n - 1).map(line).collect();
        let text = format!("castwise 1\nprogram(rules = torch) (%x: f32[1]) {{\n{body}}}\n");
        let made = Program::parse_within(&text, &Registry::new(), only(Limit::Nodes, 20));
        assert!(made.as_ref().map_or(true, |p| p.limits() == only(Limit::Nodes, 20)));
        assert_eq!(limited(made, "values of a program", 20), beyond);
        let expression = format!("x{}", " + x".repeat(n));
        let x = Eager::new(Rules::Torch).tensor(&t);
        let made = parse_expression_within(&expression, only(Limit::Nodes, 20), |_| Some(x.clone()));
        assert_eq!(mistake(made, "more than 20 applications"), beyond);
    }
    // A limit of no nodes; and `with_rules` keeps the limit.
    let p = Program::with_limits(Rules::Torch, only(Limit::Nodes, 0));
    let x = p.data("x", DType::F32, [1]);
    for p in [&p, &p.with_rules(Rules::Paddle)] {
        assert!(mistake(p.check(), "more than 0 nodes"));
    }
    assert!(mistake(Executor::new().run(&p, feeds! {}, [&x]), "more than 0 nodes"));
}

/// Copies an error of this kind, since errors can't be cloned.
fn copy(e: &Error) -> Error {
    Error::Invalid(e.diagnostics().to_vec())
}

#[test]
fn rank() {
    let limits = only(Limit::Rank, 3);
    for (n, beyond) in around(3) {
        let t = Tensor::full(vec![1; n], 1.5f32).unwrap();
        let p = Program::with_limits(Rules::Torch, limits);
        p.data("x", DType::F32, vec![None; n]);
        assert_eq!(mistake(p.check(), "dims, more than 3"), beyond);
        let p = Program::with_limits(Rules::Torch, limits);
        let y = p.constant(t.clone()) + 1.0;
        assert_eq!(mistake(p.check(), "the rank is 4, more than the limit of 3"), beyond);
        assert_eq!(Executor::new().run(&p, feeds! {}, [&y]).is_err(), beyond);
        let eager = Eager::with_limits(Rules::Torch, limits).tensor(&t) + 1.0;
        assert_eq!(eager.result().is_err_and(|e| e.to_string().contains("the rank is 4")), beyond);
        let dims = vec!["1"; n].join(", ");
        for text in [
            format!("castwise 1\nprogram(rules = torch) (%x: f32[{dims}]) {{\n  fetch %x\n}}\n"),
            format!("castwise 1\nprogram(rules = torch) () {{\n  %0 = constant f32[{dims}] [1.0]\n}}\n"),
            format!("castwise 1\nprogram(rules = torch) () {{\n  %0 = constant f32[] [1.0] to [{dims}]\n}}\n"),
        ] {
            let made = Program::parse_within(&text, &Registry::new(), limits);
            assert_eq!(
                made.and_then(|p| p.check()).is_err_and(|e| e.to_string().contains("more than")),
                beyond,
                "{text}"
            );
        }
    }
}

#[test]
fn elements() {
    let limits = only(Limit::Elements, 12);
    let refusal = |n: usize| format!("the number of elements is {n}, more than the limit of 12");
    for (n, beyond) in around(12) {
        let t = Tensor::full([n], 1.5f32).unwrap();
        // The limit applies to a declared shape, to a constant, to a feed, and to a result whose shape depends on the
        // feeds.
        let p = Program::with_limits(Rules::Torch, limits);
        p.data("x", DType::F32, [n]);
        assert_eq!(mistake(p.check(), &refusal(n)), beyond);
        let p = Program::with_limits(Rules::Torch, limits);
        p.constant(t.clone());
        assert_eq!(mistake(p.check(), &refusal(n)), beyond);
        let cx = Eager::with_limits(Rules::Torch, limits);
        assert_eq!((cx.tensor(&t) + 1.0).result().is_err_and(|e| e.to_string() == refusal(n)), beyond);
        let p = Program::with_limits(Rules::Torch, limits);
        let (x, column) = (p.data("x", DType::F32, [None]), p.data("c", DType::F32, [None, Some(1)]));
        let (sum, outer, total) = (&x + 1.0, &x + &column, (&x + &column).sum());
        let one = Tensor::full([1, 1], 0.5f32).unwrap();
        let exe = Executor::new();
        let shot = [exe.prepare(&p, [&sum]).unwrap(), exe.prepare(&p, [&total]).unwrap()];
        for v in [&x, &sum, &outer, &total] {
            let made = exe.run(&p, feeds! { "x" => &t, "c" => &one }, [v]);
            assert_eq!(limited(made, "number of elements", 12), beyond);
        }
        for step in &shot {
            for _ in 0..2 {
                assert_eq!(limited(step.run(&[&t, &one]), "number of elements", 12), beyond);
            }
        }
    }
    // Each feed is within the limit, but their result is not. Results that are not fetched do not count.
    for (rows, beyond) in around(4) {
        let p = Program::with_limits(Rules::Torch, limits);
        let (x, column) = (p.data("x", DType::F32, [None]), p.data("c", DType::F32, [None, Some(1)]));
        let (sum, outer) = (&x + 1.0, (&x + &column).amax());
        let (t, c) = (Tensor::full([3], 1.0f32).unwrap(), Tensor::full([rows, 1], 0.5f32).unwrap());
        for jit in [true, false] {
            let exe = Executor::builder().jit(jit).build();
            let feeds = || feeds! { "x" => &t, "c" => &c };
            assert!(exe.run(&p, feeds(), [&sum]).is_ok());
            for _ in 0..2 {
                assert_eq!(limited(exe.run(&p, feeds(), [&sum, &outer]), "number of elements", 12), beyond);
                let mut into = [Tensor::scalar(0.0f32)];
                assert_eq!(limited(exe.run_into(&p, feeds(), [&outer], &mut into), "elements", 12), beyond);
            }
        }
        let cx = Eager::with_limits(Rules::Torch, limits);
        let eager = (cx.tensor(&t) + cx.tensor(&c)).amax().result();
        assert_eq!(eager.is_err_and(|e| e.to_string().contains(&refusal(15))), beyond);
    }
    // A very small limit. A dynamic dim counts as 1 until the feeds are known.
    let p = Program::with_limits(Rules::Torch, only(Limit::Elements, 1));
    let y = p.data("x", DType::F32, [None]) + 1.0;
    let exe = Executor::new();
    for (n, beyond) in around(1) {
        let t = Tensor::zeros(DType::F32, [n]).unwrap();
        let made = exe.run(&p, feeds! { "x" => &t }, [&y]);
        assert_eq!(limited(made, "elements", 1), beyond);
    }
    // Handles of eager contexts with different limits can't be combined.
    let t = Tensor::scalar(1.0f32);
    let mixed = Eager::new(Rules::Torch).tensor(&t) + Eager::with_limits(Rules::Torch, limits).tensor(&t);
    assert!(mixed.result().unwrap_err().to_string().contains("different limits"));
}

#[test]
fn texts() {
    let x = Eager::new(Rules::Torch).tensor(&Tensor::scalar(1.0f32));
    for (n, beyond) in around(10) {
        let nested = format!("{}x{}", "(".repeat(n), ")".repeat(n));
        let limits = only(Limit::Nesting, 10);
        let p = Program::with_limits(Rules::Torch, limits);
        p.data("x", DType::F32, [1]);
        assert_eq!(mistake(p.expression(&nested), "more than 10 operators and parentheses"), beyond);
        let eager = parse_expression_within(&nested, limits, |_| Some(x.clone()));
        assert_eq!(mistake(eager, "more than 10 operators and parentheses"), beyond);
        let operators = format!("{}x", "-".repeat(n));
        assert_eq!(mistake(p.expression(&operators), "more than 10 operators"), beyond);

        let limits = only(Limit::Expression, 10);
        let p = Program::with_limits(Rules::Torch, limits);
        p.data("x", DType::F32, [1]);
        let long = " ".repeat(n - 1) + "x";
        assert_eq!(limited(p.expression(&long), "length of the expression", 10), beyond);
        let eager = parse_expression_within(&long, limits, |_| Some(x.clone()));
        assert_eq!(limited(eager, "length of the expression", 10), beyond);

        let text = "castwise 1\nprogram(rules = torch) (%x: f32[1]) {\n  fetch %x\n}\n";
        let text = text.to_string() + &" ".repeat(n);
        let most = text.len() - n + 10;
        let made = Program::parse_within(&text, &Registry::new(), only(Limit::ProgramText, most));
        assert_eq!(limited(made, "length of the program text", most), beyond);
    }
}

#[test]
fn results() {
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [1]) + 1.0;
    let x = Tensor::full([1], 1.0f32).unwrap();
    let exe = Executor::builder().limits(only(Limit::Results, 5)).build();
    for (n, beyond) in around(5) {
        let fetches = vec![&y; n];
        assert_eq!(limited(exe.prepare(&p, fetches.iter().copied()), "number of results", 5), beyond);
        assert_eq!(limited(exe.run(&p, feeds! { "x" => &x }, fetches.iter().copied()), "results", 5), beyond);
        let mut into = vec![x.clone(); n];
        assert_eq!(limited(exe.run_into(&p, feeds! { "x" => &x }, fetches, &mut into), "results", 5), beyond);
    }
}

/// A chain of different ops that every back end compiles.
fn chain(ops: usize) -> (Program, Var) {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    let y = (0..ops).fold(x, |y, i| if i % 2 == 0 { y * (1.0 - i as f64 * 1e-3) } else { y + i as f64 * 0.1 });
    (p, y)
}

/// A kernel that exceeds the limit is split, into as few parts as possible.
#[test]
fn ops_of_a_kernel() {
    let t = Tensor::from_vec((0..1000).map(|i| i as f32 * 0.01 - 3.0).collect(), [1000]).unwrap();
    for (ops, kernels) in [(9, 1), (10, 1), (11, 2), (20, 2), (21, 3)] {
        let (p, y) = chain(ops);
        let exe = Executor::builder().limits(only(Limit::KernelOps, 10)).build();
        assert_eq!(exe.kernels(&p, [&y]).unwrap().matches("kernel {").count(), kernels, "{ops}");
        let made = exe.run(&p, feeds! { "x" => &t }, [&y]).unwrap();
        assert_eq!(exe.stats().kernels, kernels as u64);
        let right = Executor::new().run(&p, feeds! { "x" => &t }, [&y]).unwrap();
        assert_eq!(made[0].as_bytes(), right[0].as_bytes(), "{ops}");
    }
    // A reduction counts as an op of its kernel, or has its own kernel.
    for (ops, kernels) in [(8, 1), (9, 1), (10, 2)] {
        let (p, y) = chain(ops);
        let exe = Executor::builder().limits(only(Limit::KernelOps, 10)).build();
        assert_eq!(exe.kernels(&p, [&y.sum()]).unwrap().matches("kernel {").count(), kernels, "{ops}");
    }
}

/// A compiled function that exceeds the limit is split, but the kernel is not.
#[test]
fn steps_of_a_compiled_function() {
    let t = Tensor::from_vec((0..1000).map(|i| i as f32 * 0.01 - 3.0).collect(), [1000]).unwrap();
    for (most, steps, functions) in [
        (0, 10, 0),
        (1, 10, 10),
        (10, 9, 1),
        (10, 10, 1),
        (10, 11, 2),
        (192, 191, 1),
        (192, 192, 1),
        (192, 193, 2),
        (512, 511, 1),
        (512, 512, 1),
        (512, 513, 2),
    ] {
        let (p, y) = chain(steps);
        let exe = Executor::builder().limits(only(Limit::FunctionSteps, most)).build();
        let text = exe.dump(&p, [&y]).unwrap();
        assert_eq!(text.matches("kernel {").count(), 1);
        let right = Executor::builder().jit(false).build().run(&p, feeds! { "x" => &t }, [&y]).unwrap();
        let made = exe.run(&p, feeds! { "x" => &t }, [&y]).unwrap();
        assert_eq!(made[0].as_bytes(), right[0].as_bytes(), "{steps} of {most}");
        // These architectures have a code generator.
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            let counted = text.matches("elements an iteration").count() + text.matches("function u").count();
            assert_eq!((counted, exe.compiles()), (functions, u64::from(functions > 0)), "{steps} of {most}");
        }
    }
}

/// The longest functions that the limit allows, with more live values than any machine has registers, on a small stack.
#[test]
fn the_longest_functions_give_the_same_bits() {
    let t = Tensor::from_vec((0..700).map(|i| i as f32 * 0.01 - 3.0).collect(), [700]).unwrap();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    // Each value is live from its computation to the end.
    let all: Vec<Var> = (0..1200).map(|i| if i % 3 == 0 { &x * i } else { (&x + i).cast(DType::F64) * 0.1 }).collect();
    let y = all.iter().rev().fold(x, |sum, v| (sum + v).cast(DType::F32));
    let right = Executor::builder().jit(false).build().run(&p, feeds! { "x" => &t }, [&y]).unwrap();
    for most in [191, 192, 511, 512] {
        let exe = Executor::builder().threads(1).limits(only(Limit::FunctionSteps, most)).build();
        let (program, y, t) = (p.clone(), y.clone(), t.clone());
        let run = move || exe.run(&program, feeds! { "x" => t }, [&y]).unwrap();
        let made = std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
        assert_eq!(made[0].as_bytes(), right[0].as_bytes(), "{most}");
    }
}
