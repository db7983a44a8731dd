//! Pictures of typed programs as SVG.
//!
//! Guarantees: a picture is one SVG document without scripts, references or fonts of its own, for light and dark. Every node
//! of a program of at most [`MOST_NODES`] nodes is in it, with op, dtype and shape; casts have the colour of what they may
//! lose, and ops that round or wrap a value which is wider afterwards are marked. Text from outside is escaped. The same
//! program has the same picture. Does not: infer, or measure errors; who has measured them passes them in.

mod boxes;
mod draw;
mod layout;
mod marks;
mod options;
mod svg;
mod text;

pub use options::{Bar, MOST_NODES, Picture};
pub use text::escaped;

#[cfg(test)]
mod tests;
