//! Formats errors for the terminal.
//!
//! Guarantees: a mistake in an expression is marked in its text and has its help. Colours are used only if standard
//! error is a terminal and `NO_COLOR` is not set. Does not: print.

use std::io::IsTerminal;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use castwise::expr::application;
use castwise::{Diagnostic, Error, SourceLocation};

/// The maximum number of mistakes of one expression that are shown.
const SHOWN: usize = 10;

fn renderer() -> Renderer {
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colours { Renderer::styled() } else { Renderer::plain() }
}

/// Formats `error: ...`.
pub(super) fn error(message: &str) -> String {
    format!("error: {}", escape_controls(message))
}

/// Escapes the control characters of a message other than line ends, since file names in it could contain terminal
/// escape sequences.
pub(super) fn escape_controls(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for c in message.chars() {
        let obeyed = c.is_control() && c != '\n' || is_direction_mark(c);
        if obeyed { text.extend(c.escape_unicode()) } else { text.push(c) }
    }
    text
}

fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The byte range of a location in a text.
pub(super) fn span(text: &str, location: &SourceLocation) -> Option<Range<usize>> {
    let SourceLocation::Text(range) = location else { return None };
    let (start, end) = (range.start as usize, range.end as usize);
    Some(if end <= text.len() && start <= end { start..end } else { 0..0 })
}

/// A message with a level, and labels under ranges of the text.
pub(super) fn marked(
    level: Level<'_>,
    title: &str,
    text: &str,
    path: &str,
    marks: &[(Range<usize>, String)],
) -> String {
    advised(level, title, text, path, marks, &[])
}

/// Like [`marked`], with help texts.
pub(super) fn advised(
    level: Level<'_>,
    title: &str,
    text: &str,
    path: &str,
    marks: &[(Range<usize>, String)],
    helps: &[String],
) -> String {
    let mark = |(i, (span, label)): (usize, &(Range<usize>, String))| {
        let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        kind.span(span.clone()).label(label.clone())
    };
    let snippet = Snippet::source(text).path(path).annotations(marks.iter().enumerate().map(mark));
    let helps = helps.iter().map(|h| Level::HELP.message(h.as_str()));
    renderer().render(&[level.primary_title(title).element(snippet).elements(helps)])
}

/// A diagnostic whose settings are worded as options of the command.
pub(super) fn of_command(d: &Diagnostic) -> Diagnostic {
    d.worded(|setting, value| format!("`--{setting} {value}`"))
}

/// The help text of a mistake, in which the operands' names are replaced by the operands that the user wrote.
pub(super) fn with_operands(help: &str, text: &str, location: &SourceLocation) -> String {
    let mut help = help.to_string();
    let written = span(text, location).and_then(|s| text.get(s)).and_then(|t| Some((t, application(t)?)));
    let Some((written, (op, operands))) = written else { return help };
    for (name, range) in op.def().operands.iter().zip(operands) {
        let operand = written.get(range).unwrap_or(name).trim();
        if let Some(at) = help.find(&format!("`cast({name}, ")).filter(|_| operand.len() <= 60) {
            help.replace_range(at + 6..at + 6 + name.len(), operand);
            break;
        }
    }
    help
}

/// Formats an error of an expression with notes. The source range is marked if it is known.
pub(super) fn of_expression(text: &str, path: &str, e: &Error, notes: &[String]) -> String {
    let list = match e {
        Error::DivisionByZero { op, location } => {
            vec![(format!("integer division by zero in `{op}`"), None, location)]
        }
        Error::NegativeExponent { op, location } => {
            vec![(format!("negative exponent in `{op}` of integers"), None, location)]
        }
        Error::EmptyReduction { op, location } => vec![(format!("`{op}` over dims without elements"), None, location)],
        e => {
            let worded = |d: &Diagnostic| {
                let Diagnostic { message, help, .. } = of_command(d);
                (message, help.map(|h| with_operands(&h, text, &d.location)))
            };
            let all = e.diagnostics().iter();
            all.map(|d| (worded(d), &d.location)).map(|((message, help), location)| (message, help, location)).collect()
        }
    };
    if list.is_empty() {
        let notes: String = notes.iter().map(|n| format!("\n  note: {n}")).collect();
        return error(&e.to_string()) + &notes;
    }
    let mut groups = Vec::new();
    for (message, help, location) in list.iter().take(SHOWN) {
        let mut elements = Vec::new();
        if let Some(span) = span(text, location) {
            let snippet = Snippet::source(text).path(path).annotation(AnnotationKind::Primary.span(span));
            elements.push(snippet.into());
        }
        elements.extend(help.as_deref().map(|h| annotate_snippets::Element::from(Level::HELP.message(h))));
        elements.extend(notes.iter().map(|n| annotate_snippets::Element::from(Level::NOTE.message(n.as_str()))));
        groups.push(Level::ERROR.primary_title(message.as_str()).elements(elements));
    }
    let renderer = renderer();
    let mut shown: Vec<String> = groups.iter().map(|g| renderer.render(std::slice::from_ref(g)).to_string()).collect();
    if list.len() > SHOWN {
        shown.push(error(&format!("(and {} more)", list.len() - SHOWN)));
    }
    shown.join("\n")
}

/// The first few names for a message, quoted and escaped.
pub(super) fn names<'n>(all: impl IntoIterator<Item = &'n str>) -> String {
    let all: Vec<&str> = all.into_iter().collect();
    let mut text: Vec<String> = all.iter().take(5).map(|n| format!("`{}`", escaped(n))).collect();
    if all.len() > 5 {
        text.push(format!("and {} more", all.len() - 5));
    }
    text.join(", ")
}

/// Truncates a text that may be long.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() { text.to_string() } else { text.chars().take(most).chain(['…']).collect() }
}

/// Escapes and truncates a name from a file for the terminal.
pub(super) fn escaped(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars().take(200) {
        if is_direction_mark(c) { text.extend(c.escape_unicode()) } else { text.extend(c.escape_debug()) }
    }
    text
}

/// Formats `a tensor` or `3 tensors`.
pub(super) fn tensors(count: usize) -> String {
    if count == 1 { "a tensor".to_string() } else { format!("{count} tensors") }
}

/// Formats `in the tensor x` or `in 3 tensors: ...`.
pub(super) fn in_tensors(all: &[&str]) -> String {
    let note = if all.len() == 1 { "in the tensor".to_string() } else { format!("in {} tensors:", all.len()) };
    format!("{note} {}", names(all.iter().copied()))
}

/// Joins strings: `a`, `a and b`, `a, b and c`.
pub(super) fn listed(all: &[String], last: &str) -> String {
    match all {
        [first @ .., z] if !first.is_empty() => format!("{} {last} {z}", first.join(", ")),
        all => all.concat(),
    }
}
