//! Forks of the process.
//!
//! In the child of a `fork` only the thread that called it exists. A lock that another thread held then stays locked for
//! ever, and what it guards may be half written; helper threads are gone. Guarantees: in a child [`PerProcess`] is made
//! anew, [`Kept`] is at worst empty and never locked by a thread that is gone, and what is done under [`no_fork`] is done
//! or not begun. Does not: see children that `vfork`, `clone` or another way around the C library's `fork` makes; they may
//! only call `exec`.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use once_cell::race::OnceBox;

/// At least the number of forks between this process and the one that loaded the library: a child's number differs from its
/// parent's.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Threads that must not be forked away.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// Whether a thread is forking.
static FORKING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How often this thread is inside; a fork of its own counts too.
    static HERE: Cell<u32> = const { Cell::new(0) };
}

/// The number of this process: see [`GENERATION`].
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Has the system call the handlers below at each fork. Called before anything that a fork could disturb.
fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if WATCHED.load(Ordering::Acquire) {
        return;
    }
    // Two threads may both come here: handlers that are called twice do no harm.
    #[cfg(unix)]
    // SAFETY: the handlers are functions of this library, which the system forgets if it unloads the library. In a child
    // they only change atomics and a plain thread-local variable.
    unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    }
    WATCHED.store(true, Ordering::Release);
}

#[cfg(unix)]
extern "C" fn before() {
    if HERE.get() == 0 {
        while FORKING.swap(true, Ordering::SeqCst) {
            std::thread::yield_now();
        }
        while INSIDE.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
    HERE.set(HERE.get() + 1);
}

#[cfg(unix)]
extern "C" fn in_parent() {
    HERE.set(HERE.get() - 1);
    if HERE.get() == 0 {
        FORKING.store(false, Ordering::SeqCst);
    }
}

#[cfg(unix)]
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    HERE.set(HERE.get() - 1);
    // Threads that were on their way in are gone.
    INSIDE.store(u32::from(HERE.get() > 0), Ordering::SeqCst);
    FORKING.store(false, Ordering::SeqCst);
}

/// No other thread can fork while this lives. For work that is short or rare and calls nothing of the user's: a fork waits
/// for it.
#[must_use]
pub(crate) struct NoFork {
    _thread: std::marker::PhantomData<*const ()>,
}

/// Holds forks of other threads back, nested calls too.
pub(crate) fn no_fork() -> NoFork {
    watch();
    if HERE.get() == 0 {
        loop {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            // A thread that forks has set this before it looks at the number.
            if !FORKING.load(Ordering::SeqCst) {
                break;
            }
            INSIDE.fetch_sub(1, Ordering::SeqCst);
            while FORKING.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
    }
    HERE.set(HERE.get() + 1);
    NoFork { _thread: std::marker::PhantomData }
}

impl Drop for NoFork {
    fn drop(&mut self) {
        HERE.set(HERE.get() - 1);
        if HERE.get() == 0 {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// As [`OnceLock::get_or_init`], in which a child would wait for ever if another thread of its parent was initializing the
/// cell at the fork.
#[inline]
pub(crate) fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match cell.get() {
        Some(made) => made,
        None => {
            let _whole = no_fork();
            cell.get_or_init(make)
        }
    }
}

/// A value that each process has for itself: a child begins with another one.
pub(crate) struct PerProcess<T> {
    /// The process that it is for.
    generation: u32,
    value: T,
    /// Those of the process's descendants. Set without waiting for anybody.
    next: OnceBox<PerProcess<T>>,
}

impl<T> PerProcess<T> {
    /// The value of the process that loads the library.
    pub(crate) const fn first(value: T) -> PerProcess<T> {
        PerProcess { generation: 0, value, next: OnceBox::new() }
    }

    /// The value of this process.
    fn new(value: T) -> PerProcess<T> {
        watch();
        PerProcess { generation: generation(), ..PerProcess::first(value) }
    }

    /// The value of this process; `make` makes it from the value of the nearest ancestor that has one.
    pub(crate) fn get(&self, make: impl Fn(&T) -> T) -> &T {
        watch();
        self.own(make)
    }

    /// As `get`, for a value that was made by [`PerProcess::new`].
    #[inline]
    fn own(&self, make: impl Fn(&T) -> T) -> &T {
        if self.generation == generation() { &self.value } else { self.later(make) }
    }

    #[cold]
    fn later(&self, make: impl Fn(&T) -> T) -> &T {
        let mut at = self;
        while at.generation != generation() {
            at = at.next.get_or_init(|| Box::new(PerProcess::new(make(&at.value))));
        }
        &at.value
    }
}

/// A locked value that a run can do without, such as a cache. A child starts with its parent's value, or with an empty one if
/// a thread of the parent held the lock at the fork.
pub(crate) struct Kept<T: Default>(PerProcess<Locked<T>>);

struct Locked<T: Default>(Mutex<T>);

impl<T: Default> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(PerProcess::new(Locked(Mutex::default())))
    }
}

impl<T: Default> Kept<T> {
    /// Locks the value. A panic elsewhere does not matter: whoever changes a kept value leaves it sound.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.own(Locked::handed_on).0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Locked<T> {
    /// The value, if it can be had now.
    fn free(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value a child starts with. If two threads of the child do this at once, one of them gets an empty value.
    fn handed_on(&self) -> Locked<T> {
        Locked(Mutex::new(self.free().map(|mut value| std::mem::take(&mut *value)).unwrap_or_default()))
    }
}

impl<T: Default> Drop for Locked<T> {
    fn drop(&mut self) {
        // Nobody else can reach the value, so a held lock belongs to a thread that does not exist in this process and may
        // have been changing the value.
        if self.free().is_none() {
            let value = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if the process had been forked.
    fn old<T>(value: T) -> PerProcess<T> {
        PerProcess { generation: generation().wrapping_sub(1), ..PerProcess::first(value) }
    }

    #[test]
    fn a_child_has_a_value_of_its_own() {
        let value = old(7);
        let made = AtomicU32::new(0);
        let make = |before: &i32| {
            made.fetch_add(1, Ordering::Relaxed);
            before + 1
        };
        let first: *const i32 = value.get(make);
        assert_eq!((value.get(make), made.load(Ordering::Relaxed)), (&8, 1));
        assert!(std::ptr::eq(first, value.get(make)));
        assert_eq!(PerProcess::new(7).get(make), &7);
    }

    #[test]
    fn a_kept_value_is_handed_on_unless_it_was_locked() {
        let kept = Kept(old(Locked(Mutex::new(vec![1, 2]))));
        assert_eq!(*kept.lock(), [1, 2]);
        kept.lock().push(3);
        assert_eq!(*kept.lock(), [1, 2, 3]);
        let kept = Kept(old(Locked(Mutex::new(vec![1, 2]))));
        std::mem::forget(kept.0.value.0.lock());
        assert!(kept.lock().is_empty());
        kept.lock().push(3);
        assert_eq!(*kept.lock(), [3]);
    }

    /// A lock whose holder is gone: its value is neither taken nor dropped.
    #[test]
    fn what_was_locked_at_the_fork_is_left_alone() {
        #[derive(Default)]
        struct Told<'a>(Option<&'a AtomicU32>);
        impl Drop for Told<'_> {
            fn drop(&mut self) {
                self.0.iter().for_each(|n| _ = n.fetch_add(1, Ordering::Relaxed));
            }
        }
        let dropped = AtomicU32::new(0);
        for locked in [false, true] {
            let kept = Kept(old(Locked(Mutex::new(Told(Some(&dropped))))));
            if locked {
                std::mem::forget(kept.0.value.0.lock());
            }
            drop(kept.lock());
            drop(kept);
            assert_eq!(dropped.load(Ordering::Relaxed), 1, "locked: {locked}");
        }
    }
}
