//! Elementary functions in f64 by `libm`, with the error bounds of castwise's functions.
//!
//! Guarantees: the bounds are those of docs/accuracy.md. If the reference is no more precise than f64, `libm`'s own
//! stated error is added. Does not: support complex numbers.

use castwise::Op;

/// A function's value in f64, and errors in ulps: castwise's bound, and `libm`'s own error.
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
        Op::Sinh => (libm::sinh(x), 1.0, 2.0),
        Op::Cosh => (libm::cosh(x), 1.0, 1.0),
        Op::Tanh => (libm::tanh(x), 1.0, 2.0),
        Op::Asinh => (libm::asinh(x), 2.0, 2.0),
        // For some arguments below -1, libm returns a number although the function is undefined.
        Op::Acosh => (if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 1.0, 4.0),
        Op::Atanh => (libm::atanh(x), 1.0, 2.0),
        Op::Erf => (libm::erf(x), 1.0, 1.0),
        Op::Erfc => (libm::erfc(x), 2.0, 4.0),
        Op::Cbrt => (libm::cbrt(x), 1.0, 1.0),
        Op::Rsqrt => (1.0 / x.sqrt(), 1.0, 1.5),
        Op::Sigmoid => (sigmoid(x), 1.0, 2.0),
        // For large negative arguments, by two powers that are normal numbers.
        Op::Silu if x < -40.0 && x > -2000.0 => (x * libm::exp(0.5 * x) * libm::exp(0.5 * x), 1.0, 4.0),
        Op::Silu => (x * sigmoid(x), 1.0, 4.0),
        Op::Gelu => {
            // The bounds of erfc and of the exp in its correction, and two products. For large negative x, erfc has
            // fewer digits than its product with x.
            let value = gelu(x);
            (value, 2.0, if value.abs() < 1e-290 { 8.0 + x.abs() } else { 8.0 })
        }
        Op::GeluTanh => {
            // The function multiplies the relative error of its argument by its condition number.
            let (value, at) = gelu_tanh(x);
            (value, 1.0, 4.0 + 6.0 * at.abs().min(1000.0) * (1.0 - sigmoid(at)))
        }
        // log(1 + e^x), with the larger part outside the logarithm.
        Op::Softplus => (x.max(0.0) + libm::log1p(libm::exp(-x.abs())), 2.0, 2.0),
        _ => return None,
    };
    let value = if x.is_nan() { x } else { value };
    Some(Function { value, bar, own })
}

/// 1 / (1 + e^-x), computed by the power that does not overflow.
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

/// The logarithm of a sum of powers of a base, with the larger power outside.
fn sum_of_powers(x: f64, y: f64, power: fn(f64) -> f64, log1p: impl Fn(f64) -> f64, ln_base: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (high, low) = if x > y { (x, y) } else { (y, x) };
    // The difference of equal infinities is a NaN, but 0 is needed.
    let distance = if high == low { 0.0 } else { high - low };
    // The rounding error of the difference (exact, by Møller and Knuth) changes the power by a multiple of itself.
    let part = high - distance;
    let lost = (high - (distance + part)) + (part - low);
    let lost = if lost.is_finite() { lost } else { 0.0 };
    let small = power(-distance);
    high + log1p(small - small * lost * ln_base)
}

/// x / 2 · erfc(-x / √2) in f64, corrected for the rounding of the quotient, which erfc's slope amplifies.
pub fn gelu(x: f64) -> f64 {
    let root = std::f64::consts::FRAC_1_SQRT_2;
    let at = -x * root;
    // 1/√2 is less than `root` by 4.83e-17. A fused multiply-add gives the rounding error of the product.
    let missing = libm::fma(-x, root, -at) + x * 4.833646656726457e-17;
    let slope = -std::f64::consts::FRAC_2_SQRT_PI * libm::exp(-at * at);
    let correction = if slope == 0.0 { 0.0 } else { slope * missing };
    0.5 * x * (libm::erfc(at) + correction)
}

/// The approximation of `gelu` by a hyperbolic tangent, and the argument of the equivalent sigmoid.
pub fn gelu_tanh(x: f64) -> (f64, f64) {
    let at = 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    (x * sigmoid(at), at)
}
