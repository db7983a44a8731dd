//! Recipes and `castwise merge` against recorded results of mergekit: `tests/golden/merge`.
//!
//! Guarantees: every tensor has mergekit's dtype, shape and bits; where mergekit sums the elements of a tensor in f32 or f64, the bound that the case has,
//! relative to the largest value of the tensor. Masks of random methods, and those that depend on the order of equal elements, are the recorded ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use castwise::io::SafeTensors;
use castwise::{DType, Eager, Executor, Feeds, Program, Rules, Tensor};
use command::Dir;
use serde_json::Value;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/merge")
}

fn cases() -> Vec<Value> {
    serde_json::from_str(&std::fs::read_to_string(golden().join("cases.json")).unwrap()).unwrap()
}

/// The configuration of a case with the paths of its models.
fn config(case: &Value) -> String {
    let (text, root) = (case["config"].to_string(), golden().display().to_string());
    text.replace("\"models/", &format!("\"{root}/models/")).replace("\"flat/", &format!("\"{root}/flat/"))
}

fn tensors(path: &Path) -> BTreeMap<String, Tensor> {
    let mut file = SafeTensors::open(path).unwrap();
    let names: Vec<String> = file.names().map(str::to_string).collect();
    names.into_iter().map(|n| (n.clone(), file.load(&n).unwrap())).collect()
}

/// FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> String {
    let next = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, next))
}

fn f64s(t: &Tensor) -> Vec<f64> {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", t.dtype(), t.shape().to_vec());
    let y = x.cast(DType::F64);
    let all = Executor::new().run(&p, Feeds::from(vec![("x".to_string(), t.clone())]), &[y]).unwrap();
    all[0].to_vec::<f64>().unwrap()
}

/// The elements of two tensors whose values are no equal ones, and the largest difference relative to the largest value.
fn compare(name: &str, got: &Tensor, expected: &Tensor) -> (usize, f64) {
    assert_eq!((got.dtype(), got.shape()), (expected.dtype(), expected.shape()), "{name}");
    let (got, expected) = (f64s(got), f64s(expected));
    let most = expected.iter().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
    let (mut differ, mut worst) = (0, 0.0f64);
    for (a, b) in got.iter().zip(&expected) {
        if a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) {
            differ += 1;
            worst = worst.max((a - b).abs() / most);
            assert!(a.is_finite() && b.is_finite(), "{name}: {a} for {b}");
        }
    }
    (differ, worst)
}

/// The arguments of `castwise merge` for a case.
fn arguments(case: &Value, config: &Path, output: &str) -> Vec<String> {
    let mut all = vec!["merge".into(), config.display().to_string(), "-o".into(), output.into(), "-q".into()];
    for (model, file) in case["masks"].as_object().into_iter().flatten() {
        let file = golden().join(file.as_str().unwrap());
        all.extend(["-i".into(), format!("mask.{model}={}", file.display())]);
    }
    if case["dropped"].is_array() {
        all.extend(["--missing".into(), "skip".into()]);
    }
    if case["union"].as_bool() == Some(true) {
        all.extend(["--missing".into(), "copy".into()]);
    }
    all
}

#[test]
fn merges_have_the_bits_of_mergekit() {
    let dir = Dir::new("recipes");
    for case in cases() {
        let name = case["name"].as_str().unwrap();
        let file = dir.0.join(format!("{name}.yml"));
        std::fs::write(&file, config(&case)).unwrap();
        let output = format!("{name}.safetensors");
        let all = arguments(&case, &file, &output);
        let out = dir.castwise(&all.iter().map(String::as_str).collect::<Vec<_>>());
        if !case["error"].is_null() {
            assert!(matches!(out.code, Some(1 | 2)) && !out.stderr.is_empty(), "{name}: {:?} {}", out.code, out.stderr);
            assert!(!dir.0.join(&output).exists(), "{name}");
            continue;
        }
        assert_eq!(out.code, Some(0), "{name}: {}", out.stderr);
        let got = tensors(&dir.0.join(&output));
        if let Some(hashes) = case["hashes"].as_object() {
            let names: Vec<&String> = hashes.keys().collect();
            assert_eq!(got.keys().collect::<Vec<_>>(), names, "{name}");
            for (tensor, t) in &got {
                let dtype = case["dtypes"].as_str().unwrap();
                assert_eq!(t.dtype().name(), dtype.replace("bfloat", "bf").replace("float", "f"), "{name}: {tensor}");
                assert_eq!(hash(t.as_bytes().unwrap()), hashes[tensor].as_str().unwrap(), "{name}: {tensor}");
            }
            continue;
        }
        let expected = tensors(&golden().join(case["result"].as_str().unwrap()));
        assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
        let bound = case["tolerance"].as_f64().unwrap();
        for (tensor, t) in &got {
            let (differ, worst) = compare(&format!("{name}: {tensor}"), t, &expected[tensor]);
            assert!(worst <= bound && (bound > 0.0 || differ == 0), "{name}: {tensor}: {differ} differ by {worst}");
        }
    }
}

/// `--show` prints a command that does the same.
#[test]
fn a_configuration_is_a_command() {
    let dir = Dir::new("recipes-show");
    for wanted in ["ties-layers-f32", "linear-filters", "slerp-layers"] {
        let case = cases().into_iter().find(|c| c["name"] == wanted).unwrap();
        let file = dir.0.join("config.yml");
        std::fs::write(&file, config(&case)).unwrap();
        let shown = dir.castwise(&["merge", file.to_str().unwrap(), "--show"]).stdout;
        let line = format!("{} -q -o shown.safetensors --force", shown.trim().replacen("castwise", "\"$0\"", 1));
        let run = std::process::Command::new("sh")
            .args(["-c", &line, env!("CARGO_BIN_EXE_castwise")])
            .current_dir(&dir.0)
            .status();
        assert!(run.unwrap().success(), "{line}");
        let merged = dir.castwise(&["merge", file.to_str().unwrap(), "-o", "merged.safetensors", "--force", "-q"]);
        assert_eq!(merged.code, Some(0), "{}", merged.stderr);
        let read = |name: &str| std::fs::read(dir.0.join(name)).unwrap();
        assert_eq!(read("shown.safetensors"), read("merged.safetensors"), "{wanted}");
    }
}

/// Of equal elements, `ties` and `breadcrumbs` keep some: the magnitudes that are kept are those that mergekit keeps.
#[test]
fn masks_keep_the_recorded_magnitudes() {
    let dir = Dir::new("recipes-masks");
    let root = golden();
    for (recipe, tensor_of, parameters, mask) in [
        ("ties", "a", vec!["density=0.5"], "ties-f32.mask-a"),
        ("ties", "b", vec!["density=0.5"], "ties-f32.mask-b"),
        ("breadcrumbs", "a", vec!["density=0.5"], "breadcrumbs-f32.mask-a"),
        ("breadcrumbs", "b", vec!["density=0.9", "gamma=0.05"], "breadcrumbs-f32.mask-b"),
    ] {
        let inputs = ["base", tensor_of].map(|m| format!("{m}={}/models/{m}/", root.display()));
        let mut all = vec!["eval".to_string(), format!("@{recipe}"), "-q".into(), "--force".into()];
        all.extend([
            "-i".into(),
            inputs[0].clone(),
            "-i".into(),
            inputs[1].clone(),
            "-o".into(),
            "r.safetensors".into(),
        ]);
        // With normalization the result is base + difference where it is kept.
        all.extend(["-p".into(), "dtype=f32".into(), "-p".into(), "normalize=false".into()]);
        parameters.iter().for_each(|p| all.extend(["-p".to_string(), p.to_string()]));
        let out = dir.castwise(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        let recorded = tensors(&root.join(format!("results/{mask}.safetensors")));
        let mut difference =
            vec!["eval", "cast(x, f32) - cast(base, f32)", "-q", "--force", "-o", "d.safetensors", "-i"];
        let x = inputs[1].replacen(tensor_of, "x", 1);
        difference.extend([inputs[0].as_str(), "-i", &x]);
        assert_eq!(dir.castwise(&difference).code, Some(0));
        let (kept, base) = ("cast(r, f32) - cast(base, f32)", inputs[0].as_str());
        let own = ["eval", kept, "-q", "--force", "-o", "k.safetensors", "-i", "r=r.safetensors", "-i", base];
        assert_eq!(dir.castwise(&own).code, Some(0));
        let (all, own) = (tensors(&dir.0.join("d.safetensors")), tensors(&dir.0.join("k.safetensors")));
        for (name, mask) in recorded {
            let sorted = |v: Vec<f64>| {
                let mut v: Vec<f64> = v.into_iter().map(f64::abs).filter(|v| *v > 0.0).collect();
                v.sort_by(f64::total_cmp);
                v
            };
            let mask = f64s(&mask);
            let expected = f64s(&all[&name]).into_iter().zip(mask).filter(|(_, m)| *m > 0.0).map(|(d, _)| d).collect();
            let (expected, got) = (sorted(expected), sorted(f64s(&own[&name])));
            // base + d - base rounds, so that the smallest differences vanish: the largest ones are compared.
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-6 * a.abs().max(0.1);
            assert!(expected.len().abs_diff(got.len()) * 50 <= expected.len(), "{recipe} {name}");
            assert!(expected.iter().rev().zip(got.iter().rev()).all(close), "{recipe} {name}");
        }
    }
}

/// Random masks follow from the seed and the tensor's name alone.
#[test]
fn random_masks_follow_from_the_seed() {
    let dir = Dir::new("recipes-seed");
    let root = golden();
    let run = |output: &str, more: &[&str]| {
        let inputs = ["base", "a", "b"].map(|m| format!("{m}={}/models/{m}/", root.display()));
        let mut all = vec!["eval", "@dare_ties", "-q", "--force", "-o", output, "-p", "density=0.5", "-p", "dtype=f32"];
        inputs.iter().for_each(|i| all.extend(["-i", i]));
        all.extend(more);
        let out = dir.castwise(&all);
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        tensors(&dir.0.join(output))
    };
    let bytes = |t: &Tensor| t.as_bytes().unwrap().to_vec();
    let first = run("first.safetensors", &["--seed", "7"]);
    let again = run("again.safetensors", &["--seed", "7", "--threads", "1", "--select", r"layers\.1"]);
    for (name, t) in &again {
        assert_eq!(bytes(t), bytes(&first[name]), "{name}");
    }
    let other = run("other.safetensors", &["--seed", "8"]);
    let names = ["model.layers.0.self_attn.q_proj.weight", "model.layers.1.self_attn.q_proj.weight"];
    for name in names {
        assert_ne!(bytes(&first[name]), bytes(&other[name]));
    }
    // Tensors of one shape have masks of their own: about half of the elements are in both.
    let base = dir.castwise(&[
        "eval",
        "r != base",
        "-q",
        "-o",
        "kept.safetensors",
        "-i",
        "r=first.safetensors",
        "-i",
        &format!("base={}/models/base/", root.display()),
        "--select",
        "q_proj",
    ]);
    assert_eq!(base.code, Some(0), "{}", base.stderr);
    let kept = tensors(&dir.0.join("kept.safetensors"));
    assert_ne!(bytes(&kept[names[0]]), bytes(&kept[names[1]]));
}

/// F8_E4M3 weights with scales of blocks: exact.
#[test]
fn weights_in_8_bit_floats_are_dequantized_exactly() {
    let dir = Dir::new("recipes-fp8");
    let expected = tensors(&golden().join("flat/fp8-dequantized.safetensors"));
    for dtype in ["bf16", "f16", "f32"] {
        let input = format!("w={}/flat/fp8.safetensors", golden().display());
        let out = dir.castwise(&[
            "eval",
            "@fp8_dequant",
            "-i",
            &input,
            "-p",
            &format!("dtype={dtype}"),
            "-o",
            "d.safetensors",
            "--force",
            "-q",
        ]);
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        let got = tensors(&dir.0.join("d.safetensors"));
        assert!(!got.is_empty());
        for (name, t) in &got {
            if let Some(expected) = expected.get(&format!("{dtype}.{name}")) {
                assert_eq!(compare(name, t, expected).0, 0, "{dtype} {name}");
            }
        }
        assert!(got.keys().any(|n| expected.contains_key(&format!("{dtype}.{n}"))));
    }
}

/// The manifest has the hashes of all files, and a run with it again gives the same bytes.
#[test]
fn a_manifest_says_what_a_merge_was_made_from() {
    let dir = Dir::new("recipes-manifest");
    let inputs = ["base", "a", "b"].map(|m| format!("{m}={}/models/{m}/", golden().display()));
    let merge = |output: &str| {
        let mut all = vec!["eval", "@dare_ties", "-q", "-p", "density=0.5", "--seed", "7", "--manifest", "-o", output];
        inputs.iter().for_each(|i| all.extend(["-i", i]));
        assert_eq!(dir.castwise(&all).code, Some(0));
        std::fs::read(dir.0.join(output)).unwrap()
    };
    assert_eq!(merge("one.safetensors"), merge("two.safetensors"));
    let file = SafeTensors::open(dir.0.join("one.safetensors")).unwrap();
    let manifest: Value = serde_json::from_str(&file.metadata()["castwise"]).unwrap();
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&manifest["expression"], &manifest["seed"]), (&"@dare_ties".into(), &7.into()));
    assert_eq!(manifest["parameters"]["density"], "0.5");
    assert!(manifest["recipes"]["dare_ties"].as_str().unwrap().contains("bernoulli"));
    // Two shards and their index.
    assert_eq!(manifest["inputs"]["b"].as_object().unwrap().len(), 3);
    let known = ["model.safetensors", "config.json"];
    assert!(manifest["inputs"]["base"][known[0]].as_str().unwrap().len() == 64, "{manifest}");
    // What an output is computed from later is no manifest of it.
    let next = ["eval", "x", "-q", "-i", "x=one.safetensors", "-o", "next.safetensors"];
    assert_eq!(dir.castwise(&next).code, Some(0));
    assert!(!SafeTensors::open(dir.0.join("next.safetensors")).unwrap().metadata().contains_key("castwise"));
}

/// Masks are bools of the extents of their model's tensors; names of constants are names of inputs; integers are not merged with floats.
#[test]
fn inputs_that_are_no_models_or_no_masks_are_refused() {
    let dir = Dir::new("recipes-inputs");
    let floats = Tensor::from([1.0f32, 2.0]);
    dir.checkpoint("base.safetensors", &[("w", floats.clone())]);
    dir.checkpoint("a.safetensors", &[("w", Tensor::from([3.0f32, 6.0]))]);
    dir.checkpoint("half.safetensors", &[("w", floats)]);
    dir.checkpoint("short.safetensors", &[("w", Tensor::from([true]))]);
    dir.checkpoint("mask.safetensors", &[("w", Tensor::from([true, false]))]);
    dir.checkpoint("counts.safetensors", &[("w", Tensor::from([1i64, 2]))]);
    let dare = |more: &[&str]| {
        let start = [
            "eval",
            "@dare_linear",
            "-p",
            "density=0.5",
            "-q",
            "-f",
            "-o",
            "o.safetensors",
            "-i",
            "base=base.safetensors",
        ];
        dir.castwise(&[&start[..], &["-i", "a=a.safetensors"], more].concat())
    };
    for (input, why) in [
        ("mask.b=mask.safetensors", "the input `mask.b` is of no model: it is mask.MODEL, of `a`"),
        ("mask.base=mask.safetensors", "the input `mask.base` is of no model"),
        ("mask=mask.safetensors", "the input `mask` is of no model"),
        ("mask.a=short.safetensors", "the mask `mask.a` is bool[1], not bool[2]"),
        ("mask.a=half.safetensors", "the mask `mask.a` is f32[2], not bool[2]"),
    ] {
        let out = dare(&["-i", input]);
        assert!(out.code != Some(0) && out.stderr.contains(why), "{input}: {}", out.stderr);
    }
    assert_eq!(dare(&["-i", "mask.a=mask.safetensors"]).code, Some(0));
    // What is kept of the difference [2, 4] is rescaled to the sum of its magnitudes.
    assert_eq!(tensors(&dir.0.join("o.safetensors"))["w"].to_vec::<f32>().unwrap(), [7.0, 2.0]);

    let linear = |inputs: &[&str]| {
        let all = inputs.iter().flat_map(|i| ["-i", i]);
        dir.castwise(&["eval", "@linear", "-q", "-f", "-o", "o.safetensors"].into_iter().chain(all).collect::<Vec<_>>())
    };
    let out = linear(&["a=a.safetensors", "c=counts.safetensors"]);
    assert!(out.stderr.contains("`a` has floats, `c` has i64[2]"), "{}", out.stderr);
    for name in ["inf", "nan", "true", "False", "seed"] {
        assert_eq!(linear(&[&format!("{name}=base.safetensors"), "a=a.safetensors"]).code, Some(0), "{name}");
        assert_eq!(tensors(&dir.0.join("o.safetensors"))["w"].to_vec::<f32>().unwrap(), [2.0, 4.0], "{name}");
    }
    let seeded =
        ["eval", "@dare_linear", "-p", "density=0.5", "-q", "-o", "s.safetensors", "-i", "base=base.safetensors"];
    assert_eq!(dir.castwise(&[&seeded[..], &["-i", "seed=a.safetensors"]].concat()).code, Some(0));
}

/// Both forms of `--config`; what is given by name is given once.
#[test]
fn options_come_from_a_file_in_both_forms() {
    let dir = Dir::new("recipes-config");
    dir.npy("x.npy", &Tensor::from([1.0f32]));
    dir.file("o.toml", b"out-dtype = \"f16\"\n");
    let dtype = |more: &[&str]| {
        let out = dir.castwise(&[&["eval", "x*2", "-i", "x=x.npy", "-o", "o.npy", "-f", "-q"][..], more].concat());
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        castwise::io::read_npy(dir.0.join("o.npy")).unwrap().dtype()
    };
    assert_eq!(dtype(&["--config", "o.toml"]), DType::F16);
    assert_eq!(dtype(&["--config=o.toml"]), DType::F16);
    assert_eq!(dtype(&["--config=o.toml", "--out-dtype", "f64"]), DType::F64);
    let missing = dir.castwise(&["eval", "x", "-i", "x=x.npy", "--config=none.toml"]);
    assert!(missing.stderr.contains("none.toml"), "{}", missing.stderr);
    dir.file("wrong.toml", b"inputs = 3\n");
    let wrong = dir.castwise(&["eval", "x", "-i", "x=x.npy", "--config=wrong.toml"]);
    assert!(wrong.stderr.contains("`inputs` is a table of names"), "{}", wrong.stderr);
}

/// The script for bash completes names of recipes, ops and tensors.
#[cfg(unix)]
#[test]
fn bash_completes_names() {
    let dir = Dir::new("recipes-completion");
    let script = dir.castwise(&["completions", "bash"]).stdout;
    dir.file("script.bash", script.as_bytes());
    let input = format!("x={}/models/a/model.safetensors:model.nor", golden().display());
    for (line, expected) in [
        ("castwise eval @dare_t", "ties"),
        ("castwise ops nanq", "nanquantile"),
        ("castwise recipes show model_", "model_stock"),
        (&format!("castwise eval -i {input}"), "model.norm.weight"),
        ("castwise recip", "recipes"),
    ] {
        let words = line.split(' ').map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" ");
        let run = format!(
            "castwise() {{ \"$0\" \"$@\"; }}; source script.bash; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _castwise_names castwise \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let out = std::process::Command::new("bash")
            .args(["-c", &run, env!("CARGO_BIN_EXE_castwise")])
            .current_dir(&dir.0)
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        // Bash has cut the word at the last of `=`, `:` and `@`.
        let got = text.lines().next().unwrap_or_default();
        assert!(
            got == expected || got == format!("dare_{expected}"),
            "{line}: {text}{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
}

/// `--show` prints every option of the merge.
#[test]
fn a_shown_command_has_all_options() {
    let dir = Dir::new("recipes-options");
    dir.checkpoint("base.safetensors", &[("w", Tensor::from([1.0f32, 2.0]))]);
    dir.checkpoint("it's.safetensors", &[("w", Tensor::from([3.0f32, 6.0]))]);
    let models = "base_model: base.safetensors\nmodels:\n  - model: \"it's.safetensors\"\n    parameters: {weight: 1, density: 0.5}\n";
    dir.file("c.yml", format!("merge_method: dare_linear\n{models}dtype: float32\nout_dtype: bfloat16\n").as_bytes());
    let shown = dir.castwise(&[
        "merge",
        "c.yml",
        "--show",
        "-i",
        "mask.it_s=masks.npz:m one",
        "--rename",
        "base:^x\\.=",
        "--missing",
        "copy=base",
        "--seed",
        "7",
        "--select",
        "a|b",
        "--skip",
        "q_proj$",
        "--check",
        "finite",
        "--no-copy-rest",
        "--manifest",
        "--dry-run",
        "--json",
        "-q",
        "--threads",
        "3",
        "--memory",
        "4GiB",
        "-o",
        "out dir/",
        "-f",
        "--max-shard-size",
        "2GB",
        "--compress",
    ]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let line = shown.stdout.trim();
    for part in [
        "castwise eval @dare_linear -i base=base.safetensors -i 'it_s=it'\\''s.safetensors' -i 'mask.it_s=masks.npz:m one'",
        "-p weight.it_s=1 -p density.it_s=0.5 -p dtype=f32",
        "--rename 'base:^x\\.='",
        "--missing copy=base",
        "--seed 7",
        "--select 'a|b'",
        "--skip 'q_proj$'",
        "--check finite",
        "--no-copy-rest",
        "--manifest",
        "--dry-run",
        "--json",
        "--quiet",
        "--threads 3",
        "--memory 4294967296",
        "-o 'out dir/'",
        "--force",
        "--max-shard-size 2000000000",
        "--compress",
        "--out-dtype bf16",
        "--tied",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let explained = dir.castwise(&["merge", "c.yml", "--show", "--explain"]).stdout;
    assert!(explained.trim().ends_with("--explain"), "{explained}");
}

/// What mergekit refuses is refused, in this command's words, with the line.
#[test]
fn configurations_that_mergekit_refuses_are_refused() {
    let dir = Dir::new("recipes-refused");
    dir.checkpoint("base.safetensors", &[("w", Tensor::from([1.0f32, 2.0]))]);
    dir.checkpoint("a.safetensors", &[("w", Tensor::from([3.0f32, 6.0]))]);
    let model = |name: &str, more: &str| format!("  - model: {name}.safetensors\n    parameters: {{{more}}}\n");
    let linear = |models: &str, more: &str| format!("merge_method: linear\nmodels:\n{models}{more}");
    let two = model("base", "weight: 1") + &model("a", "weight: 1");
    for (text, why) in [
        (
            linear(&(model("a", "weight: 1") + &model("./a", "weight: 2").replace("./", "")), ""),
            ":5: the model `a.safetensors` is given twice",
        ),
        (linear(&two, "parameters: {normalize: 2}\n"), ":7: `normalize`: expected true or false, found 2"),
        (
            linear(&two, "parameters:\n  normalize: [{filter: w, value: 3}, {value: true}]\n"),
            "expected true or false, found 3",
        ),
        (linear(&two, "parameters: {normalize: [0, 1]}\n"), "expected true or false, found a list"),
        (
            linear(&(model("a", "weight: 010") + &model("base", "weight: 1")), ""),
            ":4: `weight`: expected a number, found `010`, which YAML 1.1 and YAML 1.2 read as different numbers",
        ),
        (linear(&(model("a", "weight: 1_0") + &model("base", "weight: 1")), ""), "found `1_0`, which"),
        (linear(&(model("a", "weight: 1:30") + &model("base", "weight: 1")), ""), "found `1:30`, which"),
        (
            "merge_method: passthrough\nslices:\n  - sources: []\n  - sources: []\n".into(),
            ":1: merge_method: `passthrough` puts layers",
        ),
        (linear(&two, "slices: []\n"), "`models` and `slices` both say what is merged"),
        (linear(&two, "merge_method: ties\n"), ":7: `merge_method` is given twice"),
        (linear(&two, "parameters: {a: [}\n"), "c.yml:7: this is no YAML that castwise reads at column"),
        (linear(&two, "parameters: {weight: .nan}\n"), "numbers are finite"),
    ] {
        dir.file("c.yml", text.as_bytes());
        let out = dir.castwise(&["merge", "c.yml", "-o", "o.safetensors", "-f"]);
        assert_eq!(out.code, Some(1), "{text}: {}", out.stdout);
        assert!(out.stderr.contains(why), "{text}: {}", out.stderr);
        assert!(!out.stderr.contains("Policy") && !out.stderr.contains("Options"), "{}", out.stderr);
    }
    for (value, fits) in [("true", true), ("1", true), ("0", true), ("2", false), ("0.5", false)] {
        let inputs = ["-i", "a=a.safetensors", "-i", "b=base.safetensors"];
        let given = format!("normalize={value}");
        let out = dir
            .castwise(&[&["eval", "@linear", "-q", "-f", "-o", "o.safetensors", "-p", &given][..], &inputs].concat());
        assert_eq!(out.code == Some(0), fits, "{value}: {}", out.stderr);
    }
}

/// A mask that is used for no tensor is said, since the user meant something by it.
#[test]
fn a_mask_without_a_density_is_no_silent_one() {
    let dir = Dir::new("recipes-mask");
    dir.checkpoint("base.safetensors", &[("w", Tensor::from([1.0f32, 2.0]))]);
    dir.checkpoint("a.safetensors", &[("w", Tensor::from([3.0f32, 6.0]))]);
    dir.checkpoint("mask.safetensors", &[("w", Tensor::from([true, false]))]);
    let ties = |more: &[&str]| {
        let inputs = ["-i", "base=base.safetensors", "-i", "a=a.safetensors", "-i", "mask.a=mask.safetensors"];
        let out = dir.castwise(&[&["eval", "@ties", "-q", "-f", "-o", "o.safetensors"][..], &inputs, more].concat());
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        out.stderr
    };
    let said = ties(&[]);
    assert!(said.contains("warning: the recipe `ties` uses `mask.a` for no tensor: where `density` is 1"), "{said}");
    assert_eq!(ties(&["-p", "density=0.5"]), "");
}

/// Peak memory is at most that of the inputs, of an f32 accumulator and of 100 MB for the largest tensor.
#[cfg(target_os = "linux")]
#[test]
fn merges_take_little_memory() {
    let dir = Dir::new("recipes-memory");
    const LARGEST: u64 = 16 << 20;
    for (seed, name) in (1..).zip(["base", "a", "b"]) {
        let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::BF16, &[4096, 2048]).unwrap());
        dir.checkpoint(
            &format!("{name}.safetensors"),
            &[("w", x.normal(seed, None).cast(DType::BF16).result().unwrap())],
        );
    }
    for recipe in ["ties", "breadcrumbs", "della", "dare_ties"] {
        let inputs = ["-i", "base=base.safetensors", "-i", "a=a.safetensors", "-i", "b=b.safetensors"];
        let recipe = format!("@{recipe}");
        let options = ["-p", "density=0.5", "-o", "o.safetensors", "-f", "--json"];
        let out = dir.castwise(&[&["eval", &recipe][..], &inputs, &options].concat());
        assert_eq!(out.code, Some(0), "{recipe}: {}", out.stderr);
        let report: Value = serde_json::from_str(&out.stdout).unwrap();
        let peak = report["peak_memory"].as_u64().unwrap();
        assert!(peak <= (3 + 2) * LARGEST + 100_000_000, "{recipe}: {} MiB", peak >> 20);
    }
}

/// The masks of `ties`, `breadcrumbs` and `della` are those of the ranks that two `argsort`s give, ties of magnitudes included.
#[test]
fn masks_are_those_of_ranks() {
    let dir = Dir::new("recipes-ranks");
    let body = |normalize: bool, mask: &str, more: &str| {
        format!(
            "# Ranks.\nparameter normalize = {normalize}\nparameter rescale = false\ninclude task\ninput mask[i]?\nparameter density[i] = 1\n{more}f[i] = cast(d[i], T)\na[i] = view_as(abs(d[i]), I)\n{mask}include kept\ninclude elect\n"
        )
    };
    dir.file(
        "ties.recipe",
        body(
            true,
            "place[i] = argsort(argsort(a[i], dim=0, descending=true), dim=0)\nmask[i] ?= place[i] < keep[i]\n",
            "let keep[i] = where(density[i] <= 0, 0, maximum(1, trunc(density[i]*n)))\n",
        )
        .as_bytes(),
    );
    dir.file(
        "breadcrumbs_ties.recipe",
        body(
            false,
            "place[i] = argsort(argsort(a[i], dim=0), dim=0)\nmask[i] ?= (place[i] >= skip[i]) & (place[i] < skip[i] + keep[i])\n",
            "parameter gamma[i] = 0.01\nlet keep[i] = maximum(0, trunc(density[i]*n))\nlet skip[i] = maximum(0, n - keep[i] - trunc(gamma[i]*n))\n",
        )
        .as_bytes(),
    );
    let shipped =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/recipes/shared/della.recipe"))
            .unwrap();
    let ranked = shipped.replace("(cast(row, W) - 1)", "(amax(place[i]) - 1)");
    assert_ne!(shipped, ranked);
    let head = "# Ranks.\nparameter normalize = true\nparameter rescale = true\ninclude task\n";
    dir.file("della.recipe", format!("{head}{ranked}include elect\n").as_bytes());
    let few = |seed: u64, n: usize| {
        let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, &[n]).unwrap());
        // Magnitudes of which most are equal.
        cast(&(x.normal(seed, None) * 4.0).trunc().result().unwrap(), DType::BF16)
    };
    let sizes = [1usize, 2, 7, 5000, 300_000];
    for (file, seed) in [("base", 1), ("a", 2), ("b", 3)] {
        let mut all: Vec<(String, Tensor)> = sizes.iter().map(|n| (format!("w{n}"), few(seed, *n))).collect();
        all.push(("m".into(), few(seed + 10, 60 * 50).reshape([60, 50]).unwrap()));
        all.push(("t".into(), few(seed + 20, 20 * 50 * 3).reshape([20, 50, 3]).unwrap()));
        let named: Vec<(&str, Tensor)> = all.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        dir.checkpoint(&format!("{file}.safetensors"), &named);
    }
    for (recipe, tensors, settings) in [
        ("ties", "w", &["density=0", "density=0.001", "density=0.5", "density=0.9999"][..]),
        ("breadcrumbs_ties", "w", &["density=0", "density=0.5", "density=0.9", "density=0.995"]),
        ("della", "w[57]|m|t", &["density=0.5", "density=0.7"]),
    ] {
        for dtype in ["bf16", "f16", "f32", "f64"] {
            for setting in settings {
                let run = |recipe: &str, output: &str| {
                    let dtype = format!("dtype={dtype}");
                    let inputs = ["-i", "base=base.safetensors", "-i", "a=a.safetensors", "-i", "b=b.safetensors"];
                    let options = ["-q", "-f", "-o", output, "-p", &dtype, "-p", setting, "--select", tensors];
                    let out = dir.castwise(&[&["eval", recipe][..], &inputs, &options].concat());
                    assert_eq!(out.code, Some(0), "{recipe} {dtype} {setting}: {}", out.stderr);
                    std::fs::read(dir.0.join(output)).unwrap()
                };
                let (own, ranks) = (
                    run(&format!("@{recipe}"), "own.safetensors"),
                    run(&format!("@./{recipe}.recipe"), "ranks.safetensors"),
                );
                assert!(own == ranks, "{recipe} {dtype} {setting}");
            }
        }
    }
}

fn cast(t: &Tensor, dtype: DType) -> Tensor {
    Eager::new(Rules::Torch).tensor(t).cast(dtype).result().unwrap()
}
