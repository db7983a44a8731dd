//! Makes the tables of docs/performance.md from the result lines of castwise and other libraries.
//!
//! Guarantees: only equivalent variants are compared. A call that allocates its result is compared with one that does,
//! and a call into a given buffer with another one; if a peer has both, the ratio that is worse for castwise is
//! printed. A peer's result outside the tolerance is ignored. The limit is the best of all variants. Does not: run
//! anything.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

/// The columns, in order, if the results have them; other names follow.
const PEERS: [&str; 8] = ["numpy", "numexpr", "numba", "torch", "torch.compile", "jax", "paddle", "paddle.static"];
const OURS: &str = "castwise";
const LIMIT: &str = "rustc";
const COMPILES: [(u64, &str); 4] = [(10, "first_in_process"), (10, "later"), (100, "later"), (1000, "later")];

/// A time with its unit.
pub fn short(seconds: f64) -> String {
    let (x, unit) = [(1.0, "s"), (1e3, "ms"), (1e6, "µs")]
        .into_iter()
        .map(|(k, unit)| (seconds * k, unit))
        .find(|(x, unit)| *x >= 1.0 || *unit == "µs")
        .unwrap_or((seconds, "s"));
    let digits = if x < 10.0 { 2 } else { usize::from(x < 100.0) };
    format!("{x:.digits$} {unit}")
}

/// Seconds by peer and variant, for one workload at one size.
type Cell = BTreeMap<(String, String), f64>;

/// Prints the tables of a file.
pub fn print(file: &str) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let lines = text.lines().filter(|l| !l.trim().is_empty());
    let rows: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let mut threads: Vec<u64> = rows.iter().filter_map(|r| r["threads"].as_u64()).collect();
    threads.sort_unstable();
    threads.dedup();
    for t in threads {
        println!("{}", ratios(&rows, t));
    }
    println!("{}", compiles(&rows));
    Ok(())
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or("")
}

/// The known names that occur in the rows, then the others.
fn columns(rows: &[Value], is: impl Fn(&Value) -> bool) -> Vec<String> {
    let mut found: Vec<&str> = Vec::new();
    for name in rows.iter().filter(|r| is(r) && r["median_s"].is_f64()).map(|r| text(r, "peer")) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    let known = PEERS.iter().filter(|p| found.contains(p)).copied();
    let other = found.iter().filter(|p| !PEERS.contains(p)).copied();
    known.chain(other).map(String::from).collect()
}

/// The table of ratios: each peer's time divided by castwise's.
fn ratios(rows: &[Value], threads: u64) -> String {
    let here = |r: &Value| r["threads"] == threads && text(r, "workload") != "compile";
    let mut cells: Vec<((&str, u64), Cell)> = Vec::new();
    for r in rows.iter().filter(|r| here(r) && r["ok"] != false) {
        let Some(seconds) = r["median_s"].as_f64() else { continue };
        let key = (text(r, "workload"), r["size"].as_u64().unwrap_or(0));
        let at = cells.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
            cells.push((key, Cell::new()));
            cells.len() - 1
        });
        cells[at].1.insert((text(r, "peer").into(), text(r, "variant").into()), seconds);
    }
    let order: Vec<&str> = crate::defs::workloads().iter().map(|w| w.name).collect();
    cells.sort_by_key(|((name, size), _)| (order.iter().position(|n| n == name), *size));
    let skipped = |name: &str| name == OURS || name.starts_with(LIMIT) || name == "stream";
    let peers: Vec<String> = columns(rows, here).into_iter().filter(|p| !skipped(p)).collect();

    let mut logs: Vec<Vec<f64>> = vec![Vec::new(); peers.len()];
    let mut out = format!("Threads: {threads}\n\n| workload | elements | castwise |");
    peers.iter().for_each(|p| out += &format!(" {p} |"));
    out += " of the limit |\n| --- | ---: | ---: |";
    out += &" ---: |".repeat(peers.len() + 1);
    for ((name, size), cell) in &cells {
        let Some(ours) = best(cell, OURS, |_| true) else { continue };
        let elements = if size.is_power_of_two() { format!("2^{}", size.ilog2()) } else { size.to_string() };
        out += &format!("\n| {name} | {elements} | {} |", short(ours));
        for (peer, logs) in peers.iter().zip(&mut logs) {
            let ratio = ratio(cell, peer);
            logs.extend(ratio.map(f64::ln));
            out +=
                &ratio.map_or(" – |".into(), |x| if x < 1.0 { format!(" **{x:.2}** |") } else { format!(" {x:.2} |") });
        }
        let limit = best(cell, LIMIT, |_| true).map_or(String::new(), |l| format!("{:.0} %", 100.0 * l / ours));
        out += &format!(" {limit} |");
    }
    out += "\n| geometric mean | | |";
    for logs in &logs {
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        out += &if logs.is_empty() { " – |".into() } else { format!(" {mean:.2} |") };
    }
    out + " |\n"
}

fn best(cell: &Cell, peer: &str, variant: impl Fn(&str) -> bool) -> Option<f64> {
    let found = cell.iter().filter(|((p, v), _)| p == peer && variant(v)).map(|(_, s)| *s);
    found.min_by(f64::total_cmp)
}

/// The ratio of equivalent variants that is worse for castwise. If castwise has no row for a given buffer, its call
/// that allocates the result is used instead.
fn ratio(cell: &Cell, peer: &str) -> Option<f64> {
    let made = |v: &str| v == "fresh" || v == "builtin";
    let given = |v: &str| v == "out";
    let ours = best(cell, OURS, made);
    let ours_given = best(cell, OURS, given).or(ours);
    let of = |theirs: Option<f64>, ours: Option<f64>| Some(theirs? / ours?);
    let both = [of(best(cell, peer, made), ours), of(best(cell, peer, given), ours_given)];
    both.into_iter().flatten().min_by(f64::total_cmp)
}

/// The table of times to the first result.
fn compiles(rows: &[Value]) -> String {
    let here = |r: &Value| text(r, "workload") == "compile";
    let mut out = String::from("| time to the first result |");
    COMPILES.iter().for_each(|(n, v)| out += &format!(" {n} operations, {} |", v.replace('_', " ")));
    out += &format!("\n| --- |{}", " ---: |".repeat(COMPILES.len()));
    for peer in columns(rows, here) {
        out += &format!("\n| {peer} |");
        for (n, variant) in COMPILES {
            let cell =
                |r: &&Value| here(r) && text(r, "peer") == peer && r["size"] == n && text(r, "variant") == variant;
            let mut all: Vec<f64> = rows.iter().filter(cell).filter_map(|r| r["median_s"].as_f64()).collect();
            out += &if all.is_empty() {
                " – |".into()
            } else {
                format!(" {} |", short(crate::measure::median(&mut all)))
            };
        }
    }
    out + "\n"
}
