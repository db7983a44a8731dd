//! The values of a typed program as handles of the program that it was typed from.
//!
//! Guarantees: a value that a node of the program has is that node; what inference wrote besides (conversions, rows of composites) is written
//! again when it is needed, once. Does not: write again what depends on shapes that no node has, which the pass does not need.

use std::cell::RefCell;

use petgraph::graph::NodeIndex;

use crate::base::dtype::DType;
use crate::base::error::{Error, Result, SourceLocation};
use crate::base::scalar::Scalar;
use crate::base::shape::SymDim;
use crate::base::view::View;
use crate::graph::program::{Kind, Program};
use crate::graph::typed::{Arg, NodeId, TypedKind, TypedNode, TypedProgram};
use crate::graph::var::{Graph, Mode, Operand, Var};
use crate::ops::{Attrs, Op};

pub(super) struct Values<'a> {
    pub(super) program: &'a Program,
    pub(super) typed: &'a TypedProgram,
    known: RefCell<Vec<Option<Var>>>,
    /// For each typed node, the first node of the program that has its value.
    written: Vec<Option<u32>>,
}

impl<'a> Values<'a> {
    pub(super) fn new(program: &'a Program, typed: &'a TypedProgram) -> Values<'a> {
        let (mut known, mut written) = (vec![None; typed.len()], vec![None; typed.len()]);
        for (i, n) in typed.of_program.iter().enumerate() {
            let to = &mut known[*n as usize];
            if to.is_none() {
                *to = program.var(i);
                written[*n as usize] = u32::try_from(i).ok();
            }
        }
        Values { program, typed, known: RefCell::new(known), written }
    }

    pub(super) fn node(&self, n: NodeId) -> &'a TypedNode {
        &self.typed.nodes[n as usize]
    }

    fn known(&self, n: NodeId) -> Option<Var> {
        self.known.borrow()[n as usize].clone()
    }

    /// A value of this shape, of which nothing else is used.
    pub(super) fn like(&self, mut n: NodeId) -> Result<Var> {
        while let TypedKind::Cast { from, .. } = self.node(n).kind {
            n = from;
        }
        self.var(n)
    }

    /// The value.
    pub(super) fn var(&self, n: NodeId) -> Result<Var> {
        if let Some(v) = self.known(n) {
            return Ok(v);
        }
        let mut open = vec![n];
        while let Some(n) = open.last().copied() {
            let missing: Vec<NodeId> = match self.known(n) {
                Some(_) => Vec::new(),
                None => self.node(n).inputs().filter(|i| self.known(*i).is_none()).collect(),
            };
            if missing.is_empty() {
                if self.known(n).is_none() {
                    let made = self.again(n)?;
                    self.known.borrow_mut()[n as usize] = Some(made);
                }
                open.pop();
            }
            open.extend(missing);
        }
        self.known(n).ok_or_else(|| Error::Internal(format!("typed node {n} has no handle")))
    }

    /// What inference wrote, whose operands are known.
    fn again(&self, n: NodeId) -> Result<Var> {
        let missing = || Error::Internal(format!("typed node {n} can't be written again"));
        let node = self.node(n);
        let at = || node.location.clone();
        let known = |i: NodeId| self.known(i).ok_or_else(missing);
        let made = match &node.kind {
            TypedKind::Cast { from, .. } => {
                Graph::apply(Op::Cast, &[known(*from)?.into()], Attrs::cast(node.dtype), at())
            }
            TypedKind::Constant(t) => self.program.constant(t.clone()),
            TypedKind::Apply { op, args, .. } => {
                let operand = |a: &Arg| match a {
                    Arg::Node(i) => known(*i).map(Operand::from),
                    Arg::Scalar(s, _) => Ok(Operand::Scalar(*s)),
                };
                let operands = args.iter().flatten().map(operand).collect::<Result<Vec<_>>>()?;
                Graph::apply(*op, &operands, Attrs::default(), at())
            }
            TypedKind::Reduce { op, from, axes, keep, number, choice } => {
                let dims: Vec<i64> = axes.iter().map(|d| *d as i64).collect();
                let dtype = self.node(*from).dtype;
                let dtype = (dtype.is_integral() && node.dtype == dtype && *op == Op::Sum).then_some(dtype);
                let attrs = Attrs { dtype, number: *number, choice: *choice, ..Attrs::dims(dims).with_keepdim(*keep) };
                Graph::apply(*op, &[known(*from)?.into()], attrs, at())
            }
            TypedKind::Line { op, from, axis, number, choice } => {
                let attrs = Attrs { number: *number, choice: *choice, ..Attrs::dims([*axis as i64]) };
                Graph::apply(*op, &[known(*from)?.into()], attrs, at())
            }
            TypedKind::View { from, view: Some(view) } => Graph::view(&known(*from)?.0, view.clone(), at()),
            TypedKind::View { from, view: None } => {
                placed(&known(*from)?, self.typed.shape_of(*from), self.typed.shape_of(n), &at())
            }
            _ => return Err(missing()),
        };
        Ok(made)
    }

    /// Whether a reduction was written without dims.
    pub(super) fn is_whole(&self, n: NodeId) -> bool {
        let state = self.program.shared.read();
        let written = self.written[n as usize].and_then(|i| state.nodes.node_weight(NodeIndex::new(i as usize)));
        matches!(written.map(|n| &n.kind), Some(Kind::Apply { attrs, .. }) if attrs.dims.is_none())
    }

    /// A number as a value.
    pub(super) fn number(&self, s: Scalar, dtype: DType, beside: &Var, at: SourceLocation) -> Var {
        Graph::scalar(&beside.0, s, dtype, at)
    }
}

/// A value with other dims of extent 1.
pub(super) fn placed(v: &Var, from: &[SymDim], to: &[SymDim], at: &SourceLocation) -> Var {
    let one = SymDim::Fixed(1);
    let mut v = v.clone();
    for axis in (0..from.len()).rev().filter(|a| from[*a] == one) {
        v = Graph::view(&v.0, View::Squeeze(axis as i64), at.clone());
    }
    for axis in (0..to.len()).filter(|a| to[*a] == one) {
        v = Graph::view(&v.0, View::Unsqueeze(axis as i64), at.clone());
    }
    v
}

/// The extents of a reshape; -1 of a dim that only feeds tell.
pub(super) fn extents(dims: &[SymDim]) -> std::sync::Arc<[i64]> {
    let extent = |d: &SymDim| if let SymDim::Fixed(n) = d { i64::try_from(*n).unwrap_or(i64::MAX) } else { -1 };
    dims.iter().map(extent).collect()
}
