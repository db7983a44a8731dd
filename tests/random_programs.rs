//! Eager mode and compiled programs agree bit for bit on random programs that mix ops, dtypes, scalars and shapes.
//! A counterexample is shrunk and printed as a text program.

mod common;

use castwise::prelude::*;
use castwise::{Op, Operand};
use common::{Random, assert_same_bits, random_tensor};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// One step: an op and where its operands come from.
#[derive(Clone, Debug)]
struct Step {
    op: usize,
    operands: [u16; 4],
    dtype: usize,
}

/// A random program: leaves, steps over them, and how the leaves lie in memory.
#[derive(Clone, Debug)]
struct Case {
    rules: Rules,
    leaves: Vec<(usize, usize)>,
    steps: Vec<Step>,
    seed: u64,
    dynamic: bool,
}

const SHAPES: [&[usize]; 8] = [&[], &[1], &[7], &[3, 7], &[3, 1], &[2, 3, 7], &[2, 1, 1], &[1, 7]];

fn cases() -> impl Strategy<Value = Case> {
    let rules = prop_oneof![3 => Just(Rules::Torch), 1 => Just(Rules::Paddle)];
    let leaves = prop::collection::vec((0..13usize, 0..SHAPES.len()), 1..5);
    let step = (0..Op::ALL.len(), any::<[u16; 4]>(), 0..13usize).prop_map(|(op, operands, dtype)| Step {
        op,
        operands,
        dtype,
    });
    (rules, leaves, prop::collection::vec(step, 1..24), any::<u64>(), any::<bool>())
        .prop_map(|(rules, leaves, steps, seed, dynamic)| Case { rules, leaves, steps, seed, dynamic })
}

const SCALARS: [Scalar; 9] = [
    Scalar::Int(2),
    Scalar::Int(-3),
    Scalar::Float(0.1),
    Scalar::Float(-2.0),
    Scalar::Float(0.5),
    Scalar::Bool(true),
    Scalar::Int(300),
    Scalar::Float(f64::INFINITY),
    Scalar::Complex(num_complex::Complex { re: 0.5, im: -1.0 }),
];

/// Applies a step to values; `None` picks nothing usable.
fn apply<M: Mode>(step: &Step, values: &[Var<M>], dynamic: bool) -> Var<M> {
    // `assign` must keep its tensor's shape, which dynamic dims do not show before they are fed: it refuses them.
    let op = match Op::ALL[step.op] {
        Op::Assign if dynamic => Op::PromoteWith,
        op => op,
    };
    let operands: Vec<Operand<M>> = (0..op.arity())
        .map(|i| {
            let pick = step.operands[i] as usize;
            // One operand in six is a scalar, but never the first; parameters always are.
            let parameter = i >= op.arity() - op.def().torch.parameters;
            if parameter || i > 0 && pick.is_multiple_of(6) {
                SCALARS[pick / 6 % SCALARS.len()].into()
            } else {
                (&values[pick / 6 % values.len()]).into()
            }
        })
        .collect();
    let attrs = match op {
        Op::Cast | Op::ViewAs => castwise::Attrs::cast(DType::ALL[step.dtype]),
        // Some binary ops place an operand at an axis. (Which trailing ones can be dropped there depends on extents,
        // so programs with dynamic dims refuse some of what eager mode takes.)
        _ if op.arity() == 2 && step.dtype < 2 && !dynamic => castwise::Attrs::axis(step.operands[2] as i64 % 4 - 1),
        _ if op.is_reduction() && !values.is_empty() => {
            let dims = [&[][..], &[0], &[-1], &[0, -1], &[1]][step.dtype % 5];
            castwise::Attrs { dims: Some(dims.into()), keepdim: step.dtype > 6, ..castwise::Attrs::default() }
        }
        _ => castwise::Attrs::default(),
    };
    castwise::apply(op, &operands, attrs)
}

fn leaves(case: &Case) -> Vec<Tensor> {
    let mut r = Random(case.seed);
    case.leaves
        .iter()
        .map(|(d, shape)| {
            let mut d = DType::ALL[*d];
            if case.rules == Rules::Paddle && d == DType::C32 {
                d = DType::F32; // Paddle has no c32.
            }
            // One case in eight has runs of several tiles and an odd remainder.
            let long = case.seed.is_multiple_of(8);
            let shape: Vec<usize> = SHAPES[*shape].iter().map(|n| if long && *n == 7 { 1117 } else { *n }).collect();
            let shape = shape.as_slice();
            let t = random_tensor(d, shape, &mut r, false);
            match (r.below(3), shape) {
                (0, [a, b]) => random_tensor(d, &[*b, *a], &mut r, false).transpose(0, 1).unwrap(),
                (1, [n]) => random_tensor(d, &[2 * n], &mut r, false).slice(0, 0, 2 * n, 2).unwrap(),
                _ => t,
            }
        })
        .collect()
}

fn check(case: &Case) -> (usize, usize) {
    let tensors = leaves(case);
    let cx = Eager::new(case.rules);
    let mut eager: Vec<Var<Eager>> = tensors.iter().map(|t| cx.tensor(t)).collect();
    let program = Program::new(case.rules);
    let mut lazy: Vec<Var> = Vec::new();
    let mut feeds = Vec::new();
    for (i, t) in tensors.iter().enumerate() {
        let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!case.dynamic).then_some(*n)).collect();
        lazy.push(program.data(&format!("x{i}"), t.dtype(), dims));
        feeds.push((format!("x{i}"), t.clone()));
    }
    let mut refused = 0;
    for step in &case.steps {
        // What one mode refuses, the other must refuse too; then the step is left out, in a program of its own.
        let result = apply(step, &eager, case.dynamic);
        if result.result().is_err() {
            refused += 1;
            continue;
        }
        eager.push(result);
        lazy.push(apply(step, &lazy, case.dynamic));
    }
    let results: Vec<&Var> = lazy[tensors.len()..].iter().collect();
    let fused = common::EXECUTOR.with(|e| e.run(&program, feeds, results.iter().copied()));
    let fused = fused.unwrap_or_else(|e| panic!("{e}\n{program}\nfeeds: {tensors:?}"));
    for (i, (e, f)) in eager[tensors.len()..].iter().zip(&fused).enumerate() {
        assert_same_bits(&e.result().unwrap(), f, &|| format!("result {i} of\n{program}\nfeeds: {tensors:?}"));
    }
    (eager.len() - tensors.len(), refused)
}

/// The text of a program reads back as a program with the same text, types and results.
fn check_text(case: &Case) {
    let tensors = leaves(case);
    let program = Program::new(case.rules);
    let (mut all, mut feeds): (Vec<Var>, _) = (Vec::new(), Vec::new());
    for (i, t) in tensors.iter().enumerate() {
        // Every second leaf is a constant, in its layout.
        if i % 2 == 1 {
            all.push(program.constant(t.clone()));
            continue;
        }
        let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!case.dynamic).then_some(*n)).collect();
        all.push(program.data(&format!("x {i}"), t.dtype(), dims));
        feeds.push((format!("x {i}"), t.clone()));
    }
    // Refused steps stay: a wrong program prints and reads back too.
    case.steps.iter().for_each(|step| all.push(apply(step, &all, case.dynamic)));
    let text = program.to_string();
    let again = Program::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.to_string(), text);
    let (typed, typed_again) = match (program.infer(), again.infer()) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(a), Err(b)) => {
            let messages = |e: &castwise::Error| -> Vec<String> {
                e.diagnostics().iter().map(|d| format!("{:?} {} {:?}", d.fault, d.message, d.help)).collect()
            };
            return assert_eq!(messages(&a), messages(&b), "{text}");
        }
        (a, b) => panic!("{a:?}\n{b:?}\n{text}"),
    };
    let without_places = |typed: &castwise::TypedProgram| -> String {
        typed.to_string().lines().map(|l| l.split(" at ").next().unwrap().to_string() + "\n").collect()
    };
    assert_eq!(without_places(&typed), without_places(&typed_again));
    let run = |p: &Program| {
        let fetches = p.fetches();
        common::EXECUTOR.with(|e| e.run(p, feeds.clone(), fetches.iter().map(|f| &f.var)))
    };
    match (run(&program), run(&again)) {
        (Ok(a), Ok(b)) => a.iter().zip(&b).for_each(|(a, b)| assert_same_bits(a, b, &|| text.clone())),
        (a, b) => assert_eq!(a.is_err(), b.is_err(), "{text}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_of_random_programs_read_back(mut case in cases()) {
        check_text(&case);
        // With few steps, most programs have no mistake.
        case.steps.truncate(2);
        check_text(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn eager_equals_static_on_random_programs(case in cases()) {
        check(&case);
    }
}

#[test]
fn most_random_steps_are_valid() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut valid, mut refused) = (0, 0);
    for _ in 0..300 {
        let case = cases().new_tree(&mut runner).unwrap().current();
        let (v, r) = check(&case);
        valid += v;
        refused += r;
    }
    println!("{valid} steps valid, {refused} refused");
    assert!(valid > refused);
}
