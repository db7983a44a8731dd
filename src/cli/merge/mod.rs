//! `castwise merge`: runs a configuration of mergekit.
//!
//! Guarantees: it does what the command `castwise eval` with a recipe does, which `--show` prints. Does not: download models, or merge tokenizers.

use std::ffi::OsString;
use std::path::PathBuf;

use castwise::io::read_text;
use castwise::{Rules, Settings};

use super::args::{Check, Common, Eval, Fix, Target};
use super::failure::{Failure, print, tell};
use super::spec::{InputSpec, Missing, Rename};
use super::{eval, report, values};

mod config;
mod shown;

/// The maximum size of a configuration in bytes.
const MOST: u64 = 1 << 20;

/// The arguments of `castwise merge`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise merge ties.yml -o merged/
  castwise merge dare.yml -o merged/ --seed 42 -i mask.math=mask.safetensors
  castwise merge slerp.yml --show

Methods: linear, slerp, nuslerp, task_arithmetic, ties, dare_linear, dare_ties, breadcrumbs, breadcrumbs_ties, della,
della_linear, model_stock. Models are folders or files here; their tensors are merged by name, and no tensor is left out
silently (--missing). What the configuration asks for and castwise does not do is an error with its line.

Exit status: 0 success; 1 error in the configuration, a file or the data; 2 usage error; 3 refused by --check.")]
pub(super) struct Merge {
    /// The configuration.
    #[arg(value_name = "CONFIG.yml")]
    config: PathBuf,
    #[command(flatten)]
    target: Target,
    /// Another input of the recipe, as a mask for a model: mask.NAME=FILE. Models are named by the last part of their paths.
    #[arg(short, long = "input", value_name = "NAME=FILE", value_parser = values::os(values::input))]
    inputs: Vec<(String, InputSpec)>,
    /// As in `castwise eval`.
    #[arg(long, value_name = "INPUT:REGEX=TEXT", value_parser = values::rename)]
    rename: Vec<Rename>,
    /// If a model lacks a tensor that others have: error (the default), skip (leave the tensor out), or copy. A missing
    /// lm_head.weight is model.embed_tokens.weight.
    #[arg(long, value_name = "error|skip|copy[=INPUT]", value_parser = Missing::read)]
    missing: Option<Missing>,
    /// The seed of random masks (default: 0).
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only merge tensors whose names match this regular expression anywhere.
    #[arg(long, value_name = "REGEX", value_parser = values::regex)]
    select: Option<regex::Regex>,
    /// Do not merge tensors whose names match this regular expression anywhere.
    #[arg(long, value_name = "REGEX", value_parser = values::regex)]
    skip: Option<regex::Regex>,
    /// Refuse results with a NaN or an infinity where no input has one.
    #[arg(long, value_name = "finite")]
    check: Option<Check>,
    /// Do not copy the configuration, the tokenizer and other files of the base or first model.
    #[arg(long)]
    no_copy_rest: bool,
    /// Write what the result is made from into its metadata, as `castwise eval` does.
    #[arg(long)]
    manifest: bool,
    /// Print the same merge as a command `castwise eval`, and do nothing.
    #[arg(long)]
    show: bool,
    /// Print what would be computed and written, without doing it.
    #[arg(long)]
    dry_run: bool,
    /// Print the typed program of each combination of dtypes and ranks.
    #[arg(long)]
    explain: bool,
    /// Print a report as JSON.
    #[arg(long, conflicts_with = "explain")]
    json: bool,
    /// Print only errors and warnings.
    #[arg(short, long)]
    quiet: bool,
    /// Number of threads (default: the number of cores).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// The memory for the operands and results of a tensor, as in `castwise eval`.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    memory: Option<u64>,
}

pub(super) fn run(arguments: Merge) -> Result<(), Failure> {
    let text = read_text(&arguments.config, MOST)?;
    let fault = |(line, why): config::Wrong| {
        let line = if line > 0 { format!(":{line}") } else { String::new() };
        let text = format!("{}{line}: {why}", arguments.config.display());
        Failure { text: report::error(&text), code: 1 }
    };
    let config = config::Config::read(&text).map_err(fault)?;
    if let Some((_, path, line)) = config.inputs.iter().find(|(_, p, _)| !p.exists()) {
        let path = report::escaped(&path.to_string_lossy());
        return Err(fault((*line, format!("there is no folder or file `{path}` (models are not downloaded)"))));
    }
    let notes: Vec<String> = config.notes.iter().cloned().chain(same_models(&config)).collect();
    tell(&notes, arguments.quiet);
    let show = arguments.show;
    let eval = of_config(arguments, config)?;
    if show { print(&shown::command(&eval)) } else { eval::run(&eval) }
}

/// Notes about models that are one folder or file by different paths.
fn same_models(config: &config::Config) -> Vec<String> {
    let mut known: Vec<(PathBuf, &PathBuf)> = Vec::new();
    let mut notes = Vec::new();
    for (_, path, _) in &config.inputs {
        let Ok(real) = path.canonicalize() else { continue };
        match known.iter().find(|(other, _)| *other == real) {
            Some((_, first)) => {
                let [first, path] = [*first, path].map(|p| report::escaped(&p.to_string_lossy()));
                notes.push(format!(
                    "note: `{first}` and `{path}` are one model, which is read twice and counts as two, as in mergekit"
                ));
            }
            None => known.push((real, path)),
        }
    }
    notes
}

/// The configuration as the arguments of `castwise eval`.
fn of_config(a: Merge, config: config::Config) -> Result<Eval, Failure> {
    let folder = |path: PathBuf| values::input_path(path);
    let models = config.inputs.into_iter().map(|(name, path, _)| (name, folder(path)));
    let parameter = |(name, model, setting): (String, Option<String>, super::recipe::Setting)| {
        let name = model.map_or(name.clone(), |m| format!("{name}.{m}"));
        (name, OsString::from(setting.text()))
    };
    let dtype = config.dtype.map(|d| ("dtype".to_string(), OsString::from(d.name())));
    let parameters = config.parameters.into_iter().map(parameter).chain(dtype).collect();
    let common = Common {
        config: Some(a.config),
        rename: a.rename,
        seed: a.seed,
        tied: true,
        select: a.select,
        skip: a.skip,
        out_dtype: config.out_dtype,
        missing: a.missing,
        rules: None,
        ..Common::of(Settings::new(Rules::default()), models.chain(a.inputs).collect(), parameters)
    };
    Ok(Eval {
        expression: Some(format!("@{}", config.method)),
        target: a.target,
        common,
        map: Vec::new(),
        deny: None,
        check: a.check,
        no_copy_rest: a.no_copy_rest,
        manifest: a.manifest,
        dry_run: a.dry_run,
        explain: a.explain,
        json: a.json,
        quiet: a.quiet,
        threads: a.threads,
        memory: a.memory,
        fix: Fix { fix: None, tolerance: None },
    })
}
