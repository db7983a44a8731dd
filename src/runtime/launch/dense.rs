//! The geometry of a planned kernel over contiguous operands, before there are any: for dumps.
//!
//! Does not: plan launches that run; their operands may have other strides.

use super::prepared::aligned_strides;
use crate::base::error::Result;
use crate::base::shape::numel;
use crate::graph::typed::TypedKind;
use crate::plan::fuse::{BufferId, Origin, Plan, PlannedKernel};
use crate::plan::geometry::{Geometry, Reduction};
use crate::tensor::Placed;

/// What is known of a kernel's extents without feeds.
pub(crate) enum Extents {
    /// All of them.
    Known(Geometry),
    /// All of them, and one is 0.
    Empty,
    /// Some depend on feeds.
    Dynamic,
}

/// The geometry of a kernel over contiguous operands, if no extent depends on feeds. `adds`: whether segments add sums.
pub(crate) fn dense_geometry(plan: &Plan, k: &PlannedKernel, adds: bool) -> Result<Extents> {
    let extents = |shape: u32| -> Option<Vec<usize>> {
        plan.typed.shapes[shape as usize].iter().map(|d| d.extent(&[])).collect()
    };
    let Some(domain) = extents(k.shape) else { return Ok(Extents::Dynamic) };
    if numel(&domain)? == 0 {
        return Ok(Extents::Empty);
    }
    let mut strides = Vec::new();
    for b in &k.inputs {
        let Some(placed) = placed(plan, *b, extents)? else { return Ok(Extents::Dynamic) };
        strides.push(aligned_strides(placed.shape(), placed.strides(), &domain)?);
    }
    let reduced = k.reduced.as_deref().map(|dims| Reduction { dims, adds: adds && k.kernel.adds_up() });
    Ok(Extents::Known(Geometry::new(&domain, &strides, &k.spread, reduced)))
}

/// The layout of a buffer over contiguous feeds, if its extents are known.
fn placed(plan: &Plan, buffer: BufferId, extents: impl Fn(u32) -> Option<Vec<usize>>) -> Result<Option<Placed>> {
    let (mut views, mut at) = (Vec::new(), buffer);
    while let Origin::View(base, node) = plan.buffers[at as usize].origin {
        views.push((node, plan.buffers[at as usize].shape));
        at = base;
    }
    let Some(shape) = extents(plan.buffers[at as usize].shape) else { return Ok(None) };
    let mut placed = Placed::contiguous(&shape)?;
    for (node, shape) in views.into_iter().rev() {
        let Some(shape) = extents(shape) else { return Ok(None) };
        let viewed = match &plan.typed.nodes[node as usize].kind {
            TypedKind::View { view: Some(view), .. } => placed.viewed(view, &shape)?,
            _ => Some(placed.reshape(&shape)?),
        };
        placed = viewed.map_or_else(|| Placed::contiguous(&shape), Ok)?;
    }
    Ok(Some(placed))
}
