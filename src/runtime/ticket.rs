//! Parts of a job that threads take without a lock: a ticket has the parts that are left.
//!
//! Guarantees: each part is taken once. Does not: run them, or wait.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A borrowed closure as the helpers see it.
pub(super) type Work<'a> = &'a (dyn Fn(usize) + Sync + 'a);

/// Parts of a job at most: they are counted in 16 bits of the ticket.
pub(super) const MAX_PARTS: usize = 1 << 15;

/// The parts that a ticket has left, if there are any.
pub(super) fn left(ticket: u64) -> Option<(usize, usize)> {
    let (first, end) = ((ticket & 0xffff) as usize, (ticket >> 16 & 0xffff) as usize);
    (first < end).then_some((first, end))
}

/// Takes some of the parts that a ticket has left: half of a thread's share of them, so that the ticket, which every taking moves
/// from core to core, is not asked for each, and all threads end together.
pub(super) fn take(ticket: &AtomicU64, threads: usize, front: bool) -> Option<Range<usize>> {
    let mut seen = ticket.load(Ordering::Acquire);
    while let Some((first, end)) = left(seen) {
        let n = ((end - first) / (2 * threads)).max(1);
        let (part, after) = if front { (first, seen + n as u64) } else { (end - n, seen - ((n as u64) << 16)) };
        match ticket.compare_exchange_weak(seen, after, Ordering::AcqRel, Ordering::Acquire) {
            Err(now) => seen = now,
            Ok(_) => return Some(part..part + n),
        }
    }
    None
}

/// A ticket of this many parts.
pub(super) fn ticket(epoch: u64, parts: usize) -> u64 {
    epoch << 32 | (parts as u64) << 16
}
