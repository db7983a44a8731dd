//! Writes two small checkpoints with fixed contents: `base.safetensors` in bf16 and `tuned.safetensors` in f16.
//!
//! `cargo run --release --example make_checkpoints [DIRECTORY]` (default: `target/demo`)

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use castwise::io::{Existing, SafeTensorsWriter};
use castwise::{DType, Element, Tensor};
use half::{bf16, f16};

/// The tensors of a small transformer block.
const TENSORS: [(&str, &[usize]); 5] = [
    ("model.embed_tokens.weight", &[256, 96]),
    ("model.layers.0.self_attn.q_proj.weight", &[96, 96]),
    ("model.layers.0.mlp.up_proj.weight", &[384, 96]),
    ("model.layers.0.mlp.down_proj.weight", &[96, 384]),
    ("model.norm.weight", &[96]),
];

/// Pseudorandom numbers between -0.05 and 0.05.
fn noise(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) as f32 / (1 << 24) as f32 - 0.5) * 0.1
    })
}

fn write<T: Element>(path: &Path, of: impl Fn(f32) -> T, drift: f32) -> castwise::Result<()> {
    let list: Vec<(String, DType, Vec<usize>)> =
        TENSORS.iter().map(|(name, shape)| (name.to_string(), T::DTYPE, shape.to_vec())).collect();
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    let mut file = SafeTensorsWriter::create(path, &list, &metadata, Existing::Replace)?;
    for (i, (name, shape)) in TENSORS.iter().enumerate() {
        let (base, change) = (noise(i as u64 + 1), noise(i as u64 + 101));
        let n = shape.iter().product();
        let values: Vec<T> = base.zip(change).take(n).map(|(b, c)| of(b + c * drift)).collect();
        file.write(name, &Tensor::from_vec(values, shape)?)?;
    }
    file.finish()
}

/// Writes both checkpoints into a directory.
pub fn write_both(directory: &Path) -> castwise::Result<[PathBuf; 2]> {
    let paths = [directory.join("base.safetensors"), directory.join("tuned.safetensors")];
    write(&paths[0], bf16::from_f32, 0.0)?;
    write(&paths[1], f16::from_f32, 0.2)?;
    Ok(paths)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/demo".into()));
    std::fs::create_dir_all(&directory)?;
    let [base, tuned] = write_both(&directory)?;
    println!("{}\n{}", base.display(), tuned.display());
    Ok(())
}
