//! The workloads on which castwise is compared with other libraries, verified against f64. Prints JSON lines or a
//! table.
//!
//! `cargo bench --bench workloads -- [--only REGEX] [--threads N] [--small] [--json]`, or `-- --table results.jsonl`,
//! which makes the tables of docs/performance.md from the JSON lines of castwise and other libraries.
//!
//! Variants: `fresh` allocates its result in each call, from memory that the executor's pool kept from the call before;
//! `fresh+nopool` has no pool; `builtin` uses the single op for the purpose; `out` writes to the same tensor in each
//! call. Guarantees: a row is `ok` if its dtype and shape are correct and every element is within the dtype's
//! tolerance; the process fails if a row is not `ok`. Does not: compare times.

use std::process::ExitCode;

use castwise::{Rounding, prelude::*};
use regex::Regex;
use serde_json::{Value, json};

#[path = "workloads/compile.rs"]
mod compile;
#[path = "workloads/data.rs"]
mod data;
#[path = "workloads/defs.rs"]
mod defs;
#[path = "workloads/graphs.rs"]
mod graphs;
#[path = "../src/base/halves.rs"]
mod halves;
#[path = "workloads/measure.rs"]
mod measure;
#[path = "../src/base/random.rs"]
mod random;
#[path = "workloads/table.rs"]
mod table;

use defs::Workload;
use measure::{Call, measure};

/// A name in the report, and the settings of its programs.
struct Peer {
    name: &'static str,
    settings: Settings,
    /// Whether the peer differs from the first one on this workload.
    runs: fn(&Workload) -> bool,
}

fn peers() -> Vec<Peer> {
    let exact = Settings::new(Rules::Torch);
    let half = |w: &Workload| w.name.starts_with("half");
    vec![
        Peer { name: "castwise", settings: exact, runs: |_| true },
        Peer { name: "castwise.relaxed", settings: exact.with_rounding(Rounding::Relaxed), runs: half },
    ]
}

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Fresh,
    FreshNoPool,
    Builtin,
    Out,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::Fresh => "fresh",
            Variant::FreshNoPool => "fresh+nopool",
            Variant::Builtin => "builtin",
            Variant::Out => "out",
        }
    }

    fn of(w: &Workload, n: usize) -> Vec<Variant> {
        let large = w.out_bytes(n) >= 1 << 20;
        let extra = [(Variant::FreshNoPool, large), (Variant::Builtin, w.builtin.is_some()), (Variant::Out, !w.mean)];
        [Variant::Fresh].into_iter().chain(extra.into_iter().filter_map(|(v, on)| on.then_some(v))).collect()
    }
}

struct Options {
    only: Regex,
    threads: usize,
    small: bool,
    json: bool,
    table: Option<String>,
    compile_child: Option<usize>,
}

const USAGE: &str = "[--only REGEX] [--threads N] [--small] [--json] | --table FILE";

fn options() -> Result<Options, String> {
    let mut o = Options {
        only: Regex::new("").map_err(|e| e.to_string())?,
        threads: 1,
        small: false,
        json: false,
        table: None,
        compile_child: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        let number = |v: String| v.parse::<usize>().map_err(|e| format!("{v}: {e}"));
        match arg.as_str() {
            "--only" => o.only = Regex::new(&value()?).map_err(|e| e.to_string())?,
            "--threads" => o.threads = number(value()?)?,
            "--small" => o.small = true,
            "--json" => o.json = true,
            "--table" => o.table = Some(value()?),
            compile::CHILD => o.compile_child = Some(number(value()?)?),
            "--bench" => {} // from cargo
            _ => return Err(format!("unknown argument {arg}; {USAGE}")),
        }
    }
    Ok(o)
}

fn main() -> ExitCode {
    let done = options().and_then(|o| match (&o.table, o.compile_child) {
        (Some(file), _) => table::print(file).map(|()| true),
        (None, Some(ops)) => compile::child(ops).map(|()| true).map_err(|e| e.to_string()),
        (None, None) => run(&o).map_err(|e| e.to_string()),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all workloads and prints their rows. Returns whether all rows are `ok`.
fn run(o: &Options) -> castwise::Result<bool> {
    let mut ok = true;
    let mut emit = |row: Value| {
        ok &= row["ok"] == true;
        if o.json { println!("{row}") } else { println!("{}", readable(&row)) }
    };
    if !o.json {
        println!("{HEAD}");
    }
    let all = defs::workloads();
    for w in all.iter().filter(|w| o.only.is_match(w.name)) {
        for n in w.sizes(o.small) {
            let inputs: Vec<Tensor> = w.inputs.iter().map(|i| data::tensor(w, i, n)).collect::<Result<_, _>>()?;
            let expected = data::expected(w, n, &inputs);
            for peer in peers().iter().filter(|p| (p.runs)(w)) {
                for variant in Variant::of(w, n) {
                    emit(row(o, peer, w, n, variant, &inputs, &expected)?);
                }
            }
        }
    }
    // Compilation uses one thread, independent of the number of threads of runs.
    if o.threads == 1 && o.only.is_match("compile") {
        compile::rows().into_iter().for_each(emit);
    }
    Ok(ok)
}

fn row(
    o: &Options,
    peer: &Peer,
    w: &Workload,
    n: usize,
    variant: Variant,
    inputs: &[Tensor],
    expected: &data::Expected,
) -> castwise::Result<Value> {
    let p = Program::with_settings(peer.settings);
    let vars: Vec<Var> = w.inputs.iter().map(|i| p.data(i.name, i.dtype, (i.shape)(n))).collect();
    let build = if variant == Variant::Builtin { w.builtin.unwrap_or(w.build) } else { w.build };
    let fetch = build(&vars);
    let executor = Executor::builder().threads(o.threads);
    let executor = if variant == Variant::FreshNoPool { executor.pool(0) } else { executor };
    let call = Call::new(&executor.build(), &p, &fetch, inputs.to_vec())?;

    let mut result = call.fresh()?;
    if variant == Variant::Out {
        // Other contents, so that a call that writes nothing is detected.
        result = Tensor::zeros(w.out, w.out_shape(n))?;
        call.run_into(&mut result)?;
    }
    let (error, dtype) = (expected.max_rel_err(&result), result.dtype());
    let right = error <= w.tolerance() && dtype == w.out && result.shape() == w.out_shape(n);
    let min_s = if o.small { 0.02 } else { 0.3 };
    let times = if variant == Variant::Out {
        measure(|| call.run_into(&mut result), min_s)?
    } else {
        drop(result);
        measure(|| call.fresh(), min_s)?
    };
    let bytes = w.bytes_moved_minimum(n);
    let mut row = json!({
        "peer": peer.name, "workload": w.name, "size": n, "threads": o.threads, "variant": variant.name(),
        "median_s": times.median, "min_s": times.min, "runs": times.runs, "bytes_moved_minimum": bytes,
        "gbps": (bytes as f64 / times.median / 1e6).round() / 1e3, "max_rel_err": compile::finite(error),
        "out_dtype": numpy_name(dtype), "ok": right,
    });
    if let Some(cores) = times.cpu_per_wall {
        row["cpu_per_wall"] = json!((cores * 100.0).round() / 100.0);
    }
    if variant == Variant::Fresh && Variant::of(w, n).contains(&Variant::FreshNoPool) {
        row["note"] = json!("the result's memory comes from the executor's pool; fresh+nopool has none");
    }
    Ok(row)
}

/// NumPy's name for a dtype.
fn numpy_name(dtype: DType) -> String {
    match dtype {
        DType::Bool => "bool".into(),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => format!("uint{}", dtype.size() * 8),
        DType::BF16 => "bfloat16".into(),
        DType::C32 | DType::C64 | DType::C128 => format!("complex{}", dtype.size() * 8),
        d if d.is_float() => format!("float{}", d.size() * 8),
        d => format!("int{}", d.size() * 8),
    }
}

const HEAD: &str =
    "workload                    size  thr  variant              median        min      GB/s  max rel err";

/// A row as a line of the table.
fn readable(row: &Value) -> String {
    let time = |key: &str| row[key].as_f64().map_or(String::new(), table::short);
    let gbps = row["gbps"].as_f64().map_or(String::new(), |x| format!("{x:.2}"));
    format!(
        "{:<22} {:>9} {:>4}  {:<16} {:>10} {:>10} {:>9}  {:>11.1e}{}",
        row["workload"].as_str().unwrap_or(""),
        row["size"].to_string(),
        row["threads"].to_string(),
        row["variant"].as_str().unwrap_or(""),
        time("median_s"),
        time("min_s"),
        gbps,
        row["max_rel_err"].as_f64().unwrap_or(f64::NAN),
        if row["ok"] == true { "" } else { "  WRONG" },
    )
}
