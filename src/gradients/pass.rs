//! The walk over a typed program, from its last node to the first.
//!
//! Guarantees: only nodes between a value that gradients are asked for and a loss are walked; each once. Does not: know rules of ops.

use foldhash::{HashMap, HashMapExt};

use crate::base::blocks::BlockSize;
use crate::base::composite::{Composite, Kind};
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result, SourceLocation};
use crate::base::generator::Generator;
use crate::base::indexing::Indexing;
use crate::base::location::here;
use crate::base::scalar::Scalar;
use crate::base::shape::{SymDim, dims_text};
use crate::base::view::{View, wrap};
use crate::graph::program::{Input, Kind as Written, Program};
use crate::graph::typed::{Arg, NodeId, TypedKind, TypedProgram};
use crate::graph::var::{Graph, Mode, Operand, Var};
use crate::ops::derivative::Gradient;
use crate::ops::{Attrs, Op};

use super::local::Local;
use super::term::Term;
use super::values::{Values, extents, placed};

/// A walk.
pub(super) struct Walk<'a> {
    values: Values<'a>,
    wrt: Vec<NodeId>,
    /// Whether a node depends on a value that gradients are asked for.
    needs: Vec<bool>,
    /// The gradient of each node, as far as it is known.
    so_far: Vec<Option<Term>>,
    /// Composites of shapes, by the node that has their value: which, and of what.
    of_shapes: HashMap<NodeId, (Kind, NodeId)>,
}

fn refused(message: String, at: &SourceLocation) -> Error {
    Diagnostic::new(DiagnosticKind::NotDifferentiable, message).at(at).into()
}

impl<'a> Walk<'a> {
    pub(super) fn new(program: &'a Program, typed: &'a TypedProgram, wrt: &[&Var]) -> Result<Walk<'a>> {
        let wrt = wrt.iter().map(|v| typed.node(v)).collect::<Result<Vec<NodeId>>>()?;
        let mut needs = vec![false; typed.len()];
        for n in &wrt {
            let node = &typed.nodes[*n as usize];
            if node.dtype.is_integral() {
                let shape = dims_text(typed.shape_of(*n));
                let message =
                    format!("a gradient with respect to {}{shape}, which is no float or complex number", node.dtype);
                return Err(refused(message, &node.location));
            }
            needs[*n as usize] = true;
        }
        for (i, n) in typed.nodes.iter().enumerate() {
            needs[i] |= n.inputs().any(|a| needs[a as usize]);
        }
        // Room for the nodes that the rules write, of which there may be more.
        program.shared.reserve(needs.iter().filter(|n| **n).count());
        let (so_far, of_shapes) = (vec![None; typed.len()], of_shapes(program, typed));
        Ok(Walk { values: Values::new(program, typed), wrt, needs, so_far, of_shapes })
    }

    /// The gradients.
    pub(super) fn run(mut self, losses: &[&Var], cotangents: &[Option<&Var>]) -> Result<Vec<Var>> {
        if !cotangents.is_empty() && cotangents.len() != losses.len() {
            let message = format!("{} cotangents for {} losses", cotangents.len(), losses.len());
            return Err(Diagnostic::new(DiagnosticKind::BadParameter, message).at(&here()).into());
        }
        for (i, loss) in losses.iter().enumerate() {
            self.start(loss, cotangents.get(i).copied().flatten())?;
        }
        let mut asked: HashMap<NodeId, Option<Var>> = self.wrt.iter().map(|n| (*n, None)).collect();
        for n in (0..self.so_far.len()).rev() {
            let (id, g) = (n as NodeId, self.so_far[n].take());
            let g = g.map(|g| g.value(&self.values.typed.nodes[n].location));
            if let (Some(to), Some(g)) = (asked.get_mut(&id), &g) {
                *to = Some(g.clone());
            }
            if let Some(g) = g.filter(|_| self.needs[n]) {
                self.node(id, &g)?;
            }
        }
        let wrt = std::mem::take(&mut self.wrt);
        wrt.iter().map(|n| asked.get(n).cloned().flatten().map_or_else(|| self.zeros(*n), Ok)).collect()
    }

    /// The cotangent of a loss.
    fn start(&mut self, loss: &Var, given: Option<&Var>) -> Result<()> {
        let typed = self.values.typed;
        let n = typed.node(loss)?;
        let node = &typed.nodes[n as usize];
        let (shape, at) = (typed.shape_of(n), node.location.clone());
        if node.dtype.is_integral() {
            let message =
                format!("a gradient of {}{}, which is no float or complex number", node.dtype, dims_text(shape));
            return Err(refused(message, &at));
        }
        let g = match given {
            None if shape.is_empty() && !node.dtype.is_complex() => {
                self.values.number(Scalar::Float(1.0), node.dtype, loss, at)
            }
            None => {
                let message = format!("a gradient of {}{} needs a cotangent", node.dtype, dims_text(shape));
                let d = Diagnostic::new(DiagnosticKind::NotDifferentiable, message).at(&at);
                return Err(d.help("give one of its shape; only a real 0-d loss has 1").into());
            }
            Some(g) => {
                let of = typed.node(g)?;
                let has = typed.shape_of(of);
                let differ =
                    |(a, b): (&SymDim, &SymDim)| matches!((a, b), (SymDim::Fixed(m), SymDim::Fixed(n)) if m != n);
                if has.len() != shape.len() || has.iter().zip(shape).any(differ) {
                    let message = format!(
                        "a cotangent of the shape {} for a loss of the shape {}",
                        dims_text(has),
                        dims_text(shape)
                    );
                    return Err(Diagnostic::new(DiagnosticKind::Broadcast, message).at(&at).into());
                }
                let g = if has == shape { g.clone() } else { self.shaped(Kind::ExpandLike, g, n, &at)? };
                if typed.nodes[of as usize].dtype == node.dtype { g } else { cast(&g, node.dtype, &at) }
            }
        };
        self.add(n, g, &node.location);
        Ok(())
    }

    /// Adds to the gradient of a node.
    fn add(&mut self, n: NodeId, g: impl Into<Term>, at: &SourceLocation) {
        let to = &mut self.so_far[n as usize];
        *to = Some(match to.take() {
            Some(before) => before.plus(g.into(), at).into(),
            None => g.into(),
        });
    }

    /// Passes a node's gradient to its operands.
    fn node(&mut self, n: NodeId, g: &Var) -> Result<()> {
        let typed = self.values.typed;
        let node = &typed.nodes[n as usize];
        let at = &node.location;
        if let Some((kind, from)) = self.of_shapes.get(&n).copied() {
            let back = if kind == Kind::SumTo { Kind::ExpandLike } else { Kind::SumTo };
            let g = self.shaped(back, g, from, at)?;
            self.add(from, g, at);
            return Ok(());
        }
        match &node.kind {
            TypedKind::Apply { op, args, .. } => {
                for (k, arg) in args.iter().enumerate() {
                    if let Some(Arg::Node(a)) = *arg
                        && self.needs[a as usize]
                        && let Some(g) = self.local(*op, k, n, g)?
                    {
                        let g = self.summed(n, a, g)?;
                        self.add(a, g, at);
                    }
                }
                Ok(())
            }
            TypedKind::Reduce { op, from, .. } | TypedKind::Line { op, from, .. } => {
                if let Some(g) = self.local(*op, 0, n, g)? {
                    self.add(*from, g, at);
                }
                Ok(())
            }
            TypedKind::Cast { from, .. } => {
                let to = typed.nodes[*from as usize].dtype;
                if !to.is_integral() {
                    let real = node.dtype.is_complex() && !to.is_complex();
                    let g = if real {
                        Graph::apply(Op::RealPart, &[g.into()], Attrs::default(), at.clone())
                    } else {
                        g.clone()
                    };
                    let has = if real { node.dtype.real() } else { node.dtype };
                    self.add(*from, if has == to { g } else { cast(&g, to, at) }, at);
                }
                Ok(())
            }
            TypedKind::View { from, view } => {
                let g = self.viewed(n, *from, view.as_ref(), g)?;
                self.add(*from, g, at);
                Ok(())
            }
            TypedKind::Bits { .. } => {
                Err(self.no_gradient(Op::ViewAs.name(), "it gives the same bits another meaning", at))
            }
            TypedKind::Indexed { how, from, index, axis, .. } => {
                // The index may be what depends on a value.
                if self.needs[*from as usize] {
                    let g = self.moved(*how, *from, *index, *axis, g, at)?;
                    self.add(*from, g, at);
                }
                Ok(())
            }
            TypedKind::Blocks { from, size, .. } => {
                let g = self.blocks(n, *from, size, g)?;
                self.add(*from, g, at);
                Ok(())
            }
            TypedKind::Feed(_) | TypedKind::Constant(_) | TypedKind::Generate { .. } | TypedKind::Extent { .. } => {
                Ok(())
            }
        }
    }

    fn no_gradient(&self, name: &str, why: &str, at: &SourceLocation) -> Error {
        let colon = if why.is_empty() { "" } else { ": " };
        refused(format!("`{name}` has no gradient{colon}{why}"), at)
    }

    /// The gradient of an operand as its row has it.
    fn local(&self, op: Op, operand: usize, n: NodeId, g: &Var) -> Result<Option<Term>> {
        let at = &self.values.node(n).location;
        let (rule, wide) = match op.def().gradients[operand] {
            Gradient::Zero => return Ok(None),
            Gradient::Once(rule) => (rule, false),
            Gradient::Wide(rule) => (rule, true),
            Gradient::Refused(why) => return Err(self.no_gradient(op.name(), why, at)),
            Gradient::Missing => return Err(self.no_gradient(op.name(), "", at)),
        };
        Local::new(&self.values, n, g, wide).run(rule)
    }

    /// The gradient of an application's operand in the operand's shape and dtype.
    fn summed(&self, n: NodeId, operand: NodeId, g: Term) -> Result<Term> {
        let (typed, node) = (self.values.typed, self.values.node(n));
        let (operand_node, at) = (&typed.nodes[operand as usize], &node.location);
        let compute = if let TypedKind::Apply { compute, .. } = node.kind { compute } else { node.dtype };
        let (same_shape, same_dtype) = (operand_node.shape == node.shape, operand_node.dtype == compute);
        if same_shape && same_dtype {
            return Ok(g);
        }
        let mut v = g.value(at);
        if !same_shape {
            v = self.shaped(Kind::SumTo, &v, operand, at)?;
        }
        Ok(if same_dtype { v } else { cast(&v, operand_node.dtype, at) }.into())
    }

    /// A composite that gives the shape of a node.
    fn shaped(&self, kind: Kind, g: &Var, like: NodeId, at: &SourceLocation) -> Result<Var> {
        let like = self.values.like(like)?;
        Ok(Graph::composite(&g.0, &Composite::new(kind), &[g.into(), like.into()], at.clone()))
    }

    /// The gradient of what a view shows.
    fn viewed(&self, n: NodeId, from: NodeId, view: Option<&View>, g: &Var) -> Result<Var> {
        let typed = self.values.typed;
        let (dims, shape, at) = (typed.shape_of(from), typed.shape_of(n), &self.values.node(n).location);
        let back = match view {
            None => return Ok(placed(g, shape, dims, at)),
            Some(View::Transpose(..) | View::Flip(_)) => view.cloned(),
            Some(View::Permute(order)) => {
                let mut inverse = vec![0i64; order.len()];
                for (i, d) in order.iter().enumerate() {
                    inverse[d.rem_euclid(order.len().max(1) as i64) as usize] = i as i64;
                }
                Some(View::Permute(inverse.into()))
            }
            Some(View::Unsqueeze(dim)) => {
                let rank = shape.len() as i64;
                Some(View::Squeeze(dim.rem_euclid(rank.max(1))))
            }
            Some(View::Squeeze(dim)) => {
                (dims.len() != shape.len()).then(|| View::Unsqueeze(dim.rem_euclid(dims.len().max(1) as i64)))
            }
            Some(View::Expand(_)) => return self.shaped(Kind::SumTo, g, from, at),
            Some(View::Reshape(_)) => Some(View::Reshape(extents(dims))),
            Some(View::Slice(dim, slice)) => {
                let (how, axis) =
                    (Indexing::Pad { start: slice.start.unwrap_or(0), step: slice.step }, wrap(*dim, dims.len()));
                return self.indexed(how, axis, g, [None, Some(self.values.like(from)?)], at);
            }
        };
        Ok(match back {
            Some(back) => Graph::view(&g.0, back, at.clone()),
            None => g.clone(),
        })
    }

    fn indexed(&self, how: Indexing, axis: usize, g: &Var, rest: [Option<Var>; 2], at: &SourceLocation) -> Result<Var> {
        let all: Vec<Operand> =
            std::iter::once(Operand::from(g)).chain(rest.into_iter().flatten().map(Operand::from)).collect();
        Ok(Graph::composite(&g.0, &Composite::indexing(how, axis as i64), &all, at.clone()))
    }

    /// The gradient of what was moved along a dim.
    fn moved(
        &self,
        how: Indexing,
        from: NodeId,
        index: Option<NodeId>,
        axis: usize,
        g: &Var,
        at: &SourceLocation,
    ) -> Result<Var> {
        let index = index.map(|i| self.values.var(i)).transpose()?;
        match how {
            Indexing::Take => self.indexed(Indexing::ScatterAdd, axis, g, [index, Some(self.values.like(from)?)], at),
            Indexing::ScatterAdd => self.indexed(Indexing::Take, axis, g, [index, None], at),
            Indexing::Pad { start, step } => {
                let apply = |op: Op, a: Var, b: Operand| Graph::apply(op, &[a.into(), b], Attrs::default(), at.clone());
                let along = Generator::Index { dim: Some(axis as i64) };
                let index = Graph::generate(&self.values.like(from)?.0, along, at.clone());
                let index = apply(Op::Mul, index, step.into());
                // A start before the dim is its first element.
                let first = match start < 0 {
                    true => {
                        let made = Composite::new(Kind::Count).over([axis as i64]);
                        let n = Graph::composite(&g.0, &made, &[g.into()], at.clone());
                        apply(Op::Maximum, apply(Op::Add, n, start.into()), 0i64.into()).into()
                    }
                    false => start.into(),
                };
                self.indexed(Indexing::Take, axis, g, [Some(apply(Op::Add, index, first)), None], at)
            }
        }
    }

    /// The gradient of what was repeated for the elements of blocks: their sum, dim by dim.
    fn blocks(&self, n: NodeId, from: NodeId, size: &BlockSize, g: &Var) -> Result<Var> {
        let typed = self.values.typed;
        let (node, like) = (self.values.node(n), self.values.like(from)?);
        let (at, wide) = (&node.location, node.dtype.op_math());
        let mut sum = if wide == node.dtype { g.clone() } else { cast(g, wide, at) };
        for (axis, (blocks, all)) in typed.shape_of(from).iter().zip(typed.shape_of(n)).enumerate() {
            if size.along(axis) == 1 || blocks == all {
                continue;
            }
            let along = Graph::generate(&sum.0, Generator::Index { dim: Some(axis as i64) }, at.clone());
            let block = Operand::from(i64::try_from(size.along(axis)).unwrap_or(i64::MAX));
            let index = Graph::apply(Op::FloorDivide, &[along.into(), block], Attrs::default(), at.clone());
            sum = self.indexed(Indexing::ScatterAdd, axis, &sum, [Some(index), Some(like.clone())], at)?;
        }
        Ok(if wide == node.dtype { sum } else { cast(&sum, node.dtype, at) })
    }

    /// The gradient of what no loss depends on.
    fn zeros(&self, n: NodeId) -> Result<Var> {
        let (like, at) = (self.values.like(n)?, self.values.node(n).location.clone());
        let mut made = Composite::new(Kind::FullLike);
        made.dtype = Some(self.values.node(n).dtype);
        Ok(Graph::composite(&like.0, &made, &[(&like).into()], at))
    }
}

fn cast(v: &Var, to: crate::base::dtype::DType, at: &SourceLocation) -> Var {
    Graph::apply(Op::Cast, &[v.into()], Attrs::cast(to), at.clone())
}

/// The composites whose rows depend on shapes that no node has, by the nodes that have their values.
fn of_shapes(program: &Program, typed: &TypedProgram) -> HashMap<NodeId, (Kind, NodeId)> {
    let state = program.shared.read();
    let mut all = HashMap::new();
    let mut met = vec![false; typed.len()];
    for (node, id) in state.nodes.node_indices().zip(typed.of_program.iter()) {
        let first = !std::mem::replace(&mut met[*id as usize], true);
        if let Some(Written::Composite { composite, .. }) = state.nodes.node_weight(node).map(|n| &n.kind)
            && matches!(composite.kind, Kind::SumTo | Kind::ExpandLike)
            && first
            && let [Some(Input::Node(from)), ..] = state.operands(node)
        {
            all.insert(*id, (composite.kind, typed.of_program[from.index()]));
        }
    }
    all
}
