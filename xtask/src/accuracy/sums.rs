//! Measures sums, variances, norms and scans against arithmetic of twice the digits of f64.
//!
//! Guarantees: the exact value is known to about n·2^-104 of the sum of the absolute values of n elements, as each addition has an error
//! of up to 3·2^-106 of its result: for 10^6 elements to 2^-84, which is 2^-31 ulp of f64. An error beyond its bar is a failure. Does not:
//! look for the worst data; the elements are random, and the same in each run.

use castwise::prelude::*;

use crate::points::ulp;
use crate::random::Random;

/// A number as the unevaluated sum of two of f64, of which the second is at most half an ulp of the first.
#[derive(Clone, Copy, Default)]
struct Double(f64, f64);

impl Double {
    fn of(x: f64) -> Double {
        Double(x, 0.0)
    }

    /// The sum and its rounding error, exactly (Knuth).
    fn two_sum(a: f64, b: f64) -> Double {
        let s = a + b;
        let t = s - a;
        Double(s, (a - (s - t)) + (b - t))
    }

    fn plus(self, other: Double) -> Double {
        let (s, t) = (Double::two_sum(self.0, other.0), Double::two_sum(self.1, other.1));
        let s = Double::two_sum(s.0, s.1 + t.0);
        Double::two_sum(s.0, s.1 + t.1)
    }

    fn minus(self, other: Double) -> Double {
        self.plus(Double(-other.0, -other.1))
    }

    fn times(self, other: Double) -> Double {
        let p = self.0 * other.0;
        let e = self.0.mul_add(other.0, -p) + (self.0 * other.1 + self.1 * other.0);
        Double::two_sum(p, e)
    }

    fn over(self, n: f64) -> Double {
        let q = self.0 / n;
        let rest = self.minus(Double::of(q).times(Double::of(n)));
        Double::two_sum(q, rest.0 / n)
    }

    fn root(self) -> Double {
        let r = self.0.sqrt();
        if r == 0.0 {
            return self;
        }
        let rest = self.minus(Double::of(r).times(Double::of(r)));
        Double::two_sum(r, rest.0 / (2.0 * r))
    }
}

fn total(all: &[f64], of: impl Fn(f64) -> Double) -> Double {
    all.iter().fold(Double::default(), |sum, x| sum.plus(of(*x)))
}

/// The exact results of a function, of which scans have many, and what their errors are measured by.
struct Exact {
    results: Vec<Double>,
    scales: Vec<f64>,
}

/// What is measured: a name, the call, the exact results, and the bar of the error in a dtype, in ulps of a result (of the sum of absolute
/// values for sums). Where the last step is not the only one that rounds visibly, a bar is not a bound that holds for all data but guards
/// against regressions: it is above the largest error of these data in docs/accuracy.md.
struct Measured {
    name: &'static str,
    call: fn(&Var<Eager>) -> Var<Eager>,
    exact: fn(&[f64]) -> Exact,
    bar: fn(DType) -> f64,
}

fn alone(result: Double, scale: f64) -> Exact {
    Exact { results: vec![result], scales: vec![scale] }
}

fn variance(all: &[f64]) -> Double {
    let n = all.len() as f64;
    let mean = total(all, Double::of).over(n);
    let squares = total(all, |x| {
        let d = Double::of(x).minus(mean);
        d.times(d)
    });
    squares.over(n - 1.0)
}

fn prefixes(all: &[f64]) -> Exact {
    let (mut sum, mut size) = (Double::default(), 0.0);
    let each = all.iter().map(|x| {
        sum = sum.plus(Double::of(*x));
        size += x.abs();
        (sum, size)
    });
    let (results, scales) = each.unzip();
    Exact { results, scales }
}

/// What is computed in a wider dtype, with errors below 0.001 ulp of the result's dtype, and rounded once. f64 has no wider one: its bar
/// guards against regressions, above 0.737.
fn rounded_once(d: DType) -> f64 {
    if d == DType::F64 { 1.0 } else { 0.501 }
}

/// bf16 is added in f32 and rounded once. f32 and f64 are added by lanes and pieces in themselves: a bar that guards against regressions,
/// above 0.854.
fn added(d: DType) -> f64 {
    if d == DType::BF16 { 0.501 } else { 1.0 }
}

const ALL: [Measured; 5] = [
    Measured {
        name: "sum",
        call: |x| x.sum(),
        exact: |x| alone(total(x, Double::of), total(x, |x| Double::of(x.abs())).0),
        bar: added,
    },
    Measured {
        name: "mean",
        call: |x| x.mean(),
        exact: |x| {
            let n = x.len() as f64;
            alone(total(x, Double::of).over(n), total(x, |x| Double::of(x.abs())).0 / n)
        },
        bar: added,
    },
    Measured { name: "var", call: |x| x.var(), exact: |x| alone(variance(x), variance(x).0), bar: rounded_once },
    Measured {
        name: "norm",
        call: |x| x.norm(),
        exact: |x| {
            let norm = total(x, |x| Double::of(x).times(Double::of(x))).root();
            alone(norm, norm.0)
        },
        bar: rounded_once,
    },
    Measured {
        name: "cumsum",
        call: |x| x.cumsum(),
        exact: prefixes,
        // Prefixes of f64 are added one by one in blocks of 512. The bar guards against regressions: less than twice 17.41.
        bar: |d| if d == DType::F64 { 32.0 } else { rounded_once(d) },
    },
];

/// A number of the data from one between 0 and 1.
type Numbers = fn(f64) -> f64;

/// What the elements are: a name, and an element of a uniform number in [0, 1).
const DATA: [(&str, Numbers); 3] =
    [("from 0 to 1", |u| u), ("from -1 to 1", |u| 2.0 * u - 1.0), ("1000 to 1001", |u| 1000.0 + u)];

/// Prints a table; returns what exceeds its bar.
pub fn table() -> castwise::Result<Vec<String>> {
    let mut failures = Vec::new();
    println!("| function | dtype | elements | {} |", DATA.map(|(name, _)| name).join(" | "));
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for m in &ALL {
        for d in [DType::BF16, DType::F32, DType::F64] {
            for n in [1_000, 1_000_000] {
                let mut row = format!("| {} | {d} | {n} ", m.name);
                for (data, element) in DATA {
                    let worst = worst(m, d, n, element)?;
                    row += &format!("| {worst:.3} ");
                    let bar = (m.bar)(d);
                    if worst.is_nan() || worst > bar {
                        failures
                            .push(format!("{} of {n} elements of {d} {data}: {worst} ulp, more than {bar}", m.name));
                    }
                }
                println!("{row}|");
            }
        }
    }
    Ok(failures)
}

/// The largest error for some random data.
fn worst(m: &Measured, d: DType, n: usize, element: fn(f64) -> f64) -> castwise::Result<f64> {
    let mut r = Random(n as u64);
    let all: Vec<f64> = (0..n).map(|_| element(r.unit())).collect();
    let x = Eager::new(Rules::Torch).tensor(&Tensor::from_vec(all, [n])?).cast(d);
    let elements = x.cast(DType::F64).result()?.to_vec::<f64>()?;
    let made = (m.call)(&x).cast(DType::F64).result()?.to_vec::<f64>()?;
    let Exact { results, scales } = (m.exact)(&elements);
    let errors = made.iter().zip(results).zip(scales).map(|((got, want), scale)| {
        // The scale is rounded, which may give the next power of two.
        Double::of(*got).minus(want).0.abs() / ulp(d, scale)
    });
    Ok(errors.fold(0.0, |a, b| if b.is_nan() { b } else { f64::max(a, b) }))
}
