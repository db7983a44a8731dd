//! A program's fetches made ready: a call looks nothing up by name or program.
//!
//! Guarantees: as [`Executor::run`](super::Executor::run)'s; later changes of the program do not matter; feeds of the
//! same dtypes and layouts as in the last call are bound, planned and aimed by comparing those alone. Does not: hold
//! tensors between calls.

use std::sync::Arc;

use smallvec::SmallVec;

use super::feeds::{InOrder, name_of};
use super::session::{Core, Inner};
use crate::base::cancel::CancelToken;
use crate::base::error::{Error, Result};
use crate::base::generator::Part;
use crate::graph::typed::{NodeId, TypedProgram};
use crate::tensor::{AsTarget, Target, Tensor, TensorRef, TensorView};

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
        self.counted(feeds.len())?;
        self.core.run(&self.inner, &views(feeds), None)
    }

    /// [`run`](Prepared::run) that the token can stop, as [`Executor::run_with`](super::Executor::run_with).
    pub fn run_with(&self, feeds: &[&Tensor], token: &CancelToken) -> Result<Vec<Tensor>> {
        self.core.run(&self.inner, &self.tensors(feeds)?, Some(token))
    }

    /// [`run_views`](Prepared::run_views) that the token can stop.
    pub fn run_views_with(&self, feeds: &[TensorView<'_>], token: &CancelToken) -> Result<Vec<Tensor>> {
        self.counted(feeds.len())?;
        self.core.run(&self.inner, &views(feeds), Some(token))
    }

    /// Computes the fetches into the caller's tensors or [memory](crate::TensorViewMut), one for each, in the order of the fetches.
    ///
    /// A target must have its result's shape, and the result's dtype or, under PyTorch's rules, one that the result
    /// [can be cast](crate::DType::can_cast) to. A tensor's memory is written to if it has the result's dtype, is contiguous
    /// and nothing else shares it, and the result is that of an elementwise loop; otherwise the tensor gets other memory, and tensors that
    /// share the old keep it unchanged. A `TensorViewMut`'s memory is always written to: by the run itself if it has the result's dtype and is contiguous
    /// and aligned, and if no feed is in the same memory; otherwise the result is computed in other memory and then copied.
    /// A feed may be in exactly this memory where one loop computes all results, elements of a result depend on those of the
    /// feed with the same index alone, and the feed has the result's dtype and shape: `x = x * 0.9 + g` takes no other memory.
    ///
    /// After an error of the data (integer division by zero, an empty reduction, a custom op that panicked), of the time limit or
    /// of a token, the elements of targets that the run itself writes to are unspecified, and all others are unchanged. After any
    /// other error of a call everything is unchanged, but after [`Error::OutOfMemory`] and [`Error::Limit`] in a program of several
    /// kernels, as after an error of the data.
    ///
    /// Errors: as [`run`](Prepared::run)'s; another number of targets than fetches; a target of another shape, or of
    /// a dtype that the result can't be cast to.
    pub fn run_into(&self, feeds: &[&Tensor], into: &mut [impl AsTarget]) -> Result<()> {
        self.core.run_into(&self.inner, &self.tensors(feeds)?, &mut targets(into), None, None)
    }

    /// [`run_into`](Prepared::run_into) that the token can stop.
    pub fn run_into_with(&self, feeds: &[&Tensor], into: &mut [impl AsTarget], token: &CancelToken) -> Result<()> {
        self.core.run_into(&self.inner, &self.tensors(feeds)?, &mut targets(into), Some(token), None)
    }

    /// [`run_into`](Prepared::run_into) of tensors that are some rows of a whole: the program's generators have the elements of these
    /// rows. Errors: a generator's shape is not that of such rows.
    ///
    /// ```
    /// use castwise::{Part, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [2, 2]);
    /// let step = Executor::new().prepare(&p, [&x.arange_like(0, 1)])?;
    /// let (x, mut out) = (Tensor::zeros(DType::F32, [2, 2])?, [Tensor::zeros(DType::I64, [2, 2])?]);
    /// let part = Part { dims: vec![10], first: 3 };                  // rows 3 and 4 of ten
    /// step.run_part_into(&[&x], &mut out, &part)?;
    /// assert_eq!(out[0].to_vec::<i64>()?, [6, 7, 8, 9]);
    /// assert!(step.run_part_into(&[&x], &mut out, &Part { first: 9, ..part }).is_err());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn run_part_into(&self, feeds: &[&Tensor], into: &mut [impl AsTarget], part: &Part) -> Result<()> {
        self.core.run_into(&self.inner, &self.tensors(feeds)?, &mut targets(into), None, Some(part))
    }

    /// [`run_into`](Prepared::run_into) with borrowed elements; [`run_views`](Prepared::run_views) and
    /// [`TensorViewMut`](crate::TensorViewMut) have examples.
    pub fn run_views_into(&self, feeds: &[TensorView<'_>], into: &mut [impl AsTarget]) -> Result<()> {
        self.counted(feeds.len())?;
        self.core.run_into(&self.inner, &views(feeds), &mut targets(into), None, None)
    }

    /// [`run_views_into`](Prepared::run_views_into) that the token can stop.
    ///
    /// ```
    /// use castwise::{CancelToken, Error, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let step = Executor::new().prepare(&p, [&(p.data("x", DType::F32, [None]) + 1.0)])?;
    /// let (x, mut y, token) = ([1.0f32, 2.0], [0.0f32; 2], CancelToken::new());
    /// let mut run = |token: &CancelToken| {
    ///     let mut into = [TensorViewMut::from_slice(&mut y, [2])?];
    ///     step.run_views_into_with(&[TensorView::from_slice(&x, [2])?], &mut into, token)
    /// };
    /// run(&token)?;
    /// token.cancel();
    /// assert!(matches!(run(&token), Err(Error::Cancelled)));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn run_views_into_with(
        &self,
        feeds: &[TensorView<'_>],
        into: &mut [impl AsTarget],
        token: &CancelToken,
    ) -> Result<()> {
        self.counted(feeds.len())?;
        self.core.run_into(&self.inner, &views(feeds), &mut targets(into), Some(token), None)
    }

    fn tensors<'a>(&self, feeds: &[&'a Tensor]) -> Result<InOrder<'a>> {
        self.counted(feeds.len())?;
        Ok(feeds.iter().map(|t| TensorRef::Tensor(t)).collect())
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

/// The feeds of a call. (Not a `Result`, which would be moved from place to place.)
fn views<'a>(feeds: &'a [TensorView<'_>]) -> InOrder<'a> {
    feeds.iter().map(TensorRef::View).collect()
}

/// The targets of a call.
pub(super) fn targets(into: &mut [impl AsTarget]) -> SmallVec<[Target<'_>; 2]> {
    into.iter_mut().map(AsTarget::as_target).collect()
}

#[cfg(test)]
mod tests;
