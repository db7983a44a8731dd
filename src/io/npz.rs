//! NumPy's `.npz` format: a zip archive of `.npy` members, each an array with the member's name.
//!
//! Guarantees: members are stored or deflated; no member or header overlaps another, member names are unique, and every
//! member name ends in `.npy`; the memory for a member is checked, before it is allocated, against three bounds: the
//! size that its header gives, the size in the archive and, for a deflated member, 1032 times its compressed size; its
//! checksum is verified. Names are only names: nothing is ever unpacked to disk. Does not: read encrypted members, or
//! members whose header castwise refuses (the error names the member; the other members load); write bf16 and c32,
//! which NumPy does not have.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use zip::read::{ZipArchive, ZipFile};
use zip::result::ZipError;
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::disk::Disk;
use super::ledger::Ledger;
use super::output::{Draft, Existing, Output};
use super::{Origin, byte_len, format_error, npy, open, write_tensor};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result, shown};
use crate::base::limits::Limits;
use crate::tensor::Tensor;

/// The maximum expansion of deflate: two bits encode a run of 258 bytes.
const MAX_RATIO: u64 = 1032;

/// An open `.npz` file: the headers are in memory, and the arrays stay on disk until [`load`](Npz::load) reads them.
///
/// ```
/// use castwise::{DType, Tensor, io::{Compression, Existing, Npz, NpzWriter}};
/// let path = std::env::temp_dir().join(format!("castwise-doc-{}.npz", std::process::id()));
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
///
/// let list = [("x".to_string(), x.dtype(), x.shape().to_vec())];
/// let mut out = NpzWriter::create(&path, &list, Compression::Deflated, Existing::Replace)?;
/// out.write("x", &x)?;
/// out.finish()?;
///
/// let mut file = Npz::open(&path)?;
/// assert_eq!(file.info("x")?, (DType::F32, &[2][..]));
/// assert_eq!(file.load("x")?.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Debug)]
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
    arrays: Vec<Array>,
    index: HashMap<String, usize>,
    limits: Limits,
}

#[derive(Debug)]
struct Array {
    name: String,
    member: usize,
    /// The dtype and shape, or the reason why the array can't be read.
    header: Result<(DType, Vec<usize>), String>,
}

impl Npz {
    /// Opens an archive and checks the header of every member.
    pub fn open(path: impl AsRef<Path>) -> Result<Npz> {
        Npz::open_within(path, Limits::new())
    }

    /// [`open`](Npz::open) with other limits for each header's size and each array's dims and elements.
    pub fn open_within(path: impl AsRef<Path>, limits: Limits) -> Result<Npz> {
        let path = path.as_ref();
        let (file, _) = open(path)?;
        let zip_error = |e| zip_error(Origin::file(path), e);
        let refuse = |m: String| format_error(path, m);
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(zip_error)?;
        if archive.has_duplicate_names() {
            return Err(refuse("duplicate member name".into()));
        }
        if archive.has_overlapping_entries().map_err(zip_error)? {
            return Err(refuse("members overlap".into()));
        }
        let (mut arrays, mut index) = (Vec::new(), HashMap::new());
        for member in 0..archive.len() {
            let entry = archive.by_index_data(member).map_err(zip_error)?;
            let file = entry.name().map_err(zip_error)?.into_owned();
            let Some(name) = file.strip_suffix(".npy") else {
                return Err(refuse(format!("the member `{}` is not a .npy file", shown(&file))));
            };
            let origin = Origin { path, member: Some(&file) };
            let read = |m: &mut ZipFile<'_, _>, len| npy::Header::read(m, origin, Some(len), &limits);
            let header = match with_member(&mut archive, member, origin, read) {
                Ok(h) => Ok((h.dtype, h.shape)),
                Err(Error::Format { message, .. }) => Err(message),
                Err(e) => return Err(e),
            };
            if index.insert(name.to_string(), arrays.len()).is_some() {
                return Err(refuse(format!("duplicate member `{}`", shown(&file))));
            }
            arrays.push(Array { name: name.to_string(), member, header });
        }
        Ok(Npz { path: path.to_path_buf(), archive, arrays, index, limits })
    }

    /// The names of the arrays, in the order of the archive.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.iter().map(|a| a.name.as_str())
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// The dtype and shape of an array. Errors: there is no such array; castwise can't read the member.
    pub fn info(&self, name: &str) -> Result<(DType, &[usize])> {
        match &self.find(name)?.header {
            Ok((dtype, shape)) => Ok((*dtype, shape)),
            Err(message) => Err(format_error(&self.path, message)),
        }
    }

    /// Reads an array.
    pub fn load(&mut self, name: &str) -> Result<Tensor> {
        self.info(name)?;
        let (member, file) = (self.find(name)?.member, format!("{name}.npy"));
        let origin = Origin { path: &self.path, member: Some(&file) };
        with_member(&mut self.archive, member, origin, |m, len| {
            let t = npy::Header::read(m, origin, Some(len), &self.limits)?.tensor(m, origin)?;
            // The read at the end verifies the checksum.
            match m.read(&mut [0]).map_err(|e| origin.failed(e))? {
                0 => Ok(t),
                _ => Err(origin.refuse("it is longer than the archive says")),
            }
        })
    }

    fn find(&self, name: &str) -> Result<&Array> {
        let found = self.index.get(name).and_then(|i| self.arrays.get(*i));
        found.ok_or_else(|| format_error(&self.path, format!("there is no array `{}`", shown(name))))
    }
}

/// Calls `read` with a member and its declared length. Errors: the declared sizes are impossible.
fn with_member<T>(
    archive: &mut ZipArchive<BufReader<File>>,
    member: usize,
    origin: Origin<'_>,
    read: impl FnOnce(&mut ZipFile<'_, BufReader<File>>, u64) -> Result<T>,
) -> Result<T> {
    let entry = archive.by_index_data(member).map_err(|e| zip_error(origin, e))?;
    if entry.encrypted() {
        return Err(origin.refuse("it is encrypted"));
    }
    let (size, packed) = (entry.size(), entry.compressed_size());
    let possible = match entry.compression() {
        CompressionMethod::Stored => size == packed,
        CompressionMethod::Deflated => size <= packed.saturating_mul(MAX_RATIO),
        other => {
            return Err(
                origin.refuse(format!("its compression method is {other}; only stored and deflated are supported"))
            );
        }
    };
    if !possible {
        return Err(origin.refuse(format!("{packed} bytes in the archive can't hold {size} bytes of data")));
    }
    let mut file = archive.by_index(member).map_err(|e| zip_error(origin, e))?;
    read(&mut file, size)
}

fn zip_error(origin: Origin<'_>, e: ZipError) -> Error {
    match e {
        ZipError::Io(e) => origin.failed(e),
        e => origin.refuse(e.to_string()),
    }
}

/// The compression of the members of a `.npz` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Uncompressed, as `numpy.savez` writes them.
    Stored,
    /// Deflated, as `numpy.savez_compressed` writes them.
    Deflated,
}

/// Whether unpacking a member with this name stays inside the target directory.
fn is_inside(name: &str) -> bool {
    let drive = matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    !drive && !name.starts_with(['/', '\\']) && !name.contains('\0') && name.split(['/', '\\']).all(|part| part != "..")
}

/// A writer of a `.npz` file. Arrays are written in any order; the file appears under its name when
/// [`finish`](NpzWriter::finish) is called, and never appears if it is not.
pub struct NpzWriter {
    zip: ZipWriter<Target>,
    draft: Draft,
    ledger: Ledger,
    compression: CompressionMethod,
}

impl NpzWriter {
    /// Starts a file with the given arrays. Errors: a dtype is bf16 or c32, which NumPy does not have; a name is listed
    /// twice, or would be unpacked outside the target directory by another program.
    pub fn create(
        path: impl AsRef<Path>,
        arrays: &[(String, DType, Vec<usize>)],
        compression: Compression,
        existing: Existing,
    ) -> Result<NpzWriter> {
        let path = path.as_ref();
        let ledger = listed(path, arrays)?;
        let Output { file, draft } = Output::create(path, existing)?;
        let compression = match compression {
            Compression::Stored => CompressionMethod::Stored,
            Compression::Deflated => CompressionMethod::Deflated,
        };
        let zip = ZipWriter::new(Target { file, at: 0, end: 0, failed: false });
        Ok(NpzWriter { zip, draft, ledger, compression })
    }

    /// Checks that a file can store the given arrays; reports the errors that [`create`](NpzWriter::create) finds in
    /// the list.
    ///
    /// ```
    /// use castwise::{DType, io::NpzWriter};
    /// let list = |d| [("x".to_string(), d, vec![2, 3])];
    /// assert!(NpzWriter::check("x.npz", &list(DType::C128)).is_ok());
    /// assert!(NpzWriter::check("x.npz", &list(DType::BF16)).unwrap_err().to_string().contains("NumPy has no bf16"));
    /// ```
    pub fn check(path: impl AsRef<Path>, arrays: &[(String, DType, Vec<usize>)]) -> Result<()> {
        listed(path.as_ref(), arrays).map(|_| ())
    }

    /// Writes one of the arrays. Errors: it is not listed, has another dtype or shape than listed, or is written
    /// already.
    pub fn write(&mut self, name: &str, t: &Tensor) -> Result<()> {
        self.ledger.take(&self.draft.path, name, t.dtype(), t.shape())?;
        let header = npy::header(&self.draft.path, t.dtype(), t.shape())?;
        let size = header.len() as u64 + (t.numel() * t.dtype().size()) as u64;
        // A fixed time and fixed permissions, so that equal arrays give equal files.
        let options = SimpleFileOptions::default().compression_method(self.compression).unix_permissions(0o644);
        // Deflated data may be slightly longer than the original.
        let options = options.large_file(size > u64::from(u32::MAX) / 2).last_modified_time(DateTime::DEFAULT);
        self.zip
            .start_file(format!("{name}.npy"), options)
            .map_err(|e| zip_error(Origin::file(&self.draft.path), e))?;
        self.zip.write_all(&header).map_err(|e| self.draft.error(e))?;
        write_tensor(&mut self.zip, t)?.map_err(|e| self.draft.error(e))?;
        self.ledger.written();
        Ok(())
    }

    /// Syncs the file to disk and gives it its final name. Errors: a listed array was not written.
    pub fn finish(self) -> Result<()> {
        self.ledger.complete(&self.draft.path)?;
        let target = self.zip.finish().map_err(|e| zip_error(Origin::file(&self.draft.path), e))?;
        self.draft.seal(target.file)?.publish()
    }
}

/// A ledger of the given arrays, none of which is written.
fn listed(path: &Path, arrays: &[(String, DType, Vec<usize>)]) -> Result<Ledger> {
    let mut ledger = Ledger::default();
    for (name, dtype, shape) in arrays {
        if !is_inside(name) {
            let message =
                format!("`{}` can't be a member name: it would be unpacked outside the target directory", shown(name));
            return Err(format_error(path, message));
        }
        let message = |m: &str| format!("the array `{}`: {m}", shown(name));
        npy::header(path, *dtype, shape).map_err(|e| match e {
            Error::Format { path, message: m } => Error::Format { path, message: message(&m) },
            e => e,
        })?;
        byte_len(Origin::file(path), *dtype, shape)?;
        ledger.add(path, name, *dtype, shape, 0)?;
    }
    Ok(ledger)
}

/// The file under a `ZipWriter`. When a `ZipWriter` is dropped, it finishes the archive and prints an error to stderr
/// if that fails. To avoid this, all operations after a failure do nothing and succeed.
struct Target {
    file: BufWriter<Disk>,
    at: u64,
    end: u64,
    failed: bool,
}

impl Target {
    /// Applies `act` to the file. After a failure, returns `instead`.
    fn file<T>(&mut self, instead: T, act: impl FnOnce(&mut BufWriter<Disk>) -> io::Result<T>) -> io::Result<T> {
        if self.failed {
            return Ok(instead);
        }
        let done = act(&mut self.file);
        // An interrupted call is retried by the caller, so it is not a failure.
        self.failed = done.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted);
        done
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file(bytes.len(), |f| f.write(bytes))?;
        self.at += n as u64;
        self.end = self.end.max(self.at);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file((), |f| f.flush())
    }
}

impl Seek for Target {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(n) => Some(n),
            // The failure may have been in a seek back to a member's header. A member never ends before its start, so
            // count from the end.
            SeekFrom::Current(n) => if self.failed { self.end } else { self.at }.checked_add_signed(n),
            SeekFrom::End(n) => self.end.checked_add_signed(n),
        };
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.at = self.file(at, |f| f.seek(SeekFrom::Start(at)))?;
        Ok(at)
    }
}
