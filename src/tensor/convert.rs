//! Conversions into tensors by `From` and `TryFrom`.
//!
//! Guarantees: a scalar becomes a 0-d tensor, and nested arrays become a tensor with the same extents; conversions that
//! copy data of unbounded size (`Vec`, slices) return an error if memory runs out. Does not: convert dtypes.

use std::sync::Arc;

use super::layout::Layout;
use super::{Storage, Tensor};
use crate::base::dtype::Element;
use crate::base::error::{Error, Result};
use crate::base::shape::contiguous_strides;

/// A 0-d tensor.
///
/// ```
/// use castwise::prelude::*;
/// assert_eq!(Tensor::from(2.5f32).item::<f32>()?, 2.5);
/// assert_eq!(Tensor::from([[1u8, 2, 3], [4, 5, 6]]).shape(), [2, 3]);
/// assert_eq!(Tensor::try_from(vec![1i64, 2])?.shape(), [2]);
/// # Ok::<(), castwise::Error>(())
/// ```
impl<T: Element> From<T> for Tensor {
    fn from(value: T) -> Tensor {
        Tensor::scalar(value)
    }
}

impl Tensor {
    /// A tensor with a copy of an array's elements; the shape must have as many.
    fn of_array<T: Element>(elements: &[T], shape: &[usize]) -> Tensor {
        let strides = contiguous_strides(shape);
        let storage = Arc::new(Storage::copied(bytemuck::cast_slice(elements)));
        Tensor { storage, layout: Arc::new(Layout::new(shape, &strides)), dtype: T::DTYPE, offset: 0 }
    }
}

impl<T: Element, const A: usize> From<[T; A]> for Tensor {
    fn from(array: [T; A]) -> Tensor {
        Tensor::of_array(&array, &[A])
    }
}

impl<T: Element, const A: usize, const B: usize> From<[[T; B]; A]> for Tensor {
    fn from(array: [[T; B]; A]) -> Tensor {
        Tensor::of_array(array.as_flattened(), &[A, B])
    }
}

impl<T: Element, const A: usize, const B: usize, const C: usize> From<[[[T; C]; B]; A]> for Tensor {
    fn from(array: [[[T; C]; B]; A]) -> Tensor {
        Tensor::of_array(array.as_flattened().as_flattened(), &[A, B, C])
    }
}

/// A 1-d tensor.
impl<T: Element> TryFrom<&[T]> for Tensor {
    type Error = Error;

    fn try_from(elements: &[T]) -> Result<Tensor> {
        Tensor::from_slice(elements, [elements.len()])
    }
}

/// A 1-d tensor.
impl<T: Element> TryFrom<Vec<T>> for Tensor {
    type Error = Error;

    fn try_from(elements: Vec<T>) -> Result<Tensor> {
        Tensor::try_from(&elements[..])
    }
}

#[cfg(test)]
mod tests;
