//! Writes composites out: as applications of ops, which are typed one after the other as if the user had written them.
//!
//! Guarantees: every row is an application of an op of the table, and `signature` decides its dtypes; what a composite refuses, and
//! the refusal of a row, names the composite. Half dtypes: `softmax`, `log_softmax`, `layer_norm`, `rms_norm`, `normalize` and `dot`
//! have casts to f32 and back, the others round after every row. Does not: compute.
//!
//! Sources: the documentation and recorded results of PyTorch, NumPy, SciPy and Paddle (`tests/golden/ops-*.jsonl`).

use super::{Inference, Operands};
use crate::base::composite::{Composite, Kind};
use crate::base::dtype::{Category, DType, DTypeSet};
use crate::base::error::{Diagnostic, DiagnosticKind, SourceLocation};
use crate::base::scalar::Scalar;
use crate::base::shape::{SymDim, axes, dims_text};
use crate::graph::typed::{Asked, DimCheck, NodeId};
use crate::ops::{Attrs, LossShapes, Op};
use crate::promotion::operand::OperandType;
use crate::promotion::{Composites, signature};

mod indexed;
mod shapes;

type Made<T = NodeId> = Result<T, Diagnostic>;

/// An operand of a row.
#[derive(Clone, Copy)]
enum In {
    Node(NodeId),
    Number(Scalar),
}

impl From<NodeId> for In {
    fn from(n: NodeId) -> In {
        In::Node(n)
    }
}

impl From<f64> for In {
    fn from(v: f64) -> In {
        In::Number(Scalar::Float(v))
    }
}

impl Inference {
    /// The value of a composite, whose rows are added.
    pub(super) fn composite(&mut self, c: &Composite, operands: Operands, location: &SourceLocation) -> Made {
        c.counted(operands.seen.len())?;
        let pairs = operands.seen.iter().zip(&operands.nodes);
        let given: Vec<In> = pairs.map(|(seen, node)| input(seen, *node)).collect();
        let rules = self.settings.rules.set().composites();
        let mut w = Writer { inference: self, of: c, rules, location };
        let In::Node(x) = given[0] else {
            return Err(w.refuse(DiagnosticKind::ArgNotTensor, "the first operand is a number"));
        };
        match c.kind {
            Kind::Softmax | Kind::LogSoftmax => w.softmax(x),
            Kind::LayerNorm => w.layer_norm(x, given.get(1).copied(), given.get(2).copied()),
            Kind::RmsNorm => w.rms_norm(x, given.get(1).copied()),
            Kind::Normalize => w.normalize(x),
            Kind::Dot | Kind::Vecdot | Kind::CosineSimilarity => {
                let y = w.value(x, given[1])?;
                match c.kind {
                    Kind::Dot => w.dot(x, y),
                    Kind::Vecdot => w.vecdot(x, y),
                    _ => w.cosine_similarity(x, y),
                }
            }
            Kind::Isclose => w.isclose(x, given[1]),
            Kind::NanToNum => w.nan_to_num(x),
            Kind::SumTo => w.sum_to(x, given[1]),
            Kind::ExpandLike => w.expand_like(x, given[1]),
            Kind::Count => w.count(x),
            Kind::FullLike => w.full_like(x),
            Kind::Complex => w.complex(x, given[1]),
            Kind::TakeAlongDim => w.take_along_dim(x, given[1]),
            Kind::ScatterAdd => w.scatter_add(x, given[1], given[2]),
            Kind::Pad => w.pad(x, given[1]),
        }
    }
}

fn input(seen: &OperandType, node: Option<NodeId>) -> In {
    match (seen, node) {
        (OperandType::Scalar(s), _) => In::Number(*s),
        (_, Some(node)) => In::Node(node),
        // A tensor has a node.
        (_, None) => In::Number(Scalar::Float(f64::NAN)),
    }
}

/// Writes the rows of one composite.
struct Writer<'a> {
    inference: &'a mut Inference,
    of: &'a Composite,
    rules: Composites,
    location: &'a SourceLocation,
}

/// What is not a float of one byte.
const WIDE: DTypeSet = DTypeSet::ALL.without(DTypeSet::BYTE_FLOATS);

// Rows.
impl Writer<'_> {
    fn refuse(&self, kind: DiagnosticKind, what: &str) -> Diagnostic {
        Diagnostic::new(kind, format!("`{}`: {what}", self.of.name()))
    }

    fn dtype(&self, n: NodeId) -> DType {
        self.inference.nodes[n as usize].dtype
    }

    fn rank(&self, n: NodeId) -> usize {
        self.inference.shape(n).len()
    }

    /// An operand with dtype and shape, for messages: `i32[3, 4]`.
    fn shown(&self, n: NodeId) -> String {
        self.inference.typed_name(n)
    }

    fn seen(&self, of: In) -> OperandType {
        match of {
            In::Number(s) => OperandType::Scalar(s),
            In::Node(n) => {
                let node = &self.inference.nodes[n as usize];
                OperandType::Tensor { dtype: node.dtype, zero_dim: self.rank(n) == 0, weak: node.weak }
            }
        }
    }

    /// The refusal of a row as one of the composite.
    fn named(&self, mut d: Diagnostic) -> Diagnostic {
        d.message = format!("`{}`: {}", self.of.name(), d.message);
        d
    }

    fn row_with(&mut self, op: Op, operands: &[In], attrs: Attrs) -> Made {
        let all = Operands {
            seen: operands.iter().map(|o| self.seen(*o)).collect(),
            nodes: operands.iter().map(|o| if let In::Node(n) = o { Some(*n) } else { None }).collect(),
        };
        let made = self.inference.apply(op, &attrs, all, self.location);
        made.map_err(|d| self.named(d))
    }

    fn row(&mut self, op: Op, operands: &[In]) -> Made {
        self.row_with(op, operands, Attrs::default())
    }

    fn unary(&mut self, op: Op, x: NodeId) -> Made {
        self.row(op, &[x.into()])
    }

    fn binary(&mut self, op: Op, x: NodeId, y: impl Into<In>) -> Made {
        self.row(op, &[x.into(), y.into()])
    }

    fn cast(&mut self, x: NodeId, to: DType) -> Made {
        if self.dtype(x) == to { Ok(x) } else { self.row_with(Op::Cast, &[x.into()], Attrs::cast(to)) }
    }

    /// The value in the dtype in which its dtype's ops compute.
    fn wide(&mut self, x: NodeId) -> Made {
        self.cast(x, self.dtype(x).op_math())
    }

    /// A number in a dtype.
    fn number(&mut self, value: f64, dtype: DType) -> Made {
        self.inference.scalar(Scalar::Float(value), dtype, self.location)
    }

    /// A reduction along the composite's dims, which stay if `keep`.
    fn fold(&mut self, op: Op, x: NodeId, dims: &[i64], keep: bool) -> Made {
        self.row_with(op, &[x.into()], Attrs::dims(dims).with_keepdim(keep))
    }

    /// A reduction of one that takes a number.
    fn fold_with(&mut self, op: Op, x: NodeId, dims: &[i64], number: f64) -> Made {
        self.row_with(op, &[x.into()], Attrs::dims(dims).with_keepdim(true).with_number(number))
    }

    /// The composite's dims, or this one.
    fn dims(&self, default: i64) -> Vec<i64> {
        self.of.dims.as_deref().map_or(vec![default], <[i64]>::to_vec)
    }

    /// The second operand as a value: a number in the dtype that it has beside the first one.
    fn value(&mut self, x: NodeId, y: In) -> Made {
        let s = match y {
            In::Node(n) => return Ok(n),
            In::Number(s) => s,
        };
        let seen = [self.seen(x.into()), self.seen(y)];
        let found = signature(
            &self.inference.settings,
            Op::Where,
            &[OperandType::dim(DType::Bool), seen[0], seen[1]],
            &Attrs::default(),
        )?;
        self.inference.scalar(s, found.compute, self.location)
    }

    fn takes(&self, x: NodeId, set: DTypeSet) -> Made<()> {
        if set.has(self.dtype(x)) && WIDE.has(self.dtype(x)) {
            return Ok(());
        }
        let message = format!("{} is not supported", self.shown(x));
        Err(self.refuse(DiagnosticKind::UnsupportedDType, &message))
    }

    /// The operand of a composite of floats: integers as floats, where the rules have that.
    fn float(&mut self, x: NodeId, complex: bool) -> Made {
        let dtype = self.dtype(x);
        if self.rules.integers && dtype == DType::Bool {
            return Err(self.refuse(DiagnosticKind::BoolArithmetic, "bool has no arithmetic").help("cast it"));
        }
        if self.rules.integers && dtype.is_integral() {
            let found = signature(&self.inference.settings, Op::Exp, &[self.seen(x.into())], &Attrs::default())?;
            return self.cast(x, found.compute);
        }
        let floats = DTypeSet::category(Category::Float);
        let set = if complex { floats.union(DTypeSet::of(&[DType::C64, DType::C128])) } else { floats };
        self.takes(x, set).map(|()| x)
    }

    /// Refuses operands of different dtypes, if the rules do not promote here.
    fn one_dtype(&self, x: NodeId, y: NodeId) -> Made<()> {
        if self.rules.one_dtype && self.dtype(x) != self.dtype(y) {
            let message = format!("{} and {} have different dtypes", self.shown(x), self.shown(y));
            return Err(self.refuse(DiagnosticKind::DTypeMismatch, &message).help("cast one of them"));
        }
        Ok(())
    }

    /// Refuses a number that is negative or NaN.
    fn not_negative(&self, at: usize, value: f64) -> Made<()> {
        if value >= 0.0 {
            return Ok(());
        }
        let message = format!("{} = {value} is negative or NaN", self.of.takes().numbers[at]);
        Err(self.refuse(DiagnosticKind::BadParameter, &message))
    }
}

// Softmax and norms.
impl Writer<'_> {
    fn softmax(&mut self, x: NodeId) -> Made {
        let x = match self.of.dtype {
            Some(dtype) => self.cast(x, dtype)?,
            None => x,
        };
        let x = self.float(x, false)?;
        let (dims, dtype, wide) = (self.dims(-1), self.dtype(x), self.wide(x)?);
        // Of no elements it is not used, so that it need not be refused.
        let most = self.fold_with(Op::Amax, wide, &dims, f64::NEG_INFINITY)?;
        let less = self.binary(Op::Sub, wide, most)?;
        let powers = self.unary(Op::Exp, less)?;
        let sum = self.fold(Op::Sum, powers, &dims, true)?;
        let made = if self.of.kind == Kind::Softmax {
            self.binary(Op::Div, powers, sum)?
        } else {
            let log = self.unary(Op::Log, sum)?;
            self.binary(Op::Sub, less, log)?
        };
        self.cast(made, dtype)
    }

    /// The dims of a norm, which must be the last ones.
    fn trailing(&self, x: NodeId) -> Made<Vec<i64>> {
        let (dims, rank) = (self.dims(-1), self.rank(x));
        let found = axes(Some(&dims), rank).map_err(|m| self.refuse(DiagnosticKind::Axis, &m.to_string()))?;
        if found.iter().copied().eq(rank - found.len()..rank) && !found.is_empty() {
            return Ok(dims);
        }
        let message = format!("the dims {dims:?} of {} are not its last ones", self.shown(x));
        Err(self.refuse(DiagnosticKind::Axis, &message))
    }

    /// A weight or bias in the dtype in which x is computed. It has the dims of a norm.
    fn weight(&mut self, x: NodeId, weight: In, dims: usize, wide: DType) -> Made<In> {
        let In::Node(w) = weight else { return Ok(weight) };
        if ![self.dtype(x), wide].contains(&self.dtype(w)) {
            let message = format!("{} beside {}", self.shown(w), self.shown(x));
            return Err(self
                .refuse(DiagnosticKind::DTypeMismatch, &message)
                .help(format!("cast it to {}", self.dtype(x))));
        }
        let shape = self.inference.shape(x).clone();
        let wanted = &shape[shape.len() - dims..];
        let given = self.inference.shape(w).clone();
        let differs = |(a, b): (&SymDim, &SymDim)| matches!((a, b), (SymDim::Fixed(m), SymDim::Fixed(n)) if m != n);
        if given.len() != dims || given.iter().zip(wanted).any(differs) {
            let message = format!("{} beside {}: it has the shape {}", self.shown(w), self.shown(x), dims_text(wanted));
            return Err(self.refuse(DiagnosticKind::Broadcast, &message));
        }
        for (axis, pair) in given.iter().cloned().zip(wanted.iter().cloned()).enumerate() {
            if pair.0 != pair.1 {
                let (op, location) = (self.of.name(), self.location.clone());
                self.inference.checks.push(DimCheck { dims: pair, op, axis, asked: Asked::Equal, location });
            }
        }
        self.cast(w, wide).map(In::Node)
    }

    fn layer_norm(&mut self, x: NodeId, weight: Option<In>, bias: Option<In>) -> Made {
        let x = self.float(x, false)?;
        let (dims, dtype, wide) = (self.trailing(x)?, self.dtype(x), self.wide(x)?);
        let mean = self.fold(Op::Mean, wide, &dims, true)?;
        let variance = self.fold_with(Op::Var, wide, &dims, 0.0)?;
        let less = self.binary(Op::Sub, wide, mean)?;
        let variance = self.binary(Op::Add, variance, self.of.value(0, 1e-5))?;
        let scale = self.unary(Op::Rsqrt, variance)?;
        let mut made = self.binary(Op::Mul, less, scale)?;
        for (op, given) in [(Op::Mul, weight), (Op::Add, bias)] {
            if let Some(given) = given {
                let given = self.weight(x, given, dims.len(), dtype.op_math())?;
                made = self.binary(op, made, given)?;
            }
        }
        self.cast(made, dtype)
    }

    fn rms_norm(&mut self, x: NodeId, weight: Option<In>) -> Made {
        let x = self.float(x, self.rules.complex_norms)?;
        let (dims, dtype, wide) = (self.trailing(x)?, self.dtype(x), self.wide(x)?);
        let squares = self.binary(Op::Mul, wide, wide)?;
        let mean = self.fold(Op::Mean, squares, &dims, true)?;
        let eps = if dtype.real() == DType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
        let mean = self.binary(Op::Add, mean, self.of.value(0, eps))?;
        let scale = self.unary(Op::Rsqrt, mean)?;
        let mut made = self.binary(Op::Mul, wide, scale)?;
        if let Some(given) = weight {
            let given = self.weight(x, given, dims.len(), dtype.op_math())?;
            made = self.binary(Op::Mul, made, given)?;
        }
        self.cast(made, dtype)
    }

    fn normalize(&mut self, x: NodeId) -> Made {
        let x = self.float(x, self.rules.complex_norms)?;
        let (dims, dtype, wide) = (self.dims(1), self.dtype(x), self.wide(x)?);
        let norm = self.bounded_norm(wide, &dims, self.of.value(0, 2.0), self.of.value(1, 1e-12))?;
        let made = self.binary(Op::Div, wide, norm)?;
        self.cast(made, dtype)
    }

    /// The norm along dims, which stay, or eps if that is larger.
    fn bounded_norm(&mut self, x: NodeId, dims: &[i64], p: f64, eps: f64) -> Made {
        let norm = self.fold_with(Op::Norm, x, dims, p)?;
        self.binary(Op::ClampMin, norm, eps)
    }
}

// Products.
impl Writer<'_> {
    fn dot(&mut self, x: NodeId, y: NodeId) -> Made {
        for v in [x, y] {
            self.takes(v, self.rules.dot)?;
            let rank = self.rank(v);
            if rank != 1 && !(rank == 2 && self.rules.dot_by_rows) {
                let message = format!("{} and {}, which are not vectors", self.shown(x), self.shown(y));
                let d = self.refuse(DiagnosticKind::Broadcast, &message);
                return Err(d.help("`vecdot(x, y)` takes other shapes; there are no matrix products"));
            }
        }
        self.one_dtype(x, y)?;
        let common = self.common(x, y)?;
        let [a, b] = [self.cast(x, common)?, self.cast(y, common)?];
        let [a, b] = [self.wide(a)?, self.wide(b)?];
        let made = self.products(a, b, &[-1], Attrs { loss: Some(LossShapes::Equal), ..Attrs::default() })?;
        self.cast(made, common)
    }

    fn vecdot(&mut self, x: NodeId, y: NodeId) -> Made {
        for v in [x, y] {
            self.takes(v, self.rules.vecdot)?;
        }
        self.one_dtype(x, y)?;
        let (dims, common) = (self.dims(-1), self.common(x, y)?);
        let [mut a, b] = [self.cast(x, common)?, self.cast(y, common)?];
        if common.is_complex() {
            a = self.unary(Op::Conj, a)?;
        }
        self.products(a, b, &dims, Attrs::default())
    }

    /// The dtype that two values promote to.
    fn common(&mut self, x: NodeId, y: NodeId) -> Made<DType> {
        let seen = [self.seen(x.into()), self.seen(y.into())];
        let found = signature(&self.inference.settings, Op::PromoteWith, &seen, &Attrs::default());
        Ok(found.map_err(|d| self.named(d))?.result)
    }

    /// The sum of the products of values of one dtype, in that dtype; of bools, whether both are true anywhere.
    fn products(&mut self, x: NodeId, y: NodeId, dims: &[i64], attrs: Attrs) -> Made {
        let dtype = self.dtype(x);
        let op = if dtype == DType::Bool { Op::BitwiseAnd } else { Op::Mul };
        let products = self.row_with(op, &[x.into(), y.into()], attrs)?;
        match dtype {
            DType::Bool => self.fold(Op::Any, products, dims, false),
            d if d.is_integral() => self.row_with(Op::Sum, &[products.into()], Attrs::dims(dims).with_dtype(dtype)),
            _ => self.fold(Op::Sum, products, dims, false),
        }
    }

    fn cosine_similarity(&mut self, x: NodeId, y: NodeId) -> Made {
        let (dims, eps) = (self.dims(1), self.of.value(0, 1e-8));
        self.not_negative(0, eps)?;
        let common = self.common(x, y)?;
        if self.rules.joint_norms && common.is_integral() {
            let message = format!("{} and {} do not promote to floats", self.shown(x), self.shown(y));
            return Err(self.refuse(DiagnosticKind::PromotionRefused, &message));
        }
        // Both in the common dtype and shape.
        let [a, b] = [self.binary(Op::PromoteWith, x, y)?, self.binary(Op::PromoteWith, y, x)?];
        let [a, b] = [self.float(a, false)?, self.float(b, false)?];
        if self.rules.joint_norms {
            return self.joint_cosine(a, b, &dims, eps);
        }
        let dtype = self.dtype(a);
        let mut unit = |v: NodeId| {
            let wide = self.wide(v)?;
            let norm = self.bounded_norm(wide, &dims, 2.0, eps)?;
            let made = self.binary(Op::Div, wide, norm)?;
            self.cast(made, dtype)
        };
        let [a, b] = [unit(a)?, unit(b)?];
        self.products(a, b, &dims, Attrs::default())
    }

    /// x · y / √max(‖x‖² ‖y‖², eps²).
    fn joint_cosine(&mut self, x: NodeId, y: NodeId, dims: &[i64], eps: f64) -> Made {
        let dtype = self.dtype(x);
        let [x, y] = [self.wide(x)?, self.wide(y)?];
        let [both, xx, yy] = [(x, y), (x, x), (y, y)].map(|(a, b)| self.products(a, b, dims, Attrs::default()));
        let squares = self.binary(Op::Mul, xx?, yy?)?;
        let bounded = self.binary(Op::ClampMin, squares, eps * eps)?;
        let norms = self.unary(Op::Sqrt, bounded)?;
        let made = self.binary(Op::Div, both?, norms)?;
        self.cast(made, dtype)
    }
}

// Comparison and replacement.
impl Writer<'_> {
    fn isclose(&mut self, x: NodeId, y: In) -> Made {
        if let In::Number(y) = y
            && self.rules.isclose_of_float
        {
            return self.isclose_to_number(x, y);
        }
        let y = self.value(x, y)?;
        for v in [x, y] {
            self.takes(v, DTypeSet::ALL)?;
        }
        self.one_dtype(x, y)?;
        let (rtol, atol) = self.tolerances();
        let of_y = self.rules.isclose_of_y;
        if !of_y {
            self.not_negative(0, rtol)?;
            self.not_negative(1, atol)?;
        }
        let wide = |w: &mut Self, v: NodeId| {
            if !w.dtype(v).is_integral() {
                return Ok(v);
            }
            // The dtype of quotients: f64 of NumPy, the default one of others.
            let seen = [w.seen(v.into()); 2];
            let to = signature(&w.inference.settings, Op::Div, &seen, &Attrs::default())?.compute;
            w.cast(v, to)
        };
        let other = if of_y { wide(self, y)? } else { y };
        let mut made = self.binary(Op::Eq, x, other)?;
        if self.of.equal_nan && !self.dtype(x).is_integral() && !self.dtype(y).is_integral() {
            let [a, b] = [self.unary(Op::Isnan, x)?, self.unary(Op::Isnan, other)?];
            let both = self.binary(Op::BitwiseAnd, a, b)?;
            made = self.binary(Op::BitwiseOr, made, both)?;
        }
        if !of_y && rtol == 0.0 && atol == 0.0 {
            return Ok(made);
        }
        let [a, b] = if of_y { [x, other] } else { [wide(self, x)?, wide(self, y)?] };
        let size = if of_y { self.unary(Op::Abs, b)? } else { b };
        let relative = self.binary(Op::Mul, size, rtol)?;
        let relative = if of_y { relative } else { self.unary(Op::Abs, relative)? };
        let allowed = self.binary(Op::Add, relative, atol)?;
        let distance = self.binary(Op::Sub, a, b)?;
        let distance = self.unary(Op::Abs, distance)?;
        let near = self.binary(Op::Le, distance, allowed)?;
        let finite = self.unary(Op::Isfinite, if of_y { b } else { distance })?;
        let near = self.binary(Op::BitwiseAnd, near, finite)?;
        self.binary(Op::BitwiseOr, made, near)
    }

    /// The relative and the absolute tolerance of `isclose`.
    fn tolerances(&self) -> (f64, f64) {
        (self.of.value(0, 1e-5), self.of.value(1, 1e-8))
    }

    /// `isclose` to a float or complex number, which an integer becomes: what is allowed follows from it alone.
    fn isclose_to_number(&mut self, x: NodeId, y: Scalar) -> Made {
        self.takes(x, DTypeSet::ALL)?;
        let (y, size) = match y {
            Scalar::Bool(v) => (Scalar::Float(v.into()), f64::from(v)),
            Scalar::Int(v) => (Scalar::Float(v as f64), (v as f64).abs()),
            Scalar::Float(v) => (y, v.abs()),
            Scalar::Complex(v) => (y, v.norm()),
        };
        if size.is_nan() && self.of.equal_nan {
            return self.unary(Op::Isnan, x);
        }
        let made = self.row(Op::Eq, &[x.into(), In::Number(y)])?;
        if !size.is_finite() {
            return Ok(made);
        }
        let (rtol, atol) = self.tolerances();
        let distance = self.row(Op::Sub, &[x.into(), In::Number(y)])?;
        let distance = self.unary(Op::Abs, distance)?;
        let near = self.binary(Op::Le, distance, atol + rtol * size)?;
        self.binary(Op::BitwiseOr, made, near)
    }

    fn nan_to_num(&mut self, x: NodeId) -> Made {
        self.takes(x, self.rules.nan_to_num)?;
        let dtype = self.dtype(x);
        if dtype.is_integral() {
            return Ok(x);
        }
        if !dtype.is_complex() {
            return self.finite(x);
        }
        let [re, im] = [Op::RealPart, Op::ImagPart].map(|part| {
            let part = self.unary(part, x)?;
            let finite = self.finite(part)?;
            self.cast(finite, dtype)
        });
        self.binary(Op::FromParts, re?, im?)
    }

    /// Real numbers with others for those that are not finite.
    fn finite(&mut self, x: NodeId) -> Made {
        let dtype = self.dtype(x);
        let largest = dtype.largest();
        let nans = self.unary(Op::Isnan, x)?;
        let nan = self.number(self.of.value(0, 0.0), dtype)?;
        let mut made = self.row(Op::Where, &[nans.into(), nan.into(), x.into()])?;
        for (at, infinity, default) in [(1, f64::INFINITY, largest), (2, f64::NEG_INFINITY, -largest)] {
            let found = self.binary(Op::Eq, x, infinity)?;
            let instead = self.number(self.of.value(at, default), dtype)?;
            made = self.row(Op::Where, &[found.into(), instead.into(), made.into()])?;
        }
        Ok(made)
    }
}
