//! What describes a run of a scheduled kernel: operands, results, reductions, and what the threads share.
//!
//! Guarantees: [`Buffer::check`] accepts no walk that leaves its bytes. Does not: run anything.

use crate::backend::abi::SegmentFn;
use crate::base::cancel::Stop;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::scalar::Bits;
use crate::kernels::reduce::Part;
use crate::kernels::{BlockFn, Refusal};
use crate::plan::geometry::{Access, Fold, Geometry, Operand};
use crate::plan::schedule::Schedule;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// An operand's memory: bytes, and where its first element is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) dtype: DType,
    /// Index of the first element.
    pub(crate) offset: usize,
}

impl Buffer<'_> {
    /// Proves that walking so far before and behind the first element stays inside the bytes.
    pub(crate) fn check(&self, reach: (i128, i128)) -> Result<()> {
        let first = self.offset as i128;
        let elements = (self.bytes.len() / self.dtype.size()) as i128;
        if first + reach.0 >= 0 && first + reach.1 < elements {
            return Ok(());
        }
        Err(Error::Internal(format!("an operand of {} would be read outside its buffer", self.dtype)))
    }

    /// Whether the bytes begin where an element may. Borrowed ones are aligned no better than that, complex ones as their
    /// parts.
    pub(super) fn is_aligned(&self) -> bool {
        self.bytes.as_ptr().addr().is_multiple_of(self.dtype.real().size().min(align_of::<u64>()))
    }

    /// Aligned memory with a copy of what the walk of a [checked](Buffer::check) operand can reach, and where the first
    /// element is there.
    pub(super) fn copied(&self, reach: (i128, i128)) -> Result<(Vec<u128>, usize)> {
        let size = self.dtype.size();
        let (first, end) = (self.offset as i128 + reach.0, self.offset as i128 + reach.1 + 1);
        let reached = self.bytes.get(first as usize * size..end as usize * size).unwrap_or_default();
        let (mut words, count) = (Vec::new(), reached.len().div_ceil(size_of::<u128>()));
        words.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes: reached.len() })?;
        words.resize(count, 0);
        bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..reached.len()].copy_from_slice(reached);
        Ok((words, -reach.0 as usize))
    }
}

/// Everything a run needs.
pub(crate) struct Launch<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) segments: &'a [SegmentFn],
    /// Whether the segments take any number of elements.
    pub(crate) any_length: bool,
    pub(crate) geometry: &'a Geometry,
    pub(crate) consts: &'a [Bits],
    pub(crate) inputs: &'a [Buffer<'a>],
    /// What can stop the run; asked between pieces of the work.
    pub(crate) stop: Option<&'a Stop<'a>>,
}

/// Whether this is the first byte of a cache line.
pub(super) fn begins_line(at: *const u8) -> bool {
    at.addr().is_multiple_of(64)
}

/// A result's memory: contiguous, one element for each of the domain.
pub(crate) struct Output<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) dtype: DType,
}

/// What a reduction is made with over one domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoldKernels {
    /// Makes a partial result.
    pub(super) f: BlockFn,
    /// Combines the elements of a tile with those of the tiles before it.
    pub(super) tile: BlockFn,
    /// Makes a partial result in one.
    pub(super) whole: BlockFn,
}

impl FoldKernels {
    /// Those for a domain, of all that `find` finds.
    pub(crate) fn new(geometry: &Geometry, find: impl Fn(Part) -> Option<BlockFn>) -> Option<FoldKernels> {
        let (f, tile, whole) = match geometry.fold {
            Some(Fold::Columns(_)) => (Part::Rows, Part::Lanes, Part::Columns),
            Some(Fold::Stacked { .. }) => (Part::Stack, Part::Lanes, Part::Whole),
            Some(Fold::Rows(n)) if n < geometry.run => (Part::Short, Part::Lanes, Part::Whole),
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

/// The step that found its data faulty.
#[derive(Debug)]
pub(crate) struct StepFailure {
    pub(crate) step: u32,
    /// What a function of the user's said when it panicked.
    pub(crate) said: Refusal,
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
    /// What combining nothing gives.
    pub(super) nothing: Bits,
}

/// What the threads share.
pub(super) struct Job<'a> {
    pub(super) launch: &'a Launch<'a>,
    pub(super) outputs: &'a [Out],
    pub(super) folds: &'a [FoldOut],
    /// Whether segments stream results that begin at cache lines.
    pub(super) stream: bool,
    /// The first faulty step by program order, and where in the work it was: the fault is the same for any number of threads.
    pub(super) fault: Mutex<Option<(usize, StepFailure)>>,
    /// Whether a thread left work undone because it was told to stop.
    pub(super) stopped: AtomicBool,
}

/// Whether each tile of an operand is copied.
pub(super) fn is_copied(o: &Operand) -> bool {
    matches!(o.access, Access::Gather(..))
}

/// Whether an operand's neighbours along the run are far from each other, but not those of neighbouring rows.
pub(super) fn is_across(o: &Operand) -> bool {
    match &o.access {
        Access::Gather(_, strides) if strides.len() == 1 => {
            o.rows.last().is_some_and(|r| *r != 0 && r.unsigned_abs() < strides[0].unsigned_abs())
        }
        _ => false,
    }
}
