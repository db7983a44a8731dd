//! Time per element of short chains, by dtype; and conversions of 8-bit floats beside a copy.
//!
//! `cargo bench --bench dtypes [-- --casts ELEMENTS]`. Chains: the minimum of thirty rounds. With `--casts`, only the
//! conversions: bytes read and written per second, the median of eleven rounds, each of which also copies as many bytes.
//! `CASTWISE_CPU=avx2` and `baseline` give the results for other machines.

use std::hint::black_box;
use std::time::Instant;

use castwise::prelude::*;

fn main() -> castwise::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|a| a == "--casts") {
        return casts(args.get(at + 1).and_then(|n| n.parse().ok()).unwrap_or(1 << 24));
    }
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

/// Conversions of `n` 8-bit floats, compiled and eager, and a copy of as many bytes.
fn casts(n: usize) -> castwise::Result<()> {
    println!("{n} elements, GB/s");
    println!("{:>22} {:>7} {:>7} {:>7} {:>7} {:>10}", "conversion", "threads", "into", "fresh", "eager", "copy");
    for from in [DType::F8E4M3FN, DType::F8E5M2] {
        for to in [DType::BF16, DType::F16, DType::F32] {
            for threads in [1, 2] {
                let all = conversion(from, to, n, threads)?;
                let [into, fresh, eager, copy] = all.map(|s| (n * (1 + to.size())) as f64 / s / 1e9);
                println!(
                    "{:>22} {threads:>7} {into:>7.1} {fresh:>7.1} {eager:>7.1} {copy:>7.1} {:.2}",
                    format!("{from} to {to}"),
                    into / copy
                );
            }
        }
    }
    Ok(())
}

/// Seconds of a compiled conversion into a given result, of one that allocates, of an eager one, and of a copy.
fn conversion(from: DType, to: DType, n: usize, threads: usize) -> castwise::Result<[f64; 4]> {
    let codes: Vec<u8> = (0..n).map(|i| (i * 7) as u8).collect();
    let x = Tensor::from_bytes(from, [n], &codes)?;
    let p = Program::new(Rules::Torch);
    let y = p.data("x", from, [n]).cast(to);
    let executor = Executor::builder().threads(threads).build();
    let call = executor.prepare(&p, [&y])?;
    let mut out = [Tensor::zeros(to, [n])?];
    let half = n * (1 + to.size()) / 2;
    let (source, mut target) = (vec![1u8; half], vec![2u8; half]);
    let mut seconds = [const { Vec::new() }; 4];
    for round in 0..12 {
        let mut timed = |i: usize, work: &mut dyn FnMut() -> castwise::Result<()>| -> castwise::Result<()> {
            let start = Instant::now();
            work()?;
            // The first round warms up.
            seconds[i].extend((round > 0).then(|| start.elapsed().as_secs_f64()));
            Ok(())
        };
        timed(0, &mut || call.run_into(&[&x], &mut out))?;
        timed(1, &mut || call.run(&[&x]).map(|r| drop(black_box(r))))?;
        timed(2, &mut || Eager::new(Rules::Torch).tensor(&x).cast(to).result().map(|r| drop(black_box(r))))?;
        timed(3, &mut || {
            copy(&source, &mut target, threads);
            Ok(())
        })?;
    }
    Ok(seconds.map(|mut s| {
        s.sort_by(f64::total_cmp);
        s[s.len() / 2]
    }))
}

fn copy(source: &[u8], target: &mut [u8], threads: usize) {
    let part = source.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (from, to) in source.chunks(part).zip(target.chunks_mut(part)) {
            scope.spawn(|| black_box(to).copy_from_slice(black_box(from)));
        }
    });
}
