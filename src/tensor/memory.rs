//! Memory for tensors: aligned, and on huge pages if large.
//!
//! Guarantees: allocated memory is 64-byte aligned; a failed allocation is an error; adopted memory is aligned to
//! [`ADOPTED_ALIGNMENT`] and never written. Does not: know dtypes or shapes.

use memmap2::{MmapMut, MmapOptions};

#[cfg(test)]
use super::storage::Storage;
use crate::base::error::{Error, Result};

/// From this size on, memory is mapped separately, on huge pages where the system has them: filling fresh memory then
/// costs 1.4 times as much as filling reused memory, and 3.7 times without huge pages.
const LARGE: usize = 4 << 20;

/// The size of a huge page. Mappings are multiples of it.
const HUGE_PAGE: usize = 2 << 20;

/// The alignment of allocated memory: a cache line.
const LINE: usize = 64;

/// Bytes of the system's allocator, from the first whole cache line on. The allocator is not asked for that alignment: with glibc
/// 2.36 a process that asks for it keeps more memory than it uses, a merge of a model two to three times as much.
struct Small {
    block: Vec<u8>,
    start: usize,
    size: usize,
}

impl Small {
    /// Bytes of a block that has room for them and for their alignment.
    fn new(block: Vec<u8>, size: usize) -> Small {
        let start = block.as_ptr().addr().wrapping_neg() % LINE;
        Small { block, start, size }
    }

    /// The length of a block for so many bytes.
    fn block(size: usize) -> usize {
        size + LINE - 1
    }
}

/// No bytes, which are aligned too.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

/// Owned bytes, at least as many as were requested.
pub(super) struct Memory(Kind);

enum Kind {
    Empty,
    Small(Small),
    Mapped(MmapMut),
    #[cfg(feature = "ndarray")]
    Adopted(Box<dyn Bytes>),
}

/// Memory that was allocated elsewhere.
#[cfg(feature = "ndarray")]
trait Bytes: Send + Sync {
    fn bytes(&self) -> &[u8];
}

#[cfg(feature = "ndarray")]
impl<T: crate::base::dtype::Element> Bytes for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

/// The required alignment of adopted memory: the size of the widest element.
#[cfg(feature = "ndarray")]
const ADOPTED_ALIGNMENT: usize = 16;

impl Default for Memory {
    fn default() -> Memory {
        Memory(Kind::Empty)
    }
}

impl Memory {
    /// The size of the memory that is allocated for a request of `bytes`; the pool's key.
    pub(super) fn size_for(bytes: usize) -> usize {
        let unit = if bytes < LARGE { LINE } else { HUGE_PAGE };
        bytes.checked_next_multiple_of(unit).unwrap_or(usize::MAX)
    }

    /// Zeroed bytes.
    pub(super) fn zeroed(bytes: usize) -> Result<Memory> {
        let size = Memory::size_for(bytes);
        let refused = || Error::OutOfMemory { bytes };
        if bytes == 0 {
            return Ok(Memory(Kind::Empty));
        }
        if bytes < LARGE {
            let block = bytemuck::allocation::try_zeroed_vec(Small::block(size)).map_err(|()| refused())?;
            return Ok(Memory(Kind::Small(Small::new(block, size))));
        }
        let map = MmapOptions::new().len(size).map_anon().map_err(|_| refused())?;
        // Only a hint: without huge pages the memory works the same, but the first use of it is slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Memory(Kind::Mapped(map)))
    }

    /// A copy of a small number of bytes: running out of memory is fatal, as for any `Vec`.
    pub(super) fn copied(bytes: &[u8]) -> Memory {
        let size = bytes.len().next_multiple_of(LINE);
        let mut memory = Memory(Kind::Small(Small::new(vec![0; Small::block(size)], size)));
        memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        memory
    }

    /// The memory of a vector, or a copy of it if its alignment is too small for a tensor.
    #[cfg(feature = "ndarray")]
    pub(super) fn adopted<T: crate::base::dtype::Element>(elements: Vec<T>) -> Result<Memory> {
        if elements.as_ptr().addr().is_multiple_of(ADOPTED_ALIGNMENT) {
            return Ok(Memory(Kind::Adopted(Box::new(elements))));
        }
        let bytes: &[u8] = bytemuck::cast_slice(&elements);
        let mut copy = Memory::zeroed(bytes.len())?;
        copy.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(copy)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.0 {
            Kind::Empty => bytemuck::cast_slice::<Line, u8>(&[]),
            Kind::Small(s) => &s.block[s.start..s.start + s.size],
            Kind::Mapped(map) => map,
            #[cfg(feature = "ndarray")]
            Kind::Adopted(bytes) => bytes.bytes(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Kind::Empty => bytemuck::cast_slice_mut::<Line, u8>(&mut []),
            Kind::Small(s) => &mut s.block[s.start..s.start + s.size],
            Kind::Mapped(map) => map,
            #[cfg(feature = "ndarray")]
            Kind::Adopted(_) => &mut [],
        }
    }

    /// The number of bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes().len()
    }
}

#[cfg(test)]
mod tests;
