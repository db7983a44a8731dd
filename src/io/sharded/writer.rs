//! The writer of sharded checkpoints, in the form of the Hugging Face libraries.
//!
//! Guarantees: shards are named `NAME-00001-of-00003.safetensors` and are in the directory of
//! `NAME.safetensors.index.json`; each has at most the given size, unless it holds a single larger tensor; the index is
//! published last, and an old index is removed before the first new shard is published, so that there is never an index
//! with the shards of another checkpoint. Does not: remove the shards of an older checkpoint that have other
//! names, which [`checkpoint_files`] finds.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::io::ledger::Ledger;
use crate::io::output::{Existing, Output, Sealed, check_output, publish_set};
use crate::io::safetensors::{Layout, SafeTensorsWriter};
use crate::io::stored::{Listed, Stored, StoredDType, listed};
use crate::io::{directory, format_error};
use crate::tensor::Tensor;

/// A writer of a sharded checkpoint. Tensors are written in any order; in the order of the list, only one shard is open
/// at a time. The files appear under their names when [`finish`](ShardedWriter::finish) is called, and never appear if
/// it is not.
pub struct ShardedWriter {
    index: Output,
    shards: Vec<Shard>,
    ledger: Ledger,
    existing: Existing,
    /// The shards of the tensors of which parts are written.
    parts: HashMap<String, usize>,
}

struct Shard {
    path: PathBuf,
    state: State,
}

enum State {
    Waiting(Layout),
    Open(SafeTensorsWriter),
    Whole(Sealed),
}

impl ShardedWriter {
    /// The files that [`create`](ShardedWriter::create) would write for these tensors, the index last. Errors: those
    /// that `create` finds in the list.
    pub fn files<D: Copy + Into<StoredDType>>(
        path: impl AsRef<Path>,
        tensors: &[(String, D, Vec<usize>)],
        max_shard_size: u64,
    ) -> Result<Vec<PathBuf>> {
        let path = path.as_ref();
        let tensors = listed(tensors);
        let groups = split(&tensors, max_shard_size)?;
        let mut files = shard_paths(path, groups.len())?;
        let mut ledger = Ledger::default();
        for (tensors, path) in groups.iter().zip(&files) {
            Layout::new(path, tensors, &BTreeMap::new())?;
            tensors.iter().try_for_each(|(name, dtype, shape)| ledger.add(path, name, *dtype, shape, 0))?;
        }
        files.push(path.to_path_buf());
        Ok(files)
    }

    /// Starts a checkpoint of the given tensors; `path` is the index. Errors: the name does not end in `.index.json`; a
    /// dtype is c32 or c128, which the format lacks; a name is listed twice.
    pub fn create<D: Copy + Into<StoredDType>>(
        path: impl AsRef<Path>,
        tensors: &[(String, D, Vec<usize>)],
        metadata: &BTreeMap<String, String>,
        max_shard_size: u64,
        existing: Existing,
    ) -> Result<ShardedWriter> {
        let path = path.as_ref();
        let tensors = listed(tensors);
        let groups = split(&tensors, max_shard_size)?;
        let paths = shard_paths(path, groups.len())?;
        let (mut ledger, mut weight_map, mut total) = (Ledger::default(), BTreeMap::new(), 0u64);
        let mut shards = Vec::with_capacity(groups.len());
        for (i, (tensors, path)) in groups.into_iter().zip(paths).enumerate() {
            let file = path.file_name().and_then(|f| f.to_str()).unwrap_or_default();
            for (name, dtype, shape) in tensors {
                ledger.add(&path, name, *dtype, shape, i as u64)?;
                weight_map.insert(name.as_str(), file.to_string());
                total = total.saturating_add(dtype.byte_len(shape)? as u64);
            }
            check_output(&path, existing)?;
            let state = State::Waiting(Layout::new(&path, tensors, metadata)?);
            shards.push(Shard { path, state });
        }
        let mut index = Output::create(path, existing)?;
        let value = serde_json::json!({ "metadata": { "total_size": total }, "weight_map": weight_map });
        let text = serde_json::to_string_pretty(&value).map_err(|e| Error::Internal(format!("JSON: {e}")))?;
        index.write(text.as_bytes())?;
        index.write(b"\n")?;
        Ok(ShardedWriter { index, shards, ledger, existing, parts: HashMap::new() })
    }

    /// Writes one of the tensors. Errors: it is not listed, has another dtype or shape than listed, or is written
    /// already.
    pub fn write(&mut self, name: &str, t: &Tensor) -> Result<()> {
        self.write_to_shard(name, (t.dtype().into(), t.shape()), |writer| writer.write(name, t))
    }

    /// Writes one of the tensors, whose elements are as the file that they were read from has them. Errors: those of
    /// [`write`](ShardedWriter::write).
    pub fn write_stored(&mut self, name: &str, t: &Stored) -> Result<()> {
        self.write_to_shard(name, (t.dtype(), t.shape()), |writer| writer.write_stored(name, t))
    }

    fn write_to_shard(
        &mut self,
        name: &str,
        (dtype, shape): (StoredDType, &[usize]),
        write: impl FnOnce(&mut SafeTensorsWriter) -> Result<()>,
    ) -> Result<()> {
        let i = self.ledger.take(&self.index.draft.path, name, dtype, shape)? as usize;
        self.in_shard(i, write)?;
        self.ledger.written();
        Ok(())
    }

    /// Writes the next elements of one of the tensors, as
    /// [`SafeTensorsWriter::write_part`](super::super::SafeTensorsWriter::write_part).
    pub fn write_part(&mut self, name: &str, shape: &[usize], part: &Tensor) -> Result<()> {
        let i = match self.parts.get(name) {
            Some(i) => *i,
            None => {
                let i = self.ledger.begin(&self.index.draft.path, name, part.dtype(), shape)? as usize;
                self.parts.insert(name.to_string(), i);
                i
            }
        };
        let whole = self.in_shard(i, |writer| {
            writer.write_part(name, shape, part)?;
            Ok(!writer.has_part(name))
        })?;
        if whole {
            self.parts.remove(name);
            self.ledger.ended();
        }
        Ok(())
    }

    fn in_shard<T>(&mut self, i: usize, write: impl FnOnce(&mut SafeTensorsWriter) -> Result<T>) -> Result<T> {
        let Some(shard) = self.shards.get_mut(i) else { return Err(inconsistent_state()) };
        let layout = Layout::default();
        let mut writer = match std::mem::replace(&mut shard.state, State::Waiting(layout)) {
            State::Waiting(layout) => layout.start(&shard.path, self.existing)?,
            State::Open(writer) => writer,
            State::Whole(_) => return Err(inconsistent_state()),
        };
        let made = write(&mut writer)?;
        // Close complete shards, so that few files are open, however many shards there are.
        shard.state = if writer.is_complete() { State::Whole(writer.seal()?) } else { State::Open(writer) };
        Ok(made)
    }

    /// Syncs all files to disk and gives them their final names, the index last. Errors: a listed tensor was not
    /// written.
    pub fn finish(self) -> Result<()> {
        self.ledger.complete(&self.index.draft.path)?;
        let mut whole = Vec::with_capacity(self.shards.len());
        for shard in self.shards {
            match shard.state {
                State::Whole(sealed) => whole.push(sealed),
                _ => return Err(inconsistent_state()),
            }
        }
        let index = self.index.seal()?;
        publish_set(&whole, &index)
    }
}

fn inconsistent_state() -> Error {
    Error::Internal("a shard is in an inconsistent state".into())
}

/// Divides the tensors, in their order, into shards with as many tensors as fit.
fn split(tensors: &[Listed], max: u64) -> Result<Vec<&[Listed]>> {
    let (mut groups, mut start, mut size) = (Vec::new(), 0, 0u64);
    for (i, (_, dtype, shape)) in tensors.iter().enumerate() {
        let bytes = dtype.byte_len(shape)? as u64;
        let larger = size.saturating_add(bytes);
        if i > start && larger > max {
            groups.push(&tensors[start..i]);
            (start, size) = (i, bytes);
        } else {
            size = larger;
        }
    }
    if start < tensors.len() {
        groups.push(&tensors[start..]);
    }
    Ok(groups)
}

/// The end of an index's name.
const INDEX: &str = ".index.json";

/// What the names of a checkpoint's files begin with, of the name of its file or index.
fn stem(name: &str) -> &str {
    let name = name.strip_suffix(INDEX).unwrap_or(name);
    name.strip_suffix(".safetensors").unwrap_or(name)
}

/// Whether this end makes a stem the name of a checkpoint: of its file, its index or a shard.
fn is_checkpoint(end: &str) -> bool {
    let digits = |n: &str| n.len() == 5 && n.bytes().all(|b| b.is_ascii_digit());
    let numbers = || end.strip_prefix('-')?.strip_suffix(".safetensors")?.split_once("-of-");
    matches!(end, ".safetensors" | ".safetensors.index.json") || numbers().is_some_and(|(i, n)| digits(i) && digits(n))
}

/// The files that a loader may take for the checkpoint at `path`, a `.safetensors` file or an index: those in its directory that are named
/// as its file, its index or one of its shards, however many. The index comes first. A directory that can't be listed has none.
///
/// ```
/// use castwise::io::checkpoint_files;
/// let directory = std::env::temp_dir().join(format!("castwise-files-{}", std::process::id()));
/// std::fs::create_dir_all(&directory)?;
/// let all = ["m.safetensors.index.json", "m-00001-of-00002.safetensors", "m.safetensors"].map(|n| directory.join(n));
/// for path in all.iter().chain([&directory.join("m-1.safetensors")]) {
///     std::fs::write(path, "")?;
/// }
/// assert_eq!(checkpoint_files(&all[2]), all);
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn checkpoint_files(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return Vec::new() };
    let is_file = |e: &DirEntry| e.file_type().is_ok_and(|t| t.is_file() || t.is_symlink());
    let entries = std::fs::read_dir(directory(path)).into_iter().flatten().flatten().filter(is_file);
    let names = entries.filter_map(|e| e.file_name().into_string().ok());
    let mut all: Vec<String> = names.filter(|n| n.strip_prefix(stem(name)).is_some_and(is_checkpoint)).collect();
    all.sort_by_key(|n| (!n.ends_with(INDEX), n.clone()));
    all.iter().map(|n| path.with_file_name(n)).collect()
}

/// The paths of `count` shards, in the directory of the index and named after it.
fn shard_paths(index: &Path, count: usize) -> Result<Vec<PathBuf>> {
    let name = index.file_name().unwrap_or_default();
    let Some(name) = name.to_str() else {
        return Err(format_error(
            index,
            "the name of an index must be UTF-8, because the index contains the names of its shards as text",
        ));
    };
    let stem = Some(name).filter(|n| n.ends_with(INDEX)).map(stem).filter(|n| !n.is_empty());
    let Some(stem) = stem else {
        return Err(format_error(index, "the name of an index must be `NAME.safetensors.index.json`"));
    };
    let path = |i| directory(index).join(format!("{stem}-{i:05}-of-{count:05}.safetensors"));
    Ok((1..=count).map(path).collect())
}
