//! Copies of programs with every kind of node, and passes that change something.

use super::*;
use crate::base::dtype::DType;
use crate::base::error::{DiagnosticKind, SourceLocation};
use crate::base::limits::{Limit, Limits};
use crate::base::scalar::Scalar;
use crate::graph::losses::{PoissonNll, Reduction};
use crate::ops::MAX_OPERANDS;
use crate::promotion::{Rounding, Rules, Settings};
use crate::tensor::Tensor;

/// A program with every kind of node, every attribute and every kind of conversion that the rules have.
fn program(rules: Rules) -> Program {
    let settings = Settings::new(rules).with_default_dtype(DType::F64).with_rounding(Rounding::Relaxed);
    let p = Program::with_limits(settings, Limits::new().with(Limit::Nodes, 1000).unwrap());
    let (x, c) = (p.data("x", DType::F32, ["n", "m"]), p.data("c", DType::Bool, [None, Some(3)]));
    let (row, i) = (p.data("a row", DType::F16, ["n"]), p.data("i", DType::I32, [3]));
    let k = p.constant(Tensor::from([1.5f64, -0.0, f64::NAN]));
    let wide = row.at_axis(0).add(&x);
    let results = [
        x.view_as(DType::I32),
        wide.over([-1]).keepdim().sum(),
        i.sum(),
        i.over([0]).dtype(DType::I32).sum(),
        c.any(),
        c.where_(&wide, 1.5),
        c.where_(0.1, 0.2),
        &k * i.cast(DType::F64) + true,
        x.cast_output(DType::F64),
        x.cast(DType::F32),
        i.clamp(-5, 100),
        &i / 2,
        x.huber_loss(&x, 1.0, Reduction::Mean),
        x.poisson_nll_loss(&x, PoissonNll { full: true, ..PoissonNll::default() }),
        i.sum() * 0.5 + &row.over([0]).amax(),
        x.transpose(0, -1).slice(0, 1, None, 2).flip([0]),
        k.unsqueeze(1).expand([3, 2]).reshape([-1]).cast(DType::F32),
    ];
    let named = ["", "sum", "again"].map(Some).into_iter().chain([None, None]);
    p.set_fetches(named.zip(results.iter())).unwrap();
    // What a rule set refuses is left out.
    let mixes: [fn(&Var, &Var, &Var) -> Var; 5] = [
        |i, x, _| i + x,
        |i, _, k| k.maximum(i),
        |i, x, _| x.assign(i),
        // Torch computes with the largest i32.
        |i, _, _| i.clamp(-5, 1i64 << 40),
        |_, x, _| x.over([0]).dtype(DType::U8).any(),
    ];
    for mix in mixes {
        let q = p.with_rules(rules);
        let of = |v: &Var| q.var(v.index()).unwrap();
        mix(&of(&i), &of(&x), &of(&k));
        if q.check().is_ok() {
            mix(&i, &x, &k);
        }
    }
    p
}

/// The rule sets that have the program; one may refuse mixes of dtypes altogether.
fn accepting() -> Vec<Rules> {
    let all: Vec<Rules> = Rules::ALL.iter().copied().filter(|r| program(*r).infer().is_ok()).collect();
    assert!([Rules::Torch, Rules::Paddle, Rules::NumPy, Rules::Jax, Rules::Toy].iter().all(|r| all.contains(r)));
    all
}

fn locations(p: &Program) -> Vec<SourceLocation> {
    p.shared.read().nodes.node_weights().map(|n| n.location.clone()).collect()
}

#[test]
fn a_copy_is_the_same_program() {
    for rules in accepting() {
        let p = program(rules);
        let typed = p.infer().unwrap();
        let copy = typed.rewrite(|n| n.copy()).unwrap();
        assert_eq!(copy.program.to_string(), p.to_string());
        let again = copy.program.infer().unwrap();
        assert_eq!((again.to_string(), again.explain()), (typed.to_string(), typed.explain()));
        assert_eq!(locations(&copy.program), locations(&p));
        assert_eq!(copy.program.shared.location, p.shared.location);
        assert_eq!((copy.program.settings(), copy.program.limits()), (p.settings(), p.limits()));
        // What inference inserted has the counterpart of what it serves.
        let written = p.len();
        assert!(copy.vars.len() == typed.len() && typed.len() > written);
        for v in (0..written).filter_map(|i| p.var(i)) {
            let same = &copy.vars[typed.position(&v).unwrap()];
            assert_eq!((same.index(), again.dtype(same)), (v.index(), typed.dtype(&v)));
        }
    }
}

#[test]
fn constants_are_shared() {
    let p = program(Rules::Torch);
    let copy = p.infer().unwrap().rewrite(|n| n.copy()).unwrap().program;
    let bytes = |p: &Program| {
        let constant = |n: &Kind| match n {
            Kind::Constant(t) => t.as_bytes().map(<[u8]>::as_ptr),
            _ => None,
        };
        p.shared.read().nodes.node_weights().find_map(|n| constant(&n.kind)).unwrap()
    };
    assert_eq!(bytes(&copy), bytes(&p));
}

#[test]
fn results_that_were_not_declared_stay_the_results() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [3]);
    let (y, z) = (x.exp(), x.sin());
    let copy = p.infer().unwrap().rewrite(|n| n.copy()).unwrap().program;
    assert_eq!((copy.len(), copy.fetches().len()), (3, 2));
    for (f, v) in copy.fetches().iter().zip([y, z]) {
        assert_eq!((&f.name, f.var.index()), (&None, v.index()));
    }
}

#[test]
fn an_explicit_copy_keeps_every_dtype() {
    for rules in accepting() {
        let typed = program(rules).infer().unwrap();
        let copy = typed.rewrite(|n| n.copy_explicit()).unwrap();
        let again = copy.program.infer().unwrap_or_else(|e| panic!("{e}\n{typed}"));
        for (n, v) in typed.nodes().zip(&copy.vars) {
            assert_eq!(again.dtype(v), Some(n.dtype), "{n:?}\n{typed}\n{again}");
        }
        // Nothing is left for inference to insert, but where an operand is placed.
        let inserted =
            |n: &NodeView<'_>| matches!(&n.kind, NodeKind::Cast { note, .. } if note.reason != Reason::Requested);
        assert!(typed.nodes().any(|n| inserted(&n)) && !again.nodes().any(|n| inserted(&n)), "{again}");
        let results = |t: &TypedProgram| {
            t.fetches().iter().map(|(name, n)| (name.clone(), t.nodes[*n as usize].dtype)).collect::<Vec<_>>()
        };
        assert_eq!(results(&again), results(&typed));
    }
}

/// PyTorch's rules convert the second operand to f32 and compute in f16, which no cast in the program can express.
#[test]
fn an_operand_in_op_math_is_left_to_inference() {
    let p = Program::new(Rules::Torch);
    let (x, b) = (p.data("x", DType::F16, [0usize; 0]), p.data("b", DType::Bool, [0usize; 0]));
    p.set_fetches([(None, &(x * b))]).unwrap();
    let typed = p.infer().unwrap();
    let copy = typed.rewrite(|n| n.copy_explicit()).unwrap();
    let text = copy.program.infer().unwrap().to_string();
    assert!(text.contains("f16[] = mul %x") && text.contains("(category), for mul"), "{text}");
}

/// Placeholders and constants that promote as scalars do: those of eager mode.
#[test]
fn weak_leaves_stay_weak() {
    let p = Program::new(Rules::Toy);
    let (x, k) = (p.weak_data("x", DType::F64, [2]), p.weak_constant(Tensor::from([0.5f64, 1.0])));
    let y = p.data("y", DType::F16, [2]);
    let _ = (&x * &k + &y, &k - &y);
    let typed = p.infer().unwrap();
    assert!(typed.to_string().contains(": f64*[2] = constant"), "{typed}");
    let copy = typed.rewrite(|n| n.copy()).unwrap();
    assert_eq!(copy.program.infer().unwrap().to_string(), typed.to_string());
}

/// A conversion that a pass writes out is what a copied application takes.
#[test]
fn counterparts_are_operands() {
    let p = Program::new(Rules::Torch);
    let (i, x) = (p.data("i", DType::I64, [3]), p.data("x", DType::F32, [3]));
    let _ = (&i * &x).clamp(&i, 2.5);
    let typed = p.infer().unwrap();
    let seen = std::cell::RefCell::new(Vec::new());
    let made = typed.rewrite(|n| match &n.view().kind {
        NodeKind::Cast { from, .. } => Ok(n.var(*from)?.cast(DType::F64)),
        NodeKind::Apply { operands, .. } => {
            let given = n.operands()?;
            assert!(given.len() == operands.len() && given.len() <= MAX_OPERANDS);
            let scalars = given.iter().filter(|o| matches!(o, Operand::Scalar(Scalar::Float(2.5)))).count();
            seen.borrow_mut().push((n.position(), given.len(), scalars));
            n.copy()
        }
        _ => n.copy(),
    });
    let made = made.unwrap();
    assert_eq!(seen.into_inner(), [(3, 2, 0), (5, 3, 1)]);
    let dtypes = |t: &TypedProgram| t.casts().iter().map(|c| (c.from, c.to)).collect::<Vec<_>>();
    let again = made.program.infer().unwrap();
    assert_eq!(dtypes(&typed), [(DType::I64, DType::F32); 2]);
    assert_eq!(dtypes(&again), [(DType::I64, DType::F64), (DType::F32, DType::F64), (DType::I64, DType::F64)]);
}

#[test]
fn what_a_pass_builds_is_where_the_node_was_written() {
    let p = Program::new(Rules::Torch);
    let line = line!() + 1;
    let x = p.data("x", DType::F32, [3]);
    let _ = x.exp();
    let typed = p.infer().unwrap();
    let made = typed.rewrite(|n| match n.position() {
        0 => Ok(n.copy()? * 2.0 + n.program().constant(Tensor::scalar(1.0f32))),
        _ => with_location(SourceLocation::None, || n.copy_explicit()),
    });
    let line_of = |l: &SourceLocation| if let SourceLocation::Rust(l) = l { l.line() } else { 0 };
    let lines: Vec<u32> = locations(&made.unwrap().program).iter().map(line_of).collect();
    assert_eq!(lines, [line, line, line, line, 0]);
}

#[test]
fn what_goes_wrong_in_a_pass_is_told() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [3]);
    let y = x.exp();
    let typed = p.infer().unwrap();
    // Written since; there is no node for it.
    let late = y.sin();
    let late = |e: Error| assert_eq!(e.to_string(), format!("the node {} is not before the node 0", late.index()));
    late(typed.rewrite(|n| n.var(2).cloned()).unwrap_err());
    let mut visited = 0;
    let ended = typed.rewrite(|n| {
        visited += 1;
        n.program().infer().and(Err(Error::Cancelled))
    });
    assert!(matches!(ended, Err(Error::Cancelled)) && visited == 1);
    let foreign = typed.rewrite(|_| Ok(x.clone())).unwrap_err();
    assert_eq!(foreign.diagnostics()[0].kind, DiagnosticKind::ForeignVar);
    // A mistake is one of the new program.
    let wrong = typed.rewrite(|n| Ok(n.copy()? + n.program().constant(Tensor::from([1.0f32, 2.0])))).unwrap();
    assert_eq!(wrong.program.check().unwrap_err().diagnostics()[0].kind, DiagnosticKind::Broadcast);
}

/// A sum to a shape keeps the dims of extent 1 that it was summed over, in rows of its own as well.
#[test]
fn a_sum_to_a_shape_keeps_its_dims() {
    for (from, to) in [(&[2, 3, 4][..], &[3, 1][..]), (&[1, 3], &[1]), (&[2, 3], &[1, 1]), (&[5, 1, 1], &[1, 1])] {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, from.to_vec());
        let y = x.sum_to(&p.data("like", DType::F32, to.to_vec()));
        let typed = p.infer().unwrap();
        let made = typed.rewrite(|n| n.copy_explicit()).unwrap();
        let copied = &made.vars[typed.position(&y).unwrap()];
        let again = made.program.infer().unwrap();
        assert_eq!(again.shape(copied), typed.shape(&y), "{from:?} to {to:?}\n{}", made.program);
    }
}
