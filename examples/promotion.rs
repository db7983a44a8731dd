//! Every example of two documents about type promotion, one per line: the expression, the document's result, and
//! castwise's result. Each expression is computed in both modes, and its result is asserted.
//!
//! The documents: PaddlePaddle's "Introduction to Data Type Promotion" (the English and the Chinese page have the same
//! code) and "Demystifying Dtype Promotion in PyTorch".
//!
//! Run it: `cargo run --release --example promotion`

#![allow(clippy::print_stdout, reason = "an example prints")]

use castwise::DiagnosticKind;
use castwise::expr::parse_expression;
use castwise::prelude::*;

/// The tensors that an expression may name.
type Names<'a> = &'a [(&'a str, &'a Tensor)];

fn main() -> castwise::Result<()> {
    paddle()?;
    pytorch()
}

fn paddle() -> castwise::Result<()> {
    let rules = Rules::Paddle;
    let (f16, bf16) = (tensor(DType::F16, [3, 3])?, tensor(DType::BF16, [3, 3])?);
    let (f32, f64) = (tensor(DType::F32, [3, 3])?, tensor(DType::F64, [3, 3])?);
    let (i32, i64) = (tensor(DType::I32, [3, 3])?, tensor(DType::I64, [3, 3])?);
    let (c64, c128) = (tensor(DType::C64, [3, 3])?, tensor(DType::C128, [3, 3])?);

    head("Paddle: two kinds of mixes");
    line(rules, "a + b", &[("a", &f16), ("b", &f32)], "tensor with tensor", DType::F32)?;
    line(rules, "a + 1.0", &[("a", &f16)], "tensor with scalar", DType::F16)?;

    head("Paddle: tensor with tensor");
    line(rules, "a + b", &[("a", &f16), ("b", &f32)], "float32", DType::F32)?;
    line(rules, "a + b", &[("a", &bf16), ("b", &f64)], "float64", DType::F64)?;
    line(rules, "a + b", &[("a", &c64), ("b", &f64)], "complex128", DType::C128)?;
    line(rules, "a + b", &[("a", &c128), ("b", &c64)], "complex128", DType::C128)?;

    // The table's row c64 and column c64 contradict each other. The page promises that the order does not matter, and
    // its example above says complex128, like the column.
    head("Paddle: the table's row c64 against its column");
    line(rules, "a + b", &[("a", &c64), ("b", &f64)], "complex64 (column: complex128)", DType::C128)?;
    line(rules, "a + b", &[("a", &c64), ("b", &i64)], "complex128 (column: complex64)", DType::C64)?;

    head("Paddle: tensor with scalar");
    line(rules, "a + 1.0", &[("a", &f16)], "float16", DType::F16)?;
    // The code comment of the English page contradicts the page's own text and table and the Chinese page.
    line(rules, "1.0 + b", &[("b", &i64)], "float16 in English, float32 in Chinese", DType::F32)?;

    head("Paddle: operators, functions, both orders, both modes");
    let both: Names<'_> = &[("a", &f16), ("b", &f32)];
    let c = line(rules, "a + b", both, "float32", DType::F32)?;
    let d = line(rules, "b + a", both, "float32, the same values", DType::F32)?;
    let e = line(rules, "add(a, b)", both, "float32, the same values", DType::F32)?;
    let f = fused(rules, "add(a, b)", both)?;
    row("static: add(a, b)", both, "float32, the same values", &f.dtype().to_string());
    for other in [&d, &e, &f] {
        assert_eq!(c.as_bytes(), other.as_bytes());
    }

    head("Paddle: a mix without promotion, and the casts that mend it");
    let both: Names<'_> = &[("a", &i64), ("b", &f32)];
    refused(rules, "a + b", both, "TypeError");
    line(rules, "astype(a, float32) + b", both, "float32", DType::F32)?;
    line(rules, "cast(a, float32) + b", both, "float32", DType::F32)?;
    // `a.astype(b.dtype)`: in Rust, the dtype is a value.
    let (cx, to) = (Eager::new(rules), f32.dtype());
    for (text, cast) in
        [("a.astype(b.dtype()) + b", cx.tensor(&i64).astype(to)), ("a.cast(b.dtype()) + b", cx.tensor(&i64).cast(to))]
    {
        let sum = (cast + cx.tensor(&f32)).result()?;
        assert_eq!(sum.dtype(), DType::F32);
        row(text, both, "float32", &sum.dtype().to_string());
    }
    let p = Program::new(rules);
    let _sum = p.data("a", DType::I64, [3, 3]) + p.data("b", DType::F32, [3, 3]);
    println!("\nThe refusal in full:\n{}", p.check().expect_err("refused"));

    head("Paddle: the divide rule and the logic rule");
    line(rules, "a / 1", &[("a", &i32)], "float32", DType::F32)?;
    line(rules, "a == b", &[("a", &f32), ("b", &f16)], "bool", DType::Bool)?;
    Ok(())
}

fn pytorch() -> castwise::Result<()> {
    let rules = Rules::Torch;
    let (float, double) = (tensor(DType::F32, [1])?, tensor(DType::F64, [1])?);
    let (cfloat, cdouble) = (tensor(DType::C64, [1])?, tensor(DType::C128, [1])?);
    let (int, long) = (tensor(DType::I32, [1])?, tensor(DType::I64, [1])?);
    let (uint, bool) = (tensor(DType::U8, [1])?, tensor(DType::Bool, [1])?);
    let long_zerodim = tensor(DType::I64, [])?;

    head("PyTorch: the eleven expressions");
    line(rules, "int + 5", &[("int", &int)], "torch.int32", DType::I32)?;
    line(rules, "int + 5.5", &[("int", &int)], "torch.float32", DType::F32)?;
    line(rules, "int / 5", &[("int", &int)], "torch.float32", DType::F32)?;
    line(rules, "int + zerodim", &[("int", &int), ("zerodim", &long_zerodim)], "torch.int32", DType::I32)?;
    line(rules, "long + int", &[("long", &long), ("int", &int)], "torch.int64", DType::I64)?;
    line(rules, "bool + long", &[("bool", &bool), ("long", &long)], "torch.int64", DType::I64)?;
    line(rules, "bool + uint", &[("bool", &bool), ("uint", &uint)], "torch.uint8", DType::U8)?;
    line(rules, "float + double", &[("float", &float), ("double", &double)], "torch.float64", DType::F64)?;
    line(rules, "cfloat + cdouble", &[("cfloat", &cfloat), ("cdouble", &cdouble)], "torch.complex128", DType::C128)?;
    line(rules, "bool + int", &[("bool", &bool), ("int", &int)], "torch.int32", DType::I32)?;
    line(rules, "add(long, float)", &[("long", &long), ("float", &float)], "torch.float32", DType::F32)?;
    Ok(())
}

/// A tensor of increasing numbers from 1 on, cast to the dtype.
fn tensor<const N: usize>(dtype: DType, shape: [usize; N]) -> castwise::Result<Tensor> {
    let n: usize = shape.iter().product();
    let numbers = Tensor::from_vec((0..n).map(|i| 1.0 + i as f64 * 0.37).collect(), shape)?;
    Eager::new(Rules::Torch).tensor(&numbers).cast(dtype).result()
}

fn head(title: &str) {
    println!("\n{title}");
    row("expression", &[], "the document", "castwise");
}

fn row(expression: &str, names: Names<'_>, document: &str, castwise: &str) {
    let dims = |t: &Tensor| if t.rank() == 0 { "[]" } else { "" };
    let types: Vec<String> = names.iter().map(|(n, t)| format!("{n}: {}{}", t.dtype(), dims(t))).collect();
    println!("  {expression:<24}| {:<28}| {document:<39}| {castwise}", types.join(", "));
}

/// Computes an expression in both modes, asserts that dtype and bits agree, and prints its line.
fn line(rules: Rules, text: &str, names: Names<'_>, document: &str, expected: DType) -> castwise::Result<Tensor> {
    let (fused, eager) = (fused(rules, text, names)?, eager(rules, text, names)?);
    assert_eq!((fused.dtype(), eager.dtype()), (expected, expected), "{text}");
    assert_eq!(fused.as_bytes(), eager.as_bytes(), "{text}");
    // If the document's result is just a dtype, it must be this one.
    if let Ok(said) = document.trim_start_matches("torch.").parse::<DType>() {
        assert_eq!(said, expected, "{text}");
    }
    row(text, names, document, &fused.dtype().to_string());
    Ok(fused)
}

/// Asserts that both modes refuse an expression, and prints its line.
fn refused(rules: Rules, text: &str, names: Names<'_>, document: &str) {
    let fused = fused(rules, text, names).expect_err(text);
    let eager = eager(rules, text, names).expect_err(text);
    for e in [&fused, &eager] {
        assert_eq!(e.diagnostics()[0].kind, DiagnosticKind::PromotionRefused);
    }
    row(text, names, document, "refused");
}

fn fused(rules: Rules, text: &str, names: Names<'_>) -> castwise::Result<Tensor> {
    let p = Program::new(rules);
    for (name, t) in names {
        p.data(name, t.dtype(), t.shape());
    }
    let result = p.expression(text)?;
    let feeds: Vec<(&str, Tensor)> = names.iter().map(|(n, t)| (*n, (*t).clone())).collect();
    Ok(Executor::new().run(&p, feeds, [&result])?.remove(0))
}

fn eager(rules: Rules, text: &str, names: Names<'_>) -> castwise::Result<Tensor> {
    let cx = Eager::new(rules);
    let find = |name: &str| names.iter().find(|(n, _)| *n == name).map(|(_, t)| cx.tensor(t));
    parse_expression(text, find)?.result()
}
