//! An operand of a launch: elements in memory, or what makes them.
//!
//! Does not: read or make elements.

use crate::runtime::driver::job::Buffer;
use crate::runtime::driver::made::Made;
use crate::tensor::TensorRef;
use crate::tensor::layout::Layout;
use std::sync::Arc;

/// An operand of a launch.
pub(super) enum Operand<'a> {
    Tensor(TensorRef<'a>),
    /// Elements that are made, under a contiguous layout.
    Made(Made<'a>, Arc<Layout>),
    /// Elements of another operand, so many behind its first one, under this layout.
    Part(&'a Operand<'a>, isize, &'a Arc<Layout>),
}

impl Operand<'_> {
    pub(super) fn layout(&self) -> &Arc<Layout> {
        match self {
            Operand::Tensor(t) => t.layout(),
            Operand::Made(_, layout) => layout,
            Operand::Part(_, _, layout) => layout,
        }
    }

    pub(super) fn shape(&self) -> &[usize] {
        self.layout().shape()
    }

    pub(super) fn strides(&self) -> &[isize] {
        self.layout().strides()
    }

    /// The operand as the driver wants it.
    #[inline]
    pub(super) fn buffer(&self) -> Buffer<'_> {
        match self {
            Operand::Tensor(t) => buffer(*t),
            Operand::Made(made, _) => Buffer::made(made),
            Operand::Part(of, skip, _) => of.buffer().skipped(*skip),
        }
    }
}

/// A tensor as the driver wants it.
#[inline]
pub(super) fn buffer(t: TensorRef<'_>) -> Buffer<'_> {
    let (bytes, offset) = t.raw();
    Buffer::new(bytes, t.dtype(), offset)
}
