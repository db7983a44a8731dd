//! The work of a command is linear in the numbers of parameters, tensors, shards, placeholders, constants and mistakes.
//!
//! Work is counted in instructions by callgrind, which does not depend on the load of the machine. If valgrind is not
//! installed, each case prints that it was skipped.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::command::{Dir, of_bytes};

/// The size of the smallest input. Three steps of doubling are measured, so that the constant work of each run does not
/// count.
const LEAST: usize = 150;
/// The maximum number of instructions for each tensor, key or shard, which is several times what any case takes: it detects
/// excessive linear work. Without optimization a case takes about ten times as many.
const MOST: u64 = if cfg!(debug_assertions) { 5_000_000 } else { 500_000 };

static VALGRIND: LazyLock<bool> = LazyLock::new(|| Command::new("valgrind").arg("--version").output().is_ok());

/// The number of instructions of a run of the command, which must end with this exit status.
fn instructions(dir: &Dir, arguments: &[&str], code: i32) -> u64 {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", env!("CARGO_BIN_EXE_castwise")])
        .args(arguments);
    let out = command.current_dir(&dir.0).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{arguments:?}: {}", said.chars().take(2000).collect::<String>());
    said.lines().find_map(|l| l.split_once("Collected : ")).unwrap().1.trim().parse().unwrap()
}

/// Runs the command on inputs of several sizes, which `prepare` creates. The output is removed after each run.
fn is_linear(name: &str, prepare: impl Fn(&Dir, usize), arguments: &[&str], code: i32) {
    if !*VALGRIND {
        println!("{name}: skipped, as valgrind is not installed");
        return;
    }
    // A memory file system, if there is one, on which syncing thousands of files is fast.
    let memory = Path::new("/dev/shm").join(format!("castwise-scaling-{name}-{}", std::process::id()));
    let dir = if std::fs::create_dir(&memory).is_ok() { Dir(memory) } else { Dir::new(&format!("scaling-{name}")) };
    let [a, b, c] = [1, 2, 4].map(|k| {
        let _ = std::fs::remove_dir_all(&dir.0);
        std::fs::create_dir_all(&dir.0).unwrap();
        prepare(&dir, k * LEAST);
        instructions(&dir, arguments, code)
    });
    let (first, second) = (b - a, c - b);
    println!("{name}: {a} instructions for {LEAST}, {first} more for twice as many, {second} more for four times");
    // Linear work is within one or two percent of twice the first step. Sorting and searching take somewhat more.
    assert!(second as f64 <= 2.3 * first as f64, "{name}: {a}, {b}, {c} instructions");
    let each = second / (2 * LEAST as u64);
    assert!(each <= MOST, "{name}: {each} instructions for each, more than {MOST}");
}

fn names(n: usize) -> impl Iterator<Item = String> {
    (0..n).map(|i| format!("model.layers.{i}.mlp.weight"))
}

fn checkpoint(dir: &Dir, name: &str, n: usize) {
    dir.file(name, &of_bytes(names(n)));
}

/// A file `{"x": 0, "y": 1, ...}` with few distinct values, so that few programs are inferred.
fn weights(dir: &Dir, keys: impl Iterator<Item = String>) {
    let entries: Vec<String> = keys.enumerate().map(|(i, key)| format!("\"{key}\": {}", i % 3)).collect();
    dir.file("w.json", format!("{{{}}}", entries.join(",")).as_bytes());
}

const DRY: [&str; 7] = ["-i", "a=a.safetensors", "-o", "out.safetensors", "--dry-run", "--rules", "torch"];

#[test]
fn parameters_by_name() {
    let prepare = |dir: &Dir, n: usize| {
        checkpoint(dir, "a.safetensors", n);
        weights(dir, names(n));
    };
    is_linear("exact-keys", prepare, &[&["eval", "a * w", "-p", "w=w.json"], &DRY[..]].concat(), 0);
}

#[test]
fn parameters_by_few_patterns() {
    let prepare = |dir: &Dir, n: usize| {
        checkpoint(dir, "a.safetensors", n);
        let patterns = (0..10).map(|d| format!("{d}\\\\.mlp"));
        weights(dir, names(n / 2).chain(patterns));
    };
    is_linear("patterns", prepare, &[&["eval", "a * w", "-p", "w=w.json"], &DRY[..]].concat(), 0);
}

#[test]
fn parameters_of_other_tensors() {
    let prepare = |dir: &Dir, n: usize| {
        checkpoint(dir, "a.safetensors", n);
        weights(dir, names(n));
    };
    // Most keys are the names of tensors that are not selected.
    let arguments = ["eval", "a * w", "-p", "w=w.json", "--select", r"\.1\d\.mlp"];
    is_linear("other-keys", prepare, &[&arguments, &DRY[..]].concat(), 0);
}

#[test]
fn parameters_of_another_model() {
    let prepare = |dir: &Dir, n: usize| {
        checkpoint(dir, "a.safetensors", n);
        let plain = (0..n).map(|i| format!("encoder.layers.{i}.mlp.weight"));
        let patterns = (0..n / 10).map(|i| format!(r"layers\\.{i}\\.attn"));
        weights(dir, plain.chain(patterns).chain(std::iter::once(".*".to_string())));
    };
    is_linear("foreign-keys", prepare, &[&["eval", "a * w", "-p", "w=w.json"], &DRY[..]].concat(), 0);
}

#[test]
fn tensors_of_two_checkpoints() {
    let prepare = |dir: &Dir, n: usize| {
        checkpoint(dir, "a.safetensors", n);
        // Each input lacks one name.
        dir.file("b.safetensors", &of_bytes(names(n + 1).skip(1)));
    };
    let more = ["-i", "b=b.safetensors", "--select", "layers", "--skip", "bias", "--map", "7=a", "--missing", "skip"];
    is_linear("names", prepare, &[&["eval", "a + b"], &more[..], &DRY[..]].concat(), 0);
    let written =
        ["eval", "a ^ b", "-i", "a=a.safetensors", "-i", "b=b.safetensors", "--missing", "skip", "--threads", "1"];
    is_linear("names-written", prepare, &[&written[..], &["--json", "-o", "out.npz"]].concat(), 0);
}

#[test]
fn tensors_that_are_looked_at_and_compared() {
    let prepare = |dir: &Dir, n: usize| {
        checkpoint(dir, "a.safetensors", n);
        dir.file("b.safetensors", &of_bytes(names(n + 1).skip(1)));
    };
    is_linear("statistics", prepare, &["stats", "a.safetensors", "--threads", "1"], 0);
    let rename = ["--rename", r"b:\.mlp=.mlp", "--threads", "1"];
    is_linear("differences", prepare, &[&["diff", "a.safetensors", "b.safetensors"], &rename[..]].concat(), 1);
}

#[test]
fn tensors_that_are_refused() {
    let prepare = |dir: &Dir, n: usize| {
        let of = |extra: usize| {
            let (mut entries, mut at) = (Vec::new(), 0);
            for (i, name) in names(n).enumerate() {
                let end = at + i + extra;
                entries
                    .push(format!(r#""{name}":{{"dtype":"U8","shape":[{}],"data_offsets":[{at},{end}]}}"#, i + extra));
                at = end;
            }
            let header = format!("{{{}}}", entries.join(","));
            [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; at]].concat()
        };
        dir.file("a.safetensors", &of(2));
        dir.file("b.safetensors", &of(3));
    };
    is_linear("refused", prepare, &[&["eval", "a + b", "-i", "b=b.safetensors"], &DRY[..]].concat(), 1);
}

#[test]
fn placeholders_of_a_program() {
    let prepare = |dir: &Dir, n: usize| {
        checkpoint(dir, "a.safetensors", n);
        let feeds: Vec<String> = names(n).map(|name| format!("%{name}: u8[?]")).collect();
        let mut text = format!("castwise 1\nprogram(rules = torch) ({}) {{\n", feeds.join(", "));
        for (i, name) in names(n).enumerate() {
            writeln!(text, "  %v{i} = neg %{name}").unwrap();
        }
        let results: Vec<String> = names(n).enumerate().map(|(i, name)| format!("%v{i} as \"{name}\"")).collect();
        writeln!(text, "  fetch {}\n}}", results.join(", ")).unwrap();
        dir.file("p.cw", text.as_bytes());
    };
    let arguments = ["run", "p.cw", "-i", "a.safetensors", "-o", "out.safetensors", "--threads", "1"];
    is_linear("placeholders", prepare, &arguments, 0);
}

#[test]
fn constants_of_a_program() {
    let prepare = |dir: &Dir, n: usize| {
        checkpoint(dir, "a.safetensors", 1);
        let mut text = "castwise 1\nprogram(rules = torch) (%x: u8[?]) {\n  %v0 = neg %x\n".to_string();
        for i in 0..n {
            writeln!(text, "  %c{i} = cast ~{}.5 {{dtype = f16}}\n  %s{i} = sqrt %c{i}", i + 1).unwrap();
            writeln!(text, "  %v{} = mul %v{i}, %s{i}", i + 1).unwrap();
        }
        writeln!(text, "  fetch %v{n} as \"y\"\n}}").unwrap();
        dir.file("p.cw", text.as_bytes());
    };
    let arguments = ["run", "p.cw", "-i", "x=a.safetensors", "-o", "out.safetensors", "--threads", "1"];
    is_linear("constants", prepare, &arguments, 0);
}

#[test]
fn shards() {
    let shards = ["--max-shard-size", "1B", "--threads", "1"];
    let from = |input| ["eval", "a ^ 1", "-i", input, "-o", "out.index.json"];
    let whole = |dir: &Dir, n: usize| checkpoint(dir, "a.safetensors", n);
    is_linear("shards", whole, &[&from("a=a.safetensors")[..], &shards].concat(), 0);
    let in_shards = |dir: &Dir, n: usize| {
        let shard = |i| format!("a-{i}.safetensors");
        for (i, name) in names(n).enumerate() {
            dir.file(&shard(i), &of_bytes(std::iter::once(name)));
        }
        let entries: Vec<String> =
            names(n).enumerate().map(|(i, name)| format!("\"{name}\": \"{}\"", shard(i))).collect();
        dir.file("a.index.json", format!("{{\"weight_map\": {{{}}}}}", entries.join(",")).as_bytes());
    };
    is_linear("shards-again", in_shards, &[&from("a=a.index.json")[..], &shards, &["--dry-run"]].concat(), 0);
}
