//! Error messages for mistakes in expressions that do not depend on the parser's state.
//!
//! Guarantees: a suggested use of an op is a valid expression. Does not: know the parser, or find mistakes.

use super::callee::Callee;
use super::lex::Span;
use crate::base::composite::Composite;
use crate::base::error::Diagnostic;
use crate::ops::NumberAttribute;

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

pub(super) fn wrong_arity(callee: Callee, span: Span) -> Diagnostic {
    let op = match callee {
        Callee::Op(op) => op,
        Callee::Composite(kind) => {
            let composite = Composite::new(kind);
            let (names, required) = composite.operands();
            let takes =
                if required == names.len() { required.to_string() } else { format!("{required} to {}", names.len()) };
            let s = if names.len() == 1 { "" } else { "s" };
            return span.syntax(format!("`{callee}` takes {takes} operand{s}")).help(composite.usage());
        }
        Callee::Extreme { reduces, of_two, .. } => {
            let d = span.syntax(format!("`{callee}` takes one or two operands"));
            return d.help(format!("of one it is `{reduces}(x, dims=-1)`, of two `{of_two}(x, y)`"));
        }
    };
    if op.takes_dtype() {
        return span.syntax(format!("`{op}` takes a value and a dtype")).help(usage(callee));
    }
    let s = if op.arity() == 1 { "" } else { "s" };
    let d = span.syntax(format!("`{op}` takes {} operand{s}", op.arity())).help(usage(callee));
    let number = op.def().number.map(named).unwrap_or_default();
    let over = format!("over some dims: `{op}({}{number}, dims=-1, keepdim=true)`", op.def().operands.join(", "));
    if op.is_reduction() { d.also(over) } else { d }
}

/// A number with its name after the operands: `, p=2`. 1 is a value of each that must be given, a part or a count.
fn named(of: NumberAttribute) -> String {
    format!(", {}={}", of.name, of.default.unwrap_or(1.0))
}

/// An application in the syntax of expressions: `maximum(x, y)`, `cast(x, f32)`, `topk(x, k=1)`.
pub(super) fn usage(callee: Callee) -> String {
    let dtype = if callee.takes_dtype() { ", f32" } else { "" };
    let number = match callee {
        Callee::Op(op) => op.def().number.filter(|of| of.default.is_none()),
        _ => None,
    };
    let number = number.map(named).unwrap_or_default();
    format!("`{callee}({}{dtype}{number})`", callee.operands().join(", "))
}
