//! Compares the elementary functions with results of multi-precision arithmetic.
//!
//! `cargo run --release -p xtask -- accuracy [FILE]` reads `tests/golden/ulp.jsonl` (or the given file), computes each
//! function on all its points in eager mode, prints the largest errors as a table, and fails if an error exceeds its
//! bar or a function has no bar. Then it computes every unary op on all 65,536 values of f16 and of bf16, and fails if
//! a result is not the f64 result rounded once. Then it measures sums and scans (`sums`). docs/accuracy.md has the output.

mod sums;

use std::error::Error;

use castwise::prelude::*;
use castwise::{Attrs, Op, Operand};

use crate::points::{self, Points, bar};

/// Prints the tables; the error lists the results that exceed their bars.
pub fn main(args: Vec<String>) -> Result<(), Box<dyn Error>> {
    let file = args.into_iter().next();
    let file = file.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/ulp.jsonl").into());
    let mut failures = table(&std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?)?;
    println!();
    failures.extend(halves()?);
    println!();
    failures.extend(sums::table()?);
    if failures.is_empty() { Ok(()) } else { Err(format!("beyond the bar:\n{}", failures.join("\n")).into()) }
}

/// The errors of castwise's results, and the number of correctly rounded ones; `None` if castwise lacks the function.
fn judge(p: &Points) -> castwise::Result<Option<(Vec<f64>, usize)>> {
    let Some(op) = p.op() else { return Ok(None) };
    let cx = Eager::new(Rules::Torch);
    let operands: Vec<Operand<Eager>> = p.tensors()?.iter().map(|t| cx.tensor(t).into()).collect();
    let ours = castwise::apply(op, &operands, Attrs::default()).result()?;
    assert_eq!(ours.dtype(), p.dtype, "{op}");
    let results = ours.as_bytes().unwrap_or(&[]).chunks(p.dtype.size());
    let right = results.zip(&p.wanted).filter(|(o, (y, _))| *o == y).count();
    Ok(Some((p.errors(&ours), right)))
}

/// Prints the table of the file's points; returns the functions that exceed their bars.
fn table(text: &str) -> Result<Vec<String>, Box<dyn Error>> {
    if !points::is_points(text) {
        return Err("not a file of points".into());
    }
    let all = Points::read(text)?;
    let mut names: Vec<(&str, bool)> = Vec::new();
    for p in &all {
        if !names.contains(&(&p.function, p.ill_conditioned)) {
            names.push((&p.function, p.ill_conditioned));
        }
    }
    let (mut failures, mut lacking) = (Vec::new(), Vec::new());
    println!("| function | bar | f32: points | max error | right | f64: points | max error | right |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (name, ill) in names {
        let label = format!("{name}{}", if ill { " (ill-conditioned)" } else { "" });
        let bar = bar(name, ill);
        let mut row = format!("| {label} | {} ", bar.map_or("–".into(), |b| b.to_string()));
        let mut known = true;
        for d in [DType::F32, DType::F64] {
            let Some(p) = all.iter().find(|p| p.function == name && p.ill_conditioned == ill && p.dtype == d) else {
                row += "| 0 | – | – ";
                continue;
            };
            let Some((errors, right)) = judge(p)? else {
                known = false;
                break;
            };
            let (n, worst) = (p.wanted.len(), errors.into_iter().fold(0f64, f64::max));
            row += &format!("| {n} | {worst:.3} | {:.1} % ", 100.0 * right as f64 / n as f64);
            if bar.is_none_or(|b| worst > b) {
                failures.push(format!("{label} {d}: {worst} ulp"));
            }
        }
        if known {
            println!("{row}|");
        } else {
            lacking.push(name);
        }
    }
    println!("\nFunctions in the file that castwise lacks: {}.", list(&lacking));
    Ok(failures)
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Checks that each result of each unary op on a half dtype is the f64 result rounded once; returns those that are not.
/// Prints how many of them differ from the f32 result rounded once.
fn halves() -> Result<Vec<String>, Box<dyn Error>> {
    let inputs: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let cx = Eager::new(Rules::Torch);
    let (mut failures, mut equal) = (Vec::new(), Vec::new());
    println!("| op | f16: differing | f32 rounded: differing | bf16: differing | f32 rounded: differing |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for op in Op::ALL.iter().filter(|op| op.arity() == 1 && !op.has_dims() && !matches!(op, Op::Cast | Op::ViewAs)) {
        let mut row = format!("| {op} ");
        let (mut any, mut float) = (false, true);
        for d in [DType::F16, DType::BF16] {
            let x = cx.tensor(&Tensor::from_bytes(d, [1 << 16], &inputs)?);
            let apply = |x: Var<Eager>| castwise::apply(*op, &[x.into()], Attrs::default());
            float &= apply(x.clone()).result().is_ok_and(|t| t.dtype() == d && t.shape() == [1 << 16]);
            if !float {
                break;
            }
            let ours = words(&apply(x.clone()))?;
            let narrow = words(&apply(x.cast(DType::F32)).cast(d))?;
            let exact = above_tie(*op, &x.cast(DType::F64), apply(x.cast(DType::F64)))?;
            let wide = words(&exact.cast(d))?;
            let differing = |of: &[u16]| of.iter().zip(&wide).filter(|(o, w)| !same(d, **o, **w)).count();
            let [ours, narrow] = [differing(&ours), differing(&narrow)];
            if ours > 0 {
                failures.push(format!("{op} {d}: {ours} results are not the f64 result rounded"));
            }
            any |= narrow > 0;
            row += &format!("| {ours} | {narrow} ");
        }
        if float && any {
            println!("{row}|");
        } else if float {
            equal.push(op.name());
        }
    }
    println!("\nAll are equal: {}.", list(&equal));
    Ok(failures)
}

/// The f64 results of an op. Below 2^-125 the exact results of `silu`, `gelu` and `gelu_tanh` are slightly greater than
/// x / 2, the f64 result: they are replaced by the next f64.
fn above_tie(op: Op, x: &Var<Eager>, y: Var<Eager>) -> castwise::Result<Var<Eager>> {
    if !matches!(op, Op::Silu | Op::Gelu | Op::GeluTanh) {
        return Ok(y);
    }
    let tiny = x.abs().lt(2f64.powi(-125)) & x.ne(0.0);
    let next = castwise::apply(Op::Nextafter, &[(&y).into(), f64::INFINITY.into()], Attrs::default());
    Ok(castwise::apply(Op::Where, &[tiny.into(), next.into(), y.into()], Attrs::default()))
}

/// The bits of a result in a half dtype.
fn words(v: &Var<Eager>) -> castwise::Result<Vec<u16>> {
    let t = v.result()?;
    Ok(t.as_bytes().unwrap_or(&[]).chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect())
}

/// Equal bits, or both NaN.
fn same(d: DType, a: u16, b: u16) -> bool {
    let infinity = if d == DType::F16 { 0x7c00 } else { 0x7f80 };
    a == b || (a & 0x7fff > infinity && b & 0x7fff > infinity)
}
