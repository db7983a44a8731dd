//! Machine registers for a body: a walk along its instructions that evicts the value whose next use is farthest.
//!
//! Guarantees: a source is in a register when its instruction reads it; a value that was stored to the stack keeps its
//! place there until its last use. Operands, uniform values and constants are never stored: they are loaded again. The
//! uniform values and constants that are used most stay in registers for the whole loop. Does not: reorder.

use super::instructions::{ADDED, RESCUE, commutes, overwriting};
use super::ir::{Body, Def, Inst, NONE, Op, Reg};
use super::isa::Isa;
use crate::base::dtype::DType;
use crate::plan::schedule::SlotId;

/// An instruction on machine registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Machine {
    Op {
        op: Op,
        dst: u8,
        /// Of three sources the first is `dst` and left out: the other two come first here.
        src: [u8; 2],
        mask: u8,
        /// The constant that stands in memory instead of the last source.
        constant: Option<u32>,
    },
    /// A copy of a vector.
    Copy {
        dst: u8,
        src: u8,
    },
    Load {
        slot: SlotId,
        dtype: DType,
        dst: u8,
        ahead: u8,
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
    /// Of the value, or in a loop that adds up, of the sum's lanes if there is one.
    Store {
        slot: SlotId,
        dtype: DType,
        src: u8,
        sum: Option<u8>,
        ahead: u8,
    },
    /// To and from the stack, at a multiple of 64 bytes.
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
#[derive(Debug, Default)]
pub(super) struct Allocated {
    /// What is loaded once, before the loop.
    pub(super) hoisted: Vec<Machine>,
    pub(super) body: Vec<Machine>,
    /// Places on the stack, 64 bytes each.
    pub(super) places: u32,
}

/// Registers left to the body at least, however many values could be hoisted, and at most when there are more of these.
fn left_to_body(isa: Isa) -> (usize, usize) {
    match isa {
        Isa::Avx2 => (8, 12),
        Isa::Avx512 => (12, 20),
    }
}

/// No machine register.
const NOWHERE: u8 = u8::MAX;

struct Walk<'a> {
    body: &'a Body,
    /// The instructions that read each register: `uses[next[r]..end[r]]` are still to come.
    uses: Vec<u32>,
    next: Vec<u32>,
    end: Vec<u32>,
    /// The machine register of each virtual one, and its place on the stack.
    place: Vec<u8>,
    stack: Vec<u32>,
    /// What each machine register holds: vectors, then masks.
    holds: [Vec<Reg>; 2],
    /// Machine registers that hold nothing, as bits.
    free: [u32; 2],
    free_stack: Vec<u32>,
    out: Allocated,
}

/// Assigns registers; masks from `first_mask` up are free to use.
pub(super) fn allocate(body: &Body, first_mask: u8) -> Allocated {
    let n = body.defs.len();
    let mut end = vec![0u32; n];
    for inst in &body.insts {
        inst.sources().for_each(|r| end[r as usize] += 1);
    }
    let mut next = Vec::with_capacity(n);
    let mut total = 0;
    for count in &mut end {
        next.push(total);
        total += std::mem::replace(count, total);
    }
    let mut uses = vec![0u32; total as usize];
    for (i, inst) in body.insts.iter().enumerate() {
        for r in inst.sources() {
            uses[end[r as usize] as usize] = i as u32;
            end[r as usize] += 1;
        }
    }
    let mut walk = Walk {
        body,
        uses,
        next,
        end,
        place: vec![NOWHERE; n],
        stack: vec![u32::MAX; n],
        holds: [vec![NONE; 32], vec![NONE; 8]],
        free: [u32::MAX >> (32 - body.isa.vectors()), 0xff & (u32::MAX << first_mask)],
        free_stack: Vec::new(),
        out: Allocated::default(),
    };
    walk.hoist();
    for (i, inst) in body.insts.iter().enumerate() {
        walk.step(i as u32, inst);
    }
    walk.out
}

impl Walk<'_> {
    fn next_use(&self, r: Reg) -> u32 {
        let r = r as usize;
        if self.next[r] < self.end[r] { self.uses[self.next[r] as usize] } else { u32::MAX }
    }

    /// The most vectors alive at once that can't be hoisted.
    fn pressure(&self) -> usize {
        let mut change = vec![0i32; self.body.insts.len() + 1];
        let mut start = vec![u32::MAX; self.body.defs.len()];
        for (i, inst) in self.body.insts.iter().enumerate() {
            if let Inst::Op(op) = inst {
                start[op.dst as usize] = i as u32;
            }
        }
        for (r, def) in self.body.defs.iter().enumerate() {
            let used = self.next[r] < self.end[r];
            if used && !self.body.is_mask[r] && matches!(def, Def::Made | Def::Load(..)) {
                let first = if *def == Def::Made { start[r] } else { self.uses[self.next[r] as usize] };
                change[first as usize] += 1;
                change[self.uses[self.end[r] as usize - 1] as usize] -= 1;
            }
        }
        let mut now = 0;
        change.iter().map(|c| (now += c, now).1).max().unwrap_or(0).max(0) as usize + 2
    }

    /// Puts the uniform values and constants with the most uses into registers for good.
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
        for (i, r) in all.into_iter().take(room).enumerate() {
            let dst = vectors - 1 - i as u8;
            self.free[0] &= !(1 << dst);
            self.place[r as usize] = dst;
            let load = self.load(r, dst);
            self.out.hoisted.push(load);
        }
    }

    fn load(&self, r: Reg, dst: u8) -> Machine {
        match self.body.defs[r as usize] {
            Def::Load(slot, dtype, ahead) => Machine::Load { slot, dtype, dst, ahead },
            Def::Splat(slot, dtype) => Machine::Splat { slot, dtype, dst },
            Def::Const(index) => Machine::Const { index, dst },
            Def::Made => Machine::Fill { mask: self.body.is_mask[r as usize], dst, at: self.stack[r as usize] },
        }
    }

    /// The constant that an instruction of AVX2 reads from memory, as its last source: with few registers, and two loads
    /// a cycle, that is better than to load it first. `op` may have its sources the other way around then.
    fn constant(&self, op: &mut Op) -> Option<Reg> {
        let [a, b, c] = op.src;
        let outside = |r: Reg| {
            let uses = [a, b, c, op.mask].iter().filter(|s| **s == r).count();
            let constant = |r: Reg| matches!(self.body.defs[r as usize], Def::Const(_));
            r != NONE && uses == 1 && self.place[r as usize] == NOWHERE && constant(r)
        };
        if self.body.isa != Isa::Avx2 || op.form == RESCUE || op.form == ADDED || b == NONE {
            return None;
        }
        if c != NONE {
            return [c, a, b].into_iter().find(|r| outside(*r));
        }
        if outside(b) {
            return Some(b);
        }
        (outside(a) && commutes(op.form)).then(|| {
            op.src = [b, a, NONE];
            a
        })
    }

    fn step(&mut self, i: u32, inst: &Inst) {
        let mut inst = *inst;
        let apart = if let Inst::Op(op) = &mut inst { self.constant(op) } else { None };
        let inst = &inst;
        let constant = apart.and_then(|r| match self.body.defs[r as usize] {
            Def::Const(index) => Some(index),
            _ => None,
        });
        let sources = || inst.sources();
        for r in sources() {
            if self.place[r as usize] == NOWHERE && apart != Some(r) {
                let dst = self.take(r, sources);
                let load = self.load(r, dst);
                self.out.body.push(load);
            }
        }
        let at = |r: Reg| if r == NONE { 0 } else { self.place[r as usize] };
        let mut machine = match inst {
            Inst::Op(op) => {
                Machine::Op { op: *op, dst: 0, src: [at(op.src[0]), at(op.src[1])], mask: at(op.mask), constant }
            }
            Inst::Store(slot, dtype, r, sum, ahead) => {
                let sum = (*sum != NONE).then(|| at(*sum));
                Machine::Store { slot: *slot, dtype: *dtype, src: at(*r), sum, ahead: *ahead }
            }
        };
        for r in sources() {
            while self.next_use(r) == i {
                self.next[r as usize] += 1;
            }
        }
        if let (Inst::Op(op), Machine::Op { op: machine, dst, src, .. }) = (inst, &mut machine)
            && op.src[2] != NONE
        {
            self.three(op, machine, dst, src, apart);
        }
        let three = matches!(inst, Inst::Op(op) if op.src[2] != NONE);
        for r in sources() {
            if self.next_use(r) == u32::MAX {
                self.release(r);
            }
        }
        if let (Inst::Op(op), Machine::Op { dst, .. }) = (inst, &mut machine) {
            if three {
                self.free[0] &= !(1 << *dst);
                self.holds[0][usize::from(*dst)] = op.dst;
                self.place[op.dst as usize] = *dst;
            } else {
                *dst = self.take(op.dst, std::iter::empty);
            }
        }
        self.out.body.push(machine);
    }

    /// Chooses the register of a result that takes the place of one of three sources: of one that is not used again, or
    /// of a copy.
    fn three(&mut self, op: &Op, machine: &mut Op, dst: &mut u8, src: &mut [u8; 2], apart: Option<Reg>) {
        let [a, b, c] = op.src;
        let at = |w: &Self, r: Reg| w.place[r as usize];
        let goes = |w: &Self, r: Reg| w.next_use(r) == u32::MAX && w.holds[0][usize::from(at(w, r))] == r;
        let multiplies = overwriting(op.form, true).is_some();
        let (over, others, addend) = match multiplies {
            // What stands in memory comes last.
            true if apart == Some(a) => (c, [b, a], true),
            true if apart == Some(b) => (c, [a, b], true),
            true if apart == Some(c) && goes(self, b) && !goes(self, a) => (b, [a, c], false),
            true if apart == Some(c) => (a, [b, c], false),
            true if goes(self, c) || !(goes(self, a) || goes(self, b)) => (c, [a, b], true),
            true if goes(self, a) => (a, [b, c], false),
            true => (b, [a, c], false),
            false => (a, [b, c], false),
        };
        machine.form = overwriting(op.form, addend).unwrap_or(op.form);
        *dst = at(self, over);
        if !goes(self, over) {
            let held = at(self, over);
            *dst = self.take(op.dst, || op.src.into_iter());
            self.out.body.push(Machine::Copy { dst: *dst, src: held });
        }
        *src = others.map(|r| at(self, r));
    }

    /// Gives up the register and the place of a value that is not used again.
    fn release(&mut self, r: Reg) {
        let (file, place) = (usize::from(self.body.is_mask[r as usize]), self.place[r as usize]);
        if place != NOWHERE && self.holds[file][usize::from(place)] == r {
            self.holds[file][usize::from(place)] = NONE;
            self.free[file] |= 1 << place;
            self.place[r as usize] = NOWHERE;
        }
        if self.stack[r as usize] != u32::MAX {
            self.free_stack.push(std::mem::replace(&mut self.stack[r as usize], u32::MAX));
        }
    }

    /// A machine register for `r`: a free one, or that of the value whose next use is farthest, `kept` excepted.
    fn take<I: Iterator<Item = Reg>>(&mut self, r: Reg, kept: impl Fn() -> I) -> u8 {
        let file = usize::from(self.body.is_mask[r as usize]);
        if self.free[file] == 0 {
            let victims = self.holds[file].iter().copied().filter(|v| *v != NONE && !kept().any(|k| k == *v));
            if let Some(victim) = victims.max_by_key(|v| self.next_use(*v)) {
                self.evict(victim, file);
            }
        }
        let place = self.free[file].trailing_zeros() as u8;
        self.free[file] &= !(1 << place);
        self.holds[file][usize::from(place)] = r;
        self.place[r as usize] = place;
        place
    }

    fn evict(&mut self, r: Reg, file: usize) {
        let src = std::mem::replace(&mut self.place[r as usize], NOWHERE);
        if self.body.defs[r as usize] == Def::Made && self.stack[r as usize] == u32::MAX {
            let at = self.free_stack.pop().unwrap_or_else(|| {
                self.out.places += 1;
                self.out.places - 1
            });
            self.stack[r as usize] = at;
            self.out.body.push(Machine::Spill { mask: file == 1, src, at });
        }
        self.holds[file][usize::from(src)] = NONE;
        self.free[file] |= 1 << src;
    }
}
