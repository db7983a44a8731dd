//! Many short runs of many kinds on 64 threads at once: each gives the same result or error as when it runs alone.

use std::sync::Barrier;

use castwise::prelude::*;
use castwise::{CancelToken, Error, Prepared};

use super::bytes;
use crate::common::{self, Random, random_tensor};

/// The outcome of a call: the bytes of its results, or its error as text.
type Outcome = Result<Vec<Vec<u8>>, String>;

/// A program with feeds (some of them invalid), and its outcome when nothing else runs.
struct Case {
    program: Program,
    fetches: Vec<Var>,
    feeds: Vec<(String, Tensor)>,
    /// The dtypes and shapes of the results, for runs into the caller's memory.
    shapes: Vec<(DType, Vec<usize>)>,
    right: Outcome,
}

fn outcome(made: castwise::Result<Vec<Tensor>>) -> Outcome {
    made.map(|all| bytes(&all)).map_err(|e| e.to_string())
}

impl Case {
    fn new(program: Program, fetches: Vec<Var>, feeds: Vec<(String, Tensor)>) -> Case {
        let exe = Executor::builder().threads(1).jit(false).build();
        let made = exe.run(&program, feeds.clone(), &fetches);
        let shapes = made.iter().flatten().map(|t| (t.dtype(), t.shape().to_vec())).collect();
        Case { right: outcome(made), program, fetches, feeds, shapes }
    }
}

/// Elementwise chains, reductions, broadcasts and views in every dtype and several sizes, and errors: of the program,
/// of its feeds, and of the data.
fn cases() -> Vec<Case> {
    let (mut r, mut all) = (Random(11), Vec::new());
    for (k, d) in DType::ALL.into_iter().cycle().take(4 * DType::ALL.len()).enumerate() {
        let n = [1, 7, 64, 600][k / DType::ALL.len()];
        let p = Program::new(if k % 3 == 0 && common::has(Rules::Paddle, d) { Rules::Paddle } else { Rules::Torch });
        let (x, y) = (p.data("x", d, [None, Some(n)]), p.data("y", d, [None, Some(1)]));
        let z = &x * &y;
        let fetches = match k % 4 {
            0 => vec![z.clone(), z.eq(&x)],
            1 => vec![&z + &x, z.over([0]).sum()],
            2 => vec![x.ne(&y).where_(&z, &x), z.sum()],
            _ => vec![z.cast(DType::F32).tanh() + 0.5, z.over([1]).keepdim().any()],
        };
        // Two rows, which are reversed in memory in every fifth case.
        let mut feed = |name: &str, n: usize| {
            let t = random_tensor(d, &[2, n], &mut r, false);
            (name.to_string(), if k % 5 == 0 { t.flip(1).unwrap() } else { t })
        };
        let feeds = vec![feed("x", n), feed("y", 1)];
        all.push(Case::new(p, fetches, feeds));
    }
    let p = Program::new(Rules::Torch);
    let (a, b) = (p.data("a", DType::I32, [None]), p.data("b", DType::I32, [None]));
    let (quotient, sum) = (a.floor_divide(&b), &a + &b);
    let t = |v: &[i32]| Tensor::from_slice(v, [v.len()]).unwrap();
    for (x, y, z) in [(&[7, 8][..], &[2, 3][..], &quotient), (&[7, 8], &[2, 0], &quotient), (&[1, 2], &[1, 2, 3], &sum)]
    {
        all.push(Case::new(p.clone(), vec![z.clone()], vec![("a".into(), t(x)), ("b".into(), t(y))]));
    }
    let missing = vec![("a".to_string(), t(&[1]))];
    let other = vec![("a".to_string(), t(&[1])), ("b".into(), Tensor::scalar(1.0f32))];
    all.push(Case::new(p.clone(), vec![sum.clone()], missing));
    all.push(Case::new(p.clone(), vec![sum], other));
    let wrong = Program::new(Rules::Torch);
    let y = wrong.data("x", DType::F32, [3]) + wrong.data("y", DType::F32, [4]);
    all.push(Case::new(wrong, vec![y], vec![]));
    all
}

/// Runs a case in one of several ways.
fn run(case: &Case, exe: &Executor, prepared: Option<&Prepared>, way: usize, pulled: &CancelToken) -> Outcome {
    match (way % 6, prepared) {
        (0, _) => outcome(exe.run_with(&case.program, case.feeds.clone(), &case.fetches, &CancelToken::new())),
        (1, _) if case.right.is_ok() => {
            let made = exe.run_with(&case.program, case.feeds.clone(), &case.fetches, pulled);
            assert!(matches!(made, Err(Error::Cancelled)), "{made:?}");
            case.right.clone()
        }
        (2, _) if case.right.is_ok() => {
            let empty = |(d, shape): &(DType, Vec<usize>)| Tensor::zeros(*d, shape).unwrap();
            let mut into: Vec<Tensor> = case.shapes.iter().map(empty).collect();
            outcome(exe.run_into(&case.program, case.feeds.clone(), &case.fetches, &mut into).map(|()| into))
        }
        (3 | 4, Some(step)) if case.right.is_ok() => {
            outcome(step.run(&case.feeds.iter().map(|(_, t)| t).collect::<Vec<_>>()))
        }
        _ => outcome(exe.run(&case.program, case.feeds.clone(), &case.fetches)),
    }
}

/// The number of runs on each of the 64 threads, which `CASTWISE_RUNS` can set.
fn runs() -> usize {
    let default = if cfg!(debug_assertions) { 100 } else { 1000 };
    std::env::var("CASTWISE_RUNS").map_or(default, |n| n.parse().expect("CASTWISE_RUNS is a number"))
}

#[test]
fn sixty_four_threads_of_mixed_runs_get_what_one_gets() {
    let cases = cases();
    let refused = cases.iter().filter(|c| c.right.is_err()).count();
    assert!(refused >= 5 && 3 * refused < cases.len(), "{refused} of {}", cases.len());
    let executors = [
        Executor::builder().threads(1).build(),
        Executor::builder().threads(2).pool(1 << 16).build(),
        Executor::builder().threads(1).jit(false).cache(8).build(),
    ];
    let prepared: Vec<Option<Prepared>> =
        cases.iter().map(|c| executors[0].prepare(&c.program, &c.fetches).ok()).collect();
    let (runs, pulled, start) = (runs(), CancelToken::new(), Barrier::new(64));
    pulled.cancel();
    std::thread::scope(|s| {
        for t in 0..64 {
            let (cases, executors, prepared, pulled, start) = (&cases, &executors, &prepared, &pulled, &start);
            s.spawn(move || {
                let mut r = Random(t);
                start.wait();
                for _ in 0..runs {
                    let (at, way) = (r.below(cases.len() as u64) as usize, r.next() as usize % 64);
                    let exe = &executors[way / 22];
                    let made = run(&cases[at], exe, prepared[at].as_ref(), way, pulled);
                    assert!(made == cases[at].right, "case {at} in way {way}:\n{}", cases[at].program);
                }
            });
        }
    });
}
