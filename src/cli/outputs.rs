//! The output of a command: one file, the files of a sharded checkpoint, or the folder of a model.
//!
//! Guarantees: before anything is computed, every output file is checked: it is not an input, `--force` is given if it
//! exists, and its format supports the tensors. Files that the same model has in another layout count as outputs, and are
//! removed when the new ones are in place. Does not: choose a format; the file name and `--max-shard-size` do.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use castwise::io::{
    Compression, Existing, FolderWriter, Npy, NpyWriter, NpzWriter, SafeTensorsWriter, ShardedWriter, Stored,
    StoredDType, check_output, checkpoint_files, write_npy, write_npy_to, write_text,
};
use castwise::{DType, Error, Tensor};

use super::args::Target;
use super::failure::Failure;
use super::format::Format;
use super::report;
use super::show::{self, Shown};
use super::spec::UNNAMED;

/// The default size of a shard, which is that of the Hugging Face libraries.
const SHARD: u64 = 5_000_000_000;

/// The tensors to be written: names, dtypes and shapes.
pub(super) type List = [(String, StoredDType, Vec<usize>)];

/// The weights in the folder of a model; with shards, `.index.json` is appended for the index.
const WEIGHTS: &str = "model.safetensors";

/// An output that is being written.
pub(super) struct Output {
    files: Files,
    /// The folder that the files are in, if the output is a folder.
    folder: Option<FolderWriter>,
    /// The files to remove at the end.
    stale: Vec<PathBuf>,
}

/// The files of an output.
enum Files {
    /// Standard output.
    Pipe,
    /// Results to print.
    Text(Vec<Shown>),
    Npy(PathBuf, Existing),
    /// A .npy file that is written in parts.
    Parts(Box<NpyWriter>),
    Npz(Box<NpzWriter>),
    SafeTensors(Box<SafeTensorsWriter>),
    Sharded(Box<ShardedWriter>),
}

impl Output {
    /// Starts the output of these tensors.
    pub(super) fn create(
        target: &Target,
        format: Format,
        read: &[&Path],
        list: &List,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Output, Failure> {
        let existing = if target.force { Existing::Replace } else { Existing::Keep };
        let (present, stale) = existing_outputs(target, format, list, read)?;
        keep(&present, target.force)?;
        let folder = match format {
            Format::Folder => Some(FolderWriter::create(target.path(), existing)?),
            _ => None,
        };
        let path = &folder.as_ref().map_or(Ok(target.path().to_path_buf()), |f| f.file(WEIGHTS))?;
        let index = index(path, target, format, list)?;
        let existing = if folder.is_some() { Existing::Keep } else { existing };
        let arrays = if format == Format::Npz { known(path, list)? } else { Vec::new() };
        let compression = if target.compress { Compression::Deflated } else { Compression::Stored };
        let start = || -> Result<Files, Error> {
            Ok(match (index, format) {
                (Some((index, size)), _) => {
                    Files::Sharded(Box::new(ShardedWriter::create(index, list, metadata, size, existing)?))
                }
                (None, Format::Npy) => Files::Npy(path.clone(), existing),
                (None, Format::Pipe) => Files::Pipe,
                (None, Format::Text) => Files::Text(Vec::new()),
                (None, Format::Npz) => Files::Npz(Box::new(NpzWriter::create(path, &arrays, compression, existing)?)),
                (None, Format::SafeTensors | Format::Index | Format::Folder) => {
                    Files::SafeTensors(Box::new(SafeTensorsWriter::create(path, list, metadata, existing)?))
                }
            })
        };
        let files = start().map_err(|e| finally(folder.as_ref(), e))?;
        Ok(Output { files, folder, stale })
    }

    fn folder(&self) -> Result<&FolderWriter, Error> {
        self.folder.as_ref().ok_or_else(|| Error::Internal("the output is no folder".into()))
    }

    /// Copies a file into the folder.
    pub(super) fn copy(&self, from: &Path, name: &Path) -> Result<(), Error> {
        self.folder()?.copy(from, name).map(|_| ())
    }

    /// Writes a text file into the folder.
    pub(super) fn text(&self, name: &Path, text: &str) -> Result<(), Error> {
        write_text(self.folder()?.file(name)?, text, Existing::Keep).map_err(|e| finally(self.folder.as_ref(), e))
    }

    /// Takes the results to print.
    pub(super) fn shown(&mut self) -> Vec<Shown> {
        if let Files::Text(shown) = &mut self.files { std::mem::take(shown) } else { Vec::new() }
    }

    /// Writes a result: the one of this name in the expression, computed for a tensor name. At least one of them is given.
    pub(super) fn write(&mut self, tensor: Option<&str>, result: Option<&str>, t: &Tensor) -> Result<(), Error> {
        let name = &full_name(tensor, result);
        let written = match &mut self.files {
            Files::Text(shown) => {
                let (tensor, result) = (tensor.map(str::to_string), result.map(str::to_string));
                shown.push(Shown { tensor, result, value: t.clone() });
                Ok(())
            }
            Files::Pipe => match write_npy_to(&mut std::io::stdout().lock(), "stdout", t) {
                // The reader needs no more.
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                written => written,
            },
            Files::Npy(path, existing) => write_npy(path, t, *existing),
            Files::Parts(w) => w.write_part(t),
            Files::Npz(w) => w.write(name, t),
            Files::SafeTensors(w) => w.write(name, t),
            Files::Sharded(w) => w.write(name, t),
        };
        written.map_err(|e| finally(self.folder.as_ref(), e))
    }

    /// Writes the next rows of a result, whose shape this is.
    pub(super) fn write_part(
        &mut self,
        tensor: Option<&str>,
        result: Option<&str>,
        shape: &[usize],
        part: &Tensor,
    ) -> Result<(), Error> {
        let name = &full_name(tensor, result);
        if let Files::Npy(path, existing) = &self.files {
            self.files = Files::Parts(Box::new(NpyWriter::create(path, part.dtype(), shape, *existing)?));
        }
        let written = match &mut self.files {
            Files::Parts(w) => w.write_part(part),
            Files::SafeTensors(w) => w.write_part(name, shape, part),
            Files::Sharded(w) => w.write_part(name, shape, part),
            _ => Err(Error::Internal("the output is not written in parts".into())),
        };
        written.map_err(|e| finally(self.folder.as_ref(), e))
    }

    /// Writes one of the tensors as bytes.
    pub(super) fn write_stored(&mut self, name: &str, t: &Stored) -> Result<(), Error> {
        let written = match &mut self.files {
            Files::SafeTensors(w) => w.write_stored(name, t),
            Files::Sharded(w) => w.write_stored(name, t),
            _ => Err(Error::Internal("only .safetensors files store bytes".into())),
        };
        written.map_err(|e| finally(self.folder.as_ref(), e))
    }

    /// Flushes the output to disk and gives it its final name.
    pub(super) fn finish(self) -> Result<(), Error> {
        let Output { files, folder, stale } = self;
        let finished = match files {
            Files::Npy(..) | Files::Pipe | Files::Text(_) => Ok(()),
            Files::Parts(w) => w.finish(),
            Files::Npz(w) => w.finish(),
            Files::SafeTensors(w) => w.finish(),
            Files::Sharded(w) => w.finish(),
        };
        let Some(folder) = folder else { return finished.and_then(|()| remove(&stale)) };
        finished.map_err(|e| folder.finally(e))?;
        folder.finish()
    }
}

/// The files that the same model has in another layout, or in more shards: a loader may read them instead of the output. The
/// index comes first, so that it never names shards that have gone.
fn stale(format: Format, files: &[PathBuf]) -> Vec<PathBuf> {
    let last = files.last().filter(|_| matches!(format, Format::SafeTensors | Format::Index));
    let written: HashSet<&OsStr> = files.iter().filter_map(|f| f.file_name()).collect();
    let all = last.map_or(Vec::new(), |path| checkpoint_files(path)).into_iter();
    all.filter(|path| path.file_name().is_none_or(|n| !written.contains(n))).collect()
}

/// Removes files, of which some may have gone.
fn remove(files: &[PathBuf]) -> Result<(), Error> {
    for path in files {
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Io { path: path.display().to_string(), source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// An error with the final name of a file in a folder that is being written.
fn finally(folder: Option<&FolderWriter>, e: Error) -> Error {
    if let Some(folder) = folder { folder.finally(e) } else { e }
}

/// The name in a file of a result that was computed for a tensor name.
pub(super) fn full_name(tensor: Option<&str>, result: Option<&str>) -> String {
    match (tensor, result) {
        (Some(tensor), Some(result)) => format!("{tensor}.{result}"),
        (one, other) => one.or(other).unwrap_or(UNNAMED).to_string(),
    }
}

/// The files that these tensors are written to.
pub(super) fn layout(target: &Target, format: Format, list: &List) -> Result<Vec<PathBuf>, Failure> {
    if format == Format::Text {
        known(Path::new("stdout"), list)?.iter().try_for_each(|(name, _, shape)| show::check(name, shape))?;
        return Ok(Vec::new());
    }
    let path = match format {
        Format::Folder => &target.path().join(WEIGHTS),
        Format::Pipe => &PathBuf::from("stdout"),
        _ => &target.path().to_path_buf(),
    };
    let index = index(path, target, format, list)?;
    let files = match &index {
        Some((index, size)) => ShardedWriter::files(index, list, *size)?,
        None => vec![path.clone()],
    };
    match (&index, format) {
        (None, Format::Npy | Format::Pipe) => {
            known(path, list)?.iter().try_for_each(|(_, dtype, shape)| Npy::check(path, *dtype, shape))?
        }
        (None, Format::Npz) => NpzWriter::check(path, &known(path, list)?)?,
        (None, Format::SafeTensors | Format::Folder) => SafeTensorsWriter::check(path, list)?,
        _ => {}
    }
    Ok(files)
}

/// The index of an output that is written in shards, and the size of these. `path` is that of the file without shards.
fn index(path: &Path, target: &Target, format: Format, list: &List) -> Result<Option<(PathBuf, u64)>, Failure> {
    let size = |(_, dtype, shape): &(String, StoredDType, Vec<usize>)| dtype.byte_len(shape);
    let total = list.iter().try_fold(0u64, |n, t| Ok::<_, Error>(n.saturating_add(size(t)? as u64)))?;
    let most = match (format, target.max_shard_size) {
        (Format::Index, size) => return Ok(Some((path.to_path_buf(), size.unwrap_or(SHARD)))),
        (Format::SafeTensors, size) => size,
        (Format::Folder, size) => Some(size.unwrap_or(SHARD)),
        _ => None,
    };
    // Tensors that fit in one file need no index.
    Ok(most.filter(|size| total > *size).map(|size| {
        let mut name = path.as_os_str().to_os_string();
        name.push(".index.json");
        (PathBuf::from(name), size)
    }))
}

/// The tensors of a list for NumPy's formats, which have no dtype that castwise lacks.
fn known(path: &Path, list: &List) -> Result<Vec<(String, DType, Vec<usize>)>, Failure> {
    let one = |(name, dtype, shape): &(String, StoredDType, Vec<usize>)| match dtype {
        StoredDType::Known(dtype) => Ok((name.clone(), *dtype, shape.clone())),
        StoredDType::Foreign(dtype) => {
            let (path, name) = (path.display(), report::escaped(name));
            let text = format!("{path}: NumPy has no {dtype} (for `{name}`): write .safetensors");
            Err(Failure { text: report::error(&text), code: 1 })
        }
    };
    list.iter().map(one).collect()
}

/// Checks the options and paths before any file is read. Returns the format of the output.
pub(super) fn format(target: &Target, read: &[&Path], dry_run: bool) -> Result<Format, Failure> {
    let format = match &target.output {
        None => Format::Text,
        Some(path) if path == Path::new("-") => Format::Pipe,
        Some(path) => Format::of(path).map_err(Failure::usage)?,
    };
    if format == Format::Pipe && std::io::stdout().is_terminal() && !dry_run {
        return Err(Failure::usage("standard output is a terminal, and -o - writes a .npy file to it"));
    }
    if target.max_shard_size.is_some() && !matches!(format, Format::SafeTensors | Format::Index | Format::Folder) {
        return Err(Failure::usage("--max-shard-size needs a .safetensors or .index.json output, or a folder"));
    }
    if target.compress && format != Format::Npz {
        return Err(Failure::usage("--compress needs an .npz output"));
    }
    for path in read {
        Format::of(path).map_err(Failure::usage)?;
    }
    let path = target.path().to_path_buf();
    let existing = match format {
        Format::Folder => folder(&path, read)?,
        Format::Pipe | Format::Text => Vec::new(),
        _ => check(std::slice::from_ref(&path), read)?,
    };
    keep(&existing, target.force || dry_run)?;
    Ok(format)
}

/// Checks the files of an output, or its folder. Returns those that exist, and which of them are to be removed.
pub(super) fn existing_outputs(
    target: &Target,
    format: Format,
    list: &List,
    read: &[&Path],
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let files = layout(target, format, list)?;
    match format {
        Format::Folder => Ok((folder(target.path(), read)?, Vec::new())),
        Format::Pipe | Format::Text => Ok((Vec::new(), Vec::new())),
        _ => {
            let mut existing = check(&files, read)?;
            let help = "\nhelp: a loader takes this file for a part of the output: write the output under another name";
            let told = |f: Failure| Failure { text: f.text + help, ..f };
            let stale = stale(format, &files);
            existing.extend(check(&stale, read).map_err(told)?);
            Ok((existing, stale))
        }
    }
}

/// Refuses a folder as output that `--force` would not replace, as a run does.
pub(super) fn check_replaced(target: &Target, format: Format) -> Result<(), Failure> {
    if target.force && format == Format::Folder {
        FolderWriter::check(target.path(), Existing::Replace)?;
    }
    Ok(())
}

/// Refuses a folder as output that has inputs in it or can't be written. Returns it if it exists.
fn folder(output: &Path, read: &[&Path]) -> Result<Vec<PathBuf>, Failure> {
    let exists = output.symlink_metadata().is_ok();
    if exists && let Ok(real) = output.canonicalize() {
        let within = |p: &&&Path| p.canonicalize().is_ok_and(|p| p.starts_with(&real)) || p.starts_with(output);
        if let Some(input) = read.iter().find(within) {
            let (output, input) = (output.display(), input.display());
            let text = format!("{output}: the output is also an input, or has one in it: {input}");
            return Err(Failure { text: report::error(&text), code: 1 });
        }
    }
    match FolderWriter::check(output, Existing::Keep) {
        Err(_) if exists => Ok(vec![output.to_path_buf()]),
        checked => Ok(checked.map(|()| Vec::new())?),
    }
}

/// Refuses outputs that are also inputs or can't be written. Returns those that exist.
pub(super) fn check(outputs: &[PathBuf], read: &[&Path]) -> Result<Vec<PathBuf>, Failure> {
    // There may be thousands of inputs and of outputs, so inputs are looked up in sets.
    let written: HashSet<&Path> = read.iter().copied().collect();
    let real: HashSet<PathBuf> = read.iter().filter_map(|p| p.canonicalize().ok()).collect();
    let mut existing = Vec::new();
    for output in outputs {
        let exists = output.symlink_metadata().is_ok();
        let is_read = || exists && output.canonicalize().is_ok_and(|p| real.contains(&p));
        if written.contains(output.as_path()) || is_read() {
            let text = format!("{}: the output is also an input", output.display());
            return Err(Failure { text: report::error(&text), code: 1 });
        }
        check_output(output, Existing::Replace)?;
        if exists {
            existing.push(output.clone());
        }
    }
    Ok(existing)
}

/// Refuses outputs that exist, unless `--force` is given.
pub(super) fn keep(existing: &[PathBuf], force: bool) -> Result<(), Failure> {
    match existing.first().filter(|_| !force) {
        None => Ok(()),
        Some(output) => {
            let text = format!("{}: the output exists; use --force to replace it", output.display());
            Err(Failure { text: report::error(&text), code: 1 })
        }
    }
}
