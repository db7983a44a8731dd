//! Kernels that find the elements of given ranks in lines, and compute what lies between two of them.
//!
//! Guarantees: linear time; the element of a rank is the one that a stable sort of the line puts there, whatever the threads and the
//! CPU level. Does not: read strided elements; allocates a list of a long line's pieces alone.

use std::sync::{Mutex, PoisonError};

use super::keys::{Between, Ordered, with_ordered};
use crate::base::dtype::DType;
use crate::ops::Choice;

/// Which element of a line is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rank {
    /// That of a rank, counted from 0.
    Kth(usize),
    /// That of the rank q · (n - 1) of n elements.
    Part(f64),
}

/// What NaNs are in a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Nans {
    /// The largest elements.
    Last,
    /// The result, if there are any.
    Win,
    /// Nothing; the result if there is nothing else.
    Skipped,
}

/// What is asked of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ask {
    pub(crate) rank: Rank,
    pub(crate) nans: Nans,
    /// What is taken where the rank lies between two.
    pub(crate) choice: Choice,
    /// Whether the midpoint of two is their mean, which is computed wider, and not that of an interpolation.
    pub(crate) mean: bool,
    /// Whether the result is a position.
    pub(crate) position: bool,
}

/// The ranks of the elements that a result is made of.
struct Ranks {
    low: usize,
    high: usize,
    between: Option<Between>,
}

impl Ask {
    /// The ranks among `n` elements, at least one.
    fn ranks(&self, n: usize) -> Ranks {
        let one = |at: usize| Ranks { low: at.min(n - 1), high: at.min(n - 1), between: None };
        let rank = match self.rank {
            Rank::Kth(k) => return one(k),
            Rank::Part(q) => q * (n - 1) as f64,
        };
        let (low, high) = (rank.floor(), rank.ceil());
        let two = |between| Ranks { between: Some(between), high: one(high as usize).high, ..one(low as usize) };
        match self.choice {
            Choice::Lower => one(low as usize),
            Choice::Higher => one(high as usize),
            Choice::Nearest => one(rank.round_ties_even() as usize),
            Choice::NearestDown => one((rank - 0.5).ceil() as usize),
            Choice::Midpoint if self.mean => two(Between::Mean),
            Choice::Midpoint => two(Between::Part(if low == high { 0.0 } else { 0.5 })),
            Choice::Linear | Choice::False | Choice::True => two(Between::Part(rank - low)),
        }
    }
}

/// Runs `work(0)`, …, `work(parts - 1)`, on threads or not.
pub(crate) type Share<'a> = &'a (dyn Fn(usize, &(dyn Fn(usize) + Sync)) + Sync);

/// Lines of a dtype's elements.
pub(crate) struct Lines<'a> {
    /// The elements, aligned.
    pub(crate) bytes: &'a [u8],
    /// Elements of a line.
    pub(crate) length: usize,
    /// From the start of a line to that of the next one, in elements.
    pub(crate) pitch: usize,
}

/// Selects from each line what `Ask` names. `keys` has as many bytes as the elements of a line; each result is an element, or a position
/// as an `i64`.
pub(crate) type OrderFn = fn(Lines<'_>, &Ask, keys: &mut [u128], results: &mut [u8], Share<'_>);

/// The kernel for a dtype.
pub(crate) fn order_kernel(dtype: DType) -> OrderFn {
    with_ordered!(dtype, T => answer::<T>)
}

fn answer<T: Ordered>(lines: Lines<'_>, ask: &Ask, keys: &mut [u128], results: &mut [u8], share: Share<'_>) {
    let all: &[T] = bytemuck::cast_slice(lines.bytes);
    let keys: &mut [T::Key] = &mut bytemuck::cast_slice_mut(keys)[..lines.length];
    let each = all.chunks(lines.pitch).map(|line| &line[..lines.length]);
    if ask.position {
        for (line, to) in each.zip(bytemuck::cast_slice_mut::<u8, i64>(results)) {
            *to = find(line, ask, keys, share).at[0] as i64;
        }
    } else {
        for (line, to) in each.zip(bytemuck::cast_slice_mut::<u8, T>(results)) {
            let found = find(line, ask, keys, share);
            let [low, high] = found.at.map(|at| line[at]);
            *to = found.between.map_or(low, |how| low.between(high, how));
        }
    }
}

/// Positions of elements, and what lies between them.
struct Found {
    at: [usize; 2],
    between: Option<Between>,
}

impl Found {
    fn one(at: usize) -> Found {
        Found { at: [at; 2], between: None }
    }
}

/// The least length of a line for which a sample narrows the elements to those that can have the rank.
pub(crate) const LONG: usize = 1 << 17;

/// Elements of a piece of a long line.
const PIECE: usize = 1 << 16;

/// Elements of a sample.
const SAMPLE: usize = 4096;

/// By how many elements of a sample an element of the whole may be off: four standard deviations of the median's.
const SLACK: usize = 128;

fn find<T: Ordered>(line: &[T], ask: &Ask, keys: &mut [T::Key], share: Share<'_>) -> Found {
    let n = line.len();
    let long = n >= LONG;
    if !long {
        keys.iter_mut().zip(line).for_each(|(key, x)| *key = x.ascending());
    }
    let is_nan = |x: &T| Some(x.ascending()) == T::NAN;
    let sought = T::NAN.is_some() && ask.nans != Nans::Last;
    let nans = if sought && !long { keys.iter().filter(|k| Some(**k) == T::NAN).count() } else { 0 };
    let nans = if sought && long { count(line, is_nan, share) } else { nans };
    if nans > 0 && ask.nans == Nans::Win {
        return Found::one(line.iter().position(is_nan).unwrap_or(0));
    }
    if nans == n {
        return Found::one(0);
    }
    let ranks = ask.ranks(if ask.nans == Nans::Skipped { n - nans } else { n });
    // The elements that may have the ranks, and the number of those below all of them.
    let (below, some) = match if long { sampled(line, &ranks, keys, share) } else { None } {
        Some(found) => found,
        None if long => {
            keys.iter_mut().zip(line).for_each(|(key, x)| *key = x.ascending());
            (0, n)
        }
        None => (0, n),
    };
    let (left, low, right) = keys[..some].select_nth_unstable(ranks.low - below);
    let low = *low;
    let less = below + left.iter().filter(|k| **k < low).count();
    let first = nth_equal(line, low, ranks.low - less);
    let second = match right.iter().copied().min().filter(|_| ranks.high > ranks.low) {
        Some(high) => nth_equal(line, high, if high == low { ranks.high - less } else { 0 }),
        None => first,
    };
    Found { at: [first, second], between: ranks.between }
}

/// The position of an element with this key, after so many others.
fn nth_equal<T: Ordered>(line: &[T], key: T::Key, mut before: usize) -> usize {
    let is = |x: &T| x.ascending() == key;
    for (i, block) in line.chunks(512).enumerate() {
        let here = block.iter().filter(|x| is(x)).count();
        if before < here {
            let found = (0..block.len()).filter(|at| is(&block[*at])).nth(before);
            return i * 512 + found.unwrap_or(0);
        }
        before -= here;
    }
    0
}

/// The number of elements of a kind.
fn count<T: Ordered>(line: &[T], is: impl Fn(&T) -> bool + Sync, share: Share<'_>) -> usize {
    let total = std::sync::atomic::AtomicUsize::new(0);
    let pieces = line.len().div_ceil(PIECE);
    share(pieces, &|i| {
        let piece = &line[i * PIECE..line.len().min((i + 1) * PIECE)];
        let here = piece.iter().filter(|x| is(x)).count();
        total.fetch_add(here, std::sync::atomic::Ordering::Relaxed);
    });
    total.into_inner()
}

/// Copies the keys between two that a sample gives for these ranks to the front of `keys`. Returns how many elements are below
/// them and how many are there; `None` if the ranks are not among these.
fn sampled<T: Ordered>(line: &[T], ranks: &Ranks, keys: &mut [T::Key], share: Share<'_>) -> Option<(usize, usize)> {
    let (low, high) = bracket(line, ranks, &mut keys[..SAMPLE]);
    let pieces: Vec<_> =
        line.chunks(PIECE).zip(keys.chunks_mut(PIECE)).map(|(x, to)| Mutex::new((x, to, 0usize, 0usize))).collect();
    share(pieces.len(), &|i| {
        let mut piece = pieces[i].lock().unwrap_or_else(PoisonError::into_inner);
        let (x, to, below, kept) = &mut *piece;
        (*below, *kept) = sift(x, low, high, to);
    });
    let counts = pieces.into_iter().map(|p| p.into_inner().unwrap_or_else(PoisonError::into_inner));
    let counts: Vec<(usize, usize)> = counts.map(|(_, _, below, kept)| (below, kept)).collect();
    let (below, kept) = counts.iter().fold((0, 0), |(b, k), (below, kept)| (b + below, k + kept));
    if ranks.low < below || ranks.high >= below + kept {
        return None;
    }
    let mut end = 0;
    for (i, (_, kept)) in counts.into_iter().enumerate() {
        keys.copy_within(i * PIECE..i * PIECE + kept, end);
        end += kept;
    }
    Some((below, kept))
}

/// Keys between which those of the ranks most likely are.
fn bracket<T: Ordered>(line: &[T], ranks: &Ranks, sample: &mut [T::Key]) -> (T::Key, T::Key) {
    let (n, most) = (line.len(), sample.len() - 1);
    let step = n / sample.len();
    for (i, key) in sample.iter_mut().enumerate() {
        // Not at equal distances, which a periodic line could be in step with.
        let within = (i as u32).wrapping_mul(0x9e37_79b9) as usize >> 7;
        *key = line[i * step + within % step].ascending();
    }
    let at = |rank: usize| (rank as f64 / n as f64 * most as f64) as usize;
    let (low, high) = (at(ranks.low).checked_sub(SLACK), at(ranks.high) + SLACK);
    let keys = || line.iter().map(|x| x.ascending());
    let high = if high > most { keys().max() } else { Some(*sample.select_nth_unstable(high).1) };
    let low = match low {
        Some(low) => Some(*sample.select_nth_unstable(low).1),
        None => keys().min(),
    };
    let first = line[0].ascending();
    (low.unwrap_or(first), high.unwrap_or(first))
}

/// Copies the keys from `low` to `high` to the front of `to`. Returns how many are less than `low`, and how many are copied.
fn sift<T: Ordered>(piece: &[T], low: T::Key, high: T::Key, to: &mut [T::Key]) -> (usize, usize) {
    let (mut below, mut kept) = (0, 0);
    for x in piece {
        let key = x.ascending();
        to[kept] = key;
        below += usize::from(key < low);
        kept += usize::from((key >= low) & (key <= high));
    }
    (below, kept)
}
