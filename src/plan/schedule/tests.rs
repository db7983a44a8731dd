//! Tiles, stages and prologues of small kernels.

use super::*;
use crate::base::dtype::DType;
use crate::ops::Op;
use crate::plan::kernel::{KernelBuilder, Operand};
use crate::plan::tuning::TILE;

#[test]
fn tiles_are_reused_and_as_large_as_was_asked() {
    let mut b = KernelBuilder::default();
    let x = b.input(DType::F32);
    let y = (0..9).fold(x, |y, _| b.apply(Op::Sin, DType::F32, &[Operand::Value(y)]));
    b.kernel.outputs.push(y);
    let planned = |passes| {
        schedule_with(&b.kernel, &[Class::Vector], CpuLevel::get(), &|_| false, passes).map(|s| (s.tiles, s.tile))
    };
    // Eight values between the stages; no stage writes what it reads.
    assert_eq!(planned(Passes::default()).unwrap(), (2, TILE));
    let passes = Passes { tile: 7, ..Passes::default() };
    assert_eq!(planned(passes.without(Pass::Reuse)).unwrap(), (8, 7));
}

/// The stages of a kernel of these ops, one after the other on f32, where sines are not lowered.
fn stages(ops: &[Op], class: Class) -> (Schedule, Vec<String>) {
    let mut b = KernelBuilder::default();
    let x = b.input(DType::F32);
    let y = ops.iter().fold(x, |y, op| b.apply(*op, DType::F32, &[Operand::Value(y)]));
    b.kernel.outputs.push(y);
    let is_lowerable = |s: &Step| s.op != StepOp::Apply(Op::Sin);
    let made = schedule(&b.kernel, &[class], CpuLevel::get(), &is_lowerable).unwrap();
    let text = |s: &Stage| match s {
        Stage::Block(_) => "block".to_string(),
        Stage::Segment(n) => format!("{} inline", made.segments[*n as usize].steps.len()),
    };
    let body = made.body.iter().map(text).collect();
    (made, body)
}

#[test]
fn steps_for_segments_come_together() {
    let (plain, body) = stages(&[Op::Neg, Op::Sqrt, Op::Neg], Class::Vector);
    assert_eq!((plain.plain, plain.tiles, &body[..]), (true, 0, &["3 inline".to_string()][..]));
    let (mixed, body) = stages(&[Op::Neg, Op::Sqrt, Op::Sin, Op::Neg], Class::Vector);
    assert_eq!((mixed.plain, mixed.tiles, body.join(", ")), (false, 2, "2 inline, block, 1 inline".into()));
    let long: Vec<Op> = (0..2 * 192 + 8).map(|i| [Op::Neg, Op::Sqrt][i % 2]).collect();
    assert_eq!(stages(&long, Class::Vector).1.join(", "), "192 inline, 192 inline, 8 inline");
}

#[test]
fn uniform_values_are_computed_in_the_prologue_and_repeated_in_the_result() {
    let (made, body) = stages(&[Op::Neg, Op::Sin], Class::Splat);
    assert_eq!((made.prologue.len(), made.out_fills.len(), body.len(), made.plain), (2, 1, 0, false));
    let singles: Vec<&Slot> = made.slots.iter().filter(|s| matches!(s, Slot::Single(_))).collect();
    assert_eq!((made.singles, singles), (2, vec![&Slot::Single(0), &Slot::Single(1)]));
}

#[test]
fn a_schedule_prints_a_line_for_each_slot_and_stage() {
    let mut b = KernelBuilder::default();
    let (x, y) = (b.input(DType::F32), b.input(DType::F32));
    let mut apply = |op, args: &[ValueId]| {
        let args: Vec<Operand> = args.iter().map(|v| Operand::Value(*v)).collect();
        b.apply(op, DType::F32, &args)
    };
    let uniform = apply(Op::Sin, &[y]);
    let product = apply(Op::Mul, &[x, uniform]);
    let sine = apply(Op::Sin, &[product]);
    let negated = apply(Op::Neg, &[sine]);
    b.kernel.outputs.push(sine);
    b.kernel.folds.push((Op::Sum, negated));
    let is_lowerable = |s: &Step| s.op != StepOp::Apply(Op::Sin);
    let classes = [Class::Vector, Class::Splat];
    let made = schedule(&b.kernel, &classes, CpuLevel::get(), &is_lowerable).unwrap();
    let text = "schedule {
  s0: f32 = in1
  s1: f32 = single 0
  s2: f32 = out0
  s3: f32 = tile 0
  s4: f32 = in0
  uniform %2: f32 = sin.f32 %1; s1 = s0
  segment 0 {
    %0: f32 = load s4
    %2: f32 = load s1, uniform
    %3: f32 = mul.f32 %0, %2
    store s3, %3
  }
  kernel %4: f32 = sin.f32 %3; s2 = s3
  segment 1 {
    %4: f32 = load s2
    %5: f32 = neg.f32 %4
    store s3, %5
  }
  fold sum, s3
}
";
    assert_eq!(text::ScheduleText(&b.kernel, &made).to_string(), text);
}
