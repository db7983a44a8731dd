//! NumPy's `.npy`: versions 1 to 3, both orders, both byte orders.
//!
//! Guarantees: the header is parsed by a small reader of its own, without recursion, and at most 64 KiB of it; the
//! file must have exactly the bytes that dtype and shape ask for. Does not: read objects, structures, text, dates, or
//! the unsigned types beyond u8; write bf16 and c32, which NumPy does not have.

use std::io::Seek;
use std::path::Path;

use super::{Existing, Output, byte_len, format_error, io_error, open, read_exact, read_tensor};
use crate::dtype::DType;
use crate::error::{Error, Result, shown};
use crate::shape::MAX_RANK;
use crate::tensor::Tensor;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
const MAX_HEADER: u64 = 1 << 16;

/// Reads the array of a `.npy` file; one in Fortran order comes out with the same shape and elements.
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
    let path = path.as_ref();
    let (mut file, len) = open(path)?;
    let mut start = [0; 12];
    let first = usize::try_from(len).unwrap_or(usize::MAX).min(12);
    let head = start.get_mut(..first).unwrap_or(&mut []);
    read_exact(&mut file, path, head)?;
    let (header_at, header_len) = preamble(path, head)?;
    let data_at = header_at + header_len;
    if header_len > MAX_HEADER || data_at > len {
        let limit = MAX_HEADER.min(len.saturating_sub(header_at));
        return Err(format_error(path, format!("a header of {header_len} bytes, where at most {limit} can be")));
    }
    let mut text = vec![0; header_len as usize];
    file.seek(std::io::SeekFrom::Start(header_at)).map_err(|e| io_error(path, e))?;
    read_exact(&mut file, path, &mut text)?;
    let header = Header::parse(&text).map_err(|m| format_error(path, format!("header: {m}")))?;
    let (dtype, big_endian) = dtype_of(&header.descr).map_err(|m| format_error(path, m))?;
    let want = byte_len(path, dtype, &header.shape)? as u64;
    let have = len - data_at;
    if want != have {
        let shape = crate::shape::dims_text(&header.shape);
        return Err(format_error(path, format!("{have} bytes of data, but {dtype}{shape} has {want}")));
    }
    if !header.fortran_order || header.shape.len() < 2 {
        return read_tensor(&mut file, path, "the array", dtype, &header.shape, big_endian);
    }
    let reversed: Vec<usize> = header.shape.iter().rev().copied().collect();
    let order: Vec<usize> = (0..reversed.len()).rev().collect();
    read_tensor(&mut file, path, "the array", dtype, &reversed, big_endian)?.permute(&order)?.contiguous()
}

/// Writes a tensor as a `.npy` file, version 1.0, little-endian, row-major.
///
/// Errors: bf16 and c32, which NumPy does not have; whatever the system refuses. No partial file is left.
pub fn write_npy(path: impl AsRef<Path>, t: &Tensor, existing: Existing) -> Result<()> {
    let path = path.as_ref();
    let descr = descr_of(t.dtype()).ok_or_else(|| {
        let message = format!("NumPy has no {}: write .safetensors, or cast (`--out-dtype`)", t.dtype());
        format_error(path, message)
    })?;
    let dims: Vec<String> = t.shape().iter().map(ToString::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", dims.join(", "));
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let len = u16::try_from(header.len()).map_err(|_| Error::Internal("a .npy header beyond 64 KiB".into()))?;
    let mut out = Output::create(path, existing)?;
    out.write(MAGIC)?;
    out.write(&[1, 0])?;
    out.write(&len.to_le_bytes())?;
    out.write(header.as_bytes())?;
    out.tensor(t)?;
    out.publish()
}

/// Where the header starts and how long it is, from the first bytes of a file.
fn preamble(path: &Path, head: &[u8]) -> Result<(u64, u64)> {
    let refuse = |m: &str| Err(format_error(path, m));
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return refuse("a zip archive (.npz?), not a .npy file");
    }
    if !head.starts_with(MAGIC) {
        return refuse("not a .npy file: it does not start with \\x93NUMPY");
    }
    match head.get(6..) {
        Some([1, 0, a, b, ..]) => Ok((10, u16::from_le_bytes([*a, *b]).into())),
        Some([2 | 3, 0, a, b, c, d]) => Ok((12, u32::from_le_bytes([*a, *b, *c, *d]).into())),
        Some([1, 0, ..] | [2 | 3, 0, ..]) | Some([] | [_]) | None => refuse("the file ends within its header"),
        Some([major, minor, ..]) => refuse(&format!("version {major}.{minor} of the .npy format, not 1.0, 2.0 or 3.0")),
    }
}

/// What a header says.
#[derive(Debug, PartialEq)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Parses the one form NumPy writes: a dict of `descr`, `fortran_order` and `shape`, in any order.
    fn parse(text: &[u8]) -> Result<Header, String> {
        let text = std::str::from_utf8(text).ok().filter(|t| t.is_ascii()).ok_or("not ASCII text")?;
        let mut r = Reader(text);
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        r.expect('{')?;
        while !r.eat('}') {
            let key = r.string()?;
            r.expect(':')?;
            let again = match key {
                "descr" => descr.replace(r.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(r.bool()?).is_some(),
                "shape" => shape.replace(r.shape()?).is_some(),
                _ => return Err(format!("the unknown key '{}'", shown(key))),
            };
            if again {
                return Err(format!("the key '{key}' twice"));
            }
            if !r.eat(',') {
                r.expect('}')?;
                break;
            }
        }
        r.skip();
        if !r.0.is_empty() {
            return Err(format!("`{}` behind the dict", shown(r.0)));
        }
        let missing = |key| move || format!("no key '{key}'");
        Ok(Header {
            descr: descr.ok_or_else(missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(missing("fortran_order"))?,
            shape: shape.ok_or_else(missing("shape"))?,
        })
    }
}

/// What is left of a header.
struct Reader<'t>(&'t str);

impl<'t> Reader<'t> {
    fn skip(&mut self) {
        self.0 = self.0.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    }

    /// Takes the token if it is next.
    fn eat(&mut self, c: char) -> bool {
        self.skip();
        self.0.strip_prefix(c).inspect(|rest| self.0 = rest).is_some()
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.eat(c) { Ok(()) } else { Err(self.unexpected(&format!("`{c}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.0.chars().take(20).collect();
        if found.is_empty() {
            format!("it ends where {wanted} is missing")
        } else {
            format!("`{}` where {wanted} is missing", shown(&found))
        }
    }

    fn string(&mut self) -> Result<&'t str, String> {
        self.skip();
        let quote =
            self.0.chars().next().filter(|c| matches!(c, '\'' | '"')).ok_or_else(|| self.unexpected("a string"))?;
        let (text, rest) = self.0[1..].split_once(quote).ok_or("a string without end")?;
        if text.contains('\\') {
            return Err("a string with a backslash".into());
        }
        self.0 = rest;
        Ok(text)
    }

    fn descr(&mut self) -> Result<String, String> {
        self.skip();
        if self.0.starts_with(['[', '(']) {
            return Err("a structured dtype, which castwise does not read".into());
        }
        self.string().map(str::to_string)
    }

    fn bool(&mut self) -> Result<bool, String> {
        self.skip();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let mut dims = Vec::new();
        self.expect('(')?;
        while !self.eat(')') {
            self.skip();
            let digits = self.0.len() - self.0.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = self.0.split_at(digits);
            if number.is_empty() {
                return Err(self.unexpected("a dim"));
            }
            dims.push(number.parse().map_err(|_| format!("the dim {} is too large", shown(number)))?);
            if dims.len() > MAX_RANK {
                return Err(format!("more than {MAX_RANK} dims"));
            }
            // Python 2 wrote long integers so.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            if !self.eat(',') {
                self.expect(')')?;
                return if dims.len() == 1 { Err("a shape that is a number, not a tuple".into()) } else { Ok(dims) };
            }
        }
        Ok(dims)
    }
}

const KINDS: [(&str, DType); 11] = [
    ("b1", DType::Bool),
    ("u1", DType::U8),
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

/// The dtype of a NumPy type string, and whether its numbers are big-endian.
fn dtype_of(descr: &str) -> Result<(DType, bool), String> {
    let (order, kind) = match descr.chars().next() {
        Some(c @ ('<' | '>' | '=' | '|')) => (c, &descr[1..]),
        _ => ('|', descr),
    };
    let Some((_, dtype)) = KINDS.iter().find(|(k, _)| *k == kind) else {
        let why = match kind.as_bytes().first() {
            Some(b'O') => "Python objects, which are never read: they can run code",
            Some(b'U' | b'S' | b'a') => "text",
            Some(b'M' | b'm') => "dates or times",
            Some(b'V') => "raw bytes (bf16 saved through NumPy looks like this: save it as .safetensors)",
            Some(b'u') => {
                "unsigned integers beyond u8, which castwise does not have: convert them to a signed dtype first"
            }
            Some(b'f' | b'c') => "floats that castwise does not have",
            _ => "not a dtype that castwise knows",
        };
        return Err(format!("dtype '{}': {why}", shown(descr)));
    };
    match order {
        '|' if dtype.size() > 1 => Err(format!("dtype '{}' does not tell its byte order", shown(descr))),
        '=' => Ok((*dtype, cfg!(target_endian = "big"))),
        order => Ok((*dtype, order == '>')),
    }
}

/// The NumPy type string of a dtype, little-endian; `None` if NumPy does not have it.
fn descr_of(dtype: DType) -> Option<String> {
    let (kind, _) = KINDS.iter().find(|(_, d)| *d == dtype)?;
    Some(format!("{}{kind}", if dtype.size() == 1 { '|' } else { '<' }))
}
