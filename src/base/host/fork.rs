//! Forks of the process.
//!
//! In the child of a `fork` only the thread that called it exists. A lock that another thread held stays locked
//! forever, the value behind it may be half written, and helper threads are gone. Guarantees: in a child, a
//! [`PerProcess`] value is created anew; a [`Kept`] value is inherited or empty, and never locked by a thread that is
//! gone; work under [`no_fork`] is either finished or not begun. Does not: see children made by `vfork`, `clone` or
//! anything else that bypasses the C library's `fork`; they may only call `exec`.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use once_cell::race::OnceBox;

/// Distinguishes a child from its parent: incremented in every child. At least the number of forks between this process
/// and the one that loaded the library.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The number of threads that hold a [`NoFork`].
static HOLDERS: AtomicU32 = AtomicU32::new(0);

/// Whether a fork is in progress.
static FORKING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The nesting depth of this thread's [`NoFork`] guards; its own fork counts as one.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// The generation of this process: see [`GENERATION`].
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Registers the handlers below with the system. Called before anything that a fork could disturb.
fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if WATCHED.load(Ordering::Acquire) {
        return;
    }
    // Two threads may both get here; registering the handlers twice is harmless.
    #[cfg(unix)]
    // SAFETY: the handlers are functions of this library, and the system unregisters them if it unloads the library. In
    // a child they only change atomics and a plain thread-local variable.
    unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    }
    WATCHED.store(true, Ordering::Release);
}

#[cfg(unix)]
extern "C" fn before() {
    if DEPTH.get() == 0 {
        while FORKING.swap(true, Ordering::SeqCst) {
            std::thread::yield_now();
        }
        while HOLDERS.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
    DEPTH.set(DEPTH.get() + 1);
}

#[cfg(unix)]
extern "C" fn in_parent() {
    DEPTH.set(DEPTH.get() - 1);
    if DEPTH.get() == 0 {
        FORKING.store(false, Ordering::SeqCst);
    }
}

#[cfg(unix)]
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    DEPTH.set(DEPTH.get() - 1);
    // The other threads that were counted do not exist in the child.
    HOLDERS.store(u32::from(DEPTH.get() > 0), Ordering::SeqCst);
    FORKING.store(false, Ordering::SeqCst);
}

/// A guard: no other thread can fork while it lives. For work that is short or rare and calls no user code, because a
/// fork waits for it.
#[must_use]
pub(crate) struct NoFork {
    _thread: std::marker::PhantomData<*const ()>,
}

/// Blocks forks of other threads. Calls may be nested.
pub(crate) fn no_fork() -> NoFork {
    watch();
    if DEPTH.get() == 0 {
        loop {
            HOLDERS.fetch_add(1, Ordering::SeqCst);
            // A forking thread sets this flag before it reads the count.
            if !FORKING.load(Ordering::SeqCst) {
                break;
            }
            HOLDERS.fetch_sub(1, Ordering::SeqCst);
            while FORKING.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    NoFork { _thread: std::marker::PhantomData }
}

impl Drop for NoFork {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            HOLDERS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Like [`OnceLock::get_or_init`], but safe across forks: with the latter, a child would wait forever if another thread
/// of its parent was initializing the cell at the fork.
#[inline]
pub(crate) fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match cell.get() {
        Some(made) => made,
        None => {
            let _guard = no_fork();
            cell.get_or_init(make)
        }
    }
}

/// A value that each process has one of: a child starts with a new one.
pub(crate) struct PerProcess<T> {
    /// The generation of the process that owns the value.
    generation: u32,
    value: T,
    /// The values of the process's descendants. Setting it never blocks.
    next: OnceBox<PerProcess<T>>,
}

impl<T> PerProcess<T> {
    /// The value of the process that loaded the library.
    pub(crate) const fn first(value: T) -> PerProcess<T> {
        PerProcess { generation: 0, value, next: OnceBox::new() }
    }

    /// A value that this process owns.
    fn new(value: T) -> PerProcess<T> {
        watch();
        PerProcess { generation: generation(), ..PerProcess::first(value) }
    }

    /// The value of this process; `make` creates it from the value of the nearest ancestor that has one.
    pub(crate) fn get(&self, make: impl Fn(&T) -> T) -> &T {
        watch();
        self.own(make)
    }

    /// Like `get`, for a value that was created by [`PerProcess::new`].
    #[inline]
    fn own(&self, make: impl Fn(&T) -> T) -> &T {
        if self.generation == generation() { &self.value } else { self.descendant(make) }
    }

    #[cold]
    fn descendant(&self, make: impl Fn(&T) -> T) -> &T {
        let mut at = self;
        while at.generation != generation() {
            at = at.next.get_or_init(|| Box::new(PerProcess::new(make(&at.value))));
        }
        &at.value
    }
}

/// A locked value that can be discarded, such as a cache. A child starts with its parent's value, or with an empty one
/// if a thread of the parent held the lock at the fork.
pub(crate) struct Kept<T: Default>(PerProcess<Locked<T>>);

struct Locked<T: Default>(Mutex<T>);

impl<T: Default> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(PerProcess::new(Locked(Mutex::default())))
    }
}

impl<T: Default> Kept<T> {
    /// Locks the value. A poisoned lock does not matter: code that changes a kept value leaves it valid at every point.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.own(Locked::inherited).0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Locked<T> {
    /// The locked value, unless a thread holds the lock.
    fn lock_if_free(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value that a child starts with. If two threads of the child call this at once, one of them gets an empty
    /// value.
    fn inherited(&self) -> Locked<T> {
        Locked(Mutex::new(self.lock_if_free().map(|mut value| std::mem::take(&mut *value)).unwrap_or_default()))
    }
}

impl<T: Default> Drop for Locked<T> {
    fn drop(&mut self) {
        // Nobody else can access the value here, so if the lock is held, its holder is a thread that does not exist in
        // this process and may have been changing the value. Forget it.
        if self.lock_if_free().is_none() {
            let value = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of a parent process.
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
    fn a_kept_value_is_inherited_unless_it_was_locked() {
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

    /// If the lock's holder is gone, the value is neither taken nor dropped.
    #[test]
    fn what_was_locked_at_the_fork_is_left_alone() {
        #[derive(Default)]
        struct CountDrops<'a>(Option<&'a AtomicU32>);
        impl Drop for CountDrops<'_> {
            fn drop(&mut self) {
                self.0.iter().for_each(|n| _ = n.fetch_add(1, Ordering::Relaxed));
            }
        }
        let dropped = AtomicU32::new(0);
        for locked in [false, true] {
            let kept = Kept(old(Locked(Mutex::new(CountDrops(Some(&dropped))))));
            if locked {
                std::mem::forget(kept.0.value.0.lock());
            }
            drop(kept.lock());
            drop(kept);
            assert_eq!(dropped.load(Ordering::Relaxed), 1, "locked: {locked}");
        }
    }
}
