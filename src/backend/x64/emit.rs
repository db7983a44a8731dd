//! Machine code of a segment: the loop over pairs of vectors if there is one, the loop over whole vectors, and its body once
//! more for the elements that are left.
//!
//! The function of a plain schedule walks rows: what the table has behind its pointers says how. Guarantees: any number of
//! elements from 1 up, with the bit [`STREAM`] or without: with it there is a second loop, whose stores of results go past
//! the caches (a fence is the caller's), and with the bit [`ADD`] a third, which adds up values in lanes (both ask for operands
//! ahead of their use, with the bit [`AHEAD`]); registers that the caller of a System V
//! function expects back are given back; every page of a large stack frame is touched in order. Slots that are written must
//! not overlap slots that are read. Does not: choose instructions or registers of the body.

use std::collections::HashMap;

use super::alloc::{Allocated, Machine};
use super::asm::{
    Add, And, Asm, Cmp, General, Memory, Operands, Place, R8, R9, R10, R11, R12, R13, R14, R15, RAX, RBP, RBX, RCX,
    RDI, RDX, RSI, RSP, Sub, When,
};
use super::instructions as f;
use super::ir::Constant;
use super::isa::Isa;
use crate::backend::abi::{ADD, AHEAD, STREAM, row_words};
use crate::base::dtype::DType;
use crate::kernels::reduce::LANES;
use crate::plan::schedule::SlotId;

/// The table of pointers (first argument), the number of elements (second), the index of the current element.
pub(super) const TABLE: General = RDI;
pub(super) const COUNT: General = RSI;
pub(super) const INDEX: General = RAX;
/// A pointer that has no register of its own.
pub(super) const POINTER: General = R11;
/// The constants.
pub(super) const POOL: General = R10;
/// Twice the index: elements of 16 bytes have no scale. Or the lane of the current element, where values are added up.
pub(super) const TWICE: General = R9;
/// What else holds pointers; the caller expects the latter back.
const UNSAVED: [General; 3] = [RCX, RDX, R8];
const SAVED: [General; 4] = [RBX, R12, R13, R14];
/// The index of the element that is asked for, which the caller expects back too.
pub(super) const FAR: General = R15;

/// The bytes of a function, and how many of them are instructions; the constants follow.
pub(super) struct Function {
    pub(super) bytes: Vec<u8>,
    pub(super) code: usize,
}

/// A segment with registers assigned.
pub(super) struct Segment<'a> {
    pub(super) isa: Isa,
    /// Elements of an iteration.
    pub(super) lanes: usize,
    pub(super) allocated: &'a Allocated,
    /// The body over two vectors in a row, if there is a loop of it.
    pub(super) paired: Option<&'a Allocated>,
    /// Whether that loop is only for results that go past the caches, if they can.
    pub(super) only_streamed: bool,
    pub(super) constants: &'a [Constant],
    /// Whether a slot has elements of 16 bytes.
    pub(super) twice: bool,
    /// Whether it is all there is to run, so that the processor finds by itself what comes next, if the body is short.
    pub(super) alone: bool,
    /// Slots of operands that move with the index, how many elements ahead these are asked for, and slots of results.
    pub(super) operands: &'a [SlotId],
    pub(super) ahead: usize,
    pub(super) results: &'a [SlotId],
    /// Slots of what can be added up.
    pub(super) sums: &'a [(SlotId, DType)],
    /// Slots that move from row to row, and how many slots there are, if the function walks rows.
    pub(super) rows: Option<&'a (Vec<SlotId>, usize)>,
}

pub(super) struct Writer<'a> {
    pub(super) asm: Asm,
    pub(super) segment: &'a Segment<'a>,
    pub(super) pointers: HashMap<SlotId, General>,
    /// Where each constant lies in the pool.
    pub(super) offsets: Vec<i64>,
    /// Where the instruction ends that says how far the pool is.
    pool_use: Option<usize>,
    /// Where functions are called that most iterations do without.
    pub(super) rescues: Vec<Rescue>,
}

/// Encodes a segment.
pub(super) fn function(segment: &Segment<'_>) -> Function {
    let mut w = Writer {
        asm: Asm::default(),
        segment,
        pointers: HashMap::new(),
        offsets: Vec::new(),
        pool_use: None,
        rescues: Vec::new(),
    };
    let pool = w.pool();
    w.whole();
    let Asm { mut bytes } = w.asm;
    let code = bytes.len();
    // Vectors of constants lie in one cache line each, as functions begin at one.
    bytes.resize(code.next_multiple_of(64), 0xcc);
    let mut asm = Asm { bytes };
    if let Some(end) = w.pool_use {
        asm.patch(end, asm.at());
    }
    asm.bytes.extend(pool);
    Function { bytes: asm.bytes, code }
}

impl Writer<'_> {
    /// Lays the constants out.
    fn pool(&mut self) -> Vec<u8> {
        let mut pool = Vec::new();
        self.offsets = vec![0; self.segment.constants.len()];
        // Most are one quadword repeated, behind the others. AVX2's instructions read them whole.
        let short = |c: &Constant| self.segment.isa == Isa::Avx512 && c.iter().all(|q| *q == c[0]);
        for last in [false, true] {
            for (c, at) in self.segment.constants.iter().zip(&mut self.offsets).filter(|(c, _)| short(c) == last) {
                *at = pool.len() as i64;
                let count = if last { 1 } else { self.segment.isa.bytes() / 8 };
                c[..count].iter().for_each(|q| pool.extend(q.to_le_bytes()));
            }
        }
        pool
    }

    fn whole(&mut self) {
        let segment = self.segment;
        let saved = self.assign_pointers();
        let frame = i64::from(self.places()) * 64 + self.room();
        let framed = frame > 0;
        if framed {
            self.asm.push(RBP);
            self.asm.load(RBP, RSP);
        }
        saved.iter().for_each(|r| self.asm.push(*r));
        if framed {
            self.frame(frame);
        }
        if !segment.constants.is_empty() {
            // The distance is known at the end.
            self.pool_use = Some(self.asm.lea_ahead(POOL));
        }
        let row = self.asm.at();
        let mut slots: Vec<(SlotId, General)> = self.pointers.iter().map(|(s, r)| (*s, *r)).collect();
        slots.sort_unstable_by_key(|(slot, _)| *slot);
        for (slot, r) in slots {
            self.pointer(slot, r);
        }
        self.asm.clear(INDEX);
        self.far_index();
        if segment.paired.is_none() {
            self.hoisted(segment.allocated);
        }
        let summed = if self.adds_up() { self.sum() } else { Vec::new() };
        if !segment.sums.is_empty() && summed.is_empty() {
            // Another segment of the schedule adds up.
            self.asm.take_bit(COUNT, ADD.trailing_zeros() as u8);
        }
        self.asm.take_bit(COUNT, STREAM.trailing_zeros() as u8);
        let mut ends: Vec<usize> = segment.paired.map(|pair| self.pairs(pair, Body::Cached)).into_iter().collect();
        let mut to_rest = Vec::new();
        if segment.paired.is_none() && self.streams(&segment.allocated.body, !segment.alone) {
            let cached = self.asm.jump(When::NotBelow);
            to_rest.push(self.main_loop(Body::Streamed));
            to_rest.push(self.asm.jump(When::Always));
            self.asm.land(cached);
        }
        to_rest.push(self.main_loop(Body::Cached));
        to_rest.into_iter().for_each(|jump| self.asm.land(jump));
        ends.push(self.rest(Body::Rest));
        ends.into_iter().chain(summed).for_each(|jump| self.asm.land(jump));
        let last = self.next_row(row);
        last.into_iter().for_each(|jump| self.asm.land(jump));
        self.asm.zero_upper();
        if framed {
            self.asm.lea(RSP, Memory::at(RBP, saved.len() as i64 * -8));
        }
        saved.iter().rev().for_each(|r| self.asm.pop(*r));
        if framed {
            self.asm.pop(RBP);
        }
        self.asm.ret();
        self.rescues();
    }

    /// The loop over whole vectors; returns the jump over it, which is taken if there is none.
    fn main_loop(&mut self, how: Body) -> usize {
        let lanes = self.segment.lanes as i32;
        self.asm.alu(Sub, COUNT, lanes);
        self.asm.alu_with(Cmp, INDEX, COUNT);
        let skip = self.asm.jump(When::Greater);
        self.repeated(self.segment.allocated, lanes, how);
        skip
    }

    /// Places on the stack that a body uses.
    pub(super) fn places(&self) -> u32 {
        self.segment.allocated.places.max(self.segment.paired.map_or(0, |p| p.places))
    }

    /// What is loaded once, before a loop.
    fn hoisted(&mut self, allocated: &Allocated) {
        allocated.hoisted.iter().for_each(|m| self.machine(m, Body::Cached));
    }

    /// The loops over pairs of vectors, and what those over single ones expect; returns the jump that is taken if no
    /// element is left. Where nothing is added up, the carry flag says whether to stream.
    fn pairs(&mut self, pair: &Allocated, how: Body) -> usize {
        let (both, streams) = (2 * self.segment.lanes as i32, !how.adds() && self.streams(&pair.body, true));
        let only = streams && self.segment.only_streamed;
        let two_loops = streams && !only;
        let around = only.then(|| self.asm.jump(When::NotBelow));
        if two_loops {
            self.asm.carry(POINTER);
        }
        self.asm.alu(Sub, COUNT, both);
        let mut ends = vec![self.asm.jump(When::Less)];
        if two_loops {
            // Loads between here and the jump change no flags, but may use the register.
            self.asm.test_byte(POINTER);
        }
        self.hoisted(pair);
        if two_loops {
            let cached = self.asm.jump(When::Equal);
            self.repeated(pair, both, Body::Streamed);
            ends.push(self.asm.jump(When::Always));
            self.asm.land(cached);
        }
        self.repeated(pair, both, if only { Body::Streamed } else { how });
        ends.into_iter().for_each(|jump| self.asm.land(jump));
        self.asm.alu(Add, COUNT, both);
        self.asm.alu_with(Cmp, INDEX, COUNT);
        let done = self.asm.jump(When::Equal);
        around.into_iter().for_each(|jump| self.asm.land(jump));
        self.hoisted(self.segment.allocated);
        done
    }

    /// A body again and again, so many elements at once, while as many are left; `COUNT` is less by these.
    fn repeated(&mut self, allocated: &Allocated, elements: i32, how: Body) {
        let head = self.asm.at();
        self.body(allocated, how);
        self.asm.alu(Add, INDEX, elements);
        if how.asks() && !self.segment.operands.is_empty() {
            self.asm.alu(Add, FAR, elements);
        }
        self.asm.alu_with(Cmp, INDEX, COUNT);
        self.asm.jump_to(When::NotAbove, head);
    }

    /// Goes to the next row if there is one; returns the jump past that.
    fn next_row(&mut self, row: usize) -> Option<usize> {
        let (moving, slots) = self.segment.rows?;
        let word = |i: usize| Memory::at(TABLE, i as i64 * 8);
        let [count, rows] = row_words(*slots).map(word);
        self.asm.alu(Cmp, rows, 2);
        let last = self.asm.jump(When::Below);
        self.asm.alu(Sub, rows, 1);
        for slot in moving {
            let slot = *slot as usize;
            self.asm.load(POINTER, word(slots + slot));
            self.asm.alu_on(Add, word(slot), POINTER);
        }
        self.asm.load(COUNT, count);
        self.asm.jump_to(When::Always, row);
        Some(last)
    }

    /// The elements that are left; returns the jump over them, which is taken if there is none.
    fn rest(&mut self, how: Body) -> usize {
        self.asm.alu(Add, COUNT, self.segment.lanes as i32);
        self.asm.alu_with(Sub, COUNT, INDEX);
        let done = self.asm.jump(When::Equal);
        self.rest_masks();
        self.body(self.segment.allocated, how);
        done
    }

    /// The loops that add up, and their rest; returns the jumps to the end.
    fn sum(&mut self) -> Vec<usize> {
        self.asm.take_bit(COUNT, ADD.trailing_zeros() as u8);
        let other = self.asm.jump(When::NotBelow);
        self.asm.take_bit(COUNT, STREAM.trailing_zeros() as u8);
        let mut ends: Vec<usize> = self.segment.paired.map(|pair| self.pairs(pair, Body::Added)).into_iter().collect();
        let skip = self.main_loop(Body::Added);
        self.asm.land(skip);
        ends.push(self.rest(Body::AddedRest));
        ends.push(self.asm.jump(When::Always));
        self.asm.land(other);
        ends
    }

    /// Whether a loop asks for operands ahead.
    fn asks(&self) -> bool {
        let streams = match self.segment.paired {
            Some(pair) => self.streams(&pair.body, true),
            None => self.streams(&self.segment.allocated.body, !self.segment.alone),
        };
        !self.segment.operands.is_empty() && (streams || self.adds_up())
    }

    /// The index of what is asked for: some way ahead if the bit [`AHEAD`] says so, else where the index is.
    fn far_index(&mut self) {
        self.asm.take_bit(COUNT, AHEAD.trailing_zeros() as u8);
        if self.asks() {
            self.asm.spread_carry(FAR);
            self.asm.alu(And, FAR, self.segment.ahead as i32);
        }
    }

    /// Whether something can be added up.
    fn adds_up(&self) -> bool {
        self.segment.allocated.body.iter().any(|m| matches!(m, Machine::Store { sum: Some(_), .. }))
    }

    /// Room on the stack, aligned to vectors.
    fn frame(&mut self, mut bytes: i64) {
        // In steps of less than a page, so that an overflow meets the guard page.
        let step = 2048;
        while bytes > step {
            self.asm.alu(Sub, RSP, step as i32);
            self.asm.touch(Memory::at(RSP, 0));
            bytes -= step;
        }
        self.asm.alu(Sub, RSP, bytes as i32);
        self.asm.alu(And, RSP, -64);
    }

    /// Registers for the pointers of slots, as far as they last; returns those that must be saved.
    fn assign_pointers(&mut self) -> Vec<General> {
        let mut free = UNSAVED.iter().chain(&SAVED);
        for m in &self.segment.allocated.body {
            if let Machine::Load { slot, .. } | Machine::Store { slot, .. } = m
                && !self.pointers.contains_key(slot)
                && let Some(r) = free.next()
            {
                self.pointers.insert(*slot, *r);
            }
        }
        let mut saved: Vec<General> =
            SAVED.into_iter().filter(|r| self.pointers.values().any(|used| used == r)).collect();
        saved.extend(self.asks().then_some(FAR));
        saved
    }

    fn body(&mut self, allocated: &Allocated, how: Body) {
        if self.segment.twice {
            self.asm.lea(TWICE, Memory::at(INDEX, 0).indexed(INDEX, 1));
        } else if how.adds() {
            self.asm.load(TWICE, INDEX);
            self.asm.alu(And, TWICE, LANES as i32 - 1);
        }
        allocated.body.iter().for_each(|m| self.machine(m, how));
    }

    fn machine(&mut self, m: &Machine, how: Body) {
        match *m {
            Machine::Op { op, dst, src, mask, .. } if op.form == f::RESCUE => self.rescue(&op, dst, src[0], mask),
            Machine::Op { op, .. } if op.form == f::ADDED && !how.adds() => {}
            Machine::Op { op, dst, src, .. } if op.form == f::ADDED => {
                self.lanes((self.segment.sums[op.sum as usize], op.ahead), Some(dst), src[0], how);
            }
            Machine::Op { op, dst, src, mask, constant } => {
                let last = match constant {
                    Some(index) => Memory::at(POOL, self.offsets[index as usize]).into(),
                    None if op.src[1] == super::ir::NONE => Place::Register(src[0]),
                    None => Place::Register(src[1]),
                };
                let mask = if op.mask == super::ir::NONE { 0 } else { mask };
                let operands = if op.form.code.layout == f::Layout::Mr {
                    Operands::new(src[0], 0, Place::Register(dst))
                } else {
                    Operands::new(dst, src[0], last)
                };
                let (imm, zeroing, truncate) = (op.imm, op.zeroing, op.truncate);
                self.asm.vector(op.form, op.length, &Operands { imm, mask, zeroing, truncate, ..operands });
            }
            Machine::Copy { dst, src } => self.copy(dst, src),
            Machine::Load { slot, dtype, dst, ahead } => self.transfer((slot, dtype, ahead), dst, how, true),
            Machine::Store { slot, dtype, sum: Some(sum), ahead, .. } if how.adds() => {
                self.lanes(((slot, dtype), ahead), None, sum, how);
            }
            Machine::Store { slot, dtype, src, ahead, .. } => self.transfer((slot, dtype, ahead), src, how, false),
            Machine::Splat { slot, dtype, dst } => self.splat(slot, dtype, dst),
            Machine::Const { index, dst } => self.constant(index, dst),
            Machine::Spill { .. } | Machine::Fill { .. } => self.placed(m),
        }
    }
}

/// How the body handles its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Whole vectors.
    Cached,
    /// Whole vectors; operands are asked for ahead, and results in whole cache lines go past the caches: of parts of a line,
    /// the second may come too late to be written with the first.
    Streamed,
    /// Whole vectors; operands are asked for ahead, and sums are added up.
    Added,
    /// The rest, under its mask.
    Rest,
    /// The rest, and sums are added up.
    AddedRest,
}

impl Body {
    pub(super) fn masked(self) -> bool {
        matches!(self, Body::Rest | Body::AddedRest)
    }

    /// Whether operands are asked for ahead of their use.
    pub(super) fn asks(self) -> bool {
        matches!(self, Body::Streamed | Body::Added)
    }

    pub(super) fn adds(self) -> bool {
        matches!(self, Body::Added | Body::AddedRest)
    }
}

/// A call to be written behind the function's end.
pub(super) struct Rescue {
    /// Where the jump to it ends, and where it returns to.
    pub(super) jump: usize,
    pub(super) back: usize,
    pub(super) function: usize,
    pub(super) dst: u8,
    pub(super) x: u8,
}
