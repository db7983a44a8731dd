//! The statistics of an executor.

use std::time::Duration;

use castwise::prelude::*;

fn program() -> (Program, Var, Var) {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F16, [None, Some(4)]);
    let y = &x + &p.data("b", DType::F32, [4]);
    let s = y.over([0]).sum();
    (p, y, s)
}

#[test]
fn everything_is_counted_once() {
    let (p, y, s) = program();
    let exe = Executor::builder().threads(1).build();
    assert_eq!(exe.stats(), castwise::Stats::default());
    let b = Tensor::zeros(DType::F32, [4]).unwrap();
    let run = |n: usize, fetches: &[&Var]| {
        let x = Tensor::zeros(DType::F16, [n, 4]).unwrap();
        exe.run(&p, feeds! { "x" => x, "b" => &b }, fetches.iter().copied())
    };
    run(3, &[&y]).unwrap();
    run(3, &[&y]).unwrap();
    let stats = exe.stats();
    assert_eq!((stats.runs, stats.bindings, stats.inferences), (2, 1, 1));
    assert_eq!((stats.plans, stats.plan_hits, stats.compiles, stats.kernel_hits), (1, 0, exe.compiles(), 0));
    // Two kernels, each reading 12 f16 and 4 f32 elements and writing 12 f32 elements.
    assert_eq!((stats.kernels, stats.bytes_read, stats.bytes_written), (2, 2 * (24 + 16), 2 * 48));
    assert!(stats.inferring > Duration::ZERO && stats.planning > Duration::ZERO && stats.compiling > Duration::ZERO);
    assert_eq!((stats.running, stats.kernel_times.len()), (Duration::ZERO, 0));

    // Another size is bound again, but reuses the plan and the code. A run without elements launches nothing.
    run(5, &[&y]).unwrap();
    run(0, &[&y]).unwrap();
    let stats = exe.stats();
    assert_eq!((stats.runs, stats.bindings, stats.plans, stats.plan_hits), (4, 3, 1, 2));
    assert_eq!((stats.kernels, stats.kernel_hits), (3, 1));
    assert_eq!((stats.bytes_read, stats.bytes_written), (2 * 40 + 56, 2 * 48 + 80));

    // A reduction counts its result as written. Its operands are fused into it or counted with it.
    let before = exe.stats();
    run(3, &[&s]).unwrap();
    let stats = exe.stats();
    assert_eq!((stats.plans, stats.inferences), (2, 1));
    assert!(stats.bytes_written - before.bytes_written >= 16 && stats.kernels > before.kernels);

    // A run that fails because of an invalid feed is not counted.
    exe.run(&p, feeds! { "x" => &b, "b" => &b }, [&y]).unwrap_err();
    assert_eq!(exe.stats().runs, stats.runs);
}

#[test]
fn kernels_are_timed_if_asked_for() {
    let (p, y, s) = program();
    let exe = Executor::builder().threads(1).timing(true).build();
    let feeds = || feeds! { "x" => Tensor::zeros(DType::F16, [100, 4]).unwrap(), "b" => Tensor::zeros(DType::F32, [4]).unwrap() };
    for _ in 0..3 {
        exe.run(&p, feeds(), [&y]).unwrap();
    }
    exe.run(&p, feeds(), [&s]).unwrap();
    let stats = exe.stats();
    assert!(stats.running > Duration::ZERO);
    assert_eq!(stats.kernel_times.iter().map(|k| k.launches).sum::<u64>(), stats.kernels);
    assert!(stats.kernel_times.iter().any(|k| k.launches == 3 && k.kernel.contains("add")), "{stats:?}");
    assert!(stats.kernel_times.windows(2).all(|w| w[0].time >= w[1].time));
    assert!(stats.to_string().starts_with("4 runs, 2 with new layouts, "), "{stats}");
}
