//! `castwise eval`: evaluates an expression over arrays, or for every tensor name that checkpoints share.
//!
//! Guarantees: dtypes and shapes of all names are inferred from the file headers before anything is written. Then
//! tensor names are read, computed and written one by one, so memory holds the tensors of one name only, however large
//! the files are. A run whose values are refused leaves no output. Does not: match different names.

use std::path::{Path, PathBuf};
use std::time::Instant;

use castwise::Rules;
use castwise::io::StoredDType;
use castwise::shape::{Dim, Dims};
use indicatif::HumanBytes;

use super::args::Eval;
use super::copied::Copied;
use super::failure::{Failure, print, say, tell};
use super::fix::{self, Goal};
use super::format::Format;
use super::inputs::Input;
use super::metrics::{self, Metrics, Ran, timed};
use super::outputs::{self, Output};
use super::plan::{Job, Outcome, Work, prepare};
use super::stream::{evaluate, to_read, to_read_once};
use super::unchanged::Unchanged;
use super::{describe, equal, manifest, report, scales, show};

/// The maximum number of tensors that a dry run lists.
const LISTED: usize = 20;

/// The note about the default rules and the other choices.
fn default_rules() -> String {
    let (rules, others) =
        (Rules::default(), Rules::default().others().map(|r| format!("--rules {r}")).collect::<Vec<_>>());
    let choices = if others.len() == 1 { "the other choice is" } else { "the other choices are" };
    let (whose, others) = (rules.framework(), report::listed(&others, "and"));
    format!("note: mixed dtypes promote by {whose}'s rules (--rules {rules}); {choices} {others}")
}

pub(super) fn run(arguments: &Eval) -> Result<(), Failure> {
    let start = Instant::now();
    let format = check_files(arguments)?;
    let mut metrics = Metrics::default();
    let prepared =
        timed(&mut metrics.typing, || prepare(&arguments.common, &arguments.map, arguments.expression.as_deref()));
    let mut work = prepared?;
    if !arguments.quiet && arguments.common.rules.is_none() && work.values.numbers.is_empty() && work.mixes() {
        say(&default_rules());
    }
    work.tell(arguments.quiet);
    if let Some(goal) = Goal::of(&arguments.fix) {
        fix::eval(&mut work, &arguments.common, goal, arguments.quiet)?;
    }
    let several = work.plans.iter().any(|p| p.results.len() > 1);
    if several && matches!(format, Format::Npy | Format::Pipe) || work.named && format == Format::Pipe {
        return Err(Failure::usage("a .npy file can't store several results: write .npz, .safetensors or .index.json"));
    }
    if !work.named && format == Format::Folder {
        let text = "the folder of a model has named tensors: write .npy, .npz or .safetensors";
        return Err(Failure::usage(text));
    }
    if work.named && format == Format::Npy {
        let text = "a .npy file can't store named tensors: write .safetensors, .index.json, .npz or a folder";
        return Err(Failure::usage(text));
    }
    if arguments.explain {
        let mut text = String::new();
        for kind in work.kinds()? {
            let Some(first) = kind.first() else { continue };
            let (plan, e) = work.of(first);
            text += &(work.heading(&kind)
                + &describe::explain(&describe::result(plan), &plan.typed, &e.text, &e.path)
                + "\n");
        }
        print(&text)?;
    }
    if let Some(least) = arguments.deny {
        describe::deny(&work, least)?;
    }
    if let Some(input) = work.inputs.iter().find(|i| i.is_declared()).filter(|_| !arguments.dry_run) {
        let name = report::escaped(&input.name);
        return Err(Failure::usage(format!("the input `{name}` has no data: give a file, or use --dry-run")));
    }
    if format != Format::Text {
        scales::check(&work)?;
    }
    let list = list(&work)?;
    let shown = |paths: Vec<PathBuf>| paths.iter().map(|p| p.display().to_string()).collect::<Vec<String>>();
    let mut names = shown(outputs::layout(&arguments.target, format, &list)?);
    let copied = Copied::of(arguments, format, &work, &list)?;
    tell(&copied.notes, arguments.quiet);
    work.notes.extend(copied.notes.iter().cloned());
    let written = names.clone();
    names.extend(shown(copied.paths(arguments.target.path())));
    if arguments.dry_run {
        let existing = shown(outputs::existing_outputs(&arguments.target, format, &list, &work.files())?.0);
        outputs::check_replaced(&arguments.target, format)?;
        let text = if arguments.json {
            metrics::report(arguments, &work, &names, Ran::Dry { existing: &existing, copied: copied.report() })?
        } else {
            plan_text(&work, &written)? + &copied.line() + &replaced(&existing, arguments.target.force)
        };
        return print(&text);
    }
    equal::check(&mut work)?;
    let mut output = create(arguments, format, &work, &list)?;
    timed(&mut metrics.writing, || copied.write(&output))?;
    evaluate(arguments, format, &mut work, &mut output, &mut metrics)?;
    let shown = output.shown();
    timed(&mut metrics.writing, || output.finish())?;
    metrics.total = start.elapsed();
    let is_text = format == Format::Text;
    if is_text && !arguments.json {
        print(&show::text(&shown))?;
    }
    if !arguments.quiet && !is_text && format != Format::Pipe {
        say(&metrics.summary(work.jobs.len() + work.unchanged.len()));
    }
    if arguments.json {
        let values = is_text.then(|| show::json(&shown));
        print(&metrics::report(arguments, &work, &names, Ran::Done(&metrics, values))?)?;
    }
    Ok(())
}

/// Checks paths before any file is read.
fn check_files(arguments: &Eval) -> Result<Format, Failure> {
    if arguments.target.output.as_deref() == Some(Path::new("-")) && (arguments.json || arguments.explain) {
        return Err(Failure::usage("-o - writes the result to standard output: --json and --explain need it, too"));
    }
    let read: Vec<&Path> = arguments.common.inputs.iter().filter_map(|(_, s)| s.file()).collect();
    outputs::format(&arguments.target, &read, arguments.dry_run)
}

/// The tensors to be written. A shape with an unknown dim is an error.
fn list(work: &Work) -> Result<Vec<(String, StoredDType, Vec<usize>)>, Failure> {
    let results = work.jobs.iter().flat_map(|j| work.of(j).0.results.iter().map(move |r| (j, r)));
    let entry = |(j, r): (&Job, &Outcome)| {
        let shape = r.shape().map_err(|_| Failure::usage("--dry-run needs inputs whose dims are all numbers"))?;
        Ok((outputs::full_name(work.tensor(j), r.name.as_deref()), r.dtype.into(), shape))
    };
    let copied = |u: &Unchanged| Ok((u.name.clone(), u.dtype, u.shape.clone()));
    results.map(entry).chain(work.unchanged.iter().map(copied)).collect()
}

/// The text of a dry run: what a run would compute, read and write.
fn plan_text(work: &Work, files: &[String]) -> Result<String, Failure> {
    let mut text = String::new();
    let mut total = 0u64;
    for (i, job) in work.jobs.iter().enumerate() {
        let (plan, e) = work.of(job);
        total = total.saturating_add(plan.bytes()?);
        if i < LISTED {
            text +=
                &format!("{} = {}: {}\n", report::escaped(&job.name), report::escaped(e.line()), plan.result_type());
        }
    }
    let mut copied = 0;
    for (i, u) in work.unchanged.iter().enumerate() {
        copied += u.bytes()?;
        if work.jobs.len() + i < LISTED {
            let (name, of, shape) =
                (report::escaped(&u.name), u.dtype, Dims(u.shape.iter().map(|n| Dim::Fixed(*n)).collect()));
            text += &format!("{name} = {}: {of}{shape}, unchanged\n", report::escaped(&u.text));
        }
    }
    let count = work.jobs.len() + work.unchanged.len();
    if count > LISTED {
        text += &format!("(and {} more)\n", count - LISTED);
    }
    let read: u64 = work.jobs.iter().map(|j| to_read(work, j)).sum::<u64>() + to_read_once(work);
    let s = if count == 1 { "" } else { "s" };
    let (read, total) = (HumanBytes(read.saturating_add(copied)), HumanBytes(total.saturating_add(copied)));
    let how = if files.is_empty() {
        format!("print {total}")
    } else {
        format!("write {total} of data into {}", files.join(", "))
    };
    text += &format!("{count} tensor{s}: would read {read} and {how}\n");
    Ok(text)
}

/// The line of a dry run about outputs that exist.
fn replaced(existing: &[String], force: bool) -> String {
    if existing.is_empty() {
        return String::new();
    }
    let (s, it) = if existing.len() == 1 { ("s", "it") } else { ("", "them") };
    let names = existing.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = existing.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let what = if force { format!("a run replaces {it}") } else { format!("a run replaces {it} only with --force") };
    format!("{names}{more} exist{s}: {what}\n")
}

/// Starts the output. It has the metadata of the first input that has any.
fn create(arguments: &Eval, format: Format, work: &Work, list: &outputs::List) -> Result<Output, Failure> {
    let mut all = work.inputs.iter().filter_map(Input::metadata);
    let mut metadata = all.find(|m| !m.is_empty()).cloned().unwrap_or_default();
    // That of an input says nothing about the output.
    metadata.remove(manifest::KEY);
    if arguments.manifest {
        if !matches!(format, Format::SafeTensors | Format::Index | Format::Folder) {
            return Err(Failure::usage(
                "--manifest needs an output with metadata: .safetensors, .index.json or a folder",
            ));
        }
        metadata.insert(manifest::KEY.into(), manifest::text(arguments, work)?);
    }
    Output::create(&arguments.target, format, &work.files(), list, &metadata)
}
