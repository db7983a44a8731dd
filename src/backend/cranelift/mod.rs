//! The Cranelift back end: segments as loops over 128-bit vectors.
//!
//! Does not: own code (`backend::code`), or serve machines with AVX2 (`backend::x64` does).

mod cast;
pub(crate) mod emit;
pub(crate) mod lanes;
pub(crate) mod listing;
pub(crate) mod lower;
mod parts;
