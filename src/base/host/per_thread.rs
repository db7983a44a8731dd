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

/// What is written often, in cache lines of its own: two, since processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// A value for each of [`SHARES`] threads, in cache lines of its own.
#[derive(Default)]
pub(crate) struct PerThread<T>([Apart<T>; SHARES]);

impl<T> PerThread<T> {
    /// Values that a function makes.
    pub(crate) fn made_by(make: impl Fn() -> T) -> PerThread<T> {
        PerThread(std::array::from_fn(|_| Apart(make())))
    }

    /// This thread's value.
    #[inline]
    pub(crate) fn own(&self) -> &T {
        // While a thread ends, its own values may be gone.
        &self.0[SHARE.try_with(|share| *share).unwrap_or(0)].0
    }

    /// The values of all threads.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|apart| &apart.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_values_of_their_own_and_all_are_seen() {
        let counts: PerThread<AtomicUsize> = PerThread::default();
        let own = || std::ptr::from_ref(counts.own()).addr();
        assert_eq!(own(), own());
        std::thread::scope(|scope| {
            (0..2 * SHARES).for_each(|_| _ = scope.spawn(|| counts.own().fetch_add(1, Ordering::Relaxed)))
        });
        let counted: Vec<usize> = counts.all().map(|n| n.load(Ordering::Relaxed)).collect();
        assert_eq!(counted.iter().sum::<usize>(), 2 * SHARES);
        // Threads of other tests are numbered in between.
        assert!(counted.iter().filter(|n| **n > 0).count() > 1, "{counted:?}");
    }
}
