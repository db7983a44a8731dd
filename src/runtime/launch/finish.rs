//! The results of reductions: partial results combined, divided for a mean, and rounded to the dtype of the program.
//!
//! Guarantees: partial results are combined in an order that depends on their number alone. Does not: make partial results.

use std::sync::Arc;

use super::kernel::{Targets, launch, no_fold};
use super::operand::Operand;
use super::prepared::{Blocks, Call, PreparedLaunch, prepare_call};
use super::run::Run;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::scalar::Bits;
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::kernels::{CpuLevel, fold_kernel, reduce};
use crate::ops::Op;
use crate::plan::geometry::{BroadcastKind, Fold, Geometry, Reduction};
use crate::plan::kernel::KernelBuilder;
use crate::plan::schedule::{Class, schedule};
use crate::promotion::Settings;
use crate::tensor::layout::Layout;
use crate::tensor::{Storage, Tensor, TensorRef};

/// The result of an empty reduction, before the division of a mean.
fn of_nothing(op: Op, dtype: DType) -> Result<Bits> {
    let f = fold_kernel(op, dtype, reduce::Part::Whole, CpuLevel::get()).ok_or_else(|| no_fold(op, dtype))?;
    Ok(reduce::of_nothing(f))
}

/// Makes a reduction's result of its partial results: combined until there is one for each element, divided if it is
/// a mean, and rounded to the node's dtype.
pub(super) fn finish<R>(
    typed: &TypedProgram,
    node: NodeId,
    partial: Storage,
    prepared: &PreparedLaunch<R>,
    layout: &Arc<Layout>,
    run: &Run<'_>,
    needs_elements: Option<Op>,
) -> Result<Tensor> {
    let n = &typed.nodes[node as usize];
    let TypedKind::Reduce { op, .. } = n.kind else {
        return Err(Error::Internal(format!("typed node {node} is no reduction")));
    };
    let math = n.dtype.op_math();
    let results = layout.elements();
    let mut whole = if prepared.total == 0 {
        if results > 0
            && prepared.folded == 0
            && let Some(op) = needs_elements
        {
            return Err(Error::EmptyReduction { op: op.name(), location: n.location.clone() });
        }
        let mut storage = run.storage(results * math.size())?;
        let start = of_nothing(op, math)?;
        storage.bytes_mut().chunks_exact_mut(math.size()).for_each(|to| to.copy_from_slice(&start.0[..math.size()]));
        storage
    } else {
        combined(op, math, partial, &prepared.geometry, results, run)?
    };
    if op == Op::Mean {
        reduce::divide(math, whole.bytes_mut(), prepared.folded);
    }
    let made = cast_tensor(&Tensor::with_layout(whole, math, layout.clone())?, n.dtype, &typed.settings)?;
    run.memory.give(results * (math.size() - n.dtype.size()));
    Ok(made)
}

/// Reduces partial results until there are `results` of them.
fn combined(op: Op, math: DType, partial: Storage, g: &Geometry, results: usize, run: &Run<'_>) -> Result<Storage> {
    let count = partial.len() / math.size();
    if count == results {
        return Ok(partial);
    }
    // The partial results of a row, or the partial rows of the rows that become one, follow each other.
    let (extents, reduced) = match g.fold {
        Some(Fold::Columns(_)) => (vec![results / g.inner, count / results, g.inner], 1),
        Some(Fold::Stacked { width, .. }) => (vec![results / width, count / results, width], 1),
        None | Some(Fold::Rows(_)) => (vec![results, count / results], 1),
    };
    let t = Tensor::from_storage(partial, math, &extents)?;
    let b = KernelBuilder::fold_of(op, math);
    let inputs = [Operand::Tensor(TensorRef::Tensor(&t))];
    let reduced = Some(Reduction { dims: &[reduced], adds: false });
    let call = Call { inputs: &inputs, spread: &[BroadcastKind::Varies], extents: &extents, reduced };
    let ready = |classes: &[Class]| schedule(&b.kernel, classes, CpuLevel::get(), &|_| false).map(Blocks);
    let prepared = prepare_call(&call, vec![], ready)?;
    let made = launch(&b.kernel, &[], run, &prepared, &inputs, Targets::default())?;
    drop(t);
    run.memory.give(count * math.size());
    let next = made.ok().and_then(|(_, mut all)| all.pop());
    let next = next.ok_or_else(|| Error::Internal(format!("no result of {op}")))?;
    combined(op, math, next, &prepared.geometry, results, run)
}

/// A tensor in another dtype, by the kernels of the conversion's path, as a program of these settings casts it.
pub(crate) fn cast_tensor(t: &Tensor, to: DType, settings: &Settings) -> Result<Tensor> {
    if t.dtype() == to {
        return Ok(t.clone());
    }
    let b = KernelBuilder::cast_of(t.dtype(), to, settings);
    let inputs = [Operand::Tensor(TensorRef::Tensor(t))];
    let call = Call { inputs: &inputs, spread: &[BroadcastKind::Varies], extents: t.shape(), reduced: None };
    let ready = |classes: &[Class]| schedule(&b.kernel, classes, CpuLevel::get(), &|_| false).map(Blocks);
    let prepared = prepare_call(&call, vec![], ready)?;
    let made = launch(&b.kernel, &b.const_bits, &Run::alone(), &prepared, &inputs, Targets::default())?;
    let one = made.ok().and_then(|(mut all, _)| all.pop().flatten());
    one.ok_or_else(|| Error::Internal(format!("no result of a cast to {to}")))
}
