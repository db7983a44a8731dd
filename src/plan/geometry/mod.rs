//! The iteration domain of a launch as rows of an inner loop: adjacent dims that every operand reads as one become one, and what
//! is left are outer dims and the inner loop. A reduced domain is arranged so that the elements that are combined follow each
//! other along the inner loop or along the rows.
//!
//! Guarantees: without a reduction, every operand's elements are read in row-major order of the domain; each operand is
//! classed by how it moves along the inner loop; the order in which a reduction combines elements depends on the extents and
//! the reduced dims alone, and whether short rows are joined also on what is reduced. Does not: touch data.

use std::fmt;

use crate::kernels::reduce::has_many_lanes;
use crate::plan::schedule::Class;
use crate::plan::tuning::{COLUMNS, LONGEST_PERIOD, SHORT_ADDED, SHORT_INNER, SHORT_READ, SHORT_REDUCED};

/// How an operand is read along the inner loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// One element for the whole inner loop.
    Broadcast,
    /// Contiguous elements.
    Contiguous,
    /// So many contiguous elements, repeated.
    Periodic(usize),
    /// Any extents and strides, which make up the inner loop: gathered tile by tile.
    Gather(Vec<usize>, Vec<isize>),
    /// The same of elements that are in no memory: made tile by tile, from the positions that the strides count.
    Generated(Vec<usize>, Vec<isize>),
}

/// What an operand's type says about how it is broadcast, before extents are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BroadcastKind {
    /// It has one element.
    All,
    /// It is repeated along the domain's last dim.
    Inner,
    /// It has the domain's last dim.
    Varies,
    /// Its elements are made where they are read.
    Generated,
}

impl fmt::Display for BroadcastKind {
    /// Behind the operand: nothing if it varies along the last dim.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BroadcastKind::All => " all",
            BroadcastKind::Inner => " inner",
            BroadcastKind::Varies => "",
            BroadcastKind::Generated => " made",
        })
    }
}

/// Which elements of a reduced domain are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// So many consecutive elements of the inner loop: all of it, or one of several short rows that were joined.
    Rows(usize),
    /// The same element of so many consecutive rows.
    Columns(usize),
    /// The same element of `count` rows that are stacked in the inner loop: rows of `width` elements, one after the other.
    Stacked { count: usize, width: usize },
}

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction<'a> {
    /// The dims, in order.
    pub(crate) dims: &'a [usize],
    /// Whether all reductions are sums of computed values, which segments add while they compute them.
    pub(crate) adds: bool,
}

/// How a launch reads an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperandAccess {
    /// Its stride (in elements) along each of the outer dims.
    pub(crate) rows: Vec<isize>,
    pub(crate) access: Access,
    /// How far before and behind its first element the domain reads, in elements.
    pub(crate) reach: (i128, i128),
}

impl OperandAccess {
    /// Whether every tile of it is read where it is.
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self.access, Access::Broadcast | Access::Contiguous)
    }

    /// Whether its tiles are gathered one by one.
    pub(crate) fn is_gathered(&self) -> bool {
        matches!(self.access, Access::Gather(..) | Access::Generated(..))
    }

    /// Whether it is strided along the inner loop, and less so along the innermost of the outer dims: a cache line then has
    /// elements of several rows.
    pub(crate) fn is_transposed(&self) -> bool {
        match &self.access {
            Access::Gather(_, strides) if strides.len() == 1 => {
                self.row_stride() != 0 && self.row_stride().unsigned_abs() < strides[0].unsigned_abs()
            }
            _ => false,
        }
    }

    /// Elements from a row to the next along the innermost of the outer dims.
    pub(crate) fn row_stride(&self) -> isize {
        self.rows.last().copied().unwrap_or(0)
    }
}

/// The domain of a launch as rows of an inner loop, and how it reads its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// The extents of the outer dims.
    pub(crate) rows: Vec<usize>,
    /// Elements of the inner loop.
    pub(crate) inner: usize,
    pub(crate) operands: Vec<OperandAccess>,
    pub(crate) fold: Option<Fold>,
}

/// Extents, and the strides of each operand.
struct Dims {
    extents: Vec<usize>,
    strides: Vec<Vec<isize>>,
}

impl Geometry {
    /// Plans a domain. `strides` has, for each operand, a stride in elements for each dim of the domain (0 where it is broadcast).
    /// `spread` is what the operands' types say, so that the class of an operand depends on extents as little as it can: one
    /// that is repeated only because an extent happens to be 1 is gathered. `reduced` has the dims that are reduced, if any are.
    pub(crate) fn new(
        extents: &[usize],
        strides: &[Vec<isize>],
        spread: &[BroadcastKind],
        reduced: Option<Reduction<'_>>,
    ) -> Geometry {
        match reduced {
            Some(reduced) => folded(extents, strides, spread, reduced),
            None => {
                let mut rows = collapse(extents, strides);
                let inner = Dims {
                    extents: rows.extents.pop().into_iter().collect(),
                    strides: rows.strides.iter_mut().map(|s| s.pop().into_iter().collect()).collect(),
                };
                rows_of(rows, inner, spread, None, false)
            }
        }
    }

    /// The class of each operand: what the schedule depends on.
    pub(crate) fn classes(&self) -> Vec<Class> {
        self.operands.iter().map(|o| if o.access == Access::Broadcast { Class::Splat } else { Class::Vector }).collect()
    }

    /// Whether the domain is one inner loop over operands in place.
    pub(crate) fn in_place(&self) -> bool {
        self.rows.is_empty() && self.operands.iter().all(OperandAccess::is_in_place)
    }

    /// Whether an operand's elements follow each other as the domain's do, so that each is where a result's is in its memory.
    pub(crate) fn in_order(&self, operand: usize) -> bool {
        let o = &self.operands[operand];
        let mut step = self.inner as isize;
        o.access == Access::Contiguous
            && o.rows.iter().zip(&self.rows).rev().all(|(stride, n)| {
                let follows = *stride == step || *n == 1;
                step *= *n as isize;
                follows
            })
    }

    /// The number of rows.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.iter().product()
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Broadcast => f.write_str("broadcast"),
            Access::Contiguous => f.write_str("contiguous"),
            Access::Periodic(period) => write!(f, "periodic {period}"),
            Access::Gather(extents, strides) => write!(f, "gather {extents:?} at {strides:?}"),
            Access::Generated(extents, strides) => write!(f, "made {extents:?} at {strides:?}"),
        }
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("geometry {\n")?;
        writeln!(f, "  rows {:?}", self.rows)?;
        writeln!(f, "  inner {}", self.inner)?;
        for (i, OperandAccess { rows, access, reach: (low, high) }) in self.operands.iter().enumerate() {
            writeln!(f, "  in{i}: {access}, rows at {rows:?}, elements {low}..={high}")?;
        }
        match self.fold {
            None => {}
            Some(Fold::Rows(n)) => writeln!(f, "  fold rows of {n}")?,
            Some(Fold::Columns(n)) => writeln!(f, "  fold columns of {n} rows")?,
            Some(Fold::Stacked { count, width }) => writeln!(f, "  fold stacks of {count} rows of {width}")?,
        }
        f.write_str("}\n")
    }
}

/// A geometry of these rows and this inner loop, or of one inner loop of all of them if they are short.
fn rows_of(rows: Dims, inner: Dims, spread: &[BroadcastKind], fold: Option<Fold>, adds: bool) -> Geometry {
    let length: usize = inner.extents.iter().product();
    if inner.extents.is_empty() && rows.extents.is_empty() {
        return one_element(spread, fold);
    }
    let short = match fold {
        None => SHORT_INNER,
        Some(Fold::Rows(_)) if adds && has_many_lanes(length) => SHORT_ADDED,
        Some(Fold::Rows(_)) if adds || spread.contains(&BroadcastKind::Inner) => SHORT_REDUCED,
        Some(Fold::Rows(_)) => SHORT_READ,
        Some(Fold::Columns(_) | Fold::Stacked { .. }) => COLUMNS,
    };
    if !rows.extents.is_empty() && length < short {
        let fold = match fold {
            Some(Fold::Columns(count)) => Some(Fold::Stacked { count, width: length }),
            fold => fold,
        };
        return joined(rows, inner, spread, fold);
    }
    let operand = |((outer, strides), spread): ((&Vec<isize>, &Vec<isize>), &BroadcastKind)| {
        let splats = matches!(spread, BroadcastKind::All | BroadcastKind::Inner);
        let is_splat = splats && strides.iter().all(|s| *s == 0);
        let access = if is_splat { Access::Broadcast } else { access_of(&inner.extents, strides, *spread) };
        let reach = reach(&[(&rows.extents, outer), (&inner.extents, strides)]);
        OperandAccess { rows: outer.clone(), access, reach }
    };
    let operands = rows.strides.iter().zip(&inner.strides).zip(spread).map(operand).collect();
    Geometry { rows: rows.extents, inner: length, operands, fold }
}

/// One element: an operand is a splat only if it always is, so that its class does not depend on extents.
fn one_element(spread: &[BroadcastKind], fold: Option<Fold>) -> Geometry {
    let access = |s: &BroadcastKind| match s {
        BroadcastKind::Varies => Access::Contiguous,
        BroadcastKind::All | BroadcastKind::Inner => Access::Broadcast,
        BroadcastKind::Generated => Access::Generated(vec![], vec![]),
    };
    let operands = spread.iter().map(|s| OperandAccess { rows: vec![], access: access(s), reach: (0, 0) }).collect();
    Geometry { rows: vec![], inner: 1, operands, fold }
}

/// Short rows joined to one inner loop.
fn joined(rows: Dims, inner: Dims, spread: &[BroadcastKind], fold: Option<Fold>) -> Geometry {
    let all: Vec<usize> = rows.extents.iter().chain(&inner.extents).copied().collect();
    let strides = rows.strides.iter().zip(&inner.strides).map(|(o, i)| o.iter().chain(i).copied().collect());
    let all = collapse(&all, &strides.collect::<Vec<Vec<isize>>>());
    let operand = |(s, spread): (&Vec<isize>, &BroadcastKind)| {
        let access =
            if *spread == BroadcastKind::All { Access::Broadcast } else { access_of(&all.extents, s, *spread) };
        OperandAccess { rows: vec![], access, reach: reach(&[(&all.extents, s)]) }
    };
    let operands = all.strides.iter().zip(spread).map(operand).collect();
    Geometry { rows: vec![], inner: all.extents.iter().product(), operands, fold }
}

/// A reduced domain. The dims behind the last reduced one are the inner loop, and rows are combined; if there are none, the
/// reduced dims are the inner loop.
fn folded(extents: &[usize], strides: &[Vec<isize>], spread: &[BroadcastKind], reduction: Reduction<'_>) -> Geometry {
    let Reduction { dims: reduced, adds } = reduction;
    let behind = reduced.last().map_or(0, |last| last + 1);
    let columns = extents[behind..].iter().product::<usize>() > 1 && !reduced.is_empty();
    let kept_end = if columns { behind } else { extents.len() };
    let kept: Vec<usize> = (0..kept_end).filter(|d| !reduced.contains(d)).collect();
    let pick = |dims: &[usize]| -> Dims {
        let of = |s: &Vec<isize>| dims.iter().map(|d| s[*d]).collect();
        collapse(
            &dims.iter().map(|d| extents[*d]).collect::<Vec<_>>(),
            &strides.iter().map(of).collect::<Vec<Vec<isize>>>(),
        )
    };
    let count = reduced.iter().map(|d| extents[*d]).product();
    let (mut outer, inner) = (pick(&kept), pick(reduced));
    // An operand's type tells nothing about dims that are moved: only what has one element is sure to be a splat.
    let last = |dims: &[usize]| dims.last().is_some_and(|d| d + 1 == extents.len());
    let moved = |dims: &[usize]| -> Vec<BroadcastKind> {
        let one = |s: &BroadcastKind| match s {
            BroadcastKind::Inner if !(last(dims) && dims.len() == 1) => BroadcastKind::Varies,
            s => *s,
        };
        spread.iter().map(one).collect()
    };
    if columns {
        outer.extents.extend(inner.extents);
        outer.strides.iter_mut().zip(inner.strides).for_each(|(o, i)| o.extend(i));
        let behind: Vec<usize> = (behind..extents.len()).collect();
        return rows_of(outer, pick(&behind), &moved(&behind), Some(Fold::Columns(count)), adds);
    }
    rows_of(outer, inner, &moved(reduced), Some(Fold::Rows(count)), adds)
}

/// How an operand of these strides is read, which is no splat.
fn access_of(dims: &[usize], strides: &[isize], spread: BroadcastKind) -> Access {
    match spread {
        BroadcastKind::Generated => Access::Generated(dims.to_vec(), strides.to_vec()),
        _ => access(dims, strides),
    }
}

/// How an operand in memory of these strides is read.
fn access(dims: &[usize], strides: &[isize]) -> Access {
    let is_contiguous = |from: usize| {
        let (dims, strides) = (&dims[from..], &strides[from..]);
        strides.last() == Some(&1) && strides.windows(2).zip(&dims[1..]).all(|(s, n)| s[0] == s[1] * *n as isize)
    };
    if is_contiguous(0) {
        return Access::Contiguous;
    }
    let repeated = strides.iter().take_while(|s| **s == 0).count();
    let period: usize = dims[repeated..].iter().product();
    if period <= LONGEST_PERIOD && is_contiguous(repeated) {
        return Access::Periodic(period);
    }
    Access::Gather(dims.to_vec(), strides.to_vec())
}

/// How far before and behind the first element loops over these extents and strides read, all nested.
fn reach(loops: &[(&Vec<usize>, &Vec<isize>)]) -> (i128, i128) {
    let (mut low, mut high) = (0, 0);
    for (extents, strides) in loops {
        for (n, s) in extents.iter().zip(*strides) {
            let reach = (*n as i128 - 1) * *s as i128;
            low += reach.min(0);
            high += reach.max(0);
        }
    }
    (low, high)
}

/// Drops dims of extent 1, and joins adjacent dims where a loop over both is one loop for every operand.
fn collapse(extents: &[usize], strides: &[Vec<isize>]) -> Dims {
    let mut dims: Vec<usize> = Vec::with_capacity(extents.len());
    let mut out: Vec<Vec<isize>> = vec![Vec::with_capacity(extents.len()); strides.len()];
    for (d, n) in extents.iter().enumerate() {
        if *n == 1 {
            continue;
        }
        // A full row of the new dim is one step of the dim before it, for every operand?
        let joins = !dims.is_empty()
            && strides.iter().zip(&out).all(|(s, o)| o.last().copied() == s[d].checked_mul(*n as isize));
        match dims.last_mut() {
            Some(last) if joins => {
                *last *= n;
                out.iter_mut().zip(strides).for_each(|(o, s)| {
                    o.pop();
                    o.push(s[d]);
                });
            }
            _ => {
                dims.push(*n);
                out.iter_mut().zip(strides).for_each(|(o, s)| o.push(s[d]));
            }
        }
    }
    Dims { extents: dims, strides: out }
}

#[cfg(test)]
mod enumerated;
#[cfg(test)]
mod tests;
