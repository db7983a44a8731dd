//! Integer ops that may wrap around before a wider dtype takes their value: `(nir - red) / (nir + red)` of u8.
//!
//! Guarantees: an op narrower than 64 bits is found if its operands can give a result beyond its dtype, by the ranges of
//! dtypes, scalars and constants, and a wider dtype takes the result or what other ops make of it. An op whose operands
//! can't is never found, nor one of which only such bits are taken as wrapping leaves alone (`& 255`, `% 16`, a cast to a
//! narrower integer or from u8 to i8). Does not: know which values the elements of a placeholder have, or that two
//! operands are one.

use std::ops::RangeInclusive;

use crate::base::dtype::{Category, DType, with_math};
use crate::base::error::SourceLocation;
use crate::base::indexing::Indexing;
use crate::base::scalar::Scalar;
use crate::base::shape::SymDim;
use crate::graph::typed::{Arg, Args, NodeId, TypedKind, TypedNode, TypedProgram};
use crate::ops::{Attrs, Interval, Known, Op, Shows};
use crate::promotion::operand::OperandType;
use crate::promotion::signature;
use crate::tensor::Tensor;

/// Constants of more elements than this count as any values of their dtype.
const LOOKED_AT: usize = 1 << 20;

/// An integer op whose result may leave its dtype before a wider dtype takes the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrapNote {
    /// The position of its node in [`TypedProgram::nodes`].
    pub node: usize,
    /// The op.
    pub op: Op,
    /// The dtype in which it wraps.
    pub dtype: DType,
    /// The dtype that takes its value, or what other ops make of it; the widest, if there are several.
    pub to: DType,
    /// The results that its operands can give, before they are wrapped. Bounds of more than 127 bits are cut there.
    pub needs: RangeInclusive<i128>,
    /// The values of the dtype.
    pub has: RangeInclusive<i128>,
    /// What to write instead.
    pub help: String,
    /// Where the user wrote the op.
    pub location: SourceLocation,
}

impl WrapNote {
    /// What may happen, in words: `needs -255 to 255, has 0 to 255`.
    pub fn ranges(&self) -> String {
        format!("needs {}, has {}", words(&self.needs), words(&self.has))
    }
}

/// A range as a message has it; numbers beyond 64 bits are not told.
fn words(range: &RangeInclusive<i128>) -> String {
    let most = i128::from(u64::MAX);
    let bound = |v: i128| match v {
        _ if v > most => "more than 2^64".to_string(),
        _ if v < -most => "less than -2^64".to_string(),
        v => v.to_string(),
    };
    format!("{} to {}", bound(*range.start()), bound(*range.end()))
}

/// Who takes a node's value in the end: the widest dtype.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// With all of its bits, or what depends on them.
    whole: Option<DType>,
    /// With low bits alone.
    low: Option<DType>,
}

impl Taken {
    fn add(&mut self, other: Taken) {
        other.whole.into_iter().for_each(|to| super::widen(&mut self.whole, to));
        other.low.into_iter().for_each(|to| super::widen(&mut self.low, to));
    }

    /// What an operand is taken as, of which a result that is taken so shows this much.
    fn through(self, shows: Shows) -> Taken {
        let mut any = self.whole;
        self.low.into_iter().for_each(|to| super::widen(&mut any, to));
        match shows {
            Shows::Nothing => Taken::default(),
            Shows::LowBits => Taken { whole: None, low: any },
            Shows::BitByBit => self,
            Shows::Value => Taken { whole: any, low: None },
        }
    }
}

/// What is known of an integer node.
#[derive(Clone, Copy)]
struct Fact {
    /// Its values.
    known: Known,
    /// The results of its op before they are wrapped, if that differs.
    beyond: Option<Interval>,
}

impl Fact {
    /// This, of what was wrapped if an operand was.
    fn wrapped_as(self, operand: Fact) -> Fact {
        Fact { known: Known { wrapped: operand.known.wrapped, ..self.known }, ..self }
    }
}

impl TypedProgram {
    /// Integer ops narrower than 64 bits whose result may wrap around, by the ranges of dtypes, scalars and constants
    /// (`u8 - u8`, `u8 * 2`; never `maximum`, `&`, `x // 2`), and whose value a wider dtype then takes: a cast to a wider
    /// integer, a float or a complex dtype, of the result or of what other ops make of it. What is stored as it was
    /// computed is not among them, nor what is masked (`& 255`, `% 16`) or cast to a narrower integer: there, wrapping
    /// changes nothing, or is what the result shows.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let (nir, red) = (p.data("nir", DType::U8, [4]), p.data("red", DType::U8, [4]));
    /// let _ = (&nir - &red) / (nir.cast(DType::F32) + &red);
    /// let found = p.infer()?.hidden_wraps();
    /// assert_eq!((found.len(), found[0].op, found[0].dtype, found[0].to), (1, Op::Sub, DType::U8, DType::F32));
    /// assert_eq!((&found[0].needs, &found[0].has), (&(-255..=255), &(0..=255)));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn hidden_wraps(&self) -> Vec<WrapNote> {
        let facts = self.facts();
        let mut taken = vec![Taken::default(); self.nodes.len()];
        let mut found = Vec::new();
        // Users come behind what they use.
        for (i, n) in self.nodes.iter().enumerate().rev() {
            let here = taken[i];
            self.takes(n, here, &facts, &mut taken);
            if let (Some(to), Some(needs)) = (here.whole, facts[i].and_then(|f| f.beyond))
                && n.dtype.size() < DType::I64.size()
            {
                found.extend(self.wrap_note(i, to, needs));
            }
        }
        found.reverse();
        found
    }

    /// Adds to the operands of a node what takes them through it.
    fn takes(&self, n: &TypedNode, here: Taken, facts: &[Option<Fact>], taken: &mut [Taken]) {
        match n.kind {
            TypedKind::Cast { from, .. } => {
                let source = self.nodes[from as usize].dtype;
                taken[from as usize].add(match n.dtype.category() {
                    _ if n.dtype == source => here,
                    Category::Bool => Taken::default(),
                    Category::Int if n.dtype.size() <= source.size() => here.through(Shows::LowBits),
                    _ => Taken { whole: Some(n.dtype), low: None },
                });
            }
            TypedKind::Apply { op, ref args, .. } if n.dtype.category() == Category::Int => {
                let operands = known(args, facts);
                for (k, arg) in args.iter().flatten().enumerate() {
                    if let Arg::Node(from) = *arg {
                        taken[from as usize].add(here.through(op.def().integers.shows(k, &operands)));
                    }
                }
            }
            TypedKind::Reduce { op, from, .. } | TypedKind::Line { op, from, .. }
                if n.dtype.category() == Category::Int =>
            {
                taken[from as usize].add(here.through(op.def().integers.shows(0, &[])));
            }
            TypedKind::Indexed { how: Indexing::ScatterAdd, from, .. } if n.dtype.category() == Category::Int => {
                taken[from as usize].add(here.through(Op::Sum.def().integers.shows(0, &[])));
            }
            TypedKind::View { from, .. } | TypedKind::Blocks { from, .. } | TypedKind::Indexed { from, .. } => {
                taken[from as usize].add(here);
            }
            _ => {}
        }
    }

    /// What is known of each node: its range, and whether something before it may have been wrapped. `None` if it is
    /// no integer.
    fn facts(&self) -> Vec<Option<Fact>> {
        let mut facts: Vec<Option<Fact>> = Vec::with_capacity(self.nodes.len());
        for n in self.nodes.iter() {
            facts.push(Interval::of(n.dtype).map(|within| self.fact(n, within, &facts)));
        }
        facts
    }

    fn fact(&self, n: &TypedNode, within: Interval, facts: &[Option<Fact>]) -> Fact {
        let of = |from: NodeId| facts.get(from as usize).copied().flatten();
        let plain = |range| Fact { known: Known { range, wrapped: false }, beyond: None };
        let (exact, wrapped) = match n.kind {
            // Truth values are not wrapped, but converted.
            _ if n.dtype == DType::Bool => return plain(within),
            TypedKind::Feed(_) | TypedKind::Bits { .. } | TypedKind::Extent { .. } | TypedKind::Generate { .. } => {
                return plain(within);
            }
            TypedKind::Constant(ref t) => return plain(values(t).unwrap_or(within)),
            TypedKind::Indexed { how: Indexing::ScatterAdd, from, .. } => {
                let source = of(from).map_or(Known { range: within, wrapped: false }, |f| f.known);
                (Op::Sum.def().integers.exact(&[source.range], within, None), source.wrapped)
            }
            TypedKind::Indexed { how, from, .. } if how != Indexing::Take => {
                // Its elements, and zeros.
                return of(from).map_or(plain(within), |f| plain(within).wrapped_as(f));
            }
            TypedKind::View { from, .. } | TypedKind::Blocks { from, .. } | TypedKind::Indexed { from, .. } => {
                return of(from).map_or(plain(within), |f| Fact { beyond: None, ..f });
            }
            TypedKind::Cast { from, .. } => {
                // A float or a wider integer that does not fit is a loss of the cast's own.
                let Some(source) = of(from) else { return plain(within) };
                let range = if source.known.range.is_within(within) { source.known.range } else { within };
                return Fact { known: Known { range, ..source.known }, beyond: None };
            }
            TypedKind::Apply { op, ref args, .. } => {
                let operands = known(args, facts);
                let ranges = operands.map(|o| o.range);
                let wrapped = operands.iter().any(|o| o.wrapped);
                (op.def().integers.exact(&ranges[..op.arity()], within, None), wrapped)
            }
            TypedKind::Reduce { op, from, ref axes, .. } => {
                let source = of(from).map_or(Known { range: within, wrapped: false }, |f| f.known);
                let count = combined(self.shape_of(from), axes);
                (op.def().integers.exact(&[source.range], within, count), source.wrapped)
            }
            TypedKind::Line { op, from, axis, .. } => {
                let source = of(from).map_or(Known { range: within, wrapped: false }, |f| f.known);
                let count = combined(self.shape_of(from), &[axis][..self.shape_of(from).len().min(1)]);
                (op.def().integers.exact(&[source.range], within, count), source.wrapped)
            }
        };
        if exact.is_within(within) {
            return Fact { known: Known { range: exact, wrapped }, beyond: None };
        }
        Fact { known: Known { range: within, wrapped: true }, beyond: Some(exact) }
    }

    /// Whether the rule set takes the op with this operand in another dtype and the others as they are.
    fn takes_one_cast(&self, kind: &TypedKind, operand: usize, to: DType) -> bool {
        let TypedKind::Apply { op, args, .. } = kind else { return true };
        let seen = |(k, a): (usize, &Arg)| match *a {
            Arg::Scalar(s, _) => OperandType::Scalar(s),
            Arg::Node(n) => {
                let TypedNode { dtype, weak, .. } = self.nodes[n as usize];
                let (dtype, weak) = if k == operand { (to, false) } else { (dtype, weak) };
                OperandType::Tensor { dtype, zero_dim: self.shape_of(n).is_empty(), weak }
            }
        };
        let operands: Vec<OperandType> = args.iter().flatten().enumerate().map(seen).collect();
        signature(&self.settings, *op, &operands, &Attrs::default()).is_ok()
    }

    fn wrap_note(&self, node: usize, to: DType, needs: Interval) -> Option<WrapNote> {
        let n = &self.nodes[node];
        let (op, nodes): (Op, Vec<(usize, NodeId)>) = match &n.kind {
            TypedKind::Apply { op, args, .. } => {
                let node = |(k, a): (usize, &Arg)| if let Arg::Node(n) = a { Some((k, *n)) } else { None };
                (*op, args.iter().flatten().enumerate().filter_map(node).collect())
            }
            TypedKind::Reduce { op, from, .. } | TypedKind::Line { op, from, .. } => (*op, vec![(0, *from)]),
            TypedKind::Indexed { how: Indexing::ScatterAdd, from, .. } => (Op::Sum, vec![(0, *from)]),
            _ => return None,
        };
        // A 0-d tensor follows those with dims.
        let has_dims = |n: NodeId| !self.shape_of(n).is_empty();
        let (operand, _) = nodes.iter().find(|(_, n)| has_dims(*n)).or(nodes.first())?;
        let has = Interval::of(n.dtype)?;
        // Signed, as differences may be negative.
        let wide = |d: &DType| !d.is_unsigned() && Interval::of(*d).is_some_and(|held| needs.hull(has).is_within(held));
        let floats = self.settings.rules.accepts(op).has(DType::F64);
        let enough = DType::ALL.into_iter().find(wide).unwrap_or(if floats { DType::F64 } else { DType::I64 });
        let name = op.def().operands.get(*operand).copied().unwrap_or("x");
        let cast = match n.location {
            SourceLocation::Text(_) | SourceLocation::Line(_) => format!("`cast({name}, {enough})`"),
            _ => format!("`{name}.cast(DType::{})`", enough.name().to_uppercase()),
        };
        let all = nodes.len() > 1 && !self.takes_one_cast(&n.kind, *operand, enough);
        let which = if all { "the operands" } else { "an operand" };
        let help = format!("cast {which} first, e.g. {cast}");
        let range = |i: Interval| i.least..=i.most;
        Some(WrapNote {
            node,
            op,
            dtype: n.dtype,
            to,
            needs: range(needs),
            has: range(has),
            help,
            location: n.location.clone(),
        })
    }
}

/// What is known of the operands of an application in integers.
fn known(args: &Args, facts: &[Option<Fact>]) -> [Known; crate::ops::MAX_OPERANDS] {
    let any = Known { range: Interval::point(0), wrapped: false };
    args.map(|arg| match arg {
        Some(Arg::Node(n)) => facts.get(n as usize).copied().flatten().map_or(any, |f| f.known),
        Some(Arg::Scalar(value, to)) => match super::value_in(value, to) {
            Scalar::Int(v) => Known { range: Interval::point(v), wrapped: false },
            Scalar::Bool(v) => Known { range: Interval::point(v.into()), wrapped: false },
            _ => any,
        },
        None => any,
    })
}

/// How many elements a reduction over these axes combines, if the shape is known.
fn combined(shape: &[SymDim], axes: &[usize]) -> Option<u64> {
    axes.iter().try_fold(1u64, |n, axis| match shape.get(*axis) {
        Some(SymDim::Fixed(extent)) => Some(n.saturating_mul(*extent as u64)),
        _ => None,
    })
}

/// From the least to the largest element of an integer constant, if it is not too large to be looked at.
fn values(t: &Tensor) -> Option<Interval> {
    if t.numel() > LOOKED_AT {
        return None;
    }
    let (least, most) = with_math!(int, t.dtype(), T => {
        let all = t.to_vec::<T>().ok()?;
        (i128::from(*all.iter().min()?), i128::from(*all.iter().max()?))
    })?;
    Some(Interval::new(least, most))
}

#[cfg(test)]
mod tests;
