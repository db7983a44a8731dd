//! The dtypes of tensors in files, which include some that castwise does not compute with.
//!
//! Guarantees: a tensor of any dtype of the safetensors format can be copied from file to file, byte for byte.
//! Does not: give its elements a meaning.

use std::fmt;

use safetensors::tensor::Dtype;

use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::shape::check;

/// A dtype of the safetensors format that castwise lacks, such as `F8_E8M0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignDType(pub(super) Dtype);

impl fmt::Display for ForeignDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The dtype of a tensor in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredDType {
    /// A dtype of castwise.
    Known(DType),
    /// A dtype that castwise lacks. Tensors of it can be copied, but not loaded.
    Foreign(ForeignDType),
}

impl From<DType> for StoredDType {
    fn from(dtype: DType) -> StoredDType {
        StoredDType::Known(dtype)
    }
}

impl fmt::Display for StoredDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredDType::Known(d) => d.fmt(f),
            StoredDType::Foreign(d) => d.fmt(f),
        }
    }
}

impl StoredDType {
    /// The size of an element in bits. Some dtypes have less than 8.
    fn bits(self) -> usize {
        match self {
            StoredDType::Known(d) => 8 * d.size(),
            StoredDType::Foreign(d) => d.0.bitsize(),
        }
    }

    /// The size of an element in bytes; 1 if it has less than 8 bits.
    pub(super) fn alignment(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// The size of a tensor in bytes, rounded up. Errors: the shape is too large.
    pub fn byte_len(self, shape: &[usize]) -> Result<usize> {
        let bits = check(shape)? as u128 * self.bits() as u128;
        Ok(usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX))
    }
}

/// A tensor to be written: its name, dtype and shape.
pub(super) type Listed = (String, StoredDType, Vec<usize>);

/// The tensors of a list whose dtypes may all be known.
pub(super) fn listed<D: Copy + Into<StoredDType>>(tensors: &[(String, D, Vec<usize>)]) -> Vec<Listed> {
    tensors.iter().map(|(name, dtype, shape)| (name.clone(), (*dtype).into(), shape.clone())).collect()
}

/// A tensor as a file has it: its elements are bytes, row-major and little-endian.
#[derive(Clone, Debug)]
pub struct Stored {
    dtype: StoredDType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Stored {
    /// The caller has as many bytes as the dtype and the shape need.
    pub(super) fn new(dtype: StoredDType, shape: Vec<usize>, bytes: Vec<u8>) -> Stored {
        Stored { dtype, shape, bytes }
    }

    /// The dtype.
    pub fn dtype(&self) -> StoredDType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
