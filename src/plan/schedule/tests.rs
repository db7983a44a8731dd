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
fn inline_steps_stand_together() {
    let (plain, body) = stages(&[Op::Neg, Op::Sqrt, Op::Neg], Class::Vector);
    assert_eq!((plain.plain, plain.tiles, &body[..]), (true, 0, &["3 inline".to_string()][..]));
    let (mixed, body) = stages(&[Op::Neg, Op::Sqrt, Op::Sin, Op::Neg], Class::Vector);
    assert_eq!((mixed.plain, mixed.tiles, body.join(", ")), (false, 2, "2 inline, block, 1 inline".into()));
    let long: Vec<Op> = (0..2 * 192 + 8).map(|i| [Op::Neg, Op::Sqrt][i % 2]).collect();
    assert_eq!(stages(&long, Class::Vector).1.join(", "), "192 inline, 192 inline, 8 inline");
}

#[test]
fn uniform_values_are_computed_before_the_run_and_repeated_in_the_result() {
    let (made, body) = stages(&[Op::Neg, Op::Sin], Class::Splat);
    assert_eq!((made.prologue.len(), made.out_fills.len(), body.len(), made.plain), (2, 1, 0, false));
    let singles: Vec<&Slot> = made.slots.iter().filter(|s| matches!(s, Slot::Single(_))).collect();
    assert_eq!((made.singles, singles), (2, vec![&Slot::Single(0), &Slot::Single(1)]));
}
