//! Properties of the code of every op and conversion, whichever back end makes it.

use crate::base::dtype::DType;
use crate::kernels::{CpuLevel, cast, double_rounding_kernel, kernel as block_kernel};
use crate::ops::Op;
use crate::plan::kernel::{Kernel, KernelBuilder, Operand, Step, StepOp};

mod bounds;
mod located;
mod traps;

/// Whether a step has a block kernel. What no rule set accepts has none.
fn has_kernel(step: &Step) -> bool {
    match step.op {
        StepOp::Apply(op) => block_kernel(op, step.dtype, CpuLevel::get()).is_some(),
        StepOp::Cast(p) => cast::kernel(p.from, p.to, CpuLevel::get()).is_some(),
        StepOp::Bits(_) => true,
        StepOp::DoubleRounding(op) => double_rounding_kernel(op, CpuLevel::get()).is_some(),
    }
}

/// A kernel of one op for each op that a dtype has, reductions aside.
fn each_op(mut check: impl FnMut(&Kernel, &str)) {
    for d in DType::ALL {
        for op in Op::ALL.iter().copied().filter(|op| !op.is_reduction()) {
            let mut b = KernelBuilder::default();
            let args: Vec<Operand> = (0..op.arity())
                .map(|i| Operand::Value(b.input(if op == Op::Where && i == 0 { DType::Bool } else { d })))
                .collect();
            let value = b.apply(op, d, &args);
            b.kernel.outputs.push(value);
            if !b.kernel.steps.is_empty() && b.kernel.steps.iter().all(has_kernel) {
                check(&b.kernel, &format!("{op} in {d}"));
            }
        }
    }
}

/// A kernel of one conversion for each pair of dtypes.
fn each_conversion(mut check: impl FnMut(&Kernel, &str)) {
    for d in DType::ALL {
        for to in DType::ALL.into_iter().filter(|to| *to != d) {
            let mut b = KernelBuilder::default();
            let x = b.input(d);
            let value = b.cast(x, to);
            b.kernel.outputs.push(value);
            check(&b.kernel, &format!("{d} to {to}"));
        }
    }
}
