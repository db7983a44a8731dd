//! The writer of `.safetensors` files.
//!
//! Guarantees: every tensor is aligned to its element size, and the data is aligned to 8 bytes; equal tensors and
//! metadata give equal files. Does not: hold more than one tensor in memory.

use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use safetensors::tensor::Dtype;

use super::DTYPES;
use crate::base::dtype::DType;
use crate::base::error::{Error, Result, shown};
use crate::base::limits::{Limit, Limits};
use crate::io::format_error;
use crate::io::ledger::Ledger;
use crate::io::output::{Existing, Output, Sealed};
use crate::io::parts::Parts;
use crate::io::stored::{Listed, Stored, StoredDType, listed};
use crate::tensor::Tensor;

/// A writer of a `.safetensors` file. The header is written first, then the tensors, in any order; the file appears
/// under its name when [`finish`](SafeTensorsWriter::finish) is called, and never appears if it is not.
pub struct SafeTensorsWriter {
    out: Output,
    data_at: u64,
    ledger: Ledger,
    parts: Parts,
}

/// The header of a file, and the offsets of its tensors.
#[derive(Default)]
pub(in crate::io) struct Layout {
    header: String,
    ledger: Ledger,
}

impl Layout {
    /// Computes the layout of a file with the given tensors, as [`SafeTensorsWriter::create`] does.
    pub(in crate::io) fn new(path: &Path, tensors: &[Listed], metadata: &BTreeMap<String, String>) -> Result<Layout> {
        let refuse = |m: String| format_error(path, m);
        // Ordering by descending element size keeps every tensor aligned to its element size.
        let mut order: Vec<_> = tensors.iter().collect();
        order.sort_by(|a, b| b.1.alignment().cmp(&a.1.alignment()).then_with(|| a.0.cmp(&b.0)));
        let (mut ledger, mut at, mut entries) = (Ledger::default(), 0u64, Vec::new());
        if !metadata.is_empty() {
            entries.push(format!("\"__metadata__\":{}", json(metadata)?));
        }
        for (name, dtype, shape) in order {
            let theirs = theirs(*dtype).ok_or_else(|| {
                let or = if *dtype == StoredDType::Known(DType::C128) { ", or write .npz" } else { "" };
                refuse(format!("safetensors has no {dtype} (for `{}`): cast it (`--out-dtype c64`){or}", shown(name)))
            })?;
            let bytes = dtype.byte_len(shape)?;
            let end = at.checked_add(bytes as u64).filter(|e| *e <= i64::MAX as u64);
            let end = end.ok_or_else(|| refuse("the tensors are too large for a file".into()))?;
            let dims = json(shape)?;
            entries.push(format!(
                "{}:{{\"dtype\":\"{theirs}\",\"shape\":{dims},\"data_offsets\":[{at},{end}]}}",
                json(name)?
            ));
            if name == "__metadata__" {
                return Err(refuse("a tensor can't have the name `__metadata__`".into()));
            }
            ledger.add(path, name, *dtype, shape, at)?;
            at = end;
        }
        let mut header = format!("{{{}}}", entries.join(","));
        header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
        Limits::new().allow(Limit::SafetensorsHeader, header.len())?;
        Ok(Layout { header, ledger })
    }

    /// Starts the file.
    pub(in crate::io) fn start(self, path: &Path, existing: Existing) -> Result<SafeTensorsWriter> {
        let mut out = Output::create(path, existing)?;
        let len = self.header.len() as u64;
        out.write(&len.to_le_bytes())?;
        out.write(self.header.as_bytes())?;
        Ok(SafeTensorsWriter { out, data_at: 8 + len, ledger: self.ledger, parts: Parts::default() })
    }
}

impl SafeTensorsWriter {
    /// Starts a file with the given tensors. Errors: a dtype is c32 or c128, which the format lacks; a name is listed
    /// twice.
    pub fn create<D: Copy + Into<StoredDType>>(
        path: impl AsRef<Path>,
        tensors: &[(String, D, Vec<usize>)],
        metadata: &BTreeMap<String, String>,
        existing: Existing,
    ) -> Result<SafeTensorsWriter> {
        Layout::new(path.as_ref(), &listed(tensors), metadata)?.start(path.as_ref(), existing)
    }

    /// Checks that a file can store the given tensors; reports the errors that [`create`](SafeTensorsWriter::create)
    /// finds in the list.
    ///
    /// ```
    /// use castwise::{DType, io::SafeTensorsWriter};
    /// let list = |d| [("x".to_string(), d, vec![2, 3])];
    /// assert!(SafeTensorsWriter::check("x.safetensors", &list(DType::C64)).is_ok());
    /// assert!(SafeTensorsWriter::check("x.safetensors", &list(DType::C128)).is_err());
    /// ```
    pub fn check<D: Copy + Into<StoredDType>>(
        path: impl AsRef<Path>,
        tensors: &[(String, D, Vec<usize>)],
    ) -> Result<()> {
        Layout::new(path.as_ref(), &listed(tensors), &BTreeMap::new()).map(|_| ())
    }

    /// Writes one of the tensors. Errors: it is not listed, has another dtype or shape than listed, or is written
    /// already.
    pub fn write(&mut self, name: &str, t: &Tensor) -> Result<()> {
        let at = self.ledger.take(&self.out.draft.path, name, t.dtype(), t.shape())?;
        self.seek(at)?;
        self.out.tensor(t)?;
        self.ledger.written();
        Ok(())
    }

    /// Writes one of the tensors, whose elements are as the file that they were read from has them. Errors: it is not
    /// listed, has another dtype, shape or size than listed, or is written already.
    pub fn write_stored(&mut self, name: &str, t: &Stored) -> Result<()> {
        let at = self.ledger.take(&self.out.draft.path, name, t.dtype(), t.shape())?;
        self.seek(at)?;
        self.out.write(t.bytes())?;
        self.ledger.written();
        Ok(())
    }

    /// Writes the next elements of one of the tensors, which has this shape, in row-major order. Parts of several tensors may
    /// alternate. Errors: those of [`write`](SafeTensorsWriter::write); more elements than are left.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use castwise::{DType, Tensor, io::{Existing, SafeTensors, SafeTensorsWriter}};
    /// let path = std::env::temp_dir().join(format!("castwise-doc-parts-{}.safetensors", std::process::id()));
    /// let list = [("w".to_string(), DType::U8, vec![3])];
    /// let mut out = SafeTensorsWriter::create(&path, &list, &BTreeMap::new(), Existing::Replace)?;
    /// out.write_part("w", &[3], &Tensor::from([1u8, 2]))?;
    /// out.write_part("w", &[3], &Tensor::from([3u8]))?;
    /// out.finish()?;
    /// assert_eq!(SafeTensors::open(&path)?.load("w")?.to_vec::<u8>()?, [1, 2, 3]);
    /// # std::fs::remove_file(path).ok();
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn write_part(&mut self, name: &str, shape: &[usize], part: &Tensor) -> Result<()> {
        if !self.parts.has(name) {
            let at = self.ledger.begin(&self.out.draft.path, name, part.dtype(), shape)?;
            self.parts.begin(name, part.dtype(), shape, at)?;
        }
        let at = self.parts.next(&self.out.draft.path, name, part)?;
        self.seek(at)?;
        self.out.tensor(part)?;
        if self.parts.written(name, part) {
            self.ledger.ended();
        }
        Ok(())
    }

    /// Whether a part of this tensor has been written, and not all of it.
    pub(in crate::io) fn has_part(&self, name: &str) -> bool {
        self.parts.has(name)
    }

    fn seek(&mut self, at: u64) -> Result<()> {
        self.out.file.seek(SeekFrom::Start(self.data_at + at)).map_err(|e| self.out.draft.error(e))?;
        Ok(())
    }

    /// Syncs the file to disk and gives it its final name. Errors: a listed tensor was not written.
    pub fn finish(self) -> Result<()> {
        self.seal()?.publish()
    }

    /// Whether every listed tensor is written.
    pub(in crate::io) fn is_complete(&self) -> bool {
        self.ledger.is_complete()
    }

    /// Syncs the file to disk. Errors: a listed tensor was not written.
    pub(in crate::io) fn seal(self) -> Result<Sealed> {
        self.ledger.complete(&self.out.draft.path)?;
        self.out.seal()
    }
}

/// The format's name of a dtype.
fn theirs(dtype: StoredDType) -> Option<Dtype> {
    match dtype {
        StoredDType::Known(dtype) => DTYPES.iter().find(|(_, d)| *d == dtype).map(|(theirs, _)| *theirs),
        StoredDType::Foreign(dtype) => Some(dtype.0),
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::Internal(format!("JSON: {e}")))
}
