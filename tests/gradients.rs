//! Gradients of programs: rules against finite differences, the order in which contributions are added, where casts stand, gradients of
//! gradients, dynamic dims, refusals, and large programs.

use castwise::ops::Choice;
use castwise::prelude::*;
use castwise::{DiagnosticKind, NodeKind, Operand, Over, Pass, View};

fn numbers(shape: &[usize], from: f64, to: f64, seed: usize) -> Tensor {
    let n: usize = shape.iter().product();
    let part = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 1201) as f64 / 1201.0;
    Tensor::from_slice(&(0..n).map(|i| from + (to - from) * part(i)).collect::<Vec<_>>(), shape).unwrap()
}

pub(crate) fn run(p: &Program, feeds: &[(&str, Tensor)], of: &[&Var]) -> Vec<Tensor> {
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
        Loss::within(feeds, |_, v| f(v))
    }

    /// As [`of`](Loss::of), for functions that need the program.
    fn within(feeds: Vec<Tensor>, f: impl Fn(&Program, &[Var]) -> Var) -> Loss {
        let program = Program::new(Rules::Torch);
        let data = |(t, name): (&Tensor, &&str)| program.data(name, t.dtype(), t.shape());
        let operands: Vec<Var> = feeds.iter().zip(&NAMES).map(data).collect();
        let y = f(&program, &operands);
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
fn what_depends_on_order_agrees_with_finite_differences() {
    type Ordered = fn(Over) -> Var;
    let all: [(&str, Ordered); 19] = [
        ("cumprod", |x| x.cumprod()),
        ("cummax", |x| x.cummax()),
        ("cummin", |x| x.cummin()),
        ("logcumsumexp", |x| x.logcumsumexp()),
        ("sort", |x| x.sort()),
        ("sort descending", |x| x.descending(true).sort()),
        ("topk", |x| x.k(2).topk()),
        ("topk smallest", |x| x.k(2).largest(false).topk()),
        ("kthvalue", |x| x.k(2).kthvalue()),
        ("median", |x| x.median()),
        ("median kept", |x| x.keepdim().median()),
        ("nanmedian", |x| x.nanmedian()),
        ("median between", |x| x.interpolation(Choice::Midpoint).median()),
        ("quantile", |x| x.q(0.3).quantile()),
        ("quantile lower", |x| x.q(0.3).interpolation(Choice::Lower).quantile()),
        ("quantile higher", |x| x.keepdim().q(0.3).interpolation(Choice::Higher).quantile()),
        ("quantile nearest", |x| x.q(0.3).interpolation(Choice::Nearest).quantile()),
        ("quantile nearest_down", |x| x.q(0.3).interpolation(Choice::NearestDown).quantile()),
        ("nanquantile", |x| x.q(0.8).nanquantile()),
    ];
    for (name, f) in all {
        for dim in [0, -1] {
            Loss::of(vec![numbers(&[3, 4], -1.0, 2.0, 3)], |x| f(x[0].over([dim])))
                .check(&format!("{name} along {dim}"));
        }
    }
    let whole = || vec![numbers(&[3, 4], -1.0, 2.0, 3)];
    Loss::of(whole(), |x| x[0].median()).check("median of all");
    Loss::of(whole(), |x| x[0].over([0, 1]).q(0.3).quantile()).check("quantile of all");
    let cube = || vec![numbers(&[2, 3, 4], -1.0, 2.0, 3)];
    Loss::of(cube(), |x| x[0].over([0, 1, 2]).k(3).kthvalue()).check("kthvalue of all");
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F64, [2, 3, 4]);
    let two = || x.over([0, 2]);
    for (name, y) in
        [("kthvalue", two().k(3).kthvalue()), ("quantile", two().q(0.3).quantile()), ("median", two().median())]
    {
        let e = p.gradients(&[&y.sum()], &[&x], &[]).unwrap_err();
        assert!(e.to_string().contains(&format!("`{name}` has a gradient over one dim")), "{e}");
    }
    assert!(p.infer().is_ok(), "a refusal leaves no mistake");
}

#[test]
fn what_is_moved_agrees_with_finite_differences() {
    let x = || vec![numbers(&[3, 4], -1.0, 2.0, 3)];
    let index = Tensor::from_slice(&[2i64, 0, -1, 1, 1], [1, 5]).unwrap();
    for rows in [1, 3] {
        let index = index.broadcast_to([rows, 5]).unwrap();
        Loss::within(x(), |p, v| v[0].square().take_along_dim(&p.constant(index.clone()), 1)).check("take_along_dim");
    }
    let index = Tensor::from_slice(&[4i64, 0, -2, 0], [1, 4]).unwrap();
    let like = Tensor::zeros(DType::I8, [1, 6]).unwrap();
    let moved = |p: &Program, v: &[Var]| {
        v[0].square().scatter_add(&p.constant(index.clone()), &p.constant(like.clone()), 1).sin()
    };
    Loss::within(x(), moved).check("scatter_add");
    let like = Tensor::zeros(DType::I8, [3, 9]).unwrap();
    for (start, step) in [(0, 1), (1, 2), (-4, 1), (-20, 2)] {
        Loss::within(x(), |p, v| v[0].square().pad(&p.constant(like.clone()), 1, start, step).sin()).check("pad");
    }
    for (dim, start, end, step) in
        [(0, Some(1), None, 1), (1, Some(-3), Some(-1), 1), (1, None, None, 3), (0, Some(7), None, 1)]
    {
        Loss::of(x(), |v| v[0].square().slice(dim, start, end, step).sin()).check("slice");
    }
    let all = Tensor::zeros(DType::I8, [5, 7]).unwrap();
    Loss::within(x(), |p, v| v[0].square().blocks(&p.constant(all.clone()), [2, 2]).sin()).check("blocks");
}

/// Dynamic dims, as they are fed, give the bits of fixed ones.
#[test]
fn moves_along_dynamic_dims() {
    let shapes: [&[usize]; 3] = [&[3, 4], &[1, 4], &[2, 3]];
    let loss = |x: &Var| {
        let a = x.slice(1, -3, -1, 1).square().sum() + x.over([1]).sort().over([1]).cumsum().square().sum();
        let b = x.over([0]).cummax().square().sum() + x.over([1]).q(0.4).quantile().sum();
        a + b + x.pad(&x.slice(1, 0, None, 1), 1, 0, 1).sin().sum() + x.over([1]).k(1).topk().square().sum()
    };
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, None]);
    let g = p.gradients(&[&loss(&x)], &[&x], &[]).unwrap();
    for shape in shapes {
        let t = Eager::new(Rules::Torch).tensor(&numbers(shape, -1.0, 1.0, 4)).cast(DType::F32).result().unwrap();
        let q = Program::new(Rules::Torch);
        let y = q.data("x", DType::F32, shape);
        let h = q.gradients(&[&loss(&y)], &[&y], &[]).unwrap();
        let (got, want) = (run(&p, &[("x", t.clone())], &[&g[0]]), run(&q, &[("x", t)], &[&h[0]]));
        assert_eq!((got[0].shape(), got[0].as_bytes()), (shape, want[0].as_bytes()), "{shape:?}");
    }
}

/// What the backward pass needs is stored, or computed again where that costs less, as of any program; and the plan says so.
#[test]
fn what_is_stored_is_decided_by_cost() {
    let decided = |dtype: DType, f: fn(&Var) -> Var, passes: &[Pass]| {
        let p = Program::new(Rules::Torch);
        let wide = |name| p.data(name, dtype, [4096]).cast(DType::F32);
        let (x, y) = (wide("x"), wide("y"));
        let all = p.value_and_gradients(&(f(&x) - &y).norm(), &[&x, &y]).unwrap();
        let executor = passes.iter().fold(Executor::builder(), |b, pass| b.without(*pass)).build();
        let text = executor.kernels(&p, &all).unwrap();
        let of = |l: &str| l.strip_prefix(";   f32 sub at ").map(|l| l[l.rfind(": ").unwrap() + 2..].to_string());
        (text.lines().filter_map(of).collect::<Vec<_>>(), text)
    };
    // Two of bf16 that are read cost less than one of f32 that is written and read; not so two of f32, or sines.
    for (dtype, f, want) in [
        (DType::BF16, Var::clone as fn(&Var) -> Var, "computed again by kernel 2"),
        (DType::F32, Var::clone, "stored, read by kernel 2"),
        (DType::BF16, Var::sin, "stored, read by kernel 2"),
    ] {
        let (found, text) = decided(dtype, f, &[]);
        assert_eq!(found, [want], "{text}");
    }
    let (found, text) = decided(DType::BF16, Var::clone, &[Pass::Recomputing]);
    assert_eq!(found, Vec::<String>::new(), "{text}");
}

/// Gradients of a function of eager values.
#[test]
fn eager_functions_have_the_programs_gradients() {
    for rules in [Rules::Torch, Rules::Jax] {
        let cx = Eager::new(rules);
        let (x, w) = (numbers(&[3, 4], -1.0, 1.0, 4), numbers(&[4], 0.5, 1.0, 5));
        let of = |v: &[Var]| (v[0].tanh() * &v[1]).softmax([1]).square().sum();
        let (loss, g) = cx.value_and_gradients(&[&cx.tensor(&x), &cx.tensor(&w)], of).unwrap();
        let p = Program::new(rules);
        let (a, b) = (p.data("a", DType::F64, [3, 4]), p.data("b", DType::F64, [4]));
        let all = p.value_and_gradients(&of(&[a.clone(), b.clone()]), &[&a, &b]).unwrap();
        let want = run(&p, &[("a", x), ("b", w)], &all.iter().collect::<Vec<_>>());
        for (got, want) in [&loss, &g[0], &g[1]].into_iter().zip(&want) {
            assert_eq!(got.result().unwrap().as_bytes(), want.as_bytes());
        }
    }
    let cx = Eager::new(Rules::Torch);
    let x = cx.tensor(&Tensor::from([1.0f32, 2.0]));
    let e = cx.value_and_gradients(&[&x], |v| v[0].exp()).unwrap_err();
    assert_eq!(e.diagnostics()[0].kind, DiagnosticKind::NotDifferentiable);
    assert!(cx.value_and_gradients(&[&x.bitwise_and(&x)], |v| v[0].sum()).is_err());
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
    let first = |p: &Program, v: &[Var]| {
        let loss = (v[0].exp() * &v[1] + (&v[0] / &v[1]).tanh() + v[0].pow(&v[1])).sum() + v[0].mean() * v[1].prod();
        let g = p.gradients(&[&loss], &[&v[0], &v[1]], &[]).unwrap();
        g[0].square() + &g[1]
    };
    Loss::within(x(), first).check("gradients of gradients");
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

/// What a rule negates last is subtracted from other contributions, with the bits of adding the negated value, zeros included.
#[test]
fn what_is_negated_is_subtracted() {
    let values = [0.0f32, -0.0, 1.0, -1.0, 1.0e-40, f32::INFINITY];
    let pairs = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b)));
    let (first, last): (Vec<f32>, Vec<f32>) = pairs.unzip();
    for (minus_first, minus_last) in [(false, false), (false, true), (true, false), (true, true)] {
        let p = Program::new(Rules::Torch);
        let [x, y, c, d] = ["x", "y", "c", "d"].map(|name| p.data(name, DType::F32, [first.len()]));
        let used = |minus: bool| if minus { &x - &y } else { &x + &y };
        let losses = [used(minus_first), used(minus_last) * 1.0];
        let g = p.gradients(&[&losses[0], &losses[1]], &[&y], &[Some(&c), Some(&d)]).unwrap();
        let typed = p.infer().unwrap();
        let negated = typed.nodes().filter(|n| matches!(n.kind, NodeKind::Apply { op: Op::Neg, .. })).count();
        assert_eq!(negated, usize::from(minus_first && minus_last), "{p}");
        let t = |v: &[f32]| Tensor::from_slice(v, [v.len()]).unwrap();
        let got = run(&p, &[("x", t(&first)), ("y", t(&last)), ("c", t(&first)), ("d", t(&last))], &[&g[0]]);
        let sign = |minus: bool, v: f32| if minus { -v } else { v };
        let want = first.iter().zip(&last).map(|(c, d)| sign(minus_last, *d) + sign(minus_first, *c));
        for ((got, want), of) in got[0].to_vec::<f32>().unwrap().iter().zip(want).zip(first.iter().zip(&last)) {
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(same, "{got} is not {want} of {of:?}\n{p}");
        }
    }
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

/// No feed is read, but its extents are needed: such a value is no constant.
#[test]
fn gradients_that_depend_on_dims_alone() {
    for dims in [[None, None], [Some(2), None], [Some(2), Some(3)]] {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, dims);
        let losses = [(-(&x * 3.0)).sum(), (&x / 2.0 + 1.0).over([0]).sum().sum(), (&x - 1.0).mean() * 12.0];
        let made = losses.map(|loss| p.gradients(&[&loss], &[&x], &[]).unwrap().remove(0));
        let again = Tensor::full([2, 3], 0.5f32).unwrap();
        for (got, want) in run(&p, &[("x", again)], &made.iter().collect::<Vec<_>>()).iter().zip([-3.0f32, 0.5, 2.0]) {
            assert_eq!((got.shape(), got.to_vec::<f32>().unwrap()), (&[2, 3][..], vec![want; 6]));
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
    let median = x.over([0]).norm().view_as(DType::F32);
    let kind = |e: castwise::Error| (e.diagnostics()[0].kind, e.to_string());
    let (found, text) = kind(p.gradients(&[&median], &[&x], &[]).unwrap_err());
    assert_eq!(found, DiagnosticKind::NotDifferentiable);
    assert!(text.contains("`view_as` has no gradient") && text.contains(&format!("gradients.rs:{line}")), "{text}");
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

/// Without dims an element is the only one of its line.
#[test]
fn orders_over_no_dims_pass_gradients_on() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F64, [3]);
    let all = [x.over([]).k(1).kthvalue(), x.over([]).q(0.3).quantile(), x.over([]).median()];
    for y in all {
        let g = p.gradients(&[&y.sum()], &[&x], &[]).unwrap();
        let got = run(&p, &[("x", Tensor::from([3.0f64, 1.0, 2.0]))], &[&g[0]]);
        assert_eq!(got[0].to_vec::<f64>().unwrap(), [1.0; 3], "{p}");
    }
}
