//! Partial results of a reduction: what a batch is reduced to, and how that is merged.
//!
//! Guarantees: sums of integers, and extremes, are the same whatever is merged in which order. Does not: read columns.

use castwise::{DType, Eager, Op, Rules, Tensor, Var};
use datafusion::arrow::datatypes::DataType;

use crate::types::data_type;

/// How partial results of a reduction are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A sum of integers, which wraps: in i64, whose bits are those of u64.
    Integers,
    /// A sum in f64, and what rounding took from it.
    Floats,
    /// That, over the number of rows.
    Mean,
    /// The least or greatest element.
    Extreme(Op),
    /// The number of rows, their mean, and the sum of squared distances from it.
    Moments { correction: f64 },
}

impl Kind {
    /// The fields of the state, by name.
    pub(crate) fn state(self, dtype: DType) -> Vec<(&'static str, DataType)> {
        use DataType::{Float64, Int64, UInt64};
        match self {
            Kind::Integers => vec![("sum", Int64), ("count", UInt64)],
            Kind::Floats | Kind::Mean => vec![("sum", Float64), ("rest", Float64), ("count", UInt64)],
            Kind::Extreme(_) => vec![("extreme", data_type(dtype))],
            Kind::Moments { .. } => vec![("mean", Float64), ("squares", Float64), ("count", UInt64)],
        }
    }

    /// The dtype in which values are added one by one; `None` of extremes.
    pub(crate) fn wide(self) -> Option<DType> {
        match self {
            Kind::Integers => Some(DType::I64),
            Kind::Floats | Kind::Mean | Kind::Moments { .. } => Some(DType::F64),
            Kind::Extreme(_) => None,
        }
    }

    /// What a batch is reduced to.
    pub(crate) fn fetches(self, value: &Var) -> Vec<Var> {
        let wide = self.wide().map_or_else(|| value.clone(), |dtype| value.cast(dtype));
        match self {
            Kind::Integers | Kind::Floats | Kind::Mean => vec![wide.sum()],
            Kind::Extreme(Op::Amin) => vec![wide.amin()],
            Kind::Extreme(_) => vec![wide.amax()],
            Kind::Moments { .. } => {
                let mean = wide.mean();
                vec![mean.clone(), (wide - mean).square().sum()]
            }
        }
    }
}

/// What has been reduced so far.
#[derive(Debug, Clone)]
pub(crate) enum State {
    Integers {
        sum: i64,
        count: u64,
    },
    /// Neumaier's sum: `rest` has what additions to `sum` rounded off.
    Floats {
        mean: bool,
        sum: f64,
        rest: f64,
        count: u64,
    },
    Extreme {
        op: Op,
        value: Option<Tensor>,
    },
    Moments {
        correction: f64,
        mean: f64,
        squares: f64,
        count: u64,
    },
}

impl State {
    pub(crate) fn empty(kind: Kind) -> State {
        match kind {
            Kind::Integers => State::Integers { sum: 0, count: 0 },
            Kind::Floats | Kind::Mean => State::Floats { mean: kind == Kind::Mean, sum: 0.0, rest: 0.0, count: 0 },
            Kind::Extreme(op) => State::Extreme { op, value: None },
            Kind::Moments { correction } => State::Moments { correction, mean: 0.0, squares: 0.0, count: 0 },
        }
    }

    /// Adds the results of a batch of `rows` rows.
    pub(crate) fn add(&mut self, results: &[Tensor], rows: u64) -> castwise::Result<()> {
        match self {
            State::Integers { .. } => self.add_integers(results[0].item::<i64>()?, rows),
            State::Floats { .. } => self.add_floats(results[0].item::<f64>()?, 0.0, rows),
            State::Extreme { op, value } => {
                let found = results[0].clone();
                *value = Some(match value.take() {
                    Some(before) => extreme(*op, &before, &found)?,
                    None => found,
                });
            }
            State::Moments { .. } => self.add_moments(results[0].item::<f64>()?, results[1].item::<f64>()?, rows),
        }
        Ok(())
    }

    pub(crate) fn add_integers(&mut self, of: i64, rows: u64) {
        if let State::Integers { sum, count, .. } = self {
            *sum = sum.wrapping_add(of);
            *count += rows;
        }
    }

    pub(crate) fn add_floats(&mut self, of: f64, of_rest: f64, rows: u64) {
        let State::Floats { sum, rest, count, .. } = self else { return };
        let total = *sum + of;
        // Of infinities there is nothing left, and their difference is no number.
        if total.is_finite() {
            *rest += if sum.abs() >= of.abs() { (*sum - total) + of } else { (of - total) + *sum };
            *rest += of_rest;
        }
        *sum = total;
        *count += rows;
    }

    pub(crate) fn add_moments(&mut self, of_mean: f64, of_squares: f64, rows: u64) {
        let State::Moments { mean, squares, count, .. } = self else { return };
        if *count == 0 {
            (*mean, *squares, *count) = (of_mean, of_squares, rows);
            return;
        }
        let (a, b) = (*count as f64, rows as f64);
        let (total, apart) = (a + b, of_mean - *mean);
        *squares += of_squares + apart * apart * (a * b / total);
        *mean += apart * (b / total);
        *count += rows;
    }

    /// The result, in f64 or in a dtype of integers; `None` without rows.
    pub(crate) fn result(&self) -> Option<Tensor> {
        match self {
            State::Integers { count: 0, .. } | State::Floats { count: 0, .. } | State::Moments { count: 0, .. } => None,
            State::Integers { sum, .. } => Some(Tensor::scalar(*sum)),
            State::Floats { mean, sum, rest, count } => {
                let total = if sum.is_finite() { sum + rest } else { *sum };
                Some(Tensor::scalar(if *mean { total / *count as f64 } else { total }))
            }
            State::Extreme { value, .. } => value.clone(),
            State::Moments { correction, squares, count, .. } => {
                Some(Tensor::scalar(squares / (*count as f64 - correction).max(0.0)))
            }
        }
    }
}

/// The lesser or greater of two values, as the reduction has it. Under JAX's rules, which have that of 8-bit floats too.
fn extreme(op: Op, a: &Tensor, b: &Tensor) -> castwise::Result<Tensor> {
    let cx = Eager::new(Rules::Jax);
    let (a, b) = (cx.tensor(a), cx.tensor(b));
    if op == Op::Amin { a.minimum(b).result() } else { a.maximum(b).result() }
}
