//! Prefetches of the pages with which operands begin, before a launch reads them.
//!
//! Where memory has pages of 4 KiB, each begins with a search of the page tables, and a processor's own prefetchers stop at its end (Intel's
//! optimization manual, "Hardware prefetch"). With the first cache line of each page on its way, a loop does not wait for these.
//! `plan::tuning` has the figures.
//!
//! Guarantees: every address is one of the given bytes. A prefetch has no visible effect. Does not: prefetch line by line, as
//! `backend::x64` does some KiB ahead where it streams or adds; prefetch on other processors than x86-64.

use std::ops::Range;

use crate::plan::tuning::PREFETCHED;

/// Bytes of a page. (On larger ones the additional prefetches cost little.)
const PAGE: usize = 4 << 10;

/// Prefetches the first cache line of each page of an operand, whose bytes have these addresses; of its first pages, if there are many.
#[inline]
pub(super) fn prefetch(bytes: Range<usize>) {
    pages(bytes).for_each(line);
}

/// The first address of a range, and of each page that begins in it, up to [`PREFETCHED`] bytes behind the first.
#[inline]
fn pages(bytes: Range<usize>) -> impl Iterator<Item = usize> {
    let Range { start, end } = bytes;
    let end = end.min(start.saturating_add(PREFETCHED));
    let starts = (start / PAGE * PAGE..end).step_by(PAGE);
    starts.map(move |page| page.max(start)).filter(move |at| *at < end)
}

/// Prefetches a cache line into the second-level cache.
#[inline]
fn line(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch accesses no memory that the program can see, and does not fault, whatever the address is.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(std::ptr::without_provenance(address));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
    #[cfg(test)]
    tests::SEEN.with_borrow_mut(|seen| seen.iter_mut().for_each(|seen| seen.push(address)));
}

#[cfg(test)]
mod tests;
