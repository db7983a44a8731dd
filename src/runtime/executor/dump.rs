//! What an executor would run, as text: kernels, schedules, how launches walk, code.
//!
//! Guarantees: the plan, schedules and code are those of a run, but that dynamic dims are taken not to be broadcast.
//! Does not: run or keep anything but the plan.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use super::session::{Inner, Planned};
use crate::backend::abi::WIDTH;
use crate::backend::dump::CodeStage;
use crate::backend::{self, available, is_lowerable, walks_rows};
use crate::base::error::Result;
use crate::base::shape::dims_text;
use crate::graph::program::Program;
use crate::graph::var::Var;
use crate::kernels::CpuLevel;
use crate::plan::blocking::Blocking;
use crate::plan::fuse::{Plan, PlannedKernel};
use crate::plan::geometry::BroadcastKind;
use crate::plan::kernel::{Step, StepOp};
use crate::plan::schedule::text::ScheduleText;
use crate::plan::schedule::{Class, Schedule, schedule_with};
use crate::plan::strategy::choose;
use crate::runtime::launch::dense::{Extents, dense_geometry};
use crate::ssa;

fn planned<'a>(inner: &Inner, program: &Program, fetches: impl IntoIterator<Item = &'a Var>) -> Result<Arc<Planned>> {
    let typed = inner.typed(program)?;
    let nodes = fetches.into_iter().map(|v| typed.node(v)).collect::<Result<Vec<_>>>()?;
    inner.plan(&typed, nodes, vec![false; typed.dyn_dims.len()])
}

fn kernel_text(plan: &Plan, k: &PlannedKernel) -> String {
    let over = dims_text(&plan.typed.shapes[k.shape as usize]);
    match plan.moved(k) {
        Some((_, how, _)) => format!("; over {over}: {}\n", how.name()),
        None => format!("; over {over}\n{}", k.kernel),
    }
}

/// How the kernels run together of which a kernel is the first.
fn group_text(plan: &Plan, at: usize) -> String {
    let Some(group) = plan.group_at(at) else { return String::new() };
    let extents = |shape: u32| -> Option<Vec<usize>> {
        plan.typed.shapes[shape as usize].iter().map(|d| d.extent(&[])).collect()
    };
    let dims = dims_text(&plan.typed.shapes[plan.work[at].shape as usize][..group.lead]);
    let known = plan.work[group.kernels.clone()].iter().all(|k| extents(k.shape).is_some());
    let blocks = match Blocking::of(plan, group, extents) {
        Some(blocking) => format!("together, {blocking} a thread"),
        None if known => "one after the other, too small for blocks".into(),
        None => "in blocks that depend on dynamic dims".into(),
    };
    format!("; kernels {at} to {} over rows {dims}: {blocks}\n", group.kernels.end - 1)
}

/// The classes of a kernel's operands, as far as their types tell.
fn classes(k: &PlannedKernel) -> Vec<Class> {
    let class = |s: &BroadcastKind| if *s == BroadcastKind::Varies { Class::Vector } else { Class::Splat };
    k.spread.iter().map(class).collect()
}

fn schedule(inner: &Inner, k: &PlannedKernel, classes: &[Class]) -> Result<Schedule> {
    let lowered = |step: &_| available() && is_lowerable(step);
    schedule_with(&k.kernel, classes, CpuLevel::get(), &lowered, inner.settings.passes)
}

pub(super) fn kernels<'a>(
    inner: &Inner,
    program: &Program,
    fetches: impl IntoIterator<Item = &'a Var>,
) -> Result<String> {
    let planned = planned(inner, program, fetches)?;
    let plan = &planned.plan;
    let one = |(at, k): (usize, &PlannedKernel)| group_text(plan, at) + &kernel_text(plan, k);
    Ok(plan.choices_text() + &plan.work.iter().enumerate().map(one).collect::<String>())
}

pub(super) fn code<'a>(
    inner: &Inner,
    program: &Program,
    fetches: impl IntoIterator<Item = &'a Var>,
    stage: CodeStage,
) -> Result<String> {
    let (planned, mut text) = (planned(inner, program, fetches)?, String::new());
    let typed = &planned.plan.typed;
    for k in planned.plan.work.iter().filter(|k| !k.moves()) {
        let schedule = schedule(inner, k, &classes(k))?;
        text += &kernel_text(&planned.plan, k);
        if !schedule.segments.is_empty() {
            let location = |step: u32| typed.nodes[k.nodes[step as usize] as usize].location.clone();
            text += &backend::dump(stage, &k.kernel, &schedule, &location)?;
        }
    }
    Ok(text)
}

pub(super) fn ssa<'a>(inner: &Inner, program: &Program, fetches: impl IntoIterator<Item = &'a Var>) -> Result<String> {
    let planned = planned(inner, program, fetches)?;
    Ok(texts(planned.plan.work.iter().flat_map(|k| &k.kernel.steps)))
}

/// The texts of the steps that apply ops, each of them once.
fn texts<'a>(steps: impl Iterator<Item = &'a Step>) -> String {
    let mut text = String::new();
    let mut seen = HashSet::new();
    for step in steps {
        let StepOp::Apply(op) = step.op else { continue };
        if seen.insert((op, step.dtype)) {
            text += &match ssa::text(op, step.dtype) {
                Some(insts) => format!("{op}.{}({}) {{\n{insts}}}\n", step.dtype, operands(insts)),
                None => format!("{op}.{}: kernel\n", step.dtype),
            };
        }
    }
    text
}

/// The operands of a text with their dtypes: `%0: f32, %1: f32`.
fn operands(text: &ssa::Text) -> String {
    let all = text.operands.iter().enumerate().map(|(i, d)| format!("%{i}: {d}"));
    all.collect::<Vec<_>>().join(", ")
}

pub(super) fn schedules<'a>(
    inner: &Inner,
    program: &Program,
    fetches: impl IntoIterator<Item = &'a Var>,
) -> Result<String> {
    let planned = planned(inner, program, fetches)?;
    let (plan, adds) = (&planned.plan, available() && walks_rows());
    let mut text = plan.to_string();
    for (at, k) in plan.work.iter().enumerate() {
        if k.moves() {
            continue;
        }
        text += &(group_text(plan, at) + &kernel_text(plan, k));
        let extents = dense_geometry(plan, k, adds)?;
        let classes = if let Extents::Known(g) = &extents { g.classes() } else { classes(k) };
        let schedule = schedule(inner, k, &classes)?;
        text += &ScheduleText(&k.kernel, &schedule).to_string();
        match extents {
            Extents::Known(geometry) => {
                let multiple = if schedule.segments.is_empty() || walks_rows() { 1 } else { WIDTH };
                let _ = write!(text, "{geometry}{}", choose(&schedule, &geometry, multiple));
            }
            Extents::Empty => text += "; without elements, nothing is launched\n",
            Extents::Dynamic => text += "; geometry and strategy depend on dynamic dims\n",
        }
    }
    Ok(text)
}
