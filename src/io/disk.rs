//! What outputs ask the system for, in one place.
//!
//! Guarantees: each request is one call of the standard library; in tests it can be made to fail, to write less than
//! was asked, or to be interrupted. Does not: decide anything; `output` does.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// A file that is being written.
pub(super) struct Disk(File);

impl Disk {
    /// A new file. `create_new` follows no link that somebody else has put there.
    pub(super) fn create(path: &Path) -> io::Result<Disk> {
        before()?;
        OpenOptions::new().write(true).create_new(true).open(path).map(Disk)
    }

    /// Brings the bytes to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        before()?;
        self.0.sync_all()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        before()?;
        self.0.write(&bytes[..at_most(bytes.len())?])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        before()?;
        self.0.seek(to)
    }
}

/// Gives a file another name, in place of what has that name.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    before()?;
    std::fs::rename(from, to)
}

/// Gives a file a second name, which nothing may have.
pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
    before()?;
    std::fs::hard_link(from, to)
}

/// Removes what stands in the way of a new file. (What is left over is removed without asking here: that may fail only
/// together with something else.)
pub(super) fn remove(path: &Path) -> io::Result<()> {
    before()?;
    std::fs::remove_file(path)
}

/// Makes the names in a directory durable. `None` if it can't be opened for that.
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

    /// What goes wrong on this thread.
    #[derive(Clone, Copy, Debug, Default)]
    pub(in crate::io) struct Plan {
        /// The request that fails, counted from 0.
        pub(in crate::io) fails: Option<usize>,
        /// Whether all that follow fail too.
        pub(in crate::io) goes_on: bool,
        /// The most bytes that one write takes; and every second write is interrupted.
        pub(in crate::io) short: Option<usize>,
        /// Requests so far.
        pub(in crate::io) asked: usize,
    }

    thread_local! {
        static PLAN: RefCell<Plan> = RefCell::default();
    }

    /// Does something under a plan; answers whether the request that was to fail was made.
    pub(in crate::io) fn with<T>(plan: Plan, act: impl FnOnce() -> T) -> (T, bool) {
        PLAN.set(plan);
        let made = act();
        let asked = PLAN.take().asked;
        (made, plan.fails.is_some_and(|n| asked > n))
    }

    pub(super) fn before() -> io::Result<()> {
        PLAN.with_borrow_mut(|p| {
            let n = p.asked;
            p.asked += 1;
            match p.fails {
                Some(at) if n == at || n > at && p.goes_on => Err(io::ErrorKind::StorageFull.into()),
                _ => Ok(()),
            }
        })
    }

    pub(super) fn at_most(bytes: usize) -> io::Result<usize> {
        PLAN.with_borrow(|p| match p.short {
            Some(_) if p.asked % 2 == 0 => Err(io::ErrorKind::Interrupted.into()),
            most => Ok(bytes.min(most.unwrap_or(usize::MAX))),
        })
    }
}
