//! Time per element of a fused chain of ten f32 operations, compared with a hand-written Rust loop in the same process.
//!
//! `cargo bench --bench chain`. The loop is compiled for the target's baseline, which on x86-64 has 128-bit vectors, as
//! compiled segments have without AVX2 (`CASTWISE_CPU=baseline`). Rounds are interleaved, and the minimum is printed.

use std::hint::black_box;
use std::time::Instant;

use castwise::prelude::*;

/// `((a*b + c)*0.5 - d)*(a + 1.25) + (b - c)*(d*0.125)`, without contraction.
#[inline(never)]
fn by_hand(a: &[f32], b: &[f32], c: &[f32], d: &[f32], out: &mut [f32]) {
    for ((((o, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *o = ((a * b + c) * 0.5 - d) * (a + 1.25) + (b - c) * (d * 0.125);
    }
}

fn main() -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|n| p.data(n, DType::F32, [None]));
    let y = ((&a * &b + &c) * 0.5 - &d) * (&a + 1.25) + (&b - &c) * (&d * 0.125);
    let exe = Executor::builder().threads(1).build();
    println!("{:>10} {:>14} {:>14} {:>7}", "elements", "castwise ns/el", "by hand ns/el", "ratio");
    for n in [1 << 10, 1 << 16, 1 << 24] {
        let data: [Vec<f32>; 4] =
            std::array::from_fn(|k| (0..n).map(|i| ((i * (k + 3)) % 1000) as f32 / 250.0 - 2.0).collect());
        let tensors: Vec<Tensor> = data.iter().map(|v| Tensor::from_slice(v, [n])).collect::<Result<_, _>>()?;
        let names = ["a", "b", "c", "d"];
        let mut out = vec![0f32; n];
        let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
        let repeat = (1 << 22) / n + 1;
        for _ in 0..30 {
            let start = Instant::now();
            for _ in 0..repeat {
                let feeds: Vec<(&str, Tensor)> = names.iter().copied().zip(tensors.iter().cloned()).collect();
                black_box(exe.run(&p, feeds, [&y])?);
            }
            ours = ours.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            for _ in 0..repeat {
                by_hand(&data[0], &data[1], &data[2], &data[3], black_box(&mut out));
            }
            theirs = theirs.min(start.elapsed().as_secs_f64());
        }
        let feeds: Vec<(&str, Tensor)> = names.iter().copied().zip(tensors.iter().cloned()).collect();
        assert_eq!(exe.run(&p, feeds, [&y])?[0].as_slice::<f32>()?, out, "the two must agree bit for bit");
        let per = |t: f64| t * 1e9 / (n * repeat) as f64;
        println!("{n:>10} {:>14.3} {:>14.3} {:>7.2}", per(ours), per(theirs), ours / theirs);
    }
    Ok(())
}
