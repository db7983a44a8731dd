//! What is added to a gradient: a value, or minus a value.
//!
//! Guarantees: minus a value is subtracted where it is added to another, which gives the bits of adding the negated value (but for the
//! sign of NaN) with one op less. Does not: carry a sign through other ops.

use crate::base::error::SourceLocation;
use crate::graph::var::{Graph, Mode, Var};
use crate::ops::{Attrs, Op};

#[derive(Clone)]
pub(super) struct Term {
    pub(super) v: Var,
    pub(super) minus: bool,
}

impl From<Var> for Term {
    fn from(v: Var) -> Term {
        Term { v, minus: false }
    }
}

impl Term {
    /// The term as a value of the program.
    pub(super) fn value(self, at: &SourceLocation) -> Var {
        if self.minus { negated(&self.v, at) } else { self.v }
    }

    /// This term and one that comes later in the order of accumulation.
    pub(super) fn plus(self, other: Term, at: &SourceLocation) -> Var {
        let (op, a, b) = match (self.minus, other.minus) {
            (false, false) => (Op::Add, self.v, other.v),
            (true, false) => (Op::Sub, other.v, self.v),
            // -a - b and not -(a + b), which is another zero for opposite zeros.
            (_, true) => (Op::Sub, self.value(at), other.v),
        };
        Graph::apply(op, &[a.into(), b.into()], Attrs::default(), at.clone())
    }
}

pub(super) fn negated(v: &Var, at: &SourceLocation) -> Var {
    Graph::apply(Op::Neg, &[v.into()], Attrs::default(), at.clone())
}
