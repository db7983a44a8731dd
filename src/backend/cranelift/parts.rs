//! The vectors that hold one value in one iteration of a loop.
//!
//! Guarantees: a splat meets values of every lane width. Does not: emit instructions; callers pass these in.

use cranelift_codegen::ir::{Type, Value as Clif, types};

/// The vectors of one value in one iteration, in the order of its elements.
#[derive(Clone, Debug)]
pub(crate) enum Parts {
    /// One vector of equal elements, in place of any number of vectors: it meets values of every lane width.
    Splat(Clif),
    /// As many vectors as the iteration's elements fill.
    Each(Vec<Clif>),
}

impl Parts {
    /// The vector at a place.
    pub(crate) fn at(&self, i: usize) -> Clif {
        match self {
            Parts::Splat(p) => *p,
            Parts::Each(all) => all[i],
        }
    }

    /// Applies `f` to the vectors of values with lanes of one width. The result of splats alone is one.
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

    /// Lanes twice as wide: `f` makes two vectors of one.
    pub(crate) fn widened(&self, mut f: impl FnMut(Clif) -> [Clif; 2]) -> Parts {
        match self {
            Parts::Splat(p) => Parts::Splat(f(*p)[0]),
            Parts::Each(all) => Parts::Each(all.iter().flat_map(|p| f(*p)).collect()),
        }
    }

    /// Lanes half as wide: `f` makes one vector of two.
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
