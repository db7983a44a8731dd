//! Arrays of the crate `ndarray`.
//!
//! Guarantees: a view of a tensor as an array copies nothing, whatever the tensor's strides; an owned array becomes a
//! tensor with the same memory and strides, without a copy; of a borrowed one, which a tensor could outlive, the elements
//! are copied once, row-major. Does not: write into memory that was an array's: `run_into` gives such a tensor new memory.

use ::ndarray::{ArrayBase, ArrayViewD, Data, Dimension, IxDyn, ShapeBuilder};

use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::shape::check;
use crate::tensor::{Storage, Tensor};

impl Tensor {
    /// A tensor with a copy of an array's elements, or of a view's, of any dimension. Errors: more than 64 dims; no
    /// memory. Only with the feature `ndarray`.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// use ndarray::array;
    /// let t = Tensor::from_array(&array![[1.0f32, 2.0], [3.0, 4.0]].t())?;
    /// assert_eq!(t.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// let halved = (Eager::new(Rules::Torch).tensor(&t) * 0.5).result()?;
    /// assert_eq!(halved.as_array::<f32>()?, array![[0.5, 1.5], [1.0, 2.0]].into_dyn());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn from_array<S: Data<Elem: Element>, D: Dimension>(array: &ArrayBase<S, D>) -> Result<Tensor> {
        let shape = array.shape();
        if let Some(elements) = array.as_slice() {
            return Tensor::from_slice(elements, shape);
        }
        let size = S::Elem::DTYPE.size();
        let mut storage = Storage::zeroed(check(shape)? * size)?;
        for (to, v) in storage.bytes_mut().chunks_exact_mut(size).zip(array) {
            to.copy_from_slice(bytemuck::bytes_of(v));
        }
        Tensor::from_storage(storage, S::Elem::DTYPE, shape)
    }

    /// A tensor over the memory of an array, with its strides, without copying. (An array that is not the only owner of
    /// its elements, or whose elements do not begin at a multiple of 16 bytes, is copied: no allocator in use makes such
    /// memory for more than a few elements.) Errors: more than 64 dims; no memory for a copy. Only with the feature
    /// `ndarray`.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// use ndarray::Array2;
    /// let a = Array2::from_shape_fn((1000, 500), |(i, j)| (i * 500 + j) as f32);
    /// let memory = a.as_ptr();
    /// let t = Tensor::from_owned_array(a.reversed_axes())?;
    /// assert_eq!((t.shape(), t.strides()), (&[500, 1000][..], &[1, 500][..]));
    /// assert_eq!(t.as_array::<f32>()?.as_ptr(), memory);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn from_owned_array<S: Data<Elem: Element>, D: Dimension>(array: ArrayBase<S, D>) -> Result<Tensor> {
        let array = array.into_owned();
        let (shape, strides) = (array.shape().to_vec(), array.strides().to_vec());
        check(&shape)?;
        let (elements, offset) = array.into_raw_vec_and_offset();
        Tensor::with_strides(Storage::taken(elements)?, S::Elem::DTYPE, &shape, &strides, offset.unwrap_or(0))
    }

    /// The elements as an array view, without copying: transposed, reversed and broadcast tensors too. Errors: another
    /// dtype than `T`; no elements, but extents beyond what `ndarray` takes. Only with the feature `ndarray`;
    /// [`from_array`](Tensor::from_array) has an example.
    pub fn as_array<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        if self.dtype() != T::DTYPE {
            return Err(Error::DType { expected: T::DTYPE, found: self.dtype() });
        }
        let refused = |e: ::ndarray::ShapeError| Error::Shape(format!("not the shape of an array: {e}"));
        if self.numel() == 0 {
            return ArrayViewD::from_shape(self.shape(), &[]).map_err(refused);
        }
        // From the lowest address that the strides reach to the highest.
        let (bytes, offset) = self.raw();
        let (mut low, mut high) = (offset as isize, offset as isize);
        for (n, s) in self.shape().iter().zip(self.strides()) {
            let last = (*n as isize - 1) * s;
            (low, high) = (low + last.min(0), high + last.max(0));
        }
        let size = T::DTYPE.size();
        let reach = bytes.get(low as usize * size..(high as usize + 1) * size).unwrap_or(&[]);
        let elements: &[T] = bytemuck::checked::try_cast_slice(reach)
            .map_err(|e| Error::Internal(format!("storage of {}: {e}", self.dtype())))?;
        let strides: Vec<usize> = self.strides().iter().map(|s| *s as usize).collect();
        ArrayViewD::from_shape(IxDyn(self.shape()).strides(IxDyn(&strides)), elements).map_err(refused)
    }
}

impl<S: Data<Elem: Element>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Tensor {
    type Error = Error;

    fn try_from(array: &ArrayBase<S, D>) -> Result<Tensor> {
        Tensor::from_array(array)
    }
}

impl<S: Data<Elem: Element>, D: Dimension> TryFrom<ArrayBase<S, D>> for Tensor {
    type Error = Error;

    /// As [`Tensor::from_owned_array`].
    fn try_from(array: ArrayBase<S, D>) -> Result<Tensor> {
        Tensor::from_owned_array(array)
    }
}
