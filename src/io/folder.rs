//! Folders of several files, such as models, that appear under their name only when complete.
//!
//! Guarantees: the files are written in a new temporary folder beside the final one; each file and folder is synced to
//! disk before the folder gets its name; a folder that is not published, because of any error, is removed. An old folder
//! is replaced only if it is the folder of a model without hidden files and links, so that a mistaken path does not
//! remove anything else; it is moved aside before the new folder gets its name, and removed afterwards. Does not: know
//! what the files mean, or replace an old folder in one step (`kill -9` between the two renames leaves the old folder
//! under the name of a temporary one).

use std::fs::FileType;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::output::{Existing, FolderDraft, Output, sync_directory};
use super::{Origin, directory, io_error, open};
use crate::base::error::{Error, Result, shown, shown_path};

/// The maximum number of entries of a folder that is replaced.
const MAX_REPLACED: usize = 100_000;
/// Files that the folder of a model has, one of them at least.
const MODEL: [&str; 2] = ["model.safetensors", "model.safetensors.index.json"];

/// A writer of a folder. Its files are written by the writers of their formats under the paths that
/// [`file`](FolderWriter::file) gives; the folder appears under its name when [`finish`](FolderWriter::finish) is
/// called, and never appears if it is not.
///
/// ```
/// use castwise::io::{Existing, FolderWriter, write_text};
/// let path = std::env::temp_dir().join(format!("castwise-doc-folder-{}", std::process::id()));
/// let out = FolderWriter::create(&path, Existing::Keep)?;
/// write_text(out.file("config.json")?, "{}\n", Existing::Keep)?;
/// assert!(!path.exists());
/// out.finish()?;
/// assert_eq!(std::fs::read_to_string(path.join("config.json")).unwrap_or_default(), "{}\n");
/// assert!(FolderWriter::create(&path, Existing::Keep).is_err());
/// // Only folders of models are replaced.
/// assert!(FolderWriter::create(&path, Existing::Replace).is_err());
/// # std::fs::remove_dir_all(path).ok();
/// # Ok::<(), castwise::Error>(())
/// ```
pub struct FolderWriter {
    draft: FolderDraft,
    path: PathBuf,
    existing: Existing,
    /// The folders in this one.
    inner: std::cell::RefCell<Vec<PathBuf>>,
}

impl FolderWriter {
    /// Starts a folder. Errors: those of [`check`](FolderWriter::check).
    pub fn create(path: impl AsRef<Path>, existing: Existing) -> Result<FolderWriter> {
        FolderWriter::check(path.as_ref(), existing)?;
        let path = plain(path.as_ref());
        Ok(FolderWriter { draft: FolderDraft::create(&path)?, path, existing, inner: Default::default() })
    }

    /// Checks that a folder may be written under this name. Errors: the directory does not exist that would contain it;
    /// something has the name, and it is to be kept, or is not an empty folder or the folder of a model (which has a
    /// `model.safetensors` or its index, and no hidden files or links).
    pub fn check(path: impl AsRef<Path>, existing: Existing) -> Result<()> {
        let path = plain(path.as_ref());
        let refuse = |kind, text: &str| Err(io_error(&path, io::Error::new(kind, text)));
        if path.file_name().is_none() {
            return refuse(io::ErrorKind::InvalidInput, "not the name of a folder");
        }
        match std::fs::symlink_metadata(&path) {
            Ok(_) if existing == Existing::Keep => refuse(io::ErrorKind::AlreadyExists, "the folder exists"),
            Ok(found) if !found.is_dir() => refuse(io::ErrorKind::InvalidInput, "exists and is not a folder"),
            Ok(_) => match kept(&path)? {
                Some(why) => refuse(io::ErrorKind::InvalidInput, &format!("the folder is not replaced: {why}")),
                None => Ok(()),
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound && !directory(&path).is_dir() => {
                let name = shown_path(&directory(&path).to_string_lossy());
                refuse(io::ErrorKind::NotFound, &format!("the directory `{name}` does not exist"))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(io_error(&path, e)),
        }
    }

    /// The path at which to write a file of the folder, in the temporary folder. The folders of `name` are created.
    /// Errors: `name` does not lead to a place in the folder.
    pub fn file(&self, name: impl AsRef<Path>) -> Result<PathBuf> {
        let name = name.as_ref();
        if name.file_name().is_none() || name.components().any(|c| !matches!(c, Component::Normal(_))) {
            let why = format!("`{}` is not in the folder", shown(&name.to_string_lossy()));
            return Err(io_error(&self.path, io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let mut above: Vec<&Path> = name.ancestors().skip(1).filter(|p| !p.as_os_str().is_empty()).collect();
        above.reverse();
        for folder in above {
            let mut inner = self.inner.borrow_mut();
            if !inner.iter().any(|known| known == folder) {
                self.draft.folder(folder).map_err(|e| io_error(&self.path.join(folder), e))?;
                inner.push(folder.to_path_buf());
            }
        }
        Ok(self.draft.temporary.join(name))
    }

    /// Copies a regular file, or one that a link leads to. Returns the number of bytes.
    pub fn copy(&self, from: impl AsRef<Path>, name: impl AsRef<Path>) -> Result<u64> {
        let from = from.as_ref();
        let (mut file, _) = open(from)?;
        let mut output = Output::create(&self.file(name)?, Existing::Keep).map_err(|e| self.finally(e))?;
        let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
        loop {
            let n = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Origin::file(from).failed(e)),
            };
            output.write(&buffer[..n]).map_err(|e| self.finally(e))?;
            bytes += n as u64;
        }
        output.publish().map_err(|e| self.finally(e))?;
        Ok(bytes)
    }

    /// The error with the final name of a file instead of its name in the temporary folder.
    pub fn finally(&self, e: Error) -> Error {
        let named = |path: String| match Path::new(&path).strip_prefix(&self.draft.temporary) {
            Ok(rest) => self.path.join(rest).display().to_string(),
            Err(_) => path,
        };
        match e {
            Error::Io { path, source } => Error::Io { path: named(path), source },
            Error::Format { path, message } => Error::Format { path: named(path), message },
            e => e,
        }
    }

    /// Gives the folder its final name. Errors: the name has been taken in the meantime.
    pub fn finish(self) -> Result<()> {
        let inner = self.inner.borrow();
        // A file's name is durable when the directory is synced that contains it.
        for folder in inner.iter().chain([&PathBuf::new()]) {
            let file = self.draft.temporary.join(folder).join("_");
            sync_directory(&file).map_err(|e| match e {
                Error::Io { source, .. } => io_error(&plain(&self.path.join(folder)), source),
                e => e,
            })?;
        }
        drop(inner);
        FolderWriter::check(&self.path, self.existing)?;
        self.draft.publish(&self.path, self.existing)
    }
}

/// A path without a final slash or dots, so that a link at its end is not followed.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Why a folder must not be replaced.
fn kept(path: &Path) -> Result<Option<String>> {
    let (mut folders, mut count) = (vec![path.to_path_buf()], 0);
    let mut is_model = false;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|e| io_error(&folder, e))? {
            let entry = entry.map_err(|e| io_error(&folder, e))?;
            let (name, kind) = (entry.file_name(), entry.file_type().map_err(|e| io_error(&folder, e))?);
            count += 1;
            let hidden = name.as_encoded_bytes().starts_with(b".");
            if hidden || !is_plain(kind) || count > MAX_REPLACED {
                let what = match (hidden, is_plain(kind)) {
                    (true, _) => "is hidden",
                    (_, false) => "is neither a file nor a folder",
                    _ => "is one of too many",
                };
                return Ok(Some(format!("`{}` in it {what}", shown(&name.to_string_lossy()))));
            }
            is_model |= folder == path && kind.is_file() && MODEL.iter().any(|m| name == *m);
            if kind.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    let empty = count == 0;
    Ok((!is_model && !empty)
        .then(|| format!("it is not a model's, since it has neither {} nor {}", MODEL[0], MODEL[1])))
}

fn is_plain(kind: FileType) -> bool {
    kind.is_file() || kind.is_dir()
}
