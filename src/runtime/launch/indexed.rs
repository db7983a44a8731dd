//! Moves along a dim: the operand and the index are buffers, and the result another one.
//!
//! Guarantees: strided operands give what their row-major copies give, of which it is made; an index outside of its dim is an error, whatever else
//! is computed. Does not: move; `driver` does.

use super::kernel::Results;
use super::line_layout::{copied, elements};
use super::operand::Operand;
use super::prepared::PreparedLaunch;
use super::run::Run;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result};
use crate::base::indexing::Indexing;
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::plan::tuning::PARALLEL_WORK;
use crate::runtime::driver::indexed::{Moves, Places, outside};
use crate::tensor::Tensor;

/// The result of moving the first of these operands, to or from where the last one says.
pub(super) fn indexed<R>(
    typed: &TypedProgram,
    node: NodeId,
    inputs: &[Operand<'_>],
    prepared: &PreparedLaunch<R>,
    run: &Run<'_>,
) -> Result<Results> {
    let (n, to) = (&typed.nodes[node as usize], prepared.shape());
    let (TypedKind::Indexed { how, index, axis, .. }, [layout]) = (&n.kind, &prepared.folds[..]) else {
        return Err(Error::Internal(format!("typed node {node} moves nothing")));
    };
    let (Some(Operand::Tensor(x)), Some(Operand::Tensor(last))) = (inputs.first(), inputs.last()) else {
        return Err(Error::Internal(format!("typed node {node} moves what is not in memory")));
    };
    let from = x.shape();
    let extent = |shape: &[usize]| shape.get(*axis).copied().unwrap_or(1);
    let extents = (extent(from), extent(to));
    let refused = |message: String| Err(Diagnostic::new(DiagnosticKind::BadParameter, message).at(&n.location).into());
    let mut storage = run.storage(layout.elements() * n.dtype.size())?;
    // The other moves write all of their results.
    if matches!(how, Indexing::Pad { .. }) {
        storage.bytes_mut().fill(0);
    }
    let wanted = if *how == Indexing::Take { to } else { from };
    let copy = copied(*x, from, run)?;
    let copy_of_index = if index.is_some() { copied(*last, wanted, run)? } else { None };
    let index: &[i64] = match index {
        Some(_) => bytemuck::cast_slice(elements(*last, &copy_of_index, wanted)?),
        None => &[],
    };
    let within = if *how == Indexing::Take { extents.0 } else { extents.1 };
    if let Some(i) = outside(index, within) {
        return refused(format!("`{}` with the index {i} in a dim of extent {within}", how.name()));
    }
    let places = match how {
        Indexing::Take => Places::From(index),
        Indexing::ScatterAdd => Places::To(index),
        Indexing::Pad { start, step } => match Indexing::places(*start, *step, extents.0, extents.1) {
            Some((first, step)) => Places::Steps(first, step),
            None => {
                let (m, n) = extents;
                return refused(format!(
                    "`pad`: {m} elements from {start} on, each {step} behind the last, do not fit in {n}"
                ));
            }
        },
    };
    let product = |dims: &[usize]| dims.iter().product::<usize>();
    let axis = (*axis).min(to.len());
    let moves = Moves {
        bytes: elements(*x, &copy, from)?,
        dtype: n.dtype,
        places,
        outer: product(&to[..axis]),
        extents,
        width: product(to.get(axis + 1..).unwrap_or_default()),
        threads: if prepared.total >= PARALLEL_WORK { run.threads } else { 1 },
        stop: run.stop,
    };
    run.within(moves.scratch(), || moves.run(storage.bytes_mut()))?;
    for (copy, size) in [(&copy, n.dtype.size()), (&copy_of_index, DType::I64.size())] {
        if let Some(t) = copy {
            run.memory.give(t.shape().iter().product::<usize>() * size);
        }
    }
    Ok([Some(Tensor::with_layout(storage, n.dtype, layout.clone())?)].into_iter().collect())
}
