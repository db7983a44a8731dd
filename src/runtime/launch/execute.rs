//! Runs one kernel of a plan, for all of its domain or for a block of rows.
//!
//! Does not: prepare launches.

use smallvec::SmallVec;

use super::finish::finish;
use super::index::positions;
use super::indexed::indexed;
use super::kernel::{Results, Targets, launch};
use super::lines::lines;
use super::operand::Operand;
use super::order::statistics;
use super::prepared::{PreparedLaunch, Ready};
use super::run::Run;
use crate::base::error::{Error, Result};
use crate::graph::typed::{NodeId, TypedKind, TypedProgram};
use crate::ops::Op;
use crate::plan::fuse::{Plan, PlannedKernel};
use crate::tensor::Storage;

/// Runs a planned kernel. A result goes to its target, if it has one.
pub(super) fn execute<R: Ready>(
    plan: &Plan,
    k: &PlannedKernel,
    run: &Run<'_>,
    prepared: &PreparedLaunch<R>,
    inputs: &[Operand<'_>],
    targets: Targets<'_>,
) -> Result<Results> {
    if let Some((node, ..)) = plan.moved(k) {
        return indexed(&plan.typed, node, inputs, prepared, run);
    }
    if let ([(node, _)], [Operand::Tensor(input)]) = (&k.folds[..], inputs)
        && let Some((op, _)) = k.kernel.folds.first()
    {
        if op.is_search()
            && let Some(found) = statistics(&plan.typed, *node, *input, prepared, run)?
        {
            return Ok(found);
        }
        if op.is_search() {
            return positions(&plan.typed, *node, *input, prepared, run);
        }
        if op.is_line() {
            return lines(&plan.typed, *node, *input, prepared, run);
        }
    }
    let made = launch(&k.kernel, &k.consts, run, prepared, inputs, targets)?;
    let (results, partials) = made.map_err(|f| refused(&plan.typed, k.nodes[f.step as usize], f.refusal))?;
    finished(plan, k, run, prepared, (results, partials))
}

/// The results of a kernel with those of its reductions, from their partial results.
pub(super) fn finished<R>(
    plan: &Plan,
    k: &PlannedKernel,
    run: &Run<'_>,
    prepared: &PreparedLaunch<R>,
    (mut results, partials): (Results, SmallVec<[Storage; 2]>),
) -> Result<Results> {
    for (((node, _), partial), layout) in k.folds.iter().zip(partials).zip(&prepared.folds) {
        results.push(Some(finish(&plan.typed, *node, partial, prepared, layout, run, plan.refuses_nothing(*node))?));
    }
    Ok(results)
}

/// The error of data that a node refuses; `message` is that of a user's function that panicked.
fn refused(typed: &TypedProgram, node: NodeId, message: Option<String>) -> Error {
    let n = &typed.nodes[node as usize];
    let (op, location) = match &n.kind {
        TypedKind::Apply { op, .. } | TypedKind::Reduce { op, .. } | TypedKind::Line { op, .. } => {
            (*op, n.location.clone())
        }
        _ => (Op::Cast, n.location.clone()),
    };
    match op {
        Op::Custom(_) => Error::Panicked { op: op.name(), message, location },
        Op::PowChecked => Error::NegativeExponent { op: Op::Pow.name(), location },
        _ => Error::DivisionByZero { op: op.name(), location },
    }
}
