//! Owned bytes of tensors, which return to the pool when dropped.
//!
//! Does not: allocate memory from the system; that is `memory`.

use super::memory::Memory;
use super::pool::{Heap, Pool};
use crate::base::error::Result;
use std::sync::Arc;

/// Owned, aligned bytes, which return to the heap that they are of when dropped.
pub(crate) struct Storage {
    memory: Memory,
    pub(super) bytes: usize,
    heap: Option<Arc<Heap>>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(heap) = &self.heap {
            heap.put(std::mem::take(&mut self.memory));
        }
    }
}

impl Storage {
    /// Zeroed bytes.
    pub(crate) fn zeroed(bytes: usize) -> Result<Storage> {
        Ok(Storage { memory: Memory::zeroed(bytes)?, bytes, heap: None })
    }

    /// A copy of a small number of bytes: running out of memory is fatal, as for any `Vec`.
    pub(super) fn copied(bytes: &[u8]) -> Storage {
        Storage { memory: Memory::copied(bytes), bytes: bytes.len(), heap: None }
    }

    /// Bytes with arbitrary contents, to be overwritten: from the pool if it has a buffer of this size.
    pub(crate) fn pooled(bytes: usize, pool: &Pool) -> Result<Storage> {
        let size = Memory::size_for(bytes);
        let heap = pool.heap(size);
        let memory = match heap.take(size) {
            Some(memory) => memory,
            None => Memory::zeroed(bytes)?,
        };
        Ok(Storage { memory, bytes, heap: Some(heap.clone()) })
    }

    /// The memory of a vector, or a copy of it if its alignment is too small for a tensor.
    #[cfg(feature = "ndarray")]
    pub(crate) fn adopted<T: crate::base::dtype::Element>(elements: Vec<T>) -> Result<Storage> {
        let bytes = size_of_val(&elements[..]);
        Ok(Storage { memory: Memory::adopted(elements)?, bytes, heap: None })
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
