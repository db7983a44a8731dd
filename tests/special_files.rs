//! Special files, for each argument of the command that names a file: the command ends soon, uses bounded memory, names
//! the file in its error, and changes nothing.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use castwise::Tensor;
use castwise::io::read_npy;

use crate::command::{Dir, Outcome};

/// The kind of a special file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Directory,
    Pipe,
    Socket,
    Empty,
    Unreadable,
    /// Links: to endless devices, to nothing, to itself, to a kernel file that can't be read.
    Zero,
    Full,
    Dangling,
    Circle,
    Failing,
}

use Kind::*;

const KINDS: [Kind; 10] = [Directory, Pipe, Socket, Empty, Unreadable, Zero, Full, Dangling, Circle, Failing];

impl Kind {
    /// Creates a file of this kind.
    fn make(self, dir: &Dir, name: &str) {
        let path = dir.0.join(name);
        let _ = std::fs::remove_dir(&path).or_else(|_| std::fs::remove_file(&path));
        match self {
            Directory => std::fs::create_dir(path).unwrap(),
            Pipe => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
            // The name remains when the socket is closed.
            Socket => drop(UnixListener::bind(path).unwrap()),
            Empty => std::fs::write(path, "").unwrap(),
            Unreadable => {
                std::fs::write(&path, "{}").unwrap();
                std::fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
            }
            Zero => symlink("/dev/zero", path).unwrap(),
            Full => symlink("/dev/full", path).unwrap(),
            Dangling => symlink("absent", path).unwrap(),
            Circle => symlink(name, path).unwrap(),
            Failing => symlink("/proc/self/mem", path).unwrap(),
        }
    }

    /// Whether an output may replace it.
    fn can_be_replaced(self) -> bool {
        !matches!(self, Directory | Pipe | Socket)
    }
}

/// A directory with valid files, and the user that runs the command in it, since the superuser can read every file.
struct Place {
    dir: Dir,
    user: Option<u32>,
    kinds: Vec<Kind>,
}

impl Place {
    fn new(name: &str) -> Place {
        // The path of a socket has at most about a hundred bytes.
        let dir = Dir(std::env::temp_dir().join(format!("castwise-{name}-{}", std::process::id())));
        let _ = std::fs::remove_dir_all(&dir.0);
        std::fs::create_dir_all(&dir.0).unwrap();
        std::fs::set_permissions(&dir.0, Permissions::from_mode(0o777)).unwrap();
        dir.npy("good.npy", &Tensor::from_slice(&[1.0f32, 2.0], [2]).unwrap());
        dir.file("good.cw", b"castwise 1\nprogram(rules = torch) (%x: f32[?]) {\n  %0 = neg %x\n  fetch %0\n}\n");
        let mut place = Place { dir, user: None, kinds: KINDS.to_vec() };
        Unreadable.make(&place.dir, "probe");
        if std::fs::read(place.dir.0.join("probe")).is_ok() {
            place.user = Some(65534);
            // That user may not be able to access the program's directory.
            if place.run(&["--version"]).code != Some(0) {
                println!("not tested: the superuser can read every file");
                place.user = None;
                place.kinds.retain(|k| *k != Unreadable);
            }
        }
        std::fs::remove_file(place.dir.0.join("probe")).unwrap();
        if !std::path::Path::new("/proc/self/mem").exists() {
            place.kinds.retain(|k| *k != Failing);
        }
        place
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.dir.bounded(arguments, Stdio::null(), self.user)
    }

    /// Runs a command that must return an error which names the file, and must write nothing.
    fn refuses(&self, kind: Kind, arguments: &[&str], name: &str) -> String {
        let before = self.dir.names();
        let out = self.run(arguments);
        let case = format!("{kind:?} {arguments:?}: {}", out.stderr);
        assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{case}");
        assert!(out.stderr.contains("error: ") && out.stderr.contains(name) && out.stderr.len() < 2000, "{case}");
        assert_eq!(self.dir.names(), before, "{case}");
        out.stderr
    }
}

#[test]
fn inputs() {
    let place = Place::new("inputs");
    for kind in place.kinds.clone() {
        for end in ["npy", "npz", "safetensors", "index.json"] {
            let name = format!("x.{end}");
            kind.make(&place.dir, &name);
            let input = format!("x={name}");
            let output = ["-o", "out.npz"];
            for arguments in [
                &["eval", "x", "-i", &input, output[0], output[1]][..],
                &["eval", "x", "-i", &input, output[0], output[1], "--dry-run"],
                &["run", "good.cw", "-i", &input, output[0], output[1]],
                &["explain", "x", "-i", &input],
                &["explain", "x", "-i", &input, "--numeric"],
                &["dump", "x", "-i", &input, "--stage", "typed"],
            ] {
                place.refuses(kind, arguments, &name);
            }
            if end != "npy" {
                place.refuses(kind, &["run", "good.cw", "-i", &name, output[0], output[1]], &name);
            }
        }
        // The special file is a shard that an index names.
        kind.make(&place.dir, "x.safetensors");
        place.dir.file("of.index.json", br#"{"weight_map": {"x": "x.safetensors"}}"#);
        place.refuses(kind, &["eval", "x", "-i", "x=of.index.json", "-o", "out.npz"], "x.safetensors");
    }
}

#[test]
fn parameters() {
    let place = Place::new("parameters");
    for kind in place.kinds.clone() {
        for name in ["w.json", "w"] {
            kind.make(&place.dir, name);
            let parameter = format!("w={name}");
            let of = ["x * w", "-i", "x=good.npy", "-p", &parameter];
            for (command, rest) in [
                ("eval", &["-o", "out.npy"][..]),
                ("eval", &["-o", "out.npy", "--dry-run"]),
                ("explain", &[]),
                ("dump", &["--stage", "typed"]),
            ] {
                place.refuses(kind, &[&[command], &of[..], rest].concat(), name);
            }
        }
    }
    for device in ["/dev/zero", "/dev/full"] {
        let parameter = format!("w={device}");
        let of = ["eval", "x * w", "-i", "x=good.npy", "-o", "out.npy", "-p", &parameter];
        assert!(place.refuses(Zero, &of, device).contains("not a regular file"));
    }
}

#[test]
fn programs() {
    let place = Place::new("programs");
    for kind in place.kinds.clone() {
        kind.make(&place.dir, "p.cw");
        for arguments in [
            &["run", "p.cw", "-i", "x=good.npy", "-o", "out.npy"][..],
            &["fmt", "p.cw"],
            &["fmt", "p.cw", "--check"],
            &["fmt", "p.cw", "--write"],
            &["explain", "p.cw"],
            &["dump", "p.cw", "--stage", "program"],
        ] {
            place.refuses(kind, arguments, "p.cw");
        }
    }
}

#[test]
fn outputs() {
    let place = Place::new("outputs");
    let commands = [&["eval", "x", "-i", "x=good.npy"][..], &["run", "good.cw", "-i", "x=good.npy"]];
    for kind in place.kinds.clone() {
        for end in ["npy", "npz", "safetensors", "index.json"] {
            let name = format!("out.{end}");
            for command in commands {
                kind.make(&place.dir, &name);
                let arguments = [command, &["-o", &name]].concat();
                place.refuses(kind, &arguments, &name);
                let force = [&arguments[..], &["--force"]].concat();
                if kind.can_be_replaced() {
                    assert_eq!(place.run(&force).code, Some(0), "{kind:?} {force:?}");
                    let made = place.dir.0.join(&name);
                    assert!(made.symlink_metadata().unwrap().is_file() && made.metadata().unwrap().len() > 30);
                } else {
                    assert!(place.refuses(kind, &force, &name).contains("is not a regular file"));
                }
            }
            kind.make(&place.dir, &name);
            let dry = [commands[0], &["-o", &name, "--dry-run"]].concat();
            if kind.can_be_replaced() {
                let out = place.run(&dry);
                assert_eq!(out.code, Some(0), "{kind:?} {dry:?}: {}", out.stderr);
                assert!(
                    out.stdout.contains(&name) && out.stdout.contains("only with --force"),
                    "{kind:?}: {}",
                    out.stdout
                );
            } else {
                place.refuses(kind, &dry, &name);
            }
        }
    }
    // Nothing was written through a link, and the input is unchanged.
    assert!(!place.dir.0.join("absent").exists());
    assert_eq!(read_npy(place.dir.0.join("good.npy")).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn standard_input() {
    let place = Place::new("stdin");
    for (file, said) in [("/dev/zero", ""), (".", "directory"), ("/dev/null", "castwise 1")] {
        for arguments in [&["fmt", "-"][..], &["run", "-", "-i", "x=good.npy", "-o", "out.npy"]] {
            let stdin = std::fs::File::open(place.dir.0.join(file)).unwrap();
            let out = place.dir.bounded(arguments, stdin.into(), place.user);
            assert_eq!(out.code, Some(1), "{file} {arguments:?}: {}", out.stderr);
            assert!(out.stderr.contains("stdin") && out.stderr.contains(said), "{file} {arguments:?}: {}", out.stderr);
        }
    }
}
