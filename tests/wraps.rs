//! Integer ops that may wrap before the value is cast to a wider dtype (`TypedProgram::hidden_wraps`), compared with
//! exact arithmetic in `i128`. A single op is reported if and only if some operands make it wrap. In programs, every op
//! that wraps is reported, and if none is, the result is that of unbounded integers.

use castwise::ops::Output;
use castwise::prelude::*;
use castwise::{Attrs, Category, Operand, SourceLocation, WrapNote, apply, promote_types};
use regex::Regex;

use crate::common::Random;

const INTEGERS: [DType; 8] =
    [DType::U8, DType::U16, DType::U32, DType::U64, DType::I8, DType::I16, DType::I32, DType::I64];

/// The least and the largest value of a dtype.
fn range(d: DType) -> (i128, i128) {
    match d {
        DType::Bool => (0, 1),
        d if d.is_unsigned() => (0, (1 << (8 * d.size())) - 1),
        d => (-1 << (8 * d.size() - 1), (1 << (8 * d.size() - 1)) - 1),
    }
}

fn wrap(d: DType, v: i128) -> i128 {
    let (least, most) = range(d);
    (v - least).rem_euclid(most - least + 1) + least
}

fn fits(d: DType, v: i128) -> bool {
    let (least, most) = range(d);
    (least..=most).contains(&v)
}

/// The exact result of an op on integers; `None` if it divides by zero, or exceeds 100 bits. New rows of the table that
/// compute in integers must be added here.
fn exact(op: Op, d: DType, a: &[i128]) -> Option<i128> {
    let (x, y) = (a[0], a.get(1).copied().unwrap_or(0));
    let floor = || (x - x.rem_euclid(y.abs())) / y - i128::from(y < 0 && x.rem_euclid(y.abs()) != 0);
    Some(match op {
        Op::FloorDivide | Op::Remainder | Op::DivTrunc | Op::Fmod if y == 0 => return None,
        Op::FloorDivideOrZero | Op::RemainderOrZero | Op::DivTruncOrZero | Op::FmodOrZero if y == 0 => 0,
        Op::PowChecked if y < 0 => return None,
        Op::Reciprocal if x == 0 => range(d).1,
        Op::Reciprocal => 1 / x,
        Op::ImagPart => 0,
        Op::Add => x + y,
        Op::Sub => x - y,
        Op::Mul => x.checked_mul(y)?,
        Op::FloorDivide | Op::FloorDivideOrZero if y > 0 => x.div_euclid(y),
        Op::FloorDivide | Op::FloorDivideOrZero => floor(),
        Op::Remainder | Op::RemainderOrZero if y > 0 => x.rem_euclid(y),
        Op::Remainder | Op::RemainderOrZero => x - y * floor(),
        Op::DivTrunc | Op::DivTruncOrZero => x / y,
        Op::Fmod | Op::FmodOrZero => x % y,
        Op::Pow if y < 0 => match x {
            1 => 1,
            -1 => 1 - 2 * (y & 1),
            _ => 0,
        },
        Op::Pow | Op::PowChecked => x.checked_pow(u32::try_from(y).ok()?).filter(|v| v.abs() < 1 << 100)?,
        Op::Maximum | Op::Fmax | Op::ClampMin => x.max(y),
        Op::Minimum | Op::Fmin | Op::ClampMax => x.min(y),
        Op::BitwiseAnd => x & y,
        Op::BitwiseOr => x | y,
        Op::BitwiseXor => x ^ y,
        // All other bits of the dtype.
        Op::BitwiseNot => range(d).0 + range(d).1 - x,
        Op::Where => {
            if x != 0 {
                y
            } else {
                a[2]
            }
        }
        Op::Neg => -x,
        Op::Abs => x.abs(),
        Op::Sign | Op::Sgn => x.signum(),
        Op::Square => x.checked_mul(x)?,
        Op::Relu => x.max(0),
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::RealPart | Op::Conj | Op::Positive | Op::PromoteWith => x,
        Op::ShiftLeft if y < 0 => 0,
        Op::ShiftLeft if x == 0 => 0,
        Op::ShiftLeft => x * 1i128.checked_shl(u32::try_from(y).ok()?).filter(|p| *p > 0 && *p < 1 << 64)?,
        Op::ShiftRight => x >> if y < 0 { 127 } else { y.min(127) },
        Op::Gcd => gcd(x, y),
        Op::Lcm if x == 0 || y == 0 => 0,
        Op::Lcm => (x / gcd(x, y)).checked_mul(y)?.checked_abs()?,
        Op::Heaviside => {
            if x == 0 {
                y
            } else {
                (x > 0).into()
            }
        }
        Op::Clamp => x.max(y).min(a[2]),
        Op::AddScaled => x.checked_add(a[2].checked_mul(y)?)?,
        Op::SubScaled => x.checked_sub(a[2].checked_mul(y)?)?,
        Op::Addcmul => x.checked_add(a[3].checked_mul(y)?.checked_mul(a[2])?)?,
        Op::Assign => y,
        Op::SquaredDifference => (x - y).checked_mul(x - y)?,
        _ => panic!("no exact result for `{op}` of {d}"),
    })
}

fn gcd(x: i128, y: i128) -> i128 {
    if y == 0 { x.abs() } else { gcd(y, x % y) }
}

/// Whether an op wraps for these operands. A result that `exact` can't represent is outside every dtype.
fn leaves(op: Op, d: DType, a: &[i128]) -> bool {
    let divides = matches!(op, Op::FloorDivide | Op::Remainder | Op::DivTrunc | Op::Fmod) && a[1] == 0;
    let refuses = op == Op::PowChecked && a[1] < 0;
    !divides && !refuses && exact(op, d, a).is_none_or(|v| !fits(d, v))
}

/// All values of 8-bit dtypes; for others, the extremes and small numbers.
fn values(d: DType, few: bool) -> Vec<i128> {
    let (least, most) = range(d);
    if d.size() == 1 && !few {
        return (least..=most).collect();
    }
    let mut all = vec![least, least + 1, -2, -1, 0, 1, 2, 3, 11, most / 2, most - 1, most];
    all.retain(|v| fits(d, *v));
    all.dedup();
    all
}

/// Whether the op wraps for some combination of these operands.
fn some_leave(op: Op, d: DType, operands: &[Vec<i128>]) -> bool {
    let mut at = vec![0; operands.len()];
    loop {
        let a: Vec<i128> = at.iter().zip(operands).map(|(i, all)| all[*i]).collect();
        if leaves(op, d, &a) {
            return true;
        }
        let Some(k) = (0..at.len()).find(|k| at[*k] + 1 < operands[*k].len()) else { return false };
        at[..k].fill(0);
        at[k] += 1;
    }
}

/// An operand of a single op.
#[derive(Clone, Copy, Debug)]
enum Given {
    Tensor(DType),
    /// A tensor that is cast.
    Cast(DType, DType),
    Scalar(i64),
}

/// The program of an op on operands, whose result is cast to f64: its compute dtype, and the reported wraps. `None` if
/// the program has a mistake.
fn alone(rules: Rules, op: Op, attrs: Attrs, operands: &[Given]) -> Option<(DType, Vec<WrapNote>)> {
    let p = Program::new(rules);
    let one = |(i, o): (usize, &Given)| match o {
        Given::Tensor(d) => Operand::Var(p.data(&format!("x{i}"), *d, [3])),
        Given::Cast(d, to) => Operand::Var(p.data(&format!("x{i}"), *d, [3]).cast(*to)),
        Given::Scalar(v) => Operand::Scalar((*v).into()),
    };
    let operands: Vec<Operand<castwise::Graph>> = operands.iter().enumerate().map(one).collect();
    let result = apply(op, &operands, attrs);
    let _ = result.cast(DType::F64);
    let typed = p.infer().ok()?;
    Some((typed.dtype(&result)?, typed.hidden_wraps()))
}

fn elementwise() -> impl Iterator<Item = Op> {
    Op::ALL.iter().copied().filter(|op| !op.has_dims() && !matches!(op, Op::Cast | Op::ViewAs))
}

#[test]
fn every_row_of_every_integer_dtype_is_told_of_if_it_can_wrap() {
    let (mut told, mut seen) = (0, 0);
    for rules in Rules::ALL.iter().copied() {
        for op in elementwise() {
            for d in INTEGERS {
                let tensors = op.arity() - op.def().parameters();
                for parameter in [-2, -1, 0, 1, 2, 100] {
                    let mut operands = vec![Given::Tensor(d); op.arity()];
                    operands[tensors..].fill(Given::Scalar(parameter));
                    if op == Op::Where {
                        operands[0] = Given::Tensor(DType::Bool);
                    }
                    let Some((result, notes)) = alone(rules, op, Attrs::default(), &operands) else { continue };
                    seen += 1;
                    if result.category() != Category::Int {
                        assert!(notes.is_empty(), "{op} of {d} gives {result}");
                        continue;
                    }
                    assert_eq!(result, d, "{op}");
                    let few = op.arity() > 2 && op != Op::Where;
                    let all: Vec<Vec<i128>> = operands
                        .iter()
                        .map(|o| match o {
                            Given::Tensor(d) | Given::Cast(_, d) => values(*d, few || op == Op::Where),
                            Given::Scalar(v) => vec![wrap(d, (*v).into())],
                        })
                        .collect();
                    let wraps = d.size() < 8 && some_leave(op, d, &all);
                    assert_eq!(notes.len(), usize::from(wraps), "{op} of {d} under {rules}, {parameter}: {notes:?}");
                    for n in &notes {
                        // Under NumPy's rules another row of the table may compute it, of a name that starts as the op's.
                        assert!(n.op.name().starts_with(op.name()), "{n:?}");
                        assert_eq!((n.dtype, n.to), (d, DType::F64));
                        let whole = i128::from(i64::MIN)..=i128::from(i64::MAX);
                        let within = n.needs.start() >= n.has.start() && n.needs.end() <= n.has.end();
                        assert!(!within && whole.contains(n.has.start()), "{n:?}");
                        told += 1;
                    }
                    if operands.len() == tensors {
                        break;
                    }
                }
            }
        }
    }
    assert!(seen > 600 && told > 100, "only {told} of {seen}");
}

#[test]
fn every_scalar_beside_every_byte() {
    let mut told = 0;
    for op in elementwise().filter(|op| op.arity() == 2) {
        for d in [DType::U8, DType::I8] {
            let all = values(d, false);
            for scalar in &all {
                for position in [0, 1] {
                    let mut operands = [Given::Tensor(d); 2];
                    operands[position] = Given::Scalar(*scalar as i64);
                    let Some((result, notes)) = alone(Rules::Torch, op, Attrs::default(), &operands) else { continue };
                    if result.category() != Category::Int {
                        assert!(notes.is_empty(), "{op} of {d} gives {result}");
                        continue;
                    }
                    let mut sets = [all.clone(), all.clone()];
                    sets[position] = vec![*scalar];
                    let wraps = some_leave(op, d, &sets);
                    assert_eq!(notes.len(), usize::from(wraps), "{op} of {operands:?}: {notes:?}");
                    told += notes.len();
                }
            }
        }
    }
    assert!(told > 3000, "only {told}");
}

#[test]
fn of_casts_and_reductions_those_that_wrap_are_told_of() {
    for from in DType::ALL {
        for to in DType::ALL {
            for op in [Op::Cast, Op::ViewAs] {
                let told = alone(Rules::Torch, op, Attrs::cast(to), &[Given::Tensor(from)]);
                assert!(told.is_none_or(|(_, notes)| notes.is_empty()), "{op} from {from} to {to}");
            }
        }
        for op in Op::ALL.iter().copied().filter(|op| op.has_dims()) {
            let told = alone(Rules::Torch, op, Attrs::default(), &[Given::Tensor(from)]);
            assert!(told.is_none_or(|(_, notes)| notes.is_empty()), "{op} of {from}");
            // Three elements, with a requested dtype.
            for to in INTEGERS.into_iter().filter(|d| d.size() < 8) {
                let Some((_, notes)) = alone(Rules::Torch, op, Attrs::cast(to), &[Given::Tensor(from)]) else {
                    continue;
                };
                let given = if from.is_integral() { range(from) } else { range(to) };
                let (least, most) = if fits(to, given.0) && fits(to, given.1) { given } else { range(to) };
                let ends = match op {
                    Op::Sum | Op::Nansum | Op::Cumsum => vec![3 * least, 3 * most],
                    Op::Prod | Op::Cumprod => vec![least * least * least, least * least * most, most * most * most],
                    _ => vec![],
                };
                let wraps = ends.iter().any(|v| !fits(to, *v));
                assert_eq!(notes.len(), usize::from(wraps), "{op} of {from} in {to}: {notes:?}");
            }
        }
    }
}

#[test]
fn what_the_help_says_to_write_does_not_wrap() {
    let cast = Regex::new(r"`(\w+)\.cast\(DType::(\w+)\)`").unwrap();
    let mut tried = 0;
    for rules in Rules::ALL.iter().copied() {
        for op in elementwise() {
            for d in [DType::U8, DType::I8, DType::I16, DType::I32] {
                let tensors = op.arity() - op.def().parameters();
                let mut operands = vec![Given::Tensor(d); op.arity()];
                operands[tensors..].fill(Given::Scalar(2));
                let Some((_, notes)) = alone(rules, op, Attrs::default(), &operands) else { continue };
                for n in notes {
                    let all = n.help.starts_with("cast the operands first");
                    let (_, [name, to]) = cast.captures(&n.help).unwrap().extract();
                    for (name_of, o) in op.def().operands.iter().zip(&mut operands) {
                        if (all || *name_of == name) && matches!(o, Given::Tensor(_)) {
                            *o = Given::Cast(d, to.to_lowercase().parse().unwrap());
                        }
                    }
                    let again = alone(rules, op, Attrs::default(), &operands);
                    assert!(again.is_some_and(|(_, notes)| notes.is_empty()), "{op} of {operands:?}: {}", n.help);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 50, "only {tried}");
}

/// A node of a random program: its range in the text, and how its value is computed from earlier nodes.
struct Node {
    location: std::ops::Range<u32>,
    dtype: DType,
    form: Form,
}

enum Form {
    Feed(usize),
    Scalar(i128),
    Cast(usize),
    Apply(Op, Vec<usize>),
}

/// Random programs over two feeds of 8-bit integers. Each call has its own range in the text.
struct Writer {
    r: Random,
    text: String,
    nodes: Vec<Node>,
    /// Whether the program has ops that use only low bits.
    masks: bool,
}

impl Writer {
    fn node(&mut self, start: usize, dtype: DType, form: Form) -> usize {
        let location = start as u32..self.text.len() as u32;
        self.nodes.push(Node { location, dtype, form });
        self.nodes.len() - 1
    }

    fn scalar(&mut self, d: DType, choices: &[i128]) -> usize {
        let v = choices[self.r.below(choices.len() as u64) as usize];
        let start = self.text.len();
        self.text += &v.to_string();
        self.node(start, d, Form::Scalar(v))
    }

    fn expression(&mut self, depth: usize) -> usize {
        let start = self.text.len();
        if depth == 0 {
            let feed = self.r.below(2) as usize;
            self.text += ["a", "b"][feed];
            return self.node(start, [DType::U8, DType::I8][feed], Form::Feed(feed));
        }
        let unary = [Op::Neg, Op::Abs, Op::Square, Op::Relu, Op::Sign];
        let binary = [Op::Add, Op::Sub, Op::Mul, Op::Maximum, Op::Minimum, Op::BitwiseXor, Op::BitwiseOr, Op::Gcd];
        match self.r.below(if self.masks { 12 } else { 9 }) {
            0 => {
                // A cast to a wider integer.
                self.text += "cast(";
                let of = self.expression(depth - 1);
                let to =
                    promote_types(self.nodes[of].dtype, [DType::I16, DType::I32][self.r.below(2) as usize]).unwrap();
                self.text += &format!(", {to})");
                self.node(start, to, Form::Cast(of))
            }
            1 | 2 => {
                let op = unary[self.r.below(unary.len() as u64) as usize];
                self.call(op, depth, None)
            }
            3 => {
                let op = [Op::FloorDivide, Op::ShiftLeft, Op::ShiftRight][self.r.below(3) as usize];
                self.call(op, depth, Some(&[1, 2, 3]))
            }
            4 | 5 => {
                let op = binary[self.r.below(7) as usize];
                self.call(op, depth, Some(&[0, 1, 2, 7, 100, 127]))
            }
            9 => self.call(Op::BitwiseAnd, depth, Some(&[1, 15, 127])),
            10 => self.call(Op::Remainder, depth, Some(&[1, 4, 10, 16, 64])),
            11 => {
                self.text += "cast(";
                let of = self.expression(depth - 1);
                self.text += ", i8)";
                self.node(start, DType::I8, Form::Cast(of))
            }
            _ => {
                let op = binary[self.r.below(binary.len() as u64) as usize];
                self.call(op, depth, None)
            }
        }
    }

    /// A call of an op with one or two operands. The second may be a scalar.
    fn call(&mut self, op: Op, depth: usize, scalars: Option<&[i128]>) -> usize {
        let start = self.text.len();
        self.text += &format!("{op}(");
        let x = self.expression(depth - 1);
        let (mut operands, mut dtype) = (vec![x], self.nodes[x].dtype);
        if op.arity() == 2 {
            self.text += ", ";
            let y = match scalars {
                Some(all) => self.scalar(dtype, all),
                None => {
                    let less = self.r.below(depth as u64) as usize;
                    self.expression(less)
                }
            };
            dtype = promote_types(dtype, self.nodes[y].dtype).unwrap();
            operands.push(y);
        }
        self.text += ")";
        self.node(start, dtype, Form::Apply(op, operands))
    }
}

/// The value of each node for two feeds, wrapped to its dtype or unbounded, and the ops that wrap. `None` beyond 100
/// bits.
fn evaluate(nodes: &[Node], feeds: [i128; 2], bounded: bool, wraps: &mut Vec<usize>) -> Option<Vec<i128>> {
    let mut all: Vec<i128> = Vec::with_capacity(nodes.len());
    for (i, n) in nodes.iter().enumerate() {
        let v = match &n.form {
            Form::Feed(k) => feeds[*k],
            Form::Scalar(v) => *v,
            // An explicit cast to a narrower or a signed integer wraps as requested.
            Form::Cast(of) if n.dtype.size() <= nodes[*of].dtype.size() => wrap(n.dtype, all[*of]),
            Form::Cast(of) => all[*of],
            Form::Apply(op, operands) => {
                let a: Vec<i128> = operands.iter().map(|o| all[*o]).collect();
                let v = exact(*op, n.dtype, &a).filter(|v| v.abs() < 1 << 100);
                if bounded {
                    if !v.is_some_and(|v| fits(n.dtype, v)) {
                        wraps.push(i);
                    }
                    wrap(n.dtype, v?)
                } else {
                    v?
                }
            }
        };
        all.push(v);
    }
    Some(all)
}

fn written(seed: u64, masks: bool) -> (Vec<Node>, String, Vec<WrapNote>) {
    let mut w = Writer { r: Random(seed), text: String::new(), nodes: vec![], masks };
    let depth = 1 + w.r.below(4) as usize;
    w.text += "cast(";
    w.expression(depth);
    w.text += ", f64)";
    let p = Program::new(Rules::Torch);
    p.data("a", DType::U8, [4]);
    p.data("b", DType::I8, [4]);
    // The text may use only one of the placeholders.
    p.expression(&w.text).unwrap_or_else(|e| panic!("{}: {e}", w.text));
    let notes = p.infer().unwrap_or_else(|e| panic!("{}: {e}", w.text)).hidden_wraps();
    (w.nodes, w.text, notes)
}

/// Pairs of 8-bit values: the extremes, the middle, and some between.
fn pairs() -> Vec<[i128; 2]> {
    let some = |d: DType, step: usize| {
        let mut all = values(d, true);
        all.extend(values(d, false).into_iter().step_by(step));
        all
    };
    some(DType::U8, 29).iter().flat_map(|a| some(DType::I8, 31).into_iter().map(|b| [*a, b])).collect()
}

#[test]
fn of_random_programs_every_op_that_wraps_is_told_of() {
    let (pairs, mut seen) = (pairs(), 0);
    for seed in 0..3000 {
        let (nodes, text, notes) = written(seed, false);
        let places: Vec<&SourceLocation> = notes.iter().map(|n| &n.location).collect();
        let mut wraps = vec![];
        for feeds in &pairs {
            let _ = evaluate(&nodes, *feeds, true, &mut wraps);
        }
        wraps.sort_unstable();
        wraps.dedup();
        for i in wraps {
            let location = SourceLocation::Text(nodes[i].location.clone());
            assert!(places.contains(&&location), "{text}: {location} wraps, told of {places:?}");
            seen += 1;
        }
    }
    assert!(seen > 1500, "only {seen}");
}

#[test]
fn a_random_program_of_which_nothing_is_told_has_the_results_of_unbounded_integers() {
    let (pairs, mut silent) = (pairs(), 0);
    let mut rescued = 0;
    for seed in 0..6000 {
        let (nodes, text, notes) = written(seed, true);
        if !notes.is_empty() {
            continue;
        }
        silent += 1;
        let mut wraps = vec![];
        for feeds in &pairs {
            let ideal = evaluate(&nodes, *feeds, false, &mut vec![]).unwrap();
            let real = evaluate(&nodes, *feeds, true, &mut wraps).unwrap();
            assert_eq!(ideal.last(), real.last(), "{text} of {feeds:?}");
        }
        rescued += usize::from(!wraps.is_empty());
    }
    assert!(silent > 1000 && rescued > 100, "{silent} without a note, {rescued} of them wrap behind a mask");
}

#[test]
fn rows_that_give_integers_say_how_their_range_follows() {
    use castwise::ops::{Choice, IntRange};
    for op in Op::ALL.iter().copied() {
        let def = op.def();
        let integers = INTEGERS.iter().any(|d| Rules::ALL.iter().any(|rules| rules.accepts(op).has(*d)));
        let gives = |rules| {
            let mut operands = vec![Given::Tensor(DType::I32); op.arity()];
            operands[op.arity() - def.parameters()..].fill(Given::Scalar(1));
            if op == Op::Where {
                operands[0] = Given::Tensor(DType::Bool);
            }
            // A quantile gives integers if it is an element.
            let choice = def.choice.and_then(|of| of.among.iter().copied().find(|c| *c == Choice::Lower));
            let number = def.number.filter(|of| of.default.is_none()).map(|of| of.least.max(0.0));
            let mut attrs = Attrs::default();
            (attrs.choice, attrs.number) = (choice, number.map(Into::into));
            alone(rules, op, attrs, &operands).is_some_and(|(d, _)| d.category() == Category::Int)
        };
        let given = integers && def.output != Output::Bool && Rules::ALL.iter().copied().any(gives);
        let whole = def.integers == IntRange::Whole;
        // The reciprocal of 0 is the dtype's largest number.
        let any = matches!(op, Op::Cast | Op::ViewAs | Op::Reciprocal);
        assert!(!given || !whole || any, "`{op}` gives integers of any range");
        assert!(given || whole, "`{op}` gives no integers");
    }
}

/// What is added at an index wraps and rounds as a sum does.
#[test]
fn sums_at_an_index_are_among_what_wraps_and_rounds() -> castwise::Result<()> {
    let p = Program::new(Rules::Torch);
    let (x, h) = (p.data("x", DType::U8, [4]), p.data("h", DType::F16, [4]));
    let i = p.data("i", DType::I64, [4]);
    let _wraps = x.scatter_add(&i, &x, 0).cast(DType::I32);
    let _rounds = h.scatter_add(&i, &h, 0).cast(DType::F32);
    let typed = p.infer()?;
    let (wraps, rounds) = (typed.hidden_wraps(), typed.hidden_roundings());
    assert_eq!((wraps.len(), rounds.len()), (1, 1), "{wraps:?} {rounds:?}");
    assert_eq!((wraps[0].dtype, rounds[0].dtype), (DType::U8, DType::F16));
    let _refused = x.take_along_dim(&p.data("j", DType::U64, [4]), 0);
    let e = p.check().unwrap_err().to_string();
    assert!(e.contains("an index of u64[4]"), "{e}");
    Ok(())
}
