//! Whose processors there are, and on which one a thread wakes.
//!
//! Guarantees: where a thread may run stays as it is. Does not: keep a thread anywhere, or choose on other systems than Linux.

use std::sync::OnceLock;

use super::fork::once;

/// Whether the processors are AMD's. Asked once: under a hypervisor the answer takes microseconds.
pub(crate) fn is_amd() -> bool {
    static AMD: OnceLock<bool> = OnceLock::new();
    *once(&AMD, || {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let vendor = std::arch::x86_64::__cpuid(0);
            [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD"
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        false
    })
}

/// A thread of this process, as the system names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread(#[cfg(all(target_os = "linux", not(miri)))] libc::pid_t);

#[cfg(all(target_os = "linux", not(miri)))]
impl Thread {
    pub(crate) fn current() -> Thread {
        // SAFETY: the call takes nothing and changes nothing.
        Thread(unsafe { libc::gettid() })
    }

    /// Runs `wake`, which wakes the thread: on another processor than this one, if it may run elsewhere.
    pub(crate) fn elsewhere(self, wake: impl FnOnce()) {
        let all = self.processors();
        // SAFETY: the call takes nothing and changes nothing.
        let here =
            usize::try_from(unsafe { libc::sched_getcpu() }).ok().filter(|here| *here < libc::CPU_SETSIZE as usize);
        let moved = all.zip(here).is_some_and(|(mut others, here)| {
            // SAFETY: the processor has a place in the set.
            unsafe { libc::CPU_CLR(here, &mut others) };
            // An empty set is refused.
            self.allow(&others)
        });
        wake();
        if let Some(all) = all.filter(|_| moved) {
            self.allow(&all);
        }
    }

    /// The processors on which the thread may run, if they fit the set.
    fn processors(self) -> Option<libc::cpu_set_t> {
        // SAFETY: a set is bits, and may be empty.
        let mut all: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is of this size.
        (unsafe { libc::sched_getaffinity(self.0, size_of_val(&all), &mut all) } == 0).then_some(all)
    }

    /// Has the thread run on these processors alone; whether the system agrees.
    fn allow(self, these: &libc::cpu_set_t) -> bool {
        // SAFETY: the set is of this size; where a thread runs is no matter of memory.
        unsafe { libc::sched_setaffinity(self.0, size_of_val(these), these) == 0 }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
impl Thread {
    pub(crate) fn current() -> Thread {
        Thread()
    }

    pub(crate) fn elsewhere(self, wake: impl FnOnce()) {
        wake();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn a_thread_that_is_woken_elsewhere_may_run_where_it_might_before() {
        // A thread of its own, since where those of other tests may run must not change.
        let counted = std::thread::spawn(|| {
            // SAFETY: the set is whole.
            let count = |set: libc::cpu_set_t| unsafe { libc::CPU_COUNT(&set) };
            let (me, mut woken) = (super::Thread::current(), None);
            let before = me.processors();
            me.elsewhere(|| woken = me.processors());
            // SAFETY: the sets are whole.
            let same = before.zip(me.processors()).is_some_and(|(a, b)| unsafe { libc::CPU_EQUAL(&a, &b) });
            (same, before.map(count), woken.map(count))
        });
        let counted = counted.join();
        assert!(matches!(counted, Ok((true, Some(b), Some(w))) if w == (b - 1).max(1)), "{counted:?}");
    }
}
