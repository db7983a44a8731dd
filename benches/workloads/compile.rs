//! Time to the first result of a chain of operations at 16 elements, without any cached state.
//!
//! Guarantees: the time includes writing the program, typing, planning, compiling and the first run. `first_in_process`
//! measures the first use of castwise in a process; each such measurement has its own process. `later` uses a new
//! executor each time, because an executor recognizes the kernel even with other constants. Does not: include the start
//! of the process or the creation of the inputs.

use std::process::Command;
use std::time::Instant;

use castwise::prelude::*;
use serde_json::{Value, json};

use crate::graphs::{four, line, line_constant};
use crate::measure::median;

/// The hidden option that runs a child: `--compile-child OPS`.
pub const CHILD: &str = "--compile-child";

const N: usize = 16;
const LATER: usize = 5;

/// The rows of all sizes, each size measured in a child process.
pub fn rows() -> Vec<Value> {
    let exe = std::env::current_exe().expect("the path of this program");
    let mut all = Vec::new();
    for ops in [10, 100, 1000] {
        let out = Command::new(&exe).args([CHILD, &ops.to_string()]).output().expect("this program starts");
        assert!(out.status.success(), "the child failed: {}", String::from_utf8_lossy(&out.stderr));
        for row in String::from_utf8_lossy(&out.stdout).lines() {
            all.push(serde_json::from_str(row).expect("a child prints JSON"));
        }
    }
    all
}

/// In the child: prints the time of the first compilation of this process, then the median of some later ones.
pub fn child(ops: usize) -> castwise::Result<()> {
    let data: Vec<Vec<f32>> =
        (0..4).map(|k| (0..N).map(|i| 0.5 + ((i * 5 + k * 3) % 16) as f32 / 32.0).collect()).collect();
    let tensors: Vec<Tensor> = data.iter().map(|v| Tensor::from_slice(v, [N])).collect::<Result<_, _>>()?;
    let (first, error) = once(ops, 0, &tensors, &data)?;
    print(ops, "first_in_process", first, 1, error);
    let (mut later, mut worst) = (Vec::new(), 0.0f64);
    for seed in 1..=LATER {
        let (t, error) = once(ops, seed, &tensors, &data)?;
        later.push(t);
        worst = worst.max(error);
    }
    print(ops, "later", median(&mut later), LATER, worst);
    Ok(())
}

/// Returns the seconds and the largest relative error.
fn once(ops: usize, seed: usize, tensors: &[Tensor], data: &[Vec<f32>]) -> castwise::Result<(f64, f64)> {
    let start = Instant::now();
    let (p, vars) = four(N);
    let y = line(&vars, ops, seed);
    let executor = Executor::builder().threads(1).build();
    let feeds: Vec<(&str, Tensor)> = ["a", "b", "c", "d"].into_iter().zip(tensors.iter().cloned()).collect();
    let result = executor.run(&p, feeds, [&y])?;
    let seconds = start.elapsed().as_secs_f64();

    let want: Vec<f64> = (0..N).map(|i| reference(ops, seed, data, i)).collect();
    let mean = want.iter().map(|x| x.abs()).sum::<f64>() / N as f64;
    let error = |(want, got): (&f64, &f32)| (want - f64::from(*got)).abs() / want.abs().max(mean);
    let worst = want.iter().zip(result[0].as_slice::<f32>()?).map(error);
    Ok((seconds, worst.fold(0.0, |a: f64, e| if e.is_nan() { f64::INFINITY } else { a.max(e) })))
}

/// Element `i` of [`line`] in f64.
fn reference(ops: usize, seed: usize, data: &[Vec<f32>], i: usize) -> f64 {
    let [a, b, c, d] = [0, 1, 2, 3].map(|k| f64::from(data[k][i]));
    (1..ops).fold(a * b, |t, i| match i % 4 {
        0 => t * b,
        1 => t + c,
        2 => t * line_constant(seed, i),
        _ => t - d,
    })
}

fn print(ops: usize, variant: &str, seconds: f64, runs: usize, error: f64) {
    let row = json!({
        "peer": "castwise", "workload": "compile", "size": ops, "threads": 1, "variant": variant,
        "median_s": seconds, "runs": runs, "max_rel_err": finite(error), "ok": error <= 1e-4,
        "note": "a new executor for each graph: nothing is cached",
    });
    println!("{row}");
}

/// Replaces infinity, which JSON does not have, by the largest f64.
pub fn finite(x: f64) -> f64 {
    x.min(f64::MAX)
}
