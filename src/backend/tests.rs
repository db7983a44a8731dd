//! Properties of the code of every op and conversion, whichever back end makes it.

use cranelift_codegen::ir::{InstBuilder, types};

use super::cranelift::emit::emit;
use super::{code, compile};
use crate::base::dtype::DType;
use crate::base::error::Error;
use crate::kernels::{CpuLevel, double_rounding_kernel, kernel as block_kernel};
use crate::ops::Op;
use crate::plan::kernel::{Kernel, KernelBuilder, Operand, Step, StepOp};
use crate::plan::schedule::{Class, schedule};

#[cfg(any(feature = "arm64", target_arch = "aarch64"))]
mod arm;
mod bounds;
#[cfg(target_arch = "x86_64")]
mod levels;
mod located;
mod measured;
mod traps;

/// Whether a step has a block kernel. What no rule set accepts has none.
fn has_kernel(step: &Step) -> bool {
    match step.op {
        StepOp::Apply(op) => block_kernel(op, step.dtype, CpuLevel::get()).is_some(),
        StepOp::Cast(p) => p.kernel(CpuLevel::get()).is_some(),
        StepOp::Bits(_) => true,
        StepOp::DoubleRounding(op) => double_rounding_kernel(op, CpuLevel::get()).is_some(),
    }
}

/// A kernel of one op for each op that a dtype has, reductions aside.
fn each_op(mut check: impl FnMut(&Kernel, &str)) {
    for d in DType::ALL {
        for op in Op::ALL.iter().copied().filter(|op| !op.has_dims()) {
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

/// Steps that nothing lowers never get into a segment. If one did, there would be no code that computes something else.
#[test]
fn what_nothing_lowers_is_an_internal_error() {
    for (op, d) in [(Op::Pow, DType::F32), (Op::Gcd, DType::I32), (Op::Div, DType::C64), (Op::Copysign, DType::F16)] {
        let mut b = KernelBuilder::default();
        let args = [Operand::Value(b.input(d)), Operand::Value(b.input(d))];
        let value = b.apply(op, d, &args);
        b.kernel.outputs.push(value);
        let k = b.kernel;
        let planned = schedule(&k, &[Class::Vector; 2], CpuLevel::get(), &|_| true).unwrap();
        assert_eq!(planned.segments.len(), 1, "{op} of {d}");
        let of_cranelift = code::clif(1, &|i, b| emit(&k, &planned.segments[i], b, false));
        for error in [compile(&k, &planned).err(), of_cranelift.err()] {
            let Some(Error::Internal(message)) = error else { panic!("{op} of {d} is lowered") };
            assert!(message.ends_with(&format!("nothing lowers `{op}`")), "{message}");
        }
    }
}

#[test]
fn an_instruction_that_cranelift_refuses_is_named() {
    let made = code::compile(1, &|_, b| {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let zero = b.ins().iconst(types::I32, 0);
        b.ins().fadd(zero, zero);
        b.ins().return_(&[]);
        Ok(())
    });
    let Some(Error::Internal(message)) = made.err() else { panic!("integers are added as floats") };
    assert!(message.contains("fadd"), "{message}");
}
