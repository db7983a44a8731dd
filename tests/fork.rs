//! Forks: a child computes the same results as its parent, whatever the parent's threads were doing, and the parent
//! continues to work.
#![cfg(unix)]
#![allow(unsafe_code, reason = "forks")]

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use castwise::prelude::*;
use castwise::{CustomOp, Prepared, Promotion, Registry};

/// The time limit of a child, which is many times its usual duration.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `work` in a forked child, which must end by itself and without a panic.
fn fork(what: &str, work: impl FnOnce()) {
    let (mut told, teller) = std::io::pipe().unwrap();
    // SAFETY: the child calls `work` and ends without returning. The parts of the standard library that it uses
    // (threads, memory) work in forked children with the C libraries that the tests run with.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child");
    if child == 0 {
        drop(told);
        let made = catch_unwind(AssertUnwindSafe(work));
        if let Err(panic) = &made {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            let _ = (&teller).write_all(text.unwrap_or("a panic").as_bytes());
        }
        // SAFETY: the call ends the process.
        unsafe { libc::_exit(made.is_err().into()) };
    }
    drop(teller);
    let (began, mut status) = (Instant::now(), 0);
    // SAFETY: a system call on a local variable, for a child of this process.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if began.elapsed() > PATIENCE {
            // SAFETY: the process is a child that has not been waited for.
            unsafe { (libc::kill(child, libc::SIGKILL), libc::waitpid(child, &raw mut status, 0)) };
            panic!("the child hangs: {what}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut text = String::new();
    told.read_to_string(&mut text).unwrap();
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{what}: {status:#x} {text}");
}

/// A program with its feeds and its expected results.
struct Job {
    program: Program,
    fetches: Vec<Var>,
    feeds: Vec<Tensor>,
    right: Vec<Vec<u8>>,
    prepared: [Prepared; 2],
}

/// The objects that exist before the fork.
struct Before {
    executors: [Executor; 2],
    jobs: Vec<Job>,
    /// A program that threads of the parent add to.
    growing: Program,
}

fn bytes(all: &[Tensor]) -> Vec<Vec<u8>> {
    all.iter().map(|t| t.contiguous().unwrap().as_bytes().unwrap().to_vec()).collect()
}

fn numbers(n: usize) -> Tensor {
    Tensor::from_vec((0..n).map(|i| (i % 1000) as f32 / 250.0).collect(), [n]).unwrap()
}

fn op() -> Op {
    static OP: OnceLock<Op> = OnceLock::new();
    *OP.get_or_init(|| {
        let half = CustomOp::new("half", ["x"], Promotion::Common).with(|[x]: [f32; 1]| x * 0.5);
        Registry::new().register(half).unwrap()
    })
}

impl Before {
    /// Jobs on one element, on a few, and on so many that threads share them. Nothing has run yet.
    fn new() -> Before {
        let executors = [true, false].map(|jit| Executor::builder().threads(4).jit(jit).build());
        let mut jobs = Vec::new();
        for n in [1, 1000, 300_000] {
            let p = Program::new(Rules::Torch);
            let (x, y) = (p.data("x", DType::F32, [None]), p.data("y", DType::F32, [None]));
            let line = (&x * 0.5 + &y).sqrt() + 0.1;
            let one = x.sin() - y.cast(DType::F16);
            for fetches in [vec![line.clone()], vec![line.sum(), &line - line.mean()], vec![one, x.apply(op(), &[])]] {
                let prepared = executors.each_ref().map(|exe| exe.prepare(&p, &fetches).unwrap());
                let feeds = vec![numbers(n), numbers(n)];
                jobs.push(Job { program: p.clone(), fetches, feeds, right: Vec::new(), prepared });
            }
        }
        let growing = Program::new(Rules::Torch);
        growing.data("x", DType::F32, [3]);
        Before { executors, jobs, growing }
    }

    /// Computes the expected results with a separate executor on this thread.
    fn computed(mut self) -> Before {
        let alone = Executor::builder().threads(1).build();
        for job in &mut self.jobs {
            job.right = bytes(&alone.prepare(&job.program, &job.fetches).unwrap().run(&job.feeds()).unwrap());
        }
        self
    }

    fn check_all(&self) {
        self.jobs.iter().for_each(|job| job.check(&self.executors));
    }

    fn check_small(&self) {
        self.jobs[..2].iter().for_each(|job| job.check(&self.executors));
    }

    /// Runs every job in every way.
    fn check(&self) {
        self.check_all();
        self.grow();
    }

    /// Runs new programs: their kernels are not compiled yet, and their plans evict others.
    fn compile(&self) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let i = NEXT.fetch_add(1, Ordering::Relaxed);
        let p = Program::new(Rules::Torch);
        let x = p.data("x", DType::F32, [None]);
        let y = (0..i % 7).fold(&x * (i as f64), |y, k| y + x.exp() * (k as f64));
        let exe = Executor::builder().threads(2).cache(2).timing(true).build();
        for exe in [&exe, &self.executors[0]] {
            assert_eq!(exe.run(&p, feeds! { "x" => numbers(300) }, [&y]).unwrap()[0].numel(), 300);
        }
    }

    /// Adds to a program, infers, prints and parses it.
    fn grow(&self) {
        let x = self.growing.feed("x").unwrap();
        let y = (&x + 1.5) * x.exp();
        let out = self.executors[0].run(&self.growing, feeds! { "x" => numbers(3) }, [&y]).unwrap();
        assert_eq!(out[0].shape(), [3]);
        let text = self.growing.to_string();
        assert_eq!(Program::parse(&text).unwrap().to_string(), text);
        let v = Eager::new(Rules::Torch).tensor(&numbers(3));
        let eager = ((&v + 1.5) * v.exp()).result().unwrap();
        assert_eq!(eager.as_bytes(), out[0].as_bytes());
    }

    /// Runs in one of many children: a small job and a large one in every way, on two threads at once.
    fn check_some(&self, i: usize) {
        let some = || [i % 6, 6 + i % 3].iter().for_each(|k| self.jobs[*k].check(&self.executors));
        std::thread::scope(|s| {
            s.spawn(some);
            some();
            self.grow();
        });
    }

    /// Runs in a child: on one thread, then on four threads at once, with the parent's executors and with its own.
    fn check_in_child(&self) {
        self.check();
        let start = Barrier::new(4);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    start.wait();
                    self.check();
                });
            }
        });
        let own = [Executor::builder().threads(3).build(), Executor::builder().threads(2).jit(false).build()];
        self.jobs.iter().for_each(|job| job.check(&own));
        assert!(self.executors[0].stats().runs > 0);
    }
}

impl Job {
    fn feeds(&self) -> Vec<&Tensor> {
        self.feeds.iter().collect()
    }

    fn check(&self, executors: &[Executor; 2]) {
        let named = || feeds! { "x" => &self.feeds[0], "y" => &self.feeds[1] };
        for (exe, prepared) in executors.iter().zip(&self.prepared) {
            let text = || format!("another result of\n{}", self.program);
            assert!(bytes(&exe.run(&self.program, named(), &self.fetches).unwrap()) == self.right, "{}", text());
            assert!(bytes(&prepared.run(&self.feeds()).unwrap()) == self.right, "{}", text());
        }
    }
}

/// Runs a test of this file in its own process, at the lowest and the highest CPU level, which have different code
/// generators.
fn alone(test: &str) {
    for level in ["baseline", "avx512"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .envs([("CASTWISE_TEST_CHILD", "1"), ("CASTWISE_CPU", level)])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success() && text.contains("1 passed"), "{level}: {text}");
    }
}

fn is_alone() -> bool {
    std::env::var_os("CASTWISE_TEST_CHILD").is_some()
}

#[test]
fn alone_before_the_first_run() {
    if is_alone() {
        // A thread pool that does not exist in children.
        rayon::join(|| (), || ());
        fork("nothing was made", || Before::new().computed().check_in_child());
        let before = Before::new();
        fork("nothing has run", || before.computed().check_in_child());
        Before::new().computed().check_in_child();
    }
}

#[test]
fn a_child_of_a_process_that_has_run_nothing_computes() {
    alone("alone_before_the_first_run");
}

#[test]
fn alone_after_runs() {
    if is_alone() {
        let before = Before::new().computed();
        std::thread::scope(|s| (0..4).for_each(|_| _ = s.spawn(|| before.check())));
        fork("all is quiet", || {
            before.check_in_child();
            fork("a child of the child", || before.check_in_child());
            before.check_in_child();
        });
        before.check_in_child();
        // The stacks of other threads do not exist in the child, so its data are on the heap.
        let before: &'static Before = Box::leak(Box::new(before));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let (done, wait) = std::sync::mpsc::channel();
        pool.spawn(move || {
            fork("a thread of a pool forks", || before.check_in_child());
            done.send(()).unwrap();
        });
        wait.recv().unwrap();
    }
}

#[test]
fn a_child_computes_after_threads_of_its_parent_have() {
    alone("alone_after_runs");
}

/// Runs `work` while other threads run each of `others` repeatedly.
fn beside<'a>(others: &[&(dyn Fn() + Sync + 'a)], work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        for other in others {
            s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    other();
                }
            });
        }
        // The threads must end even after a failure.
        let made = catch_unwind(AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        made.unwrap_or_else(|e| std::panic::resume_unwind(e));
    });
}

#[test]
fn alone_while_threads_run() {
    if is_alone() {
        let before = Before::new().computed();
        let all: [&(dyn Fn() + Sync); 4] =
            [&|| before.check_all(), &|| before.grow(), &|| before.check_small(), &|| before.compile()];
        beside(&all, || {
            for i in 0..40 {
                fork(&format!("fork {i}"), || before.check_some(i));
            }
            fork("the last fork", || {
                before.check_in_child();
                fork("a child of the child", || before.check_in_child());
            });
            before.check();
        });
    }
}

/// Threads of the parent run small operations almost all the time, so every lock is held during some of the forks.
#[test]
fn alone_while_threads_hold_locks() {
    if is_alone() {
        let before = Before::new().computed();
        let (p, job) = (&before.growing, &before.jobs[0]);
        let y = p.feed("x").unwrap() + 1.0;
        let (declare, named) = (|| p.set_fetches([("y", &y)]).unwrap(), || p.feed("x").unwrap());
        let run = || {
            _ = before.executors[0].run(
                &job.program,
                feeds! { "x" => &job.feeds[0], "y" => &job.feeds[1] },
                &job.fetches,
            )
        };
        let prepared = || _ = job.prepared[0].run(&job.feeds()).unwrap();
        // The threads of this job are pool threads, or wait for them.
        let large = &before.jobs[6];
        let shared = || _ = large.prepared[0].run(&large.feeds()).unwrap();
        let work = |i: usize| {
            declare();
            assert_eq!((&named() + 1.0).index(), p.len() - 1);
            job.check(&before.executors);
            if i.is_multiple_of(4) {
                large.check(&before.executors);
            }
        };
        let all: [(&str, &(dyn Fn() + Sync)); 5] = [
            ("declare", &declare),
            ("name", &|| _ = named()),
            ("run", &run),
            ("run what is prepared", &prepared),
            ("share", &shared),
        ];
        for (what, other) in all {
            beside(&[other, other], || (0..20).for_each(|i| fork(&format!("they {what}, fork {i}"), || work(i))));
        }
    }
}

#[test]
fn a_child_finds_no_lock_held() {
    alone("alone_while_threads_hold_locks");
}

#[test]
fn a_child_computes_while_threads_of_its_parent_do() {
    alone("alone_while_threads_run");
}
