//! The command line: `castwise eval EXPR -i name=FILE ... -o FILE`.
//!
//! Guarantees: exit code 0 when the output is whole, 1 on any failure (then there is no output and no change to an
//! old one), 2 on wrong usage; a signal that ends the command leaves no temporary file; results and typed programs go to stdout, everything else to stderr. Does not: compute
//! or decide dtypes; it calls the library's public interface only.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use castwise::{DType, Rules};
use clap::{Parser, Subcommand};

mod eval;
mod inputs;
mod outputs;
mod report;
mod signals;

/// Mixed-dtype elementwise tensor programs over files.
#[derive(Parser)]
#[command(name = "castwise", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Evaluate an expression over .npy arrays, or over every tensor that .safetensors or .npz files share.
    Eval(Eval),
}

/// The arguments of `castwise eval`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise eval '0.7*a + 0.3*b' -i a=base.safetensors -i b=tuned.safetensors -o merged.safetensors
  castwise eval '(nir - red) / (nir + red)' -i nir=nir.npy -i red=red.npy -o ndvi.npy

Operators are Python's: == != < <= > >=  |  ^  &  + -  * / // %  - + ~  **
Calls are sqrt(x), where(c, x, y), cast(x, f32), ... by the names of PyTorch and Paddle.
Files of several tensors (.safetensors, .npz, and the .index.json of a checkpoint in shards):
the expression is applied to each tensor name that all of them have; a .npy beside them takes
part in each.")]
pub(crate) struct Eval {
    /// The expression, in the names of the inputs: 0.7*a + 0.3*b
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// An input: its name in the expression, and a file: .npy, .npz, .safetensors, or the .index.json of shards.
    #[arg(short, long = "input", value_name = "NAME=FILE", value_parser = input, required = true)]
    inputs: Vec<(String, PathBuf)>,
    /// The file to write: .npy, .npz, .safetensors, or the .index.json of shards.
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
    /// Write shards of at most this size and an index: 5GB, 500M, 4GiB (.safetensors that fit one file stay one file;
    /// .index.json without this: 5GB).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_shard_size: Option<u64>,
    /// Deflate the arrays of a .npz.
    #[arg(long)]
    compress: bool,
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

/// A number of bytes: decimal units, or binary ones with an `i`.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: Option<u64> = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" => Some(1_000),
        "m" | "mb" => Some(1_000_000),
        "g" | "gb" => Some(1_000_000_000),
        "kib" => Some(1 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f)).filter(|n| *n > 0);
    bytes.ok_or_else(|| "write it as 5GB, 500MB or 4GiB (units K, M and G; with `iB` powers of 1024)".to_string())
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
    signals::watch();
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
