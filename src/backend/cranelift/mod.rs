//! Segments as loops over 128-bit vectors, by Cranelift.
//!
//! Does not: own code (`backend::code`), or know machines with AVX2 (`backend::x64`).

mod cast;
pub(crate) mod emit;
pub(crate) mod lanes;
pub(crate) mod lower;
mod parts;
