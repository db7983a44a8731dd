//! Sorting, and reductions to an element by its rank, by a stable sort of all elements.
//!
//! Guarantees: NaNs are the largest, both zeros are equal. Does not: select in linear time, as the library does.

use std::cmp::Ordering;

use castwise::{DType, Op};

use super::{Answer, Value};

/// A number as what it is compared by: whether it is a NaN, and its parts.
fn parts(v: &Value) -> (bool, i128, f64, f64) {
    let (int, re, im) = match *v {
        Value::Int(v) => (v, 0.0, 0.0),
        Value::Real(v) => (0, v, 0.0),
        Value::Pair(re, im) => (0, re, im),
    };
    (re.is_nan() || im.is_nan(), int, re, im)
}

fn compare(a: &Value, b: &Value) -> Ordering {
    let ((a_nan, a, a_re, a_im), (b_nan, b, b_re, b_im)) = (parts(a), parts(b));
    if a_nan || b_nan {
        return a_nan.cmp(&b_nan);
    }
    a.cmp(&b)
        .then(a_re.partial_cmp(&b_re).unwrap_or(Ordering::Equal))
        .then(a_im.partial_cmp(&b_im).unwrap_or(Ordering::Equal))
}

/// The positions of the elements in order.
pub fn sorted(all: &[Value]) -> Vec<usize> {
    in_order(all, false)
}

/// The positions of the elements in order, or from the largest on; equal ones as they are.
pub fn in_order(all: &[Value], reversed: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| {
        let order = compare(&all[*a], &all[*b]);
        if reversed { order.reverse() } else { order }
    });
    order
}

/// The result of a reduction by rank.
pub enum Ranked {
    /// The element at a position, with its bits.
    Element(usize),
    /// The position itself.
    Position(usize),
    Computed(Answer),
}

/// What rule sets have of their own in quantiles.
#[derive(Clone, Copy, Default)]
pub struct Quantiles {
    /// NumPy: the element after that of a whole rank has the weight 0.
    pub next: bool,
    /// JAX: both elements have weights, and the midpoint is the mean.
    pub weighted: bool,
    /// JAX without `x64`: ranks and weights are f32.
    pub single: bool,
}

/// The result of a reduction by rank of elements in the op math dtype of `d`; `None` for another op.
pub fn apply(op: Op, d: DType, number: f64, choice: &str, how: Quantiles, all: &[Value]) -> Option<Ranked> {
    let skips = matches!(op, Op::Nanmedian | Op::NanmedianIndices | Op::Nanquantile);
    let (q, mean) = match op {
        Op::Median | Op::Nanmedian | Op::MedianIndices | Op::NanmedianIndices => (0.5, true),
        Op::Quantile | Op::Nanquantile => (number, false),
        Op::Kthvalue | Op::KthvalueIndices => (f64::NAN, false),
        _ => return None,
    };
    let order = sorted(all);
    let is_position = matches!(op, Op::MedianIndices | Op::NanmedianIndices | Op::KthvalueIndices);
    let found = |at: usize| Some(if is_position { Ranked::Position(at) } else { Ranked::Element(at) });
    if all.is_empty() {
        let nan = if d.is_complex() { Value::Pair(f64::NAN, f64::NAN) } else { Value::Real(f64::NAN) };
        return Some(Ranked::Computed(Answer::Exactly(nan)));
    }
    if q.is_nan() {
        return found(order[number as usize - 1]);
    }
    let numbers = all.iter().filter(|v| !parts(v).0).count();
    if numbers == 0 || numbers < all.len() && !skips {
        return found(order[numbers]);
    }
    let last = (numbers - 1) as f64;
    let rank = if how.single { f64::from(q as f32 * last as f32) } else { q * last };
    let (low, high) = (rank.floor(), rank.ceil());
    let at = |rank: f64| order[rank as usize];
    let weight = match choice {
        "lower" | "" => return found(at(low)),
        "higher" => return found(at(high)),
        "nearest" if rank - low < 0.5 || rank - low == 0.5 && low % 2.0 == 0.0 => return found(at(low)),
        "nearest" => return found(at(high)),
        "nearest_down" => return found(at(if rank - low <= 0.5 { low } else { high })),
        "midpoint" => {
            if low == high {
                0.0
            } else {
                0.5
            }
        }
        _ => rank - low,
    };
    let single = d.op_math().real() == DType::F32;
    let mean = mean || how.weighted && choice == "midpoint";
    let high = if how.next && !mean { last.min(low + 1.0) } else { high };
    let between = |a: f64, b: f64| match (mean, single) {
        (true, false) if (a + b).is_infinite() => a / 2.0 + b / 2.0,
        (true, _) => (a + b) / 2.0,
        _ if how.weighted && how.single => {
            let (a, b, weight) = (a as f32, b as f32, weight as f32);
            f64::from(a * (1.0 - weight) + b * weight)
        }
        _ if how.weighted => a * (1.0 - weight) + b * weight,
        (false, true) => f64::from(mixed(a as f32, b as f32, weight as f32)),
        (false, false) => {
            if weight < 0.5 {
                a + weight * (b - a)
            } else {
                b - (b - a) * (1.0 - weight)
            }
        }
    };
    Some(Ranked::Computed(Answer::Exactly(match (all[at(low)], all[at(high)]) {
        (Value::Pair(a, x), Value::Pair(b, y)) => Value::Pair(between(a, b), between(x, y)),
        (a, b) => Value::Real(between(a.real(), b.real())),
    })))
}

/// From a to b, in f32.
fn mixed(a: f32, b: f32, weight: f32) -> f32 {
    if weight < 0.5 { a + weight * (b - a) } else { b - (b - a) * (1.0 - weight) }
}
