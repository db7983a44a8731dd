//! Conversions from and to other crates' types, each behind the feature named after the crate.
//!
//! Guarantees: without the feature, the crate is not compiled. Does not: add capabilities that the public types lack
//! without it.

#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "serde")]
mod serde;
