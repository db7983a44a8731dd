//! Composites of shapes: `sum_to`, `expand_like`, `count`, `full_like`, and `complex`.
//!
//! Guarantees: which dims are summed is known when the dynamic dims are: a dim whose extent may be 1 in `like` is viewed as two, of which
//! one has its extent and the other, which is summed, has the rest. Does not: read the elements of `like`.

use super::{In, Made, Writer};
use crate::base::dtype::DType;
use crate::base::error::DiagnosticKind;
use crate::base::generator::Generator;
use crate::base::scalar::Scalar;
use crate::base::shape::{SymDim, axes, dims_text};
use crate::base::view::View;
use crate::graph::typed::{Asked, DimCheck, DynDim, NodeId, TypedKind};
use crate::ops::{Attrs, Op};

/// A dim as the extent of a view: a number, or what is known when it is fed.
fn extent(d: &SymDim) -> i64 {
    match d {
        SymDim::Fixed(n) => i64::try_from(*n).unwrap_or(i64::MAX),
        SymDim::Sym(_) => View::FED,
    }
}

impl Writer<'_> {
    /// A value like which another one becomes.
    pub(super) fn like(&self, like: In) -> Made {
        match like {
            In::Node(n) => Ok(n),
            In::Number(_) => {
                Err(self.refuse(DiagnosticKind::ArgNotTensor, "the operand it is like is a number, which has no shape"))
            }
        }
    }

    /// Notes that the first dim must be 1 or the second, once they are known.
    pub(super) fn must_broadcast(&mut self, axis: usize, dims: (SymDim, SymDim)) {
        let (op, location) = (self.of.name(), self.location.clone());
        self.inference.checks.push(DimCheck { dims, op, axis, asked: Asked::Into, location });
    }

    fn viewed(&mut self, from: NodeId, view: Option<View>, dims: &[SymDim]) -> NodeId {
        let (dtype, weak, shape) =
            (self.dtype(from), self.inference.nodes[from as usize].weak, self.inference.shapes.id(dims));
        if self.inference.nodes[from as usize].shape == shape {
            return from;
        }
        let id = self.inference.push(TypedKind::View { from, view }, dtype, shape, self.location);
        self.inference.weak(id, weak)
    }

    pub(super) fn expand_like(&mut self, x: NodeId, like: In) -> Made {
        let like = self.like(like)?;
        let (from, to) = (self.inference.shape(x).clone(), self.inference.shape(like).clone());
        let refused = |w: &Self| {
            let message = format!("{} does not broadcast to {}", w.shown(x), dims_text(&to));
            w.refuse(DiagnosticKind::Broadcast, &message)
        };
        let front = to.len().checked_sub(from.len()).ok_or_else(|| refused(self))?;
        for (axis, (d, l)) in from.iter().zip(&to[front..]).enumerate() {
            match (d, l) {
                (SymDim::Fixed(1), _) => {}
                (d, l) if d == l => {}
                (SymDim::Fixed(_), SymDim::Fixed(_)) => return Err(refused(self)),
                (d, l) => self.must_broadcast(front + axis, (d.clone(), l.clone())),
            }
        }
        let mut shape: Vec<i64> = to.iter().map(extent).collect();
        for (n, d) in shape[front..].iter_mut().zip(from.iter()) {
            // A dynamic dim that must be 1.
            if *n == 1 && *d != SymDim::Fixed(1) {
                *n = View::FED;
            }
        }
        Ok(self.viewed(x, Some(View::Expand(shape.into())), &to))
    }

    pub(super) fn sum_to(&mut self, x: NodeId, like: In) -> Made {
        let like = self.like(like)?;
        let (from, to) = (self.inference.shape(x).clone(), self.inference.shape(like).clone());
        let refused = |w: &Self| {
            let message = format!("{} is no broadcast of {}", w.shown(x), dims_text(&to));
            w.refuse(DiagnosticKind::Broadcast, &message)
        };
        let front = from.len().checked_sub(to.len()).ok_or_else(|| refused(self))?;
        let (mut split, mut summed) = (from[..front].to_vec(), (0..front as i64).collect::<Vec<i64>>());
        let mut in_place = true;
        for (axis, (d, l)) in from[front..].iter().zip(to.iter()).enumerate() {
            split.push(d.clone());
            let at = split.len() as i64 - 1;
            match (d, l) {
                (d, l) if d == l => {}
                (_, SymDim::Fixed(1)) => summed.push(at),
                (d, l) if !matches!((d, l), (SymDim::Fixed(_), SymDim::Fixed(_))) => {
                    self.must_broadcast(front + axis, (l.clone(), d.clone()));
                    split[at as usize] = l.clone();
                    let rest = self.inference.dyn_dims.len() as u32;
                    self.inference.dyn_dims.push(DynDim::Quotient { of: d.clone(), by: l.clone() });
                    split.push(SymDim::symbol(rest));
                    summed.push(at + 1);
                    in_place = false;
                }
                _ => return Err(refused(self)),
            }
        }
        if summed.is_empty() {
            // The sum of one element each, which begins with 0, as where dims turn out to be equal when they are fed.
            return match self.dtype(x) {
                DType::Bool => self.binary(Op::LogicalOr, x, x),
                _ => self.row(Op::Add, &[x.into(), In::Number(Scalar::Int(0))]),
            };
        }
        let shape: Vec<i64> = split.iter().map(extent).collect();
        let x = self.viewed(x, Some(View::Reshape(shape.into())), &split);
        // Sums of c32 are refused, its other arithmetic is not.
        let dtype = self.dtype(x);
        let x = if dtype == DType::C32 { self.cast(x, DType::C64)? } else { x };
        let attrs = Attrs::dims(summed).with_keepdim(front == 0 && in_place);
        let attrs = if dtype.is_integral() { attrs.with_dtype(dtype) } else { attrs };
        let sum = self.row_with(Op::Sum, &[x.into()], attrs)?;
        let sum = self.cast(sum, dtype)?;
        Ok(self.viewed(sum, None, &to))
    }

    /// The number of elements along dims: i64.
    pub(super) fn count(&mut self, x: NodeId) -> Made {
        let dims = self.inference.shape(x).clone();
        let axes = axes(self.of.dims.as_deref(), dims.len()).map_err(|m| self.refuse(DiagnosticKind::Axis, &m))?;
        let fixed = axes.iter().map(|a| if let SymDim::Fixed(n) = dims[*a] { i64::try_from(n).ok() } else { None });
        let known = fixed.into_iter().try_fold(1i64, |n, d| n.checked_mul(d?));
        if let Some(n) = known {
            return self.inference.scalar(Scalar::Int(n.into()), DType::I64, self.location);
        }
        let (whole, shape) = (self.inference.nodes[x as usize].shape, self.inference.shapes.id(&[]));
        let kind = TypedKind::Extent { shape: whole, axes: axes.into() };
        let n = self.inference.push(kind, DType::F64, shape, self.location);
        self.cast(n, DType::I64)
    }

    /// A number in the shape of another value.
    pub(super) fn full_like(&mut self, x: NodeId) -> Made {
        let dtype = self.of.dtype.unwrap_or(self.dtype(x));
        let value = self.of.value(0, 0.0);
        let start = Scalar::Float(value);
        // -0 is what changes no number when it is added, not even -0.
        let g = Generator::Arange { start, step: Scalar::Float(-0.0), dim: None, dtype: Some(DType::F64) };
        let made = self.inference.generate(g, x, self.location).map_err(|d| self.named(d))?;
        self.cast(made, dtype)
    }

    /// The complex number of two real values in their common dtype.
    pub(super) fn complex(&mut self, re: NodeId, im: In) -> Made {
        let im = self.value(re, im)?;
        let common = self.common(re, im)?;
        let [re, im] = [self.cast(re, common)?, self.cast(im, common)?];
        let [re, im] = [self.float(re, false)?, self.float(im, false)?];
        let to = self.dtype(re).to_complex();
        let [re, im] = [self.cast(re, to)?, self.cast(im, to)?];
        self.binary(Op::FromParts, re, im)
    }
}
