//! Eager mode: one op at a time, on tensors.
//!
//! Guarantees: dtypes, shapes and refusals come from the same inference as a program's; values come from the same
//! block kernels, so a fused program has the same bits; a failed op poisons what is computed from it, and `result`
//! gives the error. Does not: fuse, generate code, or use threads.

use std::sync::Arc;

use crate::block::CpuLevel;
use crate::block::driver::SegmentFn;
use crate::error::{Error, Place, Result};
use crate::fuse::{Origin, plan};
use crate::infer::infer;
use crate::launch::{Call, Ready, launch};
use crate::ops::{Attrs, Op};
use crate::program::Program;
use crate::promotion::{Rules, Settings};
use crate::schedule::{Schedule, schedule};
use crate::tensor::Tensor;
use crate::var::{Graph, Mode, Operand, Sealed, Var};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eager {
    settings: Settings,
}

/// What an eager handle holds: the tensor, or what went wrong before.
#[derive(Clone)]
pub struct EagerValue {
    settings: Settings,
    value: Result<Tensor, Arc<Error>>,
}

impl Eager {
    /// Eager mode under the given rules, with the default dtype f32.
    pub fn new(rules: Rules) -> Eager {
        Eager { settings: Settings::new(rules) }
    }

    /// Eager mode under the given rules and default dtype.
    pub fn with_settings(settings: Settings) -> Eager {
        Eager { settings }
    }

    /// A handle of a tensor (which is shared, not copied).
    pub fn tensor(&self, t: &Tensor) -> Var<Eager> {
        Var(EagerValue { settings: self.settings, value: Ok(t.clone()) })
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

    fn apply(op: Op, operands: &[Operand<Eager>], attrs: Attrs, place: Place) -> Var<Eager> {
        let settings = operands.iter().find_map(|o| match o {
            Operand::Var(v) => Some(v.0.settings),
            Operand::Scalar(_) => None,
        });
        let settings = settings.unwrap_or(Settings::new(Rules::Torch));
        let value = apply(settings, op, operands, attrs, place).map_err(|e| match e {
            Error::Earlier(e) => e,
            e => Arc::new(e),
        });
        Var(EagerValue { settings, value })
    }
}

/// Applies one op: a program of one node, run by block kernels, one kernel after the other.
fn apply(settings: Settings, op: Op, operands: &[Operand<Eager>], attrs: Attrs, place: Place) -> Result<Tensor> {
    let program = Program::with_settings(settings);
    let mut inner: Vec<Operand<Graph>> = Vec::with_capacity(operands.len());
    for o in operands {
        inner.push(match o {
            Operand::Scalar(s) => Operand::Scalar(*s),
            Operand::Var(v) if v.0.settings != settings => {
                return Err(Error::Shape(format!("operands of `{op}` are from eager modes with different rules")));
            }
            Operand::Var(v) => Operand::Var(program.constant(v.0.value.clone().map_err(Error::Earlier)?)),
        });
    }
    let result = Graph::apply(op, &inner, attrs, place);
    let typed = Arc::new(infer(&program)?);
    let node = typed.node(&result)?;
    run_blocks(&typed, node)
}

/// Computes one node of a program without feeds with block kernels alone.
pub(crate) fn run_blocks(typed: &Arc<crate::typed::TypedProgram>, node: u32) -> Result<Tensor> {
    let plan = plan(typed, &[node], &Default::default(), &vec![false; typed.dyn_dims.len()])?;
    let mut values: Vec<Option<Tensor>> = plan
        .buffers
        .iter()
        .map(|b| match &b.origin {
            Origin::Constant(t) => Some(t.clone()),
            _ => None,
        })
        .collect();
    let early = || Error::Internal("a buffer was read before it was computed".into());
    for k in &plan.kernels {
        for b in &k.inputs {
            if let Origin::View(base) = plan.buffers[*b as usize].origin {
                let extents = concrete(&plan.typed, plan.buffers[*b as usize].shape)?;
                values[*b as usize] = Some(values[base as usize].as_ref().ok_or_else(early)?.reshape(extents)?);
            }
        }
        let inputs =
            k.inputs.iter().map(|b| values[*b as usize].as_ref().ok_or_else(early)).collect::<Result<Vec<_>>>()?;
        let extents = concrete(&plan.typed, k.shape)?;
        let (kernel, consts) = (&k.kernel, &k.consts);
        let call =
            Call { kernel, consts, inputs: &inputs, spread: &k.spread, extents: &extents, threads: 1, pool: None };
        let made = launch(&call, |classes| schedule(&k.kernel, classes, CpuLevel::get(), &|_| false).map(Blocks))?;
        let made = made.map_err(|r| refused(&plan.typed, k.nodes[r.0 as usize]))?;
        for (b, t) in k.outputs.iter().zip(made) {
            values[*b as usize] = Some(t);
        }
    }
    values.get(plan.fetches[0] as usize).cloned().flatten().ok_or_else(early)
}

/// A schedule of block kernels alone.
pub(crate) struct Blocks(pub(crate) Schedule);

impl Ready for Blocks {
    fn schedule(&self) -> &Schedule {
        &self.0
    }

    fn segments(&self) -> &[SegmentFn] {
        &[]
    }
}

/// The error of data that a node refuses.
pub(crate) fn refused(typed: &crate::typed::TypedProgram, node: u32) -> Error {
    let n = &typed.nodes[node as usize];
    let op = match &n.kind {
        crate::typed::TypedKind::Apply { op, .. } => op.name(),
        _ => "cast",
    };
    Error::DivisionByZero { op, place: n.place.clone() }
}

/// A shape of a program without dynamic dims.
fn concrete(typed: &crate::typed::TypedProgram, shape: u32) -> Result<Vec<usize>> {
    let extent = |d: &crate::shape::SymDim| d.extent(&[]);
    let all: Option<Vec<usize>> = typed.shapes[shape as usize].iter().map(extent).collect();
    all.ok_or_else(|| Error::Internal("a dynamic dim in eager mode".into()))
}
