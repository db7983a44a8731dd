//! What the buffers of a run hold: feeds and constants in place, views of them, and what kernels made.
//!
//! Guarantees: a buffer is read only after it was computed; a view copies nothing; a made buffer is dropped after its last use.
//! Does not: decide which use is the last; the plan has.

use smallvec::SmallVec;

use super::run::{FEW, Run};
use crate::base::error::{Error, Result};
use crate::base::shape::{SymDim, dims_text};
use crate::plan::fuse::{Buffer, BufferId, Origin, Plan};
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
}

impl<'a> Buffers<'a> {
    pub(super) fn new(plan: &'a Plan, run: &'a Run<'a>) -> Buffers<'a> {
        let given = |b: &'a Buffer| match &b.origin {
            Origin::Feed(i) => run.feeds.get(*i as usize).copied().map(Value::Given),
            Origin::Constant(t) => Some(Value::Given(TensorRef::Tensor(t))),
            Origin::Kernel | Origin::View(_) => None,
        };
        Buffers { plan, run, values: plan.buffers.iter().map(given).collect(), shown: Vec::new() }
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

    /// Keeps a view until the run ends.
    fn show(shown: &mut Vec<TensorView<'a>>, view: TensorView<'a>) -> Value<'a> {
        shown.push(view);
        Value::Shown(shown.len() - 1)
    }

    /// Makes the views among a kernel's operands.
    pub(super) fn view(&mut self, inputs: &[BufferId]) -> Result<()> {
        for b in inputs {
            let buffer = &self.plan.buffers[*b as usize];
            if let Origin::View(base) = buffer.origin {
                let extents = extents(&self.plan.typed.shapes[buffer.shape as usize], self.run.dyn_dims)?;
                let value = match &self.values[base as usize] {
                    Some(Value::Given(TensorRef::View(v))) => Self::show(&mut self.shown, v.reshape(extents)?),
                    Some(Value::Shown(at)) => {
                        let view = self.shown[*at].reshape(extents)?;
                        Self::show(&mut self.shown, view)
                    }
                    Some(Value::Given(TensorRef::Tensor(t))) => Value::Made(t.reshape(extents)?),
                    Some(Value::Made(t)) => Value::Made(t.reshape(extents)?),
                    Some(Value::Delivered) | None => return Err(unready()),
                };
                self.values[*b as usize] = Some(value);
            }
        }
        Ok(())
    }

    /// Drops the operands of the `at`-th kernel that it is the last to read.
    pub(super) fn release(&mut self, inputs: &[BufferId], at: usize) {
        for b in inputs {
            let buffer = &self.plan.buffers[*b as usize];
            if buffer.last_use == at
                && let Some(Value::Made(t)) = self.values[*b as usize].take()
                && matches!(buffer.origin, Origin::Kernel)
            {
                self.run.memory.give(t.numel() * t.dtype().size());
            }
        }
    }
}

/// The extents of a shape, once the dynamic dims are known.
pub(super) fn extents(dims: &[SymDim], values: &[usize]) -> Result<Vec<usize>> {
    let all: Option<Vec<usize>> = dims.iter().map(|d| d.extent(values)).collect();
    all.ok_or_else(|| Error::Internal(format!("{} has no extents", dims_text(dims))))
}
