//! `TensorView`: borrowed elements with a dtype, a shape and strides.
//!
//! Guarantees: nothing is copied; every element that a view can reach lies inside the borrowed memory. Does not: align
//! the elements or outlive them; [`TensorView::to_tensor`] makes an owned tensor.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::layout::Layout;
use super::raw::RawBytes;
use super::{Storage, Tensor, check_bytes};
use crate::base::dtype::{DType, Element};
use crate::base::error::Result;
use crate::base::shape::dims_fmt;

/// Borrowed elements of one [`DType`]: those of a [`Tensor`], of a slice, or of an `ndarray` array. A run reads them in
/// place. Cloning copies no elements.
///
/// ```
/// use castwise::prelude::*;
/// let p = Program::new(Rules::Torch);
/// let mean = p.data("x", DType::F32, [None, None]).over([1]).mean();
/// let mut samples = vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let exe = Executor::new();
/// let rows = TensorView::from_slice(&samples, [2, 3])?;
/// assert_eq!(exe.run(&p, feeds! { "x" => &rows }, [&mean])?[0].to_vec::<f32>()?, [2.0, 5.0]);
/// let columns = rows.transpose(0, 1)?.slice(0, 0, 3, 2)?;
/// assert_eq!(exe.run(&p, feeds! { "x" => &columns }, [&mean])?[0].to_vec::<f32>()?, [2.5, 4.5]);
/// samples.push(7.0);                                         // the runs are done and the borrow has ended
/// # Ok::<(), castwise::Error>(())
/// ```
///
/// Borrowed elements can't be changed before the borrow ends:
///
/// ```compile_fail,E0502
/// use castwise::prelude::*;
/// let mut samples = vec![1.0f32, 2.0];
/// let feeds = feeds! { "x" => &samples };
/// samples.push(3.0);
/// drop(feeds);
/// ```
#[derive(Clone)]
pub struct TensorView<'a> {
    source: Source<'a>,
    pub(super) layout: Arc<Layout>,
    dtype: DType,
    pub(super) offset: usize,
}

/// The memory that holds the elements.
#[derive(Clone, Copy)]
enum Source<'a> {
    Tensor(&'a Arc<Storage>),
    Bytes(&'a [u8]),
    Raw(RawBytes<'a>),
}

impl<'a> From<&'a Tensor> for TensorView<'a> {
    fn from(t: &'a Tensor) -> TensorView<'a> {
        TensorView { source: Source::Tensor(&t.storage), layout: t.layout.clone(), dtype: t.dtype, offset: t.offset }
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "view of {}", self.dtype)?;
        dims_fmt(self.shape(), f)
    }
}

impl<'a> TensorView<'a> {
    /// A view of a slice's elements, row-major. The slice must have as many elements as the shape.
    ///
    /// ```
    /// use castwise::TensorView;
    /// let numbers = [1i32, 2, 3, 4, 5, 6];
    /// let view = TensorView::from_slice(&numbers[1..5], [2, 2])?.flip(1)?;
    /// assert_eq!((view.shape(), view.strides()), (&[2, 2][..], &[2, -1][..]));
    /// assert_eq!(view.to_tensor()?.to_vec::<i32>()?, [3, 2, 5, 4]);
    /// assert!(TensorView::from_slice(&numbers, [7]).is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn from_slice<T: Element>(data: &'a [T], shape: impl AsRef<[usize]>) -> Result<TensorView<'a>> {
        let layout = Layout::of(shape.as_ref(), data.len())?;
        Ok(TensorView { source: Source::Bytes(bytemuck::cast_slice(data)), layout, dtype: T::DTYPE, offset: 0 })
    }

    /// A view of elements given by their bytes, row-major, in native byte order: [`Tensor::from_bytes`] without the
    /// copy. The bytes may have any alignment; each run copies elements that are not aligned for their dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// // Records of a u8, an i16 and a u8; `middle` views the i16 of each record.
    /// let bytes = [7u8, 1, 0, 9, 7, 2, 0, 9, 7, 3, 0, 9];
    /// let numbers = TensorView::from_bytes(DType::U8, [3, 4], &bytes)?;
    /// let middle = TensorView::from_bytes(DType::I16, [5], &bytes[1..11])?.slice(0, 0, 5, 2)?;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("n", DType::I16, [3]) + p.data("all", DType::U8, [3, 4]).over([1]).sum();
    /// let out = Executor::new().run(&p, feeds! { "n" => middle, "all" => numbers }, [&y])?;
    /// # if cfg!(target_endian = "little") {
    /// assert_eq!(out[0].to_vec::<i64>()?, [18, 20, 22]);
    /// # }
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn from_bytes(dtype: DType, shape: impl AsRef<[usize]>, bytes: &'a [u8]) -> Result<TensorView<'a>> {
        let shape = shape.as_ref();
        check_bytes(dtype, shape, bytes)?;
        Ok(TensorView { source: Source::Bytes(bytes), layout: Layout::contiguous(shape)?, dtype, offset: 0 })
    }

    /// A view of a slice's elements with the given strides and offset. Errors: an element outside of the slice.
    #[cfg(any(test, feature = "ndarray"))]
    pub(crate) fn with_strides<T: Element>(
        data: &'a [T],
        shape: &[usize],
        strides: &[isize],
        offset: usize,
    ) -> Result<TensorView<'a>> {
        let layout = Layout::within(shape, strides, offset, data.len())?;
        let offset = if layout.elements == 0 { 0 } else { offset };
        Ok(TensorView { source: Source::Bytes(bytemuck::cast_slice(data)), layout, dtype: T::DTYPE, offset })
    }

    /// A view of memory that the caller vouches for, which the layout does not leave.
    pub(super) fn of_raw(memory: RawBytes<'a>, layout: Arc<Layout>, dtype: DType, offset: usize) -> TensorView<'a> {
        TensorView { source: Source::Raw(memory), layout, dtype, offset }
    }

    /// The same elements in another layout, which must not reach other elements.
    pub(super) fn view(&self, shape: &[usize], strides: &[isize], offset: usize) -> TensorView<'a> {
        TensorView { layout: Arc::new(Layout::new(shape, strides)), offset, ..self.clone() }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents; empty for a 0-d view.
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// The strides, in elements; 0 where a dim repeats one element.
    pub fn strides(&self) -> &[isize] {
        &self.layout.strides
    }

    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.layout.shape.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.layout.elements
    }

    /// The address of the first element, or where it would be if there are none.
    pub fn as_ptr(&self) -> *const u8 {
        TensorRef::View(self).addresses().start.wrapping_add(self.offset * self.dtype.size())
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.layout.contiguous
    }

    /// A tensor of these elements: it shares their storage if they belong to a tensor, else it holds a row-major copy.
    pub fn to_tensor(&self) -> Result<Tensor> {
        TensorRef::View(self).tensor(Storage::zeroed)
    }
}

/// An operand of a run: a tensor or borrowed elements.
#[derive(Clone, Copy)]
pub(crate) enum TensorRef<'a> {
    Tensor(&'a Tensor),
    View(&'a TensorView<'a>),
}

impl<'a> TensorRef<'a> {
    #[inline]
    pub(crate) fn dtype(self) -> DType {
        match self {
            TensorRef::Tensor(t) => t.dtype,
            TensorRef::View(v) => v.dtype,
        }
    }

    /// The extents and strides.
    #[inline]
    pub(crate) fn layout(self) -> &'a Arc<Layout> {
        match self {
            TensorRef::Tensor(t) => &t.layout,
            TensorRef::View(v) => &v.layout,
        }
    }

    pub(crate) fn shape(self) -> &'a [usize] {
        &self.layout().shape
    }

    pub(crate) fn strides(self) -> &'a [isize] {
        &self.layout().strides
    }

    pub(crate) fn rank(self) -> usize {
        self.shape().len()
    }

    /// All bytes that may be read, and the offset of the first element in them (in elements).
    #[inline]
    pub(crate) fn raw(self) -> (&'a [u8], usize) {
        match self {
            TensorRef::Tensor(t) => t.raw(),
            TensorRef::View(v) => match v.source {
                Source::Tensor(storage) => (storage.bytes(), v.offset),
                Source::Bytes(bytes) => (bytes, v.offset),
                Source::Raw(memory) => (memory.bytes(), v.offset),
            },
        }
    }

    /// The addresses of the bytes of [`raw`](TensorRef::raw).
    pub(crate) fn addresses(self) -> Range<*const u8> {
        match self {
            TensorRef::View(TensorView { source: Source::Raw(memory), .. }) => memory.addresses(),
            t => t.raw().0.as_ptr_range(),
        }
    }

    /// A tensor that shares the elements' storage if they belong to a tensor, else a row-major copy in memory from
    /// `make`.
    pub(crate) fn tensor(self, make: impl FnOnce(usize) -> Result<Storage>) -> Result<Tensor> {
        let v = match self {
            TensorRef::Tensor(t) => return Ok(t.clone()),
            TensorRef::View(v) => v,
        };
        if let Source::Tensor(storage) = v.source {
            let (storage, layout) = (storage.clone(), v.layout.clone());
            return Ok(Tensor { storage, layout, dtype: v.dtype, offset: v.offset });
        }
        self.copied(make)
    }

    /// A row-major copy in memory from `make`.
    pub(crate) fn copied(self, make: impl FnOnce(usize) -> Result<Storage>) -> Result<Tensor> {
        let size = self.dtype().size();
        let mut storage = make(self.layout().elements * size)?;
        super::layout::gather(self.raw(), self.layout(), size, storage.bytes_mut());
        Tensor::from_storage(storage, self.dtype(), self.shape())
    }
}

#[cfg(test)]
mod tests;
