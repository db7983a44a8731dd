//! Runs the rule of one operand: what it applies becomes nodes of the program.
//!
//! Guarantees: all that a rule combines is in one dtype: the compute dtype of the application, or its op math where the rule rounds more than once.
//! Does not: sum to the operand's shape.

use std::cell::RefCell;
use std::sync::OnceLock;

use foldhash::HashMap;

use crate::base::composite::{Composite, Kind};
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result, SourceLocation};
use crate::base::generator::Generator;
use crate::base::host::once;
use crate::base::indexing::Indexing;
use crate::base::scalar::Scalar;
use crate::base::shape::SymDim;
use crate::base::view::View;
use crate::graph::typed::{Arg, NodeId, TypedKind};
use crate::graph::var::{Graph, Mode, Operand, Var};
use crate::ops::derivative::{Application, Build, Item, Rule};
use crate::ops::{Attrs, Choice, Op, Output};
use crate::promotion::operand::OperandType;
use crate::promotion::signature;

use super::term::{Term, negated};
use super::values::{Values, extents};

/// A rule at work.
pub(super) struct Local<'a> {
    values: &'a Values<'a>,
    node: NodeId,
    /// The compute dtype.
    compute: DType,
    /// The dtype in which the rule computes.
    math: DType,
    g: Var,
    at: SourceLocation,
    items: RefCell<Vec<(Var, DType)>>,
    failed: RefCell<Option<Error>>,
}

/// What a reduction or an op on lines works on.
struct Along {
    from: NodeId,
    axes: Vec<i64>,
    keep: bool,
}

impl<'a> Local<'a> {
    /// Of the application that this node is, whose result has the cotangent `g`.
    pub(super) fn new(values: &'a Values<'a>, node: NodeId, g: &Var, wide: bool) -> Local<'a> {
        let n = values.node(node);
        let compute = match &n.kind {
            TypedKind::Apply { compute, .. } => *compute,
            TypedKind::Reduce { from, .. } | TypedKind::Line { from, .. } => values.node(*from).dtype,
            _ => n.dtype,
        };
        let math = if wide { compute.op_math() } else { compute };
        let (at, items) = (n.location.clone(), RefCell::new(Vec::new()));
        Local { values, node, compute, math, g: g.clone(), at, items, failed: RefCell::new(None) }
    }

    /// The gradient that the rule gives, in the compute dtype; `None` if it adds nothing.
    pub(super) fn run(&self, rule: Rule) -> Result<Option<Term>> {
        let made = rule(Application::new(self));
        if let Some(e) = self.failed.borrow_mut().take() {
            return Err(e);
        }
        let (i, minus) = match made.item {
            Item::Node(i) => (i, false),
            Item::Minus(i) => (i, true),
            _ => return Ok(None),
        };
        let (v, dtype) = self.items.borrow()[i].clone();
        Ok(Some(Term { v: if dtype == self.compute { v } else { self.cast(&v, self.compute) }, minus }))
    }

    fn cast(&self, v: &Var, to: DType) -> Var {
        Graph::apply(Op::Cast, &[v.into()], Attrs::cast(to), self.at.clone())
    }

    fn item(&self, v: Var, dtype: DType) -> Item {
        let mut items = self.items.borrow_mut();
        items.push((v, dtype));
        Item::Node(items.len() - 1)
    }

    /// A value of the typed program, in the dtype in which the rule computes if it is in a half dtype.
    fn value(&self, n: NodeId) -> Item {
        match self.values.var(n) {
            Ok(v) => self.widened(v, self.values.node(n).dtype),
            Err(e) => self.fail(e),
        }
    }

    fn widened(&self, v: Var, dtype: DType) -> Item {
        let to = match dtype {
            d if d == self.compute => self.math,
            d if d == self.compute.real() => self.math.real(),
            d => d,
        };
        if dtype == to { self.item(v, dtype) } else { self.item(self.cast(&v, to), to) }
    }

    fn fail(&self, e: Error) -> Item {
        self.failed.borrow_mut().get_or_insert(e);
        self.item(self.g.clone(), self.math)
    }

    /// An item as a value: a number in the dtype of the rule, or its parts'.
    fn get(&self, item: Item) -> (Var, DType) {
        match item {
            Item::Node(i) => self.items.borrow()[i].clone(),
            Item::Minus(i) => {
                let (v, dtype) = self.get(Item::Node(i));
                (negated(&v, &self.at), dtype)
            }
            Item::Number(s) => {
                let dtype = if matches!(s, Scalar::Complex(..)) { self.math } else { self.math.real() };
                (self.values.number(s, dtype, &self.g, self.at.clone()), dtype)
            }
            Item::Nothing => self.get(Item::Number(Scalar::Float(0.0))),
        }
    }

    fn along(&self) -> Option<Along> {
        match &self.values.node(self.node).kind {
            TypedKind::Reduce { from, axes, keep, .. } => {
                Some(Along { from: *from, axes: axes.iter().map(|a| *a as i64).collect(), keep: *keep })
            }
            TypedKind::Line { from, axis, .. } => Some(Along { from: *from, axes: vec![*axis as i64], keep: true }),
            _ => None,
        }
    }

    /// Refuses a gradient over several dims that are not all of the dims.
    fn one_or_all(&self, along: &Along) -> Option<Item> {
        let rank = self.values.typed.shape_of(along.from).len();
        (along.axes.len() > 1 && along.axes.len() < rank).then(|| self.refused("over one dim, or over all of them"))
    }

    fn refused(&self, where_: &str) -> Item {
        let name = match self.values.node(self.node).kind {
            TypedKind::Reduce { op, .. } | TypedKind::Line { op, .. } => op.name(),
            _ => "an op",
        };
        let message = format!("`{name}` has a gradient {where_} alone");
        self.fail(Diagnostic::new(DiagnosticKind::NotDifferentiable, message).at(&self.at).into())
    }

    /// What a rule asks of an op that does not work along dims.
    fn misplaced(&self) -> Item {
        self.fail(Error::Internal(format!("the rule of typed node {} is for a reduction", self.node)))
    }

    fn composite(&self, kind: Kind, operands: &[&Var], dims: Option<&[i64]>) -> Var {
        let mut made = Composite::new(kind);
        made.dims = dims.map(Into::into);
        let all: Vec<Operand> = operands.iter().map(|v| Operand::from(*v)).collect();
        Graph::composite(&operands[0].0, &made, &all, self.at.clone())
    }
}

/// The op of the table that a rule names.
fn named(op: &'static str) -> Result<Op> {
    static NAMES: OnceLock<HashMap<&'static str, Op>> = OnceLock::new();
    let names = once(&NAMES, || Op::ALL.iter().map(|op| (op.name(), *op)).collect());
    names.get(op).copied().ok_or_else(|| Error::Internal(format!("a rule applies `{op}`")))
}

/// Arithmetic of real numbers that have no dtype yet, in f64.
fn folded(op: Op, operands: &[Item]) -> Option<Scalar> {
    let real = |o: &Item| match o {
        Item::Number(Scalar::Int(n)) => Some(*n as f64),
        Item::Number(Scalar::Float(v)) => Some(*v),
        _ => None,
    };
    let all = operands.iter().map(real).collect::<Option<Vec<f64>>>()?;
    Some(Scalar::Float(match (op, &all[..]) {
        (Op::Add, [a, b]) => a + b,
        (Op::Sub, [a, b]) => a - b,
        (Op::Mul, [a, b]) => a * b,
        (Op::Div, [a, b]) => a / b,
        (Op::Neg, [a]) => -a,
        _ => return None,
    }))
}

impl Build for Local<'_> {
    fn cotangent(&self) -> Item {
        self.widened(self.g.clone(), self.values.node(self.node).dtype)
    }

    fn operand(&self, at: usize) -> Item {
        match &self.values.node(self.node).kind {
            TypedKind::Apply { args, .. } => match args.get(at) {
                Some(Some(Arg::Node(n))) => self.value(*n),
                Some(Some(Arg::Scalar(s, _))) => Item::Number(*s),
                _ => Item::Nothing,
            },
            TypedKind::Reduce { from, .. } | TypedKind::Line { from, .. } => self.value(*from),
            _ => Item::Nothing,
        }
    }

    fn result(&self) -> Item {
        self.value(self.node)
    }

    fn number(&self) -> f64 {
        match self.values.node(self.node).kind {
            TypedKind::Reduce { number, .. } | TypedKind::Line { number, .. } => number.map_or(0.0, |n| n.get()),
            _ => 0.0,
        }
    }

    fn choice(&self) -> Option<Choice> {
        match self.values.node(self.node).kind {
            TypedKind::Reduce { choice, .. } | TypedKind::Line { choice, .. } => choice,
            _ => None,
        }
    }

    fn is_whole(&self) -> bool {
        self.values.is_whole(self.node)
    }

    fn positions(&self, op: &'static str) -> Item {
        let (Some(along), Ok(op)) = (self.along(), named(op)) else { return self.misplaced() };
        if let Some(refused) = self.one_or_all(&along) {
            return refused;
        }
        let Item::Node(i) = self.operand(0) else { return self.misplaced() };
        let (x, dtype) = self.items.borrow()[i].clone();
        // Over several dims there are positions in all of them alone.
        let dims = (along.axes.len() < 2).then(|| along.axes.into());
        let mut attrs = Attrs { dims, ..Attrs::default() }.with_keepdim(op.is_reduction());
        let given = self.values.node(self.node).kind.clone();
        if let TypedKind::Reduce { number, choice, .. } | TypedKind::Line { number, choice, .. } = given {
            // An op of positions may take no choice where the op takes one.
            (attrs.number, attrs.choice) = (number, choice.filter(|_| op.def().choice.is_some()));
        }
        // JAX's are i32 without x64.
        let typed = signature(&self.values.typed.settings(), op, &[OperandType::dim(dtype)], &attrs);
        let is_long = typed.is_ok_and(|s| s.result == DType::I64);
        let found = Graph::apply(op, &[x.into()], attrs, self.at.clone());
        self.item(if is_long { found } else { self.cast(&found, DType::I64) }, DType::I64)
    }

    fn index(&self) -> Item {
        let Some(along) = self.along() else { return self.misplaced() };
        if let Some(refused) = self.one_or_all(&along) {
            return refused;
        }
        if along.axes.is_empty() {
            return Item::Number(Scalar::Int(0));
        }
        let whole = along.axes.len() == self.values.typed.shape_of(along.from).len();
        let dim = along.axes.first().copied().filter(|_| !whole);
        match self.values.like(along.from) {
            Ok(like) => self.item(Graph::generate(&like.0, Generator::Index { dim }, self.at.clone()), DType::I64),
            Err(e) => self.fail(e),
        }
    }

    fn ranks(&self) -> Item {
        let Some(along) = self.along() else { return self.misplaced() };
        if let Some(refused) = self.one_or_all(&along) {
            return refused;
        }
        let Item::Node(i) = self.operand(0) else { return self.misplaced() };
        let x = self.items.borrow()[i].0.clone();
        let dims = self.values.typed.shape_of(along.from);
        let sorted = |x: &Var, dim: i64| Graph::apply(Op::Argsort, &[x.into()], Attrs::dims([dim]), self.at.clone());
        let order = |x: &Var, dim: i64| sorted(&sorted(x, dim), dim);
        let ranks = match along.axes[..] {
            // Each element is alone.
            [] => return Item::Number(Scalar::Float(0.0)),
            [dim] => order(&x, dim),
            // All elements in one line.
            _ if dims.iter().filter(|d| matches!(d, SymDim::Sym(_))).count() < 2 => {
                let line = Graph::view(&x.0, View::Reshape([-1].into()), self.at.clone());
                Graph::view(&order(&line, 0).0, View::Reshape(extents(dims)), self.at.clone())
            }
            _ => return self.refused("over all dims of which at most one is dynamic"),
        };
        self.item(self.cast(&ranks, DType::F64), DType::F64)
    }

    fn scatter(&self, v: Item, index: Item) -> Item {
        let Some(along) = self.along() else { return self.misplaced() };
        let (v, dtype) = self.get(v);
        let index = self.get(index).0;
        let dim = along.axes.first().copied().unwrap_or(-1);
        match self.values.like(along.from) {
            Ok(like) => {
                let all: [Operand; 3] = [(&v).into(), (&index).into(), (&like).into()];
                let made = Composite::indexing(Indexing::ScatterAdd, dim);
                self.item(Graph::composite(&v.0, &made, &all, self.at.clone()), dtype)
            }
            Err(e) => self.fail(e),
        }
    }

    fn rank_of(&self, q: f64, last: Item) -> Item {
        let settings = self.values.typed.settings();
        let quantiles = settings.rules.set().quantiles(&settings);
        if let Item::Number(Scalar::Float(last)) = last {
            return Item::Number(Scalar::Float(quantiles.rank_of(q, last)));
        }
        let last = self.item(self.cast(&self.get(last).0, quantiles.rank), quantiles.rank);
        self.double(self.apply("mul", &[last, Item::Number(Scalar::Float(q))]))
    }

    fn double(&self, v: Item) -> Item {
        let (v, dtype) = self.get(v);
        let to = if dtype == DType::F64 { v } else { self.cast(&v, DType::F64) };
        self.item(to, DType::F64)
    }

    fn is_complex(&self) -> bool {
        self.compute.is_complex()
    }

    fn apply(&self, op: &'static str, operands: &[Item]) -> Item {
        let op = match named(op) {
            Ok(op) => op,
            Err(e) => return self.fail(e),
        };
        if let Some(s) = folded(op, operands) {
            return Item::Number(s);
        }
        match (op, operands) {
            (Op::Neg, [Item::Node(i)]) => return Item::Minus(*i),
            (Op::Neg, [Item::Minus(i)]) => return Item::Node(*i),
            _ => {}
        }
        let alone = operands.iter().all(|o| matches!(o, Item::Number(_)));
        let mut dtypes = Vec::new();
        let given = operands.iter().enumerate().map(|(k, o)| match o {
            Item::Number(s) if !(alone && k == 0) => Operand::Scalar(*s),
            o => {
                let (v, dtype) = self.get(*o);
                dtypes.push(dtype);
                Operand::Var(v)
            }
        });
        let given: Vec<Operand> = given.collect();
        let widest = dtypes.iter().copied().find(|d| d.is_complex());
        let common = widest.or(dtypes.iter().copied().rfind(|d| *d != DType::Bool)).unwrap_or(self.math);
        let dtype = match op.def().output {
            Output::Bool => DType::Bool,
            Output::Real => common.real(),
            _ => common,
        };
        self.item(Graph::apply(op, &given, Attrs::default(), self.at.clone()), dtype)
    }

    fn convert(&self, v: Item) -> Item {
        let (v, dtype) = self.get(v);
        if dtype == self.math { self.item(v, dtype) } else { self.item(self.cast(&v, self.math), self.math) }
    }

    fn complex(&self, re: Item, im: Item) -> Item {
        let (re, im) = (self.get(re).0, self.get(im).0);
        self.item(self.composite(Kind::Complex, &[&re, &im], None), self.math)
    }

    fn fold(&self, op: &'static str, v: Item) -> Item {
        let (Some(along), Ok(op)) = (self.along(), named(op)) else { return self.misplaced() };
        let (v, dtype) = self.get(v);
        let attrs = Attrs::dims(along.axes).with_keepdim(true);
        self.item(Graph::apply(op, &[v.into()], attrs, self.at.clone()), dtype)
    }

    fn keep(&self, v: Item) -> Item {
        let Some(along) = self.along() else { return self.misplaced() };
        let (mut v, dtype) = self.get(v);
        for axis in along.axes.into_iter().filter(|_| !along.keep) {
            v = Graph::view(&v.0, View::Unsqueeze(axis), self.at.clone());
        }
        self.item(v, dtype)
    }

    fn expand(&self, v: Item) -> Item {
        let Some(along) = self.along() else { return self.misplaced() };
        let (v, dtype) = self.get(v);
        match self.values.like(along.from) {
            Ok(like) => self.item(self.composite(Kind::ExpandLike, &[&v, &like], None), dtype),
            Err(e) => self.fail(e),
        }
    }

    fn count(&self) -> Item {
        let Some(along) = self.along() else { return self.misplaced() };
        let dims = self.values.typed.shape_of(along.from);
        let fixed = along.axes.iter().map(|a| match dims.get(*a as usize) {
            Some(SymDim::Fixed(n)) => Some(*n as f64),
            _ => None,
        });
        if let Some(n) = fixed.product::<Option<f64>>() {
            return Item::Number(Scalar::Float(n));
        }
        match self.values.like(along.from) {
            Ok(like) => {
                let n = self.composite(Kind::Count, &[&like], Some(&along.axes));
                self.item(self.cast(&n, self.math.real()), self.math.real())
            }
            Err(e) => self.fail(e),
        }
    }

    fn line(&self, op: &'static str, v: Item, reversed: bool) -> Item {
        let (Some(along), Ok(op)) = (self.along(), named(op)) else { return self.misplaced() };
        let (v, dtype) = self.get(v);
        let flip = |v: Var| match reversed {
            true => Graph::view(&v.0, View::Flip(along.axes.clone().into()), self.at.clone()),
            false => v,
        };
        let made = Graph::apply(op, &[flip(v).into()], Attrs::dims(along.axes.clone()), self.at.clone());
        self.item(flip(made), dtype)
    }
}
