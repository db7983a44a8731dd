//! The table of vector and mask instructions: the only ones that the x64 back end emits into a loop's body.
//!
//! Guarantees: no instruction in the table traps on data (floating-point exceptions are masked; integer division, aligned
//! accesses and gathers are not listed). A constant has the manual's mnemonic as its name, with a suffix where one mnemonic
//! has several encodings (`_IMM`, `_LOAD`, `_STORE`, `_GENERAL`). Its row has the prefix, opcode map, opcode and operand
//! encoding in the manual's terms, and the widths of destination and sources; then, if AVX2 has the same instruction, its
//! mnemonic and its bit W there. A test decodes every row at every vector length. Does not: choose instructions (`lower`,
//! `avx2`) or write their bytes (`asm`).

use super::isa::Isa;

/// The width of an operand, relative to the vector length of its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The vector length.
    Full,
    /// A half, a quarter or an eighth of the vector length, in a register of at least 128 bits.
    Half,
    Quarter,
    Eighth,
    /// A mask register.
    Mask,
}

impl Shape {
    /// How many times the vector length is halved.
    pub(super) fn halvings(self) -> u8 {
        match self {
            Shape::Full | Shape::Mask => 0,
            Shape::Half => 1,
            Shape::Quarter => 2,
            Shape::Eighth => 3,
        }
    }
}

/// The operand encoding, in the manual's letters: R is the ModRM.reg field, V is VEX.vvvv, M is the ModRM.r/m field, in the
/// order destination, sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Rvm,
    Rm,
    Mr,
    /// The ModRM.reg field extends the opcode by this digit.
    Vm(u8),
    /// The immediate names a fourth register, the mask of a blend.
    RvmMask,
}

/// An instruction without its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// Whether the prefix is VEX (AVX, AVX2 and mask instructions) and not EVEX.
    pub(super) vex: bool,
    /// The field `pp`: none, 66, F3, F2.
    pub(super) prefix: u8,
    /// The opcode map: 1 is 0F, 2 is 0F38, 3 is 0F3A.
    pub(super) map: u8,
    pub(super) opcode: u8,
    /// The bit W.
    pub(super) w: bool,
    pub(super) encoding: Encoding,
    /// The bit W of the VEX encoding, if AVX2 has the same instruction.
    pub(super) avx2_w: Option<bool>,
}

/// An instruction, and the widths of its destination and its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: Code,
    pub(super) dst: Shape,
    pub(super) src: Shape,
    /// Bytes of the memory operand; 0 if that is as wide as its [`Shape`] says.
    pub(super) memory_bytes: u8,
    /// The vector length, if the instruction has only one.
    pub(super) fixed_length: Option<u8>,
}

impl Instruction {
    /// The same instruction in AVX2's encoding, if AVX2 has it.
    pub(super) fn avx2(self) -> Option<Instruction> {
        let w = self.code.avx2_w?;
        Some(Instruction { code: Code { vex: true, w, avx2_w: None, ..self.code }, ..self })
    }

    /// The encoding of this instruction for an instruction set that has it.
    pub(super) fn on(self, isa: Isa) -> Instruction {
        match isa {
            Isa::Avx512 => self,
            Isa::Avx2 => self.avx2().unwrap_or(self),
        }
    }
}

/// The vector length that holds this many bytes: 0 for 128 bits, 1 for 256, 2 for 512.
pub(super) fn length(bytes: usize) -> u8 {
    match bytes {
        0..=16 => 0,
        17..=32 => 1,
        _ => 2,
    }
}

/// The variant of a fused multiply-add, given as the one that overwrites the addend (`231`): that one if `addend` is set, else
/// the one that overwrites the first factor (`213`). `None` for other instructions.
pub(super) fn overwriting(instruction: Instruction, addend: bool) -> Option<Instruction> {
    let single = [(VFMADD231PS, VFMADD213PS), (VFMSUB231PS, VFMSUB213PS), (VFNMADD231PS, VFNMADD213PS)];
    let double = [(VFMADD231PD, VFMADD213PD), (VFMSUB231PD, VFMSUB213PD), (VFNMADD231PD, VFNMADD213PD)];
    single.into_iter().chain(double).find_map(|(over_addend, over_factor)| {
        let chosen = if addend { over_addend } else { over_factor };
        if instruction == over_addend {
            Some(chosen)
        } else {
            over_addend.avx2().filter(|i| *i == instruction).and_then(|_| chosen.avx2())
        }
    })
}

/// Whether the two sources of an AVX2 instruction can be swapped. Of two NaN operands the result may then be the other one.
pub(super) fn commutes(instruction: Instruction) -> bool {
    [VADDPS, VADDPD, VMULPS, VMULPD, VPANDD, VPORD, VPXORD, VPADDB, VPADDW, VPADDD, VPADDQ]
        .into_iter()
        .any(|i| i.avx2() == Some(instruction))
}

/// A pseudo-instruction, told from instructions by opcode map 0, which does not exist.
const fn pseudo(opcode: u8) -> Instruction {
    let code = Code { vex: false, prefix: 0, map: 0, opcode, w: false, encoding: Encoding::Rm, avx2_w: None };
    Instruction { code, dst: Shape::Full, src: Shape::Full, memory_bytes: 0, fixed_length: None }
}

/// Pseudo-instruction: if any lane of the mask is set, all lanes of the result become a function of
/// [`crate::kernels::vector_call`] of the second source, else the result is the first source, whose register it overwrites. The
/// immediate is the function's index.
pub(super) const SLOW_PATH: Instruction = pseudo(0);

/// Pseudo-instruction: the lanes of a partial sum plus the source. Loops that do not accumulate sums omit it.
pub(super) const ACCUMULATE: Instruction = pseudo(1);

/// The values that a row's columns may have.
mod columns {
    use super::Encoding;
    pub(super) use super::Encoding::{Mr as MR, Rm as RM, Rvm as RVM, RvmMask as RVMM};

    pub(super) const VM2: Encoding = Encoding::Vm(2);
    pub(super) const VM4: Encoding = Encoding::Vm(4);
    pub(super) const VM6: Encoding = Encoding::Vm(6);
    pub(super) const NP: u8 = 0;
    pub(super) const P66: u8 = 1;
    pub(super) const PF3: u8 = 2;
    pub(super) const PF2: u8 = 3;
    pub(super) const M0F: u8 = 1;
    pub(super) const M0F38: u8 = 2;
    pub(super) const M0F3A: u8 = 3;
    pub(super) const W0: bool = false;
    pub(super) const W1: bool = true;
}

/// A row of the table: the name of the constant, the instruction, and the mnemonic of the same instruction in AVX2.
pub(super) struct Row {
    name: &'static str,
    pub(super) instruction: Instruction,
    pub(super) avx2: Option<&'static str>,
}

impl Row {
    /// The manual's mnemonic, in upper case.
    pub(super) fn mnemonic(&self) -> &'static str {
        // What follows in the constant's name tells encodings apart.
        self.name.split_once('_').map_or(self.name, |(mnemonic, _)| mnemonic)
    }
}

/// All rows.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    [ROWS, masks::ROWS, moves::ROWS, avx2::ROWS].into_iter().flatten()
}

/// The mnemonic of an instruction, in upper case; for dumps.
pub(super) fn mnemonic(instruction: Instruction) -> &'static str {
    match instruction {
        SLOW_PATH => "SLOW_PATH",
        ACCUMULATE => "ACCUMULATE",
        _ => {
            let named = |row: &Row| {
                let avx2 = row.avx2.filter(|_| row.instruction.avx2() == Some(instruction));
                avx2.or((row.instruction == instruction).then(|| row.mnemonic()))
            };
            rows().find_map(named).unwrap_or("(unknown)")
        }
    }
}

macro_rules! instructions {
    ($vex:literal; $(
        $name:ident $prefix:ident $map:ident $opcode:literal $encoding:ident $w:ident,
        $dst:ident <- $src:ident $([$field:ident $value:expr])? $(, $avx2:ident $avx2_w:ident)?;
    )*) => {
        $(pub(in crate::backend::x64) const $name: Instruction = {
            let avx2_w = [$(Some(columns::$avx2_w),)? None][0];
            let code = Code {
                vex: $vex,
                prefix: columns::$prefix,
                map: columns::$map,
                opcode: $opcode,
                w: columns::$w,
                encoding: columns::$encoding,
                avx2_w,
            };
            let instruction =
                Instruction { code, dst: Shape::$dst, src: Shape::$src, memory_bytes: 0, fixed_length: None };
            $(let instruction = Instruction { $field: $value, ..instruction };)?
            instruction
        };)*

        pub(in crate::backend::x64) const ROWS: &[$crate::backend::x64::instructions::Row] = &[
            $($crate::backend::x64::instructions::Row {
                name: stringify!($name),
                instruction: $name,
                avx2: [$(Some(stringify!($avx2)),)? None][0],
            }),*
        ];
    };
}

instructions! { false;
    // Floats.
    VADDPS NP M0F 0x58 RVM W0, Full <- Full, VADDPS W0;
    VADDPD P66 M0F 0x58 RVM W1, Full <- Full, VADDPD W0;
    VSUBPS NP M0F 0x5c RVM W0, Full <- Full, VSUBPS W0;
    VSUBPD P66 M0F 0x5c RVM W1, Full <- Full, VSUBPD W0;
    VMULPS NP M0F 0x59 RVM W0, Full <- Full, VMULPS W0;
    VMULPD P66 M0F 0x59 RVM W1, Full <- Full, VMULPD W0;
    VDIVPS NP M0F 0x5e RVM W0, Full <- Full, VDIVPS W0;
    VDIVPD P66 M0F 0x5e RVM W1, Full <- Full, VDIVPD W0;
    VSQRTPS NP M0F 0x51 RM W0, Full <- Full, VSQRTPS W0;
    VSQRTPD P66 M0F 0x51 RM W1, Full <- Full, VSQRTPD W0;
    VRNDSCALEPS P66 M0F3A 0x08 RM W0, Full <- Full, VROUNDPS W0;
    VRNDSCALEPD P66 M0F3A 0x09 RM W1, Full <- Full, VROUNDPD W0;
    VRANGEPS P66 M0F3A 0x50 RVM W0, Full <- Full;
    VRANGEPD P66 M0F3A 0x50 RVM W1, Full <- Full;
    VCMPPS NP M0F 0xc2 RVM W0, Mask <- Full;
    VCMPPD P66 M0F 0xc2 RVM W1, Mask <- Full;
    // The second source if either is NaN or both are equal (zeros of either sign).
    VMINPS NP M0F 0x5d RVM W0, Full <- Full, VMINPS W0;
    VMINPD P66 M0F 0x5d RVM W1, Full <- Full, VMINPD W0;
    VMAXPS NP M0F 0x5f RVM W0, Full <- Full, VMAXPS W0;
    VMAXPD P66 M0F 0x5f RVM W1, Full <- Full, VMAXPD W0;
    VSCALEFPS P66 M0F38 0x2c RVM W0, Full <- Full;
    VSCALEFPD P66 M0F38 0x2c RVM W1, Full <- Full;
    VGETEXPPS P66 M0F38 0x42 RM W0, Full <- Full;
    VGETEXPPD P66 M0F38 0x42 RM W1, Full <- Full;
    VGETMANTPS P66 M0F3A 0x26 RM W0, Full <- Full;
    VGETMANTPD P66 M0F3A 0x26 RM W1, Full <- Full;
    // Three sources, the first of which is also the destination.
    VFMADD231PS P66 M0F38 0xb8 RVM W0, Full <- Full, VFMADD231PS W0;
    VFMADD231PD P66 M0F38 0xb8 RVM W1, Full <- Full, VFMADD231PD W1;
    VFMADD213PS P66 M0F38 0xa8 RVM W0, Full <- Full, VFMADD213PS W0;
    VFMADD213PD P66 M0F38 0xa8 RVM W1, Full <- Full, VFMADD213PD W1;
    VFMSUB231PS P66 M0F38 0xba RVM W0, Full <- Full, VFMSUB231PS W0;
    VFMSUB231PD P66 M0F38 0xba RVM W1, Full <- Full, VFMSUB231PD W1;
    VFMSUB213PS P66 M0F38 0xaa RVM W0, Full <- Full, VFMSUB213PS W0;
    VFMSUB213PD P66 M0F38 0xaa RVM W1, Full <- Full, VFMSUB213PD W1;
    VFNMADD231PS P66 M0F38 0xbc RVM W0, Full <- Full, VFNMADD231PS W0;
    VFNMADD231PD P66 M0F38 0xbc RVM W1, Full <- Full, VFNMADD231PD W1;
    VFNMADD213PS P66 M0F38 0xac RVM W0, Full <- Full, VFNMADD213PS W0;
    VFNMADD213PD P66 M0F38 0xac RVM W1, Full <- Full, VFNMADD213PD W1;
    VFIXUPIMMPS P66 M0F3A 0x54 RVM W0, Full <- Full;
    VFIXUPIMMPD P66 M0F3A 0x54 RVM W1, Full <- Full;
    VPTERNLOGD P66 M0F3A 0x25 RVM W0, Full <- Full;
    // Bits.
    VPANDD P66 M0F 0xdb RVM W0, Full <- Full, VPAND W0;
    VPANDND P66 M0F 0xdf RVM W0, Full <- Full, VPANDN W0;
    VPORD P66 M0F 0xeb RVM W0, Full <- Full, VPOR W0;
    VPXORD P66 M0F 0xef RVM W0, Full <- Full, VPXOR W0;
    // Integers.
    VPADDB P66 M0F 0xfc RVM W0, Full <- Full, VPADDB W0;
    VPADDW P66 M0F 0xfd RVM W0, Full <- Full, VPADDW W0;
    VPADDD P66 M0F 0xfe RVM W0, Full <- Full, VPADDD W0;
    VPADDQ P66 M0F 0xd4 RVM W1, Full <- Full, VPADDQ W0;
    VPSUBB P66 M0F 0xf8 RVM W0, Full <- Full, VPSUBB W0;
    VPSUBW P66 M0F 0xf9 RVM W0, Full <- Full, VPSUBW W0;
    VPSUBD P66 M0F 0xfa RVM W0, Full <- Full, VPSUBD W0;
    VPSUBQ P66 M0F 0xfb RVM W1, Full <- Full, VPSUBQ W0;
    VPMULLW P66 M0F 0xd5 RVM W0, Full <- Full, VPMULLW W0;
    VPMULLD P66 M0F38 0x40 RVM W0, Full <- Full, VPMULLD W0;
    VPMULLQ P66 M0F38 0x40 RVM W1, Full <- Full;
    VPMAXSB P66 M0F38 0x3c RVM W0, Full <- Full, VPMAXSB W0;
    VPMAXSW P66 M0F 0xee RVM W0, Full <- Full, VPMAXSW W0;
    VPMAXSD P66 M0F38 0x3d RVM W0, Full <- Full, VPMAXSD W0;
    VPMAXSQ P66 M0F38 0x3d RVM W1, Full <- Full;
    VPMAXUB P66 M0F 0xde RVM W0, Full <- Full, VPMAXUB W0;
    VPMAXUW P66 M0F38 0x3e RVM W0, Full <- Full, VPMAXUW W0;
    VPMAXUD P66 M0F38 0x3f RVM W0, Full <- Full, VPMAXUD W0;
    VPMAXUQ P66 M0F38 0x3f RVM W1, Full <- Full;
    VPMINSB P66 M0F38 0x38 RVM W0, Full <- Full, VPMINSB W0;
    VPMINSW P66 M0F 0xea RVM W0, Full <- Full, VPMINSW W0;
    VPMINSD P66 M0F38 0x39 RVM W0, Full <- Full, VPMINSD W0;
    VPMINSQ P66 M0F38 0x39 RVM W1, Full <- Full;
    VPMINUB P66 M0F 0xda RVM W0, Full <- Full, VPMINUB W0;
    VPMINUW P66 M0F38 0x3a RVM W0, Full <- Full, VPMINUW W0;
    VPMINUD P66 M0F38 0x3b RVM W0, Full <- Full, VPMINUD W0;
    VPMINUQ P66 M0F38 0x3b RVM W1, Full <- Full;
    VPABSB P66 M0F38 0x1c RM W0, Full <- Full, VPABSB W0;
    VPABSW P66 M0F38 0x1d RM W0, Full <- Full, VPABSW W0;
    VPABSD P66 M0F38 0x1e RM W0, Full <- Full, VPABSD W0;
    VPABSQ P66 M0F38 0x1f RM W1, Full <- Full;
    VPSLLW P66 M0F 0x71 VM6 W0, Full <- Full, VPSLLW W0;
    VPSRLW P66 M0F 0x71 VM2 W0, Full <- Full, VPSRLW W0;
    VPSRAW P66 M0F 0x71 VM4 W0, Full <- Full, VPSRAW W0;
    VPSLLD P66 M0F 0x72 VM6 W0, Full <- Full, VPSLLD W0;
    VPSLLQ P66 M0F 0x73 VM6 W1, Full <- Full, VPSLLQ W0;
    VPSRLD P66 M0F 0x72 VM2 W0, Full <- Full, VPSRLD W0;
    VPSRLQ P66 M0F 0x73 VM2 W1, Full <- Full, VPSRLQ W0;
    VPSLLVW P66 M0F38 0x12 RVM W1, Full <- Full;
    VPSLLVD P66 M0F38 0x47 RVM W0, Full <- Full, VPSLLVD W0;
    VPSLLVQ P66 M0F38 0x47 RVM W1, Full <- Full, VPSLLVQ W1;
    VPSRLVW P66 M0F38 0x10 RVM W1, Full <- Full;
    VPSRLVD P66 M0F38 0x45 RVM W0, Full <- Full, VPSRLVD W0;
    VPSRLVQ P66 M0F38 0x45 RVM W1, Full <- Full, VPSRLVQ W1;
    VPSRAVW P66 M0F38 0x11 RVM W1, Full <- Full;
    VPSRAVD P66 M0F38 0x46 RVM W0, Full <- Full, VPSRAVD W0;
    VPSRAVQ P66 M0F38 0x46 RVM W1, Full <- Full;
    VPCMPB P66 M0F3A 0x3f RVM W0, Mask <- Full;
    VPCMPW P66 M0F3A 0x3f RVM W1, Mask <- Full;
    VPCMPD P66 M0F3A 0x1f RVM W0, Mask <- Full;
    VPCMPQ P66 M0F3A 0x1f RVM W1, Mask <- Full;
    VPCMPUB P66 M0F3A 0x3e RVM W0, Mask <- Full;
    VPCMPUW P66 M0F3A 0x3e RVM W1, Mask <- Full;
    VPCMPUD P66 M0F3A 0x1e RVM W0, Mask <- Full;
    VPCMPUQ P66 M0F3A 0x1e RVM W1, Mask <- Full;
    VPTESTMB P66 M0F38 0x26 RVM W0, Mask <- Full;
    VPTESTMW P66 M0F38 0x26 RVM W1, Mask <- Full;
    VPTESTMD P66 M0F38 0x27 RVM W0, Mask <- Full;
    VPTESTMQ P66 M0F38 0x27 RVM W1, Mask <- Full;
    VPTESTNMB PF3 M0F38 0x26 RVM W0, Mask <- Full;
    VPTESTNMW PF3 M0F38 0x26 RVM W1, Mask <- Full;
    VPTESTNMD PF3 M0F38 0x27 RVM W0, Mask <- Full;
    VPTESTNMQ PF3 M0F38 0x27 RVM W1, Mask <- Full;
    // Blends and moves under a mask.
    VPBLENDMB P66 M0F38 0x66 RVM W0, Full <- Full;
    VPBLENDMW P66 M0F38 0x66 RVM W1, Full <- Full;
    VPBLENDMD P66 M0F38 0x64 RVM W0, Full <- Full;
    VPBLENDMQ P66 M0F38 0x64 RVM W1, Full <- Full;
    VMOVDQU8 PF2 M0F 0x6f RM W0, Full <- Full;
    VMOVDQU16 PF2 M0F 0x6f RM W1, Full <- Full;
    VMOVDQU32 PF3 M0F 0x6f RM W0, Full <- Full;
    VMOVDQU64 PF3 M0F 0x6f RM W1, Full <- Full;
    // Permutations; of bytes within each 128 bits.
    VPSHUFB P66 M0F38 0x00 RVM W0, Full <- Full, VPSHUFB W0;
    VMOVSLDUP PF3 M0F 0x12 RM W0, Full <- Full, VMOVSLDUP W0;
    VMOVSHDUP PF3 M0F 0x16 RM W0, Full <- Full, VMOVSHDUP W0;
    VPERMILPS_IMM P66 M0F3A 0x04 RM W0, Full <- Full, VPERMILPS W0;
    VPERMILPD_IMM P66 M0F3A 0x05 RM W1, Full <- Full, VPERMILPD W0;
    // Within each 128 bits of the first source: f32 lanes by bits 0 and 1 of the second source's lanes, f64 lanes by bit 1.
    VPERMILPS P66 M0F38 0x0c RVM W0, Full <- Full, VPERMILPS W0;
    VPERMILPD P66 M0F38 0x0d RVM W1, Full <- Full, VPERMILPD W0;
    // The first source (the destination) and the last are one table; the lowest bits of the second's lanes are indices into it.
    VPERMT2PD P66 M0F38 0x7f RVM W1, Full <- Full;
    VPSHUFD P66 M0F 0x70 RM W0, Full <- Full, VPSHUFD W0;
    // Two 128-bit lanes of each source.
    VSHUFI64X2 P66 M0F3A 0x43 RVM W1, Full <- Full [fixed_length Some(2)];
    VPERMW P66 M0F38 0x8d RVM W1, Full <- Full;
    VPMOVM2D PF3 M0F38 0x38 RM W0, Full <- Mask;
    VPMOVM2Q PF3 M0F38 0x38 RM W1, Full <- Mask;
    VPMOVQ2M PF3 M0F38 0x39 RM W1, Mask <- Full;
    // Integer lane widths: sign and zero extension, truncation, signed and unsigned saturation.
    VPMOVSXBW P66 M0F38 0x20 RM W0, Full <- Half, VPMOVSXBW W0;
    VPMOVSXBD P66 M0F38 0x21 RM W0, Full <- Quarter, VPMOVSXBD W0;
    VPMOVSXBQ P66 M0F38 0x22 RM W0, Full <- Eighth, VPMOVSXBQ W0;
    VPMOVSXWD P66 M0F38 0x23 RM W0, Full <- Half, VPMOVSXWD W0;
    VPMOVSXWQ P66 M0F38 0x24 RM W0, Full <- Quarter, VPMOVSXWQ W0;
    VPMOVSXDQ P66 M0F38 0x25 RM W0, Full <- Half, VPMOVSXDQ W0;
    VPMOVZXBW P66 M0F38 0x30 RM W0, Full <- Half, VPMOVZXBW W0;
    VPMOVZXBD P66 M0F38 0x31 RM W0, Full <- Quarter, VPMOVZXBD W0;
    VPMOVZXBQ P66 M0F38 0x32 RM W0, Full <- Eighth, VPMOVZXBQ W0;
    VPMOVZXWD P66 M0F38 0x33 RM W0, Full <- Half, VPMOVZXWD W0;
    VPMOVZXWQ P66 M0F38 0x34 RM W0, Full <- Quarter, VPMOVZXWQ W0;
    VPMOVZXDQ P66 M0F38 0x35 RM W0, Full <- Half, VPMOVZXDQ W0;
    VPMOVWB PF3 M0F38 0x30 MR W0, Half <- Full;
    VPMOVDB PF3 M0F38 0x31 MR W0, Quarter <- Full;
    VPMOVQB PF3 M0F38 0x32 MR W0, Eighth <- Full;
    VPMOVDW PF3 M0F38 0x33 MR W0, Half <- Full;
    VPMOVQW PF3 M0F38 0x34 MR W0, Quarter <- Full;
    VPMOVQD PF3 M0F38 0x35 MR W0, Half <- Full;
    VPMOVSDB PF3 M0F38 0x21 MR W0, Quarter <- Full;
    VPMOVSDW PF3 M0F38 0x23 MR W0, Half <- Full;
    VPMOVUSDB PF3 M0F38 0x11 MR W0, Quarter <- Full;
    VPMOVUSDW PF3 M0F38 0x13 MR W0, Half <- Full;
    // Conversions.
    VCVTPS2PD NP M0F 0x5a RM W0, Full <- Half, VCVTPS2PD W0;
    VCVTPD2PS P66 M0F 0x5a RM W1, Half <- Full, VCVTPD2PS W0;
    VCVTDQ2PS NP M0F 0x5b RM W0, Full <- Full, VCVTDQ2PS W0;
    VCVTDQ2PD PF3 M0F 0xe6 RM W0, Full <- Half, VCVTDQ2PD W0;
    VCVTQQ2PS NP M0F 0x5b RM W1, Half <- Full;
    VCVTQQ2PD PF3 M0F 0xe6 RM W1, Full <- Full;
    VCVTUDQ2PS PF2 M0F 0x7a RM W0, Full <- Full;
    VCVTUDQ2PD PF3 M0F 0x7a RM W0, Full <- Half;
    VCVTUQQ2PS PF2 M0F 0x7a RM W1, Half <- Full;
    VCVTUQQ2PD PF3 M0F 0x7a RM W1, Full <- Full;
    VCVTTPS2DQ PF3 M0F 0x5b RM W0, Full <- Full, VCVTTPS2DQ W0;
    VCVTTPS2QQ P66 M0F 0x7a RM W0, Full <- Half;
    VCVTTPD2DQ P66 M0F 0xe6 RM W1, Half <- Full, VCVTTPD2DQ W0;
    VCVTTPD2QQ P66 M0F 0x7a RM W1, Full <- Full;
    // The largest integer for numbers beyond the range and for NaNs.
    VCVTTPS2UDQ NP M0F 0x78 RM W0, Full <- Full;
    VCVTTPS2UQQ P66 M0F 0x78 RM W0, Full <- Half;
    VCVTTPD2UDQ NP M0F 0x78 RM W1, Half <- Full;
    VCVTTPD2UQQ P66 M0F 0x78 RM W1, Full <- Full;
    VCVTPH2PS P66 M0F38 0x13 RM W0, Full <- Half, VCVTPH2PS W0;
    VCVTPS2PH P66 M0F3A 0x1d MR W0, Half <- Full, VCVTPS2PH W0;
}

/// Mask instructions, on all 64 bits: bits beyond the lanes are unspecified.
pub(super) mod masks {
    use super::{Code, Instruction, Shape, columns};

    instructions! { true;
        KANDQ NP M0F 0x41 RVM W1, Mask <- Mask [fixed_length Some(1)];
        KANDNQ NP M0F 0x42 RVM W1, Mask <- Mask [fixed_length Some(1)];
        KORQ NP M0F 0x45 RVM W1, Mask <- Mask [fixed_length Some(1)];
        KXORQ NP M0F 0x47 RVM W1, Mask <- Mask [fixed_length Some(1)];
        KXNORQ NP M0F 0x46 RVM W1, Mask <- Mask [fixed_length Some(1)];
        KNOTQ NP M0F 0x44 RM W1, Mask <- Mask [fixed_length Some(0)];
        KMOVQ_LOAD NP M0F 0x90 RM W1, Mask <- Mask [fixed_length Some(0)];
        KMOVQ_STORE NP M0F 0x91 MR W1, Mask <- Mask [fixed_length Some(0)];
        // From a general register.
        KMOVQ_GENERAL PF2 M0F 0x92 RM W1, Mask <- Full [fixed_length Some(0)];
        // ZF is set if the lowest 16 bits are zero.
        KORTESTW NP M0F 0x98 RM W0, Mask <- Mask [fixed_length Some(0)];
    }
}
pub(super) use masks::{KANDNQ, KANDQ, KNOTQ, KORQ, KXNORQ, KXORQ};

/// Moves between vector registers and memory: stores, parts of a vector, broadcasts.
pub(super) mod moves {
    use super::{Code, Instruction, Shape, columns};

    instructions! { false;
        VMOVDQU8_STORE PF2 M0F 0x7f MR W0, Full <- Full;
        VMOVDQU16_STORE PF2 M0F 0x7f MR W1, Full <- Full;
        VMOVDQU32_STORE PF3 M0F 0x7f MR W0, Full <- Full;
        VMOVDQU64_STORE PF3 M0F 0x7f MR W1, Full <- Full;
        // Non-temporal.
        VMOVNTDQ P66 M0F 0xe7 MR W0, Full <- Full, VMOVNTDQ W0;
        // The lowest 4 or 8 bytes of a register.
        VMOVD_LOAD P66 M0F 0x6e RM W0, Full <- Full [memory_bytes 4], VMOVD W0;
        VMOVQ_LOAD PF3 M0F 0x7e RM W1, Full <- Full [memory_bytes 8], VMOVQ W0;
        VMOVD_STORE P66 M0F 0x7e MR W0, Full <- Full [memory_bytes 4], VMOVD W0;
        VMOVQ_STORE P66 M0F 0xd6 MR W1, Full <- Full [memory_bytes 8], VMOVQ W0;
        // One element of memory in every lane.
        VPBROADCASTB P66 M0F38 0x78 RM W0, Full <- Full [memory_bytes 1], VPBROADCASTB W0;
        VPBROADCASTW P66 M0F38 0x79 RM W0, Full <- Full [memory_bytes 2], VPBROADCASTW W0;
        VPBROADCASTD P66 M0F38 0x58 RM W0, Full <- Full [memory_bytes 4], VPBROADCASTD W0;
        VPBROADCASTQ P66 M0F38 0x59 RM W1, Full <- Full [memory_bytes 8], VPBROADCASTQ W0;
        VBROADCASTI64X2 P66 M0F38 0x5a RM W1, Full <- Full [memory_bytes 16], VBROADCASTI128 W0;
    }
}

/// Instructions that only AVX2 loops use. A boolean is a vector there, each lane all ones or all zeros.
pub(super) mod avx2 {
    use super::{Code, Instruction, Shape, columns};

    instructions! { true;
        VCMPPS NP M0F 0xc2 RVM W0, Full <- Full;
        VCMPPD P66 M0F 0xc2 RVM W0, Full <- Full;
        VPCMPEQB P66 M0F 0x74 RVM W0, Full <- Full;
        VPCMPEQW P66 M0F 0x75 RVM W0, Full <- Full;
        VPCMPEQD P66 M0F 0x76 RVM W0, Full <- Full;
        VPCMPEQQ P66 M0F38 0x29 RVM W0, Full <- Full;
        VPCMPGTB P66 M0F 0x64 RVM W0, Full <- Full;
        VPCMPGTW P66 M0F 0x65 RVM W0, Full <- Full;
        VPCMPGTD P66 M0F 0x66 RVM W0, Full <- Full;
        VPCMPGTQ P66 M0F38 0x37 RVM W0, Full <- Full;
        // The second source where the top bit of the mask's byte is set, else the first.
        VPBLENDVB P66 M0F3A 0x4c RVMM W0, Full <- Full;
        VPMULUDQ P66 M0F 0xf4 RVM W0, Full <- Full;
        VPSRAD P66 M0F 0x72 VM4 W0, Full <- Full;
        // Within each 128-bit half.
        VPACKSSDW P66 M0F 0x6b RVM W0, Full <- Full;
        VPACKSSWB P66 M0F 0x63 RVM W0, Full <- Full;
        VPACKUSDW P66 M0F38 0x2b RVM W0, Full <- Full;
        // Quadwords in the order of the immediate; the upper half of a vector.
        VPERMQ P66 M0F3A 0x00 RM W1, Full <- Full [fixed_length Some(1)];
        VEXTRACTI128 P66 M0F3A 0x39 MR W0, Half <- Full [fixed_length Some(1)];
        // Two halves of both sources; words of the second source where the immediate has a bit, in both halves.
        VPERM2I128 P66 M0F3A 0x46 RVM W0, Full <- Full [fixed_length Some(1)];
        VPBLENDW P66 M0F3A 0x0e RVM W0, Full <- Full;
        VMOVDQU PF3 M0F 0x6f RM W0, Full <- Full;
        VMOVDQU_STORE PF3 M0F 0x7f MR W0, Full <- Full;
        VMOVDQA P66 M0F 0x6f RM W0, Full <- Full;
        // One element of memory to or from the lowest lane.
        VPINSRB P66 M0F3A 0x20 RVM W0, Full <- Full [fixed_length Some(0)];
        VPINSRW P66 M0F 0xc4 RVM W0, Full <- Full [fixed_length Some(0)];
        VPEXTRB P66 M0F3A 0x14 MR W0, Full <- Full [fixed_length Some(0)];
        VPEXTRW P66 M0F3A 0x15 MR W0, Full <- Full [fixed_length Some(0)];
        // ZF is set if all bits are zero.
        VPTEST P66 M0F38 0x17 RM W0, Full <- Full;
    }
}
