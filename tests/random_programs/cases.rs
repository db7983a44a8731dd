//! Random programs: any op on any values, and the changes by which most of them become valid.

use castwise::prelude::*;
use castwise::{Attrs, CpuLevel, Generator, Key, Op, Operand};
use proptest::prelude::*;

use crate::common::{Random, computes, has, random_tensor};
use crate::reference::generators;

/// One step: an op and the sources of its operands.
#[derive(Clone, Debug)]
pub struct Step {
    pub op: usize,
    pub operands: [u16; 4],
    pub dtype: usize,
}

/// A placeholder or a constant.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub dtype: usize,
    pub shape: usize,
    pub layout: u8,
}

/// A random program: leaves, steps over them, and how they are run.
#[derive(Clone, Debug)]
pub struct Case {
    pub rules: Rules,
    pub leaves: Vec<Leaf>,
    pub steps: Vec<Step>,
    pub seed: u64,
    /// Whether the placeholders' dims are dynamic.
    pub dynamic: bool,
    /// Whether tensors have several tiles and an odd remainder.
    pub long: bool,
    /// Whether loops are compiled, and whether a second run fetches only some of the results.
    pub jit: bool,
    pub partly: bool,
    /// Whether the program also runs under relaxed rounding.
    pub relaxed: bool,
    /// Whether the program is made for compiled loops: its ops are compiled, half of its leaves have one element, each
    /// value is used by the next ones, and a value is stored only if nothing uses it.
    pub fused: bool,
}

impl Leaf {
    /// What the random numbers of a leaf depend on.
    fn key(i: usize) -> Key {
        Key { seed: 0x1234_5678_9abc_def0, stream: i as u64 }
    }

    /// The generator of the leaf at a position, if it is one: every eighth is, if its dtype has random numbers.
    pub fn generator(&self, i: usize, dtype: DType) -> Option<Generator> {
        let key = Leaf::key(i);
        generators::random(key, dtype, &[]).filter(|_| self.layout / 2 == 6)?;
        Some(match dtype {
            DType::Bool => Generator::Bernoulli { p: 0.25, key },
            d if d.is_float() => Generator::Uniform { key, dtype: Some(d) },
            d => Generator::Randint { low: 0, high: 7, key, dtype: Some(d) },
        })
    }
}

pub const SHAPES: [&[usize]; 10] = [&[7], &[3, 7], &[1], &[], &[3, 1], &[2, 3, 7], &[2, 1, 1], &[1, 7], &[0], &[3, 0]];

pub fn cases() -> impl Strategy<Value = Case> {
    // PyTorch's three times as often as each of the others.
    let rules = (0..Rules::ALL.len() + 2).prop_map(|i| Rules::ALL.get(i).copied().unwrap_or(Rules::Torch));
    let shape = prop_oneof![30 => 0..8usize, 1 => 8..SHAPES.len()];
    let leaf = (0..DType::ALL.len(), shape, 0..16u8).prop_map(|(dtype, shape, layout)| Leaf { dtype, shape, layout });
    let step = (0..Op::ALL.len() + CHAINS, any::<[u16; 4]>(), 0..DType::ALL.len());
    let step = step.prop_map(|(op, operands, dtype)| Step { op, operands, dtype });
    let steps = prop_oneof![12 => prop::collection::vec(step.clone(), 1..5), 1 => prop::collection::vec(step, 5..24)];
    let chance = |n: u32| prop::bool::weighted(1.0 / f64::from(n));
    // Compiling Cranelift's loops takes most of the time; the other loops compile fast.
    let compiled = chance(if CpuLevel::get() == CpuLevel::Baseline { 10 } else { 2 });
    let run = (any::<u64>(), any::<bool>(), chance(100), compiled, chance(4), chance(8), chance(4));
    (rules, prop::collection::vec(leaf, 1..5), steps, run).prop_map(|(rules, leaves, steps, run)| {
        let (seed, dynamic, long, jit, partly, relaxed, fused) = run;
        Case { rules, leaves, steps, seed, dynamic, long, jit, partly, relaxed, fused }
    })
}

impl Case {
    /// Whether a second run that fetches only some results fetches result `i`: a random choice, or for a fused program,
    /// whether no application uses it.
    pub fn asks_again_for(&self, nodes: &[Node], leaves: usize, i: usize) -> bool {
        let used = |n: &Node| n.operands.iter().any(|r| matches!(r, Ref::Value(v) if *v == leaves + i));
        if self.fused { !nodes.iter().any(used) } else { self.seed >> (i % 64) & 3 == 0 }
    }
}

/// Ops that are compiled at every CPU level. Ops on bools occur more than once, because a bool has several forms in a
/// loop.
#[rustfmt::skip]
pub const LOOPED: [Op; 47] = [
    Op::Where, Op::Where, Op::Where, Op::Where, Op::Cast, Op::Cast, Op::Mul, Op::Mul, Op::Add, Op::Sub, Op::Div, Op::Neg,
    Op::Abs, Op::Square, Op::Sqrt, Op::Rsqrt, Op::Reciprocal, Op::Sign, Op::Maximum, Op::Minimum, Op::Fmax, Op::Fmin,
    Op::Relu, Op::Floor, Op::Ceil, Op::Trunc, Op::Round, Op::Eq, Op::Ne, Op::Lt, Op::Lt, Op::Le, Op::Gt, Op::Gt, Op::Ge,
    Op::LogicalAnd, Op::LogicalOr, Op::LogicalXor, Op::LogicalNot, Op::BitwiseAnd, Op::BitwiseOr, Op::BitwiseXor,
    Op::BitwiseNot, Op::Isnan, Op::Isinf, Op::Isfinite, Op::Sum,
];

pub const SCALARS: [Scalar; 14] = [
    Scalar::Int(2),
    Scalar::Int(-3),
    Scalar::Float(0.1),
    Scalar::Float(-2.0),
    Scalar::Float(0.5),
    Scalar::Bool(true),
    Scalar::Int(300),
    Scalar::Float(f64::INFINITY),
    Scalar::Complex(num_complex::Complex { re: 0.5, im: -1.0 }),
    Scalar::Int(1),
    Scalar::Float(3.0),
    Scalar::Float(-0.0),
    Scalar::Float(f64::NAN),
    Scalar::Int(3_000_000_000),
];

/// An operand: the index of a value, or a scalar.
#[derive(Clone, Copy, Debug)]
pub enum Ref {
    Value(usize),
    Scalar(Scalar),
}

/// An application, which both modes build.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: Op,
    pub operands: Vec<Ref>,
    pub attrs: Attrs,
}

impl Node {
    pub fn apply<M: Mode>(&self, values: &[Var<M>]) -> Var<M> {
        let operand = |r: &Ref| -> Operand<M> {
            match r {
                Ref::Value(i) => (&values[*i]).into(),
                Ref::Scalar(s) => (*s).into(),
            }
        };
        let operands: Vec<Operand<M>> = self.operands.iter().map(operand).collect();
        castwise::apply(self.op, &operands, self.attrs.clone())
    }
}

/// Chains of ops over the rows of a value, as composites have them: what is reduced of a row is used for its elements again.
const CHAINS: usize = 3;

/// The applications of a chain, and a cast in its place.
fn chain(case: &Case, step: &Step, types: &[DType]) -> Vec<Vec<Node>> {
    let floats = [DType::F32, DType::F64, DType::BF16, DType::F16];
    let floats: Vec<DType> = floats.into_iter().filter(|d| computes(case.rules, *d)).collect();
    let (to, from) = (floats[step.dtype % floats.len()], step.operands[0] as usize % types.len());
    let cast = Node { op: Op::Cast, operands: vec![Ref::Value(from)], attrs: Attrs::cast(to) };
    let mut nodes = vec![];
    let mut push = |op: Op, operands: &[usize]| {
        let attrs = if op.is_reduction() { Attrs::dims([-1]).with_keepdim(true) } else { Attrs::default() };
        nodes.push(Node { op, operands: operands.iter().map(|v| Ref::Value(*v)).collect(), attrs });
        types.len() + nodes.len() - 1
    };
    // `Square` of the value is that of `to`, which the cast before has made.
    let x = if types[from] == to { from } else { types.len() };
    if x != from {
        push(Op::Cast, &[from]);
    }
    match (step.op - Op::ALL.len()) % 3 {
        0 => {
            let most = push(Op::Amax, &[x]);
            let less = push(Op::Sub, &[x, most]);
            let powers = push(Op::Exp, &[less]);
            let sum = push(Op::Sum, &[powers]);
            push(Op::Div, &[powers, sum]);
        }
        1 => {
            let squares = push(Op::Square, &[x]);
            let mean = push(Op::Mean, &[squares]);
            let scale = push(Op::Rsqrt, &[mean]);
            push(Op::Mul, &[x, scale]);
        }
        _ => {
            let mean = push(Op::Mean, &[x]);
            let less = push(Op::Sub, &[x, mean]);
            let squares = push(Op::Square, &[less]);
            let variance = push(Op::Mean, &[squares]);
            let scale = push(Op::Rsqrt, &[variance]);
            push(Op::Mul, &[less, scale]);
        }
    }
    if let Some(first) = nodes.first_mut().filter(|n| n.op == Op::Cast) {
        first.attrs = cast.attrs.clone();
    }
    vec![nodes, vec![cast]]
}

/// The applications to try for a step, the most unusual first: the step itself; the step with its operands cast to a
/// dtype that the op accepts; and the same with one operand in all positions, without scalars.
pub fn tries(case: &Case, step: &Step, types: &[DType]) -> Vec<Vec<Node>> {
    if !case.fused && step.op >= Op::ALL.len() {
        return chain(case, step, types);
    }
    // `assign` must keep its tensor's shape, which is unknown with dynamic dims, so it refuses them.
    let drawn = if case.fused { LOOPED[step.op % LOOPED.len()] } else { Op::ALL[step.op] };
    let op = match drawn {
        Op::Assign if case.dynamic => Op::PromoteWith,
        op => op,
    };
    // Dtypes that are only stored are cast and viewed as bits.
    let moves = matches!(op, Op::Cast | Op::ViewAs);
    let known = |d: &DType| if moves { has(case.rules, *d) } else { computes(case.rules, *d) };
    let parameters = op.def().parameters();
    let value = |i: usize| match step.operands[i] as usize {
        pick if case.fused && pick.is_multiple_of(5) => types.len() - 1,
        pick => pick / 6 % types.len(),
    };
    let wild: Vec<Ref> = (0..op.arity())
        .map(|i| {
            let pick = step.operands[i] as usize;
            // One operand in six is a scalar, but never the first. Parameters are always scalars.
            if i >= op.arity() - parameters || i > 0 && pick.is_multiple_of(6) {
                Ref::Scalar(SCALARS[pick / 6 % SCALARS.len()])
            } else {
                Ref::Value(value(i))
            }
        })
        .collect();
    let accepts = case.rules.accepts(op);
    let accepts: Vec<DType> = accepts.iter().filter(known).collect();
    let first = types[value(0)];
    let fit = match types[value(1)] {
        // There are few casts, so that values of one lane width are combined.
        d if case.fused && op != Op::Cast && accepts.contains(&d) => d,
        _ => accepts[step.dtype * 7 % accepts.len()],
    };
    let attrs = match op {
        Op::Cast => Attrs::cast(fit),
        Op::ViewAs => {
            let same: Vec<DType> = accepts.iter().copied().filter(|d| d.size() == first.size()).collect();
            Attrs::cast(same[step.dtype % same.len()])
        }
        // Some binary ops place an operand at an axis. (Which trailing dims can be dropped depends on extents, so
        // programs with dynamic dims refuse some applications that eager mode accepts.)
        _ if op.arity() == 2 && step.dtype < 2 && !case.dynamic => Attrs::axis(step.operands[2] as i64 % 4 - 1),
        _ if op.is_line() => chosen(op, step, Attrs::dims([&[0][..], &[-1], &[-1], &[1]][step.dtype % 4])),
        _ if op.is_reduction() => {
            let dims = [&[][..], &[0], &[-1], &[0, -1], &[1]][step.dtype % 5];
            // NumPy's mean of an integer dtype is cast from f64, of which the reference knows bounds only.
            let truncated = matches!(op, Op::Mean | Op::Nanmean | Op::Var | Op::Std | Op::Norm) && fit.is_integral();
            let dtype = (step.operands[3].is_multiple_of(6) && !truncated).then_some(fit);
            let attrs = Attrs::dims(dims).with_keepdim(step.dtype > 6);
            let attrs = chosen(op, step, attrs);
            dtype.map_or(attrs.clone(), |d| attrs.with_dtype(d))
        }
        _ => Attrs::default(),
    };
    let mut all = vec![vec![Node { op, operands: wild.clone(), attrs: attrs.clone() }]];
    if matches!(op, Op::Cast | Op::ViewAs) {
        return all;
    }
    for alone in [false, true] {
        let mut nodes = vec![];
        let mut place = |from: usize, to: DType| {
            if types[from] == to {
                return Ref::Value(from);
            }
            nodes.push(Node { op: Op::Cast, operands: vec![Ref::Value(from)], attrs: Attrs::cast(to) });
            Ref::Value(types.len() + nodes.len() - 1)
        };
        let operands = (0..op.arity()).map(|i| {
            let from = value(if alone { 0 } else { i });
            match wild[i] {
                _ if op == Op::Where && i == 0 => place(from, DType::Bool),
                Ref::Value(_) => place(from, fit),
                Ref::Scalar(_) if i >= op.arity() - parameters => Ref::Scalar(match fit {
                    DType::Bool => Scalar::Bool(true),
                    d if d.is_integral() => Scalar::Int(3),
                    _ => Scalar::Float(0.3),
                }),
                // Ops that require equal dtypes accept no scalar.
                Ref::Scalar(_) if alone => place(from, fit),
                Ref::Scalar(_) => Ref::Scalar(if fit.is_float() { Scalar::Float(0.3) } else { Scalar::Int(3) }),
            }
        });
        let operands = operands.collect();
        let mut attrs = if alone { required(op) } else { attrs.clone() };
        (attrs.axis, attrs.dtype) = (None, None);
        nodes.push(Node { op, operands, attrs });
        all.push(nodes);
    }
    all
}

/// The attributes with a number and a choice, if the op takes them.
fn chosen(op: Op, step: &Step, attrs: Attrs) -> Attrs {
    let pick = |i: usize| usize::from(step.operands[i] / 3);
    let attrs = match op.def().number {
        Some(of) if of.default.is_none() || !step.operands[1].is_multiple_of(3) => {
            attrs.with_number(number(op, pick(1)))
        }
        _ => attrs,
    };
    match op.def().choice {
        Some(of) if !step.operands[2].is_multiple_of(3) => attrs.with_choice(of.among[pick(2) % of.among.len()]),
        _ => attrs,
    }
}

/// A number that the op takes.
fn number(op: Op, pick: usize) -> f64 {
    match op.def().number {
        Some(of) if of.counts => of.least.max(1.0) + (pick % 3) as f64,
        Some(of) if of.most == 1.0 => [0.0, 0.25, 0.5, 0.7, 0.999, 1.0][pick % 6],
        _ => [0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 1.5, f64::INFINITY, f64::NEG_INFINITY][pick % 9],
    }
}

/// The attributes that the op must have.
fn required(op: Op) -> Attrs {
    let needs = op.def().number.is_some_and(|of| of.default.is_none());
    if needs { Attrs::default().with_number(number(op, 0)) } else { Attrs::default() }
}

pub fn leaves(case: &Case) -> Vec<Tensor> {
    let mut r = Random(case.seed);
    case.leaves
        .iter()
        .enumerate()
        .map(|(i, leaf)| {
            let mut d = DType::ALL[leaf.dtype];
            if !has(case.rules, d) {
                d = DType::F32;
            }
            let single = case.fused && case.seed >> i & 1 == 1;
            let shape = if single { [&[][..], &[1], &[], &[1, 1]][leaf.shape % 4] } else { SHAPES[leaf.shape] }.iter();
            let shape: Vec<usize> = shape.map(|n| if case.long && *n == 7 { 1117 } else { *n }).collect();
            let made = leaf.generator(i, d).and_then(|_| generators::random(Leaf::key(i), d, &shape));
            if let Some(made) = made {
                return made;
            }
            match (leaf.layout % 5, &shape[..]) {
                (0, [a, b]) => random_tensor(d, &[*b, *a], &mut r, false).transpose(0, 1).unwrap(),
                (1, [n]) => random_tensor(d, &[2 * n], &mut r, false).slice(0, 0, 2 * n, 2).unwrap(),
                (2, [n, ..]) if *n > 0 => random_tensor(d, &shape, &mut r, false).flip(0).unwrap(),
                (3, [a, b]) => random_tensor(d, &[1, *b], &mut r, false).broadcast_to([*a, *b]).unwrap(),
                _ => random_tensor(d, &shape, &mut r, false),
            }
        })
        .collect()
}
