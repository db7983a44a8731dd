//! The encodings, checked by a library's decoder.

use iced_x86::{Decoder, DecoderOptions, FastFormatter, Instruction as Decoded, OpKind, Register, RoundingControl};

use super::super::instructions;
use super::*;

/// Every instruction with its mnemonic, and the same instruction in AVX2's encoding with its own.
pub(crate) fn rows() -> impl Iterator<Item = (Instruction, &'static str)> {
    instructions::rows().flat_map(|row| {
        let avx2 = row.avx2.and_then(|name| row.instruction.avx2().map(|i| (i, name)));
        [(row.instruction, row.mnemonic())].into_iter().chain(avx2)
    })
}

/// The vector lengths that an instruction has.
pub(crate) fn lengths(instruction: Instruction) -> std::ops::RangeInclusive<u8> {
    match (instruction.fixed_length, instruction.code.vex) {
        (Some(one), _) => one..=one,
        (None, true) => 0..=1,
        (None, false) => 0..=2,
    }
}

/// The instruction at the start of the bytes, if there is one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Decoded> {
    let i = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    (!i.is_invalid()).then_some(i)
}

fn vector(instruction: Instruction, length: u8, o: &Operands) -> Vec<u8> {
    let mut asm = Asm::default();
    asm.vector(instruction, length, o);
    asm.bytes
}

/// The first register of a register's class, and its number.
fn number(r: Register) -> Option<(Register, u8)> {
    use Register::*;
    let kinds = [(ZMM0, 32), (YMM0, 32), (XMM0, 32), (K0, 8), (RAX, 16), (EAX, 16)];
    kinds.into_iter().find_map(|(first, count)| {
        let n = (r as u32).checked_sub(first as u32)?;
        (n < count).then_some((first, n as u8))
    })
}

/// The first register of the class that an operand of this shape has.
fn kind(shape: Shape, length: u8) -> Register {
    match shape {
        Shape::Mask => Register::K0,
        s => [Register::XMM0, Register::YMM0, Register::ZMM0][usize::from(length.saturating_sub(s.halvings()))],
    }
}

/// Checks that an operand is the register of that number, of that class or a general-purpose one.
fn is_register(i: &Decoded, operand: u32, wanted: u8, kind: Register, what: &str) {
    let found = number(i.op_register(operand));
    let general = |(first, _): &(Register, u8)| matches!(first, Register::RAX | Register::EAX);
    assert!(found.is_some_and(|f| f.1 == wanted && (f.0 == kind || general(&f))), "{what}: operand {operand} of {i}");
}

/// Base, index with scale, displacement.
type Expected = (General, Option<(General, u8)>, i64);

const ADDRESSES: [Expected; 14] = [
    (RAX, None, 0),
    (RBP, None, 0),
    (R13, None, 0),
    (RSP, None, 64),
    (R12, None, -64),
    (RDI, Some((RAX, 4)), 0),
    (R13, Some((R9, 8)), 0),
    (RBP, Some((R12, 1)), 0),
    (R10, None, 8128),
    (R10, None, 8192),
    (R11, None, 130),
    (RCX, Some((RDX, 2)), -128 * 64),
    (RBX, Some((R15, 8)), 127),
    (R8, None, 0x1234_5678),
];

fn memory((base, index, bytes): Expected) -> Address {
    let m = Address::at(base, bytes);
    index.map_or(m, |(index, scale)| m.indexed(index, scale))
}

fn is_memory(i: &Decoded, (base, index, bytes): Expected, what: &str) {
    let general = |r: General| Register::RAX + u32::from(r.0);
    assert_eq!(i.memory_base(), general(base), "{what}: {i}");
    assert_eq!(i.memory_index(), index.map_or(Register::None, |(r, _)| general(r)), "{what}: {i}");
    assert_eq!(i.memory_index_scale(), index.map_or(1, |(_, s)| u32::from(s)), "{what}: {i}");
    assert_eq!(i.memory_displacement64() as i64, bytes, "{what}: {i}");
}

/// Checks a vector instruction by decoding it; returns whether it exists with these operands.
fn check(instruction: Instruction, name: &str, length: u8, o: &Operands, at: Option<Expected>) -> bool {
    let mut bytes = vector(instruction, length, o);
    let plain = bytes.len();
    // The last byte is the immediate, if the instruction has one.
    bytes.push(5);
    let Some(i) = decode(&bytes) else { return false };
    let what = format!("{name} {length} {o:?} {bytes:02x?}");
    let has_imm = (0..i.op_count()).any(|k| i.op_kind(k) == OpKind::Immediate8);
    assert_eq!(i.len(), plain + usize::from(has_imm), "{what}: {i}");
    assert!(!has_imm || i.immediate8() == 5, "{what}: {i}");
    assert_eq!(format!("{:?}", i.mnemonic()).to_uppercase(), name, "{what}: {i}");
    let (dst, src) = (kind(instruction.dst, length), kind(instruction.src, length));
    let operands = match instruction.code.encoding {
        Encoding::Rvm | Encoding::RvmMask => vec![(Some(o.dst), dst), (Some(o.first), src), (None, src)],
        Encoding::Vm(_) | Encoding::Rm => vec![(Some(o.dst), dst), (None, src)],
        Encoding::Mr => vec![(None, dst), (Some(o.dst), src)],
    };
    for (k, (wanted, kind)) in operands.into_iter().enumerate() {
        match (wanted, o.last) {
            (Some(n), _) | (None, RegMem::Register(n)) => is_register(&i, k as u32, n, kind, &what),
            (None, RegMem::Memory(_)) => assert_eq!(i.op_kind(k as u32), OpKind::Memory, "{what}: {i}"),
        }
    }
    if let Some(at) = at {
        is_memory(&i, at, &what);
    }
    if instruction.code.encoding == Encoding::RvmMask {
        is_register(&i, 3, o.mask, src, &what);
    } else {
        let mask = if o.mask == 0 { Register::None } else { Register::K0 + u32::from(o.mask) };
        assert_eq!((i.op_mask(), i.zeroing_masking()), (mask, o.zeroing), "{what}: {i}");
    }
    // In instructions that do not round, the same bits suppress exceptions, which are masked anyway.
    let truncates = i.rounding_control() == RoundingControl::RoundTowardZero || i.suppress_all_exceptions();
    assert_eq!(truncates, o.truncate, "{what}: {i}");
    true
}

/// Register numbers that an operand of this shape may have.
fn numbers(instruction: Instruction, shape: Shape) -> &'static [u8] {
    match shape {
        Shape::Mask => &[0, 3, 7],
        _ if instruction.code.vex => &[0, 5, 8, 15],
        _ => &[0, 7, 9, 18, 31],
    }
}

#[test]
fn every_row_is_the_instruction_of_its_name() {
    for (instruction, name) in rows() {
        let (mr, mut with_registers, mut with_memory) = (instruction.code.encoding == Encoding::Mr, 0, 0);
        let (stored, place) = if mr { (instruction.src, instruction.dst) } else { (instruction.dst, instruction.src) };
        for length in lengths(instruction) {
            for (k, dst) in numbers(instruction, stored).iter().enumerate() {
                let two = matches!(instruction.code.encoding, Encoding::Rvm | Encoding::RvmMask);
                let firsts = numbers(instruction, instruction.src);
                let first = if two { firsts[(k + 1) % firsts.len()] } else { 0 };
                let blend = instruction.code.encoding == Encoding::RvmMask;
                let plain =
                    Operands { mask: if blend { 9 } else { 0 }, ..Operands::new(*dst, first, RegMem::Register(0)) };
                // Memory operands narrower than a vector have no register form.
                for last in numbers(instruction, place).iter().filter(|_| instruction.memory_bytes == 0) {
                    // There are only sixteen general-purpose registers.
                    let o = Operands { last: RegMem::Register(last % 16), ..plain };
                    with_registers += u32::from(check(instruction, name, length, &o, None));
                    let o = Operands { last: RegMem::Register(*last), ..plain };
                    with_registers += u32::from(check(instruction, name, length, &o, None));
                }
                for at in ADDRESSES {
                    let o = Operands { last: memory(at).into(), ..plain };
                    with_memory += u32::from(check(instruction, name, length, &o, Some(at)));
                }
            }
        }
        assert!(with_registers + with_memory > 0, "{name} is never valid");
        // A body reads constants this way.
        let constant = instruction.code.encoding == Encoding::Rvm && instruction.src == Shape::Full;
        assert!(!constant || with_memory > 0, "{name} from memory");
    }
}

#[test]
fn masks_zeroing_and_rounding_are_encoded() {
    let vectors = |f: &Instruction| !f.code.vex && f.dst != Shape::Mask && f.src != Shape::Mask && f.memory_bytes == 0;
    for (instruction, name) in rows().filter(|(f, _)| vectors(f)) {
        let mut found = 0;
        for (mask, zeroing, truncate) in [(1, false, false), (7, true, false), (0, false, true), (2, true, true)] {
            let place = |p: RegMem| Operands { mask, zeroing, truncate, ..Operands::new(17, 9, p) };
            let second = Operands { first: 0, ..place(RegMem::Register(4)) };
            let o = if instruction.code.encoding == Encoding::Rvm { place(RegMem::Register(4)) } else { second };
            found += u32::from(check(instruction, name, 2, &o, None));
        }
        assert!(found >= 2 || name == "VMOVNTDQ", "{name}: {found}");
    }
}

/// The disassembly of what a closure writes.
fn text(write: impl FnOnce(&mut Asm)) -> String {
    let mut asm = Asm::default();
    write(&mut asm);
    let (mut formatter, mut text) = (FastFormatter::new(), String::new());
    for i in &mut Decoder::with_ip(64, &asm.bytes, 0, DecoderOptions::NONE) {
        if !text.is_empty() {
            text += "; ";
        }
        formatter.format(&i, &mut text);
    }
    text
}

#[test]
fn general_instructions_are_what_they_are_called() {
    let m = Address::at(RSP, -8);
    let far = Address::at(R13, 300).indexed(R9, 4);
    let cases: [(String, &str); 31] = [
        (text(|a| a.push(RBX)), "push rbx"),
        (text(|a| a.push(R15)), "push r15"),
        (text(|a| a.pop(R12)), "pop r12"),
        (text(|a| a.ret()), "ret"),
        (text(|a| a.load(RBP, RSP)), "mov rbp,rsp"),
        (text(|a| a.load(R11, far)), "mov r11,[r13+r9*4+12Ch]"),
        (text(|a| a.store(m, R10)), "mov [rsp-8h],r10"),
        (text(|a| a.lea(R9, Address::at(RAX, 0).indexed(RAX, 1))), "lea r9,[rax+rax]"),
        (text(|a| a.number(R11, 0x1234_5678_9abc_def0)), "mov r11,123456789ABCDEF0h"),
        (text(|a| a.ones(R11)), "mov r11,0FFFFFFFFFFFFFFFFh"),
        (text(|a| a.alu(Sub, RSI, 16)), "sub rsi,10h"),
        (text(|a| a.alu(Add, RSI, 128)), "add rsi,80h"),
        (text(|a| a.alu(And, RSP, -64)), "and rsp,0FFFFFFFFFFFFFFC0h"),
        (text(|a| a.alu(Cmp, far, 2)), "cmp qword ptr [r13+r9*4+12Ch],2h"),
        (text(|a| a.alu_with(Cmp, RAX, RSI)), "cmp rax,rsi"),
        (text(|a| a.alu_with(Sub, RSI, RAX)), "sub rsi,rax"),
        (text(|a| a.alu_on(Add, far, R11)), "add [r13+r9*4+12Ch],r11"),
        (text(|a| a.clear(RAX)), "xor eax,eax"),
        (text(|a| a.shift_left(RAX, 3)), "shl rax,3h"),
        (text(|a| a.take_bit(RSI, 63)), "btr rsi,3Fh"),
        (text(|a| a.spread_carry(R15)), "sbb r15,r15"),
        (text(|a| a.carry(R11)), "setb r11b"),
        (text(|a| a.test_byte(R11)), "test r11b,r11b"),
        (text(|a| a.test_bits(16)), "test al,10h"),
        (text(|a| a.touch(Address::at(RSP, 0))), "test [rsp],rsp"),
        (text(|a| a.prefetch(far, CacheLevel::First)), "prefetcht0 [r13+r9*4+12Ch]"),
        (text(|a| a.prefetch(far, CacheLevel::Second)), "prefetcht1 [r13+r9*4+12Ch]"),
        (text(|a| a.call(R11)), "call r11"),
        (text(|a| a.first_bits(R11, R11, RSI)), "bzhi r11,r11,rsi"),
        (text(|a| a.first_bits(RDX, R9, R12)), "bzhi rdx,r9,r12"),
        (text(|a| a.zero_upper()), "vzeroupper"),
    ];
    for (found, wanted) in cases {
        assert_eq!(found, wanted);
    }
}

#[test]
fn jumps_lead_where_they_are_told() {
    let all = [
        (Condition::Below, "jb"),
        (Condition::NotBelow, "jae"),
        (Condition::Equal, "je"),
        (Condition::NotEqual, "jne"),
        (Condition::NotAbove, "jbe"),
        (Condition::Less, "jl"),
        (Condition::Greater, "jg"),
        (Condition::Always, "jmp"),
    ];
    for (condition, name) in all {
        let size = if matches!(condition, Condition::Always) { 5 } else { 6 };
        let ahead = text(|a| {
            let end = a.jump(condition);
            assert_eq!(end, size);
            a.ret();
            a.land(end);
            a.ret();
        });
        assert_eq!(ahead, format!("{name} {}h; ret; ret", size + 1));
        let back = text(|a| {
            a.ret();
            a.jump_to(condition, 0);
        });
        assert!(back == format!("ret; {name} 0h"), "{back}");
    }
    assert_eq!(text(|a| a.call_to(0)), "call 0h");
    let pool = text(|a| {
        let end = a.lea_ahead(R10);
        a.ret();
        a.patch(end, 64);
    });
    assert_eq!(pool, "lea r10,[40h]; ret");
}
