//! Prepared programs, and results that are written into the caller's tensors.

use castwise::prelude::*;
use castwise::{Error, f16};

fn doubled(rules: Rules) -> (Program, Var) {
    let p = Program::new(rules);
    let x = p.data("x", DType::F32, [None]);
    let y = &x + &x;
    (p, y)
}

#[test]
fn results_go_into_the_callers_memory_if_nothing_shares_it() {
    let (p, y) = doubled(Rules::Torch);
    let step = Executor::new().prepare(&p, [&y]).unwrap();
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]).unwrap();
    let mut out = [Tensor::zeros(DType::F32, [3]).unwrap()];
    let address = out[0].as_bytes().unwrap().as_ptr();
    step.run_into(&[&x], &mut out).unwrap();
    assert_eq!((out[0].to_vec::<f32>().unwrap(), out[0].as_bytes().unwrap().as_ptr()), (vec![2.0, 4.0, 6.0], address));
    // Memory that another tensor shares is not overwritten.
    let kept = out[0].clone();
    step.run_into(&[&kept], &mut out).unwrap();
    assert_eq!(kept.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
    assert_eq!(out[0].to_vec::<f32>().unwrap(), [4.0, 8.0, 12.0]);
}

#[test]
fn results_that_are_the_same_go_into_every_tensor_given_for_them() {
    let p = Program::new(Rules::Torch);
    let a = p.data("a", DType::F32, [None]);
    let (y, again) = (&a + 1, &a + 1);
    let same = y.cast(DType::F32);
    let exe = Executor::new();
    for (n, fetches) in [vec![&y, &y], vec![&y, &again], vec![&y, &same, &again], vec![&y, &a, &y]].iter().enumerate() {
        let step = exe.prepare(&p, fetches.iter().copied()).unwrap();
        // The first call makes the plan, later calls use it.
        for call in 0..3 {
            let x = Tensor::from_slice(&[1.0f32, 2.0, n as f32], [3]).unwrap();
            let target = |k: usize| if k == 1 { DType::F64 } else { DType::F32 };
            let mut out: Vec<_> = (0..fetches.len()).map(|k| Tensor::zeros(target(k), [3]).unwrap()).collect();
            if call == 2 {
                exe.run_into(&p, feeds! { "a" => x }, fetches.iter().copied(), &mut out).unwrap();
            } else {
                step.run_into(&[&x], &mut out).unwrap();
            }
            for (got, want) in out.iter().zip(step.run(&[&x]).unwrap()) {
                let got = Eager::new(Rules::Torch).tensor(got).cast(DType::F32).result().unwrap();
                assert_eq!(got.to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap(), "fetches {n}, call {call}");
            }
        }
    }
}

#[test]
fn strides_of_one_element_do_not_matter_for_the_callers_memory() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [Some(1), None]);
    let step = Executor::new().prepare(&p, [&(&x + &x)]).unwrap();
    let mut out = [Tensor::zeros(DType::F32, [3]).unwrap().unsqueeze(0).unwrap()];
    let address = out[0].as_bytes().unwrap().as_ptr();
    step.run_into(&[&Tensor::from_slice(&[1.0f32, 2.0, 3.0], [1, 3]).unwrap()], &mut out).unwrap();
    assert_eq!((out[0].to_vec::<f32>().unwrap(), out[0].as_bytes().unwrap().as_ptr()), (vec![2.0, 4.0, 6.0], address));
}

#[test]
fn targets_are_checked_and_converted_by_the_rules() {
    let x = Tensor::from_slice(&[1.5f32, 70000.0], [2]).unwrap();
    for (rules, converts) in [(Rules::Torch, true), (Rules::Paddle, false)] {
        let (p, y) = doubled(rules);
        let exe = Executor::new();
        let mut half = [Tensor::zeros(DType::F16, [2]).unwrap()];
        let run = exe.run_into(&p, feeds! { "x" => x }, [&y], &mut half);
        assert_eq!(run.is_ok(), converts, "{rules}");
        if converts {
            assert_eq!(half[0].to_vec::<f16>().unwrap(), [f16::from_f32(3.0), f16::INFINITY]);
        }
        let mut int = [Tensor::zeros(DType::I32, [2]).unwrap()];
        let wrong = exe.run_into(&p, feeds! { "x" => x }, [&y], &mut int);
        assert!(matches!(wrong, Err(Error::DType { .. })));
        let mut long = [Tensor::zeros(DType::F32, [3]).unwrap()];
        let wrong = exe.run_into(&p, feeds! { "x" => x }, [&y], &mut long).unwrap_err().to_string();
        assert!(wrong.contains("[3]") && wrong.contains("[2]"), "{wrong}");
        assert!(exe.run_into(&p, feeds! { "x" => x }, [&y], &mut [] as &mut [Tensor]).is_err());
    }
}

#[test]
fn a_prepared_program_follows_new_extents_layouts_and_broadcasts() {
    let p = Program::new(Rules::Torch);
    let (a, b) = (p.data("a", DType::F32, [None]), p.data("b", DType::F32, [None]));
    let exe = Executor::new();
    let step = exe.prepare(&p, [&(&a * &b), &(&a - &b), &a]).unwrap();
    let counted = |n: usize| Tensor::from_vec((0..n).map(|i| i as f32).collect(), [n]).unwrap();
    for (n, m) in [(4, 4), (1000, 1000), (1, 7), (7, 1), (4, 4), (0, 0), (0, 1)] {
        let (x, y) = (counted(n), counted(m).flip(0).unwrap());
        let out = step.run(&[&x, &y]).unwrap();
        let (xs, ys) = (x.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
        let len = if n == 1 { m } else { n };
        let at = |v: &[f32], i: usize| if v.len() == 1 { v[0] } else { v[i] };
        let product: Vec<f32> = (0..len).map(|i| at(&xs, i) * at(&ys, i)).collect();
        let difference: Vec<f32> = (0..len).map(|i| at(&xs, i) - at(&ys, i)).collect();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), product);
        assert_eq!(out[1].to_vec::<f32>().unwrap(), difference);
        assert_eq!(out[2].to_vec::<f32>().unwrap(), xs);
    }
    assert!(step.run(&[&counted(4)]).unwrap_err().to_string().contains("1 tensors for 2"));
    assert!(step.run(&[&counted(4), &counted(5)]).is_err());
}

#[test]
fn one_prepared_program_serves_many_threads() {
    let (p, y) = doubled(Rules::Torch);
    let step = Executor::builder().threads(2).build().prepare(&p, [&y]).unwrap();
    std::thread::scope(|s| {
        for k in 0..8 {
            let step = &step;
            s.spawn(move || {
                for n in [1usize, 100, 70_000, 400_000] {
                    let x = Tensor::full([n], k as f32).unwrap();
                    assert!(step.run(&[&x]).unwrap()[0].to_vec::<f32>().unwrap().iter().all(|v| *v == 2.0 * k as f32));
                }
            });
        }
    });
}
