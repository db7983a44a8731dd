//! Finds elements by their ranks in the lines of a strided tensor: the elements along the reduced dims, one line for each index of
//! the others.
//!
//! Guarantees: the same results for any number of threads and any layout. Lines that do not lie in memory element by element are
//! copied, as many together as share cache lines. Does not: compare elements; `kernels` does.

use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::base::cancel::Stop;
use crate::base::error::{Error, Result};
use crate::base::host::CACHE_LINE;
use crate::base::room::lengthen;
use crate::kernels::order::{Ask, LONG, Lines, OrderFn, Share};
use crate::runtime::thread_pool::share;

/// Lines of a unit that lie in memory as they are.
const DIRECT: usize = 64;

/// Parts of the units for each thread.
const PARTS: usize = 8;

/// A dim: its extent and stride, in elements.
pub(crate) type StridedDim = (usize, isize);

/// What is asked of which lines.
pub(crate) struct Order<'a> {
    pub(crate) kernel: OrderFn,
    pub(crate) ask: Ask,
    /// Memory that has all elements, aligned.
    pub(crate) bytes: &'a [u8],
    /// Bytes of an element.
    pub(crate) size: usize,
    /// The position of the first element.
    pub(crate) start: usize,
    pub(crate) kept: SmallVec<[StridedDim; 6]>,
    pub(crate) reduced: SmallVec<[StridedDim; 6]>,
    pub(crate) threads: usize,
    pub(crate) stop: Option<&'a Stop<'a>>,
}

/// Memory of a thread, which grows as needed: lines that were copied, and keys of one.
#[derive(Default)]
struct Scratch {
    lines: Vec<u128>,
    keys: Vec<u128>,
}

/// Dims without those of one element, and neighbours that are one dim in memory as one.
pub(crate) fn merged(dims: impl Iterator<Item = StridedDim>) -> SmallVec<[StridedDim; 6]> {
    let mut all: SmallVec<[StridedDim; 6]> = SmallVec::new();
    for (n, stride) in dims.filter(|(n, _)| *n != 1) {
        match all.last_mut() {
            Some((m, outer)) if *outer == stride * n as isize => (*m, *outer) = (*m * n, stride),
            _ => all.push((n, stride)),
        }
    }
    all
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Order<'_> {
    fn length(&self) -> usize {
        self.reduced.iter().map(|(n, _)| n).product()
    }

    /// Whether the elements of a line follow each other in memory.
    fn is_direct(&self) -> bool {
        matches!(self.reduced[..], [] | [(_, 1)])
    }

    /// Lines of a unit.
    fn block(&self) -> usize {
        if self.is_direct() { DIRECT } else { CACHE_LINE / self.size }
    }

    /// From the start of a copied line to that of the next. A cache line more than a line, so that the starts of lines are not all
    /// in one set of a cache.
    fn pitch(&self) -> usize {
        self.length() + CACHE_LINE / self.size
    }

    /// Threads that have lines of their own; with few and long lines, the threads share each of them.
    fn workers(&self, results: usize) -> usize {
        let shares = self.length() >= LONG && results < 2 * self.threads;
        if shares { 1 } else { self.threads.clamp(1, results.div_ceil(self.block()).max(1)) }
    }

    /// Words of 16 bytes that a thread needs for lines, and at most for keys.
    fn words(&self) -> [usize; 2] {
        let words = |elements: usize| elements.saturating_mul(self.size).div_ceil(16);
        let lines = if self.is_direct() { 0 } else { words(self.pitch().saturating_mul(self.block())) };
        [lines, words(self.length())]
    }

    /// Bytes that a run needs at most beside its results.
    pub(crate) fn scratch(&self, results: usize) -> usize {
        self.words().iter().sum::<usize>().saturating_mul(16 * self.workers(results))
    }

    /// Writes the results, of so many bytes each.
    pub(crate) fn run(&self, out: &mut [u8], width: usize) -> Result<()> {
        let results = out.len() / width.max(1);
        let aligned = self.bytes.as_ptr().addr().is_multiple_of(self.size.min(align_of::<u64>()));
        if !aligned || !self.bytes.len().is_multiple_of(self.size) {
            return Err(Error::Internal("an order of elements in wrong memory".into()));
        }
        let (workers, block) = (self.workers(results), self.block());
        let scratch: Vec<Scratch> = (0..workers).map(|_| Scratch::default()).collect();
        let (scratch, stopped) = (Mutex::new(scratch), Mutex::new(None));
        let units = results.div_ceil(block);
        let per = units.div_ceil(if workers > 1 { workers * PARTS } else { 1 }).max(1);
        let parts: Vec<Mutex<&mut [u8]>> = out.chunks_mut(per * block * width).map(Mutex::new).collect();
        let alone: Share<'_> = &|n, work| (0..n).for_each(work);
        let together: Share<'_> = &|n, work| share(n, self.threads, work);
        let sharing = if workers == 1 { together } else { alone };
        share(parts.len(), workers, &|part| {
            let mut own = lock(&scratch).pop().unwrap_or_default();
            for (i, unit) in lock(&parts[part]).chunks_mut(block * width).enumerate() {
                if lock(&stopped).is_some() {
                    break;
                }
                let checked = self.stop.map_or(Ok(()), Stop::check);
                let done = checked.and_then(|()| self.unit((part * per + i) * block, unit, width, &mut own, sharing));
                if let Err(e) = done {
                    lock(&stopped).get_or_insert(e);
                }
            }
            lock(&scratch).push(own);
        });
        stopped.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// The results from this one on.
    fn unit(&self, from: usize, out: &mut [u8], width: usize, own: &mut Scratch, share: Share<'_>) -> Result<()> {
        let (length, count) = (self.length(), out.len() / width);
        if !self.is_direct() {
            lengthen(&mut own.lines, self.words()[0])?;
            let starts: SmallVec<[usize; 64]> = (from..from + count).map(|i| self.line(i).0).collect();
            match self.size {
                1 => self.gather::<u8>(&starts, &mut own.lines),
                2 => self.gather::<u16>(&starts, &mut own.lines),
                4 => self.gather::<u32>(&starts, &mut own.lines),
                8 => self.gather::<u64>(&starts, &mut own.lines),
                _ => self.gather::<[u64; 2]>(&starts, &mut own.lines),
            }
            let pitch = self.pitch();
            let bytes = &bytemuck::cast_slice::<u128, u8>(&own.lines)[..count * pitch * self.size];
            return (self.kernel)(Lines { bytes, length, pitch }, &self.ask, &mut own.keys, out, share);
        }
        let mut done = 0;
        while done < count {
            let (start, left) = self.line(from + done);
            let stride = self.kept.last().map_or(0, |(_, stride)| *stride);
            let follow = usize::try_from(stride).ok().filter(|stride| *stride >= length);
            let (pitch, lines) = follow.map_or((length, 1), |stride| (stride, left.min(count - done)));
            let bytes = &self.bytes[start * self.size..][..((lines - 1) * pitch + length) * self.size];
            let to = &mut out[done * width..][..lines * width];
            (self.kernel)(Lines { bytes, length, pitch }, &self.ask, &mut own.keys, to, share)?;
            done += lines;
        }
        Ok(())
    }

    /// Where the line of a result begins, and how many results from it on differ in the last kept dim alone.
    fn line(&self, mut result: usize) -> (usize, usize) {
        let (mut at, mut left) = (self.start as isize, None);
        for (n, stride) in self.kept.iter().rev() {
            let index = result % n;
            result /= n;
            at += index as isize * stride;
            left.get_or_insert(n - index);
        }
        (at as usize, left.unwrap_or(1))
    }

    /// Copies the lines that begin at these positions, one after the other.
    fn gather<W: bytemuck::Pod>(&self, starts: &[usize], to: &mut [u128]) {
        let from: &[W] = bytemuck::cast_slice(self.bytes);
        let to: &mut [W] = bytemuck::cast_slice_mut(to);
        let pitch = self.pitch();
        let Some(((n, stride), outer)) = self.reduced.split_last() else { return };
        // The lines' elements lie closer to each other across the lines, or along them.
        let apart = self.kept.last().map_or(0, |(_, stride)| stride.unsigned_abs());
        let across = starts.len() > 1 && apart < stride.unsigned_abs();
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
        let mut at = 0isize;
        for row in (0..self.length()).step_by(*n) {
            let place = |start: usize, i: usize| (start as isize + at + i as isize * stride) as usize;
            if across {
                for i in 0..*n {
                    for (line, start) in starts.iter().enumerate() {
                        to[line * pitch + row + i] = from[place(*start, i)];
                    }
                }
            } else {
                for (line, start) in starts.iter().enumerate() {
                    let to = &mut to[line * pitch + row..][..*n];
                    to.iter_mut().enumerate().for_each(|(i, to)| *to = from[place(*start, i)]);
                }
            }
            for ((n, stride), index) in outer.iter().zip(&mut index).rev() {
                *index += 1;
                at += stride;
                if *index < *n {
                    break;
                }
                at -= stride * *n as isize;
                *index = 0;
            }
        }
    }
}
