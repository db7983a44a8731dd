//! Reductions, for any order of their elements.
//!
//! Guarantees: reductions of integers, `any`, `all`, `amax` and `amin` are exact. Sums and products of floats are
//! intervals that contain the results of all orders. If an order may overflow on the way, nothing is checked. Does not:
//! decide which elements are combined.

use castwise::{DType, Op};

use super::composed;
use super::format::wrap;
use super::real::Math;
use super::{Answer, Value};

/// The reduction of all elements, which are in the op math dtype of `d`, with the op's number.
pub fn apply(op: Op, d: DType, number: f64, all: &[Value]) -> Answer {
    match op {
        Op::Var | Op::Std => composed::variance(op, d, number, all),
        Op::Norm => composed::norm(d, number, all),
        Op::CountNonzero => composed::nonzero(all),
        Op::Logsumexp => composed::log_of_sum(d, all),
        Op::Nansum => apply(Op::Sum, d, number, &composed::numbers(all)),
        // A complex sum is divided as complex numbers are.
        Op::Nanmean if d.is_complex() && !composed::numbers(all).iter().all(composed::is_finite) => Answer::Open,
        Op::Nanmean => sums(Op::Mean, d, &composed::numbers(all)),
        Op::Any => Answer::Exactly(Value::Int(all.iter().any(|v| v.int() != 0).into())),
        Op::Argmax | Op::Argmin => Answer::Exactly(Value::Int(position(op, all))),
        Op::All => Answer::Exactly(Value::Int(all.iter().all(|v| v.int() != 0).into())),
        _ if d.is_integral() => integers(op, d, all),
        Op::Amax | Op::Amin if d.is_complex() => extremes(op, all),
        Op::Amax => Answer::Exactly(Value::Real(all.iter().fold(f64::NEG_INFINITY, |m, v| Math::maximum(m, v.real())))),
        Op::Amin => Answer::Exactly(Value::Real(all.iter().fold(f64::INFINITY, |m, v| Math::minimum(m, v.real())))),
        Op::Prod => products(d, all),
        _ => sums(op, d, all),
    }
}

/// The first of the largest or smallest elements, or the first NaN. Complex numbers order by their real parts first.
fn position(op: Op, all: &[Value]) -> i128 {
    let pair = |v: &Value| match *v {
        Value::Int(v) => (v, 0.0, 0.0),
        Value::Real(v) => (0, v, 0.0),
        Value::Pair(re, im) => (0, re, im),
    };
    let beyond = |v: &Value, best: &Value| {
        let (v, best) = (pair(v), pair(best));
        if op == Op::Argmax { v > best } else { v < best }
    };
    let is_nan = |v: &Value| pair(v).1.is_nan() || pair(v).2.is_nan();
    let first = |found: usize, at: usize| if beyond(&all[at], &all[found]) { at } else { found };
    all.iter().position(is_nan).unwrap_or_else(|| (0..all.len()).fold(0, first)) as i128
}

/// The lexicographically largest or smallest number. Of several with NaNs it may be any.
fn extremes(op: Op, all: &[Value]) -> Answer {
    let nans = all.iter().filter(|v| v.pair().0.is_nan() || v.pair().1.is_nan()).count();
    let order = |a: &(f64, f64), b: &(f64, f64)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    let numbers = all.iter().map(|v| v.pair());
    let found = if op == Op::Amax { numbers.max_by(order) } else { numbers.min_by(order) };
    match found {
        // Zeros of different signs are equal.
        Some((re, im)) if nans == 0 && re != 0.0 && im != 0.0 => Answer::Exactly(Value::Pair(re, im)),
        _ => Answer::Open,
    }
}

fn integers(op: Op, d: DType, all: &[Value]) -> Answer {
    let values = all.iter().map(|v| v.int());
    let result = match op {
        // A sum of bools is `or`.
        Op::Sum if d == DType::Bool => values.max().unwrap_or(0),
        Op::Sum => values.fold(0, |sum, v| wrap(d, sum + v)),
        Op::Prod => values.fold(1, |product, v| wrap(d, i128::wrapping_mul(product, v))),
        Op::Amax => values.max().unwrap_or(0),
        Op::Amin => values.min().unwrap_or(0),
        _ => panic!("no reference for `{op}` of {d}"),
    };
    Answer::Exactly(Value::Int(result))
}

/// Half the distance from 1 to the next number of the arithmetic, and its largest number.
fn limits(d: DType) -> (f64, f64) {
    if d.op_math().real() == DType::F32 {
        (0.5 * f64::from(f32::EPSILON), f32::MAX.into())
    } else {
        (0.5 * f64::EPSILON, f64::MAX)
    }
}

fn sums(op: Op, d: DType, all: &[Value]) -> Answer {
    let math = Math { single: d.op_math().real() == DType::F32 };
    let count = if op == Op::Mean { Some(all.len() as f64) } else { None };
    let part = |pick: fn(Value) -> f64| sum(math, d, count, &all.iter().map(|v| pick(*v)).collect::<Vec<f64>>());
    if !d.is_complex() {
        return part(Value::real);
    }
    let parts = [part(|v| v.pair().0), part(|v| v.pair().1)];
    if parts.iter().any(|p| matches!(p, Answer::Open)) {
        return Answer::Open;
    }
    let ends = parts.map(|p| match p {
        Answer::Between(lo, hi) => (lo, hi),
        Answer::Exactly(v) => (v.real(), v.real()),
        other => panic!("{other:?} is no sum"),
    });
    let [(a, b), (x, y)] = ends;
    if [a, b, x, y].iter().any(|v| !v.is_finite()) {
        let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
        return if same(a, b) && same(x, y) { Answer::Exactly(Value::Pair(a, x)) } else { Answer::Open };
    }
    Answer::Near((a + b) / 2.0, (x + y) / 2.0, ((b - a) / 2.0).max((y - x) / 2.0))
}

/// A sum; a mean if there is a count.
fn sum(math: Math, d: DType, count: Option<f64>, all: &[f64]) -> Answer {
    let finished = |v: f64| count.map_or(v, |n| math.div(v, n));
    let special: f64 = all.iter().filter(|v| !v.is_finite()).sum();
    if all.iter().any(|v| !v.is_finite()) {
        // The elements include a NaN, or infinities of one sign or of both signs.
        let bound: f64 = all.iter().filter(|v| v.is_finite()).map(|v| v.abs()).sum();
        let open = bound > limits(d).1 / 2.0;
        return if open { Answer::Open } else { Answer::Exactly(Value::Real(finished(special))) };
    }
    // The sum and the errors of its steps, by Neumaier's method.
    let (mut sum, mut lost, mut magnitude) = (0f64, 0f64, 0f64);
    for v in all {
        let next = sum + v;
        lost += if sum.abs() >= v.abs() { (sum - next) + v } else { (v - next) + sum };
        sum = next;
        magnitude += v.abs();
    }
    let (unit, largest) = limits(d);
    if magnitude > largest / 2.0 {
        return Answer::Open;
    }
    if all.is_empty() || magnitude == 0.0 {
        // The initial value of a sum is +0.
        return Answer::Exactly(Value::Real(finished(0.0)));
    }
    // Each of the n - 1 roundings is at most one unit of the sum of magnitudes, in any order.
    let error = all.len() as f64 * unit * magnitude * 1.01;
    let (lo, hi) = (sum + lost - error, sum + lost + error);
    Answer::Between(finished(math.round(lo)), finished(math.round(hi)))
}

fn products(d: DType, all: &[Value]) -> Answer {
    let (unit, _) = limits(d);
    if d.is_complex() {
        return complex_products(d, all);
    }
    let values: Vec<f64> = all.iter().map(|v| v.real()).collect();
    if !in_range(d, 1.0, &values) {
        return Answer::Open;
    }
    let product: f64 = values.iter().product();
    if values.contains(&0.0) {
        return Answer::Exactly(Value::Real(product));
    }
    let error = all.len() as f64 * unit * product.abs() * 2.0;
    Answer::Between(product - error, product + error)
}

/// Whether the products of all orders stay within a fraction of the range.
fn in_range(d: DType, share: f64, values: &[f64]) -> bool {
    let (mut up, mut down) = (0.0, 0.0);
    for v in values.iter().filter(|v| **v != 0.0) {
        let size = v.abs().log2();
        if size > 0.0 { up += size } else { down -= size }
    }
    let room = share * if d.op_math().real() == DType::F32 { 120.0 } else { 1000.0 };
    values.iter().all(|v| v.is_finite()) && up < room && down < room
}

fn complex_products(d: DType, all: &[Value]) -> Answer {
    let lengths: Vec<f64> = all.iter().map(|v| v.pair()).map(|(re, im)| re.hypot(im)).collect();
    // If the lengths stay in half of the range, underflow of a part does not affect the result.
    if !in_range(d, 0.5, &lengths) {
        return Answer::Open;
    }
    let length: f64 = lengths.iter().product();
    let (re, im) = all.iter().map(|v| v.pair()).fold((1.0, 0.0), |(a, b), (c, d)| (a * c - b * d, a * d + b * c));
    // Each product of complex numbers is rounded three times per part.
    Answer::Near(re, im, 4.0 * (all.len() + 1) as f64 * limits(d).0 * length)
}
