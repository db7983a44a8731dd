//! Kernels that sort lines, or find their first elements in order.
//!
//! Guarantees: equal elements keep their order, and a line that threads share is as one that is sorted alone. Does not: read strided
//! elements; allocates words of a key and a position for the elements of one line.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::keys::{Key, Ordered, with_ordered};
use super::order::{Lines, Share};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::room::list;

/// Which elements of a line are asked for, in which order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sorting {
    /// Whether the largest element is first.
    pub(crate) descending: bool,
    /// How many are asked for, at most as many as there are.
    pub(crate) count: usize,
    /// Whether the results are positions.
    pub(crate) position: bool,
}

/// Writes `count` elements of each line, or positions as `i64`, line after line.
pub(crate) type SortFn = fn(Lines<'_>, &Sorting, results: &mut [u8]) -> Result<()>;

/// As a [`SortFn`] for one line, of which several parts are sorted and then merged, on threads.
pub(crate) type SortPartsFn = fn(line: &[u8], parts: usize, &Sorting, results: &mut [u8], Share<'_>) -> Result<()>;

/// The kernels of a dtype.
#[derive(Clone, Copy)]
pub(crate) struct SortKernels {
    pub(crate) lines: SortFn,
    pub(crate) parts: SortPartsFn,
    /// Bytes of the word for an element of a line: `lines` has words for one line, `parts` twice as many.
    pub(crate) word: usize,
}

/// The kernels for a dtype.
pub(crate) fn sort_kernels(dtype: DType) -> SortKernels {
    with_ordered!(dtype, T => SortKernels {
        lines: sorted::<T>,
        parts: sorted_parts::<T>,
        word: size_of::<WordOf<T>>(),
    })
}

type WordOf<T> = <<T as Ordered>::Key as Key>::Word;

/// Memory for the words of a line.
fn words<T: Ordered>(length: usize) -> Result<Vec<WordOf<T>>> {
    let (max, got) = (u64::from(u32::MAX), length as u64);
    if got > max {
        return Err(Error::Limit { which: "the number of elements of a line that is sorted", max, got });
    }
    list(length)
}

fn sorted<T: Ordered>(lines: Lines<'_>, how: &Sorting, results: &mut [u8]) -> Result<()> {
    let mut words = words::<T>(lines.length)?;
    let all: &[T] = bytemuck::cast_slice(lines.bytes);
    let made = if how.position { size_of::<i64>() } else { size_of::<T>() };
    let each = all.chunks(lines.pitch).map(|line| &line[..lines.length]);
    for (line, to) in each.zip(results.chunks_mut(how.count.max(1) * made)) {
        first(line, 0, how, &mut words);
        write(line, how, &words, to);
    }
    Ok(())
}

/// Sorts parts of a line, then merges two and two of them. A word is equal to no other one, so that there is one order.
fn sorted_parts<T: Ordered>(
    line: &[u8],
    parts: usize,
    how: &Sorting,
    results: &mut [u8],
    share: Share<'_>,
) -> Result<()> {
    let line: &[T] = bytemuck::cast_slice(line);
    let (mut all, mut spare) = (words::<T>(line.len())?, words::<T>(line.len())?);
    let size = line.len().div_ceil(parts.max(1)).max(1);
    each(all.chunks_mut(size).enumerate(), share, |(i, words)| {
        first(&line[i * size..][..words.len()], i * size, how, words);
    });
    let ends = |from: usize| from + how.count.min(size).min(line.len() - from);
    let mut runs: Vec<Range<usize>> = (0..line.len()).step_by(size).map(|from| from..ends(from)).collect();
    while runs.len() > 1 {
        runs = merged(&all, &runs, &mut spare, parts, share);
        std::mem::swap(&mut all, &mut spare);
    }
    let made = if how.position { size_of::<i64>() } else { size_of::<T>() };
    let piece = how.count.div_ceil(parts.max(1)).max(1);
    each(all[..how.count].chunks(piece).zip(results.chunks_mut(piece * made)), share, |(words, to)| {
        write(line, how, words, to);
    });
    Ok(())
}

/// Does work on several things, on threads.
fn each<T: Send>(all: impl Iterator<Item = T>, share: Share<'_>, work: impl Fn(T) + Sync) {
    let all: Vec<Mutex<Option<T>>> = all.map(|one| Mutex::new(Some(one))).collect();
    share(all.len(), &|i| {
        if let Some(one) = all[i].lock().unwrap_or_else(PoisonError::into_inner).take() {
            work(one);
        }
    });
}

/// Merges runs of sorted words, two and two, into other memory, where they follow each other. Each two of them are merged in several pieces.
fn merged<W: Copy + Ord + Send + Sync>(
    from: &[W],
    runs: &[Range<usize>],
    to: &mut [W],
    pieces: usize,
    share: Share<'_>,
) -> Vec<Range<usize>> {
    let (mut rest, mut at, mut made, mut all) = (to, 0, Vec::new(), Vec::new());
    for two in runs.chunks(2) {
        let (a, b) = (&from[two[0].clone()], two.get(1).map_or(&[][..], |run| &from[run.clone()]));
        let own;
        (own, rest) = std::mem::take(&mut rest).split_at_mut(a.len() + b.len());
        made.push(at..at + own.len());
        at += own.len();
        let piece = own.len().div_ceil(pieces.max(1)).max(1);
        all.extend(own.chunks_mut(piece).enumerate().map(|(i, out)| (a, b, i * piece, out)));
    }
    each(all.into_iter(), share, |(a, b, first, out)| merge(a, b, first, out));
    made
}

/// Writes the words from the `first` one on of two sorted runs that are merged.
fn merge<W: Copy + Ord>(a: &[W], b: &[W], first: usize, out: &mut [W]) {
    // How many of the words before are from `a`: the least number for which the next one of `a` is behind the last one of `b`.
    let (mut low, mut high) = (first.saturating_sub(b.len()), first.min(a.len()));
    while low < high {
        let middle = low.midpoint(high);
        if a[middle] < b[first - 1 - middle] { low = middle + 1 } else { high = middle }
    }
    let (mut i, mut j) = (low, first - low);
    for to in out {
        let from_a = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => {
                *to = *x.min(y);
                x < y
            }
            (Some(x), None) => {
                *to = *x;
                true
            }
            (None, y) => {
                *to = y.copied().unwrap_or(*to);
                false
            }
        };
        (i, j) = (i + usize::from(from_a), j + usize::from(!from_a));
    }
}

/// Puts the words of the first elements in order to the front; `from` is the position of the first element.
fn first<T: Ordered>(line: &[T], from: usize, how: &Sorting, words: &mut [WordOf<T>]) {
    for (at, (word, x)) in (from as u32..).zip(words.iter_mut().zip(line)) {
        *word = x.ascending().word(at, how.descending);
    }
    let count = how.count.min(words.len());
    if count > 0 && count < words.len() {
        words.select_nth_unstable(count - 1);
    }
    words[..count].sort_unstable();
}

/// Writes the elements, or the positions, of some words.
fn write<T: Ordered>(line: &[T], how: &Sorting, words: &[WordOf<T>], to: &mut [u8]) {
    let words = words.iter().map(|word| T::Key::at(*word));
    if how.position {
        bytemuck::cast_slice_mut::<u8, i64>(to).iter_mut().zip(words).for_each(|(to, at)| *to = at as i64);
    } else {
        bytemuck::cast_slice_mut::<u8, T>(to).iter_mut().zip(words).for_each(|(to, at)| *to = line[at]);
    }
}
