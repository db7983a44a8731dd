//! Time per element of short chains, by dtype.
//!
//! `cargo bench --bench dtypes`. Prints the minimum of thirty rounds. `CASTWISE_CPU=avx2` and `baseline` give the
//! results for other machines.

use std::hint::black_box;
use std::time::Instant;

use castwise::prelude::*;

fn main() -> castwise::Result<()> {
    println!("{:>30} {:>10} {:>14}", "chain", "elements", "castwise ns/el");
    for d in [DType::F16, DType::BF16] {
        others(d, "(a*b + c)*a - b", |a, b, c| (a * b + c) * a - b)?;
    }
    others(DType::C64, "a*b + c*a - b", |a, b, c| a * b + c * a - b)?;
    others(DType::I32, "(a*b + c)*a - b", |a, b, c| (a * b + c) * a - b)?;
    others(DType::U8, "(a*b + c)*a - b", |a, b, c| (a * b + c) * a - b)
}

/// Times a chain over three operands of one dtype.
fn others(d: DType, name: &str, chain: impl Fn(&Var, &Var, &Var) -> Var) -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let [a, b, c] = ["a", "b", "c"].map(|n| p.data(n, d, [None]));
    let y = chain(&a, &b, &c);
    let exe = Executor::builder().threads(1).build();
    for n in [1 << 16, 1 << 24] {
        let part = |k: usize| -> castwise::Result<Tensor> {
            let v: Vec<f32> = (0..n).map(|i| ((i * (k + 3)) % 1000) as f32 / 250.0 - 2.0).collect();
            converted(&Tensor::from_slice(&v, [n])?, d)
        };
        let tensors = [part(0)?, part(1)?, part(2)?];
        let repeat = (1 << 22) / n + 1;
        let mut best = f64::MAX;
        for _ in 0..30 {
            let start = Instant::now();
            for _ in 0..repeat {
                let feeds: Vec<(&str, Tensor)> = ["a", "b", "c"].into_iter().zip(tensors.iter().cloned()).collect();
                black_box(exe.run(&p, feeds, [&y])?);
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{:>30} {n:>10} {:>14.3}", format!("{d}: {name}"), best * 1e9 / (n * repeat) as f64);
    }
    Ok(())
}

fn converted(t: &Tensor, d: DType) -> castwise::Result<Tensor> {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]).cast(d);
    Ok(Executor::new().run(&p, feeds! { "x" => t }, [&x])?.remove(0))
}
