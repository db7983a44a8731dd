//! The instructions that the wide generator uses on vectors: the only ones that it can emit into a loop's body.
//!
//! Guarantees: no instruction here traps on data (floating-point exceptions are masked, and no integer division, no
//! alignment check and no gather is listed). A row has the instruction's name, its prefix, opcode and operands in the
//! manual's terms, and the registers of its result and its sources; behind them, if AVX2 has it too, its name there. A test
//! decodes every form at every length. Does not: know what they are used for, or write their bytes; `asm` does.

/// How much of a vector an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A vector of the instruction's length.
    Full,
    /// A vector of half the length, but at least 128 bits; of a quarter; of an eighth.
    Half,
    Quarter,
    Eighth,
    /// A mask register.
    Mask,
}

impl Shape {
    /// How often the length is halved.
    pub(super) fn less(self) -> u8 {
        match self {
            Shape::Full | Shape::Mask => 0,
            Shape::Half => 1,
            Shape::Quarter => 2,
            Shape::Eighth => 3,
        }
    }
}

/// Where an instruction has its operands, in the manual's letters: the register field, VEX.vvvv, and the r/m field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Rvm,
    Rm,
    Mr,
    /// With a part of the opcode in the register field.
    Vm(u8),
    /// A mask in the immediate.
    RvmMask,
}

/// What an instruction is without its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// Of AVX, AVX2 or masks, and not of AVX-512's vectors.
    pub(super) vex: bool,
    /// None, 66, F3, F2.
    pub(super) prefix: u8,
    /// 0F, 0F38, 0F3A from 1 on.
    pub(super) map: u8,
    pub(super) opcode: u8,
    /// The bit W.
    pub(super) wide: bool,
    pub(super) layout: Layout,
    /// If AVX2 has the same instruction, its bit W there.
    pub(super) same: Option<bool>,
}

/// An instruction, and the registers of its result and of its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) code: Code,
    pub(super) dst: Shape,
    pub(super) src: Shape,
    /// The bytes that it reads or writes in memory; 0: those of the operand there.
    pub(super) unit: u8,
    /// The index of its vector length, if it has only one.
    pub(super) only: Option<u8>,
}

/// The index of the vector length that holds this many bytes: 0 for 128 bits, 1 for 256, 2 for 512.
pub(super) fn length(bytes: usize) -> u8 {
    match bytes {
        0..=16 => 0,
        17..=32 => 1,
        _ => 2,
    }
}

/// The same instruction of AVX2, if there is one.
pub(super) fn vex(form: Form) -> Option<Form> {
    let wide = form.code.same?;
    Some(Form { code: Code { vex: true, wide, same: None, ..form.code }, ..form })
}

/// An instruction of three sources overwrites one of them. Says how, if the result may take the register of the addend
/// (`true`) or of the first factor; of the others only the first source can go.
pub(super) fn overwriting(form: Form, addend: bool) -> Option<Form> {
    let single = [(FMA231PS, FMA213PS), (FMS231PS, FMS213PS), (FNMA231PS, FNMA213PS)];
    let double = [(FMA231PD, FMA213PD), (FMS231PD, FMS213PD), (FNMA231PD, FNMA213PD)];
    single.into_iter().chain(double).find_map(|(first, second)| {
        let chosen = if addend { first } else { second };
        if form == first { Some(chosen) } else { vex(first).filter(|f| *f == form).and_then(|_| vex(chosen)) }
    })
}

/// Whether the sources of an instruction of AVX2 can change places. The NaN that comes of two may be another one.
pub(super) fn commutes(form: Form) -> bool {
    [ADDPS, ADDPD, MULPS, MULPD, AND, OR, XOR, PADDB, PADDW, PADDD, PADDQ].into_iter().any(|f| vex(f) == Some(form))
}

/// What is no instruction has an opcode of its own in a map that there is not.
const fn none(opcode: u8) -> Form {
    let code = Code { vex: false, prefix: 0, map: 0, opcode, wide: false, layout: Layout::Rm, same: None };
    Form { code, dst: Shape::Full, src: Shape::Full, unit: 0, only: None }
}

/// No instruction: where a lane of the mask is set, a function of [`crate::kernels::vector_call`] computes all lanes of the second
/// source instead of those of the first, which has the result's register. The immediate is the function's index.
pub(super) const RESCUE: Form = none(0);

/// No instruction: the lanes of a sum with the source added, in a loop that adds up; nothing in others.
pub(super) const ADDED: Form = none(1);

/// The columns of the rows.
mod columns {
    use super::Layout;
    pub(super) use super::Layout::{Mr as MR, Rm as RM, Rvm as RVM, RvmMask as RVMM};

    pub(super) const VM2: Layout = Layout::Vm(2);
    pub(super) const VM4: Layout = Layout::Vm(4);
    pub(super) const VM6: Layout = Layout::Vm(6);
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

/// A form with its name in the manual, and that of the same instruction of AVX2.
#[cfg(test)]
pub(super) struct Named {
    pub(super) form: Form,
    pub(super) first: &'static str,
    pub(super) same: Option<&'static str>,
}

macro_rules! forms {
    ($vex:literal; $(
        $name:ident = $first:ident $prefix:ident $map:ident $opcode:literal $layout:ident $w:ident,
        $dst:ident <- $src:ident $([$field:ident $value:expr])? $(, $same:ident $same_w:ident)?;
    )*) => {
        $(pub(in crate::backend::x64) const $name: Form = {
            let same = [$(Some(columns::$same_w),)? None][0];
            let code = Code {
                vex: $vex,
                prefix: columns::$prefix,
                map: columns::$map,
                opcode: $opcode,
                wide: columns::$w,
                layout: columns::$layout,
                same,
            };
            let form = Form { code, dst: Shape::$dst, src: Shape::$src, unit: 0, only: None };
            $(let form = Form { $field: $value, ..form };)?
            form
        };)*

        /// Every form of the table.
        #[cfg(test)]
        pub(in crate::backend::x64) const ALL: &[$crate::backend::x64::instructions::Named] = &[$($crate::backend::x64::instructions::Named {
            form: $name,
            first: stringify!($first),
            same: [$(Some(stringify!($same)),)? None][0],
        }),*];
    };
}

forms! { false;
    // Floats.
    ADDPS = Vaddps NP M0F 0x58 RVM W0, Full <- Full, Vaddps W0;
    ADDPD = Vaddpd P66 M0F 0x58 RVM W1, Full <- Full, Vaddpd W0;
    SUBPS = Vsubps NP M0F 0x5c RVM W0, Full <- Full, Vsubps W0;
    SUBPD = Vsubpd P66 M0F 0x5c RVM W1, Full <- Full, Vsubpd W0;
    MULPS = Vmulps NP M0F 0x59 RVM W0, Full <- Full, Vmulps W0;
    MULPD = Vmulpd P66 M0F 0x59 RVM W1, Full <- Full, Vmulpd W0;
    DIVPS = Vdivps NP M0F 0x5e RVM W0, Full <- Full, Vdivps W0;
    DIVPD = Vdivpd P66 M0F 0x5e RVM W1, Full <- Full, Vdivpd W0;
    SQRTPS = Vsqrtps NP M0F 0x51 RM W0, Full <- Full, Vsqrtps W0;
    SQRTPD = Vsqrtpd P66 M0F 0x51 RM W1, Full <- Full, Vsqrtpd W0;
    RNDPS = Vrndscaleps P66 M0F3A 0x08 RM W0, Full <- Full, Vroundps W0;
    RNDPD = Vrndscalepd P66 M0F3A 0x09 RM W1, Full <- Full, Vroundpd W0;
    RANGEPS = Vrangeps P66 M0F3A 0x50 RVM W0, Full <- Full;
    RANGEPD = Vrangepd P66 M0F3A 0x50 RVM W1, Full <- Full;
    CMPPS = Vcmpps NP M0F 0xc2 RVM W0, Mask <- Full;
    CMPPD = Vcmppd P66 M0F 0xc2 RVM W1, Mask <- Full;
    // The smaller or larger; the second source if one is NaN, or if they are equal.
    MINPS = Vminps NP M0F 0x5d RVM W0, Full <- Full, Vminps W0;
    MINPD = Vminpd P66 M0F 0x5d RVM W1, Full <- Full, Vminpd W0;
    MAXPS = Vmaxps NP M0F 0x5f RVM W0, Full <- Full, Vmaxps W0;
    MAXPD = Vmaxpd P66 M0F 0x5f RVM W1, Full <- Full, Vmaxpd W0;
    SCALEPS = Vscalefps P66 M0F38 0x2c RVM W0, Full <- Full;
    SCALEPD = Vscalefpd P66 M0F38 0x2c RVM W1, Full <- Full;
    EXPONENTPS = Vgetexpps P66 M0F38 0x42 RM W0, Full <- Full;
    EXPONENTPD = Vgetexppd P66 M0F38 0x42 RM W1, Full <- Full;
    MANTISSAPS = Vgetmantps P66 M0F3A 0x26 RM W0, Full <- Full;
    MANTISSAPD = Vgetmantpd P66 M0F3A 0x26 RM W1, Full <- Full;
    // Three sources, the first of which is the result's register: `a·b + c` with the operand numbers' order in the name.
    FMA231PS = Vfmadd231ps P66 M0F38 0xb8 RVM W0, Full <- Full, Vfmadd231ps W0;
    FMA231PD = Vfmadd231pd P66 M0F38 0xb8 RVM W1, Full <- Full, Vfmadd231pd W1;
    FMA213PS = Vfmadd213ps P66 M0F38 0xa8 RVM W0, Full <- Full, Vfmadd213ps W0;
    FMA213PD = Vfmadd213pd P66 M0F38 0xa8 RVM W1, Full <- Full, Vfmadd213pd W1;
    FMS231PS = Vfmsub231ps P66 M0F38 0xba RVM W0, Full <- Full, Vfmsub231ps W0;
    FMS231PD = Vfmsub231pd P66 M0F38 0xba RVM W1, Full <- Full, Vfmsub231pd W1;
    FMS213PS = Vfmsub213ps P66 M0F38 0xaa RVM W0, Full <- Full, Vfmsub213ps W0;
    FMS213PD = Vfmsub213pd P66 M0F38 0xaa RVM W1, Full <- Full, Vfmsub213pd W1;
    FNMA231PS = Vfnmadd231ps P66 M0F38 0xbc RVM W0, Full <- Full, Vfnmadd231ps W0;
    FNMA231PD = Vfnmadd231pd P66 M0F38 0xbc RVM W1, Full <- Full, Vfnmadd231pd W1;
    FNMA213PS = Vfnmadd213ps P66 M0F38 0xac RVM W0, Full <- Full, Vfnmadd213ps W0;
    FNMA213PD = Vfnmadd213pd P66 M0F38 0xac RVM W1, Full <- Full, Vfnmadd213pd W1;
    FIXUPPS = Vfixupimmps P66 M0F3A 0x54 RVM W0, Full <- Full;
    FIXUPPD = Vfixupimmpd P66 M0F3A 0x54 RVM W1, Full <- Full;
    LOGICD = Vpternlogd P66 M0F3A 0x25 RVM W0, Full <- Full;
    // Bits.
    AND = Vpandd P66 M0F 0xdb RVM W0, Full <- Full, Vpand W0;
    ANDN = Vpandnd P66 M0F 0xdf RVM W0, Full <- Full, Vpandn W0;
    OR = Vpord P66 M0F 0xeb RVM W0, Full <- Full, Vpor W0;
    XOR = Vpxord P66 M0F 0xef RVM W0, Full <- Full, Vpxor W0;
    // Integers.
    PADDB = Vpaddb P66 M0F 0xfc RVM W0, Full <- Full, Vpaddb W0;
    PADDW = Vpaddw P66 M0F 0xfd RVM W0, Full <- Full, Vpaddw W0;
    PADDD = Vpaddd P66 M0F 0xfe RVM W0, Full <- Full, Vpaddd W0;
    PADDQ = Vpaddq P66 M0F 0xd4 RVM W1, Full <- Full, Vpaddq W0;
    PSUBB = Vpsubb P66 M0F 0xf8 RVM W0, Full <- Full, Vpsubb W0;
    PSUBW = Vpsubw P66 M0F 0xf9 RVM W0, Full <- Full, Vpsubw W0;
    PSUBD = Vpsubd P66 M0F 0xfa RVM W0, Full <- Full, Vpsubd W0;
    PSUBQ = Vpsubq P66 M0F 0xfb RVM W1, Full <- Full, Vpsubq W0;
    PMULLW = Vpmullw P66 M0F 0xd5 RVM W0, Full <- Full, Vpmullw W0;
    PMULLD = Vpmulld P66 M0F38 0x40 RVM W0, Full <- Full, Vpmulld W0;
    PMULLQ = Vpmullq P66 M0F38 0x40 RVM W1, Full <- Full;
    PMAXSB = Vpmaxsb P66 M0F38 0x3c RVM W0, Full <- Full, Vpmaxsb W0;
    PMAXSW = Vpmaxsw P66 M0F 0xee RVM W0, Full <- Full, Vpmaxsw W0;
    PMAXSD = Vpmaxsd P66 M0F38 0x3d RVM W0, Full <- Full, Vpmaxsd W0;
    PMAXSQ = Vpmaxsq P66 M0F38 0x3d RVM W1, Full <- Full;
    PMAXUB = Vpmaxub P66 M0F 0xde RVM W0, Full <- Full, Vpmaxub W0;
    PMINSB = Vpminsb P66 M0F38 0x38 RVM W0, Full <- Full, Vpminsb W0;
    PMINSW = Vpminsw P66 M0F 0xea RVM W0, Full <- Full, Vpminsw W0;
    PMINSD = Vpminsd P66 M0F38 0x39 RVM W0, Full <- Full, Vpminsd W0;
    PMINSQ = Vpminsq P66 M0F38 0x39 RVM W1, Full <- Full;
    PMINUB = Vpminub P66 M0F 0xda RVM W0, Full <- Full, Vpminub W0;
    PABSB = Vpabsb P66 M0F38 0x1c RM W0, Full <- Full, Vpabsb W0;
    PABSW = Vpabsw P66 M0F38 0x1d RM W0, Full <- Full, Vpabsw W0;
    PABSD = Vpabsd P66 M0F38 0x1e RM W0, Full <- Full, Vpabsd W0;
    PABSQ = Vpabsq P66 M0F38 0x1f RM W1, Full <- Full;
    PSLLW = Vpsllw P66 M0F 0x71 VM6 W0, Full <- Full, Vpsllw W0;
    PSRLW = Vpsrlw P66 M0F 0x71 VM2 W0, Full <- Full, Vpsrlw W0;
    PSRAW = Vpsraw P66 M0F 0x71 VM4 W0, Full <- Full, Vpsraw W0;
    PSLLD = Vpslld P66 M0F 0x72 VM6 W0, Full <- Full, Vpslld W0;
    PSLLQ = Vpsllq P66 M0F 0x73 VM6 W1, Full <- Full, Vpsllq W0;
    PSRLD = Vpsrld P66 M0F 0x72 VM2 W0, Full <- Full, Vpsrld W0;
    PSRLQ = Vpsrlq P66 M0F 0x73 VM2 W1, Full <- Full, Vpsrlq W0;
    PSLLVW = Vpsllvw P66 M0F38 0x12 RVM W1, Full <- Full;
    PSLLVD = Vpsllvd P66 M0F38 0x47 RVM W0, Full <- Full, Vpsllvd W0;
    PSLLVQ = Vpsllvq P66 M0F38 0x47 RVM W1, Full <- Full, Vpsllvq W1;
    PSRLVW = Vpsrlvw P66 M0F38 0x10 RVM W1, Full <- Full;
    PSRAVW = Vpsravw P66 M0F38 0x11 RVM W1, Full <- Full;
    PSRAVD = Vpsravd P66 M0F38 0x46 RVM W0, Full <- Full, Vpsravd W0;
    PSRAVQ = Vpsravq P66 M0F38 0x46 RVM W1, Full <- Full;
    PCMPB = Vpcmpb P66 M0F3A 0x3f RVM W0, Mask <- Full;
    PCMPW = Vpcmpw P66 M0F3A 0x3f RVM W1, Mask <- Full;
    PCMPD = Vpcmpd P66 M0F3A 0x1f RVM W0, Mask <- Full;
    PCMPQ = Vpcmpq P66 M0F3A 0x1f RVM W1, Mask <- Full;
    PCMPUB = Vpcmpub P66 M0F3A 0x3e RVM W0, Mask <- Full;
    PTESTMB = Vptestmb P66 M0F38 0x26 RVM W0, Mask <- Full;
    PTESTMW = Vptestmw P66 M0F38 0x26 RVM W1, Mask <- Full;
    PTESTMD = Vptestmd P66 M0F38 0x27 RVM W0, Mask <- Full;
    PTESTMQ = Vptestmq P66 M0F38 0x27 RVM W1, Mask <- Full;
    PTESTNMB = Vptestnmb PF3 M0F38 0x26 RVM W0, Mask <- Full;
    PTESTNMW = Vptestnmw PF3 M0F38 0x26 RVM W1, Mask <- Full;
    PTESTNMD = Vptestnmd PF3 M0F38 0x27 RVM W0, Mask <- Full;
    PTESTNMQ = Vptestnmq PF3 M0F38 0x27 RVM W1, Mask <- Full;
    // Choosing and moving by masks.
    BLENDB = Vpblendmb P66 M0F38 0x66 RVM W0, Full <- Full;
    BLENDW = Vpblendmw P66 M0F38 0x66 RVM W1, Full <- Full;
    BLENDD = Vpblendmd P66 M0F38 0x64 RVM W0, Full <- Full;
    BLENDQ = Vpblendmq P66 M0F38 0x64 RVM W1, Full <- Full;
    MOVB = Vmovdqu8 PF2 M0F 0x6f RM W0, Full <- Full;
    MOVW = Vmovdqu16 PF2 M0F 0x6f RM W1, Full <- Full;
    MOVD = Vmovdqu32 PF3 M0F 0x6f RM W0, Full <- Full;
    MOVQ = Vmovdqu64 PF3 M0F 0x6f RM W1, Full <- Full;
    // Pairs of lanes.
    SLDUP = Vmovsldup PF3 M0F 0x12 RM W0, Full <- Full, Vmovsldup W0;
    SHDUP = Vmovshdup PF3 M0F 0x16 RM W0, Full <- Full, Vmovshdup W0;
    PERMPS = Vpermilps P66 M0F3A 0x04 RM W0, Full <- Full, Vpermilps W0;
    PERMPD = Vpermilpd P66 M0F3A 0x05 RM W1, Full <- Full, Vpermilpd W0;
    // Lanes of the first source, by the lowest bits of the second's (of doubles, the second lowest).
    PICKPS = Vpermilps P66 M0F38 0x0c RVM W0, Full <- Full, Vpermilps W0;
    PICKPD = Vpermilpd P66 M0F38 0x0d RVM W1, Full <- Full, Vpermilpd W0;
    // Lanes of the first and of the third source, which are one table, by the lowest bits of the second's.
    TABLEPD = Vpermt2pd P66 M0F38 0x7f RVM W1, Full <- Full;
    PSHUFD = Vpshufd P66 M0F 0x70 RM W0, Full <- Full, Vpshufd W0;
    // 128 bits each of both sources.
    JOIN = Vshufi64x2 P66 M0F3A 0x43 RVM W1, Full <- Full [only Some(2)];
    PERMW = Vpermw P66 M0F38 0x8d RVM W1, Full <- Full;
    MASKD = Vpmovm2d PF3 M0F38 0x38 RM W0, Full <- Mask;
    MASKQ = Vpmovm2q PF3 M0F38 0x38 RM W1, Full <- Mask;
    Q2MASK = Vpmovq2m PF3 M0F38 0x39 RM W1, Mask <- Full;
    // Lane widths.
    SXBW = Vpmovsxbw P66 M0F38 0x20 RM W0, Full <- Half, Vpmovsxbw W0;
    SXBD = Vpmovsxbd P66 M0F38 0x21 RM W0, Full <- Quarter, Vpmovsxbd W0;
    SXBQ = Vpmovsxbq P66 M0F38 0x22 RM W0, Full <- Eighth, Vpmovsxbq W0;
    SXWD = Vpmovsxwd P66 M0F38 0x23 RM W0, Full <- Half, Vpmovsxwd W0;
    SXWQ = Vpmovsxwq P66 M0F38 0x24 RM W0, Full <- Quarter, Vpmovsxwq W0;
    SXDQ = Vpmovsxdq P66 M0F38 0x25 RM W0, Full <- Half, Vpmovsxdq W0;
    ZXBW = Vpmovzxbw P66 M0F38 0x30 RM W0, Full <- Half, Vpmovzxbw W0;
    ZXBD = Vpmovzxbd P66 M0F38 0x31 RM W0, Full <- Quarter, Vpmovzxbd W0;
    ZXBQ = Vpmovzxbq P66 M0F38 0x32 RM W0, Full <- Eighth, Vpmovzxbq W0;
    ZXWD = Vpmovzxwd P66 M0F38 0x33 RM W0, Full <- Half, Vpmovzxwd W0;
    ZXDQ = Vpmovzxdq P66 M0F38 0x35 RM W0, Full <- Half, Vpmovzxdq W0;
    CUTWB = Vpmovwb PF3 M0F38 0x30 MR W0, Half <- Full;
    CUTDB = Vpmovdb PF3 M0F38 0x31 MR W0, Quarter <- Full;
    CUTQB = Vpmovqb PF3 M0F38 0x32 MR W0, Eighth <- Full;
    CUTDW = Vpmovdw PF3 M0F38 0x33 MR W0, Half <- Full;
    CUTQW = Vpmovqw PF3 M0F38 0x34 MR W0, Quarter <- Full;
    CUTQD = Vpmovqd PF3 M0F38 0x35 MR W0, Half <- Full;
    SATDB = Vpmovsdb PF3 M0F38 0x21 MR W0, Quarter <- Full;
    SATDW = Vpmovsdw PF3 M0F38 0x23 MR W0, Half <- Full;
    SATUDB = Vpmovusdb PF3 M0F38 0x11 MR W0, Quarter <- Full;
    // Conversions.
    PS2PD = Vcvtps2pd NP M0F 0x5a RM W0, Full <- Half, Vcvtps2pd W0;
    PD2PS = Vcvtpd2ps P66 M0F 0x5a RM W1, Half <- Full, Vcvtpd2ps W0;
    DQ2PS = Vcvtdq2ps NP M0F 0x5b RM W0, Full <- Full, Vcvtdq2ps W0;
    DQ2PD = Vcvtdq2pd PF3 M0F 0xe6 RM W0, Full <- Half, Vcvtdq2pd W0;
    QQ2PS = Vcvtqq2ps NP M0F 0x5b RM W1, Half <- Full;
    QQ2PD = Vcvtqq2pd PF3 M0F 0xe6 RM W1, Full <- Full;
    PS2DQ = Vcvttps2dq PF3 M0F 0x5b RM W0, Full <- Full, Vcvttps2dq W0;
    PS2QQ = Vcvttps2qq P66 M0F 0x7a RM W0, Full <- Half;
    PD2DQ = Vcvttpd2dq P66 M0F 0xe6 RM W1, Half <- Full, Vcvttpd2dq W0;
    PD2QQ = Vcvttpd2qq P66 M0F 0x7a RM W1, Full <- Full;
    PH2PS = Vcvtph2ps P66 M0F38 0x13 RM W0, Full <- Half, Vcvtph2ps W0;
    PS2PH = Vcvtps2ph P66 M0F3A 0x1d MR W0, Half <- Full, Vcvtps2ph W0;
}

/// Logic of masks, all 64 bits: those beyond the lanes mean nothing.
pub(super) mod masks {
    use super::{Code, Form, Shape, columns};

    forms! { true;
        KAND = Kandq NP M0F 0x41 RVM W1, Mask <- Mask [only Some(1)];
        KANDN = Kandnq NP M0F 0x42 RVM W1, Mask <- Mask [only Some(1)];
        KOR = Korq NP M0F 0x45 RVM W1, Mask <- Mask [only Some(1)];
        KXOR = Kxorq NP M0F 0x47 RVM W1, Mask <- Mask [only Some(1)];
        KXNOR = Kxnorq NP M0F 0x46 RVM W1, Mask <- Mask [only Some(1)];
        KNOT = Knotq NP M0F 0x44 RM W1, Mask <- Mask [only Some(0)];
        KLOAD = Kmovq NP M0F 0x90 RM W1, Mask <- Mask [only Some(0)];
        KSTORE = Kmovq NP M0F 0x91 MR W1, Mask <- Mask [only Some(0)];
        // Of a general register.
        KFROM = Kmovq PF2 M0F 0x92 RM W1, Mask <- Full [only Some(0)];
        // Whether all of the lowest 16 are clear.
        KTEST = Kortestw NP M0F 0x98 RM W0, Mask <- Mask [only Some(0)];
    }
}
pub(super) use masks::{KAND, KANDN, KNOT, KOR, KXNOR, KXOR};

/// What moves between vectors and memory, beside the moves above.
pub(super) mod moves {
    use super::{Code, Form, Shape, columns};

    forms! { false;
        STOREB = Vmovdqu8 PF2 M0F 0x7f MR W0, Full <- Full;
        STOREW = Vmovdqu16 PF2 M0F 0x7f MR W1, Full <- Full;
        STORED = Vmovdqu32 PF3 M0F 0x7f MR W0, Full <- Full;
        STOREQ = Vmovdqu64 PF3 M0F 0x7f MR W1, Full <- Full;
        // Past the caches.
        STREAM = Vmovntdq P66 M0F 0xe7 MR W0, Full <- Full, Vmovntdq W0;
        // The lowest bytes.
        LOAD4 = Vmovd P66 M0F 0x6e RM W0, Full <- Full [unit 4], Vmovd W0;
        LOAD8 = Vmovq PF3 M0F 0x7e RM W1, Full <- Full [unit 8], Vmovq W0;
        STORE4 = Vmovd P66 M0F 0x7e MR W0, Full <- Full [unit 4], Vmovd W0;
        STORE8 = Vmovq P66 M0F 0xd6 MR W1, Full <- Full [unit 8], Vmovq W0;
        // One element in every lane.
        SPLATB = Vpbroadcastb P66 M0F38 0x78 RM W0, Full <- Full [unit 1], Vpbroadcastb W0;
        SPLATW = Vpbroadcastw P66 M0F38 0x79 RM W0, Full <- Full [unit 2], Vpbroadcastw W0;
        SPLATD = Vpbroadcastd P66 M0F38 0x58 RM W0, Full <- Full [unit 4], Vpbroadcastd W0;
        SPLATQ = Vpbroadcastq P66 M0F38 0x59 RM W1, Full <- Full [unit 8], Vpbroadcastq W0;
        SPLATX = Vbroadcasti64x2 P66 M0F38 0x5a RM W1, Full <- Full [unit 16], Vbroadcasti128 W0;
    }
}

/// What only the loops for AVX2 use. Truth values are vectors there: all bits of a lane, or none.
pub(super) mod avx2 {
    use super::{Code, Form, Shape, columns};

    forms! { true;
        CMPPS = Vcmpps NP M0F 0xc2 RVM W0, Full <- Full;
        CMPPD = Vcmppd P66 M0F 0xc2 RVM W0, Full <- Full;
        PCMPEQB = Vpcmpeqb P66 M0F 0x74 RVM W0, Full <- Full;
        PCMPEQW = Vpcmpeqw P66 M0F 0x75 RVM W0, Full <- Full;
        PCMPEQD = Vpcmpeqd P66 M0F 0x76 RVM W0, Full <- Full;
        PCMPEQQ = Vpcmpeqq P66 M0F38 0x29 RVM W0, Full <- Full;
        PCMPGTB = Vpcmpgtb P66 M0F 0x64 RVM W0, Full <- Full;
        PCMPGTW = Vpcmpgtw P66 M0F 0x65 RVM W0, Full <- Full;
        PCMPGTD = Vpcmpgtd P66 M0F 0x66 RVM W0, Full <- Full;
        PCMPGTQ = Vpcmpgtq P66 M0F38 0x37 RVM W0, Full <- Full;
        // The second source where the mask, a third, is set.
        PBLENDVB = Vpblendvb P66 M0F3A 0x4c RVMM W0, Full <- Full;
        PMULUDQ = Vpmuludq P66 M0F 0xf4 RVM W0, Full <- Full;
        PMINUD = Vpminud P66 M0F38 0x3b RVM W0, Full <- Full;
        PSRAD = Vpsrad P66 M0F 0x72 VM4 W0, Full <- Full;
        PSRLVD = Vpsrlvd P66 M0F38 0x45 RVM W0, Full <- Full;
        PSRLVQ = Vpsrlvq P66 M0F38 0x45 RVM W1, Full <- Full;
        // Within each half.
        PSHUFB = Vpshufb P66 M0F38 0x00 RVM W0, Full <- Full;
        PACKSSDW = Vpackssdw P66 M0F 0x6b RVM W0, Full <- Full;
        PACKSSWB = Vpacksswb P66 M0F 0x63 RVM W0, Full <- Full;
        PACKUSDW = Vpackusdw P66 M0F38 0x2b RVM W0, Full <- Full;
        // Quadwords in another order, and the upper half of a vector.
        PERMQ = Vpermq P66 M0F3A 0x00 RM W1, Full <- Full [only Some(1)];
        UPPER = Vextracti128 P66 M0F3A 0x39 MR W0, Half <- Full [only Some(1)];
        // Halves of two vectors; words of the second where the immediate says so, in both halves.
        JOIN = Vperm2i128 P66 M0F3A 0x46 RVM W0, Full <- Full [only Some(1)];
        PBLENDW = Vpblendw P66 M0F3A 0x0e RVM W0, Full <- Full;
        LOAD = Vmovdqu PF3 M0F 0x6f RM W0, Full <- Full;
        STORE = Vmovdqu PF3 M0F 0x7f MR W0, Full <- Full;
        COPY = Vmovdqa P66 M0F 0x6f RM W0, Full <- Full;
        // One element to the lowest lane or from it.
        INSERTB = Vpinsrb P66 M0F3A 0x20 RVM W0, Full <- Full [only Some(0)];
        INSERTW = Vpinsrw P66 M0F 0xc4 RVM W0, Full <- Full [only Some(0)];
        EXTRACTB = Vpextrb P66 M0F3A 0x14 MR W0, Full <- Full [only Some(0)];
        EXTRACTW = Vpextrw P66 M0F3A 0x15 MR W0, Full <- Full [only Some(0)];
        // Whether all bits are clear.
        TEST = Vptest P66 M0F38 0x17 RM W0, Full <- Full;
    }
}
