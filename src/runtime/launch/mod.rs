//! Runs plans on tensors: for each kernel its geometry, schedule, code, strategy and launch, and what its reductions leave to do.
//!
//! Guarantees: there is one way to run a plan, for eager mode and for compiled programs; results are contiguous and fresh,
//! or written to the tensors given for them if nothing else holds those; a buffer is dropped after its last use; borrowed
//! feeds are read in place, and copied only to be a result (or by the driver, if they are not aligned). Does not: keep
//! anything between runs; callers hold caches.

mod buffers;
pub(crate) mod dense;
mod execute;
mod finish;
mod in_order;
mod in_place;
mod index;
mod indexed;
mod kernel;
mod line_layout;
mod lines;
mod operand;
mod order;
mod plan;
mod prepared;
mod refusal;
mod rows;
pub(crate) mod run;

pub(crate) use finish::cast_tensor;
pub(crate) use plan::{BlockEngine, Engine, Fetched, is_direct, run_direct};
pub(crate) use prepared::{Blocks, PreparedLaunch, Ready};
pub(crate) use refusal::{constants, run_all, run_blocks, run_plan};

#[cfg(test)]
mod tests;
