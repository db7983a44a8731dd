//! The specification of inputs in arguments: files, members of files, declared types, and the handling of missing
//! tensors.
//!
//! Guarantees: a path that exists is always a file or a folder. A colon separates a member only after the extension of a tensor
//! file, so neither a drive letter nor a URL is split. Does not: open files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use castwise::shape::Dims;
use castwise::{DType, Tensor};
use regex::Regex;

use super::format::Format;

/// The name of a result without a name in a file of named tensors.
pub(super) const UNNAMED: &str = "result";

/// The source of an input.
#[derive(Clone, Debug)]
pub(crate) enum InputSpec {
    File(PathBuf),
    /// One tensor of a file of several tensors.
    Member(PathBuf, String),
    Declared(DType, Dims),
    /// A .npy file from standard input.
    Stdin,
    /// Other tensors of another input, for each tensor of that input.
    Sibling(Rename),
    /// A tensor of the caller: the command has none, the Python module has.
    Given(Tensor),
}

/// A change of the names of an input's tensors.
#[derive(Clone, Debug)]
pub(crate) struct Rename {
    pub(crate) input: String,
    pub(crate) pattern: Regex,
    /// What replaces matches; `$1` is the first group.
    pub(crate) to: String,
}

impl InputSpec {
    /// The file of the input, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            InputSpec::File(path) | InputSpec::Member(path, _) => Some(path),
            InputSpec::Declared(..) | InputSpec::Sibling(_) | InputSpec::Stdin | InputSpec::Given(_) => None,
        }
    }
}

/// Classifies a path: standard input, a file, or one tensor of a file.
pub(crate) fn located(path: PathBuf) -> InputSpec {
    if path == Path::new("-") {
        return InputSpec::Stdin;
    }
    if path.symlink_metadata().is_ok() {
        return InputSpec::File(path);
    }
    let colons = path.as_os_str().as_encoded_bytes().iter().enumerate().filter(|(_, b)| **b == b':').map(|(i, _)| i);
    let parts: Vec<(&Path, &str)> =
        colons.filter_map(|at| split(&path, at)).filter(|(file, _)| Format::of(file).is_ok()).collect();
    // If none of the files exists, the error names the first.
    let found = parts.iter().find(|(file, _)| file.exists()).or(parts.first());
    match found {
        Some((file, member)) => InputSpec::Member(file.to_path_buf(), member.to_string()),
        None => InputSpec::File(path),
    }
}

/// The parts of a path before and after an ASCII byte; `None` if the second part, a tensor's name, is not UTF-8.
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

/// The handling of tensors that some inputs lack: `--missing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Error,
    Skip,
    /// Copy the tensor of the input with this name, or of the first input of the expression that has it.
    Copy(Option<String>),
}

impl Missing {
    /// The value of `--missing` for this.
    pub(crate) fn written(&self) -> String {
        match self {
            Missing::Error => "error".to_string(),
            Missing::Skip => "skip".to_string(),
            Missing::Copy(of) => of.as_ref().map_or("copy".to_string(), |input| format!("copy={input}")),
        }
    }

    /// Reads the value of `--missing`.
    pub(crate) fn read(text: &str) -> Result<Missing, String> {
        match (text, text.split_once('=')) {
            ("error", _) => Ok(Missing::Error),
            ("skip", _) => Ok(Missing::Skip),
            ("copy", _) => Ok(Missing::Copy(None)),
            (_, Some(("copy", input))) if !input.is_empty() => Ok(Missing::Copy(Some(input.to_string()))),
            _ => Err("expected error, skip, copy or copy=INPUT".to_string()),
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
    fn a_colon_separates_a_member_only_after_a_tensor_file() {
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
