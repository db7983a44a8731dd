//! Inputs, reference results and errors.
//!
//! Guarantees: inputs are the same on every machine and in every run. The error is |result - reference| divided by the
//! larger of |reference| and the mean |reference|, so that cancellation does not count as an error; every element is
//! compared, and a NaN is an infinite error. Does not: use castwise except to read a tensor's elements.
//! |reference| and the mean |reference|, so that cancellation does not count as error; every element is compared, and
//! a NaN is an infinite error. Does not: use castwise for more than to read a tensor's elements.

use castwise::prelude::*;
use castwise::{Complex, Element, F8E4M3FN, bf16, f16};

use crate::defs::{Input, Reference, Workload};
use crate::halves::{nearest_bf16, nearest_f16};
use crate::random::Random;

/// The number of elements that are widened at a time.
const CHUNK: usize = 4096;

/// A separate sequence for each input of each workload, seeded with the FNV-1a hash of both names.
fn numbers(workload: &str, input: &str) -> Random {
    let bytes = workload.bytes().chain([0]).chain(input.bytes());
    Random(bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)))
}

/// An input's tensor for a result of `n` elements.
pub fn tensor(w: &Workload, input: &Input, n: usize) -> castwise::Result<Tensor> {
    let shape = (input.shape)(n);
    let mut r = numbers(w.name, input.name);
    let mut draw = || input.low + r.unit() * (input.high - input.low);
    match input.dtype {
        DType::F16 => fill(&shape, || nearest_f16(draw())),
        DType::BF16 => fill(&shape, || nearest_bf16(draw())),
        DType::F32 => fill(&shape, || draw() as f32),
        DType::F64 => fill(&shape, draw),
        DType::C64 => fill(&shape, || Complex::new(draw() as f32, draw() as f32)),
        DType::I32 => fill(&shape, || draw().floor() as i32),
        DType::U8 => fill(&shape, || draw() as u8),
        DType::U16 => fill(&shape, || draw() as u16),
        DType::U32 => fill(&shape, || draw() as u32),
        DType::F8E4M3FN => fill(&shape, || F8E4M3FN::from_f64(draw())),
        other => unreachable!("no workload has inputs of {other}"),
    }
}

fn fill<T: Element>(shape: &[usize], mut next: impl FnMut() -> T) -> castwise::Result<Tensor> {
    Tensor::from_vec((0..shape.iter().product()).map(|_| next()).collect(), shape)
}

/// A type in which references compute.
trait Wide: Copy + Default {
    /// Appends the elements of `t` at the given indices.
    fn read(t: &Tensor, at: &[usize], into: &mut Vec<Self>);
    fn size(self) -> f64;
    fn distance(self, other: Self) -> f64;
}

fn each<T: Element, W>(t: &Tensor, at: &[usize], into: &mut Vec<W>, widen: impl Fn(T) -> W) {
    let all = t.as_slice::<T>().expect("inputs and results are contiguous");
    into.extend(at.iter().map(|i| widen(all[*i])));
}

impl Wide for f64 {
    fn read(t: &Tensor, at: &[usize], into: &mut Vec<f64>) {
        match t.dtype() {
            DType::F16 => each(t, at, into, f16::to_f64),
            DType::BF16 => each(t, at, into, bf16::to_f64),
            DType::F32 => each(t, at, into, |x: f32| f64::from(x)),
            DType::F64 => each(t, at, into, |x: f64| x),
            DType::U8 => each(t, at, into, |x: u8| f64::from(x)),
            DType::U16 => each(t, at, into, |x: u16| f64::from(x)),
            DType::F8E4M3FN => each(t, at, into, F8E4M3FN::to_f64),
            other => unreachable!("{other} is not read as f64"),
        }
    }

    fn size(self) -> f64 {
        self.abs()
    }

    fn distance(self, other: f64) -> f64 {
        (self - other).abs()
    }
}

impl Wide for Complex<f64> {
    fn read(t: &Tensor, at: &[usize], into: &mut Vec<Complex<f64>>) {
        each(t, at, into, |z: Complex<f32>| Complex::new(f64::from(z.re), f64::from(z.im)));
    }

    fn size(self) -> f64 {
        self.norm()
    }

    fn distance(self, other: Complex<f64>) -> f64 {
        (self - other).norm()
    }
}

impl Wide for i64 {
    fn read(t: &Tensor, at: &[usize], into: &mut Vec<i64>) {
        match t.dtype() {
            DType::I32 => each(t, at, into, |x: i32| i64::from(x)),
            DType::U32 => each(t, at, into, |x: u32| i64::from(x)),
            DType::Bool => each(t, at, into, |x: bool| i64::from(x)),
            other => unreachable!("{other} is not read as i64"),
        }
    }

    /// 1, so that a wrong boolean or integer is an error of 1 at least.
    fn size(self) -> f64 {
        1.0
    }

    fn distance(self, other: i64) -> f64 {
        self.abs_diff(other) as f64
    }
}

/// A workload's reference result.
pub struct Expected(Values);

enum Values {
    Real(Vec<f64>),
    Complex(Vec<Complex<f64>>),
    Integer(Vec<i64>),
}

/// Computes the reference result for these inputs.
pub fn expected(w: &Workload, n: usize, inputs: &[Tensor]) -> Expected {
    let domain = w.domain(n);
    let values = match w.reference {
        Reference::Real(f) if w.mean => {
            let terms = evaluate(&domain, inputs, f);
            Values::Real(vec![terms.iter().sum::<f64>() / terms.len() as f64])
        }
        Reference::Real(f) => Values::Real(evaluate(&domain, inputs, f)),
        Reference::Complex(f) => Values::Complex(evaluate(&domain, inputs, f)),
        Reference::Truth(f) => Values::Integer(evaluate(&domain, inputs, |v: &[i64]| i64::from(f(v)))),
        Reference::Integer(f) => Values::Integer(evaluate(&domain, inputs, f)),
    };
    Expected(values)
}

impl Expected {
    /// The largest error of a result; for booleans, the fraction that is wrong; for integers, the mean distance.
    pub fn max_rel_err(&self, result: &Tensor) -> f64 {
        match &self.0 {
            Values::Real(all) => errors(all, result).1,
            Values::Complex(all) => errors(all, result).1,
            Values::Integer(all) => errors(all, result).0,
        }
    }
}

/// Applies `f` to every element, with the inputs broadcast to `domain`.
fn evaluate<W: Wide>(domain: &[usize], inputs: &[Tensor], f: impl Fn(&[W]) -> W) -> Vec<W> {
    let numel: usize = domain.iter().product();
    let mut out = Vec::with_capacity(numel);
    let (mut at, mut columns) = (Vec::new(), vec![Vec::with_capacity(CHUNK); inputs.len()]);
    let mut operands = vec![W::default(); inputs.len()];
    for start in (0..numel).step_by(CHUNK) {
        let chunk = start..(start + CHUNK).min(numel);
        for (t, column) in inputs.iter().zip(&mut columns) {
            at.clear();
            at.extend(chunk.clone().map(|i| if t.shape() == domain { i } else { place(i, domain, t.shape()) }));
            column.clear();
            W::read(t, &at, column);
        }
        for i in 0..chunk.len() {
            operands.iter_mut().zip(&columns).for_each(|(to, column)| *to = column[i]);
            out.push(f(&operands));
        }
    }
    out
}

/// The index of element `flat` of `domain` in an operand of `shape`.
fn place(mut flat: usize, domain: &[usize], shape: &[usize]) -> usize {
    let (mut at, mut stride) = (0, 1);
    for (axis, extent) in domain.iter().enumerate().rev() {
        let index = flat % extent;
        flat /= extent;
        if let Some(own) = (axis + shape.len()).checked_sub(domain.len()).map(|a| shape[a]) {
            at += if own == 1 { 0 } else { index * stride };
            stride *= own;
        }
    }
    at
}

/// The mean and the maximum relative error.
fn errors<W: Wide>(expected: &[W], result: &Tensor) -> (f64, f64) {
    if result.numel() != expected.len() {
        return (f64::INFINITY, f64::INFINITY);
    }
    let mean = expected.iter().map(|x| x.size()).sum::<f64>() / expected.len() as f64;
    let (mut sum, mut worst, mut got) = (0.0, 0.0f64, Vec::with_capacity(CHUNK));
    for (chunk, start) in expected.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
        got.clear();
        W::read(result, &(start..start + chunk.len()).collect::<Vec<_>>(), &mut got);
        for (want, got) in chunk.iter().zip(&got) {
            let e = got.distance(*want) / want.size().max(mean);
            let e = if e.is_nan() { f64::INFINITY } else { e };
            sum += e;
            worst = worst.max(e);
        }
    }
    (sum / expected.len() as f64, worst)
}
