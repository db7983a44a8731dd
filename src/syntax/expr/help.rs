//! Error messages for mistakes in expressions, with a correction or the likely name in the help text, and what else callers ask of a text.
//!
//! Guarantees: names are escaped and truncated, and a suggested name exists. Does not: find mistakes.

use std::collections::HashSet;
use std::ops::Range;

use super::callee::{Callee, EXTREMES};
use super::lex::{Lexer, Span, Token};
use super::mistakes::{assigns, usage, wrong_arity};
use super::{Applied, Frame, Known, Parser, Step, Term, Value, parse_expression};
use crate::base::blocks::BlockSize;
use crate::base::composite::Composite;
use crate::base::dtype::DType;
use crate::base::error::{Diagnostic, DiagnosticKind, Result, nearest, shown};
use crate::base::generator::Generator;
use crate::base::limits::{Limit, Limits, MAX_EXPRESSION};
use crate::graph::program::Program;
use crate::graph::var::{Graph, Mode, Operand};
use crate::ops::{Op, Registry};
use crate::promotion::Rules;

/// Functions of PyTorch, Paddle and NumPy that castwise has no op for, each with an equivalent expression of x (and y).
/// Those that combine elements do so over all elements.
pub(super) const WRITTEN_OUT: &[(&str, &str)] = &[
    ("celu", "where(x > 0, x, expm1(x))"),
    ("elu", "where(x > 0, x, expm1(x))"),
    ("expit", "sigmoid(x)"),
    ("hardsigmoid", "clamp(x/6 + 0.5, 0, 1)"),
    ("hardswish", "x * clamp(x/6 + 0.5, 0, 1)"),
    ("hardtanh", "clamp(x, -1, 1)"),
    ("l1_loss", "mean(abs(x - y))"),
    ("leaky_relu", "where(x > 0, x, 0.01*x)"),
    ("logit", "log(x / (1 - x))"),
    ("logsigmoid", "-softplus(-x)"),
    ("mish", "x * tanh(softplus(x))"),
    ("mse_loss", "mean(square(x - y))"),
    ("power", "x ** y"),
    ("prelu", "where(x > 0, x, y*x)"),
    ("relu6", "clamp(x, 0, 6)"),
    ("rsub", "y - x"),
    ("selu", "1.0507009873554805 * where(x > 0, x, 1.6732632423543772*expm1(x))"),
    ("softsign", "x / (1 + abs(x))"),
];

impl<M: Mode> Parser<'_, '_, M> {
    /// The error for a closing parenthesis where an operand is missing.
    pub(super) fn empty(&self, span: Span) -> Diagnostic {
        match self.frames.last() {
            Some(Frame::Call(op, name, base)) if self.values.len() == *base as usize => wrong_arity(*op, name.to(span)),
            Some(Frame::Open(open)) => open.to(span).syntax("these parentheses are empty"),
            _ => span.syntax("an operand is missing before this parenthesis"),
        }
    }

    /// The error for a token after an operand that is not an operator.
    pub(super) fn stray(&self, token: &Token<'_>, span: Span) -> Diagnostic {
        let missing = span.syntax("an operator is missing before this");
        match token {
            Token::Assign => assigns(span),
            Token::Name("and") => {
                span.syntax("`and` is not an operator here").help("write `x & y`, or `logical_and(x, y)`")
            }
            Token::Name("or") => {
                span.syntax("`or` is not an operator here").help("write `x | y`, or `logical_or(x, y)`")
            }
            Token::Name("if" | "else") => missing.help("write `where(condition, x, y)`"),
            Token::Open => match self.values.last() {
                Some((Value::Term(Term::Handle(_)), _)) => missing.help("a name is not an op: write `*` to multiply"),
                _ => missing,
            },
            _ => missing,
        }
    }

    pub(super) fn unknown_op(&self, word: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::new(DiagnosticKind::Name, format!("there is no op `{}`", shown(word))).at(&span.location());
        if let Some((_, written)) = WRITTEN_OUT.iter().find(|(name, _)| *name == word) {
            let reduces = ["sum(", "mean(", "amax("].iter().any(|r| written.contains(r));
            let over = if reduces { ", over all elements (over a dim: `sum(x, dims=-1, keepdim=true)`)" } else { "" };
            return d.help(format!("write it out: `{written}`{over}"));
        }
        let ops = Op::ALL.iter().copied().chain(self.known.ops.ops());
        let names = ops.flat_map(|op| std::iter::once(op.name()).chain(op.def().aliases.iter().copied()));
        let more = Generator::NAMES.into_iter().chain([BlockSize::NAME]).chain(Composite::names()).chain(EXTREMES);
        match nearest(word, names.chain(more)) {
            Some(name) => d.help(format!("did you mean `{name}`?")),
            None if (self.known.names)().iter().any(|n| n == word) => d.help("it is an input: write `*` to multiply"),
            None => d,
        }
    }

    pub(super) fn unknown_name(&self, word: &str, span: Span) -> Diagnostic {
        let d =
            Diagnostic::new(DiagnosticKind::Name, format!("there is no input `{}`", shown(word))).at(&span.location());
        let known = (self.known.names)();
        if let Some(callee) = Callee::named(word, self.known.ops) {
            return d.help(format!("it is an op: write {}", usage(callee)));
        }
        match nearest(word, known.iter().map(String::as_str)) {
            Some(name) => d.help(format!("did you mean `{}`?", shown(name))),
            None if known.is_empty() => d,
            None => {
                let all: Vec<String> = known.iter().take(20).map(|n| format!("`{}`", shown(n))).collect();
                let dots = if known.len() > 20 { ", …" } else { "" };
                d.help(format!("the inputs are {}{dots}", all.join(", ")))
            }
        }
    }
}

/// The last op that an expression applies, and the byte ranges of its operands in the text; `None` if the text applies
/// no op or is not valid. Error messages use it, since the source range of a node is itself an expression.
///
/// ```
/// use castwise::{Op, expr::application};
/// assert_eq!(application("steps * (loss + 1)"), Some((Op::Mul, vec![0..5, 8..18])));
/// assert_eq!(application("steps"), None);
/// ```
pub fn application(text: &str) -> Option<(Op, Vec<Range<usize>>)> {
    last_step(text, |step| match step.what {
        Applied::Op(op, _) => Some((op, spans(step))),
        _ => None,
    })
}

/// The byte ranges of the operands of what an expression applies last: an op, a composite or a block scale. `None` as for
/// [`application`].
///
/// ```
/// use castwise::expr::operand_ranges;
/// assert_eq!(operand_ranges("softmax(a * 2, dims=-1)"), Some(vec![8..13]));
/// assert_eq!(operand_ranges("steps"), None);
/// ```
pub fn operand_ranges(text: &str) -> Option<Vec<Range<usize>>> {
    last_step(text, |step| Some(spans(step)))
}

fn spans(step: &Step) -> Vec<Range<usize>> {
    step.spans.iter().flatten().map(|s| s.start as usize..s.end as usize).collect()
}

fn last_step<T>(text: &str, read: impl Fn(&Step) -> Option<T>) -> Option<T> {
    if text.len() > MAX_EXPRESSION {
        return None;
    }
    let program = Program::new(Rules::default());
    let mut names =
        |name: &str| Some(Operand::Var(program.feed(name).unwrap_or_else(|| program.data(name, DType::F32, ()))));
    let ops = Registry::new();
    let known = Known { ops: &ops, names: &Vec::new, limits: Limits::new(), place: None };
    let mut parser: Parser<'_, '_, Graph> = Parser::new(text, &known, &mut names);
    parser.read().ok()?;
    parser.closed().ok()?;
    let Some((Value::Term(Term::Step(root)), _)) = parser.values.last() else { return None };
    read(parser.steps.get(*root as usize)?)
}

/// The byte ranges of the values of an expression's statements: what is between semicolons, without the names that values
/// are assigned to. `None` if the text can't be split into words, or a statement is empty.
///
/// ```
/// use castwise::expr::statements;
/// assert_eq!(statements("t = a - b; y = 2 * t"), Some(vec![4..9, 15..20]));
/// assert_eq!(statements("sum(a, dims=0)"), Some(vec![0..14]));
/// assert_eq!(statements("a;"), None);
/// ```
pub fn statements(text: &str) -> Option<Vec<Range<usize>>> {
    let mut lexer = Lexer::new(text);
    let (mut depth, mut all) = (0usize, Vec::new());
    let mut value: Option<Range<usize>> = None;
    loop {
        let (token, span) = lexer.next().ok()?;
        match token {
            Token::End | Token::Semicolon if depth == 0 || matches!(token, Token::End) => {
                all.push(value.take()?);
                if matches!(token, Token::End) {
                    return Some(all);
                }
                continue;
            }
            Token::Assign if depth == 0 => {
                value = None;
                continue;
            }
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        value.get_or_insert(span.start as usize..0).end = span.end as usize;
    }
}

/// The names of an expression's inputs, in the order in which they first occur; names that the expression assigns are not among them.
/// `pi` and `e` are, since inputs may have these names. Errors: those of [`parse_expression`].
///
/// ```
/// use castwise::expr::input_names;
/// assert_eq!(input_names("t = a - b; scale * t * t")?, ["a", "b", "scale"]);
/// assert!(input_names("t = a").is_err());
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn input_names(text: &str) -> Result<Vec<String>> {
    Limits::new().allow(Limit::Expression, text.len())?;
    let (assigned, mut names) = (assigned(text), Vec::new());
    // Every other name is taken for a placeholder of a program that is thrown away.
    let program = Program::new(Rules::default());
    let read = parse_expression::<Graph>(text, |name| {
        (!assigned.contains(name)).then(|| {
            names.push(name.to_string());
            program.data(name, DType::F32, ())
        })
    });
    read.map(|_| names)
}

/// The names that an expression gives to its parts, up to its first mistake.
fn assigned(text: &str) -> HashSet<String> {
    let (mut lexer, mut depth) = (Lexer::new(text), 0usize);
    let (mut all, mut last) = (HashSet::new(), None);
    while let Ok((token, _)) = lexer.next() {
        match &token {
            Token::End => break,
            Token::Assign if depth == 0 => all.extend(last.take()),
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = match token {
            Token::Name(name) => Some(name.to_string()),
            Token::Quoted(name) => Some(name.into_owned()),
            _ => None,
        };
    }
    all
}

/// The first line of a byte range of a text, and carets below the part of the range that is in it, each after a line break and four
/// spaces; empty if the range begins outside of the text.
///
/// ```
/// use castwise::expr::marked;
/// assert_eq!(marked("a + sqr(b)", 4..7), "\n    a + sqr(b)\n        ^^^");
/// assert_eq!(marked("a\nbc", 3..9), "\n    bc\n     ^");
/// assert_eq!(marked("a", 5..6), "");
/// ```
pub fn marked(text: &str, range: Range<usize>) -> String {
    let Some(before) = text.get(..range.start) else { return String::new() };
    let first = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[first..].lines().next().unwrap_or_default();
    let indent = before[first..].chars().count();
    let width = text.get(range.start..range.end.min(first + line.len())).map_or(1, |s| s.chars().count()).max(1);
    format!("\n    {line}\n    {}{}", " ".repeat(indent), "^".repeat(width))
}
