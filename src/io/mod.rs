//! Reading and writing of `.npy`, `.npz` and `.safetensors` files and of sharded checkpoints.
//!
//! Guarantees: a file's header is checked against the file's length before anything is allocated for it; a file that
//! violates its format is an error that names the file and the violation, never a panic and never a wrong tensor; files
//! are read into owned memory and never mapped, because truncating a mapped file kills the process with SIGBUS; a file
//! appears under its final name only when it is complete and on disk. Does not: convert dtypes (that is `cast`), read
//! anything but regular files, unpickle Python objects, or clean up after `kill -9` or a power failure (a
//! `.castwise-*.tmp` file is left then).

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::base::dtype::DType;
use crate::base::error::{Error, Result, shown};
use crate::base::shape::check;
use crate::tensor::{Storage, Tensor};

mod behind;
mod disk;
mod folder;
mod ledger;
mod npy;
mod npy_writer;
mod npz;
mod output;
mod parts;
mod safetensors;
mod sharded;
mod stored;

pub use folder::FolderWriter;
pub use npy::{Npy, read_npy, read_npy_from, write_npy, write_npy_to};
pub use npy_writer::NpyWriter;
pub use npz::{Compression, Npz, NpzWriter};
pub use output::{Existing, check_output, remove_temporaries, write_text};
pub use safetensors::{SafeTensors, SafeTensorsWriter};
pub use sharded::{ShardedSafeTensors, ShardedWriter, checkpoint_files};
pub use stored::{ForeignDType, Stored, StoredDType};

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}

fn format_error(path: &Path, message: impl Into<String>) -> Error {
    Error::Format { path: path.display().to_string(), message: message.into() }
}

/// The source of bytes, for messages: a file, or a member of an archive.
#[derive(Clone, Copy)]
struct Origin<'a> {
    path: &'a Path,
    member: Option<&'a str>,
}

impl<'a> Origin<'a> {
    fn file(path: &'a Path) -> Origin<'a> {
        Origin { path, member: None }
    }

    /// The error for bytes that violate the format.
    fn refuse(self, message: impl Into<String>) -> Error {
        match self.member {
            None => format_error(self.path, message),
            Some(m) => format_error(self.path, format!("the member `{}`: {}", shown(m), message.into())),
        }
    }

    /// The error for a failed read, whose cause is either the bytes or the system.
    fn failed(self, source: io::Error) -> Error {
        match (source.kind(), self.member) {
            (io::ErrorKind::UnexpectedEof, _) => self.refuse("unexpected end of data"),
            // Decoders report corrupt data with these kinds; plain files never do.
            (io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput, _) => self.refuse(source.to_string()),
            (_, None) => io_error(self.path, source),
            (kind, Some(m)) => {
                io_error(self.path, io::Error::new(kind, format!("the member `{}`: {source}", shown(m))))
            }
        }
    }
}

/// Opens a regular file and returns it with its length.
fn open(path: &Path) -> Result<(File, u64)> {
    // Checked before opening, because opening a FIFO would wait for a writer.
    let refuse = || format_error(path, "not a regular file");
    if !std::fs::metadata(path).map_err(|e| io_error(path, e))?.is_file() {
        return Err(refuse());
    }
    let file = File::open(path).map_err(|e| io_error(path, e))?;
    let metadata = file.metadata().map_err(|e| io_error(path, e))?;
    if metadata.is_file() { Ok((file, metadata.len())) } else { Err(refuse()) }
}

/// Fills a buffer; an early end of the data is an error of `origin`.
fn read_exact(from: &mut impl Read, origin: Origin<'_>, to: &mut [u8]) -> Result<()> {
    from.read_exact(to).map_err(|e| origin.failed(e))
}

/// Reads `len` bytes. The caller has checked that the file is long enough.
fn read_bytes(from: &mut impl Read, origin: Origin<'_>, len: u64) -> Result<Vec<u8>> {
    let size = usize::try_from(len).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| Error::OutOfMemory { bytes: size })?;
    bytes.resize(size, 0);
    read_exact(from, origin, &mut bytes)?;
    Ok(bytes)
}

/// Reads a text file. Errors: it is not a regular file (a pipe could be endless), is longer than `most` bytes, or is
/// not UTF-8.
///
/// ```
/// use castwise::io::{Existing, read_text, write_text};
/// let path = std::env::temp_dir().join(format!("castwise-doc-read-{}.json", std::process::id()));
/// write_text(&path, "{}\n", Existing::Replace)?;
/// assert_eq!(read_text(&path, 3)?, "{}\n");
/// assert!(read_text(&path, 2).unwrap_err().to_string().ends_with("the file has 3 bytes, more than the maximum of 2"));
/// assert!(read_text(std::env::temp_dir(), 2).is_err());
/// # let _ = std::fs::remove_file(path);
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn read_text(path: impl AsRef<Path>, most: u64) -> Result<String> {
    let path = path.as_ref();
    let (mut file, len) = open(path)?;
    if len > most {
        return Err(format_error(path, format!("the file has {len} bytes, more than the maximum of {most}")));
    }
    let bytes = read_bytes(&mut file, Origin::file(path), len)?;
    String::from_utf8(bytes)
        .map_err(|e| format_error(path, format!("not text: byte {} is not UTF-8", e.utf8_error().valid_up_to())))
}

/// The size in bytes of a tensor in a file, or an error if its shape exceeds the limits.
fn byte_len(origin: Origin<'_>, dtype: DType, shape: &[usize]) -> Result<usize> {
    Ok(check(shape).map_err(|e| origin.refuse(e.to_string()))? * dtype.size())
}

/// Reads a row-major tensor at the reader's position. `what` names it in messages.
fn read_tensor(
    from: &mut impl Read,
    origin: Origin<'_>,
    what: &str,
    dtype: DType,
    shape: &[usize],
    big_endian: bool,
) -> Result<Tensor> {
    let mut storage = Storage::zeroed(byte_len(origin, dtype, shape)?)?;
    read_exact(from, origin, storage.bytes_mut())?;
    if big_endian != cfg!(target_endian = "big") {
        swap_bytes(dtype, storage.bytes_mut());
    }
    if dtype == DType::Bool
        && let Some(at) = storage.bytes().iter().position(|b| *b > 1)
    {
        let byte = storage.bytes()[at];
        return Err(origin.refuse(format!("element {at} of {what} is the bool byte {byte}, neither 0 nor 1")));
    }
    Tensor::from_storage(storage, dtype, shape)
}

/// Reverses the byte order of every number.
fn swap_bytes(dtype: DType, bytes: &mut [u8]) {
    match dtype.real().size() {
        1 => {}
        n => bytes.chunks_exact_mut(n).for_each(<[u8]>::reverse),
    }
}

/// Writes a tensor's elements, row-major and little-endian. The outer error is castwise's, the inner one the system's.
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

/// The directory that contains a path's file.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
