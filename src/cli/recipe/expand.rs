//! A recipe as an expression, for tensors of certain dtypes and extents, and the numbers that the expression uses.
//!
//! Guarantees: statements that nothing needs are left out; a name that the recipe makes up is none of an input. Nothing is added to the text but names
//! and parentheses. Does not: decide dtypes of ops, or read expressions.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use castwise::expr::{MAX_EXPRESSION, parse_constant, parse_expression};
use castwise::shape::Dim;
use castwise::{DType, Eager, Rules, Scalar, Tensor};

use super::setting::Number;
use super::text::{Index, Indexed, Recipe};

/// The dtypes that recipes name by letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Dtypes {
    /// T: the arithmetic.
    pub(super) arithmetic: DType,
}

impl Dtypes {
    fn named(self, letter: &str) -> Option<DType> {
        let (t, wide) = (self.arithmetic, self.arithmetic == DType::F64);
        Some(match letter {
            "T" => t,
            // Sums.
            "S" if wide => DType::F64,
            "S" => DType::F32,
            // Random choices and their scales.
            "W" if t == DType::BF16 => t,
            "W" => DType::F32,
            // Integers of the same size, which order as positive floats do.
            "I" => match t.size() {
                1 => DType::I8,
                2 => DType::I16,
                4 => DType::I32,
                _ => DType::I64,
            },
            _ => return None,
        })
    }
}

/// The dtype and the dims of a tensor.
pub(super) type Info = (DType, Vec<Dim>);

/// A number that a recipe has a word for, of a tensor; `None` if it is another word. Error: an extent is no number.
fn number_of(word: &str, (dtype, dims): &Info) -> Option<Result<f64, String>> {
    let fixed = |d: &Dim| match d {
        Dim::Fixed(n) => Ok(*n as f64),
        _ => Err(format!("`{word}` of a tensor is a number only if all of its dims are")),
    };
    let extents = || dims.iter().map(fixed).collect::<Result<Vec<f64>, String>>();
    Some(match word {
        "n" => extents().map(|d| d.iter().product()),
        // Unknown extents are none of 0.
        "empty" => Ok(f64::from(dims.contains(&Dim::Fixed(0)))),
        "rank" => Ok(dims.len() as f64),
        "row" => extents().map(|d| d.get(1).or(d.first()).copied().unwrap_or(1.0)),
        "itemsize" => Ok(dtype.size() as f64),
        _ => return None,
    })
}

/// What an expansion depends on.
pub(super) struct Expansion<'a> {
    pub(super) recipe: &'a Recipe,
    /// The names of the inputs that are models.
    pub(super) models: &'a [String],
    /// Whether there is an input of this name.
    pub(super) given: &'a dyn Fn(&str) -> bool,
    pub(super) dtypes: Dtypes,
    /// The parameter at a position, of a model if each has its own.
    pub(super) parameter: &'a dyn Fn(usize, Option<usize>) -> Result<Number, String>,
    /// The first input's tensor.
    pub(super) first: &'a Info,
    /// For each sibling of the recipe its tensor, if there is one.
    pub(super) siblings: &'a [Option<Info>],
    known: RefCell<HashMap<String, Number>>,
}

/// An expression, the inputs and the numbers that it uses, and whether it uses the seed.
pub(super) struct Expanded {
    pub(super) text: String,
    pub(super) inputs: HashSet<String>,
    pub(super) numbers: Vec<(String, Scalar)>,
    pub(super) seeded: bool,
}

/// The models that indices are.
#[derive(Clone, Copy, Default)]
struct At {
    i: Option<usize>,
    j: Option<usize>,
}

/// What a text refers to.
#[derive(Default)]
struct Refs {
    inputs: HashSet<String>,
    numbers: Vec<(String, Number)>,
    /// In the order of the text.
    locals: Vec<String>,
    seeded: bool,
}

/// The statements that some need, each after those that it needs itself: what one model needs is together, so that its values are dropped before
/// those of the next one are computed.
fn needed(first: &[String], all: &HashMap<String, (String, Refs)>) -> Result<Vec<String>, String> {
    let (mut order, mut seen, mut open) = (Vec::new(), HashSet::new(), Vec::new());
    let mut stack: Vec<(&String, bool)> = first.iter().rev().map(|n| (n, false)).collect();
    while let Some((name, done)) = stack.pop() {
        if done {
            open.pop();
            order.push(name.clone());
        } else if open.contains(&name) {
            return Err(format!("`{name}` is made of itself"));
        } else if seen.insert(name) {
            open.push(name);
            stack.push((name, true));
            let (_, refs) = all.get(name).ok_or_else(|| format!("there is no `{name}`"))?;
            stack.extend(refs.locals.iter().rev().map(|n| (n, false)));
        }
    }
    Ok(order)
}

/// A name in the text of an expression, quoted if it must be.
pub(super) fn quoted(name: &str) -> String {
    let constant = matches!(name, "true" | "True" | "false" | "False" | "inf" | "nan");
    let plain = !constant
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")) }
}

impl<'a> Expansion<'a> {
    pub(super) fn new(
        recipe: &'a Recipe,
        models: &'a [String],
        given: &'a dyn Fn(&str) -> bool,
        dtypes: Dtypes,
        parameter: &'a dyn Fn(usize, Option<usize>) -> Result<Number, String>,
        first: &'a Info,
        siblings: &'a [Option<Info>],
    ) -> Expansion<'a> {
        Expansion { recipe, models, given, dtypes, parameter, first, siblings, known: RefCell::default() }
    }

    /// The expression.
    pub(super) fn text(&self) -> Result<Expanded, String> {
        for r in &self.recipe.requires {
            for i in if r.each { (0..self.models.len()).map(Some).collect() } else { vec![None] } {
                let of = i.map_or(String::new(), |i| format!(" (of `{}`)", self.models[i]));
                match self.decide(&r.condition, At { i, j: None }) {
                    Ok(true) => {}
                    Ok(false) => return Err(format!("{}{of}", r.message)),
                    Err(why) => return Err(why),
                }
            }
        }
        let mut all = HashMap::new();
        for s in &self.recipe.statements {
            let each = if s.index == Index::Each { (0..self.models.len()).map(Some).collect() } else { vec![None] };
            for i in each {
                if !(s.unless_given && self.role(&s.name, i).is_some()) {
                    let mut refs = Refs::default();
                    let text = self.render(&s.text, At { i, j: None }, &mut refs)?;
                    all.insert(self.local(s, i), (text, refs));
                }
            }
        }
        let mut refs = Refs::default();
        let result = self.render(&self.recipe.result, At::default(), &mut refs)?;
        let mut lines = Vec::new();
        for name in needed(&refs.locals, &all)? {
            let Some((text, own)) = all.remove(&name) else { continue };
            lines.push(format!("{name} = {text};"));
            refs.inputs.extend(own.inputs);
            refs.numbers.extend(own.numbers);
            refs.seeded |= own.seeded;
        }
        lines.push(result);
        let mut numbers: Vec<(String, Scalar)> = Vec::new();
        for (name, n) in refs.numbers {
            if !numbers.iter().any(|(known, _)| *known == name) {
                numbers.push((name, scalar(n)));
            }
        }
        numbers.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Expanded { text: lines.join("\n"), inputs: refs.inputs, numbers, seeded: refs.seeded })
    }

    /// The name of a model in names that are made for it.
    fn label(&self, i: usize) -> String {
        let plain = |n: &&String| {
            n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !n.bytes().all(|b| b.is_ascii_digit())
        };
        self.models.get(i).filter(plain).cloned().unwrap_or_else(|| (i + 1).to_string())
    }

    /// A made-up name, which no input has.
    fn made(&self, mut name: String) -> String {
        while (self.given)(&name) {
            name.push('_');
        }
        name
    }

    fn local(&self, s: &Indexed, i: Option<usize>) -> String {
        match (s.index, i) {
            (Index::Each, Some(i)) => self.made(format!("{}.{}", s.name, self.label(i))),
            (Index::Zero, _) => self.made(format!("{}.0", s.name)),
            _ => self.made(s.name.clone()),
        }
    }

    /// The input of a role, if it is given.
    fn role(&self, name: &str, i: Option<usize>) -> Option<String> {
        let role = self.recipe.roles.iter().find(|r| r.name == name)?;
        let input = match i.and_then(|i| self.models.get(i)).filter(|_| role.each) {
            Some(model) => format!("{name}.{model}"),
            None => name.to_string(),
        };
        (self.given)(&input).then_some(input)
    }

    /// The name of a number of a sibling's tensor, which is 0 if there is none.
    fn of_sibling(&self, word: &str, inside: &[&str], refs: &mut Refs) -> Result<String, String> {
        let found = self.recipe.siblings.iter().zip(self.siblings).find(|((name, _), _)| inside == [name.as_str()]);
        let ((name, _), tensor) = found.ok_or_else(|| format!("`{word}({})` is of no sibling", inside.join(",")))?;
        let number = tensor.as_ref().and_then(|t| number_of(word, t)).unwrap_or(Ok(0.0))?;
        let name = self.made(format!("{word}.{name}"));
        refs.numbers.push((name.clone(), Number::Real(number)));
        Ok(name)
    }

    /// Writes a text for certain models.
    fn render(&self, text: &str, at: At, refs: &mut Refs) -> Result<String, String> {
        let (mut out, mut rest) = (String::with_capacity(text.len() * 2), text);
        while let Some(c) = rest.chars().next() {
            if c == '"' {
                let end = rest[1..].find('"').map_or(rest.len(), |n| n + 2);
                out += &rest[..end];
                rest = &rest[end..];
            } else if c.is_ascii_digit() {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
                out += &rest[..end];
                rest = &rest[end..];
            } else if c.is_ascii_alphabetic() || c == '_' {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                rest = self.word(word, after, at, refs, &mut out)?;
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        Ok(out)
    }

    /// Writes a word and what belongs to it. Returns the text after it.
    fn word<'t>(
        &self,
        word: &str,
        after: &'t str,
        at: At,
        refs: &mut Refs,
        out: &mut String,
    ) -> Result<&'t str, String> {
        let (index, after) = match after.strip_prefix('[').and_then(|a| a.split_once(']')) {
            Some((index, rest)) => (Some(index.trim()), rest),
            None => (None, after),
        };
        if after.starts_with('(') {
            let (inside, rest) = call(after)?;
            match (word, index) {
                ("choose", None) => *out += &self.chosen(&inside, at, refs)?,
                ("given", None) => {
                    let given = inside.first().is_some_and(|name| self.role(name, at.i).is_some());
                    *out += if given { "true" } else { "false" };
                }
                ("total", Some(index)) => *out += &self.total(index, &inside.join(","), at, refs)?,
                ("n" | "rank" | "row", None) => *out += &self.of_sibling(word, &inside, refs)?,
                (_, None) => {
                    let written = inside.iter().map(|a| self.render(a, at, refs)).collect::<Result<Vec<_>, _>>()?;
                    *out += &format!("{word}({})", written.join(","));
                }
                _ => return Err(format!("`{word}[…](…)` is nothing")),
            }
            return Ok(rest);
        }
        let keyword = after.trim_start().starts_with('=') && !after.trim_start().starts_with("==");
        if keyword && index.is_none() {
            *out += word;
            return Ok(after);
        }
        let i = self.position(word, index, at)?;
        *out += &self.name(word, index, i, refs)?;
        Ok(after)
    }

    /// The model that an index is; none for no index and for `[0]`.
    fn position(&self, word: &str, index: Option<&str>, at: At) -> Result<Option<usize>, String> {
        let none = || format!("`{word}[…]` is used where there is no model");
        match index {
            None | Some("0") => Ok(None),
            Some("i") => at.i.map(Some).ok_or_else(none),
            Some("j") => at.j.map(Some).ok_or_else(none),
            Some("i-1") => at.i.map(|i| i.checked_sub(1)).ok_or_else(none),
            Some("first") => Ok((!self.models.is_empty()).then_some(0)),
            Some("last") => Ok(self.models.len().checked_sub(1)),
            Some(other) => Err(format!("`{word}[{other}]`: an index is i, i-1, j, 0, first or last")),
        }
    }

    /// The name that a word of the recipe is in the expression.
    fn name(&self, word: &str, index: Option<&str>, i: Option<usize>, refs: &mut Refs) -> Result<String, String> {
        if self.recipe.models.as_ref().is_some_and(|m| m.name == word) {
            let model = i.and_then(|i| self.models.get(i)).ok_or_else(|| format!("`{word}` needs an index"))?;
            refs.inputs.insert(model.clone());
            return Ok(quoted(model));
        }
        if let Some(input) = self.role(word, i) {
            refs.inputs.insert(input.clone());
            return Ok(quoted(&input));
        }
        let number = |each: bool| if each { i.map(|i| format!("{word}.{}", self.label(i))) } else { Some(word.into()) };
        let missing = || format!("`{word}` needs an index");
        let parameter = self.recipe.parameters.iter().position(|p| p.name == word);
        if let Some(p) = parameter {
            let name = self.made(number(self.recipe.parameters[p].each).ok_or_else(missing)?);
            let value = self.remembered(&name, || (self.parameter)(p, i.filter(|_| self.recipe.parameters[p].each)))?;
            refs.numbers.push((name.clone(), value));
            return Ok(name);
        }
        if let Some(at) = self.recipe.numbers.iter().position(|n| n.name == word) {
            let of = &self.recipe.numbers[at];
            let name = self.made(number(of.index == Index::Each).ok_or_else(missing)?);
            let value = self.remembered(&name, || self.number(&of.text, At { i, j: None }))?;
            refs.numbers.push((name.clone(), value));
            return Ok(name);
        }
        if word == "seed" {
            refs.seeded = true;
            return Ok(self.made(word.into()));
        }
        let statement = self.recipe.statements.iter().find(|s| s.name == word);
        if statement.is_some() {
            let which = match (index, i) {
                (None, _) => Index::None,
                (_, None) => Index::Zero,
                _ => Index::Each,
            };
            let found = self.recipe.statements.iter().find(|s| s.name == word && s.index == which);
            let name = self.local(found.ok_or_else(|| format!("`{word}` has another index"))?, i);
            refs.locals.push(name.clone());
            return Ok(name);
        }
        if let Some(value) = number_of(word, self.first) {
            let name = self.made(word.into());
            let value = Number::Real(value?);
            refs.numbers.push((name.clone(), value));
            self.known.borrow_mut().insert(name.clone(), value);
            return Ok(name);
        }
        if word == "models" {
            return Ok(self.models.len().to_string());
        }
        if let ("position", Some(i)) = (word, i) {
            return Ok(i.to_string());
        }
        Ok(self.dtypes.named(word).map_or(word.to_string(), |d| d.name().to_string()))
    }

    fn remembered(&self, name: &str, make: impl FnOnce() -> Result<Number, String>) -> Result<Number, String> {
        if let Some(n) = self.known.borrow().get(name) {
            return Ok(*n);
        }
        let n = make()?;
        self.known.borrow_mut().insert(name.to_string(), n);
        Ok(n)
    }

    /// One of two texts.
    fn chosen(&self, inside: &[&str], at: At, refs: &mut Refs) -> Result<String, String> {
        let [condition, yes, no] = inside else { return Err("expected `choose(CONDITION, TEXT, TEXT)`".into()) };
        let text = self.render(if self.decide(condition, at)? { yes } else { no }, at, refs)?;
        let text = text.trim();
        let simple = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
        Ok(if simple { text.to_string() } else { format!("({text})") })
    }

    /// A sum over models, or over pairs of them.
    fn total(&self, index: &str, text: &str, at: At, refs: &mut Refs) -> Result<String, String> {
        let n = self.models.len();
        let all: Vec<At> = match index {
            "i" => (0..n).map(|i| At { i: Some(i), j: at.j }).collect(),
            "i<j" => (0..n).flat_map(|i| (i + 1..n).map(move |j| At { i: Some(i), j: Some(j) })).collect(),
            _ => return Err(format!("`total[{index}]`: write `total[i](…)` or `total[i<j](…)`")),
        };
        let terms = all.into_iter().map(|at| self.render(text, at, refs)).collect::<Result<Vec<_>, _>>()?;
        if terms.iter().map(String::len).sum::<usize>() > MAX_EXPRESSION {
            return Err(format!("the expression has more than {MAX_EXPRESSION} bytes"));
        }
        Ok(if let [one] = &terms[..] { one.clone() } else { format!("({})", terms.join(" + ")) })
    }

    /// Whether a condition holds.
    fn decide(&self, condition: &str, at: At) -> Result<bool, String> {
        match self.number(condition, at)? {
            Number::Bool(b) => Ok(b),
            Number::Real(n) => Ok(n != 0.0),
        }
    }

    /// The value of a number: of constants, parameters and other numbers. It is computed in f64.
    fn number(&self, text: &str, at: At) -> Result<Number, String> {
        let mut refs = Refs::default();
        let text = self.render(text, at, &mut refs)?;
        if let Ok(s) = parse_constant(text.trim()) {
            return Ok(match s {
                Scalar::Bool(b) => Number::Bool(b),
                other => Number::Real(other.to_string().parse().map_err(|_| format!("`{text}` is no real number"))?),
            });
        }
        let eager = Eager::new(Rules::Torch);
        let value = |n: Number| match n {
            Number::Bool(b) => Tensor::scalar(b),
            Number::Real(n) => Tensor::scalar(n),
        };
        let name = |name: &str| refs.numbers.iter().find(|(n, _)| n == name).map(|(_, n)| eager.tensor(&value(*n)));
        let result = parse_expression(&text, name).and_then(|v| v.result()).map_err(|e| e.to_string())?;
        let real = |e: castwise::Error| e.to_string();
        match result.dtype() {
            DType::Bool => result.item::<bool>().map(Number::Bool).map_err(real),
            DType::F64 => result.item::<f64>().map(Number::Real).map_err(real),
            DType::I64 => result.item::<i64>().map(|n| Number::Real(n as f64)).map_err(real),
            other => Err(format!("`{text}` is {other}, not a number")),
        }
    }
}

/// A number as a scalar of an expression: an integer if it is one.
fn scalar(n: Number) -> Scalar {
    match n {
        Number::Bool(b) => Scalar::Bool(b),
        Number::Real(n) if n.fract() == 0.0 && n.abs() < 9e15 && !(n == 0.0 && n.is_sign_negative()) => {
            Scalar::Int(n as i128)
        }
        Number::Real(n) => Scalar::Float(n),
    }
}

/// The arguments of a call whose text begins with its parenthesis, and the text after it.
fn call(text: &str) -> Result<(Vec<&str>, &str), String> {
    let (mut depth, mut start, mut inside) = (0usize, 1, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    inside.push(&text[start..at]);
                    return Ok((inside, &text[at + 1..]));
                }
            }
            ',' if depth == 1 => {
                inside.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    Err("a parenthesis is not closed".into())
}
