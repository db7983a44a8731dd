//! Where a block kernel is faster than the compiled loop: one table of measurements.
//!
//! Guarantees: a step whose op and compute dtype stand in the table is a kernel step at the row's back end and level,
//! and nothing else depends on the table, so a row changes no bit of a result. Does not: know what a back end lowers;
//! each row is of a step that it does lower (a test).
//!
//! **The rule.** A row is there if the compiled loop alone, with operands and result in the L1 cache, takes at least
//! [`MARGIN`] times as long as the kernel alone, and still takes longer than the kernel when the time of a pass is
//! taken off, which is that of the fastest compiled loop over as many operands of the dtype. The second condition is there because
//! a compiled step rarely stands alone: in a fused loop its operands come from registers and its result stays in one,
//! while a kernel step loads, stores and ends the loop before it.
//!
//! `cargo bench --bench compiled` measures each step that a back end lowers and prints the rows that the table should
//! have. `CASTWISE_LOOPS` is for it and for tests: a list of `every` (the table is ignored, so that its rows can be
//! measured again) and `cranelift` (Cranelift's loops beside the kernels of any level, as on Windows).

use std::sync::OnceLock;

use crate::base::dtype::DType;
use crate::base::host::once;
use crate::kernels::CpuLevel;
use crate::ops::Op;
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

/// How many times as long as the kernel a compiled loop must take to be slower: more than measurements differ by.
#[cfg(test)]
pub(super) const MARGIN: f64 = 1.15;

/// The steps that stay kernels.
pub(super) const ROWS: &[Row] = &[];

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
    !asked().every && says_kernel(ROWS, back_end, level, step)
}

/// [`kernel_is_faster`] by these rows.
pub(super) fn says_kernel(rows: &[Row], back_end: BackEnd, level: CpuLevel, step: &Step) -> bool {
    let StepOp::Apply(op) = step.op else { return false };
    let is_key = |r: &Row| (r.op, r.dtype, r.back_end, r.level) == (op, step.dtype, back_end, level);
    rows.iter().any(is_key)
}
