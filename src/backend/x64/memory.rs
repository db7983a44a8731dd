//! Memory accesses of a body: elements of slots, constants, lanes of partial sums, stack slots.
//!
//! Guarantees: whole vectors are read and written as they are; of the remainder exactly its elements are read and written: with
//! AVX-512 under a mask, with AVX2 by `remainder_moves`. Operands from memory are prefetched some KiB ahead, also beyond their last
//! element: a prefetch has no visible effect and does not fault. Does not: allocate registers or write loops.

use super::alloc::Machine;
use super::asm::{Address, General, Operands, RSP, RegMem};
use super::emit::{COUNT, INDEX, LANE_INDEX, LoopKind, POINTER, POOL, PREFETCH_INDEX, TABLE, Writer};
use super::instructions::{self as ins, Instruction, avx2, length, masks, moves};
use super::ir::BOTH;
use super::isa::Isa;
use crate::base::dtype::DType;
use crate::base::host::CACHE_LINE;
use crate::plan::schedule::SlotId;

/// Mask registers of the remainder: one bit for each element, and two bits.
const REMAINDER: u8 = 1;
const REMAINDER_TWICE: u8 = 2;

/// A transfer between memory and a vector register.
struct Transfer {
    address: Address,
    /// Bytes of an element, and of the vector.
    size: usize,
    bytes: usize,
    load: bool,
    non_temporal: bool,
}

impl Writer<'_> {
    /// Loads the pointer of a slot.
    pub(super) fn pointer(&mut self, slot: SlotId, to: General) {
        self.asm.load(to, Address::at(TABLE, i64::from(slot) * 8));
    }

    /// A register that holds the pointer of a slot.
    pub(super) fn base(&mut self, slot: SlotId) -> General {
        if let Some(r) = self.pointers.get(&slot) {
            return *r;
        }
        self.pointer(slot, POINTER);
        POINTER
    }

    /// The address `bytes` after the element of a slot at a scaled index.
    fn element(&mut self, slot: SlotId, (index, scale): (General, u8), bytes: usize) -> Address {
        Address::at(self.base(slot), bytes as i64).indexed(index, scale)
    }

    /// AVX-512: the masks of the remainder, which has `COUNT` elements.
    pub(super) fn remainder_masks(&mut self) {
        if self.segment.isa == Isa::Avx2 {
            return;
        }
        self.first_bits(REMAINDER, COUNT);
        if self.segment.has_16_byte_elements {
            self.asm.lea(LANE_INDEX, Address::at(COUNT, 0).indexed(COUNT, 1));
            self.first_bits(REMAINDER_TWICE, LANE_INDEX);
        }
    }

    /// A mask of the first `count` bits.
    fn first_bits(&mut self, mask: u8, count: General) {
        self.asm.ones(POINTER);
        self.asm.first_bits(POINTER, POINTER, count);
        self.asm.vector(masks::KMOVQ_GENERAL, 0, &Operands::new(mask, 0, POINTER));
    }

    /// The lanes of a partial sum that the current elements belong to: `dst` becomes their sum with `src`, or (without `dst`)
    /// `src` is stored to them.
    pub(super) fn partial_sum(
        &mut self,
        ((slot, dtype), vector): ((SlotId, DType), u8),
        dst: Option<u8>,
        src: u8,
        kind: LoopKind,
    ) {
        let (size, isa) = (dtype.size(), self.segment.isa);
        let bytes = self.segment.lanes * size;
        let address = self.element(slot, (LANE_INDEX, size as u8), usize::from(vector) * bytes);
        let Some(dst) = dst else {
            return self.transferred(&Transfer { address, size, bytes, load: false, non_temporal: false }, src, kind);
        };
        let mut operands = Operands::new(dst, src, address);
        // AVX2 has no masks: the lanes after the last element are added as well, but not stored.
        if kind.is_remainder() && isa == Isa::Avx512 {
            operands = Operands { mask: REMAINDER, zeroing: true, ..operands };
        }
        self.asm.vector([ins::VADDPS, ins::VADDPD][size / 8].on(isa), length(bytes), &operands);
    }

    /// A load from a slot or a store to it, of the vector of the iteration that `vector` says.
    pub(super) fn transfer(
        &mut self,
        (slot, dtype, vector): (SlotId, DType, u8),
        register: u8,
        kind: LoopKind,
        load: bool,
    ) {
        let size = dtype.size();
        let index = if size == 16 { (LANE_INDEX, 8) } else { (INDEX, size as u8) };
        let one = self.segment.lanes * size;
        let (offset, bytes) = if vector == BOTH { (0, 2 * one) } else { (usize::from(vector) * one, one) };
        if load && kind.prefetches() && self.segment.operands.contains(&slot) && offset.is_multiple_of(CACHE_LINE) {
            let ahead = self.element(slot, (PREFETCH_INDEX, size as u8), offset);
            self.asm.prefetch(ahead, self.segment.ahead.into);
        }
        let address = self.element(slot, index, offset);
        let non_temporal = !load && kind == LoopKind::Streamed && self.fills_lines(slot, dtype, vector);
        self.transferred(&Transfer { address, size, bytes, load, non_temporal }, register, kind);
    }

    /// Whether a store to a slot is to a result, and of whole cache lines.
    fn fills_lines(&self, slot: SlotId, dtype: DType, vector: u8) -> bool {
        let vectors = if vector == BOTH { 2 } else { 1 };
        self.segment.results.contains(&slot) && vectors * self.segment.lanes * dtype.size() == self.segment.isa.bytes()
    }

    /// Whether a streaming loop of a body differs from the plain one. `for_operands`: also if only operands would be prefetched,
    /// as is the case for pairs and for one segment among other stages. (2^22 quotients and remainders of i32 take 8 % less
    /// time, but 2^23 comparisons of f32, a single short body, took 6 % longer.)
    pub(super) fn streams(&self, body: &[Machine], for_operands: bool) -> bool {
        body.iter().any(|m| match m {
            Machine::Load { slot, .. } => for_operands && self.segment.operands.contains(slot),
            Machine::Store { store, .. } => self.fills_lines(store.slot, store.dtype, store.vector),
            _ => false,
        })
    }

    fn transferred(&mut self, t: &Transfer, register: u8, kind: LoopKind) {
        match self.segment.isa {
            Isa::Avx512 => self.transferred_avx512(t, register, kind.is_remainder()),
            Isa::Avx2 if kind.is_remainder() => self.elements_moved((t.size, t.load), register, t.address),
            Isa::Avx2 if t.non_temporal => self.vector_avx2(moves::VMOVNTDQ, t.bytes, register, t.address),
            Isa::Avx2 => self.bytes_moved(t.bytes, register, t.address, t.load),
        }
    }

    fn transferred_avx512(&mut self, t: &Transfer, register: u8, remainder: bool) {
        let &Transfer { address, size, bytes, load, non_temporal } = t;
        let mut operands = Operands::new(register, 0, address);
        if bytes < 16 && !remainder {
            // Less than the smallest vector: a move of exactly these bytes.
            let instruction = match (bytes, load) {
                (8, true) => moves::VMOVQ_LOAD,
                (8, false) => moves::VMOVQ_STORE,
                (_, true) => moves::VMOVD_LOAD,
                (_, false) => moves::VMOVD_STORE,
            };
            return self.asm.vector(instruction, 0, &operands);
        }
        let by_size = (size.trailing_zeros() as usize).min(3);
        let instruction = if load {
            [ins::VMOVDQU8, ins::VMOVDQU16, ins::VMOVDQU32, ins::VMOVDQU64][by_size]
        } else if non_temporal {
            moves::VMOVNTDQ
        } else {
            [moves::VMOVDQU8_STORE, moves::VMOVDQU16_STORE, moves::VMOVDQU32_STORE, moves::VMOVDQU64_STORE][by_size]
        };
        if remainder {
            let mask = if size == 16 { REMAINDER_TWICE } else { REMAINDER };
            operands = Operands { mask, zeroing: load, ..operands };
        }
        self.asm.vector(instruction, length(bytes), &operands);
    }

    /// An instruction of the AVX-512 table in AVX2's encoding, on a register and memory.
    fn vector_avx2(&mut self, instruction: Instruction, bytes: usize, register: u8, address: Address) {
        self.asm.vector(instruction.on(Isa::Avx2), length(bytes), &Operands::new(register, 0, address));
    }

    /// AVX2: moves the lowest 1, 2, 4, 8, 16 or 32 bytes of a register from or to memory.
    pub(super) fn bytes_moved(&mut self, bytes: usize, register: u8, address: Address, load: bool) {
        let lane = Operands { imm: Some(0), ..Operands::new(register, register, address) };
        match (bytes, load) {
            (1, true) => self.asm.vector(avx2::VPINSRB, 0, &lane),
            (1, false) => self.asm.vector(avx2::VPEXTRB, 0, &lane),
            (2, true) => self.asm.vector(avx2::VPINSRW, 0, &lane),
            (2, false) => self.asm.vector(avx2::VPEXTRW, 0, &lane),
            (4, true) => self.vector_avx2(moves::VMOVD_LOAD, bytes, register, address),
            (4, false) => self.vector_avx2(moves::VMOVD_STORE, bytes, register, address),
            (8, true) => self.vector_avx2(moves::VMOVQ_LOAD, bytes, register, address),
            (8, false) => self.vector_avx2(moves::VMOVQ_STORE, bytes, register, address),
            (_, true) => self.asm.vector(avx2::VMOVDQU, length(bytes), &Operands::new(register, 0, address)),
            (_, false) => self.asm.vector(avx2::VMOVDQU_STORE, length(bytes), &Operands::new(register, 0, address)),
        }
    }

    pub(super) fn zero(&mut self, register: u8) {
        let xor = ins::VPXORD.on(self.segment.isa);
        self.asm.vector(xor, 0, &Operands::new(register, register, RegMem::Register(register)));
    }

    /// The one element of a slot in every lane.
    pub(super) fn splat(&mut self, slot: SlotId, dtype: DType, dst: u8) {
        self.pointer(slot, POINTER);
        let instruction = match dtype.size() {
            1 => moves::VPBROADCASTB,
            2 => moves::VPBROADCASTW,
            4 => moves::VPBROADCASTD,
            8 => moves::VPBROADCASTQ,
            _ => moves::VBROADCASTI64X2,
        };
        self.broadcast(instruction, dst, Address::at(POINTER, 0));
    }

    /// An element in memory in every lane.
    fn broadcast(&mut self, instruction: Instruction, dst: u8, address: Address) {
        match self.segment.isa {
            Isa::Avx512 => self.asm.vector(instruction, length(64), &Operands::new(dst, 0, address)),
            Isa::Avx2 => self.vector_avx2(instruction, 32, dst, address),
        }
    }

    pub(super) fn constant(&mut self, index: u32, dst: u8) {
        let c = self.segment.constants[index as usize];
        let address = Address::at(POOL, self.offsets[index as usize]);
        if c == [0; 8] {
            self.zero(dst);
        } else if c.iter().all(|q| *q == c[0]) {
            self.broadcast(moves::VPBROADCASTQ, dst, address);
        } else {
            self.whole_moved(address, dst, true);
        }
    }

    pub(super) fn copy(&mut self, dst: u8, src: u8) {
        let (instruction, length) = match self.segment.isa {
            Isa::Avx512 => (ins::VMOVDQU64, 2),
            Isa::Avx2 => (avx2::VMOVDQA, 1),
        };
        self.asm.vector(instruction, length, &Operands::new(dst, 0, RegMem::Register(src)));
    }

    /// To or from a stack slot.
    pub(super) fn spill_or_fill(&mut self, m: &Machine) {
        let stack = |at: u32| Address::at(RSP, i64::from(at) * 64);
        match *m {
            Machine::Spill { mask: true, src, at } => {
                self.asm.vector(masks::KMOVQ_STORE, 0, &Operands::new(src, 0, stack(at)));
            }
            Machine::Fill { mask: true, dst, at } => {
                self.asm.vector(masks::KMOVQ_LOAD, 0, &Operands::new(dst, 0, stack(at)));
            }
            Machine::Spill { src, at, .. } => self.whole_moved(stack(at), src, false),
            Machine::Fill { dst, at, .. } => self.whole_moved(stack(at), dst, true),
            _ => {}
        }
    }

    /// A whole vector to or from memory.
    pub(super) fn whole_moved(&mut self, address: Address, register: u8, load: bool) {
        let (from, to, length) = match self.segment.isa {
            Isa::Avx512 => (ins::VMOVDQU64, moves::VMOVDQU64_STORE, 2),
            Isa::Avx2 => (avx2::VMOVDQU, avx2::VMOVDQU_STORE, 1),
        };
        self.asm.vector(if load { from } else { to }, length, &Operands::new(register, 0, address));
    }
}
