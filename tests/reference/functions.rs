//! Elementary functions in f64 by `libm`, with the error that is allowed of castwise.
//!
//! Guarantees: a bar is the one of docs/accuracy.md; where the reference itself is no better than f64, what `libm`
//! states of itself is added. Does not: know complex numbers.

use castwise::Op;

/// A function's value as f64 has it, and errors in ulps: the bar, and `libm`'s own.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub value: f64,
    pub bar: f64,
    pub own: f64,
}

/// An elementary function of one operand.
pub fn of_one(op: Op, x: f64) -> Option<Function> {
    let (value, bar, own) = match op {
        Op::Exp => (libm::exp(x), 1.0, 1.0),
        Op::Expm1 => (libm::expm1(x), 1.0, 1.0),
        Op::Exp2 => (libm::exp2(x), 1.0, 1.0),
        Op::Log => (libm::log(x), 1.0, 1.0),
        Op::Log1p => (libm::log1p(x), 1.0, 1.0),
        Op::Log2 => (libm::log2(x), 1.0, 1.0),
        Op::Log10 => (libm::log10(x), 1.0, 2.0),
        Op::Sin => (libm::sin(x), 1.0, 1.0),
        Op::Cos => (libm::cos(x), 1.0, 1.0),
        Op::Tan => (libm::tan(x), 1.0, 1.0),
        Op::Asin => (libm::asin(x), 1.0, 1.0),
        Op::Acos => (libm::acos(x), 1.0, 1.0),
        Op::Atan => (libm::atan(x), 1.0, 1.0),
        Op::Sinh => (libm::sinh(x), 2.0, 2.0),
        Op::Cosh => (libm::cosh(x), 2.0, 1.0),
        Op::Tanh => (libm::tanh(x), 2.0, 2.0),
        Op::Asinh => (libm::asinh(x), 2.0, 2.0),
        // libm has numbers for some arguments below -1, where there are none.
        Op::Acosh => (if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 1.0, 4.0),
        Op::Atanh => (libm::atanh(x), 1.0, 2.0),
        Op::Erf => (libm::erf(x), 1.0, 1.0),
        Op::Erfc => (libm::erfc(x), 2.0, 4.0),
        Op::Cbrt => (libm::cbrt(x), 1.0, 1.0),
        Op::Sigmoid => (sigmoid(x), 1.0, 2.0),
        // Far below zero by two powers that are normal.
        Op::Silu if x < -40.0 && x > -2000.0 => (x * libm::exp(0.5 * x) * libm::exp(0.5 * x), 2.0, 4.0),
        Op::Silu => (x * sigmoid(x), 2.0, 4.0),
        Op::Gelu => {
            // Bars of erfc and of its correction's exp, and two products; far below zero erfc has fewer digits than its
            // product with x.
            let value = gelu(x);
            (value, 2.0, if value.abs() < 1e-290 { 8.0 + x.abs() } else { 8.0 })
        }
        Op::GeluTanh => {
            // The argument's few roundings show as often as the result follows it.
            let (value, at) = gelu_tanh(x);
            (value, 2.0, 4.0 + 6.0 * at.abs().min(1000.0) * (1.0 - sigmoid(at)))
        }
        // log(1 + e^x), the larger part outside.
        Op::Softplus => (x.max(0.0) + libm::log1p(libm::exp(-x.abs())), 2.0, 2.0),
        _ => return None,
    };
    let value = if x.is_nan() { x } else { value };
    Some(Function { value, bar, own })
}

/// The value of a function that is composed of elementary ones and has no bar of its own.
pub fn composed(op: Op, x: f64) -> Option<f64> {
    Some(match op {
        Op::Rsqrt => 1.0 / x.sqrt(),
        _ => return None,
    })
}

/// 1 / (1 + e^-x), by the power that does not overflow.
pub fn sigmoid(x: f64) -> f64 {
    let power = libm::exp(-x.abs());
    if x < 0.0 { power / (1.0 + power) } else { 1.0 / (1.0 + power) }
}

/// An elementary function of two operands.
pub fn of_two(op: Op, x: f64, y: f64) -> Option<Function> {
    let (value, bar, own) = match op {
        Op::Pow | Op::FloatPower => (libm::pow(x, y), 1.0, 1.0),
        Op::Hypot => (libm::hypot(x, y), 2.0, 1.0),
        Op::Atan2 => (libm::atan2(x, y), 2.0, 2.0),
        Op::Logaddexp => (sum_of_powers(x, y, libm::exp, libm::log1p, 1.0), 2.0, 2.0),
        Op::Logaddexp2 => {
            let log2_1p = |v: f64| libm::log1p(v) * std::f64::consts::LOG2_E;
            (sum_of_powers(x, y, libm::exp2, log2_1p, std::f64::consts::LN_2), 2.0, 3.0)
        }
        _ => return None,
    };
    Some(Function { value, bar, own })
}

/// The logarithm of a sum of powers of a base, the larger one outside.
fn sum_of_powers(x: f64, y: f64, power: fn(f64) -> f64, log1p: impl Fn(f64) -> f64, ln_base: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (high, low) = if x > y { (x, y) } else { (y, x) };
    // Two equal infinities have no difference.
    let distance = if high == low { 0.0 } else { high - low };
    // What the difference's rounding left out (exact, by Møller and Knuth) changes the power by its multiple.
    let part = high - distance;
    let lost = (high - (distance + part)) + (part - low);
    let lost = if lost.is_finite() { lost } else { 0.0 };
    let small = power(-distance);
    high + log1p(small - small * lost * ln_base)
}

/// x / 2 · erfc(-x / √2) in f64: the rounding of the quotient, which erfc's steep slope multiplies, is taken back.
pub fn gelu(x: f64) -> f64 {
    let root = std::f64::consts::FRAC_1_SQRT_2;
    let at = -x * root;
    // 1/√2 is root + 4.83e-17 less; the product's own rounding is what a fused multiplication leaves.
    let missing = libm::fma(-x, root, -at) + x * 4.833646656726457e-17;
    let slope = -std::f64::consts::FRAC_2_SQRT_PI * libm::exp(-at * at);
    let correction = if slope == 0.0 { 0.0 } else { slope * missing };
    0.5 * x * (libm::erfc(at) + correction)
}

/// The approximation of `gelu` by a hyperbolic tangent, and the argument of the sigmoid that it is.
pub fn gelu_tanh(x: f64) -> (f64, f64) {
    let at = 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    (x * sigmoid(at), at)
}
