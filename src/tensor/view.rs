//! Views: the same storage with another shape and other strides. Views copy nothing.

use std::sync::Arc;

use super::layout::{Layout, elements};
use super::{Tensor, TensorView};
use crate::base::error::{Error, Result};
use crate::base::shape::{MAX_RANK, check, contiguous_strides, dims_text};

impl Tensor {
    fn view(&self, shape: Vec<usize>, strides: Vec<isize>, offset: usize) -> Tensor {
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

/// The view methods, implemented for tensors and for borrowed elements.
macro_rules! views {
    ($($of:ty),*) => {$(
        impl $of {
            fn axis(&self, axis: usize) -> Result<usize> {
                let rank = self.rank();
                let refused = || Error::Shape(format!("axis {axis} of a tensor with {rank} dims"));
                if axis < rank { Ok(axis) } else { Err(refused()) }
            }

            /// Swaps two dims.
            pub fn transpose(&self, a: usize, b: usize) -> Result<Self> {
                let mut order: Vec<usize> = (0..self.rank()).collect();
                order.swap(self.axis(a)?, self.axis(b)?);
                self.permute(&order)
            }

            /// Reorders the dims: dim `i` of the result is dim `order[i]` of this one.
            pub fn permute(&self, order: &[usize]) -> Result<Self> {
                let mut seen = vec![false; self.rank()];
                for axis in order {
                    seen[self.axis(*axis)?] = true;
                }
                if order.len() != self.rank() || seen.contains(&false) {
                    return Err(Error::Shape(format!("{order:?} is not an order of {} dims", self.rank())));
                }
                let shape = order.iter().map(|i| self.shape()[*i]).collect();
                let strides = order.iter().map(|i| self.strides()[*i]).collect();
                Ok(self.view(shape, strides, self.offset))
            }

            /// Elements `start..end` of one dim, every `step`-th.
            pub fn slice(&self, axis: usize, start: usize, end: usize, step: usize) -> Result<Self> {
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
                Ok(self.view(shape, strides, self.offset.saturating_add_signed(skip)))
            }

            /// Reverses a dim.
            pub fn flip(&self, axis: usize) -> Result<Self> {
                let axis = self.axis(axis)?;
                let mut strides = self.strides().to_vec();
                let skip = if self.numel() == 0 { 0 } else { (self.shape()[axis] as isize - 1) * strides[axis] };
                strides[axis] = strides[axis].saturating_neg();
                Ok(self.view(self.shape().to_vec(), strides, self.offset.saturating_add_signed(skip)))
            }

            /// Repeats dims of extent 1 and adds leading dims, without copying.
            pub fn broadcast_to(&self, shape: impl AsRef<[usize]>) -> Result<Self> {
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
                Ok(self.view(shape.to_vec(), strides, self.offset))
            }

            /// The same elements in row-major order with another shape. Errors: the strides do not allow a view (then
            /// make a [`contiguous`](Tensor::contiguous) tensor first).
            pub fn reshape(&self, shape: impl AsRef<[usize]>) -> Result<Self> {
                let shape = shape.as_ref();
                let n = check(shape)?;
                if n != self.numel() {
                    let (from, to) = (dims_text(self.shape()), dims_text(shape));
                    let have = self.numel();
                    return Err(Error::Shape(format!("cannot reshape {from} ({have} elements) to {to} ({n})")));
                }
                let strides = if self.is_contiguous() {
                    contiguous_strides(shape)
                } else {
                    regroup(self.shape(), self.strides(), shape).ok_or_else(|| {
                        let to = dims_text(shape);
                        Error::Shape(format!("a tensor with strides {:?} has no view of shape {to}", self.strides()))
                    })?
                };
                Ok(self.view(shape.to_vec(), strides, self.offset))
            }

            /// A new dim of extent 1 before dim `axis` (or at the end).
            pub fn unsqueeze(&self, axis: usize) -> Result<Self> {
                if axis > self.rank() || self.rank() == MAX_RANK {
                    return Err(Error::Shape(format!("no room for a new dim at {axis} of {} dims", self.rank())));
                }
                let (mut shape, mut strides) = (self.shape().to_vec(), self.strides().to_vec());
                shape.insert(axis, 1);
                strides.insert(axis, 0);
                Ok(self.view(shape, strides, self.offset))
            }
        }
    )*};
}

views!(Tensor, TensorView<'_>);

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
