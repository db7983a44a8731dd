//! `castwise run`: runs a program as text on tensors from files.
//!
//! Guarantees: before a tensor of an archive is read, the program's dtypes are inferred, and a tensor with the required
//! dtype and dims is found for every placeholder. The output has its name after everything is computed. Operands and results beyond the
//! memory for them are read, computed and written in parts, with the same bits. Does not: read ahead.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use castwise::io::StoredDType;
use castwise::shape::{Dim, Dims, SymDim};
use castwise::{Error, Executor, Feeds, NodeKind, Program, Tensor, TypedProgram, Var};
use indicatif::HumanBytes;

use super::args::Run;
use super::failure::{Failure, print, say, tell};
use super::format::Format;
use super::inputs::{Input, bytes, extents};
use super::metrics::{Metrics, timed};
use super::outputs::{self, Output};
use super::source::{Source, results, type_of};
use super::spec::InputSpec;
use super::stream::{Budget, Parts, Tiles};
use super::{report, show};

pub(super) fn run(arguments: &Run) -> Result<(), Failure> {
    let start = Instant::now();
    let mut metrics = Metrics::default();
    let format = check_arguments(arguments)?;
    let source = Source::read(&arguments.file)?;
    let (program, typed) = timed(&mut metrics.typing, || {
        let program = source.program()?;
        let typed = source.typed(&program)?;
        Ok::<_, Failure>((program, typed))
    })?;
    let (names, fetches): (Vec<String>, Vec<Var>) = chosen(&program, &arguments.fetch)?.into_iter().unzip();
    if matches!(format, Format::Npy | Format::Pipe) && fetches.len() > 1 {
        let count = fetches.len();
        let text =
            format!("a .npy file can't store {count} results: write .npz or .safetensors, or select one with --fetch");
        return Err(Failure::usage(text));
    }
    let mut inputs = Vec::new();
    for (name, spec) in &arguments.inputs {
        inputs.push(timed(&mut metrics.reading, || Input::open(name.as_deref().unwrap_or_default(), spec))?);
    }
    let found = found(&program, &typed, &inputs)?;
    if !arguments.quiet {
        unused(&inputs, &found);
    }
    let builder = Executor::builder();
    let executor = arguments.threads.map_or(builder.clone(), |n| builder.threads(n.into())).build();
    let mut run = Running { arguments, format, source: &source, executor, names, inputs, found, metrics };
    let count = match run.in_parts(&typed, &fetches)? {
        Some(count) => count,
        None => run.whole(&program, &fetches)?,
    };
    run.metrics.total = start.elapsed();
    if !arguments.quiet && !matches!(format, Format::Text | Format::Pipe) {
        say(&run.metrics.summary(count));
    }
    Ok(())
}

/// A program whose operands are found.
struct Running<'a> {
    arguments: &'a Run,
    format: Format,
    source: &'a Source,
    executor: Executor,
    names: Vec<String>,
    inputs: Vec<Input>,
    found: Vec<Found>,
    metrics: Metrics,
}

impl Running<'_> {
    /// The files that are read.
    fn read(&self) -> Vec<&Path> {
        let mut read: Vec<&Path> = self.inputs.iter().flat_map(Input::files).collect();
        read.push(&self.arguments.file);
        read
    }

    /// Runs the program on whole tensors. Returns the number of results.
    fn whole(&mut self, program: &Program, fetches: &[Var]) -> Result<usize, Failure> {
        let mut feeds: Vec<(String, Tensor)> = Vec::new();
        for Found { placeholder, input, member } in &self.found {
            let (t, n) = timed(&mut self.metrics.reading, || self.inputs[*input].load(member))?;
            self.metrics.read += n;
            feeds.push((placeholder.clone(), t));
        }
        let executor = &self.executor;
        let computed = timed(&mut self.metrics.compute, || executor.run(program, Feeds::from(feeds), fetches));
        let computed = computed.map_err(|e| self.source.failure(&e))?;
        self.metrics.compile = executor.stats().compiling;
        self.metrics.compute = self.metrics.compute.saturating_sub(self.metrics.compile);
        let entry = |(name, t): (&String, &Tensor)| (name.clone(), t.dtype().into(), t.shape().to_vec());
        let list: Vec<_> = self.names.iter().zip(&computed).map(entry).collect();
        let began = Instant::now();
        let mut output = Output::create(&self.arguments.target, self.format, &self.read(), &list, &BTreeMap::new())?;
        for (name, t) in self.names.iter().zip(&computed) {
            output.write(None, Some(name), t)?;
        }
        self.finish(output)?;
        self.metrics.writing += began.elapsed();
        self.metrics.written = computed.iter().map(|t| bytes(t.dtype(), t.shape())).sum();
        Ok(computed.len())
    }

    /// Finishes the output, or prints the results.
    fn finish(&self, mut output: Output) -> Result<(), Failure> {
        let shown = output.shown();
        output.finish()?;
        match (self.format, self.arguments.json) {
            (Format::Text, true) => print(&show::lines(&shown)),
            (Format::Text, false) => print(&show::text(&shown)),
            _ => Ok(()),
        }
    }

    /// Runs the program in parts, if operands and results are beyond the memory for them. Returns the number of results; `None` if the
    /// whole is to be run.
    fn in_parts(&mut self, typed: &TypedProgram, fetches: &[Var]) -> Result<Option<usize>, Failure> {
        let mut size = 0u64;
        for f in &self.found {
            let (dtype, dims) = self.inputs[f.input].info(&f.member)?;
            size = size.saturating_add(bytes(dtype, &extents(&dims)));
        }
        let budget = Budget::of(self.arguments.memory);
        let (sized, results) = self.sized(typed, fetches).map_err(|e| self.source.failure(&e))?;
        let nodes: Vec<_> = sized.nodes().collect();
        let shape = |n: usize| nodes.get(n).map(|n| known(n.shape)).unwrap_or_default();
        let entry = |(name, n): (&String, &usize)| (name.clone(), nodes[*n].dtype.into(), shape(*n));
        let list: Vec<(String, StoredDType, Vec<usize>)> = self.names.iter().zip(&results).map(entry).collect();
        let made: u64 = results.iter().map(|n| bytes(nodes[*n].dtype, &shape(*n))).sum();
        let size = size.saturating_add(made);
        if size <= budget.bytes {
            return Ok(None);
        }
        let written = matches!(self.format, Format::Npy | Format::SafeTensors | Format::Index | Format::Folder);
        let mut parts = RunParts { inputs: &mut self.inputs, found: &self.found, output: None, list: &list, read: 0 };
        let tiles = match Tiles::new(&sized, results, &parts, written, budget) {
            Ok(tiles) => tiles,
            Err(why) => {
                let text = format!("the program needs {} for its operands and results", HumanBytes(size));
                if budget.given {
                    let text = format!(
                        "{text}, more than --memory {}, and is not run in parts: {why}",
                        HumanBytes(budget.bytes)
                    );
                    return Err(Failure { text: report::error(&text), code: 1 });
                }
                let left = HumanBytes(budget.bytes);
                tell(
                    &[format!("warning: {text}, where {left} are left for them, and is not run in parts: {why}")],
                    false,
                );
                return Ok(None);
            }
        };
        let mut read: Vec<PathBuf> = parts.inputs.iter().flat_map(Input::files).map(Path::to_path_buf).collect();
        read.push(self.arguments.file.clone());
        let read: Vec<&Path> = read.iter().map(PathBuf::as_path).collect();
        parts.output = Some(Output::create(&self.arguments.target, self.format, &read, &list, &BTreeMap::new())?);
        let ran = timed(&mut self.metrics.compute, || tiles.run(&mut parts, &self.executor));
        let resident = ran.map_err(|e| self.source.failure(&e))?;
        let (output, read) = (parts.output.take(), parts.read);
        let mut output = output.ok_or_else(|| Error::Internal("an output that has gone".into()))?;
        for (i, t) in resident {
            output.write(None, Some(&self.names[i]), &t)?;
        }
        let began = Instant::now();
        self.finish(output)?;
        self.metrics.writing += began.elapsed();
        (self.metrics.read, self.metrics.written) = (read, made);
        self.metrics.compile = self.executor.stats().compiling;
        self.metrics.compute = self.metrics.compute.saturating_sub(self.metrics.compile);
        Ok(Some(list.len()))
    }

    /// The program for the extents of its operands, and the nodes of the results.
    fn sized(&self, typed: &TypedProgram, fetches: &[Var]) -> Result<(TypedProgram, Vec<usize>), Error> {
        let program = Program::with_settings(typed.settings());
        let lost = || Error::Internal("a result has no place".into());
        let vars = typed.rewrite_into(&program, |n| {
            let NodeKind::Feed(name) = n.view().kind else { return n.copy_explicit() };
            let found = self.found.iter().find(|f| f.placeholder == name).ok_or_else(lost)?;
            let (dtype, dims) = self.inputs[found.input].info(&found.member)?;
            let new = if n.view().weak { Program::weak_data } else { Program::data };
            Ok(new(n.program(), name, dtype, Dims(dims)))
        })?;
        let wanted: Option<Vec<Var>> = fetches.iter().map(|v| vars.get(typed.position(v)?).cloned()).collect();
        let wanted = wanted.ok_or_else(lost)?;
        let sized = program.infer()?;
        let nodes: Option<Vec<usize>> = wanted.iter().map(|v| sized.position(v)).collect();
        Ok((sized, nodes.ok_or_else(lost)?))
    }
}

fn known(dims: &[SymDim]) -> Vec<usize> {
    dims.iter().map(|d| if let SymDim::Fixed(n) = d { *n } else { 0 }).collect()
}

/// The operands and results of a program that is run in parts.
struct RunParts<'a> {
    inputs: &'a mut [Input],
    found: &'a [Found],
    output: Option<Output>,
    list: &'a outputs::List,
    /// Bytes that were read.
    read: u64,
}

impl Parts for RunParts<'_> {
    fn find(&self, name: &str) -> Option<usize> {
        self.found.iter().position(|f| f.placeholder == name)
    }

    fn has_parts(&self, operand: usize) -> bool {
        self.inputs[self.found[operand].input].has_parts()
    }

    fn whole(&mut self, name: &str) -> Result<Tensor, Error> {
        let at = self.find(name).ok_or_else(|| Error::Internal("an operand without a file".into()))?;
        let (t, n) = self.inputs[self.found[at].input].load(&self.found[at].member)?;
        self.read += n;
        Ok(t)
    }

    fn part(&mut self, operand: usize, first: usize, into: &mut Tensor, _: bool) -> Result<(), Error> {
        let f = &self.found[operand];
        self.inputs[f.input].load_part(&f.member, first, into)?;
        self.read += bytes(into.dtype(), into.shape());
        Ok(())
    }

    fn rows(&mut self, result: usize, rows: &Tensor) -> Result<(), Error> {
        let output = self.output.as_mut().ok_or_else(|| Error::Internal("an output that has gone".into()))?;
        let (name, _, shape) = &self.list[result];
        output.write_part(None, Some(name), shape, rows)
    }
}

/// Checks input names and paths before any file is read.
fn check_arguments(arguments: &Run) -> Result<Format, Failure> {
    let inputs: Vec<&Path> = arguments.inputs.iter().filter_map(|(_, spec)| spec.file()).collect();
    let format = outputs::format(&arguments.target, &inputs, false)?;
    if let Some(output) = arguments.target.output.as_ref().filter(|_| !matches!(format, Format::Pipe | Format::Folder))
    {
        outputs::check(std::slice::from_ref(output), &[&arguments.file])?;
    }
    let streams = arguments.inputs.iter().filter(|(_, spec)| matches!(spec, InputSpec::Stdin)).count();
    if streams + usize::from(arguments.file == Path::new("-")) > 1 {
        return Err(Failure::usage("standard input is given twice: as the program or as inputs"));
    }
    let mut names = HashSet::new();
    for (name, spec) in &arguments.inputs {
        match name {
            Some(name) if !names.insert(name) => {
                return Err(Failure::usage(format!("the input `{}` is given twice", report::escaped(name))));
            }
            None => {
                if let Some(text) = one(spec) {
                    return Err(Failure::usage(format!("{text} needs the name of its placeholder: -i NAME={text}")));
                }
            }
            Some(_) => {}
        }
    }
    Ok(format)
}

/// The text of an input that is one array. It needs a name, since neither a .npy file nor a member names a placeholder.
fn one(spec: &InputSpec) -> Option<String> {
    match spec {
        InputSpec::File(path) if Format::of(path) == Ok(Format::Npy) => Some(path.display().to_string()),
        InputSpec::Stdin => Some("-".to_string()),
        InputSpec::Member(path, member) => Some(format!("{}:{member}", path.display())),
        _ => None,
    }
}

/// The results to be computed, with the names that they are written under.
fn chosen(program: &Program, wanted: &[String]) -> Result<Vec<(String, Var)>, Failure> {
    let all = results(program);
    if all.is_empty() {
        return Err(Failure { text: report::error("the program has no results"), code: 1 });
    }
    let mut names = HashSet::new();
    if let Some((twice, _)) = all.iter().find(|(n, _)| !names.insert(n.as_str())) {
        let text = format!(
            "two results have the name `{}`: one of them has no name in the program and needs one",
            report::escaped(twice)
        );
        return Err(Failure { text: report::error(&text), code: 1 });
    }
    if wanted.is_empty() {
        return Ok(all);
    }
    let mut chosen: Vec<(String, Var)> = Vec::new();
    for name in wanted {
        let Some(result) = all.iter().find(|(n, _)| n == name) else {
            let known = report::names(all.iter().map(|(n, _)| n.as_str()));
            return Err(Failure::usage(format!("there is no result `{}`; there are {known}", report::escaped(name))));
        };
        if chosen.iter().any(|(n, _)| n == name) {
            return Err(Failure::usage(format!("--fetch names `{}` twice", report::escaped(name))));
        }
        chosen.push(result.clone());
    }
    Ok(chosen)
}

/// The location of a placeholder's tensor.
struct Found {
    placeholder: String,
    input: usize,
    member: String,
}

/// Finds the tensors of all placeholders, and checks the dtype and dims of each.
fn found(program: &Program, typed: &TypedProgram, inputs: &[Input]) -> Result<Vec<Found>, Failure> {
    let placeholders = program.feed_names();
    if let Some(i) = inputs.iter().find(|i| !i.name.is_empty() && !placeholders.contains(&i.name)) {
        let known = match &placeholders[..] {
            [] => "it has no placeholders".to_string(),
            all => format!("it has {}", report::names(all.iter().map(String::as_str))),
        };
        let text = format!("the program has no placeholder `{}`; {known}", report::escaped(&i.name));
        return Err(Failure::usage(text));
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for placeholder in placeholders {
        let input = match inputs.iter().position(|i| i.name == placeholder) {
            Some(i) => Some(i),
            None => unnamed(&placeholder, inputs)?,
        };
        let Some(input) = input else {
            missing.push(placeholder);
            continue;
        };
        let member = member(&placeholder, &inputs[input])?;
        check_type(program, typed, &placeholder, &inputs[input], &member)?;
        found.push(Found { placeholder, input, member });
    }
    if missing.is_empty() {
        return Ok(found);
    }
    let s = if missing.len() == 1 { "" } else { "s" };
    let have = if missing.len() == 1 { "has" } else { "have" };
    let missing = report::names(missing.iter().map(String::as_str));
    Err(Failure::usage(format!("the placeholder{s} {missing} {have} no tensor: use -i NAME=FILE")))
}

/// The file that is given without a name and has a tensor with this name.
fn unnamed(placeholder: &str, inputs: &[Input]) -> Result<Option<usize>, Failure> {
    let mut all = inputs.iter().enumerate().filter(|(_, i)| i.name.is_empty() && i.has(placeholder));
    match (all.next(), all.next()) {
        (Some((_, a)), Some((_, b))) => {
            let name = report::escaped(placeholder);
            let (a, b) = (a.path.display(), b.path.display());
            Err(Failure::usage(format!("{a} and {b} both have a tensor `{name}`: select one with -i {name}=FILE")))
        }
        (first, _) => Ok(first.map(|(i, _)| i)),
    }
}

/// The name of the tensor that feeds a placeholder: the placeholder's name, or the only tensor of the file.
fn member(placeholder: &str, input: &Input) -> Result<String, Failure> {
    // `names` is called only if `has` is false, since there may be many names and many placeholders.
    if input.has(placeholder) {
        return Ok(placeholder.to_string());
    }
    match input.names().as_deref() {
        Some([only]) => Ok(only.to_string()),
        Some(all) => {
            let (name, path, count) = (report::escaped(placeholder), input.path.display(), all.len());
            let text = format!("{path}: none of its {count} tensors has the name `{name}`");
            Err(Failure { text: report::error(&text), code: 1 })
        }
        None => Ok(placeholder.to_string()),
    }
}

/// Refuses a tensor whose dtype, rank or fixed dims differ from those of its placeholder.
fn check_type(
    program: &Program,
    typed: &TypedProgram,
    placeholder: &str,
    input: &Input,
    member: &str,
) -> Result<(), Failure> {
    let (dtype, dims) = input.info(member)?;
    let unknown = || Error::Internal("the placeholder has no type".into());
    let v = program.feed(placeholder).ok_or_else(unknown)?;
    let declared = typed.shape(&v).ok_or_else(unknown)?;
    let fits = |(d, got): (&SymDim, &Dim)| match (d, got) {
        (SymDim::Fixed(a), Dim::Fixed(b)) => a == b,
        _ => true,
    };
    if typed.dtype(&v) == Some(dtype) && declared.len() == dims.len() && declared.iter().zip(&dims).all(fits) {
        return Ok(());
    }
    let (path, name, wanted) = (input.path.display(), report::escaped(placeholder), type_of(typed, &v));
    let text = format!("{path}: the placeholder `{name}` is {wanted}, but the tensor is {dtype}{}", Dims(dims));
    Err(Failure { text: report::error(&text), code: 1 })
}

/// Prints a note for each file that is not used.
fn unused(inputs: &[Input], found: &[Found]) {
    let unused = |(i, _): &(usize, &Input)| !found.iter().any(|f| f.input == *i);
    let paths: Vec<&PathBuf> = inputs.iter().enumerate().filter(unused).map(|(_, i)| &i.path).collect();
    for path in paths {
        say(&format!("note: no tensor of {} has the name of a placeholder without a tensor", path.display()));
    }
}
