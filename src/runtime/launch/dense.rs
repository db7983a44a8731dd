//! The geometry of a planned kernel over contiguous operands, before there are any: for dumps.
//!
//! Does not: plan launches that run; their operands may have other strides.

use super::prepared::aligned_strides;
use crate::base::error::Result;
use crate::base::shape::{contiguous_strides, numel};
use crate::plan::fuse::{Plan, PlannedKernel};
use crate::plan::geometry::{Geometry, Reduction};

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
        let Some(shape) = extents(plan.buffers[*b as usize].shape) else { return Ok(Extents::Dynamic) };
        strides.push(aligned_strides(&shape, &contiguous_strides(&shape), &domain)?);
    }
    let reduced = k.reduced.as_deref().map(|dims| Reduction { dims, adds: adds && k.kernel.adds_up() });
    Ok(Extents::Known(Geometry::new(&domain, &strides, &k.spread, reduced)))
}
