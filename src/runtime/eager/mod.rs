//! Eager mode: one op at a time, on tensors.
//!
//! Guarantees: dtypes, shapes and refusals come from the same inference as a program's; values come from the same
//! block kernels, so a fused program has the same bits; a failed op poisons what is computed from it, and `result`
//! gives the error. Does not: fuse, generate code, or use threads. `cache` keeps the plans of ops that were applied.

use std::sync::Arc;

use smallvec::SmallVec;

use super::launch::run_blocks;
use crate::analysis::infer::infer;
use crate::base::error::{Diagnostic, Error, Fault, Place, Result};
use crate::base::limits::Limits;
use crate::base::scalar::Scalar;
use crate::base::shape::check_within;
use crate::graph::program::Program;
use crate::graph::typed::{NodeId, TypedProgram};
use crate::graph::var::{Graph, Mode, Operand, Sealed, Var};
use crate::ops::{Attrs, Op};
use crate::promotion::{Rules, Settings};
use crate::tensor::Tensor;

mod cache;

/// The eager mode under given rules: makes handles of tensors, whose operators compute at once.
///
/// ```
/// use castwise::prelude::*;
/// let cx = Eager::new(Rules::Torch);
/// let a = cx.tensor(&Tensor::from_slice(&[1i32, 2, 3], [3])?);
/// let half = (&a / 2).result()?;                             // integers divide to the default float dtype
/// assert_eq!(half.to_vec::<f32>()?, [0.5, 1.0, 1.5]);
/// assert!(a.floor_divide(0).result().is_err());
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Eager {
    settings: Settings,
    limits: Limits,
}

/// What an eager handle holds: the tensor, or what went wrong before.
#[derive(Clone)]
pub struct EagerValue {
    cx: Eager,
    value: Result<Tensor, Arc<Error>>,
    /// Whether it promotes as a scalar does.
    weak: bool,
}

impl Eager {
    /// Eager mode under the given rules, with the default dtype f32.
    pub fn new(rules: Rules) -> Eager {
        Eager::with_settings(Settings::new(rules))
    }

    /// Eager mode under the given settings. A default dtype that is no float is the error of every value.
    pub fn with_settings(settings: Settings) -> Eager {
        Eager::with_limits(settings, Limits::new())
    }

    /// Eager mode under the given rules or settings that refuses what a program of these [`Limits`] would: tensors and
    /// results of more dims or elements.
    ///
    /// ```
    /// use castwise::{Error, Limit, Limits, prelude::*};
    /// let cx = Eager::with_limits(Rules::Torch, Limits::new().with(Limit::Elements, 6)?);
    /// let (row, column) = (cx.tensor(&Tensor::full([3], 1.0f32)?), cx.tensor(&Tensor::full([2, 1], 1.0f32)?));
    /// assert!((&row + &column).result().is_ok());
    /// let three = cx.tensor(&Tensor::full([3, 1], 1.0f32)?);
    /// assert!((&row + &three).result().unwrap_err().to_string().contains("is 9, more than the limit of 6"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn with_limits(settings: impl Into<Settings>, limits: Limits) -> Eager {
        Eager { settings: settings.into(), limits }
    }

    /// A handle of a tensor (which is shared, not copied).
    pub fn tensor(&self, t: &Tensor) -> Var<Eager> {
        let value = match (self.settings.check(), check_within(t.shape(), &self.limits)) {
            (Ok(()), Ok(_)) => Ok(t.clone()),
            (Err(d), _) => Err(Arc::new(d.into())),
            (_, Err(e)) => Err(Arc::new(e)),
        };
        Var(EagerValue { cx: *self, value, weak: false })
    }
}

impl Var<Eager> {
    /// The tensor, or the first error on the way to it.
    pub fn result(&self) -> Result<Tensor> {
        self.0.value.clone().map_err(Error::Earlier)
    }
}

impl std::fmt::Debug for Var<Eager> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.value {
            Ok(t) => t.fmt(f),
            Err(e) => e.fmt(f),
        }
    }
}

impl Sealed for Eager {}

impl Mode for Eager {
    type Value = EagerValue;

    fn refuse(value: &EagerValue, mistake: Diagnostic) -> Var<Eager> {
        Var(EagerValue { cx: value.cx, value: Err(Arc::new(mistake.into())), weak: false })
    }

    fn settings(value: &EagerValue) -> Settings {
        value.cx.settings
    }

    fn apply(op: Op, operands: &[Operand<Eager>], attrs: Attrs, place: Place) -> Var<Eager> {
        let cx = operands.iter().find_map(|o| match o {
            Operand::Var(v) => Some(v.0.cx),
            Operand::Scalar(_) => None,
        });
        let cx = cx.unwrap_or(Eager::new(Rules::default()));
        let (value, weak) = match apply(cx, op, operands, attrs, place) {
            Ok((t, weak)) => (Ok(t), weak),
            Err(Error::Earlier(e)) => (Err(e), false),
            Err(e) => (Err(Arc::new(e)), false),
        };
        Var(EagerValue { cx, value, weak })
    }
}

/// Applies one op: a program of one node, run by block kernels, one kernel after the other. The result, and whether it is weak.
fn apply(cx: Eager, op: Op, operands: &[Operand<Eager>], attrs: Attrs, place: Place) -> Result<(Tensor, bool)> {
    // Without a tensor there is no handle to remember a mistake, so that it is told here.
    if operands.iter().all(|o| matches!(o, Operand::Scalar(_))) {
        let alone = || Diagnostic::new(Fault::BadParameter, format!("`{op}` of scalars alone"));
        return Err(op.wrong_count(operands.len()).unwrap_or_else(alone).at(&place).into());
    }
    let mut args: SmallVec<[Arg<'_>; 4]> = SmallVec::new();
    for (i, o) in operands.iter().enumerate() {
        args.push(match o {
            Operand::Scalar(s) => Arg::Scalar(*s),
            Operand::Var(v) if v.0.cx != cx => {
                return Err(other_mode(cx, op, operands, i).at(&place).into());
            }
            Operand::Var(v) => Arg::Tensor(v.0.value.as_ref().map_err(|e| Error::Earlier(e.clone()))?, v.0.weak),
        });
    }
    if let Some(result) = cache::apply(cx, op, &args, &attrs, &place)? {
        return Ok(result);
    }
    let (typed, node) = one_op(cx, op, &args, attrs, place, |program, _, t| program.constant(t.clone()))?;
    Ok((run_blocks(&typed, node)?, typed.nodes[node as usize].weak))
}

/// The refusal of an operand that is from another eager mode than the first tensor.
fn other_mode(cx: Eager, op: Op, operands: &[Operand<Eager>], i: usize) -> Diagnostic {
    let known = |o: &Operand<Eager>| match o {
        Operand::Var(v) => match &v.0.value {
            Ok(t) => format!("{}{:?}", t.dtype(), t.shape()),
            Err(_) => "an error".to_string(),
        },
        Operand::Scalar(s) => s.to_string(),
    };
    let other = match operands.get(i) {
        Some(Operand::Var(v)) => v.0.cx,
        _ => cx,
    };
    let what = match () {
        () if other.settings == cx.settings => "limits".to_string(),
        () if other.settings.rules == cx.settings.rules => "settings".to_string(),
        () => format!("rules: {}, and {} for operand {i}", cx.settings.rules, other.settings.rules),
    };
    let all: Vec<String> = operands.iter().map(known).collect();
    let message = format!("operands of `{op}`, {}, are from eager modes with different {what}", all.join(" and "));
    Diagnostic::new(Fault::ForeignVar, message)
}

/// An operand without its handle.
enum Arg<'a> {
    Scalar(Scalar),
    /// A tensor, and whether it is weak.
    Tensor(&'a Tensor, bool),
}

/// A typed program of one op, whose tensors are what `leaf` makes of them and their places among the operands.
fn one_op(
    cx: Eager,
    op: Op,
    args: &[Arg<'_>],
    attrs: Attrs,
    place: Place,
    leaf: impl Fn(&Program, usize, &Tensor) -> Var,
) -> Result<(Arc<TypedProgram>, NodeId)> {
    let program = Program::with_limits(cx.settings, cx.limits);
    let operand = |(i, a): (usize, &Arg<'_>)| match a {
        Arg::Scalar(s) => Operand::Scalar(*s),
        Arg::Tensor(t, weak) => {
            let v = leaf(&program, i, t);
            if *weak {
                program.weaken(&v);
            }
            Operand::Var(v)
        }
    };
    let operands: SmallVec<[Operand<Graph>; 4]> = args.iter().enumerate().map(operand).collect();
    let result = Graph::apply(op, &operands, attrs, place);
    let typed = Arc::new(infer(&program)?);
    let node = typed.node(&result)?;
    Ok((typed, node))
}
