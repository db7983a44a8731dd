//! Calls: commas, closing parentheses, and what is given by name, as in `clamp(x, min=0)` and
//! `mean(x, dims=-1, keepdim=true)`.
//!
//! Guarantees: an attribute's value is read where it is written, and does not become an operand; operands reach the op in
//! the order of its row. Does not: know which dims a value has.

use super::callee::{Callee, Keyword};
use super::keywords::{Call, unknown};
use super::lex::{Span, Token};
use super::mistakes::{usage, wrong_arity};
use super::{Applied, Frame, Parsed, Parser, Value};
use crate::base::composite::{Composite, Kind};
use crate::base::dtype::DType;
use crate::base::dtype_names::UnknownDType;
use crate::base::error::Diagnostic;
use crate::base::scalar::Scalar;
use crate::graph::var::Mode;
use crate::ops::{Attrs, Choice};

impl<M: Mode> Parser<'_, '_, M> {
    /// What the call applies whose next operand begins here, if it begins with a keyword.
    pub(super) fn in_keyword(&self) -> Option<Callee> {
        let Some(Frame::Call(op, ..)) = self.frames.last() else { return None };
        let mut ahead = self.lexer.clone();
        match (ahead.next(), ahead.next()) {
            (Ok((Token::Name(_), _)), Ok((Token::Assign, _))) => Some(*op),
            _ => None,
        }
    }

    /// Reads `name =` in a call, and the value of an attribute. Returns whether an operand follows.
    pub(super) fn keyword(&mut self, op: Callee) -> Parsed<bool> {
        let (Some(Frame::Call(_, _, base)), (Token::Name(word), span)) =
            (self.frames.last().copied(), self.lexer.next()?)
        else {
            return Ok(true);
        };
        self.lexer.next()?;
        let key = op.keyword(word).ok_or_else(|| unknown(op, word, span))?;
        let values = self.values.len() - base as usize;
        let Some(call) = self.calls.last_mut() else { return Ok(true) };
        let positional = values - call.named.len();
        if call.given.contains(&key) || matches!(key, Keyword::Operand(at) if (at as usize) < positional) {
            return Err(span.syntax(format!("`{word}` of `{op}` is given twice")));
        }
        call.given.push(key);
        if let Keyword::Operand(at) = key {
            call.named.push(at);
            return Ok(true);
        }
        let mut attrs = std::mem::take(&mut call.attrs);
        let (mut number, mut equal_nan) = (None, false);
        match key {
            Keyword::Operand(_) => {}
            Keyword::Named(name) => number = Some((name, self.number_of_composite(word)?)),
            Keyword::EqualNan => equal_nan = self.truth(word)?,
            Keyword::Dims => attrs.dims = self.dims(word)?.map(Into::into),
            Keyword::Keepdim => attrs.keepdim = self.truth(word)?,
            Keyword::DType => attrs.dtype = self.dtype(op)?,
            Keyword::Number => attrs.number = Some(self.real(word)?.into()),
            Keyword::Choice => attrs.choice = Some(self.choice(op, word)?),
            Keyword::Axis => attrs.axis = Some(self.dim(word, "an integer, e.g. `axis=1`")?),
        }
        match self.lexer.clone().next()? {
            (Token::Comma | Token::Close, _) => {}
            (_, at) => return Err(at.syntax(format!("expected `,` or `)` after the value of `{word}`"))),
        }
        if let Some(call) = self.calls.last_mut() {
            call.attrs = attrs;
            call.numbers.extend(number);
            call.equal_nan |= equal_nan;
        }
        Ok(false)
    }

    /// Reads a number, which may be infinite or NaN.
    fn number_of_composite(&mut self, word: &str) -> Parsed<f64> {
        match self.number(word)? {
            (Scalar::Int(n), at) if n as f64 as i128 != n => {
                Err(at.syntax(format!("`{word}` is a number of f64, which has no {n}")))
            }
            (Scalar::Int(n), _) => Ok(n as f64),
            (Scalar::Float(v), _) => Ok(v),
            (_, at) => Err(at.syntax(format!("`{word}` takes a real number"))),
        }
    }

    /// Reads the dims of a reduction: an integer, several in parentheses or brackets, or `None` for all.
    fn dims(&mut self, word: &str) -> Parsed<Option<Vec<i64>>> {
        const FORMS: &str = "integers, e.g. `dims=-1` or `dims=(0, 1)`";
        let mut ahead = self.lexer.clone();
        let close = match ahead.next() {
            Ok((Token::Name("None"), _)) => {
                self.lexer = ahead;
                return Ok(None);
            }
            Ok((Token::Open, _)) => {
                self.lexer = ahead;
                b')'
            }
            _ if self.lexer.takes(b'[') => b']',
            _ => return Ok(Some(vec![self.dim(word, FORMS)?])),
        };
        let mut dims = Vec::new();
        while !self.lexer.takes(close) {
            dims.push(self.dim(word, FORMS)?);
            if !self.lexer.takes(b',') && !self.lexer.clone().takes(close) {
                let (_, at) = self.lexer.next()?;
                return Err(at.syntax(format!("expected `,` or `{}` in `{word}`", close as char)));
            }
        }
        Ok(Some(dims))
    }

    /// Reads an integer, which may be negative.
    fn dim(&mut self, word: &str, forms: &str) -> Parsed<i64> {
        use super::Symbol::Sub;
        let (mut token, mut at) = self.lexer.next()?;
        let negative = token == Token::Symbol(Sub);
        if negative {
            let first = at;
            (token, at) = self.lexer.next()?;
            at = first.to(at);
        }
        let value = match token {
            Token::Int(n) => i64::try_from(n).ok().map(|n| if negative { -n } else { n }),
            _ => None,
        };
        value.ok_or_else(|| at.syntax(format!("`{word}` takes {forms}")))
    }

    /// Reads a number, which may be negative or infinite.
    fn real(&mut self, word: &str) -> Parsed<f64> {
        match self.number(word)? {
            (Scalar::Int(n), _) => Ok(n as f64),
            (Scalar::Float(v), _) if !v.is_nan() => Ok(v),
            (_, at) => Err(at.syntax(format!("`{word}` takes a number, e.g. `{word}=1` or `{word}=inf`"))),
        }
    }

    /// Reads a word of those that the op takes, which may be in quotes.
    fn choice(&mut self, callee: Callee, name: &str) -> Parsed<Choice> {
        let among = callee.choices();
        let (token, at) = self.lexer.next()?;
        let found = match &token {
            Token::Name(word) => Choice::from_word(word),
            Token::Quoted(word) => Choice::from_word(word),
            _ => None,
        };
        found.filter(|c| among.contains(c)).ok_or_else(|| {
            let all: Vec<String> = among.iter().map(|c| format!("`{c}`")).collect();
            at.syntax(format!("`{name}` of `{callee}` is one of {}", all.join(", ")))
        })
    }

    /// Reads `true` or `false`, or Python's spelling of these.
    fn truth(&mut self, word: &str) -> Parsed<bool> {
        match self.lexer.next()? {
            (Token::Name("true" | "True"), _) => Ok(true),
            (Token::Name("false" | "False"), _) => Ok(false),
            (_, at) => Err(at.syntax(format!("`{word}` is `true` or `false`"))),
        }
    }

    /// Reads the name of a dtype, or `None` where a reduction is told none.
    fn dtype(&mut self, op: Callee) -> Parsed<Option<DType>> {
        let (token, at) = self.lexer.next()?;
        match token {
            Token::Name("None") if !op.takes_dtype() => Ok(None),
            Token::Name(word) => word.parse().map(Some).map_err(|e: UnknownDType| at.syntax(e.to_string())),
            _ => Err(at.syntax(format!("`{op}` takes the name of a dtype here")).help(usage(op))),
        }
    }

    /// Reads what follows a comma. Returns whether another operand or keyword follows; if the op takes a dtype, that is read
    /// here and ends the call.
    pub(super) fn comma(&mut self, span: Span) -> Parsed<bool> {
        self.reduce_all()?;
        let Some(Frame::Call(op, name, base)) = self.frames.last().copied() else {
            return Err(span.syntax("commas separate the operands of a call only"));
        };
        if self.in_keyword().is_some() {
            return Ok(true);
        }
        if self.calls.last().is_some_and(|call| !call.given.is_empty()) {
            return match self.lexer.clone().next()? {
                (Token::Close, _) => Ok(true),
                (_, at) => Err(at.syntax("an operand without a name follows one with a name").help(usage(op))),
            };
        }
        if !op.takes_dtype() {
            let count = self.values.len() - base as usize;
            return if count < op.operands().len() { Ok(true) } else { Err(wrong_arity(op, name.to(span))) };
        }
        let dtype = self.dtype(op)?;
        let (token, end) = self.lexer.next()?;
        if token != Token::Close {
            return Err(end.syntax(format!("expected `)` after the dtype of `{op}`")).help(usage(op)));
        }
        if let Some(call) = self.calls.last_mut() {
            call.attrs = Attrs { dtype, ..Attrs::default() };
        }
        self.called(op, name, base, end)?;
        Ok(false)
    }

    /// Reads a closing parenthesis.
    pub(super) fn close(&mut self, span: Span) -> Parsed<()> {
        self.reduce_all()?;
        match self.frames.last().copied() {
            Some(Frame::Open(open)) => {
                self.frames.pop();
                if let Some((_, of_value)) = self.values.last_mut() {
                    *of_value = open.to(span);
                }
                Ok(())
            }
            Some(Frame::Call(op, name, base)) => self.called(op, name, base, span),
            _ => Err(span.syntax("this parenthesis has no opening one")),
        }
    }

    /// Replaces the operands of the innermost call by its value.
    fn called(&mut self, callee: Callee, name: Span, base: u32, end: Span) -> Parsed<()> {
        self.frames.pop();
        let call = self.calls.pop().unwrap_or_default();
        let span = name.to(end);
        let wrong = || -> Diagnostic { wrong_arity(callee, span) };
        if callee.takes_dtype() && call.attrs.dtype.is_none() {
            return Err(wrong());
        }
        let values: Vec<(Value, Span)> = self.values.drain(base as usize..).collect();
        let op = match callee {
            Callee::Op(op) => op,
            Callee::Composite(kind) => return self.composite(kind, call, values, span),
            Callee::Extreme { reduces, .. } if values.len() == 1 => reduces,
            Callee::Extreme { name, of_two, reduces } => {
                if values.iter().any(|(v, _)| matches!(v, Value::Constant(_))) {
                    // PyTorch and NumPy take a dim there, Python a value.
                    let d = span.syntax(format!("`{name}` of a value and a constant"));
                    return Err(
                        d.help(format!("write `{reduces}(x, dims=0)` over a dim, `{of_two}(x, 0)` of two numbers"))
                    );
                }
                if call.attrs != Attrs::default() {
                    return Err(span.syntax(format!("`{name}` of two values takes no dims")));
                }
                of_two
            }
        };
        let (op, operands) = call.arranged(op, values).ok_or_else(wrong)?;
        let value = self.step(op, &operands, call.attrs, span)?;
        self.push(value, span)
    }

    /// Replaces the operands of the innermost call by a composite's value.
    fn composite(&mut self, kind: Kind, call: Call, values: Vec<(Value, Span)>, span: Span) -> Parsed<()> {
        let callee = Callee::Composite(kind);
        let placed = call.placed(values).ok_or_else(|| wrong_arity(callee, span))?;
        let mut composite = Composite::new(kind).equal_nan(call.equal_nan);
        (composite.dims, composite.dtype) = (call.attrs.dims, call.attrs.dtype);
        for (name, value) in call.numbers {
            composite = composite.number(name, value).map_err(|why| span.syntax(why))?;
        }
        let required = composite.takes().required;
        if placed.len() < required || placed.iter().take(required).any(Option::is_none) {
            return Err(wrong_arity(callee, span));
        }
        if let Some(Some((Value::Constant(_), at))) = placed.first() {
            return Err(at.syntax(format!("`{callee}` takes a value here, not a constant")));
        }
        // A weight that is left out before a bias.
        let one = (Value::Constant(Scalar::Float(1.0)), span);
        let operands: Vec<(Value, Span)> = placed.into_iter().map(|v| v.unwrap_or(one)).collect();
        let value = self.applied(Applied::Composite(composite), &operands, span)?;
        self.push(value, span)
    }
}
