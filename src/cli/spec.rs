//! What arguments say of inputs: files, members of files, declared types, and what becomes of missing tensors.
//!
//! Guarantees: a path that exists is a file as it is; a colon counts only behind a name that ends like a file of tensors, so
//! that neither a drive letter nor a URL is one. Does not: open files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use castwise::DType;
use castwise::shape::Dims;

use super::format::Format;

/// The name of the only tensor when arrays without names are written into a file that has names.
pub(super) const UNNAMED: &str = "result";

/// Where an input comes from.
#[derive(Clone, Debug)]
pub(crate) enum InputSpec {
    File(PathBuf),
    /// One tensor of a file of several.
    Member(PathBuf, String),
    Declared(DType, Dims),
}

impl InputSpec {
    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            InputSpec::File(path) | InputSpec::Member(path, _) => Some(path),
            InputSpec::Declared(..) => None,
        }
    }
}

/// A path as an input: a file, or one tensor of it.
pub(crate) fn located(path: PathBuf) -> InputSpec {
    if path.symlink_metadata().is_ok() {
        return InputSpec::File(path);
    }
    let colons = path.as_os_str().as_encoded_bytes().iter().enumerate().filter(|(_, b)| **b == b':').map(|(i, _)| i);
    let parts: Vec<(&Path, &str)> =
        colons.filter_map(|at| split(&path, at)).filter(|(file, _)| Format::of(file).is_ok()).collect();
    // If none of them exists, the first is what is said to be missing.
    let found = parts.iter().find(|(file, _)| file.exists()).or(parts.first());
    match found {
        Some((file, member)) => InputSpec::Member(file.to_path_buf(), member.to_string()),
        None => InputSpec::File(path),
    }
}

/// What is before and behind an ASCII byte of a path; nothing if what is behind it is no text, as names of tensors are.
#[cfg(unix)]
fn split(path: &Path, at: usize) -> Option<(&Path, &str)> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    Some((Path::new(OsStr::from_bytes(&bytes[..at])), std::str::from_utf8(&bytes[at + 1..]).ok()?))
}

#[cfg(not(unix))]
fn split(path: &Path, at: usize) -> Option<(&Path, &str)> {
    let text = path.to_str()?;
    Some((Path::new(OsStr::new(&text[..at])), &text[at + 1..]))
}

/// What becomes of tensors that some inputs have and others lack: `--missing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Error,
    Skip,
    /// The tensor of the input of this name, or of the first that has it.
    Copy(Option<String>),
}

impl Missing {
    /// Reads the value of `--missing`.
    pub(crate) fn read(text: &str) -> Result<Missing, String> {
        match (text, text.split_once('=')) {
            ("error", _) => Ok(Missing::Error),
            ("skip", _) => Ok(Missing::Skip),
            ("copy", _) => Ok(Missing::Copy(None)),
            (_, Some(("copy", input))) if !input.is_empty() => Ok(Missing::Copy(Some(input.to_string()))),
            _ => Err("write error, skip, copy or copy=INPUT".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str) -> (String, Option<String>) {
        match located(path.into()) {
            InputSpec::Member(file, member) => (file.display().to_string(), Some(member)),
            spec => (spec.file().map(|f| f.display().to_string()).unwrap_or_default(), None),
        }
    }

    #[test]
    fn colons_are_taken_behind_files_of_tensors_alone() {
        for (path, file, member) in [
            ("no.npz:B08", "no.npz", Some("B08")),
            ("no/dir:x/no.safetensors:a:b", "no/dir:x/no.safetensors", Some("a:b")),
            ("no.index.json:", "no.index.json", Some("")),
            (r"C:\no\scene.npz", r"C:\no\scene.npz", None),
            ("C:/no/scene.NPZ:x", "C:/no/scene.NPZ", Some("x")),
            (r"C:\no\scene.npz:c.npz:d", r"C:\no\scene.npz", Some("c.npz:d")),
            ("no:scene.npz", "no:scene.npz", None),
            ("no.txt:x", "no.txt:x", None),
            ("", "", None),
            (":", ":", None),
        ] {
            assert_eq!(told(path), (file.to_string(), member.map(str::to_string)), "{path}");
        }
    }
}
