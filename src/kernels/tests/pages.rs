//! Memory between guard pages, for tests: an access out of bounds ends the process.
//!
//! Guarantees: the page before the bytes of [`Guarded::start`] and the page after those of [`Guarded::end`] are
//! inaccessible. Does not: exist outside tests.

#![cfg(unix)]

use memmap2::{MmapMut, MmapOptions};

/// At least the size of a page on every supported system.
const PAGE: usize = 64 << 10;

/// Accessible bytes with an inaccessible page before and after them.
pub(crate) struct Guarded {
    map: MmapMut,
    size: usize,
}

impl Guarded {
    /// At least `bytes` bytes, rounded up to whole pages.
    pub(crate) fn new(bytes: usize) -> Guarded {
        let size = bytes.next_multiple_of(PAGE);
        let mut map = MmapOptions::new().len(size + 2 * PAGE).map_anon().unwrap();
        for at in [0, PAGE + size] {
            let page = map.as_mut_ptr().wrapping_add(at);
            // SAFETY: the page lies in the mapping, which this value owns, and nothing reads or writes it later.
            assert_eq!(unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_NONE) }, 0);
        }
        Guarded { map, size }
    }

    /// All accessible bytes.
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.map[PAGE..][..self.size]
    }

    /// The first `n` bytes, directly after an inaccessible page, and the bytes after them.
    pub(crate) fn start(&mut self, n: usize) -> (&mut [u8], &mut [u8]) {
        self.bytes().split_at_mut(n)
    }

    /// The bytes before the last `n` bytes, and the last `n`, directly before an inaccessible page.
    pub(crate) fn end(&mut self, n: usize) -> (&mut [u8], &mut [u8]) {
        let before = self.size - n;
        self.bytes().split_at_mut(before)
    }
}
