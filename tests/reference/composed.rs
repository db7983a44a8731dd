//! Reductions that the library composes of others, by their definitions in f64.
//!
//! Guarantees: the interval of an answer holds what any order of the elements gives. Where an order may overflow on the way,
//! nothing is checked. Does not: know of which rows the library composes them.

use castwise::{DType, Op};

use super::{Answer, Value};

/// The parts of a number.
fn parts(v: &Value) -> (f64, f64) {
    match *v {
        Value::Int(v) => (v as f64, 0.0),
        Value::Real(v) => (v, 0.0),
        Value::Pair(re, im) => (re, im),
    }
}

/// Whether both parts are finite.
pub fn is_finite(v: &Value) -> bool {
    let (re, im) = parts(v);
    re.is_finite() && im.is_finite()
}

fn is_nan(v: &Value) -> bool {
    let (re, im) = parts(v);
    re.is_nan() || im.is_nan()
}

/// The elements that are not NaN.
pub fn numbers(all: &[Value]) -> Vec<Value> {
    all.iter().filter(|v| !is_nan(v)).copied().collect()
}

/// How many elements are not zero.
pub fn nonzero(all: &[Value]) -> Answer {
    let zero = |v: &Value| match *v {
        Value::Int(v) => v == 0,
        ref v => parts(v) == (0.0, 0.0),
    };
    Answer::Exactly(Value::Int(all.iter().filter(|v| !zero(v)).count() as i128))
}

fn real(v: f64) -> Answer {
    Answer::Exactly(Value::Real(v))
}

/// The variance or its root. `d` is the elements' dtype.
pub fn variance(op: Op, d: DType, correction: f64, all: &[Value]) -> Answer {
    let all: Vec<(f64, f64)> = all.iter().map(parts).collect();
    if all.is_empty() || all.iter().any(|(re, im)| !re.is_finite() || !im.is_finite()) {
        return real(f64::NAN);
    }
    let n = all.len() as f64;
    let away: Vec<(f64, f64)> = all.iter().map(|(re, im)| (re - all[0].0, im - all[0].1)).collect();
    let most = away.iter().map(|(re, im)| re.abs().max(im.abs())).fold(0.0, f64::max);
    if most > 1e100 || most > 0.0 && most < 1e-100 && d.real() == DType::F64 {
        return Answer::Open;
    }
    let mean = (away.iter().map(|v| v.0).sum::<f64>() / n, away.iter().map(|v| v.1).sum::<f64>() / n);
    let square = |(re, im): (f64, f64)| re * re + im * im;
    let sum: f64 = away.iter().map(|(re, im)| square((re - mean.0, im - mean.1))).sum();
    let error = (n + 16.0) * f64::EPSILON * away.iter().copied().map(square).sum::<f64>();
    let divisor = (n - correction).max(0.0);
    if divisor == 0.0 {
        return match most {
            0.0 => real(f64::NAN),
            _ if sum > error => real(f64::INFINITY),
            _ => Answer::Open,
        };
    }
    let (low, high) = ((sum - error).max(0.0) / divisor, (sum + error) / divisor);
    let finished = |v: f64| if op == Op::Std { v.sqrt() } else { v };
    Answer::Between(finished(low * (1.0 - f64::EPSILON)), finished(high * (1.0 + f64::EPSILON)))
}

/// The norm of order `p`. `d` is the elements' dtype.
pub fn norm(d: DType, p: f64, all: &[Value]) -> Answer {
    let lengths: Vec<f64> = all.iter().map(parts).map(|(re, im)| re.hypot(im)).collect();
    if p == 0.0 {
        return real(all.iter().filter(|v| parts(v) != (0.0, 0.0)).count() as f64);
    }
    // The modulus of a number with an infinite part is infinite, whatever the other part is.
    if lengths.iter().any(|v| v.is_nan()) {
        return real(f64::NAN);
    }
    let order: fn(f64, f64) -> f64 = if p > 0.0 { f64::max } else { f64::min };
    let extreme = lengths.iter().copied().reduce(order).unwrap_or(0.0);
    let near = |v: f64, ulps: f64| match v {
        v if v == 0.0 || v.is_infinite() => real(v),
        v => Answer::Between(v * (1.0 - ulps * f64::EPSILON), v * (1.0 + ulps * f64::EPSILON)),
    };
    if p.is_infinite() {
        return if d.is_complex() { near(extreme, 4.0) } else { real(extreme) };
    }
    if lengths.is_empty() || p > 0.0 && extreme.is_infinite() || p < 0.0 && extreme == 0.0 {
        return real(extreme);
    }
    let range = 280.0 / p.abs().max(1.0 / p.abs());
    if lengths.iter().any(|v| *v != 0.0 && v.is_finite() && v.log10().abs() > range.min(280.0)) {
        return Answer::Open;
    }
    let sum: f64 = lengths.iter().map(|v| v.powf(p)).sum();
    near(sum.powf(1.0 / p), (all.len() + 20) as f64 * (2.0 + p.abs() + 2.0 / p.abs()) + 1000.0 * (1.0 + 1.0 / p.abs()))
}

/// The logarithm of the sum of exponentials, each step of which is rounded to `d`.
pub fn log_of_sum(d: DType, all: &[Value]) -> Answer {
    let all: Vec<f64> = all.iter().map(|v| parts(v).0).collect();
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if d.is_complex() {
        return Answer::Open;
    }
    if all.iter().any(|v| v.is_nan()) {
        return real(f64::NAN);
    }
    // What rounds beyond the largest number, 448, is a NaN: the logarithm of 0, or a difference.
    if d == DType::F8E4M3FN && (all.is_empty() || all.iter().any(|v| v - most < -464.0)) {
        return real(f64::NAN);
    }
    if most.is_infinite() {
        return real(most);
    }
    let log = all.iter().map(|v| (v - most).exp()).sum::<f64>().ln();
    // Half the distance from 1 to the next number of the dtype.
    let unit = match d {
        DType::F8E4M3FN => 2f64.powi(-4),
        DType::F8E5M2 => 2f64.powi(-3),
        DType::BF16 => 2f64.powi(-8),
        DType::F16 => 2f64.powi(-11),
        DType::F32 => 2f64.powi(-24),
        _ => 2f64.powi(-53),
    };
    let steps = unit * (12.0 + 4.0 * most.abs() + 4.0 * log.abs()) + all.len() as f64 * 2f64.powi(-23);
    if most.abs() > 1e30 { Answer::Open } else { Answer::Between(most + log - steps, most + log + steps) }
}
