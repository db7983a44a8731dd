//! Programs as text.
//!
//! Guarantees: a mistake in the text is marked in it, and its help uses the syntax of the text form. Reading stops at
//! the maximum length of a program. Does not: run programs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use castwise::io::read_text;
use castwise::shape::SymDim;
use castwise::{Diagnostic, Error, MAX_PROGRAM_TEXT, Program, SourceLocation, TypedProgram, Var};

use super::args::Common;
use super::failure::Failure;
use super::lines::casts;
use super::report;
use super::spec::UNNAMED;

/// The library's help text for an unknown op.
const CUSTOM: &str = "a custom op must be registered in the `Registry` passed to `Program::parse_with`";

/// The text of a program, and the name of its file.
pub(super) struct Source {
    pub(super) text: String,
    pub(super) path: String,
}

/// An argument that is either an expression or the file of a program.
pub(super) enum Asked<'a> {
    Expression(&'a str),
    Program(&'a Path),
}

/// Classifies an argument. File names need not be UTF-8, but expressions must be. Errors: it is the file of a program by its contents, and
/// not by its name.
pub(super) fn asked(argument: &OsStr) -> Result<Asked<'_>, Failure> {
    let bytes = argument.as_encoded_bytes();
    if bytes == b"-" || bytes.ends_with(b".cw") {
        return Ok(Asked::Program(Path::new(argument)));
    }
    if begins_as_program(Path::new(argument)) {
        let name = report::escaped(&Path::new(argument).display().to_string());
        return Err(Failure::usage(format!(
            "{name} is a program as text: name it FILE.cw, or read it with `- < {name}`"
        )));
    }
    let text = argument.to_str().map(Asked::Expression);
    text.ok_or_else(|| Failure::usage("the expression is not UTF-8, and it is not a program file (FILE.cw)"))
}

/// Whether this is a file whose text begins as that of a program.
fn begins_as_program(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = file.is_file() && File::open(file).is_ok_and(|f| f.take(9).read_to_end(&mut start).is_ok());
    read && start == b"castwise "
}

impl Source {
    /// Reads a file, or standard input if it is `-`.
    pub(super) fn read(file: &Path) -> Result<Source, Failure> {
        if file != Path::new("-") {
            let text = read_text(file, MAX_PROGRAM_TEXT as u64)?;
            return Ok(Source { text, path: report::escaped(&file.display().to_string()) });
        }
        let path = "stdin".to_string();
        // One byte beyond the limit is enough to detect that the text is too long.
        let most = MAX_PROGRAM_TEXT as u64 + 1;
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().take(most).read_to_end(&mut bytes);
        read.map_err(|source| Error::Io { path: path.clone(), source })?;
        if bytes.len() > MAX_PROGRAM_TEXT {
            let message = format!("the program has more than {MAX_PROGRAM_TEXT} bytes, which is the limit");
            return Err(Error::Format { path, message }.into());
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Source { text, path }),
            Err(e) => {
                let message = format!("not text: byte {} is not UTF-8", e.utf8_error().valid_up_to());
                Err(Error::Format { path, message }.into())
            }
        }
    }

    /// Reads a program file that is given instead of an expression, and refuses options for expressions.
    pub(super) fn of(common: &Common, file: &Path) -> Result<Source, Failure> {
        if !common.is_empty() {
            let text = "a program as text has its own inputs and settings: -i, -p, --rename, --sibling, --select, --skip, --missing, --out-dtype, \
                        --rules, --default-dtype and --rounding are valid for expressions only";
            return Err(Failure::usage(text));
        }
        Source::read(file)
    }

    /// Parses the program.
    pub(super) fn program(&self) -> Result<Program, Failure> {
        Program::parse(&self.text).map_err(|e| self.failure(&e))
    }

    /// Infers dtypes and shapes.
    pub(super) fn typed(&self, program: &Program) -> Result<TypedProgram, Failure> {
        program.infer().map_err(|e| self.failure(&e))
    }

    /// Whether another rule set accepts the program.
    pub(super) fn other(&self, program: &Program) -> bool {
        program.settings().rules.others().any(|other| program.with_rules(other).infer().is_ok())
    }

    /// Formats an error of the program.
    pub(super) fn failure(&self, e: &Error) -> Failure {
        let shown = if e.diagnostics().is_empty() {
            report::of_expression(&self.text, &self.path, e, &[])
        } else {
            let list = e.diagnostics().iter().map(|d| self.in_text_form(d)).collect();
            report::of_expression(&self.text, &self.path, &Error::Invalid(list), &[])
        };
        Failure { text: shown, code: 1 }
    }

    /// A mistake worded for the text form. The prefix `line N:` is removed, because the marked text shows the line.
    pub(super) fn in_text_form(&self, d: &Diagnostic) -> Diagnostic {
        let mut d = d.worded(|setting, value| format!("`{setting} = {value}`"));
        let says = |s: &str| s.replace(CUSTOM, "the command has no custom ops");
        d.message = says(&d.message);
        if let (SourceLocation::Text(_), Some((line, rest))) = (&d.location, d.message.split_once(": "))
            && line.strip_prefix("line ").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        {
            d.message = rest.to_string();
        }
        let written = report::span(&self.text, &d.location).and_then(|s| self.text.get(s)).unwrap_or_default();
        d.help = d.help.as_deref().map(|h| casts(&says(h), written));
        d
    }
}

/// The results of a program, each with the name that it is written under.
pub(super) fn results(program: &Program) -> Vec<(String, Var)> {
    let all = program.fetches();
    let alone = all.len() == 1;
    let name = |i: usize| if alone { UNNAMED.to_string() } else { format!("{UNNAMED}{i}") };
    all.into_iter().enumerate().map(|(i, f)| (f.name.unwrap_or_else(|| name(i)), f.var)).collect()
}

/// The line about a result.
pub(super) fn line(typed: &TypedProgram, name: &str, v: &Var) -> String {
    let name = if name == UNNAMED { String::new() } else { format!(" `{}`", report::escaped(name)) };
    format!("result{name} {}\n", type_of(typed, v))
}

/// The dtype and shape of a value as text.
pub(super) fn type_of(typed: &TypedProgram, v: &Var) -> String {
    let dims: Vec<String> = typed.shape(v).unwrap_or_default().iter().map(SymDim::to_string).collect();
    typed.dtype(v).map_or(String::new(), |d| format!("{d}[{}]", dims.join(", ")))
}
