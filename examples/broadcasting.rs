//! The shape examples of Paddle's guide to broadcasting: two shapes are compatible if, compared from their last dims,
//! each pair of dims is equal, or one of the two is 1 or missing; with `axis`, the shorter shape is placed at that dim.
//! Both modes give the same shape, or the same error.
//!
//! Run it: `cargo run --release --example broadcasting`

#![allow(clippy::print_stdout, reason = "an example prints")]

use castwise::prelude::*;
use castwise::shape::SymDim;

fn main() -> castwise::Result<()> {
    println!("x             y          axis  x + y");

    // Equal shapes.
    accepted(&[2, 3, 4], &[2, 3, 4], -1, &[2, 3, 4])?;

    // From the last dim: y has 1; x has 1; both have 3; y has no dim.
    accepted(&[2, 3, 1, 5], &[3, 4, 1], -1, &[2, 3, 4, 5])?;

    // The first comparison fails: 4 is not 6.
    refused(&[2, 3, 4], &[2, 3, 6], -1);

    // The shorter shape is treated as [1, 3, 1], and the result takes the dim that is not 1 of each pair.
    accepted(&[2, 1, 4], &[3, 1], -1, &[2, 3, 4])?;

    // The guide: "InvalidArgumentError: Broadcast dimension mismatch."
    refused(&[2, 1, 4], &[3, 2], -1);

    // With `axis`, the dims of y are compared with those of x starting at that dim, from front to back.
    accepted(&[2, 1, 4], &[3, 1], 1, &[2, 3, 4])?;
    refused(&[2, 3, 4, 5], &[4, 5], 1);
    accepted(&[2, 3, 4, 5], &[3], 1, &[2, 3, 4, 5])?;
    Ok(())
}

fn sum<M: Mode>(x: &Var<M>, y: &Var<M>, axis: i64) -> Var<M> {
    x.at_axis(axis).add(y)
}

/// Adds two tensors of ones in both modes and asserts the shape of the sum and its values.
fn accepted(x: &[usize], y: &[usize], axis: i64, expected: &[usize]) -> castwise::Result<()> {
    let (program, z) = program(x, y, axis);
    let dims: Vec<SymDim> = expected.iter().map(|n| SymDim::Fixed(*n)).collect();
    assert_eq!(program.infer()?.shape(&z), Some(&dims[..]));

    let feeds = feeds! { "x" => Tensor::full(x, 1.0f32)?, "y" => Tensor::full(y, 1.0f32)? };
    let out = Executor::new().run(&program, feeds, [&z])?;
    let eager = eager(x, y, axis)?;
    for z in [&out[0], &eager] {
        assert_eq!(z.shape(), expected);
        assert!(z.to_vec::<f32>()?.iter().all(|v| *v == 2.0));
    }
    println!("{:<14}{:<11}{axis:<6}{:?}", format!("{x:?}"), format!("{y:?}"), out[0].shape());
    Ok(())
}

/// Asserts that both modes refuse the sum of two tensors with the same message, and prints it.
fn refused(x: &[usize], y: &[usize], axis: i64) {
    // Nothing is computed: `check` finds the mistake without data.
    let (program, _) = program(x, y, axis);
    let (wrong, eager) = (program.check().expect_err("refused"), eager(x, y, axis).expect_err("refused"));
    assert_eq!(wrong.to_string(), eager.to_string());
    println!("{:<14}{:<11}{axis:<6}refused:\n{wrong}", format!("{x:?}"), format!("{y:?}"));
}

fn program(x: &[usize], y: &[usize], axis: i64) -> (Program, Var) {
    let p = Program::new(Rules::Paddle);
    let z = sum(&p.data("x", DType::F32, x), &p.data("y", DType::F32, y), axis);
    (p, z)
}

fn eager(x: &[usize], y: &[usize], axis: i64) -> castwise::Result<Tensor> {
    let cx = Eager::new(Rules::Paddle);
    sum(&cx.tensor(&Tensor::full(x, 1.0f32)?), &cx.tensor(&Tensor::full(y, 1.0f32)?), axis).result()
}
