//! The elementary functions of f64 at random arguments, compared with arithmetic of 256 bits and more.
//!
//! Guarantees: the error of each result, in ulps of f64, is within the function's bound, without an allowance for the
//! reference. `CASTWISE_POINTS` is the number of arguments for each function. A table of the largest errors is printed.
//! Does not: test all arguments, or functions without a bound.

use std::sync::atomic::{AtomicUsize, Ordering};

use astro_float_num::{BigFloat, Consts, RoundingMode, Sign, WORD_BIT_SIZE};
use castwise::prelude::*;
use castwise::{Attrs, Op};

use crate::common::Random;
use crate::reference::format::{Float, power_of_two};
use crate::reference::functions::{of_one, of_two};

const NEAREST: RoundingMode = RoundingMode::ToEven;

/// Arithmetic with `bits` bits.
struct Wide {
    bits: usize,
    constants: Consts,
}

impl Wide {
    fn new() -> Wide {
        Wide { bits: 256, constants: Consts::new().expect("there is memory for constants") }
    }

    fn number(&self, x: f64) -> BigFloat {
        if x == 0.0 || x.is_normal() {
            return BigFloat::from_f64(x, self.bits);
        }
        // Subnormal numbers lose their magnitude in `from_f64`, so they are scaled.
        let mut number = BigFloat::from_f64(x * power_of_two(200), self.bits);
        if let Some(e) = number.exponent() {
            number.set_exponent(e - 200);
        }
        number
    }

    fn add(&self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        x.add(y, self.bits, NEAREST)
    }

    fn mul(&self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        x.mul(y, self.bits, NEAREST)
    }

    fn div(&self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        x.div(y, self.bits, NEAREST)
    }

    fn exp(&mut self, x: &BigFloat) -> BigFloat {
        x.exp(self.bits, NEAREST, &mut self.constants)
    }

    fn ln(&mut self, x: &BigFloat) -> BigFloat {
        x.ln(self.bits, NEAREST, &mut self.constants)
    }

    fn pow(&mut self, x: &BigFloat, y: &BigFloat) -> BigFloat {
        x.pow(y, self.bits, NEAREST, &mut self.constants)
    }

    /// 1 / (1 + e^-x)
    fn sigmoid(&mut self, x: &BigFloat) -> BigFloat {
        let (power, one) = (self.exp(&x.neg()), self.number(1.0));
        self.div(&one, &self.add(&one, &power))
    }

    /// 2 / √π · e^(-x²) · Σ (2x²)^k x / (2k + 1)!!, whose terms all have the same sign.
    fn erf(&mut self, x: &BigFloat) -> BigFloat {
        let square = self.mul(x, x);
        let twice = self.add(&square, &square);
        let (mut term, mut sum) = (x.clone(), x.clone());
        for k in 1u32.. {
            term = self.div(&self.mul(&term, &twice), &self.number(f64::from(2 * k + 1)));
            sum = self.add(&sum, &term);
            let (Some(small), Some(large)) = (term.exponent(), sum.exponent()) else { break };
            if term.is_zero() || small < large - self.bits as i32 {
                break;
            }
        }
        let pi = self.constants.pi(self.bits, NEAREST);
        let root = pi.sqrt(self.bits, NEAREST);
        let power = self.exp(&square.neg());
        let scaled = self.mul(&self.mul(&sum, &power), &self.number(2.0));
        self.div(&scaled, &root)
    }

    /// The function's value, with so many bits that 100 or more remain after cancellation.
    fn one(&mut self, op: Op, x: f64) -> BigFloat {
        // 1 - erf(x) loses the digits of e^(-x²).
        self.bits = match op {
            Op::Erfc => 320 + (1.5 * x * x) as usize,
            Op::Gelu => 320 + (0.75 * x * x) as usize,
            _ => 256,
        };
        let (p, x, one) = (self.bits, self.number(x), self.number(1.0));
        macro_rules! plain {
            ($name:ident) => {
                x.$name(p, NEAREST, &mut self.constants)
            };
        }
        match op {
            Op::Exp => plain!(exp),
            Op::Expm1 => {
                let power = self.exp(&x);
                self.add(&power, &one.neg())
            }
            Op::Exp2 => self.pow(&self.number(2.0), &x),
            Op::Log => plain!(ln),
            Op::Log2 => plain!(log2),
            Op::Log10 => plain!(log10),
            Op::Log1p => self.ln(&self.add(&x, &one)),
            Op::Sin => plain!(sin),
            Op::Cos => plain!(cos),
            Op::Tan => plain!(tan),
            Op::Asin => plain!(asin),
            Op::Acos => plain!(acos),
            Op::Atan => plain!(atan),
            Op::Sinh => plain!(sinh),
            Op::Cosh => plain!(cosh),
            Op::Tanh => plain!(tanh),
            Op::Asinh => plain!(asinh),
            Op::Acosh => plain!(acosh),
            Op::Atanh => plain!(atanh),
            Op::Erf => self.erf(&x),
            Op::Erfc => {
                let erf = self.erf(&x);
                self.add(&one, &erf.neg())
            }
            Op::Cbrt => x.cbrt(p, NEAREST),
            Op::Rsqrt => self.div(&one, &x.sqrt(p, NEAREST)),
            Op::Sigmoid => self.sigmoid(&x),
            Op::Silu => {
                let part = self.sigmoid(&x);
                self.mul(&x, &part)
            }
            Op::Gelu => {
                let root = self.number(2.0).sqrt(p, NEAREST);
                let erf = self.erf(&self.div(&x, &root));
                let both = self.mul(&x, &self.add(&one, &erf));
                self.div(&both, &self.number(2.0))
            }
            Op::GeluTanh => {
                let pi = self.constants.pi(p, NEAREST);
                let scale = self.div(&self.number(8.0), &pi).sqrt(p, NEAREST);
                let small = self.div(&self.number(44715.0), &self.number(1e6));
                let cubic = self.add(&one, &self.mul(&small, &self.mul(&x, &x)));
                let at = self.mul(&self.mul(&scale, &x), &cubic);
                let part = self.sigmoid(&at);
                self.mul(&x, &part)
            }
            Op::Softplus => {
                let power = self.exp(&x);
                // For large negative arguments the result is the power itself.
                if power.exponent().is_some_and(|e| e < -200) { power } else { self.ln(&self.add(&one, &power)) }
            }
            _ => panic!("{op} is not among the functions"),
        }
    }

    fn two(&mut self, op: Op, x: f64, y: f64) -> BigFloat {
        self.bits = 256;
        let (a, b) = (self.number(x), self.number(y));
        match op {
            Op::Pow => self.pow(&a, &b),
            Op::Hypot => self.add(&self.mul(&a, &a), &self.mul(&b, &b)).sqrt(self.bits, NEAREST),
            Op::Atan2 => {
                let angle = self.div(&a, &b).atan(self.bits, NEAREST, &mut self.constants);
                let pi = self.constants.pi(self.bits, NEAREST);
                match (y < 0.0, a.is_negative()) {
                    (false, _) => angle,
                    (true, false) => self.add(&angle, &pi),
                    (true, true) => self.add(&angle, &pi.neg()),
                }
            }
            _ => panic!("{op} is not among the functions"),
        }
    }

    /// The error of a number in ulps of f64; 0 for an infinity if the exact number overflows.
    fn error(&self, ours: f64, exact: &BigFloat) -> f64 {
        let Some(e) = exact.exponent().filter(|_| !exact.is_zero()) else {
            return if ours == 0.0 && exact.is_zero() { 0.0 } else { f64::INFINITY };
        };
        if ours.is_infinite() && e > 1023 && exact.is_negative() == (ours < 0.0) {
            // Numbers from half an ulp above the largest one are rounded to infinity.
            return if e > 1024 { 0.0 } else { self.error(f64::MAX.copysign(ours), exact) };
        }
        if !ours.is_finite() {
            return f64::INFINITY;
        }
        // The mantissa is in [0.5, 1).
        let unit = power_of_two((e - 53).max(Float::of(DType::F64).least));
        let difference = self.div(&self.add(&self.number(ours), &exact.neg()), &self.number(unit));
        rounded(&difference).abs()
    }
}

/// An approximation in f64 of a number in the range of f64.
fn rounded(v: &BigFloat) -> f64 {
    let Some((words, _, sign, e, _)) = v.as_raw_parts().filter(|_| !v.is_zero()) else { return 0.0 };
    let top = words[words.len() - 1] as f64 * power_of_two(-(WORD_BIT_SIZE as i32)) * power_of_two(e);
    if sign == Sign::Neg { -top } else { top }
}

/// The range of a function's arguments.
fn domain(op: Op) -> (f64, f64) {
    match op {
        Op::Exp => (-746.0, 709.79),
        Op::Expm1 => (-60.0, 709.79),
        Op::Exp2 => (-1075.0, 1024.0),
        Op::Log | Op::Log2 | Op::Log10 | Op::Rsqrt => (0.0, 1e300),
        Op::Log1p => (-1.0, 1e300),
        Op::Sin | Op::Cos | Op::Tan => (-1e22, 1e22),
        Op::Asin | Op::Acos | Op::Atanh => (-1.0, 1.0),
        Op::Sinh | Op::Cosh => (-710.4, 710.4),
        Op::Tanh => (-22.0, 22.0),
        Op::Acosh => (1.0, 1e300),
        Op::Erf => (-6.0, 6.0),
        Op::Erfc => (-6.0, 27.3),
        Op::Sigmoid | Op::Softplus => (-746.0, 710.0),
        Op::Silu => (-752.0, 710.0),
        Op::Gelu => (-38.5, 39.5),
        Op::GeluTanh => (-22.0, 23.0),
        _ => (-1e300, 1e300),
    }
}

/// A random argument: uniform in the range, or of any magnitude, or near 1.
fn argument(r: &mut Random, (least, most): (f64, f64)) -> f64 {
    let part = (r.next() >> 11) as f64 * power_of_two(-53);
    let x = match r.below(4) {
        0 => least + part * (most - least),
        1 => (1.0 + part) * power_of_two(r.below(140) as i32 - 70),
        2 => (1.0 + part) * power_of_two(r.below(10) as i32 - 6),
        _ => 1.0 + (part - 0.5) * power_of_two(-(r.below(50) as i32)),
    };
    let x = if r.below(2) == 1 { -x } else { x };
    // An argument outside the range is replaced by one near an end.
    if x > least && x < most { x } else { least + part * (most.min(least + 1e6) - least) }
}

/// The largest error of a function at `points` arguments, its argument, and the share of correctly rounded results.
fn measure(op: Op, points: usize) -> (f64, Vec<f64>, f64) {
    let (mut r, mut wide) = (Random(op.name().len() as u64 + points as u64), Wide::new());
    let mut columns = vec![vec![]; op.arity()];
    for _ in 0..points {
        for c in &mut columns {
            c.push(match op {
                // A nonnegative base, so that the power is real.
                Op::Pow if op.arity() == 2 => argument(&mut r, (0.0, 1e300)),
                _ => argument(&mut r, domain(op)),
            });
        }
        if op == Op::Pow {
            let (base, exponent) = (columns[0][columns[0].len() - 1], columns[1].last_mut().unwrap());
            let most = 709.0 / base.ln().abs().max(1e-300);
            *exponent = (*exponent % most.min(1e300)) * if r.below(2) == 1 { -1.0 } else { 1.0 };
        }
    }
    let tensors: Vec<Tensor> = columns.iter().map(|c| Tensor::from_slice(c, [points]).unwrap()).collect();
    let cx = Eager::new(Rules::Torch);
    let operands: Vec<_> = tensors.iter().map(|t| cx.tensor(t).into()).collect();
    let ours = castwise::apply(op, &operands, Attrs::default()).result().unwrap().to_vec::<f64>().unwrap();
    let (mut worst, mut at, mut right) = (0.0, vec![], 0);
    for (i, ours) in ours.iter().enumerate() {
        let args: Vec<f64> = columns.iter().map(|c| c[i]).collect();
        let exact = if args.len() == 1 { wide.one(op, args[0]) } else { wide.two(op, args[0], args[1]) };
        let error = wide.error(*ours, &exact);
        right += usize::from(error <= 0.5);
        if error >= worst {
            (worst, at) = (error, args);
        }
    }
    (worst, at, 100.0 * right as f64 / points as f64)
}

#[test]
fn doubles_are_within_their_bars() {
    let default = if cfg!(debug_assertions) { 100 } else { 2_000 };
    let points: usize =
        std::env::var("CASTWISE_POINTS").map_or(default, |v| v.parse().expect("CASTWISE_POINTS is a number"));
    let ones = Op::ALL.iter().filter(|op| op.arity() == 1 && of_one(**op, 0.5).is_some());
    let ops: Vec<Op> = ones.copied().chain([Op::Pow, Op::Hypot, Op::Atan2]).collect();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    println!("| function | bound | points | largest error | at | correctly rounded |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(op) = ops.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Its series needs a thousand digits and is slow.
                    let points = if *op == Op::Erfc { points.div_ceil(5) } else { points };
                    let (worst, at, right) = measure(*op, points);
                    let bar = of_one(*op, 0.5).or_else(|| of_two(*op, 0.5, 0.5)).unwrap().bar;
                    let at: Vec<String> = at.iter().map(|x| format!("{x:e}")).collect();
                    println!("| {op} | {bar} | {points} | {worst:.4} | {} | {right:.2} % |", at.join(", "));
                    assert!(worst <= bar, "{op} of {at:?}: {worst} ulps");
                }
            });
        }
    });
    assert!(ops.len() > 25);
}
