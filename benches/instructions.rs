//! The number of instructions of a call and of a compilation, counted by callgrind, which is free of noise.
//!
//! `cargo bench --bench instructions`. The program runs itself under `valgrind --tool=callgrind`, each case with two
//! numbers of rounds; the difference excludes start-up. Guarantees: castwise runs on one thread. Does not: measure
//! time; valgrind does not support AVX-512, so kernels and loops are those for AVX2. Without valgrind, the bench prints
//! a message and succeeds.

use std::hint::black_box;
use std::process::{Command, ExitCode};

use castwise::prelude::*;

#[path = "workloads/graphs.rs"]
mod graphs;

use graphs::{chain, four, line};

const N: usize = 16;

/// The cases: the name, the work of one round, and the two numbers of rounds.
const CASES: [(&str, &str, usize, usize); 14] = [
    ("prepared", "one call of a prepared chain of 10 ops, 16 elements, into a tensor", 200, 1200),
    ("dispatch", "one call of a cached chain of 10 ops, 16 elements", 200, 1200),
    ("eager", "the same chain op by op", 200, 1200),
    ("infer", "writing and typing a line of 1,000 ops", 1, 5),
    ("first", "first line of 10 ops in a process: write, type, plan, compile, run", 0, 1),
    ("10", "each later line of 10 ops, by a new executor", 1, 5),
    ("100", "of 100 ops", 1, 5),
    ("1000", "of 1,000 ops", 1, 3),
    ("sum 10", "each later sum of a line of 10 ops", 1, 5),
    ("sum 100", "of 100 ops", 1, 5),
    ("sum 1000", "of 1,000 ops", 1, 3),
    ("gradients 10", "such a sum and its gradients by four values, of 10 ops", 1, 5),
    ("gradients 100", "of 100 ops", 1, 5),
    ("gradients 1000", "of 1,000 ops", 1, 3),
];

fn tensors() -> castwise::Result<Vec<Tensor>> {
    (1..5).map(|k| Tensor::from_vec((0..N).map(|i| (i * k % 7) as f32 / 8.0 + 0.5).collect(), [N])).collect()
}

fn feeds(tensors: &[Tensor]) -> Vec<(&'static str, Tensor)> {
    ["a", "b", "c", "d"].into_iter().zip(tensors.iter().cloned()).collect()
}

/// In the child: runs the rounds of a case.
fn rounds(case: &str, rounds: usize) -> castwise::Result<()> {
    let tensors = tensors()?;
    match case {
        "prepared" => {
            let (p, vars) = four(N);
            let step = Executor::builder().threads(1).build().prepare(&p, [&chain(&vars)])?;
            let (given, mut out) =
                ([&tensors[0], &tensors[1], &tensors[2], &tensors[3]], [Tensor::zeros(DType::F32, [N])?]);
            for _ in 0..rounds {
                step.run_into(black_box(&given), &mut out)?;
            }
        }
        "dispatch" => {
            let (p, vars) = four(N);
            let (y, executor) = (chain(&vars), Executor::builder().threads(1).build());
            for _ in 0..rounds {
                black_box(executor.run(&p, feeds(&tensors), [&y])?);
            }
        }
        "eager" => {
            let cx = Eager::new(Rules::Torch);
            let v: Vec<Var<Eager>> = tensors.iter().map(|t| cx.tensor(t)).collect();
            let (a, b, c, d) = (&v[0], &v[1], &v[2], &v[3]);
            for _ in 0..rounds {
                let y = ((a * b + c) * 0.5 - d) * (a + 1.25) + (b - c) * (d * 0.125);
                black_box(y.result()?);
            }
        }
        "infer" => {
            // Each program is another: what was typed once is kept.
            for seed in 0..rounds {
                let (p, vars) = four(N);
                line(&vars, 1000, seed);
                black_box(p.infer()?);
            }
        }
        _ => {
            let ops = case.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(10);
            for seed in 0..rounds {
                let (p, vars) = four(N);
                let y = line(&vars, ops, seed);
                let all = match case.split(' ').next() {
                    Some("gradients") => p.value_and_gradients(&y.sum(), &vars.iter().collect::<Vec<_>>())?,
                    Some("sum") => vec![y.sum()],
                    _ => vec![y],
                };
                black_box(Executor::builder().threads(1).build().run(&p, feeds(&tensors), &all)?);
            }
        }
    }
    Ok(())
}

/// The number of instructions of a whole child process.
fn count(case: &str, rounds: usize) -> Result<u64, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(exe).args(["--child", case]);
    let out = valgrind.arg(rounds.to_string()).output().map_err(|e| format!("valgrind does not start: {e}"))?;
    let text = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        return Err(format!("the child failed: {text}"));
    }
    let line = text.lines().find_map(|l| l.split_once("Collected : ")).ok_or("callgrind gives no count")?;
    line.1.trim().parse().map_err(|e| format!("{}: {e}", line.1))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--child", case, n] => n.parse().map_err(|e| format!("{n}: {e}")).and_then(|n| {
            let done = rounds(case, n);
            done.map_err(|e| e.to_string())
        }),
        [] if Command::new("valgrind").arg("--version").output().is_err() => {
            println!("skipped: there is no valgrind on this machine, and it counts the instructions");
            Ok(())
        }
        [] => report(),
        _ => Err("this bench takes no arguments".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn report() -> Result<(), String> {
    println!("{:>14}  instructions of", "a round");
    for (case, what, few, many) in CASES {
        let each = count(case, many)?.saturating_sub(count(case, few)?) / (many - few) as u64;
        println!("{each:>14}  {case}: {what}");
    }
    Ok(())
}
