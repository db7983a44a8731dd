//! What becomes of tensors that some inputs have and others lack: `--missing`.
//!
//! Guarantees: unless it is asked for, no tensor is left out. Does not: look for tensors under other names.

use super::expression::Expression;
use super::failure::Failure;
use super::inputs::Input;
use super::report::{self, tensors};
use super::spec::Missing;

/// An input, by its position, and the tensor names that its expressions need and it lacks.
pub(super) struct Lack {
    input: usize,
    names: Vec<String>,
}

/// What each input lacks of the names that have an expression.
pub(super) fn lacks(inputs: &[Input], expressions: &[Expression], chosen: &[(String, usize)]) -> Vec<Lack> {
    let of = |i: usize| {
        let lacked = chosen.iter().filter(|(n, e)| expressions[*e].uses.contains(&i) && !inputs[i].has(n));
        Lack { input: i, names: lacked.map(|(n, _)| n.clone()).collect() }
    };
    (0..inputs.len()).map(of).filter(|l| !l.names.is_empty()).collect()
}

impl Lack {
    /// `` `b` (b.npz) lacks 2 tensors that others have``.
    fn told(&self, inputs: &[Input]) -> String {
        let (input, count) = (&inputs[self.input], tensors(self.names.len()));
        format!("`{}` ({}) lacks {count} that others have", report::escaped(&input.name), input.path.display())
    }

    fn listed(&self) -> String {
        report::names(self.names.iter().map(String::as_str))
    }

    /// The line for names that are left out.
    pub(super) fn skipped(&self, inputs: &[Input]) -> String {
        format!("warning: {}, left out: {}", self.told(inputs), self.listed())
    }

    /// The line for names that are copied.
    pub(super) fn copied(&self, inputs: &[Input]) -> String {
        format!("note: {}, copied: {}", self.told(inputs), self.listed())
    }
}

/// The refusal of names that are not in all inputs. `hints` are ways to write what may have been meant.
pub(super) fn refused(inputs: &[Input], lacks: &[Lack], hints: impl Iterator<Item = String>) -> Failure {
    let mut lines: Vec<String> =
        lacks.iter().map(|l| report::error(&format!("{}: {}", l.told(inputs), l.listed()))).collect();
    lines.extend(hints.map(|h| report::harmless(&h)));
    lines.push(
        "help: --missing skip leaves them out, --missing copy (or copy=INPUT) copies them; --select and --skip choose names"
            .to_string(),
    );
    Failure { text: lines.join("\n"), code: 1 }
}

/// The position of the input that a tensor is copied from.
pub(super) fn source(inputs: &[Input], from: Option<&str>, tensor: &str) -> Result<usize, Failure> {
    let named = |i: &&(usize, &Input)| i.1.names().is_some() && from.is_none_or(|f| f == i.1.name);
    let all: Vec<(usize, &Input)> = inputs.iter().enumerate().collect();
    match (all.iter().filter(named).find(|(_, i)| i.has(tensor)), from) {
        (Some((i, _)), _) => Ok(*i),
        (None, from) => {
            let (from, tensor) = (report::escaped(from.unwrap_or_default()), report::escaped(tensor));
            let text = format!("--missing copy={from}: `{from}` lacks the tensor `{tensor}` too");
            Err(Failure { text: report::error(&text), code: 1 })
        }
    }
}

/// Refuses an input to copy from that there is not, or that has no tensors with names.
pub(super) fn check(missing: Option<&Missing>, inputs: &[Input]) -> Result<(), Failure> {
    let Some(Missing::Copy(Some(from))) = missing else { return Ok(()) };
    let name = report::escaped(from);
    match inputs.iter().find(|i| i.name == *from) {
        None => Err(Failure::usage(format!("--missing copy={name}: there is no input `{name}`"))),
        Some(i) if i.names().is_none() => {
            Err(Failure::usage(format!("--missing copy={name}: `{name}` is no file of several tensors")))
        }
        Some(_) => Ok(()),
    }
}
