//! Sorts the lines of a row-major tensor of `outer` × `length` × `width` elements, along the middle dim.
//!
//! Guarantees: the same results for any number of threads, which share a long line where there are few. Lines that do not lie in
//! memory element by element are copied, as many together as share cache lines. Does not: compare elements; `kernels` does.

use super::results::Results;
use super::try_share;
use crate::base::cancel::Stop;
use crate::base::error::{Error, Result};
use crate::base::host::CACHE_LINE;
use crate::base::room::list;
use crate::kernels::order::{Lines, Share};
use crate::kernels::sort::{SortKernels, Sorting};
use crate::plan::tuning::{SORTED_AT_ONCE, SORTED_PART};
use crate::runtime::thread_pool::share;

/// Elements of the lines that lie in memory as they are and are sorted in one call of the kernel, about.
const DIRECT: usize = 4096;

/// What is sorted.
pub(crate) struct Sort<'a> {
    pub(crate) kernels: SortKernels,
    pub(crate) how: Sorting,
    /// The elements, aligned.
    pub(crate) bytes: &'a [u8],
    /// Bytes of an element.
    pub(crate) size: usize,
    /// Bytes of a result.
    pub(crate) made: usize,
    pub(crate) outer: usize,
    pub(crate) length: usize,
    pub(crate) width: usize,
    pub(crate) threads: usize,
    pub(crate) stop: Option<&'a Stop<'a>>,
}

/// A copy of bytes for words of 16 bytes, so that they are aligned.
fn words(bytes: usize) -> Result<Vec<u128>> {
    list(bytes.div_ceil(16))
}

impl Sort<'_> {
    /// Writes the results: `outer` × `count` × `width` of them.
    pub(crate) fn run(&self, out: &mut [u8]) -> Result<()> {
        let (all, made) = (self.outer * self.length * self.width, self.outer * self.how.count * self.width);
        let aligned = |p: usize, size: usize| p.is_multiple_of(size.min(align_of::<u64>()));
        let sound =
            self.bytes.len() == all * self.size && out.len() == made * self.made && self.how.count <= self.length;
        if !sound || !aligned(self.bytes.as_ptr().addr(), self.size) || !aligned(out.as_ptr().addr(), self.made) {
            return Err(Error::Internal("a sort in wrong memory".into()));
        }
        if out.is_empty() {
            return Ok(());
        }
        if let Some(parts) = self.parts() {
            return self.shared(parts, out);
        }
        let to = Results::new(out);
        let (lines, columns) = self.unit();
        let blocks = self.width.div_ceil(columns);
        try_share(self.outer.div_ceil(lines) * blocks, self.threads, self.stop, &|unit| {
            let (outer, column) = (unit / blocks * lines, unit % blocks * columns);
            if self.width == 1 {
                self.direct(outer, lines.min(self.outer - outer), &to)
            } else {
                self.columns(outer, column, columns.min(self.width - column), &to)
            }
        })
    }

    /// How many parts of each line the threads share; `None` if a thread sorts a line at once.
    fn parts(&self) -> Option<usize> {
        if self.width > 1 || self.outer >= self.threads && self.length <= SORTED_AT_ONCE {
            return None;
        }
        let parts = self.threads.min(self.length / SORTED_PART).max(self.length.div_ceil(SORTED_AT_ONCE));
        (parts > 1).then_some(parts)
    }

    /// Sorts each line on all threads.
    fn shared(&self, parts: usize, out: &mut [u8]) -> Result<()> {
        let stopped = || self.stop.is_some_and(|stop| stop.check().is_err());
        let share: Share<'_> = &|n, work| {
            share(n, self.threads, &|i| {
                if !stopped() {
                    work(i);
                }
            });
        };
        let lines = self.bytes.chunks(self.length * self.size);
        for (line, to) in lines.zip(out.chunks_mut(self.how.count * self.made)) {
            (self.kernels.parts)(line, parts, &self.how, to, share)?;
            self.stop.map_or(Ok(()), Stop::check)?;
        }
        Ok(())
    }

    /// Lines that are sorted together: outer indices and columns.
    fn unit(&self) -> (usize, usize) {
        if self.width == 1 { ((DIRECT / self.length.max(1)).max(1), 1) } else { (1, self.block()) }
    }

    /// Bytes that a run needs beside its results: each thread's words, and its copies of lines and of their results.
    pub(crate) fn scratch(&self) -> usize {
        if self.parts().is_some() {
            return self.length.saturating_mul(2 * self.kernels.word);
        }
        let (lines, columns) = self.unit();
        let units = self.outer.div_ceil(lines).saturating_mul(self.width.div_ceil(columns));
        let copied = (self.length + CACHE_LINE).saturating_mul(self.size) + self.how.count.saturating_mul(self.made);
        let copies = if self.width == 1 { 0 } else { copied.saturating_mul(columns.min(self.width)) };
        let each = self.length.saturating_mul(self.kernels.word).saturating_add(copies);
        each.saturating_mul(self.threads.clamp(1, units.max(1)))
    }

    /// Columns that are copied together.
    fn block(&self) -> usize {
        (CACHE_LINE / self.size.max(self.made)).max(1)
    }

    /// Sorts lines that follow each other.
    fn direct(&self, from: usize, lines: usize, to: &Results<u8>) -> Result<()> {
        let (line, results) = (self.length * self.size, self.how.count * self.made);
        let bytes = &self.bytes[from * line..(from + lines) * line];
        // SAFETY: the results of these lines alone, inside of `run`'s, whose number it has checked.
        let out = unsafe { std::slice::from_raw_parts_mut(to.at(from * results), lines * results) };
        (self.kernels.lines)(Lines { bytes, length: self.length, pitch: self.length }, &self.how, out)
    }

    /// Sorts the lines of columns.
    fn columns(&self, outer: usize, column: usize, columns: usize, to: &Results<u8>) -> Result<()> {
        let (count, length) = (self.how.count, self.length);
        // A cache line more than a line, so that the starts of lines are not all in one set of a cache.
        let pitch = length + CACHE_LINE / self.size;
        let mut lines = words(columns * pitch * self.size)?;
        let start = outer * length * self.width + column;
        match self.size {
            1 => self.gather::<u8>(start, columns, pitch, &mut lines),
            2 => self.gather::<u16>(start, columns, pitch, &mut lines),
            4 => self.gather::<u32>(start, columns, pitch, &mut lines),
            8 => self.gather::<u64>(start, columns, pitch, &mut lines),
            _ => self.gather::<[u64; 2]>(start, columns, pitch, &mut lines),
        }
        let bytes = &bytemuck::cast_slice::<u128, u8>(&lines)[..columns * pitch * self.size];
        let mut results = words(columns * count * self.made)?;
        let made = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut results)[..columns * count * self.made];
        (self.kernels.lines)(Lines { bytes, length, pitch }, &self.how, made)?;
        let at = outer * count * self.width + column;
        match self.made {
            1 => self.scatter::<u8>(at, columns, &results, to),
            2 => self.scatter::<u16>(at, columns, &results, to),
            4 => self.scatter::<u32>(at, columns, &results, to),
            8 => self.scatter::<u64>(at, columns, &results, to),
            _ => self.scatter::<[u64; 2]>(at, columns, &results, to),
        }
        Ok(())
    }

    /// Copies columns to lines.
    fn gather<W: bytemuck::Pod>(&self, start: usize, columns: usize, pitch: usize, lines: &mut [u128]) {
        let (from, lines): (&[W], &mut [W]) = (bytemuck::cast_slice(self.bytes), bytemuck::cast_slice_mut(lines));
        for i in 0..self.length {
            let row = &from[start + i * self.width..][..columns];
            row.iter().enumerate().for_each(|(column, x)| lines[column * pitch + i] = *x);
        }
    }

    /// Copies lines of results to columns.
    fn scatter<W: bytemuck::Pod>(&self, start: usize, columns: usize, lines: &[u128], to: &Results<u8>) {
        let lines: &[W] = bytemuck::cast_slice(lines);
        for i in 0..self.how.count {
            // SAFETY: part of a row of results, which lies inside of `run`'s; its columns are of this unit alone. They are aligned, as
            // the first one is and all have the size of `W`.
            let row = unsafe {
                std::slice::from_raw_parts_mut(to.at((start + i * self.width) * size_of::<W>()).cast::<W>(), columns)
            };
            row.iter_mut().enumerate().for_each(|(column, x)| *x = lines[column * self.how.count + i]);
        }
    }
}
