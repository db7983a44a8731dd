//! `castwise fmt`: prints or writes the canonical text of a program.
//!
//! Guarantees: the canonical text describes the same program. A file is replaced atomically and keeps its permissions,
//! and comments are dropped with `--force` only. Does not: infer dtypes. Every text that can be read has a canonical
//! form.

use std::path::Path;

use castwise::Error;
use castwise::io::{Existing, write_text};

use super::args::Fmt;
use super::failure::{Failure, print};
use super::report;
use super::source::Source;

pub(super) fn run(arguments: &Fmt) -> Result<(), Failure> {
    let stdin = arguments.file == Path::new("-");
    if arguments.write && stdin {
        return Err(Failure::usage("--write needs a file: standard input can't be replaced"));
    }
    let source = Source::read(&arguments.file)?;
    let text = source.program()?.to_string();
    if arguments.check {
        return check(&source, &text, stdin);
    }
    if !arguments.write {
        return print(&text);
    }
    if text == source.text {
        return Ok(());
    }
    let comments = comments(&source.text);
    if comments > 0 && !arguments.force {
        let lines = if comments == 1 { "a line".to_string() } else { format!("{comments} lines") };
        let text = format!("{}: comments in {lines} would be lost; use --force to drop them", source.path);
        return Err(Failure { text: report::error(&text), code: 1 });
    }
    // A symbolic link is followed, so that it stays a link.
    let failed = |e| Error::Io { path: source.path.clone(), source: e };
    let path = std::fs::canonicalize(&arguments.file).map_err(failed)?;
    let permissions = std::fs::metadata(&path).map_err(failed)?.permissions();
    write_text(&path, &text, Existing::Replace)?;
    std::fs::set_permissions(&path, permissions).map_err(failed)?;
    Ok(())
}

fn check(source: &Source, text: &str, stdin: bool) -> Result<(), Failure> {
    if source.text == text {
        return Ok(());
    }
    let same = source.text.split('\n').zip(text.split('\n')).take_while(|(a, b)| a == b).count();
    let help = if stdin { "" } else { "; --write replaces it" };
    let message = format!("{}: the text is not canonical from line {} on{help}", source.path, same + 1);
    Err(Failure { text: report::error(&message), code: 1 })
}

/// The number of lines with a comment, which is a `;` outside quotes.
fn comments(text: &str) -> usize {
    let has = |line: &&str| {
        let (mut quoted, mut escaped) = (false, false);
        line.bytes().any(|b| {
            match b {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b';' => return !quoted,
                _ => {}
            }
            false
        })
    };
    text.lines().filter(has).count()
}
