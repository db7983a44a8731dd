//! The writer of a `.npy` file whose array is written in parts.
//!
//! Guarantees: the file has the bytes that `write_npy` writes. Does not: write parts out of order.

use std::path::{Path, PathBuf};

use super::format_error;
use super::npy::header;
use super::output::{Existing, Output};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::shape::{check, dims_text};
use crate::tensor::Tensor;

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
