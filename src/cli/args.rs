//! The arguments of the commands, and how their values are read.
//!
//! Guarantees: a value that is not what its option takes is wrong usage, with what to write. Does not: open files.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use castwise::shape::{Dim, Dims};
use castwise::{DType, Rounding, Rules, Settings, UnknownDType};
use clap::builder::{OsStringValueParser, TypedValueParser};
use regex::Regex;

use super::findings::Kind;
use super::out_dtype::OutDtype;
use super::patterns;
use super::spec::{InputSpec, Missing, located};

/// What every command that reads an expression takes.
#[derive(Clone, clap::Args)]
pub(crate) struct Common {
    /// An input: its name in the expression, and a file (.npy, .npz, .safetensors, or the .index.json of shards); one tensor
    /// of such a file: red=scene.npz:B04; or only a dtype and a shape: a=bf16[4,4], b=f32[n,?], c=i64 (0-d). With a file of
    /// several tensors, the expression is evaluated for each of them.
    #[arg(short, long = "input", value_name = "NAME=FILE[:MEMBER]|DTYPE[SHAPE]", value_parser = os(input))]
    pub(crate) inputs: Vec<(String, InputSpec)>,
    /// A scalar of the expression: w=0.3; or one for each tensor name, from a JSON file: w=weights.json with
    /// {"layers.0.w": 0.3, "norm": 1}. A key is a tensor's name, or a regular expression found in it (the first that is).
    #[arg(short, long = "parameter", value_name = "NAME=NUMBER|FILE", value_parser = os(parameter))]
    pub(crate) parameters: Vec<(String, OsString)>,
    /// Only tensors in whose names this regular expression is found.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(crate) select: Option<Regex>,
    /// No tensors in whose names this regular expression is found.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(crate) skip: Option<Regex>,
    /// Cast results to this dtype. A float dtype converts results that were computed from at least one floating tensor; a
    /// complex result becomes complex with parts of that dtype. A result computed from integers or bools alone is not
    /// converted: if it is a float, it is cast back to the inputs' common dtype where that is exact, and is an error
    /// otherwise.
    #[arg(long, value_name = "DTYPE")]
    pub(crate) out_dtype: Option<DType>,
    /// With --out-dtype: cast every result, including those computed from integers or bools alone.
    #[arg(long, requires = "out_dtype")]
    pub(crate) out_dtype_all: bool,
    /// If an input lacks a tensor that others have: error (the default), skip (leave the tensor out), or copy (take it from
    /// the first input that has it, or from INPUT).
    #[arg(long, value_name = "error|skip|copy[=INPUT]", value_parser = Missing::read)]
    pub(crate) missing: Option<Missing>,
    #[arg(long, help = whose("Whose rules decide about mixed dtypes"))]
    pub(crate) rules: Option<Rules>,
    /// The dtype integers become where an op needs floats: f16, bf16, f32 or f64.
    #[arg(long, value_name = "DTYPE", default_value = "f32", value_parser = float)]
    pub(crate) default_dtype: DType,
    /// When f16 and bf16 are rounded: exact (after every op) or relaxed (only where a value is stored).
    #[arg(long, value_name = "WHEN", default_value = "exact", value_parser = rounding)]
    pub(crate) rounding: Rounding,
}

/// What `--rules` says of itself: its values.
fn whose(what: &str) -> String {
    let default = Rules::default();
    let all = Rules::ALL.iter().map(|r| if *r == default { format!("{r} (the default)") } else { r.to_string() });
    format!("{what}: {}", super::report::listed(&all.collect::<Vec<_>>(), "or"))
}

/// What `--compare` says of itself.
fn compares() -> String {
    let all: Vec<String> = Rules::ALL.iter().map(|r| format!("of {}", r.framework())).collect();
    format!(
        "Where the rules {} give different dtypes, or one of them refuses, op by op",
        super::report::listed(&all, "and")
    )
}

impl Common {
    /// What dtypes depend on besides the inputs.
    pub(crate) fn settings(&self) -> Settings {
        let rules = self.rules.unwrap_or_default();
        Settings::new(rules).with_default_dtype(self.default_dtype).with_rounding(self.rounding)
    }

    /// The dtypes that results are converted to.
    pub(crate) fn out(&self) -> OutDtype {
        OutDtype { dtype: self.out_dtype, all: self.out_dtype_all }
    }

    /// Whether nothing is said that a program as text says itself.
    pub(crate) fn is_empty(&self) -> bool {
        let names = self.inputs.is_empty() && self.parameters.is_empty() && self.missing.is_none();
        let all = self.select.is_none() && self.skip.is_none() && self.out_dtype.is_none() && self.rules.is_none();
        names && all && self.settings() == Settings::new(Rules::default())
    }
}

/// The arguments of `castwise eval`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise eval '0.7*a + 0.3*b' -i a=base.safetensors -i b=tuned.safetensors -o merged.safetensors
  castwise eval '(cast(nir, f32) - red) / (nir + cast(red, f32))' -i nir=nir.npy -i red=red.npy -o ndvi.npy
  castwise eval 'd = b - a; a + w*d' -p w=weights.json --map 'norm=b' -i a=base.safetensors ...

Operators are Python's: == != < <= > >=  |  ^  &  + -  * / // %  - + ~  **
Calls are sqrt(x), where(c, x, y), cast(x, f32), ... by the names of PyTorch and Paddle.
Parts may be named in front: d = b - a; a + 0.3*d
Files of several tensors (.safetensors, .npz, and the .index.json of a checkpoint in shards):
the expression is applied to each of their tensor names, which all of them must have (--missing
says otherwise); a .npy beside them, or one tensor of a file (FILE:MEMBER), takes part in each.

Exit codes: 0 done; 1 the expression, a file or the data is wrong; 2 wrong usage; 3 --deny or --check found something.")]
pub(crate) struct Eval {
    /// The expression, in the names of the inputs: 0.7*a + 0.3*b
    #[arg(value_name = "EXPR", allow_hyphen_values = true, required_unless_present = "map")]
    pub(crate) expression: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Another expression for the tensors in whose names a regular expression is found; the first that is found counts.
    #[arg(long, value_name = "REGEX=EXPR", value_parser = map)]
    pub(crate) map: Vec<(Regex, String)>,
    /// Refuse to run if a cast that the rules insert may lose: lossy (rounds, or worse), or range only. Lossy is also an
    /// op that rounds to 16 bits a value that is wider afterwards. A scalar counts that its dtype changes: `u + 300` with
    /// u of u8 leaves the range; that a float dtype rounds a decimal is no change. Both refuse integer ops that may wrap
    /// before a wider dtype takes the value, as in `(u - v) / 2` of u8; wrap refuses these only. Casts that the expression
    /// asks for are not refused.
    #[arg(long, value_name = "lossy|range|wrap", value_parser = deny)]
    pub(crate) deny: Option<Kind>,
    /// Check the values of the results: finite refuses a NaN or an infinity at a position where no input has one (in
    /// expressions with reductions: that no input has anywhere). All tensors are checked; if one fails, no output is
    /// written and the exit code is 3.
    #[arg(long, value_name = "finite")]
    pub(crate) check: Option<Check>,
    /// Say what would be done and written, and do not.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the typed program of each combination of dtypes and ranks, with the reason and the loss of every cast.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print one report as JSON: dtype, shape and casts of each tensor, times, sizes, peak memory.
    #[arg(long, conflicts_with = "explain")]
    pub(crate) json: bool,
    /// Print nothing but errors and warnings (and what --dry-run, --explain or --json ask for).
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// How many threads compute (default: the machine's cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

/// What results are checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Check {
    /// No NaN and no infinity that the inputs did not have.
    Finite,
}

/// The output of a command, and how it is written.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// The file to write: .npy, .npz, .safetensors, or the .index.json of shards.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the output file if it exists.
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Write shards of at most this size and an index: 5GB, 500M, 4GiB (.safetensors that fit one file stay one file;
    /// .index.json without this: 5GB).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_shard_size: Option<u64>,
    /// Deflate the arrays of a .npz.
    #[arg(long)]
    pub(crate) compress: bool,
}

/// The arguments of `castwise run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise run program.cw -i x=x.npy -i weights.safetensors -o results.npz
  castwise run program.cw -i all.npz --fetch loss -o loss.npy

The program says its placeholders, its rules and its results. A file of several tensors (.npz, .safetensors, the
.index.json of shards) without a name gives each placeholder the tensor of its name; with a name, that placeholder
alone the tensor of its name, or the only one, or the one behind a colon: x=all.npz:w. Results are written under
their names; one without a name is `result`, or `result0`, `result1`, ... by its position.

Exit codes: 0 done; 1 the program, a file or the data is wrong; 2 wrong usage.")]
pub(crate) struct Run {
    /// The program as text; - for stdin.
    #[arg(value_name = "FILE.cw")]
    pub(crate) file: PathBuf,
    /// The tensors of placeholders: x=x.npy for one, all.npz or all.safetensors for all whose names it has.
    #[arg(short, long = "input", visible_alias = "feed", value_name = "[NAME=]FILE[:MEMBER]", value_parser = os(feed))]
    pub(crate) inputs: Vec<(Option<String>, InputSpec)>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Only the result of this name; may be given several times (default: all results).
    #[arg(long, value_name = "NAME")]
    pub(crate) fetch: Vec<String>,
    /// Print nothing but errors and warnings.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// How many threads compute (default: the machine's cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

/// The arguments of `castwise fmt`.
#[derive(clap::Args)]
#[command(
    after_help = "The canonical text is what the library prints of a program: one value a line, values numbered in order. It has
neither comments nor the names that values (other than placeholders and results) had.

Exit codes: 0 done; 1 the text is wrong, or --check found another text; 2 wrong usage."
)]
pub(crate) struct Fmt {
    /// The program as text; - for stdin.
    #[arg(value_name = "FILE.cw")]
    pub(crate) file: PathBuf,
    /// Print nothing; fail if the file is not its canonical text.
    #[arg(long)]
    pub(crate) check: bool,
    /// Replace the file by its canonical text.
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
    /// With --write: also if comments are lost.
    #[arg(short, long, requires = "write")]
    pub(crate) force: bool,
}

/// The arguments of `castwise explain`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise explain '0.7*a + 0.3*b' -i a=bf16[4] -i b=f16[4] --numeric
  castwise explain 'steps * loss' -i steps=i64[n] -i loss=f32[n] --compare

--numeric runs the program on the files (or on elements that are drawn, for inputs that are only declared) and a
second time in f64 (c128), and names the places that cost precision, the largest first.")]
pub(crate) struct Explain {
    /// The expression, in the names of the inputs: 0.7*a + 0.3*b; or a program as text, FILE.cw or - for stdin.
    #[arg(value_name = "EXPR|FILE.cw", allow_hyphen_values = true)]
    pub(crate) expression: OsString,
    #[command(flatten)]
    pub(crate) common: Common,
    #[arg(long, help = compares())]
    pub(crate) compare: bool,
    /// Measure the error of each op and cast against f64.
    #[arg(long)]
    pub(crate) numeric: bool,
}

/// The arguments of `castwise dump`.
#[derive(clap::Args)]
pub(crate) struct Dump {
    /// The expression, in the names of the inputs: 0.7*a + 0.3*b; or a program as text, FILE.cw or - for stdin.
    #[arg(value_name = "EXPR|FILE.cw", allow_hyphen_values = true)]
    pub(crate) expression: OsString,
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to print.
    #[arg(long, value_enum)]
    pub(crate) stage: Stage,
}

/// A stage of a program on its way to code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stage {
    /// The program as written.
    Program,
    /// With dtypes, shapes and casts.
    Typed,
    /// The loops it is fused into.
    Kernels,
    /// The loops in Cranelift's IR (CLIF), where Cranelift makes them: without AVX2, or with CASTWISE_CPU=baseline.
    Clif,
    /// The loops in the IR for AVX2 and AVX-512, before and after register allocation.
    X64,
    /// The loops' machine code, on x86-64: for each instruction the step of the kernel and where you wrote it.
    Asm,
    /// The typed program as a drawing, for Graphviz.
    Dot,
    /// The typed program as a drawing, for Mermaid.
    Mermaid,
}

/// The arguments of `castwise table`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise table --rules paddle
  castwise table --op div --format markdown
  castwise table --format html > promotion.html")]
pub(crate) struct Table {
    /// An op by name, or all (default: add; a page of HTML always has all).
    #[arg(value_name = "OP|all")]
    pub(crate) op: Option<String>,
    /// The same, as an option.
    #[arg(long = "op", value_name = "OP|all", conflicts_with = "op")]
    pub(crate) named_op: Option<String>,
    #[arg(long, help = format!("{}. A page of HTML has {}", whose("Whose rules"), if Rules::ALL.len() == 2 { "both" } else { "all" }))]
    pub(crate) rules: Option<Rules>,
    /// How to print it.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: TableFormat,
}

/// A form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TableFormat {
    Text,
    Markdown,
    Html,
}

/// A parser of values in which names of files may stand: these need not be UTF-8.
fn os<T: Clone + Send + Sync + 'static>(read: fn(&OsStr) -> Result<T, String>) -> impl TypedValueParser<Value = T> {
    OsStringValueParser::new().try_map(move |value| read(&value))
}

/// What stands before and behind the first `=`.
#[cfg(unix)]
fn split(text: &OsStr) -> Option<(&OsStr, &OsStr)> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|b| *b == b'=')?;
    Some((OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])))
}

/// The same where only text can be taken apart.
#[cfg(not(unix))]
fn split(text: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let (name, value) = text.to_str()?.split_once('=')?;
    Some((name.as_ref(), value.as_ref()))
}

/// A name, which is text, and a value.
fn named<'t>(text: &'t OsStr, form: &str) -> Result<(String, &'t OsStr), String> {
    let parts = split(text).and_then(|(name, value)| Some((name.to_str()?, value)));
    match parts {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_string(), value)),
        _ => Err(format!("write it as {form}")),
    }
}

fn input(text: &OsStr) -> Result<(String, InputSpec), String> {
    let (name, file) = named(text, "NAME=FILE or NAME=DTYPE[SHAPE]")?;
    let Some(value) = file.to_str() else { return Ok((name, located(file.into()))) };
    let (written, dims) = match value.strip_suffix(']').and_then(|v| v.split_once('[')) {
        Some((dtype, dims)) => (dtype, Some(dims)),
        None => (value, None),
    };
    let dtype: DType = match written.parse() {
        Ok(dtype) => dtype,
        Err(e) => return not_declared(name, value, dims.is_some(), &e),
    };
    let dim = |d: &str| match d {
        "?" => Ok(Dim::Dynamic),
        d if d.bytes().all(|b| b.is_ascii_digit()) && !d.is_empty() => {
            d.parse().map(Dim::Fixed).map_err(|_| format!("the dim {d} is too large"))
        }
        d if d.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !d.is_empty() => Ok(Dim::Named(d.into())),
        _ => Err("a dim is a number, a name, or `?`".to_string()),
    };
    let list = dims.map(str::trim).filter(|d| !d.is_empty());
    let dims = list.map(|d| d.split(',').map(|d| dim(d.trim())).collect()).unwrap_or(Ok(Vec::new()))?;
    Ok((name, InputSpec::Declared(dtype, Dims(dims))))
}

/// A value that begins with no dtype: a file, unless its name can't be one that is read.
fn not_declared(name: String, value: &str, shaped: bool, e: &UnknownDType) -> Result<(String, InputSpec), String> {
    let path = value.contains(['/', '\\']);
    if !path && (shaped || e.meant().is_some()) {
        return Err(e.to_string());
    }
    if !path && !value.contains('.') {
        return Err(format!("{e}; the name of a file ends with .npy, .npz, .safetensors or .index.json"));
    }
    Ok((name, located(value.into())))
}

fn feed(text: &OsStr) -> Result<(Option<String>, InputSpec), String> {
    if !text.as_encoded_bytes().contains(&b'=') && !text.is_empty() {
        return Ok((None, located(text.into())));
    }
    let (name, path) = named(text, "NAME=FILE or FILE")?;
    Ok((Some(name), located(path.into())))
}

fn parameter(text: &OsStr) -> Result<(String, OsString), String> {
    named(text, "NAME=NUMBER or NAME=FILE").map(|(name, value)| (name, value.to_os_string()))
}

fn regex(text: &str) -> Result<Regex, String> {
    patterns::check_length(text)?;
    Regex::new(text).map_err(|e| format!("not a regular expression: {e}"))
}

fn map(text: &str) -> Result<(Regex, String), String> {
    match text.split_once('=') {
        Some((pattern, expression)) if !pattern.is_empty() && !expression.is_empty() => {
            Ok((regex(pattern)?, expression.to_string()))
        }
        _ => Err("write it as REGEX=EXPR".to_string()),
    }
}

fn deny(text: &str) -> Result<Kind, String> {
    match text {
        "lossy" => Ok(Kind::Rounds),
        "range" => Ok(Kind::Range),
        "wrap" => Ok(Kind::Wraps),
        _ => Err("write lossy, range or wrap".to_string()),
    }
}

fn rounding(text: &str) -> Result<Rounding, String> {
    match text {
        "exact" => Ok(Rounding::Exact),
        "relaxed" => Ok(Rounding::Relaxed),
        _ => Err("write exact or relaxed".to_string()),
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
