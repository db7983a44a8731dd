//! Views: the same storage with another shape and other strides. Views copy nothing.

use std::sync::Arc;

use super::layout::{Layout, elements};
use super::{Tensor, TensorView};
use crate::base::error::{Error, Result};
use crate::base::shape::{MAX_RANK, check, contiguous_strides, dims_text};
use crate::base::view::{View, wrap};

impl Tensor {
    fn view(&self, shape: &[usize], strides: &[isize], offset: usize) -> Tensor {
        Tensor {
            storage: self.storage.clone(),
            layout: Arc::new(Layout::new(shape, strides)),
            dtype: self.dtype,
            offset,
        }
    }

    /// The bytes of each element, in row-major order.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &[u8]> {
        elements(self.raw(), &self.layout, self.dtype.size())
    }
}

/// The view methods, implemented for tensors, for borrowed elements, and for layouts alone.
macro_rules! views {
    ($($vis:vis $of:ty),*) => {$(
        impl $of {
            fn axis(&self, axis: usize) -> Result<usize> {
                let rank = self.rank();
                let refused = || Error::Shape(format!("axis {axis} of a tensor with {rank} dims"));
                if axis < rank { Ok(axis) } else { Err(refused()) }
            }

            /// Swaps two dims.
            $vis fn transpose(&self, a: usize, b: usize) -> Result<Self> {
                let mut order: Vec<usize> = (0..self.rank()).collect();
                order.swap(self.axis(a)?, self.axis(b)?);
                self.permute(&order)
            }

            /// Reorders the dims: dim `i` of the result is dim `order[i]` of this one.
            $vis fn permute(&self, order: &[usize]) -> Result<Self> {
                let mut seen = vec![false; self.rank()];
                for axis in order {
                    seen[self.axis(*axis)?] = true;
                }
                if order.len() != self.rank() || seen.contains(&false) {
                    return Err(Error::Shape(format!("{order:?} is not an order of {} dims", self.rank())));
                }
                let shape: Vec<usize> = order.iter().map(|i| self.shape()[*i]).collect();
                let strides: Vec<isize> = order.iter().map(|i| self.strides()[*i]).collect();
                Ok(self.view(&shape, &strides, self.offset))
            }

            /// Elements `start..end` of one dim, every `step`-th.
            $vis fn slice(&self, axis: usize, start: usize, end: usize, step: usize) -> Result<Self> {
                let n = self.shape()[self.axis(axis)?];
                if start > end || end > n || step == 0 {
                    let slice = format!("slice {start}..{end} by {step}");
                    return Err(Error::Shape(format!("{slice} of axis {axis} with {n} elements")));
                }
                let (mut shape, mut strides) = (self.shape().to_vec(), self.strides().to_vec());
                let taken = (end - start).div_ceil(step);
                // An empty slice may start after the last element: keep the old offset, which is valid.
                let skip = if taken == 0 || self.numel() == 0 { 0 } else { start as isize * strides[axis] };
                shape[axis] = taken;
                strides[axis] = strides[axis].saturating_mul(step.min(isize::MAX as usize) as isize);
                Ok(self.view(&shape, &strides, self.offset.saturating_add_signed(skip)))
            }

            /// Reverses a dim.
            $vis fn flip(&self, axis: usize) -> Result<Self> {
                let axis = self.axis(axis)?;
                let mut strides = self.strides().to_vec();
                let skip = if self.numel() == 0 { 0 } else { (self.shape()[axis] as isize - 1) * strides[axis] };
                strides[axis] = strides[axis].saturating_neg();
                Ok(self.view(self.shape(), &strides, self.offset.saturating_add_signed(skip)))
            }

            /// Repeats dims of extent 1 and adds leading dims, without copying.
            $vis fn broadcast_to(&self, shape: impl AsRef<[usize]>) -> Result<Self> {
                let shape = shape.as_ref();
                check(shape)?;
                let refuse = || {
                    let (from, to) = (dims_text(self.shape()), dims_text(shape));
                    Error::Shape(format!("cannot broadcast {from} to {to}"))
                };
                let front = shape.len().checked_sub(self.rank()).ok_or_else(refuse)?;
                let mut strides = vec![0; shape.len()];
                for (i, (n, s)) in self.shape().iter().zip(self.strides().iter()).enumerate() {
                    match shape[front + i] {
                        to if to == *n => strides[front + i] = *s,
                        _ if *n == 1 => {}
                        _ => return Err(refuse()),
                    }
                }
                Ok(self.view(shape, &strides, self.offset))
            }

            /// The same elements in row-major order with another shape. Errors: the strides do not allow a view (then
            /// make a [`contiguous`](Tensor::contiguous) tensor first).
            $vis fn reshape(&self, shape: impl AsRef<[usize]>) -> Result<Self> {
                let shape = shape.as_ref();
                let n = check(shape)?;
                if n != self.numel() {
                    let (from, to) = (dims_text(self.shape()), dims_text(shape));
                    let have = self.numel();
                    return Err(Error::Shape(format!("cannot reshape {from} ({have} elements) to {to} ({n})")));
                }
                let strides = self.reshaped(shape).ok_or_else(|| {
                    let to = dims_text(shape);
                    Error::Shape(format!("a tensor with strides {:?} has no view of shape {to}", self.strides()))
                })?;
                Ok(self.view(shape, &strides, self.offset))
            }

            /// The strides of a shape with as many elements over the same elements, if there are such strides.
            fn reshaped(&self, shape: &[usize]) -> Option<Vec<isize>> {
                match self.is_contiguous() {
                    true => Some(contiguous_strides(shape).into_vec()),
                    false => regroup(self.shape(), self.strides(), shape),
                }
            }

            /// A view that a program or eager mode asks for, of this shape. `None`: the elements have to be copied to
            /// row-major order first.
            pub(crate) fn viewed(&self, view: &View, shape: &[usize]) -> Result<Option<Self>> {
                let rank = self.rank();
                Ok(Some(match view {
                    View::Transpose(..) | View::Permute(_) | View::Flip(_) if rank == 0 => self.clone(),
                    View::Transpose(a, b) => self.transpose(wrap(*a, rank), wrap(*b, rank))?,
                    View::Permute(order) => {
                        self.permute(&order.iter().map(|d| wrap(*d, rank)).collect::<Vec<_>>())?
                    }
                    View::Unsqueeze(dim) => self.unsqueeze(wrap(*dim, rank + 1))?,
                    View::Expand(_) => self.broadcast_to(shape)?,
                    View::Slice(dim, slice) => {
                        let axis = self.axis(wrap(*dim, rank))?;
                        let (from, to, step) = slice.of(self.shape()[axis]);
                        self.slice(axis, from, to, step)?
                    }
                    View::Flip(dims) => {
                        dims.iter().try_fold(self.clone(), |t, d| t.flip(wrap(*d, rank)))?
                    }
                    View::Squeeze(_) | View::Reshape(_) => match self.reshaped(shape) {
                        Some(_) => self.reshape(shape)?,
                        None => return Ok(None),
                    },
                }))
            }

            /// A new dim of extent 1 before dim `axis` (or at the end).
            $vis fn unsqueeze(&self, axis: usize) -> Result<Self> {
                if axis > self.rank() || self.rank() == MAX_RANK {
                    return Err(Error::Shape(format!("no room for a new dim at {axis} of {} dims", self.rank())));
                }
                let (mut shape, mut strides) = (self.shape().to_vec(), self.strides().to_vec());
                shape.insert(axis, 1);
                strides.insert(axis, 0);
                Ok(self.view(&shape, &strides, self.offset))
            }
        }
    )*};
}

views!(pub Tensor, pub TensorView<'_>, pub(crate) Placed);

/// A layout and where it begins, without elements: what a view of a tensor would have.
#[derive(Clone)]
pub(crate) struct Placed {
    layout: Arc<Layout>,
    offset: usize,
}

impl Placed {
    /// That of a contiguous tensor.
    pub(crate) fn contiguous(shape: &[usize]) -> Result<Placed> {
        Ok(Placed { layout: Layout::contiguous(shape)?, offset: 0 })
    }

    fn view(&self, shape: &[usize], strides: &[isize], offset: usize) -> Placed {
        Placed { layout: Arc::new(Layout::new(shape, strides)), offset }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    pub(crate) fn strides(&self) -> &[isize] {
        &self.layout.strides
    }

    fn rank(&self) -> usize {
        self.layout.shape.len()
    }

    fn numel(&self) -> usize {
        self.layout.elements
    }

    fn is_contiguous(&self) -> bool {
        self.layout.contiguous
    }
}

/// The strides of `shape` over the elements of a strided tensor with the same element count, if such strides exist.
///
/// Walks both shapes from the last dim. Adjacent old dims without a gap between them form a group, which new dims can
/// divide in any way; the boundary between two groups must also be a boundary between two new dims.
fn regroup(old: &[usize], old_strides: &[isize], shape: &[usize]) -> Option<Vec<isize>> {
    let old: Vec<(isize, isize)> =
        old.iter().zip(old_strides).filter(|(n, _)| **n != 1).map(|(n, s)| (*n as isize, *s)).collect();
    let mut strides = vec![0; shape.len()];
    let (mut group, mut covered, mut to) = (1, 1, shape.len());
    let mut unit = old.last()?.1;
    for (d, (n, _)) in old.iter().enumerate().rev() {
        group *= n;
        let before = d.checked_sub(1).map(|b| old[b].1);
        if before == Some(group * unit) {
            continue;
        }
        while to > 0 && (covered < group || shape[to - 1] == 1) {
            to -= 1;
            strides[to] = covered * unit;
            covered *= shape[to] as isize;
        }
        if covered != group {
            return None;
        }
        (group, covered, unit) = (1, 1, before.unwrap_or(0));
    }
    Some(strides)
}

#[cfg(test)]
mod tests;
