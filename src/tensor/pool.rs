//! A pool of memory of dropped results for reuse: faulting in fresh pages costs several times as much as filling them.
//!
//! Guarantees: a buffer has one owner at a time; the pool holds at most its limit; a closed pool holds nothing; threads that take and return
//! small buffers do not wait for each other. Does not: clear buffers; the code that takes one must overwrite all of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};

use super::memory::Memory;
use crate::base::host::{Apart, Kept, PerThread, SHARES};

/// The maximum number of distinct sizes; beyond it, entries of sizes without buffers are removed.
const MAX_SIZES: usize = 64;

/// The largest buffer that is kept for a thread, which may still be in its processor's caches.
const SMALL: usize = 512 << 10;

/// The most bytes that are kept for a thread.
const OWN: usize = 4 << 20;

/// Buffers for reuse: a heap of small ones for each thread, unless the limit is low, and one of all others.
pub(crate) struct Pool {
    own: Option<PerThread<Arc<Heap>>>,
    shared: Arc<Heap>,
}

impl Pool {
    /// A pool that holds at most `bytes`. At most a quarter of it is for small buffers alone.
    pub(crate) fn new(bytes: usize) -> Pool {
        let own = OWN.min(bytes / (4 * SHARES));
        if own < SMALL {
            return Pool { own: None, shared: Heap::new(bytes) };
        }
        Pool { own: Some(PerThread::made_by(|| Heap::new(own))), shared: Heap::new(bytes - SHARES * own) }
    }

    /// Frees all buffers; from now on the pool holds nothing.
    pub(crate) fn close(&self) {
        self.heaps().for_each(|heap| heap.close());
    }

    /// Where this thread takes buffers of a size.
    pub(super) fn heap(&self, size: usize) -> &Arc<Heap> {
        self.own.as_ref().filter(|_| size <= SMALL).map_or(&self.shared, PerThread::own)
    }

    fn heaps(&self) -> impl Iterator<Item = &Arc<Heap>> {
        self.own.iter().flat_map(PerThread::all).chain([&self.shared])
    }
}

/// Buffers by size. A buffer returns to the heap that it was taken from, whatever thread drops it.
pub(super) struct Heap {
    state: Apart<Kept<State>>,
    /// Read and written only while the state is locked.
    limit: AtomicUsize,
}

#[derive(Default)]
struct State {
    free: BTreeMap<usize, Vec<Memory>>,
    bytes: usize,
}

impl Heap {
    fn new(limit: usize) -> Arc<Heap> {
        Arc::new(Heap { state: Apart::default(), limit: AtomicUsize::new(limit) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.0.lock()
    }

    fn close(&self) {
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
        let found = s.free.get_mut(&size)?.pop()?;
        s.bytes -= size;
        Some(found)
    }

    /// Returns a buffer. If the limit would be exceeded, the largest buffers are freed; a buffer larger than the limit
    /// itself is freed at once.
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
