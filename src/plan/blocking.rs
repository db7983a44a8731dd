//! How many rows of a group's kernels are run together: blocks of the leading dims.
//!
//! Guarantees: blocks follow from extents alone; there are at most two sizes of them; each is a run of consecutive rows, and they
//! follow each other; one block has one row only if there is only one: how a single row is reduced may differ in bits from how each of
//! several is. Does not: run anything.

use std::fmt;

use smallvec::SmallVec;

use super::fuse::{MadeBy, Plan, RowGroup, RowSource};
use crate::base::view::View;
use crate::graph::typed::{NodeId, TypedKind};

/// How the rows of a group are divided into blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blocking {
    /// The extents of the leading dims.
    lead: SmallVec<[usize; 4]>,
    /// The leading dim that is cut. Blocks have one element of the dims before it, and all of those behind it.
    axis: usize,
    /// How many parts the dim is cut into, and how many of them, the first ones, have an element more than the others.
    parts: usize,
    longer: usize,
    /// Bytes that all kernels together make for a row, and that they read and make.
    made: usize,
    moved: usize,
    /// Bytes of a row that are kept beside the group's results: what kernels hand to each other, and copies that views may need.
    held: usize,
}

/// A block: a box of the leading dims.
pub(crate) struct Block {
    /// Its number.
    pub(crate) at: usize,
    /// Its first element along each leading dim, and its extents.
    pub(crate) start: SmallVec<[usize; 4]>,
    pub(crate) extents: SmallVec<[usize; 4]>,
    /// Whether it has an element less than the longest ones.
    pub(crate) is_short: bool,
    /// Its rows.
    pub(crate) rows: std::ops::Range<usize>,
}

impl Block {
    /// The shape of the block of something of this shape, which has all leading dims.
    pub(crate) fn shape(&self, mut all: Vec<usize>) -> Vec<usize> {
        all.iter_mut().zip(&self.extents).for_each(|(n, own)| *n = *own);
        all
    }
}

impl Blocking {
    /// The blocks of a group, if its kernels are to run block by block: their data is more than twice a block, and a block has several rows.
    /// `extents` are those of a shape, if they are known.
    pub(crate) fn of(plan: &Plan, group: &RowGroup, extents: impl Fn(u32) -> Option<Vec<usize>>) -> Option<Blocking> {
        let first = &plan.work[group.kernels.start];
        let lead: SmallVec<[usize; 4]> = extents(first.shape)?.get(..group.lead)?.into();
        let rows = lead.iter().try_fold(1usize, |n, e| n.checked_mul(*e))?;
        let elements = |shape: u32| extents(shape).map(|s| s.iter().fold(1usize, |n, e| n.saturating_mul(*e)));
        let per_row = |shape: u32| elements(shape)?.checked_div(rows);
        for k in &plan.work[group.kernels.clone()] {
            if per_row(k.shape)? == 0 {
                return None;
            }
        }
        let (mut made, mut held, mut read) = (0usize, 0usize, 0usize);
        let mut seen = SmallVec::<[u32; 8]>::new();
        for i in &group.inner {
            let row = per_row(plan.buffers[i.buffer as usize].shape)?;
            match i.from {
                MadeBy::Kernel { size, .. } => {
                    let bytes = row.saturating_mul(size);
                    made = made.saturating_add(bytes);
                    held = held.saturating_add(if i.is_written_through() { 0 } else { bytes });
                }
                MadeBy::View(base, node) if may_copy(plan, node, &group.inner[base].from) => {
                    let size = plan.typed.nodes[node as usize].dtype.size();
                    held = held.saturating_add(row.saturating_mul(size));
                }
                MadeBy::View(..) => {}
            }
        }
        for (k, inputs) in plan.work[group.kernels.clone()].iter().zip(&group.inputs) {
            for (source, dtype) in inputs.iter().zip(&k.kernel.inputs) {
                if let RowSource::Given(b) = source
                    && !seen.contains(b)
                {
                    seen.push(*b);
                    let bytes = per_row(plan.buffers[*b as usize].shape)?.saturating_mul(dtype.size());
                    read = read.saturating_add(bytes);
                }
            }
        }
        let moved = made.saturating_add(read);
        let wanted = plan.row_block / moved.max(1);
        if wanted < 2 || rows < 4 || moved.saturating_mul(rows) / 2 <= plan.row_block {
            return None;
        }
        Some(Blocking { made, moved, held, ..cut(lead, wanted) })
    }

    /// The number of blocks.
    pub(crate) fn count(&self) -> usize {
        self.lead[..self.axis].iter().product::<usize>() * self.parts
    }

    /// Rows of a part of the dim that is cut, by its elements.
    fn behind(&self) -> usize {
        self.lead[self.axis + 1..].iter().product()
    }

    /// Rows of the longest block.
    pub(crate) fn rows(&self) -> usize {
        self.lead[self.axis].div_ceil(self.parts) * self.behind()
    }

    /// All rows.
    pub(crate) fn all(&self) -> usize {
        self.lead.iter().product()
    }

    /// Whether blocks have two sizes.
    pub(crate) fn has_short(&self) -> bool {
        self.longer > 0
    }

    /// Bytes that the group reads.
    pub(crate) fn read(&self) -> usize {
        (self.moved - self.made).saturating_mul(self.all())
    }

    /// Bytes that a block takes beside the group's results.
    pub(crate) fn scratch(&self) -> usize {
        self.rows().saturating_mul(self.held)
    }

    /// The block of this number.
    pub(crate) fn block(&self, at: usize) -> Block {
        let (mut outer, part) = (at / self.parts, at % self.parts);
        let short = self.lead[self.axis] / self.parts;
        let from = part * short + part.min(self.longer);
        let size = short + usize::from(part < self.longer);
        let (mut start, mut extents) = (SmallVec::from_elem(0, self.lead.len()), self.lead.clone());
        for d in (0..self.axis).rev() {
            start[d] = outer % self.lead[d];
            extents[d] = 1;
            outer /= self.lead[d];
        }
        (start[self.axis], extents[self.axis]) = (from, size);
        let first = ((at / self.parts) * self.lead[self.axis] + from) * self.behind();
        let is_short = self.longer > 0 && part >= self.longer;
        Block { at, start, extents, is_short, rows: first..first + size * self.behind() }
    }
}

impl fmt::Display for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, all) = (self.rows(), self.all());
        write!(f, "blocks of {rows} of {all} rows, {} bytes a row, {} of scratch", self.moved, self.scratch())
    }
}

/// Cuts leading dims into blocks of about so many rows, at least two.
fn cut(lead: SmallVec<[usize; 4]>, wanted: usize) -> Blocking {
    let (mut axis, mut behind) = (lead.len() - 1, 1);
    while axis > 0 && behind * lead[axis] <= wanted {
        behind *= lead[axis];
        axis -= 1;
    }
    let (n, least) = (lead[axis], if behind == 1 { 2 } else { 1 });
    let most = (wanted / behind).max(least);
    let parts = n.div_ceil(most).min(n / least).max(1);
    Blocking { longer: n % parts, lead, axis, parts, made: 0, moved: 0, held: 0 }
}

/// Whether a view of something in a group may have no strides for its shape, so that its elements are copied: what a kernel makes is
/// contiguous, and only a view of a view is not.
fn may_copy(plan: &Plan, node: NodeId, base: &MadeBy) -> bool {
    let reshapes = match &plan.typed.nodes[node as usize].kind {
        TypedKind::View { view: Some(view), .. } => matches!(view, View::Reshape(_)),
        _ => true,
    };
    reshapes && matches!(base, MadeBy::View(..))
}

#[cfg(test)]
mod tests;
