//! The fuzz targets: each takes any bytes and must neither panic nor violate a guarantee. `tests/no_panics.rs` runs the
//! targets on a stored corpus and on random bytes, `xtask/src/fuzz.rs` runs them for a given time, and `fuzz/` runs
//! them with coverage by cargo-fuzz.
//!
//! Guarantees: a panic is a bug in castwise. Does not: read or write files other than its own temporary file.
#![allow(dead_code, reason = "each user takes a part of it")]

use castwise::ops::{Choice, Op};
use castwise::prelude::*;
use castwise::shape::Dims;
use castwise::{Attrs, CancelToken, Composite};

mod calls;
mod programs;

/// A fuzz target, which takes any bytes.
pub type Target = fn(&[u8]);

/// The targets, by name.
pub const TARGETS: [(&str, Target); 7] = [
    ("expression", expression),
    ("text", text),
    ("program", programs::three_ways),
    ("calls", calls::calls),
    ("npy", npy),
    ("npz", npz),
    ("safetensors", safetensors),
];

/// Bytes as decisions. After the last byte, all further decisions are 0.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.byte() % from.len()]
    }

    pub fn dtype(&mut self) -> DType {
        self.pick(&DType::ALL)
    }

    /// A tensor of this shape, filled with raw bytes, which are repeated as needed.
    pub fn tensor(&mut self, d: DType, shape: &[usize]) -> Tensor {
        let n = shape.iter().product::<usize>() * d.size();
        let few: Vec<u8> = (0..n.min(24)).map(|_| self.byte() as u8).collect();
        let mask = if d == DType::Bool { 1 } else { 255 };
        let all: Vec<u8> = few.iter().cycle().take(n).map(|b| b & mask).collect();
        Tensor::from_bytes(d, shape, &all).expect("a tensor of as many bytes as its shape has")
    }
}

/// The bytes of a tensor's elements, dtype and shape.
pub fn contents(t: &Tensor) -> (DType, Vec<usize>, Vec<u8>) {
    let rows = t.contiguous().expect("a small copy");
    (t.dtype(), t.shape().to_vec(), rows.as_bytes().expect("a contiguous tensor").to_vec())
}

thread_local! {
    /// Executors with and without compiled loops.
    pub static EXECUTORS: [Executor; 2] = [true, false].map(|jit| {
        Executor::builder().threads(1).jit(jit).cache(64).max_bytes(1 << 24).build()
    });
}

/// Parses any text as an expression, in both modes.
fn expression(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let feeds = [
        ("a", Tensor::from_slice(&[1.5f32, -0.0, f32::NAN], [3]).expect("three")),
        ("b", Tensor::from_slice(&[7i32, 0, i32::MIN], [3]).expect("three")),
        ("c", Tensor::from_slice(&[true, false], [2, 1]).expect("two")),
        ("d", Tensor::scalar(castwise::f16::from_f32(0.25))),
        ("e", Tensor::from_slice(&[castwise::Complex::new(0.5f32, -2.0)], [1]).expect("one")),
    ];
    for rules in Rules::ALL.iter().copied() {
        let (p, cx) = (Program::new(rules), Eager::new(rules));
        for (name, t) in &feeds {
            p.data(name, t.dtype(), Dims::from(t.shape()));
        }
        let before = p.len();
        let lazy = p.expression(&text);
        let eager = castwise::expr::parse_expression(&text, |name| {
            feeds.iter().find(|(n, _)| *n == name).map(|(_, t)| cx.tensor(t))
        });
        let Ok(lazy) = lazy else {
            assert_eq!(p.len(), before, "an expression that was refused has left nodes");
            continue;
        };
        let eager = eager.expect("what one mode reads the other does").result();
        let fused = EXECUTORS.with(|e| e[0].run(&p, feeds.clone(), [&lazy]));
        match (eager, fused) {
            (Ok(e), Ok(f)) => assert_eq!(contents(&e), contents(&f[0])),
            (Err(_), Err(_)) => {}
            (e, f) => panic!("one mode refuses: eager {e:?}, compiled {f:?}\n{p}"),
        }
        let _ = p.infer().map(|typed| typed.explain().to_string());
    }
}

/// Parses any text as a program. A program that is read prints as a text that reads back to itself, and mistakes have
/// ranges inside the text.
fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Program::parse(&text) {
        Ok(p) => {
            let printed = p.to_string();
            let again = Program::parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
            assert_eq!(again.to_string(), printed);
            let _ = p.infer().map(|typed| typed.explain().to_string());
            let _ = p.with_rules(Rules::Paddle).check();
        }
        Err(e) => {
            for d in e.diagnostics() {
                if let castwise::SourceLocation::Text(r) = &d.location {
                    assert!(text.get(r.start as usize..r.end as usize).is_some(), "{d}");
                }
            }
            assert!(!e.to_string().contains("internal error"), "{e}");
        }
    }
}

#[cfg(feature = "io")]
fn with_file(data: &[u8], ending: &str, read: impl FnOnce(&std::path::Path) -> castwise::Result<Vec<Tensor>>) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let memory = std::path::Path::new("/dev/shm");
    let dir = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let unique = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = dir.join(format!("castwise-fuzz-{}-{unique}.{ending}", std::process::id()));
    std::fs::write(&path, data).expect("a temporary file");
    let all = read(&path);
    std::fs::remove_file(&path).expect("the temporary file");
    // No file gives a tensor with more bytes than a small file can hold, compressed or not, or with another number of
    // bytes than its shape has.
    for t in all.into_iter().flatten() {
        assert_eq!(t.as_bytes().map(<[u8]>::len), Some(t.shape().iter().product::<usize>() * t.dtype().size()));
        assert!(t.dtype() != DType::Bool || t.as_bytes().is_some_and(|b| b.iter().all(|b| *b < 2)));
    }
}

#[cfg(feature = "io")]
fn npy(data: &[u8]) {
    with_file(data, "npy", |path| Ok(vec![castwise::io::read_npy(path)?]));
}

#[cfg(feature = "io")]
fn npz(data: &[u8]) {
    with_file(data, "npz", |path| {
        let mut file = castwise::io::Npz::open(path)?;
        let names: Vec<String> = file.names().map(str::to_string).collect();
        names.iter().map(|name| file.load(name)).collect()
    });
}

#[cfg(feature = "io")]
fn safetensors(data: &[u8]) {
    with_file(data, "safetensors", |path| {
        let mut file = castwise::io::SafeTensors::open(path)?;
        let names: Vec<String> = file.names().map(str::to_string).collect();
        names.iter().map(|name| file.load(name)).collect()
    });
}

#[cfg(not(feature = "io"))]
fn npy(_: &[u8]) {}
#[cfg(not(feature = "io"))]
fn npz(_: &[u8]) {}
#[cfg(not(feature = "io"))]
fn safetensors(_: &[u8]) {}

/// Applies any composite to any of these handles, with any parameters.
fn composed<M: Mode>(b: &mut Bytes<'_>, values: &[Var<M>]) -> Var<M> {
    let all: Vec<Composite> = Composite::all().collect();
    let mut made = all[b.byte() % all.len()].clone();
    let (names, required) = made.operands();
    let count = required + b.byte() % (names.len() - required + 1);
    let operands: Vec<&Var<M>> = (0..count).map(|_| &values[b.byte() % values.len()]).collect();
    if !b.byte().is_multiple_of(4) {
        made = made.over([b.byte() as i64 % 5 - 2]);
    }
    let numbers: Vec<&str> = made.parameters().filter(|p| !["dims", "dtype", "equal_nan"].contains(p)).collect();
    for name in numbers {
        if b.byte().is_multiple_of(2) {
            let value = b.pick(&[0.0, 1.0, 2.0, -1.0, -3.0, 0.5, 1e-5, f64::NAN, 1e300]);
            made = made.number(name, value).expect("one of its numbers");
        }
    }
    let rest: Vec<castwise::Operand<M>> = operands[1..].iter().map(|v| (*v).into()).collect();
    operands[0].composite(&made, &rest)
}

/// Applies any op to any of these handles and scalars, with any attributes.
pub fn application<M: Mode>(b: &mut Bytes<'_>, values: &[Var<M>]) -> Var<M> {
    match b.byte() % 16 {
        0 => return generated(b, values),
        1 => return composed(b, values),
        _ => {}
    }
    let op = b.pick(Op::ALL);
    let arity = if b.byte() == 255 { b.byte() % 6 } else { op.arity() };
    let mut operands: Vec<castwise::Operand<M>> = Vec::with_capacity(arity);
    for i in 0..arity {
        let parameter = i + op.def().parameters() >= op.arity();
        let scalar = parameter || i > 0 && b.byte().is_multiple_of(5);
        operands.push(if scalar { scalar_of(b).into() } else { (&values[b.byte() % values.len()]).into() });
    }
    let mut attrs = Attrs::default();
    match b.byte() % 8 {
        0 => attrs = Attrs::axis(b.byte() as i64 % 6 - 2),
        1 => attrs.dims = Some([b.byte() as i64 % 5 - 2, b.byte() as i64 % 5 - 2][..b.byte() % 3].into()),
        2 => attrs.keepdim = true,
        3 => attrs = Attrs::output(b.dtype()),
        4 => {
            attrs =
                Attrs::axis(b.byte() as i64 % 6 - 2).with_number(b.pick(&[0.0, 0.5, 1.0, 2.0, -1.0, f64::NAN, 1e300]))
        }
        5 => {
            attrs =
                Attrs::axis(b.byte() as i64 % 6 - 2).with_choice(b.pick(&[Choice::True, Choice::Lower, Choice::Linear]))
        }
        _ => {}
    }
    if matches!(op, Op::Cast | Op::ViewAs) {
        attrs = Attrs::cast(b.dtype());
    }
    castwise::apply(op, &operands, attrs)
}

/// A generator in the shape of one of these, with any parameters.
fn generated<M: Mode>(b: &mut Bytes<'_>, values: &[Var<M>]) -> Var<M> {
    let like = &values[b.byte() % values.len()];
    let key = (b.byte() as u64, b.byte() as u64);
    let number = |b: &mut Bytes<'_>| b.pick(&[0.0, 0.3, 1.0, -2.5, f64::NAN, f64::INFINITY, 1e300]);
    match b.byte() % 7 {
        0 => like.index_along(b.byte() as i64 % 6 - 2),
        1 => like.arange_like(scalar_of(b), scalar_of(b)),
        2 => like.linspace(number(b), number(b), b.byte() as i64 % 6 - 2),
        3 => like.uniform(key, b.dtype()),
        4 => like.normal(key, b.dtype()),
        5 => like.bernoulli(number(b), key),
        _ => like.blocks(&values[b.byte() % values.len()], b.byte()),
    }
}

fn scalar_of(b: &mut Bytes<'_>) -> Scalar {
    match b.byte() % 6 {
        0 => Scalar::Bool(b.byte() % 2 == 1),
        1 => Scalar::Int(b.byte() as i128 - 128),
        2 => Scalar::Int(b.pick(&[i64::MIN.into(), i64::MAX.into(), u64::MAX.into(), 1 << 31, -(1 << 40), 0])),
        3 => Scalar::Float(b.pick(&[0.1, -0.0, f64::NAN, f64::INFINITY, 1e300, 5e-324, 65520.0])),
        4 => Scalar::Float((b.byte() as f64 - 128.0) / 8.0),
        _ => Scalar::Complex(castwise::Complex::new(b.byte() as f64 / 16.0, f64::INFINITY)),
    }
}

/// A token that may have been cancelled.
pub fn token(b: &mut Bytes<'_>) -> CancelToken {
    let token = CancelToken::new();
    if b.byte().is_multiple_of(2) {
        token.cancel();
    }
    token
}
