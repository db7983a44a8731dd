//! Tokens of the expression language, with their byte ranges.
//!
//! Guarantees: never reads beyond the text, and never copies a name without escapes. The error for an invalid token has
//! its byte range and a correction. Does not: know ops, names or precedence.

use std::borrow::Cow;

use crate::base::error::{Diagnostic, DiagnosticKind, SourceLocation};

/// A byte range of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    /// The span from the start of one span to the end of another.
    pub(super) fn to(self, last: Span) -> Span {
        Span { start: self.start, end: last.end }
    }

    pub(super) fn location(self) -> SourceLocation {
        SourceLocation::Text(self.start..self.end)
    }

    /// A syntax error at this span.
    pub(super) fn syntax(self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(DiagnosticKind::Syntax, message).at(&self.location())
    }
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    Pow,
    And,
    Or,
    Xor,
    Not,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A token of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    Int(u64),
    Float(f64),
    Imaginary(f64),
    /// A bare name.
    Name(&'t str),
    /// A name in double quotes.
    Quoted(Cow<'t, str>),
    Symbol(Symbol),
    Open,
    Close,
    Comma,
    Semicolon,
    Assign,
    End,
}

/// Two-byte operators. An operator that is not supported has a help text instead of a symbol.
const PAIRS: &[(&[u8; 2], Result<Symbol, &str>)] = &[
    (b"**", Ok(Symbol::Pow)),
    (b"//", Ok(Symbol::FloorDiv)),
    (b"==", Ok(Symbol::Eq)),
    (b"!=", Ok(Symbol::Ne)),
    (b"<=", Ok(Symbol::Le)),
    (b">=", Ok(Symbol::Ge)),
    (b"&&", Err("`&` combines bools elementwise")),
    (b"||", Err("`|` combines bools elementwise")),
    (b"<<", Err("write `bitwise_left_shift(x, n)`")),
    (b">>", Err("write `bitwise_right_shift(x, n)`")),
];

/// One-byte operators, in the same form.
const SINGLES: &[(u8, Result<Symbol, &str>)] = &[
    (b'+', Ok(Symbol::Add)),
    (b'-', Ok(Symbol::Sub)),
    (b'*', Ok(Symbol::Mul)),
    (b'/', Ok(Symbol::Div)),
    (b'%', Ok(Symbol::Rem)),
    (b'&', Ok(Symbol::And)),
    (b'|', Ok(Symbol::Or)),
    (b'^', Ok(Symbol::Xor)),
    (b'~', Ok(Symbol::Not)),
    (b'<', Ok(Symbol::Lt)),
    (b'>', Ok(Symbol::Gt)),
    (b'!', Err("`~` negates a bool, `!=` compares")),
    (b'?', Err("write `where(condition, x, y)`")),
    (b'@', Err("every op is elementwise: there is no matrix product")),
    (b'\'', Err("write a name with spaces in double quotes")),
];

/// Reads tokens from the front of a text.
#[derive(Clone)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

fn is_name(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || *b == b'_' || *b == b'.'
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or(&[])
    }

    /// The number of consecutive bytes that satisfy `f`, beginning `from` bytes after the current position.
    fn count(&self, from: usize, f: impl Fn(&u8) -> bool) -> usize {
        self.rest().iter().skip(from).take_while(|b| f(b)).count()
    }

    /// The span of the next `n` bytes, which are not consumed.
    fn span(&self, n: usize) -> Span {
        Span { start: self.at as u32, end: (self.at + n).min(self.text.len()) as u32 }
    }

    /// Consumes `n` bytes.
    fn take(&mut self, n: usize) -> (&'t str, Span) {
        let span = self.span(n);
        self.at += n;
        (self.text.get(span.start as usize..span.end as usize).unwrap_or(""), span)
    }

    /// Reads this character if it is next.
    pub(super) fn takes(&mut self, b: u8) -> bool {
        let space = self.count(0, u8::is_ascii_whitespace);
        let is_next = self.rest().get(space) == Some(&b);
        self.at += if is_next { space + 1 } else { 0 };
        is_next
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<(Token<'t>, Span), Diagnostic> {
        self.at += self.count(0, u8::is_ascii_whitespace);
        let rest = self.rest();
        let Some(first) = rest.first() else { return Ok((Token::End, self.span(0))) };
        let simple = match first {
            b'(' => Some(Token::Open),
            b')' => Some(Token::Close),
            b',' => Some(Token::Comma),
            b';' => Some(Token::Semicolon),
            b'=' if rest.get(1) != Some(&b'=') => Some(Token::Assign),
            _ => None,
        };
        if let Some(token) = simple {
            return Ok((token, self.take(1).1));
        }
        match first {
            b'0'..=b'9' => self.number(),
            b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => self.number(),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                let (name, span) = self.take(self.count(0, is_name));
                Ok((Token::Name(name), span))
            }
            b'"' => self.quoted(),
            _ => self.operator(),
        }
    }

    fn operator(&mut self) -> Result<(Token<'t>, Span), Diagnostic> {
        let rest = self.rest();
        let pair = PAIRS.iter().find(|(p, _)| rest.starts_with(&p[..])).map(|(_, s)| (2, s));
        let single = || SINGLES.iter().find(|(b, _)| rest.first() == Some(b)).map(|(_, s)| (1, s));
        match pair.or_else(single) {
            Some((n, Ok(symbol))) => Ok((Token::Symbol(*symbol), self.take(n).1)),
            Some((n, Err(help))) => {
                let (text, span) = self.take(n);
                Err(span.syntax(format!("`{text}` is not an operator here")).help(*help))
            }
            None => {
                let c = self.text.get(self.at..).and_then(|t| t.chars().next()).unwrap_or('?');
                let d = self.span(c.len_utf8()).syntax(format!("unexpected character `{}`", shown_char(c)));
                let help = "names consist of A-Z a-z 0-9 _ and dots; write other names in double quotes";
                Err(if c.is_alphanumeric() { d.help(help) } else { d })
            }
        }
    }

    /// Reads `"a name"`, in which `\"` and `\\` are the only escapes.
    fn quoted(&mut self) -> Result<(Token<'t>, Span), Diagnostic> {
        let (mut n, mut escaped) = (1, false);
        loop {
            match self.rest().get(n) {
                Some(b'"') => break,
                Some(b'\\') => {
                    if !matches!(self.rest().get(n + 1), Some(b'"' | b'\\')) {
                        let at = Span { start: (self.at + n) as u32, end: (self.at + n + 1) as u32 };
                        return Err(at.syntax("a backslash in a name must be followed by `\"` or a backslash"));
                    }
                    escaped = true;
                    n += 2;
                }
                Some(_) => n += 1,
                None => return Err(self.span(n).syntax("the name that starts here has no closing `\"`")),
            }
        }
        let (text, span) = self.take(n + 1);
        let inner = text.get(1..n).unwrap_or("");
        if !escaped {
            return Ok((Token::Quoted(Cow::Borrowed(inner)), span));
        }
        let mut name = String::with_capacity(inner.len());
        let mut chars = inner.chars();
        while let Some(c) = chars.next() {
            // The character after the backslash is the escaped one.
            name.extend(if c == '\\' { chars.next() } else { Some(c) });
        }
        Ok((Token::Quoted(Cow::Owned(name)), span))
    }

    fn number(&mut self) -> Result<(Token<'t>, Span), Diagnostic> {
        let rest = self.rest();
        if rest.starts_with(b"0x") || rest.starts_with(b"0X") {
            let (text, span) = self.take(2 + self.count(2, is_name));
            let digits = text.get(2..).unwrap_or("");
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(span.syntax("`0x` must be followed by hexadecimal digits only"));
            }
            return integer(u64::from_str_radix(digits, 16).ok(), span);
        }
        let digit = |b: &u8| b.is_ascii_digit();
        let whole = self.count(0, digit);
        let mut n = whole;
        if rest.get(n) == Some(&b'.') {
            n += 1 + self.count(n + 1, digit);
        }
        if matches!(rest.get(n), Some(b'e' | b'E')) {
            let sign = matches!(rest.get(n + 1), Some(b'+' | b'-')) as usize;
            let digits = self.count(n + 1 + sign, digit);
            if digits > 0 {
                n += 1 + sign + digits;
            }
        }
        let imaginary = rest.get(n) == Some(&b'j');
        let end = n + imaginary as usize;
        if rest.get(end).is_some_and(is_name) {
            let all = self.span(end + self.count(end, is_name));
            let d = all.syntax("a name follows a number without a space or an operator");
            return Err(d.help("write `*` to multiply; write a name that starts with a digit in double quotes"));
        }
        let digits = self.text.get(self.at..self.at + n).unwrap_or("");
        let span = self.take(end).1;
        if n == whole && !imaginary {
            if digits.len() > 1 && digits.starts_with('0') && digits.bytes().any(|b| b != b'0') {
                return Err(span.syntax("an integer must not start with 0").help("hexadecimal starts with `0x`"));
            }
            return integer(digits.parse().ok(), span);
        }
        match digits.parse::<f64>() {
            Ok(v) if !v.is_finite() => {
                Err(span.syntax("the number is beyond the range of f64").help("`inf` is infinity"))
            }
            Ok(v) => Ok((if imaginary { Token::Imaginary(v) } else { Token::Float(v) }, span)),
            Err(_) => Err(span.syntax("not a number")),
        }
    }
}

fn integer<'t>(value: Option<u64>, span: Span) -> Result<(Token<'t>, Span), Diagnostic> {
    let too_large = || {
        span.syntax("the integer is beyond the range of u64")
            .help("write it with a decimal point (`1.0e20`) for a float")
    };
    value.map(|v| (Token::Int(v), span)).ok_or_else(too_large)
}

fn shown_char(c: char) -> String {
    crate::base::error::shown(c.encode_utf8(&mut [0; 4]))
}
