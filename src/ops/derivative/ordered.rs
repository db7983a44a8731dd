//! Rules of what depends on the order of elements: sorts, elements of ranks, scans.
//!
//! Guarantees: a gradient goes to the element that was taken, of equal ones to the one that the op of positions gives. Does not: move
//! elements.

use super::{Application, Value};
use crate::base::scalar::Scalar;
use crate::ops::columns::Choice;

/// To where this op of positions says that the elements come from.
pub(crate) fn moved<'a>(d: Application<'a>, positions: &'static str) -> Value<'a> {
    d.g().scatter(d.positions(positions))
}

/// To the one element at a position.
pub(crate) fn chosen<'a>(d: Application<'a>, positions: &'static str) -> Value<'a> {
    d.index().eq(d.positions(positions)).then(d.g().keep(), 0.0)
}

/// Of the element in the middle: without dims evenly to its equals, as PyTorch has it.
pub(crate) fn middle<'a>(d: Application<'a>, positions: &'static str, skips: bool) -> Value<'a> {
    match d.choice() {
        None | Some(Choice::Lower) if d.is_whole() => {
            let (x, y) = (d.x(0), d.y().keep());
            let found = x.eq(y).or(x.isnan().and(y.isnan()));
            found.then(d.g().keep() / found.convert().fold("sum"), 0.0)
        }
        None | Some(Choice::Lower) => chosen(d, positions),
        Some(between) => ranked(d, 0.5, skips, between),
    }
}

/// Of a quantile.
pub(crate) fn quantile(d: Application<'_>, skips: bool) -> Value<'_> {
    ranked(d, d.parameter(), skips, d.choice().unwrap_or(Choice::Linear))
}

/// A number is rounded at once.
fn rounded<'a>(
    d: Application<'a>,
    v: Value<'a>,
    number: fn(f64) -> f64,
    value: fn(Value<'a>) -> Value<'a>,
) -> Value<'a> {
    match v.scalar() {
        Some(Scalar::Float(x)) => d.number(number(x)),
        _ => value(v),
    }
}

/// Of what lies at a part of the ranks: to the elements of the ranks below and above it, by how near they are.
fn ranked<'a>(d: Application<'a>, part: f64, skips: bool, choice: Choice) -> Value<'a> {
    let (g, rank) = (d.g().keep(), d.ranks());
    let nan = d.x(0).isnan();
    let last = if skips {
        let some = nan.logical_not().convert().double().fold("sum") - 1.0;
        some.lt(0.0).then(0.0, some)
    } else {
        d.count().double() - 1.0
    };
    let at = last.rank_of(part);
    let (below, above) = (rounded(d, at, f64::floor, Value::floor), rounded(d, at, f64::ceil, Value::ceil));
    let to = |at: Value<'a>| rank.eq(at);
    let made = match choice {
        Choice::Lower => to(below).then(g, 0.0),
        Choice::Higher => to(above).then(g, 0.0),
        Choice::Nearest => to(rounded(d, at, f64::round_ties_even, Value::round)).then(g, 0.0),
        Choice::NearestDown => to(rounded(d, at, |at| (at - 0.5).ceil(), |at| (at - 0.5).ceil())).then(g, 0.0),
        _ => {
            let share = if choice == Choice::Midpoint { d.number(0.5) } else { at - below };
            let share = if share.scalar().is_some() { share } else { share.convert() };
            to(below).then(g * (1.0 - share), 0.0) + to(above).then(g * share, 0.0)
        }
    };
    if skips {
        return made;
    }
    // A NaN wins: the last one in the order.
    nan.fold("any").then(to(last).then(g, 0.0), made)
}

/// Before the first 0 of a line y / x of all products from there on; to it, of the products without it; behind it nothing.
pub(crate) fn products(d: Application<'_>) -> Value<'_> {
    let (x, g) = (d.x(0), d.g());
    let zero = x.eq(0.0);
    let zeros = zero.convert().along("cumsum");
    let none = zeros.eq(0.0);
    let one = zeros.eq(1.0);
    let before = none.then(g * d.y().conj(), 0.0).reversed("cumsum") / x.conj();
    let first = zero.and(one);
    let others = first.then(1.0, x).along("cumprod");
    let at = one.then(g * others.conj(), 0.0).reversed("cumsum");
    none.then(before, first.then(at, 0.0))
}

/// Sums of exponentials are made of logarithms, so that none overflows: those of positive and of negative parts of the cotangent.
pub(crate) fn log_sums<'a>(d: Application<'a>) -> Value<'a> {
    let (x, y, g) = (d.x(0), d.y(), d.g());
    let sums = |log: Value<'a>| ((log - y.conj()).reversed("logcumsumexp") + x.conj()).exp();
    if d.is_complex() {
        return sums(g.log());
    }
    let of = |part: Value<'a>, is: Value<'a>| is.then(part.log(), f64::NEG_INFINITY);
    let positive = (of(g, g.gt(0.0)) - y).reversed("logcumsumexp");
    let negative = (of(-g, g.lt(0.0)) - y).reversed("logcumsumexp");
    (positive + x).exp() - (negative + x).exp()
}
