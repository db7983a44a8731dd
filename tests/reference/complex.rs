//! Ops on complex numbers.
//!
//! Guarantees: ops that the table defines by sums and products of parts are exact, with each operation rounded.
//! Quotients and functions are textbook formulas in f64, with an error bound for these formulas. Does not: check
//! functions of parts that are not finite, or with intermediate results that may overflow.

use std::cmp::Ordering;

use castwise::Op;

use super::format::power_of_two;
use super::real::Math as Real;
use super::{Answer, Value};

/// A complex number in f64.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    re: f64,
    im: f64,
}

const fn number(re: f64, im: f64) -> Number {
    Number { re, im }
}

const ONE: Number = number(1.0, 0.0);

impl Number {
    fn length(self) -> f64 {
        libm::hypot(self.re, self.im)
    }

    fn finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    fn nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }

    fn zero(self) -> bool {
        self.re == 0.0 && self.im == 0.0
    }

    fn plus(self, b: Number) -> Number {
        number(self.re + b.re, self.im + b.im)
    }

    fn minus(self, b: Number) -> Number {
        number(self.re - b.re, self.im - b.im)
    }

    fn times(self, b: Number) -> Number {
        number(self.re * b.re - self.im * b.im, self.re * b.im + self.im * b.re)
    }

    fn scaled(self, by: f64) -> Number {
        number(self.re * by, self.im * by)
    }

    /// The quotient. Both operands are scaled to about 1 by powers of two first.
    fn over(self, b: Number) -> Number {
        let (up, down) = (exponent(self), exponent(b));
        let (a, b) = (halved(self, up), halved(b, down));
        let square = b.re * b.re + b.im * b.im;
        let quotient = a.times(number(b.re, -b.im));
        halved(number(quotient.re / square, quotient.im / square), down - up)
    }

    fn exp(self) -> Number {
        // The power is split into two factors, so that it does not overflow before the product.
        let half = libm::exp(self.re / 2.0);
        let (s, c) = libm::sincos(self.im);
        number(half * c * half, half * s * half)
    }

    fn expm1(self) -> Number {
        let half = libm::sin(self.im / 2.0);
        let re = libm::expm1(self.re) * libm::cos(self.im) - 2.0 * half * half;
        number(re, libm::exp(self.re) * libm::sin(self.im))
    }

    fn log(self) -> Number {
        number(log_of_length(self.re, self.im), libm::atan2(self.im, self.re))
    }

    fn log1p(self) -> Number {
        let (x, y) = (self.re, self.im);
        let re =
            if self.length() < 0.5 { 0.5 * libm::log1p(2.0 * x + x * x + y * y) } else { log_of_length(1.0 + x, y) };
        number(re, libm::atan2(y, 1.0 + x))
    }

    fn sqrt(self) -> Number {
        if self.zero() {
            return number(0.0, self.im);
        }
        // The number is scaled to about 1 by a power of four, so no part is subnormal.
        let half = exponent(self) / 2;
        let z = halved(self, 2 * half);
        let t = ((z.re.abs() / 2.0) + z.length() / 2.0).sqrt();
        let u = z.im.abs() / (2.0 * t);
        let (re, im) = if self.re >= 0.0 { (t, u) } else { (u, t) };
        halved(number(re, im.copysign(self.im)), -half)
    }

    fn sinh(self) -> Number {
        let (s, c) = libm::sincos(self.im);
        number(libm::sinh(self.re) * c, libm::cosh(self.re) * s)
    }

    fn cosh(self) -> Number {
        let (s, c) = libm::sincos(self.im);
        number(libm::cosh(self.re) * c, libm::sinh(self.re) * s)
    }

    fn tanh(self) -> Number {
        if self.re.abs() > 30.0 {
            let (s, c) = libm::sincos(self.im);
            let power = libm::exp(-2.0 * self.re.abs());
            return number(1f64.copysign(self.re), 4.0 * s * c * power);
        }
        self.sinh().over(self.cosh())
    }

    /// Kahan's formulas, by the roots of 1 - z and 1 + z.
    fn asin(self) -> Number {
        let (a, b) = (number(1.0 - self.re, -self.im).sqrt(), number(1.0 + self.re, self.im).sqrt());
        let re = libm::atan2(self.re, a.re * b.re - a.im * b.im);
        number(re, libm::asinh(a.re * b.im - a.im * b.re))
    }

    fn acos(self) -> Number {
        let (a, b) = (number(1.0 - self.re, -self.im).sqrt(), number(1.0 + self.re, self.im).sqrt());
        number(2.0 * libm::atan2(a.re, b.re), libm::asinh(b.re * a.im - b.im * a.re))
    }

    fn acosh(self) -> Number {
        let (a, b) = (number(self.re - 1.0, self.im).sqrt(), number(self.re + 1.0, self.im).sqrt());
        number(libm::asinh(a.re * b.re + a.im * b.im), 2.0 * libm::atan2(a.im, b.re))
    }

    fn atanh(self) -> Number {
        let (x, y) = (self.re, self.im);
        let a = x.abs();
        let square = (1.0 - a) * (1.0 - a) + y * y;
        if self.length() > 1e100 {
            return number(ONE.over(self).re, std::f64::consts::FRAC_PI_2.copysign(y));
        }
        // Near the pole at 1, the logarithm is that of 2 / |1 - z|.
        let re = if square < 1e-200 {
            0.5 * libm::log(2.0 / libm::hypot(1.0 - a, y))
        } else {
            0.25 * libm::log1p(4.0 * a / square)
        };
        number(re.copysign(x), 0.5 * libm::atan2(2.0 * y, (1.0 - a) * (1.0 + a) - y * y))
    }

    /// `-i z`, and `i z`.
    fn over_i(self) -> Number {
        number(self.im, -self.re)
    }

    fn times_i(self) -> Number {
        number(-self.im, self.re)
    }
}

/// The exponent of the larger part.
fn exponent(z: Number) -> i32 {
    let largest = z.re.abs().max(z.im.abs());
    if largest == 0.0 { 0 } else { largest.log2().floor() as i32 }
}

/// `z / 2^e`, also if `2^e` is not representable.
fn halved(z: Number, e: i32) -> Number {
    let (first, second) = (e / 2, e - e / 2);
    z.scaled(power_of_two(-first)).scaled(power_of_two(-second))
}

/// ln |x + iy|. Near 1 it is computed from the difference to 1.
fn log_of_length(x: f64, y: f64) -> f64 {
    let (large, small) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    if (0.5..1.5).contains(&large) && small < 1.0 {
        let square = small * small;
        // (large - 1)(large + 1) has an error of at most one unit.
        return 0.5 * libm::log1p((large - 1.0) * (large + 1.0) + square);
    }
    if large < power_of_two(-900) {
        // A subnormal length would lose digits, so the parts are scaled.
        let length = libm::hypot(x * power_of_two(600), y * power_of_two(600));
        return libm::log(length) - 600.0 * std::f64::consts::LN_2;
    }
    libm::log(libm::hypot(x, y))
}

/// The lexicographic order, as NumPy has it: a NaN has no place, but equal real parts are looked at first.
fn ordered(x: Number, y: Number) -> Option<Ordering> {
    match x.re.partial_cmp(&y.re)? {
        Ordering::Equal => x.im.partial_cmp(&y.im),
        _ if x.im.is_nan() || y.im.is_nan() => None,
        order => Some(order),
    }
}

/// The larger number; the first one that has a NaN.
pub fn larger(x: Number, y: Number) -> Number {
    if x.nan() || ordered(x, y).is_some_and(Ordering::is_ge) { x } else { y }
}

/// The smaller number; the first one that has a NaN.
pub fn smaller(x: Number, y: Number) -> Number {
    if x.nan() || ordered(x, y).is_some_and(Ordering::is_le) { x } else { y }
}

/// The arithmetic in which an op computes.
#[derive(Clone, Copy, Debug)]
pub struct Math {
    pub single: bool,
}

impl Math {
    fn real(self) -> Real {
        Real { single: self.single }
    }

    fn add(self, a: Number, b: Number) -> Number {
        number(self.real().add(a.re, b.re), self.real().add(a.im, b.im))
    }

    fn sub(self, a: Number, b: Number) -> Number {
        number(self.real().sub(a.re, b.re), self.real().sub(a.im, b.im))
    }

    /// The plain formula.
    fn mul(self, a: Number, b: Number) -> Number {
        let r = self.real();
        let re = r.sub(r.mul(a.re, b.re), r.mul(a.im, b.im));
        number(re, r.add(r.mul(a.re, b.im), r.mul(a.im, b.re)))
    }

    fn largest(self) -> f64 {
        if self.single { f32::MAX.into() } else { f64::MAX }
    }

    fn smallest(self) -> f64 {
        if self.single { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE }
    }

    /// Half the distance from 1 to the next number.
    fn unit(self) -> f64 {
        if self.single { 0.5 * f64::from(f32::EPSILON) } else { 0.5 * f64::EPSILON }
    }

    /// The error of the formulas here, relative to the terms that they add. They are computed in f64, so in f32 little
    /// is added to the rounding of the result.
    const SLACK: f64 = 64.0 * f64::EPSILON;

    /// A result that is a sum of terms of this size.
    fn near(self, w: Number, size: f64) -> Answer {
        let length = w.length();
        if !w.finite() || !size.is_finite() || length > self.largest() / 4.0 {
            return Answer::Open;
        }
        Answer::Near(w.re, w.im, length * self.unit() + Math::SLACK * size.max(length) + self.smallest() * Math::SLACK)
    }

    fn exactly(z: Number) -> Answer {
        Answer::Exactly(Value::Pair(z.re, z.im))
    }

    /// A function's value by its formula, and the size of the terms in the formula.
    fn function(op: Op, z: Number) -> Option<(Number, f64)> {
        let length = z.length();
        Some(match op {
            Op::Sqrt => (z.sqrt(), 0.0),
            Op::Rsqrt => (ONE.over(z.sqrt()), 0.0),
            Op::Reciprocal => (ONE.over(z), 0.0),
            Op::Sgn | Op::SignOrNan if z.zero() => (z, 0.0),
            Op::Sgn | Op::SignOrNan => {
                let z = halved(z, exponent(z));
                (z.over(number(z.length(), 0.0)), 0.0)
            }
            Op::Exp => (z.exp(), 0.0),
            Op::Expm1 => (z.expm1(), if length > 0.5 { 1.0 } else { 0.0 }),
            Op::Log => (z.log(), 0.0),
            Op::Log2 => (z.log().scaled(std::f64::consts::LOG2_E), 0.0),
            Op::Log10 => (z.log().scaled(std::f64::consts::LOG10_E), 0.0),
            Op::Log1p => (z.log1p(), 0.0),
            Op::Sin => (z.times_i().sinh().over_i(), 0.0),
            Op::Cos => (z.times_i().cosh(), 0.0),
            Op::Tan => (z.times_i().tanh().over_i(), 0.0),
            Op::Sinh => (z.sinh(), 0.0),
            Op::Cosh => (z.cosh(), 0.0),
            Op::Tanh => (z.tanh(), 0.0),
            Op::Asin => (z.asin(), 0.0),
            Op::Acos => (z.acos(), 0.0),
            Op::Atan => (z.times_i().atanh().over_i(), 0.0),
            Op::Asinh => (z.times_i().asin().over_i(), 0.0),
            Op::Acosh => (z.acosh(), 0.0),
            Op::Atanh => (z.atanh(), 0.0),
            Op::Exp2 => (z.scaled(std::f64::consts::LN_2).exp(), 0.0),
            Op::Sigmoid => {
                let e = if z.re < 0.0 { z.exp() } else { z.scaled(-1.0).exp() };
                let w = if z.re < 0.0 { e.over(ONE.plus(e)) } else { ONE.over(ONE.plus(e)) };
                // Near a pole, 1 + e cancels; at the pole, it has no correct digits.
                let left = ONE.plus(e).length();
                (w, if left > Math::SLACK { w.length() / left } else { f64::INFINITY })
            }
            _ => return None,
        })
    }

    /// a^b. Its error is that of a factor, multiplied by a count that depends on the exponent.
    fn power(self, a: Number, b: Number) -> Answer {
        if b.zero() {
            return Math::exactly(ONE);
        }
        if a.zero() && a.finite() && !b.re.is_nan() && !b.im.is_nan() {
            return if b.re > 0.0 { Math::exactly(number(0.0, 0.0)) } else { Answer::NotFinite };
        }
        if !a.finite() || !b.finite() {
            return Answer::Open;
        }
        let exponent = b.times(a.log());
        let w = exponent.exp();
        // If the error of the exponent is about 1 or more, any result is possible.
        let lost = 1.0 + b.length() * (1.0 + a.log().length());
        if lost * Math::SLACK < 0.1 { self.near(w, w.length() * lost) } else { Answer::Open }
    }

    fn quotient(self, a: Number, b: Number) -> Answer {
        if b.zero() {
            return Answer::NotFinite;
        }
        if !a.finite() || !b.finite() {
            return Answer::Open;
        }
        // Subnormal terms of the dividend are rounded to a multiple of the smallest number before the division.
        match self.near(a.over(b), 0.0) {
            Answer::Near(re, im, error) => Answer::Near(re, im, error + 2.0 * f64::from_bits(1) / b.length()),
            other => other,
        }
    }

    /// The sum of `x` and an answer, with the answer's error and that of the sum.
    fn added(self, x: Number, answer: Answer) -> Answer {
        match answer {
            Answer::Near(re, im, error) if x.finite() => {
                let sum = x.plus(number(re, im));
                let size = x.length() + re.abs() + im.abs();
                if size > self.largest() / 4.0 {
                    return Answer::Open;
                }
                // The quotient's own rounding, which is not part of its answer, and the sum's rounding.
                Answer::Near(sum.re, sum.im, error + 4.0 * self.unit() * size + self.smallest() * self.unit() * 4.0)
            }
            Answer::NotFinite if x.finite() => Answer::NotFinite,
            _ => Answer::Open,
        }
    }

    /// Paddle's remainder, which is the difference to the nearest integer multiple.
    fn remainder(self, a: Number, b: Number) -> Answer {
        if !a.finite() || !b.finite() || b.zero() {
            return Answer::Open;
        }
        let q = a.over(b);
        let square = b.length() * b.length();
        let range = self.smallest() * 16.0 / self.unit()..self.largest() / 16.0;
        let terms = a.length() * b.length();
        if !range.contains(&square) || !range.contains(&terms) {
            return Answer::Open;
        }
        let whole = |v: f64| {
            // The quotient has an error of some units, so a tie may be rounded either way.
            let doubt = 16.0 * self.unit() * (1.0 + q.length());
            let tie = ((v - v.trunc()).abs() - 0.5).abs();
            (tie > doubt && doubt < 0.25).then(|| v.round())
        };
        let (Some(m), Some(n)) = (whole(q.re), whole(q.im)) else { return Answer::Open };
        let r = self.real();
        let re = r.sub(a.re, r.sub(r.mul(m, b.re), r.mul(n, b.im)));
        Math::exactly(number(re, r.sub(a.im, r.add(r.mul(m, b.im), r.mul(n, b.re)))))
    }

    /// An application in this arithmetic.
    pub fn apply(self, op: Op, args: &[Value]) -> Answer {
        let a: Vec<Number> = args.iter().map(|v| v.pair()).map(|(re, im)| number(re, im)).collect();
        let (x, y) = (a[0], a.get(1).copied().unwrap_or(ONE));
        let truth = |v: bool| Answer::Exactly(Value::Int(v.into()));
        let real = |v: f64| Answer::Exactly(Value::Real(v));
        if let (1, Some((w, size))) = (a.len(), Math::function(op, x)) {
            return if x.finite() { self.near(w, size) } else { Answer::Open };
        }
        Math::exactly(match op {
            Op::Eq => return truth(x.re == y.re && x.im == y.im),
            Op::Ne => return truth(x.re != y.re || x.im != y.im),
            Op::Lt => return truth(ordered(x, y) == Some(Ordering::Less)),
            Op::Le => return truth(ordered(x, y).is_some_and(Ordering::is_le)),
            Op::Gt => return truth(ordered(x, y) == Some(Ordering::Greater)),
            Op::Ge => return truth(ordered(x, y).is_some_and(Ordering::is_ge)),
            Op::Maximum | Op::ClampMin => larger(x, y),
            Op::Minimum | Op::ClampMax => smaller(x, y),
            Op::Clamp => smaller(larger(x, y), a[2]),
            Op::Fmax if y.nan() => x,
            Op::Fmax if x.nan() => y,
            Op::Fmax => larger(x, y),
            Op::Fmin if y.nan() => x,
            Op::Fmin if x.nan() => y,
            Op::Fmin => smaller(x, y),
            Op::Round => number(x.re.round_ties_even(), x.im.round_ties_even()),
            Op::LogicalAnd => return truth(!x.zero() && !y.zero()),
            Op::LogicalOr => return truth(!x.zero() || !y.zero()),
            Op::LogicalXor => return truth(x.zero() != y.zero()),
            Op::LogicalNot => return truth(x.zero()),
            Op::Isnan => return truth(x.re.is_nan() || x.im.is_nan()),
            Op::Isinf => return truth(x.re.is_infinite() || x.im.is_infinite()),
            Op::Isfinite => return truth(x.finite()),
            Op::RealPart => return real(x.re),
            Op::ImagPart => return real(x.im),
            Op::Abs => return self.real().apply(Op::Hypot, &[Value::Real(x.re), Value::Real(x.im)]),
            Op::Angle => return self.real().apply(Op::Atan2, &[Value::Real(x.im), Value::Real(x.re)]),
            Op::Div => return self.quotient(x, y),
            Op::Remainder => return self.remainder(x, y),
            Op::Pow | Op::FloatPower => return self.power(x, y),
            Op::Logaddexp => return self.logaddexp(x, y),
            Op::Softplus => return self.logaddexp(x, number(0.0, 0.0)),
            Op::Relu => larger(x, number(0.0, 0.0)),
            // JAX's formulas alone, whose errors have no bound here.
            Op::Logaddexp2 | Op::GeluTanh | Op::Atan2 | Op::Xlogy => return Answer::Open,
            Op::Silu => return self.silu(x),
            Op::Ldexp => return self.ldexp(x, y),
            Op::Addcdiv => return self.added(x, self.quotient(self.mul(a[3], y), a[2])),
            Op::Add => self.add(x, y),
            Op::Sub => self.sub(x, y),
            Op::Mul => self.mul(x, y),
            Op::Square => self.mul(x, x),
            Op::Conj => number(x.re, -x.im),
            Op::FromParts => number(x.re, y.re),
            Op::Positive | Op::PromoteWith => x,
            Op::Assign => y,
            Op::AddScaled => self.add(x, self.mul(a[2], y)),
            Op::SubScaled => self.sub(x, self.mul(a[2], y)),
            Op::Addcmul => self.add(x, self.mul(self.mul(a[3], y), a[2])),
            Op::SquaredDifference => {
                let difference = self.sub(x, y);
                self.mul(difference, difference)
            }
            Op::Lerp => {
                let (end, weight) = (y, a[2]);
                let r = self.real();
                let way = self.sub(end, x);
                let square = r.add(r.mul(weight.re, weight.re), r.mul(weight.im, weight.im));
                if square < 0.25 {
                    self.add(x, self.mul(weight, way))
                } else {
                    self.sub(end, self.mul(way, self.sub(ONE, weight)))
                }
            }
            _ => panic!("no reference for `{op}` of complex numbers"),
        })
    }

    fn logaddexp(self, x: Number, y: Number) -> Answer {
        if !x.finite() || !y.finite() {
            return Answer::Open;
        }
        let first = x.re > y.re || x.re == y.re && x.im > y.im;
        let (high, low) = if first { (x, y) } else { (y, x) };
        let e = low.minus(high).exp();
        let w = high.plus(e.log1p());
        // The difference, the power, the logarithm (whose argument may cancel) and the sum are rounded in the op's
        // arithmetic.
        let distance = 1.0 + low.minus(high).length();
        let size = high.length() + e.log1p().length() + e.length() * distance / ONE.plus(e).length();
        match self.near(w, size) {
            Answer::Near(re, im, error) => Answer::Near(re, im, error + 8.0 * self.unit() * size),
            other => other,
        }
    }

    fn silu(self, x: Number) -> Answer {
        let Some((s, size)) = Math::function(Op::Sigmoid, x) else { return Answer::Open };
        let product = s.times(x);
        let room = s.length() > self.smallest() / self.unit() && x.length() < self.largest() / 4.0;
        if !x.finite() || !s.finite() || !room {
            return Answer::Open;
        }
        // The sigmoid is rounded, and so are the parts of the product.
        let error = x.length() * (8.0 * self.unit() * s.length() + Math::SLACK * size);
        match self.near(product, 0.0) {
            Answer::Near(re, im, own) => Answer::Near(re, im, own + error),
            other => other,
        }
    }

    /// x · 2^e.
    fn ldexp(self, x: Number, e: Number) -> Answer {
        if !x.finite() || !e.finite() {
            return Answer::Open;
        }
        let power = e.scaled(std::f64::consts::LN_2).exp();
        let room = self.smallest() / self.unit()..self.largest() / 4.0;
        if !room.contains(&power.length()) || x.zero() {
            return Answer::Open;
        }
        let product = x.times(power);
        let error = product.length() * (8.0 * self.unit() + Math::SLACK * (1.0 + e.length()));
        match self.near(product, 0.0) {
            Answer::Near(re, im, own) => Answer::Near(re, im, own + error),
            other => other,
        }
    }
}
