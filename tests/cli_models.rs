//! The command and folders of models: FP8 weights with scales of blocks, folders that are hostile, outputs that are killed.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use castwise::io::SafeTensors;
use castwise::{DType, Tensor};
use half::bf16;
use serde_json::{Value, json};

use crate::command::{Dir, bf16_tensor, half_tensor, noise, of_bytes};

/// A folder with a small model, its configuration and its tokenizer.
fn model(dir: &Dir, folder: &str, tensors: &[(&str, Tensor)]) -> PathBuf {
    let path = dir.0.join(folder);
    std::fs::create_dir_all(&path).unwrap();
    dir.checkpoint(&format!("{folder}/model.safetensors"), tensors);
    dir.file(&format!("{folder}/config.json"), br#"{"model_type": "tiny", "torch_dtype": "float16", "layers": 2}"#);
    dir.file(&format!("{folder}/tokenizer.json"), b"{}");
    path
}

fn files(of: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        std::fs::read_dir(of).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

#[test]
fn a_dry_run_as_json_says_which_files_are_copied_from_where() {
    let dir = Dir::new("copied");
    let weight = half_tensor(1, &[2]);
    model(&dir, "unused", &[("w", weight.clone())]);
    model(&dir, "base", &[("w", weight)]);
    let report = |more: &[&str]| -> Value {
        let command = ["b * 2", "-i", "a=unused/", "-i", "b=base/", "-o", "new/", "--dry-run", "--json"];
        serde_json::from_str(&dir.eval(&[&command, more].concat()).ok().stdout).unwrap()
    };
    let (copied, left) = (report(&[]), report(&["--no-copy-rest"]));
    assert_eq!(copied["copied"], json!({ "from": "base/", "files": ["config.json", "tokenizer.json"] }));
    assert_eq!((&copied["named"], &left["copied"]), (&Value::from(true), &Value::Null));
}

/// The number that a byte of F8_E4M3 has, by its definition: a sign, 4 bits of exponent with bias 7, 3 of mantissa.
fn e4m3(byte: u8) -> f32 {
    let (sign, exponent, mantissa) = (byte >> 7, i32::from(byte >> 3 & 15), f32::from(byte & 7));
    let value = match (exponent, byte & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-9),
        _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
    };
    if sign == 1 { -value } else { value }
}

/// A model as DeepSeek publishes them: weights in FP8, with a scale in f32 for each block of 128 × 128 elements.
#[test]
fn fp8_weights_with_scales_of_blocks_become_bf16_exactly() {
    let dir = Dir::new("fp8");
    let (rows, columns) = (200, 300);
    let bytes: Vec<u8> = (0..rows * columns).map(|i| (i * 7 + i / 256) as u8).collect();
    let scales: Vec<f32> = noise(3, 6).into_iter().map(|v| v.abs() / 300.0).collect();
    let weight = Tensor::from_bytes(DType::F8E4M3FN, [rows, columns], &bytes).unwrap();
    let norm = bf16_tensor(1, &[columns]);
    let folder = model(
        &dir,
        "fp8",
        &[
            ("0.weight", weight),
            ("0.weight_scale_inv", Tensor::from_slice(&scales, [2, 3]).unwrap()),
            ("norm.weight", norm.clone()),
        ],
    );
    let config = r#"{"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}, "torch_dtype": "float8_e4m3fn"}"#;
    std::fs::write(folder.join("config.json"), config).unwrap();
    let out = dir
        .eval(&[
            "cast(w, f32) * blocks(s, like=w, size=128)",
            "-i",
            "w=fp8/",
            "--sibling",
            r"s=w:\.weight$=.weight_scale_inv",
            "--missing",
            "copy",
            "--out-dtype",
            "bf16",
            "-o",
            "bf16/",
        ])
        .ok();
    assert!(out.stderr.contains("quantization_config of fp8 removed"), "{}", out.stderr);
    let mut made = SafeTensors::open(dir.0.join("bf16/model.safetensors")).unwrap();
    assert_eq!(made.names().collect::<Vec<_>>(), ["0.weight", "norm.weight"]);
    let expected: Vec<bf16> = (0..rows * columns)
        .map(|i| bf16::from_f32(e4m3(bytes[i]) * scales[i / columns / 128 * 3 + i % columns / 128]))
        .collect();
    let got = made.load("0.weight").unwrap().to_vec::<bf16>().unwrap();
    for (i, (e, g)) in expected.iter().zip(&got).enumerate() {
        assert!(e.to_bits() == g.to_bits() || e.is_nan() && g.is_nan(), "element {i}: {g}, expected {e}");
    }
    let kept = made.load("norm.weight").unwrap();
    assert_eq!(kept.to_vec::<bf16>().unwrap(), norm.to_vec::<bf16>().unwrap());
    let config = std::fs::read_to_string(dir.0.join("bf16/config.json")).unwrap();
    assert_eq!(config, r#"{ "torch_dtype": "bfloat16"}"#);
}

#[test]
fn fp8_weights_without_their_scale_are_not_copied() {
    let dir = Dir::new("unscaled");
    let weight = Tensor::from_bytes(DType::F8E4M3FN, [2, 2], &[1, 2, 3, 4]).unwrap();
    let scale = Tensor::from_slice(&[2f32], [1, 1]).unwrap();
    model(&dir, "m", &[("0.weight", weight.clone()), ("0.weight_scale_inv", scale), ("1.weight", weight)]);
    let sibling = r"s=w:\.weight$=.weight_scale_inv";
    let more = ["-i", "w=m/", "--sibling", sibling, "--missing", "copy", "-o", "out/"];
    let stderr = dir.refused(&[&["cast(w, f32) * blocks(s, like=w, size=128)"], &more[..]].concat());
    assert!(stderr.contains("`1.weight` is f8e4m3fn and has no sibling `s`"), "{stderr}");
}

#[test]
fn fp8_weights_are_not_converted_without_their_scales() {
    let dir = Dir::new("unused-scales");
    let weight = Tensor::from_bytes(DType::F8E4M3FN, [2, 2], &[0x38; 4]).unwrap();
    let config = br#"{"quantization_config": {"quant_method": "fp8"}, "torch_dtype": "float8_e4m3fn"}"#;
    for (folder, end) in [("m", "_scale_inv"), ("c", "_scale")] {
        let scale = Tensor::from_slice(&[3f32], [1, 1]).unwrap();
        let name = format!("0.weight{end}");
        model(&dir, folder, &[("0.weight", weight.clone()), (name.as_str(), scale), ("norm", bf16_tensor(1, &[2]))]);
        dir.file(&format!("{folder}/config.json"), config);
    }
    let read = |folder: &str| {
        let mut file = SafeTensors::open(dir.0.join(folder).join("model.safetensors")).unwrap();
        let names = file.names().map(str::to_string).collect::<Vec<_>>();
        (names, file.load("0.weight").unwrap())
    };
    for (folder, scale) in [("w=m/", "0.weight_scale_inv"), ("w=c/", "0.weight_scale")] {
        for text in [&["@convert", "-p", "dtype=bf16"][..], &["w", "--out-dtype", "bf16"], &["cast(w, f32)"]] {
            let stderr = dir.refused(&[text, &["-i", folder, "-o", "out/"]].concat());
            let told = format!("`0.weight` is f8e4m3fn with the scale `{scale}`, which `");
            assert!(stderr.contains(&told) && stderr.contains("castwise eval @fp8_dequant -i w="), "{stderr}");
        }
    }
    // What the errors say, and the same by hand.
    dir.eval(&["@fp8_dequant", "-i", "w=m/", "-o", "blocks/"]).ok();
    dir.eval(&["@fp8_dequant", "-i", "w=c/", "-o", "rows/"]).ok();
    let by_row = ["cast(w, f32) * s", "-i", "w=c/", "--sibling", "s=w:$=_scale", "--missing", "copy"];
    dir.eval(&[&by_row[..], &["--out-dtype", "bf16", "-o", "by_hand/"]].concat()).ok();
    for folder in ["blocks", "rows", "by_hand"] {
        let (names, t) = read(folder);
        assert_eq!(names, ["0.weight", "norm"]);
        assert_eq!(t.to_vec::<bf16>().unwrap(), [bf16::from_f32(3.0); 4]);
    }
    // The scale may be an input of its own, and statistics and copies need none.
    let one = ["cast(w, f32) * s", "-i", "w=m/", "-i", "s=m/model.safetensors:0.weight_scale_inv"];
    dir.eval(&[&one[..], &["--select", "^0.weight$", "-o", "one/"]].concat()).ok();
    assert_eq!(read("one").1.to_vec::<f32>().unwrap(), [3.0; 4]);
    dir.eval(&["amax(cast(w, f32))", "-i", "w=m/", "-o", "most.npz"]).ok();
    dir.eval(&["w", "-i", "w=m/", "-o", "copy/"]).ok();
    assert_eq!(std::fs::read(dir.0.join("copy/config.json")).unwrap(), config);
}

/// Scales broadcast where that can mean one thing only: a scale of one dim would be one of columns.
#[test]
fn fp8_weights_with_scales_of_other_ranks() {
    let dir = Dir::new("ranks-of-scales");
    let one = |dims: &[usize]| Tensor::from_bytes(DType::F8E4M3FN, dims, &vec![0x38; dims.iter().product()]).unwrap();
    let scale = |dims: &[usize]| Tensor::from_slice(&[2f32, 3.0][..dims.iter().product()], dims).unwrap();
    for (dims, of_scale, expected) in [
        (&[2, 2][..], &[2, 1][..], &[2f32, 2.0, 3.0, 3.0][..]),
        (&[2, 3], &[2, 1], &[2.0, 2.0, 2.0, 3.0, 3.0, 3.0]),
        (&[2, 2], &[1], &[2.0; 4]),
        (&[2, 2], &[], &[2.0; 4]),
        (&[2, 2], &[1, 1], &[2.0; 4]),
        (&[2], &[1], &[2.0; 2]),
        (&[2], &[2], &[2.0, 3.0]),
        (&[2, 1, 2], &[2, 1, 1], &[2.0, 2.0, 3.0, 3.0]),
        (&[2, 1, 2], &[], &[2.0; 4]),
    ] {
        model(&dir, "m", &[("x", one(dims)), ("x_scale", scale(of_scale))]);
        dir.eval(&["@fp8_dequant", "-i", "w=m/", "-p", "dtype=f32", "-o", "out/", "--force"]).ok();
        let mut file = SafeTensors::open(dir.0.join("out/model.safetensors")).unwrap();
        assert_eq!(file.names().collect::<Vec<_>>(), ["x"]);
        assert_eq!(file.load("x").unwrap().to_vec::<f32>().unwrap(), expected, "{dims:?} {of_scale:?}");
    }
    let ranks = "a scale of several elements with other dims than its weight (tensor `x`)";
    for (dims, of_scale, said) in [
        (&[2, 2][..], &[2][..], ranks),
        (&[2, 2, 2], &[2], ranks),
        (&[2, 2, 2], &[2, 1], ranks),
        (&[2, 2], &[1, 1, 1], ranks),
        (&[3, 2], &[2, 1], "cannot broadcast f32[3, 2] with f32[2, 1]"),
        (&[2, 2], &[1, 2], "dim 1 of the scale is 2, but 2 elements are 1 blocks of 128"),
    ] {
        model(&dir, "m", &[("x", one(dims)), ("x_scale", scale(of_scale))]);
        let stderr = dir.refused(&["@fp8_dequant", "-i", "w=m/", "-o", "no/"]);
        assert!(stderr.contains(said), "{dims:?} {of_scale:?}: {stderr}");
    }
    // Tensors in other dtypes have no scales: what is called so is a tensor like others.
    let (wide, whole) = (bf16_tensor(1, &[2]), Tensor::from([1i8, 2]));
    let all = [("x", wide.clone()), ("x_scale", scale(&[2])), ("y", whole.clone()), ("y_scale_inv", scale(&[1]))];
    model(&dir, "m", &all);
    dir.eval(&["@fp8_dequant", "-i", "w=m/", "-p", "dtype=f32", "-o", "wide/"]).ok();
    let mut file = SafeTensors::open(dir.0.join("wide/model.safetensors")).unwrap();
    let mut names: Vec<&str> = file.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["x", "x_scale", "y", "y_scale_inv"]);
    let widened: Vec<f32> = wide.to_vec::<bf16>().unwrap().into_iter().map(f32::from).collect();
    assert_eq!(file.load("x").unwrap().to_vec::<f32>().unwrap(), widened);
    assert_eq!(file.load("x_scale").unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
    assert_eq!(file.load("y").unwrap().to_vec::<i8>().unwrap(), [1, 2]);
    assert_eq!(file.load("y_scale_inv").unwrap().to_vec::<f32>().unwrap(), [2.0]);
}

/// What says that weights are in FP8 goes with it; what says something else stays.
#[test]
fn configurations_of_fp8_are_removed() {
    let dir = Dir::new("fp8-methods");
    let weight = Tensor::from_bytes(DType::F8E4M3FN, [2, 2], &[0x38; 4]).unwrap();
    model(&dir, "m", &[("x", weight), ("x_scale", Tensor::from_slice(&[2f32], [1]).unwrap())]);
    let fp8 = r#"{"weights": {"type": "float", "num_bits": 8, "strategy": "channel"}, "targets": ["Linear"]}"#;
    let compressed = |groups: &[&str]| {
        let groups: Vec<String> = groups.iter().enumerate().map(|(i, g)| format!(r#""group_{i}": {g}"#)).collect();
        format!(r#"{{"config_groups": {{{}}}, "quant_method": "compressed-tensors"}}"#, groups.join(", "))
    };
    for (config, method) in [
        (r#"{"quant_method": "fp8"}"#, Some("fp8")),
        (r#"{"modules_to_not_convert": [], "quant_method": "fbgemm_fp8"}"#, Some("fbgemm_fp8")),
        (&compressed(&[fp8]), Some("compressed-tensors")),
        (&compressed(&[fp8, fp8]), Some("compressed-tensors")),
        (&compressed(&[fp8, r#"{"weights": {"type": "int", "num_bits": 8}}"#]), None),
        (&compressed(&[r#"{"weights": {"type": "float", "num_bits": 4}}"#]), None),
        (&compressed(&[r#"{"weights": null}"#]), None),
        (&compressed(&[]), None),
        (r#"{"quant_method": "compressed-tensors"}"#, None),
        (r#"{"quant_method": "gptq"}"#, None),
        (r#"["fp8"]"#, None),
    ] {
        dir.file("m/config.json", format!(r#"{{"a": 1, "quantization_config": {config}}}"#).as_bytes());
        let out = dir.eval(&["@fp8_dequant", "-i", "w=m/", "-o", "out/", "--force"]).ok();
        let made = std::fs::read_to_string(dir.0.join("out/config.json")).unwrap();
        let removed = |method: &str| out.stderr.contains(&format!("quantization_config of {method} removed"));
        match method {
            Some(method) => assert!(made == r#"{"a": 1}"# && removed(method), "{made} {}", out.stderr),
            None => assert!(made.contains(config) && !out.stderr.contains("removed"), "{made}"),
        }
    }
}

#[test]
fn scales_stay_with_weights_that_another_expression_takes() {
    let dir = Dir::new("mapped-scales");
    let weight = || Tensor::from_bytes(DType::F8E4M3FN, [2, 2], &[1, 2, 3, 4]).unwrap();
    let scale = || Tensor::from_slice(&[2f32], [1, 1]).unwrap();
    let all = [
        ("0.weight", weight()),
        ("0.weight_scale_inv", scale()),
        ("1.weight", weight()),
        ("1.weight_scale_inv", scale()),
    ];
    model(&dir, "m", &all);
    let sibling = r"s=w:\.weight$=.weight_scale_inv";
    let scaled = "cast(w, f32) * blocks(s, like=w, size=128)";
    let out = dir.eval(&[scaled, "--map", "^1=w", "-i", "w=m/", "--sibling", sibling, "-o", "out/"]).ok();
    assert!(!out.stderr.contains("warning"), "{}", out.stderr);
    let mut file = SafeTensors::open(dir.0.join("out/model.safetensors")).unwrap();
    let mut names: Vec<&str> = file.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["0.weight", "1.weight", "1.weight_scale_inv"]);
    assert_eq!(file.load("0.weight").unwrap().dtype(), DType::F32);
    assert_eq!(file.load("1.weight").unwrap().as_bytes(), weight().as_bytes());
    assert_eq!(file.load("1.weight_scale_inv").unwrap().as_bytes(), scale().as_bytes());
}

#[test]
fn links_are_followed_within_the_model_and_its_cache_only() {
    let dir = Dir::new("links");
    let (cache, at) = ("models--a--b", "models--a--b/snapshots/1");
    model(&dir, at, &[("w", bf16_tensor(1, &[4]))]);
    std::fs::create_dir_all(dir.0.join(cache).join("blobs")).unwrap();
    dir.file(&format!("{cache}/blobs/123"), b"merges");
    dir.file("secret", b"secret");
    std::fs::create_dir_all(dir.0.join("elsewhere")).unwrap();
    let folder = dir.0.join(at);
    symlink("../../blobs/123", folder.join("merges.txt")).unwrap();
    symlink("tokenizer.json", folder.join("alias.json")).unwrap();
    symlink("../../../secret", folder.join("notes.txt")).unwrap();
    symlink("../../../elsewhere", folder.join("more")).unwrap();
    symlink("nothing", folder.join("dangling")).unwrap();
    symlink("round", folder.join("round")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
    std::fs::create_dir_all(folder.join("1_Pooling")).unwrap();
    std::fs::write(folder.join("1_Pooling/config.json"), "{}").unwrap();
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    std::fs::write(folder.join("pytorch_model.bin"), "pickle").unwrap();
    std::fs::write(folder.join("adapter_model.safetensors"), "no part of what is read").unwrap();
    let out = dir.eval(&["a * 2", "-i", &format!("a={at}"), "-o", "out"]);
    assert_eq!(out.code, Some(2), "a new folder is written with a slash: {}", out.stderr);
    let out = dir.eval(&["a * 2", "-i", &format!("a={at}"), "-o", "out/"]).ok();
    let copied = ["1_Pooling", "alias.json", "config.json", "merges.txt", "model.safetensors", "tokenizer.json"];
    assert_eq!(files(&dir.0.join("out")), copied);
    assert_eq!(std::fs::read(dir.0.join("out/merges.txt")).unwrap(), b"merges");
    assert_eq!(files(&dir.0.join("out/1_Pooling")), ["config.json"]);
    assert!(!dir.0.join("out/alias.json").is_symlink());
    for said in [
        "weights: `adapter_model.safetensors`, `pytorch_model.bin`",
        "`dangling`, `more`, `notes.txt`, `round`",
        "`pipe`",
    ] {
        assert!(out.stderr.contains(said), "{said}: {}", out.stderr);
    }
}

#[test]
fn hostile_folders_are_refused_or_bounded() {
    let dir = Dir::new("hostile");
    let tensors = [("w", bf16_tensor(1, &[4]))];
    let folder = model(&dir, "m", &tensors);
    let refused = |said: &str| {
        let out = dir.bounded(&["eval", "a", "-i", "a=m/", "-o", "out/"], Stdio::null(), None);
        assert_eq!(out.code, Some(1), "{said}: {}", out.stderr);
        assert!(out.stderr.contains(said), "{said}: {}", out.stderr);
        assert!(!dir.0.join("out").exists() && !dir.names().iter().any(|n| n.ends_with(".tmp")));
    };
    // A configuration of 1 GB, which a sparse file pretends to have.
    let config = std::fs::File::options().write(true).open(folder.join("config.json")).unwrap();
    config.set_len(1 << 30).unwrap();
    refused("the file has 1073741824 bytes, more than the maximum");
    dir.bounded(&["eval", "a", "-i", "a=m/", "-o", "out/", "--no-copy-rest"], Stdio::null(), None).ok();
    assert_eq!(files(&dir.0.join("out")), ["model.safetensors"]);
    std::fs::remove_dir_all(dir.0.join("out")).unwrap();
    for (text, said) in [
        ("[".repeat(100_000), "not a JSON object"),
        ("{\"a\": ".repeat(100_000), "not a JSON object"),
        (r#"{"torch_dtype": "x", "torch_dtype": "y"}"#.to_string(), "duplicate key `torch_dtype`"),
        ("[1]".to_string(), "not a JSON object"),
    ] {
        std::fs::write(folder.join("config.json"), text).unwrap();
        refused(said);
    }
    std::fs::write(folder.join("config.json"), format!("{{\"a\": {}1{}}}", "[".repeat(90_000), "]".repeat(90_000)))
        .unwrap();
    dir.bounded(&["eval", "a", "-i", "a=m/", "-o", "out/"], Stdio::null(), None).ok();
    std::fs::remove_dir_all(dir.0.join("out")).unwrap();
    // Shards outside of the folder.
    for shard in ["../out.safetensors", "/etc/passwd", "a/../../b.safetensors", ""] {
        let index = format!(r#"{{"weight_map": {{"w": "{shard}"}}}}"#);
        std::fs::write(folder.join("model.safetensors.index.json"), index).unwrap();
        let _ = std::fs::remove_file(folder.join("model.safetensors"));
        refused("is not the name of a file in the directory of the index");
    }
    std::fs::remove_file(folder.join("model.safetensors.index.json")).unwrap();
    refused("there is no .safetensors file");
    // More files than a model has.
    dir.checkpoint("m/model.safetensors", &tensors);
    (0..10_001).for_each(|i| std::fs::write(folder.join(format!("{i}.txt")), "").unwrap());
    refused("more than 10000 files");
    (0..10_001).for_each(|i| std::fs::remove_file(folder.join(format!("{i}.txt"))).unwrap());
    // A model of a hundred thousand tensors, all of which are renamed.
    std::fs::write(folder.join("config.json"), "{}").unwrap();
    dir.file("m/model.safetensors", &of_bytes((0..100_000).map(|i| format!("module.{i}.w"))));
    let renamed = ["eval", "a", "-i", "a=m/", "-o", "out/", "--rename", r"a:^module\.="];
    dir.bounded(&renamed, Stdio::null(), None).ok();
    let made = SafeTensors::open(dir.0.join("out/model.safetensors")).unwrap();
    assert!(made.has("99999.w") && made.names().count() == 100_000);
}

#[test]
fn a_folder_is_replaced_only_if_it_is_a_models() {
    let dir = Dir::new("replaced");
    model(&dir, "m", &[("w", bf16_tensor(1, &[4]))]);
    let eval = |more: &[&str]| dir.eval(&[&["a * 2", "-i", "a=m/", "-o", "out/"], more].concat());
    eval(&[]).ok();
    let refused = |more: &[&str], said: &str| {
        let before = files(&dir.0.join("out"));
        let out = eval(more);
        assert!(out.code == Some(1) && out.stderr.contains(said), "{said}: {}", out.stderr);
        assert_eq!(files(&dir.0.join("out")), before);
    };
    refused(&[], "the output exists; use --force to replace it");
    dir.file("out/stale.txt", b"");
    eval(&["--force"]).ok();
    assert_eq!(files(&dir.0.join("out")), ["config.json", "model.safetensors", "tokenizer.json"]);
    dir.file("out/.hidden", b"");
    refused(&["--force"], "`.hidden` in it is hidden");
    std::fs::remove_file(dir.0.join("out/.hidden")).unwrap();
    symlink("/", dir.0.join("out/root")).unwrap();
    refused(&["--force"], "`root` in it is neither a file nor a folder");
    std::fs::remove_file(dir.0.join("out/root")).unwrap();
    std::fs::remove_file(dir.0.join("out/model.safetensors")).unwrap();
    refused(&["--force"], "it is not a model's");
    std::fs::remove_dir_all(dir.0.join("out")).unwrap();
    std::fs::create_dir(dir.0.join("out")).unwrap();
    eval(&["--force"]).ok();
    // An input in the output.
    model(&dir, "out/m", &[("w", bf16_tensor(1, &[4]))]);
    let out = dir.eval(&["a", "-i", "a=out/m/", "-o", "out/", "--force"]);
    assert!(out.code == Some(1) && out.stderr.contains("has one in it"), "{}", out.stderr);
    let out = dir.eval(&["a", "-i", "a=m/", "-o", "m/", "--force"]);
    assert!(out.code == Some(1) && out.stderr.contains("the output is also an input"), "{}", out.stderr);
    for output in [".", "..", "/"] {
        let out = dir.eval(&["a", "-i", "a=m/", "-o", output, "--force"]);
        assert_eq!(out.code, Some(1), "{output}: {}", out.stderr);
    }
    assert!(dir.0.join("m/model.safetensors").exists());
}

/// A forced output takes no file along that the command reads: a configuration, options, a recipe, its parameters.
#[test]
fn a_folder_is_not_replaced_if_the_command_reads_a_file_in_it() {
    let dir = Dir::new("reads");
    model(&dir, "m", &[("w", bf16_tensor(1, &[4]))]);
    dir.eval(&["a * 2", "-i", "a=m/", "-o", "out/"]).ok();
    let merge = "merge_method: linear\nmodels:\n  - model: m\n    parameters: {weight: 1}\n";
    let recipe = "# Halves.\nmodels x 1 1\nx[last] / 2\n";
    let texts = [("c.yml", merge), ("o.toml", "quiet = true\n"), ("r.recipe", recipe), ("w.json", "0.5")];
    for (name, text) in texts {
        dir.file(&format!("out/{name}"), text.as_bytes());
    }
    let before = contents(&dir.0.join("out"));
    let commands: [&[&str]; 4] = [
        &["merge", "out/c.yml"],
        &["eval", "a * 2", "-i", "a=m/", "--config", "out/o.toml"],
        &["eval", "@out/r.recipe", "-i", "a=m/"],
        &["eval", "@linear", "-i", "a=m/", "-p", "weight=out/w.json"],
    ];
    for command in commands {
        let out = dir.castwise(&[command, &["-o", "out/", "--force"]].concat());
        assert!(out.code == Some(1) && out.stderr.contains("has one in it"), "{command:?}: {}", out.stderr);
        assert_eq!(contents(&dir.0.join("out")), before, "{command:?}");
        dir.castwise(&[command, &["-o", "elsewhere/", "--force"]].concat()).ok();
    }
}

/// The files of a model by name, or none if there is no folder.
fn contents(folder: &Path) -> Option<Vec<(String, Vec<u8>)>> {
    folder
        .exists()
        .then(|| files(folder).into_iter().map(|f| (f.clone(), std::fs::read(folder.join(f)).unwrap())).collect())
}

#[test]
fn a_model_is_whole_or_absent_whenever_the_command_is_killed() {
    let dir = Dir::new("killed-model");
    let names = ["embed", "0.weight", "1.weight", "2.weight", "head"];
    let tensors = |seed| {
        names.iter().enumerate().map(|(i, n)| (*n, half_tensor(seed + i as u64, &[300, 500]))).collect::<Vec<_>>()
    };
    model(&dir, "a", &tensors(1));
    model(&dir, "b", &tensors(9));
    let merge = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_castwise"));
        command.args(["eval", "0.7*a + 0.3*b", "-i", "a=a/", "-i", "b=b/", "-o", "m/", "--max-shard-size", "700KB"]);
        command.args(more);
        command.current_dir(&dir.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let began = Instant::now();
    assert!(merge(&[]).wait().unwrap().success());
    let whole = began.elapsed();
    let right = contents(&dir.0.join("m"));
    assert_eq!(right.as_ref().unwrap().len(), 6, "three shards, the index, the configuration and the tokenizer");
    let mut killed = 0;
    for i in 0..40 {
        let _ = std::fs::remove_dir_all(dir.0.join("m"));
        let mut child = merge(&[]);
        std::thread::sleep(whole * i / 40 + Duration::from_micros(50));
        if i % 2 == 0 {
            child.kill().unwrap();
        } else {
            assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success() || i > 0);
        }
        killed += u32::from(!child.wait().unwrap().success());
        let now = contents(&dir.0.join("m"));
        assert!(now.is_none() || now == right, "half a model after {i}");
        // A signal that can be handled leaves no temporary folder.
        let left = dir.names().iter().filter(|n| n.contains(&format!("castwise-{}-", child.id()))).count();
        assert!(i % 2 == 0 || left == 0, "{:?}", dir.names());
    }
    assert!(killed > 0);
    // Another model has the name: it is there, or the new one, or none between two renames.
    let old = contents(&dir.0.join("a"));
    for i in 0..20 {
        let _ = std::fs::remove_dir_all(dir.0.join("m"));
        assert!(Command::new("cp").args(["-r", "a", "m"]).current_dir(&dir.0).status().unwrap().success());
        let mut child = merge(&["--force"]);
        std::thread::sleep(whole * i / 20);
        child.kill().unwrap();
        child.wait().unwrap();
        let now = contents(&dir.0.join("m"));
        assert!(now.is_none() || now == old || now == right, "half a model after {i}");
    }
    let _ = std::fs::remove_dir_all(dir.0.join("m"));
    assert!(merge(&[]).wait().unwrap().success());
    assert!(contents(&dir.0.join("m")) == right);
}

/// A file of more bytes than the process may write, which is as a full disk.
#[test]
fn a_full_disk_leaves_no_half_model() {
    let dir = Dir::new("full-model");
    model(&dir, "a", &[("w", half_tensor(1, &[300, 500])), ("v", half_tensor(2, &[300, 500]))]);
    let limit = "ulimit -f 400; exec \"$0\" \"$@\"";
    let out = Command::new("sh")
        .args(["-c", limit, env!("CARGO_BIN_EXE_castwise"), "eval", "a * 2", "-i", "a=a/", "-o", "m/"])
        .current_dir(&dir.0)
        .output()
        .unwrap();
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("m/model.safetensors") && !stderr.contains(".tmp"), "{stderr}");
    assert_eq!(dir.names(), ["a"]);
}
