//! The bytes of instructions: general ones by name, those of vectors by their [`Form`].
//!
//! It is our own because the library that encodes AVX-512 makes a table of all of a processor's instructions when it is
//! first used, which takes longer (0.6 ms) than everything else up to the first result of a process. Guarantees: an
//! instruction that this encodes is the one that the library decodes (tests do so for every form, register and kind of
//! address). Does not: choose instructions, or know which ones a machine has.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2.

use super::instructions::{Form, Layout, Shape};

/// A general register of 64 bits.
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

/// An address: a register, another one times 1, 2, 4 or 8, and a number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    base: General,
    index: Option<(General, u8)>,
    bytes: i32,
}

impl Memory {
    pub(super) fn at(base: General, bytes: i64) -> Memory {
        debug_assert!(i32::try_from(bytes).is_ok());
        Memory { base, index: None, bytes: bytes as i32 }
    }

    /// With an index register, which is not the stack pointer.
    pub(super) fn indexed(self, index: General, scale: u8) -> Memory {
        debug_assert!(index != RSP && matches!(scale, 1 | 2 | 4 | 8));
        Memory { index: Some((index, scale)), ..self }
    }
}

/// What the r/m field of an instruction names: a register of any kind by its number, or memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Register(u8),
    Memory(Memory),
}

impl From<General> for Place {
    fn from(r: General) -> Place {
        Place::Register(r.0)
    }
}

impl From<Memory> for Place {
    fn from(m: Memory) -> Place {
        Place::Memory(m)
    }
}

/// Arithmetic of general registers; the number is that of the instructions' group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alu {
    Add = 0,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

/// Shorthands of the same instructions.
pub(super) use Alu::{Add, And, Cmp, Sub, Xor};

/// When a jump is taken; the number is the condition's code.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// Unsigned less; after a bit test: the bit was set.
    Below = 2,
    NotBelow = 3,
    Equal = 4,
    NotEqual = 5,
    NotAbove = 6,
    Less = 12,
    Greater = 15,
    Always,
}

/// The operands of an instruction of vectors, as far as its form has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    /// The result; of a store, what is stored.
    pub(super) dst: u8,
    /// The first of two sources; unused otherwise.
    pub(super) first: u8,
    /// The last source; of a store, where it goes.
    pub(super) last: Place,
    pub(super) imm: Option<u8>,
    /// Lanes that are written, of AVX-512; 0 is all. Of AVX2's blends, the vector that decides.
    pub(super) mask: u8,
    pub(super) zeroing: bool,
    /// Rounds towards zero; 512-bit registers only.
    pub(super) truncate: bool,
}

impl Operands {
    pub(super) fn new(dst: u8, first: u8, last: impl Into<Place>) -> Operands {
        Operands { dst, first, last: last.into(), imm: None, mask: 0, zeroing: false, truncate: false }
    }
}

/// Machine code being written.
#[derive(Default)]
pub(super) struct Asm {
    pub(super) bytes: Vec<u8>,
}

impl Asm {
    /// Bytes so far.
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

    pub(super) fn load(&mut self, to: General, from: impl Into<Place>) {
        self.modrm(true, &[0x8b], to.0, from.into());
    }

    pub(super) fn store(&mut self, to: impl Into<Place>, from: General) {
        self.modrm(true, &[0x89], from.0, to.into());
    }

    /// An address.
    pub(super) fn lea(&mut self, to: General, of: Memory) {
        self.modrm(true, &[0x8d], to.0, of.into());
    }

    /// The address of something behind the code, which [`patch`](Asm::patch) says later; returns where the distance ends.
    pub(super) fn lea_ahead(&mut self, to: General) -> usize {
        self.bytes.extend([0x48 | (to.0 >> 3) << 2, 0x8d, (to.0 & 7) << 3 | 5]);
        self.distance(0)
    }

    /// A number of 64 bits.
    pub(super) fn number(&mut self, to: General, value: u64) {
        self.general(true, &[0xb8 + (to.0 & 7)], 0, Some(to));
        self.bytes.extend(value.to_le_bytes());
    }

    /// All bits set.
    pub(super) fn ones(&mut self, to: General) {
        self.modrm(true, &[0xc7], 0, to.into());
        self.bytes.extend([0xff; 4]);
    }

    /// Arithmetic with a number. `And` and the others extend its sign.
    pub(super) fn alu(&mut self, op: Alu, to: impl Into<Place>, number: i32) {
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

    /// Arithmetic with a register or memory.
    pub(super) fn alu_with(&mut self, op: Alu, to: General, from: impl Into<Place>) {
        self.modrm(true, &[(op as u8) << 3 | 3], to.0, from.into());
    }

    /// Arithmetic on memory with a register.
    pub(super) fn alu_on(&mut self, op: Alu, to: Memory, from: General) {
        self.modrm(true, &[(op as u8) << 3 | 1], from.0, to.into());
    }

    /// Zero; changes the flags.
    pub(super) fn clear(&mut self, r: General) {
        self.modrm(false, &[(Xor as u8) << 3 | 3], r.0, r.into());
    }

    pub(super) fn shift_left(&mut self, r: General, bits: u8) {
        self.modrm(true, &[0xc1], 4, r.into());
        self.bytes.push(bits);
    }

    /// Clears a bit; the carry flag is what it was.
    pub(super) fn take_bit(&mut self, r: General, bit: u8) {
        self.modrm(true, &[0x0f, 0xba], 6, r.into());
        self.bytes.push(bit);
    }

    /// All bits set if the carry flag is, else none.
    pub(super) fn spread_carry(&mut self, to: General) {
        self.modrm(true, &[0x19], to.0, to.into());
    }

    /// The carry flag as the lowest byte of R8 to R15.
    pub(super) fn carry(&mut self, to: General) {
        debug_assert!(to.0 >= 8);
        self.modrm(false, &[0x0f, 0x92], 0, to.into());
    }

    /// Whether the lowest byte of R8 to R15 is zero.
    pub(super) fn test_byte(&mut self, r: General) {
        debug_assert!(r.0 >= 8);
        self.modrm(false, &[0x84], r.0, r.into());
    }

    /// Whether bits of RAX's lowest byte are zero.
    pub(super) fn test_bits(&mut self, bits: u8) {
        self.modrm(false, &[0xf6], 0, RAX.into());
        self.bytes.push(bits);
    }

    /// Asks for the cache line of an address, where nothing need be.
    pub(super) fn prefetch(&mut self, memory: Memory) {
        self.modrm(false, &[0x0f, 0x18], 1, memory.into());
    }

    /// Reads memory.
    pub(super) fn touch(&mut self, memory: Memory) {
        self.modrm(true, &[0x85], RSP.0, memory.into());
    }

    /// A jump to what [`patch`](Asm::patch) says later; returns where it ends.
    pub(super) fn jump(&mut self, when: When) -> usize {
        match when {
            When::Always => self.bytes.push(0xe9),
            when => self.bytes.extend([0x0f, 0x80 + when as u8]),
        }
        self.distance(0)
    }

    /// A jump to code that is there.
    pub(super) fn jump_to(&mut self, when: When, target: usize) {
        let end = self.jump(when);
        self.patch(end, target);
    }

    /// A call of code that is there.
    pub(super) fn call_to(&mut self, target: usize) {
        self.bytes.push(0xe8);
        let end = self.distance(0);
        self.patch(end, target);
    }

    pub(super) fn call(&mut self, function: General) {
        self.modrm(false, &[0xff], 2, function.into());
    }

    /// The lowest bits of a register, as many as another one says.
    pub(super) fn first_bits(&mut self, to: General, of: General, count: General) {
        // BZHI is encoded as vectors are.
        let inverted = |bit: u8, to: u8| (!bit & 1) << to;
        self.bytes.extend([0xc4, inverted(to.0 >> 3, 7) | 1 << 6 | inverted(of.0 >> 3, 5) | 2]);
        self.bytes.extend([0x80 | (!count.0 & 15) << 3, 0xf5, 0xc0 | (to.0 & 7) << 3 | of.0 & 7]);
    }

    /// Sets the upper halves of vectors to zero, so that code for older processors is not slowed.
    pub(super) fn zero_upper(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x77]);
    }

    /// Makes the four bytes before `end` the distance from there to `target`.
    pub(super) fn patch(&mut self, end: usize, target: usize) {
        let distance = (target as i64 - end as i64) as i32;
        self.bytes[end - 4..end].copy_from_slice(&distance.to_le_bytes());
    }

    /// The target of a jump: here.
    pub(super) fn land(&mut self, jump: usize) {
        self.patch(jump, self.at());
    }

    fn distance(&mut self, bytes: i32) -> usize {
        self.bytes.extend(bytes.to_le_bytes());
        self.at()
    }

    /// A prefix if one is needed, and the opcode, of which a register may be a part.
    fn general(&mut self, wide: bool, opcode: &[u8], bits: u8, register: Option<General>) {
        let rex = u8::from(wide) << 3 | bits | register.map_or(0, |r| r.0 >> 3);
        if rex != 0 {
            self.bytes.push(0x40 | rex);
        }
        self.bytes.extend(opcode);
    }

    /// A general instruction with a register (or a part of the opcode) and a place.
    fn modrm(&mut self, wide: bool, opcode: &[u8], reg: u8, place: Place) {
        let (x, b) = high_bits(place);
        self.general(wide, opcode, (reg >> 3) << 2 | (x & 1) << 1 | b & 1, None);
        self.operands(reg, place, 1);
    }

    /// The bytes that name a register and a place. A distance of `unit` bytes takes one byte for each 128 of them.
    fn operands(&mut self, reg: u8, place: Place, unit: i32) {
        let reg = (reg & 7) << 3;
        let m = match place {
            Place::Register(r) => return self.bytes.push(0xc0 | reg | r & 7),
            Place::Memory(m) => m,
        };
        let base = m.base.0 & 7;
        let short = (m.bytes % unit == 0).then(|| i8::try_from(m.bytes / unit).ok()).flatten();
        let mode = match short {
            // Without a distance, this base would mean none.
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
            (0x80, _) => self.bytes.extend(m.bytes.to_le_bytes()),
            _ => {}
        }
    }

    /// An instruction of vectors or masks; its length is 0 for 128 bits, 1 for 256, 2 for 512.
    pub(super) fn vector(&mut self, form: Form, length: u8, o: &Operands) {
        let (code, length) = (form.code, form.only.unwrap_or(length));
        // Which operand is where.
        let (reg, second, place) = match code.layout {
            Layout::Rvm | Layout::RvmMask => (o.dst, o.first, o.last),
            Layout::Rm | Layout::Mr => (o.dst, 0, o.last),
            Layout::Vm(digit) => (digit, o.dst, o.last),
        };
        let (x, b) = high_bits(place);
        if code.vex {
            self.vex(form, length, [reg, second, x, b]);
        } else {
            self.evex(form, length, [reg, second, x, b], o);
        }
        self.bytes.push(code.opcode);
        let unit = match (code.vex, form.unit) {
            (true, _) => 1,
            (_, 0) => 16 << length >> form.in_memory().less(),
            (_, bytes) => bytes.into(),
        };
        self.operands(reg, place, unit);
        if code.layout == Layout::RvmMask {
            self.bytes.push(o.mask << 4);
        }
        self.bytes.extend(o.imm);
    }

    fn vex(&mut self, form: Form, length: u8, [reg, second, x, b]: [u8; 4]) {
        let code = form.code;
        let inverted = |bit: u8, to: u8| (!bit & 1) << to;
        let last = (!second & 15) << 3 | length << 2 | code.prefix;
        if code.map == 1 && !code.wide && (x | b) & 1 == 0 {
            self.bytes.extend([0xc5, inverted(reg >> 3, 7) | last]);
        } else {
            let high = inverted(reg >> 3, 7) | inverted(x, 6) | inverted(b, 5);
            self.bytes.extend([0xc4, high | code.map, u8::from(code.wide) << 7 | last]);
        }
    }

    fn evex(&mut self, form: Form, length: u8, [reg, second, x, b]: [u8; 4], o: &Operands) {
        let code = form.code;
        let inverted = |bit: u8, to: u8| (!bit & 1) << to;
        let high = inverted(reg >> 3, 7) | inverted(x, 6) | inverted(b, 5) | inverted(reg >> 4, 4);
        // A rounding mode takes the length's place.
        let (length, rounding) = if o.truncate { (3, 1) } else { (length, 0) };
        let last = u8::from(o.zeroing) << 7 | length << 5 | rounding << 4 | inverted(second >> 4, 3) | o.mask;
        self.bytes.extend([0x62, high | code.map]);
        self.bytes.extend([u8::from(code.wide) << 7 | (!second & 15) << 3 | 4 | code.prefix, last]);
    }
}

/// The bits of a place that prefixes hold: of the index (or of a vector, the highest), and of the base or register.
fn high_bits(place: Place) -> (u8, u8) {
    match place {
        Place::Register(r) => (r >> 4, r >> 3),
        Place::Memory(m) => (m.index.map_or(0, |(i, _)| i.0 >> 3), m.base.0 >> 3),
    }
}

impl Form {
    /// What is in memory or in the r/m field.
    fn in_memory(self) -> Shape {
        if self.code.layout == Layout::Mr { self.dst } else { self.src }
    }
}

#[cfg(test)]
pub(crate) mod tests;
