//! Which tensors are computed tile by tile.
//!
//! Guarantees: a tensor whose operands and results are beyond the limit of memory is streamed, or refused if the limit was given;
//! the bits are the same either way. Tiles and the rows that are kept for later passes fit the limit together. Does not: count what a
//! program stores in between.

use castwise::{DType, TypedProgram};
use indicatif::HumanBytes;

use super::budget::{Budget, LARGE};
use super::job::{SLOTS, Streamed, TiledInput};
use super::split::{Split, split};
use super::tile::feeds;
use crate::cli::args::Eval;
use crate::cli::failure::Failure;
use crate::cli::format::Format;
use crate::cli::inputs::{bytes, extents};
use crate::cli::plan::{Job, Work};
use crate::cli::report;

/// Bytes of the operands and results of a tile, if there is room for [`SLOTS`] such tiles.
const TILE: u64 = 4 << 20;

/// The jobs that are streamed, at their positions. Adds notes about those that should be.
pub(super) fn decide(
    arguments: &Eval,
    work: &Work,
    format: Format,
    notes: &mut Vec<String>,
) -> Result<Vec<Option<Streamed>>, Failure> {
    let budget = Budget::of(arguments.memory);
    let mut all = Vec::with_capacity(work.jobs.len());
    for (at, job) in work.jobs.iter().enumerate() {
        let size = size(work, job)?;
        let beyond = size > budget.bytes;
        if !beyond && size < LARGE {
            all.push(None);
            continue;
        }
        let streamed = streamed(arguments, work, at, format, budget);
        all.push(match streamed {
            Ok(s) if beyond || s.pays => Some(s),
            Ok(_) => None,
            Err(_) if !beyond => None,
            Err(why) => {
                let what = if work.named {
                    format!("the tensor `{}`", report::escaped(&job.name))
                } else {
                    "the result".into()
                };
                let (need, limit) = (HumanBytes(size), HumanBytes(budget.bytes));
                let text = format!("{what} needs {need} of memory for its operands and results");
                if budget.given {
                    let text = format!("{text}, more than --memory {limit}, and is not computed in parts: {why}");
                    return Err(Failure { text: report::error(&text), code: 1 });
                }
                notes.push(format!(
                    "warning: {text}, where {limit} are left for them, and is not computed in parts: {why}"
                ));
                None
            }
        });
    }
    Ok(all)
}

/// The bytes of a job's operands and results.
fn size(work: &Work, job: &Job) -> Result<u64, Failure> {
    let (plan, e) = work.of(job);
    let mut all = plan.bytes()?;
    for i in &e.uses {
        let (dtype, dims) = work.inputs[*i].info(&job.name)?;
        all = all.saturating_add(bytes(dtype, &extents(&dims)));
    }
    Ok(all)
}

/// A job as a stream. Errors: the reason why it can't be one.
fn streamed(arguments: &Eval, work: &Work, at: usize, format: Format, budget: Budget) -> Result<Streamed, String> {
    let job = &work.jobs[at];
    let (plan, e) = work.of(job);
    if plan.conversion.is_back() {
        return Err("--out-dtype checks whether it is exact".into());
    }
    if arguments.check.is_some() {
        return Err("--check compares whole tensors".into());
    }
    let typed = &plan.typed;
    let results: Option<Vec<usize>> = plan.results.iter().map(|r| typed.position(&r.var)).collect();
    let sources = Sources {
        find: &|name| e.uses.iter().copied().find(|i| work.inputs[*i].name == name),
        has_parts: &|input| work.inputs[input].has_parts(),
        parts_written: matches!(format, Format::Npy | Format::SafeTensors | Format::Index | Format::Folder),
    };
    let mut streamed = divided(typed, results.ok_or("a result has no place")?, &sources, budget)?;
    let is_shared = |i: &TiledInput| work.named && !work.inputs[i.input].is_named();
    let shared = streamed.passes.iter().flatten().any(is_shared);
    streamed.job = at;
    streamed.pays = !shared && (streamed.passes.len() == 1 || streamed.split.has_lines());
    Ok(streamed)
}

/// Where the operands of a program come from.
pub(super) struct Sources<'a> {
    /// The number of the input of a name.
    pub(super) find: &'a dyn Fn(&str) -> Option<usize>,
    /// Whether it is read in parts.
    pub(super) has_parts: &'a dyn Fn(usize) -> bool,
    /// Whether results are written in parts.
    pub(super) parts_written: bool,
}

/// A program in tiles that fit the budget. Errors: the reason why it has none.
pub(super) fn divided(
    typed: &TypedProgram,
    results: Vec<usize>,
    sources: &Sources<'_>,
    budget: Budget,
) -> Result<Streamed, String> {
    let mut split = split(typed, results)?;
    if !sources.parts_written && split.results.iter().any(|n| split.tiled[*n]) {
        return Err("only .npy and .safetensors files are written in parts".into());
    }
    let dtypes: Vec<DType> = typed.nodes().map(|n| n.dtype).collect();
    // What there is no room for is computed again.
    if split.kept_bytes(&dtypes) > budget.bytes / 2 {
        split.kept.clear();
    }
    loop {
        let passes = passes(typed, &split, sources, &dtypes)?;
        let (rows, slots) = tile_rows(&split, &passes, &dtypes, budget)?;
        if slots.saturating_add(split.kept_bytes(&dtypes)) <= budget.bytes {
            return Ok(Streamed { job: 0, split, passes, rows, pays: false });
        }
        if split.kept.is_empty() {
            return Err(format!("{SLOTS} parts of it would need {}", HumanBytes(slots)));
        }
        split.kept.clear();
    }
}

/// The inputs that each pass reads.
fn passes(
    typed: &TypedProgram,
    split: &Split,
    sources: &Sources<'_>,
    dtypes: &[DType],
) -> Result<Vec<Vec<TiledInput>>, String> {
    let names: Vec<Option<&str>> = typed.nodes().map(|n| n.kind).map(|k| name(&k)).collect();
    let mut passes = Vec::new();
    for pass in 0..split.count() {
        let mut inputs = Vec::new();
        let is_read = |n: &usize| split.tiled[*n] && !split.has_kept(*n, pass);
        for node in feeds(typed, split, pass).into_iter().filter(is_read) {
            let input = names[node].and_then(sources.find).ok_or("an input has no file")?;
            if !(sources.has_parts)(input) {
                return Err("an input is not read in parts: arrays of .npz files and in Fortran order".into());
            }
            inputs.push(TiledInput { input, node, dtype: dtypes[node], width: split.width(node) });
        }
        passes.push(inputs);
    }
    Ok(passes)
}

/// The rows of a tile, and the bytes of the operands and results of [`SLOTS`] tiles.
fn tile_rows(
    split: &Split,
    passes: &[Vec<TiledInput>],
    dtypes: &[DType],
    budget: Budget,
) -> Result<(usize, u64), String> {
    let mut row = 0;
    for inputs in passes {
        row = row.max(inputs.iter().map(|i| (i.width * i.dtype.size()) as u64).sum::<u64>());
    }
    row += split
        .results
        .iter()
        .filter(|n| split.tiled[**n])
        .map(|n| (split.width(*n) * dtypes[*n].size()) as u64)
        .sum::<u64>();
    let unit = if split.pairs { split.unit.max(2) } else { split.unit } as u64;
    let most = TILE.min(budget.bytes / (2 * SLOTS as u64));
    let rows = (most / row.max(1) / unit).max(1) * unit;
    // If equal parts are possible, all tiles have one shape, for which a slot keeps its memory.
    let (all, count) = (split.rows as u64, (split.rows as u64).div_ceil(rows));
    let equal = (count..2 * count).find(|n| all % n == 0 && all / n % unit == 0);
    let rows = equal.map_or(rows, |n| all / n);
    let slots = rows.saturating_mul(row).saturating_mul(SLOTS as u64);
    if rows >= split.rows as u64 {
        return Err(format!("its rows can only be divided by {unit}, and there are {}", split.rows));
    }
    Ok((rows as usize, slots))
}

fn name<'k>(kind: &castwise::NodeKind<'k>) -> Option<&'k str> {
    if let castwise::NodeKind::Feed(name) = kind { Some(name) } else { None }
}
