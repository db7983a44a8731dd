//! Calls of generators and of `blocks`: `uniform(x, seed=7, stream=1, dtype=f16)`, `blocks(scale, like=w, size=128)`.
//!
//! Guarantees: the first operand is a name, since its shape alone is used; numbers are constants, negative ones too, or named scalars; without a
//! `stream`, the n-th random generator of an expression has stream n, from 0. Does not: check what numbers mean.

use super::lex::{Span, Symbol, Token};
use super::{Applied, Parsed, Parser, Value};
use crate::base::dtype_names::UnknownDType;
use crate::base::error::shown;
use crate::base::generator::Generator;
use crate::base::scalar::Scalar;
use crate::graph::var::Mode;

impl<M: Mode> Parser<'_, '_, M> {
    /// Reads a call of a generator after its opening parenthesis.
    pub(super) fn generator(&mut self, mut made: Generator, start: Span) -> Parsed<(Value, Span)> {
        let name = made.name();
        let usage = usage(&mut made);
        let like = self.shaped(name, &usage)?;
        let mut given: Vec<&str> = Vec::new();
        let end = loop {
            match self.lexer.next()? {
                (Token::Close, end) => break end,
                (Token::Comma, _) => {}
                (_, at) => return Err(at.syntax(format!("expected `,` or `)` in this call of `{name}`")).help(usage)),
            }
            let mut ahead = self.lexer.clone();
            let (key, at) = match (ahead.next(), ahead.next()) {
                (Ok((Token::Name(word), at)), Ok((Token::Assign, _))) => {
                    self.lexer = ahead;
                    let found = made.numbers().iter().copied().chain(["dtype"]).find(|n| *n == word);
                    let unknown = || at.syntax(format!("`{name}` takes no `{}`", shown(word))).help(usage.clone());
                    (found.ok_or_else(unknown)?, at)
                }
                (Ok((_, at)), _) | (Err(_), Ok((_, at))) => match made.numbers().get(given.len()) {
                    Some(key) => (*key, at),
                    None => return Err(at.syntax(format!("too many numbers for `{name}`")).help(usage)),
                },
                (Err(d), Err(_)) => return Err(d),
            };
            if given.contains(&key) {
                return Err(at.syntax(format!("`{key}` of `{name}` is given twice")));
            }
            given.push(key);
            if key == "dtype" {
                let (token, at) = self.lexer.next()?;
                let Token::Name(word) = token else { return Err(at.syntax("expected the name of a dtype")) };
                let dtype = word.parse().map_err(|e: UnknownDType| at.syntax(e.to_string()))?;
                let Some(to) = made.dtype_mut() else {
                    return Err(at.syntax(format!("`{name}` takes no dtype")).help(usage));
                };
                *to = Some(dtype);
            } else {
                let (value, at) = self.number(name)?;
                made.set(key, value).map_err(|what| at.syntax(format!("`{key}` of `{name}` is {what}")))?;
            }
        };
        if !given.contains(&"stream")
            && let Some(key) = made.key_mut()
        {
            key.stream = self.random;
        }
        self.random += u64::from(made.is_random());
        let span = start.to(end);
        self.applied(Applied::Generator(made), &[like], span).map(|value| (value, span))
    }

    /// Reads `scale, like=w, size=128)`, or sizes in parentheses or brackets.
    pub(super) fn blocks(&mut self, start: Span) -> Parsed<(Value, Span)> {
        const USAGE: &str = "write `blocks(scale, like=w, size=128)` or `blocks(scale, like=w, size=(1, 128))`";
        let scale = self.shaped("blocks", USAGE)?;
        let (mut like, mut size) = (None, None);
        let end = loop {
            match self.lexer.next()? {
                (Token::Close, end) => break end,
                (Token::Comma, _) => {}
                (_, at) => return Err(at.syntax("expected `,` or `)` in this call of `blocks`").help(USAGE)),
            }
            let mut ahead = self.lexer.clone();
            let key = match (ahead.next(), ahead.next()) {
                (Ok((Token::Name(word), at)), Ok((Token::Assign, _))) => {
                    self.lexer = ahead;
                    match word {
                        "like" | "size" => word,
                        _ => return Err(at.syntax(format!("`blocks` takes no `{}`", shown(word))).help(USAGE)),
                    }
                }
                _ if like.is_none() => "like",
                _ => "size",
            };
            let here = self.lexer.clone().next().map(|(_, at)| at)?;
            let twice = match key {
                "like" => like.replace(self.shaped("blocks", USAGE)?).is_some(),
                _ => size.replace(self.sizes()?).is_some(),
            };
            if twice {
                return Err(here.syntax(format!("`{key}` of `blocks` is given twice")).help(USAGE));
            }
        };
        let span = start.to(end);
        let (Some(like), Some(size)) = (like, size) else {
            return Err(span.syntax("`blocks` takes a scale, what it is like, and a size").help(USAGE));
        };
        self.applied(Applied::Blocks(size.into()), &[scale, like], span).map(|value| (value, span))
    }

    /// Reads a size, or several in parentheses or brackets.
    fn sizes(&mut self) -> Parsed<Vec<usize>> {
        let close = if self.lexer.takes(b'(') {
            b')'
        } else if self.lexer.takes(b'[') {
            b']'
        } else {
            return Ok(vec![self.size()?]);
        };
        let mut sizes = Vec::new();
        while !self.lexer.takes(close) {
            sizes.push(self.size()?);
            if !self.lexer.takes(b',') && !self.lexer.clone().takes(close) {
                let (_, at) = self.lexer.next()?;
                return Err(at.syntax(format!("expected `,` or `{}` in `size`", close as char)));
            }
        }
        Ok(sizes)
    }

    fn size(&mut self) -> Parsed<usize> {
        let (value, at) = self.number("blocks")?;
        match value {
            Scalar::Int(n) => usize::try_from(n).map_err(|_| at.syntax("a size is a positive integer")),
            _ => Err(at.syntax("a size is a positive integer")),
        }
    }

    /// Reads the name of a value that has a shape.
    fn shaped(&mut self, name: &str, usage: &str) -> Parsed<(Value, Span)> {
        let value = match self.lexer.next()? {
            (Token::Name(word), at) => (self.name(word, at)?, at),
            (Token::Quoted(word), at) => (self.name(&word, at)?, at),
            (_, at) => {
                let d = at.syntax(format!("`{name}` takes the name of a value, whose shape it has"));
                return Err(d.help(usage));
            }
        };
        match value.0 {
            Value::Constant(_) => {
                Err(value.1.syntax(format!("`{name}` takes a value with a shape, not a constant")).help(usage))
            }
            Value::Term(_) => Ok(value),
        }
    }

    /// Reads a constant or the name of a scalar, after a sign or not.
    pub(super) fn number(&mut self, name: &str) -> Parsed<(Scalar, Span)> {
        let (mut token, mut at) = self.lexer.next()?;
        let negative = token == Token::Symbol(Symbol::Sub);
        if negative {
            let first = at;
            (token, at) = self.lexer.next()?;
            at = first.to(at);
        }
        let value = match token {
            Token::Int(v) => Scalar::from(v),
            Token::Float(v) => Scalar::Float(v),
            Token::Name("inf") => Scalar::Float(f64::INFINITY),
            Token::Name("nan") => Scalar::Float(f64::NAN),
            Token::Name(word) => match self.name(word, at)? {
                Value::Constant(s) => s,
                Value::Term(_) => return Err(at.syntax(format!("`{name}` takes a number, not a value of the program"))),
            },
            _ => return Err(at.syntax(format!("`{name}` takes a number here"))),
        };
        let value = if negative { super::fold::negate(value).map_err(|why| at.syntax(why))? } else { value };
        Ok((value, at))
    }
}

/// How a generator is called.
fn usage(g: &mut Generator) -> String {
    let numbers: Vec<String> = g.numbers().iter().map(|n| format!(", {n}=…")).collect();
    let dtype = if g.dtype_mut().is_some() { ", dtype=…" } else { "" };
    format!("write `{}(x{}{dtype})`", g.name(), numbers.concat())
}
