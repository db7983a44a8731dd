//! The foundation of the crate: dtypes, scalars, errors, source locations, limits, shapes, cancellation, trace spans, the host
//! process.
//!
//! Guarantees: imports no other folder of the crate. Does not: know ops, tensors or programs.

pub(crate) mod blocks;
pub(crate) mod cancel;
pub(crate) mod composite;
pub(crate) mod dtype;
pub(crate) mod dtype_names;
pub(crate) mod error;
pub(crate) mod f8;
mod float_limits;
pub(crate) mod generator;
pub(crate) mod halves;
pub(crate) mod host;
pub(crate) mod indexing;
pub(crate) mod limits;
pub(crate) mod location;
pub(crate) mod names;
#[cfg(test)]
pub(crate) mod random;
pub(crate) mod room;
pub(crate) mod scalar;
pub mod shape;
pub(crate) mod trace;
pub(crate) mod view;
