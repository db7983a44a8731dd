//! A schedule as text.
//!
//! Guarantees: the same schedule of the same kernel has the same text; slots and stages have a line each, in order. Does not: print
//! what the kernel prints: its text has the values `%n`.

use std::fmt;

use super::{BlockStage, Fill, Schedule, Segment, Slot, Stage};
use crate::plan::kernel::Kernel;

/// A schedule and the kernel whose steps it orders.
pub(crate) struct ScheduleText<'a>(pub(crate) &'a Kernel, pub(crate) &'a Schedule);

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Input(i) => write!(f, "in{i}"),
            Slot::Const(c) => write!(f, "c{c}"),
            Slot::Tile(t) => write!(f, "tile {t}"),
            Slot::Single(s) => write!(f, "single {s}"),
            Slot::Output(o) => write!(f, "out{o}"),
        }
    }
}

impl fmt::Display for ScheduleText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScheduleText(kernel, s) = self;
        f.write_str("schedule {\n")?;
        for (i, (slot, dtype)) in s.slots.iter().zip(&s.dtypes).enumerate() {
            writeln!(f, "  s{i}: {dtype} = {slot}")?;
        }
        for stage in &s.prologue {
            self.block(f, "uniform", stage)?;
        }
        for fill in &s.fills {
            self::fill(f, fill, if fill.constant { ", once" } else { ", each row" })?;
        }
        for stage in &s.body {
            match stage {
                Stage::Block(stage) => self.block(f, "kernel", stage)?,
                Stage::Segment(i) => self.segment(f, *i, &s.segments[*i as usize])?,
            }
        }
        for fill in &s.out_fills {
            self::fill(f, fill, ", each tile")?;
        }
        for ((op, _), reduced) in kernel.folds.iter().zip(&s.folds) {
            writeln!(
                f,
                "  fold {op}, s{}{}",
                reduced.slot,
                if reduced.is_sum { ", which its segment can add" } else { "" }
            )?;
        }
        f.write_str("}\n")
    }
}

fn fill(f: &mut fmt::Formatter<'_>, fill: &Fill, when: &str) -> fmt::Result {
    writeln!(f, "  fill s{} = s{}{when}", fill.to, fill.from)
}

impl ScheduleText<'_> {
    /// A step that a kernel computes, of slots into a slot.
    fn block(&self, f: &mut fmt::Formatter<'_>, what: &str, stage: &BlockStage) -> fmt::Result {
        let step = &self.0.steps[stage.step as usize];
        write!(f, "  {what} %{}: {} = {step}; s{} =", step.out, self.0.value(step.out).dtype, stage.out)?;
        for (n, slot) in stage.args.iter().flatten().enumerate() {
            write!(f, "{} s{slot}", if n == 0 { "" } else { "," })?;
        }
        f.write_str("\n")
    }

    fn segment(&self, f: &mut fmt::Formatter<'_>, i: u32, segment: &Segment) -> fmt::Result {
        writeln!(f, "  segment {i} {{")?;
        for (v, slot, is_uniform) in &segment.loads {
            let dtype = self.0.value(*v).dtype;
            writeln!(f, "    %{v}: {dtype} = load s{slot}{}", if *is_uniform { ", uniform" } else { "" })?;
        }
        for step in segment.steps.iter().map(|s| &self.0.steps[*s as usize]) {
            writeln!(f, "    %{}: {} = {step}", step.out, self.0.value(step.out).dtype)?;
        }
        for (v, slot) in &segment.stores {
            writeln!(f, "    store s{slot}, %{v}")?;
        }
        f.write_str("  }\n")
    }
}
