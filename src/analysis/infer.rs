//! Inference: one pass over the program that gives every node a dtype and a shape and writes the casts out.
//!
//! Guarantees: visits each node once, in program order (which is topological), without recursion, and begins with the first that
//! was not there when the program was typed before; dtypes come from
//! `signature` alone; all mistakes of the program are reported together, each once: a node that uses a faulty one is
//! skipped. Does not: look at values; drop or merge nodes.

use std::sync::Arc;

use petgraph::Direction;
use petgraph::graph::NodeIndex;
use smallvec::SmallVec;

use crate::base::blocks::BlockSize;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result, SourceLocation};
use crate::base::generator::Generator;
use crate::base::host::FloatMode;
use crate::base::scalar::Scalar;
use crate::base::shape::{Dim, Dims, Mismatch, SymDim, at_axis, broadcast, check_within, dims_text};
use crate::base::trace::{record, span};
use crate::graph::program::{Input, Kind, Program, State};
use crate::graph::typed::{Arg, Args, Asked, DimCheck, DynDim, NodeId, Other, TypedKind, TypedNode, TypedProgram, Why};
use crate::graph::var::Var;
use crate::kernels::cast::{convert_by, path_within};
use crate::ops::{Attrs, LossShapes, MAX_OPERANDS, Op, Promotion};
use crate::promotion::operand::{OperandType, category_of};
use crate::promotion::{Reason, Settings, generated, reason, scalar_operand, signature};
use crate::tensor::Tensor;

use known::{FAULTY, Inference};

/// Types a program. Errors: [`Error::Invalid`] with every mistake in it.
pub fn infer(program: &Program) -> Result<TypedProgram> {
    let _standard = FloatMode::standard();
    // In this order the graph has the nodes that were typed before.
    let before = program.shared.take_inference();
    let state = program.shared.read();
    span!(DEBUG, span = "infer" { nodes: state.nodes.node_count() } + typed_nodes);
    let before = before.and_then(|kept| kept.downcast::<Inference>().ok());
    let mut inference = before.unwrap_or_else(|| Box::new(begun(program)));
    inference.advance(&state);
    record!(span, typed_nodes: inference.nodes.len());
    if !inference.faults.is_empty() {
        return Err(Error::Invalid(inference.faults));
    }
    let typed = TypedProgram {
        settings: inference.settings,
        feeds: inference.feeds.clone(),
        feed_index: inference.feed_index.clone(),
        nodes: inference.nodes.clone(),
        shapes: inference.shapes.list.clone(),
        dyn_dims: inference.dyn_dims.clone(),
        checks: inference.checks.clone(),
        of_program: inference.of_program.clone(),
        declared: state.fetches.clone(),
        program: program.clone(),
    };
    program.shared.keep_inference(inference);
    Ok(typed)
}

/// The inference of a program before its first node.
fn begun(program: &Program) -> Inference {
    let settings = program.settings();
    let wrong = settings.check().err().map(|d| d.at(&program.shared.location));
    // So that the mistakes of the nodes come out too, and no more than these.
    let settings = if wrong.is_some() { Settings { default_dtype: DType::F32, ..settings } } else { settings };
    let mut inference = Inference::new(settings, program.limits());
    inference.faults.extend(wrong);
    inference
}

/// What each node gives under any settings: its dtype or the refusal of it; `None` for what uses a refused one.
pub(crate) fn outcomes(program: &Program, settings: Settings) -> Vec<Option<Result<DType, Box<Diagnostic>>>> {
    let _standard = FloatMode::standard();
    let state = program.shared.read();
    let mut inference = Inference::new(settings, program.limits());
    let one = |node| {
        let before = inference.faults.len();
        let id = inference.next(&state, node);
        let refusal = inference.faults.get(before).map(|d| Err(Box::new(d.clone())));
        id.map(|id| Ok(inference.nodes[id as usize].dtype)).or(refusal)
    };
    state.nodes.node_indices().map(one).collect()
}

impl Program {
    /// Types the program: dtypes, shapes, explicit casts. Nodes that were typed by an earlier call are not typed again, so
    /// a program can be typed after each of its ops. Errors: [`Error::Invalid`] with every mistake in it.
    pub fn infer(&self) -> Result<TypedProgram> {
        infer(self)
    }

    /// Reports every mistake made so far, at once.
    pub fn check(&self) -> Result<()> {
        infer(self).map(|_| ())
    }
}

/// The operands of an application before casts, in order.
#[derive(Default)]
struct Operands {
    /// What promotion sees of each.
    seen: SmallVec<[OperandType; MAX_OPERANDS]>,
    /// The node of each; scalars have none.
    nodes: SmallVec<[Option<NodeId>; MAX_OPERANDS]>,
}

impl Inference {
    /// Types the nodes that are not typed yet.
    fn advance(&mut self, state: &State) {
        Arc::make_mut(&mut self.nodes).reserve(state.nodes.node_count().saturating_sub(self.of_program.len()));
        for node in state.nodes.node_indices().skip(self.of_program.len()) {
            self.next(state, node);
        }
    }

    /// Types the node after those that are typed; `None` if it, or something it uses, is faulty.
    fn next(&mut self, state: &State, node: NodeIndex) -> Option<NodeId> {
        let id = self.visit(state, node);
        Arc::make_mut(&mut self.of_program).push(id.unwrap_or(FAULTY));
        id
    }

    /// Types one node; `None` if it, or something it uses, is faulty.
    fn visit(&mut self, state: &State, node: NodeIndex) -> Option<NodeId> {
        let weight = state.nodes.node_weight(node)?;
        let location = &weight.location;
        match &weight.kind {
            Kind::Data { name, dtype, dims } => {
                let shape = self.declared(name, dims);
                let id = self.push(TypedKind::Feed(name.clone()), *dtype, shape, location);
                self.feed_index.insert(name.clone(), self.feeds.len() as u32);
                self.feeds.push(id);
                Some(self.weak(id, state.is_weak(self.settings.rules, node)))
            }
            Kind::Constant(t) => {
                let dims: Vec<SymDim> = t.shape().iter().map(|n| SymDim::Fixed(*n)).collect();
                let shape = self.shapes.id(&dims);
                let id = self.push(TypedKind::Constant(t.clone()), t.dtype(), shape, location);
                Some(self.weak(id, state.is_weak(self.settings.rules, node)))
            }
            Kind::Apply { op, attrs, .. } => {
                let operands = self.operands(state, node)?;
                let made = self.apply(*op, attrs, operands, location);
                self.remembered(made, location)
            }
            Kind::Composite { composite, .. } => {
                let operands = self.operands(state, node)?;
                let made = self.composite(composite, operands, location);
                self.remembered(made, location)
            }
            Kind::Blocks(size) => {
                let [Some(Input::Node(scale)), Some(Input::Node(like)), ..] = state.operands(node) else { return None };
                let known = |n: NodeIndex| self.known(n);
                let (scale, like) = (known(scale)?, known(like)?);
                let made = self.blocks(size, scale, like, location);
                self.remembered(made, location)
            }
            Kind::Generate(generator) => {
                let like = state.nodes.neighbors_directed(node, Direction::Incoming).next()?;
                let like = self.known(like)?;
                let made = self.generate(*generator, like, location);
                self.remembered(made, location)
            }
            Kind::View(view) => {
                let from = state.nodes.neighbors_directed(node, Direction::Incoming).next()?;
                let from = self.known(from)?;
                let made = self.view(view, from, location);
                self.remembered(made, location)
            }
            Kind::Poison(d) => {
                self.faults.push(Diagnostic::clone(d));
                None
            }
        }
    }

    /// The node that was made; a mistake is remembered.
    fn remembered(&mut self, made: Result<NodeId, Diagnostic>, location: &SourceLocation) -> Option<NodeId> {
        made.map_err(|d| self.faults.push(d.at(location))).ok()
    }

    fn push(&mut self, kind: TypedKind, dtype: DType, shape: u32, location: &SourceLocation) -> NodeId {
        let nodes = Arc::make_mut(&mut self.nodes);
        nodes.push(TypedNode { kind, dtype, shape, weak: false, location: location.clone() });
        nodes.len() as u32 - 1
    }

    /// The node, which promotes as a scalar does or not.
    fn weak(&mut self, id: NodeId, weak: bool) -> NodeId {
        if weak {
            Arc::make_mut(&mut self.nodes)[id as usize].weak = true;
        }
        id
    }

    /// The shape of a placeholder: each dynamic dim is a symbol, equal names are one symbol.
    fn declared(&mut self, feed: &Arc<str>, dims: &Dims) -> u32 {
        let mut shape = Vec::with_capacity(dims.0.len());
        for (axis, d) in dims.0.iter().enumerate() {
            let fresh = self.dyn_dims.len() as u32;
            let symbol = match d {
                Dim::Fixed(n) => {
                    shape.push(SymDim::Fixed(*n));
                    continue;
                }
                Dim::Dynamic => fresh,
                Dim::Named(name) => *self.named_dims.entry(name.clone()).or_insert(fresh),
            };
            if symbol == fresh {
                self.dyn_dims.push(DynDim::Fed { feed: feed.clone(), axis });
            }
            shape.push(SymDim::symbol(symbol));
        }
        self.shapes.id(&shape)
    }

    /// The operands of an application; `None` if one of them is faulty.
    fn operands(&self, state: &State, node: NodeIndex) -> Option<Operands> {
        let mut all = Operands::default();
        for input in state.operands(node).into_iter().flatten() {
            let (seen, node) = match input {
                Input::Scalar(s) => (OperandType::Scalar(s), None),
                Input::Node(i) => {
                    let id = self.known(i)?;
                    let n = &self.nodes[id as usize];
                    let zero_dim = self.shape(id).is_empty();
                    (OperandType::Tensor { dtype: n.dtype, zero_dim, weak: n.weak }, Some(id))
                }
            };
            all.seen.push(seen);
            all.nodes.push(node);
        }
        Some(all)
    }

    fn shape(&self, id: NodeId) -> &Arc<[SymDim]> {
        &self.shapes.list[self.nodes[id as usize].shape as usize]
    }

    fn apply(
        &mut self,
        op: Op,
        attrs: &Attrs,
        operands: Operands,
        location: &SourceLocation,
    ) -> Result<NodeId, Diagnostic> {
        let Operands { seen, mut nodes } = operands;
        let sig = signature(&self.settings, op, &seen, attrs).map_err(|d| self.with_shapes(d, &seen, &nodes))?;
        if let (Op::Cast, [OperandType::Scalar(s)]) = (op, &seen[..]) {
            return self.scalar(*s, sig.result, location);
        }
        if let [Some(from)] = nodes[..] {
            let TypedNode { dtype, shape, .. } = self.nodes[from as usize];
            if op == Op::Cast {
                let why = Why { op, operand: 0, other: None, reason: Reason::Requested };
                return Ok(self.push(TypedKind::Cast { from, why }, sig.result, shape, location));
            }
            if op == Op::ViewAs {
                if dtype.size() != sig.result.size() {
                    let message = format!("`{op}` of {dtype} as {}, which has another size", sig.result);
                    return Err(Diagnostic::new(DiagnosticKind::BadParameter, message));
                }
                return Ok(self.push(TypedKind::Bits { from }, sig.result, shape, location));
            }
            if op.is_reduction() {
                return self.reduce(op, attrs, from, &sig, &seen, location);
            }
            if op.is_line() {
                return self.line(op, attrs, from, &sig, &seen, location);
            }
        }
        if let Some(axis) = attrs.axis {
            self.place(op, axis, &mut nodes, location)?;
        }
        let shape = self.broadcast(op, &nodes, location)?;
        if op.def().promotion == Promotion::First {
            self.keeps_shape(op, &nodes, shape, location)?;
        }
        if attrs.loss == Some(LossShapes::Equal) {
            self.equal_shapes(op, &nodes)?;
        }
        let mut args: Args = [None; MAX_OPERANDS];
        for (i, (o, node)) in seen.iter().zip(nodes).enumerate() {
            let to = sig.operand(i);
            args[i] = match (*o, node) {
                (OperandType::Scalar(s), _) => Some(Arg::Scalar(scalar_operand(&self.settings, op, i, s, to), to)),
                (_, node) => node.map(|id| Arg::Node(self.cast(id, to, op, i, &seen, location))),
            };
        }
        let kind = TypedKind::Apply { op: sig.op, compute: sig.compute, args };
        let id = self.push(kind, sig.op.result(sig.compute), shape, location);
        let id = self.cast(id, sig.result, op, 0, &seen, location);
        Ok(self.weak(id, sig.weak))
    }

    /// What follows from the indices of another value's shape.
    fn generate(&mut self, g: Generator, like: NodeId, location: &SourceLocation) -> Result<NodeId, Diagnostic> {
        let dtype = generated(&self.settings, g)?;
        g.check(self.shape(like).len(), dtype)?;
        let shape = self.nodes[like as usize].shape;
        Ok(self.push(TypedKind::Generate { like, generator: g }, dtype, shape, location))
    }

    /// Blocks of a scale in the shape of another value.
    fn blocks(
        &mut self,
        size: &BlockSize,
        from: NodeId,
        like: NodeId,
        location: &SourceLocation,
    ) -> Result<NodeId, Diagnostic> {
        size.check(self.shape(from), self.shape(like))?;
        let TypedNode { dtype, weak, .. } = self.nodes[from as usize];
        let shape = self.nodes[like as usize].shape;
        let id = self.push(TypedKind::Blocks { from, like, size: size.clone() }, dtype, shape, location);
        Ok(self.weak(id, weak))
    }

    /// A scalar that is cast: a 0-d constant.
    fn scalar(&mut self, s: Scalar, to: DType, location: &SourceLocation) -> Result<NodeId, Diagnostic> {
        let s = scalar_operand(&self.settings, Op::Cast, 0, s, to);
        let beyond_is_nan = self.settings.rules.set().beyond_is_nan();
        let bits = convert_by(s.own_bits(), path_within(s.own_dtype(), to, beyond_is_nan));
        let tensor = Tensor::from_bytes(to, [], &bits.0[..to.size()])
            .map_err(|e| Diagnostic::new(DiagnosticKind::BadParameter, e.to_string()))?;
        let shape = self.shapes.id(&[]);
        Ok(self.push(TypedKind::Constant(tensor), to, shape, location))
    }

    /// The operand as the application wants it: itself, or a cast node with the reason.
    fn cast(
        &mut self,
        id: NodeId,
        to: DType,
        op: Op,
        operand: usize,
        seen: &[OperandType],
        location: &SourceLocation,
    ) -> NodeId {
        let (from, shape) = (self.nodes[id as usize].dtype, self.nodes[id as usize].shape);
        if from == to {
            return id;
        }
        let first = if op == Op::Where { 1 } else { 0 };
        let other = seen.iter().enumerate().skip(first).find(|(i, _)| *i != operand).map(|(_, o)| match o {
            OperandType::Tensor { dtype, .. } => Other::Tensor(*dtype),
            OperandType::Scalar(_) => Other::Scalar(category_of(o)),
        });
        let why = Why { op, operand: operand as u8, other, reason: reason(op, seen, from, to) };
        self.push(TypedKind::Cast { from: id, why }, to, shape, location)
    }

    /// Places the operand of lower rank of a binary op at an axis of the other, as a view.
    fn place(
        &mut self,
        op: Op,
        axis: i64,
        operands: &mut [Option<NodeId>],
        location: &SourceLocation,
    ) -> Result<(), Diagnostic> {
        let mut tensors: SmallVec<[&mut NodeId; MAX_OPERANDS]> = operands.iter_mut().flatten().collect();
        let [a, b] = &mut tensors[..] else {
            let message = format!("`{op}` with `axis` takes two tensors");
            return Err(Diagnostic::new(DiagnosticKind::Axis, message));
        };
        let (low, high) = if self.shape(**a).len() < self.shape(**b).len() { (a, **b) } else { (b, **a) };
        let (from, dims) = (**low, self.shape(**low).clone());
        let placed = at_axis(&dims, self.shape(high).len(), axis)
            .map_err(|m| Diagnostic::new(DiagnosticKind::Axis, format!("`{op}`: {m}")))?;
        if placed[..] != *dims {
            let (dtype, shape) = (self.nodes[from as usize].dtype, self.shapes.id(&placed));
            **low = self.push(TypedKind::View { from, view: None }, dtype, shape, location);
        }
        Ok(())
    }

    /// An operation in place can't give its tensor another shape. What only the feeds can decide is noted as a check.
    fn keeps_shape(
        &mut self,
        op: Op,
        operands: &[Option<NodeId>],
        shape: u32,
        location: &SourceLocation,
    ) -> Result<(), Diagnostic> {
        let Some(first) = operands.first().copied().flatten() else { return Ok(()) };
        let (from, to) = (self.shape(first).clone(), self.shapes.list[shape as usize].clone());
        let grows = |(a, b): (&SymDim, &SymDim)| a != b && matches!((a, b), (SymDim::Fixed(_), SymDim::Fixed(_)));
        if from.len() != to.len() || from.iter().zip(to.iter()).any(grows) {
            let (from, to) = (dims_text(&from), dims_text(&to));
            let message = format!("`{op}`: output with shape {from} doesn't match the broadcast shape {to}");
            return Err(Diagnostic::new(DiagnosticKind::Broadcast, message));
        }
        let differ = from.iter().zip(to.iter()).enumerate().filter(|(_, (a, b))| a != b);
        self.checks.extend(differ.map(|(axis, (a, b))| DimCheck {
            dims: (a.clone(), b.clone()),
            op: op.name(),
            axis,
            asked: Asked::Equal,
            location: location.clone(),
        }));
        Ok(())
    }

    /// Paddle's losses that do not broadcast. Dims that only the feeds will tell are taken to be equal.
    fn equal_shapes(&self, op: Op, operands: &[Option<NodeId>]) -> Result<(), Diagnostic> {
        let mut shapes = operands.iter().flatten().map(|id| self.shape(*id));
        let first = shapes.next();
        let differ = |a: &[SymDim], b: &[SymDim]| {
            let known = |(a, b): (&SymDim, &SymDim)| matches!((a, b), (SymDim::Fixed(m), SymDim::Fixed(n)) if m != n);
            a.len() != b.len() || a.iter().zip(b).any(known)
        };
        match (first, first.and_then(|f| shapes.find(|s| differ(f, s)))) {
            (Some(a), Some(b)) => {
                let message = format!("`{op}` wants equal shapes, not {} and {}", dims_text(a), dims_text(b));
                Err(Diagnostic::new(DiagnosticKind::Broadcast, message))
            }
            _ => Ok(()),
        }
    }

    /// The common shape of the operands; what only the feeds can decide is noted as a check.
    fn broadcast(&mut self, op: Op, operands: &[Option<NodeId>], location: &SourceLocation) -> Result<u32, Diagnostic> {
        let mut common: Option<u32> = None;
        for (i, id) in operands.iter().enumerate() {
            let Some(id) = *id else { continue };
            let next = self.nodes[id as usize].shape;
            common = Some(match common {
                None => next,
                Some(c) if c == next => c,
                Some(c) => match self.shapes.pairs.get(&(c, next)) {
                    Some(known) => *known,
                    None => self.broadcast_pair(op, c, next, &operands[..=i], location)?,
                },
            });
        }
        common.ok_or_else(|| Diagnostic::new(DiagnosticKind::BadParameter, format!("`{op}` of scalars alone")))
    }

    /// Two shapes broadcast: that of the operands so far, and that of the last of them.
    fn broadcast_pair(
        &mut self,
        op: Op,
        a: u32,
        b: u32,
        met: &[Option<NodeId>],
        location: &SourceLocation,
    ) -> Result<u32, Diagnostic> {
        let (x, y) = (self.shapes.list[a as usize].clone(), self.shapes.list[b as usize].clone());
        let shape = broadcast(&x, &y).map_err(|m| self.cannot_meet(op, met, m))?;
        let fixed: Vec<usize> = shape.iter().map(|d| if let SymDim::Fixed(n) = d { *n } else { 1 }).collect();
        if let Err(e) = check_within(&fixed, &self.limits) {
            return Err(Diagnostic::new(
                DiagnosticKind::Broadcast,
                format!("the result of `{op}`, {}: {e}", dims_text(&shape)),
            ));
        }
        for i in 0..x.len().min(y.len()) {
            let dims = (x[x.len() - 1 - i].clone(), y[y.len() - 1 - i].clone());
            let known = matches!(dims, (SymDim::Fixed(_), SymDim::Fixed(_))) || dims.0 == dims.1;
            if !known && self.checked.insert(dims.clone()) {
                self.checks.push(DimCheck {
                    dims,
                    op: op.name(),
                    axis: shape.len() - 1 - i,
                    asked: Asked::Broadcast,
                    location: location.clone(),
                });
            }
        }
        let id = self.shapes.id(&shape);
        self.shapes.pairs.insert((a, b), id);
        Ok(id)
    }

    /// The refusal of the last of these operands: it names the one before it whose dim is in the way.
    fn cannot_meet(&self, op: Op, met: &[Option<NodeId>], whole: Mismatch<SymDim>) -> Diagnostic {
        let mut before = met.iter().flatten().copied();
        let Some(last) = before.next_back() else {
            return Diagnostic::new(DiagnosticKind::Broadcast, format!("`{op}` misses an operand"));
        };
        let first = before.clone().next().unwrap_or(last);
        let pair = before.find_map(|id| Some((id, broadcast(self.shape(id), self.shape(last)).err()?)));
        let (other, m) = pair.unwrap_or((first, whole));
        let (l, r) = (self.typed_name(other), self.typed_name(last));
        let message =
            format!("cannot broadcast {l} with {r} in `{op}`: axis {} is {} vs {}", m.axis, m.dims.0, m.dims.1);
        Diagnostic::new(DiagnosticKind::Broadcast, message)
    }

    /// An operand with dtype and shape: `i32[3, 4]`.
    fn typed_name(&self, id: NodeId) -> String {
        let n = &self.nodes[id as usize];
        format!("{}{}", n.dtype, dims_text(self.shape(id)))
    }

    /// A refusal of dtypes with the operands' shapes in it.
    fn with_shapes(&self, mut d: Diagnostic, seen: &[OperandType], nodes: &[Option<NodeId>]) -> Diagnostic {
        if seen.len() > 1 {
            let name = |(o, node): (&OperandType, &Option<NodeId>)| match node {
                Some(id) => self.typed_name(*id),
                None => o.to_string(),
            };
            let all: Vec<String> = seen.iter().zip(nodes).map(name).collect();
            d.message += &format!(" (operands: {})", all.join(", "));
        }
        d
    }
}

impl TypedProgram {
    /// Whether the value's shape is known before the feeds are.
    pub fn is_static(&self, v: &Var) -> bool {
        self.shape(v).is_some_and(|s| s.iter().all(|d| matches!(d, SymDim::Fixed(_))))
    }
}

mod composites;
mod known;
mod lines;
mod reductions;
mod views;

#[cfg(test)]
mod tests;
