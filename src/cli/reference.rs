//! A typed program a second time, in f64: what it would give if nothing were rounded.
//!
//! Guarantees: every node has a counterpart: floats and integers in f64, complex numbers in c128, bool in bool; casts to
//! a wider category are numbers that stay, casts to a narrower one keep what they mean (an integer has no fraction, a
//! bool is whether a number is not zero). So an integer that wraps, saturates or loses digits differs from its
//! counterpart. Ops that have no f64 (the bitwise ones) stay in their dtype. Does not: say more than f64 can: integers
//! beyond 2^53 have no exact counterpart; nodes that are views or the bits of others are refused or taken as they are.

use castwise::shape::{Dim, Dims, SymDim};
use castwise::{
    Attrs, Category, DType, Error, Graph, Mode, NodeKind, NodeOperand, NodeView, Op, Operand, Program, Scalar,
    Settings, SourceLocation, TypedProgram, Var,
};

/// A program that holds a typed program and its counterparts.
pub(super) struct Mirror<'t> {
    nodes: Vec<NodeView<'t>>,
    pub(super) program: Program,
    /// Each node as it is computed.
    pub(super) low: Vec<Var>,
}

/// The dtype of a node's counterpart.
fn wide(d: DType) -> DType {
    match d.category() {
        Category::Bool => DType::Bool,
        Category::Int | Category::Float => DType::F64,
        Category::Complex => DType::C128,
    }
}

impl<'t> Mirror<'t> {
    /// The typed program anew, every cast written out. Its placeholders keep their names and dtypes.
    pub(super) fn new(typed: &'t TypedProgram) -> Result<Mirror<'t>, Error> {
        let nodes: Vec<NodeView<'t>> = typed.nodes().collect();
        let settings = Settings::new(typed.settings().rules).with_default_dtype(DType::F64);
        let program = Program::with_settings(settings);
        let mut low: Vec<Var> = Vec::with_capacity(nodes.len());
        for n in &nodes {
            let v = match &n.kind {
                NodeKind::Feed(name) => program.data(name, n.dtype, dims(n.shape)?),
                NodeKind::Constant(t) => program.constant((*t).clone()),
                NodeKind::Apply { op, operands, .. } => {
                    let operand = |o: &NodeOperand| match o {
                        NodeOperand::Node(i) => Operand::Var(low[*i].clone()),
                        NodeOperand::Scalar(s, _) => Operand::Scalar(*s),
                    };
                    Graph::apply(
                        *op,
                        &operands.iter().map(operand).collect::<Vec<_>>(),
                        Attrs::default(),
                        n.location.clone(),
                    )
                }
                NodeKind::Cast { from, .. } => low[*from].cast(n.dtype),
                NodeKind::Bits { from } => low[*from].view_as(n.dtype),
                NodeKind::Reduce { op, from, dims, keepdim } => reduce(*op, &low[*from], dims, *keepdim, n.location),
                _ => return Err(Error::Shape("a second evaluation in f64 does not know programs with views".into())),
            };
            low.push(v);
        }
        let mirror = Mirror { nodes, program, low };
        mirror.check()?;
        Ok(mirror)
    }

    /// The same dtypes as before: the casts that are written leave no other to be inserted.
    fn check(&self) -> Result<(), Error> {
        let typed = self.program.infer()?;
        for (v, n) in self.low.iter().zip(&self.nodes) {
            if typed.dtype(v) != Some(n.dtype) {
                return Err(Error::Internal(format!("a node of {} was typed as {:?}", n.dtype, typed.dtype(v))));
            }
        }
        Ok(())
    }

    /// A computed value in the dtype of its counterpart.
    pub(super) fn widened(&self, node: usize) -> Var {
        widen(&self.low[node], self.nodes[node].dtype)
    }

    /// The counterpart of a node, from those of its operands.
    pub(super) fn exact(&self, node: usize, of: &dyn Fn(usize) -> Var) -> Var {
        let n = &self.nodes[node];
        match &n.kind {
            NodeKind::Apply { op, compute, operands } => {
                let stays = compute.category() == Category::Int && !op.def().accepts.has(DType::F64);
                let operand = |o: &NodeOperand| match o {
                    NodeOperand::Scalar(s, _) => Operand::Scalar(*s),
                    NodeOperand::Node(i) if stays && self.nodes[*i].dtype == *compute => {
                        Operand::Var(of(*i).cast(*compute))
                    }
                    NodeOperand::Node(i) => Operand::Var(of(*i)),
                };
                let v = Graph::apply(
                    *op,
                    &operands.iter().map(operand).collect::<Vec<_>>(),
                    Attrs::default(),
                    n.location.clone(),
                );
                if stays { widen(&v, n.dtype) } else { v }
            }
            NodeKind::Cast { from, .. } => convert(&of(*from), self.nodes[*from].dtype, n.dtype),
            NodeKind::Bits { from } => widen(&of(*from).cast(self.nodes[*from].dtype).view_as(n.dtype), n.dtype),
            NodeKind::Reduce { op, from, dims, keepdim } => reduce(*op, &of(*from), dims, *keepdim, n.location),
            _ => self.widened(node),
        }
    }

    /// The counterparts of all nodes, if the first `computed` of them are taken as they were computed.
    pub(super) fn exact_after(&self, computed: usize) -> Vec<Var> {
        let mut all: Vec<Var> = Vec::with_capacity(self.nodes.len());
        for i in 0..self.nodes.len() {
            let v = if i < computed { self.widened(i) } else { self.exact(i, &|j| all[j].clone()) };
            all.push(v);
        }
        all
    }

    /// |a - b| of two counterparts of a node, and |b|, in f64.
    pub(super) fn error(&self, node: usize, a: &Var, b: &Var) -> [Var; 2] {
        if self.nodes[node].dtype == DType::Bool {
            return [a.ne(b).cast(DType::F64), b.ne(b).logical_not().cast(DType::F64)];
        }
        [(a - b).abs(), b.abs()]
    }
}

fn dims(shape: &[SymDim]) -> Result<Dims, Error> {
    let fixed = |d: &SymDim| match d {
        SymDim::Fixed(n) => Ok(Dim::Fixed(*n)),
        SymDim::Sym(_) => Err(Error::Internal("a dim without an extent".into())),
    };
    Ok(Dims(shape.iter().map(fixed).collect::<Result<_, Error>>()?))
}

fn reduce(op: Op, v: &Var, dims: &[usize], keepdim: bool, location: &SourceLocation) -> Var {
    let dims = dims.iter().map(|d| *d as i64).collect::<Vec<i64>>();
    let attrs = Attrs::dims(dims).with_keepdim(keepdim);
    Graph::apply(op, &[Operand::Var(v.clone())], attrs, location.clone())
}

fn widen(v: &Var, dtype: DType) -> Var {
    let to = wide(dtype);
    if to == dtype { v.clone() } else { v.cast(to) }
}

/// A counterpart of dtype `from` as one of dtype `to`.
fn convert(v: &Var, from: DType, to: DType) -> Var {
    let (from, to) = (from.category(), to.category());
    match to {
        _ if from == to => v.clone(),
        Category::Bool => v.ne(Scalar::Int(0)),
        Category::Complex => v.cast(DType::C128),
        _ if from == Category::Bool => v.cast(DType::F64),
        Category::Int if from == Category::Complex => v.real().trunc(),
        Category::Int => v.trunc(),
        Category::Float if from == Category::Complex => v.real(),
        Category::Float => v.clone(),
    }
}
