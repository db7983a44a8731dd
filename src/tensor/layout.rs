//! Layouts (extents and strides), and iteration over strided elements.
//!
//! Does not: own elements.

use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::{check, contiguous_strides, dims_text, numel};
use smallvec::SmallVec;
use std::sync::Arc;

/// The extents and strides of a tensor. Tensors with the same layout may share it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    pub(super) shape: SmallVec<[usize; 4]>,
    /// In elements.
    pub(super) strides: SmallVec<[isize; 4]>,
    pub(super) elements: usize,
    pub(super) contiguous: bool,
}

impl Layout {
    /// A layout. The shape must have passed [`check`].
    pub(crate) fn new(shape: &[usize], strides: &[isize]) -> Layout {
        let contiguous = is_contiguous(shape, strides);
        let elements = numel(shape).unwrap_or(0);
        Layout { shape: SmallVec::from_slice(shape), strides: SmallVec::from_slice(strides), elements, contiguous }
    }

    /// Whether the elements are in row-major order without gaps.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// The extents.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The strides, in elements.
    pub(crate) fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The row-major layout without gaps.
    pub(crate) fn contiguous(shape: &[usize]) -> Result<Arc<Layout>> {
        let elements = check(shape)?;
        let (shape, strides) = (SmallVec::from_slice(shape), contiguous_strides(shape));
        Ok(Arc::new(Layout { shape, strides, elements, contiguous: true }))
    }

    /// [`contiguous`](Layout::contiguous) for so many elements. Errors: the shape has another number.
    pub(super) fn of(shape: &[usize], elements: usize) -> Result<Arc<Layout>> {
        let layout = Layout::contiguous(shape)?;
        if layout.elements != elements {
            let (dims, n) = (dims_text(shape), layout.elements);
            return Err(Error::Shape(format!("{elements} elements for the shape {dims}, which has {n}")));
        }
        Ok(layout)
    }

    /// A layout with the given strides, for a tensor that starts at `offset` in storage of `elements` elements. Errors:
    /// an element outside of the storage.
    pub(super) fn within(shape: &[usize], strides: &[isize], offset: usize, elements: usize) -> Result<Arc<Layout>> {
        if check(shape)? == 0 {
            return Layout::contiguous(shape);
        }
        let (low, high) = reach(shape, strides);
        let (low, high) = (offset as i128 + low, offset as i128 + high);
        if low < 0 || high >= elements as i128 || shape.len() != strides.len() {
            return Err(Error::Internal(format!("strides {strides:?} of {shape:?} leave {elements} elements")));
        }
        Ok(Arc::new(Layout::new(shape, strides)))
    }

    /// A layout with the given strides, one for each dim, and how far its elements are before and behind the first: 0 and
    /// -1 for a layout without elements, which is contiguous.
    pub(super) fn strided(shape: &[usize], strides: &[isize]) -> Result<(Arc<Layout>, i128, i128)> {
        if check(shape)? == 0 {
            return Ok((Layout::contiguous(shape)?, 0, -1));
        }
        let (low, high) = reach(shape, strides);
        Ok((Arc::new(Layout::new(shape, strides)), low, high))
    }

    /// Whether each dim steps over all that the dims of smaller strides reach, as those of slices and permutations of an
    /// array do: then no two elements share an address.
    pub(super) fn is_distinct(&self) -> bool {
        if self.contiguous {
            return true;
        }
        let mut dims: SmallVec<[(usize, usize); 8]> =
            self.strides.iter().zip(&self.shape).map(|(s, n)| (s.unsigned_abs(), *n)).filter(|(_, n)| *n > 1).collect();
        dims.sort_unstable();
        let mut reached = 0u128;
        dims.iter().all(|(stride, n)| {
            let steps_over = *stride as u128 > reached;
            reached += *stride as u128 * (*n as u128 - 1);
            steps_over
        })
    }
}

/// The error of a layout whose elements may share addresses.
pub(super) fn may_overlap(dtype: DType, shape: &[usize], strides: &[isize]) -> Error {
    Error::Shape(format!("elements of {dtype}{} with strides {strides:?} may overlap", dims_text(shape)))
}

/// How far elements are before and behind the first one of a layout with elements, in elements.
fn reach(shape: &[usize], strides: &[isize]) -> (i128, i128) {
    let far = |least: bool| {
        let last = |(n, s): (&usize, &isize)| (*n as i128 - 1) * *s as i128;
        shape.iter().zip(strides).map(last).filter(|d| (*d < 0) == least).sum::<i128>()
    };
    (far(true), far(false))
}

/// Whether these strides are row-major without gaps.
pub(super) fn is_contiguous(shape: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1;
    if shape.contains(&0) {
        return true;
    }
    for (n, s) in shape.iter().zip(strides).rev() {
        if *n != 1 {
            if *s != expected {
                return false;
            }
            expected *= *n as isize;
        }
    }
    true
}

/// The bytes of each element in row-major order. Elements have `size` bytes; the first one is at `offset`.
pub(super) fn elements<'a>(
    (bytes, offset): (&'a [u8], usize),
    layout: &'a Layout,
    size: usize,
) -> impl Iterator<Item = &'a [u8]> {
    let mut index = vec![0usize; layout.shape.len()];
    let mut at = offset as isize;
    (0..layout.elements).map(move |_| {
        let from = at as usize * size;
        for d in (0..index.len()).rev() {
            index[d] += 1;
            // A dim of extent 1 may have any stride: an overflow here is undone by the wrapping subtraction below.
            at = at.wrapping_add(layout.strides[d]);
            if index[d] < layout.shape[d] {
                break;
            }
            at = at.wrapping_sub(layout.strides[d].wrapping_mul(layout.shape[d] as isize));
            index[d] = 0;
        }
        &bytes[from..from + size]
    })
}

/// Copies all elements in row-major order into `out`, which must have room for exactly that many.
pub(super) fn gather((bytes, offset): (&[u8], usize), layout: &Layout, size: usize, out: &mut [u8]) {
    if layout.elements == 0 {
        return;
    }
    if layout.contiguous {
        out.copy_from_slice(&bytes[offset * size..][..layout.elements * size]);
        return;
    }
    for (to, from) in out.chunks_exact_mut(size).zip(elements((bytes, offset), layout, size)) {
        to.copy_from_slice(from);
    }
}
