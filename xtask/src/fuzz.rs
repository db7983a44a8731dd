//! Fuzzing without a special compiler: runs a target on mutations of its corpus for a number of seconds.
//!
//! `cargo run --release -p xtask -- fuzz TARGET SECONDS [SEED]`; the targets are those of `tests/fuzz_targets`, and
//! `all` runs each of them in turn. An input that makes a target panic is written to `target/`, and its path is
//! printed. Does not: use coverage; `fuzz/` does, with cargo-fuzz.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::fuzz_targets::TARGETS;
use crate::random::Random;

/// A mutation of an input: bytes are changed, removed, inserted, or copied from another input.
fn mutated(corpus: &[Vec<u8>], r: &mut Random) -> Vec<u8> {
    let mut data = match corpus.get(r.index(corpus.len() + 1)) {
        Some(seed) => seed.clone(),
        None => (0..r.index(200)).map(|_| r.next() as u8).collect(),
    };
    for _ in 0..1 + r.index(6) {
        let (at, n) = (r.index(data.len() + 1), 1 + r.index(8));
        let end = data.len().min(at + n);
        match r.index(6) {
            0 | 1 => data[at..end].iter_mut().for_each(|b| *b = r.next() as u8),
            2 => data[at..end].iter_mut().for_each(|b| *b ^= 1 << r.index(8)),
            3 => drop(data.drain(at..end)),
            4 => drop(data.splice(at..at, (0..n).map(|_| r.next() as u8))),
            _ => {
                if let Some(other) = corpus.get(r.index(corpus.len())) {
                    let from = r.index(other.len());
                    let part = &other[from..other.len().min(from + 1 + r.index(40))];
                    drop(data.splice(at..end, part.iter().copied()));
                }
            }
        }
    }
    data
}

fn corpus(target: &str) -> std::io::Result<Vec<Vec<u8>>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus").join(target);
    std::fs::read_dir(dir)?.map(|entry| std::fs::read(entry?.path())).collect()
}

/// Runs the target that the arguments name.
pub fn main(args: Vec<String>) -> ExitCode {
    let seconds = args.get(1).and_then(|s| s.parse().ok()).unwrap_or(1);
    let seed = args.get(2).and_then(|s| s.parse().ok()).unwrap_or(1);
    let wanted = args.first().map_or("all", String::as_str);
    let mut code = ExitCode::SUCCESS;
    for (name, target) in TARGETS.iter().filter(|(name, _)| wanted == "all" || wanted == *name) {
        let corpus = match corpus(name) {
            Ok(corpus) => corpus,
            Err(e) => {
                eprintln!("{name}: no corpus: {e}");
                return ExitCode::FAILURE;
            }
        };
        let (mut r, start, mut runs) = (Random(seed), Instant::now(), 0u64);
        let limit = Duration::from_secs(seconds);
        while start.elapsed() < limit {
            let data = mutated(&corpus, &mut r);
            if std::panic::catch_unwind(|| target(&data)).is_err() {
                let path = format!("target/fuzz-{name}-{runs}");
                eprintln!("{name}: {path} makes it panic ({:?})", std::fs::write(&path, &data));
                code = ExitCode::FAILURE;
                break;
            }
            runs += 1;
        }
        println!("{name}: {runs} executions in {:.0} s", start.elapsed().as_secs_f64());
    }
    code
}
