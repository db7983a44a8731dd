//! Output files and folders that appear under their name only when complete.
//!
//! Guarantees: bytes go to a new temporary file in the target directory and are synced to disk before the file gets its
//! final name; a file that is not published, because of any error, is removed; no step follows a symlink at the
//! temporary name; [`remove_temporaries`] may be called from any thread at any time, and after it nothing is published
//! or left behind. Does not: keep the permissions of a replaced file, or handle signals (the command does).

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::disk::{self, Disk};
use super::{directory, io_error, write_tensor};
use crate::base::error::{Error, Result, shown_path};
use crate::base::host::PerProcess;
use crate::tensor::Tensor;

/// What to do if a file with the output's name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it and return an error.
    Keep,
    /// Replace it atomically when the new file is complete.
    Replace,
}

/// The temporary files of this process; a forked child starts with none. Files are created, published and removed with
/// the lock held.
struct Registry {
    /// By number, so that each of thousands of shards is found quickly.
    files: BTreeMap<u64, PathBuf>,
    /// Temporary folders, by number; some of the files may be in them.
    folders: BTreeMap<u64, PathBuf>,
    next: u64,
    closed: bool,
}

static REGISTRY: PerProcess<Mutex<Registry>> = PerProcess::first(Registry::empty());

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.get(|_| Registry::empty()).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the next temporary file.
#[cfg(test)]
pub(super) fn next_number() -> u64 {
    registry().next
}

impl Registry {
    const fn empty() -> Mutex<Registry> {
        Mutex::new(Registry { files: BTreeMap::new(), folders: BTreeMap::new(), next: 0, closed: false })
    }

    /// A number and a name for a temporary file or folder beside `path`.
    fn unused(&mut self, path: &Path) -> (u64, PathBuf) {
        let number = self.next;
        self.next += 1;
        (number, directory(path).join(format!(".castwise-{}-{number}.tmp", std::process::id())))
    }

    fn check(&self) -> io::Result<()> {
        if self.closed {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the process is ending"));
        }
        Ok(())
    }
}

/// Removes the temporary files and folders of all unpublished outputs, and prevents that any output is started or published
/// afterwards. For programs that exit on a signal without dropping their writers.
///
/// ```
/// use std::collections::BTreeMap;
/// use castwise::io::{Existing, SafeTensorsWriter, remove_temporaries};
/// let path = std::env::temp_dir().join(format!("castwise-doc-end-{}.safetensors", std::process::id()));
/// let list = [("x".to_string(), castwise::DType::F32, vec![2])];
/// let writer = SafeTensorsWriter::create(&path, &list, &BTreeMap::new(), Existing::Keep)?;
/// remove_temporaries();
/// assert!(writer.finish().is_err() && !path.exists());
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn remove_temporaries() {
    let mut registry = registry();
    registry.closed = true;
    for file in std::mem::take(&mut registry.files).into_values() {
        let _ = std::fs::remove_file(file);
    }
    for folder in std::mem::take(&mut registry.folders).into_values() {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Writes a text file, which appears under its name only when it is complete and on disk.
///
/// ```
/// use castwise::{io::{Existing, write_text}, prelude::*};
/// let path = std::env::temp_dir().join(format!("castwise-doc-text-{}.cw", std::process::id()));
/// let p = Program::new(Rules::Torch);
/// p.set_fetches([("double", &(p.data("x", DType::F32, [3]) * 2.0))])?;
/// write_text(&path, &p.to_string(), Existing::Keep)?;
/// assert!(write_text(&path, "", Existing::Keep).is_err());
/// let read = std::fs::read_to_string(&path).unwrap_or_default();
/// assert_eq!(Program::parse(&read)?.to_string(), read);
/// # let _ = std::fs::remove_file(path);
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn write_text(path: impl AsRef<Path>, text: &str, existing: Existing) -> Result<()> {
    let mut output = Output::create(path.as_ref(), existing)?;
    output.write(text.as_bytes())?;
    output.publish()
}

/// Checks that a file may be written under this name, as each output does when it is started. Errors: the directory
/// does not exist; something other than a file has the name, or anything has it and existing files are kept.
///
/// ```
/// use castwise::io::{Existing, check_output};
/// assert!(check_output("new.npy", Existing::Keep).is_ok());
/// let error = check_output("nowhere/new.npy", Existing::Keep).unwrap_err();
/// assert_eq!(error.to_string(), "nowhere/new.npy: the directory `nowhere` does not exist");
/// ```
pub fn check_output(path: impl AsRef<Path>, existing: Existing) -> Result<()> {
    let path = path.as_ref();
    let refuse = |kind, text: &str| Err(io_error(path, io::Error::new(kind, text)));
    if path.file_name().is_none() {
        return refuse(io::ErrorKind::InvalidInput, "not a file name");
    }
    match std::fs::symlink_metadata(path) {
        Ok(_) if existing == Existing::Keep => refuse(io::ErrorKind::AlreadyExists, "the file exists"),
        Ok(found) if !found.is_file() && !found.is_symlink() => {
            refuse(io::ErrorKind::InvalidInput, "exists and is not a regular file")
        }
        Ok(_) => Ok(()),
        Err(e) => match (e.kind(), std::fs::metadata(directory(path))) {
            (io::ErrorKind::NotFound, Ok(found)) if found.is_dir() => Ok(()),
            (kind @ (io::ErrorKind::NotFound | io::ErrorKind::NotADirectory), found) => {
                let what = if found.is_ok() { "is not a directory" } else { "does not exist" };
                let name = shown_path(&directory(path).to_string_lossy());
                refuse(kind, &format!("the directory `{name}` {what}"))
            }
            // The name is too long, or there is a cycle of links.
            _ => Err(io_error(path, e)),
        },
    }
}

/// A temporary file in the target directory. If it is dropped before it is published, it is removed.
pub(super) struct Draft {
    /// The key in the registry while the temporary file exists.
    number: u64,
    temporary: PathBuf,
    pub(super) path: PathBuf,
    existing: Existing,
}

impl Draft {
    fn create(path: &Path, existing: Existing) -> Result<(Draft, Disk)> {
        check_output(path, existing)?;
        let mut registry = registry();
        registry.check().map_err(|e| io_error(path, e))?;
        loop {
            let (number, temporary) = registry.unused(path);
            match Disk::create(&temporary) {
                Ok(file) => {
                    registry.files.insert(number, temporary.clone());
                    return Ok((Draft { number, temporary, path: path.to_path_buf(), existing }, file));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io_error(path, e)),
            }
        }
    }

    pub(super) fn error(&self, source: io::Error) -> Error {
        io_error(&self.path, source)
    }

    /// Syncs the bytes to disk.
    pub(super) fn seal(self, mut file: BufWriter<Disk>) -> Result<Sealed> {
        file.flush().map_err(|e| self.error(e))?;
        file.get_mut().sync().map_err(|e| self.error(e))?;
        Ok(Sealed(self))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let mut registry = registry();
        // Published files are no longer registered.
        if registry.files.remove(&self.number).is_some() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// A complete file on disk that does not have its final name yet.
pub(super) struct Sealed(Draft);

impl Sealed {
    /// Gives the file its final name.
    pub(super) fn publish(self) -> Result<()> {
        let mut registry = registry();
        let named = self.name(&mut registry);
        drop(registry);
        named.and_then(|()| sync_directory(&self.0.path))
    }

    fn name(&self, registry: &mut Registry) -> Result<()> {
        let (Draft { number, temporary, path, existing }, refuse) = (&self.0, |e| self.0.error(e));
        registry.check().map_err(refuse)?;
        match existing {
            Existing::Replace => disk::rename(temporary, path).map_err(refuse)?,
            Existing::Keep => name_new(temporary, path).map_err(refuse)?,
        }
        registry.files.remove(number);
        Ok(())
    }
}

/// Gives a file a new name. Unlike a rename, a new link fails if the name has been taken in the meantime.
fn name_new(temporary: &Path, path: &Path) -> io::Result<()> {
    match disk::link(temporary, path) {
        Ok(()) => {
            let _ = std::fs::remove_file(temporary);
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
        // The file system does not support hard links.
        Err(_) if std::fs::symlink_metadata(path).is_err() => disk::rename(temporary, path),
        Err(e) => Err(e),
    }
}

/// Publishes the parts of a set, and then the file that refers to them (`whole`), so that whoever sees that file sees
/// all parts. An old file of its name is removed first, so that it never refers to new parts.
pub(super) fn publish_set(parts: &[Sealed], whole: &Sealed) -> Result<()> {
    let path = &whole.0.path;
    let mut registry = registry();
    registry.check().map_err(|e| io_error(path, e))?;
    match (whole.0.existing, std::fs::symlink_metadata(path)) {
        (Existing::Keep, Ok(_)) => {
            return Err(io_error(path, io::Error::new(io::ErrorKind::AlreadyExists, "the file exists")));
        }
        (Existing::Replace, Ok(_)) => {
            disk::remove(path).map_err(|e| io_error(path, e))?;
            sync_directory(path)?;
        }
        (_, Err(_)) => {}
    }
    for (i, part) in parts.iter().enumerate() {
        if let Err(e) = part.name(&mut registry) {
            let new = parts[..i].iter().filter(|p| p.0.existing == Existing::Keep);
            for part in new {
                let _ = std::fs::remove_file(&part.0.path);
            }
            return Err(e);
        }
    }
    sync_directory(path)?;
    whole.name(&mut registry)?;
    sync_directory(path)
}

/// Syncs a file's directory, where the system supports that, which makes the file's name durable.
pub(super) fn sync_directory(of: &Path) -> Result<()> {
    match disk::sync_directory(directory(of)) {
        Some(Err(e)) if !matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) && cfg!(unix) => {
            Err(io_error(of, e))
        }
        _ => Ok(()),
    }
}

/// A temporary file with its write buffer.
pub(super) struct Output {
    pub(super) file: BufWriter<Disk>,
    pub(super) draft: Draft,
}

impl Output {
    pub(super) fn create(path: &Path, existing: Existing) -> Result<Output> {
        let (draft, file) = Draft::create(path, existing)?;
        Ok(Output { file: BufWriter::with_capacity(1 << 16, file), draft })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| self.draft.error(e))
    }

    pub(super) fn tensor(&mut self, t: &Tensor) -> Result<()> {
        write_tensor(&mut self.file, t)?.map_err(|e| self.draft.error(e))
    }

    /// Syncs the bytes to disk.
    pub(super) fn seal(self) -> Result<Sealed> {
        self.draft.seal(self.file)
    }

    /// Syncs the bytes to disk and gives the file its final name.
    pub(super) fn publish(self) -> Result<()> {
        self.seal()?.publish()
    }
}

/// A temporary folder beside the place of the final one. If it is dropped before it is published, it is removed with
/// all that it contains.
pub(super) struct FolderDraft {
    /// The key in the registry while the temporary folder exists.
    number: u64,
    pub(super) temporary: PathBuf,
}

impl FolderDraft {
    pub(super) fn create(path: &Path) -> Result<FolderDraft> {
        let mut registry = registry();
        registry.check().map_err(|e| io_error(path, e))?;
        loop {
            let (number, temporary) = registry.unused(path);
            match disk::create_folder(&temporary) {
                Ok(()) => {
                    registry.folders.insert(number, temporary.clone());
                    return Ok(FolderDraft { number, temporary });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io_error(path, e)),
            }
        }
    }

    /// Creates a folder in this one.
    pub(super) fn folder(&self, inner: &Path) -> io::Result<()> {
        let registry = registry();
        registry.check()?;
        match disk::create_folder(&self.temporary.join(inner)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            created => created,
        }
    }

    /// Gives the folder its final name. A folder of that name, which the caller has checked, is moved aside first and
    /// removed afterwards; if the new folder can't be named, the old one gets its name back.
    pub(super) fn publish(self, path: &Path, existing: Existing) -> Result<()> {
        let mut registry = registry();
        let refuse = |e| io_error(path, e);
        registry.check().map_err(refuse)?;
        let mut old = None;
        match (existing, std::fs::symlink_metadata(path)) {
            (_, Err(_)) => {}
            (Existing::Keep, Ok(_)) => {
                return Err(refuse(io::Error::new(io::ErrorKind::AlreadyExists, "the folder exists")));
            }
            (Existing::Replace, Ok(_)) => {
                let (number, aside) = registry.unused(path);
                disk::rename(path, &aside).map_err(refuse)?;
                old = Some((number, aside));
            }
        }
        if let Err(e) = disk::rename(&self.temporary, path) {
            if let Some((_, aside)) = &old {
                let _ = std::fs::rename(aside, path);
            }
            return Err(refuse(e));
        }
        registry.folders.remove(&self.number);
        registry.folders.extend(old.clone());
        drop(registry);
        let synced = sync_directory(path);
        if let Some((number, aside)) = old {
            let _ = std::fs::remove_dir_all(aside);
            self::registry().folders.remove(&number);
        }
        synced
    }
}

impl Drop for FolderDraft {
    fn drop(&mut self) {
        let mut registry = registry();
        // Published folders are no longer registered.
        if registry.folders.remove(&self.number).is_some() {
            let _ = std::fs::remove_dir_all(&self.temporary);
        }
    }
}
