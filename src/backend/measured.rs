//! Where a block kernel is faster than the compiled loop: one table of measurements.
//!
//! Guarantees: a step whose op and compute dtype stand in the table is a kernel step at the row's back end and level,
//! and nothing else depends on the table, so a row changes no bit of a result. Does not: know what a back end lowers;
//! each row is of a step that it does lower (a test).
//!
//! **The rule.** A row is there if `compiled - pass >= 1.15 * (kernel + pass)`, of the times of the step alone with
//! operands and result in the L1 cache, in every one of at least three runs. A pass is the time of the fastest compiled
//! step of as many operands of the dtype. It is taken off the loop, because a compiled step rarely stands alone: its
//! operands come from registers and its result stays in one. It is added to the kernel, because the loops around it must
//! store its operands and load its result. The [`MARGIN`] is more than runs differ by.
//!
//! `cargo bench --bench compiled` measures each step that a back end lowers and prints the rows that the table should
//! have. `CASTWISE_LOOPS` is for it and for tests: a list of `every` (the table is ignored, so that its rows can be
//! measured again) and `cranelift` (Cranelift's loops beside the kernels of any level, as on Windows).

use std::sync::OnceLock;

use crate::base::dtype::DType::{self, *};
use crate::base::host::once;
use crate::kernels::CpuLevel::{self, *};
use crate::ops::Op::{self, *};
use crate::plan::kernel::{Step, StepOp};

/// What makes loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackEnd {
    X64,
    Cranelift,
}

/// One measurement: times in ns an element.
#[cfg_attr(not(test), allow(dead_code, reason = "the times are for readers and tests"))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) op: Op,
    pub(super) dtype: DType,
    pub(super) back_end: BackEnd,
    /// The level of the kernels.
    pub(super) level: CpuLevel,
    pub(super) compiled: f64,
    /// Of the fastest loop over as many operands of the dtype.
    pub(super) pass: f64,
    pub(super) kernel: f64,
}

/// How many times as long a compiled step must take, by the rule above.
#[cfg(test)]
pub(super) const MARGIN: f64 = 1.15;

/// Cranelift's loop beside the kernels of a level.
const fn row(op: Op, dtype: DType, level: CpuLevel, compiled: f64, pass: f64, kernel: f64) -> Row {
    Row { op, dtype, back_end: BackEnd::Cranelift, level, compiled, pass, kernel }
}

/// The steps that stay kernels: medians of three runs, 2 cores of a virtual Intel Xeon (Sapphire Rapids), 2026-11-25.
///
/// There is none of the x64 back end, nor of Cranelift beside the baseline's kernels: no step held the rule in each of
/// three runs. Those below are of machines with AVX2 or AVX-512 where the x64 back end is not: Windows.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Fmax, F64, Avx2, 0.710, 0.137, 0.349),
    row(Fmin, F64, Avx2, 0.710, 0.137, 0.345),
    row(Abs, I64, Avx2, 0.246, 0.048, 0.095),
    row(Sign, I64, Avx2, 0.380, 0.048, 0.128),
    row(Square, I64, Avx2, 0.366, 0.048, 0.135),
    row(Relu, I64, Avx2, 0.214, 0.048, 0.071),
    row(Sgn, I64, Avx2, 0.380, 0.048, 0.129),
    row(Heaviside, I64, Avx2, 0.504, 0.124, 0.141),
    row(Maximum, F32, Avx512, 0.285, 0.087, 0.081),
    row(Maximum, F64, Avx512, 0.584, 0.137, 0.160),
    row(Minimum, F32, Avx512, 0.291, 0.087, 0.079),
    row(Minimum, F64, Avx512, 0.583, 0.137, 0.156),
    row(Fmax, F32, Avx512, 0.355, 0.087, 0.082),
    row(Fmax, F64, Avx512, 0.710, 0.137, 0.163),
    row(Fmin, F32, Avx512, 0.355, 0.087, 0.083),
    row(Fmin, F64, Avx512, 0.709, 0.137, 0.166),
    row(LogicalAnd, I16, Avx512, 0.096, 0.031, 0.018),
    row(LogicalAnd, I32, Avx512, 0.202, 0.062, 0.035),
    row(LogicalAnd, I64, Avx512, 0.377, 0.124, 0.079),
    row(LogicalOr, I16, Avx512, 0.096, 0.031, 0.017),
    row(LogicalOr, I32, Avx512, 0.202, 0.062, 0.032),
    row(LogicalOr, I64, Avx512, 0.376, 0.124, 0.064),
    row(LogicalXor, I16, Avx512, 0.096, 0.031, 0.020),
    row(LogicalXor, I32, Avx512, 0.202, 0.062, 0.040),
    row(LogicalXor, I64, Avx512, 0.377, 0.124, 0.086),
    row(Neg, I64, Avx512, 0.164, 0.048, 0.041),
    row(Abs, I64, Avx512, 0.246, 0.048, 0.043),
    row(Sign, I64, Avx512, 0.382, 0.048, 0.082),
    row(Square, I64, Avx512, 0.291, 0.048, 0.096),
    row(Square, C64, Avx512, 0.507, 0.144, 0.141),
    row(Square, C128, Avx512, 1.014, 0.248, 0.299),
    row(Relu, I64, Avx512, 0.213, 0.048, 0.045),
    row(Sgn, I64, Avx512, 0.381, 0.048, 0.080),
    row(Heaviside, I64, Avx512, 0.504, 0.124, 0.103),
    row(Heaviside, F32, Avx512, 0.267, 0.087, 0.069),
    row(Heaviside, F64, Avx512, 0.535, 0.137, 0.135),
    row(Clamp, F32, Avx512, 0.614, 0.131, 0.132),
    row(Clamp, F64, Avx512, 1.238, 0.277, 0.260),
    row(ClampMin, F32, Avx512, 0.283, 0.087, 0.082),
    row(ClampMin, F64, Avx512, 0.582, 0.137, 0.159),
    row(ClampMax, F32, Avx512, 0.284, 0.087, 0.080),
    row(ClampMax, F64, Avx512, 0.585, 0.137, 0.154),
];

/// What `CASTWISE_LOOPS` asks for.
#[derive(Clone, Copy, Default)]
struct Asked {
    every: bool,
    cranelift: bool,
}

fn asked() -> Asked {
    static ASKED: OnceLock<Asked> = OnceLock::new();
    *once(&ASKED, || {
        let given = std::env::var("CASTWISE_LOOPS").unwrap_or_default();
        let has = |name| given.split(',').any(|word| word == name);
        Asked { every: has("every"), cranelift: has("cranelift") }
    })
}

/// Whether Cranelift makes the loops, whatever else the machine has.
pub(super) fn cranelift_alone() -> bool {
    asked().cranelift
}

/// Whether the table says that a step's kernel is faster than its compiled loop.
pub(super) fn kernel_is_faster(back_end: BackEnd, level: CpuLevel, step: &Step) -> bool {
    HAS_ROWS[back_end as usize] && !asked().every && says_kernel(ROWS, back_end, level, step)
}

/// Whether a back end has rows at all: every step that is scheduled asks.
const HAS_ROWS: [bool; 2] = {
    let (mut has, mut i) = ([false; 2], 0);
    while i < ROWS.len() {
        has[ROWS[i].back_end as usize] = true;
        i += 1;
    }
    has
};

/// [`kernel_is_faster`] by these rows.
pub(super) fn says_kernel(rows: &[Row], back_end: BackEnd, level: CpuLevel, step: &Step) -> bool {
    let StepOp::Apply(op) = step.op else { return false };
    let is_key = |r: &Row| (r.op, r.dtype, r.back_end, r.level) == (op, step.dtype, back_end, level);
    rows.iter().any(is_key)
}
