//! Programs that are saved as text.
//!
//! Guarantees: a mistake in the text is shown under it, with its help in the words of the text form; a text that is
//! longer than the library reads is not read to its end. Does not: run programs.

use std::ffi::OsStr;
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

/// What the library says of an op that it does not know.
const CUSTOM: &str = "a custom op must be registered in the `Registry` that `Program::parse_with` is given";

/// The text of a program, and what its file is called.
pub(super) struct Source {
    pub(super) text: String,
    pub(super) path: String,
}

/// What an argument is that may be an expression or name a program.
pub(super) enum Asked<'a> {
    Expression(&'a str),
    Program(&'a Path),
}

/// Which of both it is: names of files need not be UTF-8, expressions are text.
pub(super) fn asked(argument: &OsStr) -> Result<Asked<'_>, Failure> {
    let bytes = argument.as_encoded_bytes();
    if bytes == b"-" || bytes.ends_with(b".cw") {
        return Ok(Asked::Program(Path::new(argument)));
    }
    let text = argument.to_str().map(Asked::Expression);
    text.ok_or_else(|| Failure::usage("the expression is not UTF-8, and not the name of a program, FILE.cw"))
}

impl Source {
    /// Reads a file, or stdin if it is `-`.
    pub(super) fn read(file: &Path) -> Result<Source, Failure> {
        if file != Path::new("-") {
            let text = read_text(file, MAX_PROGRAM_TEXT as u64)?;
            return Ok(Source { text, path: report::escaped(&file.display().to_string()) });
        }
        let path = "stdin".to_string();
        // A byte too many is enough to be refused.
        let most = MAX_PROGRAM_TEXT as u64 + 1;
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().take(most).read_to_end(&mut bytes);
        read.map_err(|source| Error::Io { path: path.clone(), source })?;
        if bytes.len() > MAX_PROGRAM_TEXT {
            let message = format!("more than {MAX_PROGRAM_TEXT} bytes, which is the longest program that is read");
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

    /// Reads a file in place of an expression, which then has no options of its own.
    pub(super) fn of(common: &Common, file: &Path) -> Result<Source, Failure> {
        if !common.is_empty() {
            let text = "a program as text says its inputs and settings itself: -i, -p, --select, --skip, --missing, --out-dtype, \
                        --rules, --default-dtype and --rounding are for expressions";
            return Err(Failure::usage(text));
        }
        Source::read(file)
    }

    /// The program.
    pub(super) fn program(&self) -> Result<Program, Failure> {
        Program::parse(&self.text).map_err(|e| self.failure(&e))
    }

    /// The program with dtypes and shapes.
    pub(super) fn typed(&self, program: &Program) -> Result<TypedProgram, Failure> {
        program.infer().map_err(|e| self.failure(&e))
    }

    /// Whether another rule set accepts the program.
    pub(super) fn other(&self, program: &Program) -> bool {
        program.settings().rules.others().any(|other| program.with_rules(other).infer().is_ok())
    }

    /// An error of the program.
    pub(super) fn failure(&self, e: &Error) -> Failure {
        let shown = if e.diagnostics().is_empty() {
            report::of_expression(&self.text, &self.path, e, &[])
        } else {
            let list = e.diagnostics().iter().map(|d| self.own_words(d)).collect();
            report::of_expression(&self.text, &self.path, &Error::Invalid(list), &[])
        };
        Failure { text: shown, code: 1 }
    }

    /// A mistake as a reader of the text says it; its line is seen from the place.
    pub(super) fn own_words(&self, d: &Diagnostic) -> Diagnostic {
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

/// The results of a program, each with the name it is written under.
pub(super) fn results(program: &Program) -> Vec<(String, Var)> {
    let all = program.fetches();
    let alone = all.len() == 1;
    let name = |i: usize| if alone { UNNAMED.to_string() } else { format!("{UNNAMED}{i}") };
    all.into_iter().enumerate().map(|(i, f)| (f.name.unwrap_or_else(|| name(i)), f.var)).collect()
}

/// A result as a line.
pub(super) fn line(typed: &TypedProgram, name: &str, v: &Var) -> String {
    let name = if name == UNNAMED { String::new() } else { format!(" `{}`", report::escaped(name)) };
    format!("result{name} {}\n", type_of(typed, v))
}

/// Dtype and shape of a value.
pub(super) fn type_of(typed: &TypedProgram, v: &Var) -> String {
    let dims: Vec<String> = typed.shape(v).unwrap_or_default().iter().map(SymDim::to_string).collect();
    typed.dtype(v).map_or(String::new(), |d| format!("{d}[{}]", dims.join(", ")))
}
