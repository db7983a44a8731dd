//! Programs as text: expressions, and the text format of programs.
//!
//! Does not: infer or compute.

pub mod expr;
pub(crate) mod text;
