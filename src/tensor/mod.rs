//! `Tensor`: a dtype, a shape and strides over shared bytes.
//!
//! Guarantees: storage is 64-byte aligned (16-byte, if it was adopted from an array) and never changes once shared;
//! every element that a view can reach lies inside its storage; views (`transpose`, `slice`, `broadcast_to`, …) copy
//! nothing; bool bytes are 0 or 1; a failed allocation is an error. Does not: compute. Arithmetic on tensors is in
//! `eager`, on programs in `executor`.

use std::sync::Arc;

use crate::base::dtype::{DType, Element};
use crate::base::error::{Error, Result};
use crate::base::scalar::Bits;
use crate::base::shape::{check, dims_fmt, dims_text};
use layout::Layout;

mod address;
mod borrow;
mod convert;
mod fmt;
pub(crate) mod layout;
mod memory;
mod pool;
mod raw;
mod storage;
mod target;
mod view;
pub use address::TensorLayout;
pub(crate) use borrow::TensorRef;
pub use borrow::TensorView;
pub(crate) use pool::Pool;
pub(crate) use storage::Storage;
pub(crate) use target::Slot;
pub use target::{AsTarget, Target, TensorViewMut};
pub(crate) use view::Placed;

/// Checks that `bytes` has the tensor's length and valid elements.
fn check_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<()> {
    let (want, got) = (check(shape)? * dtype.size(), bytes.len());
    if got != want {
        return Err(Error::Shape(format!("{got} bytes for {dtype}{}, which has {want}", dims_text(shape))));
    }
    if dtype == DType::Bool
        && let Some(at) = bytes.iter().position(|b| *b > 1)
    {
        return Err(Error::Shape(format!("byte {at} of a bool tensor is {}, neither 0 nor 1", bytes[at])));
    }
    Ok(())
}

/// An n-dimensional array of one [`DType`]. Cloning shares the storage.
///
/// ```
/// use castwise::{DType, Tensor};
/// let t = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
/// let column = t.transpose(0, 1)?.slice(0, 1, 2, 1)?;            // no copy
/// assert_eq!((t.dtype(), column.shape()), (DType::F32, &[1, 2][..]));
/// assert_eq!(column.to_vec::<f32>()?, [2.0, 5.0]);
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    storage: Arc<Storage>,
    layout: Arc<Layout>,
    dtype: DType,
    offset: usize,
}

/// A tensor's dtype and shape, without its data.
///
/// ```
/// use castwise::{DType, Tensor};
/// let meta = Tensor::zeros(DType::F16, [2, 3])?.meta();
/// assert_eq!(meta.to_string(), "f16[2, 3]");
/// assert_eq!(Tensor::zeros(meta.dtype, &meta.shape)?.meta(), meta);
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorMeta {
    /// The element type.
    pub dtype: DType,
    /// The extents.
    pub shape: Vec<usize>,
}

impl std::fmt::Display for TensorMeta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.dtype)?;
        dims_fmt(&self.shape, f)
    }
}

impl Tensor {
    /// A contiguous tensor over storage that holds exactly its elements.
    pub(crate) fn from_storage(storage: Storage, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        Tensor::with_layout(storage, dtype, Layout::contiguous(shape)?)
    }

    /// A tensor over storage that holds exactly the elements of a contiguous layout.
    pub(crate) fn with_layout(storage: Storage, dtype: DType, layout: Arc<Layout>) -> Result<Tensor> {
        if storage.len() != layout.elements * dtype.size() || !layout.contiguous {
            return Err(Error::Internal(format!("{} bytes of storage for {dtype}{:?}", storage.len(), layout.shape)));
        }
        Ok(Tensor { storage: Arc::new(storage), layout, dtype, offset: 0 })
    }

    /// A tensor over storage with the given strides. Errors: an element outside of the storage.
    #[cfg(feature = "ndarray")]
    pub(crate) fn with_strides(
        storage: Storage,
        dtype: DType,
        shape: &[usize],
        strides: &[isize],
        offset: usize,
    ) -> Result<Tensor> {
        let layout = Layout::within(shape, strides, offset, storage.len() / dtype.size())?;
        Ok(Tensor { storage: Arc::new(storage), layout, dtype, offset })
    }

    /// The bytes of a contiguous tensor that is the only owner of its storage, of any dtype, and its layout.
    fn own_bytes(&mut self) -> (Option<&mut [u8]>, &Arc<Layout>) {
        let range = self.offset * self.dtype.size()..(self.offset + self.layout.elements) * self.dtype.size();
        let storage = if self.layout.contiguous { Arc::get_mut(&mut self.storage) } else { None };
        (storage.and_then(|s| s.bytes_mut().get_mut(range)), &self.layout)
    }

    /// The bytes of the elements for writing, if the tensor is contiguous and nothing shares it. A byte of a bool must be 0 or 1
    /// when they are read.
    #[cfg(feature = "io")]
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.own_bytes().0
    }

    /// A tensor with a copy of `data`, row-major. `data` must have as many elements as the shape.
    pub fn from_slice<T: Element>(data: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor> {
        Tensor::copied(T::DTYPE, Layout::of(shape.as_ref(), data.len())?, bytemuck::cast_slice(data))
    }

    /// A tensor with the elements of `data`, row-major.
    pub fn from_vec<T: Element>(data: Vec<T>, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        Tensor::from_slice(&data, shape)
    }

    /// A tensor from the bytes of its elements, row-major, in native byte order. A bool byte other than 0 and 1 is an
    /// error.
    pub fn from_bytes(dtype: DType, shape: impl AsRef<[usize]>, bytes: &[u8]) -> Result<Tensor> {
        let shape = shape.as_ref();
        check_bytes(dtype, shape, bytes)?;
        Tensor::copied(dtype, Layout::contiguous(shape)?, bytes)
    }

    /// A tensor with a copy of the bytes of a contiguous layout's elements.
    fn copied(dtype: DType, layout: Arc<Layout>, bytes: &[u8]) -> Result<Tensor> {
        let mut storage = Storage::zeroed(bytes.len())?;
        storage.bytes_mut().copy_from_slice(bytes);
        Tensor::with_layout(storage, dtype, layout)
    }

    /// A tensor filled with one value.
    ///
    /// ```
    /// # use castwise::Tensor;
    /// assert_eq!(Tensor::full([2, 2], 7u8)?.to_vec::<u8>()?, [7; 4]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn full<T: Element>(shape: impl AsRef<[usize]>, value: T) -> Result<Tensor> {
        Tensor::scalar(value).broadcast_to(shape)?.contiguous()
    }

    /// A tensor of zeros (false for bool).
    pub fn zeros(dtype: DType, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let shape = shape.as_ref();
        Tensor::from_storage(Storage::zeroed(check(shape)? * dtype.size())?, dtype, shape)
    }

    /// A 0-d tensor.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor::of_bits(T::DTYPE, Bits::of(bytemuck::bytes_of(&value)))
    }

    /// A 0-d tensor of the given element bytes.
    pub(crate) fn of_bits(dtype: DType, bits: Bits) -> Tensor {
        let layout = Arc::new(Layout::new(&[], &[]));
        Tensor { storage: Arc::new(Storage::copied(&bits.0[..dtype.size()])), layout, dtype, offset: 0 }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents; empty for a 0-d tensor.
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// The strides, in elements; 0 where a dim repeats one element.
    pub fn strides(&self) -> &[isize] {
        &self.layout.strides
    }

    /// The dtype and the shape.
    pub fn meta(&self) -> TensorMeta {
        TensorMeta { dtype: self.dtype, shape: self.shape().to_vec() }
    }

    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.layout.shape.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.layout.elements
    }

    /// Whether the elements are in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.layout.contiguous
    }

    /// This tensor in row-major order: itself if it is contiguous already, else a copy.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() {
            return Ok(self.clone());
        }
        let mut storage = Storage::zeroed(self.numel() * self.dtype.size())?;
        layout::gather(self.raw(), &self.layout, self.dtype.size(), storage.bytes_mut());
        Tensor::from_storage(storage, self.dtype, self.shape())
    }

    /// All bytes of the storage, and the offset of this tensor's first element in them (in elements).
    pub(crate) fn raw(&self) -> (&[u8], usize) {
        (self.storage.bytes(), self.offset)
    }

    /// The bytes of a contiguous tensor's elements; `None` if it is not contiguous.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        let (size, start) = (self.dtype.size(), self.offset * self.dtype.size());
        self.is_contiguous().then(|| self.storage.bytes().get(start..start + self.numel() * size).unwrap_or(&[]))
    }

    /// The bytes of the tensor's elements for writing: `None` if it is not contiguous, if another tensor shares its
    /// storage, if that was adopted from an array, or if the dtype is bool, whose bytes must be 0 or 1
    /// ([`as_mut_slice`](Tensor::as_mut_slice) has bools, [`as_mut_ptr`](Tensor::as_mut_ptr) their address).
    ///
    /// Results of runs are new memory that nothing shares, unless a fetch is a feed or a constant itself, or is fetched
    /// twice; that of an eager op is shared by its [`EagerValue`](crate::EagerValue) until that is dropped.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [None]) * 2.0;
    /// let mut out = Executor::new().run(&p, feeds! { "x" => &[1.0f32, 2.0] }, [&y])?.remove(0);
    /// let kept = out.clone();
    /// assert!(out.as_mut_bytes().is_none());                    // two tensors share the storage
    /// drop(kept);
    /// assert_eq!(out.as_mut_bytes().map(|bytes| bytes.len()), Some(8));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn as_mut_bytes(&mut self) -> Option<&mut [u8]> {
        if self.dtype == DType::Bool { None } else { self.own_bytes().0 }
    }

    /// The elements of the tensor for writing: `None` where [`as_mut_bytes`](Tensor::as_mut_bytes) has none, or if the
    /// dtype is not that of `T`. Bools are allowed.
    ///
    /// ```
    /// # use castwise::Tensor;
    /// let mut t = Tensor::from([1.0f32, 2.0]);
    /// if let Some(elements) = t.as_mut_slice::<f32>() {
    ///     elements[0] = 7.0;
    /// }
    /// assert_eq!(t.to_vec::<f32>()?, [7.0, 2.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        if self.dtype != T::DTYPE {
            return None;
        }
        bytemuck::checked::try_cast_slice_mut(self.own_bytes().0?).ok()
    }

    /// The address of the tensor's first element, for code that keeps the tensor as the owner of an array in another
    /// language, and may write there: 64-byte aligned for a result. `None` where
    /// [`as_mut_slice`](Tensor::as_mut_slice) has none. The address stays valid until the tensor is dropped or is the target of
    /// a run, which can give it other memory, wherever it is moved to. While something writes to it, the tensor must not be used otherwise; and what is written to a bool tensor
    /// must be 0 or 1 before it is.
    ///
    /// ```
    /// use castwise::Tensor;
    /// /// An array as another language has it.
    /// struct Array { data: *mut u8, _owner: Box<Tensor> }
    /// let mut result = Tensor::from([1i32, 2, 3]);
    /// if let Some(data) = result.as_mut_ptr() {
    ///     let array = Array { data, _owner: Box::new(result) };
    ///     // SAFETY: the array's owner has three elements of i32.
    ///     unsafe { array.data.cast::<i32>().add(1).write(7) };
    /// }
    /// ```
    pub fn as_mut_ptr(&mut self) -> Option<*mut u8> {
        self.own_bytes().0.map(<[u8]>::as_mut_ptr)
    }

    /// The elements of a contiguous tensor. Errors: the dtype is not that of `T`, or the tensor is not contiguous.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_dtype(T::DTYPE)?;
        let bytes = self.as_bytes().ok_or_else(|| Error::Shape("the tensor is not contiguous".into()))?;
        bytemuck::checked::try_cast_slice(bytes).map_err(|e| Error::Internal(format!("storage of {}: {e}", self.dtype)))
    }

    /// A copy of the elements in row-major order, for any strides. Errors: the dtype is not that of `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype(T::DTYPE)?;
        let rows = self.contiguous()?;
        let (elements, mut all) = (rows.as_slice::<T>()?, Vec::new());
        let refused = |_| Error::OutOfMemory { bytes: std::mem::size_of_val(elements) };
        all.try_reserve_exact(elements.len()).map_err(refused)?;
        all.extend_from_slice(elements);
        Ok(all)
    }

    /// The only element of a tensor with one element. Errors: the dtype is not that of `T`, or the number of elements
    /// is not 1.
    pub fn item<T: Element>(&self) -> Result<T> {
        match self.to_vec::<T>()?.as_slice() {
            [one] => Ok(*one),
            all => Err(Error::Shape(format!("item() of a tensor with {} elements", all.len()))),
        }
    }

    fn check_dtype(&self, expected: DType) -> Result<()> {
        if self.dtype == expected { Ok(()) } else { Err(Error::DType { expected, found: self.dtype }) }
    }
}
