//! Launches made ready: everything about a launch that depends on its operands' layouts but not on their data.
//!
//! Guarantees: an operand broadcasts to the domain, or there is no launch. Does not: run anything.

use std::sync::Arc;

use super::operand::Operand;
use crate::backend::abi::SegmentFn;
use crate::backend::access_order::AccessOrder;
use crate::base::error::{Error, Result};
use crate::base::shape::numel;
use crate::plan::geometry::{BroadcastKind, Geometry, Reduction};
use crate::plan::schedule::{Class, Schedule};
use crate::plan::strategy::Strategy;
use crate::runtime::driver::job::strategy;
use crate::tensor::layout::Layout;

/// A kernel made ready for one assignment of classes: its schedule, and its compiled segments.
pub(crate) trait Ready {
    fn schedule(&self) -> &Schedule;
    fn segments(&self) -> &[SegmentFn];
    /// For each segment, the order in which it reads and writes; nothing if that is not known.
    fn orders(&self) -> &[AccessOrder] {
        &[]
    }
}

/// A schedule without segments.
pub(crate) struct Blocks(pub(crate) Schedule);

impl Ready for Blocks {
    fn schedule(&self) -> &Schedule {
        &self.0
    }

    fn segments(&self) -> &[SegmentFn] {
        &[]
    }
}

/// A launch made ready. Feeds of the same layouts have the same prepared launches.
pub(crate) struct PreparedLaunch<R> {
    pub(super) geometry: Geometry,
    /// Schedule, code and strategy; `None` if the domain has no elements: there is nothing to run.
    pub(super) ready: Option<(R, Strategy)>,
    pub(super) output: Arc<Layout>,
    /// Elements of the domain.
    pub(super) total: usize,
    /// For each reduction, the layout of its result.
    pub(super) folds: Vec<Arc<Layout>>,
    /// How many elements of the domain each element of these combines.
    pub(super) folded: usize,
}

impl<R> PreparedLaunch<R> {
    /// That of a kernel without a loop, whose result has these extents.
    pub(super) fn without_loop(extents: &[usize], folds: Vec<Arc<Layout>>) -> Result<PreparedLaunch<R>> {
        let (total, output) = (numel(extents)?, Layout::contiguous(extents)?);
        let geometry = Geometry::new(&vec![0; extents.len()], &[], &[], None);
        Ok(PreparedLaunch { geometry, ready: None, output, total, folds, folded: 1 })
    }

    /// The extents of the domain, and of each result.
    pub(super) fn shape(&self) -> &[usize] {
        self.output.shape()
    }

    /// The layout of the results: an operand's, if one is equal. A layout counts its users, and operands are mostly those of one thread, while
    /// this launch is used by all.
    pub(super) fn layout_of_results<'a>(
        &'a self,
        mut operands: impl Iterator<Item = &'a Arc<Layout>>,
    ) -> &'a Arc<Layout> {
        operands.find(|layout| **layout == self.output).unwrap_or(&self.output)
    }
}

/// The operands and the domain of a launch.
pub(super) struct Call<'a> {
    pub(super) inputs: &'a [Operand<'a>],
    /// How the type of each operand says that it is broadcast.
    pub(super) spread: &'a [BroadcastKind],
    pub(super) extents: &'a [usize],
    pub(super) reduced: Option<Reduction<'a>>,
}

/// Prepares a launch; `ready` gives it schedule and code for the classes of its operands.
pub(super) fn prepare_call<R: Ready>(
    call: &Call<'_>,
    folds: Vec<Arc<Layout>>,
    ready: impl FnOnce(&[Class]) -> Result<R>,
) -> Result<PreparedLaunch<R>> {
    let total = numel(call.extents)?;
    let strides = call.inputs.iter().map(|t| aligned_strides(t.shape(), t.strides(), call.extents));
    let strides = strides.collect::<Result<Vec<_>>>()?;
    // Where there are no elements, nothing bounds the products of the other extents.
    let zeros = if total == 0 { vec![0; call.extents.len()] } else { vec![] };
    let extents = if total == 0 { &zeros[..] } else { call.extents };
    let geometry = Geometry::new(extents, &strides, call.spread, call.reduced);
    let ready = if total == 0 { None } else { Some(ready(&geometry.classes())?) };
    let ready = ready.map(|ready| {
        let strategy = strategy(ready.schedule(), ready.segments(), &geometry);
        (ready, strategy)
    });
    let folded = call.reduced.map_or(1, |r| r.dims.iter().map(|a| extents[*a]).product());
    let output = Layout::contiguous(call.extents)?;
    Ok(PreparedLaunch { geometry, ready, output, total, folds, folded })
}

/// The strides of a tensor of this shape and these strides along the dims of a domain that it broadcasts to.
pub(super) fn aligned_strides(shape: &[usize], strides: &[isize], extents: &[usize]) -> Result<Vec<isize>> {
    let front = extents.len().checked_sub(shape.len());
    let front = front.ok_or_else(|| Error::Internal(format!("{shape:?} in a domain of {extents:?}")))?;
    let mut aligned = vec![0; extents.len()];
    for (i, (n, s)) in shape.iter().zip(strides).enumerate() {
        match (*n, extents[front + i]) {
            (1, _) => {}
            (n, e) if n == e => aligned[front + i] = *s,
            _ => return Err(Error::Internal(format!("{shape:?} does not broadcast to {extents:?}"))),
        }
    }
    Ok(aligned)
}
