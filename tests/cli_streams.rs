//! Tensors that the command computes in parts: the bits of runs on whole tensors, memory, failures in the middle.

use std::process::Command;
use std::time::Duration;

use castwise::io::{Existing, NpyWriter, read_npy};
use castwise::prelude::*;

#[cfg(unix)]
use crate::command::signals::{self, DEFAULT_SIGNALS, ended, start};
use crate::command::{self, Dir};

/// Normally distributed numbers.
fn normal(seed: u64, dtype: DType, shape: &[usize]) -> Tensor {
    let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, shape).unwrap());
    (x.normal(seed, None) * 3.0).cast(dtype).result().unwrap()
}

/// Files of arrays that are larger than the least memory, 1 MiB, in which parts of several sizes fit.
fn arrays(dir: &Dir) {
    dir.npy("x.npy", &normal(1, DType::F32, &[1_000_003]));
    dir.npy("h.npy", &normal(2, DType::F16, &[150_001, 5]));
    dir.npy("m.npy", &normal(3, DType::F32, &[1501, 701]));
    dir.npy("b.npy", &normal(4, DType::F32, &[701]));
    dir.npy("c.npy", &normal(5, DType::F32, &[1501, 1]));
    dir.npy("s.npy", &normal(6, DType::F32, &[]));
    dir.npy("d.npy", &normal(7, DType::F64, &[640, 3, 130]));
    dir.npy("i.npy", &normal(8, DType::I32, &[1000, 1024]));
    dir.npy("g.npy", &normal(12, DType::F32, &[2001, 512]));
    dir.npy("l.npy", &normal(13, DType::F32, &[512]));
    dir.npy("k.npy", &normal(9, DType::F32, &[26_880, 20]));
    dir.checkpoint(
        "w.safetensors",
        &[("w", normal(10, DType::BF16, &[800, 1024])), ("small", normal(11, DType::BF16, &[7]))],
    );
}

/// The inputs of an expression: those whose names it uses.
fn inputs(expression: &str) -> Vec<String> {
    let used = |name: &str| {
        let mut words = expression.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|w| w == name)
    };
    let files = ["x", "h", "m", "b", "c", "s", "d", "i", "k", "g", "l"].into_iter().filter(|n| used(n));
    let named = files.map(|n| format!("{n}={n}.npy")).chain(used("w").then(|| "w=w.safetensors".to_string()));
    named.flat_map(|i| ["-i".to_string(), i]).collect()
}

/// Evaluates an expression in so much memory.
fn eval(dir: &Dir, expression: &str, memory: &str, output: &str) -> command::Outcome {
    let inputs = inputs(expression);
    let mut arguments = vec![expression, "--memory", memory, "-o", output, "-f", "-q"];
    arguments.extend(inputs.iter().map(String::as_str));
    dir.eval(&arguments)
}

/// A run in so much memory gives the file of a run without a limit.
fn assert_parts_are_whole(dir: &Dir, expression: &str, memory: &str) {
    let whole = eval(dir, expression, "100GB", "whole.safetensors");
    let parts = eval(dir, expression, memory, "parts.safetensors");
    assert_eq!((whole.code, parts.code), (Some(0), Some(0)), "{expression}: {}{}", whole.stderr, parts.stderr);
    let read = |name: &str| std::fs::read(dir.0.join(name)).unwrap();
    assert!(read("whole.safetensors") == read("parts.safetensors"), "{expression} in {memory}");
}

#[test]
fn parts_have_the_bits_of_the_whole() {
    let dir = Dir::new("parts");
    arrays(&dir);
    for expression in [
        "r = x*2 + 1",
        "r = sum(x); p = prod(x); mean = mean(x*x); high = amax(x); low = amin(-x)",
        "y = x - mean(x); r = y / (amax(abs(y)) + 1); z = mean(y*y)",
        "r = cast(x, bf16); z = sum(cast(x, bf16)); t = mean(cast(x, bf16) * cast(x, bf16))",
        "r = m*b + c*s",
        "r = g*l; t = sum(g*l); u = mean(g + l)",
        "r = sum(m, dims=1); q = amax(m, dims=1); t = mean(m, dims=1, keepdim=true)",
        "r = g - mean(g, dims=0); t = sum(g*l, dims=0) * 3; u = amin(g, dims=0)",
        "e = exp(m - amax(m, dims=1, keepdim=true)); r = e / sum(e, dims=1, keepdim=true)",
        "r = std(m, dims=1); q = argmax(m, dims=1); p = median(m, dims=1)",
        "r = sum(h); q = mean(h, dims=1); t = any(h > 9); u = all(h > -100); v = any(h > 5, dims=1)",
        "r = sum(k, dims=0); q = mean(k, dims=0)",
        "r = d * 2; t = sum(d, dims=2); u = mean(d, dims=1)",
        "r = d * 2; t = sum(d); u = mean(d)",
        "r = sum(d, dims=0); q = mean(d, dims=0)",
        "r = sum(i); q = sum(i, dims=1); t = prod(i); u = amax(i) - i",
        "r = w*2; q = mean(w); t = sum(cast(w, f32))",
        // Rows of composites, and composites of shapes.
        "r = softmax(m); q = log_softmax(m)",
        "r = layer_norm(g, l); q = rms_norm(g); t = vecdot(g, g + 1); u = cosine_similarity(g, l); v = normalize(g)",
        "r = m / count(m); t = mean(m * count(m)); u = count(m, dims=0) + m",
        "r = m - sum_to(m, c); t = sum_to(m*m, c)",
        // Results that are inputs.
        "r = x; q = x + 1; t = sum(x)",
        // Generators in the shape of what is reduced.
        "p = sum(m, keepdim=true); r = m * uniform(p, seed=1)",
        "p = mean(x - mean(x)); r = x * (index(p) + 1)",
        // Lines along other dims than the first: what a second pass needs of them is kept, or computed again.
        "r = sort(m) + b; p = topk(m, k=7)",
        "r = argsort(d, dim=2) * 2; q = amax(sort(d), dims=2)",
        "r = cumsum(h, dim=1)",
        "t = sort(g); r = t; q = t - mean(t)",
        "u = cumsum(g, dim=1) > 3; v = g * u; r = v * (sum(abs(g)) / sum(abs(v)))",
        "o = argsort(argsort(abs(w), dim=-1), dim=-1); u = cast(o, bf16) / 1024; v = w * (uniform(w, seed=1) < u); \
         r = v * (sum(abs(w)) / sum(abs(v)))",
        "t = cast(cumsum(w, dim=-1), f32); r = cumsum(w, dim=-1) - mean(t); q = cumsum(w, dim=-1) / amax(t)",
        // What depends on small operands only is any op.
        "r = g + cumsum(l) * std(l); q = sum(g * sort(l))",
    ] {
        for memory in ["1MiB", "3MB"] {
            assert_parts_are_whole(&dir, expression, memory);
        }
    }
}

#[test]
fn generators_count_from_the_whole() {
    let dir = Dir::new("generated");
    arrays(&dir);
    for expression in [
        "r = x * bernoulli(x, p=0.5, seed=3); q = sum(uniform(x, seed=5))",
        "r = x + normal(x, seed=7); q = x + cast(randint(x, low=-5, high=9, seed=1), f32)",
        "r = m + index(m, dim=0); q = m * index(m, dim=1); p = index(m) + m",
        "r = m + arange_like(m, start=3, step=0.5); q = m * linspace(m, start=0, end=1, dim=0)",
        "r = d + index(d, dim=0) * 1000 + index(d, dim=1); q = uniform(d, seed=2) + d; z = sum(d * normal(d, seed=4))",
        "r = m + normal(c, seed=3); q = b * uniform(b, seed=1) + m",
    ] {
        assert_parts_are_whole(&dir, expression, "1MiB");
    }
}

#[test]
fn what_needs_whole_tensors_is_refused_with_its_size() {
    let dir = Dir::new("refused-parts");
    arrays(&dir);
    for (expression, why) in [
        ("cumsum(x)", "`cumsum` needs the whole tensor"),
        ("var(x)", "`var` needs the whole tensor"),
        ("sort(x) * 2", "`sort` needs the whole tensor"),
        ("sum(d, dims=[0, 2])", "`sum` combines some of the first dims, but not all"),
    ] {
        let out = eval(&dir, expression, "1MiB", "no.npy");
        assert_eq!(out.code, Some(1), "{expression}: {}", out.stderr);
        let said =
            out.stderr.contains(why) && out.stderr.contains("needs ") && out.stderr.contains("--memory 1.00 MiB");
        assert!(said, "{expression}: {}", out.stderr);
        assert!(!dir.0.join("no.npy").exists());
        let out = eval(&dir, expression, "100MB", "yes.npy");
        assert_eq!(out.code, Some(0), "{expression}: {}", out.stderr);
    }
    let out = eval(&dir, "r = x * 2", "1MiB", "no.npz");
    assert!(out.stderr.contains("only .npy and .safetensors files are written in parts"), "{}", out.stderr);
}

/// An array of u8 zeros, as a sparse file.
fn sparse(dir: &Dir, name: &str, bytes: u64) {
    let path = dir.0.join(name);
    let dict = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({bytes},), }}");
    let length = (dict.len() + 11).next_multiple_of(64) - 10;
    let header = format!("{dict:<width$}\n", width = length - 1);
    std::fs::write(&path, [b"\x93NUMPY\x01\0", &(length as u16).to_le_bytes()[..], header.as_bytes()].concat())
        .unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(10 + header.len() as u64 + bytes).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn an_array_larger_than_the_address_space_is_computed() {
    let dir = Dir::new("space");
    // As much by default as takes no time; `.ci/streams` has 1.6 GB.
    let size = std::env::var("CASTWISE_STREAM_BYTES").ok().and_then(|n| n.parse().ok()).unwrap_or(600_000_000u64);
    sparse(&dir, "x.npy", size);
    let run = |expression: &str, output: &str| {
        let script = "ulimit -v 500000; exec \"$0\" eval \"$1\" -i x=x.npy -o \"$2\" -q";
        let out = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_castwise"), expression, output])
            .current_dir(&dir.0)
            .output()
            .unwrap();
        assert!(out.status.success(), "{expression}: {}", String::from_utf8_lossy(&out.stderr));
    };
    run("r = sum(x + 1); m = amax(x)", "sum.safetensors");
    run("x*2 + 1", "y.npy");
    let mut y = castwise::io::Npy::open(dir.0.join("y.npy")).unwrap();
    assert_eq!(y.info(), (DType::U8, &[size as usize][..]));
    let mut last = Tensor::zeros(DType::U8, [1000]).unwrap();
    y.load_part(size as usize - 1000, &mut last).unwrap();
    assert_eq!(last.to_vec::<u8>().unwrap(), [1; 1000]);
    let sum = castwise::io::SafeTensors::open(dir.0.join("sum.safetensors")).unwrap().load("r").unwrap();
    assert_eq!(sum.item::<i64>().unwrap(), size as i64);
}
#[test]
#[cfg(unix)]
fn a_stream_that_is_killed_leaves_no_output() {
    let dir = Dir::new("stream-kill");
    sparse(&dir, "x.npy", 1 << 36);
    let header = format!(r#"{{"w":{{"dtype":"U8","shape":[{n}],"data_offsets":[0,{n}]}}}}"#, n = 1u64 << 36);
    dir.file("w.safetensors", &[&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat());
    let file = std::fs::File::options().write(true).open(dir.0.join("w.safetensors")).unwrap();
    file.set_len(8 + header.len() as u64 + (1 << 36)).unwrap();
    let outputs = [("x.npy", "y.npy"), ("w.safetensors", "y.safetensors"), ("w.safetensors", "y/")];
    for (signal, (input, output)) in ["-INT", "-TERM", "-KILL"].iter().flat_map(|s| outputs.map(|o| (*s, o))) {
        let child = start(&dir, DEFAULT_SIGNALS, &["eval", "x ^ 1", "-i", &format!("x={input}"), "-o", output, "-q"]);
        std::thread::sleep(Duration::from_millis(20));
        signals::signal(&child, signal);
        assert!(!ended(child).success());
        assert!(!dir.0.join(output).exists(), "{signal} {output}");
        // Nothing can remove its file after it was killed by -KILL.
        let left: Vec<String> = dir.names().into_iter().filter(|n| n.ends_with(".tmp")).collect();
        assert!(signal == "-KILL" || left.is_empty(), "{signal}: {left:?}");
        for path in left.iter().map(|n| dir.0.join(n)) {
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
        }
    }
}

#[test]
#[cfg(unix)]
fn a_stream_on_a_full_disk_leaves_no_output() {
    let dir = Dir::new("stream-full");
    sparse(&dir, "x.npy", 64 << 20);
    let list = [("w".to_string(), DType::U8, vec![64 << 20])];
    let mut w = castwise::io::SafeTensorsWriter::create(
        dir.0.join("w.safetensors"),
        &list,
        &Default::default(),
        Existing::Keep,
    )
    .unwrap();
    for _ in 0..64 {
        w.write_part("w", &[64 << 20], &Tensor::zeros(DType::U8, [1 << 20]).unwrap()).unwrap();
    }
    w.finish().unwrap();
    for (input, output) in [("x.npy", "y.npy"), ("w.safetensors", "y.safetensors"), ("w.safetensors", "y/")] {
        let before = dir.names();
        // 20 MB or 10 MB, as shells count blocks.
        let script = "trap '' XFSZ; ulimit -f 20000; exec \"$0\" eval 'x ^ 1' -i \"$1\" -o \"$2\"";
        let out = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_castwise"), &format!("x={input}"), output])
            .current_dir(&dir.0)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{output}: {text}");
        assert!(text.contains("y") && text.contains("File too large"), "{text}");
        assert_eq!(dir.names(), before, "{output}");
    }
}

#[test]
fn a_file_that_ends_early_is_an_error_and_bools_are_checked_by_their_place() {
    let dir = Dir::new("stream-bool");
    let mut out = NpyWriter::create(dir.0.join("b.npy"), DType::Bool, &[6 << 20], Existing::Keep).unwrap();
    out.write_part(&Tensor::zeros(DType::Bool, [6 << 20]).unwrap()).unwrap();
    out.finish().unwrap();
    let path = dir.0.join("b.npy");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() - (6 << 20) + 5_000_000;
    bytes[at] = 7;
    std::fs::write(&path, &bytes).unwrap();
    let out = dir.eval(&["logical_not(b)", "-i", "b=b.npy", "-o", "n.npy", "--memory", "1MiB"]);
    assert_eq!(out.code, Some(1));
    assert!(out.stderr.contains("element 5000000 of the array is the bool byte 7"), "{}", out.stderr);
    assert_eq!(dir.names(), ["b.npy"]);
}

#[test]
fn an_array_from_standard_input_is_a_stream_too() {
    let dir = Dir::new("stream-stdin");
    let t = normal(1, DType::F32, &[700_000]);
    let mut bytes = Vec::new();
    castwise::io::write_npy_to(&mut bytes, "memory", &t).unwrap();
    dir.file("x.npy", &bytes);
    let script = "\"$0\" eval 'x * 2' -i x=- -o y.npy --memory 1MiB -q < x.npy";
    let out =
        Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_castwise")]).current_dir(&dir.0).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let twice = (Eager::new(Rules::Torch).tensor(&t) * 2).result().unwrap();
    assert_eq!(read_npy(dir.0.join("y.npy")).unwrap().as_bytes(), twice.as_bytes());
}

/// Runs the command in an address space of 500 MB.
#[cfg(target_os = "linux")]
fn in_little_space(dir: &Dir, arguments: &[&str]) -> (Option<i32>, String) {
    let script = "ulimit -v 500000; exec \"$0\" \"$@\"";
    let out = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_castwise")])
        .args(arguments)
        .current_dir(&dir.0)
        .output()
        .unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr))
}

#[test]
#[cfg(target_os = "linux")]
fn stats_diff_and_run_read_arrays_larger_than_the_address_space() {
    let dir = Dir::new("space-measured");
    let size = 600_000_000u64;
    sparse(&dir, "x.npy", size);
    sparse(&dir, "y.npy", size);
    sparse(&dir, "z.npy", size);
    // Some elements that are not 0, in one array.
    let last = std::fs::metadata(dir.0.join("z.npy")).unwrap().len() - 3;
    let file = std::fs::File::options().write(true).open(dir.0.join("z.npy")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[9, 9, 9], last).unwrap();
    let (code, text) = in_little_space(&dir, &["stats", "z.npy", "--json"]);
    assert_eq!(code, Some(0), "{text}");
    let stats: serde_json::Value = serde_json::from_str(&text).unwrap();
    let t = &stats["tensors"][0];
    assert_eq!((&t["max"], &t["zeros"], &t["elements"]), (&9.into(), &(size - 3).into(), &size.into()));
    let (code, text) = in_little_space(&dir, &["diff", "x.npy", "y.npy"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = in_little_space(&dir, &["diff", "x.npy", "z.npy", "--json"]);
    assert_eq!(code, Some(1), "{text}");
    let diff: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&diff["tensors"][0]["differ"], &diff["tensors"][0]["max_error"]), (&3.into(), &9.0.into()));
    dir.file("p.cw", b"castwise 1\nprogram(rules = torch) (%x: u8[n]) {\n  %0 = mul %x, ~2\n  %1 = sum %x\n  fetch %0 as \"twice\", %1 as \"sum\"\n}\n");
    let (code, text) = in_little_space(&dir, &["run", "p.cw", "-i", "x=z.npy", "-o", "r.safetensors", "-q"]);
    assert_eq!(code, Some(0), "{text}");
    let mut r = castwise::io::SafeTensors::open(dir.0.join("r.safetensors")).unwrap();
    assert_eq!(r.load("sum").unwrap().item::<i64>().unwrap(), 27);
    let mut end = Tensor::zeros(DType::U8, [4]).unwrap();
    r.load_part("twice", size as usize - 4, &mut end).unwrap();
    assert_eq!(end.to_vec::<u8>().unwrap(), [0, 18, 18, 18]);
}

/// `stats`, `diff` and `run` print and write the same whether they read parts or wholes.
#[test]
fn parts_are_measured_as_wholes_are() {
    let dir = Dir::new("measured-parts");
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40, f32::MAX];
    let mut values = normal(1, DType::F32, &[900_001]).to_vec::<f32>().unwrap();
    special.iter().enumerate().for_each(|(i, v)| values[i * 150_000] = *v);
    let x = Tensor::from_slice(&values, [900_001]).unwrap();
    let other = (Eager::new(Rules::Torch).tensor(&x) * 1.0001).result().unwrap();
    let tensors = |x: Tensor| {
        let cast = |d| Eager::new(Rules::Torch).tensor(&x).cast(d).result().unwrap();
        let ids = normal(4, DType::I64, &[1000, 300]);
        [
            ("x", x.clone()),
            ("h", cast(DType::BF16)),
            ("f", cast(DType::F16)),
            ("i", ids),
            ("e", Tensor::zeros(DType::F32, [0, 3]).unwrap()),
            ("b", cast(DType::F8E4M3FN)),
        ]
    };
    dir.checkpoint("a.safetensors", &tensors(x));
    dir.checkpoint("b.safetensors", &tensors(other));
    dir.file("p.cw", b"castwise 1\nprogram(rules = torch) (%x: f32[n], %h: bf16[n]) {\n  %0 = mul %x, ~2\n  %1 = add %0, %h\n  %2 = amax %1\n  fetch %1 as \"y\", %2 as \"top\"\n}\n");
    for command in [
        &["stats", "a.safetensors", "--json", "--target", "f16"][..],
        &["stats", "a.safetensors", "--html", "s.html", "--force"],
        &["diff", "a.safetensors", "b.safetensors", "--json", "--rtol", "1e-3"],
        &["diff", "a.safetensors", "b.safetensors", "--ulps", "4", "--all"],
        &["diff", "a.safetensors", "a.safetensors", "--all"],
        &["run", "p.cw", "-i", "a.safetensors", "-o", "r.safetensors", "-f", "-q"],
    ] {
        let run = |memory: &[&str]| {
            let out = dir.castwise(&[command, memory].concat());
            let file = |name: &str| std::fs::read(dir.0.join(name)).unwrap_or_default();
            (out.code, out.stdout, out.stderr, file("s.html"), file("r.safetensors"))
        };
        let whole = run(&[]);
        assert!(whole.0 == Some(0) || command[0] == "diff" && whole.0 == Some(1), "{command:?}: {}", whole.2);
        assert!(run(&["--memory", "1MiB"]) == whole, "{command:?}: {}", run(&["--memory", "1MiB"]).1);
    }
    // What is read as a whole is refused if it is too large for the memory that is given.
    let archive = dir.castwise(&["eval", "x", "-i", "x=a.safetensors", "--select", "x", "-o", "a.npz", "-q"]);
    assert_eq!(archive.code, Some(0), "{}", archive.stderr);
    let refused = dir.castwise(&["stats", "a.npz", "--memory", "1MiB"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("more than --memory 1.00 MiB, and is not read in parts"), "{}", refused.stderr);
    assert_eq!(dir.castwise(&["stats", "a.npz"]).code, Some(0));
}

/// `run` counts its results as `eval` does: two small operands can make a large one.
#[test]
fn results_beyond_the_memory_are_refused_or_written_in_parts() {
    let dir = Dir::new("large-results");
    dir.npy("x.npy", &normal(1, DType::F32, &[3000, 1]));
    dir.npy("y.npy", &normal(2, DType::F32, &[1, 2000]));
    dir.file(
        "p.cw",
        b"castwise 1\nprogram(rules = torch) (%x: f32[n, 1], %y: f32[1, m]) {\n  %0 = add %x, %y\n  fetch %0 as \"r\"\n}\n",
    );
    let run = |memory: &[&str], output: &str| {
        let command = ["run", "p.cw", "-i", "x=x.npy", "-i", "y=y.npy", "-q", "-f", "-o", output];
        dir.castwise(&[&command[..], memory].concat())
    };
    let small = ["--memory", "1MiB"];
    for refused in [
        run(&small, "r.npz"),
        dir.eval(&["x + y", "-i", "x=x.npy", "-i", "y=y.npy", "--memory", "1MiB", "-o", "r.npz", "-q"]),
    ] {
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        let why = "only .npy and .safetensors files are written in parts";
        assert!(refused.stderr.contains("22.9") && refused.stderr.contains(why), "{}", refused.stderr);
    }
    assert!(!dir.0.join("r.npz").exists());
    let read = |name: &str| std::fs::read(dir.0.join(name)).unwrap();
    assert_eq!((run(&small, "parts.npy").code, run(&[], "whole.npy").code), (Some(0), Some(0)));
    assert!(read("parts.npy") == read("whole.npy"));
}
