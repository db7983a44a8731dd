//! The range of an integer result, as a column of the table: what follows for it from the ranges of the operands.
//!
//! Guarantees: every result that the operands can give, before it is wrapped, lies in the interval that [`IntRange::exact`]
//! gives; and if each operand is a scalar or takes every value of its dtype, an interval that leaves the dtype holds a
//! result that does. Bounds of more than 127 bits are cut there. Does not: know which dtypes an op accepts.

use crate::base::dtype::DType;

/// Integers from the least to the most, both among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) least: i128,
    pub(crate) most: i128,
}

/// How the range of an integer result follows from those of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntRange {
    /// Any value of the dtype and none beyond it: ops that give no integers, and custom ops.
    Whole,
    /// That of the first operand.
    First,
    /// That of the second operand.
    Second,
    /// Those of the operands behind the first: `where`.
    Choice,
    /// 0, the second operand or 1.
    Step,
    /// The larger operand.
    Larger,
    /// The smaller operand.
    Smaller,
    /// The first operand between the two others.
    Clamped,
    /// -1, 0 or 1.
    Sign,
    /// The operand, or 0 if it is negative.
    Positive,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Bitwise complement.
    Complement,
    /// `x + y`.
    Sum,
    /// `x - y`.
    Difference,
    /// `x * y`.
    Product,
    /// `x * x`.
    Square,
    /// `(x - y)` times itself.
    SquaredDifference,
    /// `x + a * y`.
    PlusProduct,
    /// `x - a * y`.
    MinusProduct,
    /// `x + v * a * b`.
    PlusProducts,
    /// `-x`.
    Negated,
    /// `|x|`.
    Magnitude,
    /// A quotient rounded down.
    FloorQuotient,
    /// A quotient rounded towards zero.
    TruncQuotient,
    /// What is left of a quotient that is rounded down.
    FloorRest,
    /// What is left of a quotient that is rounded towards zero.
    TruncRest,
    /// A power; one of a negative exponent has no fraction.
    Power,
    /// The first operand times 2 to the second; 0 for a negative count.
    ShiftUp,
    /// The first operand over 2 to the second, rounded down.
    ShiftDown,
    /// The greatest common divisor.
    Divisor,
    /// The least common multiple.
    Multiple,
    /// The sum of elements.
    Total,
    /// The product of elements.
    TotalProduct,
}

/// What a result shows of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Nothing.
    Nothing,
    /// Low bits alone, which are right even if the operand was wrapped.
    LowBits,
    /// In each bit the operand's bits up to this one: a wrapped operand makes a wrapped result.
    BitByBit,
    /// Its value.
    Value,
}

/// An operand of an application in integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) range: Interval,
    /// Whether it may be other than if nothing had been wrapped.
    pub(crate) wrapped: bool,
}

/// More elements than a tensor can have.
const UNBOUNDED: i128 = 1 << 64;

impl Interval {
    pub(crate) const fn new(least: i128, most: i128) -> Interval {
        Interval { least, most }
    }

    pub(crate) const fn point(v: i128) -> Interval {
        Interval::new(v, v)
    }

    /// All values of bool or an integer dtype.
    pub(crate) fn of(d: DType) -> Option<Interval> {
        match d.int_range() {
            Some((least, most)) => Some(Interval::new(least, most)),
            None => (d == DType::Bool).then_some(Interval::new(0, 1)),
        }
    }

    pub(crate) fn has(self, v: i128) -> bool {
        self.least <= v && v <= self.most
    }

    pub(crate) fn is_within(self, other: Interval) -> bool {
        other.least <= self.least && self.most <= other.most
    }

    /// The least interval that has both.
    pub(crate) fn hull(self, other: Interval) -> Interval {
        Interval::new(self.least.min(other.least), self.most.max(other.most))
    }

    /// Those of the values that it has.
    fn only<const N: usize>(self, all: [i128; N]) -> impl Iterator<Item = i128> + Clone {
        all.into_iter().filter(move |v| self.has(*v))
    }

    /// The values that are not below zero.
    fn counts(self) -> Option<Interval> {
        (self.most >= 0).then_some(Interval::new(self.least.max(0), self.most))
    }

    /// The largest absolute value.
    fn size(self) -> i128 {
        self.least.saturating_abs().max(self.most.saturating_abs())
    }

    /// The least k such that all values lie from -2^k to 2^k - 1.
    fn bits(self) -> u32 {
        let bits = |v: i128| 128 - if v < 0 { !v } else { v }.leading_zeros();
        bits(self.least).max(bits(self.most))
    }

    fn plus(self, other: Interval) -> Interval {
        Interval::new(self.least.saturating_add(other.least), self.most.saturating_add(other.most))
    }

    fn negated(self) -> Interval {
        Interval::new(self.most.saturating_neg(), self.least.saturating_neg())
    }

    fn times(self, other: Interval) -> Interval {
        among(self.ends().into_iter().flat_map(|a| other.ends().map(|b| a.saturating_mul(b))))
    }

    fn magnitude(self) -> Interval {
        Interval::new(if self.has(0) { 0 } else { self.least.abs().min(self.most.abs()) }, self.size())
    }

    fn square(self) -> Interval {
        let size = self.magnitude();
        Interval::new(size.least.saturating_mul(size.least), size.most.saturating_mul(size.most))
    }

    fn ends(self) -> [i128; 2] {
        [self.least, self.most]
    }
}

/// The least interval that has these values; 0 if there are none.
fn among(values: impl Iterator<Item = i128>) -> Interval {
    values.map(Interval::point).reduce(Interval::hull).unwrap_or(Interval::point(0))
}

impl IntRange {
    /// The range of the result before it is wrapped, of operands in these ranges, in a dtype with the range `within`.
    /// `count` is how many elements a reduction combines, if that is known. What divides by zero gives no result.
    pub(crate) fn exact(self, operands: &[Interval], within: Interval, count: Option<u64>) -> Interval {
        // Missing operands are those of a row whose rule has fewer.
        let [x, y, z, w] = std::array::from_fn(|i| operands.get(i).copied().unwrap_or(within));
        match self {
            IntRange::Whole => within,
            IntRange::First => x,
            IntRange::Second => y,
            IntRange::Choice => y.hull(z),
            IntRange::Step => step(x, y),
            IntRange::Larger => Interval::new(x.least.max(y.least), x.most.max(y.most)),
            IntRange::Smaller => Interval::new(x.least.min(y.least), x.most.min(y.most)),
            IntRange::Clamped => Interval::new(x.least.max(y.least).min(z.least), x.most.max(y.most).min(z.most)),
            IntRange::Sign => Interval::new(x.least.signum(), x.most.signum()),
            IntRange::Positive => Interval::new(x.least.max(0), x.most.max(0)),
            IntRange::And => and(x, y),
            IntRange::Or => or(x, y),
            IntRange::Xor => xor(x, y),
            IntRange::Complement => Interval::point(within.least + within.most).plus(x.negated()),
            IntRange::Sum => x.plus(y),
            IntRange::Difference => x.plus(y.negated()),
            IntRange::Product => x.times(y),
            IntRange::Square => x.square(),
            IntRange::SquaredDifference => x.plus(y.negated()).square(),
            IntRange::PlusProduct => x.plus(y.times(z)),
            IntRange::MinusProduct => x.plus(y.times(z).negated()),
            IntRange::PlusProducts => x.plus(y.times(z).times(w)),
            IntRange::Negated => x.negated(),
            IntRange::Magnitude => x.magnitude(),
            IntRange::FloorQuotient => quotient(x, y, |a, b| a / b - i128::from(a % b != 0 && (a < 0) != (b < 0))),
            IntRange::TruncQuotient => quotient(x, y, |a, b| a / b),
            IntRange::FloorRest => floor_rest(x, y),
            IntRange::TruncRest => trunc_rest(x, y),
            IntRange::Power => power(x, y),
            IntRange::ShiftUp => shift_up(x, y),
            IntRange::ShiftDown => shift_down(x, y),
            IntRange::Divisor => divisor(x, y),
            IntRange::Multiple if x == Interval::point(0) || y == Interval::point(0) => Interval::point(0),
            IntRange::Multiple => Interval::new(0, x.size().saturating_mul(y.size())),
            IntRange::Total => total(x, count),
            IntRange::TotalProduct => match count {
                Some(n) => products(x, n.into()),
                None => [0, 2, 1000, 1001].into_iter().map(|n| products(x, n)).fold(x, Interval::hull),
            },
        }
    }

    /// What the result shows of operand `k`.
    pub(crate) fn shows(self, k: usize, operands: &[Known]) -> Shows {
        // Both must be as they would be without any wrapping for the mask to be one.
        let mask = |k: usize| operands.get(k).filter(|o| !o.wrapped).map(|o| o.range);
        match self {
            IntRange::First if k > 0 => Shows::Nothing,
            IntRange::Second if k != 1 => Shows::Nothing,
            IntRange::And if mask(1 - k.min(1)).is_some_and(|m| m.least >= 0) => Shows::LowBits,
            IntRange::FloorRest if k == 0 && mask(1).is_some_and(is_power_of_two) => Shows::LowBits,
            IntRange::ShiftUp if k == 0 => Shows::BitByBit,
            // A power of a negative exponent is that of the base's value.
            IntRange::Power if k == 0 && operands.get(1).is_some_and(|o| o.range.least >= 0) => Shows::BitByBit,
            IntRange::First | IntRange::Second | IntRange::Choice => Shows::BitByBit,
            IntRange::And | IntRange::Or | IntRange::Xor | IntRange::Complement => Shows::BitByBit,
            IntRange::Sum | IntRange::Difference | IntRange::Product | IntRange::Square => Shows::BitByBit,
            IntRange::PlusProduct | IntRange::MinusProduct | IntRange::PlusProducts => Shows::BitByBit,
            IntRange::Negated | IntRange::SquaredDifference => Shows::BitByBit,
            IntRange::Total | IntRange::TotalProduct => Shows::BitByBit,
            _ => Shows::Value,
        }
    }
}

fn is_power_of_two(v: Interval) -> bool {
    v.least == v.most && v.least > 0 && v.least & (v.least - 1) == 0
}

fn step(x: Interval, values: Interval) -> Interval {
    let below = (x.least < 0).then_some(Interval::point(0));
    let at = x.has(0).then_some(values);
    let above = (x.most > 0).then_some(Interval::point(1));
    [below, at, above].into_iter().flatten().reduce(Interval::hull).unwrap_or(values)
}

fn and(x: Interval, y: Interval) -> Interval {
    match (x.least >= 0, y.least >= 0) {
        (true, true) => Interval::new(0, x.most.min(y.most)),
        (true, false) => Interval::new(0, x.most),
        (false, true) => Interval::new(0, y.most),
        (false, false) => Interval::new(-1 << x.hull(y).bits(), x.most.max(y.most)),
    }
}

fn or(x: Interval, y: Interval) -> Interval {
    let most = (1 << x.hull(y).bits()) - 1;
    let least = if x.least >= 0 && y.least >= 0 { x.least.max(y.least) } else { x.least.min(y.least) };
    Interval::new(least, most)
}

fn xor(x: Interval, y: Interval) -> Interval {
    let power = 1 << x.hull(y).bits();
    Interval::new(if x.least >= 0 && y.least >= 0 { 0 } else { -power }, power - 1)
}

/// Quotients by divisors that are not 0: the largest are those of the divisors next to it.
fn quotient(x: Interval, y: Interval, divide: impl Fn(i128, i128) -> i128) -> Interval {
    let divisors = y.only([y.least, -1, 1, y.most]).filter(|d| *d != 0);
    among(divisors.flat_map(|d| x.ends().map(|a| divide(a, d))))
}

fn floor_rest(x: Interval, y: Interval) -> Interval {
    let (most, least) = ((y.most - 1).max(0), (y.least + 1).min(0));
    Interval::new(
        if x.most <= 0 { least.max(x.least) } else { least },
        if x.least >= 0 { most.min(x.most) } else { most },
    )
}

fn trunc_rest(x: Interval, y: Interval) -> Interval {
    let size = (y.size() - 1).max(0);
    Interval::new(x.least.clamp(-size, 0), x.most.clamp(0, size))
}

fn power(x: Interval, y: Interval) -> Interval {
    let exponents = y.counts().map(|e| e.only([e.least, e.least + 1, e.most - 1, e.most]));
    let bases = x.only([x.least, -1, 0, 1, x.most]);
    let whole = exponents.into_iter().flatten().flat_map(|e| bases.clone().map(move |b| raised(b, e)));
    // What is left of a fraction: 0, but for the powers of 1 and -1.
    let fractions = [-1, 0, 1].into_iter().filter(|v| y.least < 0 && (*v == 0 || x.has(*v) || x.has(-1)));
    among(whole.chain(fractions))
}

fn raised(base: i128, exponent: i128) -> i128 {
    // Far beyond what is not cut; the sign stays.
    let exponent = if exponent > 1000 { 1000 + exponent % 2 } else { exponent };
    base.saturating_pow(exponent as u32)
}

fn shift_up(x: Interval, y: Interval) -> Interval {
    let counts = y.counts().into_iter().flat_map(Interval::ends);
    let shifted = counts.flat_map(|c| x.ends().map(|a| a.saturating_mul(1 << c.min(126))));
    among(shifted.chain((y.least < 0).then_some(0)))
}

fn shift_down(x: Interval, y: Interval) -> Interval {
    let counts = y.counts().into_iter().flat_map(Interval::ends);
    // A negative count leaves the sign alone.
    let counts = counts.chain((y.least < 0).then_some(127));
    among(counts.flat_map(|c| x.ends().map(|a| a >> c.min(127))))
}

fn divisor(x: Interval, y: Interval) -> Interval {
    let both = x.size().min(y.size());
    let alone = |zero: Interval, other: Interval| if zero.has(0) { other.size() } else { 0 };
    let least = i128::from(!x.has(0) || !y.has(0));
    Interval::new(least, both.max(alone(x, y)).max(alone(y, x)))
}

fn total(x: Interval, count: Option<u64>) -> Interval {
    match count {
        Some(n) => x.times(Interval::point(n.into())),
        None => x.times(Interval::new(0, UNBOUNDED)),
    }
}

/// Products of n values: of each sign, the largest take one of the ends n times or all but once.
fn products(x: Interval, n: i128) -> Interval {
    let most = |all: i128, once: i128| {
        [raised(all, n), raised(all, (n - 1).max(0)).saturating_mul(if n > 0 { once } else { 1 })]
    };
    among(most(x.least, x.most).into_iter().chain(most(x.most, x.least)))
}

#[cfg(test)]
mod tests;
