//! The error of a command, and printing.
//!
//! Does not: format mistakes (`report` does).

use std::io::Write;

/// The error of a command: the text for standard error, and the exit status.
pub(super) struct Failure {
    pub(super) text: String,
    pub(super) code: u8,
}

impl Failure {
    /// A usage error.
    pub(super) fn usage(text: impl Into<String>) -> Failure {
        Failure { text: super::report::error(&text.into()), code: 2 }
    }
}

impl From<castwise::Error> for Failure {
    fn from(e: castwise::Error) -> Failure {
        Failure { text: super::report::error(&e.to_string()), code: 1 }
    }
}

/// Prints a line to standard error. If that is closed, the command does not fail.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", super::report::escape_controls(text));
}

/// Prints notes and warnings to standard error; only warnings if `quiet`.
pub(super) fn tell(notes: &[String], quiet: bool) {
    notes.iter().filter(|n| !quiet || n.starts_with("warning")).for_each(|n| say(n));
}

/// Prints text to standard output. If its reader has closed it, the command does not fail.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(castwise::Error::Io { path: "stdout".into(), source: e }.into())
        }
        _ => Ok(()),
    }
}
