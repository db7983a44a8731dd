//! What describes a launch of a scheduled kernel: operands, results, reductions, and what its threads share.
//!
//! Guarantees: [`Buffer::check`] accepts no reach that leaves its bytes. Does not: run anything.

use super::gather::fill;
use super::made::Made;
use crate::backend::abi::{SegmentFn, WIDTH};
use crate::base::cancel::Stop;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::host::CACHE_LINE;
use crate::base::room::list;
use crate::base::scalar::Bits;
use crate::kernels::reduce::Part;
use crate::kernels::{BlockFn, Refusal};
use crate::plan::geometry::{Fold, Geometry};
use crate::plan::schedule::Schedule;
use crate::plan::strategy::{RowFold, Strategy, Walk, choose};
use crate::plan::tuning::LED;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// An operand's memory: bytes, and where its first element is; or what makes its elements.
#[derive(Clone, Copy)]
pub(crate) struct Buffer<'a> {
    /// The address that element 0 has. A pointer, because the bytes may be those of a result.
    pub(super) start: *const u8,
    pub(super) len: usize,
    pub(crate) dtype: DType,
    /// Index of the first element.
    pub(super) offset: usize,
    /// What makes the elements, if there are no bytes: the address of each is then its position times the size of an element.
    pub(super) made: Option<&'a Made<'a>>,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Buffer<'a> {
    /// An operand in memory, whose first element has this index.
    pub(crate) fn new(bytes: &'a [u8], dtype: DType, offset: usize) -> Buffer<'a> {
        Buffer { start: bytes.as_ptr(), len: bytes.len(), dtype, offset, made: None, bytes: PhantomData }
    }

    /// An operand whose elements are made.
    pub(crate) fn made(made: &'a Made<'a>) -> Buffer<'a> {
        let (start, dtype) = (std::ptr::null(), made.dtype());
        Buffer { start, len: 0, dtype, offset: 0, made: Some(made), bytes: PhantomData }
    }

    /// An operand in the memory of a result, which has the element of each index where the result has it. The launch must read
    /// each element before it writes it, and may read it for no other one.
    pub(crate) fn over(output: &Output<'a>) -> Buffer<'a> {
        let Output { start, len, dtype, .. } = *output;
        Buffer { start, len, dtype, offset: 0, made: None, bytes: PhantomData }
    }
}

impl Buffer<'_> {
    /// The operand that begins so many elements behind this one. (One before the bytes is refused by [`check`](Buffer::check).)
    pub(crate) fn skipped(mut self, elements: isize) -> Self {
        self.offset = self.offset.wrapping_add_signed(elements);
        self
    }

    /// Proves that elements so far before and behind the first one are inside the bytes.
    pub(crate) fn check(&self, reach: (i128, i128)) -> Result<()> {
        if self.made.is_some() {
            return Ok(());
        }
        let first = self.offset as i128;
        let elements = (self.len / self.dtype.size()) as i128;
        if first + reach.0 >= 0 && first + reach.1 < elements {
            return Ok(());
        }
        Err(Error::Internal(format!("an operand of {} would be read outside its buffer", self.dtype)))
    }

    /// Which of the bytes a [checked](Buffer::check) operand's accesses reach.
    fn reached(&self, reach: (i128, i128)) -> Range<usize> {
        let byte = |element: i128| (self.offset as i128 + element) as usize * self.dtype.size();
        byte(reach.0)..byte(reach.1 + 1)
    }

    /// The addresses of these bytes: none, if the elements are made.
    pub(super) fn addresses(&self, reach: (i128, i128)) -> Range<usize> {
        if self.made.is_some() {
            return 0..0;
        }
        let (start, bytes) = (self.start.addr(), self.reached(reach));
        start + bytes.start..start + bytes.end
    }

    /// Whether the bytes begin where an element may. (Borrowed bytes may not; complex elements are aligned as their parts.)
    pub(super) fn is_aligned(&self) -> bool {
        self.start.addr().is_multiple_of(self.dtype.real().size().min(align_of::<u64>()))
    }

    /// Aligned memory with a copy of what a [checked](Buffer::check) operand's accesses reach, and the index of the first
    /// element in it.
    pub(super) fn copied(&self, reach: (i128, i128)) -> Result<(Vec<u128>, usize)> {
        let bytes = if self.made.is_some() {
            &[]
        } else {
            // SAFETY: the bytes of `new`, which are borrowed for `'a`, or of `over`: nothing writes to these before the launch
            // begins, and operands are copied before that.
            unsafe { std::slice::from_raw_parts(self.start, self.len) }
        };
        let reached = bytes.get(self.reached(reach)).unwrap_or_default();
        let mut words = list(reached.len().div_ceil(size_of::<u128>()))?;
        bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..reached.len()].copy_from_slice(reached);
        Ok((words, -reach.0 as usize))
    }
}

/// Everything that a launch needs, except where its results go.
pub(crate) struct Launch<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) segments: &'a [SegmentFn],
    pub(crate) geometry: &'a Geometry,
    pub(crate) strategy: &'a Strategy,
    pub(crate) consts: &'a [Bits],
    pub(crate) inputs: &'a [Buffer<'a>],
    /// What can stop the launch; checked between units of the work.
    pub(crate) stop: Option<&'a Stop<'a>>,
    /// Whether results are streamed, if that is decided for several launches together.
    pub(crate) stream: Option<bool>,
}

/// The strategy of launches with these segments.
pub(crate) fn strategy(schedule: &Schedule, segments: &[SegmentFn], geometry: &Geometry) -> Strategy {
    choose(schedule, geometry, if segments.iter().all(|s| s.any_length) { 1 } else { WIDTH })
}

/// Whether this is the first byte of a cache line.
pub(super) fn begins_cache_line(at: *const u8) -> bool {
    at.addr().is_multiple_of(CACHE_LINE)
}

/// Elements up to the first cache line of the results, of `n` from element `at` on. Segments that compute them in place take these in a call
/// of their own, if the others are many; the bits are the same.
pub(super) fn lead(outputs: &[Out], strategy: &Strategy, at: usize, n: usize) -> usize {
    let in_place = matches!(strategy.walk, Walk::Call | Walk::Ranges) && strategy.fold == RowFold::None;
    let pays = in_place && strategy.multiple == 1 && n >= LED;
    let Some(out) = outputs.first().filter(|_| pays) else { return 0 };
    let (size, address) = (out.dtype.size(), out.start.addr() + at * out.dtype.size());
    (address.next_multiple_of(CACHE_LINE) - address) / size
}

/// Orders what a thread has streamed before what it writes from now on, so that a thread that waits for it sees the results.
/// Once for each part of the work, since it waits for memory.
pub(super) fn store_fence() {
    // SAFETY: every processor of this architecture has the instruction, and it accesses no memory.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// A result's memory: contiguous, one element for each of the domain.
pub(crate) struct Output<'a> {
    /// The one pointer by which the bytes are written, and read if an operand is in them.
    pub(super) start: *mut u8,
    pub(super) len: usize,
    pub(crate) dtype: DType,
    bytes: PhantomData<&'a mut [u8]>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(bytes: &'a mut [u8], dtype: DType) -> Output<'a> {
        Output { start: bytes.as_mut_ptr(), len: bytes.len(), dtype, bytes: PhantomData }
    }
}

/// The kernels of a reduction over one domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoldKernels {
    /// Makes partial results of lanes, short rows, two rows, or stacked rows, as the domain needs.
    pub(super) f: BlockFn,
    /// Combines the elements of a tile with the lanes of the tiles before it.
    pub(super) tile: BlockFn,
    /// Makes a partial result of all its elements, or a partial row of all its rows, in one call.
    pub(super) whole: BlockFn,
}

impl FoldKernels {
    /// The kernels for a domain; `find` looks one up.
    pub(crate) fn new(geometry: &Geometry, find: impl Fn(Part) -> Option<BlockFn>) -> Option<FoldKernels> {
        let (f, tile, whole) = match geometry.fold {
            Some(Fold::Columns(_)) => (Part::Rows, Part::Lanes, Part::Columns),
            Some(Fold::Stacked { .. }) => (Part::Stack, Part::Lanes, Part::Whole),
            Some(Fold::Rows(n)) if n < geometry.inner => (Part::Short, Part::Lanes, Part::Whole),
            _ => (Part::Halves, Part::Lanes, Part::Whole),
        };
        Some(FoldKernels { f: find(f)?, tile: find(tile)?, whole: find(whole)? })
    }
}

/// A reduction's partial results.
pub(crate) struct Folded<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) dtype: DType,
    pub(crate) kernels: FoldKernels,
}

/// The step that refused its data.
#[derive(Debug)]
pub(crate) struct StepFailure {
    pub(crate) step: u32,
    /// The message of a user's function that panicked.
    pub(crate) refusal: Refusal,
}

/// Where results go. The threads of a job write disjoint parts.
#[derive(Clone, Copy)]
pub(super) struct Out {
    pub(super) start: *mut u8,
    pub(super) dtype: DType,
}

/// A reduction as the threads see it.
#[derive(Clone, Copy)]
pub(super) struct FoldOut {
    pub(super) start: *mut u8,
    pub(super) dtype: DType,
    pub(super) kernels: FoldKernels,
    /// The result of an empty reduction.
    pub(super) nothing: Bits,
}

impl FoldOut {
    /// Writes `n` results of an empty reduction, from which a reduction begins.
    ///
    /// # Safety
    /// There must be room for `n` elements.
    pub(super) unsafe fn begin(&self, n: usize, to: *mut u8) {
        // SAFETY: the source is one element; passed on.
        unsafe { fill((&raw const self.nothing).cast(), self.dtype, n, to) };
    }
}

/// What the threads share.
pub(super) struct Job<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) outputs: &'a [Out],
    pub(super) folds: &'a [FoldOut],
    /// Whether segments stream results that begin at cache lines.
    pub(super) stream: bool,
    /// The first failure in program order, and the first unit of the part that met it: the failure does not depend on the number of
    /// threads.
    pub(super) fault: Mutex<Option<(usize, StepFailure)>>,
    /// Whether a thread left units undone because it was told to stop.
    pub(super) stopped: AtomicBool,
}
