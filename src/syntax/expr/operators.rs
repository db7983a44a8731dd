//! The operators of expressions: their precedence and their ops.

use super::lex::Symbol;
use crate::ops::Op;

/// The precedence of a binary operator.
pub(super) fn precedence(symbol: Symbol) -> u8 {
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
pub(super) const UNARY: u8 = 7;
/// The precedence of comparisons.
pub(super) const COMPARISON: u8 = 1;

/// The op of a binary operator.
pub(super) fn binary_op(symbol: Symbol) -> Op {
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
