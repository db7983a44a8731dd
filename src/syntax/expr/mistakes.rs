//! Error messages for mistakes in expressions that do not depend on the parser's state.
//!
//! Guarantees: a suggested use of an op is a valid expression. Does not: know the parser, or find mistakes.

use super::lex::Span;
use crate::base::error::Diagnostic;
use crate::ops::Op;

/// The error for a part without a name that is not the last one.
pub(super) fn nameless(span: Option<Span>) -> Diagnostic {
    let d = span.unwrap_or(Span { start: 0, end: 0 });
    d.syntax("only the last part of an expression may have no name").help("write `name = ` before it")
}

/// The error for an `=` that is not part of an assignment.
pub(super) fn assigns(span: Span) -> Diagnostic {
    span.syntax("`=` is not an operator here")
        .help("`==` compares; `name = value;` before an expression names a part of it")
}

pub(super) fn wrong_arity(op: Op, span: Span) -> Diagnostic {
    if op.takes_dtype() {
        return span.syntax(format!("`{op}` takes a value and a dtype")).help(usage(op));
    }
    let s = if op.arity() == 1 { "" } else { "s" };
    let d = span.syntax(format!("`{op}` takes {} operand{s}", op.arity())).help(usage(op));
    let over = format!("over some dims: `{op}({}, dims=-1, keepdim=true)`", op.def().operands.join(", "));
    if op.is_reduction() { d.also(over) } else { d }
}

/// An application of the op in the syntax of expressions: `maximum(x, y)`, `cast(x, f32)`.
pub(super) fn usage(op: Op) -> String {
    let dtype = if op.takes_dtype() { ", f32" } else { "" };
    format!("`{op}({}{dtype})`", op.def().operands.join(", "))
}
