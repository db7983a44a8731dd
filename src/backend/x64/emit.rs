//! The function of a segment: a loop over pairs of vectors if there is one, a loop over single vectors, and the body once more
//! for the remainder, the elements after the last whole vector.
//!
//! Guarantees: takes any number of elements from 1 up. With the bit [`STREAM`] another loop runs, whose stores of results are
//! non-temporal (the caller issues the fence); with the bit [`ADD`] a third one, which accumulates values into partial
//! sums. Both prefetch operands, farther ahead with the bit [`AHEAD`]. If the schedule walks rows, the function continues
//! with the rows that the table describes after its pointers. Callee-saved registers are restored as System V requires; a large
//! stack frame is probed page by page. Slots that are written
//! must not overlap slots that are read, but be the same elements where `AccessOrder` says that they are read first. Does not: select
//! instructions or allocate registers for the body.

use foldhash::{HashMap, HashMapExt};

use super::alloc::{Allocated, Machine};
use super::asm::{
    Add, Address, And, Asm, Cmp, Condition, General, Operands, R8, R9, R10, R11, R12, R13, R14, R15, RAX, RBP, RBX,
    RCX, RDI, RDX, RSI, RSP, RegMem, Sub,
};
use super::instructions as ins;
use super::ir::{Constant, NONE};
use super::isa::Isa;
use super::prefetch::Ahead;
use crate::backend::abi::{ADD, AHEAD, STREAM, lane_bits, row_words};
use crate::backend::listing::{Mark, Purpose};
use crate::base::dtype::DType;
use crate::plan::schedule::SlotId;

/// The table of pointers (first argument), the number of elements (second argument), the index of the current element.
pub(super) const TABLE: General = RDI;
pub(super) const COUNT: General = RSI;
pub(super) const INDEX: General = RAX;
/// A pointer that has no register of its own; else scratch.
pub(super) const POINTER: General = R11;
/// The address of the constants.
pub(super) const POOL: General = R10;
/// The index of a lane: `2 * INDEX`, as there is no scale for elements of 16 bytes; or the lane of a partial sum that the
/// current element is added to.
pub(super) const LANE_INDEX: General = R9;
/// The other registers for pointers.
const CALLER_SAVED: [General; 3] = [RCX, RDX, R8];
const CALLEE_SAVED: [General; 4] = [RBX, R12, R13, R14];
/// The index of the element that is prefetched; callee-saved.
pub(super) const PREFETCH_INDEX: General = R15;

/// A function: `code` bytes of instructions, then the constants.
pub(super) struct Function {
    pub(super) bytes: Vec<u8>,
    pub(super) code: usize,
    /// What the instructions are for, if that was recorded.
    pub(super) marks: Vec<Mark>,
}

/// A segment whose body has machine registers.
pub(super) struct AllocatedSegment<'a> {
    pub(super) isa: Isa,
    /// Elements of a vector of the widest dtype: those of an iteration over single vectors.
    pub(super) lanes: usize,
    pub(super) allocated: &'a Allocated,
    /// The body over two vectors, if there is a loop over pairs.
    pub(super) paired: Option<&'a Allocated>,
    /// The body for the loop that keeps sums in registers, if there is one.
    pub(super) kept: Option<&'a Allocated>,
    /// Whether the loop over pairs serves only results that are streamed.
    pub(super) only_streamed: bool,
    pub(super) constants: &'a [Constant],
    /// Whether a slot has elements of 16 bytes.
    pub(super) has_16_byte_elements: bool,
    /// Whether the segment is the only stage, so that the hardware prefetcher predicts its accesses if the body is short.
    pub(super) is_only_stage: bool,
    /// The slots of operands that are prefetched, and how.
    pub(super) operands: &'a [SlotId],
    pub(super) ahead: Ahead,
    /// The slots of results.
    pub(super) results: &'a [SlotId],
    /// The slots of values that can be accumulated.
    pub(super) sums: &'a [(SlotId, DType)],
    /// The number of all slots.
    pub(super) slots: usize,
    /// If the function walks rows: the slots whose pointers move from row to row.
    pub(super) rows: Option<&'a [SlotId]>,
}

pub(super) struct Writer<'a> {
    pub(super) asm: Asm,
    pub(super) segment: &'a AllocatedSegment<'a>,
    /// The registers of pointers.
    pub(super) pointers: HashMap<SlotId, General>,
    /// The offset of each constant in the pool.
    pub(super) offsets: Vec<i64>,
    /// The end of the instruction that computes the pool's address.
    pool_use: Option<usize>,
    /// The calls that are written after the function.
    pub(super) slow_paths: Vec<SlowPathCall>,
    /// The calls, by their ends, of subroutines that are written after it.
    pub(super) remainder_moves: Vec<(RemainderMove, Vec<usize>)>,
    /// Filled in for a dump alone.
    marks: Option<Vec<Mark>>,
}

/// Bytes of a function for which there is room from the start; the code of longer ones moves as it grows.
const ROOM: usize = 4096;

/// Encodes a segment; `marked` records what the instructions are for.
pub(super) fn function(segment: &AllocatedSegment<'_>, marked: bool) -> Function {
    let mut w = Writer {
        asm: Asm { bytes: Vec::with_capacity(ROOM) },
        segment,
        pointers: HashMap::new(),
        offsets: Vec::new(),
        pool_use: None,
        slow_paths: Vec::new(),
        remainder_moves: Vec::new(),
        marks: marked.then(Vec::new),
    };
    let pool = w.lay_out_pool();
    w.function();
    let Asm { mut bytes } = w.asm;
    let code = bytes.len();
    // Functions begin at a cache line; each vector constant lies within one.
    bytes.resize(code.next_multiple_of(64), 0xcc);
    let mut asm = Asm { bytes };
    if let Some(end) = w.pool_use {
        asm.patch(end, asm.at());
    }
    asm.bytes.extend(pool);
    Function { bytes: asm.bytes, code, marks: w.marks.unwrap_or_default() }
}

impl Writer<'_> {
    /// Assigns offsets to the constants and returns their bytes.
    fn lay_out_pool(&mut self) -> Vec<u8> {
        let mut pool = Vec::new();
        self.offsets = vec![0; self.segment.constants.len()];
        // Whole vectors first, then constants of one quadword, which AVX-512 broadcasts. AVX2 instructions read whole vectors.
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

    fn function(&mut self) {
        self.mark(Purpose::Frame("entry"));
        let saved = self.assign_pointers();
        let frame = i64::from(self.stack_slots()) * 64 + self.slow_path_frame();
        self.prologue(frame, &saved);
        let row = self.asm.at();
        self.load_pointers();
        self.asm.clear(INDEX);
        self.set_prefetch_index();
        if self.segment.paired.is_none() {
            self.hoisted(self.segment.allocated);
        }
        let ends = self.loops();
        ends.into_iter().for_each(|jump| self.asm.land(jump));
        self.mark(Purpose::Frame("next row, or return"));
        let last = self.next_row(row);
        last.into_iter().for_each(|jump| self.asm.land(jump));
        self.epilogue(frame, &saved);
        self.slow_path_calls();
        self.remainder_subroutines();
    }

    /// Saves registers, makes room on the stack, and loads the address of the constants.
    fn prologue(&mut self, frame: i64, saved: &[General]) {
        if frame > 0 {
            self.asm.push(RBP);
            self.asm.load(RBP, RSP);
        }
        saved.iter().for_each(|r| self.asm.push(*r));
        if frame > 0 {
            self.frame(frame);
        }
        if !self.segment.constants.is_empty() {
            self.pool_use = Some(self.asm.lea_ahead(POOL));
        }
    }

    fn epilogue(&mut self, frame: i64, saved: &[General]) {
        self.asm.zero_upper();
        if frame > 0 {
            self.asm.lea(RSP, Address::at(RBP, saved.len() as i64 * -8));
        }
        saved.iter().rev().for_each(|r| self.asm.pop(*r));
        if frame > 0 {
            self.asm.pop(RBP);
        }
        self.asm.ret();
    }

    fn load_pointers(&mut self) {
        let mut slots: Vec<(SlotId, General)> = self.pointers.iter().map(|(s, r)| (*s, *r)).collect();
        slots.sort_unstable_by_key(|(slot, _)| *slot);
        for (slot, r) in slots {
            self.pointer(slot, r);
        }
    }

    /// All loops and the remainder; returns the jumps to what follows.
    fn loops(&mut self) -> Vec<usize> {
        let segment = self.segment;
        let summed = if self.accumulates() { self.summing_loops() } else { Vec::new() };
        self.mark(Purpose::Frame("loops"));
        if !segment.sums.is_empty() && summed.is_empty() {
            // Another segment of the schedule accumulates.
            self.asm.take_bit(COUNT, ADD.trailing_zeros() as u8);
        }
        self.asm.take_bit(COUNT, STREAM.trailing_zeros() as u8);
        let mut ends: Vec<usize> = segment.paired.map(|pair| self.pairs(pair, LoopKind::Cached)).into_iter().collect();
        let mut to_remainder = Vec::new();
        if segment.paired.is_none() && self.streams(&segment.allocated.body, !segment.is_only_stage) {
            let cached = self.asm.jump(Condition::NotBelow);
            to_remainder.push(self.main_loop(LoopKind::Streamed));
            to_remainder.push(self.asm.jump(Condition::Always));
            self.asm.land(cached);
        }
        to_remainder.push(self.main_loop(LoopKind::Cached));
        to_remainder.into_iter().for_each(|jump| self.asm.land(jump));
        ends.push(self.remainder(LoopKind::Remainder));
        ends.extend(summed);
        ends
    }

    /// The loop over single vectors; returns the jump past it, taken if there is no whole vector.
    fn main_loop(&mut self, kind: LoopKind) -> usize {
        self.mark(Purpose::Frame(kind.name()));
        let lanes = self.segment.lanes as i32;
        self.asm.alu(Sub, COUNT, lanes);
        self.asm.alu_with(Cmp, INDEX, COUNT);
        let skip = self.asm.jump(Condition::Greater);
        self.repeated(self.segment.allocated, lanes, kind);
        skip
    }

    /// Stack slots that the bodies use.
    pub(super) fn stack_slots(&self) -> u32 {
        self.segment.allocated.stack_slots.max(self.segment.paired.map_or(0, |p| p.stack_slots))
    }

    /// The loads before a loop.
    fn hoisted(&mut self, allocated: &Allocated) {
        if !allocated.hoisted.is_empty() {
            self.mark(Purpose::Frame("uniform values and constants"));
        }
        allocated.hoisted.iter().for_each(|m| self.machine(m, LoopKind::Cached));
        self.mark(Purpose::Frame("loops"));
    }

    /// The loops over pairs of vectors, then what the loop over single vectors expects; returns the jump that is taken if no
    /// element is left. Unless the loop accumulates, the carry flag says whether to stream.
    fn pairs(&mut self, pair: &Allocated, kind: LoopKind) -> usize {
        let (both, streams) = (2 * self.segment.lanes as i32, !kind.accumulates() && self.streams(&pair.body, true));
        let only = streams && self.segment.only_streamed;
        let two_loops = streams && !only;
        self.mark(Purpose::Frame("loops over pairs of vectors"));
        let around = only.then(|| self.asm.jump(Condition::NotBelow));
        if two_loops {
            self.asm.carry(POINTER);
        }
        self.asm.alu(Sub, COUNT, both);
        let mut ends = vec![self.asm.jump(Condition::Less)];
        if two_loops {
            // Before the hoisted loads: they change no flags up to the jump, but may overwrite the register.
            self.asm.test_byte(POINTER);
        }
        self.hoisted(pair);
        if two_loops {
            let cached = self.asm.jump(Condition::Equal);
            self.repeated(pair, both, LoopKind::Streamed);
            ends.push(self.asm.jump(Condition::Always));
            self.asm.land(cached);
        }
        self.repeated(pair, both, if only { LoopKind::Streamed } else { kind });
        ends.into_iter().for_each(|jump| self.asm.land(jump));
        self.mark(Purpose::Frame("after the loops over pairs"));
        self.asm.alu(Add, COUNT, both);
        self.asm.alu_with(Cmp, INDEX, COUNT);
        let done = self.asm.jump(Condition::Equal);
        around.into_iter().for_each(|jump| self.asm.land(jump));
        self.hoisted(self.segment.allocated);
        done
    }

    /// A loop of a body over so many elements. `COUNT` is the number of all elements less those of one iteration.
    fn repeated(&mut self, allocated: &Allocated, elements: i32, kind: LoopKind) {
        let head = self.asm.at();
        self.body(allocated, kind);
        self.advance(elements, kind);
        self.asm.alu_with(Cmp, INDEX, COUNT);
        self.asm.jump_to(Condition::NotAbove, head);
    }

    /// Goes so many elements on.
    pub(super) fn advance(&mut self, elements: i32, kind: LoopKind) {
        self.asm.alu(Add, INDEX, elements);
        if kind.prefetches() && !self.segment.operands.is_empty() {
            self.asm.alu(Add, PREFETCH_INDEX, elements);
        }
    }

    /// Continues with the next row if there is one; returns the jump that is taken if there is none.
    fn next_row(&mut self, row: usize) -> Option<usize> {
        let (moving, slots) = (self.segment.rows?, self.segment.slots);
        let word = |i: usize| Address::at(TABLE, i as i64 * 8);
        let [count, rows] = row_words(slots).map(word);
        self.asm.alu(Cmp, rows, 2);
        let last = self.asm.jump(Condition::Below);
        self.asm.alu(Sub, rows, 1);
        for slot in moving {
            let slot = *slot as usize;
            self.asm.load(POINTER, word(slots + slot));
            self.asm.alu_on(Add, word(slot), POINTER);
        }
        self.asm.load(COUNT, count);
        self.asm.jump_to(Condition::Always, row);
        Some(last)
    }

    /// The body over the elements after the last whole vector; returns the jump past it, taken if there is none.
    fn remainder(&mut self, kind: LoopKind) -> usize {
        self.mark(Purpose::Frame(kind.name()));
        self.asm.alu(Add, COUNT, self.segment.lanes as i32);
        self.asm.alu_with(Sub, COUNT, INDEX);
        let done = self.asm.jump(Condition::Equal);
        self.remainder_masks();
        self.body(self.segment.allocated, kind);
        done
    }

    /// The loops that accumulate, and their remainder; returns the jumps to the end.
    fn summing_loops(&mut self) -> Vec<usize> {
        self.mark(Purpose::Frame("loops that accumulate"));
        self.asm.take_bit(COUNT, ADD.trailing_zeros() as u8);
        let other = self.asm.jump(Condition::NotBelow);
        self.asm.take_bit(COUNT, STREAM.trailing_zeros() as u8);
        let mut ends: Vec<usize> =
            self.segment.paired.map(|pair| self.pairs(pair, LoopKind::Summed)).into_iter().collect();
        self.kept_sums();
        let skip = self.main_loop(LoopKind::Summed);
        self.asm.land(skip);
        ends.push(self.remainder(LoopKind::SummedRemainder));
        ends.push(self.asm.jump(Condition::Always));
        self.asm.land(other);
        ends
    }

    /// Whether a loop prefetches operands.
    fn has_prefetches(&self) -> bool {
        let streams = match self.segment.paired {
            Some(pair) => self.streams(&pair.body, true),
            None => self.streams(&self.segment.allocated.body, !self.segment.is_only_stage),
        };
        !self.segment.operands.is_empty() && (streams || self.accumulates())
    }

    /// Sets the index of what is prefetched: some way ahead with the bit [`AHEAD`], else equal to the index.
    fn set_prefetch_index(&mut self) {
        self.asm.take_bit(COUNT, AHEAD.trailing_zeros() as u8);
        if self.has_prefetches() {
            self.asm.spread_carry(PREFETCH_INDEX);
            self.asm.alu(And, PREFETCH_INDEX, self.segment.ahead.elements as i32);
        }
    }

    /// Whether the segment can accumulate a sum.
    fn accumulates(&self) -> bool {
        self.segment.allocated.summed().next().is_some()
    }

    /// Room on the stack, aligned to vectors.
    fn frame(&mut self, mut bytes: i64) {
        // In steps of less than a page, so that a stack overflow hits the guard page.
        let step = 2048;
        while bytes > step {
            self.asm.alu(Sub, RSP, step as i32);
            self.asm.touch(Address::at(RSP, 0));
            bytes -= step;
        }
        self.asm.alu(Sub, RSP, bytes as i32);
        self.asm.alu(And, RSP, -64);
    }

    /// Assigns registers to pointers as long as there are any; returns the callee-saved ones that are used.
    fn assign_pointers(&mut self) -> Vec<General> {
        let mut free = CALLER_SAVED.iter().chain(&CALLEE_SAVED);
        for m in &self.segment.allocated.body {
            let slot = match m {
                Machine::Load { slot, .. } => slot,
                Machine::Store { store, .. } => &store.slot,
                _ => continue,
            };
            if !self.pointers.contains_key(slot)
                && let Some(r) = free.next()
            {
                self.pointers.insert(*slot, *r);
            }
        }
        let mut saved: Vec<General> =
            CALLEE_SAVED.into_iter().filter(|r| self.pointers.values().any(|used| used == r)).collect();
        saved.extend(self.has_prefetches().then_some(PREFETCH_INDEX));
        saved
    }

    pub(super) fn body(&mut self, allocated: &Allocated, kind: LoopKind) {
        if self.segment.has_16_byte_elements {
            self.asm.lea(LANE_INDEX, Address::at(INDEX, 0).indexed(INDEX, 1));
        } else if kind.accumulates() && kind.kept().is_none() {
            self.asm.load(LANE_INDEX, INDEX);
            let bits = lane_bits(self.segment.slots) as i64;
            self.asm.alu_with(And, LANE_INDEX, Address::at(TABLE, 8 * bits));
        }
        let steps = self.marks.as_ref().map(|_| allocated.steps());
        for (i, m) in allocated.body.iter().enumerate() {
            if let Some(steps) = &steps {
                self.mark(Purpose::Step(steps[i]));
            }
            self.machine(m, kind);
        }
        self.mark(Purpose::Frame(if kind.is_remainder() { "end" } else { "next iteration" }));
    }

    /// Records what the next instructions are for.
    pub(super) fn mark(&mut self, purpose: Purpose) {
        let at = self.asm.at();
        self.marks.iter_mut().for_each(|marks| marks.push(Mark { at, purpose }));
    }

    fn machine(&mut self, m: &Machine, kind: LoopKind) {
        match *m {
            Machine::Inst { inst, dst, src, mask, .. } if inst.instruction == ins::SLOW_PATH => {
                self.check_slow_path(&inst, dst, src[0], mask);
            }
            Machine::Inst { inst, dst, src, .. } if inst.instruction == ins::ACCUMULATE => {
                if let Some(vector) = kind.kept() {
                    self.kept_sum(inst.sum as usize, vector, src[0]);
                } else if kind.accumulates() {
                    self.partial_sum((self.segment.sums[inst.sum as usize], inst.vector), Some(dst), src[0], kind);
                }
            }
            Machine::Inst { inst, dst, src, mask, constant } => {
                let last = match constant {
                    Some(index) => Address::at(POOL, self.offsets[index as usize]).into(),
                    None if inst.src[1] == NONE => RegMem::Register(src[0]),
                    None => RegMem::Register(src[1]),
                };
                let mask = if inst.mask == NONE { 0 } else { mask };
                let operands = if inst.instruction.code.encoding == ins::Encoding::Mr {
                    Operands::new(src[0], 0, RegMem::Register(dst))
                } else {
                    Operands::new(dst, src[0], last)
                };
                let (imm, zeroing, truncate) = (inst.imm, inst.zeroing, inst.truncate);
                let operands = Operands { imm, mask, zeroing, truncate, ..operands };
                self.asm.vector(inst.instruction, inst.length, &operands);
            }
            Machine::Copy { dst, src } => self.copy(dst, src),
            Machine::Load { slot, dtype, dst, vector } => self.transfer((slot, dtype, vector), dst, kind, true),
            Machine::Store { sum: Some(_), .. } if kind.kept().is_some() => {}
            Machine::Store { store, sum: Some(sum), .. } if kind.accumulates() => {
                self.partial_sum(((store.slot, store.dtype), store.vector), None, sum, kind);
            }
            Machine::Store { store, src, .. } => {
                self.transfer((store.slot, store.dtype, store.vector), src, kind, false);
            }
            Machine::Splat { slot, dtype, dst } => self.splat(slot, dtype, dst),
            Machine::Const { index, dst } => self.constant(index, dst),
            Machine::Spill { .. } | Machine::Fill { .. } => self.spill_or_fill(m),
        }
    }
}

/// The variants of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopKind {
    /// Whole vectors.
    Cached,
    /// Whole vectors. Operands are prefetched, and results whose stores fill cache lines are written past the caches: of two
    /// stores to one line, the second may come too late to be combined with the first.
    Streamed,
    /// Whole vectors. Operands are prefetched, and sums accumulated.
    Summed,
    /// The same, with the sums in registers: so many vectors behind the first lane.
    Kept(u8),
    /// The elements after the last whole vector, under a mask.
    Remainder,
    /// The same, and sums are accumulated.
    SummedRemainder,
}

impl LoopKind {
    /// The name in dumps.
    pub(super) fn name(self) -> &'static str {
        match self {
            LoopKind::Cached => "loop",
            LoopKind::Streamed => "loop with non-temporal stores",
            LoopKind::Summed => "loop that accumulates",
            LoopKind::Kept(_) => "loop that accumulates in registers",
            LoopKind::Remainder => "remainder",
            LoopKind::SummedRemainder => "remainder that accumulates",
        }
    }

    pub(super) fn is_remainder(self) -> bool {
        matches!(self, LoopKind::Remainder | LoopKind::SummedRemainder)
    }

    pub(super) fn prefetches(self) -> bool {
        matches!(self, LoopKind::Streamed | LoopKind::Summed | LoopKind::Kept(_))
    }

    pub(super) fn accumulates(self) -> bool {
        matches!(self, LoopKind::Summed | LoopKind::Kept(_) | LoopKind::SummedRemainder)
    }

    /// Which of the vectors of lanes is added to, if these are in registers.
    fn kept(self) -> Option<u8> {
        if let LoopKind::Kept(vector) = self { Some(vector) } else { None }
    }
}

/// How elements of a remainder are moved: the bytes of one, and whether they are loaded.
pub(super) type RemainderMove = (usize, bool);

/// A call of a slow path, written after the function.
pub(super) struct SlowPathCall {
    /// The end of the jump to the call, and where the call returns to.
    pub(super) jump: usize,
    pub(super) back: usize,
    /// The index of the function.
    pub(super) function: usize,
    pub(super) dst: u8,
    pub(super) x: u8,
    /// The step of the kernel.
    pub(super) step: u32,
}
