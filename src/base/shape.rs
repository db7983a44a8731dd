//! Shapes: declared (with dynamic dims), symbolic and concrete; strides; broadcasting.
//!
//! Guarantees: sizes are computed with checked arithmetic before anything is allocated; 0-d and zero-size shapes are
//! ordinary; one broadcasting rule applies to numbers and symbols (two dims are compatible if they are equal or one of
//! them is 1; the result is the other one, so `[0]` with `[1]` gives `[0]`). Does not: know tensors or programs.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::error::{Error, Name, Result};
use crate::base::limits::{Limit, Limits, MAX_ELEMENTS};

pub use crate::base::limits::MAX_RANK;

/// One declared dim of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A known extent.
    Fixed(usize),
    /// Any extent; the feed determines it.
    Dynamic,
    /// Any extent, the same for every use of the name in the program.
    Named(Arc<str>),
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim::Fixed(n)
    }
}

impl From<Option<usize>> for Dim {
    fn from(n: Option<usize>) -> Dim {
        n.map_or(Dim::Dynamic, Dim::Fixed)
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Dim {
        Dim::Named(name.into())
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(n) => write!(f, "{n}"),
            Dim::Dynamic => f.write_str("?"),
            Dim::Named(n) => Name(n).fmt(f),
        }
    }
}

/// A declared shape, the argument of [`Program::data`](crate::Program::data): `[3, 4]`, `[None, Some(4)]`,
/// `["n", "m"]`, `()` for 0-d, `vec![Dim::Dynamic, 3.into()]`.
///
/// ```
/// use castwise::shape::{Dim, Dims};
/// assert_eq!(Dims::from([None, Some(4)]).to_string(), "[?, 4]");
/// assert_eq!(Dims::from(vec![Dim::from("batch"), 3.into(), Dim::Dynamic]).to_string(), "[batch, 3, ?]");
/// assert_eq!(Dims::from(()).to_string(), "[]");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dims(pub Vec<Dim>);

impl From<()> for Dims {
    fn from(_: ()) -> Dims {
        Dims(Vec::new())
    }
}

impl<D: Into<Dim>, const N: usize> From<[D; N]> for Dims {
    fn from(dims: [D; N]) -> Dims {
        Dims(dims.into_iter().map(Into::into).collect())
    }
}

impl<D: Into<Dim>> From<Vec<D>> for Dims {
    fn from(dims: Vec<D>) -> Dims {
        Dims(dims.into_iter().map(Into::into).collect())
    }
}

impl<D: Into<Dim> + Clone> From<&[D]> for Dims {
    fn from(dims: &[D]) -> Dims {
        Dims(dims.iter().cloned().map(Into::into).collect())
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        dims_fmt(&self.0, f)
    }
}

/// Writes `[a, b, c]`.
pub(crate) fn dims_fmt<D: fmt::Display>(dims: &[D], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("[")?;
    for (i, d) in dims.iter().enumerate() {
        write!(f, "{}{d}", if i == 0 { "" } else { ", " })?;
    }
    f.write_str("]")
}

/// A shape as text: `[3, 4]`.
pub(crate) fn dims_text<D: fmt::Display>(dims: &[D]) -> String {
    struct Show<'a, D>(&'a [D]);
    impl<D: fmt::Display> fmt::Display for Show<'_, D> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            dims_fmt(self.0, f)
        }
    }
    Show(dims).to_string()
}

/// A dim of a typed program: a number, or an extent that only the feeds determine.
///
/// A symbol is the set of dynamic dims that broadcast to it: at run time each of them must be 1 or the common extent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SymDim {
    /// A known extent.
    Fixed(usize),
    /// The broadcast of these dynamic dims (indices into the typed program's list), ascending.
    Sym(Arc<[u32]>),
}

impl SymDim {
    /// The symbol of one dynamic dim.
    pub(crate) fn symbol(index: u32) -> SymDim {
        SymDim::Sym([index].into())
    }

    /// The extent under the given values of the dynamic dims; `None` if they do not broadcast.
    pub(crate) fn extent(&self, values: &[usize]) -> Option<usize> {
        match self {
            SymDim::Fixed(n) => Some(*n),
            SymDim::Sym(set) => set.iter().try_fold(1, |n, i| broadcast_dim(n, *values.get(*i as usize)?)),
        }
    }
}

impl fmt::Display for SymDim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SymDim::Fixed(n) => write!(f, "{n}"),
            SymDim::Sym(set) => {
                for (i, s) in set.iter().enumerate() {
                    write!(f, "{}?{s}", if i == 0 { "" } else { "|" })?;
                }
                Ok(())
            }
        }
    }
}

/// A type of dims that broadcast.
pub(crate) trait Broadcast: Clone + fmt::Display {
    /// The value of a missing leading dim.
    fn one() -> Self;
    /// The broadcast of the two dims, or `None` if they are incompatible.
    fn common(&self, other: &Self) -> Option<Self>;
}

impl Broadcast for usize {
    fn one() -> usize {
        1
    }
    fn common(&self, other: &usize) -> Option<usize> {
        broadcast_dim(*self, *other)
    }
}

impl Broadcast for SymDim {
    fn one() -> SymDim {
        SymDim::Fixed(1)
    }
    fn common(&self, other: &SymDim) -> Option<SymDim> {
        Some(match (self, other) {
            (SymDim::Fixed(a), SymDim::Fixed(b)) => SymDim::Fixed(broadcast_dim(*a, *b)?),
            (SymDim::Fixed(1), s) | (s, SymDim::Fixed(1)) => s.clone(),
            // The dynamic dim must be 1 or `n`, which is checked when it is fed.
            (SymDim::Fixed(n), SymDim::Sym(_)) | (SymDim::Sym(_), SymDim::Fixed(n)) => SymDim::Fixed(*n),
            (SymDim::Sym(a), SymDim::Sym(b)) if a == b => self.clone(),
            (SymDim::Sym(a), SymDim::Sym(b)) => {
                let mut all: Vec<u32> = a.iter().chain(b.iter()).copied().collect();
                all.sort_unstable();
                all.dedup();
                SymDim::Sym(all.into())
            }
        })
    }
}

fn broadcast_dim(a: usize, b: usize) -> Option<usize> {
    match (a, b) {
        (a, b) if a == b => Some(a),
        (1, n) | (n, 1) => Some(n),
        _ => None,
    }
}

/// Two shapes do not broadcast: the axis (of the result, from the left) and the two dims there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch<D> {
    pub(crate) axis: usize,
    pub(crate) dims: (D, D),
}

/// The shape that both operands broadcast to, aligned at the last dim.
pub(crate) fn broadcast<D: Broadcast>(a: &[D], b: &[D]) -> Result<Vec<D>, Mismatch<D>> {
    let rank = a.len().max(b.len());
    let dim = |s: &[D], i: usize| (i + s.len()).checked_sub(rank).map_or_else(D::one, |k| s[k].clone());
    (0..rank)
        .map(|i| {
            let (x, y) = (dim(a, i), dim(b, i));
            x.common(&y).ok_or(Mismatch { axis: i, dims: (x, y) })
        })
        .collect()
}

/// The number of elements, or an error if this number or the size in bytes overflows.
///
/// A shape with a zero dim has zero elements, however large the other dims are.
pub(crate) fn numel(shape: &[usize]) -> Result<usize> {
    numel_within(shape, MAX_ELEMENTS)
}

/// Like [`numel`], with a maximum of `most` elements.
fn numel_within(shape: &[usize], most: usize) -> Result<usize> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let n = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    n.filter(|n| *n <= most).ok_or_else(|| {
        let got = shape.iter().fold(1u64, |n, d| n.saturating_mul(*d as u64));
        Error::Limit { which: Limit::Elements.name(), max: most as u64, got }
    })
}

/// Checks the rank and the element count of a shape from outside.
pub(crate) fn check(shape: &[usize]) -> Result<usize> {
    check_within(shape, &Limits::new())
}

/// Like [`check`], under the given limits.
pub(crate) fn check_within(shape: &[usize], limits: &Limits) -> Result<usize> {
    limits.allow(Limit::Rank, shape.len())?;
    numel_within(shape, limits.at(Limit::Elements))
}

/// Row-major strides in elements. A zero-size shape's strides are never used; they saturate instead of overflowing.
pub(crate) fn contiguous_strides(shape: &[usize]) -> SmallVec<[isize; 4]> {
    let mut strides = SmallVec::<[isize; 4]>::from_elem(1, shape.len());
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(shape[i].max(1) as isize);
    }
    strides
}

/// A shape after a reduction: without the reduced dims, or with ones in their place.
pub(crate) fn reduced<D: Broadcast>(dims: &[D], axes: &[usize], keep: bool) -> Vec<D> {
    let kept = |(i, d): (usize, &D)| match (axes.contains(&i), keep) {
        (false, _) => Some(d.clone()),
        (true, true) => Some(D::one()),
        (true, false) => None,
    };
    dims.iter().enumerate().filter_map(kept).collect()
}

/// A dim, counted from the first: negative numbers count from the last. A 0-d tensor takes dim 0 and -1, as in PyTorch
/// and NumPy.
pub(crate) fn axis(dim: i64, rank: usize) -> Result<usize, String> {
    let most = rank.max(1) as i64;
    if dim < -most || dim >= most {
        return Err(format!("dim {dim} of a tensor with {rank} dims"));
    }
    Ok(dim.rem_euclid(most) as usize)
}

/// The dims of a reduction, in ascending order: negative numbers count from the last dim, and `None` means all.
pub(crate) fn axes(dims: Option<&[i64]>, rank: usize) -> Result<Vec<usize>, String> {
    let Some(dims) = dims else { return Ok((0..rank).collect()) };
    let mut all = dims.iter().map(|d| axis(*d, rank)).collect::<Result<Vec<usize>, String>>()?;
    all.sort_unstable();
    if all.windows(2).any(|w| w[0] == w[1]) {
        return Err(format!("{dims:?} names a dim twice"));
    }
    all.retain(|d| *d < rank);
    Ok(all)
}

/// The dims of the operand of lower rank when its first dim is placed at `axis` of `rank` dims: padded with ones at the
/// end; trailing ones beyond the rank are dropped. An `axis` of -1 aligns it at the last dim.
///
/// Source: Paddle's guide "Broadcasting"; `axis` has the range that PaddlePaddle checks.
pub(crate) fn at_axis<D: Broadcast + PartialEq>(low: &[D], rank: usize, axis: i64) -> Result<Vec<D>, String> {
    let most = if low.len() == rank { 1 } else { rank as i64 };
    if axis == -1 {
        return Ok(low.to_vec());
    }
    let start = usize::try_from(axis).ok().filter(|_| axis < most);
    let start = start.ok_or_else(|| format!("`axis` is {axis}, but must be -1 or at least 0 and below {most}"))?;
    let mut dims = low.to_vec();
    while start + dims.len() > rank && dims.last() == Some(&D::one()) {
        dims.pop();
    }
    if start + dims.len() > rank {
        return Err(format!("{} placed at axis {axis} does not fit into {rank} dims", dims_text(low)));
    }
    dims.resize(rank - start, D::one());
    Ok(dims)
}

#[cfg(test)]
mod tests;
