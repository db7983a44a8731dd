//! Reductions to a position: the operand is a buffer, and the results are found in it.
//!
//! Guarantees: a strided operand gives what its row-major copy gives, of which it is made. Does not: find positions; `driver`
//! does.

use super::finish::cast_tensor;
use super::kernel::Results;
use super::prepared::PreparedLaunch;
use super::run::Run;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::kernels::CpuLevel;
use crate::kernels::index::index_kernels;
use crate::plan::tuning::PARALLEL_WORK;
use crate::runtime::driver::index::Search;
use crate::tensor::{Tensor, TensorRef};

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
        let dtype = operand.dtype();
        let kernels = index_kernels(*op, dtype, CpuLevel::get());
        let kernels = kernels.ok_or_else(|| Error::Internal(format!("no kernel for {op} in {dtype}")))?;
        let bytes = prepared.total * dtype.size();
        let whole = |t: TensorRef<'_>| row_major(t, shape).is_some();
        let copy = if whole(operand) { None } else { Some(spread(operand, shape, run)?) };
        let elements = row_major(copy.as_ref().map_or(operand, TensorRef::Tensor), shape);
        let elements = elements.ok_or_else(|| Error::Internal("a copy that is not row-major".into()))?;
        let width = axes.last().map_or(1, |last| shape[last + 1..].iter().product());
        let (length, size) = (prepared.folded, dtype.size());
        let threads = if prepared.total >= PARALLEL_WORK { run.threads } else { 1 };
        let outer = prepared.total / (length * width);
        let search = Search { kernels, bytes: elements, size, outer, length, width, threads, stop: run.stop };
        run.within(search.scratch(), || search.run(bytemuck::cast_slice_mut(storage.bytes_mut())))?;
        if copy.is_some() {
            run.memory.give(bytes);
        }
    }
    let found = cast_tensor(&Tensor::with_layout(storage, DType::I64, layout.clone())?, n.dtype, &typed.settings)?;
    run.memory.give(layout.elements() * (DType::I64.size() - n.dtype.size()));
    Ok([Some(found)].into_iter().collect())
}

/// The elements of a tensor of this shape, if they are in row-major order and aligned.
pub(super) fn row_major<'a>(t: TensorRef<'a>, shape: &[usize]) -> Option<&'a [u8]> {
    let (size, (bytes, offset)) = (t.dtype().size(), t.raw());
    let elements = bytes.get(offset * size..(offset + shape.iter().product::<usize>()) * size)?;
    let aligned = elements.as_ptr().addr().is_multiple_of(size.min(align_of::<u64>()));
    (t.shape() == shape && t.layout().is_contiguous() && aligned).then_some(elements)
}

/// A row-major copy of a tensor that broadcasts to this shape.
pub(super) fn spread(t: TensorRef<'_>, shape: &[usize], run: &Run<'_>) -> Result<Tensor> {
    if t.shape() == shape {
        return t.copied(|bytes| run.storage(bytes));
    }
    let wide = t.tensor(|bytes| run.storage(bytes))?.broadcast_to(shape)?;
    TensorRef::Tensor(&wide).copied(|bytes| run.storage(bytes))
}
