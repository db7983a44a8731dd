//! The operators of expressions: their precedence and their ops, and how they are read.
//!
//! Guarantees: operators are applied in the order of Python's precedence, without recursion. Does not: compute, but constants.

use super::lex::{Span, Symbol};
use super::{Frame, Parsed, Parser, Value, fold};
use crate::graph::var::Mode;
use crate::ops::{Attrs, Op};

/// The precedence of a binary operator.
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

/// The precedence of unary operators.
const UNARY: u8 = 7;
/// The precedence of comparisons.
const COMPARISON: u8 = 1;

/// The op of a binary operator.
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
    /// Reads a binary operator. Operators on its left with a higher precedence are applied first.
    pub(super) fn binary(&mut self, symbol: Symbol, span: Span) -> Parsed<()> {
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

    /// Applies the innermost operator.
    pub(super) fn reduce(&mut self) -> Parsed<()> {
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
                    _ => self.step(binary_op(symbol), &[(a, left), (b, right)], Attrs::default(), span)?,
                };
                self.push(value, span)
            }
            Some(Frame::Unary(symbol, at)) => {
                let Some((value, inner)) = self.values.pop() else { return Err(at.syntax("an operand is missing")) };
                let span = at.to(inner);
                let value = match (symbol, value) {
                    (Symbol::Sub, Value::Constant(a)) => Value::Constant(fold::negate(a).map_err(|m| span.syntax(m))?),
                    (Symbol::Sub, x) => self.step(Op::Neg, &[(x, inner)], Attrs::default(), span)?,
                    (Symbol::Not, x) => self.step(Op::BitwiseNot, &[(x, inner)], Attrs::default(), span)?,
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

    /// Applies all operators inside the innermost parenthesis or call.
    pub(super) fn reduce_all(&mut self) -> Parsed<()> {
        while let Some(Frame::Binary(_) | Frame::Unary(..)) = self.frames.last() {
            self.reduce()?;
        }
        Ok(())
    }
}
