//! The arguments of the commands.
//!
//! Guarantees: an invalid value is a usage error that names the expected form. Does not: open files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use castwise::{Contraction, DType, Rounding, Rules, Settings, ZeroDivision};
use regex::Regex;

use super::findings::Kind;
use super::out_dtype::OutDtype;
use super::spec::{InputSpec, Missing, Rename};
use super::values::{
    contraction, deny, feed, float, input, map, os, parameter, regex, rename, rounding, sibling, size, tolerance,
    zero_division,
};

/// The arguments of every command that reads an expression.
#[derive(Clone, clap::Args)]
pub(crate) struct Common {
    /// An input: its name in the expression, and a file (.npy, .npz, .safetensors, or the .index.json of a sharded
    /// checkpoint), - for a .npy file from standard input, or the folder of a model: base/; one tensor of such a file:
    /// red=scene.npz:B04; or only a dtype and a shape: a=bf16[4,4], b=f32[n,?], c=i64 (0-d). If a file has several tensors, the expression is evaluated for each of
    /// them.
    #[arg(short, long = "input", value_name = "NAME=FILE[:MEMBER]|FOLDER/|DTYPE[SHAPE]", value_parser = os(input))]
    pub(crate) inputs: Vec<(String, InputSpec)>,
    /// Rename the tensors of an input: in each name, what matches the regular expression is replaced, as in
    /// 'b:^module\.=' or 'b:^h\.(\d+)\.=layers.$1.'. Several are applied in their order.
    #[arg(long, value_name = "INPUT:REGEX=TEXT", value_parser = rename)]
    pub(crate) rename: Vec<Rename>,
    /// Another name for the expression: for each tensor of an input whose name matches the regular expression, the
    /// tensor of that input whose name has TEXT instead, as in 's=w:\.weight$=.weight_scale_inv'. That tensor is no
    /// result of its own where the expression uses it. Tensors without a sibling count as missing (--missing).
    #[arg(long, value_name = "NAME=INPUT:REGEX=TEXT", value_parser = sibling)]
    pub(crate) sibling: Vec<(String, Rename)>,
    /// Options from a TOML file: expression, tables of inputs, parameters and siblings, and options by their long names, such as
    /// out-dtype = "bf16". Options among the arguments win over the file.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    /// A scalar of the expression: w=0.3; or a scalar for each tensor name, from a JSON file: w=weights.json with
    /// {"layers.0.w": 0.3, "norm": 1}. A key is a tensor's name, or a regular expression that matches part of it (the
    /// first match in the file is used).
    #[arg(short, long = "parameter", value_name = "NAME=NUMBER|FILE", value_parser = os(parameter))]
    pub(crate) parameters: Vec<(String, OsString)>,
    /// The seed of random numbers: in an expression, `seed` is a number that follows from it and the tensor's name. That of
    /// recipes is 0 without it.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// A model without lm_head.weight has model.embed_tokens.weight instead, if another model has an lm_head.weight.
    #[arg(long)]
    pub(crate) tied: bool,
    /// Only use tensors whose names match this regular expression anywhere.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(crate) select: Option<Regex>,
    /// Do not use tensors whose names match this regular expression anywhere.
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub(crate) skip: Option<Regex>,
    /// Cast results to this dtype. A float dtype converts results that were computed from at least one floating tensor;
    /// a complex result becomes complex with parts of that dtype. A result that was computed from integers or bools
    /// only is not converted: a float result is cast back to the inputs' common dtype if that is exact, and is an error
    /// otherwise.
    #[arg(long, value_name = "DTYPE")]
    pub(crate) out_dtype: Option<DType>,
    /// With --out-dtype: cast every result, including those that were computed from integers or bools only.
    #[arg(long, requires = "out_dtype")]
    pub(crate) out_dtype_all: bool,
    /// If an input lacks a tensor that others have: error (the default), skip (leave the tensor out), or copy (take it
    /// from the first input of the expression that has it, or from INPUT).
    #[arg(long, value_name = "error|skip|copy[=INPUT]", value_parser = Missing::read)]
    pub(crate) missing: Option<Missing>,
    #[arg(long, help = rules_help("The promotion rules for mixed dtypes"))]
    pub(crate) rules: Option<Settings>,
    /// The float dtype that integers are promoted to if an op computes in floats: f16, bf16, f32 or f64.
    #[arg(long, value_name = "DTYPE", default_value = "f32", value_parser = float)]
    pub(crate) default_dtype: DType,
    /// When values of f16, bf16 and 8-bit floats are rounded: exact (after every op) or relaxed (only when a value is stored).
    #[arg(long, value_name = "WHEN", default_value = "exact", value_parser = rounding)]
    pub(crate) rounding: Rounding,
    /// What // and % of integers by zero give: rules (what --rules says: numpy gives 0, all others an error) or error.
    #[arg(long, value_name = "WHAT", default_value = "rules", value_parser = zero_division)]
    pub(crate) zero_division: ZeroDivision,
    /// Whether add_scaled, sub_scaled, addcmul and lerp of f32 and f64 round a product and its sum once: off, or torch (as
    /// PyTorch does).
    #[arg(long, value_name = "WHOSE", default_value = "off", value_parser = contraction)]
    pub(crate) contraction: Contraction,
}

/// The help text of `--rules`, with its values.
fn rules_help(what: &str) -> String {
    let default = Rules::default();
    let all = Rules::ALL.iter().map(|r| if *r == default { format!("{r} (the default)") } else { r.to_string() });
    let with = |r: &Rules| r.own_settings().map(|name| format!("{r},{name}")).collect::<Vec<_>>();
    let flags: Vec<String> = Rules::ALL.iter().flat_map(with).collect();
    let also =
        if flags.is_empty() { String::new() } else { format!(" (also {})", super::report::listed(&flags, "and")) };
    format!("{what}: {}{also}", super::report::listed(&all.collect::<Vec<_>>(), "or"))
}

/// The rule sets to compare: two or more, in the order that is asked for.
#[derive(Clone)]
pub(crate) struct RuleSets(pub(crate) Vec<Rules>);

impl std::str::FromStr for RuleSets {
    type Err = String;

    fn from_str(s: &str) -> Result<RuleSets, String> {
        if s == "all" {
            return Ok(RuleSets(Rules::ALL.to_vec()));
        }
        let all = s.split(',').map(str::parse).collect::<Result<Vec<Rules>, _>>().map_err(|e| e.to_string())?;
        let twice = all.iter().enumerate().any(|(i, r)| all[..i].contains(r));
        if all.len() < 2 || twice {
            return Err("name two or more different rule sets, as in `torch,jax`".into());
        }
        Ok(RuleSets(all))
    }
}

/// The help text of `--compare`.
fn compare_help() -> String {
    let all: Vec<String> = Rules::ALL.iter().map(|r| format!("of {}", r.framework())).collect();
    format!(
        "Show each op for which rules give different dtypes, or for which one of them is an error: the rules {}, \
         or those that are named, as in `--compare=torch,jax`",
        super::report::listed(&all, "and")
    )
}

impl Target {
    /// The path of the output; empty if there is none.
    pub(crate) fn path(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(""))
    }
}

impl Common {
    /// Those of an expression over these inputs, and no other options.
    pub(crate) fn of(
        settings: Settings,
        inputs: Vec<(String, InputSpec)>,
        parameters: Vec<(String, OsString)>,
    ) -> Common {
        Common {
            inputs,
            rename: Vec::new(),
            sibling: Vec::new(),
            config: None,
            parameters,
            seed: None,
            tied: false,
            select: None,
            skip: None,
            out_dtype: None,
            out_dtype_all: false,
            missing: None,
            rules: Some(settings),
            default_dtype: settings.default_dtype,
            rounding: settings.rounding,
            zero_division: settings.zero_division,
            contraction: settings.contraction,
        }
    }

    /// The settings that dtypes depend on besides the inputs.
    pub(crate) fn settings(&self) -> Settings {
        let settings = self.rules.unwrap_or(Settings::new(Rules::default()));
        let settings = settings.with_default_dtype(self.default_dtype).with_rounding(self.rounding);
        settings.with_zero_division(self.zero_division).with_contraction(self.contraction)
    }

    /// The inputs, those that are siblings of others after those that are given as files.
    pub(crate) fn specs(&self) -> Vec<(&str, InputSpec)> {
        let given = self.inputs.iter().map(|(name, spec)| (name.as_str(), spec.clone()));
        given.chain(self.sibling.iter().map(|(name, rule)| (name.as_str(), InputSpec::Sibling(rule.clone())))).collect()
    }

    /// The dtypes that results are converted to.
    pub(crate) fn out(&self) -> OutDtype {
        OutDtype { dtype: self.out_dtype, all: self.out_dtype_all }
    }

    /// Whether no option is given that a program as text sets itself.
    pub(crate) fn is_empty(&self) -> bool {
        let renamed = self.rename.is_empty() && self.sibling.is_empty();
        let names = self.inputs.is_empty() && self.parameters.is_empty() && self.missing.is_none() && renamed;
        let all = self.select.is_none() && self.skip.is_none() && self.out_dtype.is_none() && self.rules.is_none();
        names && all && self.settings() == Settings::new(Rules::default())
    }
}

/// The arguments of `castwise eval`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise eval '0.7*a + 0.3*b' -i a=base.safetensors -i b=tuned.safetensors -o merged.safetensors
  castwise eval '(cast(nir, f32) - red) / (nir + cast(red, f32))' -i nir=nir.npy -i red=red.npy -o ndvi.npy
  castwise eval 'd = a - b; max = amax(abs(d)); mean = mean(d)' -i a=base/ -i b=tuned/ --json
  castwise eval 'd = b - a; a + w*d' -p w=weights.json --map 'norm=b' -i a=base.safetensors ...

Operators are Python's: == != < <= > >=  |  ^  &  + -  * / // %  - + ~  **
Calls are sqrt(x), where(c, x, y), cast(x, f32), ... by the names of PyTorch and Paddle.
Assignments name parts of an expression: d = b - a; a + 0.3*d
If it ends with an assignment, each name that is not used is a result: low = amin(a); high = amax(a)
If inputs are files of several tensors (.safetensors, .npz, or the .index.json of a sharded
checkpoint), the expression is evaluated for each tensor name, which all these files must have
(see --missing). A .npy file or one tensor of a file (FILE:MEMBER) is used for every name.

Exit status: 0 success; 1 error in the expression, a file or the data; 2 usage error; 3 refused by --deny or --check, or --fix found no casts.")]
pub(crate) struct Eval {
    /// The expression, which uses the names of the inputs: 0.7*a + 0.3*b
    #[arg(value_name = "EXPR", allow_hyphen_values = true, required_unless_present = "map")]
    pub(crate) expression: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Another expression for tensors whose names match a regular expression anywhere. The first --map that matches is
    /// used.
    #[arg(long, value_name = "REGEX=EXPR", value_parser = map)]
    pub(crate) map: Vec<(Regex, String)>,
    /// Refuse to run if implicit casts may lose information. `range` refuses casts that may leave the range of the
    /// dtype; `lossy` also refuses casts that round, and ops that round to 16 bits before the value is cast to a wider
    /// dtype. A scalar that its dtype changes counts as a cast, as 300 in `u + 300` with u of u8 (rounding a decimal to
    /// a float dtype is not a change). Both also refuse integer ops that may wrap before the value is cast to a wider
    /// dtype, as in `(u - v) / 2` of u8. `wrap` refuses only such integer ops. Casts that the expression contains are
    /// not refused.
    #[arg(long, value_name = "lossy|range|wrap", value_parser = deny)]
    pub(crate) deny: Option<Kind>,
    #[command(flatten)]
    pub(crate) fix: Fix,
    /// Check the values of the results: finite refuses a NaN or an infinity at a position where no input has one (for
    /// expressions with reductions: if no input has one anywhere). All tensors are checked. If one fails, no output is
    /// written and the exit status is 3.
    #[arg(long, value_name = "finite")]
    pub(crate) check: Option<Check>,
    /// With a folder as output: do not copy the configuration, the tokenizer and other files that are no weights from the
    /// first input that is a folder.
    #[arg(long)]
    pub(crate) no_copy_rest: bool,
    /// Write what the result is made from into the metadata of a .safetensors output, under `castwise`: expression, recipe,
    /// parameters, version, and the SHA-256 of all input files.
    #[arg(long)]
    pub(crate) manifest: bool,
    /// Print what would be computed and written, without doing it.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the typed program of each combination of dtypes and ranks, with the reason and the loss of every cast.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print a report as JSON: dtype, shape and casts of each tensor, times, sizes, peak memory; and without an output, the
    /// values of the results.
    #[arg(long, conflicts_with = "explain")]
    pub(crate) json: bool,
    /// Print only errors and warnings (and the output of --dry-run, --explain or --json).
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Number of threads (default: the number of cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// The memory for the operands and results of a tensor (default: half of what the system has left; at least 1MiB). A larger
    /// tensor is read, computed and written in parts, with the same bits: ops on elements, the reductions sum, mean,
    /// prod, amax, amin, any and all, and sorts and scans along other dims than the first. Other reductions of whole tensors, and
    /// scans and sorts along the first dim, need whole tensors: they are refused if SIZE is too small for them.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
}

/// The checks of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Check {
    /// No NaN and no infinity that the inputs did not have.
    Finite,
}

/// The output of a command, and the options for writing it.
#[derive(clap::Args)]
pub(crate) struct Target {
    /// The file to write: .npy, .npz, .safetensors, or the .index.json of a sharded checkpoint; or the folder of a model:
    /// merged/; or - for a .npy file to standard output. Without it, results of at most 1000 elements are printed.
    #[arg(short, long, value_name = "FILE|FOLDER/|-")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the output if it exists. A folder is replaced only if it is that of a model, without hidden files or links.
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Write shards of at most this size, and an index: 5GB, 500M, 4GiB. A .safetensors output or a model that fits in one
    /// file stays one file. The default for .index.json and folders is 5GB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_shard_size: Option<u64>,
    /// Compress the arrays of a .npz file.
    #[arg(long)]
    pub(crate) compress: bool,
}

/// The arguments of `castwise run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise run program.cw -i x=x.npy -i weights.safetensors -o results.npz
  castwise run program.cw -i all.npz --fetch loss -o loss.npy

The program declares its placeholders, rules and results. A file of several tensors (.npz, .safetensors, or the
.index.json of a sharded checkpoint) that is given without a name feeds every placeholder that has a tensor of the
same name. With a name, it feeds that placeholder only: by its tensor of that name, by its only tensor, or by the
tensor after a colon: x=all.npz:w. Results are written under their names; a result without a name is called
`result`, or `result0`, `result1`, ... by its position.

Exit status: 0 success; 1 error in the program, a file or the data; 2 usage error.")]
pub(crate) struct Run {
    /// The program as text; - for standard input.
    #[arg(value_name = "FILE.cw")]
    pub(crate) file: PathBuf,
    /// Tensors for placeholders: x=x.npy feeds one placeholder; all.npz or all.safetensors feeds those that it has a
    /// tensor for.
    #[arg(short, long = "input", visible_alias = "feed", value_name = "[NAME=]FILE[:MEMBER]", value_parser = os(feed))]
    pub(crate) inputs: Vec<(Option<String>, InputSpec)>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Compute and write only the result of this name; may be given several times (default: all results).
    #[arg(long, value_name = "NAME")]
    pub(crate) fetch: Vec<String>,
    /// Print the results as JSON.
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
    /// Print only errors and warnings.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Number of threads (default: the number of cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// The memory for all operands and results (default: half of what the system has left; at least 1MiB). Larger ones are read,
    /// computed and written in parts, with the same bits, as in `castwise eval`.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
}

/// The arguments of `castwise fmt`.
#[derive(clap::Args)]
#[command(
    after_help = "The canonical text is the library's text form of the program: one value per line, values numbered in order. It has
no comments, and no names of values other than placeholders and results.

Exit status: 0 success; 1 error in the text, or --check found that it is not canonical; 2 usage error."
)]
pub(crate) struct Fmt {
    /// The program as text; - for standard input.
    #[arg(value_name = "FILE.cw")]
    pub(crate) file: PathBuf,
    /// Print nothing; fail if the text is not canonical.
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the canonical text to the file.
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
    /// With --write: write even if comments are lost.
    #[arg(short, long, requires = "write")]
    pub(crate) force: bool,
}

/// The arguments of `castwise explain`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise explain '0.7*a + 0.3*b' -i a=bf16[4] -i b=f16[4] --numeric
  castwise explain 'steps * loss' -i steps=i64[n] -i loss=f32[n] --compare
  castwise explain '(nir - red) / (nir + red)' -i nir=nir.npy -i red=red.npy --numeric --html ndvi.html
  castwise explain '0.7*a + 0.3*b' -i a=bf16[4096] -i b=f16[4096] --fix --tolerance 1e-6

--numeric runs the program on the files (or on random elements, for inputs without a file), once as written and once
in f64 (c128), and lists the ops and casts that lose precision, the largest error first.")]
pub(crate) struct Explain {
    /// The expression, which uses the names of the inputs: 0.7*a + 0.3*b; or a program as text: FILE.cw, or - for
    /// standard input.
    #[arg(value_name = "EXPR|FILE.cw", allow_hyphen_values = true)]
    pub(crate) expression: OsString,
    #[command(flatten)]
    pub(crate) common: Common,
    #[arg(long, value_name = "RULES,RULES", num_args = 0..=1, require_equals = true, default_missing_value = "all", help = compare_help())]
    pub(crate) compare: Option<RuleSets>,
    /// Measure the error of each op and cast, relative to f64.
    #[arg(long)]
    pub(crate) numeric: bool,
    #[command(flatten)]
    pub(crate) fix: Fix,
    /// Also write an HTML page with a picture of the program, which uses no network; with --numeric, with the error of each
    /// op and cast as a bar.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Replace the HTML page if it exists.
    #[arg(short, long, requires = "html")]
    pub(crate) force: bool,
}

/// The options of `--fix`.
#[derive(clap::Args)]
pub(crate) struct Fix {
    /// Add a small set of casts, so that nothing is left that --deny refuses (lossy, if no other kind is given: --fix=wrap);
    /// or, with --tolerance, that brings the error under it. The dtype of the result stays. `explain` prints the new
    /// expression, with error and cost before and after; `eval` evaluates it. If no such set is found, the exit status is 3.
    #[arg(long, value_name = "lossy|range|wrap", num_args = 0..=1, require_equals = true, default_missing_value = "lossy", value_parser = deny)]
    pub(crate) fix: Option<Kind>,
    /// With --fix: the largest relative error of the result that is accepted, measured on the files (or on random
    /// elements) as --numeric does.
    #[arg(long, value_name = "ERROR", requires = "fix", allow_negative_numbers = true, value_parser = tolerance)]
    pub(crate) tolerance: Option<f64>,
}

/// The arguments of `castwise grad`.
#[derive(clap::Args)]
pub(crate) struct Grad {
    /// The expression, which uses the names of the inputs: sum(0.7*a + 0.3*b); or a program as text: FILE.cw, or - for
    /// standard input.
    #[arg(value_name = "EXPR|FILE.cw", allow_hyphen_values = true)]
    pub(crate) expression: OsString,
    #[command(flatten)]
    pub(crate) common: Common,
    /// The inputs whose gradients are wanted: all float and complex ones by default.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) wrt: Vec<String>,
    /// Print the typed program instead, with the casts and where gradients are rounded.
    #[arg(long)]
    pub(crate) explain: bool,
}

/// The arguments of `castwise dump`.
#[derive(clap::Args)]
pub(crate) struct Dump {
    /// The expression, which uses the names of the inputs: 0.7*a + 0.3*b; or a program as text: FILE.cw, or - for
    /// standard input.
    #[arg(value_name = "EXPR|FILE.cw", allow_hyphen_values = true)]
    pub(crate) expression: OsString,
    #[command(flatten)]
    pub(crate) common: Common,
    /// The stage to print.
    #[arg(long, value_enum)]
    pub(crate) stage: Stage,
}

/// A compilation stage of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stage {
    /// The program as written.
    Program,
    /// The program with dtypes, shapes and casts.
    Typed,
    /// The fused loops.
    Kernels,
    /// The loops with their buffers, the order and place of their steps, and how they walk operands of known extents.
    Schedule,
    /// The instructions of the ops in the loops, before instruction selection for a machine.
    Ssa,
    /// The loops as Cranelift's IR (CLIF). Cranelift compiles them on machines without AVX2, or with
    /// CASTWISE_CPU=baseline.
    Clif,
    /// The loops as the IR for AVX2 and AVX-512, before and after register allocation.
    X64,
    /// The loops as machine code, on x86-64: for each instruction the step of the kernel and its source location.
    Asm,
    /// The typed program as a picture.
    Svg,
    /// The typed program as a graph for Graphviz.
    Dot,
    /// The typed program as a graph for Mermaid.
    Mermaid,
}

/// The arguments of `castwise table`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise table --rules paddle
  castwise table --op div --format markdown
  castwise table --format html > promotion.html")]
pub(crate) struct Table {
    /// The name of an op, or all (default: add; the HTML page always has all ops).
    #[arg(value_name = "OP|all")]
    pub(crate) op: Option<String>,
    /// The op, as an option.
    #[arg(long = "op", value_name = "OP|all", conflicts_with = "op")]
    pub(crate) named_op: Option<String>,
    #[arg(long, help = format!("{}. The HTML page has all", rules_help("The promotion rules")))]
    pub(crate) rules: Option<Settings>,
    /// The output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: TableFormat,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TableFormat {
    Text,
    Markdown,
    Html,
}
