//! What a call can be given by name: an op's operands, under the names of its row, and attributes.
//!
//! Guarantees: attributes have the names of the text form, and those of PyTorch, Paddle and NumPy. Does not: read values.

use super::callee::{Callee, Keyword};
use super::lex::Span;
use crate::base::error::{Diagnostic, DiagnosticKind, nearest, shown};
use crate::ops::{Attrs, Op};

/// What a call has been given by name so far.
#[derive(Default)]
pub(super) struct Call {
    pub(super) attrs: Attrs,
    /// The numbers of a composite.
    pub(super) numbers: Vec<(&'static str, f64)>,
    pub(super) equal_nan: bool,
    /// The positions of the operands that were given by name, in the order in which they were written.
    pub(super) named: Vec<u8>,
    /// All keywords that were given.
    pub(super) given: Vec<Keyword>,
}

impl Call {
    /// The operands' values in the order of a composite's; `None` inside where one is left out before one that is given. `None`
    /// if a position is given twice.
    pub(super) fn placed<T>(&self, values: Vec<T>) -> Option<Vec<Option<T>>> {
        let positional = values.len().checked_sub(self.named.len())?;
        let positions = (0..positional as u8).chain(self.named.iter().copied());
        let mut all: Vec<Option<T>> = Vec::new();
        for (at, value) in positions.zip(values) {
            all.resize_with(all.len().max(at as usize + 1), || None);
            if all[at as usize].replace(value).is_some() {
                return None;
            }
        }
        Some(all)
    }

    /// The operands' values in the order of the op's row, with the op that takes them: of `clamp` with one bound, that which has
    /// only this bound. `None` if operands are missing or too many. Values are in the order in which they were written.
    pub(super) fn arranged<T>(&self, op: Op, values: Vec<T>) -> Option<(Op, Vec<T>)> {
        let positional = values.len().checked_sub(self.named.len())?;
        let positions = (0..positional as u8).chain(self.named.iter().copied());
        let mut all: Vec<(u8, T)> = positions.zip(values).collect();
        all.sort_by_key(|(at, _)| *at);
        let is = |positions: &[u8]| all.iter().map(|(at, _)| *at).eq(positions.iter().copied());
        let op = match op {
            Op::Clamp if !self.named.is_empty() && is(&[0, 1]) => Op::ClampMin,
            Op::Clamp if is(&[0, 2]) => Op::ClampMax,
            _ if all.len() != op.arity() => return None,
            op => op,
        };
        Some((op, all.into_iter().map(|(_, value)| value).collect()))
    }
}

/// The error for a keyword that a call does not take.
pub(super) fn unknown(callee: Callee, word: &str, span: Span) -> Diagnostic {
    let operands = callee.operands().iter().copied();
    let names: Vec<&str> = operands.chain(callee.keywords().iter().map(|(_, names)| names[0])).collect();
    let message = format!("`{callee}` takes no `{}`", shown(word));
    let d = Diagnostic::new(DiagnosticKind::Name, message).at(&span.location());
    match nearest(word, names.iter().copied()) {
        Some(name) => d.help(format!("did you mean `{name}`?")),
        None => {
            let all: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let and = match all.split_last() {
                Some((last, [])) => last.clone(),
                Some((last, before)) => format!("{} and {last}", before.join(", ")),
                None => String::new(),
            };
            d.help(format!("it takes {and}"))
        }
    }
}
