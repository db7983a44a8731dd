//! Composites as the rows that they are made of: before a typed program is planned, each reduction whose row is a formula of other
//! rows becomes these.
//!
//! Guarantees: a composite's formula stands in its row; its value has the composite's dtype and shape; everything else stays, in
//! the same order. Intermediate results have the dtype that the formula says, and are rounded to it; the last one is rounded to
//! the composite's. Does not: type programs, or change what users see of one.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use crate::base::dtype::DType;
use crate::base::scalar::Scalar;
use crate::base::shape::{SymDim, reduced};
use crate::base::view::{Slice, View};
use crate::graph::typed::{Arg, Args, NodeId, TypedKind, TypedNode, TypedProgram, Why};
use crate::ops::{Op, for_each_op};
use crate::promotion::Reason;

/// The most casts of an operand that its first element has instead.
const CASTS: usize = 4;

/// A typed program without composites.
pub(super) struct Expanded {
    pub(super) typed: Arc<TypedProgram>,
    /// For each node of the program before, the one that has its value.
    pub(super) of: Vec<NodeId>,
    /// Reductions that refuse to combine no elements for another reason than their own row: on behalf of this op, or of none.
    pub(super) needs_elements: HashMap<NodeId, Option<Op>>,
}

macro_rules! define_formulas {
    ($(
        #[doc = $doc:literal]
        $variant:ident { method: $method:ident, operands: $operands:tt, output: $output:ident $($column:tt)* }
        { $($math:tt)* }
    )*) => {
        /// The formula of a composite; `None` for another op.
        fn formula(op: Op) -> Option<fn(&mut Rows<'_>) -> NodeId> {
            match op {
                $(Op::$variant => formula_of!($($math)*),)*
                Op::Custom(_) => None,
            }
        }
    };
}

macro_rules! formula_of {
    (composed; |$r:ident| $body:expr) => {
        Some(|$r: &mut Rows<'_>| $body)
    };
    ($($other:tt)*) => {
        None
    };
}
for_each_op!(define_formulas);

/// The program without composites; `None` if it has none.
pub(super) fn expand(typed: &TypedProgram) -> Option<Expanded> {
    let is_composite = |n: &TypedNode| matches!(n.kind, TypedKind::Reduce { op, .. } if op.is_composed());
    if !typed.nodes.iter().any(is_composite) {
        return None;
    }
    let mut into = TypedProgram { nodes: Arc::new(Vec::with_capacity(typed.len() + 16)), ..typed.clone() };
    let (mut of, mut needs_elements) = (Vec::with_capacity(typed.len()), HashMap::new());
    for n in typed.nodes.iter() {
        let mut node = n.clone();
        node.kind.replace_inputs(|a| of[a as usize]);
        of.push(match node.kind {
            TypedKind::Reduce { op, from, ref axes, keep, number, .. } if let Some(formula) = formula(op) => {
                let number = number.map_or(0.0, |n| n.get());
                let mut rows = Rows::new(&mut into, &mut needs_elements, &node, (from, axes.clone(), keep, number), op);
                formula(&mut rows)
            }
            _ => {
                Arc::make_mut(&mut into.nodes).push(node);
                into.nodes.len() as NodeId - 1
            }
        });
    }
    let moved = |n: &mut NodeId| *n = of[*n as usize];
    into.feeds.iter_mut().for_each(moved);
    Arc::make_mut(&mut into.of_program).iter_mut().for_each(moved);
    Some(Expanded { typed: Arc::new(into), of, needs_elements })
}

/// The rows of one composite, as its formula writes them.
pub(crate) struct Rows<'a> {
    into: &'a mut TypedProgram,
    needs_elements: &'a mut HashMap<NodeId, Option<Op>>,
    /// The composite.
    node: &'a TypedNode,
    op: Op,
    x: NodeId,
    axes: Arc<[usize]>,
    keep: bool,
    /// Its number, if it has one.
    number: f64,
    /// Its operand's shape, and that of its operand with one element along the reduced dims.
    whole: u32,
    ones: u32,
}

impl<'a> Rows<'a> {
    fn new(
        into: &'a mut TypedProgram,
        needs_elements: &'a mut HashMap<NodeId, Option<Op>>,
        node: &'a TypedNode,
        (x, axes, keep, number): (NodeId, Arc<[usize]>, bool, f64),
        op: Op,
    ) -> Rows<'a> {
        let whole = into.nodes[x as usize].shape;
        let dims = reduced(&into.shapes[whole as usize], &axes, true);
        let ones = shape_id(into, &dims);
        Rows { into, needs_elements, node, op, x, axes, keep, number, whole, ones }
    }

    fn push(&mut self, kind: TypedKind, dtype: DType, shape: u32) -> NodeId {
        Arc::make_mut(&mut self.into.nodes).push(TypedNode {
            kind,
            dtype,
            shape,
            weak: false,
            location: self.node.location.clone(),
        });
        self.into.nodes.len() as NodeId - 1
    }

    fn dtype(&self, n: NodeId) -> DType {
        self.into.nodes[n as usize].dtype
    }

    fn shape(&self, n: NodeId) -> u32 {
        self.into.nodes[n as usize].shape
    }

    /// The operand.
    pub(crate) fn x(&self) -> NodeId {
        self.x
    }

    /// The value in another dtype.
    pub(crate) fn cast(&mut self, from: NodeId, to: DType) -> NodeId {
        if self.dtype(from) == to {
            return from;
        }
        let why = Why { op: self.op, operand: 0, other: None, reason: Reason::Reduction };
        let shape = self.shape(from);
        self.push(TypedKind::Cast { from, why }, to, shape)
    }

    /// The composite's value: `v`, rounded to its dtype.
    pub(crate) fn finish(&mut self, v: NodeId) -> NodeId {
        self.cast(v, self.node.dtype)
    }

    /// An op of operands of one dtype (but for a condition), which broadcast.
    pub(crate) fn apply(&mut self, op: Op, operands: &[Arg]) -> NodeId {
        let nodes = || operands.iter().filter_map(|a| if let Arg::Node(n) = a { Some(*n) } else { None });
        let compute = nodes().next_back().map_or(DType::F64, |n| self.dtype(n));
        let shapes: Vec<u32> = nodes().map(|n| self.shape(n)).collect();
        let shape = [self.whole, self.ones].into_iter().find(|s| shapes.contains(s));
        let rank = |s: &u32| self.into.shapes[*s as usize].len();
        let shape = shape.or(shapes.iter().copied().max_by_key(rank)).unwrap_or(self.node.shape);
        let mut args: Args = Default::default();
        args.iter_mut().zip(operands).for_each(|(to, a)| *to = Some(*a));
        self.push(TypedKind::Apply { op, compute, args }, op.result(compute), shape)
    }

    /// An op of a value and a number.
    fn with(&mut self, op: Op, v: NodeId, number: f64) -> NodeId {
        let number = Arg::Scalar(Scalar::Float(number), self.dtype(v));
        self.apply(op, &[v.into(), number])
    }

    /// A reduction over the composite's dims.
    pub(crate) fn fold(&mut self, op: Op, from: NodeId) -> NodeId {
        self.reduce(op, from, self.keep, self.node.shape)
    }

    /// A reduction over the composite's dims, which stay.
    fn fold_keeping(&mut self, op: Op, from: NodeId) -> NodeId {
        self.reduce(op, from, true, self.ones)
    }

    fn reduce(&mut self, op: Op, from: NodeId, keep: bool, shape: u32) -> NodeId {
        let kind = TypedKind::Reduce { op, from, axes: self.axes.clone(), keep, number: None, choice: None };
        self.push(kind, self.dtype(from), shape)
    }

    /// The number of elements that are combined.
    fn count(&mut self) -> NodeId {
        let shape = shape_id(self.into, &[]);
        self.push(TypedKind::Extent { shape: self.whole, axes: self.axes.clone() }, DType::F64, shape)
    }

    /// The first of the elements that are combined. Of an operand that is cast, the first element is cast, unless what it is cast from
    /// would have to be stored, and is larger.
    fn first(&mut self) -> NodeId {
        let (mut v, mut casts) = (self.x, Vec::new());
        while casts.len() < CASTS
            && let TypedKind::Cast { from, why } = self.into.nodes[v as usize].kind
            && (self.dtype(from).size() <= self.dtype(v).size()
                || matches!(self.into.nodes[from as usize].kind, TypedKind::Feed(_) | TypedKind::Constant(_)))
        {
            casts.push((self.dtype(v), why));
            v = from;
        }
        let mut dims = self.into.shapes[self.whole as usize].to_vec();
        for axis in self.axes.clone().iter() {
            dims[*axis] = SymDim::Fixed(1);
            let shape = shape_id(self.into, &dims);
            let view = View::Slice(*axis as i64, Slice { start: Some(0), end: Some(1), step: 1 });
            v = self.push(TypedKind::View { from: v, view: Some(view) }, self.dtype(v), shape);
        }
        for (dtype, why) in casts.into_iter().rev() {
            v = self.push(TypedKind::Cast { from: v, why }, dtype, self.shape(v));
        }
        v
    }

    /// The squared modulus of a value of f64 or c128.
    fn squared(&mut self, v: NodeId) -> NodeId {
        if !self.dtype(v).is_complex() {
            return self.apply(Op::Mul, &[v.into(), v.into()]);
        }
        let [re, im] = [Op::RealPart, Op::ImagPart].map(|part| {
            let part = self.apply(part, &[v.into()]);
            self.apply(Op::Mul, &[part.into(), part.into()])
        });
        self.apply(Op::Add, &[re.into(), im.into()])
    }

    /// The operand in f64 or c128.
    fn wide(&mut self, v: NodeId) -> NodeId {
        self.cast(v, if self.dtype(v).is_complex() { DType::C128 } else { DType::F64 })
    }

    /// The variance, in f64. Distances are taken from the first element, so that a large mean costs no digits. Where f64 has twice
    /// the operand's digits, the sums of distances and of their squares are enough, which are one pass; else distances from their
    /// mean are a second pass.
    pub(crate) fn variance(&mut self) -> NodeId {
        let (first, n) = (self.first(), self.count());
        let (x, first) = (self.wide(self.x), self.wide(first));
        let distance = self.apply(Op::Sub, &[x.into(), first.into()]);
        let squares = if self.dtype(self.x).real() == DType::F64 {
            let mean = self.fold_keeping(Op::Mean, distance);
            // Distances are computed again, so that they are not stored. Their mean has fewer digits to round than the elements' has.
            let distance = self.apply(Op::Sub, &[x.into(), first.into()]);
            let rest = self.apply(Op::Sub, &[distance.into(), mean.into()]);
            let squares = self.squared(rest);
            self.fold(Op::Sum, squares)
        } else {
            let squares = self.squared(distance);
            let (sum, all) = (self.fold(Op::Sum, distance), self.fold(Op::Sum, squares));
            let sum = self.squared(sum);
            let mean = self.apply(Op::Div, &[sum.into(), n.into()]);
            let rest = self.apply(Op::Sub, &[all.into(), mean.into()]);
            self.with(Op::Maximum, rest, 0.0)
        };
        let divisor = self.with(Op::Sub, n, self.number);
        let divisor = self.with(Op::Maximum, divisor, 0.0);
        // 1, but NaN for no elements, whose variance is NaN whatever the correction is.
        let one = self.apply(Op::Div, &[n.into(), n.into()]);
        let divisor = self.apply(Op::Mul, &[divisor.into(), one.into()]);
        self.apply(Op::Div, &[squares.into(), divisor.into()])
    }

    /// The norm, in f64.
    pub(crate) fn norm(&mut self) -> NodeId {
        let p = self.number;
        if p == 0.0 {
            let found = self.nonzero(self.x);
            let ones = self.cast(found, DType::F64);
            return self.fold(Op::Sum, ones);
        }
        let x = self.wide(self.x);
        if p == 2.0 && !self.dtype(x).is_complex() {
            let squares = self.squared(x);
            let sum = self.fold(Op::Sum, squares);
            return self.apply(Op::Sqrt, &[sum.into()]);
        }
        let modulus = self.apply(Op::Abs, &[x.into()]);
        let (power, fold) = match p {
            // The modulus of a complex number with an infinite part is infinite, even if the other part is NaN.
            2.0 => (self.squared(modulus), Op::Sum),
            f64::INFINITY => (modulus, Op::Amax),
            f64::NEG_INFINITY => (modulus, Op::Amin),
            1.0 => (modulus, Op::Sum),
            p => (self.with(Op::Pow, modulus, p), Op::Sum),
        };
        let combined = self.fold(fold, power);
        self.needs_elements.insert(combined, (p < 0.0 || p.is_infinite()).then_some(self.op));
        match p {
            1.0 | f64::INFINITY | f64::NEG_INFINITY => combined,
            2.0 => self.apply(Op::Sqrt, &[combined.into()]),
            p => self.with(Op::Pow, combined, 1.0 / p),
        }
    }

    /// Whether each element is not zero.
    pub(crate) fn nonzero(&mut self, v: NodeId) -> NodeId {
        let dtype = self.dtype(v);
        if dtype == DType::Bool { v } else { self.apply(Op::Ne, &[v.into(), Arg::Scalar(Scalar::Int(0), dtype)]) }
    }

    /// The elements with 0 for NaNs, and, of floats, whether each is a NaN.
    pub(crate) fn without_nans(&mut self, v: NodeId) -> (NodeId, Option<NodeId>) {
        let dtype = self.dtype(v);
        if dtype.is_integral() {
            return (v, None);
        }
        let nans = self.apply(Op::Isnan, &[v.into()]);
        let zero = Arg::Scalar(Scalar::Int(0), dtype);
        (self.apply(Op::Where, &[nans.into(), zero, v.into()]), Some(nans))
    }

    /// The mean of the elements that are not NaN, in op math.
    pub(crate) fn mean_of_numbers(&mut self) -> NodeId {
        let x = self.cast(self.x, self.dtype(self.x).op_math());
        let (kept, nans) = self.without_nans(x);
        let sum = self.fold(Op::Sum, kept);
        let Some(nans) = nans else { return self.fold(Op::Mean, x) };
        let numbers = self.apply(Op::LogicalNot, &[nans.into()]);
        let ones = self.cast(numbers, DType::I64);
        let count = self.fold(Op::Sum, ones);
        let count = self.cast(count, self.dtype(sum));
        self.apply(Op::Div, &[sum.into(), count.into()])
    }

    /// The logarithm of the sum of exponentials, in the operand's dtype.
    pub(crate) fn log_of_sum(&mut self) -> NodeId {
        let (x, dtype) = (self.x, self.dtype(self.x));
        let real = if dtype.is_complex() { self.apply(Op::RealPart, &[x.into()]) } else { x };
        let most = self.fold_keeping(Op::Amax, real);
        self.needs_elements.insert(most, None);
        let infinite = self.apply(Op::Isinf, &[most.into()]);
        let zero = Arg::Scalar(Scalar::Int(0), self.dtype(most));
        let most = self.apply(Op::Where, &[infinite.into(), zero, most.into()]);
        let most = self.cast(most, dtype);
        let less = self.apply(Op::Sub, &[x.into(), most.into()]);
        let powers = self.apply(Op::Exp, &[less.into()]);
        let sum = self.fold(Op::Sum, powers);
        let log = self.apply(Op::Log, &[sum.into()]);
        let most = if self.shape(most) == self.node.shape {
            most
        } else {
            self.push(TypedKind::View { from: most, view: None }, dtype, self.node.shape)
        };
        self.apply(Op::Add, &[log.into(), most.into()])
    }
}

/// The index of a shape, which is added if the program has none like it.
fn shape_id(typed: &mut TypedProgram, dims: &[SymDim]) -> u32 {
    let known = typed.shapes.iter().position(|s| s[..] == *dims);
    let id = known.unwrap_or_else(|| {
        typed.shapes.push(dims.into());
        typed.shapes.len() - 1
    });
    id as u32
}

impl From<NodeId> for Arg {
    fn from(n: NodeId) -> Arg {
        Arg::Node(n)
    }
}
