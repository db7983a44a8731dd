//! The folder of a model: its weights, and the files that are copied with them.
//!
//! Guarantees: links are followed to files in the folder, or in the `blobs` of a Hugging Face cache that the folder is in,
//! and nowhere else, so that no file from elsewhere gets into a copy; the number of files and the depth of folders are
//! limited. Does not: copy hidden files, or weights in other formats.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use castwise::Error;

use super::failure::Failure;
use super::report;

/// The index of a sharded model, and the file of another one.
const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";
/// The limits on what is copied.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 16;
/// The ends of names of files with weights.
const WEIGHTS: [&str; 14] = [
    ".safetensors",
    ".index.json",
    ".bin",
    ".pt",
    ".pth",
    ".ckpt",
    ".gguf",
    ".ggml",
    ".h5",
    ".msgpack",
    ".onnx",
    ".npz",
    ".pdparams",
    ".tmp",
];

fn failed(path: &Path, source: std::io::Error) -> Failure {
    Error::Io { path: path.display().to_string(), source }.into()
}

fn refused(folder: &Path, text: &str) -> Failure {
    Failure { text: report::error(&format!("{}: {text}", folder.display())), code: 1 }
}

/// The file of a model's weights in a folder: `model.safetensors.index.json`, `model.safetensors`, or the only index or
/// `.safetensors` file.
pub(super) fn weights(folder: &Path) -> Result<PathBuf, Failure> {
    let (mut indexes, mut singles, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(|e| failed(folder, e))? {
        let name = entry.map_err(|e| failed(folder, e))?.file_name();
        match name.to_str().filter(|n| !n.starts_with('.')) {
            Some(n) if n.ends_with(".safetensors.index.json") => indexes.push(n.to_string()),
            Some(n) if n.ends_with(".safetensors") => singles.push(n.to_string()),
            Some(n) if is_weights(OsStr::new(n)) => others.push(n.to_string()),
            _ => {}
        }
    }
    let listed = |names: &mut Vec<String>| {
        names.sort();
        report::names(names.iter().map(String::as_str))
    };
    let has = |names: &[String], name: &str| names.iter().any(|n| n == name);
    match (has(&indexes, INDEX), has(&singles, SINGLE)) {
        (true, true) => {
            Err(refused(folder, &format!("there are both `{INDEX}` and `{SINGLE}`: give one of them as the input")))
        }
        (true, false) => Ok(folder.join(INDEX)),
        (false, true) => Ok(folder.join(SINGLE)),
        (false, false) => match (&indexes[..], &singles[..]) {
            ([one], _) | ([], [one]) => Ok(folder.join(one)),
            ([], []) if others.is_empty() => Err(refused(folder, "there is no .safetensors file in the folder")),
            ([], []) => {
                let text =
                    format!("there is no .safetensors file in the folder; {} can't be read", listed(&mut others));
                Err(refused(folder, &text))
            }
            ([], _) => Err(refused(
                folder,
                &format!("there are several .safetensors files and no index: {}", listed(&mut singles)),
            )),
            _ => Err(refused(folder, &format!("there are several indexes: {}", listed(&mut indexes)))),
        },
    }
}

fn is_weights(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes().to_ascii_lowercase();
    WEIGHTS.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// The files of a model's folder that are no weights.
pub(super) struct Rest {
    pub(super) from: PathBuf,
    /// Paths within the folder, sorted.
    pub(super) files: Vec<PathBuf>,
    /// Warnings about what is not copied.
    pub(super) notes: Vec<String>,
}

/// Lists the files of a model's folder that are no weights, also those in folders within. Weights but those that are `read` are told of.
pub(super) fn rest(folder: &Path, read: &[&Path]) -> Result<Rest, Failure> {
    let root = folder.canonicalize().map_err(|e| failed(folder, e))?;
    // In a Hugging Face cache, `snapshots/REVISION` has links to `blobs`.
    let cache = root.parent().filter(|p| p.file_name() == Some(OsStr::new("snapshots"))).and_then(Path::parent);
    let allowed: Vec<PathBuf> = [Some(root.clone()), cache.map(|c| c.join("blobs"))].into_iter().flatten().collect();
    let (mut files, mut weights, mut outside, mut special) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((within, depth)) = folders.pop() {
        let at = folder.join(&within);
        for entry in std::fs::read_dir(&at).map_err(|e| failed(&at, e))? {
            let entry = entry.map_err(|e| failed(&at, e))?;
            let (name, kind) = (entry.file_name(), entry.file_type().map_err(|e| failed(&at, e))?);
            let path = within.join(&name);
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() {
                folders.push((path, depth + 1));
            } else if is_weights(&name) {
                if depth > 0 || !read.iter().any(|f| f.file_name() == Some(&name)) {
                    weights.push(path);
                }
            } else if kind.is_symlink() {
                let real = entry.path().canonicalize().ok().filter(|p| p.is_file());
                let near = real.is_some_and(|p| allowed.iter().any(|a| p.starts_with(a)));
                if near { files.push(path) } else { outside.push(path) }
            } else if kind.is_file() {
                files.push(path);
            } else {
                special.push(path);
            }
            if files.len() + folders.len() > MAX_FILES || depth > MAX_DEPTH {
                let text = format!(
                    "more than {MAX_FILES} files or {MAX_DEPTH} levels of folders to copy; --no-copy-rest copies none"
                );
                return Err(refused(folder, &text));
            }
        }
    }
    files.sort();
    let note = |paths: Vec<PathBuf>, why: &str| {
        (!paths.is_empty()).then(|| format!("{}: not copied, since {why}: {}", folder.display(), listed(paths)))
    };
    let notes = [
        note(weights, "they are weights").map(|n| format!("note: {n}")),
        note(outside, "links lead out of the folder or to no file").map(|n| format!("warning: {n}")),
        note(special, "they are no regular files").map(|n| format!("warning: {n}")),
    ];
    Ok(Rest { from: folder.to_path_buf(), files, notes: notes.into_iter().flatten().collect() })
}

/// The first few paths for a message.
pub(super) fn listed(mut paths: Vec<PathBuf>) -> String {
    paths.sort();
    let shown: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    report::names(shown.iter().map(String::as_str))
}
