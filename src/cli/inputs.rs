//! The input files of a command.
//!
//! Guarantees: the format is told by the file's extension; a .npy is read once and serves every tensor name; of a
//! .safetensors only the header is read until a tensor is asked for. Does not: compute.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use castwise::io::{SafeTensors, read_npy};
use castwise::{DType, Error, Tensor};

/// The formats that are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Npy,
    SafeTensors,
}

impl Format {
    /// The format a file's extension tells.
    pub(super) fn of(path: &Path) -> Result<Format, String> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
        match extension.as_str() {
            "npy" => Ok(Format::Npy),
            "safetensors" => Ok(Format::SafeTensors),
            _ => Err(format!("{}: the extension is neither .npy nor .safetensors", path.display())),
        }
    }
}

/// One input: its name in the expression, and where its tensors come from.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) path: PathBuf,
    source: Source,
}

enum Source {
    Npy(Tensor),
    SafeTensors(Box<SafeTensors>),
}

impl Input {
    pub(super) fn open(name: &str, path: &Path, format: Format) -> castwise::Result<Input> {
        let source = match format {
            Format::Npy => Source::Npy(read_npy(path)?),
            Format::SafeTensors => Source::SafeTensors(Box::new(SafeTensors::open(path)?)),
        };
        Ok(Input { name: name.to_string(), path: path.to_path_buf(), source })
    }

    /// The names of its tensors, in the order of the file; `None` if it is one array without a name.
    pub(super) fn names(&self) -> Option<Vec<&str>> {
        match &self.source {
            Source::Npy(_) => None,
            Source::SafeTensors(f) => Some(f.names().collect()),
        }
    }

    /// Whether it takes part in the evaluation of this tensor name.
    pub(super) fn has(&self, tensor: &str) -> bool {
        match &self.source {
            Source::Npy(_) => true,
            Source::SafeTensors(f) => f.has(tensor),
        }
    }

    /// The free text of the file.
    pub(super) fn metadata(&self) -> Option<&BTreeMap<String, String>> {
        match &self.source {
            Source::Npy(_) => None,
            Source::SafeTensors(f) => Some(f.metadata()),
        }
    }

    /// Dtype and shape of its tensor of this name.
    pub(super) fn info(&self, tensor: &str) -> Result<(DType, Vec<usize>), Error> {
        match &self.source {
            Source::Npy(t) => Ok((t.dtype(), t.shape().to_vec())),
            Source::SafeTensors(f) => f.info(tensor).map(|(d, s)| (d, s.to_vec())),
        }
    }

    /// Its tensor of this name, and how many bytes were read for it.
    pub(super) fn load(&mut self, tensor: &str) -> Result<(Tensor, u64), Error> {
        match &mut self.source {
            Source::Npy(t) => Ok((t.clone(), 0)),
            Source::SafeTensors(f) => {
                let t = f.load(tensor)?;
                let bytes = bytes(t.dtype(), t.shape());
                Ok((t, bytes))
            }
        }
    }

    /// The bytes that were read to open it, beyond a header.
    pub(super) fn read_already(&self) -> u64 {
        match &self.source {
            Source::Npy(t) => bytes(t.dtype(), t.shape()),
            Source::SafeTensors(_) => 0,
        }
    }
}

/// The bytes of a tensor's elements.
pub(super) fn bytes(dtype: DType, shape: &[usize]) -> u64 {
    shape.iter().fold(dtype.size() as u64, |n, d| n.saturating_mul(*d as u64))
}
