//! The instruction sets of the x64 back end.

use crate::backend::measured::cranelift_alone;
use crate::kernels::CpuLevel;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// AVX2, FMA and F16C.
    Avx2,
    Avx512,
}

impl Isa {
    /// The instruction set of a CPU level, if the x64 back end serves it: functions follow System V's calling convention.
    pub(crate) fn of(level: CpuLevel) -> Option<Isa> {
        match level {
            _ if !cfg!(all(target_arch = "x86_64", unix)) => None,
            _ if cranelift_alone() => None,
            CpuLevel::Baseline => None,
            CpuLevel::Avx2 => Some(Isa::Avx2),
            CpuLevel::Avx512 => Some(Isa::Avx512),
        }
    }

    /// Bytes of a vector.
    pub(super) fn bytes(self) -> usize {
        match self {
            Isa::Avx2 => 32,
            Isa::Avx512 => 64,
        }
    }

    /// The number of vector registers.
    pub(super) fn vectors(self) -> u8 {
        match self {
            Isa::Avx2 => 16,
            Isa::Avx512 => 32,
        }
    }
}
