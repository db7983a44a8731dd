//! Other crates' types in and out, each behind the feature of its name.
//!
//! Guarantees: without the feature, nothing of the crate is compiled. Does not: add anything that the public types
//! do not have without it.

#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "serde")]
mod serde;
