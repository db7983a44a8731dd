//! Compares the intervals with all results of small operand intervals.

use super::*;
use crate::base::random::Random;
use IntRange::*;

/// The range of the dtype of these tests, which `Whole` and `Complement` use.
const WITHIN: Interval = Interval::new(-128, 127);

/// The rules of one operand, of two, and so on. The first list of each pair has the rules whose intervals are tight,
/// the second those whose intervals may be wider than the set of results.
const RULES: [(&[IntRange], &[IntRange]); 4] = [
    (&[First, Zero, Sign, Positive, Complement, Square, Negated, Magnitude], &[]),
    (
        &[
            Second,
            Step,
            Larger,
            Smaller,
            Sum,
            Difference,
            Product,
            SquaredDifference,
            FloorQuotient,
            TruncQuotient,
            FloorQuotientOrZero,
            TruncQuotientOrZero,
            ShiftUp,
            ShiftDown,
        ],
        &[And, Or, Xor, FloorRest, TruncRest, Power, Divisor, Multiple],
    ),
    (&[Choice, Clamped, PlusProduct, MinusProduct], &[]),
    (&[PlusProducts], &[]),
];

/// A result in plain arithmetic; `None` for a division by zero.
fn result(rule: IntRange, a: &[i128]) -> Option<i128> {
    let (x, y) = (a[0], a.get(1).copied().unwrap_or(0));
    if y == 0 && matches!(rule, FloorQuotient | TruncQuotient | FloorRest | TruncRest) {
        return None;
    }
    let floor = || (x as f64 / y as f64).floor() as i128;
    Some(match rule {
        First => x,
        Second => y,
        Choice => unreachable!("it has two results"),
        Step => [y, 0, 1][usize::from(x != 0) + usize::from(x > 0)],
        Larger => x.max(y),
        Smaller => x.min(y),
        Clamped => x.max(y).min(a[2]),
        Zero => 0,
        Sign => x.signum(),
        Positive => x.max(0),
        And => x & y,
        Or => x | y,
        Xor => x ^ y,
        Complement => !x,
        Sum => x + y,
        Difference => x - y,
        Product => x * y,
        Square => x * x,
        SquaredDifference => (x - y) * (x - y),
        PlusProduct => x + y * a[2],
        MinusProduct => x - y * a[2],
        PlusProducts => x + y * a[2] * a[3],
        Negated => -x,
        Magnitude => x.abs(),
        FloorQuotientOrZero | TruncQuotientOrZero if y == 0 => 0,
        FloorQuotient | FloorQuotientOrZero => floor(),
        TruncQuotient | TruncQuotientOrZero => x / y,
        FloorRest => x - y * floor(),
        TruncRest => x % y,
        Power if y < 0 => (x as f64).powi(y as i32).trunc() as i128 * i128::from(x != 0),
        Power => x.pow(y as u32),
        ShiftUp => {
            if y < 0 {
                0
            } else {
                x << y
            }
        }
        ShiftDown => x >> if y < 0 { 100 } else { y },
        Divisor => gcd(x, y),
        Multiple if x == 0 || y == 0 => 0,
        Multiple => (x / gcd(x, y) * y).abs(),
        Whole | Total | TotalProduct | Sums | Products | Position | Count => unreachable!("no rule of single elements"),
    })
}

fn gcd(x: i128, y: i128) -> i128 {
    if y == 0 { x.abs() } else { gcd(y, x % y) }
}

fn spans(size: i128) -> Vec<Interval> {
    (-size..=size).flat_map(|a| (a..=size).map(move |b| Interval::new(a, b))).collect()
}

/// Calls `call` with each sequence of `n` of the items.
fn choices<T: Copy>(items: &[T], n: usize, call: &mut dyn FnMut(&[T])) {
    let mut at = vec![0; n];
    loop {
        call(&at.iter().map(|i| items[*i]).collect::<Vec<T>>());
        let Some(k) = at.iter().position(|i| i + 1 < items.len()) else { return };
        at[..k].fill(0);
        at[k] += 1;
    }
}

/// Calls `call` with every point of a box.
fn elements(spans: &[Interval], call: &mut dyn FnMut(&[i128])) {
    let mut at: Vec<i128> = spans.iter().map(|s| s.least).collect();
    loop {
        call(&at);
        let Some(k) = (0..at.len()).find(|k| at[*k] < spans[*k].most) else { return };
        (0..k).for_each(|i| at[i] = spans[i].least);
        at[k] += 1;
    }
}

#[test]
fn intervals_hold_every_result_and_most_no_more() {
    for (n, (tight, loose)) in RULES.into_iter().enumerate() {
        let arity = n + 1;
        let spans = spans([6, 4, 2, 1][n]);
        for (rule, is_tight) in tight.iter().map(|r| (*r, true)).chain(loose.iter().map(|r| (*r, false))) {
            choices(&spans, arity, &mut |operands| {
                let found = rule.exact(operands, WITHIN, None);
                let mut met: Option<Interval> = None;
                elements(operands, &mut |a| {
                    let all = if rule == Choice { vec![Some(a[1]), Some(a[2])] } else { vec![result(rule, a)] };
                    for v in all.into_iter().flatten().map(Interval::point) {
                        met = Some(met.map_or(v, |m| m.hull(v)));
                    }
                });
                let Some(met) = met else { return };
                assert!(met.is_within(found), "{rule:?} of {operands:?}: {found:?} does not hold {met:?}");
                assert!(!is_tight || met == found, "{rule:?} of {operands:?}: {found:?} is more than {met:?}");
            });
        }
    }
}

#[test]
fn intervals_of_reductions_hold_every_result() {
    for span in spans(3) {
        for count in 0..=4usize {
            let operands = vec![span; count];
            for (rule, start) in [(Total, 0), (TotalProduct, 1)] {
                let found = rule.exact(&[span], WITHIN, Some(count as u64));
                let open = rule.exact(&[span], WITHIN, None);
                let mut met: Option<Interval> = None;
                elements(&operands, &mut |a| {
                    let all = if rule == Total { a.iter().sum::<i128>() } else { a.iter().product() };
                    let v = Interval::point(if a.is_empty() { start } else { all });
                    met = Some(met.map_or(v, |m| m.hull(v)));
                });
                assert_eq!(Some(found), met, "{rule:?} of {count} in {span:?}");
                assert!(found.is_within(open), "{rule:?} of {span:?}");
            }
        }
    }
    assert_eq!(TotalProduct.exact(&[Interval::new(-1, 1)], WITHIN, None), Interval::new(-1, 1));
    assert_eq!(Position.exact(&[WITHIN], WITHIN, Some(3)), Interval::new(0, 2));
    assert_eq!(Count.exact(&[WITHIN], WITHIN, Some(3)), Interval::new(0, 3));
    assert_eq!(Position.exact(&[WITHIN], WITHIN, None), Interval::new(0, WITHIN.most));
}

#[test]
fn what_a_result_shows_of_a_wrapped_operand() {
    let mut r = Random(7);
    let mut seen = 0;
    for (n, (tight, loose)) in RULES.into_iter().enumerate() {
        for rule in tight.iter().chain(loose).copied().filter(|r| *r != Choice) {
            for _ in 0..4000 {
                // 8-bit numbers; divisors and exponents are small.
                let mut a: Vec<i128> = (0..=n).map(|_| i128::from(r.next() as i8)).collect();
                if matches!(rule, FloorRest | Power | ShiftUp | ShiftDown) {
                    a[1] = [1, 2, 3, 4, 8, 5, -1, -3][r.below(8) as usize];
                }
                let known: Vec<Known> =
                    a.iter().map(|v| Known { range: Interval::point(*v), wrapped: false }).collect();
                let k = r.below(n as u64 + 1) as usize;
                let mut b = a.clone();
                b[k] += 256 * (1 + i128::from(r.below(3)));
                let shows = rule.shows(k, &known);
                if shows == Shows::Value || rule == Power && k == 1 {
                    continue;
                }
                let (Some(x), Some(y)) = (result(rule, &a), result(rule, &b)) else { continue };
                seen += 1;
                let same = if shows == Shows::BitByBit { (x - y) % 256 == 0 } else { x == y };
                assert!(same, "{rule:?} shows {shows:?} of operand {k}, but {a:?} gives {x} and {b:?} {y}");
            }
        }
    }
    assert!(seen > 30_000, "only {seen}");
    // A mask that may be negative or has wrapped hides no bits.
    let known = |least, wrapped| Known { range: Interval::new(least, 127), wrapped };
    assert_eq!(And.shows(0, &[known(0, true), known(0, false)]), Shows::LowBits);
    assert_eq!(And.shows(0, &[known(0, true), known(-1, false)]), Shows::BitByBit);
    assert_eq!(And.shows(0, &[known(0, true), known(0, true)]), Shows::BitByBit);
}
