//! Tensors that are computed tile by tile, and the overlap of reading, computing and writing.
//!
//! Does not: choose what is computed; `eval` does.

mod alone;
mod budget;
mod decide;
mod job;
mod pipeline;
mod progress;
mod read;
mod spare;
mod split;
#[cfg(test)]
mod tests;
mod tile;
mod write;

pub(super) use alone::{Parts, Tiles};
pub(super) use budget::{Budget, LARGE};
pub(super) use pipeline::evaluate;
pub(super) use progress::{to_read, to_read_once};
