//! A program's fetches made ready: a call looks nothing up by name or program.
//!
//! Guarantees: as [`Executor::run`](super::Executor::run)'s; later changes of the program do not matter. Does not:
//! plan anew unless dynamic dims are broadcast in another way than in the last call.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::cache::{Inner, Planned, pattern_of};
use super::feeds::{Bound, Feeds, bind, name_of, sorted};
use crate::domain::Pattern;
use crate::error::{Error, Result};
use crate::launch::cast_tensor;
use crate::promotion::Rules;
use crate::shape::dims_text;
use crate::tensor::Tensor;
use crate::typed::{NodeId, TypedProgram};

/// Fetches of a program that are ready to be computed. Made by [`Executor::prepare`](super::Executor::prepare), which
/// has an example; can be called from many threads.
pub struct Prepared {
    inner: Arc<Inner>,
    typed: Arc<TypedProgram>,
    nodes: Vec<NodeId>,
    /// The plan of the last call.
    last: Mutex<Option<(Pattern, Arc<Planned>)>>,
}

impl Prepared {
    pub(super) fn new(inner: Arc<Inner>, typed: Arc<TypedProgram>, nodes: Vec<NodeId>) -> Prepared {
        Prepared { inner, typed, nodes, last: Mutex::default() }
    }

    /// The names of the program's placeholders, in the order in which [`run`](Prepared::run) wants their tensors:
    /// that of the program.
    pub fn feed_names(&self) -> impl Iterator<Item = &str> {
        self.typed.feeds.iter().map(|n| name_of(&self.typed, *n))
    }

    /// Computes the fetches from a tensor for each placeholder, in program order. Errors: another number of feeds
    /// than placeholders; a feed of another dtype, rank or extent than declared; division of integers by zero.
    pub fn run(&self, feeds: &[&Tensor]) -> Result<Vec<Tensor>> {
        let bound = self.bound(feeds)?;
        let made = self.execute(&bound, &mut [])?;
        made.into_iter().map(|t| t.ok_or_else(delivered)).collect()
    }

    /// Computes the fetches from named feeds.
    pub(super) fn run_named<'f>(&self, feeds: impl Into<Feeds<'f>>) -> Result<Vec<Tensor>> {
        let feeds = feeds.into();
        let bound = bind(&self.typed, sorted(&self.typed, &feeds)?)?;
        let made = self.execute(&bound, &mut [])?;
        made.into_iter().map(|t| t.ok_or_else(delivered)).collect()
    }

    /// Computes the fetches into the caller's tensors, one for each, in the order of the fetches.
    ///
    /// A tensor must have its result's shape, and the result's dtype or, under PyTorch's rules, one that the result
    /// [can be cast](crate::DType::can_cast) to. Its memory is written to if it has the result's dtype, is contiguous
    /// and nothing else shares it; otherwise the tensor gets new memory, and others that share the old keep it
    /// unchanged. After an error of the data (division of integers by zero) the elements are unspecified.
    ///
    /// Errors: as [`run`](Prepared::run)'s; another number of tensors than fetches; a tensor of another shape, or of
    /// a dtype that the result can't be cast to.
    pub fn run_into(&self, feeds: &[&Tensor], into: &mut [Tensor]) -> Result<()> {
        let bound = self.bound(feeds)?;
        self.check_targets(&bound, into)?;
        let made = self.execute(&bound, into)?;
        for (to, t) in into.iter_mut().zip(made) {
            if let Some(t) = t {
                *to = cast_tensor(&t, to.dtype())?;
            }
        }
        Ok(())
    }

    /// Feeds by name, in program order.
    pub(super) fn in_order<'a>(&self, feeds: &'a Feeds<'_>) -> Result<SmallVec<[&'a Tensor; 8]>> {
        sorted(&self.typed, feeds)
    }

    fn bound<'a>(&self, feeds: &[&'a Tensor]) -> Result<Bound<'a>> {
        if feeds.len() != self.typed.feeds.len() {
            let (want, names) = (self.typed.feeds.len(), self.feed_names().take(20).collect::<Vec<_>>().join(", "));
            let problem = format!("{} tensors for {want} placeholders: {names}", feeds.len());
            return Err(Error::Feed { name: "feeds".into(), problem });
        }
        bind(&self.typed, feeds.into())
    }

    fn check_targets(&self, bound: &Bound<'_>, into: &[Tensor]) -> Result<()> {
        if into.len() != self.nodes.len() {
            return Err(Error::Shape(format!("{} tensors for {} results", into.len(), self.nodes.len())));
        }
        for (i, (node, t)) in self.nodes.iter().zip(into).enumerate() {
            let (n, dims) = (&self.typed.nodes[*node as usize], self.typed.shape_of(*node));
            let extents: Option<Vec<usize>> = dims.iter().map(|d| d.extent(&bound.dyn_dims)).collect();
            if extents.as_deref() != Some(t.shape()) {
                let (want, have) = (dims_text(&extents.unwrap_or_default()), dims_text(t.shape()));
                return Err(Error::Shape(format!("tensor {i} is {have}, result {i} is {want}")));
            }
            let torch = self.typed.settings.rules == Rules::Torch;
            if n.dtype != t.dtype() && !(torch && n.dtype.can_cast(t.dtype())) {
                return Err(Error::DType { expected: n.dtype, found: t.dtype() });
            }
        }
        Ok(())
    }

    fn execute(&self, bound: &Bound<'_>, into: &mut [Tensor]) -> Result<SmallVec<[Option<Tensor>; 4]>> {
        let planned = self.planned(bound)?;
        self.inner.execute(&planned, bound, into)
    }

    /// The plan for feeds whose dynamic dims are broadcast as these are.
    fn planned(&self, bound: &Bound<'_>) -> Result<Arc<Planned>> {
        let pattern = pattern_of(&self.typed, &bound.dyn_dims);
        let lock = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, planned)) = &*lock()
            && *known == pattern
        {
            return Ok(planned.clone());
        }
        let planned = self.inner.plan(&self.typed, self.nodes.clone(), pattern.clone())?;
        *lock() = Some((pattern, planned.clone()));
        Ok(planned)
    }
}

/// Without targets nothing is delivered.
fn delivered() -> Error {
    Error::Internal("a result without a tensor".into())
}
