//! Calls of functions from a loop, for the lanes that the loop's own form of a function does not serve.
//!
//! The loop only looks whether there are such lanes. The call stands behind the function's end, and saves every register
//! that the body may use: it is as slow as it is rare. Guarantees: all registers but the result's are as before; the
//! stack is aligned as the callee expects. Does not: know the functions; [`crate::kernels::vector_call`] has them.

use super::alloc::Machine;
use super::asm::{Add, General, Memory, Operands, Place, R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI, RSP, Sub, When};
use super::emit::{Rescue, Writer};
use super::instructions::{self as f, avx2, masks};
use super::ir::Op;
use super::isa::Isa;
use crate::kernels::vector_call::FUNCTIONS;

/// The general registers that the body holds values in and a call may change. [`TARGET`] is free at any time.
const GENERAL: [General; 8] = [RAX, RCX, RDX, RSI, RDI, R8, R9, R10];
const TARGET: General = R11;

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
    fn place(&self, at: i64, pushed: i64) -> Memory {
        Memory::at(RSP, i64::from(self.places()) * 64 + at + pushed)
    }

    /// Goes to a call if a lane of the mask is set.
    pub(super) fn rescue(&mut self, op: &Op, dst: u8, x: u8, mask: u8) {
        let form = match self.segment.isa {
            Isa::Avx512 => masks::KTEST,
            Isa::Avx2 => avx2::TEST,
        };
        self.asm.vector(form, op.length, &Operands::new(mask, 0, Place::Register(mask)));
        let jump = self.asm.jump(When::NotEqual);
        let function = usize::from(op.imm.unwrap_or_default());
        self.rescues.push(Rescue { jump, back: self.asm.at(), function, dst, x });
    }

    /// The calls.
    pub(super) fn rescues(&mut self) {
        let rescues = std::mem::take(&mut self.rescues);
        if rescues.is_empty() {
            return;
        }
        let common = self.asm.at();
        self.call();
        for Rescue { jump, back, function, dst, x } in rescues {
            self.asm.land(jump);
            self.whole_moved(self.place(OPERAND, 0), x, false);
            let address = FUNCTIONS[function % FUNCTIONS.len()].2 as usize as u64;
            self.asm.number(TARGET, address);
            self.asm.call_to(common);
            self.whole_moved(self.place(RESULT, 0), dst, true);
            self.asm.jump_to(When::Always, back);
        }
    }

    /// Calls the function at [`TARGET`] with all registers saved.
    fn call(&mut self) {
        self.save(false);
        self.asm.lea(RDI, self.place(OPERAND, 8));
        self.asm.lea(RSI, self.place(RESULT, 8));
        self.asm.number(RDX, self.segment.isa.bytes() as u64);
        self.asm.zero_upper();
        // The frame is aligned to vectors; with the return address and as much again, to 16 bytes.
        self.asm.alu(Sub, RSP, 8);
        self.asm.call(TARGET);
        self.asm.alu(Add, RSP, 8);
        self.save(true);
        self.asm.ret();
    }

    /// Moves all registers to their places, or back. A return address has been pushed.
    fn save(&mut self, back: bool) {
        for i in 0..self.segment.isa.vectors() {
            self.whole_moved(self.place(SAVED_VECTORS + i64::from(i) * 64, 8), i, back);
        }
        for i in 0..if self.segment.isa == Isa::Avx512 { MASKS } else { 0 } {
            let form = if back { masks::KLOAD } else { masks::KSTORE };
            let place = self.place(SAVED_MASKS + i64::from(i) * 8, 8);
            self.asm.vector(form, 0, &Operands::new(i, 0, place));
        }
        for (i, r) in GENERAL.into_iter().enumerate() {
            let place = self.place(SAVED_GENERAL + i as i64 * 8, 8);
            if back { self.asm.load(r, place) } else { self.asm.store(place, r) }
        }
    }
}
