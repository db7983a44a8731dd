//! The file system calls of outputs, in one place.
//!
//! Guarantees: each function is one call of the standard library, but for what [`Behind`] does; tests can make it fail, write less than
//! requested, or be interrupted. Does not: decide anything; `output` does.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use super::behind::Behind;

/// The most bytes of one write. 2026-11-28, two cores of a virtual AMD EPYC, Linux 6.18 with ext4: 1 GiB takes 0.28 to 0.42 s in
/// writes of 64 to 256 KiB, and 1.3 to 3.2 s in most runs with writes of 512 KiB to 4 MiB, in the copy into the page cache. Why is not
/// known.
const MOST: usize = 256 << 10;

/// A file that is being written.
pub(super) struct Disk {
    file: File,
    behind: Behind,
}

impl Disk {
    /// Creates a new file. `create_new` does not follow symlinks.
    pub(super) fn create(path: &Path) -> io::Result<Disk> {
        before()?;
        OpenOptions::new().write(true).create_new(true).open(path).map(|file| Disk { file, behind: Behind::default() })
    }

    /// Syncs the bytes to disk.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        before()?;
        self.behind.end()?;
        self.file.sync_all()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        before()?;
        let written = self.file.write(&bytes[..at_most(bytes.len().min(MOST))?])?;
        self.behind.written(&self.file, written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        before()?;
        self.file.seek(to)
    }
}

/// Creates a folder, whose name must be unused.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    before()?;
    std::fs::create_dir(path)
}

/// Renames a file or a folder and replaces any file with the new name.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    before()?;
    std::fs::rename(from, to)
}

/// Gives a file a second name, which must be unused.
pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
    before()?;
    std::fs::hard_link(from, to)
}

/// Removes an old file to make room for a new one. (Leftover files are removed without this function, because that
/// fails only after something else has failed.)
pub(super) fn remove(path: &Path) -> io::Result<()> {
    before()?;
    std::fs::remove_file(path)
}

/// Makes the names in a directory durable. `None` if the directory can't be opened.
pub(super) fn sync_directory(path: &Path) -> Option<io::Result<()>> {
    let directory = File::open(path).ok()?;
    Some(before().and_then(|()| directory.sync_all()))
}

#[cfg(not(test))]
fn before() -> io::Result<()> {
    Ok(())
}

#[cfg(not(test))]
fn at_most(bytes: usize) -> io::Result<usize> {
    Ok(bytes)
}

#[cfg(test)]
pub(super) use faults::{Plan, with};
#[cfg(test)]
use faults::{at_most, before};

#[cfg(test)]
mod faults {
    use super::*;
    use std::cell::RefCell;

    /// The faults to inject on this thread.
    #[derive(Clone, Copy, Debug, Default)]
    pub(in crate::io) struct Plan {
        /// The call that fails, counted from 0.
        pub(in crate::io) fails: Option<usize>,
        /// Whether all later calls fail too.
        pub(in crate::io) persists: bool,
        /// The maximum number of bytes per write; if set, every second write is interrupted as well.
        pub(in crate::io) short: Option<usize>,
        /// The number of calls so far.
        pub(in crate::io) calls: usize,
    }

    thread_local! {
        static PLAN: RefCell<Plan> = RefCell::default();
    }

    /// Runs `act` under a plan; also returns whether the call that was to fail was made.
    pub(in crate::io) fn with<T>(plan: Plan, act: impl FnOnce() -> T) -> (T, bool) {
        PLAN.set(plan);
        let made = act();
        let calls = PLAN.take().calls;
        (made, plan.fails.is_some_and(|n| calls > n))
    }

    pub(super) fn before() -> io::Result<()> {
        PLAN.with_borrow_mut(|p| {
            let n = p.calls;
            p.calls += 1;
            match p.fails {
                Some(at) if n == at || n > at && p.persists => Err(io::ErrorKind::StorageFull.into()),
                _ => Ok(()),
            }
        })
    }

    pub(super) fn at_most(bytes: usize) -> io::Result<usize> {
        PLAN.with_borrow(|p| match p.short {
            Some(_) if p.calls % 2 == 0 => Err(io::ErrorKind::Interrupted.into()),
            most => Ok(bytes.min(most.unwrap_or(usize::MAX))),
        })
    }
}
