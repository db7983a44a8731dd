//! The command as a reader sees it: the scripts of `tests/cli`, and the tour of the README.
//!
//! `CASTWISE_BLESS=1 cargo test --test cli_scripts` writes what the command prints into both.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;
#[allow(dead_code, reason = "an example is included for one function")]
#[path = "../examples/make_checkpoints.rs"]
mod make_checkpoints;
#[path = "command/script.rs"]
mod script;

use std::path::Path;

use castwise::Tensor;
use castwise::io::{Compression, Existing, NpzWriter, ShardedWriter};
use command::{Dir, half_tensor};
use script::{masked, run, steps, told};

fn bless() -> bool {
    std::env::var_os("CASTWISE_BLESS").is_some()
}

/// A directory with the files that scripts speak of.
fn fixtures(name: &str) -> Dir {
    let dir = Dir::new(name);
    make_checkpoints::write_both(&dir.0).unwrap();
    dir.npy("nir.npy", &Tensor::from_slice(&[200u8, 90, 10, 255, 128, 7], [2, 3]).unwrap());
    dir.npy("red.npy", &Tensor::from_slice(&[40u8, 90, 30, 1, 127, 250], [2, 3]).unwrap());
    dir.npy("steps.npy", &Tensor::from_slice(&[16_777_217i64, 3, 0], [3]).unwrap());
    dir.npy("loss.npy", &Tensor::from_slice(&[0.5f32, 0.25, 4.0], [3]).unwrap());
    dir.npy("wide.npy", &Tensor::from_slice(&[1.0f32; 8], [2, 4]).unwrap());
    dir.file("weights.json", br#"{"model.norm.weight": 1, "layers\\.0\\.mlp": 0.25, ".*": 0.5}"#);
    dir.file("few.json", br#"{"model.norm.weight": 1, "lay": 0.25, "typo": 3}"#);
    dir.file("broken.json", b"[1, 2]");
    dir.file("broken.safetensors", b"not a checkpoint");
    let list = |names: &[&str]| -> Vec<_> {
        names.iter().map(|n| (n.to_string(), castwise::DType::F16, vec![4, 8])).collect()
    };
    let names = ["up", "down", "gate"];
    let index = dir.0.join("model.safetensors.index.json");
    let mut shards = ShardedWriter::create(index, &list(&names), &Default::default(), 100, Existing::Keep).unwrap();
    let npz = dir.0.join("samples.npz");
    let mut archive = NpzWriter::create(npz, &list(&names[..2]), Compression::Stored, Existing::Keep).unwrap();
    for (i, name) in names.iter().enumerate() {
        let t = half_tensor(i as u64, &[4, 8]);
        shards.write(name, &t).unwrap();
        if i < 2 {
            archive.write(name, &t).unwrap();
        }
    }
    shards.finish().unwrap();
    archive.finish().unwrap();
    dir
}

#[test]
fn scripts_print_what_they_say() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let mut files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in &files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let dir = fixtures(&format!("script-{name}"));
        let text = std::fs::read_to_string(file).unwrap();
        let mut written: String = text.lines().take_while(|l| !l.starts_with("$ ")).map(|l| format!("{l}\n")).collect();
        let lines: Vec<&str> = text.lines().collect();
        for step in steps(&text) {
            let out = run(&dir, &step.line);
            let said = masked(&told(&out));
            count += 1;
            if said != masked(&step.expected) {
                wrong.push(format!("{name}.txt:{}: $ {}\nprints\n{said}\n", step.at, step.line));
            }
            let command = &lines[step.at - 1..];
            let end = command.iter().position(|l| !l.ends_with('\\')).unwrap_or(0);
            written += &format!("{}\n{said}\n\n", command[..=end].join("\n"));
        }
        if bless() {
            std::fs::write(file, written.trim_end().to_string() + "\n").unwrap();
        }
    }
    assert!(count > 40, "only {count} commands were found");
    assert!(wrong.is_empty() || bless(), "{}", wrong.join("\n"));
}

/// The `console` blocks of the README, run in order in one directory.
#[test]
fn the_tour_of_the_readme_shows_real_output() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let dir = fixtures("readme");
    let (mut made, mut rest, mut count, mut wrong) = (String::new(), readme.as_str(), 0, Vec::new());
    while let Some(at) = rest.find("```console\n") {
        let (before, block) = rest.split_at(at + "```console\n".len());
        let (block, behind) = block.split_at(block.find("```\n").unwrap());
        made += before;
        let lines: Vec<&str> = block.lines().collect();
        for step in steps(block) {
            let out = run(&dir, &step.line);
            let said = format!("{}{}", out.stdout, out.stderr).trim_end().to_string();
            count += 1;
            let end = lines[step.at - 1..].iter().position(|l| !l.ends_with('\\')).unwrap_or(0);
            let same = masked(&said) == masked(&step.expected);
            if !same {
                wrong.push(format!("$ {}\nprints\n{said}\n", step.line));
            }
            let output = if same { &step.expected } else { &said };
            made += &format!("{}\n{output}\n", lines[step.at - 1..step.at + end].join("\n"));
        }
        rest = behind;
    }
    made += rest;
    if bless() {
        std::fs::write(path, made).unwrap();
        return;
    }
    assert!(count >= 5, "only {count} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
