//! Operands as row-major lines along dims.
//!
//! Guarantees: a strided operand gives what its row-major copy gives, of which it is made; the copy counts as memory of the run as long as
//! it is there. Does not: compute.

use std::ops::Range;

use super::run::Run;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::plan::tuning::PARALLEL_WORK;
use crate::tensor::{Tensor, TensorRef};

/// A row-major operand as lines along dims: `outer` × `length` × `width` elements.
pub(super) struct Lines<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) dtype: DType,
    pub(super) outer: usize,
    pub(super) length: usize,
    pub(super) width: usize,
    pub(super) threads: usize,
}

/// Does work on the lines that an operand of this shape has along consecutive dims.
pub(super) fn with_lines<T>(
    operand: TensorRef<'_>,
    shape: &[usize],
    dims: Range<usize>,
    run: &Run<'_>,
    work: impl FnOnce(&Lines<'_>) -> Result<T>,
) -> Result<T> {
    let dtype = operand.dtype();
    let copy = copied(operand, shape, run)?;
    let bytes = elements(operand, &copy, shape)?;
    let extents = |dims: Range<usize>| shape.get(dims).unwrap_or_default().iter().product::<usize>();
    let (outer, length, width) = (extents(0..dims.start), extents(dims.clone()), extents(dims.end..shape.len()));
    let threads = if outer * length * width >= PARALLEL_WORK { run.threads } else { 1 };
    let made = work(&Lines { bytes, dtype, outer, length, width, threads })?;
    if copy.is_some() {
        run.memory.give(bytes.len());
    }
    Ok(made)
}

/// A tensor in row-major order, in a shape that it broadcasts to: the copy that this takes, if it does.
pub(super) fn copied(t: TensorRef<'_>, shape: &[usize], run: &Run<'_>) -> Result<Option<Tensor>> {
    if row_major(t, shape).is_some() { Ok(None) } else { spread(t, shape, run).map(Some) }
}

/// The elements of a tensor, or of the copy that it took.
pub(super) fn elements<'a>(t: TensorRef<'a>, copy: &'a Option<Tensor>, shape: &[usize]) -> Result<&'a [u8]> {
    let bytes = row_major(copy.as_ref().map_or(t, TensorRef::Tensor), shape);
    bytes.ok_or_else(|| Error::Internal("a copy that is not row-major".into()))
}

/// The elements of a tensor of this shape, if they are in row-major order and aligned.
fn row_major<'a>(t: TensorRef<'a>, shape: &[usize]) -> Option<&'a [u8]> {
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
