//! Compares the elementary functions of f32 with `libm` in f64, on all 2^32 arguments or every N-th.
//!
//! `cargo run --release -p xtask -- sweep [FUNCTION…] [--step N]` prints each function's largest error in ulps and its
//! argument, and checks every other unary op bit for bit; without functions it sweeps all. It fails if a result exceeds
//! its bar. All arguments (`--step 1`) of one function take minutes on a core; without `--step` it takes every 2,003rd.
//! docs/accuracy.md has the output. The error of `libm` in f64 is below 1e-8 ulps of f32.

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use castwise::prelude::*;
use castwise::{Attrs, Op};

use crate::reference;
use crate::reference::format::{Beyond, Float};
use crate::reference::functions::of_one;

/// The number of inputs of one application.
const CHUNK: u64 = 1 << 16;

/// The result of a sweep: the largest error among the results that are not correctly rounded, with its input; the
/// numbers of correctly rounded and of wrong results; and the first wrong one.
#[derive(Clone, Debug, Default)]
struct Found {
    worst: f64,
    at: f32,
    right: u64,
    wrong: u64,
    first: Option<String>,
}

impl Found {
    fn join(&mut self, other: Found) {
        if other.worst > self.worst {
            (self.worst, self.at) = (other.worst, other.at);
        }
        self.right += other.right;
        self.wrong += other.wrong;
        self.first = self.first.take().or(other.first);
    }
}

/// Sweeps the functions that the arguments name.
pub fn main(args: Vec<String>) -> Result<(), Box<dyn Error>> {
    let (mut ops, mut step) = (vec![], 2_003u64);
    let mut args = args.into_iter();
    while let Some(a) = args.next() {
        if a == "--step" {
            step =
                args.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0).ok_or("--step takes a number above 0")?;
        } else {
            let op = Op::from_name(&a).filter(|op| op.arity() == 1 && !op.has_dims());
            ops.push(op.ok_or_else(|| format!("`{a}` is no function of one operand"))?);
        }
    }
    if ops.is_empty() {
        let unary = |op: &Op| op.arity() == 1 && !op.has_dims() && !matches!(op, Op::Cast | Op::ViewAs);
        ops = Op::ALL.iter().copied().filter(unary).collect();
    }
    let inputs = (1u64 << 32).div_ceil(step);
    println!("{inputs} of the 2^32 inputs for each function, in steps of {step}\n");
    println!("| function | bar | largest error | at | correctly rounded | seconds |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let (mut exact, mut failures) = (vec![], vec![]);
    for op in ops {
        let start = Instant::now();
        let Some(found) = sweep(op, step, inputs)? else { continue };
        if let Some(first) = &found.first {
            failures.push(format!("{op}: {} wrong, such as {first}", found.wrong));
        }
        let bar = of_one(op, 0.5).map(|f| f.bar.to_string());
        match bar {
            Some(bar) => println!(
                "| {op} | {bar} | {:.4} | {:e} | {:.3} % | {:.0} |",
                found.worst,
                found.at,
                100.0 * found.right as f64 / inputs as f64,
                start.elapsed().as_secs_f64()
            ),
            None => exact.push(op.name()),
        }
    }
    println!("\nAs the reference has it, bit for bit or within its bounds: {}.", exact.join(", "));
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

/// Sweeps all inputs of one op; `None` if the op does not accept f32.
fn sweep(op: Op, step: u64, inputs: u64) -> castwise::Result<Option<Found>> {
    let (next, total) = (AtomicU64::new(0), Mutex::new(Found::default()));
    let refused = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                    if first >= inputs {
                        return;
                    }
                    let bits = (first..inputs.min(first + CHUNK)).map(|i| (i * step) as u32);
                    let found = chunk(op, &bits.map(f32::from_bits).collect::<Vec<f32>>());
                    match (found, total.lock(), refused.lock()) {
                        (Ok(found), Ok(mut total), _) => total.join(found),
                        (Err(e), _, Ok(mut refused)) => {
                            *refused = Some(e);
                            next.store(inputs, Ordering::Relaxed);
                        }
                        _ => return,
                    }
                }
            });
        }
    });
    match refused.into_inner() {
        Ok(Some(e)) if e.diagnostics().is_empty() => Err(e),
        Ok(Some(_)) => Ok(None),
        _ => Ok(total.into_inner().ok()),
    }
}

fn chunk(op: Op, x: &[f32]) -> castwise::Result<Found> {
    let t = Tensor::from_slice(x, [x.len()])?;
    let result = castwise::apply(op, &[Eager::new(Rules::Torch).tensor(&t).into()], Attrs::default()).result()?;
    let bytes = result.as_bytes().unwrap_or(&[]);
    let (single, mut found) = (Float::of(DType::F32), Found::default());
    for (x, b) in x.iter().zip(bytes.chunks(result.dtype().size())) {
        let bits = b.iter().rev().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
        let value = of_one(op, (*x).into()).map(|f| f.value);
        // A correctly rounded result is within every bar.
        if value.map(rounded).or_else(|| plain(op, *x)).is_some_and(|right| bits == right.into()) {
            found.right += 1;
            continue;
        }
        let admitted =
            match reference::element(op, DType::F32, (result.dtype(), Beyond::Largest), &[x.to_bits().into()]) {
                Ok(expected) => expected.admits(result.dtype(), bits),
                Err(_) => false,
            };
        if !admitted {
            found.wrong += 1;
            found.first.get_or_insert_with(|| format!("of {x:e} ({:#010x}): {bits:#x}", x.to_bits()));
        }
        let (Some(value), ours) = (value, f64::from(f32::from_bits(bits as u32))) else { continue };
        if ours.is_finite() && value.is_finite() {
            let error = (ours - value).abs() / single.spacing(value);
            if error > found.worst {
                (found.worst, found.at) = (error, *x);
            }
        }
    }
    Ok(found)
}

/// The result of the standard library, as bits, for ops with at most one rounding. The reference knows all ops but is
/// slower.
fn plain(op: Op, x: f32) -> Option<u32> {
    let value = match op {
        Op::Isnan => return Some(x.is_nan().into()),
        Op::Isinf => return Some(x.is_infinite().into()),
        Op::Isfinite => return Some(x.is_finite().into()),
        Op::LogicalNot => return Some((x == 0.0).into()),
        Op::Neg => return Some(x.to_bits() ^ 1 << 31),
        Op::Abs => return Some(x.to_bits() & !(1 << 31)),
        Op::Sign | Op::Sgn if x == 0.0 || x.is_nan() => return None,
        Op::Sign | Op::Sgn => 1f32.copysign(x),
        Op::Relu if x < 0.0 => 0.0,
        Op::Relu => x,
        Op::Angle if x < 0.0 => std::f32::consts::PI,
        Op::Angle if x >= 0.0 => 0.0,
        Op::Square => x * x,
        Op::Sqrt => x.sqrt(),
        Op::Reciprocal => 1.0 / x,
        Op::Floor => x.floor(),
        Op::Ceil => x.ceil(),
        Op::Round => x.round_ties_even(),
        Op::Trunc => x.trunc(),
        Op::Frac => x - x.trunc(),
        Op::RealPart | Op::Conj | Op::Positive => x,
        _ => return None,
    };
    Some(rounded(value.into()))
}

/// The bits of the f32 nearest to a value; for NaN, the canonical NaN.
fn rounded(value: f64) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { (value as f32).to_bits() }
}
