//! Rules of several rows, or longer than a line, of elementwise ops and reductions.
//!
//! Guarantees: special points are those of PyTorch. Does not: have what depends on the order of elements, which `ordered` has.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

use super::{Application, Value};
use crate::base::scalar::Scalar;

/// 1 over the root of 2 pi.
const DENSITY: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5;

fn is_zero(s: Scalar) -> bool {
    matches!(s, Scalar::Int(0) | Scalar::Bool(false)) || matches!(s, Scalar::Float(v) if v == 0.0)
}

/// e · x^(e - 1), and 0 where e is 0, whatever x is.
pub(crate) fn power_base(d: Application<'_>) -> Value<'_> {
    let (g, x, e) = (d.g(), d.x(0), d.x(1));
    match e.scalar() {
        Some(s) if is_zero(s) => d.nothing(),
        Some(_) => g * (e * x.pow(e - 1.0)).conj(),
        None => e.eq(0.0).then(0.0, g * (e * x.pow(e - 1.0)).conj()),
    }
}

/// y · log x, and 0 where x is 0 and e is not negative.
pub(crate) fn power_exponent(d: Application<'_>) -> Value<'_> {
    let (x, e) = (d.x(0), d.x(1));
    let counts = if d.is_complex() { e.imag().eq(0.0).and(e.real().ge(0.0)) } else { e.ge(0.0) };
    d.g() * x.eq(0.0).and(counts).then(0.0, (d.y() * x.log()).conj())
}

/// Of the divisor: the quotient's integer, negative. Of complex numbers it is what the remainder leaves of x.
pub(crate) fn remainder_divisor(d: Application<'_>) -> Value<'_> {
    let (x, y) = (d.x(0), d.x(1));
    let quotient = if d.is_complex() { (x - d.y()) / y } else { x.floor_divide(y) };
    -d.g() * quotient.conj()
}

/// Half to each of equal operands; a NaN passes to both.
pub(crate) fn larger(d: Application<'_>, of: usize) -> Value<'_> {
    let (a, b, g) = (d.x(of), d.x(1 - of), d.g());
    a.eq(b).then(g / 2.0, a.lt(b).then(0.0, g))
}

pub(crate) fn smaller(d: Application<'_>, of: usize) -> Value<'_> {
    let (a, b, g) = (d.x(of), d.x(1 - of), d.g());
    a.eq(b).then(g / 2.0, a.gt(b).then(0.0, g))
}

/// The first operand's, or the second's, of `fmax`, if `most`, or `fmin`.
pub(crate) fn ignoring_nans(d: Application<'_>, most: bool, of: usize) -> Value<'_> {
    let (a, b, g) = (d.x(0), d.x(1), d.g());
    let taken = if most { a.ge(b) } else { a.le(b) }.or(b.isnan());
    let rest = if of == 0 { taken.then(g, 0.0) } else { taken.then(0.0, g) };
    a.eq(b).then(g / 2.0, rest)
}

/// Of scalar bounds 0 at a bound; of tensors half, as where two operands are equal.
pub(crate) fn clamped(d: Application<'_>) -> Value<'_> {
    let (x, min, max, g) = (d.x(0), d.x(1), d.x(2), d.g());
    if min.scalar().is_some() && max.scalar().is_some() {
        return x.gt(min).and(x.lt(max)).then(g, 0.0);
    }
    let at_bound = min.lt(max).and(x.eq(min).or(x.eq(max)));
    x.lt(min).or(x.gt(max)).then(0.0, at_bound.then(g / 2.0, g))
}

pub(crate) fn clamp_lower(d: Application<'_>) -> Value<'_> {
    let (x, min, max, g) = (d.x(0), d.x(1), d.x(2), d.g());
    x.lt(min).and(min.le(max)).then(g, x.eq(min).and(min.lt(max)).then(g / 2.0, 0.0))
}

pub(crate) fn clamp_upper(d: Application<'_>) -> Value<'_> {
    let (x, min, max, g) = (d.x(0), d.x(1), d.x(2), d.g());
    let above = min.gt(max).or(x.gt(max).and(min.le(max)));
    above.then(g, x.eq(max).and(min.lt(max)).then(g / 2.0, 0.0))
}

pub(crate) fn clamped_below(d: Application<'_>) -> Value<'_> {
    match d.x(1).scalar() {
        Some(_) => d.x(0).gt(d.x(1)).then(d.g(), 0.0),
        None => larger(d, 0),
    }
}

pub(crate) fn clamped_above(d: Application<'_>) -> Value<'_> {
    match d.x(1).scalar() {
        Some(_) => d.x(0).lt(d.x(1)).then(d.g(), 0.0),
        None => smaller(d, 0),
    }
}

/// Of a unit number: what of the cotangent is across it.
pub(crate) fn unit(d: Application<'_>) -> Value<'_> {
    if !d.is_complex() {
        return d.nothing();
    }
    let (z, y, g) = (d.x(0), d.y(), d.g());
    z.eq(0.0).then(0.0, (g - y * y * g.conj()) / (z.abs() * 2.0).convert())
}

pub(crate) fn imag(d: Application<'_>) -> Value<'_> {
    if d.is_complex() { d.pair(d.number(0.0), d.g()) } else { d.nothing() }
}

/// Of x in x log(y): of real zeros 0, also where log(y) is not finite.
pub(crate) fn xlogy(d: Application<'_>) -> Value<'_> {
    let (x, y) = (d.x(0), d.x(1));
    if d.is_complex() {
        return d.g() * y.log().conj();
    }
    x.eq(0.0).and(y.le(0.0)).then(0.0, d.g().xlogy(y))
}

pub(crate) fn angle(d: Application<'_>) -> Value<'_> {
    if !d.is_complex() {
        return d.nothing();
    }
    let (z, g) = (d.x(0), d.g());
    let r = z.abs().squared();
    z.eq(0.0).then(0.0, d.pair(-(z.imag() * g / r), z.real() * g / r))
}

pub(crate) fn acosh(d: Application<'_>) -> Value<'_> {
    let x = d.x(0);
    let root = if d.is_complex() { (x + 1.0).rsqrt() * (x - 1.0).rsqrt() } else { (x.squared() - 1.0).rsqrt() };
    d.g() * root.conj()
}

pub(crate) fn silu(d: Application<'_>) -> Value<'_> {
    let (x, s) = (d.x(0), d.x(0).sigmoid());
    // 1 - s has no digits left where s is near 1.
    d.g() * (s * (x * (-x).sigmoid() + 1.0)).conj()
}

/// The derivative of erf.
pub(crate) fn bell(d: Application<'_>) -> Value<'_> {
    (-d.x(0).squared()).exp() * FRAC_2_SQRT_PI * d.g()
}

pub(crate) fn gelu(d: Application<'_>) -> Value<'_> {
    let x = d.x(0);
    let below = (x * -FRAC_1_SQRT_2).erfc() * 0.5;
    d.g() * (below + x * ((x.squared() * -0.5).exp() * DENSITY))
}

pub(crate) fn gelu_tanh(d: Application<'_>) -> Value<'_> {
    const BETA: f64 = SQRT_2 * FRAC_2_SQRT_PI * 0.5;
    const KAPPA: f64 = 0.044715;
    let x = d.x(0);
    let square = x.squared();
    let t = ((x + square * x * KAPPA) * BETA).tanh();
    let slope = (square * (3.0 * KAPPA) + 1.0) * BETA;
    d.g() * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t.squared()) * slope).conj()
}

/// Of the operand `of` of `atan2`: 0 at the origin.
pub(crate) fn direction(d: Application<'_>, of: usize) -> Value<'_> {
    let (a, b, g) = (d.x(0), d.x(1), d.g());
    let r = a.squared() + b.squared();
    r.eq(0.0).then(0.0, if of == 0 { g * (b / r).conj() } else { -(g * (a / r).conj()) })
}

pub(crate) fn huber(d: Application<'_>) -> Value<'_> {
    let (r, delta, g) = (d.x(0) - d.x(1), d.x(2), d.g());
    r.le(-delta).then(-(delta * g), r.ge(delta).then(delta * g, r * g))
}

pub(crate) fn smooth_l1(d: Application<'_>) -> Value<'_> {
    let (r, beta, g) = (d.x(0) - d.x(1), d.x(2), d.g());
    r.le(-beta).then(-g, r.ge(beta).then(g, r * g / beta))
}

/// Evenly to the elements that are the extreme.
pub(crate) fn extreme(d: Application<'_>) -> Value<'_> {
    let found = d.x(0).eq(d.y().keep()).convert();
    d.g().keep() / found.fold("sum") * found
}

/// y / x; where one element is 0, it alone: the product of the others.
pub(crate) fn product(d: Application<'_>) -> Value<'_> {
    let x = d.x(0);
    let zero = x.eq(0.0);
    let zeros = zero.convert().fold("sum");
    let others = zero.then(1.0, x).fold("prod");
    d.g().keep() * zero.then(zeros.eq(1.0).then(others, 0.0), d.y().keep() / x).conj()
}

/// 2 (x - mean) / (n - correction).
pub(crate) fn variance(d: Application<'_>) -> Value<'_> {
    let x = d.x(0);
    let rest = x - x.fold("mean");
    (d.g() * 2.0 / (d.count() - d.parameter())).keep().convert() * rest
}

/// As of the variance, over 2 y; 0 where y is 0.
pub(crate) fn deviation(d: Application<'_>) -> Value<'_> {
    let (x, y) = (d.x(0), d.y());
    let rest = x - x.fold("mean");
    let scale = y.eq(0.0).then(0.0, d.g() / (y * (d.count() - d.parameter())));
    scale.keep().convert() * rest
}

pub(crate) fn norm(d: Application<'_>) -> Value<'_> {
    let (x, y, g, p) = (d.x(0), d.y(), d.g(), d.parameter());
    if p == 0.0 {
        return d.nothing();
    }
    if p.is_infinite() {
        let found = x.abs().eq(y.keep());
        // Nothing is found where the norm is NaN.
        let share = found.then(g.keep() / found.convert().real().fold("sum"), 0.0);
        return x.sgn() * share.convert();
    }
    if p == 1.0 {
        return x.sgn() * g.keep().convert();
    }
    if p == 2.0 {
        let scale = y.eq(0.0).then(0.0, g / y);
        return x * scale.keep().convert();
    }
    let modulus = x.abs();
    let scale = y.eq(0.0).then(0.0, g / y.pow(p - 1.0)).keep();
    let power = modulus.eq(0.0).then(0.0, modulus.pow(p - 1.0));
    x.sgn() * (power * scale).convert()
}

pub(crate) fn mean_of_numbers(d: Application<'_>) -> Value<'_> {
    let nan = d.x(0).isnan();
    let count = nan.logical_not().convert().fold("sum");
    nan.then(0.0, d.g().keep() / count)
}
