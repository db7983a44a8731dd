//! Reads the parts of a line of the text form other than names: scalars, constants, attributes, mistakes.
//!
//! Guarantees: a value is read with every bit, or is an error. Only the values in the text are allocated. Does not:
//! read beyond its line.

use std::borrow::Cow;

use num_complex::Complex;

use super::lex::{Span, Token};
use super::parse::{Parsed, Reader, expected};
use super::value::{from_hex, nearest, push_bits};
use crate::base::dtype::{Category, DType, with_math};
use crate::base::error::{Diagnostic, DiagnosticKind, Error, shown};
use crate::base::scalar::Scalar;
use crate::base::shape::check_within;
use crate::ops::{Attrs, Choice, LossShapes, Op};
use crate::tensor::Tensor;

impl<'t> Reader<'t> {
    /// Reads a scalar after its `~`.
    pub(super) fn scalar(&mut self) -> Parsed<Scalar> {
        if self.takes(&Token::Mark(b'(')) {
            let re = f64::from_bits(self.float(DType::F64)?);
            self.mark(b',')?;
            let im = f64::from_bits(self.float(DType::F64)?);
            self.mark(b')')?;
            return Ok(Scalar::Complex(Complex::new(re, im)));
        }
        let mut ahead = self.lexer.clone();
        let known = match ahead.next()? {
            (Token::Word("true"), _) => Some(Scalar::Bool(true)),
            (Token::Word("false"), _) => Some(Scalar::Bool(false)),
            (Token::Number(n), span) if n.bytes().skip(1).all(|b| b.is_ascii_digit()) && n != "-" => {
                let message = || span.syntax("the integer is beyond the range of i64 and of u64");
                Some(n.parse().ok().and_then(Scalar::integer).ok_or_else(message)?)
            }
            _ => None,
        };
        match known {
            Some(scalar) => {
                self.lexer = ahead;
                Ok(scalar)
            }
            None => Ok(Scalar::Float(f64::from_bits(self.float(DType::F64)?))),
        }
    }

    /// Reads the bits of a float: a decimal, `inf`, `-inf`, `nan`, or `nan:0x…` with the bits of a NaN.
    fn float(&mut self, d: DType) -> Parsed<u64> {
        let (token, span) = self.next()?;
        match token {
            Token::Word("inf") | Token::Number("-inf") if d.has_infinity() => {
                let sign = u64::from(token == Token::Number("-inf")) << (8 * d.size() - 1);
                Ok(d.infinity_bits() | sign)
            }
            Token::Word("nan") => {
                if !self.takes(&Token::Mark(b':')) {
                    return Ok(d.nan_bits());
                }
                let (token, span) = self.next()?;
                let bits = match token {
                    Token::Number(n) => n.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()),
                    _ => None,
                };
                let size = 8 * d.size() as u32;
                let is_nan = |bits: &u64| {
                    let magnitude = bits & (u64::MAX >> (65 - size));
                    (size == 64 || *bits >> size == 0) && magnitude > d.infinity_bits()
                };
                bits.filter(is_nan).ok_or_else(|| span.syntax(format!("not the bits of a {d} NaN")).into())
            }
            Token::Number(n) => {
                let refuse = || span.syntax(format!("`{}` is not a number within the range of {d}", shown(n)));
                Ok(nearest(d, n).ok_or_else(refuse)?)
            }
            found => Err(expected("a number, `inf` or `nan`", &found, span).into()),
        }
    }

    /// Reads one element and appends its bytes to `out`.
    fn element(&mut self, d: DType, out: &mut Vec<u8>) -> Parsed<()> {
        match d.category() {
            Category::Bool => out.push(self.of::<bool>("`true` or `false`")?.0.into()),
            Category::Int => {
                let what = format!("{} {d}", if d.is_unsigned() { "a" } else { "an" });
                with_math!(int, d, T => out.extend(self.of::<T>(&what)?.0.to_ne_bytes()));
            }
            Category::Float => push_bits(d, self.float(d)?, out),
            Category::Complex => {
                self.mark(b'(')?;
                push_bits(d.real(), self.float(d.real())?, out);
                self.mark(b',')?;
                push_bits(d.real(), self.float(d.real())?, out);
                self.mark(b')')?;
            }
        }
        Ok(())
    }

    /// Reads `f32[2, 3] [1.0, …]`, `f32*[2, 3] [1.0, …]` or `f32[2, 3] hex "…"`, and `to [4, 2, 3]` if it follows.
    pub(super) fn constant(&mut self) -> Parsed<(Tensor, bool)> {
        let (d, weak, start) = self.type_of_leaf()?;
        let shape = self.extents()?;
        let refuse = |span: Span, e: Error| span.mistake(DiagnosticKind::BadParameter, e.to_string());
        let limits = self.program.limits();
        let n = check_within(&shape, &limits).map_err(|e| refuse(start.to(self.last()), e))?;
        let mut bytes = Vec::new();
        if self.takes(&Token::Word("hex")) {
            let (token, span) = self.next()?;
            let Token::Quoted(digits) = token else {
                return Err(expected("hexadecimal digits in quotes", &token, span).into());
            };
            bytes = from_hex(d, &digits).ok_or_else(|| span.syntax("a byte is not two hexadecimal digits"))?;
        } else {
            let count = self.list(|reader| reader.element(d, &mut bytes))?.len();
            if count != n {
                let message = format!("{count} values for a constant of {n} elements");
                return Err(start.to(self.last()).syntax(message).into());
            }
        }
        let tensor = Tensor::from_bytes(d, &shape, &bytes).map_err(|e| refuse(start.to(self.last()), e))?;
        if !self.takes(&Token::Word("to")) {
            return Ok((tensor, weak));
        }
        let wide = self.extents()?;
        check_within(&wide, &limits).map_err(|e| refuse(start.to(self.last()), e))?;
        Ok((tensor.broadcast_to(wide).map_err(|e| refuse(start.to(self.last()), e))?, weak))
    }

    fn extents(&mut self) -> Parsed<Vec<usize>> {
        self.list(|reader| Ok(reader.of::<usize>("an extent")?.0))
    }

    /// Reads `BadParameter "message" help "help"`.
    pub(super) fn poison(&mut self) -> Parsed<Diagnostic> {
        let (word, span) = self.word("the kind of a mistake")?;
        let fault = DiagnosticKind::from_name(word)
            .ok_or_else(|| span.syntax(format!("unknown kind of mistake `{}`", shown(word))))?;
        let mut d = Diagnostic::new(fault, self.quoted()?);
        if self.takes(&Token::Word("help")) {
            d = d.help(self.quoted()?);
        }
        Ok(d)
    }

    fn quoted(&mut self) -> Parsed<Cow<'t, str>> {
        match self.next()? {
            (Token::Quoted(text), _) => Ok(text),
            (found, span) => Err(expected("a string in quotes", &found, span).into()),
        }
    }

    /// Reads attributes after their `{`.
    pub(super) fn attrs(&mut self, op: Op) -> Parsed<Attrs> {
        let number = op.number_name();
        let choice = op.def().choice.map_or("choice", |of| of.name);
        let mut attrs = Attrs::default();
        loop {
            let (key, span) = self.word("an attribute")?;
            let twice = match key {
                "output" => std::mem::replace(&mut attrs.output, true),
                "keepdim" => std::mem::replace(&mut attrs.keepdim, true),
                _ if key == number => {
                    self.mark(b'=')?;
                    attrs.number.replace(self.of::<f64>("a number")?.0.into()).is_some()
                }
                _ if key == choice => {
                    self.mark(b'=')?;
                    let (word, at) = self.word("a word")?;
                    let chosen = Choice::from_word(word).ok_or_else(|| at.syntax(unknown_choice(op, word)))?;
                    attrs.choice.replace(chosen).is_some()
                }
                "dtype" | "axis" | "dims" | "loss" => {
                    self.mark(b'=')?;
                    match key {
                        "dtype" => attrs.dtype.replace(self.of("a dtype")?.0).is_some(),
                        "axis" => attrs.axis.replace(self.of("an axis")?.0).is_some(),
                        "dims" => {
                            let dims = self.list(|reader| Ok(reader.of::<i64>("a dim")?.0))?;
                            attrs.dims.replace(dims.into()).is_some()
                        }
                        _ => {
                            let (word, at) = self.word("`broadcast` or `equal`")?;
                            let shapes = match word {
                                "broadcast" => LossShapes::Broadcast,
                                "equal" => LossShapes::Equal,
                                _ => return Err(at.syntax("expected `broadcast` or `equal`").into()),
                            };
                            attrs.loss.replace(shapes).is_some()
                        }
                    }
                }
                _ => {
                    let d = span.syntax(format!("unknown attribute `{}`", shown(key)));
                    return Err(d.help("the attributes are dtype, output, axis, dims, keepdim, loss and the number and the choice that an op takes, under their names").into());
                }
            };
            if twice {
                return Err(span.syntax(format!("`{key}` is given twice")).into());
            }
            match self.next()? {
                (Token::Mark(b','), _) => {}
                (Token::Mark(b'}'), _) => return Ok(attrs),
                (found, span) => return Err(expected("`,` or `}`", &found, span).into()),
            }
        }
    }
}

/// The message for a word that is no choice of an op.
fn unknown_choice(op: Op, word: &str) -> String {
    let (name, among) = op.def().choice.map_or(("choice", &Choice::ALL[..]), |of| (of.name, of.among));
    let all: Vec<String> = among.iter().map(|c| format!("`{c}`")).collect();
    format!("`{name}` is one of {}, not `{}`", all.join(", "), shown(word))
}
