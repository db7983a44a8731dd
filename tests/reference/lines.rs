//! Ops on the lines along a dim.
//!
//! Guarantees: each element is that of the elements of its line up to it, for any order in which they are combined; running extremes
//! and their positions are exact. Does not: find lines.

use castwise::{DType, Op};

use super::{Answer, Value, fold};

/// The results of a line, whose elements are in the op math dtype of `d`.
pub fn apply(op: Op, d: DType, line: &[Value]) -> Vec<Answer> {
    (1..=line.len()).map(|n| up_to(op, d, &line[..n])).collect()
}

/// The result of the last of these elements.
fn up_to(op: Op, d: DType, line: &[Value]) -> Answer {
    match op {
        Op::Cumsum => fold::apply(Op::Sum, d, 0.0, line),
        Op::Cumprod => fold::apply(Op::Prod, d, 0.0, line),
        Op::Cummax | Op::Cummin if d.is_complex() => Answer::Open,
        Op::Cummax | Op::Cummin => Answer::Exactly(line[extreme(op == Op::Cummax, line)]),
        Op::CummaxIndices => Answer::Exactly(Value::Int(extreme(true, line) as i128)),
        Op::CumminIndices => Answer::Exactly(Value::Int(extreme(false, line) as i128)),
        Op::Logcumsumexp if d.is_complex() => Answer::Open,
        Op::Logcumsumexp => log_of_sum(d, line),
        _ => panic!("no reference for `{op}` of {d}"),
    }
}

/// The last of the largest or smallest elements, or the last NaN.
fn extreme(largest: bool, line: &[Value]) -> usize {
    let parts = |v: &Value| match *v {
        Value::Int(v) => (v, 0.0, 0.0),
        Value::Real(v) => (0, v, 0.0),
        Value::Pair(re, im) => (0, re, im),
    };
    let is_nan = |v: &Value| parts(v).1.is_nan() || parts(v).2.is_nan();
    let takes = |v: &Value, best: &Value| if largest { parts(v) >= parts(best) } else { parts(v) <= parts(best) };
    let last = |found: usize, at: usize| if takes(&line[at], &line[found]) { at } else { found };
    line.iter().rposition(is_nan).unwrap_or_else(|| (1..line.len()).fold(0, last))
}

/// The logarithm of the sum of exponentials.
fn log_of_sum(d: DType, line: &[Value]) -> Answer {
    let values: Vec<f64> = line.iter().map(|v| v.real()).collect();
    let most =
        values.iter().fold(f64::NEG_INFINITY, |m, v| if v.is_nan() || m.is_nan() { f64::NAN } else { m.max(*v) });
    if !most.is_finite() {
        return Answer::Exactly(Value::Real(most));
    }
    let sum: f64 = values.iter().map(|v| (v - most).exp()).sum();
    let log = sum.ln() + most;
    // Each step adds a few units of the largest number on the way.
    let unit = if d.op_math() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let size = values.iter().filter(|v| v.is_finite()).fold(log.abs(), |m, v| m.max(v.abs())) + 1.0;
    let error = 4.0 * line.len() as f64 * unit * size;
    Answer::Between(log - error, log + error)
}
