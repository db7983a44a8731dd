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

/// What is measured: a name, the call, the exact results, and what an error may be: half an ulp of the result, by its rounding, and `bar`
/// ulps of the sum of absolute values (of the result, where it is a sum of squares) in the dtype in which elements are added. A bar is no
/// bound that is proved for all data: it guards against regressions, and is a little above the largest error of these data.
struct Measured {
    name: &'static str,
    call: fn(&Var<Eager>) -> Var<Eager>,
    exact: fn(&[f64]) -> Exact,
    added_in: fn(DType) -> DType,
    bar: f64,
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

/// The halves are added in f32; f32 and f64 are added in themselves.
fn single(d: DType) -> DType {
    if d == DType::F64 { d } else { DType::F32 }
}

/// The halves are added in f32, f32 in f64.
fn double(d: DType) -> DType {
    if d == DType::BF16 { DType::F32 } else { DType::F64 }
}

const ALL: [Measured; 5] = [
    Measured {
        name: "sum",
        call: |x| x.sum(),
        exact: |x| alone(total(x, Double::of), total(x, |x| Double::of(x.abs())).0),
        added_in: single,
        bar: 0.125, // 0.063 with f64
    },
    Measured {
        name: "mean",
        call: |x| x.mean(),
        exact: |x| {
            let n = x.len() as f64;
            alone(total(x, Double::of).over(n), total(x, |x| Double::of(x.abs())).0 / n)
        },
        added_in: single,
        bar: 0.5, // 0.354 with f32
    },
    Measured {
        name: "var",
        call: |x| x.var(),
        exact: |x| alone(variance(x), variance(x).0),
        added_in: double,
        bar: 0.375, // 0.237 with f64
    },
    Measured {
        name: "norm",
        call: |x| x.norm(),
        exact: |x| {
            let norm = total(x, |x| Double::of(x).times(Double::of(x))).root();
            alone(norm, norm.0)
        },
        added_in: double,
        bar: 0.125, // none
    },
    Measured {
        name: "cumsum",
        call: |x| x.cumsum(),
        exact: prefixes,
        added_in: double,
        bar: 20.0, // 16.91 with f64
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
                    row += &format!("| {:.3} ", worst.error);
                    if worst.beyond.is_nan() || worst.beyond > m.bar {
                        let (beyond, wide) = (worst.beyond, (m.added_in)(d));
                        let what = format!("{} of {n} elements of {d} {data}", m.name);
                        failures
                            .push(format!("{what}: {beyond} ulp of {wide} beyond half an ulp, more than {}", m.bar));
                    }
                }
                println!("{row}|");
            }
        }
    }
    Ok(failures)
}

/// The largest errors for some random data.
#[derive(Default)]
struct Worst {
    /// In ulps of the dtype, of what the errors are measured by.
    error: f64,
    /// Beyond half an ulp of the result, in ulps of the dtype in which elements are added.
    beyond: f64,
}

fn worst(m: &Measured, d: DType, n: usize, element: fn(f64) -> f64) -> castwise::Result<Worst> {
    let mut r = Random(n as u64);
    let all: Vec<f64> = (0..n).map(|_| element(r.unit())).collect();
    let x = Eager::new(Rules::Torch).tensor(&Tensor::from_vec(all, [n])?).cast(d);
    let elements = x.cast(DType::F64).result()?.to_vec::<f64>()?;
    let made = (m.call)(&x).cast(DType::F64).result()?.to_vec::<f64>()?;
    let Exact { results, scales } = (m.exact)(&elements);
    let added_in = (m.added_in)(d);
    let larger = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
    let mut worst = Worst::default();
    for ((got, want), scale) in made.iter().zip(results).zip(scales) {
        let error = Double::of(*got).minus(want).0.abs();
        // The scale is rounded, which may give the next power of two.
        worst.error = larger(worst.error, error / ulp(d, scale));
        worst.beyond = larger(worst.beyond, (error - 0.5 * ulp(d, want.0)) / ulp(added_in, scale));
    }
    Ok(worst)
}
