//! The eager mode and its values, and the program of one op.
//!
//! Does not: compute.

use crate::analysis::infer::infer;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, Error, Result, SourceLocation};
use crate::base::limits::Limits;
use crate::base::location::here;
use crate::base::scalar::Scalar;
use crate::base::shape::{SymDim, check_within};
use crate::base::view::{Known, View};
use crate::graph::program::Program;
use crate::graph::typed::{NodeId, TypedProgram};
use crate::graph::var::{Graph, Mode, Operand, Sealed, Var};
use crate::ops::{Attrs, Op};
use crate::promotion::{Rules, Settings};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    pub(super) settings: Settings,
    pub(super) limits: Limits,
}

/// What an eager handle holds: the tensor, or what went wrong before.
#[derive(Clone)]
pub struct EagerValue {
    pub(super) cx: Eager,
    pub(super) value: Result<Tensor, Failed>,
    /// Whether it promotes as a scalar does.
    pub(super) weak: bool,
}

/// What went wrong, and how many errors were before: a value that is computed from several such values reports the earliest, as a
/// program reports that of its first op.
#[derive(Clone)]
pub(super) struct Failed {
    pub(super) error: Arc<Error>,
    at: u64,
}

impl Failed {
    pub(super) fn new(error: Error) -> Failed {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Failed { error: Arc::new(error), at: COUNT.fetch_add(1, Ordering::Relaxed) }
    }

    /// The earliest error of some operands.
    pub(super) fn first<'a>(all: impl IntoIterator<Item = &'a EagerValue>) -> Option<Failed> {
        all.into_iter().filter_map(|v| v.value.as_ref().err()).min_by_key(|f| f.at).cloned()
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::new(error)
    }
}

impl From<Diagnostic> for Failed {
    fn from(mistake: Diagnostic) -> Failed {
        Failed::new(mistake.into())
    }
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
    #[track_caller]
    pub fn tensor(&self, t: &Tensor) -> Var<Eager> {
        self.handle(t, false)
    }

    /// A handle of a weak tensor, if the rules have weak tensors: it promotes as a scalar does. bool is never weak.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let cx = Eager::new(Rules::Jax);
    /// let (x, half) = (Tensor::from([bf16::ONE]), Tensor::from([0.5f32]));
    /// assert_eq!((cx.tensor(&x) * cx.tensor(&half)).result()?.dtype(), DType::F32);
    /// assert_eq!((cx.tensor(&x) * cx.weak_tensor(&half)).result()?.dtype(), DType::BF16);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn weak_tensor(&self, t: &Tensor) -> Var<Eager> {
        self.handle(t, t.dtype() != DType::Bool && self.settings.rules.has_weak())
    }

    /// A view of a tensor; a copy, where its strides have none.
    pub(super) fn view(&self, t: &Tensor, view: &View, location: &SourceLocation) -> Result<Tensor> {
        let dims: Vec<SymDim> = t.shape().iter().map(|n| SymDim::Fixed(*n)).collect();
        let shape = view.shape(t.dtype(), &dims, &self.limits, &mut Known).map_err(|d| d.at(location))?;
        let shape: Vec<usize> = shape.iter().filter_map(|d| d.extent(&[])).collect();
        match t.viewed(view, &shape)? {
            Some(made) => Ok(made),
            None => t.contiguous()?.reshape(shape),
        }
    }

    #[track_caller]
    fn handle(&self, t: &Tensor, weak: bool) -> Var<Eager> {
        let value = match (self.settings.check(), check_within(t.shape(), &self.limits)) {
            (Ok(()), Ok(_)) => Ok(t.clone()),
            (Err(d), _) => Err(d.at(&here()).into()),
            (_, Err(e)) => Err(e.into()),
        };
        Var(EagerValue { cx: *self, value, weak })
    }
}

impl std::fmt::Debug for Var<Eager> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0.value {
            Ok(t) => t.fmt(f),
            Err(e) => e.error.fmt(f),
        }
    }
}

impl Sealed for Eager {}

/// An operand without its handle.
pub(super) enum Arg<'a> {
    Scalar(Scalar),
    /// A tensor, and whether it is weak.
    Tensor(&'a Tensor, bool),
}

/// A typed program of one op, whose tensors are what `leaf` makes of them, of their places among the operands, and of whether they are weak.
pub(super) fn one_op(
    cx: Eager,
    op: Op,
    args: &[Arg<'_>],
    attrs: Attrs,
    location: SourceLocation,
    leaf: impl Fn(&Program, usize, &Tensor, bool) -> Var,
) -> Result<(Arc<TypedProgram>, NodeId)> {
    let program = Program::with_limits(cx.settings, cx.limits);
    let operand = |(i, a): (usize, &Arg<'_>)| match a {
        Arg::Scalar(s) => Operand::Scalar(*s),
        Arg::Tensor(t, weak) => Operand::Var(leaf(&program, i, t, *weak)),
    };
    let operands: SmallVec<[Operand<Graph>; 4]> = args.iter().enumerate().map(operand).collect();
    let result = Graph::apply(op, &operands, attrs, location);
    let typed = Arc::new(infer(&program)?);
    let node = typed.node(&result)?;
    Ok((typed, node))
}
