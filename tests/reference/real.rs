//! Ops on floats, in the arithmetic of f32 or f64.
//!
//! Guarantees: IEEE operations are exact in this arithmetic, and an elementary function is an interval. Does not: round
//! to f16 or bf16, which happens once, afterwards.

use castwise::{DType, Op};

use super::format::{Float, power_of_two, scaled, signs};
use super::functions::{of_one, of_two};
use super::{Answer, Value};

/// The arithmetic in which an op computes. Its numbers are stored as f64, which holds them exactly.
#[derive(Clone, Copy, Debug)]
pub struct Math {
    pub single: bool,
}

macro_rules! ieee {
    ($($name:ident $sign:tt),*) => {$(
        pub fn $name(self, x: f64, y: f64) -> f64 {
            if self.single { f64::from(x as f32 $sign y as f32) } else { x $sign y }
        }
    )*};
}

impl Math {
    ieee!(add +, sub -, mul *, div /, fmod %);

    pub fn round(self, x: f64) -> f64 {
        if self.single { f64::from(x as f32) } else { x }
    }

    fn sqrt(self, x: f64) -> f64 {
        if self.single { f64::from((x as f32).sqrt()) } else { x.sqrt() }
    }

    fn fma(self, x: f64, y: f64, z: f64) -> f64 {
        if self.single { libm::fmaf(x as f32, y as f32, z as f32).into() } else { libm::fma(x, y, z) }
    }

    fn format(self) -> Float {
        Float::of(if self.single { DType::F32 } else { DType::F64 })
    }

    /// The numbers within `error` of a value. Infinity counts as the power of two after the largest number.
    pub fn between(self, value: f64, error: f64) -> Answer {
        if value.is_nan() || value.is_infinite() || error.is_nan() || error <= 0.0 {
            return Answer::Exactly(Value::Real(self.round(value)));
        }
        if !self.single {
            return Answer::Between(value - error, value + error);
        }
        // The largest f32 that is at most the bound.
        let below = |bound: f64| {
            let near = bound as f32;
            if near == f32::INFINITY && bound < power_of_two(128) {
                f32::MAX
            } else if f64::from(near) > bound && near.is_finite() {
                near.next_down()
            } else {
                near
            }
        };
        let (lo, hi) = (-below(error - value), below(value + error));
        // Rounding to zero keeps the sign.
        let keep = |v: f32| if v == 0.0 { f64::from(v).copysign(value) } else { f64::from(v) };
        Answer::Between(keep(lo), keep(hi))
    }

    /// The numbers within this many ulps of the function's value at `argument`.
    fn within(self, value: f64, ulps: f64, argument: f64) -> Answer {
        let format = self.format();
        if self.single || value.is_nan() || argument == 0.0 || !argument.is_finite() {
            let exact = value.is_nan() || value == 0.0;
            return self.between(value, if exact { 0.0 } else { ulps * format.spacing(value) });
        }
        // In f64 the reference is no more precise than castwise, so it may itself be on the other side of the overflow
        // threshold.
        if value.is_infinite() {
            let largest = f64::MAX.copysign(value);
            return Answer::Between(value.min(largest), value.max(largest));
        }
        let error = (ulps * format.spacing(value)).max(format.spacing(0.0));
        let (lo, hi) = (value - error, value + error);
        let keep = |v: f64| if v == 0.0 || (v < 0.0) != (value < 0.0) { 0f64.copysign(value) } else { v };
        if value == 0.0 {
            return if value.is_sign_negative() { Answer::Between(lo, value) } else { Answer::Between(value, hi) };
        }
        Answer::Between(keep(lo), keep(hi))
    }

    /// The interval of a function's accepted results.
    fn function(self, f: super::functions::Function, argument: f64) -> Answer {
        let ulps = if self.single { f.bar } else { f.bar + f.own };
        self.within(f.value, ulps, argument)
    }

    /// The product of an interval and a number, rounded.
    fn times(self, answer: Answer, factor: f64) -> Answer {
        match answer {
            Answer::Between(..) if factor.is_nan() => Answer::Exactly(Value::Real(factor)),
            Answer::Exactly(v) => Answer::Exactly(Value::Real(self.mul(v.real(), factor))),
            Answer::Between(lo, hi) => {
                let (a, b) = (self.mul(lo, factor), self.mul(hi, factor));
                if a.is_nan() || b.is_nan() {
                    return Answer::Open;
                }
                if a <= b { Answer::Between(a, b) } else { Answer::Between(b, a) }
            }
            other => other,
        }
    }

    /// The larger of two numbers: NaN if either is, and +0 is larger than -0.
    pub fn maximum(x: f64, y: f64) -> f64 {
        if x.is_nan() || y.is_nan() {
            return f64::NAN;
        }
        if x == y {
            return if x.is_sign_negative() { y } else { x };
        }
        if x > y { x } else { y }
    }

    pub fn minimum(x: f64, y: f64) -> f64 {
        -Math::maximum(-x, -y)
    }

    /// Python's `//` of floats.
    fn floor_divide(self, x: f64, y: f64) -> f64 {
        if y == 0.0 {
            return self.div(x, y);
        }
        let rest = self.fmod(x, y);
        let mut quotient = self.div(self.sub(x, rest), y);
        if rest != 0.0 && (rest < 0.0) != (y < 0.0) {
            quotient = self.sub(quotient, 1.0);
        }
        if quotient == 0.0 {
            return 0f64.copysign(self.div(x, y));
        }
        let whole = quotient.floor();
        if self.sub(quotient, whole) > 0.5 { self.add(whole, 1.0) } else { whole }
    }

    fn remainder(self, x: f64, y: f64) -> f64 {
        let rest = self.fmod(x, y);
        if rest != 0.0 && (rest < 0.0) != (y < 0.0) { self.add(rest, y) } else { rest }
    }

    /// x · 2^e.
    fn ldexp(self, x: f64, e: f64) -> Answer {
        if x.is_nan() || e.is_nan() {
            return Answer::Exactly(Value::Real(f64::NAN));
        }
        if e.is_infinite() {
            let power = if e > 0.0 { f64::INFINITY } else { 0.0 };
            return Answer::Exactly(Value::Real(x * power));
        }
        // For exponents of this size, every result is zero or infinite.
        if e.fract() == 0.0 || e.abs() > 4000.0 {
            let e = e.clamp(-4000.0, 4000.0) as i32;
            return Answer::Exactly(Value::Real(scaled(self.format(), x, e)));
        }
        let mut whole = e.floor();
        let part = libm::exp2(e - whole);
        // The product with the power of the fraction must not be subnormal.
        let mut x = x;
        while x != 0.0 && x.abs() < power_of_two(-900) {
            (x, whole) = (x * power_of_two(100), whole - 100.0);
        }
        while x.is_finite() && x.abs() > power_of_two(900) {
            (x, whole) = (x * power_of_two(-100), whole + 100.0);
        }
        // The bound of exp2 for the power of the fraction, and the rounding of the product.
        let product = scaled(Float::of(DType::F64), x * part, whole as i32);
        if x == 0.0 || x.is_infinite() { Answer::Exactly(Value::Real(product)) } else { self.within(product, 4.0, e) }
    }

    /// Powers with a scalar exponent that PyTorch, and therefore castwise, computes as products, quotients and roots.
    /// (Under Paddle's rules, roots are computed as powers.)
    pub fn power(self, x: f64, exponent: f64) -> Option<Answer> {
        let square = self.mul(x, x);
        let value = match exponent {
            2.0 => square,
            3.0 => self.mul(square, x),
            -1.0 => self.div(1.0, x),
            -2.0 => self.div(1.0, square),
            0.5 => self.sqrt(x),
            -0.5 => return of_one(Op::Rsqrt, x).map(|f| self.function(f, x)),
            _ => return None,
        };
        Some(Answer::Exactly(Value::Real(value)))
    }

    /// An application in this arithmetic.
    pub fn apply(self, op: Op, args: &[Value]) -> Answer {
        let mut a = [0.0; 4];
        for (a, v) in a.iter_mut().zip(args) {
            *a = v.real();
        }
        let (x, y) = (a[0], a[1]);
        let truth = |v: bool| Answer::Exactly(Value::Int(v.into()));
        if let Some(f) = if args.len() == 1 { of_one(op, x) } else { None } {
            return self.function(f, x);
        }
        if let Some(f) = if args.len() == 2 { of_two(op, x, y) } else { None } {
            let larger = x.max(y);
            let far = matches!(op, Op::Logaddexp | Op::Logaddexp2) && larger.is_finite() && f.value.is_finite();
            if far && self.format().spacing(larger) > self.format().spacing(f.value) {
                // The sum may cancel, so the error is one ulp of the larger operand, and one more for the reference in
                // f64.
                let ulps = if self.single { 1.0 } else { 2.0 };
                let error = ulps * self.format().spacing(larger) + f.bar * self.format().spacing(f.value);
                return self.between(f.value, error);
            }
            let argument = if x == 0.0 || !x.is_finite() { x } else { y };
            return self.function(f, argument);
        }
        let value = match op {
            Op::Eq => return truth(x == y),
            Op::Ne => return truth(x != y),
            Op::Lt => return truth(x < y),
            Op::Le => return truth(x <= y),
            Op::Gt => return truth(x > y),
            Op::Ge => return truth(x >= y),
            Op::LogicalAnd => return truth(x != 0.0 && y != 0.0),
            Op::LogicalOr => return truth(x != 0.0 || y != 0.0),
            Op::LogicalXor => return truth((x != 0.0) != (y != 0.0)),
            Op::LogicalNot => return truth(x == 0.0),
            Op::Isnan => return truth(x.is_nan()),
            Op::Isinf => return truth(x.is_infinite()),
            Op::Isfinite => return truth(x.is_finite()),
            Op::Xlogy => {
                if x == 0.0 {
                    if y.is_nan() { f64::NAN } else { 0.0 }
                } else if let Some(f) = of_one(Op::Log, y) {
                    return self.times(self.function(f, y), x);
                } else {
                    f64::NAN
                }
            }
            Op::Ldexp | Op::LdexpFloat => return self.ldexp(x, y),
            Op::Add => self.add(x, y),
            Op::Sub => self.sub(x, y),
            Op::Mul => self.mul(x, y),
            Op::Div => self.div(x, y),
            Op::FloorDivide => self.floor_divide(x, y),
            Op::Remainder => self.remainder(x, y),
            Op::RemainderSigned => {
                let rest = self.remainder(x, y);
                if rest == 0.0 { 0f64.copysign(y) } else { rest }
            }
            Op::Fmod => self.fmod(x, y),
            Op::DivTrunc => self.div(x, y).trunc(),
            Op::Maximum | Op::ClampMin => Math::maximum(x, y),
            Op::Minimum | Op::ClampMax => Math::minimum(x, y),
            Op::Clamp => Math::minimum(Math::maximum(x, y), a[2]),
            Op::Fmax if x.is_nan() => y,
            Op::Fmin if x.is_nan() => y,
            Op::Fmax if y.is_nan() => x,
            Op::Fmin if y.is_nan() => x,
            Op::Fmax => Math::maximum(x, y),
            Op::Fmin => Math::minimum(x, y),
            Op::SignOrNan | Op::HeavisideOrNan if x.is_nan() => x,
            Op::SignOfZero if x.is_nan() || x == 0.0 => x,
            Op::Sign | Op::Sgn | Op::SignOrNan | Op::SignOfZero => f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
            Op::Square => self.mul(x, x),
            Op::Sqrt => self.sqrt(x),
            Op::Reciprocal => self.div(1.0, x),
            Op::Relu => Math::maximum(x, 0.0),
            Op::Floor => x.floor(),
            Op::Ceil => x.ceil(),
            Op::Round => x.round_ties_even(),
            Op::Trunc => x.trunc(),
            Op::Frac => self.sub(x, x.trunc()),
            Op::RealPart | Op::Conj | Op::Positive | Op::PromoteWith => x,
            Op::Neg => -x,
            Op::Abs => x.abs(),
            Op::Assign => y,
            Op::Angle | Op::AngleSigned if x.is_nan() => x,
            Op::AngleSigned if x == 0.0 && x.is_sign_negative() => self.round(std::f64::consts::PI),
            Op::Angle | Op::AngleSigned => self.round(if x < 0.0 { std::f64::consts::PI } else { 0.0 }),
            Op::ImagPart => 0.0,
            Op::Heaviside | Op::HeavisideOrNan if x == 0.0 => y,
            Op::Heaviside | Op::HeavisideOrNan => f64::from(u8::from(x > 0.0)),
            Op::Fma | Op::FmaHalf => self.fma(x, y, a[2]),
            Op::AddScaled => self.add(x, self.mul(a[2], y)),
            Op::AddScaledFma => self.fma(a[2], y, x),
            Op::SubScaledFma => self.fma(-a[2], y, x),
            Op::AddcmulFma => self.fma(self.mul(a[3], y), a[2], x),
            Op::LerpFma => {
                let (end, weight) = (y, a[2]);
                let way = self.sub(end, x);
                if weight.abs() < 0.5 { self.fma(weight, way, x) } else { self.fma(self.sub(weight, 1.0), way, end) }
            }
            Op::SubScaled => self.sub(x, self.mul(a[2], y)),
            Op::Addcmul => self.add(x, self.mul(self.mul(a[3], y), a[2])),
            Op::Addcdiv => self.add(x, self.div(self.mul(a[3], y), a[2])),
            Op::SquaredDifference => {
                let difference = self.sub(x, y);
                self.mul(difference, difference)
            }
            Op::Huber => {
                let (r, delta) = (self.sub(x, y).abs(), a[2]);
                if r <= delta {
                    self.mul(self.mul(0.5, r), r)
                } else {
                    self.mul(delta, self.sub(r, self.mul(0.5, delta)))
                }
            }
            Op::SmoothL1 => {
                let (r, beta) = (self.sub(x, y).abs(), a[2]);
                if r < beta { self.div(self.mul(self.mul(0.5, r), r), beta) } else { self.sub(r, self.mul(0.5, beta)) }
            }
            Op::Lerp => {
                let (end, weight) = (y, a[2]);
                let way = self.sub(end, x);
                if weight.abs() < 0.5 {
                    self.add(x, self.mul(weight, way))
                } else {
                    self.sub(end, self.mul(way, self.sub(1.0, weight)))
                }
            }
            _ => panic!("no reference for `{op}` of floats"),
        };
        Answer::Exactly(Value::Real(value))
    }
}

/// `x·y + z` of three f32, such that rounding it to fewer than 50 bits is rounding the exact number: by integers, of which the
/// last bit says that something is behind it.
pub fn fused(x: f64, y: f64, z: f64) -> f64 {
    let product = x * y;
    if !product.is_finite() || !z.is_finite() || product == 0.0 || z == 0.0 {
        return product + z;
    }
    // m · 2^e with an odd m.
    let parts = |v: f64| -> (i128, i32) {
        let (bits, sign) = (v.to_bits(), if v < 0.0 { -1 } else { 1 });
        let (m, e) = ((bits & ((1 << 52) - 1) | 1 << 52) as i128, ((bits >> 52) & 2047) as i32 - 1075);
        (sign * (m >> m.trailing_zeros()), e + m.trailing_zeros() as i32)
    };
    let (mut high, mut low) = (parts(product), parts(z));
    if high.1 < low.1 {
        (high, low) = (low, high);
    }
    let gap = high.1 - low.1;
    let (m, e) = if gap <= 60 {
        ((high.0 << gap) + low.0, low.1)
    } else {
        let behind = (gap - 60).min(127);
        let whole = low.0 >> behind;
        (2 * ((high.0 << 60) + whole) + i128::from(whole << behind != low.0), high.1 - 61)
    };
    let (sign, m) = (if m < 0 { -1.0 } else { 1.0 }, m.unsigned_abs());
    let drop = 128u32.saturating_sub(m.leading_zeros()).saturating_sub(53);
    let kept = (m >> drop) | u128::from(m & ((1 << drop) - 1) != 0);
    sign * kept as f64 * power_of_two(e + drop as i32)
}

/// The first number with the sign of the second, which may be a NaN, as bits.
pub fn copysign(d: DType, x: u128, y: u128) -> u128 {
    let (format, sign) = (Float::of(d), signs(d));
    if format.decode(x).is_nan() { format.encode(f64::NAN) } else { x & !sign | y & sign }
}

/// The next number of a float dtype from `x` towards `y`, as bits.
pub fn next_after(d: DType, x: u128, y: u128) -> u128 {
    let format = Float::of(d);
    let (from, to) = (format.decode(x), format.decode(y));
    if from.is_nan() || to.is_nan() {
        return format.encode(f64::NAN);
    }
    if from == to {
        return y;
    }
    if from == 0.0 {
        return format.encode(format.spacing(0.0).copysign(to));
    }
    // Numbers of one sign are ordered like their bits.
    if (to > from) == (from > 0.0) { x + 1 } else { x - 1 }
}
