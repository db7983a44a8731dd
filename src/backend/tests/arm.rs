//! Cranelift's loops compile for 64-bit ARM too, which has no other back end: all that it lowers, alone and fused. Nothing runs.
//! On other machines this needs the feature `arm64`.

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::{OwnedTargetIsa, lookup_by_name};
use cranelift_codegen::settings::Configurable;

use super::{each_conversion, each_op, has_kernel};
use crate::backend::code;
use crate::backend::cranelift::emit::emit;
use crate::backend::has_instructions;
use crate::base::dtype::DType;
use crate::kernels::{CpuLevel, cast};
use crate::ops::{MAX_OPERANDS, Op};
use crate::plan::kernel::{Kernel, KernelBuilder, Operand, Source, Step, StepOp, Value, ValueId};
use crate::plan::schedule::{Class, schedule};
use crate::ssa;

/// ARM with what every machine has, and with the extensions that `cranelift_native` enables where it finds them.
fn machines() -> [OwnedTargetIsa; 2] {
    let found = ["has_lse", "has_pauth", "has_fp16", "has_dotprod", "has_i8mm"];
    [&[][..], &found[..]].map(|extensions| {
        let mut target = lookup_by_name("aarch64-unknown-linux-gnu").unwrap();
        extensions.iter().for_each(|name| target.enable(name).unwrap());
        code::with_settings(target).unwrap()
    })
}

/// A vector for each operand, then in turn one element for one of them.
fn classes(operands: usize) -> impl Iterator<Item = Vec<Class>> {
    let with_splat =
        move |splat| (0..operands).map(|i| if Some(i) == splat { Class::Splat } else { Class::Vector }).collect();
    std::iter::once(None).chain((0..operands).map(Some)).map(with_splat)
}

/// What was compiled, and what was not.
struct Checked {
    machines: [OwnedTargetIsa; 2],
    segments: usize,
    /// The most steps of a segment.
    longest: usize,
    failures: Vec<String>,
}

impl Checked {
    fn new() -> Checked {
        Checked { machines: machines(), segments: 0, longest: 0, failures: Vec::new() }
    }

    /// Compiles the segments of a kernel, and returns how many those of vectors are.
    fn kernel(&mut self, k: &Kernel, name: &str) -> usize {
        let is_lowerable = |step: &Step| has_instructions(CpuLevel::Baseline, step);
        let mut of_vectors = 0;
        for classes in classes(k.inputs.len()) {
            let s = schedule(k, &classes, CpuLevel::Baseline, &is_lowerable).unwrap();
            for machine in &self.machines {
                let made = code::each(machine, s.segments.len(), &|i, b| emit(k, &s.segments[i], b, false), &mut |c| {
                    let compiled = c.compile(machine.as_ref(), &mut ControlPlane::default());
                    // A function of a library would be called through a relocation.
                    Ok(compiled.map(|code| code.buffer.relocs().len()).map_err(|e| format!("{:?}", e.inner)))
                });
                let functions = made.unwrap_or_else(|e| vec![Err(e.to_string())]);
                let wrong = functions.iter().filter(|made| **made != Ok(0));
                self.failures.extend(wrong.map(|made| format!("{name}, {classes:?}: {made:?}")));
            }
            self.segments += s.segments.len();
            self.longest = s.segments.iter().map(|s| s.steps.len()).chain([self.longest]).max().unwrap_or(0);
            if !classes.contains(&Class::Splat) {
                of_vectors = s.segments.len();
            }
        }
        of_vectors
    }

    fn finish(self, segments: usize, longest: usize) {
        assert!(self.failures.is_empty(), "{} fail:\n{}", self.failures.len(), self.failures.join("\n"));
        assert!(self.segments >= segments, "only {} segments", self.segments);
        assert!(self.longest >= longest, "at most {} steps in a segment", self.longest);
    }
}

/// A kernel of one step.
fn single(op: StepOp, dtype: DType, operands: &[DType], to: DType) -> Kernel {
    let mut k = Kernel { inputs: operands.to_vec(), ..Kernel::default() };
    let mut args = [None; MAX_OPERANDS];
    for (i, d) in operands.iter().enumerate() {
        k.values.push(Value { dtype: *d, source: Source::Input(i as u32) });
        args[i] = Some(i as ValueId);
    }
    let out = operands.len() as ValueId;
    k.values.push(Value { dtype: to, source: Source::Step(0) });
    k.steps.push(Step { op, dtype, args, out });
    k.outputs.push(out);
    k
}

/// Every step that Cranelift accepts, but those without a kernel, which no program has.
#[test]
fn every_step_that_cranelift_lowers_compiles_for_arm() {
    let (mut checked, mut ops, mut casts) = (Checked::new(), 0, 0);
    let accepted = |k: &Kernel| has_kernel(&k.steps[0]) && has_instructions(CpuLevel::Baseline, &k.steps[0]);
    for d in DType::ALL {
        for op in Op::ALL {
            let Some(text) = ssa::text(*op, d) else { continue };
            let k = single(StepOp::Apply(*op), d, &text.operands, text.dtype(text.result));
            if accepted(&k) {
                assert_eq!(checked.kernel(&k, &format!("{op} in {d}")), 1, "{op} in {d}");
                ops += 1;
            }
        }
        for to in DType::ALL {
            let alone = [StepOp::Cast(cast::Prim::new(d, to)), StepOp::Bits(to)];
            for op in alone {
                let k = single(op, d, &[d], to);
                if accepted(&k) {
                    assert_eq!(checked.kernel(&k, &format!("{op:?} of {d}")), 1, "{d} to {to}");
                    casts += 1;
                }
            }
        }
    }
    assert!(ops > 400 && casts > 40, "{ops} ops, {casts} casts");
    checked.finish(1000, 1);
}

/// The kernels of ops and conversions as programs have them, with the conversions to the compute dtype and back.
#[test]
fn ops_between_conversions_compile_for_arm() {
    let mut checked = Checked::new();
    each_op(|k, name| {
        checked.kernel(k, name);
    });
    each_conversion(|k, name| {
        checked.kernel(k, name);
    });
    checked.finish(1000, 3);
}

/// Operands of two dtypes in one loop, with masks that are stored, widened and narrowed, and a value that is used twice.
fn mixed(d: DType, other: DType) -> Kernel {
    let mut b = KernelBuilder::default();
    let (x, y, flag) = (b.input(d), b.input(other), b.input(DType::Bool));
    let y = b.cast(y, d);
    let apply = |b: &mut KernelBuilder, op, d, args: &[ValueId]| {
        let args: Vec<Operand> = args.iter().map(|v| Operand::Value(*v)).collect();
        b.apply(op, d, &args)
    };
    let differs = apply(&mut b, Op::Ne, d, &[x, y]);
    let both = apply(&mut b, Op::LogicalAnd, DType::Bool, &[differs, flag]);
    let chosen = apply(&mut b, Op::Where, d, &[both, x, y]);
    let arithmetic = if d == DType::Bool { Op::LogicalXor } else { Op::Add };
    let sum = apply(&mut b, arithmetic, d, &[chosen, x]);
    let back = b.cast(sum, other);
    let again = apply(&mut b, Op::Where, other, &[both, back, back]);
    b.kernel.outputs.extend([differs, sum, again]);
    b.kernel
}

#[test]
fn fused_loops_of_two_dtypes_compile_for_arm() {
    let mut checked = Checked::new();
    for d in DType::ALL {
        for other in DType::ALL {
            checked.kernel(&mixed(d, other), &format!("{d} and {other}"));
        }
    }
    checked.finish(1000, 4);
}
