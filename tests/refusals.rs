//! If several ops refuse their data, the error is that of the first one in program order which the results need: in eager mode and
//! compiled, however kernels are fused, moved, run block by block, or folded.

use std::sync::atomic::{AtomicBool, Ordering};

use castwise::prelude::*;
use castwise::{CustomOp, Error, Pass, Promotion, Registry, SourceLine, with_location};

use crate::common::{Random, assert_same_bits};

/// Runs code at a line of its own, which its errors name.
fn at<T>(line: usize, run: impl FnOnce() -> T) -> T {
    with_location(SourceLine::new("steps", line as u32), run)
}

/// A step: what it does, and its operands among those before it.
type Step = (u64, usize, usize);

/// Shapes that broadcast to the first one.
const SHAPES: [&[usize]; 4] = [&[40, 6], &[6], &[40, 1], &[40, 6]];

/// The values of all steps, at a line each; the first ones are given.
fn values<M: Mode>(steps: &[Step], given: &[Var<M>]) -> Vec<Var<M>> {
    let mut all = given.to_vec();
    for (kind, a, b) in steps {
        let (x, y) = (&all[*a], &all[*b]);
        let next = at(all.len(), || match kind % 10 {
            0 | 1 => x.floor_divide(y),
            2 => x.remainder(y),
            3 => x.fmod(y),
            4 => x + y,
            5 => x - y,
            6 => x * y,
            7 => x - y.over([-1]).keepdim().amax(),
            8 => (x.cast(DType::F32).softmax([-1]) * 9).cast(DType::I64) + y,
            _ => x.over([-1]).cumsum() - y,
        });
        all.push(next);
    }
    all
}

/// For each value, whether another one is needed for it.
fn needed(steps: &[Step], given: usize, of: &[usize]) -> Vec<bool> {
    let mut all = vec![false; given + steps.len()];
    of.iter().for_each(|i| all[*i] = true);
    for (i, (_, a, b)) in steps.iter().enumerate().rev() {
        if all[given + i] {
            (all[*a], all[*b]) = (true, true);
        }
    }
    all
}

#[test]
fn the_first_op_in_program_order_is_the_error() {
    let mut r = Random(11);
    let plain = Executor::builder;
    let executors = [
        plain().threads(1).build(),
        plain().threads(3).row_block(300).build(),
        plain().row_block(2_000).jit(false).build(),
        plain().without(Pass::Fusion).build(),
        plain().without(Pass::Folding).without(Pass::Rows).build(),
    ];
    let (mut refused, mut several) = (0, 0);
    for round in 0..if cfg!(debug_assertions) { 150 } else { 2_000 } {
        let tensors = SHAPES.map(|shape| {
            let n = shape.iter().product();
            // Zeros are rare, so that other ops than the first ones refuse.
            let one = |r: &mut Random| if r.below(80) == 0 { 0i64 } else { 1 + r.below(5) as i64 };
            Tensor::from_vec((0..n).map(|_| one(&mut r)).collect(), shape).unwrap()
        });
        let n = SHAPES.len();
        let steps: Vec<Step> = (0..12).map(|i| (r.next(), r.index(n + i), r.index(n + i))).collect();
        let fetches = [n + 11, n + r.index(12), n + r.index(12)];
        let cx = Eager::new(Rules::Torch);
        let eager = values(&steps, &tensors.each_ref().map(|t| cx.tensor(t)));
        let failing = |of: &[usize]| {
            let needed = needed(&steps, n, of);
            let alone = |i: &usize| {
                let fine = |of: usize| eager[of].result().is_ok();
                needed[*i] && !fine(*i) && fine(steps[*i - n].1) && fine(steps[*i - n].2)
            };
            let all: Vec<usize> = (n..eager.len()).filter(alone).collect();
            (all.first().map(|i| eager[*i].result().unwrap_err().to_string()), all.len())
        };
        let (want, count) = failing(&fetches);
        (refused, several) = (refused + usize::from(count > 0), several + usize::from(count > 1));
        // A value that is computed at once has the error of the first op, too.
        for (i, value) in eager.iter().enumerate().skip(n) {
            assert_eq!(value.result().err().map(|e| e.to_string()), failing(&[i]).0, "round {round}, value {i}");
        }
        let p = Program::new(Rules::Torch);
        // Some operands are constants, which are computed when the program is planned.
        let constants = r.below(4);
        let given: Vec<Var> = (0..n)
            .map(|i| match constants == 0 && i % 2 == 0 {
                true => p.constant(tensors[i].clone()),
                false => p.data(
                    &format!("x{i}"),
                    DType::I64,
                    tensors[i].shape().iter().map(|n| Some(*n)).collect::<Vec<_>>(),
                ),
            })
            .collect();
        let all = values(&steps, &given);
        let feeds = || {
            let used = |(i, _): &(usize, &Tensor)| constants != 0 || i % 2 == 1;
            tensors.iter().enumerate().filter(used).map(|(i, t)| (format!("x{i}"), t.clone())).collect::<Vec<_>>()
        };
        for (e, executor) in executors.iter().enumerate() {
            for again in [false, true] {
                let made = executor.run(&p, feeds(), fetches.map(|i| &all[i]));
                let case = || format!("round {round}, executor {e}, again {again}\n{p}");
                match (&want, made) {
                    (None, Ok(made)) => fetches.iter().zip(&made).for_each(|(i, t)| {
                        assert_same_bits(&eager[*i].result().unwrap(), t, &case);
                    }),
                    (Some(want), Err(e)) => assert_eq!(*want, e.to_string(), "{}", case()),
                    (want, made) => panic!("{want:?}, not {:?}\n{}", made.err(), case()),
                }
            }
        }
    }
    assert!(refused > 30 && several > 10, "only {refused} programs were refused, {several} by several ops");
}

/// A function that panics once fails one run, and leaves nothing behind: not the launches of a run that did not end.
#[test]
fn a_function_that_panics_once_fails_one_run() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    let mut ops = Registry::new();
    let op = CustomOp::new("touchy", ["x"], Promotion::Common).with(|[x]: [f32; 1]| {
        assert!(!(x == 7.0 && FAILS.swap(false, Ordering::Relaxed)), "not now");
        x + 1.0
    });
    let op = ops.register(op).unwrap();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None, Some(50)]);
    let shifted = x.apply(op, &[]) - x.over([1]).keepdim().amax();
    let y = &shifted / shifted.over([1]).keepdim().sum();
    let of = |rows: usize| Tensor::from_vec((0..rows * 50).map(|i| i as f32).collect(), [rows, 50]).unwrap();
    for executor in [Executor::builder().row_block(2_000), Executor::builder().without(Pass::Rows)] {
        let (executor, plain) = (executor.threads(2).build(), Executor::builder().jit(false).build());
        for rows in [60, 80, 60] {
            let t = of(rows);
            FAILS.store(false, Ordering::Relaxed);
            let want = plain.run(&p, feeds! { "x" => &t }, [&y]).unwrap();
            for fails in [false, true, false, true, true, false] {
                FAILS.store(fails, Ordering::Relaxed);
                match executor.run(&p, feeds! { "x" => &t }, [&y]) {
                    Ok(made) if !fails => assert_same_bits(&want[0], &made[0], &|| format!("{rows} rows")),
                    Err(Error::Panicked { message, .. }) if fails => assert_eq!(message.as_deref(), Some("not now")),
                    other => panic!("{rows} rows, fails {fails}: {:?}", other.err()),
                }
            }
        }
    }
}

/// A kernel runs its steps on some elements after the other: the later op meets its zero first.
#[test]
fn the_first_op_of_one_kernel_is_the_error() {
    let n = 100_000;
    let p = Program::new(Rules::Torch);
    let [x, y, v] = ["x", "y", "v"].map(|name| p.data(name, DType::I64, [n]));
    let sum = at(1, || x.floor_divide(&y)) + at(2, || x.floor_divide(&v));
    let total = sum.sum();
    let ones = |zero: usize| Tensor::from_vec((0..n).map(|i| i64::from(i != zero)).collect(), [n]).unwrap();
    for result in [&sum, &total] {
        let feeds = feeds! { "x" => ones(n), "y" => ones(n - 1), "v" => ones(0) };
        let e = Executor::new().run(&p, feeds, [result]).unwrap_err().to_string();
        assert!(e.contains("steps:1"), "{e}");
    }
}

/// Constants are folded without feeds, so no dynamic dim of the program is known.
#[test]
fn constants_beside_dynamic_dims_refuse_too() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::I64, [None]);
    let [three, zero] = [[3i64, 4], [1, 0]].map(|v| p.constant(Tensor::from(v)));
    let y = at(2, || (&three + 1).floor_divide(&zero)) + &x;
    for executor in [Executor::new(), Executor::builder().without(Pass::Folding).build()] {
        let e = executor.run(&p, feeds! { "x" => Tensor::from([1i64, 2]) }, [&y]).unwrap_err();
        assert!(matches!(e, Error::DivisionByZero { .. }) && e.to_string().contains("steps:2"), "{e}");
    }
}
