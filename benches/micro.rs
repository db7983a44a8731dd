//! Microbenchmarks with criterion: compile latency, dispatch, calls of several threads, kernels of functions, layouts, inference; and programs
//! whose times depend on constants of `plan/tuning.rs` that were not chosen by measurement, for blocks of rows, transposed operands and long
//! lines (`-- tuning`).
//!
//! `cargo bench --bench micro [-- FILTER]`. After the kernels, a table gives the nanoseconds per element in the L1
//! cache and the ratio to `exp` of f32. Guarantees: one thread, but for long lines and concurrent calls; compile latency includes writing the
//! program and uses a new executor each time. Does not: verify results; the tests and the workloads bench do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use castwise::ops::{Attrs, Op};
use castwise::prelude::*;
use castwise::{Operand, Pass, apply};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};

#[path = "workloads/graphs.rs"]
mod graphs;

use graphs::{chain, four, line};

type Feed = Vec<(&'static str, Tensor)>;

fn executor() -> Executor {
    Executor::builder().threads(1).build()
}

fn f32s(n: usize) -> Tensor {
    Tensor::from_vec((0..n).map(|i| 0.5 + (i % 97) as f32 / 200.0).collect(), [n]).expect("n elements")
}

fn feeds(n: usize) -> Feed {
    ["a", "b", "c", "d"].map(|name| (name, f32s(n))).to_vec()
}

/// The time to the first result at 16 elements, with nothing cached.
fn compile(c: &mut Criterion) {
    let mut group = c.benchmark_group("compile");
    for ops in [10, 100, 1000] {
        group.throughput(Throughput::Elements(ops as u64));
        let feeds = feeds(16);
        group.bench_with_input(BenchmarkId::from_parameter(ops), &ops, |b, ops| {
            b.iter(|| {
                let (p, vars) = four(16);
                let y = line(&vars, *ops, 0);
                executor().run(&p, feeds.clone(), [&y]).expect("it runs")
            });
        });
    }
    group.finish();
}

/// One call of a cached chain of ten operations at 16 elements, and the same chain in eager mode.
fn dispatch(c: &mut Criterion) {
    let mut group = c.benchmark_group("dispatch");
    let (p, vars) = four(16);
    let (y, executor, feeds) = (chain(&vars), executor(), feeds(16));
    group.bench_function("cached", |b| {
        b.iter(|| executor.run(&p, feeds.clone(), [&y]).expect("it runs"));
    });
    let cx = Eager::new(Rules::Torch);
    let v: Vec<Var<Eager>> = feeds.iter().map(|(_, t)| cx.tensor(t)).collect();
    group.bench_function("eager", |b| {
        b.iter(|| {
            let (a, b, c, d) = (&v[0], &v[1], &v[2], &v[3]);
            let y = ((a * b + c) * 0.5 - d) * (a + 1.25) + (b - c) * (d * 0.125);
            y.result().expect("it runs")
        });
    });
    group.finish();
}

/// Calls of one prepared program by several threads at once, on elements of their own: the time of a call of each, which is that on one thread
/// if threads share nothing and there are cores for all.
fn concurrent(c: &mut Criterion) {
    let mut group = c.benchmark_group("concurrent");
    let p = Program::new(Rules::Torch);
    let y = p.data("a", DType::F32, [None]) + p.data("b", DType::F32, [None]);
    let step = executor().prepare(&p, [&y]).expect("it compiles");
    let calls = |n: usize, rounds: u64| {
        let (a, b) = (vec![1f32; n], vec![2f32; n]);
        for _ in 0..rounds {
            let view = |x| TensorView::from_slice(x, [n]).expect("n elements");
            black_box(step.run_views(&[view(&a), view(&b)]).expect("it runs"));
        }
    };
    for (n, threads) in [16, 8192].into_iter().flat_map(|n| [1, 2, 4].map(|threads| (n, threads))) {
        group.bench_function(BenchmarkId::new(format!("{threads} threads"), n), |b| {
            b.iter_custom(|rounds| {
                let start = Instant::now();
                std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(|| calls(n, rounds))));
                start.elapsed()
            });
        });
    }
    group.finish();
}

/// The elementwise ops of one float operand.
fn functions() -> impl Iterator<Item = Op> {
    let typed = |op: &Op, d| {
        let p = Program::new(Rules::Torch);
        let y = apply(*op, &[Operand::Var(p.data("x", d, [1]))], Attrs::default());
        p.infer().is_ok_and(|t| t.dtype(&y).is_some())
    };
    Op::ALL.iter().copied().filter(move |op| {
        op.arity() == 1 && !op.has_dims() && !matches!(op, Op::Cast | Op::ViewAs) && typed(op, DType::F64)
    })
}

/// The numbers of elements of the two calls, for `f32` and `f64`: operand and result of the longer one take 24 KiB,
/// which fits in every L1 cache.
const SIZES: [[usize; 2]; 2] = [[1024, 3072], [512, 1536]];

/// Every function, as a program of one op that writes into the same tensor in each call. The arguments lie in `0.5..1`,
/// where all functions are defined except `acosh`, whose arguments are increased by one.
fn kernels(c: &mut Criterion) {
    let seen: RefCell<BTreeMap<(&str, DType), [f64; 2]>> = RefCell::default();
    let mut group = c.benchmark_group("kernel");
    group.sample_size(10).warm_up_time(Duration::from_millis(25)).measurement_time(Duration::from_millis(75));
    for op in functions() {
        for (dtype, sizes) in [DType::F32, DType::F64].into_iter().zip(SIZES) {
            for (which, n) in sizes.into_iter().enumerate() {
                group.throughput(Throughput::Elements(n as u64));
                let shift = if op == Op::Acosh { 1.0 } else { 0.0 };
                let x = (Eager::new(Rules::Torch).tensor(&f32s(n)) + shift).cast(dtype).result().expect("it runs");
                let p = Program::new(Rules::Torch);
                let y = apply(op, &[Operand::Var(p.data("x", dtype, [n]))], Attrs::default());
                let call = executor().prepare(&p, [&y]).expect("it compiles");
                let mut into = call.run(&[&x]).expect("it runs");
                group.bench_function(BenchmarkId::new(op.name(), format!("{dtype}/{n}")), |b| {
                    b.iter_custom(|rounds| {
                        let start = Instant::now();
                        for _ in 0..rounds {
                            call.run_into(black_box(&[&x]), &mut into).expect("it runs");
                        }
                        let all = start.elapsed();
                        let each = all.as_secs_f64() * 1e9 / rounds as f64;
                        let mut seen = seen.borrow_mut();
                        let best = &mut seen.entry((op.name(), dtype)).or_insert([f64::MAX; 2])[which];
                        *best = best.min(each);
                        all
                    });
                });
            }
        }
    }
    group.finish();
    ratios(&seen.into_inner());
}

/// The time of one additional element, from the best rounds of each kernel, and its ratio to that of `exp` in f32. The
/// overhead of a call is not included.
fn ratios(seen: &BTreeMap<(&str, DType), [f64; 2]>) {
    let element = |dtype: DType, times: &[f64; 2]| {
        let [few, many] = SIZES[dtype.size() / 8];
        (times[1] - times[0]) / (many - few) as f64
    };
    let Some(exp) = seen.get(&("exp", DType::F32)).map(|t| element(DType::F32, t)) else { return };
    println!("{:<12} {:>5} {:>12} {:>14}", "kernel", "dtype", "ns/element", "of exp in f32");
    for ((name, dtype), times) in seen {
        let t = element(*dtype, times);
        println!("{name:<12} {:>5} {t:>12.3} {:>14.2}", dtype.name(), t / exp);
    }
    println!();
}

/// Strided and broadcast operands, and reductions of rows, on one thread: 2^18 elements, which fit in the L2 cache.
fn layouts(c: &mut Criterion) {
    type Make = fn(&[Var]) -> Var;
    const N: usize = 1 << 18;
    let add: Make = |v| &v[0] + &v[1];
    let norm: Make = |v| (&v[0] - &v[1]) * &v[2] * &v[3] + &v[4];
    let softmax: Make = |v| {
        let e = (&v[0] - v[0].over([-1]).keepdim().amax()).exp();
        &e / e.over([-1]).keepdim().sum()
    };
    let dot: Make = |v| (&v[0] * &v[1]).over([-1]).sum();
    let rows = |n: usize| [N / n, n];
    let mut cases: Vec<(String, Vec<[usize; 2]>, Make)> = vec![
        ("pixels_by_channel".into(), vec![rows(3), [1, 3]], add),
        ("pixels_by_mask".into(), vec![rows(3), [N / 3, 1]], add),
        ("rows_by_scale/64".into(), vec![rows(64), [N / 64, 1]], add),
    ];
    for n in [1024, 4096] {
        cases.push((format!("norm/{n}"), vec![rows(n), [N / n, 1], [N / n, 1], [1, n], [1, n]], norm));
    }
    for n in [64, 256, 4096] {
        cases.push((format!("softmax/{n}"), vec![rows(n)], softmax));
        cases.push((format!("dot/{n}"), vec![rows(n); 2], dot));
        cases.push((format!("amax/{n}"), vec![rows(n)], |v| v[0].over([-1]).amax()));
    }
    for n in [3, 64, 1024] {
        cases.push((format!("sum_of_columns/{n}"), vec![rows(n)], |v| v[0].over([0]).sum()));
        cases.push((format!("variance_of_columns/{n}"), vec![rows(n)], |v| {
            let d = &v[0] - v[0].over([0]).keepdim().mean();
            (&d * &d).over([0]).mean()
        }));
    }
    cases.push(("transposed/512".into(), vec![[512, N / 512], rows(512)], add));
    let mut group = c.benchmark_group("layouts");
    group.sample_size(10).warm_up_time(Duration::from_millis(50)).measurement_time(Duration::from_millis(150));
    for (name, shapes, make) in &cases {
        for dtype in [DType::F16, DType::F32, DType::F64] {
            let cx = Eager::new(Rules::Torch);
            let of = |shape: &[usize; 2]| {
                let t = f32s(shape[0] * shape[1]).reshape(shape.as_slice()).expect("as many");
                cx.tensor(&t).cast(dtype).result().expect("it runs")
            };
            let mut feeds: Vec<Tensor> = shapes.iter().map(of).collect();
            if name.starts_with("transposed") {
                feeds[0] = feeds[0].transpose(0, 1).expect("two dims");
            }
            let p = Program::new(Rules::Torch);
            let vars: Vec<Var> =
                feeds.iter().enumerate().map(|(i, t)| p.data(&format!("x{i}"), dtype, t.shape())).collect();
            let call = executor().prepare(&p, [&make(&vars)]).expect("it compiles");
            let feeds: Vec<&Tensor> = feeds.iter().collect();
            group.throughput(Throughput::Elements(N as u64));
            group.bench_function(BenchmarkId::new(name, dtype.name()), |b| {
                b.iter(|| call.run(black_box(&feeds)).expect("it runs"));
            });
        }
    }
    group.finish();
}

/// Inference of a program, per node.
fn inference(c: &mut Criterion) {
    let mut group = c.benchmark_group("infer");
    group.sample_size(10);
    for nodes in [1_000, 100_000] {
        let (p, vars) = four(16);
        line(&vars, nodes - vars.len(), 0);
        assert_eq!(p.len(), nodes);
        group.throughput(Throughput::Elements(nodes as u64));
        // Copies that have not been typed: what was typed once is kept.
        let copy = |p: &Program| p.with_rules(Rules::Torch);
        let infer = |p: &Program| p.infer().expect("it is right");
        group.bench_function(BenchmarkId::new("one_dtype", nodes), |b| {
            b.iter_batched_ref(|| copy(&p), |p| infer(p), BatchSize::LargeInput);
        });

        // Every third operation has operands of different dtypes, so that inference inserts casts.
        let p = Program::new(Rules::Torch);
        let vars = [DType::F16, DType::BF16, DType::I32].map(|d| p.data(d.name(), d, [16]));
        let mut y = vars[0].clone();
        for i in 0..nodes - vars.len() {
            y = if i % 3 == 0 { &y * 0.5 } else { y.cast(DType::F16) + &vars[i % 3] };
            if p.len() >= nodes {
                break;
            }
        }
        group.throughput(Throughput::Elements(p.len() as u64));
        group.bench_function(BenchmarkId::new("mixed_dtypes", nodes), |b| {
            b.iter_batched_ref(|| copy(&p), |p| infer(p), BatchSize::LargeInput);
        });
    }
    group.finish();
}

/// Measures a program of one operand.
fn tuned(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: String,
    executor: &Executor,
    t: &Tensor,
    make: &dyn Fn(&Var) -> Vec<Var>,
) {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", t.dtype(), t.shape());
    let call = executor.prepare(&p, &make(&x)).expect("it compiles");
    let mut into = call.run(&[t]).expect("it runs");
    group.throughput(Throughput::Elements(t.numel() as u64));
    group.bench_function(name, |b| b.iter(|| call.run_into(black_box(&[t]), &mut into).expect("it runs")));
}

/// Blocks of rows of several sizes (`ROW_GROUP_BYTES`) and none; sums of transposed operands of several sizes beside their contiguous copies
/// (`IN_ORDER_FROM`, `IN_ORDER_BYTES`); reductions in one pass and in one each; long lines on one and two threads (`SORTED_PART`); blocks
/// beside a factor for each row.
fn tuning(c: &mut Criterion) {
    let mut group = c.benchmark_group("tuning");
    group.sample_size(10).warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(600));
    let of = |shape: &[usize]| f32s(shape.iter().product()).reshape(shape).expect("as many");
    for n in [64, 768, 4096] {
        let t = of(&[(1 << 22) / n, n]);
        let softmax: &dyn Fn(&Var) -> Vec<Var> = &|x| vec![x.softmax([-1])];
        tuned(
            &mut group,
            format!("softmax/{n}/apart"),
            &Executor::builder().threads(1).without(Pass::Rows).build(),
            &t,
            softmax,
        );
        for kib in [64, 128, 256, 512, 1024, 2048, 4096] {
            let executor = Executor::builder().threads(1).row_block(kib << 10).build();
            tuned(&mut group, format!("softmax/{n}/{kib} KiB"), &executor, &t, softmax);
        }
    }
    for (rows, n) in [(32, 256), (128, 256), (512, 256), (4096, 1024), (64, 1 << 16), (16, 1 << 18), (16, 1 << 20)] {
        let t = of(&[rows, n]);
        let sum: &dyn Fn(&Var) -> Vec<Var> = &|x| vec![x.sum()];
        tuned(
            &mut group,
            format!("sum/{n} x {rows}/transposed"),
            &executor(),
            &t.transpose(0, 1).expect("two dims"),
            sum,
        );
        tuned(&mut group, format!("sum/{n} x {rows}/contiguous"), &executor(), &t, sum);
    }
    let t = of(&[1 << 12, 1 << 10]);
    let over = |x: &Var| x.over([-1]);
    tuned(&mut group, "reductions/joined".into(), &executor(), &t, &|x| {
        vec![over(x).var(), over(x).mean(), over(x).amax()]
    });
    tuned(&mut group, "reductions/var".into(), &executor(), &t, &|x| vec![over(x).var()]);
    tuned(&mut group, "reductions/mean".into(), &executor(), &t, &|x| vec![over(x).mean()]);
    tuned(&mut group, "reductions/amax".into(), &executor(), &t, &|x| vec![over(x).amax()]);
    for threads in [1, 2] {
        let executor = Executor::builder().threads(threads).build();
        for n in [1 << 15, 1 << 18, 1 << 22] {
            let name = |op: &str| format!("{op}/{n}/{threads} threads");
            tuned(&mut group, name("cumsum"), &executor, &of(&[n]), &|x| vec![x.cumsum()]);
            tuned(&mut group, name("logcumsumexp"), &executor, &of(&[n]), &|x| vec![x.logcumsumexp()]);
            tuned(&mut group, name("sort"), &executor, &of(&[n]), &|x| vec![(x * 1009.0).sin().sort()]);
        }
    }
    let t = of(&[1 << 12, 1 << 12]);
    tuned(&mut group, "blocks".into(), &executor(), &t, &|x| {
        vec![x * x.slice(0, 0, 32, 1).slice(1, 0, 32, 1).blocks(x, 128)]
    });
    tuned(&mut group, "blocks/factor".into(), &executor(), &t, &|x| vec![x * 0.5]);
    group.finish();
}

fn main() {
    let mut c = Criterion::default().configure_from_args();
    compile(&mut c);
    dispatch(&mut c);
    concurrent(&mut c);
    kernels(&mut c);
    layouts(&mut c);
    inference(&mut c);
    tuning(&mut c);
    c.final_summary();
}
