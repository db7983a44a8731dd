//! The output of the command: the scripts in `tests/cli`, and the `console` blocks of the README and of `docs/`.
//!
//! `CASTWISE_BLESS=1 cargo test --test suite -- cli_scripts::` updates them with the output of the command.

#[allow(dead_code, reason = "an example is included for one function")]
#[path = "../examples/make_checkpoints.rs"]
mod make_checkpoints;
#[path = "command/script.rs"]
mod script;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use castwise::Tensor;
use castwise::io::{Compression, Existing, NpzWriter, ShardedWriter};
use script::{masked, run, steps, transcript};

use crate::command::{Dir, bf16_tensor, half_tensor};

fn bless() -> bool {
    std::env::var_os("CASTWISE_BLESS").is_some()
}

/// A program with comments, named values, and results with and without names.
const SCALE: &[u8] = br#"castwise 1
program(rules = torch) (%x: f32[n], %w: f32[n]) {
  %y = mul %x, %w             ; weighted
  %half = cast %y {dtype = f16}
  %s = sum %half              ; "all" of it
  fetch %s as "total", %y
}
"#;

/// A program whose mistakes the parser finds.
const WRONG: &[u8] = br#"castwise 1
program(rules = torch) (%x: f32[3]) {
  %a = mull %x, ~2
  %b = add %x, %c
  fetch %a, %b
}
"#;

/// A program with mistakes under one rule set.
const MIXED: &[u8] = br#"castwise 1
program(rules = paddle) (%steps: i64[n], %loss: f32[n]) {
  %a = mul %steps, %loss
  fetch %a as "scaled"
}
"#;

/// A program with integer ops that may wrap.
const WRAPS: &[u8] = br#"castwise 1
program(rules = torch) (%nir: u8[n], %red: u8[n]) {
  %low = sub %nir, %red
  %half = mul %low, ~0.5
  fetch %half as "half"
}
"#;

/// A directory with the files that the scripts use.
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
    dir.file("invalid.json", br#"{"model.norm.weight": 1, "layers[": 0.25}"#);
    dir.file("words.json", br#"{"model.norm.weight": "one"}"#);
    dir.file("broken.safetensors", b"not a checkpoint");
    // Two encoders with an integer buffer, one of them with a head, and an embedding beyond the range of f16.
    let (ids, large) = (Tensor::from([0i64, 1, 2, 3]), Tensor::from([1e5f32, 0.5]));
    let shared = [("embed", large.clone()), ("position_ids", ids.clone())];
    dir.checkpoint("encoder.safetensors", &shared);
    dir.checkpoint("head.safetensors", &[&shared[..], &[("head", large)]].concat());
    dir.checkpoint("moved.safetensors", &[("position_ids", Tensor::from([0i64, 2, 4, 7]))]);
    let twice = |t: &Tensor, name: &str| {
        let list = [("x".to_string(), t.dtype(), t.shape().to_vec()), ("w".to_string(), t.dtype(), t.shape().to_vec())];
        let mut all = NpzWriter::create(dir.0.join(name), &list, Compression::Stored, Existing::Keep).unwrap();
        list.iter().for_each(|(name, ..)| all.write(name, t).unwrap());
        all.finish().unwrap();
    };
    twice(&Tensor::from_slice(&[1.5f32, -2.0, 4.0], [3]).unwrap(), "feeds.npz");
    dir.npy("x.npy", &Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3]).unwrap());
    dir.npy("w.npy", &Tensor::from_slice(&[half::f16::ONE; 3], [3]).unwrap());
    dir.file("scale.cw", SCALE);
    dir.file("plain.cw", b"castwise 1\nprogram(rules = torch) (%x: f32[?]) {\n  %0 = neg %x\n  fetch %0\n}\n");
    dir.file("scale.txt", SCALE);
    dir.file("kept.cw", SCALE);
    dir.file("loose.cw", b"castwise 1 program(rules = torch)\n(%x: f32[?]) {\n%y = neg %x\n}");
    dir.file("several.cw", b"castwise 1\nprogram(rules = torch) (%x: f32[?]) {\n  %a = abs %x\n  %b = neg %x\n}\n");
    dir.file("wrong.cw", WRONG);
    dir.file("mixed.cw", MIXED);
    dir.file("wraps.cw", WRAPS);
    dir.file(
        "zero.cw",
        b"castwise 1\nprogram(rules = torch) (%n: i64[?]) {\n  %q = floor_divide %n, ~0\n  fetch %q\n}\n",
    );
    dir.file("latin.cw", b"castwise 1 ; caf\xe9\n");
    dir.file("empty.cw", b"castwise 1\nprogram(rules = torch) () {\n}\n");
    // Files that NumPy wrote (big-endian in Fortran order, 0-d, without elements, complex), and others in its format.
    let numpy = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    for (from, to) in
        [("f4-v2-big-fortran", "big"), ("f4-v3-0d", "scalar"), ("shape-empty", "empty"), ("c16", "complex")]
    {
        std::fs::copy(numpy.join(format!("{from}.npy")), dir.0.join(format!("{to}.npy"))).unwrap();
    }
    let npy = |version: u8, descr: &str, data: &[u8]| {
        let text = format!("{:<117}\n", format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,)}}"));
        [&b"\x93NUMPY"[..], &[version, 0], &(text.len() as u16).to_le_bytes(), text.as_bytes(), data].concat()
    };
    dir.file("f16.npy", &npy(1, "<f16", &[0; 32]));
    dir.file("v9.npy", &npy(9, "<f4", &[0; 8]));
    dir.file("short.npy", &npy(1, "<f4", &[0; 7]));
    dir.file("torn.npz", b"PK\x03\x04 torn");
    dir.file("lost.index.json", br#"{"weight_map": {"up": "lost-00001-of-00001.safetensors"}}"#);
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
    models(&dir);
    measured(&dir);
    recipes(&dir);
    dir
}

/// Folders of models: `base`, `step` of the same names, and `tuned`, whose names have a prefix; `fp8` with scales of blocks; folders without a model.
fn models(dir: &Dir) {
    for folder in ["base", "tuned", "step", "fp8", "bin", "two"] {
        std::fs::create_dir(dir.0.join(folder)).unwrap();
    }
    let small = |seed| bf16_tensor(seed, &[4, 8]);
    dir.checkpoint("base/model.safetensors", &[("norm.weight", small(1)), ("up.weight", small(2))]);
    let tuned = [("module.norm.weight", small(3)), ("module.up.weight", small(4)), ("module.lm_head", small(5))];
    dir.checkpoint("tuned/tuned.safetensors", &tuned);
    dir.checkpoint("step/model.safetensors", &[("norm.weight", small(6)), ("up.weight", small(7))]);
    dir.file("base/config.json", b"{\n  \"torch_dtype\": \"bfloat16\",\n  \"vocab\": 8\n}\n");
    dir.file("base/tokenizer.json", b"{}\n");
    let weight = Tensor::from_bytes(castwise::DType::F8E4M3FN, [2, 3], &[0x38, 0x40, 0xb8, 1, 2, 3]).unwrap();
    let scale = Tensor::from_slice(&[2f32], [1, 1]).unwrap();
    let fp8 = [("up.weight", weight), ("up.weight_scale_inv", scale), ("norm.weight", small(1))];
    dir.checkpoint("fp8/model.safetensors", &fp8);
    dir.file("fp8/config.json", br#"{"dtype": "float8_e4m3fn", "quantization_config": {"quant_method": "fp8"}}"#);
    dir.file("bin/pytorch_model.bin", b"");
    dir.checkpoint("two/a.safetensors", &tuned);
    dir.checkpoint("two/b.safetensors", &tuned);
}

/// `odd.safetensors` with tensors of several dtypes, and `even.safetensors`, which differs in some of them.
fn measured(dir: &Dir) {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let floats = Tensor::from_slice(&[1.0, -2.5, nan, inf, -inf, 0.0, -0.0, 1e-40, 1e6f32], [3, 3]).unwrap();
    let near = Tensor::from_slice(&[1.000001, -2.5, nan, inf, -inf, -0.0, 0.0, 1e-40, 1e6f32], [3, 3]).unwrap();
    let bytes = Tensor::from_bytes(castwise::DType::F8E4M3FN, [4], &[0x7e, 0x01, 0x80, 0x7f]).unwrap();
    let large = Tensor::from([i64::MAX, -3, 0]);
    let same = [
        ("layers.0.bytes", bytes),
        ("layers.0.empty", Tensor::from_slice(&[] as &[f32], [0, 3]).unwrap()),
        ("layers.1.flags", Tensor::from([true, false, true])),
        ("layers.1.complex", Tensor::from([castwise::Complex::new(3.0f32, 4.0)])),
    ];
    let odd = [("layers.0.floats", floats), ("ids", large), ("layers.2.half", half_tensor(3, &[8, 8]))];
    let even = [
        ("layers.0.floats", near),
        ("ids", Tensor::from([i64::MAX - 1, -3, 0])),
        ("layers.2.half", bf16_tensor(3, &[8, 8])),
        ("layers.3.<b>new</b>", Tensor::from([1u8])),
    ];
    dir.checkpoint("odd.safetensors", &[&same[..], &odd[..], &[("old", Tensor::from([1u8]))]].concat());
    dir.checkpoint("even.safetensors", &[&same[..], &even[..]].concat());
}

/// A program of gradients, whose names are those that its own gradients would have.
const GRADIENT: &[u8] = br#"castwise 1
program(rules = torch) (%x: f32[3], %cotangent: f32[3]) {
  %y = mul %x, %x
  %z = mul %cotangent, %x
  %g = mul %z, ~2
  fetch %y as "out", %g as "grad x"
}
"#;

/// Recipes of a user, right and wrong, and configurations of mergekit.
fn recipes(dir: &Dir) {
    dir.file("gradient.cw", GRADIENT);
    dir.file("mean.recipe", b"# Average of models.\nmodels x 2\ntotal[i](x[i]) / models\n");
    dir.file("bad.recipe", b"# Uses what it lacks.\nmodels x 1\nlet k = k + 1\nx[last]\n");
    dir.file("open.recipe", b"# No result.\nmodels x 1\ny[i] = x[i]\n");
    dir.file("sibling.recipe", b"# No sibling.\ninput a\na + rank(a)\n");
    dir.file("index.recipe", b"# A wrong index.\nmodels x 1\nx[k]\n");
    dir.file("cycle.recipe", b"# Made of itself.\nmodels x 1\na = b\nb = a\nx[last] * a\n");
    dir.file("word.recipe", b"# A wrong word.\nmodels x 1\nx[last] * weigth\n");
    dir.file("layers.yml", b"[{filter: mlp, value: [0, 1]}, {value: 0.5}]\n");
    let head = "merge_method: ties\nbase_model: base.safetensors\nmodels:\n  - model: tuned.safetensors\n";
    let merge = |name: &str, text: &str| dir.file(name, text.as_bytes());
    merge(
        "ties.yml",
        &format!("{head}    parameters: {{weight: 0.5, density: 0.5}}\ndtype: float32\nout_dtype: bfloat16\n"),
    );
    merge("weightless.yml", head);
    merge("unknown.yml", &format!("{head}    parameters:\n      weight: 1\n      densty: 0.5\n"));
    merge("scope.yml", &format!("{head}    parameters: {{weight: 1, lambda: 0.5}}\n"));
    merge("words.yml", &format!("{head}    parameters:\n      weight: heavy\n"));
    merge("method.yml", "merge_method: passthrough\nmodels: []\n");
    merge("slices.yml", "merge_method: linear\nslices:\n  - sources: []\n  - sources: []\n");
    merge("range.yml", "merge_method: linear\nslices:\n  - sources:\n    - model: base\n      layer_range: [4, 8]\n");
    merge("tokenizer.yml", &format!("{head}tokenizer_source: union\n"));
    merge(
        "same.yml",
        &format!("{head}    parameters: {{weight: 1}}\n  - model: tuned.safetensors\n    parameters: {{weight: 2}}\n"),
    );
    merge("normalize.yml", &format!("{head}    parameters: {{weight: 1}}\nparameters: {{normalize: 2}}\n"));
    merge("octal.yml", &format!("{head}    parameters: {{weight: 010}}\n"));
    merge("chat.yml", &format!("{head}    parameters: {{weight: 1}}\ntokenizer: {{source: union}}\n"));
    merge("dtype.yml", &format!("{head}dtype: int8\n"));
    merge("lost.yml", "merge_method: linear\nmodels:\n  - model: org/name\n    parameters: {weight: 1}\n");
    merge("twice.yml", "merge_method: linear\nmerge_method: ties\n");
    let toml = "expression = \"@ties\"\nout-dtype = \"bf16\"\noutput = \"made.safetensors\"\nforce = true\n[inputs]\n\
                base = \"base.safetensors\"\na = \"tuned.safetensors\"\n[parameters]\ndensity = [0.2, 0.8]\n\
                \"weight.a\" = [{ filter = \"mlp\", value = 0.5 }, { value = 1 }]\n";
    dir.file("ties.toml", toml.as_bytes());
    dir.file("key.toml", b"colour = \"red\"\n");
    dir.file("table.toml", b"[colour]\nred = 1\n");
    dir.file("torn.toml", b"expression = \n");
    dir.file("value.toml", b"expression = \"x\"\nthreads = \"many\"\n");
    let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_string();
    for n in 1..12 {
        let all = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb += &format!("a{n}: &a{n} [{all}]\n");
    }
    merge("bomb.yml", &bomb);
    merge("deep.yml", &"[".repeat(100_000));
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
            let said = masked(&transcript(&out));
            count += 1;
            if said != masked(&step.expected) {
                wrong.push(format!("{name}.txt:{}: $ {}\nprints\n{said}\n", step.at, step.line));
            }
            let command = &lines[step.at - 1..];
            let end = command.iter().position(|l| !l.ends_with('\\')).unwrap_or(0);
            let said = if said.is_empty() { said } else { said + "\n" };
            written += &format!("{}\n{said}\n", command[..=end].join("\n"));
        }
        if bless() {
            std::fs::write(file, written.trim_end().to_string() + "\n").unwrap();
        }
    }
    assert!(count > 40, "only {count} commands were found");
    assert!(wrong.is_empty() || bless(), "{}", wrong.join("\n"));
}

/// The documentation pages, by their names: the README, and `docs/` with the folders in it.
fn pages() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = vec![("README".to_string(), root.join("README.md"))];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                let name = path.with_extension("").strip_prefix(root.join("docs")).unwrap().display().to_string();
                all.push((name.replace(['/', '\\'], "-"), path));
            }
        }
    }
    all.sort();
    all
}

/// Whether a page shows this output. Its lines `...` are any lines that are left out there.
fn shows(expected: &str, output: &str) -> bool {
    let (expected, output): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), output.lines().collect());
    let parts: Vec<&[&str]> = expected.split(|line| *line == "...").collect();
    let [first, middle @ .., last] = &parts[..] else { return expected == output };
    let Some(mut rest) = output.strip_prefix(*first) else { return false };
    for part in middle.iter().filter(|part| !part.is_empty()) {
        let Some(at) = rest.windows(part.len()).position(|lines| lines == *part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn three_dots_are_lines_that_are_left_out() {
    assert!(shows("a\nb", "a\nb") && !shows("a\nb", "a\nb\nc") && !shows("a", "b"));
    assert!(shows("...\nb\n...", "a\nb\nc") && !shows("...\nb\n...", "a\nbb\nc"));
    assert!(shows("a\n...\nd", "a\nb\nc\nd") && !shows("a\n...\nd", "a\nd\nc") && !shows("a\n...\nd", "ab\nd"));
}

/// Whether the machine can make what a command line prints: the code for AVX2 is printed only where it can run.
fn can_print(line: &str) -> bool {
    #[cfg(all(target_arch = "x86_64", unix))]
    let avx2 = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    let avx2 = false;
    avx2 || !line.contains("CASTWISE_CPU=avx2")
}

/// Runs the `console` blocks of a page in order, in one directory. Returns the updated page, the number of commands,
/// and the commands whose output differs.
fn page(name: &str, text: &str) -> (String, usize, Vec<String>) {
    let dir = fixtures(&format!("page-{name}"));
    let (mut made, mut rest, mut count, mut wrong) = (String::new(), text, 0, Vec::new());
    while let Some(at) = rest.find("```console\n") {
        let (before, block) = rest.split_at(at + "```console\n".len());
        let (block, behind) = block.split_at(block.find("```\n").unwrap());
        made += before;
        let lines: Vec<&str> = block.lines().collect();
        for step in steps(block) {
            count += 1;
            let end = lines[step.at - 1..].iter().position(|l| !l.ends_with('\\')).unwrap_or(0);
            let said = can_print(&step.line).then(|| {
                let out = run(&dir, &step.line);
                format!("{}{}", out.stdout, out.stderr).trim_end().to_string()
            });
            let said = said.unwrap_or_else(|| step.expected.clone());
            let same = shows(&masked(&step.expected), &masked(&said));
            if !same {
                wrong.push(format!("{name}: $ {}\nprints\n{said}\n", step.line));
            }
            let output = if same { &step.expected } else { &said };
            made += &format!("{}\n{output}\n", lines[step.at - 1..step.at + end].join("\n"));
        }
        rest = behind;
    }
    (made + rest, count, wrong)
}

#[test]
fn pages_show_real_output() {
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    for (name, path) in pages() {
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("```console\n") {
            let (made, count, mut differing) = page(&name, &text);
            wrong.append(&mut differing);
            counts.insert(name, count);
            if bless() {
                std::fs::write(path, made).unwrap();
            }
        }
    }
    assert!(
        counts["README"] >= 1 && counts["command"] >= 9 && counts["tutorial-command"] >= 6,
        "only these were found: {counts:?}"
    );
    assert!(wrong.is_empty() || bless(), "{}", wrong.join("\n"));
}
