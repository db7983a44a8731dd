//! Memory for tensors: aligned, and on huge pages if large.
//!
//! Guarantees: allocated memory is 64-byte aligned; a failed allocation is an error; adopted memory is aligned to
//! [`ADOPTED_ALIGNMENT`] and never written. Does not: know dtypes or shapes.

use memmap2::{MmapMut, MmapOptions};

#[cfg(test)]
use super::storage::Storage;
use crate::base::error::{Error, Result};
use crate::base::host::CACHE_LINE;

/// From this size on, memory is mapped separately, on huge pages where the system has them: filling fresh memory then
/// costs 1.4 times as much as filling reused memory, and 3.7 times without huge pages.
const LARGE: usize = 4 << 20;

/// The size of a huge page. Mappings are multiples of it.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes of a block of memory that its alignment may take.
const ROOM: usize = CACHE_LINE - 1;

/// Memory of the system's allocator, used from the first whole cache line on. The allocator is not asked for that alignment: with
/// glibc 2.36 a process that asks for it keeps more memory than it uses, a linear merge of models 94 to 210 MiB instead of 45.
#[derive(Default)]
struct Small {
    block: Vec<u8>,
    start: usize,
}

impl Small {
    /// The memory in a block, which is [`ROOM`] longer.
    fn new(block: Vec<u8>) -> Small {
        let start = block.as_ptr().addr().wrapping_neg() % CACHE_LINE;
        Small { block, start }
    }

    fn used(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.block.len().saturating_sub(ROOM)
    }
}

/// Owned bytes, at least as many as were requested.
pub(super) struct Memory(Kind);

enum Kind {
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
        Memory(Kind::Small(Small::default()))
    }
}

impl Memory {
    /// The size of the memory that is allocated for a request of `bytes`; the pool's key.
    pub(super) fn size_for(bytes: usize) -> usize {
        let unit = if bytes < LARGE { CACHE_LINE } else { HUGE_PAGE };
        bytes.checked_next_multiple_of(unit).unwrap_or(usize::MAX)
    }

    /// Zeroed bytes.
    pub(super) fn zeroed(bytes: usize) -> Result<Memory> {
        let size = Memory::size_for(bytes);
        let refused = || Error::OutOfMemory { bytes };
        if bytes < LARGE {
            let block = bytemuck::allocation::try_zeroed_vec(size + ROOM).map_err(|()| refused())?;
            return Ok(Memory(Kind::Small(Small::new(block))));
        }
        let map = MmapOptions::new().len(size).map_anon().map_err(|_| refused())?;
        // Only a hint: without huge pages the memory works the same, but the first use of it is slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Memory(Kind::Mapped(map)))
    }

    /// A copy of a small number of bytes: running out of memory is fatal, as for any `Vec`.
    pub(super) fn copied(bytes: &[u8]) -> Memory {
        let mut small = Small::new(vec![0; bytes.len().next_multiple_of(CACHE_LINE) + ROOM]);
        small.block[small.start..][..bytes.len()].copy_from_slice(bytes);
        Memory(Kind::Small(small))
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
            Kind::Small(s) => &s.block[s.used()],
            Kind::Mapped(map) => map,
            #[cfg(feature = "ndarray")]
            Kind::Adopted(bytes) => bytes.bytes(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Kind::Small(s) => {
                let used = s.used();
                &mut s.block[used]
            }
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
