//! Ops on lines: the operand is a buffer, and the result another one.
//!
//! Guarantees: any layout of the operand gives what its row-major copy gives. Does not: compute; `driver` does.

use super::finish::cast_tensor;
use super::index::search;
use super::kernel::Results;
use super::line_layout::{Lines, with_lines};
use super::prepared::PreparedLaunch;
use super::run::Run;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result};
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::kernels::cast::path_within;
use crate::kernels::sort::{Sorting, sort_kernels};
use crate::kernels::{CpuLevel, scan_kernels};
use crate::ops::{Choice, Op};
use crate::runtime::driver::scan::{Conversion, Scan};
use crate::runtime::driver::sort::Sort;
use crate::tensor::{Tensor, TensorRef};

/// The result of an op on the lines of `operand`.
pub(super) fn lines<R>(
    typed: &TypedProgram,
    node: NodeId,
    operand: TensorRef<'_>,
    prepared: &PreparedLaunch<R>,
    run: &Run<'_>,
) -> Result<Results> {
    let (n, shape) = (&typed.nodes[node as usize], prepared.shape());
    let (TypedKind::Line { op, axis, number, choice, .. }, [layout]) = (&n.kind, &prepared.folds[..]) else {
        return Err(Error::Internal(format!("typed node {node} is no op on lines")));
    };
    let mut storage = run.storage(layout.elements() * n.dtype.size())?;
    if layout.elements() > 0 {
        // A 0-d value is one line of one element.
        let axis = (*axis).min(shape.len());
        let (dims, results) = (axis..(axis + 1).min(shape.len()), storage.bytes_mut());
        with_lines(operand, shape, dims, run, |all| match op {
            Op::Sort | Op::Argsort | Op::Topk | Op::TopkIndices => {
                let count = number.map_or(all.length, |k| k.get() as usize);
                let how = Sorting { descending: *choice == Some(Choice::True), count, position: op.gives_long() };
                if count > all.length {
                    let message = format!("`{op}` with `k` = {count} of {} elements", all.length);
                    return Err(Diagnostic::new(DiagnosticKind::BadParameter, message).at(&n.location).into());
                }
                sorted(how, all, n.dtype, typed, run, results)
            }
            Op::CummaxIndices | Op::CumminIndices => positions(*op, all, n.dtype, typed, run, results),
            _ => scan(*op, all, n.dtype, typed, run, results),
        })?;
    }
    Ok([Some(Tensor::with_layout(storage, n.dtype, layout.clone())?)].into_iter().collect())
}

/// The positions of extremes up to each element.
fn positions(
    op: Op,
    all: &Lines<'_>,
    to: DType,
    typed: &TypedProgram,
    run: &Run<'_>,
    results: &mut [u8],
) -> Result<()> {
    let search = search(op, all, run)?;
    if to == DType::I64 {
        return search.running(bytemuck::cast_slice_mut(results));
    }
    let count = all.outer * all.length * all.width;
    let mut wide = run.storage(count * DType::I64.size())?;
    search.running(bytemuck::cast_slice_mut(wide.bytes_mut()))?;
    let found = cast_tensor(&Tensor::from_storage(wide, DType::I64, &[count])?, to, &typed.settings)?;
    results.copy_from_slice(&found.raw().0[..results.len()]);
    run.memory.give(count * DType::I64.size());
    Ok(())
}

/// The elements of lines in order, or their positions.
fn sorted(
    how: Sorting,
    all: &Lines<'_>,
    to: DType,
    typed: &TypedProgram,
    run: &Run<'_>,
    results: &mut [u8],
) -> Result<()> {
    let Lines { bytes, outer, length, width, threads, dtype } = *all;
    let made = if how.position { DType::I64 } else { dtype };
    let (kernels, size, stop) = (sort_kernels(dtype), dtype.size(), run.stop);
    let sort = |threads| Sort { kernels, how, bytes, size, made: made.size(), outer, length, width, threads, stop };
    // Threads that share a line take more memory than one.
    let sort = sort(if run.memory.has(sort(threads).scratch()) { threads } else { 1 });
    if to == made {
        return run.within(sort.scratch(), || sort.run(results));
    }
    let count = outer * how.count * width;
    let mut wide = run.storage(count * made.size())?;
    run.within(sort.scratch(), || sort.run(wide.bytes_mut()))?;
    let found = cast_tensor(&Tensor::from_storage(wide, made, &[count])?, to, &typed.settings)?;
    results.copy_from_slice(&found.raw().0[..results.len()]);
    run.memory.give(count * made.size());
    Ok(())
}

/// The dtype that a scan accumulates in.
fn accumulates_in(op: Op, dtype: DType) -> DType {
    match dtype {
        DType::F32 if !op.is_exact(dtype) => DType::F64,
        DType::C64 if !op.is_exact(dtype) => DType::C128,
        _ => dtype.op_math(),
    }
}

fn scan(op: Op, all: &Lines<'_>, to: DType, typed: &TypedProgram, run: &Run<'_>, results: &mut [u8]) -> Result<()> {
    let (math, level) = (accumulates_in(op, to), CpuLevel::get());
    let kernels = scan_kernels(op, math, level);
    let kernels = kernels.ok_or_else(|| Error::Internal(format!("no kernel for {op} in {math}")))?;
    let beyond_is_nan = typed.settings.rules.set().beyond_is_nan();
    let conversion = |from: DType, to: DType, size: usize| match path_within(from, to, beyond_is_nan)[..] {
        [] => Ok(Conversion { kernel: None, size }),
        [prim] => Ok(Conversion { kernel: prim.kernel(level), size }),
        _ => Err(Error::Internal(format!("{op} of {from} in {to}"))),
    };
    let scan = Scan {
        kernels,
        size: math.size(),
        read: conversion(all.dtype, math, all.dtype.size())?,
        write: conversion(math, to, to.size())?,
        bytes: all.bytes,
        outer: all.outer,
        length: all.length,
        width: all.width,
        threads: all.threads,
        stop: run.stop,
    };
    run.within(scan.scratch(), || scan.run(results))
}
