//! Folders: each file system call in turn fails, once or from then on; names that lead out of the folder; what is
//! replaced.

use super::super::disk::{Plan, with};
use super::*;

/// Writes a folder of a model with a copied file and one in a folder within.
fn write(path: &Path, from: &Path, text: &str, existing: Existing) -> Result<()> {
    let out = FolderWriter::create(path, existing)?;
    let named = |e| out.finally(e);
    write_text(out.file("model.safetensors")?, text, Existing::Keep).map_err(named)?;
    write_text(out.file("more/a.json")?, text, Existing::Keep).map_err(named)?;
    assert_eq!(out.copy(from, "b.json")?, 100_000);
    out.finish()
}

/// The files of the folder, if it exists.
fn contents(path: &Path) -> Option<[String; 3]> {
    let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    path.exists().then(|| ["model.safetensors", "more/a.json", "b.json"].map(read))
}

#[test]
fn a_folder_is_whole_or_absent_whatever_fails() {
    for (persists, replaces) in [(false, false), (true, false), (false, true), (true, true)] {
        let dir = Dir::new(&format!("folder-{persists}-{replaces}"));
        let from = dir.file("from", &[b'x'; 100_000]);
        let path = dir.0.join("out");
        let right = |text: &str| Some([text.to_string(), text.to_string(), "x".repeat(100_000)]);
        for n in 0.. {
            let _ = std::fs::remove_dir_all(&path);
            if replaces {
                write(&path, &from, "old", Existing::Keep).unwrap();
            }
            let existing = if replaces { Existing::Replace } else { Existing::Keep };
            let plan = Plan { fails: Some(n), persists, ..Plan::default() };
            let (made, failed) = with(plan, || write(&path, &from, "new", existing));
            let (case, now) = (format!("request {n}, going on: {persists}, over another: {replaces}"), contents(&path));
            assert!(!dir.names().iter().any(|name| name.ends_with(".tmp")), "{case}: {:?}", dir.names());
            let before = if replaces { right("old") } else { None };
            assert!(now == before || now == right("new"), "{case}");
            match made {
                Ok(()) => assert!(now == right("new"), "{case}"),
                Err(Error::Io { path, .. }) => assert!(!path.contains(".tmp"), "{case}: {path}"),
                Err(other) => panic!("{case}: {other:?}"),
            }
            if !failed {
                assert!(n > 10, "{case}");
                break;
            }
        }
    }
}

#[test]
fn a_file_of_a_folder_is_in_it() {
    let dir = Dir::new("folder-names");
    let out = FolderWriter::create(dir.0.join("out/"), Existing::Keep).unwrap();
    for name in ["", "/", "..", "../a", "/a", "a/..", "a/../../b", "."] {
        assert!(out.file(name).is_err(), "{name}");
    }
    assert!(out.copy(dir.0.join("nothing"), "a").is_err() && out.copy(&dir.0, "a").is_err());
    drop(out);
    assert!(dir.names().is_empty());
    dir.file("file", b"");
    for existing in [Existing::Keep, Existing::Replace] {
        assert!(FolderWriter::check(dir.0.join("file"), existing).is_err());
        assert!(FolderWriter::check(dir.0.join("absent/out"), existing).is_err());
        assert!(FolderWriter::check(dir.0.join("file/out"), existing).is_err());
        assert!(FolderWriter::check(dir.0.join("out/"), existing).is_ok());
    }
}
