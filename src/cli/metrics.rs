//! The times and sizes of a run of `eval`, and their report.
//!
//! Guarantees: the JSON report has the same fields in each run. Peak memory is null if the system does not report it.
//! Does not: measure anything outside the command.

use std::time::{Duration, Instant};

use castwise::{Error, SourceLocation};
use indicatif::HumanBytes;
use serde_json::{Value, json};

use super::args::Eval;
use super::plan::{Outcome, Work};

/// The bytes and times of a run.
#[derive(Default)]
pub(super) struct Metrics {
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) typing: Duration,
    pub(super) compile: Duration,
    pub(super) reading: Duration,
    pub(super) compute: Duration,
    pub(super) writing: Duration,
    pub(super) total: Duration,
}

/// Runs a function, and adds its time to `time`.
pub(super) fn timed<T>(time: &mut Duration, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let value = run();
    *time += start.elapsed();
    value
}

impl Metrics {
    fn rate(&self) -> u64 {
        ((self.read + self.written) as f64 / self.total.as_secs_f64().max(1e-9)) as u64
    }

    /// The last line of the output, which summarizes the run.
    pub(super) fn summary(&self, tensors: usize) -> String {
        let s = if tensors == 1 { "" } else { "s" };
        let seconds = |d: Duration| format!("{:.2} s", d.as_secs_f64());
        let memory = peak_memory().map_or(String::new(), |m| format!(", peak memory {}", HumanBytes(m)));
        format!(
            "{tensors} tensor{s}: {} read, {} written in {} (compile {}, read {}, compute {}, write {}), {}/s{memory}",
            HumanBytes(self.read),
            HumanBytes(self.written),
            seconds(self.total),
            seconds(self.compile),
            seconds(self.reading),
            seconds(self.compute),
            seconds(self.writing),
            HumanBytes(self.rate()),
        )
    }
}

/// The subject of a report: a run or a dry run.
pub(super) enum Ran<'a> {
    /// A run, and the results that it prints.
    Done(&'a Metrics, Option<Value>),
    /// A dry run, those of its outputs that exist, and the files that it copies.
    Dry { existing: &'a [String], copied: Value },
}

/// The report of `--json`.
pub(super) fn report(arguments: &Eval, work: &Work, files: &[String], ran: Ran<'_>) -> Result<String, Error> {
    let settings = arguments.common.settings();
    let mut tensors = Vec::new();
    for job in &work.jobs {
        let (plan, e) = work.of(job);
        let location =
            |p: &SourceLocation| if let SourceLocation::Text(r) = p { json!([r.start, r.end]) } else { Value::Null };
        let cast = |c: &castwise::CastNote| {
            let location = location(&c.location);
            json!({
                "op": c.op.name(), "operand": c.operand, "from": c.from.name(), "to": c.to.name(),
                "reason": c.reason.words(c.to), "loss": c.loss.to_string(), "place": location,
            })
        };
        let scalar = |s: &castwise::ScalarNote| {
            json!({
                "op": s.op.name(), "operand": s.operand, "value": s.value.to_string(), "to": s.to.name(),
                "used": s.used.to_string(), "loss": s.loss.to_string(), "place": location(&s.location),
            })
        };
        let casts: Vec<Value> = plan.typed.casts().iter().map(cast).collect();
        let scalars: Vec<Value> = plan.typed.changed_scalars().iter().map(scalar).collect();
        tensors.push(json!({
            "name": job.name, "dtype": plan.dtype.name(), "shape": plan.shape()?, "expression": e.text, "casts": casts,
            "changed_scalars": scalars,
        }));
        let named = plan.results.iter().filter(|r| r.name.is_some());
        let one = |r: &Outcome| Ok(json!({ "name": r.name, "dtype": r.dtype.name(), "shape": r.shape()? }));
        let results = named.map(one).collect::<Result<Vec<Value>, Error>>()?;
        if let Some(tensor) = tensors.last_mut().filter(|_| !results.is_empty()) {
            tensor["results"] = Value::Array(results);
        }
    }
    for u in &work.unchanged {
        tensors.push(json!({
            "name": u.name, "dtype": u.dtype.to_string(), "shape": u.shape, "expression": u.text, "casts": [],
            "changed_scalars": [],
        }));
    }
    let mut all = json!({
        "castwise": env!("CARGO_PKG_VERSION"),
        "rules": settings.named(),
        "default_dtype": settings.default_dtype.name(),
        "rounding": settings.rounding.to_string(),
        "zero_division": settings.zero_division.to_string(),
        "contraction": settings.contraction.to_string(),
        "dry_run": matches!(ran, Ran::Dry { .. }),
        "files": files,
        "tensors": tensors,
        "notes": work.notes,
    });
    let m = match ran {
        Ran::Done(m, values) => {
            if let Some(values) = values {
                all["values"] = values;
            }
            m
        }
        Ran::Dry { existing, copied } => {
            all["existing"] = json!(existing);
            all["copied"] = copied;
            all["named"] = json!(work.named);
            return pretty(&all);
        }
    };
    let seconds = |d: Duration| d.as_secs_f64();
    all["bytes"] = json!({ "read": m.read, "written": m.written });
    all["seconds"] = json!({
        "type": seconds(m.typing), "compile": seconds(m.compile), "read": seconds(m.reading),
        "compute": seconds(m.compute), "write": seconds(m.writing), "total": seconds(m.total),
    });
    all["bytes_per_second"] = json!(m.rate());
    all["peak_memory"] = json!(peak_memory());
    pretty(&all)
}

fn pretty(all: &Value) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(all).map_err(|e| Error::Internal(e.to_string()))?;
    Ok(text + "\n")
}

/// The peak memory of this process, if the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
