//! `castwise stats`: what the tensors of a file or a model hold.
//!
//! Guarantees: one tensor is in memory at a time, or a part of one that is large; a tensor is read once, a large one twice. Does not: write
//! tensors.

use std::path::Path;

use castwise::io::StoredDType;
use castwise::shape::Dim;
use castwise::{DType, Error};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::failure::{Failure, print};
use super::html::{self, Cell, Page};
use super::inputs::{Input, bytes, extents};
use super::measure::{self, Meter, Stats, Tolerance};
use super::report;
use super::shared::Shared;
use super::show::aligned;
use super::spec::{InputSpec, UNNAMED};
use super::values::os_path;
use super::vectors::{Vector, Vectors};

/// The arguments of `castwise stats`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  castwise stats model/ --target f16
  castwise stats model.safetensors --select norm --json
  castwise stats model/ --html stats.html

Smallest, largest, mean and standard deviation (of the population) are those of the finite elements; of complex numbers,
those of the magnitudes. The hash is that of the elements, row-major and little-endian.

Exit status: 0 success; 1 error in a file; 2 usage error.")]
pub(crate) struct Arguments {
    /// A .npy, .npz or .safetensors file, the .index.json of a sharded checkpoint, the folder of a model, or one tensor:
    /// FILE:MEMBER.
    #[arg(value_name = "FILE|FOLDER", value_parser = os_path())]
    file: InputSpec,
    /// Also count the finite elements that are beyond the range of this dtype.
    #[arg(long, value_name = "DTYPE")]
    target: Option<DType>,
    #[command(flatten)]
    shared: Shared,
}

/// The row of a tensor.
struct Row {
    name: String,
    dtype: StoredDType,
    shape: Vec<usize>,
    hash: String,
    /// `None` for dtypes that castwise lacks.
    stats: Option<Stats>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(target) = arguments.target.filter(|t| t.is_complex()) {
        return Err(Failure::usage(format!("--target {target}: the range of a complex dtype is not measured")));
    }
    html::check(arguments.shared.html.as_deref(), arguments.shared.force)?;
    let mut input = Input::open(UNNAMED, &arguments.file)?;
    html::unread(arguments.shared.html.as_deref(), &input.files())?;
    let names = arguments.shared.selected(&input)?;
    let mut meter = Meter::new(arguments.shared.executor(), Tolerance::default());
    let mut rows = Vec::with_capacity(names.len());
    for name in names {
        rows.push(row(&mut input, &mut meter, name, arguments)?);
    }
    if let Some(path) = &arguments.shared.html {
        html::write(path, arguments.shared.force, &page(&input.path, &rows, arguments.target))?;
    }
    if arguments.shared.json {
        let tensors: Vec<Value> = rows.iter().map(|r| object(r, arguments.target)).collect();
        let path = input.path.display().to_string();
        return print(&format!("{:#}\n", json!({ "file": path, "tensors": tensors })));
    }
    print(&table(&rows, arguments.target))
}

fn row(input: &mut Input, meter: &mut Meter, name: String, arguments: &Arguments) -> Result<Row, Failure> {
    if let Some((dtype, shape)) = input.foreign(&name) {
        let (dtype, shape) = (StoredDType::Foreign(dtype), shape.to_vec());
        let hash = hash(input.load_stored(&name)?.bytes());
        return Ok(Row { name, dtype, shape, hash, stats: None });
    }
    let exponents = arguments.shared.html.is_some();
    let (dtype, dims) = input.info(&name)?;
    let shape = extents(&dims);
    if arguments.shared.in_parts(bytes(dtype, &shape)) {
        let all = vec![Vector { name: "x", input: &mut *input, member: &name }];
        let mut parts = Vectors { all, hash: Some(Sha256::new()) };
        let (of, budget) = ((dtype, elements(&shape)), arguments.shared.budget());
        let measured = measure::stats_in_parts(meter, of, &mut parts, budget, arguments.target, exponents)?;
        let hash = parts.hash.take().map_or(String::new(), |h| hex(&h.finalize()));
        drop(parts);
        match measured {
            Ok(stats) => return Ok(Row { name, dtype: dtype.into(), shape, hash, stats: Some(stats) }),
            Err(why) => arguments.shared.refuse(&name, bytes(dtype, &shape), &why)?,
        }
    }
    let t = input.load(&name)?.0.contiguous()?;
    let hash = hash(t.as_bytes().ok_or_else(|| Error::Internal("a tensor without bytes".into()))?);
    let stats = meter.stats(&t, arguments.target, exponents)?;
    Ok(Row { name, dtype: t.dtype().into(), shape, hash, stats: Some(stats) })
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number in a table: four significant digits, which are enough to compare.
pub(super) fn short(v: f64) -> String {
    let size = v.abs();
    match v {
        0.0 => "0".to_string(),
        v if !v.is_finite() => v.to_string(),
        v if (1e-3..1e6).contains(&size) => {
            let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
            let text = format!("{v:.decimals$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
        }
        v => format!("{v:.3e}"),
    }
}

/// The share of elements as text.
pub(super) fn share(n: i64, of: &[usize]) -> String {
    let all = elements(of);
    if all == 0 || n == 0 { "0%".to_string() } else { format!("{}%", short(100.0 * n as f64 / all as f64)) }
}

fn elements(shape: &[usize]) -> usize {
    shape.iter().product()
}

pub(super) fn dims(shape: &[usize]) -> String {
    castwise::shape::Dims(shape.iter().map(|n| Dim::Fixed(*n)).collect()).to_string()
}

const TITLES: [&str; 12] =
    ["tensor", "dtype", "shape", "min", "max", "mean", "std", "NaN", "inf", "zeros", "subnormal", "sha256"];

fn titles(target: Option<DType>) -> Vec<String> {
    let mut titles: Vec<String> = TITLES.iter().map(|t| t.to_string()).collect();
    if let Some(target) = target {
        titles.insert(titles.len() - 1, format!("beyond {target}"));
    }
    titles
}

/// The cells of a row.
fn cells(row: &Row, target: Option<DType>, hash: usize) -> Vec<Cell> {
    let mut cells = vec![
        Cell::text(report::escaped(&row.name)),
        Cell::text(row.dtype.to_string()),
        Cell::number(dims(&row.shape), elements(&row.shape) as f64),
    ];
    let Some(s) = &row.stats else {
        cells.extend((0..8 + usize::from(target.is_some())).map(|_| Cell::text("-".to_string())));
        cells.push(Cell::text(row.hash[..hash].to_string()));
        return cells;
    };
    let none = || Cell::text("-".to_string());
    let real = |v: Option<f64>| v.map_or_else(none, |v| Cell::number(short(v), v));
    cells.extend([real(s.range.as_ref().map(|r| r[0].1)), real(s.range.as_ref().map(|r| r[1].1))]);
    cells.extend([real(s.moments.map(|m| m[0])), real(s.moments.map(|m| m[1]))]);
    cells.extend([s.nan, s.inf, s.zeros, s.subnormals].map(|n| Cell::number(n.to_string(), n as f64)));
    cells.extend(s.outside.map(|n| Cell::number(share(n, &row.shape), n as f64)));
    cells.push(Cell::text(row.hash[..hash].to_string()));
    cells
}

fn table(rows: &[Row], target: Option<DType>) -> String {
    let texts = |r: &Row| cells(r, target, 12).into_iter().map(|c| c.text).collect();
    aligned(&std::iter::once(titles(target)).chain(rows.iter().map(texts)).collect::<Vec<_>>())
}

fn object(row: &Row, target: Option<DType>) -> Value {
    let mut all = json!({
        "name": row.name, "dtype": row.dtype.to_string(), "shape": row.shape, "elements": elements(&row.shape),
        "sha256": row.hash,
    });
    let Some(s) = &row.stats else { return all };
    // Numbers of the dtype as they are written there, for integers beyond those that f64 has.
    let exact = |t: &str| serde_json::from_str::<Value>(t).unwrap_or(Value::String(t.to_string()));
    let range = |i: usize| s.range.as_ref().map_or(Value::Null, |r| exact(&r[i].0));
    let (mean, deviation) = (s.moments.map(|m| m[0]), s.moments.map(|m| m[1]));
    let more = json!({
        "min": range(0), "max": range(1), "mean": mean, "std": deviation, "nan": s.nan, "inf": s.inf,
        "zeros": s.zeros, "subnormals": s.subnormals,
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    if let (Some(target), Some(outside)) = (target, s.outside) {
        let share = outside as f64 / elements(&row.shape).max(1) as f64;
        all["outside"] = json!({ "dtype": target.name(), "count": outside, "share": share });
    }
    all
}

/// The page, with a histogram of exponents for each tensor and for all.
fn page(path: &Path, rows: &[Row], target: Option<DType>) -> Page {
    let mut all = vec![0; EXPONENT_BINS];
    let mut titles = titles(target);
    titles.insert(titles.len() - 1, "exponents".to_string());
    let mut made = Vec::new();
    for row in rows {
        let mut cells = cells(row, target, 64);
        let bins = row.stats.as_ref().map_or(Vec::new(), |s| html::differences(&s.exponents));
        all.iter_mut().zip(&bins).for_each(|(all, n)| *all += n);
        cells.insert(cells.len() - 1, Cell::picture(html::small_histogram(&bins)));
        made.push(cells);
    }
    let total: usize = rows.iter().map(|r| elements(&r.shape)).sum();
    let chart = html::histogram(&all, *measure::EXPONENTS.start(), 2);
    Page {
        title: format!("castwise stats: {}", path.display()),
        summary: format!("{}, {total} elements", report::tensors(rows.len())),
        pictures: vec![("Elements by exponent (finite, not zero)".to_string(), chart)],
        what: "tensors",
        titles,
        rows: made,
    }
}

const EXPONENT_BINS: usize = 33;
