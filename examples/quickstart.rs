//! The first case of Paddle's guide to type promotion, float16 + float32: as a program, then in eager mode.
//!
//! Run it: `cargo run --release --example quickstart`

#![allow(clippy::print_stdout, reason = "an example prints")]

use castwise::prelude::*;
use half::f16;

fn main() -> castwise::Result<()> {
    // Tenths, which f32 can't represent exactly, and f16 even less so.
    let halves: Vec<f16> = (0..9).map(|i| f16::from_f32(i as f32 / 10.0)).collect();
    let singles: Vec<f32> = (0..9).map(|i| 1.0 - i as f32 / 10.0).collect();
    let ta = Tensor::from_slice(&halves, [3, 3])?;
    let tb = Tensor::from_slice(&singles, [3, 3])?;

    // Writing a program computes nothing, and the dtype of `c` is not known yet.
    let p = Program::new(Rules::Paddle);
    let a = p.data("a", DType::F16, [3, 3]);
    let b = p.data("b", DType::F32, [3, 3]);
    let c = &a + &b;
    println!("As written:\n\n{p}");

    // Inference gives every node a dtype and a shape, and inserts the implicit cast with its reason.
    let typed = p.infer()?;
    println!("As inferred:\n\n{}", typed.explain());
    assert_eq!(typed.dtype(&c), Some(DType::F32));

    // An executor fuses the cast and the sum into one loop and runs it.
    let out = Executor::new().run(&p, feeds! { "a" => ta, "b" => tb }, [&c])?;
    let expected: Vec<f32> = halves.iter().zip(&singles).map(|(a, b)| a.to_f32() + b).collect();
    assert_eq!(out[0].dtype(), DType::F32);
    assert_eq!(out[0].to_vec::<f32>()?, expected);
    println!("Executed: {:?}", out[0]);

    // Eager mode computes immediately, by the same rules, and gives the same bits.
    let cx = Eager::new(Rules::Paddle);
    let eager = (cx.tensor(&ta) + cx.tensor(&tb)).result()?;
    assert_eq!(eager.dtype(), DType::F32);
    assert_eq!(eager.as_bytes(), out[0].as_bytes());
    println!("Eager:    {eager:?}");
    Ok(())
}
