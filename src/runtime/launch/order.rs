//! Reductions to an element by its rank, or to its position: the operand is a buffer, and the results are found in it.
//!
//! Guarantees: any layout of the operand gives what its row-major copy gives. Does not: find elements; `driver` does.

use num_complex::Complex;

use super::finish::cast_tensor;
use super::kernel::Results;
use super::line_layout::spread;
use super::prepared::{PreparedLaunch, aligned_strides};
use super::run::Run;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result};
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::kernels::order::{Ask, Nans, Rank, order_kernel};
use crate::ops::{Choice, Number, Op};
use crate::plan::tuning::PARALLEL_WORK;
use crate::promotion::Settings;
use crate::runtime::driver::order::{Order, merged};
use crate::tensor::{Tensor, TensorRef};

/// What an op asks of each line of elements; `None` for another op.
fn asked(op: Op, number: Option<Number>, choice: Option<Choice>, settings: &Settings) -> Option<Ask> {
    let number = number.map_or(0.0, Number::get);
    let choice = choice.unwrap_or(Choice::Lower);
    let (position, quantiles) = (op.is_position(), settings.rules.set().quantiles(settings));
    let mean = quantiles.weighted || !matches!(op, Op::Quantile | Op::Nanquantile);
    let ask = |rank, nans| Some(Ask { rank, nans, choice, mean, quantiles, position });
    match op {
        Op::Median | Op::MedianIndices => ask(Rank::Part(0.5), Nans::Win),
        Op::Nanmedian | Op::NanmedianIndices => ask(Rank::Part(0.5), Nans::Skipped),
        Op::Quantile => ask(Rank::Part(number), Nans::Win),
        Op::Nanquantile => ask(Rank::Part(number), Nans::Skipped),
        Op::Kthvalue | Op::KthvalueIndices => ask(Rank::Kth((number as usize).saturating_sub(1)), Nans::Last),
        _ => None,
    }
}

/// The result of a reduction of `operand` by rank; `None` if the node is no such reduction.
pub(super) fn statistics<R>(
    typed: &TypedProgram,
    node: NodeId,
    operand: TensorRef<'_>,
    prepared: &PreparedLaunch<R>,
    run: &Run<'_>,
) -> Result<Option<Results>> {
    let n = &typed.nodes[node as usize];
    let (TypedKind::Reduce { op, axes, number, choice, .. }, [layout]) = (&n.kind, &prepared.folds[..]) else {
        return Ok(None);
    };
    let Some(ask) = asked(*op, *number, *choice, &typed.settings) else { return Ok(None) };
    let (results, dtype) = (layout.elements(), operand.dtype());
    let made = if ask.position { DType::I64 } else { dtype };
    if results > 0 && prepared.folded == 0 {
        let is_nan = matches!(op, Op::Median | Op::Nanmedian) && !dtype.is_integral();
        if !is_nan {
            return Err(Error::EmptyReduction { op: op.name(), location: n.location.clone() });
        }
        // Of complex numbers both parts, as the mean of none.
        let nan = match dtype.is_complex() {
            true => Tensor::scalar(Complex::new(f32::NAN, f32::NAN)),
            false => Tensor::scalar(f32::NAN),
        };
        let nan = cast_tensor(&nan, dtype, &typed.settings)?;
        let all = nan.broadcast_to(layout.shape())?;
        return Ok(Some([Some(TensorRef::Tensor(&all).copied(|bytes| run.storage(bytes))?)].into_iter().collect()));
    }
    let mut storage = run.storage(results * made.size())?;
    if prepared.total > 0 {
        if let Rank::Kth(k) = ask.rank
            && k >= prepared.folded
        {
            let message = format!("`{op}` with `k` = {} of {} elements", k + 1, prepared.folded);
            return Err(Diagnostic::new(DiagnosticKind::BadParameter, message).at(&n.location).into());
        }
        let (size, (bytes, _)) = (dtype.size(), operand.raw());
        let aligned = bytes.as_ptr().addr().is_multiple_of(size.min(align_of::<u64>()));
        let copy = if aligned { None } else { Some(spread(operand, prepared.shape(), run)?) };
        let source = copy.as_ref().map_or(operand, TensorRef::Tensor);
        let strides = aligned_strides(source.shape(), source.strides(), prepared.shape())?;
        let dims = || prepared.shape().iter().copied().zip(strides.iter().copied()).enumerate();
        let (bytes, start) = source.raw();
        let order = Order {
            kernel: order_kernel(dtype),
            ask,
            bytes: &bytes[..bytes.len() / size * size],
            size,
            start,
            kept: merged(dims().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d)),
            reduced: merged(dims().filter(|(i, _)| axes.contains(i)).map(|(_, d)| d)),
            threads: if prepared.total >= PARALLEL_WORK { run.threads } else { 1 },
            stop: run.stop,
        };
        run.within(order.scratch(results), || order.run(storage.bytes_mut(), made.size()))?;
        if copy.is_some() {
            run.memory.give(prepared.total * size);
        }
    }
    let found = cast_tensor(&Tensor::with_layout(storage, made, layout.clone())?, n.dtype, &typed.settings)?;
    run.memory.give(results * (made.size() - n.dtype.size().min(made.size())));
    Ok(Some([Some(found)].into_iter().collect()))
}
