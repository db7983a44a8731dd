//! The tensors that `eval` and `run` use: members of files, names that inputs lack, patterns.

use castwise::io::{Compression, Existing, NpzWriter, SafeTensors, ShardedWriter, read_npy};
use castwise::{DType, Rules, Tensor};

use crate::command::{Dir, eager, half_tensor};

fn bands() -> [(&'static str, Tensor); 3] {
    [("B08", half_tensor(1, &[3, 4])), ("B04", half_tensor(2, &[3, 4])), ("a:b", half_tensor(3, &[3, 4]))]
}

/// The same bands as an archive (which can't have a name with a colon), a checkpoint, and a sharded checkpoint.
fn scenes(dir: &Dir) {
    let all = bands();
    let list: Vec<_> = all.iter().map(|(n, t)| (n.to_string(), t.dtype(), t.shape().to_vec())).collect();
    let index = dir.0.join("scene.index.json");
    let mut npz = NpzWriter::create(dir.0.join("scene.npz"), &list[..2], Compression::Stored, Existing::Keep).unwrap();
    let mut shards = ShardedWriter::create(index, &list, &Default::default(), 30, Existing::Keep).unwrap();
    for (name, t) in &all {
        if !name.contains(':') {
            npz.write(name, t).unwrap();
        }
        shards.write(name, t).unwrap();
    }
    npz.finish().unwrap();
    shards.finish().unwrap();
    dir.checkpoint("scene.safetensors", &all);
}

fn names(dir: &Dir, file: &str) -> Vec<String> {
    let mut names: Vec<_> = SafeTensors::open(dir.0.join(file)).unwrap().names().map(str::to_string).collect();
    names.sort();
    names
}

#[test]
fn one_tensor_of_a_file_is_an_input_of_its_own() {
    let dir = Dir::new("members");
    scenes(&dir);
    let [(_, nir), (_, red), (_, other)] = &bands();
    let expected = eager(Rules::Torch, "B08 - B04", &[("B08", nir), ("B04", red)]);
    for file in ["scene.npz", "scene.safetensors", "scene.index.json", "./scene.npz"] {
        let inputs = [format!("B08={file}:B08"), format!("B04={file}:B04")];
        let arguments = ["B08 - B04", "-i", &inputs[0], "-i", &inputs[1], "-o", "o.npy", "--force", "--rules", "torch"];
        let out = dir.eval(&arguments).ok();
        assert!(out.stderr.starts_with("1 tensor: 48 B read"), "{file}: {}", out.stderr);
        let got = read_npy(dir.0.join("o.npy")).unwrap();
        assert_eq!((got.shape(), got.as_bytes()), (expected.shape(), expected.as_bytes()), "{file}");
    }
    // The member is used for each name of the other inputs, and is read once.
    let files = ["-i", "x=scene.npz", "-i", "m=scene.safetensors:a:b", "-o", "o.safetensors", "--rules", "torch"];
    let out = dir.eval(&[&["x * m"], &files[..]].concat()).ok();
    assert!(out.stderr.contains("72 B read"), "{}", out.stderr);
    let got = SafeTensors::open(dir.0.join("o.safetensors")).unwrap().load("B04").unwrap();
    assert_eq!(got.as_bytes(), eager(Rules::Torch, "x * m", &[("x", red), ("m", other)]).as_bytes());
    // An existing file takes precedence over a member.
    std::fs::create_dir(dir.0.join("scene.npz:d")).unwrap();
    for name in ["scene.npz:B08.npy", "scene.npz:d/x.npy"] {
        dir.npy(name, &Tensor::from([5.0f32]));
        dir.eval(&["x", "-i", &format!("x={name}"), "-o", "x.npy", "--force"]).ok();
        assert_eq!(read_npy(dir.0.join("x.npy")).unwrap().to_vec::<f32>().unwrap(), [5.0]);
    }
}

#[test]
fn a_member_that_is_not_there_is_told_with_those_that_are() {
    let dir = Dir::new("no-members");
    scenes(&dir);
    dir.npy("x.npy", &Tensor::from([1.0f32]));
    let run = |input: &str| dir.eval(&["x * 2", "-i", input, "-o", "o.npy"]);
    for (input, code, told) in [
        ("x=scene.npz:B8A", 1, "error: scene.npz: there is no tensor `B8A`; there are `B08`, `B04`"),
        ("x=scene.npz:", 1, "error: scene.npz: there is no tensor ``; there are"),
        ("x=gone.npz:B08", 1, "error: gone.npz: No such file"),
        ("x=x.npy:B08", 2, "error: x.npy is one array without a name: `:B08` is valid after .npz"),
        (r"x=C:\gone.npy", 1, r"error: C:\gone.npy: No such file"),
        (r"x=C:\gone.npz:B08", 1, r"error: C:\gone.npz: No such file"),
        ("x=x.npy:B08.txt:y", 2, "error: x.npy is one array"),
        ("x=gone:x.txt", 2, "error: gone:x.txt: the extension is not"),
    ] {
        let out = run(input);
        assert_eq!(out.code, Some(code), "{input}: {}", out.stderr);
        assert!(out.stderr.contains(told), "{input}: {}", out.stderr);
    }
    let stderr = dir.refused(&["x * 2", "-i", "x=scene.safetensors:B08", "-o", "scene.safetensors", "--force"]);
    assert!(stderr.contains("scene.safetensors: the output is also an input"), "{stderr}");
}

#[test]
fn an_input_that_is_called_as_a_member_of_its_file_is_told_of() {
    let dir = Dir::new("member-hints");
    scenes(&dir);
    let both = ["-i", "B08=scene.npz", "-i", "B04=scene.npz", "-o", "o.safetensors"];
    let out = dir.eval(&[&["B08 - B04"], &both[..]].concat()).ok();
    for band in ["B08", "B04"] {
        let told = format!(
            "warning: the input `{band}` is every tensor of scene.npz in turn; to use only its tensor `{band}`"
        );
        assert!(out.stderr.contains(&told), "{}", out.stderr);
        assert!(out.stderr.contains(&format!("write `-i {band}=scene.npz:{band}`")), "{}", out.stderr);
    }
    let out = dir.castwise(&["explain", "B08 - x", "-i", "B08=scene.npz", "-i", "x=scene.npz:B08"]).ok();
    assert_eq!(out.stderr.matches("to use only its tensor").count(), 1, "{}", out.stderr);
    // Files with one tensor each, with different names.
    for (name, t) in &bands() {
        dir.checkpoint(&format!("{}.safetensors", name.replace(':', "")), &[(name, t.clone())]);
    }
    let files = ["-i", "B08=B08.safetensors", "-i", "B04=B04.safetensors", "-o", "p.safetensors"];
    let stderr = dir.refused(&[&["B08 - B04"], &files[..]].concat());
    assert!(stderr.contains("no tensor name that all inputs have"), "{stderr}");
    assert!(stderr.contains("write `-i B08=B08.safetensors:B08`"), "{stderr}");
}

#[test]
fn programs_as_text_take_members_too() {
    let dir = Dir::new("run-members");
    scenes(&dir);
    dir.file("p.cw", b"castwise 1\nprogram(rules = torch) (%x: f16[3, 4]) {\n  %0 = neg %x\n  fetch %0\n}\n");
    dir.castwise(&["run", "p.cw", "-i", "x=scene.npz:B04", "-o", "o.npy"]).ok();
    let red = &bands()[1].1;
    assert_eq!(read_npy(dir.0.join("o.npy")).unwrap().as_bytes(), eager(Rules::Torch, "-x", &[("x", red)]).as_bytes());
    let out = dir.castwise(&["run", "p.cw", "-i", "scene.npz:B04", "-o", "p.npy"]);
    assert!(
        out.code == Some(2) && out.stderr.contains("the name of its placeholder: -i NAME=scene.npz:B04"),
        "{}",
        out.stderr
    );
}

/// Two checkpoints that share one of four names.
fn partly(dir: &Dir) -> [Tensor; 4] {
    let all = [1, 2, 3, 4].map(|i| half_tensor(i, &[2]));
    let [x, a, b, c] = all.clone();
    dir.checkpoint("a.safetensors", &[("x", x.clone()), ("only.a", a)]);
    dir.checkpoint("b.safetensors", &[("x", x), ("only.b\u{1b}[2J", b), ("y", c)]);
    all
}

const FILES: [&str; 6] = ["-i", "a=a.safetensors", "-i", "b=b.safetensors", "-o", "c.safetensors"];

#[test]
fn names_that_an_input_lacks_are_an_error_unless_something_else_is_asked_for() {
    let dir = Dir::new("missing");
    let [x, only_a, _, y] = partly(&dir);
    for command in [&["a + b"][..], &["a + b", "--missing", "error"], &["a + b", "--dry-run"]] {
        let stderr = dir.refused(&[command, &FILES[..]].concat());
        for part in [
            "error: `a` (a.safetensors) lacks 2 tensors that others have: `only.b",
            "`y`",
            "error: `b` (b.safetensors) lacks a tensor that others have: `only.a`",
            "--missing skip leaves them out; --missing copy",
        ] {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
        assert!(!stderr.contains('\u{1b}'), "{stderr}");
    }
    let out = dir.eval(&[&["a + b", "--missing", "skip"], &FILES[..]].concat()).ok();
    assert!(out.stderr.contains("warning: `a` (a.safetensors) lacks 2 tensors that others have, left out: `only.b"));
    assert_eq!(names(&dir, "c.safetensors"), ["x"]);

    let out = dir.eval(&[&["a + b", "--missing", "copy", "--force", "--out-dtype", "f32"], &FILES[..]].concat()).ok();
    assert!(out.stderr.contains("note: `b` (b.safetensors) lacks a tensor that others have, copied: `only.a`"));
    assert_eq!(names(&dir, "c.safetensors"), ["only.a", "only.b\u{1b}[2J", "x", "y"]);
    let mut file = SafeTensors::open(dir.0.join("c.safetensors")).unwrap();
    for (name, text, t) in
        [("x", "cast(t + t, f32)", &x), ("only.a", "cast(t, f32)", &only_a), ("y", "cast(t, f32)", &y)]
    {
        assert_eq!(file.load(name).unwrap().as_bytes(), eager(Rules::Torch, text, &[("t", t)]).as_bytes(), "{name}");
    }
}

#[test]
fn missing_tensors_are_copied_from_the_input_that_is_named() {
    let dir = Dir::new("missing-copy");
    let [_, a, _, _] = partly(&dir);
    let run = |missing: &str, more: &[&str]| {
        dir.eval(&[&["a + b", "--missing", missing, "--force"], &FILES[..], more].concat())
    };
    let out = run("copy=a", &[]);
    assert!(out.code == Some(1) && out.stderr.contains("`a` lacks the tensor `only.b"), "{}", out.stderr);
    run("copy=a", &["--select", "x|only.a"]).ok();
    assert_eq!(names(&dir, "c.safetensors"), ["only.a", "x"]);
    // Only tensors that an input lacks are selected; but if no name is in all inputs, a prefix is likely missing.
    run("copy", &["--select", "only.a"]).ok();
    assert_eq!(names(&dir, "c.safetensors"), ["only.a"]);
    let out = run("copy", &["--rename", "b:^=model."]);
    let told = "error: there is no tensor name that all inputs have";
    assert!(out.code == Some(1) && out.stderr.contains(told), "{}", out.stderr);
    // An input that no expression uses, with a name that is not valid in one.
    let other = half_tensor(9, &[2]);
    dir.checkpoint("d.safetensors", &[("only.a", other.clone()), ("y", other.clone()), ("x", a)]);
    let out = run("copy=d-1", &["-i", "d-1=d.safetensors", "--skip", "only.b"]).ok();
    assert!(!out.stderr.contains("does not use the input `d-1`"), "{}", out.stderr);
    let mut file = SafeTensors::open(dir.0.join("c.safetensors")).unwrap();
    assert_eq!(file.load("only.a").unwrap().as_bytes(), other.as_bytes());

    dir.npy("n.npy", &other);
    for (missing, more, told) in [
        ("copy=z", &[][..], "there is no input `z`"),
        ("copy=n", &["-i", "n=n.npy"], "`n` is not a file of several tensors"),
        ("copy=", &[], "expected error, skip, copy or copy=INPUT"),
        ("keep", &[], "expected error, skip, copy or copy=INPUT"),
    ] {
        let out = run(missing, more);
        assert!(out.code == Some(2) && out.stderr.contains(told), "{missing}: {}", out.stderr);
    }
    let out = dir.eval(&["n", "-i", "n=n.npy", "-o", "o.npy", "--missing", "skip"]);
    assert!(out.code == Some(2) && out.stderr.contains("need an input with several tensors"), "{}", out.stderr);
    // A merge without any common name is an error under every value of --missing.
    dir.checkpoint("e.safetensors", &[("z", other)]);
    for missing in ["error", "skip", "copy"] {
        let files = ["-i", "a=a.safetensors", "-i", "b=e.safetensors", "-o", "o.safetensors"];
        let stderr = dir.refused(&[&["a + b", "--missing", missing], &files[..]].concat());
        assert!(stderr.contains("no tensor name that all inputs have"), "{stderr}");
    }
}

#[test]
fn patterns_that_choose_nothing_are_told() {
    let dir = Dir::new("idle-patterns");
    let t = || Tensor::zeros(DType::F32, [2]).unwrap();
    dir.checkpoint("a.safetensors", &[("norm", t()), ("layers.0", t()), ("layers.1", t())]);
    let run =
        |more: &[&str]| dir.eval(&[&["a", "-i", "a=a.safetensors", "-o", "o.safetensors", "--dry-run"], more].concat());
    for (more, told) in [
        (&["--map", "typo=a*2"][..], "warning: --map `typo` matches no tensor's name"),
        (&["--map", "layers=a*2", "--map", "1=a*3"], "warning: --map `1` has no tensor left"),
        (&["--map", "norm=a*2", "--select", "layers"], "warning: --map `norm` has no tensor left"),
        (&["--skip", "typo"], "warning: --skip `typo` matches no tensor's name"),
    ] {
        let out = run(more).ok();
        assert_eq!(out.stderr.matches("warning").count(), 1, "{}", out.stderr);
        assert!(out.stderr.contains(told), "{}", out.stderr);
    }
    let out = run(&["--select", "typo"]);
    assert!(out.code == Some(1) && out.stderr.contains("--select and --skip select no tensor name"), "{}", out.stderr);
    assert!(!run(&["--map", "norm=a*2", "--skip", "0"]).ok().stderr.contains("warning"));
}
