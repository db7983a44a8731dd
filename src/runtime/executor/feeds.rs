//! Feeds: tensors or borrowed elements for a program's placeholders, and the checks they must pass.
//!
//! Guarantees: what [`bind`] accepts has for each placeholder a tensor of its dtype, rank and fixed dims, and dynamic
//! dims that agree and broadcast. Does not: run anything.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::dtype::Element;
use crate::base::error::{Error, Result, shown};
use crate::base::shape::{SymDim, dims_text};
use crate::graph::typed::{Asked, DimCheck, DynDim, NodeId, TypedKind, TypedProgram};
use crate::tensor::{Tensor, TensorRef, TensorView};

/// The value of one placeholder: a tensor (which is shared), or elements that are borrowed for as long as the feed
/// lives and read where they are. It is made `From` whatever is [`AsFeed`].
///
/// ```
/// use castwise::{Feed, prelude::*};
/// let p = Program::new(Rules::Torch);
/// let (x, y) = (p.data("x", DType::F32, [None]), p.data("y", DType::F32, [None]));
/// let (samples, offset) = (vec![1.0f32, 2.0, 3.0], Tensor::from([0.5f32]));
/// let feeds = vec![("x", Feed::from(&samples[1..])), ("y", Feed::from(&offset))];
/// assert_eq!(Executor::new().run(&p, feeds, [&(x - y)])?[0].to_vec::<f32>()?, [1.5, 2.5]);
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Feed<'a>(Kind<'a>);

#[derive(Clone, Debug)]
enum Kind<'a> {
    Tensor(Tensor),
    View(TensorView<'a>),
    /// What could not be viewed or copied: the run's error.
    Wrong(Arc<Error>),
}

impl<'a, F: AsFeed<'a>> From<F> for Feed<'a> {
    fn from(of: F) -> Feed<'a> {
        of.into_feed()
    }
}

impl Feed<'_> {
    #[inline]
    fn get(&self) -> Result<TensorRef<'_>> {
        match &self.0 {
            Kind::Tensor(t) => Ok(TensorRef::Tensor(t)),
            Kind::View(v) => Ok(TensorRef::View(v)),
            Kind::Wrong(e) => Err(Error::Earlier(e.clone())),
        }
    }
}

/// What can be a [`Feed`]: a [`Tensor`], a [`TensorView`], and references to these, to slices, vectors and arrays of
/// elements (of as many as the one dim has), and with the feature `ndarray` to arrays and to views of arrays.
///
/// An array of `ndarray` is copied, row-major, only if its elements have gaps between them in memory: a step, or a part of a
/// dim that is not the outermost in memory. To avoid that, take a `TensorView::from_array` of the whole
/// array and [`slice`](TensorView::slice) that. Nothing else is copied.
pub trait AsFeed<'a> {
    /// The feed. What goes wrong is the error of the run.
    fn as_feed(&self) -> Feed<'a>;

    /// The same of what is not needed any more.
    fn into_feed(self) -> Feed<'a>
    where
        Self: Sized,
    {
        self.as_feed()
    }
}

impl<'a> AsFeed<'a> for Tensor {
    fn as_feed(&self) -> Feed<'a> {
        Feed(Kind::Tensor(self.clone()))
    }

    fn into_feed(self) -> Feed<'a> {
        Feed(Kind::Tensor(self))
    }
}

impl<'a> AsFeed<'a> for TensorView<'a> {
    fn as_feed(&self) -> Feed<'a> {
        Feed(Kind::View(self.clone()))
    }

    fn into_feed(self) -> Feed<'a> {
        Feed(Kind::View(self))
    }
}

impl<'a, F: AsFeed<'a> + ?Sized> AsFeed<'a> for &F {
    fn as_feed(&self) -> Feed<'a> {
        (**self).as_feed()
    }
}

impl<'a, F: AsFeed<'a> + ?Sized> AsFeed<'a> for Arc<F> {
    fn as_feed(&self) -> Feed<'a> {
        (**self).as_feed()
    }
}

impl<'a, F: AsFeed<'a> + ?Sized> AsFeed<'a> for Box<F> {
    fn as_feed(&self) -> Feed<'a> {
        (**self).as_feed()
    }
}

impl<'a, T: Element> AsFeed<'a> for &'a [T] {
    fn as_feed(&self) -> Feed<'a> {
        let made = TensorView::from_slice(self, [self.len()]);
        Feed(made.map_or_else(|e| Kind::Wrong(Arc::new(e)), Kind::View))
    }
}

impl<'a, T: Element> AsFeed<'a> for &'a Vec<T> {
    fn as_feed(&self) -> Feed<'a> {
        self.as_slice().as_feed()
    }
}

impl<'a, T: Element, const N: usize> AsFeed<'a> for &'a [T; N] {
    fn as_feed(&self) -> Feed<'a> {
        self.as_slice().as_feed()
    }
}

/// Only with the feature `ndarray`.
#[cfg(feature = "ndarray")]
impl<'a, S: ndarray::Data<Elem: Element>, D: ndarray::Dimension> AsFeed<'a> for &'a ndarray::ArrayBase<S, D> {
    fn as_feed(&self) -> Feed<'a> {
        let copied = || Tensor::from_array(self).map_or_else(|e| Kind::Wrong(Arc::new(e)), Kind::Tensor);
        Feed(TensorView::from_array(self).map_or_else(|_| copied(), Kind::View))
    }
}

/// The tensors or borrowed elements for a program's placeholders, by name. See [`feeds!`](crate::feeds); what is known
/// only at run time can be given as a list too, of names and of whatever is a [`Feed`].
///
/// ```
/// use castwise::prelude::*;
/// let p = Program::new(Rules::Torch);
/// let all: Vec<Var> = (0..3).map(|i| p.data(&format!("x{i}"), DType::F32, [2])).collect();
/// let sum = &all[0] + &all[1] + &all[2];
/// let feeds: Vec<(String, Tensor)> = (0..3).map(|i| (format!("x{i}"), Tensor::from([i as f32, 1.0]))).collect();
/// assert_eq!(Executor::new().run(&p, feeds, [&sum])?[0].to_vec::<f32>()?, [3.0, 3.0]);
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Feeds<'a>(Vec<(Cow<'a, str>, Feed<'a>)>);

impl<'a> Feeds<'a> {
    /// Feeds from names and tensors.
    pub fn new(all: Vec<(Cow<'a, str>, Tensor)>) -> Feeds<'a> {
        Feeds::from(all)
    }

    /// What [`feeds!`](crate::feeds) makes.
    #[doc(hidden)]
    pub fn of(all: Vec<(Cow<'a, str>, Feed<'a>)>) -> Feeds<'a> {
        Feeds(all)
    }
}

impl<'a, N: Into<Cow<'a, str>>, F: Into<Feed<'a>>> From<Vec<(N, F)>> for Feeds<'a> {
    fn from(all: Vec<(N, F)>) -> Feeds<'a> {
        Feeds(all.into_iter().map(|(n, f)| (n.into(), f.into())).collect())
    }
}

impl<'a, N: Into<Cow<'a, str>>, F: Into<Feed<'a>>, const K: usize> From<[(N, F); K]> for Feeds<'a> {
    fn from(all: [(N, F); K]) -> Feeds<'a> {
        Feeds(all.into_iter().map(|(n, f)| (n.into(), f.into())).collect())
    }
}

/// Feeds from names and what is [`AsFeed`]: `feeds! { "a" => t, "b" => &u, "c" => &v[..] }` for tensors `t`
/// and `u`, which are shared, and elements `v`, which are borrowed.
#[macro_export]
macro_rules! feeds {
    ($($name:expr => $feed:expr),* $(,)?) => {
        $crate::Feeds::of(::std::vec![
            $((::std::borrow::Cow::<str>::from($name), $crate::AsFeed::as_feed(&$feed))),*
        ])
    };
}

/// Feeds that fit their placeholders, in program order, and what the dynamic dims are with them.
pub(super) struct Bound<'a> {
    pub(super) feeds: InOrder<'a>,
    pub(super) dyn_dims: Vec<usize>,
}

/// Puts feeds into program order.
pub(super) fn sorted<'a>(typed: &TypedProgram, feeds: &'a Feeds<'_>) -> Result<InOrder<'a>> {
    let mut all = InOrder::new();
    // Mostly they are given in it.
    for ((name, feed), node) in feeds.0.iter().zip(&typed.feeds) {
        if name_of(typed, *node) != name {
            break;
        }
        all.push(feed.get()?);
    }
    if all.len() == typed.feeds.len() && all.len() == feeds.0.len() { Ok(all) } else { by_name(typed, feeds) }
}

fn by_name<'a>(typed: &TypedProgram, feeds: &'a Feeds<'_>) -> Result<InOrder<'a>> {
    let mut given: SmallVec<[Option<TensorRef<'a>>; 8]> = SmallVec::from_elem(None, typed.feeds.len());
    for (name, feed) in &feeds.0 {
        let problem = match typed.feed_index.get(&**name).map(|i| *i as usize) {
            None => format!("is not a placeholder of the program; it has: {}", known_names(typed)),
            Some(i) if given[i].is_some() => "is given twice".to_string(),
            Some(i) => {
                given[i] = Some(feed.get()?);
                continue;
            }
        };
        return Err(Error::Feed { name: name.to_string(), problem });
    }
    let one = |(t, node): (Option<TensorRef<'a>>, &NodeId)| {
        t.ok_or_else(|| Error::Feed { name: name_of(typed, *node).into(), problem: "is missing".into() })
    };
    given.into_iter().zip(&typed.feeds).map(one).collect()
}

pub(super) fn name_of(typed: &TypedProgram, feed: NodeId) -> &str {
    match &typed.nodes[feed as usize].kind {
        TypedKind::Feed(name) => name,
        _ => "",
    }
}

/// Checks feeds against placeholders and finds the dynamic dims.
pub(super) fn bind<'a>(typed: &TypedProgram, feeds: InOrder<'a>) -> Result<Bound<'a>> {
    let mut dyn_dims: Vec<Option<(usize, &str, usize)>> = vec![None; typed.dyn_dims.len()];
    for (t, i) in feeds.iter().zip(&typed.feeds) {
        let (n, name, dims) = (&typed.nodes[*i as usize], name_of(typed, *i), typed.shape_of(*i));
        let wrong = |problem: String| Error::Feed { name: name.to_string(), problem };
        let declared = || format!("{}{}", n.dtype, dims_text(dims));
        if t.dtype() != n.dtype || t.rank() != dims.len() {
            return Err(wrong(format!(
                "is {}{}, the program declares {}",
                t.dtype(),
                dims_text(t.shape()),
                declared()
            )));
        }
        for (axis, (d, got)) in dims.iter().zip(t.shape()).enumerate() {
            match d {
                SymDim::Fixed(n) if n != got => {
                    return Err(wrong(format!("has {got} at axis {axis}, the program declares {}", declared())));
                }
                SymDim::Fixed(_) => {}
                SymDim::Sym(s) => match &mut dyn_dims[s[0] as usize] {
                    Some((n, other, at)) if n != got => {
                        let other = shown(other);
                        let first = format!("`{other}` has {n} at axis {at}");
                        return Err(wrong(format!("has {got} at axis {axis}, but {first}, and they are one dim")));
                    }
                    slot => *slot = Some((*got, name, axis)),
                },
            }
        }
    }
    let mut dyn_dims: Vec<usize> = dyn_dims.iter().map(|d| d.map_or(1, |(n, ..)| n)).collect();
    for (i, d) in typed.dyn_dims.iter().enumerate() {
        // Dims that do not broadcast are refused below.
        match d {
            DynDim::Fed { .. } => {}
            DynDim::Sliced { of, slice } => dyn_dims[i] = of.extent(&dyn_dims).map_or(0, |n| slice.count(n)),
            DynDim::Quotient { of, by } => {
                let (n, by) = (of.extent(&dyn_dims).unwrap_or(0), by.extent(&dyn_dims).unwrap_or(0));
                dyn_dims[i] = n.checked_div(by).unwrap_or(1);
            }
        }
    }
    for c in &typed.checks {
        check_dims(typed, c, &dyn_dims)?;
    }
    Ok(Bound { feeds, dyn_dims })
}

/// Whether two dims that were unknown until now are as asked.
fn check_dims(typed: &TypedProgram, c: &DimCheck, values: &[usize]) -> Result<()> {
    if let (Some(a), Some(b)) = (c.dims.0.extent(values), c.dims.1.extent(values)) {
        let fits = match c.asked {
            Asked::Broadcast => a == 1 || b == 1,
            Asked::Into => a == 1,
            Asked::Equal => false,
        };
        if fits || a == b {
            return Ok(());
        }
    }
    let named = |d: &SymDim| match d {
        SymDim::Fixed(n) => format!("{n}"),
        SymDim::Sym(set) => {
            let feeds = set.iter().filter_map(|s| {
                let n = values.get(*s as usize)?;
                Some(match typed.dyn_dims.get(*s as usize)? {
                    DynDim::Fed { feed, axis } => format!("{n} (axis {axis} of feed `{}`)", shown(feed)),
                    DynDim::Sliced { of, .. } => format!("{n} (of a slice of {})", of.extent(values)?),
                    DynDim::Quotient { of, .. } => format!("{n} (of {})", of.extent(values)?),
                })
            });
            feeds.collect::<Vec<_>>().join(" and ")
        }
    };
    let (a, b) = (named(&c.dims.0), named(&c.dims.1));
    let what = if c.asked == Asked::Equal { "the extents differ" } else { "cannot broadcast" };
    Err(Error::Shape(format!("{what} in `{}` at axis {}: {a} vs {b}\n  at {}", c.op, c.axis, c.location)))
}

fn known_names(typed: &TypedProgram) -> String {
    let mut names: Vec<String> =
        typed.feeds.iter().take(20).map(|n| format!("`{}`", shown(name_of(typed, *n)))).collect();
    if names.is_empty() {
        names.push("none".into());
    }
    names.join(", ")
}

/// The feeds of a call, in program order.
pub(super) type InOrder<'a> = SmallVec<[TensorRef<'a>; 8]>;
