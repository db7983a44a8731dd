//! The instructions that the wide generator uses: the only ones that it can emit into a loop's body.
//!
//! Guarantees: no instruction here traps on data (floating-point exceptions are masked, and no integer division, no
//! alignment check and no gather is listed). A form names the 128-bit variant of an instruction; the 256- and 512-bit
//! ones follow it in the assembler's table, which a test checks for every form. A form whose row ends with a second
//! name has the same instruction in AVX2; what else AVX2 has is in a table of its own. Does not: know what they are used for.

use iced_x86::{Code, Register};

/// The register of an operand, for an instruction of some vector length.
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

/// An instruction: its 128-bit variant, and the registers of its result and of its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) code: Code,
    pub(super) dst: Shape,
    pub(super) src: Shape,
}

/// The index of the vector length that holds this many bytes: 0 for 128 bits, 1 for 256, 2 for 512.
pub(super) fn length(bytes: usize) -> u8 {
    match bytes {
        0..=16 => 0,
        17..=32 => 1,
        _ => 2,
    }
}

impl Form {
    /// The variant for a vector length. Mask instructions have only one, and so have moves between halves.
    pub(super) fn code_at(self, length: u8) -> Code {
        if self.dst == Shape::Mask && self.src == Shape::Mask || self == avx2::PERMQ || self == avx2::UPPER {
            return self.code;
        }
        Code::try_from(self.code as usize + usize::from(length)).unwrap_or(self.code)
    }
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

impl Shape {
    /// The register with this number.
    pub(super) fn register(self, length: u8, number: u8) -> Register {
        let less = match self {
            Shape::Mask => return Register::K0 + u32::from(number),
            Shape::Full => 0,
            Shape::Half => 1,
            Shape::Quarter => 2,
            Shape::Eighth => 3,
        };
        let first = [Register::XMM0, Register::YMM0, Register::ZMM0][usize::from(length.saturating_sub(less))];
        first + u32::from(number)
    }
}

/// No instruction: where a lane of the mask is set, a function of [`crate::block::vector`] computes all lanes of the second
/// source instead of those of the first, which has the result's register. The immediate is the function's index. (The
/// code only tells it from other forms.)
pub(super) const RESCUE: Form = Form { code: Code::Ud2, dst: Shape::Full, src: Shape::Full };

/// No instruction: the lanes of a sum with the source added, in a loop that adds up; nothing in others.
pub(super) const ADDED: Form = Form { code: Code::INVALID, dst: Shape::Full, src: Shape::Full };

macro_rules! listed {
    ($($name:ident = $code:ident, $dst:ident <- $src:ident;)*) => {
        $(pub(in crate::codegen::wide) const $name: Form =
            Form { code: Code::$code, dst: Shape::$dst, src: Shape::$src };)*
        /// Every form of the table.
        #[cfg(test)]
        pub(in crate::codegen::wide) const ALL: &[Form] = &[$($name),*];
    };
}

macro_rules! forms {
    ($($name:ident = $code:ident, $dst:ident <- $src:ident $(, $same:ident)?;)*) => {
        listed! { $($name = $code, $dst <- $src;)* }

        /// The same instruction of AVX2, if there is one.
        pub(super) fn vex(form: Form) -> Option<Form> {
            let code = match form.code {
                $($(Code::$code => Code::$same,)?)*
                _ => return None,
            };
            Some(Form { code, ..form })
        }
    };
}

forms! {
    // Floats.
    ADDPS = EVEX_Vaddps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vaddps_xmm_xmm_xmmm128;
    ADDPD = EVEX_Vaddpd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vaddpd_xmm_xmm_xmmm128;
    SUBPS = EVEX_Vsubps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vsubps_xmm_xmm_xmmm128;
    SUBPD = EVEX_Vsubpd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vsubpd_xmm_xmm_xmmm128;
    MULPS = EVEX_Vmulps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vmulps_xmm_xmm_xmmm128;
    MULPD = EVEX_Vmulpd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vmulpd_xmm_xmm_xmmm128;
    DIVPS = EVEX_Vdivps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vdivps_xmm_xmm_xmmm128;
    DIVPD = EVEX_Vdivpd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vdivpd_xmm_xmm_xmmm128;
    SQRTPS = EVEX_Vsqrtps_xmm_k1z_xmmm128b32, Full <- Full, VEX_Vsqrtps_xmm_xmmm128;
    SQRTPD = EVEX_Vsqrtpd_xmm_k1z_xmmm128b64, Full <- Full, VEX_Vsqrtpd_xmm_xmmm128;
    RNDPS = EVEX_Vrndscaleps_xmm_k1z_xmmm128b32_imm8, Full <- Full, VEX_Vroundps_xmm_xmmm128_imm8;
    RNDPD = EVEX_Vrndscalepd_xmm_k1z_xmmm128b64_imm8, Full <- Full, VEX_Vroundpd_xmm_xmmm128_imm8;
    RANGEPS = EVEX_Vrangeps_xmm_k1z_xmm_xmmm128b32_imm8, Full <- Full;
    RANGEPD = EVEX_Vrangepd_xmm_k1z_xmm_xmmm128b64_imm8, Full <- Full;
    CMPPS = EVEX_Vcmpps_kr_k1_xmm_xmmm128b32_imm8, Mask <- Full;
    CMPPD = EVEX_Vcmppd_kr_k1_xmm_xmmm128b64_imm8, Mask <- Full;
    // The smaller or larger; the second source if one is NaN, or if they are equal.
    MINPS = EVEX_Vminps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vminps_xmm_xmm_xmmm128;
    MINPD = EVEX_Vminpd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vminpd_xmm_xmm_xmmm128;
    MAXPS = EVEX_Vmaxps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vmaxps_xmm_xmm_xmmm128;
    MAXPD = EVEX_Vmaxpd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vmaxpd_xmm_xmm_xmmm128;
    SCALEPS = EVEX_Vscalefps_xmm_k1z_xmm_xmmm128b32, Full <- Full;
    SCALEPD = EVEX_Vscalefpd_xmm_k1z_xmm_xmmm128b64, Full <- Full;
    EXPONENTPS = EVEX_Vgetexpps_xmm_k1z_xmmm128b32, Full <- Full;
    EXPONENTPD = EVEX_Vgetexppd_xmm_k1z_xmmm128b64, Full <- Full;
    MANTISSAPS = EVEX_Vgetmantps_xmm_k1z_xmmm128b32_imm8, Full <- Full;
    MANTISSAPD = EVEX_Vgetmantpd_xmm_k1z_xmmm128b64_imm8, Full <- Full;
    // Three sources, the first of which is the result's register: `a·b + c` with the operand numbers' order in the name.
    FMA231PS = EVEX_Vfmadd231ps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vfmadd231ps_xmm_xmm_xmmm128;
    FMA231PD = EVEX_Vfmadd231pd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vfmadd231pd_xmm_xmm_xmmm128;
    FMA213PS = EVEX_Vfmadd213ps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vfmadd213ps_xmm_xmm_xmmm128;
    FMA213PD = EVEX_Vfmadd213pd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vfmadd213pd_xmm_xmm_xmmm128;
    FMS231PS = EVEX_Vfmsub231ps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vfmsub231ps_xmm_xmm_xmmm128;
    FMS231PD = EVEX_Vfmsub231pd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vfmsub231pd_xmm_xmm_xmmm128;
    FMS213PS = EVEX_Vfmsub213ps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vfmsub213ps_xmm_xmm_xmmm128;
    FMS213PD = EVEX_Vfmsub213pd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vfmsub213pd_xmm_xmm_xmmm128;
    FNMA231PS = EVEX_Vfnmadd231ps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vfnmadd231ps_xmm_xmm_xmmm128;
    FNMA231PD = EVEX_Vfnmadd231pd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vfnmadd231pd_xmm_xmm_xmmm128;
    FNMA213PS = EVEX_Vfnmadd213ps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vfnmadd213ps_xmm_xmm_xmmm128;
    FNMA213PD = EVEX_Vfnmadd213pd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vfnmadd213pd_xmm_xmm_xmmm128;
    FIXUPPS = EVEX_Vfixupimmps_xmm_k1z_xmm_xmmm128b32_imm8, Full <- Full;
    FIXUPPD = EVEX_Vfixupimmpd_xmm_k1z_xmm_xmmm128b64_imm8, Full <- Full;
    LOGICD = EVEX_Vpternlogd_xmm_k1z_xmm_xmmm128b32_imm8, Full <- Full;
    // Bits.
    AND = EVEX_Vpandd_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpand_xmm_xmm_xmmm128;
    ANDN = EVEX_Vpandnd_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpandn_xmm_xmm_xmmm128;
    OR = EVEX_Vpord_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpor_xmm_xmm_xmmm128;
    XOR = EVEX_Vpxord_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpxor_xmm_xmm_xmmm128;
    // Integers.
    PADDB = EVEX_Vpaddb_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpaddb_xmm_xmm_xmmm128;
    PADDW = EVEX_Vpaddw_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpaddw_xmm_xmm_xmmm128;
    PADDD = EVEX_Vpaddd_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpaddd_xmm_xmm_xmmm128;
    PADDQ = EVEX_Vpaddq_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vpaddq_xmm_xmm_xmmm128;
    PSUBB = EVEX_Vpsubb_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpsubb_xmm_xmm_xmmm128;
    PSUBW = EVEX_Vpsubw_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpsubw_xmm_xmm_xmmm128;
    PSUBD = EVEX_Vpsubd_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpsubd_xmm_xmm_xmmm128;
    PSUBQ = EVEX_Vpsubq_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vpsubq_xmm_xmm_xmmm128;
    PMULLW = EVEX_Vpmullw_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpmullw_xmm_xmm_xmmm128;
    PMULLD = EVEX_Vpmulld_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpmulld_xmm_xmm_xmmm128;
    PMULLQ = EVEX_Vpmullq_xmm_k1z_xmm_xmmm128b64, Full <- Full;
    PMAXSB = EVEX_Vpmaxsb_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpmaxsb_xmm_xmm_xmmm128;
    PMAXSW = EVEX_Vpmaxsw_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpmaxsw_xmm_xmm_xmmm128;
    PMAXSD = EVEX_Vpmaxsd_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpmaxsd_xmm_xmm_xmmm128;
    PMAXSQ = EVEX_Vpmaxsq_xmm_k1z_xmm_xmmm128b64, Full <- Full;
    PMAXUB = EVEX_Vpmaxub_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpmaxub_xmm_xmm_xmmm128;
    PMINSB = EVEX_Vpminsb_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpminsb_xmm_xmm_xmmm128;
    PMINSW = EVEX_Vpminsw_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpminsw_xmm_xmm_xmmm128;
    PMINSD = EVEX_Vpminsd_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpminsd_xmm_xmm_xmmm128;
    PMINSQ = EVEX_Vpminsq_xmm_k1z_xmm_xmmm128b64, Full <- Full;
    PMINUB = EVEX_Vpminub_xmm_k1z_xmm_xmmm128, Full <- Full, VEX_Vpminub_xmm_xmm_xmmm128;
    PABSB = EVEX_Vpabsb_xmm_k1z_xmmm128, Full <- Full, VEX_Vpabsb_xmm_xmmm128;
    PABSW = EVEX_Vpabsw_xmm_k1z_xmmm128, Full <- Full, VEX_Vpabsw_xmm_xmmm128;
    PABSD = EVEX_Vpabsd_xmm_k1z_xmmm128b32, Full <- Full, VEX_Vpabsd_xmm_xmmm128;
    PABSQ = EVEX_Vpabsq_xmm_k1z_xmmm128b64, Full <- Full;
    PSLLW = EVEX_Vpsllw_xmm_k1z_xmmm128_imm8, Full <- Full, VEX_Vpsllw_xmm_xmm_imm8;
    PSRLW = EVEX_Vpsrlw_xmm_k1z_xmmm128_imm8, Full <- Full, VEX_Vpsrlw_xmm_xmm_imm8;
    PSRAW = EVEX_Vpsraw_xmm_k1z_xmmm128_imm8, Full <- Full, VEX_Vpsraw_xmm_xmm_imm8;
    PSLLD = EVEX_Vpslld_xmm_k1z_xmmm128b32_imm8, Full <- Full, VEX_Vpslld_xmm_xmm_imm8;
    PSLLQ = EVEX_Vpsllq_xmm_k1z_xmmm128b64_imm8, Full <- Full, VEX_Vpsllq_xmm_xmm_imm8;
    PSRLD = EVEX_Vpsrld_xmm_k1z_xmmm128b32_imm8, Full <- Full, VEX_Vpsrld_xmm_xmm_imm8;
    PSRLQ = EVEX_Vpsrlq_xmm_k1z_xmmm128b64_imm8, Full <- Full, VEX_Vpsrlq_xmm_xmm_imm8;
    PSLLVW = EVEX_Vpsllvw_xmm_k1z_xmm_xmmm128, Full <- Full;
    PSLLVD = EVEX_Vpsllvd_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpsllvd_xmm_xmm_xmmm128;
    PSLLVQ = EVEX_Vpsllvq_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vpsllvq_xmm_xmm_xmmm128;
    PSRLVW = EVEX_Vpsrlvw_xmm_k1z_xmm_xmmm128, Full <- Full;
    PSRAVW = EVEX_Vpsravw_xmm_k1z_xmm_xmmm128, Full <- Full;
    PSRAVD = EVEX_Vpsravd_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpsravd_xmm_xmm_xmmm128;
    PSRAVQ = EVEX_Vpsravq_xmm_k1z_xmm_xmmm128b64, Full <- Full;
    PCMPB = EVEX_Vpcmpb_kr_k1_xmm_xmmm128_imm8, Mask <- Full;
    PCMPW = EVEX_Vpcmpw_kr_k1_xmm_xmmm128_imm8, Mask <- Full;
    PCMPD = EVEX_Vpcmpd_kr_k1_xmm_xmmm128b32_imm8, Mask <- Full;
    PCMPQ = EVEX_Vpcmpq_kr_k1_xmm_xmmm128b64_imm8, Mask <- Full;
    PCMPUB = EVEX_Vpcmpub_kr_k1_xmm_xmmm128_imm8, Mask <- Full;
    PTESTMB = EVEX_Vptestmb_kr_k1_xmm_xmmm128, Mask <- Full;
    PTESTMW = EVEX_Vptestmw_kr_k1_xmm_xmmm128, Mask <- Full;
    PTESTMD = EVEX_Vptestmd_kr_k1_xmm_xmmm128b32, Mask <- Full;
    PTESTMQ = EVEX_Vptestmq_kr_k1_xmm_xmmm128b64, Mask <- Full;
    PTESTNMB = EVEX_Vptestnmb_kr_k1_xmm_xmmm128, Mask <- Full;
    PTESTNMW = EVEX_Vptestnmw_kr_k1_xmm_xmmm128, Mask <- Full;
    PTESTNMD = EVEX_Vptestnmd_kr_k1_xmm_xmmm128b32, Mask <- Full;
    PTESTNMQ = EVEX_Vptestnmq_kr_k1_xmm_xmmm128b64, Mask <- Full;
    // Choosing and moving by masks.
    BLENDB = EVEX_Vpblendmb_xmm_k1z_xmm_xmmm128, Full <- Full;
    BLENDW = EVEX_Vpblendmw_xmm_k1z_xmm_xmmm128, Full <- Full;
    BLENDD = EVEX_Vpblendmd_xmm_k1z_xmm_xmmm128b32, Full <- Full;
    BLENDQ = EVEX_Vpblendmq_xmm_k1z_xmm_xmmm128b64, Full <- Full;
    MOVB = EVEX_Vmovdqu8_xmm_k1z_xmmm128, Full <- Full;
    MOVW = EVEX_Vmovdqu16_xmm_k1z_xmmm128, Full <- Full;
    MOVD = EVEX_Vmovdqu32_xmm_k1z_xmmm128, Full <- Full;
    MOVQ = EVEX_Vmovdqu64_xmm_k1z_xmmm128, Full <- Full;
    // Pairs of lanes.
    SLDUP = EVEX_Vmovsldup_xmm_k1z_xmmm128, Full <- Full, VEX_Vmovsldup_xmm_xmmm128;
    SHDUP = EVEX_Vmovshdup_xmm_k1z_xmmm128, Full <- Full, VEX_Vmovshdup_xmm_xmmm128;
    PERMPS = EVEX_Vpermilps_xmm_k1z_xmmm128b32_imm8, Full <- Full, VEX_Vpermilps_xmm_xmmm128_imm8;
    PERMPD = EVEX_Vpermilpd_xmm_k1z_xmmm128b64_imm8, Full <- Full, VEX_Vpermilpd_xmm_xmmm128_imm8;
    // Lanes of the first source, by the lowest bits of the second's (of doubles, the second lowest).
    PICKPS = EVEX_Vpermilps_xmm_k1z_xmm_xmmm128b32, Full <- Full, VEX_Vpermilps_xmm_xmm_xmmm128;
    PICKPD = EVEX_Vpermilpd_xmm_k1z_xmm_xmmm128b64, Full <- Full, VEX_Vpermilpd_xmm_xmm_xmmm128;
    // Lanes of the first and of the third source, which are one table, by the lowest bits of the second's.
    TABLEPD = EVEX_Vpermt2pd_xmm_k1z_xmm_xmmm128b64, Full <- Full;
    PSHUFD = EVEX_Vpshufd_xmm_k1z_xmmm128b32_imm8, Full <- Full, VEX_Vpshufd_xmm_xmmm128_imm8;
    PERMW = EVEX_Vpermw_xmm_k1z_xmm_xmmm128, Full <- Full;
    MASKD = EVEX_Vpmovm2d_xmm_kr, Full <- Mask;
    MASKQ = EVEX_Vpmovm2q_xmm_kr, Full <- Mask;
    Q2MASK = EVEX_Vpmovq2m_kr_xmm, Mask <- Full;
    // Lane widths.
    SXBW = EVEX_Vpmovsxbw_xmm_k1z_xmmm64, Full <- Half, VEX_Vpmovsxbw_xmm_xmmm64;
    SXBD = EVEX_Vpmovsxbd_xmm_k1z_xmmm32, Full <- Quarter, VEX_Vpmovsxbd_xmm_xmmm32;
    SXBQ = EVEX_Vpmovsxbq_xmm_k1z_xmmm16, Full <- Eighth, VEX_Vpmovsxbq_xmm_xmmm16;
    SXWD = EVEX_Vpmovsxwd_xmm_k1z_xmmm64, Full <- Half, VEX_Vpmovsxwd_xmm_xmmm64;
    SXWQ = EVEX_Vpmovsxwq_xmm_k1z_xmmm32, Full <- Quarter, VEX_Vpmovsxwq_xmm_xmmm32;
    SXDQ = EVEX_Vpmovsxdq_xmm_k1z_xmmm64, Full <- Half, VEX_Vpmovsxdq_xmm_xmmm64;
    ZXBW = EVEX_Vpmovzxbw_xmm_k1z_xmmm64, Full <- Half, VEX_Vpmovzxbw_xmm_xmmm64;
    ZXBD = EVEX_Vpmovzxbd_xmm_k1z_xmmm32, Full <- Quarter, VEX_Vpmovzxbd_xmm_xmmm32;
    ZXBQ = EVEX_Vpmovzxbq_xmm_k1z_xmmm16, Full <- Eighth, VEX_Vpmovzxbq_xmm_xmmm16;
    ZXWD = EVEX_Vpmovzxwd_xmm_k1z_xmmm64, Full <- Half, VEX_Vpmovzxwd_xmm_xmmm64;
    ZXDQ = EVEX_Vpmovzxdq_xmm_k1z_xmmm64, Full <- Half, VEX_Vpmovzxdq_xmm_xmmm64;
    CUTWB = EVEX_Vpmovwb_xmmm64_k1z_xmm, Half <- Full;
    CUTDB = EVEX_Vpmovdb_xmmm32_k1z_xmm, Quarter <- Full;
    CUTQB = EVEX_Vpmovqb_xmmm16_k1z_xmm, Eighth <- Full;
    CUTDW = EVEX_Vpmovdw_xmmm64_k1z_xmm, Half <- Full;
    CUTQW = EVEX_Vpmovqw_xmmm32_k1z_xmm, Quarter <- Full;
    CUTQD = EVEX_Vpmovqd_xmmm64_k1z_xmm, Half <- Full;
    SATDB = EVEX_Vpmovsdb_xmmm32_k1z_xmm, Quarter <- Full;
    SATDW = EVEX_Vpmovsdw_xmmm64_k1z_xmm, Half <- Full;
    SATUDB = EVEX_Vpmovusdb_xmmm32_k1z_xmm, Quarter <- Full;
    // Conversions.
    PS2PD = EVEX_Vcvtps2pd_xmm_k1z_xmmm64b32, Full <- Half, VEX_Vcvtps2pd_xmm_xmmm64;
    PD2PS = EVEX_Vcvtpd2ps_xmm_k1z_xmmm128b64, Half <- Full, VEX_Vcvtpd2ps_xmm_xmmm128;
    DQ2PS = EVEX_Vcvtdq2ps_xmm_k1z_xmmm128b32, Full <- Full, VEX_Vcvtdq2ps_xmm_xmmm128;
    DQ2PD = EVEX_Vcvtdq2pd_xmm_k1z_xmmm64b32, Full <- Half, VEX_Vcvtdq2pd_xmm_xmmm64;
    QQ2PS = EVEX_Vcvtqq2ps_xmm_k1z_xmmm128b64, Half <- Full;
    QQ2PD = EVEX_Vcvtqq2pd_xmm_k1z_xmmm128b64, Full <- Full;
    PS2DQ = EVEX_Vcvttps2dq_xmm_k1z_xmmm128b32, Full <- Full, VEX_Vcvttps2dq_xmm_xmmm128;
    PS2QQ = EVEX_Vcvttps2qq_xmm_k1z_xmmm64b32, Full <- Half;
    PD2DQ = EVEX_Vcvttpd2dq_xmm_k1z_xmmm128b64, Half <- Full, VEX_Vcvttpd2dq_xmm_xmmm128;
    PD2QQ = EVEX_Vcvttpd2qq_xmm_k1z_xmmm128b64, Full <- Full;
    PH2PS = EVEX_Vcvtph2ps_xmm_k1z_xmmm64, Full <- Half, VEX_Vcvtph2ps_xmm_xmmm64;
    PS2PH = EVEX_Vcvtps2ph_xmmm64_k1z_xmm_imm8, Half <- Full, VEX_Vcvtps2ph_xmmm64_xmm_imm8;
    // Masks, all 64 bits: those beyond the lanes mean nothing.
    KAND = VEX_Kandq_kr_kr_kr, Mask <- Mask;
    KANDN = VEX_Kandnq_kr_kr_kr, Mask <- Mask;
    KOR = VEX_Korq_kr_kr_kr, Mask <- Mask;
    KXOR = VEX_Kxorq_kr_kr_kr, Mask <- Mask;
    KXNOR = VEX_Kxnorq_kr_kr_kr, Mask <- Mask;
    KNOT = VEX_Knotq_kr_kr, Mask <- Mask;
}

/// What only the loops for AVX2 use. Truth values are vectors there: all bits of a lane, or none.
pub(super) mod avx2 {
    use super::{Code, Form, Shape};

    listed! {
        CMPPS = VEX_Vcmpps_xmm_xmm_xmmm128_imm8, Full <- Full;
        CMPPD = VEX_Vcmppd_xmm_xmm_xmmm128_imm8, Full <- Full;
        PCMPEQB = VEX_Vpcmpeqb_xmm_xmm_xmmm128, Full <- Full;
        PCMPEQW = VEX_Vpcmpeqw_xmm_xmm_xmmm128, Full <- Full;
        PCMPEQD = VEX_Vpcmpeqd_xmm_xmm_xmmm128, Full <- Full;
        PCMPEQQ = VEX_Vpcmpeqq_xmm_xmm_xmmm128, Full <- Full;
        PCMPGTB = VEX_Vpcmpgtb_xmm_xmm_xmmm128, Full <- Full;
        PCMPGTW = VEX_Vpcmpgtw_xmm_xmm_xmmm128, Full <- Full;
        PCMPGTD = VEX_Vpcmpgtd_xmm_xmm_xmmm128, Full <- Full;
        PCMPGTQ = VEX_Vpcmpgtq_xmm_xmm_xmmm128, Full <- Full;
        // The second source where the mask, a third, is set.
        PBLENDVB = VEX_Vpblendvb_xmm_xmm_xmmm128_xmm, Full <- Full;
        PMULUDQ = VEX_Vpmuludq_xmm_xmm_xmmm128, Full <- Full;
        PMINUD = VEX_Vpminud_xmm_xmm_xmmm128, Full <- Full;
        PSRAD = VEX_Vpsrad_xmm_xmm_imm8, Full <- Full;
        PSRLVD = VEX_Vpsrlvd_xmm_xmm_xmmm128, Full <- Full;
        PSRLVQ = VEX_Vpsrlvq_xmm_xmm_xmmm128, Full <- Full;
        // Within each half.
        PSHUFB = VEX_Vpshufb_xmm_xmm_xmmm128, Full <- Full;
        PACKSSDW = VEX_Vpackssdw_xmm_xmm_xmmm128, Full <- Full;
        PACKSSWB = VEX_Vpacksswb_xmm_xmm_xmmm128, Full <- Full;
        PACKUSDW = VEX_Vpackusdw_xmm_xmm_xmmm128, Full <- Full;
    }

    /// Quadwords in another order, and the upper half of a vector. They have no other lengths.
    pub(in crate::codegen::wide) const PERMQ: Form =
        Form { code: Code::VEX_Vpermq_ymm_ymmm256_imm8, dst: Shape::Full, src: Shape::Full };
    pub(in crate::codegen::wide) const UPPER: Form =
        Form { code: Code::VEX_Vextracti128_xmmm128_ymm_imm8, dst: Shape::Half, src: Shape::Full };
}
