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

mod borrow;
mod convert;
mod fmt;
pub(crate) mod layout;
mod memory;
mod pool;
mod storage;
mod view;
pub(crate) use borrow::TensorRef;
pub use borrow::TensorView;
pub(crate) use pool::Pool;
pub(crate) use storage::Storage;
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

    /// The tensor's bytes for writing, if it has this dtype and contiguous layout and is the only owner of its storage.
    /// Strides of dims of extent 1 are ignored.
    pub(crate) fn own_bytes(&mut self, dtype: DType, layout: &Layout) -> Option<&mut [u8]> {
        let same = self.dtype == dtype && self.is_contiguous() && self.shape() == &layout.shape[..];
        let range = self.offset * dtype.size()..(self.offset + self.layout.elements) * dtype.size();
        let storage = if same { Arc::get_mut(&mut self.storage) } else { None };
        storage?.bytes_mut().get_mut(range)
    }

    /// A tensor with a copy of `data`, row-major. `data` must have as many elements as the shape.
    pub fn from_slice<T: Element>(data: &[T], shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let shape = shape.as_ref();
        let n = check(shape)?;
        if n != data.len() {
            return Err(Error::Shape(format!(
                "{} elements for the shape {}, which has {n}",
                data.len(),
                dims_text(shape)
            )));
        }
        Tensor::from_bytes(T::DTYPE, shape, bytemuck::cast_slice(data))
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
        let mut storage = Storage::zeroed(bytes.len())?;
        storage.bytes_mut().copy_from_slice(bytes);
        Tensor::from_storage(storage, dtype, shape)
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
        let layout = Arc::new(Layout::new(vec![], vec![]));
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
