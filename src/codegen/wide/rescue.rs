//! Calls of functions from a loop, for the lanes that the loop's own form of a function does not serve.
//!
//! The loop only looks whether there are such lanes. The call stands behind the function's end, and saves every register
//! that the body may use: it is as slow as it is rare. Guarantees: all registers but the result's are as before; the
//! stack is aligned as the callee expects. Does not: know the functions; [`crate::block::vector`] has them.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::Isa;
use super::alloc::Machine;
use super::emit::Writer;
use super::forms as f;
use super::ir::Op;
use crate::block::vector::FUNCTIONS;
use crate::error::Result;

/// A call to be written behind the function's end.
pub(super) struct Rescue {
    /// Where the jump to it ends, and where it returns to.
    jump: usize,
    back: u64,
    function: usize,
    dst: u8,
    x: u8,
}

/// The general registers that the body holds values in and a call may change. [`TARGET`] is free at any time.
const GENERAL: [Register; 8] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
];
const TARGET: Register = Register::R11;

const MOST_VECTORS: u8 = 32;
const MASKS: u8 = 8;

/// Bytes of the frame: the operand and the result, then what is saved.
const OPERAND: i64 = 0;
const RESULT: i64 = 64;
const SAVED_VECTORS: i64 = 128;
const SAVED_MASKS: i64 = SAVED_VECTORS + MOST_VECTORS as i64 * 64;
const SAVED_GENERAL: i64 = SAVED_MASKS + MASKS as i64 * 8;
const ROOM: i64 = SAVED_GENERAL + GENERAL.len() as i64 * 8;

impl Writer<'_> {
    /// The room on the stack that calls take.
    pub(super) fn room(&self) -> i64 {
        let calls = |m: &Machine| matches!(m, Machine::Op { op, .. } if op.form == f::RESCUE);
        if self.segment.allocated.body.iter().any(calls) { ROOM } else { 0 }
    }

    /// Where the room begins, from the stack pointer after `pushed` bytes more were pushed.
    fn place(&self, at: i64, pushed: i64) -> MemoryOperand {
        MemoryOperand::with_base_displ(Register::RSP, i64::from(self.places()) * 64 + at + pushed)
    }

    /// Goes to a call if a lane of the mask is set.
    pub(super) fn rescue(&mut self, op: &Op, dst: u8, x: u8, mask: u8) -> Result<()> {
        let (function, length) = (op.imm, op.length);
        let number = u32::from(mask);
        let (code, mask) = match (self.segment.isa, length) {
            (Isa::Avx512, _) => (Code::VEX_Kortestw_kr_kr, Register::K0 + number),
            (Isa::Avx2, 0) => (Code::VEX_Vptest_xmm_xmmm128, Register::XMM0 + number),
            (Isa::Avx2, _) => (Code::VEX_Vptest_ymm_ymmm256, Register::YMM0 + number),
        };
        self.add(Instruction::with2(code, mask, mask))?;
        let jump = self.jump_ahead(Code::Jne_rel32_64)?;
        let function = usize::from(function.unwrap_or_default());
        self.rescues.push(Rescue { jump, back: self.at, function, dst, x });
        Ok(())
    }

    /// The calls; returns jumps and what they lead to.
    pub(super) fn rescues(&mut self) -> Result<Vec<(usize, usize)>> {
        let rescues = std::mem::take(&mut self.rescues);
        if rescues.is_empty() {
            return Ok(Vec::new());
        }
        let common = self.at;
        self.call()?;
        let mut targets = Vec::with_capacity(rescues.len());
        for Rescue { jump, back, function, dst, x } in rescues {
            targets.push((jump, self.at as usize));
            self.whole_moved(self.place(OPERAND, 0), x, false)?;
            let address = FUNCTIONS[function % FUNCTIONS.len()].2 as usize as u64;
            self.add(Instruction::with2(Code::Mov_r64_imm64, TARGET, address))?;
            self.add(Instruction::with_branch(Code::Call_rel32_64, common))?;
            self.whole_moved(self.place(RESULT, 0), dst, true)?;
            self.add(Instruction::with_branch(Code::Jmp_rel32_64, back))?;
        }
        Ok(targets)
    }

    /// Calls the function at [`TARGET`] with all registers saved.
    fn call(&mut self) -> Result<()> {
        self.save(false)?;
        self.add(Instruction::with2(Code::Lea_r64_m, Register::RDI, self.place(OPERAND, 8)))?;
        self.add(Instruction::with2(Code::Lea_r64_m, Register::RSI, self.place(RESULT, 8)))?;
        self.add(Instruction::with2(Code::Mov_r32_imm32, Register::EDX, self.segment.isa.bytes() as u32))?;
        self.put(&Instruction::with(Code::VEX_Vzeroupper))?;
        // The frame is aligned to vectors; with the return address and as much again, to 16 bytes.
        self.add(Instruction::with2(Code::Sub_rm64_imm8, Register::RSP, 8))?;
        self.add(Instruction::with1(Code::Call_rm64, TARGET))?;
        self.add(Instruction::with2(Code::Add_rm64_imm8, Register::RSP, 8))?;
        self.save(true)?;
        self.put(&Instruction::with(Code::Retnq))
    }

    /// Moves all registers to their places, or back. A return address has been pushed.
    fn save(&mut self, back: bool) -> Result<()> {
        for i in 0..self.segment.isa.vectors() {
            self.whole_moved(self.place(SAVED_VECTORS + i64::from(i) * 64, 8), i, back)?;
        }
        let isa = self.segment.isa;
        let mut moved = |[to, from]: [Code; 2], register: Register, at: i64| {
            let place = self.place(at, 8);
            self.add(match back {
                true => Instruction::with2(from, register, place),
                false => Instruction::with2(to, place, register),
            })
        };
        for i in 0..if isa == Isa::Avx512 { MASKS } else { 0 } {
            let codes = [Code::VEX_Kmovq_m64_kr, Code::VEX_Kmovq_kr_km64];
            moved(codes, Register::K0 + u32::from(i), SAVED_MASKS + i64::from(i) * 8)?;
        }
        for (i, r) in GENERAL.into_iter().enumerate() {
            moved([Code::Mov_rm64_r64, Code::Mov_r64_rm64], r, SAVED_GENERAL + i as i64 * 8)?;
        }
        Ok(())
    }
}
