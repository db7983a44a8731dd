//! The nodes of a typed program, for code that reads programs: drawings, analyses, other back ends.
//!
//! Guarantees: operands come before their uses, every conversion is a node. Does not: change a program.

use crate::base::blocks::BlockSize;
use crate::base::dtype::DType;
use crate::base::error::SourceLocation;
use crate::base::generator::Generator;
use crate::base::indexing::Indexing;
use crate::base::scalar::Scalar;
use crate::base::shape::SymDim;
use crate::base::view::View;
use crate::graph::typed::{Arg, CastNote, NodeId, TypedKind, TypedProgram};
use crate::graph::var::Var;
use crate::ops::{Choice, Op};
use crate::tensor::Tensor;

/// One node of a typed program.
#[derive(Clone, Debug)]
pub struct NodeView<'p> {
    /// What it is.
    pub kind: NodeKind<'p>,
    /// The dtype of its value.
    pub dtype: DType,
    /// Whether its value is weak: it promotes as a scalar does.
    pub weak: bool,
    /// The shape of its value.
    pub shape: &'p [SymDim],
    /// Where the user wrote it, or the op that it serves.
    pub location: &'p SourceLocation,
}

/// What a typed node is. Nodes are spoken of by their position in [`TypedProgram::nodes`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NodeKind<'p> {
    /// A placeholder of this name.
    Feed(&'p str),
    /// A tensor that is part of the program.
    Constant(&'p Tensor),
    /// An application of an op, in a compute dtype that its operands have.
    Apply {
        /// The op.
        op: Op,
        /// The dtype it is applied in.
        compute: DType,
        /// Its operands.
        operands: Vec<NodeOperand>,
    },
    /// A conversion.
    Cast {
        /// What is converted.
        from: usize,
        /// Why, and what it may lose.
        note: CastNote,
    },
    /// The same bits under another dtype.
    Bits {
        /// Whose bits.
        from: usize,
    },
    /// The elements combined along dims.
    Reduce {
        /// The reduction.
        op: Op,
        /// What is reduced.
        from: usize,
        /// Which dims.
        dims: &'p [usize],
        /// Whether they stay, with extent 1.
        keepdim: bool,
        /// The number of an op that takes one: the correction of `var`, the order of `norm`.
        number: Option<f64>,
        /// The choice of an op that takes one: the interpolation of `quantile`.
        choice: Option<Choice>,
    },
    /// An op on the lines along a dim.
    Line {
        /// The op.
        op: Op,
        /// Whose lines.
        from: usize,
        /// Which dim; 0 for a 0-d value, whose line has one element.
        dim: usize,
        /// The number of an op that takes one.
        number: Option<f64>,
        /// The choice of an op that takes one.
        choice: Option<Choice>,
    },
    /// The number of elements along dims of a value: f64, 0-d.
    Extent {
        /// Those dims of its shape.
        dims: Vec<SymDim>,
    },
    /// The same elements under other dims.
    View {
        /// Whose elements.
        from: usize,
        /// The view that was written; `None` if inference placed an operand, by dims of extent 1.
        view: Option<&'p View>,
    },
    /// What follows from the index of each element.
    Generate {
        /// The node that has its shape, and whose elements are not used.
        like: usize,
        /// What follows.
        generator: Generator,
    },
    /// The elements moved along a dim.
    Indexed {
        /// How.
        how: Indexing,
        /// Whose elements.
        from: usize,
        /// Where they are moved from or to: i64.
        index: Option<usize>,
        /// The node whose extent the dim has, and whose elements are not used; of `take_along_dim` what is moved.
        like: usize,
        /// Which dim; 0 for a 0-d value.
        dim: usize,
    },
    /// Each element of a scale for all elements of a block.
    Blocks {
        /// The scale.
        from: usize,
        /// The node that has its shape, and whose elements are not used.
        like: usize,
        /// The size of the blocks.
        size: &'p BlockSize,
    },
}

/// An operand of an application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NodeOperand {
    /// The node at this position.
    Node(usize),
    /// A scalar, converted to this dtype.
    Scalar(Scalar, DType),
}

impl NodeKind<'_> {
    /// The positions of the nodes that it uses, in order.
    pub fn inputs(&self) -> Vec<usize> {
        match self {
            NodeKind::Feed(_) | NodeKind::Constant(_) | NodeKind::Generate { .. } | NodeKind::Extent { .. } => {
                Vec::new()
            }
            NodeKind::Apply { operands, .. } => {
                let node = |o: &NodeOperand| if let NodeOperand::Node(n) = o { Some(*n) } else { None };
                operands.iter().filter_map(node).collect()
            }
            NodeKind::Indexed { from, index, .. } => std::iter::once(*from).chain(*index).collect(),
            NodeKind::Cast { from, .. }
            | NodeKind::Bits { from }
            | NodeKind::Reduce { from, .. }
            | NodeKind::Line { from, .. }
            | NodeKind::Blocks { from, .. }
            | NodeKind::View { from, .. } => vec![*from],
        }
    }
}

impl TypedProgram {
    /// Every node, operands before their uses.
    ///
    /// ```
    /// use castwise::{NodeKind, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let _ = p.data("a", DType::I32, [2]) * p.data("b", DType::F32, [2]);
    /// let typed = p.infer()?;
    /// let nodes: Vec<_> = typed.nodes().collect();
    /// assert!(matches!(&nodes[2].kind, NodeKind::Cast { from: 0, note } if note.to == DType::F32));
    /// assert_eq!(nodes[3].kind.inputs(), [2, 1]);
    /// assert_eq!(typed.results(), [3]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeView<'_>> {
        (0..self.nodes.len()).map(|i| self.view(i as NodeId))
    }

    fn view(&self, id: NodeId) -> NodeView<'_> {
        let n = &self.nodes[id as usize];
        let kind = match &n.kind {
            TypedKind::Feed(name) => NodeKind::Feed(name),
            TypedKind::Constant(t) => NodeKind::Constant(t),
            TypedKind::Apply { op, compute, args } => {
                let operand = |a: &Arg| match a {
                    Arg::Node(i) => NodeOperand::Node(*i as usize),
                    Arg::Scalar(s, d) => NodeOperand::Scalar(*s, *d),
                };
                let operands = args.iter().flatten().map(operand).collect();
                NodeKind::Apply { op: *op, compute: *compute, operands }
            }
            TypedKind::Cast { from, why } => {
                let plain = || CastNote {
                    op: why.op,
                    operand: why.operand.into(),
                    from: n.dtype,
                    to: n.dtype,
                    reason: why.reason,
                    loss: crate::promotion::CastLoss::Exact,
                    location: n.location.clone(),
                };
                NodeKind::Cast { from: *from as usize, note: self.cast_note(n).unwrap_or_else(plain) }
            }
            TypedKind::Bits { from } => NodeKind::Bits { from: *from as usize },
            TypedKind::Extent { shape, axes } => {
                let dims = &self.shapes[*shape as usize];
                NodeKind::Extent { dims: axes.iter().map(|a| dims[*a].clone()).collect() }
            }
            TypedKind::Reduce { op, from, axes, keep, number, choice } => {
                let (number, choice) = (number.map(|n| n.get()), *choice);
                NodeKind::Reduce { op: *op, from: *from as usize, dims: axes, keepdim: *keep, number, choice }
            }
            TypedKind::Line { op, from, axis, number, choice } => {
                let (number, choice) = (number.map(|n| n.get()), *choice);
                NodeKind::Line { op: *op, from: *from as usize, dim: *axis, number, choice }
            }
            TypedKind::View { from, view } => NodeKind::View { from: *from as usize, view: view.as_ref() },
            TypedKind::Indexed { how, from, index, like, axis } => NodeKind::Indexed {
                how: *how,
                from: *from as usize,
                index: index.map(|i| i as usize),
                like: *like as usize,
                dim: *axis,
            },
            TypedKind::Blocks { from, like, size } => {
                NodeKind::Blocks { from: *from as usize, like: *like as usize, size }
            }
            TypedKind::Generate { like, generator } => {
                NodeKind::Generate { like: *like as usize, generator: *generator }
            }
        };
        NodeView { kind, dtype: n.dtype, weak: n.weak, shape: self.shape_of(id), location: &n.location }
    }

    /// The positions of the nodes that no other node uses.
    pub fn results(&self) -> Vec<usize> {
        let mut used = vec![false; self.nodes.len()];
        self.nodes.iter().flat_map(|n| n.inputs()).for_each(|i| used[i as usize] = true);
        (0..used.len()).filter(|i| !used[*i]).collect()
    }

    /// The position of a value's node; `None` as for [`dtype`](TypedProgram::dtype).
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("x", DType::F32, [2]).exp();
    /// let typed = p.infer()?;
    /// assert_eq!(typed.position(&y), Some(1));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn position(&self, v: &Var) -> Option<usize> {
        self.node(v).ok().map(|n| n as usize)
    }
}
