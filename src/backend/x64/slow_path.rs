//! Calls of functions from a loop, for arguments outside the range of the inlined form of a function.
//!
//! The loop only tests whether there are such lanes. The calls are written after the function and save every register that the
//! body may use: they are slow, but rare. Guarantees: all registers but the result's are preserved; the stack is aligned as the
//! callee expects. Does not: define the functions; [`crate::kernels::vector_call`] does.

use super::alloc::Machine;
use super::asm::{
    Add, Address, Condition, General, Operands, R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI, RSP, RegMem, Sub,
};
use super::emit::{SlowPathCall, Writer};
use super::instructions::{self as ins, avx2, masks};
use super::ir::Inst;
use super::isa::Isa;
use crate::backend::listing::Purpose;
use crate::kernels::vector_call::FUNCTIONS;

/// The general-purpose registers that hold values of the loop and that a call may change. [`TARGET`] is scratch.
const GENERAL: [General; 8] = [RAX, RCX, RDX, RSI, RDI, R8, R9, R10];
const TARGET: General = R11;

const MOST_VECTORS: u8 = 32;
const MASKS: u8 = 8;

/// Offsets in the frame: the operand, the result, the saved registers.
const OPERAND: i64 = 0;
const RESULT: i64 = 64;
const SAVED_VECTORS: i64 = 128;
const SAVED_MASKS: i64 = SAVED_VECTORS + MOST_VECTORS as i64 * 64;
const SAVED_GENERAL: i64 = SAVED_MASKS + MASKS as i64 * 8;
const FRAME: i64 = SAVED_GENERAL + GENERAL.len() as i64 * 8;

impl Writer<'_> {
    /// Bytes of the stack that slow paths use.
    pub(super) fn slow_path_frame(&self) -> i64 {
        let calls = |m: &Machine| matches!(m, Machine::Inst { inst, .. } if inst.instruction == ins::SLOW_PATH);
        if self.segment.allocated.body.iter().any(calls) { FRAME } else { 0 }
    }

    /// An address in the frame, after `pushed` more bytes were pushed.
    fn in_frame(&self, at: i64, pushed: i64) -> Address {
        Address::at(RSP, i64::from(self.stack_slots()) * 64 + at + pushed)
    }

    /// Jumps to the slow path if a lane of the mask is set.
    pub(super) fn check_slow_path(&mut self, inst: &Inst, dst: u8, x: u8, mask: u8) {
        let test = match self.segment.isa {
            Isa::Avx512 => masks::KORTESTW,
            Isa::Avx2 => avx2::VPTEST,
        };
        self.asm.vector(test, inst.length, &Operands::new(mask, 0, RegMem::Register(mask)));
        let jump = self.asm.jump(Condition::NotEqual);
        let function = usize::from(inst.imm.unwrap_or_default());
        self.slow_paths.push(SlowPathCall { jump, back: self.asm.at(), function, dst, x, step: inst.step });
    }

    /// Writes the calls.
    pub(super) fn slow_path_calls(&mut self) {
        let calls = std::mem::take(&mut self.slow_paths);
        if calls.is_empty() {
            return;
        }
        self.mark(Purpose::Frame("slow paths: save registers and call"));
        let common = self.asm.at();
        self.call();
        for SlowPathCall { jump, back, function, dst, x, step } in calls {
            self.mark(Purpose::Step(step));
            self.asm.land(jump);
            self.whole_moved(self.in_frame(OPERAND, 0), x, false);
            let address = FUNCTIONS[function % FUNCTIONS.len()].2 as usize as u64;
            self.asm.number(TARGET, address);
            self.asm.call_to(common);
            self.whole_moved(self.in_frame(RESULT, 0), dst, true);
            self.asm.jump_to(Condition::Always, back);
        }
    }

    /// A subroutine that calls the function at [`TARGET`] and preserves all registers.
    fn call(&mut self) {
        self.save(false);
        self.asm.lea(RDI, self.in_frame(OPERAND, 8));
        self.asm.lea(RSI, self.in_frame(RESULT, 8));
        self.asm.number(RDX, self.segment.isa.bytes() as u64);
        self.asm.zero_upper();
        // The frame is aligned; 8 bytes beside the return address keep the stack aligned to 16.
        self.asm.alu(Sub, RSP, 8);
        self.asm.call(TARGET);
        self.asm.alu(Add, RSP, 8);
        self.save(true);
        self.asm.ret();
    }

    /// Saves all registers to the frame, or restores them. A return address has been pushed.
    fn save(&mut self, restore: bool) {
        for i in 0..self.segment.isa.vectors() {
            self.whole_moved(self.in_frame(SAVED_VECTORS + i64::from(i) * 64, 8), i, restore);
        }
        for i in 0..if self.segment.isa == Isa::Avx512 { MASKS } else { 0 } {
            let instruction = if restore { masks::KMOVQ_LOAD } else { masks::KMOVQ_STORE };
            let address = self.in_frame(SAVED_MASKS + i64::from(i) * 8, 8);
            self.asm.vector(instruction, 0, &Operands::new(i, 0, address));
        }
        for (i, r) in GENERAL.into_iter().enumerate() {
            let address = self.in_frame(SAVED_GENERAL + i as i64 * 8, 8);
            if restore { self.asm.load(r, address) } else { self.asm.store(address, r) }
        }
    }
}
