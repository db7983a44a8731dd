//! Machine code of a segment: the loop over pairs of vectors if there is one, the loop over whole vectors, and its body once
//! more for the elements that are left.
//!
//! The function of a plain schedule walks rows: what the table has behind its pointers says how. Guarantees: any number of
//! elements from 1 up, with the bit [`STREAM`] or without: with it there is a second loop, whose stores of results go past
//! the caches (a fence is the caller's), and with the bit [`ADD`] a third, which adds up values in lanes; registers that the caller of a System V
//! function expects back are given back; every page of a large stack frame is touched in order. Slots that are written must
//! not overlap slots that are read. Does not: choose instructions or registers of the body.

use std::collections::HashMap;

use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, OpKind, Register, RoundingControl};

use super::Isa;
use super::alloc::{Allocated, Machine};
use super::forms as f;
use super::ir::Constant;
use super::rescue::Rescue;
use crate::block::driver::{ADD, STREAM, row_words};
use crate::block::fold::LANES;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::schedule::SlotId;

/// The table of pointers (first argument), the number of elements (second), the index of the current element.
pub(super) const TABLE: Register = Register::RDI;
pub(super) const COUNT: Register = Register::RSI;
pub(super) const INDEX: Register = Register::RAX;
/// A pointer that has no register of its own.
pub(super) const POINTER: Register = Register::R11;
/// The constants.
pub(super) const POOL: Register = Register::R10;
/// Twice the index: elements of 16 bytes have no scale. Or the lane of the current element, where values are added up.
pub(super) const TWICE: Register = Register::R9;
/// What else holds pointers; the caller expects the latter back.
const UNSAVED: [Register; 3] = [Register::RCX, Register::RDX, Register::R8];
const SAVED: [Register; 5] = [Register::RBX, Register::R12, Register::R13, Register::R14, Register::R15];

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
    pub(super) constants: &'a [Constant],
    /// Whether a slot has elements of 16 bytes.
    pub(super) twice: bool,
    /// Slots of results.
    pub(super) results: &'a [SlotId],
    /// Slots of what can be added up.
    pub(super) sums: &'a [(SlotId, DType)],
    /// Slots that move from row to row, and how many slots there are, if the function walks rows.
    pub(super) rows: Option<&'a (Vec<SlotId>, usize)>,
}

pub(super) struct Writer<'a> {
    encoder: Encoder,
    pub(super) at: u64,
    pub(super) segment: &'a Segment<'a>,
    pub(super) pointers: HashMap<SlotId, Register>,
    /// Where each constant lies in the pool.
    pub(super) offsets: Vec<i64>,
    /// Instructions whose last four bytes say how far the pool is.
    pool_uses: Vec<u64>,
    /// Where functions are called that most iterations do without.
    pub(super) rescues: Vec<Rescue>,
}

/// Encodes a segment.
pub(super) fn function(segment: &Segment<'_>) -> Result<Function> {
    let mut w = Writer {
        encoder: Encoder::new(64),
        at: 0,
        segment,
        pointers: HashMap::new(),
        offsets: Vec::new(),
        pool_uses: Vec::new(),
        rescues: Vec::new(),
    };
    let pool = w.pool();
    w.whole()?;
    let uses = std::mem::take(&mut w.pool_uses);
    let mut bytes = w.encoder.take_buffer();
    let code = bytes.len();
    // Vectors of constants lie in one cache line each, as functions begin at one.
    bytes.resize(code.next_multiple_of(64), 0xcc);
    for end in uses {
        patch(&mut bytes, end as usize, code.next_multiple_of(64));
    }
    bytes.extend(pool);
    Ok(Function { bytes, code })
}

/// Makes the four bytes before `end` the distance from there to `target`.
fn patch(bytes: &mut [u8], end: usize, target: usize) {
    let distance = (target as i64 - end as i64) as i32;
    bytes[end - 4..end].copy_from_slice(&distance.to_le_bytes());
}

pub(super) fn wrong(e: impl std::fmt::Display) -> Error {
    Error::Internal(format!("code generation: {e}"))
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

    pub(super) fn put(&mut self, instruction: &Instruction) -> Result<()> {
        self.at += self.encoder.encode(instruction, self.at).map_err(wrong)? as u64;
        Ok(())
    }

    pub(super) fn add(&mut self, instruction: std::result::Result<Instruction, IcedError>) -> Result<()> {
        self.put(&instruction.map_err(wrong)?)
    }

    /// A jump whose target is given later; returns where it ends.
    pub(super) fn jump_ahead(&mut self, code: Code) -> Result<usize> {
        let jump = Instruction::with_branch(code, self.at + 0x1000_0000).map_err(wrong)?;
        self.put(&jump)?;
        Ok(self.at as usize)
    }

    /// The target of a jump: here.
    pub(super) fn land(&mut self, jump: usize) {
        let mut bytes = self.encoder.take_buffer();
        patch(&mut bytes, jump, self.at as usize);
        self.encoder.set_buffer(bytes);
    }

    fn whole(&mut self) -> Result<()> {
        let segment = self.segment;
        let saved = self.assign_pointers();
        let frame = i64::from(self.places()) * 64 + self.room();
        let framed = frame > 0;
        if framed {
            self.add(Instruction::with1(Code::Push_r64, Register::RBP))?;
            self.add(Instruction::with2(Code::Mov_r64_rm64, Register::RBP, Register::RSP))?;
        }
        for r in &saved {
            self.add(Instruction::with1(Code::Push_r64, *r))?;
        }
        if framed {
            self.frame(frame)?;
        }
        if !segment.constants.is_empty() {
            // The distance is known at the end.
            let far = MemoryOperand::with_base_displ(Register::RIP, self.at as i64 + 0x1000_0000);
            self.add(Instruction::with2(Code::Lea_r64_m, POOL, far))?;
            self.pool_uses.push(self.at);
        }
        let row = self.at;
        let mut slots: Vec<(SlotId, Register)> = self.pointers.iter().map(|(s, r)| (*s, *r)).collect();
        slots.sort_unstable();
        for (slot, r) in slots {
            self.pointer(slot, r)?;
        }
        self.add(Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX))?;
        if segment.paired.is_none() {
            self.hoisted(segment.allocated)?;
        }
        let summed = if self.adds_up() { Some(self.sum()?) } else { None };
        if !segment.sums.is_empty() && summed.is_none() {
            // Another segment of the schedule adds up.
            self.add(Instruction::with2(Code::Btr_rm64_imm8, COUNT, ADD.trailing_zeros()))?;
        }
        self.add(Instruction::with2(Code::Btr_rm64_imm8, COUNT, STREAM.trailing_zeros()))?;
        let all_done = segment.paired.map(|pair| self.pairs(pair, Body::Cached)).transpose()?;
        let mut to_rest = Vec::new();
        let mut cached = None;
        if segment.paired.is_none() && self.streams() {
            cached = Some(self.jump_ahead(Code::Jae_rel32_64)?);
            to_rest.push(self.main_loop(Body::Streamed)?);
            to_rest.push(self.jump_ahead(Code::Jmp_rel32_64)?);
        }
        let plain = self.at as usize;
        to_rest.push(self.main_loop(Body::Cached)?);
        let rest = self.at as usize;
        let done = self.rest(Body::Rest)?;
        let end = self.at as usize;
        if let Some(jump) = all_done {
            self.land(jump);
        }
        let last = self.next_row(row)?;
        self.put(&Instruction::with(Code::VEX_Vzeroupper))?;
        if framed {
            let below = saved.len() as i64 * 8;
            self.add(Instruction::with2(
                Code::Lea_r64_m,
                Register::RSP,
                MemoryOperand::with_base_displ(Register::RBP, -below),
            ))?;
        }
        for r in saved.iter().rev() {
            self.add(Instruction::with1(Code::Pop_r64, *r))?;
        }
        if framed {
            self.add(Instruction::with1(Code::Pop_r64, Register::RBP))?;
        }
        self.put(&Instruction::with(Code::Retnq))?;
        let calls = self.rescues()?;
        let mut bytes = self.encoder.take_buffer();
        to_rest.into_iter().for_each(|jump| patch(&mut bytes, jump, rest));
        cached.into_iter().for_each(|jump| patch(&mut bytes, jump, plain));
        calls.into_iter().for_each(|(jump, target)| patch(&mut bytes, jump, target));
        patch(&mut bytes, done, end);
        last.into_iter().for_each(|(jump, target)| patch(&mut bytes, jump, target));
        summed.into_iter().flatten().for_each(|jump| patch(&mut bytes, jump, end));
        self.encoder.set_buffer(bytes);
        Ok(())
    }

    /// The loop over whole vectors; returns the jump over it, which is taken if there is none.
    fn main_loop(&mut self, how: Body) -> Result<usize> {
        let lanes = self.segment.lanes as i32;
        self.add(Instruction::with2(Code::Sub_rm64_imm32, COUNT, lanes))?;
        self.add(Instruction::with2(Code::Cmp_r64_rm64, INDEX, COUNT))?;
        let skip = self.jump_ahead(Code::Jg_rel32_64)?;
        self.repeated(self.segment.allocated, lanes, how)?;
        Ok(skip)
    }

    /// Places on the stack that a body uses.
    pub(super) fn places(&self) -> u32 {
        self.segment.allocated.places.max(self.segment.paired.map_or(0, |p| p.places))
    }

    /// What is loaded once, before a loop.
    fn hoisted(&mut self, allocated: &Allocated) -> Result<()> {
        allocated.hoisted.iter().try_for_each(|m| self.machine(m, Body::Cached))
    }

    /// The loops over pairs of vectors, and what those over single ones expect; returns the jump that is taken if no
    /// element is left. Where nothing is added up, the carry flag says whether to stream.
    fn pairs(&mut self, pair: &Allocated, how: Body) -> Result<usize> {
        let (both, streams) = (2 * self.segment.lanes as i32, !how.adds() && self.streams());
        if streams {
            self.add(Instruction::with1(Code::Setb_rm8, Register::R11L))?;
        }
        self.add(Instruction::with2(Code::Sub_rm64_imm32, COUNT, both))?;
        let too_few = self.jump_ahead(Code::Jl_rel32_64)?;
        if streams {
            // Loads between here and the jump change no flags, but may use the register.
            self.add(Instruction::with2(Code::Test_rm8_r8, Register::R11L, Register::R11L))?;
        }
        self.hoisted(pair)?;
        let mut ends = vec![too_few];
        if streams {
            let cached = self.jump_ahead(Code::Je_rel32_64)?;
            self.repeated(pair, both, Body::Streamed)?;
            ends.push(self.jump_ahead(Code::Jmp_rel32_64)?);
            self.land(cached);
        }
        self.repeated(pair, both, how)?;
        ends.into_iter().for_each(|jump| self.land(jump));
        self.add(Instruction::with2(Code::Add_rm64_imm32, COUNT, both))?;
        self.add(Instruction::with2(Code::Cmp_r64_rm64, INDEX, COUNT))?;
        let done = self.jump_ahead(Code::Je_rel32_64)?;
        self.hoisted(self.segment.allocated)?;
        Ok(done)
    }

    /// A body again and again, so many elements at once, while as many are left; `COUNT` is less by these.
    fn repeated(&mut self, allocated: &Allocated, elements: i32, how: Body) -> Result<()> {
        let head = self.at;
        self.body(allocated, how)?;
        self.add(Instruction::with2(Code::Add_rm64_imm32, INDEX, elements))?;
        self.add(Instruction::with2(Code::Cmp_r64_rm64, INDEX, COUNT))?;
        self.add(Instruction::with_branch(Code::Jbe_rel32_64, head))
    }

    /// Goes to the next row if there is one; returns the jump past that, and where it leads.
    fn next_row(&mut self, row: u64) -> Result<Option<(usize, usize)>> {
        let Some((moving, slots)) = self.segment.rows else { return Ok(None) };
        let word = |i: usize| MemoryOperand::with_base_displ(TABLE, i as i64 * 8);
        let [count, rows] = row_words(*slots).map(word);
        self.add(Instruction::with2(Code::Cmp_rm64_imm8, rows, 2))?;
        let last = self.jump_ahead(Code::Jb_rel32_64)?;
        self.add(Instruction::with2(Code::Sub_rm64_imm8, rows, 1))?;
        for slot in moving {
            let slot = *slot as usize;
            self.add(Instruction::with2(Code::Mov_r64_rm64, POINTER, word(slots + slot)))?;
            self.add(Instruction::with2(Code::Add_rm64_r64, word(slot), POINTER))?;
        }
        self.add(Instruction::with2(Code::Mov_r64_rm64, COUNT, count))?;
        self.add(Instruction::with_branch(Code::Jmp_rel32_64, row))?;
        Ok(Some((last, self.at as usize)))
    }

    /// The elements that are left; returns the jump over them, which is taken if there is none.
    fn rest(&mut self, how: Body) -> Result<usize> {
        self.add(Instruction::with2(Code::Add_rm64_imm32, COUNT, self.segment.lanes as i32))?;
        self.add(Instruction::with2(Code::Sub_r64_rm64, COUNT, INDEX))?;
        let done = self.jump_ahead(Code::Je_rel32_64)?;
        self.rest_masks()?;
        self.body(self.segment.allocated, how)?;
        Ok(done)
    }

    /// The loops that add up, and their rest; returns the jumps to the end.
    fn sum(&mut self) -> Result<Vec<usize>> {
        self.add(Instruction::with2(Code::Btr_rm64_imm8, COUNT, ADD.trailing_zeros()))?;
        let other = self.jump_ahead(Code::Jae_rel32_64)?;
        self.add(Instruction::with2(Code::Btr_rm64_imm8, COUNT, STREAM.trailing_zeros()))?;
        let mut ends = Vec::new();
        if let Some(pair) = self.segment.paired {
            ends.push(self.pairs(pair, Body::Added)?);
        }
        let skip = self.main_loop(Body::Added)?;
        let rest = self.at as usize;
        ends.push(self.rest(Body::AddedRest)?);
        ends.push(self.jump_ahead(Code::Jmp_rel32_64)?);
        self.land(other);
        let mut bytes = self.encoder.take_buffer();
        patch(&mut bytes, skip, rest);
        self.encoder.set_buffer(bytes);
        Ok(ends)
    }

    /// Whether something can be added up.
    fn adds_up(&self) -> bool {
        self.segment.allocated.body.iter().any(|m| matches!(m, Machine::Store { sum: Some(_), .. }))
    }

    /// Whether there are results, all of them in whole cache lines: of parts of a line, the second may come too late to
    /// be written with the first.
    fn streams(&self) -> bool {
        let mut any = false;
        let whole = |m: &Machine| match m {
            Machine::Store { slot, dtype, .. } if self.segment.results.contains(slot) => {
                any = true;
                self.segment.lanes * dtype.size() == self.segment.isa.bytes()
            }
            _ => true,
        };
        self.segment.allocated.body.iter().all(whole) && any
    }

    /// Room on the stack, aligned to vectors.
    fn frame(&mut self, mut bytes: i64) -> Result<()> {
        // In steps of less than a page, so that an overflow meets the guard page.
        let step = 2048;
        while bytes > step {
            self.add(Instruction::with2(Code::Sub_rm64_imm32, Register::RSP, step as i32))?;
            let here = MemoryOperand::with_base(Register::RSP);
            self.add(Instruction::with2(Code::Test_rm64_r64, here, Register::RSP))?;
            bytes -= step;
        }
        self.add(Instruction::with2(Code::Sub_rm64_imm32, Register::RSP, bytes as i32))?;
        self.add(Instruction::with2(Code::And_rm64_imm8, Register::RSP, -64))
    }

    /// Registers for the pointers of slots, as far as they last; returns those that must be saved.
    fn assign_pointers(&mut self) -> Vec<Register> {
        let mut free = UNSAVED.iter().chain(&SAVED);
        for m in &self.segment.allocated.body {
            if let Machine::Load { slot, .. } | Machine::Store { slot, .. } = m
                && !self.pointers.contains_key(slot)
                && let Some(r) = free.next()
            {
                self.pointers.insert(*slot, *r);
            }
        }
        SAVED.into_iter().filter(|r| self.pointers.values().any(|used| used == r)).collect()
    }

    fn body(&mut self, allocated: &Allocated, how: Body) -> Result<()> {
        if self.segment.twice {
            self.add(Instruction::with2(Code::Lea_r64_m, TWICE, MemoryOperand::with_base_index(INDEX, INDEX)))?;
        } else if how.adds() {
            self.add(Instruction::with2(Code::Mov_r64_rm64, TWICE, INDEX))?;
            self.add(Instruction::with2(Code::And_rm64_imm8, TWICE, LANES as i32 - 1))?;
        }
        allocated.body.iter().try_for_each(|m| self.machine(m, how))
    }

    fn machine(&mut self, m: &Machine, how: Body) -> Result<()> {
        match *m {
            Machine::Op { op, dst, src, mask, .. } if op.form == f::RESCUE => self.rescue(&op, dst, src[0], mask),
            Machine::Op { op, .. } if op.form == f::ADDED && !how.adds() => Ok(()),
            Machine::Op { op, dst, src, .. } if op.form == f::ADDED => {
                self.lanes((self.segment.sums[op.sum as usize], op.ahead), Some(dst), src[0], how)
            }
            Machine::Op { op, dst, src, mask, constant } => {
                let mut i = Instruction::default();
                i.set_code(op.form.code_at(op.length));
                i.set_op0_register(op.form.dst.register(op.length, dst));
                i.set_op1_register(op.form.src.register(op.length, src[0]));
                let binary = op.src[1] != super::ir::NONE;
                if let Some(index) = constant {
                    i.set_op2_kind(OpKind::Memory);
                    i.set_memory_base(POOL);
                    i.set_memory_displacement64(self.offsets[index as usize] as u64);
                    i.set_memory_displ_size(1);
                } else if binary {
                    i.set_op2_register(op.form.src.register(op.length, src[1]));
                }
                if let Some(imm) = op.imm {
                    if binary {
                        i.set_op3_kind(OpKind::Immediate8)
                    } else {
                        i.set_op2_kind(OpKind::Immediate8)
                    }
                    i.set_immediate8(imm);
                }
                match self.segment.isa {
                    _ if op.mask == super::ir::NONE => {}
                    Isa::Avx512 => i.set_op_mask(Register::K0 + u32::from(mask)),
                    Isa::Avx2 => i.set_op3_register(op.form.src.register(op.length, mask)),
                }
                i.set_zeroing_masking(op.zeroing);
                if op.truncate {
                    i.set_rounding_control(RoundingControl::RoundTowardZero);
                }
                self.put(&i)
            }
            Machine::Copy { dst, src } => self.copy(dst, src),
            Machine::Load { slot, dtype, dst, ahead } => self.transfer((slot, dtype, ahead), dst, how, true),
            Machine::Store { slot, dtype, sum: Some(sum), ahead, .. } if how.adds() => {
                self.lanes(((slot, dtype), ahead), None, sum, how)
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
    /// Whole vectors; results go past the caches.
    Streamed,
    /// Whole vectors; sums are added up.
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

    pub(super) fn adds(self) -> bool {
        matches!(self, Body::Added | Body::AddedRest)
    }
}
