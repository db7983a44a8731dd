//! Tensors that some inputs lack: `--missing`.
//!
//! Guarantees: no tensor is left out unless the option says so. Does not: search for tensors under other names.

use super::expression::Expression;
use super::failure::Failure;
use super::inputs::Input;
use super::report::{self, tensors};
use super::spec::Missing;

/// The position of an input, and the tensor names that expressions need from it and that it lacks.
pub(super) struct Lack {
    pub(super) input: usize,
    pub(super) names: Vec<String>,
}

/// The names that each input lacks, of those that have an expression.
pub(super) fn lacks(inputs: &[Input], expressions: &[Expression], chosen: &[(String, usize)]) -> Vec<Lack> {
    let of = |i: usize| {
        let lacked = chosen.iter().filter(|(n, e)| expressions[*e].uses.contains(&i) && !inputs[i].has(n));
        Lack { input: i, names: lacked.map(|(n, _)| n.clone()).collect() }
    };
    (0..inputs.len()).map(of).filter(|l| !l.names.is_empty()).collect()
}

impl Lack {
    /// Formats `` `b` (b.npz) lacks 2 tensors that others have``.
    fn described(&self, inputs: &[Input]) -> String {
        let (input, count) = (&inputs[self.input], tensors(self.names.len()));
        format!("`{}` ({}) lacks {count} that others have", report::escaped(&input.name), input.path.display())
    }

    fn listed(&self) -> String {
        report::names(self.names.iter().map(String::as_str))
    }

    /// The warning about names that are left out.
    pub(super) fn skipped(&self, inputs: &[Input]) -> String {
        format!("warning: {}, left out: {}", self.described(inputs), self.listed())
    }

    /// The note about names that are copied.
    pub(super) fn copied(&self, inputs: &[Input]) -> String {
        format!("note: {}, copied: {}", self.described(inputs), self.listed())
    }
}

/// The error for names that some inputs lack. `hints` are lines with likely corrections.
pub(super) fn refused(inputs: &[Input], lacks: &[Lack], hints: impl Iterator<Item = String>) -> Failure {
    let mut lines: Vec<String> =
        lacks.iter().map(|l| report::error(&format!("{}: {}", l.described(inputs), l.listed()))).collect();
    lines.extend(hints.map(|h| report::escape_controls(&h)));
    lines.push(
        "help: --missing skip leaves them out; --missing copy (or copy=INPUT) copies them; --select and --skip select names"
            .to_string(),
    );
    Failure { text: lines.join("\n"), code: 1 }
}

/// The position of the input that a tensor is copied from: the one that is named, or the first of those that its expression uses.
/// Inputs of one model, such as its mask, have tensors of the same name that are no weights.
pub(super) fn source(
    inputs: &[Input],
    uses: &[usize],
    of_model: impl Fn(&str) -> bool,
    from: Option<&str>,
    tensor: &str,
) -> Result<usize, Failure> {
    let has = |i: &usize| inputs[*i].is_named() && !inputs[*i].is_sibling() && inputs[*i].has(tensor);
    let found = match from {
        Some(from) => inputs.iter().position(|i| i.name == from).filter(has),
        None => uses.iter().copied().filter(|i| !of_model(&inputs[*i].name)).find(has),
    };
    if let Some(found) = found {
        scaled(inputs, uses, found, tensor)?;
        return Ok(found);
    }
    let tensor = report::escaped(tensor);
    let text = match from.map(report::escaped) {
        Some(from) => format!("--missing copy={from}: `{from}` lacks the tensor `{tensor}` too"),
        None => format!(
            "--missing copy: no input of its expression has the tensor `{tensor}`: --skip leaves it out, --map copies it from another"
        ),
    };
    Err(Failure { text: report::error(&text), code: 1 })
}

/// Refuses to copy 8-bit floats that lack the sibling that the expression uses, since these are usually their scales.
fn scaled(inputs: &[Input], uses: &[usize], source: usize, tensor: &str) -> Result<(), Failure> {
    let lacks = uses.iter().map(|i| &inputs[*i]).find(|i| i.is_sibling() && !i.has(tensor));
    let (Some(lacks), Ok((dtype, _))) = (lacks, inputs[source].info(tensor)) else { return Ok(()) };
    if !dtype.is_byte_float() {
        return Ok(());
    }
    let (tensor, sibling) = (report::escaped(tensor), report::escaped(&lacks.name));
    let text = format!("`{tensor}` is {dtype} and has no sibling `{sibling}`: it is not copied without its scale");
    Err(Failure { text: report::error(&text), code: 1 })
}

/// Refuses `--missing copy=INPUT` if there is no such input, or if its tensors have no names.
pub(super) fn check(missing: Option<&Missing>, inputs: &[Input]) -> Result<(), Failure> {
    let Some(Missing::Copy(Some(from))) = missing else { return Ok(()) };
    let name = report::escaped(from);
    match inputs.iter().find(|i| i.name == *from) {
        None => Err(Failure::usage(format!("--missing copy={name}: there is no input `{name}`"))),
        Some(i) if i.names().is_none() => {
            Err(Failure::usage(format!("--missing copy={name}: `{name}` is not a file of several tensors")))
        }
        Some(_) => Ok(()),
    }
}
