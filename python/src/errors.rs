//! castwise's errors as Python exceptions.
//!
//! Guarantees: every error has the class that `castwise/_errors.py` documents, and all mistakes of a program are in one
//! exception. Does not: define the classes, which have two bases each.

use castwise::{Diagnostic, Error, SourceLocation};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::cli::findings::{Finding, Kind};

/// An exception of one of the package's classes.
fn raise(py: Python<'_>, class: &str, arguments: impl FnOnce() -> PyResult<Vec<Py<PyAny>>>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("castwise._errors")?.getattr(class)?;
        let arguments = PyTuple::new(py, arguments()?)?;
        Ok(PyErr::from_value(class.call1(arguments)?))
    };
    made().unwrap_or_else(|e| e)
}

fn text(py: Python<'_>, s: &str) -> PyResult<Py<PyAny>> {
    Ok(s.into_pyobject(py)?.into_any().unbind())
}

/// An exception of a class, with a message.
pub fn named(py: Python<'_>, class: &str, message: &str) -> PyErr {
    raise(py, class, || Ok(vec![text(py, message)?]))
}

/// The error of a keyword that is not the name of an argument or a placeholder.
pub fn unknown_name(what: &str, name: &str, known: &[String]) -> PyErr {
    PyTypeError::new_err(format!("there is no {what} `{name}`; the names are {}", known.join(", ")))
}

/// The exception for an error. `source` is the expression or the text that byte ranges refer to.
pub fn exception(py: Python<'_>, e: &Error, source: Option<&str>) -> PyErr {
    match e {
        Error::Invalid(all) => invalid(py, e, all, source),
        Error::Earlier(e) => exception(py, e, source),
        Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        Error::UnknownDType(_) | Error::DType { .. } => named(py, "ProgramError", &e.to_string()),
        Error::Feed { .. } => named(py, "FeedError", &e.to_string()),
        Error::Shape(_) => named(py, "ShapeError", &e.to_string()),
        Error::DivisionByZero { .. } | Error::NegativeExponent { .. } => named(py, "DivisionByZero", &e.to_string()),
        Error::EmptyReduction { .. } => named(py, "EmptyReduction", &e.to_string()),
        Error::Limit { .. } | Error::TimeLimit { .. } => named(py, "LimitError", &e.to_string()),
        Error::OutOfMemory { .. } => named(py, "OutOfMemory", &e.to_string()),
        other => named(py, "InternalError", &other.to_string()),
    }
}

/// A mistake worded for Python: `rules="torch"` instead of `Rules::Torch`.
fn worded(d: &Diagnostic) -> Diagnostic {
    d.worded(|setting, value| format!("{setting}=\"{value}\""))
}

fn invalid(py: Python<'_>, e: &Error, all: &[Diagnostic], source: Option<&str>) -> PyErr {
    let all: Vec<Diagnostic> = all.iter().map(worded).collect();
    raise(py, "ProgramError", || {
        let class = py.import("castwise._errors")?.getattr("Diagnostic")?;
        let one = |d: &Diagnostic| -> PyResult<Py<PyAny>> {
            let (file, line, range) = place(&d.location);
            let range = range.map(|(start, end)| characters(source, start, end));
            Ok(class.call1((format!("{:?}", d.kind), &d.message, &d.help, file, line, range))?.unbind())
        };
        let diagnostics = all.iter().map(one).collect::<PyResult<Vec<_>>>()?;
        let message = match all.is_empty() {
            true => e.to_string(),
            false => all.iter().map(|d| shown(d, source)).collect::<Vec<_>>().join("\n"),
        };
        Ok(vec![text(py, &message)?, PyTuple::new(py, diagnostics)?.into_any().unbind()])
    })
}

/// The implicit losses that `deny` refuses, as one exception.
pub fn denied(py: Python<'_>, found: &[Finding], source: Option<&str>) -> PyErr {
    let place = if found.len() == 1 { "place" } else { "places" };
    let title = match found.iter().all(|f| f.kind == Kind::Wraps) {
        true => "integers may wrap",
        false => "precision may be lost",
    };
    let mut message = format!("{title} in {} {place} (refused by `deny`)", found.len());
    raise(py, "ProgramError", || {
        let class = py.import("castwise._errors")?.getattr("Diagnostic")?;
        let mut diagnostics = Vec::new();
        for f in found {
            let help = match source.and_then(|s| f.advice(s)) {
                Some(help) => help,
                None => f
                    .help
                    .clone()
                    .unwrap_or_else(|| "cast the operand first; casts that are written are accepted".into()),
            };
            let (file, line, range) = self::place(&f.location);
            let range = range.map(|(start, end)| characters(source, start, end));
            message += &format!("\n{}{}", f.label, marked_at(&f.location, source));
            diagnostics.push(class.call1((format!("{:?}", f.kind), &f.label, help, file, line, range))?.unbind());
        }
        message += "\n  help: cast the operands first; casts that are written are accepted";
        Ok(vec![text(py, &message)?, PyTuple::new(py, diagnostics)?.into_any().unbind()])
    })
}

type Place = (Option<String>, Option<u32>, Option<(usize, usize)>);

fn place(location: &SourceLocation) -> Place {
    match location {
        SourceLocation::Line(l) => (Some(l.file.to_string()), Some(l.line), None),
        SourceLocation::Text(r) => (None, None, Some((r.start as usize, r.end as usize))),
        _ => (None, None, None),
    }
}

/// Byte offsets as offsets of characters, which are what Python counts.
fn characters(source: Option<&str>, start: usize, end: usize) -> (usize, usize) {
    let at = |n: usize| source.and_then(|s| s.get(..n)).map_or(n, |s| s.chars().count());
    (at(start), at(end))
}

/// A mistake with its place, marked by a caret if it is in an expression, and its help.
fn shown(d: &Diagnostic, source: Option<&str>) -> String {
    let mut out = d.message.clone() + &marked_at(&d.location, source);
    if let Some(help) = &d.help {
        out += &format!("\n  help: {help}");
    }
    out
}

/// A place in an expression with carets, or a line of Python.
fn marked_at(location: &SourceLocation, source: Option<&str>) -> String {
    match (location, source) {
        (SourceLocation::Text(r), Some(source)) => castwise::expr::marked(source, r.start as usize..r.end as usize),
        (SourceLocation::Line(l), _) => format!("\n  at {l}"),
        _ => String::new(),
    }
}
