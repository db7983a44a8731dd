//! The table of steps whose kernels are faster than their loops.

use super::has_kernel;
use crate::backend::measured::{BackEnd, MARGIN, ROWS, Row, kernel_is_faster, says_kernel};
use crate::backend::{cranelift, is_lowerable_at, x64};
use crate::base::dtype::DType;
use crate::kernels::CpuLevel;
use crate::ops::{MAX_OPERANDS, Op};
use crate::plan::kernel::{Step, StepOp};
use crate::ssa::text;

fn step(op: Op, dtype: DType) -> Step {
    Step { op: StepOp::Apply(op), dtype, args: [None; MAX_OPERANDS], out: 0 }
}

#[test]
fn rows_are_of_steps_that_are_lowered_and_slower() {
    for (i, row) in ROWS.iter().enumerate() {
        let Row { op, dtype, back_end, level, compiled, pass, kernel } = *row;
        let step = step(op, dtype);
        assert!(text(op, dtype).is_some() && has_kernel(&step), "{row:?}");
        let lowered = match (back_end, x64::isa::Isa::of(level)) {
            (BackEnd::X64, Some(isa)) => x64::is_lowerable(isa, &step),
            // Not the back end of this target.
            (BackEnd::X64, None) => level > CpuLevel::Baseline,
            (BackEnd::Cranelift, _) => cranelift::lower::is_lowerable(&step),
        };
        assert!(lowered, "{row:?}");
        assert!(compiled - pass >= MARGIN * (kernel + pass) && pass > 0.0 && kernel > 0.0, "{row:?}");
        let key = |r: &Row| (r.op, r.dtype, r.back_end, r.level);
        assert!(ROWS[..i].iter().all(|r| key(r) != key(row)), "twice: {row:?}");
    }
}

#[test]
fn what_a_row_says_is_no_longer_lowered() {
    let level = CpuLevel::Avx2;
    let row =
        Row { op: Op::Add, dtype: DType::F32, back_end: BackEnd::X64, level, compiled: 2.0, pass: 0.5, kernel: 1.0 };
    assert!(says_kernel(&[row], BackEnd::X64, level, &step(Op::Add, DType::F32)));
    for (op, dtype, back_end, at) in [
        (Op::Sub, DType::F32, BackEnd::X64, level),
        (Op::Add, DType::F64, BackEnd::X64, level),
        (Op::Add, DType::F32, BackEnd::Cranelift, level),
        (Op::Add, DType::F32, BackEnd::X64, CpuLevel::Avx512),
    ] {
        assert!(!says_kernel(&[row], back_end, at, &step(op, dtype)), "{op} of {dtype}");
    }
    for row in ROWS {
        let step = step(row.op, row.dtype);
        let own = if x64::isa::Isa::of(row.level).is_some() { BackEnd::X64 } else { BackEnd::Cranelift };
        if kernel_is_faster(own, row.level, &step) {
            assert!(!is_lowerable_at(row.level, &step), "{row:?}");
        }
    }
}
