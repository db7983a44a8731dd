//! How accurate the elementary functions are, against results from multi-precision arithmetic.
//!
//! `cargo run --release --example accuracy` reads `tests/golden/ulp.jsonl` (or the file named), computes each function
//! on all its points in eager mode, prints the largest errors as a table, and fails if one is beyond its bar. Then it
//! computes every unary op on all 65,536 values of f16 and of bf16, and counts where the result is not the f64 result
//! rounded once. docs/accuracy.md has the output.

#![allow(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;

use castwise::prelude::*;
use castwise::{Attrs, Op, Operand};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1);
    let file = file.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/ulp.jsonl").into());
    let mut failures = points(&std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?)?;
    println!();
    failures.extend(halves()?);
    assert!(failures.is_empty(), "beyond the bar:\n{}", failures.join("\n"));
    Ok(())
}

/// The points of one function in one dtype.
struct Points {
    function: String,
    dtype: DType,
    /// The bytes of each operand's elements.
    operands: Vec<Vec<u8>>,
    /// For each point: the correctly rounded result, and the exact one minus that, in ulps.
    wanted: Vec<(Vec<u8>, f64)>,
}

impl Points {
    /// Adds the points of a file's lines, in groups: the ill-conditioned points of a function are a group of their own.
    fn read(text: &str) -> Result<Vec<Points>, Box<dyn Error>> {
        let mut all: Vec<Points> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let bad = || format!("line {}: not a point", i + 1);
            let line: Value = serde_json::from_str(line)?;
            let word = |key: &str| line[key].as_str().ok_or_else(bad);
            let ill = if line["c"] == 1 { " (ill-conditioned)" } else { "" };
            let (function, dtype) = (word("f")?.to_string() + ill, word("d")?.parse::<DType>()?);
            let x = line["x"].as_array().ok_or_else(bad)?;
            let at = all.iter().position(|p| p.function == function && p.dtype == dtype).unwrap_or_else(|| {
                all.push(Points { function, dtype, operands: vec![vec![]; x.len()], wanted: vec![] });
                all.len() - 1
            });
            for (to, bits) in all[at].operands.iter_mut().zip(x) {
                to.extend(unhex(bits.as_str().ok_or_else(bad)?).ok_or_else(bad)?);
            }
            let rest = line["e"].as_f64().ok_or_else(bad)?;
            all[at].wanted.push((unhex(word("y")?).ok_or_else(bad)?, rest));
        }
        Ok(all)
    }

    /// The largest error in ulps and how many results are correctly rounded; nothing if castwise lacks the function.
    fn judge(&self) -> castwise::Result<Option<(f64, usize)>> {
        let Some(op) = Op::from_name(self.function.trim_end_matches(" (ill-conditioned)")) else { return Ok(None) };
        let cx = Eager::new(Rules::Torch);
        let operands = self.operands.iter().map(|b| {
            let t = Tensor::from_bytes(self.dtype, [self.wanted.len()], b)?;
            Ok(cx.tensor(&t).into())
        });
        let operands: Vec<Operand<Eager>> = operands.collect::<castwise::Result<_>>()?;
        let ours = castwise::apply(op, &operands, Attrs::default()).result()?;
        assert_eq!(ours.dtype(), self.dtype, "{op}");
        let ours = ours.as_bytes().unwrap_or(&[]).chunks(self.dtype.size());
        let (mut worst, mut right) = (0f64, 0);
        for (o, (y, rest)) in ours.zip(&self.wanted) {
            right += usize::from(o == y);
            let (o, y) = (real(o), real(y));
            let error = if o == y && o.is_sign_negative() == y.is_sign_negative() {
                rest.abs()
            } else if o.is_finite() && y.is_finite() && !(o == 0.0 && y == 0.0) {
                ((o - y) / ulp(self.dtype, y) - rest).abs()
            } else {
                f64::INFINITY
            };
            worst = worst.max(error);
        }
        Ok(Some((worst, right)))
    }
}

fn unhex(s: &str) -> Option<Vec<u8>> {
    (0..s.len()).step_by(2).map(|i| u8::from_str_radix(s.get(i..i + 2)?, 16).ok()).collect()
}

/// The value of an f32's or an f64's bytes; NaN for any others.
fn real(bytes: &[u8]) -> f64 {
    match (bytes.try_into().map(f32::from_le_bytes), bytes.try_into().map(f64::from_le_bytes)) {
        (Ok(narrow), _) => narrow.into(),
        (_, Ok(wide)) => wide,
        _ => f64::NAN,
    }
}

/// The distance from `y` to the next larger number of the dtype.
fn ulp(d: DType, y: f64) -> f64 {
    let (smallest, digits) = if d == DType::F32 { (-126, 23) } else { (-1022, 52) };
    let exponent = (y.abs().to_bits() >> 52) as i32 - 1023;
    f64::from(exponent.max(smallest) - digits).exp2()
}

/// The largest error in ulps that is promised of a function in f32 and f64.
fn bar(function: &str) -> Option<f64> {
    match function {
        "sqrt" => Some(0.5),
        "exp" | "expm1" | "log" | "log1p" | "log2" | "sin" | "cos" | "tan" | "atan" | "asin" | "acos" | "sigmoid"
        | "erf" | "pow" => Some(1.0),
        "sinh" | "cosh" | "tanh" | "erfc" | "atan2" | "hypot" => Some(2.0),
        _ => None,
    }
}

/// Prints the table of the file's points; gives what is beyond its bar.
fn points(text: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let all = Points::read(text)?;
    let mut names: Vec<&str> = Vec::new();
    for p in &all {
        if !names.contains(&p.function.as_str()) {
            names.push(&p.function);
        }
    }
    let (mut failures, mut lacking) = (Vec::new(), Vec::new());
    println!("| function | bar | f32: points | max error | right | f64: points | max error | right |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for name in names {
        let mut row = format!("| {name} | {} ", bar(name).map_or("–".into(), |b| b.to_string()));
        let mut known = true;
        for d in [DType::F32, DType::F64] {
            let Some(p) = all.iter().find(|p| p.function == name && p.dtype == d) else {
                row += "| 0 | – | – ";
                continue;
            };
            let Some((worst, right)) = p.judge()? else {
                known = false;
                break;
            };
            let n = p.wanted.len();
            let worst_text = if worst < 1000.0 { format!("{worst:.3}") } else { format!("{worst:.1e}") };
            row += &format!("| {n} | {worst_text} | {:.1} % ", 100.0 * right as f64 / n as f64);
            if bar(name).is_some_and(|b| worst > b) {
                failures.push(format!("{name} {d}: {worst} ulp"));
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

/// Prints, for each unary op and half dtype, how many of the 65,536 results are not the f64 result rounded once, and
/// which of these are not even its neighbour. Each must be the f32 result rounded once; gives what is not.
fn halves() -> Result<Vec<String>, Box<dyn Error>> {
    let inputs: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let cx = Eager::new(Rules::Torch);
    let (mut failures, mut equal, mut far) = (Vec::new(), Vec::new(), Vec::new());
    println!("| op | f16: differing | equal | bf16: differing | equal |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for op in Op::ALL.iter().filter(|op| op.arity() == 1 && !matches!(op, Op::Cast | Op::ViewAs)) {
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
            let wide = words(&apply(x.cast(DType::F64)).cast(d))?;
            let differing = ours.iter().zip(&wide).filter(|(o, w)| !same(d, **o, **w)).count();
            let twice = ours.iter().zip(&narrow).filter(|(o, n)| !same(d, **o, **n)).count();
            if twice > 0 {
                failures.push(format!("{op} {d}: {twice} results are not the f32 result rounded"));
            }
            let beyond = (0..=u16::MAX).zip(ours.iter().zip(&wide));
            let beyond = beyond.filter(|(_, (o, w))| !same(d, **o, **w) && !neighbours(**o, **w));
            for (x, (o, w)) in beyond {
                let values = [x, *o, *w].map(|bits| half(d, bits));
                far.push(format!("{op} {d} of {} is {:e}, f64 {:e}", values[0], values[1], values[2]));
            }
            any |= differing > 0;
            row += &format!("| {differing} | {:.3} % ", 100.0 * (65536 - differing) as f64 / 65536.0);
        }
        if float && any {
            println!("{row}|");
        } else if float {
            equal.push(op.name());
        }
    }
    println!("\nEqual on all inputs of both dtypes: {}.", list(&equal));
    println!("\nNot the neighbour of the rounded f64 result: {}.", far.len());
    for line in far {
        println!("- {line}");
    }
    Ok(failures)
}

/// The bits of a half result.
fn words(v: &Var<Eager>) -> castwise::Result<Vec<u16>> {
    let t = v.result()?;
    Ok(t.as_bytes().unwrap_or(&[]).chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect())
}

/// The value of a half's bits.
fn half(d: DType, bits: u16) -> f64 {
    if d == DType::F16 { half::f16::from_bits(bits).to_f64() } else { half::bf16::from_bits(bits).to_f64() }
}

/// Equal bits, or both NaN.
fn same(d: DType, a: u16, b: u16) -> bool {
    let infinity = if d == DType::F16 { 0x7c00 } else { 0x7f80 };
    a == b || (a & 0x7fff > infinity && b & 0x7fff > infinity)
}

/// Whether no number lies between two numbers of the same sign.
fn neighbours(a: u16, b: u16) -> bool {
    a ^ b < 0x8000 && a.abs_diff(b) == 1
}
