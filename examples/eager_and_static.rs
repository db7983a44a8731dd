//! One function, two modes: it builds a program or computes immediately. Both give the same bits, because a fused loop
//! rounds after every op, as eager mode does.
//!
//! Run it: `cargo run --release --example eager_and_static`

#![allow(clippy::print_stdout, reason = "an example prints")]

use castwise::prelude::*;
use half::{bf16, f16};

/// A gated unit with a residual. `Var<M>` is a value of either mode.
fn gated<M: Mode>(x: &Var<M>, gate: &Var<M>, residual: &Var<M>) -> Var<M> {
    let open = (gate * 1.702).sigmoid();
    let wide = x * open + residual * 0.1;
    wide.tanh() / 3 - 0.25
}

fn main() -> castwise::Result<()> {
    // Three dtypes. The gate is a row that broadcasts over the others.
    let (rows, columns) = (64, 1000);
    let wave = |i: usize, step: f32| (i as f32 * step).sin() * 3.0;
    let x: Vec<bf16> = (0..rows * columns).map(|i| bf16::from_f32(wave(i, 0.37))).collect();
    let gate: Vec<f16> = (0..columns).map(|i| f16::from_f32(wave(i, 0.11))).collect();
    let residual: Vec<f32> = (0..rows * columns).map(|i| wave(i, 0.73)).collect();
    let x = Tensor::from_vec(x, [rows, columns])?;
    let gate = Tensor::from_vec(gate, [columns])?;
    let residual = Tensor::from_vec(residual, [rows, columns])?;

    for rules in [Rules::Torch, Rules::Paddle] {
        // Eager mode: one op after the other.
        let cx = Eager::new(rules);
        let eager = gated(&cx.tensor(&x), &cx.tensor(&gate), &cx.tensor(&residual)).result()?;

        // Static mode: a program for any number of rows, fused into loops.
        let p = Program::new(rules);
        let (px, pg) = (p.data("x", x.dtype(), [None, Some(columns)]), p.data("gate", gate.dtype(), [columns]));
        let y = gated(&px, &pg, &p.data("residual", residual.dtype(), [None, Some(columns)]));
        let feeds = feeds! { "x" => x, "gate" => gate, "residual" => residual };
        let fused = Executor::new().run(&p, feeds, [&y])?.remove(0);

        assert_eq!((eager.dtype(), eager.shape()), (fused.dtype(), fused.shape()));
        assert_eq!(eager.as_bytes(), fused.as_bytes());
        println!("{rules}: {}{:?}, {} elements with the same bits", fused.dtype(), fused.shape(), fused.numel());
        for (e, f) in eager.to_vec::<f32>()?.iter().zip(fused.to_vec::<f32>()?).take(4) {
            println!("  eager {:08x}   fused {:08x}   ({e})", e.to_bits(), f.to_bits());
        }
    }
    Ok(())
}
