//! Values that threads have each for itself, so that they do not wait for each other's cache lines.
//!
//! Guarantees: a thread's value is always the same one. Does not: keep other threads from it; more than [`SHARES`] share.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of values. Threads beyond it share.
pub(crate) const SHARES: usize = 16;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SHARE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % SHARES;
}

/// The number of this thread's value, less than [`SHARES`].
#[inline]
pub(crate) fn share_of_thread() -> usize {
    // While a thread ends, its own values may be gone.
    SHARE.try_with(|share| *share).unwrap_or(0)
}

/// A value for each of [`SHARES`] threads, in cache lines of its own.
#[derive(Default)]
pub(crate) struct PerThread<T>([Lines<T>; SHARES]);

/// Two cache lines, since processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Lines<T>(T);

impl<T> PerThread<T> {
    /// This thread's value.
    #[inline]
    pub(crate) fn own(&self) -> &T {
        &self.0[share_of_thread()].0
    }

    /// The values of all threads.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|lines| &lines.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_a_value_and_all_values_are_seen() {
        let counts: PerThread<AtomicUsize> = PerThread::default();
        let own = || std::ptr::from_ref(counts.own()).addr();
        assert_eq!(own(), own());
        std::thread::scope(|scope| {
            (0..2 * SHARES).for_each(|_| _ = scope.spawn(|| counts.own().fetch_add(1, Ordering::Relaxed)))
        });
        assert_eq!(counts.all().map(|n| n.load(Ordering::Relaxed)).sum::<usize>(), 2 * SHARES);
    }
}
