//! `Program`: what the user has written, as a graph; nothing in it is computed or typed.
//!
//! Guarantees: append-only, so a node's operands come before it and no pass has to sort; it stores no derived dtype
//! or shape (only what placeholders and constants declare); a mistake (a handle of another program, a name used
//! twice) is remembered with the caller's line and reported by `check`, `infer` and `run`; `Program` and its handles
//! are `Send + Sync`. Does not: decide dtypes; `infer` does.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use crate::base::blocks::BlockSize;
use crate::base::composite::Composite;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result, SourceLocation, shown};
use crate::base::generator::Generator;
use crate::base::host::no_fork;
use crate::base::limits::{Limit, Limits};
use crate::base::location::here;
use crate::base::scalar::Scalar;
use crate::base::shape::{Dim, Dims, check_within};
use crate::base::view::View;
use crate::graph::var::Var;
use crate::ops::{Attrs, MAX_OPERANDS, Op};
use crate::promotion::{Rules, Settings};
use crate::tensor::Tensor;

pub use crate::base::limits::MAX_NODES;

/// A node of the graph.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) location: SourceLocation,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A placeholder that a feed fills.
    Data { name: Arc<str>, dtype: DType, dims: Dims },
    /// A tensor known when the program is written.
    Constant(Tensor),
    /// An application of an op. Operands that are nodes are incoming edges, the others are here.
    Apply { op: Op, attrs: Attrs, scalars: [Option<Scalar>; MAX_OPERANDS] },
    /// Rows that inference writes out. Operands as those of an application.
    Composite { composite: Composite, scalars: [Option<Scalar>; MAX_OPERANDS] },
    /// The same elements under other dims: those of the node at its one incoming edge.
    View(View),
    /// What follows from the index of each element, in the shape of the node at its one incoming edge.
    Generate(Generator),
    /// Blocks of the elements of the node at the first incoming edge, in the shape of that at the second.
    Blocks(BlockSize),
    /// A mistake made while building: whatever uses it is not typed either.
    Poison(Box<Diagnostic>),
}

/// The graph: an edge carries the position of its source among the target's operands.
pub(crate) type Nodes = DiGraph<Node, u8>;

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) nodes: Nodes,
    pub(crate) feeds: HashMap<Arc<str>, NodeIndex>,
    /// The results that the program declares.
    pub(crate) fetches: Vec<Fetched>,
    /// Placeholders and constants that promote as scalars do, under rules that have such tensors.
    pub(crate) weak: HashSet<NodeIndex>,
    /// The nodes that gradients appended, as ranges of indices.
    pub(crate) backward: Vec<std::ops::Range<usize>>,
}

/// A declared result: its name, if it has one, and its node.
pub(crate) type Fetched = (Option<Arc<str>>, NodeIndex);

/// One operand of a node, as `State::operand` reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Input {
    Node(NodeIndex),
    Scalar(Scalar),
}

impl State {
    /// Whether a placeholder or constant promotes as a scalar does under these rules.
    pub(crate) fn is_weak(&self, rules: Rules, node: NodeIndex) -> bool {
        let dtype = match self.nodes.node_weight(node).map(|n| &n.kind) {
            Some(Kind::Data { dtype, .. }) => *dtype,
            Some(Kind::Constant(t)) => t.dtype(),
            _ => return false,
        };
        dtype != DType::Bool && rules.has_weak() && self.weak.contains(&node)
    }

    /// The declared results; without any, the nodes that nothing uses.
    pub(crate) fn fetched(&self) -> Vec<Fetched> {
        if self.fetches.is_empty() { self.unused(self.nodes.node_count()) } else { self.fetches.clone() }
    }

    /// Of the first nodes those that none of them uses.
    pub(crate) fn unused(&self, first: usize) -> Vec<Fetched> {
        let unused = |n: &NodeIndex| self.nodes.neighbors(*n).all(|by| by.index() >= first);
        self.nodes.node_indices().take(first).filter(unused).map(|n| (None, n)).collect()
    }

    /// The operands of an application, in order: the one accessor, because petgraph lists edges newest first.
    pub(crate) fn operands(&self, node: NodeIndex) -> [Option<Input>; MAX_OPERANDS] {
        let mut all = [None; MAX_OPERANDS];
        if let Some(Kind::Apply { scalars, .. } | Kind::Composite { scalars, .. }) =
            self.nodes.node_weight(node).map(|n| &n.kind)
        {
            for (to, s) in all.iter_mut().zip(scalars) {
                *to = s.map(Input::Scalar);
            }
        }
        for e in self.nodes.edges_directed(node, petgraph::Direction::Incoming) {
            if let Some(to) = all.get_mut(*e.weight() as usize) {
                *to = Some(Input::Node(e.source()));
            }
        }
        all
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
    /// Where the program was begun, and its settings chosen.
    pub(crate) location: SourceLocation,
    /// Locked as long as it takes to share the graph or to add a node, so that forks need not wait.
    state: Mutex<Arc<State>>,
    /// The number of nodes.
    len: AtomicUsize,
    /// What the last inference keeps for the next one, whose type it alone knows; none while a program is typed.
    inference: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Shared {
    fn new(settings: Settings, limits: Limits, location: SourceLocation) -> Shared {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Shared {
            id,
            settings,
            limits,
            location,
            state: Mutex::default(),
            len: AtomicUsize::new(0),
            inference: Mutex::default(),
        }
    }

    /// The graph as it is now.
    pub(crate) fn read(&self) -> Arc<State> {
        let _whole = no_fork();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the last inference kept; it is gone then.
    pub(crate) fn take_inference(&self) -> Option<Box<dyn Any + Send>> {
        let _whole = no_fork();
        self.inference.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps what the next inference can continue from.
    pub(crate) fn keep_inference(&self, inference: Box<dyn Any + Send>) {
        let _whole = no_fork();
        *self.inference.lock().unwrap_or_else(PoisonError::into_inner) = Some(inference);
    }

    /// Changes the graph: a copy of it, if somebody is reading it. A panic elsewhere can't leave it half changed: nodes
    /// are added in one step.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let _whole = no_fork();
        let mut shared = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = Arc::make_mut(&mut shared);
        let made = change(state);
        self.len.store(state.nodes.node_count(), Ordering::Release);
        made
    }

    /// Makes room for so many more nodes.
    pub(crate) fn reserve(&self, nodes: usize) {
        self.change(|state| {
            state.nodes.reserve_nodes(nodes);
            state.nodes.reserve_edges(2 * nodes);
        });
    }

    pub(super) fn push(self: &Arc<Self>, kind: Kind, location: SourceLocation, inputs: &[(NodeIndex, u8)]) -> Var {
        let node = self.change(|state| self.add(state, kind, location, inputs));
        Var(NodeRef { program: self.clone(), node })
    }

    /// A placeholder or constant, which promotes as a scalar does if it is weak.
    fn push_leaf(self: &Arc<Self>, kind: Kind, location: SourceLocation, weak: bool) -> Var {
        let node = self.change(|state| {
            let node = self.add(state, kind, location, &[]);
            state.weak.extend(weak.then_some(node));
            node
        });
        Var(NodeRef { program: self.clone(), node })
    }

    fn add(&self, state: &mut State, kind: Kind, location: SourceLocation, inputs: &[(NodeIndex, u8)]) -> NodeIndex {
        let kind = match foreign_dtype(self.settings.rules, &kind) {
            Some(d) => Kind::Poison(Box::new(d.at(&location))),
            None => kind,
        };
        let (nodes, most) = (state.nodes.node_count(), self.limits.at(Limit::Nodes));
        let kind = match kind {
            // Every further handle is the one node that says so.
            _ if nodes > most => return NodeIndex::new(nodes - 1),
            _ if nodes == most => {
                let full =
                    Diagnostic::new(DiagnosticKind::BadParameter, format!("a program of more than {most} nodes"));
                return state.nodes.add_node(Node { kind: Kind::Poison(Box::new(full.at(&location))), location });
            }
            Kind::Data { ref name, .. } => match state.feeds.get(name) {
                Some(_) => {
                    let message = format!("the placeholder name `{}` is used twice", shown(name));
                    Kind::Poison(Box::new(Diagnostic::new(DiagnosticKind::Name, message).at(&location)))
                }
                None => {
                    let at = NodeIndex::new(state.nodes.node_count());
                    state.feeds.insert(name.clone(), at);
                    kind
                }
            },
            kind => kind,
        };
        let node = state.nodes.add_node(Node { kind, location });
        for (from, position) in inputs {
            state.nodes.add_edge(*from, node, *position);
        }
        node
    }
}

/// The refusal of a placeholder or constant whose dtype the rules do not have.
fn foreign_dtype(rules: Rules, kind: &Kind) -> Option<Diagnostic> {
    let (what, dtype) = match kind {
        Kind::Data { name, dtype, .. } => (Some(name), *dtype),
        Kind::Constant(t) => (None, t.dtype()),
        Kind::Apply { .. } | Kind::Composite { .. } => return None,
        Kind::View(_) | Kind::Generate(_) | Kind::Blocks(_) | Kind::Poison(_) => return None,
    };
    let instead = rules.set().lacks(dtype)?;
    let what = what.map_or("a constant".to_string(), |name| format!("the placeholder `{}`", shown(name)));
    let message = format!("{what} is {dtype}, which {} does not have", rules.framework());
    Some(Diagnostic::new(DiagnosticKind::UnsupportedDType, message).help(instead))
}

/// The cast of a scalar: an application whose operand is no node.
pub(super) fn cast_scalar(scalar: Scalar, dtype: DType) -> Kind {
    let mut scalars = [None; MAX_OPERANDS];
    scalars[0] = Some(scalar);
    Kind::Apply { op: Op::Cast, attrs: Attrs::cast(dtype), scalars }
}

/// Why no tensor can have the declared dims, if that is so.
pub(crate) fn impossible(name: &str, dims: &Dims, limits: &Limits) -> Option<String> {
    let most = limits.at(Limit::Rank);
    let fault = if dims.0.len() > most {
        format!("has {} dims, more than {most}", dims.0.len())
    } else {
        let fixed: Vec<usize> = dims.0.iter().map(|d| if let Dim::Fixed(n) = d { *n } else { 1 }).collect();
        format!("is too large: {}", check_within(&fixed, limits).err()?)
    };
    Some(format!("the placeholder `{}` {fault}", shown(name)))
}

/// A result that a program declares: see [`Program::fetches`].
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The result's name, if it has one.
    pub name: Option<String>,
    /// The value.
    pub var: Var,
}

/// A handle's target: a node of a program.
#[derive(Clone)]
pub struct NodeRef {
    pub(crate) program: Arc<Shared>,
    pub(crate) node: NodeIndex,
}

impl Var {
    /// The position of the handle's node in its program, in the order in which the nodes were written:
    /// [`Program::var`] goes back.
    pub fn index(&self) -> usize {
        self.0.node.index()
    }
}

impl std::fmt::Debug for Var {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Var(%{} of program {})", self.index(), self.0.program.id)
    }
}

/// A program under construction. Cloning gives another handle of the same program.
///
/// ```
/// use castwise::prelude::*;
/// let p = Program::new(Rules::Paddle);
/// let a = p.data("a", DType::F16, [3, 3]);
/// let b = p.data("b", DType::F32, [None, Some(3)]);
/// let c = &a + &b * 2.0;
/// assert_eq!(p.infer()?.dtype(&c), Some(DType::F32));
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) shared: Arc<Shared>,
}

impl Program {
    /// An empty program under the given rules, with the default dtype f32.
    #[track_caller]
    pub fn new(rules: Rules) -> Program {
        Program::with_settings(Settings::new(rules))
    }

    /// An empty program under the given settings. A default dtype that is no float is a mistake that
    /// [`check`](Program::check) reports.
    #[track_caller]
    pub fn with_settings(settings: Settings) -> Program {
        Program::begun(settings, Limits::new(), here())
    }

    /// An empty program under the given rules or settings that refuses what is beyond the limits: nodes, and shapes of
    /// placeholders, constants, results and feeds. Its expressions are limited too. [`Limits`] has an example.
    #[track_caller]
    pub fn with_limits(settings: impl Into<Settings>, limits: Limits) -> Program {
        Program::begun(settings.into(), limits, here())
    }

    fn begun(settings: Settings, limits: Limits, location: SourceLocation) -> Program {
        Program { shared: Arc::new(Shared::new(settings, limits, location)) }
    }

    /// An empty program with this one's settings and limits, begun at the same place.
    pub(crate) fn like(&self) -> Program {
        Program::begun(self.settings(), self.shared.limits, self.shared.location.clone())
    }

    /// A new program with the same nodes under other rules: names, places and positions stay, and so do the default
    /// dtype and the limits; a mistake made while building stays one. Handles of this program are not handles of the new one:
    /// [`var`](Program::var) and [`feed`](Program::feed) give those.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let sum = p.data("steps", DType::I64, [3]) + p.data("loss", DType::F32, [3]);
    /// assert!(p.check().is_ok());
    ///
    /// let q = p.with_rules(Rules::Paddle);
    /// println!("{}", q.check().expect_err("Paddle does not promote i64 with f32"));
    ///
    /// let back = q.with_rules(Rules::Torch);
    /// let typed = back.infer()?;
    /// assert_eq!(back.var(sum.index()).and_then(|same| typed.dtype(&same)), Some(DType::F32));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn with_rules(&self, rules: Rules) -> Program {
        self.under(self.settings().with_rules(rules))
    }

    /// As [`with_rules`](Program::with_rules), for settings as a whole; the same ones make a copy.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let wide = Program::new(Rules::Torch).under("jax,x64".parse()?);
    /// assert_eq!(wide.settings().named(), "jax,x64");
    /// # Ok::<(), String>(())
    /// ```
    pub fn under(&self, settings: Settings) -> Program {
        let program = Program::begun(settings, self.shared.limits, self.shared.location.clone());
        let State { mut nodes, feeds, fetches, weak, backward } = Arc::unwrap_or_clone(self.shared.read());
        for node in nodes.node_weights_mut() {
            if let Some(d) = foreign_dtype(settings.rules, &node.kind) {
                node.kind = Kind::Poison(Box::new(d.at(&node.location)));
            }
        }
        program.shared.change(|state| *state = State { nodes, feeds, fetches, weak, backward });
        program
    }

    /// The program's rules and default dtype.
    pub fn settings(&self) -> Settings {
        self.shared.settings
    }

    /// What the program may ask for.
    pub fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.shared.len.load(Ordering::Acquire)
    }

    /// Whether nothing has been written yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A placeholder: a tensor that a feed of this name gives. `dims` is `[3, 4]`, `[None, Some(4)]` (a dynamic dim),
    /// `["n", "m"]` (dynamic, equal wherever the name stands), or `()` for 0-d.
    #[track_caller]
    pub fn data(&self, name: &str, dtype: DType, dims: impl Into<Dims>) -> Var {
        self.data_at(name, dtype, dims.into(), here(), false)
    }

    pub(crate) fn data_at(&self, name: &str, dtype: DType, dims: Dims, location: SourceLocation, weak: bool) -> Var {
        match impossible(name, &dims, &self.shared.limits) {
            Some(message) => {
                let v = self.poison(DiagnosticKind::BadParameter, message, location);
                // Whoever asks for the name gets the placeholder that is refused, not the answer that there is none.
                self.shared.change(|state| _ = state.feeds.entry(name.into()).or_insert(v.0.node));
                v
            }
            None => self.shared.push_leaf(Kind::Data { name: name.into(), dtype, dims }, location, weak),
        }
    }

    /// A placeholder whose tensor is weak, if the program's rules have weak tensors: it promotes as a scalar does. JAX's
    /// functions have such arguments where a Python scalar is traced, as by `jax.jit(f)(2.0)`. bool is never weak.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Jax);
    /// let scale = p.weak_data("scale", DType::F32, ());
    /// let y = p.data("x", DType::BF16, [4]) * scale;
    /// assert_eq!(p.infer()?.dtype(&y), Some(DType::BF16));
    /// assert!(p.to_string().contains("%scale: f32*[]"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn weak_data(&self, name: &str, dtype: DType, dims: impl Into<Dims>) -> Var {
        self.data_at(name, dtype, dims.into(), here(), true)
    }

    /// A weak tensor that is part of the program: see [`weak_data`](Program::weak_data).
    #[track_caller]
    pub fn weak_constant(&self, tensor: Tensor) -> Var {
        self.constant_at(tensor, here(), true)
    }

    /// Adds a node whose operands are this program's.
    pub(crate) fn append(&self, kind: Kind, location: SourceLocation, inputs: &[(NodeIndex, u8)]) -> NodeIndex {
        self.shared.push(kind, location, inputs).0.node
    }

    /// Adds a placeholder or constant.
    pub(crate) fn append_leaf(&self, kind: Kind, location: SourceLocation, weak: bool) -> NodeIndex {
        self.shared.push_leaf(kind, location, weak).0.node
    }

    /// Says that gradients appended the nodes from `start` on.
    pub(crate) fn appended(&self, start: usize) {
        self.shared.change(|state| state.backward.push(start..state.nodes.node_count()));
    }

    /// Declares the results.
    pub(crate) fn declare(&self, fetches: Vec<Fetched>) {
        self.shared.change(|state| state.fetches = fetches);
    }

    /// Declares which values are the program's results, and their names: what the text form writes as
    /// `fetch %5 as "loss"`. It decides nothing about what can be computed: every value can be fetched.
    ///
    /// Errors: a handle of another program; a name that is declared twice.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [None]);
    /// p.set_fetches([("double", &(&x + &x)), ("square", &(&x * &x))])?;
    /// let results = p.fetches();
    /// assert_eq!(results[1].name.as_deref(), Some("square"));
    /// let t = Tensor::from_slice(&[3.0f32], [1])?;
    /// let out = Executor::new().run(&p, feeds! { "x" => t }, results.iter().map(|r| &r.var))?;
    /// assert_eq!(out[1].item::<f32>()?, 9.0);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn set_fetches<'a, N: Into<Option<&'a str>>>(
        &self,
        fetches: impl IntoIterator<Item = (N, &'a Var)>,
    ) -> Result<()> {
        let mut all: Vec<Fetched> = Vec::new();
        let mut names = HashSet::new();
        for (name, v) in fetches {
            let name = name.into();
            if let Some(name) = name.filter(|n| !names.insert(*n)) {
                let message = format!("two fetches have the name `{}`", shown(name));
                return Err(Diagnostic::new(DiagnosticKind::Name, message).at(&here()).into());
            }
            all.push((name.map(Arc::from), self.node_of(v)?));
        }
        self.declare(all);
        Ok(())
    }

    /// The program's results, in the order in which they were [declared](Program::set_fetches); if none were, every
    /// value that nothing uses, in program order.
    pub fn fetches(&self) -> Vec<Fetch> {
        let all = self.shared.read().fetched();
        let one = |(name, node): Fetched| Fetch {
            name: name.map(|n| n.to_string()),
            var: Var(NodeRef { program: self.shared.clone(), node }),
        };
        all.into_iter().map(one).collect()
    }

    /// A tensor that is part of the program.
    #[track_caller]
    pub fn constant(&self, tensor: Tensor) -> Var {
        self.constant_at(tensor, here(), false)
    }

    pub(crate) fn constant_at(&self, tensor: Tensor, location: SourceLocation, weak: bool) -> Var {
        match check_within(tensor.shape(), &self.shared.limits) {
            Ok(_) => self.shared.push_leaf(Kind::Constant(tensor), location, weak),
            Err(e) => self.poison(DiagnosticKind::BadParameter, format!("a constant is too large: {e}"), location),
        }
    }

    /// A scalar in a dtype: a 0-d tensor, and no longer a value without a dtype. The conversion is that of a tensor's
    /// elements: rounded once to nearest even. Expressions write it as `cast(0.3, bf16)`, programs as
    /// `cast ~0.3 {dtype = bf16}`.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let weight = p.scalar(0.3, DType::BF16);               // 0.30078125
    /// let y = p.data("x", DType::F32, [2]) * weight;
    /// let out = Executor::new().run(&p, feeds! { "x" => Tensor::from([1.0f32, 2.0]) }, [&y])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [0.30078125, 0.6015625]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn scalar(&self, value: impl Into<Scalar>, dtype: DType) -> Var {
        self.shared.push(cast_scalar(value.into(), dtype), here(), &[])
    }

    pub(super) fn poison(&self, fault: DiagnosticKind, message: String, location: SourceLocation) -> Var {
        let d = Diagnostic::new(fault, message).at(&location);
        self.shared.push(Kind::Poison(Box::new(d)), location, &[])
    }

    /// The handle of the node at a position ([`Var::index`]).
    pub fn var(&self, index: usize) -> Option<Var> {
        let node = NodeIndex::new(index);
        (index < self.len()).then(|| Var(NodeRef { program: self.shared.clone(), node }))
    }

    /// The placeholder of this name.
    pub fn feed(&self, name: &str) -> Option<Var> {
        let node = *self.shared.read().feeds.get(name)?;
        Some(Var(NodeRef { program: self.shared.clone(), node }))
    }

    /// The names of the placeholders, in the order they were written.
    pub fn feed_names(&self) -> Vec<String> {
        let state = self.shared.read();
        let mut all: Vec<_> = state.feeds.iter().map(|(name, node)| (*node, name.to_string())).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, name)| name).collect()
    }

    /// The node of a handle, or an error if the handle is another program's.
    pub(crate) fn node_of(&self, v: &Var) -> Result<NodeIndex> {
        if Arc::ptr_eq(&v.0.program, &self.shared) {
            return Ok(v.0.node);
        }
        let (index, state) = (v.0.node.index(), v.0.program.read());
        let d =
            Diagnostic::new(DiagnosticKind::ForeignVar, format!("the fetch %{index} is a handle of another program"));
        Err(Error::from(state.nodes.node_weight(v.0.node).map_or(d.clone(), |n| d.at(&n.location))))
    }
}
