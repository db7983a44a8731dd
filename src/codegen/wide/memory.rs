//! What a body reads and writes: elements of slots, constants, the lanes of sums, and places on the stack.
//!
//! Guarantees: whole vectors move as they are; of the elements that are left after them exactly these are read and
//! written, with AVX-512 under a mask, with AVX2 in pieces of falling size by way of the stack (below its pointer, where
//! System V leaves 128 bytes to a function). Does not: choose registers, or write loops.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use super::Isa;
use super::alloc::Machine;
use super::emit::{Body, COUNT, INDEX, POINTER, POOL, TABLE, TWICE, Writer, wrong};
use super::forms::{self as f, Form, Shape, length};
use crate::dtype::DType;
use crate::error::Result;
use crate::schedule::SlotId;

/// The rest of the elements as a mask, and two bits for each.
const REST: Register = Register::K1;
const REST_TWICE: Register = Register::K2;

/// Below the stack pointer: a general register, the elements that are left, and a vector.
const KEPT: i64 = -8;
const ELEMENTS: i64 = -48;
const KEPT_VECTOR: i64 = -80;

/// The store past the caches.
const STREAMED: Form = Form { code: Code::EVEX_Vmovntdq_m128_xmm, dst: Shape::Full, src: Shape::Full };

/// The store of a move.
fn stored(form: Form, length: u8) -> Code {
    let code = match form {
        f::MOVB => Code::EVEX_Vmovdqu8_xmmm128_k1z_xmm,
        f::MOVW => Code::EVEX_Vmovdqu16_xmmm128_k1z_xmm,
        f::MOVD => Code::EVEX_Vmovdqu32_xmmm128_k1z_xmm,
        _ => Code::EVEX_Vmovdqu64_xmmm128_k1z_xmm,
    };
    Form { code, ..form }.code_at(length)
}

/// A move between memory and vectors.
struct Move {
    memory: MemoryOperand,
    /// Bytes of an element, and of all that the vector holds.
    size: usize,
    bytes: usize,
    load: bool,
    /// Past the caches.
    streamed: bool,
}

impl Writer<'_> {
    pub(super) fn pointer(&mut self, slot: SlotId, to: Register) -> Result<()> {
        self.add(Instruction::with2(Code::Mov_r64_rm64, to, MemoryOperand::with_base_displ(TABLE, i64::from(slot) * 8)))
    }

    /// A register with the pointer of a slot.
    fn base(&mut self, slot: SlotId) -> Result<Register> {
        if let Some(r) = self.pointers.get(&slot) {
            return Ok(*r);
        }
        self.pointer(slot, POINTER)?;
        Ok(POINTER)
    }

    /// So many bytes behind the element of a slot that an index, by its scale, says.
    fn element(&mut self, slot: SlotId, (index, scale): (Register, u32), bytes: usize) -> Result<MemoryOperand> {
        let (base, size) = (self.base(slot)?, u32::from(bytes != 0));
        Ok(MemoryOperand::with_base_index_scale_displ_size(base, index, scale, bytes as i64, size))
    }

    /// What the moves of the elements that are left need: of AVX-512 masks of `COUNT` of them.
    pub(super) fn rest_masks(&mut self) -> Result<()> {
        if self.segment.isa == Isa::Avx2 {
            return Ok(());
        }
        self.first_bits(REST, COUNT)?;
        if self.segment.twice {
            self.add(Instruction::with2(Code::Lea_r64_m, TWICE, MemoryOperand::with_base_index(COUNT, COUNT)))?;
            self.first_bits(REST_TWICE, TWICE)?;
        }
        Ok(())
    }

    /// A mask with as many of its first bits set as a register says.
    fn first_bits(&mut self, mask: Register, count: Register) -> Result<()> {
        self.add(Instruction::with2(Code::Mov_rm64_imm32, POINTER, -1))?;
        self.add(Instruction::with3(Code::VEX_Bzhi_r64_rm64_r64, POINTER, POINTER, count))?;
        self.add(Instruction::with2(Code::VEX_Kmovq_kr_r64, mask, POINTER))
    }

    /// The lanes of a sum that belong to the current elements: with a register added, or (without `dst`) stored.
    pub(super) fn lanes(
        &mut self,
        ((slot, dtype), ahead): ((SlotId, DType), u8),
        dst: Option<u8>,
        src: u8,
        how: Body,
    ) -> Result<()> {
        let (size, isa) = (dtype.size(), self.segment.isa);
        let (at, bytes) = (size / 8, self.segment.lanes * size);
        let memory = self.element(slot, (TWICE, size as u32), usize::from(ahead) * bytes)?;
        let register = |number| Shape::Full.register(length(bytes), number);
        let Some(dst) = dst else {
            return self.moved(&Move { memory, size, bytes, load: false, streamed: false }, src, how);
        };
        let add = [f::ADDPS, f::ADDPD][at];
        let add = if isa == Isa::Avx2 { f::vex(add).unwrap_or(add) } else { add };
        let mut i =
            Instruction::with3(add.code_at(length(bytes)), register(dst), register(src), memory).map_err(wrong)?;
        // Without masks the lanes behind the last element are added up too, but not stored.
        if how.masked() && isa == Isa::Avx512 {
            i.set_op_mask(REST);
            i.set_zeroing_masking(true);
        }
        self.put(&i)
    }

    /// A load or a store of the lanes of a dtype.
    pub(super) fn transfer(
        &mut self,
        (slot, dtype, ahead): (SlotId, DType, u8),
        register: u8,
        how: Body,
        load: bool,
    ) -> Result<()> {
        let size = dtype.size();
        let at = if size == 16 { (TWICE, 8) } else { (INDEX, size as u32) };
        let memory = self.element(slot, at, usize::from(ahead) * self.segment.lanes * size)?;
        let streamed = !load && how == Body::Streamed && self.segment.results.contains(&slot);
        self.moved(&Move { memory, size, bytes: self.segment.lanes * size, load, streamed }, register, how)
    }

    fn moved(&mut self, m: &Move, register: u8, how: Body) -> Result<()> {
        match self.segment.isa {
            Isa::Avx512 => self.moved_avx512(m, register, how.masked()),
            Isa::Avx2 if how.masked() => self.moved_in_pieces(m, register),
            Isa::Avx2 if m.streamed => {
                let vector = Shape::Full.register(length(m.bytes), register);
                let code = Form { code: Code::VEX_Vmovntdq_m128_xmm, ..STREAMED }.code_at(length(m.bytes));
                self.add(Instruction::with2(code, m.memory, vector))
            }
            Isa::Avx2 => self.moved_bytes(m.bytes, register, m.memory, m.load),
        }
    }

    fn moved_avx512(&mut self, m: &Move, register: u8, rest: bool) -> Result<()> {
        let &Move { memory, size, bytes, load, streamed } = m;
        let form = [f::MOVB, f::MOVW, f::MOVD, f::MOVQ][(size.trailing_zeros() as usize).min(3)];
        let vector = form.src.register(length(bytes), register);
        if bytes < 16 && !rest {
            // Not a whole vector, and nothing behind it may be touched.
            let (from, to) = if bytes == 8 {
                (Code::EVEX_Vmovq_xmm_xmmm64, Code::EVEX_Vmovq_xmmm64_xmm)
            } else {
                (Code::EVEX_Vmovd_xmm_rm32, Code::EVEX_Vmovd_rm32_xmm)
            };
            return if load {
                self.add(Instruction::with2(from, vector, memory))
            } else {
                self.add(Instruction::with2(to, memory, vector))
            };
        }
        let mut i = if load {
            Instruction::with2(form.code_at(length(bytes)), vector, memory)
        } else if streamed {
            Instruction::with2(STREAMED.code_at(length(bytes)), memory, vector)
        } else {
            Instruction::with2(stored(form, length(bytes)), memory, vector)
        }
        .map_err(wrong)?;
        if rest {
            i.set_op_mask(if size == 16 { REST_TWICE } else { REST });
            i.set_zeroing_masking(load);
        }
        self.put(&i)
    }

    /// A power of two of bytes, from one to a whole vector of AVX2, between a register's lowest and memory.
    fn moved_bytes(&mut self, bytes: usize, register: u8, memory: MemoryOperand, load: bool) -> Result<()> {
        let vector = Shape::Full.register(length(bytes), register);
        let (from, to) = match bytes {
            1 => (Code::VEX_Vpinsrb_xmm_xmm_r32m8_imm8, Code::VEX_Vpextrb_r32m8_xmm_imm8),
            2 => (Code::VEX_Vpinsrw_xmm_xmm_r32m16_imm8, Code::VEX_Vpextrw_r32m16_xmm_imm8),
            4 => (Code::VEX_Vmovd_xmm_rm32, Code::VEX_Vmovd_rm32_xmm),
            8 => (Code::VEX_Vmovq_xmm_xmmm64, Code::VEX_Vmovq_xmmm64_xmm),
            16 => (Code::VEX_Vmovdqu_xmm_xmmm128, Code::VEX_Vmovdqu_xmmm128_xmm),
            _ => (Code::VEX_Vmovdqu_ymm_ymmm256, Code::VEX_Vmovdqu_ymmm256_ymm),
        };
        self.add(match (load, bytes) {
            (true, 1 | 2) => Instruction::with4(from, vector, vector, memory, 0),
            (false, 1 | 2) => Instruction::with3(to, memory, vector, 0),
            (true, _) => Instruction::with2(from, vector, memory),
            (false, _) => Instruction::with2(to, memory, vector),
        })
    }

    /// The `COUNT` elements that are left: the bytes of each power of two that their number has, the last ones first.
    fn moved_in_pieces(&mut self, m: &Move, register: u8) -> Result<()> {
        let below = |at: i64| MemoryOperand::with_base_displ(Register::RSP, at);
        let at_offset =
            |base: Register, at: i64| MemoryOperand::new(base, INDEX, 1, at, u32::from(at != 0), false, Register::None);
        let whole = Isa::Avx2.bytes();
        // What passes by: the result of a load, of a store a register that is put back.
        let through = if m.load { register } else { 0 };
        self.add(Instruction::with2(Code::Lea_r64_m, POINTER, m.memory))?;
        self.add(Instruction::with2(Code::Mov_rm64_r64, below(KEPT), INDEX))?;
        if m.load {
            self.zero(register)?;
        } else {
            self.moved_bytes(whole, through, below(KEPT_VECTOR), false)?;
        }
        self.moved_bytes(whole, register, below(ELEMENTS), false)?;
        self.add(Instruction::with2(Code::Mov_r64_rm64, INDEX, COUNT))?;
        self.add(Instruction::with2(Code::Shl_rm64_imm8, INDEX, m.size.trailing_zeros()))?;
        for piece in [1, 2, 4, 8, 16].into_iter().filter(|p| (m.size..m.bytes).contains(p)) {
            self.add(Instruction::with2(Code::Test_rm8_imm8, Register::AL, piece as u32))?;
            let none = self.jump_ahead(Code::Je_rel32_64)?;
            self.add(Instruction::with2(Code::Sub_rm64_imm8, INDEX, piece as i32))?;
            let (there, here) = (at_offset(POINTER, 0), at_offset(Register::RSP, ELEMENTS));
            let (from, to) = if m.load { (there, here) } else { (here, there) };
            self.moved_bytes(piece, through, from, true)?;
            self.moved_bytes(piece, through, to, false)?;
            self.land(none);
        }
        self.add(Instruction::with2(Code::Mov_r64_rm64, INDEX, below(KEPT)))?;
        let back = if m.load { ELEMENTS } else { KEPT_VECTOR };
        self.moved_bytes(whole, through, below(back), true)
    }

    fn zero(&mut self, register: u8) -> Result<()> {
        let low = Register::XMM0 + u32::from(register);
        let code = match self.segment.isa {
            Isa::Avx512 => Code::EVEX_Vpxord_xmm_k1z_xmm_xmmm128b32,
            Isa::Avx2 => Code::VEX_Vpxor_xmm_xmm_xmmm128,
        };
        self.add(Instruction::with3(code, low, low, low))
    }

    /// The one element of a slot in every lane.
    pub(super) fn splat(&mut self, slot: SlotId, dtype: DType, dst: u8) -> Result<()> {
        self.pointer(slot, POINTER)?;
        let code = match (dtype.size(), self.segment.isa) {
            (1, Isa::Avx512) => Code::EVEX_Vpbroadcastb_zmm_k1z_xmmm8,
            (2, Isa::Avx512) => Code::EVEX_Vpbroadcastw_zmm_k1z_xmmm16,
            (4, Isa::Avx512) => Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32,
            (8, Isa::Avx512) => Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64,
            (_, Isa::Avx512) => Code::EVEX_Vbroadcasti64x2_zmm_k1z_m128,
            (1, Isa::Avx2) => Code::VEX_Vpbroadcastb_ymm_xmmm8,
            (2, Isa::Avx2) => Code::VEX_Vpbroadcastw_ymm_xmmm16,
            (4, Isa::Avx2) => Code::VEX_Vpbroadcastd_ymm_xmmm32,
            (8, Isa::Avx2) => Code::VEX_Vpbroadcastq_ymm_xmmm64,
            (_, Isa::Avx2) => Code::VEX_Vbroadcasti128_ymm_m128,
        };
        let vector = self.segment.isa.vector(dst);
        self.add(Instruction::with2(code, vector, MemoryOperand::with_base(POINTER)))
    }

    pub(super) fn constant(&mut self, index: u32, dst: u8) -> Result<()> {
        let c = self.segment.constants[index as usize];
        let wide = self.segment.isa.vector(dst);
        let place = MemoryOperand::with_base_displ(POOL, self.offsets[index as usize]);
        let (all, each) = match self.segment.isa {
            Isa::Avx512 => (Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512, Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64),
            Isa::Avx2 => (Code::VEX_Vmovdqu_ymm_ymmm256, Code::VEX_Vpbroadcastq_ymm_xmmm64),
        };
        if c == [0; 8] {
            self.zero(dst)
        } else {
            let code = if c.iter().all(|q| *q == c[0]) { each } else { all };
            self.add(Instruction::with2(code, wide, place))
        }
    }

    pub(super) fn copy(&mut self, dst: u8, src: u8) -> Result<()> {
        let isa = self.segment.isa;
        let code = match isa {
            Isa::Avx512 => Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512,
            Isa::Avx2 => Code::VEX_Vmovdqa_ymm_ymmm256,
        };
        self.add(Instruction::with2(code, isa.vector(dst), isa.vector(src)))
    }

    /// To or from a place on the stack.
    pub(super) fn placed(&mut self, m: &Machine) -> Result<()> {
        let stack = |at: u32| MemoryOperand::with_base_displ(Register::RSP, i64::from(at) * 64);
        let mask = |number: u8| Register::K0 + u32::from(number);
        match *m {
            Machine::Spill { mask: true, src, at } => {
                self.add(Instruction::with2(Code::VEX_Kmovq_m64_kr, stack(at), mask(src)))
            }
            Machine::Fill { mask: true, dst, at } => {
                self.add(Instruction::with2(Code::VEX_Kmovq_kr_km64, mask(dst), stack(at)))
            }
            Machine::Spill { src, at, .. } => self.whole_moved(stack(at), src, false),
            Machine::Fill { dst, at, .. } => self.whole_moved(stack(at), dst, true),
            _ => Ok(()),
        }
    }

    /// A whole vector to or from memory.
    pub(super) fn whole_moved(&mut self, memory: MemoryOperand, register: u8, load: bool) -> Result<()> {
        let isa = self.segment.isa;
        let (from, to) = match isa {
            Isa::Avx512 => (Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512, Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm),
            Isa::Avx2 => (Code::VEX_Vmovdqu_ymm_ymmm256, Code::VEX_Vmovdqu_ymmm256_ymm),
        };
        let vector = isa.vector(register);
        self.add(if load { Instruction::with2(from, vector, memory) } else { Instruction::with2(to, memory, vector) })
    }
}
