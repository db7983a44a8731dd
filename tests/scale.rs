//! Large programs: no pass recurses over the graph, and all passes take linear time.

use castwise::prelude::*;

/// Runs `work` on a stack that is too small for recursion over a program.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn a_million_nodes_need_no_recursion() {
    on_a_small_stack(|| {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, [None]);
        let mut y = x.clone();
        for i in 0..500_000 {
            y = if i % 2 == 0 { &y + 1.0 } else { &y * 0.5 };
        }
        // In a second chain, every node is used twice.
        let mut z = x.clone();
        for _ in 0..500_000 {
            z = z.maximum(&z);
        }
        let typed = p.infer().unwrap();
        typed.verify().unwrap();
        assert!(typed.len() > 1_000_000 && typed.to_string().len() > 30_000_000);
        let copy = typed.rewrite(|n| n.copy()).unwrap();
        assert_eq!((copy.program.len(), copy.vars[typed.len() - 1].index()), (p.len(), z.index()));
        drop((typed, copy));
        let exe = Executor::builder().threads(1).build();
        let t = Tensor::from_slice(&[0.5f32, -3.0, 1e6], [3]).unwrap();
        let out = exe.run(&p, feeds! { "x" => t }, [&y, &z]).unwrap();
        assert_eq!(out[1].to_vec::<f32>().unwrap(), [0.5, -3.0, 1e6]);
        assert_eq!(out[0].to_vec::<f32>().unwrap(), [1.0; 3]);
    });
}

#[test]
fn a_million_nodes_are_differentiated_without_recursion() {
    on_a_small_stack(|| {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, [None]);
        let mut y = x.clone();
        for i in 0..1_000_000 {
            y = if i % 2 == 0 { &y + 1.0 } else { -&y };
        }
        let before = p.len();
        let gradient = p.gradients(&[&y.sum()], &[&x], &[]).unwrap().remove(0);
        assert!(before > 1_000_000 && p.len() > before + 500_000);
        let t = Tensor::from_slice(&[0.5f32, -3.0], [2]).unwrap();
        let out = Executor::builder().threads(1).build().run(&p, feeds! { "x" => t }, [&gradient]).unwrap();
        assert_eq!(out[0].to_vec::<f32>().unwrap(), [1.0; 2]);
    });
}

/// Inference continues where it ended: typing all nodes for each of them would take an hour.
#[test]
fn types_can_be_asked_for_after_each_op() {
    let p = Program::new(Rules::Torch);
    let mut y = p.data("x", DType::BF16, [None, Some(3)]);
    for i in 0..100_000 {
        y = if i % 2 == 0 { &y + 1.0 } else { &y * 0.5 };
        assert_eq!(p.infer().unwrap().dtype(&y), Some(DType::BF16));
    }
}

#[test]
fn a_wide_program_with_many_results_is_one_kernel() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [100]);
    let all: Vec<Var> = (0..300).map(|i| (&x * i).sin() + f64::from(i)).collect();
    let t = Tensor::from_vec((0..100).map(|i| i as f32).collect(), [100]).unwrap();
    let out = Executor::new().run(&p, feeds! { "x" => t }, &all).unwrap();
    assert_eq!(out.len(), 300);
    assert_eq!(out[299].shape(), [100]);
}

#[test]
fn a_new_batch_size_compiles_nothing() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, ["batch", "features"]);
    let w = p.data("w", DType::F32, [None]);
    let y = (&x * &w + 1.0).tanh() * &x;
    let exe = Executor::new();
    let run = |batch: usize, features: usize| {
        let (x, w) = (Tensor::full([batch, features], 0.5f32).unwrap(), Tensor::full([features], 2.0f32).unwrap());
        exe.run(&p, feeds! { "x" => x, "w" => w }, [&y]).unwrap()
    };
    run(8, 100);
    let before = exe.compiles();
    for (batch, features) in [(1, 100), (3, 100), (64, 128), (1000, 70), (2, 1)] {
        assert_eq!(run(batch, features)[0].shape(), [batch, features]);
    }
    assert_eq!(exe.compiles(), before);
}

#[test]
fn dropping_executors_returns_the_memory_of_their_code() {
    // The mapped regions of this process. Each module of compiled code has one or more.
    let regions = || std::fs::read_to_string("/proc/self/maps").map_or(0, |m| m.lines().count());
    let compile = |i: i64| {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, [64]);
        let y = (0..i % 20 + 1).fold(x.clone(), |y, k| if k % 2 == 0 { &y * &x } else { &y + &x });
        let exe = Executor::new();
        let t = Tensor::full([64], 1.0f32).unwrap();
        exe.run(&p, feeds! { "x" => t }, [&y]).unwrap();
        assert_eq!(exe.compiles(), 1);
    };
    (0..20).for_each(compile);
    let before = regions();
    (0..500).for_each(compile);
    assert!(regions() < before + 50, "{before} regions became {}", regions());
}

#[test]
fn the_cache_of_kernels_is_bounded() {
    let exe = Executor::builder().cache(4).build();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [8]);
    let t = Tensor::full([8], 2.0f32).unwrap();
    let all: Vec<Var> = (1..12).map(|i| (0..i).fold(x.clone(), |y, _| &y * &x)).collect();
    for _ in 0..3 {
        for (i, y) in all.iter().enumerate() {
            let out = exe.run(&p, feeds! { "x" => &t }, [y]).unwrap();
            assert_eq!(out[0].to_vec::<f32>().unwrap(), [2f32.powi(i as i32 + 2); 8]);
        }
    }
}
