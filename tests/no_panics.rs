//! No input makes castwise panic, not even a panic that it catches itself. Runs the fuzz targets on their stored
//! corpus, on every prefix of it, and on random bytes, and counts all panics of the process.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

mod fuzz_targets;

use fuzz_targets::{TARGETS, Target};

mod common;
use common::Random;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Runs a target, and prints its input if it panics.
fn run(name: &str, target: Target, data: &[u8]) {
    let caught = std::panic::catch_unwind(|| target(data));
    assert!(caught.is_ok() && PANICS.load(Ordering::SeqCst) == 0, "{name} panicked on {data:?}");
}

#[test]
fn nothing_panics() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        told(info);
    }));
    let optimized = !cfg!(debug_assertions);
    for (name, target) in TARGETS {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
        let mut runs = 0;
        let mut seeds = Vec::new();
        for entry in std::fs::read_dir(dir).unwrap() {
            seeds.push(std::fs::read(entry.unwrap().path()).unwrap());
        }
        assert!(seeds.len() > 4, "{name} has no corpus");
        for seed in &seeds {
            let step = if optimized { 1 } else { 1 + seed.len() / 20 };
            for end in (0..=seed.len()).rev().step_by(step) {
                run(name, target, &seed[..end]);
                runs += 1;
            }
        }
        let mut r = Random(11);
        for i in 0..if optimized { 4000 } else { 200 } {
            let mut data: Vec<u8> = match i % 3 {
                0 => (0..r.below(300)).map(|_| r.next() as u8).collect(),
                _ => seeds[r.below(seeds.len() as u64) as usize].clone(),
            };
            for _ in 0..r.below(5) {
                let n = data.len() as u64;
                if n > 0 {
                    data[r.below(n) as usize] = r.next() as u8;
                }
            }
            run(name, target, &data);
            runs += 1;
        }
        println!("{name}: {runs} inputs");
    }
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
}
