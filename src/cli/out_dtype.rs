//! The dtypes that results are written with: `--out-dtype`.
//!
//! Guarantees: without `--out-dtype-all`, a float dtype takes no digit from what is made of integers or bools alone: such a
//! result keeps its dtype, or goes back to theirs if every element is exactly that, in f64 too; else there is no
//! output. Does not: have a say in casts that an expression ends with.

use castwise::promotion::promote_types;
use castwise::{
    DType, Diagnostic, Error, Executor, Fault, Feeds, NodeKind, Place, Program, Reason, Tensor, TypedProgram, Var,
};

use super::plan::{Job, Plan, UNNAMED, Work};
use super::reference::Mirror;
use super::{Failure, report};

/// Beyond this size f64 may hide that a value was rounded.
const LARGEST: f64 = (1u64 << 38) as f64;
/// How far a value may be from the one in f64, in parts of that and of one.
const NEAR: f64 = 1.0 / (1u64 << 40) as f64;
/// How many tensors are told of.
const TOLD: usize = 10;

/// What is asked of the dtypes of results.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutDtype {
    pub(crate) dtype: Option<DType>,
    /// Also of what is made of integers or bools alone.
    pub(crate) all: bool,
}

/// What is made of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It is written as it is computed.
    Same,
    /// So it is, although another dtype is asked for: it is made of integers or bools alone.
    Spared,
    /// It is converted.
    Converted(DType),
    /// It goes back to this dtype, that of the integers or bools that it is made of, if it is exactly that.
    Back(DType),
}

impl Made {
    /// Whether the values decide if there is a result.
    pub(super) fn is_back(self) -> bool {
        matches!(self, Made::Back(_))
    }
}

impl OutDtype {
    /// What is made of a result, from the dtypes and ranks of its operands. `place`: where the expression stands.
    pub(super) fn made(
        self,
        operands: &[(DType, usize)],
        program: &Program,
        v: &Var,
        place: Place,
    ) -> Result<Made, Error> {
        let Some(to) = self.dtype else { return Ok(Made::Same) };
        let typed = program.infer()?;
        let result = typed.dtype(v).ok_or_else(|| Error::Internal("a result without a type".into()))?;
        if self.all || to.is_integral() {
            return Ok(Made::Converted(to));
        }
        // As in promotion, a 0-d tensor beside tensors with dims is a parameter of theirs.
        let rank = usize::from(operands.iter().any(|(_, rank)| *rank > 0));
        let tensors = operands.iter().filter(|o| o.1 >= rank).map(|o| o.0);
        match tensors.reduce(promote_types) {
            Some(common) if common.is_integral() => {
                let kept = result.is_integral() || is_cast(&typed, v);
                Ok(if kept { Made::Spared } else { Made::Back(common) })
            }
            _ if result.is_complex() && to.is_float() => {
                complex(to).map(Made::Converted).ok_or_else(|| no_complex(to, place))
            }
            _ => Ok(Made::Converted(to)),
        }
    }
}

/// Whether the expression ends with a cast.
fn is_cast(typed: &TypedProgram, v: &Var) -> bool {
    let node = typed.position(v).and_then(|i| typed.nodes().nth(i));
    node.is_some_and(|n| matches!(n.kind, NodeKind::Cast { note, .. } if note.reason == Reason::Requested))
}

/// The complex dtype whose parts are of this one.
fn complex(part: DType) -> Option<DType> {
    DType::ALL.into_iter().find(|d| d.is_complex() && d.real() == part)
}

fn no_complex(to: DType, place: Place) -> Error {
    let message = format!("the result is complex, and no complex dtype has parts of {to}");
    let help = "`--out-dtype c64` keeps both parts, `--out-dtype-all` the real one";
    Error::Invalid(vec![Diagnostic::new(Fault::Cast, message).help(help).at(&place)])
}

/// Computes a result that goes back to integers or bools; answers also how many of its elements are not exactly that.
///
/// An element is, if it is the same when it is cast back, and f64 gives the same number: that a dtype has no fractions of
/// large numbers, or has rounded an operand, makes no integer.
pub(super) fn back(plan: &Plan, executor: &Executor, feeds: Feeds<'_>) -> Result<(Tensor, i64), Error> {
    let mirror = Mirror::new(&plan.typed)?;
    let (at, from, dtype) = cast_back(plan)?;
    let (result, before) = (&mirror.low[at], &mirror.low[from]);
    let exact = &mirror.exact_after(0)[from];
    let [difference, size] = mirror.error(from, &mirror.widened(from), exact);
    let same = result.cast(dtype).eq(before);
    let near = difference.le((&size + 1.0) * NEAR);
    // A NaN compares as false.
    let wrong = same.logical_and(near).logical_and(size.le(LARGEST)).logical_not();
    let wrong = wrong.cast(DType::I64).sum();
    match &executor.run(&mirror.program, feeds, [result, &wrong])?[..] {
        [t, wrong] => Ok((t.clone(), wrong.item()?)),
        _ => Err(Error::Internal("a run without results".into())),
    }
}

/// The positions of a result that goes back and of what it was, and the dtype of that.
fn cast_back(plan: &Plan) -> Result<(usize, usize, DType), Error> {
    let nodes: Vec<_> = plan.typed.nodes().collect();
    let at = plan.typed.position(&plan.result);
    match at.and_then(|at| Some((at, &nodes.get(at)?.kind))) {
        Some((at, NodeKind::Cast { from, .. })) => Ok((at, *from, nodes[*from].dtype)),
        _ => Err(Error::Internal("a result that was not cast back".into())),
    }
}

/// Results that were to go back to integers or bools, and are not exactly that.
#[derive(Default)]
pub(super) struct Inexact {
    tensors: Vec<(String, usize, i64)>,
}

impl Inexact {
    /// Takes note of a tensor, and of how many of its elements are wrong.
    pub(super) fn add(&mut self, job: &Job, wrong: i64) {
        if wrong > 0 {
            self.tensors.push((job.name.clone(), job.plan, wrong));
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// An error if there is one.
    pub(super) fn check(&self, work: &Work) -> Result<(), Failure> {
        let Some((first, ..)) = self.tensors.first() else { return Ok(()) };
        let out = work.out.dtype.map_or("", DType::name);
        let mut lines = Vec::new();
        for (name, plan, wrong) in self.tensors.iter().take(TOLD) {
            let plan = &work.plans[*plan];
            let (_, _, computed) = cast_back(plan)?;
            let what = if work.named { format!("the tensor `{}`", report::escaped(name)) } else { "the result".into() };
            let (own, count) = (plan.dtype, plan.shape()?.iter().product::<usize>());
            lines.push(report::error(&format!(
                "{what} is made of {own} alone, so that --out-dtype {out} does not convert it, and in {computed} it is not \
                 exactly {own} ({wrong} of {count} elements)"
            )));
        }
        if self.tensors.len() > TOLD {
            lines.push(report::error(&format!("(and {} more)", self.tensors.len() - TOLD)));
        }
        let input = work.inputs.first().map_or("a", |i| i.name.as_str());
        let map = format!("`--map '{}={input}'` takes it from an input; ", report::escaped(first));
        let map = if work.named { map } else { String::new() };
        lines.push(report::harmless(&format!(
            "help: {map}a cast at the end of the expression, e.g. `cast(..., f32)` or `cast(round(...), i64)`, chooses a \
             dtype; --out-dtype-all converts all results"
        )));
        Err(Failure { text: lines.join("\n"), code: 1 })
    }
}

/// What is said of results that are not converted.
pub(super) fn note(work: &Work) -> Option<String> {
    let out = work.out.dtype?;
    let kept = |p: &Plan| matches!(p.made, Made::Spared | Made::Back(_)) && p.dtype != out;
    let kept: Vec<&str> = work.jobs.iter().filter(|j| kept(&work.plans[j.plan])).map(|j| j.name.as_str()).collect();
    let of = match kept[..] {
        [] => return None,
        [UNNAMED] if !work.named => "the result, which".to_string(),
        _ => format!("{}: {}, which", super::plan::tensors(kept.len()), report::names(kept.iter().copied())),
    };
    let verb = if kept.len() == 1 { "is" } else { "are" };
    Some(format!("note: --out-dtype {out} does not convert {of} {verb} made of integers or bools alone"))
}
