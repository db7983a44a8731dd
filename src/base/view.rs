//! `View`: the same elements under other dims, as programs write it.
//!
//! Guarantees: [`View::shape`] is the only place that says which shape a view has, and which views are refused; names,
//! negative dims and bounds are PyTorch's. Does not: know memory; `tensor` has the layouts.

use std::fmt;
use std::sync::Arc;

use crate::base::error::{Diagnostic, DiagnosticKind};
use crate::base::limits::Limits;
use crate::base::shape::{SymDim, axes, axis, check_within, dims_text};

/// A view: the same elements under other dims. Dims may be negative and count from the last; a 0-d value takes the
/// dims 0 and -1. The methods of [`Var`](crate::Var) that have these names make them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// Two dims are swapped.
    Transpose(i64, i64),
    /// The dims in this order.
    Permute(Arc<[i64]>),
    /// A new dim of extent 1 before this one.
    Unsqueeze(i64),
    /// Without this dim, if its extent is 1.
    Squeeze(i64),
    /// Dims of extent 1 are repeated and leading dims added, to this shape; -1 is a dim that stays.
    Expand(Arc<[i64]>),
    /// Some elements of a dim.
    Slice(i64, Slice),
    /// These dims are reversed.
    Flip(Arc<[i64]>),
    /// The elements in row-major order under this shape; one -1 is what remains.
    Reshape(Arc<[i64]>),
}

/// Every `step`-th element from `start` on, before `end`. Negative bounds count from the end; bounds beyond the dim
/// are its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The first element; the first of the dim without.
    pub start: Option<i64>,
    /// The end, which is not taken; that of the dim without.
    pub end: Option<i64>,
    /// At least 1.
    pub step: i64,
}

impl Slice {
    /// The elements of a dim of this extent: from, to and step, with `from <= to <= extent`.
    pub(crate) fn of(&self, extent: usize) -> (usize, usize, usize) {
        let n = extent as i128;
        let at = |bound: i64| (i128::from(bound) + if bound < 0 { n } else { 0 }).clamp(0, n) as usize;
        let (from, to) = (self.start.map_or(0, at), self.end.map_or(extent, at));
        (from, to.max(from), usize::try_from(self.step).unwrap_or(1).max(1))
    }

    /// How many elements of a dim of this extent it takes.
    pub(crate) fn count(&self, extent: usize) -> usize {
        let (from, to, step) = self.of(extent);
        (to - from).div_ceil(step)
    }

    /// Whether it takes all elements of any dim.
    fn takes_all(&self) -> bool {
        self.start.unwrap_or(0) == 0 && matches!(self.end, None | Some(i64::MAX)) && self.step == 1
    }
}

/// What a shape depends on besides the operand's: only who types a program knows these.
pub(crate) trait Unknown {
    /// The dim that is a slice of a dynamic one.
    fn sliced(&mut self, of: &SymDim, slice: Slice) -> SymDim;
    /// A dynamic dim is expanded to an extent: it must be 1 or that.
    fn expanded(&mut self, axis: usize, of: &SymDim, extent: usize);
    /// The dim of an extent that only the feeds tell; `None` if there is none.
    fn fed(&mut self) -> Option<SymDim> {
        None
    }
}

/// Of shapes that are known: nothing is asked.
pub(crate) struct Known;

impl Unknown for Known {
    fn sliced(&mut self, of: &SymDim, _: Slice) -> SymDim {
        of.clone()
    }

    fn expanded(&mut self, _: usize, _: &SymDim, _: usize) {}
}

/// A refusal: what kind of mistake, what is wrong, and help.
pub(crate) type Refused = (DiagnosticKind, String, Option<&'static str>);

fn refused<T>(kind: DiagnosticKind, message: String) -> Result<T, Refused> {
    Err((kind, message, None))
}

fn bad_dim(message: String) -> Refused {
    (DiagnosticKind::Axis, message, None)
}

impl View {
    /// An extent of `expand` and `reshape` that only the feeds tell: inference writes it.
    pub(crate) const FED: i64 = i64::MIN;

    /// The names in the text form, which are those of PyTorch's functions.
    pub(crate) const NAMES: [&'static str; 8] =
        ["transpose", "permute", "unsqueeze", "squeeze", "expand", "slice", "flip", "reshape"];

    /// The name in the text form.
    pub fn name(&self) -> &'static str {
        View::NAMES[match self {
            View::Transpose(..) => 0,
            View::Permute(_) => 1,
            View::Unsqueeze(_) => 2,
            View::Squeeze(_) => 3,
            View::Expand(_) => 4,
            View::Slice(..) => 5,
            View::Flip(_) => 6,
            View::Reshape(_) => 7,
        }]
    }

    /// The shape of the view of a value of this dtype and shape, or the refusal.
    pub(crate) fn shape(
        &self,
        dtype: impl fmt::Display,
        dims: &[SymDim],
        limits: &Limits,
        unknown: &mut dyn Unknown,
    ) -> Result<Vec<SymDim>, Diagnostic> {
        let whole = |(kind, message, help): Refused| {
            let message = format!("`{}` of {dtype}{}: {message}", self.name(), dims_text(dims));
            let d = Diagnostic::new(kind, message);
            if let Some(help) = help { d.help(help) } else { d }
        };
        let shape = self.dims(dims, unknown).map_err(whole)?;
        let fixed: Vec<usize> = shape.iter().map(|d| if let SymDim::Fixed(n) = d { *n } else { 1 }).collect();
        match check_within(&fixed, limits) {
            Ok(_) => Ok(shape),
            Err(e) => {
                Err(whole((DiagnosticKind::BadParameter, format!("its result {}: {e}", dims_text(&shape)), None)))
            }
        }
    }

    /// The shape of the view of a value of these dims, or the refusal without the name of the view and its operand.
    pub(crate) fn dims(&self, dims: &[SymDim], unknown: &mut dyn Unknown) -> Result<Vec<SymDim>, Refused> {
        let rank = dims.len();
        let mut to = dims.to_vec();
        match self {
            View::Transpose(a, b) => {
                let (a, b) = (axis(*a, rank).map_err(bad_dim)?, axis(*b, rank).map_err(bad_dim)?);
                if rank > 0 {
                    to.swap(a, b);
                }
            }
            View::Permute(order) => {
                axes(Some(order), rank).map_err(bad_dim)?;
                if order.len() != rank {
                    let message = format!("{order:?} has {} dims, the value has {rank}", order.len());
                    return refused(DiagnosticKind::Axis, message);
                }
                to = order.iter().map(|d| dims[wrap(*d, rank)].clone()).collect();
            }
            View::Unsqueeze(dim) => {
                let wrong = |_| bad_dim(format!("no new dim {dim}: it can be from {} to {rank}", -(rank as i64) - 1));
                let at = axis(*dim, rank + 1).map_err(wrong)?;
                to.insert(at, SymDim::Fixed(1));
            }
            View::Squeeze(dim) => {
                let at = axis(*dim, rank).map_err(bad_dim)?;
                match dims.get(at) {
                    Some(SymDim::Fixed(1)) => _ = to.remove(at),
                    Some(SymDim::Sym(_)) => {
                        let message = format!("dim {at} is dynamic: only its feed tells whether its extent is 1");
                        let help = "declare the dim with extent 1, or reduce it";
                        return Err((DiagnosticKind::BadParameter, message, Some(help)));
                    }
                    _ => {}
                }
            }
            View::Expand(shape) => to = expanded(dims, shape, unknown)?,
            View::Slice(dim, slice) => {
                if rank == 0 {
                    return refused(DiagnosticKind::Axis, "a 0-d value has no dim".to_string());
                }
                let at = axis(*dim, rank).map_err(bad_dim)?;
                if slice.step < 1 {
                    let message = format!("the step {} must be at least 1", slice.step);
                    return Err((DiagnosticKind::BadParameter, message, Some("`flip` reverses a dim")));
                }
                to[at] = match &dims[at] {
                    SymDim::Fixed(n) => SymDim::Fixed(slice.count(*n)),
                    d if slice.takes_all() => d.clone(),
                    d => unknown.sliced(d, *slice),
                };
            }
            View::Flip(flipped) => _ = axes(Some(flipped), rank).map_err(bad_dim)?,
            View::Reshape(shape) => match unknown.fed().filter(|_| shape.contains(&View::FED)) {
                Some(fed) => {
                    to = shape.iter().map(|n| usize::try_from(*n).map_or_else(|_| fed.clone(), SymDim::Fixed)).collect()
                }
                None => to = reshaped(dims, shape)?,
            },
        }
        Ok(to)
    }

    /// Whether the view of a value of these dims is the value itself. `same`: whether the shapes are equal.
    pub(crate) fn is_identity(&self, dims: &[SymDim], same: bool) -> bool {
        let rank = dims.len();
        same && match self {
            View::Transpose(a, b) => rank == 0 || wrap(*a, rank) == wrap(*b, rank),
            View::Permute(order) => order.iter().enumerate().all(|(i, d)| wrap(*d, rank) == i),
            View::Slice(dim, slice) => match &dims[wrap(*dim, rank)] {
                SymDim::Fixed(_) => true,
                SymDim::Sym(_) => slice.takes_all(),
            },
            View::Flip(flipped) => {
                flipped.iter().all(|d| dims.get(wrap(*d, rank)).is_none_or(|d| *d == SymDim::Fixed(1)))
            }
            View::Unsqueeze(_) | View::Squeeze(_) | View::Expand(_) | View::Reshape(_) => true,
        }
    }
}

/// A dim that was checked, counted from the first.
pub(crate) fn wrap(dim: i64, rank: usize) -> usize {
    dim.rem_euclid(rank.max(1) as i64) as usize
}

/// The shape of an expanded value.
fn expanded(dims: &[SymDim], shape: &[i64], unknown: &mut dyn Unknown) -> Result<Vec<SymDim>, Refused> {
    let Some(front) = shape.len().checked_sub(dims.len()) else {
        let message = format!("the shape {shape:?} has fewer dims than the value");
        return refused(DiagnosticKind::Broadcast, message);
    };
    let mut to = Vec::with_capacity(shape.len());
    for (at, n) in shape.iter().enumerate() {
        let old = at.checked_sub(front).map(|i| &dims[i]);
        if let Some(fed) = unknown.fed().filter(|_| *n == View::FED) {
            to.push(fed);
            continue;
        }
        let extent = usize::try_from(*n);
        to.push(match (old, extent) {
            (Some(d), Err(_)) if *n == -1 => d.clone(),
            (None, Err(_)) if *n == -1 => {
                let message = format!("dim {at} of {shape:?} is new: there is no extent that -1 could keep");
                return refused(DiagnosticKind::BadParameter, message);
            }
            (_, Err(_)) => {
                let message = format!("dim {at} of {shape:?} is negative");
                return refused(DiagnosticKind::BadParameter, message);
            }
            (None | Some(SymDim::Fixed(1)), Ok(n)) => SymDim::Fixed(n),
            (Some(SymDim::Fixed(d)), Ok(n)) if *d == n => SymDim::Fixed(n),
            (Some(SymDim::Fixed(d)), Ok(n)) => {
                let message = format!("dim {at} of {shape:?} is {n}, the value has {d} there");
                return refused(DiagnosticKind::Broadcast, message);
            }
            (Some(SymDim::Sym(_)), Ok(1)) => {
                let message = format!("dim {at} of {shape:?} is 1, the value has a dynamic dim there");
                return Err((DiagnosticKind::Broadcast, message, Some("-1 keeps the extent of a dim")));
            }
            (Some(d), Ok(n)) => {
                unknown.expanded(at, d, n);
                SymDim::Fixed(n)
            }
        });
    }
    Ok(to)
}

/// The shape of a reshaped value.
fn reshaped(dims: &[SymDim], shape: &[i64]) -> Result<Vec<SymDim>, Refused> {
    if shape.iter().any(|n| *n < -1) || shape.iter().filter(|n| **n == -1).count() > 1 {
        let message = format!("{shape:?} is no shape: one dim may be -1, others are not negative");
        return refused(DiagnosticKind::BadParameter, message);
    }
    let product = |all: &mut dyn Iterator<Item = u128>| all.fold(1u128, |n, d| n.saturating_mul(d));
    let fixed = |d: &SymDim| if let SymDim::Fixed(n) = d { Some(*n as u128) } else { None };
    let has = product(&mut dims.iter().filter_map(fixed));
    let given = product(&mut shape.iter().filter_map(|n| u128::try_from(*n).ok()));
    let mut dynamic = dims.iter().filter(|d| fixed(d).is_none());
    let rest = match (dynamic.next(), dynamic.next(), shape.contains(&-1)) {
        (None, ..) if !shape.contains(&-1) => {
            if has != given {
                let message = format!("{has} elements can't have the shape {shape:?}, which has {given}");
                return refused(DiagnosticKind::BadParameter, message);
            }
            SymDim::Fixed(1)
        }
        (None, ..) if given == 0 => {
            let message = format!("-1 in {shape:?} could be any extent");
            return refused(DiagnosticKind::BadParameter, message);
        }
        (None, ..) if has.is_multiple_of(given) => SymDim::Fixed(usize::try_from(has / given).unwrap_or(usize::MAX)),
        (None, ..) => {
            let message = format!("{has} elements can't have the shape {shape:?}: {given} does not divide them");
            return refused(DiagnosticKind::BadParameter, message);
        }
        (Some(d), None, true) if has == given && given > 0 => d.clone(),
        _ if dims.len() == 1 && *shape == [-1] => dims[0].clone(),
        _ => {
            let message = format!("the extents of {shape:?} depend on dynamic dims");
            let help = "-1 is the extent of the one dynamic dim if the other dims have as many elements as before";
            return Err((DiagnosticKind::BadParameter, message, Some(help)));
        }
    };
    Ok(shape.iter().map(|n| usize::try_from(*n).map_or_else(|_| rest.clone(), SymDim::Fixed)).collect())
}

impl fmt::Display for View {
    /// Its attributes, as in the text form: `{dims = [0, 1]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            View::Transpose(a, b) => write!(f, "{{dims = [{a}, {b}]}}"),
            View::Permute(dims) | View::Flip(dims) => write!(f, "{{dims = {dims:?}}}"),
            View::Unsqueeze(dim) | View::Squeeze(dim) => write!(f, "{{dim = {dim}}}"),
            View::Expand(shape) | View::Reshape(shape) => {
                let dim = |n: &i64| if *n == View::FED { "?".to_string() } else { n.to_string() };
                write!(f, "{{shape = [{}]}}", shape.iter().map(dim).collect::<Vec<_>>().join(", "))
            }
            View::Slice(dim, Slice { start, end, step }) => {
                write!(f, "{{dim = {dim}")?;
                for (name, bound) in [("start", start), ("end", end)] {
                    if let Some(n) = bound {
                        write!(f, ", {name} = {n}")?;
                    }
                }
                if *step == 1 { f.write_str("}") } else { write!(f, ", step = {step}}}") }
            }
        }
    }
}
