//! `Picture`: what is drawn, chosen step by step.
//!
//! Does not: draw.

use crate::graph::typed::TypedProgram;

/// The number of nodes that a picture shows: of a program with more, the last ones.
pub const MOST_NODES: usize = 1000;

/// The error of a node, drawn as a bar in its box.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The length of the bar: the part of it that is filled, from 0 to 1.
    pub part: f64,
    /// The number beside it.
    pub text: String,
    /// What a pointer shows.
    pub hint: String,
}

/// A picture of a typed program.
///
/// ```
/// use castwise::{picture::Picture, prelude::*};
/// let p = Program::new(Rules::Torch);
/// p.data("a", DType::BF16, [4]);
/// p.data("b", DType::F32, [4]);
/// let text = "0.7*a + b";
/// p.expression(text)?;
/// let svg = Picture::of(&p.infer()?).source(text).svg();
/// assert!(svg.starts_with("<svg") && svg.contains("rounds to bf16") && svg.contains("0.7*a"));
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Picture<'p> {
    pub(super) typed: &'p TypedProgram,
    pub(super) source: &'p str,
    pub(super) bars: Vec<Option<Bar>>,
    pub(super) scale: String,
    pub(super) most: usize,
}

impl<'p> Picture<'p> {
    /// The picture of a program.
    pub fn of(typed: &'p TypedProgram) -> Picture<'p> {
        Picture { typed, source: "", bars: Vec::new(), scale: String::new(), most: MOST_NODES }
    }

    /// The text that the program was written in: a pointer then shows the part that each node was written as.
    pub fn source(mut self, text: &'p str) -> Picture<'p> {
        self.source = text;
        self
    }

    /// Errors as bars: one for each node, in order, or `None` for nodes without. `scale` says what the bars are.
    pub fn bars(mut self, bars: Vec<Option<Bar>>, scale: &str) -> Picture<'p> {
        (self.bars, self.scale) = (bars, scale.to_string());
        self
    }

    /// Shows at most this number of nodes, the last ones, instead of [`MOST_NODES`].
    pub fn most(mut self, nodes: usize) -> Picture<'p> {
        self.most = nodes.clamp(1, MOST_NODES);
        self
    }
}
