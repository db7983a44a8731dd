//! Arrays of the crate `ndarray`.
//!
//! Guarantees: a view of a tensor as an array copies nothing, whatever the tensor's strides; an owned array becomes a
//! tensor with the same memory and strides, without a copy; a borrowed one becomes a [`TensorView`] without a copy,
//! transposed, reversed and broadcast ones too. Does not: view what has gaps between its elements, which may be borrowed
//! by somebody else to be written to; make a tensor of a borrowed array, which it could outlive, without a copy; or write
//! into memory that was an array's: `run_into` gives such a tensor new memory.

use ::ndarray::{ArrayBase, ArrayView, ArrayViewD, Axis, Data, Dimension, IxDyn, ShapeBuilder};

use crate::base::dtype::Element;
use crate::base::error::{Error, Result};
use crate::base::shape::check;
use crate::tensor::{Storage, Tensor, TensorView};

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

impl<'a> TensorView<'a> {
    /// The elements of an array, or of a view of one, without copying: transposed, reversed and broadcast arrays too.
    ///
    /// Errors: elements with gaps between them in memory (a step, or a part of a dim that is not the outermost in memory):
    /// somebody else may hold those to write to. Of an array that is at hand as a whole, [`slice`](TensorView::slice)
    /// its view instead. More than 64 dims. Only with the feature `ndarray`.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// use ndarray::{Array2, s};
    /// let a = Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as f32);
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [None, None]);
    /// let (exe, y) = (Executor::new(), &x + 0.5);
    /// // In a run, an array is as good as a tensor.
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

    /// As [`TensorView::from_array`], for as long as the view's own elements are borrowed.
    fn try_from(array: ArrayView<'a, T, D>) -> Result<TensorView<'a>> {
        let mut view = array.into_dyn();
        let (shape, strides) = (view.shape().to_vec(), view.strides().to_vec());
        if check(&shape)? == 0 {
            return TensorView::from_slice::<T>(&[], shape);
        }
        let mut first = 0;
        for (axis, (n, s)) in shape.iter().zip(&strides).enumerate() {
            match s.signum() {
                // One element is all that such a dim has.
                0 => view.collapse_axis(Axis(axis), 0),
                -1 => first += (n - 1) * s.unsigned_abs(),
                _ => {}
            }
        }
        let gaps = || Error::Shape(format!("elements of strides {strides:?} have gaps between them: not one slice"));
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

    /// As [`Tensor::from_owned_array`].
    fn try_from(array: ArrayBase<S, D>) -> Result<Tensor> {
        Tensor::from_owned_array(array)
    }
}
