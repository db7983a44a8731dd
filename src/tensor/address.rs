//! Elements at addresses that the caller gives: layouts without memory, and memory with a lifetime that nothing checks.
//!
//! Guarantees: what is formed reaches from the lowest to the highest element of a layout, and no further. Does not: read
//! the elements when a view is made; know whether an address is good, which the callers of the unsafe functions promise.

#![allow(unsafe_code, reason = "memory that the caller vouches for; each block has its proof")]

use std::fmt;
use std::sync::Arc;

use super::TensorView;
use super::layout::{Layout, may_overlap};
use super::raw::{RawBytes, RawBytesMut};
use super::target::TensorViewMut;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::{dims_fmt, dims_text};

/// A dtype, a shape and strides without memory: made and checked once, it makes a view of elements at an address for the
/// cost of a reference count, and can be kept for as long as the caller likes.
///
/// ```
/// use castwise::{DType, TensorLayout};
/// // A matrix of 2 rows, its columns in reverse.
/// let layout = TensorLayout::new(DType::F32, [2, 3], &[3, -1])?;
/// let (a, b) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.5f32; 6]);
/// for elements in [a, b] {
///     // SAFETY: the array has the three elements that end at each of these, and outlives the view.
///     let view = unsafe { layout.over(elements[2..].as_ptr().cast()) }?;
///     println!("{}", view.to_tensor()?);
/// }
/// assert_eq!(layout.to_string(), "f32[2, 3]");
/// assert!(TensorLayout::new(DType::F32, [2, 3], &[3]).is_err());
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorLayout {
    layout: Arc<Layout>,
    dtype: DType,
    /// Elements from the lowest address to the first one in row-major order.
    before: usize,
    /// Bytes from the lowest element's first to the highest one's last.
    bytes: usize,
    /// Whether elements with different indices are known to have different addresses.
    distinct: bool,
}

impl fmt::Display for TensorLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dtype)?;
        dims_fmt(self.shape(), f)
    }
}

impl TensorLayout {
    /// The layout of a tensor with these strides, in elements; they may be negative or 0, and those of a tensor without
    /// elements do not matter. Errors: another number of strides than of dims, a shape that no tensor has, or a span of
    /// more than `isize::MAX` bytes.
    pub fn new(dtype: DType, shape: impl AsRef<[usize]>, strides: &[isize]) -> Result<TensorLayout> {
        let shape = shape.as_ref();
        if shape.len() != strides.len() {
            let (n, dims) = (strides.len(), dims_text(shape));
            return Err(Error::Shape(format!("{n} strides for the shape {dims}, which has {} dims", shape.len())));
        }
        let (layout, low, high) = Layout::strided(shape, strides)?;
        let bytes = (high - low + 1) * dtype.size() as i128;
        if layout.elements() == 0 {
            return Ok(TensorLayout { layout, dtype, before: 0, bytes: 0, distinct: true });
        }
        let Ok(bytes) = isize::try_from(bytes) else {
            let dims = dims_text(shape);
            return Err(Error::Shape(format!("strides {strides:?} of {dtype}{dims} span {bytes} bytes")));
        };
        let distinct = layout.is_distinct();
        Ok(TensorLayout { layout, dtype, before: -low as usize, bytes: bytes as usize, distinct })
    }

    /// The row-major layout without gaps.
    pub fn contiguous(dtype: DType, shape: impl AsRef<[usize]>) -> Result<TensorLayout> {
        let layout = Layout::contiguous(shape.as_ref())?;
        let bytes = layout.elements().checked_mul(dtype.size()).filter(|n| isize::try_from(*n).is_ok());
        let refused = || Error::Shape(format!("{dtype}{} has too many bytes", dims_text(shape.as_ref())));
        Ok(TensorLayout { layout, dtype, before: 0, bytes: bytes.ok_or_else(refused)?, distinct: true })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.layout.strides
    }

    /// A view of the elements in this layout of which the first in row-major order, that of index 0 in each dim, is at
    /// `first`. The address may have any alignment; each run copies elements that are not aligned. Errors: a null
    /// pointer for a layout with elements.
    ///
    /// # Safety
    ///
    /// As [`TensorView::from_raw_parts`].
    pub unsafe fn over<'a>(&self, first: *const u8) -> Result<TensorView<'a>> {
        let start = self.lowest(first.cast_mut())?.cast_const();
        // SAFETY: the caller promises it of the bytes from the lowest to the highest element, whose number `new` has checked to
        // be that of an allocation; no bytes may be read anywhere.
        let memory = unsafe { RawBytes::new(start, self.bytes) };
        Ok(TensorView::of_raw(memory, self.layout.clone(), self.dtype, self.before))
    }

    /// A view for writing the elements in this layout of which the first in row-major order is at `first`. The address
    /// may have any alignment. Errors: a null pointer for a layout with elements; elements that may share an address,
    /// see [`TensorViewMut`].
    ///
    /// # Safety
    ///
    /// As [`TensorViewMut::from_raw_parts`].
    pub unsafe fn over_mut<'a>(&self, first: *mut u8) -> Result<TensorViewMut<'a>> {
        if !self.distinct {
            return Err(may_overlap(self.dtype, self.shape(), self.strides()));
        }
        self.lowest(first)?;
        let first = if self.layout.elements() == 0 { std::ptr::dangling_mut::<u128>().cast() } else { first };
        // SAFETY: the caller promises it of the elements of this layout, and the view is used with no other; no elements may be
        // written anywhere.
        let memory = unsafe { RawBytesMut::new(first) };
        Ok(TensorViewMut::of_raw(memory, self.layout.clone(), self.dtype))
    }

    /// The lowest address of elements of which the first is at `first`.
    fn lowest(&self, first: *mut u8) -> Result<*mut u8> {
        if self.layout.elements() == 0 {
            return Ok(std::ptr::dangling_mut());
        }
        if first.is_null() {
            let (dims, n) = (dims_text(self.shape()), self.layout.elements());
            return Err(Error::Shape(format!("a null pointer for {}{dims}, which has {n} elements", self.dtype)));
        }
        Ok(first.wrapping_sub(self.before * self.dtype.size()))
    }
}

impl<'a> TensorView<'a> {
    /// A view of elements at an address that something else than Rust's references keeps alive, such as an array of
    /// another language. `first` is that of the first element in row-major order, that of index 0 in each dim; strides
    /// are in elements, and may be negative or 0. The address may have any alignment. Nothing is read here. Of many views
    /// with the same layout, make a [`TensorLayout`] once.
    ///
    /// Errors: those of [`TensorLayout::new`]; a null pointer for a view with elements.
    ///
    /// # Safety
    ///
    /// Where the view has elements, for all of `'a`:
    ///
    /// - the bytes from its lowest to its highest element, those of gaps between elements included, are in one
    ///   allocation, initialized, and may be read;
    /// - each element of dtype bool is the byte 0 or 1;
    /// - nothing writes to these bytes while a run or [`to_tensor`](TensorView::to_tensor) reads them. The run itself may
    ///   be given a [`TensorViewMut`] of the same memory: it writes there after it has read.
    ///
    /// ```
    /// use castwise::{DType, TensorView};
    /// let all = [1i16, 2, 3, 4];
    /// // SAFETY: the four elements end at the last one, and outlive the view.
    /// let back = unsafe { TensorView::from_raw_parts(DType::I16, all[3..].as_ptr().cast(), [2, 2], &[-2, -1]) }?;
    /// assert_eq!(back.to_tensor()?.to_vec::<i16>()?, [4, 3, 2, 1]);
    /// // SAFETY: a null pointer is refused.
    /// assert!(unsafe { TensorView::from_raw_parts(DType::I16, std::ptr::null(), [2], &[1]) }.is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub unsafe fn from_raw_parts(
        dtype: DType,
        first: *const u8,
        shape: impl AsRef<[usize]>,
        strides: &[isize],
    ) -> Result<TensorView<'a>> {
        let layout = TensorLayout::new(dtype, shape, strides)?;
        // SAFETY: the caller's promise is the same.
        unsafe { layout.over(first) }
    }
}

impl<'a> TensorViewMut<'a> {
    /// A view for writing elements at an address that something else than Rust's references keeps alive, such as an array
    /// of another language. `first` is that of the first element in row-major order; strides are in elements, and may be
    /// negative. The address may have any alignment. Of many views with the same layout, make a [`TensorLayout`] once.
    ///
    /// Errors: those of [`TensorLayout::new`]; a null pointer for a view with elements; elements that may share an
    /// address, see [`TensorViewMut`].
    ///
    /// # Safety
    ///
    /// Where the view has elements, for all of `'a`:
    ///
    /// - its elements may be written, and those from the lowest to the highest one, with what is in gaps between them, are
    ///   in one allocation; without gaps they are initialized, with gaps what is in these is never touched;
    /// - while a run writes to the view, nothing else reads or writes its elements. The same run's feeds may, if they were
    ///   made by [`TensorView::from_raw_parts`] or [`TensorLayout::over`]: an element is then read before anything is written
    ///   there. A reference of Rust to the memory, which other views hold, must not exist.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let step = Executor::new().prepare(&p, [&(p.data("x", DType::F32, [None]) * 10.0)])?;
    /// let mut all = [1.0f32, 2.0, 3.0, 4.0];
    /// let first: *mut f32 = all.as_mut_ptr();
    /// // SAFETY: both are of the array's elements, which outlives them and is not used between here and their last use.
    /// let (x, y) = unsafe {
    ///     (TensorView::from_raw_parts(DType::F32, first.cast(), [3], &[1])?,
    ///      TensorViewMut::from_raw_parts(DType::F32, first.add(1).cast(), [3], &[1])?)
    /// };
    /// step.run_views_into(&[x], &mut [y])?;
    /// assert_eq!(all, [1.0, 10.0, 20.0, 30.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub unsafe fn from_raw_parts(
        dtype: DType,
        first: *mut u8,
        shape: impl AsRef<[usize]>,
        strides: &[isize],
    ) -> Result<TensorViewMut<'a>> {
        let layout = TensorLayout::new(dtype, shape, strides)?;
        // SAFETY: the caller's promise is the same.
        unsafe { layout.over_mut(first) }
    }
}

#[cfg(test)]
mod tests;
