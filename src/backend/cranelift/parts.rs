//! The vectors of a value in one iteration of a loop.
//!
//! Guarantees: a splat combines with values of every lane width. Does not: emit instructions; callers pass functions that do.

use cranelift_codegen::ir::{Type, Value as Clif, types};
use smallvec::SmallVec;

/// The vectors of a value in one iteration, in the order of its elements.
#[derive(Clone, Debug)]
pub(crate) enum Parts {
    /// One vector of equal elements, in place of any number of vectors of any lane width.
    Splat(Clif),
    /// One vector after the other.
    Each(SmallVec<[Clif; 4]>),
}

impl Parts {
    /// The vector at an index.
    pub(crate) fn at(&self, i: usize) -> Clif {
        match self {
            Parts::Splat(p) => *p,
            Parts::Each(all) => all[i],
        }
    }

    /// Applies `f` to the vectors of values that have the same lane width. If all are splats, so is the result.
    pub(crate) fn zip<const N: usize>(values: [&Parts; N], mut f: impl FnMut([Clif; N]) -> Clif) -> Parts {
        let counts = values.iter().filter_map(|v| if let Parts::Each(all) = v { Some(all.len()) } else { None });
        match counts.max() {
            None => Parts::Splat(f(values.map(|v| v.at(0)))),
            Some(n) => Parts::Each((0..n).map(|i| f(values.map(|v| v.at(i)))).collect()),
        }
    }

    /// Applies `f` to each vector.
    pub(crate) fn map(&self, mut f: impl FnMut(Clif) -> Clif) -> Parts {
        Parts::zip([self], |[p]| f(p))
    }

    /// Lanes twice as wide: `f` returns two vectors for one.
    pub(crate) fn widened(&self, mut f: impl FnMut(Clif) -> [Clif; 2]) -> Parts {
        match self {
            Parts::Splat(p) => Parts::Splat(f(*p)[0]),
            Parts::Each(all) => Parts::Each(all.iter().flat_map(|p| f(*p)).collect()),
        }
    }

    /// Lanes half as wide: `f` returns one vector for two.
    pub(crate) fn narrowed(&self, mut f: impl FnMut(Clif, Clif) -> Clif) -> Parts {
        match self {
            Parts::Splat(p) => Parts::Splat(f(*p, *p)),
            Parts::Each(all) => Parts::Each(all.chunks_exact(2).map(|p| f(p[0], p[1])).collect()),
        }
    }
}

/// The integer vector with lanes of `size` bytes.
pub(crate) fn int_vector(size: usize) -> Type {
    match size {
        1 => types::I8X16,
        2 => types::I16X8,
        4 => types::I32X4,
        _ => types::I64X2,
    }
}
