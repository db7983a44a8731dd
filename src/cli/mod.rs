//! The command `castwise`: `eval` evaluates an expression over files, `run` runs a program as text, and other commands
//! explain or print expressions and programs.
//!
//! Guarantees: the exit status is 0 on success, when the output is complete; 1 for an error in the expression, a
//! program, a file or the data, when no output is written and an old one is unchanged; 2 for a usage error; 3 if
//! `--deny` or `--check` refuses the run, when no output is written either. (`diff` has 1 for a difference and 2 for all
//! errors. A complete output stays if only the report about it can't be printed, or an old file can't be removed.) A signal that ends the command leaves no
//! temporary file. Results go to standard output, everything else to standard error. A reader that closes standard
//! output early does not cause an error. Does not: compute or decide dtypes; it calls the library's public interface
//! only.

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, Parser, Subcommand};

mod args;
mod cells;
mod check;
mod choice;
mod close;
mod compute;
mod config;
mod copied;
mod describe;
mod diff;
pub(crate) mod draw;
mod equal;
mod eval;
mod explain;
pub(crate) mod explain_page;
mod expression;
mod failure;
pub(crate) mod findings;
pub(crate) mod fix;
mod fmt;
mod folder;
mod format;
mod grad;
mod html;
mod inexact;
mod inputs;
mod lines;
mod manifest;
mod manual;
mod measure;
mod members;
mod merge;
mod metrics;
mod missing;
mod names;
pub(crate) mod numeric;
mod ops_list;
mod options_file;
mod out_dtype;
mod outputs;
mod page;
mod patterns;
mod plan;
mod recipe;
mod recipes_list;
mod reference;
mod refusals;
mod report;
mod run;
pub(crate) mod sample;
mod sampled;
mod scalars;
mod scales;
mod shared;
mod show;
mod signals;
mod source;
mod spec;
mod stats;
mod stream;
mod table;
mod unchanged;
mod values;
mod vectors;
mod yaml;

/// Mixed-dtype elementwise tensor programs over files.
#[derive(Parser)]
#[command(
    name = "castwise",
    version,
    after_help = "Exit status: 0 success; 1 error in the expression, a program, a file or the data; 2 usage error; 3 refused by --deny or --check, or --fix found no casts."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Evaluate an expression over .npy arrays, or for every tensor that .safetensors or .npz files share.
    Eval(Box<args::Eval>),
    /// Run a program from its text form.
    Run(args::Run),
    /// Print the canonical text of a program.
    Fmt(args::Fmt),
    /// Show the dtypes of an expression or a program: its results, the ops that lose precision, every cast with its
    /// reason.
    Explain(Box<args::Explain>),
    /// Print an expression or a program with the gradients of its inputs, as a program.
    Grad(Box<args::Grad>),
    /// Print a compilation stage of an expression or a program.
    Dump(Box<args::Dump>),
    /// Print the promotion of an op: the result dtype of each pair of operands, and the reason for each refused pair.
    Table(args::Table),
    /// Show what the tensors of a file or a model hold: dtype, shape, range, mean, NaNs, hash.
    Stats(Box<stats::Arguments>),
    /// Compare the tensors of two files or models; the exit status tells whether they differ.
    Diff(Box<diff::Arguments>),
    /// List the ops, or describe one: castwise ops quantile.
    Ops(ops_list::Arguments),
    /// Merge models as a configuration of mergekit says.
    Merge(Box<merge::Merge>),
    /// List the recipes, expressions that ship with the command, or print one: castwise recipes show ties.
    Recipes(recipes_list::Arguments),
    /// Print a shell script that completes this command.
    Completions(manual::Completions),
    /// Print a manual page.
    Man(manual::Man),
    /// Print what a word can become, for completion by a shell.
    #[command(hide = true)]
    Complete(ops_list::Complete),
}

/// Runs the command with these arguments, of which the first is its own name, and returns the exit status.
pub(crate) fn status(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let (arguments, file) = match options_file::with_file(arguments.into_iter().collect(), &Cli::command()) {
        Ok(all) => all,
        Err(failure) => return failed(&failure),
    };
    let command = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli.command,
        // Also `--help` and `--version`, which have the status 0.
        Err(e) => {
            let _ = e.print();
            if let Some(file) = file.filter(|_| e.use_stderr()) {
                let _ = writeln!(
                    std::io::stderr(),
                    "note: some of the arguments are from {}",
                    report::escaped(&file.to_string_lossy())
                );
            }
            return u8::try_from(e.exit_code()).unwrap_or(2);
        }
    };
    signals::watch();
    let done = match command {
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Fmt(arguments) => fmt::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Grad(arguments) => grad::run(&arguments),
        Command::Dump(arguments) => draw::run(&arguments),
        Command::Table(arguments) => table::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Diff(arguments) => match diff::run(&arguments) {
            Ok(different) => return u8::from(different),
            Err(failure) => Err(failure),
        },
        Command::Ops(arguments) => ops_list::run(&arguments),
        Command::Complete(arguments) => ops_list::complete(&arguments, &Cli::command()),
        Command::Merge(arguments) => merge::run(*arguments),
        Command::Recipes(arguments) => recipes_list::run(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments, Cli::command()),
        Command::Man(arguments) => manual::man(&arguments, Cli::command()),
    };
    match done {
        Ok(()) => 0,
        Err(failure) => failed(&failure),
    }
}

/// The arguments of the command, of which the first is its own name, with those of the file that `--config` names; or the
/// exit status and the error.
#[allow(dead_code, reason = "the Python module calls it, the binary does not")]
pub(crate) fn arguments(given: Vec<OsString>) -> Result<Vec<OsString>, (u8, String)> {
    let all = options_file::with_file(given, &Cli::command());
    all.map(|(arguments, _)| arguments).map_err(|failure| (failure.code, failure.text))
}

/// Prints an error. Returns the exit status.
fn failed(failure: &failure::Failure) -> u8 {
    // The text may have colours. Control characters from outside are escaped where it is formatted.
    let _ = writeln!(std::io::stderr(), "{}", failure.text.trim_end());
    failure.code
}
