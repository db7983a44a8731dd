//! The memory of a merge: the command averages two checkpoints, one in a single file and one sharded, into shards; this
//! bench compares the command's peak resident memory with the size of the largest tensor.
//!
//! `cargo bench --bench memory -- [--size 2GB] [--dir DIRECTORY]`, where the size is that of both checkpoints together.
//! The directory (by default, that of the target's temporary files) needs room for one and a half times as much;
//! everything is deleted at the end. The bench fails if the peak is more than [`MAX_RATIO`] times the largest tensor. Does
//! not: measure the page cache, which belongs to the system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use castwise::io::{Existing, SafeTensorsWriter, ShardedWriter};
use castwise::prelude::*;
use serde_json::Value;

/// Two operands, a result, and the rest of the process.
const MAX_RATIO: f64 = 3.5;

/// The tensors of a checkpoint, as counts and fractions of the whole: some large ones, like embeddings, and many
/// smaller ones.
const PARTS: [(usize, usize); 2] = [(4, 16), (24, 32)];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A directory that is deleted when this is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(e) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} is left: {e}", self.0.display());
        }
    }
}

/// The tensors' names and numbers of elements.
fn tensors(bytes: usize) -> Vec<(String, usize)> {
    let all = PARTS.iter().flat_map(|(count, part)| (0..*count).map(move |i| (i, bytes / part / 2)));
    all.enumerate().map(|(n, (i, elements))| (format!("layers.{i}.{n}.weight"), elements)).collect()
}

/// The bytes of `n` 16-bit numbers from -1 to 1.
fn numbers(seed: u64, n: usize, bits: impl Fn(f32) -> u16) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(2 * n);
    for _ in 0..n {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&bits((state >> 40) as f32 / (1 << 23) as f32 - 1.0).to_le_bytes());
    }
    bytes
}

/// Writes both checkpoints; returns the size of the largest tensor in bytes.
fn write_pair(dir: &Path, bytes: usize) -> Outcome<usize> {
    let all = tensors(bytes / 2);
    let list = |d: DType| all.iter().map(|(name, n)| (name.clone(), d, vec![*n])).collect::<Vec<_>>();
    let (metadata, shard) = (BTreeMap::new(), (bytes / 8) as u64);
    let mut a = SafeTensorsWriter::create(dir.join("a.safetensors"), &list(DType::BF16), &metadata, Existing::Keep)?;
    let index = dir.join("b.safetensors.index.json");
    let mut b = ShardedWriter::create(index, &list(DType::F16), &metadata, shard, Existing::Keep)?;
    for (i, (name, n)) in all.iter().enumerate() {
        let brain = numbers(i as u64, *n, |v| bf16::from_f32(v).to_bits());
        a.write(name, &Tensor::from_bytes(DType::BF16, [*n], &brain)?)?;
        let half = numbers(!(i as u64), *n, |v| f16::from_f32(v).to_bits());
        b.write(name, &Tensor::from_bytes(DType::F16, [*n], &half)?)?;
    }
    a.finish()?;
    b.finish()?;
    Ok(all.iter().map(|(_, n)| 2 * n).max().unwrap_or(0))
}

/// Runs the merge and returns the command's report.
fn merge(dir: &Path, bytes: usize) -> Outcome<Value> {
    let shard = (bytes / 8).to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_castwise"));
    command.current_dir(dir).args(["eval", "0.7*cast(a, f32) + 0.3*cast(b, f32)", "--rules", "torch"]);
    command.args(["-i", "a=a.safetensors", "-i", "b=b.safetensors.index.json", "-o", "merged.safetensors.index.json"]);
    command.args(["--out-dtype", "bf16", "--max-shard-size", &shard, "--json", "--quiet"]);
    let out = command.output()?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// The size of both checkpoints, and the directory to create them in.
fn arguments() -> Outcome<(usize, PathBuf)> {
    let (mut size, mut dir) = ("2GB".to_string(), PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let mut all = std::env::args().skip(1);
    while let Some(argument) = all.next() {
        match argument.as_str() {
            "--size" => size = all.next().ok_or("--size wants a size")?,
            "--dir" => dir = all.next().ok_or("--dir wants a directory")?.into(),
            // Cargo passes this to every bench.
            "--bench" => {}
            other => return Err(format!("{other}: there are --size and --dir").into()),
        }
    }
    let (number, unit) = size.split_at(size.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
    let factor: usize = match unit {
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(format!("{size}: write it as 500MB or 2GB").into()),
    };
    Ok((number.parse::<usize>()? * factor, dir))
}

fn main() -> Outcome<()> {
    let (size, dir) = arguments()?;
    let dir = Temporary(dir.join(format!("castwise-memory-{}", std::process::id())));
    std::fs::create_dir_all(&dir.0)?;
    let largest = write_pair(&dir.0, size)?;
    let report = merge(&dir.0, size)?;
    let number = |v: &Value| v.as_f64().ok_or("a number is missing in the report");
    let mib = |n: f64| n / f64::from(1 << 20);
    let (read, written) = (number(&report["bytes"]["read"])?, number(&report["bytes"]["written"])?);
    let tensors = report["tensors"].as_array().map_or(0, Vec::len);
    println!("two checkpoints of {tensors} tensors, {:.0} MiB read and {:.0} MiB written", mib(read), mib(written));
    println!(
        "in {:.2} s, {:.0} MiB/s",
        number(&report["seconds"]["total"])?,
        mib(number(&report["bytes_per_second"])?)
    );
    let Some(peak) = report["peak_memory"].as_f64() else {
        println!("this system does not tell the peak of the memory");
        return Ok(());
    };
    let ratio = peak / largest as f64;
    println!(
        "largest tensor {:.1} MiB, peak resident memory {:.1} MiB: {ratio:.2} times",
        mib(largest as f64),
        mib(peak)
    );
    if ratio > MAX_RATIO {
        return Err(format!("more than {MAX_RATIO} of the largest tensors").into());
    }
    Ok(())
}
