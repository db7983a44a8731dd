//! Expressions such as `(cast(nir, f32) - red) / (nir + cast(red, f32))`, which become nodes of a program or are
//! computed in eager mode.
//!
//! Guarantees: operators have Python's precedence, and every op of the table can be called by name. Each node has the
//! byte range that it was written at. Nested text is read without recursion. An error has the byte range of the
//! mistake, and suggests a similar name if there is one. Nothing is added to the program before the whole text has been
//! read. Does not: decide dtypes, or fold anything but arithmetic between constants (see `fold`). `and`, `or`, `not`,
//! chained comparisons and shift operators are errors, whose help texts have the equivalent.
//!
//! Operators from lowest to highest precedence: `== != < <= > >=` (which do not chain), `|`, `^`, `&`, `+ -`,
//! `* / // %`, unary `- + ~`, `**` (right-associative). Operands are calls such as `sqrt(x)`, `where(c, x, y)`,
//! `clamp(x, min=0)`, `mean(x, dims=-1, keepdim=true)` and `cast(x, f32)`, expressions in parentheses, names (also `"in quotes"`), and the constants `2`, `0x1f`, `1.5e-3`,
//! `2j`, `inf`, `nan`, `true`, `false`, and, where no input has these names, `pi` and `e`.
//!
//! Assignments before the expression name parts of it: `t = a - b; base + 0.3*t`. Each name must be used. A text that ends
//! with an assignment has named results (`Program::results_with`).

use std::collections::HashMap;

use num_complex::Complex;

use crate::base::blocks::BlockSize;
use crate::base::composite::Composite;
use crate::base::error::{Diagnostic, Result, SourceLocation, shown};
use crate::base::generator::Generator;
use crate::base::host::FloatMode;
use crate::base::limits::{Limit, Limits};
use crate::base::location::given;
use crate::base::scalar::Scalar;
use crate::graph::program::Program;
use crate::graph::var::{Graph, Mode, Operand, Var};
use crate::ops::{Attrs, MAX_OPERANDS, Op, Registry};

mod build;
mod call;
mod callee;
mod fold;
mod generators;
mod help;
mod keywords;
mod lex;
mod mistakes;
mod operators;

use callee::Callee;
pub use help::{application, input_names, marked, operand_ranges, statements};
use keywords::Call;
use lex::{Lexer, Span, Symbol, Token};

pub use crate::base::limits::MAX_EXPRESSION;

impl Program {
    /// Adds an expression whose names are this program's placeholders. Errors:
    /// [`Error::Invalid`](crate::Error::Invalid) with the byte range in the text, [`Error::Limit`](crate::Error::Limit)
    /// if the text is too long. After an error the program is unchanged.
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
        self.expression_with(text, |_| None)
    }

    /// Like [`expression`](Program::expression), with names for scalars. A named scalar is equivalent to its value
    /// written in the text: it is a weak scalar and is folded with other constants.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// p.data("a", DType::BF16, [4]);
    /// p.data("b", DType::BF16, [4]);
    /// let mix = p.expression_with("(1 - w) * a + w * b", |name| (name == "w").then_some(Scalar::Float(0.25)))?;
    /// assert_eq!(p.infer()?.dtype(&mix), Some(DType::BF16));
    /// assert!(p.to_string().contains("mul ~0.75, %a"));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn expression_with(&self, text: &str, scalars: impl FnMut(&str) -> Option<Scalar>) -> Result<Var> {
        self.expression_in(text, &Registry::new(), scalars)
    }

    /// Like [`expression_with`](Program::expression_with), for a text that may end with an assignment: then its results are
    /// the names that are assigned and not used, in their order.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// p.data("a", DType::F32, [4]);
    /// p.data("b", DType::F32, [4]);
    /// let results = p.results_with("d = abs(a - b); most = amax(d); mean = mean(d)", |_| None)?;
    /// let names: Vec<_> = results.iter().filter_map(|(name, _)| name.as_deref()).collect();
    /// assert_eq!(names, ["most", "mean"]);
    /// assert!(p.results_with("a + b", |_| None)?[0].0.is_none());
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn results_with(
        &self,
        text: &str,
        mut scalars: impl FnMut(&str) -> Option<Scalar>,
    ) -> Result<Vec<(Option<String>, Var)>> {
        let mut names = |name: &str| match scalars(name) {
            Some(s) => Some(Operand::Scalar(s)),
            None => self.feed(name).map(Operand::Var),
        };
        let known = Known { ops: &Registry::new(), names: &|| self.feed_names(), limits: self.limits(), place: None };
        let _standard = FloatMode::standard();
        known.limits.allow(Limit::Expression, text.len())?;
        let mut parser = Parser::new(text, &known, &mut names);
        let end = parser.read()?;
        Ok(parser.finish_named(end)?)
    }

    /// Like [`expression_with`](Program::expression_with), with the custom ops of a registry.
    ///
    /// ```
    /// use castwise::{CustomOp, Promotion, Registry, prelude::*};
    /// let mut ops = Registry::new();
    /// ops.register(CustomOp::new("cube", ["x"], Promotion::Common).with(|[x]: [f32; 1]| x * x * x))?;
    /// let p = Program::new(Rules::Torch);
    /// p.data("a", DType::BF16, [4]);
    /// let y = p.expression_in("cube(a - 1) / 2", &ops, |_| None)?;
    /// assert_eq!(p.infer()?.dtype(&y), Some(DType::BF16));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn expression_in(
        &self,
        text: &str,
        ops: &Registry,
        mut scalars: impl FnMut(&str) -> Option<Scalar>,
    ) -> Result<Var> {
        let mut names = |name: &str| match scalars(name) {
            Some(s) => Some(Operand::Scalar(s)),
            None => self.feed(name).map(Operand::Var),
        };
        let known = Known { ops, names: &|| self.feed_names(), limits: self.limits(), place: None };
        parse(text, &known, &mut names)
    }

    /// Like [`expression`](Program::expression), whose names are those of any values: `operands` gives the handle or the scalar of
    /// each. Nodes have the location that [`with_location`](crate::with_location) gives, if it gives one, instead of a byte range.
    ///
    /// ```
    /// use castwise::{Operand, prelude::*};
    /// let p = Program::new(Rules::Torch);
    /// let mean = p.data("a", DType::F16, [4]).mean();
    /// let y = p.expression_of("2 * m", |name| (name == "m").then(|| Operand::Var(mean.clone())))?;
    /// assert_eq!(p.infer()?.dtype(&y), Some(DType::F16));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn expression_of(&self, text: &str, mut operands: impl FnMut(&str) -> Option<Operand>) -> Result<Var> {
        let known = Known { ops: &Registry::new(), names: &Vec::new, limits: self.limits(), place: given() };
        parse(text, &known, &mut operands)
    }
}

/// Applies an expression to handles of either mode. `names` returns the handle of a name.
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
    parse_expression_within(text, Limits::new(), &mut names)
}

/// Like [`parse_expression`], with other limits for the length of the text, its nesting, and its number of
/// applications, each of which is a node.
///
/// ```
/// use castwise::{Limit, Limits, expr::parse_expression_within, prelude::*};
/// let x = Eager::new(Rules::Torch).tensor(&Tensor::from([1.0f32, 4.0]));
/// let limits = Limits::new().with(Limit::Nesting, 2)?;
/// let read = |text: &str| parse_expression_within(text, limits, |_| Some(x.clone()));
/// assert!(read("((x + 1))").is_err() && read("(x + 1)").is_ok());
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn parse_expression_within<M: Mode>(
    text: &str,
    limits: Limits,
    mut names: impl FnMut(&str) -> Option<Var<M>>,
) -> Result<Var<M>> {
    let ops = Registry::new();
    parse(text, &Known { ops: &ops, names: &Vec::new, limits, place: None }, &mut |name| names(name).map(Operand::Var))
}

/// The value of an expression without names: a constant, or arithmetic between constants, which is folded as in any
/// expression. Errors: those of [`parse_expression`].
///
/// ```
/// use castwise::{Scalar, expr::parse_constant};
/// assert_eq!(parse_constant("0x10")?, Scalar::Int(16));
/// assert_eq!(parse_constant("-1/4")?, Scalar::Float(-0.25));
/// assert!(parse_constant("18446744073709551616").is_err());
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn parse_constant(text: &str) -> Result<Scalar> {
    let _standard = FloatMode::standard();
    let known = Known { ops: &Registry::new(), names: &Vec::new, limits: Limits::new(), place: None };
    known.limits.allow(Limit::Expression, text.len())?;
    Ok(Parser::<Graph>::new(text, &known, &mut |_| None).constant()?)
}

/// The custom ops that an expression can call, the names of the inputs for error messages, the limits, and the place of all nodes
/// where it is not that in the text.
struct Known<'a> {
    ops: &'a Registry,
    names: &'a dyn Fn() -> Vec<String>,
    limits: Limits,
    place: Option<SourceLocation>,
}

fn parse<M: Mode>(text: &str, known: &Known<'_>, names: Lookup<'_, M>) -> Result<Var<M>> {
    // Constants are parsed and folded here, which depends on the floating-point mode.
    let _standard = FloatMode::standard();
    known.limits.allow(Limit::Expression, text.len())?;
    Ok(Parser::new(text, known, names).run()?)
}

type Lookup<'a, M> = &'a mut dyn FnMut(&str) -> Option<Operand<M>>;

/// The source of a value, before anything is built.
#[derive(Clone, Copy, Debug)]
enum Term {
    Handle(u32),
    Step(u32),
    Constant(u32),
}

/// An application to be built once the whole text has been read.
struct Step {
    what: Applied,
    operands: [Option<Term>; MAX_OPERANDS],
    /// The span of each operand.
    spans: [Option<Span>; MAX_OPERANDS],
    span: Span,
}

/// What a step applies.
enum Applied {
    Op(Op, Attrs),
    Composite(Composite),
    Generator(Generator),
    Blocks(BlockSize),
}

/// Constants that an input of the same name replaces.
pub const CONSTANTS: [(&str, f64); 2] = [("e", std::f64::consts::E), ("pi", std::f64::consts::PI)];

/// A complete operand.
#[derive(Clone, Copy)]
enum Value {
    Constant(Scalar),
    Term(Term),
}

/// An operator, parenthesis or call whose operands on the right have not been read yet.
#[derive(Clone, Copy)]
enum Frame {
    Binary(Symbol),
    Unary(Symbol, Span),
    Open(Span),
    /// A call: what it applies, the span of its name, and the number of values on the stack below its operands.
    Call(Callee, Span, u32),
}

/// A part of the expression that has a name.
struct Local {
    value: Value,
    at: Span,
    used: bool,
}

struct Parser<'t, 'a, M: Mode> {
    lexer: Lexer<'t>,
    names: Lookup<'a, M>,
    known: &'a Known<'a>,
    handles: Vec<Var<M>>,
    by_name: HashMap<String, Value>,
    /// The name that the current statement assigns.
    target: Option<(String, Span)>,
    locals: HashMap<String, Local>,
    constants: Vec<Scalar>,
    steps: Vec<Step>,
    /// The random generators so far.
    random: u64,
    values: Vec<(Value, Span)>,
    frames: Vec<Frame>,
    /// What each open call has been given by name.
    calls: Vec<Call>,
}

type Parsed<T> = Result<T, Diagnostic>;

impl<'t, 'a, M: Mode> Parser<'t, 'a, M> {
    fn new(text: &'t str, known: &'a Known<'a>, names: Lookup<'a, M>) -> Parser<'t, 'a, M> {
        Parser {
            lexer: Lexer::new(text),
            names,
            known,
            handles: Vec::new(),
            by_name: HashMap::new(),
            target: None,
            locals: HashMap::new(),
            constants: Vec::new(),
            steps: Vec::new(),
            random: 0,
            values: Vec::new(),
            frames: Vec::new(),
            calls: Vec::new(),
        }
    }

    fn run(mut self) -> Parsed<Var<M>> {
        let end = self.read()?;
        self.finish(end)
    }

    /// Reads the whole text: an operand, then operators and operands alternately.
    fn read(&mut self) -> Parsed<Span> {
        self.target()?;
        loop {
            self.operand()?;
            loop {
                let (token, span) = self.lexer.next()?;
                match token {
                    Token::Symbol(Symbol::Not) => {
                        return Err(span.syntax("`~` is a unary operator: write it before an operand"));
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
                    Token::Semicolon => {
                        self.assign()?;
                        self.target()?;
                        break;
                    }
                    Token::End => return Ok(span),
                    other => return Err(self.stray(&other, span)),
                }
            }
        }
    }

    /// Reads `name =` if the statement begins with it.
    fn target(&mut self) -> Parsed<()> {
        let mut ahead = self.lexer.clone();
        let (Ok((token, span)), Ok((Token::Assign, _))) = (ahead.next(), ahead.next()) else { return Ok(()) };
        let name = match token {
            Token::Name(name @ ("true" | "True" | "false" | "False" | "inf" | "nan")) => {
                return Err(span.syntax(format!("`{name}` is a constant")).help("choose another name"));
            }
            Token::Name(name) => name.to_string(),
            Token::Quoted(name) => name.into_owned(),
            _ => return Err(span.syntax("`=` must follow a name").help("`==` compares")),
        };
        let taken =
            |what| Err(span.syntax(format!("`{}` is {what} already", shown(&name))).help("choose another name"));
        if self.locals.contains_key(&name) {
            return taken("assigned");
        }
        if self.by_name.contains_key(&name) || (self.names)(&name).is_some() {
            return taken("an input");
        }
        self.lexer = ahead;
        self.target = Some((name, span));
        Ok(())
    }

    /// Ends a statement and assigns its value to the name before its `=`.
    fn assign(&mut self) -> Parsed<()> {
        self.closed()?;
        match (self.target.take(), self.values.pop()) {
            (Some((name, at)), Some((value, _))) => {
                self.locals.insert(name, Local { value, at, used: false });
                Ok(())
            }
            (_, value) => Err(mistakes::nameless(value.map(|(_, span)| span))),
        }
    }

    /// Applies the remaining operators of a statement. An open parenthesis is an error.
    fn closed(&mut self) -> Parsed<()> {
        self.reduce_all()?;
        match self.frames.last() {
            Some(Frame::Open(at)) => Err(at.syntax("this parenthesis is never closed")),
            Some(Frame::Call(op, name, _)) => {
                Err(name.syntax(format!("the parenthesis of this `{op}` is never closed")))
            }
            _ => Ok(()),
        }
    }

    /// Reads unary operators, opening parentheses, calls and keywords up to the first operand, or an attribute of a call.
    fn operand(&mut self) -> Parsed<()> {
        // Whether the next token may be a keyword: it is the first one of a call, or follows its comma.
        let mut begins = true;
        loop {
            if let Some(op) = self.in_keyword().filter(|_| begins) {
                if !self.keyword(op)? {
                    return Ok(());
                }
                begins = false;
            }
            let (token, span) = self.lexer.next()?;
            let constant = match token {
                Token::Int(v) => Scalar::from(v),
                Token::Float(v) => Scalar::Float(v),
                Token::Imaginary(v) => Scalar::Complex(Complex::new(0.0, v)),
                Token::Quoted(name) => {
                    let value = self.name(&name, span)?;
                    return self.push(value, span);
                }
                Token::Name(name) => match self.word(name, span)? {
                    Some((value, span)) => return self.push(value, span),
                    None => {
                        begins = true;
                        continue;
                    }
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
                Token::Semicolon => return Err(span.syntax("an operand is missing before this semicolon")),
                Token::Assign => return Err(mistakes::assigns(span)),
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
        let most = self.known.limits.at(Limit::Nesting);
        if self.frames.len() >= most {
            return Err(span.syntax(format!("more than {most} operators and parentheses are open here")));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Reads a word without quotes: a constant, a name, or the start of a call, for which it returns `None`.
    fn word(&mut self, word: &str, span: Span) -> Parsed<Option<(Value, Span)>> {
        let constant = match word {
            "true" | "True" => Scalar::Bool(true),
            "false" | "False" => Scalar::Bool(false),
            "inf" => Scalar::Float(f64::INFINITY),
            "nan" => Scalar::Float(f64::NAN),
            "not" => return Err(span.syntax("`not` is not an operator here").help("write `~x`, or `logical_not(x)`")),
            _ => {
                if !matches!(self.lexer.clone().next(), Ok((Token::Open, _))) {
                    return Ok(Some((self.name(word, span)?, span)));
                }
                self.lexer.next()?;
                if word == BlockSize::NAME && self.known.ops.op(word).is_none() {
                    return self.blocks(span).map(Some);
                }
                if let (None, Some(generator)) = (self.known.ops.op(word), Generator::named(word)) {
                    return self.generator(generator, span).map(Some);
                }
                let callee = Callee::named(word, self.known.ops).ok_or_else(|| self.unknown_op(word, span))?;
                self.wait(Frame::Call(callee, span, self.values.len() as u32), span)?;
                self.calls.push(Call::default());
                return Ok(None);
            }
        };
        Ok(Some((Value::Constant(constant), span)))
    }

    /// The value of a name. Each name is looked up once.
    fn name(&mut self, name: &str, span: Span) -> Parsed<Value> {
        if let Some(local) = self.locals.get_mut(name) {
            local.used = true;
            return Ok(local.value);
        }
        if let Some(known) = self.by_name.get(name) {
            return Ok(*known);
        }
        let Some(found) = (self.names)(name) else {
            let constant = CONSTANTS.iter().find(|(known, _)| *known == name);
            return constant
                .map(|(_, v)| Value::Constant(Scalar::Float(*v)))
                .ok_or_else(|| self.unknown_name(name, span));
        };
        let value = match found {
            Operand::Scalar(s) => Value::Constant(s),
            Operand::Var(handle) => {
                self.handles.push(handle);
                Value::Term(Term::Handle(self.handles.len() as u32 - 1))
            }
        };
        self.by_name.insert(name.to_string(), value);
        Ok(value)
    }

    fn step(&mut self, op: Op, operands: &[(Value, Span)], attrs: Attrs, span: Span) -> Parsed<Value> {
        self.applied(Applied::Op(op, attrs), operands, span)
    }

    fn applied(&mut self, what: Applied, operands: &[(Value, Span)], span: Span) -> Parsed<Value> {
        let name = match &what {
            Applied::Op(Op::Cast, _) | Applied::Generator(_) | Applied::Blocks(_) => None,
            Applied::Op(op, _) => Some(op.name()),
            Applied::Composite(c) => Some(c.name()),
        };
        if let Some(name) = name
            && operands.iter().all(|(o, _)| matches!(o, Value::Constant(_)))
        {
            let d = span.syntax(format!("all operands of `{name}` are constants"));
            return Err(d.help("constants can only be combined by `+ - * / **`: write the value"));
        }
        let most = self.known.limits.at(Limit::Nodes);
        if self.steps.len() >= most {
            return Err(span.syntax(format!("the expression has more than {most} applications")));
        }
        let (mut terms, mut spans) = ([None; MAX_OPERANDS], [None; MAX_OPERANDS]);
        for ((to, at), (operand, span)) in terms.iter_mut().zip(&mut spans).zip(operands) {
            *at = Some(*span);
            *to = Some(match operand {
                Value::Term(t) => *t,
                Value::Constant(s) => {
                    self.constants.push(*s);
                    Term::Constant(self.constants.len() as u32 - 1)
                }
            });
        }
        self.steps.push(Step { what, operands: terms, spans, span });
        Ok(Value::Term(Term::Step(self.steps.len() as u32 - 1)))
    }
}

#[cfg(test)]
mod tests;
