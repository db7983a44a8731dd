//! Operands that are in no memory as they are read: generators, and blocks, of which one element of a smaller operand stands for many.
//!
//! Guarantees: an element depends on its position alone. Does not: decide which positions are read; the geometry does.

use super::gather::fill;
use super::job::Buffer;
use crate::base::blocks::BlockSize;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::kernels::generate::Filler;

/// What makes an operand's elements.
pub(crate) enum Made<'a> {
    Generator(Filler),
    Blocks(Blocks<'a>),
}

/// Blocks of a shape: its extents, the sizes of blocks, and the scale with its strides.
pub(crate) struct Blocks<'a> {
    shape: Vec<usize>,
    sizes: Vec<usize>,
    scale: Buffer<'a>,
    strides: Vec<isize>,
}

impl<'a> Blocks<'a> {
    /// Blocks of this shape. Error: the scale has not an element for each block, or its memory does not.
    pub(crate) fn new(
        shape: &[usize],
        size: &BlockSize,
        scale: Buffer<'a>,
        of: (&[usize], &[isize]),
    ) -> Result<Blocks<'a>> {
        let (extents, strides) = of;
        for (d, (s, l)) in extents.iter().zip(shape).enumerate() {
            size.check_dim(d, *s, *l).map_err(|d| Error::Shape(d.message.to_string()))?;
        }
        let reach = |end: fn(i128) -> i128| -> i128 {
            extents.iter().zip(strides).map(|(n, s)| end((*n as i128 - 1).max(0) * *s as i128)).sum()
        };
        if !extents.contains(&0) {
            scale.check((reach(|r| r.min(0)), reach(|r| r.max(0))))?;
        }
        let sizes = (0..shape.len()).map(|d| size.along(d)).collect();
        Ok(Blocks { shape: shape.to_vec(), sizes, scale, strides: strides.to_vec() })
    }

    /// Writes `n` elements from the position `first` on, block by block along the last dim.
    ///
    /// # Safety
    /// The positions must be of the shape, and `out` writable for `n` elements.
    unsafe fn fill(&self, first: u64, n: usize, out: *mut u8) {
        let (dtype, size) = (self.scale.dtype, self.scale.dtype.size());
        let last = self.shape.len().saturating_sub(1);
        let dim = |d: usize| match self.shape.get(d) {
            Some(n) => (*n, self.sizes[d], self.strides[d]),
            None => (1, 1, 0),
        };
        let (columns, wide, step) = dim(last);
        let (mut done, mut column, mut row) = (0, first as usize % columns, first as usize / columns);
        while done < n {
            let (mut rest, mut at) = (row, self.scale.offset as isize);
            for d in (0..last).rev() {
                let (extent, block, stride) = dim(d);
                at += (rest % extent / block) as isize * stride;
                rest /= extent;
            }
            while done < n && column < columns {
                let block = column / wide;
                let length = ((block + 1).saturating_mul(wide).min(columns) - column).min(n - done);
                // SAFETY: the block is one of the scale, whose elements are in its memory; `done + length` is at most `n`.
                unsafe {
                    let from = self.scale.start().offset((at + block as isize * step) * size as isize);
                    fill(from, dtype, length, out.add(done * size));
                }
                (done, column) = (done + length, column + length);
            }
            (column, row) = (0, row + 1);
        }
    }
}

impl Made<'_> {
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Made::Generator(filler) => filler.dtype(),
            Made::Blocks(blocks) => blocks.scale.dtype,
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
