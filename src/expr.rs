//! Expressions: `(nir - red) / (nir + red)` as a program, or computed at once.
//!
//! Guarantees: Python's operators with Python's precedence; every op of the table by name; each node carries the byte
//! range it was written at; text of any nesting is read without recursion; a mistake is reported with its place and,
//! where there is one, the likely name; nothing is added to the program before the whole text has been read.
//! Does not: decide dtypes, or fold anything but arithmetic between constants (see `fold`); `and`, `or`, `not`,
//! chained comparisons and shifts are refused with what to write instead.
//!
//! From low to high: `== != < <= > >=` (not chained), `|`, `^`, `&`, `+ -`, `* / // %`, unary `- + ~`, `**` (from
//! right to left). Then calls `sqrt(x)`, `where(c, x, y)`, `cast(x, f32)`, parentheses, names (also `"in quotes"`),
//! and constants: `2`, `0x1f`, `1.5e-3`, `2j`, `inf`, `nan`, `true`, `false`.

use std::collections::HashMap;

use num_complex::Complex;

use crate::block::FloatMode;
use crate::dtype::DType;
use crate::error::{Diagnostic, Error, Fault, Result, shown};
use crate::ops::{Attrs, MAX_OPERANDS, Op};
use crate::program::{MAX_NODES, Program};
use crate::scalar::Scalar;
use crate::var::{Mode, Operand, Var};

mod fold;
mod lex;

use lex::{Lexer, Span, Symbol, Token};

/// The longest expression, in bytes.
pub const MAX_EXPRESSION: usize = 64 << 20;

impl Program {
    /// Adds an expression whose names are this program's placeholders. Errors: [`Error::Invalid`] with the place in
    /// the text; the program is then as it was before.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// p.data("nir", DType::U8, [None]);
    /// p.data("red", DType::U8, [None]);
    /// let ndvi = p.expression("(cast(nir, f32) - red) / (nir + cast(red, f32))")?;
    /// assert_eq!(p.infer()?.dtype(&ndvi), Some(DType::F32));
    /// assert!(p.expression("nir + rad").unwrap_err().to_string().contains("did you mean `red`?"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn expression(&self, text: &str) -> Result<Var> {
        parse(text, &mut |name| self.feed(name), &|| self.feed_names())
    }
}

/// Applies an expression to handles of either mode; `names` gives the handle of a name.
///
/// ```
/// use castwise::{expr::parse_expression, prelude::*};
/// let t = Tensor::from_slice(&[1.0f32, 4.0], [2])?;
/// let x = Eager::new(Rules::Torch).tensor(&t);
/// let y = parse_expression("2 * sqrt(x)", |name| (name == "x").then(|| x.clone()))?;
/// assert_eq!(y.result()?.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn parse_expression<M: Mode>(text: &str, mut names: impl FnMut(&str) -> Option<Var<M>>) -> Result<Var<M>> {
    parse(text, &mut names, &Vec::new)
}

fn parse<M: Mode>(text: &str, names: Lookup<'_, M>, known: &dyn Fn() -> Vec<String>) -> Result<Var<M>> {
    // Constants are read and combined here.
    let _standard = FloatMode::standard();
    if text.len() > MAX_EXPRESSION {
        let (max, got) = (MAX_EXPRESSION as u64, text.len() as u64);
        return Err(Error::Limit { which: "the length of the expression", max, got });
    }
    let parser = Parser {
        lexer: Lexer::new(text),
        names,
        known,
        handles: Vec::new(),
        by_name: HashMap::new(),
        constants: Vec::new(),
        steps: Vec::new(),
        values: Vec::new(),
        frames: Vec::new(),
    };
    Ok(parser.run()?)
}

type Lookup<'a, M> = &'a mut dyn FnMut(&str) -> Option<Var<M>>;

/// What a value is, before anything is built.
#[derive(Clone, Copy, Debug)]
enum Term {
    Handle(u32),
    Step(u32),
    Constant(u32),
}

/// An application to be built once the whole text has been read.
struct Step {
    op: Op,
    dtype: Option<DType>,
    operands: [Option<Term>; MAX_OPERANDS],
    span: Span,
}

/// A finished operand.
#[derive(Clone, Copy)]
enum Value {
    Constant(Scalar),
    Term(Term),
}

/// What waits for operands on its right.
#[derive(Clone, Copy)]
enum Frame {
    Binary(Symbol),
    Unary(Symbol, Span),
    Open(Span),
    /// A call: its op, the span of its name, and how many values came before its operands.
    Call(Op, Span, u32),
}

struct Parser<'t, 'a, M: Mode> {
    lexer: Lexer<'t>,
    names: Lookup<'a, M>,
    known: &'a dyn Fn() -> Vec<String>,
    handles: Vec<Var<M>>,
    by_name: HashMap<String, u32>,
    constants: Vec<Scalar>,
    steps: Vec<Step>,
    values: Vec<(Value, Span)>,
    frames: Vec<Frame>,
}

type Parsed<T> = Result<T, Diagnostic>;

/// How tight a binary operator binds.
fn precedence(symbol: Symbol) -> u8 {
    match symbol {
        Symbol::Eq | Symbol::Ne | Symbol::Lt | Symbol::Le | Symbol::Gt | Symbol::Ge => 1,
        Symbol::Or => 2,
        Symbol::Xor => 3,
        Symbol::And => 4,
        Symbol::Add | Symbol::Sub => 5,
        Symbol::Mul | Symbol::Div | Symbol::FloorDiv | Symbol::Rem => 6,
        Symbol::Not => UNARY,
        Symbol::Pow => 8,
    }
}

const UNARY: u8 = 7;
const COMPARISON: u8 = 1;

/// The op of an operator between two operands.
fn binary_op(symbol: Symbol) -> Op {
    match symbol {
        Symbol::Add => Op::Add,
        Symbol::Sub => Op::Sub,
        Symbol::Mul => Op::Mul,
        Symbol::Div => Op::Div,
        Symbol::FloorDiv => Op::FloorDivide,
        Symbol::Rem => Op::Remainder,
        Symbol::Pow => Op::Pow,
        Symbol::And => Op::BitwiseAnd,
        Symbol::Or => Op::BitwiseOr,
        Symbol::Xor => Op::BitwiseXor,
        Symbol::Not => Op::BitwiseNot,
        Symbol::Eq => Op::Eq,
        Symbol::Ne => Op::Ne,
        Symbol::Lt => Op::Lt,
        Symbol::Le => Op::Le,
        Symbol::Gt => Op::Gt,
        Symbol::Ge => Op::Ge,
    }
}

impl<M: Mode> Parser<'_, '_, M> {
    /// Reads the text: an operand, then operators and operands in turn.
    fn run(mut self) -> Parsed<Var<M>> {
        loop {
            self.operand()?;
            loop {
                let (token, span) = self.lexer.next()?;
                match token {
                    Token::Symbol(Symbol::Not) => {
                        return Err(span.syntax("`~` stands before an operand, not between two"));
                    }
                    Token::Symbol(symbol) => {
                        self.binary(symbol, span)?;
                        break;
                    }
                    Token::Comma => {
                        if self.comma(span)? {
                            break;
                        }
                    }
                    Token::Close => self.close(span)?,
                    Token::End => return self.finish(span),
                    other => return Err(self.stray(&other, span)),
                }
            }
        }
    }

    /// Reads prefix operators, opening parentheses and calls up to the operand they wait for.
    fn operand(&mut self) -> Parsed<()> {
        loop {
            let (token, span) = self.lexer.next()?;
            let constant = match token {
                Token::Int(v) => Scalar::Int(v),
                Token::IntMinMagnitude => return self.int_min(span),
                Token::Float(v) => Scalar::Float(v),
                Token::Imaginary(v) => Scalar::Complex(Complex::new(0.0, v)),
                Token::Quoted(name) => {
                    let handle = self.name(&name, span)?;
                    return self.push(Value::Term(handle), span);
                }
                Token::Name(name) => match self.word(name, span)? {
                    Some(value) => return self.push(value, span),
                    None => continue,
                },
                Token::Open => {
                    self.wait(Frame::Open(span), span)?;
                    continue;
                }
                Token::Symbol(symbol @ (Symbol::Add | Symbol::Sub | Symbol::Not)) => {
                    self.wait(Frame::Unary(symbol, span), span)?;
                    continue;
                }
                Token::Symbol(_) => return Err(span.syntax("an operand is missing before this operator")),
                Token::Comma => return Err(span.syntax("an operand is missing before this comma")),
                Token::Close => return Err(self.empty(span)),
                Token::End => return Err(span.syntax("the expression ends where an operand is missing")),
            };
            return self.push(Value::Constant(constant), span);
        }
    }

    fn push(&mut self, value: Value, span: Span) -> Parsed<()> {
        self.values.push((value, span));
        Ok(())
    }

    fn wait(&mut self, frame: Frame, span: Span) -> Parsed<()> {
        if self.frames.len() >= MAX_NODES {
            return Err(span.syntax(format!("more than {MAX_NODES} operators and parentheses are open here")));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// `-9223372036854775808`: the magnitude alone is not an i64.
    fn int_min(&mut self, span: Span) -> Parsed<()> {
        let power = matches!(self.lexer.clone().next(), Ok((Token::Symbol(Symbol::Pow), _)));
        match self.frames.last().copied() {
            Some(Frame::Unary(Symbol::Sub, minus)) if !power => {
                self.frames.pop();
                self.push(Value::Constant(Scalar::Int(i64::MIN)), minus.to(span))
            }
            _ => Err(lex::too_large(span)),
        }
    }

    /// A bare word: a constant, a name, or (then `None`) the start of a call.
    fn word(&mut self, word: &str, span: Span) -> Parsed<Option<Value>> {
        let constant = match word {
            "true" | "True" => Scalar::Bool(true),
            "false" | "False" => Scalar::Bool(false),
            "inf" => Scalar::Float(f64::INFINITY),
            "nan" => Scalar::Float(f64::NAN),
            "not" => return Err(span.syntax("`not` is not an operator here").help("write `~x`, or `logical_not(x)`")),
            _ => {
                if !matches!(self.lexer.clone().next(), Ok((Token::Open, _))) {
                    return Ok(Some(Value::Term(self.name(word, span)?)));
                }
                self.lexer.next()?;
                let op = Op::from_name(word).ok_or_else(|| self.unknown_op(word, span))?;
                self.wait(Frame::Call(op, span, self.values.len() as u32), span)?;
                return Ok(None);
            }
        };
        Ok(Some(Value::Constant(constant)))
    }

    /// The handle of a name; each name is looked up once.
    fn name(&mut self, name: &str, span: Span) -> Parsed<Term> {
        if let Some(i) = self.by_name.get(name) {
            return Ok(Term::Handle(*i));
        }
        let handle = (self.names)(name).ok_or_else(|| self.unknown_name(name, span))?;
        let i = self.handles.len() as u32;
        self.by_name.insert(name.to_string(), i);
        self.handles.push(handle);
        Ok(Term::Handle(i))
    }

    /// An operator between operands: what binds tighter on its left is finished first.
    fn binary(&mut self, symbol: Symbol, span: Span) -> Parsed<()> {
        let mine = precedence(symbol);
        while let Some(frame) = self.frames.last() {
            let theirs = match frame {
                Frame::Binary(s) => precedence(*s),
                Frame::Unary(..) => UNARY,
                Frame::Open(_) | Frame::Call(..) => break,
            };
            if theirs == mine && mine == COMPARISON {
                let d = span.syntax("comparisons do not chain");
                return Err(d.help("write `(a < b) & (b < c)`, with parentheses"));
            }
            if theirs < mine || symbol == Symbol::Pow && theirs == mine {
                break;
            }
            self.reduce()?;
        }
        self.wait(Frame::Binary(symbol), span)
    }

    /// Finishes the innermost operator.
    fn reduce(&mut self) -> Parsed<()> {
        match self.frames.pop() {
            Some(Frame::Binary(symbol)) => {
                let (Some((b, right)), Some((a, left))) = (self.values.pop(), self.values.pop()) else {
                    return Err(Span { start: 0, end: 0 }.syntax("an operand is missing"));
                };
                let span = left.to(right);
                let value = match (a, b) {
                    (Value::Constant(a), Value::Constant(b)) => {
                        Value::Constant(fold::binary(symbol, a, b).map_err(|m| span.syntax(m))?)
                    }
                    _ => self.step(binary_op(symbol), &[a, b], None, span)?,
                };
                self.push(value, span)
            }
            Some(Frame::Unary(symbol, at)) => {
                let Some((value, inner)) = self.values.pop() else { return Err(at.syntax("an operand is missing")) };
                let span = at.to(inner);
                let value = match (symbol, value) {
                    (Symbol::Sub, Value::Constant(a)) => Value::Constant(fold::negate(a).map_err(|m| span.syntax(m))?),
                    (Symbol::Sub, x) => self.step(Op::Neg, &[x], None, span)?,
                    (Symbol::Not, x) => self.step(Op::BitwiseNot, &[x], None, span)?,
                    (_, x) => x,
                };
                self.push(value, span)
            }
            Some(other) => {
                self.frames.push(other);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Finishes all operators inside the innermost parenthesis or call.
    fn reduce_all(&mut self) -> Parsed<()> {
        while let Some(Frame::Binary(_) | Frame::Unary(..)) = self.frames.last() {
            self.reduce()?;
        }
        Ok(())
    }

    /// A comma; answers whether an operand follows (no: it was the dtype of a cast).
    fn comma(&mut self, span: Span) -> Parsed<bool> {
        self.reduce_all()?;
        let Some(Frame::Call(op, name, base)) = self.frames.last().copied() else {
            return Err(span.syntax("a comma stands between the operands of a call only"));
        };
        let count = self.values.len() - base as usize;
        if op != Op::Cast {
            return if count < op.arity() { Ok(true) } else { Err(wrong_arity(op, name.to(span))) };
        }
        let (token, at) = self.lexer.next()?;
        let Token::Name(word) = token else {
            return Err(at.syntax("a cast takes the name of a dtype here").help("`cast(x, f32)`"));
        };
        let dtype = word.parse::<DType>().map_err(|e| at.syntax(e.to_string()))?;
        let (token, end) = self.lexer.next()?;
        if token != Token::Close {
            return Err(end.syntax("a cast ends behind the dtype").help("`cast(x, f32)`"));
        }
        self.frames.pop();
        self.apply(op, base, Some(dtype), name.to(end))?;
        Ok(false)
    }

    /// A closing parenthesis.
    fn close(&mut self, span: Span) -> Parsed<()> {
        self.reduce_all()?;
        match self.frames.pop() {
            Some(Frame::Open(open)) => {
                if let Some((_, of_value)) = self.values.last_mut() {
                    *of_value = open.to(span);
                }
                Ok(())
            }
            Some(Frame::Call(Op::Cast, name, _)) => Err(wrong_arity(Op::Cast, name.to(span))),
            Some(Frame::Call(op, name, base)) if self.values.len() - base as usize != op.arity() => {
                Err(wrong_arity(op, name.to(span)))
            }
            Some(Frame::Call(op, name, base)) => self.apply(op, base, None, name.to(span)),
            _ => Err(span.syntax("this parenthesis closes nothing")),
        }
    }

    /// Replaces the operands of a call by its value.
    fn apply(&mut self, op: Op, base: u32, dtype: Option<DType>, span: Span) -> Parsed<()> {
        let operands: Vec<Value> = self.values.drain(base as usize..).map(|(v, _)| v).collect();
        let value = self.step(op, &operands, dtype, span)?;
        self.push(value, span)
    }

    fn step(&mut self, op: Op, operands: &[Value], dtype: Option<DType>, span: Span) -> Parsed<Value> {
        if operands.iter().all(|o| matches!(o, Value::Constant(_))) {
            let d = span.syntax(format!("`{op}` of constants alone"));
            return Err(d.help("only `+ - * / **` are worked out between constants: write the value"));
        }
        if self.steps.len() >= MAX_NODES {
            return Err(span.syntax(format!("an expression of more than {MAX_NODES} applications")));
        }
        let mut terms = [None; MAX_OPERANDS];
        for (to, operand) in terms.iter_mut().zip(operands) {
            *to = Some(match operand {
                Value::Term(t) => *t,
                Value::Constant(s) => {
                    self.constants.push(*s);
                    Term::Constant(self.constants.len() as u32 - 1)
                }
            });
        }
        self.steps.push(Step { op, dtype, operands: terms, span });
        Ok(Value::Term(Term::Step(self.steps.len() as u32 - 1)))
    }

    /// The end of the text: everything must be closed; then the steps are built, in order.
    fn finish(mut self, span: Span) -> Parsed<Var<M>> {
        self.reduce_all()?;
        match self.frames.last() {
            Some(Frame::Open(at)) => return Err(at.syntax("this parenthesis is never closed")),
            Some(Frame::Call(op, name, _)) => {
                return Err(name.syntax(format!("the parenthesis of this `{op}` is never closed")));
            }
            _ => {}
        }
        let root = match self.values.pop() {
            Some((Value::Term(t), _)) => t,
            Some((Value::Constant(s), at)) => {
                return Err(at.syntax(format!("the expression is the constant {s}: it uses no input")));
            }
            None => return Err(span.syntax("the expression is empty")),
        };
        // Each step is used once: eager values are let go as soon as they have been.
        let mut built: Vec<Option<Var<M>>> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let mut operands = Vec::with_capacity(3);
            for term in step.operands.iter().flatten() {
                operands.extend(match *term {
                    Term::Handle(i) => self.handles.get(i as usize).map(|v| Operand::Var(v.clone())),
                    Term::Step(i) => built.get_mut(i as usize).and_then(Option::take).map(Operand::Var),
                    Term::Constant(i) => self.constants.get(i as usize).map(|s| Operand::Scalar(*s)),
                });
            }
            built.push(Some(M::apply(
                step.op,
                &operands,
                Attrs { dtype: step.dtype, ..Attrs::default() },
                step.span.place(),
            )));
        }
        let value = match root {
            Term::Step(i) => built.get_mut(i as usize).and_then(Option::take),
            Term::Handle(i) => self.handles.get(i as usize).cloned(),
            Term::Constant(_) => None,
        };
        value.ok_or_else(|| span.syntax("the expression is empty"))
    }

    /// A closing parenthesis where an operand is missing.
    fn empty(&self, span: Span) -> Diagnostic {
        match self.frames.last() {
            Some(Frame::Call(op, name, base)) if self.values.len() == *base as usize => wrong_arity(*op, name.to(span)),
            Some(Frame::Open(open)) => open.to(span).syntax("nothing stands between these parentheses"),
            _ => span.syntax("an operand is missing before this parenthesis"),
        }
    }

    /// Something that is no operator behind an operand.
    fn stray(&self, token: &Token<'_>, span: Span) -> Diagnostic {
        let missing = span.syntax("an operator is missing before this");
        match token {
            Token::Name("and") => {
                span.syntax("`and` is not an operator here").help("write `x & y`, or `logical_and(x, y)`")
            }
            Token::Name("or") => {
                span.syntax("`or` is not an operator here").help("write `x | y`, or `logical_or(x, y)`")
            }
            Token::Name("if" | "else") => missing.help("write `where(condition, x, y)`"),
            Token::Open => match self.values.last() {
                Some((Value::Term(Term::Handle(_)), _)) => missing.help("a name is not an op: write `*` to multiply"),
                _ => missing,
            },
            _ => missing,
        }
    }

    fn unknown_op(&self, word: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::new(Fault::Name, format!("there is no op `{}`", shown(word))).at(&span.place());
        let names = Op::ALL.iter().flat_map(|op| std::iter::once(op.name()).chain(op.def().aliases.iter().copied()));
        match nearest(word, names) {
            Some(name) => d.help(format!("did you mean `{name}`?")),
            None if (self.known)().iter().any(|n| n == word) => d.help("it is an input: write `*` to multiply"),
            None => d,
        }
    }

    fn unknown_name(&self, word: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::new(Fault::Name, format!("there is no input `{}`", shown(word))).at(&span.place());
        let known = (self.known)();
        if let Some(op) = Op::from_name(word) {
            let operands = if op == Op::Cast { "x, f32".to_string() } else { op.def().operands.join(", ") };
            return d.help(format!("it is an op: write `{word}({operands})`"));
        }
        match nearest(word, known.iter().map(String::as_str)) {
            Some(name) => d.help(format!("did you mean `{}`?", shown(name))),
            None if known.is_empty() => d,
            None => {
                let all: Vec<String> = known.iter().take(20).map(|n| format!("`{}`", shown(n))).collect();
                let dots = if known.len() > 20 { ", …" } else { "" };
                d.help(format!("the inputs are {}{dots}", all.join(", ")))
            }
        }
    }
}

fn wrong_arity(op: Op, span: Span) -> Diagnostic {
    let operands = op.def().operands;
    if op == Op::Cast {
        return span.syntax("a cast takes a value and a dtype").help("`cast(x, f32)`");
    }
    let s = if operands.len() == 1 { "" } else { "s" };
    let message = format!("`{op}` takes {} operand{s}", operands.len());
    span.syntax(message).help(format!("`{op}({})`", operands.join(", ")))
}

/// The candidate that is most like a mistyped word: few edits away, or begun by it.
fn nearest<'n>(word: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if word.len() > 64 {
        return None;
    }
    let begun = |n: &str| word.len() >= 3 && n.starts_with(word);
    let cost = |n: &str| if begun(n) { 0 } else { edits(word, n) };
    let allowed = |n: &str| word.len().max(n.len()).div_ceil(3).min(3);
    // Of one-letter names none is like another.
    let likely = |n: &&str| n.len() <= 64 && cost(n) <= allowed(n) && word.len().max(n.len()) > 1;
    candidates.filter(likely).min_by_key(|n| (cost(n), n.len().abs_diff(word.len())))
}

/// How many letters must be added, dropped or changed, or neighbours swapped, to make one word the other.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut older: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (above[j] + (x != y) as usize).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(older[j - 1] + 1);
            }
            row.push(least);
        }
        older = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
