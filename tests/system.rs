//! Resources that the system refuses: pages for compiled code, and threads. Runs work without them, with the same bits.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "child processes give up what they may do")]

use std::process::Command;
use std::sync::Barrier;

use castwise::prelude::*;

/// Runs a test of this file in its own process. Returns its output.
fn child(test: &str, level: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .envs([("CASTWISE_TEST_CHILD", "1"), ("CASTWISE_CPU", level)])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{level}: {text}");
    text
}

fn is_child() -> bool {
    std::env::var_os("CASTWISE_TEST_CHILD").is_some()
}

/// A program that is split among threads, and its feed.
fn program() -> (Program, Var, Tensor) {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    let y = (&x * 0.5 + 1.0).sqrt() + x.exp().sum();
    (p, y, Tensor::from_vec((0..200_000).map(|i| i as f32 / 1e5).collect(), [200_000]).unwrap())
}

fn bytes(exe: &Executor, (p, y, x): &(Program, Var, Tensor)) -> Vec<u8> {
    exe.run(p, feeds! { "x" => x }, [y]).unwrap()[0].as_bytes().unwrap().to_vec()
}

/// Runs in the child: no page that was written may become executable.
#[test]
fn child_without_code() {
    if !is_child() {
        return;
    }
    let program = program();
    let right = bytes(&Executor::builder().jit(false).build(), &program);
    // PR_SET_MDWE with PR_MDWE_REFUSE_EXEC_GAIN, since Linux 6.3. SAFETY: a system call whose arguments are all
    // numbers.
    if unsafe { libc::prctl(65, 1, 0, 0, 0) } != 0 {
        println!("not forbidden here");
        return;
    }
    let exe = Executor::new();
    for _ in 0..3 {
        assert!(bytes(&exe, &program) == right);
    }
    assert_eq!(exe.compiles(), 0);
    assert!(exe.dump(&program.0, [&program.1]).is_ok());
    println!("without code");
}

#[test]
fn without_memory_for_code_block_kernels_compute() {
    for level in ["baseline", "avx2", "avx512"] {
        let text = child("child_without_code", level);
        assert!(text.contains("without code") || text.contains("not forbidden here"), "{text}");
    }
}

/// Runs in the child: no more threads can be started.
#[test]
fn child_without_threads() {
    if !is_child() {
        return;
    }
    let program = program();
    let right = bytes(&Executor::builder().threads(1).build(), &program);
    let (ready, start) = (Barrier::new(5), Barrier::new(5));
    std::thread::scope(|s| {
        let runs = || {
            let exe = Executor::builder().threads(8).build();
            ready.wait();
            start.wait();
            (0..100).for_each(|_| assert!(bytes(&exe, &program) == right));
        };
        let all: Vec<_> = (0..4).map(|_| s.spawn(runs)).collect();
        ready.wait();
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: system calls on local values. The limit does not apply to the superuser.
        unsafe {
            assert_eq!(libc::setrlimit(libc::RLIMIT_NPROC, &none), 0);
            if libc::geteuid() == 0 {
                assert_eq!(libc::setuid(65534), 0);
            }
        }
        assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "threads can be started");
        start.wait();
        all.into_iter().for_each(|t| t.join().unwrap());
    });
    println!("without threads");
}

#[test]
fn without_threads_the_callers_compute_alone() {
    let text = child("child_without_threads", "avx512");
    assert!(text.contains("without threads"), "{text}");
}
