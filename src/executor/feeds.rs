//! Feeds: tensors for a program's placeholders, and the checks they must pass.
//!
//! Guarantees: what [`bind`] accepts has for each placeholder a tensor of its dtype, rank and fixed dims, and dynamic
//! dims that agree and broadcast. Does not: run anything.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::error::{Error, Result, shown};
use crate::shape::{SymDim, dims_text};
use crate::tensor::Tensor;
use crate::typed::{NodeId, TypedKind, TypedProgram};

/// The tensors for a program's placeholders, by name. See [`feeds!`](crate::feeds); what is known only at run time
/// can be given as a list too.
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
pub struct Feeds<'a>(Vec<(Cow<'a, str>, Tensor)>);

impl<'a> Feeds<'a> {
    /// Feeds from names and tensors.
    pub fn new(all: Vec<(Cow<'a, str>, Tensor)>) -> Feeds<'a> {
        Feeds(all)
    }
}

impl<'a, N: Into<Cow<'a, str>>> From<Vec<(N, Tensor)>> for Feeds<'a> {
    fn from(all: Vec<(N, Tensor)>) -> Feeds<'a> {
        Feeds(all.into_iter().map(|(n, t)| (n.into(), t)).collect())
    }
}

impl<'a, N: Into<Cow<'a, str>>, const K: usize> From<[(N, Tensor); K]> for Feeds<'a> {
    fn from(all: [(N, Tensor); K]) -> Feeds<'a> {
        Feeds(all.into_iter().map(|(n, t)| (n.into(), t)).collect())
    }
}

/// Feeds from names and tensors (or references to tensors): `feeds! { "a" => t, "b" => &u }`.
#[macro_export]
macro_rules! feeds {
    ($($name:expr => $tensor:expr),* $(,)?) => {
        $crate::Feeds::new(::std::vec![
            $((::std::borrow::Cow::<str>::from($name), $crate::Tensor::clone(&$tensor))),*
        ])
    };
}

/// Feeds that fit their placeholders, in program order, and what the dynamic dims are with them.
pub(super) struct Bound<'a> {
    pub(super) feeds: SmallVec<[&'a Tensor; 8]>,
    pub(super) dyn_dims: Vec<usize>,
}

/// Puts feeds into program order.
pub(super) fn sorted<'a>(typed: &TypedProgram, feeds: &'a Feeds<'_>) -> Result<SmallVec<[&'a Tensor; 8]>> {
    let mut given: SmallVec<[Option<&Tensor>; 8]> = SmallVec::from_elem(None, typed.feeds.len());
    for (at, (name, t)) in feeds.0.iter().enumerate() {
        // Mostly they are given in program order.
        let here = typed.feeds.get(at).is_some_and(|n| name_of(typed, *n) == name);
        let found = if here { Some(at) } else { typed.feed_index.get(&**name).map(|i| *i as usize) };
        let problem = match found {
            None => format!("is not a placeholder of the program; it has: {}", known_names(typed)),
            Some(i) if given[i].is_some() => "is given twice".to_string(),
            Some(i) => {
                given[i] = Some(t);
                continue;
            }
        };
        return Err(Error::Feed { name: name.to_string(), problem });
    }
    let one = |(t, node): (Option<&'a Tensor>, &NodeId)| {
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
pub(super) fn bind<'a>(typed: &TypedProgram, feeds: SmallVec<[&'a Tensor; 8]>) -> Result<Bound<'a>> {
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
    let dyn_dims: Vec<usize> = dyn_dims.iter().map(|d| d.map_or(1, |(n, ..)| n)).collect();
    for c in &typed.checks {
        check_dims(typed, c, &dyn_dims)?;
    }
    Ok(Bound { feeds, dyn_dims })
}

/// Whether two dims that were unknown until now broadcast.
fn check_dims(typed: &TypedProgram, c: &crate::typed::DimCheck, values: &[usize]) -> Result<()> {
    let both = (c.dims.0.extent(values), c.dims.1.extent(values));
    if matches!(both, (Some(a), Some(b)) if a == b || a == 1 || b == 1) {
        return Ok(());
    }
    let named = |d: &SymDim| match d {
        SymDim::Fixed(n) => format!("{n}"),
        SymDim::Sym(set) => {
            let feeds = set.iter().filter_map(|s| {
                let dim = typed.dyn_dims.get(*s as usize)?;
                Some(format!("{} (axis {} of feed `{}`)", values.get(*s as usize)?, dim.axis, shown(&dim.feed)))
            });
            feeds.collect::<Vec<_>>().join(" and ")
        }
    };
    let (a, b) = (named(&c.dims.0), named(&c.dims.1));
    Err(Error::Shape(format!("cannot broadcast in `{}` at axis {}: {a} vs {b}\n  at {}", c.op, c.axis, c.place)))
}

fn known_names(typed: &TypedProgram) -> String {
    let mut names: Vec<String> =
        typed.feeds.iter().take(20).map(|n| format!("`{}`", shown(name_of(typed, *n)))).collect();
    if names.is_empty() {
        names.push("none".into());
    }
    names.join(", ")
}
