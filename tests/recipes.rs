//! Recipes and `castwise merge` against recorded results of mergekit: `tests/golden/merge`.
//!
//! Guarantees: every tensor has mergekit's dtype, shape and bits; where mergekit sums the elements of a tensor in f32 or f64, the bound that the case has,
//! relative to the largest value of the tensor. Masks of random methods, and those that depend on the order of equal elements, are the recorded ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use castwise::io::SafeTensors;
use castwise::{DType, Executor, Feeds, Program, Rules, Tensor};
use serde_json::Value;

use crate::command::Dir;

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

/// F8_E4M3 weights with scales of blocks as DeepSeek writes them, and of blocks, rows and all elements as compressed-tensors does: exact.
#[test]
fn weights_in_8_bit_floats_are_dequantized_exactly() {
    let dir = Dir::new("recipes-fp8");
    for (file, block) in [("fp8", 128), ("fp8-compressed", 16)] {
        let path = |end: &str| golden().join(format!("flat/{file}{end}.safetensors"));
        let (stored, expected) = (tensors(&path("")), tensors(&path("-dequantized")));
        let (input, block) = (format!("w={}", path("").display()), format!("block={block}"));
        for dtype in ["bf16", "f16", "f32"] {
            let parameter = format!("dtype={dtype}");
            let mut all = vec!["eval", "@fp8_dequant", "-i", &input, "-p", &parameter, "-p", &block];
            all.extend(["-o", "d.safetensors", "--force", "-q"]);
            let out = dir.castwise(&all);
            assert_eq!(out.code, Some(0), "{}", out.stderr);
            let got = tensors(&dir.0.join("d.safetensors"));
            let is_scale = |name: &&String| name.ends_with("_scale") || name.ends_with("_scale_inv");
            assert_eq!(got.len(), stored.keys().filter(|n| !is_scale(n)).count());
            let mut compared = 0;
            for (name, t) in &got {
                if let Some(expected) = expected.get(&format!("{dtype}.{name}")) {
                    assert_eq!(compare(name, t, expected).0, 0, "{dtype} {name}");
                    compared += 1;
                }
            }
            assert_eq!(compared, expected.keys().filter(|n| n.starts_with(&format!("{dtype}."))).count());
        }
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
    assert_eq!(manifest["order"], serde_json::json!(["base", "a", "b"]));
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

    // No expression of a file is an option, and none among the arguments hides the file's.
    let printed = |file: &str, more: &[&str]| {
        dir.file("e.toml", file.as_bytes());
        dir.castwise(&[&["eval"][..], more, &["--config", "e.toml"]].concat())
    };
    for (text, expected) in [("-q*2", "[-2.0]\n"), ("-o", "[-1.0]\n"), ("-f", "[-1.0]\n"), ("--o", "[1.0]\n")] {
        let file = format!("expression = \"{text}\"\n[inputs]\no = \"x.npy\"\nf = \"x.npy\"\nq = \"x.npy\"\n");
        let out = printed(&file, &[]);
        assert_eq!(out.stdout, expected, "{text}: {}", out.stderr);
    }
    let out = printed("output = \"p.npy\"\n[inputs]\no = \"x.npy\"\n", &["-o*3"]);
    assert!(out.code == Some(0) && dir.0.join("p.npy").exists(), "{}{}", out.stdout, out.stderr);

    // Names of models as TOML writes them, and a filter; a date is no number.
    let merge = "expression = \"@linear\"\n[inputs]\na = \"x.npy\"\nb = \"y.npy\"\n[parameters]\nnormalize = false\n";
    dir.npy("y.npy", &Tensor::from([10.0f32]));
    assert_eq!(printed(&format!("{merge}weight.a = 3\nweight.b = 0.5\n"), &[]).stdout, "[8.0]\n");
    // Models have the order of the file.
    dir.file("order.recipe", b"# Order.\nmodels x 2\nx[first] - x[last]\n");
    let inputs = |[a, b]: [&str; 2]| {
        let models = format!("{a} = \"{a}.npy\"\n{b} = \"{b}.npy\"\n");
        printed(&format!("expression = \"@./order.recipe\"\n[inputs]\n{models}"), &[]).stdout
    };
    assert_eq!((inputs(["y", "x"]), inputs(["x", "y"])), ("[9.0]\n".into(), "[-9.0]\n".into()));
    let filters = "weight = [{filter = \"z\", value = 1}, {value = 2}]\n";
    assert_eq!(printed(&format!("{merge}{filters}"), &[]).stdout, "[22.0]\n");
    let date = printed(&format!("{merge}weight = 2020-01-01\n"), &[]);
    assert!(date.code == Some(2) && date.stderr.contains("2020-01-01`"), "{}", date.stderr);
}

/// A completion is put into a line of the shell as it is, so names that the shell would run or split are none.
#[test]
fn names_that_a_shell_would_run_are_not_completed() {
    let dir = Dir::new("recipes-completed");
    let one = || Tensor::from([1.0f32]);
    let names = ["$(touch x)", "`touch x`", "a; touch x", "a b", "a'b", "a\nb", "a*", "layers.0.w"];
    dir.checkpoint("m.safetensors", &names.map(|n| (n, one())));
    assert_eq!(dir.castwise(&["complete", "--", "-i", "x=m.safetensors:"]).stdout, "x=m.safetensors:layers.0.w\n");
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
        ("castwise eval @dare_t", "@dare_ties"),
        ("castwise ops nanq", "nanquantile"),
        ("castwise recipes show model_", "model_stock"),
        (&format!("castwise eval -i {input}"), "model.norm.weight"),
        ("castwise recip", "recipes"),
    ] {
        let words = line.split(' ').map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" ");
        let run = format!(
            "castwise() {{ \"$0\" \"$@\"; }}; source script.bash; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _castwise_names castwise \"${{COMP_WORDS[COMP_CWORD]##*[=:]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let out = std::process::Command::new("bash")
            .args(["-c", &run, env!("CARGO_BIN_EXE_castwise")])
            .current_dir(&dir.0)
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        // Bash has cut the word at the last of `=` and `:`.
        let got = text.lines().next().unwrap_or_default();
        assert_eq!(got, expected, "{line}: {text}{}", String::from_utf8_lossy(&out.stderr));
    }
}
