//! Register allocation for a body: one pass that spills the value whose next use is farthest.
//!
//! Guarantees: each source is in a register when its instruction reads it; a spilled value keeps its stack slot until its last
//! use. Operands, uniform values and constants are never spilled, but rematerialized. The most used uniform values and
//! constants stay in registers for the whole loop. Does not: reorder.

use super::instructions::{ACCUMULATE, SLOW_PATH, commutes, overwriting};
use super::ir::{Body, Def, Inst, NONE, Node, Reg, Store};
use super::isa::Isa;
use crate::base::dtype::DType;
use crate::plan::schedule::SlotId;

/// An instruction on machine registers, numbered within their class (vectors or masks).
#[derive(Clone, Copy, Debug)]
pub(super) enum Machine {
    Inst {
        inst: Inst,
        dst: u8,
        /// The sources. Of three, the first is `dst` and left out here.
        src: [u8; 2],
        mask: u8,
        /// The constant that is read from memory instead of the last source.
        constant: Option<u32>,
    },
    /// A copy of a vector.
    Copy {
        dst: u8,
        src: u8,
    },
    /// The elements of a slot, as in [`Def::Load`].
    Load {
        slot: SlotId,
        dtype: DType,
        dst: u8,
        vector: u8,
    },
    Splat {
        slot: SlotId,
        dtype: DType,
        dst: u8,
    },
    Const {
        index: u32,
        dst: u8,
    },
    /// A store of `src`, or in a loop that accumulates, of `sum` if there is one.
    Store {
        store: Store,
        src: u8,
        sum: Option<u8>,
    },
    /// To and from a stack slot.
    Spill {
        mask: bool,
        src: u8,
        at: u32,
    },
    Fill {
        mask: bool,
        dst: u8,
        at: u32,
    },
}

/// The result.
#[derive(Debug)]
pub(super) struct Allocated {
    pub(super) isa: Isa,
    /// Loads of uniform values and constants, once before the loop.
    pub(super) hoisted: Vec<Machine>,
    pub(super) body: Vec<Machine>,
    /// Number of stack slots, 64 bytes each.
    pub(super) stack_slots: u32,
}

impl Allocated {
    /// The slots of the values that a loop can add to sums.
    pub(super) fn summed(&self) -> impl Iterator<Item = SlotId> {
        self.body.iter().filter_map(|m| match m {
            Machine::Store { store, sum: Some(_), .. } => Some(store.slot),
            _ => None,
        })
    }

    /// The step of the kernel that each instruction of the body serves. Loads, copies, spills and fills come right before the
    /// instruction that needs them, and serve its step.
    pub(super) fn steps(&self) -> Vec<u32> {
        let mut step = 0;
        let of = |m: &Machine| {
            step = match m {
                Machine::Inst { inst, .. } => inst.step,
                Machine::Store { store, .. } => store.step,
                _ => step,
            };
            step
        };
        let mut steps: Vec<u32> = self.body.iter().rev().map(of).collect();
        steps.reverse();
        steps
    }
}

/// How many vector registers the body keeps for itself: at least, even if more values could be hoisted; and at most, if more
/// values could be hoisted than fit beside it.
fn left_to_body(isa: Isa) -> (usize, usize) {
    match isa {
        Isa::Avx2 => (8, 12),
        Isa::Avx512 => (12, 20),
    }
}

/// No machine register.
const NO_REGISTER: u8 = u8::MAX;

/// No stack slot.
const NO_STACK_SLOT: u32 = u32::MAX;

struct Allocator<'a> {
    body: &'a Body,
    /// The nodes that read each register: those in `uses[next[r]..end[r]]` are still to come.
    uses: Vec<u32>,
    next: Vec<u32>,
    end: Vec<u32>,
    /// The machine register and the stack slot of each virtual register.
    register: Vec<u8>,
    stack: Vec<u32>,
    /// The virtual register in each machine register: vectors, masks.
    holds: [Vec<Reg>; 2],
    /// The free machine registers as bits: vectors, masks.
    free: [u32; 2],
    free_stack: Vec<u32>,
    out: Allocated,
}

/// Assigns registers. Mask registers below `first_mask` are reserved.
pub(super) fn allocate(body: &Body, first_mask: u8) -> Allocated {
    allocate_from(body, first_mask, 0)
}

/// The same, with vector registers below `first` reserved. Values that are hoisted have the registers that [`allocate`] gives them.
pub(super) fn allocate_from(body: &Body, first_mask: u8, first: u8) -> Allocated {
    let n = body.defs.len();
    let mut end = vec![0u32; n];
    for node in &body.nodes {
        node.sources().for_each(|r| end[r as usize] += 1);
    }
    let mut next = Vec::with_capacity(n);
    let mut total = 0;
    for count in &mut end {
        next.push(total);
        total += std::mem::replace(count, total);
    }
    let mut uses = vec![0u32; total as usize];
    for (i, node) in body.nodes.iter().enumerate() {
        for r in node.sources() {
            uses[end[r as usize] as usize] = i as u32;
            end[r as usize] += 1;
        }
    }
    let mut allocator = Allocator {
        body,
        uses,
        next,
        end,
        register: vec![NO_REGISTER; n],
        stack: vec![NO_STACK_SLOT; n],
        holds: [vec![NONE; 32], vec![NONE; 8]],
        free: [u32::MAX >> (32 - body.isa.vectors()) & (u32::MAX << first), 0xff & (u32::MAX << first_mask)],
        free_stack: Vec::new(),
        // Nodes are not all: there are loads, spills and fills.
        out: Allocated {
            isa: body.isa,
            hoisted: Vec::new(),
            body: Vec::with_capacity(2 * body.nodes.len()),
            stack_slots: 0,
        },
    };
    allocator.hoist();
    for (i, node) in body.nodes.iter().enumerate() {
        allocator.node(i as u32, node);
    }
    allocator.out
}

impl Allocator<'_> {
    fn next_use(&self, r: Reg) -> u32 {
        let r = r as usize;
        if self.next[r] < self.end[r] { self.uses[self.next[r] as usize] } else { u32::MAX }
    }

    /// The largest number of vectors that are live at once and cannot be hoisted.
    fn pressure(&self) -> usize {
        let mut change = vec![0i32; self.body.nodes.len() + 1];
        let mut start = vec![u32::MAX; self.body.defs.len()];
        for (i, node) in self.body.nodes.iter().enumerate() {
            if let Node::Inst(inst) = node {
                start[inst.dst as usize] = i as u32;
            }
        }
        for (r, def) in self.body.defs.iter().enumerate() {
            let used = self.next[r] < self.end[r];
            if used && !self.body.is_mask[r] && matches!(def, Def::Inst | Def::Load(..)) {
                let first = if *def == Def::Inst { start[r] } else { self.uses[self.next[r] as usize] };
                change[first as usize] += 1;
                change[self.uses[self.end[r] as usize - 1] as usize] -= 1;
            }
        }
        let mut now = 0;
        change.iter().map(|c| (now += c, now).1).max().unwrap_or(0).max(0) as usize + 2
    }

    /// Assigns registers for the whole loop to the uniform values and constants with the most uses.
    fn hoist(&mut self) {
        let count = |w: &Self, r: Reg| w.end[r as usize] - w.next[r as usize];
        let uniform = |d: &Def| matches!(d, Def::Splat(..) | Def::Const(_));
        let mut all: Vec<Reg> = (0..self.body.defs.len() as Reg)
            .filter(|r| uniform(&self.body.defs[*r as usize]) && count(self, *r) > 0)
            .collect();
        all.sort_by_key(|r| std::cmp::Reverse(count(self, *r)));
        let (least, most) = left_to_body(self.body.isa);
        let vectors = self.body.isa.vectors();
        let room = usize::from(vectors) - self.pressure().clamp(least, most);
        // Where registers are reserved, no more than fits beside the body. An instruction needs four: three sources and a result.
        let free = self.free[0].count_ones() as usize;
        let beside = free.saturating_sub(self.pressure().max(4));
        let room = if free < usize::from(vectors) { room.min(beside) } else { room };
        for (i, r) in all.into_iter().take(room).enumerate() {
            let dst = vectors - 1 - i as u8;
            self.free[0] &= !(1 << dst);
            self.register[r as usize] = dst;
            let load = self.load(r, dst);
            self.out.hoisted.push(load);
        }
    }

    /// What brings a value that is in no register into `dst`.
    fn load(&self, r: Reg, dst: u8) -> Machine {
        match self.body.defs[r as usize] {
            Def::Load(slot, dtype, vector) => Machine::Load { slot, dtype, dst, vector },
            Def::Splat(slot, dtype) => Machine::Splat { slot, dtype, dst },
            Def::Const(index) => Machine::Const { index, dst },
            Def::Inst => Machine::Fill { mask: self.body.is_mask[r as usize], dst, at: self.stack[r as usize] },
        }
    }

    /// The constant that an AVX2 instruction reads from memory as its last source. With few registers and two loads a cycle,
    /// that is better than to load it first. May swap the sources of `inst`.
    fn memory_constant(&self, inst: &mut Inst) -> Option<Reg> {
        let [a, b, c] = inst.src;
        let in_memory = |r: Reg| {
            let uses = [a, b, c, inst.mask].iter().filter(|s| **s == r).count();
            let constant = |r: Reg| matches!(self.body.defs[r as usize], Def::Const(_));
            r != NONE && uses == 1 && self.register[r as usize] == NO_REGISTER && constant(r)
        };
        let pseudo = inst.instruction == SLOW_PATH || inst.instruction == ACCUMULATE;
        if self.body.isa != Isa::Avx2 || pseudo || b == NONE {
            return None;
        }
        if c != NONE {
            return [c, a, b].into_iter().find(|r| in_memory(*r));
        }
        if in_memory(b) {
            return Some(b);
        }
        (in_memory(a) && commutes(inst.instruction)).then(|| {
            inst.src = [b, a, NONE];
            a
        })
    }

    /// Allocates one node: loads its sources, releases those that it reads last, and assigns a register to its result.
    fn node(&mut self, i: u32, node: &Node) {
        let mut node = *node;
        let memory = if let Node::Inst(inst) = &mut node { self.memory_constant(inst) } else { None };
        let node = &node;
        let sources = || node.sources();
        for r in sources() {
            if self.register[r as usize] == NO_REGISTER && memory != Some(r) {
                let dst = self.assign(r, sources);
                let load = self.load(r, dst);
                self.out.body.push(load);
            }
        }
        let mut machine = self.machine(node, memory);
        for r in sources() {
            while self.next_use(r) == i {
                self.next[r as usize] += 1;
            }
        }
        let overwrites = matches!(node, Node::Inst(inst) if inst.src[2] != NONE);
        if overwrites && let (Node::Inst(inst), Machine::Inst { inst: machine, dst, src, .. }) = (node, &mut machine) {
            self.overwrite(inst, machine, dst, src, memory);
        }
        for r in sources() {
            if self.next_use(r) == u32::MAX {
                self.release(r);
            }
        }
        if let (Node::Inst(inst), Machine::Inst { dst, .. }) = (node, &mut machine) {
            if overwrites {
                self.free[0] &= !(1 << *dst);
                self.holds[0][usize::from(*dst)] = inst.dst;
                self.register[inst.dst as usize] = *dst;
            } else {
                *dst = self.assign(inst.dst, std::iter::empty);
            }
        }
        self.out.body.push(machine);
    }

    /// A node with the registers of its sources; `memory` is the source that is a constant in memory.
    fn machine(&self, node: &Node, memory: Option<Reg>) -> Machine {
        let at = |r: Reg| if r == NONE { 0 } else { self.register[r as usize] };
        let constant = memory.and_then(|r| match self.body.defs[r as usize] {
            Def::Const(index) => Some(index),
            _ => None,
        });
        match *node {
            Node::Inst(inst) => {
                Machine::Inst { inst, dst: 0, src: [at(inst.src[0]), at(inst.src[1])], mask: at(inst.mask), constant }
            }
            Node::Store(store) => {
                Machine::Store { store, src: at(store.src), sum: (store.sum != NONE).then(|| at(store.sum)) }
            }
        }
    }

    /// Chooses the source whose register the result of three sources overwrites: one that is not used again, else a copy.
    fn overwrite(&mut self, inst: &Inst, machine: &mut Inst, dst: &mut u8, src: &mut [u8; 2], memory: Option<Reg>) {
        let [a, b, c] = inst.src;
        let at = |w: &Self, r: Reg| w.register[r as usize];
        let dies = |w: &Self, r: Reg| w.next_use(r) == u32::MAX && w.holds[0][usize::from(at(w, r))] == r;
        let multiplies = overwriting(inst.instruction, true).is_some();
        let (over, others, addend) = match multiplies {
            // The memory operand is the last one.
            true if memory == Some(a) => (c, [b, a], true),
            true if memory == Some(b) => (c, [a, b], true),
            true if memory == Some(c) && dies(self, b) && !dies(self, a) => (b, [a, c], false),
            true if memory == Some(c) => (a, [b, c], false),
            true if dies(self, c) || !(dies(self, a) || dies(self, b)) => (c, [a, b], true),
            true if dies(self, a) => (a, [b, c], false),
            true => (b, [a, c], false),
            false => (a, [b, c], false),
        };
        machine.instruction = overwriting(inst.instruction, addend).unwrap_or(inst.instruction);
        *dst = at(self, over);
        if !dies(self, over) {
            let held = at(self, over);
            *dst = self.assign(inst.dst, || inst.src.into_iter());
            self.out.body.push(Machine::Copy { dst: *dst, src: held });
        }
        *src = others.map(|r| at(self, r));
    }

    /// Frees the register and the stack slot of a value that is not used again.
    fn release(&mut self, r: Reg) {
        let (class, register) = (usize::from(self.body.is_mask[r as usize]), self.register[r as usize]);
        if register != NO_REGISTER && self.holds[class][usize::from(register)] == r {
            self.holds[class][usize::from(register)] = NONE;
            self.free[class] |= 1 << register;
            self.register[r as usize] = NO_REGISTER;
        }
        if self.stack[r as usize] != NO_STACK_SLOT {
            self.free_stack.push(std::mem::replace(&mut self.stack[r as usize], NO_STACK_SLOT));
        }
    }

    /// A machine register for `r`: a free one, or that of the value whose next use is farthest, except those in `kept`.
    fn assign<I: Iterator<Item = Reg>>(&mut self, r: Reg, kept: impl Fn() -> I) -> u8 {
        let class = usize::from(self.body.is_mask[r as usize]);
        if self.free[class] == 0 {
            let victims = self.holds[class].iter().copied().filter(|v| *v != NONE && !kept().any(|k| k == *v));
            if let Some(victim) = victims.max_by_key(|v| self.next_use(*v)) {
                self.evict(victim, class);
            }
        }
        let register = self.free[class].trailing_zeros() as u8;
        self.free[class] &= !(1 << register);
        self.holds[class][usize::from(register)] = r;
        self.register[r as usize] = register;
        register
    }

    /// Frees the register of a value, after a spill if it cannot be rematerialized and was not spilled before.
    fn evict(&mut self, r: Reg, class: usize) {
        let src = std::mem::replace(&mut self.register[r as usize], NO_REGISTER);
        if self.body.defs[r as usize] == Def::Inst && self.stack[r as usize] == NO_STACK_SLOT {
            let at = self.free_stack.pop().unwrap_or_else(|| {
                self.out.stack_slots += 1;
                self.out.stack_slots - 1
            });
            self.stack[r as usize] = at;
            self.out.body.push(Machine::Spill { mask: class == 1, src, at });
        }
        self.holds[class][usize::from(src)] = NONE;
        self.free[class] |= 1 << src;
    }
}
