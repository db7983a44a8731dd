//! Gradients of programs: rules against finite differences, the order in which contributions are added, where casts stand, gradients of
//! gradients, dynamic dims, refusals, and large programs.

use castwise::prelude::*;
use castwise::{DiagnosticKind, NodeKind, Operand, Over, View};

fn numbers(shape: &[usize], from: f64, to: f64, seed: usize) -> Tensor {
    let n: usize = shape.iter().product();
    let part = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 1201) as f64 / 1201.0;
    Tensor::from_slice(&(0..n).map(|i| from + (to - from) * part(i)).collect::<Vec<_>>(), shape).unwrap()
}

fn run(p: &Program, feeds: &[(&str, Tensor)], of: &[&Var]) -> Vec<Tensor> {
    Executor::new().run(p, Feeds::from(feeds.to_vec()), of.iter().copied()).unwrap()
}

/// A function of some values, as a loss: the sum of its elements, each with another weight.
struct Loss {
    program: Program,
    loss: Var,
    operands: Vec<Var>,
    feeds: Vec<Tensor>,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

impl Loss {
    fn of(feeds: Vec<Tensor>, f: impl Fn(&[Var]) -> Var) -> Loss {
        let program = Program::new(Rules::Torch);
        let data = |(t, name): (&Tensor, &&str)| program.data(name, t.dtype(), t.shape());
        let operands: Vec<Var> = feeds.iter().zip(&NAMES).map(data).collect();
        let y = f(&operands);
        let weight = y.linspace(0.5, 1.5, -1);
        let loss = if program.infer().unwrap().shape(&y).unwrap().is_empty() { y } else { (y * weight).sum() };
        Loss { program, loss, operands, feeds }
    }

    fn at(&self, feeds: &[Tensor], of: &[&Var]) -> Vec<Tensor> {
        let named: Vec<(&str, Tensor)> = NAMES.into_iter().zip(feeds.iter().cloned()).collect();
        run(&self.program, &named, of)
    }

    fn value(&self, feeds: &[Tensor]) -> f64 {
        self.at(feeds, &[&self.loss])[0].item::<f64>().unwrap()
    }

    /// Compares gradients with central differences.
    fn check(&self, what: &str) {
        let wrt: Vec<&Var> = self.operands.iter().collect();
        let gradients = self.program.gradients(&[&self.loss], &wrt, &[]).unwrap();
        let got = self.at(&self.feeds, &gradients.iter().collect::<Vec<_>>());
        for (k, t) in self.feeds.iter().enumerate() {
            let (x, g) = (t.to_vec::<f64>().unwrap(), got[k].to_vec::<f64>().unwrap());
            assert_eq!(got[k].shape(), t.shape());
            for i in 0..x.len() {
                let h = 1e-6;
                let shifted = |by: f64| {
                    let mut moved = x.clone();
                    moved[i] += by;
                    let mut feeds = self.feeds.clone();
                    feeds[k] = Tensor::from_slice(&moved, t.shape()).unwrap();
                    self.value(&feeds)
                };
                let want = (shifted(h) - shifted(-h)) / (2.0 * h);
                let near = (g[i] - want).abs() <= 1e-6 * (1.0 + want.abs());
                assert!(near, "{what}: operand {k}, element {i} at {}: {}, not {want}\n{}", x[i], g[i], self.program);
            }
        }
    }
}

/// The operands of an op, in numbers that it has a derivative at.
fn points(op: Op) -> Vec<Tensor> {
    let from = match op.name() {
        "acosh" => 1.2,
        _ => 0.2,
    };
    (0..op.arity()).map(|k| numbers(&[2, 3], from, from + 0.7, k * 31 + 7)).collect()
}

#[test]
fn rules_agree_with_finite_differences() {
    let mut without = Vec::new();
    for op in Op::ALL.iter().copied() {
        let p = Program::new(Rules::Torch);
        let of: Vec<Var> = NAMES.iter().map(|n| p.data(n, DType::F64, [2, 3])).collect();
        let operand = |(k, v): (usize, &Var)| match op.def().operands[k] {
            "delta" | "beta" | "alpha" | "value" => Operand::from(0.45),
            "condition" => v.gt(0.5).into(),
            _ => Operand::from(v),
        };
        if op.has_dims() || matches!(op, Op::Cast | Op::ViewAs) {
            continue;
        }
        let apply = |of: &[Var]| {
            let operands: Vec<Operand> = of.iter().take(op.arity()).enumerate().map(operand).collect();
            castwise::apply(op, &operands, Default::default())
        };
        let y = apply(&of);
        let Ok(typed) = p.infer() else { continue };
        if typed.dtype(&y).is_none_or(|d| d != DType::F64) {
            continue;
        }
        if p.gradients(&[&y.sum()], &of.iter().take(op.arity()).collect::<Vec<_>>(), &[]).is_err() {
            without.push(op.name());
            continue;
        }
        Loss::of(points(op), apply).check(op.name());
    }
    assert_eq!(without, Vec::<&str>::new(), "elementwise ops without gradients");
}

#[test]
fn reductions_agree_with_finite_differences() {
    type Reduction = fn(&Over) -> Var;
    let all: [(&str, Reduction); 15] = [
        ("sum", |x| x.sum()),
        ("mean", |x| x.mean()),
        ("prod", |x| x.prod()),
        ("amax", |x| x.amax()),
        ("amin", |x| x.amin()),
        ("var", |x| x.var()),
        ("std", |x| x.std()),
        ("norm", |x| x.norm()),
        ("nansum", |x| x.nansum()),
        ("nanmean", |x| x.nanmean()),
        ("logsumexp", |x| x.logsumexp()),
        ("norm 1", |x| x.norm()),
        ("norm 3", |x| x.norm()),
        ("norm inf", |x| x.norm()),
        ("sum kept", |x| x.sum()),
    ];
    for (name, f) in all {
        for dims in [vec![0], vec![1], vec![-1, 0], vec![]] {
            let over = |x: &Var| {
                let over = x.over(&dims);
                match name {
                    "norm 1" => over.p(1.0),
                    "norm 3" => over.p(3.0),
                    "norm inf" => over.p(f64::INFINITY).keepdim(),
                    "sum kept" | "mean" | "var" => over.keepdim(),
                    _ => over,
                }
            };
            if dims.is_empty() && ["var", "std"].contains(&name) {
                continue;
            }
            Loss::of(vec![numbers(&[3, 4], -1.0, 2.0, 3)], |x| f(&over(&x[0]))).check(&format!("{name} over {dims:?}"));
        }
    }
    Loss::of(vec![numbers(&[3, 4], -1.0, 2.0, 3)], |x| x[0].over([1]).cumsum()).check("cumsum");
}

#[test]
fn views_and_composites_agree_with_finite_differences() {
    let x = || vec![numbers(&[2, 3], 0.3, 1.4, 5), numbers(&[3], 0.2, 0.9, 8)];
    let views = [
        View::Transpose(0, 1),
        View::Permute([1, 0].into()),
        View::Unsqueeze(-2),
        View::Squeeze(0),
        View::Flip([1].into()),
        View::Reshape([3, -1].into()),
        View::Expand([4, 2, 3].into()),
    ];
    for view in views {
        Loss::of(x(), |v| v[0].exp().view(view.clone()).sin() + v[1].sum()).check(view.name());
    }
    Loss::of(x(), |v| (&v[0] * &v[1]).softmax([-1])).check("softmax");
    Loss::of(x(), |v| (&v[0] * &v[1]).log_softmax([0])).check("log_softmax");
    Loss::of(x(), |v| v[0].layer_norm([-1], Some(&v[1]), None, 1e-5)).check("layer_norm");
    Loss::of(x(), |v| v[0].sum_to(&v[1]).square() * &v[1]).check("sum_to");
    Loss::of(x(), |v| v[1].square().expand_like(&v[0]) * &v[0]).check("expand_like");
    Loss::of(x(), |v| v[0].fma(&v[1], &v[0]) - v[0].complex(&v[0].square()).abs()).check("fma, complex");
}

#[test]
fn gradients_have_gradients() {
    let x = || vec![numbers(&[2, 3], 0.3, 1.4, 5), numbers(&[3], 0.2, 0.9, 8)];
    let first = |v: &[Var]| {
        let loss = (v[0].exp() * &v[1] + (&v[0] / &v[1]).tanh() + v[0].pow(&v[1])).sum() + v[0].mean() * v[1].prod();
        let p = Program::clone(&PROGRAM.with(|p| p.borrow().clone()).unwrap());
        let g = p.gradients(&[&loss], &[&v[0], &v[1]], &[]).unwrap();
        g[0].square() + &g[1]
    };
    Loss::within(x(), first).check("gradients of gradients");
}

thread_local! {
    static PROGRAM: std::cell::RefCell<Option<Program>> = const { std::cell::RefCell::new(None) };
}

impl Loss {
    /// As [`of`](Loss::of), for functions that need the program.
    fn within(feeds: Vec<Tensor>, f: impl Fn(&[Var]) -> Var) -> Loss {
        let program = Program::new(Rules::Torch);
        PROGRAM.with(|p| *p.borrow_mut() = Some(program.clone()));
        let data = |(t, name): (&Tensor, &&str)| program.data(name, t.dtype(), t.shape());
        let operands: Vec<Var> = feeds.iter().zip(&NAMES).map(data).collect();
        let loss = f(&operands).sum();
        Loss { program, loss, operands, feeds }
    }
}

/// Contributions are added from the last use to the first, and of one use from left to right.
#[test]
fn contributions_are_added_from_the_last_use_to_the_first() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, ());
    let uses = [&x * 1.0, &x * 2.0, &x * 3.0, &x * 4.0];
    let loss = uses[0].clone() + &uses[1] + &uses[2] + &uses[3];
    let g = p.gradients(&[&loss], &[&x], &[]).unwrap();
    let typed = p.infer().unwrap();
    let nodes: Vec<_> = typed.nodes().collect();
    // The scalars that the gradient is made of, outermost first.
    let (mut at, mut order) = (typed.position(&g[0]).unwrap(), Vec::new());
    let factor = |i: usize| match &nodes[i].kind {
        NodeKind::Apply { op: Op::Mul, operands, .. } => match operands[1] {
            castwise::NodeOperand::Scalar(Scalar::Float(v), _) => v,
            _ => 0.0,
        },
        _ => 0.0,
    };
    while let NodeKind::Apply { op: Op::Add, .. } = nodes[at].kind {
        let inputs = nodes[at].kind.inputs();
        order.push(factor(inputs[1]));
        at = inputs[0];
    }
    order.push(factor(at));
    assert_eq!(order, [1.0, 2.0, 3.0, 4.0], "{p}");
}

/// A gradient is summed in the dtype of the op, and converted to the operand's afterwards.
#[test]
fn sums_come_before_casts() {
    let p = Program::new(Rules::Torch);
    let (x, w) = (p.data("x", DType::F32, [3]), p.data("w", DType::BF16, [1]));
    let g = p.gradients(&[&(&x * &w).sum()], &[&w], &[]).unwrap();
    // Each summand alone would round to 1.
    let x = Tensor::from([1.0f32 + 1.0 / 256.0, 1.0 + 1.0 / 256.0, 0.0]);
    let got = run(&p, &[("x", x), ("w", Tensor::from([bf16::ONE]))], &[&g[0]]);
    assert_eq!((got[0].shape(), got[0].to_vec::<bf16>().unwrap()), (&[1][..], vec![bf16::from_f32(2.0078125)]));
}

#[test]
fn dims_that_turn_out_to_be_one_are_summed() {
    let p = Program::new(Rules::Torch);
    let (x, b) = (p.data("x", DType::F64, [None, None]), p.data("b", DType::F64, [None, None]));
    let loss = ((&x + &b).exp() * &x).mean();
    let g = p.gradients(&[&loss], &[&x, &b], &[]).unwrap();
    for (rows, columns) in [(1, 1), (3, 1), (1, 4), (3, 4)] {
        let feeds = [("x", numbers(&[3, 4], 0.1, 1.0, 1)), ("b", numbers(&[rows, columns], 0.1, 1.0, 2))];
        let got = run(&p, &feeds, &[&g[0], &g[1]]);
        let q = Program::new(Rules::Torch);
        let (x, b) = (q.data("x", DType::F64, [3, 4]), q.data("b", DType::F64, [rows, columns]));
        let loss = ((&x + &b).exp() * &x).mean();
        let h = q.gradients(&[&loss], &[&x, &b], &[]).unwrap();
        let want = run(&q, &feeds, &[&h[0], &h[1]]);
        for (g, w) in got.iter().zip(&want) {
            assert_eq!((g.shape(), g.as_bytes()), (w.shape(), w.as_bytes()), "{rows} {columns}\n{p}");
        }
    }
}

#[test]
fn what_no_loss_depends_on_has_zeros() {
    let p = Program::new(Rules::Torch);
    let (x, y) = (p.data("x", DType::F32, [2]), p.data("y", DType::C64, [None]));
    let g = p.gradients(&[&x.sum()], &[&y, &x], &[]).unwrap();
    let y = Tensor::from([Complex::new(1.0f32, 2.0)]);
    let got = run(&p, &[("x", Tensor::from([1.0f32, 2.0])), ("y", y)], &[&g[0], &g[1]]);
    assert_eq!(got[0].to_vec::<Complex<f32>>().unwrap(), [Complex::new(0.0, 0.0)]);
    assert_eq!(got[1].to_vec::<f32>().unwrap(), [1.0, 1.0]);
}

#[test]
fn refusals_have_the_users_line() {
    let p = Program::new(Rules::Torch);
    let (x, i) = (p.data("x", DType::F32, [3]), p.data("i", DType::I32, [3]));
    let line = line!() + 1;
    let median = x.median();
    let kind = |e: castwise::Error| (e.diagnostics()[0].kind, e.to_string());
    let (found, text) = kind(p.gradients(&[&median], &[&x], &[]).unwrap_err());
    assert_eq!(found, DiagnosticKind::NotDifferentiable);
    assert!(text.contains("`median` has no gradient") && text.contains(&format!("gradients.rs:{line}")), "{text}");
    let refused = [
        p.gradients(&[&x.sum()], &[&i], &[]),
        p.gradients(&[&i.sum()], &[&x], &[]),
        p.gradients(&[&x.gt(0.0)], &[&x], &[]),
        p.gradients(&[&x], &[&x], &[]),
        p.gradients(&[&x.view_as(DType::BF16.op_math()).sum()], &[&x], &[]),
    ];
    for e in refused {
        assert_eq!(kind(e.unwrap_err()).0, DiagnosticKind::NotDifferentiable);
    }
    let other = Program::new(Rules::Torch).data("x", DType::F32, ());
    assert_eq!(kind(p.gradients(&[&other], &[&x], &[]).unwrap_err()).0, DiagnosticKind::ForeignVar);
    assert_eq!(kind(p.gradients(&[&x.exp()], &[&x], &[Some(&median)]).unwrap_err()).0, DiagnosticKind::Broadcast);
    assert_eq!(kind(p.gradients(&[&x.exp()], &[&x], &[None, None]).unwrap_err()).0, DiagnosticKind::BadParameter);
}

#[test]
fn long_chains_need_no_recursion() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, ());
    let mut y = x.clone();
    for _ in 0..200_000 {
        y = y * 1.0 + 0.5;
    }
    let g = p.gradients(&[&y], &[&x], &[]).unwrap();
    assert!(p.infer().unwrap().dtype(&g[0]) == Some(DType::F32) && p.len() > 600_000);
}

/// Every rule set has the ops of the rules.
#[test]
fn gradients_are_typed_under_every_rule_set() {
    for rules in Rules::ALL {
        for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let p = Program::new(*rules);
            let (x, y) = (p.data("x", d, [2, 3]), p.data("y", d, [3]));
            if p.infer().is_err() {
                continue;
            }
            let loss = (x.tanh() * &y + x.maximum(&y) + (&x / &y)).mean() + x.over([0]).amax().sum() + x.pow(2.0).sum();
            let g = p.gradients(&[&loss], &[&x, &y], &[]).unwrap();
            let typed = p.infer().unwrap();
            assert_eq!((typed.dtype(&g[0]), typed.dtype(&g[1])), (Some(d), Some(d)), "{rules:?} {d}\n{typed}");
        }
    }
}

/// A simple generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }
}

/// A random program of float values of several dtypes and shapes, and its values.
fn random_program(r: &mut Random, dynamic: bool) -> (Program, Vec<Var>, Vec<(String, Tensor)>) {
    let p = Program::new(Rules::Torch);
    let (mut values, mut feeds) = (Vec::new(), Vec::new());
    let shapes: [&[usize]; 5] = [&[2, 3], &[3], &[1, 3], &[2, 1], &[]];
    for i in 0..3 {
        let d = [DType::F32, DType::F64, DType::BF16, DType::F16][r.below(4)];
        let shape = shapes[r.below(5)];
        let t = Eager::new(Rules::Torch).tensor(&numbers(shape, -1.5, 1.5, i + r.below(100))).cast(d).result().unwrap();
        let dims: Vec<Option<usize>> = shape.iter().map(|n| (!dynamic).then_some(*n)).collect();
        values.push(p.data(&format!("x{i}"), d, dims));
        feeds.push((format!("x{i}"), t));
    }
    let ops: Vec<Op> = Op::ALL
        .iter()
        .copied()
        .filter(|op| !op.has_dims() && op.arity() < 4 && !matches!(op, Op::Cast | Op::ViewAs | Op::Assign))
        .collect();
    for _ in 0..2 + r.below(10) {
        let pick = |r: &mut Random| values[r.below(values.len())].clone();
        let made = match r.below(8) {
            0 => pick(r).over([-1]).keepdim().mean(),
            1 => [pick(r).sum(), pick(r).amax(), pick(r).logsumexp()][r.below(3)].clone(),
            2 => pick(r).cast([DType::F32, DType::BF16, DType::F64][r.below(3)]),
            3 => &pick(r) * &pick(r),
            4 => pick(r).softmax([-1]),
            _ => {
                let op = ops[r.below(ops.len())];
                let operands: Vec<Operand> = (0..op.arity())
                    .map(|k| if k > 0 && r.below(4) == 0 { Operand::from(0.75) } else { pick(r).into() })
                    .collect();
                castwise::apply(op, &operands, Default::default())
            }
        };
        // What is refused is left out: nothing else uses it.
        let copy = p.infer();
        match copy {
            Ok(typed) if typed.dtype(&made).is_some_and(|d| d.is_float()) => values.push(made),
            Ok(_) => {}
            Err(_) => return random_program(r, dynamic),
        }
    }
    (p, values, feeds)
}

/// Compiled, and op by op: the same bits.
#[test]
fn random_programs_have_the_same_gradients_in_both_ways() {
    let programs = std::env::var("CASTWISE_GRADIENT_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let (mut compared, mut r) = (0, Random(7));
    let unfused = Executor::builder().jit(false).threads(1);
    let unfused = unfused.without(castwise::Pass::Fusion).without(castwise::Pass::Merging).build();
    let fused = Executor::builder().threads(1).build();
    for i in 0..programs {
        let (p, values, feeds) = random_program(&mut r, i % 2 == 0);
        let loss = values.last().unwrap();
        let cotangent = loss.full_like(0.7, None);
        let wrt: Vec<&Var> = values[..3].iter().collect();
        let Ok(gradients) = p.gradients(&[loss], &wrt, &[Some(&cotangent)]) else { continue };
        let named: Vec<(&str, Tensor)> = feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let both = [&fused, &unfused].map(|e| e.run(&p, Feeds::from(named.clone()), &gradients));
        match both {
            [Ok(one), Ok(two)] => {
                for (k, (a, b)) in one.iter().zip(&two).enumerate() {
                    assert_eq!((a.dtype(), a.shape()), (feeds[k].1.dtype(), feeds[k].1.shape()), "{p}");
                    assert_eq!(a.as_bytes(), b.as_bytes(), "program {i}, gradient {k}: {a:?} {b:?}\n{p}");
                }
                compared += 1;
            }
            [one, two] => assert_eq!(one.is_err(), two.is_err(), "{one:?} {two:?}\n{p}"),
        }
    }
    assert!(compared > programs / 2, "{compared} of {programs}");
}

/// PyTorch gives no gradient where the norm is NaN: no element is the largest.
#[test]
fn a_largest_norm_that_is_nan_has_no_gradient() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [3]);
    for order in [f64::INFINITY, f64::NEG_INFINITY] {
        let g = p.gradients(&[&x.over([0]).p(order).norm()], &[&x], &[]).unwrap();
        let feeds = [("x", Tensor::from([0.0f32, 1.0, f32::NAN]))];
        assert_eq!(run(&p, &feeds, &[&g[0]])[0].to_vec::<f32>().unwrap(), [0.0; 3], "{order}");
    }
}
