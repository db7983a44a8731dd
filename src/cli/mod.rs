//! The command line: `castwise eval EXPR -i name=FILE ... -o FILE`, the same for a program as text (`run`), and what else
//! there is to ask about an expression or a program.
//!
//! Guarantees: exit code 0 when what was asked is done and an output is whole, 1 if the expression, a program, a file or
//! the data is wrong (then there is no output and no change to an old one), 2 on wrong usage, 3 if `--deny` or `--check` found
//! something (then there is no output either); a signal that ends the command leaves no temporary file; results go to
//! stdout, everything else to stderr; a reader that closes stdout early is no failure. Does not: compute or decide
//! dtypes; it calls the library's public interface only.

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod args;
mod cells;
mod check;
mod describe;
mod draw;
mod eval;
mod explain;
mod expression;
mod failure;
mod findings;
mod fmt;
mod format;
mod inexact;
mod inputs;
mod lines;
mod manual;
mod members;
mod metrics;
mod missing;
mod numeric;
mod out_dtype;
mod outputs;
mod page;
mod patterns;
mod plan;
mod reference;
mod report;
mod run;
mod sample;
mod scalars;
mod signals;
mod source;
mod spec;
mod table;

/// Mixed-dtype elementwise tensor programs over files.
#[derive(Parser)]
#[command(
    name = "castwise",
    version,
    after_help = "Exit codes: 0 done; 1 the expression, a program, a file or the data is wrong; 2 wrong usage; 3 --deny or --check found something."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Evaluate an expression over .npy arrays, or over every tensor that .safetensors or .npz files share.
    Eval(Box<args::Eval>),
    /// Run a program that is saved as text.
    Run(args::Run),
    /// Print a program that is saved as text in its canonical form.
    Fmt(args::Fmt),
    /// Show what an expression or a program does with dtypes: its result, where precision is lost, every cast with its reason.
    Explain(Box<args::Explain>),
    /// Print a stage of an expression or a program on its way to code.
    Dump(Box<args::Dump>),
    /// Print how an op promotes: the result dtype of each pair of operands, and why others are refused.
    Table(args::Table),
    /// Print a script for a shell that completes this command.
    Completions(manual::Completions),
    /// Print a manual page.
    Man(manual::Man),
}

/// Runs the command.
pub(crate) fn main() -> ExitCode {
    let command = Cli::parse().command;
    signals::watch();
    let done = match &command {
        Command::Eval(arguments) => eval::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Fmt(arguments) => fmt::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Dump(arguments) => draw::run(arguments),
        Command::Table(arguments) => table::run(arguments),
        Command::Completions(arguments) => manual::completions(arguments, Cli::command()),
        Command::Man(arguments) => manual::man(arguments, Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // It may be coloured: what is not is made harmless where it is written.
            let _ = writeln!(std::io::stderr(), "{}", failure.text.trim_end());
            ExitCode::from(failure.code)
        }
    }
}
