//! What the buffers of a run hold: feeds and constants in place, views of them, and what kernels made.
//!
//! Guarantees: a buffer is read only after it was computed; a view copies nothing, but a reshape of strides that have none; a made
//! buffer is dropped after its last use.
//! Does not: decide which use is the last; the plan has.

use smallvec::SmallVec;

use super::operand::Operand;
use super::run::{FEW, Run};
use crate::base::error::{Error, Result};
use crate::base::shape::{SymDim, dims_text};
use crate::base::view::View;
use crate::graph::typed::{NodeId, TypedKind};
use crate::kernels::CpuLevel;
use crate::kernels::generate::Filler;
use crate::plan::fuse::{Buffer, BufferId, Origin, Plan};
use crate::runtime::driver::made::{Blocks, Made};
use crate::tensor::layout::Layout;
use crate::tensor::{Tensor, TensorRef, TensorView};

/// What a buffer holds during a run.
pub(super) enum Value<'a> {
    Given(TensorRef<'a>),
    /// Borrowed elements under another shape: an index into the run's views.
    Shown(usize),
    Made(Tensor),
    /// In the caller's tensor.
    Delivered,
}

fn unready() -> Error {
    Error::Internal("a buffer was read before it was computed".into())
}

/// The buffers of a run.
pub(super) struct Buffers<'a> {
    plan: &'a Plan,
    run: &'a Run<'a>,
    pub(super) values: SmallVec<[Option<Value<'a>>; FEW]>,
    shown: Vec<TensorView<'a>>,
    /// The view of an operand that inference placed: dims of extent 1, which its shape tells.
    placed: View,
}

impl<'a> Buffers<'a> {
    pub(super) fn new(plan: &'a Plan, run: &'a Run<'a>) -> Buffers<'a> {
        let given = |b: &'a Buffer| match &b.origin {
            Origin::Feed(i) => run.feeds.get(*i as usize).copied().map(Value::Given),
            Origin::Constant(t) => Some(Value::Given(TensorRef::Tensor(t))),
            Origin::Extent(shape, axes) => extent(&plan.typed.shapes[*shape as usize], axes, run).map(Value::Made),
            Origin::Kernel | Origin::View(..) | Origin::Generated(_) | Origin::Blocks(..) => None,
        };
        Buffers {
            plan,
            run,
            values: plan.buffers.iter().map(given).collect(),
            shown: Vec::new(),
            placed: View::Reshape([].into()),
        }
    }

    #[inline]
    pub(super) fn get(&self, id: BufferId) -> Result<TensorRef<'_>> {
        match &self.values[id as usize] {
            Some(Value::Given(t)) => Ok(*t),
            Some(Value::Shown(at)) => Ok(TensorRef::View(&self.shown[*at])),
            Some(Value::Made(t)) => Ok(TensorRef::Tensor(t)),
            Some(Value::Delivered) | None => Err(unready()),
        }
    }

    /// A buffer as an operand of a kernel.
    #[inline]
    pub(super) fn operand(&self, id: BufferId) -> Result<Operand<'_>> {
        let buffer = &self.plan.buffers[id as usize];
        match buffer.origin {
            Origin::Generated(node) => self.made(node, None),
            Origin::Blocks(scale, node) => self.made(node, Some(scale)),
            _ => self.get(id).map(Operand::Tensor),
        }
    }

    /// The elements of a generator, or the blocks of a scale.
    fn made(&self, node: NodeId, scale: Option<BufferId>) -> Result<Operand<'_>> {
        let n = &self.plan.typed.nodes[node as usize];
        let shape = extents(&self.plan.typed.shapes[n.shape as usize], self.run.dyn_dims)?;
        let made = match (&n.kind, scale) {
            (TypedKind::Generate { generator, .. }, None) => {
                let filler = |shape: &[usize]| Filler::new(generator, n.dtype, shape, CpuLevel::get());
                Made::Generator(match self.run.part {
                    None => filler(&shape),
                    Some(part) => {
                        let (whole, first) = part.whole(&shape)?;
                        filler(&whole).from(first)
                    }
                })
            }
            (TypedKind::Blocks { size, .. }, Some(scale)) => {
                let scale = self.get(scale)?;
                let ((bytes, offset), of) = (scale.raw(), (scale.shape(), scale.strides()));
                let blocks = Blocks::new(&shape, size, (bytes, scale.dtype(), offset), of).map_err(|e| match e {
                    Error::Shape(message) => Error::Shape(format!("{message} at {}", n.location)),
                    e => e,
                })?;
                Made::Blocks(blocks)
            }
            _ => return Err(Error::Internal(format!("typed node {node} is not made"))),
        };
        Ok(Operand::Made(made, Layout::contiguous(&shape)?))
    }

    /// Keeps a view until the run ends.
    fn show(shown: &mut Vec<TensorView<'a>>, view: TensorView<'a>) -> Value<'a> {
        shown.push(view);
        Value::Shown(shown.len() - 1)
    }

    /// Makes views of what is there.
    pub(super) fn view(&mut self, views: &[BufferId]) -> Result<()> {
        for b in views {
            let buffer = &self.plan.buffers[*b as usize];
            let Origin::View(base, node) = buffer.origin else { continue };
            let shape = extents(&self.plan.typed.shapes[buffer.shape as usize], self.run.dyn_dims)?;
            let view = match &self.plan.typed.nodes[node as usize].kind {
                TypedKind::View { view: Some(view), .. } => view,
                _ => &self.placed,
            };
            // The first element along a dim is there only if the dim has one; else nothing reads it.
            let empty = |t: TensorRef<'_>| t.layout().elements() == 0 && !shape.contains(&0);
            if !matches!(self.values[base as usize], Some(Value::Delivered) | None) && empty(self.get(base)?) {
                let none = Tensor::zeros(self.get(base)?.dtype(), shape)?;
                self.values[*b as usize] = Some(Value::Made(none));
                continue;
            }
            let shown = match &self.values[base as usize] {
                Some(Value::Given(TensorRef::View(v))) => v.viewed(view, &shape)?,
                Some(Value::Shown(at)) => self.shown[*at].viewed(view, &shape)?,
                Some(Value::Given(TensorRef::Tensor(t))) => {
                    self.values[*b as usize] = Some(Value::Made(self.owned(t, view, shape)?));
                    continue;
                }
                Some(Value::Made(t)) => {
                    self.values[*b as usize] = Some(Value::Made(self.owned(t, view, shape)?));
                    continue;
                }
                Some(Value::Delivered) | None => return Err(unready()),
            };
            let value = match shown {
                Some(view) => Self::show(&mut self.shown, view),
                None => Value::Made(self.get(base)?.copied(|bytes| self.run.storage(bytes))?.reshape(shape)?),
            };
            self.values[*b as usize] = Some(value);
        }
        Ok(())
    }

    /// A view of a tensor; a copy, where its strides have none.
    fn owned(&self, t: &Tensor, view: &View, shape: Vec<usize>) -> Result<Tensor> {
        match t.viewed(view, &shape)? {
            Some(made) => Ok(made),
            None => TensorRef::Tensor(t).copied(|bytes| self.run.storage(bytes))?.reshape(shape),
        }
    }

    /// Drops what nothing reads any more. Copies that views needed stay counted: other views may share them.
    pub(super) fn release(&mut self, buffers: &[BufferId]) {
        for b in buffers {
            if let Some(Value::Made(t)) = self.values[*b as usize].take()
                && matches!(self.plan.buffers[*b as usize].origin, Origin::Kernel)
            {
                self.run.memory.give(t.numel() * t.dtype().size());
            }
        }
    }
}

/// The number of elements along dims of a shape.
fn extent(dims: &[SymDim], axes: &[usize], run: &Run<'_>) -> Option<Tensor> {
    let extents = axes.iter().map(|a| dims[*a].extent(run.dyn_dims).map(|n| n as f64));
    extents.product::<Option<f64>>().map(Tensor::scalar)
}

/// The extents of a shape, once the dynamic dims are known.
pub(super) fn extents(dims: &[SymDim], values: &[usize]) -> Result<Vec<usize>> {
    let all: Option<Vec<usize>> = dims.iter().map(|d| d.extent(values)).collect();
    all.ok_or_else(|| Error::Internal(format!("{} has no extents", dims_text(dims))))
}
