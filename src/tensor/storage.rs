//! Owned bytes of tensors, which go back to their pool.
//!
//! Does not: get memory from the system (`memory`).

use super::Pool;
use super::memory::Memory;
use crate::base::error::Result;
use std::sync::Arc;

/// Owned, aligned bytes, which go back to their pool when they are dropped.
pub(crate) struct Storage {
    memory: Memory,
    pub(super) bytes: usize,
    home: Option<Arc<Pool>>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(pool) = &self.home {
            pool.give(std::mem::take(&mut self.memory));
        }
    }
}

impl Storage {
    /// Zeroed bytes.
    pub(crate) fn zeroed(bytes: usize) -> Result<Storage> {
        Ok(Storage { memory: Memory::zeroed(bytes)?, bytes, home: None })
    }

    /// A copy of bytes that are few: running out of memory is as fatal as for any `Vec`.
    pub(super) fn copied(bytes: &[u8]) -> Storage {
        Storage { memory: Memory::copied(bytes), bytes: bytes.len(), home: None }
    }

    /// Bytes to be overwritten: from the pool if it has a buffer of this size.
    pub(crate) fn pooled(bytes: usize, pool: &Arc<Pool>) -> Result<Storage> {
        let memory = match pool.take(Memory::size_for(bytes)) {
            Some(memory) => memory,
            None => Memory::zeroed(bytes)?,
        };
        Ok(Storage { memory, bytes, home: Some(pool.clone()) })
    }

    /// The memory of a vector, or a copy of it if it does not begin where a tensor's may.
    #[cfg(feature = "ndarray")]
    pub(crate) fn taken<T: crate::base::dtype::Element>(elements: Vec<T>) -> Result<Storage> {
        let bytes = size_of_val(&elements[..]);
        Ok(Storage { memory: Memory::taken(elements)?, bytes, home: None })
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.bytes]
    }

    /// The bytes, to be written: none of memory that was taken over.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut().get_mut(..self.bytes).unwrap_or_default()
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}
