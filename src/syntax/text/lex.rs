//! Tokens of the text form, with their byte ranges and lines.
//!
//! Guarantees: never reads beyond the text, and never copies a name without escapes. An invalid token ends within its
//! line. Does not: know the meaning of words.

use std::borrow::Cow;

use crate::base::error::{Diagnostic, DiagnosticKind, SourceLocation, shown};

/// A byte range of the text, and the line (from 1) that it starts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) line: u32,
}

impl Span {
    /// The span from the start of one span to the end of another.
    pub(super) fn to(self, last: Span) -> Span {
        Span { end: last.end, ..self }
    }

    pub(super) fn location(self) -> SourceLocation {
        SourceLocation::Text(self.start..self.end)
    }

    /// A mistake at this span.
    pub(super) fn mistake(self, fault: DiagnosticKind, message: impl AsRef<str>) -> Diagnostic {
        Diagnostic::new(fault, format!("line {}: {}", self.line, message.as_ref())).at(&self.location())
    }

    /// A syntax error at this span.
    pub(super) fn syntax(self, message: impl AsRef<str>) -> Diagnostic {
        self.mistake(DiagnosticKind::Syntax, message)
    }
}

/// A token of the text form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A bare name or keyword.
    Word(&'t str),
    /// A word that begins with a digit or a minus sign. It has not been parsed yet.
    Number(&'t str),
    /// A string in double quotes.
    Quoted(Cow<'t, str>),
    /// A punctuation mark, one of [`MARKS`].
    Mark(u8),
    /// The end of a line.
    Newline,
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// The token's name in error messages.
    pub(super) fn name(&self) -> String {
        match self {
            Token::Word(w) | Token::Number(w) => format!("`{}`", shown(w)),
            Token::Quoted(t) => format!("\"{}\"", shown(t)),
            Token::Mark(m) => format!("`{}`", char::from(*m)),
            Token::Newline => "the end of the line".into(),
            Token::End => "the end of the text".into(),
        }
    }
}

const MARKS: &[u8] = b"(){}[],:=~?%*";

fn is_name(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || *b == b'_' || *b == b'.'
}

/// Reads tokens from the front of a text.
#[derive(Clone)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Lexer<'t> {
        // Some editors write a byte order mark at the start.
        Lexer { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 }, line: 1 }
    }

    /// The byte offset after the last token.
    pub(super) fn position(&self) -> u32 {
        self.at as u32
    }

    pub(super) fn line(&self) -> u32 {
        self.line
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or(&[])
    }

    /// The number of consecutive bytes that satisfy `f`, beginning `from` bytes after the current position.
    fn count(&self, from: usize, f: impl Fn(&u8) -> bool) -> usize {
        self.rest().iter().skip(from).take_while(|b| f(b)).count()
    }

    fn span(&self, n: usize) -> Span {
        Span { start: self.at as u32, end: (self.at + n).min(self.text.len()) as u32, line: self.line }
    }

    /// Consumes `n` bytes.
    fn take(&mut self, n: usize) -> (&'t str, Span) {
        let span = self.span(n);
        self.at = span.end as usize;
        (self.text.get(span.start as usize..span.end as usize).unwrap_or(""), span)
    }

    /// Moves to the end of the line.
    pub(super) fn skip_line(&mut self) {
        self.at += self.count(0, |b| *b != b'\n');
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<(Token<'t>, Span), Diagnostic> {
        loop {
            self.at += self.count(0, |b| matches!(b, b' ' | b'\t' | b'\r'));
            if self.rest().first() != Some(&b';') {
                break;
            }
            self.skip_line();
        }
        let rest = self.rest();
        match rest.first() {
            None => Ok((Token::End, self.span(0))),
            Some(b'\n') => {
                let span = self.take(1).1;
                self.line += 1;
                Ok((Token::Newline, span))
            }
            Some(b'"') => self.quoted(),
            Some(b) if MARKS.contains(b) => Ok((Token::Mark(*b), self.take(1).1)),
            Some(b'_' | b'a'..=b'z' | b'A'..=b'Z') => {
                let (word, span) = self.take(self.count(0, is_name));
                Ok((Token::Word(word), span))
            }
            Some(b'0'..=b'9' | b'-') => {
                let mut n = 1 + self.count(1, is_name);
                // A sign after `e` belongs to the exponent.
                if matches!(rest.get(n - 1), Some(b'e' | b'E')) && matches!(rest.get(n), Some(b'-' | b'+')) {
                    n += 1 + self.count(n + 1, is_name);
                }
                let (number, span) = self.take(n);
                Ok((Token::Number(number), span))
            }
            Some(_) => {
                let c = self.text.get(self.at..).and_then(|t| t.chars().next()).unwrap_or('?');
                let message = format!("unexpected character `{}`", shown(c.encode_utf8(&mut [0; 4])));
                Err(self.span(c.len_utf8()).syntax(message))
            }
        }
    }

    /// Reads `"text"`, in which `\"`, `\\` and `\u{…}` are the only escapes.
    fn quoted(&mut self) -> Result<(Token<'t>, Span), Diagnostic> {
        let (mut n, mut escaped) = (1, false);
        loop {
            match self.rest().get(n) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    n += if matches!(self.rest().get(n + 1), Some(b'"' | b'\\')) { 2 } else { 1 };
                }
                None | Some(b'\n') => {
                    return Err(self.span(n).syntax("the string that starts here has no closing `\"`"));
                }
                Some(_) => n += 1,
            }
        }
        let (text, span) = self.take(n + 1);
        let inner = text.get(1..n).unwrap_or("");
        if !escaped {
            return Ok((Token::Quoted(Cow::Borrowed(inner)), span));
        }
        let mut all = String::with_capacity(inner.len());
        let mut rest = inner;
        while let Some(at) = rest.find('\\') {
            all += &rest[..at];
            let (c, after) = unescape(&rest[at + 1..])
                .ok_or_else(|| span.syntax("a backslash must be followed by `\"`, a backslash or `u{…}`"))?;
            all.push(c);
            rest = after;
        }
        Ok((Token::Quoted(Cow::Owned(all + rest)), span))
    }
}

/// The character of an escape, whose backslash is not part of `text`, and the rest of the text.
fn unescape(text: &str) -> Option<(char, &str)> {
    if let Some(hex) = text.strip_prefix("u{") {
        let (digits, rest) = hex.split_once('}')?;
        return Some((u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?, rest));
    }
    let c = text.chars().next().filter(|c| matches!(c, '"' | '\\'))?;
    Some((c, &text[1..]))
}
