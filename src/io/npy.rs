//! NumPy's `.npy` format: versions 1 to 3, both memory orders, both byte orders.
//!
//! Guarantees: before npyz parses a header, the header is within its limit and inside the file, nests brackets at most
//! 8 deep, contains only bytes that a header may have, and has dims whose product does not overflow (npyz parses
//! recursively and multiplies unchecked); the data has exactly the size of dtype and shape; written files are byte for
//! byte what NumPy writes for a row-major array. Does not: read objects, structures, text or dates; write bf16, c32 and
//! floats of 8 bits, which NumPy does not have; read an array in Fortran order without holding it in memory twice.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use npyz::write_options::WriteOptions;
use npyz::{NpyHeader, Order, TypeChar, TypeStr, WriterBuilder};

use super::output::{Existing, Output};
use super::parts::Place;
use super::{Origin, byte_len, format_error, io_error, open, read_exact, read_tensor, write_tensor};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result, shown};
use crate::base::limits::{Limit, Limits};
use crate::base::shape::{check_within, dims_text};
use crate::tensor::Tensor;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
const MAX_NESTING: usize = 8;

/// An open `.npy` file: the header is in memory, and the array stays on disk until [`load`](Npy::load) reads it.
///
/// ```
/// use castwise::{DType, Tensor, io::{Existing, Npy, write_npy}};
/// let path = std::env::temp_dir().join(format!("castwise-doc-header-{}.npy", std::process::id()));
/// write_npy(&path, &Tensor::from_slice(&[1u8, 2, 3], [3])?, Existing::Replace)?;
/// let mut file = Npy::open(&path)?;
/// assert_eq!(file.info(), (DType::U8, &[3][..]));
/// assert_eq!(file.load()?.to_vec::<u8>()?, [1, 2, 3]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), castwise::Error>(())
/// ```
#[derive(Debug)]
pub struct Npy {
    path: PathBuf,
    file: File,
    header: Header,
    data_at: u64,
}

impl Npy {
    /// Opens a file and checks its header.
    pub fn open(path: impl AsRef<Path>) -> Result<Npy> {
        Npy::open_within(path, Limits::new())
    }

    /// [`open`](Npy::open) with other limits for the header's size and the array's dims and elements.
    ///
    /// ```
    /// use castwise::{Limit, Limits, Tensor, io::{Existing, Npy, write_npy}};
    /// let path = std::env::temp_dir().join(format!("castwise-doc-limits-{}.npy", std::process::id()));
    /// write_npy(&path, &Tensor::from_slice(&[1u8, 2, 3], [3])?, Existing::Replace)?;
    /// assert!(Npy::open_within(&path, Limits::new().with(Limit::Elements, 3)?).is_ok());
    /// assert!(Npy::open_within(&path, Limits::new().with(Limit::Elements, 2)?).is_err());
    /// # std::fs::remove_file(path).ok();
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn open_within(path: impl AsRef<Path>, limits: Limits) -> Result<Npy> {
        let path = path.as_ref();
        let (mut file, len) = open(path)?;
        let header = Header::read(&mut file, Origin::file(path), Some(len), &limits)?;
        let data_at = file.stream_position().map_err(|e| io_error(path, e))?;
        Ok(Npy { path: path.to_path_buf(), file, header, data_at })
    }

    /// Checks that a file can store an array of this dtype and shape: NumPy does not have bf16, c32 and
    /// floats of 8 bits.
    ///
    /// ```
    /// use castwise::{DType, io::Npy};
    /// assert!(Npy::check("x.npy", DType::F16, &[2, 3]).is_ok() && Npy::check("x.npy", DType::BF16, &[2, 3]).is_err());
    /// ```
    pub fn check(path: impl AsRef<Path>, dtype: DType, shape: &[usize]) -> Result<()> {
        header(path.as_ref(), dtype, shape).map(|_| ())
    }

    /// The dtype and shape of the array.
    pub fn info(&self) -> (DType, &[usize]) {
        (self.header.dtype, &self.header.shape)
    }

    /// Reads the array; an array in Fortran order becomes a row-major tensor with the same shape and elements.
    pub fn load(&mut self) -> Result<Tensor> {
        self.file.seek(SeekFrom::Start(self.data_at)).map_err(|e| io_error(&self.path, e))?;
        self.header.tensor(&mut self.file, Origin::file(&self.path))
    }

    /// Whether [`load_part`](Npy::load_part) reads this array: one in Fortran order is read as a whole only.
    pub fn has_parts(&self) -> bool {
        !self.header.fortran_order || self.header.shape.len() < 2
    }

    /// Reads as many elements as `into` has, in row-major order from the element `first` on. Errors: they are not in the array;
    /// another dtype; an array in Fortran order; `into` shares its memory.
    ///
    /// ```
    /// use castwise::{DType, Tensor, io::{Existing, Npy, write_npy}};
    /// let path = std::env::temp_dir().join(format!("castwise-doc-part-{}.npy", std::process::id()));
    /// write_npy(&path, &Tensor::from([1u8, 2, 3]), Existing::Replace)?;
    /// let mut two = Tensor::zeros(DType::U8, [2])?;
    /// Npy::open(&path)?.load_part(1, &mut two)?;
    /// assert_eq!(two.to_vec::<u8>()?, [2, 3]);
    /// # std::fs::remove_file(path).ok();
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn load_part(&mut self, first: usize, into: &mut Tensor) -> Result<()> {
        if !self.has_parts() {
            return Err(format_error(&self.path, "an array in Fortran order is read as a whole"));
        }
        let Header { dtype, ref shape, big_endian, .. } = self.header;
        let (elements, data_at) = (shape.iter().product(), self.data_at);
        Place { path: &self.path, what: "the array", data_at, dtype, elements, big_endian }.read(
            &mut self.file,
            first,
            into,
        )
    }
}

/// Reads the array of a `.npy` file; an array in Fortran order becomes a row-major tensor with the same shape and
/// elements.
///
/// ```
/// use castwise::{Tensor, io};
/// let path = std::env::temp_dir().join(format!("castwise-doc-{}.npy", std::process::id()));
/// io::write_npy(&path, &Tensor::from_slice(&[1u8, 2, 3], [3])?, io::Existing::Replace)?;
/// assert_eq!(io::read_npy(&path)?.to_vec::<u8>()?, [1, 2, 3]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn read_npy(path: impl AsRef<Path>) -> Result<Tensor> {
    Npy::open(path)?.load()
}

/// Reads the array of a `.npy` file from a stream, such as a pipe, to its end. `name` is the stream's name in errors. No
/// more memory is allocated than twice the size of what arrives.
///
/// ```
/// use castwise::{Tensor, io};
/// let mut bytes = Vec::new();
/// io::write_npy_to(&mut bytes, "memory", &Tensor::from([1u8, 2, 3]))?;
/// assert_eq!(io::read_npy_from(&mut &bytes[..], "memory")?.to_vec::<u8>()?, [1, 2, 3]);
/// assert!(io::read_npy_from(&mut &bytes[..bytes.len() - 1], "memory").is_err());
/// # Ok::<(), castwise::Error>(())
/// ```
pub fn read_npy_from(from: &mut impl Read, name: &str) -> Result<Tensor> {
    let origin = Origin::file(Path::new(name));
    let header = Header::read(from, origin, None, &Limits::new())?;
    let want = byte_len(origin, header.dtype, &header.shape)?;
    let mut bytes = Vec::new();
    // One more byte shows that the stream is too long.
    from.take(want as u64 + 1).read_to_end(&mut bytes).map_err(|e| origin.failed(e))?;
    if bytes.len() != want {
        let (have, shape) = (bytes.len(), dims_text(&header.shape));
        let have = if have > want { format!("more than {want}") } else { have.to_string() };
        return Err(origin.refuse(format!("{have} bytes of data, but {}{shape} has {want}", header.dtype)));
    }
    header.tensor(&mut &bytes[..], origin)
}

/// Writes a tensor to a stream as [`write_npy`] writes a file. `name` is the stream's name in errors.
pub fn write_npy_to(out: &mut impl Write, name: &str, t: &Tensor) -> Result<()> {
    let path = Path::new(name);
    let header = header(path, t.dtype(), t.shape())?;
    out.write_all(&header).map_err(|e| io_error(path, e))?;
    write_tensor(out, t)?.and_then(|()| out.flush()).map_err(|e| io_error(path, e))
}

/// Writes a tensor as a `.npy` file, version 1.0, little-endian, row-major.
///
/// Errors: NumPy does not have the dtype (bf16, c32, f8e4m3fn, f8e5m2); the system reports an error. No partial file is
/// left.
pub fn write_npy(path: impl AsRef<Path>, t: &Tensor, existing: Existing) -> Result<()> {
    let path = path.as_ref();
    let header = header(path, t.dtype(), t.shape())?;
    let mut out = Output::create(path, existing)?;
    out.write(&header)?;
    out.tensor(t)?;
    out.publish()
}

/// The parsed header of an array.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    fortran_order: bool,
    big_endian: bool,
}

impl Header {
    /// Reads the header of an array whose file has `len` bytes, if that is known, and checks it against that length.
    pub(super) fn read(from: &mut impl Read, origin: Origin<'_>, len: Option<u64>, limits: &Limits) -> Result<Header> {
        let known = len.is_some();
        let len = len.unwrap_or(u64::MAX);
        // The part up to and including the header length of version 1.
        let mut bytes = vec![0; len.min(10) as usize];
        read_exact(from, origin, &mut bytes)?;
        let wide = wide_length(&bytes).map_err(|m| origin.refuse(m))?;
        if wide {
            let mut more = [0; 2];
            read_exact(from, origin, &mut more)?;
            bytes.extend(more);
        }
        let header_len = match bytes[8..] {
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => return Err(origin.refuse("it ends within its header")),
        };
        let limit = limits.get(Limit::NpyHeader).min(len.saturating_sub(bytes.len() as u64));
        if header_len > limit {
            return Err(origin.refuse(format!("the header has {header_len} bytes, more than the maximum of {limit}")));
        }
        let mut text = vec![0; header_len as usize];
        read_exact(from, origin, &mut text)?;
        let have = len - bytes.len() as u64 - header_len;
        bytes.extend(guarded(&text, limits.at(Limit::Rank)).map_err(|m| origin.refuse(format!("header: {m}")))?);
        let parsed = NpyHeader::from_reader(&bytes[..]).map_err(|e| {
            let message = e.to_string();
            origin.refuse(match message.starts_with("could not parse") {
                true => format!("header: not the dict that NumPy writes: `{}`", shown(&String::from_utf8_lossy(&text))),
                // The message may quote the text, which is printable after `guarded`.
                false => format!("header: {}", message.chars().take(200).collect::<String>()),
            })
        })?;
        let (dtype, big_endian) = dtype_of(&parsed.dtype()).map_err(|m| origin.refuse(m))?;
        let dims = parsed.shape().iter().map(|d| usize::try_from(*d)).collect::<Result<Vec<_>, _>>();
        let shape = dims.map_err(|_| origin.refuse("header: a dim is too large for this machine"))?;
        check_within(&shape, limits).map_err(|e| origin.refuse(e.to_string()))?;
        let want = byte_len(origin, dtype, &shape)? as u64;
        if known && want != have {
            let shape = dims_text(&shape);
            return Err(origin.refuse(format!("{have} bytes of data, but {dtype}{shape} has {want}")));
        }
        Ok(Header { dtype, shape, fortran_order: parsed.order() == Order::Fortran, big_endian })
    }

    /// Reads the data after the header.
    pub(super) fn tensor(&self, from: &mut impl Read, origin: Origin<'_>) -> Result<Tensor> {
        let read = |from, shape| read_tensor(from, origin, "the array", self.dtype, shape, self.big_endian);
        if !self.fortran_order || self.shape.len() < 2 {
            return read(from, &self.shape);
        }
        let reversed: Vec<usize> = self.shape.iter().rev().copied().collect();
        let order: Vec<usize> = (0..reversed.len()).rev().collect();
        read(from, &reversed)?.permute(&order)?.contiguous()
    }
}

/// Whether the header length has four bytes instead of two, from the first bytes of a file.
fn wide_length(head: &[u8]) -> Result<bool, String> {
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Err("a zip archive (.npz?), not a .npy file".into());
    }
    if !head.starts_with(MAGIC) {
        return Err("not a .npy file: it does not start with \\x93NUMPY".into());
    }
    match head.get(6..) {
        Some([1, 0, _, _]) => Ok(false),
        Some([2 | 3, 0, _, _]) => Ok(true),
        Some([1..=3, 0, ..] | [] | [_]) | None => Err("it ends within its header".into()),
        Some([major, minor, ..]) => Err(format!("version {major}.{minor} of the .npy format, not 1.0, 2.0 or 3.0")),
    }
}

/// Checks a header's text before npyz parses it, and returns it in normalized form with the same length: NumPy's dict
/// of three entries in ASCII, without anything that makes npyz slow, recurse deeply, or overflow 64 bits.
fn guarded(text: &[u8], rank: usize) -> Result<Vec<u8>, String> {
    let mut clean = text.to_vec();
    let (mut depth, mut entries, mut dims, mut product) = (0usize, 0, 0, 1u64);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let run = |wanted: fn(&u8) -> bool| text[at..].iter().take_while(|b| wanted(b)).count();
        let mut length = 1;
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c' => clean[at] = b' ',
            b',' => {}
            b':' => entries += 1,
            b'(' | b'{' | b'[' => {
                depth += 1;
                if depth > MAX_NESTING {
                    return Err(format!("brackets nested more than {MAX_NESTING} deep"));
                }
                match byte {
                    b'[' => return Err("a structured dtype, which castwise does not read".into()),
                    b'{' if depth > 1 => return Err("a dict within the dict".into()),
                    _ => {}
                }
            }
            b')' | b'}' => depth = depth.saturating_sub(1),
            b'\'' | b'"' => {
                let inner = text[at + 1..].iter().take_while(|b| *b != byte);
                length = 2 + inner.clone().count();
                if at + length > text.len() {
                    return Err("an unterminated string".into());
                }
                if let Some(b) = inner.clone().find(|b| !matches!(b, b' '..=b'~') || **b == b'\\') {
                    return Err(format!("unexpected byte {b:#04x} in a string"));
                }
            }
            b'0'..=b'9' => {
                length = run(u8::is_ascii_digit);
                let digits = &text[at..at + length];
                let dim: Option<u64> = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
                dims += 1;
                if dims > rank {
                    return Err(format!("more than {rank} dims"));
                }
                // The other dims are checked even if one is 0: NumPy refuses them too, and counts in signed integers.
                let all = dim.and_then(|d| product.checked_mul(d.max(1))).filter(|n| i64::try_from(*n).is_ok());
                product = all.ok_or("the shape is beyond all limits")?;
            }
            // Python 2 wrote long integers with this suffix.
            b'L' if at > 0 && text[at - 1].is_ascii_digit() => clean[at] = b' ',
            b'a'..=b'z' | b'A'..=b'Z' => {
                length = run(u8::is_ascii_alphabetic);
                let word = &text[at..at + length];
                if word != b"True" && word != b"False" {
                    return Err(format!("unexpected word `{}`", shown(&String::from_utf8_lossy(word))));
                }
            }
            b => return Err(format!("unexpected byte {b:#04x} (`{}`)", char::from(*b).escape_default())),
        }
        at += length;
    }
    // npyz requires the three keys, so with three entries none is a duplicate and none is unknown.
    if entries > 3 {
        return Err(format!("{entries} entries instead of 3: a duplicate or unknown key"));
    }
    Ok(clean)
}

const KINDS: [(&str, DType); 14] = [
    ("b1", DType::Bool),
    ("u1", DType::U8),
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::C64),
    ("c16", DType::C128),
];

/// Our dtype for a NumPy dtype, and whether its numbers are big-endian.
fn dtype_of(theirs: &npyz::DType) -> Result<(DType, bool), String> {
    let npyz::DType::Plain(theirs) = theirs else {
        return Err("a structured dtype, which castwise does not read".into());
    };
    let kind = format!("{}{}", theirs.type_char(), theirs.size_field());
    if let Some((_, dtype)) = KINDS.iter().find(|(k, _)| *k == kind) {
        return Ok((*dtype, theirs.endianness() == npyz::Endianness::Big));
    }
    let why = match theirs.type_char() {
        TypeChar::Object => "Python objects, which are never read: they can run code",
        TypeChar::UnicodeStr | TypeChar::ByteStr => "text",
        TypeChar::DateTime | TypeChar::TimeDelta => "dates or times",
        TypeChar::RawData => "raw bytes (bf16 saved through NumPy looks like this: save it as .safetensors)",
        TypeChar::Float | TypeChar::Complex => "floats that castwise does not have",
        _ => "not a dtype that castwise knows",
    };
    Err(format!("dtype '{theirs}': {why}"))
}

/// The bytes before an array's data, as NumPy writes them. Errors: NumPy does not have the dtype.
pub(super) fn header(path: &Path, dtype: DType, shape: &[usize]) -> Result<Vec<u8>> {
    let Some((kind, _)) = KINDS.iter().find(|(_, d)| *d == dtype) else {
        let instead = if dtype.is_complex() {
            format!("cast it (`--out-dtype {}`)", dtype.op_math())
        } else {
            "write .safetensors, or cast (`--out-dtype`)".to_string()
        };
        let message = format!("NumPy has no {dtype}: {instead}");
        return Err(format_error(path, message));
    };
    let fault = |m: String| Error::Internal(format!("a .npy header: {m}"));
    let order = if dtype.size() == 1 { '|' } else { '<' };
    let descr: TypeStr = format!("{order}{kind}").parse().map_err(|e| fault(format!("{e}")))?;
    let dims: Vec<u64> = shape.iter().map(|d| *d as u64).collect();
    let mut theirs = Vec::new();
    let options = WriteOptions::new_header_only().dtype(npyz::DType::new_scalar(descr)).shape(&dims);
    options.writer(&mut theirs).write_header_only().map_err(|e| fault(e.to_string()))?;
    let (preamble, text) = theirs.split_at_checked(10).ok_or_else(|| fault("too short".into()))?;
    let text = std::str::from_utf8(text).map_err(|e| fault(e.to_string()))?;
    // npyz writes `(2, 3, )` and aligns the data to 16 bytes. NumPy writes `(2, 3)`, reserves space for the first dim
    // to grow to 21 digits, and aligns to 64 bytes for programs that map the file.
    let close = if shape.len() == 1 { ",)" } else { ")" };
    let mut dict = text.trim_end().replacen(", )", close, 1);
    let growth = shape.first().map_or(0, |d| 21 - d.to_string().len());
    let unpadded = preamble.len() + dict.len() + growth + 1;
    dict.extend(std::iter::repeat_n(' ', growth + 64 - unpadded % 64));
    dict.push('\n');
    let len = u16::try_from(dict.len()).map_err(|e| fault(e.to_string()))?;
    let mut bytes = preamble[..8].to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.extend(dict.as_bytes());
    Ok(bytes)
}
