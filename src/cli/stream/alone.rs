//! A program that is computed tile by tile on the thread of the caller: for commands that read a tensor or two and keep little.
//!
//! Guarantees: the bits of a run on whole tensors, as in `split`; a tile of each operand is in memory. Does not: read ahead.

use std::collections::HashMap;

use castwise::{Error, Executor, Tensor, TypedProgram};

use super::budget::Budget;
use super::decide::{Sources, divided};
use super::job::{Running, Slot, Streamed};

/// What a program reads and makes in parts.
pub(in crate::cli) trait Parts {
    /// The number of the operand of this name.
    fn find(&self, name: &str) -> Option<usize>;
    /// Whether an operand is read in parts.
    fn has_parts(&self, operand: usize) -> bool;
    /// Reads a whole operand, which is smaller than the others.
    fn whole(&mut self, name: &str) -> Result<Tensor, Error>;
    /// Reads a part of an operand: from the element `first` on as many as `into` has. `again`: it has been read before.
    fn part(&mut self, operand: usize, first: usize, into: &mut Tensor, again: bool) -> Result<(), Error>;
    /// Takes the next rows of the result of this number.
    fn rows(&mut self, result: usize, rows: &Tensor) -> Result<(), Error>;
}

/// A program in tiles.
pub(in crate::cli) struct Tiles<'a> {
    typed: &'a TypedProgram,
    streamed: Streamed,
}

impl<'a> Tiles<'a> {
    /// Divides a program whose results are these nodes. Errors: the reason why that is not possible.
    pub(in crate::cli) fn new(
        typed: &'a TypedProgram,
        results: Vec<usize>,
        parts: &impl Parts,
        parts_written: bool,
        budget: Budget,
    ) -> Result<Tiles<'a>, String> {
        let sources = Sources { find: &|name| parts.find(name), has_parts: &|i| parts.has_parts(i), parts_written };
        Ok(Tiles { typed, streamed: divided(typed, results, &sources, budget)? })
    }

    /// Runs it. Returns the results that are no rows, with their numbers.
    pub(in crate::cli) fn run(
        &self,
        parts: &mut impl Parts,
        executor: &Executor,
    ) -> Result<Vec<(usize, Tensor)>, Error> {
        let mut known = HashMap::new();
        for (node, name) in self.streamed.residents(self.typed) {
            known.insert(node, parts.whole(&name)?);
        }
        let mut running = Running::new(&self.streamed, self.typed, known);
        let mut slot = Slot::default();
        for (pass, inputs) in self.streamed.passes.iter().enumerate() {
            for rows in self.streamed.tiles() {
                slot.read.truncate(inputs.len());
                for (i, input) in inputs.iter().enumerate() {
                    slot.prepare(i, input.dtype, &self.streamed.split.tile(input.node, rows.len()))?;
                    let again = self.streamed.passes[..pass].iter().flatten().any(|p| p.input == input.input);
                    parts.part(input.input, rows.start * input.width, &mut slot.read[i], again)?;
                }
                for (i, result) in running.tile(&rows, &mut slot, executor)? {
                    let made = slot.made.get(i).ok_or_else(|| Error::Internal("a tile without a result".into()))?;
                    parts.rows(result, made)?;
                }
            }
            running.end_pass(executor)?;
        }
        running.results(executor)
    }
}
