//! Passes: from a typed program to another program, node by node.
//!
//! A pass is a function that is shown each node in turn, with the counterparts that it has given to the nodes before it, and
//! gives this one's: a handle of the new program. What does not concern it, it [copies](Visit::copy).
//!
//! Guarantees: every node is visited once, operands before their uses, without recursion; what a pass builds for a node has the
//! node's source location; copying every node gives the same program, with the same text, types, locations, limits and
//! results; with [`Visit::copy_explicit`] one in which every node has its dtype and bits, and no conversion is left to
//! inference; constants are shared, not copied. Does not: type the new program, whose mistakes come out of `infer` as any
//! program's; drop nodes that nothing uses.

use petgraph::graph::NodeIndex;

use crate::base::composite::Composite;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::indexing::Indexing;
use crate::base::location::{here, with_location};
use crate::base::scalar::Scalar;
use crate::base::shape::SymDim;
use crate::base::view::View;
use crate::graph::program::{Input, Kind, Program, State};
use crate::graph::typed::{NodeId, TypedKind, TypedNode, TypedProgram};
use crate::graph::var::{Graph, Mode, Operand, Var};
use crate::graph::view::{NodeKind, NodeOperand, NodeView};
use crate::ops::{Attrs, MAX_OPERANDS, Op};
use crate::promotion::Reason;

/// What [`TypedProgram::rewrite`] made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rewritten {
    /// The new program.
    pub program: Program,
    /// The counterpart of each node, at the node's position.
    pub vars: Vec<Var>,
}

/// A node of a typed program, as a pass is shown it.
#[derive(Debug)]
pub struct Visit<'a> {
    typed: &'a TypedProgram,
    program: &'a Program,
    vars: &'a [Var],
    /// The node of the source program that the typed node was made for.
    written: Option<&'a Kind>,
    state: &'a State,
    /// Its index there.
    index: NodeIndex,
    node: NodeView<'a>,
}

impl TypedProgram {
    /// Builds a program with the same settings and limits by a pass, which gives each node its counterpart. The counterparts
    /// of this program's results, by the same names, are the new one's. An error of the pass ends it.
    ///
    /// ```
    /// use castwise::{NodeKind, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F16, [None]);
    /// let y = (&x * 300.0).sqrt();
    ///
    /// // The same in f32: the placeholder is cast, and inference gives the ops that are copied the dtypes that follow.
    /// let wide = p.infer()?.rewrite(|node| match node.view().kind {
    ///     NodeKind::Feed(_) => Ok(node.copy()?.cast(DType::F32)),
    ///     _ => node.copy(),
    /// })?;
    ///
    /// let feeds = feeds! { "x" => Tensor::from([f16::from_f32(300.0)]) };
    /// let narrow = Executor::new().run(&p, feeds.clone(), [&y])?;
    /// let wide = Executor::new().run(&wide.program, feeds, [&wide.program.fetches()[0].var])?;
    /// assert_eq!(narrow[0].item::<f16>()?, f16::INFINITY);
    /// assert_eq!(wide[0].item::<f32>()?, 300.0);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn rewrite(&self, pass: impl FnMut(&Visit<'_>) -> Result<Var>) -> Result<Rewritten> {
        let program = self.program.like();
        let vars = self.rewrite_into(&program, pass)?;
        let fetched = self.fetches().into_iter().map(|(name, n)| Ok((name, program.node_of(&vars[n as usize])?)));
        program.declare(fetched.collect::<Result<_>>()?);
        Ok(Rewritten { program, vars })
    }

    /// Lets a pass build in a program that is there, which may be the typed one, and gives the counterpart of each node, at the
    /// node's position. Declares no results.
    ///
    /// ```
    /// use castwise::{NodeKind, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [3]).exp();
    /// // The same once more, of twice the placeholder.
    /// let typed = p.infer()?;
    /// let again = typed.rewrite_into(&p, |node| match node.view().kind {
    ///     NodeKind::Feed(name) => Ok(p.feed(name).map_or_else(|| node.copy(), Ok)? * 2),
    ///     _ => node.copy(),
    /// })?;
    /// let both = y + &again[1];
    /// assert_eq!(p.infer()?.dtype(&both), Some(DType::F32));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn rewrite_into(&self, program: &Program, mut pass: impl FnMut(&Visit<'_>) -> Result<Var>) -> Result<Vec<Var>> {
        let state = self.program.shared.read();
        let mut vars = Vec::with_capacity(self.nodes.len());
        let mut written = 0;
        for (position, node) in self.nodes().enumerate() {
            // The conversions and views that an application needs stand before it, that of its result behind it.
            while self.of_program.get(written).is_some_and(|last| (*last as usize) < position) {
                written += 1;
            }
            let index = NodeIndex::new(written);
            let kind = state.nodes.node_weight(index).map(|n| &n.kind);
            let visit = Visit { typed: self, program, vars: &vars, written: kind, state: &state, index, node };
            let var = with_location(visit.node.location.clone(), || pass(&visit))?;
            vars.push(var);
        }
        Ok(vars)
    }
}

impl<'a> Visit<'a> {
    /// The node's position in [`TypedProgram::nodes`].
    pub fn position(&self) -> usize {
        self.vars.len()
    }

    /// The node.
    pub fn view(&self) -> &NodeView<'a> {
        &self.node
    }

    /// The program that is built.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// The attributes that the application was written with, or that a composite's row has; of a conversion or view that inference
    /// inserted those of the application that it serves.
    pub fn attrs(&self) -> Attrs {
        match (self.written, &self.node.kind) {
            (Some(Kind::Apply { attrs, .. }), _) => attrs.clone(),
            (Some(Kind::Composite { .. }), NodeKind::Reduce { dims, keepdim, number, .. }) => {
                let dims: Vec<i64> = dims.iter().map(|d| *d as i64).collect();
                Attrs { number: number.map(Into::into), ..Attrs::dims(dims).with_keepdim(*keepdim) }
            }
            _ => Attrs::default(),
        }
    }

    /// The counterpart of an earlier node. Error: the node is no earlier one.
    pub fn var(&self, position: usize) -> Result<&'a Var> {
        let late = || Error::Shape(format!("the node {position} is not before the node {}", self.position()));
        self.vars.get(position).ok_or_else(late)
    }

    /// What the node is made of, in the new program: the counterparts of nodes, and the scalars in between.
    pub fn operands(&self) -> Result<Vec<Operand>> {
        let operand = |o: &NodeOperand| match o {
            NodeOperand::Node(i) => self.var(*i).map(Operand::from),
            NodeOperand::Scalar(s, _) => Ok(Operand::Scalar(*s)),
        };
        match &self.node.kind {
            NodeKind::Apply { operands, .. } => operands.iter().map(operand).collect(),
            kind => kind.inputs().iter().map(|i| self.var(*i).map(Operand::from)).collect(),
        }
    }

    /// The node as the user wrote it. What inference inserted is left to inference: the counterpart of a conversion or a view that
    /// nobody wrote is that of what it converts or views.
    pub fn copy(&self) -> Result<Var> {
        match (self.written, &self.node.kind) {
            (Some(Kind::Composite { composite, scalars }), _) if composite.kind.is_of_shapes() => {
                self.of_shapes(composite, scalars)
            }
            (_, NodeKind::View { from, view: Some(view) }) => {
                Ok(Graph::view(&self.var(*from)?.0, (*view).clone(), here()))
            }
            (_, NodeKind::Blocks { from, like, size }) => {
                Ok(Graph::blocks(&self.var(*from)?.0, &self.var(*like)?.0, (*size).clone(), here()))
            }
            (_, NodeKind::Indexed { how, from, index, like, dim }) => {
                let made = Composite::indexing(*how, *dim as i64);
                let like = (*how != Indexing::Take).then_some(*like);
                let rest = index.iter().copied().chain(like);
                let all = std::iter::once(*from).chain(rest).map(|i| self.var(i).map(Operand::from));
                let all = all.collect::<Result<Vec<_>>>()?;
                Ok(Graph::composite(&self.var(*from)?.0, &made, &all, here()))
            }
            (_, NodeKind::Generate { like, generator }) => Ok(Graph::generate(&self.var(*like)?.0, *generator, here())),
            (_, NodeKind::View { from, view: None }) => self.var(*from).cloned(),
            (_, NodeKind::Cast { from, note }) if note.reason != Reason::Requested => self.var(*from).cloned(),
            (Some(Kind::Data { name, dtype, dims }), NodeKind::Feed(_)) => {
                Ok(self.program.data_at(name, *dtype, dims.clone(), here(), self.is_weak()))
            }
            (Some(Kind::Apply { scalars: [Some(s), ..], .. }), NodeKind::Constant(_)) => {
                Ok(self.program.scalar(*s, self.node.dtype))
            }
            (Some(Kind::Composite { .. }), NodeKind::Constant(t)) => Ok(self.program.constant((*t).clone())),
            (_, NodeKind::Constant(t)) => Ok(self.program.constant_at((*t).clone(), here(), self.is_weak())),
            (Some(Kind::Apply { op, attrs, scalars }), _) => {
                let mut operands = self.operands()?;
                for (o, written) in operands.iter_mut().zip(scalars) {
                    if let Some(s) = written {
                        *o = Operand::Scalar(*s);
                    }
                }
                Ok(Graph::apply(*op, &operands, attrs.clone(), here()))
            }
            // A row of a composite.
            (Some(Kind::Composite { .. }), _) => self.row(),
            _ => Err(Error::Internal(format!("no node was written for the typed node {}", self.position()))),
        }
    }

    /// A composite whose rows depend on shapes: it is written again where its last row is; the counterparts of the others are not used.
    fn of_shapes(&self, composite: &Composite, scalars: &[Option<Scalar>; MAX_OPERANDS]) -> Result<Var> {
        let counterpart = |n: NodeIndex| self.var(self.typed.of_program[n.index()] as usize);
        let mut operands: Vec<Operand> = Vec::new();
        for (k, input) in self.state.operands(self.index).into_iter().enumerate() {
            operands.extend(match (input, scalars[k]) {
                (Some(Input::Node(n)), _) => Some(counterpart(n)?.into()),
                (_, scalar) => scalar.map(Operand::Scalar),
            });
        }
        match operands.first() {
            Some(Operand::Var(first)) if self.typed.of_program[self.index.index()] as usize == self.position() => {
                Ok(Graph::composite(&first.0, composite, &operands, here()))
            }
            Some(Operand::Var(first)) => Ok(first.clone()),
            _ => Err(Error::Internal("a composite of numbers".into())),
        }
    }

    /// A row of a composite whose rows depend on shapes, if all shapes are known: it is as it was typed, whatever shapes the operands'
    /// counterparts have. Otherwise [`of_shapes`](Visit::of_shapes).
    fn row_of_shapes(&self, composite: &Composite, scalars: &[Option<Scalar>; MAX_OPERANDS]) -> Result<Var> {
        if !self.typed.shapes.iter().flat_map(|s| s.iter()).all(|d| matches!(d, SymDim::Fixed(_))) {
            return self.of_shapes(composite, scalars);
        }
        match &self.node.kind {
            NodeKind::Constant(t) => Ok(self.program.constant((*t).clone())),
            NodeKind::View { from, view: Some(view) } => Ok(Graph::view(&self.var(*from)?.0, (*view).clone(), here())),
            NodeKind::View { from, view: None } => self.with_ones(*from),
            _ => self.row(),
        }
    }

    /// The counterpart of `from` with the dims of extent 1 that the node has more than that, where a reduction removed them.
    fn with_ones(&self, from: usize) -> Result<Var> {
        let mut left = self.typed.shape_of(from as NodeId).iter().peekable();
        let mut made = self.var(from)?.clone();
        for (axis, d) in self.node.shape.iter().enumerate() {
            if left.next_if_eq(&d).is_none() {
                made = Graph::view(&made.0, View::Unsqueeze(axis as i64), here());
            }
        }
        Ok(made)
    }

    /// A row that inference wrote for a composite.
    fn row(&self) -> Result<Var> {
        let (op, attrs) = match &self.node.kind {
            NodeKind::Apply { op, .. } => (*op, Attrs::default()),
            NodeKind::Cast { .. } => (Op::Cast, Attrs::cast(self.node.dtype)),
            NodeKind::Reduce { op, .. } => {
                // As `dot` sums integers.
                let dtype =
                    (op.result(self.node.dtype) == self.node.dtype && self.node.dtype.is_integral() && *op == Op::Sum)
                        .then_some(self.node.dtype);
                (*op, Attrs { dtype, ..self.attrs() })
            }
            _ => return Err(Error::Internal("no row of a composite".into())),
        };
        Ok(Graph::apply(op, &self.operands()?, attrs, here()))
    }

    /// The node as it was typed: a conversion is a cast, and what is applied or reduced keeps its dtype if the operands'
    /// counterparts have theirs. (A 0-d operand that PyTorch's rules take in op math is given as it was before its conversion.) The counterpart of a view that
    /// inference placed is that of what it views, as an application places its operands itself.
    pub fn copy_explicit(&self) -> Result<Var> {
        if let Some(Kind::Composite { composite, scalars }) = self.written
            && composite.kind.is_of_shapes()
        {
            return self.row_of_shapes(composite, scalars);
        }
        let (dtype, attrs) = (self.node.dtype, self.attrs());
        let (op, attrs) = match &self.node.kind {
            NodeKind::Apply { op, .. } => (*op, attrs),
            NodeKind::Cast { .. } => (Op::Cast, Attrs::cast(dtype)),
            NodeKind::Bits { .. } => (Op::ViewAs, Attrs::cast(dtype)),
            // The dtype that it was given may be another: `any` to u8 combines bools, and casts them afterwards.
            NodeKind::Reduce { op, from, .. } | NodeKind::Line { op, from, .. } => {
                (*op, attrs.with_dtype(self.typed.nodes[*from].dtype))
            }
            NodeKind::Generate { like, generator } => {
                let mut typed = *generator;
                if let Some(to) = typed.dtype_mut() {
                    *to = Some(dtype);
                }
                return Ok(Graph::generate(&self.var(*like)?.0, typed, here()));
            }
            NodeKind::Feed(_)
            | NodeKind::Constant(_)
            | NodeKind::View { .. }
            | NodeKind::Extent { .. }
            | NodeKind::Blocks { .. }
            | NodeKind::Indexed { .. } => {
                return self.copy();
            }
        };
        let mut operands = self.operands()?;
        if let NodeKind::Apply { compute, operands: typed, .. } = &self.node.kind {
            for (o, typed) in operands.iter_mut().zip(typed) {
                if let Some(from) = self.wide(typed, *compute) {
                    *o = self.var(from)?.into();
                }
            }
        }
        Ok(Graph::apply(op, &operands, attrs, here()))
    }

    /// What an operand was converted from, if it was to another dtype than the application computes in: PyTorch takes a 0-d operand
    /// of some ops in op math, without rounding it to a half dtype. No cast that is written says so.
    fn wide(&self, operand: &NodeOperand, compute: DType) -> Option<usize> {
        let NodeOperand::Node(i) = operand else { return None };
        match self.typed.nodes.get(*i)? {
            TypedNode { kind: TypedKind::Cast { from, why }, dtype, .. }
                if why.reason != Reason::Requested && *dtype == compute.op_math() && *dtype != compute =>
            {
                Some(*from as usize)
            }
            _ => None,
        }
    }

    /// Whether the value promotes as a scalar does.
    fn is_weak(&self) -> bool {
        self.typed.nodes[self.position()].weak
    }
}

#[cfg(test)]
mod tests;
