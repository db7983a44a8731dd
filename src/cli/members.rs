//! Inputs that are one tensor of a file of several: `scene.npz:B08`.
//!
//! Guarantees: what exists under the whole of a path is that file; a colon counts only behind a name that ends as a file of
//! tensors does, so that neither a drive letter nor a URL is one. Does not: open files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::args::InputSpec;
use super::inputs::{Format, Input};
use super::{Failure, report};

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

/// Inputs that are called as one of their own tensors is, each with the way to write that tensor alone.
pub(super) fn hints(inputs: &[Input]) -> impl Iterator<Item = String> {
    let called = inputs.iter().filter(|i| i.names().is_some() && i.has(&i.name));
    called.map(|i| {
        let (name, path) = (report::escaped(&i.name), i.path.display());
        format!(
            "warning: `{name}` stands for each tensor of {path} in turn, not for its tensor `{name}` alone: did you mean \
             `-i {name}={path}:{name}`?"
        )
    })
}

/// Why a file has no such tensor.
pub(super) fn absent(path: &Path, member: &str, names: Option<&[&str]>) -> Failure {
    let (path, member) = (path.display(), report::escaped(member));
    let text = match names {
        None => format!("{path} is one array without a name: `:{member}` is for .npz, .safetensors and .index.json"),
        Some([]) => format!("{path}: there is no tensor `{member}`, nor any other"),
        Some(all) => format!("{path}: there is no tensor `{member}`; there are {}", report::names(all.iter().copied())),
    };
    if names.is_none() { Failure::usage(text) } else { Failure { text: report::error(&text), code: 1 } }
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
