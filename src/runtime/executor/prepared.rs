//! A program's fetches made ready: a call looks nothing up by name or program.
//!
//! Guarantees: as [`Executor::run`](super::Executor::run)'s; later changes of the program do not matter; feeds of the
//! same dtypes and layouts as in the last call are bound, planned and aimed by comparing those alone. Does not: hold
//! tensors between calls.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::feeds::{Bound, Feeds, bind, name_of, sorted};
use super::session::{Call, Inner, Planned, Shots, pattern_of};
use super::stats::Traffic;
use crate::base::cancel::{CancelToken, Stop};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::host::Kept;
use crate::base::limits::Limit;
use crate::base::shape::{check_within, dims_text};
use crate::graph::typed::{NodeId, TypedProgram};
use crate::plan::fuse::Plan;
use crate::promotion::OperandType;
use crate::runtime::launch::{Fetched, cast_tensor, is_direct};
use crate::tensor::{Layout, Tensor, TensorRef, TensorView};

/// Fetches of a program that are ready to be computed. Made by [`Executor::prepare`](super::Executor::prepare), which
/// has an example; can be called from many threads.
pub struct Prepared {
    inner: Arc<Inner>,
    core: Core,
}

/// The feeds of a call, in program order.
pub(super) type InOrder<'a> = SmallVec<[TensorRef<'a>; 8]>;

/// Fetches of a typed program, and how they were computed last.
pub(super) struct Core {
    typed: Arc<TypedProgram>,
    nodes: Vec<NodeId>,
    last: Kept<Option<Arc<Last>>>,
}

/// Everything about a call that depends on its feeds' dtypes and layouts alone.
struct Last {
    feeds: Vec<(DType, Arc<Layout>)>,
    dyn_dims: Vec<usize>,
    planned: Arc<Planned>,
    traffic: Traffic,
    shots: Shots,
    /// Whether the plan is one call: see [`is_direct`].
    direct: bool,
}

impl Last {
    fn fits(&self, feeds: &[TensorRef<'_>]) -> bool {
        let same = |((d, known), t): (&(DType, Arc<Layout>), &TensorRef<'_>)| {
            *d == t.dtype() && (Arc::ptr_eq(known, t.layout()) || **known == **t.layout())
        };
        self.feeds.len() == feeds.len() && self.feeds.iter().zip(feeds).all(same)
    }
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

impl Core {
    pub(super) fn new(typed: Arc<TypedProgram>, nodes: Vec<NodeId>) -> Core {
        Core { typed, nodes, last: Kept::default() }
    }

    /// Feeds by name, in program order.
    pub(super) fn in_order<'a>(&self, feeds: &'a Feeds<'_>) -> Result<InOrder<'a>> {
        sorted(&self.typed, feeds)
    }

    pub(super) fn run(
        &self,
        inner: &Inner,
        feeds: &[TensorRef<'_>],
        token: Option<&CancelToken>,
    ) -> Result<Vec<Tensor>> {
        let stop = inner.stop(token);
        let missing = || Error::Internal("a result without a tensor".into());
        let last = self.last.lock().clone().filter(|last| last.fits(feeds));
        if let Some(last) = last.as_ref().filter(|last| last.direct && stop.is_none()) {
            return Ok(vec![
                inner.execute_direct(&last.planned, last.traffic, feeds, &last.shots[0], None)?.ok_or_else(missing)?,
            ]);
        }
        self.execute(inner, feeds, last, &mut [], stop.as_ref())?.into_iter().map(|t| t.ok_or_else(missing)).collect()
    }

    pub(super) fn run_into(&self, inner: &Inner, feeds: &[TensorRef<'_>], into: &mut [Tensor]) -> Result<()> {
        if into.len() != self.nodes.len() {
            return Err(Error::Shape(format!("{} tensors for {} results", into.len(), self.nodes.len())));
        }
        let stop = inner.stop(None);
        let last = self.last.lock().clone().filter(|last| last.fits(feeds));
        let set = |(to, t): (&mut Tensor, Option<Tensor>)| -> Result<()> {
            if let Some(t) = t {
                *to = cast_tensor(&t, to.dtype())?;
            }
            Ok(())
        };
        if let Some(last) = last.as_ref().filter(|last| last.direct && stop.is_none()) {
            self.check_targets(&last.dyn_dims, into)?;
            let made = inner.execute_direct(&last.planned, last.traffic, feeds, &last.shots[0], into.first_mut())?;
            return into.iter_mut().zip([made]).try_for_each(set);
        }
        let made = self.execute(inner, feeds, last, into, stop.as_ref())?;
        into.iter_mut().zip(made).try_for_each(set)
    }

    /// Computes the fetches; `last` is the last call if its feeds had the same layouts.
    fn execute(
        &self,
        inner: &Inner,
        feeds: &[TensorRef<'_>],
        last: Option<Arc<Last>>,
        into: &mut [Tensor],
        stop: Option<&Stop<'_>>,
    ) -> Result<Fetched> {
        if let Some(last) = last {
            self.check_targets(&last.dyn_dims, into)?;
            let mut shots = Cow::Borrowed(&*last.shots);
            let call = Call { feeds, dyn_dims: &last.dyn_dims, traffic: last.traffic, stop };
            return inner.execute(&last.planned, &call, &mut shots, into);
        }
        inner.counters.bindings.add(1);
        let bound = bind(&self.typed, feeds.into())?;
        self.check_targets(&bound.dyn_dims, into)?;
        let planned = inner.plan(&self.typed, self.nodes.clone(), pattern_of(&self.typed, &bound.dyn_dims))?;
        self.check_sizes(&planned.plan, &bound)?;
        let mut shots = Cow::Owned(Vec::new());
        let traffic = Traffic::of(&planned.plan, &bound.dyn_dims);
        let call = Call { feeds: &bound.feeds, dyn_dims: &bound.dyn_dims, traffic, stop };
        let made = inner.execute(&planned, &call, &mut shots, into)?;
        let layouts = bound.feeds.iter().map(|t| (t.dtype(), t.layout().clone())).collect();
        let shots = shots.into_owned();
        let direct = !inner.is_timed() && is_direct(&planned.plan, &shots);
        let now = Last { feeds: layouts, dyn_dims: bound.dyn_dims, planned, traffic, shots, direct };
        *self.last.lock() = Some(Arc::new(now));
        Ok(made)
    }

    /// Refuses feeds, and domains of kernels, of more elements than the program may have.
    fn check_sizes(&self, plan: &Plan, bound: &Bound<'_>) -> Result<()> {
        let limits = self.typed.program.limits();
        if limits.get(Limit::Elements) == Limit::Elements.default() {
            // Tensors have no more, and no domain of theirs is aimed at that has.
            return Ok(());
        }
        bound.feeds.iter().try_for_each(|t| check_within(t.shape(), &limits).map(drop))?;
        plan.work.iter().try_for_each(|k| {
            let extents = self.typed.shapes[k.shape as usize].iter().filter_map(|d| d.extent(&bound.dyn_dims));
            check_within(&extents.collect::<Vec<_>>(), &limits).map(drop)
        })
    }

    /// Whether the caller's tensors fit the results.
    fn check_targets(&self, dyn_dims: &[usize], into: &[Tensor]) -> Result<()> {
        for (i, (node, t)) in self.nodes.iter().zip(into).enumerate() {
            let (n, dims) = (&self.typed.nodes[*node as usize], self.typed.shape_of(*node));
            let same =
                dims.len() == t.rank() && dims.iter().zip(t.shape()).all(|(d, n)| d.extent(dyn_dims) == Some(*n));
            if !same {
                let extents: Vec<usize> = dims.iter().filter_map(|d| d.extent(dyn_dims)).collect();
                let (want, have) = (dims_text(&extents), dims_text(t.shape()));
                return Err(Error::Shape(format!("tensor {i} is {have}, result {i} is {want}")));
            }
            let rules = self.typed.settings.rules.set();
            let casts = || rules.casts_results() && rules.can_write(&OperandType::dim(n.dtype), t.dtype());
            if n.dtype != t.dtype() && !casts() {
                return Err(Error::DType { expected: n.dtype, found: t.dtype() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
