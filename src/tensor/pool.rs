//! A pool of memory of dropped results for reuse: faulting in fresh pages costs several times as much as filling them.
//!
//! Guarantees: a buffer has one owner at a time; the pool holds at most its limit; a closed pool holds nothing. Does
//! not: clear buffers; the code that takes one must overwrite all of it.

use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::memory::Memory;
use crate::base::host::Kept;

/// The maximum number of distinct sizes; beyond it, entries of sizes without buffers are removed.
const MAX_SIZES: usize = 64;

/// How many of the buffers of a size are looked at for one of the same thread.
const NEAR: usize = 16;

thread_local! {
    /// Its address tells this thread from others, also while the thread ends, when `thread::current` panics.
    static HERE: u8 = const { 0 };
}

fn this_thread() -> usize {
    HERE.try_with(|here| std::ptr::from_ref(here).addr()).unwrap_or(0)
}

/// Buffers for reuse, by size.
pub(crate) struct Pool {
    state: Kept<State>,
    /// Read and written only while the state is locked.
    limit: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// The buffers of each size, with the threads that returned them.
    free: BTreeMap<usize, Vec<(usize, Memory)>>,
    bytes: usize,
}

impl Pool {
    /// A pool that holds at most `bytes`.
    pub(crate) fn new(bytes: usize) -> Pool {
        Pool { state: Kept::default(), limit: AtomicUsize::new(bytes) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Frees all buffers; from now on the pool holds nothing.
    pub(crate) fn close(&self) {
        let mut s = self.state();
        self.limit.store(0, Ordering::Relaxed);
        s.bytes = 0;
        let freed = std::mem::take(&mut s.free);
        drop(s);
        drop(freed);
    }

    /// Takes a buffer of exactly this size: one that this thread returned, which may be in its processor's caches, if that is among the
    /// last ones.
    pub(super) fn take(&self, size: usize) -> Option<Memory> {
        let own = this_thread();
        let mut s = self.state();
        let all = s.free.get_mut(&size)?;
        let back = all.iter().rev().take(NEAR).position(|(of, _)| *of == own).unwrap_or(0);
        let (_, found) = all.swap_remove(all.len().checked_sub(1 + back)?);
        s.bytes -= size;
        Some(found)
    }

    /// Returns a buffer to the pool. If the limit would be exceeded, the largest buffers are freed; a buffer larger
    /// than the limit itself is freed at once.
    pub(super) fn put(&self, buffer: Memory) {
        let size = buffer.size();
        let mut s = self.state();
        let limit = self.limit.load(Ordering::Relaxed);
        if size == 0 || size > limit {
            drop(s);
            return;
        }
        let mut freed = Vec::new();
        while s.bytes + size > limit
            && let Some((each, all)) = s.free.pop_last()
        {
            s.bytes -= each * all.len();
            freed.push(all);
        }
        if s.free.len() >= MAX_SIZES {
            s.free.retain(|_, all| !all.is_empty());
        }
        s.bytes += size;
        s.free.entry(size).or_default().push((this_thread(), buffer));
        drop(s);
        drop(freed);
    }
}

#[cfg(test)]
mod tests;
