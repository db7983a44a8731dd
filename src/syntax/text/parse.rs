//! Reads programs from their text form.
//!
//! Guarantees: no recursion (the grammar does not nest). A mistake in a line invalidates that line only, and lines that
//! use its value are skipped without further errors. Memory is in proportion to the text. Does not: decide dtypes or
//! shapes. `check` reports mistakes of the program itself, with the location of the line.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use petgraph::graph::NodeIndex;

use super::lex::{Lexer, Span, Token};
use crate::base::blocks::BlockSize;
use crate::base::composite::Composite;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Error, Result, nearest, shown};
use crate::base::generator::Generator;
use crate::base::host::FloatMode;
use crate::base::limits::{Limit, Limits};
use crate::base::shape::{Dim, Dims};
use crate::base::view::View;
use crate::graph::program::{Fetched, Kind, Program, impossible};
use crate::ops::{Op, Registry};
use crate::promotion::{Contraction, Flag, Rounding, Rules, Settings, ZeroDivision, no_default_dtype};

impl FromStr for Program {
    type Err = Error;

    fn from_str(text: &str) -> Result<Program> {
        Program::parse(text)
    }
}

impl Program {
    /// Reads a program from its text form, which `Display` writes: settings, placeholders, one value per line, results.
    /// Values may have any names; `Display` numbers them.
    ///
    /// Errors: [`Error::Invalid`] with the mistakes in the text, each with its line and byte range; [`Error::Limit`] if
    /// the text has more than [`MAX_PROGRAM_TEXT`](crate::MAX_PROGRAM_TEXT) bytes or [`MAX_NODES`](crate::MAX_NODES)
    /// values. Mistakes of the program itself (dtypes, shapes, numbers of operands) are reported by
    /// [`check`](Program::check), with the location of their line.
    ///
    /// ```
    /// use castwise::{bf16, prelude::*};
    /// let text = r#"castwise 1
    /// program(rules = torch) (%x: f32["batch"], %w: bf16[?]) {
    ///   %bias = constant f32[1] [0.5]           ; values in the order of rows
    ///   %y = mul %x, %w
    ///   %y2 = add_scaled %y, %bias, ~2          ; a scalar without dtype
    ///   %s = sum %y2 {dims = [-1], keepdim}
    ///   fetch %s as "sum", %y2
    /// }
    /// "#;
    /// let p: Program = text.parse()?;
    /// let (x, w) = (Tensor::full([4], 1.5f32)?, Tensor::full([4], bf16::ONE)?);
    /// let results = p.fetches();
    /// let out = Executor::new().run(&p, feeds! { "x" => x, "w" => w }, [&results[0].var])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [10.0]);
    /// assert_eq!(Program::parse(&p.to_string())?.to_string(), p.to_string());
    ///
    /// let wrong = Program::parse(&text.replace("mul", "mull").replace("[0.5]", "[0.5, 1]")).unwrap_err();
    /// assert_eq!(wrong.diagnostics().len(), 2);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Program> {
        Program::parse_with(text, &Registry::new())
    }

    /// Like [`parse`](Program::parse), for programs with custom ops, which the registry finds by name. [`Registry`] has
    /// an example.
    pub fn parse_with(text: &str, ops: &Registry) -> Result<Program> {
        Program::parse_within(text, ops, Limits::new())
    }

    /// Like [`parse_with`](Program::parse_with), with limits that the program keeps. [`Limits`] has an example.
    pub fn parse_within(text: &str, ops: &Registry, limits: Limits) -> Result<Program> {
        let _standard = FloatMode::standard();
        limits.allow(Limit::ProgramText, text.len())?;
        Reader::new(text, ops, limits).run()
    }
}

/// The name of a value: `%3`, `%x`, `%"a name"`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key<'t> {
    Number(u64),
    Name(Cow<'t, str>),
}

/// The reason for which a line has no value.
pub(super) enum Stop {
    Mistake(Box<Diagnostic>),
    /// The line uses a value whose own line has a mistake.
    Silent,
    /// The whole text is refused.
    Refused(Error),
}

impl From<Diagnostic> for Stop {
    fn from(d: Diagnostic) -> Stop {
        Stop::Mistake(Box::new(d))
    }
}

pub(super) type Parsed<T> = Result<T, Stop>;

pub(super) struct Reader<'t> {
    pub(super) lexer: Lexer<'t>,
    /// Whether the reader is between the braces, where each line is a statement.
    in_body: bool,
    pub(super) program: Program,
    ops: HashMap<&'static str, Op>,
    /// The values that have been read; `None` if the line of a value has a mistake.
    values: HashMap<Key<'t>, Option<NodeIndex>>,
    nodes: usize,
    fetches: Vec<Fetched>,
    fetch_names: HashSet<Arc<str>>,
    mistakes: Vec<Diagnostic>,
}

pub(super) fn expected(what: &str, found: &Token<'_>, span: Span) -> Diagnostic {
    span.syntax(format!("expected {what}, found {}", found.name()))
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, ops: &Registry, limits: Limits) -> Reader<'t> {
        let names = |op: Op| {
            let def = op.def();
            std::iter::once(&def.name).chain(def.aliases).map(move |n| (*n, op))
        };
        Reader {
            lexer: Lexer::new(text),
            in_body: false,
            program: Program::with_limits(Rules::default(), limits),
            ops: ops.ops().chain(Op::ALL.iter().copied()).flat_map(names).collect(),
            values: HashMap::new(),
            nodes: 0,
            fetches: Vec::new(),
            fetch_names: HashSet::new(),
            mistakes: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Program> {
        match self.text() {
            Ok(()) | Err(Stop::Silent) => {}
            Err(Stop::Mistake(d)) => self.mistakes.push(*d),
            Err(Stop::Refused(e)) => return Err(e),
        }
        if !self.mistakes.is_empty() {
            return Err(Error::Invalid(self.mistakes));
        }
        self.program.declare(self.fetches);
        Ok(self.program)
    }

    fn text(&mut self) -> Parsed<()> {
        self.version()?;
        self.settings()?;
        self.placeholders()?;
        self.mark(b'{')?;
        self.in_body = true;
        loop {
            let line = self.lexer.line();
            match self.line() {
                Ok(true) => continue,
                Ok(false) => break,
                Err(Stop::Mistake(d)) => self.mistakes.push(*d),
                Err(Stop::Silent) => {}
                Err(refused) => return Err(refused),
            }
            if self.mistakes.len() >= MAX_MISTAKES {
                return Ok(());
            }
            if self.lexer.line() == line {
                self.lexer.skip_line();
            }
        }
        self.in_body = false;
        match self.next()? {
            (Token::End, _) => Ok(()),
            (found, span) => Err(expected("the end of the text", &found, span).into()),
        }
    }

    // Tokens.

    /// The next token. Line ends in the header have no meaning and are skipped.
    pub(super) fn next(&mut self) -> Parsed<(Token<'t>, Span)> {
        loop {
            let (token, span) = self.lexer.next()?;
            if token != Token::Newline || self.in_body {
                return Ok((token, span));
            }
        }
    }

    /// Consumes the next token if it equals `wanted`.
    pub(super) fn takes(&mut self, wanted: &Token<'_>) -> bool {
        let mut ahead = self.lexer.clone();
        let same = matches!(ahead.next(), Ok((token, _)) if token == *wanted);
        if same {
            self.lexer = ahead;
        }
        same
    }

    pub(super) fn mark(&mut self, mark: u8) -> Parsed<Span> {
        match self.next()? {
            (Token::Mark(m), span) if m == mark => Ok(span),
            (found, span) => Err(expected(&format!("`{}`", char::from(mark)), &found, span).into()),
        }
    }

    pub(super) fn word(&mut self, what: &str) -> Parsed<(&'t str, Span)> {
        match self.next()? {
            (Token::Word(w), span) => Ok((w, span)),
            (found, span) => Err(expected(what, &found, span).into()),
        }
    }

    fn keyword(&mut self, keyword: &str) -> Parsed<Span> {
        match self.next()? {
            (Token::Word(w), span) if w == keyword => Ok(span),
            (found, span) => Err(expected(&format!("`{keyword}`"), &found, span).into()),
        }
    }

    /// Reads a number or a word as a `T`.
    pub(super) fn of<T: FromStr<Err: ToString>>(&mut self, what: &str) -> Parsed<(T, Span)> {
        match self.next()? {
            (Token::Word(w) | Token::Number(w), span) => match w.parse() {
                Ok(v) => Ok((v, span)),
                Err(e) => {
                    let found = format!("expected {what}, found `{}`: {}", shown(w), e.to_string());
                    Err(span.syntax(found).into())
                }
            },
            (found, span) => Err(expected(what, &found, span).into()),
        }
    }

    /// Reads `[a, b, c]`; `item` reads one item.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.mark(b'[')?;
        let mut all = Vec::new();
        if self.takes(&Token::Mark(b']')) {
            return Ok(all);
        }
        loop {
            all.push(item(self)?);
            match self.next()? {
                (Token::Mark(b','), _) => {}
                (Token::Mark(b']'), _) => return Ok(all),
                (found, span) => return Err(expected("`,` or `]`", &found, span).into()),
            }
        }
    }

    /// Reads the name after a `%`.
    fn key(&mut self) -> Parsed<(Key<'t>, Span)> {
        let (token, span) = self.next()?;
        let key = match token {
            Token::Word(w) => Key::Name(Cow::Borrowed(w)),
            Token::Quoted(name) => Key::Name(name),
            Token::Number(n) => match n.parse() {
                Ok(n) => Key::Number(n),
                Err(_) => return Err(span.syntax(format!("`%{}` is neither a name nor a number", shown(n))).into()),
            },
            found => return Err(expected("the name of a value", &found, span).into()),
        };
        Ok((key, span))
    }

    // The header.

    fn version(&mut self) -> Parsed<()> {
        let first = self.next()?;
        let (Token::Word("castwise"), _) = first else {
            let (found, span) = first;
            let d = expected(&format!("`castwise {FORMAT_VERSION}`"), &found, span);
            return Err(d.help("the first line has the version of the format; typed programs can't be read").into());
        };
        let (version, span) = self.of::<u64>("the version of the format")?;
        if version == u64::from(FORMAT_VERSION) {
            return Ok(());
        }
        let message = format!("the text has format version {version}; this castwise reads version {FORMAT_VERSION}");
        Err(span.syntax(message).into())
    }

    fn settings(&mut self) -> Parsed<()> {
        let start = self.keyword("program")?;
        self.mark(b'(')?;
        let (mut rules, mut default, mut rounding) = (None, None, None);
        let (mut zero_division, mut contraction) = (None, None);
        let mut flags: Vec<(&str, bool, Span)> = Vec::new();
        loop {
            let (key, span) = self.word("`rules`, `default`, `rounding`, `zero_division` or `contraction`")?;
            self.mark(b'=')?;
            let twice = match key {
                "rules" => rules.replace(self.of::<Rules>("rules")?.0).is_some(),
                "rounding" => rounding.replace(self.of::<Rounding>("a rounding")?.0).is_some(),
                "zero_division" => zero_division.replace(self.of::<ZeroDivision>("`rules` or `error`")?.0).is_some(),
                "contraction" => contraction.replace(self.of::<Contraction>("`off` or `torch`")?.0).is_some(),
                "default" => {
                    let (d, at) = self.of::<DType>("a float dtype")?;
                    if let Some(why) = no_default_dtype(d) {
                        return Err(at.syntax(why).into());
                    }
                    default.replace(d).is_some()
                }
                key if Flag::named(key).is_some() => {
                    let twice = flags.iter().any(|(name, ..)| *name == key);
                    flags.push((key, self.of::<bool>("`true` or `false`")?.0, span));
                    twice
                }
                _ => return Err(span.syntax(format!("unknown setting `{}`", shown(key))).into()),
            };
            if twice {
                return Err(span.syntax(format!("`{key}` is given twice")).into());
            }
            match self.next()? {
                (Token::Mark(b','), _) => {}
                (Token::Mark(b')'), _) => break,
                (found, span) => return Err(expected("`,` or `)`", &found, span).into()),
            }
        }
        let rules = rules.ok_or_else(|| start.syntax("the program has no `rules` setting"))?;
        let mut settings = Settings::new(rules);
        settings.default_dtype = default.unwrap_or(settings.default_dtype);
        settings.rounding = rounding.unwrap_or_default();
        settings.zero_division = zero_division.unwrap_or_default();
        settings.contraction = contraction.unwrap_or_default();
        for (name, on, span) in flags {
            *(Flag::find(rules, name).map_err(|e| span.syntax(e))?.of)(&mut settings) = on;
        }
        self.program = Program::with_limits(settings, self.program.limits());
        Ok(())
    }

    /// Reads `(%x: f32[3, ?], %y: …)`.
    fn placeholders(&mut self) -> Parsed<()> {
        self.mark(b'(')?;
        let mut known = HashSet::new();
        let mut first = true;
        loop {
            let start = match self.next()? {
                (Token::Mark(b'%'), span) => span,
                (Token::Mark(b')'), _) if first => return Ok(()),
                (found, span) => return Err(expected("a placeholder or `)`", &found, span).into()),
            };
            first = false;
            let (key, name_span) = self.key()?;
            let Key::Name(name) = key else {
                return Err(name_span
                    .syntax("a placeholder must have a name; write a name of digits in quotes")
                    .into());
            };
            self.mark(b':')?;
            let (dtype, weak, _) = self.type_of_leaf()?;
            let dims = Dims(self.list(Self::dim)?);
            let (after, end) = self.next()?;
            let span = start.to(end);
            if !known.insert(name.clone()) {
                let message = format!("the placeholder `{}` is declared twice", shown(&name));
                self.mistakes.push(name_span.mistake(DiagnosticKind::Name, message));
            } else if let Some(fault) = impossible(&name, &dims, &self.program.limits()) {
                self.mistakes.push(span.mistake(DiagnosticKind::BadParameter, fault));
                self.values.insert(Key::Name(name), None);
            } else {
                let kind = Kind::Data { name: name.as_ref().into(), dtype, dims };
                let node = self.leaf(kind, weak, span)?;
                self.values.insert(Key::Name(name), Some(node));
            }
            match after {
                Token::Mark(b',') => {}
                Token::Mark(b')') => return Ok(()),
                found => return Err(expected("`,` or `)`", &found, end).into()),
            }
            if self.mistakes.len() >= MAX_MISTAKES {
                return Err(Stop::Silent);
            }
        }
    }

    /// Reads `f32`, or `f32*` for a weak tensor.
    pub(super) fn type_of_leaf(&mut self) -> Parsed<(DType, bool, Span)> {
        let (dtype, span) = self.of::<DType>("a dtype")?;
        if !self.takes(&Token::Mark(b'*')) {
            return Ok((dtype, false, span));
        }
        let rules = self.program.settings().rules;
        if !rules.has_weak() {
            return Err(span.syntax(format!("the rules `{rules}` have no weak tensors: write `{dtype}`")).into());
        }
        if dtype == DType::Bool {
            return Err(span.syntax("bool is never weak: write `bool`").into());
        }
        Ok((dtype, true, span))
    }

    fn dim(&mut self) -> Parsed<Dim> {
        match self.next()? {
            (Token::Mark(b'?'), _) => Ok(Dim::Dynamic),
            (Token::Word(name), _) => Ok(Dim::Named(name.into())),
            (Token::Quoted(name), _) => Ok(Dim::Named(name.as_ref().into())),
            (Token::Number(n), span) => match n.parse() {
                Ok(n) => Ok(Dim::Fixed(n)),
                Err(_) => Err(span.syntax(format!("`{}` is not an extent", shown(n))).into()),
            },
            (found, span) => Err(expected("an extent, `?` or the name of a dim", &found, span).into()),
        }
    }

    // Lines.

    /// Reads one line. Returns whether more follow.
    fn line(&mut self) -> Parsed<bool> {
        match self.next()? {
            (Token::Newline, _) => return Ok(true),
            (Token::Mark(b'}'), _) => return Ok(false),
            (Token::Word("fetch"), _) => self.fetch()?,
            (Token::Mark(b'%'), span) => {
                let (key, at) = self.key()?;
                if self.values.contains_key(&key) {
                    return Err(at.mistake(DiagnosticKind::Name, "a value with this name exists already").into());
                }
                let made = self.definition(span);
                self.values.insert(key, made.as_ref().ok().copied());
                made?;
            }
            (Token::End, span) => {
                let d = expected("`}`", &Token::End, span);
                self.mistakes.push(d);
                return Err(Stop::Refused(Error::Invalid(std::mem::take(&mut self.mistakes))));
            }
            (found, span) => return Err(expected("`%`, `fetch` or `}`", &found, span).into()),
        }
        match self.lexer.clone().next() {
            Ok((Token::Newline | Token::End | Token::Mark(b'}'), _)) => Ok(true),
            Ok((found, span)) => Err(expected("the end of the line", &found, span).into()),
            Err(d) => Err(d.into()),
        }
    }

    pub(super) fn append(&mut self, kind: Kind, span: Span, inputs: &[(NodeIndex, u8)]) -> Parsed<NodeIndex> {
        self.count()?;
        Ok(self.program.append(kind, span.location(), inputs))
    }

    fn count(&mut self) -> Parsed<()> {
        self.nodes += 1;
        self.program.limits().allow(Limit::Nodes, self.nodes).map_err(Stop::Refused)
    }

    /// Adds a placeholder or constant.
    fn leaf(&mut self, kind: Kind, weak: bool, span: Span) -> Parsed<NodeIndex> {
        self.count()?;
        Ok(self.program.append_leaf(kind, span.location(), weak))
    }

    /// Reads the name of an operand after its `%`, and finds its node.
    pub(super) fn value(&mut self) -> Parsed<NodeIndex> {
        let (key, span) = self.key()?;
        match self.values.get(&key) {
            Some(Some(node)) => Ok(*node),
            Some(None) => Err(Stop::Silent),
            None => {
                let name = match &key {
                    Key::Number(n) => format!("%{n}"),
                    Key::Name(name) => format!("%{}", shown(name)),
                };
                Err(span.mistake(DiagnosticKind::Name, format!("no value `{name}` above this line")).into())
            }
        }
    }

    /// Reads what follows `fetch`: `%5 as "loss", %x`.
    fn fetch(&mut self) -> Parsed<()> {
        loop {
            self.mark(b'%')?;
            let node = self.value()?;
            let mut name = None;
            if self.takes(&Token::Word("as")) {
                let (token, span) = self.next()?;
                let text: Arc<str> = match token {
                    Token::Quoted(text) => text.as_ref().into(),
                    Token::Word(word) => word.into(),
                    found => return Err(expected("the name of a result", &found, span).into()),
                };
                if !self.fetch_names.insert(text.clone()) {
                    let message = format!("two results have the name `{}`", shown(&text));
                    return Err(span.mistake(DiagnosticKind::Name, message).into());
                }
                name = Some(text);
            }
            self.fetches.push((name, node));
            if !self.takes(&Token::Mark(b',')) {
                return Ok(());
            }
        }
    }

    /// Reads `= …` after the name of a value.
    fn definition(&mut self, start: Span) -> Parsed<NodeIndex> {
        self.mark(b'=')?;
        let (token, span) = self.next()?;
        let Token::Word(word) = token else {
            return Err(expected("an op, `constant` or `error`", &token, span).into());
        };
        match word {
            "constant" => {
                let (tensor, weak) = self.constant()?;
                self.leaf(Kind::Constant(tensor), weak, start.to(self.last()))
            }
            "error" => {
                let poison = self.poison()?;
                let span = start.to(self.last());
                self.append(Kind::Poison(Box::new(poison.at(&span.location()))), span, &[])
            }
            word if View::NAMES.contains(&word) => {
                let (view, from) = self.view(word, span)?;
                let span = start.to(self.last());
                self.append(Kind::View(view), span, &[(from, 0)])
            }
            _ => {
                if let Some(made) = self.made(word, start)? {
                    return Ok(made);
                }
                let op = self.ops.get(word).copied();
                let op = op.ok_or_else(|| self.unknown_op(word, span))?;
                self.application(op, start)
            }
        }
    }

    /// Whether an op has this name, which may be one of the caller's.
    pub(super) fn has_op(&self, word: &str) -> bool {
        self.ops.contains_key(word)
    }

    fn unknown_op(&self, word: &str, span: Span) -> Diagnostic {
        let custom = "a custom op must be registered in the `Registry` passed to `Program::parse_with`";
        let mut known: Vec<&str> = self
            .ops
            .keys()
            .copied()
            .chain(View::NAMES)
            .chain(Generator::NAMES)
            .chain([BlockSize::NAME])
            .chain(Composite::names())
            .collect();
        known.sort_unstable();
        let help = match nearest(word, known.into_iter()) {
            Some(name) => format!("did you mean `{name}`? {custom}"),
            None => custom.to_string(),
        };
        span.syntax(format!("unknown op `{}`", shown(word))).help(help)
    }

    /// An empty span at the current position.
    pub(super) fn last(&self) -> Span {
        let end = self.lexer.position();
        Span { start: end, end, line: self.lexer.line() }
    }
}

/// The version of the text form that this version of castwise writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// The maximum number of mistakes that are reported for one text. Reading stops there.
pub const MAX_MISTAKES: usize = 100;
