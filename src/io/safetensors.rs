//! The `.safetensors` format: a JSON header followed by named tensors, read and written one tensor at a time.
//!
//! Guarantees: the header is within its limit and inside the file; its offsets cover the data without gap or overlap;
//! each size matches its dtype and shape; names are unique. Only the header and one tensor are in memory at a time.
//! Does not: read dtypes that castwise lacks (the error names the tensor and the dtype and is returned when that tensor
//! is requested, the file's other tensors load, and it can be copied as bytes), or write c32 and c128, which the format
//! lacks.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};

use super::parts::Place;
use super::stored::{ForeignDType, Stored, StoredDType};
use super::{Origin, format_error, io_error, open, read_bytes, read_exact, read_tensor};
use crate::base::dtype::DType;
use crate::base::error::{Result, shown};
use crate::base::limits::{Limit, Limits};
use crate::base::shape::{check_within, dims_text, numel};
use crate::tensor::Tensor;

mod writer;

pub(super) use writer::Layout;
pub use writer::SafeTensorsWriter;

const DTYPES: [(Dtype, DType); 16] = [
    (Dtype::BOOL, DType::Bool),
    (Dtype::U8, DType::U8),
    (Dtype::U16, DType::U16),
    (Dtype::U32, DType::U32),
    (Dtype::U64, DType::U64),
    (Dtype::I8, DType::I8),
    (Dtype::I16, DType::I16),
    (Dtype::I32, DType::I32),
    (Dtype::I64, DType::I64),
    (Dtype::F8_E4M3, DType::F8E4M3FN),
    (Dtype::F8_E5M2, DType::F8E5M2),
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::F32, DType::F32),
    (Dtype::F64, DType::F64),
    (Dtype::C64, DType::C64),
];

/// An open `.safetensors` file: the header is in memory, and the tensors stay on disk until [`load`](SafeTensors::load)
/// reads them.
///
/// ```
/// use std::collections::BTreeMap;
/// use castwise::{DType, Tensor, io::{Existing, SafeTensors, SafeTensorsWriter}};
/// let path = std::env::temp_dir().join(format!("castwise-doc-{}.safetensors", std::process::id()));
/// let w = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
///
/// let list = [("w".to_string(), w.dtype(), w.shape().to_vec())];
/// let mut out = SafeTensorsWriter::create(&path, &list, &BTreeMap::new(), Existing::Replace)?;
/// out.write("w", &w)?;
/// out.finish()?;
///
/// let mut file = SafeTensors::open(&path)?;
/// assert_eq!(file.info("w")?, (DType::F32, &[2][..]));
/// assert_eq!(file.load("w")?.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Debug)]
pub struct SafeTensors {
    contents: Contents,
    file: File,
}

impl SafeTensors {
    /// Opens a file and checks its header.
    pub fn open(path: impl AsRef<Path>) -> Result<SafeTensors> {
        SafeTensors::open_within(path, Limits::new())
    }

    /// [`open`](SafeTensors::open) with other limits for the header's size and each tensor's dims and elements.
    pub fn open_within(path: impl AsRef<Path>, limits: Limits) -> Result<SafeTensors> {
        let (contents, file) = Contents::open(path.as_ref(), limits)?;
        Ok(SafeTensors { contents, file })
    }

    /// The names of the tensors, in the order of their data.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.contents.names()
    }

    /// Whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.contents.has(name)
    }

    /// The file's `__metadata__`: a map of strings.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.contents.metadata
    }

    /// The dtype and shape of a tensor. Errors: there is no such tensor; castwise does not have its dtype.
    pub fn info(&self, name: &str) -> Result<(DType, &[usize])> {
        self.contents.info(name)
    }

    /// Reads a tensor.
    pub fn load(&mut self, name: &str) -> Result<Tensor> {
        self.contents.load(&mut self.file, name)
    }

    /// Reads as many elements of a tensor as `into` has, from the element `first` on. Errors: those of
    /// [`load`](SafeTensors::load); the elements are not in the tensor; another dtype; `into` shares its memory.
    pub fn load_part(&mut self, name: &str, first: usize, into: &mut Tensor) -> Result<()> {
        self.contents.load_part(&mut self.file, name, first, into)
    }

    /// The dtype and shape of a tensor, whose dtype may be one that castwise lacks. Errors: there is no such tensor.
    pub fn stored(&self, name: &str) -> Result<(StoredDType, &[usize])> {
        self.contents.stored(name)
    }

    /// Reads a tensor of any dtype as bytes, for [`SafeTensorsWriter::write_stored`].
    pub fn load_stored(&mut self, name: &str) -> Result<Stored> {
        self.contents.load_stored(&mut self.file, name)
    }
}

/// A file's checked header.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) path: PathBuf,
    /// The length of the file.
    len: u64,
    data_at: u64,
    tensors: Vec<(String, TensorInfo)>,
    index: HashMap<String, usize>,
    pub(super) metadata: BTreeMap<String, String>,
    limits: Limits,
}

impl Contents {
    pub(super) fn open(path: &Path, limits: Limits) -> Result<(Contents, File)> {
        let refuse = |m: String| format_error(path, m);
        let (mut file, len) = open(path)?;
        let mut head = [0; 8];
        if len < 8 {
            return Err(refuse(format!("the file has {len} bytes, which is too short for a .safetensors file")));
        }
        read_exact(&mut file, Origin::file(path), &mut head)?;
        let header_len = u64::from_le_bytes(head);
        let max = limits.get(Limit::SafetensorsHeader).min(len - 8);
        if header_len > max {
            return Err(refuse(format!(
                "not a .safetensors file: the header has {header_len} bytes, more than the maximum of {max}"
            )));
        }
        let text = read_bytes(&mut file, Origin::file(path), header_len)?;
        let header: Header = serde_json::from_slice(&text).map_err(|e| refuse(format!("header: {e}")))?;
        let Header { mut tensors, metadata } = header;
        tensors.sort_by_key(|(_, info)| info.data_offsets);
        let index = tensors.iter().enumerate().map(|(i, (name, _))| (name.clone(), i)).collect();
        let covered = covered(&tensors).map_err(refuse)?;
        let data_at = 8 + header_len;
        if covered as u64 != len - data_at {
            return Err(format_error(path, format!("{} bytes of data, but the header lists {covered}", len - data_at)));
        }
        Ok((Contents { path: path.to_path_buf(), len, data_at, tensors, index, metadata, limits }, file))
    }

    /// Opens the file again. Errors: its length has changed.
    pub(super) fn reopen(&self) -> Result<File> {
        match open(&self.path)? {
            (file, len) if len == self.len => Ok(file),
            (_, len) => {
                Err(format_error(&self.path, format!("the length has changed from {} to {len} bytes", self.len)))
            }
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    pub(super) fn info(&self, name: &str) -> Result<(DType, &[usize])> {
        let (info, dtype) = self.find(name)?;
        Ok((dtype, &info.shape))
    }

    /// Reads a tensor from the opened file.
    pub(super) fn load(&self, file: &mut File, name: &str) -> Result<Tensor> {
        let (info, dtype) = self.find(name)?;
        let at = self.data_at + info.data_offsets.0 as u64;
        file.seek(SeekFrom::Start(at)).map_err(|e| io_error(&self.path, e))?;
        let what = format!("`{}`", shown(name));
        read_tensor(file, Origin::file(&self.path), &what, dtype, &info.shape, false)
    }

    /// Reads a part of a tensor from the opened file.
    pub(super) fn load_part(&self, file: &mut File, name: &str, first: usize, into: &mut Tensor) -> Result<()> {
        let (info, dtype) = self.find(name)?;
        let (what, data_at) = (format!("`{}`", shown(name)), self.data_at + info.data_offsets.0 as u64);
        let elements = numel(&info.shape)?;
        Place { path: &self.path, what: &what, data_at, dtype, elements, big_endian: false }.read(file, first, into)
    }

    pub(super) fn stored(&self, name: &str) -> Result<(StoredDType, &[usize])> {
        let info = self.listed(name)?;
        Ok((stored_dtype(info), &info.shape))
    }

    /// Reads a tensor from the opened file as bytes.
    pub(super) fn load_stored(&self, file: &mut File, name: &str) -> Result<Stored> {
        let info = self.listed(name)?;
        let (start, end) = info.data_offsets;
        file.seek(SeekFrom::Start(self.data_at + start as u64)).map_err(|e| io_error(&self.path, e))?;
        let bytes = read_bytes(file, Origin::file(&self.path), (end - start) as u64)?;
        Ok(Stored::new(stored_dtype(info), info.shape.clone(), bytes))
    }

    fn find(&self, name: &str) -> Result<(&TensorInfo, DType)> {
        let info = self.listed(name)?;
        match stored_dtype(info) {
            StoredDType::Known(dtype) => Ok((info, dtype)),
            StoredDType::Foreign(dtype) => Err(format_error(
                &self.path,
                format!("the tensor `{}` is {dtype}, a dtype that castwise does not have", shown(name)),
            )),
        }
    }

    /// A tensor's entry in the header.
    fn listed(&self, name: &str) -> Result<&TensorInfo> {
        let found = self.index.get(name).and_then(|i| self.tensors.get(*i));
        let refuse = |m: String| format_error(&self.path, m);
        let (_, info) = found.ok_or_else(|| refuse(format!("there is no tensor `{}`", shown(name))))?;
        check_within(&info.shape, &self.limits).map_err(|e| refuse(format!("the tensor `{}`: {e}", shown(name))))?;
        Ok(info)
    }
}

fn stored_dtype(info: &TensorInfo) -> StoredDType {
    let known = DTYPES.iter().find(|(theirs, _)| *theirs == info.dtype);
    known.map_or(StoredDType::Foreign(ForeignDType(info.dtype)), |(_, dtype)| StoredDType::Known(*dtype))
}

/// The number of bytes that the tensors, in the order of their data, cover. Errors: a gap or an overlap, or a size that
/// does not match its dtype and shape.
fn covered(tensors: &[(String, TensorInfo)]) -> Result<usize, String> {
    let mut at = 0;
    for (name, info) in tensors {
        let (start, end) = info.data_offsets;
        if start != at || end < start {
            return Err(format!(
                "the data of `{}` is at {start}..{end}, but the data before it ends at {at}",
                shown(name)
            ));
        }
        let count = match info.shape.contains(&0) {
            true => Some(0),
            false => info.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)),
        };
        let bits = count.and_then(|n| n.checked_mul(info.dtype.bitsize()));
        if bits.is_none_or(|b| b % 8 != 0 || b / 8 != end - start) {
            let (of, shape) = (info.dtype, dims_text(&info.shape));
            return Err(format!(
                "`{}` is {of}{shape}, which does not match its {} bytes at {start}..{end}",
                shown(name),
                end - start
            ));
        }
        at = end;
    }
    Ok(at)
}

/// The header, with unique names.
struct Header {
    tensors: Vec<(String, TensorInfo)>,
    metadata: BTreeMap<String, String>,
}

/// A tensor's entry. A duplicate field is an error.
#[derive(serde::Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Header, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object that maps names to tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let (mut tensors, mut metadata): (BTreeMap<String, TensorInfo>, _) = (BTreeMap::new(), None);
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        if metadata.replace(map.next_value()?).is_some() {
                            return Err(A::Error::custom("duplicate key `__metadata__`"));
                        }
                        continue;
                    }
                    let e: Entry = map.next_value()?;
                    let text = IntoDeserializer::<serde::de::value::Error>::into_deserializer(e.dtype.as_str());
                    let dtype = Dtype::deserialize(text).map_err(|_| {
                        let (name, dtype) = (shown(&name), shown(&e.dtype));
                        A::Error::custom(format!("the tensor `{name}` has the unknown dtype `{dtype}`"))
                    })?;
                    let info = TensorInfo { dtype, shape: e.shape, data_offsets: e.data_offsets };
                    let shown_name = shown(&name);
                    if tensors.insert(name, info).is_some() {
                        return Err(A::Error::custom(format!("duplicate name `{shown_name}`")));
                    }
                }
                Ok(Header { tensors: tensors.into_iter().collect(), metadata: metadata.unwrap_or_default() })
            }
        }
        d.deserialize_map(OfMap)
    }
}
