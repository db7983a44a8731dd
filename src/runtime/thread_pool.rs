//! The threads that share a launch: helpers of the process that wait for work by spinning a while, then sleeping.
//!
//! Guarantees: [`share`] and [`sweep`] return when every part has been done, each exactly once; if a part panics, those
//! taken with it are counted as done and the panic goes on in the caller; nested and concurrent calls never wait for each
//! other: one has the helpers, the others use a pool of rayon's. A forked child has helpers of its own; there, the others
//! compute alone. Does not: promise an order of the parts.
//!
//! Why not rayon alone: waking its threads from outside costs 11 to 16 µs, handing work to a spinning helper below 1.

#![allow(unsafe_code, reason = "kernels read and write raw runs of elements; each block has its proof")]

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use crate::base::host::{self, Apart, FloatMode, PerProcess, generation};

/// How long a helper spins before it sleeps: longer than the pause between two runs of a loop that calls them.
const SPIN: Duration = Duration::from_micros(50);

/// A borrowed closure as the helpers see it.
type Work<'a> = &'a (dyn Fn(usize) + Sync + 'a);

/// Parts of a job at most: they are counted in 16 bits of the ticket.
const MAX_PARTS: usize = 1 << 15;

/// A helper thread.
struct Helper {
    thread: Thread,
    /// Known before it sleeps for the first time.
    known: OnceLock<host::Thread>,
    asleep: AtomicBool,
}

impl Helper {
    /// Wakes the helper, on another processor than the caller's. On some virtual machines Linux wakes a thread where the caller runs, and there
    /// it waits for the end of the caller's time slice: two threads then took as long as one (2026-11-28, two cores of a virtual AMD EPYC, Linux
    /// 6.18: the helper waited 24 to 34 of 40 ms).
    fn wake(&self) {
        match self.known.get() {
            Some(known) => known.elsewhere(|| self.thread.unpark()),
            None => self.thread.unpark(),
        }
    }
}

struct Team {
    /// Epoch of the job (32 bits), end of the parts that are left (16), their begin (16). The caller takes from the
    /// front and helpers from the back, so that in run after run a core meets the data it has in its caches.
    ticket: Apart<AtomicU64>,
    /// The closure of the job: where the caller's [`Work`] is. Valid while a part of the ticket's epoch is undone.
    work: AtomicPtr<()>,
    done: Apart<AtomicUsize>,
    panicked: AtomicBool,
    /// The helpers from this one on leave the job alone.
    limit: AtomicUsize,
    helpers: OnceLock<Vec<Helper>>,
    /// Held by the call that has the helpers.
    lead: Mutex<()>,
}

static TEAM: PerProcess<Team> = PerProcess::first(Team::new());

fn team() -> &'static Team {
    TEAM.get(|_| Team::new())
}

/// Runs `work(0)`, …, `work(parts - 1)` on up to `threads` threads, this one among them.
pub(crate) fn share(parts: usize, threads: usize, work: Work<'_>) {
    if parts <= 1 || threads <= 1 {
        (0..parts).for_each(work);
        return;
    }
    let team = team();
    let lead = match team.lead.try_lock() {
        Ok(lead) => Some(lead),
        // A job that panicked has been waited for to its end.
        Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    match lead {
        Some(_lead) if parts <= MAX_PARTS => team.lead(parts, threads - 1, work),
        _ => {
            let next = AtomicUsize::new(0);
            let take = || {
                // A pool's thread has the mode of the thread that started it.
                let _standard = FloatMode::standard();
                while let Some(part) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|p| *p < parts) {
                    work(part);
                }
            };
            let helped = threads.min(parts) - 1;
            match pool() {
                Some(Pool::Callers) => rayon::scope(|s| together(s, helped, &take)),
                Some(Pool::Own(pool)) => pool.in_place_scope(|s| together(s, helped, &take)),
                None => take(),
            }
        }
    }
}

/// Has `work` done by this thread and as many others of a pool.
fn together<'a>(scope: &rayon::Scope<'a>, others: usize, work: &'a (dyn Fn() + Sync)) {
    (0..others).for_each(|_| scope.spawn(|_| work()));
    work();
}

/// As [`share`], but every second time each thread goes through its part of the parts from the end to the beginning: so
/// that what goes through memory begins where the last such call ended, with what that left in the caches.
pub(crate) fn sweep(parts: usize, threads: usize, work: Work<'_>) {
    static BACK: AtomicBool = AtomicBool::new(false);
    if BACK.fetch_xor(true, Ordering::Relaxed) {
        share(parts, threads, &|i| work(turned(i, parts, threads)));
    } else {
        share(parts, threads, work);
    }
}

/// The part that is done in place of part `i` on the way back. The caller takes its parts from the front and the helpers
/// theirs from the back; each turns in its own.
fn turned(i: usize, parts: usize, threads: usize) -> usize {
    let first = parts / threads.max(1);
    if i < first { first - 1 - i } else { parts - 1 - (i - first) }
}

/// Threads of rayon's.
enum Pool {
    /// The caller is one of them.
    Callers,
    Own(&'static ThreadPool),
}

/// Who helps a call that finds the helpers busy. Not rayon's global pool, which would be a dead one if the process had been
/// forked before it came to us; and none in a child that we know of: the caller's is then dead too, and rayon may have been
/// starting threads at the fork.
fn pool() -> Option<Pool> {
    static OWN: OnceLock<Option<ThreadPool>> = OnceLock::new();
    if generation() > 0 {
        return None;
    }
    if rayon::current_thread_index().is_some() {
        return Some(Pool::Callers);
    }
    // The system may refuse threads.
    OWN.get_or_init(|| rayon::ThreadPoolBuilder::new().build().ok()).as_ref().map(Pool::Own)
}

/// Counts parts as done even if one panics.
struct Done<'a> {
    team: &'a Team,
    parts: usize,
    /// Whether the thread was unwinding before the part began: a run in a destructor. That is no panic of the part.
    unwinding: bool,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.unwinding {
            self.team.panicked.store(true, Ordering::Relaxed);
        }
        self.team.done.0.fetch_add(self.parts, Ordering::Release);
    }
}

/// The parts that a ticket has left, if there are any.
fn left(ticket: u64) -> Option<(usize, usize)> {
    let (first, end) = ((ticket & 0xffff) as usize, (ticket >> 16 & 0xffff) as usize);
    (first < end).then_some((first, end))
}

impl Team {
    const fn new() -> Team {
        Team {
            ticket: Apart(AtomicU64::new(0)),
            work: AtomicPtr::new(std::ptr::null_mut()),
            done: Apart(AtomicUsize::new(0)),
            panicked: AtomicBool::new(false),
            limit: AtomicUsize::new(0),
            helpers: OnceLock::new(),
            lead: Mutex::new(()),
        }
    }

    /// Offers the parts to the helpers and takes part. The caller holds the lead.
    fn lead(&'static self, parts: usize, helpers: usize, work: Work<'_>) {
        let all = self.helpers.get_or_init(|| start(self));
        self.done.0.store(0, Ordering::Relaxed);
        self.limit.store(helpers, Ordering::Relaxed);
        // A caller that panicked itself has left the flag.
        self.panicked.store(false, Ordering::Relaxed);
        let epoch = (self.ticket.0.load(Ordering::Relaxed) >> 32).wrapping_add(1) & 0xffff_ffff;
        self.work.store((&raw const work).cast_mut().cast(), Ordering::Relaxed);
        self.ticket.0.store(epoch << 32 | (parts as u64) << 16, Ordering::SeqCst);
        for h in all.iter().take(helpers) {
            if h.asleep.load(Ordering::SeqCst) {
                h.wake();
            }
        }
        let wait = Wait { team: self, parts };
        while self.take(true) {}
        drop(wait);
        if self.panicked.swap(false, Ordering::Relaxed) {
            // Parts run kernels, which do not panic; if one did, its results are not to be used.
            std::panic::resume_unwind(Box::new("a part of a run panicked"));
        }
    }

    /// Does some parts of the present job, if any are left: half of this thread's share of them, so that the ticket,
    /// which every taking moves from core to core, is not asked for each, and all threads end together.
    fn take(&self, front: bool) -> bool {
        let mut seen = self.ticket.0.load(Ordering::Acquire);
        while let Some((first, end)) = left(seen) {
            let threads = self.limit.load(Ordering::Relaxed).min(MAX_PARTS) + 1;
            let n = ((end - first) / (2 * threads)).max(1);
            let (part, after) = if front { (first, seen + n as u64) } else { (end - n, seen - ((n as u64) << 16)) };
            match self.ticket.0.compare_exchange_weak(seen, after, Ordering::AcqRel, Ordering::Acquire) {
                Err(now) => seen = now,
                Ok(_) => {
                    let _done = Done { team: self, parts: n, unwinding: std::thread::panicking() };
                    let work = self.work.load(Ordering::Relaxed).cast::<Work<'_>>();
                    // SAFETY: the exchange took parts of the job whose ticket was current, and that job's caller
                    // stays in `lead`, where the closure lives, until these parts are counted as done. The pointer was
                    // stored before the ticket, which the exchange has acquired.
                    (part..part + n).for_each(|part| unsafe { (*work)(part) });
                    return true;
                }
            }
        }
        false
    }
}

/// Waits until all parts are done when it is dropped, a panic of the caller's own part included: the closure must
/// outlive the helpers' use of it.
struct Wait<'a> {
    team: &'a Team,
    parts: usize,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        // What a panic left is taken here, so that every part is counted.
        while std::thread::panicking() && self.team.skip() {}
        let mut turns = 0u32;
        while self.team.done.0.load(Ordering::Acquire) < self.parts {
            turns += 1;
            // The core may be needed by the helper that this waits for.
            if turns.is_multiple_of(4096) {
                std::thread::yield_now();
            }
        }
    }
}

impl Team {
    /// Counts one part that nobody will do.
    fn skip(&self) -> bool {
        let seen = self.ticket.0.load(Ordering::Acquire);
        if left(seen).is_none() {
            return false;
        }
        if self.ticket.0.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.done.0.fetch_add(1, Ordering::Release);
        }
        true
    }
}

/// Starts the helpers: one fewer than the machine has cores.
fn start(team: &'static Team) -> Vec<Helper> {
    let count = std::thread::available_parallelism().map_or(1, |n| n.get()).saturating_sub(1).min(255);
    let mut all = Vec::with_capacity(count);
    for i in 0..count {
        let named = std::thread::Builder::new().name(format!("castwise-{i}"));
        // Without helpers the caller does all parts.
        let Ok(handle) = named.spawn(move || help(team, i)) else { break };
        all.push(Helper { thread: handle.thread().clone(), known: OnceLock::new(), asleep: AtomicBool::new(false) });
    }
    all
}

/// The life of helper `i`.
fn help(team: &'static Team, i: usize) {
    // A thread begins in the mode of the one that started it.
    let _standard = FloatMode::standard();
    let mut idle = Instant::now();
    let mut turns = 0u32;
    loop {
        // A panic of a part is told to the caller; the helper goes on.
        match std::panic::catch_unwind(|| i < team.limit.load(Ordering::Relaxed) && team.take(false)) {
            Ok(false) => {}
            _ => {
                (idle, turns) = (Instant::now(), 0);
                continue;
            }
        }
        // No `spin_loop` here or above: hypervisors take a core away for microseconds that they see pausing.
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(64) && idle.elapsed() > SPIN {
            if let Some(me) = team.helpers.get().and_then(|all| all.get(i)) {
                me.known.get_or_init(host::Thread::current);
                me.asleep.store(true, Ordering::SeqCst);
                let seen = team.ticket.0.load(Ordering::SeqCst);
                // A caller that did not see the flag has stored its ticket before this look at it.
                if left(seen).is_none() {
                    std::thread::park();
                }
                me.asleep.store(false, Ordering::SeqCst);
            } else {
                std::thread::yield_now();
            }
            idle = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_once_nested_and_concurrent() {
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for parts in [0, 1, 2, 7, 300] {
                        let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                        share(parts, 3, &|i| {
                            counts[i].fetch_add(1, Ordering::Relaxed);
                            let inner = AtomicUsize::new(0);
                            share(3, 2, &|_| {
                                inner.fetch_add(1, Ordering::Relaxed);
                            });
                            assert_eq!(inner.into_inner(), 3);
                        });
                        assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
                    }
                });
            }
        });
    }

    #[test]
    fn both_ways_of_a_sweep_do_every_part_once() {
        for (parts, threads) in [(0, 1), (1, 1), (7, 1), (8, 2), (9, 2), (300, 2), (300, 3), (2, 3)] {
            let mut all: Vec<usize> = (0..parts).map(|i| turned(i, parts, threads)).collect();
            assert!(threads > 1 || all.iter().rev().copied().eq(0..parts));
            all.sort_unstable();
            assert!(all.into_iter().eq(0..parts), "{parts} parts, {threads} threads");
            for _ in 0..2 {
                let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                sweep(parts, threads, &|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_destructor_of_an_unwinding_thread_can_share_work() {
        struct Late<'a>(&'a AtomicUsize);
        impl Drop for Late<'_> {
            fn drop(&mut self) {
                share(300, 2, &|_| {
                    self.0.fetch_add(1, Ordering::Relaxed);
                });
            }
        }
        let sum = AtomicUsize::new(0);
        let caught = std::panic::catch_unwind(|| {
            let _late = Late(&sum);
            std::panic::resume_unwind(Box::new("first"));
        });
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"first"));
        assert_eq!(sum.into_inner(), 300);
    }

    #[test]
    fn a_panic_in_a_part_reaches_the_caller_and_leaves_the_team_usable() {
        for at in 0..8 {
            let caught = std::panic::catch_unwind(|| {
                share(8, 2, &|i| assert!(i != at, "part {at} fails"));
            });
            assert!(caught.is_err());
            let sum = AtomicUsize::new(0);
            share(8, 2, &|i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 28);
        }
    }
}
