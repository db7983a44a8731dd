//! `TypedProgram`: every node with its dtype and shape, every conversion a `cast` node with its reason.
//!
//! Guarantees, checked by [`TypedProgram::verify`]:
//! 1. an operand comes before the node that uses it;
//! 2. the operands of an application have the application's compute dtype (a scalar may be in its op math, the
//!    condition of `where` is bool): no conversion is left implicit;
//! 3. an application's dtype is the one the op table derives from its compute dtype;
//! 4. an application's shape is the broadcast of its operands' shapes; a cast keeps its operand's shape;
//! 5. a reduction has the dtype that the op table derives from its operand's (one to positions or counts any integer dtype), and its shape without the reduced dims (or with ones there);
//!    an op on lines has such a dtype, and its operand's shape; what moves elements along a dim has its operand's dtype, and the extent
//!    there that its index or what it is like has;
//! 6. a view has its operand's dtype and the shape that the view gives, or differs from it in dims of extent 1 only, if inference
//!    placed it;
//! 7. a scalar has a dtype.
//!
//! Does not: know which nodes are fetched, or how they are computed.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::base::blocks::BlockSize;
use crate::base::dtype::DType;
use crate::base::error::{Error, Name, Result, SourceLocation};
use crate::base::generator::Generator;
use crate::base::host::FloatMode;
use crate::base::indexing::Indexing;
use crate::base::scalar::Scalar;
use crate::base::shape::{SymDim, dims_text};
use crate::base::view::{Slice, View};
use crate::graph::program::{Fetched, Program};
use crate::graph::var::Var;
use crate::ops::{Choice, MAX_OPERANDS, Number, Op};
use crate::promotion::{CastLoss, Reason, Settings};
use crate::tensor::Tensor;

/// Index of a typed node.
pub(crate) type NodeId = u32;

/// A result of a typed program: its name, if it has one, and its node.
pub(crate) type TypedFetch = (Option<Arc<str>>, NodeId);

/// An operand of a typed node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arg {
    Node(NodeId),
    /// A scalar that inference gave a dtype: its value is converted to it before the op.
    Scalar(Scalar, DType),
}

/// What a typed node is.
#[derive(Clone, Debug)]
pub(crate) enum TypedKind {
    Feed(Arc<str>),
    Constant(Tensor),
    Apply {
        op: Op,
        compute: DType,
        args: Args,
    },
    Cast {
        from: NodeId,
        why: Why,
    },
    /// The same bits under another dtype of the same size.
    Bits {
        from: NodeId,
    },
    /// The elements combined along dims.
    Reduce {
        op: Op,
        from: NodeId,
        axes: Arc<[usize]>,
        keep: bool,
        /// The number of an op that takes one.
        number: Option<Number>,
        /// The choice of an op that takes one.
        choice: Option<Choice>,
    },
    /// An op on the lines along a dim; those of a 0-d operand have one element. The result has the operand's dims, maybe of
    /// another extent along that one.
    Line {
        op: Op,
        from: NodeId,
        axis: usize,
        /// The number of an op that takes one: where it counts elements, the result's extent along the dim.
        number: Option<Number>,
        /// The choice of an op that takes one.
        choice: Option<Choice>,
    },
    /// The number of elements along some dims of a shape, in f64.
    Extent {
        shape: u32,
        axes: Arc<[usize]>,
    },
    /// The same elements under other dims: a view of the program's; or with other dims of extent 1, if inference placed an
    /// operand.
    View {
        from: NodeId,
        view: Option<View>,
    },
    /// What follows from the index of each element, in the shape of another node, whose elements are not needed.
    Generate {
        like: NodeId,
        generator: Generator,
    },
    /// The elements moved along a dim, which has the extent that it has in another node, whose elements are not needed.
    Indexed {
        how: Indexing,
        from: NodeId,
        /// Where they are moved from or to, in i64.
        index: Option<NodeId>,
        like: NodeId,
        axis: usize,
    },
    /// Each element of a scale for all elements of a block, in the shape of another node, whose elements are not needed.
    Blocks {
        from: NodeId,
        like: NodeId,
        size: BlockSize,
    },
}

/// Up to three operands.
pub(crate) type Args = [Option<Arg>; MAX_OPERANDS];

/// Why a cast is there: the application it serves and the rule behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) op: Op,
    pub(crate) operand: u8,
    /// The other promoted operand's dtype, or category as a scalar.
    pub(crate) other: Option<Other>,
    pub(crate) reason: Reason,
}

/// The other operand of a cast's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    Tensor(DType),
    Scalar(crate::base::dtype::Category),
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Other::Tensor(d) => write!(f, "{d}"),
            Other::Scalar(c) => write!(f, "~{c}"),
        }
    }
}

/// A node with its type.
#[derive(Clone, Debug)]
pub(crate) struct TypedNode {
    pub(crate) kind: TypedKind,
    pub(crate) dtype: DType,
    pub(crate) shape: u32,
    /// Whether the value promotes as a scalar does.
    pub(crate) weak: bool,
    pub(crate) location: SourceLocation,
}

impl TypedKind {
    /// The node whose shape is taken.
    pub(super) fn like(&self) -> Option<NodeId> {
        match self {
            TypedKind::Generate { like, .. } | TypedKind::Blocks { like, .. } | TypedKind::Indexed { like, .. } => {
                Some(*like)
            }
            _ => None,
        }
    }

    /// Replaces the operands that are nodes, and the nodes whose shapes are taken.
    pub(crate) fn replace_inputs(&mut self, to: impl Fn(NodeId) -> NodeId) {
        match self {
            TypedKind::Apply { args, .. } => args.iter_mut().flatten().for_each(|a| {
                if let Arg::Node(n) = a {
                    *n = to(*n);
                }
            }),
            TypedKind::Cast { from, .. }
            | TypedKind::Bits { from }
            | TypedKind::View { from, .. }
            | TypedKind::Line { from, .. }
            | TypedKind::Reduce { from, .. } => *from = to(*from),
            TypedKind::Generate { like, .. } => *like = to(*like),
            TypedKind::Blocks { from, like, .. } => (*from, *like) = (to(*from), to(*like)),
            TypedKind::Indexed { from, index, like, .. } => {
                (*from, *index, *like) = (to(*from), index.map(&to), to(*like));
            }
            TypedKind::Feed(_) | TypedKind::Constant(_) | TypedKind::Extent { .. } => {}
        }
    }
}

impl TypedNode {
    /// The operands that are nodes.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = NodeId> + '_ {
        let (args, from) = match &self.kind {
            TypedKind::Apply { args, .. } => (&args[..], [None; 2]),
            TypedKind::Indexed { from, index, .. } => (&[][..], [Some(*from), *index]),
            TypedKind::Cast { from, .. }
            | TypedKind::Bits { from }
            | TypedKind::View { from, .. }
            | TypedKind::Blocks { from, .. }
            | TypedKind::Line { from, .. }
            | TypedKind::Reduce { from, .. } => (&[][..], [Some(*from), None]),
            _ => (&[][..], [None; 2]),
        };
        let nodes = args.iter().flatten().filter_map(|a| match a {
            Arg::Node(n) => Some(*n),
            Arg::Scalar(..) => None,
        });
        nodes.chain(from.into_iter().flatten())
    }
}

/// A dynamic dim.
#[derive(Clone, Debug)]
pub(crate) enum DynDim {
    /// An extent of a feed: where it was declared first.
    Fed { feed: Arc<str>, axis: usize },
    /// A slice of a dim whose symbols come before this one.
    Sliced { of: SymDim, slice: Slice },
    /// How often one dim, which is 1 or the other, is in the other: their symbols come before this one.
    Quotient { of: SymDim, by: SymDim },
}

/// What is asked of two dims that may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// That they are equal or one of them is 1.
    Broadcast,
    /// That the first one is 1 or the second.
    Into,
    /// That they are equal.
    Equal,
}

/// Two dims of which something is asked once they are known, and the name of the op or view that asks.
#[derive(Clone, Debug)]
pub(crate) struct DimCheck {
    pub(crate) dims: (SymDim, SymDim),
    pub(crate) op: &'static str,
    pub(crate) axis: usize,
    pub(crate) asked: Asked,
    pub(crate) location: SourceLocation,
}

/// One cast of a typed program, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastNote {
    /// The op that needed the cast; `cast` if the user wrote it.
    pub op: Op,
    /// Which of its operands was cast.
    pub operand: usize,
    /// The dtype before.
    pub from: DType,
    /// The dtype after.
    pub to: DType,
    /// The rule behind it.
    pub reason: Reason,
    /// What it may lose.
    pub loss: CastLoss,
    /// Where the user wrote the op.
    pub location: SourceLocation,
}

/// An op whose result is weak although none of its operands is a weak tensor, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WeakNote {
    /// The op.
    pub op: Op,
    /// Its operands: a dtype each, or a scalar.
    pub operands: Vec<String>,
    /// The dtype of the result.
    pub dtype: DType,
    /// Where the user wrote the op.
    pub location: SourceLocation,
}

impl fmt::Display for WeakNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WeakNote { op, operands, dtype, .. } = self;
        write!(f, "weak {} {dtype}* from {op} of {}", dtype.category(), operands.join(" and "))
    }
}

/// A program after inference. `Display` prints it as text, one node a line, the reasons of casts as comments.
///
/// ```
/// use castwise::{CastLoss, prelude::*};
/// let p = Program::new(Rules::Torch);
/// let y = p.data("i", DType::I64, [None, Some(3)]) * p.data("f", DType::F32, [3]);
/// let typed = p.infer()?;
/// assert_eq!(typed.dtype(&y), Some(DType::F32));
/// let casts = typed.casts();
/// assert_eq!((casts[0].from, casts[0].to, casts[0].loss), (DType::I64, DType::F32, CastLoss::Rounds));
/// println!("{typed}");
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TypedProgram {
    pub(crate) settings: Settings,
    pub(crate) nodes: Arc<Vec<TypedNode>>,
    /// The distinct shapes; nodes hold indices into it.
    pub(crate) shapes: Vec<Arc<[SymDim]>>,
    pub(crate) dyn_dims: Vec<DynDim>,
    pub(crate) checks: Vec<DimCheck>,
    /// The placeholders, in program order.
    pub(crate) feeds: Vec<NodeId>,
    /// Positions in `feeds` by name.
    pub(crate) feed_index: HashMap<Arc<str>, u32>,
    /// For each node of the program, its typed node.
    pub(crate) of_program: Arc<Vec<NodeId>>,
    /// The results that the program declared.
    pub(crate) declared: Vec<Fetched>,
    pub(crate) program: Program,
}

impl TypedProgram {
    /// The rules and default dtype it was typed under.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The number of typed nodes: those of the program and the casts between them.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the program has no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn node(&self, v: &Var) -> Result<NodeId> {
        let node = self.program.node_of(v)?;
        self.of_program
            .get(node.index())
            .copied()
            .ok_or_else(|| Error::Shape(format!("%{} was written after the program was typed", node.index())))
    }

    /// The dtype of a value; `None` for a handle of another program or one written after inference.
    pub fn dtype(&self, v: &Var) -> Option<DType> {
        self.node(v).ok().map(|n| self.nodes[n as usize].dtype)
    }

    /// The shape of a value, dynamic dims as symbols; `None` as for [`dtype`](TypedProgram::dtype).
    pub fn shape(&self, v: &Var) -> Option<&[SymDim]> {
        self.node(v).ok().map(|n| self.shape_of(n))
    }

    /// Whether a value promotes as a scalar does, which the text form marks by a star: `f32*`. Under the rules of PyTorch and Paddle
    /// none does.
    pub fn is_weak(&self, v: &Var) -> bool {
        self.node(v).is_ok_and(|n| self.nodes[n as usize].weak)
    }

    /// The program's results as it was typed: names, if they have one, and nodes.
    pub(crate) fn fetches(&self) -> Vec<TypedFetch> {
        let of = |(name, node): Fetched| Some((name, *self.of_program.get(node.index())?));
        let all = if self.declared.is_empty() {
            self.program.shared.read().unused(self.of_program.len())
        } else {
            self.declared.clone()
        };
        all.into_iter().filter_map(of).collect()
    }

    /// What `nodes`, whose values need no feed, are computed from and take shapes of, as a program of its own; and `nodes` in it.
    pub(crate) fn part(&self, nodes: &[NodeId]) -> (TypedProgram, Vec<NodeId>) {
        let (mut needed, mut rest) = (BTreeMap::new(), nodes.to_vec());
        while let Some(n) = rest.pop() {
            if needed.insert(n, 0).is_none() {
                let node = &self.nodes[n as usize];
                rest.extend(node.inputs().chain(node.kind.like()));
            }
        }
        (0..).zip(needed.values_mut()).for_each(|(at, to)| *to = at);
        let copied = |n: &NodeId| {
            let mut node = self.nodes[*n as usize].clone();
            node.kind.replace_inputs(|a| needed[&a]);
            node
        };
        let part = TypedProgram {
            settings: self.settings,
            nodes: Arc::new(needed.keys().map(copied).collect()),
            shapes: self.shapes.clone(),
            dyn_dims: self.dyn_dims.clone(),
            checks: Vec::new(),
            feeds: Vec::new(),
            feed_index: HashMap::new(),
            of_program: Arc::default(),
            declared: Vec::new(),
            program: self.program.clone(),
        };
        (part, nodes.iter().map(|n| needed[n]).collect())
    }

    pub(crate) fn shape_of(&self, n: NodeId) -> &[SymDim] {
        &self.shapes[self.nodes[n as usize].shape as usize]
    }

    /// Every cast, in program order, with rule, loss and place.
    pub fn casts(&self) -> Vec<CastNote> {
        self.nodes.iter().filter_map(|n| self.cast_note(n)).collect()
    }

    /// Where values become weak, in program order. Under rules without weak tensors, nowhere.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Jax);
    /// let y = (p.data("i", DType::I32, [3]) * 2.5).sqrt() + p.data("h", DType::BF16, [3]);
    /// let typed = p.infer()?;
    /// assert_eq!(typed.dtype(&y), Some(DType::BF16));
    /// let weak = typed.weak_notes();
    /// assert_eq!((weak.len(), weak[0].to_string().as_str()), (1, "weak float f32* from mul of i32 and 2.5"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn weak_notes(&self) -> Vec<WeakNote> {
        self.nodes.iter().filter(|n| n.weak).filter_map(|n| self.weak_note(n)).collect()
    }

    /// The nodes that [`Program::gradients`](crate::Program::gradients) appended, as ranges of positions.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [2]);
    /// let loss = x.exp().sum();
    /// let forward = p.infer()?.len();
    /// p.gradients(&[&loss], &[&x], &[])?;
    /// let typed = p.infer()?;
    /// assert_eq!(typed.backward(), [forward..typed.len()]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn backward(&self) -> Vec<std::ops::Range<usize>> {
        let before = |node: usize| self.of_program[..node].iter().max().map_or(0, |n| *n as usize + 1);
        let ranges = self.program.shared.read().backward.clone();
        ranges.into_iter().map(|r| before(r.start)..before(r.end.min(self.of_program.len()))).collect()
    }

    fn weak_note(&self, n: &TypedNode) -> Option<WeakNote> {
        // A result that is cast has its op before it.
        let n = match n.kind {
            TypedKind::Cast { from, .. } => &self.nodes[from as usize],
            _ => n,
        };
        let TypedKind::Apply { op, args, .. } = &n.kind else { return None };
        let operand = |a: &Arg| match *a {
            Arg::Scalar(s, _) => Some(s.to_string()),
            Arg::Node(id) => {
                let node = &self.nodes[id as usize];
                let before = match node.kind {
                    TypedKind::Cast { from, why } if why.reason != Reason::Requested => &self.nodes[from as usize],
                    _ => node,
                };
                (!before.weak).then(|| before.dtype.to_string())
            }
        };
        let operands = args.iter().flatten().map(operand).collect::<Option<Vec<_>>>()?;
        Some(WeakNote { op: *op, operands, dtype: n.dtype, location: n.location.clone() })
    }

    /// What a node is as a cast.
    pub(crate) fn cast_note(&self, n: &TypedNode) -> Option<CastNote> {
        let TypedKind::Cast { from, why } = n.kind else { return None };
        let from = self.nodes[from as usize].dtype;
        let loss = CastLoss::of(from, n.dtype);
        let (op, operand, reason, location) = (why.op, why.operand.into(), why.reason, n.location.clone());
        Some(CastNote { op, operand, from, to: n.dtype, reason, loss, location })
    }

    /// The text of the program with a summary in front: result dtypes, then the casts by what they lose.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let y = p.data("a", DType::BF16, [4]) * 0.7 + p.data("b", DType::F16, [4]) * 0.3;
    /// let text = p.infer()?.explain();
    /// assert!(text.contains("result f32[4]") && text.contains("cast bf16 -> f32"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn explain(&self) -> String {
        let _standard = FloatMode::standard();
        let mut text = String::new();
        for (name, n) in self.fetches() {
            let colon = name.as_ref().map_or(String::new(), |name| format!("{}: ", Name(name)));
            let node = &self.nodes[n as usize];
            let star = if node.weak { "*" } else { "" };
            text += &format!("result {colon}{}{star}{}\n", node.dtype, dims_text(self.shape_of(n)));
        }
        let casts = self.casts();
        let count = |l: CastLoss| casts.iter().filter(|c| c.loss == l).count();
        text += &format!(
            "{} cast{}: {} exact, {} that round, {} that may leave the range\n",
            casts.len(),
            if casts.len() == 1 { "" } else { "s" },
            count(CastLoss::Exact),
            count(CastLoss::Rounds),
            count(CastLoss::Range)
        );
        let backward = self.backward();
        if !backward.is_empty() {
            let of: usize = backward.iter().map(|r| r.len()).sum();
            text += &format!("{of} of {} nodes are of gradients\n", self.len());
        }
        let noted = self.nodes.iter().enumerate().filter_map(|(i, n)| Some((i, self.cast_note(n)?)));
        for (i, c) in noted.filter(|(_, c)| c.reason != Reason::Requested || c.loss != CastLoss::Exact) {
            if backward.iter().any(|r| r.contains(&i)) {
                text += &format!("  gradient {} -> {} at {}: {}\n", c.from, c.to, c.location, c.loss);
                continue;
            }
            let operand = c.op.def().operands.get(c.operand).copied().unwrap_or_default();
            let (from, to, why, op) = (c.from, c.to, c.reason.words(c.to), c.op);
            text +=
                &format!("  cast {from} -> {to} ({why}) for operand {operand} of {op} at {}: {}\n", c.location, c.loss);
        }
        for n in self.weak_notes() {
            text += &format!("  {n} at {}\n", n.location);
        }
        let narrow = self.hidden_roundings();
        if !narrow.is_empty() {
            let round = if narrow.len() == 1 { "op rounds" } else { "ops round" };
            text += &format!("{} {round} to 16 bits before a wider dtype takes the value:\n", narrow.len());
            for n in narrow {
                text += &format!("  {} rounds to {} at {}\n", n.op, n.dtype, n.location);
            }
        }
        let wraps = self.hidden_wraps();
        if !wraps.is_empty() {
            let s = if wraps.len() == 1 { "op" } else { "ops" };
            text += &format!("{} integer {s} may wrap before a wider dtype takes the value:\n", wraps.len());
            for n in wraps {
                text += &format!("  {} in {} {} at {}: {}\n", n.op, n.dtype, n.ranges(), n.location, n.help);
            }
        }
        for s in self.changed_scalars() {
            text += &format!("the scalar {} of {} is {} in {} at {}\n", s.value, s.op, s.used, s.to, s.location);
        }
        text + "\n" + &self.to_string()
    }
}

#[cfg(test)]
mod tests;
