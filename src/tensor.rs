//! `Tensor`: a dtype, a shape and strides over shared bytes.
//!
//! Guarantees: storage is 64-byte aligned and never changes once shared; every element a view can reach lies inside
//! its storage; views (`transpose`, `slice`, `broadcast_to`, …) copy nothing; bool bytes are 0 or 1; a failed
//! allocation is an error. Does not: compute. Arithmetic on tensors is in `eager`, on programs in `executor`.

use std::sync::{Arc, Weak};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::scalar::Bits;
use crate::shape::{check, contiguous_strides, dims_text, numel};

mod fmt;
mod pool;
mod view;
pub(crate) use pool::Pool;

/// One cache line: what storage is made of, so that its start is aligned.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Owned, aligned bytes, which go back to their pool when they are dropped.
pub(crate) struct Storage {
    lines: Vec<Line>,
    bytes: usize,
    home: Weak<Pool>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(pool) = self.home.upgrade() {
            pool.give(std::mem::take(&mut self.lines));
        }
    }
}

impl Storage {
    /// Zeroed bytes.
    pub(crate) fn zeroed(bytes: usize) -> Result<Storage> {
        let lines =
            bytemuck::allocation::try_zeroed_vec(bytes.div_ceil(64)).map_err(|()| Error::OutOfMemory { bytes })?;
        Ok(Storage { lines, bytes, home: Weak::new() })
    }

    /// Bytes to be overwritten: from the pool if it has a buffer of this size.
    pub(crate) fn pooled(bytes: usize, pool: &Arc<Pool>) -> Result<Storage> {
        let mut storage = match pool.take(bytes.div_ceil(64)) {
            Some(lines) => Storage { lines, bytes, home: Weak::new() },
            None => Storage::zeroed(bytes)?,
        };
        storage.home = Arc::downgrade(pool);
        Ok(storage)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.bytes]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.bytes]
    }
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
    dtype: DType,
    shape: Arc<[usize]>,
    strides: Arc<[isize]>,
    offset: usize,
}

impl Tensor {
    /// A contiguous tensor over storage that holds exactly its elements.
    pub(crate) fn from_storage(storage: Storage, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let n = check(shape)?;
        if storage.bytes != n * dtype.size() {
            return Err(Error::Internal(format!("{} bytes of storage for {dtype}{shape:?}", storage.bytes)));
        }
        let strides = contiguous_strides(shape).into();
        Ok(Tensor { storage: Arc::new(storage), dtype, shape: shape.into(), strides, offset: 0 })
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

    /// A tensor from the bytes of its elements, row-major, in the machine's byte order. A bool byte other than 0 and
    /// 1 is an error.
    pub fn from_bytes(dtype: DType, shape: impl AsRef<[usize]>, bytes: &[u8]) -> Result<Tensor> {
        let shape = shape.as_ref();
        let want = check(shape)? * dtype.size();
        if bytes.len() != want {
            return Err(Error::Shape(format!(
                "{} bytes for {dtype}{}, which has {want}",
                bytes.len(),
                dims_text(shape)
            )));
        }
        if dtype == DType::Bool
            && let Some(at) = bytes.iter().position(|b| *b > 1)
        {
            return Err(Error::Shape(format!("byte {at} of a bool tensor is {}, neither 0 nor 1", bytes[at])));
        }
        let mut storage = Storage::zeroed(want)?;
        storage.bytes_mut().copy_from_slice(bytes);
        Tensor::from_storage(storage, dtype, shape)
    }

    /// A tensor of one value.
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
        let mut line = Line([0; 64]);
        line.0[..16].copy_from_slice(&bits.0);
        let storage = Storage { lines: vec![line], bytes: dtype.size(), home: Weak::new() };
        Tensor { storage: Arc::new(storage), dtype, shape: [].into(), strides: [].into(), offset: 0 }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents; empty for a 0-d tensor.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The strides, in elements; 0 where a dim repeats one element.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        // A shape whose count overflows can't be constructed.
        numel(&self.shape).unwrap_or(0)
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (n, s) in self.shape.iter().zip(self.strides.iter()).rev() {
            if *n == 0 {
                return true;
            }
            if *n != 1 {
                if *s != expected {
                    return false;
                }
                expected *= *n as isize;
            }
        }
        true
    }

    /// This tensor, row-major: itself if it is already, else a copy.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() {
            return Ok(self.clone());
        }
        let mut storage = Storage::zeroed(self.numel() * self.dtype.size())?;
        view::gather(self, storage.bytes_mut());
        Tensor::from_storage(storage, self.dtype, &self.shape)
    }

    /// All bytes of the storage and where this tensor's first element starts in them (in elements).
    pub(crate) fn raw(&self) -> (&[u8], usize) {
        (self.storage.bytes(), self.offset)
    }

    /// The bytes of a contiguous tensor's elements; `None` if it is not contiguous.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        let (size, start) = (self.dtype.size(), self.offset * self.dtype.size());
        self.is_contiguous().then(|| self.storage.bytes().get(start..start + self.numel() * size).unwrap_or(&[]))
    }

    /// The elements of a contiguous tensor. Errors: another dtype than `T`, or a tensor that is not contiguous.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.expect(T::DTYPE)?;
        let bytes = self.as_bytes().ok_or_else(|| Error::Shape("the tensor is not contiguous".into()))?;
        bytemuck::checked::try_cast_slice(bytes).map_err(|e| Error::Internal(format!("storage of {}: {e}", self.dtype)))
    }

    /// A copy of the elements, row-major, whatever the strides. Errors: another dtype than `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.expect(T::DTYPE)?;
        Ok(self.contiguous()?.as_slice::<T>()?.to_vec())
    }

    /// The only element of a tensor that has one. Errors: another dtype than `T`, or another number of elements.
    pub fn item<T: Element>(&self) -> Result<T> {
        match self.to_vec::<T>()?.as_slice() {
            [one] => Ok(*one),
            all => Err(Error::Shape(format!("item() of a tensor with {} elements", all.len()))),
        }
    }

    fn expect(&self, expected: DType) -> Result<()> {
        if self.dtype == expected { Ok(()) } else { Err(Error::DType { expected, found: self.dtype }) }
    }
}
