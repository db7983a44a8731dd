//! What a call applies: an op, a composite, or `max` and `min`, which are one op of one operand and another one of two.
//!
//! Guarantees: names are those of the table and of the composites. Does not: read calls.

use std::fmt;

use crate::base::composite::{Composite, Kind};
use crate::ops::{Choice, Op, Registry};

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
    /// A number of a composite.
    Named(&'static str),
    /// Whether NaNs are equal.
    EqualNan,
}

/// What a call applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Callee {
    Op(Op),
    Composite(Kind),
    /// Of one operand a reduction, of two operands the larger or smaller one: as PyTorch has it.
    Extreme {
        name: &'static str,
        reduces: Op,
        of_two: Op,
    },
}

/// The names of [`Callee::Extreme`].
pub(super) const EXTREMES: [&str; 2] = ["max", "min"];

impl Callee {
    /// What has this name.
    pub(super) fn named(word: &str, ops: &Registry) -> Option<Callee> {
        if let Some(op) = ops.op(word) {
            return Some(Callee::Op(op));
        }
        match word {
            "max" => Some(Callee::Extreme { name: "max", reduces: Op::Amax, of_two: Op::Maximum }),
            "min" => Some(Callee::Extreme { name: "min", reduces: Op::Amin, of_two: Op::Minimum }),
            _ => Composite::named(word).map(|c| Callee::Composite(c.kind)),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Callee::Op(op) => op.name(),
            Callee::Composite(kind) => Composite::new(kind).name(),
            Callee::Extreme { name, .. } => name,
        }
    }

    /// The operands' names.
    pub(super) fn operands(self) -> &'static [&'static str] {
        match self {
            Callee::Op(op) => op.def().operands,
            Callee::Composite(kind) => Composite::new(kind).takes().operands,
            Callee::Extreme { of_two, .. } => of_two.def().operands,
        }
    }

    /// The choices among which a keyword takes one.
    pub(super) fn choices(self) -> &'static [Choice] {
        match self {
            Callee::Op(op) => op.def().choice.map_or(&[], |of| of.among),
            Callee::Composite(_) | Callee::Extreme { .. } => &[],
        }
    }

    /// Whether the second operand is a dtype.
    pub(super) fn takes_dtype(self) -> bool {
        matches!(self, Callee::Op(op) if op.takes_dtype())
    }

    /// The keywords besides operands, each with its synonyms behind it.
    pub(super) fn keywords(self) -> Vec<(Keyword, &'static [&'static str])> {
        const DIMS: (Keyword, &[&str]) = (Keyword::Dims, &["dims", "dim", "axis"]);
        const DTYPE: (Keyword, &[&str]) = (Keyword::DType, &["dtype"]);
        let op = match self {
            Callee::Op(op) => op,
            Callee::Extreme { reduces, .. } => reduces,
            Callee::Composite(kind) => {
                let takes = Composite::new(kind).takes();
                let numbers = takes.numbers.iter().map(|n| (Keyword::Named(n), std::slice::from_ref(n)));
                let dims = takes.dims.then_some(DIMS).into_iter().chain(numbers);
                let dtype = takes.dtype.then_some(DTYPE);
                let equal_nan = takes.equal_nan.then_some((Keyword::EqualNan, &["equal_nan"][..]));
                return dims.chain(dtype).chain(equal_nan).collect();
            }
        };
        let mut all = Vec::new();
        if op.is_line() {
            all.extend([(Keyword::Dims, &["dim", "dims", "axis"][..]), DTYPE]);
        } else if op.is_reduction() {
            all.extend([DIMS, (Keyword::Keepdim, &["keepdim", "keepdims"][..]), DTYPE]);
        } else if op.takes_dtype() {
            all.push(DTYPE);
        } else if op.arity() == 2 {
            all.push((Keyword::Axis, &["axis"][..]));
        }
        all.extend(op.def().number.as_ref().map(|of| (Keyword::Number, std::slice::from_ref(&of.name))));
        all.extend(op.def().choice.as_ref().map(|of| (Keyword::Choice, std::slice::from_ref(&of.name))));
        all
    }

    /// What a word before `=` is in a call. The names of operands come first.
    pub(super) fn keyword(self, word: &str) -> Option<Keyword> {
        if let Some(at) = self.operands().iter().position(|name| *name == word) {
            return Some(Keyword::Operand(at as u8));
        }
        self.keywords().into_iter().find(|(_, names)| names.contains(&word)).map(|(keyword, _)| keyword)
    }
}

impl fmt::Display for Callee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
