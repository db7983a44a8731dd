//! A program's fetches made ready: a call looks nothing up by name or program.
//!
//! Guarantees: as [`Executor::run`](super::Executor::run)'s; later changes of the program do not matter; feeds of the
//! same dtypes and layouts as in the last call are bound, planned and aimed by comparing those alone. Does not: hold
//! tensors between calls.

use std::sync::Arc;

use super::feeds::{InOrder, name_of};
use super::session::{Core, Inner};
use crate::base::cancel::CancelToken;
use crate::base::error::{Error, Result};
use crate::graph::typed::{NodeId, TypedProgram};
use crate::tensor::{Tensor, TensorRef, TensorView};

/// Fetches of a program that are ready to be computed. Made by [`Executor::prepare`](super::Executor::prepare), which
/// has an example; can be called from many threads.
pub struct Prepared {
    pub(super) inner: Arc<Inner>,
    core: Core,
}

impl Prepared {
    pub(super) fn new(inner: Arc<Inner>, typed: Arc<TypedProgram>, nodes: Vec<NodeId>) -> Prepared {
        Prepared { inner, core: Core::new(typed, nodes) }
    }

    /// The names of the program's placeholders, in the order in which [`run`](Prepared::run) wants their tensors:
    /// that of the program.
    pub fn feed_names(&self) -> impl Iterator<Item = &str> {
        self.core.typed.feeds.iter().map(|n| name_of(&self.core.typed, *n))
    }

    /// Computes the fetches from a tensor for each placeholder, in program order. Errors: another number of feeds
    /// than placeholders; a feed of another dtype, rank or extent than declared; division of integers by zero.
    pub fn run(&self, feeds: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.core.run(&self.inner, &self.tensors(feeds)?, None)
    }

    /// [`run`](Prepared::run) with borrowed elements, which are read where they are.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let (a, b) = (p.data("a", DType::F32, [None]), p.data("b", DType::I32, [None]));
    /// let step = Executor::new().prepare(&p, [&(&a + &b)])?;
    /// let (offsets, mut out) = (Tensor::from([10i32, 20]), [Tensor::zeros(DType::F32, [2])?]);
    /// let mut samples = vec![1.0f32, 2.0];
    /// for _ in 0..3 {
    ///     let feeds = [TensorView::from_slice(&samples, [2])?, TensorView::from(&offsets)];
    ///     step.run_views_into(&feeds, &mut out)?;
    ///     samples.copy_from_slice(out[0].as_slice()?);
    /// }
    /// assert_eq!(samples, [31.0, 62.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn run_views(&self, feeds: &[TensorView<'_>]) -> Result<Vec<Tensor>> {
        self.core.run(&self.inner, &self.views(feeds)?, None)
    }

    /// [`run`](Prepared::run) that the token can stop, as [`Executor::run_with`](super::Executor::run_with).
    pub fn run_with(&self, feeds: &[&Tensor], token: &CancelToken) -> Result<Vec<Tensor>> {
        self.core.run(&self.inner, &self.tensors(feeds)?, Some(token))
    }

    /// Computes the fetches into the caller's tensors, one for each, in the order of the fetches.
    ///
    /// A tensor must have its result's shape, and the result's dtype or, under PyTorch's rules, one that the result
    /// [can be cast](crate::DType::can_cast) to. Its memory is written to if it has the result's dtype, is contiguous
    /// and nothing else shares it; otherwise the tensor gets new memory, and others that share the old keep it
    /// unchanged. After an error of the data (division of integers by zero) or of the
    /// executor's time limit the elements are unspecified.
    ///
    /// Errors: as [`run`](Prepared::run)'s; another number of tensors than fetches; a tensor of another shape, or of
    /// a dtype that the result can't be cast to.
    pub fn run_into(&self, feeds: &[&Tensor], into: &mut [Tensor]) -> Result<()> {
        self.core.run_into(&self.inner, &self.tensors(feeds)?, into)
    }

    /// [`run_into`](Prepared::run_into) with borrowed elements; [`run_views`](Prepared::run_views) has an example.
    pub fn run_views_into(&self, feeds: &[TensorView<'_>], into: &mut [Tensor]) -> Result<()> {
        self.core.run_into(&self.inner, &self.views(feeds)?, into)
    }

    fn tensors<'a>(&self, feeds: &[&'a Tensor]) -> Result<InOrder<'a>> {
        self.counted(feeds.len())?;
        Ok(feeds.iter().map(|t| TensorRef::Tensor(t)).collect())
    }

    fn views<'a>(&self, feeds: &'a [TensorView<'_>]) -> Result<InOrder<'a>> {
        self.counted(feeds.len())?;
        Ok(feeds.iter().map(TensorRef::View).collect())
    }

    fn counted(&self, feeds: usize) -> Result<()> {
        let want = self.core.typed.feeds.len();
        if feeds == want {
            return Ok(());
        }
        let names = self.feed_names().take(20).collect::<Vec<_>>().join(", ");
        let problem = format!("{feeds} tensors for {want} placeholders: {names}");
        Err(Error::Feed { name: "feeds".into(), problem })
    }
}

#[cfg(test)]
mod tests;
