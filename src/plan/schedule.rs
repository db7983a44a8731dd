//! Orders the steps of a kernel as stages over tiles: which steps are compiled together as segments, which are computed by kernels of
//! `kernels`, and where each value is between stages.
//!
//! Guarantees: a stage reads only values of earlier stages, operands and constants; values that are the same for all elements
//! of a row ("uniform") are computed once a row, in the prologue; a value that crosses stages has a slot of its own while it is
//! alive, so no stage writes what it reads. Does not: generate code; `backend` compiles the segments, and without it every step is
//! a stage of its own.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::kernels::custom::Runner;
use crate::kernels::{CpuLevel, copy_kernel, custom_kernel, double_rounding_kernel, kernel as block_kernel};
use crate::ops::{MAX_OPERANDS, Op};
use crate::plan::kernel::{Kernel, Source, Step, StepOp, ValueId};
use crate::plan::options::{Pass, Passes};

/// Steps that are reordered together; bounds how many values are alive between stages.
const WINDOW: usize = 512;

/// How a kernel's operand varies along the inner loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Another element in each iteration.
    Vector,
    /// The same element in all of them.
    Splat,
}

/// What a pointer of the stages points at. The driver keeps a table of these pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// An operand: its elements of the tile, or its one element of the row if its class is splat.
    Input(u32),
    /// A constant.
    Const(u32),
    /// The `n`-th scratch tile.
    Tile(u32),
    /// The `n`-th uniform value: one element.
    Single(u32),
    /// A result.
    Output(u32),
}

/// Index into the slots.
pub(crate) type SlotId = u32;

/// Steps that are compiled to one loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Segment {
    pub(crate) steps: Vec<u32>,
    /// Values that are read from slots: value, slot, and whether it is uniform.
    pub(crate) loads: Vec<(ValueId, SlotId, bool)>,
    pub(crate) stores: Vec<(ValueId, SlotId)>,
}

/// A step that a kernel of `kernels`, or a user's function, computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockStage {
    pub(crate) f: Runner,
    pub(crate) args: [Option<SlotId>; MAX_OPERANDS],
    pub(crate) out: SlotId,
    pub(crate) step: u32,
}

/// Part of the computation of a tile.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    Block(BlockStage),
    /// The `n`-th segment.
    Segment(u32),
}

/// One element repeated over a tile (or over a result).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) from: SlotId,
    pub(crate) to: SlotId,
    pub(crate) dtype: DType,
    /// Whether the element is a constant: filled once a launch, not once a row.
    pub(crate) constant: bool,
}

/// A value that is reduced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduced {
    pub(crate) slot: SlotId,
    /// Whether the segment that computes it can add it to lanes instead of storing it: it is reduced to a float sum, and nothing else
    /// reads it.
    pub(crate) is_sum: bool,
}

/// A kernel as the driver runs it, for one assignment of classes to its operands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) slots: Vec<Slot>,
    /// What each slot holds; a tile that is used again also holds other dtypes.
    pub(crate) dtypes: Vec<DType>,
    /// Bytes of the widest element in a slot.
    pub(crate) widest: usize,
    pub(crate) prologue: Vec<BlockStage>,
    pub(crate) fills: Vec<Fill>,
    /// Results that are uniform: repeated over the row.
    pub(crate) out_fills: Vec<Fill>,
    pub(crate) body: Vec<Stage>,
    pub(crate) segments: Vec<Segment>,
    /// The values that are reduced, and where they are after the body.
    pub(crate) folds: Vec<Reduced>,
    pub(crate) tiles: u32,
    pub(crate) singles: u32,
    /// Whether it is one segment over operands, constants and results, and nothing else.
    pub(crate) plain: bool,
    /// Whether it is that with a prologue and with sums that the segment can add: the compiled function computes many rows.
    pub(crate) walks_rows: bool,
    /// Elements of a tile where nothing is reduced.
    pub(crate) tile: usize,
}

/// Which values are the same for all elements of a row.
pub(crate) fn uniform_values(k: &Kernel, classes: &[Class]) -> Vec<bool> {
    let mut uniform: Vec<bool> = Vec::with_capacity(k.values.len());
    for v in &k.values {
        let u = match v.source {
            Source::Input(i) => classes.get(i as usize) == Some(&Class::Splat),
            Source::Const(_) => true,
            Source::Step(s) => k.steps[s as usize].args.iter().flatten().all(|a| uniform[*a as usize]),
        };
        uniform.push(u);
    }
    uniform
}

/// Plans a kernel. `is_lowerable` says which steps a segment can have; with `|_| false` there are no segments.
pub(crate) fn schedule(
    k: &Kernel,
    classes: &[Class],
    level: CpuLevel,
    is_lowerable: &dyn Fn(&Step) -> bool,
) -> Result<Schedule> {
    schedule_with(k, classes, level, is_lowerable, Passes::default())
}

/// [`schedule`] with chosen passes.
pub(crate) fn schedule_with(
    k: &Kernel,
    classes: &[Class],
    level: CpuLevel,
    is_lowerable: &dyn Fn(&Step) -> bool,
    passes: Passes,
) -> Result<Schedule> {
    let mut p = Planner {
        k,
        level,
        reuse: passes.has(Pass::Reuse),
        uniform: uniform_values(k, classes),
        out: Schedule { tile: passes.tile, ..Schedule::default() },
        slot_of: vec![None; k.values.len()],
        filled: HashMap::new(),
    };
    let body: Vec<u32> = (0..k.steps.len() as u32).filter(|s| !p.uniform[k.steps[*s as usize].out as usize]).collect();
    let groups = group(k, &body, &p.uniform, is_lowerable, passes.function_steps);
    p.prologue()?;
    p.place(&groups);
    p.stages(&groups)?;
    for (o, v) in k.outputs.iter().enumerate() {
        if p.uniform[*v as usize] {
            let (from, to) = (p.slot(*v), p.new_slot(Slot::Output(o as u32), k.value(*v).dtype));
            p.out.out_fills.push(Fill { from, to, dtype: k.value(*v).dtype, constant: false });
        }
    }
    for (_, v) in &k.folds {
        let slot = p.vector(*v);
        p.out.folds.push(Reduced { slot, is_sum: false });
    }
    for (i, (op, v)) in k.folds.iter().enumerate() {
        p.out.folds[i].is_sum = p.is_sum(p.out.folds[i].slot, *op, *v);
    }
    let in_slots = k.values.iter().zip(&p.slot_of).filter(|(_, slot)| slot.is_some());
    p.out.widest = in_slots.map(|(v, _)| v.dtype.size()).max().unwrap_or(1);
    let o = &mut p.out;
    o.walks_rows = matches!(o.body[..], [Stage::Segment(_)])
        && o.fills.is_empty()
        && o.out_fills.is_empty()
        && o.tiles as usize == o.folds.len()
        && o.folds.iter().all(|f| f.is_sum);
    o.plain = o.walks_rows && o.prologue.is_empty() && o.folds.is_empty();
    Ok(p.out)
}

/// A step for a kernel of `kernels`, or steps for one segment.
enum Group {
    Block(u32),
    Inline(Vec<u32>),
}

/// Orders the steps so that those for segments come together: within a window, by the number of times that the values before a step
/// change between segments and kernels. A segment has at most `most` steps.
fn group(k: &Kernel, body: &[u32], uniform: &[bool], is_lowerable: &dyn Fn(&Step) -> bool, most: usize) -> Vec<Group> {
    let is_lowerable = |step: &Step| most > 0 && is_lowerable(step);
    let mut groups = Vec::new();
    let mut phase = vec![0u32; k.values.len()];
    for window in body.chunks(WINDOW) {
        let mut order: Vec<(u32, u32)> = Vec::with_capacity(window.len());
        for s in window {
            let step = &k.steps[*s as usize];
            let before =
                step.args.iter().flatten().filter(|a| !uniform[**a as usize]).map(|a| phase[*a as usize]).max();
            let (before, parity) = (before.unwrap_or(0), u32::from(!is_lowerable(step)));
            // Steps for segments have even phases, those for kernels odd ones.
            let at = before + u32::from(before % 2 != parity);
            phase[step.out as usize] = at;
            order.push((at, *s));
        }
        order.sort_unstable();
        for (at, s) in order {
            match groups.last_mut() {
                _ if at % 2 == 1 => groups.push(Group::Block(s)),
                Some(Group::Inline(all)) if all.len() < most => all.push(s),
                _ => groups.push(Group::Inline(vec![s])),
            }
        }
        // Phases are counted within a window.
        window.iter().for_each(|s| phase[k.steps[*s as usize].out as usize] = 0);
    }
    groups
}

struct Planner<'a> {
    k: &'a Kernel,
    level: CpuLevel,
    /// Whether a tile is given to another value after the last use of the one it has.
    reuse: bool,
    uniform: Vec<bool>,
    out: Schedule,
    slot_of: Vec<Option<SlotId>>,
    filled: HashMap<ValueId, SlotId>,
}

impl Planner<'_> {
    fn new_slot(&mut self, slot: Slot, dtype: DType) -> SlotId {
        self.out.slots.push(slot);
        self.out.dtypes.push(dtype);
        self.out.slots.len() as u32 - 1
    }

    /// The slot of a value. Values that cross stages have been [placed](Planner::place) before.
    fn slot(&mut self, v: ValueId) -> SlotId {
        if let Some(known) = self.slot_of[v as usize] {
            return known;
        }
        let slot = match self.k.value(v).source {
            Source::Input(i) => Slot::Input(i),
            Source::Const(c) => Slot::Const(c),
            Source::Step(_) => {
                self.out.singles += 1;
                Slot::Single(self.out.singles - 1)
            }
        };
        let id = self.new_slot(slot, self.k.value(v).dtype);
        self.slot_of[v as usize] = Some(id);
        id
    }

    fn block(&self, s: u32) -> Result<Runner> {
        let step = &self.k.steps[s as usize];
        let found = match step.op {
            StepOp::Apply(Op::Custom(op)) => custom_kernel(op, step.dtype).map(|f| Runner::Custom(f, op)),
            StepOp::Apply(op) => block_kernel(op, step.dtype, self.level).map(Runner::Kernel),
            StepOp::Bits(to) => Some(Runner::Kernel(copy_kernel(step.dtype, to, self.level))),
            StepOp::Cast(p) => p.kernel(self.level).map(Runner::Kernel),
            StepOp::DoubleRounding(op) => double_rounding_kernel(op, self.level).map(Runner::Kernel),
        };
        found.ok_or_else(|| Error::Internal(format!("no kernel for {:?} in {}", step.op, step.dtype)))
    }

    /// Makes the stages of the uniform values, one element each.
    fn prologue(&mut self) -> Result<()> {
        for s in 0..self.k.steps.len() as u32 {
            let step = self.k.steps[s as usize];
            if self.uniform[step.out as usize] {
                let f = self.block(s)?;
                let args = step.args.map(|a| a.map(|a| self.slot(a)));
                let out = self.slot(step.out);
                self.out.prologue.push(BlockStage { f, args, out, step: s });
            }
        }
        Ok(())
    }

    /// Gives a slot to every value that crosses groups: the result that it is, or a tile until its last use.
    fn place(&mut self, groups: &[Group]) {
        let mut last_use = vec![0usize; self.k.values.len()];
        let mut maker = vec![usize::MAX; self.k.values.len()];
        for (g, group) in groups.iter().enumerate() {
            for s in group.steps() {
                let step = &self.k.steps[*s as usize];
                maker[step.out as usize] = g;
                step.args.iter().flatten().for_each(|a| last_use[*a as usize] = g);
            }
        }
        for (o, v) in self.k.outputs.iter().enumerate() {
            if !self.uniform[*v as usize] {
                let slot = self.new_slot(Slot::Output(o as u32), self.k.value(*v).dtype);
                self.slot_of[*v as usize] = Some(slot);
            }
        }
        for (_, v) in &self.k.folds {
            last_use[*v as usize] = groups.len();
        }
        let mut ends: HashMap<usize, Vec<u32>> = HashMap::new();
        let mut free: Vec<u32> = Vec::new();
        let mut tile_slots: Vec<SlotId> = Vec::new();
        for (g, group) in groups.iter().enumerate() {
            for s in group.steps() {
                let v = self.k.steps[*s as usize].out as usize;
                let crosses = last_use[v] > maker[v] || matches!(group, Group::Block(_));
                if self.slot_of[v].is_some() || !crosses {
                    continue;
                }
                let tile = free.pop().unwrap_or_else(|| {
                    self.out.tiles += 1;
                    tile_slots.push(self.new_slot(Slot::Tile(self.out.tiles - 1), self.k.values[v].dtype));
                    self.out.tiles - 1
                });
                self.slot_of[v] = Some(tile_slots[tile as usize]);
                ends.entry(last_use[v].max(g)).or_default().push(tile);
            }
            // Freed only after the group has its tiles: no stage may write what it reads.
            free.extend(ends.remove(&g).filter(|_| self.reuse).unwrap_or_default());
        }
    }

    fn stages(&mut self, groups: &[Group]) -> Result<()> {
        for group in groups {
            match group {
                Group::Block(s) => {
                    let (f, step) = (self.block(*s)?, self.k.steps[*s as usize]);
                    let args = step.args.map(|a| a.map(|a| self.vector(a)));
                    let out = self.slot(step.out);
                    self.out.body.push(Stage::Block(BlockStage { f, args, out, step: *s }));
                }
                Group::Inline(steps) => {
                    let segment = self.segment(steps);
                    self.out.segments.push(segment);
                    self.out.body.push(Stage::Segment(self.out.segments.len() as u32 - 1));
                }
            }
        }
        Ok(())
    }

    /// A slot with the value for each element, for kernels: uniform values are repeated over a tile.
    fn vector(&mut self, v: ValueId) -> SlotId {
        if !self.uniform[v as usize] {
            return self.slot(v);
        }
        if let Some(known) = self.filled.get(&v) {
            return *known;
        }
        let from = self.slot(v);
        let to = self.new_slot(Slot::Tile(self.out.tiles), self.k.value(v).dtype);
        self.out.tiles += 1;
        let constant = matches!(self.k.value(v).source, Source::Const(_));
        self.out.fills.push(Fill { from, to, dtype: self.k.value(v).dtype, constant });
        self.filled.insert(v, to);
        to
    }

    /// Whether the segment that computes a slot's value can add it to lanes.
    fn is_sum(&self, slot: SlotId, op: Op, v: ValueId) -> bool {
        let o = &self.out;
        let stored = |s: &&Segment| s.stores.iter().any(|(_, to)| *to == slot);
        let [segment] = o.segments.iter().filter(stored).collect::<Vec<_>>()[..] else { return false };
        let read = o.segments.iter().any(|s| s.loads.iter().any(|(_, from, _)| *from == slot))
            || o.fills.iter().any(|f| f.to == slot)
            || o.body.iter().any(|s| matches!(s, Stage::Block(b) if b.out == slot || b.args.contains(&Some(slot))));
        // Elements of 16 bytes take the register that addresses lanes.
        let memory = segment.loads.iter().map(|(v, ..)| v).chain(segment.stores.iter().map(|(v, _)| v));
        let wide = memory.into_iter().any(|v| self.k.value(*v).dtype.size() > 8);
        let alone = o.folds.iter().filter(|f| f.slot == slot).count() == 1;
        let float = matches!(self.k.value(v).dtype, DType::F32 | DType::F64);
        matches!(op, Op::Sum | Op::Mean)
            && float
            && alone
            && !read
            && !wide
            && matches!(o.slots[slot as usize], Slot::Tile(_))
    }

    fn segment(&mut self, steps: &[u32]) -> Segment {
        let made: Vec<ValueId> = steps.iter().map(|s| self.k.steps[*s as usize].out).collect();
        let inside: HashSet<ValueId> = made.iter().copied().collect();
        let mut seen = HashSet::new();
        let mut loads = Vec::new();
        for s in steps {
            for a in self.k.steps[*s as usize].args.iter().flatten() {
                if !inside.contains(a) && seen.insert(*a) {
                    loads.push((*a, self.slot(*a), self.uniform[*a as usize]));
                }
            }
        }
        let stores = made.iter().filter_map(|v| self.slot_of[*v as usize].map(|slot| (*v, slot))).collect();
        Segment { steps: steps.to_vec(), loads, stores }
    }
}

impl Group {
    fn steps(&self) -> &[u32] {
        match self {
            Group::Block(s) => std::slice::from_ref(s),
            Group::Inline(all) => all,
        }
    }
}

pub(crate) mod text;

#[cfg(test)]
mod tests;
