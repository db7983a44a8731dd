//! The command line: `castwise eval EXPR -i name=FILE ... -o FILE`.
//!
//! Guarantees: exit code 0 when the output is whole, 1 on any failure (then there is no output and no change to an
//! old one), 2 on wrong usage; results and typed programs go to stdout, everything else to stderr. Does not: compute
//! or decide dtypes; it calls the library's public interface only.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use castwise::{DType, Rules};
use clap::{Parser, Subcommand};

mod eval;
mod inputs;
mod report;

/// Mixed-dtype elementwise tensor programs over files.
#[derive(Parser)]
#[command(name = "castwise", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Evaluate an expression over .npy arrays or over every tensor that .safetensors files share.
    Eval(Eval),
}

/// The arguments of `castwise eval`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise eval '0.7*a + 0.3*b' -i a=base.safetensors -i b=tuned.safetensors -o merged.safetensors
  castwise eval '(nir - red) / (nir + red)' -i nir=nir.npy -i red=red.npy -o ndvi.npy

Operators are Python's: == != < <= > >=  |  ^  &  + -  * / // %  - + ~  **
Calls are sqrt(x), where(c, x, y), cast(x, f32), ... by the names of PyTorch and Paddle.
Several .safetensors: the expression is applied to each tensor name that all of them have;
a .npy beside them takes part in each.")]
pub(crate) struct Eval {
    /// The expression, in the names of the inputs: 0.7*a + 0.3*b
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// An input: its name in the expression, and a .npy or .safetensors file.
    #[arg(short, long = "input", value_name = "NAME=FILE", value_parser = input, required = true)]
    inputs: Vec<(String, PathBuf)>,
    /// The file to write: .npy or .safetensors.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Whose rules decide about mixed dtypes: torch (the default) or paddle.
    #[arg(long)]
    rules: Option<Rules>,
    /// Cast the result to this dtype.
    #[arg(long, value_name = "DTYPE")]
    out_dtype: Option<DType>,
    /// The dtype integers become where an op needs floats: f16, bf16, f32 or f64.
    #[arg(long, value_name = "DTYPE", default_value = "f32", value_parser = float)]
    default_dtype: DType,
    /// Print the typed program of each combination of dtypes and ranks, with the reason and the loss of every cast.
    #[arg(long)]
    explain: bool,
    /// Replace the output file if it exists.
    #[arg(short, long)]
    force: bool,
}

fn input(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_string(), file.into())),
        _ => Err("write it as NAME=FILE".to_string()),
    }
}

fn float(text: &str) -> Result<DType, String> {
    let dtype: DType = text.parse().map_err(|e: castwise::UnknownDType| e.to_string())?;
    if dtype.is_float() { Ok(dtype) } else { Err(format!("{dtype} is not a float: f16, bf16, f32 or f64")) }
}

/// Why the command failed: what stderr is told, and the exit code.
struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    /// A mistake in the arguments.
    fn usage(text: impl Into<String>) -> Failure {
        Failure { text: report::error(&text.into()), code: 2 }
    }
}

impl From<castwise::Error> for Failure {
    fn from(e: castwise::Error) -> Failure {
        Failure { text: report::error(&e.to_string()), code: 1 }
    }
}

/// Runs the command.
pub(crate) fn main() -> ExitCode {
    let Command::Eval(arguments) = Cli::parse().command;
    match eval::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(failure.text.trim_end());
            ExitCode::from(failure.code)
        }
    }
}

/// A line on stderr; a closed stderr is not a reason to fail.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
