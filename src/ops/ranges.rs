//! Interval arithmetic for integer ops, a column of the table: the range of a result from the ranges of the operands.
//!
//! Guarantees: every possible result, before it wraps, lies in the interval that [`IntRange::exact`] gives; if each
//! operand is a scalar or takes every value of its dtype, an interval that exceeds the dtype contains a possible result
//! that does too. Bounds saturate at 127 bits. Does not: know which dtypes an op accepts.

use crate::base::dtype::DType;

/// A closed interval of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) least: i128,
    pub(crate) most: i128,
}

/// How the range of an integer result follows from the operands' ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IntRange {
    /// All values of the dtype and no others: ops without integer results, and custom ops.
    Whole,
    /// The range of the first operand.
    First,
    /// The range of the second operand.
    Second,
    /// The union of the ranges of the operands after the first: `where`.
    Choice,
    /// 0, the second operand or 1.
    Step,
    /// The larger operand.
    Larger,
    /// The smaller operand.
    Smaller,
    /// The first operand, clamped to the two others.
    Clamped,
    /// 0.
    Zero,
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
    /// `(x - y)` squared.
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
    /// The quotient, rounded down.
    FloorQuotient,
    /// The quotient, rounded towards zero.
    TruncQuotient,
    /// The quotient, rounded down; 0 for a divisor of 0.
    FloorQuotientOrZero,
    /// The quotient, rounded towards zero; 0 for a divisor of 0.
    TruncQuotientOrZero,
    /// The remainder of a quotient that is rounded down.
    FloorRest,
    /// The remainder of a quotient that is rounded towards zero.
    TruncRest,
    /// The power; with a negative exponent, its integer part.
    Power,
    /// The first operand times 2 to the power of the second; 0 for a negative count.
    ShiftUp,
    /// The first operand divided by 2 to the power of the second, rounded down.
    ShiftDown,
    /// The greatest common divisor.
    Divisor,
    /// The least common multiple.
    Multiple,
    /// The sum of all elements.
    Total,
    /// The product of all elements.
    TotalProduct,
    /// The sums of the first elements.
    Sums,
    /// The products of the first elements.
    Products,
    /// From 0 to below the number of elements.
    Position,
    /// From 0 to the number of elements.
    Count,
}

/// The bits of an operand that a result depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Nothing.
    Nothing,
    /// Only low bits, which are correct even if the operand has wrapped.
    LowBits,
    /// Each bit of the result depends on the operand's bits up to the same position: a wrapped operand gives a wrapped
    /// result.
    BitByBit,
    /// The value.
    Value,
}

/// What is known of an operand of an integer op.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) range: Interval,
    /// Whether the value may differ from its exact value because something has wrapped.
    pub(crate) wrapped: bool,
}

/// A bound on the number of elements of any tensor.
const MAX_COUNT: i128 = 1 << 64;

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

    /// The smallest interval that contains both.
    pub(crate) fn hull(self, other: Interval) -> Interval {
        Interval::new(self.least.min(other.least), self.most.max(other.most))
    }

    /// The given values that lie in the interval.
    fn filter<const N: usize>(self, all: [i128; N]) -> impl Iterator<Item = i128> + Clone {
        all.into_iter().filter(move |v| self.has(*v))
    }

    /// The non-negative values.
    fn non_negative(self) -> Option<Interval> {
        (self.most >= 0).then_some(Interval::new(self.least.max(0), self.most))
    }

    /// The maximum absolute value.
    fn max_abs(self) -> i128 {
        self.least.saturating_abs().max(self.most.saturating_abs())
    }

    /// The smallest k for which all values lie in -2^k..2^k.
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
        hull_of(self.ends().into_iter().flat_map(|a| other.ends().map(|b| a.saturating_mul(b))))
    }

    fn magnitude(self) -> Interval {
        Interval::new(if self.has(0) { 0 } else { self.least.abs().min(self.most.abs()) }, self.max_abs())
    }

    fn square(self) -> Interval {
        let size = self.magnitude();
        Interval::new(size.least.saturating_mul(size.least), size.most.saturating_mul(size.most))
    }

    fn ends(self) -> [i128; 2] {
        [self.least, self.most]
    }
}

/// The smallest interval that contains the values; [0, 0] if there are none.
fn hull_of(values: impl Iterator<Item = i128>) -> Interval {
    values.map(Interval::point).reduce(Interval::hull).unwrap_or(Interval::point(0))
}

impl IntRange {
    /// The range of the result before it wraps, for operands in these ranges and a dtype with the range `within`.
    /// `count` is the number of elements that a reduction combines, if known. Divisions by zero give no result and are
    /// left out.
    pub(crate) fn exact(self, operands: &[Interval], within: Interval, count: Option<u64>) -> Interval {
        // A missing operand is one that this rule does not use.
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
            IntRange::Zero => Interval::point(0),
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
            IntRange::FloorQuotientOrZero => or_zero(IntRange::FloorQuotient.exact(operands, within, count), y),
            IntRange::TruncQuotientOrZero => or_zero(IntRange::TruncQuotient.exact(operands, within, count), y),
            IntRange::FloorRest => floor_rest(x, y),
            IntRange::TruncRest => trunc_rest(x, y),
            IntRange::Power => power(x, y),
            IntRange::ShiftUp => shift_up(x, y),
            IntRange::ShiftDown => shift_down(x, y),
            IntRange::Divisor => divisor(x, y),
            IntRange::Multiple if x == Interval::point(0) || y == Interval::point(0) => Interval::point(0),
            IntRange::Multiple => Interval::new(0, x.max_abs().saturating_mul(y.max_abs())),
            IntRange::Total => total(x, count),
            IntRange::Sums => x.hull(total(x, count)),
            IntRange::Products => {
                let before = count.map(|n| n.saturating_sub(1).max(1));
                [before, count]
                    .map(|n| IntRange::TotalProduct.exact(operands, within, n))
                    .into_iter()
                    .fold(x, Interval::hull)
            }
            IntRange::Count => Interval::new(0, count.map_or(within.most, i128::from)),
            IntRange::Position => Interval::new(0, count.map_or(within.most, |n| i128::from(n.max(1)) - 1)),
            IntRange::TotalProduct => match count {
                Some(n) => products(x, n.into()),
                None => [0, 2, 1000, 1001].into_iter().map(|n| products(x, n)).fold(x, Interval::hull),
            },
        }
    }

    /// The bits of operand `k` that the result depends on.
    pub(crate) fn shows(self, k: usize, operands: &[Known]) -> Shows {
        // An operand acts as a mask only if it has its exact value, that is, if nothing in it has wrapped.
        let mask = |k: usize| operands.get(k).filter(|o| !o.wrapped).map(|o| o.range);
        match self {
            IntRange::First if k > 0 => Shows::Nothing,
            IntRange::Second if k != 1 => Shows::Nothing,
            IntRange::And if mask(1 - k.min(1)).is_some_and(|m| m.least >= 0) => Shows::LowBits,
            IntRange::FloorRest if k == 0 && mask(1).is_some_and(is_power_of_two) => Shows::LowBits,
            IntRange::ShiftUp if k == 0 => Shows::BitByBit,
            // With a negative exponent, the power depends on the value of the base.
            IntRange::Power if k == 0 && operands.get(1).is_some_and(|o| o.range.least >= 0) => Shows::BitByBit,
            IntRange::First | IntRange::Second | IntRange::Choice => Shows::BitByBit,
            IntRange::And | IntRange::Or | IntRange::Xor | IntRange::Complement => Shows::BitByBit,
            IntRange::Sum | IntRange::Difference | IntRange::Product | IntRange::Square => Shows::BitByBit,
            IntRange::PlusProduct | IntRange::MinusProduct | IntRange::PlusProducts => Shows::BitByBit,
            IntRange::Negated | IntRange::SquaredDifference => Shows::BitByBit,
            IntRange::Total | IntRange::TotalProduct | IntRange::Sums | IntRange::Products => Shows::BitByBit,
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

/// Quotients by nonzero divisors. The extremes are at the ends of the divisors' interval and at the divisors next to 0.
fn quotient(x: Interval, y: Interval, divide: impl Fn(i128, i128) -> i128) -> Interval {
    let divisors = y.filter([y.least, -1, 1, y.most]).filter(|d| *d != 0);
    hull_of(divisors.flat_map(|d| x.ends().map(|a| divide(a, d))))
}

/// The quotients, and 0 if a divisor may be 0. Without other divisors there are no quotients.
fn or_zero(quotients: Interval, y: Interval) -> Interval {
    if y.has(0) { quotients.hull(Interval::point(0)) } else { quotients }
}

fn floor_rest(x: Interval, y: Interval) -> Interval {
    let (most, least) = ((y.most - 1).max(0), (y.least + 1).min(0));
    Interval::new(
        if x.most <= 0 { least.max(x.least) } else { least },
        if x.least >= 0 { most.min(x.most) } else { most },
    )
}

fn trunc_rest(x: Interval, y: Interval) -> Interval {
    let size = (y.max_abs() - 1).max(0);
    Interval::new(x.least.clamp(-size, 0), x.most.clamp(0, size))
}

fn power(x: Interval, y: Interval) -> Interval {
    let exponents = y.non_negative().map(|e| e.filter([e.least, e.least + 1, e.most - 1, e.most]));
    let bases = x.filter([x.least, -1, 0, 1, x.most]);
    let whole = exponents.into_iter().flatten().flat_map(|e| bases.clone().map(move |b| raised(b, e)));
    // A negative exponent gives 0, except for the powers of 1 and -1.
    let fractions = [-1, 0, 1].into_iter().filter(|v| y.least < 0 && (*v == 0 || x.has(*v) || x.has(-1)));
    hull_of(whole.chain(fractions))
}

fn raised(base: i128, exponent: i128) -> i128 {
    // The result saturates long before this exponent. An even or odd exponent stays so, which keeps the sign.
    let exponent = if exponent > 1000 { 1000 + exponent % 2 } else { exponent };
    base.saturating_pow(exponent as u32)
}

fn shift_up(x: Interval, y: Interval) -> Interval {
    let counts = y.non_negative().into_iter().flat_map(Interval::ends);
    let shifted = counts.flat_map(|c| x.ends().map(|a| a.saturating_mul(1 << c.min(126))));
    hull_of(shifted.chain((y.least < 0).then_some(0)))
}

fn shift_down(x: Interval, y: Interval) -> Interval {
    let counts = y.non_negative().into_iter().flat_map(Interval::ends);
    // A negative count leaves only the sign fill.
    let counts = counts.chain((y.least < 0).then_some(127));
    hull_of(counts.flat_map(|c| x.ends().map(|a| a >> c.min(127))))
}

fn divisor(x: Interval, y: Interval) -> Interval {
    let both = x.max_abs().min(y.max_abs());
    let alone = |zero: Interval, other: Interval| if zero.has(0) { other.max_abs() } else { 0 };
    let least = i128::from(!x.has(0) || !y.has(0));
    Interval::new(least, both.max(alone(x, y)).max(alone(y, x)))
}

fn total(x: Interval, count: Option<u64>) -> Interval {
    match count {
        Some(n) => x.times(Interval::point(n.into())),
        None => x.times(Interval::new(0, MAX_COUNT)),
    }
}

/// The range of the products of n values: in each sign, the extreme products take one end of the interval n times, or
/// one end n - 1 times and the other end once.
fn products(x: Interval, n: i128) -> Interval {
    let most = |all: i128, once: i128| {
        [raised(all, n), raised(all, (n - 1).max(0)).saturating_mul(if n > 0 { once } else { 1 })]
    };
    hull_of(most(x.least, x.most).into_iter().chain(most(x.most, x.least)))
}

#[cfg(test)]
mod tests;
