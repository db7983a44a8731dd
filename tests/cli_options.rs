//! The options of `castwise eval`, and the other commands.

use std::process::{Command, Stdio};

use castwise::io::{Compression, Existing, NpzWriter, SafeTensors, read_npy};
use castwise::{CpuLevel, DType, Executor, Program, Rules, Tensor, feeds};
use serde_json::Value;

use crate::command::{Dir, bf16_tensor, eager, half_tensor};

/// Two checkpoints of four tensors.
fn checkpoints(dir: &Dir) -> Vec<(&'static str, Tensor, Tensor)> {
    let names = ["embed", "layers.1.mlp", "layers.10.mlp", "norm"];
    let all: Vec<_> =
        names.iter().zip(1..).map(|(n, i)| (*n, bf16_tensor(i, &[5, 7]), half_tensor(i + 9, &[5, 7]))).collect();
    dir.checkpoint("a.safetensors", &all.iter().map(|(n, a, _)| (*n, a.clone())).collect::<Vec<_>>());
    dir.checkpoint("b.safetensors", &all.iter().map(|(n, _, b)| (*n, b.clone())).collect::<Vec<_>>());
    all
}

const FILES: [&str; 6] = ["-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "c.safetensors"];

fn same(dir: &Dir, name: &str, text: &str, a: &Tensor, b: &Tensor) {
    let got = SafeTensors::open(dir.0.join("c.safetensors")).unwrap().load(name).unwrap();
    let expected = eager(Rules::Torch, text, &[("a", a), ("b", b)]);
    assert_eq!((got.dtype(), got.as_bytes()), (expected.dtype(), expected.as_bytes()), "{name}: {text}");
}

#[test]
fn weights_by_name_are_those_of_the_file() {
    let dir = Dir::new("weights");
    let all = checkpoints(&dir);
    // A key that is a tensor's name applies to that tensor only: `layers.1.mlp` does not apply to `layers.10.mlp`, and
    // its dots match no other character.
    dir.file("w.json", br#"{"layers.1.mlp": 0.125, "layers": 0.75, "norm": 2, "e": 0.5}"#);
    dir.eval(&[&["a + w*(b - a)", "-p", "w=w.json"], &FILES[..]].concat()).ok();
    for ((name, a, b), w) in all.iter().zip(["0.5", "0.125", "0.75", "2"]) {
        same(&dir, name, &format!("a + {w}*(b - a)"), a, b);
    }
    // The first matching pattern is used, and a name without a value is an error.
    dir.file("w.json", br#"{"10": 4, "layers": 0.25, ".*": -1.5}"#);
    dir.eval(&[&["w*a - b", "-p", "w=w.json", "--force"], &FILES[..]].concat()).ok();
    for ((name, a, b), w) in all.iter().zip(["-1.5", "0.25", "4", "-1.5"]) {
        same(&dir, name, &format!("{w}*a - b"), a, b);
    }
    dir.file("w.json", br#"{"layers": 0.25}"#);
    let stderr = dir.refused(&[&["w*a - b", "-p", "w=w.json", "--force"], &FILES[..]].concat());
    assert!(stderr.contains("`w` has no value for the tensor `embed`"), "{stderr}");
    for bad in ["[]", "{\"x\": \"y\"}", "{\"x\": 1, \"x\": 2}", "{\"x\": [1]}", "{", "{\"x\": 1e999}"] {
        dir.file("w.json", bad.as_bytes());
        let stderr = dir.refused(&[&["w*a - b", "-p", "w=w.json", "--force"], &FILES[..]].concat());
        assert!(stderr.contains("w.json: not a JSON object of names and numbers"), "{bad}: {stderr}");
    }
    dir.file("w.json", br#"{"(": 1}"#);
    let stderr = dir.refused(&[&["w*a - b", "-p", "w=w.json", "--force"], &FILES[..]].concat());
    assert!(stderr.contains("nor a usable regular expression"), "{stderr}");
}

#[test]
fn maps_and_selections_choose_expressions_by_name() {
    let dir = Dir::new("maps");
    let all = checkpoints(&dir);
    let maps = ["--map", "10=a", "--map", "layers=t = a*b; t + t"];
    dir.eval(&[&["a - b", "--skip", "embed"], &maps[..], &FILES[..]].concat()).ok();
    let expected = ["", "t = a*b; t + t", "a", "a - b"];
    let mut names: Vec<String> =
        SafeTensors::open(dir.0.join("c.safetensors")).unwrap().names().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, ["layers.1.mlp", "layers.10.mlp", "norm"]);
    for ((name, a, b), text) in all.iter().zip(expected).skip(1) {
        same(&dir, name, text, a, b);
    }
    // An input may lack a name if that name's expression does not use the input.
    dir.checkpoint("b.safetensors", &[("norm", all[3].2.clone())]);
    let out = dir.eval(&[&["a - b", "--force"], &["--map", "layers|embed=a * 2"], &FILES[..]].concat()).ok();
    assert!(!out.stderr.contains("warning"), "{}", out.stderr);
    same(&dir, "embed", "a * 2", &all[0].1, &all[0].2);
    same(&dir, "norm", "a - b", &all[3].1, &all[3].2);
    // Without an expression for the other tensors, they are left out with a warning.
    let out = dir.eval(&[&["--force", "--map", "norm=a * 2"], &FILES[..]].concat()).ok();
    assert!(out.stderr.contains("3 tensors match no --map, left out: `embed`"), "{}", out.stderr);
    assert_eq!(SafeTensors::open(dir.0.join("c.safetensors")).unwrap().names().collect::<Vec<_>>(), ["norm"]);
}

#[test]
fn relaxed_rounding_is_that_of_the_library() {
    let dir = Dir::new("relaxed");
    let x = half_tensor(3, &[1000]);
    dir.npy("x.npy", &x);
    let run = |output: &str, rounding: &str| {
        dir.eval(&["x * 3.14159 - x", "-i", "x=x.npy", "-o", output, "--rounding", rounding, "--threads", "2"]).ok();
        read_npy(dir.0.join(output)).unwrap()
    };
    let (exact, relaxed) = (run("e.npy", "exact"), run("r.npy", "relaxed"));
    assert_eq!(exact.as_bytes(), eager(Rules::Torch, "x * 3.14159 - x", &[("x", &x)]).as_bytes());
    assert_ne!(relaxed.as_bytes(), exact.as_bytes());
    assert_eq!(relaxed.dtype(), DType::F16);
}

#[test]
fn the_report_is_json_and_alone_on_stdout() {
    let dir = Dir::new("json");
    let all = checkpoints(&dir);
    let out = dir.eval(&[&["0.7*a + 0.3*b", "--json", "--quiet", "--rules", "torch"], &FILES[..]].concat()).ok();
    assert_eq!(out.stderr, "");
    let report: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(report["tensors"].as_array().unwrap().len(), all.len());
    let first = &report["tensors"][0];
    assert_eq!(
        (&first["name"], &first["dtype"], &first["shape"]),
        (&"embed".into(), &"f32".into(), &vec![5, 7].into())
    );
    let cast = &first["casts"][0];
    assert_eq!((&cast["from"], &cast["to"], &cast["loss"]), (&"bf16".into(), &"f32".into(), &"exact".into()));
    assert_eq!(cast["place"], Value::from(vec![0, 13]));
    assert_eq!(report["bytes"]["written"], 4 * 5 * 7 * 4);
    let seconds = &report["seconds"];
    let parts: f64 = ["type", "compile", "read", "compute", "write"].iter().map(|p| seconds[p].as_f64().unwrap()).sum();
    assert!(parts > 0.0 && parts <= seconds["total"].as_f64().unwrap(), "{seconds}");
    assert_eq!(report["files"], Value::from(vec!["c.safetensors"]));
    assert_eq!(report["dry_run"], false);
    if cfg!(target_os = "linux") {
        assert!(report["peak_memory"].as_u64().unwrap() > 1 << 20);
    }
}

#[test]
fn a_dry_run_and_a_denied_one_write_nothing() {
    let dir = Dir::new("dry");
    checkpoints(&dir);
    let before = dir.names();
    dir.eval(&[&["0.7*a + 0.3*b", "--dry-run"], &FILES[..]].concat()).ok();
    let out = dir.eval(&[&["0.7*a + 0.3*b", "--deny", "lossy"], &FILES[..]].concat());
    assert_eq!(out.code, Some(3), "{}", out.stderr);
    assert_eq!(dir.names(), before);
    dir.eval(&[&["0.7*cast(a, f32) + 0.3*cast(b, f32)", "--deny", "lossy"], &FILES[..]].concat()).ok();
    // A dry run refuses what a run refuses, except an existing output.
    let written = std::fs::read(dir.0.join("c.safetensors")).unwrap();
    let says = "c.safetensors exists: a run replaces it only with --force\n";
    let dry = |more: &[&str]| dir.eval(&[&["a + b", "--dry-run"], &FILES[..], more].concat()).ok().stdout;
    assert!(dry(&[]).ends_with(says) && dry(&["--force"]).ends_with("exists: a run replaces it\n"));
    let report: Value = serde_json::from_str(&dry(&["--json"])).unwrap();
    assert_eq!((&report["existing"], &report["dry_run"]), (&Value::from(vec!["c.safetensors"]), &true.into()));
    assert!(
        dir.refused(&["a", "-i", "a=a.safetensors", "-o", "a.safetensors", "--dry-run", "-f"]).contains("an input")
    );
    assert_eq!(std::fs::read(dir.0.join("c.safetensors")).unwrap(), written);
}

#[test]
fn quiet_leaves_errors_and_warnings_and_what_is_asked_for() {
    let dir = Dir::new("quiet");
    checkpoints(&dir);
    dir.file("w.json", br#"{".": 0.5, "typo": 1}"#);
    // The command prints a note, a warning and a summary; with --quiet, only the warning.
    let all = [&["w*(b - a)", "-p", "w=w.json", "-f", "-p", "idle=1"], &FILES[..]].concat();
    let loud = dir.eval(&all).ok().stderr;
    let warning = "warning: `w`: the key `typo` matches no tensor's name\n";
    assert!(loud.contains("note: mixed") && loud.contains("parameter `idle`") && loud.contains(warning), "{loud}");
    assert!(loud.contains("4 tensors: "), "{loud}");
    for asked in [&[][..], &["--dry-run"], &["--explain"], &["--json"]] {
        let out = dir.eval(&[&all[..], &["-q"], asked].concat()).ok();
        assert_eq!(out.stderr, warning, "{asked:?}");
        assert_eq!(out.stdout.is_empty(), asked.is_empty(), "{asked:?}");
    }
}

#[test]
fn rules_are_spoken_of_where_dtypes_are_mixed() {
    let dir = Dir::new("mixed");
    let dry = |text: &str, inputs: &[&str]| {
        let inputs = inputs.iter().flat_map(|i| ["-i", i]).collect::<Vec<_>>();
        dir.eval(&[&[text], &inputs[..], &["-o", "out.safetensors", "--dry-run"]].concat()).ok().stderr
    };
    for (text, inputs) in [("a + b", ["a=bf16[2]", "b=f16[2]"]), ("a * b", ["a=i64[2]", "b=f32[2]"])] {
        assert!(dry(text, &inputs).contains("mixed dtypes promote by PyTorch's rules"), "{text}");
    }
    for text in ["a", "0.5*a + 2", "exp(a) - a*a", "cast(a, f64)"] {
        assert_eq!(dry(text, &["a=bf16[2]"]), "", "{text}");
    }
    assert_eq!(dry("(a - b) / a", &["a=u8[2]", "b=u8[2]"]), "");
}

/// The median of relative errors, in the format of the command.
fn median(low: &[f64], exact: &[f64]) -> String {
    let mut all: Vec<f64> = low.iter().zip(exact).map(|(l, e)| (l - e).abs() / e.abs()).collect();
    all.sort_by(f64::total_cmp);
    format!("{:.1e}", all[all.len() / 2])
}

#[test]
fn the_measured_errors_are_those_of_f64() {
    let dir = Dir::new("numeric");
    let (a, b) = (bf16_tensor(1, &[64, 33]), half_tensor(2, &[64, 33]));
    dir.checkpoint("a.safetensors", &[("x", a.clone())]);
    dir.npy("b.npy", &b);
    let out = dir.castwise(&["explain", "0.7*a + 0.3*b", "-i", "a=a.safetensors", "-i", "b=b.npy", "--numeric"]).ok();
    let run = |text: &str| eager(Rules::Torch, text, &[("a", &a), ("b", &b)]).to_vec::<f64>().unwrap();
    let exact = run("0.7*cast(a, f64) + 0.3*cast(b, f64)");
    let half = run("cast(0.7*a, f64) + 0.3*cast(b, f64)");
    let low = run("cast(0.7*a + 0.3*b, f64)");
    let whole = format!("result f32: median relative error {}", median(&low, &exact));
    assert!(out.stdout.contains(&whole), "{whole}: {}", out.stdout);
    // The first line is `0.7*a`, with its error in the result and its own error.
    let own = median(&run("cast(0.7*a, f64)"), &run("0.7*cast(a, f64)"));
    let first = out.stdout.lines().skip_while(|l| !l.contains("op or cast")).nth(1).unwrap();
    let words: Vec<&str> = first.split_whitespace().collect();
    assert_eq!((words[0], words[2]), (median(&half, &exact).as_str(), own.as_str()), "{first}");
    assert!(first.ends_with("`mul` rounds to bf16, in `0.7*a`"), "{first}");
    assert!(out.stdout.ends_with("1 | 0.7*a + 0.3*b\n  | ^^^^^ `mul` rounds to bf16\n"), "{}", out.stdout);
}

#[test]
fn of_a_large_tensor_the_first_rows_are_measured() {
    let dir = Dir::new("rows");
    // 5000 rows of 1000 elements. Rows after the first 4194 would change the error.
    let mut v = vec![1u8; 5_000_000];
    v[4_300_000..].fill(200);
    dir.npy("x.npy", &Tensor::from_vec(v, [5000, 1000]).unwrap());
    let out = dir.castwise(&["explain", "x + x", "-i", "x=x.npy", "--numeric"]).ok();
    assert!(
        out.stdout.contains("measured on 4194000 elements") && out.stdout.contains("no op or cast has"),
        "{}",
        out.stdout
    );
    // A sum needs all rows: 4300000 + 200 * 700000.
    let out = dir.castwise(&["explain", "sum(cast(x, f32))", "-i", "x=x.npy", "--numeric"]).ok();
    assert!(out.stdout.contains("measured on 5000000 elements"), "{}", out.stdout);
}

#[test]
fn more_places_than_are_traced_have_their_own_errors() {
    let dir = Dir::new("places");
    let text = format!("x{}", " * 1.001".repeat(70));
    let out = dir.castwise(&["explain", &text, "-i", "x=bf16[500]", "--numeric"]).ok();
    assert!(out.stdout.contains("  -        -             ") && out.stdout.contains("(and 50 more)"), "{}", out.stdout);
}

/// The code for a machine with AVX2 or AVX-512, and for a machine without them if requested: each instruction under its source.
#[test]
fn code_is_shown_of_the_back_end_that_makes_it() {
    let dir = Dir::new("stages");
    let dump = |stage: &str, cpu: &str| {
        dir.run(&["dump", "a*2 + 1", "-i", "a=f32[n]", "--stage", stage], &[("CASTWISE_CPU", cpu)], None)
    };
    let steps = ["mul.f32 %0, %1   at characters 0..3\n", "add.f32 %2, %3   at characters 0..7\n"];
    let clif = dump("clif", "baseline").ok().stdout;
    assert!(clif.contains("function") && clif.contains("fmul") && steps.iter().all(|s| clif.contains(s)), "{clif}");
    let refused = dump("x64", "baseline");
    assert!(refused.code == Some(2) && refused.stderr.contains("--stage clif"), "{}", refused.stderr);
    let disassembled = cfg!(target_arch = "x86_64");
    for (cpu, level, register) in
        [("baseline", CpuLevel::Baseline, "xmm"), ("avx2", CpuLevel::Avx2, "ymm"), ("avx512", CpuLevel::Avx512, "zmm")]
    {
        let (asm, x64, clif) = (dump("asm", cpu), dump("x64", cpu), dump("clif", cpu));
        let text = if disassembled { asm.ok().stdout } else { String::new() };
        assert!(!disassembled || text.contains("mulps") && steps.iter().all(|s| text.contains(s)), "{text}");
        if CpuLevel::get() >= level {
            assert!(!disassembled || text.contains(register), "{text}");
        }
        if cfg!(unix) && level > CpuLevel::Baseline && CpuLevel::get() >= level {
            assert!(clif.code == Some(2) && clif.stderr.contains("--stage asm"), "{}", clif.stderr);
            let text = x64.ok().stdout;
            let made = ["= load f32 [slot", "= vmulps.", "load f32 ", "mulps "].iter().all(|s| text.contains(s));
            assert!(made && steps.iter().all(|s| text.contains(s)), "{text}");
        } else if level == CpuLevel::Baseline {
            assert_eq!((x64.code, clif.code), (Some(2), Some(0)));
        }
    }
}

/// The results of `run` have the library's bits, for all file formats.
#[test]
fn programs_as_text_compute_what_the_library_computes() {
    let dir = Dir::new("run");
    let text = "castwise 1\nprogram(rules = torch) (%x: bf16[4, n], %y: f16[n]) {\n  %0 = add %x, %y\n  %1 = sum %0 \
                {dims = [1]}\n  fetch %1 as \"sums\", %0 as \"all\"\n}\n";
    dir.file("p.cw", text.as_bytes());
    let (x, y) = (bf16_tensor(1, &[4, 6]), half_tensor(2, &[6]));
    dir.checkpoint("x.safetensors", &[("x", x.clone()), ("other", y.clone())]);
    dir.checkpoint("y.safetensors", &[("only", y.clone())]);
    dir.castwise(&["run", "p.cw", "-i", "x.safetensors", "-i", "y=y.safetensors", "-o", "o.safetensors", "-q"]).ok();
    let program = Program::parse(text).unwrap();
    let fetches = program.fetches();
    let wanted = Executor::new().run(&program, feeds! { "x" => x, "y" => y }, fetches.iter().map(|f| &f.var)).unwrap();
    let mut file = SafeTensors::open(dir.0.join("o.safetensors")).unwrap();
    for (f, t) in fetches.iter().zip(&wanted) {
        let read = file.load(f.name.as_deref().unwrap()).unwrap();
        assert_eq!((read.dtype(), read.shape(), read.as_bytes()), (t.dtype(), t.shape(), t.as_bytes()));
    }
}

/// A symbolic link stays a link, and a file keeps its permissions.
#[cfg(unix)]
#[test]
fn fmt_replaces_what_a_link_names() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new("fmt");
    dir.file("p.cw", b"castwise 1 program(rules = torch) (%x: f32[]) { }");
    std::fs::set_permissions(dir.0.join("p.cw"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("p.cw", dir.0.join("link.cw")).unwrap();
    dir.castwise(&["fmt", "link.cw", "--write"]).ok();
    assert!(dir.0.join("link.cw").symlink_metadata().unwrap().is_symlink());
    assert_eq!(dir.0.join("p.cw").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    dir.castwise(&["fmt", "p.cw", "--check"]).ok();
    assert_eq!(dir.names(), ["link.cw", "p.cw"]);
}

#[test]
fn completions_and_manuals_know_every_command() {
    let dir = Dir::new("manuals");
    let commands = ["eval", "run", "fmt", "explain", "dump", "table", "completions", "man"];
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let out = dir.castwise(&["completions", shell]).ok();
        for word in commands.iter().copied().chain(["numeric", "max-shard-size"]) {
            assert!(out.stdout.contains(word), "{shell}: {word}");
        }
        // The hidden command that scripts ask for names is not offered.
        assert!(!out.stdout.contains("Print what a word can become"), "{shell}");
        assert!(!out.stdout.contains("subcmd__complete)"), "{shell}");
        // Names of files reach the line quoted, and names of values are no commands.
        assert!(!out.stdout.contains("compgen -f"), "{shell}");
        assert!(shell != "zsh" || !out.stdout.contains("[:MEMBER]"), "{shell}");
    }
    let page = dir.castwise(&["man"]).ok().stdout;
    for command in commands {
        assert!(page.contains(&format!("castwise\\-{command}(1)")), "{command}: {page}");
        let page = dir.castwise(&["man", command]).ok().stdout;
        assert!(page.contains(&format!(".TH castwise-{command} 1")), "{page}");
    }
    let help = dir.castwise(&["--help"]).ok().stdout;
    assert!(help.contains("Exit status: 0 success; 1 "), "{help}");
}

/// `--html` writes a page only if the status is 0.
#[test]
fn a_fix_that_is_not_found_leaves_no_page() {
    let dir = Dir::new("fix-page");
    let page =
        ["--html", "page.html", "-i", "a=bf16[64]", "-i", "b=f16[64]", "--rules", "torch", "--fix", "--tolerance"];
    let explain = |tolerance| dir.castwise(&[&["explain", "0.7*a + 0.3*b"], &page[..], &[tolerance]].concat());
    assert_eq!((explain("1e-30").code, dir.names()), (Some(3), vec![]));
    assert_eq!((explain("1e-6").code, dir.names()), (Some(0), vec!["page.html".to_string()]));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for arguments in [&["table", "all"][..], &["completions", "bash"], &["man", "eval"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_castwise"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        assert_eq!((out.status.code(), String::from_utf8_lossy(&out.stderr).as_ref()), (Some(0), ""), "{arguments:?}");
    }
}

/// A sparse file.
#[cfg(unix)]
fn hollow(dir: &Dir, name: &str, head: &[u8], data: u64) {
    dir.file(name, head);
    let file = std::fs::File::options().write(true).open(dir.0.join(name)).unwrap();
    file.set_len(head.len() as u64 + data).unwrap();
}

/// These commands do not read data, neither data that exceed memory or the disk nor invalid data.
#[test]
#[cfg(unix)]
fn a_dry_run_reads_headers_alone() {
    let dir = Dir::new("headers");
    let text = format!("{:<117}\n", "{'descr': '|u1', 'fortran_order': True, 'shape': (1048576, 1048576)}");
    let head = [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat();
    hollow(&dir, "huge.npy", &head, 1 << 40);
    let text = format!(r#"{{"x":{{"dtype":"BF16","shape":[1048576,1048576],"data_offsets":[0,{}]}}}}"#, 1u64 << 41);
    hollow(&dir, "huge.safetensors", &[&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat(), 1 << 41);
    dir.file("huge.index.json", br#"{"weight_map": {"x": "huge.safetensors"}}"#);
    // The bool is neither 0 nor 1. In the archive this makes the checksum wrong too.
    dir.npy("bad.npy", &Tensor::from_slice(&[true, false, true], [3]).unwrap());
    let mut bytes = std::fs::read(dir.0.join("bad.npy")).unwrap();
    *bytes.last_mut().unwrap() = 7;
    dir.file("bad.npy", &bytes);
    let list = [("x".to_string(), DType::U8, vec![1_048_576, 4])];
    let mut npz = NpzWriter::create(dir.0.join("bad.npz"), &list, Compression::Stored, Existing::Keep).unwrap();
    npz.write("x", &Tensor::full([1_048_576, 4], 5u8).unwrap()).unwrap();
    npz.finish().unwrap();
    let mut bytes = std::fs::read(dir.0.join("bad.npz")).unwrap();
    bytes[3_000_000] = 6;
    dir.file("bad.npz", &bytes);

    let cases = [
        ("a + 1", "a=huge.npy", "u8[1048576, 1048576]", "1.00 TiB"),
        ("a + 1", "a=huge.safetensors", "bf16[1048576, 1048576]", "2.00 TiB"),
        ("a + 1", "a=huge.index.json", "bf16[1048576, 1048576]", "2.00 TiB"),
        ("a ^ true", "a=bad.npy", "bool[3]", "3 B"),
        ("a + 1", "a=bad.npz", "u8[1048576, 4]", "4.00 MiB"),
    ];
    for (text, input, result, size) in cases {
        for (memory, stage) in [(Some("--dry-run"), "eval"), (None, "explain")] {
            let output = ["-o", "out.safetensors"];
            let rest = memory.map_or(vec![], |dry| [&output[..], &[dry]].concat());
            // An address space of 2 GiB is enough for the command, but not for the large arrays.
            let script = format!("ulimit -v 2097152; exec \"$0\" {stage} '{text}' -i {input} {}", rest.join(" "));
            let mut sh = Command::new("sh");
            let out = sh.args(["-c", &script, env!("CARGO_BIN_EXE_castwise")]).current_dir(&dir.0).output().unwrap();
            let (stdout, stderr) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
            assert_eq!(out.status.code(), Some(0), "{script}: {stderr}");
            assert!(stdout.contains(result), "{script}: {stdout}");
            assert!(memory.is_none() || stdout.contains(&format!("would read {size} and write {size}")), "{stdout}");
        }
    }
    // Data that are computed with are checked.
    let said = dir.refused(&["a ^ true", "-i", "a=bad.npy", "-o", "out.npy"]);
    assert!(said.contains("element 2 of the array is the bool byte 7"), "{said}");
    assert!(dir.refused(&["a + 1", "-i", "a=bad.npz", "-o", "out.npz"]).contains("bad.npz: "));
}

/// The progress bar is shown on a terminal, which `script` (of util-linux) emulates, but not in a pipe or with --quiet.
#[test]
#[cfg(target_os = "linux")]
fn progress_is_shown_on_a_terminal_alone() {
    let dir = Dir::new("progress");
    let (count, size) = (16, 2 << 20);
    let entry =
        |i| format!(r#""{i}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{},{}]}}"#, i * size, (i + 1) * size);
    let text = format!("{{{}}}", (0..count).map(entry).collect::<Vec<_>>().join(","));
    let head = [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    hollow(&dir, "a.safetensors", &head, (count * size) as u64);
    let arguments = ["a ^ 1", "-i", "a=a.safetensors", "-o", "b.safetensors", "--force", "--rules", "torch"];
    let line = format!("{} eval 'a ^ 1' {}", env!("CARGO_BIN_EXE_castwise"), arguments[1..].join(" "));
    let terminal = |line: &str| {
        let mut script = Command::new("script");
        let out = script.args(["-qec", line, "/dev/null"]).current_dir(&dir.0).stdin(Stdio::null()).output();
        out.ok().map(|out| (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned()))
    };
    let Some((code, shown)) = terminal(&line) else {
        println!("not tested: there is no `script` here");
        return;
    };
    // The bar counts all bytes that are read and written.
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains(" MiB/64.00 MiB ") && shown.contains("16 tensors: 32.00 MiB read"), "{shown}");
    let (_, quiet) = terminal(&format!("{line} --quiet")).unwrap();
    assert_eq!(quiet, "");
    let out = dir.eval(&arguments).ok();
    assert!(!out.stderr.contains("/64.00 MiB") && !out.stderr.contains('\r'), "{}", out.stderr);
}
