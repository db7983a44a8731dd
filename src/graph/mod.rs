//! What users write and its typed form: variables, programs, typed programs, their nodes, passes over these, composed losses.
//!
//! Does not: decide dtypes (`promotion`), infer (`analysis`), or compute.

pub(crate) mod generators;
pub(crate) mod losses;
pub(crate) mod program;
pub(crate) mod rewrite;
pub(crate) mod typed;
pub(crate) mod var;
pub(crate) mod view;
pub(crate) mod views;
