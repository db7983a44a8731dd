//! Many threads, nested thread pools, destructors: concurrent runs give the results of sequential ones.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use castwise::prelude::*;

use crate::common::{Random, random_tensor};

mod mixed;

/// A program with its feeds and its expected results.
struct Job {
    program: Program,
    fetches: Vec<Var>,
    feeds: Vec<(String, Tensor)>,
    right: Vec<Vec<u8>>,
}

fn bytes(all: &[Tensor]) -> Vec<Vec<u8>> {
    all.iter().map(|t| t.contiguous().unwrap().as_bytes().unwrap().to_vec()).collect()
}

impl Job {
    fn new(program: Program, fetches: Vec<Var>, feeds: Vec<(String, Tensor)>) -> Job {
        let exe = Executor::builder().threads(1).build();
        let right = bytes(&exe.run(&program, feeds.clone(), &fetches).unwrap());
        Job { program, fetches, feeds, right }
    }

    fn check(&self, exe: &Executor) {
        let made = exe.run(&self.program, self.feeds.clone(), &self.fetches).unwrap();
        assert!(bytes(&made) == self.right, "another result of\n{}", self.program);
    }
}

/// Small programs, programs that are split among threads, reductions, and programs that are equal.
fn jobs() -> Vec<Job> {
    let mut r = Random(3);
    let mut all = Vec::new();
    for k in 0..12u64 {
        let n = [5, 64, 1000, 150_000][(k % 4) as usize];
        let p = Program::new(Rules::Torch);
        let d = [DType::F32, DType::F64, DType::F16][(k % 3) as usize];
        let (x, y) = (p.data("x", d, [None]), p.data("y", DType::F32, [1]));
        let z = (&x * (k as f64) + &y).sin() + &x;
        let fetches = if k % 2 == 0 { vec![z.clone(), z.sum()] } else { vec![&z - z.mean(), z] };
        let feeds = vec![
            ("x".to_string(), random_tensor(d, &[n], &mut r, false)),
            ("y".to_string(), random_tensor(DType::F32, &[1], &mut r, false)),
        ];
        all.push(Job::new(p, fetches, feeds));
    }
    all
}

const RUNS: usize = if cfg!(debug_assertions) { 6 } else { 60 };

#[test]
fn threads_of_one_executor_get_what_one_thread_gets() {
    let jobs = jobs();
    // The programs overflow the small cache, so code is freed while other threads run it.
    for cache in [1024, 3] {
        let exe = Executor::builder().threads(3).cache(cache).build();
        let start = Barrier::new(64);
        std::thread::scope(|s| {
            for t in 0..64 {
                let (jobs, exe, start) = (&jobs, &exe, &start);
                s.spawn(move || {
                    start.wait();
                    (0..RUNS).for_each(|i| jobs[(t * 7 + i * 5) % jobs.len()].check(exe));
                });
            }
        });
    }
}

#[test]
fn prepared_programs_can_be_run_from_many_threads_at_once() {
    let jobs = jobs();
    let exe = Executor::builder().threads(2).build();
    let steps: Vec<_> = jobs.iter().map(|j| exe.prepare(&j.program, &j.fetches).unwrap()).collect();
    std::thread::scope(|s| {
        for t in 0..16 {
            let (jobs, steps) = (&jobs, &steps);
            s.spawn(move || {
                for i in 0..RUNS {
                    let (job, step) = (&jobs[(t + i) % jobs.len()], &steps[(t + i) % jobs.len()]);
                    let feeds: Vec<&Tensor> = job.feeds.iter().map(|(_, t)| t).collect();
                    assert!(bytes(&step.run(&feeds).unwrap()) == job.right);
                }
            });
        }
    });
}

#[test]
fn executors_do_not_disturb_each_other() {
    let jobs = jobs();
    std::thread::scope(|s| {
        for t in 0..8 {
            let jobs = &jobs;
            s.spawn(move || {
                for i in 0..RUNS {
                    let exe = Executor::builder().threads(1 + (t + i) % 4).jit(i % 3 > 0).pool((i % 2) << 20).build();
                    jobs[(t * 5 + i) % jobs.len()].check(&exe);
                    jobs[(t * 5 + i) % jobs.len()].check(&exe);
                }
            });
        }
    });
}

#[test]
fn a_run_in_a_pool_of_rayon_ends() {
    let jobs = jobs();
    let exe = Executor::builder().threads(4).build();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.scope(|s| {
            for i in 0..40 {
                let (job, exe) = (&jobs[i % jobs.len()], &exe);
                s.spawn(move |s| {
                    job.check(exe);
                    s.spawn(move |_| job.check(exe));
                });
            }
        });
    }
}

/// Runs a job when it is dropped.
struct Late<'a>(&'a Executor, &'a Job);

impl Drop for Late<'_> {
    fn drop(&mut self) {
        self.1.check(self.0);
    }
}

#[test]
fn a_run_in_a_destructor_of_a_panicking_thread_is_as_any_other() {
    let jobs = jobs();
    let exe = Executor::builder().threads(4).build();
    for job in &jobs {
        for _ in 0..5 {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _late = Late(&exe, job);
                // `resume_unwind` does not print a message.
                std::panic::resume_unwind(Box::new("the caller's"));
            }));
            assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"the caller's"));
            job.check(&exe);
        }
    }
}

#[test]
fn what_is_shared_can_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Program>();
    shared::<Executor>();
    shared::<castwise::Prepared>();
    shared::<Tensor>();
    shared::<Var>();
    shared::<castwise::CancelToken>();
    shared::<castwise::TypedProgram>();
    shared::<castwise::Error>();
}

/// Runs a job when its thread ends.
struct AtTheEnd;

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let x = Tensor::from([1i32, 2, 3]);
        let cx = Eager::new(Rules::Torch);
        let sum = cx.tensor(&x).sqrt().sum().result().unwrap();
        ENDED.store(sum.numel(), Ordering::SeqCst);
    }
}

static ENDED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_thread_can_run_programs_while_it_ends() {
    thread_local! {
        static LAST: AtTheEnd = const { AtTheEnd };
    }
    // This thread-local is initialized first and dropped last, after the library's thread-locals.
    let thread = std::thread::spawn(|| {
        LAST.with(|_| Eager::new(Rules::Torch).tensor(&Tensor::from([4.0f32])).sqrt().result().unwrap())
    });
    thread.join().unwrap();
    assert_eq!(ENDED.load(Ordering::SeqCst), 1);
}
