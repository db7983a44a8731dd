//! What a body reads and writes: elements of slots, constants, the lanes of sums, and places on the stack.
//!
//! Guarantees: whole vectors move as they are; of the elements that are left after them exactly these are read and
//! written, with AVX-512 under a mask, with AVX2 in pieces of falling size by way of the stack (below its pointer, where
//! System V leaves 128 bytes to a function). Of operands that come from memory, the cache lines some KiB ahead are asked for, also
//! behind the last element: a prefetch reads nothing that a program could see, and faults nowhere. Does not: choose registers, or
//! write loops.

use super::alloc::Machine;
use super::asm::{General, Memory, Operands, Place, RSP, Sub, When};
use super::emit::{Body, COUNT, FAR, INDEX, POINTER, POOL, TABLE, TWICE, Writer};
use super::instructions::{self as f, Form, avx2, length, masks, moves};
use super::isa::Isa;
use super::paired_stores::BOTH;
use crate::base::dtype::DType;
use crate::plan::schedule::SlotId;

/// The rest of the elements as a mask, and two bits for each.
const REST: u8 = 1;
const REST_TWICE: u8 = 2;

/// Below the stack pointer: a general register, the elements that are left, and a vector.
const KEPT: i64 = -8;
const ELEMENTS: i64 = -48;
const KEPT_VECTOR: i64 = -80;

const LINE: usize = 64;

/// How many bytes ahead each of so many operands is asked for at most: enough to wait for memory, and little of the first cache.
///
/// Processors find by themselves what a loop reads next, but how soon differs, and the longer a body is, the less of what
/// follows it do they look at. Measured on a Xeon with AMX, 2^24 elements, one thread, milliseconds without and 1, 2 and 3 KiB
/// ahead (EPYCs of the fourth and the fifth generation took as long with it as without, but the fifth 15 % longer for the mean
/// if what is asked for is only 1 KiB ahead):
///
/// | program | without | 1 KiB | 2 KiB | 3 KiB |
/// |---|---|---|---|---|
/// | `(a*b + c)*a - b`, f16 | 12.8 | 5.7 | 5.4 | 5.2 |
/// | the same, bf16 | 9.0 | 5.5 | 5.1 | 5.1 |
/// | the same, f16 rounded once | 6.1 | 5.0 | 4.7 | 4.8 |
/// | ten operations on four operands of f32 | 17.9 | 16.9 | 16.0 | 16.1 |
/// | `mean((a - b)**2)`, f32 | 7.8 | 7.5 | 7.2 | 6.8 |
pub(super) fn ahead(operands: usize) -> usize {
    (12 << 10) / LINE / operands.max(4) * LINE
}

/// A move between memory and vectors.
struct Move {
    memory: Memory,
    /// Bytes of an element, and of all that the vector holds.
    size: usize,
    bytes: usize,
    load: bool,
    /// Past the caches.
    streamed: bool,
}

impl Writer<'_> {
    pub(super) fn pointer(&mut self, slot: SlotId, to: General) {
        self.asm.load(to, Memory::at(TABLE, i64::from(slot) * 8));
    }

    /// A register with the pointer of a slot.
    fn base(&mut self, slot: SlotId) -> General {
        if let Some(r) = self.pointers.get(&slot) {
            return *r;
        }
        self.pointer(slot, POINTER);
        POINTER
    }

    /// So many bytes behind the element of a slot that an index, by its scale, says.
    fn element(&mut self, slot: SlotId, (index, scale): (General, u8), bytes: usize) -> Memory {
        Memory::at(self.base(slot), bytes as i64).indexed(index, scale)
    }

    /// What the moves of the elements that are left need: of AVX-512 masks of `COUNT` of them.
    pub(super) fn rest_masks(&mut self) {
        if self.segment.isa == Isa::Avx2 {
            return;
        }
        self.first_bits(REST, COUNT);
        if self.segment.twice {
            self.asm.lea(TWICE, Memory::at(COUNT, 0).indexed(COUNT, 1));
            self.first_bits(REST_TWICE, TWICE);
        }
    }

    /// A mask with as many of its first bits set as a register says.
    fn first_bits(&mut self, mask: u8, count: General) {
        self.asm.ones(POINTER);
        self.asm.first_bits(POINTER, POINTER, count);
        self.asm.vector(masks::KFROM, 0, &Operands::new(mask, 0, POINTER));
    }

    /// The lanes of a sum that belong to the current elements: with a register added, or (without `dst`) stored.
    pub(super) fn lanes(&mut self, ((slot, dtype), ahead): ((SlotId, DType), u8), dst: Option<u8>, src: u8, how: Body) {
        let (size, isa) = (dtype.size(), self.segment.isa);
        let (at, bytes) = (size / 8, self.segment.lanes * size);
        let memory = self.element(slot, (TWICE, size as u8), usize::from(ahead) * bytes);
        let Some(dst) = dst else {
            return self.moved(&Move { memory, size, bytes, load: false, streamed: false }, src, how);
        };
        let add = [f::ADDPS, f::ADDPD][at];
        let add = if isa == Isa::Avx2 { f::vex(add).unwrap_or(add) } else { add };
        let mut operands = Operands::new(dst, src, memory);
        // Without masks the lanes behind the last element are added up too, but not stored.
        if how.masked() && isa == Isa::Avx512 {
            operands = Operands { mask: REST, zeroing: true, ..operands };
        }
        self.asm.vector(add, length(bytes), &operands);
    }

    /// A load or a store of the lanes of a dtype.
    pub(super) fn transfer(&mut self, (slot, dtype, place): (SlotId, DType, u8), register: u8, how: Body, load: bool) {
        let size = dtype.size();
        let at = if size == 16 { (TWICE, 8) } else { (INDEX, size as u8) };
        let vector = self.segment.lanes * size;
        let (offset, bytes) = if place == BOTH { (0, 2 * vector) } else { (usize::from(place) * vector, vector) };
        if load && how.asks() && self.segment.operands.contains(&slot) && offset.is_multiple_of(LINE) {
            let far = self.element(slot, (FAR, size as u8), offset);
            self.asm.prefetch(far);
        }
        let memory = self.element(slot, at, offset);
        let streamed = !load && how == Body::Streamed && self.is_line(slot, dtype, place);
        self.moved(&Move { memory, size, bytes, load, streamed }, register, how);
    }

    /// Whether a store of a slot is of a result and of whole cache lines.
    fn is_line(&self, slot: SlotId, dtype: DType, place: u8) -> bool {
        let vectors = if place == BOTH { 2 } else { 1 };
        self.segment.results.contains(&slot) && vectors * self.segment.lanes * dtype.size() == self.segment.isa.bytes()
    }

    /// Whether a body would be another one where operands and results are streamed. For operands only those of pairs and of
    /// one segment among others are: so, 2^22 quotients and remainders of i32 take 8 % less, but 2^23 comparisons of f32, which
    /// are one short body, took 6 % longer.
    pub(super) fn streams(&self, body: &[Machine], for_operands: bool) -> bool {
        body.iter().any(|m| match *m {
            Machine::Load { slot, .. } => for_operands && self.segment.operands.contains(&slot),
            Machine::Store { slot, dtype, ahead, .. } => self.is_line(slot, dtype, ahead),
            _ => false,
        })
    }

    fn moved(&mut self, m: &Move, register: u8, how: Body) {
        match self.segment.isa {
            Isa::Avx512 => self.moved_avx512(m, register, how.masked()),
            Isa::Avx2 if how.masked() => self.moved_in_pieces(m, register),
            Isa::Avx2 if m.streamed => self.old(moves::STREAM, m.bytes, register, m.memory),
            Isa::Avx2 => self.moved_bytes(m.bytes, register, m.memory, m.load),
        }
    }

    fn moved_avx512(&mut self, m: &Move, register: u8, rest: bool) {
        let &Move { memory, size, bytes, load, streamed } = m;
        let mut operands = Operands::new(register, 0, memory);
        if bytes < 16 && !rest {
            // Not a whole vector, and nothing behind it may be touched.
            let form = match (bytes, load) {
                (8, true) => moves::LOAD8,
                (8, false) => moves::STORE8,
                (_, true) => moves::LOAD4,
                (_, false) => moves::STORE4,
            };
            return self.asm.vector(form, 0, &operands);
        }
        let by_size = (size.trailing_zeros() as usize).min(3);
        let form = if load {
            [f::MOVB, f::MOVW, f::MOVD, f::MOVQ][by_size]
        } else if streamed {
            moves::STREAM
        } else {
            [moves::STOREB, moves::STOREW, moves::STORED, moves::STOREQ][by_size]
        };
        if rest {
            operands = Operands { mask: if size == 16 { REST_TWICE } else { REST }, zeroing: load, ..operands };
        }
        self.asm.vector(form, length(bytes), &operands);
    }

    /// The instruction of AVX2 that is the same as a form of AVX-512, on a register and memory.
    fn old(&mut self, form: Form, bytes: usize, register: u8, memory: Memory) {
        self.asm.vector(f::vex(form).unwrap_or(form), length(bytes), &Operands::new(register, 0, memory));
    }

    /// A power of two of bytes, from one to a whole vector of AVX2, between a register's lowest and memory.
    fn moved_bytes(&mut self, bytes: usize, register: u8, memory: Memory, load: bool) {
        let lane = Operands { imm: Some(0), ..Operands::new(register, register, memory) };
        match (bytes, load) {
            (1, true) => self.asm.vector(avx2::INSERTB, 0, &lane),
            (1, false) => self.asm.vector(avx2::EXTRACTB, 0, &lane),
            (2, true) => self.asm.vector(avx2::INSERTW, 0, &lane),
            (2, false) => self.asm.vector(avx2::EXTRACTW, 0, &lane),
            (4, true) => self.old(moves::LOAD4, bytes, register, memory),
            (4, false) => self.old(moves::STORE4, bytes, register, memory),
            (8, true) => self.old(moves::LOAD8, bytes, register, memory),
            (8, false) => self.old(moves::STORE8, bytes, register, memory),
            (_, true) => self.asm.vector(avx2::LOAD, length(bytes), &Operands::new(register, 0, memory)),
            (_, false) => self.asm.vector(avx2::STORE, length(bytes), &Operands::new(register, 0, memory)),
        }
    }

    /// The `COUNT` elements that are left: the bytes of each power of two that their number has, the last ones first.
    fn moved_in_pieces(&mut self, m: &Move, register: u8) {
        let below = |at: i64| Memory::at(RSP, at);
        let whole = Isa::Avx2.bytes();
        // What passes by: the result of a load, of a store a register that is put back.
        let through = if m.load { register } else { 0 };
        self.asm.lea(POINTER, m.memory);
        self.asm.store(below(KEPT), INDEX);
        if m.load {
            self.zero(register);
        } else {
            self.moved_bytes(whole, through, below(KEPT_VECTOR), false);
        }
        self.moved_bytes(whole, register, below(ELEMENTS), false);
        self.asm.load(INDEX, COUNT);
        self.asm.shift_left(INDEX, m.size.trailing_zeros() as u8);
        for piece in [1, 2, 4, 8, 16].into_iter().filter(|p| (m.size..m.bytes).contains(p)) {
            self.asm.test_bits(piece as u8);
            let none = self.asm.jump(When::Equal);
            self.asm.alu(Sub, INDEX, piece as i32);
            let (there, here) = (Memory::at(POINTER, 0).indexed(INDEX, 1), below(ELEMENTS).indexed(INDEX, 1));
            let (from, to) = if m.load { (there, here) } else { (here, there) };
            self.moved_bytes(piece, through, from, true);
            self.moved_bytes(piece, through, to, false);
            self.asm.land(none);
        }
        self.asm.load(INDEX, below(KEPT));
        let back = if m.load { ELEMENTS } else { KEPT_VECTOR };
        self.moved_bytes(whole, through, below(back), true);
    }

    fn zero(&mut self, register: u8) {
        let form = match self.segment.isa {
            Isa::Avx512 => f::XOR,
            Isa::Avx2 => f::vex(f::XOR).unwrap_or(f::XOR),
        };
        self.asm.vector(form, 0, &Operands::new(register, register, Place::Register(register)));
    }

    /// The one element of a slot in every lane.
    pub(super) fn splat(&mut self, slot: SlotId, dtype: DType, dst: u8) {
        self.pointer(slot, POINTER);
        let form = match dtype.size() {
            1 => moves::SPLATB,
            2 => moves::SPLATW,
            4 => moves::SPLATD,
            8 => moves::SPLATQ,
            _ => moves::SPLATX,
        };
        self.everywhere(form, dst, Memory::at(POINTER, 0));
    }

    /// An element in every lane.
    fn everywhere(&mut self, form: Form, dst: u8, memory: Memory) {
        match self.segment.isa {
            Isa::Avx512 => self.asm.vector(form, length(64), &Operands::new(dst, 0, memory)),
            Isa::Avx2 => self.old(form, 32, dst, memory),
        }
    }

    pub(super) fn constant(&mut self, index: u32, dst: u8) {
        let c = self.segment.constants[index as usize];
        let place = Memory::at(POOL, self.offsets[index as usize]);
        if c == [0; 8] {
            self.zero(dst);
        } else if c.iter().all(|q| *q == c[0]) {
            self.everywhere(moves::SPLATQ, dst, place);
        } else {
            self.whole_moved(place, dst, true);
        }
    }

    pub(super) fn copy(&mut self, dst: u8, src: u8) {
        let (form, length) = match self.segment.isa {
            Isa::Avx512 => (f::MOVQ, 2),
            Isa::Avx2 => (avx2::COPY, 1),
        };
        self.asm.vector(form, length, &Operands::new(dst, 0, Place::Register(src)));
    }

    /// To or from a place on the stack.
    pub(super) fn placed(&mut self, m: &Machine) {
        let stack = |at: u32| Memory::at(RSP, i64::from(at) * 64);
        match *m {
            Machine::Spill { mask: true, src, at } => {
                self.asm.vector(masks::KSTORE, 0, &Operands::new(src, 0, stack(at)));
            }
            Machine::Fill { mask: true, dst, at } => {
                self.asm.vector(masks::KLOAD, 0, &Operands::new(dst, 0, stack(at)));
            }
            Machine::Spill { src, at, .. } => self.whole_moved(stack(at), src, false),
            Machine::Fill { dst, at, .. } => self.whole_moved(stack(at), dst, true),
            _ => {}
        }
    }

    /// A whole vector to or from memory.
    pub(super) fn whole_moved(&mut self, memory: Memory, register: u8, load: bool) {
        let (from, to, length) = match self.segment.isa {
            Isa::Avx512 => (f::MOVQ, moves::STOREQ, 2),
            Isa::Avx2 => (avx2::LOAD, avx2::STORE, 1),
        };
        self.asm.vector(if load { from } else { to }, length, &Operands::new(register, 0, memory));
    }
}
