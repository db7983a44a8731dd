//! Memory of dropped results, kept for the next ones: fresh pages cost several times what filling them does.
//!
//! Guarantees: a buffer is handed out to one owner at a time; no more than the limit is kept; a closed pool keeps
//! nothing. Does not: clear buffers; whoever takes one writes all of it.

use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::memory::Memory;
use crate::base::host::Kept;

/// Different sizes that may wait at once: beyond, the emptied ones are forgotten.
const SIZES: usize = 64;

/// Buffers that wait for reuse, by size.
pub(crate) struct Pool {
    state: Kept<State>,
    /// Read and changed with the state locked.
    limit: AtomicUsize,
}

#[derive(Default)]
struct State {
    free: BTreeMap<usize, Vec<Memory>>,
    bytes: usize,
}

impl Pool {
    /// A pool that keeps at most `bytes`.
    pub(crate) fn new(bytes: usize) -> Pool {
        Pool { state: Kept::default(), limit: AtomicUsize::new(bytes) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Frees what is kept, and keeps nothing from now on.
    pub(crate) fn close(&self) {
        let mut s = self.state();
        self.limit.store(0, Ordering::Relaxed);
        s.bytes = 0;
        let freed = std::mem::take(&mut s.free);
        drop(s);
        drop(freed);
    }

    /// A kept buffer of exactly this size.
    pub(super) fn take(&self, size: usize) -> Option<Memory> {
        let mut s = self.state();
        let found = s.free.get_mut(&size)?.pop();
        if found.is_some() {
            s.bytes -= size;
        }
        found
    }

    /// Keeps a buffer, or frees it and the largest ones if they are too much.
    pub(super) fn give(&self, buffer: Memory) {
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
        if s.free.len() >= SIZES {
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
