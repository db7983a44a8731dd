//! `castwise eval`: an expression over arrays, or over every tensor name that checkpoints share.
//!
//! Guarantees: all names are typed from the file headers before the first byte is written, and all refusals are
//! reported together; then one tensor name after the other is read, computed and written, so that memory holds one
//! name's tensors, however large the files; one program serves all names of equal dtypes and shapes. Does not: match names that differ.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use castwise::{
    Attrs, DType, Diagnostic, Error, Executor, Fault, Feeds, Graph, Mode, Op, Operand, Place, Program, Settings, Var,
};
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::inputs::{Format, Input, bytes};
use super::outputs::{self, Output};
use super::{Eval, Failure, report, say};

/// The name of the only tensor when arrays without names are written into a file that has names.
const UNNAMED: &str = "result";
/// How many different refusals are shown.
const REFUSALS: usize = 10;

/// The operands' dtypes and shapes, in the order of the inputs.
type Signature = Vec<(DType, Vec<usize>)>;

/// A program for one signature, and the type of its result.
struct Plan {
    program: Program,
    result: Var,
    dtype: DType,
    shape: Vec<usize>,
}

/// A tensor name to evaluate, and its plan.
struct Job {
    name: String,
    plan: usize,
}

pub(super) fn run(arguments: &Eval) -> Result<(), Failure> {
    let settings = Settings {
        default_dtype: arguments.default_dtype,
        ..Settings::new(arguments.rules.unwrap_or(castwise::Rules::Torch))
    };
    let formats = check_files(arguments)?;
    let used = check_expression(arguments, settings)?;
    if arguments.rules.is_none() {
        say("note: mixed dtypes follow PyTorch's rules (--rules torch); the other choice is --rules paddle");
    }
    let mut inputs = Vec::new();
    for ((name, path), format) in arguments.inputs.iter().zip(&formats.inputs) {
        if used.contains(name.as_str()) {
            inputs.push(Input::open(name, path, *format)?);
        } else {
            say(&format!("note: the expression does not use the input `{}`", report::escaped(name)));
        }
    }
    let names = match shared_names(&inputs)? {
        Some(names) if formats.output == Format::Npy => {
            let text =
                format!("{} tensors do not go into a .npy file: write .safetensors, .index.json or .npz", names.len());
            return Err(Failure::usage(text));
        }
        Some(names) => names,
        None => vec![UNNAMED.to_string()],
    };
    let (plans, jobs) = type_all(arguments, settings, &inputs, names)?;
    if arguments.explain {
        explain(&inputs, &plans, &jobs)?;
    }
    evaluate(arguments, formats.output, &mut inputs, &plans, &jobs)
}

struct Formats {
    inputs: Vec<Format>,
    output: Format,
}

/// Checks names and paths before any file is read.
fn check_files(arguments: &Eval) -> Result<Formats, Failure> {
    let mut names = HashSet::new();
    if let Some((twice, _)) = arguments.inputs.iter().find(|(n, _)| !names.insert(n)) {
        return Err(Failure::usage(format!("the input name `{}` is given twice", report::escaped(twice))));
    }
    let inputs = arguments.inputs.iter().map(|(_, p)| Format::of(p)).collect::<Result<_, _>>();
    let formats = Formats {
        inputs: inputs.map_err(Failure::usage)?,
        output: Format::of(&arguments.output).map_err(Failure::usage)?,
    };
    let wants_shards = matches!(formats.output, Format::SafeTensors | Format::Index);
    if arguments.max_shard_size.is_some() && !wants_shards {
        return Err(Failure::usage("--max-shard-size is for outputs .safetensors and .index.json"));
    }
    if arguments.compress && formats.output != Format::Npz {
        return Err(Failure::usage("--compress is for outputs .npz"));
    }
    let read: Vec<&Path> = arguments.inputs.iter().map(|(_, p)| p.as_path()).collect();
    outputs::check(std::slice::from_ref(&arguments.output), &read, arguments.force)?;
    Ok(formats)
}

/// Reads the expression for its own sake; answers the input names it uses.
fn check_expression(arguments: &Eval, settings: Settings) -> Result<HashSet<&str>, Failure> {
    let program = Program::with_settings(settings);
    for (name, _) in &arguments.inputs {
        program.data(name, DType::F32, ());
    }
    let refuse = |e: Error| Failure { text: report::of_expression(&arguments.expression, &e, &[]), code: 1 };
    program.expression(&arguments.expression).map_err(refuse)?;
    let mut used = HashSet::new();
    castwise::expr::parse_expression(&arguments.expression, |name| {
        used.extend(arguments.inputs.iter().map(|(n, _)| n.as_str()).filter(|n| *n == name));
        program.feed(name)
    })
    .map_err(refuse)?;
    Ok(used)
}

/// The tensor names that all checkpoints have, in the order of the first one; what others miss is reported. `None`
/// if all inputs are arrays.
fn shared_names(inputs: &[Input]) -> Result<Option<Vec<String>>, Failure> {
    let mut all: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    for input in inputs {
        all.extend(input.names().unwrap_or_default().into_iter().filter(|n| seen.insert(*n)));
    }
    if inputs.iter().all(|i| i.names().is_none()) {
        return Ok(None);
    }
    for input in inputs {
        let missing: Vec<&str> = all.iter().copied().filter(|n| !input.has(n)).collect();
        if !missing.is_empty() {
            let (name, path, count) = (report::escaped(&input.name), input.path.display(), missing.len());
            let s = if count == 1 { "a tensor" } else { &format!("{count} tensors") };
            say(&format!(
                "warning: `{name}` ({path}) lacks {s} that others have, left out: {}",
                report::names(missing)
            ));
        }
    }
    let shared: Vec<String> = all.iter().filter(|n| inputs.iter().all(|i| i.has(n))).map(ToString::to_string).collect();
    if shared.is_empty() {
        return Err(Failure { text: report::error("there is no tensor name that all inputs have"), code: 1 });
    }
    Ok(Some(shared))
}

/// Types every name from the headers: one plan for each signature. All refusals are reported together.
fn type_all(
    arguments: &Eval,
    settings: Settings,
    inputs: &[Input],
    names: Vec<String>,
) -> Result<(Vec<Plan>, Vec<Job>), Failure> {
    let mut known: HashMap<Signature, Result<usize, usize>> = HashMap::new();
    let (mut plans, mut jobs) = (Vec::new(), Vec::new());
    let mut refusals: Vec<(Error, Vec<String>)> = Vec::new();
    for name in names {
        let signature: Signature = match inputs.iter().map(|i| i.info(&name)).collect() {
            Ok(s) => s,
            Err(e) => {
                refusals.push((e, Vec::new()));
                continue;
            }
        };
        let plan = match known.get(&signature) {
            Some(known) => *known,
            None => {
                let plan = match plan(arguments, settings, inputs, &signature) {
                    Ok(p) => {
                        plans.push(p);
                        Ok(plans.len() - 1)
                    }
                    Err(e) => Err(match refusals.iter().position(|(other, _)| alike(other, &e)) {
                        Some(i) => i,
                        None => {
                            refusals.push((e, Vec::new()));
                            refusals.len() - 1
                        }
                    }),
                };
                known.insert(signature, plan);
                plan
            }
        };
        match plan {
            Ok(plan) => jobs.push(Job { name, plan }),
            Err(i) => refusals[i].1.push(name),
        }
    }
    if refusals.is_empty() {
        return Ok((plans, jobs));
    }
    let unnamed = inputs.iter().all(|i| i.names().is_none());
    let mut text: Vec<String> = Vec::new();
    for (e, names) in refusals.iter().take(REFUSALS) {
        let note = if names.len() == 1 { "in the tensor".to_string() } else { format!("in {} tensors:", names.len()) };
        let note = format!("{note} {}", report::names(names.iter().map(String::as_str)));
        let notes = if unnamed || names.is_empty() { Vec::new() } else { vec![note] };
        text.push(report::of_expression(&arguments.expression, e, &notes));
    }
    if refusals.len() > REFUSALS {
        text.push(report::error(&format!("(and {} more)", refusals.len() - REFUSALS)));
    }
    Err(Failure { text: text.join("\n"), code: 1 })
}

/// Whether two refusals say the same but for the shapes: which do not matter, unless they are what is refused.
fn alike(a: &Error, b: &Error) -> bool {
    let (a, b) = (a.diagnostics(), b.diagnostics());
    let same =
        |(x, y): (&Diagnostic, &Diagnostic)| x.fault == y.fault && x.place == y.place && x.fault != Fault::Broadcast;
    !a.is_empty() && a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The program for operands of these dtypes and shapes.
fn plan(arguments: &Eval, settings: Settings, inputs: &[Input], signature: &Signature) -> Result<Plan, Error> {
    let program = Program::with_settings(settings);
    for (input, (dtype, shape)) in inputs.iter().zip(signature) {
        program.data(&input.name, *dtype, shape.clone());
    }
    let mut result = program.expression(&arguments.expression)?;
    if let Some(dtype) = arguments.out_dtype {
        let place = Place::Text(0..arguments.expression.len() as u32);
        result = Graph::apply(Op::Cast, &[Operand::Var(result)], Attrs::cast(dtype), place);
    }
    let typed = program.infer()?;
    let unknown = || Error::Internal("a result without a type".into());
    let dtype = typed.dtype(&result).ok_or_else(unknown)?;
    let dims = typed.shape(&result).ok_or_else(unknown)?;
    let fixed = |d: &castwise::shape::SymDim| match d {
        castwise::shape::SymDim::Fixed(n) => Some(*n),
        castwise::shape::SymDim::Sym(_) => None,
    };
    let shape = dims.iter().map(fixed).collect::<Option<Vec<usize>>>().ok_or_else(unknown)?;
    Ok(Plan { program, result, dtype, shape })
}

/// Prints the typed program of each combination of dtypes and ranks.
fn explain(inputs: &[Input], plans: &[Plan], jobs: &[Job]) -> Result<(), Failure> {
    let mut kinds: Vec<Vec<&Job>> = Vec::new();
    let mut index: HashMap<Vec<(DType, usize)>, usize> = HashMap::new();
    for job in jobs {
        let kind: Result<_, Error> = inputs.iter().map(|i| i.info(&job.name).map(|(d, s)| (d, s.len()))).collect();
        let i = *index.entry(kind?).or_insert(kinds.len());
        match kinds.get_mut(i) {
            Some(of_kind) => of_kind.push(job),
            None => kinds.push(vec![job]),
        }
    }
    let mut text = String::new();
    for of_kind in &kinds {
        let Some(first) = of_kind.first() else { continue };
        if inputs.iter().any(|i| i.names().is_some()) {
            let more = if of_kind.len() > 1 { format!(" and {} like it", of_kind.len() - 1) } else { String::new() };
            text += &format!("`{}`{more}:\n", report::escaped(&first.name));
        }
        text += &plans[first.plan].program.infer()?.explain();
        text.push('\n');
    }
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Io { path: "stdout".into(), source: e }.into())
        }
        _ => Ok(()),
    }
}

/// Reads, computes and writes one name after the other.
fn evaluate(
    arguments: &Eval,
    format: Format,
    inputs: &mut [Input],
    plans: &[Plan],
    jobs: &[Job],
) -> Result<(), Failure> {
    let start = Instant::now();
    let list: Vec<_> =
        jobs.iter().map(|j| (j.name.clone(), plans[j.plan].dtype, plans[j.plan].shape.clone())).collect();
    let metadata = inputs.iter().find_map(Input::metadata).cloned().unwrap_or_default();
    let mut output = Output::create(arguments, format, inputs, &list, &metadata)?;
    let (mut read, mut written): (u64, u64) = (inputs.iter().map(Input::read_already).sum(), 0);
    let bar = progress(inputs, plans, jobs);
    let executor = Executor::new();
    for job in jobs {
        let plan = &plans[job.plan];
        let mut feeds = Vec::with_capacity(inputs.len());
        for input in inputs.iter_mut() {
            let (t, n) = input.load(&job.name)?;
            read += n;
            bar.inc(n);
            feeds.push((input.name.clone(), t));
        }
        let computed = executor.run(&plan.program, Feeds::from(feeds), [&plan.result]);
        let refuse = |e: Error| {
            let note = format!("in the tensor {}", report::names([job.name.as_str()]));
            let notes = if inputs.iter().all(|i| i.names().is_none()) { Vec::new() } else { vec![note] };
            Failure { text: report::of_expression(&arguments.expression, &e, &notes), code: 1 }
        };
        let computed = computed.map_err(refuse)?;
        let Some(t) = computed.first() else { return Err(Error::Internal("a run without a result".into()).into()) };
        output.write(&job.name, t)?;
        let n = bytes(t.dtype(), t.shape());
        written += n;
        bar.inc(n);
    }
    output.finish()?;
    bar.finish_and_clear();
    say(&summary(jobs.len(), read, written, start.elapsed()));
    Ok(())
}

/// A bar over all bytes to be read and written; nothing if stderr is not a terminal.
fn progress(inputs: &[Input], plans: &[Plan], jobs: &[Job]) -> ProgressBar {
    let of_job = |job: &Job| {
        let plan = &plans[job.plan];
        let checkpoints = inputs.iter().filter(|i| i.names().is_some());
        let read: u64 = checkpoints.filter_map(|i| i.info(&job.name).ok()).map(|(d, s)| bytes(d, &s)).sum();
        read + bytes(plan.dtype, &plan.shape)
    };
    let bar = ProgressBar::with_draw_target(Some(jobs.iter().map(of_job).sum()), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn summary(tensors: usize, read: u64, written: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let rate = HumanBytes(((read + written) as f64 / seconds.max(1e-9)) as u64);
    let memory = peak_memory().map_or(String::new(), |m| format!(", peak memory {}", HumanBytes(m)));
    let s = if tensors == 1 { "" } else { "s" };
    let (read, written) = (HumanBytes(read), HumanBytes(written));
    format!("{tensors} tensor{s}: {read} read, {written} written in {seconds:.2} s, {rate}/s{memory}")
}

/// The most memory this process has had, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
