//! The output of a command: one file, or the files of a sharded checkpoint.
//!
//! Guarantees: before anything is computed, every output file is checked: it is not an input, `--force` is given if it
//! exists, and its format supports the tensors. Does not: choose a format; the file name and `--max-shard-size` do.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use castwise::io::{
    Compression, Existing, Npy, NpzWriter, SafeTensorsWriter, ShardedWriter, Stored, StoredDType, check_output,
    write_npy,
};
use castwise::{DType, Error, Tensor};

use super::args::Target;
use super::failure::Failure;
use super::format::Format;
use super::report;

/// The default size of a shard, which is that of the Hugging Face libraries.
const SHARD: u64 = 5_000_000_000;

/// The tensors to be written: names, dtypes and shapes.
pub(super) type List = [(String, StoredDType, Vec<usize>)];

/// An output that is being written.
pub(super) enum Output {
    Npy(PathBuf, Existing),
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
        let path = &target.output;
        let existing = if target.force { Existing::Replace } else { Existing::Keep };
        let Layout { index, files } = layout(target, format, list)?;
        keep(&check(&files, read)?, target.force)?;
        Ok(match (index, format) {
            (Some((index, size)), _) => {
                Output::Sharded(Box::new(ShardedWriter::create(index, list, metadata, size, existing)?))
            }
            (None, Format::Npy) => Output::Npy(path.clone(), existing),
            (None, Format::Npz) => {
                let compression = if target.compress { Compression::Deflated } else { Compression::Stored };
                Output::Npz(Box::new(NpzWriter::create(path, &known(path, list)?, compression, existing)?))
            }
            (None, Format::SafeTensors | Format::Index) => {
                Output::SafeTensors(Box::new(SafeTensorsWriter::create(path, list, metadata, existing)?))
            }
        })
    }

    /// Writes one of the tensors.
    pub(super) fn write(&mut self, name: &str, t: &Tensor) -> Result<(), Error> {
        match self {
            Output::Npy(path, existing) => write_npy(path, t, *existing),
            Output::Npz(w) => w.write(name, t),
            Output::SafeTensors(w) => w.write(name, t),
            Output::Sharded(w) => w.write(name, t),
        }
    }

    /// Writes one of the tensors as bytes.
    pub(super) fn write_stored(&mut self, name: &str, t: &Stored) -> Result<(), Error> {
        match self {
            Output::SafeTensors(w) => w.write_stored(name, t),
            Output::Sharded(w) => w.write_stored(name, t),
            Output::Npy(..) | Output::Npz(_) => Err(Error::Internal("NumPy's formats store no bytes".into())),
        }
    }

    /// Flushes the output to disk and gives it its final name.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self {
            Output::Npy(..) => Ok(()),
            Output::Npz(w) => w.finish(),
            Output::SafeTensors(w) => w.finish(),
            Output::Sharded(w) => w.finish(),
        }
    }
}

/// The files of an output.
pub(super) struct Layout {
    /// The index, if there is one, and the size of its shards.
    index: Option<(PathBuf, u64)>,
    /// All files that will be written.
    pub(super) files: Vec<PathBuf>,
}

/// The files that these tensors are written to.
pub(super) fn layout(target: &Target, format: Format, list: &List) -> Result<Layout, Failure> {
    let path = &target.output;
    let size = |(_, dtype, shape): &(String, StoredDType, Vec<usize>)| dtype.byte_len(shape);
    let total = list.iter().try_fold(0u64, |n, t| Ok::<_, Error>(n.saturating_add(size(t)? as u64)))?;
    let index = match (format, target.max_shard_size) {
        (Format::Index, size) => Some((path.clone(), size.unwrap_or(SHARD))),
        // Tensors that fit in one file need no index.
        (Format::SafeTensors, Some(size)) if total > size => {
            let mut name = path.clone().into_os_string();
            name.push(".index.json");
            Some((PathBuf::from(name), size))
        }
        _ => None,
    };
    let files = match &index {
        Some((index, size)) => ShardedWriter::files(index, list, *size)?,
        None => vec![path.clone()],
    };
    match (&index, format) {
        (None, Format::Npy) => {
            known(path, list)?.iter().try_for_each(|(_, dtype, shape)| Npy::check(path, *dtype, shape))?
        }
        (None, Format::Npz) => NpzWriter::check(path, &known(path, list)?)?,
        (None, Format::SafeTensors) => SafeTensorsWriter::check(path, list)?,
        _ => {}
    }
    Ok(Layout { index, files })
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
    let format = Format::of(&target.output).map_err(Failure::usage)?;
    if target.max_shard_size.is_some() && !matches!(format, Format::SafeTensors | Format::Index) {
        return Err(Failure::usage("--max-shard-size needs a .safetensors or .index.json output"));
    }
    if target.compress && format != Format::Npz {
        return Err(Failure::usage("--compress needs an .npz output"));
    }
    for path in read {
        Format::of(path).map_err(Failure::usage)?;
    }
    let existing = check(std::slice::from_ref(&target.output), read)?;
    keep(&existing, target.force || dry_run)?;
    Ok(format)
}

/// Refuses outputs that are also inputs or can't be written. Returns those that exist.
pub(super) fn check<'o>(outputs: &'o [PathBuf], read: &[&Path]) -> Result<Vec<&'o Path>, Failure> {
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
            existing.push(output.as_path());
        }
    }
    Ok(existing)
}

/// Refuses outputs that exist, unless `--force` is given.
pub(super) fn keep(existing: &[&Path], force: bool) -> Result<(), Failure> {
    match existing.first().filter(|_| !force) {
        None => Ok(()),
        Some(output) => {
            let text = format!("{}: the output exists; use --force to replace it", output.display());
            Err(Failure { text: report::error(&text), code: 1 })
        }
    }
}
