//! `Indexing`: how elements are moved along a dim, to or from where an index says.
//!
//! Guarantees: names and attributes are those of the composites that write it. Does not: move, or read an index.

use std::fmt;

/// How the elements of a value are moved along one dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Indexing {
    /// Each element of the result is the element at its index.
    Take,
    /// Each element is added to the element of the result at its index.
    ScatterAdd,
    /// Elements of a dim are put among zeros.
    Pad {
        /// Where the first one is; a negative number counts from the end, and one beyond an end is that end.
        start: i64,
        /// From one to the next.
        step: i64,
    },
}

impl Indexing {
    /// The name of the composite.
    pub fn name(self) -> &'static str {
        match self {
            Indexing::Take => "take_along_dim",
            Indexing::ScatterAdd => "scatter_add",
            Indexing::Pad { .. } => "pad",
        }
    }

    /// Where the elements of a dim of extent `from` are in one of extent `to`: the first and the step. `None` if they do not fit.
    pub(crate) fn places(start: i64, step: i64, from: usize, to: usize) -> Option<(usize, usize)> {
        let n = to as i128;
        let first = (i128::from(start) + if start < 0 { n } else { 0 }).clamp(0, n) as usize;
        let step = usize::try_from(step).ok().filter(|s| *s > 0)?;
        let end = from.checked_sub(1).map_or(Some(first), |last| last.checked_mul(step)?.checked_add(first + 1))?;
        (end <= to).then_some((first, step))
    }
}

impl fmt::Display for Indexing {
    /// Its attributes besides the dim: `, start = 1, step = 2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Indexing::Pad { start, step } => write!(f, ", start = {start}, step = {step}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Indexing;

    #[test]
    fn places_are_those_of_a_slice() {
        assert_eq!(Indexing::places(1, 2, 3, 6), Some((1, 2)));
        assert_eq!(Indexing::places(1, 2, 3, 5), None);
        assert_eq!(Indexing::places(-2, 1, 2, 5), Some((3, 1)));
        assert_eq!(Indexing::places(i64::MAX, i64::MAX, 0, 4), Some((4, i64::MAX as usize)));
        assert_eq!(Indexing::places(0, i64::MAX, 3, 4), None);
        assert_eq!(Indexing::places(0, 0, 1, 4), None);
    }
}
