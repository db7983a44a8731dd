//! The errors of the tensors of a command, each shown once.
//!
//! Guarantees: errors that differ only in shapes are one, unless shapes are their reason. Does not: write them.

use castwise::{Diagnostic, DiagnosticKind, Error};

/// An error, its expression, the tensors that it occurs for, and the values of the first one's parameters.
pub(super) struct Refusal<'n> {
    pub(super) error: Error,
    pub(super) expression: Option<usize>,
    pub(super) names: Vec<&'n str>,
    pub(super) values: String,
}

/// The errors in the order of their first tensors.
#[derive(Default)]
pub(super) struct Refusals<'n> {
    pub(super) all: Vec<Refusal<'n>>,
    /// The errors that others can be grouped with. There are few, since they differ in their source ranges.
    common: Vec<usize>,
}

impl Refusals<'_> {
    /// Adds an error unless an equivalent one exists. Returns its position.
    pub(super) fn add(&mut self, error: Error, expression: Option<usize>, values: impl FnOnce() -> String) -> usize {
        let same = |r: &Refusal<'_>| r.expression == expression && alike(&r.error, &error);
        if let Some(i) = self.common.iter().copied().find(|i| self.all.get(*i).is_some_and(same)) {
            return i;
        }
        let at = self.all.len();
        if alike(&error, &error) {
            self.common.push(at);
        }
        self.all.push(Refusal { error, expression, names: Vec::new(), values: values() });
        at
    }
}

/// Whether two errors are equivalent. Shapes are ignored, unless they are the reason of the error.
fn alike(a: &Error, b: &Error) -> bool {
    let (a, b) = (a.diagnostics(), b.diagnostics());
    let same = |(x, y): (&Diagnostic, &Diagnostic)| {
        x.kind == y.kind && x.location == y.location && x.kind != DiagnosticKind::Broadcast
    };
    !a.is_empty() && a.len() == b.len() && a.iter().zip(b).all(same)
}
