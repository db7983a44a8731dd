//! Errors as the terminal shows them.
//!
//! Guarantees: a mistake in the expression is shown under the text it is in, with its help; colours only on a
//! terminal, and not if `NO_COLOR` is set. Does not: print.

use std::io::IsTerminal;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use castwise::{Diagnostic, Error, Place};

/// How many mistakes of one expression are shown.
const SHOWN: usize = 10;

fn renderer() -> Renderer {
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colours { Renderer::styled() } else { Renderer::plain() }
}

/// `error: ...`
pub(super) fn error(message: &str) -> String {
    format!("error: {message}")
}

/// An error of the expression, with notes: with a caret where its place is known.
pub(super) fn of_expression(text: &str, e: &Error, notes: &[String]) -> String {
    let list = match e {
        Error::DivisionByZero { op, place } => {
            vec![(format!("integer division by zero in `{op}`"), None, place)]
        }
        e => e.diagnostics().iter().map(|d: &Diagnostic| (d.message.clone(), d.help.as_deref(), &d.place)).collect(),
    };
    if list.is_empty() {
        let notes: String = notes.iter().map(|n| format!("\n  note: {n}")).collect();
        return error(&e.to_string()) + &notes;
    }
    let mut groups = Vec::new();
    for (message, help, place) in list.iter().take(SHOWN) {
        let mut elements = Vec::new();
        if let Place::Text(range) = place {
            let (start, end) = (range.start as usize, range.end as usize);
            let span = if end <= text.len() && start <= end { start..end } else { 0..0 };
            let snippet = Snippet::source(text).path("EXPR").annotation(AnnotationKind::Primary.span(span));
            elements.push(snippet.into());
        }
        elements.extend(help.map(|h| annotate_snippets::Element::from(Level::HELP.message(h))));
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

/// Names for a message: the first of them, quoted and escaped.
pub(super) fn names<'n>(all: impl IntoIterator<Item = &'n str>) -> String {
    let all: Vec<&str> = all.into_iter().collect();
    let mut text: Vec<String> = all.iter().take(5).map(|n| format!("`{}`", escaped(n))).collect();
    if all.len() > 5 {
        text.push(format!("and {} more", all.len() - 5));
    }
    text.join(", ")
}

/// A name from a file, safe for a terminal.
pub(super) fn escaped(name: &str) -> String {
    let unsafe_mark =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut text = String::new();
    for c in name.chars().take(200) {
        if unsafe_mark(c) { text.extend(c.escape_unicode()) } else { text.extend(c.escape_debug()) }
    }
    text
}
