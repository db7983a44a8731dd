//! How operands from memory are prefetched: into which level of cache, and how far ahead.
//!
//! Guarantees: the same for every loop of a segment; the operands of one segment fit the level they are prefetched into. Does
//! not: say which loads are prefetched (`memory`, `emit`).

use super::asm::CacheLevel;
use super::isa::Isa;
use crate::base::host::CACHE_LINE;

/// How operands from memory are prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    pub(super) into: CacheLevel,
    /// How far ahead of the element that is read.
    pub(super) elements: usize,
}

/// How each of so many operands is prefetched: far enough ahead to cover the latency of memory, at most 12 KiB of the first-level
/// cache in all, or 8 KiB of the second. `widest`: bytes of an element of the widest one; `step`: elements that an iteration reads.
///
/// Hardware prefetchers differ in how soon they recognize a loop's accesses, and the longer a body is, the less of what follows
/// it does the processor execute ahead. Measured on a Xeon with AMX, 2^24 elements, one thread, milliseconds without prefetches
/// and with prefetches into the first level, 1, 2 and 3 KiB ahead:
///
/// | program | without | 1 KiB | 2 KiB | 3 KiB |
/// |---|---|---|---|---|
/// | `(a*b + c)*a - b`, f16 | 12.8 | 5.7 | 5.4 | 5.2 |
/// | the same, bf16 | 9.0 | 5.5 | 5.1 | 5.1 |
/// | the same, f16 rounded once | 6.1 | 5.0 | 4.7 | 4.8 |
/// | ten operations on four operands of f32 | 17.9 | 16.9 | 16.0 | 16.1 |
/// | `mean((a - b)**2)`, f32 | 7.8 | 7.5 | 7.2 | 6.8 |
///
/// (On a fifth-generation EPYC these made no difference, except that the mean took 15 % longer with 1 KiB.)
///
/// On a fourth-generation EPYC the loops for AVX-512 are slower with these than without any, but not with prefetches into the second
/// level, 2 KiB ahead (below: 2026-11-30, as many elements, medians of seven runs). Loops for AVX2, and those with loads of half a line,
/// prefetch each line twice; most were slower with the second level: with AVX2 `a * 2` took 1.6, `a + b` and the mean 1.2 times as long
/// (five runs), with AVX-512 the variance of f32 4.4 ms instead of 3.2 (three). Not measured: the second level on the Xeon and on the
/// fifth generation.
///
/// | program, AVX-512 | without | first level, 3 KiB | second level, 2 KiB |
/// |---|---|---|---|
/// | `a + b`, f32 | 5.0 | 6.0 | 4.4 |
/// | `a + b`, f64 | 9.8 | 12.1 | 9.2 |
/// | `a*b + c`, f32 | 8.0 | 8.9 | 6.9 |
/// | `a * 2`, f32 | 3.0 | 2.7 | 2.9 |
/// | `(a*b + c)*a - b`, f16 | 6.4 | 6.5 | 6.2 |
/// | the same, bf16 | 5.7 | 5.5 | 5.2 |
/// | ten operations on four operands of f32 | 8.8 | 10.3 | 8.9 |
/// | `mean((a - b)**2)`, f32 | 3.9 | 5.4 | 3.8 |
/// | `sum(a)`, f32 | 1.8 | 1.8 | 1.8 |
pub(super) fn ahead(isa: Isa, operands: usize, widest: usize, step: usize, is_amd: bool) -> Ahead {
    let (into, most) = match isa {
        Isa::Avx512 if is_amd && step * widest >= CACHE_LINE => (CacheLevel::Second, 8 << 10),
        Isa::Avx512 | Isa::Avx2 => (CacheLevel::First, 12 << 10),
    };
    Ahead { into, elements: most / CACHE_LINE / operands.max(4) * CACHE_LINE / widest }
}
