//! The bytes under tensors: aligned, shared, and large ones on large pages.
//!
//! Guarantees: the start is 64-byte aligned; memory that the system refuses is an error; a buffer goes back to its
//! pool when its last tensor is dropped. What is taken over from somebody else is aligned as well as [`TAKEN`] says, and
//! never written to. Does not: know dtypes or shapes.

use memmap2::{MmapMut, MmapOptions};

#[cfg(test)]
use super::storage::Storage;
use crate::base::error::{Error, Result};

/// From this size on, memory is mapped by itself and on huge pages where the system has them: filling fresh memory
/// then costs 1.4 times what reused memory does, and 3.7 times otherwise.
const LARGE: usize = 4 << 20;

/// The size of a huge page: mappings are multiples of it.
const HUGE_PAGE: usize = 2 << 20;

/// One cache line: what small buffers are made of, so that their start is aligned.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Owned bytes, at least as many as were asked for.
pub(super) struct Memory(Kind);

enum Kind {
    Lines(Vec<Line>),
    Mapped(MmapMut),
    #[cfg(feature = "ndarray")]
    Taken(Box<dyn Bytes>),
}

/// Memory that somebody else has made.
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

/// What the start of memory that is taken over must be a multiple of: the widest element's size.
#[cfg(feature = "ndarray")]
const TAKEN: usize = 16;

impl Default for Memory {
    fn default() -> Memory {
        Memory(Kind::Lines(Vec::new()))
    }
}

impl Memory {
    /// The size of the memory that is made for so many bytes: what a pool sorts by.
    pub(super) fn size_for(bytes: usize) -> usize {
        let unit = if bytes < LARGE { 64 } else { HUGE_PAGE };
        bytes.checked_next_multiple_of(unit).unwrap_or(usize::MAX)
    }

    /// Zeroed bytes.
    pub(super) fn zeroed(bytes: usize) -> Result<Memory> {
        let size = Memory::size_for(bytes);
        let refused = || Error::OutOfMemory { bytes };
        if bytes < LARGE {
            let lines = bytemuck::allocation::try_zeroed_vec(size / 64).map_err(|()| refused())?;
            return Ok(Memory(Kind::Lines(lines)));
        }
        let map = MmapOptions::new().len(size).map_anon().map_err(|_| refused())?;
        // A wish: without huge pages the memory is as good, only slower at first.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Memory(Kind::Mapped(map)))
    }

    /// A copy of bytes that are few: running out of memory is as fatal as for any `Vec`.
    pub(super) fn copied(bytes: &[u8]) -> Memory {
        let mut lines = vec![Line([0; 64]); bytes.len().div_ceil(64)];
        bytemuck::cast_slice_mut(&mut lines)[..bytes.len()].copy_from_slice(bytes);
        Memory(Kind::Lines(lines))
    }

    /// The memory of a vector, or a copy of it if it does not begin where a tensor's may.
    #[cfg(feature = "ndarray")]
    pub(super) fn taken<T: crate::base::dtype::Element>(elements: Vec<T>) -> Result<Memory> {
        if elements.as_ptr().addr().is_multiple_of(TAKEN) {
            return Ok(Memory(Kind::Taken(Box::new(elements))));
        }
        let bytes: &[u8] = bytemuck::cast_slice(&elements);
        let mut copy = Memory::zeroed(bytes.len())?;
        copy.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(copy)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.0 {
            Kind::Lines(lines) => bytemuck::cast_slice(lines),
            Kind::Mapped(map) => map,
            #[cfg(feature = "ndarray")]
            Kind::Taken(bytes) => bytes.bytes(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Kind::Lines(lines) => bytemuck::cast_slice_mut(lines),
            Kind::Mapped(map) => map,
            #[cfg(feature = "ndarray")]
            Kind::Taken(_) => &mut [],
        }
    }

    /// The number of bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes().len()
    }
}

#[cfg(test)]
mod tests;
