//! Where a run writes its results: the caller's tensors, and borrowed memory in any layout.
//!
//! Guarantees: memory is written by the run itself only if it is contiguous and aligned, has the result's dtype, and nothing
//! else refers to it but feeds of which the run says that it reads each element before it writes there; otherwise it is written
//! when the run has ended well. Does not: convert results, check their shapes.

use std::fmt;
use std::sync::Arc;

use super::layout::{Layout, may_overlap};
use super::raw::{Place, RawBytesMut};
use super::{Tensor, TensorRef};
use crate::base::dtype::{DType, Element};
use crate::base::error::{Error, Result};
use crate::base::shape::{check, dims_fmt, dims_text};

/// Borrowed memory for a result: the elements of a slice, of a tensor, or of an array of another language, with a dtype, a
/// shape and strides. [`Prepared::run_views_into`](crate::Prepared::run_views_into) writes to it in place.
///
/// No two elements of it share an address. A layout is refused, even if it has no such elements, unless each dim steps over
/// all that the dims of smaller strides reach, as in every slice and permutation of an array.
///
/// ```
/// use castwise::prelude::*;
/// let p = Program::new(Rules::Torch);
/// let (x, y) = (p.data("x", DType::F32, [None]), p.data("y", DType::F32, [None]));
/// let step = Executor::new().prepare(&p, [&(&x + &y), &(&x - &y)])?;
/// let (mut sums, mut differences) = (vec![0.0f32; 2], [0.0f32; 2]);
/// step.run_views_into(
///     &[TensorView::from_slice(&[3.0f32, 5.0], [2])?, TensorView::from_slice(&[1.0f32, 2.0], [2])?],
///     &mut [TensorViewMut::from_slice(&mut sums, [2])?, TensorViewMut::from_slice(&mut differences, [2])?],
/// )?;
/// assert_eq!((&sums[..], differences), (&[4.0, 7.0][..], [2.0, 3.0]));
/// # Ok::<(), castwise::Error>(())
/// ```
pub struct TensorViewMut<'a> {
    memory: RawBytesMut<'a>,
    layout: Arc<Layout>,
    dtype: DType,
}

impl fmt::Debug for TensorViewMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mutable view of {}", self.dtype)?;
        dims_fmt(self.shape(), f)
    }
}

impl<'a> TensorViewMut<'a> {
    /// A view of memory that the caller vouches for, which the layout does not leave, and whose elements do not overlap.
    pub(super) fn of_raw(memory: RawBytesMut<'a>, layout: Arc<Layout>, dtype: DType) -> TensorViewMut<'a> {
        TensorViewMut { memory, layout, dtype }
    }

    /// A view of a slice's elements, row-major. The slice must have as many elements as the shape.
    pub fn from_slice<T: Element>(data: &'a mut [T], shape: impl AsRef<[usize]>) -> Result<TensorViewMut<'a>> {
        let layout = Layout::of(shape.as_ref(), data.len())?;
        Ok(TensorViewMut { memory: RawBytesMut::borrowed(data, 0), layout, dtype: T::DTYPE })
    }

    /// A view of a slice's elements with the given strides, in elements, of which the first one in row-major order is
    /// `data[offset]`. Strides may be negative. Errors: an element outside of the slice; elements that may overlap.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let step = Executor::new().prepare(&p, [&(p.data("x", DType::I32, [None]) + 1)])?;
    /// // The second column of a matrix, from the last row to the first.
    /// let mut matrix = [[0i32; 2]; 3];
    /// let column = TensorViewMut::from_slice_strided(matrix.as_flattened_mut(), [3], &[-2], 5)?;
    /// step.run_views_into(&[TensorView::from_slice(&[1, 2, 3], [3])?], &mut [column])?;
    /// assert_eq!(matrix, [[0, 4], [0, 3], [0, 2]]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn from_slice_strided<T: Element>(
        data: &'a mut [T],
        shape: impl AsRef<[usize]>,
        strides: &[isize],
        offset: usize,
    ) -> Result<TensorViewMut<'a>> {
        let (shape, n) = (shape.as_ref(), data.len());
        let leaves = |e| match e {
            Error::Internal(_) => {
                let dims = dims_text(shape);
                Error::Shape(format!("{dims} with strides {strides:?} from element {offset} leaves the slice of {n}"))
            }
            e => e,
        };
        let layout = Layout::within(shape, strides, offset, n).map_err(leaves)?;
        if !layout.is_distinct() {
            return Err(may_overlap(T::DTYPE, shape, strides));
        }
        let first = if layout.elements == 0 { 0 } else { offset };
        Ok(TensorViewMut { memory: RawBytesMut::borrowed(data, first), layout, dtype: T::DTYPE })
    }

    /// A view of elements given by their bytes, row-major. The bytes may have any alignment. (Bytes of bools become 0
    /// or 1.)
    pub fn from_bytes(dtype: DType, shape: impl AsRef<[usize]>, bytes: &'a mut [u8]) -> Result<TensorViewMut<'a>> {
        let (want, got) = (check(shape.as_ref())? * dtype.size(), bytes.len());
        if got != want {
            let dims = dims_text(shape.as_ref());
            return Err(Error::Shape(format!("{got} bytes for {dtype}{dims}, which has {want}")));
        }
        let layout = Layout::contiguous(shape.as_ref())?;
        Ok(TensorViewMut { memory: RawBytesMut::borrowed(bytes, 0), layout, dtype })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents; empty for a 0-d view.
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.layout.strides
    }
}

/// What [`AsTarget`] makes: somewhere to write a result.
pub struct Target<'a>(Kind<'a>);

enum Kind<'a> {
    New(&'a mut Option<Tensor>),
    Tensor(&'a mut Tensor),
    View { memory: RawBytesMut<'a>, layout: &'a Layout, dtype: DType },
}

/// What results can be written to: a [`Tensor`], a [`TensorViewMut`], an `Option<Tensor>`, which becomes the result whatever it
/// was, and exclusive references to these.
///
/// ```
/// use castwise::{AsTarget, prelude::*};
/// let p = Program::new(Rules::Torch);
/// let x = p.data("x", DType::F32, [None]);
/// let step = Executor::new().prepare(&p, [&(&x + 1.0), &(&x * 2.0)])?;
/// let (mut sums, mut doubled, one) = (None, [0.0f32; 2], Tensor::from([1.0f32, 2.0]));
/// let mut view = TensorViewMut::from_slice(&mut doubled, [2])?;
/// step.run_into(&[&one], &mut [sums.as_target(), view.as_target()])?;
/// let made = sums.as_ref().map(|t: &Tensor| t.to_vec::<f32>()).transpose()?;
/// assert_eq!((made, doubled), (Some(vec![2.0, 3.0]), [2.0, 4.0]));
/// step.run_into(&[&one], &mut [sums, Some(Tensor::zeros(DType::F32, [2])?)])?;
/// # Ok::<(), castwise::Error>(())
/// ```
pub trait AsTarget {
    /// Where to write.
    fn as_target(&mut self) -> Target<'_>;
}

impl AsTarget for Tensor {
    fn as_target(&mut self) -> Target<'_> {
        Target(Kind::Tensor(self))
    }
}

impl AsTarget for Option<Tensor> {
    fn as_target(&mut self) -> Target<'_> {
        Target(Kind::New(self))
    }
}

impl AsTarget for TensorViewMut<'_> {
    fn as_target(&mut self) -> Target<'_> {
        Target(Kind::View { memory: self.memory.reborrow(), layout: &self.layout, dtype: self.dtype })
    }
}

impl AsTarget for Target<'_> {
    fn as_target(&mut self) -> Target<'_> {
        Target(match &mut self.0 {
            Kind::New(t) => Kind::New(t),
            Kind::Tensor(t) => Kind::Tensor(t),
            Kind::View { memory, layout, dtype } => Kind::View { memory: memory.reborrow(), layout, dtype: *dtype },
        })
    }
}

impl<T: AsTarget + ?Sized> AsTarget for &mut T {
    fn as_target(&mut self) -> Target<'_> {
        (**self).as_target()
    }
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dtype, shape) = match &self.0 {
            Kind::New(_) => return f.write_str("target of any result"),
            Kind::Tensor(t) => (t.dtype, t.shape()),
            Kind::View { layout, dtype, .. } => (*dtype, &*layout.shape),
        };
        write!(f, "target of {dtype}")?;
        dims_fmt(shape, f)
    }
}

impl Target<'_> {
    /// The dtype that a result must have here; `None` if it may have any.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match &self.0 {
            Kind::New(_) => None,
            Kind::Tensor(t) => Some(t.dtype),
            Kind::View { dtype, .. } => Some(*dtype),
        }
    }

    /// What a run with these feeds may write to before it has ended.
    pub(crate) fn slot(&mut self, feeds: &[TensorRef<'_>]) -> Slot<'_> {
        match &mut self.0 {
            Kind::New(_) => Slot { fixed: None, memory: None },
            Kind::Tensor(t) => {
                let dtype = t.dtype;
                let (bytes, layout) = t.own_bytes();
                Slot { fixed: Some((dtype, layout)), memory: bytes.map(Memory::Own) }
            }
            Kind::View { memory, layout, dtype } => {
                let place = memory.reborrow().place(*dtype, layout, feeds.iter().map(|t| t.addresses()));
                Slot { fixed: Some((*dtype, layout)), memory: place.map(Memory::Borrowed) }
            }
        }
    }

    /// Makes a tensor of the target's dtype and shape its content.
    pub(crate) fn set(&mut self, made: Tensor) {
        match &mut self.0 {
            Kind::New(t) => **t = Some(made),
            Kind::Tensor(t) => **t = made,
            Kind::View { memory, layout, .. } => memory.scatter(layout, &made),
        }
    }
}

/// A target as a run sees it.
pub(crate) struct Slot<'a> {
    /// The dtype and layout, unless the target takes any result.
    fixed: Option<(DType, &'a Layout)>,
    memory: Option<Memory<'a>>,
}

enum Memory<'a> {
    Own(&'a mut [u8]),
    Borrowed(Place<'a>),
}

impl<'a> Slot<'a> {
    /// The dtype and shape, unless the target takes any result.
    pub(crate) fn fixed(&self) -> Option<(DType, &'a [usize])> {
        self.fixed.map(|(dtype, layout)| (dtype, &*layout.shape))
    }

    /// The bytes for a result of this dtype and shape, once, if the run may write it here. If feeds are in the same bytes, `over` is
    /// asked whether it will read them there, through what this returns and not as tensors.
    pub(crate) fn take(
        &mut self,
        dtype: DType,
        shape: &[usize],
        over: impl FnOnce(&[usize]) -> bool,
    ) -> Option<&'a mut [u8]> {
        if self.fixed()? != (dtype, shape) {
            return None;
        }
        match self.memory.take()? {
            Memory::Own(bytes) => Some(bytes),
            Memory::Borrowed(place) => (place.over().is_empty() || over(place.over())).then(|| place.bytes_mut()),
        }
    }
}
