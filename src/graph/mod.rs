//! What users write and its typed form: variables, programs, typed programs, their nodes, passes over these, losses and other composites.
//!
//! Does not: decide dtypes (`promotion`), infer (`analysis`), or compute.

pub(crate) mod composites;
pub(crate) mod generators;
mod label;
pub(crate) mod losses;
mod mode;
pub(crate) mod optimizers;
pub(crate) mod program;
pub(crate) mod rewrite;
pub(crate) mod typed;
pub(crate) mod var;
mod verify;
pub(crate) mod view;
pub(crate) mod views;
