//! The iteration domain of a launch: dims that lie behind each other become one, and what is left is rows of one
//! inner run.
//!
//! Guarantees: every operand's elements are met in row-major order of the domain; each operand is classed by how it
//! moves along the run. Does not: touch data.

use crate::schedule::Class;

/// Runs shorter than this are joined: operands that then have gaps are gathered into tiles.
const SHORT_RUN: usize = 64;

/// How an operand is read along the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// One element for the whole run.
    Splat,
    /// Neighbours in memory.
    Direct,
    /// Any strides: copied tile by tile. The dims make up the run.
    Gather(Vec<usize>, Vec<isize>),
}

/// What an operand's type says about how it is broadcast, before extents are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// It has one element.
    One,
    /// It is repeated along the domain's last dim.
    Run,
    /// It has the domain's last dim.
    Varies,
}

/// An operand of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Its stride (in elements) along each of the outer dims.
    pub(crate) rows: Vec<isize>,
    pub(crate) access: Access,
}

/// The domain of a launch as rows times a run, and its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) rows: Vec<usize>,
    pub(crate) run: usize,
    pub(crate) operands: Vec<Operand>,
}

impl Geometry {
    /// Plans a domain. `strides` has, for each operand, a stride in elements for each dim of the domain (0 where it
    /// is broadcast); `spread` is what the operands' types say, so that the class depends on extents as little as it
    /// can: an operand that is repeated only because an extent happens to be 1 is gathered.
    pub(crate) fn new(extents: &[usize], strides: &[Vec<isize>], spread: &[Spread]) -> Geometry {
        let (dims, strides) = collapse(extents, strides);
        let total = dims.iter().product();
        let Some((run, rows)) = dims.split_last() else {
            // One element: an operand is splat only if it always is, so that the class does not depend on extents.
            let access = |s: &Spread| if *s == Spread::Varies { Access::Direct } else { Access::Splat };
            let operands = spread.iter().map(|s| Operand { rows: vec![], access: access(s) }).collect();
            return Geometry { rows: vec![], run: 1, operands };
        };
        let flat = !rows.is_empty() && *run < SHORT_RUN;
        let operands = strides.into_iter().zip(spread).map(|(s, spread)| operand(&dims, s, *spread, flat)).collect();
        if flat {
            Geometry { rows: vec![], run: total, operands }
        } else {
            Geometry { rows: rows.to_vec(), run: *run, operands }
        }
    }

    /// The class of each operand: what the schedule depends on.
    pub(crate) fn classes(&self) -> Vec<Class> {
        self.operands.iter().map(|o| if o.access == Access::Splat { Class::Splat } else { Class::Vector }).collect()
    }

    /// The number of rows.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.iter().product()
    }
}

fn operand(dims: &[usize], mut strides: Vec<isize>, spread: Spread, flat: bool) -> Operand {
    if flat {
        let access = if spread == Spread::One {
            Access::Splat
        } else if strides.windows(2).zip(&dims[1..]).all(|(s, n)| s[0] == s[1] * *n as isize)
            && strides.last() == Some(&1)
        {
            Access::Direct
        } else {
            Access::Gather(dims.to_vec(), strides)
        };
        return Operand { rows: vec![], access };
    }
    let access = match strides.pop() {
        Some(0) if spread != Spread::Varies => Access::Splat,
        Some(1) => Access::Direct,
        inner => Access::Gather(dims[dims.len() - 1..].to_vec(), inner.into_iter().collect()),
    };
    Operand { rows: strides, access }
}

/// Drops dims of extent 1 and joins neighbours that every operand walks as one.
fn collapse(extents: &[usize], strides: &[Vec<isize>]) -> (Vec<usize>, Vec<Vec<isize>>) {
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
mod tests {
    use super::*;

    #[test]
    fn contiguous_dims_become_one_run_and_broadcasts_rows() {
        let g = Geometry::new(&[2, 3, 400], &[vec![1200, 400, 1], vec![1200, 400, 1]], &[Spread::Varies; 2]);
        assert_eq!((g.rows.as_slice(), g.run), (&[][..], 2400));
        let g = Geometry::new(
            &[2, 3, 400],
            &[vec![1200, 400, 1], vec![0, 0, 1], vec![3, 1, 0]],
            &[Spread::Varies, Spread::Varies, Spread::Run],
        );
        assert_eq!((g.rows.as_slice(), g.run), (&[6][..], 400));
        assert_eq!(g.operands[1], Operand { rows: vec![0], access: Access::Direct });
        assert_eq!(g.operands[2], Operand { rows: vec![1], access: Access::Splat });
    }

    #[test]
    fn short_runs_are_joined() {
        let g = Geometry::new(
            &[100, 3],
            &[vec![3, 1], vec![0, 1], vec![0, 0]],
            &[Spread::Varies, Spread::Varies, Spread::One],
        );
        assert_eq!((g.rows.as_slice(), g.run), (&[][..], 300));
        assert_eq!(g.operands[0].access, Access::Direct);
        assert_eq!(g.operands[1].access, Access::Gather(vec![100, 3], vec![0, 1]));
        assert_eq!(g.operands[2].access, Access::Splat);
    }

    #[test]
    fn the_class_of_one_element_does_not_depend_on_extents() {
        let g = Geometry::new(&[1, 1], &[vec![0, 0], vec![0, 0]], &[Spread::Varies, Spread::One]);
        assert_eq!(g.classes(), [Class::Vector, Class::Splat]);
        let g = Geometry::new(&[90, 1], &[vec![1, 1], vec![0, 1]], &[Spread::Varies, Spread::Varies]);
        assert_eq!(g.classes(), [Class::Vector, Class::Vector]);
    }
}
