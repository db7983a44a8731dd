//! Mistakes as text: castwise's sentence, the expression with carets below the mistake, and what to write instead.
//!
//! Guarantees: a mistake in an expression is shown in the line that it is in. Does not: color.

use castwise::expr::marked;
use castwise::{Diagnostic, Error, SourceLocation};
use datafusion::common::DataFusionError;

/// The error of a plan: the query is refused before it runs.
pub(crate) fn plan_error(error: &Error, text: &str) -> DataFusionError {
    DataFusionError::Plan(shown(error, text))
}

/// The error of a run.
pub(crate) fn run_error(error: &Error, text: &str) -> DataFusionError {
    DataFusionError::Execution(shown(error, text))
}

/// An error, with its place in the text.
pub(crate) fn shown(error: &Error, text: &str) -> String {
    let found = match error {
        Error::Invalid(all) => all.iter().map(|d| diagnostic(d, text)).collect::<Vec<_>>().join("\n"),
        Error::DivisionByZero { op, location } => {
            format!("integer division by zero in `{op}`{}", marked_at(location, text))
        }
        Error::NegativeExponent { op, location } => {
            format!("negative exponent in `{op}` of integers{}", marked_at(location, text))
        }
        other => other.to_string(),
    };
    format!("castwise: {found}")
}

fn diagnostic(d: &Diagnostic, text: &str) -> String {
    let d = d.worded(|setting, value| format!("{setting} = {value}"));
    let help = d.help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default();
    d.message.clone() + &marked_at(&d.location, text) + &help
}

/// The line of a place in the text, with carets.
pub(crate) fn marked_at(location: &SourceLocation, text: &str) -> String {
    match location {
        SourceLocation::Text(range) => marked(text, range.start as usize..range.end as usize),
        _ => String::new(),
    }
}
