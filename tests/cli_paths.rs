//! File names that are not UTF-8, for each argument of the command that takes one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use castwise::io::{Npz, SafeTensors, ShardedSafeTensors, read_npy};
use castwise::{Tensor, io};

use crate::command::{Dir, Outcome, half_tensor, os};

/// A file name in Latin-1.
fn latin(end: &str) -> OsString {
    OsStr::from_bytes(b"caf\xe9").to_os_string().tap(end)
}

trait Tap {
    fn tap(self, more: impl AsRef<OsStr>) -> Self;
}

impl Tap for OsString {
    fn tap(mut self, more: impl AsRef<OsStr>) -> OsString {
        self.push(more);
        self
    }
}

/// `NAME=FILE`
fn of(name: &str, file: &OsStr) -> OsString {
    OsString::from(name).tap("=").tap(file)
}

fn run(dir: &Dir, arguments: Vec<OsString>) -> Outcome {
    dir.bounded(&arguments, Stdio::null(), None)
}

fn bytes(dir: &Dir) -> Vec<u8> {
    std::fs::read(dir.0.join(latin(".cw"))).unwrap()
}

#[test]
fn inputs_outputs_and_parameters() {
    let dir = Dir::new("latin");
    let x = Tensor::from_slice(&[1.5f32, -2.0], [2]).unwrap();
    io::write_npy(dir.0.join(latin(".npy")), &x, io::Existing::Keep).unwrap();
    let weights = OsStr::from_bytes(b"w\xff=\xfe.json");
    std::fs::write(dir.0.join(weights), r#"{"result": 3}"#).unwrap();
    let from = [os(&["eval", "w*x", "-i"]), vec![of("x", &latin(".npy")), "-p".into(), of("w", weights), "-o".into()]];
    let from = from.concat();
    for end in [".NPY", ".npz", ".safetensors"] {
        let name = OsString::from("out-").tap(latin(end));
        let out = run(&dir, [from.clone(), vec![name.clone()]].concat()).ok();
        assert!(out.stderr.contains("1 tensor: "), "{}", out.stderr);
        let path = dir.0.join(&name);
        let got = match end {
            ".NPY" => read_npy(path),
            ".npz" => Npz::open(path).unwrap().load("result"),
            _ => SafeTensors::open(path).unwrap().load("result"),
        };
        assert_eq!(got.unwrap().to_vec::<f32>().unwrap(), [4.5, -6.0]);
        // The output can be read back.
        run(&dir, [os(&["explain", "a", "--numeric", "-i"]), vec![of("a", &name)]].concat()).ok();
    }
    // The output exists; it is an input; it is the parameter file.
    let out = run(&dir, [from.clone(), vec![OsString::from("out-").tap(latin(".npz"))]].concat());
    assert!(out.code == Some(1) && out.stderr.contains("caf\u{fffd}.npz: the output exists"), "{}", out.stderr);
    let out = run(&dir, [from.clone(), vec![latin(".npy"), "-f".into()]].concat());
    assert!(out.code == Some(1) && out.stderr.contains("also an input"), "{}", out.stderr);
    // A file that does not exist, and one with an unknown format.
    for (end, code) in [(".npz", 1), (".txt", 2)] {
        let out = run(&dir, [os(&["eval", "x", "-o", "y.npy", "-i"]), vec![of("x", &latin(end))]].concat());
        assert!(out.code == Some(code) && out.stderr.contains(&format!("caf\u{fffd}{end}")), "{}", out.stderr);
    }
    let out = run(&dir, [os(&["eval", "x", "-o", "y.npy", "-i"]), vec![latin("=x.npy")]].concat());
    assert!(out.code == Some(2) && out.stderr.contains("expected NAME=FILE"), "{}", out.stderr);
}

#[test]
fn shards_lie_in_directories_of_any_name() {
    let dir = Dir::new("latin-shards");
    dir.checkpoint("a.safetensors", &[("x", half_tensor(1, &[4])), ("y", half_tensor(2, &[4]))]);
    std::fs::create_dir(dir.0.join(latin(""))).unwrap();
    let index = latin("/m.safetensors.index.json");
    let split = ["--max-shard-size", "8B"];
    let eval = |input: OsString, output: &OsStr| {
        let arguments = vec!["eval".into(), "a + 1".into(), "-i".into(), input, "-o".into(), output.into()];
        run(&dir, [arguments, os(&split)].concat())
    };
    eval("a=a.safetensors".into(), &index).ok();
    assert_eq!(ShardedSafeTensors::open(dir.0.join(&index)).unwrap().files().count(), 2);
    eval(of("a", &index), OsStr::new("again.safetensors")).ok();
    // The index is JSON with the names of the shards, so they must be UTF-8.
    let out = eval("a=a.safetensors".into(), &latin(".index.json"));
    assert!(out.code == Some(1) && out.stderr.contains("must be UTF-8"), "{}", out.stderr);
}

#[test]
fn programs() {
    let dir = Dir::new("latin-programs");
    dir.npy("x.npy", &Tensor::from_slice(&[1.5f32, -2.0], [2]).unwrap());
    let text = b"castwise 1 program(rules = torch) (%x: f32[?]) { %0 = neg %x\n fetch %0 }";
    std::fs::write(dir.0.join(latin(".cw")), text).unwrap();
    let with =
        |before: &[&str], after: &[OsString]| run(&dir, [os(before), vec![latin(".cw")], after.to_vec()].concat());
    let out = with(&["fmt", "--check"], &[]);
    assert!(out.code == Some(1) && out.stderr.contains("caf\u{fffd}.cw: the text is not canonical"), "{}", out.stderr);
    let canonical = with(&["fmt"], &[]).ok().stdout;
    with(&["fmt", "--write"], &[]).ok();
    assert_eq!(bytes(&dir), canonical.as_bytes());
    assert!(with(&["explain"], &[]).ok().stdout.contains("result f32[?0]"));
    assert!(with(&["dump", "--stage", "program"], &[]).ok().stdout.contains("neg %x"));
    let feed = os(&["-i", "x=x.npy", "-o"]);
    with(&["run"], &[&feed[..], &[latin(".npy")]].concat()).ok();
    assert_eq!(read_npy(dir.0.join(latin(".npy"))).unwrap().to_vec::<f32>().unwrap(), [-1.5, 2.0]);
    // An archive that is given without the name of a placeholder.
    let feeds = vec!["-i".into(), of("x", &latin(".npy")), "-o".into(), latin(".npz")];
    with(&["run"], &feeds).ok();
    let out = with(&["run"], &[os(&["-o", "y.npy", "-i"]), vec![latin(".npz")]].concat());
    assert!(out.code == Some(2) && out.stderr.contains("the placeholder `x` has no tensor"), "{}", out.stderr);
    // An expression must be UTF-8.
    let out = run(&dir, vec!["explain".into(), latin(""), "-i".into(), "x=f32".into()]);
    assert!(out.code == Some(2) && out.stderr.contains("the expression is not UTF-8"), "{}", out.stderr);
}
