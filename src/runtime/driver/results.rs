//! Where threads write results.
//!
//! Guarantees: a pointer that threads may share. Does not: keep their parts apart; whoever writes proves that.

/// Memory of results.
pub(super) struct Results<T>(*mut T);

// SAFETY: threads share the pointer alone; each write through it has its own proof that no other thread touches the place.
unsafe impl<T: Send> Sync for Results<T> {}

impl<T> Results<T> {
    pub(super) fn new(all: &mut [T]) -> Results<T> {
        Results(all.as_mut_ptr())
    }

    /// The place of a result.
    ///
    /// # Safety
    /// It lies inside the memory, or at its end.
    pub(super) unsafe fn at(&self, i: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(i) }
    }
}
