//! The command and its files: archives, shards, outputs that fail or are interrupted, memory.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::time::Duration;

use castwise::io::{Compression, Existing, Npz, NpzWriter, SafeTensors, ShardedSafeTensors, ShardedWriter};
use castwise::{DType, Rules, Tensor};

#[cfg(unix)]
use crate::command::signals::{DEFAULT_SIGNALS, ended, signal, start};
use crate::command::{Dir, bf16_tensor, eager, half_tensor};

const MERGE: &str = "0.7*a + 0.3*b";

type Tensors = Vec<(&'static str, Tensor)>;

fn listed(all: &Tensors) -> Vec<(String, DType, Vec<usize>)> {
    all.iter().map(|(n, t)| (n.to_string(), t.dtype(), t.shape().to_vec())).collect()
}

fn npz(dir: &Dir, name: &str, all: &Tensors) {
    let mut out = NpzWriter::create(dir.0.join(name), &listed(all), Compression::Deflated, Existing::Keep).unwrap();
    for (name, t) in all {
        out.write(name, t).unwrap();
    }
    out.finish().unwrap();
}

fn shards(dir: &Dir, name: &str, all: &Tensors, max: u64) {
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    let mut out = ShardedWriter::create(dir.0.join(name), &listed(all), &metadata, max, Existing::Keep).unwrap();
    for (name, t) in all {
        out.write(name, t).unwrap();
    }
    out.finish().unwrap();
}

/// A checkpoint of u8 zeros with tensors of these sizes, as a sparse file.
fn sparse(dir: &Dir, name: &str, sizes: &[usize]) {
    let mut at = 0;
    let entry = |(i, n): (usize, &usize)| {
        at += n;
        format!(r#""{i}":{{"dtype":"U8","shape":[{n}],"data_offsets":[{},{at}]}}"#, at - n)
    };
    let header = format!("{{{}}}", sizes.iter().enumerate().map(entry).collect::<Vec<_>>().join(","));
    dir.file(name, &[&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat());
    let file = std::fs::File::options().write(true).open(dir.0.join(name)).unwrap();
    file.set_len((8 + header.len() + at) as u64).unwrap();
}

/// The tensors of a small model in two dtypes.
fn models() -> (Tensors, Tensors) {
    let shapes: [(&str, &[usize]); 5] =
        [("embed", &[37, 53]), ("0.bias", &[53]), ("scale", &[]), ("none", &[0, 3]), ("head", &[53, 37])];
    let a = shapes.iter().enumerate().map(|(i, (n, s))| (*n, bf16_tensor(i as u64, s))).collect();
    (a, shapes.iter().enumerate().map(|(i, (n, s))| (*n, half_tensor(i as u64 + 9, s))).collect())
}

#[test]
fn metadata_is_that_of_the_first_input_that_has_any() {
    let dir = Dir::new("metadata");
    sparse(&dir, "a.safetensors", &[3]);
    dir.checkpoint("b.safetensors", &[("0", half_tensor(1, &[3]))]);
    dir.eval(&["a + b", "-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "c.safetensors"]).ok();
    let [a, c] = ["a", "c"].map(|name| SafeTensors::open(dir.0.join(name).with_extension("safetensors")).unwrap());
    assert!(a.metadata().is_empty());
    assert_eq!(c.metadata()["format"], "pt");
}

#[test]
fn a_merge_of_shards_has_the_bits_of_eager_mode() {
    let dir = Dir::new("shards");
    let (a, b) = models();
    shards(&dir, "a.safetensors.index.json", &a, 4000);
    shards(&dir, "b.safetensors.index.json", &b, 100);
    let files = ["-i", "a=a.safetensors.index.json", "-i", "b=b.safetensors.index.json"];
    let sizes = ["--max-shard-size", "8KB", "-o", "m.safetensors.index.json"];
    let out = dir.eval(&[&[MERGE], &files[..], &sizes].concat()).ok();
    assert!(out.stderr.contains("5 tensors: "), "{}", out.stderr);
    let written: Vec<String> = dir.names().into_iter().filter(|n| n.starts_with('m')).collect();
    let shard = |i| format!("m-{i:05}-of-00003.safetensors");
    assert_eq!(written, [shard(1), shard(2), shard(3), "m.safetensors.index.json".to_string()]);

    let mut merged = ShardedSafeTensors::open(dir.0.join("m.safetensors.index.json")).unwrap();
    assert_eq!(merged.names().count(), 5);
    assert_eq!(merged.metadata().unwrap().get("format").unwrap(), "pt");
    for ((name, a), (_, b)) in a.iter().zip(&b) {
        let (got, expected) = (merged.load(name).unwrap(), eager(Rules::Torch, MERGE, &[("a", a), ("b", b)]));
        assert_eq!((got.dtype(), got.shape()), (DType::F32, expected.shape()), "{name}");
        assert_eq!(got.as_bytes(), expected.as_bytes(), "{name}");
    }
    // Sharded and single-file checkpoints can be combined, on both sides.
    dir.checkpoint("b.safetensors", &b);
    let files = ["-i", "a=a.safetensors.index.json", "-i", "b=b.safetensors", "-o", "n.safetensors"];
    dir.eval(&[&[MERGE], &files[..]].concat()).ok();
    let mut one = SafeTensors::open(dir.0.join("n.safetensors")).unwrap();
    for (name, _) in &a {
        assert_eq!(one.load(name).unwrap().as_bytes(), merged.load(name).unwrap().as_bytes(), "{name}");
    }
}

#[test]
fn the_size_of_shards_decides_between_one_file_and_several() {
    let dir = Dir::new("shard-size");
    let t = || Tensor::full([1000], 1.0f32).unwrap();
    dir.checkpoint("a.safetensors", &[("x", t()), ("y", t())]);
    let eval = |size: &str, output: &str| {
        dir.eval(&["a + 1", "-i", "a=a.safetensors", "--max-shard-size", size, "-o", output])
    };
    for (size, output) in [("8000", "one"), ("8KB", "two"), ("8 kb", "three"), ("1GiB", "four"), ("5g", "five")] {
        let output = format!("{output}.safetensors");
        eval(size, &output).ok();
        assert_eq!(SafeTensors::open(dir.0.join(&output)).unwrap().names().count(), 2, "{size}");
    }
    for (size, output) in [("7999", "six"), ("7KiB", "seven"), ("1", "eight")] {
        eval(size, &format!("{output}.safetensors")).ok();
        let index = dir.0.join(format!("{output}.safetensors.index.json"));
        assert_eq!(ShardedSafeTensors::open(index).unwrap().files().count(), 2, "{size}");
    }
    // An index is written as requested, even for one shard.
    eval("1MB", "nine.index.json").ok();
    assert!(dir.0.join("nine-00001-of-00001.safetensors").exists());
    dir.eval(&["a + 1", "-i", "a=a.safetensors", "-o", "ten.index.json"]).ok();
    assert!(dir.0.join("ten-00001-of-00001.safetensors").exists());
    for size in ["", "GB", "5XB", "0", "-1", "1.5GB", "99999999999GB"] {
        assert_eq!(eval(size, "no.safetensors").code, Some(2), "{size}");
    }
    assert_eq!(eval("5GB", "no.npz").code, Some(2));
    let compress = ["a + 1", "-i", "a=a.safetensors", "--compress", "-o", "no.safetensors"];
    assert_eq!(dir.eval(&compress).code, Some(2));
}

#[test]
fn shards_never_replace_an_input_and_what_exists_only_by_force() {
    let dir = Dir::new("shard-names");
    let (a, _) = models();
    shards(&dir, "a.index.json", &a, 1 << 20);
    let arguments = ["a + 1", "-i", "a=a.index.json", "-o", "b.index.json"];
    dir.eval(&arguments).ok();
    let stderr = dir.refused(&arguments);
    assert!(stderr.contains("b.index.json: the output exists; use --force"), "{stderr}");
    std::fs::remove_file(dir.0.join("b.index.json")).unwrap();
    let stderr = dir.refused(&arguments);
    assert!(stderr.contains("b-00001-of-00001.safetensors: the output exists; use --force"), "{stderr}");
    dir.eval(&[&arguments[..], &["--force"]].concat()).ok();
    // The output would overwrite the input's shard.
    let stderr = dir.refused(&["a + 1", "-i", "a=a.index.json", "-o", "a.safetensors.index.json", "--force"]);
    assert!(stderr.contains("a-00001-of-00001.safetensors: the output is also an input"), "{stderr}");
    let stderr = dir.refused(&["a", "-i", "a=a-00001-of-00001.safetensors", "-o", "a.index.json", "--force"]);
    assert!(stderr.contains("a-00001-of-00001.safetensors: the output is also an input"), "{stderr}");
}

/// A loader reads one file or an index, so what the other layout has left would be an old model.
#[test]
fn one_layout_of_a_model_replaces_the_other() {
    let dir = Dir::new("layouts");
    let (a, _) = models();
    dir.checkpoint("a.safetensors", &a);
    let others = ["m-1.safetensors", "m-00001-of-00002.npz", "mm.safetensors", "m.index.json", "m.txt"];
    others.iter().for_each(|name| dir.file(name, b"other"));
    let copy = ["a", "-i", "a=a.safetensors"];
    let made = |more: &[&str]| {
        dir.eval(&[&copy[..], more, &["--force"]].concat()).ok();
        let own = |n: &String| n.starts_with('m') && !others.contains(&n.as_str());
        dir.names().into_iter().filter(own).collect::<Vec<_>>()
    };
    let (one, index) = ("m.safetensors", "m.safetensors.index.json");
    let shards = |n: usize| {
        let names = (1..=n).map(|i| format!("m-{i:05}-of-{n:05}.safetensors"));
        names.chain([index.to_string()]).collect::<Vec<_>>()
    };
    assert_eq!(made(&["-o", one]), [one]);
    for size in ["4KB", "100", "4KB"] {
        let names = made(&["-o", one, "--max-shard-size", size]);
        assert!(names.len() > 2 && names == shards(names.len() - 1), "{names:?}");
    }
    assert_eq!(made(&["-o", index]), shards(1));
    let stderr = dir.refused(&[&copy[..], &["-o", one]].concat());
    assert!(stderr.contains("m.safetensors.index.json: the output exists; use --force"), "{stderr}");
    let dry = dir.eval(&[&copy[..], &["-o", one, "--dry-run"]].concat()).ok().stdout;
    assert!(dry.contains("m.safetensors.index.json, m-00001-of-00001.safetensors exist: a run replaces them"), "{dry}");
    // What the run reads stays.
    let stderr = dir.refused(&["m", "-i", "m=m.safetensors.index.json", "-o", one, "--force"]);
    let told = "m.safetensors.index.json: the output is also an input\nhelp: a loader takes this file for a part of the output";
    assert!(stderr.contains(told), "{stderr}");
    assert_eq!(made(&["-o", one]), [one]);
    let stderr = dir.refused(&["m", "-i", "m=m.safetensors", "-o", index, "--force"]);
    assert!(stderr.contains("m.safetensors: the output is also an input"), "{stderr}");
    // A run that fails leaves what was there.
    let before = dir.names();
    let failed = dir.eval(&["a / 0", "-i", "a=a.safetensors", "-o", index, "--force", "--check", "finite"]);
    assert_eq!((failed.code, dir.names()), (Some(3), before), "{}", failed.stderr);
    assert!(others.iter().all(|n| dir.0.join(n).exists()));
}

#[test]
fn archives_are_merged_as_checkpoints_are() {
    let dir = Dir::new("archives");
    let (_, b) = models();
    let a: Tensors = b.iter().map(|(n, t)| (*n, t.flip_all())).collect();
    npz(&dir, "a.npz", &a);
    dir.checkpoint("b.safetensors", &b);
    for (output, flags) in [("m.npz", &[][..]), ("n.npz", &["--compress"])] {
        let files = ["-i", "a=a.npz", "-i", "b=b.safetensors", "-o", output];
        dir.eval(&[&[MERGE], &files[..], flags].concat()).ok();
        let mut merged = Npz::open(dir.0.join(output)).unwrap();
        assert_eq!(merged.names().count(), 5);
        for ((name, a), (_, b)) in a.iter().zip(&b) {
            let (got, expected) = (merged.load(name).unwrap(), eager(Rules::Torch, MERGE, &[("a", a), ("b", b)]));
            assert_eq!((got.dtype(), got.shape()), (expected.dtype(), expected.shape()), "{name}");
            assert_eq!(got.as_bytes(), expected.as_bytes(), "{name}");
        }
    }
    assert_eq!(dir.eval(&["a", "-i", "a=a.npz", "-o", "c.npy"]).code, Some(2));
    let stderr = dir.refused(&["a", "-i", "a=a.npz", "-o", "c.npz", "--out-dtype", "bf16"]);
    assert!(stderr.contains("NumPy has no bf16"), "{stderr}");
    // An array without a name is written under the default name.
    dir.npy("x.npy", &b[0].1);
    dir.eval(&["x", "-i", "x=x.npy", "-o", "x.npz"]).ok();
    let x = Npz::open(dir.0.join("x.npz")).unwrap().load("result").unwrap();
    assert_eq!(x.as_bytes(), b[0].1.as_bytes());
    dir.file("bad.npz", b"PK\x05\x06");
    let stderr = dir.refused(&["a", "-i", "a=bad.npz", "-o", "c.npz"]);
    assert!(stderr.contains("error: bad.npz: "), "{stderr}");
}

/// Reverses all elements.
trait FlipAll {
    fn flip_all(&self) -> Tensor;
}

impl FlipAll for Tensor {
    fn flip_all(&self) -> Tensor {
        (0..self.rank()).fold(self.clone(), |t, d| t.flip(d).unwrap()).contiguous().unwrap()
    }
}

#[test]
fn complex_tensors_go_as_far_as_their_format() {
    let dir = Dir::new("complex");
    let z = Tensor::from_slice(&[castwise::Complex::new(1.0f32, -2.0), castwise::Complex::new(0.5, 0.0)], [2]).unwrap();
    dir.checkpoint("z.safetensors", &[("z", z.clone())]);
    dir.eval(&["z * 1", "-i", "z=z.safetensors", "-o", "y.safetensors"]).ok();
    assert_eq!(SafeTensors::open(dir.0.join("y.safetensors")).unwrap().load("z").unwrap().as_bytes(), z.as_bytes());
    for (dtype, output) in [("c128", "w.safetensors"), ("c128", "w.index.json"), ("c32", "w.safetensors")] {
        let stderr = dir.refused(&["z", "-i", "z=z.safetensors", "-o", output, "--out-dtype", dtype]);
        assert!(stderr.contains(&format!("has no {dtype} (for `z`)")), "{stderr}");
    }
    dir.eval(&["z", "-i", "z=z.safetensors", "-o", "w.npz", "--out-dtype", "c128"]).ok();
    assert_eq!(Npz::open(dir.0.join("w.npz")).unwrap().info("z").unwrap().0, DType::C128);
}

#[test]
fn a_tensor_that_castwise_can_not_read_matters_only_if_it_is_needed() {
    let dir = Dir::new("needed");
    let entries = ["F8_E8M0", "F8_E5M2FNUZ"].iter().scan(0, |at, dtype| {
        let from = *at;
        *at += 1;
        Some(format!(r#""{dtype}":{{"dtype":"{dtype}","shape":[1],"data_offsets":[{from},{}]}}"#, *at))
    });
    let x = r#""x":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}"#.to_string();
    let header = format!("{{{}}}", entries.chain([x]).collect::<Vec<_>>().join(","));
    dir.file("a.safetensors", &[&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 4]].concat());
    dir.checkpoint("b.safetensors", &[("x", half_tensor(1, &[1]))]);
    let files = ["-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "c.safetensors"];
    dir.eval(&[&["a + b", "--missing", "skip"], &files[..]].concat()).ok();
    let stderr = dir.refused(&["a * 2", "-i", "a=a.safetensors", "-o", "d.safetensors"]);
    for dtype in ["F8_E8M0", "F8_E5M2FNUZ"] {
        assert!(stderr.contains(&format!("the tensor `{dtype}` is {dtype}, a dtype that castwise")), "{stderr}");
    }
}

/// Parses the number before a unit, and converts it to bytes.
#[cfg(target_os = "linux")]
fn human(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap();
    let factor = match unit {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        _ => 1024.0 * 1024.0 * 1024.0,
    };
    number.parse::<f64>().unwrap() * factor
}

/// The bytes of memory that a run of `castwise eval` has at its peak, as it says.
#[cfg(target_os = "linux")]
fn peak(dir: &Dir, arguments: &[&str]) -> f64 {
    let out = dir.eval(arguments).ok();
    human(out.stderr.trim_end().rsplit_once("peak memory ").unwrap().1)
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_that_of_a_few_tensors() {
    let dir = Dir::new("memory");
    // Two inputs of 380 MiB each, with tensors of 40 and 36 MiB alternately, whose memory glibc returns to the system.
    // The results are u8 too. Memory that is kept for one size would add to the three tensors of the other size.
    let sizes: Vec<usize> = (0..10).map(|i| if i % 2 == 0 { 36 << 20 } else { 40 << 20 }).collect();
    sparse(&dir, "a.safetensors", &sizes);
    sparse(&dir, "b.safetensors", &sizes);
    let files = ["-i", "a=a.safetensors", "-i", "b=b.safetensors"];
    for output in [&["-o", "c.safetensors"][..], &["-o", "c.index.json", "--max-shard-size", "100MiB"]] {
        // Three tensors have 120 MiB; the process without them has about 10.
        let peak = peak(&dir, &[&["a ^ b"], &files[..], output].concat());
        assert!(peak < 150.0 * 1024.0 * 1024.0, "{output:?}: {peak}");
        for name in dir.names().into_iter().filter(|n| n.starts_with('c')) {
            std::fs::remove_file(dir.0.join(name)).unwrap();
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_that_of_the_tensors_in_flight() {
    let dir = Dir::new("flight");
    // Like the layers of a model: 368 MiB in each input, in tensors that the C library's allocator keeps.
    let sizes: Vec<usize> =
        (0..120).map(|i| [2 << 20, 2 << 20, 2 << 20, 2 << 20, 11 << 19, 11 << 19, 11 << 19, 2048][i % 8]).collect();
    ["a", "b", "c"].iter().for_each(|name| sparse(&dir, &format!("{name}.safetensors"), &sizes));
    sparse(&dir, "small.safetensors", &[1]);
    let output = ["-o", "d.safetensors", "--force"];
    let process = peak(&dir, &[&["a ^ 1", "-i", "a=small.safetensors"], &output[..]].concat());
    let inputs = ["-i", "a=a.safetensors", "-i", "b=b.safetensors", "-i", "c=c.safetensors"];
    let peak = peak(&dir, &[&["a ^ b ^ c"], &inputs[..], &output].concat());
    // So much is read, computed and written at a time.
    assert!(peak - process < 48.0 * 1024.0 * 1024.0, "{peak} {process}");
}

/// Starts a merge that would take minutes.
#[cfg(unix)]
fn merge(dir: &Dir, before: &str) -> Child {
    sparse(dir, "a.safetensors", &[8 << 20; 4000]);
    start(dir, before, &["eval", "a ^ 1", "-i", "a=a.safetensors", "-o", "b.safetensors"])
}

#[test]
#[cfg(unix)]
fn a_signal_leaves_no_temporary_file() {
    use std::os::unix::process::ExitStatusExt;
    for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1), ("-QUIT", 3)] {
        let dir = Dir::new(&format!("signal{name}"));
        let child = merge(&dir, DEFAULT_SIGNALS);
        signal(&child, name);
        assert_eq!(ended(child).signal(), Some(number));
        assert_eq!(dir.names(), ["a.safetensors"], "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_ignored_signal_stays_ignored() {
    use std::os::unix::process::ExitStatusExt;
    let dir = Dir::new("nohup");
    let child = merge(&dir, "trap '' HUP; exec");
    signal(&child, "-HUP");
    // If the signal were not ignored, it would end the process within this time.
    std::thread::sleep(Duration::from_millis(200));
    signal(&child, "-TERM");
    assert_eq!(ended(child).signal(), Some(15));
    assert_eq!(dir.names(), ["a.safetensors"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_failed_write_leaves_no_file() {
    let dir = Dir::new("full");
    dir.checkpoint("a.safetensors", &[("x", half_tensor(1, &[400, 400])), ("y", half_tensor(2, &[400, 400]))]);
    dir.npy("x.npy", &half_tensor(1, &[400, 400]));
    let before = dir.names();
    // The signal that precedes the error is either ignored or has its default action, which ends the process.
    let signals = ["trap '' XFSZ; ulimit -f 64; exec", "ulimit -f 64; exec env --default-signal=XFSZ"];
    let outputs = ["b.safetensors", "b.npz", "b.index.json", "b.npy"];
    for (output, before_it) in outputs.iter().flat_map(|o| signals.map(|s| (*o, s))) {
        // No file may be larger than 64 blocks of 512 bytes, which has the effect of a full disk.
        let input = if output == "b.npy" { "a=x.npy" } else { "a=a.safetensors" };
        let script = format!("{before_it} \"$0\" eval 'a * 2' -i {input} -o {output}");
        let mut sh = Command::new("sh");
        let out = sh.args(["-c", &script, env!("CARGO_BIN_EXE_castwise")]).current_dir(&dir.0).output().unwrap();
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("File too large") && stderr.contains("b"), "{stderr}");
        assert!(!stderr.contains("ZipWriter"), "{stderr}");
        assert_eq!(dir.names(), before, "{output}");
    }
}

/// As GPTQ has them: packed integers that a merge copies, beside floats that it computes.
#[test]
fn packed_integers_of_quantized_checkpoints_are_copied() {
    let dir = Dir::new("packed");
    let words =
        |seed: u32| -> Vec<u32> { (0..128u32).map(|i| i.wrapping_mul(2_654_435_761).wrapping_add(seed)).collect() };
    let checkpoint = |name: &str, seed: u32| {
        let packed = Tensor::from_vec(words(seed), [8, 16]).unwrap();
        let groups = Tensor::from([0i32, 0, 1, 1]);
        dir.checkpoint(name, &[("g_idx", groups), ("qweight", packed), ("scales", half_tensor(seed.into(), &[2, 16]))]);
    };
    checkpoint("a.safetensors", 7);
    checkpoint("b.safetensors", u32::MAX);
    let inputs = ["-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "m.safetensors", "--out-dtype", "bf16"];
    dir.eval(&[&[MERGE, "--map", "qweight|g_idx=b"][..], &inputs].concat()).ok();
    let mut merged = SafeTensors::open(dir.0.join("m.safetensors")).unwrap();
    assert_eq!(merged.load("qweight").unwrap().to_vec::<u32>().unwrap(), words(u32::MAX));
    assert_eq!(merged.load("g_idx").unwrap().to_vec::<i32>().unwrap(), [0, 0, 1, 1]);
    assert_eq!(merged.load("scales").unwrap().dtype(), DType::BF16);
}

/// As DeepSeek has them: weights of 8 bits and their scales.
#[test]
fn floats_of_8_bits_are_dequantized() {
    let dir = Dir::new("dequantized");
    let codes: Vec<u8> = (0..=255).collect();
    let weights = Tensor::from_bytes(DType::F8E4M3FN, [2, 128], &codes).unwrap();
    dir.checkpoint("a.safetensors", &[("w", weights)]);
    dir.checkpoint("s.safetensors", &[("w", Tensor::from_vec(vec![0.5f32, 2.0], [2, 1]).unwrap())]);
    let inputs = ["-i", "a=a.safetensors", "-i", "s=s.safetensors", "-o", "w.safetensors", "--out-dtype", "bf16"];
    dir.eval(&[&["cast(a, f32) * s"][..], &inputs].concat()).ok();
    let w = SafeTensors::open(dir.0.join("w.safetensors")).unwrap().load("w").unwrap();
    let got = w.to_vec::<half::bf16>().unwrap();
    for (i, got) in got.iter().enumerate() {
        let want = castwise::F8E4M3FN::from_bits(i as u8).to_f32() * if i < 128 { 0.5 } else { 2.0 };
        assert!(got.to_f32() == want || got.is_nan() && want.is_nan(), "{i:#x}");
    }
    let refused = dir.refused(&[&["a * s"][..], &inputs, &["--force"]].concat());
    assert!(refused.contains("cast the first operand, e.g. `cast(a, f32)`"), "{refused}");
}

/// The vegetation index of two bands, with the bits that NumPy 2.4.6 gave: of the integers, whose sums and differences
/// wrap, and of their floats.
#[test]
fn band_math_on_u16_arrays_has_the_bits_of_numpy() {
    let dir = Dir::new("bands");
    dir.npy("n.npy", &Tensor::from([3120u16, 812, 65535, 0, 40000, 5, 1, 9999, 32768, 2]));
    dir.npy("r.npy", &Tensor::from([410u16, 2200, 65535, 0, 30000, 7, 0, 10000, 32767, 65535]));
    let eval = |expression: &str| -> Tensor {
        let inputs = ["-i", "n=n.npy", "-i", "r=r.npy", "-o", "y.npy", "--rules", "numpy", "--force"];
        dir.eval(&[&[expression][..], &inputs].concat()).ok();
        castwise::io::read_npy(dir.0.join("y.npy")).unwrap()
    };
    let integers = [
        0x3fe8910ae0d0dc77u64,
        0x40354c276fd9ec48,
        0,
        f64::NAN.to_bits(),
        0x4001ebd04967af41,
        0x40b5552aaaaaaaab,
        0x3ff0000000000000,
        0x400a371e9b3876b0,
        0x3ef0001000100010,
        0x4008000000000000,
    ];
    let wrapped = eval("(n - r) / (n + r)").to_vec::<f64>().unwrap();
    assert_eq!(wrapped.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), integers);
    let floats = [
        0x3f448857u32,
        0xbeebf10b,
        0,
        f32::NAN.to_bits(),
        0x3e124925,
        0xbe2aaaab,
        0x3f800000,
        0xb851b9c7,
        0x37800080,
        0xbf7ffc00,
    ];
    let index = eval("(cast(n, f32) - cast(r, f32)) / (cast(n, f32) + cast(r, f32))").to_vec::<f32>().unwrap();
    assert_eq!(index.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), floats);
}
