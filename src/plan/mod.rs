//! From a typed program to what is run: fusion into kernels, their schedules, the geometry of a launch and its strategy.
//!
//! Guarantees: plans, kernels, schedules, geometries and strategies print themselves. Does not: touch data or make machine code.

pub(crate) mod blocking;
mod cost;
pub(crate) mod domain;
mod expand;
pub(crate) mod fuse;
pub(crate) mod geometry;
pub(crate) mod kernel;
pub(crate) mod options;
pub mod partials;
pub(crate) mod schedule;
pub(crate) mod strategy;
pub(crate) mod tuning;
