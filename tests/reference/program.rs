//! Evaluates the text of typed programs line by line.
//!
//! Guarantees: every result of the program is compared with the results that its operands' bits allow, and is then used
//! for the following lines, so the error of a function does not propagate. Broadcasting is index arithmetic. Does not:
//! read printed dims other than those of a view.

use std::collections::HashMap;

use castwise::{DType, Op, Tensor};

use super::format::{Beyond, cast, encode};
use super::order::{Quantiles, Ranked};
use super::{Answer, DividedByZero, Expected, Value, element, fold, format, in_math, lines, order, real, rounded};

/// A tensor's elements as bits, in row-major order.
#[derive(Clone, Debug)]
pub struct Array {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bits: Vec<u128>,
}

impl Array {
    pub fn of(t: &Tensor) -> Array {
        let whole = t.contiguous().unwrap();
        let bytes = whole.as_bytes().unwrap();
        let one = |b: &[u8]| b.iter().rev().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
        let bits = bytes.chunks(t.dtype().size()).map(one).collect();
        Array { dtype: t.dtype(), shape: t.shape().to_vec(), bits }
    }
}

/// A value of a program: the op that made it, and castwise's result.
pub struct Given<'a> {
    pub op: Op,
    pub result: &'a Tensor,
}

/// The numbers of checked elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub exact: u64,
    pub bounded: u64,
    pub open: u64,
}

/// A checked application, for coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    pub op: Op,
    /// The compute dtype, or the source dtype of a cast.
    pub dtype: DType,
    pub broadcast: Broadcast,
}

/// An operand with one element beside others with more: the op, the position, and the kind of operand.
pub type Role = (Op, usize, Single);

/// The kind of an operand with one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Single {
    /// A tensor with dims.
    OneElement,
    ZeroDim,
    Scalar,
}

/// How operands broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Broadcast {
    /// One tensor, or several with one shape.
    Equal,
    /// Tensors with different shapes.
    Shapes,
    /// A 0-d tensor beside one with dims.
    ZeroDim,
    /// A scalar.
    Scalar,
}

/// A wrong result, or a division of an integer by zero.
#[derive(Debug)]
pub enum Mismatch {
    Wrong(String),
    DividedByZero,
}

impl From<DividedByZero> for Mismatch {
    fn from(_: DividedByZero) -> Mismatch {
        Mismatch::DividedByZero
    }
}

/// An operand in the text.
enum Arg {
    Node(String),
    Scalar(Value, DType, DType),
}

/// One line: `%3: f32[2, 3] = add %1, 0.5:f32`.
struct Line<'a> {
    name: &'a str,
    dtype: DType,
    dims: &'a str,
    op: &'a str,
    args: &'a str,
    /// The attributes in braces after the operands.
    attrs: &'a str,
    comment: &'a str,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Option<Line<'a>> {
        let (body, comment) = text.split_once(';').unwrap_or((text, ""));
        let (name, rest) = body.trim().split_once(": ")?;
        let (typed, application) = rest.split_once(" = ")?;
        let (dtype, dims) = typed.split_once('[')?;
        let dtype = dtype.trim_end_matches('*');
        let (op, rest) = application.trim().split_once(' ')?;
        let (args, attrs) = rest.split_once(" {").unwrap_or((rest, ""));
        let dims = dims.trim_end_matches(']');
        Some(Line { name, dtype: dtype.parse().ok()?, dims, op, args: args.trim(), attrs, comment })
    }
}

/// Whether the row of this name has the values of an op under NumPy's or JAX's rules.
fn stands_for(name: &str, op: Op) -> bool {
    let rows: &[&str] = match op {
        Op::FloorDivide => &["floor_divide_or_zero"],
        Op::Remainder => &["remainder_or_zero", "remainder_signed"],
        Op::Fmod => &["fmod_or_zero"],
        Op::DivTrunc => &["div_trunc_or_zero"],
        Op::Pow => &["pow_checked"],
        Op::Sign | Op::Sgn => &["sign_or_nan", "sign_of_zero"],
        Op::Heaviside => &["heaviside_or_nan"],
        Op::Angle => &["angle_signed"],
        Op::Ldexp => &["ldexp_float"],
        Op::Fma => &["fma_half"],
        Op::FmaHalf => &["fma"],
        Op::AddScaled => &["add_scaled_fma"],
        Op::SubScaled => &["sub_scaled_fma"],
        Op::Addcmul => &["addcmul_fma"],
        Op::Lerp => &["lerp_fma"],
        Op::Eq => &["eq_mixed"],
        Op::Ne => &["ne_mixed"],
        Op::Lt => &["lt_mixed"],
        Op::Le => &["le_mixed"],
        Op::Gt => &["gt_mixed"],
        Op::Ge => &["ge_mixed"],
        _ => &[],
    };
    rows.contains(&name)
}

/// Splits operands at commas outside parentheses.
fn split(args: &str) -> Vec<&str> {
    let (mut depth, mut start, mut all) = (0, 0, vec![]);
    for (i, c) in args.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                all.push(args[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    all.push(args[start..].trim());
    all
}

fn arg(text: &str) -> Option<Arg> {
    if text.starts_with('%') {
        return Some(Arg::Node(text.to_string()));
    }
    let (value, to) = text.rsplit_once(':')?;
    let to = to.parse().ok()?;
    let float = |s: &str| s.trim().parse::<f64>().ok();
    Some(if let Some(pair) = value.strip_prefix('(') {
        let (re, im) = pair.strip_suffix(')')?.split_once(',')?;
        Arg::Scalar(Value::Pair(float(re)?, float(im)?), DType::C128, to)
    } else if let Ok(truth) = value.parse::<bool>() {
        Arg::Scalar(Value::Int(truth.into()), DType::Bool, to)
    } else if let Ok(whole) = value.parse::<i128>() {
        Arg::Scalar(Value::Int(whole), if whole > i64::MAX.into() { DType::U64 } else { DType::I64 }, to)
    } else {
        Arg::Scalar(Value::Real(float(value)?), DType::F64, to)
    })
}

/// The shape that these shapes broadcast to.
fn broadcast(shapes: &[&[usize]]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(|s| s.len()).max()?;
    (0..rank)
        .map(|axis| {
            let mut common = 1;
            for s in shapes {
                let n = if axis + s.len() < rank { 1 } else { s[axis + s.len() - rank] };
                if n != 1 && common != 1 && n != common {
                    return None;
                }
                common = if n == 1 { common } else { n };
            }
            Some(common)
        })
        .collect()
}

/// Advances an index of a shape in row-major order.
fn advance(index: &mut [usize], shape: &[usize]) {
    for axis in (0..shape.len()).rev() {
        index[axis] += 1;
        if index[axis] < shape[axis] {
            return;
        }
        index[axis] = 0;
    }
}

/// The position of the operand's element for an index of the result.
fn place(shape: &[usize], index: &[usize]) -> usize {
    let skipped = index.len() - shape.len();
    shape.iter().enumerate().fold(0, |at, (axis, n)| at * n + if *n == 1 { 0 } else { index[axis + skipped] })
}

/// The evaluation of one program.
pub struct Run<'a> {
    /// Whether powers are those of C, under Paddle's and JAX's rules, so that those of 0.5 are no roots.
    no_roots: bool,
    beyond: Beyond,
    quantiles: Quantiles,
    arrays: HashMap<String, Array>,
    constants: std::vec::IntoIter<&'a Tensor>,
    pub tally: Tally,
    pub seen: Vec<Seen>,
    pub roles: Vec<Role>,
}

impl<'a> Run<'a> {
    /// A run with these named feeds, and the constants in the order of the program.
    pub fn new(feeds: &[(String, &Tensor)], constants: Vec<&'a Tensor>) -> Run<'a> {
        let arrays = feeds.iter().map(|(name, t)| (format!("%{name}"), Array::of(t))).collect();
        Run {
            no_roots: false,
            beyond: Beyond::Largest,
            quantiles: Quantiles::default(),
            arrays,
            constants: constants.into_iter(),
            tally: Tally::default(),
            seen: vec![],
            roles: vec![],
        }
    }

    /// Checks the values of a program's applications, in order.
    pub fn check(&mut self, text: &str, values: &[Given<'_>]) -> Result<(), Mismatch> {
        let rules = |name: &str| text.starts_with(&format!("program(rules = {name}"));
        self.no_roots = rules("paddle") || rules("jax");
        self.beyond = if rules("numpy") || rules("jax") { Beyond::Nan } else { Beyond::Largest };
        let single = rules("jax") && !text.lines().next().is_some_and(|l| l.contains("x64 = true"));
        self.quantiles = Quantiles { next: rules("numpy"), weighted: rules("jax"), single };
        let mut values = values.iter();
        let mut open: Option<&Given<'_>> = None;
        for line in text.lines().skip(1).filter(|l| !l.starts_with('}') && !l.trim_start().starts_with("fetch")) {
            let wrong = |what: String| Mismatch::Wrong(format!("{what}\nat {}", line.trim()));
            let l = Line::parse(line).ok_or_else(|| wrong("a line that the reference does not read".into()))?;
            // A generator's elements are given, as the definition has them.
            if ["constant", "uniform", "bernoulli", "randint"].contains(&l.op) {
                let t = self.constants.next().ok_or_else(|| wrong("one constant too many".into()))?;
                self.arrays.insert(l.name.to_string(), Array::of(t));
                continue;
            }
            let (dtype, shape, expected) = self.line(&l)?;
            let implied = l.op == "view" || l.op == "cast" && l.comment.contains(", for ");
            // The result of an application may be cast in the next line.
            let given = match open.take() {
                Some(g) => Some(g),
                None if implied => None,
                None => Some(values.next().ok_or_else(|| wrong("one application too many".into()))?),
            };
            let Some(given) = given else {
                self.adopt(l.name, dtype, shape, &expected).map_err(wrong)?;
                continue;
            };
            if given.result.dtype() != dtype {
                self.adopt(l.name, dtype, shape, &expected).map_err(wrong)?;
                open = Some(given);
                continue;
            }
            if !implied && l.op != given.op.name() && !stands_for(l.op, given.op) {
                return Err(wrong(format!("{} is not {}", l.op, given.op)));
            }
            let actual = Array::of(given.result);
            if actual.shape != shape {
                return Err(wrong(format!("the shape is {:?}, not {shape:?}", actual.shape)));
            }
            for (i, (e, bits)) in expected.iter().zip(&actual.bits).enumerate() {
                if !e.admits(dtype, *bits) {
                    let (is, operands) = (format::decode(dtype, *bits), self.operands_at(&l, &shape, i));
                    return Err(wrong(format!("element {i} is {is:?} ({bits:#x}), not {e:x?}; of {operands}")));
                }
                match e {
                    Expected::Bits(_) => self.tally.exact += 1,
                    Expected::Open => self.tally.open += 1,
                    _ => self.tally.bounded += 1,
                }
            }
            self.arrays.insert(l.name.to_string(), actual);
        }
        match values.next() {
            Some(g) => Err(Mismatch::Wrong(format!("no line for {}", g.op))),
            None => Ok(()),
        }
    }

    /// Checks one line of a typed program: a value that a model gives, or that the line's operands allow. Without a result the value must be
    /// exact. The value is then used by the lines that follow, and returned.
    pub fn check_line(&mut self, line: &str, model: Option<Array>, result: Option<&Tensor>) -> Result<Array, Mismatch> {
        let wrong = |what: String| Mismatch::Wrong(format!("{what}\nat {}", line.trim()));
        let l = Line::parse(line).ok_or_else(|| wrong("a line that the reference does not read".into()))?;
        let (dtype, shape, expected) = match model {
            Some(a) => (a.dtype, a.shape, a.bits.into_iter().map(Expected::Bits).collect()),
            None => self.line(&l)?,
        };
        let Some(result) = result else {
            self.adopt(l.name, dtype, shape, &expected).map_err(wrong)?;
            return self.get(l.name).cloned();
        };
        let actual = Array::of(result);
        if (actual.dtype, &actual.shape) != (dtype, &shape) {
            return Err(wrong(format!("it is {}{:?}, not {dtype}{shape:?}", actual.dtype, actual.shape)));
        }
        for (i, (e, bits)) in expected.iter().zip(&actual.bits).enumerate() {
            if !e.admits(dtype, *bits) {
                let (is, operands) = (format::decode(dtype, *bits), self.operands_at(&l, &shape, i));
                return Err(wrong(format!("element {i} is {is:?} ({bits:#x}), not {e:x?}; of {operands}")));
            }
        }
        self.arrays.insert(l.name.to_string(), actual.clone());
        Ok(actual)
    }

    /// Uses the expected value, which must be exact, because castwise's value is not available.
    fn adopt(&mut self, name: &str, dtype: DType, shape: Vec<usize>, expected: &[Expected]) -> Result<(), String> {
        let exact = expected.iter().map(|e| match e {
            Expected::Bits(b) => Ok(*b),
            other => Err(format!("{other:?} where bits are needed")),
        });
        let bits = exact.collect::<Result<_, _>>()?;
        self.arrays.insert(name.to_string(), Array { dtype, shape, bits });
        Ok(())
    }

    fn get(&self, name: &str) -> Result<&Array, Mismatch> {
        self.arrays.get(name).ok_or_else(|| Mismatch::Wrong(format!("{name} is used before it is known")))
    }

    /// The operand values of one element, for a message.
    fn operands_at(&self, l: &Line<'_>, shape: &[usize], i: usize) -> String {
        let mut index = vec![0; shape.len()];
        (0..i).for_each(|_| advance(&mut index, shape));
        let one = |text: &str| match self.arrays.get(text) {
            Some(a) if a.shape.len() <= index.len() && Op::from_name(l.op).is_some_and(|op| !op.has_dims()) => {
                let bits = a.bits[place(&a.shape, &index)];
                format!("{:?} ({} {bits:#x})", format::decode(a.dtype, bits), a.dtype)
            }
            _ => text.to_string(),
        };
        split(l.args).into_iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The accepted elements of a line's result.
    fn line(&mut self, l: &Line<'_>) -> Result<(DType, Vec<usize>, Vec<Expected>), Mismatch> {
        let unread = || Mismatch::Wrong(format!("the reference does not read `{} {}`", l.op, l.args));
        if matches!(l.op, "cast" | "view" | "view_as") {
            let from = self.get(l.args.trim())?;
            let bits = |b: u128| match l.op {
                "cast" => cast(from.dtype, b, l.dtype, self.beyond),
                "view_as" if l.dtype == DType::Bool => (b != 0).into(),
                _ => b,
            };
            let expected = from.bits.iter().map(|b| Expected::Bits(bits(*b))).collect();
            let fixed = || l.dims.split(',').filter(|d| !d.trim().is_empty()).map(|d| d.trim().parse().ok()).collect();
            let shape =
                if l.op == "view" { Option::<Vec<usize>>::ok_or(fixed(), unread())? } else { from.shape.clone() };
            if let Some(op) = Op::from_name(l.op) {
                let seen = Seen { op, dtype: from.dtype, broadcast: Broadcast::Equal };
                self.seen.push(seen);
            }
            return Ok((l.dtype, shape, expected));
        }
        let op = Op::from_name(l.op).ok_or_else(unread)?;
        if op.is_reduction() {
            return self.reduction(op, l);
        }
        if matches!(op, Op::Sort | Op::Argsort | Op::Topk | Op::TopkIndices) {
            return self.ordered(op, l);
        }
        if op.is_line() {
            return self.lines(op, l);
        }
        let args: Vec<Arg> = split(l.args).into_iter().map(arg).collect::<Option<_>>().ok_or_else(unread)?;
        let mut tensors: Vec<Option<&Array>> = vec![];
        for a in &args {
            tensors.push(match a {
                Arg::Node(name) => Some(self.get(name)?),
                Arg::Scalar(..) => None,
            });
        }
        let shapes: Vec<&[usize]> = tensors.iter().flatten().map(|a| &a.shape[..]).collect();
        let shape = broadcast(&shapes).ok_or_else(|| Mismatch::Wrong(format!("{shapes:?} do not broadcast")))?;
        // The compute dtype is the result's, or that of the first operand after a condition.
        let first = tensors.iter().skip(usize::from(op == Op::Where)).flatten().next();
        let compute = match op.def().output {
            castwise::ops::Output::Same => l.dtype,
            _ => first.ok_or_else(unread)?.dtype,
        };
        let special = |a: &Arg| match a {
            Arg::Scalar(Value::Real(e), ..) => Some(*e),
            Arg::Scalar(Value::Int(e), DType::I64 | DType::U64, _) => Some(*e as f64),
            _ => None,
        };
        let exponent = args.get(1).and_then(special).filter(|e| {
            matches!(op, Op::Pow | Op::FloatPower) && compute.is_float() && !(self.no_roots && e.abs() == 0.5)
        });
        let math = real::Math { single: compute.op_math() == DType::F32 };
        let n: usize = shape.iter().product();
        let mut expected = Vec::with_capacity(n);
        let (mut index, mut wide, mut bits) = (vec![0; shape.len()], vec![], vec![]);
        for _ in 0..n {
            wide.clear();
            bits.clear();
            for (i, (a, t)) in args.iter().zip(&tensors).enumerate() {
                let (dtype, b) = match (a, t) {
                    (Arg::Scalar(v, own, to), _) => (*to, cast(*own, encode(*own, *v, self.beyond), *to, self.beyond)),
                    (_, Some(t)) => (t.dtype, t.bits[place(&t.shape, &index)]),
                    _ => return Err(unread()),
                };
                if op == Op::Where && i == 0 {
                    bits.push(b);
                    continue;
                }
                // A scalar may be in the op math dtype. Its value is then not rounded to the compute dtype.
                wide.push(format::decode(compute.op_math(), cast(dtype, b, compute.op_math(), self.beyond)));
                bits.push(cast(dtype, b, compute, self.beyond));
            }
            let power = exponent.and_then(|e| math.power(wide[0].real(), e));
            expected.push(match power {
                Some(v) => rounded(v, (l.dtype, self.beyond)),
                None if matches!(op, Op::Where | Op::Nextafter | Op::Neg | Op::Abs | Op::Copysign) => {
                    element(op, compute, (l.dtype, self.beyond), &bits)?
                }
                None => in_math(op, compute, (l.dtype, self.beyond), &wide)?,
            });
            advance(&mut index, &shape);
        }
        let broadcast = if args.len() > tensors.iter().flatten().count() + op.def().parameters() {
            Broadcast::Scalar
        } else if shapes.iter().any(|s| s.is_empty()) && !shape.is_empty() {
            Broadcast::ZeroDim
        } else if shapes.iter().any(|s| **s != shape) {
            Broadcast::Shapes
        } else {
            Broadcast::Equal
        };
        let single = |t: &Option<&Array>| match t {
            None => Some(Single::Scalar),
            Some(a) if a.bits.len() > 1 => None,
            Some(a) if a.shape.is_empty() => Some(Single::ZeroDim),
            Some(_) => Some(Single::OneElement),
        };
        if n > 1 {
            let roles: Vec<Role> = tensors.iter().enumerate().filter_map(|(i, t)| Some((op, i, single(t)?))).collect();
            self.roles.extend(roles);
        }
        self.seen.push(Seen { op, dtype: compute, broadcast });
        Ok((l.dtype, shape, expected))
    }

    /// An op on the lines along a dim.
    fn lines(&mut self, op: Op, l: &Line<'_>) -> Result<(DType, Vec<usize>, Vec<Expected>), Mismatch> {
        let from = self.get(l.args.trim())?;
        let axis: usize = l.attrs.split(['[', ']']).nth(1).and_then(|a| a.trim().parse().ok()).unwrap_or(0);
        let length = from.shape.get(axis).copied().unwrap_or(1);
        let width: usize = from.shape.iter().skip(axis + 1).product();
        let math = from.dtype.op_math();
        let mut expected = vec![Expected::Open; from.bits.len()];
        for first in 0..from.bits.len() / length.max(1) {
            let at = |i: usize| (first / width * length + i) * width + first % width;
            let value = |i: usize| format::decode(math, cast(from.dtype, from.bits[at(i)], math, self.beyond));
            let line: Vec<Value> = (0..length).map(value).collect();
            for (i, answer) in lines::apply(op, from.dtype, &line).into_iter().enumerate() {
                expected[at(i)] = rounded(answer, (l.dtype, self.beyond));
            }
        }
        let (shape, dtype) = (from.shape.clone(), from.dtype);
        self.seen.push(Seen { op, dtype, broadcast: Broadcast::Equal });
        Ok((l.dtype, shape, expected))
    }

    fn reduction(&mut self, op: Op, l: &Line<'_>) -> Result<(DType, Vec<usize>, Vec<Expected>), Mismatch> {
        let from = self.get(l.args.trim())?;
        let listed = l.attrs.split(['[', ']']).nth(1).unwrap_or("");
        let axes: Vec<usize> = listed.split(',').filter_map(|a| a.trim().parse().ok()).collect();
        let keep = l.attrs.contains("keepdim");
        let name = op.def().number.map_or(String::new(), |of| format!("{} = ", of.name));
        let number = l.attrs.split(name.as_str()).nth(1).and_then(|n| n.split([',', '}']).next()?.trim().parse().ok());
        let number = number.unwrap_or(0.0);
        let choice =
            l.attrs.split("interpolation = ").nth(1).and_then(|c| c.split([',', '}']).next()).unwrap_or("").trim();
        let kept: Vec<usize> =
            from.shape.iter().enumerate().map(|(i, n)| if axes.contains(&i) { 1 } else { *n }).collect();
        let math = from.dtype.op_math();
        let mut groups: Vec<Vec<(u128, Value)>> = vec![vec![]; kept.iter().product()];
        let mut index = vec![0; from.shape.len()];
        for bits in &from.bits {
            let value = format::decode(math, cast(from.dtype, *bits, math, self.beyond));
            groups[place(&kept, &index)].push((*bits, value));
            advance(&mut index, &from.shape);
        }
        let expected = groups
            .iter()
            .map(|group| {
                let all: Vec<Value> = group.iter().map(|(_, value)| *value).collect();
                let answer = match order::apply(op, from.dtype, number, choice, self.quantiles, &all) {
                    Some(Ranked::Element(at)) => return Expected::Bits(group[at].0),
                    Some(Ranked::Position(at)) => Answer::Exactly(Value::Int(at as i128)),
                    Some(Ranked::Computed(answer)) => answer,
                    None => fold::apply(op, from.dtype, number, &all),
                };
                rounded(answer, (l.dtype, self.beyond))
            })
            .collect();
        let gone = |(i, n): (usize, &usize)| (keep || !axes.contains(&i)).then_some(*n);
        let shape = kept.iter().enumerate().filter_map(gone).collect();
        let broadcast = if axes.len() == from.shape.len() { Broadcast::Equal } else { Broadcast::Shapes };
        let seen = Seen { op, dtype: from.dtype, broadcast };
        self.seen.push(seen);
        Ok((l.dtype, shape, expected))
    }

    /// A line's elements in order, or their positions.
    fn ordered(&mut self, op: Op, l: &Line<'_>) -> Result<(DType, Vec<usize>, Vec<Expected>), Mismatch> {
        let from = self.get(l.args.trim())?;
        let given = |key: &str| l.attrs.split(key).nth(1).and_then(|v| v.split([',', '}', ']']).next()).map(str::trim);
        let axis: usize = given("dims = [").and_then(|a| a.parse().ok()).unwrap_or(0);
        let reversed = given("descending = ").or(given("largest = ")) == Some("true");
        let length = from.shape.get(axis).copied().unwrap_or(1);
        let count = given("k = ").and_then(|k| k.parse::<f64>().ok()).map_or(length, |k| k as usize);
        let width: usize = from.shape.iter().skip(axis + 1).product();
        let outer: usize = from.shape.iter().take(axis).product();
        let (math, positions) = (from.dtype.op_math(), matches!(op, Op::Argsort | Op::TopkIndices));
        let mut expected = vec![Expected::Open; outer * count * width];
        for (o, w) in (0..outer).flat_map(|o| (0..width).map(move |w| (o, w))) {
            let bits = |i: usize| from.bits[(o * length + i) * width + w];
            let value = |i: usize| format::decode(math, cast(from.dtype, bits(i), math, self.beyond));
            let values: Vec<Value> = (0..length).map(value).collect();
            for (i, at) in order::in_order(&values, reversed).into_iter().take(count).enumerate() {
                let position = || rounded(Answer::Exactly(Value::Int(at as i128)), (l.dtype, self.beyond));
                expected[(o * count + i) * width + w] = if positions { position() } else { Expected::Bits(bits(at)) };
            }
        }
        let mut shape = from.shape.clone();
        shape.iter_mut().skip(axis).take(1).for_each(|n| *n = count);
        let seen = Seen { op, dtype: from.dtype, broadcast: Broadcast::Equal };
        self.seen.push(seen);
        Ok((l.dtype, shape, expected))
    }
}
