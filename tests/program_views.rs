//! Views inside of programs: every view of feeds, constants and computed values of every layout gives the elements that an
//! index by index model gives, in both modes, wherever it is used. Does not: test views of tensors (`tensor::view::tests`).

pub mod model;

mod random;

use castwise::prelude::*;
use castwise::{DiagnosticKind, Error, NodeKind, Slice, View};
use model::Array;

use crate::common::{self, Random, assert_same_bits, random_tensor};

/// The bytes of each element.
pub fn array(t: &Tensor) -> Array<Vec<u8>> {
    let rows = t.contiguous().unwrap();
    let size = t.dtype().size();
    Array { shape: t.shape().to_vec(), elements: rows.as_bytes().unwrap().chunks(size).map(<[u8]>::to_vec).collect() }
}

fn slice(dim: i64, start: impl Into<Option<i64>>, end: impl Into<Option<i64>>, step: i64) -> View {
    View::Slice(dim, Slice { start: start.into(), end: end.into(), step })
}

/// Views of values of any rank: some of them are refused.
fn views() -> Vec<View> {
    let mut all = Vec::new();
    for d in -4..=3 {
        all.extend([View::Unsqueeze(d), View::Squeeze(d), View::Flip([d].into())]);
        all.extend([slice(d, 1, None, 1), slice(d, None, -1, 2), slice(d, 5, 2, 1), slice(d, -2, 100, 1)]);
        all.extend((-4..=3).map(|e| View::Transpose(d, e)));
    }
    all.extend([slice(0, i64::MIN, i64::MAX, i64::MAX), slice(0, 1, 2, 0), slice(0, 0, 3, -1)]);
    let lists: [&[i64]; 26] = [
        &[],
        &[0],
        &[1],
        &[-1],
        &[0, 1],
        &[1, 0],
        &[-1, 0],
        &[1, -1],
        &[2, 0, 1],
        &[-1, -2, -3],
        &[0, 0, 1],
        &[3, 4],
        &[4, -1],
        &[-1, 3],
        &[2, -1, 3],
        &[2, 3, 4],
        &[-1, 3, -1],
        &[24],
        &[6, 2, 2],
        &[0, -1],
        &[1, 1],
        &[-2, 2],
        &[5, 3, 4],
        &[0, 3],
        &[2, 1, 2, 3],
        &[-1, -1, -1],
    ];
    for list in lists {
        let list = || list.into();
        all.extend([View::Permute(list()), View::Expand(list()), View::Flip(list()), View::Reshape(list())]);
    }
    all
}

/// Tensors of one dtype in every layout.
fn sources(d: DType, r: &mut Random) -> Vec<Tensor> {
    let mut make = |shape: &[usize]| random_tensor(d, shape, r, false);
    let table = make(&[3, 4]);
    vec![
        make(&[]),
        make(&[1]),
        make(&[4]),
        table.clone(),
        table.transpose(0, 1).unwrap(),
        make(&[9, 8]).slice(0, 1, 9, 3).unwrap().slice(1, 0, 8, 2).unwrap().flip(1).unwrap(),
        make(&[3, 1]).broadcast_to([2, 3, 4]).unwrap(),
        make(&[2, 3, 4]).permute(&[2, 0, 1]).unwrap().flip(0).unwrap(),
        make(&[1, 4]),
        make(&[0]),
        make(&[3, 0]),
    ]
}

/// An integer dtype of the same size.
fn bits(d: DType) -> Option<DType> {
    [DType::U8, DType::I16, DType::I32, DType::I64].into_iter().find(|i| i.size() == d.size())
}

/// What is made of a view, and values beside it.
fn uses<M: Mode>(x: &Var<M>, view: &View, d: DType) -> Vec<Var<M>> {
    let v = x.view(view.clone());
    let mut all = vec![v.clone(), v.unsqueeze(-1)];
    if let Some(bits) = bits(d) {
        let b = v.view_as(bits);
        // The sum over the first dim, also of a 0-d view.
        let folded = b.unsqueeze(0).over([0]).sum();
        all.extend([b.clone(), &b ^ &x.view_as(bits).view(view.clone()), b.sum(), &folded + &folded]);
        // The operand computed, and then viewed.
        let computed = x.view_as(bits).bitwise_not();
        all.extend([computed.view(view.clone()), computed.view(view.clone()).sum(), computed]);
    }
    all
}

#[test]
fn every_view_of_every_layout_is_the_models_in_both_modes() {
    let mut r = Random(7);
    let exe = Executor::builder().threads(1).jit(false).build();
    let (mut taken, mut refused) = (0, 0);
    for d in [DType::Bool, DType::F8E5M2, DType::F16, DType::F32, DType::I64, DType::C128] {
        for (k, t) in sources(d, &mut r).iter().enumerate() {
            for view in views() {
                let want = array(t).view(&view);
                let case = || format!("{view:?} of source {k}, {d}{:?}", t.shape());
                let eager = uses(&Eager::new(Rules::Torch).tensor(t), &view, d);
                let Some(want) = want else {
                    assert!(eager[0].result().is_err(), "{}", case());
                    let p = Program::new(Rules::Torch);
                    p.data("x", d, t.shape()).view(view.clone());
                    let (a, b) = (eager[0].result().unwrap_err(), p.check().unwrap_err());
                    assert_eq!(a.diagnostics()[0].message, b.diagnostics()[0].message);
                    refused += 1;
                    continue;
                };
                taken += 1;
                let eager: Vec<Tensor> = eager.iter().map(|v| v.result().unwrap()).collect();
                assert_eq!(array(&eager[0]), want, "{}", case());
                let mut got: Vec<Vec<Tensor>> = Vec::new();
                for fixed in [true, false] {
                    let p = Program::new(Rules::Torch);
                    let dims: Vec<Option<usize>> = t.shape().iter().map(|n| fixed.then_some(*n)).collect();
                    let fed = uses(&p.data("x", d, dims), &view, d);
                    let constant = uses(&p.constant(t.clone()), &view, d);
                    match p.infer() {
                        Ok(typed) => typed.verify().unwrap(),
                        Err(e) if fixed => panic!("{}: {e}", case()),
                        // What only the feeds tell.
                        Err(_) => continue,
                    }
                    got.push(exe.run(&p, feeds! { "x" => t }, &fed).unwrap());
                    got.push(exe.run(&p, feeds! { "x" => TensorView::from(t) }, &constant).unwrap());
                    let odd = t.contiguous().unwrap();
                    let bytes = odd.as_bytes().unwrap();
                    let copy = TensorView::from_bytes(d, t.shape(), bytes).unwrap();
                    got.push(exe.run(&p, feeds! { "x" => copy }, &fed).unwrap());
                }
                for out in got {
                    for (i, (e, s)) in eager.iter().zip(&out).enumerate() {
                        assert_same_bits(s, e, &|| format!("result {i} of {}", case()));
                    }
                }
            }
        }
    }
    println!("{taken} views, {refused} refusals");
    assert!(taken > 2000 && refused > 2000);
}

#[test]
fn a_view_keeps_dtype_and_weakness() {
    for rules in Rules::ALL {
        for d in DType::ALL.into_iter().filter(|d| common::has(*rules, *d)) {
            let p = Program::new(*rules);
            let x = p.weak_data("x", d, [2, 3]);
            let y = x.transpose(0, 1).flip([0]).slice(1, 0, 1, 1).squeeze(1).unsqueeze(0).expand([4, 3]).reshape([-1]);
            let typed = p.infer().unwrap();
            assert_eq!((typed.dtype(&y), typed.is_weak(&y)), (Some(d), typed.is_weak(&x)), "{rules} {d}");
            let e = Eager::new(*rules).weak_tensor(&Tensor::zeros(d, [2, 3]).unwrap());
            assert_eq!(e.transpose(0, 1).is_weak(), typed.is_weak(&y));
        }
    }
}

/// Nothing is copied: views of feeds are read where they are, whatever is done to them.
#[test]
fn views_of_feeds_and_constants_need_no_memory() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::F32, [64, 32]), p.constant(Tensor::full([32, 64], 2.0f32).unwrap()));
    let sum = (x.transpose(0, 1) * &y.flip([1]) + x.slice(0, 0, 1, 1).permute([1, 0]).expand([-1, 64])).over([1]).sum();
    let t = Tensor::full([64, 32], 0.5f32).unwrap();
    // The partial sums of 32 rows and the result.
    let exe = Executor::builder().threads(1).max_bytes(2 * 32 * 4).build();
    assert_eq!(exe.kernels(&p, [&sum]).unwrap().matches("kernel {").count(), 1);
    let out = exe.run(&p, feeds! { "x" => t }, [&sum]).unwrap();
    assert_eq!(out[0].to_vec::<f32>().unwrap(), [96.0; 32]);
}

#[test]
fn a_fetched_view_shares_a_feeds_storage_and_copies_borrowed_elements() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [2, 3]);
    let (y, z) = (x.transpose(0, 1), (&x + 1.0).flip([0]));
    let numbers: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let t = Tensor::from_slice(&numbers, [2, 3]).unwrap();
    let exe = Executor::new();
    let shared = exe.run(&p, feeds! { "x" => t }, [&y]).unwrap();
    assert_eq!((shared[0].shape(), shared[0].strides()), (&[3, 2][..], &[1, 3][..]));
    let view = TensorView::from_slice(&numbers, [2, 3]).unwrap();
    let copied = exe.run(&p, feeds! { "x" => view }, [&y, &z]).unwrap();
    assert!(copied[0].is_contiguous());
    assert_eq!(copied[0].to_vec::<f32>().unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(copied[1].to_vec::<f32>().unwrap(), [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
    // Into the caller's tensors, again and again: what is shared is never written.
    let w = &x + 1.0;
    let step = exe.prepare(&p, [&w, &w.transpose(0, 1), &y, &w.slice(0, 0, 1, 1), &w.expand([2, 2, 3])]).unwrap();
    let shapes: [&[usize]; 5] = [&[2, 3], &[3, 2], &[3, 2], &[1, 3], &[2, 2, 3]];
    let mut into = shapes.map(|s| Tensor::zeros(DType::F32, s).unwrap());
    for round in 0..4 {
        let t = Tensor::full([2, 3], round as f32).unwrap();
        let kept = into.clone();
        let before: Vec<Vec<f32>> = kept.iter().map(|t| t.to_vec().unwrap()).collect();
        step.run_into(&[&t], &mut into).unwrap();
        assert_eq!(kept.iter().map(|t| t.to_vec::<f32>().unwrap()).collect::<Vec<_>>(), before);
        drop(kept);
        step.run_into(&[&t], &mut into).unwrap();
        for (i, out) in into.iter().enumerate() {
            let want = round as f32 + if i == 2 { 0.0 } else { 1.0 };
            assert!(out.to_vec::<f32>().unwrap().iter().all(|v| *v == want), "round {round}, result {i}: {out:?}");
        }
    }
}

#[test]
fn dynamic_dims_stay_and_slices_of_them_are_new() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, ["n", "m"]);
    let (a, b) = (x.slice(0, 1, None, 1), x.slice(0, 0, -1, 1));
    let results = [
        &a - &b,
        x.transpose(0, 1).unsqueeze(0).flip([1]) * 2,
        x.slice(-1, -3, None, 2).over([1]).sum(),
        a.slice(0, None, None, 2).expand([2, -1, -1]).over([0, 2]).sum(),
        x.unsqueeze(1).reshape([-1]).sum(),
    ];
    let _ = &results;
    let refused = p.check().unwrap_err();
    assert!(refused.to_string().contains("`reshape` of i32[?0, 1, ?1]: the extents of [-1] depend on dynamic dims"));
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, ["n", "m"]);
    let results = |x: &Var| {
        [
            x.slice(0, 1, None, 1) - x.slice(0, 0, -1, 1),
            x.transpose(0, 1).unsqueeze(0).flip([1]) * 2,
            x.slice(-1, -3, None, 2).over([1]).sum(),
            x.slice(0, 1, None, 1).slice(0, None, None, 2).expand([2, -1, -1]).over([0, 2]).sum(),
            x.slice(0, 0, 2, 1) + x.slice(0, 0, 2, 1),
        ]
    };
    let all = results(&x);
    assert_eq!(p.infer().unwrap().shape(&all[4]).unwrap(), p.infer().unwrap().shape(&all[4]).unwrap());
    let exe = Executor::new();
    for (n, m) in [(5, 4), (1, 1), (2, 3), (0, 4), (7, 0), (5, 4)] {
        let t = Tensor::from_vec((0..(n * m) as i32).collect(), [n, m]).unwrap();
        let q = Program::new(Rules::Torch);
        let fixed = results(&q.data("x", DType::I32, [n, m]));
        let want = exe.run(&q, feeds! { "x" => t }, &fixed).unwrap();
        let got = exe.run(&p, feeds! { "x" => t }, &all).unwrap();
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            assert_same_bits(g, w, &|| format!("result {i} of {n} by {m}"));
        }
    }
    // Slices that do not fit each other are told when they are fed.
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, [None]);
    let y = x.slice(0, 1, None, 1) + x.slice(0, 0, 2, 1);
    let wrong = exe.run(&p, feeds! { "x" => Tensor::from([1i32, 2, 3, 4]) }, [&y]).unwrap_err().to_string();
    assert!(
        wrong.contains("cannot broadcast in `add` at axis 0: 3 (of a slice of 4) vs 2 (of a slice of 4)"),
        "{wrong}"
    );
    assert!(wrong.contains("tests/program_views.rs:"));
}

#[test]
fn a_dynamic_dim_is_expanded_where_it_is_one() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, [None, Some(2)]);
    let (wide, line) = (x.expand([3, 2]), line!());
    let (y, z) = (&wide + &x, wide.over([0]).sum());
    let exe = Executor::new();
    for (n, sum) in [(1, 3), (3, 6)] {
        let t = Tensor::from_vec((0..n as i32 * 2).collect(), [n, 2]).unwrap();
        let out = exe.run(&p, feeds! { "x" => t }, [&y, &wide, &z]).unwrap();
        assert_eq!((out[0].shape(), out[1].shape()), (&[3, 2][..], &[3, 2][..]));
        assert_eq!(out[2].to_vec::<i64>().unwrap()[1] - if n == 1 { 0 } else { 3 }, sum, "{n}");
    }
    let wrong = exe.run(&p, feeds! { "x" => Tensor::zeros(DType::I32, [2, 2]).unwrap() }, [&y]).unwrap_err();
    assert!(
        wrong.to_string().contains("cannot broadcast in `expand` at axis 0: 2 (axis 0 of feed `x`) vs 3"),
        "{wrong}"
    );
    assert!(wrong.to_string().contains(&format!("program_views.rs:{line}")), "{wrong}");
}

#[test]
fn mistakes_name_the_view_its_operand_and_the_line() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [Some(2), Some(3), None]);
    let wrong: [(View, DiagnosticKind, &str); 12] = [
        (View::Transpose(0, 3), DiagnosticKind::Axis, "dim 3 of a tensor with 3 dims"),
        (View::Permute([0, 1].into()), DiagnosticKind::Axis, "[0, 1] has 2 dims, the value has 3"),
        (View::Permute([0, 1, 1].into()), DiagnosticKind::Axis, "[0, 1, 1] names a dim twice"),
        (View::Unsqueeze(4), DiagnosticKind::Axis, "no new dim 4: it can be from -4 to 3"),
        (
            View::Squeeze(2),
            DiagnosticKind::BadParameter,
            "dim 2 is dynamic: only its feed tells whether its extent is 1",
        ),
        (View::Expand([2, 4, -1].into()), DiagnosticKind::Broadcast, "dim 1 of [2, 4, -1] is 4, the value has 3 there"),
        (View::Expand([-1, 2, 3, 4].into()), DiagnosticKind::BadParameter, "dim 0 of [-1, 2, 3, 4] is new"),
        (View::Expand([2, 3, 1].into()), DiagnosticKind::Broadcast, "is 1, the value has a dynamic dim there"),
        (slice(1, 0, 2, 0), DiagnosticKind::BadParameter, "the step 0 must be at least 1"),
        (View::Flip([0, -3].into()), DiagnosticKind::Axis, "[0, -3] names a dim twice"),
        (View::Reshape([7, -1].into()), DiagnosticKind::BadParameter, "the extents of [7, -1] depend on dynamic dims"),
        (View::Reshape([-1, -1].into()), DiagnosticKind::BadParameter, "[-1, -1] is no shape"),
    ];
    let line = line!() + 2;
    for (view, ..) in &wrong {
        x.view(view.clone());
    }
    let all = p.check().unwrap_err();
    let all = all.diagnostics();
    assert_eq!(all.len(), wrong.len());
    for (d, (view, kind, message)) in all.iter().zip(&wrong) {
        assert_eq!(d.kind, *kind, "{}", d.message);
        assert!(d.message.starts_with(&format!("`{}` of f32[2, 3, ?0]: ", view.name())), "{}", d.message);
        assert!(d.message.contains(message), "{}", d.message);
        assert!(d.location.to_string().contains(&format!("tests/program_views.rs:{line}")), "{}", d.location);
    }
    // Eager mode says the same, and so do sizes beyond the limit.
    let cx = Eager::new(Rules::Torch);
    let (y, line) = (cx.tensor(&Tensor::scalar(1.0f32)).expand([1 << 40, 1 << 40]), line!());
    let e = y.result().unwrap_err().to_string();
    assert!(
        e.starts_with("`expand` of f32[]: its result [1099511627776, 1099511627776]: ")
            && e.contains(&format!(":{line}")),
        "{e}"
    );
    let later = y.flip([0]).result().unwrap_err();
    assert!(matches!(later, Error::Earlier(_)) && later.to_string() == e);
}

#[test]
fn texts_and_copies_of_views_are_the_same() {
    let text = "castwise 1
program(rules = jax) (%x: f32*[2, n], %\"a b\": u8[3]) {
  %0 = transpose %x {dims = [0, -1]}
  %1 = permute %0 {dims = [1, 0]}
  %2 = unsqueeze %1 {dim = -1}
  %3 = squeeze %2 {dim = 2}
  %4 = expand %\"a b\" {shape = [4, -1]}
  %5 = slice %4 {dim = 0, start = 1, end = -1, step = 2}
  %6 = slice %3 {dim = 1, end = 1}
  %7 = flip %6 {dims = []}
  %8 = reshape %5 {shape = [-1]}
  %9 = constant i8[2] [1, 2]
  %10 = reshape %9 {shape = [1, 2, 1]}
  fetch %7 as \"f\", %8, %10
}
";
    let p: Program = text.parse().unwrap();
    assert_eq!(p.to_string(), text);
    let typed = p.infer().unwrap();
    assert!(typed.to_string().contains("%1: f32*[2, ?0] = permute %0 {dims = [1, 0]}"), "{typed}");
    for copy in [typed.rewrite(|n| n.copy()).unwrap(), typed.rewrite(|n| n.copy_explicit()).unwrap()] {
        assert_eq!(copy.program.to_string(), text);
        assert_eq!(copy.program.infer().unwrap().explain(), typed.explain());
    }
    let flips = typed.nodes().filter(|n| matches!(n.kind, NodeKind::View { view: Some(View::Flip(_)), from: _ }));
    assert_eq!(flips.count(), 1);
    for rules in Rules::ALL {
        assert!(castwise::compare(&p, Rules::Jax, *rules).is_empty());
    }
    for wrong in [
        "transpose %x {dims = [0]}",
        "transpose %x",
        "slice %x {start = 1}",
        "slice %x {dim = 1, dim = 1}",
        "flip %x {dim = 1}",
        "flip ~1 {dims = [0]}",
        "reshape %x, %x {shape = [0]}",
        "unsqueeze %x {dim = 99999999999999999999}",
    ] {
        let text = format!("castwise 1\nprogram(rules = torch) (%x: f32[2]) {{\n  %0 = {wrong}\n}}\n");
        let e = Program::parse(&text).unwrap_err();
        assert!(e.to_string().starts_with("line 3: "), "{e}");
    }
}

#[test]
fn long_chains_of_views_need_no_stack_and_no_square() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I32, [2, 3]);
    let (mut v, mut all) = (&x + 1, Vec::new());
    for i in 0..20_000 {
        v = if i % 2 == 0 { v.transpose(0, 1) } else { v.flip([0]) };
        all.push(&v + 1);
    }
    let t = Tensor::from_slice(&[1i32, 2, 3, 4, 5, 6], [2, 3]).unwrap();
    let fetches: Vec<&Var> = all.iter().skip(19_990).chain([&v]).collect();
    let out = Executor::builder().threads(1).jit(false).build().run(&p, feeds! { "x" => t }, fetches).unwrap();
    assert_eq!(out[10].to_vec::<i32>().unwrap().iter().sum::<i32>(), 27);
}

/// Limits on elements hold for views whose extents only the feeds tell.
#[test]
fn limits_hold_for_views() {
    let limits = castwise::Limits::new().with(castwise::Limit::Elements, 12).unwrap();
    let p = Program::with_limits(Rules::Torch, limits);
    let x = p.data("x", DType::F32, [None]);
    let y = x.expand([3, -1]);
    let run = |n: usize| Executor::new().run(&p, feeds! { "x" => Tensor::zeros(DType::F32, [n]).unwrap() }, [&y]);
    assert_eq!(run(4).unwrap()[0].shape(), [3, 4]);
    assert!(run(5).unwrap_err().to_string().contains("is 15, more than the limit of 12"));
    x.expand([13, -1]);
    assert!(p.check().unwrap_err().to_string().contains("`expand` of f32[?0]: its result [13, ?0]"));
}

/// A reduction over inner dims is not fused where a view of its operand is stored too.
#[test]
fn a_reduced_value_can_be_viewed() {
    let t = Tensor::from_vec((0..24).map(|i| i as f32).collect(), [2, 3, 4]).unwrap();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [2, 3, 4]);
    let y = &x * 2.0;
    let out = Executor::new().run(&p, feeds! { "x" => t }, [&y.over([0]).sum(), &y.transpose(0, 2)]).unwrap();
    let cx = Eager::new(Rules::Torch);
    let y = cx.tensor(&t) * 2.0;
    assert_same_bits(&out[0], &y.over([0]).sum().result().unwrap(), &|| "the sum".into());
    assert_same_bits(&out[1], &y.transpose(0, 2).result().unwrap(), &|| "the view".into());
}

/// A value that returns to the domain that it came from by a view.
#[test]
fn values_return_to_their_domain() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [3, 3]);
    let y = x.exp();
    let z = &y + &y.transpose(0, 1);
    let w = z.transpose(0, 1).sin() * &y + z.over([0]).sum();
    let column = (x.over([1]).keepdim().sum().reshape([1, 3]).exp().reshape([3, 1]) + &w).squeeze(0);
    let t = Tensor::from_vec((0..9).map(|i| i as f32 / 9.0).collect(), [3, 3]).unwrap();
    let cx = Eager::new(Rules::Torch);
    let (ex, ey) = (cx.tensor(&t), cx.tensor(&t).exp());
    let ez = &ey + &ey.transpose(0, 1);
    let ew = ez.transpose(0, 1).sin() * &ey + ez.over([0]).sum();
    let ecolumn = (ex.over([1]).keepdim().sum().reshape([1, 3]).exp().reshape([3, 1]) + &ew).squeeze(0);
    let out = Executor::new().run(&p, feeds! { "x" => t }, [&z, &w, &column, &y.transpose(0, 1)]).unwrap();
    for (i, e) in [&ez, &ew, &ecolumn, &ey.transpose(0, 1)].into_iter().enumerate() {
        assert_same_bits(&out[i], &e.result().unwrap(), &|| format!("result {i}"));
    }
}
