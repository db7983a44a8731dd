//! A custom op: described once, it has dtypes, casts with reasons, fusion, both modes, a text form, and errors like the
//! ops of the table.

use castwise::prelude::*;
use castwise::{CustomOp, Promotion, Registry};

fn main() -> castwise::Result<()> {
    let mut ops = Registry::new();
    let shrink = ops.register(
        CustomOp::new("soft_shrink", ["x", "threshold"], Promotion::IntToFloat)
            .with(|[x, t]: [f32; 2]| if x.abs() <= t { 0.0 } else { x - t.copysign(x) })
            .with(|[x, t]: [f64; 2]| if x.abs() <= t { 0.0 } else { x - t.copysign(x) })
            .doc("0 within the threshold, and what lies beyond it outside."),
    )?;

    // bf16 computes with the function for f32 and rounds once; integers promote to the default float dtype.
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::BF16, ["n"]);
    let steps = p.data("steps", DType::I32, ["n"]);
    let denoised = (&x * 2.0).apply(shrink, &[0.5.into()]) + steps.apply(shrink, &[1.0.into()]);
    p.set_fetches([("denoised", &denoised)])?;
    println!("{}", p.infer()?.explain());

    let tx = Tensor::from([0.1f32, -0.75, 3.0].map(bf16::from_f32));
    let ts = Tensor::from([0i32, -3, 7]);
    let exe = Executor::new();
    let fused = exe.run(&p, feeds! { "x" => &tx, "steps" => &ts }, [&denoised])?;
    assert_eq!(fused[0].to_vec::<f32>()?, [0.0, -3.0, 11.5]);
    println!("one kernel:\n{}", exe.kernels(&p, [&denoised])?);

    // Eager mode gives the same bits.
    let cx = Eager::new(Rules::Torch);
    let eager = (cx.tensor(&tx) * 2.0).apply(shrink, &[0.5.into()]) + cx.tensor(&ts).apply(shrink, &[1.0.into()]);
    assert_eq!(eager.result()?.as_bytes(), fused[0].as_bytes());

    // The text form has only the name; the registry passed to the parser defines it.
    let text = p.to_string();
    let read = Program::parse_with(&text, &ops)?;
    let again = exe.run(&read, feeds! { "x" => &tx, "steps" => &ts }, [&read.fetches()[0].var])?;
    assert_eq!(again[0].as_bytes(), fused[0].as_bytes());
    println!("{}\n", Program::parse(&text).expect_err("a program without the registry"));

    // Mistakes: a dtype without a function, and a function that panics.
    let wrong = Program::new(Rules::Torch);
    let _ = wrong.data("z", DType::C64, [3]).apply(shrink, &[1.0.into()]);
    println!("{}\n", wrong.check().expect_err("complex numbers have no order"));
    let checked = CustomOp::new("checked_sqrt", ["x"], Promotion::IntToFloat).with(|[x]: [f32; 1]| {
        assert!(x >= 0.0, "the root of a negative number");
        x.sqrt()
    });
    let checked = ops.register(checked)?;
    println!("{}", cx.tensor(&ts).apply(checked, &[]).result().expect_err("there is a -3"));
    Ok(())
}
