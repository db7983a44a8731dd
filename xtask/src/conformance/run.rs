//! Runs a case in eager mode and as a program.

use castwise::prelude::*;
use castwise::{Error, Operand, Reduction};

use super::case::{Arg, Case};
use super::composed::Composed;

/// The result or error of castwise.
pub type Answer = Result<Tensor, Error>;

pub const NAMES: [&str; 4] = ["x", "y", "z", "w"];

/// The answer of eager mode.
pub fn eager(case: &Case) -> Answer {
    case.composed.as_ref().map_or(Ok(Reduction::None), Composed::reduction)?;
    in_eager(case).result()
}

fn in_eager(case: &Case) -> Var<Eager> {
    let cx = Eager::with_settings(case.settings);
    let operands: Vec<Operand<Eager>> = case
        .args
        .iter()
        .map(|a| match a {
            Arg::Tensor(t, true) => cx.weak_tensor(t).into(),
            Arg::Tensor(t, false) => cx.tensor(t).into(),
            Arg::Scalar(s) => (*s).into(),
        })
        .collect();
    written(case, apply(case, &operands))
}

/// Whether the case's result is weak in eager mode, or in a program.
pub fn weak(case: &Case, eager: bool) -> bool {
    if eager {
        return in_eager(case).is_weak();
    }
    let (program, result) = program(case);
    program.infer().is_ok_and(|typed| typed.is_weak(&result))
}

/// The result of the case's application, assigned to the first operand if the case is in place.
pub fn apply<M: Mode>(case: &Case, operands: &[Operand<M>]) -> Var<M> {
    let result = applied(case, operands);
    match operands.first() {
        Some(Operand::Var(x)) if case.in_place => x.assign(result),
        _ => result,
    }
}

fn applied<M: Mode>(case: &Case, operands: &[Operand<M>]) -> Var<M> {
    let composed = case.composed.as_ref().and_then(|c| c.apply(operands));
    composed.unwrap_or_else(|| castwise::apply(case.op, operands, case.attrs.clone()))
}

/// The result cast to the dtype of the output tensor, if there is one.
fn written<M: Mode>(case: &Case, result: Var<M>) -> Var<M> {
    case.output.map_or(result.clone(), |d| result.cast_output(d))
}

/// The case as a program, and its result.
pub fn program(case: &Case) -> (Program, Var) {
    let program = Program::with_settings(case.settings);
    let operands: Vec<Operand> = case
        .args
        .iter()
        .zip(NAMES)
        .map(|(a, name)| match a {
            Arg::Tensor(t, true) => program.weak_data(name, t.dtype(), t.shape()).into(),
            Arg::Tensor(t, false) => program.data(name, t.dtype(), t.shape()).into(),
            Arg::Scalar(s) => (*s).into(),
        })
        .collect();
    let result = written(case, apply(case, &operands));
    (program, result)
}

/// The answer of a compiled program.
pub fn compiled(case: &Case, executor: &Executor) -> Answer {
    case.composed.as_ref().map_or(Ok(Reduction::None), Composed::reduction)?;
    let (program, result) = program(case);
    let feeds: Vec<(&str, Tensor)> =
        case.args.iter().zip(NAMES).filter_map(|(a, n)| a.tensor().map(|t| (n, t.clone()))).collect();
    let mut all = executor.run(&program, Feeds::from(feeds), [&result])?;
    all.pop().ok_or_else(|| Error::Internal("no result".into()))
}
