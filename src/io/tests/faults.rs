//! Failing writes: each file system call in turn fails, once or from then on, for every format; short and interrupted
//! writes; leftover files of killed runs, and links in the way.

use super::super::disk::{Plan, with};
use super::super::output::next_number;
use super::*;

/// The outputs that `x` and `y` are written to; the name selects the format.
const OUTPUTS: [&str; 8] =
    ["a.cw", "a.npy", "parts.npy", "stored.npz", "deflated.npz", "a.safetensors", "parts.safetensors", "m.index.json"];

/// Two tensors that together fill several write buffers.
fn two(seed: u8) -> [Tensor; 2] {
    let noise =
        |n: usize, k: u32| (0..n as u32).map(move |i| (i + k).wrapping_mul(2654435761)).map(|i| (i >> 13) as u8);
    let x = Tensor::from_vec(noise(100_000, u32::from(seed)).collect(), [400, 250]).unwrap();
    [x, Tensor::from_vec(noise(70_001, 7 + u32::from(seed)).collect(), [70_001]).unwrap()]
}

/// The elements of a tensor in two parts.
fn halves(t: &Tensor) -> Result<[Tensor; 2]> {
    let (flat, n) = (t.reshape([t.numel()])?, t.numel() / 2);
    Ok([flat.slice(0, 0, n, 1)?, flat.slice(0, n, t.numel(), 1)?])
}

fn write(path: &Path, [x, y]: &[Tensor; 2], existing: Existing) -> Result<()> {
    let list: Vec<_> = [("x", x), ("y", y)].map(|(n, t)| (n.to_string(), t.dtype(), t.shape().to_vec())).into();
    let name = path.file_name().unwrap().to_str().unwrap();
    match name {
        "a.cw" => write_text(path, &format!("{:?}", y.to_vec::<u8>()?), existing),
        "a.npy" => write_npy(path, y, existing),
        "stored.npz" | "deflated.npz" => {
            let how = if name == "stored.npz" { Compression::Stored } else { Compression::Deflated };
            let mut out = NpzWriter::create(path, &list, how, existing)?;
            out.write("x", x)?;
            out.write("y", y)?;
            out.finish()
        }
        "parts.npy" => {
            let mut out = NpyWriter::create(path, y.dtype(), y.shape(), existing)?;
            halves(y)?.iter().try_for_each(|part| out.write_part(part))?;
            out.finish()
        }
        "parts.safetensors" => {
            let mut out = SafeTensorsWriter::create(path, &list, &BTreeMap::new(), existing)?;
            for (a, b) in halves(x)?.iter().zip(&halves(y)?) {
                out.write_part("y", y.shape(), b)?;
                out.write_part("x", x.shape(), a)?;
            }
            out.finish()
        }
        "a.safetensors" => {
            let mut out = SafeTensorsWriter::create(path, &list, &BTreeMap::new(), existing)?;
            out.write("y", y)?;
            out.write("x", x)?;
            out.finish()
        }
        _ => {
            let mut out = ShardedWriter::create(path, &list, &BTreeMap::new(), 100_000, existing)?;
            out.write("x", x)?;
            out.write("y", y)?;
            out.finish()
        }
    }
}

/// The files of an output; the last one is the one that refers to the others.
fn files(output: &str) -> Vec<&str> {
    match output {
        "m.index.json" => vec!["m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors", output],
        _ => vec![output],
    }
}

fn contents(dir: &Dir, output: &str) -> Vec<Option<Vec<u8>>> {
    files(output).into_iter().map(|f| std::fs::read(dir.0.join(f)).ok()).collect()
}

/// The contents of the output when it is written without faults.
fn undisturbed(output: &str, tensors: &[Tensor; 2]) -> Vec<Option<Vec<u8>>> {
    let thread = format!("{:?}", std::thread::current().id()).replace(|c: char| !c.is_ascii_digit(), "");
    let dir = Dir::new(&format!("undisturbed-{output}-{thread}"));
    write(&dir.0.join(output), tensors, Existing::Keep).unwrap();
    assert_eq!(dir.names().len(), files(output).len());
    contents(&dir, output)
}

/// Writes `new`, over `old` if given, while each call fails in turn. Returns the number of calls.
fn fail_each(output: &str, persists: bool, old: Option<&[Tensor; 2]>, new: &[Tensor; 2]) -> usize {
    let dir = Dir::new(&format!("faults-{output}-{persists}-{}", old.is_some()));
    let path = dir.0.join(output);
    let (right, existing) = (undisturbed(output, new), if old.is_some() { Existing::Replace } else { Existing::Keep });
    for n in 0.. {
        files(output).iter().for_each(|f| drop(std::fs::remove_file(dir.0.join(f))));
        if let Some(old) = old {
            write(&path, old, Existing::Keep).unwrap();
        }
        let before = contents(&dir, output);
        let plan = Plan { fails: Some(n), persists, ..Plan::default() };
        let (made, failed) = with(plan, || write(&path, new, existing));
        let after = contents(&dir, output);
        let case = format!("{output}, request {n}, going on: {persists}, over another: {}", old.is_some());
        assert!(!dir.names().iter().any(|name| name.ends_with(".tmp")), "{case}: {:?}", dir.names());
        if !failed {
            made.unwrap();
            assert!(after == right, "{case}");
            return n;
        }
        match made {
            // If linking fails, the file is renamed instead.
            Ok(()) => assert!(after == right, "{case}"),
            Err(Error::Io { path, source }) => {
                assert_eq!(source.kind(), io::ErrorKind::StorageFull, "{case}");
                assert!(files(output).iter().any(|f| path.ends_with(f)), "{case}: {path}");
                // The last file refers to the others: either it is gone, or all files are of the same version.
                let whole = after == before || after == right;
                assert!(whole || after.last() == Some(&None) && output == "m.index.json", "{case}");
                if old.is_none() && !whole {
                    // Without old files, every file that remains is complete.
                    assert!(after.iter().zip(&right).all(|(a, r)| a.is_none() || a == r), "{case}");
                }
            }
            other => panic!("{case}: {other:?}"),
        }
    }
    0
}

#[test]
fn every_request_that_fails_leaves_the_old_file_or_the_new_one() {
    let (old, new) = (two(1), two(2));
    for output in OUTPUTS {
        for persists in [false, true] {
            for old in [None, Some(&old)] {
                let requests = fail_each(output, persists, old, &new);
                // Creating, some writes, syncing, naming, and syncing the directory.
                assert!(requests >= 5, "{output}: {requests}");
            }
        }
    }
}

#[test]
fn short_and_interrupted_writes_are_continued() {
    let tensors = two(3);
    for output in OUTPUTS {
        for short in [1000, 70_000] {
            let dir = Dir::new(&format!("short-{output}"));
            let plan = Plan { short: Some(short), ..Plan::default() };
            with(plan, || write(&dir.0.join(output), &tensors, Existing::Keep)).0.unwrap();
            assert!(contents(&dir, output) == undisturbed(output, &tensors), "{output}, {short}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_killed_runs_and_others_left_is_in_nobodys_way() {
    let dir = Dir::new("left");
    let victim = dir.file("victim", b"precious");
    let tensors = two(4);
    write(&dir.0.join("a.npy"), &tensors, Existing::Keep).unwrap();
    // Leftovers of a killed run with this process's id, and links that redirect writes.
    let named = |n: u64| dir.0.join(format!(".castwise-{}-{n}.tmp", std::process::id()));
    // Other tests use numbers of the registry too.
    let first = next_number();
    for n in first..first + 5000 {
        match n % 3 {
            0 => std::fs::write(named(n), b"half a file").unwrap(),
            1 => std::os::unix::fs::symlink(&victim, named(n)).unwrap(),
            _ => std::os::unix::fs::symlink("nowhere", named(n)).unwrap(),
        }
    }
    let left = dir.names();
    for _ in 0..3 {
        write(&dir.0.join("a.npy"), &tensors, Existing::Replace).unwrap();
    }
    assert_eq!(dir.names(), left);
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    for n in (first..first + 5000).filter(|n| n % 3 == 0) {
        assert_eq!(std::fs::read(named(n)).unwrap(), b"half a file");
    }
    assert_same(&read_npy(dir.0.join("a.npy")).unwrap(), &tensors[1]);
}

#[cfg(unix)]
#[test]
fn an_output_takes_the_place_of_a_link_and_leaves_what_it_names() {
    use std::os::unix::fs::symlink;
    let tensors = two(5);
    for output in OUTPUTS {
        let dir = Dir::new(&format!("links-{output}"));
        let (path, victim) = (dir.0.join(output), dir.file("victim", b"precious"));
        for to in ["victim", "nowhere", output] {
            let _ = std::fs::remove_file(&path);
            symlink(to, &path).unwrap();
            let kept = write(&path, &tensors, Existing::Keep);
            assert!(matches!(kept, Err(Error::Io { .. })) && path.is_symlink(), "{output} -> {to}");
            write(&path, &tensors, Existing::Replace).unwrap();
            assert!(!path.is_symlink() && contents(&dir, output) == undisturbed(output, &tensors), "{output} -> {to}");
        }
        // Another hard link to the old file keeps the old bytes.
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&victim, &path).unwrap();
        write(&path, &tensors, Existing::Replace).unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }
}

#[test]
fn what_is_wrong_with_the_name_of_an_output_is_said_at_once() {
    let dir = Dir::new("names");
    dir.file("file", b"");
    std::fs::create_dir(dir.0.join("taken")).unwrap();
    let long = "x".repeat(300);
    for (name, existing, said) in [
        ("new.npy", Existing::Keep, None),
        ("file", Existing::Replace, None),
        ("file", Existing::Keep, Some("file: the file exists")),
        ("taken", Existing::Replace, Some("taken: exists and is not a regular file")),
        ("none/new.npy", Existing::Keep, Some("none` does not exist")),
        ("none/..", Existing::Keep, Some("not a file name")),
        ("file/new.npy", Existing::Keep, Some("file` is not a directory")),
        (&long, Existing::Keep, Some("too long")),
    ] {
        let made = check_output(dir.0.join(name), existing).map_err(|e| e.to_string());
        match said {
            None => made.unwrap(),
            Some(said) => assert!(made.as_ref().is_err_and(|e| e.contains(said)), "{name}: {made:?}"),
        }
        if said.is_some_and(|s| !s.contains("exists")) {
            // Each output performs these checks before it writes anything.
            assert!(write_text(dir.0.join(name), "", existing).is_err(), "{name}");
        }
    }
    assert_eq!(dir.names(), ["file", "taken"]);
}
