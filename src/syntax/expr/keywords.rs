//! What a call can be given by name: an op's operands, under the names of its row, and attributes.
//!
//! Guarantees: attributes have the names of the text form, and those of PyTorch, Paddle and NumPy. Does not: read values.

use super::lex::Span;
use crate::base::error::{Diagnostic, DiagnosticKind, nearest, shown};
use crate::ops::{Attrs, Op};

/// The operand or attribute that a keyword sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    /// The operand at a position.
    Operand(u8),
    /// The dims of a reduction.
    Dims,
    /// Whether a reduction keeps them.
    Keepdim,
    /// The target of a cast; the dtype in which a reduction combines.
    DType,
    /// Where the operand of lower rank is placed (Paddle).
    Axis,
    /// The number of an op that takes one, under its name.
    Number,
    /// The choice of an op that takes one, under its name.
    Choice,
}

/// What a call has been given by name so far.
#[derive(Default)]
pub(super) struct Call {
    pub(super) attrs: Attrs,
    /// The positions of the operands that were given by name, in the order in which they were written.
    pub(super) named: Vec<u8>,
    /// All keywords that were given.
    pub(super) given: Vec<Keyword>,
}

impl Call {
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

/// The names of the attributes that an op takes, each with its synonyms behind it.
fn attributes(op: Op) -> &'static [(Keyword, &'static [&'static str])] {
    const DTYPE: (Keyword, &[&str]) = (Keyword::DType, &["dtype"]);
    const REDUCTION: &[(Keyword, &[&str])] =
        &[(Keyword::Dims, &["dims", "dim", "axis"]), (Keyword::Keepdim, &["keepdim", "keepdims"]), DTYPE];
    const LINE: &[(Keyword, &[&str])] = &[(Keyword::Dims, &["dim", "dims", "axis"]), DTYPE];
    match op {
        op if op.is_line() => LINE,
        op if op.is_reduction() => REDUCTION,
        op if op.takes_dtype() => &[DTYPE],
        op if op.arity() == 2 => &[(Keyword::Axis, &["axis"])],
        _ => &[],
    }
}

/// What a word before `=` is in a call of an op. The names of operands come first.
pub(super) fn keyword(op: Op, word: &str) -> Option<Keyword> {
    if let Some(at) = op.def().operands.iter().position(|name| *name == word) {
        return Some(Keyword::Operand(at as u8));
    }
    if op.def().number.is_some_and(|of| of.name == word) {
        return Some(Keyword::Number);
    }
    if op.def().choice.is_some_and(|of| of.name == word) {
        return Some(Keyword::Choice);
    }
    attributes(op).iter().find(|(_, names)| names.contains(&word)).map(|(keyword, _)| *keyword)
}

/// The error for a keyword that the op does not take.
pub(super) fn unknown(op: Op, word: &str, span: Span) -> Diagnostic {
    let operands = op.def().operands.iter().copied();
    let names: Vec<&str> = operands
        .chain(attributes(op).iter().map(|(_, names)| names[0]))
        .chain(op.def().number.map(|of| of.name))
        .chain(op.def().choice.map(|of| of.name))
        .collect();
    let message = format!("`{op}` takes no `{}`", shown(word));
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
