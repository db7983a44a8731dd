//! Merges that mergekit has no recorded results for: options and refusals of `castwise merge`, masks by ranks, memory.
//!
//! Guarantees: masks are compared with those of two `argsort`s, which share no code with a selection. Does not: compare with mergekit; `recipes` does.

use std::path::Path;

use castwise::{DType, Eager, Rules, Tensor};
use serde_json::Value;

use crate::command::Dir;

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

/// Configurations that mergekit refuses are refused with their line, in this command's words; so is `passthrough`, which only mergekit has.
#[test]
fn configurations_are_refused_with_their_line() {
    let dir = Dir::new("recipes-refused");
    dir.checkpoint("base.safetensors", &[("w", Tensor::from([1.0f32, 2.0]))]);
    dir.checkpoint("a.safetensors", &[("w", Tensor::from([3.0f32, 6.0]))]);
    let model = |name: &str, more: &str| format!("  - model: {name}.safetensors\n    parameters: {{{more}}}\n");
    let linear = |models: &str, more: &str| format!("merge_method: linear\nmodels:\n{models}{more}");
    let two = model("base", "weight: 1") + &model("a", "weight: 1");
    for (text, why) in [
        (
            linear(&(model("a", "weight: 1") + &model("a", "weight: 2")), ""),
            ":5: the model `a.safetensors` is given twice",
        ),
        (linear(&two, "parameters: {normalize: 2}\n"), ":7: `normalize`: expected true or false, found 2"),
        (
            linear(&two, "parameters:\n  normalize: [{filter: w, value: 3}, {value: true}]\n"),
            "expected true or false, found 3",
        ),
        (linear(&two, "parameters: {normalize: [0, 2]}\n"), ":7: `normalize`: expected true or false, found 2"),
        (linear(&two, "parameters: {normalize: '2'}\n"), ":7: `normalize`: expected true or false, found 2"),
        (
            linear(&(model("a", "weight: 1") + &model("base", "weight: 'yes'")), ""),
            ":6: `weight`: expected a number, found a word for true",
        ),
        (
            linear(&(model("a", "weight: ''") + &model("base", "weight: 1")), ""),
            ":4: `weight`: expected a number, found ``",
        ),
        (
            linear(&(model("a", "weight: 010") + &model("base", "weight: 1")), ""),
            ":4: `weight`: expected a number, found `010`, which YAML 1.1 and YAML 1.2 read differently: write the decimal digits alone",
        ),
        (
            linear(&(model("a", "weight: 0o10") + &model("base", "weight: 1")), ""),
            ":4: `weight`: expected a number, found `0o10`, which",
        ),
        (linear(&(model("a", "weight: &w -0o10") + &model("base", "weight: *w")), ""), "found `-0o10`, which"),
        (linear(&(model("a", "weight: [1, 0o7]") + &model("base", "weight: 1")), ""), "found `0o7`, which"),
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

/// Numbers in quotes, words for truth values and a filter without a list are what they are to mergekit (0.1.5, whose files are equal, too).
#[test]
fn quotes_change_no_value() {
    let dir = Dir::new("recipes-quotes");
    for (name, values) in
        [("base", [1.0f32, 2.0, -5.0, 4.0]), ("a", [3.0, 6.0, 0.1, 8.0]), ("b", [-0.7, 2.5, 9.0, 1.0])]
    {
        dir.checkpoint(
            &format!("{name}.safetensors"),
            &[("layers.0.w", Tensor::from(values)), ("layers.1.v", Tensor::from(values))],
        );
    }
    let merged = |method: &str, own: &str, all: &str| {
        let models: String =
            ["a", "b"].map(|m| format!("  - model: {m}.safetensors\n    parameters: {{{own}}}\n")).concat();
        let text =
            format!("merge_method: {method}\nbase_model: base.safetensors\nmodels:\n{models}parameters: {{{all}}}\n");
        dir.file("c.yml", text.as_bytes());
        let out = dir.castwise(&["merge", "c.yml", "-q", "-f", "-o", "o.safetensors"]);
        assert_eq!(out.code, Some(0), "{text}: {}", out.stderr);
        std::fs::read(dir.0.join("o.safetensors")).unwrap()
    };
    for (method, plain, quoted) in [
        ("ties", ("weight: 2, density: 0.5", "lambda: 0.5"), ("weight: '2', density: \"0.5\"", "lambda: ' 0.5 '")),
        ("ties", ("weight: [0.5, 1]", "normalize: false"), ("weight: ['0.5', \"1\"]", "normalize: 'False'")),
        (
            "ties",
            ("weight: 1", "normalize: false, int8_mask: true"),
            ("weight: '1.'", "normalize: no, int8_mask: 'yes'"),
        ),
        ("ties", ("weight: 1", "normalize: true"), ("weight: '1e0'", "normalize: '1'")),
        (
            "task_arithmetic",
            ("weight: [{filter: w, value: 0.3}, {value: 0.5}]", ""),
            ("weight: [{filter: w, value: '0.3'}, {value: '.5'}]", ""),
        ),
        ("task_arithmetic", ("weight: [{value: 0.3}]", ""), ("weight: {value: '0.3'}", "")),
        ("model_stock", ("", "filter_wise: true"), ("", "filter_wise: 'on'")),
    ] {
        assert!(merged(method, plain.0, plain.1) == merged(method, quoted.0, quoted.1), "{method}: {quoted:?}");
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
    let why = "warning: the recipe `ties` uses `mask.a` for no tensor; it says of `mask`: the elements to keep where density is";
    assert!(said.contains(why), "{said}");
    assert_eq!(ties(&["-p", "density=0.5"]), "");
}

/// `--missing copy` takes weights from the base and the models, not from masks of the same names.
#[test]
fn masks_are_not_copied_as_weights() {
    let dir = Dir::new("recipes-copied-masks");
    let [w, mask] = [Tensor::from([1.0f32, 2.0]), Tensor::from([true, false])];
    dir.checkpoint("base.safetensors", &[("u", w.clone()), ("v", w.clone()), ("w", w.clone())]);
    dir.checkpoint("a.safetensors", &[("u", w.clone()), ("w", w.clone())]);
    // The mask of `a` lacks `u`.
    dir.checkpoint("mask-a.safetensors", &[("v", mask.clone()), ("w", mask.clone())]);
    dir.checkpoint("mask-b.safetensors", &[("u", mask.clone()), ("v", mask.clone()), ("w", mask.clone())]);
    let merge = |more: &[&str]| {
        let masks = ["-i", "mask.b=mask-b.safetensors", "-i", "mask.a=mask-a.safetensors"];
        let models = ["-i", "base=base.safetensors", "-i", "a=a.safetensors", "-i", "b=base.safetensors"];
        let start = ["eval", "@dare_linear", "-p", "density=0.5", "-o", "o.safetensors", "--missing", "copy"];
        dir.castwise(&[&start[..], &masks, &models, more].concat())
    };
    assert_eq!(merge(&[]).code, Some(0));
    let made = castwise::io::SafeTensors::open(dir.0.join("o.safetensors")).unwrap();
    assert!(["u", "v", "w"].iter().all(|n| made.info(n).unwrap().0 == DType::F32));
    // A name that no model has.
    dir.checkpoint("mask-b.safetensors", &["u", "v", "w", "x"].map(|n| (n, mask.clone())));
    let out = merge(&["-f"]);
    let told = "--missing copy: no input of its expression has the tensor `x`";
    assert!(out.code == Some(1) && out.stderr.contains(told), "{}", out.stderr);
}

/// A model's random numbers are those of its position, whatever the models before it have.
#[test]
fn random_masks_do_not_depend_on_other_models() {
    let dir = Dir::new("recipes-own-masks");
    let of = |seed: u64| {
        let all: Vec<f32> = crate::command::noise(seed, 4000);
        Tensor::from_slice(&all, [20, 200]).unwrap()
    };
    for (i, name) in ["base", "a", "b"].into_iter().enumerate() {
        dir.checkpoint(&format!("{name}.safetensors"), &[("w", of(i as u64))]);
    }
    dir.checkpoint("mask.safetensors", &[("w", Tensor::full([20, 200], true).unwrap())]);
    for recipe in ["@dare_linear", "@della_linear"] {
        let merge = |more: &[&str]| {
            let start = ["eval", recipe, "-o", "o.safetensors", "-f", "-q", "-p", "density.b=0.5", "-p", "weight.a=0"];
            let models = ["-i", "base=base.safetensors", "-i", "a=a.safetensors", "-i", "b=b.safetensors"];
            let out = dir.castwise(&[&start[..], &models, more].concat());
            assert_eq!(out.code, Some(0), "{}", out.stderr);
            std::fs::read(dir.0.join("o.safetensors")).unwrap()
        };
        let both = merge(&["-p", "density.a=0.5"]);
        assert!(both == merge(&["-p", "density.a=1"]), "{recipe}: a density of another model");
        assert!(
            both == merge(&["-p", "density.a=0.5", "-i", "mask.a=mask.safetensors"]),
            "{recipe}: a mask of another"
        );
    }
}

/// A model is named by its folder, whose name may have dots, and not as another input of the recipe.
#[test]
fn models_are_named_by_their_folders() {
    let dir = Dir::new("recipes-names");
    for folder in ["base", "Qwen2.5-7B", "mask"] {
        std::fs::create_dir(dir.0.join(folder)).unwrap();
        dir.checkpoint(&format!("{folder}/model.safetensors"), &[("w", Tensor::from([1.0f32, 2.0]))]);
    }
    dir.checkpoint("v1.5.safetensors", &[("w", Tensor::from([1.0f32, 2.0]))]);
    let models =
        ["Qwen2.5-7B", "mask", "v1.5.safetensors"].map(|m| format!("  - model: {m}\n    parameters: {{weight: 1}}\n"));
    let text = format!("merge_method: dare_linear\nbase_model: base\nmodels:\n{}", models.concat());
    dir.file("c.yml", text.as_bytes());
    let shown = dir.castwise(&["merge", "c.yml", "--show"]);
    let inputs = "-i base=base -i Qwen2_5-7B=Qwen2.5-7B -i mask_2=mask -i v1_5=v1.5.safetensors";
    assert!(shown.stdout.contains(inputs), "{}{}", shown.stdout, shown.stderr);
    assert_eq!(dir.castwise(&["merge", "c.yml", "-o", "merged/", "-q"]).code, Some(0));
}

/// Peak memory is at most that of the inputs, of an f32 accumulator and of 100 MB for the largest tensor.
#[cfg(target_os = "linux")]
#[test]
fn merges_take_little_memory() {
    let dir = Dir::new("recipes-memory");
    const LARGEST: u64 = 16 << 20;
    for (seed, name) in (1..).zip(["base", "a", "b"]) {
        let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::BF16, [4096, 2048]).unwrap());
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
        let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [n]).unwrap());
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
        (
            "breadcrumbs_ties",
            "w",
            &[
                "density=0",
                "density=0.5",
                "density=0.9",
                "density=0.995",
                "density=0.5 gamma=-0.2",
                "density=0.5 gamma=-9",
            ],
        ),
        ("della", "w[57]|m|t", &["density=0.5", "density=0.7"]),
    ] {
        for dtype in ["bf16", "f16", "f32", "f64"] {
            for setting in settings {
                let run = |recipe: &str, output: &str| {
                    let dtype = format!("dtype={dtype}");
                    let inputs = ["-i", "base=base.safetensors", "-i", "a=a.safetensors", "-i", "b=b.safetensors"];
                    let options = ["-q", "-f", "-o", output, "-p", &dtype, "--select", tensors];
                    let settings: Vec<&str> = setting.split(' ').flat_map(|s| ["-p", s]).collect();
                    let out = dir.castwise(&[&["eval", recipe][..], &inputs, &options, &settings].concat());
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

/// Of a model of which no element is kept nothing stays, as in mergekit: no NaN either. `della` then needs no ranks and no `epsilon` that fits.
#[test]
fn merges_without_elements_of_a_model_have_none_of_its_nans() {
    let dir = Dir::new("merges-none");
    dir.checkpoint("base.safetensors", &[("t", Tensor::from([1.0f32, 2.0, 3.0, 4.0]))]);
    dir.checkpoint("a.safetensors", &[("t", Tensor::from([2.0f32, f32::NAN, 4.0, 5.5]))]);
    dir.checkpoint("b.safetensors", &[("t", Tensor::from([1.0f32, 3.0, 3.5, 4.0]))]);
    let inputs = ["-i", "base=base.safetensors", "-i", "a=a.safetensors", "-i", "b=b.safetensors"];
    for (recipe, none, some) in [("@ties", "0", "0.5"), ("@della", "0", "1"), ("@della_linear", "-0.5", "1")] {
        let (none, some) = (format!("density.a={none}"), format!("density.b={some}"));
        let out = dir.castwise(&[&["eval", recipe][..], &inputs, &["-p", &none, "-p", &some]].concat());
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{recipe}");
        assert!(out.stdout.contains("[1.0 3.0 3.5 4.0]"), "{recipe}: {}", out.stdout);
    }
}

/// As in mergekit, which compares models by the texts of their paths.
#[test]
fn a_model_by_two_paths_is_two_models() {
    let dir = Dir::new("merges-paths");
    dir.checkpoint("a.safetensors", &[("t", Tensor::from([1.0f32, 2.0]))]);
    let model = |path: &str| format!("  - model: {path}.safetensors\n    parameters: {{weight: 1}}\n");
    let text =
        format!("merge_method: linear\nmodels:\n{}{}parameters: {{normalize: false}}\n", model("a"), model("./a"));
    dir.file("c.yml", text.as_bytes());
    let out = dir.castwise(&["merge", "c.yml"]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let note = "note: `a.safetensors` and `./a.safetensors` are one model, which is read twice and counts as two, as in mergekit\n";
    assert!(out.stderr.starts_with(note), "{}", out.stderr);
    assert!(out.stdout.contains("[2.0 4.0]"), "{}", out.stdout);
}

fn cast(t: &Tensor, dtype: DType) -> Tensor {
    Eager::new(Rules::Torch).tensor(t).cast(dtype).result().unwrap()
}
