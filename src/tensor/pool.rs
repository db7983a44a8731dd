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

/// Buffers for reuse, by size.
pub(crate) struct Pool {
    state: Kept<State>,
    /// Read and written only while the state is locked.
    limit: AtomicUsize,
}

#[derive(Default)]
struct State {
    free: BTreeMap<usize, Vec<Memory>>,
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

    /// Takes a buffer of exactly this size.
    pub(super) fn take(&self, size: usize) -> Option<Memory> {
        let mut s = self.state();
        let found = s.free.get_mut(&size)?.pop();
        if found.is_some() {
            s.bytes -= size;
        }
        found
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
        s.free.entry(size).or_default().push(buffer);
        drop(s);
        drop(freed);
    }
}

#[cfg(test)]
mod tests;
