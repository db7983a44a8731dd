//! What is around the library: state of the process that can change under it (the floating-point mode, forks, and where threads run), the
//! processors' vendor; and values by thread.
//!
//! Guarantees: while a [`FloatMode`] lives, its thread computes in the standard mode, whatever the caller's is;
//! [`PerProcess`] and [`Kept`] values can be used in a forked child, whatever locks the parent's threads held at the
//! fork; work under [`no_fork`] is never half done in a child. Does not: know what is computed or kept.
//!
//! `unsafe` is allowed here for access to a control register, for the registration of fork handlers, and to ask and say where a thread runs.

#![allow(unsafe_code, reason = "a control register, fork handlers and processors; each block has its proof")]

mod float_mode;
mod fork;
mod per_thread;
mod processor;

pub(crate) use float_mode::{FloatMode, in_standard_mode};
pub(crate) use fork::{Kept, NoFork, PerProcess, generation, no_fork, once};
pub(crate) use per_thread::{Apart, PerThread, SHARES};

pub(crate) use processor::{Thread, is_amd};

/// Bytes of a cache line.
pub(crate) const CACHE_LINE: usize = 64;
