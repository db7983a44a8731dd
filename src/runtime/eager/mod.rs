//! Eager mode: one op at a time, on tensors.
//!
//! Guarantees: dtypes, shapes and refusals come from the same inference as a program's; values come from the same
//! block kernels, so a fused program has the same bits; a failed op poisons what is computed from it, and `result`
//! gives the error. Does not: fuse, generate code, or use threads. `cache` keeps the plans of ops that were applied.

use std::sync::Arc;

use smallvec::SmallVec;

use super::launch::run_blocks;
use crate::analysis::infer::infer;
use crate::base::blocks::BlockSize;
use crate::base::composite::Composite;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result, SourceLocation};
use crate::base::generator::Generator;
use crate::base::location::{here, with_location};
use crate::base::scalar::Scalar;
use crate::base::view::View;
use crate::graph::program::Program;
use crate::graph::typed::TypedKind;
use crate::graph::var::{Graph, Mode, Operand, Var};
use crate::ops::{Attrs, Op};
use crate::promotion::{Rules, Settings};
use crate::tensor::Tensor;
use value::{Arg, Eager, EagerValue, Failed, one_op};

mod cache;
mod gradients;
pub(crate) mod value;

impl Var<Eager> {
    /// Whether the value promotes as a scalar does. The tensor that [`result`](Var::result) gives does not.
    pub fn is_weak(&self) -> bool {
        self.0.weak
    }

    /// The tensor, or the first error on the way to it.
    pub fn result(&self) -> Result<Tensor> {
        self.0.value.clone().map_err(|e| Error::Earlier(e.error))
    }
}

impl Eager {
    /// A scalar in a dtype: a 0-d tensor, as [`Program::scalar`] gives it.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let weight = Eager::new(Rules::Torch).scalar(0.3, DType::BF16);
    /// assert_eq!(weight.result()?.item::<bf16>()?.to_f32(), 0.30078125);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn scalar(&self, value: impl Into<Scalar>, dtype: DType) -> Var<Eager> {
        self.scalar_at(value.into(), dtype, here())
    }

    fn scalar_at(self, value: Scalar, dtype: DType, location: SourceLocation) -> Var<Eager> {
        let made = || {
            let program = Program::with_limits(self.settings, self.limits);
            let v = with_location(location, || program.scalar(value, dtype));
            let typed = infer(&program)?;
            match &typed.nodes[typed.node(&v)? as usize].kind {
                TypedKind::Constant(t) => Ok(t.clone()),
                _ => Err(Error::Internal("a cast of a scalar is no constant".into())),
            }
        };
        Var(EagerValue { cx: self, value: made().map_err(Failed::new), weak: false })
    }
}

impl Mode for Eager {
    type Value = EagerValue;

    fn refuse(value: &EagerValue, mistake: Diagnostic) -> Var<Eager> {
        Var(EagerValue { cx: value.cx, value: Err(mistake.into()), weak: false })
    }

    fn settings(value: &EagerValue) -> Settings {
        value.cx.settings
    }

    fn view(of: &EagerValue, view: View, location: SourceLocation) -> Var<Eager> {
        let made = of.value.as_ref().map_err(Failed::clone).and_then(|t| Ok(of.cx.view(t, &view, &location)?));
        Var(EagerValue { cx: of.cx, weak: of.weak && made.is_ok(), value: made })
    }

    fn blocks(scale: &EagerValue, like: &EagerValue, size: BlockSize, location: SourceLocation) -> Var<Eager> {
        let cx = scale.cx;
        let made = match (&scale.value, &like.value) {
            (Ok(s), Ok(l)) => blocks(cx, s, l, size, location).map_err(Failed::new),
            (Err(e), _) | (_, Err(e)) => Err(Failed::first([scale, like]).unwrap_or(e.clone())),
        };
        Var(EagerValue { cx, weak: scale.weak && made.is_ok(), value: made })
    }

    fn composite(
        beside: &EagerValue,
        composite: &Composite,
        operands: &[Operand<Eager>],
        location: SourceLocation,
    ) -> Var<Eager> {
        let cx = beside.cx;
        let (value, weak) = match composed(cx, composite, operands, location) {
            Ok((t, weak)) => (Ok(t), weak),
            Err(e) => (Err(e), false),
        };
        Var(EagerValue { cx, value, weak })
    }

    fn generate(like: &EagerValue, generator: Generator, location: SourceLocation) -> Var<Eager> {
        let cx = like.cx;
        let made = like.value.as_ref().map_err(Failed::clone).and_then(|t| {
            let shape = t.shape();
            Ok(generate(cx, shape, generator, location)?)
        });
        Var(EagerValue { cx, value: made, weak: false })
    }

    fn scalar(beside: &EagerValue, scalar: Scalar, dtype: DType, location: SourceLocation) -> Var<Eager> {
        beside.cx.scalar_at(scalar, dtype, location)
    }

    fn apply(op: Op, operands: &[Operand<Eager>], attrs: Attrs, location: SourceLocation) -> Var<Eager> {
        let cx = operands.iter().find_map(|o| match o {
            Operand::Var(v) => Some(v.0.cx),
            Operand::Scalar(_) => None,
        });
        let cx = cx.unwrap_or(Eager::new(Rules::default()));
        let (value, weak) = match apply(cx, op, operands, attrs, location) {
            Ok((t, weak)) => (Ok(t), weak),
            Err(e) => (Err(e), false),
        };
        Var(EagerValue { cx, value, weak })
    }
}

/// The blocks of a scale in the shape of another tensor: a program of one node.
fn blocks(cx: Eager, scale: &Tensor, like: &Tensor, size: BlockSize, location: SourceLocation) -> Result<Tensor> {
    let program = Program::with_limits(cx.settings, cx.limits);
    let like = program.data_at("like", DType::Bool, like.shape().into(), location.clone(), false);
    let v = Graph::blocks(&program.constant(scale.clone()).0, &like.0, size, location);
    let typed = Arc::new(infer(&program)?);
    let node = typed.node(&v)?;
    run_blocks(&typed, node)
}

/// The elements of a generator in a shape: a program of one node.
fn generate(cx: Eager, shape: &[usize], generator: Generator, location: SourceLocation) -> Result<Tensor> {
    let program = Program::with_limits(cx.settings, cx.limits);
    let like = program.data_at("like", DType::Bool, shape.into(), location.clone(), false);
    let v = Graph::generate(&like.0, generator, location);
    let typed = Arc::new(infer(&program)?);
    let node = typed.node(&v)?;
    run_blocks(&typed, node)
}

/// A value as a constant of a program.
fn constant(program: &Program, v: &EagerValue) -> Result<Var, Failed> {
    Ok(program.constant_at(v.value.as_ref().map_err(Failed::clone)?.clone(), here(), v.weak))
}

/// The value of a composite, and whether it is weak: a program of one node.
fn composed(
    cx: Eager,
    composite: &Composite,
    operands: &[Operand<Eager>],
    location: SourceLocation,
) -> Result<(Tensor, bool), Failed> {
    check(cx, composite.name(), operands, &location)?;
    let program = Program::with_limits(cx.settings, cx.limits);
    let mut all: SmallVec<[Operand; 4]> = SmallVec::new();
    let mut first = None;
    for o in operands {
        all.push(match o {
            Operand::Scalar(s) => Operand::Scalar(*s),
            Operand::Var(v) => {
                let made = constant(&program, &v.0)?;
                first.get_or_insert(made.clone());
                Operand::Var(made)
            }
        });
    }
    let first = first.ok_or_else(|| Error::Internal("a composite of scalars alone".into()))?;
    let v = Graph::composite(&first.0, composite, &all, location);
    let typed = Arc::new(infer(&program)?);
    let node = typed.node(&v)?;
    Ok((run_blocks(&typed, node)?, typed.nodes[node as usize].weak))
}

/// Applies one op: a program of one node, run by block kernels, one kernel after the other. The result, and whether it is weak.
fn apply(
    cx: Eager,
    op: Op,
    operands: &[Operand<Eager>],
    attrs: Attrs,
    location: SourceLocation,
) -> Result<(Tensor, bool), Failed> {
    // Without a tensor there is no handle to remember a mistake, so that it is told here.
    if operands.iter().all(|o| matches!(o, Operand::Scalar(_))) {
        let alone = || Diagnostic::new(DiagnosticKind::BadParameter, format!("`{op}` of scalars alone"));
        return Err(op.wrong_count(operands.len()).unwrap_or_else(alone).at(&location).into());
    }
    check(cx, op.name(), operands, &location)?;
    let mut args: SmallVec<[Arg<'_>; 4]> = SmallVec::new();
    for o in operands {
        args.push(match o {
            Operand::Scalar(s) => Arg::Scalar(*s),
            Operand::Var(v) => Arg::Tensor(v.0.value.as_ref().map_err(Failed::clone)?, v.0.weak),
        });
    }
    if let Some(result) = cache::apply(cx, op, &args, &attrs, &location)? {
        return Ok(result);
    }
    let constant = |program: &Program, _: usize, t: &Tensor, weak: bool| program.constant_at(t.clone(), here(), weak);
    let (typed, node) = one_op(cx, op, &args, attrs, location, constant)?;
    Ok((run_blocks(&typed, node)?, typed.nodes[node as usize].weak))
}

/// The value of an operand that is no scalar.
fn value(o: &Operand<Eager>) -> Option<&EagerValue> {
    match o {
        Operand::Var(v) => Some(&v.0),
        Operand::Scalar(_) => None,
    }
}

/// Whether all operands have values, and are from one mode.
fn check(cx: Eager, op: &str, operands: &[Operand<Eager>], location: &SourceLocation) -> Result<(), Failed> {
    if let Some(failed) = Failed::first(operands.iter().filter_map(value)) {
        return Err(failed);
    }
    match operands.iter().position(|o| value(o).is_some_and(|v| v.cx != cx)) {
        Some(i) => Err(other_mode(cx, op, operands, i).at(location).into()),
        None => Ok(()),
    }
}

/// The refusal of an operand that is from another eager mode than the first tensor.
fn other_mode(cx: Eager, op: &str, operands: &[Operand<Eager>], i: usize) -> Diagnostic {
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
    Diagnostic::new(DiagnosticKind::ForeignVar, message)
}
