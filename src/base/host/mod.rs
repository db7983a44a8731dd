//! What the process around the library does to it: sets another floating-point mode, forks.
//!
//! Guarantees: while a [`FloatMode`] lives, its thread computes in the standard mode, whatever the caller's is; what is
//! [`PerProcess`] or [`Kept`] can be used in a forked child whatever the parent's threads held at that moment; nothing
//! that is done under [`no_fork`] is half done in a child. Does not: know what is computed or kept.
//!
//! `unsafe` is allowed here because both are registers and handlers of the system.

#![allow(unsafe_code, reason = "a control register and the handlers of fork; each block has its proof")]

mod float_mode;
mod fork;

pub(crate) use float_mode::{FloatMode, in_standard_mode};
pub(crate) use fork::{Kept, NoFork, PerProcess, generation, no_fork, once};
