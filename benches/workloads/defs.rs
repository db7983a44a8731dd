//! The workloads: typed inputs, the expression as a program, and the same expression in f64 (or c128, or i64).
//!
//! Guarantees: a workload's reference is independent of castwise: plain Rust, element by element, on the inputs as
//! rounded to their dtype. Does not: measure or compare.

use castwise::prelude::*;
use castwise::{Complex, Reduction};

use crate::graphs::chain;

/// An input: its name, its dtype, and the range of its uniformly distributed values.
pub struct Input {
    pub name: &'static str,
    pub dtype: DType,
    pub low: f64,
    pub high: f64,
    /// The shape for `n` elements of the result.
    pub shape: fn(usize) -> Vec<usize>,
}

/// One element of the result from one element of each input.
#[derive(Clone, Copy)]
pub enum Reference {
    Real(fn(&[f64]) -> f64),
    Complex(fn(&[Complex<f64>]) -> Complex<f64>),
    Truth(fn(&[i64]) -> bool),
    Integer(fn(&[i64]) -> i64),
}

/// A workload. `build` and `builtin` receive the inputs' handles in order.
pub struct Workload {
    pub name: &'static str,
    pub inputs: Vec<Input>,
    /// The dtype that promotion gives the result.
    pub out: DType,
    /// The numbers of elements to measure.
    pub sizes: &'static [usize],
    pub build: fn(&[Var]) -> Var,
    /// The same computation by a single op, if there is one.
    pub builtin: Option<fn(&[Var]) -> Var>,
    pub reference: Reference,
    /// Whether the result is the mean of the elements.
    pub mean: bool,
}

impl Workload {
    /// The numbers of elements, reduced for a smoke test if `small`.
    pub fn sizes(&self, small: bool) -> Vec<usize> {
        if !small {
            return self.sizes.to_vec();
        }
        let most = if self.name.starts_with("cast_u") { 2 * ROW_OF_PIXELS } else { 1 << 12 };
        let mut all: Vec<usize> = self.sizes.iter().map(|n| (*n).min(most)).collect();
        all.dedup();
        all
    }

    /// The shape of the expression, before a mean is taken.
    pub fn domain(&self, n: usize) -> Vec<usize> {
        let shapes = self.inputs.iter().map(|i| (i.shape)(n));
        shapes.max_by_key(|s| s.iter().product::<usize>()).unwrap_or_default()
    }

    pub fn out_shape(&self, n: usize) -> Vec<usize> {
        if self.mean { Vec::new() } else { self.domain(n) }
    }

    pub fn out_bytes(&self, n: usize) -> usize {
        self.out_shape(n).iter().product::<usize>() * self.out.size()
    }

    /// The bytes of all inputs and of the result, each counted once.
    pub fn bytes_moved_minimum(&self, n: usize) -> usize {
        let bytes = |i: &Input| (i.shape)(n).iter().product::<usize>() * i.dtype.size();
        self.inputs.iter().map(bytes).sum::<usize>() + self.out_bytes(n)
    }

    /// The tolerated relative error for the result's dtype.
    pub fn tolerance(&self) -> f64 {
        match self.out {
            DType::F16 => 2e-2,
            DType::BF16 => 2e-1,
            DType::F32 | DType::C64 => 2e-5,
            DType::F64 => 1e-12,
            _ => 0.0,
        }
    }
}

const K64: usize = 1 << 16;
const M1: usize = 1 << 20;
const M4: usize = 1 << 22;
const M16: usize = 1 << 24;
const ROW_OF_PIXELS: usize = 1920 * 3;

fn input(name: &'static str, dtype: DType, low: f64, high: f64) -> Input {
    Input { name, dtype, low, high, shape: |n| vec![n] }
}

fn shaped(name: &'static str, dtype: DType, low: f64, high: f64, shape: fn(usize) -> Vec<usize>) -> Input {
    Input { name, dtype, low, high, shape }
}

fn inputs(names: &[&'static str], dtype: DType, low: f64, high: f64) -> Vec<Input> {
    names.iter().map(|name| input(name, dtype, low, high)).collect()
}

/// The workloads, in the order of the report.
pub fn workloads() -> Vec<Workload> {
    let f32s = |names: &[&'static str]| inputs(names, DType::F32, -2.0, 2.0);
    let chain_of = |name, sizes| elementwise(name, f32s(&["a", "b", "c", "d"]), DType::F32, sizes, chain, CHAIN);
    let mut all = vec![chain_of("chain_f32", &[1 << 10, K64, M16])];
    all.extend(real());
    all.extend([
        Workload {
            builtin: Some(|v| v[0].mse_loss(&v[1], Reduction::Mean)),
            ..mean("mse_mean_f32", |v| mse(v).mean(), |v| (v[0] - v[1]) * (v[0] - v[1]))
        },
        Workload {
            builtin: Some(|v| v[0].huber_loss(&v[1], 1.0, Reduction::Mean)),
            ..mean("huber_mean_f32", |v| huber(v).mean(), huber_f64)
        },
    ]);
    all.extend(other());
    all.push(chain_of("tiny", &[16])); // measures the overhead of a call
    all
}

fn elementwise(
    name: &'static str,
    inputs: Vec<Input>,
    out: DType,
    sizes: &'static [usize],
    build: fn(&[Var]) -> Var,
    reference: Reference,
) -> Workload {
    Workload { name, inputs, out, sizes, build, builtin: None, reference, mean: false }
}

fn mean(name: &'static str, build: fn(&[Var]) -> Var, term: fn(&[f64]) -> f64) -> Workload {
    let inputs = inputs(&["a", "b"], DType::F32, -2.0, 2.0);
    Workload { mean: true, ..elementwise(name, inputs, DType::F32, &[M16], build, Reference::Real(term)) }
}

const CHAIN: Reference = Reference::Real(|v| {
    let (a, b, c, d) = (v[0], v[1], v[2], v[3]);
    ((a * b + c) * 0.5 - d) * (a + 1.25) + (b - c) * (d * 0.125)
});

/// The elementwise workloads on floats.
fn real() -> Vec<Workload> {
    use DType::{BF16, F16, F32, F64};
    let mixed = vec![input("a", F16, -2.0, 2.0), input("b", F32, -2.0, 2.0), input("c", BF16, -2.0, 2.0)];
    let options = vec![input("s", F64, 10.0, 50.0), input("k", F64, 10.0, 50.0), input("t", F64, 0.2, 2.0)];
    let norm = vec![
        shaped("x", F32, -2.0, 2.0, |n| vec![n / 1024, 1024]),
        shaped("mean", F32, -2.0, 2.0, |n| vec![n / 1024, 1]),
        shaped("rstd", F32, 0.5, 2.0, |n| vec![n / 1024, 1]),
        shaped("w", F32, -2.0, 2.0, |_| vec![1024]),
        shaped("b", F32, -2.0, 2.0, |_| vec![1024]),
    ];
    let half = |name, dtype| {
        elementwise(
            name,
            inputs(&["a", "b", "c"], dtype, -2.0, 2.0),
            dtype,
            &[M16],
            |v| (&v[0] * &v[1] + &v[2]) * &v[0] - &v[1],
            Reference::Real(|v| (v[0] * v[1] + v[2]) * v[0] - v[1]),
        )
    };
    vec![
        elementwise(
            "mixed",
            mixed,
            F32,
            &[K64, M16],
            |v| (&v[0] * &v[1] + &v[2]) * 2.5 - &v[0],
            Reference::Real(|v| (v[0] * v[1] + v[2]) * 2.5 - v[0]),
        ),
        Workload {
            builtin: Some(|v| v[0].gelu_tanh()),
            ..elementwise(
                "gelu_tanh_f32",
                inputs(&["x"], F32, -4.0, 4.0),
                F32,
                &[K64, M16],
                |v| {
                    let x = &v[0];
                    0.5 * x * (1.0 + ((x + 0.044715 * x * x * x) * 0.7978845608).tanh())
                },
                Reference::Real(|v| {
                    let x = v[0];
                    0.5 * x * (1.0 + (0.7978845608 * (x + 0.044715 * x * x * x)).tanh())
                }),
            )
        },
        elementwise(
            "sigmoid_chain_f32",
            inputs(&["x", "y"], F32, -8.0, 8.0),
            F32,
            &[K64, M4],
            |v| {
                let [x, y] = [&v[0], &v[1]];
                ((-x.abs()).exp() + 1.0).log() + x.maximum(0.0) - x * y.sigmoid() + x.sin() * y.cos()
            },
            Reference::Real(|v| {
                let (x, y) = (v[0], v[1]);
                (1.0 + (-x.abs()).exp()).ln() + x.max(0.0) - x / (1.0 + (-y).exp()) + x.sin() * y.cos()
            }),
        ),
        elementwise("black_scholes_f64", options, F64, &[K64, M4], black_scholes, Reference::Real(black_scholes_f64)),
        elementwise(
            "bias_norm_f32",
            norm,
            F32,
            &[M4],
            |v| {
                let t = (&v[0] - &v[1]) * &v[2] * &v[3] + &v[4];
                t.gt(0.0).where_(&t, 0.01 * &t)
            },
            Reference::Real(|v| {
                let t = (v[0] - v[1]) * v[2] * v[3] + v[4];
                if t > 0.0 { t } else { 0.01 * t }
            }),
        ),
        half("half_chain_f16", F16),
        half("half_chain_bf16", BF16),
    ]
}

/// The price of a call option; the rate is 0.05, the volatility 0.2.
fn black_scholes(v: &[Var]) -> Var {
    let [s, k, t] = [&v[0], &v[1], &v[2]];
    let d1 = ((s / k).log() + 0.07 * t) / (0.2 * t.sqrt());
    let d2 = &d1 - 0.2 * t.sqrt();
    let n = |d: Var| 0.5 * (1.0 + (d * std::f64::consts::FRAC_1_SQRT_2).erf());
    s * n(d1) - k * (t * -0.05).exp() * n(d2)
}

fn black_scholes_f64(v: &[f64]) -> f64 {
    let (s, k, t) = (v[0], v[1], v[2]);
    let d1 = ((s / k).ln() + 0.07 * t) / (0.2 * t.sqrt());
    let d2 = d1 - 0.2 * t.sqrt();
    let n = |d: f64| 0.5 * (1.0 + libm::erf(d * std::f64::consts::FRAC_1_SQRT_2));
    s * n(d1) - k * (-0.05 * t).exp() * n(d2)
}

fn mse(v: &[Var]) -> Var {
    let e = &v[0] - &v[1];
    &e * &e
}

fn huber(v: &[Var]) -> Var {
    let e = &v[0] - &v[1];
    e.abs().le(1.0).where_(0.5 * &e * &e, e.abs() - 0.5)
}

fn huber_f64(v: &[f64]) -> f64 {
    let e = v[0] - v[1];
    if e.abs() <= 1.0 { 0.5 * e * e } else { e.abs() - 0.5 }
}

/// Complex numbers, integers, masks and pixels.
fn other() -> Vec<Workload> {
    let channels = |name, low, high| shaped(name, DType::F32, low, high, |_| vec![3]);
    let image = |dtype, high| shaped("x", dtype, 0.0, high, |n| vec![n / ROW_OF_PIXELS, 1920, 3]);
    let (pixels, reflectances) = (image(DType::U8, 256.0), image(DType::U16, 10000.0));
    vec![
        elementwise(
            "complex_c64",
            inputs(&["a", "b", "c"], DType::C64, -2.0, 2.0),
            DType::C64,
            &[M4],
            |v| &v[0] * &v[1] + &v[2] * &v[0] - &v[1],
            Reference::Complex(|v| v[0] * v[1] + v[2] * v[0] - v[1]),
        ),
        elementwise(
            "int_i32",
            vec![input("a", DType::I32, -1e6, 1e6), input("b", DType::I32, -1000.0, 0.0)],
            DType::Bool,
            &[M4],
            |v| {
                let [a, b] = [&v[0], &v[1]];
                (a.floor_divide(b) * b + a % b).eq(a) & (a ^ b).gt(3)
            },
            Reference::Truth(|v| {
                let (a, b) = (v[0], v[1]);
                let quotient = (a as f64 / b as f64).floor() as i64; // exact for 32 bits
                let remainder = a - quotient * b;
                (quotient * b + remainder == a) & ((a ^ b) > 3)
            }),
        ),
        elementwise(
            "mask_bool",
            inputs(&["a", "b"], DType::F32, -2.0, 2.0),
            DType::F32,
            &[M16],
            |v| (v[0].gt(0.0) & v[1].lt(1.0)).where_(&v[0], &v[1]),
            Reference::Real(|v| if v[0] > 0.0 && v[1] < 1.0 { v[0] } else { v[1] }),
        ),
        elementwise(
            "cast_u8_f32",
            vec![pixels, channels("m", 0.4, 0.5), channels("s", 0.2, 0.3)],
            DType::F32,
            &[1080 * ROW_OF_PIXELS],
            |v| (&v[0] * 0.00392156862745098 - &v[1]) / &v[2],
            Reference::Real(|v| (v[0] * 0.00392156862745098 - v[1]) / v[2]),
        ),
        elementwise(
            "cast_u16_f32",
            vec![reflectances, channels("m", 0.4, 0.5), channels("s", 0.2, 0.3)],
            DType::F32,
            &[1080 * ROW_OF_PIXELS],
            |v| (&v[0] * 1e-4 - &v[1]) / &v[2],
            Reference::Real(|v| (v[0] * 1e-4 - v[1]) / v[2]),
        ),
        elementwise(
            "cast_f8_bf16",
            inputs(&["x"], DType::F8E4M3FN, -448.0, 448.0),
            DType::BF16,
            &[M16],
            |v| v[0].cast(DType::BF16),
            Reference::Real(|v| v[0]),
        ),
        elementwise(
            "chain_u32",
            inputs(&["a", "b", "c"], DType::U32, 0.0, 4294967296.0),
            DType::U32,
            &[K64, M1, M16],
            |v| {
                let [a, b, c] = [&v[0], &v[1], &v[2]];
                (a * b + c).maximum(a) ^ a.bitwise_right_shift(3)
            },
            Reference::Integer(|v| {
                let [a, b, c] = [v[0] as u32, v[1] as u32, v[2] as u32];
                i64::from(a.wrapping_mul(b).wrapping_add(c).max(a) ^ (a >> 3))
            }),
        ),
    ]
}
