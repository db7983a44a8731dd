//! Threads that another library of the process lends for the parts of a launch.
//!
//! Two libraries with helpers that spin while they wait take each other's cores. A process that has a pool of threads may have
//! castwise's runs take those.
//!
//! Guarantees: every part is done once, whatever the lender does; a part that panics lets the others be done, and the panic goes
//! on in the caller, not in a thread that is lent; a forked child has none of them. Does not: choose who lends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use super::ticket::{Work, take, ticket};
use crate::base::host::{FloatMode, generation};

/// How threads of another library are used. See [`use_threads_of`].
#[derive(Clone, Copy, Debug)]
pub struct ForeignThreads {
    /// How many threads the library would use for a call of this thread, the caller's included.
    pub most: fn() -> usize,
    /// Calls the function on up to so many threads, the caller's among them, and returns when all have returned. Fewer are
    /// no error; what is left then is done by the caller.
    pub call: fn(usize, &(dyn Fn() + Sync)),
}

static FOREIGN: OnceLock<ForeignThreads> = OnceLock::new();

/// Has every later run of this process take the threads of another library instead of castwise's own, at most as many as the
/// library and the executor allow. The first caller decides: `false` says that there are such threads already. Results do not
/// depend on it.
///
/// ```
/// use castwise::ForeignThreads;
///
/// // A library that has no threads: everything runs in the caller.
/// let alone = ForeignThreads { most: || 1, call: |_, body| body() };
/// assert!(castwise::use_threads_of(alone));
/// assert!(!castwise::use_threads_of(alone));
/// ```
pub fn use_threads_of(library: ForeignThreads) -> bool {
    FOREIGN.set(library).is_ok()
}

/// The threads that are lent, if there are any: a fork leaves them behind.
pub(super) fn present() -> Option<&'static ForeignThreads> {
    FOREIGN.get().filter(|_| generation() == 0)
}

/// Runs the parts on up to `threads` threads of the library.
pub(super) fn share(foreign: &ForeignThreads, parts: usize, threads: usize, work: Work<'_>) {
    let threads = threads.min((foreign.most)()).min(parts);
    if threads <= 1 {
        (0..parts).for_each(work);
        return;
    }
    let (caller, left) = (thread::current().id(), AtomicU64::new(ticket(0, parts)));
    let panicked: Mutex<Option<Box<dyn Any + Send>>> = Mutex::new(None);
    let body = || {
        let _standard = FloatMode::standard();
        let front = thread::current().id() == caller;
        while let Some(taken) = take(&left, threads, front) {
            for part in taken {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(part))) {
                    *panicked.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
                }
            }
        }
    };
    (foreign.call)(threads, &body);
    body();
    if let Some(panic) = panicked.into_inner().unwrap_or_else(PoisonError::into_inner) {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A library with as many threads as it is asked for.
    const SCOPED: ForeignThreads = ForeignThreads {
        most: || 3,
        call: |n, body| {
            thread::scope(|s| {
                (1..n).for_each(|_| drop(s.spawn(body)));
                body();
            });
        },
    };

    #[test]
    fn every_part_is_done_once() {
        let lazy = ForeignThreads { call: |_, _| {}, ..SCOPED };
        for foreign in [SCOPED, lazy] {
            for (parts, threads) in [(2, 2), (7, 3), (300, 8), (1 << 15, 3)] {
                let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                share(&foreign, parts, threads, &|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1), "{parts} parts, {threads} threads");
            }
        }
    }

    #[test]
    fn a_panic_goes_on_in_the_caller_when_all_parts_are_done() {
        let done = AtomicUsize::new(0);
        let caught = catch_unwind(|| {
            share(&SCOPED, 100, 3, &|i| {
                done.fetch_add(1, Ordering::Relaxed);
                assert!(i != 60, "part {i} fails");
            });
        });
        let message = caught.unwrap_err();
        assert_eq!(message.downcast_ref::<String>().map(String::as_str), Some("part 60 fails"));
        assert_eq!(done.into_inner(), 100);
    }

    #[test]
    fn the_library_says_how_many_threads() {
        let one = ForeignThreads { most: || 1, call: |_, _| panic!("more than one thread was asked for") };
        let done = AtomicUsize::new(0);
        share(&one, 5, 4, &|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.into_inner(), 5);
    }
}
