//! Runs plans, and says which error a run reports if several ops refuse their data.
//!
//! Guarantees: it is that of the first op in program order among those that the results need, however the program was fused, and
//! whatever kernels were moved or ran block by block. Does not: choose among the elements that one op refuses; the driver does.

use std::borrow::Cow;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::plan::{BlockEngine, Engine, Fetched, run_kernels};
use super::prepared::PreparedLaunch;
use super::run::Run;
use crate::base::error::{Error, Result};
use crate::graph::typed::{NodeId, TypedProgram};
use crate::plan::domain::pattern;
use crate::plan::fuse::{Plan, plan};
use crate::plan::options::{Pass, Passes};
use crate::tensor::{Slot, Tensor};

/// Whether an error says that an op refuses its data, or extents that only feeds tell.
pub(crate) fn is_refusal(e: &Error) -> bool {
    matches!(
        e,
        Error::Panicked { .. }
            | Error::NegativeExponent { .. }
            | Error::DivisionByZero { .. }
            | Error::EmptyReduction { .. }
            | Error::Invalid(_)
            | Error::Shape(_)
    )
}

/// Runs a plan. A result is written to the slot of `into` for its fetch, if there is one that has memory for it.
///
/// `launches` has the prepared launches of an earlier run with feeds of the same layouts, or is empty: then they are made.
pub(crate) fn run_plan<E: Engine>(
    plan: &Plan,
    run: &Run<'_>,
    engine: &E,
    launches: &mut Cow<'_, [Arc<PreparedLaunch<E::Ready>>]>,
    into: &mut [Slot<'_>],
) -> Result<Fetched> {
    // A kernel whose steps may refuse data is not plain, so no result was written over a feed.
    let several = || plan.work.iter().map(|k| k.nodes.len()).sum::<usize>() > 1;
    run_kernels(plan, run, engine, launches, into).map_err(|e| match is_refusal(&e) && several() {
        true => first_refusal(plan, run, e),
        false => e,
    })
}

/// The error of a plan whose kernels have met data that an op refuses: kernels do not run in program order, and one kernel runs all of
/// its steps on some elements before the next ones, but nodes one by one run in order.
fn first_refusal(plan: &Plan, run: &Run<'_>, met: Error) -> Error {
    match one_by_one(plan, run) {
        Err(e) if is_refusal(&e) || matches!(e, Error::Cancelled | Error::TimeLimit { .. }) => e,
        // The function of a user that panics only once; nodes that take more memory than kernels.
        _ => met,
    }
}

/// Runs a plan's program node by node, in program order.
fn one_by_one(fused: &Plan, run: &Run<'_>) -> Result<()> {
    let passes = Passes::default().without(Pass::Fusion).without(Pass::Rows).without(Pass::Recomputing);
    let typed = &fused.typed;
    // Constants are computed without feeds, which tell the dynamic dims: none of theirs is dynamic.
    let pattern = match run.dyn_dims {
        [] => vec![false; typed.dyn_dims.len()],
        known => pattern(typed, known),
    };
    let mut apart = plan(typed, &fused.asked, &HashMap::new(), &pattern, passes)?;
    apart.needs_elements.clone_from(&fused.needs_elements);
    let Run { feeds, dyn_dims, threads, pool, stop, ref memory, part } = *run;
    let alone = Run { feeds, dyn_dims, threads, pool, stop, memory: memory.anew(), part };
    run_kernels(&apart, &alone, &BlockEngine, &mut Cow::Owned(Vec::new()), &mut []).map(drop)
}

/// Computes one node of a program without feeds, without compiled code.
pub(crate) fn run_blocks(typed: &Arc<TypedProgram>, node: NodeId) -> Result<Tensor> {
    run_all(typed, &[node])?.pop().ok_or_else(|| Error::Internal("an application without a result".into()))
}

/// Computes nodes of a program without feeds, without compiled code.
pub(crate) fn run_all(typed: &Arc<TypedProgram>, nodes: &[NodeId]) -> Result<Vec<Tensor>> {
    let plan = plan(typed, nodes, &HashMap::new(), &vec![false; typed.dyn_dims.len()], Passes::default())?;
    let made = run_plan(&plan, &Run::alone(), &BlockEngine, &mut Cow::Owned(Vec::new()), &mut [])?;
    made.into_iter().map(|t| t.ok_or_else(|| Error::Internal("a node without a result".into()))).collect()
}

/// The values of nodes that depend on constants alone, by one plan; none if one of them refuses its data: that is an error of the
/// run, which needs them all, among others.
pub(crate) fn constants(typed: &TypedProgram, nodes: &[NodeId]) -> Result<HashMap<NodeId, Tensor>> {
    if nodes.is_empty() {
        return Ok(HashMap::new());
    }
    // A plan takes time for each node of its program, and these may be few of many.
    let (part, of) = typed.part(nodes);
    match run_all(&Arc::new(part), &of) {
        Ok(values) => Ok(nodes.iter().copied().zip(values).collect()),
        Err(e) if is_refusal(&e) => Ok(HashMap::new()),
        Err(e) => Err(e),
    }
}
