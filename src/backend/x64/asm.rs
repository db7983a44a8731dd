//! An assembler: general-purpose instructions by method, vector and mask instructions by their [`Instruction`].
//!
//! It exists because the library that encodes AVX-512 (iced-x86) builds a table of all instructions at its first use, which
//! takes longer (0.6 ms) than everything else up to the first result of a process. Guarantees: that library's decoder reads
//! each encoded instruction as the intended one (tests cover every instruction, register and form of address). Does not:
//! choose instructions, or know which ones a machine has.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2.

use super::instructions::{Encoding, Instruction, Shape};

/// A general-purpose register of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct General(pub(super) u8);

pub(super) const RAX: General = General(0);
pub(super) const RCX: General = General(1);
pub(super) const RDX: General = General(2);
pub(super) const RBX: General = General(3);
pub(super) const RSP: General = General(4);
pub(super) const RBP: General = General(5);
pub(super) const RSI: General = General(6);
pub(super) const RDI: General = General(7);
pub(super) const R8: General = General(8);
pub(super) const R9: General = General(9);
pub(super) const R10: General = General(10);
pub(super) const R11: General = General(11);
pub(super) const R12: General = General(12);
pub(super) const R13: General = General(13);
pub(super) const R14: General = General(14);
pub(super) const R15: General = General(15);

/// An address: base, index times a scale of 1, 2, 4 or 8, and a displacement in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    base: General,
    index: Option<(General, u8)>,
    displacement: i32,
}

impl Address {
    pub(super) fn at(base: General, displacement: i64) -> Address {
        debug_assert!(i32::try_from(displacement).is_ok());
        Address { base, index: None, displacement: displacement as i32 }
    }

    /// The same with an index register, which must not be the stack pointer.
    pub(super) fn indexed(self, index: General, scale: u8) -> Address {
        debug_assert!(index != RSP && matches!(scale, 1 | 2 | 4 | 8));
        Address { index: Some((index, scale)), ..self }
    }
}

/// The operand of the ModRM.r/m field: a register of any class by its number, or memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum RegMem {
    Register(u8),
    Memory(Address),
}

impl From<General> for RegMem {
    fn from(r: General) -> RegMem {
        RegMem::Register(r.0)
    }
}

impl From<Address> for RegMem {
    fn from(m: Address) -> RegMem {
        RegMem::Memory(m)
    }
}

/// Arithmetic of general-purpose registers; the number is the opcode extension.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alu {
    Add = 0,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// The same, unqualified.
pub(super) use Alu::{Add, And, Cmp, Sub, Xor};

/// A level of cache; the number is the opcode extension of prefetches into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheLevel {
    First = 1,
    Second = 2,
}

/// The condition of a jump; the number is the condition code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    /// Unsigned less than; after a bit test, the bit was set.
    Below = 2,
    NotBelow = 3,
    Equal = 4,
    NotEqual = 5,
    NotAbove = 6,
    Less = 12,
    Greater = 15,
    Always,
}

/// The operands of a vector or mask instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    /// The destination; for a store, the register that is stored.
    pub(super) dst: u8,
    /// The first of two sources; unused if there is one.
    pub(super) first: u8,
    /// The last source; for a store, the destination.
    pub(super) last: RegMem,
    pub(super) imm: Option<u8>,
    /// In AVX-512, the mask register of the lanes that are written, 0 for all lanes. In an AVX2 blend, the mask vector.
    pub(super) mask: u8,
    pub(super) zeroing: bool,
    /// Whether to round towards zero; only with 512 bits.
    pub(super) truncate: bool,
}

impl Operands {
    pub(super) fn new(dst: u8, first: u8, last: impl Into<RegMem>) -> Operands {
        Operands { dst, first, last: last.into(), imm: None, mask: 0, zeroing: false, truncate: false }
    }
}

/// A buffer of machine code.
#[derive(Default)]
pub(super) struct Asm {
    pub(super) bytes: Vec<u8>,
}

impl Asm {
    /// The number of bytes so far.
    pub(super) fn at(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, r: General) {
        self.general(false, &[0x50 + (r.0 & 7)], 0, Some(r));
    }

    pub(super) fn pop(&mut self, r: General) {
        self.general(false, &[0x58 + (r.0 & 7)], 0, Some(r));
    }

    pub(super) fn ret(&mut self) {
        self.bytes.push(0xc3);
    }

    pub(super) fn load(&mut self, to: General, from: impl Into<RegMem>) {
        self.modrm(true, &[0x8b], to.0, from.into());
    }

    pub(super) fn store(&mut self, to: impl Into<RegMem>, from: General) {
        self.modrm(true, &[0x89], from.0, to.into());
    }

    /// Computes an address.
    pub(super) fn lea(&mut self, to: General, of: Address) {
        self.modrm(true, &[0x8d], to.0, of.into());
    }

    /// Computes the address of data after the code. Returns the end of the displacement, for [`patch`](Asm::patch).
    pub(super) fn lea_ahead(&mut self, to: General) -> usize {
        self.bytes.extend([0x48 | (to.0 >> 3) << 2, 0x8d, (to.0 & 7) << 3 | 5]);
        self.displacement(0)
    }

    /// Loads a 64-bit immediate.
    pub(super) fn number(&mut self, to: General, value: u64) {
        self.general(true, &[0xb8 + (to.0 & 7)], 0, Some(to));
        self.bytes.extend(value.to_le_bytes());
    }

    /// Sets all bits.
    pub(super) fn ones(&mut self, to: General) {
        self.modrm(true, &[0xc7], 0, to.into());
        self.bytes.extend([0xff; 4]);
    }

    /// Arithmetic with an immediate, which is sign-extended.
    pub(super) fn alu(&mut self, op: Alu, to: impl Into<RegMem>, number: i32) {
        match i8::try_from(number) {
            Ok(short) => {
                self.modrm(true, &[0x83], op as u8, to.into());
                self.bytes.push(short as u8);
            }
            Err(_) => {
                self.modrm(true, &[0x81], op as u8, to.into());
                self.bytes.extend(number.to_le_bytes());
            }
        }
    }

    /// Arithmetic on a register with a register or memory.
    pub(super) fn alu_with(&mut self, op: Alu, to: General, from: impl Into<RegMem>) {
        self.modrm(true, &[(op as u8) << 3 | 3], to.0, from.into());
    }

    /// Arithmetic on memory with a register.
    pub(super) fn alu_on(&mut self, op: Alu, to: Address, from: General) {
        self.modrm(true, &[(op as u8) << 3 | 1], from.0, to.into());
    }

    /// Zeroes a register; changes the flags.
    pub(super) fn clear(&mut self, r: General) {
        self.modrm(false, &[(Xor as u8) << 3 | 3], r.0, r.into());
    }

    pub(super) fn shift_left(&mut self, r: General, bits: u8) {
        self.modrm(true, &[0xc1], 4, r.into());
        self.bytes.push(bits);
    }

    /// Clears a bit and sets the carry flag to what it was.
    pub(super) fn take_bit(&mut self, r: General, bit: u8) {
        self.modrm(true, &[0x0f, 0xba], 6, r.into());
        self.bytes.push(bit);
    }

    /// Sets all bits if the carry flag is set, else clears all.
    pub(super) fn spread_carry(&mut self, to: General) {
        self.modrm(true, &[0x19], to.0, to.into());
    }

    /// Sets the lowest byte of one of R8 to R15 to the carry flag.
    pub(super) fn carry(&mut self, to: General) {
        debug_assert!(to.0 >= 8);
        self.modrm(false, &[0x0f, 0x92], 0, to.into());
    }

    /// Compares the lowest byte of one of R8 to R15 with zero.
    pub(super) fn test_byte(&mut self, r: General) {
        debug_assert!(r.0 >= 8);
        self.modrm(false, &[0x84], r.0, r.into());
    }

    /// Compares bits of the lowest byte of RAX with zero.
    pub(super) fn test_bits(&mut self, bits: u8) {
        self.modrm(false, &[0xf6], 0, RAX.into());
        self.bytes.push(bits);
    }

    /// Prefetches the cache line of an address, which need not be mapped, into a cache of this level.
    pub(super) fn prefetch(&mut self, memory: Address, level: CacheLevel) {
        self.modrm(false, &[0x0f, 0x18], level as u8, memory.into());
    }

    /// Reads memory; changes the flags.
    pub(super) fn touch(&mut self, memory: Address) {
        self.modrm(true, &[0x85], RSP.0, memory.into());
    }

    /// A jump forward. Returns its end, for [`patch`](Asm::patch) or [`land`](Asm::land).
    pub(super) fn jump(&mut self, condition: Condition) -> usize {
        match condition {
            Condition::Always => self.bytes.push(0xe9),
            condition => self.bytes.extend([0x0f, 0x80 + condition as u8]),
        }
        self.displacement(0)
    }

    /// A jump back.
    pub(super) fn jump_to(&mut self, condition: Condition, target: usize) {
        let end = self.jump(condition);
        self.patch(end, target);
    }

    /// A call of code before.
    pub(super) fn call_to(&mut self, target: usize) {
        let end = self.call_ahead();
        self.patch(end, target);
    }

    /// A call of code that follows. Returns its end, for [`land`](Asm::land).
    pub(super) fn call_ahead(&mut self) -> usize {
        self.bytes.push(0xe8);
        self.displacement(0)
    }

    pub(super) fn call(&mut self, function: General) {
        self.modrm(false, &[0xff], 2, function.into());
    }

    /// BZHI: the lowest `count` bits of a register.
    pub(super) fn first_bits(&mut self, to: General, of: General, count: General) {
        // Encoded with a VEX prefix.
        let inverted = |bit: u8, to: u8| (!bit & 1) << to;
        self.bytes.extend([0xc4, inverted(to.0 >> 3, 7) | 1 << 6 | inverted(of.0 >> 3, 5) | 2]);
        self.bytes.extend([0x80 | (!count.0 & 15) << 3, 0xf5, 0xc0 | (to.0 & 7) << 3 | of.0 & 7]);
    }

    /// VZEROUPPER: avoids the penalty for SSE instructions after AVX ones.
    pub(super) fn zero_upper(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x77]);
    }

    /// Sets the four bytes before `end` to the distance from `end` to `target`.
    pub(super) fn patch(&mut self, end: usize, target: usize) {
        let distance = (target as i64 - end as i64) as i32;
        self.bytes[end - 4..end].copy_from_slice(&distance.to_le_bytes());
    }

    /// Makes the current position the target of a jump.
    pub(super) fn land(&mut self, jump: usize) {
        self.patch(jump, self.at());
    }

    fn displacement(&mut self, bytes: i32) -> usize {
        self.bytes.extend(bytes.to_le_bytes());
        self.at()
    }

    /// A REX prefix if one is needed, and the opcode, which may contain a register.
    fn general(&mut self, wide: bool, opcode: &[u8], bits: u8, register: Option<General>) {
        let rex = u8::from(wide) << 3 | bits | register.map_or(0, |r| r.0 >> 3);
        if rex != 0 {
            self.bytes.push(0x40 | rex);
        }
        self.bytes.extend(opcode);
    }

    /// A general-purpose instruction with the fields ModRM.reg (a register or an opcode extension) and ModRM.r/m.
    fn modrm(&mut self, wide: bool, opcode: &[u8], reg: u8, rm: RegMem) {
        let (x, b) = high_bits(rm);
        self.general(wide, opcode, (reg >> 3) << 2 | (x & 1) << 1 | b & 1, None);
        self.operands(reg, rm, 1);
    }

    /// The bytes ModRM, SIB and displacement. A multiple of `unit` may be encoded as one byte (disp8*N).
    fn operands(&mut self, reg: u8, rm: RegMem, unit: i32) {
        let reg = (reg & 7) << 3;
        let m = match rm {
            RegMem::Register(r) => return self.bytes.push(0xc0 | reg | r & 7),
            RegMem::Memory(m) => m,
        };
        let base = m.base.0 & 7;
        let short = (m.displacement % unit == 0).then(|| i8::try_from(m.displacement / unit).ok()).flatten();
        let mode = match short {
            // Mode 0 with this base would mean an address without a base.
            Some(0) if base != RBP.0 => 0,
            Some(_) => 0x40,
            None => 0x80,
        };
        match m.index {
            Some((index, scale)) => {
                let scale = (scale.trailing_zeros() as u8) << 6;
                self.bytes.extend([mode | reg | 4, scale | (index.0 & 7) << 3 | base]);
            }
            None if base == RSP.0 => self.bytes.extend([mode | reg | 4, 0x24]),
            None => self.bytes.push(mode | reg | base),
        }
        match (mode, short) {
            (0x40, Some(short)) => self.bytes.push(short as u8),
            (0x80, _) => self.bytes.extend(m.displacement.to_le_bytes()),
            _ => {}
        }
    }

    /// A vector or mask instruction; the vector length is 0 for 128 bits, 1 for 256, 2 for 512.
    pub(super) fn vector(&mut self, instruction: Instruction, length: u8, o: &Operands) {
        let (code, length) = (instruction.code, instruction.fixed_length.unwrap_or(length));
        // ModRM.reg, VEX.vvvv, ModRM.r/m.
        let (reg, second, rm) = match code.encoding {
            Encoding::Rvm | Encoding::RvmMask => (o.dst, o.first, o.last),
            Encoding::Rm | Encoding::Mr => (o.dst, 0, o.last),
            Encoding::Vm(digit) => (digit, o.dst, o.last),
        };
        let (x, b) = high_bits(rm);
        if code.vex {
            self.vex(instruction, length, [reg, second, x, b]);
        } else {
            self.evex(instruction, length, [reg, second, x, b], o);
        }
        self.bytes.push(code.opcode);
        let unit = match (code.vex, instruction.memory_bytes) {
            (true, _) => 1,
            (_, 0) => 16 << length >> instruction.rm_shape().halvings(),
            (_, bytes) => bytes.into(),
        };
        self.operands(reg, rm, unit);
        if code.encoding == Encoding::RvmMask {
            self.bytes.push(o.mask << 4);
        }
        self.bytes.extend(o.imm);
    }

    fn vex(&mut self, instruction: Instruction, length: u8, [reg, second, x, b]: [u8; 4]) {
        let code = instruction.code;
        let inverted = |bit: u8, to: u8| (!bit & 1) << to;
        let last = (!second & 15) << 3 | length << 2 | code.prefix;
        if code.map == 1 && !code.w && (x | b) & 1 == 0 {
            self.bytes.extend([0xc5, inverted(reg >> 3, 7) | last]);
        } else {
            let high = inverted(reg >> 3, 7) | inverted(x, 6) | inverted(b, 5);
            self.bytes.extend([0xc4, high | code.map, u8::from(code.w) << 7 | last]);
        }
    }

    fn evex(&mut self, instruction: Instruction, length: u8, [reg, second, x, b]: [u8; 4], o: &Operands) {
        let code = instruction.code;
        let inverted = |bit: u8, to: u8| (!bit & 1) << to;
        let high = inverted(reg >> 3, 7) | inverted(x, 6) | inverted(b, 5) | inverted(reg >> 4, 4);
        // A rounding mode replaces the vector length.
        let (length, rounding) = if o.truncate { (3, 1) } else { (length, 0) };
        let last = u8::from(o.zeroing) << 7 | length << 5 | rounding << 4 | inverted(second >> 4, 3) | o.mask;
        self.bytes.extend([0x62, high | code.map]);
        self.bytes.extend([u8::from(code.w) << 7 | (!second & 15) << 3 | 4 | code.prefix, last]);
    }
}

/// The bits X and B of a prefix: of the index (or bit 4 of a vector register), and of the base or register.
fn high_bits(rm: RegMem) -> (u8, u8) {
    match rm {
        RegMem::Register(r) => (r >> 4, r >> 3),
        RegMem::Memory(m) => (m.index.map_or(0, |(i, _)| i.0 >> 3), m.base.0 >> 3),
    }
}

impl Instruction {
    /// The width of the operand in the ModRM.r/m field.
    fn rm_shape(self) -> Shape {
        if self.code.encoding == Encoding::Mr { self.dst } else { self.src }
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
pub(crate) mod tests;
