//! Limits: each is a named constant or a setting. Exceeding it gives an error that names it, and reaching it does not.
//! A failed allocation is an error. A cancelled run gives no results and leaves the executor usable.
#![allow(unsafe_code, reason = "a child process limits its own memory")]

use std::process::Command;
use std::time::Duration;

use castwise::expr::MAX_EXPRESSION;
use castwise::prelude::*;
use castwise::shape::MAX_RANK;
use castwise::{CancelToken, Error, MAX_FETCHES, MAX_NODES};

#[path = "limits/chosen.rs"]
mod chosen;

/// Whether the error names this limit with this maximum.
fn limited<T>(made: castwise::Result<T>, what: &str, max: usize) -> bool {
    match made {
        Err(Error::Limit { which, max: m, got }) => {
            assert!(which.contains(what) && m == max as u64 && got > m, "{which} {m} {got}");
            true
        }
        _ => false,
    }
}

#[test]
fn rank_and_elements() {
    for (rank, refused) in [(MAX_RANK - 1, false), (MAX_RANK, false), (MAX_RANK + 1, true)] {
        let shape = vec![1; rank];
        let t = Tensor::full(&shape, 1.5f32);
        assert_eq!(t.is_err(), refused);
        assert_eq!(limited(t, "rank", MAX_RANK), refused);
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, shape.clone());
        assert_eq!(p.check().is_err(), refused);
        let y = &x + 1.0;
        let made =
            Tensor::scalar(1.5f32).broadcast_to(&shape).map(|t| Executor::new().run(&p, feeds! { "x" => t }, [&y]));
        assert_eq!(!made.is_ok_and(|r| r.is_ok()), refused);
    }
    // A view has no memory of its own, so the largest shapes can be tested.
    let most = isize::MAX as usize / 16;
    for (n, refused) in [(most - 1, false), (most, false), (most + 1, true)] {
        assert_eq!(limited(Tensor::scalar(1u8).broadcast_to([n]), "elements", most), refused);
        let p = Program::new(Rules::Torch);
        p.data("x", DType::U8, [n]);
        assert_eq!(p.check().is_err(), refused);
    }
    for shape in [&[1usize << 32, 1 << 32][..], &[4194305, 4194305, 211106198978564], &[usize::MAX, usize::MAX]] {
        assert!(limited(Tensor::zeros(DType::F64, shape), "elements", most));
    }
}

#[test]
fn results() {
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [1]) + 1.0;
    let x = Tensor::full([1], 1.0f32).unwrap();
    let exe = Executor::new();
    for (n, refused) in [(MAX_FETCHES - 1, false), (MAX_FETCHES, false), (MAX_FETCHES + 1, true)] {
        let fetches = vec![&y; n];
        assert_eq!(limited(exe.prepare(&p, fetches.iter().copied()), "results", MAX_FETCHES), refused);
        match exe.run(&p, feeds! { "x" => &x }, fetches) {
            Ok(all) => assert_eq!((all.len(), refused), (n, false)),
            made => assert!(limited(made, "results", MAX_FETCHES)),
        }
    }
}

#[test]
fn text_and_nesting() {
    let p = Program::new(Rules::Torch);
    p.data("x", DType::F32, [1]);
    for (n, refused) in [(MAX_EXPRESSION - 1, false), (MAX_EXPRESSION, false), (MAX_EXPRESSION + 1, true)] {
        let made = p.expression(&(" ".repeat(n - 1) + "x"));
        assert_eq!(made.is_err(), refused);
        assert_eq!(limited(made, "length of the expression", MAX_EXPRESSION), refused);
    }
    for (n, refused) in [(MAX_NODES, false), (MAX_NODES + 1, true)] {
        let error = p.expression(&"(".repeat(n)).unwrap_err().to_string();
        assert_eq!(error.contains(&format!("more than {MAX_NODES}")), refused, "{error}");
    }
}

#[test]
fn the_bytes_of_a_run() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    // A result with 4 bytes per element, and two kernels with an intermediate tensor between them.
    let one = x.exp();
    let centred = &x.exp() - x.exp().mean();
    let t = Tensor::full([1000], 0.5f32).unwrap();
    let run = |bytes: usize, y: &Var| {
        let exe = Executor::builder().max_bytes(bytes).threads(1).build();
        // The second run takes the path for cached plans.
        let first = exe.run(&p, feeds! { "x" => &t }, [y]);
        let second = exe.run(&p, feeds! { "x" => &t }, [y]);
        assert_eq!(first.is_ok(), second.is_ok());
        second
    };
    for (bytes, refused) in [(3999, true), (4000, false), (4001, false)] {
        assert_eq!(limited(run(bytes, &one), "bytes", bytes), refused);
    }
    // Finds the smallest sufficient limit. One byte less is an error.
    let needs = (4000..20_000).find(|bytes| run(*bytes, &centred).is_ok()).unwrap();
    assert!(needs > 8000 && limited(run(needs - 1, &centred), "bytes", needs - 1), "{needs}");
    assert!(run(needs + 1, &centred).is_ok());
    // Runs release the memory that they allocated.
    let exe = Executor::builder().max_bytes(needs).threads(1).build();
    (0..10).for_each(|_| drop(exe.run(&p, feeds! { "x" => &t }, [&centred]).unwrap()));
}

/// What sorts, scans and searches take beside their results counts: words of keys and positions, totals of blocks, positions in pieces.
#[test]
fn the_bytes_of_sorts_scans_and_searches() {
    let n = 1usize << 20;
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [n]);
    let t = Tensor::full([n], 0.5f32).unwrap();
    let columns = x.reshape([n as i64 / 4, 4]).over([0]).cumsum();
    let cases = [
        (x.sort(), 4 * n + 8 * n),
        (x.cumsum(), 4 * n),
        (columns, 4 * n + n / 512 * 8),
        (x.argmax(), 8 + n / (1 << 16) * 8),
    ];
    for (y, needs) in &cases {
        let run = |bytes: usize| {
            let exe = Executor::builder().max_bytes(bytes).threads(2).build();
            exe.run(&p, feeds! { "x" => &t }, [y])
        };
        assert!(limited(run(needs - 1), "bytes", needs - 1), "{needs}: {:?}", run(needs - 1).err());
        assert!(run(*needs).is_ok(), "{needs}: {:?}", run(*needs).err());
    }
}

/// Sums of so many elements that only cancellation ends the run. The feed is broadcast, so it takes no memory.
fn endless() -> (Program, Var, Tensor) {
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F64, [None, None]).exp().sum();
    let line = Tensor::from_vec((0..1 << 16).map(f64::from).collect(), [1 << 16]).unwrap();
    (p, y, line.broadcast_to([1 << 20, 1 << 16]).unwrap())
}

#[test]
fn a_token_stops_a_run_and_leaves_the_executor_whole() {
    let (p, y, large) = endless();
    let small = Tensor::from_slice(&[0.5f64, -1.0, 2.0], [1, 3]).unwrap();
    let column = large.transpose(0, 1).unwrap();
    for threads in [1, 3] {
        let exe = Executor::builder().threads(threads).build();
        let step = exe.prepare(&p, [&y]).unwrap();
        let right = exe.run(&p, feeds! { "x" => &small }, [&y]).unwrap()[0].to_vec::<f64>().unwrap();
        for large in [&large, &column] {
            let token = CancelToken::new();
            let stopped = std::thread::scope(|s| {
                let run = s.spawn(|| step.run_with(&[large], &token));
                std::thread::sleep(Duration::from_millis(30));
                token.cancel();
                run.join().unwrap()
            });
            assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
            // Cancellation before the start works too, and other runs are unaffected.
            assert!(matches!(step.run_with(&[&small], &token), Err(Error::Cancelled)));
            assert_eq!(step.run(&[&small]).unwrap()[0].to_vec::<f64>().unwrap(), right);
            let other = CancelToken::new();
            assert_eq!(step.run_with(&[&small], &other).unwrap()[0].to_vec::<f64>().unwrap(), right);
        }
    }
}

#[test]
fn a_stopped_run_leaves_no_plan_or_code_of_its_own() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    // Two kernels: the token is checked before each is compiled.
    let y = &x - x.sum();
    let (exe, token) = (Executor::new(), CancelToken::new());
    token.cancel();
    let t = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    for _ in 0..3 {
        assert!(matches!(exe.run_with(&p, feeds! { "x" => &t }, [&y], &token), Err(Error::Cancelled)));
        assert_eq!(exe.compiles(), 0);
    }
    assert_eq!(exe.run(&p, feeds! { "x" => &t }, [&y]).unwrap()[0].to_vec::<f32>().unwrap(), [-2.0, -1.0]);
}

#[test]
fn a_time_limit_stops_every_run() {
    let (p, y, large) = endless();
    let limit = Duration::from_millis(20);
    let exe = Executor::builder().threads(2).time_limit(limit).build();
    for _ in 0..2 {
        let stopped = exe.run(&p, feeds! { "x" => &large }, [&y]);
        assert!(matches!(stopped, Err(Error::TimeLimit { limit: l }) if l == limit), "{stopped:?}");
    }
    let mut into = [Tensor::scalar(0.0f64)];
    assert!(matches!(exe.run_into(&p, feeds! { "x" => &large }, [&y], &mut into), Err(Error::TimeLimit { .. })));
    assert_eq!(into[0].item::<f64>().unwrap(), 0.0);
    // A time limit that no clock reaches has no effect.
    let exe = Executor::builder().time_limit(Duration::MAX).build();
    let small = Tensor::zeros(DType::F64, [2, 3]).unwrap();
    assert_eq!(exe.run(&p, feeds! { "x" => small }, [&y]).unwrap()[0].item::<f64>().unwrap(), 6.0);
}

/// What depends on constants alone is computed before a run, but not if it is large.
#[test]
fn large_constants_are_computed_under_the_limits_of_a_run() {
    let program = |expression: &str| -> Program {
        let (first, rest) =
            ("castwise 1\nprogram(rules = torch) (%x: f32[1]) {\n  %c = constant f32[1] [1.5] to ", "  fetch %y\n}\n");
        format!("{first}{expression}{rest}").parse().unwrap()
    };
    let exe = Executor::builder().time_limit(Duration::from_millis(20)).build();
    for steps in
        ["  %e = exp %c\n  %s = sum %e\n  %y = mul %x, %s\n", "  %d = add %c, ~1\n  %p = mul %x, %d\n  %y = sum %p\n"]
    {
        let p = program(&format!("[1000000000000]\n{steps}"));
        let stopped = exe.run(&p, feeds! { "x" => Tensor::from([1f32]) }, [&p.fetches()[0].var]);
        assert!(matches!(stopped, Err(Error::TimeLimit { .. })), "{stopped:?}\n{p}");
    }
}

/// Runs in the child: exhausts its memory in each possible way.
#[cfg(target_os = "linux")]
#[test]
fn child_without_memory() {
    if std::env::var_os("CASTWISE_TEST_CHILD").is_none() {
        return;
    }
    let exe = Executor::builder().threads(1).build();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    let t = Tensor::zeros(DType::F32, [25_000_000]).unwrap();
    let small = Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap();
    let works = || exe.run(&p, feeds! { "x" => &small }, [&x.sqrt()]).unwrap()[0].to_vec::<f32>().unwrap();
    let right = works();
    let used = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = used.split(' ').next().unwrap().parse().unwrap();
    let rlim_cur = pages * 4096 + (150 << 20);
    let limit = libc::rlimit { rlim_cur, rlim_max: rlim_cur };
    // SAFETY: a system call on a local value.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    let out_of = |made: castwise::Result<()>| assert!(matches!(made, Err(Error::OutOfMemory { .. })), "{made:?}");
    out_of(Tensor::zeros(DType::F64, [1 << 30]).map(drop));
    out_of(Tensor::full([1 << 30], 1u8).map(drop));
    // One result fits in memory, two do not. This is repeated.
    for _ in 0..3 {
        out_of(exe.run(&p, feeds! { "x" => &t }, [&(&x + 1.0), &(&x * 2.0)]).map(drop));
        assert_eq!(works(), right);
    }
    let kept = exe.run(&p, feeds! { "x" => &t }, [&(&x - 1.0)]).unwrap();
    out_of(kept[0].to_vec::<f32>().map(drop));
    out_of(kept[0].flip(0).unwrap().contiguous().map(drop));
    out_of(
        Eager::new(Rules::Torch)
            .tensor(&t)
            .exp()
            .result()
            .map_err(|e| match e {
                Error::Earlier(e) if matches!(*e, Error::OutOfMemory { bytes: 100_000_000 }) => {
                    Error::OutOfMemory { bytes: 0 }
                }
                e => e,
            })
            .map(drop),
    );
    drop(kept);
    assert_eq!(works(), right);
    println!("all refused");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_the_system_refuses_is_an_error() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_without_memory", "--nocapture", "--test-threads=1"])
        .env("CASTWISE_TEST_CHILD", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && text.contains("all refused"), "{text}");
}

/// One op more than the limit is an error, and the ops before it still work.
#[test]
fn a_process_has_room_for_so_many_custom_ops() {
    use castwise::{CustomOp, CustomOpError, MAX_CUSTOM_OPS, Promotion, Registry};
    let mut ops = Registry::new();
    let mut made = Vec::new();
    for i in 0..=MAX_CUSTOM_OPS {
        let add = i as i64;
        let op = CustomOp::new(&format!("add_{i}"), ["x"], Promotion::Common).with(move |[x]: [i64; 1]| x + add);
        match ops.register(op) {
            Ok(op) => made.push(op),
            Err(e) => {
                assert!(matches!(e, Error::CustomOp(CustomOpError::TooMany { max: MAX_CUSTOM_OPS })), "{e}");
            }
        }
    }
    assert_eq!((made.len(), ops.ops().count()), (MAX_CUSTOM_OPS, MAX_CUSTOM_OPS));
    let x = Eager::new(Rules::Torch).tensor(&Tensor::scalar(1i64));
    for i in [0, 1000, MAX_CUSTOM_OPS - 1] {
        assert_eq!(x.apply(made[i], &[]).result().unwrap().item::<i64>().unwrap(), 1 + i as i64);
    }
    assert_eq!(ops.op("add_7"), Some(made[7]));
}
