//! Invalid and unusual inputs that no other test has: texts, names, literals, shapes, dims, attributes. Each gives an
//! error that names the mistake, or the value stated here. None panics, hangs or allocates memory in vain.

use castwise::prelude::*;
use castwise::{Attrs, DiagnosticKind, Error};

/// The first mistake of a program as text.
fn refusal(body: &str) -> String {
    let text = format!("castwise 1\nprogram(rules = torch) (%x: f32[3], %i: i32[3]) {{\n{body}\n}}\n");
    let made = text.parse::<Program>().and_then(|p| p.check());
    made.expect_err(body).to_string().lines().next().unwrap_or_default().to_string()
}

#[test]
fn texts_name_what_comes_from_above() {
    for (body, expected) in [
        ("  %0 = add %0, %x", "no value `%0` above this line"),
        ("  %0 = add %1, %x\n  %1 = add %0, %x", "no value `%1` above this line"),
        ("  fetch %9", "no value `%9` above this line"),
        ("  %0 = add %x", "`add` takes 2 operands, not 1"),
        ("  %0 = add", "expected"),
        ("  %0 = neg %x, %x", "`neg` takes 1 operand, not 2"),
        ("  %0 = neg %x\r  %1 = neg %q", "expected the end of the line"),
    ] {
        let e = refusal(body);
        assert!(e.contains(expected), "{body}: {e}");
    }
    // A very large number of operands, in text and as a call.
    let many = format!("  %0 = add %x{}", ", %x".repeat(100_000));
    assert!(refusal(&many).contains("more than 4 operands"), "{}", refusal(&many).len());
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [3]);
    let e = p.expression(&format!("maximum(x{})", ", x".repeat(100_000))).expect_err("too many").to_string();
    assert!(e.len() < 1000 && e.contains("maximum"), "{e}");
    let all: Vec<castwise::Operand<castwise::Graph>> = (0..100_000).map(|_| (&x).into()).collect();
    let _ = castwise::apply(Op::Add, &all, Attrs::default());
    assert!(p.check().expect_err("too many").to_string().len() < 1000);
}

#[test]
fn any_name_is_a_name() {
    let long = "n".repeat(1 << 20);
    // Names that are keywords, that look alike, or that are not words.
    let names = ["sqrt", "constant", "fetch", "loss", "nan", "0", "", "\u{e9}", "e\u{301}", "\u{430}", "a", &long];
    let p = Program::new(Rules::Torch);
    let all: Vec<Var> = names.iter().map(|n| p.data(n, DType::F32, ())).collect();
    let sum = all.iter().skip(1).fold(all[0].clone(), |s, v| s + v);
    assert_eq!(p.feed_names(), names);
    let again: Program = p.to_string().parse().unwrap();
    assert_eq!(again.feed_names(), names);
    let feeds: Vec<(String, Tensor)> =
        names.iter().enumerate().map(|(i, n)| (n.to_string(), Tensor::scalar(2f32.powi(i as i32)))).collect();
    let made = Executor::new().run(&p, feeds.clone(), [&sum]).unwrap();
    assert_eq!(made[0].item::<f32>().unwrap(), 2f32.powi(names.len() as i32) - 1.0);
    // Messages truncate long names.
    let e = Executor::new().run(&p, feeds[..names.len() - 1].to_vec(), [&sum]).unwrap_err().to_string();
    assert!(e.len() < 1000 && e.contains("nnn…"), "{e}");
}

#[test]
fn literals_are_the_nearest_number_or_refused() {
    let exe = Executor::new();
    let value = |text: &str| -> Result<f64, String> {
        let p = Program::new(Rules::Torch);
        p.data("x", DType::F64, [1]);
        p.data("u", DType::U8, [1]);
        let y = p.expression(text).map_err(|e| e.to_string())?.cast(DType::F64);
        let feeds = feeds! { "x" => Tensor::from([0.0f64]), "u" => Tensor::from([0u8]) };
        exe.run(&p, feeds, [&y]).map_err(|e| e.to_string())?[0].to_vec::<f64>().map(|v| v[0]).map_err(|e| e.to_string())
    };
    for (text, expected) in [
        ("x + 1e-400", 0.0f64),
        ("x + 4.9406564584124654e-324", 5e-324),
        ("x + 1.00000000000000011102230246251565404236316680908203125", 1.0),
        ("x + 1.00000000000000011102230246251565404236316680908203126", 1.0000000000000002),
        ("x + 9223372036854775807", 9223372036854775807.0),
        // A scalar outside the range of u8 wraps, as in PyTorch.
        ("u + 300", 44.0),
        ("u - 1", 255.0),
    ] {
        assert_eq!(value(text).map(f64::to_bits), Ok(expected.to_bits()), "{text}");
    }
    let digits = "9".repeat(100_000);
    for text in [
        "x + 1e400",
        "x - 1e400",
        "x + 9223372036854775808",
        "x + 18446744073709551616",
        &format!("x + {digits}"),
        "x + 0x1p-1074",
    ] {
        let e = value(text).expect_err(text);
        assert!(e.len() < 1000, "{}", e.len());
    }
    assert_eq!(value(&format!("x + 0.{digits}")), Ok(1.0));
}

/// The error of a reduction in both modes.
fn faults(dims: &[i64], rank: usize) -> [Option<DiagnosticKind>; 2] {
    let attrs = Attrs::dims(dims);
    let shape = vec![2; rank];
    let p = Program::new(Rules::Torch);
    castwise::apply(Op::Sum, &[(&p.data("x", DType::F32, shape.clone())).into()], attrs.clone());
    let t = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, &shape).unwrap());
    let eager = castwise::apply(Op::Sum, &[(&t).into()], attrs).result().map(drop);
    [p.check(), eager].map(|made| made.err().and_then(|e| e.diagnostics().first().map(|d| d.kind)))
}

#[test]
fn dims_of_a_reduction_are_checked() {
    for dims in [&[2i64][..], &[-3], &[i64::MIN], &[i64::MAX], &[0, 0], &[0, -2], &[1, 0, 1]] {
        assert_eq!(faults(dims, 2), [Some(DiagnosticKind::Axis); 2], "{dims:?}");
    }
    for dims in [&[][..], &[1, 0], &[-1, -2], &[0]] {
        assert_eq!(faults(dims, 2), [None; 2], "{dims:?}");
    }
    // As in PyTorch, a 0-d tensor has one dim for reductions.
    assert_eq!(faults(&[], 0), [None; 2]);
    assert_eq!(faults(&[1], 0), [Some(DiagnosticKind::Axis); 2]);
}

#[test]
fn shapes_without_elements_or_without_end_broadcast_by_the_rule() {
    let add = |a: &[usize], b: &[usize]| {
        let p = Program::new(Rules::Torch);
        let y = p.data("a", DType::F32, a.to_vec()) + p.data("b", DType::F32, b.to_vec());
        let typed = p.infer()?;
        Ok::<_, Error>((0..typed.shape(&y).map_or(0, <[_]>::len)).count())
    };
    assert!(add(&[0], &[1]).is_ok() && add(&[0, 3], &[1, 3]).is_ok() && add(&[0], &[]).is_ok());
    assert!(add(&[3], &[0]).is_err() && add(&[0, 3], &[2, 3]).is_err());
    for axis in 0..3 {
        let mut b = [4, 5, 6];
        b[axis] = 7;
        let e = add(&[4, 5, 6], &b).unwrap_err().to_string();
        assert!(e.contains(&format!("axis {axis} is {} vs 7", 4 + axis)), "{e}");
    }
    // The operands are within the limit, but their result is not.
    let e = add(&[1 << 40, 1], &[1, 1 << 40]).unwrap_err().to_string();
    assert!(e.contains("limit"), "{e}");
    let line = Tensor::scalar(1.0f32).broadcast_to([1 << 40, 1]).unwrap();
    let p = Program::new(Rules::Torch);
    let y = p.data("a", DType::F32, [None, None]) + p.data("b", DType::F32, [None, None]);
    let made = Executor::new().run(&p, feeds! { "a" => &line, "b" => line.transpose(0, 1).unwrap() }, [&y]);
    assert!(matches!(made, Err(Error::Limit { .. })), "{made:?}");
    let none = Tensor::zeros(DType::F32, [1 << 30, 1, 0]).unwrap();
    let wide = Tensor::scalar(1.0f32).broadcast_to([1, 1 << 40, 1]).unwrap();
    let z = p.data("c", DType::F32, [None, None, None]) + p.data("d", DType::F32, [None, None, None]);
    let q = feeds! { "a" => Tensor::zeros(DType::F32, [1, 1]).unwrap(), "b" => Tensor::zeros(DType::F32, [1, 1]).unwrap(), "c" => &none, "d" => &wide };
    // A shape without elements is valid, however large the other extents are.
    let (sum, most) = (z.over([0, 1]).sum(), z.over([0, 1]).amax());
    let made = Executor::new().run(&p, q, [&sum, &most]).unwrap();
    assert_eq!((made[0].shape(), made[1].shape()), (&[0][..], &[0][..]));
    let cx = Eager::new(Rules::Torch);
    assert!((cx.tensor(&line) + cx.tensor(&line.transpose(0, 1).unwrap())).result().is_err());
}

#[test]
fn what_is_not_fetched_is_not_computed() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, [2]);
    let dead = x.floor_divide(0);
    let y = &x + 1;
    let exe = Executor::new();
    let feeds = || feeds! { "x" => Tensor::from([1i32, 2]) };
    assert_eq!(exe.run(&p, feeds(), [&y]).unwrap()[0].to_vec::<i32>().unwrap(), [2, 3]);
    assert!(matches!(exe.run(&p, feeds(), [&y, &dead]), Err(Error::DivisionByZero { .. })));
    // Two feeds that share memory and are fetched themselves.
    let t = Tensor::from([5i32, 7]);
    let q = Program::new(Rules::Torch);
    let (a, b) = (q.data("a", DType::I32, [2]), q.data("b", DType::I32, [2]));
    let out = exe.run(&q, feeds! { "a" => &t, "b" => t.flip(0).unwrap() }, [&a, &(&a - &b), &b]).unwrap();
    let all: Vec<Vec<i32>> = out.iter().map(|t| t.to_vec().unwrap()).collect();
    assert_eq!(all, [[5, 7], [-2, 2], [7, 5]]);
}

#[test]
fn executors_take_any_settings() {
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [None]).exp() + 1.0;
    let t = Tensor::zeros(DType::F32, [300_000]).unwrap();
    for threads in [0, 1, 10_000, 1 << 61, usize::MAX] {
        for (cache, pool, tile) in [(0, 0, 0), (usize::MAX, usize::MAX, usize::MAX)] {
            let exe = Executor::builder().threads(threads).cache(cache).pool(pool).tile(tile).build();
            assert_eq!(exe.run(&p, feeds! { "x" => &t }, [&y]).unwrap()[0].to_vec::<f32>().unwrap(), [2.0; 300_000]);
        }
    }
}

/// Runs `work` on a stack that is too small for recursion over a program.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap();
}

const WIDE: usize = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };

/// A large number of placeholders and constants, and a tree of sums over all of them.
#[test]
fn a_million_operands_need_no_recursion() {
    on_a_small_stack(|| {
        let p = Program::new(Rules::Torch);
        let one = Tensor::scalar(1.0f32);
        let leaf = |i| if i % 2 == 0 { p.data(&format!("x{i}"), DType::F32, ()) } else { p.constant(one.clone()) };
        let mut all: Vec<Var> = (0..WIDE).map(leaf).collect();
        while all.len() > 1 {
            all = all.chunks(2).map(|pair| pair.iter().skip(1).fold(pair[0].clone(), |a, b| a + b)).collect();
        }
        let feeds: Vec<(String, Tensor)> = p.feed_names().into_iter().map(|name| (name, one.clone())).collect();
        let out = Executor::builder().threads(1).build().run(&p, feeds, &all).unwrap();
        assert_eq!(out[0].item::<f32>().unwrap(), WIDE as f32);
    });
}

/// One value with a large number of users, which are all fetched, into new memory and into the caller's.
#[test]
fn a_million_results_need_no_recursion() {
    on_a_small_stack(|| {
        let p = Program::new(Rules::Torch);
        let hub = p.data("hub", DType::F32, ());
        let all: Vec<Var> = (0..WIDE).map(|i| &hub + i as i64).collect();
        let one = Tensor::scalar(1.0f32);
        let exe = Executor::builder().threads(1).build();
        let step = exe.prepare(&p, &all).unwrap();
        let mut out = step.run(&[&one]).unwrap();
        assert_eq!((out.len(), out[WIDE - 1].item::<f32>().unwrap()), (WIDE, WIDE as f32));
        step.run_into(&[&Tensor::scalar(2.0f32)], &mut out).unwrap();
        assert_eq!(out[WIDE - 1].item::<f32>().unwrap(), WIDE as f32 + 1.0);
    });
}

#[test]
fn wide_programs_need_no_recursion() {
    let n = if cfg!(debug_assertions) { 20_000 } else { 200_000 };
    on_a_small_stack(move || {
        let p = Program::new(Rules::Torch);
        // A large number of placeholders and constants, the sum of all, and one node that all others use; then the same
        // as text.
        let one = Tensor::scalar(1.0f32);
        let hub = p.data("hub", DType::F32, ()) * 2.0;
        let sum = (0..n).fold(hub.clone(), |s, i| {
            let x = if i % 2 == 0 { p.data(&format!("x{i}"), DType::F32, ()) } else { p.constant(one.clone()) };
            s + x * &hub
        });
        let typed = p.infer().unwrap();
        typed.verify().unwrap();
        let text = p.to_string();
        let again: Program = text.parse().unwrap();
        assert_eq!(again.len(), p.len());
        let names: Vec<String> = p.feed_names();
        let feeds: Vec<(String, Tensor)> = names.into_iter().map(|name| (name, one.clone())).collect();
        let out = Executor::builder().threads(1).build().run(&p, feeds, [&sum]).unwrap();
        assert_eq!(out[0].item::<f32>().unwrap(), 2.0 * n as f32 + 2.0);
    });
}
