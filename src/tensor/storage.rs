//! Owned bytes of tensors, which return to their pool when dropped.
//!
//! Does not: allocate memory from the system; that is `memory`.

use super::Pool;
use super::memory::Memory;
use crate::base::error::Result;
use std::sync::Arc;

/// Owned, aligned bytes, which return to their pool when dropped.
pub(crate) struct Storage {
    memory: Memory,
    pub(super) bytes: usize,
    pool: Option<Arc<Pool>>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.put(std::mem::take(&mut self.memory));
        }
    }
}

impl Storage {
    /// Zeroed bytes.
    pub(crate) fn zeroed(bytes: usize) -> Result<Storage> {
        Ok(Storage { memory: Memory::zeroed(bytes)?, bytes, pool: None })
    }

    /// A copy of a small number of bytes: running out of memory is fatal, as for any `Vec`.
    pub(super) fn copied(bytes: &[u8]) -> Storage {
        Storage { memory: Memory::copied(bytes), bytes: bytes.len(), pool: None }
    }

    /// Bytes with arbitrary contents, to be overwritten: from the pool if it has a buffer of this size.
    pub(crate) fn pooled(bytes: usize, pool: &Arc<Pool>) -> Result<Storage> {
        let memory = match pool.take(Memory::size_for(bytes)) {
            Some(memory) => memory,
            None => Memory::zeroed(bytes)?,
        };
        Ok(Storage { memory, bytes, pool: Some(pool.clone()) })
    }

    /// The memory of a vector, or a copy of it if its alignment is too small for a tensor.
    #[cfg(feature = "ndarray")]
    pub(crate) fn adopted<T: crate::base::dtype::Element>(elements: Vec<T>) -> Result<Storage> {
        let bytes = size_of_val(&elements[..]);
        Ok(Storage { memory: Memory::adopted(elements)?, bytes, pool: None })
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.bytes]
    }

    /// The bytes for writing; empty if the memory was adopted.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut().get_mut(..self.bytes).unwrap_or_default()
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}
