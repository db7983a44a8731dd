//! What threads hand on that take units of work in order.
//!
//! Guarantees: the units' numbers are handed out in order, each once; a unit's turn comes when the turns of all units before it are over,
//! whatever threads they are on. Does not: know the work. A unit that is taken must come to its turn, or stop all others.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often a thread looks whether its turn has come before it offers its core to others.
const LOOKS: usize = 1 << 8;

/// Something that one unit after the other reads and changes.
pub(super) struct Turns<T> {
    units: usize,
    next: AtomicUsize,
    now: AtomicUsize,
    stopped: AtomicBool,
    held: Mutex<T>,
}

impl<T> Turns<T> {
    /// Turns of so many units.
    pub(super) fn new(units: usize, held: T) -> Turns<T> {
        let (next, now, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        Turns { units, next, now, stopped, held: Mutex::new(held) }
    }

    /// The next unit, if there is one and nobody has stopped.
    pub(super) fn next(&self) -> Option<usize> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        (at < self.units && !self.is_stopped()).then_some(at)
    }

    /// Waits for a unit's turn, in which it does what `work` says. `None` if somebody has stopped.
    pub(super) fn wait<R>(&self, unit: usize, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut looks = 0;
        while self.now.load(Ordering::Acquire) != unit {
            if self.is_stopped() {
                return None;
            }
            looks += 1;
            if looks % LOOKS == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        let made = work(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner));
        self.now.store(unit + 1, Ordering::Release);
        Some(made)
    }

    /// Ends the work: no unit waits for its turn any more.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Ends the work when it is dropped before it is [`over`](Unless::over): by a panic, after which the turn of a unit would never end.
    pub(super) fn unless(&self) -> Unless<'_, T> {
        Unless { turns: self, over: false }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// See [`Turns::unless`].
pub(super) struct Unless<'a, T> {
    turns: &'a Turns<T>,
    over: bool,
}

impl<T> Unless<'_, T> {
    /// The thread has no unit any more.
    pub(super) fn over(mut self) {
        self.over = true;
    }
}

impl<T> Drop for Unless<'_, T> {
    fn drop(&mut self) {
        if !self.over {
            self.turns.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::Turns;

    #[test]
    fn a_panic_leaves_no_unit_waiting() {
        let turns = Turns::new(100, 0);
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    let _caught = catch_unwind(AssertUnwindSafe(|| {
                        let unless = turns.unless();
                        while let Some(at) = turns.next() {
                            assert!(at != 40, "unit {at} fails");
                            turns.wait(at, |sum| *sum += at);
                        }
                        unless.over();
                    }));
                });
            }
        });
        assert!(turns.next().is_none() && turns.wait(50, |_| ()).is_none());
    }
}
