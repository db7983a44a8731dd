//! Memory of dropped results, kept for the next ones: fresh pages cost several times what filling them does.
//!
//! Guarantees: a buffer is handed out to one owner at a time; no more than the limit is kept; the memory is freed
//! with the pool. Does not: clear buffers; whoever takes one writes all of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Line;

/// Buffers that wait for reuse, by size in lines.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    limit: usize,
}

#[derive(Default)]
struct State {
    free: BTreeMap<usize, Vec<Vec<Line>>>,
    lines: usize,
}

impl Pool {
    /// A pool that keeps at most `bytes`.
    pub(crate) fn new(bytes: usize) -> Pool {
        Pool { state: Mutex::default(), limit: bytes / 64 }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Every change leaves the state sound, so a panic elsewhere does not matter.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A kept buffer of exactly this size.
    pub(super) fn take(&self, lines: usize) -> Option<Vec<Line>> {
        let mut s = self.state();
        let all = s.free.get_mut(&lines)?;
        let found = all.pop();
        if all.is_empty() {
            s.free.remove(&lines);
        }
        if found.is_some() {
            s.lines -= lines;
        }
        found
    }

    /// Keeps a buffer, or frees it and the largest ones if they are too much.
    pub(super) fn give(&self, buffer: Vec<Line>) {
        let lines = buffer.len();
        if lines > self.limit || lines == 0 {
            return;
        }
        let mut s = self.state();
        let mut freed = Vec::new();
        while s.lines + lines > self.limit
            && let Some((size, all)) = s.free.pop_last()
        {
            s.lines -= size * all.len();
            freed.push(all);
        }
        s.lines += lines;
        s.free.entry(lines).or_default().push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_at_most_its_limit() {
        let pool = Pool::new(64 * 10);
        for _ in 0..3 {
            pool.give(vec![Line([0; 64]); 4]);
        }
        pool.give(vec![Line([0; 64]); 11]);
        assert_eq!(pool.state().lines, 4);
        assert_eq!(pool.take(4).map(|b| b.len()), Some(4));
        assert!(pool.take(4).is_none() && pool.take(11).is_none());
    }
}
