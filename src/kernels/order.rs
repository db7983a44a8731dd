//! Kernels that find the elements of given ranks in lines, and compute what lies between two of them.
//!
//! Guarantees: linear time; the element of a rank is the one that a stable sort of the line puts there, whatever the threads and the
//! CPU level. Does not: read strided elements; a long line needs memory for an eighth of its keys, and for all only where a sample
//! misleads.

use std::sync::{Mutex, PoisonError};

use bytemuck::Zeroable;

use super::keys::{Between, Key, Ordered, with_ordered};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::room::lengthen;
use crate::ops::{Choice, Quantiles};

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
    /// How ranks and interpolations are computed.
    pub(crate) quantiles: Quantiles,
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
            Rank::Part(q) => self.quantiles.rank_of(q, (n - 1) as f64),
        };
        let (low, high) = (rank.floor(), rank.ceil());
        let two = |between| {
            let next = self.quantiles.next && between != Between::Mean;
            let high = if next { low + 1.0 } else { high };
            Ranks { between: Some(between), high: one(high as usize).high, ..one(low as usize) }
        };
        match self.choice {
            Choice::Lower => one(low as usize),
            Choice::Higher => one(high as usize),
            Choice::Nearest => one(rank.round_ties_even() as usize),
            Choice::NearestDown => one((rank - 0.5).ceil() as usize),
            Choice::Midpoint if self.mean => two(Between::Mean),
            Choice::Midpoint => two(Between::Part(if low == high { 0.0 } else { 0.5 })),
            Choice::Linear if self.quantiles.weighted => {
                two(Between::Sum { w: rank - low, single: self.quantiles.rank == DType::F32 })
            }
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

/// Selects from each line what `Ask` names; each result is an element, or a position as an `i64`. `keys` is memory that grows as
/// needed, up to the bytes of a line's elements.
pub(crate) type OrderFn = fn(Lines<'_>, &Ask, keys: &mut Vec<u128>, results: &mut [u8], Share<'_>) -> Result<()>;

/// The kernel for a dtype.
pub(crate) fn order_kernel(dtype: DType) -> OrderFn {
    with_ordered!(dtype, T => answer::<T>)
}

fn answer<T: Ordered>(
    lines: Lines<'_>,
    ask: &Ask,
    keys: &mut Vec<u128>,
    results: &mut [u8],
    share: Share<'_>,
) -> Result<()> {
    let all: &[T] = bytemuck::cast_slice(lines.bytes);
    let each = all.chunks(lines.pitch).map(|line| &line[..lines.length]);
    if ask.position {
        for (line, to) in each.zip(bytemuck::cast_slice_mut::<u8, i64>(results)) {
            *to = find(line, ask, keys, share)?.at[0] as i64;
        }
    } else {
        for (line, to) in each.zip(bytemuck::cast_slice_mut::<u8, T>(results)) {
            let found = find(line, ask, keys, share)?;
            let [low, high] = found.at.map(|at| line[at]);
            *to = found.between.map_or(low, |how| low.between(high, how));
        }
    }
    Ok(())
}

/// Room for `n` keys, with any contents.
fn room<K: Key>(keys: &mut Vec<u128>, n: usize) -> Result<&mut [K]> {
    lengthen(keys, n.saturating_mul(size_of::<K>()).div_ceil(size_of::<u128>()))?;
    Ok(&mut bytemuck::cast_slice_mut(keys)[..n])
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

/// Elements of a piece of which those between two keys are copied together.
const SIFTED: usize = 1024;

/// Elements of a sample.
const SAMPLE: usize = 4096;

/// By how many elements of a sample an element of the whole may be off: four standard deviations of the median's.
const SLACK: usize = 128;

/// The share of a long line's elements for which there is room between the keys that a sample gives: twice what `SLACK` lets expect.
const SHARE: usize = SAMPLE / (4 * SLACK);

fn find<T: Ordered>(line: &[T], ask: &Ask, keys: &mut Vec<u128>, share: Share<'_>) -> Result<Found> {
    let n = line.len();
    let long = n >= LONG;
    let is_nan = |x: &T| Some(x.ascending()) == T::NAN;
    let sought = T::NAN.is_some() && ask.nans != Nans::Last;
    let nans = if sought { count(line, is_nan, share) } else { 0 };
    if nans > 0 && ask.nans == Nans::Win {
        return Ok(Found::one(line.iter().position(is_nan).unwrap_or(0)));
    }
    if nans == n {
        return Ok(Found::one(0));
    }
    let ranks = ask.ranks(if ask.nans == Nans::Skipped { n - nans } else { n });
    let places = if long { sampled(line, &ranks, room(keys, n / SHARE)?, share) } else { None };
    let places = match places {
        Some(places) => places,
        None => ranked(line, &ranks, room(keys, n)?),
    };
    Ok(Found { at: places.map(|place| nth_equal(line, place)), between: ranks.between })
}

/// An element: the one with this key that follows so many others with it.
#[derive(Clone, Copy)]
struct Place<K> {
    key: K,
    after: usize,
}

/// The element of a rank among all that have these keys, which are ordered around it.
fn nth<K: Key>(keys: &mut [K], rank: usize) -> Place<K> {
    let (left, key, _) = keys.select_nth_unstable(rank);
    let key = *key;
    Place { key, after: left.iter().filter(|k| **k == key).count() }
}

/// The elements of the ranks, by all keys of a line.
fn ranked<T: Ordered>(line: &[T], ranks: &Ranks, keys: &mut [T::Key]) -> [Place<T::Key>; 2] {
    keys.iter_mut().zip(line).for_each(|(key, x)| *key = x.ascending());
    let low = nth(keys, ranks.low);
    let high = match keys[ranks.low + 1..].iter().copied().min().filter(|_| ranks.high > ranks.low) {
        Some(key) if key == low.key => Place { key, after: low.after + 1 },
        Some(key) => Place { key, after: 0 },
        None => low,
    };
    [low, high]
}

/// The position of an element.
fn nth_equal<T: Ordered>(line: &[T], Place { key, mut after }: Place<T::Key>) -> usize {
    let is = |x: &T| x.ascending() == key;
    for (i, block) in line.chunks(512).enumerate() {
        let here = block.iter().filter(|x| is(x)).count();
        if after < here {
            let found = (0..block.len()).filter(|at| is(&block[*at])).nth(after);
            return i * 512 + found.unwrap_or(0);
        }
        after -= here;
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

/// The elements of the ranks, by the keys between two that a sample gives; `None` if the ranks are not among these or `keys` has no room
/// for them.
fn sampled<T: Ordered>(line: &[T], ranks: &Ranks, keys: &mut [T::Key], share: Share<'_>) -> Option<[Place<T::Key>; 2]> {
    let (low, high) = bracket(line, ranks, &mut keys[..SAMPLE]);
    let sifted = Mutex::new(Sifted { low, high, below: 0, lows: 0, inside: 0, highs: 0, keys });
    share(line.len().div_ceil(PIECE), &|i| {
        let piece = &line[i * PIECE..line.len().min((i + 1) * PIECE)];
        for some in piece.chunks(SIFTED) {
            let mut kept = [T::Key::zeroed(); SIFTED];
            let (below, count) = sift(some, low, high, &mut kept);
            sifted.lock().unwrap_or_else(PoisonError::into_inner).add(below, &mut kept[..count]);
        }
    });
    let mut sifted = sifted.into_inner().unwrap_or_else(PoisonError::into_inner);
    let first = sifted.place(ranks.low)?;
    Some([first, if ranks.high == ranks.low { first } else { sifted.place(ranks.high)? }])
}

/// What a line has about two keys: how many elements are below both, have the lower, are between and have the higher one.
struct Sifted<'a, K> {
    low: K,
    high: K,
    below: usize,
    lows: usize,
    inside: usize,
    highs: usize,
    /// The keys between, in any order, as many as there is room for.
    keys: &'a mut [K],
}

impl<K: Key> Sifted<'_, K> {
    /// Adds elements below, and keys from `low` to `high`.
    fn add(&mut self, below: usize, kept: &mut [K]) {
        let (mut lows, mut inside) = (0, 0);
        for i in 0..kept.len() {
            let key = kept[i];
            kept[inside] = key;
            lows += usize::from(key == self.low);
            inside += usize::from((key > self.low) & (key < self.high));
        }
        if let Some(to) = self.keys.get_mut(self.inside..self.inside + inside) {
            to.copy_from_slice(&kept[..inside]);
        }
        self.below += below;
        self.lows += lows;
        self.inside += inside;
        self.highs += kept.len() - lows - inside;
    }

    /// The element of a rank; `None` if it is outside, or not all keys had room.
    fn place(&mut self, rank: usize) -> Option<Place<K>> {
        let rank = rank.checked_sub(self.below)?;
        let Some(between) = rank.checked_sub(self.lows) else { return Some(Place { key: self.low, after: rank }) };
        if let Some(after) = between.checked_sub(self.inside) {
            return (after < self.highs).then_some(Place { key: self.high, after });
        }
        Some(nth(self.keys.get_mut(..self.inside)?, between))
    }
}

/// The position of an element of a sample, one in `step`: not at equal distances, which a periodic line could be in step with.
fn position(i: usize, step: usize) -> usize {
    let within = (i as u32).wrapping_mul(0x9e37_79b9) as usize >> 7;
    i * step + within % step
}

/// Keys between which those of the ranks most likely are.
fn bracket<T: Ordered>(line: &[T], ranks: &Ranks, sample: &mut [T::Key]) -> (T::Key, T::Key) {
    let (n, most) = (line.len(), sample.len() - 1);
    let step = n / sample.len();
    for (i, key) in sample.iter_mut().enumerate() {
        *key = line[position(i, step)].ascending();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::keys::Double;

    /// The value of the median by a sample, with room for an eighth of the keys; `None` if all are needed.
    fn median(line: &[f64]) -> Option<f64> {
        let line: &[Double] = bytemuck::cast_slice(line);
        let ranks = Ranks { low: line.len() / 2, high: line.len() / 2, between: None };
        let mut keys = vec![0; line.len() / SHARE];
        let [low, _] = sampled(line, &ranks, &mut keys, &|n, work| (0..n).for_each(work))?;
        Some(bytemuck::cast(line[nth_equal(line, low)]))
    }

    #[test]
    fn an_eighth_of_the_keys_is_enough_unless_a_sample_misleads() {
        let n = LONG;
        let mixed: Vec<f64> = (0..n).map(|i| (i * 7919 % n) as f64).collect();
        assert_eq!(median(&mixed), Some((n / 2) as f64));
        let rising: Vec<f64> = (0..n).map(|i| i as f64).collect();
        assert_eq!(median(&rising), Some((n / 2) as f64));
        // More than the room are equal.
        let equal: Vec<f64> = mixed.iter().map(|x| if *x < 0.9 * n as f64 { 3.0 } else { *x }).collect();
        assert_eq!(median(&equal), Some(3.0));
        let with = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let mut line = mixed.iter().map(|x| 2000.0 + x / n as f64).collect::<Vec<_>>();
            (0..SAMPLE).for_each(|s| line[position(s, n / SAMPLE)] = of(s));
            line
        };
        // The rank is outside of the sample's keys; too many are between them.
        let quantiles = Quantiles { rank: DType::F64, next: false, weighted: false };
        let (rank, nans, choice) = (Rank::Kth(n / 2), Nans::Last, Choice::Lower);
        let ask = Ask { rank, nans, choice, mean: false, quantiles, position: true };
        for mut line in [with(&|_| 0.0), with(&|s| s as f64)] {
            assert_eq!(median(&line), None);
            let found =
                find::<Double>(bytemuck::cast_slice(&line), &ask, &mut Vec::new(), &|n, work| (0..n).for_each(work));
            let got = found.ok().map(|found| line[found.at[0]]);
            line.sort_by(f64::total_cmp);
            assert_eq!(got, Some(line[n / 2]));
        }
    }
}
