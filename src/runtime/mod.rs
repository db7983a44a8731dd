//! Runs plans on data: the driver of loops, the thread pool, launches, and the two modes.
//!
//! Does not: decide dtypes, fuse, or make machine code.

mod constructors;
pub(crate) mod driver;
pub(crate) mod eager;
pub(crate) mod executor;
mod launch;
mod thread_pool;
