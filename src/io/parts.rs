//! Parts of tensors, read into memory that is there and written one after the other.
//!
//! Guarantees: a part lies in its tensor; memory into which a read failed holds valid elements; a tensor counts as written when
//! all of its bytes are. Does not: read parts of arrays in Fortran order or of compressed members.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::npy::header;
use super::output::{Existing, Output};
use super::{Origin, format_error, io_error, read_exact, swap_bytes};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result, shown};
use crate::base::shape::{check, dims_text};
use crate::tensor::Tensor;

/// A tensor in a file: where its elements begin, and how many there are.
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    /// The tensor in messages.
    pub(super) what: &'a str,
    pub(super) data_at: u64,
    pub(super) dtype: DType,
    pub(super) elements: usize,
    pub(super) big_endian: bool,
}

impl Place<'_> {
    /// Reads as many elements as `into` has, from the element `first` on.
    pub(super) fn read(&self, file: &mut File, first: usize, into: &mut Tensor) -> Result<()> {
        let origin = Origin::file(self.path);
        let count = into.numel();
        if into.dtype() != self.dtype || first.checked_add(count).is_none_or(|end| end > self.elements) {
            let (own, to, n) = (self.dtype, into.dtype(), self.elements);
            return Err(Error::Shape(format!(
                "elements {first} to {} of {to} are not in {} of {n} {own}",
                first as u128 + count as u128,
                self.what
            )));
        }
        let at = self.data_at + first as u64 * self.dtype.size() as u64;
        file.seek(SeekFrom::Start(at)).map_err(|e| io_error(self.path, e))?;
        let bytes = into.bytes_mut().ok_or_else(|| Error::Shape("the tensor shares its memory".into()))?;
        let read = read_exact(file, origin, bytes);
        if self.big_endian != cfg!(target_endian = "big") {
            swap_bytes(self.dtype, bytes);
        }
        let wrong = if self.dtype == DType::Bool { bytes.iter().position(|b| *b > 1) } else { None };
        match (read, wrong) {
            (Ok(()), None) => Ok(()),
            (failed, wrong) => {
                let byte = wrong.map_or(0, |at| bytes[at]);
                bytes.fill(0);
                failed?;
                let at = first + wrong.unwrap_or(0);
                let what = self.what;
                Err(origin.refuse(format!("element {at} of {what} is the bool byte {byte}, neither 0 nor 1")))
            }
        }
    }
}

/// A tensor of which parts are written.
struct Open {
    /// Where its bytes begin in the file.
    at: u64,
    dtype: DType,
    written: u64,
    bytes: u64,
}

/// The tensors of which parts are written.
#[derive(Default)]
pub(super) struct Parts(HashMap<String, Open>);

impl Parts {
    /// Whether a part of this tensor has been written, and not all of it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Begins a tensor whose bytes begin at `at`.
    pub(super) fn begin(&mut self, name: &str, dtype: DType, shape: &[usize], at: u64) -> Result<()> {
        let bytes = check(shape)? as u64 * dtype.size() as u64;
        self.0.insert(name.to_string(), Open { at, dtype, written: 0, bytes });
        Ok(())
    }

    /// Where the next part of this tensor begins.
    pub(super) fn next(&self, path: &Path, name: &str, part: &Tensor) -> Result<u64> {
        let refuse = |m: &str| format_error(path, format!("a part of the tensor `{}` {m}", shown(name)));
        let open = self.0.get(name).ok_or_else(|| refuse("is not expected"))?;
        let size = part.numel() as u64 * part.dtype().size() as u64;
        if part.dtype() != open.dtype || open.written + size > open.bytes {
            return Err(refuse("has another dtype, or more elements than are left"));
        }
        Ok(open.at + open.written)
    }

    /// Counts a part as written. Returns whether the tensor is whole.
    pub(super) fn written(&mut self, name: &str, part: &Tensor) -> bool {
        let Some(open) = self.0.get_mut(name) else { return false };
        open.written += part.numel() as u64 * part.dtype().size() as u64;
        let whole = open.written == open.bytes;
        if whole {
            self.0.remove(name);
        }
        whole
    }
}

/// A writer of a `.npy` file, part by part. The file appears under its name when [`finish`](NpyWriter::finish) is called, and
/// never appears if it is not.
///
/// ```
/// use castwise::{DType, Tensor, io::{Existing, NpyWriter, read_npy}};
/// let path = std::env::temp_dir().join(format!("castwise-doc-parts-{}.npy", std::process::id()));
/// let mut out = NpyWriter::create(&path, DType::I64, &[4], Existing::Replace)?;
/// out.write_part(&Tensor::from([1i64, 2, 3]))?;
/// out.write_part(&Tensor::from([4i64]))?;
/// out.finish()?;
/// assert_eq!(read_npy(&path)?.to_vec::<i64>()?, [1, 2, 3, 4]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), castwise::Error>(())
/// ```
pub struct NpyWriter {
    out: Output,
    path: PathBuf,
    dtype: DType,
    shape: Vec<usize>,
    /// The number of elements that are not written yet.
    left: usize,
}

impl NpyWriter {
    /// Starts a file. Errors: NumPy does not have the dtype; the file exists and is to be kept.
    pub fn create(path: impl AsRef<Path>, dtype: DType, shape: &[usize], existing: Existing) -> Result<NpyWriter> {
        let path = path.as_ref();
        let header = header(path, dtype, shape)?;
        let left = check(shape)?;
        let mut out = Output::create(path, existing)?;
        out.write(&header)?;
        Ok(NpyWriter { out, path: path.to_path_buf(), dtype, shape: shape.to_vec(), left })
    }

    /// Writes the next elements, in row-major order. Errors: another dtype, or more elements than are left.
    pub fn write_part(&mut self, part: &Tensor) -> Result<()> {
        if part.dtype() != self.dtype || part.numel() > self.left {
            let (n, of) = (part.numel(), part.dtype());
            let message = format!("a part of {n} {of} does not belong to {}{}", self.dtype, dims_text(&self.shape));
            return Err(format_error(&self.path, message));
        }
        self.out.tensor(part)?;
        self.left -= part.numel();
        Ok(())
    }

    /// Syncs the file to disk and gives it its final name. Errors: elements are missing.
    pub fn finish(self) -> Result<()> {
        match self.left {
            0 => self.out.publish(),
            n => Err(format_error(&self.path, format!("{n} elements were not written"))),
        }
    }
}
