//! `--fix`: a small set of casts that brings an expression's error under a tolerance, or leaves nothing that `--deny` refuses.
//!
//! Guarantees: the new expression has the result dtypes of the old one, and differs from it by casts alone; its error is
//! measured against the old one in f64. What can't be reached is said with its reason. Does not: change ops or settings.

mod case;
mod edits;
mod goal;
#[allow(dead_code, reason = "the Python module calls it, the binary does not")]
pub(crate) mod library;
mod run;
mod search;
mod told;

pub(crate) use goal::Goal;
pub(super) use run::{eval, explain};

#[cfg(test)]
mod tests;
