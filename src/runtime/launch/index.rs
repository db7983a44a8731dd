//! Reductions to a position: the operand is a buffer, and the results are found in it.
//!
//! Guarantees: any layout of the operand gives what its row-major copy gives. Does not: find positions; `driver` does.

use super::finish::cast_tensor;
use super::kernel::Results;
use super::line_layout::{Lines, with_lines};
use super::prepared::PreparedLaunch;
use super::run::Run;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::kernels::CpuLevel;
use crate::kernels::index::index_kernels;
use crate::ops::Op;
use crate::runtime::driver::index::Search;
use crate::tensor::{Tensor, TensorRef};

/// What finds the positions that an op asks for in lines.
pub(super) fn search<'a>(op: Op, all: &Lines<'a>, run: &Run<'a>) -> Result<Search<'a>> {
    let Lines { bytes, dtype, outer, length, width, threads } = *all;
    let kernels = index_kernels(op, dtype, CpuLevel::get());
    let kernels = kernels.ok_or_else(|| Error::Internal(format!("no kernel for {op} in {dtype}")))?;
    Ok(Search { kernels, bytes, size: dtype.size(), outer, length, width, threads, stop: run.stop })
}

/// The result of a reduction of `operand` to positions.
pub(super) fn positions<R>(
    typed: &TypedProgram,
    node: NodeId,
    operand: TensorRef<'_>,
    prepared: &PreparedLaunch<R>,
    run: &Run<'_>,
) -> Result<Results> {
    let (n, shape) = (&typed.nodes[node as usize], prepared.shape());
    let (TypedKind::Reduce { op, axes, .. }, [layout]) = (&n.kind, &prepared.folds[..]) else {
        return Err(Error::Internal(format!("typed node {node} is no reduction")));
    };
    if layout.elements() > 0 && prepared.folded == 0 {
        return Err(Error::EmptyReduction { op: op.name(), location: n.location.clone() });
    }
    let mut storage = run.storage(layout.elements() * DType::I64.size())?;
    if prepared.total > 0 {
        let dims = axes.first().map_or(shape.len(), |d| *d)..axes.last().map_or(shape.len(), |d| d + 1);
        with_lines(operand, shape, dims, run, |all| {
            let search = search(*op, all, run)?;
            run.within(search.scratch(), || search.run(bytemuck::cast_slice_mut(storage.bytes_mut())))
        })?;
    }
    let found = cast_tensor(&Tensor::with_layout(storage, DType::I64, layout.clone())?, n.dtype, &typed.settings)?;
    run.memory.give(layout.elements() * (DType::I64.size() - n.dtype.size()));
    Ok([Some(found)].into_iter().collect())
}
