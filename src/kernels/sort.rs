//! Kernels that sort lines, or find their first elements in order.
//!
//! Guarantees: equal elements keep their order. Does not: read strided elements; allocates words of a key and a position for the
//! elements of one line.

use super::keys::{Key, Ordered, with_ordered};
use super::order::Lines;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};

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

/// The kernel for a dtype, and the bytes of its word for an element.
pub(crate) fn sort_kernel(dtype: DType) -> (SortFn, usize) {
    with_ordered!(dtype, T => (sorted::<T> as SortFn, size_of::<<<T as Ordered>::Key as Key>::Word>()))
}

fn sorted<T: Ordered>(lines: Lines<'_>, how: &Sorting, results: &mut [u8]) -> Result<()> {
    let (max, got) = (u64::from(u32::MAX), lines.length as u64);
    if got > max {
        return Err(Error::Limit { which: "the number of elements of a line that is sorted", max, got });
    }
    let mut words: Vec<<T::Key as Key>::Word> = Vec::new();
    let bytes = lines.length.saturating_mul(size_of::<<T::Key as Key>::Word>());
    words.try_reserve_exact(lines.length).map_err(|_| Error::OutOfMemory { bytes })?;
    words.resize(lines.length, Default::default());
    let all: &[T] = bytemuck::cast_slice(lines.bytes);
    let each = all.chunks(lines.pitch).map(|line| &line[..lines.length]);
    let count = how.count.max(1);
    if how.position {
        for (line, to) in each.zip(bytemuck::cast_slice_mut::<u8, i64>(results).chunks_mut(count)) {
            first(line, how, &mut words);
            to.iter_mut().zip(&words).for_each(|(to, word)| *to = T::Key::at(*word) as i64);
        }
    } else {
        for (line, to) in each.zip(bytemuck::cast_slice_mut::<u8, T>(results).chunks_mut(count)) {
            first(line, how, &mut words);
            to.iter_mut().zip(&words).for_each(|(to, word)| *to = line[T::Key::at(*word)]);
        }
    }
    Ok(())
}

/// Puts the words of the first elements in order to the front.
fn first<T: Ordered>(line: &[T], how: &Sorting, words: &mut [<T::Key as Key>::Word]) {
    for (at, (word, x)) in (0..).zip(words.iter_mut().zip(line)) {
        *word = x.ascending().word(at, how.descending);
    }
    if how.count > 0 && how.count < words.len() {
        words.select_nth_unstable(how.count - 1);
    }
    words[..how.count].sort_unstable();
}
