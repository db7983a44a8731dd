//! Conversions from and to the arrays of the crate `ndarray`.
//!
//! Guarantees: a view of a tensor as an array copies nothing, whatever the tensor's strides; an owned array becomes a
//! tensor with the same memory and strides, without a copy; a borrowed array becomes a [`TensorView`] without a copy,
//! also if it is transposed, reversed or broadcast. Does not: view arrays with gaps between their elements, because the
//! memory in the gaps may be mutably borrowed elsewhere; make a tensor of a borrowed array without a copy, because the
//! tensor could outlive the array; write into memory that was an array's (`run_into` allocates new memory for such a
//! tensor).

use ::ndarray::{ArrayBase, ArrayView, ArrayViewD, Axis, Data, Dimension, IxDyn, ShapeBuilder};

use crate::base::dtype::Element;
use crate::base::error::{Error, Result};
use crate::base::shape::check;
use crate::tensor::{Storage, Tensor, TensorView};

impl Tensor {
    /// A tensor with a copy of the elements of an array or array view, of any dimension. Errors: more than 64 dims; out
    /// of memory. Only with the feature `ndarray`.
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

    /// A tensor over the memory of an array, with its strides, without copying. An array that shares its elements with
    /// others, or whose elements are not aligned to 16 bytes, is copied; for more than a few elements, all common
    /// allocators return memory with that alignment. Errors: more than 64 dims; out of memory for a copy. Only with the
    /// feature `ndarray`.
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
        Tensor::with_strides(Storage::adopted(elements)?, S::Elem::DTYPE, &shape, &strides, offset.unwrap_or(0))
    }

    /// The elements as an array view, without copying, also of transposed, reversed and broadcast tensors. Errors: the
    /// dtype is not that of `T`; an empty tensor has extents that `ndarray` does not support. Only with the feature
    /// `ndarray`; [`from_array`](Tensor::from_array) has an example.
    pub fn as_array<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        if self.dtype() != T::DTYPE {
            return Err(Error::DType { expected: T::DTYPE, found: self.dtype() });
        }
        let refused = |e: ::ndarray::ShapeError| Error::Shape(format!("not the shape of an array: {e}"));
        if self.numel() == 0 {
            return ArrayViewD::from_shape(self.shape(), &[]).map_err(refused);
        }
        // The storage between the lowest and the highest element that the strides reach.
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

impl<'a> TensorView<'a> {
    /// A view of the elements of an array or array view, without copying, also of transposed, reversed and broadcast
    /// arrays.
    ///
    /// Errors: the elements have gaps between them in memory (a step, or a part of a dim that is not the outermost in
    /// memory), because the memory in the gaps may be mutably borrowed elsewhere. If you have the whole array,
    /// [`slice`](TensorView::slice) its view instead. Also an error: more than 64 dims. Only with the feature
    /// `ndarray`.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// use ndarray::{Array2, s};
    /// let a = Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as f32);
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [None, None]);
    /// let (exe, y) = (Executor::new(), &x + 0.5);
    /// // A run takes an array like a tensor.
    /// let out = exe.run(&p, feeds! { "x" => &a.t() }, [&y])?;
    /// assert_eq!(out[0].as_array::<f32>()?, (&a.t() + 0.5).into_dyn());
    /// // Every second column, without a copy.
    /// assert!(TensorView::from_array(&a.slice(s![.., ..;2])).is_err());
    /// let columns = TensorView::from_array(&a)?.slice(1, 0, 4, 2)?;
    /// assert_eq!(exe.run(&p, feeds! { "x" => &columns }, [&y])?[0].to_vec::<f32>()?, [0.5, 2.5, 10.5, 12.5, 20.5, 22.5]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn from_array<S: Data<Elem: Element>, D: Dimension>(array: &'a ArrayBase<S, D>) -> Result<TensorView<'a>> {
        TensorView::try_from(array.view())
    }
}

impl<'a, T: Element, D: Dimension> TryFrom<ArrayView<'a, T, D>> for TensorView<'a> {
    type Error = Error;

    /// Like [`TensorView::from_array`], with the lifetime of the elements that the array view borrows.
    fn try_from(array: ArrayView<'a, T, D>) -> Result<TensorView<'a>> {
        let mut view = array.into_dyn();
        let (shape, strides) = (view.shape().to_vec(), view.strides().to_vec());
        if check(&shape)? == 0 {
            return TensorView::from_slice::<T>(&[], shape);
        }
        let mut first = 0;
        for (axis, (n, s)) in shape.iter().zip(&strides).enumerate() {
            match s.signum() {
                // A broadcast dim repeats one element: keep that one.
                0 => view.collapse_axis(Axis(axis), 0),
                -1 => first += (n - 1) * s.unsigned_abs(),
                _ => {}
            }
        }
        let gaps =
            || Error::Shape(format!("elements of strides {strides:?} have gaps between them and are not one slice"));
        let elements = view.to_slice_memory_order().ok_or_else(gaps)?;
        TensorView::with_strides(elements, &shape, &strides, first)
    }
}

impl<'a, S: Data<Elem: Element>, D: Dimension> TryFrom<&'a ArrayBase<S, D>> for TensorView<'a> {
    type Error = Error;

    fn try_from(array: &'a ArrayBase<S, D>) -> Result<TensorView<'a>> {
        TensorView::from_array(array)
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

    /// Equivalent to [`Tensor::from_owned_array`].
    fn try_from(array: ArrayBase<S, D>) -> Result<Tensor> {
        Tensor::from_owned_array(array)
    }
}
