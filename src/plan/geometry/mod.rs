//! The iteration domain of a launch: dims that lie behind each other become one, and what is left is rows of one
//! inner run. A domain that is reduced is walked so that what is combined lies along the run or along the rows.
//!
//! Guarantees: without a reduction, every operand's elements are met in row-major order of the domain; each operand
//! is classed by how it moves along the run; in which order a reduction combines elements depends on the extents and
//! the reduced dims alone, whether short rows are joined also on what is reduced. Does not: touch data.

use crate::kernels::reduce::has_many_lanes;
use crate::plan::schedule::Class;
use crate::plan::tuning::{COLUMNS, LONGEST_PERIOD, SHORT_ADDED, SHORT_INNER, SHORT_READ, SHORT_REDUCED};

/// How an operand is read along the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// One element for the whole run.
    Broadcast,
    /// Neighbours in memory.
    Contiguous,
    /// The same so many neighbours in memory, again and again.
    Periodic(usize),
    /// Any strides: copied tile by tile. The dims make up the run.
    Gather(Vec<usize>, Vec<isize>),
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
}

/// How the elements of a reduced domain are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Every so many neighbours along the run become one: a whole run, or one of several short rows that were joined.
    Rows(usize),
    /// Every so many rows become one.
    Columns(usize),
    /// Every `count` rows become one: rows of `width` neighbours along the run, one behind the other.
    Stacked { count: usize, width: usize },
}

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction<'a> {
    /// The dims, in order.
    pub(crate) dims: &'a [usize],
    /// Whether it is sums of what is computed, which loops add up themselves.
    pub(crate) adds: bool,
}

/// An operand of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Its stride (in elements) along each of the outer dims.
    pub(crate) rows: Vec<isize>,
    pub(crate) access: Access,
    /// How far before and behind the first element the domain walks, in elements.
    pub(crate) reach: (i128, i128),
}

/// The domain of a launch as rows times a run, and its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) rows: Vec<usize>,
    pub(crate) run: usize,
    pub(crate) operands: Vec<Operand>,
    pub(crate) fold: Option<Fold>,
}

/// Extents, and the strides of each operand.
type Dims = (Vec<usize>, Vec<Vec<isize>>);

impl Geometry {
    /// Plans a domain. `strides` has, for each operand, a stride in elements for each dim of the domain (0 where it
    /// is broadcast); `spread` is what the operands' types say, so that the class depends on extents as little as it
    /// can: an operand that is repeated only because an extent happens to be 1 is gathered. `reduced` has the dims
    /// that are reduced, if any are.
    pub(crate) fn new(
        extents: &[usize],
        strides: &[Vec<isize>],
        spread: &[BroadcastKind],
        reduced: Option<Reduction<'_>>,
    ) -> Geometry {
        match reduced {
            Some(reduced) => folded(extents, strides, spread, reduced),
            None => {
                let (mut rows, mut outer) = collapse(extents, strides);
                let run: Vec<usize> = rows.pop().into_iter().collect();
                let inner = outer.iter_mut().map(|s| s.pop().into_iter().collect()).collect();
                plain((rows, outer), (run, inner), spread, None, false)
            }
        }
    }

    /// The class of each operand: what the schedule depends on.
    pub(crate) fn classes(&self) -> Vec<Class> {
        self.operands.iter().map(|o| if o.access == Access::Broadcast { Class::Splat } else { Class::Vector }).collect()
    }

    /// Whether the domain is one run over operands where they are.
    pub(crate) fn in_place(&self) -> bool {
        self.rows.is_empty() && self.operands.iter().all(|o| matches!(o.access, Access::Broadcast | Access::Contiguous))
    }

    /// The number of rows.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.iter().product()
    }
}

/// Rows and a run as they are, or one run of all if it is short.
fn plain(rows: Dims, run: Dims, spread: &[BroadcastKind], fold: Option<Fold>, adds: bool) -> Geometry {
    let length: usize = run.0.iter().product();
    if run.0.is_empty() && rows.0.is_empty() {
        // One element: an operand is splat only if it always is, so that the class does not depend on extents.
        let access =
            |s: &BroadcastKind| if *s == BroadcastKind::Varies { Access::Contiguous } else { Access::Broadcast };
        let operands = spread.iter().map(|s| Operand { rows: vec![], access: access(s), reach: (0, 0) }).collect();
        return Geometry { rows: vec![], run: 1, operands, fold };
    }
    let short = match fold {
        None => SHORT_INNER,
        Some(Fold::Rows(_)) if adds && has_many_lanes(length) => SHORT_ADDED,
        Some(Fold::Rows(_)) if adds || spread.contains(&BroadcastKind::Inner) => SHORT_REDUCED,
        Some(Fold::Rows(_)) => SHORT_READ,
        Some(Fold::Columns(_) | Fold::Stacked { .. }) => COLUMNS,
    };
    let flat = !rows.0.is_empty() && length < short;
    if flat {
        let fold = match fold {
            Some(Fold::Columns(count)) => Some(Fold::Stacked { count, width: length }),
            fold => fold,
        };
        let all: Vec<usize> = rows.0.iter().chain(&run.0).copied().collect();
        let strides: Vec<Vec<isize>> =
            rows.1.iter().zip(&run.1).map(|(o, i)| o.iter().chain(i).copied().collect()).collect();
        let (all, strides) = collapse(&all, &strides);
        let total = all.iter().product();
        let operand = |(s, spread): (&Vec<isize>, &BroadcastKind)| {
            let access = if *spread == BroadcastKind::All { Access::Broadcast } else { access(&all, s) };
            Operand { rows: vec![], access, reach: reach(&[(&all, s)]) }
        };
        let operands = strides.iter().zip(spread).map(operand).collect();
        return Geometry { rows: vec![], run: total, operands, fold };
    }
    let operand = |((outer, inner), spread): ((&Vec<isize>, &Vec<isize>), &BroadcastKind)| {
        let splat = *spread != BroadcastKind::Varies && inner.iter().all(|s| *s == 0);
        let access = if splat { Access::Broadcast } else { access(&run.0, inner) };
        Operand { rows: outer.clone(), access, reach: reach(&[(&rows.0, outer), (&run.0, inner)]) }
    };
    let operands = rows.1.iter().zip(&run.1).zip(spread).map(operand).collect();
    Geometry { rows: rows.0, run: length, operands, fold }
}

/// A reduced domain. What is behind the last reduced dim is the run, and rows are combined; if there is nothing, the reduced
/// dims are the run.
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
    // An operand's type tells nothing about dims that are moved: only what has one element is sure to be splat.
    let last = |dims: &[usize]| dims.last().is_some_and(|d| d + 1 == extents.len());
    let moved = |dims: &[usize]| -> Vec<BroadcastKind> {
        let one = |s: &BroadcastKind| match s {
            BroadcastKind::Inner if !(last(dims) && dims.len() == 1) => BroadcastKind::Varies,
            s => *s,
        };
        spread.iter().map(one).collect()
    };
    if columns {
        outer.0.extend(inner.0);
        outer.1.iter_mut().zip(inner.1).for_each(|(o, i)| o.extend(i));
        let behind: Vec<usize> = (behind..extents.len()).collect();
        let run = pick(&behind);
        let run = if run.0.is_empty() { (vec![1], vec![vec![0]; strides.len()]) } else { run };
        return plain(outer, run, &moved(&behind), Some(Fold::Columns(count)), adds);
    }
    plain(outer, inner, &moved(reduced), Some(Fold::Rows(count)), adds)
}

/// How an operand of these strides is read.
fn access(dims: &[usize], strides: &[isize]) -> Access {
    let joined = |from: usize| {
        let (dims, strides) = (&dims[from..], &strides[from..]);
        strides.last() == Some(&1) && strides.windows(2).zip(&dims[1..]).all(|(s, n)| s[0] == s[1] * *n as isize)
    };
    if joined(0) {
        return Access::Contiguous;
    }
    let repeated = strides.iter().take_while(|s| **s == 0).count();
    let period: usize = dims[repeated..].iter().product();
    if period <= LONGEST_PERIOD && joined(repeated) {
        return Access::Periodic(period);
    }
    Access::Gather(dims.to_vec(), strides.to_vec())
}

/// How far walks of these extents and strides go, together.
fn reach(walks: &[(&Vec<usize>, &Vec<isize>)]) -> (i128, i128) {
    let (mut low, mut high) = (0, 0);
    for (extents, strides) in walks {
        for (n, s) in extents.iter().zip(*strides) {
            let reach = (*n as i128 - 1) * *s as i128;
            low += reach.min(0);
            high += reach.max(0);
        }
    }
    (low, high)
}

/// Drops dims of extent 1 and joins neighbours that every operand walks as one.
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
    (dims, out)
}

#[cfg(test)]
mod enumerated;

#[cfg(test)]
mod tests {
    use super::*;

    fn new(extents: &[usize], strides: &[Vec<isize>], spread: &[BroadcastKind]) -> Geometry {
        Geometry::new(extents, strides, spread, None)
    }

    #[test]
    fn contiguous_dims_become_one_run_and_broadcasts_rows() {
        let g = new(&[2, 3, 400], &[vec![1200, 400, 1], vec![1200, 400, 1]], &[BroadcastKind::Varies; 2]);
        assert_eq!((g.rows.as_slice(), g.run, g.in_place()), (&[][..], 2400, true));
        let g = new(
            &[2, 3, 400],
            &[vec![1200, 400, 1], vec![0, 0, 1], vec![3, 1, 0]],
            &[BroadcastKind::Varies, BroadcastKind::Varies, BroadcastKind::Inner],
        );
        assert_eq!((g.rows.as_slice(), g.run, g.in_place()), (&[6][..], 400, false));
        assert_eq!(g.operands[1], Operand { rows: vec![0], access: Access::Contiguous, reach: (0, 399) });
        assert_eq!(g.operands[2], Operand { rows: vec![1], access: Access::Broadcast, reach: (0, 5) });
    }

    #[test]
    fn short_runs_are_joined() {
        let g = new(
            &[100, 3],
            &[vec![3, 1], vec![0, 1], vec![1, 0], vec![0, 0]],
            &[BroadcastKind::Varies, BroadcastKind::Varies, BroadcastKind::Inner, BroadcastKind::All],
        );
        assert_eq!((g.rows.as_slice(), g.run, g.in_place()), (&[][..], 300, false));
        let of = |n: usize| new(&[100, n], &[vec![n as isize, 1], vec![0, 1]], &[BroadcastKind::Varies; 2]);
        assert_eq!((of(SHORT_INNER - 1).run, of(SHORT_INNER).run), (100 * (SHORT_INNER - 1), SHORT_INNER));
        assert_eq!(g.operands[0].access, Access::Contiguous);
        assert_eq!(g.operands[1].access, Access::Periodic(3));
        assert_eq!(g.operands[2].access, Access::Gather(vec![100, 3], vec![1, 0]));
        assert_eq!(g.operands[3].access, Access::Broadcast);
    }

    #[test]
    fn walks_backwards_reach_behind_the_first_element() {
        let g = new(&[5, 100], &[vec![-100, 1], vec![0, -2], vec![3, -1]], &[BroadcastKind::Varies; 3]);
        let reach: Vec<(i128, i128)> = g.operands.iter().map(|o| o.reach).collect();
        assert_eq!(reach, [(-400, 99), (-198, 0), (-99, 12)]);
    }

    #[test]
    fn longer_periods_are_gathered() {
        let of = |n: usize| access(&[3, n], &[0, 1]);
        assert_eq!(of(LONGEST_PERIOD), Access::Periodic(LONGEST_PERIOD));
        assert_eq!(of(LONGEST_PERIOD + 1), Access::Gather(vec![3, LONGEST_PERIOD + 1], vec![0, 1]));
        assert_eq!(access(&[3, 4], &[0, 0]), Access::Gather(vec![3, 4], vec![0, 0]));
        assert_eq!(access(&[3, 4], &[4, 2]), Access::Gather(vec![3, 4], vec![4, 2]));
    }

    #[test]
    fn the_class_of_one_element_does_not_depend_on_extents() {
        let g = new(&[1, 1], &[vec![0, 0], vec![0, 0]], &[BroadcastKind::Varies, BroadcastKind::All]);
        assert_eq!(g.classes(), [Class::Vector, Class::Splat]);
        let g = new(&[90, 1], &[vec![1, 1], vec![0, 1]], &[BroadcastKind::Varies, BroadcastKind::Varies]);
        assert_eq!(g.classes(), [Class::Vector, Class::Vector]);
    }

    #[test]
    fn the_class_under_a_reduction_does_not_depend_on_extents() {
        let class = |strides: &[isize], reduced: &[usize]| {
            let reduced = Some(Reduction { dims: reduced, adds: false });
            Geometry::new(&[100, 3, 400], &[strides.to_vec()], &[BroadcastKind::Inner], reduced).classes()[0]
        };
        // Repeated along the last dim, which is the run; and along another one, of which its type says nothing.
        assert_eq!(class(&[3, 1, 0], &[2]), Class::Splat);
        assert_eq!(class(&[0, 0, 0], &[1, 2]), Class::Vector);
        let g = Geometry::new(
            &[400, 3],
            &[vec![0, 0]],
            &[BroadcastKind::Inner],
            Some(Reduction { dims: &[0], adds: false }),
        );
        assert_eq!((g.run, g.classes()), (1200, vec![Class::Vector]));
    }

    #[test]
    fn reduced_dims_are_the_run_or_the_rows() {
        let dense = |extents: &[usize]| vec![crate::base::shape::contiguous_strides(extents)];
        let folded = |extents: &[usize], reduced: &[usize]| {
            let reduced = Some(Reduction { dims: reduced, adds: false });
            Geometry::new(extents, &dense(extents), &[BroadcastKind::Varies], reduced)
        };
        let g = folded(&[4, 100, 200], &[0, 1, 2]);
        assert_eq!((g.rows.len(), g.run, g.fold), (0, 80_000, Some(Fold::Rows(80_000))));
        let g = folded(&[4, 100, SHORT_READ], &[2]);
        assert_eq!((g.rows.as_slice(), g.run, g.fold), (&[400][..], SHORT_READ, Some(Fold::Rows(SHORT_READ))));
        let g = folded(&[4, 100, SHORT_READ - 1], &[2]);
        assert_eq!((g.rows.len(), g.run, g.fold), (0, 400 * (SHORT_READ - 1), Some(Fold::Rows(SHORT_READ - 1))));
        for (short, step, spread, adds) in [
            (SHORT_REDUCED, 0, BroadcastKind::Inner, false),
            (SHORT_ADDED, 0, BroadcastKind::Inner, true),
            (SHORT_ADDED, 1, BroadcastKind::Varies, true),
        ] {
            let reduced = Some(Reduction { dims: &[1], adds });
            let run = |n: usize| {
                Geometry::new(&[400, n], &[vec![n as isize * step + 1 - step, step]], &[spread], reduced).run
            };
            assert_eq!((run(short - 1), run(short)), (400 * (short - 1), short));
        }
        let g = folded(&[400, 5], &[1]);
        assert_eq!((g.rows.len(), g.run, g.fold), (0, 2000, Some(Fold::Rows(5))));
        let g = folded(&[4, 100, COLUMNS], &[1]);
        assert_eq!((g.rows.as_slice(), g.run, g.fold), (&[4, 100][..], COLUMNS, Some(Fold::Columns(100))));
        let g = folded(&[4, 100, 3], &[1]);
        assert_eq!((g.rows.len(), g.run, g.fold), (0, 1200, Some(Fold::Stacked { count: 100, width: 3 })));
        assert_eq!(g.operands[0].access, Access::Contiguous);
    }
}
