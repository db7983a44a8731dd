//! Why the command failed, and what it prints.
//!
//! Does not: word mistakes (`report`).

use std::io::Write;

/// Why the command failed: what stderr is told, and the exit code.
pub(super) struct Failure {
    pub(super) text: String,
    pub(super) code: u8,
}

impl Failure {
    /// A mistake in the arguments.
    pub(super) fn usage(text: impl Into<String>) -> Failure {
        Failure { text: super::report::error(&text.into()), code: 2 }
    }
}

impl From<castwise::Error> for Failure {
    fn from(e: castwise::Error) -> Failure {
        Failure { text: super::report::error(&e.to_string()), code: 1 }
    }
}

/// A line on stderr; a closed stderr is not a reason to fail.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", super::report::harmless(text));
}

/// Text on stdout; a reader that has gone is not a reason to fail.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(castwise::Error::Io { path: "stdout".into(), source: e }.into())
        }
        _ => Ok(()),
    }
}
