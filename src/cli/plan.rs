//! The tensor names that expressions are evaluated for, and the program for each.
//!
//! Guarantees: inference uses dtypes and shapes only. Names with equal expression, dtypes, shapes and scalars have one
//! program. All errors are reported together. Does not: read elements.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use castwise::shape::{Dim, Dims, SymDim};
use castwise::{
    Attrs, DType, Error, Graph, Mode, NodeKind, Op, Operand, Program, Reason, Scalar, Settings, SourceLocation,
    TypedProgram, Var,
};
use regex::Regex;

use super::args::Common;
use super::expression::{Expression, read_expression};
use super::failure::{Failure, tell};
use super::findings::findings;
use super::format::Format;
use super::inputs::{self, Input, bytes, no_input};
use super::out_dtype::{Conversion, OutDtype};
use super::recipe::{Recipes, Values};
use super::refusals::{Refusal, Refusals};
use super::report::{in_tensors, tensors};
use super::scalars::{OfTensors, Scalars};
use super::spec::{InputSpec, Missing, Rename, UNNAMED};
use super::unchanged::{self, Unchanged};
use super::{members, missing, report};

/// The maximum number of different errors that are shown.
const REFUSALS: usize = 10;

/// A program for operands of certain dtypes and shapes, and its result.
pub(super) struct Plan {
    pub(super) expression: usize,
    pub(super) typed: TypedProgram,
    pub(super) program: Program,
    /// The result, or the first of several, and its dtype.
    pub(super) result: Var,
    pub(super) dtype: DType,
    /// All results.
    pub(super) results: Vec<Outcome>,
    /// The conversion of the result by `--out-dtype`.
    pub(super) conversion: Conversion,
    /// Whether an op has operands of different dtypes, so that the rule set matters.
    mixes: bool,
    /// The scalars of the expression.
    pub(super) values: Vec<(String, Scalar)>,
    form: Form,
}

/// A result of an expression.
pub(super) struct Outcome {
    /// The name that the expression gives it.
    pub(super) name: Option<String>,
    pub(super) var: Var,
    pub(super) dtype: DType,
    dims: Vec<SymDim>,
}

impl Outcome {
    fn new(name: Option<String>, var: Var, typed: &TypedProgram) -> Result<Outcome, Error> {
        let unknown = || Error::Internal("the result has no type".into());
        let (dtype, dims) = (typed.dtype(&var).ok_or_else(unknown)?, typed.shape(&var).ok_or_else(unknown)?.to_vec());
        Ok(Outcome { name, var, dtype, dims })
    }

    /// The shape, which is known if all inputs are files.
    pub(super) fn shape(&self) -> Result<Vec<usize>, Error> {
        let fixed = |d: &SymDim| match d {
            SymDim::Fixed(n) => Ok(*n),
            SymDim::Sym(_) => Err(Error::Internal("the result has no shape".into())),
        };
        self.dims.iter().map(fixed).collect()
    }

    /// The name, dtype and shape as text.
    fn described(&self) -> String {
        let dims: Vec<String> = self.dims.iter().map(ToString::to_string).collect();
        let name = self.name.as_ref().map_or(String::new(), |n| format!("`{}` ", report::escaped(n)));
        format!("{name}{}[{}]", self.dtype, dims.join(", "))
    }
}

/// The properties, besides the inputs, by which plans are grouped in the output: the ops and dtypes of all nodes, which
/// depend on the categories of scalars too, and the losses, which depend on their values.
type Form = (Vec<(Option<Op>, DType)>, Vec<String>);

fn form(typed: &TypedProgram, text: &str) -> Form {
    let op = |k: &NodeKind<'_>| match k {
        NodeKind::Apply { op, .. } | NodeKind::Reduce { op, .. } | NodeKind::Line { op, .. } => Some(*op),
        NodeKind::Cast { .. } => Some(Op::Cast),
        _ => None,
    };
    let nodes = typed.nodes().map(|n| (op(&n.kind), n.dtype)).collect();
    (nodes, findings(typed, text).into_iter().map(|f| f.label).collect())
}

impl Plan {
    /// The shape of the first result, which is known if all inputs are files.
    pub(super) fn shape(&self) -> Result<Vec<usize>, Error> {
        self.results.first().ok_or_else(|| Error::Internal("a plan without results".into()))?.shape()
    }

    /// The size of all results in bytes.
    pub(super) fn bytes(&self) -> Result<u64, Error> {
        let sizes = self.results.iter().map(|r| Ok::<_, Error>(bytes(r.dtype, &r.shape()?)));
        sizes.sum()
    }

    /// The results.
    pub(super) fn vars(&self) -> Vec<Var> {
        self.results.iter().map(|r| r.var.clone()).collect()
    }

    /// The results with the names that the expression gives them.
    pub(super) fn named_vars(&self) -> Vec<(Option<String>, Var)> {
        self.results.iter().map(|r| (r.name.clone(), r.var.clone())).collect()
    }

    /// The dtypes and shapes of the results as text.
    pub(super) fn result_type(&self) -> String {
        self.results.iter().map(Outcome::described).collect::<Vec<_>>().join(", ")
    }
}

/// A tensor name to evaluate, and its plan.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) plan: usize,
}

/// The work of a command: its inputs and expressions, with dtypes and shapes inferred.
pub(super) struct Work {
    pub(super) inputs: Vec<Input>,
    pub(super) expressions: Vec<Expression>,
    pub(super) plans: Vec<Plan>,
    pub(super) jobs: Vec<Job>,
    /// The tensors that are copied as bytes.
    pub(super) unchanged: Vec<Unchanged>,
    pub(super) out: OutDtype,
    /// Whether the tensors have names.
    pub(super) named: bool,
    /// What recipes give to the expressions.
    pub(super) values: Values,
    /// Notes and warnings for standard error.
    pub(super) notes: Vec<String>,
    /// The files in the arguments that are not outputs.
    read: Vec<PathBuf>,
}

/// Infers the dtypes of expressions over inputs. An expression of `maps` takes precedence over `rest`.
pub(super) fn prepare(common: &Common, maps: &[(Regex, String)], rest: Option<&str>) -> Result<Work, Failure> {
    let (recipes, common) = Recipes::of(common, maps.iter().map(|(_, text)| text.as_str()).chain(rest))?;
    let common = common.as_ref();
    let seed = common.seed.map(|s| ("seed".to_string(), s.to_string().into())).filter(|_| recipes.is_empty());
    let scalars = Scalars::read(&common.parameters.iter().cloned().chain(seed).collect::<Vec<_>>())?;
    check_names(common, &scalars)?;
    let mut expressions = Vec::new();
    for (pattern, text) in maps {
        expressions.push((text.clone(), format!("--map {}", report::escaped(pattern.as_str())), Some(pattern.clone())));
    }
    expressions.extend(rest.map(|text| (text.to_string(), "EXPR".to_string(), None)));
    let read =
        |(text, path, pattern): (String, String, Option<Regex>)| match recipes.expression(common, &text, &pattern) {
            Some(recipe) => Ok(recipe),
            None => read_expression(common, &scalars, text, path, pattern),
        };
    let mut expressions = expressions.into_iter().map(read).collect::<Result<Vec<Expression>, Failure>>()?;

    let mut notes = Vec::new();
    let (mut inputs, mut position) = (Vec::new(), HashMap::new());
    for (i, (name, spec)) in common.specs().iter().enumerate() {
        let copied = matches!(&common.missing, Some(Missing::Copy(Some(from))) if from == name);
        if copied || expressions.iter().any(|e| e.uses.contains(&i)) {
            position.insert(i, inputs.len());
            inputs.push(Input::of(common, name, spec, &mut notes)?);
        } else {
            notes.push(format!("note: the expression does not use the input `{}`", report::escaped(name)));
        }
    }
    for e in &mut expressions {
        e.uses.iter_mut().for_each(|u| *u = position.get(u).copied().unwrap_or_default());
    }
    for name in scalars.names().filter(|n| !expressions.iter().any(|e| e.parameters.iter().any(|p| p == n))) {
        notes.push(format!("note: the expression does not use the parameter `{}`", report::escaped(name)));
    }
    let named = inputs.iter().any(Input::is_named);
    let by_name = !maps.is_empty() || common.select.is_some() || common.skip.is_some() || common.missing.is_some();
    if by_name && !named {
        let text = "--map, --select, --skip and --missing need an input with several tensors: .safetensors, .index.json or .npz";
        return Err(Failure::usage(text));
    }
    missing::check(common.missing.as_ref(), &inputs)?;
    if common.tied {
        inputs::tie(&mut inputs, &mut notes);
    }
    notes.extend(members::hints(&inputs));
    let mut read: Vec<PathBuf> =
        common.inputs.iter().filter_map(|(_, spec)| spec.file().map(Path::to_path_buf)).collect();
    read.extend(scalars.files().map(Path::to_path_buf));
    read.extend(recipes.files().chain(&common.config).cloned());
    let (plans, jobs) = (Vec::new(), Vec::new());
    let unchanged = Vec::new();
    let (out, values) = (common.out(), Values::default());
    let mut work = Work { inputs, expressions, plans, jobs, unchanged, out, named, values, notes, read };
    let names = work.names(common, &recipes)?;
    work.type_all(common, &scalars, names)?;
    let unconverted = work.unconverted();
    work.notes.extend(unconverted);
    work.notes.extend(unchanged::note(&work.unchanged));
    Ok(work)
}

/// Checks the names and the formats of inputs and parameters before any file is read.
fn check_names(common: &Common, scalars: &Scalars) -> Result<(), Failure> {
    let mut names = HashSet::new();
    let inputs = common.specs();
    if let Some(twice) = inputs.iter().map(|(n, _)| *n).chain(scalars.names()).find(|n| !names.insert(*n)) {
        return Err(Failure::usage(format!("the input name `{}` is given twice", report::escaped(twice))));
    }
    if common.inputs.iter().filter(|(_, spec)| matches!(spec, InputSpec::Stdin)).count() > 1 {
        return Err(Failure::usage("two inputs are standard input"));
    }
    if common.inputs.is_empty() {
        return Err(Failure::usage("an expression needs an input: -i NAME=FILE"));
    }
    for path in common.inputs.iter().filter_map(|(_, spec)| spec.file()) {
        Format::of(path).map_err(Failure::usage)?;
    }
    let unknown = |r: &&Rename| !common.inputs.iter().any(|(name, _)| *name == r.input);
    match common.rename.iter().find(unknown) {
        Some(rule) => Err(no_input("rename", &rule.input)),
        None => Ok(()),
    }
}

impl Work {
    /// The values of all parameters for these names. Adds warnings about keys that match none of them.
    fn parameters<'s>(&mut self, scalars: &'s Scalars, names: &[&str]) -> Result<OfTensors<'s>, Failure> {
        let used = |parameter: &str| self.expressions.iter().any(|e| e.parameters.iter().any(|p| p == parameter));
        let has = |i: &Input, name: &str| i.is_named() && i.has(name);
        let is_tensor = |key: &str| if self.named { self.inputs.iter().any(|i| has(i, key)) } else { key == UNNAMED };
        let values = scalars.of_tensors(names, used, is_tensor)?;
        for (parameter, keys) in &values.unused {
            let (s, es) = if keys.len() == 1 { ("", "es") } else { ("s", "") };
            let (parameter, keys) = (report::escaped(parameter), report::names(keys.iter().copied()));
            self.notes.push(format!("warning: `{parameter}`: the key{s} {keys} match{es} no tensor's name"));
        }
        Ok(values)
    }

    /// Infers the dtypes of every name, with one plan for each combination. All errors are reported together.
    fn type_all(&mut self, common: &Common, scalars: &Scalars, names: Vec<(String, usize)>) -> Result<(), Failure> {
        type Key = (usize, Vec<(DType, Vec<Dim>)>, Vec<String>);
        let parameters = self.parameters(scalars, &names.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>())?;
        let mut known: HashMap<Key, Result<usize, usize>> = HashMap::new();
        let mut refusals = Refusals::default();
        for (i, (name, e)) in names.iter().enumerate() {
            let expression = &self.expressions[*e];
            if let Some(copied) = Unchanged::of(name, expression, &self.inputs).filter(|_| !self.out.converts_all()) {
                self.unchanged.push(copied);
                continue;
            }
            let types: Vec<(DType, Vec<Dim>)> =
                match expression.uses.iter().map(|i| self.inputs[*i].info(name)).collect() {
                    Ok(t) => t,
                    Err(e) => {
                        refusals.add(e, None, String::new);
                        continue;
                    }
                };
            let mut values = Vec::new();
            for p in &expression.parameters {
                if let Some(v) = parameters.value(p, i, name)? {
                    let seed = common.seed.filter(|_| p == "seed").map(|s| Recipes::seed(s, name));
                    values.push((p.as_str(), seed.unwrap_or(v)));
                }
            }
            let of_recipe = self.values.numbers.get(name).map(|all| all.iter().map(|(n, v)| (n.as_str(), *v)));
            values.extend(of_recipe.into_iter().flatten());
            let key = (*e, types, values.iter().map(|(_, v)| format!("{v:?}")).collect());
            let plan = match known.get(&key) {
                Some(known) => *known,
                None => {
                    let plan = match self.plan(common, *e, &key.1, &values) {
                        Ok(p) => {
                            self.plans.push(p);
                            Ok(self.plans.len() - 1)
                        }
                        Err(error) => Err(refusals.add(error, Some(*e), || {
                            let differ = values.iter().filter(|(p, _)| scalars.only(p).is_none());
                            let of = |(p, v): &(&str, Scalar)| format!("`{}` is {v}", report::escaped(p));
                            differ.map(of).collect::<Vec<_>>().join(", ")
                        })),
                    };
                    known.insert(key, plan);
                    plan
                }
            };
            match plan {
                Ok(plan) => self.jobs.push(Job { name: name.clone(), plan }),
                Err(i) => refusals.all[i].names.push(name),
            }
        }
        if refusals.all.is_empty() { Ok(()) } else { Err(self.refused(&refusals.all)) }
    }

    /// All errors as one failure.
    fn refused(&self, refusals: &[Refusal<'_>]) -> Failure {
        let mut text: Vec<String> = Vec::new();
        for Refusal { error, expression, names, values } in refusals.iter().take(REFUSALS) {
            let mut notes = Vec::new();
            if self.named && !names.is_empty() {
                let of = if names.len() > 1 { " for the first one" } else { "" };
                let values = if values.is_empty() { String::new() } else { format!("; {values}{of}") };
                notes.push(in_tensors(names) + &values);
            }
            let (source, path) = expression
                .and_then(|i| self.expressions.get(i))
                .map_or(("", "EXPR"), |e| (e.text.as_str(), e.path.as_str()));
            text.push(report::of_expression(source, path, error, &notes));
        }
        if refusals.len() > REFUSALS {
            text.push(report::error(&format!("(and {} more)", refusals.len() - REFUSALS)));
        }
        Failure { text: text.join("\n"), code: 1 }
    }

    /// Replaces the text of an expression, whose inputs stay the same, and types its programs anew.
    pub(super) fn rewrite(&mut self, common: &Common, expression: usize, text: &str) -> Result<(), Error> {
        let Some(e) = self.expressions.get_mut(expression) else { return Ok(()) };
        e.text = text.to_string();
        for at in 0..self.plans.len() {
            let Some(job) = self.jobs.iter().find(|j| j.plan == at && self.plans[at].expression == expression) else {
                continue;
            };
            let types = self.expressions[expression].uses.iter().map(|i| self.inputs[*i].info(&job.name));
            let types = types.collect::<Result<Vec<_>, Error>>()?;
            let values: Vec<_> = self.plans[at].values.iter().map(|(n, v)| (n.as_str(), *v)).collect();
            self.plans[at] = self.plan(common, expression, &types, &values)?;
        }
        Ok(())
    }

    /// The plan for operands of these dtypes and shapes.
    fn plan(
        &self,
        common: &Common,
        expression: usize,
        types: &[(DType, Vec<Dim>)],
        values: &[(&str, Scalar)],
    ) -> Result<Plan, Error> {
        let e = &self.expressions[expression];
        let operands: Vec<_> =
            e.uses.iter().zip(types).map(|(i, t)| (self.inputs[*i].name.as_str(), t.0, t.1.clone())).collect();
        plan(common.settings(), expression, &e.text, self.out, &operands, values)
    }

    /// Whether a plan has mixed dtypes, so that the rule set matters.
    pub(super) fn mixes(&self) -> bool {
        self.plans.iter().any(|p| p.mixes)
    }

    /// The files that are read. None of them may be an output.
    pub(super) fn files(&self) -> Vec<&Path> {
        let opened = self.inputs.iter().flat_map(Input::files);
        opened.chain(self.read.iter().map(PathBuf::as_path)).collect()
    }

    /// Prints notes and warnings; only warnings if `quiet`.
    pub(super) fn tell(&self, quiet: bool) {
        tell(&self.notes, quiet);
    }

    /// Groups jobs by expression, dtypes, ranks and [`Form`], in the order of the first job of each group.
    pub(super) fn kinds(&self) -> Result<Vec<Vec<&Job>>, Error> {
        let mut kinds: Vec<Vec<&Job>> = Vec::new();
        type Key<'f> = (usize, Vec<(DType, usize)>, &'f Form);
        let mut index: HashMap<Key<'_>, usize> = HashMap::new();
        for job in &self.jobs {
            let Plan { expression, form, .. } = &self.plans[job.plan];
            let expression = *expression;
            let of_input = |i: &usize| self.inputs[*i].info(&job.name).map(|(d, s)| (d, s.len()));
            let types: Result<Vec<_>, Error> = self.expressions[expression].uses.iter().map(of_input).collect();
            let i = *index.entry((expression, types?, form)).or_insert(kinds.len());
            match kinds.get_mut(i) {
                Some(of_kind) => of_kind.push(job),
                None => kinds.push(vec![job]),
            }
        }
        Ok(kinds)
    }

    /// The plan and the expression of a job.
    pub(super) fn of(&self, job: &Job) -> (&Plan, &Expression) {
        let plan = &self.plans[job.plan];
        (plan, &self.expressions[plan.expression])
    }

    /// The tensor name of a job, if the tensors have names.
    pub(super) fn tensor<'j>(&self, job: &'j Job) -> Option<&'j str> {
        self.named.then_some(job.name.as_str())
    }

    /// The heading of the output about a group of jobs; empty if the tensors have no names.
    pub(super) fn heading(&self, kind: &[&Job]) -> String {
        let (Some(first), true) = (kind.first(), self.named) else { return String::new() };
        let more = if kind.len() > 1 { format!(" and {} like it", kind.len() - 1) } else { String::new() };
        format!("`{}`{more}:\n", report::escaped(&first.name))
    }
}

/// The plan of an expression for operands of these names, dtypes and shapes.
pub(super) fn plan(
    settings: Settings,
    expression: usize,
    text: &str,
    out: OutDtype,
    operands: &[(&str, DType, Vec<Dim>)],
    values: &[(&str, Scalar)],
) -> Result<Plan, Error> {
    let program = Program::with_settings(settings);
    let data = |(name, dtype, dims): &(&str, DType, Vec<Dim>)| program.data(name, *dtype, Dims(dims.clone()));
    let inputs: Vec<Var> = operands.iter().map(data).collect();
    let mut results = match (operands, &inputs[..]) {
        // `--missing copy` also copies from an input whose name is not valid in an expression.
        ([(name, ..)], [input]) if *name == text => vec![(None, input.clone())],
        _ => program.results_with(text, |name| values.iter().find(|(p, _)| *p == name).map(|(_, v)| *v))?,
    };
    let types: Vec<(DType, usize)> = operands.iter().map(|(_, dtype, dims)| (*dtype, dims.len())).collect();
    let location = SourceLocation::Text(0..text.len() as u32);
    let conversion = match &mut results[..] {
        [(None, result)] => {
            let conversion = out.conversion(&types, &program, result, location.clone())?;
            if let Conversion::Converted(dtype) | Conversion::Back(dtype) = conversion {
                *result = Graph::apply(Op::Cast, &[Operand::Var(result.clone())], Attrs::cast(dtype), location);
            }
            conversion
        }
        named => out.convert_named(&types, &program, named, &location)?,
    };
    let typed = program.infer()?;
    let of = |(name, var): (Option<String>, Var)| Outcome::new(name, var, &typed);
    let results = results.into_iter().map(of).collect::<Result<Vec<Outcome>, Error>>()?;
    let first = results.first().ok_or_else(|| Error::Internal("an expression without results".into()))?;
    let (result, dtype) = (first.var.clone(), first.dtype);
    let values = values.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let form = form(&typed, text);
    let mixed = |reason| matches!(reason, Reason::Table | Reason::Category | Reason::ZeroDim | Reason::Weak);
    let mixes = typed.casts().iter().any(|c| mixed(c.reason));
    Ok(Plan { expression, typed, program, result, dtype, results, conversion, mixes, values, form })
}

impl Work {
    /// The note about results that `--out-dtype` does not convert, if there are any.
    fn unconverted(&self) -> Option<String> {
        let out = self.out.dtype?;
        let kept = |p: &Plan| matches!(p.conversion, Conversion::Kept | Conversion::Back(_)) && p.dtype != out;
        let kept: Vec<&str> = self.jobs.iter().filter(|j| kept(&self.plans[j.plan])).map(|j| j.name.as_str()).collect();
        let of = match kept[..] {
            [] => return None,
            [UNNAMED] if !self.named => "the result, which".to_string(),
            _ => format!("{}: {}, which", tensors(kept.len()), report::names(kept.iter().copied())),
        };
        let verb = if kept.len() == 1 { "was" } else { "were" };
        Some(format!("note: --out-dtype {out} does not convert {of} {verb} computed from integers or bools only"))
    }
}
