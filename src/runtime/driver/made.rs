//! Operands that are in no memory as they are read: generators, and blocks, of which one element of a smaller operand is many elements.
//!
//! Guarantees: an element depends on its position alone. Does not: decide which positions are read; the geometry does.

use super::gather::Strided;
use crate::base::blocks::BlockSize;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::kernels::generate::Filler;
use crate::kernels::{BlockFn, CpuLevel, operands, repeat_kernel};

/// What makes an operand's elements.
pub(crate) enum Made<'a> {
    Generator(Filler),
    Blocks(Blocks<'a>),
}

/// Blocks of a shape: its extents, the sizes of blocks, and the scale with its strides.
pub(crate) struct Blocks<'a> {
    shape: Vec<usize>,
    sizes: Vec<usize>,
    bytes: &'a [u8],
    dtype: DType,
    /// Index of the scale's first element.
    offset: usize,
    strides: Vec<isize>,
    /// Writes elements of blocks.
    repeat: BlockFn,
}

impl<'a> Blocks<'a> {
    /// Blocks of this shape: of a scale in these bytes, from the element `offset` on, with these extents and strides. Error: it has not an element
    /// for each block, or its memory has not.
    pub(crate) fn new(
        shape: &[usize],
        size: &BlockSize,
        (bytes, dtype, offset): (&'a [u8], DType, usize),
        (extents, strides): (&[usize], &[isize]),
    ) -> Result<Blocks<'a>> {
        for (d, (s, l)) in extents.iter().zip(shape).enumerate() {
            size.check_dim(d, *s, *l).map_err(|d| Error::Shape(d.message.to_string()))?;
        }
        let reach = |end: fn(i128) -> i128| -> i128 {
            extents.iter().zip(strides).map(|(n, s)| end((*n as i128 - 1) * *s as i128)).sum()
        };
        let (first, elements) = (offset as i128, (bytes.len() / dtype.size()) as i128);
        let inside = first + reach(|r| r.min(0)) >= 0 && first + reach(|r| r.max(0)) < elements;
        if extents.len() != shape.len() || !extents.contains(&0) && !inside {
            return Err(Error::Internal(format!("a scale of {dtype} would be read outside its buffer")));
        }
        let sizes = (0..shape.len()).map(|d| size.along(d)).collect();
        let repeat = repeat_kernel(dtype.size(), CpuLevel::get());
        Ok(Blocks { shape: shape.to_vec(), sizes, bytes, dtype, offset, strides: strides.to_vec(), repeat })
    }

    /// Writes `n` elements from the position `first` on, row by row along the last dim.
    ///
    /// # Safety
    /// The positions must be of the shape, and `out` writable for `n` elements.
    unsafe fn fill(&self, first: u64, n: usize, out: *mut u8) {
        let size = self.dtype.size();
        let last = self.shape.len().saturating_sub(1);
        let dim = |d: usize| match self.shape.get(d) {
            Some(n) => (*n, self.sizes[d], self.strides[d]),
            None => (1, 1, 0),
        };
        let (columns, wide, step) = dim(last);
        let (mut done, mut column, mut row) = (0, first as usize % columns, first as usize / columns);
        while done < n {
            let (mut rest, mut at) = (row, self.offset as isize);
            for d in (0..last).rev() {
                let (extent, block, stride) = dim(d);
                at += (rest % extent / block) as isize * stride;
                rest /= extent;
            }
            let (length, block) = ((columns - column).min(n - done), column / wide);
            // SAFETY: the blocks of a row, from this one on, are of the scale, whose elements are in its memory; `done + length` is at
            // most `n`.
            unsafe {
                let from = self.bytes.as_ptr().offset((at + block as isize * step) * size as isize);
                let numbers = [(step * size as isize) as usize, wide, wide - column % wide];
                let [step, wide, left] = numbers.map(std::ptr::without_provenance);
                (self.repeat)(operands([from, step, wide, left]), out.add(done * size), length);
            }
            (done, column, row) = (done + length, 0, row + 1);
        }
    }
}

impl Made<'_> {
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Made::Generator(filler) => filler.dtype(),
            Made::Blocks(blocks) => blocks.dtype,
        }
    }

    /// Makes `n` elements from the position `first` on, in row-major order of the operand's shape.
    ///
    /// # Safety
    /// The positions must be of the shape, and `out` writable for `n` elements of the dtype.
    pub(super) unsafe fn fill(&self, first: u64, n: usize, out: *mut u8) {
        // SAFETY: passed on.
        unsafe {
            match self {
                Made::Generator(filler) => filler.fill(first, n, out),
                Made::Blocks(blocks) => blocks.fill(first, n, out),
            }
        }
    }
}

/// Makes elements `start..start + n`, counted row-major, at `out`: each from its position, which is its address divided by the size of an
/// element. Contiguous positions are made together.
///
/// # Safety
/// The positions must be of the operand's shape, and `out` writable for `n` elements.
pub(crate) unsafe fn make(made: &Made<'_>, from: Strided<'_>, start: usize, n: usize, out: *mut u8) {
    let size = made.dtype().size();
    let (columns, step) = from.extents.last().zip(from.strides.last()).map_or((1, 1), |(n, s)| (*n, *s));
    let outer = &from.extents[..from.extents.len().saturating_sub(1)];
    let mut done = 0;
    while done < n {
        let (mut rest, column) = ((start + done) / columns, (start + done) % columns);
        let mut first = (from.base.addr() / size) as isize + column as isize * step;
        for (extent, stride) in outer.iter().zip(from.strides).rev() {
            first += (rest % extent) as isize * stride;
            rest /= extent;
        }
        let length = (columns - column).min(n - done);
        // SAFETY: `done + length` is at most `n`.
        unsafe {
            if step == 1 {
                made.fill(first as u64, length, out.add(done * size));
            } else {
                for i in 0..length {
                    made.fill((first + i as isize * step) as u64, 1, out.add((done + i) * size));
                }
            }
        }
        done += length;
    }
}
