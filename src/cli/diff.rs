//! `castwise diff`: how the tensors of two files or models differ.
//!
//! Guarantees: two tensors are in memory at a time, or parts of them if they are large, which are read twice where they differ. The exit status is 0 if nothing differs by more
//! than the tolerance, 1 if something does, 2 after an error. Does not: match different names without `--rename`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::failure::{Failure, print, tell};
use super::html::{self, Cell, Page};
use super::inputs::{Input, bytes, extents};
use super::measure::{Difference, Meter, Tolerance, difference_in_parts};
use super::names::Names;
use super::report;
use super::shared::Shared;
use super::show::aligned;
use super::spec::{InputSpec, Rename, UNNAMED};
use super::stats::{dims, short};
use super::stream::Parts;
use super::values::{os_path, rename, tolerance};
use super::vectors::{Vector, Vectors};

/// The arguments of `castwise diff`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise diff base/ merged/
  castwise diff a.safetensors b.safetensors --rtol 1e-3 --json
  castwise diff a/ b/ --rename 'b:^module\\.=' --html diff.html

Two elements are within the tolerance if |a - b| <= atol + rtol * |a|, or if they are floats of one dtype with at most
--ulps steps between them. NaNs are equal to NaNs, and 0 to -0. The relative error is that to the first tensor.

Exit status: 0 equal, or within the tolerance; 1 different; 2 error.")]
pub(crate) struct Arguments {
    /// The first file or folder, as for `castwise stats`.
    #[arg(value_name = "A", value_parser = os_path())]
    a: InputSpec,
    /// The second file or folder.
    #[arg(value_name = "B", value_parser = os_path())]
    b: InputSpec,
    /// Rename the tensors of the first file (a) or the second (b): 'b:^module\.='.
    #[arg(long, value_name = "a|b:REGEX=TEXT", value_parser = rename)]
    rename: Vec<Rename>,
    /// Accept this difference.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = tolerance)]
    atol: f64,
    /// Accept this difference relative to the first tensor's element.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = tolerance)]
    rtol: f64,
    /// Accept floats with at most this number of steps between them.
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(i64).range(0..1 << 62))]
    ulps: i64,
    /// Compare the values of tensors whose dtypes differ: the dtypes alone are no difference.
    #[arg(long)]
    any_dtype: bool,
    /// List all tensors, also those that are equal.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    shared: Shared,
}

impl Arguments {
    fn tolerance(&self) -> Tolerance {
        Tolerance { absolute: self.atol, relative: self.rtol, ulps: self.ulps }
    }
}

/// How a tensor of the two files compares.
enum Outcome {
    OnlyA,
    OnlyB,
    /// The shapes or dtypes differ; the values of equal shapes are compared.
    Shapes,
    Compared {
        difference: Difference,
        dtypes: bool,
    },
}

struct Row {
    name: String,
    /// Dtype and shape in both files.
    types: [String; 2],
    elements: u64,
    outcome: Outcome,
}

impl Row {
    /// The word for the row, and whether it counts as a difference.
    fn verdict(&self) -> (&'static str, bool) {
        match &self.outcome {
            Outcome::OnlyA => ("only in A", true),
            Outcome::OnlyB => ("only in B", true),
            Outcome::Shapes => ("shape", true),
            Outcome::Compared { dtypes: true, .. } => ("dtype", true),
            Outcome::Compared { difference, .. } if difference.beyond > 0 => ("different", true),
            Outcome::Compared { difference, .. } if difference.differ > 0 => ("within", false),
            Outcome::Compared { .. } => ("equal", false),
        }
    }
}

/// Runs the command. The failure of a comparison that could not be made has the exit status 2.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Failure> {
    compare(arguments).map_err(|f| Failure { code: 2, ..f })
}

fn compare(arguments: &Arguments) -> Result<bool, Failure> {
    html::check(arguments.shared.html.as_deref(), arguments.shared.force)?;
    if let Some(rule) = arguments.rename.iter().find(|r| r.input != "a" && r.input != "b") {
        return Err(super::inputs::no_input("rename", &rule.input));
    }
    let (mut notes, mut inputs) = (Vec::new(), Vec::new());
    for (name, spec) in [("a", &arguments.a), ("b", &arguments.b)] {
        let mut input = Input::open(name, spec)?;
        html::unread(arguments.shared.html.as_deref(), &input.files())?;
        let rules: Vec<&Rename> = arguments.rename.iter().filter(|r| r.input == name).collect();
        if let Some(all) = input.names() {
            input.rename(Names::renamed(&all, &rules, &mut notes)?);
        }
        inputs.push(input);
    }
    tell(&notes, false);
    let [a, b] = &mut inputs[..] else { return Ok(false) };
    let one = a.names().is_none() || b.names().is_none();
    let names = if one { vec![UNNAMED.to_string()] } else { union(a, b, arguments)? };
    let mut meter = Meter::new(arguments.shared.executor(), arguments.tolerance());
    let mut rows = Vec::with_capacity(names.len());
    for name in names {
        let member = [member(a, &name)?, member(b, &name)?];
        rows.push(row(a, b, &mut meter, name, member, arguments)?);
    }
    let different = rows.iter().any(|r| r.verdict().1);
    let paths = [a.path.display().to_string(), b.path.display().to_string()];
    if let Some(path) = &arguments.shared.html {
        html::write(path, arguments.shared.force, &page(&paths, &rows))?;
    }
    if arguments.shared.json {
        let tensors: Vec<Value> = rows.iter().map(object).collect();
        let all = json!({ "a": paths[0], "b": paths[1], "different": different, "tensors": tensors });
        print(&format!("{all:#}\n"))?;
    } else {
        print(&(table(&rows, arguments.all) + &summary(&rows) + "\n"))?;
    }
    Ok(different)
}

/// The names of both files, in the order of the first.
fn union(a: &Input, b: &Input, arguments: &Arguments) -> Result<Vec<String>, Failure> {
    let (mut names, others) = (arguments.shared.selected(a), arguments.shared.selected(b));
    // A pattern may select tensors of one file only.
    if names.is_err() && others.is_ok() {
        names = Ok(Vec::new());
    }
    let mut names = names?;
    names.extend(others.unwrap_or_default().into_iter().filter(|n| !a.has(n)));
    Ok(names)
}

/// The name under which an input has its tensor: an array beside a file of one tensor is compared with that one.
fn member(input: &Input, name: &str) -> Result<String, Failure> {
    if name != UNNAMED || input.has(name) {
        return Ok(name.to_string());
    }
    match input.names().as_deref() {
        Some([only]) => Ok(only.to_string()),
        Some(all) => {
            let text = format!(
                "{}: which of {} is compared? Name one with FILE:MEMBER",
                input.path.display(),
                report::tensors(all.len())
            );
            Err(Failure::usage(text))
        }
        None => Ok(name.to_string()),
    }
}

fn type_of(input: &Input, name: &str) -> Result<(String, Vec<usize>), Failure> {
    if let Some((dtype, shape)) = input.foreign(name) {
        return Ok((dtype.to_string(), shape.to_vec()));
    }
    let (dtype, shape) = input.info(name)?;
    Ok((dtype.to_string(), extents(&shape)))
}

fn row(
    a: &mut Input,
    b: &mut Input,
    meter: &mut Meter,
    name: String,
    [of_a, of_b]: [String; 2],
    arguments: &Arguments,
) -> Result<Row, Failure> {
    let shown = |t: &(String, Vec<usize>)| format!("{}{}", t.0, dims(&t.1));
    let types = [(&*a, &of_a), (&*b, &of_b)].map(|(i, n)| i.has(n).then(|| type_of(i, n)).transpose());
    let [type_a, type_b] = types;
    let (type_a, type_b) = match (type_a?, type_b?) {
        (Some(x), Some(y)) => (x, y),
        (Some(x), None) => {
            return Ok(Row { name, types: [shown(&x), String::new()], elements: 0, outcome: Outcome::OnlyA });
        }
        (None, y) => {
            let types = [String::new(), y.as_ref().map_or(String::new(), shown)];
            return Ok(Row { name, types, elements: 0, outcome: Outcome::OnlyB });
        }
    };
    let (elements, types) = (type_a.1.iter().map(|n| *n as u64).product(), [shown(&type_a), shown(&type_b)]);
    if type_a.1 != type_b.1 {
        return Ok(Row { name, types, elements, outcome: Outcome::Shapes });
    }
    let dtypes = type_a.0 != type_b.0;
    let difference = match (a.foreign(&of_a).is_some(), b.foreign(&of_b).is_some()) {
        (false, false) => {
            match values_in_parts([(&mut *a, of_a.as_str()), (&mut *b, of_b.as_str())], meter, arguments)? {
                Some(difference) => difference,
                None => values(a.load(&of_a)?.0, b.load(&of_b)?.0, meter)?,
            }
        }
        (true, true) if !dtypes => {
            let same = a.load_stored(&of_a)?.bytes() == b.load_stored(&of_b)?.bytes();
            Difference { differ: i64::from(!same), beyond: i64::from(!same), ..unknown(same) }
        }
        _ => unknown(false),
    };
    let dtypes = dtypes && !arguments.any_dtype;
    Ok(Row { name, types, elements, outcome: Outcome::Compared { difference, dtypes } })
}

/// The difference of tensors whose elements have no meaning here.
fn unknown(same: bool) -> Difference {
    let error = if same { 0.0 } else { f64::NAN };
    Difference { differ: 1, beyond: 1, nan: 0, absolute: error, relative: error, ulps: None, cosine: None }
}

/// The difference of large tensors of one shape, which are read in parts; `None` if they are not large, or not read in parts.
fn values_in_parts(
    [(a, of_a), (b, of_b)]: [(&mut Input, &str); 2],
    meter: &mut Meter,
    arguments: &Arguments,
) -> Result<Option<Difference>, Failure> {
    let (dtype, dims) = a.info(of_a)?;
    let dtypes = [dtype, b.info(of_b)?.0];
    let shape = extents(&dims);
    let elements = shape.iter().product();
    let bytes = dtypes.iter().map(|d| bytes(*d, &shape)).sum();
    if !arguments.shared.in_parts(bytes) {
        return Ok(None);
    }
    let all = vec![Vector { name: "a", input: a, member: of_a }, Vector { name: "b", input: b, member: of_b }];
    let mut parts = Vectors { all, hash: None };
    let readable = (0..2).all(|i| parts.has_parts(i));
    if readable && dtypes[0] == dtypes[1] && parts.are_equal(dtype, elements)? {
        return Ok(Some(Difference::none(dtype)));
    }
    let budget = arguments.shared.budget();
    match difference_in_parts(meter, (dtypes, elements), &mut parts, budget)? {
        Ok(difference) => Ok(Some(difference)),
        Err(why) => arguments.shared.refuse(of_a, bytes, &why).map(|()| None),
    }
}

fn values(a: castwise::Tensor, b: castwise::Tensor, meter: &mut Meter) -> Result<Difference, Failure> {
    let (a, b) = (a.contiguous()?, b.contiguous()?);
    if a.dtype() == b.dtype() && a.as_bytes() == b.as_bytes() || a.numel() == 0 {
        return Ok(Difference::none(a.dtype()));
    }
    Ok(meter.difference(&a, &b)?)
}

const TITLES: [&str; 9] = ["tensor", "is", "A", "B", "max error", "relative", "ulps", "cosine", "differ"];

fn cells(row: &Row) -> Vec<Cell> {
    let mut cells = vec![Cell::text(report::escaped(&row.name)), Cell::text(row.verdict().0.to_string())];
    let b = if row.types[0] == row.types[1] { "same".to_string() } else { row.types[1].clone() };
    cells.extend([Cell::text(row.types[0].clone()), Cell::text(b)]);
    let none = || Cell::text("-".to_string());
    let Outcome::Compared { difference: d, .. } = &row.outcome else {
        cells.extend((0..5).map(|_| none()));
        return cells;
    };
    let real = |v: f64| if v.is_nan() { none() } else { Cell::number(short(v), v) };
    cells.extend([real(d.absolute), real(d.relative)]);
    cells.push(d.ulps.map_or_else(none, |n| Cell::number(n.to_string(), n as f64)));
    // Close to 1 the distance from it is what matters.
    let cosine = |c: f64| if c > 0.999 && 1.0 - c > 1e-14 { format!("1 - {}", short(1.0 - c)) } else { short(c) };
    cells.push(d.cosine.map_or_else(none, |c| Cell::number(cosine(c), c)));
    let nan = if d.nan > 0 { format!(" ({} NaN)", d.nan) } else { String::new() };
    cells.push(Cell::number(format!("{}{nan}", d.differ), d.differ as f64));
    cells
}

/// The table of the tensors that differ, or of all.
fn table(rows: &[Row], all: bool) -> String {
    let listed = rows.iter().filter(|r| all || r.verdict().0 != "equal");
    let mut texts: Vec<Vec<String>> = listed.map(|r| cells(r).into_iter().map(|c| c.text).collect()).collect();
    if texts.is_empty() {
        return String::new();
    }
    texts.insert(0, TITLES.iter().map(|t| t.to_string()).collect());
    aligned(&texts) + "\n"
}

fn summary(rows: &[Row]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    rows.iter().for_each(|r| *counts.entry(r.verdict().0).or_default() += 1);
    let parts: Vec<String> = counts.iter().map(|(word, n)| format!("{n} {word}")).collect();
    let s = if rows.len() == 1 { "" } else { "s" };
    let colon = if rows.is_empty() { "" } else { ": " };
    format!("{} tensor{s}{colon}{}", rows.len(), parts.join(", "))
}

fn object(row: &Row) -> Value {
    let mut all = json!({ "name": row.name, "is": row.verdict().0, "different": row.verdict().1, "a": row.types[0], "b": row.types[1] });
    if let Outcome::Compared { difference: d, .. } = &row.outcome {
        // JSON has no infinity.
        let real = |v: f64| if v.is_infinite() { Value::String("inf".into()) } else { json!(v) };
        all["elements"] = json!(row.elements);
        all["max_error"] = real(d.absolute);
        all["max_relative_error"] = real(d.relative);
        all["ulps"] = json!(d.ulps);
        all["cosine"] = json!(d.cosine);
        all["differ"] = json!(d.differ);
        all["beyond_tolerance"] = json!(d.beyond);
        all["nan_in_one"] = json!(d.nan);
    }
    all
}

/// The number of the layer that a tensor belongs to: the first part of its name that is a number.
fn layer(name: &str) -> Option<u32> {
    name.split('.').find_map(|part| part.parse().ok())
}

fn page(paths: &[String; 2], rows: &[Row]) -> Page {
    let mut layers: BTreeMap<Option<u32>, f64> = BTreeMap::new();
    for row in rows {
        if let Outcome::Compared { difference, .. } = &row.outcome {
            let most = layers.entry(layer(&row.name)).or_insert(0.0);
            *most = most.max(difference.relative);
        }
    }
    let bars: Vec<(String, f64)> =
        layers.into_iter().map(|(layer, error)| (layer.map_or("none".to_string(), |n| n.to_string()), error)).collect();
    Page {
        title: format!("castwise diff: {} and {}", paths[0], paths[1]),
        summary: summary(rows),
        pictures: vec![("Largest relative error by layer".to_string(), html::errors(&bars))],
        what: "tensors",
        titles: TITLES.iter().map(|t| t.to_string()).collect(),
        rows: rows.iter().map(cells).collect(),
    }
}
