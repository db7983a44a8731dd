//! Files: `.npy` and `.safetensors`, in and out.
//!
//! Guarantees: a file is checked against its own length before anything is allocated for it; a file that is not what
//! its format demands is an error that names the file and what is wrong, never a panic and never a wrong tensor; files
//! are read into owned memory, so that one that changes meanwhile cannot harm; a file appears under its final name
//! only when it is whole and on disk. Does not: convert dtypes (that is `cast`), read what is not a regular file,
//! unpickle Python objects, or clean up after a killed process (it leaves a `.castwise-*.tmp`).

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::check;
use crate::tensor::{Storage, Tensor};

mod npy;
mod safetensors;

pub use npy::{read_npy, write_npy};
pub use safetensors::{SafeTensors, SafeTensorsWriter};

/// What to do when there is a file under the name to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone and give an error.
    Keep,
    /// Replace it, in one step, once the new file is whole.
    Replace,
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}

fn format_error(path: &Path, message: impl Into<String>) -> Error {
    Error::Format { path: path.display().to_string(), message: message.into() }
}

/// Opens a regular file; answers its length too.
fn open(path: &Path) -> Result<(File, u64)> {
    // Before opening: a FIFO would wait for a writer.
    let refuse = || format_error(path, "not a regular file");
    if !std::fs::metadata(path).map_err(|e| io_error(path, e))?.is_file() {
        return Err(refuse());
    }
    let file = File::open(path).map_err(|e| io_error(path, e))?;
    let metadata = file.metadata().map_err(|e| io_error(path, e))?;
    if metadata.is_file() { Ok((file, metadata.len())) } else { Err(refuse()) }
}

/// Fills a buffer from a file whose length promised that it can.
fn read_exact(file: &mut File, path: &Path, to: &mut [u8]) -> Result<()> {
    file.read_exact(to).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => format_error(path, "the file became shorter while it was read"),
        _ => io_error(path, e),
    })
}

/// The bytes of a tensor from outside, or an error if its shape is beyond all limits.
fn byte_len(path: &Path, dtype: DType, shape: &[usize]) -> Result<usize> {
    Ok(check(shape).map_err(|e| format_error(path, e.to_string()))? * dtype.size())
}

/// Reads a row-major tensor from where the file stands. `what` names it in messages.
fn read_tensor(
    file: &mut File,
    path: &Path,
    what: &str,
    dtype: DType,
    shape: &[usize],
    big_endian: bool,
) -> Result<Tensor> {
    let mut storage = Storage::zeroed(byte_len(path, dtype, shape)?)?;
    read_exact(file, path, storage.bytes_mut())?;
    if big_endian != cfg!(target_endian = "big") {
        swap_bytes(dtype, storage.bytes_mut());
    }
    if dtype == DType::Bool
        && let Some(at) = storage.bytes().iter().position(|b| *b > 1)
    {
        let byte = storage.bytes()[at];
        return Err(format_error(path, format!("element {at} of {what} is the bool byte {byte}, neither 0 nor 1")));
    }
    Tensor::from_storage(storage, dtype, shape)
}

/// Turns the byte order of every number around.
fn swap_bytes(dtype: DType, bytes: &mut [u8]) {
    match dtype.real().size() {
        1 => {}
        n => bytes.chunks_exact_mut(n).for_each(<[u8]>::reverse),
    }
}

/// Writes a tensor's elements, row-major and little-endian.
fn write_tensor(out: &mut impl Write, t: &Tensor) -> Result<io::Result<()>> {
    let t = t.contiguous()?;
    let bytes = t.as_bytes().unwrap_or(&[]);
    if cfg!(target_endian = "little") {
        return Ok(out.write_all(bytes));
    }
    let mut swapped = bytes.to_vec();
    swap_bytes(t.dtype(), &mut swapped);
    Ok(out.write_all(&swapped))
}

/// A file in the making: bytes go to a new file beside the final name, [`Output::publish`] gives it that name, and
/// dropping it before removes it.
struct Output {
    file: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
    existing: Existing,
    published: bool,
}

impl Output {
    fn create(path: &Path, existing: Existing) -> Result<Output> {
        let refuse = |kind, text: &str| io_error(path, io::Error::new(kind, text));
        if path.file_name().is_none() {
            return Err(refuse(io::ErrorKind::InvalidInput, "not the name of a file"));
        }
        if let Ok(found) = std::fs::symlink_metadata(path) {
            if existing == Existing::Keep {
                return Err(refuse(io::ErrorKind::AlreadyExists, "the file exists"));
            }
            if !found.is_file() && !found.is_symlink() {
                return Err(refuse(io::ErrorKind::InvalidInput, "exists and is not a regular file"));
            }
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let temporary = directory(path).join(format!(".castwise-{}-{n}.tmp", std::process::id()));
            // `create_new` follows no link that somebody else has put there.
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    let (file, path) = (BufWriter::with_capacity(1 << 16, file), path.to_path_buf());
                    return Ok(Output { file, temporary, path, existing, published: false });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io_error(path, e)),
            }
        }
    }

    fn error(&self, source: io::Error) -> Error {
        io_error(&self.path, source)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| self.error(e))
    }

    fn tensor(&mut self, t: &Tensor) -> Result<()> {
        write_tensor(&mut self.file, t)?.map_err(|e| self.error(e))
    }

    /// Brings the bytes to disk and gives the file its name.
    fn publish(mut self) -> Result<()> {
        self.file.flush().map_err(|e| self.error(e))?;
        self.file.get_ref().sync_all().map_err(|e| self.error(e))?;
        match self.existing {
            Existing::Replace => std::fs::rename(&self.temporary, &self.path).map_err(|e| self.error(e))?,
            Existing::Keep => self.publish_new()?,
        }
        self.published = true;
        // Makes the name itself durable, where directories can be synced.
        if let Ok(d) = File::open(directory(&self.path)) {
            let _ = d.sync_all();
        }
        Ok(())
    }

    /// A new link, unlike a rename, fails if the name was taken meanwhile.
    fn publish_new(&self) -> Result<()> {
        match std::fs::hard_link(&self.temporary, &self.path) {
            Ok(()) => {
                let _ = std::fs::remove_file(&self.temporary);
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(self.error(e)),
            // The file system has no links.
            Err(_) if std::fs::symlink_metadata(&self.path).is_err() => {
                std::fs::rename(&self.temporary, &self.path).map_err(|e| self.error(e))
            }
            Err(e) => Err(self.error(e)),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.published {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// The directory a path's file is in.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
